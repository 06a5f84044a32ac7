"""A tree brought up to date: of the trees that are good enough on new samples, the one nearest to a given tree.

Last year's tree is known to those who use it. On this year's data another one may be better by a little, and look
altogether different. The *front* has the least objective for each distance from the given tree
(:class:`~mipforest.problem.constraints.AtMostChanges`), each point proven. The nearest tree within a share of the
optimum is on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from mipforest.errors import DataError, NoTreeFound
from mipforest.problem.constraints import AtMostChanges
from mipforest.problem.constraints.changes import Change
from mipforest.problem.near_optimum import limit_within
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.problem.tree_search import Auto, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver
from mipforest.solvers.solution import Progress, Status
from mipforest.trees import Tree

#: Sums of weights that are the same distance.
SAME = 1e-9

#: Share of the time left that each solve may take.
SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Point:
    """The best tree up to a distance.

    Attributes
    ----------
    distance
        The distance that was allowed.
    result
        The best tree within it, and its bound.
    """

    distance: float
    result: Result


@dataclass(frozen=True, eq=False)
class Update:
    """A tree near a given one that is good on new samples.

    Attributes
    ----------
    best
        The best tree at any distance.
    limit
        The objective that the nearest tree may have.
    nearest
        Of the trees with no greater objective the one nearest to the given tree; a split that stays has the threshold
        of the given tree where the samples are parted alike.
    distance
        Its distance.
    changes
        What differs from the given tree.
    front
        The best trees by distance, the given tree's splits first.
    is_proven
        Whether no nearer tree is as good: all nearer points are proven, and the best tree is.
    """

    best: Result
    limit: float
    nearest: Result
    distance: float
    changes: tuple[Change, ...]
    front: tuple[Point, ...]
    is_proven: bool


def update(
    problem: Problem,
    tree: Tree,
    within: float = 0.01,
    *,
    tolerance: float = 0.0,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    whole_front: bool = False,
    solver: str | Solver | TreeSearch | Auto = "auto",
    settings: SolveSettings | None = None,
    on_progress: Progress | None = None,
    says: Callable[[str], None] | None = None,
) -> Update:
    """Find the tree nearest to a given one, of those within a share of the optimum.

    Parameters
    ----------
    problem
        A problem on new samples, with what its trees have to satisfy.
    tree
        The given tree, of one feature in each split.
    within
        Share of the optimum, 0.01 for 1 %.
    tolerance, weights
        When thresholds are the same, and what changes cost; see
        :class:`~mipforest.problem.constraints.AtMostChanges`.
    whole_front
        Whether to go on until a tree is as good as the best one.
    solver, settings, on_progress
        As for :meth:`Problem.solve <mipforest.problem.problem.Problem.solve>`; the time limit is that of all solves.
    says
        Told what is solved.

    Raises
    ------
    DataError
        If the tree has splits on several features, or is deeper than those of the problem, or the share is negative.
    NotExpressed
        If the model cannot express the distance.
    NoTreeFound
        If no tree is found.
    """
    if not within >= 0.0:
        raise DataError(f"within is {within}; give a share of the optimum, 0 or more, such as 0.01")
    settings = settings or SolveSettings()
    asked = AtMostChanges.of(tree, depth=problem.topology.depth, tolerance=tolerance, weights=weights)
    end = None if settings.time_limit is None else monotonic() + settings.time_limit

    def solved(own: Problem, start: Result | None) -> Result:
        left = None if end is None else SHARE * max(0.0, end - monotonic())
        given = replace(settings, time_limit=left)
        if start is not None and start.solved_tree is not None:
            given = replace(given, start=start.solved_tree)
        return own.solve(solver, settings=given, on_progress=on_progress)

    if says is not None:
        says("solving for the best tree")
    best = solved(problem, None)
    if not isinstance(best.tree, Tree):
        raise NoTreeFound(
            f"no tree was found on {problem.data.name} (status {best.status})",
            hint="give a longer time limit",
        )
    limit, data = limit_within(best.objective, within), problem.data
    furthest = asked.holds(best.tree, data).value
    front: list[Point] = []
    nearest, is_proven = best, best.status == "optimal"
    for distance in _distances(weights, furthest, len(asked.splits)):
        if says is not None:
            says(f"solving for the best tree at distance {distance:g}")
        near = problem.with_only([*problem.constraints, replace(asked, most=distance)])
        # The tree of a smaller distance is one of this distance, too.
        point = Point(distance, solved(near, front[-1].result if front else None))
        if point.result.solution.status is Status.INTERRUPTED:
            is_proven = False
            break
        front.append(point)
        good = point.result.tree is not None and point.result.objective <= limit
        if nearest is best and good:
            nearest = point.result
        elif nearest is best:
            is_proven &= point.result.bound > limit
        as_good = point.result.tree is not None and point.result.objective <= limit_within(
            best.objective, 0.0
        )
        if as_good or (nearest is not best and not whole_front):
            break
    found = nearest.tree
    assert isinstance(found, Tree)
    kept = asked.with_given_thresholds(found, data)
    changes = tuple(asked.changes(kept, data))
    return Update(
        best,
        limit,
        replace(nearest, tree=kept),
        float(sum(change.cost for change in changes)),
        changes,
        tuple(front),
        is_proven,
    )


def _distances(weights: Sequence[float], most: float, n_nodes: int) -> Iterator[float]:
    """Go through the sums of weights from 0 to a number, ascending: as many of each as there are nodes and leaves."""
    open_sums, last = [0.0], -np.inf
    while open_sums:
        distance = heapq.heappop(open_sums)
        if distance <= last + SAME:
            continue
        if distance > most + SAME:
            return
        yield distance
        last = distance
        for weight in {weight for weight in weights if weight > 0.0}:
            if distance + weight <= (2 * n_nodes + 1) * max(weights):
                heapq.heappush(open_sums, distance + weight)
