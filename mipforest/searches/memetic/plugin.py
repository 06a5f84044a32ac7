"""The tree searches ``tao`` and ``tmo``: from a built problem to trees of splits, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import ClassVar

import numpy as np

from mipforest.heuristics.cart import cart, forest_trees
from mipforest.problem.built import BuiltProblem
from mipforest.problem.found import Found, SearchEvents
from mipforest.problem.structure import Structure, UnivariateProblem
from mipforest.problem.tree_search import TreeSearch
from mipforest.searches.memetic.split_tree import SplitTree
from mipforest.searches.memetic.tao import AlternatingOptimization
from mipforest.searches.memetic.tmo import GENERATIONS, POPULATION, Evolved, evolve
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress, Status
from mipforest.trees import Tree


class AlternatingSearch(TreeSearch):
    """Tree alternating optimisation from the start tree, or from CART."""

    name: ClassVar[str] = "tao"
    summary: ClassVar[str] = "alternating optimisation of one split after the other, from a tree"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    proves: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    def search(
        self,
        problem: BuiltProblem,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> Found:
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

        def told(value: float, n_trees: int) -> bool:
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
            on_progress=told,
        )
        found = evolved.best.tree.complete(data, problem.topology)
        best = min(
            (formulation.polish(tree, instance) for tree in (found, *known)),
            key=lambda tree: formulation.evaluate(tree, instance),
        )
        ended = events.end(formulation.evaluate(best, instance), -np.inf, evolved.n_trees)
        stopped = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
        return Found(
            best,
            -np.inf,
            Status.BEST_FOUND if evolved.ended else stopped,
            evolved.n_trees,
            ended,
            message=self._last_word(evolved),
        )

    def _others(
        self,
        problem: BuiltProblem,  # noqa: ARG002
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
        self, problem: BuiltProblem, N_min: int, settings: SolveSettings, halted: Callable[[], bool]
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
