r"""Loss-optimal trees as Aldinucci's thesis states them: one slack per sample and level, and the log-loss by tangents.

Source: T. Aldinucci, *Optimization models and algorithms for interpretable machine learning*, PhD thesis, chapter 3.

.. math::

    \min\; & \sum_h \Bigl( C_h \sum_i \xi_{ih} + \sum_{t \text{ at level } h} \Omega(w_t) \Bigr) \quad (3.12) \\
    & \xi_{ih} \ge a_k + d_k\, y_i (w_t^\top x_i + b_t) - M \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr)
        && i,\; h,\; t \text{ at level } h,\; k \quad (3.13, 3.15)

with the lines :math:`a_k + d_k v` of the loss (the hinge has one, :math:`1 - v`; of the log-loss they are tangents),
the routing of :mod:`formulations.routed_splits` (3.6, 3.7) and, for the l1 norm,

.. math::

    w_t = w_t^+ - w_t^-, \quad w_t^+, w_t^- \ge 0, \quad \Omega(w_t) = \sum_j (w_{tj}^+ + w_{tj}^-) \quad (3.16) .

The thesis puts a weight on the norm in the model and C on the loss in its experiments; here it is C on the loss.

**Variants.** ``paper``: the above, with M = 100 everywhere. Like MARGOT's, this is no bound in general: it is an
assumption on the scores of samples that are elsewhere. ``valid`` (the default): one slack per sample and *node*, and
big-Ms proven from the default start (:mod:`formulations.margin_limits`). At an optimum the slacks of a level are 0 but
for the node that the sample passes, so their sum is the slack of the level; in the linear relaxation the sum is at
least the maximum, so the relaxation is no weaker. It also lets C differ by node. Both variants have the same optimal
value wherever M = 100 suffices. ``valid`` needs a norm at every branch node: where the objective leaves weights
uncharged nothing bounds them, and the variant is refused.

**Where this differs from the thesis.**

- The line of the tangent at :math:`+\infty`, :math:`\xi \ge 0`, is a bound on the slack, for all samples.
- A score of 0 goes right, as everywhere in this package, and the gap epsilon is kept on the left; the thesis has it
  the other way round. The models are mirror images: turn the signs of w, b and y.
- Misclassification, rows (3.9): :math:`\hat y_i` may be either label where the score is 0, so w = 0, b = 0 predicts all
  samples right, at no cost: the literal model has the optimal value 0 for any data. Here scores of samples that are
  predicted -1 are at most :math:`-\varepsilon`. With :math:`\hat y_i = y_i (1 - 2 \xi_i)` the rows are

  .. math::  y_i (w_t^\top x_i + b_t) \ge \varepsilon [y_i = -1] - M \bigl(\xi_{ih} + 1 - \sum z\bigr),
             \quad \xi_{ih} \in \{0, 1\};

  those for the wrong prediction are left out, as no optimum predicts wrong what it could predict right.

**Tolerances.** The model routes by gaps of epsilon between sides; a solver's tolerance on integers, times M, must stay
well below it. A tighter one than usual is suggested to the solver, and the decoded tree keeps every side exactly.

**Refinement** (remark 1 of the thesis): :mod:`formulations.logistic_refinement`. The objective of a result is the
surrogate's, of the solved tree; ``report`` gives the objectives with the log-loss before and after.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from formulations.log_loss import largest_error, log_loss, tangent_points, underestimator
from formulations.logistic_refinement import charged_margins, gain_at_pure_nodes, refined
from formulations.loss_optimal_tree import LossOptimalTree, Slacks
from formulations.margin_limits import MarginLimits, moved_into_limits
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import PiecewiseLinearLoss
from mipforest.heuristics.greedy_logistic import greedy_logistic
from mipforest.heuristics.margin_split import Split, margin_split
from mipforest.heuristics.svm_path import svm_path
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import ParameterError, per_node
from mipforest.trees import Topology, Tree

#: The thesis' M, for all rows.
M_PAPER = 100.0


@dataclass(frozen=True, kw_only=True)
class LevelLossTree(LossOptimalTree):
    """A loss-optimal tree with one slack per sample and level; see the module's text."""

    starts = ("penalty-path", "greedy-logistic", "cart")
    #: The default tolerances times M = 100 exceed the thesis' epsilon.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "highs": {"mip_feasibility_tolerance": 1e-9},
        "gurobi": {"IntFeasTol": 1e-9, "FeasibilityTol": 1e-9},
        "scip": {"numerics/feastol": 1e-9},
    }

    @abstractmethod
    def _tangents(self) -> str:
        """Tangent points of the log-loss; empty for another loss."""

    @abstractmethod
    def _refines(self) -> bool:
        """Whether the last branching level is refitted."""

    # ------------------------------------------------------------------ the model

    def _paper_limits(self) -> MarginLimits:
        rows = len(self._loss().big_ms(np.ones((1, 1))))
        return MarginLimits(M_xi=(M_PAPER,) * rows, M_right=M_PAPER, M_left=M_PAPER, M_w=M_PAPER)

    def _slacks(self, tree: Topology) -> Slacks:
        by_node = super()._slacks(tree)
        if self.variant != "paper":
            return by_node
        levels, of_node = np.unique(tree.levels[np.asarray(self._charged(tree))], return_inverse=True)
        C = by_node.C[np.searchsorted(of_node, np.arange(len(levels)))]
        if (C[of_node] != by_node.C).any():
            raise ParameterError(
                f"parameter C is {self.C}, which differs within a level; variant 'paper' has one slack per sample "
                "and level: give one value per level, or build variant 'valid'"
            )
        return Slacks([f"h{level + 1}" for level in levels], of_node, C)

    def _root_share(self, data: Dataset, tree: Topology) -> float:
        loss = self._loss()
        if not isinstance(loss, PiecewiseLinearLoss):
            return 0.0
        C = per_node("C", self.C, tree.depth)
        alone = margin_split(data.X, data.sign, float(C[0]), loss=loss, norm=self._norm())
        return 0.0 if alone is None else alone.value

    def check_data(self, data: Dataset, tree: Topology) -> None:
        super().check_data(data, tree)
        unbounded = not np.isfinite(self._norm().radius(np.ones(1))).all()
        if self.variant == "valid" and (unbounded or len(self._charged(tree)) < tree.n_branches):
            why = "no norm" if unbounded else "losses and norms at the last level only"
            raise ParameterError(
                f"variant 'valid' proves its constants from the norms that the objective charges, and with {why} "
                "some weights have no bound:",
                hint=f"build variant 'paper' (M = {M_PAPER:g}), or charge them",
                option=f"use --variant paper (M = {M_PAPER:g}), or charge them",
            )

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: Instance, *, seed: int = 0) -> Tree:
        data, tree = instance.data, instance.topology
        if name == "greedy-logistic":
            return self.polish(greedy_logistic(data, tree, self._nodes(tree)), instance)
        if name == "penalty-path":
            return self._best_start(instance, seed)
        return super().start(name, instance, seed=seed)

    def _best_start(self, instance: Instance, seed: int) -> Tree:
        """Search routings from node problems at many penalties; take the greedy tree or CART's where one is better."""
        data, tree = instance.data, instance.topology
        path = self._finished(self._in_limits(svm_path(data, tree, self._nodes(tree)), data))
        others = (self.start(name, instance, seed=seed) for name in ("greedy-logistic", "cart"))
        return min((path, *others), key=lambda fitted: self.evaluate(fitted, instance))

    def polish(self, fitted: Tree, instance: Instance) -> Tree:
        """Solve every node's problem exactly for the tree's routing of the samples, within the proven limits."""
        return self._in_limits(super().polish(fitted, instance), instance.data)

    def _in_limits(self, fitted: Tree, data: Dataset) -> Tree:
        return moved_into_limits(fitted, data.X, self._loss().flat_from)

    def _tree(self, splits: dict[int, Split], data: Dataset, tree: Topology) -> Tree:
        return self._finished(super()._tree(splits, data, tree))

    def _finished(self, fitted: Tree) -> Tree:
        """Mark the scores as log-odds, where the loss makes them so."""
        return replace(fitted, logistic=bool(self._tangents()))

    # ------------------------------------------------------------------ after the solve

    def refine(self, fitted: Tree, instance: Instance) -> Tree:
        if not self._tangents() or not self._refines():
            return fitted
        C = per_node("C", self.C, fitted.depth)
        own_features = self._selection(fitted.topology) is not None
        return refined(fitted, instance.data, C, self._norm(), own_features=own_features)

    def report(self, solved: Tree, refined: Tree, instance: Instance) -> dict[str, Any]:
        """State how far the surrogate is from the log-loss.

        Returns
        -------
        dict
            ``exact_log_loss_objective`` of the solved tree and ``refined_log_loss_objective`` of the refined one:
            the objective, norms included, with the log-loss itself. ``refinement_gain_at_pure_nodes``: the part of
            their difference that is due to nodes which one class alone reaches. ``largest_tangent_error``: the
            most that the surrogate lies below the log-loss at the scores that the solved tree is charged for;
            ``largest_tangent_error_anywhere``: at any score. Empty for another loss.
        """
        if not self._tangents():
            return {}
        data = instance.data
        points = tangent_points(self._tangents())
        margins = charged_margins(solved, data, np.asarray(self._charged(solved.topology)))
        errors = log_loss(margins) - underestimator(points).of_margin(margins)
        C = per_node("C", self.C, solved.depth)
        return {
            "exact_log_loss_objective": self.exact_objective(solved, instance),
            "refined_log_loss_objective": self.exact_objective(refined, instance),
            "refinement_gain_at_pure_nodes": gain_at_pure_nodes(solved, refined, data, C, self._norm()),
            "largest_tangent_error": float(errors.max()),
            "largest_tangent_error_anywhere": largest_error(points),
        }

    def exact_objective(self, fitted: Tree, instance: Instance) -> float:
        """Objective of a tree (for scaled features) with the log-loss itself in place of its tangents."""
        charged = np.asarray(self._charged(fitted.topology))
        C = per_node("C", self.C, fitted.depth)
        data = instance.data
        surrogate = underestimator(tangent_points(self._tangents()))
        gap = 0.0
        for t in charged:
            margins = charged_margins(fitted, data, np.array([t]))
            gap += float(C[t]) * float((log_loss(margins) - surrogate.of_margin(margins)).sum())
        return self.evaluate(fitted, instance) + gap
