"""The tree searches ``exact-search`` and ``contree``: from a problem to thresholds, and back to a tree."""

from __future__ import annotations

from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.heuristics.cart import cart
from mipforest.heuristics.contree import contree_within
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.problem.incumbent import Incumbent
from mipforest.problem.operations import Operations
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure, UnivariateProblem
from mipforest.problem.tree_search import LOST, ListedTrees, SearchEvents, SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress, Status
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.exact.search import Outcome

#: What is told where a cluster is given and the problem has no open nodes to hand out.
ON_ONE_MACHINE = "exact-search runs on this machine alone: a cluster helps it from depth 3 on"

#: The same where there are constraints.
ON_ONE_MACHINE_CONSTRAINED = (
    "exact-search runs on this machine alone: with constraints a cluster helps it from depth 3 on, where no labels are "
    "limited"
)

#: What is told where a certificate proves less than the search.
CERTIFIED_LESS = (
    "the certificate proves the bound {:.6g}, which is that of prices for limits on labels; the search has proven "
    "{:.6g} by going through trees one by one, which no certificate states"
)

#: What is told where a certificate was asked for and there is nothing to certify.
NO_TREE_TO_CERTIFY = "no certificate is written: it is of a tree and a bound, and no tree was found"

#: Most levels of trees that are listed: four take hours where three take minutes.
MAX_LISTED_DEPTH = 3

#: Seconds for ConTree where there is no limit: it takes a number.
NO_LIMIT = 1e9

#: What ConTree's bound is lowered by where splits cost something, in units of the objective.
COST_ROUNDING = 1e-9


class ExactSearch(TreeSearch):
    """Exact search over thresholds, for trees of univariate splits whose leaves predict a class or a constant."""

    name: ClassVar[str] = "exact-search"
    summary: ClassVar[str] = "exact branch and bound over intervals of thresholds"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    preferred: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_dask: ClassVar[bool] = True

    def outcome(self, problem: UnivariateProblem, depth: int, budget: TimeBudget, **options: Any) -> Outcome:
        """Search for the best tree of what is charged, without a model: what formulations ask before they have one.

        Parameters
        ----------
        problem, depth, options
            As for :func:`~mipforest.searches.exact.search.exact_search`.
        budget
            What compiling the search is excluded from.
        """
        from mipforest.searches.exact.search import compile_kernels, exact_search

        compile_kernels(budget, problem, depth)
        return exact_search(problem, depth, **options)

    def reduces(self, problem: ProblemData, settings: SolveSettings) -> bool:  # noqa: ARG002
        """Return whether limits on features are kept for it: it keeps them itself."""
        return False

    def cannot_keep(self, problem: ProblemData) -> str:
        """Say why it does not keep the constraints of a problem; see :class:`TreeSearch`."""
        from mipforest.searches.univariate.constrained import refusal

        return refusal(problem.restrictions, problem.topology.depth)

    def refusal_to_list(self, problem: ProblemData) -> str:
        """Say why the trees of a problem are not listed; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        depth = problem.topology.depth
        deep = (
            f"trees are listed up to depth {MAX_LISTED_DEPTH}, as their number explodes, and depth is {depth}"
        )
        return self.refusal(problem) or (deep if depth > MAX_LISTED_DEPTH else "")

    def list_trees(self, problem: ProblemData, **asked: Any) -> ListedTrees:
        """List all trees up to an objective value; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches.exact.nearly_optimal import compile_kernels, list_trees

        charged, depth = problem.structure, problem.topology.depth
        assert isinstance(charged, UnivariateProblem)  # ``refusal_to_list`` has seen to it
        compile_kernels(problem.budget, charged, depth)
        if problem.constraints and (problem.unfinished or problem.is_stated):
            from mipforest.searches.univariate.constrained import Constrained

            events, incumbent = SearchEvents(None), Incumbent(problem)
            search = Constrained(problem, SolveSettings(), incumbent, events, lambda: np.inf)
            return search.list_trees(**asked)
        return list_trees(charged, depth, **asked)

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches.exact.search import LEAST_ON_WORKERS, compile_kernels, exact_search

        if problem.constraints:
            return self._constrained(problem, settings, start, on_progress)
        events = SearchEvents(on_progress)
        formulation, instance = problem.formulation, problem.instance
        charged = problem.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal`` has seen to it
        compile_kernels(problem.budget, charged, problem.topology.depth)
        proof = None
        if settings.certificate is not None:
            from mipforest.searches.exact.certificate_writer import compiled_proof

            proof = compiled_proof(problem.budget, charged, problem.topology.depth)
        events.began = monotonic()  # loading a search, or compiling it, eats nothing of the limit
        dask, warnings = settings.dask, list[str]()
        if dask is not None and problem.topology.depth < LEAST_ON_WORKERS:
            dask = None
            warnings.append(ON_ONE_MACHINE)
            problem.budget.tell(ON_ONE_MACHINE)
        known = [start] if start is instance.known else [start, instance.known]
        incumbent = Incumbent(problem, *known)
        for tree in known:
            if tree is not None:
                incumbent.offer(formulation.polish(tree, instance))
        outcome = exact_search(
            charged,
            problem.topology.depth,
            best=incumbent.value,
            gap=settings.gap,
            # Without time, what is known is all that is asked for.
            most_nodes=0 if settings.time_limit == 0 else None,
            deadline=events.deadline(settings.time_limit),
            on_progress=lambda value, *more: np.isfinite(value) and events.tell(value, *more),
            threads=settings.threads,
            dask=dask,
            budget=problem.budget,
        )
        if outcome.lost:
            warnings.append(LOST.format(outcome.lost))
        if outcome.chosen is not None:
            splits = tree_of_thresholds(problem.data, problem.topology, charged.thresholds, outcome.chosen)
            incumbent.offer(formulation.polish(splits, instance))
        best, value = incumbent.tree, incumbent.value
        bound = min(outcome.bound, value)
        if settings.certificate is not None and proof is not None and best is not None:
            names = self.names_in_certificate(problem)
            bound = proof.write_found(settings.certificate, names, best, value, bound)
        stopped = Status.INTERRUPTED if outcome.interrupted else Status.TIME_LIMIT
        status = Status.OPTIMAL if outcome.ended else Status.LIMIT if outcome.lost else stopped
        told = events.end(value, bound, outcome.nodes)
        return SearchResult(best, bound, status, outcome.nodes, told, tuple(warnings))

    def _constrained(
        self, problem: ProblemData, settings: SolveSettings, start: Tree | None, on_progress: Progress | None
    ) -> SearchResult:
        """Search for the best tree within constraints."""
        from mipforest.searches.univariate.constrained import Constrained

        events, budget = SearchEvents(on_progress), problem.budget
        excluded = budget.excluded_seconds

        def deadline() -> float:
            """Return when time is over: loading a search, or compiling it, eats nothing of the limit."""
            return events.deadline(settings.time_limit) + budget.excluded_seconds - excluded

        incumbent = Incumbent(problem, start, problem.instance.known)
        search = Constrained(problem, settings, incumbent, events, deadline)
        proof = None
        if settings.certificate is not None:
            from mipforest.searches.univariate.certified import compiled_proof_of

            proof = compiled_proof_of(search)
        if settings.time_limit != 0:
            search.run()
        best, bound = incumbent.tree, min(search.bound, incumbent.value)
        over = monotonic() >= deadline()
        status = (
            Status.TIME_LIMIT if over else Status.LIMIT
        )  # the relaxation of limits on labels may leave a gap
        if search.interrupted or budget.stopped:
            status = Status.INTERRUPTED
        if search.ended:
            status = Status.OPTIMAL if incumbent.tree is not None else Status.INFEASIBLE
        warnings: tuple[str, ...] = (LOST.format(search.lost),) if search.lost else ()
        if settings.dask is not None and not search.on_workers:
            warnings = (ON_ONE_MACHINE_CONSTRAINED,)
        if proof is not None and settings.certificate is not None:
            if best is None:
                warnings = (*warnings, NO_TREE_TO_CERTIFY)
            else:
                from mipforest.searches.exact.certificate_writer import NEAR
                from mipforest.searches.univariate.certified import write_certificate

                names = self.names_in_certificate(problem)
                proven = write_certificate(proof, search, settings.certificate, names, bound)
                if problem.restrictions.sums is None:
                    bound = proven
                elif bound - proven > NEAR * max(abs(bound), 1.0):
                    warnings = (*warnings, CERTIFIED_LESS.format(proven, bound))
        told = events.end(incumbent.value if best is not None else np.nan, bound, search.nodes)
        message = search.why_none if status is Status.INFEASIBLE else ""
        return SearchResult(best, bound, status, search.nodes, told, warnings, message)


