"""Random trees as ground truths, and samples of them with noise.

Dunn, Optimal trees for prediction and prescription (2018), sections 2.5, 3.4, 4.4 and 5.3, after
Murthy and Salzberg: a full tree with random splits labels points drawn uniformly from the unit cube; no two
sibling leaves share a label. The thesis does not say how features and thresholds are drawn; here

- density 1: the feature is uniform over all features, the threshold uniform over the interval that the
  node's cell leaves to that feature;
- density > 1: the number of features is uniform in 1..density, the features are random, their coefficients
  uniform in [-1, 1], and the threshold is a random quantile, 0.1 to 0.9, of ``w.x`` over points of the
  node's cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.target import Task
from mipforest.errors import DataError, refuse_out_of_range


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The tree behind a generated sample: a complete binary tree on the unit cube, features in original units.

    It may be deeper than a tree that models fit, and it draws points besides predicting them.

    Nodes are in heap order: root 0, children 2t+1 and 2t+2; ``w[t].x + b[t] >= 0`` goes right. A node
    that does not split has ``w[t] = 0`` and ``b[t] = 1``: everything goes right.

    Attributes
    ----------
    w, b
        (2^D - 1, p) coefficients and (2^D - 1,) intercepts of the branch nodes.
    leaves
        (2^D,) prediction of each leaf, from left to right: class labels (int64) or values (float64).
    leaf_w
        (2^D, p) coefficients of linear leaves, which predict ``leaf_w . x`` more than ``leaves``; ``None`` for constant
        leaves.
    """

    w: FloatArray
    b: FloatArray
    leaves: IntArray | FloatArray
    leaf_w: FloatArray | None = None

    @property
    def depth(self) -> int:
        """Depth D of the tree."""
        return len(self.leaves).bit_length() - 1

    @property
    def splits(self) -> BoolArray:
        """(2^D - 1,) which branch nodes split."""
        return np.asarray(self.w.any(axis=1))

    def leaf_of(self, X: FloatArray) -> IntArray:
        """Return the leaf, 0 to 2^D - 1 from the left, of each of the (n, p) points."""
        return self._path(X)[:, -1] - len(self.b)

    def predict(self, X: FloatArray) -> IntArray | FloatArray:
        """Return the class label or value of each of the (n, p) points."""
        leaf = self.leaf_of(X)
        if self.leaf_w is None:
            return self.leaves[leaf]
        values: FloatArray = self.leaves[leaf] + (X * self.leaf_w[leaf]).sum(axis=1)
        return values

    def margin(self, X: FloatArray) -> FloatArray:
        """Return the (n,) Euclidean distances of points to the nearest hyperplane on their way to a leaf."""
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
        """Return the (n, D + 1) nodes that each point passes, the last being its leaf's."""
        path = np.zeros((len(X), self.depth + 1), dtype=np.int64)
        for d in range(self.depth):
            node = path[:, d]
            goes_right = np.einsum("np,np->n", self.w[node], X) + self.b[node] >= 0
            left, right = children(node)
            path[:, d + 1] = np.where(goes_right, right, left)
        return path


#: Points of a cell that a hyperplane's threshold is a quantile of.
_CELL_POINTS = 200


def children(t: Any) -> tuple[Any, Any]:
    """Return the left and the right child of branch node t, or (n,) children of (n,) nodes, in heap order."""
    return 2 * t + 1, 2 * t + 2


@dataclass(frozen=True, kw_only=True)
class RandomTree:
    """Options of ``synthetic:tree``; the defaults are Dunn's.

    Attributes
    ----------
    depth
        Depth of the tree, 1 to 12.
    n
        Number of samples.
    p
        Number of features.
    classes
        Number of classes K, at most 2^depth; of no meaning for a regression.
    density
        Largest number of features in a split, at most p; 1 gives splits on one feature each.
    leaf_density
        Largest number of features in the linear function of a leaf, at most p, of a regression; 0 for constant leaves.
    feature_noise
        Share of the samples, 0 to 1, all of whose features are moved by U(-0.1, 0.1) after labelling.
    label_noise
        Classification: share of the samples, 0 to 1, that get a random other label. Regression: standard
        deviation of the normal noise added to every value (leaf values are U(0, 1)).
    seed
        Seed of everything. The tree depends on it and on ``depth, p, classes, density, leaf_density, task`` only.
    task
        ``"classification"`` or ``"regression"``.
    """

    depth: int = 4
    n: int = 1000
    p: int = 5
    classes: int = 2
    density: int = 1
    leaf_density: int = 0
    feature_noise: float = 0.0
    label_noise: float = 0.0
    seed: int = 0
    task: Task = "classification"

    def __post_init__(self) -> None:
        ranges = {
            "depth": (1, 12),
            "n": (1, 10**8),
            "p": (1, 10**6),
            "classes": (2, 2**self.depth) if self.task == "classification" else (0, 10**6),
            "density": (1, self.p),
            "leaf_density": (0, self.p if self.task == "regression" else 0),
            "feature_noise": (0, 1),
            "label_noise": (0, 1) if self.task == "classification" else (0, 10**6),
            "seed": (0, 2**63),
        }
        refuse_out_of_range("synthetic:tree", self, ranges)
        if self.task not in ("classification", "regression"):
            raise DataError(
                f"synthetic:tree: task={self.task} is unknown; it is classification or regression"
            )

    def ground_truth(self) -> GroundTruth:
        """Draw the tree."""
        rng = np.random.default_rng([self.seed, 0])
        w, b = _splits_on_one_feature(self, rng) if self.density == 1 else _hyperplanes(self, rng)
        leaves = rng.random(2**self.depth) if self.task == "regression" else _labels(self, rng)
        leaf_w = _linear_leaves(self, rng) if self.leaf_density else None
        return GroundTruth(w, b, leaves, leaf_w)

    def sample(self, ground_truth: GroundTruth) -> tuple[FloatArray, IntArray | FloatArray]:
        """Draw the (n, p) points, label them by the tree, then add the noise.

        Returns
        -------
        tuple
            (n, p) features and (n,) labels or values.
        """
        X, y = ground_truth.draw(self.n, seed=self.seed)
        rng = np.random.default_rng([self.seed, 1])
        moved = _some(rng, self.n, self.feature_noise)
        X[moved] += rng.uniform(-0.1, 0.1, size=(len(moved), self.p))
        if self.task == "regression":
            return X, y + self.label_noise * rng.standard_normal(self.n)
        flipped = _some(rng, self.n, self.label_noise)
        y[flipped] = (y[flipped] + rng.integers(1, self.classes, size=len(flipped))) % self.classes
        return X, y


