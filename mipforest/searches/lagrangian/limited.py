r"""Trees whose labels obey limits: what a tree costs and uses, its relaxation, and the best labels for given splits.

Sample i costs :math:`c_{ik}` with label k. A limit r is a sum over samples: with :math:`k_i(T)` the label that tree T
gives to sample i, and C its number of splits,

.. math::

    \min_T\; f(T) = \sum_i c_{i, k_i(T)} + \alpha C
    \quad \text{with} \quad g_r(T) = \sum_i u_{r i, k_i(T)} \le h_r \text{ for all } r.

For prices :math:`\lambda \ge 0` the *relaxation* :math:`L(\lambda) = \min_T f(T) + \sum_r \lambda_r (g_r(T) - h_r)`
is a lower bound on f of every tree within the limits (Geoffrion, *Lagrangean Relaxation for Integer Programming*,
Mathematical Programming Study 2, 1974). It is the optimum of one tree with the costs :math:`c_{ik} + \sum_r \lambda_r
u_{rik}`, which the exact search finds. The same holds for the trees of each threshold at the root.

A label that breaks a limit for one sample alone, as all :math:`u_{ri} \ge 0`, is *forbidden* for it: it costs more in
the relaxation than all else together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.objectives.leaf_losses import TableLoss
from mipforest.problem.structure import LabelSums, UnivariateProblem
from mipforest.settings import FEASIBILITY_TOLERANCE

#: Share of its side, or of its largest entry, by which rounding may take a sum beyond a limit: sums of a million terms.
ROUNDING = 1e-9

#: By how much a bound has to be above a whole number for the next one to be proven, and up to which spread of costs:
#: rounding errors of sums are far below.
WHOLE, MAX_WHOLE = 1e-4, 1e5

#: Labellings of leaves that are tried one by one; beyond, a linear programme in integers is solved.
MAX_LABELLINGS = 20_000


def widening(use: FloatArray, most: FloatArray) -> FloatArray:
    """Return (r,) by what limits on sums of (r, n, K) uses are widened for what rounding makes of the sums."""
    size = np.abs(use).max(axis=(1, 2), initial=np.finfo(np.float64).tiny)
    widened: FloatArray = np.minimum(ROUNDING * np.maximum(size, np.abs(most)), FEASIBILITY_TOLERANCE)
    return widened


@dataclass(frozen=True, eq=False)
class LimitedTrees:
    """Trees whose labels obey limits.

    Attributes
    ----------
    charges
        The problem without limits.
    depth
        Most splits on a path.
    names
        (r,) names of the limits.
    cost
        (n, K) what each label costs for each sample, in units of the loss.
    use
        (r, n, K) what it adds to each limit, at most 1 in size.
    most
        (r,) the limits, widened by what rounding makes of sums.
    size, kept
        (r,) what the rows were divided by, and which of all limits they are: others hold for all labels that are left.
    forbidden
        (n, K) labels that break a limit for one sample alone.
    """

    charges: UnivariateProblem
    depth: int
    names: tuple[str, ...]
    cost: FloatArray
    use: FloatArray
    most: FloatArray
    size: FloatArray
    kept: IntArray
    forbidden: BoolArray

    @classmethod
    def of(cls, charges: UnivariateProblem, depth: int, sums: LabelSums) -> Self:
        """Write both sides of rows as limits from above."""
        names, use, most = sums.from_above()
        cost = charges.costs_of_labels(use.shape[2])
        size = np.maximum(np.abs(use).max(axis=(1, 2), initial=0.0), np.finfo(np.float64).tiny)
        most = most + widening(use, most)
        alone: BoolArray = np.all(use >= 0, axis=(1, 2))
        forbidden: BoolArray = np.any(alone[:, None, None] & (use > most[:, None, None]), axis=0)
        # What holds for whatever labels are left needs no price.
        left = np.where(forbidden, -np.inf, use).max(axis=2).sum(axis=1)
        kept = np.flatnonzero(left > most)
        return cls(
            charges,
            depth,
            tuple(names[r] for r in kept),
            cost,
            use[kept] / size[kept, None, None],
            most[kept] / size[kept],
            size[kept],
            kept,
            forbidden,
        )

    @property
    def alpha(self) -> float:
        """Cost of a split, in units of the loss."""
        return self.charges.split_cost

    @property
    def spread(self) -> float:
        """What costs of trees may differ by, above 0."""
        allowed = np.where(self.forbidden, -np.inf, self.cost).max(axis=1)
        return float(allowed[np.isfinite(allowed)].sum()) + self.alpha * (2**self.depth - 1) or 1.0

    @cached_property
    def is_whole(self) -> bool:
        """Whether the labels of a tree cost a whole number in all."""
        cost = self.cost[~self.forbidden]
        return bool((cost == np.rint(cost)).all()) and self.spread <= MAX_WHOLE

    def rounded_up(self, bounds: FloatArray | float) -> FloatArray:
        """Return the least costs that trees may have from bounds on: whole numbers, and the costs of their splits."""
        given = np.asarray(bounds, dtype=np.float64)
        if not self.is_whole:
            return given
        found = np.full_like(given, np.inf)
        for splits in range(2**self.depth):
            cost = self.alpha * splits
            found = np.minimum(found, np.ceil(given - cost - WHOLE) + cost)
        return np.maximum(given, found)

    def capped(self, upper: float) -> Self:
        """Return the same with costs of at most twice that of a known tree, above 0, for any label of a sample.

        A tree that pays more is worse than the known one; all others cost the same. Costs that can only be avoided
        would otherwise round the sums of the others.
        """
        return replace(self, cost=np.minimum(self.cost, 2.0 * upper)) if 0.0 < upper < np.inf else self

    def relaxation(self, prices: FloatArray, costs: float = 1.0) -> tuple[UnivariateProblem | None, float]:
        """Return the problem of one exact tree, and what its value is to be added to, in units of the loss.

        Parameters
        ----------
        prices
            (r,) price of each limit, at least 0.
        costs
            Price of the costs; 0 to ask about the limits alone.

        Returns
        -------
        problem
            Its objective is a share of :attr:`UnivariateProblem.unit`; ``None`` where all labels are worth the same.
        constant
            In units of the loss.
        """
        table = costs * self.cost + np.tensordot(prices, self.use, 1)
        table = np.where(self.forbidden, np.inf, table)
        least = table.min(axis=1)
        table -= np.where(np.isfinite(least), least, 0.0)[:, None]  # a sample may have no label at all
        constant = float(least.sum() - prices @ self.most)
        others = np.where(self.forbidden, 0.0, table)
        most = float(others.max(axis=1).sum()) + costs * self.alpha * (2**self.depth - 1)
        # One forbidden label costs more than any tree without one.
        barrier = 2.0 * most or 1.0
        table = np.where(self.forbidden, barrier, table)
        if not table.any():
            return None, constant
        problem = replace(
            self.charges,
            y=table.argmin(axis=1),
            loss=TableLoss(table),
            weight=None,
            split_cost=costs * self.alpha,
            unit=most + barrier if self.forbidden.any() else most,
            offset=0.0,
        )
        return problem, constant

    # ------------------------------------------------------------------ trees

    def leaves(self, chosen: IntArray) -> IntArray:
        """Return the (n,) leaf of each sample, for a threshold per branch node (|B|,), -1 where it does not split."""
        thresholds = self.charges.thresholds
        node = np.zeros(len(thresholds.X), dtype=np.int64)
        for _ in range(self.depth):
            k = chosen[node]
            right = (
                thresholds.X[np.arange(len(node)), thresholds.feature[k]] >= thresholds.value[k]
                if len(thresholds)
                else np.ones(len(node), dtype=bool)
            )
            node = 2 * node + 1 + (right | (k < 0))
        leaf: IntArray = (node - (2**self.depth - 1))[thresholds.group]
        return leaf

    def best_labels(self, leaf: IntArray) -> IntArray | None:
        """Return the (|L|,) labels of least cost within the limits for samples in given leaves (n,), if there are any.

        Empty leaves get the label of the next one in use.
        """
        n_leaves, K = 2**self.depth, self.cost.shape[1]
        used = np.unique(leaf)

        def sums(values: FloatArray) -> FloatArray:
            """Return (leaves in use, K) sums of (n, K) values."""
            total = np.zeros((n_leaves, K))
            np.add.at(total, leaf, values)
            return total[used]

        cost, forbidden = sums(self.cost), sums(self.forbidden.astype(float)) > 0
        use = np.array([sums(row) for row in self.use]).reshape(len(self.use), len(used), K)
        allowed = [np.flatnonzero(~row) for row in forbidden]
        n_labellings = float(np.prod([float(len(row)) for row in allowed]))
        if n_labellings == 0:
            return None
        rows = np.arange(len(used))
        if n_labellings <= MAX_LABELLINGS:
            labellings = np.array(list(product(*allowed)))
            within = (use[:, rows, labellings].sum(axis=2) <= self.most[:, None]).all(axis=0)
            if not within.any():
                return None
            values = np.where(within, cost[rows, labellings].sum(axis=1), np.inf)
            best = labellings[values.argmin()]
        else:
            one_each = np.kron(np.eye(len(used)), np.ones(K))
            limits = [LinearConstraint(one_each, 1.0, 1.0)]
            if len(use):
                limits.append(LinearConstraint(use.reshape(len(use), -1), -np.inf, self.most))
            solved = milp(
                cost.ravel() / self.spread,
                integrality=np.ones(cost.size),
                bounds=Bounds(0.0, (~forbidden).ravel().astype(float)),
                constraints=limits,
            )
            if solved.x is None:
                return None
            best = solved.x.reshape(cost.shape).argmax(axis=1)
            if (use[:, rows, best].sum(axis=1) > self.most).any():
                return None
        labels: IntArray = best[np.minimum(np.searchsorted(used, np.arange(n_leaves)), len(used) - 1)]
        return labels

    def joined(self, chosen: IntArray, labels: IntArray, must: BoolArray | None = None) -> IntArray:
        """Return the splits (|B|,) without those both sides of which get one label, from the leaves up.

        Nodes that have to split (|B|,) keep theirs.
        """
        chosen = chosen.copy()
        n_branches = len(chosen)
        label = np.concatenate([np.full(n_branches, -1), labels])
        for t in range(n_branches - 1, -1, -1):
            left, right = label[2 * t + 1], label[2 * t + 2]
            if chosen[t] < 0:
                label[t] = right
            elif left == right >= 0 and not (must is not None and must[t]):
                chosen[t], label[t] = -1, left
        return chosen
