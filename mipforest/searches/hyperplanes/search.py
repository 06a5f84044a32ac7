"""The local search over trees of hyperplanes: starts, kicks, growing samples of the data, threads, and the incumbent.

**Many samples.** The search works on :data:`SAMPLES` of them first, which weigh as much as all. Its best trees go on to
the next larger sample, and at last to all samples. There, and only there, trees have to obey the gap epsilon
(:mod:`~mipforest.searches.hyperplanes.gap`).

**A descent** is annealing, line moves and a refit of the last level. **A kick** changes one node of a tree at random;
the descent that follows is kept if it lowers the objective.

**Few samples.** Where node problems have at most :data:`~mipforest.searches.hyperplanes.node_moves.MAX_ROWS` rows, node
moves with exact node problems (:mod:`~mipforest.searches.hyperplanes.node_moves`) take the place of descents.

**Determinism.** Starts, and kicks in groups of :data:`GROUP`, are tasks with random numbers of their own, and a group
sees the trees of the groups before it. So the tree depends on the seed, and not on the number of threads, as long as no
time limit ends the search.

**Clusters.** On the workers of a Dask cluster every start is a search of its own, with its share of the kicks. The tree
is then another one than on threads, and the same on any number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import ClusterError
from mipforest.searches import compile_by
from mipforest.searches.hyperplanes import HyperplaneProblem, Hyperplanes
from mipforest.searches.hyperplanes.annealing import annealed
from mipforest.searches.hyperplanes.gap import improve_feasible, made_feasible, move_out_of_gap
from mipforest.searches.hyperplanes.line_moves import LineDescent, random_line
from mipforest.searches.hyperplanes.node_moves import EXCHANGED, MAX_ROWS, NodeMoves, rows_at_most
from mipforest.searches.pool import Threads, run_tasks
from mipforest.searches.workers import Shared, Slices, Workers
from mipforest.time_budget import TimeBudget

#: Sizes of the samples that are searched before all: one is left out where all are fewer than this multiple of it.
SAMPLES, MUCH_LARGER = (4000, 25_000), 1.4

#: Share of the time, and of the kicks, after which a sample is left for the next one, by the number of samples.
SHARES = {1: (1.0,), 2: (0.4, 1.0), 3: (0.3, 0.6, 1.0)}

#: Trees that are kept, and that go on to the next sample; above so many samples only the best one does.
KEPT, MANY_SAMPLES = 4, 50_000

#: Kicks that see the same trees: as many threads are of use.
GROUP = 4

#: Accuracy of node problems during the search.
ROUGH = 1e-5

#: Least gain of a kick that counts, relative to the objective.
LEAST_GAIN = 1e-5

#: Least share of the objective that the gap costs the incumbent, compared with a tree that breaks it, for another try.
WORTH_A_GAP = 1e-3

#: Widths of the splits in a first descent, after a promotion to more samples, and after a kick, drawn among these.
START_WIDTHS, PROMOTED_WIDTHS = (0.3, 0.1, 0.03), (0.1, 0.03, 0.01)
KICK_WIDTHS = ((0.03, 0.01), (0.1, 0.03, 0.01), (0.3, 0.1, 0.03), (1.0, 0.3, 0.1, 0.03))

#: Line moves of a descent between two refits, and rounds of both while they gain a share of the objective.
LINES, ROUNDS, ROUND_GAIN = 15, 2, 3e-4

#: Told the value of the best feasible tree and the number of tasks done; returns whether to stop.
Progress = Callable[[float, int], bool]


@dataclass(frozen=True, eq=False)
class HyperplanesResult:
    """What a search has found.

    Attributes
    ----------
    tree
        The best feasible tree; its value is infinite where none was found in time.
    steps
        Starts and kicks that were done.
    ended
        Whether all of them were.
    interrupted
        Whether the caller stopped it.
    lost
        Why the workers of a cluster were lost; empty if they were not.
    """

    tree: Hyperplanes
    steps: int
    ended: bool
    interrupted: bool
    lost: str = ""


def local_search(
    problem: HyperplaneProblem,
    *,
    starts: int,
    kicks: int,
    trees: Sequence[Hyperplanes] = (),
    seed: int = 0,
    threads: int | None = 1,
    deadline: float = np.inf,
    clock: Callable[[], float] = monotonic,
    on_progress: Progress = lambda value, steps: False,  # noqa: ARG005
    first: int = 0,
) -> HyperplanesResult:
    """Search for a good tree.

    Parameters
    ----------
    problem
        What trees are charged.
    starts, kicks
        Random starts, and kicks of the best trees.
    trees
        Starts that come before the random ones.
    seed
        Seed of all random numbers.
    threads
        Tasks at a time; ``None`` for one on each processor.
    deadline, clock
        When to end, on a clock; samples of the data have shares of the time until then.
    on_progress
        Called now and then; returning ``True`` stops the search.
    first
        Number of the first random start: it says how that one grows.
    """
    search = _Search(problem, seed, threads or os.cpu_count() or 1, deadline, clock, on_progress)
    return search.run(starts, kicks, trees, first)


class Start(Slices):
    """A worker's part in the search: starts with their kicks, each from its number alone."""

    task: ClassVar[str] = "start"

    def __init__(self, problem: HyperplaneProblem) -> None:
        self._problem = problem

    @classmethod
    def compile(cls, problem: HyperplaneProblem, budget: TimeBudget) -> float:
        """Load what a start runs, or compile it; see :class:`~mipforest.searches.workers.Slices`."""
        return compile_kernels(budget, problem)

    def run(
        self, shared: Shared, number: int, kicks: int, trees: Sequence[Hyperplanes], seed: int, seconds: float
    ) -> HyperplanesResult:
        """Do a start; one that is stopped returns the tree that it has."""

        def stopped(value: float, steps: int) -> bool:
            del value, steps
            return bool(shared.stop[0])

        own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        return local_search(
            self._problem, starts=1, kicks=kicks, trees=trees, seed=own, deadline=monotonic() + seconds,
            on_progress=stopped, first=number,
        )  # fmt: skip


