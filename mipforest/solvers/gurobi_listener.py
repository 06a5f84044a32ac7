"""What Gurobi tells while it runs: incumbents, bounds, and lines of its log."""

from __future__ import annotations

import gurobipy
import numpy as np
from gurobipy import GRB

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.answers import no_bound
from mipforest.solvers.watched_run import WatchedRun

#: What Gurobi writes to its log when it takes a start, and when it does not.
_TAKEN, _REFUSED = "Loaded user MIP start", "did not produce a new incumbent"

_EVENT = GRB.Callback


class GurobiListener:
    """A callback that reports to a :class:`WatchedRun` and stops Gurobi when that asks for it.

    Parameters
    ----------
    form
        The model.
    watch
        Takes progress and asks for interruption.

    Attributes
    ----------
    variables
        Gurobi's variables, one per column; to be set before the run.
    incumbent
        (n,) the best point so far, or ``None``.
    bound
        Gurobi's bound, infinite where it has none.
    nodes
        Branch-and-bound nodes.
    start
        (n,) the start as Gurobi took or completed it, or ``None``.
    start_refused
        Whether Gurobi said that it does not take it.
    said
        Gurobi's warnings.
    muted
        Whether Gurobi now solves another model, of which nothing is to be told.
    failure
        An error inside the callback, which Gurobi would print and forget; it ends the run.
    """

    def __init__(self, form: MatrixForm, watch: WatchedRun) -> None:
        self._form, self._watch = form, watch
        self._objective = np.nan
        self.variables: gurobipy.MVar
        self.incumbent: FloatArray | None = None
        self.bound, self.nodes = no_bound(form), 0
        self.start: FloatArray | None = None
        self.start_refused = False
        self.said: list[str] = []
        self.muted = False
        self.failure: BaseException | None = None

    def __call__(self, model: gurobipy.Model, event: int) -> None:
        """Take one call of Gurobi, from its thread."""
        try:
            self._look(model, event)
        except BaseException as error:
            self.failure = error
            model.terminate()
        if self._watch.stop.is_set():
            model.terminate()

    def _look(self, model: gurobipy.Model, event: int) -> None:
        if event == _EVENT.MESSAGE:
            self._hear(model.cbGet(_EVENT.MSG_STRING).strip())
            return
        x = None
        if self.muted:
            pass
        elif event == _EVENT.MIPSOL:
            x = self._new_incumbent(np.array(model.cbGetSolution(self.variables)))
            self._update(model.cbGet(_EVENT.MIPSOL_OBJBND), model.cbGet(_EVENT.MIPSOL_NODCNT))
        elif event == _EVENT.MIP:
            self._update(model.cbGet(_EVENT.MIP_OBJBND), model.cbGet(_EVENT.MIP_NODCNT))
        self._watch.observe(self._objective, self.bound, self.nodes, x)

    def _hear(self, message: str) -> None:
        if _TAKEN in message:
            self.start = self.incumbent
        elif _REFUSED in message:
            self.start_refused = True
        elif message.startswith("Warning: "):
            self.said.append(message.removeprefix("Warning: "))

    def _new_incumbent(self, x: FloatArray) -> FloatArray | None:
        """Take a point if it is better than the one before; Gurobi also tells of others."""
        value = self._form.objective(x)
        if value <= self._objective if self._form.maximize else value >= self._objective:
            return None
        self.incumbent, self._objective = x, value
        return x

    def _update(self, bound: float, nodes: float) -> None:
        self.bound = bound if abs(bound) < GRB.INFINITY else no_bound(self._form)
        self.nodes = int(nodes)
