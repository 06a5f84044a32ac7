"""The tree search ``prescription-search``: from a problem to an enumeration, and back to a tree."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.problem.driver import Driver
from mipforest.problem.operations import Operations
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import HyperplaneCharges, Structure, TreeCharges
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.searches import compile_by
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.trees import Tree

#: Values of trees are sums of many terms: the bound is below the best one by this share of it.
ROUNDING = 1e-9

#: Lassos that trees of depth 2 may need: some minutes.
MAX_LASSOS = 2e7


class PrescriptionSearch(TreeSearch):
    """Enumeration of prescriptive trees with univariate splits, of depth 1 and 2.

    Linear estimates may have several minima where features depend on each other; the bound holds for all of them, and
    may then be below the best tree. Of depth 2, their trees are enumerated for few samples.
    """

    name: ClassVar[str] = "prescription-search"
    summary: ClassVar[str] = "enumeration of prescriptive trees of depth 1 and 2"
    structures: ClassVar[tuple[type[Structure], ...]] = (TreeCharges,)
    limits_in_words: ClassVar[str] = "prescriptive ones of univariate splits, of depth 1 and 2"
    preferred: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    @classmethod
    def is_made_for(cls, formulation: type[Operations]) -> bool:
        """Return whether it takes problems of a formulation; see :class:`TreeSearch`."""
        kind = formulation.structure_type
        hyperplanes = kind is not None and issubclass(kind, HyperplaneCharges)
        return formulation.task == "prescription" and not hyperplanes and super().is_made_for(formulation)

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        charges = problem.structure
        assert isinstance(charges, TreeCharges)
        if not isinstance(charges.loss, PrescriptionLoss) or charges.margin is not None:
            return f"{problem.formulation.name} has other trees than prescriptive ones of univariate splits"
        if problem.topology.depth > 2:
            return f"it enumerates trees of depth 1 and 2, not {problem.topology.depth}; local-search takes any depth"
        if charges.coefficient_cost is not None and problem.topology.depth == 2:
            thresholds = sum(len(np.unique(column)) - 1 for column in problem.data.X.T)
            if (lassos := 2 * thresholds * problem.data.n * problem.data.p) > MAX_LASSOS:
                return (
                    f"trees of depth 2 would need about {lassos:.1e} lassos, and it fits {MAX_LASSOS:.0e} at most; "
                    "take --depth 1, or local-search, which proves nothing"
                )
        return ""

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches.prescription.enumeration import enumerate_linear_trees, enumerate_trees

        charges, least_objective = problem.structure, problem.instance.least_objective
        assert isinstance(charges, TreeCharges)  # ``refusal`` has seen to it
        line, linear = np.array([[0.0], [1.0]]), charges.coefficient_cost
        tiny = TreeCharges(y=line[:, 0], loss=PrescriptionLoss(np.array([0, 1])), coefficient_cost=linear)
        enumerated = enumerate_trees if linear is None else enumerate_linear_trees
        seconds = 3 if linear is None else 8
        compile_by(lambda: enumerated(line, tiny, 2), problem.budget, self.name, seconds)
        driver = Driver(self, problem, settings, on_progress)
        driver.polish_and_offer(start, problem.instance.known)

        def should_stop(loss: float, tried: int) -> bool:
            value = loss / charges.unit + charges.offset
            return driver.report(least_objective, tried, value=value) or driver.over()

        enumeration = enumerated(problem.data.X, charges, problem.topology.depth, should_stop)
        driver.polish_and_offer(tree_of_splits(problem.data, problem.topology, enumeration.w, enumeration.b))
        bound, message = least_objective, ""
        if enumeration.ended:
            least = enumeration.least / charges.unit + charges.offset
            bound = min(driver.value, least) - ROUNDING * abs(driver.value)
            if not driver.closed(bound):
                message = (
                    "all trees were tried; their lassos have several minima, or features that depend on each other, "
                    "and the bound holds for whichever the model takes"
                )
        return driver.result(bound, ended=enumeration.ended, message=message)
