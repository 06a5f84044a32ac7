"""Refusal of numbers that a solver would silently take for something else."""

from __future__ import annotations

import numpy as np

from mipforest.model.matrix import MatrixForm
from mipforest.solvers.errors import NotAllowed

#: Values of this size and above are infinite to HiGHS and Clarabel.
SOLVER_INFINITY = 1e20


def require_plain_numbers(form: MatrixForm) -> None:
    """Refuse NaN, infinite coefficients, finite numbers of 1e20 and above, and sides infinite the wrong way.

    Raises
    ------
    NotAllowed
        Naming the first such number.
    """
    parts = (
        ("cost", form.c, form.columns, np.nan),
        ("lower bound", form.col_lower, form.columns, -np.inf),
        ("upper bound", form.col_upper, form.columns, np.inf),
        ("lower side", form.row_lower, form.rows, -np.inf),
        ("upper side", form.row_upper, form.rows, np.inf),
    )
    for what, values, blocks, missing in parts:
        good = (np.abs(values) < SOLVER_INFINITY) | (values == missing)
        if not good.all():
            first = int(np.argmin(good))
            name = next(block.names()[first - block.start] for block in blocks if first < block.stop)
            allowed = "" if np.isnan(missing) else f", or {missing} where there is none"
            raise NotAllowed(
                f"the {what} of {name} is {values[first]:g}; solvers take finite numbers "
                f"below {SOLVER_INFINITY:g}{allowed}: correct or rescale the model"
            )
    quadratic = form.c[:0] if form.Q is None else form.Q.data
    for what, data in (("matrix", form.A.data), ("quadratic objective", quadratic)):
        bad = int((~np.isfinite(data)).sum())
        if bad:
            raise NotAllowed(f"the {what} holds {bad} entries that are NaN or infinite: correct the model")
