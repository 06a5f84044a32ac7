r"""Solve a mixed-integer model with a convex quadratic objective through a solver of linear ones.

Source: ``min c.x + 1/2 x'Qx`` with integers, Q positive semidefinite. Target: the same rows with
``min c.x + sum_k theta_k``, where theta_k is bounded below by tangents of the k-th part of the quadratic, one for each
connected component of Q,

.. math::  q_k(x) = \tfrac12 x_k^\top Q_k x_k, \qquad
           \theta_k \ge q_k(v) + \nabla q_k(v)^\top (x - v) .

One theta per component, not one for the whole objective: a separable objective gets one tangent family per
variable, which is much tighter for the same number of rows (Hijazi, Bonami and Ouorou 2014).

Every tangent lies below its quadratic, so the linear model's bound is a true bound. Outer approximation (Duran and
Grossmann 1986) tightens it:

1. Solve the continuous relaxation exactly and take the tangents there. By the optimality conditions the
   linear relaxation then has the same value as the quadratic one, so nothing is lost at the root.
2. Take the tangents at the start, if there is one; and, for a variable that stands alone in the objective, at
   a ladder of points down from its bound. Tangents at a and 2a miss ``x^2`` between them by at most a ninth.
3. Solve the linear model. Fix its integers and solve the convex quadratic rest exactly: an incumbent with
   its true objective. Take tangents at both points, and repeat until incumbent and bound meet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import LicenseLimit, NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.checks import SMALL_ENTRY, judge_start, with_exact_integers
from mipforest.solvers.clarabel import TOLERANCE
from mipforest.solvers.convexity import is_convex
from mipforest.solvers.solution import Event, Progress, Solution, Status

#: Points of the ladder on each side of 0, as shares of a variable's range: each half the last. Below the
#: last, the square is small: 1/1000 of its value at the bound.
LADDER = tuple(2.0**-k for k in range(1, 6))

#: Reach of the ladder at most: beyond, the tangents' coefficients are too large for linear solvers.
FARTHEST = 1e4

#: A tangent counts as new if it lifts theta by more than this, absolutely and relative to q.
NEW = 1e-12


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of Q: who shares a theta.

    Attributes
    ----------
    Q
        (q, q) the rows and columns of Q that are not empty.
    columns
        (q,) the column of each.
    component
        (q,) the component of each, numbered from 0.
    count
        Number of components.
    """

    Q: SparseMatrix
    columns: IntArray
    component: IntArray
    count: int

    @staticmethod
    def of(Q: SparseMatrix) -> Components:
        """Find the components of a symmetric matrix."""
        from scipy.sparse.csgraph import (
            connected_components,  # late: slow to import, and most models are linear
        )

        columns = np.flatnonzero(np.diff(Q.indptr)).astype(np.int64)
        inner = Q[columns][:, columns].tocsr()
        count, component = connected_components(inner, directed=False)
        return Components(inner, columns, component.astype(np.int64), int(count))

    def values(self, x: FloatArray) -> FloatArray:
        """Return the (count,) value of every q_k at a point of the model."""
        part = x[self.columns]
        return self.sums(0.5 * part * (self.Q @ part))

    def sums(self, parts: FloatArray) -> FloatArray:
        """Return the (count,) sums over each component of (q,) numbers."""
        sums: FloatArray = np.bincount(self.component, weights=parts, minlength=self.count).astype(float)
        return sums

    def alone(self) -> IntArray:
        """Return the columns that are components of their own."""
        sizes = np.bincount(self.component, minlength=self.count)
        alone: IntArray = self.columns[sizes[self.component] == 1]
        return alone


