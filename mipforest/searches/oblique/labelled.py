"""The search for trees whose leaves have labels: first splits over threads, in rounds, by rising thresholds.

Labels are given, or those of two classes; :func:`takes` says of which problems.

The tree with the best first split is the best tree. So the tasks are the supports of a first split, at each level, with
all groups: :func:`~mipforest.searches.oblique.version_spaces.search` says that no tree of a task is worth less than a
threshold, or finds its best one. Thresholds are shares of the incumbent's value, so that a bound stands whenever time
ends.

Tasks run in rounds. All tasks of a round begin with the same cores and trees, and what they found is joined in their
order: the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches.oblique.conflicts import new_conflicts, nothing_known
from mipforest.searches.oblique.cores import Cores, merge
from mipforest.searches.oblique.kernels import refine
from mipforest.searches.oblique.polytopes import BITS, FACET_WORDS, CutSpace, Polytope, most_vertices
from mipforest.searches.oblique.problem import Level, ObliqueProblem, cheap_supports, separating
from mipforest.searches.oblique.search import Split, new_store, tiny_problem
from mipforest.searches.oblique.version_spaces import (
    ALL_LEFT,
    ALL_RIGHT,
    BETTER,
    CONSTANTS,
    DEPTHS,
    DONE,
    FULL,
    OPEN,
    SEPARATE,
    SPLIT,
    STOPPED,
    TREES,
    Pool,
    Sets,
    Splits,
    Table,
    bound_first_splits,
    search,
)
from mipforest.searches.pool import Threads, run_tasks
from mipforest.settings import FEASIBILITY_TOLERANCE

#: Values that differ by less, as a share of the sum of all charges, are equal up to the rounding of sums.
ROUNDING = 1e-12

#: Thresholds, as shares of the value of the best tree known.
SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)

#: Tasks of a round.
ROUND = 4

#: Points from which on those inside the convex hull of a group are left out, up to some features.
MANY_POINTS, HULL_FEATURES = 8, 3

#: Most features of a support, and with weights of absolute sum 1; supports of a level, and with such weights; and these
#: times points, which take memory.
MOST_FEATURES, MOST_SIGNED, MOST_SUPPORTS, MOST_ENTRIES = 8, 6, (10_000, 40_000), 20_000_000

#: Bytes of cores from which on all are forgotten, and how often a store grows while cores are joined.
MOST_BYTES, MOST_GROWTHS = 500_000_000, 64

#: Cores that there are places for at first.
FIRST_CORES = 4_096


def takes(problem: ObliqueProblem) -> bool:
    """Return whether the search takes a problem: labels are given, or leaves predict the cheaper one of two.

    Splits on one or two features without given labels are searched by directions, and charges are not negative.
    """
    of_two = not (problem.squared or problem.values or 0 < problem.max_features <= 2)
    return problem.given_labels or (of_two and problem.charges.shape[1] == 2 and problem.charges.min() >= 0)


@dataclass(eq=False)
class Task:
    """The trees whose first split is on a support.

    Attributes
    ----------
    level, support
        Level of the split, and number of the support among those of all levels.
    bound
        Lower bound on their value.
    is_lost
        Whether the search has come to nodes that it cannot decide.
    threshold
        Value up to which it is searched at present.
    found
        Better trees that are still to be offered, with their values.
    is_begun, is_done
        Whether it has begun, and come to an end, in this round.
    """

    level: int
    support: int
    bound: float
    is_lost: bool = False
    threshold: float = np.inf
    found: deque[tuple[float, Split | int]] = field(default_factory=deque)
    is_begun: bool = False
    is_done: bool = False


class LabelledSearch:
    """A search for the best tree with labelled leaves.

    Parameters
    ----------
    problem
        The problem, one that :func:`takes` is true of. A least leaf size is left out: where a tree
        is refused for it, the bound is no more than its value.
    upper
        Value of the best tree known.
    adopt
        Called with a tree; returns the value of the best tree known after it.
    halted
        Called with lower bound and nodes from time to time; returns whether to stop.
    threads
        Tasks at a time.

    Attributes
    ----------
    upper
        Value of the best tree known.
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
        self.problem, self.upper = problem, upper
        self._adopt, self._halted, self._threads = adopt, halted, threads
        self._stop = np.zeros(1, np.int64)
        self.table = table_of(problem, upper, lambda: halted(-np.inf, 0))
        # Sums are rounded at each level, on both sides.
        self._rounded = 2.0 ** (problem.depth + 2) * self.table.tiny
        levels = np.repeat(np.arange(problem.depth), np.diff(self.table.begin))
        least = float(problem.least.sum())
        self._tasks = [
            Task(int(level), i, float(price) + least)
            for i, (level, price) in enumerate(zip(levels, self.table.price, strict=True))
        ]
        # Splits of the last levels are searched soon, and their cores hold for the levels above.
        self._tasks.sort(key=lambda task: (-task.level, self.table.price[task.support]))
        self._rest = float(self.table.rest.min()) + least
        self._undecided, self._cutoff = np.inf, upper
        self._cores, self._trees = new_cores(self.table, FIRST_CORES), new_pool(self.table)
        self._spaces: list[_Workspace] = []
        self._shares, self._pass = deque(SHARES), deque[Task]()
        self._round: list[Task] = []
        self._waiting = deque[Task]()

    @property
    def steps(self) -> int:
        """Nodes so far."""
        return sum(int(space.splits.nodes.sum()) for space in self._spaces)

    @property
    def bound(self) -> float:
        """Lower bound on the value of every tree that is worth less than the best one known, or that value."""
        least = min((task.bound for task in self._tasks), default=np.inf)
        return min(min(least, self._cutoff) - self._rounded, self._rest, self._undecided, self.upper)

    def improve(self, value: float) -> None:
        """Tell the search that a tree of some value was found elsewhere."""
        self.upper, self._cutoff = min(self.upper, value), min(self._cutoff, value)

    def run(self) -> bool:
        """Search, or go on after a stop; return whether the search has ended by itself."""
        self._stop[0] = 0
        self._waiting = deque(task for task in self._round if not task.is_done)
        for label, charged in enumerate(self.table.charges.sum(axis=1)):
            self._adopt_better(float(charged) + self.problem.least_price, label)
        if self._pause():
            return False
        with Threads(self._run, self._threads, self._stop) as pool:

            def submit(task: Task) -> Future[Any]:
                return pool.submit(self._spaces[self._round.index(task)], task)

            run_tasks(pool, self._following, submit, self._merge, self._pause)
            ended = not self._stop[0]
        self._stop[0] = 1
        self._offer()
        return ended

    # ------------------------------------------------------------------ tasks

    def _following(self) -> Task | None:
        """Return the next task; ``None`` where the round is still running, or nothing is left."""
        while not self._waiting:
            if not all(task.is_done for task in self._round):
                return None
            self._join()
            if not self._begin_round():
                return None
        return self._waiting.popleft()

    def _begin_round(self) -> bool:
        """Choose the tasks of the next round; return whether there are any."""
        bound = self.table.price.copy()
        everything = all_groups(self.table)
        while True:
            if not self._pass:
                if not self._shares:
                    return False
                self._share = self._shares.popleft()
                self._pass.extend(self._tasks)
                self._aim = self._share * self._cutoff
            aim = min(self._aim, self._cutoff)
            bound_first_splits(self.table, self._cores, everything, aim, bound)
            chosen = list[Task]()
            while self._pass and len(chosen) < ROUND:
                task = self._pass.popleft()
                task.bound = max(task.bound, min(aim, float(bound[task.support])))
                if task.bound < aim - self.table.tiny and not task.is_lost:
                    task.threshold, task.is_begun, task.is_done = aim, False, False
                    chosen.append(task)
            if chosen:
                break
        while len(self._spaces) < len(chosen):
            self._spaces.append(_Workspace(self.table))
        self._round, self._waiting = chosen, deque(chosen)
        return True

    def _run(self, space: _Workspace, task: Task) -> Any:
        """Search a task, on a thread; return whether it has come to its end."""
        if not task.is_begun:
            task.is_begun = True
            space.begin(self._cores, self._trees, task)
        splits = space.splits
        while True:
            why = search(self.table, space.cores, space.pool, space.sets, splits, space.at, self._stop)
            if why == FULL:
                space.cores = with_more_places(space.cores)
            elif why == SEPARATE:
                self._separate(space)
            elif why == STOPPED:
                return False
            if why in (BETTER, DONE) and splits.found[task.level] != space.told:
                space.told = int(splits.found[task.level])
                value = float(splits.best[task.level] + self.table.price[task.support])
                task.found.append((value, self._tree(space.pool, task.level, space.told)))
            if why == DONE:
                return True

    def _merge(self, task: Task, finished: bool) -> None:
        """Take over the value of a task."""
        if not finished:
            return
        splits = self._spaces[self._round.index(task)].splits
        price, best = self.table.price[task.support], float(splits.best[task.level])
        lost = float(splits.lost[task.level])
        task.is_lost = lost < best - self.table.tiny
        task.bound = max(task.bound, float(price) + min(best, lost))
        task.is_done = True

    def _pause(self) -> bool:
        """Offer trees and tell the caller how far the search is; return whether to stop."""
        self._offer()
        return self._halted(self.bound, self.steps)

    def _offer(self) -> None:
        """Offer trees, in the order of the tasks of the round: those of a task once all before it have ended."""
        for task in self._round:
            while task.found:
                self._adopt_better(*task.found.popleft())
            if not task.is_done and not self._stop[0]:
                break

    def _adopt_better(self, value: float, tree: Split | int) -> None:
        """Have a tree adopted if it is worth less than those known."""
        if value >= self._cutoff - self.table.tiny:
            return
        self._cutoff = value
        self.upper = min(self.upper, self._adopt(tree))
        # A tree that the formulation refuses, by its tolerances, may not be bounded away.
        if self.upper > value + self._rounded:
            self._undecided = min(self._undecided, value)

    def _join(self) -> None:
        """Join what the tasks of a round have found, in their order."""
        self._offer()
        for space in self._spaces[: len(self._round)]:
            for _ in range(MOST_GROWTHS):
                if merge(self._cores, space.cores):
                    break
                self._cores = with_more_places(self._cores)
            join_pools(self._trees, space.pool)
        self._cores.born[:] = 0
        self._round = []

    # ------------------------------------------------------------------ hyperplanes

    def _separate(self, space: _Workspace) -> None:
        """Say whether a linear programme parts the decided cells of the present node."""
        splits, level = space.splits, int(space.at[1])
        i, n = int(splits.support[level]), int(splits.n_cells[level])
        state = np.repeat(splits.state[level, :n], np.diff(splits.member_first[level, : n + 1]))
        member = splits.member[level, : len(state)]
        features = self.table.features[i, : self.table.n_features[i]]
        plane = separating(
            self.problem, features, member[state == 0], member[state == 1], float(self.table.low[level])
        )
        space.at[3] = plane is not None
        if plane is not None:
            splits.point[level, : len(features) + 1] = [*plane[0][features], plane[1] - self.problem.gap / 2]

    def _tree(self, pool: Pool, level: int, place: int) -> Split | int:
        """Return a tree with the hyperplanes that part its groups the widest."""
        problem, table = self.problem, self.table

        def below(level: int, t: int, groups: IntArray) -> Split | int:
            if level == problem.depth:
                return (t + 1) % 2  # left children have odd numbers
            i = int(pool.support[first_level, place, t])
            if i < 0:
                return below(level + 1, 2 * t + (1 if i == ALL_LEFT else 2), groups)
            k = int(table.n_features[i])
            features, plane = table.features[i, :k], pool.plane[first_level, place, t, : k + 1]
            points, first = problem.points_of(groups)
            score = problem.X[points][:, features] @ plane[:k] + plane[k]
            right = np.minimum.reduceat(score, first[:-1]) >= -problem.gap / 2
            left_part, right_part = groups[~right], groups[right]
            if len(left_part) == 0:
                return below(level + 1, 2 * t + 2, groups)
            if len(right_part) == 0:
                return below(level + 1, 2 * t + 1, groups)
            parted = separating(problem, features, left_part, right_part, float(table.low[level]))
            w, b = parted or problem.midway(features, plane[:k], float(plane[k]))
            return Split(
                level, w, b, below(level + 1, 2 * t + 1, left_part), below(level + 1, 2 * t + 2, right_part)
            )

        first_level = level
        return below(level, 0, np.arange(problem.n_groups))


