"""One SCIP object: its model and start, one run, its progress, and the thread in which it runs.

SCIP's library for derivatives (CppAD, used for quadratic objectives) numbers the threads that it sees and
has space for 64: the 64th new thread ends the process with a segmentation fault, even if all earlier ones have
ended. So a thread that has solved is used again.

Rows are built straight from the matrix, without SCIP's expression operators: 2.2 million entries in 1.7 s. A
detour over an MPS file takes 2.2 s, and SCIP then orders the columns anew. Parameters are checked before they
are set, since SCIP prints its complaints past every redirection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, Eventhdlr
from pyscipopt.scip import Expr, ExprCons, Model, Term
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import NotAllowed, SolverError
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.checks import (
    SMALL_ENTRY,
    SOLVER_INFINITY,
    JudgedStart,
    judge_start,
    require_plain_numbers,
    unknown_option,
    writable,
)
from mipforest.solvers.convexity import require_convex
from mipforest.solvers.worker import Worker


def add_columns(scip: Model, form: MatrixForm) -> list[Any]:
    """Add the columns and the linear objective; give SCIP's variables in order."""
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    kinds = np.where(binary, "B", np.where(form.integer, "I", "C")).tolist()
    columns = zip(kinds, _sides(form.col_lower), _sides(form.col_upper), form.c.tolist(), strict=True)
    variables = [scip.addVar(vtype=kind, lb=low, ub=high, obj=cost) for kind, low, high, cost in columns]
    scip.addObjoffset(float(form.offset))
    if form.maximize:
        scip.setMaximize()
    return variables


def add_rows(scip: Model, form: MatrixForm, variables: list[Any]) -> None:
    """Add the rows that have a finite side."""
    rows = zip(_left_sides(form.A, variables), _sides(form.row_lower), _sides(form.row_upper), strict=True)
    for left, lower, upper in rows:
        if lower is not None or upper is not None:
            scip.addCons(ExprCons(left, lower, upper))


def add_indicator_rows(scip: Model, form: MatrixForm, variables: list[Any]) -> None:
    """Add the indicator rows, one for each finite side: SCIP takes ``<=`` and ``>=`` only."""
    indicators = form.indicators
    rows = zip(
        indicators.binary.tolist(),
        (indicators.value == 1).tolist(),
        _left_sides(indicators.A, variables),
        _sides(indicators.lower),
        _sides(indicators.upper),
        strict=True,
    )
    for column, at_one, left, lower, upper in rows:
        for sides in ((lower, None), (None, upper)):
            if sides != (None, None):
                scip.addConsIndicator(ExprCons(left, *sides), variables[column], activeone=at_one)


def add_quadratic_objective(scip: Model, form: MatrixForm, variables: list[Any]) -> Any:
    """Add a column that stands for the quadratic part, and give it.

    SCIP's objective is linear: it gets a column ``theta >= 0`` with ``1/2 x'Qx <= theta`` (of ``-Q``, at the
    price ``-theta``, when maximising). The quadratic part must be convex (concave when maximising).
    """
    sign = -1.0 if form.maximize else 1.0
    theta = scip.addVar(lb=0.0, obj=sign)
    triangle = sparse.triu(form.Q).tocoo()
    factor = sign * np.where(triangle.row == triangle.col, 0.5, 1.0) * triangle.data
    terms = {
        Term(variables[i], variables[j]): value
        for i, j, value in zip(triangle.row.tolist(), triangle.col.tolist(), factor.tolist(), strict=True)
    }
    terms[Term(theta)] = -1.0
    scip.addCons(ExprCons(Expr(terms), None, 0.0))
    return theta


def negligible_entries(form: MatrixForm) -> int:
    """Count the matrix entries that SCIP takes for zeros."""
    return sum(int((np.abs(matrix.data) <= SMALL_ENTRY).sum()) for matrix in (form.A, form.indicators.A))


def _left_sides(A: SparseMatrix, variables: list[Any]) -> Iterator[Expr]:
    """Return each row of a CSR matrix as an expression of SCIP."""
    terms = [Term(variable) for variable in variables]
    ends, columns, data = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    for start, stop in pairwise(ends):
        entries = zip(columns[start:stop], data[start:stop], strict=True)
        yield Expr({terms[column]: value for column, value in entries})


def _sides(values: FloatArray) -> list[float | None]:
    """Return ``None`` for infinite sides."""
    return [None if np.isinf(value) else value for value in values.tolist()]


#: Parameters that would break what this package guarantees, with what to do instead.
REFUSED = {
    "misc/catchctrlc": "Ctrl-C is taken care of, and keeps the incumbent",
    "exact/enable": "the answer would be read in double precision anyway",
    "constraints/countsols/active": "SCIP would count the feasible points instead of optimising",
}

#: Parameter that names a file of Ipopt's options, where SCIP is built with Ipopt; and ours, which has MUMPS order
#: matrices by AMD (approximate minimum degree) in place of METIS: SCIP issue 211.
IPOPT_FILE = "nlpi/ipopt/optfile"
IPOPT_OPTIONS = Path(__file__).with_name("ipopt.opt")

#: The two lines that SCIP writes for each parameter.
_DESCRIPTION = re.compile(
    r"# \[type: (\w+), advanced: \w+(?:, range: ([\[{].*?[\]}]))?, default: .*\]\n(\S+) = "
)


