r"""Leaves that predict a value: what binds Dunn's regression models to data, and the fit of leaves, in scaled units.

**Units.** The target is scaled to [0, 1] by its least and greatest value, so a coefficient :math:`\beta_{jt}` is the
share of the target's range by which the prediction rises along the whole range of feature j. The loss relative to that
of the best constant is free of units. Trees predict in the target's units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formulations.splits.univariate import RootValues, Routing, with_paying_splits
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.objectives.leaf_losses import LeafLoss
from mipforest.problem.operations import Instance
from mipforest.trees import Tree


class LeafFit(NamedTuple):
    """A leaf's prediction ``beta . x + beta0``, in scaled units, and its share of the objective."""

    beta: FloatArray
    beta0: float
    cost: float


@dataclass(frozen=True, eq=False)
class ConstantLeaves:
    """Leaves that predict a constant.

    Attributes
    ----------
    data
        Training samples, a real target.
    loss
        Loss of the predictions.
    """

    data: Dataset
    loss: LeafLoss

    @cached_property
    def least(self) -> float:
        """Least value of the target."""
        return float(self.data.y.min())

    @cached_property
    def spread(self) -> float:
        """Range of the target: greatest value less least."""
        return float(self.data.y.max() - self.data.y.min())

    @cached_property
    def y(self) -> FloatArray:
        """(n,) scaled target."""
        return self.scaled(self.data.y)

    @cached_property
    def baseline(self) -> float:
        """Loss of the best single constant, for the scaled target (Dunn's Lhat)."""
        return self.loss.baseline(self.y, self.data.weights)

    @property
    def limit(self) -> float:
        """Greatest size of a coefficient that the model allows."""
        return np.inf

    def penalty(self, beta: FloatArray) -> float:
        """Return the regulariser's term of the objective for coefficients (|L|, p)."""
        return 0.0

    def fit(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> LeafFit:
        """Return the best prediction for the samples of a leaf, n >= 1, with a scaled target and weights."""
        return self.fit_constant(X, y, weight)

    def fit_constant(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> LeafFit:
        """Return the best constant for the samples of a leaf."""
        beta0 = self.loss.best_constant(y, weight)
        return LeafFit(np.zeros(X.shape[1]), beta0, self.loss.total(beta0 - y, weight) / self.baseline)

    def scaled(self, values: FloatArray | IntArray) -> FloatArray:
        """Scale target values."""
        return np.asarray((values - self.least) / self.spread, dtype=np.float64)

    def unscaled(self, values: FloatArray) -> FloatArray:
        """Return scaled values in the target's units."""
        return self.least + self.spread * values

    def relative_loss(self, tree: Tree) -> float:
        """Return the loss of a tree on the training samples over :attr:`baseline`, by the definition."""
        errors = (tree.predict(self.data.X) - self.data.y) / self.spread
        return self.loss.total(errors, self.data.weights) / self.baseline

    def with_values(self, tree: Tree, beta: FloatArray, beta0: FloatArray) -> Tree:
        """Return a tree with leaves given in scaled units; constants need no ``beta`` (|L|, p)."""
        return Tree(tree.depth, tree.w, tree.b, self.unscaled(beta0), (), tree.features)

    def with_fitted_leaves(self, tree: Tree) -> Tree:
        """Fit the leaves of a tree; an empty one predicts the constant of its closest ancestor with samples."""
        passed, topology = tree.decision_path(self.data.X), tree.topology
        fits = []
        for leaf in topology.leaves:
            node = leaf
            while not passed[:, node].any():
                node = topology.parent(node)
            here = passed[:, node]
            fit = self.fit if node == leaf else self.fit_constant
            fits.append(fit(self.data.X[here], self.y[here], self.data.weights[here]))
        return self.with_values(
            tree, np.array([fit.beta for fit in fits]), np.array([fit.beta0 for fit in fits])
        )

    def pruned(self, tree: Tree, split_cost: FloatArray, N_min: int) -> Tree:
        """Take back splits that do not pay for themselves, with all leaves fitted; fit the leaves.

        Parameters
        ----------
        tree
            For scaled features.
        split_cost
            (|B|,) cost of each split.
        N_min
            Least number of samples in a leaf that holds any.
        """
        alone = np.zeros(tree.topology.n_nodes)
        for t, here in enumerate(tree.decision_path(self.data.X).T):
            if here.any():
                leaf = self.data.X[here], self.y[here], self.data.weights[here]
                alone[t] = self.fit(*leaf).cost if here.sum() >= N_min else np.inf
        kept = with_paying_splits(tree, split_cost, alone)
        return self.with_fitted_leaves(
            Tree(tree.depth, kept.w, kept.b, np.zeros(tree.topology.n_leaves), (), tree.features)
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OrtInstance(Instance):
    """A data set with its routing and its leaves.

    Attributes
    ----------
    routing
        How samples get to leaves.
    leaves
        How leaves predict, with the scaled target.
    roots
        Bounds on the objective by the root's threshold: variant ``tight`` of ``ort``; ``None`` where nothing is proven.
    """

    routing: Routing
    leaves: ConstantLeaves
    roots: RootValues | None = None


def coefficients(tree: Tree) -> FloatArray:
    """Return the (|L|, p) coefficients of a tree's leaves over scaled features; 0 for constant leaves."""
    return np.zeros((tree.topology.n_leaves, tree.n_features)) if tree.leaf_w is None else tree.leaf_w


# ---------------------------------------------------------------------- groups of equal samples, ranges of leaf values


def grouped(y: FloatArray, weight: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Return weights (g,) and mean targets (g,) of the groups, and the squared loss within all of them."""
    total: FloatArray = np.bincount(group, weights=weight).astype(np.float64)
    mean = np.bincount(group, weights=weight * y) / total
    return total, mean, float((weight * (y - mean[group]) ** 2).sum())


def distinct_targets(
    y: FloatArray, weight: FloatArray, group: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """List groups, targets and total weights of the distinct pairs (group, target)."""
    pairs, of = np.unique(np.column_stack([group, y]), axis=0, return_inverse=True)
    return pairs[:, 0].astype(np.int64), pairs[:, 1], np.bincount(of.ravel(), weights=weight).astype(float)


def range_of_means(y: FloatArray, weight: FloatArray, N_min: int) -> tuple[float, float]:
    """Return bounds on the weighted mean of at least ``N_min`` of the targets (n,).

    With unequal weights a mean may come as close to the least target as one heavy sample draws it: their range.
    """
    ordered = np.sort(y)
    if (weight != weight[0]).any():
        return float(ordered[0]), float(ordered[-1])
    low, high = float(ordered[:N_min].mean()), float(ordered[-N_min:].mean())
    return min(low, high), max(low, high)  # equal means may cross by rounding


def range_of_medians(y: FloatArray, weight: FloatArray, N_min: int) -> tuple[float, float]:
    """Return bounds on the weighted median of at least ``N_min`` of the targets (n,), as :func:`range_of_means`."""
    ordered = np.sort(y)
    if (weight != weight[0]).any():
        return float(ordered[0]), float(ordered[-1])
    return float(np.median(ordered[:N_min])), float(np.median(ordered[-N_min:]))
