"""Statistics of the samples that pass each node: counts, classes or mean, errors, influence of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.measures import regression_measures
from mipforest.trees.tree import Tree
from mipforest.trees.validation import as_samples, class_numbers, target_values


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
    influence
        (|B|, p) influence of each feature at each branch node (see
        :func:`~mipforest.trees.statistics.feature_influence`); ``None`` for a tree that is not logistic and
        whose splits have one feature each: with nothing to compare, the split says it all.
    """

    samples: IntArray
    class_counts: IntArray | None = None
    mean: FloatArray | None = None
    r2: FloatArray | None = None
    mse: FloatArray | None = None
    mae: FloatArray | None = None
    influence: FloatArray | None = None


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
    if y is None:
        return NodeStatistics(samples, influence=influence)
    if tree.is_classifier:
        members = np.eye(len(tree.classes), dtype=np.int64)[class_numbers(tree.classes, y, len(passed))]
        counts = passed.T.astype(np.int64) @ members
        return NodeStatistics(samples, class_counts=counts, influence=influence)
    targets, predicted = target_values(y, len(passed)), np.asarray(tree.predict(X), dtype=np.float64)
    measures = np.full((len(samples), 4), np.nan)
    for t in np.flatnonzero(samples):
        here = passed[:, t]
        measures[t] = targets[here].mean(), *regression_measures(targets[here], predicted[here])
    mean, r2, mse, mae = measures.T
    return NodeStatistics(samples, mean=mean, r2=r2, mse=mse, mae=mae, influence=influence)


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
