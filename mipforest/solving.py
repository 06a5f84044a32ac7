"""Solve a model with any solver, rewriting what the solver does not take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.bridges import indicator_to_big_m, quadratic_to_tangents, unscaled_to_scaled
from mipforest.bridges.indicator_to_big_m import Bridged
from mipforest.errors import Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm, Values
from mipforest.model.model import Model
from mipforest.settings import (
    FEASIBILITY_TOLERANCE,
    SolveKeywords,
    SolveSettings,
    chosen_settings,
    takes_settings,
)
from mipforest.solvers.base import Feature, Solver, needed
from mipforest.solvers.checks import judge_start
from mipforest.solvers.claims import beside, only_proven
from mipforest.solvers.convexity import QUADRATIC_SOLVER
from mipforest.solvers.isolation import isolated
from mipforest.solvers.registry import get_solver
from mipforest.solvers.solution import Event, Progress, Solution, Status

#: By part of a model that can be rewritten: the features of the solver that this leaves unused.
_FEATURES_REWRITTEN: Mapping[str, frozenset[Feature]] = {
    "quadratic": frozenset({Feature.QP, Feature.MIQP}),
    "indicator": frozenset({Feature.INDICATORS}),
}


@takes_settings(SolveKeywords, SolveSettings())
def solve(
    model: Model,
    solver: str | Solver = "highs",
    *,
    start: Values | None = None,
    on_progress: Progress | None = None,
    settings: SolveSettings | None = None,
    **keywords: Unpack[SolveKeywords],
) -> Solution:
    """Solve a model.

    What the solver does not take is rewritten by bridges, whose names stand in the solution: indicator
    rows as big-M rows, a convex quadratic objective of a mixed-integer model as tangents. A quadratic model
    without integers goes to Clarabel when the solver takes none; the solution names who solved it.

    Parameters
    ----------
    model
        The model.
    solver
        Name of a solver (``mipforest solvers`` lists them), or a solver.
    start
        Values by block to start from, NaN where open; ``model.start`` when left out.
    on_progress
        Called with progress events; returning ``True`` stops the solve and keeps the incumbent.
    time_limit, gap, threads, seed, solver_options, bridges, log, isolate
        The attributes of :class:`~mipforest.settings.SolveSettings` of these names, with the same defaults: no time
        limit, a gap of 1e-4, as many threads as the solver likes.
    settings
        These and the start at once, as one object.

    Raises
    ------
    SolverError
        If the solver is unknown or not installed, cannot take the model even through bridges, or an option is
        wrong.
    """
    settings = chosen_settings(settings, keywords, SolveSettings(), start=start)
    plugin = solver if isinstance(solver, Solver) else get_solver(solver)
    form = model.matrix()
    values = model.start if settings.start is None else settings.start
    return solve_form(
        form,
        plugin,
        settings,
        start=form.to_point(values) if values else None,
        priorities=_priorities(model, form),
        on_progress=on_progress,
    )


def solve_form(
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    *,
    start: FloatArray | None = None,
    priorities: IntArray | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Solve a matrix form from a point, which stands in place of ``settings.start``; see :func:`solve`."""
    if settings.certificate is not None:
        raise Unsupported(f"{solver.name} writes no certificate; tree searches do, and take built problems")
    alone = solver.aborts_on(form) if settings.isolate is None else settings.isolate
    if alone:
        solution = isolated(
            solve_form, form, solver, settings, start=start, priorities=priorities, on_progress=on_progress
        )
    elif unscaled_to_scaled.applies(form):
        solution = _solve_scaled(form, solver, settings, start, priorities, on_progress)
    else:
        solution = only_proven(_routed(form, solver, settings, start, priorities, on_progress), form)
    known = judge_start(form, start).full
    if known is not None:
        solution = beside(solution, form, known, gap=settings.gap)
    if solution.status is Status.ERROR and not any(solution.message in told for told in solution.warnings):
        ended = f"{solution.solver} ended in an error: {solution.message or 'it gives no reason'}"
        told = (*solution.warnings, f"{ended}; nothing is proven: try another solver, or rescale the data")
        return replace(solution, warnings=told)
    return solution


