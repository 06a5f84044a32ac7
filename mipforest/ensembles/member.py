"""One tree of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MemberTree:
    """A binary tree of univariate splits, as arrays over its nodes; node 0 is the root.

    Attributes
    ----------
    left, right
        (N,) children of each node; -1 at leaves.
    feature
        (N,) feature of each split; -1 at leaves.
    threshold
        (N,) split value in original units: smaller values go left. Whether a value that equals it does too is
        up to the library that grew the tree. Without meaning at leaves.
    weight
        What the tree counts for in frequencies and proximities, at least 0.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    weight: float = 1.0

    @property
    def depth(self) -> int:
        """Most splits on the way to a leaf."""
        depth, level = 0, self._splits_of(np.zeros(1, dtype=np.int64))
        while len(level):
            depth, level = depth + 1, self._splits_of(self._children(level))
        return depth

    def heap_positions(self, depth: int) -> IntArray:
        """(N,) position of each node in the complete tree of a depth, in heap order; -1 for nodes below it."""
        position = np.full(len(self.left), -1, dtype=np.int64)
        position[0] = 0
        level = np.zeros(1, dtype=np.int64)
        for _ in range(depth):
            level = self._splits_of(level)
            position[self.left[level]] = 2 * position[level] + 1
            position[self.right[level]] = 2 * position[level] + 2
            level = self._children(level)
        return position

    def _splits_of(self, nodes: IntArray) -> IntArray:
        return nodes[self.left[nodes] >= 0]

    def _children(self, splits: IntArray) -> IntArray:
        return np.concatenate([self.left[splits], self.right[splits]])


def output_variance(values: FloatArray, mass: FloatArray) -> float:
    """Variance of a boosted tree's output over the samples it was grown from: its weight.

    Later trees of a boosted ensemble correct earlier ones ever less. The variance says how much a tree moves
    the sum of all, whatever its learning rate; a tree that gives all samples the same value counts nothing.

    Parameters
    ----------
    values
        (leaves,) output of each leaf.
    mass
        (leaves,) weight of the samples in each leaf, at least 0.
    """
    if mass.sum() <= 0:
        return 0.0
    mean = np.average(values, weights=mass)
    return float(np.average((values - mean) ** 2, weights=mass))