class ConTreeSearch(TreeSearch):
    """ConTree's dynamic programming (Brita, van der Linden and Demirovic 2025), beside whose trees ours can be put.

    It runs in one step that hears nothing, in a process of its own that Ctrl-C kills: the answer is the start then.
    """

    name: ClassVar[str] = "contree"
    summary: ClassVar[str] = "ConTree's dynamic programming, in a process of its own"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    limits_in_words: ClassVar[str] = "that count errors, with N_min=1"
    package: ClassVar[str] = "pycontree"
    install: ClassVar[str] = "mipforest[dp]"

    @classmethod
    def is_made_for(cls, formulation: type[Operations]) -> bool:
        """Return whether it takes problems of a formulation; see :class:`TreeSearch`."""
        return formulation.task == "classification" and super().is_made_for(formulation)

    def version(self) -> str:
        """Return the version of pycontree."""
        return version(self.package)

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        charged = problem.structure
        assert isinstance(charged, UnivariateProblem)
        if charged.loss != "classes" or charged.costs is not None or charged.table is not None:
            return f"{problem.formulation.name} does not count errors of univariate trees"
        return "" if charged.N_min == 1 else f"it has no least leaf size, and N_min is {charged.N_min}"

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        events = SearchEvents(on_progress)
        formulation, instance, data = problem.formulation, problem.instance, problem.data
        charged = problem.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal`` has seen to it
        limit = NO_LIMIT if settings.time_limit is None else settings.time_limit
        share = min(1.0, charged.split_cost / data.n)
        tree, ended = contree_within(
            data, problem.topology, split_cost=share, time_limit=limit, budget=problem.budget
        )
        incumbent = Incumbent(problem)
        for known in (start, instance.known, cart(data, problem.topology), tree):
            if known is not None:
                incumbent.offer(formulation.polish(known, instance))
        value = incumbent.value
        # Errors are counted exactly; sums with costs of splits are rounded.
        bound = max(0.0, value - (COST_ROUNDING if share else 0.0)) if ended else 0.0
        told = events.end(value, bound, 0)
        stopped = Status.INTERRUPTED if problem.budget.stopped else Status.TIME_LIMIT
        return SearchResult(incumbent.tree, bound, Status.OPTIMAL if ended else stopped, 0, told)
