"""Starts for MIRET: the best tree without a split, and one improved node by node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from formulations.ensemble_target import EnsembleTarget
from formulations.group_cuts import SAME, GroupedNode
from formulations.sample_groups import first_of, summed
from formulations.separating_splits import fixed_labels
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.trees import Topology, Tree

#: Most rounds over all nodes; each has to lower the objective.
ROUNDS = 10


def constant_tree(data: Dataset, tree: Topology, target: EnsembleTarget) -> Tree:
    """Give the tree without a split that predicts what the ensemble predicts most, by weight."""
    blank = _blank(data, tree)
    first, second = target.wrong_weights(np.zeros(data.n, dtype=np.int64))[0]
    b = blank.b.copy()
    b[0] = -1.0 if first < second else 1.0
    return replace(blank, b=b)


def node_by_node(data: Dataset, tree: Topology, target: EnsembleTarget, alpha: float, epsilon: float) -> Tree:
    """Give every node in turn the cheapest split found for it, the others as they are, until nothing improves.

    A split costs its features and the samples that the subtrees below then predict unlike the ensemble; it may not
    part samples that must share a leaf. The search begins with a tree that is grown as CART grows one, and once for
    each level with the first split there; the best tree counts.

    Parameters
    ----------
    data, tree
        Training samples (scaled) and topology.
    target
        The ensemble's answers.
    alpha, epsilon
        Hyperparameters of MIRET.
    """
    search = _Search(data.X, target, target.feature_costs(alpha)[tree.levels], epsilon)
    blank = _blank(data, tree)
    found = [constant_tree(data, tree, target), search.improved(search.grown(blank), tree.branches)]
    for level in range(tree.depth):
        # The last node of the level is the one that all samples of the blank tree pass.
        found.append(search.improved(blank, [2 ** (level + 1) - 2, *tree.branches]))
    return min(found, key=search.value)


def _blank(data: Dataset, tree: Topology) -> Tree:
    """Give a tree without a split; left children send samples left, others right.

    All samples reach the last leaf. Any node can then be given a split: below its left child lies the prediction of
    the first class, below the right one that of the second.
    """
    b = np.where(np.arange(tree.n_branches) % 2 == 1, -1.0, 1.0)
    names = (tuple(data.classes), tuple(data.features.labels))
    return Tree(tree.depth, np.zeros((tree.n_branches, data.p)), b, fixed_labels(tree), *names)


@dataclass(frozen=True, eq=False)
class _Search:
    """Node-wise improvement of trees in which no leaf border parts samples that go together.

    Attributes
    ----------
    X
        (n, p) training samples, scaled.
    target
        The ensemble's answers.
    costs
        (|B|, p) cost of each feature at each node.
    epsilon
        Gap between the sides of a split.
    """

    X: FloatArray
    target: EnsembleTarget
    costs: FloatArray
    epsilon: float

    def value(self, fitted: Tree) -> float:
        """Objective of a tree."""
        return self.target.unfaithfulness(fitted.predict(self.X)) + float(self.costs[fitted.w != 0].sum())

    def improved(self, fitted: Tree, order: Iterable[int]) -> Tree:
        """Visit the nodes in an order, again and again while the objective falls."""
        order, value = tuple(order), self.value(fitted)
        for _ in range(ROUNDS):
            before = value
            for t in order:
                candidate = self._with_cheapest_split(fitted, t)
                if self.value(candidate) < value - SAME:
                    fitted, value = candidate, self.value(candidate)
            if value == before:
                break
        return fitted

    def grown(self, fitted: Tree) -> Tree:
        """Give every node, from the root down, the split of one feature with the purest sides."""
        for t in fitted.topology.branches:
            here, group = self._members(fitted, t)
            if len(here) == 0 or len(set(self.target.sign[here])) == 1:
                continue
            weights, sign = self.target.weight[here], self.target.sign[here]
            classes = np.column_stack([summed(group, weights * (sign == side)) for side in (-1, 1)])
            node = GroupedNode(self.X[here], group, classes, self.costs[t], self.epsilon)
            split = node.purest_split(self._allowed(fitted, t), classes)
            if split is not None:
                fitted = _with_split(fitted, t, *split)
        return fitted

    def _with_cheapest_split(self, fitted: Tree, t: int) -> Tree:
        here, group = self._members(fitted, t)
        if len(here) == 0:
            return fitted
        sides = [self._side_costs(_with_split(fitted, t, 0.0, b), here, group) for b in (-1.0, 1.0)]
        node = GroupedNode(self.X[here], group, np.column_stack(sides), self.costs[t], self.epsilon)
        split = node.cheapest_split(self._allowed(fitted, t))
        return fitted if split is None else _with_split(fitted, t, *split)

    def _side_costs(self, sent: Tree, here: IntArray, group: IntArray) -> FloatArray:
        """(G,) cost of each group in a tree that sends all of it to one side; infinite where the subtree parts it."""
        leaf = sent.apply(self.X[here])
        wrong = sent.predict(self.X[here]) != (self.target.sign[here] > 0)
        parted = np.bincount(group, leaf != leaf[first_of(group)][group]) > 0
        return np.where(parted, np.inf, summed(group, self.target.weight[here] * wrong))

    def _members(self, fitted: Tree, t: int) -> tuple[IntArray, IntArray]:
        """Give the samples that pass node t, and the groups that they are in."""
        here = np.flatnonzero(fitted.decision_path(self.X)[:, t])
        return here, np.unique(self.target.group[here], return_inverse=True)[1].astype(np.int64)

    def _allowed(self, fitted: Tree, t: int) -> IntArray:
        return np.flatnonzero(self.target.allowed[fitted.topology.level(t)])


def _with_split(fitted: Tree, t: int, w: FloatArray | float, b: float) -> Tree:
    """Replace the split of node t."""
    weights, intercepts = fitted.w.copy(), fitted.b.copy()
    weights[t], intercepts[t] = w, b
    return replace(fitted, w=weights, b=intercepts)
