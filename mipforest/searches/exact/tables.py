"""Distinct rows, and the tables, sides and workspaces that the search by covers has of them, by loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.searches.exact.classes import LabelPart, ManyClasses, TwoClasses
from mipforest.searches.exact.covers import Cover, Workspace, fill
from mipforest.searches.exact.domains import OUT, any_split
from mipforest.searches.exact.gathered import GatheredSide, GatheredTables
from mipforest.searches.exact.plain import (
    ABSOLUTE,
    COSTS,
    SQUARED,
    PlainSide,
    PlainTables,
    SizedSide,
    SizedTables,
    losses_of_splits,
    take_all,
)
from mipforest.searches.exact.squared import Part, SquaredTables
from mipforest.searches.exact.walks import (
    CLASSES_AT_A_TIME,
    LANES,
    MAX_CHUNK_WEIGHT,
    MAX_WEIGHT,
    PENALTY,
    TWO_WIDE,
    WIDE_LANES,
)

#: Most bytes of the tables of ranks, and of those that a side gathers; most values of a feature for ranks of 16 bits.
MAX_BYTES, MAX_GATHERED, MAX_SHORT_RANKS = 1_500_000_000, 200_000_000, 65_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows, and what leaves lose.

    Attributes
    ----------
    loss
        ``"classes"`` (weight of all classes but the heaviest), ``"costs"`` (least sum of costs), ``"squared"`` or
        ``"absolute"``.
    rank, order
        (p, n) ranks of the rows among the values of each feature, and rows in the order of each; for the absolute loss
        (p + 1, n), the last by target.
    n_values
        (p,) number of values of each feature.
    value
        (n, 2) class and weight; (n, K) costs of predicting each class; or (n, 3) sums of w, w y and w y^2 of centred
        targets y.
    n_classes
        Number of classes, 0 for numbers.
    target
        (n,) centred targets.
    size
        (n,) number of samples in each row.
    N_min
        Least number of samples in a leaf.
    kind
        Type of weights in vectors; ``None`` for plain loops.
    is_gathered
        Whether the ranks of classes by slot are gathered where they are asked for.
    """

    loss: str
    rank: Int32Array
    order: Int32Array
    n_values: IntArray
    value: FloatArray
    n_classes: int
    target: FloatArray
    size: IntArray
    N_min: int
    kind: np.dtype[Any] | None
    is_gathered: bool = False

    def take(self, chosen: BoolArray) -> Rows:
        """Return some of the rows; ranks stay those of all."""
        number = np.cumsum(chosen) - 1
        order = self.order[chosen[self.order]].reshape(len(self.order), -1)
        return replace(
            self,
            rank=np.ascontiguousarray(self.rank[:, chosen]),
            order=number[order].astype(np.int32),
            value=np.ascontiguousarray(self.value[chosen]),
            target=self.target[chosen],
            size=self.size[chosen],
        )

    @property
    def is_whole(self) -> bool:
        """Whether losses are whole numbers."""
        return self.loss == "classes" and self.kind is not None and self.kind.kind == "i"

    @property
    def sums(self) -> FloatArray:
        """(n, V) what is summed over the rows of a leaf."""
        if self.loss != "classes":
            return self.value
        label = self.value[:, 0].astype(np.int64)
        return np.asarray(self.value[:, 1:] * np.eye(self.n_classes)[label])

    @property
    def costs(self) -> FloatArray:
        """(n, V) the sums of plain loops: of classes, the costs of predicting each."""
        return self.value[:, 1:] - self.sums if self.loss == "classes" else self.value

    def leaf(self) -> float:
        """Return the loss of one leaf with all rows."""
        if self.loss != "absolute":
            return float(self.loss_of(self.sums.sum(axis=0)))
        if not len(self.value):
            return 0.0
        weight, y = self.value[self.order[-1], 0], self.target[self.order[-1]]
        through = weight.cumsum()
        median = y[np.searchsorted(2.0 * through, through[-1])]
        return float((weight * np.abs(y - median)).sum())

    def loss_of(self, sums: FloatArray) -> FloatArray:
        """Return the loss of leaves from their sums; not for the absolute loss."""
        if self.loss == "classes":
            return np.asarray(sums.sum(axis=-1) - sums.max(axis=-1, initial=0))
        if self.loss == "costs":
            return np.asarray(np.maximum(0.0, sums.min(axis=-1)))
        least = 0.5 * float(self.value[:, 0].min(initial=np.inf))
        return np.maximum(0.0, sums[..., 2] - sums[..., 1] ** 2 / np.maximum(sums[..., 0], least))

    def allowed(self) -> IntArray:
        """Return the first and the last threshold (p, 2) of every feature with enough samples on both sides."""
        thresholds = np.column_stack([np.ones_like(self.n_values), self.n_values - 1])
        if self.N_min > 1:
            for f, order in enumerate(self.order[: len(self.rank)]):
                size, rank = self.size[order].cumsum(), self.rank[f, order]
                enough = np.flatnonzero(size >= self.N_min)
                rest = np.flatnonzero(size[-1] - size + self.size[order] >= self.N_min)
                if len(enough):
                    thresholds[f] = rank[enough[0]] + 1, rank[rest[-1]]
                else:
                    thresholds[f] = 1, 0
        return thresholds

    def best_split(self, cost: float, tolerance: float) -> tuple[int, int]:
        """Return feature and threshold of the best split, -1 where one leaf loses no more."""
        best, split = self.leaf() - tolerance, (-1, -1)
        for f, values in enumerate(self.splits(cost)):
            t = int(values.argmin()) if len(values) else -1
            if t >= 0 and values[t] < best:
                best, split = float(values[t]), (f, t + 1)
        return split

    def splits(self, cost: float) -> list[FloatArray]:
        """Return the value of every threshold of each feature, with one leaf on each side; infinite if too small."""
        values, (p, n) = [], self.rank.shape
        if n == 0:
            return [np.full(int(U) - 1, cost) for U in self.n_values]
        lines = np.zeros((0, 0))
        if self.loss == "absolute":
            tables = plain_tables(self)
            lines = np.zeros((p, n))
            losses_of_splits(tables, _plain_side(tables, tables.order.copy()), lines)
        for f in range(p):
            rank, U = self.rank[f], int(self.n_values[f])
            below = np.searchsorted(rank[self.order[f]], np.arange(1, U))
            size = self.size[self.order[f]].cumsum()[below - 1] * (below > 0)
            if self.loss == "absolute":
                loss = lines[f, below - 1]
            else:
                sums = self.sums[self.order[f]].cumsum(axis=0)
                left = sums[below - 1] * (below > 0)[:, None]
                loss = self.loss_of(left) + self.loss_of(sums[-1] - left)
            # Rows that lose nothing may be missing: where any size will do, none is too small.
            small = (np.minimum(size, self.size.sum() - size) < self.N_min) & (self.N_min > 1)
            values.append(np.where(small, np.inf, cost + loss))
        return values