class _Workspace:
    """What one task works on.

    Parameters
    ----------
    table
        The problem.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.cores, self.pool = new_cores(table, FIRST_CORES), new_pool(table)
        self.sets, self.splits = new_sets(table), new_splits(table)
        self.at, self.told = np.zeros(4, np.int64), -1

    def begin(self, cores: Cores, pool: Pool, task: Task) -> None:
        """Begin a task with what is known."""
        while len(self.cores.value) < len(cores.value):
            self.cores = with_more_places(self.cores)
        copy_cores(cores, self.cores)
        copy_pool(pool, self.pool)
        level, n_groups = task.level, len(self.table.least)
        self.sets.words[level] = all_groups(self.table)
        self.sets.groups[level], self.sets.n[level] = np.arange(n_groups), n_groups
        self.sets.target[level], self.sets.tree[level] = task.threshold, 0
        self.splits.support[level], self.splits.found[:], self.splits.depth[:] = task.support, -1, 0
        self.at[:] = SPLIT, level, level, 0
        self.told = -1


# ---------------------------------------------------------------------- arrays


def all_groups(table: Table) -> IntArray:
    """Return the set of all groups, as bits."""
    n_groups = len(table.least)
    words = np.zeros(-(-n_groups // BITS), np.int64)
    np.bitwise_or.at(words, np.arange(n_groups) // BITS, np.int64(1) << (np.arange(n_groups) % BITS))
    return words


def table_of(problem: ObliqueProblem, upper: float, is_over: Callable[[], bool] = lambda: False) -> Table:
    """Return what compiled loops read of a problem, with the supports whose price leaves less than a known value.

    Where it is over before all supports are prepared, the others are left out: the price of the next one bounds them.
    """
    limit, depth = upper - float(problem.least.sum()), problem.depth
    codes = np.column_stack([np.unique(x, return_inverse=True)[1].ravel() for x in problem.X.T])
    points: list[tuple[IntArray, IntArray, IntArray]] = []
    begin, rest, supports = [0], list[float](), list[tuple[tuple[int, ...], float]]()
    for level in range(depth):
        most = min(MOST_SUPPORTS[problem.l1], MOST_ENTRIES // len(problem.X) + 1)
        # A split above the last level without a split below it is one of the last level where prices are the same.
        below = 0.0 if problem.given_labels or level == depth - 1 else float(problem.prices[level + 1].min())
        listed, left_out = cheap_supports(
            problem.prices[level],
            limit - below,
            problem.max_features,
            most_features=MOST_SIGNED if problem.l1 else MOST_FEATURES,
            most_supports=most,
        )
        for support in listed:
            if is_over():
                left_out = support[1]
                break
            supports.append(support)
            points.append(points_that_count(problem, codes, support[0]))
        begin.append(len(supports))
        rest.append(min(left_out, limit))
    widest = max((len(features) for features, _ in supports), default=1)
    features = np.full((len(supports), widest), -1, np.int64)
    n_features = np.array([len(own) for own, _ in supports], np.int64)
    # Above the last level a split below -gap/2 is reversed, if intercepts may be as low.
    low = np.full(depth, max(problem.upper_intercepts, -problem.gap / 2))
    low[-1] = -1.0
    first = np.zeros((len(supports), problem.n_groups + 1), np.int64)
    n_rows = 0
    for i, (own, _) in enumerate(supports):
        features[i, : len(own)] = own
        first[i] = n_rows + points[i][1]
        n_rows += len(points[i][0])
    charges = np.ascontiguousarray(problem.charges.T)
    charged = charges.max(axis=0)
    return Table(
        X=problem.X,
        charges=charges,
        heavy=np.argsort(-charges, axis=1, kind="stable"),
        least=problem.least,
        by_least=np.argsort(-problem.least, kind="stable"),
        begin=np.array(begin, np.int64),
        features=features,
        n_features=n_features,
        price=np.array([price for _, price in supports], np.float64),
        low=low,
        rest=np.array(rest, np.float64),
        rows=np.concatenate([np.zeros(0, np.int64), *(kept for kept, _, _ in points)]),
        first=first,
        cell=np.array([cell for _, _, cell in points], np.int64).reshape(len(supports), problem.n_groups),
        gap=problem.gap,
        l1=problem.l1,
        tolerance=min(FEASIBILITY_TOLERANCE, problem.gap / 4),
        tiny=ROUNDING * problem.scale,
        unit=float(np.median(charged[charged > 0])) if (charged > 0).any() else 1.0,
    )


def points_that_count(
    problem: ObliqueProblem, codes: IntArray, features: tuple[int, ...]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows of points that say where groups may go by some features, and the cells of groups.

    Parameters
    ----------
    problem
        The problem.
    codes
        (N, p) numbers of the values of each feature.
    features
        The features.

    Returns
    -------
    rows, first, cell
        (J,) rows of points that differ, without those inside the convex hull of a large group; (G + 1,) where those of
        each group begin; (G,) a group with the same single point, or the group itself.
    """
    n_groups = problem.n_groups
    key = np.zeros(len(codes), np.int64)
    for j in features:
        key = key * (codes[:, j].max() + 1) + codes[:, j]
        if key.max() > np.iinfo(np.int64).max >> 20:
            key = np.unique(key, return_inverse=True)[1].ravel()
    if len(codes) == n_groups:
        _, leader, member = np.unique(key, return_index=True, return_inverse=True)
        return np.arange(n_groups), np.arange(n_groups + 1), leader[member.ravel()]
    group = np.repeat(np.arange(n_groups), np.diff(problem.first))
    order = np.lexsort((key, group))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(key[order]) != 0) | (np.diff(group[order]) != 0)
    rows = order[new]
    count = np.bincount(group[rows], minlength=n_groups)
    if len(features) <= HULL_FEATURES and (count > MANY_POINTS).any():
        begins, kept = np.concatenate([[0], np.cumsum(count)]), np.ones(len(rows), bool)
        for g in np.flatnonzero(count > MANY_POINTS):
            own = slice(begins[g], begins[g + 1])
            kept[own] = False
            kept[begins[g] + corners(problem.X[rows[own]][:, features])] = True
        rows = rows[kept]
        count = np.bincount(group[rows], minlength=n_groups)
    begins = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    cell = np.arange(n_groups)
    single = np.flatnonzero(count == 1)
    _, leader, member = np.unique(key[rows[begins[single]]], return_index=True, return_inverse=True)
    cell[single] = single[leader][member.ravel()]
    return rows, begins, cell


