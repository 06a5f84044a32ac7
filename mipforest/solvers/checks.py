"""Checks before a solve: options, numbers, log files and starts, of which a solver would tell late, or never."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.errors import NotAllowed, suggestion
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE


def unknown_option(solver: str, name: str, known: Iterable[str]) -> NotAllowed:
    """Return the error for an option that a solver does not have; it suggests the nearest names.

    Parameters
    ----------
    solver
        Name of the solver as its makers write it.
    name
        The option.
    known
        The solver's options.
    """
    return NotAllowed(f"{solver} has no option {name!r}{suggestion(name, known, 3, written=str)}")


#: Matrix entries of at most this size are zeros to HiGHS (``small_matrix_value``) and SCIP (``numerics/epsilon``).
SMALL_ENTRY = 1e-9

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


@dataclass(frozen=True, eq=False)
class JudgedStart:
    """What of a start is of use.

    Attributes
    ----------
    full
        (n,) feasible point with exact integers, or ``None``.
    integers
        (n,) the integer values that are integral and within their bounds, NaN elsewhere: to be completed where
        there is no full point.
    given
        (n,) the start as it was given, NaN where it was left open; ``None`` without one.
    flaw
        Why there is no full point; empty if there is one, or no start.
    infeasible
        Whether the flaw is that the start breaks the model (and not that it leaves values open).
    """

    full: FloatArray | None = None
    integers: FloatArray | None = None
    given: FloatArray | None = None
    flaw: str = ""
    infeasible: bool = False

    @property
    def completable(self) -> bool:
        """Whether there are integer values to complete, and no full point."""
        return self.full is None and self.integers is not None and not np.isnan(self.integers).all()

    def warnings(self, *, taken: bool) -> list[str]:
        """Return what the user should know once the solver has taken, or completed, the start, or has not."""
        if not self.flaw:
            return []
        if taken:
            return [f"{self.flaw}: only its integer values were kept"] if self.infeasible else []
        if self.given is not None and not self.completable:
            return [f"{self.flaw}, and gives no integer value to keep: start dropped"]
        return [f"{self.flaw}, and no completion of its integer values was found: start dropped"]


def judge_start(form: MatrixForm, start: FloatArray | None) -> JudgedStart:
    """Judge a start.

    A full and feasible point is kept with exact integers. Of any other the integer values are kept, where they
    are integral and within their bounds.

    Parameters
    ----------
    form
        The model.
    start
        (n,) point, NaN where it is left open; or ``None``.

    Raises
    ------
    NotAllowed
        If the start has the wrong length.
    """
    if start is None:
        return JudgedStart()
    start = np.asarray(start, dtype=float)
    if start.shape != (form.n_columns,):
        raise NotAllowed(f"the start has shape {start.shape}, the model has {form.n_columns} columns")
    integers = np.where(usable_integers(form, start), np.round(start), np.nan)
    judged = JudgedStart(given=start, integers=integers)
    left_open = int(np.isnan(start).sum())
    if left_open:
        return replace(judged, flaw=f"the start leaves {left_open} of {len(start)} values open")
    found = violations(form, start)
    if found.max <= FEASIBILITY_TOLERANCE:
        return replace(judged, full=with_exact_integers(form, start))
    name, amount = found.worst(1)[0]
    return replace(judged, flaw=f"the start is infeasible ({name} by {amount:.3g})", infeasible=True)


def usable_integers(form: MatrixForm, start: FloatArray) -> BoolArray:
    """Return which integer columns a start gives an integral value within their bounds.

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
    if not form.integer.any():
        return x
    rounded = np.where(form.integer, np.round(x), x)
    worst = violations(form, rounded).max
    return rounded if worst <= max(FEASIBILITY_TOLERANCE, violations(form, x).max) else x
