"""What weights of wrong classes are to a search by covers: tables of whole numbers or doubles, leaves and walks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import IntArray
from mipforest.searches import implement, kernel, operation
from mipforest.searches.exact.domains import FALLS, RISES, UPPER, has_to_split, labels_of_leaves, usable
from mipforest.searches.exact.walks import (
    CLASSES_AT_A_TIME,
    choose_slots,
    found_split,
    sums_of_both,
    walk_both,
    walk_both_sized,
    walk_classes,
    walk_classes_sized,
    weights_of_classes,
)

#: Lanes of vectors by the bytes of a weight.
_LANES = (0, 0, 32, 0, 16, 0, 0, 0, 8)


class TwoClasses(NamedTuple):
    """Rows of two classes in the order of every feature, as walks read them.

    Attributes
    ----------
    rank
        (p, p, N) ``rank[f, g]``: ranks in f of the rows in the slots of the order of g; 16 or 32 bits.
    walk, penalty
        (p, N) signed weights of the rows in slots, and what is added between rows of equal value: whole numbers of 16
        or 32 bits, or doubles. Where leaves have a least size, numbers of samples in slots stand below the weights,
        (2 p, N).
    below
        (p, U + 1, 2) weight of each class among the rows below each rank: 32-bit whole numbers or doubles.
    last
        (p,) greatest rank of each feature.
    N_min, parts_none
        Least number of samples in a leaf, and whether a node above the last level may have a split that parts none of
        its rows, as it may have to split.
    leaf
        (p,) which side below a feature is one leaf, and of which label (:mod:`mipforest.searches.exact.domains`).
    """

    rank: NDArray[Any]
    walk: NDArray[Any]
    penalty: NDArray[Any]
    below: NDArray[Any]
    last: IntArray
    N_min: int
    parts_none: int
    leaf: IntArray
    use: NDArray[np.uint8]
    group: IntArray


class ManyClasses(NamedTuple):
    """Rows of K classes; as :class:`TwoClasses`, but for labels (p, N) of 16 bits, -1 in empty slots, and weights.

    ``size`` (p, N) are numbers of samples in slots, the weights where leaves may have any size; ``rows`` (1,) is the
    number of rows, and ``most`` (1,) the penalty.
    """

    rank: NDArray[Any]
    walk: NDArray[np.int16]
    weight: NDArray[Any]
    size: NDArray[Any]
    penalty: NDArray[Any]
    below: NDArray[Any]
    last: IntArray
    N_min: int
    parts_none: int
    rows: IntArray
    most: NDArray[Any]
    use: NDArray[np.uint8]
    group: IntArray


#: Entries of :attr:`LabelPart.span`: first slot of the side, and how many it has; its feature, and its ranks; pairs to
#: be asked for until its rows are copied, 0 if they are, below 0 if they never will.
BEGIN, SLOTS, BY, FIRST, BEYOND, PAIRS = range(6)

#: What copying a row in one order costs, in units of its share of a walk.
COPYING = 1


class LabelPart(NamedTuple):
    """Rows of a side: in the slots of all rows, and, once many pairs were asked for, in slots of their own.

    Attributes
    ----------
    mask
        (p, N) labels in the slots of the tables, -1 for other rows.
    samples
        (p, N) sizes of its rows in the slots of the tables, where leaves have a least one.
    rank, walk, weight, size, penalty
        As of the tables, of the rows of the side only; both sides share the memory.
    slot
        (N,) workspace.
    span
        (6,) see the names of its entries.
    """

    mask: NDArray[np.int16]
    samples: NDArray[Any]
    rank: NDArray[Any]
    walk: NDArray[np.int16]
    weight: NDArray[Any]
    size: NDArray[Any]
    penalty: NDArray[Any]
    slot: IntArray
    span: IntArray


@kernel
def restrict(tables: TwoClasses, sides: tuple[NDArray[Any], NDArray[Any]], f: int, t: int) -> None:
    """Write the walks of the rows below a threshold, and of those from it on."""
    p, N = tables.penalty.shape
    for g in range(p):
        ranks, walk, on_left, on_right = tables.rank[f, g], tables.walk[g], sides[0][g], sides[1][g]
        for i in range(N):
            is_left = ranks[i] < t
            on_left[i] = walk[i] if is_left else 0
            on_right[i] = 0 if is_left else walk[i]


@kernel
def restrict_sized(
    tables: TwoClasses, sides: tuple[NDArray[Any], NDArray[Any]], f: int,
    t: int,  # noqa: ARG001
    low: int, high: int,
) -> None:  # fmt: skip
    """Write the sizes of the rows below the last threshold of an interval, and of those from the first one on."""
    p = len(tables.penalty)
    for g in range(p):
        ranks, size = tables.rank[f, g], tables.walk[p + g]
        _write_sizes(ranks, size, sides[0][p + g], sides[1][p + g], low, high)


@kernel
def _write_sizes(
    ranks: NDArray[Any], size: NDArray[Any], left: NDArray[Any], right: NDArray[Any], low: int, high: int
) -> None:
    for i in range(len(size)):
        left[i] = size[i] if ranks[i] < high else 0
        right[i] = size[i] if ranks[i] >= low else 0


@kernel
def _restrict_labels(tables: ManyClasses, sides: tuple[LabelPart, LabelPart], f: int, t: int) -> None:
    """As :func:`restrict`, of many classes."""
    p, N = tables.walk.shape
    n, on_left, lanes = tables.rows[0], 0, _LANES[tables.weight.itemsize]
    for g in range(p):
        ranks, walk, left, right = tables.rank[f, g], tables.walk[g], sides[0].mask[g], sides[1].mask[g]
        for i in range(N):
            is_left = ranks[i] < t
            left[i] = walk[i] if is_left else -1
            right[i] = -1 if is_left else walk[i]
    for i in range(N):
        on_left += sides[0].mask[0, i] >= 0
    for s in range(2):
        span, m = (sides[0].span, on_left) if s == 0 else (sides[1].span, n - on_left)
        span[BEGIN], span[SLOTS] = 0, (m + lanes - 1) // lanes * lanes
        span[BY], span[FIRST], span[BEYOND] = (
            f,
            (0 if s == 0 else t),
            (t if s == 0 else tables.below.shape[1]),
        )
        # Until then walks of all rows have cost as much as the copy.
        span[PAIRS] = 1 + COPYING * p * m // (n - m + 1)
    sides[1].span[BEGIN] = sides[0].span[SLOTS]


@kernel
def _restrict_sized_labels(
    tables: ManyClasses, sides: tuple[LabelPart, LabelPart], f: int,
    t: int,  # noqa: ARG001
    low: int, high: int,
) -> None:  # fmt: skip
    """As :func:`restrict_sized`, of many classes: rows of a side are those whose sizes count."""
    (p, N), lanes = tables.penalty.shape, _LANES[tables.weight.itemsize]
    for g in range(p):
        _write_sizes(tables.rank[f, g], tables.size[g], sides[0].samples[g], sides[1].samples[g], low, high)
    for s in range(2):
        side = sides[0] if s == 0 else sides[1]
        span, m = side.span, 0
        for i in range(N):
            m += side.samples[0, i] > 0
        span[SLOTS] = (m + lanes - 1) // lanes * lanes
        span[FIRST], span[BEYOND] = (0 if s == 0 else low), (high if s == 0 else tables.below.shape[1])
        span[PAIRS] = max(span[PAIRS], 2)  # what was copied had other sizes
    sides[1].span[BEGIN] = sides[0].span[SLOTS]


@kernel
def _copy(tables: ManyClasses, part: LabelPart) -> None:
    """Write the rows of a side into slots of their own."""
    span, lanes = part.span, _LANES[tables.weight.itemsize]
    p, steps, n, f = tables.rank.shape[0], tables.walk.shape[1] // lanes, tables.rows[0], span[BY]
    begin, N, slots = span[BEGIN], span[SLOTS], part.slot
    end = begin + N
    for g in range(p):
        labels, weights, sizes, penalty = (
            part.walk[g, begin:end],
            part.weight[g, begin:end],
            part.size[g, begin:end],
            part.penalty[g, begin:end],
        )
        for j in range(N):
            penalty[j] = tables.most[0]
        choose_slots(
            tables.rank[f, g],
            tables.rank[g, g],
            span[FIRST],
            span[BEYOND],
            n,
            lanes,
            steps,
            slots,
            N,
            penalty,
        )
        for j in range(N):
            slot = slots[j]
            labels[j] = part.mask[g, slot] if slot >= 0 else -1
            weights[j] = tables.weight[g, slot] if slot >= 0 else 0
            if tables.N_min > 1:
                sizes[j] = tables.size[g, slot] if slot >= 0 else 0
        for h in range(p):
            old, copied = tables.rank[h, g], part.rank[h, g, begin:end]
            for j in range(N):
                copied[j] = old[max(0, slots[j])]


@kernel
def leaf_below(tables: Any, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    last = tables.below.shape[1] - 1
    total, most = 0.0, 0.0
    for k in range(tables.below.shape[2]):
        w = float(tables.below[f, t, k])
        if right:
            w = float(tables.below[f, last, k]) - w
        total += w
        most = max(most, w)
    return total - most


@kernel
def _leaf_of_two(tables: TwoClasses, f: int, t: int, right: bool) -> float:
    """As :func:`leaf_below`, of two classes: the label may be given."""
    given = tables.leaf[f]
    if given < 0 or (given >= 2) != right:
        return leaf_below(tables, f, t, right)
    # The other class is wrong.
    other = 1 - given % 2
    w = float(tables.below[f, t, other])
    return float(tables.below[f, tables.below.shape[1] - 1, other]) - w if right else w


@kernel
def pair(
    tables: Any, rows: NDArray[Any], f: int, below: int, first: int, cost: float,
    enough: float,  # noqa: ARG001
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    return pair_by_ranks(tables, tables.rank[f], rows, below, first, cost, totals, out)


@operation
def pair_by_ranks(
    tables: Any, ranks: NDArray[Any], rows: NDArray[Any], below: int, first: int, cost: float, totals: NDArray[Any],
    out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    """As :func:`pair`, by the ranks (p, N) in one feature of the rows in the slots of every order."""
    raise NotImplementedError


@kernel
def _pair_of_two(
    tables: TwoClasses, ranks: NDArray[Any], rows: NDArray[Any], below: int, first: int, cost: float,
    totals: NDArray[Any], out: NDArray[Any],  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    p, steps = len(tables.penalty), rows.shape[1] // _LANES[rows.itemsize]
    sums_of_both(ranks[0], rows[0], steps, below, first, out)
    # Of the class that walks upwards, and of the other one.
    up_left, up_right = 0.5 * (out[1] + out[0]), 0.5 * (out[3] + out[2])
    down_left, down_right = out[1] - up_left, out[3] - up_right
    high_left, low_left, high_right, low_right = 0.0, 0.0, 0.0, 0.0
    any_left, any_right = False, False
    given = tables.leaf[int(out[UPPER])]
    for g in range(p):
        on_left = given // 2 != 0 and usable(tables.use, tables.group, out, 0, g)
        on_right = given // 2 != 1 and usable(tables.use, tables.group, out, 1, g)
        if not (on_left or on_right):
            continue
        walk_both(ranks[g], rows[g], tables.penalty[g], steps, below, first, out)
        if on_left:
            any_left, labels = True, labels_of_leaves(tables.use, out, 0, g)
            if labels != FALLS:
                high_left = max(high_left, float(out[0]))
            if labels != RISES:
                low_left = min(low_left, float(out[1]))
        if on_right:
            any_right, labels = True, labels_of_leaves(tables.use, out, 1, g)
            if labels != FALLS:
                high_right = max(high_right, float(out[2]))
            if labels != RISES:
                low_right = min(low_right, float(out[3]))
    left = max(0.0, min(up_left - high_left, down_left + low_left))
    right = max(0.0, min(up_right - high_right, down_right + low_right))
    leaf_left = _leaf_with(up_left, down_left, given, 0)
    leaf_right = _leaf_with(up_right, down_right, given, 1)
    if has_to_split(tables.use, out, 0):
        leaf_left = np.inf if not any_left else leaf_left + cost
    if has_to_split(tables.use, out, 1):
        leaf_right = np.inf if not any_right else leaf_right + cost
    return (
        min(leaf_left, cost + left) if any_left else leaf_left,
        min(leaf_right, cost + right) if any_right else leaf_right,
    )


@kernel
def _leaf_with(up: float, down: float, given: int, side: int) -> float:
    """Return the loss of one leaf on a side: the label may be given."""
    if given // 2 != side:
        return min(up, down)
    return down if given % 2 == 0 else up


@kernel
def sized_pair(
    tables: TwoClasses, rows: NDArray[Any], f: int, below: int, first: int, low: int, high: int, cost: float,
    totals: NDArray[Any], out: NDArray[Any],  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """As :func:`pair`, for leaves of at least ``N_min`` samples of the rows below ``high``, and from ``low`` on."""
    N = tables.N_min
    p, steps, ranks = len(tables.penalty), rows.shape[1] // _LANES[rows.itemsize], tables.rank[f]
    sums_of_both(ranks[0], rows[0], steps, below, first, out)
    up_left, up_right = 0.5 * (out[1] + out[0]), 0.5 * (out[3] + out[2])
    down_left, down_right = out[1] - up_left, out[3] - up_right
    left, right, n_left, n_right = np.inf, np.inf, -1, -1
    none_left, none_right = False, False
    must_left, must_right = has_to_split(tables.use, out, 0), has_to_split(tables.use, out, 1)
    given = tables.leaf[int(out[UPPER])]
    for g in range(p):
        on_left = given // 2 != 0 and usable(tables.use, tables.group, out, 0, g)
        on_right = given // 2 != 1 and usable(tables.use, tables.group, out, 1, g)
        if n_left >= 0 and not (on_left or on_right):
            continue
        walk_both_sized(
            ranks[g], rows[g], rows[p + g], tables.penalty[g], steps, below, first, high, low, N, out
        )
        n_left, n_right = int(out[4]), int(out[5])
        if on_left and found_split(out[0], rows.itemsize):
            labels = labels_of_leaves(tables.use, out, 0, g)
            left = min(left, _with_labels(up_left - out[0], down_left + out[1], labels))
        if on_right and found_split(out[2], rows.itemsize):
            labels = labels_of_leaves(tables.use, out, 1, g)
            right = min(right, _with_labels(up_right - out[2], down_right + out[3], labels))
        # Leaves on both sides of a split that predict the same lose what one leaf does.
        if must_left and on_left and not none_left:
            none_left = found_split(out[0], rows.itemsize) or _parts_none(
                tables, rows[p + g], 0, f, g, 0, below
            )
        if must_right and on_right and not none_right:
            none_right = found_split(out[2], rows.itemsize) or _parts_none(
                tables, rows[p + g], 0, f, g, first, 2**31 - 1
            )
    leaf_left, leaf_right = (
        _leaf_with(up_left, down_left, given, 0),
        _leaf_with(up_right, down_right, given, 1),
    )
    left = _or_leaf(tables, cost, left, leaf_left, n_left, must_left, none_left)
    right = _or_leaf(tables, cost, right, leaf_right, n_right, must_right, none_right)
    return left, right


@kernel
def _with_labels(rising: float, falling: float, labels: int) -> float:
    """Return the loss of a split whose leaves may have some labels, by its loss with each."""
    if labels == RISES:
        return rising
    return falling if labels == FALLS else min(rising, falling)


@kernel
def _or_leaf(
    tables: TwoClasses, cost: float, split: float, leaf: float, n: int, must: bool, parts_none: bool
) -> float:
    """Return the least loss of the best split and of one leaf of n samples, or of a split that parts none of them."""
    split = cost + max(0.0, split)
    # No rows are none too few where the split above may part none.
    if n < tables.N_min and (n > 0 or tables.parts_none == 0):
        return split
    if must:
        return min(split, leaf + cost) if parts_none else split
    return min(split, leaf)


@kernel
def _parts_none(tables: Any, present: NDArray[Any], absent: int, f: int, g: int, low: int, high: int) -> bool:
    """Return whether some threshold of a feature parts none of the rows with ranks of another one in an interval.

    ``present`` (N,) is more than ``absent`` in the slots of the rows.
    """
    by, rank, last = tables.rank[f, g], tables.rank[g, g], tables.last[g]
    least, most = last, 0
    for i in range(len(present)):
        if present[i] > absent and low <= by[i] < high:
            least, most = min(least, int(rank[i])), max(most, int(rank[i]))
    return bool(last > 0 and (least > 0 or most < last))


@kernel
def _pair_of_many(
    tables: ManyClasses, ranks: NDArray[Any], rows: NDArray[Any], below: int, first: int, cost: float,
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    part = rows, tables.weight, tables.size, tables.penalty
    return _both_of_many(tables, ranks, part, below, first, first, below, cost, 0, (True, True), totals, out)


@kernel
def _both_of_many(
    tables: ManyClasses, ranks: NDArray[Any], part: Any, below: int, first: int, low: int, high: int, cost: float,
    N: int, fits: tuple[bool, bool], totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    left, right, end = 0.0, 0.0, tables.below.shape[1]
    for side in range(2):
        of = (0, below, 0, high) if side == 0 else (first, end, low, end)
        loss = _one_of_many(tables, ranks, part, side, of, cost, N, fits[side], totals, out)
        if side == 0:
            left = loss
        else:
            right = loss
    return left, right


@kernel
def _pair_of_labels(
    tables: ManyClasses, rows: LabelPart, f: int, below: int, first: int, cost: float,
    enough: float,  # noqa: ARG001
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    """As :func:`pair`, of many classes."""
    fits = True, True
    return _pair_of_part(tables, rows, f, below, first, first, below, cost, 0, fits, totals, out)


@kernel
def _sized_pair_of_labels(
    tables: ManyClasses, rows: LabelPart, f: int, below: int, first: int, low: int, high: int, cost: float,
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    """As :func:`sized_pair`, of many classes."""
    N, end = tables.N_min, tables.below.shape[1]
    fits = _fits_leaf(tables, rows, f, 0, 0, high, out), _fits_leaf(tables, rows, f, 1, low, end, out)
    return _pair_of_part(tables, rows, f, below, first, low, high, cost, N, fits, totals, out)


@kernel
def _pair_of_part(
    tables: ManyClasses, rows: LabelPart, f: int, below: int, first: int, low: int, high: int, cost: float, N: int,
    fits: tuple[bool, bool], totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    span = rows.span
    if span[PAIRS] > 0:
        span[PAIRS] -= 1
        if span[PAIRS] == 0:
            _copy(tables, rows)
    if span[PAIRS] != 0:
        begin, end = 0, tables.weight.shape[1]
        ranks, labels, penalty = tables.rank[f, :, :end], rows.mask[:, :end], tables.penalty[:, :end]
        weight, size = tables.weight[:, :end], rows.samples[:, :end]
    else:
        begin, end = span[BEGIN], span[BEGIN] + span[SLOTS]
        ranks, labels, penalty = (
            rows.rank[f, :, begin:end],
            rows.walk[:, begin:end],
            rows.penalty[:, begin:end],
        )
        weight, size = rows.weight[:, begin:end], rows.size[:, begin:end]
    part = labels, weight, size, penalty
    return _both_of_many(tables, ranks, part, below, first, low, high, cost, N, fits, totals, out)


@kernel
def _one_of_many(
    tables: ManyClasses, ranks: NDArray[Any], part: Any, child: int, of: tuple[int, int, int, int], cost: float,
    N: int, fits: bool, totals: NDArray[Any], out: NDArray[Any],
) -> float:  # fmt: skip
    """Return the least loss of at most one split for the rows of a side with ranks in an interval.

    Pairs of classes are walked by falling weight: no pair is right for more than all of its two classes. The pair that
    was best before comes first, as it often is again, and leaves fewer to walk.

    ``part`` are labels, weights, numbers of samples and penalties in slots; ``of`` is the interval of ranks, and that
    of the rows that count as samples. N is the least size of a leaf, where it matters, and ``fits`` whether the rows
    may be one leaf, or a split that parts none of them.
    """
    (labels, weight, size, penalty), (first, beyond, low, high) = part, of
    p, K, steps = labels.shape[0], tables.below.shape[2], labels.shape[1] // _LANES[weight.itemsize]
    total, best = 0.0, 0.0
    for k in range(0, K, CLASSES_AT_A_TIME):
        weights_of_classes(ranks[0], labels[0], weight[0], steps, first, beyond, k, totals)
    for k in range(K):
        total += float(totals[k])
        best = max(best, float(totals[k]))
    leaf, hint, is_usable = total - best, 4 + child, False
    must = has_to_split(tables.use, out, child)
    for g in range(p):
        is_usable |= usable(tables.use, tables.group, out, child, g)
    if must:
        leaf = leaf + cost if is_usable else np.inf
    if N > 1 and not fits:
        if not must:
            return np.inf
        leaf = np.inf
    most = best
    if N > 1 and must:
        best = -1.0
    if not is_usable:
        return leaf
    before, last_weight, last_number = int(out[hint]), np.inf, -1
    winner, is_first = before, True
    while True:
        pair, heavy = -1, -1.0
        if is_first:
            pair, is_first = before, False
            heavy = float(totals[pair // K]) + float(totals[pair % K])
            if pair // K >= pair % K or heavy <= best:
                continue
        else:
            # The next pair in the order of its weight; pairs of equal weight by number.
            for i in range(K):
                for j in range(i + 1, K):
                    w, number = float(totals[i]) + float(totals[j]), i * K + j
                    follows = w < last_weight or (w == last_weight and number > last_number)
                    if follows and w > heavy:
                        pair, heavy = number, w
            if pair < 0 or heavy <= best:
                break
            last_weight, last_number = heavy, pair
            if pair == before:
                continue
        up, down = pair // K, pair % K
        for g in range(p):
            if not usable(tables.use, tables.group, out, child, g):
                continue
            if N > 1:
                walk_classes_sized(
                    ranks[g], labels[g], weight[g], size[g], penalty[g], steps, first, beyond, low, high, up, down, N,
                    out,
                )  # fmt: skip
                if not found_split(out[0], weight.itemsize):
                    continue
                best = max(best, most)  # leaves on both sides of a split that predict the same
            else:
                walk_classes(ranks[g], labels[g], weight[g], penalty[g], steps, first, beyond, up, down, out)
            right = max(float(totals[down] + out[0]), float(totals[up] - out[1]))
            if right > best:
                best, winner = right, pair
            if best >= heavy:
                break
    out[hint] = winner
    if best < 0.0:
        return leaf
    return min(leaf, cost + max(0.0, total - best))


@kernel
def _fits_leaf(
    tables: ManyClasses, rows: LabelPart, f: int, child: int, low: int, high: int, out: Any
) -> bool:
    """Return whether the rows of a side with ranks in an interval may be one leaf, or a split that parts none."""
    mask, n, N = rows.mask, 0, tables.N_min
    for i in range(mask.shape[1]):
        if low <= tables.rank[f, 0, i] < high:
            n += int(rows.samples[0, i])
    # No rows are none too few where the split above may part none.
    if n < N and (n > 0 or tables.parts_none == 0):
        return False
    if not has_to_split(tables.use, out, child):
        return True
    for g in range(len(mask)):
        if usable(tables.use, tables.group, out, child, g) and _parts_none(
            tables, mask[g], -1, f, g, low, high
        ):
            return True
    return False


implement(
    TwoClasses,
    restrict,
    restrict_sized,
    pair,
    sized_pair,
    leaf_below=_leaf_of_two,
    pair_by_ranks=_pair_of_two,
)
implement(
    ManyClasses,
    leaf_below,
    restrict=_restrict_labels,
    restrict_sized=_restrict_sized_labels,
    pair=_pair_of_labels,
    sized_pair=_sized_pair_of_labels,
    pair_by_ranks=_pair_of_many,
)
