r"""Compiled loops over last splits on one or two features, of weights of absolute sum 1: intervals of directions.

Such a split is a **direction** :math:`(u, \sigma (1 - u))` with a threshold t: scores of at least t go right, those of
at most t less the gap go left. The leaves have the cheapest labels, so that u from 0 to 1 and :math:`\sigma = \pm 1`
are all of them. Over an interval of u the scores of a point fill an interval, whose ends stand at those of u. So for
each t a point may go right, left, or both ways, and one pass over the sorted ends bounds **all thresholds at once**.

Groups that agree in the features of a support are one *cell*. An interval is bisected until its best threshold leaves
nothing open, or its middle is as good as its bound. A box of the heap has u in the first column of its centre, and in
the others the least and the greatest threshold that is open; half widths are those of u alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.oblique.kernels import (
    BOTH,
    DECIDED,
    FOUND,
    FULL,
    LEFT,
    NOTHING,
    RIGHT,
    STEPS,
    Items,
    NodeGroups,
    Store,
    add,
    bisect_first,
    drop_first,
    leaf_cost,
    pop,
    push,
    sink,
)
from mipforest.searches.oblique.problem import Level, ObliqueProblem, cheap_supports
from mipforest.settings import FEASIBILITY_TOLERANCE

#: Columns of a box's centre: direction, least and greatest threshold.
U, FIRST, LAST = 0, 1, 2

#: Cells of a run that are sorted by insertion.
SHORT = 24


class Lines(NamedTuple):
    """Supports of one or two features, each with a sign, and the memory of a pass.

    Attributes
    ----------
    support, sign
        (I,) support of each item, and the sign of the second weight.
    x
        (S, 2, C) features of the cells of each support; 0 where there is no second one.
    cell
        (S, G) cell of each group.
    gap
        Least distance between the scores of both sides.
    tolerance
        What a score may miss its side by.
    squared, negligible
        How leaves are charged: see :class:`~mipforest.searches.oblique.kernels.Points`.
    key, order
        (3, C) sorted scores of the middle, ends from where on left is allowed, ends up to where right is; their cells.
    gathered, n_cells
        (S,) last part whose groups were summed up by the cells of each support, and how many cells they have.
    member, points
        (S, C) and (S, 2, C) these cells, and their features.
    charges, size, least
        (S, K, C), (S, C) and (S, C) sums over the groups in each cell of charges and samples, and the least cost of a
        leaf of these groups: they share one.
    sure
        (C,) side to which each cell goes at all thresholds of a pass, and 0 where that depends on the threshold.
    may
        (C,) what each cell may do at a threshold of a pass.
    sums
        (K, 2) charges of the cells that have to go left, and right.
    around
        (2,) the nearest thresholds below and above those at which the last pass over a box was best.
    n_left
        (1,) how many cells go left there besides those that are sure to, in the order of where left is allowed.
    stack
        (2, 64) runs that are to be sorted.
    """

    support: IntArray
    sign: FloatArray
    x: FloatArray
    cell: IntArray
    gap: float
    tolerance: float
    squared: bool
    negligible: float
    key: FloatArray
    order: IntArray
    gathered: IntArray
    n_cells: IntArray
    member: IntArray
    points: FloatArray
    charges: FloatArray
    size: IntArray
    least: FloatArray
    sure: IntArray
    may: IntArray
    sums: FloatArray
    around: FloatArray
    n_left: IntArray
    stack: IntArray


@dataclass(frozen=True, eq=False)
class Directions:
    """All directions of some supports: what :class:`Lines` is made of, and the first boxes.

    Attributes
    ----------
    lines
        The lines.
    level
        Their supports, one item per sign, and all directions as boxes.
    """

    lines: Lines
    level: Level

    @classmethod
    def of(cls, problem: ObliqueProblem, limit: float) -> Directions | None:
        """Prepare the last level's supports below a price; ``None`` where some have more than two features."""
        supports, rest = cheap_supports(problem.prices[-1], limit, problem.max_features)
        if not problem.l1 or not supports or max(len(support) for support, _ in supports) > 2:
            return None
        X, n_labels, gap = problem.X, problem.charges.shape[1], problem.gap
        signed = [(i, sign) for i, (own, _) in enumerate(supports) for sign in (1.0, -1.0)[: len(own)]]
        n, G = len(signed), problem.n_groups
        cell, most = np.zeros((len(supports), G), np.int64), 0
        x = np.zeros((len(supports), 2, G))
        for i, (support, _) in enumerate(supports):
            own, of = np.unique(X[:, list(support)], axis=0, return_inverse=True)
            cell[i], most = of.ravel(), max(most, len(own))
            x[i, : len(support), : len(own)] = own.T
        numbers = np.full((n, 2), -1, dtype=np.int64)
        for one, (i, _) in enumerate(signed):
            numbers[one, : len(supports[i][0])] = supports[i][0]
        count = (numbers >= 0).sum(axis=1)
        S = len(supports)
        lines = Lines(
            support=np.array([i for i, _ in signed], dtype=np.int64),
            sign=np.array([sign for _, sign in signed]),
            x=np.ascontiguousarray(x[:, :, :most]),
            cell=cell,
            gap=gap,
            tolerance=FEASIBILITY_TOLERANCE,
            squared=problem.squared,
            negligible=problem.negligible,
            key=np.zeros((3, most)),
            order=np.zeros((3, most), np.int64),
            gathered=np.full(S, -1),
            n_cells=np.zeros(S, np.int64),
            member=np.zeros((S, most), np.int64),
            points=np.zeros((S, 2, most)),
            charges=np.zeros((S, n_labels, most)),
            size=np.zeros((S, most), np.int64),
            least=np.zeros((S, most)),
            sure=np.zeros(most, np.int64),
            may=np.zeros(most, np.int64),
            sums=np.zeros((n_labels, 2)),
            around=np.zeros(2),
            n_left=np.zeros(1, np.int64),
            stack=np.zeros((2, 64), np.int64),
        )
        prices = np.array([supports[i][1] for i, _ in signed])
        nothing = np.zeros(n, np.int64)
        # Scores are in [-1, 1]; a threshold stands up to a gap above one. One feature has the direction 1.
        centre = np.column_stack([np.where(count == 2, 0.5, 1.0), np.full(n, -2.0), np.full(n, 2.0 + gap)])
        half = np.column_stack([np.where(count == 2, 0.5, 0.0), np.zeros((n, 2))])
        items = Items(numbers, count, prices, nothing, nothing)
        return cls(lines, Level(items, centre, half, np.arange(n), rest))

    def with_own_memory(self) -> Directions:
        """Return the same directions for another thread: what a pass writes is its own."""
        kept = {"support", "sign", "x", "cell", "gap", "tolerance", "squared", "negligible"}
        own = {name: value.copy() for name, value in self.lines._asdict().items() if name not in kept}
        own["gathered"][:] = -1
        return replace(self, lines=self.lines._replace(**own))

    def left_of(self, one: int, groups: IntArray) -> BoolArray:
        """Return which groups (m,) go left where the last pass, over a box of an item, was best and left none open."""
        lines = self.lines
        i = lines.support[one]
        sure = np.flatnonzero(lines.sure[: lines.n_cells[i]] == LEFT)
        cells = lines.member[i, np.concatenate([sure, lines.order[1, : lines.n_left[0]]])]
        left: BoolArray = np.isin(lines.cell[i, groups], cells)
        return left

    def exclude(self, store: Store) -> None:
        """Take the thresholds where the last pass was best out of the first box of the heap, which falls into two."""
        box, other = int(store.heap[0]), int(store.n[0])
        drop_first(store)
        below, above = self.lines.around
        for column in (store.centre, store.half, store.item, store.bound):
            column[other] = column[box]
        store.n[0] += 1
        store.centre[box, LAST], store.centre[other, FIRST] = below, above
        for part in (box, other):
            store.fresh[part] = 0
            if store.centre[part, FIRST] <= store.centre[part, LAST]:
                add(store, part)


