"""A formulation built for a data set, and the procedure behind ``solve``.

A problem is solved, its solution decoded, and the tree checked against the definition.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Unpack

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import Model, Values
from mipforest.problem.constraints import Constraint
from mipforest.problem.feature_limits import check_certificate, search_within, start_within
from mipforest.problem.near_optimum import lister_for, with_trees
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.proofs import (
    broken_rows,
    ended_by,
    judged,
    not_built,
    not_called,
    proven_before,
    proven_progress,
    proven_while_built,
    same_value,
    start_alone,
    start_proven,
    with_least_objective,
    with_start,
    with_valid_bound,
)
from mipforest.problem.repair import (
    CONFLICT_TIME_LIMIT,
    GROWTH,
    conflict_of,
    contradictory,
    feasible_start,
    feasible_values,
    rebuilt_with_cutoff,
    refined_within,
    why_infeasible,
)
from mipforest.problem.result import Result
from mipforest.problem.tree_search import (
    AUTO,
    Auto,
    SearchResult,
    SearchStart,
    TreeSearch,
    check_settings,
    solver_or_search,
    start_search,
)
from mipforest.settings import (
    FEASIBILITY_TOLERANCE,
    SolveKeywords,
    SolveSettings,
    chosen_settings,
    one_blas_thread,
    takes_settings,
)
from mipforest.solvers.base import Solver
from mipforest.solvers.bound_check import checked_against, validated
from mipforest.solvers.solution import Event, Progress, Solution, Status
from mipforest.solvers.worker import out_of_memory
from mipforest.solving import solve
from mipforest.time_budget import Stopped
from mipforest.trees import Predictor

#: Default time limit in seconds: a first run ends soon and says how far it got.
TIME_LIMIT = 60.0

#: Seconds for rows that contradict each other, where constraints that do are named beside them.
FEW_SECONDS = 1.0

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
        keep_trees: int | None = None,
        within: float | None = None,
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
        keep_trees, within
            List the ``keep_trees`` best trees, all whose objective is within a share ``within`` of the optimum
            (0.02: 2 %), or the best so many of these, as :attr:`Result.trees`; of univariate models (see
            :mod:`mipforest.problem.near_optimum`). A matrix solver that is asked for by name finds them one by one.
        time_limit, gap, threads, seed, solver_options, bridges, log, isolate, dask
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
            changed after it was built; if trees are to be listed and cannot be.
        ParameterError, StartError
            If the start is unknown or does not fit.
        """
        settings = chosen_settings(
            settings,
            keywords,
            SETTINGS,
            start=start,
            certificate=certificate,
            keep_trees=keep_trees,
            within=within,
        )
        self.read_by_hand()
        if isinstance(solver, str):
            with self.budget.phase("load"):  # its package may take a moment to load
                solver = solver_or_search(solver)
        if self.waits:
            searched = self.for_searches()
            with self.budget.phase("load"):
                chosen = solver.choose(searched, settings)[0] if isinstance(solver, Auto) else solver
                reads_no_row = isinstance(chosen, TreeSearch) and chosen.takes(searched)
            if reads_no_row:
                return searched.solve(solver, on_progress=on_progress, settings=settings)
            self.model.matrix()  # its declaration is none of the time of the solve
        with self.budget.phase("load"):  # as may the searches that are asked
            by_name, why, prover = not isinstance(solver, Auto), "", None
            if isinstance(solver, Auto):
                auto = solver
                solver, why = auto.choose(self, settings)
                if isinstance(solver, Solver) and settings.start == "default" and settings.time_limit != 0:
                    prover = auto.prover(self)
                    if prover is not None:
                        settings = replace(settings, start=prover.name)
                        why = (
                            f"{why}; {prover.name} proves what holds without it, and has a tree to begin with"
                        )
            lister = lister_for(self, settings, solver, by_name=by_name)
        with one_blas_thread():
            by = "" if prover is None else prover.name
            solved = solve_problem(self, solver, settings, on_progress, prover=by)
            if solved.solution.status is Status.INFEASIBLE:
                solved = self._explained(solved, solver, settings, on_progress)
            if lister is not None:
                solved = with_trees(solved, lister, settings, on_progress, solve_by_rows)
        if self.has_rows:
            self.model.store_solution(solved.solution)
        message = "; ".join(filter(None, (why and f"auto: {why}", solved.solution.message)))
        return replace(solved, solution=replace(solved.solution, message=message))

    def with_only(self, constraints: Sequence[Constraint]) -> Problem:
        """Return the problem as it was built, with these constraints alone."""
        if self.unfinished:  # searches read no rows
            free = replace(self, constraints=())
        else:
            model = Model(self.model.name)
            self.formulation.declare(model, self.instance)
            free = replace(self, model=model, constraints=())
        free.constrain(*constraints)
        return free

    def _explained(
        self,
        result: Result,
        solver: Solver | TreeSearch,
        settings: SolveSettings,
        on_progress: Progress | None,
    ) -> Result:
        """Say why a problem has no tree: which rows, and which constraints cannot hold together."""
        searched, solution = isinstance(solver, TreeSearch), result.solution
        if result.problem.has_rows:
            seconds = FEW_SECONDS if searched and self.constraints else CONFLICT_TIME_LIMIT
            with self.budget.phase("check"):
                asked = "gurobi" if solution.solver == "gurobi" else "highs"
                conflict = conflict_of(result.problem, asked, seconds)
            result = replace(result, conflict=conflict, phase_seconds=self.budget.seconds)
        if not (self.constraints and (self.unfinished or self.is_stated)):  # else rows by hand may be why
            return result
        text = self._contradiction(settings, on_progress)
        return replace(result, solution=replace(solution, warnings=(*solution.warnings, *text)))

    def _contradiction(self, settings: SolveSettings, on_progress: Progress | None) -> list[str]:
        """Leave out constraints one by one, as long as the rest is proven to have no tree, and name what is left.

        Returns no sentence where the user stops it.
        """
        kept, smallest = list(self.constraints), True
        end = monotonic() + (self.budget.at_most(CONFLICT_TIME_LIMIT) or 0.0)
        for k, constraint in enumerate(self.constraints):
            limit = max(0.0, end - monotonic()) / (len(self.constraints) - k)
            if len(kept) == 1 or limit == 0.0:
                smallest = smallest and limit > 0.0
                break
            fewer = self.with_only([own for own in kept if own is not constraint])
            own = SolveSettings(
                time_limit=limit, start=settings.start, threads=settings.threads, seed=settings.seed
            )
            solver, _ = Auto().choose(fewer, own)
            without = solve_problem(fewer, solver, own, on_progress)
            if without.solution.status is Status.INTERRUPTED:
                return []
            if without.solution.status is Status.INFEASIBLE:
                kept = list(fewer.constraints)
            elif without.tree is None:
                smallest = False
        text = f"no tree satisfies {' and '.join(map(str, kept))}" + " together" * (len(kept) > 1)
        return [text + "; with any one of them left out there is one" * (smallest and len(kept) > 1)]

    def start_tree(self, start: str | Predictor | None = "default", *, seed: int = 0) -> Predictor | None:
        """Return the tree to start from; of a tree search's name, its best tree after a share of the time."""
        return started(self, start, seed).tree

    def start_values(
        self, tree: Predictor, *, may_search: bool = False, seed: int = 0
    ) -> tuple[Values | None, list[str]]:
        """Encode a start tree as feasible values, repaired where it breaks a row.

        Parameters
        ----------
        tree
            For scaled features.
        may_search, seed
            Whether a search that keeps all constraints may find another tree in its place, and its seed: that of the
            default start, which looks at none. A tree that a user gives is repaired.

        Returns
        -------
        values, warnings
            As for :func:`~mipforest.problem.repair.feasible_start`.
        """
        return _start_values(self, tree, may_search=may_search, seed=seed)

    def checked(self, solution: Solution) -> Result:
        """Decode and check a solution from elsewhere, as :meth:`solve` does with its solver's."""
        return check_solution(self, solution)


