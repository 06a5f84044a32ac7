"""The splits of a tree, which can be changed: what alternating and memetic search work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.thresholds import chosen_features, univariate_tree
from mipforest.trees import Topology, Tree

#: What a node is that does not split: a leaf, or nothing, as a node above it is a leaf.
LEAF, ABSENT = -1, -2


@dataclass(frozen=True, eq=False)
class SplitTree:
    """The structure of a tree, in heap order; the nodes below the last level are leaves.

    Attributes
    ----------
    feature
        (2^D - 1,) feature of a split; :data:`LEAF` or :data:`ABSENT`.
    threshold
        (2^D - 1,) values from which on samples go right; infinite where all go to one side.
    """

    feature: IntArray
    threshold: FloatArray

    @classmethod
    def of(cls, tree: Tree) -> SplitTree:
        """Return the splits of a univariate tree.

        A node without a split above one with a split stands there as a split that sends all samples to the right.
        """
        feature, threshold = chosen_features(tree), -tree.b
        for t in reversed(range(len(feature) // 2)):
            if feature[t] < 0 <= max(feature[2 * t + 1], feature[2 * t + 2]):
                feature[t], threshold[t] = 0, -np.inf
        for t in range(1, len(feature)):
            if feature[(t - 1) // 2] < 0:
                feature[t] = ABSENT
        return cls(feature, threshold)

    def complete(self, data: Dataset, topology: Topology) -> Tree:
        """Return the complete tree with these splits for scaled features; its predictions are still to be chosen."""
        return univariate_tree(data, topology, np.maximum(self.feature, LEAF), self.threshold)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int((self.feature >= 0).sum())

    def is_leaf(self, t: int) -> bool:
        """Return whether a node is a leaf."""
        if t >= len(self.feature):
            return bool(self.feature[(t - 1) // 2] >= 0)
        return bool(self.feature[t] == LEAF)

    def copy(self) -> SplitTree:
        """Return a tree that can be changed without this one."""
        return SplitTree(self.feature.copy(), self.threshold.copy())

    def cut(self, t: int) -> None:
        """Make a node a leaf."""
        self.feature[t], self.threshold[t] = LEAF, 0.0
        for s in range(2 * t + 1, len(self.feature)):
            if self.feature[(s - 1) // 2] < 0:
                self.feature[s], self.threshold[s] = ABSENT, 0.0

    def lift(self, t: int, child: int) -> None:
        """Put the subtree of a child in the place of its parent t."""
        subtree = SplitTree(np.full_like(self.feature, ABSENT), np.zeros_like(self.threshold))
        moves = [(child, t)]
        for source, place in moves:
            if source >= len(self.feature):
                subtree.feature[place] = LEAF
                continue
            subtree.feature[place], subtree.threshold[place] = self.feature[source], self.threshold[source]
            if self.feature[source] >= 0:
                moves += [(2 * source + 1, 2 * place + 1), (2 * source + 2, 2 * place + 2)]
        below = {t}
        for s in range(t, len(self.feature)):
            if s == t or (s - 1) // 2 in below:
                below.add(s)
                self.feature[s], self.threshold[s] = subtree.feature[s], subtree.threshold[s]
