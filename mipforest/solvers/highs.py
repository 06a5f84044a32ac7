"""HiGHS, through highspy: linear and mixed-integer linear programmes.

A session is one HiGHS object, with every return code checked and everything it says kept. While HiGHS completes a
partial start, it reports the bounds of the auxiliary model as if they were the model's. So a start is completed by a
run of its own, and passed only when it is full and feasible.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, ClassVar

import highspy
import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import NotAllowed, SolverError
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import Feature, Solver, of_object, same_rows
from mipforest.solvers.checks import (
    SMALL_ENTRY,
    JudgedStart,
    judge_start,
    require_plain_numbers,
    unknown_option,
    with_exact_integers,
    writable,
)
from mipforest.solvers.solution import Progress, Solution, Status
from mipforest.solvers.worker import SolverLate, Worker, left_behind, out_of_memory

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

    - Starts of models with integers are checked and completed first;
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

    def __init__(self) -> None:
        self._keeps = False
        self._kept: tuple[HighsSession, MatrixForm, SolveSettings] | None = None

    def keeping(self) -> Highs:
        """Return HiGHS that keeps its object; a linear programme starts from the last basis."""
        twin = Highs()
        twin._keeps = True
        return twin

    def close(self) -> None:
        """Let go of the object."""
        self._kept = None

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

        session = self._kept_for(form, settings, worker) or loaded(settings)
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
        if self._keeps and not session.late:
            self._kept = session, form, of_object(settings)
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
            row_duals=None if form.is_mip else session.row_duals,
            bound=info.mip_dual_bound if form.is_mip else None,
            nodes=max(0, int(info.mip_node_count)),
            start=known,
            warnings=warnings,
            message="; ".join([words, *session.said]) if status is Status.ERROR else words,
        )

    def _kept_for(self, form: MatrixForm, settings: SolveSettings, worker: Worker) -> HighsSession | None:
        """Return the object of the last solve, changed to this model, where no more than numbers differ."""
        kept, self._kept = self._kept, None  # what fails on the way is not used again
        if kept is None or kept[2] != of_object(settings) or not same_rows(kept[1], form):
            return None
        session, last, _ = kept
        session.change(last, form, worker)
        return session

    def infeasible_subsystem(self, form: MatrixForm, settings: SolveSettings) -> IntArray | None:
        """Return the rows of HiGHS' irreducible infeasible subsystem of an infeasible linear relaxation."""
        if not form.n_columns:
            return None
        worker = Worker(form.maximize, None)
        session = HighsSession(worker, report=False)
        session.set_options(settings)
        session.load(form.relaxed())
        return session.infeasible_subsystem(settings.time_limit)


#: HiGHS stops at this absolute gap whatever the relative one. Its default, 1e-6, would end a run with
#: an optimum below 0.01 before the usual relative gap of 1e-4 is reached.
ABSOLUTE_GAP = 1e-9

#: The presolve rule "Enumeration", of HiGHS 1.13 to 1.15: where it fixes all but one binary of a sum that is 1, the row
#: is lost (HiGHS issue 3216), as samples that reach a leaf have. Optima were cut off, feasible models infeasible. It is
#: off in versions before :data:`SOUND`.
UNSOUND_RULES = 1 << 16

#: First version in which the rule keeps the row.
SOUND = (1, 16)

#: HiGHS' strategy for an infeasible subsystem: by linear programmes, until no row can be left out.
IRREDUCIBLE_FROM_LP = 2 | 4

#: Options that change what the answer means, with what to do instead.
REFUSED = {"solve_relaxation": "build the relaxation as a model of its own"}

#: What HiGHS says of the integrality array of a model without integers, which it nevertheless asks for.
_NO_INTEGERS = "with non-empty integrality"

