r"""Exact search of trees with a limited number of splits, on tables of few thresholds (:mod:`.pair_counts`).

Let :math:`W_D(S, k)` be the least loss on S of trees of D levels with at most k splits. With the sides
:math:`S_r^0, S_r^1` of a threshold r, and the cost c of a split,

.. math::

    W_D(S, k) = \min \; \bigl\{ W_D(S, 0), \;
        \min_r \min_{i + j = k - 1} c + W_{D-1}(S_r^0, i) + W_{D-1}(S_r^1, j) \bigr\} .

**Two levels.** The sums over pairs of thresholds give the losses of both leaves below each root, and of the best splits
there. So one pass over the pairs finds :math:`W_2(S, k)` for all k from 1 to 3.

**Three levels and four.** As without a limit, moving rows of weight m to the other side changes a number of errors by m
at most, for each k alone:

.. math::

    W_D(S_r, k) \ge W_D(S_q, k) - w(S_q \setminus S_r) .

A root is evaluated where its bounds leave a better tree for some division of the splits to its sides. Below a root of
four levels, each number of splits of a side has a cutoff of its own: what the other side leaves with the rest of them.
Where leaves have a least size, roots inherit the losses of trees with leaves of any size (:mod:`.pair_search`).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import Evaluated, Submit, on_this_thread, under
from mipforest.searches.exact.covers import DONE, FLAG, STOPPED
from mipforest.searches.exact.pair_counts import (
    PairCounts,
    PairTables,
    PairWork,
    best_roots_of_classes,
    count_both_sides,
    leaf_of_side,
    search_two,
)
from mipforest.searches.exact.pair_search import PairSearch
from mipforest.searches.exact.tables import DistinctRows
from mipforest.trees.topology import subtree

#: Numbers of splits of trees of two levels, and of three: from none to all.
OF_TWO, OF_THREE = 4, 8

#: Of a node of the last level: its best split.
BEST = (-2, -2)


class LimitedRoots(NamedTuple):
    """Roots of three levels, and the best trees by their numbers of splits.

    Attributes
    ----------
    of_side
        (2, 4, T) lower bounds on the losses of both sides of each root, with at most so many splits and leaves of any
        size.
    of_root
        (8, T) lower bounds on the losses of both sides together, of the trees that the root may have, with at most so
        many splits in all.
    below
        (8,) loss that a tree with at most so many splits has to be below; negative infinite where none is looked for.
    best
        (8, 5) its root, and of both sides the root and which children split: bit 0 for the left one, bit 1 for the
        right one. A side without a split has the root -1, and the first is -1 where no tree was found.
    least, root, children
        (2, 4) of the sides of the present root: the least losses by numbers of splits, and the trees that have them.
    pairs
        (1,) thresholds whose pairs were counted.
    """

    of_side: FloatArray
    of_root: FloatArray
    below: FloatArray
    best: IntArray
    least: FloatArray
    root: IntArray
    children: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, T: int, below: FloatArray) -> LimitedRoots:
        """Return roots of which nothing is known."""
        return cls(
            of_side=np.zeros((2, OF_TWO, T)),
            of_root=np.zeros((OF_THREE, T)),
            below=below,
            best=np.full((OF_THREE, 5), -1, np.int64),
            least=np.zeros((2, OF_TWO)),
            root=np.zeros((2, OF_TWO), np.int64),
            children=np.zeros((2, OF_TWO), np.int64),
            pairs=np.zeros(1, np.int64),
        )


@kernel
def _may_be_better(roots: LimitedRoots, r: int, cost: float, tolerance: float) -> bool:
    """Return whether bounds leave a better tree with a root, for some number of splits."""
    for k in range(1, len(roots.below)):
        room = roots.below[k] - tolerance - cost
        for i in range(max(0, k - 4), min(3, k - 1) + 1):
            if roots.of_side[0, i, r] + roots.of_side[1, k - 1 - i, r] < room:
                return True
    return False


@kernel
def _take(roots: LimitedRoots, side: int, k: int, loss: float, root: int, children: int) -> None:
    if loss < roots.least[side, k]:
        roots.least[side, k], roots.root[side, k], roots.children[side, k] = loss, root, children


@kernel
def _search_side(
    tables: PairCounts, side: int, r: int, cost: float, N_min: int, work: PairWork, roots: LimitedRoots
) -> None:  # fmt: skip
    """Find the least losses of a side of a root by numbers of splits, from its counts."""
    parts = work.of_children
    for k in range(4):
        roots.least[side, k] = np.inf
        roots.root[side, k] = -1
    roots.least[side, 0] = leaf_of_side(tables, side, r, N_min, work)
    best_roots_of_classes(tables, work.counts[side], work.whole, cost, N_min, 1 + side, -1, work)
    for j in range(len(work.by_root)):
        _take(roots, side, 1, cost + parts[0, j] + parts[1, j], j, 0)
        _take(roots, side, 2, cost + parts[2, j] + parts[1, j], j, 1)
        _take(roots, side, 2, cost + parts[0, j] + parts[3, j], j, 2)
        _take(roots, side, 3, cost + parts[2, j] + parts[3, j], j, 3)
    for k in range(1, 4):  # one split more has to be worth it
        if roots.least[side, k - 1] <= roots.least[side, k]:
            roots.least[side, k] = roots.least[side, k - 1]
            roots.root[side, k], roots.children[side, k] = (
                roots.root[side, k - 1],
                roots.children[side, k - 1],
            )


@entry
def search_three_limited(
    tables: PairCounts, cost: float, tolerance: float, N_min: int, order: IntArray, most_pairs: int, stop: IntArray,
    work: PairWork, roots: LimitedRoots
) -> int:  # fmt: skip
    """Evaluate roots of trees of three levels in an order, where some number of splits leaves a better tree.

    Parameters and what is returned are as of :func:`~mipforest.searches.exact.pair_counts.search_three`.
    """
    of_side, least, moved, T = roots.of_side, roots.least, tables.moved, len(tables.moved)
    for at in range(len(order)):
        r = order[at]
        if tables.use[0, r] == 0 or not _may_be_better(roots, r, cost, tolerance):
            continue
        if stop[FLAG] != 0 or roots.pairs[0] >= most_pairs:
            return STOPPED
        roots.pairs[0] += T
        count_both_sides(tables, r, work)
        for side in range(2):
            _search_side(tables, side, r, cost, 1, work, roots)
        for i in range(4):
            for q in range(T):
                # Rows on the left of r that another root has on the right, and the other way round.
                of_side[0, i, q] = max(of_side[0, i, q], least[0, i] - moved[q, r])
                of_side[1, i, q] = max(of_side[1, i, q], least[1, i] - moved[r, q])
            of_side[0, i, r], of_side[1, i, r] = least[0, i], least[1, i]
        if N_min > 1:
            if not _may_be_better(roots, r, cost, tolerance):
                continue
            for side in range(2):
                _search_side(tables, side, r, cost, N_min, work, roots)
        for k in range(1, 8):
            roots.of_root[k, r] = np.inf
            for i in range(max(0, k - 4), min(3, k - 1) + 1):
                j = k - 1 - i
                loss = least[0, i] + least[1, j]
                roots.of_root[k, r] = min(roots.of_root[k, r], loss)
                if cost + loss < roots.below[k] - tolerance:
                    roots.below[k] = cost + loss
                    roots.best[k, 0] = r
                    roots.best[k, 1], roots.best[k, 2] = roots.root[0, i], roots.children[0, i]
                    roots.best[k, 3], roots.best[k, 4] = roots.root[1, j], roots.children[1, j]
    return DONE


def divisions(k: int, n: int = OF_THREE) -> range:
    """Return how many of k splits one of two sides may have, where each has fewer than n."""
    return range(max(0, k - n + 1), min(n - 1, k) + 1)


def least_sums(of_side: FloatArray, k: int) -> FloatArray:
    """Return the least sums of losses of both sides (2, N, ...), by number of splits, with k splits in all."""
    left, right = of_side
    i = np.array(divisions(k, len(left)))
    return np.asarray((left[i] + right[k - i]).min(axis=0))


@dataclass(eq=False)
class ThreeLevels:
    """Trees of three levels on some rows, by their numbers of splits.

    Attributes
    ----------
    tables, counts
        Of the rows.
    N_min
        Least number of samples in a leaf.
    leaf
        Loss of the tree without a split; infinite where there is none.
    roots
        Of the trees.
    """

    tables: PairTables
    counts: PairCounts
    N_min: int
    leaf: float
    roots: LimitedRoots

    @classmethod
    def of(
        cls, rows: DistinctRows, tables: PairTables, use: NDArray[np.uint8], below: FloatArray
    ) -> ThreeLevels:
        """Return trees that are not searched yet, with losses below some (8,), and what nodes may split on."""
        is_leaf = not use[0, -1] and (rows.N_min <= 1 or not 0 < rows.size.sum() < rows.N_min)
        leaf = rows.leaf() if is_leaf else np.inf
        counts = PairCounts.of(tables, rows, use, np.full(len(tables.feature), -1))
        roots = LimitedRoots.of(len(tables.feature), np.minimum(below, leaf))
        return cls(tables, counts, rows.N_min, leaf, roots)

    def search(self, cost: float, tolerance: float, most_pairs: int, stop: IntArray) -> bool:
        """Search; return whether it ended."""
        if not (len(self.tables.feature) and (self.roots.below[1:] > -np.inf).any()):
            return True
        if most_pairs <= 0:
            return False
        work = PairWork.of(self.counts, 2)
        search_two(self.counts, cost, self.N_min, work)
        order = np.argsort(work.by_root, kind="stable")
        end = search_three_limited(
            self.counts, cost, tolerance, self.N_min, order, most_pairs, stop, work, self.roots
        )
        return bool(end == DONE)

    def bounds(self, cost: float) -> FloatArray:
        """Return (8,) lower bounds on the losses of trees with at most so many splits."""
        own, found = self.counts.use[0, :-1] > 0, np.full(OF_THREE, self.leaf)
        for k in range(1, OF_THREE):
            found[k] = min(self.leaf, cost + float(self.by_root(k)[own].min(initial=np.inf)))
        return found

    def by_root(self, k: int) -> FloatArray:
        """Return (T,) lower bounds on the losses of both sides of each root, with at most k splits in all."""
        by_root: FloatArray = np.maximum(least_sums(self.roots.of_side, k - 1), self.roots.of_root[k])
        return by_root

    @property
    def _found(self) -> FloatArray:
        """(8,) losses of the trees with a split that were found, infinite elsewhere."""
        return np.where(self.roots.best[:, 0] >= 0, self.roots.below, np.inf)

    def values(self) -> FloatArray:
        """Return (8,) losses of the best trees with at most so many splits; infinite where none was found."""
        values: FloatArray = np.minimum.accumulate(np.minimum(self._found, self.leaf))
        return values

    def splits(self, k: int) -> list[tuple[int, int]]:
        """Return the splits of the best tree with at most k splits in heap order, :data:`BEST` for one to be found."""
        found, nodes = self._found, [(-1, -1)] * 7
        k = int(found[: k + 1].argmin())
        if not found[k] < self.leaf:
            return nodes
        root, *below = self.roots.best[k].tolist()
        nodes[0] = self._split(root)
        for side, (j, children) in enumerate((below[:2], below[2:])):
            if j >= 0:
                nodes[1 + side] = self._split(j)
                for child in range(2):
                    if children >> child & 1:
                        nodes[3 + 2 * side + child] = BEST
        return nodes

    def _split(self, j: int) -> tuple[int, int]:
        return int(self.tables.feature[j]), int(self.tables.threshold[j])


class LimitedPairSearch(PairSearch):
    """A search for the best tree of three or four levels with a limited number of splits.

    As :class:`~mipforest.searches.exact.pair_search.PairSearch`, of classes that are counted, where features come any
    number of times.

    Parameters
    ----------
    most_splits
        Most splits of a tree, at least 1.
    """

    #: Of trees that it searches.
    levels: ClassVar[Container[int]] = (3, 4)

    numbers_of_two = OF_TWO

    def __init__(self, *given: Any, most_splits: int, **named: Any) -> None:
        self.most_splits = most_splits
        super().__init__(*given, **named)

    def _tables(self, known: object) -> PairTables:
        tables = super()._tables(known)
        #: (2, 8, T) of four levels, lower bounds on the losses of both sides of each root, with at most so many splits
        #: and leaves of any size.
        self._of_number = np.zeros((2, OF_THREE, len(tables.feature)))
        below = np.full(OF_THREE, -np.inf)
        below[min(self.most_splits, OF_THREE - 1)] = self._known
        #: The search of three levels.
        if self.box is None:
            self._is_open &= tables.part_some
            self._use[0, :-1] = self._is_open
        self._three = ThreeLevels.of(self.rows, tables, self._use, below) if self.depth == 3 else None
        return tables

    @property
    def incumbent(self) -> float:
        """Loss of the best tree."""
        if self._has_tables and self._three is not None:
            return min(self._known, float(self._three.roots.below.max()))
        return self._known

    @property
    def _of_both(self) -> FloatArray:
        """(T,) lower bounds on the losses of both sides of each root together, with all splits but the root's."""
        if self._three is not None:
            return self._three.by_root(min(self.most_splits, OF_THREE - 1))
        return np.maximum(least_sums(self._of_number, self._most_below), self._of_root)

    @property
    def _most_below(self) -> int:
        """Most splits below a root of four levels."""
        return min(self.most_splits - 1, 2 * OF_THREE - 2)

    # ------------------------------------------------------------------ three levels

    def _search_roots(self, gap: float, submit: Submit, most: int = 1) -> bool:
        """Evaluate roots until none is left or the search is stopped; return whether none is left."""
        three = self._three
        if three is None:
            return super()._search_roots(gap, submit, most)
        search = three.search, [(self.cost, self.tolerance, self.most_pairs - self.pairs, self.stop)]
        ended = bool(submit(*search)[0])
        self.pairs += int(three.roots.pairs[0])
        if (value := float(three.values().min())) < self._known - self.tolerance:
            self._known, self.splits = value, three.splits(OF_THREE - 1)
        self._is_open &= self._of_both < self._known - self.cost - self.tolerance
        return ended

    # ------------------------------------------------------------------ four levels

    def _evaluate_root(self, r: int) -> Evaluated:
        """Search both sides of a root of four levels, each with what the other one leaves to be better."""
        right, known, most = self.tables.right[r], self._known - self.cost - self.tolerance, self._most_below
        bounds, rest = self._of_number[:, :, r].copy(), most - np.arange(OF_THREE)
        losses, sides, pairs, ended, value = bounds, list[ThreeLevels](), 0, True, np.inf
        of_pairs = None if self._of_pairs is None else self._of_pairs[:, :, r].copy()
        has_rest = (rest >= 0) & (rest < OF_THREE)
        # Other roots inherit bounds on trees with leaves of any size.
        relaxed = (1,) if self.rows.N_min > 1 and self._pays_to_relax else ()
        for N_min in (*relaxed, self.rows.N_min):
            losses, sides = bounds.copy(), []
            for side, chosen in enumerate((~right, right)):
                of_rest = np.where(has_rest, losses[1 - side, rest.clip(0, OF_THREE - 1)], np.inf)
                is_wanted = (of_rest < np.inf) & (losses[side] + of_rest < known)
                if not (ended and is_wanted.any()):
                    break
                below = np.full(OF_THREE, -np.inf)
                below[is_wanted] = known - of_rest[is_wanted]
                part = self._part(side, chosen, N_min, below)
                if of_pairs is not None:
                    at, of_side = self._places_in(part.tables, chosen), part.roots.of_side.transpose(0, 2, 1)
                    np.maximum.at(of_side, at, of_pairs[side])
                ended = part.search(self.cost, self.tolerance, self.most_pairs - self.pairs, self.stop)
                if of_pairs is not None:
                    of_pairs[side] = of_side[at]
                pairs += int(part.roots.pairs[0])
                sides.append(part)
                losses[side] = np.maximum(losses[side], part.bounds(self.cost))
            if N_min <= 1:
                bounds = losses.copy()
        splits = list[tuple[int, int]]()
        if len(sides) == 2:
            values = sides[0].values(), sides[1].values()
            i = min(divisions(most), key=lambda i: values[0][i] + values[1][most - i])
            if (found := float(values[0][i] + values[1][most - i])) < known:
                value = found
                splits = under(*self._split(r), sides[0].splits(i), sides[1].splits(most - i), depth=4)
        i = min(divisions(most), key=lambda i: bounds[0, i] + bounds[1, most - i])
        least, of_sides = float(least_sums(losses, most)), (float(bounds[0, i]), float(bounds[1, most - i]))
        return Evaluated(ended, r, of_sides, pairs, value, splits, of_pairs, bounds, least)

    def _part(self, side: int, chosen: BoolArray, N_min: int, below: FloatArray) -> ThreeLevels:
        """Return the trees on a side of a root, with losses below some (8,) by number of splits."""
        rows = replace(self.rows.subset(chosen, ordered=False), N_min=N_min)
        tables = self.tables.part(rows, chosen, alike=self.box is None)
        if self.box is not None:
            return ThreeLevels.of(rows, tables, self._use[subtree(1 + side, 2**self.depth - 1)], below)
        use = np.ones((7, len(tables.feature) + 1), np.uint8)
        use[:, -1], use[0, :-1] = 0, tables.part_some
        return ThreeLevels.of(rows, tables, use, below)

    def _inherit(self, found: Evaluated) -> None:
        """Keep the bounds on the sides of a root that was evaluated, and raise those of other roots."""
        r, bounds = found.t, found.of_number
        assert bounds is not None
        # Rows on the left of r that another root has on the right, and the other way round.
        lost = np.stack([self.tables.moved[:, r], self.tables.moved[r]])
        np.maximum(self._of_number, bounds[:, :, None] - lost[:, None], out=self._of_number)
        self._of_number[:, :, r] = bounds

    def compile(self, *, is_long: bool, is_short: bool) -> None:  # noqa: ARG002
        """Run what is compiled."""
        self._is_open[:] = True
        self._search_roots(0.0, on_this_thread)

    # ------------------------------------------------------------------ tree

    def tree(self) -> list[tuple[int, int]]:
        """Return feature and threshold of all nodes of the best tree in heap order, -1 where one does not split."""
        assert self.splits is not None
        B, p = 2**self.depth - 1, len(self.rows.rank)
        box = self.box or Box(np.ones((B, p), dtype=bool), np.zeros(B, dtype=bool), np.full(p, -1))
        nodes = self.splits + [(-1, -1)] * (B - len(self.splits))
        here = {0: np.ones(self.rows.rank.shape[1], dtype=bool)}
        for t in range(B):
            members = here.pop(t, None)
            if members is None:
                continue
            if nodes[t] == BEST:
                nodes[t] = self._last(self.rows.subset(members), box, t, ())
            f, threshold = nodes[t]
            if f >= 0:
                is_right = self.rows.rank[f] >= threshold
                here[2 * t + 1], here[2 * t + 2] = members & ~is_right, members & is_right
        return nodes
