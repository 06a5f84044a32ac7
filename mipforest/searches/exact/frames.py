r"""The exact search itself: best-first over intervals of thresholds, at every node of a tree, without recursion.

A **frame** searches for the best tree of depth at most d on some rows S: :math:`W_d(S)`. It opens one interval of
positions per feature, evaluates the position in the middle of the interval with the least bound, and puts the two parts
back. Frame k + 1 evaluates the sides of a position of frame k; the last one has depth two, where both sides are scanned
at once (:mod:`mipforest.searches.exact.scans`). A frame ends when no interval may hold less than its best tree, or less
than the **bar**, from which on the frame above has no use for it.

**Bounds.** Fitted to fewer rows, the best tree of all has no more loss and no more splits than before: W falls with S.
(Without a least size of leaves; bounds are computed without it.) So of a position between a and b

.. math::  V \ge \alpha + W_{d-1}(\text{left of } a) + W_{d-1}(\text{right of } b).

For classes, moving rows to the other side costs at most the most that they can add to a loss: close to a bad position
all positions are bad.

Sets of rows that more than one path of splits reaches are kept with value, bound and tree in a table, by a hash of 128
bits: in a table of a million sets the chance that any two of them are confused is below 1e-26.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compiled
from mipforest.searches.exact.scans import Int32Array, Prepared, Room, Rows, best_pair, leaf_loss, prepare

#: What a frame does next: begin; take an interval; look at a side that was searched; close the position.
ENTER, TAKE, RETURN, CLOSE = 0, 1, 2, 3

#: In place of the root's threshold: the best tree is the one that was known at the start.
GIVEN = -2


# Columns of ``Frames.count``: number of rows, what to do next, number of open intervals; feature, first, last and
# evaluated position of the interval at work (-1: none); the side that is searched.
M, STAGE, N_OPEN, FEATURE, FIRST, LAST, CUT, SIDE = range(8)

# Columns of ``Frames.number``: value from which on nothing is asked, value of the best tree, least bound of what was
# closed, without the least size of leaves and with it; of the interval at work its bound, and those of the sides left of its first and right of its last position;
# values and bounds of both sides of the position (bounds are NaN while unknown).
BAR, BEST, LEAST, LIMITED, KEY, LEFT, RIGHT, VALUES, BOUNDS = 0, 1, 2, 3, 4, 5, 6, 7, 9


class Frames(NamedTuple):
    """State of a search; frame k searches for trees of depth D - k.

    Attributes
    ----------
    order
        (F, p, n) rows in the order of each feature (and of the target, for the absolute loss).
    count, number
        (F, 8) and (F, 11): see the names of their columns.
    tree
        (F, 3, T) thresholds of the best tree, and of the trees of both sides of the position; -1 where a node does not
        split.
    open, open_at
        Heap of the open intervals: (F, N, 3) bound, and those of the sides left of the first and right of the last
        position; (F, N, 3) feature, first and last position.
    """

    order: Int32Array
    count: IntArray
    number: FloatArray
    tree: Int32Array
    open: FloatArray
    open_at: IntArray


class Known(NamedTuple):
    """Sets of rows that were searched: slot by hash, overwritten.

    Attributes
    ----------
    code
        (n, 2) random numbers of the rows; the hash of a set combines those of its rows.
    hash, found, tree
        (C, 2), (C, 2) and (C, T) hash, value and bound, and tree of each slot; C is a power of two, or 0 to keep nothing.
    """

    code: NDArray[np.uint64]
    hash: NDArray[np.uint64]
    found: FloatArray
    tree: Int32Array


@compiled
def search(
    rows: Rows,
    frames: Frames,
    prepared: Prepared,
    room: Room,
    known: Known,
    depth: int,
    split_cost: float,
    gap: float,
    tolerance: float,
    most_nodes: int,
    complete: bool,
    stop: IntArray,
    report: FloatArray,
    by_threshold: FloatArray,
) -> bool:
    """Search for the best tree on all rows.

    Parameters
    ----------
    rows, frames, prepared, room, known
        The rows, and memory; the first frame holds all rows in their orders, and the value of a known tree.
    depth, split_cost
        Most splits on a path, and cost of a split.
    gap
        Relative gap within which the best tree will do.
    tolerance
        Values closer than this are the same.
    most_nodes
        Positions of the last frame to evaluate.
    complete
        Whether the root's positions are all evaluated, also those that cannot be best.
    stop
        Not 0 as soon as the search is to end.
    report
        (3,) written all the time: value of the best tree, bound, positions evaluated.
    by_threshold
        (q,) raised to proven lower bounds on the value of trees with each threshold at the root.

    Returns
    -------
    bool
        Whether the search has come to its end.
    """
    last = len(frames.count) - 1
    k, nodes = last - last, 0
    values, bounds, chosen = np.empty(2), np.empty(2), np.empty(2, np.int64)
    hashes = np.zeros((len(frames.count), 2), np.uint64)
    while True:
        stage = frames.count[k, STAGE]
        target = _target(frames, k, gap, tolerance, complete)
        if stage == ENTER:
            _enter(rows, frames, prepared, room, k, (k == last) & (depth > 1), split_cost, tolerance)
            frames.count[k, STAGE] = TAKE
        elif stage == TAKE:
            if k == 0:
                _report(frames, report)
            if frames.count[k, N_OPEN] == 0 or frames.open[k, 0, 0] >= target:
                if frames.count[k, N_OPEN] > 0:
                    _account(frames, k, frames.open[k, 0, 0])
                if k == 0:
                    _note_open(rows, frames, by_threshold)
                    return True
                k -= 1
                _hand_up(frames, k, depth)
                _remember(frames, known, k, hashes[k + 1])
                continue
            if stop[0] != 0 or nodes >= most_nodes:
                # What the root has begun stays open.
                if k > 0:
                    _account(frames, 0, frames.number[0, KEY])
                    f, lo, hi = frames.count[0, FEATURE], frames.count[0, FIRST], frames.count[0, LAST]
                    _note(rows, frames, f, lo, hi, frames.number[0, KEY], by_threshold)
                _note_open(rows, frames, by_threshold)
                _report(frames, report)
                return False
            _take(rows, frames, k, target, by_threshold)
            if frames.count[k, CUT] < 0:
                continue
            if k < last:
                f, cut, m = frames.count[k, FEATURE], frames.count[k, CUT], frames.count[k, M]
                side = 0 if 2 * cut <= m else 1
                bar = target - split_cost - frames.number[k, RIGHT - side]
                _begin_side(rows, frames, room, known, k, side, bar, tolerance, hashes[k + 1])
                k += frames.count[k + 1, STAGE] == ENTER
            else:
                nodes += 1
                report[2] = nodes
                f, cut = frames.count[k, FEATURE], frames.count[k, CUT]
                best_pair(
                    rows, frames.order[k], frames.count[k, M], cut, f, split_cost, prepared, room, values, bounds, chosen,
                    depth > 1,
                )  # fmt: skip
                for side in range(2):
                    frames.number[k, VALUES + side], frames.number[k, BOUNDS + side] = values[side], bounds[side]
                    if depth > 1:
                        frames.tree[k, 1 + side, 0] = chosen[side]
                frames.count[k, STAGE] = CLOSE
        elif stage == RETURN:
            side = frames.count[k, SIDE]
            other_bound = frames.number[k, RIGHT - side]
            rest = target - split_cost - frames.number[k, BOUNDS + side]
            if np.isnan(frames.number[k, BOUNDS + 1 - side]) and other_bound < rest:
                _begin_side(rows, frames, room, known, k, 1 - side, rest, tolerance, hashes[k + 1])
                k += frames.count[k + 1, STAGE] == ENTER
            else:
                frames.count[k, STAGE] = CLOSE
        else:
            _close(rows, frames, k, depth - k, split_cost, gap, tolerance, complete, by_threshold)
            frames.count[k, STAGE] = TAKE


@compiled
def _target(frames: Frames, k: int, gap: float, tolerance: float, complete: bool) -> float:
    """Return the bound from which on a frame has no use for an interval."""
    best = frames.number[k, BEST]
    if k > 0:
        return min(best, frames.number[k, BAR]) - tolerance
    return np.inf if complete else best - gap * abs(best) - tolerance


@compiled
def _report(frames: Frames, report: FloatArray) -> None:
    """Write the value of the best tree and the bound, where the root has nothing at work."""
    bound = min(frames.number[0, BEST], frames.number[0, LIMITED])
    if frames.count[0, N_OPEN] > 0:
        bound = min(bound, frames.open[0, 0, 0])
    report[0], report[1] = frames.number[0, BEST], bound


@compiled
def _account(frames: Frames, k: int, bound: float) -> None:
    """Note the bound of what a frame leaves out."""
    frames.number[k, LEAST] = min(frames.number[k, LEAST], bound)
    frames.number[k, LIMITED] = min(frames.number[k, LIMITED], bound)


@compiled
def _enter(
    rows: Rows,
    frames: Frames,
    prepared: Prepared,
    room: Room,
    k: int,
    scans: bool,
    split_cost: float,
    tolerance: float,
) -> None:
    """Begin a frame: the tree without a split, and one interval per feature."""
    order, m = frames.order[k], frames.count[k, M]
    alone = leaf_loss(rows, order, m, room)
    if k > 0 or alone < frames.number[0, BEST]:
        frames.number[k, BEST] = alone
        for t in range(frames.tree.shape[2]):
            frames.tree[k, 0, t] = -1
    frames.number[k, LEAST], frames.number[k, LIMITED], frames.count[k, N_OPEN] = alone, alone, 0
    least = split_cost
    for i in range(m):
        least += rows.least[order[0, i]]
    if k > 0 and least >= min(alone, frames.number[k, BAR]) - tolerance:
        _account(frames, k, least)
        return
    for f in range(len(rows.rank)):
        if rows.rank[f, order[f, 0]] != rows.rank[f, order[f, m - 1]]:
            _open(frames, k, f, 1, m - 1, 0.0, 0.0, least)
    if scans:
        prepare(rows, order, m, prepared)


@compiled
def _take(rows: Rows, frames: Frames, k: int, target: float, by_threshold: FloatArray) -> None:
    """Take the interval with the least bound, and choose the position in its middle; -1 where there is none."""
    f, lo, hi = frames.open_at[k, 0, 0], frames.open_at[k, 0, 1], frames.open_at[k, 0, 2]
    left, right, key = frames.open[k, 0, 1], frames.open[k, 0, 2], frames.open[k, 0, 0]
    _remove_least(frames, k)
    order, rank = frames.order[k, f], rows.rank[f]
    middle = (lo + hi) // 2
    cut = middle
    while cut <= hi and rank[order[cut]] == rank[order[cut - 1]]:
        cut += 1
    if cut > hi:
        cut = middle - 1
        while cut >= lo and rank[order[cut]] == rank[order[cut - 1]]:
            cut -= 1
        if cut < lo:
            cut = -1
    if rows.N_min > 1 and cut > 0:
        size, whole = 0, 0
        for i in range(frames.count[k, M]):
            whole += rows.size[order[i]]
            if i < cut:
                size += rows.size[order[i]]
        # Positions beyond one with too few samples on a side have still fewer.
        if size < rows.N_min or whole - size < rows.N_min:
            small = size < rows.N_min
            frames.number[k, LEAST] = min(frames.number[k, LEAST], key)
            if k == 0:
                _note(rows, frames, f, lo if small else cut, cut if small else hi, np.inf, by_threshold)
            if small and cut < hi:
                _open(frames, k, f, cut + 1, hi, left, right, key)
            if not small and lo < cut:
                _open(frames, k, f, lo, cut - 1, left, right, key)
            cut = -1
    frames.count[k, FEATURE], frames.count[k, FIRST], frames.count[k, LAST], frames.count[k, CUT] = f, lo, hi, cut
    frames.number[k, LEFT], frames.number[k, RIGHT], frames.number[k, KEY] = left, right, key
    frames.number[k, BOUNDS], frames.number[k, BOUNDS + 1] = np.nan, np.nan


@compiled
def _begin_side(
    rows: Rows,
    frames: Frames,
    room: Room,
    known: Known,
    k: int,
    side: int,
    bar: float,
    tolerance: float,
    code: NDArray[np.uint64],
) -> None:
    """Give a side of the position to the frame below, unless what is known of these rows will do."""
    f, cut, m = frames.count[k, FEATURE], frames.count[k, CUT], frames.count[k, M]
    frames.count[k, SIDE] = side
    child = k + 1
    first, beyond = (0, cut) if side == 0 else (cut, m)
    code[0] = code[1] = 0
    if k > 0 and len(known.hash) > 0:
        code[0] = code[1] = np.uint64(0x9E3779B97F4A7C15) * np.uint64(child)
        for i in range(first, beyond):
            code[0] ^= known.code[frames.order[k, f, i], 0]
            code[1] ^= known.code[frames.order[k, f, i], 1]
        slot = code[0] & np.uint64(len(known.hash) - 1)
        if known.hash[slot, 0] == code[0] and known.hash[slot, 1] == code[1]:
            exact = known.found[slot, 0] <= known.found[slot, 1] + 4 * tolerance
            if exact or known.found[slot, 1] >= bar - tolerance:
                frames.number[k, VALUES + side], frames.number[k, BOUNDS + side] = known.found[slot, 0], known.found[slot, 1]
                for t in range(known.tree.shape[1]):
                    frames.tree[k, 1 + side, t] = known.tree[slot, t]
                frames.count[k, STAGE], frames.count[child, STAGE] = RETURN, TAKE
                return
    for i in range(m):
        room.on_left[frames.order[k, f, i]] = (i < cut) == (side == 0)
    for j in range(frames.order.shape[1]):
        source, to, place = frames.order[k, j], frames.order[child, j], 0
        for i in range(m):
            to[place] = source[i]
            place += room.on_left[source[i]]
    frames.count[child, M], frames.number[child, BAR], frames.count[child, STAGE] = beyond - first, bar, ENTER


@compiled
def _hand_up(frames: Frames, k: int, depth: int) -> None:
    """Give what frame k + 1 has found to the position of frame k."""
    side, child = frames.count[k, SIDE], k + 1
    frames.number[k, VALUES + side] = frames.number[child, BEST]
    frames.number[k, BOUNDS + side] = min(frames.number[child, BEST], frames.number[child, LEAST])
    for t in range(2 ** (depth - child) - 1):
        frames.tree[k, 1 + side, t] = frames.tree[child, 0, t]
    frames.count[k, STAGE] = RETURN


@compiled
def _remember(frames: Frames, known: Known, k: int, code: NDArray[np.uint64]) -> None:
    """Keep what frame k + 1 has found."""
    if k == 0 or len(known.hash) == 0:
        return
    side, slot = frames.count[k, SIDE], code[0] & np.uint64(len(known.hash) - 1)
    known.hash[slot, 0], known.hash[slot, 1] = code[0], code[1]
    known.found[slot, 0], known.found[slot, 1] = frames.number[k, VALUES + side], frames.number[k, BOUNDS + side]
    for t in range(known.tree.shape[1]):
        known.tree[slot, t] = frames.tree[k, 1 + side, t]


@compiled
def _close(
    rows: Rows,
    frames: Frames,
    k: int,
    depth: int,
    split_cost: float,
    gap: float,
    tolerance: float,
    complete: bool,
    by_threshold: FloatArray,
) -> None:
    """Account for an evaluated position, and open what is left of its interval."""
    f, lo, hi, cut = frames.count[k, FEATURE], frames.count[k, FIRST], frames.count[k, LAST], frames.count[k, CUT]
    left, right = frames.number[k, LEFT], frames.number[k, RIGHT]
    order = frames.order[k, f]
    to_left, to_right = left, right
    if not np.isnan(frames.number[k, BOUNDS]):
        to_left = max(left, frames.number[k, BOUNDS])
    if not np.isnan(frames.number[k, BOUNDS + 1]):
        to_right = max(right, frames.number[k, BOUNDS + 1])
    bound = max(frames.number[k, KEY], split_cost + to_left + to_right)
    target = _target(frames, k, gap, tolerance, complete)
    limited = bound
    if not (np.isnan(frames.number[k, BOUNDS]) or np.isnan(frames.number[k, BOUNDS + 1])):
        value = split_cost + frames.number[k, VALUES] + frames.number[k, VALUES + 1]
        # With leaves large enough it is that, or no less than what was asked of the sides.
        limited = max(bound, min(value, target))
        if value < frames.number[k, BEST]:
            frames.number[k, BEST] = value
            tree = frames.tree[k]
            tree[0, 0] = rows.first[f] + rows.rank[f, order[cut]] - 1
            for level in range(depth - 1):
                width = 2**level
                for side in range(2):
                    for i in range(width):
                        tree[0, 2 * width - 1 + side * width + i] = tree[1 + side, width - 1 + i]
            target = _target(frames, k, gap, tolerance, complete)
    frames.number[k, LEAST] = min(frames.number[k, LEAST], bound)
    frames.number[k, LIMITED] = min(frames.number[k, LIMITED], limited)
    first, last, moved = cut, cut, 0.0
    while first > lo and moved + rows.most[order[first - 1]] <= bound - target:
        moved += rows.most[order[first - 1]]
        first -= 1
    skipped, moved = moved, 0.0
    while last < hi and moved + rows.most[order[last]] <= bound - target:
        moved += rows.most[order[last]]
        last += 1
    skipped = max(skipped, moved)
    if skipped > 0.0:
        _account(frames, k, bound - skipped)
    if k == 0:
        _note(rows, frames, f, cut, cut, limited, by_threshold)
        _note(rows, frames, f, first, last, bound - skipped, by_threshold)
    for side in range(2):
        a, b = (lo, first - 1) if side == 0 else (last + 1, hi)
        one, other = (left, to_right) if side == 0 else (to_left, right)
        key = max(frames.number[k, KEY], split_cost + one + other)
        if a > b:
            continue
        if key < target:
            _open(frames, k, f, a, b, one, other, key)
        else:
            _account(frames, k, key)
            if k == 0:
                _note(rows, frames, f, a, b, key, by_threshold)


# ---------------------------------------------------------------------- bounds by the root's threshold


@compiled
def _note(
    rows: Rows, frames: Frames, f: int, lo: int, hi: int, bound: float, by_threshold: FloatArray
) -> None:
    """Raise the bounds of the root's thresholds at some positions of a feature."""
    order, rank = frames.order[0, f], rows.rank[f]
    for i in range(lo, hi + 1):
        if rank[order[i]] != rank[order[i - 1]]:
            number = rows.first[f] + rank[order[i]] - 1
            by_threshold[number] = max(by_threshold[number], bound)


