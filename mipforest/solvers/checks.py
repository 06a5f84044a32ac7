"""Checks before a solve: options, numbers and log files of which a solver would tell late, or never."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import NotAllowed, close_names
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE


def unknown_option(solver: str, name: str, known: Iterable[str]) -> NotAllowed:
    """Give the error for an option that a solver does not have; it suggests the nearest names.

    Parameters
    ----------
    solver
        Name of the solver as its makers write it.
    name
        The option.
    known
        The solver's options.
    """
    close = close_names(name, known, 3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return NotAllowed(f"{solver} has no option {name!r}{hint}")


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


def writable(path: Path) -> Path:
    """Refuse a log file that cannot be opened, which a solver would tell late, in its own words, or never.

    Raises
    ------
    NotAllowed
        With the reason that the system gives.
    """
    try:
        with path.open("a"):
            return path
    except OSError as error:
        raise NotAllowed(f"cannot write the log {path}: {error.strerror}; choose another file") from error


def whole_bounds(form: MatrixForm) -> tuple[FloatArray, FloatArray]:
    """Return the (n,) bounds with those of integer columns rounded inwards.

    They cross where no integer lies between.
    """
    lower = np.where(form.integer, np.ceil(form.col_lower - FEASIBILITY_TOLERANCE), form.col_lower)
    upper = np.where(form.integer, np.floor(form.col_upper + FEASIBILITY_TOLERANCE), form.col_upper)
    return lower, upper
