r"""Trees of a model that mimics an ensemble: starts, and splits fitted into the box and the gap of the model.

**Starts** are the best tree without a split, and one improved node by node. A node's split is looked for among
directions that its samples propose, each with all thresholds that keep the gap and part no group of samples.

**Splits** keep a gap between their sides. MIRET's split of a node has :math:`a \in [-1, 1]^p`, :math:`b \in [-1, 1]`,
sends samples with :math:`a^\top x + b \ge 0` right and those with :math:`a^\top x + b \le -\varepsilon` left. A tree's
split is scaled and its intercept moved so that this holds; the sides of the samples stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from formulations.mimic.target import EnsembleTarget, first_members, group_sums
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Most rounds over all nodes; each has to lower the objective.
ROUNDS = 10

#: Inverse penalties of the logistic regressions that propose directions.
PENALTIES = (1.0, 100.0)

#: Sets of features, the most promising ones, that are worth these regressions.
FITTED = 3

#: Costs that differ by less are equal.
COST_TOLERANCE = 1e-9

#: Share of the gap that rounding may take from it: far less than a solver's tolerance.
GAP_ROUNDING = 1e-6


def constant_tree(data: Dataset, topology: Topology, target: EnsembleTarget) -> Tree:
    """Return the tree without a split that predicts what the ensemble predicts most, by weight."""
    blank = _blank(data, topology)
    first, second = target.wrong_weights(np.zeros(data.n, dtype=np.int64))[0]
    b = blank.b.copy()
    b[0] = -1.0 if first < second else 1.0
    return replace(blank, b=b)


def node_by_node(
    data: Dataset,
    topology: Topology,
    target: EnsembleTarget,
    costs: FloatArray,
    epsilon: float,
    least_intercept: FloatArray,
    time: TimeBudget | None = None,
) -> Tree:
    """Give every node in turn the cheapest split found for it, the others as they are, until nothing improves.

    A split costs its features and the samples that the subtrees below then predict unlike the ensemble; it may not
    part samples that must share a leaf. The search begins with a tree that is grown as CART grows one, and once for
    each level with the first split there; the best tree counts.

    Parameters
    ----------
    data, topology
        Training samples (scaled) and index sets.
    target
        The ensemble's answers.
    costs
        (|B|, p) cost of each feature at each node.
    epsilon
        Gap between the sides of a split.
    least_intercept
        (|B|,) lower bound of each intercept, which the model has.
    time
        Once it has run out, nodes stay as they are.
    """
    search = _Search(data.X, target, costs, epsilon, least_intercept, time or TimeBudget())
    blank = _blank(data, topology)
    found = [constant_tree(data, topology, target), search.improved(search.grown(blank), topology.branches)]
    for level in range(topology.depth):
        # The last node of the level is the one that all samples of the blank tree pass.
        found.append(search.improved(blank, [topology.at_level(level)[-1], *topology.branches]))
    return min(found, key=search.value)


def _blank(data: Dataset, topology: Topology) -> Tree:
    """Return a tree without a split; left children send samples left, others right.

    All samples reach the last leaf. Any node can then be given a split: below its left child lies the prediction of
    the first class, below the right one that of the second.
    """
    b = np.where(np.arange(topology.n_branches) % 2 == 1, -1.0, 1.0)
    names = (tuple(data.classes), tuple(data.features.labels))
    return Tree(topology.depth, np.zeros((topology.n_branches, data.p)), b, fixed_labels(topology), *names)


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
    least_intercept
        (|B|,) lower bound of each intercept.
    time
        Once it has run out, nodes stay as they are.
    """

    X: FloatArray
    target: EnsembleTarget
    costs: FloatArray
    epsilon: float
    least_intercept: FloatArray
    time: TimeBudget

    def value(self, tree: Tree) -> float:
        """Return the objective of a tree."""
        return self.target.unfaithfulness(tree.predict(self.X)) + float(self.costs[tree.w != 0].sum())

    def improved(self, tree: Tree, order: Iterable[int]) -> Tree:
        """Visit the nodes in an order, again and again while the objective falls."""
        order, value = tuple(order), self.value(tree)
        for _ in range(ROUNDS):
            before = value
            for t in order:
                if self.time.expired:
                    return tree
                candidate = self._with_cheapest_split(tree, t)
                if not self.keeps_gaps(candidate):
                    candidate = self._with_cheapest_split(tree, t, far=True)
                if self.value(candidate) < value - COST_TOLERANCE:
                    tree, value = candidate, self.value(candidate)
            if value == before:
                break
        return tree

    def grown(self, tree: Tree) -> Tree:
        """Give every node, from the root down, the split of one feature with the purest sides."""
        for t in tree.topology.branches:
            here, group = self._members(tree, t)
            if len(here) == 0 or len(set(self.target.sign[here])) == 1 or self.time.expired:
                continue
            weights, sign = self.target.weight[here], self.target.sign[here]
            classes = np.column_stack([group_sums(group, weights * (sign == side)) for side in (-1, 1)])
            node = self._node(t, here, group, classes)
            split = node.purest_split(self._allowed(tree, t), classes)
            if split is not None:
                tree = _with_split(tree, t, *split)
        return tree

    def keeps_gaps(self, tree: Tree) -> bool:
        """Return whether the sides of every split are a gap apart: those above may have sent it other samples."""
        score = self.X @ tree.w.T
        passed = np.asarray(tree.decision_path(self.X))[:, : len(tree.b)]
        right = score + tree.b >= 0
        low = np.where(passed & right, score, np.inf).min(axis=0)
        high = np.where(passed & ~right, score, -np.inf).max(axis=0)
        return bool((low - high >= self.epsilon * (1 - GAP_ROUNDING))[tree.w.any(axis=1)].all())

    def _with_cheapest_split(self, tree: Tree, t: int, *, far: bool = False) -> Tree:
        here, group = self._members(tree, t)
        if len(here) == 0:
            return tree
        sides = [self._side_costs(_with_split(tree, t, 0.0, b), here, group, far=far) for b in (-1.0, 1.0)]
        node = self._node(t, here, group, np.column_stack(sides))
        split = node.cheapest_split(self._allowed(tree, t))
        return tree if split is None else _with_split(tree, t, *split)

    def _node(self, t: int, here: IntArray, group: IntArray, sides: FloatArray) -> GroupedNode:
        return GroupedNode(
            self.X[here], group, sides, self.costs[t], self.epsilon, float(self.least_intercept[t])
        )

    def _side_costs(self, sent: Tree, here: IntArray, group: IntArray, *, far: bool) -> FloatArray:
        """Return the (G,) cost of each group where a tree sends it to one side; infinite where its subtree parts it.

        With ``far`` also where a sample of it is in the gap of a split there, around its intercept.
        """
        X = self.X[here]
        leaf = sent.apply(X)
        wrong = sent.predict(X) != (self.target.sign[here] > 0)
        refused = leaf != leaf[first_members(group)][group]
        if far:
            near = np.abs(X @ sent.w.T + sent.b) < self.epsilon / 2 * (1 - GAP_ROUNDING)
            passed = np.asarray(sent.decision_path(X))[:, : len(sent.b)]
            refused |= (near & passed & sent.w.any(axis=1)).any(axis=1)
        parted = np.bincount(group, refused) > 0
        return np.where(parted, np.inf, group_sums(group, self.target.weight[here] * wrong))

    def _members(self, tree: Tree, t: int) -> tuple[IntArray, IntArray]:
        """Return the samples that pass node t, and the groups that they are in."""
        here = np.flatnonzero(tree.decision_path(self.X)[:, t])
        return here, np.unique(self.target.group[here], return_inverse=True)[1].astype(np.int64)

    def _allowed(self, tree: Tree, t: int) -> IntArray:
        return np.flatnonzero(self.target.allowed[tree.topology.level(t)])


