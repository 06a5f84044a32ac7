"""The tree search ``routing``: from a built problem to its groups of equal samples, and back to trees."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.heuristics.node_split import Split
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE
from mipforest.problem.built import BuiltProblem
from mipforest.problem.tree_search import Found, TreeSearch
from mipforest.searches import SearchEvents, told_of_compilation
from mipforest.searches.routing.recording import recording
from mipforest.searches.routing.search import RoutingProblem, RoutingSearch, compile_kernels
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress, Status
from mipforest.trees import Topology, Tree

#: Most distinct samples: their inner products are held in memory (200 MB at this size).
MOST_GROUPS = 5000

#: The bound is lowered by this share of the best value: what sums of rounding errors may come to, many times over.
ROUNDING = 1e-9


class Routing(TreeSearch):
    """Exact search over the routings of samples, for hinge loss and half the squared Euclidean norm at every node."""

    name: ClassVar[str] = "routing"
    summary: ClassVar[str] = "exact branch and bound over the routings of samples"
    models: ClassVar[str] = "margot; loss-optimal with hinge, l2, all levels, no selection"
    preferred: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    def refusal(self, problem: BuiltProblem) -> str:
        """Say why the search does not take a problem; empty where it does."""
        nodes = problem.formulation.node_problems(problem.topology)
        if nodes is None:
            return f"the objective of {problem.formulation.name} is no sum of convex problems at the branch nodes"
        if nodes.loss is not HINGE or nodes.norm is not HALF_SQUARED_L2 or nodes.uncharged:
            return "it takes hinge loss and half the squared Euclidean norm, charged at every branch node"
        if nodes.budget is not None:
            return "it takes no feature selection"
        if problem.formulation.variant == "paper":
            return "variant 'paper' has constants that may cut off the best tree, and the search knows no constants"
        groups = len(np.unique(problem.data.X, axis=0))
        if groups > MOST_GROUPS:
            return f"the data have {groups} different samples, and it takes {MOST_GROUPS}"
        return ""

    def search(
        self,
        problem: BuiltProblem,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> Found:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        compiled_in = compile_kernels(problem.budget)
        events = SearchEvents(on_progress)
        deadline = np.inf if settings.time_limit is None else events.began + settings.time_limit
        trees = _Trees(problem, start)
        routing = trees.routing_problem()

        def told(objective: float, bound: float, nodes: int) -> bool:
            return events.tell(objective, _lowered(bound, objective), nodes)

        with recording(
            settings.certificate,
            routing.X,
            routing.weight,
            routing.C,
            routing.epsilon,
            model=problem.formulation.name,
            data=problem.data.name,
            program=f"mipforest {self.version()}",
        ) as recorder:
            search = RoutingSearch(
                routing,
                gap=settings.gap,
                complete=trees.realised,
                propose=trees.proposed,
                threads=settings.threads or os.cpu_count() or 1,
                recorder=recorder,
            )
            outcome = search.run(trees.value, deadline=deadline, on_progress=told)
            bound = _lowered(outcome.bound, trees.value)
            if recorder is not None:
                recorder.claim(trees.value, bound, trees.best.w, trees.best.b)
        stopped = Status.INTERRUPTED if outcome.interrupted else Status.TIME_LIMIT
        status = Status.OPTIMAL if outcome.proven else stopped
        ended = events.end(trees.value, bound, outcome.nodes)
        return Found(trees.best, bound, status, outcome.nodes, ended, told_of_compilation(compiled_in))


def _lowered(bound: float, objective: float) -> float:
    """Return a bound that rounding errors cannot have raised, at least 0 as no term of the objective is negative."""
    return max(0.0, min(bound, objective) - ROUNDING * abs(objective))


class _Trees:
    """The best tree of a search, and trees made from what the search finds."""

    def __init__(self, problem: BuiltProblem, start: Tree | None) -> None:
        self._problem = problem
        nodes = problem.formulation.node_problems(problem.topology)
        assert nodes is not None  # ``refusal`` has seen to it
        self._nodes: NodeProblems = nodes
        self._data = problem.data
        self._X, group = np.unique(problem.data.X, axis=0, return_inverse=True)
        self._group: IntArray = group.ravel()
        constant = Split(np.zeros(problem.data.p), 1.0, np.nan)
        self.best = self._tree(dict.fromkeys(problem.topology.branches, constant))
        self.value = np.inf
        for tree in (self.best, problem.instance.known, start):
            if tree is not None:
                self._keep(problem.formulation.polish(tree, problem.instance))
                self._keep(tree)

    def routing_problem(self) -> RoutingProblem:
        """Return what the search needs."""
        weight = np.zeros((len(self._X), 2))
        np.add.at(weight, (self._group, (self._data.sign > 0).astype(np.int64)), self._data.weights)
        topology, C = self._problem.topology, np.asarray(self._nodes.C, dtype=np.float64)
        # As in step 1 to 3 of formulations.bounds.margins: an optimal tree has ||w|| <= R and a score within v of 0 at
        # every node, so in centred coordinates |b| <= v + R * (largest distance + largest norm).
        radius = np.sqrt(2.0 * self.value)
        size = np.linalg.norm(self._X - self._X.mean(axis=0), axis=1).max(initial=0.0)
        limit = np.full(topology.n_branches, 1.0 + 3.0 * radius * size)
        return RoutingProblem(self._X, weight, C, limit, topology.depth, self._nodes.epsilon)

    def realised(self, reached: IntArray) -> float:
        """Return the value of the best tree with a complete routing (G,); inf where no hyperplanes realise it."""
        data, topology = self._data, self._problem.topology
        at = reached[self._group]
        splits: dict[int, Split] = {}
        for t in reversed(topology.branches):
            here = at == t
            if t in topology.upper_branches:
                right = _below(at, topology.right(t), topology)
                here = right | _below(at, topology.left(t), topology)
                split = self._nodes.split(
                    t, data.X[here], data.sign[here], data.weights[here], right=right[here]
                )
            else:
                split = self._nodes.split(t, data.X[here], data.sign[here], data.weights[here])
            if split is None:
                return float("inf")
            splits[t] = split
        return self._keep(self._tree(splits))

    def proposed(self, w: FloatArray, b: FloatArray) -> float:
        """Return the value of the tree that routes samples by hyperplanes (|B|, p), (|B|,), its nodes solved anew."""
        splits: dict[int, Split] = {}
        here = {0: np.arange(self._data.n)}
        topology = self._problem.topology
        for t in topology.branches:
            splits[t] = Split(w[t], float(b[t]), np.nan)
            if t in topology.upper_branches:
                splits[t], right = self._nodes.route(splits[t], self._data.X[here[t]])
                here[topology.left(t)], here[topology.right(t)] = here[t][~right], here[t][right]
        return self._keep(self._problem.formulation.polish(self._tree(splits), self._problem.instance))

    def _tree(self, splits: dict[int, Split]) -> Tree:
        return self._nodes.tree(splits, self._data, self._problem.topology)

    def _keep(self, tree: Tree) -> float:
        """Return the value of a tree, and remember it if it is the best one."""
        tree = _near_samples(tree, self._data.X)
        value = self._problem.formulation.evaluate(tree, self._problem.instance)
        if value < self.value and not self._problem.worst_violation(self._problem.encoded(tree)):
            self.best, self.value = tree, value
        return value


def _below(at: IntArray, node: int, topology: Topology) -> BoolArray:
    """Return whether nodes (n,) are at or below a node."""
    inside = {node}
    for t in topology.branches:
        if t in inside:
            inside |= {topology.left(t), topology.right(t)}
    return np.isin(at, list(inside))


def _near_samples(tree: Tree, X: FloatArray) -> Tree:
    """Move biases so that some score is at most 1 and some at least -1: no side changes, no loss grows."""
    scores = tree.scores(X)
    above, below = scores.min(axis=0) - 1.0, -1.0 - scores.max(axis=0)
    return replace(tree, b=tree.b - np.maximum(above, 0.0) + np.maximum(below, 0.0))
