r"""Weighted quantiles of lists from which rows are taken out: pinball losses on both sides of every split.

Around the quantile y of level :math:`\tau` rows of weights :math:`w_i` lose

.. math::  2 (1 - \tau) \sum_{y_i \le y} w_i (y - y_i) + 2 \tau \sum_{y_i > y} w_i (y_i - y),

at :math:`\tau = 1/2` the absolute loss around the median. A list links its rows in the order of the target, and a
pointer keeps its weighted quantile, so that the loss around it is known after each row that leaves. Taken out in the
ascending order of a feature, rows leave the losses right of all splits behind; in the descending order, those left of
them.
"""

from __future__ import annotations

from typing import Any

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel


@kernel
def remove(
    rows: Any,
    row: int,
    s: int,
    middle: IntArray,
    weight: FloatArray,
    weight_y: FloatArray,
    below: FloatArray,
    below_y: FloatArray,
    links: Any,
) -> float:
    """Take a row out of list s; return the loss of those that are left, around their weighted quantile.

    Parameters
    ----------
    rows
        Anything with the statistics, targets and places of rows, and the level of the quantile.
    row, s
        Row and number of its list.
    middle, weight, weight_y, below, below_y
        By list: the row at its middle, the sums of weight and of weight times target, and those before the middle.
    links
        Anything with the links ``before`` and ``after`` of rows.
    """
    before, after = links.before, links.after
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
    return move_to_quantile(rows, middle, s, weight, weight_y, below, below_y, links)


@kernel
def move_to_quantile(
    rows: Any,
    middle: IntArray,
    s: int,
    weight: FloatArray,
    weight_y: FloatArray,
    below: FloatArray,
    below_y: FloatArray,
    links: Any,
) -> float:
    """Move the pointer of a list to its weighted quantile; return the loss around it; see :func:`remove`."""
    q = middle[s]
    if q < 0:
        return 0.0
    goal = rows.level * weight[s]
    while below[s] > goal and links.before[q] >= 0:
        q = links.before[q]
        below[s] -= rows.value[q, 0]
        below_y[s] -= rows.value[q, 1]
    while below[s] + rows.value[q, 0] < goal and links.after[q] >= 0:
        below[s] += rows.value[q, 0]
        below_y[s] += rows.value[q, 1]
        q = links.after[q]
    middle[s] = q
    y, through, through_y = rows.target[q], below[s] + rows.value[q, 0], below_y[s] + rows.value[q, 1]
    return loss_around(rows.level, y, through, through_y, weight[s], weight_y[s])


@kernel
def loss_around(
    level: float, y: float, through: float, through_y: float, weight: float, weight_y: float
) -> float:
    """Return the loss around a target y by sums of weight and of weight times target: up to y, and of all."""
    low = y * through - through_y
    high = weight_y - through_y - y * (weight - through)
    return float(max(0.0, 2.0 * (1.0 - level) * low + 2.0 * level * high))
