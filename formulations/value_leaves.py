r"""Leaves that predict a value, constant or linear in the features: shared by the regression models.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, sections 4.2 and 5.1.
With the fitted value :math:`f_i` of sample i,

.. math::

    & |f_i - (\beta_t^\top x_i + \beta_{0t})| \le M_f (1 - z_{it}) && i,\; t \in L \quad (4.2, 5.2) \\
    & L_i \ge \pm (f_i - y_i) \quad \text{or} \quad L_i = (f_i - y_i)^2 && i \quad (4.4 - 4.6)

and :math:`\beta = 0` for constant leaves.

**Units.** The target is scaled to [0, 1] by its least and greatest value, so :math:`\beta_{jt}` is the share
of the target's range by which the prediction rises along the whole range of feature j. The loss relative to
that of the best constant is free of units.

**The constant M_f.** The scaled target has range 1, and leaf values within it lose nothing: ``M_f = 1`` for
constant leaves. For linear ones see :mod:`formulations.linear_leaves`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.routings import Routed
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, QuadraticExpr, Values, VarArray
from mipforest.objectives.leaf_losses import Loss
from mipforest.trees import Topology, Tree


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
        return np.asarray((y - self.least) / self.spread, dtype=np.float64)


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

    #: Whether they predict a linear function of the features.
    are_linear: ClassVar[bool] = False
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
        f = declare_fitted(m, beta0, routed.z, np.ones(len(routed.X)))
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


def declare_fitted(m: Model, prediction: LinearExpr, z: VarArray, M: FloatArray) -> VarArray:
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
    if leaves.are_linear:
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