def search_on(
    workers: Workers,
    *,
    starts: int,
    kicks: int,
    trees: Sequence[Hyperplanes],
    nothing: Hyperplanes,
    seed: int,
    on_progress: Progress,
) -> HyperplanesResult:
    """Search on the workers of a Dask cluster.

    Parameters
    ----------
    workers
        The workers, whose part is :class:`Start`.
    starts, kicks, seed, on_progress
        As for :func:`local_search`.
    trees
        Starts that come before the random ones; the first search has them too.
    nothing
        What is returned where no search found a feasible tree.

    Raises
    ------
    ClusterError
        If the cluster is lost before a search has ended.
    """
    count = max(1, starts)
    seconds = (workers.deadline - monotonic()) * min(1.0, workers.slots / count)
    following, best, steps, done, interrupted, lost = iter(range(count)), nothing, 0, 0, False, ""

    def submit(number: int) -> Future[Any]:
        share = kicks // count + (number < kicks % count)
        return workers.submit(number, share, trees if number == 0 else (), seed, seconds)

    def record(number: int, found: HyperplanesResult) -> None:  # noqa: ARG001
        nonlocal best, steps, done
        steps, done = steps + found.steps, done + found.ended
        best = min(best, found.tree, key=lambda tree: tree.value)

    def should_stop() -> bool:
        nonlocal interrupted
        workers.publish(np.inf)
        interrupted |= on_progress(best.value, steps)
        return interrupted or monotonic() >= workers.deadline

    try:
        run_tasks(workers, lambda: next(following, None), submit, record, should_stop)
    except ClusterError as error:
        if not np.isfinite(best.value):
            raise
        lost = str(error)
    return HyperplanesResult(best, steps, done == count, interrupted, lost)


@dataclass(frozen=True, eq=False)
class _TaskResult:
    """What a task found: a tree whose gap may be violated, and a feasible one."""

    tree: Hyperplanes
    feasible: Hyperplanes | None = None


#: A task gets random numbers of its own.
_Task = Callable[[np.random.Generator], _TaskResult]


