r"""OCT-H: optimal classification trees with hyperplane splits.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (3.3). The splits and
the assignment z of samples to leaves are those of :mod:`formulations.splits.hyperplane`, the leaves, with their losses
:math:`L_t` and classes :math:`c_{kt}`, those of :mod:`formulations.oct`, rows (2.15) to (2.22), and

.. math::  \min \tfrac{1}{\hat L} \sum_{t \in L} L_t + \alpha \sum_{t \in B} \sum_j s_{jt} \quad (3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from formulations.leaves import (
    ClassTreeExpressions,
    ClassTreeInstance,
    LabelledTree,
    PredictsClasses,
    declare_class_leaves,
    encode_class_leaves,
    relative_loss,
    with_cheapest_labels,
    with_labels,
)
from formulations.splits.hyperplane import HyperplaneRouting
from formulations.splits.univariate import check_leaf_size
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart_with_margin
from mipforest.heuristics.thresholds import tree_of_splits, without_splits
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import START_SHARE
from mipforest.problem.model_changes import free_name
from mipforest.problem.parameters import parameter
from mipforest.problem.structure import HyperplaneCharges
from mipforest.problem.tree_search import get_search
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Seconds for all nodes of the greedy start together; the thesis caps its node problems likewise.
GREEDY_TIME_LIMIT = 30.0

#: Kicks of the default start: three took 0.04 to 0.3 s of processor time and left less than half of CART's errors on
#: four of five data sets; ten take twice as long for little more.
DESCENT_KICKS = 3

#: The search whose descent that is: one of :class:`~mipforest.problem.structure.TreeCharges`.
DESCENT = "local-search"


@dataclass(frozen=True, kw_only=True)
class HyperplaneLabels(LabelledTree):
    """Trees of hyperplane splits whose leaves have labels, each of which has a charge for each sample.

    Parameters
    ----------
    alpha
        Cost of a feature in a split, in units of the objective.
    N_min
        Least number of samples in a leaf that holds any.
    mu
        Margin that stands for the strict inequality to the left.
    max_features
        Most features in a split; 0 for any number. With 2, every split is a line in a plane of two features.
    """

    starts = ("descent", "cart", "greedy", "previous-depth")
    least_objective = 0.0
    takes_weights = True
    gap_parameter = "mu"
    gap_rows = ("left", "right")
    structure_type = HyperplaneCharges

    alpha: float = parameter(0.0, "cost of a feature in a split", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)
    mu: float = parameter(0.005, "margin that stands for a strict inequality", above=0, below=1)
    max_features: int = parameter(0, "most features in a split; 0: any number", at_least=0)
    # ------------------------------------------------------------------ what is known of the data

    def check_data(self, data: Dataset, topology: Topology) -> None:
        self.require_unit_box(data)
        check_leaf_size(data, self.N_min)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> ClassTreeInstance:
        routing = HyperplaneRouting(data, topology, self.N_min, self.mu, self.max_features)
        return ClassTreeInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            routing=routing,
            **self.bound_leaves(data),
        )

    def structure(self, instance: ClassTreeInstance) -> HyperplaneCharges:
        data, unit = instance.data, instance.baseline
        return HyperplaneCharges(
            y=data.y,
            loss=instance.loss,
            weight=data.weights if data.weighted else None,
            split_cost=self.alpha * unit,
            N_min=self.N_min,
            unit=unit,
            margin=self.mu,
            max_features=self.max_features,
        )

    # ------------------------------------------------------------------ trees

    def decode(self, values: Values, instance: ClassTreeInstance) -> Tree:
        return with_labels(instance.routing.decode(values), instance, values["c"])

    def evaluate(self, tree: Tree, instance: ClassTreeInstance) -> float:
        """Return the objective; infinite where a split has more than ``max_features`` features."""
        if not instance.routing.allows(tree):
            return float("inf")
        return relative_loss(tree, instance) + self.alpha * int((tree.w != 0).sum())

    def relabel(self, tree: Tree, instance: ClassTreeInstance) -> Tree:
        return with_cheapest_labels(tree, instance)

    def expressions(self, m: Model, instance: ClassTreeInstance) -> TreeExpressions:
        return HyperplaneExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: ClassTreeInstance, *, seed: int = 0) -> Tree:
        if name == "descent":
            return self._descended(instance, seed)
        if name == "cart":
            data = self.labelled(instance.data)
            tree = cart_with_margin(data, instance.topology, self.mu, min_leaf=self.N_min, seed=seed)
            return self.polish(tree, instance)
        if name == "greedy":
            return self.polish(self._greedy(instance), instance)
        if name == "previous-depth":
            return self.previous_depth(instance)
        other: Tree = super().start(name, instance, seed=seed)
        return other

    def without_splits(self, tree: Tree, nodes: Sequence[int], instance: ClassTreeInstance) -> Tree:
        return self.polish(without_splits(tree, nodes), instance)

    def polish(self, tree: Tree, instance: ClassTreeInstance) -> Tree:
        return with_cheapest_labels(tree, instance)

    def _descended(self, instance: ClassTreeInstance, seed: int) -> Tree:
        """Improve the tree of CART, and one grown with hyperplanes, by the descent of the local search."""
        tree = self.start("cart", instance, seed=seed)
        if instance.budget.expired:
            return tree
        search: Any = get_search(DESCENT)
        outcome = search.improved(
            self.structure(instance),
            instance.data.X,
            tree,
            instance.budget,
            starts=1,
            kicks=DESCENT_KICKS,
            seed=seed,
            deadline=monotonic() + START_SHARE * instance.budget.remaining,
            on_progress=lambda *_: instance.budget.stopped,
        )
        found = tree_of_splits(instance.data, instance.topology, outcome.tree.w, outcome.tree.b)
        return min((tree, self.polish(found, instance)), key=lambda one: self.evaluate(one, instance))

    def _greedy(self, instance: ClassTreeInstance) -> Tree:
        """Solve the model of depth one at every node, from the root down, on the samples that reach it."""
        data, topology = instance.data, instance.topology
        w, b = np.zeros((topology.n_branches, data.p)), np.zeros(topology.n_branches)
        time = instance.budget.part(GREEDY_TIME_LIMIT, share=START_SHARE)

        def grow(t: int, rows: IntArray) -> None:
            if t >= topology.n_branches or time.expired:
                return
            share = time.part(GREEDY_TIME_LIMIT / topology.n_branches)
            split = self._best_split(data.take(rows), instance, share)
            if split is None or split.is_trivial(0):
                return
            w[t], b[t] = split.w[0], split.b[0]
            goes_right = data.X[rows] @ w[t] + b[t] >= 0
            grow(topology.left(t), rows[~goes_right])
            grow(topology.right(t), rows[goes_right])

        grow(0, np.arange(data.n))
        return tree_of_splits(data, topology, w, b)

    def _best_split(self, here: Dataset, whole: ClassTreeInstance, time: TimeBudget) -> Tree | None:
        """Return the tree of depth one for a node's samples; ``None`` where one label suits all, or too few samples."""
        charges = self.leaf_loss(here).statistics(here.y, here.weights)
        one = charges[:, charges.sum(axis=0).argmin()]
        if (one == charges.min(axis=1)).all() or here.n < 2 * self.N_min:
            return None
        # alpha is in units of the whole data; the node's model has its own.
        node = replace(self, alpha=self.alpha * whole.baseline / self.unit(here))
        result = node.build(here, 1, budget=time).solve(start="cart", time_limit=time.at_most())
        return result.tree.unscaled() if isinstance(result.tree, Tree) else None


