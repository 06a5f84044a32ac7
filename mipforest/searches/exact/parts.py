"""Rows of a problem in tables, for the search that proves the bound of a certificate.

Losses are walked as the search walks them where it can (:mod:`mipforest.searches.exact.walks`), and row by row
elsewhere (:mod:`mipforest.searches.exact.whole`): costs of classes, weights that are no whole numbers, absolute losses,
deviances, least leaf sizes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.certificates.losses import DEVIANCE, ERRORS, SQUARED, Losses, Problem
from mipforest.objectives.leaf_losses import ClassLoss, SquaredLoss
from mipforest.searches import entry
from mipforest.searches.addresses import words_of
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.covers import restrict
from mipforest.searches.exact.domains import OUT, ROOT, any_split
from mipforest.searches.exact.operations import RowsAtWork, Side, Tables, side_of
from mipforest.searches.exact.search import are_walked
from mipforest.searches.exact.tables import (
    MAX_BYTES,
    DistinctRows,
    bound_to_loops,
    bytes_of_ranks,
    kind_of,
    tables_of,
)
from mipforest.searches.exact.whole import WholeRows, WholeTables
from mipforest.searches.leaf_sums import KIND_OF, LABELS


@entry
def restrict_rows(tables: Tables, sides: Any, f: int, t: int) -> None:
    """As :func:`~mipforest.searches.exact.covers.restrict`, for callers that are not compiled."""
    restrict(tables, sides, f, t, t, t)


class RowSubset(ABC):
    """Rows of a problem in tables, with what their losses are in units of the grid.

    Attributes
    ----------
    rank, size
        (p, m) ranks among the values of all rows, and (m,) samples of each row.
    values
        (p,) number of values of each feature.
    tables, whole
        The tables, and all rows.
    node, losses
        Workspace of the loops.
    cost, units
        Cost of a split as the tables have it, and how many units of the grid one of theirs is.
    """

    rank: Int32Array
    size: IntArray
    values: IntArray
    tables: Tables
    whole: Side
    cost: float
    units: float
    next: IntArray

    def __init__(self) -> None:
        self.node, self.losses = np.zeros(OUT, np.int64), np.zeros(2)
        self.node[ROOT] = -1
        #: Tables by masks, with what keeps their memory.
        self._masked = dict[bytes, tuple[Tables, Any]]()

    @property
    def every(self) -> BoolArray:
        """(m,) all rows."""
        return np.ones(self.rank.shape[1], np.bool_)

    def masked(self, use: NDArray[np.uint8], group: IntArray) -> Tables:
        """Return the tables with masks; see :mod:`mipforest.searches.exact.domains`."""
        key = use.tobytes()
        if key not in self._masked:
            self._masked[key] = self._with_masks(use, group)
        return self._masked[key][0]

    @abstractmethod
    def _with_masks(self, use: NDArray[np.uint8], group: IntArray) -> tuple[Tables, Any]:
        """Return tables with masks, and what keeps their memory."""

    @abstractmethod
    def leaf(self, rows: BoolArray) -> float:
        """Return the loss of one leaf for some rows."""

    @abstractmethod
    def sides(self, f: int, t: int) -> Any:
        """Return the walks of the rows below a threshold, and of those from it on."""

    @abstractmethod
    def part(self, rows: BoolArray) -> RowSubset:
        """Return some of the rows, in tables of their own."""

    @abstractmethod
    def value(self, levels: int, cutoff: float) -> float | None:
        """Return the least loss of trees of more than two levels, or a value that it reaches; ``None``: unknown."""


class WalkedSubset(RowSubset):
    """Rows as the vector walks of the search have them: any leaf size will do."""

    def __init__(self, rows: DistinctRows, cost: float, tolerance: float, units: float) -> None:
        super().__init__()
        self._rows, self.cost, self._tolerance, self.units = rows, cost, tolerance, units
        self.rank, self.values, self._sums = rows.rank, rows.n_values, rows.statistics
        self.size = np.ones(self.rank.shape[1], np.int64)
        self._tables = tables_of(rows)
        self.tables, self.whole = self._tables.loops, self._tables.all_rows()
        self.next = np.zeros(1, np.int64)

    def _with_masks(self, use: NDArray[np.uint8], group: IntArray) -> tuple[Tables, Any]:
        masked = self._tables.masked(use, group, np.zeros(2, np.uint8), parts_none=False)
        return masked.loops, (masked, use, group)

    def leaf(self, rows: BoolArray) -> float:
        """As :meth:`RowSubset.leaf`."""
        return float(self._rows.loss_of(self._sums[rows].sum(axis=0)))

    def sides(self, f: int, t: int) -> Any:
        """As :meth:`RowSubset.sides`."""
        sides = self._tables.sides()
        restrict_rows(self.tables, sides, f, t)
        return sides

    def part(self, rows: BoolArray) -> WalkedSubset:
        """As :meth:`RowSubset.part`."""
        return WalkedSubset(self._rows.subset(rows), self.cost, self._tolerance, self.units)

    def value(self, levels: int, cutoff: float) -> float | None:
        """As :meth:`RowSubset.value`."""
        tables = self._tables if levels == 3 else None
        search = CoverSearch(
            self._rows, levels, cost=self.cost, tolerance=self._tolerance, incumbent=cutoff, tables=tables
        )
        search.solve()
        # At each level, what is within the tolerance of a bound counts as having reached it, on both sides.
        return float(search.bound - 4.0 ** (levels - 2) * self._tolerance)


def walked_rows(problem: Problem, priced: FloatArray | None = None) -> DistinctRows | None:
    """Return the distinct rows of a problem for vector walks; ``None`` where they do not take it.

    Under limits on labels, ``priced`` is (n, K) what each label costs: of two labels, whole multiples of a power of
    two, so that doubles hold their sums. Beside the search's own rows, what every tree loses is left in: which part of
    it a subset has, nobody would know.
    """
    X, y, weight = problem.X, problem.y[:, 0], problem.weight
    whole, K = bool((weight == np.rint(weight)).all()), problem.n_classes
    if problem.N_min > 1 or problem.loss not in (ERRORS, SQUARED) or problem.n_targets > 1:
        return None
    plain = whole and K > 1 and (problem.costs[0] == 1.0 - np.eye(K)).all()
    if problem.loss == ERRORS and not (plain if priced is None else K == 2):
        return None
    n, p = X.shape
    target = y.astype(np.int64) if problem.loss == ERRORS else np.zeros(n, np.int64)
    if priced is not None:
        target, weight = priced.argmin(axis=1), priced.max(axis=1)
    _, of, row = np.unique(np.column_stack([X, target]), axis=0, return_index=True, return_inverse=True)
    row, m = row.ravel(), len(of)
    rank = np.array([np.unique(x, return_inverse=True)[1] for x in X.T], np.int32).reshape(p, n)[:, of]
    n_values = np.array([len(np.unique(x)) for x in X.T], np.int64)
    kind = np.dtype(np.float64)
    if bytes_of_ranks(m, p, int(n_values.max())) > MAX_BYTES:
        return None
    if problem.loss == ERRORS:
        value = np.column_stack([target[of], np.bincount(row, weight)])
        if priced is None and (kind := kind_of(m, value[:, 1])).kind != "i":
            return None
    else:
        shifted = y - np.average(y, weights=weight)
        if not are_walked(weight, shifted):
            return None
        value = np.column_stack([np.bincount(row, weight * shifted**k) for k in (0, 1, 2)])
    return DistinctRows(
        loss=ClassLoss() if problem.loss == ERRORS else SquaredLoss(),
        rank=np.ascontiguousarray(rank),
        order=np.argsort(rank, axis=1, kind="stable").astype(np.int32),
        n_values=n_values,
        value=np.ascontiguousarray(value, dtype=np.float64),
        n_classes=K,
        target=np.zeros(m),
        size=np.bincount(row).astype(np.int64),
        N_min=1,
        kind=kind,
        of_classes=problem.loss == ERRORS,
    )


class PlainSubset(RowSubset):
    """Rows in whole numbers of the grid, for any loss and leaf size."""

    units = 1.0

    def __init__(self, losses: Losses, rank: Int32Array, values: IntArray, *, empties: bool) -> None:
        super().__init__()
        self._losses, self.rank, self.values, self.size = losses, rank, values, losses.size
        self._empties = empties
        m, U = rank.shape[1], int(values.max())
        order = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
        self.next = np.zeros(1, np.int64)
        tables = WholeTables(
            rank=rank,
            order=order,
            table=losses.table,
            size=losses.size,
            kind=np.array([KIND_OF[losses.loss] if losses.has_sums else LABELS + losses.n_targets]),
            scale=np.array(_scales(losses)),
            least=self.next,
            empties=np.array([int(empties)]),
            **any_split(len(rank)),
        )
        self._own = tables
        every = self._at_work(WholeRows(order, np.array([m])))
        below = samples_below(rank, losses.size, U).astype(np.float64)
        self.tables = bound_to_loops(tables, every, moves=False, weight_below=below, has_leaves=False)
        self.whole = side_of(every)
        self.cost = float(losses.split_cost)

    def _at_work(self, rows: WholeRows) -> RowsAtWork:
        totals = np.zeros((4, self._losses.table.shape[1]), np.int64)
        return RowsAtWork(rows, totals, np.zeros(OUT, np.int64))

    def _with_masks(self, use: NDArray[np.uint8], group: IntArray) -> tuple[Tables, Any]:
        own = self._own._replace(use=use, group=group)
        words = words_of(own)
        return self.tables._replace(words=words, sized=words), own

    def leaf(self, rows: BoolArray) -> float:
        """As :meth:`RowSubset.leaf`."""
        return float(self._losses.leaf(self._losses.table[rows].sum(axis=0)[None])[0])

    def sides(self, f: int, t: int) -> Any:
        """As :meth:`RowSubset.sides`."""
        on_left = int((self.rank[f] < t).sum())
        p, m = self.rank.shape
        sides = tuple(
            side_of(self._at_work(WholeRows(np.empty((p, count), np.int32), np.zeros(1, np.int64))))
            for count in (on_left, m - on_left)
        )
        restrict_rows(self.tables, sides, f, t)
        return sides

    def part(self, rows: BoolArray) -> PlainSubset:
        """As :meth:`RowSubset.part`."""
        losses = self._losses
        some = losses._replace(size=losses.size[rows], table=losses.table[rows])
        ranks = np.ascontiguousarray(self.rank[:, rows])
        return PlainSubset(some, ranks, self.values, empties=self._empties)

    def value(self, levels: int, cutoff: float) -> float | None:  # noqa: ARG002
        """As :meth:`RowSubset.value`."""
        return None


def _scales(losses: Losses) -> tuple[float, float]:
    """Return :attr:`WholeTables.scale`."""
    if losses.loss == DEVIANCE:
        return math.ldexp(losses.unit, losses.bits), losses.unit
    return (1.0 / losses.unit, 1.0) if losses.has_sums else (0.0, 0.0)


def samples_below(rank: Int32Array, size: IntArray, U: int) -> IntArray:
    """Return (p, U + 1) the number of samples below each rank."""
    below = np.zeros((len(rank), U + 1), np.int64)
    for f, own in enumerate(rank):
        below[f, 1:] = np.bincount(own, size, U).cumsum()
    return below
