r"""From a problem of convex nodes to the local search over hyperplanes, and back to a tree with a proven bound.

**The bound.** Every sample reaches the root. So the root of any tree is charged at least the optimum V of its own node
problem for all samples, which the dual of that problem proves from below. Every other node is charged at least 0, hence
V is a lower bound on the objective of every tree.

A sample also pays at one node of every level below the root. Let samples of both classes be equal in all features, with
weights :math:`n_-` and :math:`n_+`. They have the same score s at every node, and convexity of the loss f gives
:math:`n_- f(-s) + n_+ f(s) \ge 2 \min(n_-, n_+) f(0)`. So each level adds at least the sum of this over all groups, times
the least C of the level.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.heuristics.node_problems import NodeProblems, weights_by_class
from mipforest.heuristics.node_solver import rows_of, solve_node
from mipforest.objectives.losses import HALF_SQUARED_L2
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.tree_search import SearchEvents, SearchResult
from mipforest.settings import SolveSettings
from mipforest.solvers.bound_check import objective_unit
from mipforest.solvers.solution import Progress, Status, closed
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.hyperplanes import HyperplaneProblem, Hyperplanes

#: What it takes of these structures, in words.
TAKEN = "convex nodes have the l2 norm, all features and a charge at every node"

#: The bound is lowered by this share of itself: what sums of rounding errors may come to.
ROUNDING = 1e-12

#: Samples above which no exact search takes these problems as a rule: ``auto`` then chooses the local search.
MANY_SAMPLES = 5000

#: Samples above which equal ones are not looked for.
MAX_MERGED = 200_000

#: Largest depth: the search works on all nodes at once.
MAX_DEPTH = 6


def refusal(problem: ProblemData) -> str:
    """Say why the search does not take a problem of convex nodes; empty where it does."""
    nodes = problem.structure
    assert isinstance(nodes, NodeProblems)
    if nodes.budget is not None:
        return "its nodes select features, and the search moves hyperplanes of all features"
    if nodes.norm is not HALF_SQUARED_L2:
        return f"its nodes have the norm {nodes.norm.name}, and the search solves nodes with the norm l2"
    if not nodes.exact:
        return f"the loss {nodes.loss.name} is not convex, and the search solves convex nodes"
    if nodes.uncharged:
        return "some levels are not charged, and the search takes trees that are charged at every node"
    if problem.formulation.variant == "paper":
        return "variant 'paper' has constants that may cut off the best tree, and the search knows no constants"
    if problem.topology.depth > MAX_DEPTH:
        return f"the trees have depth {problem.topology.depth}, and it takes {MAX_DEPTH}"
    return ""


def search(
    problem: ProblemData,
    settings: SolveSettings,
    *,
    starts: int,
    kicks: int,
    start: Tree | None,
    on_progress: Progress | None,
) -> SearchResult:
    """Search for a good tree, and prove the bound of the root.

    Parameters
    ----------
    problem
        A problem that :func:`refusal` has nothing against.
    settings
        Time limit, threads and seed.
    starts, kicks
        Random starts, and kicks of the best trees.
    start, on_progress
        As for :class:`~mipforest.problem.tree_search.TreeSearch`.
    """
    from mipforest.searches.hyperplanes import Hyperplanes
    from mipforest.searches.hyperplanes.search import compile_kernels, local_search

    nodes = problem.structure
    assert isinstance(nodes, NodeProblems)
    formulation, instance = problem.formulation, problem.instance
    samples, groups, at = _samples(problem, nodes)
    compile_kernels(problem.budget, samples)
    events = SearchEvents(on_progress)
    deadline = events.deadline(settings.time_limit)
    known = [tree for tree in (start, instance.known) if isinstance(tree, Tree)]
    value = min((formulation.evaluate(tree, instance) for tree in known), default=np.inf)
    # Reported before the bound is proven, which takes seconds where samples are many.
    stop = events.tell(value, 0.0, 0)
    bound = proven_bound(samples, weights_by_class(problem.data, at, len(groups)))

    def report(found: float, steps: int) -> bool:
        return events.tell(min(found, value), bound, steps)

    outcome = local_search(
        samples,
        starts=starts,
        kicks=kicks,
        trees=[Hyperplanes(tree.w, tree.b) for tree in known],
        seed=settings.seed,
        threads=settings.threads,
        deadline=monotonic() if stop else deadline,
        on_progress=report,
    )
    best = _best_tree(problem, nodes, known, outcome.tree)
    value = formulation.evaluate(best, instance)
    bound = min(bound, value)
    stopped = Status.INTERRUPTED if outcome.interrupted or stop else Status.TIME_LIMIT
    status = Status.BEST_FOUND if outcome.ended else stopped
    if closed(value, bound, settings.gap, 1.0):
        status = Status.OPTIMAL
    return SearchResult(
        best,
        bound,
        status,
        outcome.steps,
        events.end(value, bound, outcome.steps),
        message=f"the best tree of {outcome.steps} starts and kicks; the bound is what every tree pays at its root",
    )


def _samples(problem: ProblemData, nodes: NodeProblems) -> tuple[HyperplaneProblem, FloatArray, FloatArray]:
    """Return the problem with equal samples of a class merged, the (G, p) groups, and that of each sample (n,)."""
    from mipforest.searches.hyperplanes import HyperplaneProblem

    groups, at = problem.instance.distinct
    weight = weights_by_class(problem.data, at, len(groups))
    group, side = np.nonzero(weight)
    return (
        HyperplaneProblem(
            X=np.ascontiguousarray(groups[group]),
            sign=np.where(side == 1, 1.0, -1.0),
            weight=weight[group, side],
            C=np.asarray(nodes.C, dtype=np.float64),
            kinks=nodes.loss.convex.kinks(),
            epsilon=nodes.epsilon,
        ),
        groups,
        at,
    )


def proven_bound(samples: HyperplaneProblem, weight: FloatArray) -> float:
    """Return a lower bound on the objective of every tree: see the module's proof.

    Parameters
    ----------
    samples
        The problem.
    weight
        (G, 2) weights of both classes in each group of equal samples.
    """
    capacity = samples.C[0] * samples.weight
    root = solve_node(rows_of(samples.X, samples.sign, capacity, samples.kinks)).bound
    at_zero = float(sum(change * max(0.0, at) for at, change in samples.kinks))
    both = 2.0 * at_zero * float(weight.min(axis=1).sum())
    levels = [samples.C[2**k - 1 : 2 ** (k + 1) - 1] for k in range(1, samples.n_branches.bit_length())]
    below = both * float(sum(C.min() for C in levels))
    return (root + below) * (1.0 - ROUNDING)


def _best_tree(problem: ProblemData, nodes: NodeProblems, known: list[Tree], found: Hyperplanes) -> Tree:
    """Return the best tree by the definition, its nodes solved exactly for its routing where samples are few."""
    formulation, instance = problem.formulation, problem.instance
    trees = list(known)
    if np.isfinite(found.value) or not trees:
        own = nodes.labelled(found.w, found.b, problem.data, problem.topology)
        trees.append(own)
        if problem.data.n <= nodes.exact_up_to and not nodes.time.expired:
            trees.append(formulation.polish(own, instance))
    values = [
        np.inf
        if problem.has_rows and problem.worst_violation(problem.encoded(tree))
        else formulation.evaluate(tree, instance)
        for tree in trees
    ]
    return trees[int(np.argmin(values))]
