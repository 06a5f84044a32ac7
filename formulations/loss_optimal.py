r"""The general loss-optimal tree: any loss, norm and feature selection of the framework, in every combination.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section "The
Generalized Framework", problems (3.11) and (3.12). The model is that of :mod:`formulations.level_loss_tree`.

========== =================================================================================================
parameter  values
========== =================================================================================================
loss       ``misclassification``, ``hinge``: :math:`\max(0, 1 - v)`, ``logistic``: tangents of
           :math:`\log(1 + e^{-v})`
regulariser ``none``, ``l1``, ``l2``: :math:`\tfrac12 \|w\|^2`, with the half as in MARGOT
selection  ``none``, ``hard``: at most B features per node, ``soft``: each further one costs alpha
levels     ``all``: loss and norm are charged at every level (3.12), ``last``: at the last one only (3.11)
========== =================================================================================================

The number of features is bounded or charged *beside* a norm, not in place of it: so it is in MARGOT (half the squared
Euclidean norm), in the thesis' soft selection (any :math:`\Omega`) and in its univariate OLCT (l1). ``none`` with
``hard`` or ``soft`` is the count alone.

Points of the framework: hinge, l2, all levels is MARGOT, with ``hard`` HFS-MARGOT, with ``soft`` SFS-MARGOT; logistic,
l1, all levels is OLCT. Hinge, l2, last level are "SVM leaves". Misclassification at the last level without a norm is
not Dunn's OCT-H, whose splits are normalised and whose leaves choose their labels.

**Misclassification and epsilon.** Errors do not depend on the scale of w and b, so the norm shrinks both until the
gaps between sides are epsilon wide: epsilon sets the scale of the weights, hence what the norm weighs against an error.
With a norm choose it well above a solver's tolerances, 0.01 or more; a norm is then the inverse of a margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.feature_selection import FeatureSelection
from formulations.level_loss_tree import LevelLossTree
from formulations.log_loss import tangent_points, underestimator
from formulations.loss_optimal_tree import LinearInstance
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import HINGE, BranchLoss, Misclassification
from mipforest.heuristics.margin_split import Split, keep_sides
from mipforest.heuristics.norms import NORMS, Norm
from mipforest.model import Values
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import Nodes


@dataclass(frozen=True, kw_only=True)
class LossOptimal(LevelLossTree):
    """Loss-optimal tree with any loss, norm and feature selection.

    Parameters
    ----------
    loss
        ``misclassification``, ``hinge`` or ``logistic``.
    tangents
        Tangent points of the logistic loss: ``V0`` to ``V3``, or the number of finite ones.
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

    loss: str = parameter(
        "hinge", "what a sample costs at a node", choices=("misclassification", "hinge", "logistic")
    )
    tangents: str = parameter("V0", "tangent points of the logistic loss: V0, V1, V2, V3, or how many")
    regulariser: str = parameter("l1", "norm charged for weights", choices=tuple(NORMS))
    selection: str = parameter("none", "how features are selected", choices=("none", "hard", "soft"))
    levels: str = parameter("all", "levels at which loss and norm are charged", choices=("all", "last"))
    B: PerNode = parameter(1, "features per node (hard), or free of cost (soft)", at_least=1, whole=True)
    alpha: float = parameter(1.0, "cost of every feature beyond B (soft)", above=0)
    refinement: bool = parameter(True, "refit the last branching level with the log-loss itself")

    def __post_init__(self) -> None:
        super().__post_init__()
        tangent_points(self.tangents)

    def _tangents(self) -> str:
        return self.tangents if self.loss == "logistic" else ""

    def _refines(self) -> bool:
        return self.refinement

    def _loss(self) -> BranchLoss:
        if self.loss == "misclassification":
            return Misclassification(self.epsilon)
        return HINGE if self.loss == "hinge" else underestimator(tangent_points(self.tangents))

    def _norm(self) -> Norm:
        return NORMS[self.regulariser]

    def _selection(self, tree: Topology) -> FeatureSelection | None:
        if self.selection == "none":
            return None
        budget = per_node("B", self.B, tree.depth).astype(np.int64)
        return FeatureSelection(budget, self.alpha if self.selection == "soft" else None)

    def _charged(self, tree: Topology) -> Nodes:
        return tree.branches if self.levels == "all" else tree.last_branches

    def decode(self, values: Values, instance: LinearInstance) -> Tree:
        fitted = super().decode(values, instance)
        if self.loss != "misclassification":
            return fitted
        return self._with_exact_errors(fitted, values, instance.data)

    def _with_exact_errors(self, fitted: Tree, values: Values, data: Dataset) -> Tree:
        """Move biases of the last level by the solver's tolerance: what counts as right is predicted right."""
        tree, b = fitted.topology, fitted.b.copy()
        last = np.asarray(tree.last_branches)
        of_node = self._slacks(tree).of_node[-len(last) :]
        predicted_right = (values["z"] > 0.5) & (values["xi"][:, of_node] < 0.5)
        for s, t in enumerate(last):
            counted = predicted_right[:, s]
            scores = data.X[counted] @ fitted.w[t] + b[t]
            b[t] = keep_sides(scores, data.sign[counted] > 0, float(b[t]))
        splits = {t: Split(fitted.w[t], float(b[t]), np.nan) for t in tree.branches}
        return self._tree(splits, data, tree)
