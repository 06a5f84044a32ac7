r"""Solve a mixed-integer model with a convex quadratic objective through a solver that takes linear ones only.

Source: ``min c.x + 1/2 x'Qx`` with integers, Q positive semidefinite. Target: the same rows with
``min c.x + sum_k theta_k``, where ``theta_k >= q_k(x)`` for each connected component k of Q is replaced by tangents

.. math::  \theta_k \ge q_k(v) + \nabla q_k(v)^\top (x - v), \qquad q_k(x) = \tfrac12 x_k^\top Q_k x_k .

Every tangent lies below q_k, so the linear model's bound is a true bound. Outer approximation (Duran and
Grossmann 1986) tightens it:

1. Solve the continuous relaxation exactly and take the tangents there. By the optimality conditions the
   linear relaxation then has the same value as the quadratic one, so nothing is lost at the root.
2. Take the tangents at the start, if there is one; and, for a variable that stands alone in the objective, at a
   ladder of points down from its bound. Tangents at a and 2a miss ``x^2`` between them by at most a ninth.
3. Solve the linear model. Fix its integers and solve the convex quadratic rest exactly: an incumbent with its
   true objective. Take tangents at both points, and repeat until incumbent and bound meet.

One theta per component, not one for the whole objective: a separable objective gets one tangent family per
variable, which is much tighter for the same number of rows (Hijazi, Bonami and Ouorou 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.check import violations
from mipforest.model.matrix import Block, MatrixForm
from mipforest.solvers.base import Progress, SolveOptions, Solver
from mipforest.solvers.convexity import is_convex
from mipforest.solvers.errors import NotAllowed
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE
from mipforest.solvers.solution import Event, Solution, Status, relative_gap

NAME = "quadratic_to_tangents"

#: Points on each side of the ladder of tangents, each half the last. Below the last the square is small: 1/1000 of
#: its value at the bound.
LADDER = tuple(2.0**-k for k in range(1, 6))

#: Share of the asked gap left to the linear model; the rest is for the error of the tangents.
MILP_GAP_SHARE = 0.5


def solve_by_tangents(
    form: MatrixForm,
    linear_solver: Solver,
    quadratic_solver: Solver,
    options: SolveOptions,
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
    options, start, priorities, on_progress
        As for :meth:`Solver.solve <mipforest.solvers.base.Solver.solve>`; the time limit counts for all rounds together.

    Returns
    -------
    Solution
        With the exact objective of the point, and the best bound of the linear models.

    Raises
    ------
    NotAllowed
        If the objective is not convex.
    """
    if not is_convex(form):
        raise NotAllowed(
            "the quadratic objective is not convex, so tangents do not bound it; "
            "choose a solver with nonconvex quadratics, or rewrite the objective as a sum of squares"
        )
    return _OuterApproximation(form, linear_solver, quadratic_solver, options, priorities, on_progress).run(
        start
    )


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
        columns = np.flatnonzero(np.diff(Q.indptr)).astype(np.int64)
        inner = Q[columns][:, columns].tocsr()
        count, component = connected_components(inner, directed=False)
        return Components(inner, columns, component.astype(np.int64), int(count))

    def values(self, x: FloatArray) -> FloatArray:
        """(count,) value of every q_k at a point of the model."""
        part = x[self.columns]
        return np.bincount(self.component, weights=0.5 * part * (self.Q @ part), minlength=self.count)

    def tangents(self, x: FloatArray, n_columns: int) -> tuple[SparseMatrix, FloatArray]:
        """Rows ``gradient.x - theta <= value`` of the tangents at a point: (count, n + count) matrix and sides."""
        part = x[self.columns]
        gradient = self.Q @ part
        slopes = sparse.coo_array((gradient, (self.component, self.columns)), shape=(self.count, n_columns))
        rows = sparse.hstack([slopes, -sparse.eye_array(self.count)], format="csr")
        rows.eliminate_zeros()
        # q(v) + g.(x - v) <= theta, with g.v = 2 q(v):  g.x - theta <= q(v)
        return rows, self.values(x)


