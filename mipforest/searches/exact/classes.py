"""What numbers of errors are to a search by covers: tables of whole numbers in 16 bits, leaves and walks on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.exact.walks import (
    LANES,
    sums_of_both,
    walk_both,
    walk_classes,
    weight_of_class,
)

#: Rank above all others.
_ABOVE = 65535


class Tables(NamedTuple):
    """Rows in the order of every feature, as walks read them.

    Attributes
    ----------
    rank
        (p, p, N) ``rank[g, f]``: ranks in f of the rows in the slots of the order of g.
    walk
        (p, N) signed weights of the rows in slots, of two classes; labels of more.
    weight, penalty
        (p, N) weights, and what is added between rows of equal value.
    below
        (p, U + 1, K) weight of each class among the rows below each rank.
    weight_below
        (p, U + 1) weight of all classes.
    """

    rank: NDArray[np.uint16]
    walk: NDArray[np.int16]
    weight: NDArray[np.int16]
    penalty: NDArray[np.int16]
    below: IntArray
    weight_below: IntArray


@kernel
def put(tables: Tables, rows: IntArray, row: int, g: int, slot: int, t: int) -> None:
    """Write a row, of a class and a weight, into a slot of the order of g, and into the sums below rank t."""
    k, w = rows[row, 0], rows[row, 1]
    tables.weight[g, slot] = w
    tables.walk[g, slot] = k if tables.below.shape[2] > 2 else (w if k == 0 else -w)
    tables.below[g, t, k] += w
    tables.weight_below[g, t] += w


@kernel
def restrict(tables: Tables, sides: NDArray[np.int16], f: int, t: int) -> None:
    """Write the walks of the rows below a threshold, and of those from it on."""
    p, N = tables.walk.shape
    outside = np.int16(0 if tables.below.shape[2] == 2 else -1)
    for g in range(p):
        ranks, walk, on_left, on_right = tables.rank[g, f], tables.walk[g], sides[0, g], sides[1, g]
        for i in range(N):
            is_left = ranks[i] < t
            on_left[i] = walk[i] if is_left else outside
            on_right[i] = outside if is_left else walk[i]


@kernel
def leaf_below(tables: Tables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    last = tables.below.shape[1] - 1
    total, most = 0, 0
    for k in range(tables.below.shape[2]):
        w = tables.below[f, t, k]
        if right:
            w = tables.below[f, last, k] - w
        total += w
        most = max(most, w)
    return float(total - most)


@kernel
def reach(tables: Tables, excess: float) -> float:  # noqa: ARG001
    """Return the weight of rows that may change sides before a loss falls by more than a value."""
    return excess


@kernel
def pair(
    tables: Tables,
    rows: NDArray[np.int16],
    f: int,
    below: int,
    first: int,
    cost: float,
    totals: IntArray,
    out: IntArray,
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    if tables.below.shape[2] == 2:
        return _pair_of_two_classes(tables, rows, f, below, first, cost, out)
    left = _one_of_classes(tables, rows, f, 0, below, cost, totals, out)
    return left, _one_of_classes(tables, rows, f, first, _ABOVE, cost, totals, out)


@kernel
def _pair_of_two_classes(
    tables: Tables, rows: NDArray[np.int16], f: int, below: int, first: int, cost: float, out: IntArray
) -> tuple[float, float]:
    p, steps = rows.shape[0], rows.shape[1] // LANES
    sums_of_both(tables.rank[0, f], rows[0], steps, below, first, out)
    n_left, n_right = (out[1] + out[0]) // 2, (out[3] + out[2]) // 2  # of the class that walks upwards
    o_left, o_right = out[1] - n_left, out[3] - n_right
    high_left, low_left, high_right, low_right = 0, 0, 0, 0
    for g in range(p):
        walk_both(tables.rank[g, f], rows[g], tables.penalty[g], steps, below, first, out)
        high_left, low_left = max(high_left, out[0]), min(low_left, out[1])
        high_right, low_right = max(high_right, out[2]), min(low_right, out[3])
    left = min(float(min(n_left, o_left)), cost + float(min(n_left - high_left, o_left + low_left)))
    right = min(float(min(n_right, o_right)), cost + float(min(n_right - high_right, o_right + low_right)))
    return left, right


@kernel
def _one_of_classes(
    tables: Tables,
    rows: NDArray[np.int16],
    f: int,
    first: int,
    beyond: int,
    cost: float,
    totals: IntArray,
    out: IntArray,
) -> float:
    """Return the least loss of at most one split for the rows of a side with ranks in an interval.

    Pairs of classes are walked by falling weight: no pair is right for more than all of its two classes.
    """
    p, steps, K = rows.shape[0], rows.shape[1] // LANES, len(totals)
    total, best = 0, 0
    for k in range(K):
        totals[k] = weight_of_class(tables.rank[0, f], rows[0], tables.weight[0], steps, first, beyond, k)
        total += totals[k]
        best = max(best, totals[k])
    leaf = float(total - best)
    walked = 2**62
    while True:
        # The next pair in the order of its weight; pairs of equal weight by number.
        up, down, most, number = -1, -1, -1, 0
        for i in range(K):
            for j in range(i + 1, K):
                size = (totals[i] + totals[j]) * K * K + (K * K - 1 - (i * K + j))
                if size < walked and size > most:
                    up, down, most, number = i, j, size, totals[i] + totals[j]
        if up < 0 or number <= best:
            break
        walked = most
        for g in range(p):
            walk_classes(
                tables.rank[g, f],
                rows[g],
                tables.weight[g],
                tables.penalty[g],
                steps,
                first,
                beyond,
                up,
                down,
                out,
            )
            best = max(best, totals[down] + out[0], totals[up] - out[1])
            if best >= number:
                break
    return min(leaf, cost + float(total - best))


implement(Tables, put, restrict, leaf_below, reach, pair)