class Tangents:
    """The tangents found so far for a model.

    Parameters
    ----------
    form
        A model to be minimised, with a convex quadratic objective and without indicator rows.

    Attributes
    ----------
    components
        Who shares a theta.
    """

    def __init__(self, form: MatrixForm) -> None:
        assert form.Q is not None
        self.form = form
        self.components = Components.of(form.Q)
        self._rows: list[SparseMatrix] = []
        self._sides: list[FloatArray] = []

    def extended(self, x: FloatArray) -> FloatArray:
        """Return the point of the linear models for a point of the model, with every theta at its q."""
        return np.concatenate([x, self.components.values(x)])

    def add(self, x: FloatArray, lift: float = 0.0) -> bool:
        """Add the tangents at a point where they lift theta; say whether any does.

        Parameters
        ----------
        x
            (n,) point.
        lift
            Least lift of theta that is worth a row.
        """
        rows, sides = self._at(x)
        values = self.components.values(x)
        new = values > self.theta(x) + np.maximum(lift, NEW * np.maximum(1.0, values))
        if not new.any():
            return False
        self._rows.append(rows[np.flatnonzero(new)])
        self._sides.append(sides[new])
        return True

    def add_ladder(self, seen: Iterable[FloatArray]) -> None:
        """Add tangents at points spread over the range of each variable that is a component of its own.

        Parameters
        ----------
        seen
            Points of the model. Without a bound, twice the largest value seen stands for the range.
        """
        columns = self.components.alone()
        lower, upper = self.form.col_lower[columns], self.form.col_upper[columns]
        reach = np.maximum(np.abs(lower), np.abs(upper))
        reach[np.isinf(reach)] = 2 * max((np.abs(x[columns]).max(initial=0.0) for x in seen), default=0.0)
        reach = np.minimum(reach, FARTHEST)
        for share in LADDER:
            for sign in (1.0, -1.0):
                point = np.zeros(self.form.n_columns)
                point[columns] = np.clip(sign * share * reach, lower, upper)
                self.add(point)

    def theta(self, x: FloatArray) -> FloatArray:
        """Return the (count,) least value of each theta at a point that the tangents so far allow."""
        theta = np.zeros(self.components.count)
        n = self.form.n_columns
        for rows, sides in zip(self._rows, self._sides, strict=True):
            component = rows[:, n:].tocoo().col
            np.maximum.at(theta, component, rows[:, :n] @ x - sides)
        return theta

    def _at(self, x: FloatArray) -> tuple[SparseMatrix, FloatArray]:
        """Return the rows ``gradient.x - theta <= side`` at a point: (count, n + count) matrix and (count,) sides."""
        parts = self.components
        gradient = parts.Q @ x[parts.columns]
        # q(v) + g.(x - v) <= theta, and g.v = 2 q(v):  g.x - theta <= q(v)
        sides = parts.values(x)
        # A solver that drops a coefficient tightens the row where the term would be negative: drop it here,
        # and give the side what it can be worth.
        with np.errstate(invalid="ignore"):
            worth = np.maximum(
                -gradient * self.form.col_lower[parts.columns], -gradient * self.form.col_upper[parts.columns]
            )
        small = (np.abs(gradient) <= SMALL_ENTRY) & np.isfinite(worth)
        sides = sides + parts.sums(np.where(small, worth, 0.0))
        gradient = np.where(small, 0.0, gradient)
        slopes = sparse.coo_array(
            (gradient, (parts.component, parts.columns)), shape=(parts.count, self.form.n_columns)
        )
        rows = sparse.hstack([slopes, -sparse.eye_array(parts.count)], format="csr")
        rows.eliminate_zeros()
        return rows, sides

    def linear_form(self) -> MatrixForm:
        """Write the linear model with all tangents so far; its last columns are the thetas."""
        form, count = self.form, self.components.count
        n = form.n_columns
        wide = sparse.csr_array((form.A.data, form.A.indices, form.A.indptr), shape=(form.n_rows, n + count))
        sides = np.concatenate([np.zeros(0), *self._sides])
        return replace(
            form,
            c=np.concatenate([form.c, np.ones(count)]),
            Q=None,
            A=sparse.vstack([wide, *self._rows], format="csr"),
            row_lower=np.concatenate([form.row_lower, np.full(len(sides), -np.inf)]),
            row_upper=np.concatenate([form.row_upper, sides]),
            # Each q_k is nonnegative: Q is positive semidefinite.
            col_lower=np.concatenate([form.col_lower, np.zeros(count)]),
            col_upper=np.concatenate([form.col_upper, np.full(count, np.inf)]),
            integer=np.concatenate([form.integer, np.zeros(count, dtype=bool)]),
            indicators=IndicatorRows.none(n + count),
            columns=(*form.columns, Block("theta", n, (count,))),
            rows=(*form.rows, Block("tangent", form.n_rows, (len(sides),))),
        )


