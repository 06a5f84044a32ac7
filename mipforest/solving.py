"""Solve a model with any solver, rewriting what the solver does not take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard, Unpack

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.bridges import Bridge, bridges
from mipforest.errors import NotAllowed, Unsupported
from mipforest.model import LinearExpr
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
from mipforest.solvers.base import NO_ROUNDING, Feature, Solver, get_solver, needed
from mipforest.solvers.bound_check import checked_against, only_proven
from mipforest.solvers.checks import judge_start, with_exact_integers
from mipforest.solvers.convexity import QUADRATIC_SOLVER
from mipforest.solvers.isolation import isolated
from mipforest.solvers.outer_approximation import solve_by_tangents
from mipforest.solvers.solution import Event, PooledSolution, Progress, Solution, Status
from mipforest.time_budget import TimeBudget

#: By part of a model that can be rewritten: the features of the solver that this leaves unused.
_FEATURES_REWRITTEN: Mapping[str, frozenset[Feature]] = {
    "quadratic": frozenset({Feature.QP, Feature.MIQP}),
    "indicator": frozenset({Feature.INDICATORS}),
}


@takes_settings(SolveKeywords, SolveSettings())
def solve(
    model: Model | MatrixForm,
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
    The model keeps the solution: ``x.value``, ``rows.dual`` and ``x.reduced_cost`` read it.

    Parameters
    ----------
    model
        The model; or flat arrays, as :func:`mipforest.files.read_mps` gives them, which keep no solution.
    solver
        Name of a solver (``mipforest solvers`` lists them), or a solver.
    start
        Values by block to start from, NaN where open; ``model.start`` when left out.
    on_progress
        Called with progress events; returning ``True`` stops the solve and keeps the incumbent.
    time_limit, gap, threads, seed, solver_options, bridges, log, isolate, dask
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
    if not isinstance(model, Model | MatrixForm):
        raise NotAllowed(
            f"{type(model).__name__} is no model: give a mipforest.Model or a matrix form; of a file, "
            "mipforest.Model.read(path) makes one"
        )
    owner = model if isinstance(model, Model) else None
    form = model.matrix() if isinstance(model, Model) else model
    values = owner.start if owner is not None and settings.start is None else settings.start
    solution = solve_form(
        form,
        plugin,
        settings,
        start=form.to_point(values) if values else None,
        priorities=None if owner is None else _priorities(owner, form),
        on_progress=on_progress,
    )
    if owner is not None:
        owner.store_solution(solution)
    return solution


class Session:
    """Solves one model again and again, by a solver that keeps it in between.

    A solve after changes of bounds, costs and sides alone (``x.upper = 3``, ``m.minimize(...)``, ``rows.lower = 2``)
    changes these numbers in the solver. After any other change the model is built anew, as the first time. Each solve
    of a model with integers starts from the last solution, where that is feasible still; HiGHS starts a linear
    programme from its last basis.

    Parameters
    ----------
    model
        The model.
    solver
        Name of a solver that keeps its model (``highs``, ``gurobi``), or such a solver.

    Raises
    ------
    Unsupported
        If the solver keeps no models.

    Examples
    --------
    >>> m = Model()
    >>> x = m.nonnegative("x", upper=5)
    >>> m.maximize(x)
    >>> with Session(m) as session:
    ...     first = session.solve().objective
    ...     x.upper = 7
    ...     (first, session.solve().objective)
    (5.0, 7.0)
    """

    def __init__(self, model: Model, solver: str | Solver = "highs") -> None:
        self.model = model
        self._solver = (solver if isinstance(solver, Solver) else get_solver(solver)).keeping()
        self._last: FloatArray | None = None

    @takes_settings(SolveKeywords, SolveSettings())
    def solve(
        self,
        *,
        start: Values | None = None,
        on_progress: Progress | None = None,
        settings: SolveSettings | None = None,
        **keywords: Unpack[SolveKeywords],
    ) -> Solution:
        """Solve the model as it is now; parameters and errors as for :func:`solve`."""
        settings = chosen_settings(settings, keywords, SolveSettings(), start=start)
        form = self.model.matrix()
        x = self._last
        if settings.start is None and not self.model.start and form.is_mip and _feasible(x, form):
            settings = replace(settings, start=form.to_values(x))
        solution = solve(self.model, self._solver, on_progress=on_progress, settings=settings)
        self._last = solution.x
        return solution

    def close(self) -> None:
        """Let the solver drop the model."""
        self._solver.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _feasible(x: FloatArray | None, form: MatrixForm) -> TypeGuard[FloatArray]:
    """Return whether a point of a model before it was changed is there, and feasible still."""
    return x is not None and len(x) == form.n_columns and violations(form, x).max <= FEASIBILITY_TOLERANCE


@takes_settings(SolveKeywords, SolveSettings())
def solution_pool(
    model: Model,
    k: int,
    solver: str | Solver = "highs",
    *,
    settings: SolveSettings | None = None,
    **keywords: Unpack[SolveKeywords],
) -> list[PooledSolution]:
    """Find the k best solutions of a model with integers that differ in these.

    One solve for each: a row cuts off the integers of a solution from a copy of the model, and the next one is the best
    of the others. Continuous variables are optimised again for the integers of each solution.

    Parameters
    ----------
    model
        The model.
    k
        Largest number of solutions, at least 1.
    solver
        Name of a solver that takes integers, or such a solver.
    time_limit, gap, threads, seed, solver_options, bridges, log, isolate, dask
        As for :func:`solve`, of each solve; the time limit is that of all. When it is over, the solutions found by then
        are returned.
    settings
        These at once, as one object.

    Returns
    -------
    list
        Best first, feasible up to the tolerance; fewer than k only if there are no others, or no time is left. Any
        solution that is not among them is no better than the last one by more than the gap.

    Raises
    ------
    Unsupported
        If the solver cannot take the model, or the model has no integers.
    NotAllowed
        If k is no such number.
    """
    settings = chosen_settings(settings, keywords, SolveSettings())
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise NotAllowed(f"k is {k!r}; give the number of solutions, 1 or more")
    plugin = solver if isinstance(solver, Solver) else get_solver(solver)
    form = model.matrix()
    if not form.integer.any():
        raise Unsupported(
            "a model without integers has no pool of solutions: its optimum, or a face of optima"
        )
    budget, rest, pool = TimeBudget(settings.time_limit), model.copy(), list[PooledSolution]()
    while len(pool) < k and not budget.expired:
        solution = solve(rest, plugin, settings=replace(settings, time_limit=budget.at_most()))
        if solution.x is None:
            break
        best = with_exact_integers(form, solution.x[: form.n_columns]) + 0.0  # no -0
        if not form.integer.all():
            best = _optimised_again(model, best, plugin, replace(settings, time_limit=budget.at_most()))
        if violations(form, best).max <= FEASIBILITY_TOLERANCE:
            pool.append(PooledSolution(form.objective(best), best, form.to_values(best)))
        if solution.status is not Status.OPTIMAL:
            break
        _cut_off(rest, form.to_values(best))
    return sorted(pool, key=lambda one: one.objective, reverse=form.maximize)


def _optimised_again(model: Model, x: FloatArray, solver: Solver, settings: SolveSettings) -> FloatArray:
    """Return a point of the same integers whose continuous variables are optimal, or the point if none is better."""
    form, rest = model.matrix(), model.copy()
    for name, values in form.to_values(x).items():
        whole = rest[name].integer
        rest[name][whole].fix(values[whole])
    found = solve(rest, solver, settings=replace(settings, gap=0.0)).x
    if found is None:
        return x
    again = with_exact_integers(form, found)
    better = (
        form.objective(again) > form.objective(x)
        if form.maximize
        else form.objective(again) < form.objective(x)
    )
    return again if better and violations(form, again).max <= FEASIBILITY_TOLERANCE else x


def _cut_off(rest: Model, values: Values) -> None:
    """Add rows to a model: some integer differs from its value.

    One at a bound by its distance from it, one between its bounds by a binary for either side.
    """
    differing = list[LinearExpr]()
    number = sum(name.startswith("differs_") for name in rest.constraints)
    for name, given in values.items():
        whole = rest[name].integer
        x, value = rest[name][whole], given[whole]
        low, high = value <= np.ceil(x.lower), value >= np.floor(x.upper)
        differing += [(x[low] - value[low]).sum(), (value[high] - x[high]).sum()]
        x, value = x[~(low | high)], value[~(low | high)]
        if value.size:
            free = f"differs_{number}_{name}"
            more, less = rest.binary(f"{free}_more", value.size), rest.binary(f"{free}_less", value.size)
            rest.add_indicator(f"{free}_more", more, 1, x >= value + 1)
            rest.add_indicator(f"{free}_less", less, 1, x <= value - 1)
            differing += [more.sum() + less.sum()]
    rest.add(f"differs_{number}", sum(differing[1:], differing[0]) >= 1)


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
    if settings.dask is not None:
        raise Unsupported(
            f"{solver.name} does not run on a Dask cluster; tree searches do, and take built problems"
        )
    alone = solver.aborts_on(form) if settings.isolate is None else settings.isolate
    if alone:
        solution = isolated(
            solve_form, form, solver, settings, start=start, priorities=priorities, on_progress=on_progress
        )
    else:
        solution = _bridged(form, solver, settings, start, priorities, on_progress, None)
    known = judge_start(form, start).full
    if known is not None:
        solution = checked_against(solution, form, known, gap=settings.gap)
    if solution.status is Status.ERROR and not any(
        solution.message in warning for warning in solution.warnings
    ):
        ended = f"{solution.solver} ended in an error: {solution.message or 'it gives no reason'}"
        warnings = (
            *solution.warnings,
            f"{ended}; nothing is proven: try another solver, or rescale the data",
        )
        return replace(solution, warnings=warnings)
    return solution


def _bridged(
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    start: FloatArray | None,
    priorities: IntArray | None,
    on_progress: Progress | None,
    last: Bridge | None,
) -> Solution:
    """Solve a model through every bridge that applies to it; ``last`` is the one that it is the result of."""
    unused = frozenset(feature for name in settings.bridges for feature in _FEATURES_REWRITTEN[name])
    missing = needed(form) - (solver.features - unused)
    for bridge in bridges():
        if bridge is not last and bridge.applies(form, missing):
            return _through(bridge, form, solver, settings, start, priorities, on_progress)
    if missing == {Feature.QP}:
        solution = _solve_as_continuous(form, solver, settings, on_progress)
    elif missing == {Feature.MIQP}:
        quadratic_solver = get_solver(QUADRATIC_SOLVER)
        solution = solve_by_tangents(
            form,
            solver,
            quadratic_solver,
            settings,
            start=start,
            priorities=priorities,
            on_progress=on_progress,
        )
    else:
        solution = solver.solve(form, settings, start=start, priorities=priorities, on_progress=on_progress)
    return only_proven(solution, form)


def _through(
    bridge: Bridge,
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    start: FloatArray | None,
    priorities: IntArray | None,
    on_progress: Progress | None,
) -> Solution:
    """Solve a rewritten model; return its solution as one of the model, with its point checked against this."""
    bridged = bridge.apply(form)
    unit = bridged.objective

    def undone(event: Event) -> Event:
        x = None if event.x is None else bridged.undo(event.x)
        return replace(event, objective=event.objective / unit, bound=event.bound / unit, x=x)

    inner = _bridged(
        bridged.form,
        solver,
        settings,
        None if start is None else bridged.carry(np.asarray(start, dtype=float)),
        priorities,
        None if on_progress is None else lambda event: on_progress(undone(event)),
        bridge,
    )
    solution = replace(
        inner,
        objective=inner.objective / unit,
        bound=inner.bound / unit,
        start_objective=inner.start_objective / unit,
        events=tuple(map(undone, inner.events)),
        bridges=(bridge.NAME, *inner.bridges),
        row_duals=None,
        reduced_costs=None,
    )
    if inner.x is None:
        return solution
    x, warnings, status = bridged.undo(inner.x), inner.warnings, inner.status
    worst = violations(form, x)
    if worst.max > FEASIBILITY_TOLERANCE:
        name, amount = worst.worst(1)[0]
        warnings += (
            f"through {bridge.NAME}, the solution violates {name} by {amount:.3g}, above the tolerance "
            f"{FEASIBILITY_TOLERANCE:g}: {bridge.ADVICE}",
        )
        if status is Status.OPTIMAL and worst.max > NO_ROUNDING:
            status = Status.LIMIT
    return replace(solution, status=status, x=x, values=form.to_values(x), warnings=warnings)


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
