r"""Compiled loops over boxes of hyperplanes.

A **box** is a set of hyperplanes :math:`a^\top x + b` on the features of one support: a centre :math:`c` and half
widths :math:`h`, for the weights and, last, the intercept. As features are in [0, 1], the scores of a point x over a
box fill the interval :math:`c^\top (x, 1) \pm h^\top (x, 1)`. A point may go right where some score is at least 0, and
left where some score is at most minus the gap. A group of points that stay together may go where all of them may. So
every hyperplane of the box sends the groups that may only go left to the left, and likewise right; where a group may
go neither way, no hyperplane of the box keeps the gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel

#: What a group may do over a box: bits. A box with a group of none holds no split.
LEFT, RIGHT, BOTH = 1, 2, 3

#: Why :func:`refine` ended: nothing below the target is left; the best split found is as good as the least bound; the
#: first box of the heap has decided every group; all steps were taken; the store is full.
NOTHING, FOUND, DECIDED, STEPS, FULL = 0, 1, 2, 3, 4

#: In the place of a label: the side pays for its groups together, see :func:`leaf_cost`.
BY_SUMS = -1


class Points(NamedTuple):
    """The points of a problem.

    Attributes
    ----------
    X
        (N, p) features in [0, 1], the points of a group one after the other.
    first
        (G + 1,) where each group begins.
    size
        (G,) samples of each group.
    gap
        Least distance between the scores of both sides.
    l1
        Whether the gap is that for weights of absolute sum 1, else for weights of at most 1.
    tolerance
        What a score may miss its side by.
    squared
        Whether leaves pay squared deviations from their mean.
    negligible
        Weight from which down a sum of weights is a rounding error.
    """

    X: FloatArray
    first: IntArray
    size: IntArray
    gap: float
    l1: bool
    tolerance: float
    squared: bool
    negligible: float


class Items(NamedTuple):
    """Supports with the labels of both sides.

    Attributes
    ----------
    features
        (I, K) features of each support, -1 behind the last one.
    n_features
        (I,) how many these are.
    price
        (I,) what the support costs.
    left, right
        (I,) columns of the charges of both sides, or :data:`BY_SUMS`.
    """

    features: IntArray
    n_features: IntArray
    price: FloatArray
    left: IntArray
    right: IntArray


class Store(NamedTuple):
    """Boxes, and a heap of those that are open, the least bound first, of equal ones the smallest box.

    Attributes
    ----------
    centre, half
        (C, K + 1) centre and half widths of each box; the intercept stands behind the support's weights.
    item
        (C,) support of each box.
    bound
        (C,) lower bound on the value of its splits.
    fresh
        (C,) whether the bound is that for the groups at hand.
    heap
        (C,) open boxes.
    n
        (2,) numbers of boxes and of open ones.
    best
        (K + 3,) value, support, weights and intercept of the best centre so far; its value is infinite before there is
        one.
    """

    centre: FloatArray
    half: FloatArray
    item: IntArray
    bound: FloatArray
    fresh: IntArray
    heap: IntArray
    n: IntArray
    best: FloatArray


class NodeGroups(NamedTuple):
    """The groups that reach a node.

    Attributes
    ----------
    X
        (p, M) features of their points.
    first
        (m + 1,) where the points of each group begin.
    size
        (m,) samples of each group.
    charges
        (K, m) what each pays for each label.
    middle, width
        (M,) room for the middle and half the width of the points' scores.
    sums
        (K, 4) room for sums of charges.
    """

    X: FloatArray
    first: IntArray
    size: IntArray
    charges: FloatArray
    middle: FloatArray
    width: FloatArray
    sums: FloatArray


@kernel
def leaf_cost(sums: FloatArray, column: int, squared: bool, negligible: float) -> float:
    """Return the least loss of a leaf by the sums of charges (K, ...) of its groups in a column.

    Of squared loss these are the sums of weights, of weighted targets, and of weighted squared targets.
    """
    if squared:
        weight, first = sums[0, column], sums[1, column]
        return max(0.0, sums[2, column] - first * first / weight) if weight > negligible else 0.0
    least: float = np.inf
    for k in range(len(sums)):
        least = min(least, sums[k, column])
    return least


@kernel
def least_gap(points: Points, centre: FloatArray, half: FloatArray, k: int) -> tuple[float, float]:
    """Return the least gap of a box's hyperplanes, less the tolerance, and the tolerance of their scores."""
    if not points.l1:
        return points.gap - points.tolerance, points.tolerance
    least, most = 0.0, 0.0
    for j in range(k):
        least += max(0.0, abs(centre[j]) - half[j])
        most += abs(centre[j]) + half[j]
    return points.gap * least - points.tolerance * most, points.tolerance * most


