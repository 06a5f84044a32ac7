"""Tree searches: solvers that know the structure of a tree. Their loops are compiled.

Numba takes longer to import than all else that a solve imports. So modules of kernels are imported when a search runs,
and the plug-ins, which say what a search takes, do without it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from mipforest.time_budget import Stopped, TimeBudget

#: What is told before the search is compiled.
COMPILING = "compiling the search: once on this machine, under a minute, which the time limit does not count"

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
    from numba import config, njit
    from numba.misc.appdirs import user_cache_dir

    chosen = config.CACHE_DIR  # NUMBA_CACHE_DIR, if that is set; read when a function is decorated
    config.CACHE_DIR = chosen or user_cache_dir("mipforest", appauthor=False)
    try:
        fast: _F = njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = chosen
    return fast


def entry(function: _F) -> _F:
    """Compile a function that allocates nothing and that Python calls, and keep the machine code on disk."""
    return _kept(function, **_LEAN)


def kernel(function: _F) -> _F:
    """Compile a function that only an :func:`entry` calls: no door from Python, which takes most of the time."""
    from numba import njit
    from numba.core.types.misc import unliteral

    fast = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_LEAN)(function)
    compile_for = fast.compile
    # Numba compiles a function anew for every whole number that callers write out: once for all of them will do.
    fast.compile = lambda types: compile_for(tuple(map(unliteral, types)))
    kept: _F = fast
    return kept


def glue(function: _F) -> _F:
    """Insert a function where an :func:`entry` or a :func:`kernel` calls it, before they are compiled."""
    from numba import njit

    fast: _F = njit(inline="always", **_LEAN)(function)
    return fast


def compile_by(run: Callable[[], object], budget: TimeBudget) -> float:
    """Run a search on something tiny, so that its functions are there; return the seconds if they had to be compiled.

    That happens once on a machine, and is told when it begins; later processes load them. The budget counts neither.

    Raises
    ------
    Stopped
        Between two functions, where the budget was stopped.
    """
    began = monotonic()
    from numba.core.event import Listener, install_listener

    class Compilation(Listener):  # type: ignore[misc]
        begun = False

        def on_start(self, event: object) -> None:
            del event
            if budget.stopped:
                raise Stopped
            if not self.begun:
                self.begun = True
                budget.tell(COMPILING)

        def on_end(self, event: object) -> None:
            del event

    compilation = Compilation()
    with install_listener("numba:compile", compilation):
        run()
    seconds = monotonic() - began
    budget.exclude("compile" if compilation.begun else "load", seconds)
    return seconds if compilation.begun else 0.0
