r"""The samples of an exact search, and what leaves cost.

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
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import kernel

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
