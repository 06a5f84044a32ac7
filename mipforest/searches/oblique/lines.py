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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.oblique.kernels import (
    DECIDED,
    FOUND,
    FULL,
    NOTHING,
    STEPS,
    Items,
    Part,
    Store,
    add,
    drop_first,
    pop,
    push,
    sink,
)
from mipforest.searches.oblique.problem import Level, ObliqueProblem, cheap_supports
from mipforest.settings import FEASIBILITY_TOLERANCE

#: Columns of a box's centre: direction, least and greatest threshold.
U, FIRST, LAST = 0, 1, 2

#: Half width of an interval from which on ends are sorted from scratch, as the order at its middle says little of them.
WIDE = 1 / 32

#: Cells of a run that are sorted by insertion.
SHORT = 24


class Lines(NamedTuple):
    """Supports of one or two features, each with a sign, and the memory of a pass.

    Attributes
    ----------
    x
        (I, C, 2) features of the cells of each item; 0 where there is no second one.
    cell
        (I, G) cell of each group.
    sign
        (I,) sign of the second weight.
    gap
        Least distance between the scores of both sides.
    tolerance
        What a score may miss its side by.
    key, order
        (3, C) sorted scores of the middle, ends from where on left is allowed, ends up to where right is; their cells.
    charges, size
        (K, C) and (C,) sums of the groups in each cell.
    least
        (C,) sum of the groups' least charges.
    member
        (C,) cells of the groups at hand.
    may
        (C,) what each cell may do during a pass.
    sums
        (2, K) charges of the cells that have to go left, and right.
    around
        (2,) the nearest thresholds below and above those at which the last pass over a box was best.
    n_left
        (1,) how many cells go left there, in the order of where left is allowed.
    stack
        (2, 64) runs that are to be sorted.
    """

    x: FloatArray
    cell: IntArray
    sign: FloatArray
    gap: float
    tolerance: float
    key: FloatArray
    order: IntArray
    charges: FloatArray
    size: IntArray
    least: FloatArray
    member: IntArray
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
        features, signs, prices, cells, x = [], [], [], [], []
        for support, price in supports:
            own, cell = np.unique(X[:, list(support)], axis=0, return_inverse=True)
            own = np.column_stack([own, np.zeros(len(own))])[:, :2]
            for sign in (1.0, -1.0) if len(support) == 2 else (1.0,):
                features.append(support)
                signs.append(sign)
                prices.append(price)
                cells.append(cell.ravel())
                x.append(own)
        n, most = len(features), max((len(own) for own in x), default=1)
        padded = np.zeros((n, most, 2))
        numbers = np.full((n, 2), -1, dtype=np.int64)
        for i in range(n):
            padded[i, : len(x[i])] = x[i]
            numbers[i, : len(features[i])] = features[i]
        count = (numbers >= 0).sum(axis=1)
        lines = Lines(
            x=padded,
            cell=np.array(cells, dtype=np.int64).reshape(n, len(X)),
            sign=np.array(signs),
            gap=gap,
            tolerance=FEASIBILITY_TOLERANCE,
            key=np.zeros((3, most)),
            order=np.zeros((3, most), np.int64),
            charges=np.zeros((n_labels, most)),
            size=np.zeros(most, np.int64),
            least=np.zeros(most),
            member=np.zeros(most, np.int64),
            may=np.zeros(most, np.int64),
            sums=np.zeros((2, n_labels)),
            around=np.zeros(2),
            n_left=np.zeros(1, np.int64),
            stack=np.zeros((2, 64), np.int64),
        )
        nothing = np.zeros(n, np.int64)
        # Scores are in [-1, 1]; a threshold stands up to a gap above one. One feature has the direction 1.
        centre = np.column_stack([np.where(count == 2, 0.5, 1.0), np.full(n, -2.0), np.full(n, 2.0 + gap)])
        half = np.column_stack([np.where(count == 2, 0.5, 0.0), np.zeros((n, 2))])
        items = Items(numbers, count, np.array(prices), nothing, nothing)
        return cls(lines, Level(items, centre, half, np.arange(n), rest))

    def left_of(self, one: int, groups: IntArray) -> BoolArray:
        """Return which groups (m,) go left where the last pass, over a box of an item, was best and left none open."""
        lines = self.lines
        cells = lines.member[lines.order[1, : lines.n_left[0]]]
        left: BoolArray = np.isin(lines.cell[one, groups], cells)
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
def insert(key: FloatArray, order: IntArray, n: int) -> None:
    """Sort keys (n,) that are nearly sorted, with what belongs to them, by insertion."""
    for i in range(1, n):
        k, o = key[i], order[i]
        j = i - 1
        while j >= 0 and key[j] > k:
            key[j + 1], order[j + 1] = key[j], order[j]
            j -= 1
        key[j + 1], order[j + 1] = k, o


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
    insert(key, order, n)


