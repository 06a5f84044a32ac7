"""Distinct rows, and the tables, sides and workspaces that the search by covers has of them, by loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.objectives.leaf_losses import LabelLoss, LeafLoss
from mipforest.searches.addresses import words_of
from mipforest.searches.exact.binned import BinnedSide, BinnedTables, note_all_bins
from mipforest.searches.exact.cells import CellTables
from mipforest.searches.exact.classes import LabelPart, ManyClasses, TwoClasses
from mipforest.searches.exact.counted import (
    BITS,
    COARSE,
    INTERVALS,
    CountedSide,
    CountedTables,
    take_every,
    write_bits,
)
from mipforest.searches.exact.covers import INTERVAL, NO_LIMIT, OF_SIDE, Cover, CoverWorkspace
from mipforest.searches.exact.domains import OUT, any_split, no_leaves
from mipforest.searches.exact.gathered import GatheredSide, GatheredTables
from mipforest.searches.exact.operations import RowsAtWork, Side, Tables, address_for, side_of
from mipforest.searches.exact.plain import (
    PlainSide,
    PlainTables,
    losses_of_splits,
    take_all,
)
from mipforest.searches.exact.squared import SquaredSide, SquaredTables
from mipforest.searches.exact.walks import (
    BYTES_OF_VECTORS,
    CLASSES_AT_A_TIME,
    LANES,
    MAX_CHUNK_WEIGHT,
    MAX_WEIGHT,
    PENALTY,
    TWO_WIDE,
    WIDE_LANES,
)
from mipforest.searches.leaf_sums import ABSOLUTE, kind_of_loss

#: Most bytes of the tables of ranks, and of those that a side gathers; most values of a feature for ranks of 16 bits.
MAX_BYTES, MAX_GATHERED, MAX_SHORT_RANKS = 1_500_000_000, 200_000_000, 65_000


#: Bits of a table, in those of its rows, up to which whole weights are written as so many equal rows.
MOST_BITS = 4.0


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows, and what leaves lose.

    Attributes
    ----------
    loss
        What leaves lose.
    rank, order
        (p, n) ranks of the rows among the values of each feature, and rows in the order of each; for the absolute loss
        (p + 1, n), the last by target.
    n_values
        (p,) number of values of each feature.
    value
        (n, 2) class and weight, where rows are of classes; else (n, V) sums of the statistics of the loss.
    n_classes
        Number of classes, of all labels, 0 for numbers.
    target
        (n,) targets of the absolute loss, centred.
    size
        (n,) number of samples in each row.
    N_min
        Least number of samples in a leaf.
    kind
        Type of weights in vectors; ``None`` for plain loops.
    of_classes
        Whether a row has a class, and every wrong prediction for it costs its weight.
    is_gathered, is_counted
        Whether the ranks of classes by slot are gathered where they are asked for, and whether classes are counted by
        bits.
    n_bins
        Number of bins of a feature, of losses that vector walks do not take, and of many classes; 0 for none.
    unit
        (K,) weight of a sample of each class, where all of a class have the same; ``None`` where they differ, or are 1.
    """

    loss: LeafLoss
    rank: Int32Array
    order: Int32Array
    n_values: IntArray
    value: FloatArray
    n_classes: int
    target: FloatArray
    size: IntArray
    N_min: int
    kind: np.dtype[Any] | None
    of_classes: bool = False
    is_gathered: bool = False
    n_bins: int = 0
    is_counted: bool = False
    unit: FloatArray | None = None

    def subset(self, chosen: BoolArray, *, ordered: bool = True) -> DistinctRows:
        """Return some of the rows; ranks stay those of all. Without ``ordered`` they are in no order (p, 0)."""
        order = np.empty((len(self.order), 0), np.int32)
        if ordered:
            number = (np.cumsum(chosen) - 1).astype(np.int32)
            own = np.take(
                self.order, np.flatnonzero(np.take(chosen, self.order))
            )  # faster than by conditions
            order = np.take(number, own).reshape(len(self.order), -1)
        return replace(
            self,
            rank=np.compress(chosen, self.rank, axis=1),
            order=order,
            value=np.ascontiguousarray(self.value[chosen]),
            target=self.target[chosen],
            size=self.size[chosen],
            n_bins=min(self.n_bins, bins_of(self, int(chosen.sum()))),
        )

    @property
    def is_whole(self) -> bool:
        """Whether losses are whole numbers."""
        return self.of_classes and self.kind is not None and self.kind.kind == "i"

    @property
    def is_of_two(self) -> bool:
        """Whether tables of these rows are those of two classes, whose walks take labels of leaves."""
        other = self.is_gathered or self.is_counted or self.n_bins > 0
        return self.of_classes and self.n_classes == 2 and self.kind is not None and not other

    @property
    def multiplicity(self) -> FloatArray:
        """(n,) weights of classes in units: whole numbers, where these are, or there are units."""
        weight = self.value[:, 1]
        if self.unit is None:
            return weight
        return np.asarray(np.rint(weight / self.unit[self.value[:, 0].astype(np.int64)]))

    @property
    def statistics(self) -> FloatArray:
        """(n, V) what is summed over the rows of a leaf: of classes, the costs of predicting each."""
        if not self.of_classes:
            return self.value
        label = self.value[:, 0].astype(np.int64)
        return np.asarray(self.value[:, 1:] * (1.0 - np.eye(self.n_classes)[label]))

    @property
    def predicts_labels(self) -> bool:
        """Whether leaves predict labels, so that a row changes a loss by no more than :attr:`moved`."""
        return isinstance(self.loss, LabelLoss)

    def leaf(self) -> float:
        """Return the loss of one leaf with all rows."""
        if self.loss.has_sums:
            return float(self.loss_of(self.statistics.sum(axis=0)))
        if not len(self.value):
            return 0.0
        weight, y = self.value[self.order[-1], 0], self.target[self.order[-1]]
        return self.loss.baseline(y, weight)

    def leaf_of(self, label: int) -> float:
        """Return the loss of one leaf with all rows that predicts a label, of classes; infinite if it is too small."""
        is_small = self.N_min > 1 and self.size.sum() < self.N_min
        return np.inf if is_small else float(self.statistics[:, label].sum())

    @property
    def moved(self) -> FloatArray:
        """(n,) most that moving each row changes a number of errors, or costs, by; 1 where leaves predict numbers."""
        return self.loss.moved(self.statistics) if self.predicts_labels else np.ones(len(self.value))

    def loss_of(self, sums: FloatArray) -> FloatArray:
        """Return the loss of leaves from their sums, where it is a function of these."""
        return self.loss.of_sums(sums, self.least)

    @cached_property
    def least(self) -> float:
        """Half of the least weight of a row that predicts numbers: sums of less weight are rounding errors."""
        return 0.5 * float(self.value[:, 0].min(initial=np.inf))

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

    def best_split(self, cost: float, tolerance: float, members: BoolArray) -> tuple[int, int]:
        """Return feature and threshold of the best split of some rows (n,), -1 where one leaf loses no more."""
        split = (-1, -1)
        if not self.loss.has_sums:
            part = self.subset(members)
            best = part.leaf() - tolerance
            for f, values in enumerate(part.splits(cost)):
                t = int(values.argmin()) if len(values) else -1
                if t >= 0 and values[t] < best:
                    best, split = float(values[t]), (f, t + 1)
            return split
        # Of thresholds that part the rows alike the first one stands for all: there are far fewer where rows are few.
        of_each, whole = np.ascontiguousarray(self.statistics.T), self.size[members].sum()
        best = float(self.loss_of(of_each[:, members].sum(axis=1))) - tolerance
        for f, every in enumerate(self.order[: len(self.rank)]):
            order = every[members[every]]
            rank = self.rank[f, order]
            last = np.flatnonzero(rank[1:] != rank[:-1])
            if self.N_min > 1:
                size = self.size[order].cumsum()[last]
                last = last[(size >= self.N_min) & (whole - size >= self.N_min)]
            if not len(last):
                continue
            sums = of_each[:, order].cumsum(axis=1)  # sums over a few long lines are fast
            left = sums[:, last]
            values = cost + (self.loss_of(left.T) + self.loss_of((sums[:, -1:] - left).T))
            i = int(values.argmin())
            if values[i] < best:
                best, split = float(values[i]), (f, int(rank[last[i]]) + 1)
        return split

    def splits(
        self, cost: float, *, parts_none: bool = False, labels: Sequence[tuple[int, int] | None] | None = None
    ) -> list[FloatArray]:
        """Return the value of every threshold of each feature, with one leaf on each side; infinite if too small.

        A leaf without samples is too small as well, unless splits may part none. ``labels`` (p,), of classes, are those
        of the leaves left and right of each feature's splits, where they are given.
        """
        values, (p, n) = [], self.rank.shape
        if n == 0:
            return [np.full(int(U) - 1, cost) for U in self.n_values]
        lines, of_each = np.zeros((0, 0)), np.zeros((0, 0))
        if not self.loss.has_sums:
            tables = plain_tables(self)
            lines = np.zeros((p, n))
            losses_of_splits(tables, _plain_side(tables, tables.order.copy()), lines)
        else:
            of_each = np.ascontiguousarray(self.statistics.T)  # sums over a few long lines are fast
        for f in range(p):
            rank, U = self.rank[f], int(self.n_values[f])
            below = np.searchsorted(rank[self.order[f]], np.arange(1, U))
            size = self.size[self.order[f]].cumsum()[below - 1] * (below > 0)
            if not self.loss.has_sums:
                loss = lines[f, below - 1]
            else:
                sums = of_each[:, self.order[f]].cumsum(axis=1)
                left = sums[:, below - 1] * (below > 0)
                right, given = sums[:, -1:] - left, None if labels is None else labels[f]
                if given is None:
                    loss = self.loss_of(left.T) + self.loss_of(right.T)
                else:
                    loss = left[given[0]] + right[given[1]]
            # Rows that lose nothing may be missing: where any size will do, none is too small.
            fewer = np.minimum(size, self.size.sum() - size)
            small = (fewer < self.N_min) & (self.N_min > 1) & ((fewer > 0) | (not parts_none))
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


