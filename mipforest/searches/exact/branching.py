r"""The exact search itself: best-first over intervals of thresholds, at every node of a tree, without recursion.

A **frame** searches for the best tree of depth at most d on some rows S: :math:`W_d(S)`. It opens one interval of
positions per feature, evaluates the position in the middle of the interval with the least bound, and puts the two parts
back. Frame k + 1 evaluates the sides of a position of frame k; the last one has depth two, where both sides are scanned
at once (:mod:`mipforest.searches.exact.losses`). A frame ends when no interval may hold less than its best tree, or
less than the **bar**, from which on the frame above has no use for it. Its state is a heap of open intervals, and what
it has left out.

**Bounds.** Fitted to fewer rows, the best tree of all has no more loss and no more splits than before: W falls with S.
(Without a least size of leaves; bounds are computed without it.) So of a position between a and b

.. math::  V \ge \alpha + W_{d-1}(\text{left of } a) + W_{d-1}(\text{right of } b).

For classes, moving rows to the other side costs at most the most that they can add to a loss: close to a bad position
all positions are bad.

**Threads.** The root can hand its positions to frames of other memory (``ONE``): it takes some (``TAKEN``), and closes
them in that order (``CLOSED``, ``OPENED``) once all are evaluated, so it does not matter which was first.

Sets of rows that more than one path of splits reaches are kept with value, bound and tree in a table, by a hash of 128
bits: in a table of a million sets the chance that any two of them are confused is below 1e-26.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.exact.losses import Int32Array, Prepared, Room, Rows, best_pair, leaf_loss, prepare

#: What a frame does next: begin; take an interval; look at a side that was searched; close the position; evaluate it.
ENTER, TAKE, RETURN, CLOSE, EVALUATE = 0, 1, 2, 3, 4

#: In place of the root's threshold: the best tree is the one that was known at the start.
GIVEN = -2

#: Columns of :attr:`Frames.state`: number of rows, what to do next, number of open intervals; feature, first, last and
#: evaluated position of the interval at work (-1: none); the side that is searched.
M, STAGE, N_OPEN, FEATURE, FIRST, LAST, CUT, SIDE = range(8)

#: Columns of :attr:`Frames.value`: value from which on nothing is asked, value of the best tree, least bound of what
#: was left out, without the least size of leaves and with it; bound of the interval at work, and bounds of the sides
#: left of its first and right of its last position; values and bounds of both sides of the position, NaN while unknown.
BAR, BEST, LEAST, LIMITED, KEY, LEFT, RIGHT, VALUES, BOUNDS = 0, 1, 2, 3, 4, 5, 6, 7, 9


class Frames(NamedTuple):
    """State of a search; frame k searches for trees of depth D - k.

    Attributes
    ----------
    order
        (F, p, n) rows in the order of each feature (and of the target, for the absolute loss).
    state, value
        (F, 8) and (F, 11): see the names of their columns.
    tree
        (F, 3, T) thresholds of the best tree, and of the trees of both sides of the position; -1 where a node does not
        split.
    open, open_at
        Heap of the open intervals: (F, N, 3) bound, and those of the sides left of the first and right of the last
        position; (F, N, 3) feature, first and last position.
    """

    order: Int32Array
    state: IntArray
    value: FloatArray
    tree: Int32Array
    open: FloatArray
    open_at: IntArray
    hash: NDArray[np.uint64]


class Known(NamedTuple):
    """Sets of rows that were searched: slot by hash, overwritten.

    Attributes
    ----------
    hash, found, tree
        (C, 2), (C, 2) and (C, T) hash, value and bound, and tree of each slot; C is a power of two, or
        0 to keep nothing.
    """

    hash: NDArray[np.uint64]
    found: FloatArray
    tree: Int32Array


@kernel
def bar_of(frames: Frames, k: int, gap: float, tolerance: float, complete: bool) -> float:
    """Return the bound from which on a frame has no use for an interval."""
    best = frames.value[k, BEST]
    if k > 0:
        return float(min(best, frames.value[k, BAR]) - tolerance)
    return np.inf if complete else float(best - gap * abs(best) - tolerance)


@kernel
def write_report(frames: Frames, report: FloatArray) -> None:
    """Write the value of the best tree and the bound, where the root has nothing at work."""
    bound = min(frames.value[0, BEST], frames.value[0, LIMITED])
    if frames.state[0, N_OPEN] > 0:
        bound = min(bound, frames.open[0, 0, 0])
    report[0], report[1] = frames.value[0, BEST], bound


@kernel
def leave_out(frames: Frames, k: int, bound: float) -> None:
    """Note the bound of what a frame leaves out."""
    frames.value[k, LEAST] = min(frames.value[k, LEAST], bound)
    frames.value[k, LIMITED] = min(frames.value[k, LIMITED], bound)


# ---------------------------------------------------------------------- sides of a position


@kernel
def begin_side(
    rows: Rows,
    frames: Frames,
    room: Room,
    known: Known,
    own: Known,
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
            code[0] ^= rows.code[frames.order[k, f, i], 0]
            code[1] ^= rows.code[frames.order[k, f, i], 1]
        if _take_known(frames, own, k, bar, tolerance, code) or _take_known(
            frames, known, k, bar, tolerance, code
        ):
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


@kernel
def _take_known(
    frames: Frames, known: Known, k: int, bar: float, tolerance: float, code: NDArray[np.uint64]
) -> bool:
    """Give a side what is known of its rows; return whether that will do."""
    slot, side = code[0] & np.uint64(len(known.hash) - 1), frames.state[k, SIDE]
    if known.hash[slot, 0] != code[0] or known.hash[slot, 1] != code[1]:
        return False
    value, bound = known.found[slot]
    if value > bound + 4 * tolerance and bound < bar - tolerance:
        return False
    frames.value[k, VALUES + side], frames.value[k, BOUNDS + side] = value, bound
    for t in range(known.tree.shape[1]):
        frames.tree[k, 1 + side, t] = known.tree[slot, t]
    return True


@kernel
def hand_up(frames: Frames, k: int, depth: int) -> None:
    """Give what frame k + 1 has found to the position of frame k."""
    side, child = frames.state[k, SIDE], k + 1
    frames.value[k, VALUES + side] = frames.value[child, BEST]
    frames.value[k, BOUNDS + side] = min(frames.value[child, BEST], frames.value[child, LEAST])
    for t in range(2 ** (depth - child) - 1):
        frames.tree[k, 1 + side, t] = frames.tree[child, 0, t]
    frames.state[k, STAGE] = RETURN


@kernel
def remember(frames: Frames, known: Known, k: int, code: NDArray[np.uint64]) -> None:
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


# ---------------------------------------------------------------------- bounds by the root's threshold


@kernel
def note(
    rows: Rows, frames: Frames, f: int, lo: int, hi: int, bound: float, by_threshold: FloatArray
) -> None:
    """Raise the bounds of the root's thresholds at some positions of a feature."""
    order, rank = frames.order[0, f], rows.rank[f]
    for i in range(lo, hi + 1):
        if rank[order[i]] != rank[order[i - 1]]:
            number = rows.first[f] + rank[order[i]] - 1
            by_threshold[number] = max(by_threshold[number], bound)


