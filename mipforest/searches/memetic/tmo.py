"""TMO: a memetic algorithm for univariate trees, whose trees are crossed over and improved by TAO.

Source: Tree memetic optimisation in the thesis that OLCT is from. A population of trees, those of a random forest, each
improved by :mod:`~mipforest.searches.memetic.tao`. In each generation a bootstrap sample is drawn; every tree is
crossed with another one, the child is improved on the bootstrap sample, and takes its parent's place at once where its
objective on all samples is less. There is no mutation, and no pressure in choosing mates.

A tree of depth D is the list of its nodes above the last level, breadth first: a split, a leaf, or nothing. A child
takes every entry from the second parent with a probability, and is repaired entry after entry by the thesis' rules. As
the rules for many entries at once are not stated there, each applies to the tree as it is by then.

The tree searches ``tao`` and ``tmo`` go from a problem to trees of splits, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.heuristics.cart import cart, forest_trees
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure, UnivariateProblem
from mipforest.problem.tree_search import SearchEvents, SearchResult, TreeSearch
from mipforest.searches.memetic.tao import ABSENT, LEAF, AlternatingOptimization, Improved, SplitTree
from mipforest.searches.numbers import require_limits
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress, Status
from mipforest.trees import Tree
from mipforest.trees.sides import midpoint

#: Trees of the population, and generations, unless set: those of the thesis.
POPULATION, GENERATIONS = 100, 5

#: Probability that an entry is the second parent's.
CROSSOVER_RATE = 0.75


@dataclass(frozen=True, eq=False)
class Evolved:
    """What a memetic search has found.

    Attributes
    ----------
    best
        The best tree.
    n_trees
        Trees that were improved.
    values
        The best value after the first trees and after each generation, which never rises.
    ended
        Whether all generations came to an end.
    """

    best: Improved
    n_trees: int
    values: tuple[float, ...]
    ended: bool


def random_split(X: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Draw a feature and a threshold midway between two of its neighbouring values; -1 if all are constant."""
    features = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if not len(features):
        return LEAF, 0.0
    j = int(rng.choice(features))
    values = np.unique(X[:, j])
    k = int(rng.integers(len(values) - 1))
    return j, midpoint(values[k], values[k + 1])


