r"""The best trees of depth one and two, by trying every pair of cuts: exact bounds for the `tight` variants.

For a fixed cut at the root both sides are independent problems of depth one, each solved by scanning all cuts over
running sums of m statistics per sample (class counts; for a squared loss: number, sum, sum of squares). With q cuts, n
samples and p features all roots together cost O(q n p m). The value

.. math::  V_c = \alpha + v(\text{left side of } c) + v(\text{right side of } c), \qquad
           v(S) = \min\{ e_0(S), \; \alpha + e_1(S) \}

with :math:`\alpha` the cost of a split, and :math:`e_0, e_1` the least loss on S without and with one more cut, in
the same units, is the least objective of any tree of depth at most two whose root has cut c.

**Cuts that are skipped.** For misclassification without a least leaf size, two cuts c, c' of one feature with d samples
between them have :math:`V_{c'} \ge V_c - d`: take the best tree for c' and move these samples to the other side; each
costs at most one error. So where :math:`V_c - d` reaches the best value found so far, c' need not be tried, and
:math:`V_c - d` stands for its value: a lower bound, no better than the best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from formulations.cuts import Cuts
from mipforest.arrays import BoolArray, FloatArray, IntArray

#: Gives the sizes and costs (...,) of leaves by the sums (..., m) of their samples' statistics.
LeafCost = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def misclassified(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sizes of leaves, and their errors when they predict their largest class, by class counts (..., K)."""
    size = counts.sum(axis=-1)
    return size, size - counts.max(axis=-1)


class Stump(NamedTuple):
    """The best subtree of depth at most one: its value, and its cut (-1 for none)."""

    value: float
    cut: int


@dataclass(frozen=True, eq=False)
class RootValues:
    """Least objective of a tree of depth one or two by its root.

    Attributes
    ----------
    by_cut
        (q,) value for each cut at the root; for cuts that cannot be best, a lower bound on it.
    none
        Value of the tree without a split.
    best
        Cut of the best root, -1 for none: not always the least of ``by_cut``, whose lower bounds may tie with it.
    """

    by_cut: FloatArray
    none: float
    best: int


