r"""The best trees of depth one and two, by trying every pair of thresholds: exact bounds for the `tight` variants.

For a fixed threshold at the root both sides are independent problems of depth one, each solved by scanning all
thresholds over running sums of m statistics per sample (class counts; for a squared loss: number, sum, sum of squares).
With q thresholds, n samples and p features all roots together cost O(q n p m). The value

.. math::  V_c = \alpha + v(\text{left side of } c) + v(\text{right side of } c), \qquad
           v(S) = \min\{ e_0(S), \; \alpha + e_1(S) \}

with :math:`\alpha` the cost of a split, and :math:`e_0, e_1` the least loss on S without and with one more threshold,
in the same units, is the least objective of any tree of depth at most two whose root has threshold c. So the objective
of a model of that depth, for binary variables of the root, is at least :math:`\sum_c V_c [\text{threshold } c] + V_0
[\text{no split}]`: :func:`root_bound`.

**Thresholds that are skipped.** For misclassification without a least leaf size, two thresholds c, c' of one feature
with d samples between them have :math:`V_{c'} \ge V_c - d`: take the best tree for c' and move these samples to the
other side; each costs at most one error. So where :math:`V_c - d` reaches the best value found so far, c' need not be
tried, and :math:`V_c - d` stands for its value: a lower bound, no better than the best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.model import LinearExpr, VarArray
from mipforest.trees import Topology

#: Returns the sizes and costs (...,) of leaves by the sums (..., m) of their samples' statistics.
LeafCost = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: Resolution of the values in the row on the root, in the units of the objective they bound.
RESOLUTION = 2.0**-24


class Stump(NamedTuple):
    """The best subtree of depth at most one: its value, and its threshold (-1 for none)."""

    value: float
    threshold: int


@dataclass(frozen=True, eq=False)
class RootValues:
    """Least objective of a tree of depth one or two by its root.

    Attributes
    ----------
    by_threshold
        (q,) value for each threshold at the root; for those that cannot be best, a lower bound on it.
    no_split
        Value of the tree without a split.
    best
        Threshold of the best root, -1 for none: not always the least of ``by_threshold``, whose lower bounds may tie
        with it.
    """

    by_threshold: FloatArray
    no_split: float
    best: int


def misclassified(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sizes of leaves, and their errors when they predict their largest class, by class counts (..., K)."""
    size = counts.sum(axis=-1)
    return size, size - counts.max(axis=-1)


class DepthTwo:
    """Best trees of depth at most two.

    Parameters
    ----------
    thresholds
        All thresholds of the data, with its groups of equal samples.
    statistics
        (g, m) statistics of the samples of each group, summed: class counts (g, K), or what ``leaf_cost`` takes.
    split_cost
        Cost of one split, in the units of ``leaf_cost``; for OCT in errors: ``alpha * Lhat``.
    N_min
        Least number of samples in a leaf.
    leaf_cost
        Size and cost of leaves by the sums of these statistics.
    """

    def __init__(
        self,
        thresholds: Thresholds,
        statistics: FloatArray,
        split_cost: float,
        N_min: int,
        leaf_cost: LeafCost = misclassified,
    ) -> None:
        self.thresholds, self.statistics = thresholds, statistics
        self.split_cost, self.N_min, self.leaf_cost = split_cost, N_min, leaf_cost
        X, sizes = thresholds.X, np.diff(thresholds.first)
        #: (p, g) groups by ascending value of each feature.
        self.order = np.argsort(X, axis=0, kind="stable").T
        #: (p, most thresholds of a feature): position, in that order, of the last group left of each threshold.
        self.last_left = np.zeros((X.shape[1], int(sizes.max(initial=0))), dtype=np.int64)
        self.exists = np.arange(self.last_left.shape[1]) < sizes[:, None]
        for j, order in enumerate(self.order):
            own = thresholds.value[thresholds.of(j)]
            self.last_left[j, : sizes[j]] = np.searchsorted(X[order, j], own) - 1

    def root_values(self, depth: int) -> RootValues:
        """Return the least objective of a tree of depth 1 or 2 by its root; inf where a side is too small.

        Thresholds that cannot be best have a lower bound in its place, where the loss allows to skip them.
        """
        by_threshold = np.full(len(self.thresholds), -np.inf)
        no_split = float(self._leaves(self.statistics.sum(axis=0)))
        n_left = self._samples_left() if self._skips else None
        best, best_threshold = no_split, -1
        # Breadth first over all features, middle thresholds first: the best value falls soon.
        stretches = deque((int(a), int(b)) for a, b in pairwise(self.thresholds.first) if a < b)
        while stretches:
            low, high = stretches.popleft()
            middle = (low + high) // 2
            left = self._goes_left(middle)
            value = self.split_cost + sum(self._side(side, depth) for side in (left, ~left))
            if value < best:
                best, best_threshold = value, middle
            if n_left is None:
                between, skipped = np.zeros(high - low), np.zeros(high - low, dtype=bool)
            else:
                between = np.abs(n_left[low:high] - n_left[middle])
                skipped = between <= value - best
            skipped[middle - low] = True
            by_threshold[low:high] = np.where(skipped, value - between, by_threshold[low:high])
            by_threshold[middle] = value
            first, last = low + int(skipped.argmax()), high - int(skipped[::-1].argmax())
            stretches += [(a, b) for a, b in ((low, first), (last, high)) if a < b]
        return RootValues(by_threshold, no_split, best_threshold)

    def best(self, roots: RootValues, topology: Topology) -> IntArray:
        """(|B|,) thresholds of a best tree, -1 where a node does not split.

        Below depth two, each node has the best stump on its samples.
        """
        chosen = np.full(topology.n_branches, -1)
        here: dict[int, BoolArray] = {0: np.ones(len(self.statistics), dtype=bool)}
        for t in topology.branches:
            side = here.pop(t, None)
            if side is None:
                continue
            chosen[t] = roots.best if t == 0 else self._stump(side).threshold
            if chosen[t] >= 0:
                left = self._goes_left(int(chosen[t]))
                here[topology.left(t)], here[topology.right(t)] = side & left, side & ~left
        return chosen

    def _stump(self, side: BoolArray) -> Stump:
        """Best subtree of depth at most one for the groups of a side."""
        kept = self.statistics * side[:, None]
        total = kept.sum(axis=0)
        alone = float(self._leaves(total))
        if not self.exists.any():
            return Stump(alone, -1)
        # Sums left of every threshold of every feature, (p, thresholds, m).
        left = np.take_along_axis(np.cumsum(kept[self.order], axis=1), self.last_left[:, :, None], axis=1)
        values = self.split_cost + self._leaves(left) + self._leaves(total - left)
        values[~self.exists] = np.inf
        j, k = np.unravel_index(np.argmin(values), values.shape)
        if values[j, k] < alone:
            return Stump(float(values[j, k]), int(self.thresholds.first[j] + k))
        return Stump(alone, -1)

    def _side(self, side: BoolArray, depth: int) -> float:
        """Value of a side of the root, in a tree of depth 1 or 2."""
        if depth == 2:
            return self._stump(side).value
        return float(self._leaves(self.statistics[side].sum(axis=0)))

    def _goes_left(self, threshold: int) -> BoolArray:
        """(g,) groups that a threshold sends left."""
        x = self.thresholds.X[:, self.thresholds.feature[threshold]]
        mask: BoolArray = x < self.thresholds.value[threshold]
        return mask

    @property
    def _skips(self) -> bool:
        """Whether moving a sample to another leaf costs at most 1."""
        return self.leaf_cost is misclassified and self.N_min == 1

    def _samples_left(self) -> FloatArray:
        """(q,) number of samples that each threshold sends left."""
        size = self.statistics.sum(axis=1)
        left = np.zeros(len(self.thresholds))
        for j, order in enumerate(self.order):
            left[self.thresholds.of(j)] = np.cumsum(size[order])[self.last_left[j, self.exists[j]]]
        return left

    def _leaves(self, sums: FloatArray) -> FloatArray:
        """Cost of leaves by their sums (..., m); inf for one that holds samples, but too few."""
        size, cost = self.leaf_cost(sums)
        return np.where((size > 0) & (size < self.N_min), np.inf, cost)


