"""Run a solver in a thread of its own, so that progress comes out and Ctrl-C gets in."""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Lock, Thread, stack_size
from threading import enumerate as all_threads
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from mipforest.errors import SolverError
from mipforest.solvers.solution import Event, Progress

if TYPE_CHECKING:
    from mipforest.arrays import FloatArray

Result = TypeVar("Result")

#: How the names of threads begin that may be left behind.
THREAD_NAME = "mipforest-solver"

#: Seconds beyond its limit, or after a stop was asked for, that a solver is waited for: most need tenths of one.
PATIENCE = 0.5

#: Bytes of the stack of a solver's thread, of which a solver takes what it needs. The presolve of HiGHS 1.16 follows
#: chains of rows by recursion: with 8 MiB, the usual default, a chain of 20,000 rows ends the process by SIGSEGV, and
#: one of 50,000 needs more than 16 MiB.
STACK_BYTES = 256 * 2**20

#: Held while the stack size of new threads, which is one for all of the process, is changed.
_stack_size_turn = Lock()

#: Least seconds between two progress events when there is no new incumbent: fast enough for a live display.
EVENT_INTERVAL = 0.1


class SolverLate(SolverError):
    """A solver was left behind in its thread: it did not end when it had to."""


class Worker:
    """Progress and interruption of one solve.

    The solver runs in a worker thread and calls :meth:`observe`; the calling thread hands the events to
    ``on_progress``, so that its errors, and Ctrl-C, arrive where the solve was called. Python delivers
    Ctrl-C to the main thread only, and only between two steps of Python code: a solver that runs in the
    main thread would hold it back until its end. No signal handler is touched.

    Parameters
    ----------
    maximize
        Sense of the objective.
    on_progress
        Called with every event; returning ``True`` sets :attr:`stop`.

    Attributes
    ----------
    stop
        Set when the solver must stop; its callbacks ask for it.
    events
        Recorded events: those whose incumbent or bound differs from the one before. Their points are left
        out: a long run would keep many.
    """

    def __init__(self, maximize: bool, on_progress: Progress | None = None) -> None:
        self.stop = Flag()
        self.events: list[Event] = []
        self._on_progress = on_progress
        self._began = perf_counter()
        self._queue: SimpleQueue[Event | None] = SimpleQueue()
        self._last = -math.inf
        self._no_bound = self._bound = math.inf if maximize else -math.inf
        self._tighter: Callable[[float, float], float] = min if maximize else max
        self._ctrl_c = False

    @property
    def seconds(self) -> float:
        """Wall time since the solve began."""
        return perf_counter() - self._began

    @property
    def bound(self) -> float:
        """Best bound observed so far, infinite without one."""
        return self._bound

    def forget_bound(self) -> None:
        """Take back the bound observed so far: the solver begins again, as it was wrong."""
        self._bound = self._no_bound

    def observe(self, objective: float, bound: float, nodes: int, x: FloatArray | None = None) -> None:
        """Take note of the solver's state; call it from the solver's thread, as often as it likes.

        Parameters
        ----------
        objective
            Value of the incumbent, infinite or NaN without one.
        bound
            Proven bound. Only the best one so far is reported: a solver that restarts forgets its own.
        nodes
            Branch-and-bound nodes so far.
        x
            (n,) the point, if there is a new incumbent. Other events are thinned: one in
            :data:`EVENT_INTERVAL` seconds.
        """
        self._bound = self._tighter(self._bound, bound)
        now = self.seconds
        if x is not None or now - self._last >= EVENT_INTERVAL:
            self._last = now
            known = objective if math.isfinite(objective) else math.nan
            self._queue.put(Event(now, known, self._bound, nodes, x))

    def finish(self, objective: float, bound: float, nodes: int) -> None:
        """Report the final state from the calling thread."""
        self._report(Event(self.seconds, objective, bound, nodes))

    def call(
        self, work: Callable[[], Result], *, seconds: float | None = None, leave: bool = False
    ) -> Result:
        """Call ``work`` in a worker thread and wait for it, handing over events meanwhile.

        The first Ctrl-C sets :attr:`stop` and waits on; a second one gives up waiting.

        Parameters
        ----------
        work
            What to call.
        seconds
            Limit that ``work`` was given.
        leave
            Whether to leave ``work`` behind where it ends neither within its limit nor once :attr:`stop` is set, each
            by :data:`PATIENCE`. It must touch nothing then that anything else uses.

        Raises
        ------
        SolverLate
            Where ``work`` was left behind: it runs on in the background, and the end of the program waits for it.
        KeyboardInterrupt
            At the second Ctrl-C; the worker runs on in the background until it sees :attr:`stop`, and the end
            of the program waits for it.
        Exception
            Whatever ``work`` or ``on_progress`` raised.
        """
        future: Future[Result] = Future()
        self._queue = SimpleQueue()
        thread = Thread(target=self._work, args=(work, future), name=THREAD_NAME, daemon=True)
        _start_with_a_large_stack(thread)
        latest = math.inf if seconds is None else self.seconds + seconds + PATIENCE
        while True:
            try:
                while self._wait(future):
                    if self.stop.is_set():
                        latest = min(latest, self.seconds + PATIENCE)
                    if leave and self.seconds > latest:
                        _joined_at_exit(thread)
                        raise SolverLate
                thread.join()
                return future.result()
            except SolverLate:
                raise
            except KeyboardInterrupt:
                self.stop.set()
                if self._ctrl_c:
                    _joined_at_exit(thread)
                    raise
                self._ctrl_c = True
            except BaseException:
                self.stop.set()
                thread.join()
                raise

    def _work(self, work: Callable[[], Result], future: Future[Result]) -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
        finally:
            self._queue.put(None)

    def _wait(self, future: Future[Result]) -> bool:
        """Handle one event, if there is one soon; whether there may be more."""
        try:
            # The timeout lets Ctrl-C through where a wait without one cannot be interrupted: on Windows, and
            # wherever another thread receives the signal.
            event = self._queue.get(timeout=EVENT_INTERVAL)
        except Empty:
            return not future.done()
        if event is not None:
            self._report(event)
        return event is not None

    def _report(self, event: Event) -> None:
        if not self.events or _changed(self.events[-1], event):
            self.events.append(replace(event, x=None))
        if self._on_progress is not None and self._on_progress(event):
            self.stop.set()