def corners(X: FloatArray) -> IntArray:
    """Return the rows of points (m, k) that are corners of their convex hull; all where they lie in a plane."""
    if X.shape[1] == 1:
        return np.unique([X[:, 0].argmin(), X[:, 0].argmax()])
    try:
        return np.sort(ConvexHull(X).vertices).astype(np.int64)
    except QhullError:
        return np.arange(len(X))


def new_cores(table: Table, room: int) -> Cores:
    """Return an empty store of cores."""
    n_words, n_supports = len(all_groups(table)), len(table.price)
    return Cores(
        words=np.zeros((room, n_words), np.int64),
        value=np.zeros(room),
        born=np.zeros(room, np.int64),
        begin=np.zeros(n_supports, np.int64),
        size=np.zeros(n_supports, np.int64),
        space=np.zeros(n_supports, np.int64),
        hint=np.full((n_supports, 2), -1, np.int64),
        n=np.zeros(1, np.int64),
    )


def with_more_places(cores: Cores) -> Cores:
    """Return the store with places for twice as many cores; an empty one where that takes too much memory."""
    if cores.words.nbytes > MOST_BYTES:
        cores.size[:], cores.space[:], cores.n[:], cores.hint[:] = 0, 0, 0, -1
        return cores
    new: dict[str, Any] = {
        name: np.concatenate([array, np.zeros_like(array)])
        for name in ("words", "value", "born")
        for array in (getattr(cores, name),)
    }
    return cores._replace(**new)


