"""How well a tree predicts or prescribes, and what passes its nodes.

Accuracy; outcomes of prescriptions; R2, MSE and MAE; AUC, Brier score, log loss and reliability. At each node counts,
classes or mean, errors, and the influence of features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.influence import feature_influence
from mipforest.trees.tree import Tree
from mipforest.trees.validation import class_numbers, target_values

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


@dataclass(frozen=True, eq=False)
class NodeStatistics:
    """Samples at each node of a tree, branch nodes and leaves in heap order.

    Attributes
    ----------
    samples
        (n_nodes,) number of samples that pass the node.
    class_counts
        (n_nodes, K) the same by class; ``None`` for a regression tree or without targets.
    mean
        (n_nodes,) mean target, NaN where no sample passes; ``None`` for a classifier or without targets.
    r2, mse, mae
        (n_nodes,) measures of the tree's predictions for the samples that pass the node, so those of all
        samples at the root (see :func:`~mipforest.trees.measures.regression_measures`); NaN and ``None`` as
        for ``mean``.
    probability
        (|L|,) mean probability that a logistic tree gives the class of each leaf, over the samples in it, NaN where
        there are none; ``None`` for other trees.
    influence
        (|B|, p) influence of each feature at each branch node (see
        :func:`~mipforest.trees.influence.feature_influence`); ``None`` for a tree that is not logistic and
        whose splits have one feature each: with nothing to compare, the split says it all.
    class_weights
        (n_nodes, K) weights of the samples by class; ``None`` where all are 1, or as for ``class_counts``.
    """

    samples: IntArray
    class_counts: IntArray | None = None
    mean: FloatArray | None = None
    r2: FloatArray | None = None
    mse: FloatArray | None = None
    mae: FloatArray | None = None
    influence: FloatArray | None = None
    probability: FloatArray | None = None
    class_weights: Weights = None


def node_statistics(
    tree: Tree, X: Any, y: npt.ArrayLike | None = None, weights: Weights = None
) -> NodeStatistics:
    """Route samples through a tree, count them at every node, and compare predictions with targets.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units.
    y, weights
        (n,) targets: class numbers or class names of a classifier (see :func:`class_numbers`), real values of
        a regression tree, or ``None``, and weights in means and measures (numbers of samples stay).

    Raises
    ------
    ValueError
        If X does not fit the tree, or y does not fit X or the tree's classes.
    """
    passed = tree.decision_path(X)
    samples = passed.sum(axis=0, dtype=np.int64)
    influence = feature_influence(tree, X) if tree.logistic or tree.is_oblique else None
    probability = _leaf_probabilities(tree, X, weights) if tree.logistic else None
    if y is None:
        return NodeStatistics(samples, influence=influence, probability=probability)
    if tree.is_classifier:
        members = np.eye(len(tree.classes), dtype=np.int64)[class_numbers(tree.classes, y, len(passed))]
        counts = passed.T.astype(np.int64) @ members
        all_one = weights is None or (weights == 1).all()
        by_weight = None if weights is None or all_one else passed.T @ (weights[:, None] * members)
        return NodeStatistics(
            samples,
            class_counts=counts,
            influence=influence,
            probability=probability,
            class_weights=by_weight,
        )
    targets, predicted = target_values(y, len(passed)), np.asarray(tree.predict(X), dtype=np.float64)
    measures, n = np.full((len(samples), 4), np.nan), np.ones(len(passed)) if weights is None else weights
    for t in np.flatnonzero(samples):
        here = passed[:, t]
        measures[t] = (
            np.average(targets[here], weights=n[here]),
            *regression_measures(targets[here], predicted[here], n[here]),
        )
    means, r2, mse, mae = measures.T
    return NodeStatistics(samples, mean=means, r2=r2, mse=mse, mae=mae, influence=influence)


def _leaf_probabilities(tree: Tree, X: Any, weights: Weights) -> FloatArray:
    leaf = tree.apply(X) - tree.topology.n_branches
    largest = tree.predict_proba(X).max(axis=1)
    n_leaves = tree.topology.n_leaves
    with np.errstate(invalid="ignore"):
        n = np.ones(len(leaf)) if weights is None else weights
        means: FloatArray = np.bincount(leaf, n * largest, n_leaves) / np.bincount(leaf, n, n_leaves)
    return means


def leaf_shares(tree: Tree, statistics: NodeStatistics) -> FloatArray:
    """Return the (|L|, K) shares of the classes among the training samples of every leaf of a classifier, by weight.

    Rows sum to 1. A leaf without training samples gives its label the share 1. Where the label shares the largest
    frequency with other classes, it is raised by one unit in the last place, so that it is the first to be found.

    Raises
    ------
    ValueError
        If the statistics hold no counts of classes.
    """
    if statistics.class_counts is None:
        raise ValueError(
            "the samples at the leaves are not known by class; give the statistics of training samples"
        )
    label = tree.leaf_value.astype(np.int64)
    by_class = statistics.class_counts if statistics.class_weights is None else statistics.class_weights
    counts = by_class[tree.topology.n_branches :].astype(np.float64)
    empty = ~counts.any(axis=1)
    counts[empty, label[empty]] = 1.0
    shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    rows = np.arange(len(label))
    largest = shares[rows, label] == shares.max(axis=1)
    tied = largest & (shares.argmax(axis=1) != label)
    shares[rows[tied], label[tied]] = np.nextafter(shares[rows[tied], label[tied]], 1.0)
    return shares
