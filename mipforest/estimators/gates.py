"""Gates: rules that choose one tree of a forest for each sample, by the rewards of the trees on training samples.

Rewards are (n, B) numbers in [-1, 1]: what each sample pays for each of the B trees. All of them are known, so a gate
is a policy with full information, not a bandit. A sample's rewards count as often as it weighs; weights are (n,) and
positive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeRegressor

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.estimators.policy_network import Standardised
from mipforest.heuristics.cart import from_scikit_learn
from mipforest.trees import Topology, Tree

Scale = Literal["per_sample", "global"]


class Gate(Protocol):
    """What chooses."""

    def select(self, X: FloatArray) -> IntArray:
        """Return (n,) numbers of the trees chosen for (n, p) samples."""


# ---------------------------------------------------------------------- rewards


def rewards_of_labels(predicted: FloatArray, y: IntArray) -> FloatArray:
    """Return (n, B) rewards of (n, B) predicted classes: 1 for the sample's class, else -1."""
    return np.where(predicted == y[:, None], 1.0, -1.0)


def rewards_of_values(predicted: FloatArray, y: FloatArray, scale: Scale) -> FloatArray:
    """Compute rewards of predicted values: 1 for the tree of a sample's least squared error, less for the others.

    Parameters
    ----------
    predicted
        (n, B) predictions.
    y
        (n,) targets.
    scale
        Unit of squared errors above the sample's least one: ``"per_sample"`` their range over the trees, so that the
        worst tree of every sample has -1; ``"global"`` the greatest of these ranges, so that sums of rewards rank
        trees as sums of squared errors do.

    Returns
    -------
    FloatArray
        (n, B) numbers in [-1, 1]; 1 for all trees of a sample that they predict alike.
    """
    errors = (predicted - y[:, None]) ** 2
    above = errors - errors.min(axis=1, keepdims=True)
    unit = above.max(axis=1, keepdims=True)
    if scale == "global":
        unit = unit.max(keepdims=True)
    shares: FloatArray = np.divide(above, unit, out=np.zeros_like(above), where=unit > 0)
    return 1 - 2 * shares


def without_own_samples(rewards: FloatArray, in_bag: BoolArray) -> FloatArray:
    """Return (n, B) rewards that tell nothing of the samples that a tree was grown on.

    A tree's reward there becomes the mean of the sample's out-of-bag rewards, which speaks neither for it nor against
    it; all are 0 where a sample was in every bag.

    Parameters
    ----------
    rewards
        (n, B) rewards.
    in_bag
        (n, B) whether a tree was grown on a sample.
    """
    counts = (~in_bag).sum(axis=1)
    sums = np.where(in_bag, 0.0, rewards).sum(axis=1)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return np.where(in_bag, means[:, None], rewards)


def best_single(totals: FloatArray) -> int:
    """Return the number of the tree with the largest total (B,) reward, the lowest of several."""
    return int(totals.argmax())


def _best_of(sums: FloatArray, totals: FloatArray) -> IntArray:
    """Return (m,) best trees of (m, B) local sums of rewards; of equally good ones the best over all samples."""
    order = np.argsort(-totals, kind="stable")
    best: IntArray = order[sums[:, order].argmax(axis=1)]
    return best


# ---------------------------------------------------------------------- simple gates


@dataclass(frozen=True)
class SingleGate:
    """The same tree for every sample.

    Attributes
    ----------
    tree
        Number of the tree.
    """

    tree: int

    def select(self, X: FloatArray) -> IntArray:
        """Return (n,) times the number of the tree."""
        return np.full(len(X), self.tree, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TreeGate:
    """A tree whose leaves name trees of the forest.

    Attributes
    ----------
    tree
        Its classes are the trees of the forest, ``"tree 0"``, ``"tree 1"``, ...
    """

    tree: Tree

    def select(self, X: FloatArray) -> IntArray:
        """Return (n,) trees named by the leaves that samples reach."""
        return np.asarray(self.tree.predict(X), dtype=np.int64)


def grow_gate(
    data: Dataset, rewards: FloatArray, weights: FloatArray, depth: int, min_leaf: int, seed: int
) -> Tree:
    """Grow a gate tree: a regression tree of the advantages, in each leaf the tree with the largest mean reward.

    An advantage is a reward less the mean of the sample's rewards: what all trees have in common, such as a sample
    that none predicts, is nothing to split for.

    Parameters
    ----------
    data
        (n, p) features, not scaled.
    rewards, weights
        (n, B) rewards, and (n,) weights of the samples.
    depth
        Number of levels of splits, at least 1.
    min_leaf
        Least number of samples in a leaf.
    seed
        Seed of the choice among equally good splits.

    Returns
    -------
    Tree
        For a :class:`TreeGate`.
    """
    advantages = rewards - rewards.mean(axis=1, keepdims=True)
    learner = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=min_leaf, random_state=seed)
    topology = Topology(depth)
    grown = from_scikit_learn(
        learner.fit(data.X, advantages, sample_weight=weights),
        replace(data, task="regression", classes=()),
        topology,
    )
    leaves = grown.apply(data.X) - topology.n_branches
    sums = np.zeros((topology.n_leaves, rewards.shape[1]))
    rewards = weights[:, None] * rewards
    np.add.at(sums, leaves, rewards)
    names = tuple(f"tree {a}" for a in range(rewards.shape[1]))
    return replace(grown, leaf_value=_best_of(sums, rewards.sum(axis=0)), classes=names)


@dataclass(frozen=True, eq=False)
class NeighbourGate:
    """Local accuracy: the tree with the largest mean reward over the nearest training samples.

    Attributes
    ----------
    scale
        Units in which Euclidean distances are taken.
    neighbours
        scikit-learn's index of the training samples.
    rewards
        (n, B) rewards of the training samples, times their weights.
    """

    scale: Standardised
    neighbours: NearestNeighbors
    rewards: FloatArray

    @classmethod
    def of(cls, X: FloatArray, rewards: FloatArray, weights: FloatArray, k: int) -> NeighbourGate:
        """Keep (n, p) samples, (n, B) rewards, (n,) weights; k neighbours, all where there are fewer samples."""
        scale = Standardised.of(X, weights)
        neighbours = NearestNeighbors(n_neighbors=min(k, len(X))).fit(scale(X))
        return cls(scale, neighbours, weights[:, None] * rewards)

    def select(self, X: FloatArray) -> IntArray:
        """Return (n,) best trees around the samples."""
        nearest = self.neighbours.kneighbors(self.scale(X), return_distance=False)
        # One neighbour after the other: all at once, the rewards of 5000 samples take 50 MB.
        sums = np.zeros((len(X), self.rewards.shape[1]))
        for column in nearest.T:
            sums += self.rewards[column]
        return _best_of(sums, self.rewards.sum(axis=0))
