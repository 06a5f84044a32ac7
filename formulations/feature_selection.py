r"""Feature selection at branch nodes: a budget of features, hard or soft.

.. math::

    -M_w s_{tj} \le w_{tj} \le M_w s_{tj}, \quad s_{tj} \in \{0, 1\} \qquad
    \text{hard: } \sum_j s_{tj} \le B_t \qquad
    \text{soft: } u_t \ge \sum_j s_{tj} - B_t,\; u_t \ge 0,\; \text{objective} + \alpha \sum_t u_t .

Sources: D'Onofrio et al. 2024, section 4, rows (11, 12); Aldinucci's thesis, section 3.2, rows (3.14). The thesis
charges :math:`\alpha \max(\|w_t\|_0, B_t)`, which is the same up to the constant :math:`\alpha B_t`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import BigM
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.trees import Topology


@dataclass(frozen=True, eq=False)
class FeatureSelection:
    """Budgets of features per branch node.

    Attributes
    ----------
    budget
        (|B|,) features per node that are free of cost.
    alpha
        Cost of a feature above the budget; ``None`` forbids it.
    """

    budget: IntArray
    alpha: float | None = None

    def cost(self, m: Model, tree: Topology) -> LinearExpr | float:
        """Write what the objective charges, with the block of excesses that it needs."""
        if self.alpha is None:
            return 0.0
        cost: LinearExpr = self.alpha * m.nonnegative("u", tree.branches).sum()
        return cost

    def declare(self, m: Model, w: VarArray, data: Dataset, tree: Topology, M_w: BigM) -> None:
        """Write the rows that switch each feature of each node on or off, and those of the budgets."""
        s = m.binary("s", (tree.branches, data.features))
        m.add("below", w >= -M_w * s, over=(tree.branches, data.features))
        m.add("above", w <= M_w * s, over=(tree.branches, data.features))
        if self.alpha is None:
            m.add("budget", s.sum(axis=1) <= self.budget, over=tree.branches)
        else:
            m.add("excess", m["u"] >= s.sum(axis=1) - self.budget, over=tree.branches)

    def encode(self, w: FloatArray) -> dict[str, FloatArray]:
        """Values of the blocks for weights (|B|, p)."""
        s = (w != 0).astype(float)
        if self.alpha is None:
            return {"s": s}
        return {"s": s, "u": np.maximum(0.0, s.sum(axis=1) - self.budget)}

    def clear_unselected(self, w: FloatArray, values: Values) -> None:
        """Set the weights of features that a solution switches off to 0, in place."""
        w[values["s"] < 0.5] = 0.0