class _Search:
    def __init__(
        self,
        problem: HyperplaneProblem,
        seed: int,
        threads: int,
        deadline: float,
        clock: Callable[[], float],
        on_progress: Progress,
    ) -> None:
        self.problem, self.seed, self.threads = problem, seed, threads
        self.clock, self.began, self.deadline, self.on_progress = clock, clock(), deadline, on_progress
        self.sample_deadline = deadline
        self.stopped = self.interrupted = False
        self.steps = self.tasks = 0
        nothing = np.zeros((problem.n_branches, problem.X.shape[1]))
        self.best = Hyperplanes(nothing, np.zeros(problem.n_branches))

    def run(self, starts: int, kicks: int, trees: Sequence[Hyperplanes], first: int) -> HyperplanesResult:
        """Search on samples that grow."""
        if not self.problem.n_upper:  # one node alone is solved, not searched
            starts, kicks = 1, 0
        for tree in trees:
            self._offer(tree)
        problems = self._samples()
        shares, pool, done, complete = SHARES[len(problems)], list(trees), 0, True
        for k, (problem, share) in enumerate(zip(problems, shares, strict=True)):
            whole, time = problem is self.problem, self.deadline - self.began
            self.sample_deadline = (
                self.deadline if whole or not np.isfinite(time) else self.began + share * time
            )
            few = whole and rows_at_most(problem) <= MAX_ROWS and problem.n_upper > 0
            descents: _Descents = (_Routings if few else _Descents)(
                problem, whole=whole, should_stop=self.should_stop
            )
            begun: list[_Task] = [partial(descents.promote, tree) for tree in pool]
            if k == 0:
                begun += [partial(descents.start, first + r) for r in range(starts)]
            found, ended = self._run_tasks(begun)
            complete &= ended
            pool = _best([*(each.tree for each in found), *(pool if k == 0 and whole else [])], KEPT)
            until = round(share * kicks)
            while done < until and pool and not self.should_stop():
                size = min(GROUP, until - done)
                tasks: list[_Task] = [partial(descents.kick, pool)] * size
                if whole and not few and np.isfinite(self.best.value):
                    tasks[-1] = partial(descents.improve_incumbent, self.best, pool)
                found, ended = self._run_tasks(tasks)
                complete &= ended
                pool, done = _best([*pool, *(each.tree for each in found)], KEPT), done + size
            if not whole:
                pool = pool[: 1 if len(problems[k + 1].X) > MANY_SAMPLES else KEPT]
        complete = complete and done >= kicks and not self.stopped
        return HyperplanesResult(self.best, self.steps, complete, self.interrupted)

    def _samples(self) -> list[HyperplaneProblem]:
        """Return the problems on growing samples, all samples last; each is part of the next one."""
        n = len(self.problem.X)
        order = np.random.default_rng(self.seed).permutation(n)
        sizes = [size for size in SAMPLES if n >= MUCH_LARGER * size]
        return [*(self.problem.sample(np.sort(order[:size])) for size in sizes), self.problem]

    def should_stop(self) -> bool:
        return self.stopped or self.clock() >= self.sample_deadline

    def _run_tasks(self, tasks: Sequence[_Task]) -> tuple[list[_TaskResult], bool]:
        """Do tasks on the threads; return what those found that came to an end, in their order, and whether all did."""
        seeds = [np.random.SeedSequence([self.seed, self.tasks + k]) for k in range(len(tasks))]
        self.tasks += len(tasks)
        found: dict[int, _TaskResult] = {}
        following = iter(range(len(tasks)))

        def record(k: int, result: _TaskResult) -> None:
            found[k], self.steps = result, self.steps + 1

        def should_stop() -> bool:
            feasible = [each.feasible.value for each in found.values() if each.feasible is not None]
            if self.on_progress(min([self.best.value, *feasible]), self.steps):
                self.stopped = self.interrupted = True
            self.stopped |= self.clock() >= self.deadline
            return self.stopped

        with Threads(lambda k: tasks[k](np.random.default_rng(seeds[k])), self.threads) as pool:
            run_tasks(
                pool,
                lambda: None if self.should_stop() else next(following, None),
                pool.submit,
                record,
                should_stop,
            )
        ended = [found[k] for k in sorted(found)]
        for each in ended:  # in their order, as trees of equal value may differ
            if each.feasible is not None:
                self._offer(each.feasible)
        return ended, len(ended) == len(tasks) and not self.should_stop()

    def _offer(self, tree: Hyperplanes) -> None:
        """Make a tree the incumbent if it is feasible and better; of equal ones the first stays."""
        if self.problem.feasible(tree):
            valued = self.problem.valued(tree)
            if valued.value < self.best.value:
                self.best = valued