#: Incumbent and bound that agree to this, absolutely or relatively, have met whatever gap was asked: the
#: accuracy of the quadratic solver.
ROUND_OFF = TOLERANCE


class Incumbent:
    """What a run of several solves knows of its one model: best point and bound, progress.

    All values are to be minimised; only events are in the model's own sense.

    Parameters
    ----------
    form
        The model, in its own sense.
    minimised
        The same model, to be minimised.
    settings
        Gap and time limit.
    on_progress
        Called with every event.

    Attributes
    ----------
    x
        (n,) the best point, or ``None``.
    objective, bound
        Its value, and the proven bound, never above it.
    nodes
        Branch-and-bound nodes of the solves that are over.
    events
        Recorded events, without points: those whose incumbent or bound differs from the one before.
    stopped
        Whether ``on_progress`` asked to stop.
    """

    def __init__(
        self, form: MatrixForm, minimised: MatrixForm, settings: SolveSettings, on_progress: Progress | None
    ) -> None:
        self.x: FloatArray | None = None
        self.objective = np.inf
        self.bound = -np.inf
        self.nodes = 0
        self.events: list[Event] = []
        self.stopped = False
        self._form, self._minimised = form, minimised
        self._settings, self._on_progress = settings, on_progress
        self._began = monotonic()
        self._unreported: FloatArray | None = None

    # ------------------------------------------------------------------ incumbent and bound

    def offer(self, x: FloatArray) -> None:
        """Take a point if it is feasible and better."""
        value = self._minimised.objective(x)
        if value < self.objective and violations(self._form, x).max <= FEASIBILITY_TOLERANCE:
            self.x, self.objective, self._unreported = x, value, x
            self.bound = min(self.bound, value)

    def offer_with_exact_integers(self, x: FloatArray) -> None:
        """Offer a solver's point unless it needs integers that are only nearly integral.

        Through a big-M row, those can pretend an objective that no exact point has.
        """
        exact = with_exact_integers(self._form, x)
        integers = exact[self._form.integer]
        if (integers == np.round(integers)).all():
            self.offer(exact)

    def raise_bound(self, bound: float) -> None:
        """Take a proven bound. One above the incumbent says that nothing better exists."""
        # Infinity is no bound of a model that has points: a search that is over forgets its cutoff.
        if bound < np.inf:
            self.bound = max(self.bound, min(bound, self.objective))

    @property
    def tolerance(self) -> float:
        """Distance at which incumbent and bound have met; 0 without an incumbent."""
        if self.x is None:
            return 0.0
        size = abs(self.objective)
        return max(self._settings.gap * size, ROUND_OFF * max(1.0, size))

    @property
    def closed(self) -> bool:
        """Whether incumbent and bound have met."""
        return self.x is not None and self.objective - self.bound <= self.tolerance

    # ------------------------------------------------------------------ clock and progress

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Wall time until the time limit; ``None`` without one."""
        limit = self._settings.time_limit
        return None if limit is None else max(0.0, limit - self.seconds)

    def report(self, nodes: int = 0) -> bool:
        """Report the state, with the nodes of the solve that is under way; whether the run is to stop."""
        sense = -1.0 if self._form.maximize else 1.0
        x, self._unreported = self._unreported, None
        event = Event(
            seconds=self.seconds,
            objective=np.nan if self.x is None else sense * self.objective,
            bound=sense * self.bound,
            nodes=self.nodes + nodes,
            x=x,
        )
        state = [event.objective, event.bound]
        last = [self.events[-1].objective, self.events[-1].bound] if self.events else []
        if not np.array_equal(state, last, equal_nan=True):
            self.events.append(replace(event, x=None))
        if self._on_progress is not None and self._on_progress(event):
            self.stopped = True
        return self.stopped

    def give_up(self, bound: float) -> None:
        """Forget the point: the model is infeasible (bound inf) or unbounded (-inf)."""
        self.x = self._unreported = None
        self.objective, self.bound = np.inf, bound


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
                message = f"with tangents for the quadratic objective, {error.message}"
                raise LicenseLimit(message, hint=error.hint, option=error.option) from error
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
