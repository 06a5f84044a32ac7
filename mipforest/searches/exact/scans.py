r"""The best split of each of two sets of samples at once: what the exact search does most.

A position of a frame sends its samples left or right. Both sides then need their best single split over all features.
For one feature, one pass over the samples in its order gives it for both: statistics of the left side are summed, those
of the right side are prefix sums of all less these. At ties a penalty of infinity forbids to split, in place of a branch.

What is summed depends on the loss (``kind``):

- ``TWO_CLASSES`` (without a least leaf size): predicting class k costs a leaf the sum of :math:`l_k` over its samples, so its loss is
  :math:`\min\{\sum l_0, \sum l_1\} = \tfrac12 \sum (l_0 + l_1) - \tfrac12 |\sum (l_0 - l_1)|`. The first part is the
  same for all splits, which leaves one signed number per sample.
- ``CLASSES``: the sums of :math:`l_k` for every class k.
- ``SQUARED``: weight w and w y; the loss is :math:`\sum w y^2 - (\sum w y)^2 / \sum w`.
- ``ABSOLUTE``: samples are taken out of a list in the order of the target, one by one, in which a pointer keeps the
  weighted median; ascending in the feature this gives the losses right of all splits, descending those left of them.

A leaf of fewer than ``N_min`` samples is not allowed, but bounds for larger sets of samples do without this limit: with
more samples a split may be allowed that is not here. So every scan returns both values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compiled

#: Kinds of losses.
TWO_CLASSES, CLASSES, SQUARED, ABSOLUTE = 0, 1, 2, 3

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
        (n, V) statistics that are summed: ``TWO_CLASSES`` l0 - l1 and l0 + l1; ``CLASSES`` one l per class; ``SQUARED``
        and ``ABSOLUTE`` w, w y, w y^2 (of the centred target).
    target
        (n,) target of a regression.
    size
        (n,) number of samples in each row.
    most
        (n,) most that a row adds to the loss of a tree; infinite for regression.
    least
        (n,) summed over any set of rows, a lower bound on its loss in every tree: what rows with equal features cost.
    place
        (n,) place of each row in the order of the target.
    """

    kind: int
    N_min: int
    rank: Int32Array
    first: IntArray
    value: FloatArray
    target: FloatArray
    size: IntArray
    most: FloatArray
    least: FloatArray
    place: Int32Array


class Prepared(NamedTuple):
    """What the scans of one set of samples share, feature by feature in its order.

    Attributes
    ----------
    varies
        (p,) whether a feature has two values here.
    penalty
        (p, n) 0 after the last sample of a value, minus infinity elsewhere and after the last sample of all.
    sums
        (p, n, V) prefix sums of the statistics.
    sizes
        (p, n) prefix sums of the numbers of samples.
    """

    varies: BoolArray
    penalty: FloatArray
    sums: FloatArray
    sizes: IntArray


class Room(NamedTuple):
    """Memory that every evaluation uses anew.

    Attributes
    ----------
    left, left_size
        (n, V) and (n,): statistics and sizes of the rows of the left side, 0 for those of the right side.
    on_left
        (n,) whether a row is on the left side.
    before, after
        (n,) links of the rows of each side by target.
    loss
        (4, n) absolute loss left and right of each split, for the left and for the right side.
    """

    left: FloatArray
    left_size: IntArray
    on_left: BoolArray
    before: Int32Array
    after: Int32Array
    loss: FloatArray


@compiled
def leaf_loss(rows: Rows, order: Int32Array, m: int, room: Room) -> float:
    """Return the loss of one leaf that holds all rows ``order[:, :m]``."""
    total = np.zeros(rows.value.shape[1])
    for i in range(m):
        room.on_left[order[0, i]] = True
        for v in range(rows.value.shape[1]):
            total[v] += rows.value[order[0, i], v]
    return _median_loss(rows, order[-1], m, room, 1, total) if rows.kind == ABSOLUTE else loss_of(rows.kind, total)


@compiled
def loss_of(kind: int, total: FloatArray) -> float:
    """Return the loss of a leaf by its sums (V,); not for the absolute loss."""
    if kind == TWO_CLASSES:
        return 0.5 * (total[1] - abs(total[0]))
    if kind == CLASSES:
        least = total[0]
        for k in range(1, len(total)):
            least = min(least, total[k])
        return least
    if total[0] <= 0.0:
        return 0.0
    return max(0.0, total[2] - total[1] * total[1] / total[0])


