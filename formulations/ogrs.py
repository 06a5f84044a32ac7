r"""OGRS: optimal generalised risk scores, whose rules are thresholds that the model chooses.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section 4.2. Features are
scaled to [0, 1]; rule t reads the feature j with :math:`a_{jt} = 1` and holds where :math:`x_j \ge b_t`, and B are the
binary features.

.. math::

    \min\; & \sum_i \zeta_i \\
    & \sum_j a_{jt} = 1 \;(t), \quad \sum_t a_{jt} \le 1 \;(j) \\
    & \sum_{k > j} \sum_{r < t} a_{kr} \le (1 - a_{jt}) T && j,\; t \\
    & a_t^\top x_i \ge b_t - 1 + z_{it}, \quad a_t^\top x_i \le b_t - \varepsilon + z_{it} && i,\; t \\
    & 1 \le \sum_i z_{it} \le N - 1 && t \\
    & \bar s_{it} \ge s_t - M (1 - z_{it}), \quad \bar s_{it} \le s_t + M (1 - z_{it}), \quad
        -M z_{it} \le \bar s_{it} \le M z_{it} && i,\; t \\
    & \zeta_i \ge f(v) + f'(v) \Bigl( y_i \bigl( \textstyle\sum_t \bar s_{it} + \beta \bigr) - v \Bigr),
        \quad \zeta_i \ge 0 && i,\; v \in V \\
    & a_{jt} - 1 \le b_t - 1/2 \le 1 - a_{jt} && j \in B,\; t

with :math:`a, z` binary, :math:`s_t \in A` integer, the rest continuous. The rules are ordered by their features. A
least support above 1 takes the place of the 1 in the counts of z.

**What the constants leave out.** The 1 of the first routing row is the range of a scaled feature. No threshold parts
two values closer than :math:`\varepsilon`: an optimum of variant ``paper`` is one for its constants, unless all
neighbouring values are farther apart.

**Variant** ``tight`` (default) chooses among cut points. Between two neighbouring values of a feature, all
thresholds part the training samples alike, so a rule is a column of 0 and 1 that is known before: OGRS is ORS over
all of them with at most one for each feature (:mod:`formulations.ors`). There is no routing, no big-M beyond the
points, and no order of rules. The points of the cuts of a feature are cumulated, :math:`q_k = \sum_{k' \le k}
s_{k'}`, so that a margin reads one entry per feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.ors import RiskInstance, RiskScore
from mipforest.arrays import FloatArray
from mipforest.cards import ScoreCard
from mipforest.model import Model, Values
from mipforest.problem.model_changes import ModelChanges
from mipforest.problem.parameters import parameter


@dataclass(frozen=True, kw_only=True)
class Ogrs(RiskScore):
    """Optimal generalised risk score.

    Parameters
    ----------
    rules, min_points, max_points, exact_rules, tangents, min_support, round_thresholds
        As for :class:`~formulations.ors.RiskScore`.
    epsilon
        Gap that stands for the strict inequality of a rule that does not hold, of features scaled to [0, 1]; in variant
        ``paper``.
    """

    name = "ogrs"
    summary = "optimal generalised risk score: a card of integer points for rules x >= b"

    epsilon: float = parameter(1e-4, "gap of rules that do not hold, in variant paper", above=0, below=1)

    def declare(self, m: Model, instance: RiskInstance) -> None:
        if self.variant == "tight":
            self.declare_tight(m, instance)
            return
        data, X, T = instance.data, unit_features(instance), self.rules
        n, p, eps = data.n, data.p, self.epsilon
        M = max(self.max_points, -self.min_points)
        rules = [f"rule{t + 1}" for t in range(T)]

        a, z = (
            m.binary("a", (data.features, rules), meaning="1 for the feature of a rule"),
            m.binary("z", (data.samples, rules), meaning="whether a rule holds for a sample"),
        )
        b, beta = (
            m.continuous("b", rules, meaning="threshold of a rule, of scaled features"),
            m.continuous("beta", meaning="intercept of the card"),
        )
        s = m.integer("s", rules, lower=self.min_points, upper=self.max_points, meaning="points of a rule")
        s_bar = m.continuous(
            "s_bar", (data.samples, rules), meaning="points of a rule where it holds, else 0"
        )
        zeta = m.nonnegative("zeta", data.samples, meaning="log-loss of a sample")
        value, each = X @ a, (data.samples, rules)

        m.minimize(data.weights @ zeta)
        m.add("one_feature", a.sum(axis=0) == 1, over=rules)
        m.add("once", a.sum(axis=1) <= 1, over=data.features)
        for t in range(1, T):
            later = np.triu(np.ones((p, p)), 1)  # features k > j
            m.add(f"order_{t}", later @ a[:, :t].sum(axis=1) <= T * (1 - a[:, t]), over=data.features)
        m.add("holds", value >= b - 1 + z, over=each)
        m.add("holds_not", value <= b - eps + z, over=each)
        m.add("support", z.sum(axis=0) >= self.min_support, over=rules)
        m.add("others", z.sum(axis=0) <= n - self.min_support, over=rules)
        m.add("points_if_above", s_bar >= s - M * (1 - z), over=each)
        m.add("points_if_below", s_bar <= s + M * (1 - z), over=each)
        m.add("points_else_above", s_bar >= -M * z, over=each)
        m.add("points_else_below", s_bar <= M * z, over=each)
        score = data.sign * (s_bar.sum(axis=1) + beta)
        for k, (c, slope) in enumerate(zip(instance.loss.intercepts, instance.loss.slopes, strict=True)):
            m.add(f"loss_{k}", zeta >= c + slope * score, over=data.samples)
        binary = np.flatnonzero(np.isin(X, (0.0, 1.0)).all(axis=0))
        if len(binary):
            m.add("binary_above", b[None, :] - 0.5 >= a[binary] - 1)
            m.add("binary_below", b[None, :] - 0.5 <= 1 - a[binary])
        if self.exact_rules:
            d = m.binary("d", rules, meaning="whether a rule has positive points")
            m.add("positive_if", s >= d + self.min_points * (1 - d), over=rules)
            m.add("negative_else", s <= self.max_points * d - (1 - d), over=rules)

    def constants_proven(self, instance: RiskInstance, value: float, changes: ModelChanges) -> bool:
        """Return whether no two neighbouring values are closer than epsilon, of features scaled to [0, 1]."""
        return self.variant == "tight" or bool((gaps(instance) >= self.epsilon).all())

    # ------------------------------------------------------------------ cards and solutions

    def encode(self, card: ScoreCard, instance: RiskInstance) -> dict[str, FloatArray]:
        if self.variant == "tight":
            return self.encode_tight(card, instance)
        cards, data, T = instance.cards, instance.data, self.rules
        chosen, beta = cards.chosen(card)
        rules = sorted([*chosen, *self._without_points(instance, [k for k, _ in chosen])])[:T]
        X, low, high = unit_features(instance), *scaled_cuts(instance)
        a, z = np.zeros((data.p, T)), np.zeros((data.n, T))
        b, s = np.zeros(T), np.zeros(T)
        for t, (k, points) in enumerate(rules):
            j = cards.feature[k]
            a[j, t], s[t] = 1.0, points
            z[:, t] = cards.holds(k)[cards.of_sample]
            b[t] = 0.5 if np.isin(X[:, j], (0.0, 1.0)).all() else (low[k] + self.epsilon + high[k]) / 2
        margin = data.sign * (z @ s + beta)
        values = {
            "a": a,
            "z": z,
            "b": b,
            "beta": np.array(beta),
            "s": s,
            "s_bar": z * s,
            "zeta": np.logaddexp(0.0, -margin),
        }
        return values | ({"d": (s > 0).astype(float)} if self.exact_rules else {})

    def _without_points(self, instance: RiskInstance, chosen: list[int]) -> list[tuple[int, int]]:
        """Return rules without points that make up the number of rules: the widest cuts of other features."""
        cards = instance.cards
        low, high = scaled_cuts(instance)
        used, found = {int(cards.feature[k]) for k in chosen}, list[tuple[int, int]]()
        for k in np.argsort(low - high, kind="stable"):
            j = int(cards.feature[k])
            if j not in used and len(found) < self.rules - len(chosen):
                used.add(j)
                found.append((int(k), 0))
        return found

    def decode(self, values: Values, instance: RiskInstance) -> ScoreCard:
        if self.variant == "tight":
            return self.decode_tight(values, instance)
        cards, beta, found = instance.cards, float(values["beta"]), list[tuple[int, int]]()
        points = np.round(values["s"]).astype(np.int64)
        for t in range(self.rules):
            j = int(np.argmax(values["a"][:, t]))
            below = values["z"][:, t] < 0.5
            rank = int(cards.ranks[cards.of_sample, j][below].max(initial=-1))
            at = np.flatnonzero((cards.feature == j) & (cards.cut == rank))
            if len(at):
                found.append((int(at[0]), int(points[t])))
            elif not below.any():
                beta += points[t]
        return cards.card(found, beta)


def unit_features(instance: RiskInstance) -> FloatArray:
    """Return (n, p) features scaled to [0, 1], constant ones 0."""
    X = instance.data.X_raw
    least, width = X.min(axis=0), np.ptp(X, axis=0)
    unit: FloatArray = (X - least) / np.where(width > 0, width, 1.0)
    return unit


def scaled_cuts(instance: RiskInstance) -> tuple[FloatArray, FloatArray]:
    """Return the (K,) values just below and above each cut, of features scaled to [0, 1]."""
    cards = instance.cards
    sides = [
        np.array(
            [(cards.values[j][c + side] - cards.values[j][0]) / np.ptp(cards.values[j]) for j, c in pairs]
        )
        for side in (0, 1)
        for pairs in [list(zip(cards.feature, cards.cut, strict=True))]
    ]
    return sides[0], sides[1]


def gaps(instance: RiskInstance) -> FloatArray:
    """Return the (K,) distances of the values on both sides of each cut, of features scaled to [0, 1]."""
    low, high = scaled_cuts(instance)
    return high - low