def root_bound(
    u: VarArray, d: VarArray, thresholds: Thresholds, roots: RootValues, *, safety: float = 0.0
) -> LinearExpr:
    """Return the least objective of a tree by its root: the sum over thresholds of value times binary.

    Parameters
    ----------
    u, d
        (q,) variables of the root's threshold (:class:`~formulations.routing.univariate.ThresholdRouting`), and
        whether it splits.
    thresholds, roots
        The thresholds, and the least objective for each.
    safety
        What all values are lowered by.
    """
    # A threshold that leaves too few samples on a side is infeasible; any value bounds it.
    values = np.where(np.isfinite(roots.by_threshold), roots.by_threshold, roots.no_split) - safety
    # Rounded down to multiples of a power of two, so that their differences are exact: no coefficient of 1e-17.
    values = np.floor(values / RESOLUTION) * RESOLUTION
    rises = np.diff(values, prepend=0.0)
    rises[thresholds.lowest] = values[thresholds.lowest]
    bound: LinearExpr = rises @ u + (roots.no_split - safety) * (1 - d)
    return bound


# ---------------------------------------------------------------------- losses of regression


def squared_losses(y: FloatArray, group: IntArray, baseline: float) -> tuple[FloatArray, LeafCost]:
    """Statistics (g, 3) and cost of leaves that predict their mean: squared loss over ``baseline``.

    The statistics of a group of equal samples are number, target and squared target of its samples, summed.
    """
    centred = y - y.mean()
    sums = [np.bincount(group, weights=centred**k) for k in (0, 1, 2)]
    statistics: FloatArray = np.column_stack(sums).astype(np.float64)

    def cost(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, total, squares = np.moveaxis(sums, -1, 0)
        return size, np.maximum(0, squares - total**2 / np.maximum(size, 1)) / baseline

    return statistics, cost


def absolute_losses(y: FloatArray, group: IntArray, baseline: float) -> tuple[FloatArray, LeafCost]:
    r"""Statistics (g, m) and cost of leaves that predict their median: absolute loss over ``baseline``.

    The statistics of a group count its samples with each of the m distinct targets. With C_k of N samples at or below
    the k-th distinct target, the absolute loss around a median is :math:`\sum_k (y_{k+1} - y_k) \min \{C_k, N - C_k\}`.
    """
    values, rank = np.unique(y, return_inverse=True)
    statistics = np.zeros((int(group.max()) + 1, len(values)))
    np.add.at(statistics, (group, rank), 1.0)
    gaps = np.diff(values)

    def cost(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        below = np.cumsum(sums, axis=-1)
        size = below[..., -1]
        smaller = np.minimum(below[..., :-1], size[..., None] - below[..., :-1])
        return size, smaller @ gaps / baseline

    return statistics, cost
