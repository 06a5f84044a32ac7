"""The exact search from Python: memory, limits, progress, and what was found in units of the objective."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import compile_by
from mipforest.searches.exact.branching import (
    ALL,
    BEST,
    CLOSE,
    CLOSED,
    ENDED,
    FEATURE,
    GIVEN,
    KEY,
    N_OPEN,
    ONE,
    OPENED,
    PAUSED,
    STAGE,
    TAKE,
    TAKEN,
    Frames,
    Known,
    M,
    search,
)
from mipforest.searches.exact.inherited import CoverSearch
from mipforest.searches.exact.losses import (
    ABSOLUTE,
    CLASSES,
    COUNTS,
    SQUARED,
    TWO_CLASSES,
    Int32Array,
    Prepared,
    Room,
    Rows,
)
from mipforest.searches.numbers import ANY_SIZE, require, require_charges, require_limits
from mipforest.time_budget import TimeBudget

#: Values closer than this share of the loss of one leaf are the same: far above what rounding makes of sums.
TOLERANCE = 1e-11

#: What bounds are lowered by for the same reason, where losses are not whole numbers.
ROUNDING = 1e-10

#: Share of the gap that the search may use; the rest is for what bounds are lowered by.
GAP_SHARE = 0.99

#: Sets of rows that are remembered; a power of two.
MOST_KNOWN = 2**18

#: Sets of rows that the evaluation of one position of the root may add to these; a power of two.
MOST_KNOWN_BESIDE = 2**12

#: Positions of the root that are taken before the first of them is closed, whatever the number of threads.
AT_A_TIME = 8

#: Samples times features that one thread scans before others are asked: about 0.05 s.
SCANNED_ALONE = 2e7

#: By loss and depth, samples times features from which on the search by vector walks takes over: on fewer, its tables
#: cost more than they save.
LEAST_FOR_COVERS = {
    "classes": {2: 20_000, 3: 2_000, 4: 3_000},
    "squared": {2: 20_000, 3: 2_500, 4: 2_500},
}

#: Least and most that the greatest centred target may be, and weights, for walks: products of four sums are doubles.
WALKED_TARGETS = 1e-30, 1e30


#: Seconds between two looks at the clock, and at what was found.
INTERVAL = 0.05


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an exact search has found.

    Attributes
    ----------
    value
        Objective of the best tree.
    bound
        Proven lower bound on the objective of every tree.
    chosen
        (|B|,) threshold of each branch node, -1 where it does not split; ``None`` where nothing is better than the
        tree that was given.
    by_threshold
        (q,) proven lower bound on the objective of every tree with this threshold at the root.
    nodes
        Positions of nodes with two levels that were evaluated.
    ended
        Whether nothing is left to search.
    interrupted
        Whether the caller stopped it.
    """

    value: float
    bound: float
    chosen: IntArray | None
    by_threshold: FloatArray
    nodes: int
    ended: bool
    interrupted: bool


def compile_kernels(budget: TimeBudget, problem: UnivariateProblem | None = None, depth: int = 2) -> float:
    """Load what a search of a problem runs, or compile it; all kernels where no problem is given.

    See :func:`~mipforest.searches.compile_by`.
    """
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    left = sparse.csr_array(np.array([[1.0], [0.0]]))
    tiny = Thresholds(X, y, np.zeros(1, np.int64), np.array([0.5]), np.array([0, 1]), left, ("x",))

    def run() -> None:
        walks = problem is not None and _takes_covers(problem, depth)
        for loss in ("classes", "squared"):
            small = UnivariateProblem(thresholds=tiny, y=y, loss=loss)
            if problem is None or (walks and loss == problem.loss):
                for levels in (2, 3):
                    _by_covers(small, *_rows(small), levels, np.inf, 0.0, np.inf, None, 1)
        if not walks:
            exact_search(UnivariateProblem(thresholds=tiny, y=y, loss="classes"), 2)

    return compile_by(run, budget)