#: Seconds per row, column and entry until a solver looks at its clock (1 to 3 s at a million): with less, it is not
#: called.
HAND_OVER = 2.7e-6

#: Share of the time of a search that keeps no constraints: the rest is for a tree near its best one that satisfies all.
SHARE_OF_SEARCH = 0.8

#: What a result says of a search none of whose trees satisfies all constraints.
OUTSIDE = (
    "no tree that the search came across satisfies all constraints, and none was found near its best one"
)
NEARBY = "no tree that the search came across satisfies all constraints, and its best one was repaired: {}"

#: What a result says of a start that no search may begin with.
REFUSED = "the search did not begin with the start, as this {} is none of the model: {}"

#: Share of the time for a changed model with the limits that it was built with, where no solution of it is known.
FIRST_SHARE = 0.5

#: While a changed model has no solution within its limits, these grow to those of this multiple of the known value.
MAX_GROWTH = 1e3


def solve_problem(
    problem: ProblemData,
    solver: Solver | TreeSearch,
    settings: SolveSettings,
    on_progress: Progress | None,
    *,
    prover: str = "",
) -> Result:
    """Solve with a solver, in the budget's time, and check the answer.

    The solver is not called where a search, the ``prover`` that its start is from, has proven this optimal.
    """
    check_settings(solver, settings)
    (budget := problem.budget).begin_solve(settings.time_limit or None)

    def report(event: Event) -> bool:
        if on_progress is not None and on_progress(event):
            budget.stop()
        return budget.stopped

    if isinstance(solver, TreeSearch):
        return _searched(problem, solver, settings, report)
    problem.require_rows(f"a model for {solver.name}")
    with budget.phase("start"):
        tree, least, within = started(problem, settings.start, settings.seed)
        known = problem.at_least(least, within)
        if problem.unfinished:
            return _unfinished(known, solver, tree, settings.gap)
        values: Values | None = None
        warnings: list[str] = []
        if tree is not None:
            may_search = settings.start == "default" and settings.time_limit != 0
            values, warnings = _start_values(problem, tree, may_search=may_search, seed=settings.seed)
    with budget.phase("solve"):
        if prover and values is not None and proven_before(known, values, settings.gap):
            limited, solution = known, start_proven(known, solver, values, prover)
        else:
            limited, solution = _within_limits(known, solver, settings, values, report)
        if values is not None and solution.found:
            # Rows may approximate the objective, so that their optimum is a worse tree than the start.
            known_tree = limited.formulation.decode(values, limited.instance)
            better = _with_values_of(limited, known_tree, solution)
            if better is not None and not same_value(
                better.objective, solution.objective, limited.objective_unit
            ):
                solution = better
    with budget.phase("check"):
        result = _checked(limited, solution, settings, (*problem.instance.notes, *budget.notes, *warnings))
    return replace(result, phase_seconds=budget.seconds)