@compiled
def _median_loss(
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
            return max(0.0, y * below - below_y + total[1] - below_y - y * (total[0] - below))
    return 0.0


@compiled
def prepare(rows: Rows, order: Int32Array, m: int, prepared: Prepared) -> None:
    """Compute what the scans of the rows ``order[:, :m]`` share."""
    V = rows.value.shape[1] if rows.kind == CLASSES else 1 if rows.kind == TWO_CLASSES else 2
    total = np.zeros(V)
    for f in range(len(rows.rank)):
        prepared.varies[f] = rows.rank[f, order[f, 0]] != rows.rank[f, order[f, m - 1]]
        if not prepared.varies[f]:
            continue
        for v in range(V):
            total[v] = 0.0
        size = 0
        for i in range(m):
            row = order[f, i]
            for v in range(V):
                total[v] += rows.value[row, v]
                prepared.sums[f, i, v] = total[v]
            size += rows.size[row]
            prepared.sizes[f, i] = size
            last = i == m - 1 or rows.rank[f, row] != rows.rank[f, order[f, i + 1]]
            prepared.penalty[f, i] = 0.0 if last and i < m - 1 else -np.inf


@compiled
def best_pair(
    rows: Rows,
    order: Int32Array,
    m: int,
    cut: int,
    feature: int,
    split_cost: float,
    prepared: Prepared,
    room: Room,
    values: FloatArray,
    bounds: FloatArray,
    chosen: IntArray,
    splits: bool,
) -> None:
    """Find the best subtrees of depth at most one of both sides of a position.

    Parameters
    ----------
    rows, order, m
        The frame's rows, in the order of each feature.
    cut, feature
        The first ``cut`` rows in the order of this feature are the left side.
    split_cost
        Cost of a split.
    prepared
        From :func:`prepare`, where there are ``splits``.
    room
        Memory to use.
    values, bounds, chosen
        (2,) each, written here: the least cost with leaves large enough, without that limit, and the threshold
        (-1 for a leaf).
    splits
        Whether the sides may split; otherwise each is one leaf.
    """
    kind, V = rows.kind, rows.value.shape[1]
    total, sizes = np.zeros((2, V)), np.zeros(2, np.int64)
    left, left_size = room.left, room.left_size
    for i in range(m):
        row, side = order[feature, i], 0 if i < cut else 1
        sizes[side] += rows.size[row]
        room.on_left[row] = side == 0
        left_size[row] = rows.size[row] if side == 0 else 0
        for v in range(V):
            total[side, v] += rows.value[row, v]
            left[row, v] = rows.value[row, v] if side == 0 else 0.0
    if kind == ABSOLUTE:
        bounds[0] = _median_loss(rows, order[-1], m, room, 1, total[0])
        bounds[1] = _median_loss(rows, order[-1], m, room, 0, total[1])
    else:
        bounds[0], bounds[1] = loss_of(kind, total[0]), loss_of(kind, total[1])
    for side in range(2):
        chosen[side] = -1
        values[side] = bounds[side] if sizes[side] >= rows.N_min else np.inf
    if not splits or (bounds[0] <= split_cost and bounds[1] <= split_cost and rows.N_min == 1):
        return
    gain, at = np.empty((2, 2)), np.empty(2, np.int64)
    for f in range(len(rows.rank)):
        if not prepared.varies[f]:
            continue
        for side in range(2):
            gain[side, 0] = gain[side, 1] = -np.inf
        if kind == TWO_CLASSES:
            _scan_two(order[f], m, prepared, f, total, room, gain, at)
        elif kind == CLASSES:
            _scan_classes(rows, order[f], m, prepared, f, total, sizes, room, gain, at)
        elif kind == SQUARED:
            _scan_squared(rows, order[f], m, prepared, f, total, sizes, room, gain, at)
        else:
            _scan_absolute(rows, order[f], order[-1], m, prepared, f, sizes, room, gain, at)
        for side in range(2):
            constant = 0.5 * total[side, 1] if kind == TWO_CLASSES else total[side, 2] if kind == SQUARED else 0.0
            bounds[side] = min(bounds[side], split_cost + max(0.0, constant - gain[side, 0]))
            value = split_cost + max(0.0, constant - gain[side, 1])
            if value < values[side]:
                values[side] = value
                chosen[side] = rows.first[f] + rows.rank[f, order[f, at[side] + 1]] - 1


@compiled
def _scan_two(
    order: Int32Array,
    m: int,
    prepared: Prepared,
    f: int,
    total: FloatArray,
    room: Room,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for two classes, leaves of any size."""
    left, sums, penalty = room.left, prepared.sums[f], prepared.penalty[f]
    a, left_total, right_total = 0.0, total[0, 0], total[1, 0]
    left_gain, right_gain, left_at, right_at = -np.inf, -np.inf, 0, 0
    for i in range(m):
        a += left[order[i], 0]
        b = sums[i, 0] - a
        left_value = abs(a) + abs(left_total - a) + penalty[i]
        right_value = abs(b) + abs(right_total - b) + penalty[i]
        if left_value > left_gain:
            left_gain, left_at = left_value, i
        if right_value > right_gain:
            right_gain, right_at = right_value, i
    gain[0, 0] = gain[0, 1] = 0.5 * left_gain
    gain[1, 0] = gain[1, 1] = 0.5 * right_gain
    at[0], at[1] = left_at, right_at


@compiled
def _keep(
    gain: FloatArray, at: IntArray, side: int, value: float, size: int, whole: int, N_min: int, i: int
) -> None:
    """Note what a split of a side gains, with a number of samples on its left."""
    if value > gain[side, 0]:
        gain[side, 0] = value
    if value > gain[side, 1] and size >= N_min and whole - size >= N_min:
        gain[side, 1], at[side] = value, i


@compiled
def _scan_classes(
    rows: Rows,
    order: Int32Array,
    m: int,
    prepared: Prepared,
    f: int,
    total: FloatArray,
    sizes: IntArray,
    room: Room,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for any number of classes."""
    left, left_size = room.left, room.left_size
    K = left.shape[1]
    a, size = np.zeros(K), 0
    for i in range(m):
        for k in range(K):
            a[k] += left[order[i], k]
        size += left_size[order[i]]
        if prepared.penalty[f, i] == 0.0:
            a0, a1, b0, b1 = np.inf, np.inf, np.inf, np.inf
            for k in range(K):
                b = prepared.sums[f, i, k] - a[k]
                a0, a1 = min(a0, a[k]), min(a1, total[0, k] - a[k])
                b0, b1 = min(b0, b), min(b1, total[1, k] - b)
            _keep(gain, at, 0, -a0 - a1, size, sizes[0], rows.N_min, i)
            _keep(gain, at, 1, -b0 - b1, prepared.sizes[f, i] - size, sizes[1], rows.N_min, i)


@compiled
def _scan_squared(
    rows: Rows,
    order: Int32Array,
    m: int,
    prepared: Prepared,
    f: int,
    total: FloatArray,
    sizes: IntArray,
    room: Room,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for the squared loss."""
    left, left_size = room.left, room.left_size
    w, s, size = 0.0, 0.0, 0
    for i in range(m):
        row = order[i]
        w += left[row, 0]
        s += left[row, 1]
        size += left_size[row]
        if prepared.penalty[f, i] == 0.0:
            other = prepared.sizes[f, i] - size
            if 0 < size < sizes[0]:
                rest, rest_w = total[0, 1] - s, total[0, 0] - w
                _keep(gain, at, 0, s * s / w + rest * rest / rest_w, size, sizes[0], rows.N_min, i)
            if 0 < other < sizes[1]:
                w1, s1 = prepared.sums[f, i, 0] - w, prepared.sums[f, i, 1] - s
                rest, rest_w = total[1, 1] - s1, total[1, 0] - w1
                _keep(gain, at, 1, s1 * s1 / w1 + rest * rest / rest_w, other, sizes[1], rows.N_min, i)


@compiled
def _scan_absolute(
    rows: Rows,
    order: Int32Array,
    by_target: Int32Array,
    m: int,
    prepared: Prepared,
    f: int,
    sizes: IntArray,
    room: Room,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for the absolute loss: descending for what is left of a split, ascending for what is right."""
    for ascending in range(2):
        _losses_of_rest(rows, order, by_target, m, ascending, prepared.penalty[f], room)
    size = 0
    for i in range(m):
        size += room.left_size[order[i]]
        if prepared.penalty[f, i] == 0.0:
            loss, other = room.loss, prepared.sizes[f, i] - size
            _keep(gain, at, 0, -loss[0, i] - loss[1, i], size, sizes[0], rows.N_min, i)
            _keep(gain, at, 1, -loss[2, i] - loss[3, i], other, sizes[1], rows.N_min, i)


@compiled
def _losses_of_rest(
    rows: Rows,
    order: Int32Array,
    by_target: Int32Array,
    m: int,
    ascending: int,
    penalty: FloatArray,
    room: Room,
) -> None:
    """Take rows out of the lists of both sides in an order; write the losses of those that are left."""
    before, after = room.before, room.after
    middle, last = -np.ones(2, np.int64), -np.ones(2, np.int64)
    # Sums of weight and weight times target of all rows in a list, and of those before its middle.
    weight, weight_y, below, below_y = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    for i in range(m):
        row = by_target[i]
        s = 0 if room.on_left[row] else 1
        before[row], after[row] = last[s], -1
        if last[s] >= 0:
            after[last[s]] = row
        else:
            middle[s] = row
        last[s] = row
        weight[s] += rows.value[row, 0]
        weight_y[s] += rows.value[row, 1]
    loss = np.zeros(2)
    for s in range(2):
        loss[s] = _settle(rows, middle, s, weight, weight_y, below, below_y, room)
    for step in range(m):
        i = step if ascending else m - 1 - step
        row = order[i]
        if not ascending and penalty[i] == 0.0:
            room.loss[0, i], room.loss[2, i] = loss[0], loss[1]
        s = 0 if room.on_left[row] else 1
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
        loss[s] = _settle(rows, middle, s, weight, weight_y, below, below_y, room)
        if ascending and penalty[i] == 0.0:
            room.loss[1, i], room.loss[3, i] = loss[0], loss[1]


@compiled
def _settle(
    rows: Rows,
    middle: IntArray,
    s: int,
    weight: FloatArray,
    weight_y: FloatArray,
    below: FloatArray,
    below_y: FloatArray,
    room: Room,
) -> float:
    """Move the pointer of a list to its weighted median; return the loss around it."""
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
    return max(0.0, y * through - through_y + weight_y[s] - through_y - y * (weight[s] - through))
