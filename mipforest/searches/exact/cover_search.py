"""The exact search of two levels and more: open intervals of the root, threads, and the tree.

:mod:`mipforest.searches.exact.covers` has the mathematics. Searches of three levels are compiled loops
(:mod:`mipforest.searches.exact.open_intervals`). One more level is an outer search over thresholds of the root, which
solves both sides by searches of one level less. These begin anew: to go on with the open intervals of the searches of
fewer rows, as covers are inherited, takes 20 to 40 % more time, measured at four levels on raisin, wilt and segment.

**A bound from early on.** An evaluation is given some pairs of sides at first. Where they do not suffice, what it has
proven of both sides counts nevertheless: its threshold t stays open by itself, with its two bounds and more effort for
the next time, and the parts below and above t go on with the bounds of the side that they hold. A search of four levels
begins so with the middle of every feature; the least of these bounds is one on all trees. As each further effort is a
multiple of the one before, what was searched before of a threshold is a seventh of its last search at most. With each
level more, a bound needs searches of as many sides as there are features, twice. From five levels on, trees come first.

A search of three levels takes bounds on the losses of both sides of a root's threshold that earlier ones have proven
(:mod:`mipforest.searches.exact.side_bounds`): they raise those of the interval, and where they close a threshold, it
counts as evaluated, and both parts go on with the covers of the interval. To begin with the parts between such
thresholds instead took up to 1.5 times as long, as these have no covers then.

In a :class:`~mipforest.searches.exact.boxes.Box` the nodes of the upper levels begin with covers of their own features,
and each side of an outer root is searched in its part of the box.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import monotonic
from typing import Any, ClassVar, Self

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.covers import (
    DONE,
    FLAG,
    FULL,
    INTERVAL,
    NO_LIMIT,
    OF_SIDE,
    PAIRS,
    STOPPED,
    Cover,
    CoverWorkspace,
    evaluate_all,
    evaluate_each,
)
from mipforest.searches.exact.open_intervals import (
    ALL,
    CLOSING,
    EVALUATING,
    OPEN_INTERVAL,
    POOL_FULL,
    REOPENING,
    STATE,
    TAKEN,
    TAKING,
    OpenIntervals,
    advance,
    move,
)
from mipforest.searches.exact.quantiles import are_worth_it, bound_of_medians, cover_of_bins
from mipforest.searches.exact.side_bounds import SideBounds
from mipforest.searches.exact.tables import (
    NO_SIDES,
    DistinctRows,
    LossTables,
    first_cover,
    larger,
    tables_of,
    workspace,
)

#: Seconds that compiling takes about, of the first problem on a machine; others take less.
COMPILING_SECONDS = 8

#: Seconds between two looks at the clock.
WATCHED_EVERY = 0.05

#: Rows times features from which on the thresholds of a root are evaluated by many threads.
LONG = 100_000

#: Pairs of sides that a side of a threshold of more levels is searched with, at least, and times the square of the
#: number of features: at the middle of every feature, for a first bound; and after that. It is searched again with so
#: many times as many where that does not close the threshold. Both parts of its interval go on with what is proven.
LEAST_FIRST, FIRST_PAIRS = 4096, 12
LEAST_PAIRS, SIDE_PAIRS, MORE = 8192, 60, 8

#: Share of the time in which a search of more levels looks for the best tree of one level less, at whose root it
#: begins.
SHARE_OF_FEWER = 0.25

#: Open intervals that are evaluated at a time, whatever the number of threads.
AT_A_TIME = 8

#: Memory of a new search: open intervals, and intervals of covers.
_INTERVALS, _POOL = 64, 1024


#: Does a task for each of some calls, and returns what they return.
Submit = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]]


def on_this_thread(task: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return what calls of a task return, one after the other."""
    return [task(*call) for call in calls]


# ---------------------------------------------------------------------- open intervals of three levels


def intervals_for(n: int, pool: int) -> OpenIntervals:
    """Return memory for some open intervals and intervals of their covers, and for some more."""
    return _intervals(n + _INTERVALS, pool + _POOL)


def _intervals(n: int, pool: int) -> OpenIntervals:
    """Return memory for open intervals, and for intervals of their covers."""
    return OpenIntervals(
        heap=np.zeros(n, OPEN_INTERVAL),
        tasks=np.zeros(AT_A_TIME, OPEN_INTERVAL),
        spare=np.zeros(1, OPEN_INTERVAL),
        pool=np.zeros(pool, INTERVAL),
        state=np.array([(0, 0, 0, 0, np.inf)], STATE),
        best=np.full(6, -1, np.int64),
    )


def _moved(state: OpenIntervals, n: int, pool: int, n_tasks: int) -> OpenIntervals:
    """Return open intervals and tasks in new memory."""
    new = _intervals(n, pool)
    new.state[:], new.best[:] = state.state, state.best
    move(state, new, n_tasks)
    return new


# ---------------------------------------------------------------------- search


@dataclass(order=True, slots=True)
class OuterInterval:
    """An open interval of thresholds of a root with more than two levels below.

    Attributes
    ----------
    bound
        Lower bound on the losses of both sides for every threshold in it.
    width
        Weight of the rows between its thresholds, negative: wide ones come first.
    number
        Of its making: the last key of the order.
    feature, low, high
        The thresholds.
    left, right
        Bounds on the losses of the rows left of its first and right of its last threshold.
    effort
        How much its evaluation may take: 0 for :data:`FIRST_PAIRS` of each side, else :data:`SIDE_PAIRS` and
        :data:`MORE` times as many for each one.
    """

    bound: float
    width: float
    number: int
    feature: int = field(compare=False)
    low: int = field(compare=False)
    high: int = field(compare=False)
    left: float = field(compare=False, default=0.0)
    right: float = field(compare=False, default=0.0)
    effort: int = field(compare=False, default=0)


