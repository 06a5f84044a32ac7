r"""The best classification trees of depth one and two, by trying every pair of cuts: exact bounds for the `tight` variant.

For a fixed cut at the root both sides are independent problems of depth one, each solved by scanning all cuts over
running class counts. With q cuts, n samples, p features and K classes all roots together cost O(q n p K). The value

.. math::  V_c = \alpha \hat L + v(\text{left side of } c) + v(\text{right side of } c), \qquad
           v(S) = \min\{ e_0(S), \; \alpha \hat L + e_1(S) \}

with :math:`e_0, e_1` the fewest errors on S without and with one more cut, is the least objective, in units of one error,
of any tree of depth at most two whose root has cut c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.cuts import Cuts
from mipforest.arrays import BoolArray, FloatArray, IntArray


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
        (q,) value for each cut at the root.
    none
        Value of the tree without a split.
    """

    by_cut: FloatArray
    none: float


class DepthTwo:
    """Best trees of depth at most two under the objective of OCT, in units of one error.

    Parameters
    ----------
    cuts
        All cuts of the data, with its groups of equal samples.
    counts
        (g, K) samples of each class in each group.
    split_cost
        Cost of one split, in errors: ``alpha * Lhat``.
    n_min
        Least number of samples in a leaf.
    """

    def __init__(self, cuts: Cuts, counts: FloatArray, split_cost: float, n_min: int) -> None:
        self.cuts, self.counts = cuts, counts
        self.split_cost, self.n_min = split_cost, n_min
        X = cuts.X
        self.order = np.argsort(X, axis=0, kind="stable").T  # (p, g) groups by ascending value of each feature
        sizes = np.diff(cuts.first)
        #: (p, most cuts of a feature): position, in that order, of the last group left of each cut.
        self.last_left = np.zeros((X.shape[1], int(sizes.max(initial=0))), dtype=np.int64)
        self.is_cut = np.arange(self.last_left.shape[1]) < sizes[:, None]
        for j, order in enumerate(self.order):
            own = cuts.threshold[cuts.first[j] : cuts.first[j + 1]]
            self.last_left[j, : sizes[j]] = np.searchsorted(X[order, j], own) - 1

    def stump(self, side: BoolArray) -> Stump:
        """Best subtree of depth at most one for the groups of a side."""
        kept = self.counts * side[:, None]
        total = kept.sum(axis=0)
        alone = float(self._leaves(total))
        if not self.is_cut.any():
            return Stump(alone, -1)
        # Class counts left of every cut of every feature, (p, cuts, K).
        left = np.take_along_axis(np.cumsum(kept[self.order], axis=1), self.last_left[:, :, None], axis=1)
        values = self.split_cost + self._leaves(left) + self._leaves(total - left)
        values[~self.is_cut] = np.inf
        j, k = np.unravel_index(np.argmin(values), values.shape)
        return Stump(float(values[j, k]), int(self.cuts.first[j] + k)) if values[j, k] < alone else Stump(alone, -1)

    def goes_left(self, cut: int) -> BoolArray:
        """(g,) groups that a cut sends left."""
        mask: BoolArray = self.cuts.X[:, self.cuts.feature[cut]] < self.cuts.threshold[cut]
        return mask

    def root_values(self, depth: int) -> RootValues:
        """Least objective of a tree of depth 1 or 2 for every cut at its root; inf where a side is too small."""
        by_cut = np.empty(len(self.cuts))
        for cut in range(len(self.cuts)):
            left = self.goes_left(cut)
            by_cut[cut] = self.split_cost + sum(self._side(side, depth) for side in (left, ~left))
        return RootValues(by_cut, float(self._leaves(self.counts.sum(axis=0))))

    def best(self, values: RootValues, depth: int) -> IntArray:
        """(2^depth - 1,) cuts of a best tree, -1 where a node does not split."""
        cuts = np.full(2**depth - 1, -1)
        if len(values.by_cut) and values.by_cut.min() < values.none:
            cuts[0] = int(np.argmin(values.by_cut))
            if depth == 2:
                left = self.goes_left(int(cuts[0]))
                cuts[1], cuts[2] = self.stump(left).cut, self.stump(~left).cut
        return cuts

    def _side(self, side: BoolArray, depth: int) -> float:
        return self.stump(side).value if depth == 2 else float(self._leaves(self.counts[side].sum(axis=0)))

    def _leaves(self, count: FloatArray) -> FloatArray:
        """Cost of leaves with (..., K) class counts; inf for one that holds samples, but too few."""
        size = count.sum(axis=-1)
        cost: FloatArray = size - count.max(axis=-1)
        return np.where((size > 0) & (size < self.n_min), np.inf, cost)
