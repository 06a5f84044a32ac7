"""HiGHS, through highspy: linear and mixed-integer linear programmes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.checks import SMALL_ENTRY, JudgedStart, judge_start
from mipforest.solvers.solution import Progress, Solution, Status
from mipforest.solvers.worker import Worker, left_behind, out_of_memory

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

#: What is asked again without presolve: that of HiGHS 1.15.1 calls some feasible models infeasible.
INFEASIBLE = "kInfeasible"

#: Seconds per row, column and entry by which HiGHS ends after its time limit: it looks at its clock between steps of
#: presolve.
LATE = 3e-7
DENIED = "HiGHS called the model infeasible after its presolve, and without it does not: what it says without it counts"


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
    - In some steps HiGHS looks neither at its clock nor at a request to stop. Half a second later it is left behind,
      with the incumbent and the bound that it had reported, and a warning; it ends at its next look, and the end of the
      program waits for that (the command line does not).
    - Presolve is left out, and the model solved once more in the time left, where HiGHS calls a model with integers
      infeasible: see the page on solvers for a feasible one.
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
    zero: ClassVar[float] = SMALL_ENTRY
    zero_option: ClassVar[str] = "small_matrix_value"

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
        from mipforest.solvers.highs.session import HighsSession, completed

        self.require(form)
        worker = Worker(form.maximize, on_progress)

        def loaded(options: SolveSettings) -> HighsSession:
            session = HighsSession(worker)
            session.set_options(options)
            if form.n_columns:
                session.load(form)
            return session

        def run(session: HighsSession, start: FloatArray | None) -> str:
            if start is not None:
                session.set_start(start)
            if settings.time_limit is None:
                return session.run(None)
            left = settings.time_limit - worker.seconds
            late = LATE * (form.A.nnz + form.n_rows + form.n_columns)
            return session.run(left - min(late, 0.5 * left))

        session = loaded(settings)
        if form.n_columns == 0:
            return self.constant_solution(form, worker)
        warnings = [f"HiGHS: {text}" for text in session.said] + self.unused(branching_priorities=priorities)
        judged = judge_start(form, start)
        if start is not None and not form.is_mip:
            warnings.append("the start was not used: HiGHS takes starts for models with integers only")
            judged = JudgedStart()
        known = judged.full
        if judged.completable and judged.integers is not None:
            known = completed(form, judged.integers, settings, worker)
        warnings += judged.warnings(taken=known is not None)
        outcome = run(session, known)
        if outcome == INFEASIBLE and form.is_mip and "presolve" not in settings.solver_options:
            worker.forget_bound()
            options = {**settings.solver_options, "presolve": "off"}
            session = loaded(replace(settings, solver_options=options))
            outcome = run(session, known)
            warnings += [DENIED] if outcome != INFEASIBLE else []
        if session.late:
            x, nodes = session.reported
            exhausted = outcome == "kMemoryLimit"
            return self.solution(
                form,
                worker,
                settings,
                status=STATUS[outcome],
                x=x,
                bound=worker.bound if form.is_mip else None,
                nodes=nodes,
                start=known,
                warnings=[*warnings, out_of_memory("HiGHS") if exhausted else left_behind("HiGHS")],
                message="out of memory" if exhausted else "left behind",
            )
        status, info = STATUS.get(outcome, Status.ERROR), session.highs.getInfo()
        words = session.highs.modelStatusToString(session.highs.getModelStatus())
        return self.solution(
            form,
            worker,
            settings,
            status=status,
            x=session.point,
            bound=info.mip_dual_bound if form.is_mip else None,
            nodes=max(0, int(info.mip_node_count)),
            start=known,
            warnings=warnings,
            message="; ".join([words, *session.said]) if status is Status.ERROR else words,
        )