def _with_split(tree: Tree, t: int, w: FloatArray | float, b: float) -> Tree:
    """Replace the split of node t."""
    weights, intercepts = tree.w.copy(), tree.b.copy()
    weights[t], intercepts[t] = w, b
    return replace(tree, w=weights, b=intercepts)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds of one direction that keep a gap and part no group.

    Attributes
    ----------
    order
        (G,) groups by their least score.
    last
        (c,) position in ``order`` of the last group to the left of each threshold.
    intercept
        (c,) intercept of each threshold, midway between its sides.
    """

    order: IntArray
    last: IntArray
    intercept: FloatArray

    def on_left(self, values: FloatArray) -> FloatArray:
        """Return the (c, ...) sum of the values (G, ...) of the groups to the left of each threshold."""
        return np.cumsum(values[self.order], axis=0)[self.last]


@dataclass(frozen=True, eq=False)
class GroupedNode:
    """Groups of samples at a node, and what they cost on either side.

    Attributes
    ----------
    X, group
        (n, p) samples at the node, and (n,) the group of each.
    sides
        (G, 2) cost of each group on the left and on the right; infinite where it may not go.
    costs
        (p,) cost of each feature.
    epsilon
        Gap between the sides.
    least
        Lower bound of the intercept, for the split itself or, its sides exchanged, for the reverse.
    """

    X: FloatArray
    group: IntArray
    sides: FloatArray
    costs: FloatArray
    epsilon: float
    least: float = -1.0

    def cheapest_split(self, features: IntArray) -> tuple[FloatArray, float] | None:
        """Choose features one at a time, as long as the cost falls.

        Returns
        -------
        (p,) weights, 0 if no split is cheaper than none, and the intercept; ``None`` if no finite cost was found.
        """
        w, (left, right) = np.zeros(self.X.shape[1]), self.sides.sum(axis=0)
        b, value = (-1.0, left) if left < right else (1.0, right)
        spare = self.sides.min(axis=1).sum()
        if spare == np.inf:
            return None
        chosen: list[int] = []
        while True:
            budget = value - spare - self.costs[chosen].sum()
            sets = [[*chosen, int(j)] for j in features if j not in chosen and self.costs[j] < budget]
            best = self._best_of(sets)
            if best is None or best[0] >= value - COST_TOLERANCE:
                return (w, float(b)) if value < np.inf else None
            value, b, w, chosen = best

    def _best_of(self, sets: list[list[int]]) -> tuple[float, float, FloatArray, list[int]] | None:
        """Return cost, intercept, weights and features of the cheapest split with one of the sets of features."""
        tried = [
            (*self._cheapest_threshold(w), w, chosen)
            for chosen in sets
            for w in self._quick_directions(chosen)
        ]
        tried.sort(key=lambda entry: entry[0])
        for *_, chosen in tried[:FITTED]:
            tried += [(*self._cheapest_threshold(w), w, chosen) for w in self._regressed_directions(chosen)]
        return min(tried, key=lambda entry: entry[0], default=None)

    def purest_split(self, features: IntArray, classes: FloatArray) -> tuple[FloatArray, float] | None:
        """Choose the threshold of one feature whose sides have the least Gini impurity, as CART does.

        Parameters
        ----------
        features
            Features to choose from.
        classes
            (G, 2) weight of each class in each group.

        Returns
        -------
        (p,) weights and the intercept; ``None`` if no feature has a threshold.
        """
        best: tuple[float, float, FloatArray] | None = None
        for j in features:
            w = self._single(int(j))
            thresholds = self.thresholds(w)
            if len(thresholds.last) == 0:
                continue
            left = thresholds.on_left(classes)
            impurity = _gini(left) + _gini(classes.sum(axis=0) - left)
            k = int(impurity.argmin())
            if best is None or impurity[k] < best[0] - COST_TOLERANCE:
                best = float(impurity[k]), float(thresholds.intercept[k]), w
        return None if best is None else (best[2], best[1])

    def thresholds(self, w: FloatArray) -> Thresholds:
        """Find all thresholds of a direction (p,) that keep the gap and the least intercept, and part no group."""
        score, n_groups = self.X @ w, len(self.sides)
        low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(low, self.group, score)
        np.maximum.at(high, self.group, score)
        order = np.argsort(low, kind="stable")
        reach, floor = np.maximum.accumulate(high[order])[:-1], low[order][1:]
        intercept = -(reach + floor) / 2
        # An intercept may move by half a gap, and a split be reversed.
        allowed = np.abs(intercept) >= self.least + self.epsilon / 2 * (1 - GAP_ROUNDING)
        last = np.flatnonzero((reach + self.epsilon <= floor) & allowed)
        return Thresholds(order, last, intercept[last])

    def _cheapest_threshold(self, w: FloatArray) -> tuple[float, float]:
        """Return the cost of the cheapest threshold of a direction, its features included, and its intercept."""
        thresholds = self.thresholds(w)
        order, last = thresholds.order, thresholds.last
        if len(last) == 0:
            return np.inf, 0.0
        left = np.cumsum(self.sides[order, 0])[last]
        right = np.cumsum(self.sides[order[::-1], 1])[::-1][last + 1]
        best = int((left + right).argmin())
        return float(left[best] + right[best] + self.costs[w != 0].sum()), float(thresholds.intercept[best])

    def _quick_directions(self, features: list[int]) -> list[FloatArray]:
        """Propose weights for some features: both directions of one, least squares for several."""
        if len(features) == 1:
            return [self._single(features[0]), -self._single(features[0])]
        X, wanted, weight = self._wanted_sides(features)
        root = np.sqrt(weight)
        design = np.column_stack([X, np.ones(len(X))]) * root[:, None]
        return [self._scaled(features, np.linalg.lstsq(design, wanted * root)[0][:-1])]

    def _regressed_directions(self, features: list[int]) -> list[FloatArray]:
        """Propose weights for several features by logistic regression: better ones, and slower."""
        X, wanted, weight = self._wanted_sides(features)
        if len(features) == 1 or len(np.unique(wanted)) < 2:
            return []
        from sklearn.linear_model import LogisticRegression  # takes seconds to import, and few runs come here

        fits = [LogisticRegression(C=C, max_iter=1000).fit(X, wanted, weight) for C in PENALTIES]
        return [self._scaled(features, fit.coef_[0]) for fit in fits]

    def _wanted_sides(self, features: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the samples that are cheaper on one side, that side (-1 or +1), and what it saves (at most 1)."""
        free = np.isfinite(self.sides).all(axis=1)
        gain = np.zeros(len(self.sides))
        gain[free] = self.sides[free, 0] - self.sides[free, 1]
        share = (gain / np.bincount(self.group))[self.group]
        counted = share != 0
        weight = np.abs(share[counted])
        return (
            self.X[np.ix_(counted, features)],
            np.sign(share[counted]),
            weight / weight.max(initial=COST_TOLERANCE),
        )

    def _single(self, j: int) -> FloatArray:
        w = np.zeros(self.X.shape[1])
        w[j] = 1.0
        return w

    def _scaled(self, features: list[int], weights: FloatArray) -> FloatArray:
        w = np.zeros(self.X.shape[1])
        size = max(weights[weights > 0].sum(), -weights[weights < 0].sum())
        w[features] = weights / size if size > 0 else 0.0
        return w