def _start_values(
    problem: ProblemData, tree: Predictor, *, may_search: bool, seed: int
) -> tuple[Values | None, list[str]]:
    """Encode a start tree as feasible values; see :meth:`Problem.start_values`.

    The search of univariate trees mostly ends in the share of the time that a start has; where a search does not, the
    repaired tree may be better, as it mostly is for hyperplanes that may not use a feature. What the search proves is
    left out: the solver that was asked is to prove.
    """
    search = Auto().choose(problem, SolveSettings())[0] if may_search and problem.constraints else None
    if not isinstance(search, TreeSearch):
        return feasible_start(problem, tree)
    values = feasible_values(problem, tree)
    if values is not None:
        return values, []
    found, value = search.start_for(problem, tree, seed=seed), np.inf
    if found.tree is not None:
        value = problem.formulation.evaluate(found.tree, problem.instance)
        # It may be worth more than what the model's limits were derived from.
        whole = rebuilt_with_cutoff(problem, value) or problem
        values = feasible_values(whole, found.tree)
    if values is None or (
        value > found.within and not same_value(value, found.within, problem.objective_unit)
    ):
        repaired, warnings = feasible_start(problem, tree)
        objective = problem.model.objective
        if values is None or (repaired is not None and objective(repaired) < objective(values)):
            return repaired, warnings
    return values, [
        f"the start tree violates the model: {why_infeasible(problem, tree)}",
        f"it is replaced by the best tree of {search.name} within the constraints",
    ]


