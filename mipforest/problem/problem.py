"""A formulation built for a data set, ready to solve."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Unpack

from mipforest.model import Values
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.repair import feasible_start
from mipforest.problem.result import Result
from mipforest.problem.solve_problem import check_solution, solve_problem, started
from mipforest.problem.tree_search import AUTO, Auto, TreeSearch, solver_or_search
from mipforest.settings import SolveKeywords, SolveSettings, chosen_settings, one_blas_thread, takes_settings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Progress, Solution
from mipforest.trees import Predictor

#: Default time limit in seconds: a first run ends soon and says how far it got.
TIME_LIMIT = 60.0

#: How a problem is solved unless asked otherwise.
SETTINGS = SolveSettings(time_limit=TIME_LIMIT, start="default")


@dataclass(frozen=True, eq=False, repr=False)
class Problem(ProblemData):
    """A formulation built for a data set, ready to solve.

    ``problem.model`` is an ordinary model: add constraints or fix variables, then :meth:`solve`.
    """

    @takes_settings(SolveKeywords, SETTINGS)
    def solve(
        self,
        solver: str | Solver | TreeSearch | Auto = AUTO,
        *,
        start: str | Predictor | None = "default",
        on_progress: Progress | None = None,
        certificate: str | os.PathLike[str] | None = None,
        settings: SolveSettings | None = None,
        **keywords: Unpack[SolveKeywords],
    ) -> Result:
        """Solve the model, decode the tree and check it against the definition.

        Parameters
        ----------
        solver
            A solver or a tree search, or the name of either. ``"auto"``, the default, takes a tree search that is
            installed and takes the problem, otherwise HiGHS; the solution's message says why.
        start
            As for :meth:`start_tree`.
        on_progress
            As for :func:`mipforest.solving.solve`.
        certificate
            File (``.gz``) for a proof of the result that :func:`mipforest.certify` checks; of tree searches that write
            one.
        time_limit, gap, threads, seed, solver_options, bridges, log, isolate
            The attributes of :class:`~mipforest.settings.SolveSettings` of these names. The time limit, 60 seconds
            unless given, is for start, solves and repairs together (0: the start alone); built within a budget, the
            first solve has the rest of it. The formulation's own suggestions of solver options apply where these
            do not say otherwise.
        settings
            These, the start and the certificate at once, as one object.

        Raises
        ------
        SolverError
            If the solver is unknown, not installed, or cannot take the model; of a tree search also if the model was
            changed after it was built.
        ParameterError, StartError
            If the start is unknown or does not fit.
        """
        settings = chosen_settings(settings, keywords, SETTINGS, start=start, certificate=certificate)
        if isinstance(solver, str):
            with self.budget.phase("load"):  # its package may take a moment to load
                solver = solver_or_search(solver)
        with self.budget.phase("load"):  # as may the searches that are asked
            solver, why = solver.choose(self, settings) if isinstance(solver, Auto) else (solver, "")
        with one_blas_thread():
            solved = solve_problem(self, solver, settings, on_progress)
        message = "; ".join(filter(None, (why and f"auto: {why}", solved.solution.message)))
        return replace(solved, solution=replace(solved.solution, message=message))

    def start_tree(self, start: str | Predictor | None = "default", *, seed: int = 0) -> Predictor | None:
        """Return the tree to start from; of a tree search's name, its best tree after a share of the time."""
        return started(self, start, seed)[0]

    def start_values(self, tree: Predictor) -> tuple[Values | None, list[str]]:
        """Encode a start tree as feasible values; see :func:`~mipforest.problem.repair.feasible_start`."""
        return feasible_start(self, tree)

    def checked(self, solution: Solution) -> Result:
        """Decode and check a solution from elsewhere, as :meth:`solve` does with its solver's."""
        return check_solution(self, solution)
