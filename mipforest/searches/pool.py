"""Where the tasks of a search run: threads of this process, or the workers of a Dask cluster.

Both are a :class:`Pool`: :class:`Threads`, and :class:`mipforest.searches.workers.Workers`. :func:`run_tasks` hands out
tasks to either one until none is left or the search is to end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, TypeVar

from mipforest.arrays import IntArray
from mipforest.solvers.worker import THREAD_NAME

#: Seconds between two looks at the clock, and at what was found.
INTERVAL = 0.05

_T = TypeVar("_T")


class Pool(AbstractContextManager["Pool"], ABC):
    """Runs the tasks of one search.

    Attributes
    ----------
    deadline
        When its tasks end, on the clock of :func:`time.monotonic`.
    """

    deadline: float = math.inf
    #: Seconds that tasks which were told to end are waited for.
    patience: float = math.inf
    _stopped_at: float = math.inf

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Tasks that are handed out at a time."""

    @abstractmethod
    def submit(self, *work: Any, best: float = math.inf) -> Future[Any]:
        """Hand out a task; ``best`` is the value of the incumbent."""

    @abstractmethod
    def result(self, future: Future[Any]) -> Any | None:
        """Return what a task has found; ``None`` where it was lost.

        Raises
        ------
        ClusterError
            If no further task can be handed out.
        """

    def share(self, n_open: int) -> tuple[int, float]:  # noqa: ARG002
        """Return how many of some open nodes a task takes, and the seconds that it has."""
        return 1, math.inf

    def publish(self, best: float) -> None:
        """Let the tasks know the value of the incumbent."""

    def stop(self) -> None:
        """Tell the tasks to end."""
        self._stopped_at = min(self._stopped_at, monotonic())

    @property
    def is_given_up(self) -> bool:
        """Whether tasks that were told to end have not done so for long, and are left behind."""
        return monotonic() - self._stopped_at > self.patience


class Threads(Pool):
    """Threads of this process.

    Parameters
    ----------
    run
        Does a task.
    threads
        Number of threads.
    stop
        (1,) or more: the first entry becomes 1 when tasks are told to end.
    waiting
        Tasks that wait for a thread, so that none is idle while results are read.
    patience
        Seconds that tasks which were told to end are waited for.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        threads: int,
        stop: IntArray | None = None,
        *,
        waiting: int = 0,
        patience: float = math.inf,
    ) -> None:
        self._run, self._threads, self._stop = run, threads, stop
        self._waiting, self.patience = waiting, patience

    def __enter__(self) -> Threads:
        self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=THREAD_NAME)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._executor.shutdown(wait=not self.is_given_up, cancel_futures=self.is_given_up)

    @property
    def at_once(self) -> int:
        """Tasks that are handed out at a time: one for each thread, and those that wait."""
        return self._threads + self._waiting

    def submit(self, *work: Any, best: float = math.inf) -> Future[Any]:  # noqa: ARG002
        """Begin a task on the next thread that is free."""
        return self._executor.submit(self._run, *work)

    def result(self, future: Future[Any]) -> Any | None:
        """Return what a task has found."""
        return future.result()

    def stop(self) -> None:
        """Set the flag by which tasks end."""
        super().stop()
        if self._stop is not None:
            self._stop[0] = 1


def run_tasks(
    pool: Pool,
    next_task: Callable[[], _T | None],
    submit: Callable[[_T], Future[Any]],
    record: Callable[[_T, Any], None],
    should_stop: Callable[[], bool],
) -> bool:
    """Hand out tasks until none is left, or the search is to end; a lost one is handed out again.

    Parameters
    ----------
    pool
        Where they run.
    next_task
        Returns the next task, ``None`` where there is none at present.
    submit
        Hands it to the pool.
    record
        Called with a task and what it has found.
    should_stop
        Asked after results, and every :data:`INTERVAL` seconds, whether to end.

    Returns
    -------
    bool
        Whether all tasks that were handed out have come back.

    Raises
    ------
    ClusterError
        If the pool is lost.
    """
    running, lost, ends = dict[Future[Any], _T](), deque[_T](), False
    while True:
        while not ends and len(running) < pool.at_once:
            task = lost.popleft() if lost else next_task()
            if task is None:
                break
            running[submit(task)] = task
        if not running:
            return not lost
        for future in wait(running, timeout=INTERVAL, return_when=FIRST_COMPLETED).done:
            found, task = pool.result(future), running.pop(future)
            if found is None:
                lost.append(task)
            else:
                record(task, found)
        ends = should_stop() or ends
        if ends:
            pool.stop()
            if pool.is_given_up:
                return False
