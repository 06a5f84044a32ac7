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
    Part,
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
def gather(lines: Lines, i: int, part: Part, groups: IntArray, number: int) -> None:
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
def look(
    lines: Lines,
    items: Items,
    store: Store,
    box: int,
    part: Part,
    groups: IntArray,
    number: int,
    least_size: int,
    keep: float,
) -> float:
    """Bound a box for the groups at hand, narrow its thresholds, and compare its middle with the best split.

    Thresholds at either end of the range whose bound reaches ``keep`` are cut off.

    Returns
    -------
    The bound, infinite where no threshold is left.
    """
    one = store.item[box]
    i_own, n_labels = lines.support[one], len(part.charges)
    gather(lines, i_own, part, groups, number)
    n = lines.n_cells[i_own]
    u, width, sign, price = store.centre[box, U], store.half[box, U], lines.sign[one], items.price[one]
    first, last = store.centre[box, FIRST], store.centre[box, LAST]
    x, y, charges = lines.points[i_own, 0], lines.points[i_own, 1], lines.charges[i_own]
    size, least = lines.size[i_own], lines.least[i_own]
    sums, squared, negligible = lines.sums, lines.squared, lines.negligible
    key, order, sure, may = lines.key, lines.order, lines.sure, lines.may

    # A cell may go left from one end on, and right up to the other. Most do one of both at all thresholds of the box.
    for k in range(n_labels):
        sums[k, 0], sums[k, 1] = 0.0, 0.0
    n_active, size_left, size_right, reach_left, floor_right = 0, 0, 0, -np.inf, np.inf
    low_u, high_u = u - width, u + width
    for c in range(n):
        one_end = low_u * x[c] + sign * (1.0 - low_u) * y[c]
        other = high_u * x[c] + sign * (1.0 - high_u) * y[c]
        left_from = min(one_end, other) + lines.gap - lines.tolerance
        right_to = max(one_end, other) + lines.tolerance
        middle = 0.5 * (one_end + other)
        if right_to < first and left_from <= first:
            sure[c] = LEFT
            reach_left = max(reach_left, middle)
            size_left += size[c]
            for k in range(n_labels):
                sums[k, 0] += charges[k, c]
            continue
        size_right += size[c]
        for k in range(n_labels):
            sums[k, 1] += charges[k, c]
        if left_from > last and right_to >= last:
            sure[c] = RIGHT
            floor_right = min(floor_right, middle)
            continue
        sure[c], may[c] = 0, RIGHT
        key[0, n_active], key[1, n_active], key[2, n_active] = middle, left_from, right_to
        order[0, n_active], order[1, n_active], order[2, n_active] = c, c, c
        n_active += 1
    sort(key[1], order[1], n_active, lines.stack)
    sort(key[2], order[2], n_active, lines.stack)

    # All thresholds, also those that part none of the groups at hand, as others may join them. The state changes where
    # a cell may go left, and where it may no longer go right.
    i, j, blocked, n_open, loose = 0, 0, 0, 0, 0.0
    may_left, may_right = size_left, size_right
    now, entering = -np.inf, True
    best, best_open, lowest, highest = np.inf, 0, np.inf, -np.inf
    while True:
        leaving = j < n_active and (i >= n_active or key[2, j] < key[1, i])
        then = key[2, j] if leaving else key[1, i] if i < n_active else np.inf
        # A cell may still go right at the end of its interval, and left at the beginning.
        outside = now > last if entering else now >= last
        outside |= then < first if leaving else then <= first
        if blocked == 0 and not outside and may_left >= least_size and may_right >= least_size:
            bound = price + max(loose, 0.0)
            bound += leaf_cost(sums, 0, squared, negligible) + leaf_cost(sums, 1, squared, negligible)
            if bound < keep:
                lowest, highest = min(lowest, now), max(highest, then)
                if bound < best:
                    best, best_open = bound, n_open
                    lines.n_left[0] = i
                    lines.around[0] = np.nextafter(now, -np.inf) if entering else now
                    lines.around[1] = np.nextafter(then, np.inf) if leaving else then
        if i >= n_active and j >= n_active:
            break
        now, entering = then, not leaving
        while entering and i < n_active and key[1, i] == now:
            c = order[1, i]
            if may[c] == RIGHT:
                may[c] = BOTH
                n_open += 1
                loose += least[c]
                for k in range(n_labels):
                    sums[k, 1] -= charges[k, c]
            else:
                may[c] = LEFT
                blocked -= 1
                for k in range(n_labels):
                    sums[k, 0] += charges[k, c]
            may_left += size[c]
            i += 1
        while leaving and j < n_active and key[2, j] == now:
            c = order[2, j]
            if may[c] == BOTH:
                may[c] = LEFT
                n_open -= 1
                loose -= least[c]
                for k in range(n_labels):
                    sums[k, 0] += charges[k, c]
            else:
                may[c] = 0
                blocked += 1
                for k in range(n_labels):
                    sums[k, 1] -= charges[k, c]
            may_right -= size[c]
            j += 1
    if best == np.inf:
        return best
    store.centre[box, FIRST], store.centre[box, LAST] = max(first, lowest), min(last, highest)
    store.bound[box] = max(best, store.bound[box])
    store.fresh[box] = 1 + best_open

    # The middle of the interval: its splits exist. All charges have gone to the left by now.
    sort(key[0], order[0], n_active, lines.stack)
    below, above, least_size = size_left + size_right, 0, max(1, least_size)
    for c in range(n):
        if sure[c] == RIGHT:
            below -= size[c]
            above += size[c]
    for q in range(n_active, -1, -1):
        if q < n_active:
            c = order[0, q]
            below -= size[c]
            above += size[c]
            for k in range(n_labels):
                sums[k, 0] -= charges[k, c]
                sums[k, 1] += charges[k, c]
        reach = max(reach_left, key[0, q - 1] if q > 0 else -np.inf)
        floor = min(floor_right, key[0, q] if q < n_active else np.inf)
        if not floor - reach >= lines.gap or below < least_size or above < least_size:
            continue
        value = price + leaf_cost(sums, 0, squared, negligible)
        value += leaf_cost(sums, 1, squared, negligible)
        if value < store.best[0]:
            store.best[0], store.best[1] = value, one
            store.best[2] = u
            if items.n_features[one] == 2:
                store.best[3] = sign * (1.0 - u)
            store.best[2 + items.n_features[one]] = -0.5 * (reach + floor) - 0.5 * lines.gap
    return best


@entry
def refine_lines(
    lines: Lines,
    items: Items,
    store: Store,
    part: Part,
    groups: IntArray,
    number: int,
    least_size: int,
    keep: float,
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
            if look(lines, items, store, box, part, groups, number, least_size, keep) >= keep:
                pop(store)
            else:
                sink(store)
            continue
        if store.best[0] <= store.bound[box] + rounding:
            return FOUND, done
        if store.fresh[box] == 1:
            look(lines, items, store, box, part, groups, number, least_size, keep)  # where it is best
            return DECIDED, done
        if done >= steps:
            return STEPS, done
        if store.n[0] >= len(store.bound):
            return FULL, done
        done += 1
        for child in (box, bisect_first(store, U)):
            if look(lines, items, store, child, part, groups, number, least_size, keep) < keep:
                push(store, child)
    return NOTHING, done
