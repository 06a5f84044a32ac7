"""The tree search ``local-search``: from a problem to starts, and back to a tree.

Trees of convex nodes are searched by :mod:`mipforest.searches.hyperplanes`, all others by
:mod:`mipforest.searches.local.search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import NotAllowed
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure, TreeCharges, UnivariateProblem
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.searches.hyperplanes import plugin as hyperplanes
from mipforest.searches.local import HYPERPLANES, KICKS, STARTS, LocalProblem, LocalTree
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.local.search import LocalResult


class LocalSearch(TreeSearch):
    """Local search for trees whose objective is a sum over leaves and splits (Dunn 2018, chapters 2 to 5).

    Trees of convex nodes, such as MARGOT, have a search of their own behind the same name: what moves there are
    hyperplanes (:mod:`mipforest.searches.hyperplanes.plugin`, which also proves a bound).
    """

    name: ClassVar[str] = "local-search"
    summary: ClassVar[str] = "local search from many starts, for trees of any depth"
    structures: ClassVar[tuple[type[Structure], ...]] = (TreeCharges, NodeProblems)
    limits_in_words: ClassVar[str] = (
        "leaves are constant, or linear with squared loss, the l1 regulariser and lam above 0; "
        f"{hyperplanes.TAKEN}"
    )
    proves: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True
    takes_dask: ClassVar[bool] = True
    options: ClassVar[Mapping[str, str]] = {
        "starts": f"how many trees to start from ({STARTS})",
        "kicks": f"how often to change each of them at random and to improve it again ({KICKS})",
        "hyperplanes": f"how many random hyperplanes each visit of a node tries, where splits are such ({HYPERPLANES})",
        "dask": "the scheduler's address of a Dask cluster, as --dask has it too, such as tcp://127.0.0.1:8786",
    }

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        return hyperplanes.refusal(problem) if isinstance(problem.structure, NodeProblems) else ""

    def preferred_for(self, problem: ProblemData) -> bool:
        """Return whether it is chosen where no exact search is: for convex nodes of too many samples for these."""
        convex = isinstance(problem.structure, NodeProblems) and problem.data.n > hyperplanes.MANY_SAMPLES
        return convex and not self.objection(problem)

    def finds_within(self, problem: ProblemData) -> bool:
        """Return whether the trees that starts lead to are asked: those of convex nodes are a matter of ``routing``."""
        return isinstance(problem.structure, TreeCharges)

    def reduces(self, problem: ProblemData, settings: SolveSettings) -> bool:  # noqa: ARG002
        """Return whether limits on features are kept for it: it keeps what nodes of univariate trees may split on."""
        return not isinstance(problem.structure, UnivariateProblem) or bool(problem.restrictions.budgets)

    def check_options(self, settings: SolveSettings) -> None:
        """Refuse options that the search does not take; see :meth:`TreeSearch.check_options`."""
        numbers = {name: value for name, value in settings.solver_options.items() if name != "dask"}
        super().check_options(replace(settings, solver_options=numbers))
        address = settings.solver_options.get("dask", "")
        if not isinstance(address, str):
            raise NotAllowed(f"{self.name}: option dask is {address!r}; give the scheduler's address")
        if address and settings.dask not in (None, address):
            raise NotAllowed(
                f"{self.name}: two Dask clusters are given, {settings.dask} and, as an option, {address}; keep one"
            )

    def improved(
        self, charges: TreeCharges, X: FloatArray, tree: Tree, budget: TimeBudget, **options: Any
    ) -> LocalResult:
        """Improve a tree for what is charged, without a model: what formulations ask before they have one.

        Parameters
        ----------
        charges, X
            What trees are charged, and the (n, p) samples, scaled as the tree is.
        tree
            Where to begin.
        budget
            What compiling the search is excluded from.
        options
            As for :func:`~mipforest.searches.local.search.local_search`.
        """
        from mipforest.searches.local.search import compile_kernels, local_search

        problem = LocalProblem.of(charges, X)
        compile_kernels(budget, oblique=problem.margin is not None)
        return local_search(problem, tree.depth, trees=[LocalTree(tree.w, tree.b)], **options)

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for a good tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches.local.search import compile_kernels, local_search

        options = settings.solver_options
        if isinstance(problem.structure, NodeProblems):
            self._check_hyperplane_options(settings)
            limits = {"starts": options.get("starts", STARTS), "kicks": options.get("kicks", KICKS)}
            dask = settings.dask or options.get("dask")
            return hyperplanes.search(self, problem, settings, start, on_progress, **limits, dask=dask)
        assert isinstance(problem.structure, TreeCharges)  # ``refusal`` has seen to it
        charged, grown_on = LocalProblem.of(problem.structure, problem.data.X), problem.instance
        if problem.constraints and isinstance(problem.structure, UnivariateProblem):
            own = problem.restrictions
            charged = replace(charged, N_min=own.N_min, allowed=own.allowed, group=own.once)
            X = np.where(own.allowed.any(axis=0), problem.data.X, 0.0)  # nothing is gained by the others
            grown_on = replace(problem.instance, data=replace(problem.data, X=X))
        compile_kernels(problem.budget, oblique=charged.margin is not None)
        driver = Driver(self, problem, settings, on_progress)
        grown = problem.formulation.start("cart", grown_on)
        known = driver.polish_and_offer(start, problem.instance.known, grown)
        any_tree = not problem.constraints
        starts, kicks = options.get("starts", STARTS), options.get("kicks", KICKS)
        outcome = local_search(
            charged,
            problem.topology.depth,
            starts=starts,
            kicks=kicks,
            hyperplanes=options.get("hyperplanes", HYPERPLANES),
            trees=[LocalTree(tree.w, tree.b) for tree in known],
            seed=settings.seed,
            threads=settings.threads,
            deadline=driver.deadline,
            on_progress=lambda value, _, visits: driver.report(
                nodes=visits, value=value if any_tree else np.inf
            ),
            dask=settings.dask or options.get("dask"),
            budget=problem.budget,
            keep=1 if any_tree else len(known) + starts,
        )
        driver.lost = outcome.lost
        found = driver.polish_and_offer(
            *(tree_of_splits(problem.data, problem.topology, kept.w, kept.b) for kept in outcome.kept)
        )
        return driver.result(
            -np.inf,
            ended=outcome.ended,
            nodes=outcome.visits,
            message=f"the best tree of {outcome.begun} starts with {kicks} kicks each; a local search proves nothing",
            otherwise=found[0],
        )

    def _check_hyperplane_options(self, settings: SolveSettings) -> None:
        """Refuse what the search over hyperplanes would not use.

        Raises
        ------
        NotAllowed
            If the number of random hyperplanes of a visit is given.
        """
        if given := settings.solver_options.get("hyperplanes"):
            raise NotAllowed(
                f"{self.name} does not use option hyperplanes ({given}) for trees of convex nodes: it moves the "
                "hyperplanes that there are; leave it out"
            )
