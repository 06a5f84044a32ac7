"""The node problems of a tree of linear classifiers, and trees put together from their solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import HINGE, PiecewiseLinearLoss
from mipforest.heuristics.margin_split import Split, into_a_gap, margin_split
from mipforest.heuristics.norms import HALF_SQUARED_L2, Norm
from mipforest.heuristics.sparse_split import search_features
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False)
class MarginNodes:
    """What the objective of a MARGOT-type model charges at each branch node.

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
        What is charged for margins and for weights: those of MARGOT unless given.
    uncharged
        Nodes that are fitted like the others, and of which only features above the budget cost.
    """

    C: FloatArray
    epsilon: float
    budget: IntArray | None = None
    alpha: float | None = None
    loss: PiecewiseLinearLoss = HINGE
    norm: Norm = HALF_SQUARED_L2
    uncharged: frozenset[int] = frozenset()

    def split(
        self,
        t: int,
        X: FloatArray,
        sign: FloatArray,
        *,
        right: BoolArray | None = None,
        C: float | None = None,
        quick: bool = False,
    ) -> Split | None:
        """Best split of node t for the samples that reach it (with a budget: the best found).

        Parameters
        ----------
        t
            Branch node.
        X, sign, right
            (n_t, p) samples, their labels, and the sides they must keep (``None``: free).
        C
            Another penalty than the node's own.
        quick
            With a budget: search a tenth of the time.
        """
        penalty = float(self.C[t]) if C is None else C

        def fit(features: IntArray) -> Split | None:
            return self._fit(t, X, sign, penalty, right, features)

        p = X.shape[1]
        if self.budget is None or self.budget[t] >= p:
            found = fit(np.arange(p))
        else:
            found = search_features(fit, p, int(self.budget[t]), self.alpha, quick=quick)
        if found is None or t not in self.uncharged:
            return found
        return replace(found, value=self.value(t, found.w, found.b, X, sign))

    def _fit(
        self, t: int, X: FloatArray, sign: FloatArray, C: float, right: BoolArray | None, features: IntArray
    ) -> Split | None:
        """Best split of node t that uses only these features."""
        return margin_split(
            X,
            sign,
            C,
            right=right,
            epsilon=self.epsilon,
            features=features,
            bias_if_empty=bias_if_empty(t),
            loss=self.loss,
            norm=self.norm,
        )

    def value(self, t: int, w: FloatArray, b: float, X: FloatArray, sign: FloatArray) -> float:
        """Charge a split of node t for the samples that reach it; inf beyond a hard budget."""
        charge = self.norm.value(w) + float(self.C[t]) * self._losses(X @ w + b, sign)
        total = 0.0 if t in self.uncharged else charge
        if self.budget is None:
            return total
        excess = max(0, int((w != 0).sum()) - int(self.budget[t]))
        if self.alpha is None:
            return float("inf") if excess else total
        return total + self.alpha * excess

    def _losses(self, scores: FloatArray, sign: FloatArray) -> float:
        return float(self.loss.values(scores, sign).sum())

    def route(self, split: Split, X: FloatArray) -> tuple[Split, BoolArray]:
        """Shift a split so that no sample lies between the sides; give it and the samples that go right."""
        shift = into_a_gap(split.scores(X), self.epsilon)
        moved = Split(split.w, split.b + shift, split.value)
        return moved, moved.scores(X) >= 0


def bias_if_empty(t: int) -> float:
    """Bias of a node that no sample reaches: +1 for a right child (even number), -1 for a left one."""
    return 1.0 if t % 2 == 0 else -1.0


def margin_tree(splits: dict[int, Split], data: Dataset, topology: Topology) -> Tree:
    """Put splits together: left leaves predict the first class (-1), right leaves the second (+1)."""
    p = data.X.shape[1]
    w = np.array([splits[t].w if t in splits else np.zeros(p) for t in topology.branches])
    b = np.array([splits[t].b if t in splits else bias_if_empty(t) for t in topology.branches])
    return Tree(
        depth=topology.depth,
        w=w,
        b=b,
        leaf_value=np.tile([0, 1], topology.n_leaves // 2),
        classes=tuple(data.classes),
        features=tuple(data.features.labels),
    )
