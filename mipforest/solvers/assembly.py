"""From what a solver reports to a solution: exact integers, the objective recomputed, a bound that is proven."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Solution, Status
from mipforest.solvers.starts import with_exact_integers
from mipforest.solvers.worker import Worker

#: Statuses that say that there is no optimum.
NO_OPTIMUM = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


def assembled(
    form: MatrixForm,
    worker: Worker,
    *,
    solver: str,
    version: str,
    status: Status,
    x: FloatArray | None,
    bound: float | None = None,
    nodes: int = 0,
    start: FloatArray | None = None,
    start_objective: float = np.nan,
    warnings: Iterable[str] = (),
    message: str = "",
) -> Solution:
    """Make the solution of what a solver reports, and report the last event.

    Parameters
    ----------
    form
        The model.
    worker
        Has the events and the clock.
    solver, version
        Who solved it.
    status
        Why it stopped.
    x
        (n,) its point, or ``None``; it is rounded to exact integers, and left out where the status says that
        there is no optimum.
    bound
        Its bound, in the model's own sense, infinite where it has none. Without one, the objective of a
        continuous model that was solved to optimality counts.
    nodes
        Branch-and-bound nodes.
    start
        (n,) feasible point that is known beside: a limit may come before the solver has looked at it.
    start_objective
        Value of the start that was taken; that of ``start`` unless given.
    warnings, message
        What the user should know, and the solver's own last word.
    """
    told = list(warnings)
    x = None if x is None or status in NO_OPTIMUM else with_exact_integers(form, x)
    if start is not None:
        start_objective = form.objective(start)
        if status not in NO_OPTIMUM:
            x = _better_point(form, x, start)
    if x is not None:
        told += _tolerance_warning(form, x)
    objective = np.nan if x is None else form.objective(x)
    if bound is None:
        proven = status is Status.OPTIMAL and not form.is_mip
        bound = objective if proven else no_bound(form)
    bound = _proven_bound(form, status, objective, bound)
    worker.finish(objective, bound, nodes)
    return Solution(
        status=status,
        x=x,
        values={} if x is None else form.to_values(x),
        objective=objective,
        bound=bound,
        nodes=nodes,
        seconds=worker.seconds,
        solver=solver,
        solver_version=version,
        events=tuple(worker.events),
        start_objective=start_objective,
        warnings=tuple(told),
        message=message,
    )


def no_bound(form: MatrixForm) -> float:
    """Return the bound that says nothing: infinite, in the model's own sense."""
    return np.inf if form.maximize else -np.inf


def _proven_bound(form: MatrixForm, status: Status, objective: float, dual_bound: float) -> float:
    """Return what a solver's bound proves, given how the solve ended and the value of the point (or NaN)."""
    best = no_bound(form)
    if status is Status.INFEASIBLE:
        return -best
    if status in NO_OPTIMUM or status is Status.ERROR:
        return best
    if np.isnan(objective):
        return dual_bound
    # Round-off can carry the bound past the incumbent.
    return max(dual_bound, objective) if form.maximize else min(dual_bound, objective)


def _better_point(form: MatrixForm, x: FloatArray | None, start: FloatArray) -> FloatArray:
    if x is None:
        return start
    value, known = form.objective(x), form.objective(start)
    return start if (value < known if form.maximize else value > known) else x


def _tolerance_warning(form: MatrixForm, x: FloatArray) -> list[str]:
    """Name the worst violation of a point, if it is above the tolerance."""
    found = violations(form, x)
    if found.max <= FEASIBILITY_TOLERANCE:
        return []
    name, amount = found.worst(1)[0]
    return [f"the solution violates {name} by {amount:.3g}, above the tolerance {FEASIBILITY_TOLERANCE:g}"]
