r"""Compiled loops over boxes of hyperplanes.

A **box** is a set of hyperplanes :math:`a^\top x + b` on the features of one support: a centre :math:`c` and half
widths :math:`h`, for the weights and, last, the intercept. As features are in [0, 1], the scores of a point x over a box
fill the interval :math:`c^\top (x, 1) \pm h^\top (x, 1)`. A point may go right where some score is at least 0, and left
where some score is at most minus the gap. A group of points that stay together may go where all of them may. So every
hyperplane of the box sends the groups that may only go left to the left, and likewise right; where a group may go
neither way, no hyperplane of the box keeps the gap.
"""

from __future__ import annotations

from typing import NamedTuple

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel

#: What a group may do over a box: bits. A box with a group of none holds no split.
LEFT, RIGHT, BOTH = 1, 2, 3

#: Why :func:`refine` ended: nothing below the target is left; the best split found is as good as the least bound; the
#: first box of the heap has decided every group; all steps were taken; the store is full.
NOTHING, FOUND, DECIDED, STEPS, FULL = 0, 1, 2, 3, 4


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
    """

    X: FloatArray
    first: IntArray
    size: IntArray
    gap: float
    l1: bool
    tolerance: float


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
        (I,) columns of the charges of both sides.
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


@kernel
def least_gap(points, centre, half, k):  # type: ignore[no-untyped-def]
    """Return the least gap of a box's hyperplanes, less the tolerance, and the tolerance of their scores."""
    if not points.l1:
        return points.gap - points.tolerance, points.tolerance
    least, most = 0.0, 0.0
    for j in range(k):
        least += max(0.0, abs(centre[j]) - half[j])
        most += abs(centre[j]) + half[j]
    return points.gap * least - points.tolerance * most, points.tolerance * most


@kernel
def may_go(points, features, k, centre, half, gap, tolerance, g):  # type: ignore[no-untyped-def]
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
def sides(points, features, k, centre, half, groups, may):  # type: ignore[no-untyped-def]
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
def box_bound(points, items, store, box, groups, charges, least_size, keep):  # type: ignore[no-untyped-def]
    """Return a lower bound on the value of a box's splits, infinite where it holds none, and its undecided groups.

    A group that may go both ways pays the lesser charge. The bound may be any from ``keep`` up.
    """
    one = store.item[box]
    k, left, right = items.n_features[one], items.left[one], items.right[one]
    features, centre, half = items.features[one], store.centre[box], store.half[box]
    gap, tolerance = least_gap(points, centre, half, k)
    bound = items.price[one]
    n_left, n_right, undecided = 0, 0, 0
    for r in range(len(groups)):
        g = groups[r]
        may = may_go(points, features, k, centre, half, gap, tolerance, g)
        if may == 0:
            return float("inf"), 0
        if may == BOTH:
            undecided += 1
            bound += min(charges[g, left], charges[g, right])
        elif may == LEFT:
            bound += charges[g, left]
        else:
            bound += charges[g, right]
        if may & LEFT:
            n_left += points.size[g]
        if may & RIGHT:
            n_right += points.size[g]
        if bound >= keep:
            return bound, undecided
    if n_left < least_size or n_right < least_size:
        return float("inf"), 0
    return bound, undecided


@kernel
def centre_value(points, items, store, box, groups, charges, least_size):  # type: ignore[no-untyped-def]
    """Return the value of the split in a box's centre, infinite where it keeps no gap or no least sizes."""
    one = store.item[box]
    k, left, right = items.n_features[one], items.left[one], items.right[one]
    features, centre = items.features[one], store.centre[box]
    gap = points.gap
    if points.l1:
        size = 0.0
        for j in range(k):
            size += abs(centre[j])
        gap *= size
    value = items.price[one]
    n_left, n_right = 0, 0
    for r in range(len(groups)):
        g, may = groups[r], BOTH
        for i in range(points.first[g], points.first[g + 1]):
            score = centre[k]
            for j in range(k):
                score += centre[j] * points.X[i, features[j]]
            if score < 0.0:
                may &= LEFT
            if score > -gap:
                may &= RIGHT
        if may == 0:
            return float("inf")
        if may == LEFT:
            value += charges[g, left]
            n_left += points.size[g]
        else:
            value += charges[g, right]
            n_right += points.size[g]
    return value if n_left >= least_size and n_right >= least_size else float("inf")


@kernel
def before(store, i, j):  # type: ignore[no-untyped-def]
    """Return whether a box comes out of the heap before another one."""
    if store.bound[i] != store.bound[j]:
        return store.bound[i] < store.bound[j]
    wide_i, wide_j = 0.0, 0.0
    for q in range(store.half.shape[1]):
        wide_i, wide_j = max(wide_i, store.half[i, q]), max(wide_j, store.half[j, q])
    return wide_i < wide_j


@kernel
def sink(store):  # type: ignore[no-untyped-def]
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
def push(store, box):  # type: ignore[no-untyped-def]
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
def pop(store):  # type: ignore[no-untyped-def]
    """Take the first box out of the heap."""
    store.n[1] -= 1
    store.heap[0] = store.heap[store.n[1]]
    sink(store)


@entry
def heapify(store):  # type: ignore[no-untyped-def]
    """Make a heap of all boxes."""
    store.n[1] = 0
    for box in range(store.n[0]):
        push(store, box)


@entry
def drop_first(store):  # type: ignore[no-untyped-def]
    """Take the first box out of the heap."""
    pop(store)


@entry
def refine(  # type: ignore[no-untyped-def]
    points, items, store, groups, charges, least_size, keep, target, rounding, steps
):
    """Bisect boxes, least bound first, until the least value of a last split of some groups is known, or large enough.

    Parameters
    ----------
    points, items, store
        The problem, and its boxes.
    groups
        (m,) groups that reach the node.
    charges
        (G, K) what each group pays for each label.
    least_size
        Least number of samples on either side.
    keep
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
            bound, _ = box_bound(points, items, store, box, groups, charges, least_size, keep)
            if bound >= keep:
                pop(store)
            else:
                store.bound[box] = max(bound, store.bound[box])
                store.fresh[box] = 1
                sink(store)
            continue
        value = centre_value(points, items, store, box, groups, charges, least_size)
        if value < store.best[0]:
            store.best[0], store.best[1] = value, store.item[box]
            for q in range(store.centre.shape[1]):
                store.best[2 + q] = store.centre[box, q]
        if store.best[0] <= store.bound[box] + rounding:
            return FOUND, done
        _, undecided = box_bound(points, items, store, box, groups, charges, least_size, float("inf"))
        if undecided == 0:
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
        pop(store)
        other = store.n[0]
        store.n[0] += 1
        for q in range(store.half.shape[1]):
            store.centre[other, q], store.half[other, q] = store.centre[box, q], store.half[box, q]
        store.item[other] = store.item[box]
        store.half[box, widest] /= 2
        store.half[other, widest] = store.half[box, widest]
        store.centre[box, widest] -= store.half[box, widest]
        store.centre[other, widest] += store.half[box, widest]
        least = store.bound[box]
        for child in (box, other):
            bound, _ = box_bound(points, items, store, child, groups, charges, least_size, keep)
            store.bound[child], store.fresh[child] = max(least, bound), 1
            if bound < keep:
                push(store, child)
    return NOTHING, done
