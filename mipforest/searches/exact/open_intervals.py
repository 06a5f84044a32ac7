"""Open intervals of the root's thresholds in a search of three levels: a heap, the covers of its intervals, and loops.

An interval has bounds on the losses of the rows left of its first and right of its last threshold, each with the cover
that proves it (:mod:`mipforest.searches.exact.covers`). The interval of the least bound is evaluated at the threshold
in the middle of its rows, and both parts inherit covers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.exact.covers import (
    BOUND,
    DONE,
    FEATURE,
    FLAG,
    FULL,
    HIGH,
    KNOWN,
    LEFT,
    LOW,
    RIGHT,
    STOPPED,
    Cover,
    Workspace,
    copy_interval,
    evaluate,
    leaf_below,
    middle,
    reach,
)
from mipforest.searches.exact.operations import Tables

#: Columns of :attr:`OpenIntervals.at` behind feature, first and last threshold: number of its making; where its left
#: cover begins in the pool, and its length; the same of its right cover.
NUMBER, BEGIN, LENGTH = 3, 4, 5

#: Columns of :attr:`OpenIntervals.key`: lower bound; bounds of both sides; weight of the rows between its thresholds:
#: wide intervals come first.
LOWER, ON_LEFT, ON_RIGHT, WIDTH = range(4)

#: Columns of :attr:`OpenIntervals.task_at` behind those of ``at``: the threshold and the number of the evaluation.
THRESHOLD, EVALUATION = 8, 9

#: Entries of :attr:`OpenIntervals.counts`: number of open intervals; used intervals of the pool; the next number; what
#: :func:`advance` does next.
OPEN, USED, NEXT, STAGE = range(4)

#: Entry of :attr:`OpenIntervals.value`: value of both sides that is known.
OWN_KNOWN = 0

#: Entries of :attr:`Workspace.counts` behind the pairs: whether an evaluation is to go on.
BEGUN = 1

#: Stages of :func:`advance`, and all of them.
TAKING, EVALUATING, CLOSING, REOPENING, ALL = range(5)

#: How :func:`advance` ends, beside the ends of an evaluation: the pool or the heap is full; an interval was taken.
POOL_FULL, TAKEN = 3, 4


class OpenIntervals(NamedTuple):
    """State of a search of three levels.

    Attributes
    ----------
    key, at
        (N, 4) and (N, 8) the heap: see the names of the columns.
    pool
        Covers of the intervals.
    task_key, task_at
        (T, 4) and (T, 10) intervals that are being evaluated.
    counts, value
        (4,) and (1,): see the names of their entries.
    best
        (6,) feature and threshold of the root, and of the splits of its sides, of the best tree; -1 in front if none is
        better than the value that was known.
    """

    key: FloatArray
    at: IntArray
    pool: Cover
    task_key: FloatArray
    task_at: IntArray
    counts: IntArray
    value: FloatArray
    best: IntArray


# ---------------------------------------------------------------------- heap


@kernel
def _is_before(s: OpenIntervals, i: int, j: int) -> bool:
    if s.key[i, LOWER] != s.key[j, LOWER]:
        return bool(s.key[i, LOWER] < s.key[j, LOWER])
    if s.key[i, WIDTH] != s.key[j, WIDTH]:
        return bool(s.key[i, WIDTH] > s.key[j, WIDTH])
    return bool(s.at[i, NUMBER] < s.at[j, NUMBER])


@kernel
def _swap(s: OpenIntervals, i: int, j: int) -> None:
    for c in range(s.key.shape[1]):
        s.key[i, c], s.key[j, c] = s.key[j, c], s.key[i, c]
    for c in range(s.at.shape[1]):
        s.at[i, c], s.at[j, c] = s.at[j, c], s.at[i, c]


@kernel
def _push_last(s: OpenIntervals) -> None:
    """Take the interval behind the heap into it."""
    i = s.counts[OPEN]
    s.counts[OPEN] += 1
    while i > 0 and _is_before(s, i, (i - 1) // 2):
        _swap(s, i, (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def take(s: OpenIntervals, j: int, weight_below: Any) -> None:
    """Make the first interval of the heap task j, and choose its threshold to be evaluated."""
    n = s.counts[OPEN] - 1
    s.counts[OPEN] = n
    for c in range(s.key.shape[1]):
        s.task_key[j, c] = s.key[0, c]
    for c in range(s.at.shape[1]):
        s.task_at[j, c] = s.at[0, c]
    _swap(s, 0, n)
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and _is_before(s, child + 1, child):
            child += 1
        if _is_before(s, i, child):
            break
        _swap(s, i, child)
        i = child
    f, low, high = s.task_at[j, FEATURE], s.task_at[j, LOW], s.task_at[j, HIGH]
    s.task_at[j, THRESHOLD] = middle(weight_below[f], low, high)
    s.task_at[j, EVALUATION] = s.counts[NEXT]
    s.counts[NEXT] += 1


@kernel
def limit_of(s: OpenIntervals, cost: float, tolerance: float, gap: float) -> float:
    """Return the bound from which on nothing better can be found."""
    known = s.value[OWN_KNOWN]
    return float(known - max(tolerance, gap * abs(known + cost)))


# ---------------------------------------------------------------------- evaluation


@kernel
def _evaluate(
    tables: Tables, s: OpenIntervals, j: int, work: Workspace, cost: float, tolerance: float, stop: IntArray
) -> int:  # fmt: skip
    at, key = s.task_at[j], s.task_key[j]
    again = work.counts[BEGUN] != 0
    if not again:
        for side in range(2):
            cover = work.left if side == 0 else work.right
            begin, length = at[BEGIN + 2 * side], at[LENGTH + 2 * side]
            if length + 3 > len(cover.at):
                return FULL
            for q in range(length):
                copy_interval(s.pool, begin + q, cover, q)
            work.size[side] = length
        work.found[KNOWN] = s.value[OWN_KNOWN]
        work.best[0] = -1
        work.counts[BEGUN] = 1
    end = evaluate(
        tables, work, at[FEATURE], at[THRESHOLD], key[ON_LEFT], key[ON_RIGHT], at[EVALUATION], cost, tolerance, again,
        stop,
    )  # fmt: skip
    if end != FULL:
        work.counts[BEGUN] = 0
    return end


# ---------------------------------------------------------------------- what is left of an interval


@kernel
def _open(
    tables: Tables, s: OpenIntervals, f: int, low: int, high: int, left: float, right: float,
    covers: tuple[Cover, Cover], begin: tuple[int, int], length: tuple[int, int], keep: float, cost: float,
) -> None:  # fmt: skip
    """Open a part of an interval, with what its covers say now that the incumbent may be better."""
    i, used = s.counts[OPEN], s.counts[USED]
    for side in range(2):
        cover, first, n = (covers[0], begin[0], length[0]) if side == 0 else (covers[1], begin[1], length[1])
        least = keep - (right if side == 0 else left) - cost
        limit = least
        s.at[i, BEGIN + 2 * side] = used
        for q in range(first, first + n):
            x = cover.key[q, LEFT] + cover.key[q, RIGHT]
            least = min(least, x)
            if x < limit:
                copy_interval(cover, q, s.pool, used)
                used += 1
        s.at[i, LENGTH + 2 * side] = used - s.at[i, BEGIN + 2 * side]
        leaf, _ = leaf_below(tables, f, low if side == 0 else high, side == 1)
        if tables.must[side] != 0:
            leaf = np.inf
        if side == 0:
            left = max(left, min(leaf, cost + least))
        else:
            right = max(right, min(leaf, cost + least))
    if left + right >= keep:
        return
    s.counts[USED] = used
    weight = tables.weight_below[f]
    s.key[i, LOWER], s.key[i, ON_LEFT], s.key[i, ON_RIGHT] = left + right, left, right
    s.key[i, WIDTH] = weight[high] - weight[low]
    s.at[i, FEATURE], s.at[i, LOW], s.at[i, HIGH] = f, low, high
    s.at[i, NUMBER] = s.counts[NEXT]
    s.counts[NEXT] += 1
    _push_last(s)


@kernel
def _reopen(s: OpenIntervals, j: int) -> None:
    """Put task j back as it was."""
    i = s.counts[OPEN]
    for c in range(s.key.shape[1]):
        s.key[i, c] = s.task_key[j, c]
    for c in range(s.at.shape[1]):
        s.at[i, c] = s.task_at[j, c]
    _push_last(s)


@kernel
def _close(
    tables: Tables, s: OpenIntervals, j: int, work: Workspace, cost: float, tolerance: float
) -> int:  # fmt: skip
    at, found, size = s.task_at[j], work.found, work.size
    old = at[LENGTH] + at[LENGTH + 2]
    if s.counts[USED] + old + size[0] + size[1] > len(s.pool.at) or s.counts[OPEN] + 2 > len(s.key):
        return POOL_FULL
    if work.best[0] >= 0 and found[KNOWN] < s.value[OWN_KNOWN] - tolerance:
        s.value[OWN_KNOWN] = found[KNOWN]
        for c in range(len(s.best)):
            s.best[c] = work.best[c]
    keep, t = s.value[OWN_KNOWN] - tolerance, at[THRESHOLD]
    f, low, high = at[FEATURE], at[LOW], at[HIGH]
    left, right = found[BOUND], found[BOUND + 1]
    # Thresholds so near that moving the rows between cannot make up for what this one loses too much.
    near, weight = reach(tables, left + right - keep), tables.weight_below[f]
    a = t - 1
    while a >= low and weight[t] - weight[a] <= near:
        a -= 1
    b = t + 1
    while b <= high and weight[b] - weight[t] <= near:
        b += 1
    if a >= low:
        _open(
            tables, s, f, low, a, s.task_key[j, ON_LEFT], right, (s.pool, work.right), (at[BEGIN], 0),
            (at[LENGTH], size[1]), keep, cost,
        )  # fmt: skip
    if b <= high:
        _open(
            tables, s, f, b, high, left, s.task_key[j, ON_RIGHT], (work.left, s.pool), (0, at[BEGIN + 2]),
            (size[0], at[LENGTH + 2]), keep, cost,
        )  # fmt: skip
    return DONE


@entry
def advance(
    tables: Tables, s: OpenIntervals, j: int, work: Workspace, cost: float, tolerance: float, gap: float,
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
    at = s.counts[STAGE] if stage == ALL else stage
    while True:
        if at == TAKING:
            if s.counts[OPEN] == 0 or s.key[0, LOWER] >= limit_of(s, cost, tolerance, gap):
                return DONE
            if stage == ALL and stop[FLAG] != 0:
                return STOPPED
            take(s, j, tables.weight_below)
            if stage != ALL:
                return TAKEN
            at = EVALUATING
        if at == EVALUATING:
            end = _evaluate(tables, s, j, work, cost, tolerance, stop)
            if stage != ALL:
                return end
            s.counts[STAGE] = EVALUATING
            if end == FULL:
                return end
            at = REOPENING if end == STOPPED else CLOSING
        if at == REOPENING:
            if s.counts[OPEN] + 1 > len(s.key):
                return POOL_FULL
            _reopen(s, j)
            s.counts[STAGE] = TAKING
            return DONE if stage == REOPENING else STOPPED
        end = _close(tables, s, j, work, cost, tolerance)
        if stage != ALL:
            return end
        s.counts[STAGE] = CLOSING if end != DONE else TAKING
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
    to.counts[OPEN], to.counts[USED] = s.counts[OPEN], 0
    for i in range(s.counts[OPEN] + n_tasks):
        is_task, row = i >= s.counts[OPEN], i - s.counts[OPEN]
        key, at = (s.task_key[row], s.task_at[row]) if is_task else (s.key[i], s.at[i])
        to_key, to_at = (to.task_key[row], to.task_at[row]) if is_task else (to.key[i], to.at[i])
        for c in range(len(key)):
            to_key[c] = key[c]
        for c in range(len(at)):
            to_at[c] = at[c]
        for side in range(2):
            to_at[BEGIN + 2 * side] = to.counts[USED]
            for q in range(at[BEGIN + 2 * side], at[BEGIN + 2 * side] + at[LENGTH + 2 * side]):
                copy_interval(s.pool, q, to.pool, to.counts[USED])
                to.counts[USED] += 1