def exact_search(
    problem: UnivariateProblem,
    depth: int,
    *,
    best: float = np.inf,
    gap: float = 0.0,
    most_nodes: int | None = None,
    deadline: float = np.inf,
    on_progress: Callable[[float, float, int], bool | None] | None = None,
    complete: bool = False,
    threads: int | None = 1,
) -> Outcome:
    """Search for the best tree of univariate splits.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path, at least 1.
    best
        Objective of a tree that is known already.
    gap
        Relative gap within which the best tree will do.
    most_nodes
        Positions to evaluate; the outcome depends on nothing else then.
    deadline
        On the clock of :func:`time.monotonic`.
    on_progress
        Called now and then with objective, bound and nodes; returning ``True`` stops the search.
    complete
        Whether to evaluate every threshold of the root, also those that cannot be best: exact values of
        ``by_threshold`` at depth 1 and 2.
    threads
        Positions of the root that are evaluated at a time, ``None`` for one on each processor: at most
        :data:`AT_A_TIME`, from depth 3 on, without ``most_nodes``. The outcome is the same for any number, unless it
        is stopped.

    Raises
    ------
    DataValueError
        If a number is NaN, infinite where it may not be, or too large to compute with.
    """
    require_charges("exact-search", problem, problem.thresholds.X)
    require("exact-search", "thresholds", problem.thresholds.value, least=-ANY_SIZE, most=ANY_SIZE)
    require_limits("exact-search", best=best, gap=gap, deadline=deadline)
    rows, order = _rows(problem)
    unit, (n, p) = problem.unit, (len(rows.size), len(rows.rank))
    if most_nodes is None and not complete and _takes_covers(problem, depth):
        return _by_covers(problem, rows, order, depth, best, gap, deadline, on_progress, threads)
    stop, by_threshold = np.zeros(1, np.int64), np.zeros(len(problem.thresholds))
    unlimited = np.iinfo(np.int64).max
    alone = unlimited if depth < 3 or most_nodes is not None else 1 + int(SCANNED_ALONE / (n * p))
    main = _memory(rows, order, depth, MOST_KNOWN)
    main.frames.value[0, BEST], main.frames.tree[0, 0, 0] = best * unit, GIVEN
    others: list[_Memory] = []

    def run(memory: _Memory, task: int) -> int:
        ended: int = search(
            rows, memory.frames, memory.prepared, memory.room, main.known, memory.known, depth, problem.split_cost,
            GAP_SHARE * gap, TOLERANCE * unit, unlimited if most_nodes is None else most_nodes, alone, task, complete,
            stop, memory.report, by_threshold,
        )  # fmt: skip
        return ended

    def nodes() -> int:
        return int(sum(memory.report[2] for memory in (main, *others)))

    interrupted = False
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:

        def finish(running: list[Future[int]]) -> list[int]:
            nonlocal interrupted
            while wait(running, timeout=INTERVAL).not_done:
                if on_progress is not None and np.isfinite(main.report[0]):
                    bound = float(_lowered(main.report[1], problem))
                    interrupted |= bool(on_progress(main.report[0] / unit, bound, nodes()))
                if interrupted or monotonic() >= deadline:
                    stop[0] = 1
            return [future.result() for future in running]

        try:
            ended = finish([pool.submit(run, main, ALL)])[0]
            while ended == PAUSED:
                others = others or [_memory(rows, order, depth, MOST_KNOWN_BESIDE) for _ in range(AT_A_TIME)]
                bound, begun = main.report[1], []
                for memory in others:
                    ended = run(main, TAKEN)
                    if ended != PAUSED:
                        break
                    memory.begin(main)
                    begun.append(memory)
                if not begun:
                    break
                main.report[1] = bound  # what was taken is open still
                ends = finish([pool.submit(run, memory, ONE) for memory in begun])
                for memory, end in zip(begun, ends, strict=True):
                    main.take_back(memory)
                    ended = run(main, CLOSED if end == PAUSED else OPENED)
        finally:
            stop[0] = 1
    tree = main.frames.tree[0, 0].astype(np.int64)
    return Outcome(
        value=main.report[0] / unit,
        bound=float(_lowered(main.report[1], problem)),
        chosen=None if tree[0] == GIVEN else _in_the_middle(tree, problem.thresholds, depth),
        by_threshold=_lowered(by_threshold, problem),
        nodes=nodes(),
        ended=ended == ENDED,
        interrupted=interrupted,
    )