_TROUBLE = (highspy.HighsLogType.kWarning, highspy.HighsLogType.kError)
_CALLBACK = highspy.cb.HighsCallbackType
_LOGGING, _IMPROVED = int(_CALLBACK.kCallbackLogging), int(_CALLBACK.kCallbackMipImprovingSolution)
_MIP_EVENTS = (_IMPROVED, int(_CALLBACK.kCallbackMipInterrupt))
_CALLBACKS = (
    _CALLBACK.kCallbackLogging,
    _CALLBACK.kCallbackMipImprovingSolution,
    _CALLBACK.kCallbackMipInterrupt,
    _CALLBACK.kCallbackSimplexInterrupt,
    _CALLBACK.kCallbackIpmInterrupt,
)


class _Silent(highspy.Highs):  # type: ignore[misc]
    """HiGHS that writes nothing to the standard output.

    Its output stays on, to nowhere: without it the logging callback, hence every error text, is silent.
    """

    def enableCallbacks(self) -> None:  # noqa: N802 (the name is that of highspy)
        # Since version 1.16 the constructor prints a banner at this call, before a caller can set an option.
        self.setOptionValue("log_to_console", False)
        super().enableCallbacks()


class HighsSession:
    """A silent HiGHS object that reports to a :class:`Worker`.

    Parameters
    ----------
    worker
        Takes progress and asks for interruption.
    report
        Whether progress is passed on; a session for an auxiliary model keeps it to itself.

    Attributes
    ----------
    highs
        The ``highspy.Highs`` object.
    said
        Its warnings and errors so far.
    late
        Whether HiGHS was left behind in a step in which it does not look at its clock, or ran out of memory.
        :attr:`highs` is its own then: it ends at its next look.
    reported
        (n,) the best point that HiGHS has reported, and the number of nodes.
    """

    def __init__(self, worker: Worker, *, report: bool = True) -> None:
        self.said: list[str] = []
        self.late = False
        self.reported: tuple[FloatArray | None, int] = None, 0
        self._worker = worker
        self._report = report
        self._limited, self._is_mip = False, False
        self.highs = _Silent()
        # HiGHS is C++, where Python sees no cycle: were it to hold its session, neither would ever be freed.
        own = weakref.ref(self)

        def relay(*arguments: Any) -> None:
            session = own()
            if session is not None:
                session._callback(*arguments)

        self.highs.setCallback(relay, None)
        for kind in _CALLBACKS:
            self.highs.startCallback(kind)

    def set_options(self, settings: SolveSettings) -> None:
        """Set the options, except the time limit, which depends on when the run starts.

        Raises
        ------
        NotAllowed
            If HiGHS knows no such option (the nearest are named), refuses its value, or cannot write the log.
        """
        self.set_option("mip_rel_gap", float(settings.gap))
        self.set_option("mip_abs_gap", ABSOLUTE_GAP)
        self.set_option("random_seed", settings.seed)
        if (self.highs.versionMajor(), self.highs.versionMinor()) < SOUND:
            self.set_option("presolve_rule_off", UNSOUND_RULES)
        if settings.threads is not None:
            self.set_option("threads", settings.threads)
        if settings.log is not None:
            self.set_option("log_file", str(writable(settings.log)))
        for name, value in settings.solver_options.items():
            self.set_option(name, value)

    def set_option(self, name: str, value: Any) -> None:
        """Set one option by its HiGHS name; numpy scalars are taken as Python's.

        Raises
        ------
        NotAllowed
            If HiGHS knows no such option (the nearest are named) or refuses its value.
        """
        if name in REFUSED:
            raise NotAllowed(f"HiGHS option {name} = {value!r} is refused: {REFUSED[name]}")
        if self.highs.getOptionType(name)[0] == highspy.HighsStatus.kError:
            known = [option for option in dir(highspy.HighsOptions) if not option.startswith("_")]
            raise unknown_option("HiGHS", name, known)
        heard = len(self.said)
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            refused = self.highs.setOptionValue(name, plain) == highspy.HighsStatus.kError
        except TypeError:
            refused = True
        if refused:
            reason = "; ".join(self.said[heard:]) or f"a {type(plain).__name__} is not what it takes"
            raise NotAllowed(f"HiGHS refuses option {name} = {value!r}: {reason}")

    def load(self, form: MatrixForm) -> None:
        """Pass a linear model that has at least one column.

        Raises
        ------
        NotAllowed
            If a cost, matrix entry or side is one that HiGHS would take for something else.
        SolverError
            If HiGHS refuses the model, with what it said.
        """
        require_plain_numbers(form)
        self._is_mip = form.is_mip
        # HiGHS would read a shorter integrality array past its end, so a model without integers has one too.
        status = self.highs.passModel(
            form.n_columns,
            form.n_rows,
            form.A.nnz,
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMaximize if form.maximize else highspy.ObjSense.kMinimize),
            float(form.offset),
            _floats(form.c),
            _floats(form.col_lower),
            _floats(form.col_upper),
            _floats(form.row_lower),
            _floats(form.row_upper),
            form.A.indptr.astype(np.int32, copy=False),
            form.A.indices.astype(np.int32, copy=False),
            _floats(form.A.data),
            form.integer.astype(np.int32, copy=False),
        )
        self._check(status, "refuses the model")

    def change(self, old: MatrixForm, new: MatrixForm, worker: Worker) -> None:
        """Change costs, bounds and sides of the model passed before, for a run that reports to another worker.

        Raises
        ------
        NotAllowed, SolverError
            As for :meth:`load`.
        """
        require_plain_numbers(new)
        self._worker, self.said, self.reported = worker, [], (None, 0)
        highs = self.highs
        if new.is_mip:
            highs.clearSolver()  # a former point would be taken for a start without a check
        if new.maximize != old.maximize:
            sense = highspy.ObjSense.kMaximize if new.maximize else highspy.ObjSense.kMinimize
            self._check(highs.changeObjectiveSense(sense), "refuses the sense")
        self._check(highs.changeObjectiveOffset(float(new.offset)), "refuses the constant")
        if len(at := _differing((old.c, new.c))):
            self._check(highs.changeColsCost(len(at), at, new.c[at]), "refuses the costs")
        if len(at := _differing((old.col_lower, new.col_lower), (old.col_upper, new.col_upper))):
            status = highs.changeColsBounds(len(at), at, new.col_lower[at], new.col_upper[at])
            self._check(status, "refuses the bounds")
        if len(at := _differing((old.row_lower, new.row_lower), (old.row_upper, new.row_upper))):
            status = highs.changeRowsBounds(len(at), at, new.row_lower[at], new.row_upper[at])
            self._check(status, "refuses the sides")

    def set_start(self, x: FloatArray) -> None:
        """Pass a full start."""
        solution = highspy.HighsSolution()
        solution.col_value = x.tolist()
        self._check(self.highs.setSolution(solution), "refuses the start")

    def run(self, seconds: float | None) -> str:
        """Run for at most ``seconds``; give the name of HiGHS' model status.

        Where HiGHS neither ends by then nor when it is asked to stop, it is left behind: see :attr:`late`.

        Raises
        ------
        SolverError
            If HiGHS cannot solve such a model, with what it said.
        """
        if seconds is not None:
            # The clock of linear programmes runs on between the runs of an object, that of integer ones does not.
            spent = 0.0 if self._is_mip else self.highs.getRunTime()
            self.set_option("time_limit", spent + max(0.0, seconds))
        elif self._limited:
            self.set_option("time_limit", np.inf)
        self._limited = seconds is not None
        try:
            status = self._worker.call(self._run, seconds=seconds, leave=True)
        except SolverLate:
            self.late = True
            return "kInterrupt" if self._worker.stop.is_set() else "kTimeLimit"
        except MemoryError:
            self.late = True  # what is left of the object is for nobody
            return "kMemoryLimit"
        outcome = self.highs.getModelStatus()
        if outcome == highspy.HighsModelStatus.kNotset:
            self._check(status, "cannot solve the model")
        return str(outcome.name)

    def infeasible_subsystem(self, seconds: float | None) -> IntArray | None:
        """Return the rows of an infeasible subsystem of the linear programme, ``None`` where none is found in time."""
        self.set_option("iis_strategy", IRREDUCIBLE_FROM_LP)
        if seconds is not None:
            self.set_option("time_limit", max(0.0, seconds))
            self.set_option("iis_time_limit", max(0.0, seconds))
        try:
            status, found = self._worker.call(self._subsystem, seconds=seconds, leave=True)
        except (SolverLate, MemoryError):
            self.late = True
            return None
        usable = status != highspy.HighsStatus.kError and found.valid_ and len(found.row_index_) > 0
        return np.sort(np.array(found.row_index_, dtype=np.int64)) if usable else None

    def _subsystem(self) -> Any:
        try:
            return self.highs.getIis()
        finally:
            self.highs.resetGlobalScheduler(True)

    @property
    def point(self) -> FloatArray | None:
        """The feasible point that HiGHS ended with, or ``None``; the best that it reported where it is late."""
        if self.late:
            return self.reported[0]
        solution = self.highs.getSolution()
        feasible = self.highs.getInfo().primal_solution_status == int(
            highspy.SolutionStatus.kSolutionStatusFeasible
        )
        x = np.array(solution.col_value)
        return x if solution.value_valid and feasible and np.isfinite(x).all() else None

    @property
    def row_duals(self) -> FloatArray | None:
        """(m,) duals of a linear programme, where HiGHS has them."""
        solution = self.highs.getSolution()
        return np.array(solution.row_dual) if solution.dual_valid else None

    def _run(self) -> Any:
        try:
            return self.highs.run()
        finally:
            # HiGHS keeps one pool of threads per calling thread; this thread ends here, so must its pool.
            self.highs.resetGlobalScheduler(True)

    def _check(self, status: Any, what: str) -> None:
        if status == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS {what}: {'; '.join(self.said) or 'it gives no reason'}")

    def _callback(self, kind: int, message: str, state: Any, reply: Any, _: Any) -> None:
        if kind == _LOGGING:
            if state.log_type in _TROUBLE and _NO_INTEGERS not in message:
                self.said.append(" ".join(message.split()).removeprefix("ERROR: ").removeprefix("WARNING: "))
            return
        if self.late:
            reply.user_interrupt = True
            return
        if kind in _MIP_EVENTS:
            x = np.array(state.mip_solution) if kind == _IMPROVED else None
            self.reported = self.reported[0] if x is None else x, state.mip_node_count
            if self._report:
                self._worker.observe(state.mip_primal_bound, state.mip_dual_bound, state.mip_node_count, x)
        if self._worker.stop.is_set():
            reply.user_interrupt = True


