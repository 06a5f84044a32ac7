"""Gurobi, through gurobipy: linear and quadratic programmes, with and without integers, convex or not; indicators."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature, Solver, of_object
from mipforest.solvers.checks import JudgedStart, judge_start, require_plain_numbers, with_exact_integers
from mipforest.solvers.solution import Event, Progress, Solution
from mipforest.solvers.worker import Worker

if TYPE_CHECKING:
    from mipforest.solvers.gurobi.session import Answer, GurobiSession


class Gurobi(Solver):
    """The Gurobi solver (Gurobi Optimization, LLC), a commercial one.

    - The licence inside its Python package takes models up to 2000 variables and 2000 rows, and 200
      variables with a quadratic objective (:mod:`mipforest.solvers.gurobi.session`). A larger model is
      refused before it is built. A licence of your own (``GRB_LICENSE_FILE``) has no such limits.
    - Nonconvex quadratic objectives are solved too, to a proven global optimum; this may take long.
    - A feasible start is kept with Gurobi's own points, so that no time limit is too short for it. Of an
      infeasible one, the integer values are kept.
    - Ctrl-C ends the solve with the incumbent; a second one raises ``KeyboardInterrupt``.
    - Integers are integral within 1e-6 (Gurobi's own default is 1e-5), then rounded where this breaks no row.
    - When the memory limit ``MemLimit`` is hit, the incumbent is kept; ``SoftMemLimit`` ends more softly.
    - The log is appended to, so that several solves can share one.
    """

    name: ClassVar[str] = "gurobi"
    package: ClassVar[str] = "gurobipy"
    install: ClassVar[str] = "gurobipy"
    features: ClassVar[frozenset[Feature]] = frozenset(
        {
            Feature.LP,
            Feature.MIP,
            Feature.QP,
            Feature.MIQP,
            Feature.INDICATORS,
            Feature.START,
            Feature.PARTIAL_START,
            Feature.PRIORITIES,
            Feature.PROGRESS,
            Feature.INTERRUPT,
        }
    )
    zero: ClassVar[float] = 1e-13

    def __init__(self) -> None:
        self._keeps = False
        self._kept: tuple[GurobiSession, SolveSettings, ExitStack] | None = None

    def keeping(self) -> Gurobi:
        """Return Gurobi that keeps its model: the next solve changes it."""
        twin = Gurobi()
        twin._keeps = True
        return twin

    def close(self) -> None:
        """Let go of the model, and of its licence."""
        if self._kept is not None:
            self._kept[2].close()
        self._kept = None

    def _kept_for(
        self, form: MatrixForm, settings: SolveSettings, worker: Worker, stack: ExitStack
    ) -> GurobiSession | None:
        """Return the model of the last solve, changed to this one, where that is possible; the stack ends it."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        session, made_with, resources = kept
        stack.push(resources)
        if made_with != of_object(settings) or not session.can_become(form):
            return None
        session.change(form, settings, worker)
        return session

    def license(self) -> str:
        """Say whether the licence is the one inside the package, with its limits, or another."""
        from mipforest.solvers.gurobi.session import license_in_use

        return license_in_use()

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
        LicenseLimit
            If the model is beyond the licence, with the counts; before anything is built.
        SolverUnavailable
            If Gurobi gives no licence.
        NotAllowed
            For numbers beyond Gurobi's range, a start of the wrong length, or an option that Gurobi refuses.
        SolverError
            If Gurobi fails, with what it said.
        """
        from mipforest.solvers.gurobi.session import gurobi_session

        self.require(form)
        require_plain_numbers(form)
        said: list[str] = []
        judged = judge_start(form, start)
        if start is not None and not form.is_mip:
            said.append("the start was not used: Gurobi takes starts for models with integers only")
            judged = JudgedStart()
        worker = Worker(form.maximize, _keeping_ctrl_c(on_progress))

        def work() -> Answer | None:
            with ExitStack() as stack:
                session = self._kept_for(form, settings, worker, stack)
                if session is None:
                    session = stack.enter_context(gurobi_session(form, settings, worker))
                    if form.n_columns == 0:
                        return None
                    session.build()
                session.give(judged, priorities)
                found = session.run()
                if self._keeps:
                    self._kept = session, of_object(settings), stack.pop_all()
                return found

        # All of Gurobi lives in the worker: at a second Ctrl-C it ends there, in its own time.
        answer = worker.call(work)
        if answer is None:
            return self.constant_solution(form, worker)
        seen = answer.seen
        taken = seen.start is not None or (judged.full is not None and not seen.start_refused)
        if judged.full is not None and not taken:
            said.append(
                "Gurobi did not take the start, which is feasible within the tolerance; it is kept as well"
            )
        completion = None if seen.start is None else with_exact_integers(form, seen.start)
        return self.solution(
            form,
            worker,
            settings,
            status=answer.status,
            x=answer.x,
            bound=answer.bound,
            nodes=seen.nodes,
            start=judged.full,
            start_objective=np.nan if completion is None else form.objective(completion),
            warnings=[*(f"Gurobi: {text}" for text in seen.said), *said, *judged.warnings(taken=taken)],
            message=answer.message,
            row_duals=answer.row_duals,
        )

    def infeasible_subsystem(self, form: MatrixForm, settings: SolveSettings) -> IntArray | None:
        """Return the rows of Gurobi's irreducible infeasible subsystem (``computeIIS``), of any model."""
        from mipforest.solvers.gurobi.session import gurobi_session

        if not form.n_columns:
            return None
        worker = Worker(form.maximize, _keeping_ctrl_c(None))

        def work() -> IntArray | None:
            with gurobi_session(form, settings, worker) as session:
                return session.infeasible_subsystem()

        return worker.call(work)


def _keeping_ctrl_c(on_progress: Progress | None) -> Progress:
    """Take Ctrl-C back at every event.

    Gurobi takes it for itself while it runs: it would print a line on standard output and stop, and no
    handler of the program would hear of it.
    """

    def listen(event: Event) -> bool | None:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)
        return None if on_progress is None else on_progress(event)

    return listen
