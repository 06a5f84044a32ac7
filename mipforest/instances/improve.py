"""Better solutions and bounds for the catalogue, by any solver."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mipforest.files.solutions.points import point_of, read_point, write_point
from mipforest.instances.build import build_problem
from mipforest.instances.catalogue import Entry, Library
from mipforest.instances.suite import InstanceSpec
from mipforest.problem.problem import Problem
from mipforest.solvers.base import Solver
from mipforest.trees import Tree


def improve(
    library: Library,
    spec: InstanceSpec,
    solver: str | Solver,
    *,
    time_limit: float,
    threads: int | None = None,
    seed: int = 0,
) -> Entry:
    """Solve an instance from its best known solution; record a better solution or bound.

    Only verified trees count, and only bounds of the unchanged model.

    Parameters
    ----------
    library, spec
        The library, and which of its instances.
    solver, time_limit, threads, seed
        As for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`.

    Returns
    -------
    Entry
        The entry, as it now stands in the catalogue.
    """
    built = build_problem(spec, library.entries().get(spec.name))
    problem, entry = built.problem, built.entry
    start = _best_known(library, spec, problem) if entry.solver else None
    result = problem.solve(
        solver, start=start or "default", time_limit=time_limit, threads=threads, seed=seed
    )
    solution = result.solution
    maximize = problem.model.matrix().maximize
    if result.verified and solution.x is not None and _better(result.objective, entry.objective, maximize):
        sparse = np.where(solution.x == 0, np.nan, solution.x)  # a column that is not named is 0
        write_point(
            problem.model.matrix(),
            sparse,
            library.solution_path(spec),
            comments=(f"best known solution of {spec.name}", f"objective value = {result.objective!r}"),
        )
        entry = replace(entry, objective=result.objective)
        entry = _by(entry, solution.solver, solution.solver_version, solution.seconds, time_limit)
    if _better(entry.bound, result.bound, maximize):
        entry = replace(entry, bound=result.bound)
        entry = _by(entry, solution.solver, solution.solver_version, solution.seconds, time_limit)
    library.record(entry)
    return entry


def _by(entry: Entry, solver: str, version: str, seconds: float, time_limit: float) -> Entry:
    return replace(
        entry, solver=f"{solver} {version}", seconds=round(seconds, 1), time_limit=float(time_limit)
    )


def _better(one: float, other: float, maximize: bool) -> bool:
    """Return whether the first objective value is better, or the second unknown."""
    if math.isnan(one):
        return False
    return math.isnan(other) or (one > other if maximize else one < other)


def _best_known(library: Library, spec: InstanceSpec, problem: Problem) -> Tree | None:
    path = library.solution_path(spec)
    if not path.is_file():
        return None
    form = problem.model.matrix()
    x = point_of(form, read_point(path), path).x
    return problem.formulation.decode(form.to_values(x), problem.instance)
