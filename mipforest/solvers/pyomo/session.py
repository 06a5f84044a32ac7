"""One run of a solver through Pyomo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from pyomo.common.log import LoggingIntercept
from pyomo.common.tee import capture_output
from pyomo.environ import SolverFactory
from pyomo.opt import SolverResults
from pyomo.solvers.plugins.solvers.persistent_solver import PersistentSolver

from mipforest.arrays import FloatArray
from mipforest.errors import LicenseLimit, NotAllowed, SolverError
from mipforest.model.matrix import Block, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.checks import whole_bounds, writable
from mipforest.solvers.claims import NO_OPTIMUM, no_bound
from mipforest.solvers.pyomo.model import concrete_model
from mipforest.solvers.solution import Status

#: Our status for each of Pyomo's termination conditions that is not an error.
STATUS = {
    "optimal": Status.OPTIMAL,
    "globallyOptimal": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    # Several interfaces say so when the dual is infeasible, which leaves open whether there is a point.
    "unbounded": Status.INFEASIBLE_OR_UNBOUNDED,
    "infeasibleOrUnbounded": Status.INFEASIBLE_OR_UNBOUNDED,
    "feasible": Status.LIMIT,
    "maxTimeLimit": Status.TIME_LIMIT,
    "maxIterations": Status.LIMIT,
    "maxEvaluations": Status.LIMIT,
    "userInterrupt": Status.INTERRUPTED,
}


class Answer(NamedTuple):
    """What came back from Pyomo.

    Attributes
    ----------
    status
        How the run ended.
    x
        (n,) point, or ``None``.
    dual_bound
        Bound on the optimal value, infinite where Pyomo does not tell.
    message
        Pyomo's termination condition.
    """

    status: Status
    x: FloatArray | None
    dual_bound: float
    message: str


@cache
def usable(interface: str) -> bool:
    """Return whether Pyomo has an interface of that name and finds the solver behind it."""
    if interface not in SolverFactory:
        return False
    with LoggingIntercept(module="pyomo"):
        try:
            return bool(SolverFactory(interface).available(exception_flag=False))
        except Exception:  # what cannot even be asked is of no use
            return False


def run(
    interface: str,
    form: MatrixForm,
    settings: SolveSettings,
    native: dict[str, Any],
    time_limit: float | None,
) -> Answer:
    """Solve a model through an interface.

    Parameters
    ----------
    interface
        Pyomo's name of it.
    form
        A model with columns and without indicator rows.
    settings
        For the log, and the options to name in an error.
    native
        Options under the solver's own names.
    time_limit
        Seconds for Pyomo's own ``timelimit``, or ``None``.

    Raises
    ------
    SolverError
        If the interface fails, with what it said; :class:`NotAllowed` if it was given options of the user,
        :class:`LicenseLimit` if it speaks of a licence.
    """
    if not _read_columns(form):
        # Pyomo passes no variable on, and interfaces differ on a model without any.
        return Answer(Status.OPTIMAL, _nearest_to_zero(form), form.offset, "no expression reads a variable")
    model, variables = concrete_model(_plain(form))
    limit = {} if time_limit is None else {"timelimit": time_limit}
    with _output_to(settings):
        try:
            solver = SolverFactory(interface)
            if isinstance(solver, PersistentSolver):
                solver.set_instance(model)
            results = solver.solve(
                model, load_solutions=False, tee=settings.log is not None, options=native, **limit
            )
        except Exception as error:  # every interface raises its own
            raise _failure(interface, error, settings) from error
        condition = results.solver.termination_condition.name
        status = STATUS.get(condition, Status.ERROR)
        x = None if status in NO_OPTIMUM else _point(form, model, variables, results)
    if status is Status.OPTIMAL and x is None:
        raise SolverError(f"Pyomo's interface {interface} says {condition} and gives no point")
    return Answer(status, x, _dual_bound(form, status, x, results), condition)


@contextmanager
def _output_to(settings: SolveSettings) -> Iterator[None]:
    """Send what Pyomo and the solver print to the log, or nowhere."""
    if settings.log is None:
        with capture_output(StringIO(), capture_fd=True):
            yield
    else:
        with writable(settings.log).open("a") as log, capture_output(log, capture_fd=True):
            yield


def _failure(interface: str, error: Exception, settings: SolveSettings) -> SolverError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if "license" in reason.lower():
        return LicenseLimit(
            f"Pyomo's interface {interface}: {reason}; use a licence for models of this size, or another "
            "solver, such as highs"
        )
    if settings.solver_options:
        given = ", ".join(f"{name} = {value!r}" for name, value in settings.solver_options.items())
        return NotAllowed(f"Pyomo's interface {interface} fails with the options {given}: {reason}")
    return SolverError(f"Pyomo's interface {interface} fails: {reason}")


def _plain(form: MatrixForm) -> MatrixForm:
    """Leave out what some interface stumbles over: idle rows, and integers with fractional bounds."""
    sided = np.isfinite(form.row_lower) | np.isfinite(form.row_upper)
    kept = np.flatnonzero(sided & (np.diff(form.A.indptr) > 0))
    lower, upper = whole_bounds(form)
    return replace(
        form,
        A=form.A[kept],
        row_lower=form.row_lower[kept],
        row_upper=form.row_upper[kept],
        col_lower=lower,
        col_upper=upper,
        rows=(Block("row", 0, (len(kept),)),),
    )


def _point(form: MatrixForm, model: Any, variables: list[Any], results: SolverResults) -> FloatArray | None:
    """Return the point of the results, ``None`` without one."""
    if not len(results.solution):
        return None
    try:
        model.solutions.load_from(results)
    except ValueError:  # Pyomo's word for a status that comes without a point
        return None
    # A variable that no expression reads is not passed on; any value within its bounds will do.
    x = _nearest_to_zero(form)
    for column in _read_columns(form):
        if variables[column].value is None:
            return None
        x[column] = variables[column].value
    return x


def _nearest_to_zero(form: MatrixForm) -> FloatArray:
    x: FloatArray = np.clip(0.0, *whole_bounds(form))
    return x


def _read_columns(form: MatrixForm) -> list[int]:
    """Return the columns with an entry in the objective or in a row."""
    parts = [np.flatnonzero(form.c), form.A.indices]
    if form.Q is not None:
        parts.append(form.Q.indices)
    return [int(column) for column in np.unique(np.concatenate(parts))]


def _dual_bound(form: MatrixForm, status: Status, x: FloatArray | None, results: SolverResults) -> float:
    if not form.is_mip:
        return form.objective(x) if status is Status.OPTIMAL and x is not None else no_bound(form)
    told = results.problem.upper_bound if form.maximize else results.problem.lower_bound
    return float(told) if isinstance(told, int | float) and np.isfinite(told) else no_bound(form)
