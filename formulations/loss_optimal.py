r"""The general loss-optimal tree: any loss, norm and feature selection of the framework, in every combination.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section "The
Generalized Framework", problems (3.11) and (3.12).

.. math::

    \min\; & \sum_h \Bigl( C_h \sum_i \xi_{ih} + \sum_{t \text{ at level } h} \Omega(w_t) \Bigr) \quad (3.12) \\
    & \xi_{ih} \ge f(y_i, w_t^\top x_i + b_t) - M \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr)
        && i,\; h,\; t \text{ at level } h \quad (3.13)

with the routing rows (3.6), (3.7) of :mod:`formulations.olct`. Loss f and norm :math:`\Omega` state their rows
themselves, in :mod:`mipforest.objectives.losses`: for the lines :math:`a_k + d_k v` of a piecewise-linear loss there
is one row each (3.15), and the l1 norm has the parts of the weights (3.16). The thesis puts a weight on the norm in the
model and C on the loss in its experiments; here it is C on the loss. The variants ``valid`` and ``paper``, starts and
the refinement are in :mod:`formulations.splits.levels`.

========== =================================================================================================
parameter  values
========== =================================================================================================
loss       ``misclassification``, ``hinge``: :math:`\max(0, 1 - v)`, ``squared-hinge``: tangents of
           :math:`\max(0, 1 - v)^2`, ``logistic``: tangents of :math:`\log(1 + e^{-v})`; or a loss of another
           package (:mod:`mipforest.objectives.losses`)
regulariser ``none``, ``l1``, ``l2``: :math:`\tfrac12 \|w\|^2`, with the half as in MARGOT
selection  ``none``, ``hard``: at most B features per node, ``soft``: each further one costs alpha
levels     ``all``: loss and norm are charged at every level (3.12), ``last``: at the last one only (3.11)
========== =================================================================================================

The number of features is bounded or charged *in addition to* a norm, not in place of it: so it is in MARGOT (half the
squared Euclidean norm), in the thesis' soft selection (any :math:`\Omega`) and in its univariate OLCT (l1).
``none`` with ``hard`` or ``soft`` is the count alone.

Points of the framework: hinge, l2, all levels is MARGOT, with ``hard`` HFS-MARGOT, with ``soft`` SFS-MARGOT; logistic,
l1, all levels is OLCT. Hinge, l2, last level are "SVM leaves"; :mod:`formulations.svm_leaves` also charges the norm
above it, which proves constants. Misclassification at the last level without a norm is not Dunn's OCT-H, whose splits
are normalised and whose leaves choose their labels.

**Where this differs from the thesis.**

- The line of the tangent at :math:`+\infty`, :math:`\xi \ge 0`, is a bound on the slack, for all samples.
- A score of 0 goes right, as everywhere in this package, and the gap epsilon is kept on the left; the thesis has it
  the other way round. The models are mirror images: turn the signs of w, b and y.
- Misclassification, rows (3.9): :math:`\hat y_i` may be either label where the score is 0, so w = 0, b = 0 predicts all
  samples right, at no cost: the literal model has the optimal value 0 for any data. Here scores of samples that are
  predicted -1 are at most :math:`-\varepsilon`. With :math:`\hat y_i = y_i (1 - 2 \xi_i)` the rows are

  .. math::

      & y_i (w_t^\top x_i + b_t) \ge \varepsilon [y_i = -1] - M \bigl(\xi_{ih} + 1 - \sum z\bigr) \\
      & y_i (w_t^\top x_i + b_t) \le -\varepsilon [y_i = +1] + M \bigl(1 - \xi_{ih} + 1 - \sum z\bigr),
        \quad \xi_{ih} \in \{0, 1\}

  for the right prediction and for the wrong one. *Then* :math:`\xi` *counts the errors of the tree*: at a node that i
  passes, :math:`\xi_{ih} = 0` makes the score at least 0 for +1 and at most :math:`-\varepsilon` for -1, which is
  predicted right, and 1 the other way round, which is predicted wrong. Conversely, a tree with no score in
  :math:`(-\varepsilon, 0)` satisfies both with its errors. So the trees of the model are those that keep a gap, here
  as at the nodes that route, and their value is the norm plus C times their errors. The first row alone does not do: a
  sample labelled -1 with a score in :math:`(-\varepsilon, 0)` would be charged as an error where the tree is right,
  and a norm can make that pay.

**Misclassification and epsilon.** Errors do not depend on the scale of w and b, so the norm shrinks both until the
gaps between sides are epsilon wide: epsilon sets the scale of the weights, hence what the norm weighs against an error.
With a norm choose it well above a solver's tolerances, 0.01 or more; a norm is then the inverse of a margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.margins import at_nodes
from formulations.splits.levels import LevelInstance, LevelTree
from formulations.splits.linear import BIAS_TOLERANCE, declare_hyperplanes
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.model import Model, Values
from mipforest.objectives.losses import NORMS, BranchLoss, tangent_points
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.problem.registry import get_loss, loss_names
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import keep_sides
from mipforest.trees.topology import Nodes


@dataclass(frozen=True, kw_only=True)
class LossOptimal(LevelTree):
    """Loss-optimal tree with any loss, norm and feature selection.

    Parameters
    ----------
    loss
        ``misclassification``, ``hinge``, ``squared-hinge``, ``logistic``, or another registered loss.
    tangents
        Tangent points of the logistic loss: ``V0`` to ``V3``, or the number of finite ones. The squared hinge has as
        many, 1, 3, 7 and 15 for the four names.
    regulariser
        ``none``, ``l1`` or ``l2`` (half the squared Euclidean norm).
    selection
        ``none``, ``hard`` (at most B features per node) or ``soft`` (each beyond B costs alpha).
    levels
        Where loss and norm are charged: at ``all`` levels or at the ``last`` one.
    C
        Penalty of the loss: one value or one per level; in variant ``valid`` also one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left.
    B, alpha
        Budgets and cost of feature selection; B is one value, one per level, or one per branch node.
    refinement
        Logistic loss only: whether the last branching level is refitted with the log-loss itself.
    """

    name = "loss-optimal"
    summary = "loss-optimal tree: misclassification, hinge or log-loss with any norm and feature selection"
    source = "Aldinucci, PhD thesis, section 3.1, The Generalized Framework"

    loss: str = parameter("hinge", "what a sample costs at a node", choices=loss_names())
    tangents: str = parameter(
        "V0", "tangent points of the logistic loss or the squared hinge: V0 to V3 (1, 3, 7, 15), or how many"
    )
    regulariser: str = parameter("l1", "norm charged for weights", choices=tuple(NORMS))
    selection: str = parameter("none", "how features are selected", choices=("none", "hard", "soft"))
    levels: str = parameter("all", "levels at which loss and norm are charged", choices=("all", "last"))
    B: PerNode = parameter(1, "features per node (hard), or free of cost (soft)", at_least=1, whole=True)
    alpha: float = parameter(1.0, "cost of every feature beyond B (soft)", above=0)
    refinement: bool = parameter(True, "refit the last branching level with the log-loss itself")

    def __post_init__(self) -> None:
        super().__post_init__()
        tangent_points(self.tangents)

    def node_problems(self, topology: Topology) -> NodeProblems:
        selects = self.selection != "none"
        return NodeProblems(
            C=per_node("C", self.C, topology.depth),
            epsilon=self.epsilon,
            budget=per_node("B", self.B, topology.depth).astype(np.int64) if selects else None,
            alpha=self.alpha if self.selection == "soft" else None,
            loss=self.branch_loss(),
            norm=NORMS[self.regulariser],
            uncharged=frozenset(topology.branches) - frozenset(self.charged(topology)),
        )

    def branch_loss(self) -> BranchLoss:
        """Return the loss of a sample at a branch node."""
        return get_loss(self.loss).build(epsilon=self.epsilon, tangents=self.tangents)

    def charged(self, topology: Topology) -> Nodes:
        return topology.branches if self.levels == "all" else topology.last_branches

    def declare(self, m: Model, instance: LevelInstance) -> None:
        data, topology, limits, nodes = instance.data, instance.topology, instance.limits, instance.nodes
        charged, slacks, upper = instance.charged, instance.slacks, topology.upper_branches
        charged_nodes, upper_nodes = (data.samples, charged), (data.samples, upper)
        M_xi = tuple(at_nodes(M, charged) for M in limits.M_xi)
        M_right, M_left = at_nodes(limits.M_right, upper), at_nodes(limits.M_left, upper)

        w, b = declare_hyperplanes(m, instance)
        xi = nodes.loss.slack(m, (data.samples, slacks.over))
        z = m.binary(
            "z", (data.samples, topology.last_branches), meaning="whether a sample reaches a last node"
        )
        score = data.X @ w.T + b
        away = 1 - z @ topology.reach

        losses = slacks.C @ (data.weights @ xi)
        objective = nodes.norm.declare(m, w[np.asarray(charged)]) + losses  # (3.12), (3.16)
        if nodes.alpha is not None:
            objective = (
                objective
                + nodes.alpha
                * m.nonnegative(
                    "u", topology.branches, meaning="features of a node beyond those that are free"
                ).sum()
            )
        m.minimize(objective)
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)  # (3.6)
        nodes.loss.declare(
            m,
            xi[:, slacks.of_node],
            score[:, charged],
            data.sign[:, None],
            away[:, charged],
            M_xi,
            charged_nodes,
        )  # (3.13), (3.15)
        if upper:
            above, right, left = score[:, upper], z @ topology.reach_right, z @ topology.reach_left
            m.add("right", above >= -M_right * (1 - right), over=upper_nodes)  # (3.7b)
            m.add("left", above + self.epsilon <= M_left * (1 - left), over=upper_nodes)  # (3.7a)
        if nodes.budget is not None:
            s = m.binary("s", (topology.branches, data.features), meaning="whether a node uses a feature")
            m.add("below", w >= -limits.M_w * s, over=(topology.branches, data.features))  # (3.14)
            m.add("above", w <= limits.M_w * s, over=(topology.branches, data.features))  # (3.14)
            if nodes.alpha is None:
                m.add("budget", s.sum(axis=1) <= nodes.budget, over=topology.branches)  # (3.14)
            else:
                m.add("excess", m["u"] >= s.sum(axis=1) - nodes.budget, over=topology.branches)  # soft

    def decode(self, values: Values, instance: LevelInstance) -> Tree:
        """Read the tree off; where the loss jumps, no solver's tolerance decides a label at the last level."""
        tree = super().decode(values, instance)
        right = instance.nodes.loss.predicted_right(values["xi"])
        if right is None or "second_class" in values:
            return tree
        data, b, sizes = instance.data, tree.b.copy(), instance.data.sizes
        last = np.asarray(instance.topology.last_branches)
        here = values["z"] > 0.5
        goes_right = right[:, instance.slacks.of_node[-len(last) :]] == (data.sign > 0)[:, None]
        for s, t in enumerate(last):
            i = here[:, s]
            b[t] = keep_sides(
                data.X[i], tree.w[t], goes_right[i, s], float(b[t]), sizes=sizes[i], most=BIAS_TOLERANCE
            )
        return replace(tree, b=b)

    def refine(self, tree: Tree, instance: LevelInstance) -> Tree:
        return super().refine(tree, instance) if self.refinement else tree
