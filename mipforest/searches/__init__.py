"""Tree searches: solvers that know the structure of a tree. Their loops are compiled.

Numba takes longer to import than all else that a solve imports. So modules of kernels are imported when a search runs,
and the plug-ins, which say what a search takes, do without it.

What is used of Numba beyond its documentation, and why (``tests/searches/test_compilation.py`` looks for each):

- ``_nrt=False``: kernels allocate nothing, and compile faster without counting references.
- ``Dispatcher._cache`` is replaced, as the compiler's own cache does not see changes of what a function calls
  (:mod:`mipforest.searches.kernel_cache`, which restores results by ``CompileResult._reduce`` and ``_rebuild``).
- ``Dispatcher.compile`` is wrapped, so that a number that is written out makes no kind of its own.
- ``Compiler``, ``JITCPUCodegen`` and ``JITCodeLibrary`` have subclasses that make no machine code of kernels
  (:mod:`mipforest.searches.kernel_compiler`).
- ``Dispatcher.overloads`` has the library of a function, which knows its address
  (:mod:`mipforest.searches.addresses`); ``numba.cfunc`` returns addresses too, but of functions that are not kept.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from mipforest.errors import SolverUnavailable
from mipforest.searches.kernel_cache import KernelCache, kernel_folder
from mipforest.time_budget import Stopped, TimeBudget

#: Messages before the search is compiled; also where the machine code cannot be kept, and what a result says then.
COMPILING = (
    "compiling {} for this kind of problem: about {} s, once on this machine, which the time limit does not count; "
    "'mipforest compile' compiles all kinds"
)
COMPILING_ANEW = "compiling {} for this kind of problem: about {} s, which the time limit does not count; {}"
NOT_KEPT = (
    "each run has to compile the search, as the machine code cannot be kept ({}); "
    "set NUMBA_CACHE_DIR to a folder where you may write"
)

_F = TypeVar("_F", bound=Callable[..., Any])

#: Of kernels that compile fast and run fast: nothing is allocated, so that no references are counted, and sums may be
#: taken in another order, which lets them use vector registers; infinities keep their meaning.
_LEAN: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
    "_nrt": False,
}


def compiled(function: _F, **options: Any) -> Any:
    """Have a function compiled on its first call, or for the types that it is told."""
    from numba import config, njit

    if config.DISABLE_JIT:
        raise SolverUnavailable(
            "NUMBA_DISABLE_JIT is set, so nothing is compiled, and the loops of a tree search would run for hours; "
            "unset it"
        )
    return njit(**_LEAN, **options)(function)


def entry(function: _F) -> _F:
    """Compile a function that allocates nothing and that Python calls, and keep the machine code on disk.

    Raises
    ------
    SolverUnavailable
        If the compiler is switched off; as :func:`kernel` and :func:`glue` do.
    """
    fast = compiled(function)
    # In the place of the compiler's own cache, which does not see changes of what the function calls.
    fast._cache = KernelCache(function, kernel_folder())
    kept: _F = fast
    return kept


def kernel(function: _F) -> _F:
    """Compile a function that only an :func:`entry` calls: no door from Python, and no machine code of its own.

    It is kept on disk too, for other entries that call it.
    """
    fast = compiled(function, **_linked_only())
    fast._cache = KernelCache(function, kernel_folder(), is_linked_only=True)
    from numba.core.types.misc import unliteral

    compile_for = fast.compile
    # Numba compiles a function anew for every whole number that callers write out: once for all of them will do.
    fast.compile = lambda types: compile_for(tuple(map(unliteral, types)))
    kept: _F = fast
    return kept


def _linked_only() -> dict[str, Any]:
    """Return the compiler's options of functions that have neither a door from Python nor an address."""
    from mipforest.searches.kernel_compiler import KernelCompiler

    return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}


def glue(function: _F) -> _F:
    """Insert a function where an :func:`entry` or a :func:`kernel` calls it, before they are compiled."""
    fast: _F = compiled(function, inline="always")
    return fast


#: What carries out an operation on named tuples of a type, by that type and the operation's name.
_IMPLEMENTATIONS: dict[tuple[type, str], Callable[..., Any]] = {}


def operation(function: _F) -> _F:
    """Declare an operation for compiled loops: the type of its first argument chooses what carries it out.

    The first argument is a named tuple. The choice is made by the compiler, so that an :func:`entry` that calls
    operations is compiled once for each type, and kept on disk like any other.
    """
    from numba.extending import overload

    options = {**_LEAN, **_linked_only()}

    def choose(first: Any, *_: Any) -> Callable[..., Any] | None:
        return _IMPLEMENTATIONS.get((getattr(first, "instance_class", object), function.__name__))

    overload(function, jit_options=options, strict=False)(choose)
    return function


def implement(kind: type, *functions: Callable[..., Any], **named: Callable[..., Any]) -> None:
    """Let functions, each a :func:`kernel`, carry out the operations of their names on named tuples of a type."""
    for name, function in {**{own.__name__: own for own in functions}, **named}.items():
        _IMPLEMENTATIONS[kind, name] = getattr(function, "py_func", function)


#: Objects made between two collections of garbage while functions are compiled, by generation. The compiler makes
#: millions that stay, and Python's own 700 would have each of them looked at again and again.
_COLLECTIONS = (20_000, 20, 50)

#: Threads that compile, and the thresholds before the first of them.
_compiling: list[tuple[int, int, int]] = []
_compiling_lock = Lock()


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage less often, until the last thread that compiles has done so."""
    with _compiling_lock:
        _compiling.append(_compiling[0] if _compiling else gc.get_threshold())
        gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        with _compiling_lock:
            before = _compiling.pop()
            if not _compiling:
                gc.set_threshold(*before)


def compile_by(run: Callable[[], object], budget: TimeBudget, name: str, seconds: int) -> float:
    """Run a search on something tiny, so that its functions are there; return the seconds if they had to be compiled.

    That happens once on a machine, and is reported when it begins; later processes load them. Where they cannot, as the
    machine code cannot be kept, the user is warned, and the result notes it. The budget counts neither.

    Parameters
    ----------
    run
        The search on something tiny.
    budget
        Told, and excluded from.
    name, seconds
        Of the search, and about how long it compiles.

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
                obstacle = kernel_folder().check()
                why = NOT_KEPT.format(obstacle)
                budget.report(
                    COMPILING_ANEW.format(name, seconds, why) if obstacle else COMPILING.format(name, seconds)
                )

        def on_end(self, event: object) -> None:
            del event

    compilation = Compilation()
    with install_listener("numba:compile", compilation), _fewer_collections():
        run()
    took = monotonic() - began
    budget.exclude("compile" if compilation.begun else "load", took)
    if compilation.begun and (obstacle := kernel_folder().obstacle):
        budget.note(NOT_KEPT.format(obstacle))
    return took if compilation.begun else 0.0
