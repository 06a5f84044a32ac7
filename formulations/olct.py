r"""OLCT: optimal logistic classification trees, with oblique, sparse or univariate splits.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section 3.2,
problem (3.17). Features have mean 0 and variance 1, labels are -1 and +1.

.. math::

    \min\; & \sum_{h=1}^D \Bigl( C_h \sum_i \xi_{ih} + \sum_{t \text{ at level } h} \sum_j (w_{tj}^+ + w_{tj}^-) \Bigr),
        \quad w = w^+ - w^-, \quad w^+, w^- \ge 0 \\
    & \xi_{ih} \ge f(v) + f'(v) \bigl( y_i (w_t^\top x_i + b_t) - v \bigr)
        - M \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr) && i,\; h,\; t \text{ at level } h,\; v \in V \\
    & \text{routing: (3.6), (3.7), as in } \texttt{formulations.routed\_splits}

with :math:`f(v) = \log(1 + e^{-v})` and its tangents at :math:`\pm\infty`, the lines 0 and :math:`-v`. It is the
loss-optimal tree with the log-loss and the l1 norm at all levels; :mod:`formulations.level_loss_tree` states the
variants ``valid`` and ``paper``, the refinement, and where the model differs from the thesis.

**Sparse splits** (remark 2 of the thesis): ``budgeted-olct`` adds :math:`\sum_j \delta_{tj} \le B_t`,
:math:`-M \delta \le w \le M \delta`; ``univariate-olct`` is the budget of one feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.feature_selection import FeatureSelection
from formulations.level_loss_tree import LevelLossTree
from formulations.log_loss import tangent_points, underestimator
from mipforest.data.encoding import Scaling
from mipforest.heuristics.branch_losses import BranchLoss
from mipforest.heuristics.norms import L1, Norm
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology


@dataclass(frozen=True, kw_only=True)
class Olct(LevelLossTree):
    """Optimal logistic classification tree.

    Parameters
    ----------
    C
        Penalty of the log-loss: one value or one per level; in variant ``valid`` also one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left.
    tangents
        Tangent points of the log-loss: ``V0`` to ``V3``, or the number of finite ones, chosen greedily.
    refinement
        Whether the last branching level is refitted with the log-loss itself after the solve.
    """

    name = "olct"
    summary = "optimal logistic classification tree: a sparse logistic regression at every node"
    source = "Aldinucci, PhD thesis, section 3.2"
    scaling: ClassVar[Scaling] = "standard"

    C: PerNode = parameter(1.0, "penalty of the log-loss", above=0)
    epsilon: float = parameter(1e-5, "gap that stands for a strict inequality", above=0, below=1)
    tangents: str = parameter("V0", "tangent points: V0, V1, V2, V3, or how many finite ones")
    refinement: bool = parameter(True, "refit the last branching level with the log-loss itself")

    def __post_init__(self) -> None:
        super().__post_init__()
        tangent_points(self.tangents)

    def _tangents(self) -> str:
        return self.tangents

    def _refines(self) -> bool:
        return self.refinement

    def _loss(self) -> BranchLoss:
        return underestimator(tangent_points(self.tangents))

    def _norm(self) -> Norm:
        return L1


@dataclass(frozen=True, kw_only=True)
class BudgetedOlct(Olct):
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

    def _selection(self, tree: Topology) -> FeatureSelection:
        return FeatureSelection(per_node("B", self.B, tree.depth).astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class UnivariateOlct(Olct):
    """OLCT with one feature per node.

    Parameters
    ----------
    C, epsilon, tangents, refinement
        As for :class:`Olct`.
    """

    name = "univariate-olct"
    summary = "OLCT with one feature per node"
    source = "Aldinucci, PhD thesis, section 3.2, remark 2"

    def _selection(self, tree: Topology) -> FeatureSelection:
        return FeatureSelection(np.ones(tree.n_branches, dtype=np.int64))