@kernel
def gather(lines: Lines, one: int, part: Part, groups: IntArray) -> int:
    """Sum up the groups at hand by cells; return how many cells they have."""
    n_labels, n = len(part.charges), 0
    for c in range(len(lines.may)):
        lines.may[c] = -1
    for r in range(len(groups)):
        c = lines.cell[one, groups[r]]
        if lines.may[c] < 0:
            lines.may[c] = n
            lines.member[n] = c
            lines.size[n], lines.least[n] = 0, 0.0
            for k in range(n_labels):
                lines.charges[k, n] = 0.0
            n += 1
        q = lines.may[c]
        least = part.charges[0, r]
        for k in range(n_labels):
            lines.charges[k, q] += part.charges[k, r]
            least = min(least, part.charges[k, r])
        lines.size[q] += part.size[r]
        lines.least[q] += least
    return n


@kernel
def cheapest(sums: FloatArray) -> float:
    """Return the least of the charges of a leaf."""
    least: float = np.inf
    for k in range(len(sums)):
        least = min(least, sums[k])
    return least


@kernel
def look(
    lines: Lines,
    items: Items,
    store: Store,
    box: int,
    part: Part,
    groups: IntArray,
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
    n, n_labels = gather(lines, one, part, groups), len(part.charges)
    u, width, sign, price = store.centre[box, U], store.half[box, U], lines.sign[one], items.price[one]
    first, last = store.centre[box, FIRST], store.centre[box, LAST]
    x, member, charges = lines.x[one], lines.member, lines.charges
    left, right = lines.sums[0], lines.sums[1]
    key, order = lines.key, lines.order

    # The middle of the interval: its splits exist.
    total = 0
    for k in range(n_labels):
        left[k], right[k] = 0.0, 0.0
    for c in range(n):
        key[0, c] = u * x[member[c], 0] + sign * (1.0 - u) * x[member[c], 1]
        order[0, c] = c
        total += lines.size[c]
        for k in range(n_labels):
            right[k] += charges[k, c]
    sort(key[0], order[0], n, lines.stack)
    below = 0
    for q in range(n - 1):
        c = order[0, q]
        below += lines.size[c]
        for k in range(n_labels):
            left[k] += charges[k, c]
            right[k] -= charges[k, c]
        if key[0, q + 1] - key[0, q] < lines.gap or below < least_size or total - below < least_size:
            continue
        value = price + cheapest(left) + cheapest(right)
        if value < store.best[0]:
            store.best[0], store.best[1] = value, one
            store.best[2] = u
            if items.n_features[one] == 2:
                store.best[3] = sign * (1.0 - u)
            store.best[2 + items.n_features[one]] = -0.5 * (key[0, q] + key[0, q + 1]) - 0.5 * lines.gap

    # Its ends: a cell may go left from key[1] on, and right up to key[2].
    low_u, high_u = u - width, u + width
    for q in range(n):
        c = order[0, q]
        one_end = low_u * x[member[c], 0] + sign * (1.0 - low_u) * x[member[c], 1]
        other = high_u * x[member[c], 0] + sign * (1.0 - high_u) * x[member[c], 1]
        key[1, q], order[1, q] = min(one_end, other) + lines.gap - lines.tolerance, c
        key[2, q], order[2, q] = max(one_end, other) + lines.tolerance, c
    if width > WIDE:
        sort(key[1], order[1], n, lines.stack)
        sort(key[2], order[2], n, lines.stack)
    else:
        insert(key[1], order[1], n)
        insert(key[2], order[2], n)

    for k in range(n_labels):
        left[k], right[k] = 0.0, 0.0
    for c in range(n):
        lines.may[c] = 2  # bits: 1 for left, 2 for right
        for k in range(n_labels):
            right[k] += charges[k, c]
    i, j, blocked, n_open, loose = 0, 0, 0, 0, 0.0
    may_left, may_right = 0, total
    best, best_open, lowest, highest = np.inf, 0, np.inf, -np.inf
    while i < n or j < n:
        entering = i < n and (j >= n or key[1, i] <= key[2, j])
        if entering:
            now = key[1, i]
            while i < n and key[1, i] == now:
                c = order[1, i]
                if lines.may[c] == 2:  # it may still go right
                    lines.may[c] = 3
                    n_open += 1
                    loose += lines.least[c]
                    for k in range(n_labels):
                        right[k] -= charges[k, c]
                else:
                    lines.may[c] = 1
                    blocked -= 1
                    for k in range(n_labels):
                        left[k] += charges[k, c]
                may_left += lines.size[c]
                i += 1
        else:
            now = key[2, j]
            while j < n and key[2, j] == now:
                c = order[2, j]
                if lines.may[c] == 3:
                    lines.may[c] = 1
                    n_open -= 1
                    loose -= lines.least[c]
                    for k in range(n_labels):
                        left[k] += charges[k, c]
                else:
                    lines.may[c] = 0
                    blocked += 1
                    for k in range(n_labels):
                        right[k] -= charges[k, c]
                may_right -= lines.size[c]
                j += 1
        if i >= n and j >= n:
            break  # nothing may go right
        leaving = j < n and (i >= n or key[2, j] < key[1, i])
        then = key[2, j] if leaving else key[1, i]
        # A cell may still go right at the end of its interval, and left at the beginning.
        outside = now >= last if not entering else now > last
        outside |= then < first if leaving else then <= first
        if blocked > 0 or outside or may_left < least_size or may_right < least_size:
            continue
        bound = price + cheapest(left) + cheapest(right) + max(loose, 0.0)
        if bound >= keep:
            continue
        lowest, highest = min(lowest, now), max(highest, then)
        if bound < best:
            best, best_open = bound, n_open
            lines.n_left[0] = i
            lines.around[0] = np.nextafter(now, -np.inf) if entering else now
            lines.around[1] = np.nextafter(then, np.inf) if leaving else then
    if best < np.inf:
        store.centre[box, FIRST], store.centre[box, LAST] = max(first, lowest), min(last, highest)
        store.bound[box] = max(best, store.bound[box])
        store.fresh[box] = 1 + best_open
    return best


@entry
def refine_lines(
    lines: Lines,
    items: Items,
    store: Store,
    part: Part,
    groups: IntArray,
    least_size: int,
    keep: float,
    target: float,
    rounding: float,
    steps: int,
) -> tuple[int, int]:
    """Bisect intervals of directions, least bound first; see :func:`~mipforest.searches.oblique.kernels.refine`.

    ``groups`` (m,) are those of ``part``.
    """
    done = 0
    while store.n[1] > 0:
        box = store.heap[0]
        if store.bound[box] >= target:
            return NOTHING, done
        if not store.fresh[box]:
            if look(lines, items, store, box, part, groups, least_size, keep) >= keep:
                pop(store)
            else:
                sink(store)
            continue
        if store.best[0] <= store.bound[box] + rounding:
            return FOUND, done
        if store.fresh[box] == 1:
            look(lines, items, store, box, part, groups, least_size, keep)  # where it is best
            return DECIDED, done
        if done >= steps:
            return STEPS, done
        if store.n[0] >= len(store.bound):
            return FULL, done
        done += 1
        pop(store)
        other = store.n[0]
        store.n[0] += 1
        store.half[box, U] /= 2
        for q in range(store.half.shape[1]):
            store.centre[other, q], store.half[other, q] = store.centre[box, q], store.half[box, q]
        store.item[other], store.bound[other] = store.item[box], store.bound[box]
        store.centre[box, U] -= store.half[box, U]
        store.centre[other, U] += store.half[box, U]
        for child in (box, other):
            if look(lines, items, store, child, part, groups, least_size, keep) < keep:
                push(store, child)
    return NOTHING, done
