"""The node problems of a MARGOT-type model, and trees put together from their solutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.margin_split import Split, into_a_gap, margin_split, margin_value
from mipforest.heuristics.sparse_split import sparse_split
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False)
class MarginNodes:
    """What the objective of a MARGOT-type model charges at each branch node.

    Attributes
    ----------
    C
        (|B|,) penalties of margin violations.
    epsilon
        Gap that stands for the strict inequality on the left.
    budget
        (|B|,) features free of cost per node; ``None`` for all.
    alpha
        Cost of a feature above the budget; ``None`` forbids it.
    """

    C: FloatArray
    epsilon: float
    budget: IntArray | None = None
    alpha: float | None = None

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
        bias = bias_if_empty(t)
        if self.budget is None or self.budget[t] >= X.shape[1]:
            return margin_split(X, sign, penalty, right=right, epsilon=self.epsilon, bias_if_empty=bias)
        budget = int(self.budget[t])
        return sparse_split(
            X,
            sign,
            penalty,
            budget,
            self.alpha,
            right=right,
            epsilon=self.epsilon,
            bias_if_empty=bias,
            quick=quick,
        )

    def value(self, t: int, w: FloatArray, b: float, X: FloatArray, sign: FloatArray) -> float:
        """Charge a split of node t for the samples that reach it; inf beyond a hard budget."""
        total = margin_value(w, b, X, sign, float(self.C[t]))
        if self.budget is None:
            return total
        excess = max(0, int((w != 0).sum()) - int(self.budget[t]))
        if self.alpha is None:
            return float("inf") if excess else total
        return total + self.alpha * excess

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
