"""Searches on the workers of a Dask cluster: slices of a search there, and one process here that shares them out.

A *slice* is a task of about two seconds: it takes open nodes, searches below them, and returns those that it left open
and what it found. The process that called the search keeps all other open nodes, the incumbent and the bound.

- *The problem travels once.* It is the outcome of a task: every worker fetches it from another one, and builds its
  tables once. Dask computes it anew where all workers that had it are lost.
- *The incumbent is sent, not asked for.* A better value goes to all workers at once, past the queue of tasks. If some
  hundred workers asked for it five times a second, the scheduler would do nothing else.
- *A slice that runs twice does no harm.* It depends on its open nodes alone; a better incumbent makes it shorter. Where
  a worker is lost, Dask runs its slices again, and until they end the bound counts their open nodes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pickle import HIGHEST_PROTOCOL, dumps, loads
from threading import Lock, Thread, Timer
from time import monotonic, sleep
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from mipforest.cluster import DiedWithTask, connected, explained
from mipforest.errors import ClusterError
from mipforest.searches.pool import Pool
from mipforest.settings import one_blas_thread
from mipforest.time_budget import Stopped, TimeBudget

#: Seconds of a slice where there is work for all, and at least. Sending one takes some milliseconds.
SLICE, SHORT_SLICE = 2.0, 0.1

#: Open nodes for each slice that can run, from which on slices have their full time: with fewer, they return soon, so
#: that none runs on while others have nothing to do. With more, a slice takes several, up to the last number.
PER_SLOT, MOST_OF_A_SLICE = 4, 64

#: Seconds after which a slice with a better solution ends, for the others to have it.
SHARED_AFTER = 0.3

#: Seconds between two messages to all workers, and between two looks at how many there are.
MESSAGE_INTERVAL, COUNT_INTERVAL = 0.1, 5.0

#: Seconds for slices to hand back what they have, once they were told to end.
HAND_BACK = 1.5

#: Seconds that the message of the end may take, before the client that sends it is closed.
_STOP_MESSAGE = 1.0

#: Slices that may be given up, each after several workers died with it, before the search ends.
MOST_LOST = 3

#: Searches whose state a worker keeps: a message to one that is over must not begin it anew.
_KEPT_STATES = 16

#: What is told before the workers load the search.
PREPARING = (
    "preparing {} of a Dask cluster: loading the search, or compiling it, which the time limit does not count"
)


class Shared:
    """What all slices of a search on one worker share.

    Attributes
    ----------
    best
        Value of the best solution that is known anywhere.
    stop
        (2,) not 0 in front as soon as the search is to end; behind, the limit of work that some kernels ask for beside
        it, which no slice has.
    """

    def __init__(self) -> None:
        self.best, self.stop = math.inf, np.array([0, np.iinfo(np.int64).max])
        self._slices: Slices | None = None
        self._lock = Lock()

    def update(self, best: float, stop: bool = False) -> None:
        """Take over a value that is known elsewhere, and whether to end."""
        self.best = min(self.best, best)
        if stop:
            self.stop[0] = 1
            self._slices = None  # a slice under way has it still

    def slices(self, kind: type[Slices], problem: Any) -> Slices:
        """Return the part in the search, made once."""
        with self._lock:
            part = self._slices
            if part is None:
                kind.compile(problem, TimeBudget())  # a worker that came later has not loaded it yet
                part = kind(problem)
            self._slices = None if self.stop[0] else part
            return part


class Slices(ABC):
    """The part of a worker in a search: tables that are built once, and slices.

    Parameters
    ----------
    problem
        What the search sends to all workers.
    """

    #: What a slice is called in messages.
    task: ClassVar[str] = "slice"

    @abstractmethod
    def __init__(self, problem: Any) -> None: ...

    @classmethod
    @abstractmethod
    def compile(cls, problem: Any, budget: TimeBudget) -> float:
        """Load what slices run, or compile it; see :func:`~mipforest.searches.compile_by`."""

    @abstractmethod
    def run(self, shared: Shared, *work: Any) -> Any:
        """Run a slice; return what it has found and left open."""


#: By name of a search, what its slices share in this process.
_STATES: OrderedDict[str, Shared] = OrderedDict()
_STATES_LOCK = Lock()


def _state(name: str) -> Shared:
    with _STATES_LOCK:
        if name not in _STATES:
            _STATES[name] = Shared()
            while len(_STATES) > _KEPT_STATES:
                _STATES.popitem(last=False)
        return _STATES[name]


def _update(name: str, best: float, stop: bool) -> None:
    """Hear of a better solution, or of the end, on a worker."""
    _state(name).update(best, stop)


def _compile(kind: type[Slices], problem: Any) -> float:
    """Load the search on a worker; return the seconds if it had to be compiled."""
    return kind.compile(problem, TimeBudget())


def _run(
    name: str, kind: type[Slices], problem: Any, best: float, left: float, work: bytes
) -> tuple[bytes, float]:
    """Run a slice on a worker, for at most the seconds that are left; return what it has found, and its seconds."""
    began, shared = monotonic(), _state(name)
    shared.update(best)
    # A worker that hears of no end any more knows the time limit.
    timer = Timer(left, shared.update, (best, True)) if math.isfinite(left) else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        with one_blas_thread():
            found = shared.slices(kind, problem).run(shared, *loads(work))
        return dumps(found, HIGHEST_PROTOCOL), monotonic() - began
    finally:
        if timer is not None:
            timer.cancel()


class _Sealed:
    """A problem on its way to the cluster: older versions of Dask run a tuple that begins with a class as a task."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem


