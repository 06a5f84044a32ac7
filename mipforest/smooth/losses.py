"""Losses at the leaves of a randomised tree: expected costs of classes, or squared errors of linear leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment, linprog, lsq_linear

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.smooth.model import (
    Block,
    Constraint,
    Functional,
    LinearConstraint,
    Point,
    RandomizedLoss,
    RowNorms,
    SoftRouting,
    prox_rows,
    uniform,
)

#: What a violated rate is charged, in largest costs of an error: more than any rate can save.
RATE_CHARGE = 100.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpectedCost(RandomizedLoss):
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

    def _rate(self, k: int, rho: float) -> Callable[[SoftRouting, Point], Functional]:
        weights = self.members[:, k] / self.members[:, k].sum()

        def of(routing: SoftRouting, leaves: Point) -> Functional:
            payload = np.broadcast_to(leaves["C"][:, k, None], routing.leaves.shape)
            reached = routing.leaves @ weights
            slope = np.zeros_like(leaves["C"])
            slope[:, k] = reached
            return Functional(float(reached @ leaves["C"][:, k]) - rho, payload, weights, {"C": slope})

        return of

    def evaluate(self, routing: SoftRouting, leaves: Point) -> Functional:
        """Return the expected cost; see :class:`~mipforest.smooth.model.RandomizedLoss`."""
        slope = (routing.leaves @ self.members) @ self.costs
        payload = (leaves["C"] @ self.costs.T)[:, self.y]
        return Functional(float((slope * leaves["C"]).sum()), payload, self.weights, {"C": slope})

    def best(self, routing: SoftRouting) -> tuple[Point, Mapping[str, float]]:
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

    def subset(self, rows: IntArray) -> ExpectedCost:
        """Return the loss of some of the samples."""
        weights = self.weights[rows]
        return replace(self, y=self.y[rows], weights=weights / weights.sum())


#: Most proximal steps for the slopes of the leaves, and their largest change at the end, as a share of the largest.
LEAF_STEPS, LEAF_CHANGE = 100, 1e-5

#: Products of two leaf probabilities up to this do not count: far below what a double keeps of a sum of ones.
NEGLIGIBLE = 1e-20

#: Share of samples, over all pairs of leaves, from which on pairs are not taken one by one; entries of one product.
MANY_SHARED, ENTRIES_AT_ONCE = 0.2, 4_000_000


@dataclass(frozen=True, eq=False)
class GroupLimit:
    """What is asked for a group of samples.

    Attributes
    ----------
    kind
        ``mean``: the mean prediction of the group may differ from that of all by at most the limit; ``error``: its mean
        squared error from that of all; ``cost``: its mean squared error may be at most the limit.
    group
        (n,) who is in the group.
    limit
        At least 0.
    """

    kind: str
    group: BoolArray
    limit: float


@dataclass(frozen=True, eq=False, kw_only=True)
class SquaredError(RandomizedLoss):
    """Squared error of linear leaves ``phi_it = at_t . x_i - mut_t``: ``sum_i w_i (sum_t P_it phi_it - y_i)^2``.

    A ridge ``ridge ||(at, mut)||^2`` keeps leaves determined that few samples reach.

    Attributes
    ----------
    X, y, weights
        (n, p) samples, (n,) targets, (n,) weights of sum 1.
    n_leaves
        Number of leaves.
    ridge
        At least 0.
    bound
        Largest size of a slope or an intercept, maybe infinite.
    asked
        What is asked for a group of samples.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray
    n_leaves: int
    ridge: float = 0.0
    bound: float = np.inf
    asked: GroupLimit | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """Slopes and intercepts of the leaves."""
        p = self.X.shape[1]
        return (
            Block("at", (self.n_leaves, p), -self.bound, self.bound),
            Block("mut", (self.n_leaves,), -self.bound, self.bound),
        )

    @cached_property
    def _extended(self) -> FloatArray:
        """(n, p + 1) samples with the constant -1 of the intercepts."""
        return np.column_stack([self.X, np.full(len(self.X), -1.0)])

    def predictions(self, routing: SoftRouting, leaves: Point) -> tuple[FloatArray, FloatArray]:
        """Return (|L|, n) what the leaves predict, and (n,) the predictions of the tree."""
        phi = leaves["at"] @ self.X.T - leaves["mut"][:, None]
        return phi, (routing.leaves * phi).sum(axis=0)

    def _functional(
        self, routing: SoftRouting, value: float, phi: FloatArray, slope: FloatArray
    ) -> Functional:
        """Return a functional of the predictions by its derivative (n,) in them."""
        charged = routing.leaves * slope
        return Functional(value, phi, slope, {"at": charged @ self.X, "mut": -charged.sum(axis=1)})

    def evaluate(self, routing: SoftRouting, leaves: Point) -> Functional:
        """Return the squared error with the ridge; see :class:`~mipforest.smooth.model.RandomizedLoss`."""
        phi, predicted = self.predictions(routing, leaves)
        error = predicted - self.y
        ridge = self.ridge * sum(float((leaves[name] ** 2).sum()) for name in ("at", "mut"))
        own = self._functional(routing, float(self.weights @ error**2) + ridge, phi, 2 * self.weights * error)
        slopes = {name: own.leaves[name] + 2 * self.ridge * leaves[name] for name in ("at", "mut")}
        return replace(own, leaves=slopes)

    @cached_property
    def _member(self) -> FloatArray:
        """(n,) weight of each sample in the means of the group."""
        assert self.asked is not None
        return uniform(np.where(self.asked.group, self.weights, 0.0))

    @cached_property
    def _mean_difference(self) -> FloatArray:
        """(n,) what a number of each sample is multiplied with in the difference of its means, group less all."""
        return self._member - self.weights

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:  # type: ignore[override]
        """What is asked for the group: at most so much, and where means or errors are alike, at least so little."""
        if self.asked is None:
            return ()
        if self.asked.kind == "cost":
            return (Constraint("error of the group", self._error_within(1.0, self._member)),)
        within = self._mean_within if self.asked.kind == "mean" else self._error_within
        signs = (("group too high", 1.0), ("group too low", -1.0))
        return tuple(Constraint(name, within(sign, self._mean_difference)) for name, sign in signs)

    def _mean_within(self, sign: float, weights: FloatArray) -> Callable[[SoftRouting, Point], Functional]:
        """Return ``limit - sign * sum_i weights_i phi_i``."""

        def of(routing: SoftRouting, leaves: Point) -> Functional:
            assert self.asked is not None
            phi, predicted = self.predictions(routing, leaves)
            return self._functional(
                routing, self.asked.limit - sign * float(weights @ predicted), phi, -sign * weights
            )

        return of

    def _error_within(self, sign: float, weights: FloatArray) -> Callable[[SoftRouting, Point], Functional]:
        """Return ``limit - sign * sum_i weights_i (phi_i - y_i)^2``."""

        def of(routing: SoftRouting, leaves: Point) -> Functional:
            assert self.asked is not None
            phi, predicted = self.predictions(routing, leaves)
            error = predicted - self.y
            value = self.asked.limit - sign * float(weights @ error**2)
            return self._functional(routing, value, phi, -2 * sign * weights * error)

        return of

    def best(self, routing: SoftRouting) -> tuple[Point, Mapping[str, float]]:
        """Return the leaves of least squares, for fixed splits a linear regression on ``P_it (x_i, -1)``.

        A limit of the group's mean is kept: it is linear in the leaves. Those of errors are not (:meth:`relaxed`).
        """
        P = routing.leaves
        gram, right = self._normal_equations(P)
        apart = None if not self._limits_mean else ((P * self._mean_difference) @ self._extended).ravel()
        flat, multipliers = self._solved(gram, right, apart)
        table = flat.reshape(self.n_leaves, -1)
        return {"at": table[:, :-1].copy(), "mut": table[:, -1].copy()}, multipliers

    def completed(self, routing: SoftRouting, leaves: Point) -> tuple[Point, Mapping[str, float]]:
        """Return the intercepts of least squares for given slopes, or all leaves where no slopes are given."""
        if "at" not in leaves:
            return self.best(routing)
        P = routing.leaves
        rest = self.y - (P * (leaves["at"] @ self.X.T)).sum(axis=0)
        charged = P * self.weights
        apart = None if not self._limits_mean else -(P @ self._mean_difference)
        fixed = 0.0 if apart is None else float(self._mean_difference @ (self.y - rest))
        mut, multipliers = self._solved(charged @ P.T, -(charged @ rest), apart, fixed)
        return {"at": leaves["at"], "mut": mut}, multipliers

    def penalised(self, routing: SoftRouting, point: Point, norms: RowNorms) -> Point:
        """Return the point with the slopes that are best with penalties, by accelerated proximal steps.

        The problem is convex, and as small as the leaves, however many samples there are. With a limit of the mean it
        is left alone.
        """
        if self.asked is not None:
            return point
        m = self._extended.shape[1]
        gram, right = self._normal_equations(routing.leaves)
        gram[np.diag_indices_from(gram)] += self.ridge
        constant = np.arange(self.n_leaves) * m + m - 1
        slopes = np.setdiff1d(np.arange(len(gram)), constant)
        # Intercepts are in no norm: they are solved for.
        inverse = np.linalg.pinv(gram[np.ix_(constant, constant)], hermitian=True)
        across = gram[np.ix_(slopes, constant)] @ inverse
        G = gram[np.ix_(slopes, slopes)] - across @ gram[np.ix_(constant, slopes)]
        r = right[slopes] - across @ right[constant]
        length = 0.5 / max(float(np.linalg.eigvalsh(G)[-1]), np.finfo(float).tiny)
        at = ahead = norms.stacked(point["at"])
        floor, caps = np.abs(norms.stacked(point["a"])).max(axis=0), np.full(len(at), self.bound)
        local, glob, shape = length * norms.lam_local, length * norms.lam_global, at.shape
        pace = 1.0
        for _ in range(LEAF_STEPS):
            pull = (G @ ahead.ravel() - r).reshape(shape)
            new = prox_rows(ahead - 2 * length * pull, local, glob, caps, floor)
            change = new - at
            if float(((ahead - new) * change).sum()) > 0:
                pace = 1.0  # the momentum points uphill
            following = (1 + np.sqrt(1 + 4 * pace**2)) / 2
            ahead, at, pace = new + (pace - 1) / following * change, new, following
            if np.abs(change).max() <= LEAF_CHANGE * max(np.abs(at).max(), LEAF_CHANGE):
                break
        return {**point, "at": at.reshape(point["at"].shape)}

    @property
    def _limits_mean(self) -> bool:
        return self.asked is not None and self.asked.kind == "mean"

    def _solved(
        self, gram: FloatArray, right: FloatArray, apart: FloatArray | None, fixed: float = 0.0
    ) -> tuple[FloatArray, Mapping[str, float]]:
        """Minimise ``v' gram v - 2 right . v`` with the ridge, and keep ``|fixed + apart . v|`` within the limit."""
        gram[np.diag_indices_from(gram)] += self.ridge
        if np.isfinite(self.bound):
            return _bounded(gram, right, self.bound), {}
        solve = _solver(gram)
        found = solve(right)
        if apart is None or self.asked is None:
            return found, {}
        gap, moved = fixed + float(apart @ found), solve(apart)
        excess, curved = abs(gap) - self.asked.limit, float(apart @ moved)
        if excess <= 0 or curved <= 0:
            return found, {}
        name = self.constraints[0 if gap > 0 else 1].name
        return found - np.sign(gap) * excess / curved * moved, {name: 2 * excess / curved}

    def _normal_equations(self, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Gram matrix and the right-hand side; most pairs of leaves have few samples in common, in the end.

        Where they have many, one product for a number of samples at a time is several times as fast.
        """
        Z, m = self._extended, self._extended.shape[1]
        gram = np.zeros((self.n_leaves * m, self.n_leaves * m))
        right = ((P * (self.weights * self.y)) @ Z).ravel()
        reached = (P > NEGLIGIBLE).astype(np.float32)
        if self.n_leaves > 1 and (reached @ reached.T).sum() > MANY_SHARED * P.shape[1] * self.n_leaves**2:
            root = np.sqrt(self.weights) * P
            at_once = max(1, ENTRIES_AT_ONCE // len(gram))
            for first in range(0, P.shape[1], at_once):
                some = slice(first, first + at_once)
                rows = (root[:, some].T[:, :, None] * Z[some][:, None, :]).reshape(-1, len(gram))
                gram += rows.T @ rows
            return gram, right
        for t in range(self.n_leaves):
            for u in range(t + 1):
                both = self.weights * P[t] * P[u]
                common = np.flatnonzero(both > NEGLIGIBLE)
                rows, charge = (Z, both) if len(common) == len(both) else (Z[common], both[common])
                block = (rows * charge[:, None]).T @ rows
                gram[t * m : (t + 1) * m, u * m : (u + 1) * m] = block
                gram[u * m : (u + 1) * m, t * m : (t + 1) * m] = block.T
        return gram, right

    def relaxed(self) -> SquaredError:
        """Return the loss without limits of errors, which are no linear constraints of the leaves."""
        return self if self.asked is None or self.asked.kind == "mean" else replace(self, asked=None)

    def subset(self, rows: IntArray) -> SquaredError:
        """Return the loss of some of the samples."""
        weights = self.weights[rows]
        asked = None if self.asked is None else replace(self.asked, group=self.asked.group[rows])
        return replace(self, X=self.X[rows], y=self.y[rows], weights=weights / weights.sum(), asked=asked)


def _solver(gram: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return what solves systems with a Gram matrix: by Cholesky factors, or of least norm where it is singular."""
    try:
        factor = cho_factor(gram)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(gram, hermitian=True)
        return lambda right: inverse @ right
    return lambda right: np.asarray(cho_solve(factor, right), dtype=np.float64)


def _bounded(gram: FloatArray, right: FloatArray, bound: float) -> FloatArray:
    """Minimise ``v' gram v / 2 - right . v`` with ``|v| <= bound``."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(values) * np.finfo(float).eps * max(values.max(), 1.0)
    root = np.sqrt(values[kept])
    factor = vectors[:, kept].T * root[:, None]
    found = lsq_linear(factor, (vectors[:, kept].T @ right) / root, (-bound, bound), tol=1e-12)
    return np.asarray(found.x, dtype=np.float64)
