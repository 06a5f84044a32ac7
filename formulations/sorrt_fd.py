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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.sorrt import SOrrt
from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.smooth.curves import Curves, FunctionalModel, curves_of, gaps_of, intervals_of
from mipforest.smooth.formulation import SmoothInstance
from mipforest.smooth.model import Point, RowNorms
from mipforest.trees import FunctionalTree, Topology, Tree

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
