"""Samples that go left with a probability: leaf probabilities, and the one backward pass behind every gradient.

Node t sends a sample left with the probability ``F(z) = 1 / (1 + exp(-gamma z))``, where ``z = a_t . x / p - mu_t``
over the p scaled features (Blanquero, Carrizosa, Molero-Rio, Romero Morales 2020). Arrays have one row per node, in
heap order, so that the nodes of a level are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Routing:
    """Samples on their ways through a tree.

    Attributes
    ----------
    gamma
        Steepness of the distribution function.
    left, right
        (|B|, n) probabilities of both sides; they sum to 1, and each is computed by itself, so that a tiny one is
        exact.
    reach
        By level, the (2^level, n) probability that a sample comes to each of its nodes; the last level are the leaves.
    """

    gamma: float
    left: FloatArray
    right: FloatArray
    reach: tuple[FloatArray, ...]

    @classmethod
    def of(cls, z: FloatArray, gamma: float) -> Routing:
        """Route samples by their (|B|, n) arguments of the distribution function."""
        left, right = expit(gamma * z), expit(-gamma * z)
        reach = [np.ones((1, z.shape[1]))]
        while (first := len(reach[-1]) - 1) < len(z):
            here = slice(first, 2 * first + 1)
            below = np.empty((2 * len(reach[-1]), z.shape[1]))
            below[0::2], below[1::2] = reach[-1] * left[here], reach[-1] * right[here]
            reach.append(below)
        return cls(gamma, left, right, tuple(reach))

    @property
    def leaves(self) -> FloatArray:
        """(|L|, n) probability that a sample comes to each leaf."""
        return self.reach[-1]

    def slope(self, payload: FloatArray, weights: FloatArray | float = 1.0) -> FloatArray:
        """Return the (|B|, n) derivative in z of ``sum_i weights_i sum_t P_it payload_ti``, P the leaf probabilities.

        Parameters
        ----------
        payload
            (|L|, n) what each leaf pays for a sample.
        weights
            (n,) weight of each sample in the sum, or one for all.
        """
        found = np.empty_like(self.left)
        value = payload
        for reach in reversed(self.reach[:-1]):
            here = slice(len(reach) - 1, 2 * len(reach) - 1)
            left, right, to_left, to_right = self.left[here], self.right[here], value[0::2], value[1::2]
            found[here] = (weights * self.gamma) * reach * left * right * (to_left - to_right)
            value = left * to_left + right * to_right
        return found
