"""A smooth model of a randomised tree: what it minimises and what it asks for, stated once for all that solve it.

Variables are blocks by name: ``a`` (|B|, p) and ``mu`` (|B|,) of the branch nodes, and those of the leaves.

Node t sends a sample left with the probability ``F(z) = 1 / (1 + exp(-gamma z))``, where ``z = a_t . x / p - mu_t``
over the p scaled features (Blanquero, Carrizosa, Molero-Rio, Romero Morales 2020). Arrays have one row per node, in
heap order, so that the nodes of a level are neighbours. One backward pass gives every gradient.

Penalties make trees sparse; their proximal operator gives exact zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.special import expit


@dataclass(frozen=True, eq=False)
class SoftRouting:
    """Samples on their paths through a tree.

    Attributes
    ----------
    gamma
        Steepness of the distribution function.
    left, right
        (|B|, n) probabilities of both sides; they sum to 1, and each is computed by itself, so that a tiny one is
        exact.
    reach
        By level, the (2^level, n) probability that a sample comes to each of its nodes; the last level are the leaves.
    """

    gamma: float
    left: FloatArray
    right: FloatArray
    reach: tuple[FloatArray, ...]

    @classmethod
    def of(cls, z: FloatArray, gamma: float) -> SoftRouting:
        """Route samples by their (|B|, n) arguments of the distribution function."""
        left, right = expit(gamma * z), expit(-gamma * z)
        reach = [np.ones((1, z.shape[1]))]
        while (first := len(reach[-1]) - 1) < len(z):
            here = slice(first, 2 * first + 1)
            below = np.empty((2 * len(reach[-1]), z.shape[1]))
            below[0::2], below[1::2] = reach[-1] * left[here], reach[-1] * right[here]
            reach.append(below)
        return cls(gamma, left, right, tuple(reach))

    @property
    def leaves(self) -> FloatArray:
        """(|L|, n) probability that a sample comes to each leaf."""
        return self.reach[-1]

    def slope(self, payload: FloatArray, weights: FloatArray | float = 1.0) -> FloatArray:
        """Return the (|B|, n) derivative in z of ``sum_i weights_i sum_t P_it payload_ti``, P the leaf probabilities.

        Parameters
        ----------
        payload
            (|L|, n) what each leaf pays for a sample.
        weights
            (n,) weight of each sample in the sum, or one for all.
        """
        found = np.empty_like(self.left)
        value = payload
        for reach in reversed(self.reach[:-1]):
            here = slice(len(reach) - 1, 2 * len(reach) - 1)
            left, right, to_left, to_right = self.left[here], self.right[here], value[0::2], value[1::2]
            found[here] = (weights * self.gamma) * reach * left * right * (to_left - to_right)
            value = left * to_left + right * to_right
        return found


@dataclass(frozen=True)
class RowNorms:
    """``lam_local sum_j ||row_j||_1 + lam_global sum_j ||row_j||_inf`` over the rows of the features.

    The row of feature j are its coefficients at all branch nodes and, of linear leaves, its slopes there.

    Attributes
    ----------
    blocks
        Names of the blocks (nodes, p) whose columns make the rows.
    lam_local, lam_global
        Penalties, at least 0: fewer features per split, and fewer in the whole tree.
    columns
        How many columns a feature has in each block, all features side by side, then again: its row has them all.
    """

    blocks: tuple[str, ...]
    lam_local: float = 0.0
    lam_global: float = 0.0
    columns: int = 1

    def stacked(self, block: FloatArray) -> FloatArray:
        """Return the coefficients of a block with one column per feature, the columns of a node one below the other."""
        return block.reshape(len(block) * self.columns, -1)

    def rows(self, point: Mapping[str, FloatArray]) -> FloatArray:
        """Return the (nodes, p) coefficients of all blocks, one below the other."""
        return np.vstack([self.stacked(point[name]) for name in self.blocks])

    def value(self, point: Mapping[str, FloatArray]) -> float:
        """Return both penalties together."""
        sizes = np.abs(self.rows(point))
        return float(self.lam_local * sizes.sum() + self.lam_global * sizes.max(axis=0).sum())

    def prox(
        self, point: Mapping[str, FloatArray], step: float, caps: Mapping[str, float]
    ) -> dict[str, FloatArray]:
        """Return the proximal point of the penalties and bounds, block by block.

        Parameters
        ----------
        point
            Where a gradient step leads.
        step
            Length of the step.
        caps
            By block, the largest size of its coefficients; infinite where they are free.
        """
        u = self.rows(point)
        sizes = [len(point[name]) * self.columns for name in self.blocks]
        cap = np.concatenate(
            [np.full(size, caps[name]) for name, size in zip(self.blocks, sizes, strict=True)]
        )
        found = prox_rows(u, step * self.lam_local, step * self.lam_global, cap)
        parts = zip(self.blocks, np.split(found, np.cumsum(sizes)[:-1]), strict=True)
        return {name: part.reshape(point[name].shape) for name, part in parts}


def prox_rows(
    u: FloatArray, local: float, glob: float, caps: FloatArray, floor: FloatArray | float = 0.0
) -> FloatArray:
    """Minimise ``||v - u||^2 / 2 + local ||v||_1 + glob sum_j ||v_.j||_inf`` with ``|v_t| <= caps_t``, exactly.

    Sizes shrink by ``local``; then those of a feature j above a level beta_j are cut to it, where ``sum_t (|u_t| -
    local - beta_j)_+ = glob`` over the t whose cap is above the level: what the l-infinity norm gains at the margin
    is then what the squares lose. It is 0 where all of the sum is at most ``glob``.

    Parameters
    ----------
    u
        (nodes, p) coefficients, one column per feature.
    local, glob
        Penalties, at least 0.
    caps
        (nodes,) largest sizes, above 0, maybe infinite.
    floor
        (p,) sizes up to which the l-infinity norm of a feature costs nothing: it has them elsewhere.
    """
    sizes = np.maximum(np.abs(u) - local, 0.0)
    if glob > 0:
        level = np.maximum(_levels(sizes, glob, caps), floor)
        sizes = np.minimum(sizes, level)
    found: FloatArray = np.sign(u) * np.minimum(sizes, caps[:, None])
    return found


def _levels(sizes: FloatArray, glob: float, caps: FloatArray) -> FloatArray:
    """Return (p,) levels: the smallest beta >= 0 with ``sum_{caps > beta} (sizes - beta)_+ <= glob``."""
    found, open_, low = np.zeros(sizes.shape[1]), np.ones(sizes.shape[1], dtype=bool), 0.0
    for cap in np.unique(caps):
        # Between the cap before and this one, nodes of smaller caps do not count.
        found = np.where(open_, np.maximum(_level(sizes[caps >= cap], glob), low), found)
        open_ &= found > cap
        if not open_.any():
            break
        low = float(cap)
    return found


def _level(sizes: FloatArray, glob: float) -> FloatArray:
    """Return the (p,) levels without caps, as in a projection on the l1 ball: 0 where the sum is at most ``glob``."""
    ordered = -np.sort(-sizes, axis=0)
    excess = np.cumsum(ordered, axis=0) - glob
    counts = np.arange(1, len(sizes) + 1)[:, None]
    last = np.maximum((ordered * counts > excess).sum(axis=0), 1) - 1
    found: FloatArray = np.maximum(excess[last, np.arange(sizes.shape[1])] / (last + 1), 0.0)
    return found


#: Values of the blocks of variables, by name.
Point = dict[str, FloatArray]


@dataclass(frozen=True)
class Block:
    """A block of variables with bounds, which may be infinite.

    Attributes
    ----------
    simplex
        Whether each row sums to 1, which linear constraints say too: methods that know bounds alone divide by the sum.
    """

    name: str
    shape: tuple[int, ...]
    lower: float
    upper: float
    simplex: bool = False


@dataclass(frozen=True, eq=False)
class Functional:
    """A functional of routed samples and leaves, with all it takes for its gradient.

    Attributes
    ----------
    value
        Its value.
    payload, weights
        (|L|, n) and (n,): to first order in the leaf probabilities P, it is ``sum_i weights_i sum_t P_it payload_ti``.
    leaves
        Its derivatives in the blocks of the leaves.
    """

    value: float
    payload: FloatArray
    weights: FloatArray | float
    leaves: Point


@dataclass(frozen=True, eq=False)
class Constraint:
    """``functional >= 0``, where the functional is smooth; the name is for messages."""

    name: str
    of: Callable[[SoftRouting, Point], Functional]


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """``lower <= sum(coefficients * block) <= upper`` for one block of the leaves."""

    name: str
    block: str
    coefficients: FloatArray
    lower: float
    upper: float


class RandomizedLoss(ABC):
    """What the samples pay at the leaves, and how the leaves are best for a given routing."""

    #: Weights of the samples (n,), of sum 1.
    weights: FloatArray
    #: Variables of the leaves.
    blocks: tuple[Block, ...]
    #: What is asked for.
    constraints: tuple[Constraint, ...] = ()
    linear: tuple[LinearConstraint, ...] = ()

    @abstractmethod
    def evaluate(self, routing: SoftRouting, leaves: Point) -> Functional:
        """Return the loss."""

    @abstractmethod
    def best(self, routing: SoftRouting) -> tuple[Point, Mapping[str, float]]:
        """Return leaves that solve the leaf problem of a routing, without penalties, exactly.

        Returns
        -------
        leaves, multipliers
            The leaves, and by the name of a constraint its multiplier, at least 0: with them the gradient of the loss
            minus the sum of multiplier times constraint is that of the optimal value (envelope theorem).
        """

    def completed(self, routing: SoftRouting, leaves: Point) -> tuple[Point, Mapping[str, float]]:  # noqa: ARG002
        """Return what :meth:`best` does, but keep those blocks of the leaves that ``leaves`` gives."""
        return self.best(routing)

    def penalised(self, routing: SoftRouting, point: Point, norms: RowNorms) -> Point:  # noqa: ARG002
        """Return the leaves nearer to what is best with penalties, for given splits; the rest of the point stays."""
        return point

    def balanced(self) -> RandomizedLoss:
        """Return a loss that is easier to descend first: no group of samples is so small that it is given up."""
        return self

    def relaxed(self) -> RandomizedLoss:
        """Return the loss without the constraints that make :meth:`best` follow the splits by leaps."""
        return self

    @abstractmethod
    def subset(self, rows: IntArray) -> RandomizedLoss:
        """Return the loss of some of the samples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothModel:
    """A randomised tree's objective, penalties and constraints.

    Attributes
    ----------
    X
        (n, p) scaled samples.
    depth
        Levels of branch nodes.
    gamma
        Steepness of the probabilities.
    loss
        What the leaves pay, with their variables and constraints.
    norms
        Penalties of the coefficients. They know how many columns a feature has, whose number divides the arguments.
    """

    X: FloatArray
    depth: int
    gamma: float
    loss: RandomizedLoss
    norms: RowNorms

    @property
    def n_columns(self) -> int:
        """Number of coefficients of a split."""
        return int(self.X.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features p, which divides the arguments of the probabilities."""
        return self.n_columns // self.norms.columns

    @property
    def branches(self) -> tuple[Block, ...]:
        """Variables of the branch nodes, within [-1, 1]."""
        n_branches = 2**self.depth - 1
        return (Block("a", (n_branches, self.n_columns), -1.0, 1.0), Block("mu", (n_branches,), -1.0, 1.0))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All variables: those of the branch nodes, then those of the leaves."""
        return (*self.branches, *self.loss.blocks)

    @property
    def linear(self) -> tuple[LinearConstraint, ...]:
        """Linear constraints."""
        return self.loss.linear

    @property
    def penalised(self) -> bool:
        """Whether a penalty is above 0."""
        return self.norms.lam_local > 0 or self.norms.lam_global > 0

    def at(self, gamma: float) -> SmoothModel:
        """Return the same model with another steepness."""
        return replace(self, gamma=gamma)

    def balanced(self) -> SmoothModel:
        """Return the same model with the loss that leads up to it."""
        return replace(self, loss=self.loss.balanced())

    def without_penalties(self) -> SmoothModel:
        """Return the same model without penalties."""
        return replace(self, norms=replace(self.norms, lam_local=0.0, lam_global=0.0))

    def subset(self, rows: IntArray) -> SmoothModel:
        """Return the same model for some of the samples."""
        return replace(self, X=self.X[rows], loss=self.loss.subset(rows))

    # What a point is worth

    def seen(self, point: Point) -> SmoothModel:  # noqa: ARG002
        """Return the model for what splits and leaves see of the samples at a point: their features, here."""
        return self

    def charge(self, point: Point) -> tuple[float, Point]:  # noqa: ARG002
        """Return what the splits cost besides loss and norms, with its gradient: nothing, here."""
        return 0.0, {}

    def route(self, point: Point) -> SoftRouting:
        """Route the samples."""
        seen = self.seen(point)
        return SoftRouting.of(
            point["a"] @ seen.X.T / self.n_features - point["mu"][:, None],
            self.gamma,
        )

    def with_best_leaves(self, point: Point) -> Point:
        """Return the point with the leaves that solve its leaf problem, without penalties."""
        return self.completed({block.name: point[block.name] for block in self.branches})

    def completed(self, point: Point) -> Point:
        """Return the point with what is best for its blocks in all others of the leaves."""
        seen = self.seen(point)
        leaves, _ = seen.loss.completed(seen.route(point), point)
        return {**point, **leaves}

    def penalised_leaves(self, point: Point) -> Point:
        """Return the point with leaves nearer to what is best with penalties; itself where they are left alone."""
        seen = self.seen(point)
        return seen.loss.penalised(seen.route(point), point, self.norms)

    def smooth_value(self, point: Point) -> tuple[float, Point]:
        """Return the loss without penalties, and its gradient by block."""
        seen = self.seen(point)
        routing = seen.route(point)
        value, gradient = self._gradient(seen, routing, seen.loss.evaluate(routing, point), point)
        return self._charged(point, value, gradient)

    def objective(self, point: Point) -> float:
        """Return the loss with penalties."""
        seen = self.seen(point)
        loss = seen.loss.evaluate(seen.route(point), point).value
        return loss + self.charge(point)[0] + self.norms.value(point)

    def reduced(self, point: Point) -> tuple[float, Point]:
        """Return the loss at the best leaves, without penalties, and its gradient in the blocks of the point.

        Where the leaf problem has constraints that no leaves satisfy, their violation is charged.

        Parameters
        ----------
        point
            The blocks of the branch nodes, and those of the leaves that are to stay.
        """
        seen = self.seen(point)
        routing = seen.route(point)
        leaves, multipliers = seen.loss.completed(routing, point)
        whole = {**point, **leaves}
        value, gradient = self._gradient(seen, routing, seen.loss.evaluate(routing, leaves), whole)
        for constraint in seen.loss.constraints:
            multiplier = multipliers.get(constraint.name, 0.0)
            if multiplier:
                own, slope = self._gradient(seen, routing, constraint.of(routing, leaves), whole)
                value -= multiplier * own
                gradient = {name: gradient[name] - multiplier * slope[name] for name in gradient}
        return self._charged(point, value, {name: gradient[name] for name in point})

    def _charged(self, point: Point, value: float, gradient: Point) -> tuple[float, Point]:
        charge, slopes = self.charge(point)
        return value + charge, {
            **gradient,
            **{name: gradient[name] + slope for name, slope in slopes.items()},
        }

    def constraint_values(self, point: Point) -> list[tuple[float, Point]]:
        """Return value and gradient of every smooth constraint."""
        seen = self.seen(point)
        routing = seen.route(point)
        return [
            self._gradient(seen, routing, constraint.of(routing, point), point)
            for constraint in seen.loss.constraints
        ]

    def violation(self, point: Point) -> float:
        """Return the largest violation of bounds and constraints."""
        worst = 0.0
        for block in self.blocks:
            values = point[block.name]
            worst = max(worst, float((block.lower - values).max()), float((values - block.upper).max()))
        for row in self.linear:
            value = float((row.coefficients * point[row.block]).sum())
            worst = max(worst, row.lower - value, value - row.upper)
        seen = self.seen(point)
        routing = seen.route(point)
        return max([worst, *(-constraint.of(routing, point).value for constraint in seen.loss.constraints)])

    def _gradient(
        self,
        seen: SmoothModel,
        routing: SoftRouting,
        functional: Functional,
        point: Point,  # noqa: ARG002
    ) -> tuple[float, Point]:
        """Return a functional with its gradient; ``point`` has the leaves that it was computed with."""
        slope = routing.slope(functional.payload, functional.weights)
        return functional.value, {
            "a": slope @ seen.X / self.n_features,
            "mu": -slope.sum(axis=1),
            **functional.leaves,
        }

    # Points to start from

    def random_point(self, rng: np.random.Generator) -> Point:
        """Draw coefficients in [-1, 1], and locations among the arguments that the samples have.

        Arguments have a spread of about ``1 / sqrt(p)``: a location drawn in [-1, 1] mostly lies outside of all
        samples, where the distribution function is flat and no method leaves it.
        """
        drawn = self._random_features(rng)
        a = rng.uniform(-1.0, 1.0, (2**self.depth - 1, self.n_columns))
        arguments = a @ self.seen(drawn).X.T / self.n_features
        mu = np.array([quantile(row, rng.uniform(*QUANTILES), self.loss.weights) for row in arguments])
        return self.with_best_leaves({"a": a, "mu": np.clip(mu, -1.0, 1.0), **drawn})

    def _random_features(self, rng: np.random.Generator) -> Point:  # noqa: ARG002
        """Draw what moves the features that splits and leaves see: nothing, here."""
        return {}


#: Between which quantiles of the arguments a random location lies.
QUANTILES = (0.2, 0.8)


def quantile(values: FloatArray, share: float, weights: FloatArray) -> float:
    """Return where a share of the weight lies below, halfway to the next value: repeated samples are weighted ones."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    k = min(int(np.searchsorted(np.cumsum(weights[order]), share)), len(ordered) - 1)
    above = ordered[np.searchsorted(ordered, ordered[k], side="right") :]
    return float((ordered[k] + above[0]) / 2) if len(above) else float(ordered[k])


def uniform(weights: Sequence[float] | FloatArray) -> FloatArray:
    """Return weights of sum 1."""
    given = np.asarray(weights, dtype=np.float64)
    return np.asarray(given / given.sum(), dtype=np.float64)