def left_behind(solver: str) -> str:
    """Say of a solver that it was left behind."""
    return (
        f"{solver} did not stop within {PATIENCE:g} s after it had to: it is left to itself, and later results are "
        "lost"
    )


def out_of_memory(solver: str) -> str:
    """Say of a solver that it ran out of memory."""
    return (
        f"{solver} ran out of memory, and was stopped: take fewer threads, a smaller depth, or fewer samples"
    )


def _start_with_a_large_stack(thread: Thread) -> None:
    """Start a thread with a stack of :data:`STACK_BYTES`, or the default where the system has none so large."""
    with _stack_size_turn:
        try:
            before = stack_size(STACK_BYTES)
        except (ValueError, RuntimeError):
            thread.start()
            return
        try:
            thread.start()
        except RuntimeError:  # the system's limit on memory is below the stack
            stack_size(before)
            thread.start()
        finally:
            stack_size(before)


def _joined_at_exit(thread: Thread) -> None:
    """Let the end of the program wait for a thread.

    A solver that still has threads when C++ takes down its globals ends the process by SIGABRT.
    """
    atexit.register(thread.join)


def solvers_run_on() -> bool:
    """Return whether a solver still runs that nobody waits for: it was left behind, or Ctrl-C came twice."""
    return any(thread.name.startswith(THREAD_NAME) for thread in all_threads())


def _changed(before: Event, after: Event) -> bool:
    """Return whether incumbent or bound moved (NaN to NaN is no move)."""
    both_without = math.isnan(before.objective) and math.isnan(after.objective)
    return before.bound != after.bound or not (both_without or before.objective == after.objective)
