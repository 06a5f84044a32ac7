"""The best split of each of two sets of samples at once: what the exact search does most.

A position of a frame sends its samples left or right. Both sides then need their best single split over all features.
What is summed over the samples of the smaller side is written down by **cell**, that is by distinct value of a feature;
that of the other side is the sums of all less these. So one pass over the cells of a feature gives its splits of both
sides, and the work is that of a quarter of the samples and of the distinct values.

A leaf of fewer than ``N_min`` samples is not allowed, but bounds for larger sets of samples do without this limit: with
more samples a split may be allowed that is not here. So every scan returns both values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import glue, kernel
from mipforest.searches.exact.losses import (
    ABSOLUTE,
    CLASSES,
    COUNTS,
    SQUARED,
    TWO_CLASSES,
    Int32Array,
    Prepared,
    Room,
    Rows,
    loss_of,
    losses_of_rest,
    median_loss,
)


@kernel
def prepare(rows: Rows, order: Int32Array, m: int, prepared: Prepared, room: Room) -> None:
    """Compute what the scans of the rows ``order[:, :m]`` share."""
    S = prepared.sums.shape[1]
    total = room.totals[2]
    for f in range(len(rows.rank)):
        c, size, before, rank, sums = -1, 0, -1, rows.rank[f], prepared.sums[f]
        for v in range(S):
            total[v] = 0.0
        for i in range(m):
            row = order[f, i]
            c += rank[row] != before
            before = rank[row]
            prepared.cell[row, f] = c
            for v in range(S):
                total[v] += rows.value[row, v]
                sums[v, c] = total[v]
            size += rows.size[row]
            prepared.sizes[f, c] = size
        prepared.cells[f] = c + 1
    for v in range(len(prepared.total)):
        prepared.total[v] = 0.0
    for i in range(m):
        for v in range(len(prepared.total)):
            prepared.total[v] += rows.value[order[0, i], v]


@kernel
def best_pair(
    rows: Rows,
    order: Int32Array,
    m: int,
    cut: int,
    feature: int,
    split_cost: float,
    tolerance: float,
    prepared: Prepared,
    room: Room,
    values: FloatArray,
    bounds: FloatArray,
    splits: bool,
) -> None:
    """Find the best subtrees of depth at most one of both sides of a position.

    Parameters
    ----------
    rows, order, m
        The frame's rows, in the order of each feature.
    cut, feature
        The first ``cut`` rows in the order of this feature are the left side.
    split_cost, tolerance
        Cost of a split; a split that gains no more than the tolerance may be none but for rounding.
    prepared
        From :func:`prepare`.
    room
        Memory to use; the thresholds stand in ``room.chosen``.
    values, bounds
        (2,) each, written here: the least cost with leaves large enough, and without that limit.
    splits
        Whether the sides may split; otherwise each is one leaf.
    """
    kind, p, V = rows.kind, len(rows.rank), rows.value.shape[1]
    sized = kind != TWO_CLASSES and kind != COUNTS and not (kind == SQUARED and rows.whole)
    total, sizes, gain, chosen = room.totals, room.sizes, room.gain, room.chosen
    for side in range(2):
        sizes[side] = 0
        for v in range(V):
            total[side, v] = 0.0
    small, first, beyond = 0, 0, cut
    if 2 * cut > m:
        small, first, beyond = 1, cut, m
    for i in range(first, beyond):
        row = order[feature, i]
        sizes[small] += rows.size[row]
        for v in range(V):
            total[small, v] += rows.value[row, v]
    sizes[1 - small] = prepared.sizes[0, prepared.cells[0] - 1] - sizes[small]
    for v in range(V):
        total[1 - small, v] = prepared.total[v] - total[small, v]
    if kind == ABSOLUTE:
        for i in range(m):
            room.on_left[order[feature, i]] = i < cut
        bounds[0] = median_loss(rows, order[-1], m, room, 1, total[0])
        bounds[1] = median_loss(rows, order[-1], m, room, 0, total[1])
    else:
        bounds[0], bounds[1] = loss_of(kind, total[0]), loss_of(kind, total[1])
    for side in range(2):
        chosen[side] = -1
        values[side] = bounds[side] if sizes[side] >= rows.N_min else np.inf
    if not splits or (bounds[0] <= split_cost and bounds[1] <= split_cost and rows.N_min == 1):
        return
    _fill(rows, order[feature], first, beyond, prepared, room, sized)
    for side in range(2):
        gain[side, 0] = gain[side, 1] = -np.inf
    if small:
        for v in range(V):
            total[0, v], total[1, v] = total[1, v], total[0, v]
        sizes[0], sizes[1] = sizes[1], sizes[0]
    for f in range(p):
        if prepared.cells[f] == 1:
            continue
        before, before_other = gain[0, 1], gain[1, 1]
        if kind == TWO_CLASSES:
            _scan_two(prepared, f, room)
        elif kind == COUNTS:
            _scan_counts(prepared, f, room)
        elif kind == CLASSES:
            _scan_classes(rows.N_min, prepared, f, room)
        elif kind == SQUARED and rows.whole:
            _scan_whole(prepared, f, room)
        elif kind == SQUARED:
            _scan_squared(rows.N_min, prepared, f, room)
        else:
            _scan_absolute(rows, order, m, prepared, f, small, room)
        if gain[0, 1] > before:
            room.best_at[0, 0], room.best_at[0, 1] = f, room.at[0]
        if gain[1, 1] > before_other:
            room.best_at[1, 0], room.best_at[1, 1] = f, room.at[1]
    for which in range(2):
        side, constant = 1 - which if small else which, 0.0
        if kind == TWO_CLASSES:
            constant = 0.5 * total[which, 1]
        elif kind == COUNTS:
            for k in range(V):
                constant += total[which, k]
        elif kind == SQUARED:
            constant = bounds[side] if rows.whole else total[which, 2]
        bounds[side] = min(bounds[side], split_cost + max(0.0, constant - gain[which, 0]))
        value = split_cost + max(0.0, constant - gain[which, 1])
        if value < values[side] - tolerance:
            values[side], f = value, room.best_at[which, 0]
            chosen[side] = _threshold(rows, order[f], m, prepared.cell, f, room.best_at[which, 1])


@kernel
def _threshold(rows: Rows, order: Int32Array, m: int, cell: NDArray[np.uint32], f: int, c: int) -> int:
    """Return the threshold just above a cell, below the next one."""
    low, high = 0, m - 1
    while low < high:
        middle = (low + high) // 2
        if cell[order[middle], f] > c:
            high = middle
        else:
            low = middle + 1
    return int(rows.first[f] + rows.rank[f, order[low]] - 1)


@glue
def _fill(
    rows: Rows, order: Int32Array, first: int, beyond: int, prepared: Prepared, room: Room, sized: bool
) -> None:
    """Write down the rows ``order[first:beyond]`` by cell of every feature."""
    p, S = len(rows.rank), room.part.shape[1]
    for f in range(p):
        for v in range(S):
            for c in range(prepared.cells[f]):
                room.part[f, v, c] = 0.0
        for c in range(prepared.cells[f] if sized else 0):
            room.part_size[f, c] = 0
    for i in range(first, beyond):
        row = order[i]
        if rows.kind == TWO_CLASSES:
            x = rows.value[row, 0]
            for f in range(p):
                room.part[f, 0, prepared.cell[row, f]] += x
        elif rows.kind == COUNTS:
            label, x = rows.label[row], rows.weight[row]
            for f in range(p):
                room.part[f, label, prepared.cell[row, f]] += x
        else:
            for f in range(p):
                c = prepared.cell[row, f]
                for v in range(S):
                    room.part[f, v, c] += rows.value[row, v]
                if sized:
                    room.part_size[f, c] += rows.size[row]


@kernel
def _note_greatest(line: FloatArray, n: int, side: int, gain: FloatArray, at: IntArray) -> None:
    """Note the first of the greatest gains on a line, where it is above those so far.

    Gains are at least 0, and such numbers are in the order of their bits, read as whole numbers: these are compared in
    vector registers.
    """
    bits, most = line.view(np.int64), 0
    for c in range(n):
        most = max(most, bits[c])
    if most > gain.view(np.int64)[side, 1]:
        c = 0
        while bits[c] < most:
            c += 1
        gain[side, 0] = gain[side, 1] = line[c]
        at[side] = c


@glue
def _scan_two(prepared: Prepared, f: int, room: Room) -> None:
    """Scan one feature for two classes, leaves of any size."""
    part, sums, n = room.part[f, 0], prepared.sums[f, 0], prepared.cells[f] - 1
    one, other, total_one, total_other = (
        room.lines[0],
        room.lines[1],
        0.5 * room.totals[0, 0],
        0.5 * room.totals[1, 0],
    )
    a = 0.0
    for c in range(n):
        a += part[c]
        part[c] = a
    for c in range(n):
        a = 0.5 * part[c]
        b = 0.5 * sums[c] - a
        one[c], other[c] = abs(a) + abs(total_one - a), abs(b) + abs(total_other - b)
    _note_greatest(one, n, 0, room.gain, room.at)
    _note_greatest(other, n, 1, room.gain, room.at)


@glue
def _scan_whole(prepared: Prepared, f: int, room: Room) -> None:
    r"""Scan one feature for the squared loss, whole weights and leaves of any size.

    With sums w and s of a part and W and S of its side, a split gains
    :math:`s^2 / w + (S - s)^2 / (W - w) - S^2 / W = (s W - S w)^2 / (W w (W - w))`: one division instead of two.
    """
    total, n = room.totals, prepared.cells[f] - 1
    W0, W1, S0, S1 = total[0, 0], total[1, 0], total[0, 1], total[1, 1]
    part_w, part_s, all_w, all_s = room.part[f, 0], room.part[f, 1], prepared.sums[f, 0], prepared.sums[f, 1]
    one_line, other_line = room.lines[0], room.lines[1]
    w, s = 0.0, 0.0
    for c in range(n):
        w += part_w[c]
        s += part_s[c]
        part_w[c], part_s[c] = w, s
    for c in range(n):
        w, s = part_w[c], part_s[c]
        v, t = all_w[c] - w, all_s[c] - s
        one, other = s * W0 - S0 * w, t * W1 - S1 * v
        # Without samples on a side of the split, sums are 0 but for rounding: no gain.
        one_line[c] = one * one / (W0 * w * (W0 - w)) if 0.0 < w < W0 else 0.0
        other_line[c] = other * other / (W1 * v * (W1 - v)) if 0.0 < v < W1 else 0.0
    _note_greatest(one_line, n, 0, room.gain, room.at)
    _note_greatest(other_line, n, 1, room.gain, room.at)


@glue
def _scan_counts(prepared: Prepared, f: int, room: Room) -> None:
    """Scan one feature for many classes, leaves of any size: the largest class on each side of every split."""
    n = prepared.cells[f] - 1
    low, high, low_other, high_other = room.lines[0], room.lines[1], room.lines[2], room.lines[3]
    for c in range(n):
        low[c] = high[c] = low_other[c] = high_other[c] = 0.0
    for k in range(room.part.shape[1]):
        part, sums, all_one, all_other = (
            room.part[f, k],
            prepared.sums[f, k],
            room.totals[0, k],
            room.totals[1, k],
        )
        a = 0.0
        for c in range(n):
            a += part[c]
            part[c] = a
        for c in range(n):
            a = part[c]
            b = sums[c] - a
            low[c], high[c] = max(low[c], a), max(high[c], all_one - a)
            low_other[c], high_other[c] = max(low_other[c], b), max(high_other[c], all_other - b)
    for c in range(n):
        low[c] += high[c]
        low_other[c] += high_other[c]
    _note_greatest(low, n, 0, room.gain, room.at)
    _note_greatest(low_other, n, 1, room.gain, room.at)


@kernel
def _keep(room: Room, side: int, value: float, size: int, N_min: int, c: int) -> None:
    """Note what a split of a side gains, with a number of samples on its left."""
    if value > room.gain[side, 0]:
        room.gain[side, 0] = value
    if value > room.gain[side, 1] and size >= N_min and room.sizes[side] - size >= N_min:
        room.gain[side, 1], room.at[side] = value, c


@kernel
def _scan_classes(
    N_min: int,
    prepared: Prepared,
    f: int,
    room: Room,
) -> None:
    """Scan one feature for any number of classes."""
    K, size, total, a = room.part.shape[1], 0, room.totals, room.totals[2]
    for k in range(K):
        a[k] = 0.0
    for c in range(prepared.cells[f] - 1):
        size += room.part_size[f, c]
        a0, a1, b0, b1 = np.inf, np.inf, np.inf, np.inf
        for k in range(K):
            a[k] += room.part[f, k, c]
            b = prepared.sums[f, k, c] - a[k]
            a0, a1 = min(a0, a[k]), min(a1, total[0, k] - a[k])
            b0, b1 = min(b0, b), min(b1, total[1, k] - b)
        _keep(room, 0, -a0 - a1, size, N_min, c)
        _keep(room, 1, -b0 - b1, prepared.sizes[f, c] - size, N_min, c)


@kernel
def _scan_squared(
    N_min: int,
    prepared: Prepared,
    f: int,
    room: Room,
) -> None:
    """Scan one feature for the squared loss."""
    w, s, size, total, sizes = 0.0, 0.0, 0, room.totals, room.sizes
    for c in range(prepared.cells[f] - 1):
        w += room.part[f, 0, c]
        s += room.part[f, 1, c]
        size += room.part_size[f, c]
        other = prepared.sizes[f, c] - size
        if 0 < size < sizes[0]:
            rest, rest_w = total[0, 1] - s, total[0, 0] - w
            _keep(room, 0, s * s / w + rest * rest / rest_w, size, N_min, c)
        if 0 < other < sizes[1]:
            w1, s1 = prepared.sums[f, 0, c] - w, prepared.sums[f, 1, c] - s
            rest, rest_w = total[1, 1] - s1, total[1, 0] - w1
            _keep(room, 1, s1 * s1 / w1 + rest * rest / rest_w, other, N_min, c)


@kernel
def _scan_absolute(
    rows: Rows,
    order: Int32Array,
    m: int,
    prepared: Prepared,
    f: int,
    small: int,
    room: Room,
) -> None:
    """Scan one feature for the absolute loss: descending for what is left of a split, ascending for what is right."""
    for ascending in range(2):
        losses_of_rest(rows, order[f], order[-1], m, f, ascending, prepared.cell, room)
    size, lines = 0, room.lines
    for c in range(prepared.cells[f] - 1):
        size += room.part_size[f, c]
        one, other = (
            -lines[2 * small, c] - lines[2 * small + 1, c],
            -lines[2 - 2 * small, c] - lines[3 - 2 * small, c],
        )
        _keep(room, 0, one, size, rows.N_min, c)
        _keep(room, 1, other, prepared.sizes[f, c] - size, rows.N_min, c)
