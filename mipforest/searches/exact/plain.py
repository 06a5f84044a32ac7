"""Plain loops for what vector walks do not take: costs of classes, the absolute loss, leaf sizes, many features.

Tables hold every row once, in memory that grows with n p.

**At least N_min samples in each leaf.** More rows may allow a split that fewer do not. These tables do not count
samples of more rows than lose, as walks over classes do (:mod:`mipforest.searches.exact.covers`): bounds that other
rows inherit are those of leaves of any size, by vector walks where these take the loss. Plain loops are asked for the
values of single thresholds, where a bound leaves room below the best one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.searches import entry, implement, kernel
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.walks import BYTES_OF_VECTORS, add_rows
from mipforest.searches.leaf_sums import (
    ABSOLUTE,
    CLASSES,
    LABELS,
    POISSON,
    loss_of_sums,
    loss_of_vector,
    may_skip,
)
from mipforest.searches.medians import loss_around, move_to_quantile, remove


class PlainTables(NamedTuple):
    """Rows, and their orders.

    Attributes
    ----------
    kind, N_min, parts_none
        Which loss (:mod:`mipforest.searches.leaf_sums`), least number of samples in a leaf, and whether a node above
        the last level may have a split that parts none of its rows, as it may have to split.
    rank
        (p, n) ranks of the rows.
    order
        (p, n) rows in the order of each feature; (p + 1, n) for the absolute loss, the last by target.
    value
        (n, V) what is summed: the costs of predicting each class, or the statistics of numbers.
    wide
        (n, W) the same as it is added up, and last the number of samples in the row: of more than three statistics with
        zeros up to whole vectors, and as whole numbers of 32 bits where they are.
    target, place
        (n,) target, and place in its order.
    size
        (n,) number of samples in each row.
    last
        (p,) greatest rank of each feature, also where no row has it.
    below
        (p, U + 1, V) sums over the rows below each rank.
    level
        Of the quantile that a leaf predicts, of the absolute loss.
    moved
        Most that adding a row changes the loss of a leaf of labels by: where d rows go from the right side of a split
        to its left one, its value falls by d times that at most.
    """

    kind: int
    N_min: int
    parts_none: int
    rank: Int32Array
    order: Int32Array
    value: FloatArray
    wide: NDArray[Any]
    target: FloatArray
    place: Int32Array
    size: IntArray
    last: IntArray
    below: FloatArray
    use: NDArray[np.uint8]
    group: IntArray
    level: float
    moved: float


class PlainSide(NamedTuple):
    """Rows of a side in every order, and what scans work in.

    Attributes
    ----------
    order
        As of the tables; both sides share the memory.
    span
        (2,) first place of the side in every order, and number of its rows.
    totals
        (2, V) sums over both parts of a pair.
    sums
        (3, W) over what was scanned of both parts, and of the rows between.
    before, after
        (n,) links of rows by target.
    middle, lists
        (2,) and (4, 2) of the list of each part: the row at its median; sums of weight and of weight times target, of
        all and of those before the median.
    lines
        (4, n) losses left and right of each place, of both parts.
    """

    order: Int32Array
    span: IntArray
    totals: FloatArray
    sums: NDArray[Any]
    before: Int32Array
    after: Int32Array
    middle: IntArray
    lists: FloatArray
    lines: FloatArray


# ---------------------------------------------------------------------- sides


@kernel
def restrict(tables: PlainTables, sides: tuple[PlainSide, PlainSide], f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    n, rank, on_left = tables.order.shape[1], tables.rank[f], 0
    for i in range(n):
        on_left += rank[i] < t
    sides[0].span[0], sides[0].span[1] = 0, on_left
    sides[1].span[0], sides[1].span[1] = on_left, n - on_left
    for g in range(tables.order.shape[0]):
        source, to, left, right = tables.order[g], sides[0].order[g], 0, on_left
        for i in range(n):
            row = source[i]
            if rank[row] < t:
                to[left] = row
                left += 1
            else:
                to[right] = row
                right += 1


@kernel
def leaf_below(tables: PlainTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    last = tables.below.shape[1] - 1
    if tables.kind == ABSOLUTE:
        return _median_loss(tables, f, t, right)
    return loss_of_rest(
        tables.kind, tables.below[f, last if right else t], tables.below[f, t if right else 0], False
    )


@kernel
def _median_loss(tables: PlainTables, f: int, t: int, right: bool) -> float:
    """Return the pinball loss around the weighted quantile of the rows on one side of a threshold."""
    last = tables.below.shape[1] - 1
    weight, weight_y = tables.below[f, t, 0], tables.below[f, t, 1]
    if right:
        weight, weight_y = tables.below[f, last, 0] - weight, tables.below[f, last, 1] - weight_y
    through, through_y = 0.0, 0.0
    for i in range(tables.order.shape[1]):
        row = tables.order[-1, i]
        if (tables.rank[f, row] >= t) != right:
            continue
        y = tables.target[row]
        through += tables.value[row, 0]
        through_y += tables.value[row, 1]
        if through >= tables.level * weight:
            return loss_around(tables.level, y, through, through_y, weight, weight_y)
    return 0.0


# ---------------------------------------------------------------------- best splits


@kernel
def pair(
    tables: PlainTables, rows: PlainSide, f: int, below: int, first: int, cost: float,
    enough: float, totals: FloatArray, out: FloatArray,  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    # Without rows nothing is lost: bounds are for leaves of any size, 0 included.
    return _scan(tables, rows, f, below, first, cost, 0, out)


@kernel
def sized_pair(
    tables: PlainTables, rows: PlainSide, f: int, below: int, first: int,
    low: int, high: int,  # noqa: ARG001
    cost: float,
    totals: FloatArray,  # noqa: ARG001
    out: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """As :func:`pair`, for leaves of at least ``N_min`` samples; of one threshold, as these are the samples."""
    return _scan(tables, rows, f, below, first, cost, tables.N_min, out)


@kernel
def restrict_sized(
    tables: PlainTables, sides: tuple[PlainSide, PlainSide], f: int, t: int,
    low: int, high: int,  # noqa: ARG001
) -> None:  # fmt: skip
    """As :func:`restrict`."""
    restrict(tables, sides, f, t)


@kernel
def _scan(
    tables: PlainTables, rows: PlainSide, f: int, below: int, first: int, cost: float, N_min: int, out: Any
) -> tuple[float, float]:
    """Scan every feature for the best split of the rows below a rank, and of those from a rank on."""
    V, W, begin, m = tables.value.shape[1], tables.wide.shape[1], rows.span[0], rows.span[1]
    total, sums, by, end = rows.totals, rows.sums, tables.rank[f], begin + m
    _add(tables, rows, rows.order[0], begin, end, by, below, first, True)
    n_left, n_right = int(sums[0, W - 1]), int(sums[1, W - 1])
    for s in range(2):
        for v in range(V):
            total[s, v] = sums[s, v]
    if tables.kind == ABSOLUTE:
        best_left, best_right = losses_of_quantiles(tables, rows, by, below, first)
    else:
        best_left = loss_of_rest(tables.kind, total[0], total[0], True)
        best_right = loss_of_rest(tables.kind, total[1], total[1], True)
    leaf_left, leaf_right = best_left, best_right
    # No rows are none too few where the split above may part none.
    best_left = best_left if n_left >= N_min or (n_left == 0 and tables.parts_none != 0) else np.inf
    best_right = best_right if n_right >= N_min or (n_right == 0 and tables.parts_none != 0) else np.inf
    # A split that parts no row is one of a node that has to split.
    none_left, none_right = best_left + cost, best_right + cost
    must_left, must_right = has_to_split(tables.use, out, 0), has_to_split(tables.use, out, 1)
    if must_left:
        best_left = np.inf
    if must_right:
        best_right = np.inf
    for g in range(tables.rank.shape[0]):
        on_left = usable(tables.use, tables.group, out, 0, g)
        on_right = usable(tables.use, tables.group, out, 1, g)
        if not (on_left or on_right):
            continue
        order, rank = rows.order[g], tables.rank[g]
        # Places up to which no split is better than the best one.
        due_left, due_right = 0 if on_left else end, 0 if on_right else end
        if must_left and on_left and (N_min <= 1 or _parts_none(tables, rows, g, by, 0, below)):
            best_left = min(best_left, none_left)
        if must_right and on_right and (N_min <= 1 or _parts_none(tables, rows, g, by, first, 2**31 - 1)):
            best_right = min(best_right, none_right)
        if tables.kind == ABSOLUTE:
            note_losses(tables, rows, g, by, below, first)
        i, left, right = begin, 0, 0
        while i < end:
            j = max(i + 1, min(end, due_left, due_right))
            while j < end and rank[order[j]] == rank[order[j - 1]]:
                j += 1
            _add(tables, rows, order, i, j, by, below, first, i == begin)
            moved_left, moved_right, i = sums[0, W - 1] > left, sums[1, W - 1] > right, j
            left, right = int(sums[0, W - 1]), int(sums[1, W - 1])
            if on_left and moved_left and i >= due_left and left >= N_min and n_left - left >= N_min:
                value = _value(tables.kind, rows, 0, j - 1, leaf_left, best_left, cost)
                best_left = min(best_left, value)
                if tables.kind > LABELS:
                    due_left = i + int((value - best_left) / tables.moved)
            if on_right and moved_right and i >= due_right and right >= N_min and n_right - right >= N_min:
                value = _value(tables.kind, rows, 1, j - 1, leaf_right, best_right, cost)
                best_right = min(best_right, value)
                if tables.kind > LABELS:
                    due_right = i + int((value - best_right) / tables.moved)
    return best_left, best_right


@kernel
def _add(
    tables: PlainTables, rows: PlainSide, order: Int32Array, begin: int, end: int, by: Int32Array, below: int,
    first: int, anew: bool,
) -> None:  # fmt: skip
    """Add the statistics of rows in some places of an order to the sums of both parts, or begin these anew."""
    W, wide, sums = tables.wide.shape[1], tables.wide, rows.sums
    if anew:
        sums[:, :] = 0
    if W > 4:
        for v in range(0, W, BYTES_OF_VECTORS // wide.itemsize):
            add_rows(order, begin, end, by, below, first, wide, W, v, sums)
        return
    for i in range(begin, end):
        row = order[i]
        # By a sum, as half of all branches would be missed: rows between the parts have sums, too.
        s = 1 + int(by[row] < first) - 2 * int(by[row] < below)
        for v in range(W):
            sums[s, v] += wide[row, v]


@kernel
def _parts_none(tables: PlainTables, rows: PlainSide, g: int, by: Int32Array, low: int, high: int) -> bool:
    """Return whether some threshold of a feature parts none of the rows of a side with other ranks in an interval."""
    begin, m, rank, last = rows.span[0], rows.span[1], tables.rank[g], tables.last[g]
    least, most = last, 0
    for i in range(begin, begin + m):
        row = rows.order[g, i]
        if low <= by[row] < high:
            least, most = min(least, rank[row]), max(most, rank[row])
    return bool(last > 0 and (least > 0 or most < last))


@kernel
def _value(kind: int, rows: PlainSide, s: int, i: int, leaf: float, best: float, cost: float) -> float:
    """Return the value of a split of one part, or that of the best one so far, where it is no better."""
    if kind == ABSOLUTE:
        return float(cost + rows.lines[2 * s, i] + rows.lines[2 * s + 1, i])
    total = rows.totals[s]
    sums = rows.sums[s, : len(total)]
    if kind == POISSON and may_skip(sums[0], sums[1], total[0], total[1], leaf + cost - best):
        return best
    return float(cost + (loss_of_rest(kind, sums, sums, True) + loss_of_rest(kind, total, sums, False)))


@kernel
def loss_of_rest(kind: int, total: FloatArray, sums: FloatArray, alone: bool) -> float:
    """Return the loss of a leaf of all rows less some, or of all."""
    if kind == CLASSES:
        least = np.inf
        for k in range(len(total)):
            least = min(least, total[k] if alone else total[k] - sums[k])
        return float(max(0.0, least))
    if len(total) > 3:
        return loss_of_vector(kind, total, sums, 0.0 if alone else 1.0)
    if alone:
        return loss_of_sums(kind, total[0], total[1], total[2])
    return loss_of_sums(kind, total[0] - sums[0], total[1] - sums[1], total[2] - sums[2])


@kernel
def losses_of_quantiles(
    tables: PlainTables, rows: PlainSide, by: Int32Array, below: int, first: int
) -> tuple[float, float]:
    """Return the pinball losses of one leaf for both parts."""
    begin, m, left, right = rows.span[0], rows.span[1], 0.0, 0.0
    for s in range(2):
        through, through_y, weight, weight_y = 0.0, 0.0, rows.totals[s, 0], rows.totals[s, 1]
        for i in range(begin, begin + m):
            row = rows.order[-1, i]
            if by[row] >= below if s == 0 else by[row] < first:
                continue
            y = tables.target[row]
            through += tables.value[row, 0]
            through_y += tables.value[row, 1]
            if through >= tables.level * weight:
                loss = loss_around(tables.level, y, through, through_y, weight, weight_y)
                if s == 0:
                    left = loss
                else:
                    right = loss
                break
    return left, right


@kernel
def note_losses(tables: PlainTables, rows: PlainSide, g: int, by: Int32Array, below: int, first: int) -> None:
    """Write the pinball losses left and right of each place in the order of g, of both parts."""
    begin, m, order, lists = rows.span[0], rows.span[1], rows.order[g], rows.lists
    weight, weight_y, before_w, before_y = lists[0], lists[1], lists[2], lists[3]
    for ascending in range(2):
        last_left, last_right = -1, -1
        for s in range(2):
            rows.middle[s] = -1
            for v in range(4):
                lists[v, s] = 0.0
        for i in range(begin, begin + m):
            row = rows.order[-1, i]
            s = 0 if by[row] < below else 1
            if s == 1 and by[row] < first:
                continue
            previous = last_left if s == 0 else last_right
            rows.before[row], rows.after[row] = previous, -1
            if previous >= 0:
                rows.after[previous] = row
            else:
                rows.middle[s] = row
            if s == 0:
                last_left = row
            else:
                last_right = row
            weight[s] += tables.value[row, 0]
            weight_y[s] += tables.value[row, 1]
        left = move_to_quantile(tables, rows.middle, 0, weight, weight_y, before_w, before_y, rows)
        right = move_to_quantile(tables, rows.middle, 1, weight, weight_y, before_w, before_y, rows)
        for step in range(m):
            i = begin + step if ascending == 1 else begin + m - 1 - step
            row = order[i]
            if ascending == 0:
                rows.lines[0, i], rows.lines[2, i] = left, right
            if by[row] < below:
                left = remove(tables, row, 0, rows.middle, weight, weight_y, before_w, before_y, rows)
            elif by[row] >= first:
                right = remove(tables, row, 1, rows.middle, weight, weight_y, before_w, before_y, rows)
            if ascending == 1:
                rows.lines[1, i], rows.lines[3, i] = left, right


@entry
def losses_of_splits(tables: PlainTables, rows: PlainSide, lines: FloatArray) -> None:
    """Write the absolute losses of both leaves after each place in the order of every feature, for all rows.

    Parameters
    ----------
    lines
        (p, n) written.
    """
    n, ranks = tables.order.shape[1], tables.rank[0]
    rows.span[0], rows.span[1] = 0, n
    for g in range(tables.rank.shape[0]):
        note_losses(tables, rows, g, ranks, tables.below.shape[1], tables.below.shape[1])
        for i in range(n):
            lines[g, i] = rows.lines[0, i] + rows.lines[1, i]


@entry
def take_all(tables: PlainTables, side: PlainSide) -> None:
    """Make all rows, which are there in every order, those of a side."""
    side.span[0], side.span[1] = 0, tables.order.shape[1]


implement(PlainTables, restrict, restrict_sized, leaf_below, pair, sized_pair)