# ---------------------------------------------------------------------- tables


def kind_of(rows: int, weight: FloatArray) -> np.dtype[Any]:
    """Return the type in which vectors hold the weights (rows,) of classes."""
    if not (weight == np.rint(weight)).all() or weight.sum() > MAX_WEIGHT:
        return np.dtype(np.float64)
    steps = -(-rows // LANES[np.dtype(np.int16)])
    # Wherever chunks begin, none is heavier than the heaviest rows together.
    heaviest = np.partition(weight, -steps)[-steps:].sum() if steps else 0.0
    return np.dtype(np.int16 if heaviest <= MAX_CHUNK_WEIGHT else np.int32)


def bytes_of_ranks(rows: int, p: int, n_values: int) -> int:
    """Return the size of the tables of ranks of rows with p features and that many values of a feature at most."""
    return (2 if n_values <= MAX_SHORT_RANKS else 4) * p * p * rows


def tables_of(rows: Rows) -> Any:
    """Return the tables of rows: by vectors or for plain loops, with leaf sizes or without."""
    if rows.kind is None:
        return plain_tables(rows)
    (p, n), U = rows.rank.shape, int(rows.n_values.max())
    lanes, slots = (WIDE_LANES, TWO_WIDE) if rows.loss == "squared" else (LANES[rows.kind],) * 2
    N = max(1, -(-n // slots)) * slots
    short = np.uint16 if U <= MAX_SHORT_RANKS else np.uint32
    ranks = np.zeros((0 if rows.is_gathered else p, p, N), short)
    tables: TwoClasses | ManyClasses | SquaredTables
    if rows.loss == "squared":
        tables = SquaredTables(
            rank=ranks,
            walk=np.zeros((2 * p + 1, N)),
            penalty=np.ones((p, N), np.int16),
            below=np.zeros((p, U + 1, 3)),
            weight_below=np.zeros((p, U + 1), np.int64),
            least=np.array([0.5 * float(rows.value[:, 0].min(initial=np.inf))]),
            **any_split(p),
        )
    else:
        summed = np.float64 if rows.kind.kind == "f" else np.int32
        penalty = np.full((p, N), PENALTY[rows.kind], rows.kind)
        sums = np.zeros((p, U + 1, rows.n_classes), summed), np.zeros((p, U + 1), summed)
        weight = np.zeros((p, N), rows.kind)
        if rows.n_classes == 2:
            tables = TwoClasses(ranks, weight, penalty, *sums, **any_split(p))
        else:
            tables = ManyClasses(
                ranks,
                np.full((p, N), -1, np.int16),
                weight,
                penalty,
                *sums,
                np.array([n]),
                penalty[0, :1].copy(),
                **any_split(p),
            )
    fill(rows.order, rows.rank, rows.value, lanes, tables)
    bounds: Any = tables
    if rows.is_gathered:
        row, i, steps = np.zeros((p, N), np.int32), np.arange(n), N // lanes
        row[:, i % steps * lanes + i // steps] = rows.order
        bounds = GatheredTables(
            tables, row, rows.rank.astype(short), tables.below, tables.weight_below, tables.must
        )
    if rows.N_min == 1:
        return bounds
    return SizedTables(bounds, plain_tables(rows), tables.below, tables.weight_below, tables.must)


def plain_tables(rows: Rows) -> PlainTables:
    """Return the tables for plain loops."""
    (p, n), U, value = rows.rank.shape, int(rows.n_values.max()), rows.costs
    below, weight_below = np.zeros((p, U + 1, value.shape[1])), np.zeros((p, U + 1))
    size_below, place = np.zeros((p, U + 1), np.int64), np.zeros(n, np.int32)
    most = value.max(axis=1) if rows.loss in ("classes", "costs") else np.ones(n)
    for f in range(p):
        at = rows.rank[f] + 1
        np.add.at(below[f], at, value)
        weight_below[f] = np.bincount(at, most, U + 1)
        size_below[f] = np.bincount(at, rows.size, U + 1)
    place[rows.order[-1]] = np.arange(n)
    return PlainTables(
        kind={"classes": COSTS, "costs": COSTS, "squared": SQUARED, "absolute": ABSOLUTE}[rows.loss],
        N_min=rows.N_min,
        rank=rows.rank,
        order=rows.order,
        value=np.ascontiguousarray(value, dtype=np.float64),
        target=rows.target,
        place=place,
        size=rows.size,
        below=below.cumsum(axis=1),
        weight_below=weight_below.cumsum(axis=1),
        size_below=size_below.cumsum(axis=1),
        **any_split(p),
    )


def sides_of(tables: Any) -> tuple[Any, Any]:
    """Return memory for the rows of both sides of a threshold."""
    if isinstance(tables, SizedTables):
        pairs = zip(sides_of(tables.bounds), sides_of(tables.values), strict=True)
        left, right = (SizedSide(*pair) for pair in pairs)
        return left, right
    if isinstance(tables, PlainTables):
        order = np.empty_like(tables.order)
        return _plain_side(tables, order), _plain_side(tables, order)
    if isinstance(tables, GatheredTables):
        walk = tables.classes.walk
        return _gathered(tables, np.empty_like(walk)), _gathered(tables, np.empty_like(walk))
    if isinstance(tables, TwoClasses):
        return np.empty_like(tables.walk), np.empty_like(tables.walk)
    # Both sides are filled up to whole vectors.
    p, N = len(tables.penalty), tables.walk.shape[1] + TWO_WIDE
    if isinstance(tables, ManyClasses):
        N = tables.walk.shape[1] + LANES[tables.weight.dtype]
        both = (
            np.empty((p, p, N), tables.rank.dtype),
            np.empty((p, N), np.int16),
            np.empty((p, N), tables.weight.dtype),
            np.empty((p, N), tables.penalty.dtype),
            np.empty(N, np.int64),
        )
        masks = np.empty_like(tables.walk), np.empty_like(tables.walk)
        one, other = (LabelPart(mask, *both, np.zeros(6, np.int64)) for mask in masks)
        return one, other
    shared = (
        np.empty((p, p, N), tables.rank.dtype),
        np.empty((2 * p + 1, N)),
        np.empty((p, N), np.int16),
        np.empty(N, np.int64),
    )
    return Part(*shared, np.zeros(2, np.int64)), Part(*shared, np.zeros(2, np.int64))


def all_rows(tables: Any) -> Any:
    """Return all rows as those of a side."""
    if isinstance(tables, SizedTables):
        return SizedSide(all_rows(tables.bounds), all_rows(tables.values))
    if isinstance(tables, PlainTables):
        side = _plain_side(tables, tables.order)
        take_all(tables, side)
        return side
    if isinstance(tables, GatheredTables):
        return _gathered(tables, tables.classes.walk)
    if isinstance(tables, TwoClasses):
        return tables.walk
    span = np.array([0, tables.walk.shape[1]], np.int64)
    if isinstance(tables, ManyClasses):
        never = np.full(6, -1, np.int64)
        return LabelPart(tables.walk, tables.rank, tables.walk, tables.weight, tables.penalty, never, never)
    return Part(tables.rank, tables.walk, tables.penalty, np.zeros(0, np.int64), span)


def _gathered(tables: GatheredTables, walk: NDArray[Any]) -> GatheredSide:
    """Return a side with memory for the ranks in some features."""
    p, N = tables.row.shape
    C = min(p, max(2, MAX_GATHERED // (tables.rank.itemsize * p * N)))
    ranks = np.empty((C, p, N), tables.rank.dtype)
    return GatheredSide(walk, ranks, np.full(C, -1), np.zeros(C, np.int64), np.zeros(1, np.int64))


def _plain_side(tables: PlainTables, order: Int32Array) -> PlainSide:
    """Return a side of plain tables in some memory for its orders."""
    (p, n), V = tables.rank.shape, tables.value.shape[1]
    listed = n if tables.kind == ABSOLUTE else 0
    return PlainSide(
        order,
        np.zeros(2, np.int64),
        np.zeros((p, 2), np.int64),
        np.zeros((2, V)),
        np.zeros((2, V)),
        np.zeros(listed, np.int32),
        np.zeros(listed, np.int32),
        np.zeros(2, np.int64),
        np.zeros((4, 2)),
        np.zeros((4, listed)),
    )


def first_cover(rows: Rows, allowed: BoolArray | None = None) -> Cover:
    """Return the cover of all thresholds, or of those of allowed features (p,), that says nothing."""
    has_any = rows.n_values > 1
    features = np.flatnonzero(has_any if allowed is None else has_any & allowed)
    at = np.zeros((len(features), 4), np.int32)
    at[:, 0], at[:, 1], at[:, 2] = features, 1, rows.n_values[features] - 1
    return Cover(at, np.zeros((len(features), 3)))


def roomy(cover: Cover, room: int) -> Cover:
    """Return a cover with room for more intervals."""
    at, key = np.zeros((len(cover.at) + room, 4), np.int32), np.zeros((len(cover.at) + room, 3))
    at[: len(cover.at)], key[: len(cover.at)] = cover.at, cover.key
    return Cover(at, key)


def workspace(tables: Any, sides: Any, room: int) -> Workspace:
    """Return a workspace with room for covers of some intervals."""
    kind = np.float64 if tables.below.dtype.kind == "f" else np.int64
    return Workspace(
        left=Cover(np.zeros((room, 4), np.int32), np.zeros((room, 3))),
        right=Cover(np.zeros((room, 4), np.int32), np.zeros((room, 3))),
        size=np.zeros(2, np.int64),
        side=sides,
        found=np.full(10, np.inf),
        split=np.full((2, 2), -1, np.int64),
        best=np.full(6, -1, np.int64),
        totals=np.zeros(-(-tables.below.shape[2] // CLASSES_AT_A_TIME) * CLASSES_AT_A_TIME, kind),
        out=np.zeros(OUT, kind),
        counts=np.zeros(2, np.int64),
    )


def larger(work: Workspace) -> Workspace:
    """Return a workspace with twice the room for covers."""
    return work._replace(
        left=roomy(work.left, len(work.left.at)), right=roomy(work.right, len(work.right.at))
    )
