r"""OLCT: optimal logistic classification trees, with oblique, sparse or univariate splits.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section 3.2,
problem (3.17). Features have mean 0 and variance 1, labels are -1 and +1.

.. math::

    \min\; & \sum_{h=1}^D \Bigl( C_h \sum_i \xi_{ih}
        + \sum_{t \text{ at level } h} \sum_j (w_{tj}^+ + w_{tj}^-) \Bigr) \\
    & w = w^+ - w^-, \quad w^+, w^- \ge 0 \quad (3.16) \\
    & \xi_{ih} \ge f(v) + f'(v) \bigl( y_i (w_t^\top x_i + b_t) - v \bigr)
        - M \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr) && i,\; h,\; t \text{ at level } h,\; v \in V \quad (3.15) \\
    & w_t^\top x_i + b_t \ge -M \Bigl(1 - \sum_{s \in S''_R(t)} z_{is}\Bigr) && i,\; t \in B' \quad (3.7b) \\
    & w_t^\top x_i + b_t + \varepsilon \le M \Bigl(1 - \sum_{s \in S''_L(t)} z_{is}\Bigr)
        && i,\; t \in B' \quad (3.7a) \\
    & \sum_{s \in B''} z_{is} = 1, \quad z_{is} \in \{0, 1\} \quad (3.6)

with :math:`f(v) = \log(1 + e^{-v})` and its tangents at the points V (:mod:`mipforest.objectives.losses`), among them
:math:`\pm\infty`, the lines 0 and :math:`-v`; the node sets are those of :mod:`formulations.margot`.

**Sparse splits** (remark 2 of the thesis): ``budgeted-olct`` adds :math:`\sum_j \delta_{tj} \le B_t`,
:math:`-M \delta \le w \le M \delta` (3.14); ``univariate-olct`` is the budget of one feature.

**Variant** ``indicator`` is ``valid`` with indicator rows, "if :math:`z_{is} = 1` then", in the place of the rows with
a big-M: a solver that branches on them, as SCIP does, keeps every gap at its default tolerances; one that makes big-Ms
of them need not. Weights and biases keep their proven bounds, from which a solver without indicator rows gets big-Ms
(:mod:`mipforest.bridges.indicator_to_big_m`).

The variants ``valid`` and ``paper``, starts and the refinement are in :mod:`formulations.splits.levels`; where the
model differs from the thesis stands in :mod:`formulations.loss_optimal`, of which it is the tree with the log-loss and
the l1 norm at all levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from formulations.margins import at_nodes
from formulations.splits.levels import LevelInstance, LevelTree
from formulations.splits.linear import GAP, GAPS, NO_COSTS, declare_hyperplanes
from mipforest.data.encoding import Scaling
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.model import LinearExpr, Model
from mipforest.objectives.losses import L1, LogisticLoss, tangent_points
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class Olct(LevelTree):
    """Optimal logistic classification tree.

    Parameters
    ----------
    C
        Penalty of the log-loss: one value or one per level; in variant ``valid`` also one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left. The thesis has 1e-5, which a solver's tolerance of 1e-6
        times M = 100 outweighs; what a gap has to be is in :mod:`formulations.splits.levels`.
    tangents
        Tangent points of the log-loss: ``V0`` to ``V3``, or the number of finite ones, chosen greedily.
    refinement
        Whether the last branching level is refitted with the log-loss itself after the solve.
    """

    variants = ("valid", "paper", "indicator")
    name = "olct"
    summary = "optimal logistic classification tree: a sparse logistic regression at every node"
    source = "Aldinucci, PhD thesis, section 3.2"
    scaling: ClassVar[Scaling] = "standard"
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **NO_COSTS,
        "max_features": "budgeted-olct limits the features per node by its parameter B",
    }

    C: PerNode = parameter(1.0, "penalty of the log-loss", above=0)
    epsilon: float = parameter(GAP, "gap that stands for a strict inequality", kind=GAPS)
    tangents: str = parameter("V0", "tangent points: V0, V1, V2, V3, or how many finite ones")
    refinement: bool = parameter(True, "refit the last branching level with the log-loss itself")

    def __post_init__(self) -> None:
        super().__post_init__()
        tangent_points(self.tangents)

    def node_problems(self, topology: Topology) -> NodeProblems:
        C = per_node("C", self.C, topology.depth)
        return NodeProblems(C, self.epsilon, loss=LogisticLoss(tangent_points(self.tangents)), norm=L1)

    def declare(self, m: Model, instance: LevelInstance) -> None:
        data, topology, limits, slacks = instance.data, instance.topology, instance.limits, instance.slacks
        X, y, upper = data.X, data.sign[:, None], topology.upper_branches
        weights = (topology.branches, data.features)
        all_nodes, upper_nodes = (data.samples, topology.branches), (data.samples, upper)
        M_right, M_left = at_nodes(limits.M_right, upper), at_nodes(limits.M_left, upper)
        tangents = instance.nodes.loss.convex

        w, b = declare_hyperplanes(m, instance)
        xi = m.nonnegative(
            "xi", (data.samples, slacks.over), meaning="log-loss of a sample at a level or node"
        )  # by level, or by node in variant valid
        z = m.binary(
            "z", (data.samples, topology.last_branches), meaning="whether a sample reaches a last node"
        )
        w_plus, w_minus = (
            m.nonnegative("w_plus", weights, meaning="positive parts of the weights"),
            m.nonnegative("w_minus", weights, meaning="negative parts of the weights"),
        )
        score = X @ w.T + b
        away = 1 - z @ topology.reach

        m.minimize(w_plus.sum() + w_minus.sum() + slacks.C @ (data.weights @ xi))
        m.add("parts", w == w_plus - w_minus, over=weights)  # (3.16)
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)  # (3.6)
        if self.variant == "indicator":
            self._declare_indicators(m, instance, score)
            return
        lines = zip(tangents.intercepts, tangents.slopes, limits.M_xi, strict=True)
        for k, (a, d, M) in enumerate(lines):
            m.add(
                f"loss_{k}", -d * (y * score) >= a - xi[:, slacks.of_node] - M * away, over=all_nodes
            )  # (3.15)
        if upper:
            above, right, left = score[:, upper], z @ topology.reach_right, z @ topology.reach_left
            m.add("right", above >= -M_right * (1 - right), over=upper_nodes)  # (3.7b)
            m.add("left", above + self.epsilon <= M_left * (1 - left), over=upper_nodes)  # (3.7a)

    def _declare_indicators(self, m: Model, instance: LevelInstance, score: LinearExpr) -> None:
        """Add the rows of losses and sides without big-Ms: one per node and last node below it, on where z is 1."""
        y, topology, slacks, z, xi = (
            instance.data.sign[:, None],
            instance.topology,
            instance.slacks,
            m["z"],
            m["xi"],
        )
        tangents = instance.nodes.loss.convex
        last, node = topology.reach.nonzero()
        for k, (a, d) in enumerate(zip(tangents.intercepts, tangents.slopes, strict=True)):
            paid = -d * (y * score[:, node]) >= a - xi[:, slacks.of_node[node]]
            m.add_indicator(f"loss_{k}", z[:, last], 1, paid)  # (3.15)
        if topology.upper_branches:
            last, node = topology.reach_right.nonzero()
            m.add_indicator("right", z[:, last], 1, score[:, node] >= 0)  # (3.7b)
            last, node = topology.reach_left.nonzero()
            m.add_indicator("left", z[:, last], 1, score[:, node] + self.epsilon <= 0)  # (3.7a)

    def refine(self, tree: Tree, instance: LevelInstance) -> Tree:
        return super().refine(tree, instance) if self.refinement else tree


class _SparseOlct(Olct):
    """OLCT with the rows of a budget of features per node."""

    def declare(self, m: Model, instance: LevelInstance) -> None:
        super().declare(m, instance)
        branches, w, M_w = instance.topology.branches, m["w"], instance.limits.M_w
        delta = m.binary("s", (branches, instance.data.features), meaning="whether a node uses a feature")
        if self.variant == "indicator":
            m.add_indicator("unused", delta, 0, w == 0, over=(branches, instance.data.features))  # (3.14)
        else:
            m.add("below", w >= -M_w * delta, over=(branches, instance.data.features))  # (3.14)
            m.add("above", w <= M_w * delta, over=(branches, instance.data.features))  # (3.14)
        m.add("budget", delta.sum(axis=1) <= instance.nodes.budget, over=branches)  # (3.14)


@dataclass(frozen=True, kw_only=True)
class BudgetedOlct(_SparseOlct):
    """OLCT with at most ``B`` features per node.

    Parameters
    ----------
    C, epsilon, tangents, refinement
        As for :class:`Olct`.
    B
        Most features a node may use: one value, one per level, or one per branch node.
    """

    name = "budgeted-olct"
    summary = "OLCT with at most B features per node"
    source = "Aldinucci, PhD thesis, section 3.2, rows (3.14)"

    B: PerNode = parameter(2, "most features per node", at_least=1, whole=True)

    def node_problems(self, topology: Topology) -> NodeProblems:
        budget = per_node("B", self.B, topology.depth).astype(np.int64)
        return replace(super().node_problems(topology), budget=budget)


@dataclass(frozen=True, kw_only=True)
class UnivariateOlct(_SparseOlct):
    """OLCT with one feature per node.

    Parameters
    ----------
    C, epsilon, tangents, refinement
        As for :class:`Olct`.
    """

    name = "univariate-olct"
    summary = "OLCT with one feature per node"
    source = "Aldinucci, PhD thesis, section 3.2, remark 2"
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **NO_COSTS,
        "max_features": "each of its splits has one feature",
    }

    def node_problems(self, topology: Topology) -> NodeProblems:
        one = np.ones(topology.n_branches, dtype=np.int64)
        return replace(super().node_problems(topology), budget=one)