@kernel
def sort(key: FloatArray, order: IntArray, n: int, stack: IntArray) -> None:
    """Sort keys (n,) with what belongs to them: quicksort down to short runs, then insertion."""
    depth = 0
    stack[0, 0], stack[1, 0] = 0, n - 1
    if n > SHORT:
        depth = 1
    while depth > 0:
        depth -= 1
        low, high = stack[0, depth], stack[1, depth]
        while high - low >= SHORT:
            middle = (low + high) // 2
            a, b, c = key[low], key[middle], key[high]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = low, high
            while i <= j:
                while key[i] < pivot:
                    i += 1
                while key[j] > pivot:
                    j -= 1
                if i <= j:
                    key[i], key[j] = key[j], key[i]
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            # The larger part waits: the stack holds the logarithm of n at most.
            if j - low > high - i:
                stack[0, depth], stack[1, depth] = low, j
                low = i
            else:
                stack[0, depth], stack[1, depth] = i, high
                high = j
            depth += 1
    for i in range(1, n):
        k, o = key[i], order[i]
        j = i - 1
        while j >= 0 and key[j] > k:
            key[j + 1], order[j + 1] = key[j], order[j]
            j -= 1
        key[j + 1], order[j + 1] = k, o


@kernel
def gather(lines: Lines, i: int, part: NodeGroups, groups: IntArray, number: int) -> None:
    """Sum up the groups at hand, the part of a number, by the cells of a support, unless that is done."""
    if lines.gathered[i] == number:
        return
    n_labels, n = len(part.charges), 0
    member, charges, size, least = lines.member[i], lines.charges[i], lines.size[i], lines.least[i]
    for c in range(len(lines.may)):
        lines.may[c] = -1
    for r in range(len(groups)):
        c = lines.cell[i, groups[r]]
        if lines.may[c] < 0:
            lines.may[c] = n
            member[n], size[n] = c, 0
            for k in range(n_labels):
                charges[k, n] = 0.0
            for f in range(2):
                lines.points[i, f, n] = lines.x[i, f, c]
            n += 1
        q = lines.may[c]
        for k in range(n_labels):
            charges[k, q] += part.charges[k, r]
        size[q] += part.size[r]
    for q in range(n):
        least[q] = leaf_cost(charges, q, lines.squared, lines.negligible)
    lines.gathered[i], lines.n_cells[i] = number, n


