"""How well a tree predicts: accuracy of classes; R2, MSE and MAE of real values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray


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
