"""What the squared loss is to a search by covers: tables of doubles, and leaves and walks on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.walks import TWO_WIDE, WIDE_LANES, choose_slots, walk_squared


class SquaredSide(NamedTuple):
    """Rows of a side in the order of every feature, as walks read them: no others, as each costs far more than a copy.

    Attributes
    ----------
    rank, walk, penalty
        As of the tables; both sides share the memory.
    slot
        (N,) workspace.
    span
        (2,) first slot of the side, and how many it has.
    """

    rank: NDArray[Any]
    walk: FloatArray
    penalty: NDArray[np.int16]
    slot: IntArray
    span: IntArray


class SquaredTables(NamedTuple):
    """Rows in the order of every feature, as walks read them.

    Attributes
    ----------
    rank
        (p, p, N) ``rank[f, g]``: ranks in f of the rows in the slots of the order of g.
    walk
        (2p + 1, N) weights w of the rows in slots by feature, then w y, then w y^2 in the order of the first feature.
    penalty
        (p, N) not 0 between rows of equal value.
    below
        (p, U + 1, 3) sums of w, w y and w y^2 of the rows below each rank.
    weight_below
        (p, U + 1) number of these rows.
    least
        (1,) half of the least weight of a row.
    """

    rank: NDArray[Any]
    walk: FloatArray
    penalty: NDArray[np.int16]
    below: FloatArray
    weight_below: IntArray
    least: FloatArray
    use: NDArray[np.uint8]
    group: IntArray


@kernel
def restrict(tables: SquaredTables, sides: tuple[SquaredSide, SquaredSide], f: int, t: int) -> None:
    """Write the rows below a threshold into one part, and those from it on into the other."""
    n, last = tables.weight_below[f], tables.weight_below.shape[1] - 1
    slots = int(n[t]) + TWO_WIDE - 1
    sides[0].span[0], sides[0].span[1] = 0, slots - slots % TWO_WIDE
    slots = int(n[last] - n[t]) + TWO_WIDE - 1
    sides[1].span[0], sides[1].span[1] = sides[0].span[1], slots - slots % TWO_WIDE
    _copy(tables, sides[0], f, 0, t)
    _copy(tables, sides[1], f, t, last)


@kernel
def _copy(tables: SquaredTables, part: SquaredSide, f: int, first: int, beyond: int) -> None:
    """Write the rows with ranks in an interval into a part."""
    p, n = tables.rank.shape[0], int(tables.weight_below[0, tables.weight_below.shape[1] - 1])
    begin, N, steps = part.span[0], part.span[1], tables.walk.shape[1] // WIDE_LANES
    for g in range(p):
        slots, penalty = part.slot, part.penalty[g, begin : begin + N]
        for j in range(N):
            penalty[j] = 1
        choose_slots(
            tables.rank[f, g], tables.rank[g, g], first, beyond, n, WIDE_LANES, steps, slots, N, penalty
        )
        for h in range(p):
            old, copied_ranks = tables.rank[h, g], part.rank[h, g, begin : begin + N]
            for j in range(N):
                copied_ranks[j] = old[max(0, slots[j])]
        for plane in range(g, 2 * p + 1, p):
            if plane < 2 * p or g == 0:
                values, copied = tables.walk[plane], part.walk[plane, begin : begin + N]
                for j in range(N):
                    copied[j] = values[slots[j]] if slots[j] >= 0 else 0.0


@kernel
def leaf_below(tables: SquaredTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    w, s, q = tables.below[f, t, 0], tables.below[f, t, 1], tables.below[f, t, 2]
    if right:
        last = tables.below.shape[1] - 1
        w, s, q = tables.below[f, last, 0] - w, tables.below[f, last, 1] - s, tables.below[f, last, 2] - q
    return max(0.0, q - s * s / w) if w > tables.least[0] else 0.0


@kernel
def pair(
    tables: SquaredTables, rows: SquaredSide, f: int, below: int, first: int, cost: float,
    enough: float, totals: FloatArray, out: FloatArray,  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    p, begin, N = tables.rank.shape[0], rows.span[0], rows.span[1]
    end = begin + N
    ranks, squares = rows.rank[f, 0, begin:end], rows.walk[2 * p, begin:end]
    left, right, gain_left, gain_right = 0.0, 0.0, 0.0, 0.0
    for i in range(N):
        left += squares[i] if ranks[i] < below else 0.0
        right += squares[i] if ranks[i] >= first else 0.0
    any_left, any_right = False, False
    for g in range(p):
        on_left = usable(tables.use, tables.group, out, 0, g)
        on_right = usable(tables.use, tables.group, out, 1, g)
        if not (on_left or on_right) and g > 0:
            continue
        walk_squared(
            rows.rank[f, g, begin:end], rows.walk[g, begin:end], rows.walk[p + g, begin:end],
            rows.penalty[g, begin:end], N // TWO_WIDE, below, first, tables.least[0], out,
        )  # fmt: skip
        if on_left:
            any_left, gain_left = True, max(gain_left, out[2])
        if on_right:
            any_right, gain_right = True, max(gain_right, out[5])
    # Without weight on a side nothing is lost there.
    left = max(0.0, left - out[1] * out[1] / out[0]) if out[0] > tables.least[0] else 0.0
    right = max(0.0, right - out[4] * out[4] / out[3]) if out[3] > tables.least[0] else 0.0
    leaf_left, leaf_right = left, right
    if has_to_split(tables.use, out, 0):
        leaf_left = np.inf if not any_left else leaf_left + cost
    if has_to_split(tables.use, out, 1):
        leaf_right = np.inf if not any_right else leaf_right + cost
    return (
        min(leaf_left, cost + max(0.0, left - gain_left)) if any_left else leaf_left,
        min(leaf_right, cost + max(0.0, right - gain_right)) if any_right else leaf_right,
    )


implement(SquaredTables, restrict, leaf_below, pair)