def solve_by_rows(
    problem: ProblemData, solver: Solver, settings: SolveSettings, on_progress: Progress
) -> Result:
    """Solve with a matrix solver, without a start, in what is left of the time of a solve that has begun."""
    return _checked(*_within_limits(problem, solver, settings, None, on_progress), settings)


def _checked(
    problem: ProblemData, solution: Solution, settings: SolveSettings, warnings: tuple[str, ...] = ()
) -> Result:
    """Check a solver's solution, and how far its bound holds."""
    solution, bound_warnings = with_valid_bound(problem, solution)
    solution = judged(problem, with_least_objective(problem, solution, settings.gap), settings.gap)
    return check(problem, replace(solution, warnings=(*warnings, *solution.warnings, *bound_warnings)))


def _within_limits(
    given: ProblemData, solver: Solver, settings: SolveSettings, values: Values | None, on_progress: Progress
) -> tuple[ProblemData, Solution]:
    """Solve the model, built again with limits that hold under added constraints where it takes that for a proof.

    Returns
    -------
    problem, solution
        This one, or the one built again, whose columns are the same; and its solution.
    """
    suggested = given.formulation.solver_options.get(solver.name, {})
    settings = replace(settings, solver_options={**suggested, **settings.solver_options})
    value = np.inf if values is None else given.model.objective(values)
    problem = rebuilt_with_cutoff(given, value) or given
    unproven = problem.valid_below() < value
    # Without a solution to compute limits from, the built limits have to do at first.
    share = FIRST_SHARE if unproven else 1.0
    solution = _solved(problem, solver, settings, values, on_progress, share=share)
    spent, growth = solution.seconds, 1.0
    while unproven and solution.status in (Status.OPTIMAL, Status.TIME_LIMIT, Status.INFEASIBLE):
        if solution.status is Status.OPTIMAL and solution.objective <= problem.valid_below():
            break
        growth *= GROWTH
        if not solution.found and (growth > MAX_GROWTH or contradictory(problem)):
            break
        again = rebuilt_with_cutoff(
            given, solution.objective if solution.found else growth * given.known_value()
        )
        if again is None and solution.status is Status.TIME_LIMIT:
            again = problem  # its limits do, or none are proven: the rest of the time is for it
        if again is None or given.budget.expired:
            break
        start = solution.values if solution.found else None
        found = _solved(again, solver, settings, start, on_progress)
        spent += found.seconds
        if found.found or not solution.found:
            problem, solution = again, found
        if found.status is Status.TIME_LIMIT:
            break
    return problem, replace(solution, seconds=spent)


def _solved(
    problem: ProblemData,
    solver: Solver,
    settings: SolveSettings,
    values: Values | None,
    on_progress: Progress,
    *,
    share: float = 1.0,
) -> Solution:
    """Solve this model from a start, in a share of the time left; replace the solution by that of its tree."""
    if values is not None and proven_while_built(problem, values, settings.gap):
        return start_proven(problem, solver, values)
    form = problem.model.matrix()
    if (left := problem.budget.remaining) <= HAND_OVER * (form.A.nnz + form.n_rows + form.n_columns):
        # Time that is left was not the limit: the size of the model was.
        why = Status.LIMIT if left > 0 else Status.TIME_LIMIT
        return start_alone(problem, solver, values, not_called(problem, solver), status=why)
    limit = problem.budget.at_most(share=share) if settings.time_limit != 0 else 0.0
    settings = replace(settings, start=values or {}, time_limit=limit)
    try:
        solution = solve(
            problem.model, solver, settings=settings, on_progress=proven_progress(problem, on_progress)
        )
    except MemoryError:
        if values is None:
            raise
        return start_alone(problem, solver, values, out_of_memory(solver.name), status=Status.LIMIT)
    if solution.stopped:
        problem.budget.stop()
    solution = replace(solution, status=ended_by(problem, solution.status))
    if values is not None and not solution.found:
        solution = with_start(problem, solution, values)
    return snapped_to_tree(problem, solution, settings.gap, start=values)


