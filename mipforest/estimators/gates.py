"""Gates: rules that choose one tree of a forest for each sample, by the rewards of the trees on training samples.

Rewards are (n, B) numbers in [-1, 1]: what each sample pays for each of the B trees. All of them are known, so a gate
is a policy with full information, not a bandit. A sample's rewards count as often as it weighs; weights are (n,) and
positive. One gate is a policy network in numpy: probabilities of trees, trained by gradients of their logits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeRegressor

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
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
    """Return (n, B) rewards that say nothing of the samples that a tree was grown on.

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


Objective = Literal["expected", "sampled"]
Entropy = Literal["full", "printed"]

#: Two hidden layers of so many units.
HIDDEN = 64
#: Samples of a step, and Adam's learning rate (Kingma and Ba 2015), which falls to 0 along a cosine.
BATCH, LEARNING_RATE = 128, 1e-3
#: Adam's decay of the moments of gradients, and what keeps it from dividing by 0.
MOMENTS, SMALLEST = (0.9, 0.999), 1e-8
#: Probabilities below count as this much in logarithms: a policy that has converged has exact zeros.
LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True, eq=False)
class Standardised:
    """Features in standard deviations of the training samples; constant ones are 0.

    Attributes
    ----------
    mean, deviation
        (p,) of the training samples; the deviation of a constant feature is 1.
    """

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, X: FloatArray, weights: FloatArray) -> Standardised:
        """Learn mean and deviation of (n, p) samples with (n,) weights."""
        mean = np.average(X, axis=0, weights=weights)
        deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        # The deviation of equal large numbers is rounding, not variation.
        return cls(mean, np.where(np.ptp(X, axis=0) > 0, deviation, 1.0))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return (n, p) samples in these units."""
        scaled: FloatArray = (X - self.mean) / self.deviation
        return scaled


def softmax(logits: FloatArray) -> FloatArray:
    """Return (n, B) probabilities of (n, B) logits."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: FloatArray = shifted / shifted.sum(axis=1, keepdims=True)
    return probabilities


def policy_objective(logits: FloatArray, rewards: FloatArray, weight: float, entropy: Entropy) -> float:
    """Return the mean over samples of expected reward plus ``weight`` times entropy.

    Parameters
    ----------
    logits
        (n, B) logits of the policy.
    rewards
        (n, B) rewards.
    weight
        Weight of the entropy, at least 0.
    entropy
        ``"full"``: -sum_a p_a log p_a. ``"printed"``: the sum of G(p_a) = -(p_a^2 / 2) log p_a - p_a^2 / 4, whose
        gradient is the expected one of the thesis' term, the summand of the drawn tree alone. G is convex below
        exp(-2): among many trees that term concentrates the policy.
    """
    p = softmax(logits)
    logs = np.log(np.maximum(p, LEAST_PROBABILITY))
    term = -p * logs if entropy == "full" else -(p**2) * (logs / 2 + 0.25)
    return float((p * rewards + weight * term).sum(axis=1).mean())


def policy_gradient(
    logits: FloatArray,
    rewards: FloatArray,
    weight: float,
    entropy: Entropy,
    drawn: IntArray | None = None,
) -> FloatArray:
    """Compute the gradient, by the logits, of every sample's term of :func:`policy_objective`, or an estimate of it.

    Parameters
    ----------
    logits, rewards, weight, entropy
        As for :func:`policy_objective`.
    drawn
        (n,) trees drawn from the policy, whose rewards alone are used: with ``"printed"`` minus the gradient of the
        thesis' loss. ``None`` for the expectation over all trees.

    Returns
    -------
    FloatArray
        (n, B) partial derivatives.
    """
    p = softmax(logits)
    slope = -(np.log(np.maximum(p, LEAST_PROBABILITY)) + 1) * (1.0 if entropy == "full" else p)
    if drawn is None:
        return _through_softmax(p, rewards + weight * slope)
    rows = np.arange(len(p))
    gain = rewards[rows, drawn]
    if entropy == "printed":
        gain = gain + weight * slope[rows, drawn]
    gradient = -gain[:, None] * p
    gradient[rows, drawn] += gain
    return gradient + weight * _through_softmax(p, slope) if entropy == "full" else gradient


def _through_softmax(p: FloatArray, by_probability: FloatArray) -> FloatArray:
    """Return the gradient by logits of what has the given gradient by probabilities."""
    gradient: FloatArray = p * (by_probability - (p * by_probability).sum(axis=1, keepdims=True))
    return gradient


