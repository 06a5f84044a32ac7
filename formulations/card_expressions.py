"""What constraints of users read of a score card: its features, its points, and the sides of its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.cards import ScoreCard
from mipforest.heuristics.score_cards import CardProblem
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions


@dataclass(frozen=True, eq=False)
class CardExpressions(TreeExpressions):
    """What constraints read of a score card: its features and points.

    Attributes
    ----------
    cards, variant
        The rules, and which model is built.
    """

    cards: CardProblem
    variant: str

    def neutral_rows(self) -> frozenset[str]:
        return frozenset({"points_size_above", "points_size_below"})

    def features(self) -> Expression:
        """Return the (1, p) expression that is 1 where the card has a rule of a feature."""
        uses: Expression = (self._by_feature() @ self._rules("u"))[None, :]
        return uses

    def feature_points(self) -> Expression:
        """Return the (p,) points of each feature's rule, written as ``>=``; 0 without one."""
        points: Expression = self._by_feature() @ self._rules("s")
        return points

    def total_size(self) -> Expression:
        """Return the largest total of the card written without negative points: the sum of the points' sizes.

        At least that: the block ``points_size`` that it adds is bounded from below only.
        """
        s = self._rules("s")
        if "points_size" not in self.m.variables:
            size = self.m.nonnegative("points_size", rule_names(self.cards))
            self.m.add("points_size_above", size >= s)
            self.m.add("points_size_below", size >= -s)
        return self.m["points_size"].sum()

    def least_on_sides(self, name: str, amounts: FloatArray, least: float) -> bool:
        cards, u = self.cards, self._rules("u")
        held = np.array([amounts @ cards.holds(k)[cards.of_sample] for k in range(cards.n_rules)])
        thin = np.flatnonzero((held < least) | (amounts.sum() - held < least))
        if len(thin):
            self.m.add(name, u[thin] == 0)
        return True

    def require_feature(self, j: int) -> None:
        """Add rows: the card has a rule of feature j, whose points are not 0."""
        own = np.flatnonzero(self.cards.feature == j)
        name = f"{self.data.features.labels[j]}"
        if not len(own):
            raise NotExpressed(
                f"no rule reads the feature {name!r}: it is constant, or parts off too few samples"
            )
        points, positive = self._rules("s")[own].sum(), self.m.binary(f"positive_{j}")
        self.m.add(f"require_{j}_rule", self._rules("u")[own].sum() == 1)
        self.m.add(f"require_{j}_above", points >= positive + self.cards.least * (1 - positive))
        self.m.add(f"require_{j}_below", points <= self.cards.most * positive - (1 - positive))

    def keep_monotone(self, j: int, *, increasing: bool) -> None:
        """Add a row: the risk never falls (never rises) in feature j."""
        points = self.feature_points()[j]
        self.m.add(f"monotone_{j}", points >= 0 if increasing else points <= 0)

    def encode(self, card: ScoreCard) -> dict[str, FloatArray]:
        if self.variant != "tight":
            return {}
        s = np.zeros(self.cards.n_rules)
        for k, points in self.cards.chosen(card)[0]:
            s[k] += points
        by_feature = self._by_feature() @ s
        added = {"points_size": np.abs(s), "feature_used": (by_feature != 0).astype(float)}
        added |= {f"positive_{j}": np.array(float(by_feature[j] > 0)) for j in range(self.data.p)}
        return {name: value for name, value in added.items() if name in self.m.variables}

    def _by_feature(self) -> FloatArray:
        """Return the (p, K) matrix that is 1 where a rule reads a feature."""
        reads: FloatArray = (self.cards.feature == np.arange(self.data.p)[:, None]).astype(np.float64)
        return reads

    def _rules(self, name: str) -> Any:
        if self.variant != "tight":
            raise NotExpressed(
                f"rules of variant {self.variant!r} of {self.formulation} may have 0 points, so that it does not say "
                "which count; build variant 'tight'"
            )
        return self.m[name]


def rule_names(cards: CardProblem) -> list[str]:
    """Return names of the K rules for labels of variables: the feature's, and the number of the cut."""
    names = cards.data.features.labels
    if cards.n_rules == cards.n_features:
        return [names[j] for j in cards.feature]
    return [f"{names[j]}_{c}" for j, c in zip(cards.feature, cards.cut, strict=True)]
