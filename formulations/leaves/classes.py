"""Leaves that predict a class: what binds Dunn's classification models to data, and what their trees cost and say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.routing.univariate import Routing, RoutingExpressions, leaves_of
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.model import LinearExpr
from mipforest.problem.expressions import Expression, NotExpressed
from mipforest.problem.instance import Instance
from mipforest.trees import Tree


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassTreeInstance(Instance):
    """A data set with a routing of its samples.

    Attributes
    ----------
    routing
        How samples get to leaves.
    baseline
        Number of samples outside the largest class, Dunn's Lhat: the errors of the best constant prediction (not the
        size of that class).
    """

    routing: Routing
    baseline: int


def baseline_error(data: Dataset) -> int:
    """Count the samples outside the largest class (Dunn's Lhat)."""
    return data.n - int(np.bincount(data.y).max())


def check_class_data(name: str, data: Dataset) -> None:
    """Refuse data without two classes to tell apart.

    Raises
    ------
    DataError
        For a real target, or a single class.
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


# ---------------------------------------------------------------------- trees


def encode_class_leaves(tree: Tree, data: Dataset, z: FloatArray) -> dict[str, FloatArray]:
    """Return the values of ``c`` and ``L`` for a tree, given its assignment of samples to leaves (n, |L|)."""
    counts = _leaf_counts(z, data)
    size = counts.sum(axis=1)
    c = np.eye(len(data.classes))[tree.leaf_value].T * (size > 0)
    return {"c": c, "L": size - counts[np.arange(len(size)), tree.leaf_value]}


def with_labels(tree: Tree, data: Dataset, c: FloatArray) -> Tree:
    """Return a tree with the labels of a solution's ``c`` (K, |L|), and majority labels where it has none."""
    majority = with_majority_labels(tree, data)
    labelled = c.max(axis=0) > 0.5
    return replace(majority, leaf_value=np.where(labelled, c.argmax(axis=0), majority.leaf_value))


def with_majority_labels(tree: Tree, data: Dataset) -> Tree:
    """Return a tree whose leaves predict their most common class, empty ones that of the closest ancestor in use."""
    counts = _leaf_counts(leaves_of(tree, data.X), data)
    labels = np.empty(len(counts), dtype=np.int64)
    for leaf in range(len(counts)):
        width = 1
        below = counts[leaf]
        while not below.any():
            width *= 2
            first = leaf // width * width
            below = counts[first : first + width].sum(axis=0)
        labels[leaf] = below.argmax()
    return replace(tree, leaf_value=labels)


def class_loss(tree: Tree, instance: ClassTreeInstance) -> float:
    """Return the errors of a tree over Lhat, by the definition; inf where a leaf in use holds too few samples."""
    data, routing = instance.data, instance.routing
    size = leaves_of(tree, data.X).sum(axis=0)
    if ((size > 0) & (size < routing.N_min)).any():
        return float("inf")
    return float((tree.predict(data.X) != data.y).sum()) / instance.baseline


def _leaf_counts(z: FloatArray, data: Dataset) -> FloatArray:
    """(|L|, K) number of samples of each class in each leaf of an assignment (n, |L|)."""
    counts: FloatArray = z.T @ np.eye(len(data.classes))[data.y]
    return counts


# ---------------------------------------------------------------------- what constraints of users read


@dataclass(frozen=True, eq=False)
class ClassTreeExpressions(RoutingExpressions):
    """Models whose binaries ``c`` (K, |L|) label the leaves and whose ``z`` assigns samples, or groups, to them.

    Rows (2.21) of the thesis want the most common class in every leaf, also where a constraint would want
    another; OCT's variant ``tight`` has no such rows.
    """

    def predicted(self, k: int) -> Expression:
        """Return the expression; it rests on products of assignment and labels, 0 or 1 where these are."""
        name = f"predicted_{k}"
        if name not in self.m.variables:
            z, label = self.routing.assignment(self.m), self.m["c"][k]
            product = self.m.nonnegative(name, z.shape)
            self.m.add(f"{name}_in_leaf", product <= z)
            self.m.add(f"{name}_labelled", product <= label)
            self.m.add(f"{name}_both", product >= z + label - 1)
        predicted: LinearExpr = self.m[name].sum(axis=1)[self.routing.group]
        return predicted

    def keep_monotone(self, j: int, *, increasing: bool) -> None:
        """Add rows: where a node splits on feature j, no leaf below it falls while one to its left rises.

        This holds for labelled leaves: all of OCT's variant ``tight``, those that hold training samples elsewhere.
        """
        if len(self.data.classes) != 2:
            raise NotExpressed(
                f"monotone predictions need two classes, and {self.data.name} has {len(self.data.classes)}"
            )
        topology = self.routing.topology
        higher, lower = (1, 0) if increasing else (0, 1)
        on_left, on_right = topology.leaf_reach_left.toarray() > 0, topology.leaf_reach_right.toarray() > 0
        left, right, t = np.nonzero(on_left[:, None, :] & on_right[None, :, :])
        c, uses = self.m["c"], self.features()[:, j]
        name = f"monotone_{self.data.features.labels[j]}"
        self.m.add(name, c[higher][left] + c[lower][right] <= 2 - uses[t])

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        z, added = leaves_of(tree, self.routing.rows), super().encode(tree)
        for k in range(len(self.data.classes)):
            if f"predicted_{k}" in self.m.variables:
                added[f"predicted_{k}"] = z * (tree.leaf_value == k)
        return added
