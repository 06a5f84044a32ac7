"""The contract between mipforest and a solver plug-in, and the solvers by name (``mipforest.solvers``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverUnavailable, UnknownSolver, Unsupported, known_name, suggestion
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.bound_check import (
    NO_OPTIMUM,
    Lost,
    lost_entries,
    no_bound,
    validated,
    worth_of_violations,
)
from mipforest.solvers.checks import require_plain_numbers, unknown_option, with_exact_integers
from mipforest.solvers.solution import Progress, Solution, Status
from mipforest.solvers.worker import Worker


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package, read once: reading it takes as long as a small solve."""
    return version(package)


class Feature(StrEnum):
    """What a solver can take, or do."""

    LP = "linear programmes"
    MIP = "integer variables"
    QP = "convex quadratic objective without integers"
    MIQP = "convex quadratic objective with integers"
    INDICATORS = "indicator rows"
    START = "full starts"
    PARTIAL_START = "partial starts"
    PRIORITIES = "branching priorities"
    PROGRESS = "progress while solving"
    INTERRUPT = "interruption that keeps the incumbent"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver says of a model: see :func:`assembled`, which makes the solution of it."""

    status: Status
    x: FloatArray | None = None
    bound: float | None = None
    nodes: int = 0
    warnings: Iterable[str] = ()
    message: str = ""
    row_duals: FloatArray | None = None


class Solver(ABC):
    """A solver plug-in: one subclass per solver, found through the entry-point group ``mipforest.solvers``.

    The module that holds it must import the solver's own package only inside methods, so that listing
    solvers costs nothing. One that takes neither starts nor priorities is simpler as a :class:`PlainSolver`.
    """

    #: Name on the command line.
    name: ClassVar[str]
    #: Top-level module of the solver's Python package.
    package: ClassVar[str]
    #: What ``pip install`` takes to bring it, shown when it is missing.
    install: ClassVar[str]
    #: What it can take, or do.
    features: ClassVar[frozenset[Feature]]
    #: Matrix entries of at most this size are zeros to it; 0 if it takes every entry.
    zero: ClassVar[float] = 0.0
    #: Its own option that sets this size, empty if there is none.
    zero_option: ClassVar[str] = ""
    #: Whether it stops at the gap that is asked for; one that goes to a gap of its own is not held to it.
    keeps_gap: ClassVar[bool] = True

    @classmethod
    def available(cls) -> bool:
        """Return whether the solver's package is installed (it is not imported)."""
        return find_spec(cls.package) is not None

    @classmethod
    def named(cls, inner: str) -> Solver:
        """Return the solver for ``name`` or, where a plug-in reaches several solvers, ``name:inner``.

        Raises
        ------
        SolverUnavailable
            If there is nothing behind the colon for this solver.
        """
        if inner:
            raise SolverUnavailable(f"solver {cls.name!r} takes no ':{inner}' behind its name; leave it out")
        return cls()

    def version(self) -> str:
        """Return the version of the solver: that of its package, unless the plug-in knows better."""
        return installed_version(self.package)

    def license(self) -> str:
        """Say under which licence the solver runs; empty where it needs none.

        Raises
        ------
        SolverUnavailable
            If it needs one and finds none.
        """
        return ""

    @abstractmethod
    def solve(
        self,
        form: MatrixForm,
        settings: SolveSettings,
        *,
        start: FloatArray | None = None,
        priorities: IntArray | None = None,
        on_progress: Progress | None = None,
    ) -> Solution:
        """Solve a model whose features this solver has.

        Parameters
        ----------
        form
            The model.
        settings
            Limits and settings; ``start`` and ``bridges`` are validated already.
        start
            (n,) point to start from; NaN where it is left open.
        priorities
            (n,) branching priorities, higher first.
        on_progress
            Called with progress events.

        Raises
        ------
        Unsupported
            Before anything is built, if the model needs a feature that this solver lacks.
        NotAllowed
            For numbers that are NaN or 1e20 and above, or an unknown option.
        """

    def aborts_on(self, form: MatrixForm) -> bool:  # noqa: ARG002
        """Return whether the solver is known to abort the process on models of this kind: it gets one of its own."""
        return False

    def keeping(self) -> Solver:
        """Return a solver of this kind that keeps a model from one solve to the next; :meth:`close` lets it go.

        A solve of a model that differs from the last one in bounds, costs and sides alone changes these in place of
        building it anew. The solver is for one thread at a time.

        Raises
        ------
        Unsupported
            If the solver keeps no models.
        """
        raise Unsupported(
            f"solver {self.name} builds a model anew for each solve; a session takes one that keeps it: highs, gurobi"
        )

    def close(self) -> None:  # noqa: B027 (solvers that keep nothing have nothing to do)
        """Let go of a model that is kept."""

    def infeasible_subsystem(self, form: MatrixForm, settings: SolveSettings) -> IntArray | None:  # noqa: ARG002
        """Return the numbers of rows without a solution, where the solver has means of its own to find few of them.

        Parameters
        ----------
        form
            A model without a solution; its objective does not count.
        settings
            With a time limit.

        Returns
        -------
        (k,) array of int, or ``None``
            Numbers of linear rows, and of indicator rows behind them; ``None`` where it has no such means, they do not
            take this model, or the time ran out.
        """
        return None

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the solver does not take, by a model of one variable: solvers know their own options.

        Raises
        ------
        NotAllowed
            As for :meth:`solve`.
        """
        if options:
            tiny = Model("options")
            tiny.minimize(tiny.nonnegative("x", (1,), upper=1).sum())
            self.solve(tiny.matrix(), SolveSettings(solver_options=dict(options)))

    def require(self, form: MatrixForm) -> None:
        """Refuse a model that needs what this solver lacks.

        Raises
        ------
        Unsupported
            Naming the features that are missing.
        """
        missing = sorted(needed(form) - self.features)
        if missing:
            raise Unsupported(
                f"solver {self.name} takes no {' and no '.join(missing)}; "
                "solve through mipforest.solving.solve, which rewrites the model where a bridge exists, "
                "or choose another solver"
            )

    def unused(self, **given: Any) -> list[str]:
        """Return a warning for each part of a call that this solver does not take.

        Parameters
        ----------
        given
            By name, ``start=start``: the parts that are not used; those that are ``None`` were not asked for.
        """
        return [
            f"{name.replace('_', ' ')}: not used, since {self.name} takes none"
            for name, value in given.items()
            if value is not None
        ]

    def lost(self, form: MatrixForm, settings: SolveSettings) -> Lost:
        """Find what this solver loses of a model by taking small entries for zeros."""
        return lost_entries(form, float(settings.solver_options.get(self.zero_option, self.zero)))

    def solution(
        self, form: MatrixForm, worker: Worker, settings: SolveSettings | None = None, **reported: Any
    ) -> Solution:
        """Make the solution of what this solver reports: :func:`assembled`.

        Parameters
        ----------
        form, worker, reported
            As there.
        settings
            What was asked. An optimum is held to its gap, and its proof to the entries that the solver drops.
        """
        if settings is not None:
            gap = settings.gap if self.keeps_gap else None
            reported |= {"gap": gap, "lost": self.lost(form, settings)}
        if (
            reported.get("status") is Status.INTERRUPTED
            and Feature.INTERRUPT in self.features
            and not worker.stop.is_set()
        ):
            reported["status"] = Status.LIMIT  # nobody asked for it: of memory, for one
        return assembled(form, worker, solver=self.name, version=self.version(), **reported)

    def constant_solution(self, form: MatrixForm, worker: Worker) -> Solution:
        """Check a model without columns, which solvers call empty whether or not its rows hold."""
        x = np.zeros(0)
        holds = violations(form, x).max <= FEASIBILITY_TOLERANCE
        return self.solution(
            form,
            worker,
            status=Status.OPTIMAL if holds else Status.INFEASIBLE,
            x=x if holds else None,
            bound=form.offset,
            message="a model without columns",
        )


def same_rows(old: MatrixForm, new: MatrixForm) -> bool:
    """Return whether two linear models differ in bounds, costs and sides alone."""
    matrices = (old.A, new.A), (old.indicators.A, new.indicators.A)
    return (
        old.A.shape == new.A.shape
        and old.indicators.n_rows == new.indicators.n_rows == 0
        and not (old.is_quadratic or new.is_quadratic)
        and np.array_equal(old.integer, new.integer)
        and all(
            a.nnz == b.nnz
            and np.array_equal(a.indptr, b.indptr)
            and np.array_equal(a.indices, b.indices)
            and np.array_equal(a.data, b.data)
            for a, b in matrices
        )
    )


def of_object(settings: SolveSettings) -> SolveSettings:
    """Return what a solver's object is made with: all settings but time limit and start, which each run has."""
    return replace(settings, time_limit=None, start=None)