@kernel
def bound_box(
    lines: Lines,
    items: Items,
    store: Store,
    box: int,
    part: NodeGroups,
    groups: IntArray,
    number: int,
    least_size: int,
    cutoff: float,
) -> float:
    """Bound a box for the groups at hand, narrow its thresholds, and compare its middle with the best split.

    Thresholds at either end of the range whose bound reaches ``cutoff`` are cut off.

    Returns
    -------
    The bound, infinite where no threshold is left.
    """
    one = store.item[box]
    gather(lines, lines.support[one], part, groups, number)
    cells = _sort_cells(lines, store, box)
    best = _bound_thresholds(lines, store, box, cells, items.price[one], least_size, cutoff)
    if best < np.inf:
        _try_middle(lines, items, store, box, cells, max(1, least_size))
    return best


class Cells(NamedTuple):
    """The cells of a box.

    Attributes
    ----------
    active
        How many go left at some thresholds of the box and right at others; most do one of both at all of them.
    left, right
        Samples of the cells that are sure to go left, and of all others.
    reach, floor
        In the middle of the box, the greatest score of the cells that are sure to go left, and the least of those that
        are sure to go right.
    """

    active: int
    left: int
    right: int
    reach: float
    floor: float


@kernel
def _sort_cells(lines: Lines, store: Store, box: int) -> Cells:
    """Put cells on their sure sides, and sort the scores of the others: left from one end on, right up to the other."""
    one = store.item[box]
    i_own, sign = lines.support[one], lines.sign[one]
    x, y, charges = lines.points[i_own, 0], lines.points[i_own, 1], lines.charges[i_own]
    size, sums, key, order = lines.size[i_own], lines.sums, lines.key, lines.order
    first, last = store.centre[box, FIRST], store.centre[box, LAST]
    low_u, high_u = store.centre[box, U] - store.half[box, U], store.centre[box, U] + store.half[box, U]
    for k in range(len(sums)):
        sums[k, 0], sums[k, 1] = 0.0, 0.0
    active, left, right, reach, floor = 0, 0, 0, -np.inf, np.inf
    for c in range(lines.n_cells[i_own]):
        one_end = low_u * x[c] + sign * (1.0 - low_u) * y[c]
        other = high_u * x[c] + sign * (1.0 - high_u) * y[c]
        left_from = min(one_end, other) + lines.gap - lines.tolerance
        right_to = max(one_end, other) + lines.tolerance
        middle = 0.5 * (one_end + other)
        if right_to < first and left_from <= first:
            lines.sure[c] = LEFT
            reach = max(reach, middle)
            left += size[c]
            _charge(sums, 0, charges, c, 1.0)
            continue
        right += size[c]
        _charge(sums, 1, charges, c, 1.0)
        if left_from > last and right_to >= last:
            lines.sure[c] = RIGHT
            floor = min(floor, middle)
            continue
        lines.sure[c], lines.may[c] = 0, RIGHT
        key[0, active], key[1, active], key[2, active] = middle, left_from, right_to
        order[0, active], order[1, active], order[2, active] = c, c, c
        active += 1
    sort(key[1], order[1], active, lines.stack)
    sort(key[2], order[2], active, lines.stack)
    return Cells(active, left, right, reach, floor)


