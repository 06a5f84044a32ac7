"""How well a tree predicts or prescribes.

Accuracy, sensitivity and specificity; outcomes of prescriptions; R2, MSE and MAE; AUC, Brier score, log loss and
reliability.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray

#: (n,) weights of samples; 1 for each unless given.
Weights = FloatArray | None

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


def class_measures(
    y: IntArray | FloatArray, predicted: IntArray | FloatArray, weights: Weights = None
) -> ClassMeasures:
    """Compare predicted classes with true ones, (n,) each, with weights (1 unless given); NaN for n = 0."""
    if len(y) == 0:
        return ClassMeasures(np.nan, np.nan)
    right, n = np.asarray(predicted == y), np.ones(len(y)) if weights is None else weights
    recalls = [np.average(right[y == k], weights=n[y == k]) for k in np.unique(y)]
    return ClassMeasures(float(np.average(right, weights=n)), float(np.mean(recalls)))


class DiagnosticMeasures(NamedTuple):
    """Measures of predictions of two classes, as medicine states them; "positive" is the second class.

    Those without samples to count are NaN; a likelihood ratio is infinite where its divisor is 0.

    Attributes
    ----------
    sensitivity, specificity
        Share of the positive, and of the other samples that are predicted right.
    ppv, npv
        Predictive values: share of the samples predicted positive, and of those predicted otherwise, that are so.
    lr_plus, lr_minus
        Likelihood ratios: sensitivity / (1 - specificity), and (1 - sensitivity) / specificity.
    """

    sensitivity: float
    specificity: float
    ppv: float
    npv: float
    lr_plus: float
    lr_minus: float


def diagnostic_measures(
    y: IntArray | FloatArray, predicted: IntArray | FloatArray, weights: Weights = None
) -> DiagnosticMeasures:
    """Compare predictions of the classes 0 and 1 with true ones, (n,) each, with weights (1 unless given).

    Chapter 7 of J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, compares rules so.
    """
    n = np.ones(len(y)) if weights is None else weights
    right, positive = np.asarray(predicted == y), np.asarray(y == 1)
    true_positive, true_negative = n[right & positive].sum(), n[right & ~positive].sum()
    false_negative, false_positive = n[~right & positive].sum(), n[~right & ~positive].sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        sensitivity = true_positive / (true_positive + false_negative)
        specificity = true_negative / (true_negative + false_positive)
        ppv = true_positive / (true_positive + false_positive)
        npv = true_negative / (true_negative + false_negative)
        ratios = sensitivity / (1 - specificity), (1 - sensitivity) / specificity
    return DiagnosticMeasures(*map(float, (sensitivity, specificity, ppv, npv, *ratios)))


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


def regression_measures(y: FloatArray, predicted: FloatArray, weights: Weights = None) -> RegressionMeasures:
    """Compare predictions with targets.

    Parameters
    ----------
    y, predicted, weights
        (n,) targets and predictions, in the same units, and weights of the samples, 1 unless given.

    Returns
    -------
    RegressionMeasures
        ``r2`` is 1 - sum (y - predicted)^2 / sum (y - mean y)^2. Where y is constant, and the divisor 0, it
        is 1 for exact predictions and 0 for any others, as in scikit-learn. All are NaN for n = 0.
    """
    if len(y) == 0:
        return RegressionMeasures(np.nan, np.nan, np.nan)
    error = y - predicted
    n = np.ones(len(y)) if weights is None else weights
    mse = float(np.average(error**2, weights=n))
    mae = float(np.average(np.abs(error), weights=n))
    if y.min() == y.max():  # compared so, as the rounded mean of equal numbers may differ from them
        return RegressionMeasures(1.0 if mse == 0 else 0.0, mse, mae)
    spread = float(np.average((y - np.average(y, weights=n)) ** 2, weights=n))
    return RegressionMeasures(1 - mse / spread, mse, mae)


class LabelMeasures(NamedTuple):
    """Measures of the predicted labels of several targets.

    Attributes
    ----------
    label_accuracy
        Mean over the targets of the share of samples whose label is right: one minus the Hamming loss.
    exact_match
        Share of samples of which all labels are right (scikit-learn's subset accuracy).
    """

    label_accuracy: float
    exact_match: float


def measures_of_targets(
    y: FloatArray | IntArray, predicted: FloatArray | IntArray, weights: Weights, *, labels: bool
) -> RegressionMeasures | LabelMeasures:
    """Measure predictions (n, T) of several targets, labels or numbers.

    Parameters
    ----------
    y, predicted
        (n, T) class numbers, or values.
    weights
        (n,) weights of the samples, 1 unless given.
    labels
        Whether they are class numbers.

    Returns
    -------
    LabelMeasures or RegressionMeasures
        Of numbers the means over the targets, as scikit-learn's ``multioutput="uniform_average"``.
    """
    if labels:
        right = np.asarray(y == predicted)
        whole = right.all(axis=1)
        return LabelMeasures(
            float(np.average(right.mean(axis=1), weights=weights)), float(np.average(whole, weights=weights))
        )
    columns = zip(np.asarray(y, dtype=np.float64).T, np.asarray(predicted, dtype=np.float64).T, strict=True)
    each = np.array([regression_measures(true, found, weights) for true, found in columns])
    return RegressionMeasures(*map(float, each.mean(axis=0)))


class PrescriptionMeasures(NamedTuple):
    """Measures of a tree that prescribes, as far as samples with one known outcome each tell them.

    Attributes
    ----------
    observed_outcome
        Mean outcome of the treatments that the samples had.
    prescribed_outcome
        Mean outcome under the prescriptions: the known one where a sample had that treatment, else the tree's estimate.
        In training it is optimistic.
    followed
        Share of the samples that had what the tree prescribes.
    r2, mse, mae
        Of the estimates of the known outcomes, as :class:`RegressionMeasures`.
    """

    observed_outcome: float
    prescribed_outcome: float
    followed: float
    r2: float
    mse: float
    mae: float


def prescription_measures(
    y: FloatArray,
    treatments: IntArray,
    prescribed: IntArray,
    estimates: FloatArray,
    weights: Weights = None,
) -> PrescriptionMeasures:
    """Compare prescriptions and estimated outcomes with what is known.

    Parameters
    ----------
    y, treatments
        (n,) outcomes, and the treatments that led to them.
    prescribed, estimates
        (n,) treatments that a tree prescribes, and (n, m) outcomes that it estimates under each.
    weights
        (n,) weights of the samples, 1 unless given. All measures are NaN for n = 0.
    """
    if len(y) == 0:
        return PrescriptionMeasures(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan)
    rows, same = np.arange(len(y)), treatments == prescribed
    under = np.where(same, y, estimates[rows, prescribed])
    observed, expected, followed = (float(np.average(values, weights=weights)) for values in (y, under, same))
    return PrescriptionMeasures(
        observed, expected, followed, *regression_measures(y, estimates[rows, treatments], weights)
    )


class RewardMeasures(NamedTuple):
    """Measures of a tree that decides, for samples with a reward under each decision.

    Attributes
    ----------
    mean_reward, mean_reward_error
        Mean reward of the tree's decisions, and its standard error, NaN for one sample. In training it is optimistic.
    best_single_reward
        Highest mean reward of one decision for all samples.
    gain, gain_error
        What the mean reward is above that, and its standard error.
    highest_reward
        Mean of the highest reward of each sample: no decisions have more.
    """

    mean_reward: float
    mean_reward_error: float
    best_single_reward: float
    gain: float
    gain_error: float
    highest_reward: float


def reward_measures(rewards: FloatArray, decided: IntArray, weights: Weights = None) -> RewardMeasures:
    """Compare decisions with the best single one.

    Parameters
    ----------
    rewards
        (n, K) rewards of the decisions for each sample.
    decided
        (n,) numbers of the decisions of a tree.
    weights
        (n,) weights of the samples, 1 unless given. All measures are NaN for n = 0.
    """
    n = len(rewards)
    if n == 0:
        return RewardMeasures(*[np.nan] * 6)
    w = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    own, means = rewards[np.arange(n), decided], w @ rewards
    single = int(means.argmax())

    def error(values: FloatArray) -> float:
        # Of equal weights the sample's standard deviation, with n - 1, over the root of n.
        return float(np.sqrt(n / (n - 1) * ((w * (values - w @ values)) ** 2).sum())) if n > 1 else np.nan

    gained = own - rewards[:, single]
    return RewardMeasures(
        mean_reward=float(w @ own),
        mean_reward_error=error(own),
        best_single_reward=float(means[single]),
        gain=float(w @ gained),
        gain_error=error(gained),
        highest_reward=float(w @ rewards.max(axis=1)),
    )


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
    auc
        Area under the ROC curve of the probability of the second class (:func:`auc_of_scores`).
    brier_score
        Mean squared difference between the probability of the second class and what happened (1 or 0): 0 for
        certain and right, 0.25 for a probability of 1/2 throughout, at most 1.
    log_loss
        Mean of -log of the probability given to the true class: 0 is best, log 2 = 0.693 for 1/2 throughout.
        Probabilities below the resolution of doubles count as that, 2.2e-16, so it stays finite.
    reliability
        The reliability table.
    """

    auc: float
    brier_score: float
    log_loss: float
    reliability: Reliability


def calibration_measures(
    y: IntArray | FloatArray, probability: FloatArray, weights: Weights = None
) -> CalibrationMeasures:
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
        return CalibrationMeasures(np.nan, np.nan, np.nan, Reliability())
    # As scikit-learn computes them, whose metrics take longer to load than a tree to draw.
    second, true = probability[:, 1], np.asarray(y, dtype=np.int64)
    least = np.finfo(np.float64).eps
    given = np.clip(np.where(true == 1, second, probability[:, 0]), least, 1 - least)
    return CalibrationMeasures(
        auc_of_scores(second, y, weights),
        float(np.average((true - second) ** 2, weights=weights)),
        float(np.average(-np.log(given), weights=weights)),
        reliability(y, second, weights),
    )


def auc_of_scores(scores: npt.ArrayLike, y: npt.ArrayLike, weights: Weights = None) -> float:
    """Return the area under the ROC curve of (n,) scores of class 1; ties count one half. NaN with one class only."""
    positive = np.asarray(y) == 1
    w = np.ones(len(positive)) if weights is None else weights
    _, at = np.unique(scores, return_inverse=True)
    of_one, of_zero = np.bincount(at, w * positive), np.bincount(at, w * ~positive)
    above, pairs = of_one.sum() - np.cumsum(of_one), of_one.sum() * of_zero.sum()
    return float((of_zero * (above + of_one / 2)).sum() / pairs) if pairs else float("nan")


def reliability(y: IntArray | FloatArray, probability: FloatArray, weights: Weights = None) -> Reliability:
    """Put samples into ten bins of equal width by their probability, and compare it with what happened.

    Up to rounding, the bins are those of scikit-learn's ``calibration_curve``, which gives no counts.

    Parameters
    ----------
    y
        (n,) class numbers, 0 and 1.
    probability, weights
        (n,) probabilities of class 1, and weights of the samples in the means of a bin, 1 unless given.
    """
    edges = np.arange(N_BINS + 1) / N_BINS
    position = np.searchsorted(edges[1:-1], probability)
    n = np.ones(len(y)) if weights is None else weights
    counts, total, predicted, observed = (
        np.bincount(position, of, minlength=N_BINS) for of in (None, n, n * probability, n * y)
    )
    return Reliability(
        tuple(
            ReliabilityBin(
                float(edges[k]),
                float(edges[k + 1]),
                int(counts[k]),
                float(predicted[k] / total[k]),
                float(observed[k] / total[k]),
            )
            for k in np.flatnonzero(counts)
        )
    )
