r"""All univariate trees whose loss is near the optimum, or the best so many of them.

A *tree* is, at every node that splits, a feature and the set of samples that it sends left, and a label at every leaf.
Thresholds between the same two neighbouring values of the samples at a node are one split; every leaf holds samples, at
least ``N_min``. A leaf has the label of least loss, the first of several; where ``all_labels`` is asked for, any. A
split whose two sides are leaves with a prediction in common that is best for both (with the same label) is none. Of the
features of one column of the table, those that part the samples at a node alike are one split: they differ in where
missing values or levels go that none of these samples has.

The trees of a set of rows are listed from the last level up. A threshold of the upper levels is expanded where the best
trees of both sides, found by :mod:`mipforest.searches.exact.cover_search`, fit into the budget of losses; with three
levels or more, bounds on the sides of thresholds close intervals between them, as rows that are added never lose less.
A side lists what the other side's best leaves of the budget. Where so many trees are asked for and no budget is given,
that is the loss of the last one kept, and falls as better ones are found.

Limits on sums over samples of what their labels use, :math:`\sum_i u_{r i, k_i} \le h_r`, leave trees out on the way: a
tree of the rows S is kept only where it is within them together with the label of least use for each other sample,

.. math::  \sum_{i \in S} u_{r i, k_i} \le h_r - \sum_{i \notin S} \min_k u_{r i k} \text{ for all } r.

This depends on S alone, so the lists of sets of rows that come again are kept as without limits. For all rows it is the
limit itself.

In a *box* (:class:`~mipforest.searches.exact.boxes.Box`) a node that has to split is no leaf, and its split may be none
otherwise: two leaves of one label, or a threshold that parts none of its samples. The latter are listed at other nodes,
too, where a tree below it could not be there in its place. Sides of three levels or more are bounded in a box around
that below the node: without splits that part none of their samples.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.objectives.leaf_losses import LabelLoss, TableLoss
from mipforest.problem.structure import LabelSums, UnivariateProblem
from mipforest.problem.tree_search import ListedTrees
from mipforest.searches import compile_by
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import COMPILING_SECONDS, CoverSearch, middle_threshold
from mipforest.searches.exact.search import TOLERANCE, distinct_rows, numbered_rows, tiny_rows
from mipforest.searches.exact.tables import DistinctRows
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.time_budget import Stopped, TimeBudget
from mipforest.trees.topology import subtree

#: Levels that are searched without asking whether to stop.
FAST_LEVELS = 2

#: Most trees of one side of a threshold that are listed: 32 bytes each.
MAX_LISTED = 200_000

#: Most trees that are remembered for sets of rows that come again; then all are forgotten.
MAX_REMEMBERED = 10_000_000

#: Pairs of trees of both sides that are held against limits at once.
PAIRS = 1_000_000

#: Share of its terms by which rounding may change a sum: of a million terms.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of sums over labels of rows.

    Attributes
    ----------
    use
        (r, n, K) what each label of each row adds.
    most
        (r,) the limits, with what a row of a model may be missed by, and what rounding makes of sums.
    surely
        (r,) the same, less so much that a model's row holds beyond doubt.
    """

    use: FloatArray
    most: FloatArray
    surely: FloatArray

    @classmethod
    def of(cls, sums: LabelSums | None, row: IntArray, K: int) -> Limits:
        """Add up limits of samples over the row of each (n,)."""
        use, most = np.zeros((0, len(row), K)), np.zeros(0)
        if sums is not None:
            _, use, most = sums.from_above()
        of_rows = np.zeros((len(use), int(row.max()) + 1, K))
        for limit, each in zip(of_rows, use, strict=True):
            np.add.at(limit, row, each)
        rounding = ROUNDING * np.abs(use).max(axis=2, initial=0.0).sum(axis=1)
        beyond, inside = 2.0 * FEASIBILITY_TOLERANCE + rounding, 0.5 * FEASIBILITY_TOLERANCE - rounding
        return cls(of_rows, most + beyond, most + inside)

    def __len__(self) -> int:
        return len(self.use)

    def left_for(self, number: IntArray) -> FloatArray:
        """Return (r,) what rows of some numbers may use, where all others use least."""
        least = self.least
        left: FloatArray = self.most - (least.sum(axis=1) - least[:, number].sum(axis=1))
        return left

    @cached_property
    def least(self) -> FloatArray:
        """(r, n) least use of each row."""
        return np.asarray(self.use.min(axis=2))


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees of one set of rows, the best first.

    Attributes
    ----------
    value
        (m,) losses, costs of splits included.
    cut
        (m,) number of the root's split in ``cuts``, -1 for a leaf.
    left, right
        (m,) positions in the lists of both sides; on the last level, labels; of a leaf, its label at the left.
    used
        (m, r) what the labels use of each limit.
    cuts
        (c, 3) feature, and ranks of the two neighbouring values that a split parts.
    sides
        Lists of both sides of each split; empty on the last level.
    budget
        Loss up to which all trees are here.
    whole
        Whether none was left out for want of room.
    """

    value: FloatArray
    cut: IntArray
    left: IntArray
    right: IntArray
    used: FloatArray
    cuts: IntArray
    sides: tuple[tuple[Trees, Trees], ...]
    budget: float
    whole: bool


class _Collected:
    """Trees of one set of rows while they are found: the best ``room`` within a budget.

    Parameters
    ----------
    budget
        Most loss.
    room
        Most trees.
    shrinks
        Whether the budget falls to the loss of the last tree once there are so many; all are counted otherwise.
    limits
        (r,) limits of what the labels of a tree may use.

    Attributes
    ----------
    count
        Trees within the first budget, of those that were met.
    whole, counted
        Whether no such tree was left out; whether all were counted.
    best
        Whether no tree was left out that is better than one that is here: sides may lack trees within limits.
    """

    def __init__(self, budget: float, room: int, *, shrinks: bool, limits: FloatArray) -> None:
        self.best, self._limits = True, limits
        self.budget, self.count, self.whole, self.counted = budget, 0, True, not shrinks
        self._first, self._room, self._shrinks, self._keep = budget, room, shrinks, budget
        self._cuts: list[tuple[int, int, int]] = []
        self._sides: list[tuple[Trees, Trees]] = []
        self._parts: list[tuple[FloatArray, IntArray, IntArray, IntArray, FloatArray]] = []
        self._held = 0

    def add(
        self, value: FloatArray, cut: IntArray, left: IntArray, right: IntArray, used: FloatArray
    ) -> None:
        """Add those trees that are within the limits."""
        within = self._within(used)
        self.count += int((value[within] <= self._first).sum())
        self._hold(value[within], cut[within], left[within], right[within], used[within])

    def _within(self, used: FloatArray) -> BoolArray:
        return np.asarray((used <= self._limits).all(axis=1))

    def add_pairs(
        self, at: tuple[int, int, int], left: Trees, right: Trees, cost: float, same: BoolArray
    ) -> None:
        """Add all trees of a split and one tree on each side of it, but those of two leaves that are the same.

        Parameters
        ----------
        at, cost
            The split, and what it costs.
        left, right
            Trees of both sides.
        same
            (leaves at the left, leaves at the right) whether the split is none with these.
        """
        if len(self._limits):
            self._add_limited_pairs(at, left, right, cost, same)
            return
        a, b = left.value + cost, right.value
        self.whole &= left.whole and right.whole
        self.counted &= left.whole and right.whole
        leaves, others = np.flatnonzero(left.cut < 0), np.flatnonzero(right.cut < 0)
        none = same & (a[leaves][:, None] + b[others] <= self._first)
        self.count += int(np.searchsorted(b, self._first - a, side="right").sum()) - int(none.sum())
        fitting = np.searchsorted(b, self._keep - a, side="right")
        if int(fitting.sum()) > self._room + same.size:
            # Of sorted sums, the first so many have places i, j with (i + 1)(j + 1) no more than that.
            fitting = np.minimum(fitting, (self._room + same.size) // np.arange(1, len(a) + 1))
            self.whole = False
        i, j = _pairs(fitting)
        differ = _differ(left, right, same, i, j)
        i, j = i[differ], j[differ]
        if len(i):
            self._cuts.append(at)
            self._sides.append((left, right))
            none_used = np.zeros((len(i), 0))
            self._hold(a[i] + b[j], np.full(len(i), len(self._cuts) - 1), i, j, none_used)

    def _add_limited_pairs(
        self, at: tuple[int, int, int], left: Trees, right: Trees, cost: float, same: BoolArray
    ) -> None:
        self.whole &= left.whole and right.whole
        self.best &= left.whole and right.whole
        if not (len(left.value) and len(right.value)):
            return
        # Those that are within the limits beside some tree of the other side.
        of_left = np.flatnonzero(self._within(left.used + right.used.min(axis=0)))
        of_right = np.flatnonzero(self._within(right.used + left.used.min(axis=0)))
        a, b = left.value[of_left] + cost, right.value[of_right]
        fitting = np.searchsorted(b, self._keep - a, side="right")
        number_of_cut, any_held = len(self._cuts), False
        block = (fitting.cumsum() - 1) // PAIRS
        for number in np.unique(block[fitting > 0]).tolist():
            some = np.flatnonzero((block == number) & (fitting > 0))
            i, j = _pairs(fitting[some])
            i, j = of_left[some][i], of_right[j]
            used = left.used[i] + right.used[j]
            kept = np.flatnonzero(self._within(used))
            kept = kept[_differ(left, right, same, i[kept], j[kept])]
            i, j, used = i[kept], j[kept], used[kept]
            value = left.value[i] + cost + right.value[j]
            self.count += int((value <= self._first).sum())
            any_held |= bool((value <= self._keep).any())
            self._hold(value, np.full(len(i), number_of_cut), i, j, used)
        if any_held:
            self._cuts.append(at)
            self._sides.append((left, right))
        self.counted &= left.whole and right.whole and self._keep == self._first  # exact: a copy

    def _hold(
        self, value: FloatArray, cut: IntArray, left: IntArray, right: IntArray, used: FloatArray
    ) -> None:
        fits = value <= self._keep
        self._parts.append((value[fits], cut[fits], left[fits], right[fits], used[fits]))
        self._held += int(fits.sum())
        if self._held > 2 * self._room or (self._shrinks and self._held >= self._room):
            self._shrink()

    def _shrink(self) -> None:
        """Keep the best ones; of equal ones those that were found first."""
        value, cut, left, right, used = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        best = np.argsort(value, kind="stable")[: self._room]
        self.whole &= len(best) == len(value)
        self._parts = [(value[best], cut[best], left[best], right[best], used[best])]
        self._held = len(best)
        if self._held == self._room:
            self._keep = min(self._keep, float(value[best[-1]]))
            if self._shrinks:
                self.budget = self._keep

    def trees(self, cuts: IntArray | None = None) -> Trees:
        """Return what was found."""
        if not self._parts:
            none = np.zeros(0, np.int64)
            self._parts.append((np.zeros(0), none, none, none, np.zeros((0, len(self._limits)))))
        self._shrink()
        if cuts is None:
            cuts = np.array(self._cuts, np.int64).reshape(-1, 3)
        whole = self.whole and self._keep == self._first  # exact: a copy
        return Trees(*self._parts[0], cuts, tuple(self._sides), self._first, whole)


def _pairs(fitting: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of each i with the first ``fitting[i]`` of the others."""
    i = np.repeat(np.arange(len(fitting)), fitting)
    return i, np.arange(len(i)) - np.repeat(fitting.cumsum() - fitting, fitting)