def _gini(weights: FloatArray) -> FloatArray:
    """Return the (c,) weighted Gini impurity of class weights (c, 2)."""
    total = weights.sum(axis=1)
    product = 2 * weights[:, 0] * weights[:, 1]
    impurity: FloatArray = np.divide(product, total, out=np.zeros_like(total), where=total > 0)
    return impurity


def with_fixed_labels(tree: Tree) -> Tree:
    """Return a tree of two classes whose left leaves predict the first class and right leaves the second.

    Predictions stay: a last split with the labels the other way round is reversed, one with two equal labels is
    replaced by none.
    """
    left, right = tree.leaf_value[0::2], tree.leaf_value[1::2]
    last = np.asarray(tree.topology.last_branches)
    w, b = tree.w.copy(), tree.b.copy()
    reversed_ = last[left > right]
    w[reversed_] = -w[reversed_]
    # A score of 0 went right and has to go left.
    b[reversed_] = np.nextafter(-b[reversed_], -np.inf)
    w[last[left == right]] = 0.0
    b[last[left == right]] = np.where(right[left == right] == 1, 1.0, -1.0)
    return replace(tree, w=w, b=b, leaf_value=fixed_labels(tree.topology))


def fixed_labels(topology: Topology) -> IntArray:
    """Return (|L|,) 0, 1, 0, 1, ...: left leaves predict the first class, right leaves the second."""
    return np.tile([0, 1], topology.n_leaves // 2).astype(np.int64)


def scale_into_box(
    w: FloatArray, b: float, right: FloatArray, left: FloatArray, epsilon: float
) -> tuple[float, float, float]:
    """Scale a split into the box; return the scale and the intercepts that keep all samples on their sides.

    Parameters
    ----------
    w, b
        (p,) weights, not all 0, and intercept.
    right, left
        ``X @ w`` of the samples on either side; either may be empty.
    epsilon
        Gap between the sides.

    Returns
    -------
    scale, low, high
        ``scale * w`` lies in the box; an intercept from ``low`` to ``high`` keeps the sides. No such intercept
        exists where ``low`` is above ``high``.
    """
    lowest, highest = right.min(initial=np.inf), left.max(initial=-np.inf)
    limits = [1.0 / np.abs(w).max()]
    if lowest < 0:
        limits.append(-1.0 / lowest)
    if 0 < highest < np.inf:
        limits.append((1.0 - epsilon) / highest)
    most = min(limits)

    def sides(scale: float) -> tuple[float, float, float]:
        return scale, max(-1.0, -scale * lowest), min(1.0, -epsilon - scale * highest)

    unscaled = sides(1.0)
    # A gap that is too small by the tolerance still fits: each side then misses its row by half of it.
    fits = most >= 1.0 and abs(b) <= 1.0 and unscaled[1] <= unscaled[2] + FEASIBILITY_TOLERANCE
    return unscaled if fits else sides(most)


def fit_splits(
    tree: Tree, X: FloatArray, epsilon: float, least_intercept: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Fit all splits of a tree into the box, the gap and least intercepts.

    Where an intercept above the last level is too small, the split is turned round and the subtrees below it
    change places: the samples of a leaf stay together, and its label stays.

    Parameters
    ----------
    tree
        A tree with fixed labels, for scaled features.
    X
        (n, p) training samples, scaled.
    epsilon
        Gap between the sides.
    least_intercept
        (|B|,) least ``b`` of each node; -1 at the last level.

    Returns
    -------
    a, b, leaf
        (|B|, p) weights, (|B|,) intercepts, and the (n,) leaf of each sample, 0 to 2^depth - 1. Rows that no
        scaling can satisfy (a gap too small) stay violated.
    """
    topology = tree.topology
    goes_left, goes_right = topology.leaf_reach_left.toarray() > 0, topology.leaf_reach_right.toarray() > 0
    w, b = tree.w.copy(), tree.b.copy()
    leaf = tree.apply(X) - topology.n_branches
    for t in topology.branches:
        here = (goes_left | goes_right)[leaf, t]
        right = goes_right[leaf[here], t]
        a_t, b_t = _split(w[t], b[t], X[here] @ w[t], right, epsilon, least_intercept[t])
        if b_t < least_intercept[t]:
            other = swapped_subtrees(t, topology)
            leaf = other[leaf + topology.n_branches] - topology.n_branches
            branch = other[: topology.n_branches]
            w, b = w[branch], b[branch]
            a_t, b_t = _split(-w[t], -b[t] - epsilon, -(X[here] @ w[t]), ~right, epsilon, least_intercept[t])
        w[t], b[t] = a_t, b_t
    return w, b, leaf


def _split(
    w: FloatArray, b: float, score: FloatArray, right: BoolArray, epsilon: float, least: float
) -> tuple[FloatArray, float]:
    """Fit one split; its intercept stays where it can, and is below ``least`` only where it has to be."""
    if not w.any():
        goes_right = right.any() if len(right) else b >= 0
        return w, 1.0 if goes_right else -1.0
    scale, low, high = scale_into_box(w, b, score[right], score[~right], epsilon)
    if low > high:
        return scale * w, (low + high) / 2
    wanted = max(scale * b, least)
    return scale * w, float(np.clip(wanted, low, high))


def swapped_subtrees(t: int, topology: Topology) -> IntArray:
    """Return the (n_nodes,) new number of each node when the two subtrees below t change places."""
    number = np.arange(topology.n_nodes)
    mirrored = [(topology.left(t), topology.right(t))]
    while mirrored:
        here, there = mirrored.pop()
        number[here], number[there] = there, here
        if here < topology.n_branches:
            mirrored.append((topology.left(here), topology.left(there)))
            mirrored.append((topology.right(here), topology.right(there)))
    return number