@kernel
def note_open(rows: Rows, frames: Frames, by_threshold: FloatArray) -> None:
    """Raise the bounds of the thresholds in the root's open intervals."""
    for i in range(frames.state[0, N_OPEN]):
        f, lo, hi = frames.open_at[0, i, 0], frames.open_at[0, i, 1], frames.open_at[0, i, 2]
        note(rows, frames, f, lo, hi, frames.open[0, i, 0], by_threshold)


# ---------------------------------------------------------------------- heap of open intervals


@kernel
def open_interval(
    frames: Frames, k: int, f: int, lo: int, hi: int, left: float, right: float, key: float
) -> None:
    """Add an interval to the heap of a frame."""
    i = frames.state[k, N_OPEN]
    frames.state[k, N_OPEN] += 1
    values, at = frames.open[k], frames.open_at[k]
    values[i, 0], values[i, 1], values[i, 2] = key, left, right
    at[i, 0], at[i, 1], at[i, 2] = f, lo, hi
    while i > 0 and values[i, 0] < values[(i - 1) // 2, 0]:
        _swap(values, at, i, (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def remove_least(frames: Frames, k: int) -> None:
    """Remove the first interval of a frame's heap."""
    frames.state[k, N_OPEN] -= 1
    values, at = frames.open[k], frames.open_at[k]
    n, i = frames.state[k, N_OPEN], 0
    _swap(values, at, 0, n)
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and values[child + 1, 0] < values[child, 0]:
            child += 1
        if values[i, 0] <= values[child, 0]:
            break
        _swap(values, at, i, child)
        i = child


@kernel
def _swap(values: FloatArray, at: IntArray, i: int, j: int) -> None:
    for v in range(3):
        values[i, v], values[j, v] = values[j, v], values[i, v]
        at[i, v], at[j, v] = at[j, v], at[i, v]


#: What a search is to do: all there is; take a position of the root; evaluate it; close it; or open it again.
ALL, TAKEN, ONE, CLOSED, OPENED = 0, 1, 2, 3, 4

#: How a search has ended: stopped; with nothing left to do; with what it was to do, or with enough nodes.
STOPPED, ENDED, PAUSED = 0, 1, 2


@entry
def search(
    rows: Rows,
    frames: Frames,
    prepared: Prepared,
    room: Room,
    known: Known,
    own: Known,
    depth: int,
    split_cost: float,
    gap: float,
    tolerance: float,
    most_nodes: int,
    pause_after: int,
    task: int,
    complete: bool,
    stop: IntArray,
    report: FloatArray,
    by_threshold: FloatArray,
) -> int:
    """Search for the best tree on all rows.

    Parameters
    ----------
    rows, frames, prepared, room, known
        The rows, and memory; the first frame holds all rows in their orders, and the value of a known tree.
    own
        Where what is found is kept, beside ``known``, or the same.
    depth, split_cost
        Most splits on a path, and cost of a split.
    gap
        Relative gap within which the best tree will do.
    tolerance
        Values closer than this are the same.
    most_nodes
        Positions of the last frame to evaluate.
    pause_after
        Positions after which the search pauses at the root, to be gone on with.
    task
        :data:`ALL`, or one step with a position of the root.
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
    int
        :data:`STOPPED`, :data:`ENDED` or :data:`PAUSED`.
    """
    last = len(frames.state) - 1
    k, nodes = last - last, int(report[2])
    if task == OPENED:
        _open_again(rows, frames, by_threshold)
        return PAUSED
    while True:
        stage = frames.state[k, STAGE]
        target = bar_of(frames, k, gap, tolerance, complete)
        if stage == ENTER:
            _enter(rows, frames, prepared, room, k, k == last, split_cost, tolerance)
            frames.state[k, STAGE] = TAKE
        elif stage == TAKE:
            if k == 0:
                write_report(frames, report)
            if frames.state[k, N_OPEN] == 0 or frames.open[k, 0, 0] >= target:
                if frames.state[k, N_OPEN] > 0:
                    leave_out(frames, k, frames.open[k, 0, 0])
                if k == 0:
                    note_open(rows, frames, by_threshold)
                    return ENDED
                k -= 1
                hand_up(frames, k, depth)
                remember(frames, own, k, frames.hash[k + 1])
                continue
            if stop[0] != 0 or nodes >= most_nodes:
                if k > 0 and task == ALL:
                    _open_again(rows, frames, by_threshold)
                note_open(rows, frames, by_threshold)
                write_report(frames, report)
                return STOPPED
            if k == 0 and nodes >= pause_after and task == ALL:
                return PAUSED
            _take(rows, frames, k, by_threshold)
            if frames.state[k, CUT] >= 0:
                frames.state[k, STAGE] = EVALUATE
                if task == TAKEN:
                    return PAUSED
        elif stage == EVALUATE and k < last:
            cut, m = frames.state[k, CUT], frames.state[k, M]
            side = 0 if 2 * cut <= m else 1
            bar = target - split_cost - frames.value[k, RIGHT - side]
            begin_side(rows, frames, room, known, own, k, side, bar, tolerance, frames.hash[k + 1])
            k += frames.state[k + 1, STAGE] == ENTER
        elif stage == EVALUATE:
            nodes += 1
            report[2] = nodes
            f, cut, m = frames.state[k, FEATURE], frames.state[k, CUT], frames.state[k, M]
            values = frames.value[k, VALUES : VALUES + 2]
            bounds = frames.value[k, BOUNDS : BOUNDS + 2]
            best_pair(
                rows,
                frames.order[k],
                m,
                cut,
                f,
                split_cost,
                tolerance,
                prepared,
                room,
                values,
                bounds,
                depth > 1,
            )
            if depth > 1:
                for side in range(2):
                    frames.tree[k, 1 + side, 0] = room.chosen[side]
            frames.state[k, STAGE] = CLOSE
        elif stage == RETURN:
            side = frames.state[k, SIDE]
            other_bound = frames.value[k, RIGHT - side]
            rest = target - split_cost - frames.value[k, BOUNDS + side]
            if np.isnan(frames.value[k, BOUNDS + 1 - side]) and other_bound < rest:
                begin_side(rows, frames, room, known, own, k, 1 - side, rest, tolerance, frames.hash[k + 1])
                k += frames.state[k + 1, STAGE] == ENTER
            else:
                frames.state[k, STAGE] = CLOSE
        elif k == 0 and task == ONE:
            return PAUSED
        else:
            _close(rows, frames, k, depth - k, split_cost, gap, tolerance, complete, by_threshold)
            frames.state[k, STAGE] = TAKE
            if task == CLOSED:
                return PAUSED


@kernel
def _open_again(rows: Rows, frames: Frames, by_threshold: FloatArray) -> None:
    """Leave the root's interval at work open."""
    leave_out(frames, 0, frames.value[0, KEY])
    f, lo, hi = frames.state[0, FEATURE], frames.state[0, FIRST], frames.state[0, LAST]
    note(rows, frames, f, lo, hi, frames.value[0, KEY], by_threshold)


@kernel
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
        prepare(rows, order, m, prepared, room)


@kernel
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


@kernel
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
