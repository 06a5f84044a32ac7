r"""Losses of a linear classifier at a branch node, as functions of the score :math:`w^\top x_i + b` and the label.

A loss states itself in a model by a slack :math:`\xi_i` per sample, which the objective minimises, gives its value, and
says from which margin on it vanishes (``flat_from``): then, once all scores lie beyond, moving ``b`` back to there
changes nothing, which bounds ``b``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import LinearExpr, Model, VarArray

#: A big-M: one number, or one per sample and node.
BigM = float | FloatArray


class BranchLoss(ABC):
    """What an objective charges for the scores of samples with labels -1 and +1."""

    @property
    @abstractmethod
    def flat_from(self) -> float:
        """Smallest margin from which on the loss is 0: ``score >= flat_from`` for +1, ``<= -flat_from`` for -1."""

    @abstractmethod
    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        """Loss of each sample; ``scores`` and ``sign`` broadcast."""

    @abstractmethod
    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        """Make the block ``xi`` of slacks."""

    @abstractmethod
    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        """Write the rows that keep slacks at the loss of the scores.

        Parameters
        ----------
        m
            The model.
        xi, score, away
            (n, nodes) slacks, scores, and 1 where a sample is elsewhere (else 0).
        sign
            (n, 1) labels.
        M
            What :meth:`big_ms` gives, or constants.
        over
            Index sets that label the rows: samples and nodes.
        """

    @abstractmethod
    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        """Slack that each row of a sample elsewhere needs, from bounds (n, nodes) on the size of scores."""


@dataclass(frozen=True, eq=False)
class PiecewiseLinearLoss(BranchLoss):
    r"""The largest of 0 and some falling lines of the margin ``v = y (w.x + b)``: ``max(0, a_k + d_k v)``.

    Attributes
    ----------
    intercepts, slopes
        (K,) lines; every slope is below 0.
    row
        Name of the rows; with several lines the number of the line is added.
    """

    intercepts: FloatArray
    slopes: FloatArray
    row: str = "loss"

    @property
    def flat_from(self) -> float:
        """The largest zero of the lines."""
        return float((-self.intercepts / self.slopes).max())

    def of_margin(self, v: FloatArray) -> FloatArray:
        """Loss at margins."""
        total = np.zeros(np.shape(v))
        for intercept, slope in zip(self.intercepts, self.slopes, strict=True):
            total = np.maximum(total, intercept + slope * v)
        return total

    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        """Loss of each sample."""
        return self.of_margin(sign * scores)

    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        """Make the block ``xi``."""
        return m.nonnegative("xi", over)

    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        """Write the rows."""
        lines = zip(self.intercepts, self.slopes, M, strict=True)
        for k, (intercept, slope, big_m) in enumerate(lines):
            name = self.row if len(self.slopes) == 1 else f"{self.row}_{k}"
            m.add(name, -slope * (sign * score) >= intercept - xi - big_m * away, over=over)

    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        """Slack that each row needs."""
        return tuple(a - slope * score for a, slope in zip(self.intercepts, self.slopes, strict=True))


#: ``max(0, 1 - v)``.
HINGE = PiecewiseLinearLoss(np.array([1.0]), np.array([-1.0]), row="margin")


@dataclass(frozen=True)
class Misclassification(BranchLoss):
    """1 for a sample that the sign of its score does not give its label.

    Scores of samples predicted -1 must be at most ``-epsilon``, as a score of 0 predicts +1.

    Attributes
    ----------
    epsilon
        Gap that stands for the strict inequality.
    """

    epsilon: float

    @property
    def flat_from(self) -> float:
        """Epsilon: it satisfies both signs."""
        return self.epsilon

    def values(self, scores: FloatArray, sign: FloatArray) -> FloatArray:
        """Loss of each sample."""
        wrong: FloatArray = ((scores >= 0) != (sign > 0)).astype(float)
        return wrong

    def slack(self, m: Model, over: tuple[object, ...]) -> VarArray:
        """Make the block ``xi``."""
        return m.binary("xi", over)

    def declare(
        self, m: Model, xi: LinearExpr | VarArray, score: LinearExpr, sign: FloatArray,
        away: LinearExpr, M: tuple[BigM, ...], over: tuple[object, ...],
    ) -> None:  # fmt: skip
        """Write the rows."""
        least = np.where(sign < 0, self.epsilon, 0.0)
        m.add("predict", sign * score >= least - M[0] * (xi + away), over=over)

    def big_ms(self, score: FloatArray) -> tuple[BigM, ...]:
        """Slack that each row needs."""
        return (score + self.epsilon,)