@kernel
def _charge(sums: FloatArray, side: int, charges: FloatArray, c: int, sign: float) -> None:
    """Add the charges of a cell to those of a side, or take them away."""
    for k in range(len(sums)):
        sums[k, side] += sign * charges[k, c]


@kernel
def _bound_thresholds(
    lines: Lines, store: Store, box: int, cells: Cells, price: float, least_size: int, cutoff: float
) -> float:
    """Bound all thresholds of a box, also those that part none of the groups at hand, as others may join them.

    The state changes where a cell may go left, and where it may no longer go right. All charges are on the left at the
    end.
    """
    i_own = lines.support[store.item[box]]
    first, last = store.centre[box, FIRST], store.centre[box, LAST]
    charges, size, least = lines.charges[i_own], lines.size[i_own], lines.least[i_own]
    sums, key, order, may, n = lines.sums, lines.key, lines.order, lines.may, cells.active
    i, j, blocked, n_open, loose = 0, 0, 0, 0, 0.0
    may_left, may_right = cells.left, cells.right
    now, entering = -np.inf, True
    best, best_open, lowest, highest = np.inf, 0, np.inf, -np.inf
    while True:
        leaving = j < n and (i >= n or key[2, j] < key[1, i])
        then = key[2, j] if leaving else key[1, i] if i < n else np.inf
        # A cell may still go right at the end of its interval, and left at the beginning.
        outside = now > last if entering else now >= last
        outside |= then < first if leaving else then <= first
        if blocked == 0 and not outside and may_left >= least_size and may_right >= least_size:
            bound = price + max(loose, 0.0) + _both_leaves(lines)
            if bound < cutoff:
                lowest, highest = min(lowest, now), max(highest, then)
                if bound < best:
                    best, best_open = bound, n_open
                    lines.n_left[0] = i
                    lines.around[0] = np.nextafter(now, -np.inf) if entering else now
                    lines.around[1] = np.nextafter(then, np.inf) if leaving else then
        if i >= n and j >= n:
            break
        now, entering = then, not leaving
        while entering and i < n and key[1, i] == now:
            c = order[1, i]
            if may[c] == RIGHT:
                may[c] = BOTH
                n_open += 1
                loose += least[c]
                _charge(sums, 1, charges, c, -1.0)
            else:
                may[c] = LEFT
                blocked -= 1
                _charge(sums, 0, charges, c, 1.0)
            may_left += size[c]
            i += 1
        while leaving and j < n and key[2, j] == now:
            c = order[2, j]
            if may[c] == BOTH:
                may[c] = LEFT
                n_open -= 1
                loose -= least[c]
                _charge(sums, 0, charges, c, 1.0)
            else:
                may[c] = 0
                blocked += 1
                _charge(sums, 1, charges, c, -1.0)
            may_right -= size[c]
            j += 1
    if best < np.inf:
        store.centre[box, FIRST], store.centre[box, LAST] = max(first, lowest), min(last, highest)
        store.bound[box] = max(best, store.bound[box])
        store.fresh[box] = 1 + best_open
    return best