def _searched(
    problem: ProblemData, search: TreeSearch, settings: SolveSettings, on_progress: Progress
) -> Result:
    """Let a tree search find the tree, checked as a solver's point is; one that proves nothing claims no bound."""
    search.check(problem)
    budget = problem.budget
    began = monotonic() - budget.excluded_seconds
    with budget.phase("start"):
        named = settings.start
        if named == "default" and search.complete and settings.time_limit != 0 and not problem.instance.known:
            named = problem.formulation.simple_start or named
        start, refused = begun_with(problem, started(problem, named, settings.seed).tree)
        reduces = bool(problem.constraints) and search.reduces(problem, settings)
        if reduces:
            check_certificate(problem, settings)
            if start is None and settings.start not in (None, "none"):
                start, unlike = begun_with(problem, start_within(problem, seed=settings.seed))
                refused = refused if unlike or isinstance(settings.start, Predictor) else ()
    with budget.phase("solve"):
        limit = budget.at_most() if settings.time_limit != 0 else 0.0
        asks = not all(one.is_of_whole_tree for one in problem.constraints)
        if limit is not None and asks and search.finds_within(problem):
            limit *= SHARE_OF_SEARCH
        within = replace(settings, time_limit=limit)
        # One that sees added rows needs a model that leaves out nothing that they could make the best.
        whole = (
            rebuilt_with_cutoff(problem, np.inf) or problem
            if problem.changed() and not problem.is_stated
            else problem
        )
        try:
            if reduces:
                found = search_within(whole, search, within, start=start, on_progress=on_progress)
            else:
                found = search.search(whole, within, start=start, on_progress=on_progress)
        except Stopped:
            if start is None:
                raise
            found = SearchResult(start, -np.inf, Status.INTERRUPTED, message="it was stopped before it began")
    with budget.phase("check"):
        seconds = monotonic() - budget.excluded_seconds - began
        found = replace(found, warnings=(*refused, *found.warnings))
        if problem.constraints and found.tree is not None:
            # The best tree within constraints may be worth more than what the model's limits were derived from.
            value = problem.formulation.evaluate(found.tree, problem.instance)
            whole = whole if whole.unfinished else rebuilt_with_cutoff(whole, value) or whole
            tree, told = _within(whole, found.tree, start)
            found = replace(found, tree=tree, warnings=(*found.warnings, *told))
        result = _found(whole, search, found, start, seconds, settings.gap)
    return replace(result, phase_seconds=budget.seconds)


def _within(
    problem: ProblemData, tree: Predictor, start: Predictor | None
) -> tuple[Predictor | None, tuple[str, ...]]:
    """Return a search's tree if it satisfies all constraints, else one like it that does or the start, and a warning.

    The rows decide, too: a search that keeps no constraints asks them by their definition.
    """
    if _satisfies(problem, tree):
        return tree, ()
    if problem.has_rows and not problem.budget.expired:
        values, repairs = feasible_start(problem, tree)
        if values is not None:
            repaired: Predictor = problem.formulation.decode(values, problem.instance)
            if _satisfies(problem, repaired):
                return repaired, (NEARBY.format("; ".join(repairs[1:])),)
    return start if start is not None and _satisfies(problem, start) else None, (OUTSIDE,)


def _satisfies(problem: ProblemData, tree: Predictor) -> bool:
    """Return whether a tree (scaled features) satisfies all constraints, by their definition and by their rows."""
    if problem.outside(tree):
        return False
    return not problem.has_rows or feasible_values(problem, tree) is not None


def begun_with(problem: ProblemData, start: Predictor | None) -> tuple[Predictor | None, tuple[str, ...]]:
    """Return the tree that a search begins with, and a warning where the start is none of the model.

    The formulation may have a tree with the start's routing, or part of it, that is one.
    """
    # The search of a smooth model takes any tree, and makes a point of it.
    if start is None or not problem.formulation.has_rows or not (why := problem.outside(start)):
        return start, ()
    polished: Predictor = problem.formulation.polish(start, problem.instance)
    if not problem.outside(polished):
        return polished, ()
    return None, (REFUSED.format(start.noun, why),)


