"""HiGHS: linear and mixed-integer linear programmes."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.answers import (
    NO_OPTIMUM,
    better_point,
    no_bound,
    proven_bound,
    solve_constant,
    tolerance_warning,
)
from mipforest.solvers.base import Feature, Progress, Solver
from mipforest.solvers.integrality import with_exact_integers
from mipforest.solvers.solution import Solution, Status
from mipforest.solvers.watched_run import WatchedRun

if TYPE_CHECKING:
    from mipforest.solvers.highs.session import HighsSession

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


class Highs(Solver):
    """The HiGHS solver (Huangfu and Hall, Math. Prog. Comp. 10, 2018), the default of this package.

    - Starts of models with integers are checked and completed first (:mod:`mipforest.solvers.highs.session`);
      ``Solution.start_objective`` is the value of the one that was passed.
    - The bound of an integer model is HiGHS' dual bound; that of a continuous model solved to optimality is
      its objective (exact up to HiGHS' tolerances, 1e-7), and infinite otherwise.
    - HiGHS' own quadratic solver is not used: on 1500 random convex programmes, 62 of its answers disagreed
      with Clarabel's (unbounded ones called optimal, bounded ones unbounded), and now and then it cycles
      without end. :func:`mipforest.solving.solve` sends such models to Clarabel.
    - Ctrl-C ends the solve with the incumbent; a second one raises ``KeyboardInterrupt``.
    - The log is appended to, so that several solves can share one.
    """

    name: ClassVar[str] = "highs"
    package: ClassVar[str] = "highspy"
    install: ClassVar[str] = "highspy"
    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.LP,
            Feature.MIP,
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
        settings: SolveSettings,
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
            For indicator rows and quadratic objectives.
        NotAllowed
            For numbers beyond HiGHS' range, a start of the wrong length, or an option that HiGHS refuses.
        SolverError
            If HiGHS fails, with what it said.
        """
        from mipforest.solvers.highs.session import CheckedStart, HighsSession, check_start

        self.require(form)
        watch = WatchedRun(form.maximize, on_progress)
        session = HighsSession(watch)
        session.set_options(settings)
        if form.n_columns == 0:
            return solve_constant(form, watch, self.name, self.version())
        session.load(form)
        warnings = [f"HiGHS: {text}" for text in session.said]
        if priorities is not None:
            warnings.append("the branching priorities were not used: HiGHS takes none")
        taken = CheckedStart(None) if start is None else check_start(form, start, settings, watch)
        warnings += taken.warnings
        if taken.x is not None:
            session.set_start(taken.x)
        outcome = session.run(None if settings.time_limit is None else settings.time_limit - watch.seconds)
        return self._solution(form, session, outcome, watch, warnings, taken.x)

    def _solution(
        self,
        form: MatrixForm,
        session: HighsSession,
        outcome: str,
        watch: WatchedRun,
        warnings: list[str],
        start: FloatArray | None,
    ) -> Solution:
        status = STATUS.get(outcome, Status.ERROR)
        info = session.highs.getInfo()
        x = None if status in NO_OPTIMUM else session.point
        if x is not None:
            x = with_exact_integers(form, x)
        if start is not None and status not in NO_OPTIMUM:
            x = better_point(form, x, start)
        if x is not None:
            warnings += tolerance_warning(form, x)
        objective = np.nan if x is None else form.objective(x)
        by_optimum = objective if status is Status.OPTIMAL else no_bound(form)
        bound = proven_bound(form, status, objective, info.mip_dual_bound if form.is_mip else by_optimum)
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
            start_objective=np.nan if start is None else form.objective(start),
            warnings=tuple(warnings),
            message="; ".join([words, *session.said]) if status is Status.ERROR else words,
        )