def _routed(
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    start: FloatArray | None,
    priorities: IntArray | None,
    on_progress: Progress | None,
) -> Solution:
    """Solve a model by the solver, or by what stands in for it."""
    unused = frozenset(feature for name in settings.bridges for feature in _FEATURES_REWRITTEN[name])
    missing = needed(form) - (solver.features - unused)
    # Tangents take no indicator rows, so these go first, whether or not the solver takes them.
    if form.indicators.n_rows and missing & {Feature.INDICATORS, Feature.MIQP}:
        return _solve_with_big_m(form, solver, settings, start, priorities, on_progress)
    if missing == {Feature.QP}:
        return _solve_as_continuous(form, solver, settings, on_progress)
    if missing == {Feature.MIQP}:
        return quadratic_to_tangents.solve_by_tangents(
            form,
            solver,
            get_solver(QUADRATIC_SOLVER),
            settings,
            start=start,
            priorities=priorities,
            on_progress=on_progress,
        )
    return solver.solve(form, settings, start=start, priorities=priorities, on_progress=on_progress)


def _solve_scaled(
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    start: FloatArray | None,
    priorities: IntArray | None,
    on_progress: Progress | None,
) -> Solution:
    """Solve a model in units that a solver's tolerances fit; give point, objective and bound in the old ones."""
    bridged = unscaled_to_scaled.apply(form)

    def undone(event: Event) -> Event:
        x = None if event.x is None else bridged.undo(event.x)
        return replace(
            event, objective=event.objective / bridged.objective, bound=event.bound / bridged.objective, x=x
        )

    def relay(event: Event) -> bool | None:
        return None if on_progress is None else on_progress(undone(event))

    inner = _routed(
        bridged.form,
        solver,
        settings,
        None if start is None else bridged.carry(np.asarray(start, dtype=float)),
        priorities,
        relay,
    )
    inner = replace(
        inner,
        objective=inner.objective / bridged.objective,
        bound=inner.bound / bridged.objective,
        start_objective=inner.start_objective / bridged.objective,
        events=tuple(map(undone, inner.events)),
    )
    found = _undone(inner, form, bridged, unscaled_to_scaled.NAME, "rescale the data")
    return only_proven(found, bridged.form)


def _solve_with_big_m(
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    start: FloatArray | None,
    priorities: IntArray | None,
    on_progress: Progress | None,
) -> Solution:
    """Solve a model with indicator rows through big-M rows, and check its point against the former."""
    bridged = indicator_to_big_m.apply(form)
    inner = solve_form(
        bridged.form,
        solver,
        settings,
        start=None if start is None else bridged.carry(start),
        priorities=priorities,
        on_progress=on_progress,
    )
    advice = "tighten the bounds of its columns, or choose a solver that takes indicator rows"
    return _undone(inner, form, bridged, indicator_to_big_m.NAME, advice)


def _undone(inner: Solution, form: MatrixForm, bridged: Bridged, bridge: str, advice: str) -> Solution:
    """Turn a solution of the rewritten model into one of the model, and check its point against this."""
    bridges = (bridge, *inner.bridges)
    if inner.x is None:
        return replace(inner, bridges=bridges)
    x = bridged.undo(inner.x)
    worst = violations(form, x)
    warnings = inner.warnings
    if worst.max > FEASIBILITY_TOLERANCE:
        name, amount = worst.worst(1)[0]
        warnings += (
            f"through {bridge}, the solution violates {name} by {amount:.3g}, above the tolerance "
            f"{FEASIBILITY_TOLERANCE:g}: {advice}",
        )
    return replace(inner, x=x, values=form.to_values(x), bridges=bridges, warnings=warnings)


def _solve_as_continuous(
    form: MatrixForm, solver: Solver, settings: SolveSettings, on_progress: Progress | None
) -> Solution:
    """Solve a continuous quadratic model for a solver that takes none; it needs no start."""
    found = get_solver(QUADRATIC_SOLVER).solve(
        form, replace(settings, solver_options={}), on_progress=on_progress
    )
    if not settings.solver_options:
        return found
    ignored = (
        f"the options {', '.join(settings.solver_options)} of {solver.name} were not used: "
        f"{QUADRATIC_SOLVER} solved this continuous quadratic model"
    )
    return replace(found, warnings=(*found.warnings, ignored))


def _priorities(model: Model, form: MatrixForm) -> IntArray | None:
    if not model.priorities:
        return None
    priorities = np.zeros(form.n_columns, dtype=np.int64)
    for name, values in model.priorities.items():
        priorities[model[name].columns] = values
    return priorities
