"""The local search from Python: starts on all threads, limits, progress, and the best tree in the data's own units.

Starts are done on threads of this process, or on the workers of a Dask cluster.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import monotonic
from typing import Any, ClassVar, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import ClusterError
from mipforest.objectives.leaf_losses import ClassLoss, LabelLoss, PinballLoss, PrescriptionLoss, TableLoss
from mipforest.searches import compile_by
from mipforest.searches.leaf_sums import ABSOLUTE, TWO_CLASSES, kind_of_loss
from mipforest.searches.local import HYPERPLANES, KICKS, STARTS, LocalProblem, LocalTree
from mipforest.searches.local.descent import search_from, search_hyperplanes_from
from mipforest.searches.local.leaves import ACCURACY, LINEAR, PRESCRIPTION, statistics
from mipforest.searches.local.state import LEAF, NONE, OBLIQUE, OWN, LocalWorkspace, Samples, workspace_for
from mipforest.searches.local.sweeps import MARGIN_ROOM
from mipforest.searches.numbers import LARGEST_ADDED, require, require_charges, require_limits
from mipforest.searches.pool import Pool, Threads, run_tasks
from mipforest.searches.workers import Shared, Slices, Workers
from mipforest.time_budget import TimeBudget
from mipforest.trees.sides import midpoint

#: Least improvement that counts, as a share of the loss of one leaf: far above what rounding makes of sums.
TOLERANCE = 1e-9

#: Most that impurity may weigh, in errors: it never outweighs one.
TIE = 0.4

#: Least improvement of the impurity that counts, as a share of its weight.
TIE_TOLERANCE = 1e-3

#: What rounding may take from a whole number of errors and the impurity that is added to it.
WHOLE = 1e-6

#: With as many samples, starts first work on a part of them: one of :data:`PART`.
MANY, PART = 80_000, 8

#: Of the starts on a part one of as many goes on to the next larger one, but two at least.
GOES_ON = 3

#: Least improvements that count with :data:`MANY` samples, of one node and of a pass over all, as shares of the loss of
#: one leaf: trees have come to where single samples decide on a part already.
COARSE, COARSE_PASS = 3e-5, 1e-3

#: Seconds after which starts that were told to stop are left behind in their threads.
ABANDONED_AFTER = 0.5


@dataclass(frozen=True, eq=False)
class LocalResult:
    """What a local search has found.

    Attributes
    ----------
    value
        Objective of the best tree.
    tree
        The first of the best trees in the order of the starts.
    values
        Objective that each start led to, in their order, or each that went on to all samples; infinite where it was
        not begun.
    begun
        How many starts were begun.
    visits, moves
        Visits of nodes, and those that have changed the tree.
    ended
        Whether all starts came to an end.
    interrupted
        Whether the caller stopped it.
    kept
        The best trees, as many as were asked for, the best first; equally good ones in the order of their starts.
    lost
        Why a cluster could not go on, empty where none was asked or it could.
    """

    value: float
    tree: LocalTree
    values: FloatArray
    begun: int
    visits: int
    moves: int
    ended: bool
    interrupted: bool
    kept: tuple[LocalTree, ...]
    lost: str = ""

    def after(self, part: LocalResult) -> LocalResult:
        """Return the result of a search whose starts worked on a part of the samples before."""
        return replace(
            self,
            begun=part.begun,
            visits=self.visits + part.visits,
            moves=self.moves + part.moves,
            ended=self.ended and part.ended,
            interrupted=self.interrupted or part.interrupted,
            lost=self.lost or part.lost,
        )


class StartResult(NamedTuple):
    """What a start has led to: objective, its number, tree, visits and moves, and whether it came to its end."""

    value: float
    number: int
    tree: LocalTree
    steps: IntArray
    over: bool


def compile_kernels(budget: TimeBudget, *, oblique: bool = False) -> float:
    """Load what a search runs, or compile it; see :func:`~mipforest.searches.compile_by`.

    Hyperplanes have kernels of their own, so that others need not wait for them.
    """
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    tiny = LocalProblem(X=X, y=y, loss=ClassLoss(), margin=0.0 if oblique else None)
    seconds = 12 if oblique else 24
    return compile_by(lambda: local_search(tiny, 2, starts=1), budget, "local-search", seconds)


def local_search(
    problem: LocalProblem,
    depth: int,
    *,
    starts: int = STARTS,
    kicks: int = KICKS,
    hyperplanes: int = HYPERPLANES,
    trees: Sequence[LocalTree] = (),
    seed: int = 0,
    threads: int | None = 1,
    tie_break: bool = True,
    deadline: float = np.inf,
    on_progress: Callable[[float, float, int], bool | None] | None = None,
    dask: str | None = None,
    budget: TimeBudget | None = None,
    only: int | None = None,
    keep: int = 1,
) -> LocalResult:
    """Search for a good tree from many starts.

    With :data:`MANY` samples, unless splits are hyperplanes, all starts work on a part of them first; the best ones are
    then improved on all samples, without kicks.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path, at least 1.
    starts
        Trees grown at random; the first one is grown from all features, as CART does.
    kicks
        Kicks of each start.
    hyperplanes
        Random hyperplanes that each visit of a node tries beside the best univariate split, where splits may be.
    trees
        Starts that come before the random ones.
    seed
        Seed of all random numbers; start r has the same ones on any number of threads.
    threads
        Starts at a time; ``None`` for one on each processor.
    tie_break
        Whether the leaves' impurity decides between trees with equally many errors.
    deadline
        On the clock of :func:`time.monotonic`.
    on_progress
        Called now and then with objective, bound (none) and visits; returning ``True`` stops the search.
    dask, budget
        Address of the scheduler of a Dask cluster whose workers take the starts, one per thread, and what their
        preparation is excluded from. The outcome is the same as here.
    only
        The one start that is wanted, by its number.
    keep
        How many of the best trees to return, at least 1.

    Raises
    ------
    ClusterError
        If the cluster cannot be used; or it is lost before a start has ended.
    DataValueError
        If a number is NaN, infinite where it may not be, or too large to compute with.
    """
    multiplied = problem.margin is not None or problem.coefficient_cost is not None
    require_charges("local-search", problem, problem.X, products=multiplied)
    require_limits("local-search", deadline=deadline)
    for tree in trees:
        require("local-search", "weights of a start", tree.w, least=-LARGEST_ADDED, most=LARGEST_ADDED)
        # Infinite ones send all samples to one side.
        require("local-search", "intercepts of a start", tree.b, least=-np.inf, most=np.inf)
    fixed: dict[str, Any] = {"hyperplanes": hyperplanes, "seed": seed, "tie_break": tie_break}
    on_part: LocalResult | None = None
    if starts > 0 and only is None and problem.margin is None and len(problem.X) >= MANY:
        parts = 1 + int(np.log(len(problem.X) / MANY) / np.log(PART))  # one within the other
        on_part = local_search(
            _subsample(problem, seed), depth, **fixed, starts=starts, kicks=kicks, trees=trees, threads=threads,
            deadline=deadline, dask=dask, budget=budget, keep=max(keep, 2, -(-(len(trees) + starts) // GOES_ON**parts)),
            # What a tree is worth on a part is no objective.
            on_progress=on_progress and (lambda _, bound, visits: on_progress(np.inf, bound, visits)),
        )  # fmt: skip
        trees, starts, kicks = on_part.kept, 0, 0
        if not on_part.ended:
            trees, deadline = trees[:keep], -np.inf
    if starts > 0 and only is None and problem.margin is not None:
        fitted = fitted_tree(problem, depth, seed, deadline)
        trees = trees if fitted is None else [fitted, *trees]
    search = _Starts(problem, depth, trees, starts, kicks, keep, **fixed)
    pool: Pool
    if dask is None:
        pool = Threads(search.start, threads or os.cpu_count() or 1, search.stop, patience=ABANDONED_AFTER)
    else:
        options = {**fixed, "starts": starts, "kicks": kicks, "trees": trees}
        limit = deadline - monotonic()
        pool = Workers(dask, Start, (problem, depth, options), budget or TimeBudget(), limit)
        deadline = pool.deadline
    result = search.run(pool, deadline, on_progress, only)
    return result if on_part is None else result.after(on_part)


class _Starts:
    """The starts of one search: tasks of a pool, and the best trees that they led to.

    Attributes
    ----------
    stop
        (1,) ends all starts of this process as soon as it is not 0.
    """

    def __init__(
        self, problem: LocalProblem, depth: int, trees: Sequence[LocalTree], starts: int, kicks: int, keep: int, *,
        hyperplanes: int, seed: int, tie_break: bool,
    ) -> None:  # fmt: skip
        self._problem, self._depth, self._trees = problem, depth, trees
        self._kicks, self._keep = kicks, keep
        self._samples, self._features = samples_of(problem, tie_break=tie_break, hyperplanes=hyperplanes)
        n = len(trees) + starts
        self._seeds = np.random.SeedSequence(seed).generate_state(n, np.uint64) >> np.uint64(1)
        self._values, self._report = np.full(n, np.inf), np.zeros((n, 2), np.int64)
        self._best: list[StartResult] = []
        self._idle: SimpleQueue[LocalWorkspace] = SimpleQueue()
        self._cut_short = self._interrupted = False
        self.stop = np.zeros(1, np.int64)

    def start(self, r: int) -> StartResult:
        """Do a start."""
        samples, p = self._samples, len(self._samples.rank)
        work = workspace_for(samples, self._depth) if self._idle.empty() else self._idle.get()
        # Coefficients of the start before would matter in the last digits.
        work.sums[:] = work.base_sums[:] = 0.0
        search = search_hyperplanes_from if samples.hyperplanes >= 0 else search_from
        try:
            drawn = p if r == len(self._trees) else max(1, round(np.sqrt(p)))
            if r < len(self._trees):
                drawn = 0
                _load_tree(self._trees[r], samples, self._features, work)
            found = search(samples, work, drawn, self._kicks, int(self._seeds[r]), self.stop, self._report[r])
            tree = _tree_of(self._problem, samples, self._features, work)
            value = _objective(found, self._problem, samples)
            return StartResult(value, r, tree, self._report[r], not self.stop[0])
        finally:
            self._idle.put(work)

    def run(
        self,
        pool: Pool,
        deadline: float,
        on_progress: Callable[[float, float, int], bool | None] | None,
        only: int | None,
    ) -> LocalResult:
        """Do all starts, or one alone, in a pool; the other parameters are those of :func:`local_search`."""
        waiting = deque(range(len(self._values)) if only is None else [only])
        ended, lost = False, ""

        def are_enough() -> bool:
            """Return whether nothing better is left: starts before those that have it come to their end."""
            best = self._best
            return not waiting or (len(best) == self._keep and best[-1].value <= self._problem.offset)

        def following() -> int | None:
            return None if are_enough() else waiting.popleft()

        def should_stop() -> bool:
            pool.publish(math.inf)
            if on_progress is not None:  # also before a start has ended: a stop is heard by it
                value = self._best[0].value if self._best else np.inf
                self._interrupted |= bool(on_progress(value, -np.inf, int(self._report[:, 0].sum())))
            return self._cut_short or self._interrupted or monotonic() >= deadline

        with pool:
            try:
                back = run_tasks(pool, following, pool.submit, self._record, should_stop)
                ended = back and are_enough() and not self._cut_short and not self._interrupted
            except ClusterError as error:
                if not self._best:
                    raise
                lost = str(error)
            finally:
                self.stop[0] = 1
        # All that was elsewhere may be lost; a start that is stopped has a tree.
        best = self._best or [self.start(0)]
        visits, moves = self._report.sum(axis=0).tolist()
        trees = tuple(found.tree for found in best)
        return LocalResult(
            value=best[0].value,
            tree=trees[0],
            values=self._values,
            begun=int(np.isfinite(self._values).sum()),
            visits=visits,
            moves=moves,
            ended=ended,
            interrupted=self._interrupted,
            kept=trees,
            lost=lost,
        )

    def _record(self, r: int, found: StartResult) -> None:
        """Record what a start has led to."""
        self._values[r], self._report[r] = found.value, found.steps
        self._cut_short |= not found.over
        self._best = sorted([*self._best, found], key=lambda result: result[:2])[: self._keep]


# ---------------------------------------------------------------------- a tree of fitted hyperplanes


#: Inverse penalties of the regressions, one tree each; samples of features in [0, 1].
PENALTIES = (1.0, 100.0, 1e4)

#: Fewest samples for which a tree is fitted, and most samples of a regression: more hardly change its direction.
FEW, FITTED = 20, 5_000


def fitted_tree(problem: LocalProblem, depth: int, seed: int, deadline: float) -> LocalTree | None:
    """Grow trees of hyperplanes that regressions find, node by node, and return the cheapest.

    The moves of the search change one coefficient at a time, and do not lead from few features to a hyperplane of many.
    Leaves of classes are parted by a logistic regression of the two labels that matter most, leaves of values by a
    linear one, at the best threshold of its scores.

    Parameters
    ----------
    problem
        Of hyperplanes.
    depth, seed
        As for :func:`local_search`.
    deadline
        When no further tree is grown.

    Returns
    -------
    LocalTree or None
        ``None`` for other leaves, for few samples, or where no split pays.
    """
    if (
        problem.coefficient_cost is not None
        or isinstance(problem.loss, PrescriptionLoss)
        or len(problem.X) < FEW
    ):
        return None
    if problem.predicts_class:
        charged = problem.statistics
    else:
        charged = np.column_stack([problem.weights, problem.weights * problem.y])
    best, least = None, np.inf
    for penalty in PENALTIES if problem.predicts_class else PENALTIES[-1:]:
        if monotonic() >= deadline:
            break
        rng, n_branches = np.random.default_rng(seed), 2**depth - 1
        w, b, saved = np.zeros((n_branches, problem.X.shape[1])), np.zeros(n_branches), 0.0
        members = {0: np.arange(len(problem.X))}
        for t in range(n_branches):
            here = members.pop(t, None)
            split = None if here is None else _fitted_split(problem, here, charged[here], penalty, rng)
            if here is None or split is None:
                continue
            w[t], b[t], gain = split
            saved += gain
            right = problem.X[here] @ w[t] + b[t] >= 0
            members[2 * t + 1], members[2 * t + 2] = here[~right], here[right]
        if -saved < least and w.any():
            best, least = LocalTree(w, b), -saved
    return best


def _fitted_split(
    problem: LocalProblem, here: IntArray, sums: FloatArray, penalty: float, rng: np.random.Generator
) -> tuple[FloatArray, float, float] | None:
    """Return weights of absolute sum 1, intercept and gain at a node with some samples (m,); ``None`` where none pays.

    ``sums`` is what leaves add up: the cost (m, K) of each label, or weights and weighted values (m, 2).
    """
    X, labels = problem.X[here], problem.predicts_class
    if labels:
        first = int(sums.sum(axis=0).argmin())
        shared = np.minimum(sums, sums[:, [first]]).sum(axis=0)
        shared[first] = np.inf
        advantage = sums[:, first] - sums[:, int(shared.argmin())]
        target, weight = np.where(advantage > 0, 1.0, 0.0), np.abs(advantage)
    else:
        weight, target = sums[:, 0], np.asarray(problem.y, dtype=np.float64)[here]
    some = np.flatnonzero(weight > 0)
    if len(here) < 2 * problem.N_min or len(np.unique(target[some])) < 2:
        return None
    if len(some) > FITTED:
        some = np.sort(rng.choice(some, FITTED, replace=False))
    w = _direction(X[some], target[some], weight[some], penalty, problem)
    if not w.any():
        return None
    w /= np.abs(w).sum()
    score = X @ w
    order = np.argsort(score, kind="stable")
    ranked, left = score[order], np.cumsum(sums[order], axis=0)
    total, left = left[-1], left[:-1]

    def cost(part: FloatArray) -> FloatArray:
        # Of values without the sum of their squares, which all splits share.
        lowest: FloatArray = part.min(axis=1) if labels else -(part[:, 1] ** 2) / part[:, 0]
        return lowest

    size, gap = np.arange(1, len(here)), np.diff(ranked)
    fits = (size >= problem.N_min) & (len(here) - size >= problem.N_min) & (gap > 0)
    fits &= gap >= (problem.margin or 0.0) * (1.0 + MARGIN_ROOM)
    split = np.where(fits, cost(left) + cost(total - left), np.inf)
    at = int(split.argmin())
    gain = float(cost(total[None])[0] - split[at]) - problem.split_cost * np.count_nonzero(w)
    if not gain > TOLERANCE * max(1.0, float(np.abs(total).max())):
        return None
    return w, -float(ranked[at] + ranked[at + 1]) / 2, gain


def _direction(
    X: FloatArray, target: FloatArray, weight: FloatArray, penalty: float, problem: LocalProblem
) -> FloatArray:
    """Fit a regression, again on the features that weigh most where a split may have few; return its weights (p,)."""
    from sklearn.linear_model import LogisticRegression, Ridge  # takes seconds to import

    w, features = np.zeros(X.shape[1]), np.arange(X.shape[1])
    logistic = problem.predicts_class
    for _ in range(2 if 0 < problem.max_features < len(features) else 1):
        model = LogisticRegression(C=penalty, max_iter=200) if logistic else Ridge(alpha=1.0 / penalty)
        with catch_warnings():
            simplefilter("ignore")  # where its steps do not suffice, the direction is as good as another
            fitted = model.fit(X[:, features], target, weight).coef_.ravel()
        w[:] = 0.0
        w[features] = fitted
        share = np.abs(w) * X.std(axis=0)
        features = np.sort(np.argsort(-share, kind="stable")[: problem.max_features or None])
    return w


class Start(Slices):
    """A worker's part in the search: starts, each from its number alone."""

    task: ClassVar[str] = "start"

    def __init__(self, problem: tuple[LocalProblem, int, dict[str, Any]]) -> None:
        self._problem, self._depth, self._options = problem

    @classmethod
    def compile(cls, problem: tuple[LocalProblem, int, dict[str, Any]], budget: TimeBudget) -> float:
        """Load what a start runs, or compile it; see :class:`~mipforest.searches.workers.Slices`."""
        return compile_kernels(budget, oblique=problem[0].margin is not None)

    def run(self, shared: Shared, number: int) -> StartResult:
        """Do a start; one that is stopped returns the tree that it has."""

        def stopped(*_: object) -> bool:
            return bool(shared.stop[0])

        found = local_search(self._problem, self._depth, **self._options, only=number, on_progress=stopped)
        return StartResult(
            found.value, number, found.tree, np.array([found.visits, found.moves]), found.ended
        )