def _differ(left: Trees, right: Trees, same: BoolArray, i: IntArray, j: IntArray) -> BoolArray:
    """Return whether pairs of trees, by their numbers, are not two leaves that are the same."""
    if not same.any():
        return np.ones(len(i), dtype=bool)
    leaves, others = np.flatnonzero(left.cut < 0), np.flatnonzero(right.cut < 0)
    of_left, of_right = np.full(len(left.cut), -1), np.full(len(right.cut), -1)
    of_left[leaves], of_right[others] = np.arange(len(leaves)), np.arange(len(others))
    differ: BoolArray = (of_left[i] < 0) | (of_right[j] < 0)
    differ |= ~same[of_left[i], of_right[j]]
    return differ


def _moved_up(below: int, above: int, n_branches: int) -> Iterator[tuple[int, int]]:
    """Go through the nodes of a subtree, with those that they become where its root moves up to a node above."""
    if below < n_branches:
        yield below, above
        for side in (1, 2):
            yield from _moved_up(2 * below + side, 2 * above + side, n_branches)


def _mask(rows: DistinctRows, number: IntArray) -> BoolArray:
    """Return (n,) which rows have the given numbers."""
    chosen = np.zeros(rows.rank.shape[1], dtype=bool)
    chosen[number] = True
    return chosen