@dataclass(frozen=True)
class Parameter:
    """What SCIP says of a parameter.

    Attributes
    ----------
    kind
        ``bool``, ``int``, ``longint``, ``real``, ``char`` or ``string``.
    range
        ``[least,greatest]`` of numbers, ``{abc}`` of characters, empty for texts.
    """

    kind: str
    range: str

    def takes(self, value: Any) -> bool:
        """Return whether a value has the right type and lies within the range."""
        if self.kind == "string":
            return isinstance(value, str)
        if self.kind == "char":
            return isinstance(value, str) and len(value) == 1 and value in self.range[1:-1]
        if self.kind == "bool":
            return isinstance(value, bool | int) and value in (0, 1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind in ("int", "longint") and value % 1 != 0:
            return False
        least, greatest = map(float, self.range[1:-1].split(","))
        return least <= value <= greatest

    def __str__(self) -> str:
        return f"a {self.kind} in {self.range}" if self.range else f"a {self.kind}"


@cache
def parameters() -> dict[str, Parameter]:
    """Return all parameters of SCIP by name, from the settings file that it writes."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scip.set"
        Model().writeParams(str(file), comments=True, onlychanged=False, verbose=False)
        text = file.read_text()
    return {name: Parameter(kind, limits) for kind, limits, name in _DESCRIPTION.findall(text)}


def set_parameter(scip: Model, name: str, value: Any) -> None:
    """Set one parameter; numpy scalars are taken as Python's.

    Raises
    ------
    NotAllowed
        If SCIP has no such parameter (the nearest are named), or the value is not one that it takes.
    """
    known = parameters()
    if name not in known:
        raise unknown_option("SCIP", name, known)
    if name in REFUSED:
        raise NotAllowed(f"SCIP option {name} = {value!r} is refused: {REFUSED[name]}")
    plain = value.item() if isinstance(value, np.generic) else value
    if not known[name].takes(plain):
        raise NotAllowed(f"SCIP refuses option {name} = {value!r}: it takes {known[name]}")
    scip.setParam(name, plain)


class ScipStart:
    """A start on its way into SCIP.

    A full and feasible start is passed as it is. Of any other the integer values are passed, as a partial
    solution that SCIP's heuristic ``completesol`` completes.

    Parameters
    ----------
    scip
        SCIP, with the model.
    form
        The model.
    variables
        SCIP's variable of each column.
    theta
        SCIP's variable of the quadratic part of the objective, if there is one.

    Attributes
    ----------
    objective
        Value of the start that SCIP took, NaN without one.
    warnings
        What the user should know.
    """

    def __init__(self, scip: Model, form: MatrixForm, variables: list[Any], theta: Any) -> None:
        self.objective = np.nan
        self.warnings: list[str] = []
        self._scip = scip
        self._form = form
        self._variables = variables
        self._theta = theta
        self._given: dict[int, float] = {}
        self._judged = JudgedStart()

    def give(self, start: JudgedStart) -> None:
        """Pass a start to SCIP."""
        self._judged = start
        if start.full is not None:
            if self._give_point(start.full):
                return
            self._judged = replace(
                start, full=None, flaw="the start is infeasible for SCIP's own tolerances", infeasible=True
            )
        self._give_integers()

    @property
    def is_partial(self) -> bool:
        """Whether SCIP was given integer values to complete."""
        return bool(self._given)

    def is_completed_by(self, solution: Any) -> bool:
        """Return whether a solution of SCIP has the integer values that were given."""
        return all(abs(solution[self._variables[j]] - value) < 0.5 for j, value in self._given.items())

    def conclude(self, completion: FloatArray | None) -> None:
        """Take note of the completion that SCIP found, or found not, and of its value."""
        if completion is not None:
            self.objective = self._form.objective(completion)
        self.warnings += self._judged.warnings(taken=completion is not None)

    def _give_point(self, x: FloatArray) -> bool:
        """Pass a feasible point; whether SCIP finds it feasible too."""
        solution = self._scip.createSol()
        for variable, value in zip(self._variables, x.tolist(), strict=True):
            self._scip.setSolVal(solution, variable, value)
        if self._theta is not None and self._form.Q is not None:
            self._scip.setSolVal(solution, self._theta, 0.5 * abs(float(x @ (self._form.Q @ x))))
        # addSol returns True for an infeasible point too.
        if not self._scip.checkSol(solution, printreason=False, original=True):
            self._scip.freeSol(solution)
            return False
        self._scip.addSol(solution)
        self.objective = self._form.objective(x)
        return True

    def _give_integers(self) -> None:
        """Pass the integer values that are integral and within their bounds."""
        if not self._judged.completable or self._judged.integers is None:
            self.warnings += self._judged.warnings(taken=False)
            return
        kept = np.flatnonzero(~np.isnan(self._judged.integers))
        self._given = {int(j): float(self._judged.integers[j]) for j in kept}
        solution = self._scip.createPartialSol()
        for j, value in self._given.items():
            self._scip.setSolVal(solution, self._variables[j], value)
        self._scip.addSol(solution)


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
        if self._form.is_quadratic and IPOPT_FILE in parameters():
            # METIS, which orders large matrices for MUMPS, Ipopt's linear solver, spoils memory in PySCIPOpt's wheel.
            set_parameter(self.scip, IPOPT_FILE, str(IPOPT_OPTIONS))
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
