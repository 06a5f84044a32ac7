r"""The samples of an exact search, what leaves cost, and scans for the best split.

What is summed over samples depends on the loss (``kind``):

- ``TWO_CLASSES`` (without a least size of leaves): predicting class k costs a leaf the sum of :math:`l_k` over its
  samples, so its loss is :math:`\min\{\sum l_0, \sum l_1\} = \tfrac12 \sum (l_0 + l_1) - \tfrac12 |\sum (l_0 - l_1)|`.
  The first part is the same for all splits, which leaves one signed number per sample.
- ``COUNTS`` (without costs of classes and a least size of leaves): the weight of each class; a leaf loses all but the
  largest. Taking rows in one by one, the largest weight is known without a look at the other classes.
- ``CLASSES``: the sums of :math:`l_k` for every class k.
- ``SQUARED``: weight w and w y; the loss is :math:`\sum w y^2 - (\sum w y)^2 / \sum w`.
- ``ABSOLUTE``: samples are taken out of a list in the order of the target, one by one, in which a pointer keeps the
  weighted median; ascending in a feature this gives the losses right of all splits, descending those left of them.

**Scans** find the best split of each of two sets of samples at once: what the exact search does most. A position of a
frame sends its samples left or right. Both sides then need their best single split over all features. What is summed
over the samples of the smaller side is written down by **cell**, that is by distinct value of a feature; that of the
other side is the sums of all less these. So one pass over the cells of a feature gives its splits of both sides, and
the work is that of a quarter of the samples and of the distinct values.

A leaf of fewer than ``N_min`` samples is not allowed, but bounds for larger sets of samples do without this limit: with
more samples a split may be allowed that is not here. So every scan returns both values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import glue, kernel

#: Kinds of losses.
TWO_CLASSES, CLASSES, SQUARED, ABSOLUTE, COUNTS = 0, 1, 2, 3, 5

Int32Array = NDArray[np.int32]


class Rows(NamedTuple):
    """The samples of a search; equal ones are one row.

    Attributes
    ----------
    kind
        Which loss.
    N_min
        Least number of samples in a leaf.
    rank
        (p, n) rank of each row among the distinct values of each feature.
    first
        (p + 1,) number of each feature's first threshold; threshold k of a feature lies between ranks k and k + 1.
    value
        (n, V) statistics that are summed: ``TWO_CLASSES`` l0 - l1 and l0 + l1; ``CLASSES`` one l per class; ``COUNTS``
        one weight per class; ``SQUARED`` and ``ABSOLUTE`` w, w y, w y^2 (of the centred target).
    target
        (n,) target of a regression.
    weight, label
        (n,) weight and class of each row.
    size
        (n,) number of samples in each row.
    most
        (n,) most that a row adds to the loss of a tree; infinite for regression.
    least
        (n,) summed over any set of rows, a lower bound on its loss in every tree: what rows with equal features cost.
    place
        (n,) place of each row in the order of the target.
    code
        (n, 2) random numbers; the hash of a set of rows combines those of its rows.
    whole
        Whether weights are whole numbers, so that their sums are exact in any order.
    """

    kind: int
    N_min: int
    rank: Int32Array
    first: IntArray
    value: FloatArray
    target: FloatArray
    weight: FloatArray
    label: Int32Array
    size: IntArray
    most: FloatArray
    least: FloatArray
    place: Int32Array
    code: NDArray[np.uint64]
    whole: bool


class Prepared(NamedTuple):
    """What the scans of one set of rows share. The **cells** of a feature are its distinct values among these rows.

    Attributes
    ----------
    cells
        (p,) number of cells of each feature.
    cell
        (n, p) number of the cell of each row, in ascending order of the feature's values; without a sign, as numbers
        that may be negative would be looked at for it.
    sums
        (p, S, n) prefix sums of the statistics by cell.
    sizes
        (p, n) prefix sums of the numbers of samples by cell.
    total
        (V,) statistics of all rows.
    """

    cells: IntArray
    cell: NDArray[np.uint32]
    sums: FloatArray
    sizes: IntArray
    total: FloatArray


class Room(NamedTuple):
    """Memory that every evaluation uses anew.

    Attributes
    ----------
    part, part_size
        (p, S, n) and (p, n): statistics and sizes of the rows of one side, by cell.
    lines
        (4, n) numbers by cell.
    totals
        (3, V) statistics of both sides, and of what was summed so far.
    gain
        (2, 2) what the best splits of both sides gain, without the least size of leaves and with it.
    sizes, at, best_at, chosen
        (2,), (2,), (2, 2) and (2,): number of samples on each side; cell of the best split of the feature at work;
        feature and cell of the best split; threshold of that, -1 for a leaf.
    middle, lists
        (2,) and (4, 2): of the list of each side, the row at its middle; sums of weight and of weight times target, of
        all and of those before the middle.
    on_left
        (n,) whether a row is on the left side.
    before, after
        (n,) links of the rows of each side by target.
    """

    part: FloatArray
    part_size: IntArray
    lines: FloatArray
    totals: FloatArray
    gain: FloatArray
    sizes: IntArray
    at: IntArray
    best_at: IntArray
    chosen: IntArray
    middle: IntArray
    lists: FloatArray
    on_left: BoolArray
    before: Int32Array
    after: Int32Array


@kernel
def leaf_loss(rows: Rows, order: Int32Array, m: int, room: Room) -> float:
    """Return the loss of one leaf that holds all rows ``order[:, :m]``."""
    total = room.totals[2]
    for v in range(len(total)):
        total[v] = 0.0
    for i in range(m):
        room.on_left[order[0, i]] = True
        for v in range(len(total)):
            total[v] += rows.value[order[0, i], v]
    return (
        median_loss(rows, order[-1], m, room, 1, total)
        if rows.kind == ABSOLUTE
        else loss_of(rows.kind, total)
    )


@kernel
def loss_of(kind: int, total: FloatArray) -> float:
    """Return the loss of a leaf by its sums (V,); not for the absolute loss."""
    if kind == TWO_CLASSES:
        return float(0.5 * (total[1] - abs(total[0])))
    if kind == CLASSES:
        least = total[0]
        for k in range(1, len(total)):
            least = min(least, total[k])
        return float(least)
    if kind == COUNTS:
        whole, most = total[0], total[0]
        for k in range(1, len(total)):
            whole += total[k]
            most = max(most, total[k])
        return float(whole - most)
    if total[0] <= 0.0:
        return 0.0
    return float(max(0.0, total[2] - total[1] * total[1] / total[0]))


@kernel
def median_loss(
    rows: Rows, by_target: Int32Array, m: int, room: Room, on_left: int, total: FloatArray
) -> float:
    """Return the absolute loss of one side around its weighted median."""
    below, below_y = 0.0, 0.0
    for i in range(m):
        row = by_target[i]
        if room.on_left[row] != on_left:
            continue
        w, y = rows.value[row, 0], rows.target[row]
        below += w
        below_y += w * y
        if 2.0 * below >= total[0]:
            return float(max(0.0, y * below - below_y + total[1] - below_y - y * (total[0] - below)))
    return 0.0


@kernel
def losses_of_rest(
    rows: Rows,
    order: Int32Array,
    by_target: Int32Array,
    m: int,
    f: int,
    ascending: int,
    cell: NDArray[np.uint32],
    room: Room,
) -> None:
    """Take rows out of the lists of both sides in the order of feature f; write the losses of those left, by cell."""
    before, after, middle = room.before, room.after, room.middle
    weight, weight_y, below, below_y = room.lists[0], room.lists[1], room.lists[2], room.lists[3]
    last, last_right = -1, -1
    for s in range(2):
        middle[s] = -1
        weight[s] = weight_y[s] = below[s] = below_y[s] = 0.0
    for i in range(m):
        row = by_target[i]
        s, previous = (0, last) if room.on_left[row] else (1, last_right)
        before[row], after[row] = previous, -1
        if previous >= 0:
            after[previous] = row
        else:
            middle[s] = row
        if s == 0:
            last = row
        else:
            last_right = row
        weight[s] += rows.value[row, 0]
        weight_y[s] += rows.value[row, 1]
    loss = settle(rows, middle, 0, weight, weight_y, below, below_y, room)
    loss_right = settle(rows, middle, 1, weight, weight_y, below, below_y, room)
    for step in range(m):
        i = step if ascending else m - 1 - step
        row = order[i]
        c = cell[row, f]
        if not ascending and (i == m - 1 or cell[order[i + 1], f] != c):
            room.lines[0, c], room.lines[2, c] = loss, loss_right
        if room.on_left[row]:
            loss = take_out(rows, row, 0, middle, weight, weight_y, below, below_y, room)
        else:
            loss_right = take_out(rows, row, 1, middle, weight, weight_y, below, below_y, room)
        if ascending:  # the last row of a cell has the last word
            room.lines[1, c], room.lines[3, c] = loss, loss_right


@kernel
def take_out(
    rows: Any,
    row: int,
    s: int,
    middle: IntArray,
    weight: FloatArray,
    weight_y: FloatArray,
    below: FloatArray,
    below_y: FloatArray,
    room: Any,
) -> float:
    """Take a row out of list s; return the loss of those that are left, around their weighted median.

    Parameters
    ----------
    rows
        Anything with the statistics, targets and places of rows.
    row, s
        Row and number of its list.
    middle, weight, weight_y, below, below_y
        By list: the row at its middle, the sums of weight and of weight times target, and those before the middle.
    room
        Anything with the links ``before`` and ``after`` of rows.
    """
    before, after = room.before, room.after
    if row != middle[s]:
        if rows.place[row] < rows.place[middle[s]]:
            below[s] -= rows.value[row, 0]
            below_y[s] -= rows.value[row, 1]
    elif after[row] >= 0:
        middle[s] = after[row]
    else:
        middle[s] = before[row]
        if middle[s] >= 0:
            below[s] -= rows.value[middle[s], 0]
            below_y[s] -= rows.value[middle[s], 1]
    weight[s] -= rows.value[row, 0]
    weight_y[s] -= rows.value[row, 1]
    if before[row] >= 0:
        after[before[row]] = after[row]
    if after[row] >= 0:
        before[after[row]] = before[row]
    return settle(rows, middle, s, weight, weight_y, below, below_y, room)


@kernel
def settle(
    rows: Any,
    middle: IntArray,
    s: int,
    weight: FloatArray,
    weight_y: FloatArray,
    below: FloatArray,
    below_y: FloatArray,
    room: Any,
) -> float:
    """Move the pointer of a list to its weighted median; return the loss around it; see :func:`take_out`."""
    q = middle[s]
    if q < 0:
        return 0.0
    half = 0.5 * weight[s]
    while below[s] > half and room.before[q] >= 0:
        q = room.before[q]
        below[s] -= rows.value[q, 0]
        below_y[s] -= rows.value[q, 1]
    while below[s] + rows.value[q, 0] < half and room.after[q] >= 0:
        below[s] += rows.value[q, 0]
        below_y[s] += rows.value[q, 1]
        q = room.after[q]
    middle[s] = q
    y, through, through_y = rows.target[q], below[s] + rows.value[q, 0], below_y[s] + rows.value[q, 1]
    return float(max(0.0, y * through - through_y + weight_y[s] - through_y - y * (weight[s] - through)))


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