def _unfinished(problem: ProblemData, solver: Solver, tree: Predictor | None, gap: float) -> Result:
    """Return the start, and what is known without a model, where the time ran out while it was declared."""
    too_large = problem.entries_given_up > 0 and not problem.budget.expired
    if tree is not None and problem.constraints and problem.outside(tree):
        tree = None
    warned = (not_built(problem),) if tree is not None and (too_large or problem.budget.expired) else ()
    found = SearchResult(tree, -np.inf, Status.LIMIT if too_large else Status.TIME_LIMIT, warnings=warned)
    return replace(_found(problem, solver, found, tree, 0.0, gap), phase_seconds=problem.budget.seconds)


def _found(
    problem: ProblemData,
    by: Solver | TreeSearch,
    found: SearchResult,
    start: Predictor | None,
    seconds: float,
    gap: float,
) -> Result:
    x, values, objective = (None, {}, np.nan) if found.tree is None else _whole_point(problem, found.tree)
    solution = Solution(
        status=ended_by(problem, found.status),
        x=x,
        values=values,
        objective=objective if np.isnan(found.objective) else found.objective,
        bound=found.bound,
        nodes=found.nodes,
        seconds=seconds,
        solver=by.name,
        solver_version=by.version(),
        events=found.events,
        start_objective=np.nan if start is None else problem.formulation.evaluate(start, problem.instance),
        warnings=(*problem.instance.notes, *problem.budget.notes, *found.warnings),
        message=found.message,
        reported=found.reported,
    )
    if isinstance(by, Solver) or found.bound > -np.inf:
        solution = with_least_objective(problem, solution, gap)
    tree = None if problem.has_rows else found.tree
    return check(problem, judged(problem, solution, gap), tree, sees_rows=not isinstance(by, TreeSearch))


def _whole_point(problem: ProblemData, tree: Predictor) -> tuple[FloatArray, Values, float]:
    """Return the point of a tree as :meth:`ProblemData.point_of` does, with values of a user's variables."""
    if not problem.has_rows:
        return problem.point_of(tree)
    known, form = problem.encoded(tree), problem.model.matrix()
    completed = feasible_values(problem, tree) if known.keys() < problem.model.variables.keys() else None
    if completed is None:
        return problem.point_of(tree)
    x = form.to_point({**completed, **known})
    return x, form.to_values(x), problem.value_of(tree, x)


def started(problem: ProblemData, start: str | Predictor | None, seed: int) -> SearchStart:
    """Return the tree to start from, and what a search for it proves."""
    search = start_search(start, problem) if isinstance(start, str) else None
    if search is None:
        return SearchStart(problem.start_without_search(start, seed=seed))
    return search.start_for(problem, problem.start_without_search(seed=seed), seed=seed)


def check_solution(problem: ProblemData, solution: Solution) -> Result:
    """Decode and check a solution from elsewhere, as :func:`solve_problem` does with its solver's."""
    infeasible = solution.x is not None and problem.model.violations(solution.x).max > FEASIBILITY_TOLERANCE
    return check(problem, solution if infeasible else snapped_to_tree(problem, solution))


