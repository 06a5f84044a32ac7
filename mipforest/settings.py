"""Settings of a solve, one object for every solver, the command line, estimators, campaigns and tuning."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypedDict, TypeVar, get_type_hints

from threadpoolctl import ThreadpoolController

from mipforest.errors import NotAllowed, closest
from mipforest.time_budget import ReportLine, TimeBudget

#: Largest violation of a row, bound or integrality that counts as none: the default feasibility tolerance
#: of HiGHS, Gurobi and SCIP, so that what this package accepts, they accept.
FEASIBILITY_TOLERANCE = 1e-6

#: Relative gap at which a solve ends unless another is asked for: the default of Gurobi and HiGHS.
DEFAULT_GAP = 1e-4

#: Threads that may be asked for on any machine; on one with more processors, as many as it has. A solver allots
#: memory to each thread before it begins.
MAX_THREADS = 64

#: Parts of a model that can be rewritten on request.
BRIDGES = ("quadratic", "indicator")


@dataclass(frozen=True, kw_only=True)
class SolveSettings:
    """How a model is solved; the same names everywhere.

    Attributes
    ----------
    time_limit
        Seconds of wall time, at least 0; ``None`` (or infinity, which becomes ``None``) for no limit. Where a model is
        built for the solve, building counts.
    gap
        Relative gap at which a solution counts as optimal, at least 0 and finite.
    threads
        Number of threads, from 1 to :data:`MAX_THREADS`, or the machine's processors if they are more; ``None``
        leaves it to the solver.
    seed
        Random seed, at least 0.
    log
        File to which the solver appends its own log; ``None`` for silence.
    solver_options
        Options passed to the solver under its own names; numbers are finite.
    bridges
        Parts of the model to rewrite although the solver takes them: names in :data:`BRIDGES`. A single name may
        be given as a text.
    isolate
        Whether the solver runs in a process of its own, so that one that aborts ends no more than that; ``None`` leaves
        it to the solver: those that are known to abort on a model do. For matrix solvers.
    certificate
        File for a proof of the result that others can check (``.gz``; see :func:`mipforest.certify`); ``None`` for
        none. Only tree searches that say so write one.
    dask
        Address of the scheduler of a Dask cluster on which the search runs, such as ``tcp://127.0.0.1:8786``;
        ``threads`` are those of each of its tasks then. ``None`` for this process. Only tree searches that say so take
        it.
    keep_trees, within
        Most trees to list, the best one among them, at least 1, and the relative distance from the optimum within
        which, at least 0: the best so many, all within the distance, or the best so many of these. Both ``None`` for
        none.
        Of problems, not of models: see :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`.
    start
        Where to start, as the function that takes the settings describes it; solver plug-ins get the point
        itself.

    Raises
    ------
    NotAllowed
        If a value is of another type or out of its range: with the value, and what is allowed.
    """

    time_limit: float | None = None
    gap: float = DEFAULT_GAP
    threads: int | None = None
    seed: int = 0
    log: Path | None = None
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    bridges: tuple[str, ...] = ()
    isolate: bool | None = None
    certificate: Path | None = None
    dask: str | None = None
    keep_trees: int | None = None
    within: float | None = None
    start: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check(
            "time_limit", self.time_limit, Real, 0, "seconds, 0 or more, or None for no limit", optional=True
        )
        _check("gap", self.gap, Real, 0, "a relative gap, 0 or more (1e-4 is usual)")
        _check("keep_trees", self.keep_trees, Integral, 1, "1 or more trees, or None", optional=True)
        _check(
            "within", self.within, Real, 0, "a relative distance, such as 0.02 for 2%, or None", optional=True
        )
        if self.within == math.inf:
            raise NotAllowed(
                "within is inf; give a finite distance, such as 0.02 for 2%, or keep_trees alone"
            )
        if self.gap == math.inf:
            raise NotAllowed("gap is inf; give a finite relative gap, 0 or more (1e-4 is usual)")
        _check(
            "threads",
            self.threads,
            Integral,
            1,
            "1 or more, or None to leave it to the solver",
            optional=True,
        )
        _check_processors("threads", self.threads)
        _check("seed", self.seed, Integral, 0, "a whole number, 0 or more")
        for name in ("log", "certificate"):
            if not isinstance(getattr(self, name), str | os.PathLike | None):
                raise NotAllowed(
                    f"{name} is {getattr(self, name)!r}; give the name of a file, or None for no {name}"
                )
        if not isinstance(self.solver_options, Mapping):
            raise NotAllowed(
                f"solver_options is {self.solver_options!r}; give a mapping from names to values"
            )
        for name, value in self.solver_options.items():
            if str(name).lower() == "threads":
                _check_processors(f"solver_options: {name}", value)
            if isinstance(value, Real) and not isinstance(value, Integral) and not math.isfinite(value):
                raise NotAllowed(f"solver_options: {name} is {value}; give a finite number, or leave it out")
        if self.isolate not in (None, True, False):
            raise NotAllowed(
                f"isolate is {self.isolate!r}; give True, False, or None to leave it to the solver"
            )
        if not isinstance(self.dask, str | None) or self.dask == "":
            raise NotAllowed(
                f"dask is {self.dask!r}; give the address of a scheduler, such as tcp://127.0.0.1:8786, or None"
            )
        names = (self.bridges,) if isinstance(self.bridges, str) else tuple(self.bridges)
        for name in names:
            if name not in BRIDGES:
                raise NotAllowed(f"no bridge named {name!r}{closest(str(name), BRIDGES)}")
        plain = {
            "time_limit": None if self.time_limit == math.inf else self.time_limit,
            "log": None if self.log is None else Path(self.log),
            "certificate": None if self.certificate is None else Path(self.certificate),
            "solver_options": dict(self.solver_options),
            "bridges": names,
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def budget(self, report: ReportLine | None = None) -> TimeBudget:
        """Begin the budget for building and solving; a limit of 0, for the start alone, limits no preparation."""
        return TimeBudget(self.time_limit or None, report=report)


class FitKeywords(TypedDict, total=False):
    """The settings that a fit takes as keywords; each is the attribute of :class:`SolveSettings` of that name."""

    time_limit: float | None
    gap: float
    threads: int | None
    seed: int
    solver_options: Mapping[str, Any] | None
    bridges: str | Iterable[str]


class SolveKeywords(FitKeywords, total=False):
    """The settings that a solve takes as keywords; each is the attribute of :class:`SolveSettings` of that name."""

    log: str | os.PathLike[str] | None
    isolate: bool | None
    dask: str | None


_F = TypeVar("_F", bound=Callable[..., Any])


def takes_settings(keywords: type, defaults: SolveSettings) -> Callable[[_F], _F]:
    """Give a function that ends in ``**keywords: Unpack[...]`` a signature that names every keyword, with its default.

    ``help()``, notebooks and editors that run the code show it.
    """

    def named(function: _F) -> _F:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, hint in get_type_hints(keywords).items():
            default = None if name == "solver_options" else getattr(defaults, name)
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            )
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return named


def chosen_settings(
    settings: SolveSettings | None,
    keywords: FitKeywords,
    defaults: SolveSettings,
    *,
    allowed: type = SolveKeywords,
    **own: Any,
) -> SolveSettings:
    """Return the settings that a function was given, as one object or as keywords.

    Parameters
    ----------
    settings
        The object, if one was given.
    keywords
        The keywords that were given.
    defaults
        The settings where neither says anything.
    allowed
        The keywords that the function takes: :class:`SolveKeywords` or :class:`FitKeywords`.
    own
        Settings that the function has as parameters of its own, such as the start.

    Raises
    ------
    NotAllowed
        If both were given, as one of them would be ignored; or a value is not allowed.
    TypeError
        If there is no such keyword.
    """
    known = get_type_hints(allowed)
    for name in keywords:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}{closest(name, known)}")
    given: dict[str, Any] = {**keywords, **own}
    if "solver_options" in given:
        given["solver_options"] = given["solver_options"] or {}
    asked = replace(defaults, **given)
    if settings is None:
        return asked
    if asked != defaults or asked.start is not defaults.start:
        raise NotAllowed("settings were given as one object and as keywords; give one of the two")
    return settings


def _check(name: str, value: Any, kind: Any, least: float, allowed: str, *, optional: bool = False) -> None:
    """Refuse a value that is no number of a kind, or below its least value (or NaN)."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
        shown = repr(value) if isinstance(value, str) else value
        raise NotAllowed(f"{name} is {shown}; give {allowed}")


def _check_processors(name: str, threads: object) -> None:
    processors = os.cpu_count() or 1
    most = max(MAX_THREADS, processors)
    if isinstance(threads, Integral) and int(threads) > most:
        shown = threads if int(threads) < 10**20 else "more than 1e20"
        raise NotAllowed(
            f"{name} is {shown}, and this machine has {processors} processor(s); give 1 to {most}, or leave it "
            "to the solver"
        )


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which numpy and scipy multiply on one thread.

    Products of a tree's nodes are small: more threads wait for each other, ten times as long as they compute where the
    processors are busy. Solvers have threads of their own.
    """
    limited: AbstractContextManager[object] = _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _thread_pools(_n_modules: int) -> ThreadpoolController:
    """Return the thread pools of loaded libraries, looked for again once more modules are loaded."""
    return ThreadpoolController()
