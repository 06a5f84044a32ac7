"""Exact integers in place of a solver's nearly integral ones."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm

#: Largest violation of a row, bound or integrality that counts as none: the default feasibility tolerance
#: of HiGHS, Gurobi and SCIP, so that what this package accepts, they accept.
FEASIBILITY_TOLERANCE = 1e-6


def with_exact_integers(form: MatrixForm, x: FloatArray) -> FloatArray:
    """Round the integer columns, unless that breaks a row that holds now.

    A big-M row can turn an integrality error of 1e-7 into a row violation of 1e-3; such a point is
    returned as it is.

    Parameters
    ----------
    form
        The model.
    x
        (n,) point.
    """
    rounded = np.where(form.integer, np.round(x), x)
    worst = violations(form, rounded).max
    return rounded if worst <= max(FEASIBILITY_TOLERANCE, violations(form, x).max) else x


def usable_integers(form: MatrixForm, start: FloatArray) -> BoolArray:
    """Say which integer columns a start gives an integral value within their bounds.

    Parameters
    ----------
    form
        The model.
    start
        (n,) point, NaN where it is left open.

    Returns
    -------
    (n,) array of bool
    """
    nearest = np.round(start)
    usable: BoolArray = form.integer & (np.abs(start - nearest) <= FEASIBILITY_TOLERANCE)
    return usable & (form.col_lower <= nearest) & (nearest <= form.col_upper)


def whole_bounds(form: MatrixForm) -> tuple[FloatArray, FloatArray]:
    """Bounds with those of integer columns rounded inwards; they cross where no integer lies between.

    Parameters
    ----------
    form
        The model.

    Returns
    -------
    lower, upper
        (n,) bounds.
    """
    lower = np.where(form.integer, np.ceil(form.col_lower - FEASIBILITY_TOLERANCE), form.col_lower)
    upper = np.where(form.integer, np.floor(form.col_upper + FEASIBILITY_TOLERANCE), form.col_upper)
    return lower, upper
