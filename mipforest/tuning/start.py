"""The start of a fit: the formulation's own, or the tree of the setting before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.problem.problem import Problem
from mipforest.problem.start_repair import feasible_values
from mipforest.trees import Tree


@dataclass(frozen=True, eq=False)
class Start:
    """A tree to start from.

    Attributes
    ----------
    name
        ``"default"`` or ``"neighbour"``.
    tree
        For scaled features.
    objective
        Its value for the problem; of a default start that breaks a row, that of its repair (infinite if there
        is none).
    """

    name: str
    tree: Tree
    objective: float


def better_start(problem: Problem, neighbour: Tree | None, *, seed: int) -> Start:
    """Give the better of the default start and a neighbour's tree.

    Parameters
    ----------
    problem
        What is to be solved.
    neighbour
        Tree of the same samples under other hyperparameters, or ``None``. It is taken as it is, or with its
        nodes solved anew for the same routing, if that is feasible and strictly better than the default.
    seed
        Seed of starts that draw.
    """
    tree = problem.start_tree("default", seed=seed)
    if tree is None:
        raise AssertionError(f"{problem.formulation.name} has no default start")
    best = Start("default", tree, _value(problem, tree))
    if neighbour is None:
        return best
    known = problem.start_tree(neighbour)
    if known is None:
        raise AssertionError("a tree is a start")
    for candidate in (known, problem.formulation.polish(known, problem.data)):
        value = problem.formulation.evaluate(candidate, problem.data)
        if value < best.objective and feasible_values(problem, candidate) is not None:
            best = Start("neighbour", candidate, value)
    return best


def _value(problem: Problem, tree: Tree) -> float:
    """Objective of a start tree as the solver will get it."""
    if feasible_values(problem, tree) is not None:
        return problem.formulation.evaluate(tree, problem.data)
    repaired, _ = problem.start_values(tree)
    if repaired is None:
        return np.inf
    form = problem.model.matrix()
    return form.objective(form.to_point(repaired))
