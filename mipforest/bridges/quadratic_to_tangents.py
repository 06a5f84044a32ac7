r"""Solve a mixed-integer model with a convex quadratic objective through a solver of linear ones.

Source: ``min c.x + 1/2 x'Qx`` with integers, Q positive semidefinite. Target: the same rows with
``min c.x + sum_k theta_k``, where theta_k is bounded below by tangents of the k-th part of the quadratic
(:mod:`mipforest.bridges.tangents`). Every tangent lies below its quadratic, so the linear model's bound is a
true bound. Outer approximation (Duran and Grossmann 1986) tightens it:

1. Solve the continuous relaxation exactly and take the tangents there. By the optimality conditions the
   linear relaxation then has the same value as the quadratic one, so nothing is lost at the root.
2. Take the tangents at the start, if there is one; and, for a variable that stands alone in the objective, at
   a ladder of points down from its bound. Tangents at a and 2a miss ``x^2`` between them by at most a ninth.
3. Solve the linear model. Fix its integers and solve the convex quadratic rest exactly: an incumbent with
   its true objective. Take tangents at both points, and repeat until incumbent and bound meet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.bridges.tangents import Incumbent, Tangents
from mipforest.errors import LicenseLimit, NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.checks import judge_start, with_exact_integers
from mipforest.solvers.convexity import is_convex
from mipforest.solvers.solution import Event, Progress, Solution, Status

NAME = "quadratic_to_tangents"

#: Share of the asked gap left to the linear model; the rest is for the error of the tangents.
MILP_GAP_SHARE = 0.5

#: A tangent is worth a row if it lifts theta by this share of the gap asked.
WORTH = 0.01

#: Seconds beyond the time limit within which the exact solution of an incumbent's continuous part has to end.
GRACE = 1.0

#: What ends a run: why, and the word of the solver that ended it.
End = tuple[Status, str]

_STOPPED: End = (Status.INTERRUPTED, "stopped on request")

_NO_OPTIMUM = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


def solve_by_tangents(
    form: MatrixForm,
    linear_solver: Solver,
    quadratic_solver: Solver,
    settings: SolveSettings,
    *,
    start: FloatArray | None = None,
    priorities: IntArray | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Solve a convex MIQP by outer approximation.

    Parameters
    ----------
    form
        A model with a convex quadratic objective (concave when maximising), without indicator rows.
    linear_solver
        Solves the mixed-integer linear models.
    quadratic_solver
        Solves the continuous quadratic ones.
    settings, start, priorities, on_progress
        As for :meth:`Solver.solve <mipforest.solvers.base.Solver.solve>`; the time limit counts for all
        rounds together. Ctrl-C ends the run with the incumbent, as ``True`` from ``on_progress`` does.

    Returns
    -------
    Solution
        With the exact objective of the point, and the best bound of the linear models.

    Raises
    ------
    NotAllowed
        If the objective is not convex, or the start has the wrong length.
    LicenseLimit
        If already the first linear model is beyond the linear solver's licence.
    KeyboardInterrupt
        At the second Ctrl-C while the linear solver runs.
    """
    if not is_convex(form):
        raise NotAllowed(
            "the quadratic objective is not convex, so tangents do not bound it; "
            "choose a solver with nonconvex quadratics, or rewrite the objective as a sum of squares"
        )
    if start is not None and np.shape(start) != (form.n_columns,):
        raise NotAllowed(f"the start has shape {np.shape(start)}, the model has {form.n_columns} columns")
    run = _OuterApproximation(form, linear_solver, quadratic_solver, settings, priorities, on_progress)
    return run.solve(start)


