r"""Leaves that predict a linear function of the features, in Dunn's regression models.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 5.1: rows (5.2) and
the losses are those of :mod:`formulations.value_leaves`; the regulariser is
:math:`\lambda \sum_t \|\beta_t\|_1` (5.3), or :math:`\lambda \sum_{t,j} r_{jt}` (5.5) with binaries

.. math::  -M_r r_{jt} \le \beta_{jt} \le M_r r_{jt} \quad (5.4).

**The constant M_f** of the thesis is :math:`2 (r + \max |y|)`, with r the greatest error of one sample in a solution
as good as the best one known (:math:`\sqrt{z_F}` for squared loss, :math:`z_F` for absolute). That is no valid bound:
it holds where a leaf's function is evaluated at samples of the leaf, and says nothing of its value at other samples,
where it extrapolates. Valid is, for every sample,

.. math::

    M_i = 1 + 2 r + \min \{ B \textstyle\sum_j h_{ij}, \; N \max_j h_{ij} \}, \qquad
    h_{ij} = \max \{x_{ij}, 1 - x_{ij}\},

with B and N bounds on the single coefficients of a leaf and on the sum of their sizes. For compare with any sample k
of the leaf: :math:`|f_i - f_k| \le 1 + 2 r`, as the scaled target has range 1, and
:math:`|\beta^\top (x_i - x_k)|` is at most the last term. (An empty leaf needs no coefficients, and may predict any
:math:`f_k`.) In a solution no worse than UB the regulariser bounds both, :math:`\lambda \|\beta_t\|_1 \le UB`; without
one (:math:`\lambda = 0`), and with l0, coefficients are limited to :math:`M_r`.
"""

from __future__ import annotations

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.routings import Routed
from formulations.value_leaves import (
    ConstantLeaves,
    LeafFit,
    TargetScale,
    ValueLeaves,
    coefficients,
    declare_fitted,
    with_leaves,
)
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, QuadraticExpr, Values, VarArray
from mipforest.objectives.leaf_losses import Loss
from mipforest.solving import solve
from mipforest.trees import Topology, Tree

#: A coefficient of a linear leaf below this, in scaled units, is a solver's residue.
NEGLIGIBLE = 1e-7

#: Gap and seconds for the exact fit of one linear leaf; only with the l0 regulariser it takes a search.
FIT_GAP = 1e-6
FIT_TIME_LIMIT = 5.0


