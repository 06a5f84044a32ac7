"""Exact integers in place of a solver's nearly integral ones."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
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