def needed(form: MatrixForm) -> frozenset[Feature]:
    """Return the features that a solver must have to take this model as it is."""
    features = {Feature.LP}
    if form.integer.any():
        features.add(Feature.MIP)
    if form.is_quadratic:
        features.add(Feature.MIQP if form.is_mip else Feature.QP)
    if form.indicators.n_rows:
        features.add(Feature.INDICATORS)
    return frozenset(features)


class PlainSolver(Solver):
    """A solver plug-in that takes neither starts nor priorities: a subclass gives :meth:`run`."""

    #: Names of the options that :meth:`run` takes; ``None`` where it looks at them itself.
    options: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def run(self, form: MatrixForm, settings: SolveSettings, worker: Worker) -> Answer:
        """Solve a model that has been checked, without a start.

        Parameters
        ----------
        form, settings
            As in :meth:`solve`.
        worker
            The clock and the events; a solver that reports progress or can be interrupted runs in it.
        """

    def solve(
        self,
        form: MatrixForm,
        settings: SolveSettings,
        *,
        start: FloatArray | None = None,
        priorities: IntArray | None = None,
        on_progress: Progress | None = None,
    ) -> Solution:
        """Check a model, solve it by :meth:`run`, and make the solution; see :meth:`Solver.solve`."""
        self.require(form)
        require_plain_numbers(form)
        if self.options is not None:
            for name in settings.solver_options:
                if name not in self.options:
                    raise unknown_option(self.name, name, self.options)
        worker = Worker(form.maximize, on_progress)
        answer = self.run(form, settings, worker)
        unused = self.unused(start=start, branching_priorities=priorities)
        return self.solution(
            form, worker, settings, **{**vars(answer), "warnings": [*answer.warnings, *unused]}
        )


