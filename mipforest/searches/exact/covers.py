r"""Exact search of trees of two and three levels, by vector walks and covers that are inherited.

**Depth one.** :math:`W_1(S)`, the least loss of at most one split on some rows S, comes from one walk over each feature
(:mod:`mipforest.searches.exact.walks`), for both sides of a threshold at once. What differs between losses are
operations on tables: :mod:`mipforest.searches.exact.classes` and :mod:`mipforest.searches.exact.squared`.

**Depth two: a cover** of S is a list of intervals of thresholds, each of one feature f with ranks lo to hi and two
numbers: a lower bound ``left`` on :math:`W_1` of the rows of S below lo, and ``right`` on that of the rows from hi on.
Fewer rows never lose more, so every tree whose first split is in the interval loses at least ``left + right``, its
**key**, beside the cost of that split. :func:`refine` takes the interval of the least key: one whose numbers were found
for other rows is evaluated anew with its hole left out; any other is split at the threshold in the middle of its rows.
Moving rows of weight m to the other side changes a number of errors by m at most, which drops thresholds near a bad
one.

**Depth three.** An open interval of thresholds of the root has bounds on :math:`W_2` of the rows below its first and
from its last threshold on, each with the cover that proves it. The threshold in the middle is evaluated, the best
bound first, and both parts inherit its covers: the rows left of a threshold in a part contain those that its left cover
was made for, so that all keys remain valid, and an interval whose key has reached what the node can use never comes
back, as that only falls.

Ranks, weights and covers are those of distinct rows: samples that are equal in features and class are one; with the
squared loss, those that are equal in features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel, operation

#: Columns of :attr:`Cover.at`: feature, first and last threshold, and the evaluation of which its numbers are: that
#: number where the interval is one threshold that was evaluated, else the number below 0.
FEATURE, LOW, HIGH, STAMP = range(4)

#: Columns of :attr:`Cover.key`.
LEFT, RIGHT = range(2)

#: How :func:`evaluate` ends: done; the working covers are too small, call again with larger ones; stopped.
DONE, FULL, STOPPED = range(3)


class Cover(NamedTuple):
    """Intervals of thresholds (C, 4), see the names of its columns, and their two numbers (C, 2)."""

    at: NDArray[np.int32]
    key: FloatArray


class Workspace(NamedTuple):
    """What an evaluation works in and what it finds.

    Attributes
    ----------
    left, right
        Covers of both sides, with room for more.
    size
        (2,) number of intervals of each, in and out.
    side
        (2,) rows on each side, as :func:`pair` takes them; all rows in front where there are no sides.
    found
        (5,) bounds on :math:`W_2` of both sides, their least values found, and the incumbent less the cost of the
        root's split, in and out.
    split
        (2, 2) feature and threshold of the best split of each side; -1 where it is a leaf.
    best
        (6,) root and splits of an incumbent that was found; -1 in front where none was.
    totals, out
        For sums of classes and walks.
    counts
        (1,) pairs of sides that were evaluated, in and out.
    """

    left: Cover
    right: Cover
    size: IntArray
    side: Any
    found: FloatArray
    split: IntArray
    best: IntArray
    totals: Any
    out: Any
    counts: IntArray


@operation
def put(tables: Any, rows: Any, row: int, g: int, slot: int, t: int) -> None:
    """Write a row into a slot of the order of g, and into the sums below rank t."""
    raise NotImplementedError


@operation
def restrict(tables: Any, sides: Any, f: int, t: int) -> None:
    """Write the walks of the rows below a threshold, and of those from it on."""
    raise NotImplementedError


@operation
def leaf_below(tables: Any, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    raise NotImplementedError


@operation
def reach(tables: Any, excess: float) -> float:
    """Return the weight of rows that may change sides before a loss falls by more than a value, -1 if it is unknown."""
    raise NotImplementedError


@operation
def pair(
    tables: Any, rows: Any, f: int, below: int, first: int, cost: float, totals: Any, out: Any
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    raise NotImplementedError


@entry
def fill(order: NDArray[np.int32], rank: NDArray[np.int32], rows: Any, lanes: int, tables: Any) -> None:
    """Write the tables of rows.

    Parameters
    ----------
    order
        (p, n) rows in the order of each feature.
    rank, rows
        (p, n) ranks, and (n, V) what :func:`put` reads of a row.
    lanes
        Rows of a vector.
    tables
        All zeros, with the penalty everywhere, and -1 in the place of labels.
    """
    p, n = order.shape
    steps = tables.walk.shape[1] // lanes
    for g in range(p):
        i = 0
        for lane in range(lanes):
            for s in range(steps):
                if i < n:
                    row, slot = order[g, i], s * lanes + lane
                    for f in range(p):
                        tables.rank[g, f, slot] = rank[f, row]
                    if i == n - 1 or rank[g, order[g, i + 1]] != rank[g, row]:
                        tables.penalty[g, slot] = 0
                    put(tables, rows, row, g, slot, rank[g, row] + 1)
                i += 1
        for t in range(1, tables.below.shape[1]):
            tables.weight_below[g, t] += tables.weight_below[g, t - 1]
            for k in range(tables.below.shape[2]):
                tables.below[g, t, k] += tables.below[g, t - 1, k]


@kernel
def middle(weight_below: IntArray, low: int, high: int) -> int:
    """Return the threshold in an interval that comes nearest to halving the weight in it."""
    goal = (weight_below[low - 1] + weight_below[min(high + 1, len(weight_below) - 1)]) // 2
    a, b = low, high
    while a < b:
        m = (a + b) // 2
        if weight_below[m] < goal:
            a = m + 1
        else:
            b = m
    if a > low and goal - weight_below[a - 1] < weight_below[a] - goal:
        a -= 1
    return a


@kernel
def _set(cover: Cover, q: int, f: int, low: int, high: int, stamp: int, left: float, right: float) -> None:
    cover.at[q, FEATURE], cover.at[q, LOW], cover.at[q, HIGH], cover.at[q, STAMP] = f, low, high, stamp
    cover.key[q, LEFT], cover.key[q, RIGHT] = left, right


@kernel
def _drop(cover: Cover, q: int, last: int) -> None:
    """Put the last interval in the place of another one."""
    for c in range(4):
        cover.at[q, c] = cover.at[last, c]
    for c in range(2):
        cover.key[q, c] = cover.key[last, c]


@kernel
def refine(
    tables: Any,
    rows: Any,
    cover: Cover,
    size: int,
    keep: float,
    target: float,
    stamp: int,
    cost: float,
    work: Workspace,
    side: int,
    stop: IntArray,
) -> tuple[int, int, float]:
    """Raise the least key of a cover to a value, or find the best tree of two levels.

    Parameters
    ----------
    tables, rows
        The tables, and the walks of the rows of the side.
    cover, size
        Intervals of thresholds, in and out.
    keep
        Key from which on an interval is dropped for good.
    target
        Key that is enough.
    stamp
        Number of this evaluation.
    cost
        Cost of a split.
    work, side
        Where the value of a tree that is found and its split are written.
    stop
        Not 0 as soon as the search is to end.

    Returns
    -------
    end, size, key
        :data:`DONE`, :data:`FULL` or :data:`STOPPED`; the number of intervals; and the least key, at most ``keep``.
    """
    while True:
        i, key = -1, np.inf
        for q in range(size):
            x = cover.key[q, LEFT] + cover.key[q, RIGHT]
            if x < key:
                i, key = q, x
        if i < 0 or key >= target or key >= keep:
            return DONE, size, min(key, keep)
        f, low, high, seen = cover.at[i, FEATURE], cover.at[i, LOW], cover.at[i, HIGH], cover.at[i, STAMP]
        if low == high and seen == stamp:
            return DONE, size, min(key, keep)  # evaluated on these rows
        if stop[0] != 0:
            return STOPPED, size, min(key, keep)
        if size + 3 > len(cover.at):
            return FULL, size, min(key, keep)
        work.counts[0] += 1
        left, right = cover.key[i, LEFT], cover.key[i, RIGHT]
        weight_below = tables.weight_below[f]
        if low == high or abs(seen) != stamp:
            x, y = pair(tables, rows, f, low, high, cost, work.totals, work.out)
            _set(cover, i, f, low, high, stamp, max(x, left), max(y, right))
            if low == high:
                _note(work, side, f, low, x + y + cost)
            if cover.key[i, LEFT] + cover.key[i, RIGHT] >= keep:
                size -= 1
                _drop(cover, i, size)
            continue
        c = middle(weight_below, low, high)
        x, y = pair(tables, rows, f, c, c, cost, work.totals, work.out)
        value = x + y
        _note(work, side, f, c, value + cost)
        size -= 1
        _drop(cover, i, size)
        if value < keep:
            _set(cover, size, f, c, c, stamp, x, y)
            size += 1
        near = reach(tables, value - keep)
        a = c - 1
        while a >= low and weight_below[c] - weight_below[a] <= near:
            a -= 1
        if a >= low and left + y < keep:
            _set(cover, size, f, low, a, -stamp, left, y)
            size += 1
        a = c + 1
        while a <= high and weight_below[a] - weight_below[c] <= near:
            a += 1
        if a <= high and x + right < keep:
            _set(cover, size, f, a, high, -stamp, x, right)
            size += 1


@kernel
def _note(work: Workspace, side: int, f: int, t: int, value: float) -> None:
    """Write the value of a tree of a side, where it is the least one."""
    if value < work.found[2 + side]:
        work.found[2 + side], work.split[side, 0], work.split[side, 1] = value, f, t


@kernel
def thin(cover: Cover, size: int, keep: float) -> tuple[int, float]:
    """Drop intervals whose key has reached a value; return how many are left, and the least key, at most that."""
    least, q = keep, 0
    while q < size:
        x = cover.key[q, LEFT] + cover.key[q, RIGHT]
        if x >= keep:
            size -= 1
            _drop(cover, q, size)
        else:
            least = min(least, x)
            q += 1
    return size, least


@entry
def evaluate_all(tables: Any, work: Workspace, cost: float, keep: float, stop: IntArray) -> int:
    """Find the best tree of two levels for all rows, if it loses less than a value; the cover is the left one.

    Returns
    -------
    int
        As :func:`refine`; ``work.found[0]`` is a lower bound, at most ``keep``, and ``work.found[2]`` the least loss.
    """
    target = min(keep, work.found[2]) - cost
    end, size, key = refine(
        tables, work.side[0], work.left, work.size[0], keep - cost, target, 1, cost, work, 0, stop
    )
    work.size[0], work.found[0] = size, min(work.found[2], cost + key)
    return end


@entry
def evaluate(
    tables: Any,
    work: Workspace,
    f: int,
    t: int,
    left: float,
    right: float,
    stamp: int,
    cost: float,
    tolerance: float,
    again: bool,
    stop: IntArray,
) -> int:
    """Evaluate a threshold of the root: bounds and covers of both sides, and their trees.

    Parameters
    ----------
    tables
        The tables of all rows.
    work
        Covers of the open interval, the incumbent in ``found[4]``; all else is written.
    f, t
        Feature and threshold.
    left, right
        Bounds on :math:`W_2` left of the interval's first and right of its last threshold.
    stamp
        Number of this evaluation, unlike those before.
    cost, tolerance
        Cost of a split, and values closer than this are the same.
    again
        Whether the call goes on with larger covers.
    stop
        Not 0 as soon as the search is to end.

    Returns
    -------
    int
        :data:`DONE`, :data:`FULL` or :data:`STOPPED`.
    """
    found = work.found
    if not again:
        restrict(tables, work.side, f, t)
        for side in range(2):
            found[2 + side] = leaf_below(tables, f, t, side == 1)
            work.split[side, 0] = -1
        work.size[0], key = thin(work.left, work.size[0], found[4] - tolerance - right - cost)
        found[0] = max(left, min(found[2], cost + key))
        work.size[1], key = thin(work.right, work.size[1], found[4] - tolerance - left - cost)
        found[1] = max(right, min(found[3], cost + key))
    side = 0 if 2 * tables.weight_below[f, t] > tables.weight_below[f, -1] else 1
    while True:
        if found[2] + found[3] < found[4] - tolerance:
            found[4] = found[2] + found[3]
            work.best[0], work.best[1] = f, t
            for s in range(2):
                work.best[2 + 2 * s], work.best[3 + 2 * s] = work.split[s, 0], work.split[s, 1]
        keep_left, keep_right = found[4] - tolerance - right, found[4] - tolerance - left
        left_done = found[0] >= min(keep_left, found[2]) - tolerance
        right_done = found[1] >= min(keep_right, found[3]) - tolerance
        if left_done and right_done:
            return DONE
        if left_done if side == 0 else right_done:
            side = 1 - side
        cover, keep = (work.left, keep_left) if side == 0 else (work.right, keep_right)
        target = min(keep, found[2 + side]) - cost
        end, work.size[side], key = refine(
            tables,
            work.side[side],
            cover,
            work.size[side],
            keep - cost,
            target,
            stamp,
            cost,
            work,
            side,
            stop,
        )
        found[side] = max(found[side], min(found[2 + side], cost + key))
        if end != DONE:
            return end
        side = 1 - side


@entry
def leaf_loss(tables: Any, f: int, t: int, right: bool) -> float:
    """As :func:`leaf_below`, for callers that are not compiled."""
    return leaf_below(tables, f, t, right)


@entry
def nearest_middle(weight_below: IntArray, low: int, high: int) -> int:
    """As :func:`middle`, for callers that are not compiled."""
    return middle(weight_below, low, high)