def crossover(
    first: SplitTree,
    second: SplitTree,
    rng: np.random.Generator,
    draw: Callable[[], tuple[int, float]],
    *,
    rate: float = CROSSOVER_RATE,
) -> SplitTree:
    """Return the first tree with some entries of the second, repaired.

    Parameters
    ----------
    first, second
        Trees of one depth.
    rng
        Draws which entries are the second's.
    draw
        Draws the splits of nodes that must be there above an entry, and are not.
    rate
        Probability of an entry, 0 to 1.
    """
    child = first.copy()
    for t in range(len(child.feature)):
        if rng.random() >= rate:
            continue
        given = second.feature[t]
        if given >= 0:
            _split(child, t, int(given), float(second.threshold[t]), draw)
        elif given == LEAF and child.feature[t] >= 0:
            child.cut(t)
        elif given == ABSENT and child.feature[t] != ABSENT:
            child.cut((t - 1) // 2)
    return child


def _split(
    tree: SplitTree, t: int, feature: int, threshold: float, draw: Callable[[], tuple[int, float]]
) -> None:
    """Split a node; where it is not there, its ancestors split first."""
    if tree.feature[t] == ABSENT:
        above = (t - 1) // 2
        if tree.feature[above] < 0:
            _split(tree, above, *draw(), draw)
        if tree.feature[above] < 0:
            return  # nothing can be drawn
    was_split = tree.feature[t] >= 0
    tree.feature[t], tree.threshold[t] = feature, threshold
    if feature >= 0 and not was_split and 2 * t + 1 < len(tree.feature):
        tree.feature[[2 * t + 1, 2 * t + 2]] = LEAF


def evolve(
    samples: AlternatingOptimization,
    trees: Sequence[SplitTree],
    *,
    generations: int = GENERATIONS,
    seed: int = 0,
    deadline: float = np.inf,
    on_progress: Callable[[float, int], bool] | None = None,
) -> Evolved:
    """Improve a population of trees by crossover and alternating optimisation.

    Parameters
    ----------
    samples
        The samples and what trees are charged.
    trees
        The first trees, at least one.
    generations
        How often every tree is crossed.
    seed
        Seed of all random numbers.
    deadline
        On the clock of :func:`time.monotonic`.
    on_progress
        Called before every node with the best value and the number of trees; returning ``True`` ends the search.
    """
    require_limits("tmo", deadline=deadline)
    rng = np.random.default_rng(seed)
    population: list[Improved] = []
    n_trees, values = 0, []
    best, stopped = samples.pruned(trees[0]), False

    def halted() -> bool:
        nonlocal stopped
        stopped = stopped or monotonic() >= deadline
        stopped = stopped or (on_progress is not None and bool(on_progress(best.value, n_trees)))
        return stopped

    def over() -> bool:
        nonlocal n_trees
        n_trees += 1
        return halted()

    for tree in trees:
        population.append(samples.improve(tree, halted=halted))
        best = min(best, population[-1], key=lambda found: found.value)
        if over():
            return Evolved(best, n_trees, (best.value,), ended=False)
    values.append(best.value)
    n = len(samples.X)
    for _ in range(generations if len(population) > 1 else 0):
        drawn = samples.of(rng.integers(n, size=n))
        for i in range(len(population)):
            j = int(rng.integers(len(population) - 1))
            mate = population[j + (j >= i)].tree
            child = crossover(population[i].tree, mate, rng, lambda: random_split(samples.X, rng))
            found = samples.pruned(drawn.improve(child, halted=halted).tree)
            if found.value < population[i].value:
                population[i] = found
            if found.value < best.value:
                best = found
            if over():
                return Evolved(best, n_trees, (*values, best.value), ended=False)
        values.append(best.value)
    return Evolved(best, n_trees, tuple(values), ended=True)


class AlternatingSearch(TreeSearch):
    """Tree alternating optimisation from the start tree, or from CART."""

    name: ClassVar[str] = "tao"
    summary: ClassVar[str] = "alternating optimisation of one split after the other, from a tree"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    proves: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for a good tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        events = SearchEvents(on_progress)
        formulation, instance, data = problem.formulation, problem.instance, problem.data
        charges = problem.structure
        assert isinstance(charges, UnivariateProblem)  # ``refusal`` has seen to it
        samples = AlternatingOptimization(data.X, charges)
        # CART's own tree, with splits that save no errors yet: pruned, it would have fewer to improve.
        grown = cart(data, problem.topology, min_leaf=charges.N_min, seed=settings.seed)
        known = [grown] if start is None else [start, grown]
        interrupted, deadline = False, events.deadline(settings.time_limit)

        def report(value: float, n_trees: int) -> bool:
            nonlocal interrupted
            interrupted = events.tell(value / charges.unit, -np.inf, n_trees)
            return interrupted

        def halted() -> bool:
            return problem.budget.stopped or monotonic() >= deadline

        others = self._others(problem, charges.N_min, settings, halted)
        evolved = evolve(
            samples,
            [SplitTree.of(tree) for tree in (*known, *others)],
            generations=self._generations(settings),
            seed=settings.seed,
            deadline=deadline,
            on_progress=report,
        )
        found = evolved.best.tree.complete(data, problem.topology)
        best = min(
            (formulation.polish(tree, instance) for tree in (found, *known)),
            key=lambda tree: formulation.evaluate(tree, instance),
        )
        ended = events.end(formulation.evaluate(best, instance), -np.inf, evolved.n_trees)
        stopped = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
        return SearchResult(
            best,
            -np.inf,
            Status.BEST_FOUND if evolved.ended else stopped,
            evolved.n_trees,
            ended,
            message=self._last_word(evolved),
        )

    def _others(
        self,
        problem: ProblemData,  # noqa: ARG002
        N_min: int,  # noqa: ARG002
        settings: SolveSettings,  # noqa: ARG002
        halted: Callable[[], bool],  # noqa: ARG002
    ) -> list[Tree]:
        """Grow more trees to begin with than the start and CART's."""
        return []

    def _generations(self, settings: SolveSettings) -> int:  # noqa: ARG002
        return 0

    def _last_word(self, evolved: Evolved) -> str:  # noqa: ARG002
        return "no single split can be improved; alternating optimisation proves nothing"


class MemeticSearch(AlternatingSearch):
    """Memetic search over the trees of a random forest, each improved by alternating optimisation."""

    name: ClassVar[str] = "tmo"
    summary: ClassVar[str] = "memetic search: trees of a random forest, crossed and improved by tao"
    options: ClassVar[Mapping[str, str]] = {
        "population": f"how many trees of a random forest to begin with ({POPULATION})",
        "generations": f"how often each of them is crossed with another ({GENERATIONS})",
    }

    def _others(
        self, problem: ProblemData, N_min: int, settings: SolveSettings, halted: Callable[[], bool]
    ) -> list[Tree]:
        number = settings.solver_options.get("population", POPULATION)
        return forest_trees(
            problem.data, problem.topology, number, min_leaf=N_min, seed=settings.seed, halted=halted
        )

    def _generations(self, settings: SolveSettings) -> int:
        generations: int = settings.solver_options.get("generations", GENERATIONS)
        return generations

    def _last_word(self, evolved: Evolved) -> str:
        return f"the best of {evolved.n_trees} trees; a memetic search proves nothing"
