"""A fitted tree ensemble for two classes: its trees, what adapts a library's classifier to it, and its measures.

The measures are those of the MIRET paper: where features are used, and which samples go together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import EnsembleError
from mipforest.trees import Topology

#: Most bytes of a proximity matrix: enough for 16 000 samples, and still less than small machines have.
LARGEST_PROXIMITY = 2 * 1024**3

#: Proximities are sums of weights, and miss the exact value by less than this.
ROUNDING = 1e-12

#: Rows of the proximity matrix that are filled together, so that what is compared stays in the cache.
BLOCK = 256


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
        import pandas as pd

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


def node_uses(ensemble: Ensemble, depth: int) -> FloatArray:
    """Return the (|B|, p) weight of the members that split on each feature, at each branch node of a tree.

    Parameters
    ----------
    ensemble
        T members; those that have a leaf at a node, or above it, count for no feature there.
    depth
        Depth of the tree, 1 to 10; splits below it are left out.
    """
    uses = np.zeros((Topology(depth).n_branches, ensemble.n_features))
    for member in ensemble.members:
        position = member.heap_positions(depth - 1)
        splits = np.flatnonzero((position >= 0) & (member.left >= 0))
        uses[position[splits], member.feature[splits]] += member.weight
    return uses


def level_frequencies(ensemble: Ensemble, depth: int) -> FloatArray:
    """Return the (depth, p) frequency of each feature at each level, 0 to 1: MIRET's f_dj.

    f_dj is the weight of all splits at level d on feature j, over ``2^d`` times the weight of all members:
    a row sums to 1 if every member splits at every node of the level, and to less otherwise (Di Teodoro,
    Monaci and Palagi, equation 10; all weights are 1 for forests).

    Parameters
    ----------
    ensemble
        Members of any depth; splits below ``depth`` are left out.
    depth
        Number of levels, 1 to 10.
    """
    levels = Topology(depth).levels
    uses = np.zeros((depth, ensemble.n_features))
    np.add.at(uses, levels, node_uses(ensemble, depth))
    nodes = 2.0 ** np.arange(depth)
    return uses / (nodes * ensemble.total_weight)[:, None]


@dataclass(frozen=True, eq=False)
class CloseSamples:
    """Which samples an ensemble treats alike, without a matrix over all of them.

    Attributes
    ----------
    kind
        (n,) kind of each sample: those of a kind share their leaves in all members that count, and so have the same
        proximities.
    close
        (G, G) CSR matrix, ``True`` where the proximity of two kinds reaches the threshold, as on the diagonal.
    """

    kind: IntArray
    close: SparseMatrix


def close_samples(ensemble: Ensemble, X: FloatArray, threshold: float) -> CloseSamples:
    """Find the samples whose proximity reaches a threshold.

    Parameters
    ----------
    ensemble
        T members.
    X
        (n, p) features in original units.
    threshold
        Least proximity, at most 1. Where no member may differ, proximities are not computed at all.

    Raises
    ------
    EnsembleError
        As for :func:`proximity`, of one sample of each kind.
    """
    weights = np.array([member.weight for member in ensemble.members])
    leaves = ensemble.leaves(X)[:, weights > 0].astype(np.int32)
    first, kind = np.unique(leaves, axis=0, return_index=True, return_inverse=True)[1:]
    most_apart = 1 - weights[weights > 0].min() / ensemble.total_weight
    if most_apart < threshold - ROUNDING:
        close = sparse.eye_array(len(first), dtype=bool, format="csr")
    else:
        close = sparse.csr_array(proximity(ensemble, X[first]) >= threshold)
    return CloseSamples(kind.ravel().astype(np.int64), close)


def proximity(ensemble: Ensemble, X: FloatArray) -> FloatArray:
    """Return the (n, n) share of members (by weight) in which two samples reach the same leaf.

    Symmetric, between 0 and 1, with ones on the diagonal. Samples that share all leaves have exactly 1.

    Parameters
    ----------
    ensemble
        T members.
    X
        (n, p) features in original units.

    Raises
    ------
    EnsembleError
        If the matrix would take more than :data:`LARGEST_PROXIMITY` bytes.
    """
    n = len(X)
    if 8 * n * n > LARGEST_PROXIMITY:
        most = int((LARGEST_PROXIMITY / 8) ** 0.5)
        raise EnsembleError(
            f"the proximities of {n} samples take {8 * n * n / 1024**3:.1f} GiB; take at most {most} samples"
        )
    leaves = ensemble.leaves(X).T.copy()
    shared = np.zeros((n, n))
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        for member, leaf in zip(ensemble.members, leaves, strict=True):
            shared[rows] += member.weight * (leaf[rows, None] == leaf)
    # The diagonal was summed in the same order as all else, hence with the same rounding.
    shared /= shared.diagonal().copy()
    return shared
