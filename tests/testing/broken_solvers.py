"""A correct solver with every feature, and solvers that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.errors import SolverError
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Solution, Status
from mipforest.solving import solve_form


class Bridged(Highs):
    """HiGHS with the bridges that give it quadratic objectives and indicator rows."""

    features = Highs.features | {Feature.QP, Feature.MIQP, Feature.INDICATORS}

    def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
        return solve_form(form, Highs(), options, **arguments)


def misreads(change: Callable[[MatrixForm], MatrixForm]) -> Bridged:
    """A solver that solves another model than the given one, and states that model's objective."""

    class Misreading(Bridged):
        def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
            return super().solve(change(form), options, **arguments)

    return Misreading()


def misreads_quietly(change: Callable[[MatrixForm], MatrixForm]) -> Bridged:
    """The same, but with objective and bound stated as the true objective of the point found."""

    class Misreading(Bridged):
        def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
            found = super().solve(change(form), options, **arguments)
            if found.x is None:
                return found
            value = form.objective(found.x)
            return replace(found, objective=value, bound=value, events=())

    return Misreading()


def misreports(change: Callable[[MatrixForm, Solution], Solution]) -> Bridged:
    """A solver that solves the model and gives back something else."""

    class Misreporting(Bridged):
        def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
            return change(form, super().solve(form, options, **arguments))

    return Misreporting()


def mishears(
    change: Callable[[SolveSettings, dict[str, Any]], tuple[SolveSettings, dict[str, Any]]],
) -> Bridged:
    """A solver that takes its options, start, priorities or listener for something else."""

    class Mishearing(Bridged):
        def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
            options, arguments = change(options, arguments)
            return super().solve(form, options, **arguments)

    return Mishearing()


class SwallowsErrors(Bridged):
    """Catches what ``on_progress`` raises."""

    def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
        listener = arguments.get("on_progress")

        def quiet(event: Any) -> bool:
            try:
                return bool(listener and listener(event))
            except Exception:
                return True

        return super().solve(form, options, **{**arguments, "on_progress": quiet})


class RaisesTooLate(Bridged):
    """Builds the model before it finds that it lacks a feature, and raises its own error."""

    features = Highs.features

    def solve(self, form: MatrixForm, options: SolveSettings, **arguments: Any) -> Solution:
        if form.is_quadratic:
            raise SolverError("cannot solve MIQP problems")
        return super().solve(form, options, **arguments)


# ------------------------------------------------------------------ ways to misread a model


def without_range_lower_sides(form: MatrixForm) -> MatrixForm:
    ranged = np.isfinite(form.row_lower) & np.isfinite(form.row_upper) & (form.row_lower < form.row_upper)
    return replace(form, row_lower=np.where(ranged, -np.inf, form.row_lower))


def without_range_upper_sides(form: MatrixForm) -> MatrixForm:
    ranged = np.isfinite(form.row_lower) & np.isfinite(form.row_upper) & (form.row_lower < form.row_upper)
    return replace(form, row_upper=np.where(ranged, np.inf, form.row_upper))


def with_equalities_as_inequalities(form: MatrixForm) -> MatrixForm:
    return replace(form, row_upper=np.where(form.row_lower == form.row_upper, np.inf, form.row_upper))


def with_nonnegative_columns(form: MatrixForm) -> MatrixForm:
    return replace(form, col_lower=np.maximum(form.col_lower, np.minimum(0.0, form.col_upper)))


def with_binary_integers(form: MatrixForm) -> MatrixForm:
    return replace(form, col_upper=np.where(form.integer, np.minimum(form.col_upper, 1.0), form.col_upper))


def without_integrality(form: MatrixForm) -> MatrixForm:
    return replace(form, integer=np.zeros(form.n_columns, dtype=bool))


def minimising(form: MatrixForm) -> MatrixForm:
    return replace(form, maximize=False)


def without_offset(form: MatrixForm) -> MatrixForm:
    return replace(form, offset=0.0)


def without_quadratic_terms(form: MatrixForm) -> MatrixForm:
    return replace(form, Q=None)


def with_halved_quadratic_terms(form: MatrixForm) -> MatrixForm:
    return replace(form, Q=None if form.Q is None else form.Q * 0.5)


def with_one_triangle(form: MatrixForm) -> MatrixForm:
    """Half of each product of two different variables."""
    if form.Q is None:
        return form
    diagonal = sparse.diags_array(form.Q.diagonal())
    return replace(form, Q=sparse.csr_array((form.Q + diagonal) * 0.5))


def without_indicators(form: MatrixForm) -> MatrixForm:
    return replace(form, indicators=IndicatorRows.none(form.n_columns))


def with_indicators_on_at_one(form: MatrixForm) -> MatrixForm:
    rows = form.indicators
    return replace(form, indicators=replace(rows, value=np.ones_like(rows.value)))


def with_one_sided_indicators(form: MatrixForm) -> MatrixForm:
    rows = form.indicators
    lower = np.where(np.isfinite(rows.upper), -np.inf, rows.lower)
    return replace(form, indicators=replace(rows, lower=lower))


# ------------------------------------------------------------------ ways to misreport a solution


def with_bound_on_the_wrong_side(form: MatrixForm, solution: Solution) -> Solution:
    past = -1.0 if form.maximize else 1.0
    return replace(solution, bound=solution.objective + past) if solution.found else solution


def always_optimal(form: MatrixForm, solution: Solution) -> Solution:
    return replace(solution, status=Status.OPTIMAL)


def with_values_of_another_point(form: MatrixForm, solution: Solution) -> Solution:
    return replace(solution, values={name: value + 1 for name, value in solution.values.items()})


def without_warnings(form: MatrixForm, solution: Solution) -> Solution:
    return replace(solution, warnings=())


def without_incumbent_when_stopped(form: MatrixForm, solution: Solution) -> Solution:
    if solution.status is not Status.INTERRUPTED:
        return solution
    return replace(solution, x=None, values={}, objective=np.nan)


def with_nan_bound(form: MatrixForm, solution: Solution) -> Solution:
    return replace(solution, bound=np.nan)


def with_events_backwards(form: MatrixForm, solution: Solution) -> Solution:
    return replace(solution, events=solution.events[::-1])


def printing(form: MatrixForm, solution: Solution) -> Solution:
    print("Set parameter Username")
    return solution


# ------------------------------------------------------------------ ways to mishear a call

Call = tuple[SolveSettings, dict[str, Any]]


def deaf_to_unknown_options(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    return replace(options, solver_options={}), arguments


def deaf_to_starts(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    return options, {**arguments, "start": None}


def deaf_to_the_gap(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    return replace(options, gap=1.0), arguments


def deaf_to_the_log(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    return replace(options, log=None), arguments


def deaf_to_interruption(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    listener = arguments.get("on_progress")
    deaf = None if listener is None else lambda event: (listener(event), False)[1]
    return replace(options, time_limit=min(options.time_limit or 2.0, 2.0)), {
        **arguments,
        "on_progress": deaf,
    }


def deaf_to_time_limits(options: SolveSettings, arguments: dict[str, Any]) -> Call:
    return replace(options, time_limit=None, solver_options={"mip_max_nodes": 1}), arguments
