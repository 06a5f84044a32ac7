"""A smooth model of a randomised tree: what it minimises and what it asks for, stated once for all that solve it.

Variables are blocks by name: ``a`` (|B|, p) and ``mu`` (|B|,) of the branch nodes, and those of the leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.smooth.norms import RowNorms
from mipforest.smooth.routing import Routing

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
class Part:
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
    """``functional >= 0``, where the functional is smooth; the name is told to people."""

    name: str
    of: Callable[[Routing, Point], Part]


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """``lower <= sum(coefficients * block) <= upper`` for one block of the leaves."""

    name: str
    block: str
    coefficients: FloatArray
    lower: float
    upper: float


class LeafLoss(ABC):
    """What the samples pay at the leaves, and how the leaves are best for a given routing."""

    #: Weights of the samples (n,), of sum 1.
    weights: FloatArray
    #: Variables of the leaves.
    blocks: tuple[Block, ...]
    #: What is asked for.
    constraints: tuple[Constraint, ...] = ()
    linear: tuple[LinearConstraint, ...] = ()

    @abstractmethod
    def part(self, routing: Routing, leaves: Point) -> Part:
        """Return the loss."""

    @abstractmethod
    def best(self, routing: Routing) -> tuple[Point, Mapping[str, float]]:
        """Return leaves that solve the leaf problem of a routing, without penalties, exactly.

        Returns
        -------
        leaves, multipliers
            The leaves, and by the name of a constraint its multiplier, at least 0: with them the gradient of the loss
            minus the sum of multiplier times constraint is that of the optimal value (envelope theorem).
        """

    def settled(self, routing: Routing, leaves: Point) -> tuple[Point, Mapping[str, float]]:  # noqa: ARG002
        """Return what :meth:`best` does, but keep those blocks of the leaves that ``leaves`` gives."""
        return self.best(routing)

    def penalised(self, routing: Routing, point: Point, norms: RowNorms) -> Point:  # noqa: ARG002
        """Return the leaves nearer to what is best with penalties, for given splits; the rest of the point stays."""
        return point

    def balanced(self) -> LeafLoss:
        """Return a loss that is easier to descend first: no group of samples is so small that it is given up."""
        return self

    def relaxed(self) -> LeafLoss:
        """Return the loss without the constraints that make :meth:`best` follow the splits by leaps."""
        return self

    @abstractmethod
    def take(self, rows: IntArray) -> LeafLoss:
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
    loss: LeafLoss
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

    def with_loss(self, loss: LeafLoss) -> SmoothModel:
        """Return the same model with another loss."""
        return replace(self, loss=loss)

    def take(self, rows: IntArray) -> SmoothModel:
        """Return the same model for some of the samples."""
        return replace(self, X=self.X[rows], loss=self.loss.take(rows))

    # What a point is worth

    def seen(self, point: Point) -> SmoothModel:  # noqa: ARG002
        """Return the model for what splits and leaves see of the samples at a point: their features, here."""
        return self

    def charge(self, point: Point) -> tuple[float, Point]:  # noqa: ARG002
        """Return what the splits cost beside loss and norms, with its gradient: nothing, here."""
        return 0.0, {}

    def route(self, point: Point) -> Routing:
        """Route the samples."""
        seen = self.seen(point)
        return Routing.of(
            point["a"] @ seen.X.T / self.n_features - point["mu"][:, None],
            self.gamma,
        )

    def with_best_leaves(self, point: Point) -> Point:
        """Return the point with the leaves that solve its leaf problem, without penalties."""
        return self.settled({block.name: point[block.name] for block in self.branches})

    def settled(self, point: Point) -> Point:
        """Return the point with what is best for its blocks in all others of the leaves."""
        seen = self.seen(point)
        leaves, _ = seen.loss.settled(seen.route(point), point)
        return {**point, **leaves}

    def penalised_leaves(self, point: Point) -> Point:
        """Return the point with leaves nearer to what is best with penalties; itself where they are left alone."""
        seen = self.seen(point)
        return seen.loss.penalised(seen.route(point), point, self.norms)

    def smooth_value(self, point: Point) -> tuple[float, Point]:
        """Return the loss without penalties, and its gradient by block."""
        seen = self.seen(point)
        routing = seen.route(point)
        value, gradient = self._gradient(seen, routing, seen.loss.part(routing, point), point)
        return self._charged(point, value, gradient)

    def objective(self, point: Point) -> float:
        """Return the loss with penalties."""
        seen = self.seen(point)
        loss = seen.loss.part(seen.route(point), point).value
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
        leaves, multipliers = seen.loss.settled(routing, point)
        whole = {**point, **leaves}
        value, gradient = self._gradient(seen, routing, seen.loss.part(routing, leaves), whole)
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
        routing: Routing,
        part: Part,
        point: Point,  # noqa: ARG002
    ) -> tuple[float, Point]:
        """Return a functional with its gradient; ``point`` has the leaves that it was computed with."""
        slope = routing.slope(part.payload, part.weights)
        return part.value, {"a": slope @ seen.X / self.n_features, "mu": -slope.sum(axis=1), **part.leaves}

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
