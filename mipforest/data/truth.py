"""The tree that a synthetic data set was drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TreeTruth:
    """A complete binary tree on the unit cube, features in original units.

    Nodes are in heap order: root 0, children 2t+1 and 2t+2; ``w[t].x + b[t] >= 0`` goes right. A node
    that does not split has ``w[t] = 0`` and ``b[t] = 1``: everything goes right.

    Attributes
    ----------
    w, b
        (2^D - 1, p) coefficients and (2^D - 1,) intercepts of the branch nodes.
    leaves
        (2^D,) prediction of each leaf, from left to right: class labels (int64) or values (float64).
    """

    w: FloatArray
    b: FloatArray
    leaves: IntArray | FloatArray

    @property
    def depth(self) -> int:
        """Depth D of the tree."""
        return len(self.leaves).bit_length() - 1

    @property
    def splits(self) -> BoolArray:
        """(2^D - 1,) which branch nodes split."""
        return np.asarray(self.w.any(axis=1))

    def leaf_of(self, X: FloatArray) -> IntArray:
        """Give the leaf, 0 to 2^D - 1 from the left, of each of the (n, p) points."""
        return self._path(X)[:, -1] - len(self.b)

    def predict(self, X: FloatArray) -> IntArray | FloatArray:
        """Give the class label or value of each of the (n, p) points."""
        return self.leaves[self.leaf_of(X)]

    def margin(self, X: FloatArray) -> FloatArray:
        """Give the (n,) Euclidean distances of points to the nearest hyperplane on their way to a leaf."""
        path = self._path(X)[:, :-1]
        w, b = self.w[path], self.b[path]
        norm = np.linalg.norm(w, axis=2)
        score = np.abs(np.einsum("ndp,np->nd", w, X) + b)
        distance = np.divide(score, norm, out=np.full_like(score, np.inf), where=norm > 0)
        return np.asarray(distance.min(axis=1, initial=np.inf))

    def draw(self, n: int, seed: int = 0) -> tuple[FloatArray, IntArray | FloatArray]:
        """Draw points uniformly from the unit cube, with their true labels: a noise-free test set.

        Dunn's test sets have ``2000 * 2^D`` points.

        Returns
        -------
        tuple
            (n, p) points and (n,) labels or values.
        """
        X = np.random.default_rng(seed).random((n, self.w.shape[1]))
        return X, self.predict(X)

    def _path(self, X: FloatArray) -> IntArray:
        """Give the (n, D + 1) nodes that each point passes, the last being its leaf's."""
        path = np.zeros((len(X), self.depth + 1), dtype=np.int64)
        for d in range(self.depth):
            node = path[:, d]
            right = np.einsum("np,np->n", self.w[node], X) + self.b[node] >= 0
            path[:, d + 1] = 2 * node + 1 + right
        return path
