"""Bounds on trees by intervals of thresholds, proven for a certificate (``docs/certificates.md``).

An interval of a node of more than two levels is closed by bounds on the rows left of its first and right of its last
threshold; :meth:`Prover.solve` takes the weakest interval first, and splits it. For two levels :func:`value_of_two`
does the same in compiled code; when the value is known, :func:`cover_two` joins thresholds to intervals as wide as it
allows. Bounds are whole numbers of the certificate's grid. What was computed in doubles is lowered by a margin.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.certificates.constraints import Box, Constraints
from mipforest.certificates.univariate import Place, subtree_sums
from mipforest.errors import SolverError
from mipforest.searches import entry, kernel
from mipforest.searches.exact.covers import INTERVAL, Cover, middle, pair
from mipforest.searches.exact.domains import COLUMNS, MUST, ONCE, UPPER
from mipforest.searches.exact.operations import Side, Tables
from mipforest.searches.exact.parts import RowSubset, samples_below

#: What is told where a bound cannot be proven that was computed before.
TOO_ROUNDED = (
    "the certificate cannot be written: rounding errors of the search are larger than what its bounds are lowered by; "
    "solve without one, and report it with the data"
)

#: Intervals of one feature that wait for their evaluation: one on each side of every halving of 65,000 thresholds.
STACK = 64

#: Steps by which the end of an interval is brought nearer to the last one that can be proven.
STEPS = 3


class Need(NamedTuple):
    """Least number of samples in a leaf.

    Attributes
    ----------
    least
        (1,) that of all trees of some rows, 0 for any.
    before
        (p, U + 1) samples of these rows below each rank; empty where any size will do.
    next
        (1,) that of the next pair, written: :attr:`WholeTables.least`.
    """

    least: IntArray
    before: IntArray
    next: IntArray


@entry
def nearest_middle(weight_below: Any, low: int, high: int) -> int:
    """As :func:`~mipforest.searches.exact.covers.middle`, for callers that are not compiled."""
    return middle(weight_below, low, high)


@entry
def least_of_one(
    tables: Tables, rows: Side, above: int, cost: float, node: IntArray, losses: FloatArray
) -> float:
    """Return the least loss of at most one split on some rows, whose ranks in the first feature are less than one."""
    return pair(tables, rows, 0, above, above, cost, np.inf, node, losses)[0]


@entry
def value_of_two(
    tables: Tables,
    rows: Side,
    values: IntArray,
    cost: float,
    cutoff: float,
    need: Need,
    stack: Cover,
    node: IntArray,
    losses: FloatArray,
) -> float:
    """Return the least loss of two levels on some rows, or a value that it reaches.

    Parameters
    ----------
    tables, rows
        The tables, and the walks of the rows.
    values
        (p,) number of values of each feature, 1 of one on which the upper node may not split.
    cost
        Cost of a split.
    cutoff
        Value that is enough.
    need
        The least number of samples in a leaf.
    stack, node, losses
        Workspace: intervals with their two numbers, sums, and what walks write.
    """
    best, limited = cutoff, need.least[0] > 0
    for f in range(len(values)):
        if values[f] < 2:
            continue
        node[UPPER] = f
        stack[0].low, stack[0].high, size = 1, values[f] - 1, 1
        stack[0].left, stack[0].right = 0.0, 0.0
        while size > 0:
            size -= 1
            low, high = stack[size].low, stack[size].high
            if stack[size].left + stack[size].right + cost >= best:
                continue
            x, y = _both(tables, rows, f, low, high, cost, need, node, losses)
            if x + y + cost >= best:
                continue
            if low == high:
                best = x + y + cost
                continue
            c = middle(tables.weight_below[f], low, high)
            at_left, at_right, last = 0.0, 0.0, min(c, high - 1)
            first = last + 1
            if not limited:
                # Fewer rows lose no more: what the rows on one side of the middle lose holds for all thresholds beyond.
                at_left, at_right = _both(tables, rows, f, c, c, cost, need, node, losses)
                best, last, first = min(best, at_left + at_right + cost), c - 1, c + 1
            for part in range(2):
                a, b = (first, high) if part == 0 else (low, last)
                if a <= b:
                    stack[size].low, stack[size].high = a, b
                    stack[size].left = max(x, at_left) if part == 0 else x
                    stack[size].right = y if part == 0 else max(y, at_right)
                    size += 1
    return best


@entry
def cover_two(
    tables: Tables, rows: Side, values: IntArray, f: int, cost: float, target: float, need: Need, ends: IntArray,
    node: IntArray, losses: FloatArray,
) -> int:  # fmt: skip
    """Join the thresholds of a feature to intervals in which all trees of two levels lose at least a value.

    An interval grows as long as the rows on both sides of it lose enough; its end is then found by halving, but for a
    few thresholds.

    Parameters
    ----------
    tables, rows, values, cost, need, node, losses
        As for :func:`value_of_two`.
    f, target
        The feature, and the value.
    ends
        (U,) last thresholds of the intervals, written.

    Returns
    -------
    int
        How many intervals there are; less than 0 where a threshold loses less than the value.
    """
    low, last, number, width = 1, values[f] - 1, 0, 1
    node[UPPER] = f
    while low <= last:
        known, beyond, high = low - 1, last + 1, min(low + width - 1, last)
        steps = 0
        while known + 1 < beyond and (known < low or beyond > last or steps < STEPS):
            x, y = _both(tables, rows, f, low, high, cost, need, node, losses)
            if x + y + cost >= target:
                known = high
            else:
                beyond = high
            if beyond > last:
                high = min(low + 2 * (high - low + 1) - 1, last)
            else:
                high = (known + beyond) // 2
                if high == known:
                    high = known + 1
                steps += known >= low
        if known < low:
            return -low
        ends[number], width = known, known - low + 1
        number += 1
        low = known + 1
    return number


@kernel
def _both(
    tables: Tables,
    rows: Side,
    f: int,
    low: int,
    high: int,
    cost: float,
    need: Need,
    node: IntArray,
    losses: FloatArray,
) -> tuple[float, float]:
    """Return the least losses of at most one split left of the first and right of the last threshold of an interval.

    Leaves of these rows may be smaller than they must be, by as many samples as are between.
    """
    least = need.least[0]
    if least > 0:
        fewer = least - (need.before[f, high] - need.before[f, low])
        need.next[0] = fewer if fewer > 1 else 0
    return pair(tables, rows, f, low, high, cost, np.inf, node, losses)


class Interval(NamedTuple):
    """An interval of thresholds, and the bounds on both sides of it; the weakest comes first, then the widest."""

    bound: int
    width: int
    feature: int
    low: int
    high: int
    left: int
    right: int


#: Where the trees of all rows stand.
TOP = Place()


class Columns(NamedTuple):
    """What the nodes of a box may split on: each column is a feature with a range of its thresholds.

    Attributes
    ----------
    feature, offset
        (q,) the feature of each column, ascending, and what is added to its thresholds for those of the feature.
    width
        (q,) its thresholds.
    allowed
        (|B|, q) columns that each node may split on, of a feature at most one.
    must
        (|B|,) nodes that have to split.
    group
        (q,) number of the group of each that comes once on a path, -1 for one that may come again.
    empties
        Whether leaves may be empty where they have a least size.
    """

    feature: IntArray
    offset: IntArray
    width: IntArray
    allowed: BoolArray
    must: BoolArray
    group: IntArray
    empties: bool

    @classmethod
    def of(cls, constraints: Constraints, box: Box) -> Columns:
        """Return the columns of a box; one that no node may split on where there are no others."""
        nodes, features = np.nonzero(box.allowed)
        first, last = constraints.first[nodes, features], constraints.last[nodes, features]
        kinds, kind_of = np.unique(np.column_stack([features, first, last]), axis=0, return_inverse=True)
        if not len(kinds):
            kinds = np.array([[0, 1, 0]])
        feature, begin, end = kinds.T
        allowed = np.zeros((len(box.must), len(kinds)), dtype=bool)
        allowed[nodes, kind_of.ravel()] = True
        return cls(
            feature,
            begin - 1,
            end - begin + 1,
            allowed,
            box.must,
            constraints.group[feature],
            constraints.empties,
        )

    @property
    def is_free(self) -> bool:
        """Whether all nodes may split on all columns, any number of times, and none has to."""
        return bool(self.allowed.all()) and not self.must.any() and bool((self.group < 0).all())

    def ranks(self, rank: IntArray) -> IntArray:
        """Return (q, m) ranks in the columns, from those (p, m) among the values of each feature."""
        own: IntArray = rank[self.feature] - self.offset[:, None]
        return np.clip(own, 0, self.width[:, None])

    def usable(self, place: Place) -> BoolArray:
        """Return (q,) which columns a node may split on, below groups of those that come once on a path."""
        allowed: BoolArray = self.allowed[place.node]
        return allowed & ~np.isin(self.group, list(place.above)) if place.above else allowed

    def below(self, place: Place, column: int, side: int) -> Place:
        """Return the place on a side of a split on a column."""
        group = int(self.group[column])
        above = place.above | {group} if group >= 0 else place.above
        return Place(2 * place.node + 1 + side, above)


class Prover:
    """Proves bounds on the trees of a box, in units of a grid.

    Parameters
    ----------
    split_cost
        Cost of a split in these units.
    margin
        Units by which what tables say may be wrong.
    columns
        What nodes may split on.
    """

    def __init__(self, split_cost: int, margin: int, columns: Columns) -> None:
        self.split_cost, self.margin, self.columns = split_cost, margin, columns
        self._stack = np.zeros(STACK, INTERVAL)
        self._free, self._below = columns.is_free, subtree_sums(columns.must)

    def bound(self, part: RowSubset, levels: int, least: int, cutoff: int, place: Place = TOP) -> int:
        """Return what is proven of all rows of a part: a whole number, at most ``cutoff``.

        Parameters
        ----------
        part
            The rows.
        levels
            Most levels of splits of a tree.
        least
            Least number of samples in a leaf, 0 for any.
        cutoff
            Bound that is enough.
        place
            The node of the box at which the trees stand.
        """
        if levels > 2:
            return self.solve(part, levels, least, cutoff, place)[0]
        return self.least_loss(part, part.whole, part.every, levels, least, cutoff, place)

    def least_loss(
        self,
        part: RowSubset,
        rows: Any,
        members: BoolArray,
        levels: int,
        least: int,
        cutoff: int,
        place: Place,
    ) -> int:
        """As :meth:`bound`, for trees of one level or two on some rows of a part."""
        need, enough = self._need(part, members, least), (cutoff + self.margin) / part.units
        enough = min(enough, self._leaf(part, members, least, place))
        tables, values = self._tables(part, levels, place), self._values(part, place)
        if levels == 1:
            part.next[0] = least
            value = least_of_one(tables, rows, int(part.values[0]), part.cost, part.node, part.losses)
            return self._claimed(min(value, enough), part, cutoff)
        value = value_of_two(
            tables, rows, values, part.cost, enough, need, self._stack, part.node, part.losses
        )
        return self._claimed(value, part, cutoff)

    def _leaf(self, part: RowSubset, members: BoolArray, least: int, place: Place) -> float:
        """Return the loss of one leaf for some rows; infinite where the node has to split, or they are too few."""
        size = int(part.size[members].sum())
        is_leaf = not self.columns.must[place.node] and not self._too_few(size, least)
        return part.leaf(members) if is_leaf else math.inf

    def _too_few(self, size: int, least: int) -> bool:
        """Return whether no tree has some number of samples."""
        return size < least and (size > 0 or not self.columns.empties)

    def _tables(self, part: RowSubset, levels: int, place: Place) -> Tables:
        """Return the tables for what the last nodes of one level or two may split on."""
        if self._free:
            return part.tables
        columns, q = self.columns, len(self.columns.feature)
        use = np.zeros((2, 2, q + COLUMNS), np.uint8)
        nodes = [place.node] if levels == 1 else [2 * place.node + 1, 2 * place.node + 2]
        for child, node in enumerate(nodes):
            use[0, child, :q] = columns.usable(place._replace(node=node))
            use[0, child, q + MUST] = columns.must[node]
        # The feature of the upper node is known to the loops alone.
        use[0, 0, q + ONCE] = levels == 2 and bool((columns.group >= 0).any())
        return part.masked(use, columns.group)

    def _values(self, part: RowSubset, place: Place) -> IntArray:
        """Return (q,) the number of values of each column that a node may split on, 1 of others."""
        return np.where(self.columns.usable(place), part.values, 1)

    def _claimed(self, value: float, part: RowSubset, cutoff: int, margins: int = 1) -> int:
        if value == math.inf:
            return cutoff  # there is no such tree
        return max(0, min(cutoff, math.floor(value * part.units) - margins * self.margin))

    def _need(self, part: RowSubset, members: BoolArray, least: int) -> Need:
        before = np.zeros((0, 0), np.int64)
        if least:
            before = samples_below(part.rank, part.size * members, int(part.values.max()))
        part.next[0] = 0
        return Need(np.array([least]), before, part.next)

    def _floor(self, place: Place) -> int:
        """Return what the splits that have to be there cost."""
        return int(self._below[place.node]) * self.split_cost

    def _side(
        self, part: RowSubset, f: int, t: int, right: bool, levels: int, least: int, cutoff: int, place: Place
    ) -> int:
        """As :meth:`bound`, for the rows on one side of a threshold of a part."""
        members = (part.rank[f] >= t) == right
        size = int(part.size[members].sum())
        if cutoff <= 0 or self._too_few(size, least):
            return max(0, cutoff)  # no tree has a leaf that small
        if not size:
            return min(cutoff, self._floor(place))
        if levels == 2:
            return self.least_loss(part, part.sides(f, t)[int(right)], members, 2, least, cutoff, place)
        below = part.part(members)
        # The margins of what the intervals of its levels will be found to be worth.
        margins = 4 ** (levels - 2)
        known = None
        if not least and self._free:
            known = below.value(levels, (cutoff + margins * self.margin) / part.units)
        if known is not None:
            return self._claimed(known, part, cutoff, margins)
        return self.solve(below, levels, least, cutoff, place)[0]

    def solve(
        self, part: RowSubset, levels: int, least: int, cutoff: int, place: Place = TOP
    ) -> tuple[int, list[Interval]]:
        """Prove a bound for trees of more than two levels; return it with the intervals that do.

        Parameters
        ----------
        part, levels, least, cutoff, place
            As for :meth:`bound`.
        """
        best = self._claimed(self._leaf(part, part.every, least, place), part, cutoff)
        heap, weight = list[Interval](), part.tables.weight_below

        def side(f: int, t: int, right: bool, fewer: int, enough: int) -> int:
            below = self.columns.below(place, f, int(right))
            return self._side(part, f, t, right, levels - 1, fewer, enough, below)

        def push(f: int, low: int, high: int, left: int | None, right: int | None) -> None:
            """Add an interval, of which the bound on one side may be known."""
            fewer = self._fewer(part, f, low, high, least)
            enough = best - self.split_cost
            if left is None and right is None:
                # The side with more rows first: it may do alone.
                if 2 * weight[f, low] >= weight[f, high]:
                    left = side(f, low, False, fewer, enough)
                else:
                    right = side(f, high, True, fewer, enough)
            if left is None:
                left = side(f, low, False, fewer, enough - (right or 0))
            if right is None:
                right = side(f, high, True, fewer, enough - left)
            bound = left + right + self.split_cost
            heapq.heappush(heap, Interval(bound, low - high, f, low, high, left, right))

        for f in np.flatnonzero(self._values(part, place) > 1).tolist():
            push(f, 1, int(part.values[f]) - 1, None, None)
        while heap and heap[0].bound < best:
            if heap[0].low == heap[0].high:
                best = heap[0].bound
                break
            worst = heapq.heappop(heap)
            f, low, high = worst.feature, worst.low, worst.high
            c = min(int(nearest_middle(weight[f], low, high)), high - 1)
            # With a least size of leaves, both bounds were for leaves smaller by the rows of the whole interval.
            push(f, low, c, None if least else worst.left, None)
            push(f, c + 1, high, None, None if least else worst.right)
        return best, sorted(heap, key=lambda interval: (interval.feature, interval.low))

    def lines(
        self,
        part: RowSubset,
        levels: int,
        least: int,
        b: int,
        intervals: list[Interval] | None = None,
        place: Place = TOP,
    ) -> Iterator[str]:
        """Yield the lines of the proof that all trees of some levels lose at least b.

        Parameters
        ----------
        part, levels, least, place
            As for :meth:`bound`.
        b
            A bound that it has returned, or a lower one.
        intervals
            What :meth:`solve` returned with it; it is called where none are given.
        """
        if self._is_plain(int(part.size.sum()), least, b, place) or levels == 1:
            return
        if levels == 2:
            yield from self.covers(part, part.whole, part.every, least, b, place)
            return
        if intervals is None:
            proven, intervals = self.solve(part, levels, least, b, place)
            if proven < b:
                raise SolverError(TOO_ROUNDED)
        for f in np.flatnonzero(self._values(part, place) > 1).tolist():
            own = [interval for interval in intervals if interval.feature == f]
            yield str(len(own))
            for interval in own:
                low, high = interval.low, interval.high
                left, right = self._shares(interval, b)
                yield f"{high + self.columns.offset[f]} {left}"
                fewer = self._fewer(part, f, low, high, least)
                for side, t, claim in ((0, low, left), (1, high, right)):
                    below = self.columns.below(place, f, side)
                    yield from self._lines_of_side(part, f, t, side == 1, levels - 1, fewer, claim, below)

    @staticmethod
    def _fewer(part: RowSubset, f: int, low: int, high: int, least: int) -> int:
        """Return the least size of leaves beside an interval: the samples between may fill them up."""
        if not least:
            return 0
        rest = least - int(part.size[(part.rank[f] >= low) & (part.rank[f] < high)].sum())
        return rest if rest > 1 else 0

    def _is_plain(self, size: int, least: int, b: int, place: Place) -> bool:
        """Return whether a claim needs no proof."""
        return b <= self._floor(place) or self._too_few(size, least)

    def _shares(self, interval: Interval, b: int) -> tuple[int, int]:
        """Return what is to be proven left and right of an interval: of one side only where that will do."""
        enough = b - self.split_cost
        if interval.right >= enough:
            return 0, enough
        if interval.left >= enough:
            return enough, 0
        left = interval.left - (interval.left + interval.right - enough) // 2
        return left, enough - left

    def _lines_of_side(
        self, part: RowSubset, f: int, t: int, right: bool, levels: int, least: int, b: int, place: Place
    ) -> Iterator[str]:
        members = (part.rank[f] >= t) == right
        if self._is_plain(int(part.size[members].sum()), least, b, place):
            return
        if levels == 2:
            yield from self.covers(part, part.sides(f, t)[int(right)], members, least, b, place)
        else:
            yield from self.lines(part.part(members), levels, least, b, place=place)

    def covers(
        self, part: RowSubset, rows: Any, members: BoolArray, least: int, b: int, place: Place = TOP
    ) -> Iterator[str]:
        """Yield the lines of a proof for two levels; parameters as for :meth:`least_loss` and :meth:`lines`."""
        need, target = self._need(part, members, least), (b + self.margin // 2) / part.units
        ends, values = np.zeros(int(part.values.max()), np.int64), self._values(part, place)
        tables = self._tables(part, 2, place)
        for f in np.flatnonzero(values > 1).tolist():
            count = cover_two(tables, rows, values, f, part.cost, target, need, ends, part.node, part.losses)
            if count < 0:
                raise SolverError(TOO_ROUNDED)
            yield " ".join(map(str, (ends[:count] + self.columns.offset[f]).tolist()))
