"""A policy network in numpy: probabilities of actions whose rewards are known, trained by gradients of their logits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from mipforest.arrays import FloatArray, IntArray

Objective = Literal["expected", "sampled"]
Entropy = Literal["full", "printed"]

#: Two hidden layers of so many units.
HIDDEN = 64
#: Samples of a step, and Adam's learning rate (Kingma and Ba 2015), which falls to 0 along a cosine.
BATCH, LEARNING_RATE = 128, 1e-3
#: Adam's decay of the moments of gradients, and what keeps it from dividing by 0.
MOMENTS, SMALLEST = (0.9, 0.999), 1e-8
#: Probabilities below count as this much in logarithms: a policy that has settled has exact zeros.
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
