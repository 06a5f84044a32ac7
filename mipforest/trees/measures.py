"""How well a tree predicts: accuracy; R2, MSE and MAE; Brier score, log loss and reliability."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray

#: Bins of equal width that a reliability table divides [0, 1] into.
N_BINS = 10


class ClassMeasures(NamedTuple):
    """Measures of predicted classes, shares between 0 and 1.

    Attributes
    ----------
    accuracy
        Share of samples that are predicted right.
    balanced_accuracy
        Mean, over the classes that occur, of the share of the class's samples that are predicted right.
    """

    accuracy: float
    balanced_accuracy: float


def class_measures(y: IntArray | FloatArray, predicted: IntArray | FloatArray) -> ClassMeasures:
    """Compare predicted classes with true ones, (n,) each; both measures are NaN for n = 0."""
    if len(y) == 0:
        return ClassMeasures(np.nan, np.nan)
    right = np.asarray(predicted == y)
    recalls = [float(right[y == k].mean()) for k in np.unique(y)]
    return ClassMeasures(float(right.mean()), float(np.mean(recalls)))


class RegressionMeasures(NamedTuple):
    """Measures of real predictions.

    Attributes
    ----------
    r2
        Coefficient of determination: 1 for exact predictions, 0 for the quality of the mean, negative below.
    mse
        Mean squared error, in squared units of the target.
    mae
        Mean absolute error, in units of the target.
    """

    r2: float
    mse: float
    mae: float


def regression_measures(y: FloatArray, predicted: FloatArray) -> RegressionMeasures:
    """Compare predictions with targets.

    Parameters
    ----------
    y, predicted
        (n,) targets and predictions, in the same units.

    Returns
    -------
    RegressionMeasures
        ``r2`` is 1 - sum (y - predicted)^2 / sum (y - mean y)^2. Where y is constant, and the divisor 0, it
        is 1 for exact predictions and 0 for any others, as in scikit-learn. All are NaN for n = 0.
    """
    if len(y) == 0:
        return RegressionMeasures(np.nan, np.nan, np.nan)
    error = y - predicted
    mse = float(np.mean(error**2))
    mae = float(np.mean(np.abs(error)))
    if y.min() == y.max():  # compared so, as the rounded mean of equal numbers may differ from them
        return RegressionMeasures(1.0 if mse == 0 else 0.0, mse, mae)
    return RegressionMeasures(1 - mse / float(np.mean((y - y.mean()) ** 2)), mse, mae)


@dataclass(frozen=True)
class ReliabilityBin:
    """The samples whose probability of the second class lies in one bin.

    Attributes
    ----------
    lower, upper
        The bin: probabilities above ``lower``, up to ``upper``; the first bin holds 0 too.
    count
        Number of samples, at least 1.
    predicted
        Their mean probability of the second class.
    observed
        Share of them that are of the second class: near ``predicted`` where the tree is well calibrated.
    """

    lower: float
    upper: float
    count: int
    predicted: float
    observed: float


@dataclass(frozen=True)
class Reliability:
    """A reliability table: the bins that hold samples, probabilities ascending."""

    bins: tuple[ReliabilityBin, ...] = ()

    def to_list(self) -> list[dict[str, Any]]:
        """Return the bins as JSON takes them."""
        return [asdict(part) for part in self.bins]


class CalibrationMeasures(NamedTuple):
    """Measures of the probabilities of two classes.

    Attributes
    ----------
    brier_score
        Mean squared difference between the probability of the second class and what happened (1 or 0): 0 for
        certain and right, 0.25 for a probability of 1/2 throughout, at most 1.
    log_loss
        Mean of -log of the probability given to the true class: 0 is best, log 2 = 0.693 for 1/2 throughout.
        Probabilities below the resolution of doubles count as that, 2.2e-16, so it stays finite.
    reliability
        The reliability table.
    """

    brier_score: float
    log_loss: float
    reliability: Reliability


def calibration_measures(y: IntArray | FloatArray, probability: FloatArray) -> CalibrationMeasures:
    """Compare probabilities with classes.

    Parameters
    ----------
    y
        (n,) class numbers, 0 and 1.
    probability
        (n, 2) probabilities of the classes, as :meth:`Tree.predict_proba
        <mipforest.trees.tree.Tree.predict_proba>` gives them.

    Returns
    -------
    CalibrationMeasures
        For n = 0, NaN and an empty table.
    """
    if len(y) == 0:
        return CalibrationMeasures(np.nan, np.nan, Reliability())
    # Loading scikit-learn's metrics takes longer than drawing a tree.
    from sklearn.metrics import brier_score_loss, log_loss

    second = probability[:, 1]
    return CalibrationMeasures(
        float(brier_score_loss(y, second, pos_label=1)),
        float(log_loss(y, probability, labels=[0, 1])),
        reliability(y, second),
    )


def reliability(y: IntArray | FloatArray, probability: FloatArray) -> Reliability:
    """Put samples into ten bins of equal width by their probability, and compare it with what happened.

    Up to rounding, the bins are those of scikit-learn's ``calibration_curve``, which gives no counts.

    Parameters
    ----------
    y
        (n,) class numbers, 0 and 1.
    probability
        (n,) probabilities of class 1.
    """
    edges = np.arange(N_BINS + 1) / N_BINS
    position = np.searchsorted(edges[1:-1], probability)
    counts, predicted, observed = (
        np.bincount(position, weights, minlength=N_BINS) for weights in (None, probability, y)
    )
    return Reliability(
        tuple(
            ReliabilityBin(
                float(edges[k]),
                float(edges[k + 1]),
                int(counts[k]),
                float(predicted[k] / counts[k]),
                float(observed[k] / counts[k]),
            )
            for k in np.flatnonzero(counts)
        )
    )
