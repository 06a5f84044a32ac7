r"""Trees of linear classifiers as Aldinucci's thesis has them: a slack per sample and level, and the log-loss.

Source: T. Aldinucci, *Optimization models and algorithms for interpretable machine learning*, PhD thesis, chapter 3.
What OLCT and the general loss-optimal tree share besides the rows, which :mod:`formulations.olct` and
:mod:`formulations.loss_optimal` state.

**Variants.** ``paper``: M = 100 everywhere. Like MARGOT's, this is no bound in general: it is an assumption on the
scores of samples that are elsewhere. ``valid`` (the default): one slack per sample and *node*, and big-Ms proven from
the default start (:mod:`formulations.margins`). At an optimum the slacks of a level are 0 but for the node that
the sample passes, so their sum is the slack of the level; in the linear relaxation the sum is at least the maximum, so
the relaxation is no weaker. It also lets C differ by node. Both variants have the same optimal value wherever M = 100
suffices. ``valid`` needs a norm at every branch node: where the objective leaves weights uncharged nothing bounds them,
and the variant is refused.

**Tolerances.** The model routes by gaps of epsilon between sides. A solver that takes a binary of 1 - 1e-6 for 1, and a
row broken by 1e-6 for kept, lets a sample on the left have a score of up to :math:`-\varepsilon + 10^{-6} (M + 1)`, one
on the right a score of :math:`-10^{-6} (M + 1)`: with M = 100, samples of one score are on both sides unless epsilon
exceeds 2.02e-4. A child with k nodes of the last level below it has k binaries, hence k M in the place of M: OLCT's
default, 1e-3, holds down to depth four. Features have variance 1 and weights of order 1, so that 1e-3 is far below
their spread; values nearer than epsilon over the largest weight are parted by no split, and a warning says so. The
thesis' 1e-5 needs finer tolerances, which are suggested to the solver, and the decoded tree keeps every side exactly.

**Refinement** (remark 1 of the thesis): :mod:`mipforest.heuristics.linear_starts`. The objective of a result is the
surrogate's, of the solved tree; ``report`` gives the objectives with the log-loss before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from formulations.margins import MarginLimits, moved_into_limits
from formulations.splits.linear import LinearInstance, LinearTree, losses_paid
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.linear_starts import (
    gain_at_pure_nodes,
    greedy_logistic,
    margins_at,
    refined,
    svm_path,
)
from mipforest.heuristics.node_problems import NodeProblems, passed, weighted_sum
from mipforest.objectives.losses import largest_error, log_loss
from mipforest.problem.parameters import ParameterError
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import Nodes

#: The thesis' M, for all rows.
M_PAPER = 100.0

#: Tolerance asked of the solvers: their default, 1e-6, times M = 100 exceeds the thesis' epsilon.
TIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Slacks:
    """The columns of the block ``xi``, and what they stand for.

    Attributes
    ----------
    over
        Their index set: nodes, or names of levels.
    of_node
        (charged nodes,) column that holds the loss of each charged node.
    C
        (columns,) penalties.
    """

    over: object
    of_node: IntArray
    C: FloatArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LevelInstance(LinearInstance):
    """A data set for a tree of the thesis.

    Attributes
    ----------
    charged
        Branch nodes that the objective charges.
    slacks
        Columns of ``xi``.
    """

    charged: Nodes
    slacks: Slacks


@dataclass(frozen=True, kw_only=True)
class LevelTree(LinearTree):
    """A tree of linear classifiers with one slack per sample and level; see the module's text.

    Parameters
    ----------
    C, epsilon
        As for :class:`~formulations.splits.linear.LinearTree`.
    """

    starts = ("penalty-path", "greedy-logistic", "cart")
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "highs": {"mip_feasibility_tolerance": TIGHT},
        "gurobi": {"IntFeasTol": TIGHT, "FeasibilityTol": TIGHT},
        "scip": {"numerics/feastol": TIGHT},
    }

    # ------------------------------------------------------------------ the model

    def charged(self, topology: Topology) -> Nodes:
        """Return the branch nodes that the objective charges."""
        return topology.branches

    def paper_limits(self, nodes: NodeProblems) -> MarginLimits:
        rows = len(nodes.loss.big_ms(np.ones((1, 1))))
        return MarginLimits(M_xi=(M_PAPER,) * rows, M_right=M_PAPER, M_left=M_PAPER, M_w=M_PAPER)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        super().check_data(data, topology)
        nodes, charged = self.node_problems(topology), self.charged(topology)
        self.slacks(nodes, topology)  # refuses penalties that differ where they may not
        unbounded = not np.isfinite(nodes.norm.radius(np.ones(1))).all()
        if self.variant == "valid" and (unbounded or len(charged) < topology.n_branches):
            why = "no norm" if unbounded else "losses and norms at the last level only"
            raise ParameterError(
                f"variant 'valid' proves its constants from the norms that the objective charges, and with {why} "
                "some weights have no bound:",
                hint=f"build variant 'paper' (M = {M_PAPER:g}), or charge them",
                option=f"use --variant paper (M = {M_PAPER:g}), or charge them",
            )

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> LevelInstance:
        budget = budget or TimeBudget()
        nodes = replace(self.node_problems(topology), time=budget)
        instance = self.with_limits(
            LevelInstance(
                data=data,
                topology=topology,
                budget=budget,
                nodes=nodes,
                limits=self.paper_limits(nodes),
                charged=self.charged(topology),
                slacks=self.slacks(nodes, topology),
            )
        )
        return replace(instance, notes=(*instance.notes, *gap_notes(instance, self.epsilon)))

    def slacks(self, nodes: NodeProblems, topology: Topology) -> Slacks:
        """Return the columns of ``xi``: one per sample and level in variant ``paper``, else and charged node."""
        charged = self.charged(topology)
        by_node = nodes.C[np.asarray(charged)]
        if self.variant != "paper":
            return Slacks(charged, np.arange(len(charged)), by_node)
        levels, of_node = np.unique(topology.levels[np.asarray(charged)], return_inverse=True)
        C = by_node[np.searchsorted(of_node, np.arange(len(levels)))]
        if (C[of_node] != by_node).any():
            raise ParameterError(
                f"parameter C is {self.C}, which differs within a level; variant 'paper' has one slack per sample "
                "and level: give one value per level, or build variant 'valid'"
            )
        return Slacks([f"h{level + 1}" for level in levels], of_node, C)

    def root_share(self, instance: LinearInstance) -> float:
        data, nodes = instance.data, instance.nodes
        return nodes.lower_bound(0, data.X, data.sign, data.weights) if nodes.exact else 0.0

    def encode(self, tree: Tree, instance: LevelInstance) -> dict[str, FloatArray]:
        charged, slacks = np.asarray(instance.charged), instance.slacks
        in_column = np.eye(len(slacks.C))[slacks.of_node]
        return {
            **super().encode(tree, instance),
            "xi": losses_paid(tree, instance)[:, charged] @ in_column,
            **instance.nodes.norm.encode(tree.w[charged]),
        }

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: LevelInstance, *, seed: int = 0) -> Tree:
        data, topology, nodes = instance.data, instance.topology, instance.nodes
        if name == "greedy-logistic":
            return self.polish(greedy_logistic(data, topology, nodes), instance)
        if name == "penalty-path":
            # Routings from node problems at many penalties; the greedy tree or CART's where one is better.
            path = self._in_limits(svm_path(data, topology, nodes), instance)
            found = [path]
            for other in ("greedy-logistic", "cart"):
                if not instance.budget.expired:
                    found.append(self.start(other, instance, seed=seed))
            return min(found, key=lambda tree: self.evaluate(tree, instance))
        given: Tree = super().start(name, instance, seed=seed)
        return given

    def polish(self, tree: Tree, instance: LinearInstance) -> Tree:
        """Solve every node's problem exactly for the tree's routing of the samples, within the proven limits."""
        return self._in_limits(super().polish(tree, instance), instance)

    def _in_limits(self, tree: Tree, instance: LinearInstance) -> Tree:
        return moved_into_limits(tree, instance.data.X, instance.nodes.loss.flat_from)

    # ------------------------------------------------------------------ after the solve

    def refine(self, tree: Tree, instance: LevelInstance) -> Tree:
        return refined(tree, instance.data, instance.nodes) if instance.nodes.loss.log_odds else tree

    def report(self, solved: Tree, refined: Tree, instance: LevelInstance) -> dict[str, Any]:
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
        data, nodes = instance.data, instance.nodes
        if not nodes.loss.log_odds:
            return {}
        surrogate = nodes.loss.convex
        margins = margins_at(np.asarray(instance.charged), solved, data)
        errors = log_loss(margins) - surrogate.of_margin(margins)
        return {
            "exact_log_loss_objective": self.exact_objective(solved, instance),
            "refined_log_loss_objective": self.exact_objective(refined, instance),
            "refinement_gain_at_pure_nodes": gain_at_pure_nodes(solved, refined, data, nodes),
            "largest_tangent_error": float(errors.max()),
            "largest_tangent_error_anywhere": largest_error(surrogate),
        }

    def exact_objective(self, tree: Tree, instance: LevelInstance) -> float:
        """Return the objective of a tree (for scaled features) with the log-loss in place of its tangents."""
        nodes, surrogate, gap = instance.nodes, instance.nodes.loss.convex, 0.0
        data = instance.data
        here, all_margins = passed(tree, data), data.sign[:, None] * tree.scores(data.X)
        for t in instance.charged:
            margins, weight = all_margins[here[:, t], t], data.weights[here[:, t]]
            gap += float(nodes.C[t]) * weighted_sum(log_loss(margins) - surrogate.of_margin(margins), weight)
        return self.evaluate(tree, instance) + gap


def gap_notes(instance: LinearInstance, epsilon: float) -> tuple[str, ...]:
    """Name the features with values so near to each other that no split of the model on one of them parts them."""
    data, limits, upper = instance.data, instance.limits, instance.topology.upper_branches
    largest = np.ravel(
        limits.weight if instance.nodes.budget is None else np.minimum(limits.weight, limits.M_w)
    )
    weight = float(largest.max())
    if not upper or not np.isfinite(weight):
        return ()
    widths = [np.diff(np.unique(column)).min(initial=np.inf) for column in data.X.T]
    narrow = [name for name, width in zip(data.features, widths, strict=True) if width * weight < epsilon]
    if not narrow:
        return ()
    more = f" (and {len(narrow) - 1} more)" if narrow[1:] else ""
    return (
        f"{narrow[0]}{more} has values nearer to each other than {epsilon / weight:.2g} in scaled units, which no "
        f"split on one feature parts, as epsilon is {epsilon:g} and a weight at most {weight:.3g}; a smaller epsilon "
        "does, where the solver's tolerances are finer too",
    )
