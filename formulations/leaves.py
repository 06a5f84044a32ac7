"""Leaves that predict a class: what binds classification models to data, and what their trees cost and predict."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from formulations.splits.univariate import Routing, RoutingExpressions, ThresholdRouting, leaves_of
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.errors import some_of
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.model.blocks import ConstraintBlock
from mipforest.objectives.leaf_losses import ClassLoss, LabelLoss
from mipforest.problem.expressions import Expression, NotExpressed
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import BuiltModel, free_name
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import CostMatrix, ParameterError, parameter
from mipforest.problem.structure import LabelSums
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassTreeInstance(Instance):
    """A data set with a routing of its samples.

    Attributes
    ----------
    routing
        How samples get to leaves.
    loss
        What leaves lose.
    charges
        (n, K) what a prediction of each class costs for each sample: its weight, or that times an entry of the cost
        matrix.
    baseline
        Charges of the best constant prediction, Dunn's Lhat; in the thesis the number of samples outside the largest
        class (not the size of that class).
    """

    routing: Routing
    loss: LabelLoss
    charges: FloatArray
    baseline: float

    @property
    def most(self) -> float:
        """What no leaf is charged more than, the big-M of (2.20) and (2.21): n for samples of weight 1."""
        return float(self.data.weights.sum()) * max(1.0, float((self.charges.T / self.data.weights).max()))


def class_loss(data: Dataset, costs: CostMatrix = None) -> ClassLoss:
    """Return the loss of wrong classes.

    Parameters
    ----------
    data
        Classes.
    costs
        K rows of K costs of predicting the class of the column for a sample of the class of the row; ``None`` for 1
        where they differ.
    """
    return ClassLoss(None if costs is None else np.array(costs), len(data.classes))


def baseline_error(data: Dataset, costs: CostMatrix = None) -> float:
    """Return the charges of the best constant prediction (Dunn's Lhat); parameters as for :func:`class_loss`."""
    return class_loss(data, costs).baseline(data.y, data.weights)


def check_class_data(name: str, data: Dataset, costs: CostMatrix = None) -> None:
    """Refuse data without two classes to tell apart, and costs of another number of classes.

    Raises
    ------
    DataError
        For a real target, a single class, or a class that costs nothing to predict throughout.
    ParameterError
        For costs of another number of classes.
    """
    if data.task != "classification":
        raise DataError(
            f"{name} predicts classes, but the target of {data.name} is a number ({data.target}); "
            "use a regression model (ort), or give a class column with --target"
        )
    if costs is not None and len(costs) != len(data.classes):
        raise ParameterError(
            f"parameter costs has {len(costs)} rows, and {data.name} has {len(data.classes)} classes "
            f"({some_of(data.classes)}); give one row and one column for each, in this order"
        )
    if (data.y == data.y[0]).all():
        raise DataError(
            f"all {data.n} samples of {data.name} are of class {data.classes[int(data.y[0])]}: nothing to predict"
        )
    if baseline_error(data, costs) == 0:
        raise DataError(
            f"parameter costs charges nothing where {name} predicts one class for all samples of {data.name}: nothing "
            "to optimise; give a positive cost of each wrong prediction"
        )


# ---------------------------------------------------------------------- what labels cost


@dataclass(frozen=True, kw_only=True)
class LabelledTree(Formulation):
    """Trees whose leaves have labels, each of which has a charge for each sample."""

    @abstractmethod
    def leaf_loss(self, data: Dataset) -> LabelLoss:
        """Return what leaves lose."""

    @abstractmethod
    def unit(self, data: Dataset) -> float:
        """Return what losses are divided by in the objective."""

    def bound_leaves(self, data: Dataset) -> dict[str, Any]:
        """Return the attributes of a :class:`ClassTreeInstance` that say what its leaves are charged."""
        loss = self.leaf_loss(data)
        return {"loss": loss, "charges": loss.statistics(data.y, data.weights), "baseline": self.unit(data)}

    def violations(self, tree: Tree, instance: ClassTreeInstance) -> dict[str, float]:
        return instance.routing.violations(tree)

    def labelled(self, data: Dataset) -> Dataset:
        """Return samples whose classes are the labels that suit them best, for heuristics that take classes."""
        return data


@dataclass(frozen=True, kw_only=True)
class PredictsClasses(LabelledTree):
    """Trees whose labels are classes: a wrong one costs the weight of the sample, or that times an entry of a matrix.

    Parameters
    ----------
    costs
        Cost of predicting the class of a column for a sample of the class of a row: K rows, or a .csv file of them.
    """

    costs: CostMatrix = parameter(None, "cost of predicting (column) for a class (row)")

    def leaf_loss(self, data: Dataset) -> ClassLoss:
        return class_loss(data, self.costs)

    def unit(self, data: Dataset) -> float:
        return baseline_error(data, self.costs)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        check_class_data(self.name, data, self.costs)
        super().check_data(data, topology)


# ---------------------------------------------------------------------- rows


def declare_class_leaves(m: Model, instance: ClassTreeInstance) -> VarArray:
    """Write the classes of leaves and their charges by the thesis' rows; return the charges L (|L|,)."""
    leaves, classes, most = instance.topology.leaves, list(instance.data.classes), instance.most
    z, used = m["z"], m["l"]
    c = m.binary("c", (classes, leaves), meaning="1 for the class that a leaf predicts")
    L = m.nonnegative("L", leaves, meaning="charges of a leaf: its errors, unless there are costs")  # (2.22)
    charged = instance.charges.T @ z  # N_t - N_kt of (2.15), (2.16)
    m.add("one_class", c.sum(axis=0) == used, over=leaves)  # (2.18)
    m.add("loss", L >= charged - most * (1 - c), over=(classes, leaves))  # (2.20)
    m.add("loss_above", L <= charged + most * c, over=(classes, leaves))  # (2.21)
    return L


# ---------------------------------------------------------------------- trees


def encode_class_leaves(tree: Tree, instance: ClassTreeInstance, z: FloatArray) -> dict[str, FloatArray]:
    """Return the values of ``c`` and ``L`` for a tree, given its assignment of samples to leaves (n, |L|)."""
    charged = z.T @ instance.charges
    c = np.eye(charged.shape[1])[tree.leaf_value].T * z.any(axis=0)
    return {"c": c, "L": charged[np.arange(len(charged)), tree.leaf_value]}


def with_labels(tree: Tree, instance: ClassTreeInstance, c: FloatArray) -> Tree:
    """Return a tree with the labels of a solution's ``c`` (K, |L|), and the cheapest ones where it has none."""
    cheapest = with_cheapest_labels(tree, instance)
    labelled = c.max(axis=0) > 0.5
    return replace(cheapest, leaf_value=np.where(labelled, c.argmax(axis=0), cheapest.leaf_value))


def with_cheapest_labels(tree: Tree, instance: ClassTreeInstance) -> Tree:
    """Return a tree whose leaves predict what costs least there, empty ones what does at the closest ancestor in use.

    That is the most common class, by weight, unless there is a cost matrix.
    """
    z = leaves_of(tree, instance.data.X)
    size, charged = z.sum(axis=0), z.T @ instance.charges
    labels = np.empty(len(size), dtype=np.int64)
    for leaf in range(len(size)):
        first, width = leaf, 1
        while not size[first : first + width].any():
            width *= 2
            first = leaf // width * width
        labels[leaf] = charged[first : first + width].sum(axis=0).argmin()
    return replace(tree, leaf_value=labels)


def relative_loss(tree: Tree, instance: ClassTreeInstance) -> float:
    """Return the charges of a tree over Lhat, by the definition; inf where a leaf in use holds too few samples."""
    data, routing = instance.data, instance.routing
    leaf = tree.apply(data.X) - tree.topology.n_branches
    size = np.bincount(leaf, minlength=tree.topology.n_leaves)
    if ((size > 0) & (size < routing.N_min)).any():
        return float("inf")
    predicted = tree.leaf_value[leaf].astype(np.int64)
    return instance.loss.total(predicted, data.y, data.weights) / instance.baseline


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

    def labels(self) -> Expression:
        return self.m["c"].T

    def alike(self, tree: Tree, *, labels: bool) -> dict[str, tuple[FloatArray, FloatArray]] | None:
        bounds = super().alike(tree, labels=labels)
        if bounds is not None and labels:
            own = self.data.label_indicators(tree.leaf_value).T.astype(float)
            holds = leaves_of(tree, self.routing.rows).any(axis=0)
            bounds["c"] = np.where(holds, own, 0.0), np.where(holds, own, 1.0)
        return bounds

    def label_sums(self, built: BuiltModel) -> LabelSums | None:
        """Return the rows that were added to :meth:`predicted` alone; rows (2.21) of the thesis leave no label free.

        ``None`` where rows of :meth:`predicted` itself were taken out.
        """
        m, changes, group = self.m, built.changes(), self.routing.group
        columns, n = {block.name: block for block in changes.form.columns}, changes.form.n_columns
        labels = {
            f"predicted_{k}": k for k in range(len(self.data.label_names)) if f"predicted_{k}" in columns
        }
        products = {f"{name}_{row}" for name in labels for row in ("in_leaf", "labelled", "both")}
        assigned = (
            set() if "z" in built.blocks or "z" not in columns else set(ThresholdRouting.assignment_rows)
        )
        mine = {*labels, *(() if "z" in built.blocks else ("z",))}
        bounded = np.isfinite(changes.lower) | np.isfinite(changes.upper)
        if not products | assigned <= set(m.constraints):
            return None
        added = [block for block in changes.added if block.name not in products | assigned]
        rows = [block for block in added if block.binary is None]
        rest = (
            changes.loosened
            or "L" in columns
            or not {name for name in columns if name not in built.blocks} <= mine
            or any(bounded[columns[name].start : columns[name].stop].any() for name in built.blocks)
            or any(
                block.lower.any() or np.isfinite(block.upper).any() for block in (m[name] for name in labels)
            )
            or len(rows) < len(added)
        )
        names = [
            block.name if block.size == 1 else f"{block.name}[{i}]"
            for block in rows
            for i in range(block.size)
        ]
        use = np.zeros((len(names), len(group), len(self.data.label_names)))
        read, sizes = np.zeros(n, dtype=bool), np.bincount(group)
        is_sum = np.ones(len(names), dtype=bool)
        A = sparse.vstack([sparse.csr_array((0, n)), *(_over(block, n) for block in rows)], format="csr")
        for name, k in labels.items():
            own = slice(columns[name].start, columns[name].stop)
            read[own] = True
            entries = A[:, own].toarray().reshape(len(names), len(sizes), -1)
            is_sum &= (entries == entries[:, :, :1]).all(axis=(1, 2))  # otherwise it tells leaves apart
            # The samples of a group share their leaf, and what the group adds.
            use[:, :, k] = (entries[:, :, 0] / sizes)[:, group]
        other = sparse.coo_array(A)
        is_sum[other.row[(other.data != 0) & ~read[other.col]]] = False
        least, most = (
            np.concatenate([np.zeros(0), *(getattr(block, side) for block in rows)])[is_sum]
            for side in ("lower", "upper")
        )
        kept = tuple(name for name, whole in zip(names, is_sum, strict=True) if whole)
        return LabelSums(kept, use[is_sum], least, most, rest=rest or not is_sum.all())

    def keep_monotone(self, j: int, *, increasing: bool, target: int = 0) -> None:
        """Add rows: where a node splits on feature j, no leaf below it falls while one to its left rises.

        This holds for labelled leaves: all of OCT's variant ``tight``, those that hold training samples elsewhere.
        """
        of_targets = self.data.target_classes or (self.data.classes,)
        if len(of_targets[target]) != 2:
            whose = self.data.targets[target] if self.data.targets else self.data.name
            raise NotExpressed(
                f"monotone predictions need two classes, and {whose} has {len(of_targets[target])}"
            )
        topology, first = self.routing.topology, sum(map(len, of_targets[:target]))
        higher, lower = (first + 1, first) if increasing else (first, first + 1)
        on_left, on_right = topology.leaf_reach_left.toarray() > 0, topology.leaf_reach_right.toarray() > 0
        left, right, t = np.nonzero(on_left[:, None, :] & on_right[None, :, :])
        c, uses = self.m["c"], self.features()[:, j]
        name = free_name(self.m, f"monotone_{self.data.features.labels[j]}")
        self.m.add(name, c[higher][left] + c[lower][right] <= 2 - uses[t])

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        z, added = leaves_of(tree, self.routing.rows), super().encode(tree)
        for k, labelled in enumerate(self.data.label_indicators(tree.leaf_value).T):
            if f"predicted_{k}" in self.m.variables:
                added[f"predicted_{k}"] = z * labelled
        return added


def _over(block: ConstraintBlock, n: int) -> sparse.csr_array:
    """Return the rows of a block over all n columns of its model."""
    return sparse.csr_array((block.A.data, block.A.indices, block.A.indptr), shape=(block.A.shape[0], n))
