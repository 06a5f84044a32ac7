r"""From a problem of convex nodes to the local search over hyperplanes, and back to a tree with a proven bound.

**The bound.** Every sample reaches the root. So the root of any tree is charged at least the optimum V of its own node
problem for all samples, which the dual of that problem proves from below. Every other node is charged at least 0, hence
V is a lower bound on the objective of every tree.

A sample also pays at one node of every level below the root. Let samples of both classes be equal in all features, with
weights :math:`n_-` and :math:`n_+`. They have the same score s at every node, and convexity of the loss f gives
:math:`n_- f(-s) + n_+ f(s) \ge 2 \min(n_-, n_+) f(0)`. So each level adds at least the sum of this over all groups,
times the least C of the level.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from mipforest.heuristics.node_problems import NodeProblems, weights_by_class
from mipforest.heuristics.node_solver import Halted, hinges_of, never, solve_node
from mipforest.objectives.losses import HALF_SQUARED_L2, L1
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.hyperplanes import HyperplaneProblem

#: What it takes of these structures, in words.
TAKEN = "convex nodes have the l1 or l2 norm and a charge at every node"

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
    if nodes.norm not in (HALF_SQUARED_L2, L1):
        return (
            f"its nodes have the norm {nodes.norm.name}, and the search solves nodes with the norm l2 or l1"
        )
    if not nodes.exact:
        return f"the loss {nodes.loss.name} is not convex, and the search solves convex nodes"
    if nodes.uncharged:
        return "some levels are not charged, and the search takes trees that are charged at every node"
    if problem.formulation.variant == "paper":
        return (
            "variant 'paper' has constants that may cut off the best tree, and the search knows no constants"
        )
    if problem.topology.depth > MAX_DEPTH:
        return f"the trees have depth {problem.topology.depth}, and it takes {MAX_DEPTH}"
    return ""


def search(
    by: TreeSearch,
    problem: ProblemData,
    settings: SolveSettings,
    start: Tree | None,
    on_progress: Progress | None,
    *,
    starts: int,
    kicks: int,
    dask: str | None,
) -> SearchResult:
    """Search for a good tree, and prove the bound of the root.

    Parameters
    ----------
    by
        The search that is asked.
    problem
        A problem that :func:`refusal` has nothing against.
    settings, start, on_progress
        As for :meth:`~mipforest.problem.tree_search.TreeSearch.search`.
    starts, kicks
        Random starts, and kicks of the best trees.
    dask
        Address of the scheduler of a Dask cluster whose workers take the starts.
    """
    from mipforest.searches.hyperplanes import Hyperplanes
    from mipforest.searches.hyperplanes.search import Start, compile_kernels, local_search, search_on
    from mipforest.searches.workers import Workers

    nodes = problem.structure
    assert isinstance(nodes, NodeProblems)
    samples, both = problem_of(problem)
    compile_kernels(problem.budget, samples)
    driver = Driver(by, problem, settings, on_progress)
    known = [tree for tree in (start, problem.instance.known) if isinstance(tree, Tree)]
    for tree in known:
        driver.offer(tree)
    # Reported before the bound is proven, which takes seconds where samples are many.
    stop = driver.report(0.0)
    bound = proven_bound(samples, both, driver.over)

    def report(found: float, steps: int) -> bool:
        return driver.report(bound, steps, value=found)

    trees = [Hyperplanes(tree.w, tree.b) for tree in known]
    if dask is None:
        outcome = local_search(
            samples,
            starts=starts,
            kicks=kicks,
            trees=trees,
            seed=settings.seed,
            threads=settings.threads,
            deadline=monotonic() if stop else driver.deadline,
            on_progress=report,
        )
    else:
        nothing = local_search(samples, starts=0, kicks=0, trees=trees, deadline=-np.inf).tree
        with Workers(dask, Start, samples, problem.budget, 0.0 if stop else driver.left) as workers:
            outcome = search_on(
                workers,
                starts=starts,
                kicks=kicks,
                trees=trees,
                nothing=nothing,
                seed=settings.seed,
                on_progress=report,
            )
    driver.lost = outcome.lost
    own = nodes.labelled(outcome.tree.w, outcome.tree.b, problem.data, problem.topology)
    driver.offer(own)
    if nodes.budget is None and problem.data.n <= nodes.exact_up_to and not nodes.time.expired:
        # Where samples are few, nodes are solved for the routing of the tree.
        driver.polish_and_offer(own)
    return driver.result(
        bound,
        ended=outcome.ended,
        nodes=outcome.steps,
        message=f"the best tree of {outcome.steps} starts and kicks; the bound is what every tree pays at its root",
    )


def problem_of(problem: ProblemData) -> tuple[HyperplaneProblem, float]:
    """Return the problem with equal samples of a class merged, and what groups with both classes weigh in the smaller.

    Of more than :data:`MAX_MERGED` samples none are merged.
    """
    from mipforest.searches.hyperplanes import HyperplaneProblem

    data, nodes = problem.data, problem.structure
    assert isinstance(nodes, NodeProblems)
    X, sign, weight, both = data.X, data.sign, np.asarray(data.weights, dtype=np.float64), 0.0
    if data.n <= MAX_MERGED:
        groups, at = problem.instance.distinct
        by_class = weights_by_class(data, at, len(groups))
        group, side = np.nonzero(by_class)
        X, sign, weight = groups[group], np.where(side == 1, 1.0, -1.0), by_class[group, side]
        both = float(by_class.min(axis=1).sum())
    samples = HyperplaneProblem(
        X=np.ascontiguousarray(X),
        sign=sign,
        weight=weight,
        C=np.asarray(nodes.C, dtype=np.float64),
        kinks=nodes.loss.convex.kinks(),
        epsilon=nodes.epsilon,
        l1=nodes.norm is L1,
        budget=nodes.budget,
        alpha=np.inf if nodes.alpha is None else float(nodes.alpha),
    )
    return samples, both


def proven_bound(samples: HyperplaneProblem, both: float = 0.0, halted: Halted = never) -> float:
    """Return a lower bound on the objective of every tree: see the module's proof.

    Parameters
    ----------
    samples
        The problem.
    both
        Over all groups of equal samples, the sum of the lesser weight of both classes.
    halted
        Asked now and then whether to end with the bound that is proven by then.
    """
    root = 0.0
    if capacity := float(samples.C[0]):
        hinges = hinges_of(samples.X, samples.sign, capacity * samples.weight, samples.kinks, l1=samples.l1)
        root = solve_node(hinges, halted=halted).bound
    at_zero = float(sum(change * max(0.0, at) for at, change in samples.kinks))
    levels = [samples.C[2**k - 1 : 2 ** (k + 1) - 1] for k in range(1, samples.n_branches.bit_length())]
    below = 2.0 * both * at_zero * float(sum(C.min() for C in levels))
    return (root + below) * (1.0 - ROUNDING)
