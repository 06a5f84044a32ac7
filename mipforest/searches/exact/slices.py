"""The exact search on a Dask cluster: slices that take open intervals of the root, and who hands them out."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from mipforest.searches import compile_by
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import (
    AT_A_TIME,
    COMPILING_SECONDS,
    SHARE_OF_FEWER,
    CoverSearch,
    OuterInterval,
    intervals_for,
)
from mipforest.searches.exact.covers import FLAG, Cover
from mipforest.searches.exact.open_intervals import (
    OpenIntervals,
)
from mipforest.searches.exact.tables import DistinctRows
from mipforest.searches.pool import run_tasks
from mipforest.searches.workers import SHARED_AFTER, Shared, Slices, Workers
from mipforest.time_budget import TimeBudget


@dataclass(order=True, slots=True)
class InnerInterval:
    """An open interval of thresholds of a root with two levels below, outside of a heap.

    Attributes
    ----------
    bound, width, number, feature, low, high, left, right, effort
        As in :class:`~mipforest.searches.exact.cover_search.OuterInterval`.
    covers
        What proves the bounds of both sides.
    """

    bound: float
    width: float
    number: int
    feature: int = field(compare=False)
    low: int = field(compare=False)
    high: int = field(compare=False)
    left: float = field(compare=False)
    right: float = field(compare=False)
    covers: tuple[Cover, Cover] = field(compare=False)
    effort: int = field(compare=False)


Intervals = list[InnerInterval] | list[OuterInterval]


def taken_out(state: OpenIntervals) -> list[InnerInterval]:
    """Return the open intervals of a heap, each with its covers."""
    intervals = []
    for one in state.heap[: int(state.state["n_open"][0])]:
        covers = []
        for begin, length in zip(one["begin"], one["length"], strict=True):
            covers.append(state.pool[begin : begin + length].copy())
            # An evaluation elsewhere may have the number of one here, and would take its values for its own.
            covers[-1]["stamp"] = 0
        bound, left, right, width, f, low, high, number, _, _, effort, *_ = one.tolist()
        sides = covers[0], covers[1]
        intervals.append(InnerInterval(bound, -width, number, f, low, high, left, right, sides, effort))
    return intervals


def put_in(intervals: Sequence[InnerInterval], n_features: int) -> OpenIntervals:
    """Return a heap of open intervals."""
    lengths = [[len(cover) for cover in interval.covers] for interval in intervals]
    state = intervals_for(len(intervals), sum(map(sum, lengths)))
    used = 0
    for i, interval in enumerate(sorted(intervals)):
        begin = used, used + len(interval.covers[0])
        for cover in interval.covers:
            state.pool[used : used + len(cover)] = cover
            used += len(cover)
        bounds = interval.bound, interval.left, interval.right, -interval.width
        thresholds = interval.feature, interval.low, interval.high
        state.heap[i] = (
            *bounds,
            *thresholds,
            i,
            begin,
            tuple(map(len, interval.covers)),
            interval.effort,
            0,
            0,
            0,
        )
    state.state[0] = len(intervals), used, len(intervals) + n_features + 1, 0, np.inf
    return state


class SliceResult(NamedTuple):
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

    open: Intervals
    incumbent: float
    splits: list[tuple[int, int]] | None
    pairs: int


class SlicedProblem(NamedTuple):
    """What workers are sent of a problem.

    Attributes
    ----------
    rows, cost, tolerance, box
        As for :class:`~mipforest.searches.exact.cover_search.CoverSearch`.
    tiny
        A few rows for which the same is compiled.
    """

    rows: DistinctRows
    cost: float
    tolerance: float
    box: Box | None
    tiny: DistinctRows

    def search(self, depth: int) -> SlicedSearch:
        """Return a search of some levels that begins without a tree; in a box, of its upper nodes."""
        box = None if self.box is None else self.box.above(2**depth - 1)
        return SlicedSearch(
            self.rows, depth, cost=self.cost, tolerance=self.tolerance, incumbent=np.inf, box=box
        )


class _Slice(NamedTuple):
    """Open intervals that a slice begins with, the threshold of the first one to evaluate first, and its seconds."""

    batch: list[OuterInterval]
    t: int
    seconds: float


class CoverSlices(Slices):
    """A worker's part in the search: tables, and slices."""

    def __init__(self, problem: SlicedProblem) -> None:
        self._problem = problem
        self._searches: dict[int, SlicedSearch] = {}

    @classmethod
    def compile(cls, problem: SlicedProblem, budget: TimeBudget) -> float:
        """Load what slices run, or compile it; see :class:`~mipforest.searches.workers.Slices`."""

        def run() -> None:
            for is_long in (False, True):  # sides of a deeper root, and the root of three levels
                tiny = CoverSearch(problem.tiny, 3, cost=0.0, tolerance=0.0, incumbent=np.inf)
                tiny.compile(is_long=is_long, is_short=not is_long)

        return compile_by(run, budget, "exact-search", COMPILING_SECONDS)

    def run(
        self,
        shared: Shared,
        depth: int,
        intervals: Intervals,
        t: int,
        gap: float,
        seconds: float,
        threads: int,
    ) -> SliceResult:
        """Search below open intervals.

        Parameters
        ----------
        shared
            The incumbent of all processes, and whether to stop.
        depth
            At least 3.
        intervals
            The open intervals.
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
        if depth not in self._searches:
            self._searches[depth] = self._problem.search(depth)
        part = copy(self._searches[depth])
        return part.slice(
            intervals, t=t, gap=gap, until=until, threads=min(threads, AT_A_TIME), shared=shared
        )


class SlicedSearch(CoverSearch):
    """A search that hands out open intervals to a cluster (:meth:`hand_out`), or takes some there (:meth:`slice`)."""

    # ------------------------------------------------------------------ on a worker

    def slice(
        self, intervals: Any, *, t: int, gap: float, until: float, threads: int, shared: Shared
    ) -> SliceResult:
        """Search below open intervals until a time; see :meth:`CoverSlices.run`."""
        self.stop, self.splits, self.pairs, self._works = shared.stop, None, 0, []
        self._known, found_at = min(self._known, shared.best), np.inf
        first: tuple[OuterInterval, int] | None = None
        if self.depth == 3:
            self.state = put_in(intervals, len(self.rows.rank))
            self._learn(self._known)
        else:
            first = (intervals[0], t) if t else None
            self.open = intervals[1:] if t else intervals
            heapq.heapify(self.open)
        with ThreadPoolExecutor(threads) as pool:
            while True:
                known = self.incumbent
                if not (
                    self._step_of_three(gap, threads, pool)
                    if self.depth == 3
                    else self._step_of_more(first, gap, threads, pool)
                ):
                    break
                first, now = None, monotonic()
                if self.incumbent < known:
                    found_at = min(found_at, now)
                if shared.best < self.incumbent:
                    self._learn(shared.best)
                    found_at = np.inf
                if shared.stop[FLAG] or now >= min(until, found_at + SHARED_AFTER):
                    break
        self._collect()
        left = self.open if self.state is None else taken_out(self.state)
        return SliceResult(left, self.incumbent, self.splits, self.pairs)

    def _learn(self, value: float) -> None:
        """Take over the value of a tree that others know."""
        self._known, self.splits = value, None
        if self.state is not None:
            self.state.state["known"][0], self.state.best[0] = value - self.cost, -1

    def _step_of_three(self, gap: float, threads: int, pool: ThreadPoolExecutor) -> bool:
        """Evaluate some open intervals at a time; return whether there were any."""
        taken = self._pop_tasks(threads, gap)
        running = [pool.submit(self._evaluate_task, j) for j in range(taken)]
        self._close([future.result() for future in running])
        return taken > 0

    def _step_of_more(
        self, first: tuple[OuterInterval, int] | None, gap: float, threads: int, pool: ThreadPoolExecutor
    ) -> bool:
        """Evaluate some open intervals of more levels at a time; return whether there were any."""
        batch = [] if first is None else [first]
        while len(batch) < threads and (interval := self._pop_outer(gap)) is not None:
            batch.append((interval, 0))
        running = [pool.submit(self._evaluate_outer, *task) for task in batch]
        for (taken, _), future in zip(batch, running, strict=True):
            self._close_outer(taken, future.result())
        return bool(batch)

    # ------------------------------------------------------------------ here

    def hand_out(
        self,
        workers: Workers,
        *,
        gap: float,
        threads: int,
        should_stop: Callable[[], bool],
        until: float = np.inf,
    ) -> tuple[bool, bool]:
        """Search on the workers of a cluster; return whether it ended, and whether the caller stopped it.

        Parameters
        ----------
        workers
            The workers, whose part is :class:`CoverSlices`.
        gap, should_stop
            As for :meth:`~mipforest.searches.exact.cover_search.CoverSearch.run`.
        threads
            Thresholds of the root that are evaluated at a time in each slice.
        until
            When to end, where that is before the workers' deadline.

        Raises
        ------
        ClusterError
            If the cluster is lost: incumbent, open intervals and bound are those of then.
        """
        if self.is_trivial:
            return True, False
        until, first = min(until, workers.deadline), None
        if self.depth == 3:
            self._begin_three()
            assert self.state is not None
            self.open, self.state = taken_out(self.state), None  # type: ignore[assignment]
        else:
            self._begin_outer()
            if (smaller := self._smaller()) is not None:
                share = monotonic() + SHARE_OF_FEWER * (until - monotonic())
                _, interrupted = smaller.hand_out(
                    workers, gap=0.0, threads=threads, should_stop=should_stop, until=share
                )
                self.pairs += smaller.pairs
                root = self._grow(smaller)
                if interrupted:
                    return False, True
                first = self._pop_at(*root)
        return self._share_out(first, workers, gap, threads, until, should_stop)

    def _share_out(
        self,
        first: tuple[OuterInterval, int] | None,
        workers: Workers,
        gap: float,
        threads: int,
        until: float,
        should_stop: Callable[[], bool],
    ) -> tuple[bool, bool]:
        """Hand out open intervals, the first one with its threshold before all, until none is left or the time is over.

        Returns
        -------
        ended, interrupted
            Whether none is left, and whether the caller stopped it.
        """
        under_way: list[list[OuterInterval]] = []
        interrupted, out_of_time = False, False

        def following() -> _Slice | None:
            nonlocal first, out_of_time
            out_of_time = out_of_time or monotonic() >= until
            if out_of_time:
                return None
            count, seconds = workers.share(len(self.open))
            batch, t = ([], 0) if first is None else ([first[0]], first[1])
            first = None
            while len(batch) < count and (interval := self._pop_outer(gap)) is not None:
                batch.append(interval)
            if not batch:
                return None
            under_way.append(batch)
            self._note_taken(under_way)
            return _Slice(batch, t, seconds)

        def submit(task: _Slice) -> Future[Any]:
            seconds = min(task.seconds, until - monotonic())
            return workers.submit(self.depth, task.batch, task.t, gap, seconds, threads, best=self.incumbent)

        def merge(task: _Slice, found: SliceResult) -> None:
            under_way[:] = [other for other in under_way if other is not task.batch]
            self._reopen(found.open)
            self._note_taken(under_way)
            self.pairs += found.pairs
            if found.splits is not None and found.incumbent < self._known:
                self._known, self.splits = found.incumbent, found.splits

        def over() -> bool:
            nonlocal interrupted, out_of_time
            workers.publish(self.incumbent)
            interrupted = interrupted or should_stop()
            out_of_time = out_of_time or monotonic() >= workers.deadline
            return interrupted or monotonic() >= workers.deadline

        try:
            back = run_tasks(workers, following, submit, merge, over)
            return back and not out_of_time and not interrupted, interrupted
        finally:
            for handed_out in under_way:  # what is not back is open still
                self._reopen(handed_out)
            if first is not None:
                self._reopen([first[0]])
            self._taken = np.inf

    def _note_taken(self, under_way: list[list[OuterInterval]]) -> None:
        """Count what is under way in the bound."""
        self._taken = min((interval.bound for task in under_way for interval in task), default=np.inf)

    def _reopen(self, intervals: Sequence[Any]) -> None:
        """Open intervals that were handed out, under new numbers."""
        for interval in intervals:
            self._number += 1
            interval.number = self._number
            heapq.heappush(self.open, interval)
