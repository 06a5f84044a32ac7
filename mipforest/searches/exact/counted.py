r"""Tables of many features: classes are counted by bits, and a feature is walked only where it can win.

The tables of :mod:`mipforest.searches.exact.classes` hold a rank for each pair of features and row. Here a feature has
the bits of its rows from each of some quantiles on, its *edges*, and its rows in order.

**Bounds.** Counts of the classes of some rows from each edge of a feature on give the errors of its splits there.
Between two edges no split is right for more than

.. math::  \max_{k \ne l} \; a_k + b_l ,

where :math:`a_k` are the rows of class k below the upper edge, and :math:`b_l` those of class l from the lower one on:
the left leaf predicts k and the right one l, and rows between the edges may go where they are right. So few counts
bound all splits of a feature. An interval between two edges is halved, or its rows are walked, only where its bound is
less than what is known; and only as long as the bounds of both sides of a threshold leave room below what is *enough*.

Whole weights are so many equal rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import Int32Array, IntArray
from mipforest.searches import entry, implement, kernel
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.walks import WORDS_AT_A_TIME, count_common

#: Bits that are counted at a time, of which each class has a whole number.
BITS = 64 * WORDS_AT_A_TIME

#: Intervals between the edges of a feature, and how many of all the first bounds are made of: powers of two.
INTERVALS, COARSE = 32, 8


class CountedTables(NamedTuple):
    """Rows of weight 1 by bits, those of a class in words of their own.

    Attributes
    ----------
    bits
        (B - 1, p, W) rows from each inner edge on, coarse edges first.
    plane
        (B + 1,) where each edge is among them.
    edge, place
        (p, B + 1) first rank of the rows from each edge on, ascending, and where these begin in the order: from 0 and
        none to all.
    order, rank
        (p, N) bits in the order of each feature, and their ranks.
    label
        (64 W,) class of each bit.
    every
        (W,) all rows.
    start
        (K + 1,) first word of each class.
    below
        (p, U + 1, K) rows of each class below each rank.
    """

    bits: NDArray[np.uint64]
    plane: IntArray
    edge: Int32Array
    place: Int32Array
    order: Int32Array
    rank: NDArray[Any]
    label: NDArray[np.int16]
    every: NDArray[np.uint64]
    start: IntArray
    below: Int32Array
    use: NDArray[np.uint8]
    group: IntArray


class CountedSide(NamedTuple):
    """Rows of a side, and what walks over them work in.

    Attributes
    ----------
    mask
        (W,) the rows.
    coarse
        (C - 1, p, K) counts of the classes from each coarse edge on.
    parts, whole
        (2, W) and (2, K) rows of both parts of a pair, and counts of their classes.
    low
        (2, p) lower bounds on the errors of the splits of each feature.
    ends, is_open
        (B + 1, K) counts from each edge of a feature on, and (B,) whether a better split may be behind it.
    """

    mask: NDArray[np.uint64]
    coarse: Int32Array
    parts: NDArray[np.uint64]
    whole: Int32Array
    low: Int32Array
    ends: Int32Array
    is_open: NDArray[np.uint8]


# ---------------------------------------------------------------------- rows by bits


@kernel
def _count(rows: Any, mask: Any, start: IntArray, counts: Int32Array) -> None:
    """Count the rows of each class that are in two sets."""
    for k in range(len(start) - 1):
        counts[k] = count_common(rows, mask, start[k], start[k + 1])


@kernel
def _write_from(tables: CountedTables, f: int, t: int, rows: Any) -> None:
    """Write the rows with a rank of at least t in a feature."""
    edge, e, B = tables.edge[f], 0, len(tables.plane) - 1
    while e < B and edge[e + 1] <= t:
        e += 1
    for w in range(len(rows)):
        rows[w] = (
            tables.every[w] if e == 0 else np.uint64(0) if e == B else tables.bits[tables.plane[e], f, w]
        )
    order, rank, i = tables.order[f], tables.rank[f], tables.place[f, e]
    while i < len(order) and rank[i] < t:
        rows[order[i] >> 6] &= ~(np.uint64(1) << np.uint64(order[i] & 63))
        i += 1


@kernel
def restrict(tables: CountedTables, sides: tuple[CountedSide, CountedSide], f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    left, right = sides[0].mask, sides[1].mask
    _write_from(tables, f, t, right)
    for w in range(len(right)):
        left[w] = tables.every[w] & ~right[w]
    for s in range(2):
        _note_coarse(tables, sides[0] if s == 0 else sides[1])


@kernel
def _note_coarse(tables: CountedTables, side: CountedSide) -> None:
    """Count the rows of a side from each coarse edge on."""
    for c in range(side.coarse.shape[0]):
        for g in range(side.coarse.shape[1]):
            _count(tables.bits[c, g], side.mask, tables.start, side.coarse[c, g])


@entry
def write_bits(tables: CountedTables, n_values: IntArray) -> None:
    """Write edges, and the bits of the rows from each on.

    Where a feature has few values, all its thresholds are edges; else these are near the quantiles.
    """
    (p, N), B, W = tables.order.shape, len(tables.plane) - 1, len(tables.every)
    for f in range(p):
        edge, place, order, rank, U = (
            tables.edge[f],
            tables.place[f],
            tables.order[f],
            tables.rank[f],
            n_values[f],
        )
        for e in range(1, B + 1):
            if U <= B:
                edge[e] = (2 * e * U + B) // (2 * B)
            elif e == B:
                edge[e] = U
            else:
                # Below or above the rows of the value at the quantile, whichever is nearer.
                i = e * N // B
                low, high = i, i + 1
                while low > 0 and rank[low - 1] == rank[i]:
                    low -= 1
                while high < N and rank[high] == rank[i]:
                    high += 1
                edge[e] = rank[i] + int(high - i < i - low)
        place[0], i = 0, 0
        for e in range(1, B + 1):
            while i < N and rank[i] < edge[e]:
                i += 1
            place[e] = i
        for e in range(1, B):
            rows = tables.bits[tables.plane[e], f]
            if e == 1:
                for w in range(W):
                    rows[w] = tables.every[w]
            else:
                before = tables.bits[tables.plane[e - 1], f]
                for w in range(W):
                    rows[w] = before[w]
            for i in range(place[e - 1], place[e]):
                rows[order[i] >> 6] &= ~(np.uint64(1) << np.uint64(order[i] & 63))


@entry
def take_every(tables: CountedTables, side: CountedSide) -> None:
    """Make all rows those of a side."""
    for w in range(len(side.mask)):
        side.mask[w] = tables.every[w]
    _note_coarse(tables, side)


@kernel
def leaf_below(tables: CountedTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    last, total, most = tables.below.shape[1] - 1, 0, 0
    for k in range(tables.below.shape[2]):
        count = int(tables.below[f, t, k])
        if right:
            count = int(tables.below[f, last, k]) - count
        total += count
        most = max(most, count)
    return float(total - most)


# ---------------------------------------------------------------------- splits of one feature

#: More errors than rows.
MANY = 2**30


@kernel
def _errors_at(whole: Any, end: Any) -> int:
    """Return the errors of a split from the counts of all classes and of those right of it."""
    left, right, total = 0, 0, 0
    for k in range(len(whole)):
        left, right, total = max(left, int(whole[k] - end[k])), max(right, int(end[k])), total + int(whole[k])
    return total - left - right


@kernel
def _errors_between(whole: Any, lower: Any, upper: Any) -> int:
    """Return a lower bound on the errors of splits between two edges."""
    if len(whole) == 2:
        return int(min(whole[1] - lower[1] + upper[0], whole[0] - lower[0] + upper[1]))
    # The greatest of a and of b, and what is next: one class is not both.
    a, next_a, of_a, b, next_b, of_b, total = 0, 0, -1, 0, 0, -2, 0
    for k in range(len(whole)):
        total += int(whole[k])
        x, y = int(whole[k] - upper[k]), int(lower[k])
        if x > a:
            a, next_a, of_a = x, a, k
        else:
            next_a = max(next_a, x)
        if y > b:
            b, next_b, of_b = y, b, k
        else:
            next_b = max(next_b, y)
    return total - (a + b if of_a != of_b else max(a + next_b, next_a + b))


@kernel
def _coarse_errors(tables: CountedTables, g: int, ends: Any, whole: Any) -> tuple[int, int]:
    """Return a lower bound on the errors of the splits of a feature, and the least errors at a coarse edge."""
    B, step, low, best = len(tables.plane) - 1, (len(tables.plane) - 1) // COARSE, MANY, MANY
    for e in range(0, B, step):
        if e > 0:
            best = min(best, _errors_at(whole, ends[e]))
        if tables.edge[g, e + step] - tables.edge[g, e] > 1:
            low = min(low, _errors_between(whole, ends[e], ends[e + step]))
    return min(low, best), best


@kernel
def _least_errors(
    tables: CountedTables, rows: CountedSide, part: int, g: int, need: int
) -> int:  # fmt: skip
    """Return the least errors of a split of a feature if they are less than a number; else those of some split.

    Parameters
    ----------
    rows, part
        The side with its parts, and which of these is split.
    """
    ends, is_open, whole, mask = rows.ends, rows.is_open, rows.whole[part], rows.parts[part]
    B, edge, best = len(tables.plane) - 1, tables.edge[g], MANY
    step = B // COARSE
    for e in range(0, B, step):
        is_open[e] = 1
        if e > 0:
            _count(tables.bits[tables.plane[e], g], mask, tables.start, ends[e])
            best = min(best, _errors_at(whole, ends[e]))
    while True:
        for e in range(0, B, step):
            upper, middle = e + step, e + step // 2
            if edge[upper] - edge[e] <= 1 or (
                is_open[e] != 0 and _errors_between(whole, ends[e], ends[upper]) >= min(need, best)
            ):
                is_open[e] = 0
            if step > 1:
                is_open[middle] = is_open[e]  # of both halves
            if is_open[e] == 0:
                continue
            if step > 1:
                _count(tables.bits[tables.plane[middle], g], mask, tables.start, ends[middle])
                best = min(best, _errors_at(whole, ends[middle]))
            else:
                best = min(best, _walked(tables, g, e, mask, whole, ends[e]))
        if step == 1:
            return best
        step //= 2


@kernel
def _walked(tables: CountedTables, g: int, e: int, mask: Any, whole: Any, end: Any) -> int:
    """Return the least errors of the splits behind an edge up to the next; ``end`` are its counts, written."""
    order, rank, best = tables.order[g], tables.rank[g], MANY
    begin, beyond = tables.place[g, e], tables.place[g, e + 1]
    moved = False
    for i in range(begin, beyond):
        if moved and rank[i] != rank[i - 1]:
            best, moved = min(best, _errors_at(whole, end)), False
        bit = order[i]
        if (mask[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != 0:
            end[tables.label[bit]] -= 1
            moved = True
    return best


# ---------------------------------------------------------------------- both sides of a threshold


@kernel
def pair(
    tables: CountedTables, rows: CountedSide, f: int, below: int, first: int, cost: float, enough: float,
    totals: Any, out: Any,  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    Lower bounds where their sum is ``enough``.
    """
    mask, parts, whole, low = rows.mask, rows.parts, rows.whole, rows.low
    p, B, K = rows.coarse.shape[1], len(tables.plane) - 1, len(tables.start) - 1
    step = B // COARSE
    for part in range(2):
        _write_from(tables, f, below if part == 0 else first, parts[part])
        for w in range(len(mask)):
            parts[part, w] = mask[w] & (~parts[part, w] if part == 0 else parts[part, w])
        _count(parts[part], mask, tables.start, whole[part])
    leaf_left, leaf_right = (
        float(_errors_at(whole[0], rows.whole[0])),
        float(_errors_at(whole[1], rows.whole[1])),
    )
    least_left, least_right = MANY, MANY  # errors of a split that was found
    any_left, any_right = False, False
    for g in range(p):
        low[0, g] = low[1, g] = MANY
        on_left = usable(tables.use, tables.group, out, 0, g)
        on_right = usable(tables.use, tables.group, out, 1, g)
        any_left |= on_left
        any_right |= on_right
        if on_left and leaf_left > 0.0:
            for k in range(K):
                rows.ends[0, k], rows.ends[B, k] = whole[0, k], 0
            for c in range(1, COARSE):
                _count(tables.bits[tables.plane[c * step], g], parts[0], tables.start, rows.ends[c * step])
            low[0, g], best = _coarse_errors(tables, g, rows.ends, whole[0])
            least_left = min(least_left, best)
        if on_right and leaf_right > 0.0:
            if below == first and on_left and leaf_left > 0.0:
                for c in range(1, COARSE):
                    for k in range(K):
                        rows.ends[c * step, k] = (
                            rows.coarse[tables.plane[c * step], g, k] - rows.ends[c * step, k]
                        )
            else:
                for c in range(1, COARSE):
                    _count(
                        tables.bits[tables.plane[c * step], g], parts[1], tables.start, rows.ends[c * step]
                    )
            for k in range(K):
                rows.ends[0, k], rows.ends[B, k] = whole[1, k], 0
            low[1, g], best = _coarse_errors(tables, g, rows.ends, whole[1])
            least_right = min(least_right, best)
    if has_to_split(tables.use, out, 0):
        leaf_left = np.inf if not any_left else leaf_left + cost
    if has_to_split(tables.use, out, 1):
        leaf_right = np.inf if not any_right else leaf_right + cost
    while True:
        left, g = _least_low(low[0])
        right, h = _least_low(low[1])
        # Bounds, and what is found.
        x, best_x = _with_leaf(leaf_left, cost, left), _with_leaf(leaf_left, cost, least_left)
        y, best_y = _with_leaf(leaf_right, cost, right), _with_leaf(leaf_right, cost, least_right)
        if x + y >= enough or (x >= best_x and y >= best_y):
            return x, y
        part = 0 if best_x - x >= best_y - y else 1
        g, least, known = (g, least_left, left) if part == 0 else (h, least_right, right)
        # The fewest errors at which both sides are enough; at least one more than is known.
        room = np.ceil(enough - (y if part == 0 else x) - cost)
        need = least
        if known < room < least:
            need = int(room)
        for k in range(K):
            rows.ends[0, k], rows.ends[B, k] = whole[part, k], 0
        best = _least_errors(tables, rows, part, g, need)
        low[part, g] = min(best, need)
        if part == 0:
            least_left = min(least_left, best)
        else:
            least_right = min(least_right, best)


@kernel
def _with_leaf(leaf: float, cost: float, errors: int) -> float:
    """Return the loss of a leaf, or of a split with some errors, if there is one."""
    return min(leaf, cost + errors) if errors < MANY else leaf


@kernel
def _least_low(low: Any) -> tuple[int, int]:
    """Return the least bound, and the first feature that has it."""
    least, at = low[0], 0
    for g in range(1, len(low)):
        if low[g] < least:
            least, at = low[g], g
    return int(least), at


implement(CountedTables, restrict, leaf_below, pair)
