r"""The trees near the optimum by a matrix solver: it solves again and again, each time without the trees known so far.

For every tree that is found, a *no-good row* is added. With the leaf :math:`\ell_i` of sample i, the column
:math:`f_t` of each node t that splits and, where labels tell trees apart, the label :math:`k_\ell` of each leaf,

.. math::  \sum_i (1 - z_{i \ell_i}) + \sum_t (1 - s_{t f_t}) + \sum_\ell (1 - c_{\ell k_\ell}) \ge 1:

another tree sends a sample elsewhere, splits on another column, or has another label. That is the definition of
:mod:`mipforest.problem.near_optimum`, whose trees have more in common, which is written down beforehand:

- Both sides of a split hold samples (a): a threshold beyond the samples of its node makes no tree of its own.
- A node that splits does not have two leaves of one label below it (b); of regressions, not samples of one value
  alone (c). Trees with other splits that are none, as one prediction suits both sides, are met, cut off and left out.

Every solve's bound holds for all trees that were not found before. The list is complete where the last bound, or that
there is no other tree, says so.

Where features of a column part the samples of a node alike, but for the sides, the tree is met again with these
exchanged: it is cut off, and not listed twice.

The rows stand in a model that is declared once more: that of the problem stays as it is. A pool of solutions would not
do: several of its solutions may stand for one tree, so that the k best hold fewer trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import column_of_features
from mipforest.heuristics.thresholds import chosen_features
from mipforest.problem.constraints import OfLabels, TreeRows
from mipforest.problem.expressions import Expression
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.proofs import same_value
from mipforest.problem.repair import declared_again
from mipforest.problem.result import Result
from mipforest.problem.structure import UnivariateProblem
from mipforest.solvers.solution import Status
from mipforest.trees import Tree, TreeSet

#: What tells a tree from others: of a split its column, and the samples and the subtree of both sides, in no order.
Key = Hashable


def key_of(tree: Tree, data: Dataset, *, labelled: bool) -> Key:
    """Return what tells a tree (scaled features) from others on its samples, by their labels too where asked."""
    right, feature = tree.scores(data.X) >= 0, chosen_features(tree)
    column, n_branches = column_of_features(data), tree.topology.n_branches

    def below(node: int, here: BoolArray) -> Key:
        while node < n_branches and feature[node] < 0:
            node = tree.topology.right(node)
        if node >= n_branches:
            return tree.leaf_value[node - n_branches].tobytes() if labelled else None
        sides = (
            (tree.topology.left(node), here & ~right[:, node]),
            (tree.topology.right(node), here & right[:, node]),
        )
        return int(column[feature[node]]), frozenset((part.tobytes(), below(t, part)) for t, part in sides)

    return below(0, np.ones(data.n, dtype=bool))


def refusal_of_labels(problem: ProblemData) -> str:
    """Say why trees are not listed under any labels that a model allows; empty where the best ones will do."""
    by_hand = problem.changed() and not (problem.constraints and problem.is_stated)
    by_hand |= any(isinstance(one, OfLabels | TreeRows) for one in problem.constraints)
    several = len(problem.data.target_classes) > 1
    return "rows were added, which may bound the labels of several targets" if by_hand and several else ""


def refusal_of_rows(problem: ProblemData) -> str:
    """Say why the trees of a problem cannot be listed by no-good rows; empty where they can."""
    if not isinstance(problem.structure, UnivariateProblem):
        return "only univariate trees with additive losses are, such as those of oct, ort and policy"
    if not problem.has_rows:
        return "it has no model with rows that could cut off trees"
    if reason := refusal_of_labels(problem):
        return reason
    if problem.as_built.objective_replaced():
        return "the objective of the model was replaced"
    if problem.changes().loosened:
        return "rows of the model were removed or relaxed, and what it holds need not be trees"
    return ""


@dataclass(frozen=True, eq=False)
class _Found:
    """A tree with its objective."""

    feature: IntArray
    threshold: FloatArray
    leaf_value: IntArray | FloatArray
    objective: float


class _NoGoods:
    """A model whose trees are cut off one by one.

    Parameters
    ----------
    problem
        The problem; its model stays as it is.
    labelled
        Whether trees that differ in labels alone are two.
    classifies
        Whether leaves predict classes.
    """

    def __init__(self, problem: ProblemData, *, labelled: bool, classifies: bool) -> None:
        self.given, self.labelled = problem, labelled
        self.twin = declared_again(problem, problem.instance)
        model, topology, data = self.twin.model, problem.topology, problem.data
        expressions = problem.formulation.expressions(model, self.twin.instance)
        # Samples of equal features share a leaf.
        self._one, self._group = np.unique(data.X, axis=0, return_index=True, return_inverse=True)[1:]
        self._z = expressions.leaves()[self._one]
        self._features, self._column = expressions.features(), column_of_features(data)
        self._labels: Expression | None = expressions.labels() if classifies else None
        splits = self._features.sum(axis=1)
        size = self._z.sum(axis=0)
        self._add("left_holds_samples", size @ topology.leaf_reach_left >= splits)  # (a)
        self._add("right_holds_samples", size @ topology.leaf_reach_right >= splits)  # (a)
        n_branches = topology.n_branches
        if self._labels is not None:
            for t in topology.branches:
                sides = topology.left(t), topology.right(t)
                below = sum(splits[side] for side in sides if side < n_branches)
                left, right = (_last_leaf(side, n_branches) - n_branches for side in sides)
                both = self._labels[left] + self._labels[right]
                self._add(f"other_labels_{t}", both <= 2 - splits[t] + below)  # (b)
            return
        T = max(1, len(data.targets))
        own = [
            frozenset(map(tuple, np.asarray(data.y)[self._group.ravel() == g].reshape(-1, T).tolist()))
            for g in range(len(self._one))
        ]
        values = [value for same in own if len(same) == 1 for value in same]
        for k, value in enumerate(sorted({value for value in values if values.count(value) > 1})):
            others = self._z[[g for g, same in enumerate(own) if same != {value}]].sum(axis=0)
            here = others @ (topology.leaf_reach_left + topology.leaf_reach_right)
            self._add(f"other_values_{k}", here >= splits)  # (c)

    def _add(self, name: str, rows: object) -> None:
        self.twin.model.add(self.twin.free_name(f"near_{name}"), rows)  # type: ignore[arg-type]

    def key(self, tree: Tree) -> Key:
        """Return what is cut off with a tree: leaf of each sample, column of each node, label of each leaf."""
        leaf = tree.apply(self.given.data.X[self._one])
        labels = tree.leaf_value if self.labelled else np.zeros(0)
        used = np.unique(leaf) - tree.topology.n_branches
        feature = chosen_features(tree)
        return (
            leaf.tobytes(),
            np.where(feature >= 0, self._column[feature], -1).tobytes(),
            labels[used if self.labelled else []].tobytes(),
        )

    def cut_off(self, tree: Tree) -> None:
        """Add the no-good row of a tree."""
        leaf = tree.apply(self.given.data.X[self._one]) - tree.topology.n_branches
        feature = chosen_features(tree)
        splits = np.flatnonzero(feature >= 0)
        differing = len(leaf) - self._z[np.arange(len(leaf)), leaf].sum()
        if len(splits):
            t, own = np.nonzero(self._column[feature[splits]][:, None] == self._column)
            differing = differing + len(splits) - self._features[splits[t], own].sum()
        if self.labelled and self._labels is not None:
            used = np.unique(leaf)
            label = tree.leaf_value[used].astype(np.int64)
            differing = differing + len(used) - self._labels[used, label].sum()
        self._add("no_good", differing >= 1)

    def is_one(self, tree: Tree) -> bool:
        """Return whether every split of a tree is one."""
        problem, charged = self.given, self.given.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal_of_rows`` has seen to it
        passed: BoolArray = np.logical_or.reduce(tree.decision_path(problem.data.X), axis=0)
        n_branches, feature = problem.topology.n_branches, chosen_features(tree)
        value = problem.formulation.evaluate(tree, problem.instance)
        for t in np.flatnonzero(feature >= 0).tolist():
            sides = problem.topology.left(t), problem.topology.right(t)
            if not all(passed[side] for side in sides):
                return False
            if any(side < n_branches and bool(tree.w[side].any()) for side in sides):
                continue
            if self.labelled and self._labels is not None:
                left, right = (tree.leaf_value[_last_leaf(side, n_branches) - n_branches] for side in sides)
                if left == right:
                    return False
                continue
            w, b = tree.w.copy(), tree.b.copy()
            w[t], b[t] = 0.0, 0.0
            fewer = problem.formulation.relabel(replace(tree, w=w, b=b), problem.instance)
            without = (
                problem.formulation.evaluate(fewer, problem.instance) + charged.split_cost / charged.unit
            )
            if without < value or same_value(without, value, problem.objective_unit):
                return False
        return True

    def found(self, tree: Tree) -> _Found:
        """Return a tree with thresholds nearest to the middle, where no added constraint may read them."""
        problem, charged = self.given, self.given.structure
        assert isinstance(charged, UnivariateProblem)  # ``refusal_of_rows`` has seen to it
        feature, threshold = chosen_features(tree), np.where(tree.w.any(axis=1), -tree.b, 0.0)
        value = problem.formulation.evaluate(tree, problem.instance)
        if not self.labelled:
            passed = np.asarray(tree.decision_path(problem.data.X))
            for t in np.flatnonzero(feature >= 0).tolist():
                x = problem.data.X[:, feature[t]]
                below = x[passed[:, problem.topology.left(t)]].max()
                above = x[passed[:, problem.topology.right(t)]].min()
                own = charged.thresholds.value[charged.thresholds.of(int(feature[t]))]
                threshold[t] = own[np.abs(own - (below + (above - below) / 2)).argmin()]
        return _Found(feature, threshold, tree.leaf_value, value)


def _last_leaf(node: int, n_branches: int) -> int:
    """Return the node that samples end in which no split sends left from a node on."""
    while node < n_branches:
        node = 2 * node + 2
    return node


def list_by_rows(
    first: Result,
    *,
    keep: int,
    within: float | None,
    limit: Callable[[float], float],
    solve: Callable[[ProblemData], Result],
    stopped: Callable[[], bool],
) -> TreeSet:
    """List the trees near the optimum by a matrix solver.

    Parameters
    ----------
    first
        The solved problem.
    keep
        Most trees.
    within
        Relative distance from the optimum, ``None`` for any.
    limit
        Returns the greatest objective within it of a least one.
    solve
        Solves a model in the time that is left, without a start.
    stopped
        Asked before each solve whether to stop.
    """
    problem, like = first.problem, first.solved_tree
    assert isinstance(like, Tree)  # what problems that are listed have
    formulation, unit = problem.formulation, problem.objective_unit
    changed = problem.changed()
    rows = _NoGoods(problem, labelled=changed, classifies=like.is_classifier)
    found, met, listed = list[_Found](), set[Key](), set[Key]()
    best, proven, ended = first.evaluated_objective, first.solution.bound, False

    def meet(tree: Tree) -> bool:
        """Take a tree into the list where it is one, and cut it off; return whether it was not met before."""
        tree = tree if changed else formulation.relabel(tree, problem.instance)
        if (key := rows.key(tree)) in met:
            return False
        met.add(key)
        if (same := key_of(tree, problem.data, labelled=changed)) not in listed and rows.is_one(tree):
            listed.add(same)
            found.append(rows.found(tree))
        rows.cut_off(tree)
        return True

    known = like.unscaled()
    meet(known if changed else formulation.polish(known, problem.instance))
    while True:
        best = min([best, *(tree.objective for tree in found)])
        most = limit(best)
        near = sorted(tree.objective for tree in found if tree.objective <= most)
        beyond = proven > most
        enough = len(near) >= keep and (near[keep - 1] <= proven or same_value(near[keep - 1], proven, unit))
        ended = beyond or enough or proven == np.inf
        if ended or stopped():
            break
        result = solve(rows.twin)
        if result.solution.status is Status.INFEASIBLE:
            proven = np.inf
            continue
        proven = max(proven, result.solution.bound)
        if result.solution.status is not Status.OPTIMAL or result.failed_checks:
            break  # what a solve has by then may be far from the next best tree
        if not isinstance(result.solved_tree, Tree) or not meet(result.solved_tree.unscaled()):
            break
    near_trees = sorted(
        (tree for tree in found if tree.objective <= most),
        key=lambda tree: (round(tree.objective / unit, 9), int((tree.feature >= 0).sum())),
    )
    chosen = near_trees[:keep]
    topology, kind = problem.topology, int if like.is_classifier else float

    def table(name: str, shape: tuple[int, ...], kind: type) -> np.ndarray:
        return np.array([getattr(tree, name) for tree in chosen], kind).reshape(-1, *shape)

    return TreeSet(
        like=replace(like, leaf_value=np.zeros(like.leaf_value.shape)),
        feature=table("feature", (topology.n_branches,), int),
        threshold=table("threshold", (topology.n_branches,), float),
        leaf_value=table("leaf_value", like.leaf_value.shape, kind),
        objectives=np.array([tree.objective for tree in chosen]),
        within=within,
        found=len(near_trees),
        counted=beyond or proven == np.inf,
        ended=ended,
    )
