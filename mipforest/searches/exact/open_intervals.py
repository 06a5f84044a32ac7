"""Open intervals of the root's thresholds in a search of three levels: a heap, the covers of its intervals, and loops.

An interval has bounds on the losses of the rows left of its first and right of its last threshold, each with the cover
that proves it (:mod:`mipforest.searches.exact.covers`). The interval of the least bound is evaluated at the threshold
in the middle of its rows, and both parts inherit covers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.exact.covers import (
    BEGUN,
    DONE,
    ENOUGH,
    FLAG,
    FULL,
    MOST_PAIRS,
    PAIRS,
    PARTIAL,
    RELAXED,
    SHARE,
    STOPPED,
    Cover,
    CoverWorkspace,
    evaluate,
    leaf_below,
    middle,
    reach,
)
from mipforest.searches.exact.operations import Tables

#: An open interval of thresholds of a feature: lower bound, and those of both sides; weight of the rows between its
#: thresholds, as wide intervals come first; feature, first and last threshold; number of its making; where the covers
#: of both sides begin in the pool, and their lengths; how much its evaluation may take; of a task, the threshold and
#: the number of the evaluation, and whether this has closed the threshold.
OPEN_INTERVAL = np.dtype(
    [
        ("lower", np.float64),
        ("on_left", np.float64),
        ("on_right", np.float64),
        ("width", np.float64),
        ("feature", np.int64),
        ("low", np.int64),
        ("high", np.int64),
        ("number", np.int64),
        ("begin", np.int64, (2,)),
        ("length", np.int64, (2,)),
        ("effort", np.int64),
        ("threshold", np.int64),
        ("evaluation", np.int64),
        ("is_done", np.int64),
    ]
)

#: Number of open intervals; used intervals of the pool; the next number; what :func:`advance` does next; and the value
#: of both sides that is known.
STATE = np.dtype(
    [
        ("n_open", np.int64),
        ("used", np.int64),
        ("next", np.int64),
        ("stage", np.int64),
        ("known", np.float64),
    ]
)

#: Stages of :func:`advance`, and all of them.
TAKING, EVALUATING, CLOSING, REOPENING, ALL = range(5)

#: How :func:`advance` ends, beside the ends of an evaluation: the pool or the heap is full; an interval was taken.
POOL_FULL, TAKEN = 5, 6

#: Pairs that an evaluation takes of each side at first, for each feature; each further effort takes four times as many.
#: A search of few pairs in all takes less, so that it comes to both sides of all features.
EFFORT = 20


class OpenIntervals(NamedTuple):
    """State of a search of three levels.

    Attributes
    ----------
    heap, tasks
        (N,) open intervals, and (T,) those that are being evaluated: records :data:`OPEN_INTERVAL`.
    spare
        (1,) the interval that is moved in the heap.
    pool
        Covers of the intervals.
    state
        (1,) a record :data:`STATE`.
    best
        (6,) feature and threshold of the root, and of the splits of its sides, of the best tree; -1 in front if none is
        better than the value that was known.
    """

    heap: NDArray[Any]
    tasks: NDArray[Any]
    spare: NDArray[Any]
    pool: Cover
    state: NDArray[Any]
    best: IntArray


# ---------------------------------------------------------------------- heap


@kernel
def _is_before(one: Any, other: Any) -> bool:
    if one.lower != other.lower:
        return bool(one.lower < other.lower)
    if one.width != other.width:
        return bool(one.width > other.width)
    return bool(one.number < other.number)


@kernel
def _push_last(s: OpenIntervals) -> None:
    """Take the interval behind the heap into it."""
    i = s.state[0].n_open
    s.state[0].n_open += 1
    s.spare[0] = s.heap[i]
    while i > 0 and _is_before(s.spare[0], s.heap[(i - 1) // 2]):
        s.heap[i] = s.heap[(i - 1) // 2]
        i = (i - 1) // 2
    s.heap[i] = s.spare[0]


@kernel
def pop_task(s: OpenIntervals, j: int, weight_below: Any) -> None:
    """Make the first interval of the heap task j, and choose its threshold to be evaluated."""
    n = s.state[0].n_open - 1
    s.state[0].n_open = n
    s.tasks[j] = s.heap[0]
    s.spare[0] = s.heap[n]
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and _is_before(s.heap[child + 1], s.heap[child]):
            child += 1
        if _is_before(s.spare[0], s.heap[child]):
            break
        s.heap[i] = s.heap[child]
        i = child
    s.heap[i] = s.spare[0]
    task = s.tasks[j]
    task.threshold = middle(weight_below[task.feature], task.low, task.high)
    task.evaluation = s.state[0].next
    s.state[0].next += 1


@kernel
def limit_of(s: OpenIntervals, cost: float, tolerance: float, gap: float) -> float:
    """Return the bound from which on nothing better can be found."""
    known = s.state[0].known
    return float(known - max(tolerance, gap * abs(known + cost)))


# ---------------------------------------------------------------------- evaluation


@kernel
def _evaluate(
    tables: Tables, s: OpenIntervals, j: int, work: CoverWorkspace, cost: float, tolerance: float, stop: IntArray
) -> int:  # fmt: skip
    task = s.tasks[j]
    again = work.counts[BEGUN] != 0
    if not again:
        for side in range(2):
            cover = work.left if side == 0 else work.right
            begin, length = task.begin[side], task.length[side]
            if length + 3 > len(cover):
                return FULL
            for q in range(length):
                cover[q] = s.pool[begin + q]
            work.size[side] = length
        work.known[0] = s.state[0].known
        work.best[0] = -1
        work.counts[BEGUN] = 1
        p = len(tables.weight_below)
        work.counts[SHARE] = max(1, min(EFFORT * p, work.counts[MOST_PAIRS] // (3 * p))) << 2 * task.effort
        work.counts[ENOUGH] = work.counts[PAIRS] + work.counts[SHARE]
    end = evaluate(
        tables, work, task.feature, task.threshold, task.low, task.high, task.on_left, task.on_right, task.evaluation,
        cost, tolerance, again, stop,
    )  # fmt: skip
    if end != FULL:
        work.counts[BEGUN] = 0
    task.is_done = int(end != PARTIAL and end != RELAXED)
    task.effort += end == PARTIAL
    return end


# ---------------------------------------------------------------------- what is left of an interval


@kernel
def _open(
    tables: Tables, s: OpenIntervals, f: int, low: int, high: int, left: float, right: float,
    covers: tuple[Cover, Cover], begin: tuple[int, int], length: tuple[int, int], cutoff: float, cost: float,
    effort: int,
) -> None:  # fmt: skip
    """Open a part of an interval, with what its covers say now that the incumbent may be better."""
    one, used = s.heap[s.state[0].n_open], s.state[0].used
    for side in range(2):
        cover, first, n = (covers[0], begin[0], length[0]) if side == 0 else (covers[1], begin[1], length[1])
        least = cutoff - (right if side == 0 else left) - cost
        limit = least
        one.begin[side] = used
        for q in range(first, first + n):
            x = cover[q].left + cover[q].right
            least = min(least, x)
            if x < limit:
                s.pool[used] = cover[q]
                used += 1
        one.length[side] = used - one.begin[side]
        leaf, _ = leaf_below(tables, f, low if side == 0 else high, side == 1, high if side == 0 else low)
        if tables.must[side] != 0:
            leaf = np.inf
        if side == 0:
            left = max(left, min(leaf, cost + least))
        else:
            right = max(right, min(leaf, cost + least))
    if left + right >= cutoff:
        return
    s.state[0].used = used
    weight = tables.weight_below[f]
    one.lower, one.on_left, one.on_right, one.width = left + right, left, right, weight[high] - weight[low]
    one.feature, one.low, one.high, one.number, one.effort = f, low, high, s.state[0].next, effort
    s.state[0].next += 1
    _push_last(s)


@kernel
def _reopen(s: OpenIntervals, j: int) -> None:
    """Open task j again, as it was."""
    s.heap[s.state[0].n_open] = s.tasks[j]
    _push_last(s)


@kernel
def _close(
    tables: Tables, s: OpenIntervals, j: int, work: CoverWorkspace, cost: float, tolerance: float
) -> int:  # fmt: skip
    task, found, size = s.tasks[j], work.found, work.size
    old = task.length[0] + task.length[1]
    if s.state[0].used + old + 2 * (size[0] + size[1]) > len(s.pool) or s.state[0].n_open + 3 > len(s.heap):
        return POOL_FULL
    if work.best[0] >= 0 and work.known[0] < s.state[0].known - tolerance:
        s.state[0].known = work.known[0]
        for c in range(len(s.best)):
            s.best[c] = work.best[c]
    cutoff, t = s.state[0].known - tolerance, task.threshold
    f, low, high = task.feature, task.low, task.high
    left, right, effort = found[0].bound, found[1].bound, task.effort
    if task.is_done == 0:
        _open(
            tables, s, f, t, t, left, right, (work.left, work.right), (0, 0), (size[0], size[1]), cutoff, cost, effort,
        )  # fmt: skip
    # Thresholds so near that moving the rows between cannot make up for what this one loses too much.
    near, weight = reach(tables, left + right - cutoff), tables.weight_below[f]
    a = t - 1
    while a >= low and weight[t] - weight[a] <= near:
        a -= 1
    b = t + 1
    while b <= high and weight[b] - weight[t] <= near:
        b += 1
    if a >= low:
        _open(
            tables, s, f, low, a, task.on_left, right, (s.pool, work.right), (task.begin[0], 0),
            (task.length[0], size[1]), cutoff, cost, effort,
        )  # fmt: skip
    if b <= high:
        _open(
            tables, s, f, b, high, left, task.on_right, (work.left, s.pool), (0, task.begin[1]),
            (size[0], task.length[1]), cutoff, cost, effort,
        )  # fmt: skip
    return DONE


@entry
def advance(
    tables: Tables, s: OpenIntervals, j: int, work: CoverWorkspace, cost: float, tolerance: float, gap: float,
    stop: IntArray, stage: int,
) -> int:  # fmt: skip
    """Take an open interval as task j, evaluate it and close it: one of these stages, or all until none is left.

    One function, as all that it calls is compiled once so. Tasks are evaluated at the same time by many threads, each
    with a workspace of its own.

    Parameters
    ----------
    stage
        :data:`TAKING` the interval of the least bound; :data:`EVALUATING` it; :data:`CLOSING` it: keeping the tree that
        was found, and opening what is left; :data:`REOPENING` it as it was, as its evaluation was stopped; or
        :data:`ALL`, until no interval may hold a better tree.

    Returns
    -------
    int
        :data:`DONE`: the stage is, or there is none to take; :data:`TAKEN`; :data:`STOPPED`. :data:`FULL` or
        :data:`POOL_FULL`: call again with larger covers in the workspace, or with a larger pool and heap.
    """
    at = s.state[0].stage if stage == ALL else stage
    while True:
        if at == TAKING:
            if s.state[0].n_open == 0 or s.heap[0].lower >= limit_of(s, cost, tolerance, gap):
                return DONE
            if stage == ALL and stop[FLAG] != 0:
                return STOPPED
            pop_task(s, j, tables.weight_below)
            if stage != ALL:
                return TAKEN
            at = EVALUATING
        if at == EVALUATING:
            end = _evaluate(tables, s, j, work, cost, tolerance, stop)
            if stage != ALL:
                return end
            s.state[0].stage = EVALUATING
            if end == FULL:
                return end
            at = REOPENING if end == STOPPED else CLOSING  # PARTIAL, too
        if at == REOPENING:
            if s.state[0].n_open + 1 > len(s.heap):
                return POOL_FULL
            _reopen(s, j)
            s.state[0].stage = TAKING
            return DONE if stage == REOPENING else STOPPED
        end = _close(tables, s, j, work, cost, tolerance)
        if stage != ALL:
            return end
        s.state[0].stage = CLOSING if end != DONE else TAKING
        if end != DONE:
            return end
        at = TAKING


@entry
def move(s: OpenIntervals, to: OpenIntervals, n_tasks: int) -> None:
    """Copy open intervals and tasks with their covers to other memory, which has room for all.

    Parameters
    ----------
    n_tasks
        Tasks to copy.
    """
    n = s.state[0].n_open
    to.state[0].n_open, to.state[0].used = n, 0
    for i in range(n + n_tasks):
        one, new = (s.tasks[i - n], to.tasks[i - n]) if i >= n else (s.heap[i], to.heap[i])
        if i >= n:
            to.tasks[i - n] = one
        else:
            to.heap[i] = one
        for side in range(2):
            new.begin[side] = to.state[0].used
            for q in range(one.begin[side], one.begin[side] + one.length[side]):
                to.pool[to.state[0].used] = s.pool[q]
                to.state[0].used += 1
