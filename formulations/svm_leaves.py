r"""Trees with support vector machines as leaves: margins count at the last level only.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section 3.1, problem (3.11)
with the hinge loss, "SVM leaves"; the node sets are those of :mod:`formulations.margot`.

.. math::

    \min\; & \sum_{t \in B} \tfrac12 \|w_t\|^2 + C \sum_{t \in B''} \sum_i \xi_{it} \\
    & y_i (w_t^\top x_i + b_t) \ge 1 - \xi_{it} - M (1 - z_{it}) && i,\; t \in B'' \quad (3.13) \\
    & w_t^\top x_i + b_t \ge -M \Bigl(1 - \sum_{s \in S''_R(t)} z_{is}\Bigr) && i,\; t \in B' \quad (3.7b) \\
    & w_t^\top x_i + b_t + \varepsilon \le M \Bigl(1 - \sum_{s \in S''_L(t)} z_{is}\Bigr)
        && i,\; t \in B' \quad (3.7a) \\
    & \sum_{s \in B''} z_{is} = 1, \quad z_{is} \in \{0, 1\}, \quad \xi_{it} \ge 0 \quad (3.6)

**Why not MARGOT.** MARGOT (:mod:`formulations.margot`) charges every sample at every node that it passes, the root
included. Labels that are not linear in the features cost at the root whatever the children do, so its root stays near
the support vector machine of all samples. Here the splits above the last level only send samples on, and are free to go
where the machines below them do best.

**The norm of the upper splits.** The thesis charges weights at the last level only. Nothing bounds the weights above
it then, and no constant M is proven: ``loss-optimal`` with ``levels=last`` has the variant ``paper`` alone. Here half
the squared Euclidean norm is charged at *every* node. For given sides the least charge of an upper node is
:math:`\tfrac12 (\varepsilon / \delta)^2`, with :math:`\delta` the distance between the two sides. It is small as long
as :math:`\delta` is above :math:`\varepsilon`, and of splits that send samples the same way it makes the one
with the widest gap the best.

**Constants** (variant ``valid``): :mod:`formulations.margins`, whose proof asks for a norm at every node, and for a
loss that is nonnegative; at the upper nodes it is 0. No share of the root is known.

**Bounds.** Without a loss at the root, the root proves nothing: a bound rises only after many samples have their side.
Proofs take longer than MARGOT's, and local search reports a bound of 0, or what equal samples of both classes cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from formulations.margins import MarginLimits, at_nodes
from formulations.splits.levels import LevelTree
from formulations.splits.linear import LinearInstance, LinearTree, declare_hyperplanes, losses_paid
from mipforest.arrays import FloatArray
from mipforest.heuristics.linear_starts import svm_path
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.model import Model, sum_squares
from mipforest.objectives.losses import HALF_SQUARED_L2, HINGE
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class SvmLeaves(LinearTree):
    """Tree with a support vector machine at every node of the last branching level.

    Parameters
    ----------
    C
        Penalty of margin violations at the last level.
    epsilon
        Gap that stands for the strict inequality to the left.
    """

    name = "svm-leaves"
    summary = "oblique splits with support vector machines at the last level: margins count there only"
    source = "Aldinucci, PhD thesis, section 3.1, problem (3.11) with the hinge loss"
    starts = ("svm-path", "cart")
    quick_start = "cart"
    variants: ClassVar[tuple[str, ...]] = ("valid",)
    #: Upper weights are as small as the gap, and so is what they are charged: a solver's own tolerances are too wide.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = LevelTree.solver_options

    C: float = parameter(1.0, "penalty of margin violations at the last level", above=0)

    def node_problems(self, topology: Topology) -> NodeProblems:
        C = np.where(np.isin(topology.branches, topology.last_branches), self.C, 0.0)
        return NodeProblems(C, self.epsilon, loss=HINGE, norm=HALF_SQUARED_L2)

    def declare(self, m: Model, instance: LinearInstance) -> None:
        data, topology, limits = instance.data, instance.topology, instance.limits
        last, upper = topology.last_branches, topology.upper_branches
        last_nodes, upper_nodes = (data.samples, last), (data.samples, upper)
        M_xi, M_right, M_left = (
            at_nodes(limits.M_xi[0], last),
            at_nodes(limits.M_right, upper),
            at_nodes(limits.M_left, upper),
        )

        w, b = declare_hyperplanes(m, instance)
        xi = m.nonnegative("xi", last_nodes, meaning="slack of a sample's margin at a last node")
        z = m.binary("z", last_nodes, meaning="whether a sample reaches a last node")
        score = data.X @ w.T + b

        m.minimize(0.5 * sum_squares(w) + self.C * (data.weights @ xi).sum())
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)  # (3.6)
        m.add(
            "margin", data.sign[:, None] * score[:, last] >= 1 - xi - M_xi * (1 - z), over=last_nodes
        )  # (3.13)
        if upper:
            above, right, left = score[:, upper], z @ topology.reach_right, z @ topology.reach_left
            m.add("right", above >= -M_right * (1 - right), over=upper_nodes)  # (3.7b)
            m.add("left", above + self.epsilon <= M_left * (1 - left), over=upper_nodes)  # (3.7a)

    def paper_limits(self, nodes: NodeProblems) -> MarginLimits:
        return MarginLimits()  # no paper has constants: proven ones take their place

    def encode(self, tree: Tree, instance: LinearInstance) -> dict[str, FloatArray]:
        paid = losses_paid(tree, instance)[:, np.asarray(instance.topology.last_branches)]
        return {**super().encode(tree, instance), "xi": paid}

    def start(self, name: str, instance: LinearInstance, *, seed: int = 0) -> Tree:
        if name != "svm-path":
            given: Tree = super().start(name, instance, seed=seed)
            return given
        # MARGOT's routings, and CART's, which do not stay near the machine of all samples.
        nodes = replace(instance.nodes, C=np.full(instance.topology.n_branches, self.C))
        path = self.polish(svm_path(instance.data, instance.topology, nodes), instance)
        candidates = [path] if instance.budget.expired else [path, self.start("cart", instance, seed=seed)]
        return min(candidates, key=lambda tree: self.evaluate(tree, instance))