def snapped_to_tree(
    problem: ProblemData, solution: Solution, gap: float | None = None, *, start: Values | None = None
) -> Solution:
    """Replace a solution by that of the tree it stands for, where this is feasible and no worse.

    A solver that stops early may leave slack that the tree does not need: a feature switched on and not
    used, a leaf value off its optimum. Where the tree is worse, by what the solver's tolerances are worth, or its
    point feasible and the solver's not, its own value counts; where it breaks a row beyond the tolerance, that of the
    ``start`` does. An optimum is then held to the ``gap`` again.
    """
    if solution.x is None:
        return solution
    tree = problem.formulation.decode(solution.values, problem.instance)
    # Labels that suit the objective may break a constraint that a user added.
    relabelled = problem.formulation.relabel(tree, problem.instance)
    for candidate in (relabelled, tree):
        tidied = _with_values_of(problem, candidate, solution)
        if tidied is not None:
            return tidied
    value = problem.evaluated(tree, solution.x)
    violation = problem.model.violations(solution.x).max
    feasible = violation <= FEASIBILITY_TOLERANCE
    if problem.as_built.added_terms().turned or (
        feasible and same_value(value, solution.objective, problem.objective_unit)
    ):
        return solution
    # A leaf value off its optimum by a tolerance may break a row that large coefficients are in.
    own = _with_values_of(problem, tree, solution, worse=True)
    own, which = own or _with_values_of(problem, relabelled, solution, worse=True), "its"
    if own is None and start is not None:
        known = problem.formulation.decode(start, problem.instance)
        own, which = _with_values_of(problem, known, solution, worse=True), "the start's"
    if own is None:
        return solution
    status, bound, issues = validated(problem.model.matrix(), own.status, own.objective, own.bound, gap=gap)
    if issues and problem.formulation.slack_closed_by:
        issues = [f"what is left of the gap is closed by {problem.formulation.slack_closed_by}"]
    loosened = problem.changes().loosened
    cause = (
        "in the model without the rows that were removed" if loosened else f"by {problem.formulation.slack}"
    )
    said = (
        f"the solver's point has the value {solution.objective:.9g} {cause}, and {which} {tree.noun} "
        f"{own.objective:.9g}"
        if feasible
        else f"the solver's point violates the model by {violation:.3g}, and that of {which} {tree.noun} does not"
    )
    return replace(own, status=status, bound=bound, warnings=(*own.warnings, f"{said}: this counts", *issues))


def _with_values_of(
    problem: ProblemData, tree: Predictor, solution: Solution, *, worse: bool = False
) -> Solution | None:
    """Put the values of a tree into a solution; ``None`` where they are infeasible, or worse unless it may be."""
    form = problem.model.matrix()
    values = {**solution.values, **problem.encoded(tree)}
    x = form.to_point(values)
    objective = problem.value_of(tree, x)
    loses = objective < solution.objective if form.maximize else objective > solution.objective
    if (loses and not worse) or problem.model.violations(x).max > FEASIBILITY_TOLERANCE:
        return None
    held = checked_against(solution, form, x)
    bound = max(held.bound, objective) if form.maximize else min(held.bound, objective)
    return replace(held, x=x, values=form.to_values(x), objective=objective, bound=bound)


def check(
    problem: ProblemData, solution: Solution, tree: Predictor | None = None, *, sees_rows: bool = True
) -> Result:
    """Decode the tree unless it is given, route the training samples through it, and compare objectives."""
    if solution.x is None:
        return Result(
            problem=problem,
            solution=solution,
            tree=None,
            solved_tree=None,
            evaluated_objective=np.nan,
            max_violation=np.nan,
            failed_checks=(),
        )
    if tree is None:
        tree = problem.formulation.decode(solution.values, problem.instance)
    evaluated = problem.evaluated(tree, solution.x)
    violation = problem.violation(solution.x, tree)
    failed_checks, warned = broken_rows(problem, solution, violation, sees_rows=sees_rows)
    values = f"{evaluated:.9g}, the solver's is {solution.objective:.9g}"
    different = f"the tree's objective by the definition is {values}"
    if problem.as_built.added_terms().turned:
        failed_checks.append(f"the model's objective is maximised: {different}")
    elif not same_value(evaluated, solution.objective, problem.objective_unit):
        failed_checks.append(different)
    offset, scale, levels = (
        problem.data.encoding.offset,
        problem.data.encoding.scale,
        problem.data.encoding.levels,
    )
    refined, warnings = refined_within(problem, tree)
    return Result(
        problem=problem,
        solution=replace(solution, warnings=(*solution.warnings, *warned, *warnings)),
        tree=refined.with_scaling(offset, scale).with_levels(levels),
        solved_tree=tree.with_scaling(offset, scale).with_levels(levels),
        evaluated_objective=evaluated,
        max_violation=violation,
        failed_checks=tuple(failed_checks),
    )
