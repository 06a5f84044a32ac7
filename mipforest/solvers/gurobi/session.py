"""One Gurobi environment and model: watched while it runs, disposed of whatever happens.

The model is built by matrix calls. Options and the licence's limits are checked before; errors name the model's
terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB, GurobiError

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import LicenseLimit, NotAllowed, SolverError, SolverUnavailable
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import same_rows
from mipforest.solvers.bound_check import no_bound
from mipforest.solvers.checks import JudgedStart, unknown_option, writable
from mipforest.solvers.solution import Status
from mipforest.solvers.worker import Worker


def load(model: gurobipy.Model, form: MatrixForm) -> gurobipy.MVar:
    """Put a form that has at least one column into an empty model; give its variables.

    A row with two different sides becomes two rows: Gurobi's own range rows are stored with the width of
    the range and an extra variable, which is neither exact nor free under a size limit.
    """
    x = model.addMVar(
        form.n_columns, lb=form.col_lower, ub=form.col_upper, vtype=np.where(form.integer, "I", "C")
    )
    row, sense, side = _one_sided(form.row_lower, form.row_upper)
    if len(row):
        A = form.A if np.array_equal(row, np.arange(form.n_rows)) else form.A[row]
        model.addMConstr(A, x, sense, side)
    _add_indicators(model, x, form.indicators)
    Q: Any = 0.5 * form.Q if form.Q is not None and form.is_quadratic else None
    model.setMObjective(
        Q, form.c, form.offset, sense=GRB.MAXIMIZE if form.maximize else GRB.MINIMIZE, xQ_L=x, xQ_R=x, xc=x
    )
    model.update()
    return x


#: Senses of indicator rows in the order in which Gurobi gets them.
_INDICATOR_ORDER = ("=", ">", "<")


def _add_indicators(model: gurobipy.Model, x: gurobipy.MVar, indicators: IndicatorRows) -> None:
    """Add indicator rows; of two-sided ones, Gurobi would drop the condition without a word."""
    row, sense, side = _one_sided(indicators.lower, indicators.upper)
    for kind in _INDICATOR_ORDER:
        here = np.flatnonzero(sense == kind)
        if len(here):
            rows = row[here]
            model.addGenConstrIndicator(
                x[indicators.binary[rows].tolist()],
                indicators.value[rows] == 1,
                indicators.A[rows] @ x,
                kind,
                side[here],
            )


def n_one_sided(lower: FloatArray, upper: FloatArray) -> int:
    """Count the rows that Gurobi gets for rows with these sides."""
    return len(_one_sided(lower, upper)[0])


def _one_sided(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return number, sense and side of one-sided rows that say the same; rows without sides are left out."""
    equal = lower == upper
    groups = (
        ("=", equal, lower),
        (">", ~equal & (lower > -np.inf), lower),
        ("<", ~equal & (upper < np.inf), upper),
    )
    row = np.concatenate([np.flatnonzero(here) for _, here, _ in groups])
    sense = np.concatenate([np.full(int(here.sum()), kind) for kind, here, _ in groups])
    side = np.concatenate([sides[here] for _, here, sides in groups])
    order = np.argsort(row, kind="stable")
    return row[order], sense[order], side[order]


def set_option(model: gurobipy.Model, name: str, value: Any) -> None:
    """Set one option of a model; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If Gurobi knows no such option (the nearest are named) or refuses its value.
    """
    known = {option.lower(): option for option in dir(GRB.Param) if not option.startswith("_")}
    if name.lower() not in known:
        raise unknown_option("Gurobi", name, known.values())
    plain = value.item() if isinstance(value, np.generic) else value
    kind = model.getParamInfo(known[name.lower()])[1]
    if not _is_a(plain, kind):
        wanted = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: it takes {wanted}")
    try:
        model.setParam(name, kind(plain))
    except OverflowError as error:
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}") from error
    except GurobiError as error:
        # What the licence and servers need counts when Gurobi starts, which it has.
        advice = "; it belongs in the licence file" if error.errno == GRB.Error.INVALID_ARGUMENT else ""
        raise NotAllowed(f"Gurobi refuses option {name} = {value!r}: {error}{advice}") from error


def _is_a(value: Any, kind: type) -> bool:
    """Return whether a value is of an option's type, or a number that loses nothing in it."""
    if kind is str:
        return isinstance(value, str)
    # NaN is not equal to itself: Gurobi would leave the option as it was.
    return isinstance(value, int | float) and value == value and (kind is float or value % 1 == 0)