@kernel
def _both_leaves(lines: Lines) -> float:
    """Return what the charges on both sides cost."""
    left = leaf_cost(lines.sums, 0, lines.squared, lines.negligible)
    return float(left + leaf_cost(lines.sums, 1, lines.squared, lines.negligible))


@kernel
def _try_middle(lines: Lines, items: Items, store: Store, box: int, cells: Cells, least_size: int) -> None:
    """Compare the splits in the middle of a box, which exist, with the best one; all charges are on the left."""
    one = store.item[box]
    i_own, u, n_features = lines.support[one], store.centre[box, U], items.n_features[one]
    charges, size, key = lines.charges[i_own], lines.size[i_own], lines.key
    sort(key[0], lines.order[0], cells.active, lines.stack)
    below, above = cells.left + cells.right, 0
    for c in range(lines.n_cells[i_own]):
        if lines.sure[c] == RIGHT:
            below -= size[c]
            above += size[c]
    for q in range(cells.active, -1, -1):
        if q < cells.active:
            c = lines.order[0, q]
            below -= size[c]
            above += size[c]
            _charge(lines.sums, 0, charges, c, -1.0)
            _charge(lines.sums, 1, charges, c, 1.0)
        reach = max(cells.reach, key[0, q - 1] if q > 0 else -np.inf)
        floor = min(cells.floor, key[0, q] if q < cells.active else np.inf)
        if not floor - reach >= lines.gap or below < least_size or above < least_size:
            continue
        value = items.price[one] + _both_leaves(lines)
        if value < store.best[0]:
            store.best[0], store.best[1], store.best[2] = value, one, u
            if n_features == 2:
                store.best[3] = lines.sign[one] * (1.0 - u)
            store.best[2 + n_features] = -0.5 * (reach + floor) - 0.5 * lines.gap


@entry
def refine_lines(
    lines: Lines,
    items: Items,
    store: Store,
    part: NodeGroups,
    groups: IntArray,
    number: int,
    least_size: int,
    cutoff: float,
    target: float,
    rounding: float,
    steps: int,
) -> tuple[int, int]:
    """Bisect intervals of directions, least bound first; see :func:`~mipforest.searches.oblique.kernels.refine`.

    ``groups`` (m,) are those of ``part``, whose number no other one has.
    """
    done = 0
    while store.n[1] > 0:
        box = store.heap[0]
        if store.bound[box] >= target:
            return NOTHING, done
        if not store.fresh[box]:
            if bound_box(lines, items, store, box, part, groups, number, least_size, cutoff) >= cutoff:
                pop(store)
            else:
                sink(store)
            continue
        if store.best[0] <= store.bound[box] + rounding:
            return FOUND, done
        if store.fresh[box] == 1:
            bound_box(lines, items, store, box, part, groups, number, least_size, cutoff)  # where it is best
            return DECIDED, done
        if done >= steps:
            return STEPS, done
        if store.n[0] >= len(store.bound):
            return FULL, done
        done += 1
        for child in (box, bisect_first(store, U)):
            if bound_box(lines, items, store, child, part, groups, number, least_size, cutoff) < cutoff:
                push(store, child)
    return NOTHING, done
