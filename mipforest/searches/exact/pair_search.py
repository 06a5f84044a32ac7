r"""Exact search of trees on tables of few thresholds, by sums over their pairs (:mod:`.pair_counts`).

Trees of two and three levels come from sums over pairs of thresholds. **Deeper trees** are searched in the same way,
but that each side of a root is a search of one level less, for a tree that is better than what the other side leaves.

**Four levels.** The best tree of two levels on side a of a threshold r and on side b of a threshold q is asked for
twice, below the roots r and q. So lower bounds on its loss are kept for all pairs,

.. math::

    W_2(S_r^a \cap S_q^b) \ge \max_{s} \; W_2(S_s^a \cap S_q^b) - w(S_s^a \setminus S_r^a) ,

and the search of three levels on a side of a root begins with those of its pairs.

**Leaves of a least size, and groups.** Which trees a root's sides may have then depends on their rows, or on the root,
and their losses say nothing of other roots. Those of more trees do: of all sizes of leaves and, to three levels, of
splits of the root's group, too. So sides are searched among these first, whose losses other roots inherit, and among
their own trees where the root is still open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.cover_search import (
    AT_A_TIME,
    CoverSearch,
    Evaluated,
    Submit,
    on_this_thread,
    under,
)
from mipforest.searches.exact.covers import DONE, FLAG, NO_LIMIT, STOPPED
from mipforest.searches.exact.pair_counts import (
    OpenRoots,
    PairCounts,
    PairTables,
    PairWork,
    best_roots,
    search_three,
    search_two,
)
from mipforest.searches.leaf_sums import kind_of_loss

#: Roots after which trees with leaves of any size are searched no longer, where they close fewer than one in so many.
LEAST_RELAXED, RELAXED_SHARE = 8, 4

#: Most thresholds of a table of whose pairs all bounds are kept.
MOST_OF_PAIRS = 1000


class PairSearch(CoverSearch):
    """A search for the best tree of two levels and more by sums over pairs of thresholds.

    As :class:`~mipforest.searches.exact.cover_search.CoverSearch`; what is known of sides is not used.
    """

    levels_of_tables = range(2, 64)

    #: Numbers of splits of trees of two levels whose losses are told apart.
    numbers_of_two: ClassVar[int] = 1

    def __init__(
        self, *given: Any, make_tables: Callable[[], PairTables] | None = None, **named: Any
    ) -> None:
        self._make_tables = make_tables
        super().__init__(*given, **named)
        _ = self.tables  # they say which roots there are

    def _tables(self, known: object) -> PairTables:
        del known  # of covers
        rows, make = self.rows, self._make_tables
        tables = PairTables.of(rows, alike=self.box is None) if make is None else make()
        p, T, B = len(rows.rank), len(tables.feature), 2**self.depth - 1
        box = self.box or Box(np.ones((B, p), dtype=bool), np.zeros(B, dtype=bool), np.full(p, -1))
        #: (|B|, T + 1) what each node may split on, and whether it has to split; (T,) groups of thresholds.
        # Row by row in memory at every depth: kernels are compiled for each layout.
        self._use = np.column_stack([box.allowed[:, tables.feature], box.must]).astype(np.uint8, order="C")
        self._group = np.asarray(box.group[tables.feature], dtype=np.int64)
        self._kind = kind_of_loss(rows.loss)
        #: (2, T) lower bounds on the losses of both sides of each root, and whether it is open.
        self._of_side, self._is_open = np.zeros((2, T)), self._use[0, :T] > 0
        #: (T,) lower bounds on the losses of both sides together, of the trees that the root may have.
        self._of_root = np.zeros(T)
        #: (2, 2, T, T, N) of four levels, lower bounds on the trees of two levels below both sides of two thresholds,
        #: by numbers of splits.
        self._of_pairs: FloatArray | None = None
        if self.depth == 4 and self.box is None and T <= MOST_OF_PAIRS:
            self._of_pairs = np.zeros((2, 2, T, T, self.numbers_of_two))
        #: Roots of more than three levels that were evaluated, and those that bounds for leaves of any size closed.
        self._n_evaluated, self._n_closed = 0, 0
        if tables.is_counted:
            self._counts = PairCounts.of(tables, rows, self._use, self._group)
            #: Roots of three levels that are evaluated on this thread.
            self._roots_of_three = self._open_roots(
                self._of_side, self._of_root, self._is_open, self._known - self.cost
            )
        return tables

    def _open_roots(
        self, of_side: FloatArray, of_root: FloatArray, is_open: BoolArray, known: float
    ) -> OpenRoots:
        return OpenRoots(
            of_side=of_side,
            of_root=of_root,
            is_open=is_open.view(np.uint8),
            is_evaluated=np.zeros(len(is_open), np.uint8),
            known=np.array([known]),
            best=np.full(3, -1, np.int64),
            pairs=np.zeros(1, np.int64),
        )

    @property
    def _inherits(self) -> bool:
        """Whether bounds on the sides of a root hold for others; else each root has trees of its own."""
        return self.depth <= 3 or bool((self._group < 0).all())

    @property
    def _pays_to_relax(self) -> bool:
        """Whether trees with leaves of any size are searched first, on sides of roots of more than three levels."""
        return self._n_evaluated < LEAST_RELAXED or self._n_closed * RELAXED_SHARE >= self._n_evaluated

    @property
    def incumbent(self) -> float:
        """Loss of the best tree."""
        if self._has_tables and self.tables.is_counted and self.depth == 3:
            return min(self._known, float(self._roots_of_three.known[0]) + self.cost)
        return self._known

    @property
    def _least(self) -> float:
        """Least bound of what is open, less the cost of the root's split."""
        if self.tables is None:
            return np.inf
        return float(self._of_both[self._is_open].min(initial=np.inf))

    @property
    def _of_both(self) -> FloatArray:
        """(T,) lower bounds on the losses of both sides of each root together."""
        of_both: FloatArray = np.maximum(self._of_side.sum(axis=0), self._of_root)
        return of_both

    # ------------------------------------------------------------------ two levels

    def _by_root(
        self, sums: Any, sizes: FloatArray, of: tuple[FloatArray, float], use: NDArray[np.uint8], N_min: int
    ) -> FloatArray:
        """Return the least losses of trees of two levels by their roots; see :func:`best_roots`."""
        by_root, work = np.empty(len(self._is_open)), np.empty((2, sums.shape[2]))
        best_roots(self._kind, sums, sizes, *of, self.cost, N_min, use, self._group, work, by_root)
        return by_root

    def _two(self) -> int:
        """Search all trees of two levels."""
        if self.most_pairs <= 0:
            return STOPPED
        value = self._of_all()
        j = int(value.argmin())
        if value[j] + self.cost < self._known - self.tolerance:
            self._known, self.splits = float(value[j]) + self.cost, [self._split(j)]
        self._of_side[0], self._is_open[:] = value, False
        return DONE

    def _of_all(self) -> FloatArray:
        """Return the least losses of all trees of two levels by their roots, beside the root's cost."""
        tables = self.tables
        self.pairs += len(tables.feature)
        if tables.is_counted:
            work = PairWork.of(self._counts, 0)
            search_two(self._counts, self.cost, self.rows.N_min, work)
            return work.by_root
        every = np.ones(len(self.rows.value), dtype=bool)
        return self._by_root(
            tables.sums, tables.sizes, tables.total_of(every), self._use[:3], self.rows.N_min
        )

    def _split(self, j: int) -> tuple[int, int]:
        return (int(self.tables.feature[j]), int(self.tables.threshold[j])) if j >= 0 else (-1, -1)

    def each_threshold(
        self, *, deadline: float = np.inf, should_stop: Callable[[], bool] | None = None
    ) -> FloatArray:
        """Find the value of the best tree for every threshold of its root; see :class:`CoverSearch`."""
        if self.depth != 2 or self.is_trivial:
            return super().each_threshold(deadline=deadline, should_stop=should_stop)
        self._two()
        value: FloatArray = (self._of_side[0] + self.cost)[self.tables.place]
        return value

    def by_threshold(self, first: IntArray) -> FloatArray:
        """Return a lower bound on the loss of every tree by its root's threshold; infinite if a side is too small."""
        if self.tables is None:
            return super().by_threshold(first)
        own = np.where(self._use[0, :-1] > 0, self._of_both + self.cost, np.inf)
        bounds: FloatArray = own[self.tables.place]
        return self._without_small_sides(bounds, first)

    # ------------------------------------------------------------------ three levels and more

    def _evaluate_root(self, r: int) -> Evaluated:
        """Find the best trees of both sides of a root, or bounds that leave none that is better than the incumbent."""
        if self.depth > 3:
            return self._search_sides(r)
        known = self._known - self.cost
        if self.tables.is_counted:
            is_open = np.zeros(len(self._is_open), dtype=bool)
            is_open[r] = True
            own = self._open_roots(np.zeros_like(self._of_side), np.zeros(len(is_open)), is_open, known)
            self._search_three(own, np.array([r]), 0.0, NO_LIMIT)
            bounds, value = own.of_side[:, r].tolist(), float(own.known[0])
            pairs, least = int(own.pairs[0]), float(own.of_root[r])
            return Evaluated(True, r, (bounds[0], bounds[1]), pairs, value, self._splits(own), least=least)
        right = self.tables.right[r]
        sums, sizes = self.tables.pairs_of(right)
        sides = (self.tables.sums - sums, self.tables.sizes - sizes), (sums, sizes)
        of_all = self._best_sides(r, sides, 1, -1)
        found, N_min, group = of_all, self.rows.N_min, int(self._group[r])
        if (N_min > 1 or group >= 0) and sum(of_all[0]) < known - self.tolerance:
            found = self._best_sides(r, sides, N_min, group)
        splits = [self._split(r), *map(self._split, found[1])]
        value = sum(found[0])
        return Evaluated(True, r, of_all[0], len(right), value, splits, least=value)

    def _best_sides(
        self, r: int, sides: Sequence[tuple[FloatArray, FloatArray]], N_min: int, above: int
    ) -> tuple[tuple[float, float], tuple[int, int]]:
        """Return the least losses on both sides of a root, and the thresholds of their nodes, -1 for leaves.

        ``sides`` are sums and sizes of their pairs, ``above`` is the group of the split above them, -1 for none.
        """
        right, losses, roots = self.tables.right[r], [0.0, 0.0], [-1, -1]
        again = (self._group == above) & (above >= 0)
        for side, (sums, sizes) in enumerate(sides):
            use = self._use[[1 + side, 3 + 2 * side, 4 + 2 * side]]
            use[:, :-1][:, again] = 0
            total, size = self.tables.total_of(right if side else ~right)
            by_root = self._by_root(sums, sizes, (total, size), use, N_min)
            j = int(by_root.argmin())
            leaf = np.inf
            if not use[0, -1] and (N_min <= 1 or not 0 < size < N_min):
                leaf = float(self.rows.loss_of(total))
            losses[side] = min(leaf, self.cost + float(by_root[j]))
            roots[side] = j if losses[side] < leaf - self.tolerance else -1
        return (losses[0], losses[1]), (roots[0], roots[1])

    def _splits(self, roots: OpenRoots) -> list[tuple[int, int]]:
        """Return the splits of the best tree of three levels that was found."""
        return [self._split(j) for j in roots.best.tolist()]

    def _search_three(self, roots: OpenRoots, order: IntArray, gap: float, most_pairs: int) -> bool:
        """Evaluate open roots of three levels by counts; return whether none is left."""
        end = search_three(
            self._counts, self.cost, self.tolerance, gap, self.rows.N_min, order, most_pairs, self.stop,
            PairWork.of(self._counts, 2), roots,
        )  # fmt: skip
        return bool(end == DONE)

    def _search_sides(self, r: int) -> Evaluated:
        """Search both sides of a root of more than three levels, each with what the other one leaves to be better."""
        right, known = self.tables.right[r], self._known - self.cost - self.tolerance
        bounds, values, pairs, ended = self._of_side[:, r].tolist(), [np.inf, np.inf], 0, True
        trees: list[list[tuple[int, int]]] = [[], []]
        of_pairs = None if self._of_pairs is None else self._of_pairs[:, :, r].copy()
        boxes = [None if self.box is None else self.box.below(side, self._split(r)[0]) for side in range(2)]
        # Other roots inherit bounds on trees with leaves of any size.
        relaxed = (1,) if self.rows.N_min > 1 and self._pays_to_relax else ()
        for N_min in (*relaxed, self.rows.N_min):
            losses = list(bounds)
            for side, chosen in enumerate((~right, right)):
                if self.box is not None and boxes[side] is None:
                    losses[side] = bounds[side] = np.inf  # no tree of the box has this feature at its root
                if not ended or sum(losses) >= known:
                    break
                # No order: the last level of the tree is filled in for all rows, in tree().
                rows = replace(self.rows.subset(chosen, ordered=False), N_min=N_min)
                part = PairSearch(
                    rows, self.depth - 1, cost=self.cost, tolerance=self.tolerance,
                    incumbent=known - losses[1 - side], box=boxes[side], stop=self.stop, most_pairs=self.most_pairs,
                    make_tables=partial(self.tables.part, rows, chosen, alike=self.box is None),
                )  # fmt: skip
                if of_pairs is not None and part.tables is not None:
                    at = self._places_in(part.tables, chosen)
                    np.maximum.at(part._of_side, at, of_pairs[side][..., 0])
                ended = part.solve()
                pairs += part.pairs
                losses[side] = max(losses[side], part.bound)
                if N_min == 1:
                    bounds[side] = losses[side]
                if of_pairs is not None and part.tables is not None:
                    of_pairs[side] = part._of_side[at][..., None]
                if N_min == self.rows.N_min and part.splits is not None:
                    values[side], trees[side] = part.incumbent, part.splits
        splits = under(*self._split(r), *trees, depth=self.depth - 1) if np.isfinite(sum(values)) else []
        return Evaluated(
            ended, r, (bounds[0], bounds[1]), pairs, sum(values), splits, of_pairs, least=sum(losses)
        )

    def _places_in(self, tables: PairTables, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """Return where (2, T) both sides of each threshold are in the tables of some rows: side and threshold."""
        first = self._first_thresholds()
        own = tables.place[first[self.tables.feature] + self.tables.threshold - 1]
        is_exchanged = self.tables.right[:, int(chosen.argmax())] != tables.right[own, 0]
        side = np.arange(2)[:, None] ^ is_exchanged.astype(np.int64)
        return side, np.broadcast_to(own, side.shape)

    def _inherit_pairs(self, r: int, of_pairs: FloatArray) -> None:
        """Raise the bounds on the trees of two levels below two splits by those of a root that was evaluated."""
        assert self._of_pairs is not None
        moved, open_roots = self.tables.moved, np.flatnonzero(self._is_open)
        self._of_pairs[:, :, r] = of_pairs
        for a, lost in enumerate((moved[:, r], moved[r])):
            own = of_pairs[a, :, None] - lost[open_roots, None, None]
            self._of_pairs[a][:, open_roots] = np.maximum(self._of_pairs[a][:, open_roots], own)
        # The rows on side a of one split and on side b of another.
        self._of_pairs = np.maximum(self._of_pairs, self._of_pairs.transpose(1, 0, 3, 2, 4))

    def _close_root(self, found: Evaluated) -> None:
        """Keep the tree of a root that was evaluated, and raise the bounds of other roots."""
        r, bounds = found.t, found.bounds
        self.pairs += found.pairs
        self._is_open[r] = not found.ended
        self._n_evaluated += 1
        self._n_closed += sum(bounds) >= self._known - self.cost - self.tolerance
        if found.of_pairs is not None:
            self._inherit_pairs(r, found.of_pairs)
        if found.value + self.cost < self._known - self.tolerance:
            self._known, self.splits = found.value + self.cost, found.splits
        self._inherit(found)
        self._of_root[r] = found.least
        self._is_open &= self._of_both < self._known - self.cost - self.tolerance

    def _inherit(self, found: Evaluated) -> None:
        """Keep the bounds on the sides of a root that was evaluated, and raise those of other roots."""
        r, bounds = found.t, found.bounds
        if self._inherits:
            self.evaluated.append((*self._split(r), *bounds))
            # Rows on the left of r that another root has on the right, and the other way round.
            lost = self.tables.moved[:, r], self.tables.moved[r]
            for side in range(2):
                bound = bounds[side] - lost[side]
                np.maximum(self._of_side[side], bound, out=self._of_side[side], where=self._is_open)
        self._of_side[:, r] = bounds

    def _roots(self, gap: float) -> list[int]:
        """Return the open roots in which a better tree may be, in the order of their trees of two levels."""
        room = self._known - self.cost
        if np.isfinite(room):  # else no tree is known
            room -= max(self.tolerance, gap * abs(self._known))
        is_open = self._is_open & (self._of_both < room)
        return [r for r in self._order if is_open[r]] if self._order else np.flatnonzero(is_open).tolist()

    def _begin(self) -> None:
        #: Roots, those of the best trees of two levels first.
        self._order = np.argsort(self._of_all(), kind="stable").tolist() if self.most_pairs > 0 else []

    def _search_roots(self, gap: float, submit: Submit, most: int = 1) -> bool:
        """Evaluate roots, some at a time, until none is left or the search is stopped; return whether none is left."""
        self._begin()
        if self.depth == 3 and self.tables.is_counted and submit is on_this_thread:
            return self._search_by_counts(gap)
        while roots := self._roots(gap):
            if self.stop[FLAG] or self.pairs >= self.most_pairs:
                return False
            # The first ones are known before many are begun.
            batch = roots[: min(most, 1 + (len(self._is_open) - len(roots)) // 2)]
            for found in submit(self._evaluate_root, [(r,) for r in batch]):
                self._close_root(found)
        return True

    def _search_by_counts(self, gap: float) -> bool:
        """Evaluate roots of three levels, one after the other, until none is left or the search is stopped."""
        roots, most = self._roots_of_three, self.most_pairs - self.pairs
        if not self._order:
            return False
        ended = self._search_three(roots, np.array(self._order), gap, most)
        self.pairs += int(roots.pairs[0])
        if roots.best[0] >= 0:
            self._known, self.splits = float(roots.known[0]) + self.cost, self._splits(roots)
        if self._inherits:
            evaluated = np.flatnonzero(roots.is_evaluated).tolist()
            self.evaluated += [(*self._split(r), *self._of_side[:, r].tolist()) for r in evaluated]
        return ended

    def compile(self, *, is_long: bool, is_short: bool) -> None:  # noqa: ARG002
        """Run what is compiled."""
        self._two()
        if self.depth == 3:
            self._is_open[:] = True
            self._search_roots(0.0, on_this_thread)

    # ------------------------------------------------------------------ run

    def _solve_deeper(self) -> bool:
        return self._search_roots(0.0, on_this_thread)

    def _run_deeper(
        self,
        submit: Submit,
        gap: float,
        deadline: float,  # noqa: ARG002 - tasks end by it
        threads: int | None,  # noqa: ARG002
        should_stop: Callable[[], bool],  # noqa: ARG002
        max_pairs: int | None,
    ) -> bool:
        if self.depth == 3 and self._is_short(max_pairs):
            return bool(submit(self._search_roots, [(gap, on_this_thread)])[0])
        return self._search_roots(gap, submit, AT_A_TIME)