def _takes_covers(problem: UnivariateProblem, depth: int) -> bool:
    """Return whether the search by vector walks takes a problem: errors with whole weights, or the squared loss."""
    n, p = problem.thresholds.X.shape
    enough = n * p >= LEAST_FOR_COVERS.get(problem.loss, {}).get(depth, np.inf)
    if not enough or problem.costs is not None or problem.N_min > 1:
        return False
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    values = int(np.diff(problem.thresholds.first).max(initial=0)) + 1
    y = np.asarray(problem.y)
    if problem.loss == "squared":
        least, most = WALKED_TARGETS
        spread = float(np.abs(y - np.average(y, weights=weight)).max())
        return bool(
            # Each thread has copies of both sides, as large as the tables.
            CoverSearch.fits(n if depth == 2 else 3 * n, p, values)
            and least < spread < most
            and least < weight.min()
            and weight.max() < most
            and weight.max() < 1e9 * weight.min()
        )
    labels = y.astype(np.int64)
    return CoverSearch.takes(problem.thresholds.X, problem.thresholds.group, labels, weight, values)


def _by_covers(
    problem: UnivariateProblem,
    rows: Rows,
    order: Int32Array,
    depth: int,
    best: float,
    gap: float,
    deadline: float,
    on_progress: Callable[[float, float, int], bool | None] | None,
    threads: int | None,
) -> Outcome:
    """Search by vector walks; see :func:`exact_search`."""
    unit, thresholds = problem.unit, problem.thresholds
    squared = problem.loss == "squared"
    tolerance, slack = TOLERANCE * unit if problem.split_cost else 0.0, 1.0
    if squared:
        # The loss of one leaf, which rounding errors are shares of, may be far from the unit.
        slack = max(1.0, float(rows.value[:, 2].sum()) / unit)
        tolerance = TOLERANCE * unit * slack
    found = CoverSearch(
        rows.rank,
        order,
        rows.value if squared else np.column_stack([rows.label, rows.weight]).astype(np.int64),
        cost=problem.split_cost,
        tolerance=tolerance,
        incumbent=best * unit,
    )

    def look() -> bool:
        if on_progress is None or not np.isfinite(found.incumbent):
            return False
        bound = float(_lowered(np.asarray(found.bound), problem, slack))
        return bool(on_progress(found.incumbent / unit, bound, found.pairs))

    ended, interrupted = found.run(depth, gap=GAP_SHARE * gap, deadline=deadline, threads=threads, look=look)
    by_threshold = np.full(len(thresholds), found.incumbent)
    for interval in found.open:
        at = thresholds.first[interval.feature] - 1
        part = by_threshold[at + interval.low : at + interval.high + 1]
        np.minimum(part, interval.bound + problem.split_cost, out=part)
    chosen = None
    if found.splits is not None:
        nodes = [-1 if f < 0 else thresholds.first[f] + t - 1 for f, t in found.tree(depth)]
        chosen = _in_the_middle(np.array(nodes), thresholds, depth)
    return Outcome(
        value=found.incumbent / unit,
        bound=float(_lowered(np.asarray(found.bound), problem, slack)),
        chosen=chosen,
        by_threshold=_lowered(by_threshold, problem, slack),
        nodes=found.pairs,
        ended=ended,
        interrupted=interrupted,
    )


