"""A fitted tree ensemble for two classes, its trees, and what adapts a library's classifier to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

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
        """Largest number of splits on the way to a leaf."""
        depth, level = 0, self._splits_of(np.zeros(1, dtype=np.int64))
        while len(level):
            depth, level = depth + 1, self._splits_of(self._children(level))
        return depth

    def heap_positions(self, depth: int) -> IntArray:
        """Return the (N,) heap position of each node in the complete tree of a depth; -1 for nodes below it."""
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
    """Return the variance of a boosted tree's output over the samples it was grown from: its weight.

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


@dataclass(frozen=True, eq=False)
class Adapter(ABC):
    """What every family of ensembles shares.

    Attributes
    ----------
    estimator
        The fitted classifier of two classes.
    class_numbers
        (2,) number in the data set of each of the estimator's classes.
    """

    kind: ClassVar[str]

    estimator: Any
    class_numbers: IntArray

    @abstractmethod
    def members(self) -> tuple[MemberTree, ...]:
        """Return the trees that take part in predictions."""

    @abstractmethod
    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) number of the leaf that each sample reaches in each member."""

    def predict(self, X: FloatArray) -> IntArray:
        """Return the (n,) predicted class, 0 or 1."""
        return self.class_numbers[self._predicted(X)]

    def probability(self, X: FloatArray) -> FloatArray:
        """Return the (n,) probability of the predicted class."""
        every = np.asarray(self.estimator.predict_proba(self._named(X)), dtype=np.float64)
        return every[np.arange(len(every)), self._predicted(X)]

    def _predicted(self, X: FloatArray) -> IntArray:
        """Return the (n,) position of the predicted class among the estimator's, which also breaks ties."""
        labels = self.estimator.predict(self._named(X))
        return np.asarray(labels == self.estimator.classes_[1], dtype=np.int64)

    def _named(self, X: FloatArray) -> Any:
        """Return the features under the names that the estimator was fitted with, if it was."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return X if names is None else pd.DataFrame(X, columns=names)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A tree ensemble, given by its trees and by what it answers.

    Made by :func:`~mipforest.ensembles.ensemble_for`.

    Attributes
    ----------
    kind
        ``"random-forest"``, ``"extra-trees"``, ``"gradient-boosting"`` or ``"xgboost"``.
    description
        One line on what it is and where it comes from.
    members
        Its T trees.
    n_features
        Number of features, p.
    adapter
        The fitted estimator behind it: leaves, classes and probabilities are the library's own.
    """

    kind: str
    description: str
    members: tuple[MemberTree, ...]
    n_features: int
    adapter: Adapter = field(repr=False)

    @cached_property
    def depth(self) -> int:
        """Depth of the deepest member."""
        return max((member.depth for member in self.members), default=0)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the members' weights."""
        return sum(member.weight for member in self.members)

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the (n, T) leaf that each sample reaches in each member; X in original units."""
        return self.adapter.leaves(X)

    def predict(self, X: FloatArray) -> IntArray:
        """Return the (n,) predicted class, 0 or 1 in the data set's order; X in original units."""
        return self.adapter.predict(X)

    def probability(self, X: FloatArray) -> FloatArray:
        """Return the (n,) probability of the predicted class; X in original units."""
        return self.adapter.probability(X)
