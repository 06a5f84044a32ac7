"""Losses of the leaves of a regression tree: absolute and squared errors, as sums over samples."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, sum_squares


class LeafLoss(ABC):
    """A loss as a function of the errors, prediction minus target."""

    @abstractmethod
    def total(self, errors: FloatArray) -> float:
        """Return the sum over all samples."""

    @abstractmethod
    def best_constant(self, y: FloatArray) -> float:
        """Return the constant prediction of least loss for targets (n,), n >= 1."""

    @abstractmethod
    def greatest_error(self, total: float) -> float:
        """Return the greatest absolute error of one sample when all together have at most a total loss."""

    @abstractmethod
    def declare(self, m: Model, errors: LinearExpr) -> LinearExpr | QuadraticExpr:
        """Write the total loss of errors (n,) for an objective to be minimised."""

    @abstractmethod
    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the blocks that :meth:`declare` makes."""

    def baseline(self, y: FloatArray) -> float:
        """Return the loss of the best single constant (Dunn's Lhat)."""
        return self.total(self.best_constant(y) - y)


class AbsoluteLoss(LeafLoss):
    """Sum of absolute errors; rows (4.4), (4.5) of Dunn's thesis."""

    def total(self, errors: FloatArray) -> float:
        return float(np.abs(errors).sum())

    def best_constant(self, y: FloatArray) -> float:
        return float(np.median(y))

    def greatest_error(self, total: float) -> float:
        return total

    def declare(self, m: Model, errors: LinearExpr) -> LinearExpr:
        L = m.nonnegative("L", errors.shape)
        m.add("loss_above", L >= errors)  # (4.4)
        m.add("loss_below", L >= -errors)  # (4.5)
        return L.sum()

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {"L": np.abs(errors)}


class SquaredLoss(LeafLoss):
    """Sum of squared errors, in the objective: the same optimum as with the quadratic row (4.6)."""

    def total(self, errors: FloatArray) -> float:
        return float(errors @ errors)

    def best_constant(self, y: FloatArray) -> float:
        return float(y.mean())

    def greatest_error(self, total: float) -> float:
        return float(np.sqrt(total))

    def declare(self, m: Model, errors: LinearExpr) -> QuadraticExpr:
        return sum_squares(errors)

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {}


#: The losses by name.
LOSSES: dict[str, LeafLoss] = {"absolute": AbsoluteLoss(), "squared": SquaredLoss()}
