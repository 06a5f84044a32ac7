r"""Losses of leaves that predict numbers, or several labels: what samples lose, best predictions, and sums that say it.

A leaf loses :math:`\sum_i w_i \ell(f, y_i)` over its samples, with one prediction f, a number or a vector. Where that
depends on the samples by sums of a few statistics alone, a search adds and subtracts these sums
(:meth:`LeafLoss.of_sums`):

======== ================================================= ============================= =============================
loss     of a sample                                       statistics of a sample        of a leaf
======== ================================================= ============================= =============================
squared  :math:`\|f - y\|^2`                               :math:`w, wy, w\|y\|^2`        :math:`q - \|s\|^2 / w`
deviance :math:`y \ln (y / f) - y + f`                     :math:`wc, wcd, wc\,\varphi(d)` :math:`q - w\,\varphi(s / w)`
labels   :math:`\sum_t v_t [f_t \ne y_t]`                  :math:`w v_t [k \ne y_t]_{tk}`  :math:`\sum_t \min_k s_{tk}`
absolute :math:`2 \tau (y - f)^+ + 2 (1 - \tau) (f - y)^+` none: an order by target
======== ================================================= ============================= =============================

with w, s and q the sums of the statistics, s a vector where y is one, c the mean of all targets, d = y / c - 1 and
:math:`\varphi(d) = (1 + d) \ln (1 + d) - d`, about :math:`d^2 / 2` (sums of :math:`y \ln y` would cancel where targets
are nearly equal). Each is at least 0, and the least over f of a sum of such losses: more samples never lose less, which
is all that bounds of searches ask for.

**A loss of one's own** is a class here, its case in :func:`mipforest.searches.leaf_sums.loss_of_sums`, and a
formulation that names it: ``docs/write_a_leaf_loss.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
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
        """Return what samples lose, (n,) before their weights, with targets (n,), or (n, T) of several at once."""

    @abstractmethod
    def best_constant(self, y: FloatArray, weight: FloatArray) -> Any:
        """Return the constant prediction of least loss for targets with weights (n,), n >= 1: a number, or (T,)."""

    def total(self, predictions: FloatArray | float, y: FloatArray, weight: FloatArray) -> float:
        """Return the sum over all samples, each times its weight (n,)."""
        return float(weight @ self.of(predictions, y))

    def baseline(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the loss of the best single constant (Dunn's Lhat)."""
        return self.total(self.best_constant(y, weight), y, weight)

    def explained(self, predictions: FloatArray, y: FloatArray, weight: FloatArray) -> float:
        """Return the share of the loss of the best constant that predictions (n,) save, at most 1.

        Where all targets are equal, it is 1 for exact predictions and 0 for any others, as R2 is.
        """
        lost = self.total(predictions, y, weight)
        # Compared so, as the rounded mean of equal numbers may differ from them.
        if y.min() == y.max():
            return 1.0 if lost == 0 else 0.0
        return 1.0 - lost / self.baseline(y, weight)

    def centred(self, y: FloatArray | IntArray, weight: FloatArray) -> FloatArray:
        """Return the targets less their means where that changes no loss: sums of them are exact then."""
        values = np.asarray(y, dtype=np.float64)
        return values - np.average(values, axis=0, weights=weight) if self.is_shifted else values

    def statistics(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return (n, V) what is summed over the samples of a leaf.

        Of numbers the first is the weight, up to a constant factor, and the last what a leaf loses less what its other
        sums take off.
        """
        each = y[:, None] if y.ndim == 1 else y
        return np.column_stack([weight, weight[:, None] * each, weight * (each**2).sum(axis=1)])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        """Return the loss of leaves under their best predictions by their sums (..., V).

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
        squares = errors**2
        return np.asarray(squares if errors.ndim < 2 else squares.sum(axis=1))

    def best_constant(self, y: FloatArray, weight: FloatArray) -> Any:
        mean = np.average(y, axis=0, weights=weight)
        return float(mean) if y.ndim == 1 else mean

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        taken_off = (sums[..., 1:-1] ** 2).sum(axis=-1) / np.maximum(sums[..., 0], least)
        return np.asarray(np.maximum(0.0, sums[..., -1] - taken_off))

    def greatest_error(self, total: float, weight: FloatArray) -> float:
        return float(np.sqrt(total / weight.min()))

    def declare(self, m: Model, errors: LinearExpr, weight: FloatArray) -> QuadraticExpr:
        return sum_squares(np.sqrt(weight) * errors)

    def encode(self, errors: FloatArray) -> dict[str, FloatArray]:
        return {}


#: Up to this size d, :func:`excess` is a sum of powers: beyond it the logarithm is exact enough.
SMALL = 1e-3


def excess(d: FloatArray) -> FloatArray:
    """Return (1 + d) ln(1 + d) - d, at least 0, of numbers that are at least -1, to the precision of doubles."""
    d = np.maximum(d, -1.0)
    series = d * d * (1 / 2 - d * (1 / 6 - d * (1 / 12 - d * (1 / 20 - d / 30))))
    far: FloatArray = (1.0 + d) * np.log1p(np.where(d > -1.0, d, 0.0)) - d
    return np.where(np.abs(d) < SMALL, series, far)


class PoissonLoss(LeafLoss):
    """Half the deviance of rates, weighted by exposure; infinite for a target above 0 where the rate is 0."""

    name = "deviance"
    is_shifted = False

    def of(self, predictions: FloatArray | float, y: FloatArray) -> FloatArray:
        rate = np.broadcast_to(np.asarray(predictions, dtype=np.float64), y.shape)
        away = np.abs(y - rate) > SMALL * rate
        ratio = np.divide(y, rate, out=np.ones(y.shape), where=away & (y > 0.0) & (rate > 0.0))
        lost: FloatArray = np.maximum(0.0, y * np.log(ratio) - y + rate)
        near = np.divide(y - rate, rate, out=np.zeros(y.shape), where=~away & (rate > 0.0))
        lost = np.where(away, lost, rate * excess(near))
        return np.where((rate <= 0.0) & (y > 0.0), np.inf, lost)

    def best_constant(self, y: FloatArray, weight: FloatArray) -> float:
        return float(np.average(y, weights=weight))

    def statistics(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        mean = float(np.average(y, weights=weight)) or 1.0
        away = (y - mean) / mean
        return np.column_stack([mean * weight, mean * weight * away, mean * weight * excess(away)])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        w, s, q = sums[..., 0], sums[..., 1], sums[..., 2]
        away = np.divide(s, w, out=np.zeros(w.shape), where=w > least)
        return np.maximum(0.0, q - w * excess(away))


class LabelsLoss(LeafLoss):
    """Wrong labels of several targets, numbered from 0 in each, by what an error in each target is charged.

    Parameters
    ----------
    target_weight
        (T,) charges, at least 0.
    """

    name = "labels"
    degree = 0
    is_shifted = False

    def __init__(self, target_weight: FloatArray) -> None:
        self.target_weight = target_weight

    def of(self, predictions: FloatArray | float, y: FloatArray) -> FloatArray:
        return np.asarray((predictions != y) @ self.target_weight)

    def best_constant(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the heaviest label of each target, the first of several."""
        heaviest = [np.bincount(of.astype(np.int64), weight).argmax() for of in y.T]
        return np.array(heaviest, dtype=np.float64)

    def statistics(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return (n, T K) costs of predicting each label, target by target, with K that of the most labels.

        A label that no sample of a target has costs each its charge: it is never the only best one.
        """
        labels = np.arange(max(2, int(y.max(initial=0)) + 1))
        wrong = (y[:, :, None] != labels) * self.target_weight[:, None]
        return np.asarray(weight[:, None] * wrong.reshape(len(y), y.shape[1] * len(labels)))

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        T = len(self.target_weight)
        blocks = sums.reshape(*sums.shape[:-1], T, sums.shape[-1] // T)
        return np.asarray(np.maximum(0.0, blocks.min(axis=-1).sum(axis=-1)))


def error_loss(name: str, level: float = 0.5) -> ErrorLoss:
    """Return the loss ``"squared"``, or ``"absolute"`` with the level of its quantile."""
    losses = {PinballLoss.name: PinballLoss(level), SquaredLoss.name: SquaredLoss()}
    return losses[name]


def leaf_loss(name: str, level: float = 0.5, target_weight: FloatArray | None = None) -> LeafLoss:
    """Return the loss of a name: that of :func:`error_loss`, ``"deviance"``, or ``"labels"`` with its charges (T,)."""
    if name == LabelsLoss.name and target_weight is not None:
        return LabelsLoss(target_weight)
    return PoissonLoss() if name == PoissonLoss.name else error_loss(name, level)
