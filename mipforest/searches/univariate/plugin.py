"""The tree searches ``exact-search`` and ``contree``: from a problem to thresholds, and back to a tree."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from mipforest.heuristics.cart import cart
from mipforest.heuristics.contree import contree_within
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.problem.driver import Driver
from mipforest.problem.operations import Operations
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure, UnivariateProblem
from mipforest.problem.tree_search import ListedTrees, SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.exact.search import ExactResult

#: What is told where a cluster is given and the problem has no open nodes to hand out.
ON_ONE_MACHINE = "exact-search runs on this machine alone: a cluster helps it from depth 3 on"

#: The same where there are constraints.
ON_ONE_MACHINE_CONSTRAINED = (
    "exact-search runs on this machine alone: with constraints a cluster helps it from depth 3 on, where no labels are "
    "limited, nor, in tables of few thresholds, splits"
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
    complete: ClassVar[bool] = True
    preferred: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True
    takes_dask: ClassVar[bool] = True

    def outcome(
        self, problem: UnivariateProblem, depth: int, budget: TimeBudget, **options: Any
    ) -> ExactResult:
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

        return refusal(problem)

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

            driver = Driver(self, problem, SolveSettings(), None)
            return Constrained(driver, lists=True).list_trees(**asked)
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

        driver = Driver(self, problem, settings, on_progress)
        if problem.constraints:
            return self._constrained(driver, start)
        depth, charged = problem.topology.depth, problem.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal`` has seen to it
        compile_kernels(problem.budget, charged, depth)
        proof = None
        if settings.certificate is not None:
            from mipforest.searches.exact.certificate_writer import compiled_proof

            proof = compiled_proof(problem.budget, charged, depth)
        dask = settings.dask
        if dask is not None and depth < LEAST_ON_WORKERS:
            dask = None
            driver.warnings.append(ON_ONE_MACHINE)
            problem.budget.report(ON_ONE_MACHINE)
        known = [start] if start is problem.instance.known else [start, problem.instance.known]
        for tree in known:
            driver.offer(tree)
        driver.polish_and_offer(*known)
        outcome = exact_search(
            charged,
            depth,
            best=driver.value,
            gap=settings.gap,
            # Without time, what is known is all that is asked for.
            most_nodes=0 if settings.time_limit == 0 else None,
            deadline=driver.deadline,
            on_progress=lambda value, bound, nodes: driver.report(bound, nodes, value=value),
            threads=settings.threads,
            dask=dask,
            budget=problem.budget,
        )
        driver.lost = outcome.lost
        if outcome.chosen is not None:
            driver.polish_and_offer(
                tree_of_thresholds(problem.data, problem.topology, charged.thresholds, outcome.chosen)
            )
        bound = min(outcome.bound, driver.value)
        if settings.certificate is not None and proof is not None and driver.incumbent.tree is not None:
            names = self.names_in_certificate(problem)
            bound = proof.write_found(settings.certificate, names, driver.incumbent.tree, driver.value, bound)
        return driver.result(bound, ended=outcome.ended, nodes=outcome.nodes)

    def _constrained(self, driver: Driver, start: Tree | None) -> SearchResult:
        """Search for the best tree within constraints."""
        from mipforest.searches.univariate.constrained import Constrained

        problem, settings = driver.problem, driver.settings
        for tree in (start, problem.instance.known):
            driver.offer(tree)
        search = Constrained(driver)
        proof = None
        if settings.certificate is not None:
            from mipforest.searches.univariate.certified import compiled_proof_of

            proof = compiled_proof_of(search)
        if settings.time_limit != 0:
            search.run()
        best, bound = driver.incumbent.tree, min(search.bound, driver.value)
        if settings.dask is not None and not search.on_workers:
            driver.warnings.append(ON_ONE_MACHINE_CONSTRAINED)
        if proof is not None and settings.certificate is not None:
            if best is None:
                driver.warnings.append(NO_TREE_TO_CERTIFY)
            else:
                from mipforest.searches.exact.certificate_writer import NEAR
                from mipforest.searches.univariate.certified import write_certificate

                names = self.names_in_certificate(problem)
                proven = write_certificate(proof, search, settings.certificate, names, bound)
                if problem.restrictions.sums is None:
                    bound = proven
                elif bound - proven > NEAR * max(abs(bound), 1.0):
                    driver.warnings.append(CERTIFIED_LESS.format(proven, bound))
        return driver.result(bound, ended=search.ended, nodes=search.nodes, message=search.why_none)


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
    complete: ClassVar[bool] = True

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
        if not charged.counts_errors:
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
        driver = Driver(self, problem, settings, on_progress)
        data, charged = problem.data, problem.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal`` has seen to it
        limit = NO_LIMIT if settings.time_limit is None else settings.time_limit
        share = min(1.0, charged.split_cost / data.n)
        tree, ended = contree_within(
            data, problem.topology, split_cost=share, time_limit=limit, budget=problem.budget
        )
        driver.polish_and_offer(start, problem.instance.known, cart(data, problem.topology), tree)
        # Errors are counted exactly; sums with costs of splits are rounded.
        bound = max(0.0, driver.value - (COST_ROUNDING if share else 0.0)) if ended else 0.0
        return driver.result(bound, ended=ended)
