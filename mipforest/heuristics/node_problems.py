"""The node problems of a tree of linear classifiers, trees put together from their solutions, and their numbers.

The numbers are those that a certificate states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.certificates import digest_of_samples
from mipforest.data import Dataset
from mipforest.heuristics.node_split import Split, margin_split, search_features, smoothed_split, weighted_sum
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE, L1, NO_NORM, BranchLoss, Norm
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import into_a_gap

#: Most samples of a node whose problem is solved exactly: up to 4 s for a linear programme, 0.5 s for a quadratic one.
#: With more, the loss is smoothed: the value is within 0.1% of the best, in 0.05 s for 10,000 samples.
MOST_EXACT = 2000

#: Scales that are tried for the split of a node with more samples than that.
SCALES = tuple(10.0 ** (k / 4) for k in range(-8, 9))


@dataclass(frozen=True, eq=False)
class NodeProblems:
    """What an objective charges at each branch node: the loss of the samples that reach it, and a norm of its weights.

    For a fixed routing of the samples a tree falls apart into one such problem per node.

    Attributes
    ----------
    C
        (|B|,) penalties of the loss.
    epsilon
        Gap that stands for the strict inequality on the left.
    budget
        (|B|,) features free of cost per node; ``None`` for all.
    alpha
        Cost of a feature above the budget; ``None`` forbids it.
    loss, norm
        What is charged for scores and for weights: those of MARGOT unless given.
    uncharged
        Nodes that are fitted like the others, and of which only features above the budget cost.
    time
        Once it has run out, problems are smoothed, and searches of features hurry.
    exact_up_to
        Most samples of a node whose problem is solved exactly.
    """

    C: FloatArray
    epsilon: float
    budget: IntArray | None = None
    alpha: float | None = None
    loss: BranchLoss = HINGE
    norm: Norm = HALF_SQUARED_L2
    uncharged: frozenset[int] = frozenset()
    time: TimeBudget = field(default_factory=TimeBudget)
    exact_up_to: int = MOST_EXACT

    @property
    def exact(self) -> bool:
        """Whether the problems are convex, so that :meth:`split` solves them exactly (without a budget)."""
        return self.loss.convex is self.loss

    def split(
        self,
        t: int,
        X: FloatArray,
        sign: FloatArray,
        weight: FloatArray,
        *,
        right: BoolArray | None = None,
        C: float | None = None,
        quick: bool = False,
        features: IntArray | None = None,
    ) -> Split | None:
        """Return the best split of node t for the samples that reach it (with a budget: the best found).

        Of more samples than :attr:`exact_up_to`, and once the time has run out, a split that is nearly as good where
        sides are free, and none where they are not.

        Parameters
        ----------
        t
            Branch node.
        X, sign, weight, right
            (n_t, p) samples, their labels and weights, and the sides they must keep (``None``: free).
        C
            Another penalty than the node's own.
        quick
            With a budget: search a tenth of the time.
        features
            With these features, however many the budget allows; ``None``: search for them.

        Returns
        -------
        Split
            ``None`` if none was found that keeps the sides.
        """
        penalty = float(self.C[t]) if C is None else C
        best_of = self._convex if self.exact else self._by_stand_in

        def fit(features: IntArray) -> Split | None:
            return best_of(t, X, sign, weight, penalty, right, features)

        p = X.shape[1]
        if features is not None or self.budget is None or self.budget[t] >= p:
            found = fit(np.arange(p) if features is None else features)
        else:
            found = search_features(
                fit, p, int(self.budget[t]), self.alpha, quick=quick, hurry=lambda: self.time.expired
            )
        if found is None or t not in self.uncharged:
            return found
        return replace(found, value=self.value(t, found.w, found.b, X, sign, weight))

    def _convex(
        self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray,
        C: float, right: BoolArray | None, features: IntArray,
    ) -> Split | None:  # fmt: skip
        """Solve the convex problem of node t with these features."""
        bias, loss, norm = bias_if_empty(t), self.loss.convex, self.norm
        found = None
        if self._solves_exactly(len(sign)):
            found = margin_split(
                X,
                sign,
                C,
                weight=weight,
                right=right,
                epsilon=self.epsilon,
                features=features,
                bias_if_empty=bias,
                loss=loss,
                norm=norm,
                time_limit=self.time.at_most(),
            )
        if found is None and right is None and C > 0:
            found, _ = smoothed_split(
                X, sign, C, weight=weight, features=features, bias_if_empty=bias, loss=loss, norm=norm
            )
        return found

    def _solves_exactly(self, n: int) -> bool:
        """Return whether the problem of so many samples is solved exactly."""
        return n <= self.exact_up_to and not self.time.expired

    def lower_bound(self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray) -> float:
        """Return a lower bound on the charge of node t for some samples, sides free; the loss is convex."""
        C, loss, norm = float(self.C[t]), self.loss.convex, self.norm
        if self._solves_exactly(len(sign)):
            found = margin_split(
                X, sign, C, weight=weight, loss=loss, norm=norm, time_limit=self.time.at_most()
            )
            if found is not None:
                return found.value
        return smoothed_split(X, sign, C, weight=weight, loss=loss, norm=norm)[1]

    def _by_stand_in(
        self, t: int, X: FloatArray, sign: FloatArray, weight: FloatArray,
        C: float, right: BoolArray | None, features: IntArray,
    ) -> Split | None:  # fmt: skip
        """Let the convex stand-in propose the sides; the split with the least norm for these sides follows.

        Above the last level the sides are given; for a loss that depends on sides only that split is then optimal.
        """
        sides, proposed = right, None
        if sides is None:
            proposed = self._convex(t, X, sign, weight, C, None, features)
            assert proposed is not None  # with free sides the stand-in always has a split
            proposed, sides = self.route(proposed, X)
        # Without a norm any split with these sides is as good: the stand-in's keeps a natural scale.
        penalty = C if self.norm is NO_NORM else 0.0
        found = self._convex(t, X, sign, weight, penalty, sides, features) or proposed
        if found is None:
            return None
        losses = self._losses(found.scores(X), sign, weight)
        return replace(found, value=self.norm.value(found.w) + C * losses)

    def value(
        self, t: int, w: FloatArray, b: float, X: FloatArray, sign: FloatArray, weight: FloatArray
    ) -> float:
        """Return the charge for a split of node t and the samples that reach it; inf beyond a hard budget."""
        charge = self.norm.value(w) + float(self.C[t]) * self._losses(X @ w + b, sign, weight)
        total = 0.0 if t in self.uncharged else charge
        if self.budget is None:
            return total
        excess = max(0, int((w != 0).sum()) - int(self.budget[t]))
        if self.alpha is None:
            return float("inf") if excess else total
        return total + self.alpha * excess

    def _losses(self, scores: FloatArray, sign: FloatArray, weight: FloatArray) -> float:
        return weighted_sum(self.loss.values(scores, sign), weight)

    def route(self, split: Split, X: FloatArray) -> tuple[Split, BoolArray]:
        """Shift a split so that no sample lies between the sides; return it, and which samples go right."""
        shift = into_a_gap(split.scores(X), self.epsilon)
        moved = Split(split.w, split.b + shift, split.value)
        return moved, moved.scores(X) >= 0

    def fitted_to_all(self, tree: Tree, data: Dataset, topology: Topology) -> Tree:
        """Return a tree of many samples like another: its upper splits at the best scale, the last level fitted anew.

        Samples between the sides of a split, for the gap that it must keep, change sides.
        """

        def fit(t: int, X: FloatArray, sign: FloatArray, weight: FloatArray) -> Split:
            scaled = [Split(scale * tree.w[t], scale * float(tree.b[t]), np.nan) for scale in SCALES]
            if t in topology.upper_branches:
                return min(
                    (self._routed(t, split, X, sign, weight) for split in scaled),
                    key=lambda split: split.value,
                )
            own = [replace(split, value=self.value(t, split.w, split.b, X, sign, weight)) for split in scaled]
            free = self.split(t, X, sign, weight, quick=True)
            return min(filter(None, [*own, free]), key=lambda split: split.value)

        return top_down(data, topology, self, fit)

    def _routed(self, t: int, split: Split, X: FloatArray, sign: FloatArray, weight: FloatArray) -> Split:
        """Shift a split into a gap; in its value, samples that change sides count with the penalty of the loss."""
        moved, right = self.route(split, X)
        changed = float(weight[right != (split.scores(X) >= 0)].sum())
        value = self.value(t, moved.w, moved.b, X, sign, weight) + float(self.C[t]) * changed
        return replace(moved, value=value)

    def tree(self, splits: Mapping[int, Split], data: Dataset, topology: Topology) -> Tree:
        """Put splits together: left leaves predict the first class (-1), right leaves the second (+1)."""
        p = data.X.shape[1]
        w = np.array([splits[t].w if t in splits else np.zeros(p) for t in topology.branches])
        b = np.array([splits[t].b if t in splits else bias_if_empty(t) for t in topology.branches])
        return self.labelled(w, b, data, topology)

    def labelled(self, w: FloatArray, b: FloatArray, data: Dataset, topology: Topology) -> Tree:
        """Return the tree of weights (|B|, p) and biases (|B|,); the loss says whether its scores are log-odds."""
        return Tree(
            depth=topology.depth,
            w=w,
            b=b,
            leaf_value=np.tile([0, 1], topology.n_leaves // 2),
            classes=tuple(data.classes),
            features=tuple(data.features.labels),
            logistic=self.loss.log_odds,
        )


def passed(tree: Tree, data: Dataset) -> BoolArray:
    """Return (n, |B|) whether a sample passes a branch node of a tree for scaled features."""
    return tree.decision_path(data.X)[:, : tree.topology.n_branches]


def bias_if_empty(t: int) -> float:
    """Return the bias of a node that no sample reaches: +1 for a right child (even number), -1 for a left one."""
    return 1.0 if t % 2 == 0 else -1.0


def top_down(
    data: Dataset,
    topology: Topology,
    nodes: NodeProblems,
    fit: Callable[[int, FloatArray, FloatArray, FloatArray], Split],
) -> Tree:
    """Grow a tree level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        Shifts splits so that they route.
    fit
        Returns the split of node t for the samples (n_t, p) that reach it, with their labels, -1 or +1, and weights.

    Returns
    -------
    Tree
        For scaled features. Where samples fall between the sides of a node above the last level, its bias is
        shifted to the nearest gap of their scores, so that the tree is feasible for the model.
    """
    members = {0: np.arange(data.n)}
    splits: dict[int, Split] = {}
    for t in topology.branches:
        X = data.X[members[t]]
        splits[t] = fit(t, X, data.sign[members[t]], data.weights[members[t]])
        if t not in topology.last_branches:
            splits[t], goes_right = nodes.route(splits[t], X)
            members[topology.left(t)], members[topology.right(t)] = (
                members[t][~goes_right],
                members[t][goes_right],
            )
    return nodes.tree(splits, data, topology)


def numbers_of_nodes(nodes: NodeProblems) -> dict[str, Any] | None:
    """Return what is charged at the branch nodes, as a certificate has it; ``None`` where none can say it."""
    if not nodes.exact or nodes.norm not in (HALF_SQUARED_L2, L1) or nodes.uncharged:
        return None
    hard = nodes.budget is None or nodes.alpha is None or not np.isfinite(nodes.alpha)
    return {
        "C": [float(penalty) for penalty in nodes.C],
        "epsilon": float(nodes.epsilon),
        "kinks": [[float(part) for part in kink] for kink in nodes.loss.convex.kinks()],
        "norm": "l1" if nodes.norm is L1 else "l2",
        "free": None if nodes.budget is None else [int(free) for free in nodes.budget],
        "alpha": None if hard or nodes.alpha is None else float(nodes.alpha),
    }


def digest_of_data(data: Dataset) -> str:
    """Return the digest of the samples that a certificate of these data has."""
    X, group = np.unique(data.X, axis=0, return_inverse=True)
    return digest_of_samples(X, weights_by_class(data, group.ravel(), len(X)))


def weights_by_class(data: Dataset, group: IntArray, n_groups: int) -> FloatArray:
    """Return (G, 2) what the samples of class -1 and +1 in each group weigh together."""
    weight = np.zeros((n_groups, 2))
    np.add.at(weight, (group, (data.sign > 0).astype(np.int64)), data.weights)
    return weight