@compiled
def _note_open(rows: Rows, frames: Frames, by_threshold: FloatArray) -> None:
    """Raise the bounds of the thresholds in the root's open intervals."""
    for i in range(frames.count[0, N_OPEN]):
        f, lo, hi = frames.open_at[0, i, 0], frames.open_at[0, i, 1], frames.open_at[0, i, 2]
        _note(rows, frames, f, lo, hi, frames.open[0, i, 0], by_threshold)


# ---------------------------------------------------------------------- heap of open intervals


@compiled
def _open(
    frames: Frames, k: int, f: int, lo: int, hi: int, left: float, right: float, key: float
) -> None:
    """Add an interval to the heap of a frame."""
    i = frames.count[k, N_OPEN]
    frames.count[k, N_OPEN] += 1
    values, at = frames.open[k], frames.open_at[k]
    values[i, 0], values[i, 1], values[i, 2] = key, left, right
    at[i, 0], at[i, 1], at[i, 2] = f, lo, hi
    while i > 0 and values[i, 0] < values[(i - 1) // 2, 0]:
        _swap(values, at, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def _remove_least(frames: Frames, k: int) -> None:
    """Remove the first interval of a frame's heap."""
    frames.count[k, N_OPEN] -= 1
    values, at = frames.open[k], frames.open_at[k]
    n, i = frames.count[k, N_OPEN], 0
    _swap(values, at, 0, n)
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and values[child + 1, 0] < values[child, 0]:
            child += 1
        if values[i, 0] <= values[child, 0]:
            break
        _swap(values, at, i, child)
        i = child


@compiled
def _swap(values: FloatArray, at: IntArray, i: int, j: int) -> None:
    for v in range(3):
        values[i, v], values[j, v] = values[j, v], values[i, v]
        at[i, v], at[j, v] = at[j, v], at[i, v]
