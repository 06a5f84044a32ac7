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
    \text{hard: } \sum_j s_{tj} \le B_t \qquad
    \text{soft: } u_t \ge \sum_j s_{tj} - B_t,\; u_t \ge 0,\; \text{objective} + \alpha \sum_t u_t .

**Variants.** ``paper``: the constants of the paper, :math:`M_\xi = M_w = 50`, :math:`M_H = 100`. They are no bounds
in general: with a large C optimal weights exceed them, and the optimum is cut off. ``valid`` (the default): per-sample
constants and bounds on w and b proven from a feasible tree; see :mod:`formulations.margin_limits`. Both have the same
optimal value wherever the paper's constants suffice.

What MARGOT shares with other trees of linear classifiers is in :mod:`formulations.loss_optimal_tree`: MARGOT is the one
with the hinge loss and half the squared Euclidean norm, charged at every branch node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.feature_selection import FeatureSelection
from formulations.loss_optimal_tree import LossOptimalTree
from formulations.margin_limits import MarginLimits
from formulations.routed_splits import passed
from mipforest.heuristics.branch_losses import HINGE, PiecewiseLinearLoss
from mipforest.heuristics.local_svm import local_svm
from mipforest.heuristics.norms import HALF_SQUARED_L2, Norm
from mipforest.heuristics.svm_path import svm_path
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class Margot(LossOptimalTree):
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

    C: PerNode = parameter(1.0, "penalty of margin violations", above=0)

    def _loss(self) -> PiecewiseLinearLoss:
        return HINGE

    def _norm(self) -> Norm:
        return HALF_SQUARED_L2

    def _paper_limits(self) -> MarginLimits:
        return MarginLimits(M_xi=(50.0,), M_right=100.0, M_left=100.0, M_w=50.0)

    def start(self, name: str, instance: Instance, *, seed: int = 0) -> Tree:
        data, tree = instance.data, instance.topology
        if name == "svm-path":
            return self._svm_path(instance, seed)
        if name == "local-svm":
            return local_svm(data, tree, self._nodes(tree))
        return super().start(name, instance, seed=seed)

    def _svm_path(self, instance: Instance, seed: int) -> Tree:
        return svm_path(instance.data, instance.topology, self._nodes(instance.topology))


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

    def _selection(self, tree: Topology) -> FeatureSelection:
        return FeatureSelection(per_node("B", self.B, tree.depth).astype(np.int64))

    def _svm_path(self, instance: Instance, seed: int) -> Tree:
        """Take CART's routing where it is better: with few features per node it often is."""
        candidates = (super()._svm_path(instance, seed), self.start("cart", instance, seed=seed))
        return min(candidates, key=lambda fitted: self.evaluate(fitted, instance))


@dataclass(frozen=True, kw_only=True)
class SfsMargot(HfsMargot):
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

    def _selection(self, tree: Topology) -> FeatureSelection:
        return FeatureSelection(per_node("B", self.B, tree.depth).astype(np.int64), self.alpha)


__all__: list[str] = ["HfsMargot", "Margot", "SfsMargot", "passed"]
