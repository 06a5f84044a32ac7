"""A bound on the optimal value of a continuous convex programme, from any multipliers."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm

#: Push towards a side that is infinite, times the distance to the origin and relative to the objective, that
#: counts as round-off.
DUAL_TOLERANCE = 1e-6


def dual_bound(form: MatrixForm, x: FloatArray, multipliers: FloatArray) -> float:
    """Lagrangian bound on the optimal value, below it when minimising, above when maximising.

    A convex objective q lies above its tangent at x. With g the gradient at x, y the multipliers and
    ``z = g - A'y``, every feasible v thus has ``q(v) >= q(x) - g.x + y.(A v) + z.v``, and the last two terms
    are at their least where each row and column sits at the side that y and z push it to. This holds
    whatever x and y are, so the bound needs no trust in the solver that gave them; it is tight at an
    optimal pair. A push to an infinite side that changes the objective by less than :data:`DUAL_TOLERANCE`
    over the length of x is taken as round-off.

    Parameters
    ----------
    form
        A continuous model with a convex objective (concave when maximising); integrality is ignored.
    x
        (n,) point.
    multipliers
        (m,) row multipliers: change of the optimal value per unit of a row's side.

    Returns
    -------
    float
        The bound; infinite if a multiplier pushes to an infinite side.
    """
    sign = -1.0 if form.maximize else 1.0
    gradient = form.c if form.Q is None else form.c + form.Q @ x
    reduced = sign * (gradient - form.A.T @ multipliers)
    tolerance = DUAL_TOLERANCE * max(1.0, abs(form.objective(x)))
    at_x = sign * (form.objective(x) - float(gradient @ x))
    rows = _least(sign * multipliers, form.row_lower, form.row_upper, form.A @ x, tolerance)
    columns = _least(reduced, form.col_lower, form.col_upper, x, tolerance)
    return sign * (at_x + rows + columns)


def _least(
    slope: FloatArray, lower: FloatArray, upper: FloatArray, here: FloatArray, tolerance: float
) -> float:
    """Least value of ``slope.v`` for ``lower <= v <= upper``; v is ``here`` where the slope is round-off."""
    v = np.where(slope > 0, lower, upper)
    v = np.where(np.isinf(v) & (np.abs(slope) * np.maximum(1.0, np.abs(here)) <= tolerance), here, v)
    pushed = slope != 0
    return float(slope[pushed] @ v[pushed])
