"""The tree search ``lagrangian``: from a problem with limits on labels to prices, and back to a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mipforest.arrays import IntArray
from mipforest.heuristics.thresholds import Thresholds, chosen_features, tree_of_thresholds
from mipforest.problem.incumbent import Incumbent
from mipforest.problem.operations import Operations
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import LabelSums, Structure, UnivariateProblem
from mipforest.problem.tree_search import LOCAL_SEARCH, SearchEvents, SearchResult, TreeSearch, get_search
from mipforest.searches.local.plugin import LocalSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress, Status, closed
from mipforest.trees import Topology, Tree

if TYPE_CHECKING:
    from mipforest.searches.exact.boxes import Box
    from mipforest.searches.exact.search import Outcome
    from mipforest.searches.lagrangian.search import Found
    from mipforest.searches.lagrangian.search import LagrangianSearch as Limits

#: Why a problem is not taken to whose model something else was added.
NOT_LABELS = (
    "something was added to the model that is no limit on sums of labels, as mipforest.constraints adds for shares, "
    "costs, groups and rates"
)

#: Share of the time left for each tree that is found without a proof; its random starts, and kicks of each.
GUESS_SHARE, GUESSES, KICKS = 0.05, 4, 8

#: Share of all costs that rounding may hide of a gap: a few times what a bound at depth 2 is lowered by.
HIDDEN = 1e-9

#: Depth up to which it proves an optimum in the end, and is chosen before a matrix solver.
PROVEN_DEPTH = 2


class LagrangianSearch(TreeSearch):
    """Lagrange multipliers over the exact search: trees whose labels obey limits of shares, costs, groups and rates.

    Every limit has a price; the exact search finds the best tree under the prices, and what the relaxation proves. At
    depth 1 and 2 the rest of the gap is closed by enumeration.
    """

    name: ClassVar[str] = "lagrangian"
    summary: ClassVar[str] = "Lagrange multipliers over the exact search, for limits on labels"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    limits_in_words: ClassVar[str] = "that predict classes or decide, with limits on labels that were added"
    takes_weights: ClassVar[bool] = True

    @classmethod
    def is_made_for(cls, formulation: type[Operations]) -> bool:
        """Return whether it takes problems of a formulation; see :class:`TreeSearch`."""
        return formulation.task in ("classification", "decision") and super().is_made_for(formulation)

    def preferred_for(self, problem: ProblemData) -> bool:
        """Return whether it proves an optimum where a matrix solver would have to: with limits, to depth 2."""
        return problem.changed() and problem.topology.depth <= PROVEN_DEPTH and self.takes(problem)

    def reduces(self, problem: ProblemData, settings: SolveSettings) -> bool:  # noqa: ARG002
        """Return ``False``: it reads the rows of constraints."""
        return False

    def objection(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem as it is now; limits on labels may have been added."""
        if reason := self.refusal(problem):
            return reason
        if problem.as_built.objective_replaced():
            return "the objective was replaced, and the search minimises its own"
        sums = problem.formulation.label_sums(problem.model, problem.instance, problem.as_built)
        return NOT_LABELS if problem.unfinished or sums is None or sums.rest else ""

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem as it was built; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        charged = problem.structure
        assert isinstance(charged, UnivariateProblem)
        return "" if charged.loss == "classes" else f"{problem.formulation.name} predicts numbers"

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        events, budget = SearchEvents(on_progress), problem.budget
        formulation, instance, charged = problem.formulation, problem.instance, problem.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal`` has seen to it
        sums = formulation.label_sums(problem.model, instance, problem.as_built)
        assert sums is not None
        excluded, interrupted = budget.excluded_seconds, False

        def deadline() -> float:
            """Return when time is over: loading a search, or compiling it, eats nothing of the limit."""
            return events.deadline(settings.time_limit) + budget.excluded_seconds - excluded

        def look(found: Found) -> bool:
            nonlocal interrupted
            value = found.cost / charged.unit
            interrupted = interrupted or events.tell(
                value, min(found.bound / charged.unit, value), found.evaluated
            )
            return interrupted or monotonic() >= deadline()

        known = instance.known if start is None else start
        search = limited_search(problem, charged, sums, settings, deadline, look)
        trees = search.trees
        found = search.run(None if known is None else thresholds_of(charged, known))
        if found.infeasible:
            told = events.end(np.nan, np.inf, found.evaluated)
            return SearchResult(
                None, np.inf, Status.INFEASIBLE, found.evaluated, told, message=found.infeasible
            )
        incumbent = Incumbent(problem)
        if found.chosen is not None and found.labels is not None:
            splits = tree_of_thresholds(problem.data, problem.topology, charged.thresholds, found.chosen)
            incumbent.offer(replace(splits, leaf_value=found.labels))
        best, value = incumbent.tree, incumbent.value
        bound = max(0.0, min(found.bound / charged.unit, value))
        status = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
        if not interrupted and monotonic() < deadline():
            status = Status.LIMIT
        message = f"{found.evaluated} exact trees under prices of {len(trees.use)} limits"
        if status is Status.LIMIT and not closed(value, bound, settings.gap):
            message += "; the relaxation leaves a gap"
            if value - bound <= HIDDEN * trees.spread / charged.unit:
                message = (
                    f"a gap of {value - bound:.2g} is left, which rounding may make of costs of up to "
                    f"{trees.spread / charged.unit:.2g}; scale down the largest ones if it matters"
                )
        told = events.end(value, bound, found.evaluated)
        return SearchResult(best, bound, status, found.evaluated, told, message=message)


