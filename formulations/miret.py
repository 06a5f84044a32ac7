r"""MIRET: one multivariate tree that mimics a tree ensemble.

Source: G. Di Teodoro, M. Monaci, L. Palagi, *Unboxing tree ensembles for interpretability: a hierarchical
visualization tool and a multivariate optimal re-built tree*, EURO Journal on Computational Optimization 12 (2024),
sections 6 and 7. The ensemble predicts :math:`\hat y_i \in \{-1, 1\}` with probability :math:`p_i`; feature j has the
frequency :math:`f_{dj}` at level d, and :math:`J_d = \{j : f_{dj} > 0,\, f_{dj} \ge \gamma_d\}`. Features are in
[0, 1]; left leaves predict -1, right ones +1 (:math:`c_l`).

.. math::

    \min\; & \sum_i \tfrac{p_i}{2} \Bigl(1 - \hat y_i \sum_{l \in L} c_l z_{il}\Bigr)
        + \alpha \sum_{d < D} \sum_{j \in J_d} \tfrac{1}{f_{dj}} \sum_{t \text{ at level } d} s_{tj} \\
    & \sum_l z_{il} = 1 && i \quad (5) \\
    & -s_{tj} \le a_{tj} \le s_{tj}, \quad s_{tj} = 0 \text{ for } j \notin J_d && t \in B,\; j \quad (8, 14, 15) \\
    & a_t^\top x_i + b_t \ge -M_R \Bigl(1 - \sum_{l \in S_R(t)} z_{il}\Bigr) && i,\; t \in B \quad (6) \\
    & a_t^\top x_i + b_t + \varepsilon \le M_L \Bigl(1 - \sum_{l \in S_L(t)} z_{il}\Bigr)
        && i,\; t \in B \quad (7) \\
    & z_{il} = z_{kl} && l,\; (i, k) \text{ with } m_{ik} \ge \bar m \quad (12) \\
    & a_t \in [-1, 1]^p, \quad b_t \in [-1, 1], \quad s, z \text{ binary}

with :math:`m_{ik}` the proximity of two samples, :math:`S_R(t), S_L(t)` the leaves below t's children, and
:math:`M_R = p + 1`, :math:`M_L = p + 1 + \varepsilon`.

**Weights of samples** multiply :math:`p_i`, and an ensemble that is fitted here is fitted with them (on top of balanced
classes). Whole weights are repeated samples for a given ensemble: one that is fitted to repeated samples draws others.

**Variants.** ``paper`` is this model. ``improved`` is that of the paper's section 7, with :math:`|J_d|` for p in the
big-Ms, one variable per group of samples that (12) ties together, and

.. math::

    & \sum_{t, j} s_{tj} \ge 1 && \text{(section 7.1)} \\
    & b_t \ge 0 && t \in B' \quad \text{(section 7.2)} \\
    & g^L_{it} = \sum_{l \in S_L(t)} z_{il}, \quad g^R_{it} = \sum_{l \in S_R(t)} z_{il}
      && \text{(section 7.3; in the place of the sums in (6) and (7))} \\
    & g^L_{i0} + g^R_{i0} = 1, \quad g^L_{iu} = g^L_{it} + g^R_{it} \; (t \text{ left child of } u), \quad
      g^R_{iu} = g^L_{it} + g^R_{it} \; (t \text{ right child of } u) && \text{(section 7.3)}

It is not only a reformulation: (i) trees without a split are left out, which are optimal where features are dear;
(ii) ``b_t >= 0`` cuts off splits that only an intercept in :math:`(-\varepsilon, 0)` makes possible, as those of two
samples that differ by less than :math:`\varepsilon` in each feature.

``tight`` (the default) has the optimal value of ``paper``. It is ``improved`` with these changes:

1. *Trees without a split stay*, and the row :math:`U + U_0 \sum s_{tj} \ge U_0` takes the place of
   :math:`\sum s \ge 1`, with U the first sum of the objective and :math:`U_0` its value for the better constant
   prediction. Where s = 0, all a are 0, all samples reach one leaf, and :math:`U \ge U_0`.
2. *Symmetry:* :math:`b_t \ge -\varepsilon / 2` for :math:`t \in B'`. The split :math:`(-a_t, -b_t - \varepsilon)` sends
   each sample to the other side of t, and lies in the box where :math:`b_t < -\varepsilon / 2`. As t is above the last
   level, its two subtrees can change places: the samples of a leaf stay together, labels and levels stay.
3. *Big-Ms per sample:* :math:`-\sigma_i \le a_t^\top x_i \le \sigma_i = \sum_{j \in J_d} x_{ij}`, hence
   :math:`M_R = \sigma_i - \min b_t` and :math:`M_L = \sigma_i + 1 + \varepsilon`.
4. *Samples equal in all features of* :math:`\bigcup J_d` reach the same leaf, and are merged with their groups.

The proof of 2 needs the symmetry of the model, which added rows may break. They keep it if they read selections and
assignments only (s, z, and what helpers add to read these), and are the same rows once the subtrees of any node above
the last level change places: forbidden features and budgets, leaf sizes, parity. This is checked row by row. With other
rows, such as those that name one node of a level, ``tight`` is built again with :math:`b_t \ge -1` in the place of
change 2, and claims its bound. Changes 1, 3 and 4 hold at every point of ``paper``, so for any added rows. ``improved``
leaves out trees by (i) and (ii): an optimum of it is one of its rows, not of the definition, and with added constraints
nothing is claimed on its bound. ``paper`` takes any constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.mimic.target import (
    EnsembleTarget,
    ensemble_target,
    fidelity_measures,
    first_members,
    level_notes,
    merge_equal_samples,
    mimicry_report,
    pairs_with_first,
    proximity_notes,
)
from formulations.mimic.trees import constant_tree, fit_splits, fixed_labels, node_by_node, with_fixed_labels
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import Model, Values
from mipforest.problem.expressions import Expression, TreeExpressions, require_weight
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import ModelChanges
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import PerNode, TreeEnsemble, parameter
from mipforest.problem.structure import LabelledLeaves
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import RESIDUE, keep_sides, missed_gap

#: Share of the time left that the start may take: the solver has the rest.
START_SHARE = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MiretInstance(Instance):
    """A data set with the ensemble's answers for it, and what the variant makes of them.

    Attributes
    ----------
    target
        The ensemble's answers, and what follows from them.
    allowed
        (|B|, p) whether a node may use a feature: j in J_d at its level d.
    costs
        (|B|, p) cost of a feature at a node.
    group
        (n,) group of samples that share the variables z.
    first
        (G,) position of the first sample of each group, which stands for it.
    least_intercept
        (|B|,) lower bound of each intercept.
    """

    target: EnsembleTarget
    allowed: BoolArray
    costs: FloatArray
    group: IntArray
    first: IntArray
    least_intercept: FloatArray


@dataclass(frozen=True, kw_only=True)
class Miret(Formulation):
    """One multivariate tree that mimics a tree ensemble.

    Parameters
    ----------
    alpha
        Cost of a feature in a split, divided by the feature's frequency at the level.
    gamma
        Least frequency (0 to 1) of the features that splits of a level may use: one value, or one per level.
    gamma_percentile
        The same as a percentile (0 to 100) of the level's positive frequencies. The larger of both thresholds
        counts; the paper gives percentiles.
    proximity
        Samples that share at least this share of the ensemble's leaves share a leaf of the tree; above 1, none do.
    epsilon
        Gap that stands for the strict inequality to the left.
    ensemble
        The ensemble, in any form that :func:`mipforest.ensembles.ensemble_for` takes: a text such as
        ``"random-forest:trees=100"``, a ``.joblib`` file, a fitted classifier.
    """

    name = "miret"
    summary = "one multivariate tree that mimics a tree ensemble (two classes)"
    source = "Di Teodoro, Monaci, Palagi 2024, sections 6 and 7"
    two_classes = True
    takes_weights = True
    variants = ("tight", "improved", "paper")
    starts = ("node-by-node", "constant")
    least_objective = 0.0
    gap_parameter = "epsilon"
    gap_rows = ("left", "right")
    structure_type = LabelledLeaves

    alpha: float = parameter(0.2, "cost of a feature, over its frequency at the level", at_least=0)
    gamma: PerNode = parameter(0.0, "least frequency of a feature, per level", at_least=0)
    gamma_percentile: PerNode = parameter(
        0.0, "the same as a percentile of the level's positive frequencies", at_least=0
    )
    proximity: float = parameter(1.0, "samples at least this close share a leaf; above 1: off", above=0)
    epsilon: float = parameter(1e-3, "gap that stands for a strict inequality", above=0, below=1)
    ensemble: Any = parameter("random-forest:trees=100", "the tree ensemble to mimic", kind=TreeEnsemble())

    # ------------------------------------------------------------------ the model

    def check_data(self, data: Dataset, topology: Topology) -> None:
        data.require_classes(2, self.name)
        self.require_unit_box(data)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> MiretInstance:
        budget = budget or TimeBudget()
        frequent, constant = (
            (self.gamma, self.gamma_percentile),
            self.variant != "improved",
        )  # its trees split
        target = ensemble_target(
            self.ensemble, *frequent, self.proximity, data, topology.depth, budget, constant=constant
        )
        least_upper = {"paper": -1.0, "improved": 0.0, "tight": -self.epsilon / 2}[self.variant]
        above_last = np.arange(topology.n_branches) < len(topology.upper_branches)
        instance = MiretInstance(
            data=data,
            topology=topology,
            budget=budget,
            notes=(*level_notes(target), *proximity_notes(target)),
            **self._of_target(target, data, topology),
            least_intercept=np.where(above_last, least_upper, -1.0),
        )
        with instance.budget.phase("start", "finding a start tree"):
            return replace(instance, known=self.start("node-by-node", instance))

    def _of_target(self, target: EnsembleTarget, data: Dataset, topology: Topology) -> dict[str, Any]:
        """Return what an instance has of its target."""
        group = self._groups(target, data)
        return {
            "target": target,
            "allowed": target.allowed[topology.levels],
            "costs": target.feature_costs(self.alpha)[topology.levels],
            "group": group,
            "first": first_members(group),
        }

    def structure(self, instance: MiretInstance) -> LabelledLeaves:
        """Return what searches may know; by change 2 above, ``tight`` has the trees of ``paper``."""
        target, improved = instance.target, self.variant == "improved"
        group = merge_equal_samples(target.group, instance.data.X[:, target.allowed.any(axis=0)])
        return LabelledLeaves(
            group=group,
            charges=target.wrong_weights(group),
            prices=np.where(target.allowed, target.feature_costs(self.alpha), np.inf),
            gap=self.epsilon,
            upper_intercepts=0.0 if improved else -1.0,
            needs_split=improved,
        )

    def declare(self, m: Model, instance: MiretInstance) -> None:
        data, topology, target, group = instance.data, instance.topology, instance.target, instance.group
        members = [data.samples[i] for i in instance.first]
        nodes, sides = (topology.branches, data.features), (members, topology.branches)
        a = m.continuous(
            "a",
            nodes,
            lower=-1.0 * instance.allowed,
            upper=1.0 * instance.allowed,
            meaning="weights of a node's hyperplane",
        )
        b = m.continuous(
            "b",
            topology.branches,
            lower=instance.least_intercept,
            upper=1,
            meaning="intercept of a node's hyperplane",
        )  # section 7.2
        s = m.binary("s", nodes, meaning="whether a node uses a feature")
        s.set_bounds(upper=instance.allowed)  # (14), (15)
        z = m.binary("z", (members, topology.leaves), meaning="whether a group of samples reaches a leaf")

        unfaithfulness = (target.wrong_weights(group)[:, fixed_labels(topology)] * z).sum()
        m.minimize(unfaithfulness + (instance.costs * s).sum())
        m.add("assign", z.sum(axis=1) == 1, over=members)  # (5)
        m.add("selected_above", a <= s, over=nodes)  # (8)
        m.add("selected_below", a >= -s, over=nodes)  # (8)

        goes_left: Expression = z @ topology.leaf_reach_left
        goes_right: Expression = z @ topology.leaf_reach_right
        if self.variant != "paper":  # sides on which a solver can branch
            g_left, g_right = (
                m.binary("goes_left", sides, meaning="whether a group goes left at a node"),
                m.binary("goes_right", sides, meaning="whether a group goes right at a node"),
            )
            m.add("leaves_left", g_left == goes_left, over=sides)  # section 7.3
            m.add("leaves_right", g_right == goes_right, over=sides)  # section 7.3
            m.add("root", g_left[:, 0] + g_right[:, 0] == 1, over=members)  # section 7.3
            parents, passed = topology.upper_branches, g_left + g_right
            if parents:
                left, right = [topology.left(t) for t in parents], [topology.right(t) for t in parents]
                m.add("parent_left", g_left[:, parents] == passed[:, left])  # section 7.3
                m.add("parent_right", g_right[:, parents] == passed[:, right])  # section 7.3
            goes_left, goes_right = g_left, g_right

        score, routed = data.X @ a.T + b, (data.samples, topology.branches)
        M_right, M_left = self._big_ms(instance)
        m.add("right", score >= -M_right * (1 - goes_right[group]), over=routed)  # (6)
        m.add("left", score + self.epsilon <= M_left * (1 - goes_left[group]), over=routed)  # (7)

        if self.variant == "paper":
            twin, first = pairs_with_first(target.group)
            m.add("proximity", z[twin] == z[first])  # (12)
        elif self.variant == "improved":
            m.add("some_split", s.sum() >= 1)  # section 7.1
        else:
            constant = target.wrong_weights(group).sum(axis=0).min()
            m.add("split_or_constant", unfaithfulness + constant * s.sum() >= constant)  # change 1 above

    def valid_below(self, instance: MiretInstance, changes: ModelChanges) -> float:
        # At depth one, and once intercepts are free, no two subtrees have changed places.
        free = (instance.least_intercept == -1.0).all()
        symmetric = self.variant == "tight" and not free and self._keep_symmetry(instance, changes)
        return float("inf") if free or symmetric else -float("inf")

    def with_cutoff(
        self, instance: MiretInstance, value: float, changes: ModelChanges
    ) -> MiretInstance | None:
        return None if changes.loosened else self.with_all_trees(instance)

    def with_all_trees(self, instance: MiretInstance) -> MiretInstance | None:
        if (instance.least_intercept == -1.0).all():
            return instance
        if self.variant != "tight":
            return None
        return replace(instance, least_intercept=np.full(instance.topology.n_branches, -1.0))

    def _keep_symmetry(self, instance: MiretInstance, changes: ModelChanges) -> bool:
        """Say whether added rows are the same when the subtrees of any node above the last level change places."""
        if changes.loosened or changes.blocks & {"a", "b", "goes_left", "goes_right"}:
            return False
        topology = instance.topology
        B, L = topology.n_branches, topology.n_leaves
        for t in topology.upper_branches:
            swapped = np.arange(topology.n_nodes)
            left, right = [topology.left(t)], [topology.right(t)]
            while left and left[0] < topology.n_nodes:
                swapped[left], swapped[right] = right, left
                left, right = ([c for s in side for c in (2 * s + 1, 2 * s + 2)] for side in (left, right))
            columns = np.arange(changes.form.n_columns)
            for block in changes.form.columns:
                own = columns[block.start : block.stop].reshape(block.shape)
                # Blocks that helpers add may change places in any way under which their rows stay the same.
                if block.name == "z" or (block.name != "s" and block.shape == (L,)):
                    own = own[..., swapped[B:] - B]
                elif block.name == "s" or (block.shape[0] == B and block.name != "feature_used"):
                    own = own[swapped[:B]]
                columns[block.start : block.stop] = own.ravel()
            if not changes.symmetric_under(columns):
                return False
        return True

    def with_features(self, instance: MiretInstance, allowed: BoolArray) -> MiretInstance:
        target = replace(instance.target, allowed=instance.target.allowed & allowed)
        own = replace(instance, **self._of_target(target, instance.data, instance.topology))
        return replace(own, known=self.start("node-by-node", own))

    def constants_proven(self, instance: MiretInstance, value: float, changes: ModelChanges) -> bool:
        return self.variant != "improved"

    def _groups(self, target: EnsembleTarget, data: Dataset) -> IntArray:
        """Return the (n,) group of samples that share the variables z."""
        if self.variant == "paper":
            return np.arange(data.n)
        if self.variant == "improved":
            return target.group
        return merge_equal_samples(target.group, data.X[:, target.allowed.any(axis=0)])

    def _big_ms(self, instance: MiretInstance) -> tuple[FloatArray | float, FloatArray | float]:
        """Return M_R and M_L: numbers, (|B|,) per node, or (n, |B|) per sample and node."""
        data, allowed = instance.data, instance.allowed
        if self.variant == "tight":
            size = data.X @ allowed.T.astype(float)
            return size - instance.least_intercept, size + 1 + self.epsilon
        q = allowed.sum(axis=1) if self.variant == "improved" else data.p
        return q + 1.0, q + 1.0 + self.epsilon

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: MiretInstance) -> dict[str, FloatArray]:
        """Return the values of every block; where the variant asks for it, subtrees change places first."""
        topology = instance.topology
        a, b, leaf = fit_splits(
            with_fixed_labels(tree), instance.data.X, self.epsilon, instance.least_intercept
        )
        z = np.eye(topology.n_leaves)[leaf[instance.first]]
        values = {"a": a, "b": b, "s": (a != 0).astype(float), "z": z}
        if self.variant == "paper":
            return values
        return values | {
            "goes_left": z @ topology.leaf_reach_left,
            "goes_right": z @ topology.leaf_reach_right,
        }

    def decode(self, values: Values, instance: MiretInstance) -> Tree:
        data, topology = instance.data, instance.topology
        keeps = (values["s"] > 0.5) & (np.abs(values["a"]) > RESIDUE)
        w, b = np.where(keeps, values["a"], 0.0), np.array(values["b"])
        z = values["z"][instance.group]
        goes_right, goes_left = z @ topology.leaf_reach_right > 0.5, z @ topology.leaf_reach_left > 0.5
        if self.variant == "improved" and not w.any() and (values["s"] > 0.5).any():
            # Its trees have a split. Where the solver selects a feature only to pay for it, with the weight 0, the
            # feature gets a weight that sends all samples where they go already.
            t, j = divmod(int(np.where(values["s"] > 0.5, instance.costs, np.inf).argmin()), data.p)
            w[t, j] = 0.5
            b[t] = -1.0 if goes_left[:, t].any() else 1.0
        sizes = data.sizes
        for t in topology.branches:
            # The solver keeps sides up to its tolerance; the tree keeps them exactly.
            here = goes_left[:, t] | goes_right[:, t]
            b[t] = keep_sides(data.X[here], w[t], goes_right[here, t], float(b[t]), sizes=sizes[here])
        labels = fixed_labels(topology)
        return Tree(topology.depth, w, b, labels, tuple(data.classes), tuple(data.features.labels))

    def evaluate(self, tree: Tree, instance: MiretInstance) -> float:
        """Return the objective; infinite where a split uses a feature outside J_d, or close samples part."""
        X, target = instance.data.X, instance.target
        own = with_fixed_labels(tree)
        used, leaf = own.w != 0, own.apply(X)
        parted = leaf != leaf[first_members(target.group)][target.group]
        if (used & ~instance.allowed).any() or parted.any():
            return float("inf")
        return target.unfaithfulness(own.predict(X)) + float(instance.costs[used].sum())

    def violations(self, tree: Tree, instance: MiretInstance) -> dict[str, float]:
        """Return by how much a tree breaks (6) and (7), fitted into the box; what else is asked makes it infinite."""
        topology, X = instance.topology, instance.data.X
        own = with_fixed_labels(tree)
        a, b, leaf = fit_splits(own, X, self.epsilon, np.full(topology.n_branches, -1.0))
        score, missed = X @ a.T + b, 0.0
        right, left = (
            topology.leaf_reach_right.toarray()[leaf] > 0,
            topology.leaf_reach_left.toarray()[leaf] > 0,
        )
        for t in topology.branches:
            beyond = np.concatenate([score[left[:, t], t] + self.epsilon, -score[right[:, t], t]])
            missed = max(missed, missed_gap(beyond, self.epsilon))
        broken = {f"the gap epsilon = {self.epsilon:g}": missed}
        if self.variant == "improved":
            broken["that some node splits"] = float(not own.w.any())  # section 7.1
        return broken

    def expressions(self, m: Model, instance: MiretInstance) -> TreeExpressions:
        return MiretExpressions(self.name, m, instance.data, instance.topology, instance.group)

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: MiretInstance, *, seed: int = 0) -> Tree:
        data, topology, target = instance.data, instance.topology, instance.target
        if name == "constant":
            return constant_tree(data, topology, target)
        if name == "node-by-node":
            part = instance.budget.part(share=START_SHARE)
            least = instance.least_intercept
            return node_by_node(data, topology, target, instance.costs, self.epsilon, least, part)
        other: Tree = super().start(name, instance, seed=seed)
        return other

    # ------------------------------------------------------------------ after the solve

    def measures(self, tree: Tree, data: Dataset, instance: MiretInstance) -> dict[str, Any]:
        return fidelity_measures(tree, data, instance.target)

    def report(self, solved: Tree, refined: Tree, instance: MiretInstance) -> dict[str, Any]:
        return mimicry_report(solved, instance.data, instance.target, instance.costs, instance.group)


@dataclass(frozen=True, eq=False)
class MiretExpressions(TreeExpressions):
    """Binaries ``s`` (|B|, p) select features, ``z`` (G, |L|) assigns groups of samples to leaves with fixed labels.

    Attributes
    ----------
    group
        (n,) group of each sample.
    """

    group: IntArray

    def feature_blocks(self) -> tuple[str, ...]:
        return ("a", "s")

    def features(self) -> Expression:
        return self.m["s"]

    def require_feature(self, j: int | IntArray) -> None:
        """Add rows and binaries: some split gives feature j a weight that is not negligible.

        ``s`` alone may be 1 at a weight of 0.
        """
        require_weight(self, self.m["a"], 1.0, j)

    def leaves(self) -> Expression:
        return self.m["z"][self.group]

    def predicted(self, k: int) -> Expression:
        return self.m["z"][:, k::2].sum(axis=1)[self.group]
