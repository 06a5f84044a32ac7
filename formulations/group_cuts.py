"""Cheap splits of one node that part no group of samples: all cuts of a direction, and directions to try."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from mipforest.arrays import FloatArray, IntArray

#: Inverse penalties of the logistic regressions that propose directions.
PENALTIES = (1.0, 100.0)

#: Sets of features, the most promising ones, that are worth these regressions.
FITTED = 3

#: Costs that differ by less are equal.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Cuts:
    """The cuts of one direction that keep a gap and part no group.

    Attributes
    ----------
    order
        (G,) groups by their least score.
    last
        (c,) position in ``order`` of the last group to the left of each cut.
    intercept
        (c,) intercept of each cut, midway between its sides.
    """

    order: IntArray
    last: IntArray
    intercept: FloatArray

    def on_left(self, values: FloatArray) -> FloatArray:
        """(c, ...) sum of the values (G, ...) of the groups to the left of each cut."""
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
    """

    X: FloatArray
    group: IntArray
    sides: FloatArray
    costs: FloatArray
    epsilon: float

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
            if best is None or best[0] >= value - SAME:
                return (w, float(b)) if value < np.inf else None
            value, b, w, chosen = best

    def _best_of(self, sets: list[list[int]]) -> tuple[float, float, FloatArray, list[int]] | None:
        """Give cost, intercept, weights and features of the cheapest split with one of the sets of features."""
        tried = [
            (*self._cheapest_cut(w), w, chosen) for chosen in sets for w in self._quick_directions(chosen)
        ]
        tried.sort(key=lambda entry: entry[0])
        for *_, chosen in tried[:FITTED]:
            tried += [(*self._cheapest_cut(w), w, chosen) for w in self._fitted_directions(chosen)]
        return min(tried, key=lambda entry: entry[0], default=None)

    def purest_split(self, features: IntArray, classes: FloatArray) -> tuple[FloatArray, float] | None:
        """Choose the cut of one feature whose sides have the least Gini impurity, as CART does.

        Parameters
        ----------
        features
            Features to choose from.
        classes
            (G, 2) weight of each class in each group.

        Returns
        -------
        (p,) weights and the intercept; ``None`` if no feature has a cut.
        """
        best: tuple[float, float, FloatArray] | None = None
        for j in features:
            w = self._single(int(j))
            cuts = self.cuts(w)
            if len(cuts.last) == 0:
                continue
            left = cuts.on_left(classes)
            impurity = _gini(left) + _gini(classes.sum(axis=0) - left)
            k = int(impurity.argmin())
            if best is None or impurity[k] < best[0] - SAME:
                best = float(impurity[k]), float(cuts.intercept[k]), w
        return None if best is None else (best[2], best[1])

    def cuts(self, w: FloatArray) -> Cuts:
        """Find all cuts of a direction (p,) that keep the gap and part no group."""
        score, n_groups = self.X @ w, len(self.sides)
        low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(low, self.group, score)
        np.maximum.at(high, self.group, score)
        order = np.argsort(low, kind="stable")
        reach, floor = np.maximum.accumulate(high[order])[:-1], low[order][1:]
        last = np.flatnonzero(reach + self.epsilon <= floor)
        return Cuts(order, last, -(reach[last] + floor[last]) / 2)

    def _cheapest_cut(self, w: FloatArray) -> tuple[float, float]:
        """Cost of the cheapest cut of a direction, its features included, and its intercept."""
        cuts = self.cuts(w)
        if len(cuts.last) == 0:
            return np.inf, 0.0
        left = np.cumsum(self.sides[cuts.order, 0])[cuts.last]
        right = np.cumsum(self.sides[cuts.order[::-1], 1])[::-1][cuts.last + 1]
        best = int((left + right).argmin())
        return float(left[best] + right[best] + self.costs[w != 0].sum()), float(cuts.intercept[best])

    def _quick_directions(self, features: list[int]) -> list[FloatArray]:
        """Propose weights for some features: both directions of one, least squares for several."""
        if len(features) == 1:
            return [self._single(features[0]), -self._single(features[0])]
        X, wanted, weight = self._wanted_sides(features)
        root = np.sqrt(weight)
        design = np.column_stack([X, np.ones(len(X))]) * root[:, None]
        return [self._scaled(features, np.linalg.lstsq(design, wanted * root)[0][:-1])]

    def _fitted_directions(self, features: list[int]) -> list[FloatArray]:
        """Propose weights for several features by logistic regression: better ones, and slower."""
        X, wanted, weight = self._wanted_sides(features)
        if len(features) == 1 or len(np.unique(wanted)) < 2:
            return []
        fits = [LogisticRegression(C=C, max_iter=1000).fit(X, wanted, weight) for C in PENALTIES]
        return [self._scaled(features, fit.coef_[0]) for fit in fits]

    def _wanted_sides(self, features: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give the samples that are cheaper on one side, that side (-1 or +1), and what it saves (at most 1)."""
        free = np.isfinite(self.sides).all(axis=1)
        gain = np.zeros(len(self.sides))
        gain[free] = self.sides[free, 0] - self.sides[free, 1]
        share = (gain / np.bincount(self.group))[self.group]
        counted = share != 0
        weight = np.abs(share[counted])
        return self.X[np.ix_(counted, features)], np.sign(share[counted]), weight / weight.max(initial=SAME)

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
    """(c,) weighted Gini impurity of class weights (c, 2)."""
    total = weights.sum(axis=1)
    product = 2 * weights[:, 0] * weights[:, 1]
    impurity: FloatArray = np.divide(product, total, out=np.zeros_like(total), where=total > 0)
    return impurity