def assembled(
    form: MatrixForm,
    worker: Worker,
    *,
    solver: str,
    version: str,
    status: Status,
    x: FloatArray | None,
    bound: float | None = None,
    nodes: int = 0,
    start: FloatArray | None = None,
    start_objective: float = np.nan,
    gap: float | None = None,
    lost: Lost | None = None,
    warnings: Iterable[str] = (),
    message: str = "",
    row_duals: FloatArray | None = None,
) -> Solution:
    """Make the solution of what a solver reports, and report the last event.

    Parameters
    ----------
    form
        The model.
    worker
        Has the events and the clock.
    solver, version
        Who solved it.
    status
        Why it stopped.
    x
        (n,) its point, or ``None``; it is rounded to exact integers, and left out where the status says that
        there is no optimum.
    bound
        Its bound, in the model's own sense, infinite where it has none. Without one, the objective of a
        continuous model that was solved to optimality counts.
    nodes
        Branch-and-bound nodes.
    start
        (n,) feasible point that is known otherwise: a limit may come before the solver has looked at it.
    start_objective
        Value of the start that was taken; that of ``start`` unless given.
    gap
        Relative gap that was asked for: an optimum that is further from its bound is none. ``None`` where the
        solver goes to a gap of its own.
    lost
        What the solver took for zeros.
    warnings, message
        What the user should know, and the solver's own last word.
    row_duals
        (m,) its duals, of a continuous model; kept where the status is an optimum. The reduced costs follow from them.
    """
    said = list(warnings)
    x = None if x is None or status in NO_OPTIMUM else with_exact_integers(form, x)
    if start is not None:
        start_objective = form.objective(start)
        if status not in NO_OPTIMUM:
            x = _better_point(form, x, start)
    if x is not None:
        said += _tolerance_warning(form, x)
        if status is Status.OPTIMAL and violations(form, x).max > NO_ROUNDING:
            status = Status.LIMIT
    objective = np.nan if x is None else form.objective(x)
    if bound is None:
        proven = status is Status.OPTIMAL and not form.is_mip
        bound = objective if proven else no_bound(form)
    status, bound, issues = validated(
        form, status, objective, bound, gap=gap, lost=lost, slip=worth_of_violations(form, x)
    )
    said += issues
    worker.finish(objective, bound, nodes)
    if status is not Status.OPTIMAL or x is None or form.is_mip:
        row_duals = None
    return Solution(
        status=status,
        x=x,
        values={} if x is None else form.to_values(x),
        objective=objective,
        bound=bound,
        nodes=nodes,
        seconds=worker.seconds,
        solver=solver,
        solver_version=version,
        events=tuple(worker.events),
        start_objective=start_objective,
        warnings=tuple(said),
        message=message,
        stopped=worker.stop.is_set(),
        row_duals=row_duals,
        reduced_costs=None if row_duals is None or x is None else _reduced_costs(form, x, row_duals),
    )