class HyperplaneExpressions(ClassTreeExpressions):
    """What labelled trees of hyperplane splits say of themselves."""

    def keep_monotone(self, j: int, *, increasing: bool, target: int = 0) -> None:
        """Add rows as for univariate splits, which hold where the weight of feature j is not negative: it may not be.

        A split with a negative weight can be turned round, its subtrees changing places.
        """
        super().keep_monotone(j, increasing=increasing, target=target)
        name = free_name(self.m, f"monotone_{self.data.features.labels[j]}_weight")
        self.m.add(name, self.m["a"][:, j] >= 0)


@dataclass(frozen=True, kw_only=True)
class OctH(PredictsClasses, HyperplaneLabels):
    """Optimal classification tree with hyperplane splits.

    Parameters
    ----------
    alpha
        Cost of a feature in a split, relative to the error of the best constant prediction.
    N_min
        Least number of samples in a leaf that holds any.
    mu
        Margin that stands for the strict inequality to the left.
    max_features
        Most features in a split; 0 for any number. With 2, every split is a line in a plane of two features.
    costs
        Cost of predicting the class of a column for a sample of the class of a row: K rows, or a .csv file of them.
    """

    name = "oct-h"
    summary = "optimal classification tree with hyperplane splits, any number of classes"
    source = "Dunn 2018, chapter 3"

    def declare(self, m: Model, instance: ClassTreeInstance) -> None:
        features = instance.routing.declare(m)  # (2.5) - (2.8), (3.1), (3.2)
        L = declare_class_leaves(m, instance)  # (2.15) - (2.22)
        m.minimize(L.sum() / instance.baseline + self.alpha * features)  # (3.3)

    def encode(self, tree: Tree, instance: ClassTreeInstance) -> dict[str, FloatArray]:
        splits = instance.routing.encode(tree)
        return splits | encode_class_leaves(tree, instance, splits["z"])