@dataclass(frozen=True, eq=False)
class _NumberedRows:
    """Some of the rows.

    Attributes
    ----------
    rows
        The rows, with their ranks among all values.
    number
        (n,) numbers of the rows among all.
    """

    rows: DistinctRows
    number: IntArray

    @classmethod
    def of(cls, rows: DistinctRows, number: IntArray) -> _NumberedRows:
        """Return some of all rows."""
        return cls(rows.subset(_mask(rows, number)), number)

    @property
    def order(self) -> Int32Array:
        """(p, n) rows in the order of each feature."""
        return self.rows.order[: len(self.rows.rank)]

    @cached_property
    def ranks(self) -> Int32Array:
        """(p, n) ranks in the order of each feature."""
        return np.take_along_axis(self.rows.rank, self.order, axis=1)

    @cached_property
    def own_ranks(self) -> Int32Array:
        """(p, n) the same, of the values that are there alone."""
        own = np.zeros_like(self.ranks)
        own[:, 1:] = (np.diff(self.ranks, axis=1) > 0).cumsum(axis=1)
        return own

    @cached_property
    def own_rows(self) -> DistinctRows:
        """The rows with ranks among their own values."""
        rank = np.empty_like(self.rows.rank)
        np.put_along_axis(rank, self.order, self.own_ranks, axis=1)
        return replace(self.rows, rank=rank, n_values=self.own_ranks[:, -1].astype(np.int64) + 1)

    def sides(self, f: int, t: int) -> tuple[IntArray, IntArray]:
        """Return the numbers of the rows on both sides of a threshold."""
        right = self.own_rows.rank[f] >= t
        return self.number[~right], self.number[right]

    def cut(self, f: int, t: int) -> tuple[int, int, int]:
        """Return feature, and ranks among all rows of the values that a threshold parts."""
        at = int(np.searchsorted(self.own_ranks[f], t))
        return f, int(self.ranks[f, at - 1]), int(self.ranks[f, at])