def copy_cores(cores: Cores, to: Cores) -> None:
    """Copy cores into a store that is as large; they are old there."""
    used = int(cores.n[0])
    to.words[:used], to.value[:used] = cores.words[:used], cores.value[:used]
    to.begin[:], to.size[:], to.space[:], to.n[:] = cores.begin, cores.size, cores.space, cores.n
    to.born[:], to.hint[:] = 0, -1


def new_pool(table: Table) -> Pool:
    """Return a pool with the constants of both labels at each level."""
    depth, n_groups = len(table.rest), len(table.least)
    n_nodes = 2**depth - 1
    pool = Pool(
        cost=np.zeros((depth, TREES, n_groups)),
        price=np.zeros((depth, TREES)),
        support=np.full((depth, TREES, n_nodes), ALL_RIGHT, np.int64),
        plane=np.zeros((depth, TREES, n_nodes, table.features.shape[1] + 1)),
        n=np.tile(np.array([CONSTANTS, CONSTANTS], np.int64), (depth, 1)),
        born=np.zeros((depth, TREES), np.int64),
        clock=np.zeros(1, np.int64),
    )
    pool.cost[:, :CONSTANTS] = table.charges
    pool.support[:, 0] = ALL_LEFT
    return pool


def copy_pool(pool: Pool, to: Pool) -> None:
    """Copy the trees of a pool; they are old there."""
    used = int(pool.n[:, 0].max())
    for source, target in zip(pool[:4], to[:4], strict=True):
        target[:, :used] = source[:, :used]
    to.n[:], to.born[:], to.clock[:] = pool.n, 0, 0


