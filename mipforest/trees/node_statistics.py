"""Statistics of a tree's nodes: counts, classes or mean, errors, shares of classes, and the influence of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.measures import Weights, regression_measures
from mipforest.trees.tree import Tree, as_samples, class_numbers, target_values


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


def feature_importances(
    tree: Tree, X: Any, y: npt.ArrayLike, weights: FloatArray | None = None
) -> FloatArray:
    """Return the (p,) share of each feature in what the splits explain of the targets, summing to 1.

    A split explains what it takes away of the impurity of the samples that pass it, Gini's of a classifier and the
    variance of a regression tree, as in scikit-learn; the features of a split, and those of a linear leaf for what it
    explains beyond its mean, share it by the size of their influence (see :func:`feature_influence`). A split chosen
    for those below it may explain nothing by itself. All shares are 0 where nothing is explained. Of several targets,
    the impurity is the sum of theirs, those of numbers relative to the variance of the target.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, as a rule those it was trained on.
    y, weights
        (n,) targets, (n, T) of several, and weights of the samples, as for :func:`node_statistics`.
    """
    n = np.ones(len(X)) if weights is None else weights
    passed, topology = tree.decision_path(X), tree.topology
    if tree.targets:
        targets = _columns_of_targets(tree, np.asarray(y, dtype=np.float64), n)
    elif tree.is_classifier:
        targets = np.eye(len(tree.classes))[class_numbers(tree.classes, y, len(passed))]
    else:
        targets = target_values(y, len(passed))[:, None]
    impurity = np.array([_spread(targets[here], n[here]) if here.any() else 0.0 for here in passed.T])
    explained = np.zeros(tree.n_features)
    influence = np.abs(feature_influence(tree, X))
    for t in topology.branches:
        gain = impurity[t] - impurity[topology.left(t)] - impurity[topology.right(t)]
        explained += max(gain, 0.0) * _shares(influence[t])
    if tree.leaf_w is not None:
        scaled = as_samples(X, tree.features, tree.n_features) / (1.0 if tree.scale is None else tree.scale)
        errors = n * (targets[:, 0] - np.asarray(tree.predict(X))) ** 2
        for leaf, slopes in zip(topology.leaves, tree.leaf_w, strict=True):
            if (here := passed[:, leaf]).any():
                gain = impurity[leaf] - errors[here].sum()
                explained += max(gain, 0.0) * _shares(np.abs(slopes * scaled[here].std(axis=0)))
    return _shares(explained)


def _columns_of_targets(tree: Tree, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return numbers with the variance 1, one column for each target, or 0 and 1, one for each class of each."""
    if tree.target_classes:
        members = [
            np.eye(len(of))[k.astype(np.int64)] for of, k in zip(tree.target_classes, y.T, strict=True)
        ]
        return np.column_stack(members)
    away: FloatArray = y - np.average(y, axis=0, weights=weights)
    deviation = np.sqrt(np.average(away**2, axis=0, weights=weights))
    return away / np.where(deviation > 0, deviation, 1.0)


def _spread(targets: FloatArray, weights: FloatArray) -> float:
    """Return the weighted sum of squared distances of targets (n, K) from their mean."""
    return float((weights[:, None] * (targets - np.average(targets, axis=0, weights=weights)) ** 2).sum())


def _shares(sizes: FloatArray) -> FloatArray:
    """Return sizes as shares of their sum; zeros stay."""
    total = sizes.sum()
    return sizes / total if total > 0 else sizes


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
        :func:`~mipforest.trees.node_statistics.feature_influence`); ``None`` for a tree that is not logistic and
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
        a regression tree, or ``None``, and weights in means and measures (numbers of samples stay). Several targets
        (n, T) are not summed up: only samples are counted.

    Raises
    ------
    ValueError
        If X does not fit the tree, or y does not fit X or the tree's classes.
    """
    passed = tree.decision_path(X)
    samples = passed.sum(axis=0, dtype=np.int64)
    influence = feature_influence(tree, X) if tree.logistic or tree.is_oblique else None
    probability = _leaf_probabilities(tree, X, weights) if tree.logistic else None
    if y is None or tree.targets:
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
    by_class = statistics.class_counts if statistics.class_weights is None else statistics.class_weights
    return shares_of(by_class[tree.topology.n_branches :], tree.leaf_value.astype(np.int64))


def shares_of(counts: FloatArray | IntArray, label: IntArray) -> FloatArray:
    """Return counts of classes (|L|, K) of leaves with some labels (|L|,) as shares; see :func:`leaf_shares`."""
    counts = counts.astype(np.float64)
    empty = ~counts.any(axis=1)
    counts[empty, label[empty]] = 1.0
    shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    rows = np.arange(len(label))
    largest = shares[rows, label] == shares.max(axis=1)
    tied = largest & (shares.argmax(axis=1) != label)
    shares[rows[tied], label[tied]] = np.nextafter(shares[rows[tied], label[tied]], 1.0)
    return shares
