"""What several solver plug-ins do with a solver's answer."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Solution, Status
from mipforest.solvers.watched_run import WatchedRun

#: Statuses that say that there is no optimum.
NO_OPTIMUM = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


def no_bound(form: MatrixForm) -> float:
    """Bound that says nothing: infinite, in the model's own sense."""
    return np.inf if form.maximize else -np.inf


def proven_bound(form: MatrixForm, status: Status, objective: float, dual_bound: float) -> float:
    """Proven bound on the optimal value, in the model's own sense.

    Parameters
    ----------
    form
        The model.
    status
        How the solve ended.
    objective
        Value of the point found, NaN without one.
    dual_bound
        The solver's own bound, infinite where it has none.
    """
    best = no_bound(form)
    if status is Status.INFEASIBLE:
        return -best
    if status in NO_OPTIMUM or status is Status.ERROR:
        return best
    if np.isnan(objective):
        return dual_bound
    # Round-off can carry the bound past the incumbent.
    return max(dual_bound, objective) if form.maximize else min(dual_bound, objective)


def better_point(form: MatrixForm, x: FloatArray | None, start: FloatArray) -> FloatArray:
    """Give the better of a solver's point and a feasible start: a limit may come before it has looked at the start."""
    if x is None:
        return start
    value, known = form.objective(x), form.objective(start)
    return start if (value < known if form.maximize else value > known) else x


def tolerance_warning(form: MatrixForm, x: FloatArray) -> list[str]:
    """Name the worst violation of a point, if it is above the tolerance."""
    found = violations(form, x)
    if found.max <= FEASIBILITY_TOLERANCE:
        return []
    name, amount = found.worst(1)[0]
    return [f"the solution violates {name} by {amount:.3g}, above the tolerance {FEASIBILITY_TOLERANCE:g}"]


def solve_constant(form: MatrixForm, watch: WatchedRun, solver: str, version: str) -> Solution:
    """Check a model without columns, which solvers call empty whether or not its rows hold."""
    x = np.zeros(0)
    holds = violations(form, x).max <= FEASIBILITY_TOLERANCE
    status = Status.OPTIMAL if holds else Status.INFEASIBLE
    objective = form.offset if holds else np.nan
    bound = proven_bound(form, status, objective, objective)
    watch.finish(objective, bound, 0)
    return Solution(
        status=status,
        x=x if holds else None,
        values=form.to_values(x) if holds else {},
        objective=objective,
        bound=bound,
        nodes=0,
        seconds=watch.seconds,
        solver=solver,
        solver_version=version,
        events=tuple(watch.events),
        message="a model without columns",
    )
