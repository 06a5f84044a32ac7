r"""Leaves that predict a class, as in Dunn's thesis: shared by OCT and OCT-H.

Source: J. Dunn, PhD thesis, MIT 2018, equations (2.15) to (2.23), with :math:`N_{kt} = \sum_{i: y_i = k} z_{it}` and
:math:`N_t = \sum_i z_{it}` written out:

.. math::

    & \sum_k c_{kt} = l_t, \quad c_{kt} \in \{0, 1\} && t \in L \quad (2.18) \\
    & L_t \ge N_t - N_{kt} - n (1 - c_{kt}), \quad L_t \ge 0 && t \in L,\; k \quad (2.20, 2.22) \\
    & L_t \le N_t - N_{kt} + n c_{kt} && t \in L,\; k \quad (2.21)

The loss of the tree is :math:`\tfrac{1}{\hat L} \sum_t L_t`, with :math:`\hat L` the number of samples outside the
largest class: the error of the best constant prediction (not the size of that class).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Topology, Tree


def declare_class_leaves(m: Model, data: Dataset, tree: Topology, z: VarArray, used: VarArray) -> LinearExpr:
    r"""Write rows (2.15) to (2.22); give the relative loss :math:`\sum_t L_t / \hat L`."""
    n, classes = data.n, list(data.classes)
    c = m.binary("c", (classes, tree.leaves))
    L = m.nonnegative("L", tree.leaves)
    is_class = (data.y == np.arange(len(classes))[:, None]).astype(float)
    N_k, N = is_class @ z, z.sum(axis=0)
    m.add("one_class", c.sum(axis=0) == used, over=tree.leaves)
    m.add("loss", L >= N - N_k - n * (1 - c), over=(classes, tree.leaves))
    m.add("loss_above", L <= N - N_k + n * c, over=(classes, tree.leaves))
    return L.sum() / baseline_error(data)


def encode_class_leaves(fitted: Tree, data: Dataset, z: FloatArray) -> dict[str, FloatArray]:
    """Values of ``c`` and ``L`` for a tree, given its assignment of samples to leaves (n, |L|)."""
    counts = leaf_counts(z, data)
    size = counts.sum(axis=1)
    c = np.eye(len(data.classes))[fitted.leaf_value].T * (size > 0)
    return {"c": c, "L": size - counts[np.arange(len(size)), fitted.leaf_value]}


def baseline_error(data: Dataset) -> int:
    """Count the samples outside the largest class (Dunn's Lhat)."""
    return data.n - int(np.bincount(data.y).max())


def leaf_counts(z: FloatArray, data: Dataset) -> FloatArray:
    """(|L|, K) number of samples of each class in each leaf of an assignment (n, |L|)."""
    counts: FloatArray = z.T @ np.eye(len(data.classes))[data.y]
    return counts


def leaves_of(fitted: Tree, X: FloatArray) -> FloatArray:
    """(n, |L|) assignment of samples to the leaves of a tree, as 0 and 1."""
    z = np.zeros((len(X), fitted.topology.n_leaves))
    z[np.arange(len(X)), fitted.apply(X) - fitted.topology.n_branches] = 1.0
    return z


def with_labels(fitted: Tree, data: Dataset, c: FloatArray) -> Tree:
    """Give a tree's leaves the labels of a solution's ``c`` (K, |L|), and majority labels where it gives none."""
    majority = with_majority_labels(fitted, data)
    labelled = c.max(axis=0) > 0.5
    return replace(majority, leaf_value=np.where(labelled, c.argmax(axis=0), majority.leaf_value))


def with_majority_labels(fitted: Tree, data: Dataset) -> Tree:
    """Give a tree's leaves their most common classes; an empty one that of its closest ancestor with samples."""
    counts = leaf_counts(leaves_of(fitted, data.X), data)
    labels = np.empty(len(counts), dtype=np.int64)
    for leaf in range(len(counts)):
        width = 1
        below = counts[leaf]
        while not below.any():
            width *= 2
            first = leaf // width * width
            below = counts[first : first + width].sum(axis=0)
        labels[leaf] = below.argmax()
    return replace(fitted, leaf_value=labels)


def class_loss(fitted: Tree, data: Dataset, n_min: int) -> float:
    """Errors of a tree over Lhat, from the definition; inf where a leaf holds samples, but fewer than ``n_min``."""
    size = leaves_of(fitted, data.X).sum(axis=0)
    if ((size > 0) & (size < n_min)).any():
        return float("inf")
    return float((fitted.predict(data.X) != data.y).sum()) / baseline_error(data)


def check_class_data(name: str, data: Dataset, n_min: int) -> None:
    """Refuse data that Dunn's classification models do not take.

    Raises
    ------
    DataError
        For a real target, features outside [0, 1], or a leaf size above the number of samples.
    """
    if data.task != "classification":
        raise DataError(
            f"{name} predicts classes, but the target of {data.name} is a number ({data.target}); "
            "use a regression model (ort), or give a class column with --target"
        )
    if baseline_error(data) == 0:
        raise DataError(
            f"all {data.n} samples of {data.name} are of class {data.classes[int(data.y[0])]}: nothing to predict"
        )
    check_unit_box(name, data, n_min)


def check_unit_box(name: str, data: Dataset, n_min: int) -> None:
    """Refuse features outside [0, 1], and a leaf size above the number of samples.

    Raises
    ------
    DataError
        Saying what is wrong and how to load the data.
    """
    if data.X.min() < 0 or data.X.max() > 1:
        raise DataError(f"{name} takes features in [0, 1]; load the data with min-max scaling")
    if n_min > data.n:
        raise DataError(f"N_min is {n_min}, but {data.name} has {data.n} samples; give at most that")