@kernel
def may_go(
    points: Points,
    features: IntArray,
    k: int,
    centre: FloatArray,
    half: FloatArray,
    gap: float,
    tolerance: float,
    g: int,
) -> int:
    """Return where a group may go over a box."""
    may = BOTH
    for i in range(points.first[g], points.first[g + 1]):
        middle, width = centre[k], half[k]
        for j in range(k):
            x = points.X[i, features[j]]
            middle += centre[j] * x
            width += half[j] * x
        if middle + width < -tolerance:
            may &= LEFT
        if middle - width > -gap:
            may &= RIGHT
        if may == 0:
            break
    return may


@entry
def sides(
    points: Points,
    features: IntArray,
    k: int,
    centre: FloatArray,
    half: FloatArray,
    groups: IntArray,
    may: IntArray,
) -> int:
    """Write where each of some groups (m,) may go over a box; return how many may go both ways, -1 for no split."""
    gap, tolerance = least_gap(points, centre, half, k)
    open_groups = 0
    for r in range(len(groups)):
        may[r] = may_go(points, features, k, centre, half, gap, tolerance, groups[r])
        if may[r] == 0:
            return -1
        if may[r] == BOTH:
            open_groups += 1
    return open_groups


@kernel
def examine(points: Points, items: Items, store: Store, box: int, part: NodeGroups, least_size: int) -> float:
    """Bound a box for the groups at hand, and compare its centre with the best one; return the bound.

    A group that may go both ways pays the lesser charge, or what it pays alone where sides pay by sums. The bound is
    infinite where the box holds no split.
    """
    one = store.item[box]
    k, n_groups, n_points = items.n_features[one], len(part.size), part.X.shape[1]
    centre, half, middle, width = store.centre[box], store.half[box], part.middle, part.width
    gap, tolerance = least_gap(points, centre, half, k)
    gap_there = points.gap
    if points.l1:
        weights = 0.0
        for j in range(k):
            weights += abs(centre[j])
        gap_there *= weights
    for i in range(n_points):
        middle[i], width[i] = centre[k], half[k]
    for j in range(k):
        x, c, h = part.X[items.features[one, j]], centre[j], half[j]
        for i in range(n_points):
            middle[i] += c * x[i]
            width[i] += h * x[i]
    price = items.price[one]
    charge_left, charge_right = part.charges[items.left[one]], part.charges[items.right[one]]
    bound: float = price
    value, undecided = price, 0
    n_left, n_right, own_left, own_right = 0, 0, 0, 0
    by_sums, sums, n_labels = items.left[one] == BY_SUMS, part.sums, len(part.charges)
    if by_sums:
        for k in range(n_labels):
            for side in range(4):
                sums[k, side] = 0.0
    for r in range(n_groups):
        may_left, may_right, goes_left, goes_right = True, True, True, True
        for i in range(part.first[r], part.first[r + 1]):
            may_right &= middle[i] + width[i] >= -tolerance
            may_left &= middle[i] - width[i] <= -gap
            goes_right &= middle[i] >= 0.0
            goes_left &= middle[i] <= -gap_there
        left, right = charge_left[r], charge_right[r]
        size = part.size[r]
        if by_sums:
            own = (
                leaf_cost(part.charges, r, points.squared, points.negligible)
                if may_left and may_right
                else 0.0
            )
            left, right = own, own
            for k in range(n_labels):
                if may_left != may_right:
                    sums[k, 0 if may_left else 1] += part.charges[k, r]
                sums[k, 2 if goes_left else 3] += part.charges[k, r]
        low = min(left if may_left else float("inf"), right if may_right else float("inf"))
        bound += low
        value += (
            (0.0 if by_sums else left if goes_left else right) if goes_left or goes_right else float("inf")
        )
        undecided += may_left and may_right
        n_left += size if may_left else 0
        n_right += size if may_right else 0
        own_left += size if goes_left else 0
        own_right += 0 if goes_left else size
    if by_sums:
        squared, negligible = points.squared, points.negligible
        bound += leaf_cost(sums, 0, squared, negligible) + leaf_cost(sums, 1, squared, negligible)
        value += leaf_cost(sums, 2, squared, negligible) + leaf_cost(sums, 3, squared, negligible)
    if n_left < least_size or n_right < least_size:
        bound = float("inf")
    if bound < float("inf"):
        if value < store.best[0] and own_left >= least_size and own_right >= least_size:
            store.best[0], store.best[1] = value, one
            for q in range(store.centre.shape[1]):
                store.best[2 + q] = centre[q]
        store.bound[box] = max(bound, store.bound[box])
        store.fresh[box] = 1 + undecided
    return bound