def join_pools(pool: Pool, other: Pool) -> None:
    """Add the trees that another pool has got since it began, in their order."""
    for level in range(len(pool.n)):
        used = int(other.n[level, 0])
        born = other.born[level, :used]
        new = np.flatnonzero(born)[np.argsort(born[born > 0], kind="stable")]
        for place in new:
            if pool.n[level, 0] < TREES:
                at = pool.n[level, 0]
                pool.n[level, 0] += 1
            else:
                at = pool.n[level, 1] + 1 if pool.n[level, 1] + 1 < TREES else CONSTANTS
                pool.n[level, 1] = at
            for source, target in zip(other[:4], pool[:4], strict=True):
                target[level, at] = source[level, place]


def new_sets(table: Table) -> Sets:
    """Return room for a set at each level."""
    depth, n_groups = len(table.rest), len(table.least)
    return Sets(
        words=np.zeros((depth, len(all_groups(table))), np.int64),
        groups=np.zeros((depth, n_groups), np.int64),
        n=np.zeros(depth, np.int64),
        cutoff=np.zeros(depth),
        target=np.zeros(depth),
        lost=np.zeros(depth),
        value=np.zeros(depth),
        tree=np.zeros(depth, np.int64),
        bound=np.zeros(len(table.price)),
        without=np.zeros(depth),
        by_side=np.zeros(depth, np.int64),
    )


