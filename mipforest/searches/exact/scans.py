"""The best split of each of two sets of samples at once: what the exact search does most.

A position of a frame sends its samples left or right. Both sides then need their best single split over all features.
For one feature, one pass over the samples in its order gives it for both: statistics of the left side are summed, those
of the right side are prefix sums of all less these. At ties a penalty of infinity stands for a split that there is not.

A leaf of fewer than ``N_min`` samples is not allowed, but bounds for larger sets of samples do without this limit: with
more samples a split may be allowed that is not here. So every scan returns both values.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import inner
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

#: Divisor in place of 0, where a side of a split has no samples; products of whole weights are at least 1.
LEAST_WEIGHT = 0.5


@inner
def prepare(rows: Rows, order: Int32Array, m: int, prepared: Prepared) -> None:
    """Compute what the scans of the rows ``order[:, :m]`` share."""
    V = prepared.sums.shape[2]
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


@inner
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
        if kind == COUNTS:
            room.code[row] = rows.label[row] + side * V
            total[side, rows.label[row]] += rows.weight[row]
            continue
        for v in range(V):
            total[side, v] += rows.value[row, v]
        for v in range(left.shape[1]):
            left[row, v] = rows.value[row, v] if side == 0 else 0.0
    if kind == ABSOLUTE:
        bounds[0] = median_loss(rows, order[-1], m, room, 1, total[0])
        bounds[1] = median_loss(rows, order[-1], m, room, 0, total[1])
    else:
        bounds[0], bounds[1] = loss_of(kind, total[0]), loss_of(kind, total[1])
    for side in range(2):
        chosen[side] = -1
        values[side] = bounds[side] if sizes[side] >= rows.N_min else np.inf
    if not splits or (bounds[0] <= split_cost and bounds[1] <= split_cost and rows.N_min == 1):
        return
    # What the best splits so far gain, without the least size of leaves and with it; feature and place of the latter.
    gain, at, best_at = np.full((2, 2), -np.inf), np.zeros(2, np.int64), np.zeros((2, 2), np.int64)
    before = np.empty(2)
    for f in range(len(rows.rank)):
        if not prepared.varies[f]:
            continue
        before[0], before[1] = gain[0, 1], gain[1, 1]
        if kind == TWO_CLASSES:
            _scan_two(order[f], m, prepared.sums[f], prepared.penalty[f], total, left, gain, at)
        elif kind == COUNTS:
            _scan_counts(
                order[f], m, prepared.penalty[f], rows.weight, room.code, room.counts, room.loss, gain, at
            )
        elif kind == CLASSES:
            _scan_classes(rows, order[f], m, prepared, f, total, sizes, room, gain, at)
        elif kind == SQUARED and rows.whole:
            _scan_whole(order[f], m, prepared.sums[f], prepared.penalty[f], total, left, gain, at)
        elif kind == SQUARED:
            _scan_squared(rows, order[f], m, prepared, f, total, sizes, room, gain, at)
        else:
            _scan_absolute(rows, order[f], order[-1], m, prepared, f, sizes, room, gain, at)
        for side in range(2):
            if gain[side, 1] > before[side]:
                best_at[side, 0], best_at[side, 1] = f, at[side]
    for side in range(2):
        constant = 0.0
        if kind == TWO_CLASSES:
            constant = 0.5 * total[side, 1]
        elif kind == COUNTS:
            constant = total[side].sum()
        elif kind == SQUARED:
            constant = bounds[side] if rows.whole else total[side, 2]
        bounds[side] = min(bounds[side], split_cost + max(0.0, constant - gain[side, 0]))
        value = split_cost + max(0.0, constant - gain[side, 1])
        if value < values[side]:
            values[side], f = value, best_at[side, 0]
            chosen[side] = rows.first[f] + rows.rank[f, order[f, best_at[side, 1] + 1]] - 1


@inner
def _scan_two(
    order: Int32Array,
    m: int,
    sums: FloatArray,
    penalty: FloatArray,
    total: FloatArray,
    left: FloatArray,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for two classes, leaves of any size."""
    a, left_total, right_total = 0.0, total[0, 0], total[1, 0]
    left_gain, right_gain = 2.0 * gain[0, 1], 2.0 * gain[1, 1]
    for i in range(m):
        a += left[order[i], 0]
        b = sums[i, 0] - a
        left_value = abs(a) + abs(left_total - a) + penalty[i]
        right_value = abs(b) + abs(right_total - b) + penalty[i]
        if left_value > left_gain:
            left_gain, at[0] = left_value, i
        if right_value > right_gain:
            right_gain, at[1] = right_value, i
    gain[0, 0] = gain[0, 1] = 0.5 * left_gain
    gain[1, 0] = gain[1, 1] = 0.5 * right_gain


