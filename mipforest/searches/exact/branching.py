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

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compiled, inner
from mipforest.searches.exact.frames import (
    BAR,
    BEST,
    BOUNDS,
    CLOSE,
    CUT,
    ENTER,
    FEATURE,
    FIRST,
    KEY,
    LAST,
    LEAST,
    LEFT,
    LIMITED,
    N_OPEN,
    RETURN,
    RIGHT,
    SIDE,
    STAGE,
    TAKE,
    VALUES,
    Frames,
    Known,
    M,
    bar_of,
    leave_out,
    note,
    note_open,
    open_interval,
    remove_least,
    write_report,
)
from mipforest.searches.exact.losses import Prepared, Room, Rows, leaf_loss
from mipforest.searches.exact.scans import best_pair, prepare


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
    last = len(frames.state) - 1
    k, nodes = last - last, 0
    values, bounds, chosen = np.empty(2), np.empty(2), np.empty(2, np.int64)
    hashes = np.zeros((len(frames.state), 2), np.uint64)
    while True:
        stage = frames.state[k, STAGE]
        target = bar_of(frames, k, gap, tolerance, complete)
        if stage == ENTER:
            _enter(rows, frames, prepared, room, k, (k == last) & (depth > 1), split_cost, tolerance)
            frames.state[k, STAGE] = TAKE
        elif stage == TAKE:
            if k == 0:
                write_report(frames, report)
            if frames.state[k, N_OPEN] == 0 or frames.open[k, 0, 0] >= target:
                if frames.state[k, N_OPEN] > 0:
                    leave_out(frames, k, frames.open[k, 0, 0])
                if k == 0:
                    note_open(rows, frames, by_threshold)
                    return True
                k -= 1
                _hand_up(frames, k, depth)
                _remember(frames, known, k, hashes[k + 1])
                continue
            if stop[0] != 0 or nodes >= most_nodes:
                # What the root has begun stays open.
                if k > 0:
                    leave_out(frames, 0, frames.value[0, KEY])
                    f, lo, hi = frames.state[0, FEATURE], frames.state[0, FIRST], frames.state[0, LAST]
                    note(rows, frames, f, lo, hi, frames.value[0, KEY], by_threshold)
                note_open(rows, frames, by_threshold)
                write_report(frames, report)
                return False
            _take(rows, frames, k, by_threshold)
            if frames.state[k, CUT] < 0:
                continue
            if k < last:
                f, cut, m = frames.state[k, FEATURE], frames.state[k, CUT], frames.state[k, M]
                side = 0 if 2 * cut <= m else 1
                bar = target - split_cost - frames.value[k, RIGHT - side]
                _begin_side(frames, room, known, k, side, bar, tolerance, hashes[k + 1])
                k += frames.state[k + 1, STAGE] == ENTER
            else:
                nodes += 1
                report[2] = nodes
                f, cut, m = frames.state[k, FEATURE], frames.state[k, CUT], frames.state[k, M]
                best_pair(
                    rows, frames.order[k], m, cut, f, split_cost, prepared, room, values, bounds, chosen, depth > 1
                )  # fmt: skip
                for side in range(2):
                    frames.value[k, VALUES + side] = values[side]
                    frames.value[k, BOUNDS + side] = bounds[side]
                    if depth > 1:
                        frames.tree[k, 1 + side, 0] = chosen[side]
                frames.state[k, STAGE] = CLOSE
        elif stage == RETURN:
            side = frames.state[k, SIDE]
            other_bound = frames.value[k, RIGHT - side]
            rest = target - split_cost - frames.value[k, BOUNDS + side]
            if np.isnan(frames.value[k, BOUNDS + 1 - side]) and other_bound < rest:
                _begin_side(frames, room, known, k, 1 - side, rest, tolerance, hashes[k + 1])
                k += frames.state[k + 1, STAGE] == ENTER
            else:
                frames.state[k, STAGE] = CLOSE
        else:
            _close(rows, frames, k, depth - k, split_cost, gap, tolerance, complete, by_threshold)
            frames.state[k, STAGE] = TAKE


@inner
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
    order, m = frames.order[k], frames.state[k, M]
    alone = leaf_loss(rows, order, m, room)
    if k > 0 or alone < frames.value[0, BEST]:
        frames.value[k, BEST] = alone
        for t in range(frames.tree.shape[2]):
            frames.tree[k, 0, t] = -1
    frames.value[k, LEAST], frames.value[k, LIMITED], frames.state[k, N_OPEN] = alone, alone, 0
    least = split_cost
    for i in range(m):
        least += rows.least[order[0, i]]
    if k > 0 and least >= min(alone, frames.value[k, BAR]) - tolerance:
        leave_out(frames, k, least)
        return
    for f in range(len(rows.rank)):
        if rows.rank[f, order[f, 0]] != rows.rank[f, order[f, m - 1]]:
            open_interval(frames, k, f, 1, m - 1, 0.0, 0.0, least)
    if scans:
        prepare(rows, order, m, prepared)