def _lowered(bound: FloatArray, problem: UnivariateProblem, slack: float = 1.0) -> FloatArray:
    """Return bounds that rounding errors cannot have raised, in units of the objective, by so many roundings."""
    whole = (
        problem.loss == "classes"
        and problem.split_cost == 0
        and problem.weight is None
        and problem.costs is None
    )
    return bound / problem.unit if whole else np.maximum(0.0, bound / problem.unit - slack * ROUNDING)


class _Memory(NamedTuple):
    """What a search works in, or the evaluation of one position of its root."""

    frames: Frames
    prepared: Prepared
    room: Room
    known: Known
    report: FloatArray

    def begin(self, main: _Memory) -> None:
        """Take over the position that the root of a search has taken, which may then take another one."""
        for name in ("state", "value"):
            getattr(self.frames, name)[0] = getattr(main.frames, name)[0]
        self.frames.state[0, N_OPEN] = 0
        main.frames.state[0, STAGE] = TAKE

    def take_back(self, other: _Memory) -> None:
        """Give the root a position that was evaluated elsewhere, to close it, and what became known there."""
        own, its = self.frames, other.frames
        own.state[0, FEATURE:], own.value[0, KEY:] = its.state[0, FEATURE:], its.value[0, KEY:]
        own.tree[0, 1:], own.state[0, STAGE] = its.tree[0, 1:], CLOSE
        found = other.known.hash[:, 0] != 0
        slot = other.known.hash[found, 0] & np.uint64(max(0, len(self.known.hash) - 1))
        known, new = self.known, other.known
        known.hash[slot], known.found[slot], known.tree[slot] = (
            new.hash[found],
            new.found[found],
            new.tree[found],
        )
        other.known.hash[:] = 0


