"""What samples pay at the leaves of a randomised classification tree: expected costs of the classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog

from mipforest.arrays import FloatArray, IntArray
from mipforest.smooth.model import (
    Block,
    Constraint,
    LeafLoss,
    LinearConstraint,
    Part,
    Point,
    Routing,
    uniform,
)

#: What a violated rate is charged, in largest costs of an error: more than any rate can save.
RATE_CHARGE = 100.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpectedCost(LeafLoss):
    """Expected cost of the classes that leaves predict at random: ``sum_i w_i sum_t P_it sum_k W[y_i, k] C_tk``.

    Attributes
    ----------
    y
        (n,) class numbers.
    weights
        (n,) weights of the samples, of sum 1.
    costs
        (K, K) cost W of predicting the class of the column for a sample of the class of the row.
    n_leaves
        Number of leaves.
    coverage
        Whether every class must have leaves whose probabilities of it sum to 1 at least.
    rates
        By class, the share of its samples that must be expected to be predicted right.
    """

    y: IntArray
    weights: FloatArray
    costs: FloatArray
    n_leaves: int
    coverage: bool = True
    rates: Mapping[int, float] = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """Probabilities C of the classes in the leaves."""
        return (Block("C", (self.n_leaves, len(self.costs)), 0.0, 1.0, simplex=True),)

    @property
    def linear(self) -> tuple[LinearConstraint, ...]:  # type: ignore[override]
        """Probabilities of a leaf sum to 1; those of a class, over the leaves, to 1 at least."""
        leaves, classes = np.eye(self.n_leaves), np.eye(len(self.costs))
        rows = [
            LinearConstraint(f"leaf {t}", "C", np.outer(leaves[t], np.ones(len(classes))), 1.0, 1.0)
            for t in range(self.n_leaves)
        ]
        if self.coverage:
            rows += [
                LinearConstraint(f"class {k}", "C", np.outer(np.ones(self.n_leaves), classes[k]), 1.0, np.inf)
                for k in range(len(classes))
            ]
        return tuple(rows)

    @cached_property
    def members(self) -> FloatArray:
        """(n, K) weight of each sample in its class."""
        return np.asarray(np.eye(len(self.costs))[self.y] * self.weights[:, None], dtype=np.float64)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:  # type: ignore[override]
        """The expected rates of right predictions, class by class."""
        return tuple(Constraint(f"rate of class {k}", self._rate(k, rho)) for k, rho in self.rates.items())

    def _rate(self, k: int, rho: float) -> Callable[[Routing, Point], Part]:
        weights = self.members[:, k] / self.members[:, k].sum()

        def of(routing: Routing, leaves: Point) -> Part:
            payload = np.broadcast_to(leaves["C"][:, k, None], routing.leaves.shape)
            reached = routing.leaves @ weights
            slope = np.zeros_like(leaves["C"])
            slope[:, k] = reached
            return Part(float(reached @ leaves["C"][:, k]) - rho, payload, weights, {"C": slope})

        return of

    def part(self, routing: Routing, leaves: Point) -> Part:
        """Return the expected cost; see :class:`~mipforest.smooth.model.LeafLoss`."""
        slope = (routing.leaves @ self.members) @ self.costs
        payload = (leaves["C"] @ self.costs.T)[:, self.y]
        return Part(float((slope * leaves["C"]).sum()), payload, self.weights, {"C": slope})

    def best(self, routing: Routing) -> tuple[Point, Mapping[str, float]]:
        """Return the cheapest classes of the leaves: an assignment problem, or with rates a linear programme."""
        shares = routing.leaves @ self.members
        cost = shares @ self.costs
        C = self._assigned(cost)
        mass = self.members.sum(axis=0)
        if all((shares[:, k] * C[:, k]).sum() >= rho * mass[k] for k, rho in self.rates.items()):
            return {"C": C}, {}
        return self._with_rates(cost, shares / mass)

    def _assigned(self, cost: FloatArray) -> FloatArray:
        """Return the cheapest class of each leaf; with coverage, such that every class has a leaf."""
        n_leaves, K = cost.shape
        label = cost.argmin(axis=1)
        if self.coverage and len(np.unique(label)) < K:
            free = np.repeat(cost.min(axis=1, keepdims=True), n_leaves - K, axis=1)
            _, slot = linear_sum_assignment(np.hstack([cost, free]))
            label = np.where(slot < K, slot, label)
        return np.asarray(np.eye(K)[label], dtype=np.float64)

    def _with_rates(self, cost: FloatArray, shares: FloatArray) -> tuple[Point, Mapping[str, float]]:
        """Solve the linear programme in C, with a charged shortfall for each rate, so that there is a solution."""
        n_leaves, K = cost.shape
        n_rates, charge = len(self.rates), RATE_CHARGE * float(self.costs.max())
        at_most = np.zeros((n_rates, cost.size + n_rates))
        for row, k in enumerate(self.rates):
            at_most[row, k : cost.size : K] = -shares[:, k]
            at_most[row, cost.size + row] = -1.0
        limits = -np.array(list(self.rates.values()))
        equal = np.array([row.coefficients.ravel() for row in self.linear if row.upper == 1.0])
        if self.coverage:
            cover = np.array([row.coefficients.ravel() for row in self.linear if row.upper > 1.0])
            at_most = np.vstack([at_most, np.hstack([-cover, np.zeros((K, n_rates))])])
            limits = np.concatenate([limits, -np.ones(K)])
        solved = linprog(
            np.concatenate([cost.ravel(), np.full(n_rates, charge)]),
            A_ub=at_most,
            b_ub=limits,
            A_eq=np.hstack([equal, np.zeros((n_leaves, n_rates))]),
            b_eq=np.ones(n_leaves),
            bounds=(0.0, None),
            method="highs",
        )
        C = np.clip(solved.x[: cost.size].reshape(cost.shape), 0.0, 1.0)
        names = [constraint.name for constraint in self.constraints]
        multipliers = -solved.ineqlin.marginals[:n_rates]
        return {"C": C / C.sum(axis=1, keepdims=True)}, dict(zip(names, multipliers.tolist(), strict=True))

    def balanced(self) -> ExpectedCost:
        """Return the loss with classes of equal weight, without rates.

        A descent from random splits otherwise soon sends all samples where the largest class is predicted, and stays.
        """
        mass = self.members.sum(axis=0)[self.y]
        return replace(self, weights=uniform(self.weights / mass), rates={})

    def relaxed(self) -> ExpectedCost:
        """Return the loss without rates: with them the best classes mix, and leap where a rate becomes tight."""
        return replace(self, rates={})

    def take(self, rows: IntArray) -> ExpectedCost:
        """Return the loss of some of the samples."""
        weights = self.weights[rows]
        return replace(self, y=self.y[rows], weights=weights / weights.sum())