@inner
def _scan_whole(
    order: Int32Array,
    m: int,
    sums: FloatArray,
    penalty: FloatArray,
    total: FloatArray,
    left: FloatArray,
    gain: FloatArray,
    at: IntArray,
) -> None:
    r"""Scan one feature for the squared loss, whole weights and leaves of any size.

    With sums w and s of a part and W and S of its side, a split gains
    :math:`s^2 / w + (S - s)^2 / (W - w) - S^2 / W = (s W - S w)^2 / (W w (W - w))`: one division instead of two.
    """
    w, s, W0, W1, S0, S1 = 0.0, 0.0, total[0, 0], total[1, 0], total[0, 1], total[1, 1]
    left_gain, right_gain = gain[0, 1], gain[1, 1]
    for i in range(m):
        row = order[i]
        w += left[row, 0]
        s += left[row, 1]
        v, t = sums[i, 0] - w, sums[i, 1] - s
        # Without samples on a side of the split the numerator is 0 but for rounding: no gain.
        one, other = s * W0 - S0 * w, t * W1 - S1 * v
        left_value = one * one / max(W0 * w * (W0 - w), LEAST_WEIGHT) + penalty[i]
        right_value = other * other / max(W1 * v * (W1 - v), LEAST_WEIGHT) + penalty[i]
        if left_value > left_gain and 0.0 < w < W0:
            left_gain, at[0] = left_value, i
        if right_value > right_gain and 0.0 < v < W1:
            right_gain, at[1] = right_value, i
    gain[0, 0] = gain[0, 1] = left_gain
    gain[1, 0] = gain[1, 1] = right_gain


@inner
def _scan_counts(
    order: Int32Array,
    m: int,
    penalty: FloatArray,
    weight: FloatArray,
    code: Int32Array,
    counts: FloatArray,
    passed: FloatArray,
    gain: FloatArray,
    at: IntArray,
) -> None:
    """Scan one feature for many classes, leaves of any size: ascending for what is left of splits, then descending."""
    K = len(counts) // 2
    counts[:] = 0.0
    left_most, right_most = 0.0, 0.0
    for i in range(m):
        row = order[i]
        c = code[row]
        counts[c] += weight[row]
        if c < K:
            left_most = max(left_most, counts[c])
        else:
            right_most = max(right_most, counts[c])
        passed[0, i], passed[1, i] = left_most, right_most
    counts[:] = 0.0
    left_most, right_most, left_gain, right_gain = 0.0, 0.0, gain[0, 1], gain[1, 1]
    for i in range(m - 1, -1, -1):
        left_value, right_value = (
            passed[0, i] + left_most + penalty[i],
            passed[1, i] + right_most + penalty[i],
        )
        if left_value > left_gain:
            left_gain, at[0] = left_value, i
        if right_value > right_gain:
            right_gain, at[1] = right_value, i
        row = order[i]
        c = code[row]
        counts[c] += weight[row]
        if c < K:
            left_most = max(left_most, counts[c])
        else:
            right_most = max(right_most, counts[c])
    gain[0, 0] = gain[0, 1] = left_gain
    gain[1, 0] = gain[1, 1] = right_gain


@inner
def _keep(
    gain: FloatArray, at: IntArray, side: int, value: float, size: int, whole: int, N_min: int, i: int
) -> None:
    """Note what a split of a side gains, with a number of samples on its left."""
    if value > gain[side, 0]:
        gain[side, 0] = value
    if value > gain[side, 1] and size >= N_min and whole - size >= N_min:
        gain[side, 1], at[side] = value, i


@inner
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


@inner
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


@inner
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
        losses_of_rest(rows, order, by_target, m, ascending, prepared.penalty[f], room)
    size = 0
    for i in range(m):
        size += room.left_size[order[i]]
        if prepared.penalty[f, i] == 0.0:
            loss, other = room.loss, prepared.sizes[f, i] - size
            _keep(gain, at, 0, -loss[0, i] - loss[1, i], size, sizes[0], rows.N_min, i)
            _keep(gain, at, 1, -loss[2, i] - loss[3, i], other, sizes[1], rows.N_min, i)
