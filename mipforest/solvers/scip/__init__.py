"""SCIP, through PySCIPOpt: mixed-integer programmes, also with indicator rows and convex quadratic objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverUnavailable
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature, Solver, installed_version
from mipforest.solvers.bound_check import NO_OPTIMUM
from mipforest.solvers.checks import SMALL_ENTRY, with_exact_integers
from mipforest.solvers.convexity import with_best_rest
from mipforest.solvers.solution import Progress, Solution, Status
from mipforest.solvers.worker import Worker

if TYPE_CHECKING:
    from mipforest.solvers.scip.session import ScipSession

#: Our status for each of SCIP's that is not an error.
STATUS = {
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.OPTIMAL,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "inforunbd": Status.INFEASIBLE_OR_UNBOUNDED,
    "timelimit": Status.TIME_LIMIT,
    "userinterrupt": Status.INTERRUPTED,
    "nodelimit": Status.LIMIT,
    "totalnodelimit": Status.LIMIT,
    "stallnodelimit": Status.LIMIT,
    "memlimit": Status.LIMIT,
    "sollimit": Status.LIMIT,
    "bestsollimit": Status.LIMIT,
    "restartlimit": Status.LIMIT,
    "primallimit": Status.LIMIT,
    "duallimit": Status.LIMIT,
}


#: Oldest PySCIPOpt that can free SCIP on demand, and its log with it.
OLDEST = (6, 2)


class Scip(Solver):
    """The SCIP solver (Hojny et al., The SCIP Optimization Suite 10.0, 2025), through PySCIPOpt.

    - A quadratic objective becomes a row ``1/2 x'Qx <= theta`` of SCIP's own, which holds up to SCIP's
      feasibility tolerance, 1e-6 absolute. So the integers of its best point are fixed and the continuous
      rest is solved by Clarabel to 1e-9; ``Solution.objective`` is the exact value of the point returned.
      Tangents instead (``bridges="quadratic"`` of :func:`mipforest.solving.solve`) were faster on MARGOT
      models of depth 2 with 100 samples and 10 features, or 60 and 30: solved in 30 to 40 s, where SCIP's
      own quadratic row left gaps of 46% and 25%. On smaller ones neither is ahead.
    - Continuous quadratic models are left to Clarabel: of 300 random small ones, unbounded directions among
      them, 30 were not solved within 5 seconds to a gap of 1e-4; the others agreed with Clarabel, which
      takes milliseconds.
    - A full, feasible start is the first incumbent. Of any other the integer values are completed by SCIP's
      heuristic ``completesol``; ``Solution.start_objective`` is the value of the first completion that was
      seen before branching.
    - It runs in one thread. PySCIPOpt's ``solveConcurrent`` holds Python's lock throughout, so neither
      progress nor Ctrl-C would get through.
    - Ctrl-C, and ``True`` from ``on_progress``, take effect at the next event (a linear programme, node or
      round of presolving done): mostly within half a second, now and then after a heuristic of several.
    - The log is appended to.
    - SCIP 10.0 aborts the process on some quadratic models, from their ``.mps`` files as well: METIS, which orders
      large matrices for Ipopt's linear solver MUMPS, spoils its memory (SCIP issue 211). So MUMPS orders them by AMD
      (``ipopt.opt``), and quadratic models are solved in a process of its own unless told otherwise (``isolate``).
    """

    name: ClassVar[str] = "scip"
    package: ClassVar[str] = "pyscipopt"
    install: ClassVar[str] = "pyscipopt"
    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.LP,
            Feature.MIP,
            Feature.MIQP,
            Feature.INDICATORS,
            Feature.START,
            Feature.PARTIAL_START,
            Feature.PRIORITIES,
            Feature.PROGRESS,
            Feature.INTERRUPT,
        }
    )
    zero: ClassVar[float] = SMALL_ENTRY
    zero_option: ClassVar[str] = "numerics/epsilon"

    def aborts_on(self, form: MatrixForm) -> bool:
        """Return whether the objective is quadratic."""
        return form.is_quadratic

    def version(self) -> str:
        """Return the version of SCIP, and of PySCIPOpt, which brings it along."""
        from pyscipopt import Model

        scip = Model()
        numbers = (scip.getMajorVersion(), scip.getMinorVersion(), scip.getTechVersion())
        return f"{'.'.join(map(str, numbers))} (PySCIPOpt {installed_version(self.package)})"

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

        Raises
        ------
        SolverUnavailable
            If the installed PySCIPOpt is too old.
        Unsupported
            For a quadratic objective without integers.
        NotAllowed
            For a nonconvex objective, numbers beyond SCIP's range, a start of the wrong length, or an option
            that SCIP refuses.
        SolverError
            If SCIP fails, with what it said.
        """
        self._require_version()
        from mipforest.solvers.scip.session import ScipSession

        self.require(form)
        worker = Worker(form.maximize, on_progress)
        session = ScipSession(form, worker)
        try:
            session.set_options(settings)
            session.load()
            if priorities is not None:
                session.set_priorities(priorities)
            if start is not None:
                session.set_start(start)
            outcome = session.run(
                None if settings.time_limit is None else settings.time_limit - worker.seconds
            )
            return self._solution(form, session, outcome, worker, settings)
        finally:
            session.close()

    def _require_version(self) -> None:
        found = installed_version(self.package)
        if tuple(map(int, found.split(".")[:2])) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise SolverUnavailable(
                f"PySCIPOpt {found} is installed, and {oldest} or later is needed; "
                f"run: pip install --upgrade {self.install}"
            )

    def _solution(
        self, form: MatrixForm, session: ScipSession, outcome: str, worker: Worker, settings: SolveSettings
    ) -> Solution:
        status, x = STATUS.get(outcome, Status.ERROR), session.point
        if x is not None and form.is_quadratic and status not in NO_OPTIMUM:
            x = with_best_rest(form, with_exact_integers(form, x))
        return self.solution(
            form,
            worker,
            settings,
            status=status,
            x=x,
            bound=session.bound,
            nodes=session.nodes,
            start_objective=session.start_objective,
            warnings=session.warnings,
            message=outcome,
        )