def new_splits(table: Table) -> Splits:
    """Return room for a search on a support at each level."""
    depth, n_groups, n_words = len(table.rest), len(table.least), len(all_groups(table))
    k = table.features.shape[1]
    M = most_vertices(k + 1)

    def whole(*shape: int) -> IntArray:
        return np.zeros(shape, np.int64)

    return Splits(
        support=whole(depth),
        X=np.zeros((depth, len(table.X), k)),
        first=whole(depth, n_groups + 1),
        member=whole(depth, n_groups),
        member_first=whole(depth, n_groups + 1),
        n_cells=whole(depth),
        state=np.full((depth, n_groups), OPEN, np.int64),
        trail=whole(depth, n_groups),
        n_trail=whole(depth),
        V=np.zeros((depth, DEPTHS, M, k + 1)),
        facets=whole(depth, DEPTHS, M, FACET_WORDS),
        n_vertices=whole(depth, DEPTHS),
        side=whole(depth, DEPTHS, 2, n_words),
        bound=np.zeros((depth, DEPTHS, 2)),
        tree=whole(depth, DEPTHS, 2),
        cost=np.zeros((depth, DEPTHS)),
        cell=whole(depth, DEPTHS),
        other=whole(depth, DEPTHS),
        mark=whole(depth, DEPTHS),
        depth=whole(depth),
        turn=whole(depth),
        best=np.zeros(depth),
        lost=np.zeros(depth),
        found=np.full(depth, -1, np.int64),
        core=whole(depth, n_words),
        proven=np.zeros(depth),
        point=np.zeros((depth, k + 1)),
        solution=np.zeros(k + 1),
        spare=Polytope(np.zeros((M, k + 1)), whole(M, FACET_WORDS)),
        room=CutSpace(np.zeros((M, k + 1)), whole(M, FACET_WORDS), np.zeros(M), whole(M), whole(M)),
        charge=np.zeros((2, n_groups)),
        kept=whole(n_groups),
        slot=whole(2, n_groups),
        nodes=whole(2),
        wanted=whole(n_groups),
        conflicts=new_conflicts(k, n_groups, len(table.X)),
        known=nothing_known(len(table.price), k),
    )


def run_on_little() -> None:
    """Search something tiny, so that the compiled loops are there, also those of the descent."""
    problem = tiny_problem(given_labels=True)
    LabelledSearch(problem, 1.0, adopt=lambda _: 1.0, halted=lambda *_: False).run()
    own = Level.of(problem, 0, 1.0)
    part = problem.part(np.arange(2), problem.charges)
    refine(problem.points(), own.items, new_store(own, None), part, 0, 1.0, 1.0, 0.0, 1)
