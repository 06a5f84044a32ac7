"""What any loss is to a search by covers: tables of the whole numbers of a certificate, read row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.leaf_sums import LABELS, loss_of_sums

#: More than any loss, for leaves that are too small.
NEVER = 1 << 60


class WholeTables(NamedTuple):
    """Rows in whole numbers of a certificate, for losses that vector walks do not take.

    Attributes
    ----------
    rank, order
        (p, m) ranks of the rows, and rows in the order of each feature.
    table, size
        (m, M) and (m,) as of :class:`~mipforest.certificates.losses.Losses`.
    kind, scale
        (1,) kind of a loss by sums (:mod:`mipforest.searches.leaf_sums`), ``LABELS`` and the number of targets of a
        table over predictions; and (2,) what makes sums of weights and of targets those of the loss.
    least
        (1,) least number of samples in a leaf, of the next pair; 0 for any.
    empties
        (1,) 1 where leaves may be empty as well.
    use, group
        What nodes may split on: see :mod:`mipforest.searches.exact.domains`.
    """

    rank: Int32Array
    order: Int32Array
    table: IntArray
    size: IntArray
    kind: IntArray
    scale: FloatArray
    least: IntArray
    empties: IntArray
    use: NDArray[np.uint8]
    group: IntArray


class WholeRows(NamedTuple):
    """Some rows: (p, m) in the order of each feature, and (1,) how many."""

    order: Int32Array
    number: IntArray


@kernel
def restrict(tables: WholeTables, sides: tuple[WholeRows, WholeRows], f: int, t: int) -> None:
    """Write the rows below a threshold, and those from it on."""
    for g in range(tables.order.shape[0]):
        on_left, on_right = 0, 0
        for i in range(tables.order.shape[1]):
            row = tables.order[g, i]
            if tables.rank[f, row] < t:
                sides[0].order[g, on_left] = row
                on_left += 1
            else:
                sides[1].order[g, on_right] = row
                on_right += 1
        sides[0].number[0], sides[1].number[0] = on_left, on_right


@kernel
def pair(
    tables: WholeTables,
    rows: WholeRows,
    f: int,
    below: int,
    first: int,
    cost: float,
    enough: float,  # noqa: ARG001
    totals: IntArray,
    out: IntArray,
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    ``totals`` (4, M) and ``out`` (4,) are workspace: sums and sizes of both sides, and of their rows up to a value.
    """
    p, m, M, least = len(tables.rank), rows.number[0], tables.table.shape[1], tables.least[0]
    totals[:, :] = 0
    out[:4] = 0
    for i in range(m):
        row = rows.order[0, i]
        rank = tables.rank[f, row]
        if below <= rank < first:
            continue
        side = 0 if rank < below else 1
        out[side] += tables.size[row]
        for k in range(M):
            totals[side, k] += tables.table[row, k]
    any_size = tables.empties[0] != 0
    left = _leaf(tables, totals, 0) if out[0] >= least or (any_size and out[0] == 0) else float(NEVER)
    right = _leaf(tables, totals, 1) if out[1] >= least or (any_size and out[1] == 0) else float(NEVER)
    # A split that parts no row is one of a node that has to split.
    none_left, none_right = left + cost, right + cost
    must_left, must_right = has_to_split(tables.use, out, 0), has_to_split(tables.use, out, 1)
    if must_left:
        left = float(NEVER)
    if must_right:
        right = float(NEVER)
    for g in range(p):
        on_left = usable(tables.use, tables.group, out, 0, g)
        on_right = usable(tables.use, tables.group, out, 1, g)
        if not (on_left or on_right):
            continue
        if must_left and on_left and _parts_none(tables, rows, f, g, 0, below):
            left = min(left, none_left)
        if must_right and on_right and _parts_none(tables, rows, f, g, first, 2**31 - 1):
            right = min(right, none_right)
        totals[2:, :] = 0
        out[2:4] = 0
        for i in range(m - 1):
            row = rows.order[g, i]
            rank = tables.rank[f, row]
            if rank < below or rank >= first:
                side = 0 if rank < below else 1
                out[2 + side] += tables.size[row]
                for k in range(M):
                    totals[2 + side, k] += tables.table[row, k]
            if tables.rank[g, row] == tables.rank[g, rows.order[g, i + 1]]:
                continue
            if on_left and min(out[2], out[0] - out[2]) >= least:
                left = min(left, cost + _leaves(tables, totals, 0))
            if on_right and min(out[3], out[1] - out[3]) >= least:
                right = min(right, cost + _leaves(tables, totals, 1))
    return left, right


@kernel
def _parts_none(tables: WholeTables, rows: WholeRows, f: int, g: int, low: int, high: int) -> bool:
    """Return whether some threshold of g parts none of the rows of a side whose ranks in f are in an interval."""
    last = tables.rank[g, tables.order[g, tables.order.shape[1] - 1]]
    least, most = last, 0
    for i in range(rows.number[0]):
        row = rows.order[g, i]
        if low <= tables.rank[f, row] < high:
            least, most = min(least, tables.rank[g, row]), max(most, tables.rank[g, row])
    return bool(last > 0 and (least > 0 or most < last))


@kernel
def _lost(tables: WholeTables, totals: IntArray, at: int, less: int, share: int, q: float) -> float:
    """Return the loss of a leaf by its sums; without weight, nothing is saved.

    These are the sums ``totals[at]`` less ``share``, 0 or 1, times ``totals[less]``; ``q`` takes the place of the last.
    """
    w = float(totals[at, 0] - share * totals[less, 0])
    if w <= 0.0:
        return q
    u = float(totals[at, 1] - share * totals[less, 1])
    if tables.table.shape[1] == 3:
        return loss_of_sums(tables.kind[0], w * tables.scale[0], u * tables.scale[1], q)
    squares = u * u
    for k in range(2, tables.table.shape[1] - 1):
        u = float(totals[at, k] - share * totals[less, k])
        squares += u * u
    return float(max(0.0, q - squares / (w * tables.scale[0])))


@kernel
def _leaf(tables: WholeTables, totals: IntArray, side: int) -> float:
    """Return the loss of one leaf for a side."""
    M, loss = tables.table.shape[1], 0.0
    if tables.kind[0] < LABELS:
        return _lost(tables, totals, side, side, 0, float(totals[side, M - 1]))
    K = M // (tables.kind[0] - LABELS)
    for first in range(0, M, K):
        least = float(totals[side, first])
        for k in range(first + 1, first + K):
            least = min(least, float(totals[side, k]))
        loss += least
    return loss


@kernel
def _leaves(tables: WholeTables, totals: IntArray, side: int) -> float:
    """Return the loss of two leaves, of the rows of a side up to a value and of the others."""
    M, loss, to = tables.table.shape[1], 0.0, 2 + side
    if tables.kind[0] < LABELS:
        # What samples lose beside the centre is rounded down one by one: only the sum of both is above what is saved.
        q = float(totals[side, M - 1])
        return max(0.0, _lost(tables, totals, to, to, 0, q) + _lost(tables, totals, side, to, 1, q) - q)
    K = M // (tables.kind[0] - LABELS)
    for first in range(0, M, K):
        low, other = float(totals[to, first]), float(totals[side, first] - totals[to, first])
        for k in range(first + 1, first + K):
            low = min(low, float(totals[to, k]))
            other = min(other, float(totals[side, k] - totals[to, k]))
        loss += low + other
    return loss


implement(WholeTables, restrict, pair)
