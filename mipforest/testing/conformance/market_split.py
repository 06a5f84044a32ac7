"""A model whose points are easy to find and whose proof takes hours."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import Model
from mipforest.model.matrix import MatrixForm


def market_split(
    rows: int = 6, columns: int = 40, *, maximize: bool = False, offset: float = 0.0
) -> MatrixForm:
    """Split integer weights into halves as evenly as possible (Cornuejols and Dawande, 1999).

    Parameters
    ----------
    rows, columns
        Number of equations, and of binary variables.
    maximize
        Maximise the negated objective.
    offset
        Constant of the objective.
    """
    weights = np.random.default_rng(0).integers(0, 100, (rows, columns)).astype(float)
    m = Model("market split")
    x = m.binary("x", columns)
    missing, excess = m.nonnegative("missing", rows), m.nonnegative("excess", rows)
    uneven = missing.sum() + excess.sum()
    if maximize:
        m.maximize(offset - uneven)
    else:
        m.minimize(offset + uneven)
    m.add("row", weights @ x + missing - excess == np.floor(weights.sum(axis=1) / 2))
    return m.matrix()


def empty_split(form: MatrixForm) -> FloatArray:
    """Give the feasible point of a market split that takes nothing."""
    point = form.to_point({"missing": form.row_lower, "excess": np.zeros(form.n_rows)})
    return np.nan_to_num(point, nan=0.0)
