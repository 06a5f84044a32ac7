"""State of an exact search: frames with their heaps of open intervals, and what they have left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel
from mipforest.searches.exact.losses import Int32Array, Room, Rows

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
