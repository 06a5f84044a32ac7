r"""S-ORRT-FD: sparse optimal randomised regression trees for functional predictors.

Source: C. Molero-Rio, PhD thesis, University of Seville 2022, chapter 5.

Predictors are J curves on a domain that is rescaled to [0, 1], numbers being constant curves. The coefficients of
:mod:`formulations.sorrt` become functions that are constant on each of H intervals
:math:`[s_{2h-1}, s_{2h}]`, the same for all curves and nodes, and 0 elsewhere. What they see of a curve is its mean
there:

.. math::

    m_{ijh}(s) &= \frac{1}{s_{2h} - s_{2h-1}} \int_{s_{2h-1}}^{s_{2h}} x_{ij}(u)\,du \\
    p_{it} &= F\Bigl(\tfrac1J \sum_{j,h} a_{jth}\, m_{ijh}(s) - \mu_t\Bigr), \qquad
    \varphi_{it} = \sum_{j,h} \tilde a_{jth}\, m_{ijh}(s) - \tilde\mu_t \\
    \min\; & \tfrac1n \sum_i (\varphi_i - y_i)^2
      + \lambda^L \sum_j \lVert (a_{j\cdot\cdot}, \tilde a_{j\cdot\cdot}) \rVert_1
      + \lambda^G \sum_j \lVert (a_{j\cdot\cdot}, \tilde a_{j\cdot\cdot}) \rVert_\infty
      + \lambda^I \sum_h (s_{2h} - s_{2h-1}) + r \lVert (\tilde a, \tilde\mu) \rVert^2 \\
    & 0 \le s_1 \le s_2 \le \dots \le s_{2H} \le 1, \qquad a, \mu \in [-1, 1]

Between the points where it is measured, a curve is a cubic spline, or straight lines. It is scaled to [0, 1] as a
whole, by the least and greatest value of all its points. The ends s are variables like all others: the model moves them
by their gradient. The l1 norms and the ridge r are not in the thesis.

A spline is a linear function of the values of its curve; its mean over an interval is the difference of its
antiderivative at both ends by the length, and the derivatives of the mean in the ends follow from its values there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline

from formulations.sorrt import SOrrt
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.errors import some_of
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.smooth.formulation import SmoothInstance
from mipforest.smooth.losses import SquaredError
from mipforest.smooth.model import (
    Block,
    Functional,
    LinearConstraint,
    Point,
    RowNorms,
    SmoothModel,
    SoftRouting,
)
from mipforest.trees import FunctionalTree, Topology, Tree
from mipforest.trees.randomized import Curve

#: Degree of the pieces of a curve.
_DEGREES = {"cubic": 3, "linear": 1}


@dataclass(frozen=True, kw_only=True)
class SOrrtFd(SOrrt):
    """Sparse optimal randomised regression tree that looks at a few intervals of curves.

    Parameters
    ----------
    intervals
        Number of intervals, H.
    lam_length
        Penalty of the length of the intervals, as shares of the domain, for scaled targets.
    pattern
        What the names of a curve's features look like, ``{at}`` for the place and ``{curve}`` for its name; empty for
        the first of ``{curve}@{at}``, ``{at}``, ``{curve}{at}`` that two features have. Other features are numbers.
    interpolation
        What a curve is between its points.
    ridge, and all others
        As for :class:`formulations.sorrt.SOrrt`.
    """

    name = "s-orrt-fd"
    summary = "randomised regression tree of curves: looks at a few intervals of them, which it learns"
    source = "Molero-Rio 2022, PhD thesis, chapter 5"

    # Means of neighbouring intervals are much alike: their differences need large coefficients.
    ridge: float = parameter(1e-6, "penalty of the squares of slopes and intercepts", at_least=0)
    intervals: int = parameter(1, "intervals of the domain that the tree looks at", at_least=1)
    lam_length: float = parameter(0.0, "penalty of the intervals' length", at_least=0)
    pattern: str = parameter(
        "", "names of a curve's features, {at} for the place: {curve}@{at}, or x{at}; empty to find it"
    )
    interpolation: str = parameter("cubic", "what a curve is between its points", choices=tuple(_DEGREES))

    def check_data(self, data: Dataset, topology: Topology) -> None:
        super().check_data(data, topology)
        curves_of(data, self.pattern)

    def _norms(self) -> RowNorms:
        return RowNorms(("a", "at"), self.lam_local, self.lam_global, self.intervals)

    def state(self, data: Dataset, topology: Topology) -> FunctionalModel:
        curves = Curves(curves_of(data, self.pattern), _DEGREES[self.interpolation])
        values = curves.scaled(data.X_raw)
        evenly = np.linspace(0.0, 1.0, 2 * self.intervals).reshape(-1, 2)
        return FunctionalModel(
            X=values,
            depth=topology.depth,
            gamma=self.gamma,
            loss=self._loss(curves.means(values, evenly), data, topology),
            norms=self._norms(),
            curves=curves,
            lam_length=self.lam_length,
        )

    def tree_of(self, point: Point, instance: SmoothInstance) -> FunctionalTree:
        data, model = instance.data, _model(instance)
        offset, scale = data.encoding.offset, data.encoding.scale
        middle, unit = self.target_scale(data)
        intervals = intervals_of(point)
        heights = point["a"].reshape(len(point["a"]), self.intervals, -1)
        leaf_heights = unit * point["at"].reshape(len(point["at"]), self.intervals, -1)
        w, b = model.curves.spread(-heights / model.n_features, intervals, data.p)
        leaf_w, leaf_value = model.curves.spread(leaf_heights, intervals, data.p)
        # From original units to the scaled features of the data set.
        return FunctionalTree(
            depth=instance.topology.depth,
            w=w * scale,
            b=point["mu"] + b + w @ offset,
            leaf_value=middle - unit * point["mut"] + leaf_value + leaf_w @ offset,
            leaf_w=leaf_w * scale,
            features=data.features.labels,
            gamma=self.gamma,
            curves=model.curves.curves,
            intervals=intervals,
            heights=heights,
            leaf_heights=leaf_heights,
        )

    def point_of(self, tree: Tree, instance: SmoothInstance) -> Point:
        model, data = _model(instance), instance.data
        here = [curve.name for curve in model.curves.curves]
        if not isinstance(tree, FunctionalTree) or [curve.name for curve in tree.curves] != here:
            raise ParameterError(
                f"the start tree looks at no intervals of {', '.join(here[:8])}; give a tree of {self.name} for "
                "these curves"
            )
        if len(tree.intervals) > self.intervals:
            raise ParameterError(
                f"the start tree looks at {len(tree.intervals)} intervals, and this one may at {self.intervals}; give "
                "one of at most as many"
            )
        stretch = np.array(
            [own.scale / other.scale for own, other in zip(model.curves.curves, tree.curves, strict=True)]
        )
        intervals, heights, leaf_heights = _with_more_intervals(
            tree.intervals, tree.heights * stretch, tree.leaf_heights * stretch, self.intervals
        )
        # What the functions are at 0 in original units is what the coefficients leave to the constants.
        offset, scale = data.encoding.offset, data.encoding.scale
        at_zero = tree.b - tree.w / scale @ offset
        leaf_at_zero = np.asarray(tree.leaf_value, dtype=np.float64)
        if tree.leaf_w is not None:
            leaf_at_zero = leaf_at_zero - tree.leaf_w / scale @ offset
        _, constants = model.curves.spread(-heights / model.n_features, intervals, data.p)
        _, leaf_constants = model.curves.spread(leaf_heights, intervals, data.p)
        middle, unit = self.target_scale(data)
        return {
            "a": heights.reshape(len(heights), -1),
            "mu": at_zero - constants,
            "gaps": gaps_of(intervals),
            "at": leaf_heights.reshape(len(leaf_heights), -1) / unit,
            "mut": (middle + leaf_constants - leaf_at_zero) / unit,
        }

    def evaluate(self, tree: Tree, instance: SmoothInstance) -> float:
        assert isinstance(tree, FunctionalTree)
        length = 1.0 - self.tree_of(self.point_of(tree, instance), instance).length_sparsity
        return super().evaluate(tree, instance) + self.lam_length * length

    def report(self, solved: Tree, refined: Tree, instance: SmoothInstance) -> dict[str, Any]:
        """Report the sparsity, the intervals on each curve's domain, and the share of it that lies in none."""
        assert isinstance(refined, FunctionalTree)
        chosen = {curve.name: refined.intervals_of(curve).tolist() for curve in refined.curves if curve.at}
        sparsity = super().report(solved, refined, instance)
        listed = [
            f"{name} from {', '.join(f'{low:.4g} to {high:.4g}' for low, high in parts)}"
            for name, parts in chosen.items()
        ]
        length = {"length_sparsity": refined.length_sparsity}
        return {**sparsity, **length, "looks_at": "; ".join(listed), "chosen_intervals": chosen}


