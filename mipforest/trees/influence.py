"""Which features a tree's splits rest on: their influence at every node, and their share in what the tree explains."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.trees.tree import Tree
from mipforest.trees.validation import as_samples, class_numbers, target_values


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
    for those below it may explain nothing by itself. All shares are 0 where nothing is explained.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, as a rule those it was trained on.
    y, weights
        (n,) targets and weights of the samples, as for :func:`node_statistics`.
    """
    n = np.ones(len(X)) if weights is None else weights
    passed, topology = tree.decision_path(X), tree.topology
    if tree.is_classifier:
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


def _spread(targets: FloatArray, weights: FloatArray) -> float:
    """Return the weighted sum of squared distances of targets (n, K) from their mean."""
    return float((weights[:, None] * (targets - np.average(targets, axis=0, weights=weights)) ** 2).sum())


def _shares(sizes: FloatArray) -> FloatArray:
    """Return sizes as shares of their sum; zeros stay."""
    total = sizes.sum()
    return sizes / total if total > 0 else sizes