def bins_of(rows: DistinctRows, n: int) -> int:
    """Return the number of bins of each feature for n of some rows; 0 where bins do not pay."""
    V = rows.n_classes if rows.of_classes else rows.value.shape[1] if rows.loss.has_sums else 2 * CELLS
    fit = int(np.sqrt(MAX_SUMS / (8 * (V + 1)))) // max(1, len(rows.rank))
    if rows.kind is not None:
        # The more classes there are, the more pairs of them vector walks take.
        are_many = rows.of_classes and V > 2 and n * V >= MANY_COUNTS
        return min(MAX_BINS, n // ROWS_OF_BIN) if are_many and fit >= MAX_BINS else 0
    B = min(MAX_BINS, fit, n // ROWS_OF_BIN)
    return B if B >= LEAST_BINS else 0


def fit_bits(times: FloatArray) -> bool:
    """Return whether whole numbers (rows,) are so small that bits count them."""
    return bool(times.sum() <= MOST_BITS * len(times))


def bytes_of_ranks(rows: int, p: int, n_values: int) -> int:
    """Return the size of the tables of ranks of rows with p features and that many values of a feature at most."""
    return (2 if n_values <= MAX_SHORT_RANKS else 4) * p * p * rows


@dataclass(frozen=True, eq=False)
class LossTables:
    """Tables of rows, and how loops over covers reach them.

    Attributes
    ----------
    own
        Tables of the loss, by vectors or for plain loops.
    sized
        Where leaves have a least number of samples, tables that know their sizes: the same, or those for plain loops.
    loops
        What loops have of both.
    """

    own: Any
    sized: Any
    loops: Tables

    def sides(self) -> tuple[Side, Side]:
        """Return memory for the rows of both sides of a threshold."""
        one, other = _sides_of(self.own)
        if self.sized is None or self.sized is self.own:
            return self._side(one), self._side(other)
        of_sized = _sides_of(self.sized)
        return self._side(one, of_sized[0]), self._side(other, of_sized[1])

    def all_rows(self) -> Side:
        """Return all rows as those of a side."""
        every = _all_rows(self.own)
        if self.sized is None or self.sized is self.own:
            return self._side(every)
        return self._side(every, _all_rows(self.sized))

    def _side(self, rows: Any, sized: Any = None) -> Side:
        side = side_of(_at_work(self.own, rows))
        return side if sized is None else side._replace(sized=words_of(_at_work(self.sized, sized)))

    def masked(
        self,
        use: NDArray[np.uint8],
        group: IntArray,
        must: NDArray[np.uint8],
        *,
        parts_none: bool,
        leaf: IntArray | None = None,
    ) -> LossTables:
        """Return the same tables with masks; see :mod:`mipforest.searches.exact.domains`.

        ``parts_none`` tells whether a split that parts none of the samples of an upper node counts, too. ``leaf`` (p,),
        of two classes, tells which sides are leaves.
        """
        assert leaf is None or isinstance(self.own, TwoClasses)

        def with_masks(tables: Any) -> Any:
            if isinstance(tables, GatheredTables):
                return tables._replace(classes=with_masks(tables.classes))
            if isinstance(tables, BinnedTables):
                return tables._replace(plain=with_masks(tables.plain))
            if isinstance(tables, CellTables):
                return CellTables(with_masks(tables.binned))
            if isinstance(tables, PlainTables | TwoClasses | ManyClasses):
                tables = tables._replace(parts_none=int(parts_none))
            if leaf is not None:
                tables = tables._replace(leaf=leaf)
            return tables._replace(use=use, group=group)

        own, sized = with_masks(self.own), self.sized
        words = of_sized = words_of(own)
        if sized is self.own:
            sized = own
        elif sized is not None:
            sized = with_masks(sized)
            of_sized = words_of(sized)
        relaxes = 0 if parts_none else self.loops.relaxes
        loops = self.loops._replace(words=words, sized=of_sized, relaxes=relaxes, must=must)
        return LossTables(own, sized, loops)


#: Most bins of a feature, and fewest; rows of a bin at least; and most bytes of the sums by bins of a side.
MAX_BINS, LEAST_BINS, ROWS_OF_BIN, MAX_SUMS = 64, 8, 32, 100_000_000

#: Rows times classes from which on bins are faster than vector walks.
MANY_COUNTS = 100_000

#: Cells of targets of pinball losses.
CELLS = 16

#: Numbers of rows, features times rows, up to which tables are kept.
MAX_KEPT = 1_000_000

#: Tables by their rows.
_TABLES: WeakKeyDictionary[DistinctRows, LossTables] = WeakKeyDictionary()

#: In the place of sides that others work with.
NO_SIDES = (Side(np.zeros(0, np.int64), np.zeros(0, np.int64)),) * 2


def bound_to_loops(
    own: Any,
    at_work: RowsAtWork,
    *,
    sized: Any = None,
    N_min: int = 0,
    moves: bool,
    weight_below: FloatArray,
    size_below: IntArray | None = None,
    has_leaves: bool = True,
) -> Tables:
    """Return tables as loops over covers have them; ``at_work`` are rows of theirs, of the type of all."""
    words = words_of(own)
    of_sized, restrict_sized, sized_pair = words, 0, 0
    if sized is not None:
        some = at_work
        if sized is not own:
            some, of_sized = _at_work(sized, _plain_side(sized, sized.order)), words_of(sized)
        if not (sized is own and isinstance(own, PlainTables)):
            restrict_sized = address_for("restrict_sized", sized, some)
        sized_pair = address_for("sized_pair", sized, some)
    return Tables(
        words=words,
        restrict=address_for("restrict", own, at_work),
        leaf=address_for("leaf_below", own, at_work) if has_leaves else 0,
        pair=address_for("pair", own, at_work),
        sized=of_sized,
        restrict_sized=restrict_sized,
        sized_pair=sized_pair,
        relaxes=int(sized is not None and not isinstance(sized, PlainTables)),
        N_min=N_min,
        moves=int(moves),
        weight_below=weight_below,
        size_below=np.zeros((0, 0), np.int64) if size_below is None else size_below,
        must=np.zeros(2, np.uint8),
    )


def _at_work(tables: Any, rows: Any) -> RowsAtWork:
    """Return rows with memory for what walks over them write."""
    if isinstance(tables, GatheredTables):
        return _at_work(tables.classes, rows)
    if isinstance(tables, BinnedTables):
        return _at_work(tables.plain, rows)
    if isinstance(tables, CellTables):
        return _at_work(tables.binned, rows)
    kind = np.float64 if tables.below.dtype.kind == "f" else np.int64
    K = -(-tables.below.shape[2] // CLASSES_AT_A_TIME) * CLASSES_AT_A_TIME
    return RowsAtWork(rows, np.zeros(K, kind), np.zeros(OUT, kind))


def tables_of(rows: DistinctRows) -> LossTables:
    """Return the tables of rows: by vectors or for plain loops, with leaf sizes or without.

    Those of moderate size are kept as long as the rows are: no search writes into them.
    """
    if (kept := _TABLES.get(rows)) is not None:
        return kept
    tables = _tables_of(rows)
    if rows.rank.size <= MAX_KEPT:
        _TABLES[rows] = tables
    return tables


def _tables_of(rows: DistinctRows) -> LossTables:
    own = _scanned_tables(rows) if rows.kind is None or rows.n_bins else _walked_tables(rows)
    sized, size_below = None, None
    if rows.N_min > 1:
        sized = own if isinstance(own, PlainTables | TwoClasses | ManyClasses) else plain_tables(rows)
        size_below = _below(rows, rows.size[:, None])[:, :, 0].astype(np.int64)
    some = _plain_side(own, own.order) if isinstance(own, PlainTables) else _all_rows(own)
    loops = bound_to_loops(
        own,
        _at_work(own, some),
        sized=sized,
        N_min=rows.N_min if rows.N_min > 1 else 0,
        moves=rows.predicts_labels,
        weight_below=_below(rows, rows.moved[:, None])[:, :, 0],
        size_below=size_below,
    )
    return LossTables(own, sized, loops)


def _below(rows: DistinctRows, value: NDArray[Any]) -> FloatArray:
    """Return (p, U + 1, V) sums of values (n, V) over the rows below each rank of every feature."""
    (p, _), U, V = rows.rank.shape, int(rows.n_values.max()), value.shape[1]
    below = np.zeros((p, U + 1, V))
    for f in range(p):
        for v in range(V):
            below[f, :, v] = np.bincount(rows.rank[f] + 1, value[:, v], U + 1)
    return below.cumsum(axis=1, out=below)


def _walked_tables(rows: DistinctRows) -> Any:
    """Return the tables for vector walks."""
    assert rows.kind is not None
    if rows.is_counted:
        return _counted_tables(rows)
    (p, n), U = rows.rank.shape, int(rows.n_values.max())
    lanes, slots = (LANES[rows.kind],) * 2 if rows.of_classes else (WIDE_LANES, TWO_WIDE)
    N = max(1, -(-n // slots)) * slots
    short = np.uint16 if U <= MAX_SHORT_RANKS else np.uint32

    def by_slot(values: NDArray[Any], empty: float, kind: Any) -> NDArray[Any]:
        """Return values (..., n) in the order of a feature by slot; see :mod:`mipforest.searches.exact.walks`."""
        padded = np.full((*values.shape[:-1], N), empty, kind)
        padded[..., :n] = values
        chunks = padded.reshape(*values.shape[:-1], lanes, N // lanes)
        return np.ascontiguousarray(chunks.swapaxes(-1, -2)).reshape(padded.shape)

    order = rows.order[:p]
    own_ranks = np.take_along_axis(rows.rank, order, axis=1)
    is_last = np.diff(own_ranks, axis=1, append=np.int32(U)) > 0
    most = PENALTY[rows.kind] if rows.of_classes else 1
    penalty_kind = rows.kind if rows.of_classes else np.int16
    penalty = by_slot(np.where(is_last, 0, most), most, penalty_kind)
    ranks = np.zeros((0 if rows.is_gathered else p, p, N), short)
    for g in range(p if len(ranks) else 0):
        ranks[:, g] = by_slot(rows.rank[:, order[g]], 0, short)
    if not rows.of_classes:
        w, s, q = rows.value.T
        walk = np.zeros((2 * p + 1, N))
        walk[:p], walk[p : 2 * p] = by_slot(w[order], 0.0, float), by_slot(s[order], 0.0, float)
        if p:
            walk[2 * p] = by_slot(q[order[0]], 0.0, float)
        return SquaredTables(
            rank=ranks,
            walk=walk,
            penalty=penalty,
            below=_below(rows, rows.value),
            weight_below=_below(rows, np.ones((n, 1)))[:, :, 0].astype(np.int64),
            least=np.array([rows.least]),
            **any_split(p),
        )
    summed = np.float64 if rows.kind.kind == "f" else np.int32
    label, weight = rows.value[:, 0].astype(np.int64), rows.value[:, 1]
    below = _below(rows, weight[:, None] * np.eye(rows.n_classes)[label]).astype(summed)
    tables: Any
    # Beside gathered ranks, plain loops count samples.
    is_sized = rows.N_min > 1 and not rows.is_gathered
    if rows.n_classes == 2:
        signed = np.where(label == 0, weight, -weight)
        walk = by_slot(signed[order], 0, rows.kind)
        if is_sized:
            walk = np.concatenate([walk, by_slot(rows.size[order], 0, rows.kind)])
        tables = TwoClasses(
            ranks, walk, penalty, below, rows.n_values - 1, rows.N_min, 0, no_leaves(p), **any_split(p)
        )
    else:
        weights = by_slot(weight[order], 0, rows.kind)
        tables = ManyClasses(
            ranks,
            by_slot(label[order], -1, np.int16),
            weights,
            by_slot(rows.size[order], 0, rows.kind) if is_sized else weights,
            penalty,
            below,
            rows.n_values - 1,
            rows.N_min,
            0,
            np.array([n]),
            np.full(1, most, rows.kind),
            **any_split(p),
        )
    if not rows.is_gathered:
        return tables
    row = by_slot(order, 0, np.int32)
    return GatheredTables(tables, row, rows.rank.astype(short))


def _scanned_tables(rows: DistinctRows) -> Any:
    """Return the tables of a loss that vector walks do not take: with bins where these pay, or plain ones."""
    plain = plain_tables(rows)
    if not rows.n_bins:
        return plain
    (p, n), B, U = rows.rank.shape, rows.n_bins, int(rows.n_values.max())
    statistics, loss = rows.statistics, rows.loss
    kind: np.dtype[Any] = np.dtype(np.float64)
    if isinstance(loss, LabelLoss):
        # What is saved by each label against the costliest one of its target.
        blocks = statistics.reshape(n, loss.n_labels, -1)
        most = blocks.max(axis=2, keepdims=True)
        entries = np.column_stack([most.sum(axis=(1, 2)), (most - blocks).reshape(n, -1)])
        if (entries == np.rint(entries)).all() and np.abs(entries).sum() < MAX_WEIGHT:
            kind = np.dtype(np.int32)
    elif not loss.has_sums:
        in_cell = np.eye(CELLS)[_cells(rows)]
        entries = np.column_stack([np.zeros(n), *(x[:, None] * in_cell for x in statistics.T[:2])])
    else:
        entries = np.column_stack([statistics[:, -1], statistics[:, :-1]])
    bin_of = np.zeros((p, U), np.uint8)
    for f in range(p):
        # As many rows in each; a value is in one bin, and in the last one where no row has more.
        count = np.bincount(rows.rank[f], minlength=U)
        before = np.minimum(count.cumsum() - count, n - 1)
        own = np.unique(before * B // n, return_inverse=True)[1] if rows.n_values[f] > B else np.arange(U)
        bin_of[f, : rows.n_values[f]] = own[: rows.n_values[f]]
        bin_of[f, rows.n_values[f] :] = B - 1
    ranks = np.zeros((p, B), np.int64)
    for f in range(p):
        ranks[f] = np.bincount(bin_of[f, : rows.n_values[f]], minlength=B)
    adds_up = isinstance(loss, LabelLoss) and bool((entries[:, 0] == entries[:, 1:].sum(axis=1)).all())
    if adds_up:
        entries[:, 0] = 0.0
    row, column = np.nonzero(entries)
    tables = BinnedTables(
        plain=plain,
        bin=bin_of,
        bin_of_row=np.ascontiguousarray(np.take_along_axis(bin_of, rows.rank.astype(np.int64), axis=1).T),
        is_wide=(ranks > 1).astype(np.uint8),
        first=np.searchsorted(row, np.arange(n + 1)),
        column=column.astype(np.int32),
        amount=entries[row, column].astype(kind),
        columns=np.array([adds_up] + [False] * (entries.shape[1] - 1), np.uint8),
        least=np.array([rows.least]),
    )
    return tables if loss.has_sums else CellTables(tables)


def _cells(rows: DistinctRows) -> IntArray:
    """Return the cell of the target of each row (n,): as many rows in each, or a value in each where these are few."""
    values, of = np.unique(rows.target, return_inverse=True)
    if len(values) <= CELLS:
        return of
    edges = np.quantile(rows.target, np.arange(1, CELLS) / CELLS)
    return np.searchsorted(edges, rows.target, side="right")


def bits_of_classes(rows: DistinctRows, times: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows of classes by bits, each by so many as it counts times (n,), and where words of a class begin.

    Returns
    -------
    row
        (64 W,) row of each bit, -1 for none: bits of a class are together, and those of a row.
    start
        (K + 1,) first word of each class.
    """
    label, repeats = rows.value[:, 0].astype(np.int64), times.astype(np.int64)
    parts, start = [], [0]
    for c in range(rows.n_classes):
        own = np.flatnonzero(label == c)
        own = np.repeat(own, repeats[own])
        parts.append(np.concatenate([own, np.full(-len(own) % BITS, -1)]))
        start.append(start[-1] + len(parts[-1]) // 64)
    return np.concatenate(parts), np.array(start)


def _counted_tables(rows: DistinctRows) -> CountedTables:
    """Return the tables for counts of classes by bits."""
    row, start = bits_of_classes(rows, rows.value[:, 1])
    (p, n), W, B = rows.rank.shape, int(start[-1]), INTERVALS
    used = np.flatnonzero(row >= 0)
    first = np.zeros(n, np.int64)
    first[row[used[::-1]]] = used[::-1]
    weight = rows.value[:, 1].astype(np.int64)
    order, rank = (np.empty((p, len(used)), np.int32) for _ in range(2))
    for f, own in enumerate(rows.order[:p]):
        rank[f] = np.repeat(rows.rank[f, own], weight[own])
        before = weight[own].cumsum() - weight[own]
        order[f] = np.repeat(first[own] - before, weight[own]) + np.arange(len(used))
    # Edges by how coarse they are.
    step, plane, listed = B // COARSE, np.zeros(B + 1, np.int64), list[int]()
    while step:
        listed += [e for e in range(step, B, step) if e not in listed]
        step //= 2
    plane[listed] = np.arange(B - 1)
    label = np.repeat(np.arange(rows.n_classes, dtype=np.int16), 64 * np.diff(start))
    below = _below(rows, rows.value[:, 1:] * np.eye(rows.n_classes)[rows.value[:, 0].astype(np.int64)])
    tables = CountedTables(
        bits=np.zeros((B - 1, p, W), np.uint64),
        plane=plane,
        edge=np.zeros((p, B + 1), np.int32),
        place=np.zeros((p, B + 1), np.int32),
        order=order,
        rank=rank,
        label=label,
        every=np.packbits(row >= 0, bitorder="little").view(np.uint64),
        start=start,
        below=below.astype(np.int32),
        **any_split(p),
    )
    write_bits(tables, rows.n_values)
    return tables


def plain_tables(rows: DistinctRows) -> PlainTables:
    """Return the tables for plain loops."""
    (p, n), statistics = rows.rank.shape, rows.statistics
    place = np.zeros(n, np.int32)
    place[rows.order[-1]] = np.arange(n)
    return PlainTables(
        kind=kind_of_loss(rows.loss),
        N_min=rows.N_min,
        parts_none=0,
        rank=rows.rank,
        order=rows.order,
        value=np.ascontiguousarray(statistics, dtype=np.float64),
        wide=_wide(statistics, rows.size),
        target=rows.target,
        place=place,
        size=rows.size,
        last=rows.n_values - 1,
        below=_below(rows, statistics),
        level=rows.loss.level,
        moved=float(rows.moved.max(initial=0.0)) or 1.0,
        **any_split(p),
    )


def _wide(statistics: FloatArray, size: IntArray) -> NDArray[Any]:
    """Return :attr:`PlainTables.wide`."""
    V = statistics.shape[1]
    is_whole = (statistics == np.rint(statistics)).all() and np.abs(statistics).sum() < MAX_WEIGHT
    kind = np.dtype(np.int32 if V > 3 and is_whole else np.float64)
    empty = 0 if V <= 3 else -(V + 1) % (BYTES_OF_VECTORS // kind.itemsize)
    return np.column_stack([statistics, np.zeros((len(size), empty)), size]).astype(kind)


def _sides_of(tables: Any) -> tuple[Any, Any]:
    """Return memory for the rows of both sides of a threshold."""
    if isinstance(tables, PlainTables):
        order = np.empty_like(tables.order)
        return _plain_side(tables, order), _plain_side(tables, order)
    if isinstance(tables, CellTables):
        return _sides_of(tables.binned)
    if isinstance(tables, BinnedTables):
        one, other = _sides_of(tables.plain)
        return _binned_side(tables, one), _binned_side(tables, other)
    if isinstance(tables, GatheredTables):
        walk = tables.classes.walk
        return _gathered(tables, np.empty_like(walk)), _gathered(tables, np.empty_like(walk))
    if isinstance(tables, CountedTables):
        return _counted_side(tables), _counted_side(tables)
    if isinstance(tables, TwoClasses):
        return np.empty_like(tables.walk), np.empty_like(tables.walk)
    # Both sides are filled up to whole vectors.
    p, N = len(tables.penalty), tables.walk.shape[1] + TWO_WIDE
    if isinstance(tables, ManyClasses):
        # The sizes of some rows count on both sides.
        N = tables.walk.shape[1] * (2 if tables.N_min > 1 else 1) + LANES[tables.weight.dtype]
        both = (
            np.empty((p, p, N), tables.rank.dtype),
            np.empty((p, N), np.int16),
            np.empty((p, N), tables.weight.dtype),
            np.empty((p, N), tables.size.dtype),
            np.empty((p, N), tables.penalty.dtype),
            np.empty(N, np.int64),
        )
        sizes = tables.size.shape if tables.N_min > 1 else (p, 0)
        one, other = (
            LabelPart(
                np.empty_like(tables.walk), np.zeros(sizes, tables.size.dtype), *both, np.zeros(6, np.int64)
            )
            for _ in range(2)
        )
        return one, other
    shared = (
        np.empty((p, p, N), tables.rank.dtype),
        np.empty((2 * p + 1, N)),
        np.empty((p, N), np.int16),
        np.empty(N, np.int64),
    )
    return SquaredSide(*shared, np.zeros(2, np.int64)), SquaredSide(*shared, np.zeros(2, np.int64))


def _all_rows(tables: Any) -> Any:
    """Return all rows as those of a side."""
    if isinstance(tables, PlainTables):
        side = _plain_side(tables, tables.order)
        take_all(tables, side)
        return side
    if isinstance(tables, CellTables):
        return _all_rows(tables.binned)
    if isinstance(tables, BinnedTables):
        every = _binned_side(tables, _all_rows(tables.plain))
        note_all_bins(tables, every)
        return every
    if isinstance(tables, GatheredTables):
        return _gathered(tables, tables.classes.walk)
    if isinstance(tables, CountedTables):
        whole = _counted_side(tables)
        take_every(tables, whole)
        return whole
    if isinstance(tables, TwoClasses):
        return tables.walk
    span = np.array([0, tables.walk.shape[1]], np.int64)
    if isinstance(tables, ManyClasses):
        never = np.full(6, -1, np.int64)
        return LabelPart(
            tables.walk, tables.size, tables.rank, tables.walk, tables.weight, tables.size, tables.penalty, never, never
        )  # fmt: skip
    return SquaredSide(tables.rank, tables.walk, tables.penalty, np.zeros(0, np.int64), span)


def _counted_side(tables: CountedTables) -> CountedSide:
    """Return memory for the rows of a side."""
    (p, B), W, K = (len(tables.edge), len(tables.plane) - 1), len(tables.every), len(tables.start) - 1
    return CountedSide(
        mask=np.zeros(W, np.uint64),
        coarse=np.zeros((COARSE - 1, p, K), np.int32),
        parts=np.zeros((2, W), np.uint64),
        whole=np.zeros((2, K), np.int32),
        low=np.zeros((2, p), np.int32),
        ends=np.zeros((B + 1, K), np.int32),
        is_open=np.zeros(B, np.uint8),
    )


def _gathered(tables: GatheredTables, walk: NDArray[Any]) -> GatheredSide:
    """Return a side with memory for the ranks in some features."""
    p, N = tables.row.shape
    C = min(p, max(2, MAX_GATHERED // (tables.rank.itemsize * p * N)))
    ranks = np.empty((C, p, N), tables.rank.dtype)
    return GatheredSide(walk, ranks, np.full(C, -1), np.zeros(C, np.int64), np.zeros(1, np.int64))


def _binned_side(tables: BinnedTables, plain: PlainSide) -> BinnedSide:
    """Return a side of tables with bins, whose rows are in the orders of a plain one."""
    (p, B), V, kind = tables.is_wide.shape, len(tables.columns), tables.amount.dtype
    return BinnedSide(
        plain,
        np.zeros((p, B + 1), np.int64),
        np.empty((p, B + 1, p, V, B), kind),
        np.zeros(p + 1, np.int64),
        np.zeros((p, V, B), kind),
        np.zeros((2, p, V, B), kind),
        np.zeros((6, B), kind),
        np.zeros((2, p, B)),
        np.zeros((2, V), kind),
    )


def _plain_side(tables: PlainTables, order: Int32Array) -> PlainSide:
    """Return a side of plain tables in some memory for its orders."""
    n, V = tables.rank.shape[1], tables.value.shape[1]
    listed = n if tables.kind == ABSOLUTE else 0
    return PlainSide(
        order,
        np.zeros(2, np.int64),
        np.zeros((2, V)),
        np.zeros((3, tables.wide.shape[1]), tables.wide.dtype),
        np.zeros(listed, np.int32),
        np.zeros(listed, np.int32),
        np.zeros(2, np.int64),
        np.zeros((4, 2)),
        np.zeros((4, listed)),
    )


def first_cover(rows: DistinctRows, allowed: BoolArray | None = None) -> Cover:
    """Return the cover of all thresholds, or of those of allowed features (p,), that says nothing."""
    has_any = rows.n_values > 1
    features = np.flatnonzero(has_any if allowed is None else has_any & allowed)
    cover = np.zeros(len(features), INTERVAL)
    cover["feature"], cover["low"], cover["high"] = features, 1, rows.n_values[features] - 1
    return cover


def roomy(cover: Cover, room: int) -> Cover:
    """Return a cover with room for more intervals."""
    return np.concatenate([cover, np.zeros(room, INTERVAL)])


def workspace(sides: Any, room: int, most_pairs: int = NO_LIMIT) -> CoverWorkspace:
    """Return a workspace with room for covers of some intervals, for so many pairs of sides."""
    return CoverWorkspace(
        left=np.zeros(room, INTERVAL),
        right=np.zeros(room, INTERVAL),
        size=np.zeros(2, np.int64),
        side=sides,
        found=np.full(2, np.inf, OF_SIDE),
        known=np.full(1, np.inf),
        split=np.full((2, 2), -1, np.int64),
        best=np.full(6, -1, np.int64),
        node=np.zeros(OUT, np.int64),
        losses=np.zeros(2),
        counts=np.array([0, most_pairs, NO_LIMIT, 0, 0]),
    )


def larger(work: CoverWorkspace) -> CoverWorkspace:
    """Return a workspace with twice the room for covers."""
    return work._replace(left=roomy(work.left, len(work.left)), right=roomy(work.right, len(work.right)))
