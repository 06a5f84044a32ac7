"""The continuous rest of a model whose integers are fixed, solved to high accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.solvers.base import SolveOptions
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Status

#: Seconds that the continuous rest may take; it takes milliseconds unless the model is huge.
TIME_LIMIT = 5.0


def continuous_rest(form: MatrixForm, x: FloatArray) -> MatrixForm:
    """Fix the integer columns at a point; indicator rows become rows where that switches them on.

    Parameters
    ----------
    form
        The model.
    x
        (n,) point whose integer columns hold exact integers.
    """
    indicators = form.indicators
    on = x[indicators.binary] == indicators.value
    return replace(
        form,
        A=sparse.csr_array(sparse.vstack([form.A, indicators.A[on]])),
        row_lower=np.concatenate([form.row_lower, indicators.lower[on]]),
        row_upper=np.concatenate([form.row_upper, indicators.upper[on]]),
        rows=(),
        col_lower=np.where(form.integer, x, form.col_lower),
        col_upper=np.where(form.integer, x, form.col_upper),
        integer=np.zeros(form.n_columns, dtype=bool),
        indicators=IndicatorRows.none(form.n_columns),
    )


def with_best_rest(form: MatrixForm, x: FloatArray) -> FloatArray:
    """Give the best point with the integers of ``x``, or ``x`` where none better is found.

    Parameters
    ----------
    form
        A model with a convex objective.
    x
        (n,) point.
    """
    if not np.array_equal(x[form.integer], np.round(x[form.integer])):
        return x
    solved = Clarabel().solve(continuous_rest(form, x), SolveOptions(time_limit=TIME_LIMIT))
    if solved.status is not Status.OPTIMAL or solved.x is None:
        return x
    best = np.where(form.integer, x, solved.x)
    feasible = violations(form, best).max <= max(FEASIBILITY_TOLERANCE, violations(form, x).max)
    sign = -1.0 if form.maximize else 1.0
    return best if feasible and sign * form.objective(best) <= sign * form.objective(x) else x
