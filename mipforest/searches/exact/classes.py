"""What weights of wrong classes are to a search by covers: tables of whole numbers or doubles, leaves and walks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import IntArray
from mipforest.searches import implement, kernel, operation
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.walks import (
    CLASSES_AT_A_TIME,
    choose_slots,
    sums_of_both,
    walk_both,
    walk_classes,
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
        or 32 bits, or doubles.
    below
        (p, U + 1, 2) weight of each class among the rows below each rank: 32-bit whole numbers or doubles.
    """

    rank: NDArray[Any]
    walk: NDArray[Any]
    penalty: NDArray[Any]
    below: NDArray[Any]
    use: NDArray[np.uint8]
    group: IntArray


class ManyClasses(NamedTuple):
    """Rows of K classes; as :class:`TwoClasses`, but for labels (p, N) of 16 bits, -1 in empty slots, and weights.

    ``rows`` (1,) is their number, and ``most`` (1,) the penalty.
    """

    rank: NDArray[Any]
    walk: NDArray[np.int16]
    weight: NDArray[Any]
    penalty: NDArray[Any]
    below: NDArray[Any]
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
    rank, walk, weight, penalty
        As of the tables, of the rows of the side only; both sides share the memory.
    slot
        (N,) workspace.
    span
        (6,) see the names of its entries.
    """

    mask: NDArray[np.int16]
    rank: NDArray[Any]
    walk: NDArray[np.int16]
    weight: NDArray[Any]
    penalty: NDArray[Any]
    slot: IntArray
    span: IntArray


@kernel
def restrict(tables: TwoClasses, sides: tuple[NDArray[Any], NDArray[Any]], f: int, t: int) -> None:
    """Write the walks of the rows below a threshold, and of those from it on."""
    p, N = tables.walk.shape
    for g in range(p):
        ranks, walk, on_left, on_right = tables.rank[f, g], tables.walk[g], sides[0][g], sides[1][g]
        for i in range(N):
            is_left = ranks[i] < t
            on_left[i] = walk[i] if is_left else 0
            on_right[i] = 0 if is_left else walk[i]


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
def _copy(tables: ManyClasses, part: LabelPart) -> None:
    """Write the rows of a side into slots of their own."""
    span, lanes = part.span, _LANES[tables.weight.itemsize]
    p, steps, n, f = tables.rank.shape[0], tables.walk.shape[1] // lanes, tables.rows[0], span[BY]
    begin, N, slots = span[BEGIN], span[SLOTS], part.slot
    end = begin + N
    for g in range(p):
        labels, weights, penalty = (
            part.walk[g, begin:end],
            part.weight[g, begin:end],
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
            labels[j] = tables.walk[g, slot] if slot >= 0 else -1
            weights[j] = tables.weight[g, slot] if slot >= 0 else 0
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
    p, steps = rows.shape[0], rows.shape[1] // _LANES[rows.itemsize]
    sums_of_both(ranks[0], rows[0], steps, below, first, out)
    # Of the class that walks upwards, and of the other one.
    up_left, up_right = 0.5 * (out[1] + out[0]), 0.5 * (out[3] + out[2])
    down_left, down_right = out[1] - up_left, out[3] - up_right
    high_left, low_left, high_right, low_right = 0.0, 0.0, 0.0, 0.0
    any_left, any_right = False, False
    for g in range(p):
        on_left = usable(tables.use, tables.group, out, 0, g)
        on_right = usable(tables.use, tables.group, out, 1, g)
        if not (on_left or on_right):
            continue
        walk_both(ranks[g], rows[g], tables.penalty[g], steps, below, first, out)
        if on_left:
            any_left = True
            high_left, low_left = max(high_left, float(out[0])), min(low_left, float(out[1]))
        if on_right:
            any_right = True
            high_right, low_right = max(high_right, float(out[2])), min(low_right, float(out[3]))
    left = max(0.0, min(up_left - high_left, down_left + low_left))
    right = max(0.0, min(up_right - high_right, down_right + low_right))
    leaf_left, leaf_right = min(up_left, down_left), min(up_right, down_right)
    if has_to_split(tables.use, out, 0):
        leaf_left = np.inf if not any_left else leaf_left + cost
    if has_to_split(tables.use, out, 1):
        leaf_right = np.inf if not any_right else leaf_right + cost
    return (
        min(leaf_left, cost + left) if any_left else leaf_left,
        min(leaf_right, cost + right) if any_right else leaf_right,
    )


@kernel
def _pair_of_many(
    tables: ManyClasses, ranks: NDArray[Any], rows: NDArray[Any], below: int, first: int, cost: float,
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    return _both_of_many(tables, ranks, rows, tables.weight, tables.penalty, below, first, cost, totals, out)


@kernel
def _both_of_many(
    tables: ManyClasses, ranks: NDArray[Any], labels: NDArray[Any], weight: NDArray[Any], penalty: NDArray[Any],
    below: int, first: int, cost: float, totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    left, right = 0.0, 0.0
    for side in range(2):
        low, high = (0, below) if side == 0 else (first, tables.below.shape[1])
        loss = _one_of_many(tables, ranks, labels, weight, penalty, side, low, high, cost, totals, out)
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
    span, weight = rows.span, tables.weight
    if span[PAIRS] > 0:
        span[PAIRS] -= 1
        if span[PAIRS] == 0:
            _copy(tables, rows)
    if span[PAIRS] != 0:
        end = weight.shape[1]
        ranks, labels, penalty = tables.rank[f, :, :end], rows.mask[:, :end], tables.penalty[:, :end]
        weight = weight[:, :end]
    else:
        begin, end = span[BEGIN], span[BEGIN] + span[SLOTS]
        ranks, labels, penalty = (
            rows.rank[f, :, begin:end],
            rows.walk[:, begin:end],
            rows.penalty[:, begin:end],
        )
        weight = rows.weight[:, begin:end]
    return _both_of_many(tables, ranks, labels, weight, penalty, below, first, cost, totals, out)


@kernel
def _one_of_many(
    tables: ManyClasses, ranks: NDArray[Any], labels: NDArray[Any], weight: NDArray[Any], penalty: NDArray[Any],
    child: int, first: int, beyond: int, cost: float, totals: NDArray[Any], out: NDArray[Any],
) -> float:  # fmt: skip
    """Return the least loss of at most one split for the rows of a side with ranks in an interval.

    Pairs of classes are walked by falling weight: no pair is right for more than all of its two classes. The pair that
    was best before comes first, as it often is again, and leaves fewer to walk.
    """
    p, K, steps = labels.shape[0], tables.below.shape[2], labels.shape[1] // _LANES[weight.itemsize]
    total, best = 0.0, 0.0
    for k in range(0, K, CLASSES_AT_A_TIME):
        weights_of_classes(ranks[0], labels[0], weight[0], steps, first, beyond, k, totals)
    for k in range(K):
        total += float(totals[k])
        best = max(best, float(totals[k]))
    leaf, hint, is_usable = total - best, 4 + child, False
    for g in range(p):
        is_usable |= usable(tables.use, tables.group, out, child, g)
    if has_to_split(tables.use, out, child):
        leaf = leaf + cost if is_usable else np.inf
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
            walk_classes(
                ranks[g],
                labels[g],
                weight[g],
                penalty[g],
                steps,
                first,
                beyond,
                up,
                down,
                out,
            )
            right = max(float(totals[down] + out[0]), float(totals[up] - out[1]))
            if right > best:
                best, winner = right, pair
            if best >= heavy:
                break
    out[hint] = winner
    return min(leaf, cost + max(0.0, total - best))


implement(TwoClasses, restrict, leaf_below, pair, pair_by_ranks=_pair_of_two)
implement(
    ManyClasses,
    leaf_below,
    restrict=_restrict_labels,
    pair=_pair_of_labels,
    pair_by_ranks=_pair_of_many,
)