class _OuterApproximation:
    """One run. All values are to be minimised."""

    def __init__(
        self,
        form: MatrixForm,
        linear_solver: Solver,
        quadratic_solver: Solver,
        settings: SolveSettings,
        priorities: IntArray | None,
        on_progress: Progress | None,
    ) -> None:
        self.form = form
        self.minimised = _as_minimisation(form)
        self.incumbent = Incumbent(form, self.minimised, settings, on_progress)
        self.tangents = Tangents(self.minimised)
        self.linear_solver = linear_solver
        self.quadratic_solver = quadratic_solver
        self.settings = settings
        no_priority = np.zeros(self.tangents.components.count, np.int64)
        self.priorities = None if priorities is None else np.concatenate([priorities, no_priority])
        self.start_objective = np.nan
        self.open_start: FloatArray | None = None
        self.relaxation_solved = False
        self.linear_solver_asked = False
        self.linear_solver_runs = False
        self.linear_solver_found = False
        self.linear_bound_counts = True
        self.warnings: list[str] = []

    # ------------------------------------------------------------------ the algorithm

    def solve(self, start: FloatArray | None) -> Solution:
        """Run, and give the incumbent at Ctrl-C."""
        try:
            return self._solution(*self._run(start))
        except KeyboardInterrupt:
            # The linear solver raises it only at the second Ctrl-C: the user does not want to wait.
            if self.linear_solver_runs:
                raise
            return self._solution(Status.INTERRUPTED, "interrupted between two solves")

    def _run(self, start: FloatArray | None) -> End:
        if start is not None:
            self._take_start(np.asarray(start, dtype=float))
        end = _STOPPED if self.incumbent.stopped else self._solve_relaxation()
        while end is None:
            end = self._solve_linear()
        return end

    def _solve_relaxation(self) -> End | None:
        """Take bound and tangents from the continuous relaxation."""
        incumbent = self.incumbent
        limit = SolveSettings(time_limit=incumbent.seconds_left)
        relaxed = self.quadratic_solver.solve(_relaxed(self.minimised), limit)
        incumbent.stopped |= relaxed.stopped
        if relaxed.x is None:
            self.warnings += relaxed.warnings
        if relaxed.status is Status.INFEASIBLE and incumbent.x is None:
            return Status.INFEASIBLE, relaxed.message
        if relaxed.status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED):
            # Endless improvement of the relaxation is one of the model, if this has a point at all.
            known = incumbent.x is not None
            return Status.UNBOUNDED if known else Status.INFEASIBLE_OR_UNBOUNDED, relaxed.message
        if relaxed.status is Status.OPTIMAL and relaxed.x is not None:
            self.relaxation_solved = True
            # Rounded, it may be a point of the model.
            incumbent.offer_with_exact_integers(relaxed.x)
            incumbent.raise_bound(relaxed.bound)
            self.tangents.add(relaxed.x)
        self.tangents.add_ladder([x for x in (relaxed.x, incumbent.x) if x is not None])
        incumbent.report()
        return (Status.OPTIMAL, relaxed.message) if incumbent.closed else None

    def _solve_linear(self) -> End | None:
        """Do one round; give the end of the run, or ``None`` if another round is due."""
        incumbent = self.incumbent
        if incumbent.stopped:
            return _STOPPED
        if incumbent.seconds_left == 0:
            return Status.TIME_LIMIT, "time limit reached"
        try:
            found = self._linear_solution()
        except LicenseLimit as error:
            if not self.linear_solver_found:
                told = f"with tangents for the quadratic objective, {error.message}"
                raise LicenseLimit(told, hint=error.hint, option=error.option) from error
            # The tangents outgrew the licence: what was found before them counts.
            self.warnings.append(f"stopped early: with more tangents, {error}")
            return Status.LIMIT, "licence limit"
        self.linear_solver_found = True
        incumbent.nodes += found.nodes
        self.warnings += [warning for warning in found.warnings if warning not in self.warnings]
        if found.status in _NO_OPTIMUM:
            return self._without_optimum(found)
        incumbent.raise_bound(found.bound)
        fresh = False if found.x is None else self._take_linear_point(found.x[: self.form.n_columns])
        incumbent.report()
        if incumbent.closed:
            return Status.OPTIMAL, found.message
        if incumbent.stopped:
            return _STOPPED
        if found.status is not Status.OPTIMAL:
            return found.status, found.message
        if not fresh:
            self.warnings.append("the tangents cannot close the gap any further in double precision")
            return Status.LIMIT, found.message
        return None

    def _linear_solution(self) -> Solution:
        start = None
        if self.incumbent.x is not None:
            start = self.tangents.extended(self.incumbent.x)
        elif self.open_start is not None:
            open_theta = np.full(self.tangents.components.count, np.nan)
            start, self.open_start = np.concatenate([self.open_start, open_theta]), None
        settings = replace(
            self.settings,
            time_limit=self.incumbent.seconds_left,
            gap=self.settings.gap * MILP_GAP_SHARE,
        )
        form = self.tangents.linear_form()
        # Its events know nothing of the entries that the solver drops.
        self.linear_bound_counts = not self.linear_solver.lost(form, settings).tightens
        self.linear_solver_asked = self.linear_solver_runs = True
        found = self.linear_solver.solve(
            form, settings, start=start, priorities=self.priorities, on_progress=self._relay
        )
        self.linear_solver_runs = False
        # The next round has a worker of its own, which knows nothing of a Ctrl-C that came in this one.
        self.incumbent.stopped |= found.stopped
        return found

    def _relay(self, event: Event) -> bool:
        """Turn the linear solver's events into ours: true objectives, best bound."""
        if event.x is not None:
            self.incumbent.offer_with_exact_integers(event.x[: self.form.n_columns])
        # A solver cuts off what is worse than its own incumbent; whose linear value may be below the true.
        least = event.bound if np.isnan(event.objective) else min(event.bound, event.objective)
        if self.linear_bound_counts:
            self.incumbent.raise_bound(least)
        return self.incumbent.report(event.nodes)

    def _without_optimum(self, found: Solution) -> End:
        """Say what it means that the linear model (the model's rows, and tangents) has no optimum."""
        if self.incumbent.x is not None:
            return Status.ERROR, f"a feasible point is known, but the linear model is called {found.status}"
        if found.status is Status.INFEASIBLE:
            return found.status, found.message
        if not self.relaxation_solved:
            reason = f"the relaxation was not solved, and without it the linear model is {found.status}"
            return Status.ERROR, reason
        # The tangents at the relaxation's optimum bound the linear model from below.
        if found.status is Status.INFEASIBLE_OR_UNBOUNDED:
            return Status.INFEASIBLE, found.message
        return Status.ERROR, "the linear model is called unbounded, but its relaxation is bounded"

    def _take_linear_point(self, point: FloatArray) -> bool:
        """Take tangents and an incumbent from a linear model's point; say whether a tangent was new."""
        incumbent = self.incumbent
        lift = incumbent.tolerance * WORTH / self.tangents.components.count
        fresh = self.tangents.add(point, lift)
        completed = self._complete(point)
        if completed is None:
            # The solver's point itself, with integers as near as its tolerance allows.
            incumbent.offer(with_exact_integers(self.form, point))
            return fresh
        incumbent.offer_with_exact_integers(point)
        incumbent.offer(completed)
        return self.tangents.add(completed, lift) or fresh

    # ------------------------------------------------------------------ start, and exact incumbents

    def _take_start(self, start: FloatArray) -> None:
        judged = judge_start(self.form, start)
        if judged.full is not None:
            self._accept_start(judged.full)
            return
        integers = start[self.form.integer]
        if np.isnan(integers).any() and Feature.PARTIAL_START in self.linear_solver.features:
            self.open_start = start
            return
        # Comparison with NaN is false, so open integers are not integral.
        integral = (np.abs(integers - np.round(integers)) <= FEASIBILITY_TOLERANCE).all()
        completed = self._complete(start) if integral else None
        if completed is not None and violations(self.form, completed).max > FEASIBILITY_TOLERANCE:
            completed = None
        self.warnings += judged.warnings(taken=completed is not None)
        if completed is not None:
            self._accept_start(completed)

    def _accept_start(self, x: FloatArray) -> None:
        self.incumbent.offer(x)
        self.tangents.add(x)
        self.start_objective = self.form.objective(x)
        self.incumbent.report()

    def _complete(self, point: FloatArray) -> FloatArray | None:
        """Fix the integers of a point and solve the rest exactly."""
        limit = self.settings.time_limit
        if limit is not None:
            limit += GRACE - self.incumbent.seconds
            if limit <= 0:
                return None
        return with_best_rest(self.minimised, point, self.quadratic_solver, SolveSettings(time_limit=limit))

    # ------------------------------------------------------------------ result

    def _solution(self, status: Status, message: str) -> Solution:
        incumbent = self.incumbent
        if status in _NO_OPTIMUM:
            incumbent.give_up(np.inf if status is Status.INFEASIBLE else -np.inf)
        incumbent.report()
        if self.settings.solver_options and not self.linear_solver_asked:
            self.warnings.append(
                f"the options {', '.join(self.settings.solver_options)} of {self.linear_solver.name} were not used: "
                f"the run ended before its first linear model"
            )
        x = incumbent.x
        return Solution(
            status=status,
            x=x,
            values={} if x is None else self.form.to_values(x),
            objective=np.nan if x is None else self.form.objective(x),
            bound=-incumbent.bound if self.form.maximize else incumbent.bound,
            nodes=incumbent.nodes,
            seconds=incumbent.seconds,
            solver=self.linear_solver.name,
            solver_version=self.linear_solver.version(),
            events=tuple(incumbent.events),
            bridges=(NAME,),
            start_objective=self.start_objective,
            warnings=tuple(self.warnings),
            message=message,
            stopped=incumbent.stopped,
        )


