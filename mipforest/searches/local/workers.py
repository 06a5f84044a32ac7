"""Where the starts of a local search are done: on threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, NamedTuple

from mipforest.arrays import IntArray
from mipforest.cluster import connected, explained
from mipforest.searches.local import LocalProblem, LocalTree
from mipforest.solvers.worker import THREAD_NAME

#: Seconds after the deadline within which a cluster may hand back what it has begun.
HAND_BACK = 2.0

#: Seconds after which starts that were told to stop are left behind in their threads.
LEFT_AFTER = 0.5


class Ended(NamedTuple):
    """What a start has led to: objective, its number, tree, visits and moves, and whether it came to its end."""

    value: float
    number: int
    tree: LocalTree
    steps: IntArray
    over: bool


class Threads(AbstractContextManager["Threads"]):
    """Does starts on threads of this process, ``slots`` at a time.

    Parameters
    ----------
    run
        Does a start, by its number.
    threads
        Number of threads.
    """

    def __init__(self, run: Callable[[int], Ended], threads: int) -> None:
        self.slots, self._run = threads, run
        self._told_at, self._left = math.inf, False

    def __enter__(self) -> Threads:
        self._pool = ThreadPoolExecutor(self.slots, thread_name_prefix=THREAD_NAME)
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(wait=not self._left, cancel_futures=self._left)

    def submit(self, number: int) -> Future[Ended]:
        """Begin a start."""
        return self._pool.submit(self._run, number)

    def ended(self, future: Future[Ended]) -> Ended:
        """Return what a start has led to."""
        return future.result()

    def given_up(self, interrupted: bool) -> bool:
        """Return whether to leave starts that were told to stop: they do at the next node, which may take long."""
        del interrupted
        self._told_at = min(self._told_at, monotonic())
        self._left = monotonic() - self._told_at > LEFT_AFTER
        return self._left


class Elsewhere(AbstractContextManager["Elsewhere"]):
    """Does starts on the workers of a Dask cluster, as many at a time as these have threads.

    Parameters
    ----------
    address
        Address of the scheduler.
    one_start
        Does a start there: called with problem, depth, options, its number, and the seconds that are left.
    problem, depth, options
        What all starts share.
    deadline
        On the clock of :func:`time.monotonic`.

    Raises
    ------
    ClusterError
        If the cluster cannot be used.
    """

    def __init__(
        self,
        address: str,
        one_start: Callable[..., Ended],
        problem: LocalProblem,
        depth: int,
        options: dict[str, Any],
        deadline: float,
    ) -> None:
        self._client = connected(address)
        # As the outcome of a task: Dask computes it anew where a worker takes it along.
        self._problem = self._client.submit(_itself, problem, pure=False)
        self._pool = self._client.get_executor(pure=False)
        self._one_start, self._depth, self._options, self._deadline = one_start, depth, options, deadline
        self.slots = int(sum(self._client.ncores().values()))

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(wait=False)
        self._client.close()

    def submit(self, number: int) -> Future[Ended]:
        """Hand a start to the scheduler."""
        left = self._deadline - monotonic()
        future: Future[Ended] = self._pool.submit(
            self._one_start, self._problem, self._depth, self._options, number, left
        )
        return future

    def ended(self, future: Future[Ended]) -> Ended:
        """Return what a start has led to; say what the cluster's own errors mean."""
        error = future.exception()
        if error is None:
            return future.result()
        raise explained(error, "start") if isinstance(error, Exception) else error

    def given_up(self, interrupted: bool) -> bool:
        """Return whether to leave starts that are under way; they know the deadline, and no more."""
        return interrupted or monotonic() >= self._deadline + HAND_BACK


def _itself(problem: LocalProblem) -> LocalProblem:
    """Keep a problem on the cluster."""
    return problem