def thresholds_of(charged: UnivariateProblem, tree: Tree) -> IntArray:
    """Return the threshold of each split of a tree."""
    return charged.thresholds.decode(charged.thresholds.encode(chosen_features(tree), -tree.b))


def _tree(thresholds: Thresholds, topology: Topology, chosen: IntArray) -> Tree:
    """Return the tree of some thresholds (|B|,), over their features alone."""
    w, b, splits = (
        np.zeros((topology.n_branches, thresholds.X.shape[1])),
        np.zeros(topology.n_branches),
        chosen >= 0,
    )
    w[splits, thresholds.feature[chosen[splits]]] = 1.0
    b[splits] = -thresholds.value[chosen[splits]]
    return Tree(topology.depth, w, b, np.zeros(topology.n_leaves), (), thresholds.names)


def limited_search(
    problem: ProblemData,
    charged: UnivariateProblem,
    sums: LabelSums,
    settings: SolveSettings,
    deadline: Callable[[], float],
    look: Callable[[Found], bool],
    box: Box | None = None,
) -> Limits:
    """Return the search for trees within limits on labels, ready to run.

    Parameters
    ----------
    problem
        What is solved.
    charged
        What trees are charged, over the thresholds of some of its features.
    sums
        The limits.
    settings
        Gap, threads and seed.
    deadline
        Returns when time is over, on the clock of :func:`time.monotonic`.
    look
        Told what is known after every step; returning ``True`` ends the search.
    box
        Trees to search among, settled; all of them without it.
    """
    from mipforest.searches.exact.search import compile_kernels, exact_search
    from mipforest.searches.lagrangian.limited import LimitedTrees
    from mipforest.searches.lagrangian.search import LagrangianSearch as Limits

    local = get_search(LOCAL_SEARCH)
    assert isinstance(local, LocalSearch)
    budget, topology = problem.budget, problem.topology
    X = charged.thresholds.X[charged.thresholds.group]

    def exact_tree(relaxed: UnivariateProblem, best: float, complete: bool) -> Outcome:
        compile_kernels(budget, relaxed, topology.depth)
        return exact_search(
            relaxed,
            topology.depth,
            best=best,
            deadline=deadline(),
            on_progress=lambda *_: budget.stopped,
            complete=complete,
            threads=settings.threads,
            box=box,
        )

    def guess(relaxed: UnivariateProblem, chosen: IntArray) -> IntArray | None:
        until = monotonic() + GUESS_SHARE * (deadline() - monotonic())
        if monotonic() >= until:
            return None
        splits = _tree(charged.thresholds, topology, chosen)
        outcome = local.improved(
            relaxed,
            X,
            splits,
            budget,
            starts=GUESSES,
            kicks=KICKS,
            hyperplanes=0,
            seed=settings.seed,
            threads=settings.threads,
            deadline=until,
            on_progress=lambda *_: budget.stopped,
        )
        return thresholds_of(charged, replace(splits, w=outcome.tree.w, b=outcome.tree.b))

    trees = LimitedTrees.of(charged, topology.depth, sums)
    return Limits(trees, exact_tree, guess, look, settings.gap, box)
