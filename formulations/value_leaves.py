r"""Leaves that predict a value, constant or linear in the features: shared by the regression models.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, sections 4.2 and 5.1. With the fitted
value :math:`f_i` of sample i,

.. math::

    & -M_f (1 - z_{it}) \le f_i - (\beta_t^\top x_i + \beta_{0t}) \le M_f (1 - z_{it}) && i,\; t \in L \quad (4.2, 5.2) \\
    & L_i \ge \pm (f_i - y_i) \quad \text{or} \quad L_i = (f_i - y_i)^2 && i \quad (4.4 - 4.6)

and :math:`\beta = 0` for constant leaves. Linear leaves pay :math:`\lambda \sum_t \|\beta_t\|_1` (5.3), or
:math:`\lambda \sum_{t,j} r_{jt}` (5.5) with binaries

.. math::  -M_r r_{jt} \le \beta_{jt} \le M_r r_{jt} \quad (5.4).

**Units.** The target is scaled to [0, 1] by its least and greatest value, so :math:`\beta_{jt}` is the share of the target's
range by which the prediction rises along the whole range of feature j. The loss relative to that of the best constant is
free of units.

**The constant M_f.** The scaled target has range 1, and leaf values within it lose nothing: :math:`M_f = 1` for constant leaves.
For linear leaves the thesis takes :math:`2 (r + \max |y|)`, with r the greatest error of one sample in a solution as good as the
best one known (:math:`\sqrt{z_F}` or :math:`z_F`). That is no valid bound: it holds where a leaf's function is evaluated at samples of the
leaf, and says nothing of its value at other samples, where it extrapolates. Valid is, for every sample,

.. math::  M_i = 1 + 2 r + \min \{ B \textstyle\sum_j h_{ij}, \; N \max_j h_{ij} \}, \qquad h_{ij} = \max \{x_{ij}, 1 - x_{ij}\},

with B and N bounds on the single coefficients of a leaf and on the sum of their sizes: compare with any sample k of the leaf,
:math:`|f_i - f_k| \le 1 + 2 r` and :math:`|\beta^\top (x_i - x_k)|` is at most the last term. A regulariser bounds both,
:math:`\lambda \|\beta_t\|_1 \le UB`; without one (:math:`\lambda = 0`) the coefficients are limited to :math:`M_r`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.losses import Loss
from formulations.routings import Routed
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, QuadraticExpr, Values, VarArray
from mipforest.solving import solve
from mipforest.trees import Topology, Tree

#: A coefficient of a linear leaf below this, in scaled units, is a solver's residue.
NEGLIGIBLE = 1e-7

#: Gap and seconds for the exact fit of one linear leaf; only with the l0 regulariser it takes a search.
FIT_GAP = 1e-6
FIT_TIME_LIMIT = 5.0


@dataclass(frozen=True)
class TargetScale:
    """The scaling of a target to [0, 1].

    Attributes
    ----------
    least, spread
        Its least value, and its greatest less its least.
    """

    least: float
    spread: float

    @classmethod
    def of(cls, data: Dataset) -> TargetScale:
        """Scaling of the target of a data set."""
        return cls(float(data.y.min()), float(data.y.max() - data.y.min()))

    def scaled(self, y: FloatArray | IntArray) -> FloatArray:
        """Scale target values."""
        scaled: FloatArray = (y - self.least) / self.spread
        return scaled


class LeafFit(NamedTuple):
    """A leaf's prediction ``beta . x + beta0``, in scaled units, and its share of the objective."""

    beta: FloatArray
    beta0: float
    cost: float


class ValueLeaves(ABC):
    """Leaves that predict a value.

    Parameters
    ----------
    loss
        Loss of their predictions.
    """

    #: Greatest size of a coefficient that the model allows.
    limit: float = np.inf

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    @abstractmethod
    def declare(
        self, m: Model, data: Dataset, tree: Topology, routed: Routed, upper_bound: float
    ) -> tuple[LinearExpr | QuadraticExpr, LinearExpr | float]:
        """Write predictions and losses; give the total loss (scaled target), and the regulariser's term."""

    @abstractmethod
    def encode(self, fitted: Tree, data: Dataset, X: FloatArray, group: IntArray) -> dict[str, FloatArray]:
        """Values of those blocks for a tree, its groups of samples and the group of each sample."""

    @abstractmethod
    def decode(self, values: Values, routing: Tree, data: Dataset) -> Tree:
        """Give a tree the leaves of a solution."""

    @abstractmethod
    def fit(self, X: FloatArray, y: FloatArray, baseline: float) -> LeafFit:
        """Best prediction for the samples of a leaf, n >= 1, scaled target."""

    def penalty(self, beta: FloatArray) -> float:
        """Regulariser's term for coefficients (|L|, p)."""
        return 0.0