class _OuterApproximation:
    """State of one run: the incumbent, the bound, the tangents, the clock."""

    def __init__(
        self,
        form: MatrixForm,
        linear_solver: Solver,
        quadratic_solver: Solver,
        options: SolveOptions,
        priorities: IntArray | None,
        on_progress: Progress | None,
    ) -> None:
        assert form.Q is not None
        self.form = form
        self.minimised = _as_minimisation(form)
        self.components = Components.of(self.minimised.Q)
        self.linear_solver = linear_solver
        self.quadratic_solver = quadratic_solver
        self.options = options
        self.priorities = (
            None
            if priorities is None
            else np.concatenate([priorities, np.zeros(self.components.count, np.int64)])
        )
        self.on_progress = on_progress
        self.began = monotonic()
        self.x: FloatArray | None = None
        self.objective = np.inf
        self.bound = -np.inf
        self.start_objective = np.nan
        self.nodes = 0
        self.events: list[Event] = []
        self.warnings: list[str] = []
        self.tangent_rows: list[SparseMatrix] = []
        self.tangent_sides: list[FloatArray] = []
        self.stopped = False

    # ------------------------------------------------------------------ the algorithm

    def run(self, start: FloatArray | None) -> Solution:
        self._take_start(start)
        relaxed = self.quadratic_solver.solve(
            _relaxed(self.minimised), SolveOptions(time_limit=self._time_limit())
        )
        if relaxed.status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED):
            return self._solution(relaxed.status, relaxed.message)
        if relaxed.x is not None:
            self._add_tangents(relaxed.x)
        self._add_ladder(relaxed.x)
        while True:
            if self._seconds_left() == 0:
                return self._solution(Status.TIME_LIMIT)
            outcome = self._solve_linear()
            if outcome is not None:
                return self._solution(outcome.status, outcome.message)

    def _solve_linear(self) -> Solution | None:
        """One round; gives the linear model's outcome when it ends the run, else ``None``."""
        linear = self._linear_form()
        known = None if self.x is None else np.concatenate([self.x, self.components.values(self.x)])
        options = replace(self.options, time_limit=self._time_limit(), gap=self.options.gap * MILP_GAP_SHARE)
        found = self.linear_solver.solve(
            linear, options, start=known, priorities=self.priorities, on_progress=self._relay(self.nodes)
        )
        self.nodes += found.nodes
        self.warnings += [w for w in found.warnings if w not in self.warnings]
        if (
            found.status
            in (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED, Status.ERROR)
            and self.x is None
        ):
            return found
        self._raise_bound(found.bound)
        before = (self.objective, self.bound)
        fresh = False
        if found.x is not None:
            point = found.x[: self.form.n_columns]
            fresh = self._add_tangents(point)
            self._offer(point)
            completed = self._complete(point)
            if completed is not None:
                fresh |= self._add_tangents(completed)
                self._offer(completed)
        if self._closed():
            return replace(found, status=Status.OPTIMAL)
        if found.status is not Status.OPTIMAL or self.stopped:
            return replace(found, status=Status.INTERRUPTED) if self.stopped else found
        if not fresh and before == (self.objective, self.bound):
            self.warnings.append("the tangents cannot close the gap any further in double precision")
            return replace(found, status=Status.LIMIT)
        return None

    # ------------------------------------------------------------------ incumbents and bound

    def _take_start(self, start: FloatArray | None) -> None:
        if start is None:
            return
        if np.isnan(start).any():
            known = ~np.isnan(start[self.form.integer])
            completed = self._complete(start) if known.all() else None
            if completed is None:
                self.warnings.append(
                    "the partial start could not be completed: give values for all integer variables"
                )
                return
            start = completed
        worst = violations(self.form, start)
        if worst.max > FEASIBILITY_TOLERANCE:
            name, amount = worst.worst(1)[0]
            self.warnings.append(f"the start was dropped: {name} is violated by {amount:.3g}")
            return
        self._offer(start)
        self._add_tangents(start)
        self.start_objective = self.form.objective(start)

    def _complete(self, point: FloatArray) -> FloatArray | None:
        """Fix the integers of a point and solve the rest exactly."""
        fixed = np.round(point[self.form.integer])
        lower, upper = self.form.col_lower.copy(), self.form.col_upper.copy()
        lower[self.form.integer] = upper[self.form.integer] = fixed
        rest = replace(_relaxed(self.minimised), col_lower=lower, col_upper=upper)
        # A few seconds past the limit are better spent here than an incumbent without its true optimum.
        solved = self.quadratic_solver.solve(rest, SolveOptions())
        if solved.x is None or solved.status is not Status.OPTIMAL:
            return None
        solved.x[self.form.integer] = fixed
        return solved.x

    def _offer(self, x: FloatArray) -> None:
        """Take a point as the incumbent if it is feasible and better."""
        value = self.minimised.objective(x)
        if value < self.objective and violations(self.form, x).max <= FEASIBILITY_TOLERANCE:
            self.x, self.objective = x, value
            self._report(x)

    def _raise_bound(self, bound: float) -> None:
        # A bound above the incumbent says that nothing better exists; the optimum is then the incumbent.
        bound = min(bound, self.objective)
        if bound > self.bound:
            self.bound = bound
            self._report(None)

    def _closed(self) -> bool:
        return self.x is not None and relative_gap(self.objective, self.bound) <= self.options.gap

    # ------------------------------------------------------------------ tangents

    def _add_tangents(self, x: FloatArray) -> bool:
        """Add the tangents at a point, where they cut off the current thetas; say whether any was new."""
        rows, sides = self.components.tangents(x, self.form.n_columns)
        values = self.components.values(x)
        below = self._approximation(x)
        new = values > below + 1e-12 * np.maximum(1.0, values)
        if not new.any():
            return False
        self.tangent_rows.append(rows[np.flatnonzero(new)])
        self.tangent_sides.append(sides[new])
        return True

    def _add_ladder(self, relaxed: FloatArray | None) -> None:
        """Add tangents at points spread over the range of each variable that is a component of its own."""
        alone = (
            np.bincount(self.components.component, minlength=self.components.count)[self.components.component]
            == 1
        )
        columns = self.components.columns[alone]
        known = [np.abs(x[columns]).max(initial=0.0) for x in (relaxed, self.x) if x is not None]
        reach = np.maximum(np.abs(self.form.col_lower), np.abs(self.form.col_upper))
        # Without a bound, twice the largest value seen stands for the range.
        reach[np.isinf(reach)] = 2 * max(known, default=0.0)
        for share in LADDER:
            for sign in (1.0, -1.0):
                point = np.zeros(self.form.n_columns)
                point[columns] = sign * share * reach[columns]
                self._add_tangents(point)

    def _approximation(self, x: FloatArray) -> FloatArray:
        """(count,) value of each theta that the tangents so far imply at a point."""
        theta = np.zeros(self.components.count)
        n = self.form.n_columns
        for rows, sides in zip(self.tangent_rows, self.tangent_sides, strict=True):
            component = rows[:, n:].tocoo().col
            np.maximum.at(theta, component, rows[:, :n] @ x - sides)
        return theta

    def _linear_form(self) -> MatrixForm:
        """Write the linear model with all tangents so far."""
        form, count = self.minimised, self.components.count
        n = form.n_columns
        wide = sparse.csr_array((form.A.data, form.A.indices, form.A.indptr), shape=(form.n_rows, n + count))
        sides = np.concatenate([np.zeros(0), *self.tangent_sides])
        return replace(
            form,
            c=np.concatenate([form.c, np.ones(count)]),
            Q=None,
            A=sparse.vstack([wide, *self.tangent_rows], format="csr"),
            row_lower=np.concatenate([form.row_lower, np.full(len(sides), -np.inf)]),
            row_upper=np.concatenate([form.row_upper, sides]),
            # Each q_k is nonnegative: Q is positive semidefinite.
            col_lower=np.concatenate([form.col_lower, np.zeros(count)]),
            col_upper=np.concatenate([form.col_upper, np.full(count, np.inf)]),
            integer=np.concatenate([form.integer, np.zeros(count, dtype=bool)]),
            indicators=replace(form.indicators, A=sparse.csr_array((0, n + count))),
            columns=(*form.columns, Block("theta", n, (count,))),
            rows=(*form.rows, Block("tangent", form.n_rows, (len(sides),))),
        )

    # ------------------------------------------------------------------ clock, progress, result

    def _seconds_left(self) -> float:
        limit = self.options.time_limit
        return np.inf if limit is None else max(0.0, limit - self._elapsed())

    def _elapsed(self) -> float:
        return monotonic() - self.began

    def _time_limit(self) -> float | None:
        left = self._seconds_left()
        return None if np.isinf(left) else left

    def _relay(self, nodes_before: int) -> Callable[[Event], bool | None]:
        """Turn the linear solver's events into ours: true objectives, best bound."""

        def relay(event: Event) -> bool | None:
            if event.x is not None:
                self._offer(event.x[: self.form.n_columns])
            self._raise_bound(event.bound)
            return self._report(None, nodes_before + event.nodes)

        return relay

    def _report(self, x: FloatArray | None, nodes: int | None = None) -> bool:
        sign = -1.0 if self.form.maximize else 1.0
        objective = sign * self.objective if self.x is not None else np.nan
        event = Event(
            self._elapsed(), objective, sign * self.bound, self.nodes if nodes is None else nodes, x
        )
        last = self.events[-1] if self.events else None
        if last is None or (event.objective, event.bound) != (last.objective, last.bound):
            self.events.append(event)
        if self.on_progress is not None and self.on_progress(event):
            self.stopped = True
        return self.stopped

    def _solution(self, status: Status, message: str = "") -> Solution:
        sign = -1.0 if self.form.maximize else 1.0
        return Solution(
            status=status,
            x=self.x,
            values={} if self.x is None else self.form.to_values(self.x),
            objective=np.nan if self.x is None else self.form.objective(self.x),
            bound=sign * self.bound,
            nodes=self.nodes,
            seconds=self._elapsed(),
            solver=self.linear_solver.name,
            solver_version=self.linear_solver.version(),
            events=tuple(self.events),
            bridges=(NAME,),
            start_objective=self.start_objective,
            warnings=tuple(self.warnings),
            message=message,
        )


def _as_minimisation(form: MatrixForm) -> MatrixForm:
    return (
        replace(form, c=-form.c, Q=None if form.Q is None else -form.Q, offset=-form.offset, maximize=False)
        if form.maximize
        else form
    )


def _relaxed(form: MatrixForm) -> MatrixForm:
    return replace(form, integer=np.zeros(form.n_columns, dtype=bool))