def _subsample(problem: LocalProblem, seed: int) -> LocalProblem:
    """Draw a part of the samples; costs of splits and coefficients are as large beside its losses as before."""
    n = len(problem.X)
    part = np.sort(np.random.default_rng(seed).choice(n, n // PART, replace=False))
    share = float(problem.weights[part].sum() / problem.weights.sum())
    if isinstance(problem.loss, TableLoss):
        costs = problem.statistics.sum(axis=1)
        share = float(costs[part].sum() / costs.sum()) if costs.any() else share
    coefficients = problem.coefficient_cost
    return replace(
        problem.subset(part),
        X=problem.X[part],
        split_cost=share * problem.split_cost,
        coefficient_cost=None if coefficients is None else share * coefficients,
    )


def samples_of(
    problem: LocalProblem, *, tie_break: bool = True, hyperplanes: int = HYPERPLANES
) -> tuple[Samples, IntArray]:
    """Return the samples of a search, and the numbers of the features that vary, and that some node may split on.

    They take 8 bytes per sample and feature: ranks and orders.
    """
    n, oblique = len(problem.X), problem.margin is not None
    varies = problem.X.min(axis=0) < problem.X.max(axis=0)
    features = np.flatnonzero(varies if problem.allowed is None else varies & problem.allowed.any(axis=0))
    if len(features) == 0:
        features = np.zeros(1, np.int64)  # nothing splits, but there are orders
    p = len(features)
    charged = _charged(problem, features, tie_break=tie_break)
    absolute = charged.kind == ABSOLUTE
    order, rank = np.empty((p + absolute, n), np.int32), np.empty((p, n), np.int32)
    distinct, place = [np.zeros(0)], np.zeros(n, np.int32)
    for f, j in enumerate(features):
        column = problem.X[:, j]
        order[f] = np.argsort(column, kind="stable")
        ascending = column[order[f]]
        new = np.concatenate([[True], ascending[1:] > ascending[:-1]])
        rank[f, order[f]] = np.cumsum(new) - 1
        distinct.append(ascending[new])
    if absolute:
        order[-1] = np.argsort(charged.target, kind="stable")
        place[order[-1]] = np.arange(n)
    tolerance = (ACCURACY if charged.kind == LINEAR else TOLERANCE) * max(charged.unit, np.finfo(float).tiny)
    if charged.tie > 0 and charged.kind != LINEAR:
        tolerance = TIE_TOLERANCE * charged.tie
    many = n >= MANY and not oblique
    allowed = np.zeros((0, p), bool) if problem.allowed is None else problem.allowed[:, features]
    samples = Samples(
        kind=charged.kind,
        N_min=problem.N_min,
        rank=rank,
        order=order,
        first=np.cumsum(list(map(len, distinct))),
        distinct=np.concatenate(distinct),
        X=np.ascontiguousarray(problem.X[:, features]) if oblique else np.zeros((0, p)),
        value=np.ascontiguousarray(charged.statistics),
        target=charged.target,
        place=place,
        split_cost=problem.split_cost / _counted(problem),
        margin=problem.margin or 0.0,
        tie=charged.tie,
        tolerance=max(tolerance, COARSE * charged.unit) if many else tolerance,
        pass_tolerance=COARSE_PASS * charged.unit if many else 0.0,
        hyperplanes=hyperplanes if oblique else -1,
        max_features=problem.max_features or p,
        allowed=np.ascontiguousarray(allowed, dtype=np.uint8),
        group=np.full(p, -1) if problem.group is None else problem.group[features],
        level=problem.loss.level,
    )
    return samples, features


class _Charged(NamedTuple):
    """What leaves are charged for.

    Attributes
    ----------
    kind, statistics
        Which loss, and the (n, V) statistics that it sums over leaves.
    unit
        Loss of one leaf.
    tie
        Weight of the impurity; of linear leaves, half the cost of their coefficients.
    target
        (n,) target of a regression.
    """

    kind: int
    statistics: FloatArray
    unit: float
    tie: float
    target: FloatArray


def _charged(problem: LocalProblem, features: IntArray, *, tie_break: bool) -> _Charged:
    """Return what leaves are charged for, where linear functions may use some features."""
    y, n = np.asarray(problem.y, dtype=np.float64), len(problem.X)
    loss, weight, tie = problem.loss, problem.weights, 0.0
    x = problem.X[:, features] if problem.coefficient_cost is not None else None
    if isinstance(loss, LabelLoss):
        kind, values, unit = kind_of_loss(loss), problem.statistics, loss.baseline(y, weight)
        if tie_break and problem.split_cost == 0 and (values == np.rint(values)).all():
            tie = TIE / float(values.sum())
        if problem.predicts_class and values.shape[1] == 2:
            kind, values = TWO_CLASSES, np.column_stack([values[:, 0] - values[:, 1], values.sum(axis=1)])
        return _Charged(kind, values, unit, tie, np.zeros(n))
    if isinstance(loss, PrescriptionLoss):
        values = statistics(loss, y, weight, x, problem.coefficient_cost or 0.0)
        return _Charged(PRESCRIPTION + loss.n_treatments, values, float(values[0, -3]), 0.0, np.zeros(n))
    kind, centred = kind_of_loss(loss), loss.centred(y, weight)
    values = loss.statistics(centred, weight)
    absolute = isinstance(loss, PinballLoss)
    unit = float(np.abs(values[:, 1]).sum()) if absolute else loss.baseline(centred, weight)
    if x is not None:
        kind, tie = LINEAR, 0.5 * (problem.coefficient_cost or 0.0)
        products = (x[:, :, None] * x[:, None, :]).reshape(n, -1)
        more = weight[:, None] * np.column_stack([x, centred[:, None] * x, products])
        values = np.column_stack([values, more])
    # The target is read for the absolute loss.
    return _Charged(kind, values, unit, tie, centred if centred.ndim == 1 else np.zeros(n))


def _counted(problem: LocalProblem) -> int:
    """Return what losses are divided by in the search: the least number of samples that had a treatment, or 1."""
    return problem.loss.n_treatment if isinstance(problem.loss, PrescriptionLoss) else 1


def _objective(found: float, problem: LocalProblem, samples: Samples) -> float:
    """Return the objective without the impurity: errors are whole numbers where it has a weight."""
    whole = samples.tie > 0 and samples.kind != LINEAR
    value = float(np.floor(found + WHOLE) if whole else found) * _counted(problem)
    return value / problem.unit + problem.offset


def _load_tree(tree: LocalTree, samples: Samples, features: IntArray, work: LocalWorkspace) -> None:
    """Write a tree, whose univariate splits have weights above 0, into the memory of a thread."""
    nodes, m = work.trees[OWN], len(tree.b)
    nodes["feature"] = NONE
    nodes["feature"][0] = LEAF
    for t in range(m):
        if nodes["feature"][t] == NONE:
            continue
        used = np.flatnonzero(tree.w[t][features])
        if len(used) > 1 or (samples.hyperplanes >= 0 and tree.w[t, features[used]].sum() < 0):
            nodes["feature"][t], nodes["threshold"][t] = OBLIQUE, -tree.b[t]
            work.w[OWN, t] = tree.w[t][features]
            nodes["feature"][[2 * t + 1, 2 * t + 2]] = LEAF
            continue
        # Where a node does not split, all samples go to one side, and the other one is dropped.
        f = used[0] if len(used) else 0
        if len(used) and not _is_within(samples, nodes["feature"], t, f):
            continue  # it stays a leaf
        distinct = samples.distinct[samples.first[f] : samples.first[f + 1]]
        right = distinct * tree.w[t, features[f]] + tree.b[t] >= 0
        nodes["feature"][t], nodes["cut"][t] = f, np.flatnonzero(right).min(initial=len(right))
        nodes["feature"][[2 * t + 1, 2 * t + 2]] = LEAF


def _is_within(samples: Samples, feature: IntArray, t: int, f: int) -> bool:
    """Return whether a node of a tree (m,) may split on a feature, beside those above it."""
    if not len(samples.allowed):
        return True
    group = [samples.group[f]] if samples.group[f] >= 0 else []
    above = t
    while above:
        above = (above - 1) // 2
        if samples.group[feature[above]] in group:
            return False
    return bool(samples.allowed[t, f])


def _tree_of(problem: LocalProblem, samples: Samples, features: IntArray, work: LocalWorkspace) -> LocalTree:
    """Return the tree in the memory of a thread; thresholds stand in the middle between both sides of their node."""
    nodes, p = work.trees[OWN], problem.X.shape[1]
    m = len(nodes) // 2
    w, b = np.zeros((m, p)), np.zeros(m)
    here = {0: np.arange(len(problem.X))}
    for t in range(m):
        if nodes["feature"][t] < 0:
            continue
        members, f = here.pop(t), nodes["feature"][t]
        if f == OBLIQUE:
            w[t, features], b[t] = work.w[OWN, t], -nodes["threshold"][t]
            right = samples.X[members] @ work.w[OWN, t] >= nodes["threshold"][t]
        else:
            rank, distinct = samples.rank[f, members], samples.distinct[samples.first[f] :]
            right = rank >= nodes["cut"][t]
            w[t, features[f]] = 1.0
            b[t] = -midpoint(distinct[rank[~right].max()], distinct[rank[right].min()])
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
    return LocalTree(w, b)
