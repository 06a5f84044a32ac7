"""Smooth models of trees that see curves: means over a few intervals, which are variables, too."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.smooth.curves import Curves
from mipforest.smooth.model import Block, LinearConstraint, Part, Point, SmoothModel
from mipforest.smooth.routing import Routing
from mipforest.smooth.squared_error import SquaredError


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionalModel(SmoothModel):
    """A smooth model whose splits and leaves see means of J curves over H intervals of their domain.

    The block ``gaps`` (1, 2 H + 1) parts the domain in turn into what lies outside and inside of an interval: lengths
    of at least 0 that sum to 1, so that the ends are in order whatever the lengths are. Coefficients are those of the H
    means, interval by interval, and the row of a curve in the norms has them all. ``X`` holds the values of all curves.

    Attributes
    ----------
    loss
        That of the means, for any intervals.
    curves
        What the columns of ``X`` are.
    lam_length
        Penalty of the length of the intervals, at least 0.
    """

    loss: SquaredError
    curves: Curves
    lam_length: float = 0.0

    @property
    def n_intervals(self) -> int:
        """H."""
        return self.norms.columns

    @property
    def n_columns(self) -> int:
        """Coefficients of a split: one for each curve and interval."""
        return self.n_intervals * len(self.curves.curves)

    @property
    def branches(self) -> tuple[Block, ...]:
        """Variables of the branch nodes, and the lengths that part the domain."""
        return (*super().branches, Block("gaps", (1, 2 * self.n_intervals + 1), 0.0, 1.0, simplex=True))

    @property
    def linear(self) -> tuple[LinearConstraint, ...]:
        """The lengths sum to 1."""
        whole = LinearConstraint("domain", "gaps", np.ones((1, 2 * self.n_intervals + 1)), 1.0, 1.0)
        return (*super().linear, whole)

    def seen(self, point: Point) -> SmoothModel:
        """Return the model for the means over a point's intervals."""
        means = self.curves.means(self.X, intervals_of(point))
        loss = replace(self.loss, X=means)
        return SmoothModel(X=means, depth=self.depth, gamma=self.gamma, loss=loss, norms=self.norms)

    def charge(self, point: Point) -> tuple[float, Point]:
        """Return the penalty of the intervals' length."""
        inside = np.zeros_like(point["gaps"])
        inside[0, 1::2] = self.lam_length
        return float((inside * point["gaps"]).sum()), {"gaps": inside}

    def _gradient(self, seen: SmoothModel, routing: Routing, part: Part, point: Point) -> tuple[float, Point]:
        value, gradient = super()._gradient(seen, routing, part, point)
        slope = routing.slope(part.payload, part.weights)
        in_means = slope.T @ point["a"] / seen.n_features + (routing.leaves * part.weights).T @ point["at"]
        ends = self.curves.in_ends(self.X, intervals_of(point), in_means)
        # A length moves all ends behind it.
        return value, {**gradient, "gaps": np.append(np.cumsum(ends[::-1])[::-1], 0.0)[None, :]}

    def _random_features(self, rng: np.random.Generator) -> Point:
        return {"gaps": rng.dirichlet(np.ones(2 * self.n_intervals + 1))[None, :]}


def intervals_of(point: Point) -> FloatArray:
    """Return the (H, 2) intervals of a point, in shares 0 to 1 of the domain."""
    ends = np.cumsum(point["gaps"][0])[:-1]
    found: FloatArray = np.clip(ends, 0.0, 1.0).reshape(-1, 2)
    return found


def gaps_of(intervals: FloatArray) -> FloatArray:
    """Return the (1, 2 H + 1) lengths that part the domain, of (H, 2) intervals in order."""
    return np.diff(np.concatenate([[0.0], intervals.ravel(), [1.0]]))[None, :]