def _memory(rows: Rows, order: Int32Array, depth: int, most_known: int) -> _Memory:
    """Return the memory of a search, with all rows in its first frame."""
    (n, V), p = rows.value.shape, len(rows.rank)
    F, N, T = max(1, depth - 1), p * (n // 2 + 2), 2**depth - 1
    frames = Frames(
        order=np.zeros((F, *order.shape), np.int32),
        state=np.zeros((F, 8), np.int64),
        value=np.full((F, 11), np.inf),
        tree=np.full((F, 3, T), -1, np.int32),
        open=np.zeros((F, N, 3)),
        open_at=np.zeros((F, N, 3), np.int64),
        hash=np.zeros((F, 2), np.uint64),
    )
    frames.order[0], frames.state[0, M] = order, n
    summed = {CLASSES: V, COUNTS: V, TWO_CLASSES: 1, SQUARED: 2, ABSOLUTE: 0}[rows.kind]
    slots, width = (most_known, 2 ** (depth - 2) - 1) if depth > 3 else (0, 1)
    return _Memory(
        frames,
        Prepared(
            np.zeros(p, np.int64), np.zeros((n, p), np.uint32), np.zeros((p, summed, n)), np.zeros((p, n), np.int64),
            np.zeros(V),
        ),
        Room(
            np.zeros((p, summed, n)), np.zeros((p, n), np.int64), np.zeros((4, n)), np.zeros((3, V)),
            np.zeros((2, 2)), np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros((2, 2), np.int64),
            np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros((4, 2)), np.zeros(n, np.bool_),
            np.zeros(n, np.int32), np.zeros(n, np.int32),
        ),
        Known(np.zeros((slots, 2), np.uint64), np.zeros((slots, 2)), np.zeros((slots, width), np.int32)),
        np.array([np.inf, 0.0, 0.0]),
    )  # fmt: skip


def _rows(problem: UnivariateProblem) -> tuple[Rows, Int32Array]:
    """Return the rows of a problem, and their orders (p or p + 1, n)."""
    thresholds, y = problem.thresholds, np.asarray(problem.y)
    weight = np.ones(len(y)) if problem.weight is None else problem.weight
    # Samples that are equal in features and target are one row; for the squared loss, those equal in features.
    target = np.zeros(len(y), np.int64) if problem.loss == "squared" else np.unique(y, return_inverse=True)[1]
    _, of, row = np.unique(
        thresholds.group * (target.max() + 1) + target, return_index=True, return_inverse=True
    )
    n, group = len(of), thresholds.group[of]
    X = thresholds.X[group]
    rank = np.array([np.unique(column, return_inverse=True)[1] for column in X.T], dtype=np.int32)
    size = np.bincount(row, minlength=n)
    values, centred, most = np.zeros((n, 1)), np.zeros(n), np.full(n, np.inf)
    row_weight, label = np.bincount(row, weight, n).astype(np.float64), np.zeros(n, np.int32)
    if problem.loss == "classes":
        labels = y.astype(np.int64)
        K = int(labels.max()) + 1 if problem.costs is None else len(problem.costs)
        costs = 1.0 - np.eye(K) if problem.costs is None else problem.costs
        losses = row_weight[:, None] * costs[labels[of]]
        kind = TWO_CLASSES if K == 2 and problem.N_min == 1 else CLASSES
        difference = losses[:, 0] - losses[:, 1]
        values, label = losses, labels[of].astype(np.int32)
        if kind == TWO_CLASSES:
            values = np.column_stack([difference, losses.sum(axis=1)])
        elif problem.costs is None and problem.N_min == 1:
            kind, values = COUNTS, row_weight[:, None] * np.eye(K)[label]
        most = losses.max(axis=1)
        of_group = np.zeros((len(thresholds.X), K))
        np.add.at(of_group, group, losses)
        own = of_group.min(axis=1)
    else:
        kind = SQUARED if problem.loss == "squared" else ABSOLUTE
        shifted = y - np.average(y, weights=weight)
        values = np.column_stack([np.bincount(row, weight * shifted**k, n) for k in (0, 1, 2)])
        centred = values[:, 1] / values[:, 0] if kind == SQUARED else shifted[of]
        own = np.zeros(len(thresholds.X))
        if kind == SQUARED:
            np.add.at(own, group, np.maximum(0.0, values[:, 2] - values[:, 1] * centred))
    least = np.zeros(n)
    representative = np.unique(group, return_index=True)[1]
    least[representative] = own
    order = np.argsort(rank, axis=1, kind="stable")
    place = np.zeros(n, np.int64)
    if kind == ABSOLUTE:
        by_target = np.argsort(centred, kind="stable")
        place[by_target] = np.arange(n)
        order = np.vstack([order, by_target])
    rows = Rows(
        kind, problem.N_min, rank, thresholds.first.astype(np.int64), np.ascontiguousarray(values), centred,
        row_weight, label, size.astype(np.int64), most, least, place.astype(np.int32),
        np.random.default_rng(0).integers(0, 2**64, (n, 2), np.uint64, endpoint=False),
        problem.N_min == 1 and bool((row_weight == np.rint(row_weight)).all()),
    )  # fmt: skip
    return rows, order.astype(np.int32)


def _in_the_middle(chosen: IntArray, thresholds: Thresholds, depth: int) -> IntArray:
    """Move thresholds that lie just above the left side to the middle between both sides of their node."""
    chosen = chosen.copy()
    here = {0: np.arange(len(thresholds.X))}
    for t in range(2**depth - 1):
        members, k = here.pop(t, None), chosen[t]
        if members is None or k < 0:
            continue
        j = thresholds.feature[k]
        x = thresholds.X[members, j]
        right = x >= thresholds.value[k]
        middle = x[~right].max() + (x[right].min() - x[~right].max()) / 2
        own = thresholds.value[thresholds.of(j)]
        between = np.flatnonzero((own > x[~right].max()) & (own <= x[right].min()))
        chosen[t] = thresholds.first[j] + between[np.abs(own[between] - middle).argmin()]
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
    return chosen
