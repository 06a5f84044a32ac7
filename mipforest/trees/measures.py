"""How well a tree predicts, and what passes its nodes.

Accuracy; R2, MSE and MAE; Brier score, log loss and reliability. At each node counts, classes or mean, errors, and the
influence of features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.tree import Tree
from mipforest.trees.validation import as_samples, class_numbers, target_values

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
        :func:`~mipforest.trees.measures.feature_influence`); ``None`` for a tree that is not logistic and
        whose splits have one feature each: with nothing to compare, the split says it all.
    """

    samples: IntArray
    class_counts: IntArray | None = None
    mean: FloatArray | None = None
    r2: FloatArray | None = None
    mse: FloatArray | None = None
    mae: FloatArray | None = None
    influence: FloatArray | None = None
    probability: FloatArray | None = None


def node_statistics(tree: Tree, X: Any, y: npt.ArrayLike | None = None) -> NodeStatistics:
    """Route samples through a tree, count them at every node, and compare predictions with targets.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units.
    y
        (n,) targets: class numbers or class names of a classifier (see :func:`class_numbers`), real values of
        a regression tree, or ``None``.

    Raises
    ------
    ValueError
        If X does not fit the tree, or y does not fit X or the tree's classes.
    """
    passed = tree.decision_path(X)
    samples = passed.sum(axis=0, dtype=np.int64)
    influence = feature_influence(tree, X) if tree.logistic or tree.is_oblique else None
    probability = _leaf_probabilities(tree, X) if tree.logistic else None
    if y is None:
        return NodeStatistics(samples, influence=influence, probability=probability)
    if tree.is_classifier:
        members = np.eye(len(tree.classes), dtype=np.int64)[class_numbers(tree.classes, y, len(passed))]
        counts = passed.T.astype(np.int64) @ members
        return NodeStatistics(samples, class_counts=counts, influence=influence, probability=probability)
    targets, predicted = target_values(y, len(passed)), np.asarray(tree.predict(X), dtype=np.float64)
    measures = np.full((len(samples), 4), np.nan)
    for t in np.flatnonzero(samples):
        here = passed[:, t]
        measures[t] = targets[here].mean(), *regression_measures(targets[here], predicted[here])
    mean, r2, mse, mae = measures.T
    return NodeStatistics(samples, mean=mean, r2=r2, mse=mse, mae=mae, influence=influence)


def _leaf_probabilities(tree: Tree, X: Any) -> FloatArray:
    leaf = tree.apply(X) - tree.topology.n_branches
    largest = tree.predict_proba(X).max(axis=1)
    n_leaves = tree.topology.n_leaves
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.bincount(leaf, largest, n_leaves) / np.bincount(leaf, minlength=n_leaves)
    return means


def leaf_shares(tree: Tree, statistics: NodeStatistics) -> FloatArray:
    """Return the (|L|, K) shares of the classes among the training samples of every leaf of a classifier.

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
    counts = statistics.class_counts[tree.topology.n_branches :].astype(np.float64)
    empty = ~counts.any(axis=1)
    counts[empty, label[empty]] = 1.0
    shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    rows = np.arange(len(label))
    largest = shares[rows, label] == shares.max(axis=1)
    tied = largest & (shares.argmax(axis=1) != label)
    shares[rows[tied], label[tied]] = np.nextafter(shares[rows[tied], label[tied]], 1.0)
    return shares


def feature_influence(tree: Tree, X: Any) -> FloatArray:
    """Return the (|B|, p) influence of each feature on each split: weight times standard deviation.

    Weights and standard deviations (of the population, over the samples that pass the node) are both of scaled
    features; their product does not depend on the units or the scaling of a feature. A positive influence
    pushes samples with large values to the right, a negative one to the left. In a logistic tree it is the
    change of log-odds per standard deviation. It is 0 where no sample passes (Aldinucci, ch. 3, "Evaluation
    of feature influence").

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, as a rule those it was trained on.

    Raises
    ------
    ValueError
        If X does not fit the tree.
    """
    passed = tree.decision_path(X)
    samples = as_samples(X, tree.features, tree.n_features)
    if tree.offset is not None and tree.scale is not None:
        samples = (samples - tree.offset) / tree.scale
    spread = np.zeros_like(tree.w)
    for t in np.flatnonzero(passed[:, : len(spread)].any(axis=0)):
        here = samples[passed[:, t]]
        # The rounded mean of equal numbers may differ from them: their deviation is set to 0, not computed.
        spread[t] = np.where(here.min(axis=0) == here.max(axis=0), 0.0, here.std(axis=0))
    influence: FloatArray = tree.w * spread
    return influence


def feature_importances(tree: Tree, X: Any, y: npt.ArrayLike) -> FloatArray:
    """Return the (p,) share of each feature in what the splits explain of the targets, summing to 1.

    A split explains what it takes away of the impurity of the samples that pass it, Gini's of a classifier and the
    variance of a regression tree, as in scikit-learn; the features of a split, and those of a linear leaf for what it
    explains beyond its mean, share it by the size of their influence (see :func:`feature_influence`). A split chosen
    for those below it may explain nothing by itself. All shares are 0 where nothing is explained.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, as a rule those it was trained on.
    y
        (n,) targets, as for :func:`node_statistics`.
    """
    passed, topology = tree.decision_path(X), tree.topology
    if tree.is_classifier:
        targets = np.eye(len(tree.classes))[class_numbers(tree.classes, y, len(passed))]
    else:
        targets = target_values(y, len(passed))[:, None]
    impurity = np.array(
        [targets[here].var(axis=0).sum() * here.sum() if here.any() else 0.0 for here in passed.T]
    )
    explained = np.zeros(tree.n_features)
    influence = np.abs(feature_influence(tree, X))
    for t in topology.branches:
        gain = impurity[t] - impurity[topology.left(t)] - impurity[topology.right(t)]
        explained += max(gain, 0.0) * _shares(influence[t])
    if tree.leaf_w is not None:
        scaled = as_samples(X, tree.features, tree.n_features) / (1.0 if tree.scale is None else tree.scale)
        errors = (targets[:, 0] - np.asarray(tree.predict(X))) ** 2
        for leaf, slopes in zip(topology.leaves, tree.leaf_w, strict=True):
            if (here := passed[:, leaf]).any():
                gain = impurity[leaf] - errors[here].sum()
                explained += max(gain, 0.0) * _shares(np.abs(slopes * scaled[here].std(axis=0)))
    return _shares(explained)


def _shares(sizes: FloatArray) -> FloatArray:
    """Return sizes as shares of their sum; zeros stay."""
    total = sizes.sum()
    return sizes / total if total > 0 else sizes
