r"""Piecewise-linear underestimators of the log-loss :math:`f(v) = \log(1 + e^{-v})` by tangents.

f is convex, so every tangent lies below it, and so does the largest of several (T. Sato, Y. Takano, R. Miyashiro,
A. Yoshise, *Feature subset selection for logistic regression via mixed integer optimization*, Computational
Optimization and Applications 64 (2016)). The tangents at :math:`\pm\infty` are the lines 0 and :math:`-v`; they
always belong to the set, so that the area between f and the underestimator is finite. Points are chosen greedily: each
further tangent is the one that leaves the least area. The published sets are these points to two digits:

.. math::

    V_0 = \{0, \pm\infty\}, \quad V_1 = V_0 \cup \{\pm 1.9\}, \quad V_2 = V_1 \cup \{\pm 0.89, \pm 3.55\}, \quad
    V_3 = V_2 \cup \{\pm 0.44, \pm 1.37, \pm 2.63, \pm 5.16\} .

**A step of the greedy rule.** Between two neighbouring tangents the underestimator has a corner, where they cross. A
new tangent cuts this corner off: the area gained is a triangle, with a side on the new tangent and a height that is the
rise of the new tangent above the corner. No integral is needed. As the triangle depends on its two neighbours only,
every corner has its own best cut, and the greedy rule takes the largest one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray
from mipforest.errors import ParameterError
from mipforest.objectives.branches import PiecewiseLinearLoss

#: The published sets, without :math:`\pm\infty`.
POSITIVE_POINTS: dict[str, tuple[float, ...]] = {
    "V0": (),
    "V1": (1.9,),
    "V2": (0.89, 1.9, 3.55),
    "V3": (0.44, 0.89, 1.37, 1.9, 2.63, 3.55, 5.16),
}

#: Most tangents at finite points: each costs a row per sample and branch node.
MOST_POINTS = 63

#: Beyond this value f is below 1e-17: the interval in which a tangent point next to infinity is looked for.
_FAR = 40.0

#: Two cuts that gain equal areas up to this count as equal, as mirror images do; each is found as closely.
_EQUAL_AREAS = 1e-9


def log_loss(v: FloatArray) -> FloatArray:
    """Return ``log(1 + exp(-v))``, without overflow."""
    loss: FloatArray = np.logaddexp(0.0, -v)
    return loss


def tangent_points(tangents: str) -> FloatArray:
    """Return the (K,) finite tangent points, ascending, of a published set (``V0`` .. ``V3``) or of K greedy ones.

    Raises
    ------
    ParameterError
        If the text is neither.
    """
    if tangents in POSITIVE_POINTS:
        positive = np.array(POSITIVE_POINTS[tangents])
        return np.concatenate([-positive[::-1], [0.0], positive])
    if not tangents.isdecimal() or not 1 <= int(tangents) <= MOST_POINTS:
        raise ParameterError(
            f"parameter tangents is {tangents!r}; give {', '.join(POSITIVE_POINTS)}, or the number of finite "
            f"tangent points, 1 to {MOST_POINTS}"
        )
    return greedy_points(int(tangents))


def greedy_points(count: int) -> FloatArray:
    """Return the (count,) finite tangent points, ascending, by the greedy rule; the first one is 0.

    Points come in mirror pairs, first the positive one, so that an odd count gives a symmetric set.
    """
    return np.array(_greedy(count))


@cache
def _greedy(count: int) -> tuple[float, ...]:
    points, cuts = [-np.inf, np.inf], [_best_cut(-np.inf, np.inf)]
    for _ in range(count):
        areas = np.array([area for _, area in cuts])
        corner = int(np.flatnonzero(areas >= areas.max() - _EQUAL_AREAS)[-1])
        u, x, v = points[corner], cuts[corner][0], points[corner + 1]
        points.insert(corner + 1, x)
        cuts[corner : corner + 1] = [_best_cut(u, x), _best_cut(x, v)]
    return tuple(points[1:-1])


class LogisticLoss(PiecewiseLinearLoss):
    """Largest of the tangents of the log-loss at finite points and at both infinities.

    Parameters
    ----------
    points
        (K,) finite tangent points, ascending.
    """

    name = "logistic"
    log_odds = True

    def __init__(self, points: FloatArray) -> None:
        super().__init__(*_tangents(np.concatenate([[-np.inf], points])))

    @classmethod
    def build(cls, *, epsilon: float, tangents: str) -> LogisticLoss:  # noqa: ARG003
        return cls(tangent_points(tangents))


def largest_error(loss: PiecewiseLinearLoss) -> float:
    """Return how far at most a loss, the tangents at both infinities among its lines, lies below the log-loss.

    Between two corners their difference is convex: it is largest at one of the corners.
    """
    intercepts, slopes = np.append(loss.intercepts, 0.0), np.append(loss.slopes, 0.0)
    first, second = np.triu_indices(len(slopes), 1)
    corners = (intercepts[first] - intercepts[second]) / (slopes[second] - slopes[first])
    return float((log_loss(corners) - loss.of_margin(corners)).max())


def _tangents(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intercepts and slopes of the tangents at points, infinite ones included."""
    slopes = -expit(-points)
    # The intercept f(v) - v f'(v) is an even function of v.
    size = np.abs(points)
    finite = np.isfinite(size)
    intercepts = np.zeros_like(points)
    intercepts[finite] = np.logaddexp(0.0, -size[finite]) + size[finite] * expit(-size[finite])
    return intercepts, slopes


def _crossing(u: float, v: float) -> float:
    """Return where the tangents at u < v cross."""
    (a, b), (slope_u, slope_v) = _tangents(np.array([u, v]))
    return float((a - b) / (slope_v - slope_u))


def _best_cut(u: float, v: float) -> tuple[float, float]:
    """Return the point between two neighbouring tangent points whose tangent gains the most area, and that area."""
    if not np.isfinite(u) and not np.isfinite(v):
        return 0.0, _area_gained(0.0, u, v)
    from scipy.optimize import minimize_scalar  # late: slow to import, and most runs do without

    found = minimize_scalar(
        lambda x: -_area_gained(x, u, v),
        bounds=(max(u, -_FAR), min(v, _FAR)),
        method="bounded",
        options={"xatol": _EQUAL_AREAS},
    )
    return float(found.x), -float(found.fun)


def _area_gained(x: float, u: float, v: float) -> float:
    """Return the area of the triangle that the tangent at x cuts off the corner of the tangents at u < x < v."""
    corner = _crossing(u, v)
    (at_x, at_u), (slope_x, slope_u) = _tangents(np.array([x, u]))
    rise = (at_x - at_u) + (slope_x - slope_u) * corner
    return 0.5 * float(rise) * (_crossing(x, v) - _crossing(u, x))