def _some(rng: np.random.Generator, n: int, share: float) -> IntArray:
    """Choose a share of ``n`` samples."""
    return rng.permutation(n)[: round(share * n)]


def _labels(options: RandomTree, rng: np.random.Generator) -> IntArray:
    """Draw a label for each leaf, siblings differing."""
    left = rng.integers(options.classes, size=2 ** (options.depth - 1))
    right = (left + rng.integers(1, options.classes, size=len(left))) % options.classes
    return np.stack([left, right], axis=1).ravel()


def _linear_leaves(options: RandomTree, rng: np.random.Generator) -> FloatArray:
    """Draw the coefficients of each leaf: their number uniform in 1..leaf_density, their values in [-1, 1]."""
    leaf_w = np.zeros((2**options.depth, options.p))
    for row in leaf_w:
        used = rng.choice(options.p, size=rng.integers(1, options.leaf_density + 1), replace=False)
        row[used] = rng.uniform(-1.0, 1.0, size=len(used))
    return leaf_w


def _splits_on_one_feature(options: RandomTree, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw splits ``x_j >= threshold`` that cut their node's box."""
    branches = 2**options.depth - 1
    w, b = np.zeros((branches, options.p)), np.zeros(branches)
    boxes = {0: (np.zeros(options.p), np.ones(options.p))}
    for t in range(branches):
        low, high = boxes.pop(t)
        j = rng.integers(options.p)
        threshold = rng.uniform(low[j], high[j])
        w[t, j], b[t] = 1.0, -threshold
        cut = np.arange(options.p) == j
        left, right = children(t)
        boxes[left], boxes[right] = (
            (low, np.where(cut, threshold, high)),
            (np.where(cut, threshold, low), high),
        )
    return w, b


def _hyperplanes(options: RandomTree, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw hyperplanes that cut their node's polytope."""
    branches = 2**options.depth - 1
    w, b = np.zeros((branches, options.p)), np.zeros(branches)
    start = {0: np.full(options.p, 0.5)}
    for t in range(branches):
        points = _cell_points(*_cell(w, b, t), start.pop(t), rng)
        used = rng.choice(options.p, size=rng.integers(1, options.density + 1), replace=False)
        w[t, used] = rng.uniform(-1.0, 1.0, size=len(used))
        scores = points @ w[t]
        b[t] = -np.quantile(scores, rng.uniform(0.1, 0.9))
        left, right = children(t)
        start[left], start[right] = points[scores.argmin()], points[scores.argmax()]
    return w, b


def _cell(w: FloatArray, b: FloatArray, node: int) -> tuple[FloatArray, FloatArray]:
    """Return the half-spaces ``A x + c >= 0`` that a node's ancestors and the unit cube leave to it."""
    p = w.shape[1]
    A, c = [np.eye(p), -np.eye(p)], [np.zeros(p), np.ones(p)]
    while node:
        parent, sign = (node - 1) // 2, 1.0 if node % 2 == 0 else -1.0
        A.append(sign * w[[parent]])
        c.append(sign * b[[parent]])
        node = parent
    return np.vstack(A), np.concatenate(c)


def _cell_points(A: FloatArray, c: FloatArray, start: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw points of ``{x: A x + c >= 0}`` by hit-and-run: a random direction, a uniform point on that chord.

    ``start`` is a point of the cell. The points' law tends to the uniform one over the cell (Smith, 1984).
    """
    points = np.empty((_CELL_POINTS, len(start)))
    x = start
    for k in range(_CELL_POINTS):
        direction = rng.standard_normal(len(x))
        slack, rate = np.maximum(A @ x + c, 0.0), A @ direction
        longest = min((slack[rate < 0] / -rate[rate < 0]).min(), 1e9)
        shortest = max((-slack[rate > 0] / rate[rate > 0]).max(), -1e9)
        x = x + rng.uniform(shortest, longest) * direction
        points[k] = x
    return points