def starts_to_try(judged: JudgedStart) -> list[FloatArray]:
    """Return the points that Gurobi is to try, in this order, NaN for what it is to complete.

    A partial start is passed as it is, and once more with its integers alone, in case its other values stand in
    the way.
    """
    if judged.full is not None:
        return [judged.full]
    integers = [judged.integers] if judged.completable and judged.integers is not None else []
    if judged.given is None or judged.infeasible:
        return integers
    if np.isnan(judged.given).all():
        return []
    alone = judged.integers is not None and np.array_equal(judged.given, judged.integers, equal_nan=True)
    return [judged.given] if alone else [judged.given, *integers]


#: What the licence inside the gurobipy package allows: variables, rows of every kind together, and
#: variables of a model with a quadratic objective.
VARIABLES, ROWS, QUADRATIC_VARIABLES = 2000, 2000, 200

#: Gurobi's errors that mean that it is not ours to use now.
_NO_ACCESS = (
    GRB.Error.NO_LICENSE,
    GRB.Error.NETWORK,
    GRB.Error.JOB_REJECTED,
    GRB.Error.CLOUD,
    GRB.Error.CSWORKER,
)

_OWN_LICENSE = "set GRB_LICENSE_FILE to a licence of your own (free for academic use)"


@dataclass(frozen=True)
class Size:
    """What Gurobi's licence counts in a model.

    Attributes
    ----------
    variables
        Number of columns.
    rows
        Number of rows as Gurobi takes them: free ones not at all, two-sided ones twice.
    indicators
        Number of indicator rows, counted likewise.
    quadratic
        Number of columns in the quadratic part of the objective.
    """

    variables: int
    rows: int
    indicators: int
    quadratic: int

    @staticmethod
    def of(form: MatrixForm) -> Size:
        """Count."""
        return Size(
            variables=form.n_columns,
            rows=n_one_sided(form.row_lower, form.row_upper),
            indicators=n_one_sided(form.indicators.lower, form.indicators.upper),
            quadratic=0 if form.Q is None else int(np.count_nonzero(np.diff(form.Q.indptr))),
        )

    @property
    def needs_license(self) -> bool:
        """Whether the model is beyond the licence inside the gurobipy package."""
        variables = QUADRATIC_VARIABLES if self.quadratic else VARIABLES
        return self.variables > variables or self.rows + self.indicators > ROWS

    @property
    def needs_license_when_linear(self) -> bool:
        """Whether this still holds with tangents, at least one per quadratic column, for the quadratic."""
        linear = Size(self.variables + self.quadratic, self.rows + self.quadratic, self.indicators, 0)
        return linear.needs_license

    def too_large(self, license_limits: str) -> LicenseLimit:
        """Return the error for a licence that does not take the model."""
        parts = [f"{self.variables} variables", f"{self.rows + self.indicators} rows"]
        if self.indicators:
            parts[1] += f" ({self.indicators} of them indicator rows)"
        ways, options = [_OWN_LICENSE, 'use solver="highs"'], [_OWN_LICENSE, "use --solver highs"]
        if self.quadratic:
            parts.append("a quadratic objective")
            if not self.needs_license_when_linear:
                ways.append('use bridges="quadratic", a linear model that may fit')
                options.append("use --bridge quadratic, a linear model that may fit")
        model = f"{', '.join(parts[:-1])} and {parts[-1]}"
        return LicenseLimit(
            f"the model has {model}; {license_limits}:", hint=", or ".join(ways), option=", or ".join(options)
        )


def require_license(size: Size, environment: gurobipy.Env) -> None:
    """Refuse a model that is beyond the licence inside the gurobipy package, if that is the one in use.

    Raises
    ------
    LicenseLimit
        With the counts, the limits, and the ways out.
    """
    if size.needs_license and is_restricted(environment):
        raise size.too_large(
            f"Gurobi's licence here is the one inside the gurobipy package, which takes {VARIABLES} "
            f"variables and {ROWS} rows, or {QUADRATIC_VARIABLES} variables with a quadratic objective"
        )


def is_restricted(environment: gurobipy.Env) -> bool:
    """Return whether the licence in use limits the size of models.

    Gurobi tells it in no attribute, so a model without rows, one variable too large, is put to it: an
    answer of a millisecond.
    """
    with gurobipy.Model(env=environment) as probe:
        probe.addMVar(VARIABLES + 1)
        try:
            probe.optimize()
        except GurobiError as error:
            if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
                return True
            raise
    return False


def license_in_use() -> str:
    """Describe the licence in use.

    Raises
    ------
    SolverUnavailable
        If Gurobi gives none.
    """
    try:
        with gurobipy.Env(params={"LogToConsole": 0}) as environment:
            restricted = is_restricted(environment)
    except GurobiError as error:
        raise explained(error, Size(0, 0, 0, 0)) from error
    return f"bundled licence: {VARIABLES} variables and rows" if restricted else "own licence"