@kernel
def before(store: Store, i: int, j: int) -> bool:
    """Return whether a box comes out of the heap before another one."""
    if store.bound[i] != store.bound[j]:
        return bool(store.bound[i] < store.bound[j])
    wide_i, wide_j = 0.0, 0.0
    for q in range(store.half.shape[1]):
        wide_i, wide_j = max(wide_i, store.half[i, q]), max(wide_j, store.half[j, q])
    return wide_i < wide_j


@kernel
def sink(store: Store) -> None:
    """Move the first box of the heap down to its place."""
    place, n = 0, store.n[1]
    while True:
        child = 2 * place + 1
        if child >= n:
            return
        if child + 1 < n and before(store, store.heap[child + 1], store.heap[child]):
            child += 1
        if not before(store, store.heap[child], store.heap[place]):
            return
        store.heap[child], store.heap[place] = store.heap[place], store.heap[child]
        place = child


@kernel
def push(store: Store, box: int) -> None:
    """Put a box into the heap."""
    place = store.n[1]
    store.n[1] += 1
    store.heap[place] = box
    while place > 0:
        parent = (place - 1) // 2
        if not before(store, store.heap[place], store.heap[parent]):
            return
        store.heap[place], store.heap[parent] = store.heap[parent], store.heap[place]
        place = parent


@kernel
def pop(store: Store) -> None:
    """Take the first box out of the heap."""
    store.n[1] -= 1
    store.heap[0] = store.heap[store.n[1]]
    sink(store)


@kernel
def bisect_first(store: Store, q: int) -> int:
    """Take the first box out of the heap, halve it along a coordinate, and return the number of the other half."""
    box, other = store.heap[0], store.n[0]
    pop(store)
    store.n[0] += 1
    store.half[box, q] /= 2
    for r in range(store.half.shape[1]):
        store.centre[other, r], store.half[other, r] = store.centre[box, r], store.half[box, r]
    store.item[other], store.bound[other] = store.item[box], store.bound[box]
    store.centre[box, q] -= store.half[box, q]
    store.centre[other, q] += store.half[box, q]
    return int(other)


@entry
def heapify(store: Store) -> None:
    """Make a heap of all boxes."""
    store.n[1] = 0
    for box in range(store.n[0]):
        push(store, box)


@entry
def add(store: Store, box: int) -> None:
    """Put a box into the heap."""
    push(store, box)


@entry
def drop_first(store: Store) -> None:
    """Take the first box out of the heap."""
    pop(store)


@entry
def refine(
    points: Points,
    items: Items,
    store: Store,
    part: NodeGroups,
    least_size: int,
    cutoff: float,
    target: float,
    rounding: float,
    steps: int,
) -> tuple[int, int]:
    """Bisect boxes, least bound first, until the least value of a last split of some groups is known, or large enough.

    Parameters
    ----------
    points, items, store
        The problem, and its boxes.
    part
        The groups that reach the node.
    least_size
        Least number of samples on either side.
    cutoff
        Boxes whose bound reaches this are dropped.
    target
        Where the least bound reaches this the loop ends.
    rounding
        Values that differ by less are equal.
    steps
        Most boxes to bisect.

    Returns
    -------
    Why it ended, and how many boxes it has bisected.
    """
    done = 0
    while store.n[1] > 0:
        box = store.heap[0]
        if store.bound[box] >= target:
            return NOTHING, done
        if not store.fresh[box]:
            if examine(points, items, store, box, part, least_size) >= cutoff:
                pop(store)
            else:
                sink(store)
            continue
        if store.best[0] <= store.bound[box] + rounding:
            return FOUND, done
        if store.fresh[box] == 1:
            return DECIDED, done
        if done >= steps:
            return STEPS, done
        if store.n[0] >= len(store.bound):
            return FULL, done
        done += 1
        widest = 0
        for q in range(store.half.shape[1]):
            if store.half[box, q] > store.half[box, widest]:
                widest = q
        for child in (box, bisect_first(store, widest)):
            if examine(points, items, store, child, part, least_size) < cutoff:
                push(store, child)
    return NOTHING, done