class LinearLeaves(ValueLeaves):
    """Leaves that predict a linear function of the features.

    Parameters
    ----------
    loss
        Loss of their predictions.
    lam, regulariser
        Weight of the regulariser, and which: ``"l1"`` or ``"l0"``.
    M_r
        Greatest size of a coefficient, with ``"l0"`` or where nothing else bounds it.
    literal
        Whether to take the thesis' M_f, which is not valid in general.
    """

    are_linear = True

    def __init__(self, loss: Loss, lam: float, regulariser: str, M_r: float, *, literal: bool) -> None:
        super().__init__(loss)
        self.lam, self.counts, self.literal = lam, regulariser == "l0", literal
        self.limit = M_r if self.counts or (lam == 0 and not literal) else np.inf

    def declare(
        self, m: Model, data: Dataset, tree: Topology, routed: Routed, upper_bound: float
    ) -> tuple[LinearExpr | QuadraticExpr, LinearExpr | float]:
        y = TargetScale.of(data).scaled(data.y)
        beta0 = m.continuous("beta0", tree.leaves)
        beta = m.continuous("beta", (tree.leaves, data.features), lower=-self.limit, upper=self.limit)
        M = self._room(routed.X, y, upper_bound)
        f = declare_fitted(m, routed.X @ beta.T + beta0, routed.z, M)
        return self.loss.declare(m, f[routed.group] - y), self.lam * self._declare_size(m, beta)

    def _declare_size(self, m: Model, beta: VarArray) -> LinearExpr:
        """Write the regulariser, without its weight."""
        if self.counts:
            r = m.binary("r", beta.shape)
            m.add("size_above", beta <= self.limit * r)
            m.add("size_below", beta >= -self.limit * r)
            return r.sum()
        size = m.nonnegative("beta_abs", beta.shape)
        m.add("size_above", size >= beta)
        m.add("size_below", size >= -beta)
        return size.sum()

    def _room(self, X: FloatArray, y: FloatArray, upper_bound: float) -> FloatArray:
        """(g,) M_f of each group, for solutions with an objective of at most ``upper_bound``."""
        error = self.loss.greatest_error(upper_bound * self.loss.baseline(y))
        if self.literal:
            return np.full(len(X), 2 * (error + float(np.abs(y).max())))
        per_unit = np.inf if self.lam == 0 else upper_bound / self.lam
        if self.counts:
            single = self.limit
            together = min(X.shape[1], per_unit) * single
        else:
            single = min(self.limit, per_unit)
            together = min(X.shape[1] * single, per_unit)
        far = np.maximum(X, 1 - X)
        room: FloatArray = 1 + 2 * error + np.minimum(single * far.sum(axis=1), together * far.max(axis=1))
        return room

    def encode(self, fitted: Tree, data: Dataset, X: FloatArray, group: IntArray) -> dict[str, FloatArray]:
        scale = TargetScale.of(data)
        beta0 = scale.scaled(fitted.leaf_value)
        beta = coefficients(fitted) / scale.spread
        f = (leaves_of(fitted, X) * (X @ beta.T + beta0)).sum(axis=1)
        size = {"r": (beta != 0).astype(float)} if self.counts else {"beta_abs": np.abs(beta)}
        return {
            "beta0": beta0,
            "beta": beta,
            "f": f,
            **self.loss.encode(f[group] - scale.scaled(data.y)),
            **size,
        }

    def decode(self, values: Values, routing: Tree, data: Dataset) -> Tree:
        """Read the leaves off a solution: fitted anew they could leave the room of the literal M_f."""
        scale = TargetScale.of(data)
        kept = np.abs(values["beta"]) > NEGLIGIBLE
        if self.counts:
            kept &= values["r"] > 0.5
        # What an empty leaf predicts counts for nothing; without a regulariser it may be anything.
        holds_samples = leaves_of(routing, data.X).sum(axis=0) > 0
        kept &= holds_samples[:, None]
        beta = np.where(kept, values["beta"], 0.0)
        return with_leaves(routing, beta, values["beta0"], scale)

    def fit(self, X: FloatArray, y: FloatArray, baseline: float) -> LeafFit:
        # A feature that is constant in the leaf is no better than the constant term.
        varies = np.ptp(X, axis=0) > 0
        beta = np.zeros(X.shape[1])
        if varies.any():
            beta[varies] = self._solve_fit(X[:, varies], y, baseline)
        beta0 = self.loss.best_constant(y - X @ beta)
        cost = self.loss.total(X @ beta + beta0 - y) / baseline + self.penalty(beta[None])
        constant = ConstantLeaves(self.loss).fit(X, y, baseline)
        return LeafFit(beta, beta0, cost) if cost < constant.cost else constant

    def _solve_fit(self, X: FloatArray, y: FloatArray, baseline: float) -> FloatArray:
        """Solve the leaf's linear, quadratic or mixed-integer programme."""
        m = Model("leaf")
        beta = m.continuous("beta", X.shape[1], lower=-self.limit, upper=self.limit)
        total = self.loss.declare(m, X @ beta + m.continuous("beta0") - y)
        m.minimize((1 / baseline) * total + self.lam * self._declare_size(m, beta))
        solution = solve(m, gap=FIT_GAP, time_limit=FIT_TIME_LIMIT)
        if solution.x is None:
            return np.zeros(X.shape[1])
        found = np.clip(solution.values["beta"], -self.limit, self.limit)
        found[np.abs(found) <= NEGLIGIBLE] = 0.0
        if self.counts:
            found[solution.values["r"] <= 0.5] = 0.0
        return found

    def penalty(self, beta: FloatArray) -> float:
        size = np.count_nonzero(beta) if self.counts else np.abs(beta).sum()
        return float(self.lam * size)