def explained(error: GurobiError, size: Size) -> SolverError:
    """Put an error of Gurobi in the terms of this package.

    Parameters
    ----------
    error
        The error.
    size
        Size of the model.
    """
    reason = f"{str(error).rstrip('.')} (Gurobi error {error.errno})"
    if error.errno in _NO_ACCESS:
        # The licence inside a release of gurobipy ends about a year after it.
        check = "check the licence file"
        if "expired" in reason:
            check += " or, without one, run pip install --upgrade gurobipy"
        return SolverUnavailable(
            f"Gurobi gives no licence: {reason}",
            hint=f'{check}, {_OWN_LICENSE}, or use solver="highs"',
            option=f"{check}, {_OWN_LICENSE}, or use --solver highs",
        )
    if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
        return size.too_large(f"Gurobi's licence here takes less: {reason}")
    if error.errno == GRB.Error.Q_NOT_PSD:
        return NotAllowed(f"the quadratic objective is not convex: {reason}; leave out the option NonConvex")
    return SolverError(f"Gurobi failed: {reason}")


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
        What Gurobi reported while it ran.
    """

    status: Status
    message: str
    x: FloatArray | None
    bound: float
    seen: GurobiListener
    row_duals: FloatArray | None = None


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

    def build(self) -> None:
        """Build the model."""
        self._x = self._listener.variables = load(self._model, self._form)

    def can_become(self, form: MatrixForm) -> bool:
        """Return whether a model differs from this one in bounds, costs and sides alone, each on the side it was on."""
        old, new = (_one_sided(each.row_lower, each.row_upper) for each in (self._form, form))
        return (
            same_rows(self._form, form) and np.array_equal(old[0], new[0]) and np.array_equal(old[1], new[1])
        )

    def change(self, form: MatrixForm, settings: SolveSettings, worker: Worker) -> None:
        """Change bounds, costs and sides, for a run that reports to another worker."""
        self._form, self._settings, self._worker = form, settings, worker
        self._listener = GurobiListener(form, worker)
        self._listener.variables = self._x
        self._model.Params.Method = settings.solver_options.get("Method", _ANY_METHOD)
        self._x.setAttr("LB", form.col_lower)
        self._x.setAttr("UB", form.col_upper)
        sense = GRB.MAXIMIZE if form.maximize else GRB.MINIMIZE
        linear: Any = None  # no quadratic part
        self._model.setMObjective(linear, form.c, form.offset, sense=sense, xc=self._x)
        constraints = self._model.getConstrs()
        _, _, side = _one_sided(form.row_lower, form.row_upper)
        self._model.setAttr("RHS", constraints, side.tolist())
        self._model.update()

    def give(self, start: JudgedStart, priorities: IntArray | None) -> None:
        """Pass a start and branching priorities."""
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
        answer = self._answer(status, outcome, x, bound)
        return (
            answer
            if model.IsMIP or status is not Status.OPTIMAL
            else replace(answer, row_duals=self._duals())
        )

    def _duals(self) -> FloatArray | None:
        """Return the (m,) duals of a continuous model; those of both sides of a row add up, one of them is 0."""
        row, _, _ = _one_sided(self._form.row_lower, self._form.row_upper)
        duals = np.zeros(self._form.n_rows)
        try:
            np.add.at(duals, row, np.array(self._model.getAttr("Pi", self._model.getConstrs())))
        except (AttributeError, GurobiError):
            return None  # Gurobi has none, such as without crossover
        return duals

    def infeasible_subsystem(self) -> IntArray | None:
        """Return the rows of Gurobi's irreducible infeasible subsystem, indicator rows behind the linear ones.

        Raises
        ------
        GurobiError
            If Gurobi fails.
        """
        model, form = self._model, self._form
        self._x = self._listener.variables = load(model, form)
        self._listener.muted = True
        if self._settings.time_limit is not None:
            set_option(model, "TimeLimit", self._settings.time_limit)
        try:
            model.computeIIS(self._listener)
        except GurobiError as error:
            if error.errno == GRB.Error.IIS_NOT_INFEASIBLE:
                return None
            raise
        row, _, _ = _one_sided(form.row_lower, form.row_upper)
        linear = row[np.array([constraint.IISConstr for constraint in model.getConstrs()], dtype=bool)]
        switched, sense, _ = _one_sided(form.indicators.lower, form.indicators.upper)
        switched = np.concatenate([switched[sense == kind] for kind in _INDICATOR_ORDER])
        taken = np.array([general.IISGenConstr for general in model.getGenConstrs()], dtype=bool)
        found = np.unique(np.concatenate([linear, form.n_rows + switched[taken]]))
        return found if len(found) else None

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
        Whether Gurobi now solves another model, of which nothing is to be reported.
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
            self._callback(model, event)
        except BaseException as error:
            self.failure = error
            model.terminate()
        if self._worker.stop.is_set():
            model.terminate()

    def _callback(self, model: gurobipy.Model, event: int) -> None:
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
