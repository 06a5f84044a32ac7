"""What each constraint costs: the optimum with it, and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

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
        The same with :attr:`Result.prices`; as it was where it has no tree, or was stopped.
    """
    constraints = problem.constraints
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
        free = problem.with_only([*constraints[:k], *constraints[k + 1 :]])
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
        own = problem.with_only([*problem.constraints, point])
        limit = max(0.0, end - monotonic()) / (len(points) - k)
        result = own.solve(solver, settings=replace(settings, time_limit=limit), on_progress=on_progress)
        found.append(result)
        if result.solution.status is Status.INTERRUPTED:
            break
        if result.tree is not None:
            settings = replace(settings, start=result.solved_tree)
    return found
