r"""Write certificates (``docs/certificates.md``) of what the exact search has found.

The proof is made after the search, whichever kernels it used: a second search knows the bound that is to be proven, and
keeps intervals of thresholds instead of trees. An interval of a node of more than two levels is closed by bounds on the
rows left of its first and right of its last threshold; :meth:`Prover.solve` takes the weakest interval first, and
splits it. For two levels :func:`value_of_two` does the same in compiled code; when the value is known,
:func:`cover_two` joins thresholds to intervals as wide as it allows. Losses are walked as the search walks them where
it can (:mod:`mipforest.searches.exact.walks`), and row by row elsewhere (:mod:`mipforest.searches.exact.whole`): costs
of classes, weights that are no whole numbers, absolute losses, least leaf sizes.

Bounds are whole numbers of the certificate's grid. What was computed in doubles is lowered by a margin.
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.atomic import atomic_write
from mipforest.certificates import CertificateError
from mipforest.certificates.constraints import Box, Constraints, LabelLimit
from mipforest.certificates.univariate import (
    ABSOLUTE,
    ERRORS,
    LEAST_EXPONENT,
    MOST,
    MOST_EXPONENT,
    SQUARED,
    UNIVARIATE,
    Grid,
    Losses,
    Place,
    Problem,
    charges,
    objective_bound,
    raised,
    rounded,
    subtree_sums,
    values_of,
)
from mipforest.errors import SolverError, Unsupported
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import compile_by, entry, kernel
from mipforest.searches.addresses import words_of
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.covers import (
    HIGH,
    LEFT,
    LOW,
    RIGHT,
    Cover,
    middle,
    pair,
    restrict,
)
from mipforest.searches.exact.domains import COLUMNS, MUST, ONCE, OUT, ROOT, UPPER, any_split
from mipforest.searches.exact.operations import RowsAtWork, Side, Tables, side_of
from mipforest.searches.exact.search import TOLERANCE, are_walked
from mipforest.searches.exact.tables import (
    MAX_BYTES,
    Rows,
    bound_to_loops,
    bytes_of_ranks,
    kind_of,
    tables_of,
)
from mipforest.searches.exact.whole import WholeRows, WholeTables
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

#: Bits of what all rows lose together, of sums of targets, and of weights that are no whole numbers; the check has 52.
LOSS_BITS, TARGET_BITS, WEIGHT_BITS = 50, 51, 47

#: Bits of a weight, and of weight times target, of the absolute loss: their product is a whole number of 62 bits.
ABSOLUTE_WEIGHT_BITS, PRODUCT_BITS = 30, 60

#: Level of the quantile that is the median.
MEDIAN = 0.5

#: Units by which bounds from doubles are lowered: for sums of a few whole numbers with a cost, and, as a share of what
#: all rows lose (2 to the minus this), for the squared loss, whose walks add up thousands of doubles.
ROUNDED_SUMS, SHARE_OF_SQUARES = 4, 36

#: Share of the objective below which a bound differs from it by roundings only, by which the search lowers its bounds.
NEAR = 1e-8

#: What is told where a bound cannot be proven that was computed before.
TOO_ROUNDED = (
    "the certificate cannot be written: rounding errors of the search are larger than what its bounds are lowered by; "
    "solve without one, and report it with the data"
)

#: Intervals of one feature that wait for their evaluation: one on each side of every halving of 65,000 thresholds.
STACK = 64

#: Rows on which the kernels are tried out.
FEW = 4

#: Share of an error, as a power of two, by which a bound exceeds the number of errors below the one that it proves.
SLACK_BITS = 20

#: Steps by which the end of an interval is brought nearer to the last one that can be proven.
STEPS = 3


class Need(NamedTuple):
    """Least number of samples in a leaf.

    Attributes
    ----------
    least
        (1,) that of all trees of some rows, 0 for any.
    before
        (p, U + 1) samples of these rows below each rank; empty where any size will do.
    next
        (1,) that of the next pair, written: :attr:`WholeTables.least`.
    """

    least: IntArray
    before: IntArray
    next: IntArray


@entry
def nearest_middle(weight_below: Any, low: int, high: int) -> int:
    """As :func:`~mipforest.searches.exact.covers.middle`, for callers that are not compiled."""
    return middle(weight_below, low, high)


@entry
def restrict_rows(tables: Tables, sides: Any, f: int, t: int) -> None:
    """As :func:`~mipforest.searches.exact.covers.restrict`, for callers that are not compiled."""
    restrict(tables, sides, f, t)


@entry
def least_of_one(
    tables: Tables, rows: Side, above: int, cost: float, node: IntArray, losses: FloatArray
) -> float:
    """Return the least loss of at most one split on some rows, whose ranks in the first feature are less than one."""
    return pair(tables, rows, 0, above, above, cost, node, losses)[0]


@entry
def value_of_two(
    tables: Tables,
    rows: Side,
    values: IntArray,
    cost: float,
    keep: float,
    need: Need,
    stack: Cover,
    node: IntArray,
    losses: FloatArray,
) -> float:
    """Return the least loss of two levels on some rows, or a value that it reaches.

    Parameters
    ----------
    tables, rows
        The tables, and the walks of the rows.
    values
        (p,) number of values of each feature, 1 of one on which the upper node may not split.
    cost
        Cost of a split.
    keep
        Value that is enough.
    need
        The least number of samples in a leaf.
    stack, node, losses
        Workspace: intervals with their two numbers, sums, and what walks write.
    """
    best, limited = keep, need.least[0] > 0
    for f in range(len(values)):
        if values[f] < 2:
            continue
        node[UPPER] = f
        stack.at[0, LOW], stack.at[0, HIGH], size = 1, values[f] - 1, 1
        stack.key[0, LEFT], stack.key[0, RIGHT] = 0.0, 0.0
        while size > 0:
            size -= 1
            low, high = stack.at[size, LOW], stack.at[size, HIGH]
            if stack.key[size, LEFT] + stack.key[size, RIGHT] + cost >= best:
                continue
            x, y = _both(tables, rows, f, low, high, cost, need, node, losses)
            if x + y + cost >= best:
                continue
            if low == high:
                best = x + y + cost
                continue
            c = middle(tables.weight_below[f], low, high)
            at_left, at_right, last = 0.0, 0.0, min(c, high - 1)
            first = last + 1
            if not limited:
                # Fewer rows lose no more: what the rows on one side of the middle lose holds for all thresholds beyond.
                at_left, at_right = _both(tables, rows, f, c, c, cost, need, node, losses)
                best, last, first = min(best, at_left + at_right + cost), c - 1, c + 1
            for part in range(2):
                a, b = (first, high) if part == 0 else (low, last)
                if a <= b:
                    stack.at[size, LOW], stack.at[size, HIGH] = a, b
                    stack.key[size, LEFT] = max(x, at_left) if part == 0 else x
                    stack.key[size, RIGHT] = y if part == 0 else max(y, at_right)
                    size += 1
    return best


@entry
def cover_two(
    tables: Tables, rows: Side, values: IntArray, f: int, cost: float, target: float, need: Need, ends: IntArray,
    node: IntArray, losses: FloatArray,
) -> int:  # fmt: skip
    """Join the thresholds of a feature to intervals in which all trees of two levels lose at least a value.

    An interval grows as long as the rows on both sides of it lose enough; its end is then found by halving, but for a
    few thresholds.

    Parameters
    ----------
    tables, rows, values, cost, need, node, losses
        As for :func:`value_of_two`.
    f, target
        The feature, and the value.
    ends
        (U,) last thresholds of the intervals, written.

    Returns
    -------
    int
        How many intervals there are; less than 0 where a threshold loses less than the value.
    """
    low, last, number, width = 1, values[f] - 1, 0, 1
    node[UPPER] = f
    while low <= last:
        known, beyond, high = low - 1, last + 1, min(low + width - 1, last)
        steps = 0
        while known + 1 < beyond and (known < low or beyond > last or steps < STEPS):
            x, y = _both(tables, rows, f, low, high, cost, need, node, losses)
            if x + y + cost >= target:
                known = high
            else:
                beyond = high
            if beyond > last:
                high = min(low + 2 * (high - low + 1) - 1, last)
            else:
                high = (known + beyond) // 2
                if high == known:
                    high = known + 1
                steps += known >= low
        if known < low:
            return -low
        ends[number], width = known, known - low + 1
        number += 1
        low = known + 1
    return number


@kernel
def _both(
    tables: Tables,
    rows: Side,
    f: int,
    low: int,
    high: int,
    cost: float,
    need: Need,
    node: IntArray,
    losses: FloatArray,
) -> tuple[float, float]:
    """Return the least losses of at most one split left of the first and right of the last threshold of an interval.

    Leaves of these rows may be smaller than they must be, by as many samples as are between.
    """
    least = need.least[0]
    if least > 0:
        fewer = least - (need.before[f, high] - need.before[f, low])
        need.next[0] = fewer if fewer > 1 else 0
    return pair(tables, rows, f, low, high, cost, node, losses)


class Part(ABC):
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
    def part(self, rows: BoolArray) -> Part:
        """Return some of the rows, in tables of their own."""

    @abstractmethod
    def value(self, levels: int, keep: float) -> float | None:
        """Return the least loss of trees of more than two levels, or a value that it reaches; ``None``: unknown."""


class WalkedPart(Part):
    """Rows as the vector walks of the search have them: any leaf size will do."""

    def __init__(self, rows: Rows, cost: float, tolerance: float, units: float) -> None:
        super().__init__()
        self._rows, self.cost, self._tolerance, self.units = rows, cost, tolerance, units
        self.rank, self.values, self._sums = rows.rank, rows.n_values, rows.sums
        self.size = np.ones(self.rank.shape[1], np.int64)
        self._tables = tables_of(rows)
        self.tables, self.whole = self._tables.loops, self._tables.all_rows()
        self.next = np.zeros(1, np.int64)

    def _with_masks(self, use: NDArray[np.uint8], group: IntArray) -> tuple[Tables, Any]:
        masked = self._tables.masked(use, group, np.zeros(2, np.uint8), parts_none=False)
        return masked.loops, (masked, use, group)

    def leaf(self, rows: BoolArray) -> float:
        """As :meth:`Part.leaf`."""
        return float(self._rows.loss_of(self._sums[rows].sum(axis=0)))

    def sides(self, f: int, t: int) -> Any:
        """As :meth:`Part.sides`."""
        sides = self._tables.sides()
        restrict_rows(self.tables, sides, f, t)
        return sides

    def part(self, rows: BoolArray) -> WalkedPart:
        """As :meth:`Part.part`."""
        return WalkedPart(self._rows.take(rows), self.cost, self._tolerance, self.units)

    def value(self, levels: int, keep: float) -> float | None:
        """As :meth:`Part.value`."""
        tables = self._tables if levels == 3 else None
        search = CoverSearch(
            self._rows, levels, cost=self.cost, tolerance=self._tolerance, incumbent=keep, tables=tables
        )
        search.solve()
        # At each level, what is within the tolerance of a bound counts as having reached it, on both sides.
        return float(search.bound - 4.0 ** (levels - 2) * self._tolerance)


def walked_rows(problem: Problem, priced: FloatArray | None = None) -> Rows | None:
    """Return the distinct rows of a problem for vector walks; ``None`` where they do not take it.

    Under limits on labels, ``priced`` is (n, K) what each label costs: of two labels, whole multiples of a power of
    two, so that doubles hold their sums. Beside the search's own rows, what every tree loses is left in: which part of
    it a subset has, nobody would know.
    """
    X, y, weight = problem.X, problem.y, problem.weight
    whole, K = bool((weight == np.rint(weight)).all()), len(problem.costs)
    if problem.N_min > 1 or problem.loss == ABSOLUTE:
        return None
    plain = whole and K > 1 and (problem.costs == 1.0 - np.eye(K)).all()
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
    return Rows(
        loss="classes" if problem.loss == ERRORS else problem.loss,
        rank=np.ascontiguousarray(rank),
        order=np.argsort(rank, axis=1, kind="stable").astype(np.int32),
        n_values=n_values,
        value=np.ascontiguousarray(value, dtype=np.float64),
        n_classes=K,
        target=np.zeros(m),
        size=np.bincount(row).astype(np.int64),
        N_min=1,
        kind=kind,
    )


class PlainPart(Part):
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
            scale=np.array([2.0**-losses.shift if losses.squared else 0.0]),
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
        """As :meth:`Part.leaf`."""
        totals = self._losses.table[rows].sum(axis=0)
        if not self._losses.squared:
            return float(totals.min())
        w, u, q = map(int, totals)
        return max(0.0, float(q - (u * u / w if w else 0.0) * 2.0**-self._losses.shift))

    def sides(self, f: int, t: int) -> Any:
        """As :meth:`Part.sides`."""
        on_left = int((self.rank[f] < t).sum())
        p, m = self.rank.shape
        sides = tuple(
            side_of(self._at_work(WholeRows(np.empty((p, count), np.int32), np.zeros(1, np.int64))))
            for count in (on_left, m - on_left)
        )
        restrict_rows(self.tables, sides, f, t)
        return sides

    def part(self, rows: BoolArray) -> PlainPart:
        """As :meth:`Part.part`."""
        losses = self._losses
        some = losses._replace(size=losses.size[rows], table=losses.table[rows])
        ranks = np.ascontiguousarray(self.rank[:, rows])
        return PlainPart(some, ranks, self.values, empties=self._empties)

    def value(self, levels: int, keep: float) -> float | None:  # noqa: ARG002
        """As :meth:`Part.value`."""
        return None


def samples_below(rank: Int32Array, size: IntArray, U: int) -> IntArray:
    """Return (p, U + 1) the number of samples below each rank."""
    below = np.zeros((len(rank), U + 1), np.int64)
    for f, own in enumerate(rank):
        below[f, 1:] = np.bincount(own, size, U).cumsum()
    return below


class Interval(NamedTuple):
    """An interval of thresholds, and the bounds on both sides of it; the weakest comes first, then the widest."""

    bound: int
    width: int
    feature: int
    low: int
    high: int
    left: int
    right: int


#: Where the trees of all rows stand.
TOP = Place()


class Columns(NamedTuple):
    """What the nodes of a box may split on: each column is a feature with a range of its thresholds.

    Attributes
    ----------
    feature, offset
        (q,) the feature of each column, ascending, and what is added to its thresholds for those of the feature.
    width
        (q,) its thresholds.
    allowed
        (|B|, q) columns that each node may split on, of a feature at most one.
    must
        (|B|,) nodes that have to split.
    group
        (q,) number of the group of each that comes once on a path, -1 for one that may come again.
    empties
        Whether leaves may be empty where they have a least size.
    """

    feature: IntArray
    offset: IntArray
    width: IntArray
    allowed: BoolArray
    must: BoolArray
    group: IntArray
    empties: bool

    @classmethod
    def of(cls, constraints: Constraints, box: Box) -> Columns:
        """Return the columns of a box; one that no node may split on where there are no others."""
        nodes, features = np.nonzero(box.allowed)
        first, last = constraints.first[nodes, features], constraints.last[nodes, features]
        kinds, kind_of = np.unique(np.column_stack([features, first, last]), axis=0, return_inverse=True)
        if not len(kinds):
            kinds = np.array([[0, 1, 0]])
        feature, begin, end = kinds.T
        allowed = np.zeros((len(box.must), len(kinds)), dtype=bool)
        allowed[nodes, kind_of.ravel()] = True
        return cls(
            feature,
            begin - 1,
            end - begin + 1,
            allowed,
            box.must,
            constraints.group[feature],
            constraints.empties,
        )

    @property
    def is_free(self) -> bool:
        """Whether all nodes may split on all columns, any number of times, and none has to."""
        return bool(self.allowed.all()) and not self.must.any() and bool((self.group < 0).all())

    def ranks(self, rank: IntArray) -> IntArray:
        """Return (q, m) ranks in the columns, from those (p, m) among the values of each feature."""
        own: IntArray = rank[self.feature] - self.offset[:, None]
        return np.clip(own, 0, self.width[:, None])

    def usable(self, place: Place) -> BoolArray:
        """Return (q,) which columns a node may split on, below groups of those that come once on a path."""
        allowed: BoolArray = self.allowed[place.node]
        return allowed & ~np.isin(self.group, list(place.above)) if place.above else allowed

    def below(self, place: Place, column: int, side: int) -> Place:
        """Return the place on a side of a split on a column."""
        group = int(self.group[column])
        above = place.above | {group} if group >= 0 else place.above
        return Place(2 * place.node + 1 + side, above)


class Prover:
    """Proves bounds on the trees of a box, in units of a grid.

    Parameters
    ----------
    split_cost
        Cost of a split in these units.
    margin
        Units by which what tables say may be wrong.
    columns
        What nodes may split on.
    """

    def __init__(self, split_cost: int, margin: int, columns: Columns) -> None:
        self.split_cost, self.margin, self.columns = split_cost, margin, columns
        self._stack = Cover(np.zeros((STACK, 4), np.int32), np.zeros((STACK, 3)))
        self._free, self._below = columns.is_free, subtree_sums(columns.must)

    def bound(self, part: Part, levels: int, least: int, keep: int, place: Place = TOP) -> int:
        """Return what is proven of all rows of a part: a whole number, at most ``keep``.

        Parameters
        ----------
        part
            The rows.
        levels
            Most levels of splits of a tree.
        least
            Least number of samples in a leaf, 0 for any.
        keep
            Bound that is enough.
        place
            The node of the box at which the trees stand.
        """
        if levels > 2:
            return self.solve(part, levels, least, keep, place)[0]
        every = np.ones(part.rank.shape[1], np.bool_)
        return self.least_loss(part, part.whole, every, levels, least, keep, place)

    def least_loss(
        self, part: Part, rows: Any, members: BoolArray, levels: int, least: int, keep: int, place: Place
    ) -> int:
        """As :meth:`bound`, for trees of one level or two on some rows of a part."""
        need, enough = self._need(part, members, least), (keep + self.margin) / part.units
        enough = min(enough, self._leaf(part, members, least, place))
        tables, values = self._tables(part, levels, place), self._values(part, place)
        if levels == 1:
            part.next[0] = least
            value = least_of_one(tables, rows, int(part.values[0]), part.cost, part.node, part.losses)
            return self._claimed(min(value, enough), part, keep)
        value = value_of_two(
            tables, rows, values, part.cost, enough, need, self._stack, part.node, part.losses
        )
        return self._claimed(value, part, keep)

    def _leaf(self, part: Part, members: BoolArray, least: int, place: Place) -> float:
        """Return the loss of one leaf for some rows; infinite where the node has to split, or they are too few."""
        size = int(part.size[members].sum())
        is_leaf = not self.columns.must[place.node] and not self._too_few(size, least)
        return part.leaf(members) if is_leaf else math.inf

    def _too_few(self, size: int, least: int) -> bool:
        """Return whether no tree has some number of samples."""
        return size < least and (size > 0 or not self.columns.empties)

    def _tables(self, part: Part, levels: int, place: Place) -> Tables:
        """Return the tables for what the last nodes of one level or two may split on."""
        if self._free:
            return part.tables
        columns, q = self.columns, len(self.columns.feature)
        use = np.zeros((2, 2, q + COLUMNS), np.uint8)
        nodes = [place.node] if levels == 1 else [2 * place.node + 1, 2 * place.node + 2]
        for child, node in enumerate(nodes):
            use[0, child, :q] = columns.usable(place._replace(node=node))
            use[0, child, q + MUST] = columns.must[node]
        # The feature of the upper node is known to the loops alone.
        use[0, 0, q + ONCE] = levels == 2 and bool((columns.group >= 0).any())
        return part.masked(use, columns.group)

    def _values(self, part: Part, place: Place) -> IntArray:
        """Return (q,) the number of values of each column that a node may split on, 1 of others."""
        return np.where(self.columns.usable(place), part.values, 1)

    def _claimed(self, value: float, part: Part, keep: int, margins: int = 1) -> int:
        if value == math.inf:
            return keep  # there is no such tree
        return max(0, min(keep, math.floor(value * part.units) - margins * self.margin))

    def _need(self, part: Part, members: BoolArray, least: int) -> Need:
        before = np.zeros((0, 0), np.int64)
        if least:
            before = samples_below(part.rank, part.size * members, int(part.values.max()))
        part.next[0] = 0
        return Need(np.array([least]), before, part.next)

    def _floor(self, place: Place) -> int:
        """Return what the splits that have to be there cost."""
        return int(self._below[place.node]) * self.split_cost

    def _side(
        self, part: Part, f: int, t: int, right: bool, levels: int, least: int, keep: int, place: Place
    ) -> int:
        """As :meth:`bound`, for the rows on one side of a threshold of a part."""
        members = (part.rank[f] >= t) == right
        size = int(part.size[members].sum())
        if keep <= 0 or self._too_few(size, least):
            return max(0, keep)  # no tree has a leaf that small
        if not size:
            return min(keep, self._floor(place))
        if levels == 2:
            return self.least_loss(part, part.sides(f, t)[int(right)], members, 2, least, keep, place)
        below = part.part(members)
        # The margins of what the intervals of its levels will be found to be worth.
        margins = 4 ** (levels - 2)
        known = None
        if not least and self._free:
            known = below.value(levels, (keep + margins * self.margin) / part.units)
        if known is not None:
            return self._claimed(known, part, keep, margins)
        return self.solve(below, levels, least, keep, place)[0]

    def solve(
        self, part: Part, levels: int, least: int, keep: int, place: Place = TOP
    ) -> tuple[int, list[Interval]]:
        """Prove a bound for trees of more than two levels; return it with the intervals that do.

        Parameters
        ----------
        part, levels, least, keep, place
            As for :meth:`bound`.
        """
        best, every = keep, np.ones(part.rank.shape[1], np.bool_)
        best = min(best, self._claimed(self._leaf(part, every, least, place), part, keep))
        heap: list[Interval] = []
        weight = part.tables.weight_below

        def side(f: int, t: int, right: bool, fewer: int, enough: int) -> int:
            below = self.columns.below(place, f, int(right))
            return self._side(part, f, t, right, levels - 1, fewer, enough, below)

        def put(f: int, low: int, high: int, left: int | None, right: int | None) -> None:
            """Add an interval, of which the bound on one side may be known."""
            between = int(part.size[(part.rank[f] >= low) & (part.rank[f] < high)].sum()) if least else 0
            fewer = least - between if least - between > 1 else 0
            enough = best - self.split_cost
            if left is None and right is None:
                # The side with more rows first: it may do alone.
                if 2 * weight[f, low] >= weight[f, high]:
                    left = side(f, low, False, fewer, enough)
                else:
                    right = side(f, high, True, fewer, enough)
            if left is None:
                left = side(f, low, False, fewer, enough - (right or 0))
            if right is None:
                right = side(f, high, True, fewer, enough - left)
            bound = left + right + self.split_cost
            heapq.heappush(heap, Interval(bound, low - high, f, low, high, left, right))

        for f in np.flatnonzero(self._values(part, place) > 1).tolist():
            put(f, 1, int(part.values[f]) - 1, None, None)
        while heap and heap[0].bound < best:
            if heap[0].low == heap[0].high:
                best = heap[0].bound
                break
            worst = heapq.heappop(heap)
            f, low, high = worst.feature, worst.low, worst.high
            c = min(int(nearest_middle(weight[f], low, high)), high - 1)
            # With a least size of leaves, both bounds were for leaves smaller by the rows of the whole interval.
            put(f, low, c, None if least else worst.left, None)
            put(f, c + 1, high, None, None if least else worst.right)
        return best, sorted(heap, key=lambda interval: (interval.feature, interval.low))

    def lines(
        self,
        part: Part,
        levels: int,
        least: int,
        b: int,
        intervals: list[Interval] | None = None,
        place: Place = TOP,
    ) -> Iterator[str]:
        """Yield the lines of the proof that all trees of some levels lose at least b.

        Parameters
        ----------
        part, levels, least, place
            As for :meth:`bound`.
        b
            A bound that it has returned, or a lower one.
        intervals
            What :meth:`solve` returned with it; it is called where none are given.
        """
        if self._is_plain(int(part.size.sum()), least, b, place) or levels == 1:
            return
        if levels == 2:
            yield from self.covers(part, part.whole, np.ones(part.rank.shape[1], np.bool_), least, b, place)
            return
        if intervals is None:
            proven, intervals = self.solve(part, levels, least, b, place)
            if proven < b:
                raise SolverError(TOO_ROUNDED)
        for f in np.flatnonzero(self._values(part, place) > 1).tolist():
            own = [interval for interval in intervals if interval.feature == f]
            yield str(len(own))
            for interval in own:
                low, high = interval.low, interval.high
                left, right = self._shares(interval, b)
                yield f"{high + self.columns.offset[f]} {left}"
                between = int(part.size[(part.rank[f] >= low) & (part.rank[f] < high)].sum()) if least else 0
                fewer = least - between if least - between > 1 else 0
                for side, t, claim in ((0, low, left), (1, high, right)):
                    below = self.columns.below(place, f, side)
                    yield from self._lines_of_side(part, f, t, side == 1, levels - 1, fewer, claim, below)

    def _is_plain(self, size: int, least: int, b: int, place: Place) -> bool:
        """Return whether a claim needs no proof."""
        return b <= self._floor(place) or self._too_few(size, least)

    def _shares(self, interval: Interval, b: int) -> tuple[int, int]:
        """Return what is to be proven left and right of an interval: of one side only where that will do."""
        enough = b - self.split_cost
        if interval.right >= enough:
            return 0, enough
        if interval.left >= enough:
            return enough, 0
        left = interval.left - (interval.left + interval.right - enough) // 2
        return left, enough - left

    def _lines_of_side(
        self, part: Part, f: int, t: int, right: bool, levels: int, least: int, b: int, place: Place
    ) -> Iterator[str]:
        members = (part.rank[f] >= t) == right
        if self._is_plain(int(part.size[members].sum()), least, b, place):
            return
        if levels == 2:
            yield from self.covers(part, part.sides(f, t)[int(right)], members, least, b, place)
        else:
            yield from self.lines(part.part(members), levels, least, b, place=place)

    def covers(
        self, part: Part, rows: Any, members: BoolArray, least: int, b: int, place: Place = TOP
    ) -> Iterator[str]:
        """Yield the lines of a proof for two levels; parameters as for :meth:`least_loss` and :meth:`lines`."""
        need, target = self._need(part, members, least), (b + self.margin // 2) / part.units
        ends, values = np.zeros(int(part.values.max()), np.int64), self._values(part, place)
        tables = self._tables(part, 2, place)
        for f in np.flatnonzero(values > 1).tolist():
            count = cover_two(tables, rows, values, f, part.cost, target, need, ends, part.node, part.losses)
            if count < 0:
                raise SolverError(TOO_ROUNDED)
            yield " ".join(map(str, (ends[:count] + self.columns.offset[f]).tolist()))


def grid_of(problem: Problem, limits: Sequence[LabelLimit] = ()) -> Grid:
    """Return a grid on which all losses of a problem, with prices of limits, are whole numbers that doubles hold."""
    w = problem.weight
    whole = bool((w == np.rint(w)).all())
    if problem.loss == ERRORS:
        costs = problem.costs
        most = float((w * costs[problem.y.astype(np.int64)].max(axis=1)).sum())
        if limits:
            paid = [limit.price * limit.use for limit in limits]
            priced = sum(paid, w[:, None] * costs[problem.y.astype(np.int64)])
            shifted = float((priced - priced.min(axis=1, keepdims=True)).max(axis=1).sum())
            most = max(shifted, *(float(np.abs(one).max()) for one in paid))
            return Grid(_exponent(LOSS_BITS, most, problem.split_cost))
        numbers = np.concatenate([w, costs.ravel(), [problem.split_cost]])
        exact = bool((numbers == np.rint(numbers)).all()) and most < MOST / 2
        return Grid(0 if exact else _exponent(LOSS_BITS, most, problem.split_cost))
    if problem.loss == SQUARED:
        centre = float(np.average(problem.y, weights=w))
        far = np.abs(problem.y - centre)
        weight = 0 if whole and w.sum() < 2**TARGET_BITS else _exponent(WEIGHT_BITS, float(w.sum()))
        target = _exponent(TARGET_BITS, math.ldexp(float(w @ far), weight))
        most = float(w @ far**2)
    else:
        centre, span = 0.0, float(np.ptp(problem.y))
        weight = (
            0
            if whole and w.max() < 2**ABSOLUTE_WEIGHT_BITS
            else _exponent(ABSOLUTE_WEIGHT_BITS, float(w.max()))
        )
        bits = PRODUCT_BITS - max(0, math.frexp(float(w.max()))[1] + weight)
        target = min(_exponent(bits, span), _exponent(TARGET_BITS, float(np.abs(problem.y).max())))
        most = float(w.sum()) * span
    loss = min(
        _exponent(LOSS_BITS, most, problem.split_cost),
        weight + (2 if problem.loss == SQUARED else 1) * target,
    )
    grid = Grid(loss, weight, target, centre)
    # One unit more than the check needs: another one may round what it computes.
    return grid._replace(error=rounded(problem, grid).error + 1)


def _exponent(bits: int, *values: float) -> int:
    """Return the exponent of a grid on which values have so many bits; values of 0 have any."""
    exponent = bits - max((math.frexp(value)[1] for value in values if value > 0), default=0)
    return min(max(exponent, LEAST_EXPONENT), MOST_EXPONENT)


def no_certificate(error: CertificateError) -> Unsupported:
    """Return the refusal of a problem that is beyond certificates."""
    return Unsupported(f"no certificate can be written of this problem: {error}; solve it without one")


class Step(NamedTuple):
    """A step of the division of trees into boxes: the words of its line, and the box of a claim."""

    line: str
    box: Box | None = None


class Proof:
    """A proof of a bound on what trees are charged.

    Parameters
    ----------
    charged, depth
        What trees are charged, and their most levels of splits.
    constraints
        What trees have to keep, if anything.
    walks
        Whether to take vector walks where they take the problem.

    Raises
    ------
    Unsupported
        If the problem is larger than certificates are, or its numbers are beyond them.
    """

    def __init__(
        self,
        charged: UnivariateProblem,
        depth: int,
        constraints: Constraints | None = None,
        *,
        walks: bool = True,
    ) -> None:
        if charged.table is not None:
            raise Unsupported(
                "no certificate can be written of costs that differ from sample to sample: the file states costs by "
                "class; solve it without one"
            )
        self.charged = charged
        y, thresholds = np.asarray(charged.y, dtype=np.float64), charged.thresholds
        costs = np.zeros((0, 0))
        if charged.loss == "classes":
            costs = 1.0 - np.eye(int(y.max()) + 1) if charged.costs is None else charged.costs
        self.problem = Problem(
            loss=ERRORS if charged.loss == "classes" else charged.loss,
            depth=depth,
            N_min=charged.N_min,
            split_cost=float(charged.split_cost),
            unit=float(charged.unit),
            costs=costs,
            X=thresholds.X[thresholds.group],
            y=y,
            weight=np.ones(len(y)) if charged.weight is None else charged.weight,
        )
        try:
            self._values = values_of(self.problem.X)
            self.constraints = constraints or Constraints.none(depth, self._values)
            self.grid = grid_of(self.problem, self.constraints.labels)
            self._losses = rounded(self.problem, self.grid, self.constraints.labels)
            #: (n, K) what each label costs with the prices of limits on labels, in units of the loss.
            self._priced: FloatArray | None = None
            if self.constraints.labels:
                table, _ = charges(self.problem, self.grid.loss, self.constraints.labels)
                self._priced = np.ldexp(table.astype(np.float64), -self.grid.loss)
        except CertificateError as error:
            raise no_certificate(error) from None
        self._least, self._walks = charged.N_min if charged.N_min > 1 else 0, walks
        self._rank = np.array([np.unique(x, return_inverse=True)[1] for x in self.problem.X.T]).reshape(
            -1, len(y)
        )
        #: Boxes whose trees are all that keep the constraints, in the order of the file.
        self.steps = [Step("claim", self.constraints.box())]
        #: What the claims of three levels or more are proven by.
        self._intervals = dict[int, list[Interval]]()
        self._at_hand: tuple[Box, Part, Prover] | None = None
        self.losses = 0

    def _of_box(self, box: Box) -> tuple[Part, Prover]:
        """Return the rows in the columns of a box, and what proves bounds on its trees."""
        if self._at_hand is None or self._at_hand[0] is not box:
            self._at_hand = box, *self._made(Columns.of(self.constraints, box))
        return self._at_hand[1:]

    def _made(self, columns: Columns) -> tuple[Part, Prover]:
        problem = self.problem
        exact = self.grid.loss == 0 and problem.loss == ERRORS and self._priced is None
        own = problem._replace(X=columns.ranks(self._rank).T.astype(np.float64))
        rows = walked_rows(own, self._priced) if self._walks else None
        margin = 0
        part: Part
        if rows is not None:
            tolerance = 0.0 if exact else TOLERANCE * max(problem.unit, rows.leaf())
            margin = 0 if exact else ROUNDED_SUMS
            part = WalkedPart(rows, problem.split_cost, tolerance, math.ldexp(1.0, self.grid.loss))
        else:
            losses = rounded(own, self.grid, self.constraints.labels)
            rank = np.empty((len(columns.feature), len(losses.size)), np.int32)
            rank[:, losses.group] = own.X.T.astype(np.int32)
            part = PlainPart(losses, rank, columns.width + 1, empties=columns.empties)
        if problem.loss == SQUARED:
            margin = ROUNDED_SUMS + (int(self._losses.table[:, 2].sum()) >> SHARE_OF_SQUARES)
        return part, Prover(self._losses.split_cost, margin, columns)

    def try_out(self) -> None:
        """Run all that is compiled, on a few rows."""
        box = self.steps[0].box
        assert box is not None
        whole, prover = self._of_box(box)
        members = np.arange(whole.rank.shape[1]) < FEW
        part, few = whole.part(members), members[members]
        for levels in range(1, min(self.problem.depth, 2) + 1):
            prover.bound(part, levels, self._least, 1)
        # Less than any loss, so that nothing fails.
        if self.problem.depth > 1:
            list(prover.covers(part, part.whole, few, self._least, -prover.margin))
        if self.problem.depth > 2:
            nearest_middle(part.tables.weight_below[0], 1, 1)
            side = part.sides(0, 1)[0]
            prover.least_loss(part, side, few, 2, self._least, 1, Place(1))
        if self.problem.depth > 3:
            part.value(3, 1.0)

    @staticmethod
    def wanted(objective: float, bound: float) -> float:
        """Return the bound to prove: the objective, where the search has lowered its bound for its roundings only."""
        near = objective - bound <= NEAR * max(abs(objective), 1.0)
        return objective if near else max(0.0, bound)

    def priced(self, charged: UnivariateProblem, bound: float) -> tuple[UnivariateProblem, float]:
        """Return a problem with the prices of limits on labels, and what a bound on the objective is of its own one."""
        if self._priced is None:
            return charged, bound
        y, moved = self._priced.argmin(axis=1), math.ldexp(self._losses.moved, -self.grid.loss)
        priced = replace(charged, y=y, table=self._priced, weight=None, costs=None, offset=0.0)
        return priced, bound - moved / charged.unit

    def prove(self, bound: float) -> float:
        """Prove a bound on the objective, or the best one that is less; return it."""
        wanted = math.ceil(Fraction(bound) * Fraction(self.problem.unit) * Fraction(2) ** self.grid.loss)
        least = wanted + self.grid.error
        if self.constraints.labels:
            # Less will do, where the next number of errors is what is wanted.
            fewer = least - (1 << max(self.grid.loss, 0)) + (1 << max(self.grid.loss - SLACK_BITS, 0))
            least = fewer if raised(self.problem, fewer, self.grid) >= least else least
        self.losses = max(0, min(MOST - 1, least - self._losses.moved))
        for k, (_, box) in enumerate(self.steps):
            if box is not None:
                self.losses = self._proven(k, box)
        units = self.losses + self._losses.moved
        units = raised(self.problem, units, self.grid) if self.constraints.labels else units
        proven = objective_bound(units, self.grid, self.problem.unit)
        below = float(proven)
        return below if Fraction(below) <= proven else math.nextafter(below, 0.0)

    def _proven(self, k: int, box: Box) -> int:
        """Return what is proven of a box, at most the bound on those before it."""
        part, prover = self._of_box(box)
        depth, keep = self.problem.depth, self.losses
        if depth <= 2:
            return prover.bound(part, depth, self._least, keep)
        found, self._intervals[k] = prover.solve(part, depth, self._least, keep)
        return found

    def lines(
        self,
        names: Mapping[str, Any],
        objective: float,
        tree: list[tuple[int, float]],
        bound: float,
        leaves: Sequence[int] = (),
    ) -> Iterator[str]:
        """Yield the lines of the certificate.

        Parameters
        ----------
        names
            What the first line calls the problem.
        objective, tree
            Value of a tree, and feature and threshold of each node in heap order, -1 and 0 for a leaf.
        bound
            What :meth:`prove` returned.
        leaves
            Under limits on labels, the label of each node, of those at the last level too; -1 where it is no leaf.
        """
        problem, grid, constraints = self.problem, self.grid, self.constraints
        n, p = problem.X.shape
        yield json.dumps({"mipforest_certificate": UNIVARIATE, **names, "sha256": problem.digest()})
        sizes = (problem.depth, n, p, len(problem.costs), problem.N_min)
        charges = (problem.split_cost.hex(), problem.unit.hex())
        yield " ".join(["problem", problem.loss, *map(str, sizes), *charges])
        for row in problem.costs.tolist():
            yield " ".join(["cost", *map(float.hex, row)])
        for row in np.column_stack([problem.y, problem.weight, problem.X]).tolist():
            yield " ".join(["sample", *map(float.hex, row)])
        yield from constraints.lines(self._values)
        yield f"grid {grid.loss} {grid.weight} {grid.target} {grid.centre.hex()} {grid.error}"
        yield " ".join(["tree", objective.hex(), *(f"{f} {threshold.hex()}" for f, threshold in tree)])
        if constraints.labels:
            yield " ".join(["leaves", *map(str, leaves)])
        yield f"bound {self.losses} {bound.hex()}"
        for k, (line, box) in enumerate(self.steps):
            if constraints.has_limits:
                yield line
            if box is not None:
                part, prover = self._of_box(box)
                yield from prover.lines(part, problem.depth, self._least, self.losses, self._intervals.get(k))

    def write(
        self,
        path: Path,
        names: Mapping[str, Any],
        objective: float,
        tree: list[tuple[int, float]],
        bound: float,
        leaves: Sequence[int] = (),
    ) -> None:
        """Write the certificate, whole or not at all; parameters as for :meth:`lines`."""
        with atomic_write(path) as raw, gzip.GzipFile("", "wb", 4, raw, mtime=0) as file:
            for line in self.lines(names, objective, tree, bound, leaves):
                file.write(line.encode() + b"\n")

    def write_found(
        self, path: Path, names: Mapping[str, Any], tree: Tree, objective: float, bound: float
    ) -> float:
        """Write a certificate of what a search has found; return the bound that it proves.

        Parameters
        ----------
        path, names
            The file, and what its first line calls the problem.
        tree, objective, bound
            The best tree with its objective, and the bound of the search.
        """
        proven = self.prove(self.wanted(objective, bound))
        leaves = labels_of(tree) if self.constraints.labels else []
        self.write(path, names, objective, splits_of(tree), proven, leaves)
        return min(objective, proven)


def compiled_proof(
    budget: TimeBudget, charged: UnivariateProblem, depth: int, constraints: Constraints | None = None
) -> Proof:
    """Return a proof to be, with what writing it runs loaded or compiled; see :func:`~mipforest.searches.compile_by`.

    Parameters
    ----------
    budget
        What compiling is excluded from.
    charged, depth, constraints
        As for :class:`Proof`.

    Raises
    ------
    Unsupported
        If leaves predict a quantile that is no median, or rates.
    """
    if charged.loss not in ("classes", SQUARED, ABSOLUTE):
        raise Unsupported(
            f"a certificate states losses in whole numbers and fractions, and the {charged.loss} loss has logarithms; "
            "leave the certificate out"
        )
    if charged.level != MEDIAN:
        raise Unsupported(
            f"a certificate states absolute losses around medians, and the trees predict the quantile of level "
            f"{charged.level:g}; leave the certificate out"
        )
    made = list[Proof]()

    def run() -> None:
        made.append(Proof(charged, depth, constraints))
        made[0].try_out()

    compile_by(run, budget, "the search for a proof", 5)
    return made[0]


def splits_of(tree: Tree) -> list[tuple[int, float]]:
    """Return feature and threshold of each node of a univariate tree in heap order, -1 and 0 where it has no split."""
    splits = []
    for w, b in zip(tree.w, tree.b.tolist(), strict=True):
        f = np.flatnonzero(w)
        splits.append((int(f[0]), -b / float(w[f[0]])) if len(f) else (-1, 0.0))
    return splits


def labels_of(tree: Tree) -> list[int]:
    """Return the label of each node in heap order, of those at the last level too; -1 where it is no leaf."""
    splits, B = np.flatnonzero(tree.w.any(axis=1)).tolist(), len(tree.w)
    found, here = [-1] * (2 * B + 1), [0]
    for t in here:
        if t in splits:
            here += [2 * t + 1, 2 * t + 2]
            continue
        leaf = t
        while leaf < B:
            leaf = 2 * leaf + 2  # samples of a node without a split go right
        found[t] = int(tree.leaf_value[leaf - B])
    return found