@inner
def _take(rows: Rows, frames: Frames, k: int, by_threshold: FloatArray) -> None:
    """Take the interval with the least bound, and choose the position in its middle; -1 where there is none."""
    f, lo, hi = frames.open_at[k, 0, 0], frames.open_at[k, 0, 1], frames.open_at[k, 0, 2]
    left, right, key = frames.open[k, 0, 1], frames.open[k, 0, 2], frames.open[k, 0, 0]
    remove_least(frames, k)
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
        for i in range(frames.state[k, M]):
            whole += rows.size[order[i]]
            if i < cut:
                size += rows.size[order[i]]
        # Positions beyond one with too few samples on a side have still fewer.
        if size < rows.N_min or whole - size < rows.N_min:
            small = size < rows.N_min
            frames.value[k, LEAST] = min(frames.value[k, LEAST], key)
            if k == 0:
                note(rows, frames, f, lo if small else cut, cut if small else hi, np.inf, by_threshold)
            if small and cut < hi:
                open_interval(frames, k, f, cut + 1, hi, left, right, key)
            if not small and lo < cut:
                open_interval(frames, k, f, lo, cut - 1, left, right, key)
            cut = -1
    frames.state[k, FEATURE], frames.state[k, FIRST], frames.state[k, LAST], frames.state[k, CUT] = (
        f,
        lo,
        hi,
        cut,
    )
    frames.value[k, LEFT], frames.value[k, RIGHT], frames.value[k, KEY] = left, right, key
    frames.value[k, BOUNDS], frames.value[k, BOUNDS + 1] = np.nan, np.nan


@inner
def _begin_side(
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
    f, cut, m = frames.state[k, FEATURE], frames.state[k, CUT], frames.state[k, M]
    frames.state[k, SIDE] = side
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
                frames.value[k, VALUES + side], frames.value[k, BOUNDS + side] = (
                    known.found[slot, 0],
                    known.found[slot, 1],
                )
                for t in range(known.tree.shape[1]):
                    frames.tree[k, 1 + side, t] = known.tree[slot, t]
                frames.state[k, STAGE], frames.state[child, STAGE] = RETURN, TAKE
                return
    for i in range(m):
        room.on_left[frames.order[k, f, i]] = (i < cut) == (side == 0)
    for j in range(frames.order.shape[1]):
        source, to, place = frames.order[k, j], frames.order[child, j], 0
        for i in range(m):
            to[place] = source[i]
            place += room.on_left[source[i]]
    frames.state[child, M], frames.value[child, BAR], frames.state[child, STAGE] = beyond - first, bar, ENTER


@inner
def _hand_up(frames: Frames, k: int, depth: int) -> None:
    """Give what frame k + 1 has found to the position of frame k."""
    side, child = frames.state[k, SIDE], k + 1
    frames.value[k, VALUES + side] = frames.value[child, BEST]
    frames.value[k, BOUNDS + side] = min(frames.value[child, BEST], frames.value[child, LEAST])
    for t in range(2 ** (depth - child) - 1):
        frames.tree[k, 1 + side, t] = frames.tree[child, 0, t]
    frames.state[k, STAGE] = RETURN


@inner
def _remember(frames: Frames, known: Known, k: int, code: NDArray[np.uint64]) -> None:
    """Keep what frame k + 1 has found."""
    if k == 0 or len(known.hash) == 0:
        return
    side, slot = frames.state[k, SIDE], code[0] & np.uint64(len(known.hash) - 1)
    known.hash[slot, 0], known.hash[slot, 1] = code[0], code[1]
    known.found[slot, 0], known.found[slot, 1] = (
        frames.value[k, VALUES + side],
        frames.value[k, BOUNDS + side],
    )
    for t in range(known.tree.shape[1]):
        known.tree[slot, t] = frames.tree[k, 1 + side, t]


@inner
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
    f, lo, hi, cut = (
        frames.state[k, FEATURE],
        frames.state[k, FIRST],
        frames.state[k, LAST],
        frames.state[k, CUT],
    )
    left, right = frames.value[k, LEFT], frames.value[k, RIGHT]
    order = frames.order[k, f]
    to_left, to_right = left, right
    if not np.isnan(frames.value[k, BOUNDS]):
        to_left = max(left, frames.value[k, BOUNDS])
    if not np.isnan(frames.value[k, BOUNDS + 1]):
        to_right = max(right, frames.value[k, BOUNDS + 1])
    bound = max(frames.value[k, KEY], split_cost + to_left + to_right)
    target = bar_of(frames, k, gap, tolerance, complete)
    limited = bound
    if not (np.isnan(frames.value[k, BOUNDS]) or np.isnan(frames.value[k, BOUNDS + 1])):
        value = split_cost + frames.value[k, VALUES] + frames.value[k, VALUES + 1]
        # With leaves large enough it is that, or no less than what was asked of the sides.
        limited = max(bound, min(value, target))
        if value < frames.value[k, BEST]:
            frames.value[k, BEST] = value
            tree = frames.tree[k]
            tree[0, 0] = rows.first[f] + rows.rank[f, order[cut]] - 1
            for level in range(depth - 1):
                width = 2**level
                for side in range(2):
                    for i in range(width):
                        tree[0, 2 * width - 1 + side * width + i] = tree[1 + side, width - 1 + i]
            target = bar_of(frames, k, gap, tolerance, complete)
    frames.value[k, LEAST] = min(frames.value[k, LEAST], bound)
    frames.value[k, LIMITED] = min(frames.value[k, LIMITED], limited)
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
        leave_out(frames, k, bound - skipped)
    if k == 0:
        note(rows, frames, f, cut, cut, limited, by_threshold)
        note(rows, frames, f, first, last, bound - skipped, by_threshold)
    for side in range(2):
        a, b = (lo, first - 1) if side == 0 else (last + 1, hi)
        one, other = (left, to_right) if side == 0 else (to_left, right)
        key = max(frames.value[k, KEY], split_cost + one + other)
        if a > b:
            continue
        if key < target:
            open_interval(frames, k, f, a, b, one, other, key)
        else:
            leave_out(frames, k, key)
            if k == 0:
                note(rows, frames, f, a, b, key, by_threshold)
