"""The search by vector walks on a Dask cluster: slices that take open intervals of the root, and who hands them out."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import copy
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from mipforest.searches import compile_by
from mipforest.searches.exact.covers import STAMP
from mipforest.searches.exact.inherited import INTERVAL, SHARE_OF_THREE, CoverSearch, OpenInterval
from mipforest.searches.workers import HAND_BACK, SHARED_AFTER, Part, Shared, Workers
from mipforest.time_budget import TimeBudget


class Found(NamedTuple):
    """What a slice has found.

    Attributes
    ----------
    open
        Open intervals that it left.
    incumbent, splits
        Loss of the best tree, and its nodes in heap order, ``None`` where others know a better one.
    pairs
        Pairs of sides that were evaluated.
    """

    open: list[OpenInterval]
    incumbent: float
    splits: list[tuple[int, int]] | None
    pairs: int


class CoverSlices(Part):
    """A worker's part in the search: the tables, and slices.

    Parameters
    ----------
    problem
        Arguments of :class:`~mipforest.searches.exact.inherited.CoverSearch`, without the incumbent.
    """

    def __init__(self, problem: dict[str, Any]) -> None:
        self._search = SlicedSearch(**problem, incumbent=np.inf)

    @classmethod
    def compile(cls, problem: dict[str, Any], budget: TimeBudget) -> float:
        """Load the kernels of the loss, or compile them; see :class:`~mipforest.searches.workers.Part`."""
        one_feature, given = np.array([[0, 1]], np.int32), problem["rows"]
        rows = np.array([[0, 1], [1, 1]] if given.shape[1] == 2 else [[1, -1, 1], [1, 1, 1]], given.dtype)

        def run() -> None:
            tiny = CoverSearch(one_feature, one_feature, rows, cost=0.0, tolerance=0.0, incumbent=np.inf)
            tiny.run(3, gap=0.0, deadline=np.inf, threads=1, look=lambda: False)

        return compile_by(run, budget)

    def run(
        self,
        shared: Shared,
        intervals: list[OpenInterval],
        depth: int,
        t: int,
        gap: float,
        seconds: float,
        threads: int,
    ) -> Found:
        """Search below open intervals.

        Parameters
        ----------
        shared
            The incumbent of all processes, and whether to stop.
        intervals
            The open intervals.
        depth
            At least 3.
        t
            The threshold of the first interval to evaluate first, 0 for the one in the middle.
        gap
            Relative gap within which the best tree will do.
        seconds
            Seconds after which no evaluation begins, but for the first.
        threads
            Intervals that are evaluated at a time.
        """
        until = monotonic() + seconds
        return self._search.slice(intervals, depth, t=t, gap=gap, until=until, threads=threads, shared=shared)


class SlicedSearch(CoverSearch):
    """A search that hands out open intervals to a cluster (:meth:`hand_out`), or takes some there (:meth:`slice`)."""

    def slice(
        self,
        intervals: list[OpenInterval],
        depth: int,
        *,
        t: int,
        gap: float,
        until: float,
        threads: int,
        shared: Shared,
    ) -> Found:
        """Search below open intervals until a time; see :meth:`CoverSlices.run`."""
        part = copy(self)
        part.stop, part.splits, part.pairs = shared.stop, None, 0
        part.incumbent = min(part.incumbent, shared.best)
        for interval in intervals:
            for cover in interval.covers:
                # An evaluation elsewhere may have the number of one here, which would take its values for its own.
                cover.at[:, STAMP] = 0
        part.open, found_at = list(intervals), np.inf
        first = part.open.pop(0) if t else None
        heapq.heapify(part.open)
        with ThreadPoolExecutor(threads) as pool:
            while True:
                batch = [] if first is None else [(first, part._stamp + 1, depth, t)]
                first = None
                while len(batch) < threads and (interval := part.take(gap)) is not None:
                    batch.append((interval, part._stamp + 1 + len(batch), depth, 0))
                if not batch:
                    break
                part._stamp += len(batch)
                before, running = part.incumbent, [pool.submit(part.evaluate, *task) for task in batch]
                for task, future in zip(batch, running, strict=True):
                    part.close(task[0], future.result())
                now = monotonic()
                if part.incumbent < before:
                    found_at = min(found_at, now)
                if shared.best < part.incumbent:
                    part.incumbent, part.splits, found_at = shared.best, None, np.inf
                if shared.stop[0] or now >= min(until, found_at + SHARED_AFTER):
                    break
        return Found(part.open, part.incumbent, part.splits, part.pairs)

    def hand_out(
        self, depth: int, workers: Workers, *, gap: float, threads: int, look: Callable[[], bool]
    ) -> tuple[bool, bool]:
        """Search on the workers of a cluster; return whether it ended, and whether the caller stopped it.

        Parameters
        ----------
        depth
            At least 3.
        workers
            The workers, whose part is :class:`CoverSlices`.
        gap, threads, look
            As for :meth:`~mipforest.searches.exact.inherited.CoverSearch.run`; the threads are those of each slice.

        Raises
        ------
        ClusterError
            If the cluster is lost: incumbent, open intervals and bound are those of then.
        """
        root, t = None, 0
        self.begin(depth)
        if depth > 3 and self.incumbent > self.tolerance:
            smaller, now = self._without_incumbent(), monotonic()
            assert isinstance(smaller, SlicedSearch)  # a copy of this one
            smaller.begin(3)
            until = now + SHARE_OF_THREE * (workers.deadline - now)
            _, interrupted = smaller._share_out(3, workers, None, 0, gap, threads, until, look)
            self.pairs += smaller.pairs
            f, t = self._grow(smaller, depth)
            if interrupted:
                return False, True
            root = self._take_feature(f)
        return self._share_out(depth, workers, root, t, gap, threads, workers.deadline, look)

    def _share_out(
        self,
        depth: int,
        workers: Workers,
        first: OpenInterval | None,
        t: int,
        gap: float,
        threads: int,
        until: float,
        look: Callable[[], bool],
    ) -> tuple[bool, bool]:
        """Hand out open intervals, the first one and its threshold before all, until none is left or the time is over.

        Returns
        -------
        ended, interrupted
            Whether none is left, and whether the caller stopped it.
        """
        under_way: dict[Future[Any], list[OpenInterval]] = {}
        interrupted, over, leave_at = False, False, np.inf
        try:
            while True:
                over = over or monotonic() >= until
                while not over and len(under_way) < workers.at_once:
                    count, seconds = workers.share(len(self.open) + (first is not None))
                    batch = [] if first is None else [first]
                    while len(batch) < count and (interval := self.take(gap)) is not None:
                        batch.append(interval)
                    if not batch:
                        break
                    work = batch, depth, 0 if first is None else t, gap, min(seconds, until - monotonic())
                    first = None
                    under_way[workers.submit(*work, threads, best=self.incumbent)] = batch
                self._taken = min(
                    (interval.bound for task in under_way.values() for interval in task), default=np.inf
                )
                if not under_way:
                    return not over, interrupted
                for future in wait(under_way, timeout=INTERVAL, return_when=FIRST_COMPLETED).done:
                    found = workers.result(future)
                    handed_out = under_way.pop(future)
                    self._take_back(handed_out if found is None else found.open)
                    if found is not None:
                        self.pairs += found.pairs
                        if found.splits is not None and found.incumbent < self.incumbent:
                            self.incumbent, self.splits = found.incumbent, found.splits
                workers.tend(self.incumbent)
                interrupted = interrupted or look()
                if interrupted or monotonic() >= workers.deadline:
                    over, leave_at = True, min(leave_at, monotonic() + HAND_BACK)
                    workers.stop()
                    if monotonic() >= leave_at:
                        return False, interrupted
        finally:
            for handed_out in under_way.values():  # what is not back is open still
                self._take_back(handed_out)
            if first is not None:
                self._take_back([first])
            self._taken = np.inf

    def _take_back(self, intervals: list[OpenInterval]) -> None:
        """Open intervals that were handed out, under new numbers."""
        for interval in intervals:
            self._stamp += 1
            interval.number = self._stamp
            heapq.heappush(self.open, interval)
