"""A changed model built again, with limits that hold for the constraints a user has added.

A variant that rests on the value of a known solution leaves out what is worse, and a constraint may leave nothing else.
Then the formulation computes its limits anew, from the value of a solution that satisfies the constraints
(:meth:`~mipforest.problem.operations.ModelOperations.limited_at`); here the model is declared once more with them, and
the user's variables, rows, bounds and priorities are put in again. All columns keep their numbers, so points of the one
model are points of the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from mipforest.model import Model, VarArray
from mipforest.problem.built import BuiltProblem
from mipforest.problem.expressions import TreeExpressions

#: The limits are computed for this multiple of the known tree's value, and so on, while no solution is known.
GROWTH = 10.0

AnyProblem = TypeVar("AnyProblem", bound=BuiltProblem)


def relimited(problem: AnyProblem, value: float) -> AnyProblem | None:
    """Build a changed model again with limits for its solutions up to a value.

    Parameters
    ----------
    problem
        With a model that a user has changed.
    value
        Value of a solution; infinite if none is known.

    Returns
    -------
    BuiltProblem
        ``None`` where the model covers them already, or nothing is proven for these changes.
    """
    if problem.covered_up_to() >= value or problem.as_built.objective_replaced():
        return None
    changes = problem.changes()
    least = problem.known_value()
    # Limits below those of the built model could leave out a start that is feasible for it.
    value = max(value, least) if np.isfinite(least) else value
    instance = problem.formulation.limited_at(problem.instance, value, changes)
    if instance is None:
        return None
    model = Model(problem.model.name)
    problem.formulation.declare(model, instance)
    twin = replace(problem, instance=instance, model=model)
    _set_bounds(twin, problem)
    _add_variables(twin, problem)
    _add_rows(twin, problem)
    for name, priority in problem.model.priorities.items():
        model.set_priority(name, priority)
    if model.matrix().columns != problem.model.matrix().columns:
        return None
    twin.declare_covered(value)
    return twin


def _set_bounds(twin: BuiltProblem, problem: BuiltProblem) -> None:
    """Set the bounds that a user changed on variables of the formulation."""
    changes = problem.changes()
    for name in problem.as_built.blocks:
        given, block = problem.model[name], twin.model[name]
        lower, upper = changes.lower[given.columns], changes.upper[given.columns]
        block.set_bounds(
            np.where(np.isfinite(lower), lower, block.lower), np.where(np.isfinite(upper), upper, block.upper)
        )


def _add_variables(twin: BuiltProblem, problem: BuiltProblem) -> None:
    """Add the user's blocks, in their order, those of helpers with the rows that rest on limits."""
    expressions: TreeExpressions = twin.formulation.expressions(twin.model, twin.instance)
    for name, given in problem.model.variables.items():
        if name not in twin.model.variables and not expressions.write_again(name):
            _add_like(twin.model, name, given)
        if name not in problem.as_built.blocks and name in twin.model.variables:
            twin.model[name].set_bounds(given.lower, given.upper)


def _add_like(model: Model, name: str, given: VarArray) -> None:
    """Add a block of the same shape, labels and integrality as one of another model."""
    over = tuple(labels or length for labels, length in zip(given.labels, given.shape, strict=True))
    if given.integer.any():
        block = model.integer(name, over, lower=given.lower, upper=given.upper)
        if not given.integer.all():
            block[~given.integer].relax()
    else:
        model.continuous(name, over, lower=given.lower, upper=given.upper)


def _add_rows(twin: BuiltProblem, problem: BuiltProblem) -> None:
    for name, block in problem.model.constraints.items():
        if name not in twin.model.constraints:
            twin.model.add_copy(block)
