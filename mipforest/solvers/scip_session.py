"""One SCIP object: a model, its start, one run."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from pyscipopt.scip import Model

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.base import SolveOptions
from mipforest.solvers.convexity import require_convex
from mipforest.solvers.errors import SolverError
from mipforest.solvers.log_file import writable
from mipforest.solvers.numbers import require_plain_numbers
from mipforest.solvers.scip_model import (
    add_columns,
    add_indicator_rows,
    add_quadratic_objective,
    add_rows,
    negligible_entries,
)
from mipforest.solvers.scip_options import set_parameter
from mipforest.solvers.scip_progress import ScipProgress, finite_or_infinite
from mipforest.solvers.scip_start import ScipStart
from mipforest.solvers.scip_threads import submit
from mipforest.solvers.watched_run import WatchedRun


class ScipSession:
    """A silent SCIP object that reports to a :class:`WatchedRun`; close it after use.

    Parameters
    ----------
    form
        The model: what it holds SCIP must be able to take.
    watch
        Takes progress and asks for interruption.

    Attributes
    ----------
    scip
        The ``pyscipopt.Model``.
    """

    def __init__(self, form: MatrixForm, watch: WatchedRun) -> None:
        self.scip = Model()
        self.scip.hideOutput()
        # SCIP would take over Ctrl-C for the whole process; the watch has it already.
        self.scip.setParam("misc/catchctrlc", False)
        self._said: list[str] = []
        self._form = form
        self._watch = watch
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

    def set_options(self, options: SolveOptions) -> None:
        """Set the options, except the time limit, which depends on when the run starts.

        Raises
        ------
        NotAllowed
            If SCIP has no such option (the nearest are named), refuses its value, or cannot write the log.
        """
        set_parameter(self.scip, "limits/gap", float(options.gap))
        set_parameter(self.scip, "randomization/randomseedshift", options.seed)
        # Partial starts are never too sparse to be completed.
        set_parameter(self.scip, "heuristics/completesol/maxunknownrate", 1.0)
        if options.threads is not None and options.threads > 1:
            self._said.append(f"SCIP runs in one thread; {options.threads} were asked for")
        if options.log is not None:
            self.scip.setLogfile(str(writable(options.log)))
        for name, value in options.solver_options.items():
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
            self._said.append(f"SCIP takes {tiny} matrix entries of at most 1e-9 for zeros: rescale them")

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
        self._start.give(start)

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
            self._form, self._watch, self._point, start.is_completed_by if start else None
        )
        self.scip.includeEventhdlr(progress, "mipforest", "progress and interruption")
        try:
            # Without Python's lock, so that the calling thread can take events and Ctrl-C.
            self._running = submit(self.scip.optimizeNogil)
            self._watch.call(self._running.result)
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
