"""What the samples that pass each node are: how many, of which classes or mean, and what moves them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.influence import feature_influence
from mipforest.trees.measures import regression_measures
from mipforest.trees.tree import Tree


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
        :func:`~mipforest.trees.influence.feature_influence`); ``None`` for a tree that is not logistic and
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
        members = np.eye(len(tree.classes), dtype=np.int64)[class_numbers(tree, y, len(passed))]
        counts = passed.T.astype(np.int64) @ members
        return NodeStatistics(samples, class_counts=counts, influence=influence)
    targets, predicted = target_values(y, len(passed)), np.asarray(tree.predict(X), dtype=np.float64)
    measures = np.full((len(samples), 4), np.nan)
    for t in np.flatnonzero(samples):
        here = passed[:, t]
        measures[t] = targets[here].mean(), *regression_measures(targets[here], predicted[here])
    mean, r2, mse, mae = measures.T
    return NodeStatistics(samples, mean=mean, r2=r2, mse=mse, mae=mae, influence=influence)


def class_numbers(tree: Tree, y: npt.ArrayLike, n_samples: int) -> IntArray:
    """(n,) class number of each sample.

    Numbers are taken as class numbers, 0 to K - 1; strings as names in ``tree.classes``.

    Raises
    ------
    ValueError
        If y does not have shape (n,), or holds an unknown number or name.
    """
    labels = _as_targets(y, n_samples)
    if labels.dtype.kind in "OUST" and all(isinstance(label, str) for label in labels):
        position = {name: k for k, name in enumerate(tree.classes)}
        for label in labels:
            if label not in position:
                close = get_close_matches(label, tree.classes, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"y holds {str(label)!r}, which is no class of the tree ({', '.join(tree.classes)}){hint}"
                )
        return np.array([position[label] for label in labels], dtype=np.int64)
    values = target_values(labels, n_samples)
    wrong = (values != np.floor(values)) | (values < 0) | (values >= len(tree.classes))
    if wrong.any():
        raise ValueError(
            f"y holds {values[wrong][0]:g}, but numbers in y mean classes 0 to {len(tree.classes) - 1}; "
            f"give class names as strings ({', '.join(tree.classes)})"
        )
    return values.astype(np.int64)


def target_values(y: npt.ArrayLike, n_samples: int) -> FloatArray:
    """(n,) finite real targets; ValueError if they are not."""
    targets = _as_targets(y, n_samples)
    try:
        values = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, but its entry {int(np.argmin(np.isfinite(values)))} is not")
    return values


def _as_targets(y: npt.ArrayLike, n_samples: int) -> npt.NDArray[Any]:
    targets = np.asarray(y)
    if targets.shape != (n_samples,):
        raise ValueError(
            f"y has shape {targets.shape}, but X has {n_samples} samples; y must have shape ({n_samples},)"
        )
    return targets
