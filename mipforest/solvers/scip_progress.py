"""Progress out of SCIP, and the wish to stop into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, Eventhdlr

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.numbers import SOLVER_INFINITY
from mipforest.solvers.watched_run import WatchedRun

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
    """Reports to a :class:`WatchedRun`, and interrupts SCIP when that asks for it.

    SCIP calls it from the thread that solves; each call takes Python's lock for its own time only.

    Parameters
    ----------
    form
        The model.
    watch
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
        watch: WatchedRun,
        point: Callable[[Any], FloatArray],
        agrees: Callable[[Any], bool] | None,
    ) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.completion: FloatArray | None = None
        self._form = form
        self._watch = watch
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
        if self.error is not None or self._watch.stop.is_set():
            self.model.interruptSolve()

    def _note(self, kind: int) -> None:
        scip, x = self.model, None
        if kind == SCIP_EVENTTYPE.BESTSOLFOUND:
            x = self._point(scip.getBestSol())
            self._objective = self._form.objective(x)
        nodes = scip.getNTotalNodes()
        if kind in _NEW_POINTS and self._agrees is not None and self.completion is None and nodes <= 1:
            self._look_for_completion()
        self._watch.observe(self._objective, finite_or_infinite(scip.getDualbound()), nodes, x)

    def _look_for_completion(self) -> None:
        assert self._agrees is not None
        found = next((known for known in self.model.getSols() if self._agrees(known)), None)
        if found is not None:
            self.completion = self._point(found)


def finite_or_infinite(value: float) -> float:
    """Turn SCIP's 1e20 into infinity."""
    return float(np.copysign(np.inf, value)) if abs(value) >= SOLVER_INFINITY else float(value)