@dataclass(frozen=True, eq=False)
class NetworkGate:
    """A network from features to probabilities of trees; the most probable one is chosen.

    Attributes
    ----------
    scale
        Units of the inputs.
    weights, constants
        Of the layers: (p, 64), (64, 64), (64, B), and (64,), (64,), (B,). Hidden units are rectified.
    """

    scale: Standardised
    weights: list[FloatArray]
    constants: list[FloatArray]

    def logits(self, X: FloatArray) -> FloatArray:
        """Return (n, B) logits."""
        return self._layers(self.scale(X))[-1]

    def select(self, X: FloatArray) -> IntArray:
        """Return (n,) most probable trees."""
        return np.asarray(self.logits(X).argmax(axis=1), dtype=np.int64)

    def _layers(self, scaled: FloatArray) -> list[FloatArray]:
        """Return the inputs, the outputs of the hidden layers, and the logits."""
        layers = [scaled]
        for depth, (w, b) in enumerate(zip(self.weights, self.constants, strict=True)):
            z = layers[-1] @ w + b
            layers.append(np.maximum(z, 0.0) if depth < len(self.weights) - 1 else z)
        return layers

    def _gradients(self, layers: list[FloatArray], by_logits: FloatArray) -> list[FloatArray]:
        """Return the gradients of all weights, then of all constants."""
        by_weights: list[FloatArray] = []
        by_constants: list[FloatArray] = []
        back = by_logits
        for depth in reversed(range(len(self.weights))):
            by_weights.insert(0, layers[depth].T @ back)
            by_constants.insert(0, back.sum(axis=0))
            if depth > 0:
                back = (back @ self.weights[depth].T) * (layers[depth] > 0)
        return by_weights + by_constants


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes
    ----------
    objective
        ``"expected"``: all rewards of a sample. ``"sampled"``: that of one tree drawn from the policy.
    entropy, weight
        As for :func:`policy_objective`.
    epochs
        Passes over the samples, at least 1.
    seed
        Seed of first weights, orders and draws.
    """

    objective: Objective = "expected"
    entropy: Entropy = "full"
    weight: float = 1e-4
    epochs: int = 300
    seed: int = 0


def train_network(X: FloatArray, rewards: FloatArray, weights: FloatArray, training: Training) -> NetworkGate:
    """Train a policy network by Adam on (n, p) features, (n, B) rewards and (n,) weights of the samples."""
    rng, scale = np.random.default_rng(training.seed), Standardised.of(X, weights)
    inputs, n = scale(X), len(X)
    shares = (weights / weights.mean())[:, None]
    sizes = [X.shape[1], HIDDEN, HIDDEN, rewards.shape[1]]
    # He, Zhang, Ren, Sun 2015; a small last layer lets the policy begin nearly uniform.
    spreads = [np.sqrt(2 / sizes[0]), np.sqrt(2 / HIDDEN), 0.01]
    initial = [rng.normal(0, spread, shape) for spread, shape in zip(spreads, pairwise(sizes), strict=True)]
    gate = NetworkGate(scale, initial, [np.zeros(size) for size in sizes[1:]])
    parameters = gate.weights + gate.constants
    first, second = ([np.zeros_like(one) for one in parameters] for _ in range(2))
    steps = training.epochs * -(-n // BATCH)
    step = 0
    for _ in range(training.epochs):
        order = rng.permutation(n)
        for start in range(0, n, BATCH):
            step += 1
            batch = order[start : start + BATCH]
            layers = gate._layers(inputs[batch])
            drawn = None
            if training.objective == "sampled":
                edges = softmax(layers[-1]).cumsum(axis=1)
                drawn = (edges < rng.random((len(batch), 1)) * edges[:, -1:]).sum(axis=1)
            gradient = policy_gradient(layers[-1], rewards[batch], training.weight, training.entropy, drawn)
            by_logits = shares[batch] * gradient / len(batch)
            rate = LEARNING_RATE * (1 + np.cos(np.pi * (step - 1) / steps)) / 2
            rate *= np.sqrt(1 - MOMENTS[1] ** step) / (1 - MOMENTS[0] ** step)
            for one, slope, m, v in zip(
                parameters, gate._gradients(layers, by_logits), first, second, strict=True
            ):
                m += (1 - MOMENTS[0]) * (slope - m)
                v += (1 - MOMENTS[1]) * (slope**2 - v)
                one += rate * m / (np.sqrt(v) + SMALLEST)
    return gate