@dataclass(frozen=True)
class _Place:
    """A node of a box, and what is above it.

    Attributes
    ----------
    node
        Its number.
    above
        Groups of features that come once on a path, and have come above it.
    """

    node: int = 0
    above: frozenset[int] = frozenset()


@dataclass(eq=False)
class _Listing:
    """Lists the trees of sets of rows.

    Attributes
    ----------
    rows
        All rows.
    cost
        Cost of a split.
    tolerance
        Losses closer than this are the same.
    room
        Most trees of a side of a threshold.
    all_labels
        Whether leaves may have any label.
    limits
        Limits of these labels.
    stopped
        Asked now and then whether to stop.
    columns
        (p,) column of each feature; ``None`` where each is one of its own.
    box
        Trees to list; all of them without it.
    """

    rows: DistinctRows
    cost: float
    tolerance: float
    room: int
    all_labels: bool
    limits: Limits
    stopped: Callable[[], bool]
    columns: IntArray | None = None
    box: Box | None = None
    _known: dict[tuple[int, bytes, _Place], Trees] = field(default_factory=dict)
    _bounds: dict[tuple[int, bytes, _Place], tuple[float, float, float]] = field(default_factory=dict)
    _remembered: int = 0

    @property
    def labelled(self) -> bool:
        """Whether leaves predict a label each; labels of several targets are the best ones, as numbers are."""
        loss = self.rows.loss
        return isinstance(loss, LabelLoss) and loss.n_labels == 1

    def below(self, number: IntArray, levels: int, budget: float, place: _Place) -> Trees:
        """Return the trees of some rows within a budget."""
        key = levels, self._key(number), place
        known = self._known.get(key)
        if known is not None and known.budget >= budget:
            return known
        found = _Collected(budget, self.room, shrinks=True, limits=self.limits.left_for(number))
        if len(number):
            cuts = self.collect(_NumberedRows.of(self.rows, number), levels, found, place)
        else:
            cuts = self._add_empty(levels, found, place)
        trees = found.trees(cuts)
        self._remembered += len(trees.value)
        if self._remembered > MAX_REMEMBERED:
            self._known.clear()
            self._remembered = len(trees.value)
        self._known[key] = trees
        return trees

    def _key(self, number: IntArray) -> bytes:
        return np.packbits(_mask(self.rows, number)).tobytes()

    def collect(self, part: _NumberedRows, levels: int, found: _Collected, place: _Place) -> IntArray | None:
        """Find the trees of some rows; return the splits where there is one level."""
        must = self._must(place)
        if not must:
            self._add_leaf(part, found)
        if levels == 1:
            return self._add_splits(part, found, place)
        seen = set[tuple[int, bytes]]()
        for f, t, left, right in self._thresholds(part, levels, found, place):
            if self.stopped():
                raise Stopped
            on_left, on_right = part.sides(f, t)
            if self._met(seen, f, on_left if part.number[0] in on_left else on_right):
                continue
            rest = found.budget - self.cost
            trees = self.below(on_left, levels - 1, rest - right, self._child(place, f, 0))
            if len(trees.value):
                rest -= max(left, float(trees.value[0]))
                others = self.below(on_right, levels - 1, rest, self._child(place, f, 1))
                same = self._same(part, trees, others)
                found.add_pairs(part.cut(f, t), trees, others, self.cost, same & ~np.bool_(must))
        if must or (self.box is not None and self._below_alone[place.node]):
            self._add_that_part_none(part, levels, found, place)
        return None

    # ------------------------------------------------------------------ boxes

    def _must(self, place: _Place) -> bool:
        """Return whether a node has to split."""
        return self.box is not None and bool(self.box.must[place.node])

    def _usable(self, place: _Place) -> BoolArray:
        """Return (p,) which features a node may split on."""
        if self.box is None:
            return np.ones(len(self.rows.rank), dtype=bool)
        usable: BoolArray = self.box.allowed[place.node] & ~np.isin(self.box.group, list(place.above))
        return usable

    def _child(self, place: _Place, f: int, side: int) -> _Place:
        """Return the node on a side of a split."""
        if self.box is None:
            return place
        group = int(self.box.group[f])
        return _Place(2 * place.node + 1 + side, place.above | {group} if group >= 0 else place.above)

    @cached_property
    def _below_alone(self) -> list[bool]:
        """Whether a tree below each node, of a side of it, may be none of the box with its root at the node."""
        assert self.box is not None
        allowed = self.box.allowed
        return [
            any(
                (allowed[below] & ~allowed[above]).any()
                for child in (2 * node + 1, 2 * node + 2)
                for below, above in _moved_up(child, node, len(allowed))
            )
            for node in range(len(allowed))
        ]

    def _none_parted(self, part: _NumberedRows, usable: BoolArray) -> list[tuple[int, int, int]]:
        """Return feature and neighbouring ranks of thresholds that have all rows on one side: one for each side."""
        found = []
        for f in np.flatnonzero(usable & (self.rows.n_values > 1)).tolist():
            least, most = int(part.ranks[f, 0]), int(part.ranks[f, -1])
            found += [(f, least - 1, least)] if least > 0 else []
            found += [(f, most, most + 1)] if most + 1 < self.rows.n_values[f] else []
        return found

    def _add_that_part_none(self, part: _NumberedRows, levels: int, found: _Collected, place: _Place) -> None:
        """Add the trees of splits that have all rows on one side."""
        none = part.number[:0]
        for f, low, high in self._none_parted(part, self._usable(place)):
            goes_left = high > int(part.ranks[f, -1])
            on_left, on_right = (part.number, none) if goes_left else (none, part.number)
            rest = found.budget - self.cost
            trees = self.below(on_left, levels - 1, rest, self._child(place, f, 0))
            if not len(trees.value):
                continue
            others = self.below(on_right, levels - 1, rest - float(trees.value[0]), self._child(place, f, 1))
            leaves = int((trees.cut < 0).sum()), int((others.cut < 0).sum())
            same = np.full(leaves, not self._must(place))
            found.add_pairs((f, low, high), trees, others, self.cost, same)

    def _add_empty(self, levels: int, found: _Collected, place: _Place) -> IntArray | None:
        """Add the trees of no rows: splits that have to be there, and leaves of a label; return as :meth:`collect`."""
        if not self._must(place):
            one = np.zeros(1, np.int64)
            found.add(np.zeros(1), one - 1, one, one, np.zeros((1, len(self.limits))))
            return None
        features = np.flatnonzero(self._usable(place) & (self.rows.n_values > 1))
        cuts = np.column_stack([features, np.zeros_like(features), np.ones_like(features)]).astype(np.int64)
        if levels == 1:
            m, label = len(cuts), np.zeros(len(cuts), np.int64)
            found.add(np.full(m, self.cost), np.arange(m), label, label, np.zeros((m, len(self.limits))))
            return cuts
        for f, low, high in cuts.tolist():
            rest = found.budget - self.cost
            left = self.below(features[:0], levels - 1, rest, self._child(place, f, 0))
            right = self.below(features[:0], levels - 1, rest, self._child(place, f, 1))
            leaves = int((left.cut < 0).sum()), int((right.cut < 0).sum())
            found.add_pairs((f, low, high), left, right, self.cost, np.full(leaves, fill_value=False))
        return None

    # ------------------------------------------------------------------ splits that are one

    def _met(self, seen: set[tuple[int, bytes]], f: int, side: IntArray | Int32Array) -> bool:
        """Return whether a column that is several features has parted rows before, by the side of the first row."""
        if self.columns is None or not self._several[f]:
            return False
        key = int(self.columns[f]), np.sort(side).tobytes()
        met = key in seen
        seen.add(key)
        return met

    @cached_property
    def _several(self) -> BoolArray:
        """(p,) whether the column of each feature is several features."""
        assert self.columns is not None
        several: BoolArray = np.bincount(self.columns)[self.columns] > 1
        return several

    def _same(self, part: _NumberedRows, left: Trees, right: Trees) -> BoolArray:
        """Return (leaves at the left, leaves at the right) whether a split is none with these on its sides."""
        leaves, others = np.flatnonzero(left.cut < 0), np.flatnonzero(right.cut < 0)
        if self.labelled and self.all_labels:
            return np.equal.outer(left.left[leaves], right.left[others])
        gains = np.add.outer(left.value[leaves], right.value[others]) < part.rows.leaf() - self.tolerance
        return np.asarray(~gains)

    # ------------------------------------------------------------------ the last level

    def _add_leaf(self, part: _NumberedRows, found: _Collected, cut: int = -1, cost: float = 0.0) -> None:
        """Add the leaves, or those of a split that has all rows on one side."""
        if part.rows.size.sum() < self.rows.N_min:
            return
        if self.labelled:
            losses = part.rows.statistics.sum(axis=0)
            labels = np.arange(len(losses)) if self.all_labels else np.array([int(losses.argmin())])
            value = losses[labels]
        else:
            labels, value = np.zeros(1, np.int64), np.array([part.rows.leaf()])
        used = self.limits.use[:, part.number][:, :, labels].sum(axis=1).T
        found.add(value + cost, np.full(len(labels), cut), labels, labels, used)

    def _add_splits(self, part: _NumberedRows, found: _Collected, place: _Place) -> IntArray:
        """Add the trees of one split; return the splits."""
        rows, order, ranks = part.rows, part.order, part.ranks
        size = rows.size[order].cumsum(axis=1)[:, :-1]
        there = np.diff(ranks, axis=1) > 0
        there &= (size >= rows.N_min) & (rows.size.sum() - size >= rows.N_min)
        if self.columns is not None:
            seen = set[tuple[int, bytes]]()
            for g in np.flatnonzero(self._several[: len(there)]).tolist():
                for last in np.flatnonzero(there[g]).tolist():
                    one, rest = order[g, : last + 1], order[g, last + 1 :]
                    there[g, last] = not self._met(seen, g, one if 0 in one else rest)
        must, usable = self._must(place), self._usable(place)
        there &= usable[: len(there), None]
        f, at = np.nonzero(there)
        cuts = np.column_stack([f, ranks[f, at], ranks[f, at + 1]]).astype(np.int64)
        first = np.zeros(len(f), np.int64)
        value, left, right, split = np.zeros(len(f)), first, first, np.arange(len(f))
        if not rows.loss.has_sums:
            each = rows.splits(0.0)
            value = np.array([each[j][k - 1] for j, _, k in cuts.tolist()])
        elif len(f):
            sums = rows.statistics
            below = sums[order].cumsum(axis=1)
            lower, upper = below[f, at], below[f, -1] - below[f, at]
            if not self.labelled:
                value = rows.loss_of(lower) + rows.loss_of(upper)
            elif self.all_labels:
                k, other = np.nonzero(must | ~np.eye(sums.shape[1], dtype=bool))
                value = (lower[:, k] + upper[:, other]).ravel()
                left, right = np.tile(k, len(f)), np.tile(other, len(f))
                split = np.repeat(split, len(k))
            else:
                left, right = lower.argmin(axis=1), upper.argmin(axis=1)
                value = lower.min(axis=1) + upper.min(axis=1)
        if not (must or (self.labelled and self.all_labels)):
            gains = value < rows.leaf() - self.tolerance
            value, left, right, split = value[gains], left[gains], right[gains], split[gains]
        fits = value + self.cost <= found.budget
        value, split, left, right = value[fits] + self.cost, split[fits], left[fits], right[fits]
        used = np.zeros((len(split), len(self.limits)))
        if used.size:
            use = self.limits.use[:, part.number]
            below = use[:, order].cumsum(axis=2)
            used += below[:, f[split], at[split], left].T
            used += use.sum(axis=1)[:, right].T - below[:, f[split], at[split], right].T
        found.add(value, split, left, right, used)
        if not must:
            return cuts
        none = np.array(self._none_parted(part, usable), np.int64).reshape(-1, 3)
        for number in range(len(cuts), len(cuts) + len(none)):
            self._add_leaf(part, found, cut=number, cost=self.cost)
        return np.concatenate([cuts, none])

    # ------------------------------------------------------------------ upper levels

    def _thresholds(
        self, part: _NumberedRows, levels: int, found: _Collected, place: _Place
    ) -> Iterator[tuple[int, int, float, float]]:
        """Go through the thresholds whose best trees are within the budget, with bounds on both sides' losses."""
        rows = part.own_rows
        if int(rows.n_values.max(initial=1)) < 2:
            return
        if levels > 2:
            yield from self._bisected(part, levels, found, place)
            return
        usable = self._usable(place)
        search = CoverSearch(rows, 2, cost=self.cost, tolerance=self.tolerance, incumbent=np.inf)
        value = search.each_threshold()
        first = np.append(0, (rows.n_values - 1).cumsum())
        for k in np.argsort(value, kind="stable").tolist():
            if np.isinf(value[k]) or value[k] > found.budget + self.tolerance:
                return
            f = int(np.searchsorted(first, k, side="right")) - 1
            if not usable[f]:
                continue
            yield f, k - int(first[f]) + 1, 0.0, 0.0

    def _bisected(
        self, part: _NumberedRows, levels: int, found: _Collected, place: _Place
    ) -> Iterator[tuple[int, int, float, float]]:
        """Bisect the intervals of thresholds of three levels or more, those of least bound first."""
        rows, number, usable = part.own_rows, 0, self._usable(place)
        heap = list[tuple[float, int, int, int, int, float, float]]()
        for f, (low, high) in enumerate(rows.allowed().tolist()):
            if low <= high and usable[f]:
                heap.append((0.0, f, f, low, high, 0.0, 0.0))
                number = f  # of the last interval: none has two
        heapq.heapify(heap)
        while heap:
            if self.stopped():
                raise Stopped
            bound, _, f, low, high, left, right = heapq.heappop(heap)
            if bound + self.cost > found.budget + self.tolerance:
                return
            t = middle_threshold(part.own_ranks[f], low, high)
            on_left, on_right = part.sides(f, t)
            rest = found.budget - self.cost
            on_sides = self._child(place, f, 0), self._child(place, f, 1)
            value, below = self._best(on_left, levels - 1, rest - right, on_sides[0])
            below = max(below, left)
            other, above = self._best(on_right, levels - 1, rest - max(left, value), on_sides[1])
            above = max(above, right)
            if value + other <= rest + self.tolerance:
                yield f, t, value, other
            rest = found.budget - self.cost + self.tolerance
            last, after = t - 1, t + 1
            if rows.predicts_labels and below + above > rest:
                # Thresholds so near that moving the rows between cannot make up for what this one loses too much.
                weight = np.bincount(rows.rank[f] + 1, rows.moved, int(rows.n_values[f]) + 1).cumsum()
                excess = below + above - rest
                last = min(last, int(np.searchsorted(weight, weight[t] - excess, side="right")) - 1)
                after = max(after, int(np.searchsorted(weight, weight[t] + excess, side="left")))
            for start, end, one, two in ((low, last, left, above), (after, high, below, right)):
                if start <= end and one + two <= rest:
                    number += 1
                    heapq.heappush(heap, (one + two, number, f, start, end, one, two))

    def _best(self, number: IntArray, levels: int, budget: float, place: _Place) -> tuple[float, float]:
        """Return lower bounds on the loss of some levels, with leaves as large as they must be, and of any size.

        The first is the least loss where that is within the budget.
        """
        key = levels, self._key(number), place
        upto, value, free = self._bounds.get(key, (-np.inf, 0.0, 0.0))
        if upto < budget and value <= upto + self.tolerance:
            return value, free
        if upto < budget:
            rows = _NumberedRows.of(self.rows, number).own_rows
            # Values within the tolerance are not told apart.
            cutoff = budget + 4.0 * self.tolerance
            value = self._least(rows, levels, cutoff, place)
            free = value if rows.N_min == 1 else self._least(replace(rows, N_min=1), levels, cutoff, place)
            self._bounds[key] = budget, value, free
        return value, free

    def _least(self, rows: DistinctRows, levels: int, cutoff: float, place: _Place) -> float:
        """Return the least loss of some levels; where that is no less than the cutoff, a bound that is not either."""
        box = None
        if self.box is not None:
            nodes = subtree(place.node, len(self.box.must))
            usable = ~np.isin(self.box.group, list(place.above))
            allowed = self.box.allowed[nodes] & usable
            for t in range(len(nodes) - 1, 0, -1):
                # Where a split parts none of its samples, what is below may move up: that is in this box, and no worse.
                allowed[(t - 1) // 2] |= allowed[t]
            box = Box(allowed, np.zeros(len(nodes), dtype=bool), self.box.group).settled()
        search = CoverSearch(
            rows, levels, cost=self.cost, tolerance=self.tolerance, incumbent=cutoff, box=box
        )
        if levels == FAST_LEVELS:
            search.solve()
        elif search.run(gap=0.0, deadline=np.inf, threads=1, should_stop=self.stopped)[1]:
            raise Stopped
        return max(0.0, search.bound - self.tolerance)


# ---------------------------------------------------------------------- all levels


def compile_kernels(budget: TimeBudget, problem: UnivariateProblem, depth: int) -> float:
    """Load what listing the trees of a problem runs, or compile it; see :func:`~mipforest.searches.compile_by`."""

    def run() -> None:
        rows = tiny_rows(problem.loss, distinct_rows(problem, merged=False)[0])
        CoverSearch(rows, 2, cost=0.0, tolerance=0.0, incumbent=np.inf).each_threshold()
        for N_min in {1, rows.N_min} if depth > 2 else ():
            sized = replace(rows, N_min=N_min)
            for levels in range(2, depth):
                CoverSearch(sized, levels, cost=0.0, tolerance=0.0, incumbent=np.inf).solve()

    return compile_by(run, budget, "exact-search", COMPILING_SECONDS) if depth > 1 else 0.0


def list_trees(
    problem: UnivariateProblem,
    depth: int,
    *,
    budget: float = np.inf,
    most: int,
    shrink: bool,
    all_labels: bool = False,
    limits: LabelSums | None = None,
    columns: IntArray | None = None,
    box: Box | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> ListedTrees:
    """List the trees within a budget, the best first.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path, 1 to 4.
    budget, most, shrink, all_labels, limits, columns, stopped
        As for :meth:`~mipforest.problem.tree_search.TreeSearch.list_trees`.
    box
        Trees to list, settled; all of them without it.
    """
    if limits is not None and limits.use.shape[2] > problem.statistics.shape[1]:
        table = problem.costs_of_labels(limits.use.shape[2])
        problem = replace(problem, y=table.argmin(axis=1), loss=TableLoss(table), weight=None)
    rows, base = distinct_rows(problem, merged=False)
    held = Limits.of(limits, numbered_rows(problem)[2], max(1, rows.n_classes))
    everything = np.arange(rows.rank.shape[1])
    scale = float(rows.moved.sum() if rows.n_classes else rows.value[:, -1].sum())
    scale = max(scale, rows.leaf())
    tolerance = TOLERANCE * scale
    loss = budget * problem.unit - base + 2.0 * tolerance
    room = most if shrink and not len(held) else max(most, MAX_LISTED)
    listing = _Listing(rows, problem.split_cost, tolerance, room, all_labels, held, stopped, columns, box)
    found, ended = _Collected(loss, most, shrinks=shrink, limits=held.left_for(everything)), True
    found_cuts = None
    try:
        found_cuts = listing.collect(_NumberedRows.of(rows, everything), depth, found, _Place())
    except Stopped:
        ended = False
    trees = found.trees(found_cuts)
    m = len(trees.value)
    nodes = np.full((m, 2**depth - 1, 3), -1)
    label = np.zeros((m, 2**depth), np.int64)
    _write(trees, np.arange(m), np.arange(m), 0, depth, nodes, label)
    return ListedTrees(
        _thresholds_of(nodes, problem.thresholds),
        label,
        (trees.value + base) / problem.unit,
        found.count,
        ended and found.best,
        ended and found.counted,
        trees.whole,
        np.asarray((trees.used <= held.surely).all(axis=1)),
    )


def _write(
    trees: Trees, at: IntArray, into: IntArray, node: int, levels: int, nodes: IntArray, label: IntArray
) -> None:
    """Write the trees at some positions of a list into rows of tables, below a node in heap order."""
    n_leaves = label.shape[1]
    leaves = _leaves_below(node, n_leaves)
    cut = trees.cut[at]
    leaf = cut < 0
    label[into[leaf], leaves] = trees.left[at[leaf]][:, None]
    at, into, cut = at[~leaf], into[~leaf], cut[~leaf]
    if not len(at):
        return
    nodes[into, node] = trees.cuts[cut]
    if levels == 1:
        for child, side in ((2 * node + 1, trees.left), (2 * node + 2, trees.right)):
            label[into, _leaves_below(child, n_leaves)] = side[at][:, None]
        return
    order = np.argsort(cut, kind="stable")
    at, into, cut = at[order], into[order], cut[order]
    starts = np.flatnonzero(np.diff(cut, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(cut)], strict=True):
        left, right = trees.sides[int(cut[start])]
        here = slice(start, end)
        _write(left, trees.left[at[here]], into[here], 2 * node + 1, levels - 1, nodes, label)
        _write(right, trees.right[at[here]], into[here], 2 * node + 2, levels - 1, nodes, label)


def _leaves_below(node: int, n_leaves: int) -> slice:
    """Return which leaves, from left to right, lie below a node."""
    first = beyond = node
    while first < n_leaves - 1:
        first, beyond = 2 * first + 1, 2 * beyond + 2
    return slice(first - n_leaves + 1, beyond - n_leaves + 2)


def _thresholds_of(nodes: IntArray, thresholds: Thresholds) -> IntArray:
    """Return the threshold nearest to the middle between the values that each split parts, -1 where there is none."""
    cuts, which = np.unique(nodes.reshape(-1, 3), axis=0, return_inverse=True)
    chosen = np.full(len(cuts), -1)
    values: dict[int, FloatArray] = {}
    for k, (f, low, high) in enumerate(cuts.tolist()):
        if f < 0:
            continue
        if f not in values:
            values[f] = np.unique(thresholds.X[:, f])
        middle = values[f][low] + (values[f][high] - values[f][low]) / 2
        own = thresholds.value[thresholds.first[f] + low : thresholds.first[f] + high]
        chosen[k] = thresholds.first[f] + low + int(np.abs(own - middle).argmin())
    return chosen[which.ravel()].reshape(nodes.shape[:2])
