"""What each constraint costs: the optimum with it, and without it; and which ones cannot hold together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from mipforest.model import Model
from mipforest.problem.constraints import Constraint
from mipforest.problem.problem import Problem
from mipforest.problem.result import Price, Result
from mipforest.problem.tree_search import Auto, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Progress, Status

#: Share of a time limit that prices may take, and seconds of a solve without a limit.
SHARE, UNLIMITED = 0.1, 6.0


def priced(
    problem: Problem,
    result: Result,
    seconds: float,
    *,
    on_progress: Progress | None = None,
    says: Callable[[str], None] | None = None,
) -> Result:
    """Solve a problem again without each of its constraints, and add what these cost to its result.

    Parameters
    ----------
    problem, result
        The problem, and what :meth:`Problem.solve` returned.
    seconds
        Wall time of all these solves together; each has its share of what is left.
    on_progress
        As for :func:`mipforest.solving.solve`.
    says
        Told which constraint is left out.

    Returns
    -------
    Result
        The same with :attr:`Result.prices`, or of an infeasible problem with a warning that names the constraints that
        cannot hold together; as it was where it has no tree, or was stopped.
    """
    constraints = problem.constraints
    if constraints and result.solution.status is Status.INFEASIBLE:
        return _with_conflict(problem, result, seconds, on_progress)
    if not constraints or result.tree is None or result.solution.status is Status.INTERRUPTED:
        return result
    found: list[Price | None] = []
    end = monotonic() + seconds
    for k, left_out in enumerate(constraints):
        time_limit = max(0.0, end - monotonic()) / (len(constraints) - k)
        if time_limit == 0.0:
            break
        if says is not None:
            says(f"solving without {left_out}, for what it costs")
        free = _with_only(problem, [*constraints[:k], *constraints[k + 1 :]])
        without = free.solve(start=result.solved_tree, time_limit=time_limit, on_progress=on_progress)
        found.append(Price.of(result, without))
        if without.solution.status is Status.INTERRUPTED:
            break
    return replace(result, prices=(*found, *[None] * (len(constraints) - len(found))))


def priced_at(
    problem: Problem,
    points: Sequence[Constraint],
    seconds: float,
    *,
    solver: str | Solver | TreeSearch | Auto = "auto",
    settings: SolveSettings | None = None,
    on_progress: Progress | None = None,
    says: Callable[[str], None] | None = None,
) -> list[Result]:
    """Solve a problem with each of several constraints, such as one kind at several limits: the price of that limit.

    Parameters
    ----------
    problem
        The problem, with what else its trees have to satisfy.
    points
        The constraints; each one alone is added to those of the problem.
    seconds
        Wall time of all these solves together; each has its share of what is left.
    solver, settings
        Who solves them, and how; the time limit is that above.
    on_progress, says
        As for :func:`priced`.

    Returns
    -------
    list of Result
        One for each point, in their order; fewer where it was stopped. Each begins with the tree of the one before.

    Raises
    ------
    DataError, NotExpressed
        As :meth:`Problem.constrain <mipforest.problem.problem.Problem.constrain>`.
    """
    found: list[Result] = []
    settings, end = settings or SolveSettings(), monotonic() + seconds
    for k, point in enumerate(points):
        if says is not None:
            says(f"solving with {point}")
        own = _with_only(problem, [*problem.constraints, point])
        limit = max(0.0, end - monotonic()) / (len(points) - k)
        result = own.solve(solver, settings=replace(settings, time_limit=limit), on_progress=on_progress)
        found.append(result)
        if result.solution.status is Status.INTERRUPTED:
            break
        if result.tree is not None:
            settings = replace(settings, start=result.solved_tree)
    return found


def _with_only(problem: Problem, constraints: Sequence[Constraint]) -> Problem:
    """Return the problem with these constraints alone."""
    if problem.unfinished:  # searches read no rows
        free = replace(problem, constraints=())
    else:
        model = Model(problem.model.name)
        problem.formulation.declare(model, problem.instance)
        free = replace(problem, model=model, constraints=())
    free.constrain(*constraints)
    return free


def _with_conflict(problem: Problem, result: Result, seconds: float, on_progress: Progress | None) -> Result:
    """Leave out constraints one by one, as long as the rest is proven to be infeasible, and name what is left."""
    kept, end, smallest = list(problem.constraints), monotonic() + seconds, True
    for k, constraint in enumerate(problem.constraints):
        if len(kept) == 1:
            break
        fewer = [own for own in kept if own is not constraint]
        limit = max(0.0, end - monotonic()) / (len(problem.constraints) - k)
        if limit == 0.0:
            smallest = False
            break
        without = _with_only(problem, fewer).solve(time_limit=limit, on_progress=on_progress)
        if without.solution.status is Status.INTERRUPTED:
            return result
        if without.solution.status is Status.INFEASIBLE:
            kept = fewer
        elif without.tree is None:
            smallest = False
    named = " and ".join(map(str, kept))
    text = f"no tree satisfies {named}" + (" together" if len(kept) > 1 else "")
    if smallest and len(kept) > 1:
        text += "; with any one of them left out there is one"
    solution = result.solution
    return replace(result, solution=replace(solution, warnings=(*solution.warnings, text)))
