"""The node problems of a tree whose loss counts misclassified samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.branch_losses import Misclassification
from mipforest.heuristics.margin_nodes import MarginNodes
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.norms import NO_NORM


@dataclass(frozen=True, eq=False)
class ErrorNodes(MarginNodes):
    """Node problems by a convex stand-in, ``loss``: the least number of errors is itself a hard problem.

    The stand-in says which samples the split sends where; the split with the least norm for these sides follows.
    Above the last level the sides are given, so that split is the exact optimum.
    """

    def _fit(
        self, t: int, X: FloatArray, sign: FloatArray, C: float, right: BoolArray | None, features: IntArray
    ) -> Split | None:
        sides = right
        if sides is None:
            proposed = super()._fit(t, X, sign, C, None, features)
            assert proposed is not None  # with free sides the stand-in always has a split
            sides = self.route(proposed, X)[1]
        # Without a norm any split with these sides is as good: the stand-in's keeps a natural scale.
        penalty = C if self.norm is NO_NORM else 0.0
        found = super()._fit(t, X, sign, penalty, sides, features)
        if found is None:
            return None
        return replace(found, value=self.norm.value(found.w) + C * self._losses(found.scores(X), sign))

    def _losses(self, scores: FloatArray, sign: FloatArray) -> float:
        return float(Misclassification(self.epsilon).values(scores, sign).sum())
