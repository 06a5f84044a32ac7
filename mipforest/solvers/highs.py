"""HiGHS: linear and mixed-integer linear programmes, and convex quadratic ones without integers."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.base import Feature, Progress, SolveOptions, Solver
from mipforest.solvers.convexity import require_convex
from mipforest.solvers.duality import dual_bound
from mipforest.solvers.integrality import FEASIBILITY_TOLERANCE, with_exact_integers
from mipforest.solvers.solution import Solution, Status
from mipforest.solvers.watched_run import WatchedRun

if TYPE_CHECKING:
    from mipforest.solvers.highs_session import HighsSession

#: Our status for each HighsModelStatus that is not an error.
STATUS = {
    "kOptimal": Status.OPTIMAL,
    "kInfeasible": Status.INFEASIBLE,
    "kUnbounded": Status.UNBOUNDED,
    "kUnboundedOrInfeasible": Status.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Status.TIME_LIMIT,
    "kInterrupt": Status.INTERRUPTED,
    "kHighsInterrupt": Status.INTERRUPTED,
    "kObjectiveBound": Status.LIMIT,
    "kObjectiveTarget": Status.LIMIT,
    "kIterationLimit": Status.LIMIT,
    "kSolutionLimit": Status.LIMIT,
    "kMemoryLimit": Status.LIMIT,
}

#: Iterations of the quadratic solver per row and column. It can cycle without end on tiny models, and takes
#: about one iteration per row or column on others.
QP_ITERATIONS = 100

#: Relative distance between objective and dual bound up to which a quadratic programme counts as solved.
QP_GAP = 1e-6

_NO_OPTIMUM = (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)


class Highs(Solver):
    """The HiGHS solver (Huangfu and Hall, Math. Prog. Comp. 10, 2018), the default of this package.

    - Starts of models with integers are checked and completed first (:mod:`mipforest.solvers.highs_start`);
      ``Solution.start_objective`` is the value of the one that was passed.
    - The bound of an integer model is HiGHS' dual bound; that of a continuous model solved to optimality is
      its objective (exact up to HiGHS' tolerances, 1e-7), and infinite otherwise.
    - HiGHS' quadratic solver adds 1e-7 to the curvature, and calls some unbounded programmes optimal and some
      bounded ones unbounded. So an optimum is checked by weak duality
      (:func:`mipforest.solvers.duality.dual_bound`, which also gives the bound), and one that fails, or a
      claim of unboundedness, has the status ``ERROR``. Prefer ``clarabel`` for these.
    - Ctrl-C ends the solve with the incumbent. While HiGHS solves a quadratic programme it asks nobody:
      the run then ends by itself or at its time limit, and a second Ctrl-C raises ``KeyboardInterrupt``.
    - The log is appended to, so that several solves can share one.
    """

    name: ClassVar[str] = "highs"
    package: ClassVar[str] = "highspy"
    install: ClassVar[str] = "highspy"
    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.LP,
            Feature.MIP,
            Feature.QP,
            Feature.START,
            Feature.PARTIAL_START,
            Feature.PROGRESS,
            Feature.INTERRUPT,
        }
    )

    def version(self) -> str:
        """Version of HiGHS, which its Python package shares."""
        return version(self.package)

    def solve(
        self,
        form: MatrixForm,
        options: SolveOptions,
        *,
        start: FloatArray | None = None,
        priorities: IntArray | None = None,
        on_progress: Progress | None = None,
    ) -> Solution:
        """Solve a model; see :meth:`mipforest.solvers.base.Solver.solve`.

        Branching priorities are not taken: they leave a warning.

        Raises
        ------
        Unsupported
            For indicator rows, and for quadratic objectives together with integers.
        NotAllowed
            For a nonconvex objective, numbers beyond HiGHS' range, a start of the wrong length, or an
            option that HiGHS refuses.
        SolverError
            If HiGHS fails, with what it said.
        """
        from mipforest.solvers.highs_session import HighsSession
        from mipforest.solvers.highs_start import CheckedStart, check_start

        self.require(form)
        require_convex(form, self.name)
        watch = WatchedRun(form.maximize, on_progress)
        session = HighsSession(watch)
        session.set_option("qp_iteration_limit", QP_ITERATIONS * (form.n_rows + form.n_columns))
        session.set_options(options)
        if form.n_columns == 0:
            return self._solve_constant(form, watch)
        session.load(form)
        warnings = [f"HiGHS: {text}" for text in session.said]
        if priorities is not None:
            warnings.append("the branching priorities were not used: HiGHS takes none")
        taken = CheckedStart(None) if start is None else check_start(form, start, options, watch)
        warnings += taken.warnings
        if taken.x is not None:
            session.set_start(taken.x)
        outcome = session.run(None if options.time_limit is None else options.time_limit - watch.seconds)
        start_objective = np.nan if taken.x is None else form.objective(taken.x)
        return self._solution(form, session, outcome, watch, warnings, start_objective)

    def _solution(
        self,
        form: MatrixForm,
        session: HighsSession,
        outcome: str,
        watch: WatchedRun,
        warnings: list[str],
        start_objective: float,
    ) -> Solution:
        status = STATUS.get(outcome, Status.ERROR)
        info = session.highs.getInfo()
        x = None if status in _NO_OPTIMUM else session.point
        if x is not None:
            x = with_exact_integers(form, x)
            warnings += _tolerance_warning(form, x)
        objective = np.nan if x is None else form.objective(x)
        bound = _bound(form, status, objective, info.mip_dual_bound)
        if form.is_quadratic and status in (Status.OPTIMAL, Status.UNBOUNDED):
            status, bound = self._checked_quadratic(form, x, session, warnings)
        nodes = max(0, int(info.mip_node_count))
        watch.finish(objective, bound, nodes)
        words = session.highs.modelStatusToString(session.highs.getModelStatus())
        return Solution(
            status=status,
            x=x,
            values={} if x is None else form.to_values(x),
            objective=objective,
            bound=bound,
            nodes=nodes,
            seconds=watch.seconds,
            solver=self.name,
            solver_version=self.version(),
            events=tuple(watch.events),
            start_objective=start_objective,
            warnings=tuple(warnings),
            message="; ".join([words, *session.said]) if status is Status.ERROR else words,
        )

    def _checked_quadratic(
        self, form: MatrixForm, x: FloatArray | None, session: HighsSession, warnings: list[str]
    ) -> tuple[Status, float]:
        """Status and bound of a quadratic programme that HiGHS calls optimal or unbounded."""
        if x is not None:
            objective, bound = form.objective(x), dual_bound(form, x, session.multipliers)
            if abs(objective - bound) <= QP_GAP * max(1.0, abs(objective)):
                return Status.OPTIMAL, bound
            claim, doubt = (
                f"optimal at {objective:.9g}",
                f"its multipliers prove no better bound than {bound:.9g}",
            )
        else:
            claim, doubt, bound = "unbounded", "it does so with bounded ones too", _no_bound(form)
        warnings.append(f"HiGHS calls this quadratic programme {claim}, but {doubt}; choose solver clarabel")
        return Status.ERROR, bound

    def _solve_constant(self, form: MatrixForm, watch: WatchedRun) -> Solution:
        """Check a model without columns, which HiGHS calls empty whether or not its rows hold."""
        x = np.zeros(0)
        holds = violations(form, x).max <= FEASIBILITY_TOLERANCE
        status = Status.OPTIMAL if holds else Status.INFEASIBLE
        objective = form.offset if holds else np.nan
        bound = _bound(form, status, objective, np.nan)
        watch.finish(objective, bound, 0)
        return Solution(
            status=status,
            x=x if holds else None,
            values=form.to_values(x) if holds else {},
            objective=objective,
            bound=bound,
            nodes=0,
            seconds=watch.seconds,
            solver=self.name,
            solver_version=self.version(),
            events=tuple(watch.events),
            message="a model without columns",
        )


def _bound(form: MatrixForm, status: Status, objective: float, mip_dual_bound: float) -> float:
    """Proven bound on the optimal value, in the model's sense."""
    best = _no_bound(form)
    if status is Status.INFEASIBLE:
        return -best
    if status in _NO_OPTIMUM or status is Status.ERROR:
        return best
    if not form.is_mip:
        return objective if status is Status.OPTIMAL else best
    if np.isnan(objective):
        return mip_dual_bound
    # Round-off can carry the bound past the incumbent.
    return max(mip_dual_bound, objective) if form.maximize else min(mip_dual_bound, objective)


def _no_bound(form: MatrixForm) -> float:
    return np.inf if form.maximize else -np.inf


def _tolerance_warning(form: MatrixForm, x: FloatArray) -> list[str]:
    found = violations(form, x)
    if found.max <= FEASIBILITY_TOLERANCE:
        return []
    name, amount = found.worst(1)[0]
    return [f"the solution violates {name} by {amount:.3g}, above the tolerance {FEASIBILITY_TOLERANCE:g}"]