def _best(trees: Sequence[Hyperplanes], count: int) -> list[Hyperplanes]:
    """Return the best trees, the best first, without those whose value another one has."""
    kept: list[Hyperplanes] = []
    for tree in sorted(trees, key=lambda tree: tree.value):
        if not kept or tree.value > kept[-1].value * (1.0 + LEAST_GAIN):
            kept.append(tree)
    return kept[:count]


@dataclass(frozen=True, eq=False)
class _Descents:
    """Tasks on one sample: starts, kicks and descents."""

    problem: HyperplaneProblem
    whole: bool
    should_stop: Callable[[], bool]

    def promote(self, tree: Hyperplanes, rng: np.random.Generator) -> _TaskResult:
        """Improve a tree from elsewhere; all samples have a feasible one at once."""
        refitted = self.problem.refitted(tree, accuracy=ROUGH)
        # First of all a feasible tree: time may not be left for the descent.
        feasible = made_feasible(self.problem, refitted, accuracy=ROUGH) if self.whole else None
        found = self._descent(refitted, PROMOTED_WIDTHS, rng)
        better = self._with_feasible(min(refitted, found, key=lambda each: each.value), rng)
        if better.feasible is None or (feasible is not None and feasible.value < better.feasible.value):
            return _TaskResult(better.tree, feasible)
        return better

    def start(self, number: int, rng: np.random.Generator) -> _TaskResult:
        """Grow a tree at random, and improve it."""
        grown = self._grown(STARTS[number % len(STARTS)] if number else "own", rng)
        found = self._descent(grown, START_WIDTHS, rng)
        return self._with_feasible(min(grown, found, key=lambda each: each.value), rng)

    def kick(self, pool: Sequence[Hyperplanes], rng: np.random.Generator) -> _TaskResult:
        """Change a node of one of the best trees at random, and improve the tree."""
        tree = pool[0 if rng.random() < 0.5 else int(rng.integers(len(pool)))]
        widths = KICK_WIDTHS[int(rng.integers(len(KICK_WIDTHS)))]
        found = self._descent(self._kicked(tree, rng), widths, rng)
        if found.value < tree.value * (1.0 - LEAST_GAIN):
            return self._with_feasible(found, rng)
        return _TaskResult(found)

    def improve_incumbent(
        self, incumbent: Hyperplanes, pool: Sequence[Hyperplanes], rng: np.random.Generator
    ) -> _TaskResult:
        """Move one of the best trees out of the gap once more, along other lines; then improve what is feasible."""
        better = [tree for tree in pool if tree.value < incumbent.value * (1.0 - WORTH_A_GAP)]
        tree = incumbent
        if better and rng.random() < 0.5:
            chosen = better[int(rng.integers(len(better)))]
            tree = move_out_of_gap(self.problem, chosen, rng, accuracy=ROUGH, should_stop=self.should_stop)
        found = improve_feasible(self.problem, tree, rng, accuracy=ROUGH, should_stop=self.should_stop)
        return _TaskResult(found, found)

    def _with_feasible(self, tree: Hyperplanes, rng: np.random.Generator) -> _TaskResult:
        """Return a tree with a feasible one, if time is left for that; on a sample the gap is of no interest."""
        if not self.whole or (self.should_stop() and len(self.problem.X) > MANY_SAMPLES):
            return _TaskResult(tree)
        return _TaskResult(
            tree, move_out_of_gap(self.problem, tree, rng, accuracy=ROUGH, should_stop=self.should_stop)
        )

    def _descent(self, tree: Hyperplanes, widths: Sequence[float], rng: np.random.Generator) -> Hyperplanes:
        """Anneal, then move along lines and refit the last level while that gains."""
        problem = self.problem
        tree = annealed(problem, tree, widths, should_stop=self.should_stop)
        tree = problem.valued(tree) if self.should_stop() else problem.refitted(tree, accuracy=ROUGH)
        for _ in range(ROUNDS if problem.n_upper else 0):
            before, descent = tree.value, LineDescent(problem, tree)
            for _ in range(LINES):
                if self.should_stop():
                    return problem.valued(descent.tree)
                t = int(rng.integers(problem.n_upper))
                if len(descent.members[t]) > 1:
                    descent.try_line(random_line(problem, descent.tree, t, descent.members[t], rng))
            tree = problem.refitted(descent.tree, accuracy=ROUGH)
            if tree.value > before * (1.0 - ROUND_GAIN):
                break
        return tree

    # ------------------------------------------------------------------ starts

    def _grown(self, kind: str, rng: np.random.Generator, factor: float | None = None) -> Hyperplanes:
        """Grow a tree from the root down: by the nodes' machines, or by random splits above the last level.

        Machines above the last level have C times a factor, which is drawn for ``path`` unless it is given.
        """
        problem, p = self.problem, self.problem.X.shape[1]
        tree = Hyperplanes(np.zeros((problem.n_branches, p)), np.zeros(problem.n_branches))
        if factor is None:
            factor = 10.0 ** rng.uniform(-3.0, 2.0) if kind == "path" else 1.0
        members = {0: np.arange(len(problem.X))}
        for t in range(problem.n_branches):
            rows = members.pop(t)
            pure = len(rows) < 4 or bool((problem.sign[rows] == problem.sign[rows[0]]).all())
            if t >= problem.n_upper or kind in ("own", "path") or pure:
                own = factor if t < problem.n_upper else 1.0
                tree.w[t], tree.b[t] = problem.best_hyperplane(t, rows, accuracy=ROUGH, factor=own)
            else:
                tree.w[t], tree.b[t] = self._random_split(t, kind, rows, rng)
            if t < problem.n_upper:
                right = problem.X[rows] @ tree.w[t] + tree.b[t] >= 0.0
                members[2 * t + 1], members[2 * t + 2] = rows[~right], rows[right]
        return problem.valued(tree)

    def _random_split(
        self, t: int, kind: str, rows: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Draw a split with scores of size 1 whose right side has more of class +1.

        ``oblique``: normal weights; ``axis``: one feature; ``pair``: the bisector of two samples.
        """
        X, p = self.problem.X[rows], self.problem.X.shape[1]
        if kind == "axis":
            w = np.zeros(p)
            w[rng.integers(p)] = 1.0
        elif kind == "oblique":
            w = rng.normal(size=p) / (X.std(axis=0) + 0.05)
        else:
            i, j = rng.choice(len(rows), 2, replace=False)
            w = (X[j] - X[i]) / (X.var(axis=0) + 0.01)
        if self.problem.selects(t):
            assert self.problem.budget is not None
            dropped = rng.permutation(p)[int(self.problem.budget[t]) :]
            w[dropped] = 0.0
        scores = X @ w
        b = (
            -0.5 * float(scores[i] + scores[j])
            if kind == "pair"
            else -np.quantile(scores, rng.uniform(0.1, 0.9))
        )
        scores = scores + b
        size = float(np.abs(scores).mean()) + 1e-12
        turned = -1.0 if float(self.problem.weight[rows] * scores @ self.problem.sign[rows]) < 0.0 else 1.0
        return turned / size * w, float(turned / size * b)

    def _kicked(self, tree: Hyperplanes, rng: np.random.Generator) -> Hyperplanes:
        """Return a tree with noise on a node, with a random split or other features there, with its sides exchanged."""
        problem = self.problem
        members = problem.members(problem.scores(tree))
        upper = problem.n_upper and rng.random() < 0.7
        t = int(rng.integers(problem.n_upper if upper else problem.n_branches))
        rows = members[t] if len(members[t]) > 3 else members[0]
        kind = rng.choice(4, p=(0.4, 0.3, 0.1, 0.2))
        if problem.selects(t) and rng.random() < EXCHANGED:
            return self._with_others(tree, t, rows, rng)
        if kind == 0:
            size = rng.choice((0.1, 0.3, 1.0)) * (float(np.linalg.norm(tree.w[t])) + 0.1)
            noise, used = np.zeros(tree.w.shape[1]), problem.features(t, tree.w[t])
            noise[used] = size / np.sqrt(max(1, len(used))) * rng.normal(size=len(used))
            return tree.moved(t, tree.w[t] + noise, float(tree.b[t] - noise @ problem.X[rows].mean(axis=0)))
        if kind == 1:
            return tree.moved(t, *self._random_split(t, "pair", rows, rng))
        if kind == 2 and t < problem.n_upper:
            return tree.moved(t, -tree.w[t], -float(tree.b[t]))
        return tree

    def _with_others(
        self, tree: Hyperplanes, t: int, rows: IntArray, rng: np.random.Generator
    ) -> Hyperplanes:
        """Return a tree with other features at a node, which get small weights: a descent finds better ones."""
        problem = self.problem
        features = problem.exchanged(t, tree.w[t], rng)
        if t >= problem.n_upper:
            warm = np.zeros(tree.w.shape[1])
            warm[features] = 1.0
            return tree.moved(t, *problem.best_hyperplane(t, rows, warm=(warm, 0.0), accuracy=ROUGH))
        w = np.zeros(tree.w.shape[1])
        small = 0.1 * (float(np.linalg.norm(tree.w[t])) + 0.1)
        w[features] = tree.w[t, features]
        w[features] += small * rng.normal(size=len(features))
        change = w - tree.w[t]
        return tree.moved(t, w, float(tree.b[t] - change @ problem.X[rows].mean(axis=0)))


@dataclass(frozen=True, eq=False)
class _Routings(_Descents):
    """The same tasks by node moves, for few samples: all trees are feasible, their nodes optimal for their routing."""

    def promote(self, tree: Hyperplanes, rng: np.random.Generator) -> _TaskResult:
        """Solve all nodes for the tree's routing, and take steps that lower the objective."""
        moves = NodeMoves(self.problem, rng)
        priced = moves.priced(tree, 0, np.arange(len(self.problem.X)))
        # Without a price no hyperplane has this routing with the gap.
        routed = made_feasible(self.problem, tree, accuracy=ROUGH) if priced is None else priced[0]
        tree = moves.descend(self.problem.valued(routed), FAILURES, self.should_stop)
        return _TaskResult(tree, tree)

    def start(self, number: int, rng: np.random.Generator) -> _TaskResult:
        """Grow a tree by its machines at some penalty, or later at random, and improve it."""
        if number <= len(FACTORS):
            return self.promote(self._grown("path", rng, FACTORS[number - 1] if number else 1.0), rng)
        return self.promote(self._grown(STARTS[number % len(STARTS)], rng), rng)

    def kick(self, pool: Sequence[Hyperplanes], rng: np.random.Generator) -> _TaskResult:
        """Take some moves from one of the best trees, whatever they cost, and steps that lower the objective."""
        best = pool[0].value
        tree = pool[0 if rng.random() < 0.7 else int(rng.integers(len(pool)))]
        moves = NodeMoves(self.problem, rng)
        for _ in range(int(rng.integers(1, 4))):
            found = moves.step(tree, 2.0 * best)
            if found is not None and (found.value < 1.5 * best or rng.random() < 0.3):
                tree = found
        tree = moves.descend(tree, FAILURES, self.should_stop)
        return _TaskResult(tree, tree)


def compile_kernels(budget: TimeBudget, problem: HyperplaneProblem) -> float:
    """Load what a search of few samples runs, or compile it; see :func:`~mipforest.searches.compile_by`."""
    if rows_at_most(problem) > MAX_ROWS:
        return 0.0

    def run() -> None:
        tiny = replace(
            problem,
            X=np.array([[0.0], [1.0]]), sign=np.array([-1.0, 1.0]), weight=np.ones(2), C=np.ones(3), budget=None,
        )  # fmt: skip
        NodeMoves(tiny, np.random.default_rng(0)).best_hyperplane(0, np.arange(2))

    return compile_by(run, budget, "local-search", 5)


#: Steps in a row without a gain that end a descent of node moves.
FAILURES = 60

#: Factors of C for the machines of the first starts of few samples; the first start has 1.
FACTORS = tuple(10.0 ** (k / 2) for k in (-2, 2, -4, 4, -1, 1, -6, 6, -3, 3, -8, 8, -5, 5, -7, 7))

#: How random starts are grown, in turn.
STARTS = ("path", "oblique", "axis", "pair")
