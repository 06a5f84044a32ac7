r"""Leaves that prescribe a treatment and estimate the outcome under each: what they are charged, how they are fitted.

With :math:`n_{lt}, s_{lt}, q_{lt}` the number, sum and sum of squares of the outcomes of the samples of leaf l that had
treatment t, :math:`n_l = \sum_t n_{lt}`, and constant estimates :math:`\hat y_{lt} = s_{lt} / n_{lt}`, the observed
outcomes of a treatment sum up to what is estimated for the same samples, so that (Dunn 2018, equation 6.5)

.. math::

    \sum_{i \in l} \begin{cases} y_i & z_i = \tau_l \\ \hat y_{l \tau_l} & \text{else} \end{cases}
    \; = \; n_l \, \hat y_{l \tau_l}, \qquad
    \sum_{i \in l} (y_i - \hat y_{l z_i})^2 = \sum_t \left( q_{lt} - s_{lt}^2 / n_{lt} \right).

Weights of samples multiply their terms in all these sums, :math:`n_{lt}` included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formulations.splits.univariate import Routing, RoutingExpressions, leaves_of, with_paying_splits
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr
from mipforest.problem.expressions import Expression
from mipforest.problem.operations import Instance
from mipforest.trees import Tree


class LeafEstimates(NamedTuple):
    """What a leaf estimates, in units of the objective.

    Attributes
    ----------
    outcome
        (m,) constant of the estimate under each treatment; NaN for one that no sample had.
    coefficients
        (m, p) coefficients of linear estimates; 0 for constant ones.
    total
        (m,) weighted sum of the outcomes of all samples under each treatment, observed or estimated; infinite for a
        treatment that too few samples had.
    loss
        What the estimates of the outcomes that are known are charged, with the samples' weights.
    """

    outcome: FloatArray
    coefficients: FloatArray
    total: FloatArray
    loss: float


@dataclass(frozen=True, eq=False, kw_only=True)
class TreatmentLeaves:
    """Leaves that estimate a constant under each treatment.

    Attributes
    ----------
    data
        Training samples with treatments and outcomes.
    mu
        Weight of the outcomes under the prescriptions, 0 to 1; that of the estimates' loss is 1 - mu.
    n_treatment
        Least number of samples of a leaf, whatever they weigh, that had the treatment that it prescribes.
    higher
        Whether higher outcomes are better.
    standardised
        Whether outcomes are divided by their standard deviation in the objective.
    """

    data: Dataset
    mu: float
    n_treatment: int
    higher: bool = False
    standardised: bool = False

    @cached_property
    def unit(self) -> float:
        """What outcomes are divided by, negative where higher ones are better: lower ones are then."""
        y, size = np.asarray(self.data.y, dtype=np.float64), 1.0
        if self.standardised:
            mean = np.average(y, weights=self.weights)
            size = float(np.sqrt(np.average((y - mean) ** 2, weights=self.weights)))
        return -size if self.higher else size

    @cached_property
    def y(self) -> FloatArray:
        """(n,) outcomes in units of the objective: lower ones are better."""
        y: FloatArray = np.asarray(self.data.y, dtype=np.float64) / self.unit
        return y

    @property
    def weights(self) -> FloatArray:
        """(n,) weights of the samples."""
        return self.data.weights

    @cached_property
    def total_weight(self) -> float:
        """Weight of all samples: what the objective is divided by."""
        return float(self.weights.sum())

    @cached_property
    def given(self) -> IntArray:
        """(n,) treatment of each sample."""
        assert self.data.treatments is not None  # ``check_data`` has seen to it
        return self.data.treatments

    @cached_property
    def members(self) -> BoolArray:
        """(n, m) whether a sample had a treatment."""
        had: BoolArray = np.arange(len(self.data.classes)) == self.given[:, None]
        return had

    @cached_property
    def baseline(self) -> float:
        """Loss of the estimates of a tree without splits: what costs of splits are relative to (1 if it is 0)."""
        return TreatmentLeaves.fit(self, np.ones(self.data.n, dtype=bool)).loss or 1.0

    def fit(self, here: BoolArray) -> LeafEstimates:
        """Return the estimates of a leaf with the samples ``here`` (n,)."""
        y, weight, members = self.y[here], self.weights[here], self.members[here]
        had, size = members.sum(axis=0), weight @ members
        mean = np.divide((weight * y) @ members, size, out=np.full(len(size), np.nan), where=had > 0)
        residuals = y - mean[self.given[here]]
        total = np.where(had >= self.n_treatment, weight.sum() * mean, np.inf)
        loss = float((weight * residuals) @ residuals)
        return LeafEstimates(mean, np.zeros((len(size), self.data.p)), total, loss)

    def cost(self, fitted: LeafEstimates, treatment: int | None = None) -> float:
        """Return what a leaf is charged with a treatment, the best one unless it is given."""
        total = fitted.total.min() if treatment is None else fitted.total[treatment]
        # 0 times infinity is not a number: what too few samples had is not prescribed for any mu.
        prescribed = self.mu * total if np.isfinite(total) else np.inf
        return float(prescribed + (1 - self.mu) * fitted.loss)

    def costs(self, had: FloatArray, size: FloatArray, total: FloatArray, squares: FloatArray) -> FloatArray:
        """Return what leaves with constant estimates are charged, by their sums over the samples of each treatment.

        Parameters
        ----------
        had, size, total, squares
            (k, m) sums of 1, and of 1, y and y^2 with weights.
        """
        n = size.sum(axis=-1, keepdims=True)
        mean = np.divide(total, size, out=np.full(total.shape, np.inf), where=had > 0)
        best = np.where(had >= self.n_treatment, n * mean, np.inf).min(axis=-1)
        known = np.where(had > 0, mean, 0.0)
        loss = np.maximum(0.0, squares - known * total).sum(axis=-1)
        prescribed = np.where(np.isfinite(best), self.mu * np.where(np.isfinite(best), best, 0.0), np.inf)
        charged: FloatArray = prescribed + (1 - self.mu) * loss
        return charged

    # ------------------------------------------------------------------ trees

    def value(self, tree: Tree) -> float:
        """Return what the leaves of a tree are charged with the treatments that they prescribe, by the definition."""
        z = leaves_of(tree, self.data.X) > 0
        return sum(
            self.cost(self.fit(z[:, leaf]), int(tree.leaf_value[leaf]))
            for leaf in np.flatnonzero(z.any(axis=0))
        )

    def with_estimates(self, tree: Tree, treatments: IntArray | None = None) -> Tree:
        """Fit the leaves of a tree.

        An empty leaf is as its closest ancestor with samples; a treatment that no sample of a leaf had is estimated as
        in the closest ancestor where enough samples had it, or at the root. Such an estimate is constant where its
        linear function would use a feature that the tree uses nowhere else: constraints on features hold for it too.

        Parameters
        ----------
        tree
            For scaled features.
        treatments
            (|L|,) what leaves prescribe, -1 for the best treatment; the best in all unless given.
        """
        passed, topology, m = tree.decision_path(self.data.X), tree.topology, len(self.data.classes)
        fits: dict[int, LeafEstimates] = {}

        def fit(node: int) -> LeafEstimates:
            if node not in fits:
                fits[node] = self.fit(passed[:, node])
            return fits[node]

        holding = [leaf for leaf in topology.leaves if passed[:, leaf].any()]
        used = (tree.w != 0).any(axis=0) | (np.array([fit(leaf).coefficients for leaf in holding]) != 0).any(
            axis=(0, 1)
        )
        outcome, slopes = np.zeros((topology.n_leaves, m)), np.zeros((topology.n_leaves, m, self.data.p))
        chosen = np.full(topology.n_leaves, -1) if treatments is None else np.array(treatments)
        for k, leaf in enumerate(topology.leaves):
            node = leaf
            while not passed[:, node].any():
                node = topology.parent(node)
            if chosen[k] < 0 or node != leaf:
                chosen[k] = int(fit(node).total.argmin())
            for t in range(m):
                at = node
                while at > 0 and np.isnan(fit(at).outcome[t]) | ((at != node) & (fit(at).total[t] == np.inf)):
                    at = topology.parent(at)
                found = fit(at)
                if at != leaf and (found.coefficients[t] != 0)[~used].any():
                    found = TreatmentLeaves.fit(self, passed[:, at])
                outcome[k, t], slopes[k, t] = found.outcome[t], found.coefficients[t]
        return replace(
            tree,
            classes=tuple(self.data.classes),
            leaf_value=chosen,
            outcomes=self.unit * outcome,
            outcome_w=self.unit * slopes if slopes.any() else None,
        )

    def pruned(self, tree: Tree, split_cost: FloatArray, N_min: int) -> Tree:
        """Take back splits that do not pay for themselves or leave a leaf without a treatment; fit the leaves.

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
                alone[t] = self.cost(self.fit(here)) if here.sum() >= N_min else np.inf
        return self.with_estimates(with_paying_splits(tree, split_cost, alone))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrescriptiveInstance(Instance):
    """A data set with its routing and its leaves.

    Attributes
    ----------
    routing
        How samples get to leaves.
    leaves
        What leaves estimate and prescribe.
    """

    routing: Routing
    leaves: TreatmentLeaves


@dataclass(frozen=True, eq=False)
class PrescriptionExpressions(RoutingExpressions):
    """Models whose binaries ``tau`` (|L|, m) say what leaves prescribe; ``predicted(t)`` is who gets treatment t."""

    def predicted(self, k: int) -> Expression:
        """Return the expression; it rests on products of assignment and prescription, 0 or 1 where these are."""
        name = f"predicted_{k}"
        if name not in self.m.variables:
            z, prescribed = self.routing.assignment(self.m), self.m["tau"][:, k]
            product = self.m.nonnegative(name, z.shape)
            self.m.add(f"{name}_in_leaf", product <= z)
            self.m.add(f"{name}_prescribed", product <= prescribed)
            self.m.add(f"{name}_both", product >= z + prescribed - 1)
        predicted: LinearExpr = self.m[name].sum(axis=1)[self.routing.group]
        return predicted

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        z, added = leaves_of(tree, self.routing.rows), super().encode(tree)
        for k in range(len(self.data.classes)):
            if f"predicted_{k}" in self.m.variables:
                added[f"predicted_{k}"] = z * (tree.leaf_value == k)
        return added
