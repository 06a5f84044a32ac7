"""A matrix form as a Gurobi model, by matrix calls."""

from __future__ import annotations

from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import IndicatorRows, MatrixForm


def load(model: gurobipy.Model, form: MatrixForm) -> gurobipy.MVar:
    """Put a form that has at least one column into an empty model; give its variables.

    A row with two different sides becomes two rows: Gurobi's own range rows are stored with the width of
    the range and an extra variable, which is neither exact nor free under a size limit.
    """
    x = model.addMVar(
        form.n_columns, lb=form.col_lower, ub=form.col_upper, vtype=np.where(form.integer, "I", "C")
    )
    row, sense, side = _one_sided(form.row_lower, form.row_upper)
    if len(row):
        A = form.A if np.array_equal(row, np.arange(form.n_rows)) else form.A[row]
        model.addMConstr(A, x, sense, side)
    _add_indicators(model, x, form.indicators)
    Q: Any = 0.5 * form.Q if form.Q is not None and form.is_quadratic else None
    model.setMObjective(
        Q, form.c, form.offset, sense=GRB.MAXIMIZE if form.maximize else GRB.MINIMIZE, xQ_L=x, xQ_R=x, xc=x
    )
    model.update()
    return x


def _add_indicators(model: gurobipy.Model, x: gurobipy.MVar, indicators: IndicatorRows) -> None:
    """Add indicator rows; of two-sided ones, Gurobi would drop the condition without a word."""
    row, sense, side = _one_sided(indicators.lower, indicators.upper)
    for kind in ("=", ">", "<"):
        here = np.flatnonzero(sense == kind)
        if len(here):
            rows = row[here]
            model.addGenConstrIndicator(
                x[indicators.binary[rows].tolist()],
                indicators.value[rows] == 1,
                indicators.A[rows] @ x,
                kind,
                side[here],
            )


def n_one_sided(lower: FloatArray, upper: FloatArray) -> int:
    """Count the rows that Gurobi gets for rows with these sides."""
    return len(_one_sided(lower, upper)[0])


def _one_sided(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Give number, sense and side of one-sided rows that say the same; rows without sides are left out."""
    equal = lower == upper
    groups = (
        ("=", equal, lower),
        (">", ~equal & (lower > -np.inf), lower),
        ("<", ~equal & (upper < np.inf), upper),
    )
    row = np.concatenate([np.flatnonzero(here) for _, here, _ in groups])
    sense = np.concatenate([np.full(int(here.sum()), kind) for kind, here, _ in groups])
    side = np.concatenate([sides[here] for _, here, sides in groups])
    order = np.argsort(row, kind="stable")
    return row[order], sense[order], side[order]