@dataclass(frozen=True)
class Evaluated:
    """What the evaluation of a threshold of such a root has found.

    Attributes
    ----------
    ended
        Whether nothing better than what was known is left at the threshold.
    t
        The threshold.
    bounds
        Lower bounds on the losses of both sides, for leaves of any size: those that more rows inherit.
    pairs
        Pairs of sides that were evaluated.
    value, splits
        Sum of the losses of both sides with a better tree than was known, and its splits in heap order; infinite and
        anything where there is none.
    of_pairs
        (2, 2, T, N) by sums over pairs of thresholds, lower bounds on the trees below both sides of the threshold and
        of every other one, by numbers of splits.
    of_number
        (2, N) where splits are limited, lower bounds on the losses of both sides by numbers of splits.
    least
        By sums over pairs, a lower bound on the losses of both sides together, of the trees that are searched.
    """

    ended: bool
    t: int
    bounds: tuple[float, float]
    pairs: int
    value: float
    splits: list[tuple[int, int]]
    of_pairs: FloatArray | None = None
    of_number: FloatArray | None = None
    least: float = 0.0


class CoverSearch:
    """A search for the best tree on some rows.

    Parameters
    ----------
    rows
        The rows.
    depth
        Most splits on a path, at least 2.
    cost
        Cost of a split.
    tolerance
        Losses closer than this are the same; 0 where all are whole numbers.
    incumbent
        Loss of a tree that is known: only better ones are looked for.
    tables
        Those of the rows, if they are there already.
    box
        Trees to search among, settled; without it, all. Each of its features may be used by some node.
    stop
        Shared with other searches; see :mod:`mipforest.searches.exact.covers`.
    known_sides
        Of three levels, bounds on the sides of the root's thresholds that hold for the trees of the box, by feature.
    most_pairs
        Pairs of sides after which the search stops.

    Attributes
    ----------
    evaluated
        Of three levels, where thresholds are evaluated many at a time: feature and threshold of each, and bounds on
        the losses of its sides.
    """

    #: Levels of searches that have tables of their rows: others have those of their sides.
    levels_of_tables: ClassVar[Container[int]] = (2, 3)

    def __init__(
        self,
        rows: DistinctRows,
        depth: int,
        *,
        cost: float,
        tolerance: float,
        incumbent: float,
        tables: LossTables | None = None,
        box: Box | None = None,
        stop: IntArray | None = None,
        known_sides: Mapping[int, SideBounds] | None = None,
        most_pairs: int = NO_LIMIT,
    ) -> None:
        self.known_sides: Mapping[int, SideBounds] = known_sides or {}
        self.evaluated: list[tuple[int, int, float, float]] = []
        self.rows, self.depth, self.cost, self.tolerance, self.box = rows, depth, cost, tolerance, box
        self.stop = np.zeros(1, np.int64) if stop is None else stop
        self.most_pairs = most_pairs
        #: Pairs of sides that were evaluated, and whether the caller stopped the search.
        self.pairs, self.interrupted = 0, False
        #: Loss of the best tree of all evaluations, those that are still to be closed included.
        self.found_since = np.inf
        # Rows that lose nothing may be missing: where any size will do, a leaf without rows is none too small.
        is_leaf = not self._has_to_split and (rows.N_min == 1 or rows.size.sum() >= rows.N_min)
        value = rows.leaf() if is_leaf else np.inf
        self._known = min(incumbent, value)
        #: Feature and threshold of the nodes of the best tree in heap order, -1 for a leaf; ``None``: the known one.
        self.splits: list[tuple[int, int]] | None = [(-1, -1)] if value < incumbent else None
        self._known_tables = tables
        self._has_tables = depth in self.levels_of_tables and (tables is not None or not self.is_trivial)
        #: State of a search of three levels, and the heap of a deeper one.
        self.state: OpenIntervals | None = None
        self.open: list[OuterInterval] = []
        #: Least bound of what is evaluated at present.
        self._taken, self._number = np.inf, len(rows.rank)
        self._works: list[CoverWorkspace] = []
        #: What is known of the rows while trees of two levels are searched.
        self._found: Any = None
        self._sides: list[Any] = []

    @cached_property
    def tables(self) -> Any:
        """The :class:`LossTables` of the rows, where there is something to search; made on first use."""
        return self._tables(self._known_tables) if self._has_tables else None

    def _tables(self, known: LossTables | None) -> Any:
        tables, box = known or tables_of(self.rows), self.box
        if box is None:
            return tables
        return tables.masked(*box.masks(), parts_none=box.may_part_none, leaf=box.leaf)

    # ------------------------------------------------------------------ what is known

    @property
    def is_trivial(self) -> bool:
        """Whether nothing better than the incumbent can be found."""
        rows = self.rows
        too_few = rows.size.sum() < rows.N_min or int(rows.n_values.max(initial=1)) < 2
        return self._known <= self.tolerance or bool(too_few and not self._has_to_split)

    @property
    def _has_to_split(self) -> bool:
        """Whether the root has to split."""
        return self.box is not None and bool(self.box.must[0])

    @property
    def incumbent(self) -> float:
        """Loss of the best tree."""
        if self.state is not None and self.state.best[0] >= 0:
            return min(self._known, float(self.state.state["known"][0]) + self.cost)
        return self._known

    @property
    def _least(self) -> float:
        """Least bound of what is open, less the cost of the root's split."""
        least = min(self._taken, self.open[0].bound if self.open else np.inf)
        if self._found is not None:  # two levels that are searched at present
            least = float(self._found["limited"][0]) - self.cost
        state = self.state
        return least if state is None or not self._n_open else min(least, float(state.heap["lower"][0]))

    @property
    def _n_open(self) -> int:
        """Number of open intervals of three levels."""
        return 0 if self.state is None else int(self.state.state["n_open"][0])

    @property
    def bound(self) -> float:
        """Proven lower bound on the loss of every tree."""
        return max(0.0, min(self.incumbent, self._least + self.cost))

    def _first_cover(self) -> Cover:
        """Return the cover of the thresholds that the root may have."""
        return first_cover(self.rows, None if self.box is None else self.box.allowed[0])

    def _first_intervals(self) -> list[tuple[int, int, int]]:
        """Return feature, first and last threshold of the intervals that a root begins with."""
        rows, features = self.rows, self._first_cover()["feature"].tolist()
        allowed = rows.allowed()
        found = [(f, *allowed[f].tolist()) for f in features if allowed[f, 0] <= allowed[f, 1]]
        if rows.N_min > 1 and self.box is not None and self.box.may_part_none:
            # A split that parts none of the rows leaves no side too small; one threshold stands for all such.
            for f in features:
                if rows.rank[f].min(initial=1) > 0:
                    found.append((f, 1, 1))
                if rows.rank[f].max(initial=0) < rows.n_values[f] - 1:
                    found.append((f, int(rows.n_values[f]) - 1, int(rows.n_values[f]) - 1))
        return found

    # ------------------------------------------------------------------ two levels

    def _two(self) -> int:
        """Search all trees of two levels; return how it ended."""
        self._found = np.zeros(1, OF_SIDE)
        cover = self._first_cover()
        # A bound before the tables, which take longer to make.
        if self.box is None and self.rows.is_counted:
            self._found["limited"] = bound_of_medians(self.rows, self.cost)
        elif self.box is None and are_worth_it(self.rows):
            cover = cover_of_bins(self.rows, self.cost)
            least = (cover["left"] + cover["right"]).min(initial=np.inf)
            self._found["limited"] = self.cost + least
        work = workspace((self.tables.all_rows(),) * 2, 1000 + len(cover), self.most_pairs)
        work.found["limited"], self._found = self._found["limited"][0], work.found
        work.left[: len(cover)], work.size[0] = cover, len(cover)
        work.found["best"][0] = self._known
        while True:
            end: int = evaluate_all(
                self.tables.loops, work, self.cost, self._known - self.tolerance, self.stop
            )
            self.pairs = int(work.counts[PAIRS])
            if (least := float(work.found["best"][0])) < self._known - self.tolerance:
                self._known, self.splits = least, [tuple(work.split[0].tolist())]
            if end != FULL:
                break
            work = larger(work)
        size, allowed = int(work.size[0]), self.rows.allowed()
        for f, low, high, _, left, right in work.left[:size].tolist():
            bound = left + right
            if end != DONE and low <= allowed[f, 1] and high >= allowed[f, 0]:
                self.open.append(OuterInterval(bound, 0.0, len(self.open), f, low, high))
        heapq.heapify(self.open)
        self._found = None
        return end

    def each_threshold(
        self, *, deadline: float = np.inf, should_stop: Callable[[], bool] | None = None
    ) -> FloatArray:
        """Find the value of the best tree for every threshold of its root, of one level or two.

        Where nothing better than the incumbent can be found, trees of two levels are not searched, and its loss is a
        lower bound. Where it is stopped, :attr:`is_stopped`, the thresholds that are left have what a split costs, a
        lower bound, and no tree is taken.

        Parameters
        ----------
        deadline, should_stop
            As for :meth:`run`; without ``should_stop`` nothing stops it, and no thread is started.
        """
        first = self._first_thresholds()
        if self.depth == 2 and not self.is_trivial:
            work = workspace((self.tables.all_rows(),) * 2, 1, self.most_pairs)
            value = np.full(int(first[-1]), self.cost)
            call = self.tables.loops, work, first, self.cost, value, self.stop
            if should_stop is None:
                evaluate_each(*call)
            else:
                self._taken = 0.0
                with ThreadPoolExecutor(1) as pool:
                    self._watched(pool, deadline, should_stop, evaluate_each, [call])
            self.pairs = int(work.counts[PAIRS])
        else:
            value = np.concatenate([np.zeros(0), *self.rows.splits(self.cost)])
            if self.depth == 2:
                least = max(self._known, self.cost)  # the root's split is paid
                value = np.where(np.isinf(value), value, np.minimum(value, least))
        if self.box is not None:
            value[~np.repeat(self.box.allowed[0], self.rows.n_values - 1)] = np.inf
        self._taken = float(value.min(initial=np.inf)) - self.cost if self.is_stopped else np.inf
        best = int(value.argmin()) if len(value) and not self.is_stopped else -1
        if best >= 0 and value[best] < self._known - self.tolerance:
            f = int(np.searchsorted(first, best, side="right")) - 1
            self._known, self.splits = float(value[best]), [(f, best - int(first[f]) + 1)]
        return value

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to stop."""
        return bool(self.stop[FLAG])

    def _first_thresholds(self) -> IntArray:
        """Return the number of each feature's first threshold."""
        return np.append(0, (self.rows.n_values - 1).cumsum())

    def by_threshold(self, first: IntArray) -> FloatArray:
        """Return a lower bound on the loss of every tree by its root's threshold; infinite if a side is too small."""
        bounds = np.full(int(first[-1]), self.incumbent)
        intervals = [(i.feature, i.low, i.high, i.bound) for i in self.open]
        if self.state is not None:
            intervals += self.state.heap[: self._n_open][["feature", "low", "high", "lower"]].tolist()
        for f, low, high, bound in intervals:
            part = bounds[first[f] - 1 + low : first[f] + high]
            np.minimum(part, bound + self.cost, out=part)
        return self._without_small_sides(bounds, first)

    def _without_small_sides(self, bounds: FloatArray, first: IntArray) -> FloatArray:
        """Write that no tree has a threshold at its root that leaves a side too small."""
        for f, (low, high) in enumerate(self.rows.allowed().tolist()):
            bounds[first[f] : first[f] + low - 1] = np.inf
            bounds[first[f] + high : first[f + 1]] = np.inf
        return bounds

    def compile(self, *, is_long: bool, is_short: bool) -> None:
        """Run what is compiled: loops over open intervals, and the evaluation of many at a time."""
        if self.depth == 2:
            if is_long and self.rows.loss.has_sums:
                cover_of_bins(self.rows, self.cost)
            self._two()
            return
        self._begin_three()
        if is_long:
            self._batches_of_three(0.0, on_this_thread)
        if is_short:
            self._begin_three()
            self._works = []
            self._grow_state(0)
            self._loop(0.0)

    # ------------------------------------------------------------------ three levels

    def _begin_three(self) -> None:
        """Open all thresholds of the root that leaves allow."""
        intervals = self._first_intervals()
        covers = self._covers_of_sides([f for f, _, _ in intervals])
        starts = np.cumsum([0, *(len(cover) for cover, _ in covers)])
        n = int(starts[-1])
        state = intervals_for(len(intervals), n)
        where: dict[tuple[int, int], tuple[int, int]] = {}
        for (cover, sides), start in zip(covers, starts.tolist(), strict=False):
            state.pool[start : start + len(cover)] = cover
            where |= dict.fromkeys(sides, (start, len(cover)))
        for i, (f, low, high) in enumerate(intervals):
            begin, length = zip(where[0, f], where[1, f], strict=True)
            width = self.tables.loops.weight_below[f, -1]
            state.heap[i] = 0.0, 0.0, 0.0, width, f, low, high, i, begin, length, 0, 0, 0, 0
        first = len(self.rows.rank) + len(intervals) + 1
        state.state[0] = len(intervals), n, first, 0, self._known - self.cost
        self.state = state

    def _covers_of_sides(self, features: list[int]) -> list[tuple[Cover, list[tuple[int, int]]]]:
        """Return covers that say nothing, each with the sides of root features that it is for."""
        rows, box = self.rows, self.box
        if box is None:
            return [(first_cover(rows), [(side, f) for side in range(2) for f in features])]
        sides = [(side, f) for side in range(2) for f in dict.fromkeys(features)]
        return [(first_cover(rows, box.allowed_below(side, f)), [(side, f)]) for side, f in sides]

    def _grow_state(self, n_tasks: int) -> None:
        """Give open intervals more memory, without what is no longer used of the pool."""
        state = self.state
        assert state is not None
        alive = int(state.heap["length"][: self._n_open].sum() + state.tasks["length"][:n_tasks].sum())
        wanted = 3 * alive + 4 * max(
            (len(cover) for work in self._works for cover in (work.left, work.right)), default=0
        )
        n = len(state.heap) * (2 if self._n_open + 3 > len(state.heap) else 1)
        self.state = _moved(state, n, max(len(state.pool), wanted), n_tasks)

    def _loop(self, gap: float) -> int:
        """Evaluate open intervals, one after the other, until none is left or the search is stopped."""
        assert self.state is not None
        if not self._works:
            self._works = [workspace(self.tables.sides(), 256, self.most_pairs)]
        while True:
            end = self._advance(0, self._works[0], ALL, gap)
            self.pairs = int(self._works[0].counts[PAIRS])
            if end == FULL:
                self._works[0] = larger(self._works[0])
            elif end == POOL_FULL:
                self._grow_state(1)
            else:
                return end

    def _advance(self, j: int, work: CoverWorkspace, stage: int, gap: float = 0.0) -> int:
        """Do a stage of task j, or all of them until none is left; see :func:`advance`."""
        assert self.state is not None
        end: int = advance(
            self.tables.loops, self.state, j, work, self.cost, self.tolerance, gap, self.stop, stage
        )
        return end

    def _pop_tasks(self, most: int, gap: float) -> int:
        """Take open intervals as tasks; return how many."""
        taken = 0
        while taken < most:
            if len(self._works) == taken:
                self._works.append(workspace(NO_SIDES, 256))
            if self._advance(taken, self._works[taken], TAKING, gap) != TAKEN:
                break
            taken += 1
        return taken

    def _close(self, ended: Sequence[bool]) -> None:
        """Close tasks, or open them again as they were where their evaluations did not end."""
        assert self.state is not None
        for j, did_end in enumerate(ended):
            if did_end:
                self._note_evaluated(j)
            while self._advance(j, self._works[j], CLOSING if did_end else REOPENING) == POOL_FULL:
                self._grow_state(len(ended))
        self.pairs = int(sum(work.counts[PAIRS] for work in self._works))

    def _note_evaluated(self, j: int) -> None:
        """Note the bounds of task j on both sides of its threshold, where these hold for leaves of any size."""
        assert self.state is not None
        task, bounds, loops = self.state.tasks[j], self._works[j].found["bound"].tolist(), self.tables.loops
        f, t, low, high = (int(task[name]) for name in ("feature", "threshold", "low", "high"))
        if loops.N_min <= 1 or not (loops.relaxes or loops.size_below[f, low] == loops.size_below[f, high]):
            self.evaluated.append((f, t, *bounds))

    def _evaluate_task(self, j: int) -> bool:
        """Evaluate task j on a thread; return whether it ended."""
        assert self.state is not None
        if self._is_known(j):
            return True
        sides = self._sides.pop() if self._sides else self.tables.sides()
        work = self._works[j]._replace(side=sides)
        while (end := self._advance(j, work, EVALUATING)) == FULL:
            work = larger(work)
        self._works[j] = work._replace(side=NO_SIDES)
        self._sides.append(sides)
        return bool(end != STOPPED)

    def _is_known(self, j: int) -> bool:
        """Raise the bounds of task j to those that are known; return whether these close a threshold of its interval.

        Then it counts as evaluated: of several the one nearest to the middle. Both parts of the interval go on with its
        covers.
        """
        state, work = self.state, self._works[j]
        assert state is not None
        task, weight = state.tasks[j], self.tables.loops.weight_below
        f, low, high = int(task["feature"]), int(task["low"]), int(task["high"])
        if (known := self.known_sides.get(f)) is None:
            return False
        task["on_left"] = max(task["on_left"], known.left_of(low))
        task["on_right"] = max(task["on_right"], known.right_of(high))
        inside = slice(*np.searchsorted(known.t, [low, high + 1]).tolist())
        own = int(task["threshold"])
        t = np.append(known.t[inside], own)
        left = np.maximum(task["on_left"], np.append(known.left[inside], known.left_of(own)))
        right = np.maximum(task["on_right"], np.append(known.right[inside], known.right_of(own)))
        closes = left + right >= state.state["known"][0] - self.tolerance
        if not closes.any():
            return False
        away = np.abs(weight[f, t] - 0.5 * (weight[f, low] + weight[f, high]))
        k = int(np.where(closes, away, np.inf).argmin())
        task["threshold"], task["is_done"] = t[k], 1
        begin, length = task["begin"].tolist(), task["length"].tolist()
        while max(length) + 3 > min(len(work.left), len(work.right)):
            work = larger(work)
        for side, cover in enumerate((work.left, work.right)):
            cover[: length[side]] = state.pool[begin[side] : begin[side] + length[side]]
            work.size[side] = length[side]
        work.known[0], work.best[0] = state.state["known"][0], -1
        work.found["bound"] = left[k], right[k]
        self._works[j] = work
        return True

    def _batches_of_three(self, gap: float, submit: Submit) -> bool:
        """Evaluate open intervals, many at a time, until none is left or the search is stopped."""
        while True:
            taken = self._pop_tasks(AT_A_TIME, gap)
            if not taken:
                return True
            assert self.state is not None
            self._taken = float(self.state.tasks["lower"][:taken].min())
            results = submit(self._evaluate_task, [(j,) for j in range(taken)])
            self._close(results)
            self._taken = np.inf
            if self.stop[FLAG]:
                return False

    # ------------------------------------------------------------------ more levels

    def _begin_outer(self) -> None:
        """Open all thresholds of the root that leaves allow."""
        size = float(self.rows.size.sum())
        self.open = [
            OuterInterval(0.0, -size, i, f, low, high)
            for i, (f, low, high) in enumerate(self._first_intervals())
        ]
        heapq.heapify(self.open)

    def _pop_outer(self, gap: float) -> OuterInterval | None:
        """Take the open interval with the least bound, if a better tree may be in it."""
        if not self.open:
            return None
        known = self._known - self.cost
        if self.open[0].bound >= known - self.tolerance:
            self.open.clear()
            return None
        if self.open[0].bound >= known - gap * abs(self._known):
            return None
        return heapq.heappop(self.open)

    def _pairs_of(self, effort: int) -> int:
        """Return the pairs of sides that a side of a threshold of four levels is searched with."""
        squares = len(self.rows.rank) ** 2
        if not effort:
            return max(LEAST_FIRST, FIRST_PAIRS * squares)
        return int(max(LEAST_PAIRS, SIDE_PAIRS * squares) * MORE**effort)

    def _pairs_for_bound(self, effort: int) -> int:
        """Return those of all levels: each one more needs them for both sides of the middle of every feature."""
        return self._pairs_of(effort) * int((2 * len(self.rows.rank)) ** (self.depth - 4))

    def _evaluate_outer(self, interval: OuterInterval, t: int = 0, most: int = 0) -> Evaluated:
        """Evaluate a threshold, the one in the middle of its interval where none is given, by searches of its sides.

        Each is given the pairs of sides of the interval's effort, or ``most``.

        Where leaves have a least size, bounds that parts of the interval inherit come first, of which more samples
        count (:meth:`_relaxed`), and trees are looked for where these leave room.
        """
        f, known = interval.feature, self._known - self.cost - self.tolerance
        rank = self.rows.rank[f]
        t = t or middle_threshold(np.sort(rank), interval.low, interval.high)
        bounds, values, pairs, ended = [interval.left, interval.right], [np.inf, np.inf], 0, True
        most = min(self.most_pairs, most or self._pairs_for_bound(interval.effort))
        trees: list[list[tuple[int, int]]] = [[], []]
        sides = [self.rows.subset(rank < t), self.rows.subset(rank >= t)]
        passes = [sides]
        if self.rows.N_min > 1 and ((rank >= interval.low) & (rank < interval.high)).any():
            passes.insert(0, [self._relaxed(interval, t, side) for side in range(2)])
        boxes = [None, None] if self.box is None else [self.box.below(side, f) for side in range(2)]
        for number, rows_of_sides in enumerate(passes):
            for side, (rows, box) in enumerate(zip(rows_of_sides, boxes, strict=True)):
                if self.box is not None and box is None:
                    bounds[side] = np.inf  # no tree of the box has this feature at its root
                if number and (not ended or sum(bounds) >= known):
                    continue
                if bounds[side] == np.inf or self.is_stopped:
                    ended = ended and bounds[side] == np.inf
                    continue
                if self.box is not None and (label := self.box.label_below(side, f)) >= 0:
                    loss = rows.leaf_of(label)
                    if not number:
                        bounds[side] = max(bounds[side], loss)
                    if number + 1 == len(passes):
                        values[side] = loss
                    continue
                # A part of the interval goes on with what is found here beside the other side's bound of all of it.
                other = bounds[1 - side] if number else (interval.right, interval.left)[side]
                part = type(self)(
                    rows, self.depth - 1, cost=self.cost, tolerance=self.tolerance,
                    incumbent=known - other, box=box, stop=self.stop, most_pairs=most,
                )  # fmt: skip
                ended = part.solve() and ended
                pairs += part.pairs
                if not number:
                    bounds[side] = max(bounds[side], part.bound)
                if number + 1 == len(passes) and part.splits is not None:
                    values[side], trees[side] = part.incumbent, part.tree()
        splits = under(f, t, trees[0], trees[1], depth=self.depth) if np.isfinite(sum(values)) else []
        return Evaluated(ended, t, (bounds[0], bounds[1]), pairs, sum(values), splits)

    def _relaxed(self, interval: OuterInterval, t: int, side: int) -> DistinctRows:
        """Return rows of a side of a threshold whose bound holds for the other thresholds of its interval, too.

        Of classes, leaves lose what the rows of the side lose, and count all samples of the interval with them. Else
        they may have any size.
        """
        rows, rank = self.rows, self.rows.rank[interval.feature]
        own = rank < t if side == 0 else rank >= t
        if not rows.of_classes or (self.box is not None and self.box.may_part_none):
            return replace(rows.subset(own), N_min=1)
        chosen = rank < interval.high if side == 0 else rank >= interval.low
        part = rows.subset(chosen)
        value = part.value.copy()
        value[~own[chosen], 1] = 0.0
        return replace(part, value=value)

    def _evaluate_and_tell(self, interval: OuterInterval, t: int = 0, most: int = 0) -> Evaluated:
        """Evaluate a threshold, and tell at once what its tree loses; it is taken over in the order of its batch."""
        found = self._evaluate_outer(interval, t, most)
        self.found_since = min(self.found_since, found.value + self.cost)
        return found

    def _keep(self, found: Evaluated) -> None:
        """Keep the tree that an evaluation found, if it is better than the known one."""
        self.pairs += found.pairs
        if found.value < self._known - self.cost - self.tolerance:
            self._known, self.splits = found.value + self.cost, found.splits

    def _close_outer(self, interval: OuterInterval, found: Evaluated) -> None:
        """Keep the tree that an evaluation found, and open what it leaves of the interval."""
        self._keep(found)
        known = self._known - self.cost - self.tolerance
        (left, right), t, f = found.bounds, found.t, interval.feature
        first, beyond = interval.low, interval.high
        last, after, effort = t - 1, t + 1, interval.effort
        if not found.ended:
            effort += 1
            self._open_outer(f, t, t, left, right, effort)
        if self.rows.predicts_labels:
            # Thresholds so near that moving the rows between cannot make up for what this one loses too much.
            weight = self._weight_below(f)
            last = min(
                last, int(np.searchsorted(weight, weight[t] - (left + right - known), side="left")) - 1
            )
            after = max(after, int(np.searchsorted(weight, weight[t] + (left + right - known), side="right")))
        if last >= first:
            self._open_outer(f, first, last, interval.left, right, effort)
        if after <= beyond:
            self._open_outer(f, after, beyond, left, interval.right, effort)

    def _open_outer(self, f: int, low: int, high: int, left: float, right: float, effort: int) -> None:
        """Open a part of an interval."""
        if left + right >= self._known - self.cost - self.tolerance:
            return
        self._number += 1
        rank = self.rows.rank[f]
        width = -float(self.rows.size[(rank >= low) & (rank < high)].sum())
        opened = OuterInterval(left + right, width, self._number, f, low, high, left, right, effort)
        heapq.heappush(self.open, opened)

    def _weight_below(self, f: int) -> FloatArray:
        """Return the most that moving the rows below each rank changes a number of errors by."""
        rows = self.rows
        return np.bincount(rows.rank[f] + 1, rows.moved, int(rows.n_values[f]) + 1).cumsum()

    # ------------------------------------------------------------------ run

    def solve(self) -> bool:
        """Search on this thread; return whether it ended, and was not stopped."""
        if self.is_trivial:
            return True
        return self._two() == DONE if self.depth == 2 else self._solve_deeper()

    def _solve_deeper(self) -> bool:
        """Search trees of three levels and more on this thread; return whether it ended."""
        if self.depth == 3:
            self._begin_three()
            end = self._loop(0.0)
            self._collect()
            return end == DONE
        self._begin_outer()
        while (interval := self._pop_outer(0.0)) is not None:
            found = self._evaluate_outer(interval)
            self._close_outer(interval, found)
            if self.is_stopped or self.pairs >= self.most_pairs:
                return not self.open
        return True

    def _collect(self) -> None:
        """Take over the best tree of three levels."""
        state = self.state
        if state is not None and state.best[0] >= 0 and self.incumbent < self._known:
            self._known, self.splits = self.incumbent, [(f, t) for f, t in state.best.reshape(3, 2).tolist()]

    def _watched(
        self,
        pool: ThreadPoolExecutor,
        deadline: float,
        should_stop: Callable[[], bool],
        task: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Return what calls of a task return in the threads of a pool; they end soon once the search is to stop."""
        running: list[Future[Any]] = [pool.submit(task, *call) for call in calls]
        try:
            while wait(running, timeout=WATCHED_EVERY).not_done:
                self.interrupted = self.interrupted or should_stop()
                if self.interrupted or monotonic() >= deadline:
                    self.stop[FLAG] = 1
        except BaseException:
            self.stop[FLAG] = 1
            raise
        return [future.result() for future in running]

    def run(
        self,
        *,
        gap: float,
        deadline: float,
        threads: int | None,
        should_stop: Callable[[], bool],
        max_pairs: int | None = None,
    ) -> tuple[bool, bool]:
        """Search; return whether it ended, and whether the caller stopped it.

        Parameters
        ----------
        gap
            Relative gap within which the best tree will do.
        deadline
            On the clock of :func:`time.monotonic`.
        threads
            Thresholds of the root that are evaluated at a time.
        should_stop
            Called now and then; returns whether to stop.
        max_pairs
            Pairs of sides after which the search stops; then one thread evaluates all.
        """
        if self.is_trivial:
            return True, False
        self.most_pairs = NO_LIMIT if max_pairs is None else max_pairs
        with ThreadPoolExecutor(min(AT_A_TIME, threads or os.cpu_count() or 1)) as pool:
            submit = partial(self._watched, pool, deadline, should_stop)
            if self.depth == 2:
                self._found = np.zeros(1, OF_SIDE)
                ended = submit(self._two, [()])[0] == DONE
            else:
                ended = self._run_deeper(submit, gap, deadline, threads, should_stop, max_pairs)
        return ended, self.interrupted

    def _is_short(self, max_pairs: int | None) -> bool:
        """Return whether one thread evaluates all thresholds of a root of three levels."""
        return max_pairs is not None or self.rows.rank.size < LONG

    def _run_deeper(
        self,
        submit: Submit,
        gap: float,
        deadline: float,
        threads: int | None,
        should_stop: Callable[[], bool],
        max_pairs: int | None,
    ) -> bool:
        """Search trees of three levels and more by tasks on threads; return whether it ended."""
        if self.depth == 3:
            self._begin_three()
            if self._is_short(max_pairs):
                ended = bool(submit(self._loop, [(gap,)])[0] == DONE)
            else:
                ended = self._batches_of_three(gap, submit)
            self._collect()
            return ended
        self._begin_outer()
        # A bound takes longer the more levels there are; from five on, trees come first.
        if self.depth == 4:
            goes_on = self._bound_middles(submit, max_pairs)
        else:
            goes_on = self._look_for_trees(submit, [(i, 0, self._pairs_of(0)) for i in self.open], max_pairs)
        if not goes_on:
            return not self.open
        first, batches = None, 0
        if (smaller := self._smaller()) is not None:
            part = monotonic() + SHARE_OF_FEWER * (deadline - monotonic())
            _, self.interrupted = smaller.run(
                gap=0.0,
                deadline=min(deadline, part),
                threads=threads,
                should_stop=should_stop,
                max_pairs=max_pairs,
            )
            self.pairs += smaller.pairs
            root = self._grow(smaller)
            if self.interrupted or monotonic() >= deadline:
                return False
            if self.depth == 4:
                first = self._pop_at(*root)
            elif root[0] >= 0:
                own = OuterInterval(0.0, 0.0, 0, root[0], root[1], root[1])
                if not self._look_for_trees(submit, [(own, root[1], self._pairs_of(1))], max_pairs):
                    return not self.open
        if self.depth > 4 and not self._bound_middles(submit, max_pairs):
            return not self.open
        while True:
            # Deep trees take long: the first few are known before many are begun.
            batch: list[tuple[OuterInterval, int]] = []
            if first is not None:
                batch, first = [first], None
            while len(batch) < min(AT_A_TIME, 2 ** (batches // 2)):
                interval = self._pop_outer(gap)
                if interval is None:
                    break
                batch.append((interval, 0))
            if not batch:
                return True
            batches += 1
            if not self._search_batch(submit, batch, max_pairs):
                return not self.open and not self.is_stopped

    def _look_for_trees(
        self, submit: Submit, calls: list[tuple[OuterInterval, int, int]], max_pairs: int | None
    ) -> bool:
        """Evaluate thresholds for their trees alone; return whether the search is to go on."""
        for found in submit(self._evaluate_and_tell, calls):
            self._keep(found)
        return self._goes_on(max_pairs)

    def _goes_on(self, max_pairs: int | None) -> bool:
        return not (self.is_stopped or (max_pairs is not None and self.pairs >= max_pairs))

    def _bound_middles(self, submit: Submit, max_pairs: int | None) -> bool:
        """Evaluate the middle of each feature with little effort, for a bound; return whether the search is to go on.

        Nothing is done where that would take all pairs.
        """
        if 2 * len(self.open) * self._pairs_for_bound(0) > self.most_pairs:
            return True
        middles, self.open = [(interval, 0) for interval in self.open], []
        return self._search_batch(submit, middles, max_pairs)

    def _search_batch(
        self, submit: Submit, batch: list[tuple[OuterInterval, int]], max_pairs: int | None
    ) -> bool:
        """Evaluate and close some intervals that were taken; return whether the search is to go on."""
        self._taken = min((interval.bound for interval, _ in batch), default=np.inf)
        results = submit(self._evaluate_and_tell, batch)
        for (interval, _), found in zip(batch, results, strict=True):
            self._close_outer(interval, found)
        self._taken = np.inf
        return self._goes_on(max_pairs)

    # ------------------------------------------------------------------ trees

    def _smaller(self) -> Self | None:
        """Return a search for the best tree of a level less; ``None`` where nodes of the last level have to split."""
        upper, box = 2 ** (self.depth - 1) - 1, None
        if self.box is not None and (box := self.box.above(upper)) is None:
            return None
        return type(self)(
            self.rows, self.depth - 1, cost=self.cost, tolerance=self.tolerance, incumbent=np.inf, box=box
        )

    def _grow(self, smaller: CoverSearch) -> tuple[int, int]:
        """Take the tree of a search with a level less, with the best splits below; return its root's split."""
        if smaller.splits is None:
            return -1, -1
        if self.box is not None:
            smaller.splits = smaller.tree()
        smaller.depth, smaller.box = self.depth, self.box
        nodes, value = smaller.tree(), 0.0
        here: dict[int, DistinctRows] = {0: self.rows}
        for node in range(2 ** (self.depth + 1) - 1):
            rows = here.pop(node, None)
            if rows is None:
                continue
            f, t = nodes[node] if node < len(nodes) else (-1, -1)
            if f < 0:
                label = -1
                if self.box is not None and node > 0:
                    label = self.box.label_below((node - 1) % 2, nodes[(node - 1) // 2][0])
                value += rows.leaf() if label < 0 else rows.leaf_of(label)
                continue
            value += self.cost
            right = rows.rank[f] >= t
            here[2 * node + 1], here[2 * node + 2] = rows.subset(~right), rows.subset(right)
        if value < self._known - self.tolerance:
            self._known, self.splits = value, nodes
        return nodes[0]

    def _pop_at(self, f: int, t: int) -> tuple[OuterInterval, int] | None:
        """Take the open interval with a threshold, to evaluate that first; ``None`` if there is none."""
        for i, interval in enumerate(self.open):
            if interval.feature == f and interval.low <= t <= interval.high:
                del self.open[i]
                heapq.heapify(self.open)
                return replace(interval, effort=1), t
        return None

    def tree(self) -> list[tuple[int, int]]:
        """Return feature and threshold of all nodes of the best tree in heap order, -1 where one does not split."""
        assert self.splits is not None
        if self.box is not None:
            return self._tree_in(self.box)
        given = dict(enumerate(self.splits))
        nodes = [(-1, -1)] * (2**self.depth - 1)
        if given[0][0] < 0:
            return nodes
        # The rows of each node, and the node of the search that it stands for.
        here: dict[int, tuple[BoolArray, int]] = {0: (np.ones(self.rows.rank.shape[1], dtype=bool), 0)}
        for node in range(2**self.depth - 1):
            if node not in here:
                continue
            members, source = here.pop(node)
            # A split that parts none of these rows, as of others it would part none are left: what is below moves up.
            while (split := given.get(source, (-1, -1)))[0] >= 0:
                right = self.rows.rank[split[0]] >= split[1]
                left = (members & ~right).any()
                if left and (members & right).any():
                    break
                source = 2 * source + (1 if left else 2)
            else:
                split = self.rows.best_split(self.cost, self.tolerance, members)
            f, t = split
            if f < 0:
                continue
            nodes[node], right = split, self.rows.rank[f] >= t
            here[2 * node + 1] = members & ~right, 2 * source + 1
            here[2 * node + 2] = members & right, 2 * source + 2
        return nodes

    def _tree_in(self, box: Box) -> list[tuple[int, int]]:
        """As :meth:`tree`, in a box: a split stays where it parts none of the rows, as its node may have to split."""
        assert self.splits is not None
        given, B = dict(enumerate(self.splits)), 2**self.depth - 1
        nodes = [(-1, -1)] * B
        here: dict[int, tuple[BoolArray, tuple[int, ...]]] = {
            0: (np.ones(self.rows.rank.shape[1], dtype=bool), ())
        }
        for t in range(B):
            if t not in here:
                continue
            members, path = here.pop(t)
            if t > 0 and box.label_below((t - 1) % 2, path[-1]) >= 0:
                continue
            if 2 * t + 1 < B or self.depth == 1:
                f, threshold = given.get(t, (-1, -1))
            else:
                f, threshold = self._last(self.rows.subset(members), box, t, path)
            if f < 0:
                continue
            nodes[t], right = (f, threshold), self.rows.rank[f] >= threshold
            here[2 * t + 1] = members & ~right, (*path, f)
            here[2 * t + 2] = members & right, (*path, f)
        return nodes

    def _last(self, rows: DistinctRows, box: Box, node: int, path: tuple[int, ...]) -> tuple[int, int]:
        """Return the best split of a node of the last level; -1 where a leaf loses no more."""
        best = np.inf if box.must[node] else rows.leaf() - self.tolerance
        above, found = {int(box.group[f]) for f in path} - {-1}, (-1, -1)
        labels = None if box.leaf is None else [box.labels(f) for f in range(len(box.leaf))]
        for f, values in enumerate(rows.splits(self.cost, parts_none=True, labels=labels)):
            if box.allowed[node, f] and int(box.group[f]) not in above and len(values):
                t = int(values.argmin())
                if values[t] < best:
                    best, found = float(values[t]), (f, t + 1)
        return found


def middle_threshold(ranks: Int32Array, low: int, high: int) -> int:
    """Return the threshold in an interval that comes nearest to halving the rows in it."""
    below = np.searchsorted(ranks, np.arange(low - 1, high + 2))
    goal = 0.5 * (below[0] + below[-1])
    return low + int(np.abs(below[1:-1] - goal).argmin())


def under(
    f: int, t: int, left: list[tuple[int, int]], right: list[tuple[int, int]], *, depth: int
) -> list[tuple[int, int]]:
    """Return the nodes of a tree in heap order from its root's split and the nodes of both subtrees, -1 if missing."""
    nodes = [(f, t)]
    for level in range(depth - 1):
        first, beyond = 2**level - 1, 2 ** (level + 1) - 1
        for own in (left[first:beyond], right[first:beyond]):
            nodes += own + [(-1, -1)] * (beyond - first - len(own))
    return nodes
