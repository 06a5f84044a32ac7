r"""Losses of leaves: what samples lose under a prediction, which one is best, and the sums that say it.

A leaf loses :math:`\sum_i w_i \ell(f, y_i)` over its samples, with one prediction f: a label, a number, or a vector of
these. Where that depends on the samples by sums of a few statistics alone, a search adds and subtracts these sums
(:meth:`LeafLoss.of_sums`):

============ ================================================== ============================= =====================
loss         of a sample                                        statistics of a sample        of a leaf
============ ================================================== ============================= =====================
errors       :math:`C_{y f}`, 1 where :math:`f \ne y`           :math:`w C_{y k}`             :math:`\min_k s_k`
table        :math:`C_{i f}`                                    :math:`w C_{i k}`             :math:`\min_k s_k`
labels       :math:`\sum_t v_t [f_t \ne y_t]`                   :math:`w v_t [k \ne y_t]`     :math:`\sum_t \min_k`
squared      :math:`\|f - y\|^2`                                :math:`w, wy, w\|y\|^2`       :math:`q - \|s\|^2/w`
deviance     :math:`y \ln (y / f) - y + f`                      :math:`wc, wcd, wc\varphi(d)` see below
absolute     :math:`2 \tau (y - f)^+ + 2 (1 - \tau) (f - y)^+`  none: an order by target
prescription see :class:`PrescriptionLoss`
============ ================================================== ============================= =====================

with w, s and q the sums of the statistics, s a vector where y is one. By the deviance a leaf loses
:math:`q - w\,\varphi(s / w)`, with c the mean of all targets, d = y / c - 1 and :math:`\varphi(d)` =
:math:`(1 + d) \ln (1 + d) - d`, about :math:`d^2 / 2` (sums of :math:`y \ln y` would cancel where targets are nearly
equal). But for the prescription, the loss of a leaf is at least 0, and the least over f of a sum of losses that are:
more samples never lose less, which is all that bounds of searches ask for.

**A loss of one's own** is a class here, its case in :func:`mipforest.searches.leaf_sums.loss_of_sums`, and a
formulation that names it: ``docs/write_a_leaf_loss.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.model import LinearExpr, Model, QuadraticExpr, sum_squares

#: Class numbers, from 0, or values; (n,), or (n, T) of several targets.
Targets = FloatArray | IntArray


class LeafLoss(ABC):
    """What samples lose under the prediction of their leaf."""

    #: Its name, in results, certificates and messages.
    name: ClassVar[str]
    #: What measures it on other samples (:mod:`mipforest.tuning`); empty where nothing there does.
    measure: str = ""
    #: Targets and predictions that are c times as large lose c to this power times as much.
    degree: ClassVar[int] = 1
    #: Whether targets and predictions that are all greater by a constant lose the same.
    is_shifted: ClassVar[bool] = True
    #: Level of the quantile that a leaf predicts, by the absolute loss.
    level: float = 0.5
    #: Whether the loss of a leaf is a function of sums over its samples (:meth:`of_sums`).
    has_sums: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        """Return whether another loss charges the same."""
        if type(self) is not type(other):
            return False
        own, others = vars(self), vars(other)
        return all(np.array_equal(own[name], others[name]) for name in own)

    def __hash__(self) -> int:
        return hash(self.name)

    @abstractmethod
    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        """Return what samples lose, (n,) before their weights, with targets (n,), or (n, T) of several at once."""

    @abstractmethod
    def best_constant(self, y: Targets, weight: FloatArray) -> Any:
        """Return the constant prediction of least loss for targets with weights (n,), n >= 1: a number, or (T,)."""

    def subset(self, rows: IntArray) -> LeafLoss:
        """Return the same loss of some samples, by number; it holds nothing of single samples unless it says so."""
        return self

    def total(self, predictions: Targets | float, y: Targets, weight: FloatArray) -> float:
        """Return the sum over all samples, each times its weight (n,)."""
        return float(weight @ self.of(predictions, y))

    def baseline(self, y: Targets, weight: FloatArray) -> float:
        """Return the loss of the best single constant (Dunn's Lhat)."""
        return self.total(self.best_constant(y, weight), y, weight)

    def explained(self, predictions: FloatArray, y: Targets, weight: FloatArray) -> float:
        """Return the share of the loss of the best constant that predictions (n,) save, at most 1.

        Where all targets are equal, it is 1 for exact predictions and 0 for any others, as R2 is.
        """
        lost = self.total(predictions, y, weight)
        # Compared so, as the rounded mean of equal numbers may differ from them.
        if y.min() == y.max():
            return 1.0 if lost == 0 else 0.0
        return 1.0 - lost / self.baseline(y, weight)

    def centred(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return the targets less their means where that changes no loss: sums of them are exact then."""
        values = np.asarray(y, dtype=np.float64)
        return values - np.average(values, axis=0, weights=weight) if self.is_shifted else values

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
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

    def moved(self, statistics: FloatArray) -> FloatArray:
        """Return (n,) the most that adding each sample changes the loss of a leaf by; infinite where nothing bounds it.

        Parameters
        ----------
        statistics
            (n, V) of the samples.
        """
        return np.full(len(statistics), np.inf)


class LabelLoss(LeafLoss):
    """A loss of leaves that predict labels, each numbered from 0: what every label costs each sample.

    Statistics are these costs, target by target as many; a leaf costs the sum over the targets of the least sum.
    """

    degree = 0
    is_shifted = False
    #: Number of labels that a leaf predicts.
    n_labels: int = 1

    @abstractmethod
    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return (n, T K) what predicting each label of each target costs each sample, at least 0."""

    def baseline(self, y: Targets, weight: FloatArray) -> float:
        return float(self.of_sums(self.statistics(y, weight).sum(axis=0), 0.0))

    def best_constant(self, y: Targets, weight: FloatArray) -> Any:
        """Return the cheapest label, the first of several, or that of each target (T,)."""
        best = self._by_target(self.statistics(y, weight).sum(axis=0)).argmin(axis=-1)
        return best.astype(np.float64) if y.ndim > 1 else int(best[0])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        # One class after the other, and one target: numpy takes long along short axes.
        by_target: FloatArray = reduce(np.minimum, np.moveaxis(self._by_target(sums), -1, 0))
        return np.maximum(0.0, by_target[..., 0] if self.n_labels == 1 else by_target.sum(axis=-1))

    def moved(self, statistics: FloatArray) -> FloatArray:
        return np.asarray(self._by_target(statistics).max(axis=-1).sum(axis=-1))

    def _by_target(self, sums: FloatArray) -> FloatArray:
        """Return (..., T, K) sums (..., T K)."""
        return sums.reshape(*sums.shape[:-1], self.n_labels, sums.shape[-1] // self.n_labels)


class ClassLoss(LabelLoss):
    """Wrong classes, or what is charged for them: Dunn's errors, (2.15) to (2.22) of his thesis.

    Parameters
    ----------
    costs
        (K, K) cost of predicting the second class for a sample of the first, at least 0; unless given, 1 for every
        wrong prediction.
    n_classes
        Number of classes where no costs are given; at least one more than the last class of some targets, and 2.
    """

    name = "errors"

    def __init__(self, costs: FloatArray | None = None, n_classes: int = 2) -> None:
        self.costs, self.n_classes = costs, n_classes
        self.measure = "error" if costs is None else "cost"

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        if self.costs is None:
            return np.asarray(predictions != y, dtype=np.float64)
        return np.asarray(self.costs[y.astype(np.int64), np.asarray(predictions, dtype=np.int64)])

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return (n, K) what predicting each class costs."""
        labels = np.asarray(y, dtype=np.int64)
        costs = self.costs
        if costs is None:
            costs = 1.0 - np.eye(max(self.n_classes, int(labels.max(initial=0)) + 1))
        return np.asarray(weight[:, None] * costs[labels])


class TableLoss(LabelLoss):
    """What each label costs each sample by itself, as a decision that forgoes a reward.

    Parameters
    ----------
    table
        (n, K) costs, at least 0. The target of a sample is a label that costs it least.
    """

    name = "table"
    measure = "cost"

    def __init__(self, table: FloatArray) -> None:
        self.table = table

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        labels = np.broadcast_to(np.asarray(predictions, dtype=np.int64), y.shape)
        return np.asarray(self.table[np.arange(len(y)), labels])

    def subset(self, rows: IntArray) -> TableLoss:
        return TableLoss(self.table[rows])

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return the table, each row times its weight."""
        return np.asarray(weight[:, None] * self.table)


class ErrorLoss(LeafLoss):
    """A loss of errors, prediction minus target, that rows of any model may state."""

    @abstractmethod
    def of_errors(self, errors: FloatArray) -> FloatArray:
        """Return the loss of each error, before weights."""

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        return self.of_errors(np.asarray(predictions - y, dtype=np.float64))

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
    measure = "mae"
    has_sums = False

    def __init__(self, level: float = 0.5) -> None:
        self.level = level

    def of_errors(self, errors: FloatArray) -> FloatArray:
        lost: FloatArray = 2.0 * np.where(errors < 0.0, self.level, 1.0 - self.level) * np.abs(errors)
        return lost

    def best_constant(self, y: Targets, weight: FloatArray) -> float:
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
    measure = "mse"
    degree = 2

    def of_errors(self, errors: FloatArray) -> FloatArray:
        squares = errors**2
        return np.asarray(squares if errors.ndim < 2 else squares.sum(axis=1))

    def best_constant(self, y: Targets, weight: FloatArray) -> Any:
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

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        rate = np.broadcast_to(np.asarray(predictions, dtype=np.float64), y.shape)
        away = np.abs(y - rate) > SMALL * rate
        ratio = np.divide(y, rate, out=np.ones(y.shape), where=away & (y > 0.0) & (rate > 0.0))
        lost: FloatArray = np.maximum(0.0, y * np.log(ratio) - y + rate)
        near = np.divide(y - rate, rate, out=np.zeros(y.shape), where=~away & (rate > 0.0))
        lost = np.where(away, lost, rate * excess(np.asarray(near, dtype=np.float64)))
        return np.where((rate <= 0.0) & (y > 0.0), np.inf, lost)

    def best_constant(self, y: Targets, weight: FloatArray) -> float:
        return float(np.average(y, weights=weight))

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        mean = float(np.average(y, weights=weight)) or 1.0
        away = np.asarray((y - mean) / mean, dtype=np.float64)
        return np.column_stack([mean * weight, mean * weight * away, mean * weight * excess(away)])

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        w, s, q = sums[..., 0], sums[..., 1], sums[..., 2]
        away = np.divide(s, w, out=np.zeros(w.shape), where=w > least)
        return np.maximum(0.0, q - w * excess(away))


class LabelsLoss(LabelLoss):
    """Wrong labels of several targets, numbered from 0 in each, by what an error in each target is charged.

    Parameters
    ----------
    target_weight
        (T,) charges, at least 0.
    """

    name = "labels"

    def __init__(self, target_weight: FloatArray) -> None:
        self.target_weight = target_weight
        self.n_labels = len(target_weight)

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        return np.asarray((predictions != y) @ self.target_weight)

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return (n, T K) costs of predicting each label, target by target, with K that of the most labels.

        A label that no sample of a target has costs each its charge: it is never the only best one.
        """
        labels = np.arange(max(2, int(y.max(initial=0)) + 1))
        wrong = (y[:, :, None] != labels) * self.target_weight[:, None]
        return np.asarray(weight[:, None] * wrong.reshape(len(y), y.shape[1] * len(labels)))


class PrescriptionLoss(LeafLoss):
    r"""Outcomes under what a leaf prescribes, and the squared errors of its estimates: (5.8) of Dunn's thesis.

    A leaf predicts a treatment k and the outcome :math:`f_t` of each treatment. A sample that had the treatment t and
    the outcome y, both known, loses

    .. math::

        \mu \begin{cases} y & t = k \\ f_k & t \ne k \end{cases} + (1 - \mu) (y - f_t)^2

    **Sums** of 1, w, wy and :math:`wy^2` over the samples of each treatment say the least loss, with the means for
    :math:`f` and the least mean of a treatment that enough samples had. More samples may lose less.

    Parameters
    ----------
    treatment
        (n,) treatment that each sample had, from 0.
    mu
        Weight of the outcomes, 0 to 1.
    n_treatment
        Least number of samples of a leaf that had the treatment it prescribes.
    """

    name = "prescription"
    measure = "objective"
    is_shifted = False

    def __init__(self, treatment: IntArray, mu: float = 0.0, n_treatment: int = 1) -> None:
        self.treatment, self.mu, self.n_treatment = treatment, mu, n_treatment

    @property
    def n_treatments(self) -> int:
        """Number of treatments."""
        return int(self.treatment.max()) + 1

    def subset(self, rows: IntArray) -> PrescriptionLoss:
        """Return the same loss of some samples; as large a share of them has to have had a treatment."""
        share = len(rows) / len(self.treatment)
        return PrescriptionLoss(self.treatment[rows], self.mu, max(1, round(share * self.n_treatment)))

    def of(self, predictions: Targets | float, y: Targets) -> FloatArray:
        """Return what samples lose; ``predictions`` (1 + m,) or (n, 1 + m) are a treatment and estimates."""
        given = np.broadcast_to(np.asarray(predictions), (len(y), np.shape(predictions)[-1]))
        rows, prescribed, estimates = np.arange(len(y)), given[:, 0].astype(np.int64), given[:, 1:]
        under = np.where(self.treatment == prescribed, y, estimates[rows, prescribed])
        return np.asarray(self.mu * under + (1 - self.mu) * (y - estimates[rows, self.treatment]) ** 2)

    def best_constant(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return (1 + m,) the best treatment and estimates, NaN for treatments that no sample had."""
        had, size, total, _ = np.split(self.statistics(y, weight).sum(axis=0), 4)
        mean = np.divide(total, size, out=np.full(len(size), np.nan), where=had > 0)
        return np.concatenate([[np.where(had >= self.n_treatment, mean, np.inf).argmin()], mean])

    def statistics(self, y: Targets, weight: FloatArray) -> FloatArray:
        """Return (n, 4 m) the numbers 1, w, wy and wy^2, each in the place of the treatment that a sample had."""
        had = (self.treatment[:, None] == np.arange(self.n_treatments)).astype(np.float64)
        return np.column_stack(
            [times[:, None] * had for times in (had.sum(1), weight, weight * y, weight * y**2)]
        )

    def of_sums(self, sums: FloatArray, least: float) -> FloatArray:
        """Return the loss by the sums (..., 4 m); infinite where no treatment may be prescribed."""
        had, size, total, squares = np.split(sums, 4, axis=-1)
        mean = np.divide(total, size, out=np.full(total.shape, np.inf), where=had > 0)
        best = np.where(had >= self.n_treatment, size.sum(axis=-1, keepdims=True) * mean, np.inf).min(axis=-1)
        error = np.maximum(0.0, squares - np.where(had > 0, mean, 0.0) * total).sum(axis=-1)
        # 0 times infinity is no number: what too few samples had is not prescribed for any mu.
        outcomes = np.where(np.isfinite(best), self.mu * np.where(np.isfinite(best), best, 0.0), np.inf)
        return np.asarray(outcomes + (1 - self.mu) * error)


def error_loss(name: str, level: float = 0.5) -> ErrorLoss:
    """Return the loss ``"squared"``, or ``"absolute"`` with the level of its quantile."""
    losses = {PinballLoss.name: PinballLoss(level), SquaredLoss.name: SquaredLoss()}
    return losses[name]
