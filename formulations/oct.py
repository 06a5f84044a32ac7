r"""OCT: optimal classification trees with univariate splits.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (2.24). The splits and
the leaf assignment are those of :mod:`formulations.univariate_splits`, and

.. math::  \min \tfrac{1}{\hat L} \sum_{t \in L} L_t + \alpha \sum_{t \in B} d_t \quad (2.23)

with the losses :math:`L_t` of :mod:`formulations.class_leaves`.

**Variants.** ``paper``: the above. ``tight`` (the default) has the same optimal value:

- Routing by discrete cuts (:mod:`formulations.cuts`), linear and without a big-M or an epsilon. Thresholds between the
  same two neighbouring values route all training samples alike, so one cut per gap is enough.
- Errors by correct predictions: with :math:`q_{gkt}` the share of the samples of class k in group g that reach leaf t
  and are predicted right there,

  .. math::

      q_{gkt} \le c_{kt}, \quad \sum_{t \in sub_L(m)} q_{gkt} \le \mathrm{left}_{gm}, \quad
      \sum_{t \in sub_R(m)} q_{gkt} \le 1 - \mathrm{left}_{gm}, \quad q \ge 0,

  errors are :math:`n - \sum_{g,k} n_{gk} \sum_t q_{gkt}`. For binary cuts and labels each group may put its weight on
  the one leaf that it reaches, if that leaf predicts its class: q needs no integrality, and z is not needed.
- With ``N_min >= 2`` the assignment of groups to leaves is added, continuous (the cuts make it 0 or 1), with (2.6) and
  (2.7). With ``N_min = 1`` rows (2.6), (2.7) only let a leaf be empty or not, and are left out.
- At depth 1 and 2 the least objective for every cut at the root is computed beforehand
  (:mod:`formulations.depth_two`) and enters as one valid row: the objective, in errors, is at least
  :math:`\sum_c V_c [\text{cut } c] + V_0 [\text{no split}]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from formulations.candidate_trees import candidate_trees
from formulations.class_leaves import (
    baseline_error,
    check_class_data,
    class_loss,
    declare_class_leaves,
    encode_class_leaves,
    leaves_of,
    with_labels,
    with_majority_labels,
)
from formulations.class_tree_expressions import CutExpressions, DunnExpressions
from formulations.cuts import (
    Cuts,
    declare_cuts,
    declare_group_leaves,
    encode_cuts,
    find_cuts,
    tree_of_cuts,
)
from formulations.depth_two import DepthTwo, RootValues
from formulations.root_row import value_of_root
from formulations.routings import CutRouting, UnivariateRouting
from formulations.univariate_splits import (
    chosen_features,
    declare_hierarchy,
    declare_univariate_splits,
    encode_univariate_splits,
    univariate_tree,
)
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart
from mipforest.heuristics.contree import contree
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False, kw_only=True)
class OctInstance(Instance):
    """A data set with its cuts, and values of the root's cuts where the depth allows them.

    Attributes
    ----------
    cuts
        All cuts, with the groups of equal samples; ``None`` for variant ``paper``.
    roots
        Least objective by the root's cut, at depth 1 and 2.
    """

    cuts: Cuts | None = None
    roots: RootValues | None = None


@dataclass(frozen=True, kw_only=True)
class Oct(Formulation):
    """Optimal classification tree with univariate splits.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the error of the best constant prediction.
    N_min
        Least number of samples in a leaf that holds any.
    """

    name = "oct"
    summary = "optimal classification tree with univariate splits, any number of classes"
    source = "Dunn 2018, chapter 2"
    variants = ("tight", "paper")
    starts = ("depth-two", "cart", "previous-depth", "dp")
    # Cuts make the linear relaxation highly degenerate: the simplex method needs minutes for what an interior
    # point takes seconds for (banknote, depth 2: over 100 s against 10 s).
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {"highs": {"mip_lp_solver": "ipm"}}

    alpha: float = parameter(0.0, "cost of a split", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: OctInstance) -> None:
        data, tree = instance.data, instance.topology
        if instance.cuts is None:
            self._declare_paper(m, data, tree)
        else:
            self._declare_tight(m, data, tree, instance.cuts, instance.roots)

    def _declare_paper(self, m: Model, data: Dataset, tree: Topology) -> None:
        leaf = declare_univariate_splits(m, data, tree, self.N_min)
        loss = declare_class_leaves(m, data, tree, leaf.z, leaf.used)
        m.minimize(loss + self.alpha * leaf.splits.sum())

    def _declare_tight(
        self, m: Model, data: Dataset, tree: Topology, cuts: Cuts, roots: RootValues | None
    ) -> None:
        counts = group_counts(data, cuts)
        group, label = np.nonzero(counts)
        c = m.binary("c", (list(data.classes), tree.leaves))
        d = m.binary("d", tree.branches)
        left = declare_cuts(m, cuts, tree, d)
        q = m.nonnegative("q", (len(group), tree.leaves), upper=1)

        errors = data.n - counts[group, label] @ q.sum(axis=1)
        baseline = baseline_error(data)
        m.minimize(errors / baseline + self.alpha * d.sum())
        m.add("one_class", c.sum(axis=0) == 1, over=tree.leaves)
        m.add("errors", errors >= 0)
        m.add("predicted", q <= c[label])
        m.add("left", q @ tree.leaf_reach_left <= left[group])
        m.add("right", q @ tree.leaf_reach_right <= 1 - left[group])
        if self.N_min > 1:
            declare_group_leaves(m, tree, d, left, counts.sum(axis=1), self.N_min)
        else:
            declare_hierarchy(m, tree, d)
        if roots is not None:
            cost = errors + self.alpha * baseline * d.sum()
            m.add("root_value", cost >= value_of_root(m["u"][0], d[0], cuts, roots))

    # ------------------------------------------------------------------ trees

    def encode(self, fitted: Tree, instance: OctInstance) -> dict[str, FloatArray]:
        data, tree, cuts = instance.data, instance.topology, instance.cuts
        if cuts is None:
            values = encode_univariate_splits(fitted, data)
            return {**values, **encode_class_leaves(fitted, data, values["z"])}
        feature = chosen_features(fitted)
        predicts = np.eye(len(data.classes))[fitted.leaf_value].T
        group, label = np.nonzero(group_counts(data, cuts))
        z = leaves_of(fitted, cuts.X)
        values = {
            "c": predicts,
            "d": (feature >= 0).astype(float),
            "u": encode_cuts(feature, -fitted.b, cuts, tree.branches),
            "q": z[group] * predicts[label],
        }
        if self.N_min > 1:
            values |= {"z": z, "l": z.any(axis=0).astype(float)}
        return values

    def decode(self, values: Values, instance: OctInstance) -> Tree:
        data, tree, cuts = instance.data, instance.topology, instance.cuts
        routing = UnivariateRouting(self.N_min) if cuts is None else CutRouting(self.N_min, cuts)
        return with_labels(routing.decode(values, data, tree), data, values["c"])

    def relabel(self, fitted: Tree, instance: Instance) -> Tree:
        return with_majority_labels(fitted, instance.data)

    def _with_labels(self, feature: IntArray, threshold: FloatArray, tree: Topology, data: Dataset) -> Tree:
        unlabelled = univariate_tree(feature, threshold, np.zeros(tree.n_leaves), tree, data)
        return with_majority_labels(unlabelled, data)

    def evaluate(self, fitted: Tree, instance: Instance) -> float:
        return class_loss(fitted, instance.data, self.N_min) + self.alpha * fitted.n_splits

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, instance: OctInstance) -> TreeExpressions:
        data, tree, cuts = instance.data, instance.topology, instance.cuts
        if cuts is None:
            return DunnExpressions(self.name, m, data, tree)
        return CutExpressions(self.name, m, data, tree, cuts)

    # ------------------------------------------------------------------ limits and starts

    def check_data(self, data: Dataset, tree: Topology) -> None:
        check_class_data(self.name, data, self.N_min)

    def bind(self, data: Dataset, topology: Topology) -> OctInstance:
        if self.variant == "paper":
            return OctInstance(data=data, topology=topology)
        cuts = find_cuts(data.X, data.features.labels)
        if topology.depth > 2:
            return OctInstance(data=data, topology=topology, cuts=cuts)
        exact = self._depth_two(data, cuts)
        roots = exact.root_values(topology.depth)
        best = exact.best(roots, topology.depth)
        known = with_majority_labels(tree_of_cuts(best, cuts, topology, data), data)
        return OctInstance(data=data, topology=topology, known=known, cuts=cuts, roots=roots)

    def start(self, name: str, instance: OctInstance, *, seed: int = 0) -> Tree:
        data, tree = instance.data, instance.topology
        if name == "cart":
            return self.polish(cart(data, tree, min_leaf=self.N_min, seed=seed), instance)
        if name == "previous-depth":
            return self.polish(self.previous_depth(instance), instance)
        if name == "dp":
            share = min(1.0, self.alpha * baseline_error(data) / data.n)
            return self.polish(contree(data, tree, split_cost=share), instance)
        if name != "depth-two":
            return super().start(name, instance, seed=seed)
        cuts, top = instance.cuts or find_cuts(data.X, data.features.labels), min(tree.depth, 2)
        exact = self._depth_two(data, cuts)
        best = exact.extended(exact.best(exact.root_values(top), top), tree.depth)
        return with_majority_labels(tree_of_cuts(best, cuts, tree, data), data)

    def candidates(self, instance: Instance) -> Iterator[Tree]:
        return candidate_trees(instance.data, instance.topology, self.N_min)

    def polish(self, fitted: Tree, instance: Instance) -> Tree:
        """Prune to the best subtree under the objective, from the leaves up, and relabel the leaves."""
        data, tree = instance.data, instance.topology
        feature, threshold = chosen_features(fitted), -fitted.b
        best = self._with_labels(feature, threshold, tree, data)
        value = self.evaluate(best, instance)
        for t in reversed(range(tree.n_branches)):
            if feature[t] < 0:
                continue
            fewer = np.where(_at_or_below(t, tree), -1, feature)
            candidate = self._with_labels(fewer, threshold, tree, data)
            if (candidate_value := self.evaluate(candidate, instance)) <= value:
                feature, best, value = fewer, candidate, candidate_value
        return best

    def _depth_two(self, data: Dataset, cuts: Cuts) -> DepthTwo:
        return DepthTwo(cuts, group_counts(data, cuts), self.alpha * baseline_error(data), self.N_min)


def _at_or_below(t: int, tree: Topology) -> BoolArray:
    """(|B|,) branch nodes in the subtree of node t."""
    inside = np.zeros(tree.n_branches, dtype=bool)
    inside[t] = True
    for s in range(t + 1, tree.n_branches):
        inside[s] = inside[(s - 1) // 2]
    return inside


def group_counts(data: Dataset, cuts: Cuts) -> FloatArray:
    """(g, K) samples of each class in each group of equal samples."""
    counts = np.zeros((len(cuts.X), len(data.classes)))
    np.add.at(counts, (cuts.group, data.y.astype(np.int64)), 1.0)
    return counts
