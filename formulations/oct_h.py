r"""OCT-H: optimal classification trees with hyperplane splits.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (3.3). The splits and
the leaf assignment are those of :mod:`formulations.hyperplane_splits`, the losses :math:`L_t` those of
:mod:`formulations.class_leaves`, and

.. math::  \min \tfrac{1}{\hat L} \sum_{t \in L} L_t + \alpha \sum_{t \in B} \sum_j s_{jt} .
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from formulations.class_leaves import (
    baseline_error,
    check_class_data,
    class_loss,
    declare_class_leaves,
    encode_class_leaves,
    with_labels,
    with_majority_labels,
)
from formulations.class_tree_expressions import HyperplaneExpressions
from formulations.hyperplane_splits import (
    declare_hyperplane_splits,
    decode_hyperplane_splits,
    encode_hyperplane_splits,
)
from formulations.wide_gaps import cart_with_gaps
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree

#: Seconds for all nodes of the greedy start together; the thesis caps its node problems likewise.
GREEDY_TIME_LIMIT = 30.0


@dataclass(frozen=True, kw_only=True)
class OctH(Formulation):
    """Optimal classification tree with hyperplane splits.

    Parameters
    ----------
    alpha
        Cost of a feature in a split, relative to the error of the best constant prediction.
    N_min
        Least number of samples in a leaf that holds any.
    mu
        Margin that stands for the strict inequality to the left.
    """

    name = "oct-h"
    summary = "optimal classification tree with hyperplane splits, any number of classes"
    source = "Dunn 2018, chapter 3"
    starts = ("cart", "greedy", "previous-depth")

    alpha: float = parameter(0.0, "cost of a feature in a split", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)
    mu: float = parameter(0.005, "margin that stands for a strict inequality", above=0, below=1)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: Instance) -> None:
        data, tree = instance.data, instance.topology
        leaf = declare_hyperplane_splits(m, data, tree, self.N_min, self.mu)
        loss = declare_class_leaves(m, data, tree, leaf.z, leaf.used)
        m.minimize(loss + self.alpha * m["s"].sum())

    # ------------------------------------------------------------------ trees

    def encode(self, fitted: Tree, instance: Instance) -> dict[str, FloatArray]:
        data = instance.data
        values = encode_hyperplane_splits(fitted, data, self.mu)
        return {**values, **encode_class_leaves(fitted, data, values["z"])}

    def decode(self, values: Values, instance: Instance) -> Tree:
        routing = decode_hyperplane_splits(values, instance.data, instance.topology)
        return with_labels(routing, instance.data, values["c"])

    def relabel(self, fitted: Tree, instance: Instance) -> Tree:
        return with_majority_labels(fitted, instance.data)

    def evaluate(self, fitted: Tree, instance: Instance) -> float:
        return class_loss(fitted, instance.data, self.N_min) + self.alpha * int((fitted.w != 0).sum())

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, instance: Instance) -> TreeExpressions:
        return HyperplaneExpressions(self.name, m, instance.data, instance.topology)

    # ------------------------------------------------------------------ limits and starts

    def check_data(self, data: Dataset, tree: Topology) -> None:
        check_class_data(self.name, data, self.N_min)

    def start(self, name: str, instance: Instance, *, seed: int = 0) -> Tree:
        data, tree = instance.data, instance.topology
        if name == "cart":
            return with_majority_labels(
                cart_with_gaps(data, tree, self.mu, min_leaf=self.N_min, seed=seed), data
            )
        if name == "greedy":
            return self._greedy(data, tree)
        if name == "previous-depth":
            return self.previous_depth(instance)
        return super().start(name, instance, seed=seed)

    def polish(self, fitted: Tree, instance: Instance) -> Tree:
        return with_majority_labels(fitted, instance.data)

    def _greedy(self, data: Dataset, tree: Topology) -> Tree:
        """Solve the model of depth one at every node, from the root down, on the samples that reach it."""
        w, b = np.zeros((tree.n_branches, data.p)), np.zeros(tree.n_branches)
        deadline = monotonic() + GREEDY_TIME_LIMIT

        def grow(t: int, rows: IntArray) -> None:
            if t >= tree.n_branches or monotonic() > deadline:
                return
            split = self._best_split(data.take(rows), data, GREEDY_TIME_LIMIT / tree.n_branches)
            if split is None or split.is_trivial(0):
                return
            w[t], b[t] = split.w[0], split.b[0]
            goes_right = data.X[rows] @ w[t] + b[t] >= 0
            grow(2 * t + 1, rows[~goes_right])
            grow(2 * t + 2, rows[goes_right])

        grow(0, np.arange(data.n))
        leaves = np.zeros(tree.n_leaves)
        fitted = Tree(tree.depth, w, b, leaves, tuple(data.classes), tuple(data.features.labels))
        return with_majority_labels(fitted, data)

    def _best_split(self, here: Dataset, data: Dataset, time_limit: float) -> Tree | None:
        """Tree of depth one for the samples of a node; ``None`` where one class is left, or too few samples."""
        errors = baseline_error(here)
        if errors == 0 or here.n < 2 * self.N_min:
            return None
        # alpha is relative to the error of the whole data; the node's model measures in its own.
        node = replace(self, alpha=self.alpha * baseline_error(data) / errors)
        result = node.build(here, 1).solve(start="cart", time_limit=time_limit)
        return None if result.tree is None else result.tree.unscaled()