class ConstantLeaves(ValueLeaves):
    """Leaves that predict a constant, by rows (4.2) with ``M_f = 1``."""

    def declare(
        self,
        m: Model,
        data: Dataset,
        tree: Topology,
        routed: Routed,
        upper_bound: float,
    ) -> tuple[LinearExpr | QuadraticExpr, LinearExpr | float]:
        beta0 = m.continuous("beta0", tree.leaves)
        f = _declare_fitted(m, beta0, routed.z, np.ones(len(routed.X)))
        return self.loss.declare(m, f[routed.group] - TargetScale.of(data).scaled(data.y)), 0.0

    def encode(self, fitted: Tree, data: Dataset, X: FloatArray, group: IntArray) -> dict[str, FloatArray]:
        scale = TargetScale.of(data)
        beta0 = scale.scaled(fitted.leaf_value)
        f = leaves_of(fitted, X) @ beta0
        return {"beta0": beta0, "f": f, **self.loss.encode(f[group] - scale.scaled(data.y))}

    def decode(self, values: Values, routing: Tree, data: Dataset) -> Tree:
        return with_fitted_leaves(routing, data, self)

    def fit(self, X: FloatArray, y: FloatArray, baseline: float) -> LeafFit:
        beta0 = self.loss.best_constant(y)
        return LeafFit(np.zeros(X.shape[1]), beta0, self.loss.total(beta0 - y) / baseline)


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
        f = _declare_fitted(m, routed.X @ beta.T + beta0, routed.z, M)
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


def _declare_fitted(m: Model, prediction: LinearExpr, z: VarArray, M: FloatArray) -> VarArray:
    """Write rows (4.2), (5.2): the fitted value of a group is the prediction (g, |L|) or (|L|,) of its leaf."""
    f = m.continuous("f", len(M))
    apart, room = f[:, None] - prediction, M[:, None] * (1 - z)
    m.add("fitted_above", apart <= room)
    m.add("fitted_below", apart >= -room)
    return f


# ---------------------------------------------------------------------- trees


def coefficients(fitted: Tree) -> FloatArray:
    """(|L|, p) coefficients of a tree's leaves over scaled features; 0 for constant leaves."""
    return np.zeros((fitted.topology.n_leaves, fitted.n_features)) if fitted.leaf_w is None else fitted.leaf_w


def with_leaves(fitted: Tree, beta: FloatArray, beta0: FloatArray, scale: TargetScale) -> Tree:
    """Give a tree leaves in scaled units; it then predicts in the target's units."""
    return Tree(
        fitted.depth,
        fitted.w,
        fitted.b,
        scale.least + scale.spread * beta0,
        (),
        fitted.features,
        leaf_w=scale.spread * beta,
    )


def with_fitted_leaves(fitted: Tree, data: Dataset, leaves: ValueLeaves) -> Tree:
    """Fit the leaves of a tree; an empty one predicts the constant of its closest ancestor with samples."""
    scale = TargetScale.of(data)
    y = scale.scaled(data.y)
    baseline = leaves.loss.baseline(y)
    passed = fitted.decision_path(data.X)
    fits = []
    for leaf in fitted.topology.leaves:
        node = leaf
        while not passed[:, node].any():
            node = (node - 1) // 2
        here = passed[:, node]
        kind = leaves if node == leaf else ConstantLeaves(leaves.loss)
        fits.append(kind.fit(data.X[here], y[here], baseline))
    beta0 = np.array([fit.beta0 for fit in fits])
    beta = np.array([fit.beta for fit in fits])
    if isinstance(leaves, LinearLeaves):
        return with_leaves(fitted, beta, beta0, scale)
    return Tree(fitted.depth, fitted.w, fitted.b, scale.least + scale.spread * beta0, (), fitted.features)


def without_needless_splits(
    fitted: Tree, data: Dataset, leaves: ValueLeaves, split_cost: FloatArray, n_min: int
) -> Tree:
    """Take back splits that do not pay for themselves, from the leaves up.

    A node keeps its split if its subtree then costs less than one leaf in its place, with all leaves fitted.
    Below a node without a split there are none.

    Parameters
    ----------
    fitted, data
        A tree for scaled features, and the data.
    leaves
        How leaves predict.
    split_cost
        (|B|,) cost of each split.
    n_min
        Least number of samples in a leaf that holds any.
    """
    y = TargetScale.of(data).scaled(data.y)
    baseline = leaves.loss.baseline(y)
    passed = fitted.decision_path(data.X)
    tree = fitted.topology
    value = np.zeros(tree.n_nodes)
    keeps = np.zeros(tree.n_nodes, dtype=bool)
    for t in reversed(range(tree.n_nodes)):
        here = passed[:, t]
        if here.any():
            alone = leaves.fit(data.X[here], y[here], baseline).cost if here.sum() >= n_min else np.inf
        else:
            alone = 0.0
        value[t] = alone
        if t < tree.n_branches and not fitted.is_trivial(t):
            split = split_cost[t] + value[2 * t + 1] + value[2 * t + 2]
            keeps[t], value[t] = split < alone, min(split, alone)
    for t in range(1, tree.n_branches):
        keeps[t] &= keeps[(t - 1) // 2]
    kept = keeps[: tree.n_branches]
    w, b = np.where(kept[:, None], fitted.w, 0.0), np.where(kept, fitted.b, 0.0)
    return Tree(fitted.depth, w, b, np.zeros(tree.n_leaves), (), fitted.features)