def _opened(sealed: _Sealed) -> Any:
    """Keep a problem on the cluster."""
    return sealed.problem


class Workers(Pool):
    """The workers of a Dask cluster, for one search.

    Parameters
    ----------
    address
        Address of the scheduler, such as ``tcp://127.0.0.1:8786``.
    kind
        The part of a worker.
    problem
        What it is made of.
    budget
        Told that workers load the search; the seconds are excluded from it.
    time_limit
        Seconds of the search from the end of the preparation on; infinite for no limit.

    Attributes
    ----------
    prepared
        Seconds that the workers took to load the search, or to compile it.
    slots
        Slices that can run at a time: threads of all workers.
    slices, seconds, bytes
        Slices that have come back, their seconds on the workers, and the bytes of open nodes and of what was found.

    Raises
    ------
    ClusterError
        If the cluster cannot be used.
    Stopped
        If the budget is stopped while workers load the search.
    """

    patience = HAND_BACK

    def __init__(
        self, address: str, kind: type[Slices], problem: Any, budget: TimeBudget, time_limit: float = math.inf
    ) -> None:
        self._kind, self._name = kind, f"{kind.__name__}-{uuid4().hex}"
        self._best, self._published, self._published_at = math.inf, math.inf, -math.inf
        self._lost = 0
        self.slices, self.seconds, self.bytes = 0, 0.0, 0
        self._client = connected(address)
        try:
            # As the outcome of a task: Dask computes it anew where its workers are lost.
            self._problem = self._client.submit(_opened, _Sealed(problem), pure=False)
            self._pool = self._client.get_executor(pure=False)
            self._count()
            began = monotonic()
            compiled = self._prepare(budget)
            self.prepared = monotonic() - began
            budget.exclude("compile" if compiled else "load", self.prepared)
        except BaseException:
            self._client.close()
            raise
        self.deadline = monotonic() + time_limit

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        """End what is under way there, and leave the cluster."""
        self.stop()
        with suppress(Exception):  # the scheduler may have gone
            self._pool.shutdown(wait=False)
        self._client.close()

    @property
    def at_once(self) -> int:
        """Slices that are handed out at a time: one more waits, so that no worker does while results are read here."""
        return self.slots + 1

    def submit(self, *work: Any, best: float = math.inf) -> Future[Any]:
        """Hand a slice to the scheduler; ``best`` is the value of the best solution."""
        left = self.deadline - monotonic()
        # As bytes: Dask would look through lists of open nodes for futures, and give arrays that cannot be written.
        packed = dumps(work, HIGHEST_PROTOCOL)
        self.bytes += len(packed)
        future: Future[Any] = self._pool.submit(
            _run, self._name, self._kind, self._problem, best, left, packed
        )
        return future

    def share(self, n_open: int) -> tuple[int, float]:
        """Return how many of so many open nodes a slice takes, and the seconds that it has."""
        full = PER_SLOT * self.slots
        count = min(max(1, n_open // full), MOST_OF_A_SLICE)
        return count, min(max(SLICE * n_open / full, SHORT_SLICE), SLICE)

    def result(self, future: Future[Any]) -> Any | None:
        """Return what a slice has found, ``None`` where it was given up as several workers died with it.

        Raises
        ------
        ClusterError
            If that happened too often, or the scheduler has gone.
        """
        try:
            found, seconds = future.result()
        except (CancelledError, Exception) as error:
            explanation = explained(error, self._kind.task)
            if not isinstance(explanation, DiedWithTask) or self._lost >= MOST_LOST:
                raise explanation from error
            self._lost += 1
            return None
        self.slices, self.seconds, self.bytes = (
            self.slices + 1,
            self.seconds + seconds,
            self.bytes + len(found),
        )
        return loads(found)

    def publish(self, best: float) -> None:
        """Send the workers the incumbent's value where it is better than they know, and count them."""
        now = monotonic()
        if best < self._published and now - self._published_at >= MESSAGE_INTERVAL:
            self._published, self._published_at = best, now
            self._send(best, stop=False)
        if now - self._counted_at >= COUNT_INTERVAL:
            self._count()

    def stop(self) -> None:
        """Tell the workers to end what is under way."""
        if math.isinf(self._stopped_at):
            super().stop()
            self._send(math.inf, stop=True).join(_STOP_MESSAGE)

    def _send(self, best: float, *, stop: bool) -> Thread:
        """Send a message to all workers; in a thread, as one that is lost does not answer for long."""

        def send() -> None:
            with suppress(Exception):  # slices that hear of nothing end by themselves
                self._client.run(_update, self._name, best, stop, on_error="ignore")

        thread = Thread(target=send, daemon=True)
        thread.start()
        return thread

    def _count(self) -> None:
        self._counted_at = monotonic()
        with suppress(Exception):  # slices that come back tell that the scheduler has gone
            self.slots = max(1, int(sum(self._client.ncores().values())))

    def _prepare(self, budget: TimeBudget) -> float:
        """Have every worker load the search, or compile it; return the most seconds that compiling took."""
        workers = list(self._client.ncores())
        budget.report(PREPARING.format(f"{len(workers)} worker{'s' * (len(workers) != 1)}"))
        pending = {
            worker: self._client.submit(_compile, self._kind, self._problem, workers=[worker], pure=False)
            for worker in workers
        }
        compiled, looked = 0.0, monotonic()
        while pending:
            for worker in [worker for worker, future in pending.items() if future.done()]:
                try:
                    compiled = max(compiled, pending.pop(worker).result())
                except (CancelledError, Exception) as error:
                    raise explained(error, self._kind.task) from error
            if budget.stopped:
                raise Stopped
            sleep(0.02)
            if monotonic() - looked > 1.0:
                looked, there = monotonic(), self._client.ncores()
                # One that is lost is not waited for; another in its place loads the search with its first slice.
                pending = {worker: future for worker, future in pending.items() if worker in there}
        if not self._client.ncores():
            raise ClusterError(
                "all workers of the Dask cluster ended while they loaded the search; look at their logs, and start "
                "them anew"
            )
        return compiled
