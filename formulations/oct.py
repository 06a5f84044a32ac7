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
from formulations.previous_depth import previous_depth
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
from mipforest.problem.parameters import parameter
from mipforest.problem.problem import Preparation
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False)
class OctPreparation(Preparation):
    """Cuts of the data, and values of the root's cuts where the depth allows them.

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

    def declare(self, m: Model, data: Dataset, tree: Topology, prepared: OctPreparation) -> None:
        if prepared.cuts is None:
            self._declare_paper(m, data, tree)
        else:
            self._declare_tight(m, data, tree, prepared.cuts, prepared.roots)

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

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        tree = fitted.topology
        if self.variant == "paper":
            values = encode_univariate_splits(fitted, data)
            return {**values, **encode_class_leaves(fitted, data, values["z"])}
        cuts = find_cuts(data.X, data.features.labels)
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

    def decode(self, values: Values, data: Dataset) -> Tree:
        tree = Topology(int(np.log2(len(values["d"]) + 1)))
        routing = UnivariateRouting(self.N_min) if self.variant == "paper" else CutRouting(self.N_min)
        return with_labels(routing.decode(values, data, tree), data, values["c"])

    def relabelled(self, fitted: Tree, data: Dataset) -> Tree:
        return with_majority_labels(fitted, data)

    def _with_labels(self, feature: IntArray, threshold: FloatArray, tree: Topology, data: Dataset) -> Tree:
        unlabelled = univariate_tree(feature, threshold, np.zeros(tree.n_leaves), tree, data)
        return with_majority_labels(unlabelled, data)

    def evaluate(self, fitted: Tree, data: Dataset) -> float:
        return class_loss(fitted, data, self.N_min) + self.alpha * fitted.n_splits

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, data: Dataset, tree: Topology) -> TreeExpressions:
        kind = DunnExpressions if self.variant == "paper" else CutExpressions
        return kind(self.name, m, data, tree)

    # ------------------------------------------------------------------ limits and starts

    def check_data(self, data: Dataset, tree: Topology) -> None:
        check_class_data(self.name, data, self.N_min)

    def prepare(self, data: Dataset, tree: Topology) -> Preparation:
        if self.variant == "paper":
            return OctPreparation()
        cuts = find_cuts(data.X, data.features.labels)
        if tree.depth > 2:
            return OctPreparation(cuts=cuts)
        exact = self._depth_two(data, cuts)
        roots = exact.root_values(tree.depth)
        known = with_majority_labels(tree_of_cuts(exact.best(roots, tree.depth), cuts, tree, data), data)
        return OctPreparation(known=known, cuts=cuts, roots=roots)

    def start(self, name: str, data: Dataset, tree: Topology, *, seed: int = 0) -> Tree:
        if name == "cart":
            return self.polish(cart(data, tree, min_leaf=self.N_min, seed=seed), data)
        if name == "previous-depth":
            return self.polish(previous_depth(self, data, tree), data)
        if name == "dp":
            share = min(1.0, self.alpha * baseline_error(data) / data.n)
            return self.polish(contree(data, tree, split_cost=share), data)
        if name != "depth-two":
            return super().start(name, data, tree, seed=seed)
        cuts, top = find_cuts(data.X, data.features.labels), min(tree.depth, 2)
        exact = self._depth_two(data, cuts)
        best = exact.extended(exact.best(exact.root_values(top), top), tree.depth)
        return with_majority_labels(tree_of_cuts(best, cuts, tree, data), data)

    def candidates(self, data: Dataset, tree: Topology) -> Iterator[Tree]:
        return candidate_trees(data, tree, self.N_min)

    def polish(self, fitted: Tree, data: Dataset) -> Tree:
        """Prune to the best subtree under the objective, from the leaves up, and relabel the leaves."""
        tree = fitted.topology
        feature, threshold = chosen_features(fitted), -fitted.b
        best = self._with_labels(feature, threshold, tree, data)
        value = self.evaluate(best, data)
        for t in reversed(range(tree.n_branches)):
            if feature[t] < 0:
                continue
            fewer = np.where(_at_or_below(t, tree), -1, feature)
            candidate = self._with_labels(fewer, threshold, tree, data)
            if (candidate_value := self.evaluate(candidate, data)) <= value:
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