def with_best_rest(
    form: MatrixForm, point: FloatArray, quadratic_solver: Solver, settings: SolveSettings
) -> FloatArray | None:
    """Return the best point of a model to be minimised with the rounded integers of a point; ``None`` without one."""
    fixed = np.round(point[form.integer])
    lower, upper = form.col_lower.copy(), form.col_upper.copy()
    lower[form.integer] = upper[form.integer] = fixed
    rest = replace(_relaxed(form), col_lower=lower, col_upper=upper)
    solved = quadratic_solver.solve(rest, settings)
    if solved.x is None or solved.status is not Status.OPTIMAL:
        return None
    x = solved.x.copy()
    x[form.integer] = fixed
    return x


def first_tangents(form: MatrixForm, quadratic_solver: Solver, start: FloatArray | None = None) -> Tangents:
    """Return the tangents that the first linear model has: at the relaxation's optimum, at a start and the ladder.

    Parameters
    ----------
    form
        A model to be minimised with a convex quadratic objective, without indicator rows.
    quadratic_solver
        Solves its continuous relaxation.
    start
        (n,) a point, or ``None``.

    Raises
    ------
    NotAllowed
        If the model is another one: there is nothing that tangents could stand for, or they are no bound.
    """
    if form.Q is None or form.indicators.n_rows or form.maximize or not is_convex(form):
        raise NotAllowed(
            f"{form.name or 'the model'} has no convex quadratic objective to be minimised without indicator rows, and "
            "tangents stand for nothing else; leave the bridge out"
        )
    tangents = Tangents(form)
    relaxed = quadratic_solver.solve(_relaxed(form), SolveSettings())
    points = [point for point in (start, relaxed.x) if point is not None]
    for point in points:
        tangents.add(point)
    tangents.add_ladder(points)
    return tangents


def _as_minimisation(form: MatrixForm) -> MatrixForm:
    return (
        replace(form, c=-form.c, Q=None if form.Q is None else -form.Q, offset=-form.offset, maximize=False)
        if form.maximize
        else form
    )


def _relaxed(form: MatrixForm) -> MatrixForm:
    return replace(form, integer=np.zeros(form.n_columns, dtype=bool))
