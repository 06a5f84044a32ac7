r"""Branch and bound over boxes of hyperplanes, level by level, for trees whose leaves predict what is best for them.

:mod:`~mipforest.searches.oblique.version_spaces` searches trees whose leaves have given labels.

**Notation.** :math:`V_\ell(S)` is the least value of a tree of the levels from :math:`\ell` on for the groups S that
reach it. A hyperplane of level :math:`\ell` on a support F parts S into L and R, and is worth
:math:`\pi_\ell(F) + V_{\ell+1}(L) + V_{\ell+1}(R)`.

**Bounds.** A leaf pays for a set of groups a sum of charges of one label, or deviations from one constant. So with one
more group g it pays at least as much more as a leaf of g alone, :math:`c_g`. As prices are at least 0,
:math:`V_\ell(S \cup U) \ge V_\ell(S) + \sum_{g \in U} c_g`. Let a box hold hyperplanes on F, let L and R be the groups
that each of them sends left and right, and U the others. Each hyperplane of the box is worth at least

.. math::  \pi_\ell(F) + V_{\ell+1}(L) + V_{\ell+1}(R) + \sum_{g \in U} c_g .

Boxes are bisected, the least bound first. At the last level, boxes are bisected by compiled
loops (:mod:`~mipforest.searches.oblique.kernels`). A least leaf size is left out of bounds, and counted where all
groups are decided.

**Why it ends.** The gap is positive. Once the scores of each group over a box span less than the gap, a group may go
one way, or none. Above the last level, the sides of the last few open groups are chosen one by one. A box without open
groups stands for one dichotomy: a linear programme, or on two features a search along four edges, says whether its
support realises it, and the trees below are then searched with both sides as they are.

**Covers.** L and R of half a box contain those of the box, and what the trees below may cost at most only falls. So a
box of the next level whose bound reached that amount never has to be looked at again: the halves inherit the open boxes
of both sides, which are bounded anew for the larger sets.

**Threads.** The open boxes of the root are independent of each other, up to the value of the best tree: each thread
takes one, and the compiled loops below run at the same time. The bound is the least of the boxes in the heap and of
those that threads have.

**Supports.** A support is searched if its price alone does not exceed what the best tree leaves for it. The cheapest of
those that are not searched, as they have too many features or are too many, bounds all the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock, get_ident, local
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches.oblique.kernels import (
    BOTH,
    DECIDED,
    FOUND,
    FULL,
    LEFT,
    RIGHT,
    STEPS,
    Store,
    drop_first,
    heapify,
    refine,
    sides,
)
from mipforest.searches.oblique.lines import Directions, refine_lines
from mipforest.searches.oblique.problem import Level, ObliqueProblem, separating
from mipforest.time_budget import Stopped

#: Values that differ by less, as a share of the sum of all charges, are equal up to the rounding of sums.
ROUNDING = 1e-11

#: Boxes bisected in one call of the compiled loop, between two looks at the clock.
STEPS_AT_ONCE = 20_000

#: Boxes bisected at the last level, and above it, for a bound on sets that still grow.
STEPS_FOR_A_BOUND, NODES_FOR_A_BOUND = 3_000, 30

#: The same for intervals of directions: such steps, each of two passes over the groups, and groups times steps.
LINES_AT_ONCE, PASSES_FOR_A_BOUND = 1_000, 150_000

#: Open groups of a box whose sides are chosen one by one, instead of bisecting the box on.
FEW_OPEN = 4

#: Seconds after which the search looks at the clock while its threads work.
LOOK_EVERY = 0.1

#: Most open boxes of a side that a box keeps; of more it keeps those that it was given.
MOST_KEPT = 1_000


@dataclass(frozen=True, eq=False)
class Split:
    """A hyperplane (p,) of a level, with the trees of both sides: splits, labels, or ``None`` for the cheapest one."""

    level: int
    w: FloatArray
    b: float
    left: Split | int | None
    right: Split | int | None


@dataclass(frozen=True, eq=False)
class Boxes:
    """Open boxes of the last level: columns of :class:`~mipforest.searches.oblique.kernels.Store`."""

    centre: FloatArray
    half: FloatArray
    item: IntArray
    bound: FloatArray


@dataclass(frozen=True, eq=False)
class HyperplaneBox:
    """An open box above the last level.

    Attributes
    ----------
    centre, half, item
        Its hyperplanes and their support.
    bound
        Lower bound on their value.
    left_bound, right_bound
        Bounds on the trees of both sides.
    left, right
        Groups that are sent there for sure, when the box was last looked at.
    left_cover, right_cover
        What is open below.
    n_open
        Groups that may go both ways; -1 before the box has been looked at.
    sent
        Groups for which a side was chosen, with that side.
    undecided
        The open group whose side would be chosen next; -1 where there is none.
    """

    centre: FloatArray
    half: FloatArray
    item: int
    bound: float
    left_bound: float = 0.0
    right_bound: float = 0.0
    left: IntArray | None = None
    right: IntArray | None = None
    left_cover: Any = None
    right_cover: Any = None
    n_open: int = -1
    sent: tuple[tuple[int, int], ...] = ()
    undecided: int = -1


@dataclass(frozen=True, eq=False)
class SubtreeResult:
    """What is known of the best tree for some groups.

    Attributes
    ----------
    bound
        Lower bound on its value, or a number from which on it is of no use.
    tree
        A tree of this value, if the search asked for one; otherwise one that may be worth looking at.
    proven
        Whether the tree has that value, and its splits keep the gap.
    cover
        What is open.
    value
        What the tree costs these groups at least.
    """

    bound: float
    tree: Split | int | None = None
    proven: bool = False
    cover: Any = None
    value: float = -np.inf


#: What a box became: its examined parts, or value and tree of the one dichotomy it stands for.
_Outcome = tuple[list[HyperplaneBox | None], tuple[float, Split | None] | None]


@dataclass(eq=False)
class _Queue:
    """What a level above the last one has still to do, and the best that it has found.

    Attributes
    ----------
    heap
        Boxes by bound and width, with a number that breaks ties, and whether their bound is that of these groups.
    rest
        Lower bound on what is not in the heap.
    working
        Boxes that threads have.
    best_value, best
        Least value of a dichotomy with a tree, and that tree.
    nodes
        Boxes parted.
    """

    heap: list[tuple[float, float, int, HyperplaneBox, bool]]
    rest: float
    working: dict[Future[_Outcome], HyperplaneBox] = field(default_factory=dict)
    best_value: float = np.inf
    best: Split | None = None
    nodes: int = 0

    @property
    def waiting(self) -> float:
        """The least bound in the heap."""
        return self.heap[0][0] if self.heap else np.inf

    @property
    def least(self) -> float:
        """The least bound, also of the boxes that threads have."""
        return min([self.waiting, *(box.bound for box in self.working.values())])


class ObliqueSearch:
    """A search for the best tree.

    Parameters
    ----------
    problem
        The problem.
    upper
        Value of the best tree known.
    adopt
        Called with a tree; returns the value of the best tree known after it.
    halted
        Called with lower bound and steps from time to time; returns whether to stop.
    threads
        Threads that examine boxes of the root, of trees of two levels and more. With one, runs are the same.

    Attributes
    ----------
    upper
        Value of the best tree known.
    steps
        Boxes bisected so far.
    """

    def __init__(
        self,
        problem: ObliqueProblem,
        upper: float,
        *,
        adopt: Callable[[Split | int | None], float],
        halted: Callable[[float, int], bool],
        threads: int = 1,
    ) -> None:
        self.problem, self.upper, self.steps = problem, upper, 0
        self._adopt, self._halted, self._threads = adopt, halted, threads if problem.depth > 1 else 1
        self._lock, self._caller, self._stopped = Lock(), get_ident(), False
        self._pool: ThreadPoolExecutor | None = None
        self._points = problem.points()
        self._least, self._most = problem.least, problem.most
        self._rounding = ROUNDING * problem.scale
        limit = upper - float(self._least.sum())
        self._lines = Directions.of(problem, limit)
        self._own = local()
        last = Level.of(problem, problem.depth - 1, limit) if self._lines is None else self._lines.level
        self.levels = [*(Level.of(problem, level, limit) for level in range(problem.depth - 1)), last]
        self._planes: dict[tuple[int, int, bytes], tuple[FloatArray, float, bool] | None] = {}
        self._values: dict[tuple[int, int, bytes], float] = {}
        self._number = count()
        #: Bound of the root's boxes that are open, and of what could not be decided.
        self._open, self._undecided = 0.0, np.inf

    @property
    def bound(self) -> float:
        """Lower bound on the value of every tree that is worth less than the best one known, or that value."""
        return min(self._open, self._undecided, self.upper)

    def run(self) -> bool:
        """Search; return whether the search has ended by itself."""
        groups = np.arange(self.problem.n_groups)
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        with self._pool or nullcontext():
            try:
                found = self._solve(0, groups, None, np.inf, exact=True, top=True)
            except Stopped:
                return False
            finally:
                self._stopped = True
        if found.proven:
            self._offer(found.tree)
        # Trees that are better by less than this are given up on the way.
        least = self.upper - 2 * self._rounding
        self._open = least if found.bound >= least else max(self._open, found.bound)
        return True

    def _pause(self, bound: float | None = None) -> None:
        """Tell the caller how far the search is, on its own thread, and end the search if it is to stop."""
        if bound is not None:
            self._open = max(self._open, bound)
        if self._stopped or (get_ident() == self._caller and self._halted(self.bound, self.steps)):
            raise Stopped

    def _offer(self, tree: Split | int | None) -> bool:
        """Have a tree adopted; return whether it is the best one known."""
        with self._lock:
            before = self.upper
            self.upper = min(before, self._adopt(tree))
            return self.upper < before

    def _count(self, steps: int) -> None:
        with self._lock:
            self.steps += steps

    @property
    def _directions(self) -> Directions | None:
        """The directions of the last level, with memory that no other thread has."""
        if self._lines is None or get_ident() == self._caller:
            return self._lines
        if not hasattr(self._own, "directions"):
            self._own.directions = self._lines.with_own_memory()
        own: Directions = self._own.directions
        return own

    # ------------------------------------------------------------------ any level

    def _solve(
        self,
        level: int,
        groups: IntArray,
        cover: Any,
        cutoff: float,
        *,
        exact: bool,
        top: bool = False,
    ) -> SubtreeResult:
        """Search the trees of the levels from one on, for the groups that reach it.

        Parameters
        ----------
        level, groups
            The level, and the groups.
        cover
            What is open; ``None`` for all.
        cutoff
            Value from which on trees are of no use.
        exact
            Whether all groups are there, and the best tree is wanted. Otherwise a bound is.
        top
            Whether this is the root: better trees are adopted, and lower ``cutoff``.
        """
        if level == self.problem.depth - 1:
            return self._solve_last(groups, cover, cutoff, exact=exact)
        leaf = self._leaf(groups, exact=exact)
        if top and leaf.proven:
            self._offer(leaf.tree)
        queue = self._begin(level, groups, cover)
        while True:
            now = min(cutoff, self.upper - self._rounding) if top else cutoff
            target = min(now, leaf.bound, queue.rest, queue.best_value)
            if top:
                self._pause(min(target, queue.least))
            if queue.waiting >= target and not queue.working:
                break
            outcomes = self._next(level, groups, queue, now, target, exact=exact, top=top)
            if outcomes is None:
                break
            for examined, decided in outcomes:
                for child in examined:
                    if child is not None:
                        heapq.heappush(queue.heap, self._entry(child))
                if decided is not None and decided[0] < now:
                    self._merge(queue, *decided, top=top)
        least = min(target, queue.waiting)
        kept = cover
        if not exact and len(queue.heap) <= MOST_KEPT:
            kept = [entry[3] for entry in queue.heap]
        if leaf.bound <= least:
            return SubtreeResult(leaf.bound, leaf.tree, leaf.proven, kept)
        if queue.best_value <= least:
            return SubtreeResult(queue.best_value, queue.best, True, kept)
        return SubtreeResult(least, None, False, kept)

    def _begin(self, level: int, groups: IntArray, cover: list[HyperplaneBox] | None) -> _Queue:
        """Return the open boxes of a level above the last one."""
        own = self.levels[level]
        boxes = cover
        if boxes is None:
            prices = own.items.price
            boxes = [
                HyperplaneBox(c, h, int(i), float(prices[i]))
                for c, h, i in zip(own.centre, own.half, own.item, strict=True)
            ]
        heap = [(box.bound, self._width(box), next(self._number), box, False) for box in boxes]
        heapq.heapify(heap)
        return _Queue(heap, own.rest + float(self._least[groups].sum()))

    def _next(
        self, level: int, groups: IntArray, queue: _Queue, cutoff: float, target: float, *, exact: bool, top: bool
    ) -> list[_Outcome] | None:  # fmt: skip
        """Return what some boxes became, none while threads begin; ``None`` where a bound is good enough."""
        if queue.working and (queue.waiting >= target or len(queue.working) > self._threads):
            finished = wait(queue.working, LOOK_EVERY, FIRST_COMPLETED).done
            return [future.result() for future in finished if queue.working.pop(future)]
        box, fresh = queue.heap[0][3:]
        if not exact and (queue.nodes >= NODES_FOR_A_BOUND or (fresh and box.n_open == 0)):
            return None
        heapq.heappop(queue.heap)
        queue.nodes += int(fresh and box.n_open != 0)
        work = partial(self._became, level, groups, box, cutoff, fresh=fresh, exact=exact, top=top)
        if self._pool is None or not top:
            return [work()]
        queue.working[self._pool.submit(work)] = box
        return []

    def _became(
        self,
        level: int,
        groups: IntArray,
        box: HyperplaneBox,
        cutoff: float,
        *,
        fresh: bool,
        exact: bool,
        top: bool,
    ) -> _Outcome:
        """Bound a box that is not fresh, decide one without open groups, and part any other one."""
        if not fresh:
            return [self._examined(level, groups, box, cutoff, exact=exact)], None
        if box.n_open == 0:
            return [], self._decided(level, box, cutoff)
        self._count(1)
        return [
            self._examined(level, groups, half, cutoff, exact=exact, top=top) for half in _parts(box)
        ], None

    def _merge(self, queue: _Queue, value: float, tree: Split | None, *, top: bool) -> None:
        """Take over what a dichotomy is worth, with its tree if that is proven."""
        if tree is None:
            queue.rest = min(queue.rest, value)
            self._undecided = min(self._undecided, value) if top else self._undecided
        elif not top:
            if value < queue.best_value:
                queue.best_value, queue.best = value, tree
        # A tree that the formulation refuses, by its tolerances, may not be bounded away.
        elif not self._offer(tree) and value < self.upper - self._rounding:
            self._undecided = min(self._undecided, value)

    def _leaf(self, groups: IntArray, *, exact: bool) -> SubtreeResult:
        """Return what the groups cost in one leaf of the best label."""
        problem = self.problem
        if exact and 0 < problem.size[groups].sum() < problem.N_min:
            return SubtreeResult(np.inf)
        return SubtreeResult(problem.of_leaf(groups), None, True)

    def _width(self, box: HyperplaneBox) -> float:
        return float(box.half.max())

    def _entry(self, box: HyperplaneBox) -> tuple[float, float, int, HyperplaneBox, bool]:
        return box.bound, self._width(box), next(self._number), box, True

    # ------------------------------------------------------------------ above the last level

    def _examined(
        self,
        level: int,
        groups: IntArray,
        box: HyperplaneBox,
        cutoff: float,
        *,
        exact: bool,
        top: bool = False,
    ) -> HyperplaneBox | None:
        """Return a box with its bound for some groups, ``None`` where that reaches ``cutoff``."""
        items = self.levels[level].items
        k, price = int(items.n_features[box.item]), float(items.price[box.item])
        may = np.empty(len(groups), np.int64)
        features = items.features[box.item]
        n_open = sides(self._points, features, k, box.centre, box.half, groups, may)
        if n_open < 0:
            return None
        for g, side in box.sent:
            place = int(np.searchsorted(groups, g))
            if may[place] not in (BOTH, side):
                return None
            n_open -= int(may[place] == BOTH)
            may[place] = side
        left, right = groups[may == LEFT], groups[may == RIGHT]
        # A split that parts nothing is no better than none; of a part of the groups, the others may be parted.
        if exact and n_open == 0 and not (len(left) and len(right)):
            return None
        undecided = groups[may == BOTH]
        loose = float(self._least[undecided].sum())
        bounds, covers = [box.left_bound, box.right_bound], [box.left_cover, box.right_cover]
        trees: list[Any] = [None, None]
        values = bounds.copy()  # what the tree of the middle costs at least
        parts, before = (left, right), (box.left, box.right)
        # The side that has grown most comes first: its bound may do without that of the other.
        grown = [
            len(now) - (0 if then is None else len(then)) for now, then in zip(parts, before, strict=True)
        ]
        for side in sorted((0, 1), key=lambda s: -grown[s]):
            if price + bounds[0] + bounds[1] + loose >= cutoff:
                return None
            same = before[side] is not None and len(before[side]) == len(parts[side])  # type: ignore[arg-type]
            if same or len(parts[side]) == 0:
                continue
            allowed = cutoff - price - loose - bounds[1 - side]
            found = self._solve(level + 1, parts[side], covers[side], allowed, exact=False)
            bounds[side], covers[side] = max(bounds[side], found.bound), found.cover
            trees[side], values[side] = found.tree, max(bounds[side], found.value)
        bound = max(box.bound, price + bounds[0] + bounds[1] + loose)
        if bound >= cutoff:
            return None
        if top and any(isinstance(tree, Split) for tree in trees) and sum(values, price + loose) < cutoff:
            w, b = self.problem.midway(features[:k], box.centre[:k], float(box.centre[k]))
            self._offer(Split(level, w, b, *trees))
        return replace(
            box,
            bound=bound,
            left_bound=bounds[0],
            right_bound=bounds[1],
            left=left,
            right=right,
            left_cover=covers[0],
            right_cover=covers[1],
            n_open=n_open,
            undecided=int(undecided[self._most[undecided].argmax()]) if n_open else -1,
        )

    def _decided(self, level: int, box: HyperplaneBox, cutoff: float) -> tuple[float, Split | None]:
        """Return the value of a box whose groups are all decided, and its best tree; ``None`` where none is proven."""
        assert box.left is not None
        assert box.right is not None
        key = (level, box.item, _dichotomy(box.left, box.right))
        # The value of a dichotomy is the same in every box; it was not below a larger amount before.
        if self._values.get(key, -np.inf) >= cutoff:
            return np.inf, None
        value, tree = self._decided_anew(level, box, cutoff)
        self._values[key] = value if value < cutoff else cutoff
        return value, tree

    def _decided_anew(self, level: int, box: HyperplaneBox, cutoff: float) -> tuple[float, Split | None]:
        items = self.levels[level].items
        price = float(items.price[box.item])
        assert box.left is not None
        assert box.right is not None
        plane = self._plane(level, box.item, box.left, box.right, reversible=True)
        if plane is None:
            return np.inf, None
        left = self._solve(level + 1, box.left, box.left_cover, cutoff - price - box.right_bound, exact=True)
        if price + left.bound + box.right_bound >= cutoff:
            return np.inf, None
        right = self._solve(level + 1, box.right, box.right_cover, cutoff - price - left.bound, exact=True)
        value = price + left.bound + right.bound
        if value >= cutoff or not (left.proven and right.proven):
            return value, None
        w, b, reversed_ = plane
        trees = (right.tree, left.tree) if reversed_ else (left.tree, right.tree)
        return value, Split(level, w, b, *trees)

    def _plane(
        self, level: int, item: int, left: IntArray, right: IntArray, *, reversible: bool
    ) -> tuple[FloatArray, float, bool] | None:
        """Return a hyperplane of a support that parts two sets, and whether it sends the left one right."""
        key = (level, item, _dichotomy(left, right))
        if key not in self._planes:
            items, problem = self.levels[level].items, self.problem
            features = items.features[item, : items.n_features[item]]
            found = None
            for turned in (False, True) if reversible else (False,):
                a, c = (right, left) if turned else (left, right)
                plane = separating(problem, features, a, c)
                if plane is not None:
                    found = (*plane, turned)
                    break
            self._planes[key] = found
        return self._planes[key]

    # ------------------------------------------------------------------ the last level

    def _solve_last(
        self, groups: IntArray, cover: Boxes | None, cutoff: float, *, exact: bool
    ) -> SubtreeResult:
        """Search the splits of the last level."""
        problem, own, directions = self.problem, self.levels[-1], self._directions
        most, at_once = STEPS_FOR_A_BOUND, STEPS_AT_ONCE
        if directions is not None:
            most, at_once = PASSES_FOR_A_BOUND // problem.n_groups + 1, LINES_AT_ONCE
        at_once = at_once if exact else min(most, at_once)
        leaf = self._leaf(groups, exact=exact)
        rest = own.rest + float(self._least[groups].sum())
        cutoff = min(cutoff, self.upper - self._rounding)
        target = min(cutoff, leaf.bound, rest)
        store, part = new_store(own, cover), problem.part(groups, problem.charges)
        least_size, taken = (problem.N_min if exact else 0), 0
        number = next(self._number)
        tree: Split | int | None = None
        proven = False
        while True:
            bounds = (least_size, cutoff, target, self._rounding, at_once)
            if directions is None:
                reason, done = refine(self._points, own.items, store, part, *bounds)
            else:
                reason, done = refine_lines(directions.lines, own.items, store, part, groups, number, *bounds)
            taken += done
            self._count(done)
            self._pause()
            if reason == FULL:
                store = _larger(store)
            elif reason == STEPS:
                if not exact and taken >= most:
                    break
            elif reason == DECIDED and exact:
                tree = self._realised(store, groups)
                if tree is not None:
                    proven = True
                    break
                if directions is None:
                    drop_first(store)
                else:
                    store = _larger(store) if store.n[0] == len(store.bound) else store
                    directions.exclude(store)
            else:
                proven = reason == FOUND
                break
        n_open = int(store.n[1])
        least = float(store.bound[store.heap[0]]) if n_open else np.inf
        value = -np.inf
        if tree is None and np.isfinite(store.best[0]):
            tree, value = self._centre(own, store), float(store.best[0])
        kept = cover
        if not exact and n_open <= MOST_KEPT:
            boxes = store.heap[:n_open]
            kept = Boxes(store.centre[boxes], store.half[boxes], store.item[boxes], store.bound[boxes])
        if least >= target:
            if leaf.bound <= min(cutoff, rest):
                return SubtreeResult(leaf.bound, leaf.tree, True, kept)
            return SubtreeResult(target, tree, False, kept, value)
        if reason == FOUND:
            least = max(least, float(store.best[0]))
        return SubtreeResult(least, tree, proven, kept, value)

    def _centre(self, own: Level, store: Store) -> Split:
        """Return the best centre of a store as a split."""
        one = int(store.best[1])
        k = int(own.items.n_features[one])
        w, b = self.problem.midway(
            own.items.features[one, :k], store.best[2 : 2 + k], float(store.best[2 + k])
        )
        return Split(self.problem.depth - 1, w, b, None, None)

    def _realised(self, store: Store, groups: IntArray) -> Split | None:
        """Return a split of the dichotomy that the first box of the heap stands for, if its support has one."""
        own, box, last = self.levels[-1], int(store.heap[0]), self.problem.depth - 1
        one = int(store.item[box])
        if self._directions is None:
            k, may = int(own.items.n_features[one]), np.empty(len(groups), np.int64)
            sides(self._points, own.items.features[one], k, store.centre[box], store.half[box], groups, may)
            goes_left = may == LEFT
        else:
            goes_left = self._directions.left_of(one, groups)
        plane = self._plane(last, one, groups[goes_left], groups[~goes_left], reversible=False)
        return None if plane is None else Split(last, *plane[:2], None, None)


def _dichotomy(left: IntArray, right: IntArray) -> bytes:
    """Return what two sets of groups are remembered by."""
    return left.tobytes() + b"|" + right.tobytes()


def _parts(box: HyperplaneBox) -> tuple[HyperplaneBox, HyperplaneBox]:
    """Bisect a box along its widest side, or, where few groups are open, choose the side of one."""
    if box.n_open <= FEW_OPEN:
        first, second = (replace(box, sent=(*box.sent, (box.undecided, side))) for side in (LEFT, RIGHT))
        return first, second
    widest = int(box.half.argmax())
    half, low, high = box.half.copy(), box.centre.copy(), box.centre.copy()
    half[widest] /= 2
    low[widest] -= half[widest]
    high[widest] += half[widest]
    return replace(box, centre=low, half=half), replace(box, centre=high, half=half)


def new_store(own: Level, cover: Boxes | None, room: int = 0) -> Store:
    """Return a store of the boxes of a cover, or of all first boxes of a level; their bounds are not fresh.

    It has room for a number of boxes, and at least for some times those that it begins with.
    """
    if cover is None:
        cover = Boxes(own.centre, own.half, own.item, own.items.price[own.item])
    n = len(cover.bound)
    room = max(64, 4 * n, room)
    width = own.centre.shape[1]
    store = Store(
        np.zeros((room, width)),
        np.zeros((room, width)),
        np.zeros(room, np.int64),
        np.zeros(room),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.array([n, 0]),
        np.full(width + 2, np.inf),
    )
    store.centre[:n], store.half[:n] = cover.centre, cover.half
    store.item[:n], store.bound[:n] = cover.item, cover.bound
    heapify(store)
    return store


def _larger(store: Store) -> Store:
    """Return a store with room for twice as many boxes."""

    def twice(a: Any) -> Any:
        return np.concatenate([a, np.zeros_like(a)])

    return Store(
        centre=twice(store.centre),
        half=twice(store.half),
        item=twice(store.item),
        bound=twice(store.bound),
        fresh=twice(store.fresh),
        heap=twice(store.heap),
        n=store.n,
        best=store.best,
    )


def tiny_problem(*, given_labels: bool) -> ObliqueProblem:
    """Return two groups of one feature, for which the same is compiled as for the problems of users."""
    return ObliqueProblem(
        X=np.array([[0.0], [1.0]]),
        first=np.arange(3),
        size=np.ones(2, np.int64),
        charges=np.eye(2),
        prices=np.full((1, 1), 0.1),
        gap=0.1,
        l1=not given_labels,
        given_labels=given_labels,
    )


def run_on_little() -> None:
    """Search something tiny, so that the compiled loops are there."""
    problem = tiny_problem(given_labels=False)
    ObliqueSearch(problem, 1.0, adopt=lambda _: 1.0, halted=lambda *_: False).run()
