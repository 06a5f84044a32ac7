"""Clarabel: convex quadratic and linear programmes without integers, to high accuracy in milliseconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm, scale_rows, stack_rows
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Answer, Feature, PlainSolver
from mipforest.solvers.bound_check import no_bound
from mipforest.solvers.checks import unknown_option, writable
from mipforest.solvers.convexity import require_convex
from mipforest.solvers.solution import Status
from mipforest.solvers.worker import SolverLate, Worker, left_behind

#: Asked of feasibility and gap: a thousandth of the tolerance that the exact values are compared at, and
#: within reach of double precision on scaled data.
TOLERANCE = 1e-9

#: A point that Clarabel calls less than solved counts as optimal up to this relative gap.
ACCEPTED_GAP = 1e-6

#: Most matrix entries of a model that is solved in the calling thread: an iteration takes milliseconds, and a thread
#: would take as long again.
MAX_ENTRIES_HERE = 10_000

#: Our status for each of Clarabel's that carries no point to judge.
STATUS = {
    "PrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.INFEASIBLE_OR_UNBOUNDED,
    "MaxTime": Status.TIME_LIMIT,
    "MaxIterations": Status.LIMIT,
}

#: Clarabel's statuses that may come with an optimal point.
JUDGED = ("Solved", "AlmostSolved", "InsufficientProgress", "NumericalError")


class Clarabel(PlainSolver):
    """The interior-point solver Clarabel (Goulart and Chen, 2024).

    - Fixed columns are substituted, so a model whose integers were fixed becomes as small as it is.
    - ``OPTIMAL`` asks for a point within 1e-6 of all rows and bounds, and a relative gap within 1e-6,
      whatever Clarabel calls it; a point that it calls less than solved leaves a warning.
    - ``Solution.bound`` is the dual objective: valid up to the dual residual, about 1e-9 relative.
    - ``SolveSettings.gap`` and ``seed`` play no part: the method is deterministic and goes to 1e-9.
    - It cannot be asked to stop, and looks at its clock once per iteration: where that takes too long, it is
      left behind, without a point, and the end of the program waits for it (the command line does not).
    """

    name: ClassVar[str] = "clarabel"
    package: ClassVar[str] = "clarabel"
    install: ClassVar[str] = "clarabel"
    features: ClassVar[frozenset[Feature]] = frozenset({Feature.LP, Feature.QP})
    keeps_gap: ClassVar[bool] = False

    def run(self, form: MatrixForm, settings: SolveSettings, worker: Worker) -> Answer:
        """Solve a model; there is one progress event, the last.

        Raises
        ------
        NotAllowed
            For a nonconvex objective, or an option that Clarabel refuses.
        """
        require_convex(form, self.name)
        warnings, duals = [], None
        free = form.col_lower != form.col_upper
        if free.any():
            try:
                status, x, bound, message, duals = _solve_in_time(form, free, settings, worker)
            except SolverLate:
                status = Status.INTERRUPTED if worker.stop.is_set() else Status.TIME_LIMIT
                x, bound, message = None, no_bound(form), left_behind("Clarabel")
                warnings.append(message)
        else:
            x = form.col_lower.copy()
            holds = violations(form, x).rows.max(initial=0.0) <= FEASIBILITY_TOLERANCE
            status, message = (Status.OPTIMAL if holds else Status.INFEASIBLE), "every column is fixed"
            bound, x = (form.objective(x), x) if holds else (no_bound(form), None)
        if status is Status.OPTIMAL and message not in ("Solved", "every column is fixed"):
            warnings.append(
                f"Clarabel ended with {message}; the point was checked to be optimal within {ACCEPTED_GAP:g}"
            )
        return Answer(status, x, bound, warnings=warnings, message=message, row_duals=duals)


#: Status, point, bound, Clarabel's word, and the duals of the rows.
Found = tuple[Status, FloatArray | None, float, str, FloatArray | None]


def _solve_in_time(form: MatrixForm, free: BoolArray, settings: SolveSettings, worker: Worker) -> Found:
    """Return what :func:`_solve` finds; a large model is left behind where it does not end in time."""
    if form.A.nnz + (0 if form.Q is None else form.Q.nnz) <= MAX_ENTRIES_HERE:
        return _solve(form, free, settings)
    return worker.call(lambda: _solve(form, free, settings), seconds=settings.time_limit, leave=True)


def _solve(form: MatrixForm, free: BoolArray, settings: SolveSettings) -> Found:
    """Solve a model with free columns."""
    solution, rows, sides = _run(form, free, settings)
    word = str(solution.status)
    if word in JUDGED:
        x = np.clip(_filled(form, free, np.array(solution.x)), form.col_lower, form.col_upper)
        objective = form.objective(x)
        dual = form.objective(_filled(form, free, 0.0)) + _sign(form) * solution.obj_val_dual
        close = abs(objective - dual) <= ACCEPTED_GAP * max(1.0, abs(objective))
        if violations(form, x).max <= FEASIBILITY_TOLERANCE and close:
            bound = max(objective, dual) if form.maximize else min(objective, dual)
            # Stationarity is q + Pv + G'z = 0, and the rows of G are rows of A times their sides.
            duals, of_row = np.zeros(form.n_rows), rows < form.n_rows
            np.add.at(duals, rows[of_row], -_sign(form) * (sides[of_row] * np.array(solution.z)[of_row]))
            return Status.OPTIMAL, x, bound, word, duals
    status = STATUS.get(word, Status.ERROR)
    if word == "DualInfeasible":
        # A direction of endless improvement: unbounded, if there is a point to start from.
        flat = replace(form, c=np.zeros(form.n_columns), Q=None)
        if str(_run(flat, free, settings)[0].status) == "Solved":
            status = Status.UNBOUNDED
    return status, None, no_bound(form), word, None


def _run(form: MatrixForm, free: BoolArray, settings: SolveSettings) -> tuple[Any, IntArray, FloatArray]:
    """Solve ``minimise 1/2 v'Pv + q.v, G v + s = h, s in cones`` over the free columns v.

    Returns
    -------
    solution
        Clarabel's.
    rows, sides
        Of each row of G the number of the row of A, or behind these of the free column, that it is, and its sign.
    """
    import clarabel

    at_zero = _filled(form, free, 0.0)
    gradient = form.c if form.Q is None else form.c + form.Q @ at_zero
    A, Q = form.A, sparse.csr_array((form.n_columns, form.n_columns)) if form.Q is None else form.Q
    if not free.all():
        A, Q = A[:, free], Q[free][:, free]
    P = sparse.triu(_sign(form) * Q, format="csc")
    fixed_part = form.A @ at_zero
    rows = stack_rows([A, _identity(A.shape[1])], A.shape[1])
    lower = np.concatenate([form.row_lower - fixed_part, form.col_lower[free]])
    upper = np.concatenate([form.row_upper - fixed_part, form.col_upper[free]])
    equal = np.flatnonzero(lower == upper)
    below = np.flatnonzero((lower != upper) & (upper < np.inf))
    above = np.flatnonzero((lower != upper) & (lower > -np.inf))
    n_equal, n_inequal = len(equal), len(below) + len(above)
    sides = np.repeat([1.0, 1.0, -1.0], [n_equal, len(below), len(above)])
    taken = np.concatenate([equal, below, above])
    G = scale_rows(rows[taken], sides)
    h = np.concatenate([upper[equal], upper[below], -lower[above]])
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(n_inequal)]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(P),
        _sign(form) * gradient[free],
        sparse.csc_matrix(G),
        h,
        cones,
        native_settings(settings),
    )
    if settings.log is not None:
        solver.print_to_file(str(writable(settings.log)))
    return solver.solve(), taken, sides


def _identity(n: int) -> SparseMatrix:
    """Return the (n, n) identity; node problems are so small that scipy's own takes a share of their time."""
    return sparse.csr_array((np.ones(n), np.arange(n), np.arange(n + 1)), shape=(n, n))


def native_settings(settings: SolveSettings) -> Any:
    """Return Clarabel's settings for ours."""
    import clarabel

    native = clarabel.DefaultSettings()
    native.verbose = settings.log is not None
    native.tol_gap_abs = native.tol_gap_rel = native.tol_feas = TOLERANCE
    if settings.time_limit is not None:
        native.time_limit = settings.time_limit
    if settings.threads is not None:
        native.max_threads = settings.threads
    for name, value in settings.solver_options.items():
        if name.startswith("_") or not hasattr(native, name):
            known = [known for known in dir(native) if not known.startswith("_")]
            raise unknown_option("Clarabel", name, known)
        try:
            setattr(native, name, value)
        except (TypeError, ValueError, OverflowError) as error:
            raise NotAllowed(f"Clarabel refuses option {name} = {value!r}: {error}") from error
    return native


def _filled(form: MatrixForm, free: BoolArray, value: FloatArray | float) -> FloatArray:
    """Return the (n,) point with the fixed columns at their values and the free ones at ``value``."""
    x = form.col_lower.copy()
    x[free] = value
    return x


def _sign(form: MatrixForm) -> float:
    """Factor that turns the objective into one to minimise."""
    return -1.0 if form.maximize else 1.0
