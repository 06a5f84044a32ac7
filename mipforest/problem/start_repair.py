"""From a start tree to feasible values of a model, whatever constraints a user has added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic

import numpy as np

from mipforest.model import Values
from mipforest.problem.built import BuiltProblem
from mipforest.solving import solve
from mipforest.trees import Tree

#: Seconds for completing a start whose integer variables are fixed.
COMPLETION_TIME_LIMIT = 10.0

#: Seconds for the search among other trees once a start breaks an added constraint: half to draw them.
SEARCH_TIME_LIMIT = 4.0

#: Most trees that are drawn for that search.
CANDIDATES = 5000


def feasible_start(problem: BuiltProblem, tree: Tree) -> tuple[Values | None, list[str]]:
    """Encode a start tree as values of the model, repaired where it breaks a row.

    The repairs, in turn: the nodes solved anew for the tree's routing; the tree known from building the model;
    the integer variables kept and the rest solved anew; the best of many other trees that is feasible.

    Parameters
    ----------
    problem
        The problem.
    tree
        For scaled features.

    Returns
    -------
    values
        By block, feasible; ``None`` if no repair helps.
    warnings
        What was repaired, or why nothing helped.
    """
    values = feasible_values(problem, tree)
    if values is not None:
        return values, []
    warnings = [f"the start tree violates the model: {_why_infeasible(problem, tree)}"]
    for what, repair in _repairs(problem, tree):
        values = repair()
        if values is not None:
            return values, [*warnings, what]
    return None, [*warnings, "it is dropped: the solver starts from nothing"]


def _repairs(problem: BuiltProblem, tree: Tree) -> Iterator[tuple[str, Callable[[], Values | None]]]:
    polished = problem.formulation.polish(tree, problem.instance)
    yield (
        "its nodes were solved anew for its routing of the samples",
        lambda: feasible_values(problem, polished),
    )
    known = problem.instance.known
    if known is not None and known is not tree:
        yield (
            "it is replaced by the tree known from building the model",
            lambda: feasible_values(problem, known),
        )
    yield (
        "its integer values were kept and the rest solved anew",
        lambda: _completed(problem, problem.encoded(polished)),
    )
    yield "it is replaced by the best feasible one of many other trees", lambda: _searched(problem)


def feasible_values(problem: BuiltProblem, tree: Tree) -> Values | None:
    """Values of all blocks for a tree; ``None`` if they break a row, or none are found for added blocks."""
    values = problem.encoded(tree)
    if values.keys() < problem.model.variables.keys():
        return _completed(problem, values)
    return None if problem.worst_violation(values) else values


def _why_infeasible(problem: BuiltProblem, tree: Tree) -> str:
    values = problem.encoded(tree)
    absent = [name for name in problem.model.variables if name not in values]
    if absent:
        return f"no values of the added {', '.join(absent)} go with it"
    return problem.worst_violation(values)


def _completed(problem: BuiltProblem, values: Values) -> Values | None:
    """Fix the integer variables at the values given and solve for the rest; ``None`` where that fails."""
    rest = problem.model.copy()
    for name, value in values.items():
        block = rest[name]
        if block.integer.all():
            block.fix(value)
            block.relax()
    solution = solve(rest, time_limit=COMPLETION_TIME_LIMIT)
    if solution.x is None or problem.worst_violation(solution.values):
        return None
    return solution.values


def _searched(problem: BuiltProblem) -> Values | None:
    """Draw candidates of the formulation, and try them from the best on until one is feasible or time is over."""
    began = monotonic()
    candidates, values = [], []
    for tree in islice(problem.formulation.candidates(problem.instance), CANDIDATES):
        candidates.append(tree)
        values.append(problem.formulation.evaluate(tree, problem.instance))
        if monotonic() - began > SEARCH_TIME_LIMIT / 2:
            break
    for position in np.argsort(values, kind="stable"):
        if monotonic() - began > SEARCH_TIME_LIMIT:
            return None
        found = feasible_values(problem, candidates[position])
        if found is not None:
            return found
    return None
