"""Losses of the leaves of a regression tree: absolute and squared errors, as weighted sums over samples."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, sum_squares


class LeafLoss(ABC):
    """A loss as a function of the errors, prediction minus target."""

    @abstractmethod
    def total(self, errors: FloatArray, weight: FloatArray) -> float:
        """Return the sum over all samples, each times its weight (n,)."""

    @abstractmethod
    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the constant prediction of least loss for targets (n,) with weights (n,), n >= 1."""

    @abstractmethod
    def greatest_error(self, total: float, weight: FloatArray) -> float:
        """Return the greatest absolute error of one sample when all together have at most a total loss."""

    @abstractmethod
    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> LinearExpr | QuadraticExpr:
        """Write the total loss of errors (n,) with weights (n,) for an objective to be minimised."""

    @abstractmethod
    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the blocks that :meth:`declare` makes."""

    def baseline(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the loss of the best single constant (Dunn's Lhat)."""
        return self.total(self.best_constant(y, weight) - y, weight)


class AbsoluteLoss(LeafLoss):
    """Sum of absolute errors; rows (4.4), (4.5) of Dunn's thesis."""

    def total(self, errors: FloatArray, weight: FloatArray) -> float:
        return float((weight * np.abs(errors)).sum())

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the weighted median, midway between both middle targets."""
        order = np.argsort(y, kind="stable")
        below = np.cumsum(weight[order])
        first, last = np.searchsorted(below, below[-1] / 2), np.searchsorted(below, below[-1] / 2, "right")
        return float((y[order[first]] + y[order[last]]) / 2)

    def greatest_error(self, total: float, weight: FloatArray) -> float:
        return total / float(weight.min())

    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> LinearExpr:
        L = m.nonnegative("L", errors.shape)
        m.add("loss_above", L >= errors)  # (4.4)
        m.add("loss_below", L >= -errors)  # (4.5)
        total: LinearExpr = weight @ L
        return total

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {"L": np.abs(errors)}


class SquaredLoss(LeafLoss):
    """Sum of squared errors, in the objective: the same optimum as with the quadratic row (4.6)."""

    def total(self, errors: FloatArray, weight: FloatArray) -> float:
        return float((weight * errors) @ errors)

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        return float(np.average(y, weights=weight))

    def greatest_error(self, total: float, weight: FloatArray) -> float:
        return float(np.sqrt(total / weight.min()))

    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> QuadraticExpr:
        return sum_squares(np.sqrt(weight) * errors)

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {}


#: The losses by name.
LOSSES: dict[str, LeafLoss] = {"absolute": AbsoluteLoss(), "squared": SquaredLoss()}
