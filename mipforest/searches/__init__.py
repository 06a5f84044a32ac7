"""Tree searches: solvers that know the structure of a tree. Their loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from numba import config, njit
from numba.core import event as numba_event
from numba.core.types.misc import unliteral
from numba.misc.appdirs import user_cache_dir

from mipforest.solvers.solution import Event, Progress
from mipforest.time_budget import TimeBudget

#: What is told before the search is compiled.
COMPILING = "compiling the search: once on this machine, under a minute, which the time limit does not count"

#: Seconds between two events of progress without a better tree.
PROGRESS_INTERVAL = 0.5

_F = TypeVar("_F", bound=Callable[..., Any])

#: Of kernels that compile fast and run fast: nothing is allocated, so that no references are counted, and sums may be
#: taken in another order, which lets them use vector registers; infinities keep their meaning.
_LEAN: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
    "_nrt": False,
}


def _kept(function: _F, **options: Any) -> _F:
    """Compile a function on its first call, and keep the machine code in the user's cache for later processes.

    Numba's own place is beside the source, where what a package manager did not write keeps it from removing the
    package: what is left of it then stands in the way of another installation.
    """
    chosen = config.CACHE_DIR  # NUMBA_CACHE_DIR, if that is set; read when a function is decorated
    config.CACHE_DIR = chosen or user_cache_dir("mipforest", appauthor=False)
    try:
        fast: _F = njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = chosen
    return fast


def compiled(function: _F) -> _F:
    """Compile a function on its first call, and keep the machine code on disk for later processes."""
    return _kept(function, nogil=True, error_model="numpy")


def inner(function: _F) -> _F:
    """Compile a function that only :func:`compiled` ones call: no door from Python, which takes most of the time."""
    fast: _F = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return fast


def entry(function: _F) -> _F:
    """Compile a function that allocates nothing and that Python calls, and keep the machine code on disk."""
    return _kept(function, **_LEAN)


def kernel(function: _F) -> _F:
    """Compile a function that only an :func:`entry` calls: no door from Python, which takes most of the time."""
    fast = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_LEAN)(function)
    compile_for = fast.compile
    # Numba compiles a function anew for every whole number that callers write out: once for all of them will do.
    fast.compile = lambda types: compile_for(tuple(map(unliteral, types)))
    kept: _F = fast
    return kept


def glue(function: _F) -> _F:
    """Insert a function where an :func:`entry` or a :func:`kernel` calls it, before they are compiled."""
    fast: _F = njit(inline="always", **_LEAN)(function)
    return fast


class _Compilation(numba_event.Listener):  # type: ignore[misc]
    """Tells that the first function is compiled, when that begins.

    Parameters
    ----------
    budget
        Tells it.

    Attributes
    ----------
    begun
        Whether one has begun: none does where all is loaded.
    """

    def __init__(self, budget: TimeBudget) -> None:
        self.begun = False
        self._budget = budget

    def on_start(self, event: object) -> None:
        del event
        if not self.begun:
            self.begun = True
            self._budget.tell(COMPILING)

    def on_end(self, event: object) -> None:
        del event


def compile_by(run: Callable[[], object], budget: TimeBudget) -> float:
    """Run a search on something tiny, so that its functions are there; return the seconds if they had to be compiled.

    That happens once on a machine; later processes load them. It is told when it begins, and the budget does not count
    it.
    """
    began, compilation = monotonic(), _Compilation(budget)
    with numba_event.install_listener("numba:compile", compilation):
        run()
    if not compilation.begun:
        return 0.0
    seconds = monotonic() - began
    budget.exclude_compilation(seconds)
    return seconds


class SearchEvents:
    """The progress of a search: better trees at once, the rest at most every :data:`PROGRESS_INTERVAL` seconds.

    Parameters
    ----------
    on_progress
        Called with every event; returning ``True`` stops the search.

    Attributes
    ----------
    began
        When the search began, on the clock of :func:`time.monotonic`.
    """

    def __init__(self, on_progress: Progress | None) -> None:
        self.began = monotonic()
        self._on_progress = on_progress
        self._events: list[Event] = []

    def tell(self, objective: float, bound: float, nodes: int) -> bool:
        """Tell objective, bound and nodes where it is time to; return whether to stop."""
        last = self._events[-1] if self._events else None
        if last is None or objective < last.objective or self._seconds() - last.seconds >= PROGRESS_INTERVAL:
            return self._told(objective, bound, nodes)
        return False

    def end(self, objective: float, bound: float, nodes: int) -> tuple[Event, ...]:
        """Tell how the search ended; return all events."""
        self._told(objective, bound, nodes)
        return tuple(self._events)

    def _told(self, objective: float, bound: float, nodes: int) -> bool:
        self._events.append(Event(self._seconds(), objective, bound, nodes))
        return bool(self._on_progress is not None and self._on_progress(self._events[-1]))

    def _seconds(self) -> float:
        return monotonic() - self.began
