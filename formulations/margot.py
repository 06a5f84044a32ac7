r"""MARGOT, HFS-MARGOT and SFS-MARGOT: margin optimal classification trees.

Source: F. D'Onofrio, G. Grani, M. Monaci, L. Palagi, *Margin optimal classification trees*, Computers &
Operations Research 161 (2024), sections 3 and 4. Labels :math:`y_i \in \{-1, 1\}`; samples are assigned to
the nodes :math:`B''` of the last branching level; the left leaf of such a node predicts -1, the right one +1.

.. math::

    \min\; & \sum_{t \in B} \Bigl( \tfrac12 \|w_t\|^2 + C_t \sum_i \xi_{it} \Bigr) \\
    & y_i (w_t^\top x_i + b_t) \ge 1 - \xi_{it} - M_\xi \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr)
        && i,\; t \in B \quad (7) \\
    & w_t^\top x_i + b_t \ge -M_H \Bigl(1 - \sum_{s \in S''_R(t)} z_{is}\Bigr) && i,\; t \in B' \quad (9) \\
    & w_t^\top x_i + b_t + \varepsilon \le M_H \Bigl(1 - \sum_{s \in S''_L(t)} z_{is}\Bigr)
        && i,\; t \in B' \quad (10) \\
    & \sum_{s \in B''} z_{is} = 1, \quad z_{is} \in \{0, 1\}, \quad \xi_{it} \ge 0 \quad (5, 6, 8)

with :math:`S''(t)` the nodes of :math:`B''` at or below t, and :math:`S''_L, S''_R` those below its left and right
child. HFS-MARGOT adds a budget of features per node, SFS-MARGOT charges what exceeds it:

.. math::

    -M_w s_{tj} \le w_{tj} \le M_w s_{tj}, \quad s_{tj} \in \{0, 1\} \quad (11, 12) \qquad
    \sum_j s_{tj} \le B_t \quad (HFS) \qquad
    u_t \ge \sum_j s_{tj} - B_t,\; u_t \ge 0,\; \text{objective} + \alpha \sum_t u_t \quad (SFS).

**Variants.** ``paper``: the constants of the paper, :math:`M_\xi = M_w = 50`, :math:`M_H = 100`. They are no bounds
in general: with a large C optimal weights exceed them, and the optimum is cut off. ``valid`` (the default): per-sample
constants and bounds on w and b proven from a feasible tree; see :mod:`formulations.margins`. Both have the same
optimal value wherever the paper's constants suffice. ``tight`` has the
optimal value of ``valid``, and what duals of the nodes prove besides; see :mod:`formulations.margins`:

- (7): :math:`M_\xi` is 1 more than a sample's score at t can be on the wrong side; (9), (10): :math:`M_H` is what its
  score can fall below 0, or exceed :math:`-\varepsilon`; (11, 12): :math:`M_w` is a bound for each weight;
- tighter bounds on w and b;
- rows ``sides``: :math:`\sum_{s \in E_i} z_{is} \le 0`, with :math:`E_i` the nodes of :math:`B''` that sample i
  reaches in no tree as good as the known one.

Building takes some seconds for hundreds of samples, and pays where the known tree's value is not far above the bound of
the root; of more than 1000 samples ``tight`` is ``valid`` with a larger share of the root.

What trees of linear classifiers share besides their rows is in :mod:`formulations.splits.linear`. MARGOT is the
loss-optimal tree (:mod:`formulations.loss_optimal`) with the hinge loss and half the squared Euclidean norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from formulations.margins import MarginLimits, at_nodes, screened
from formulations.splits.linear import NO_COSTS, LinearInstance, LinearTree, declare_hyperplanes, losses_paid
from mipforest.arrays import FloatArray
from mipforest.heuristics.linear_starts import local_svm, svm_path
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.model import Model, sum_squares
from mipforest.objectives.losses import HALF_SQUARED_L2, HINGE
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology, Tree

#: Share of the time that is left after the start which the screening of variant ``tight`` may take.
SCREENING_SHARE = 0.3


@dataclass(frozen=True, kw_only=True)
class Margot(LinearTree):
    """Margin optimal classification tree.

    Parameters
    ----------
    C
        Penalty of margin violations: one value, one per level, or one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left.
    """

    name = "margot"
    summary = "margin optimal classification tree: a support vector machine at every node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 3"
    starts = ("svm-path", "local-svm", "cart")
    quick_start = "local-svm"
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **NO_COSTS,
        "max_features": "hfs-margot limits the features per node by its parameter B",
    }

    variants: ClassVar[tuple[str, ...]] = ("valid", "paper", "tight")
    rows_below_cutoff: ClassVar[frozenset[str]] = frozenset({"sides"})

    C: PerNode = parameter(1.0, "penalty of margin violations", above=0)

    def node_problems(self, topology: Topology) -> NodeProblems:
        C = per_node("C", self.C, topology.depth)
        return NodeProblems(C, self.epsilon, loss=HINGE, norm=HALF_SQUARED_L2)

    def paper_limits(self, nodes: NodeProblems) -> MarginLimits:
        return MarginLimits(M_xi=(50.0,), M_right=100.0, M_left=100.0, M_w=50.0)

    def root_share(self, instance: LinearInstance) -> float:
        if self.variant != "tight":
            return 0.0
        data = instance.data
        return instance.nodes.lower_bound(0, data.X, data.sign, data.weights)

    def _limits(
        self,
        instance: LinearInstance,
        upper_bound: float,
        *,
        root_share: float,
        bias_read: FloatArray | None = None,
    ) -> MarginLimits:
        limits = super()._limits(instance, upper_bound, root_share=root_share, bias_read=bias_read)
        if self.variant != "tight":
            return limits
        part = instance.budget.part(share=SCREENING_SHARE)
        return screened(limits, instance.data, instance.topology, instance.nodes, part)

    def declare(self, m: Model, instance: LinearInstance) -> None:
        data, topology, limits, C = instance.data, instance.topology, instance.limits, instance.nodes.C
        X, y, upper = data.X, data.sign[:, None], topology.upper_branches
        all_nodes, upper_nodes = (data.samples, topology.branches), (data.samples, upper)
        M_xi, M_right, M_left = (
            limits.M_xi[0],
            at_nodes(limits.M_right, upper),
            at_nodes(limits.M_left, upper),
        )

        w, b = declare_hyperplanes(m, instance)
        xi = m.nonnegative("xi", all_nodes, meaning="slack of a sample's margin at a node")  # (8)
        z = m.binary(
            "z", (data.samples, topology.last_branches), meaning="whether a sample reaches a last node"
        )  # (6)
        score = X @ w.T + b

        m.minimize(0.5 * sum_squares(w) + C @ (data.weights @ xi))
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)  # (5)
        m.add("margin", y * score >= 1 - xi - M_xi * (1 - z @ topology.reach), over=all_nodes)  # (7)
        if limits.excluded is not None:  # variant tight
            m.add("sides", (limits.excluded * z).sum(axis=1) <= 0, over=data.samples)
        if upper:
            above, right, left = score[:, upper], z @ topology.reach_right, z @ topology.reach_left
            m.add("right", above >= -M_right * (1 - right), over=upper_nodes)  # (9)
            m.add("left", above + self.epsilon <= M_left * (1 - left), over=upper_nodes)  # (10)

    def encode(self, tree: Tree, instance: LinearInstance) -> dict[str, FloatArray]:
        return {**super().encode(tree, instance), "xi": losses_paid(tree, instance)}

    def start(self, name: str, instance: LinearInstance, *, seed: int = 0) -> Tree:
        data, topology, nodes = instance.data, instance.topology, instance.nodes
        if name == "local-svm":
            return local_svm(data, topology, nodes)
        if name != "svm-path":
            other: Tree = super().start(name, instance, seed=seed)
            return other
        path = svm_path(data, topology, nodes)
        if nodes.budget is None or instance.budget.expired:
            return path
        # With few features per node CART's routing often is better.
        candidates = (path, self.start("cart", instance, seed=seed))
        return min(candidates, key=lambda tree: self.evaluate(tree, instance))


@dataclass(frozen=True, kw_only=True)
class HfsMargot(Margot):
    """MARGOT with hard feature selection: at most ``B`` features per node.

    Parameters
    ----------
    C, epsilon
        As for :class:`Margot`.
    B
        Most features a node may use: one value, one per level, or one per branch node.
    """

    name = "hfs-margot"
    summary = "MARGOT with at most B features per node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 4 (HFS-MARGOT)"

    B: PerNode = parameter(2, "most features per node", at_least=1, whole=True)

    def node_problems(self, topology: Topology) -> NodeProblems:
        budget = per_node("B", self.B, topology.depth).astype(np.int64)
        return replace(super().node_problems(topology), budget=budget)

    def declare(self, m: Model, instance: LinearInstance) -> None:
        super().declare(m, instance)
        branches, w, M_w = instance.topology.branches, m["w"], instance.limits.M_w
        s = m.binary("s", (branches, instance.data.features), meaning="whether a node uses a feature")  # (12)
        m.add("below", w >= -M_w * s, over=(branches, instance.data.features))  # (11)
        m.add("above", w <= M_w * s, over=(branches, instance.data.features))  # (11)
        m.add("budget", s.sum(axis=1) <= instance.nodes.budget, over=branches)  # (HFS)


@dataclass(frozen=True, kw_only=True)
class SfsMargot(Margot):
    """MARGOT with soft feature selection: every feature beyond ``B`` per node costs ``alpha``.

    Parameters
    ----------
    C, epsilon
        As for :class:`Margot`.
    B
        Features per node that are free of cost: one value, one per level, or one per branch node.
    alpha
        Cost of every further feature.
    """

    name = "sfs-margot"
    summary = "MARGOT with a cost for every feature beyond B per node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 4 (SFS-MARGOT)"

    B: PerNode = parameter(1, "features per node free of cost", at_least=1, whole=True)
    alpha: float = parameter(1.0, "cost of every feature beyond B", above=0)

    def node_problems(self, topology: Topology) -> NodeProblems:
        budget = per_node("B", self.B, topology.depth).astype(np.int64)
        return replace(super().node_problems(topology), budget=budget, alpha=self.alpha)

    def declare(self, m: Model, instance: LinearInstance) -> None:
        super().declare(m, instance)
        branches, w, M_w = instance.topology.branches, m["w"], instance.limits.M_w
        u = m.nonnegative("u", branches, meaning="features of a node beyond those that are free")
        s = m.binary("s", (branches, instance.data.features), meaning="whether a node uses a feature")  # (12)
        m.minimize(
            0.5 * sum_squares(w) + instance.nodes.C @ (instance.data.weights @ m["xi"]) + self.alpha * u.sum()
        )
        m.add("below", w >= -M_w * s, over=(branches, instance.data.features))  # (11)
        m.add("above", w <= M_w * s, over=(branches, instance.data.features))  # (11)
        m.add("excess", u >= s.sum(axis=1) - instance.nodes.budget, over=branches)  # (SFS)
