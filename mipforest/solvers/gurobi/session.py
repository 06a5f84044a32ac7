"""One Gurobi environment and model: watched while it runs, disposed of whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.arrays import FloatArray, IntArray
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.checks import JudgedStart, writable
from mipforest.solvers.claims import no_bound
from mipforest.solvers.gurobi.license import Size, explained, require_license
from mipforest.solvers.gurobi.model import load, set_option, starts_to_try
from mipforest.solvers.solution import Status
from mipforest.solvers.worker import Worker

#: Our status for each of Gurobi's that is not an error.
STATUS = {
    "OPTIMAL": Status.OPTIMAL,
    "INFEASIBLE": Status.INFEASIBLE,
    "UNBOUNDED": Status.UNBOUNDED,
    "INF_OR_UNBD": Status.INFEASIBLE_OR_UNBOUNDED,
    "TIME_LIMIT": Status.TIME_LIMIT,
    "INTERRUPTED": Status.INTERRUPTED,
    "CUTOFF": Status.LIMIT,
    "ITERATION_LIMIT": Status.LIMIT,
    "NODE_LIMIT": Status.LIMIT,
    "SOLUTION_LIMIT": Status.LIMIT,
    "USER_OBJ_LIMIT": Status.LIMIT,
    "WORK_LIMIT": Status.LIMIT,
    "MEM_LIMIT": Status.LIMIT,
    # Feasible points that are not proven optimal; and an infeasibility that is not proven.
    "SUBOPTIMAL": Status.LIMIT,
    "LOCALLY_OPTIMAL": Status.LIMIT,
    "LOCALLY_INFEASIBLE": Status.LIMIT,
}

#: Relative gap at which the interior-point method ends for continuous quadratic models. With its default,
#: 1e-8, 575 small random models were off by up to 1e-7; with this one by 3e-9.
BARRIER_GAP = 1e-10

#: The values of Gurobi's option Method that leave the choice to it, and take the dual simplex method.
_ANY_METHOD, _DUAL_SIMPLEX = -1, 1

_NAMES = {getattr(GRB.Status, name): name for name in dir(GRB.Status) if name.isupper()}


@dataclass(frozen=True, eq=False)
class Answer:
    """What Gurobi found.

    Attributes
    ----------
    status, message
        How it ended, and Gurobi's word for it.
    x
        (n,) the best point, or ``None``.
    bound
        Gurobi's bound, infinite where it has none.
    seen
        What Gurobi told while it ran.
    """

    status: Status
    message: str
    x: FloatArray | None
    bound: float
    seen: GurobiListener


@contextmanager
def gurobi_session(form: MatrixForm, settings: SolveSettings, worker: Worker) -> Iterator[GurobiSession]:
    """Start Gurobi without a word on standard output, and end it after the ``with`` block.

    Raises
    ------
    SolverUnavailable
        If Gurobi gives no licence.
    LicenseLimit
        If the model is beyond the licence; before it is built.
    NotAllowed
        If Gurobi knows no such option, refuses its value, or cannot write the log.
    SolverError
        For any other error of Gurobi inside the ``with`` block, with what it said.
    """
    size = Size.of(form)
    try:
        with gurobipy.Env(params={"LogToConsole": 0}) as environment:
            require_license(size, environment)
            with gurobipy.Model(env=environment) as model:
                yield GurobiSession(model, form, settings, worker)
    except GurobiError as error:
        raise explained(error, size) from error


class GurobiSession:
    """A Gurobi model that reports to a :class:`Worker`; use :func:`gurobi_session`.

    Parameters
    ----------
    model
        An empty Gurobi model.
    form
        The model.
    settings
        Limits and settings.
    worker
        Takes progress and asks for interruption.
    """

    def __init__(
        self, model: gurobipy.Model, form: MatrixForm, settings: SolveSettings, worker: Worker
    ) -> None:
        self._model, self._form, self._settings, self._worker = model, form, settings, worker
        self._x: gurobipy.MVar
        self._listener = GurobiListener(form, worker)
        self._set_options()

    def _set_options(self) -> None:
        settings, model = self._settings, self._model
        if settings.log is not None:
            set_option(model, "LogFile", str(writable(settings.log)))
        set_option(model, "MIPGap", settings.gap)
        set_option(model, "Seed", settings.seed)
        if settings.threads is not None:
            set_option(model, "Threads", settings.threads)
        # Gurobi's own tolerance, 1e-5, is ten times what counts as integral in this package.
        set_option(model, "IntFeasTol", FEASIBILITY_TOLERANCE)
        if self._form.is_quadratic and not self._form.is_mip:
            set_option(model, "BarConvTol", BARRIER_GAP)
        for name, value in settings.solver_options.items():
            set_option(model, name, value)

    def load(self, start: JudgedStart, priorities: IntArray | None) -> None:
        """Build the model, with its start and branching priorities."""
        self._x = self._listener.variables = load(self._model, self._form)
        starts = starts_to_try(start)
        self._model.NumStart = len(starts)
        for number, point in enumerate(starts):
            self._model.Params.StartNumber = number
            self._x.setAttr("Start", np.where(np.isnan(point), GRB.UNDEFINED, point))
        if priorities is not None:
            self._x.setAttr("BranchPriority", priorities)

    def run(self) -> Answer:
        """Run until an optimum, a limit, or an interruption.

        Raises
        ------
        GurobiError
            If Gurobi fails.
        """
        outcome = self._optimize()
        if outcome in ("SUBOPTIMAL", "NUMERIC") and self._may_change_method():
            self._model.Params.Method = _DUAL_SIMPLEX
            outcome = self._optimize()
        if outcome == "OUT_OF_MEMORY":
            # Gurobi's limit MemLimit, or the machine's: only what the callbacks saw is left.
            return self._answer(Status.LIMIT, outcome, self._listener.incumbent, self._listener.bound)
        model = self._model
        status = STATUS.get(outcome, Status.ERROR)
        # Adding 0 turns -0 into 0.
        x = np.array(self._x.X) + 0.0 if model.SolCount else None
        if x is not None and not np.isfinite(x).all():
            status = Status.UNBOUNDED
        if status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED):
            return self._answer(self._without_optimum(), outcome, None, no_bound(self._form))
        known = model.IsMIP or status is Status.OPTIMAL
        bound = model.ObjBound if known and np.isfinite(model.ObjBound) else no_bound(self._form)
        self._listener.nodes = int(model.NodeCount)
        return self._answer(status, outcome, x, bound)

    def _answer(self, status: Status, outcome: str, x: FloatArray | None, bound: float) -> Answer:
        message = outcome.lower().replace("_", " ")
        return Answer(status, message, x, bound, self._listener)

    def _may_change_method(self) -> bool:
        """Return whether the interior-point method ran by Gurobi's own choice."""
        return not self._model.IsMIP and self._model.Params.Method == _ANY_METHOD

    def _without_optimum(self) -> Status:
        """Find out whether a model without an optimum has a point, which Gurobi leaves open."""
        self._model.setObjective(0.0)
        self._listener.muted = True
        outcome = self._optimize()
        if self._model.SolCount:
            return Status.UNBOUNDED
        return Status.INFEASIBLE if outcome == "INFEASIBLE" else Status.INFEASIBLE_OR_UNBOUNDED

    def _optimize(self) -> str:
        """Run Gurobi for the time that is left; give the name of its status."""
        limit = self._settings.time_limit
        if limit is not None:
            set_option(self._model, "TimeLimit", max(0.0, limit - self._worker.seconds))
        try:
            self._model.optimize(self._listener)
        except GurobiError as error:
            if error.errno != GRB.Error.OUT_OF_MEMORY:
                raise
            return "OUT_OF_MEMORY"
        if self._listener.failure is not None:
            raise self._listener.failure
        return _NAMES[self._model.Status]


#: What Gurobi writes to its log when it takes a start, and when it does not.
_TAKEN, _REFUSED = "Loaded user MIP start", "did not produce a new incumbent"

_EVENT = GRB.Callback


class GurobiListener:
    """A callback that reports to a :class:`Worker` and stops Gurobi when that asks for it.

    Parameters
    ----------
    form
        The model.
    worker
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

    def __init__(self, form: MatrixForm, worker: Worker) -> None:
        self._form, self._worker = form, worker
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
        if self._worker.stop.is_set():
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
        self._worker.observe(self._objective, self.bound, self.nodes, x)

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