def _reduced_costs(form: MatrixForm, x: FloatArray, row_duals: FloatArray) -> FloatArray:
    """Return the gradient of the Lagrangian over the rows, ``c + Qx - A'y``."""
    gradient = form.c if form.Q is None else form.c + form.Q @ x
    costs: FloatArray = gradient - form.A.T @ row_duals
    return costs


def _better_point(form: MatrixForm, x: FloatArray | None, start: FloatArray) -> FloatArray:
    if x is None:
        return start
    value, known = form.objective(x), form.objective(start)
    return start if (value < known if form.maximize else value > known) else x


#: A point that violates a row by more than this is no solution, and its value no optimum: scaling and presolve make a
#: thousand times the tolerance of a solver at most.
NO_ROUNDING = 1e3 * FEASIBILITY_TOLERANCE


def _tolerance_warning(form: MatrixForm, x: FloatArray) -> list[str]:
    """Name the worst violation of a point, if it is above the tolerance."""
    found = violations(form, x)
    if found.max <= FEASIBILITY_TOLERANCE:
        return []
    name, amount = found.worst(1)[0]
    return [f"the solution violates {name} by {amount:.3g}, above the tolerance {FEASIBILITY_TOLERANCE:g}"]


GROUP = "mipforest.solvers"


@cache
def solver_classes() -> dict[str, type[Solver]]:
    """Return all registered solvers by name, installed or not, built in or from another package."""
    return {
        entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def get_solver(name: str, *, others: Iterable[str] = ()) -> Solver:
    """Return a solver by name.

    Parameters
    ----------
    name
        Registered name, in upper or lower case; what stands behind a colon (``pyomo:glpk``) is for the plug-in to read.
    others
        Names that the caller also takes, for the message.

    Raises
    ------
    UnknownSolver
        If no solver has that name; the nearest names are suggested.
    SolverUnavailable
        If its package is not installed.
    """
    classes = solver_classes()
    registered, _, inner = name.partition(":")
    registered = known_name(registered, classes)
    if registered not in classes:
        known = [*classes, *others]
        hint = suggestion(registered, known, 2, otherwise=".", written=str)
        raise UnknownSolver(
            f"no solver named {name!r}{hint} Known: {', '.join(known)}; any solver that Pyomo reaches is pyomo:NAME"
        )
    plugin = classes[registered]
    if not plugin.available():
        raise SolverUnavailable(
            f"solver {registered!r} is not installed (no Python package {plugin.package!r}); "
            f"run: pip install {plugin.install}"
        )
    return plugin.named(inner)