def _differing(*pairs: tuple[FloatArray, FloatArray]) -> IntArray:
    """Return the numbers of the entries in which one of several pairs of arrays differs."""
    changed = np.zeros(len(pairs[0][0]), dtype=bool)
    for old, new in pairs:
        changed |= old != new
    return np.flatnonzero(changed).astype(np.int32)


def _floats(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


#: Branch-and-bound nodes for the integers that a start leaves open: HiGHS' own limit (mip_max_start_nodes).
COMPLETION_NODES = 500

#: Share of the time limit that the completion of a start may take.
COMPLETION_SHARE = 0.25


def completed(
    form: MatrixForm, integers: FloatArray, settings: SolveSettings, worker: Worker
) -> FloatArray | None:
    """Return the best point found with some integer columns fixed, or ``None``.

    Parameters
    ----------
    form
        A model without indicator rows.
    integers
        (n,) integer values that are kept, NaN elsewhere.
    settings
        Settings of the solve.
    worker
        Can interrupt it.
    """
    fixed = ~np.isnan(integers)
    rest = replace(
        form,
        col_lower=np.where(fixed, integers, form.col_lower),
        col_upper=np.where(fixed, integers, form.col_upper),
        integer=form.integer & ~fixed,
    )
    session = HighsSession(worker, report=False)
    session.set_options(replace(settings, log=None))
    session.set_option("mip_max_nodes", COMPLETION_NODES)
    session.load(rest)
    session.run(None if settings.time_limit is None else COMPLETION_SHARE * settings.time_limit)
    if session.point is None:
        return None
    x = with_exact_integers(form, np.where(fixed, integers, session.point))
    return x if violations(form, x).max <= FEASIBILITY_TOLERANCE else None
