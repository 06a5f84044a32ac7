r"""Losses of leaves that predict a number: what a sample loses, what a leaf predicts, and sums that say what it loses.

A leaf loses :math:`\sum_i w_i \ell(f, y_i)` over its samples, with one prediction f. Where that depends on the samples
by sums of a few statistics alone, a search adds and subtracts these sums (:meth:`LeafLoss.of_sums`):

======== ================================================== ========================= ========================
loss     of a sample                                        statistics of a sample    of a leaf
======== ================================================== ========================= ========================
squared  :math:`(f - y)^2`                                  :math:`w, w y, w y^2`     :math:`q - s^2 / w`
deviance :math:`y \ln (y / f) - y + f`                      :math:`w, w y, w y \ln y` :math:`q - s \ln (s / w)`
absolute :math:`2 \tau (y - f)^+ + 2 (1 - \tau) (f - y)^+`  none: an order by target
======== ================================================== ========================= ========================

with w, s and q the sums of the three statistics. Each is at least 0, and the least over f of a sum of such losses: more
samples never lose less, which is all that bounds of searches ask for.

**A loss of one's own** is a class here, its case in :func:`mipforest.searches.leaf_sums.loss_of_sums`, and a
formulation that names it: ``docs/write_a_leaf_loss.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, sum_squares


class LeafLoss(ABC):
    """What samples lose under the prediction of their leaf."""

    #: Name in :class:`~mipforest.problem.structure.TreeCharges`.
    name: ClassVar[str]
    #: Targets and predictions that are c times as large lose c to this power times as much.
    degree: ClassVar[int] = 1
    #: Whether targets and predictions that are all greater by a constant lose the same.
    is_shifted: ClassVar[bool] = True
    #: Whether the loss of a leaf is a function of sums over its samples (:meth:`of_sums`).
    has_sums: ClassVar[bool] = True

    @abstractmethod
    def of(self, predictions: FloatArray | float, y: FloatArray) -> FloatArray:
        """Return what samples (n,) lose, before their weights."""

    @abstractmethod
    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the constant prediction of least loss for targets (n,) with weights (n,), n >= 1."""

    def total(self, predictions: FloatArray | float, y: FloatArray, weight: FloatArray) -> float:
        """Return the sum over all samples (n,), each times its weight (n,)."""
        return float(weight @ self.of(predictions, y))

    def baseline(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the loss of the best single constant (Dunn's Lhat)."""
        return self.total(self.best_constant(y, weight), y, weight)

    def statistics(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return (n, 3) what is summed over the samples of a leaf; the first is the weight, the second w y."""
        return np.column_stack([weight, weight * y, weight * y**2])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        """Return the loss of leaves under their best predictions by their sums (..., 3).

        Parameters
        ----------
        sums
            Of the statistics.
        least
            Less weight than this is none that rounding has left.
        """
        raise NotImplementedError(f"the {self.name} loss is no function of sums")


class ErrorLoss(LeafLoss):
    """A loss of errors, prediction minus target, that rows of any model may state."""

    @abstractmethod
    def of_errors(self, errors: FloatArray) -> FloatArray:
        """Return the loss of each error, before weights."""

    def of(self, predictions: FloatArray | float, y: FloatArray) -> FloatArray:
        return self.of_errors(predictions - y)

    @abstractmethod
    def greatest_error(self, total: float, weight: FloatArray) -> float:
        """Return the greatest absolute error of one sample when all together have at most a total loss."""

    @abstractmethod
    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> LinearExpr | QuadraticExpr:
        """Write the total loss of errors (n,) with weights (n,) for an objective to be minimised."""

    @abstractmethod
    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the blocks that :meth:`declare` makes."""


#: Share of a weight by which rounding may change sums of weights.
ROUNDING = 1e-12


class PinballLoss(ErrorLoss):
    r"""Twice the pinball loss: :math:`2 \tau` times what a prediction is too low by, :math:`2 (1 - \tau)` too high.

    Its best constant is the quantile of level :math:`\tau`. At 1/2 it is the absolute loss: rows (4.4), (4.5) of Dunn's
    thesis.

    Parameters
    ----------
    level
        The level, above 0 and below 1.
    """

    name = "absolute"
    has_sums = False

    def __init__(self, level: float = 0.5) -> None:
        self.level = level

    def of_errors(self, errors: FloatArray) -> FloatArray:
        lost: FloatArray = 2.0 * np.where(errors < 0.0, self.level, 1.0 - self.level) * np.abs(errors)
        return lost

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the weighted quantile, midway between both targets where it is any of a range."""
        order = np.argsort(y, kind="stable")
        below = np.cumsum(weight[order])
        goal, missed = self.level * below[-1], ROUNDING * below[-1]
        first, last = np.searchsorted(below, goal - missed), np.searchsorted(below, goal + missed, "right")
        return float(y[order[first]] + y[order[min(int(last), len(y) - 1)]]) / 2

    def greatest_error(self, total: float, weight: FloatArray) -> float:
        return total / (2.0 * min(self.level, 1.0 - self.level) * float(weight.min()))

    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> LinearExpr:
        L = m.nonnegative("L", errors.shape, meaning="loss of a sample, or of a leaf")
        m.add("loss_above", L >= 2.0 * (1.0 - self.level) * errors)  # (4.4)
        m.add("loss_below", L >= -2.0 * self.level * errors)  # (4.5)
        total: LinearExpr = weight @ L
        return total

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {"L": self.of_errors(errors)}


class SquaredLoss(ErrorLoss):
    """Sum of squared errors, in the objective: the same optimum as with the quadratic row (4.6)."""

    name = "squared"
    degree = 2

    def of_errors(self, errors: FloatArray) -> FloatArray:
        return errors**2

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        return float(np.average(y, weights=weight))

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        return np.maximum(0.0, sums[..., 2] - sums[..., 1] ** 2 / np.maximum(sums[..., 0], least))

    def greatest_error(self, total: float, weight: FloatArray) -> float:
        return float(np.sqrt(total / weight.min()))

    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> QuadraticExpr:
        return sum_squares(np.sqrt(weight) * errors)

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {}


class PoissonLoss(LeafLoss):
    """Half the deviance of rates, weighted by exposure; infinite for a target above 0 where the rate is 0."""

    name = "deviance"
    is_shifted = False

    def of(self, predictions: FloatArray | float, y: FloatArray) -> FloatArray:
        rate = np.broadcast_to(predictions, y.shape)
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.divide(y, rate, out=np.ones(y.shape), where=y > 0.0)
        lost: FloatArray = np.maximum(0.0, y * np.log(ratio) - y + rate)
        return lost

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        return float(np.average(y, weights=weight))

    def statistics(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        return np.column_stack([weight, weight * y, weight * y * np.log(np.where(y > 0.0, y, 1.0))])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        w, s, q = np.maximum(sums[..., 0], least), sums[..., 1], sums[..., 2]
        rate = np.divide(s, w, out=np.ones_like(w), where=s > 0.0)
        return np.maximum(0.0, q - s * np.log(rate))


def error_loss(name: str, level: float = 0.5) -> ErrorLoss:
    """Return the loss ``"squared"``, or ``"absolute"`` with the level of its quantile."""
    losses = {PinballLoss.name: PinballLoss(level), SquaredLoss.name: SquaredLoss()}
    return losses[name]


def leaf_loss(name: str, level: float = 0.5) -> LeafLoss:
    """Return the loss of a name: that of :func:`error_loss`, or ``"deviance"``."""
    return PoissonLoss() if name == PoissonLoss.name else error_loss(name, level)
