"""One SCIP object: a model, its start, one run; its progress, and the thread in which it runs.

SCIP's library for derivatives (CppAD, used for quadratic objectives) numbers the threads that it sees and
has room for 64: the 64th new thread ends the process with a segmentation fault, even if all earlier ones have
ended. So a thread that has solved is used again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, Eventhdlr
from pyscipopt.scip import Model

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverError
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.checks import (
    SMALL_ENTRY,
    SOLVER_INFINITY,
    judge_start,
    require_plain_numbers,
    writable,
)
from mipforest.solvers.convexity import require_convex
from mipforest.solvers.scip.model import (
    ScipStart,
    add_columns,
    add_indicator_rows,
    add_quadratic_objective,
    add_rows,
    negligible_entries,
    set_parameter,
)
from mipforest.solvers.worker import Worker


class ScipSession:
    """A silent SCIP object that reports to a :class:`Worker`; close it after use.

    Parameters
    ----------
    form
        The model: what it holds SCIP must be able to take.
    worker
        Takes progress and asks for interruption.

    Attributes
    ----------
    scip
        The ``pyscipopt.Model``.
    """

    def __init__(self, form: MatrixForm, worker: Worker) -> None:
        self.scip = Model()
        self.scip.hideOutput()
        # SCIP would take over Ctrl-C for the whole process; the worker has it already.
        self.scip.setParam("misc/catchctrlc", False)
        self._said: list[str] = []
        self._form = form
        self._worker = worker
        self._variables: list[Any] = []
        self._theta: Any = None
        self._start: ScipStart | None = None
        self._running: Future[None] | None = None

    def close(self) -> None:
        """Free SCIP's memory and close its log; if SCIP still runs, as soon as it stops."""
        if self._running is None:
            self.scip.free()
        else:
            self._running.add_done_callback(lambda _: self.scip.free())

    def set_options(self, settings: SolveSettings) -> None:
        """Set the options, except the time limit, which depends on when the run starts.

        Raises
        ------
        NotAllowed
            If SCIP has no such option (the nearest are named), refuses its value, or cannot write the log.
        """
        set_parameter(self.scip, "limits/gap", float(settings.gap))
        set_parameter(self.scip, "randomization/randomseedshift", settings.seed)
        # Partial starts are never too sparse to be completed.
        set_parameter(self.scip, "heuristics/completesol/maxunknownrate", 1.0)
        if self._form.is_quadratic:
            # SCIP 10.0 spoils memory there: it aborts on margot with breast_cancer_wisconsin, from a file too.
            set_parameter(self.scip, "misc/usesymmetry", 0)
        if settings.threads is not None and settings.threads > 1:
            self._said.append(f"SCIP runs in one thread; {settings.threads} were asked for")
        if settings.log is not None:
            self.scip.setLogfile(str(writable(settings.log)))
        for name, value in settings.solver_options.items():
            set_parameter(self.scip, name, value)

    def load(self) -> None:
        """Build the model.

        Raises
        ------
        NotAllowed
            If a number of it is one that SCIP would take for something else, or the objective is not convex.
        SolverError
            If SCIP refuses the model.
        """
        form, indicators = self._form, self._form.indicators
        require_plain_numbers(form)
        require_plain_numbers(
            replace(
                form,
                A=indicators.A,
                row_lower=indicators.lower,
                row_upper=indicators.upper,
                rows=indicators.rows,
            )
        )
        require_convex(form, "scip")
        try:
            self._variables = add_columns(self.scip, form)
            add_rows(self.scip, form, self._variables)
            add_indicator_rows(self.scip, form, self._variables)
            if form.is_quadratic:
                self._theta = add_quadratic_objective(self.scip, form, self._variables)
        except Exception as error:
            raise SolverError(f"SCIP refuses the model: {error}") from error
        tiny = negligible_entries(form)
        if tiny:
            self._said.append(
                f"SCIP takes {tiny} matrix entries of at most {SMALL_ENTRY:g} for zeros: rescale them"
            )

    def set_priorities(self, priorities: IntArray) -> None:
        """Set the branching priorities, higher first."""
        for variable, priority in zip(self._variables, priorities.tolist(), strict=True):
            self.scip.chgVarBranchPriority(variable, priority)

    def set_start(self, start: FloatArray) -> None:
        """Pass a start, (n,), NaN where it is left open.

        Raises
        ------
        NotAllowed
            If it has the wrong length.
        """
        self._start = ScipStart(self.scip, self._form, self._variables, self._theta)
        self._start.give(judge_start(self._form, start))

    def run(self, seconds: float | None) -> str:
        """Run for at most ``seconds``; give SCIP's status.

        Raises
        ------
        SolverError
            If SCIP fails.
        """
        if seconds is not None:
            # SCIP takes no longer limit than 1e20.
            self.scip.setParam("limits/time", min(max(0.0, seconds), 1e20))
        start = self._start if self._start is not None and self._start.is_partial else None
        progress = ScipProgress(
            self._form, self._worker, self._point, start.is_completed_by if start else None
        )
        self.scip.includeEventhdlr(progress, "mipforest", "progress and interruption")
        try:
            # Without Python's lock, so that the calling thread can take events and Ctrl-C.
            self._running = submit(self.scip.optimizeNogil)
            self._worker.call(self._running.result)
        except Exception as error:
            if progress.error is None and str(error).startswith("SCIP:"):
                raise SolverError(f"SCIP fails: {error}") from error
            raise
        if progress.error is not None:
            raise progress.error
        if start is not None:
            start.conclude(progress.completion)
        return str(self.scip.getStatus())

    @property
    def point(self) -> FloatArray | None:
        """The best point, or ``None``."""
        if self.scip.getNSols() == 0:
            return None
        x = self._point(self.scip.getBestSol())
        return x if np.isfinite(x).all() else None

    @property
    def warnings(self) -> list[str]:
        """What the user should know."""
        return self._said + (self._start.warnings if self._start else [])

    @property
    def start_objective(self) -> float:
        """Value of the start that SCIP took, NaN without one."""
        return self._start.objective if self._start else np.nan

    @property
    def bound(self) -> float:
        """SCIP's dual bound, infinite while there is none."""
        return finite_or_infinite(self.scip.getDualbound())

    @property
    def nodes(self) -> int:
        """Branch-and-bound nodes of all restarts together."""
        return max(0, int(self.scip.getNTotalNodes()))

    def _point(self, solution: Any) -> FloatArray:
        return np.array([solution[variable] for variable in self._variables])