class DepthTwo:
    """Best trees of depth at most two.

    Parameters
    ----------
    cuts
        All cuts of the data, with its groups of equal samples.
    statistics
        (g, m) statistics of the samples of each group, summed: class counts (g, K), or what ``leaf_cost`` takes.
    split_cost
        Cost of one split, in the units of ``leaf_cost``; for OCT in errors: ``alpha * Lhat``.
    n_min
        Least number of samples in a leaf.
    leaf_cost
        Size and cost of leaves by the sums of these statistics.
    """

    def __init__(
        self,
        cuts: Cuts,
        statistics: FloatArray,
        split_cost: float,
        n_min: int,
        leaf_cost: LeafCost = misclassified,
    ) -> None:
        self.cuts, self.statistics = cuts, statistics
        self.split_cost, self.n_min, self.leaf_cost = split_cost, n_min, leaf_cost
        X = cuts.X
        self.order = np.argsort(
            X, axis=0, kind="stable"
        ).T  # (p, g) groups by ascending value of each feature
        sizes = np.diff(cuts.first)
        #: (p, most cuts of a feature): position, in that order, of the last group left of each cut.
        self.last_left = np.zeros((X.shape[1], int(sizes.max(initial=0))), dtype=np.int64)
        self.is_cut = np.arange(self.last_left.shape[1]) < sizes[:, None]
        for j, order in enumerate(self.order):
            own = cuts.threshold[cuts.first[j] : cuts.first[j + 1]]
            self.last_left[j, : sizes[j]] = np.searchsorted(X[order, j], own) - 1

    def stump(self, side: BoolArray) -> Stump:
        """Best subtree of depth at most one for the groups of a side."""
        kept = self.statistics * side[:, None]
        total = kept.sum(axis=0)
        alone = float(self._leaves(total))
        if not self.is_cut.any():
            return Stump(alone, -1)
        # Sums left of every cut of every feature, (p, cuts, m).
        left = np.take_along_axis(np.cumsum(kept[self.order], axis=1), self.last_left[:, :, None], axis=1)
        values = self.split_cost + self._leaves(left) + self._leaves(total - left)
        values[~self.is_cut] = np.inf
        j, k = np.unravel_index(np.argmin(values), values.shape)
        return (
            Stump(float(values[j, k]), int(self.cuts.first[j] + k))
            if values[j, k] < alone
            else Stump(alone, -1)
        )

    def goes_left(self, cut: int) -> BoolArray:
        """(g,) groups that a cut sends left."""
        mask: BoolArray = self.cuts.X[:, self.cuts.feature[cut]] < self.cuts.threshold[cut]
        return mask

    def root_values(self, depth: int) -> RootValues:
        """Least objective of a tree of depth 1 or 2 for every cut at its root; inf where a side is too small.

        Cuts that cannot be best have a lower bound in its place, where the loss allows to skip them.
        """
        by_cut = np.full(len(self.cuts), -np.inf)
        none = float(self._leaves(self.statistics.sum(axis=0)))
        left_of = self._samples_left() if self._skips else None
        best, best_cut = none, -1
        # Breadth first over all features, middle cuts first: the best value falls soon.
        stretches = deque((int(a), int(b)) for a, b in pairwise(self.cuts.first) if a < b)
        while stretches:
            low, high = stretches.popleft()
            cut = (low + high) // 2
            left = self.goes_left(cut)
            value = self.split_cost + sum(self._side(side, depth) for side in (left, ~left))
            if value < best:
                best, best_cut = value, cut
            if left_of is None:
                between, skipped = np.zeros(high - low), np.zeros(high - low, dtype=bool)
            else:
                between = np.abs(left_of[low:high] - left_of[cut])
                skipped = between <= value - best
            skipped[cut - low] = True
            by_cut[low:high] = np.where(skipped, value - between, by_cut[low:high])
            by_cut[cut] = value
            first, last = low + int(skipped.argmax()), high - int(skipped[::-1].argmax())
            stretches += [(a, b) for a, b in ((low, first), (last, high)) if a < b]
        return RootValues(by_cut, none, best_cut)

    @property
    def _skips(self) -> bool:
        """Whether moving a sample to another leaf costs at most 1."""
        return self.leaf_cost is misclassified and self.n_min == 1

    def _samples_left(self) -> FloatArray:
        """(q,) number of samples that each cut sends left."""
        size = self.statistics.sum(axis=1)
        cuts = self.cuts
        left = np.zeros(len(cuts))
        for j, order in enumerate(self.order):
            own = slice(cuts.first[j], cuts.first[j + 1])
            left[own] = np.cumsum(size[order])[self.last_left[j, self.is_cut[j]]]
        return left

    def best(self, values: RootValues, depth: int) -> IntArray:
        """(2^depth - 1,) cuts of a best tree, -1 where a node does not split."""
        cuts = np.full(2**depth - 1, -1)
        if values.best >= 0:
            cuts[0] = values.best
            if depth == 2:
                left = self.goes_left(values.best)
                cuts[1], cuts[2] = self.stump(left).cut, self.stump(~left).cut
        return cuts

    def _side(self, side: BoolArray, depth: int) -> float:
        return (
            self.stump(side).value if depth == 2 else float(self._leaves(self.statistics[side].sum(axis=0)))
        )

    def extended(self, cuts: IntArray, depth: int) -> IntArray:
        """Extend the cuts of a tree (|B|,) to a greater depth, by the best stump on the samples of each new node."""
        full = np.full(2**depth - 1, -1)
        full[: len(cuts)] = cuts
        here: dict[int, BoolArray] = {0: np.ones(len(self.statistics), dtype=bool)}
        for t in range(len(full)):
            side = here.pop(t, None)
            if side is None:
                continue
            if t >= len(cuts):
                full[t] = self.stump(side).cut
            if full[t] >= 0:
                left = self.goes_left(int(full[t]))
                here[2 * t + 1], here[2 * t + 2] = side & left, side & ~left
        return full

    def _leaves(self, sums: FloatArray) -> FloatArray:
        """Cost of leaves by their sums (..., m); inf for one that holds samples, but too few."""
        size, cost = self.leaf_cost(sums)
        return np.where((size > 0) & (size < self.n_min), np.inf, cost)