def _with_more_intervals(
    intervals: FloatArray, heights: FloatArray, leaf_heights: FloatArray, wanted: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add intervals with heights of 0, each in the middle of the longest part of the domain outside of all."""
    while len(intervals) < wanted:
        ends = np.concatenate([[0.0], intervals.ravel(), [1.0]])
        outside = ends[1::2] - ends[0::2]
        k = int(outside.argmax())
        third = ends[2 * k] + outside[k] / 3
        intervals = np.insert(intervals, k, [third, third + outside[k] / 3], axis=0)
        heights, leaf_heights = (np.insert(part, k, 0.0, axis=1) for part in (heights, leaf_heights))
    return intervals, heights, leaf_heights


def _model(instance: SmoothInstance) -> FunctionalModel:
    model = instance.smooth
    assert isinstance(model, FunctionalModel)
    return model


#: Patterns of names that are tried where none is given, the first that some feature has.
PATTERNS = ("{curve}@{at}", "{at}", "{curve}{at}")

#: A number in the name of a feature.
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"

#: Intervals shorter than this, as a share of the domain, count as one point: the quotients would lose all digits.
SHORTEST = 1e-6


def curves_of(data: Dataset, pattern: str = "") -> list[Curve]:
    """Return the curves that the features of a data set make, the others as numbers.

    Parameters
    ----------
    data
        The data set. A curve is scaled to [0, 1] by the least and greatest of all its values, a number by itself.
    pattern
        What names of a curve's features look like: ``{at}`` stands for the number that is the place on the domain,
        ``{curve}`` for the curve's name, if there are several. Empty to try :data:`PATTERNS`.

    Raises
    ------
    ParameterError
        If the pattern has no ``{at}``.
    DataError
        If no two features match it with the same name, or two of a curve have the same place.
    """
    names = data.features.labels
    if pattern and pattern.count("{at}") != 1:
        raise ParameterError(
            f"parameter pattern is {pattern!r}; give what a curve's features are called, {{at}} for the place, such as "
            "'{curve}@{at}'"
        )
    for tried in (pattern,) if pattern else PATTERNS:
        groups = _grouped(names, tried)
        if groups:
            break
    else:
        raise DataError(
            f"no two of the {data.p} feature(s) of {data.name} are values of one curve: {some_of(names)} do not look "
            f"like {pattern or ', '.join(PATTERNS)}; name them such as spectrum@850, spectrum@852, or give pattern="
        )
    found = []
    for name, places in groups.items():
        order = sorted(range(len(places)), key=lambda k: places[k][0])
        at = tuple(places[k][0] for k in order)
        if len(set(at)) < len(at):
            twice = next(low for low, high in pairwise(at) if low == high)
            raise DataError(f"curve {name!r} of {data.name} has two features at {twice:g}; leave one out")
        columns = tuple(places[k][1] for k in order)
        found.append(_scaled(data, Curve(name, columns, at)))
    members = {column for curve in found for column in curve.columns}
    found += [_scaled(data, Curve(names[j], (j,), ())) for j in range(data.p) if j not in members]
    return found


def _grouped(names: Sequence[str], pattern: str) -> dict[str, list[tuple[float, int]]]:
    """Return by curve the places and positions of its features; those that are alone make no curve."""
    parts = re.split(r"(\{curve\}|\{at\})", pattern)
    kinds = {"{curve}": "(?P<curve>.+?)", "{at}": f"(?P<at>{_NUMBER})"}
    expression = re.compile("".join(kinds.get(part, re.escape(part)) for part in parts))
    groups: dict[str, list[tuple[float, int]]] = {}
    for j, name in enumerate(names):
        match = expression.fullmatch(name)
        if match:
            groups.setdefault(match.groupdict().get("curve") or "curve", []).append((float(match["at"]), j))
    return {name: places for name, places in groups.items() if len(places) > 1}


def _scaled(data: Dataset, curve: Curve) -> Curve:
    values = data.X_raw[:, curve.columns]
    low, high = float(values.min()), float(values.max())
    return Curve(curve.name, curve.columns, curve.at, low, high - low if high > low else 1.0)


@dataclass(frozen=True, eq=False)
class Curves:
    """J curves as splines.

    Attributes
    ----------
    curves
        What they are.
    degree
        Of the pieces: 1 for straight lines, 3 for cubic splines.
    """

    curves: Sequence[Curve]
    degree: int = 3

    @cached_property
    def columns(self) -> IntArray:
        """Positions of all features that the curves have, curve by curve."""
        return np.concatenate([np.array(curve.columns, dtype=np.int64) for curve in self.curves])

    @cached_property
    def _bounds(self) -> list[slice]:
        ends = np.cumsum([0, *(len(curve.columns) for curve in self.curves)]).tolist()
        return [slice(low, high) for low, high in pairwise(ends)]

    @cached_property
    def _splines(self) -> list[Any]:
        """By curve, the splines through unit vectors, their antiderivatives and derivatives; ``None`` of a number."""
        found: list[Any] = []
        for curve in self.curves:
            if not curve.at:
                found.append(None)
                continue
            at = np.array(curve.at)
            shares = (at - at[0]) / (at[-1] - at[0])
            spline = make_interp_spline(shares, np.eye(len(at)), k=min(self.degree, len(at) - 1))
            found.append((spline, spline.antiderivative(), spline.derivative()))
        return found

    def scaled(self, X_raw: FloatArray) -> FloatArray:
        """Return the (n, Q) values of all curves as the model sees them, from features in original units."""
        per_feature = [(curve.offset, curve.scale) for curve in self.curves for _ in curve.columns]
        offset, scale = np.array(per_feature).T
        found: FloatArray = (X_raw[:, self.columns] - offset) / scale
        return found

    def _weights(self, j: int, intervals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (H, Q_j) what the mean of a curve is of its values, and (2 H, Q_j) its derivatives in the ends."""
        spline, low, high = self._splines[j], intervals[:, :1], intervals[:, 1:]
        if spline is None:
            return np.ones((len(low), 1)), np.zeros((2 * len(low), 1))
        value, whole, slope = spline
        length = high - low
        short, safe = length < SHORTEST, np.maximum(length, SHORTEST)
        middle = (low[:, 0] + high[:, 0]) / 2
        mean = np.where(short, value(middle), (whole(high[:, 0]) - whole(low[:, 0])) / safe)
        # Of an interval that is one point, both ends move the value there by half of its slope.
        half = slope(middle) / 2
        in_low = np.where(short, half, (mean - value(low[:, 0])) / safe)
        in_high = np.where(short, half, (value(high[:, 0]) - mean) / safe)
        return mean, np.stack([in_low, in_high], axis=1).reshape(2 * len(low), -1)

    def means(self, values: FloatArray, intervals: FloatArray) -> FloatArray:
        """Return the (n, H * J) means of samples over (H, 2) intervals, the curves of an interval side by side.

        Parameters
        ----------
        values
            (n, Q) what :meth:`scaled` returns.
        intervals
            (H, 2) begin and end, in shares 0 to 1 of the domain.
        """
        found = [values[:, own] @ self._weights(j, intervals)[0].T for j, own in enumerate(self._bounds)]
        return np.stack(found, axis=2).reshape(len(values), -1)

    def in_ends(self, values: FloatArray, intervals: FloatArray, slope: FloatArray) -> FloatArray:
        """Return the (2 H,) derivative in the ends of the intervals, from the (n, H * J) one in the means."""
        H = len(intervals)
        by_curve, found = slope.reshape(len(values), H, -1), np.zeros(2 * H)
        for j, own in enumerate(self._bounds):
            moved = self._weights(j, intervals)[1]
            found += (moved * np.repeat(by_curve[:, :, j].T @ values[:, own], 2, axis=0)).sum(axis=1)
        return found

    def spread(self, heights: FloatArray, intervals: FloatArray, p: int) -> tuple[FloatArray, FloatArray]:
        """Return what coefficients of means are of the p features in original units.

        Parameters
        ----------
        heights
            (nodes, H, J) coefficients.
        intervals
            (H, 2) intervals.
        p
            Number of features.

        Returns
        -------
        weights, constants
            (nodes, p) and (nodes,): the sum of coefficients times means is ``weights . x + constant``.
        """
        weights, constants = np.zeros((len(heights), p)), np.zeros(len(heights))
        for j, curve in enumerate(self.curves):
            own = heights[:, :, j] / curve.scale
            weights[:, list(curve.columns)] += own @ self._weights(j, intervals)[0]
            # The mean of a constant is the constant.
            constants -= own.sum(axis=1) * curve.offset
        return weights, constants


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

    def _gradient(
        self, seen: SmoothModel, routing: SoftRouting, functional: Functional, point: Point
    ) -> tuple[float, Point]:
        value, gradient = super()._gradient(seen, routing, functional, point)
        slope = routing.slope(functional.payload, functional.weights)
        in_means = (
            slope.T @ point["a"] / seen.n_features + (routing.leaves * functional.weights).T @ point["at"]
        )
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