Result = TypeVar("Result")

#: Solves at the same time; others wait for their turn. Well below the 64 threads that SCIP can tell apart,
#: a few of which the threads of other packages may take.
AT_ONCE = 16


def submit(work: Callable[[], Result]) -> Future[Result]:
    """Call ``work`` in one of the kept threads; a new one is begun only if all are busy."""
    return _threads(os.getpid()).submit(work)


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process: a forked one inherits the object, but not its threads."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"mipforest-scip-{process}")


_NEW_POINTS = (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.POORSOLFOUND)

#: What SCIP calls back at: often enough to stop soon, in presolve, at the root, and in the tree.
_CAUGHT = (
    *_NEW_POINTS,
    SCIP_EVENTTYPE.PRESOLVEROUND,
    SCIP_EVENTTYPE.FIRSTLPSOLVED,
    SCIP_EVENTTYPE.LPSOLVED,
    SCIP_EVENTTYPE.DUALBOUNDIMPROVED,
    SCIP_EVENTTYPE.NODESOLVED,
)


class ScipProgress(Eventhdlr):  # type: ignore[misc]
    """Reports to a :class:`Worker`, and interrupts SCIP when that asks for it.

    SCIP calls it from the thread that solves; each call takes Python's lock for its own time only.

    Parameters
    ----------
    form
        The model.
    worker
        Takes the events.
    point
        Gives the values of the model's columns in a solution of SCIP.
    agrees
        Whether a solution of SCIP is a completion of the partial start, if there is one.

    Attributes
    ----------
    error
        What went wrong in a call; SCIP itself would only print it.
    completion
        (n,) the first point found before branching that completes the partial start, or ``None``.
    """

    def __init__(
        self,
        form: MatrixForm,
        worker: Worker,
        point: Callable[[Any], FloatArray],
        agrees: Callable[[Any], bool] | None,
    ) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.completion: FloatArray | None = None
        self._form = form
        self._worker = worker
        self._point = point
        self._agrees = agrees
        self._objective = np.nan

    def eventinit(self) -> None:
        """Subscribe; SCIP calls this at the beginning of a solve."""
        for kind in _CAUGHT:
            self.model.catchEvent(kind, self)

    def eventexec(self, event: Any) -> None:
        """Take note of one event."""
        try:
            self._note(event.getType())
        except BaseException as error:
            self.error = error
        if self.error is not None or self._worker.stop.is_set():
            self.model.interruptSolve()

    def _note(self, kind: int) -> None:
        scip, x = self.model, None
        if kind == SCIP_EVENTTYPE.BESTSOLFOUND:
            x = self._point(scip.getBestSol())
            self._objective = self._form.objective(x)
        nodes = scip.getNTotalNodes()
        if kind in _NEW_POINTS and self._agrees is not None and self.completion is None and nodes <= 1:
            self._look_for_completion()
        self._worker.observe(self._objective, finite_or_infinite(scip.getDualbound()), nodes, x)

    def _look_for_completion(self) -> None:
        assert self._agrees is not None
        found = next((known for known in self.model.getSols() if self._agrees(known)), None)
        if found is not None:
            self.completion = self._point(found)


def finite_or_infinite(value: float) -> float:
    """Turn SCIP's 1e20 into infinity."""
    return float(np.copysign(np.inf, value)) if abs(value) >= SOLVER_INFINITY else float(value)
