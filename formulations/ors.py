r"""ORS: optimal risk scores, integer points for a few binary features; and what OGRS shares with it.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, section 4.1. Labels are -1
and +1, A is the set of points, M its largest size, T the number of rules,
:math:`f(v) = \log(1 + e^{-v})`.

.. math::

    \min\; & \sum_i \zeta_i \\
    & \sum_j a_j = T, \quad a_j \in \{0, 1\} && (4.1b) \\
    & -M a_j \le s_j \le M a_j, \quad s_j \in A \text{ integer} && j \\
    & \zeta_i \ge f(v) + f'(v) \bigl( y_i (s^\top x_i + \beta) - v \bigr), \quad \zeta_i \ge 0 && i,\; v \in V

with the tangents of OLCT (:mod:`mipforest.objectives.losses`). The risk of a sample is
:math:`1 / (1 + e^{-(s^\top x + \beta)})`. As points may be 0 where :math:`a_j = 1`, at most T features are used,
although the thesis writes T: parameter ``exact_rules`` makes it T.

**What is minimised.** Tangents lie below f, so what a solver proves of them is a lower bound on the log-loss itself.
The definition here is the log-loss: a card's value is that of f at its best intercept, :math:`\zeta_i = f(y_i m_i)`
is a feasible point of the model, and the result is the interval from the bound to the value. How wide it is at an
optimum for the tangents, ``report`` says in ``tangent_loss``.

**Variant** ``tight`` (default) keeps all solutions with fewer rows. As the tangent points are symmetric,
:math:`F_V(-m) = F_V(m) + m` for the largest of the tangents F_V: slacks do not depend on labels. Samples with the same
features share one, and labels move into a linear term. With :math:`n_g` samples of the group g, :math:`n_g^-` of
them of the class -1:

.. math::

    \min\; & \sum_g n_g \zeta_g + \sum_g n_g^- m_g \\
    & m_g = \beta + \sum_k s_k r_k(x_g) && g \\
    & \zeta_g \ge f(v) + f'(v) (m_g - v), \quad \zeta_g \ge 0 && g,\; v \in V \\
    & \min(A)\, u_k \le s_k \le \max(A)\, u_k, \quad u_k \in \{0, 1\} && k \\
    & \sum_{k \text{ of feature } j} u_k \le 1 && j \\
    & \sum_k u_k \le T

over the rules :math:`r_k`, of ORS one for each feature. Points get the sign that an optimum may need, where it needs
one only (:mod:`mipforest.heuristics.score_cards` has the proof); a constraint of a user can make the other sign
optimal, so that a changed model is built without these bounds.

Constraints of users read of a card its features, its points, and the sides of its rules (:class:`CardExpressions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray
from mipforest.cards import ScoreCard, calibration_of_totals, risk_table
from mipforest.data import DataError, Dataset
from mipforest.data.columns import name_of
from mipforest.data.encoding import Scaling
from mipforest.heuristics.score_cards import MAX_TRIED, CardProblem, exchange_rules
from mipforest.model import Model, Values
from mipforest.objectives.losses import LogisticLoss, tangent_points
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import ModelChanges, free_name
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.time_budget import TimeBudget
from mipforest.trees import Predictor, Topology

#: Pairs of rules are chosen anew by a beam of this width in the start ``beam``.
PAIRS_WIDTH = 5

#: Rounds of the start ``exchange`` for each rule beyond two, and its share of the time that is left.
ROUNDS, EXCHANGE_SHARE = 20, 0.1

#: Share of the time that is left for a start.
START_SHARE = 0.4


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RiskInstance(Instance):
    """A data set with the rules that a card may have.

    Attributes
    ----------
    cards
        The rules, and the distinct samples.
    loss
        Tangents of the log-loss.
    """

    cards: CardProblem
    loss: LogisticLoss


@dataclass(frozen=True, kw_only=True)
class RiskScore(Formulation):
    """What ORS and OGRS share: the points, the codec between cards and solutions, starts and measures.

    Parameters
    ----------
    rules
        Most rules of a card, T.
    min_points, max_points
        Least and most points of a rule: A holds the whole numbers between them, 0 among them.
    exact_rules
        Whether a card has exactly T rules.
    tangents
        Tangent points of the log-loss: ``V0`` to ``V3``, or an odd number of them, chosen greedily.
    min_support
        Least number of training samples that a rule holds for, and that it does not hold for.
    round_thresholds
        Whether thresholds have as few digits as they can without moving a training sample.
    """

    source = "Aldinucci, PhD thesis, chapter 4"
    gives: ClassVar[type[Predictor]] = ScoreCard
    two_classes = True
    takes_weights = True
    structure_type = CardProblem
    variants: ClassVar[tuple[str, ...]] = ("tight", "paper")
    starts = ("exchange", "beam", "rule-by-rule")
    scaling: ClassVar[Scaling] = "none"
    least_objective = 0.0
    slack = "the model's tangents"
    slack_closed_by = "solver card-enumeration or cut-loop, or more tangents"

    rules: int = parameter(3, "most rules of a card, T", at_least=1)
    min_points: int = parameter(-5, "least points of a rule, 0 or less")
    max_points: int = parameter(5, "most points of a rule, 0 or more")
    exact_rules: bool = parameter(False, "whether a card has exactly T rules")
    tangents: str = parameter("V3", "tangent points: V0, V1, V2, V3, or an odd number of finite ones")
    min_support: int = parameter(1, "least samples on either side of a rule", at_least=1)
    round_thresholds: bool = parameter(True, "give thresholds as few digits as they can have")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.min_points <= 0 <= self.max_points or self.min_points == self.max_points:
            raise ParameterError(
                f"points from min_points={self.min_points} to max_points={self.max_points}: give a range with 0 and "
                "more in it, such as -5 to 5"
            )
        if len(tangent_points(self.tangents)) % 2 == 0:
            raise ParameterError(
                f"parameter tangents is {self.tangents!r}, and points must lie symmetrically: give V0 to V3, or an odd "
                "number"
            )

    # ------------------------------------------------------------------ the model

    def check_data(self, data: Dataset, topology: Topology) -> None:
        data.sign  # noqa: B018 - refuses data that have not exactly two classes
        if topology.depth != 1:
            raise ParameterError(f"{self.name} finds a score card, which has no depth; leave the depth out")
        if data.encoding.scaling != "none":
            raise DataError(
                f"{self.name} reads features as they are, and {data.name} has scaled ones",
                hint="load the data with scaling='none'",
                option="leave --scaling out",
            )

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> RiskInstance:
        cards = CardProblem.of(
            data,
            rules=self.rules,
            least=self.min_points,
            most=self.max_points,
            exact=self.exact_rules,
            min_support=self.min_support,
            round_thresholds=self.round_thresholds,
            budget=budget,
        )
        notes: tuple[str, ...] = ()
        if cards.n_rules == 0:
            raise DataError(
                f"{self.name}: no feature of {data.name} parts the samples with {self.min_support} or more on either "
                "side"
            )
        if cards.n_features < self.rules:
            reason = f"{self.rules} rules are asked for, and {cards.n_features} features of {data.name} have one each"
            if self.exact_rules or self.variant == "paper":
                raise DataError(f"{self.name}: {reason}; take rules={cards.n_features}")
            notes = (f"{reason}: the card has fewer",)
        if not cards.all_tried:
            notes += (
                f"the starts look at quantiles, {MAX_TRIED:,} of the {cards.n_rules:,} cuts, and then at all cuts of "
                "the features of a card; bounds are for all cuts",
            )
        loss = LogisticLoss(tangent_points(self.tangents))
        return RiskInstance(
            data=data, topology=topology, cards=cards, loss=loss, notes=notes, budget=budget or TimeBudget()
        )

    def structure(self, instance: RiskInstance) -> CardProblem:
        return instance.cards

    def declare_tight(self, m: Model, instance: RiskInstance) -> None:
        """Write variant ``tight``."""
        cards, K = instance.cards, instance.cards.n_rules
        m.announce(7 * K + cards.ranks.size)  # of s, u, q and the margins, before a name is made for each
        every, g = rule_names(cards), len(cards.ranks)
        lower, upper = np.where(cards.down, cards.least, 0), np.where(cards.up, cards.most, 0)

        s = m.integer("s", every, lower=lower, upper=upper, meaning="points of a rule")
        u = m.binary("u", every, meaning="whether a rule is on the card")
        beta = m.continuous("beta", meaning="intercept of the card")
        margin = m.continuous("margin", g, meaning="log-odds of samples that no rule tells apart")
        zeta = m.nonnegative("zeta", g, meaning="log-loss of these samples, or of a sample")

        m.minimize((cards.positive + cards.negative) @ zeta + cards.negative @ margin)
        m.add("below", s >= lower * u, over=every)
        m.add("above", s <= upper * u, over=every)
        distinct, of_feature = np.unique(cards.feature, return_inverse=True)
        if len(distinct) < K:
            sums = sparse.csr_array((np.ones(K), (of_feature, np.arange(K))), shape=(len(distinct), K))
            m.add("one_per_feature", sums @ u <= 1)
        if self.exact_rules:
            d = m.binary("d", every, meaning="whether a rule has positive points")
            m.add("positive_if", s >= d + cards.least * (u - d), over=every)
            m.add("negative_else", s <= cards.most * d - (u - d), over=every)
            m.add("chosen", d <= u, over=every)
            m.add("rules", u.sum() == self.rules)
        else:
            m.add("rules", u.sum() <= self.rules)
        points = self._points_at(m, instance)
        m.add("margins", margin == beta + points)
        for k, (a, slope) in enumerate(zip(instance.loss.intercepts, instance.loss.slopes, strict=True)):
            m.add(f"loss_{k}", zeta >= a + slope * margin)

    def _points_at(self, m: Model, instance: RiskInstance) -> Expression:
        """Return the (g,) points of the distinct samples, by cumulated points where a feature has several cuts."""
        cards, s = instance.cards, m["s"]
        if cards.n_rules == cards.n_features:
            total: Expression = np.column_stack([cards.holds(k) for k in range(cards.n_rules)]) * 1.0 @ s
            return total
        # q_k: the points of the rules of the feature up to rule k, whose cuts ascend.
        q = m.continuous("q", rule_names(cards), meaning="points of a feature's rules up to a threshold")
        first = np.flatnonzero(np.diff(cards.feature, prepend=-1))
        rest = np.setdiff1d(np.arange(cards.n_rules), first)
        m.add("first", q[first] == s[first])
        if len(rest):
            m.add("cumulated", q[rest] == q[rest - 1] + s[rest])
        parts = list[Any]()
        for begin, end in zip(first, [*first[1:], cards.n_rules], strict=True):
            j = cards.feature[begin]
            held = np.searchsorted(cards.cut[begin:end], cards.ranks[:, j])  # rules of j that hold
            some = np.flatnonzero(held)
            reads = sparse.csr_array(
                (np.ones(len(some)), (some, held[some] - 1)), shape=(len(held), end - begin)
            )
            parts.append(reads @ q[begin:end])
        summed: Expression = sum(parts[1:], parts[0])
        return summed

    def valid_below(self, instance: RiskInstance, changes: ModelChanges) -> float:
        free = self.variant == "paper" or (instance.cards.up.all() and instance.cards.down.all())
        return np.inf if free else -np.inf

    def with_cutoff(self, instance: RiskInstance, value: float, changes: ModelChanges) -> RiskInstance | None:
        return self.with_all_trees(instance)

    def with_all_trees(self, instance: RiskInstance) -> RiskInstance:
        return (
            instance if self.variant == "paper" else replace(instance, cards=instance.cards.with_all_signs())
        )

    # ------------------------------------------------------------------ cards and solutions

    def encode_tight(self, card: ScoreCard, instance: RiskInstance) -> dict[str, FloatArray]:
        """Return the values of variant ``tight``."""
        cards = instance.cards
        chosen, beta = cards.chosen(card)
        s = np.zeros(cards.n_rules)
        for k, points in chosen:
            s[k] += points
        margin = cards.totals(chosen) + beta
        values = {"s": s, "u": (s != 0).astype(float), "beta": np.array(beta)}
        values |= {"margin": margin, "zeta": np.logaddexp(0.0, -margin)}
        if self.exact_rules:
            values["d"] = (s > 0).astype(float)
        if cards.n_rules > cards.n_features:
            values["q"] = np.concatenate([np.cumsum(s[cards.feature == j]) for j in np.unique(cards.feature)])
        return values

    def decode_tight(self, values: Values, instance: RiskInstance) -> ScoreCard:
        """Read the card off variant ``tight``."""
        points = np.round(values["s"]).astype(np.int64)
        chosen = ((int(k), int(points[k])) for k in np.flatnonzero(points))
        return instance.cards.card(chosen, float(values["beta"]))

    def evaluate(self, card: ScoreCard, instance: RiskInstance) -> float:
        data = instance.data
        return float(data.weights @ np.logaddexp(0.0, -data.sign * card.scores(data.X_raw)))

    def violations(self, card: ScoreCard, instance: RiskInstance) -> dict[str, float]:
        cards = instance.cards
        chosen, _ = cards.chosen(card)
        rules, features = len(chosen), {int(cards.feature[k]) for k, _ in chosen}
        points = np.array([points for _, points in chosen])
        beyond = np.maximum(points - self.max_points, self.min_points - points)
        return {
            f"rules = {self.rules}": float(
                abs(rules - self.rules) if self.exact_rules else rules - self.rules
            ),
            f"points from {self.min_points} to {self.max_points}": float(beyond.max(initial=0)),
            "one rule for each feature": float(rules - len(features)),
        }

    def expressions(self, m: Model, instance: RiskInstance) -> CardExpressions:
        return CardExpressions(self.name, m, instance.data, instance.topology, instance.cards, self.variant)

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: RiskInstance, *, seed: int = 0) -> ScoreCard:
        if name not in self.starts:
            raise ParameterError(
                f"{self.name} has no start {name!r}; choose from: {', '.join(self.starts)}, none, or a card.json"
            )
        cards = instance.cards
        cards = replace(cards, budget=instance.budget.part(share=START_SHARE))
        if name == "rule-by-rule":
            return cards.card(cards.refined(cards.polished(cards.beam(1)[0])[0]))
        # A card there soon, and a better one if there is time.
        quick = cards.beam(1)[0]
        chosen = min(
            (quick, cards.polished(cards.beam()[0])[0]), key=lambda card: cards.refit(cards.totals(card))[1]
        )
        if name == "beam":
            return cards.card(cards.refined(cards.polished(chosen, removed=2, width=PAIRS_WIDTH)[0]))
        budget = cards.budget.part(share=EXCHANGE_SHARE / START_SHARE)
        rounds = ROUNDS * max(0, self.rules - 2)
        chosen = exchange_rules(
            replace(cards, budget=budget), chosen, rounds=rounds, seed=seed, budget=budget
        )[0]
        return cards.card(cards.refined(chosen))

    def polish(self, card: ScoreCard, instance: RiskInstance) -> ScoreCard:
        return instance.cards.card(instance.cards.chosen(card)[0])

    def candidates(self, instance: RiskInstance) -> Iterator[ScoreCard]:
        cards, rng = instance.cards.with_all_signs(), np.random.default_rng(0)
        for k in range(cards.n_rules):
            yield cards.card(cards.beam(1, ((k, cards.most or cards.least),))[0])
        while True:
            size = min(self.rules, cards.n_features)
            features = rng.choice(np.unique(cards.feature), size, replace=False)
            rules = [int(rng.choice(np.flatnonzero(cards.feature == j))) for j in features]
            yield cards.card([(k, int(rng.choice(cards.points_of(k)))) for k in rules])

    # ------------------------------------------------------------------ after the solve

    def relabel(self, card: ScoreCard, instance: RiskInstance) -> ScoreCard:
        # A solver's intercept is any within a linear piece of the tangents.
        return self.polish(card, instance)

    def measures(self, card: ScoreCard, data: Dataset, instance: RiskInstance) -> dict[str, Any]:
        weights = data.weights if data.weighted else None
        mean, square = calibration_of_totals(risk_table(card, data.X_raw, data.y, weights))
        return {"calibration_error": mean, "calibration_rms": square}

    def report(self, solved: ScoreCard, refined: ScoreCard, instance: RiskInstance) -> dict[str, Any]:
        data, margin = instance.data, instance.data.sign * solved.scores(instance.data.X_raw)
        return {"tangent_loss": float(data.weights @ instance.loss.of_margin(margin))}


@dataclass(frozen=True, kw_only=True)
class Ors(RiskScore):
    """Optimal risk score over binary features.

    Parameters
    ----------
    rules, min_points, max_points, exact_rules, tangents, min_support, round_thresholds
        As for :class:`RiskScore`.
    """

    name = "ors"
    summary = "optimal risk score: a card of integer points for binary features"

    def check_data(self, data: Dataset, topology: Topology) -> None:
        super().check_data(data, topology)
        wide = np.flatnonzero(~np.isin(data.X_raw, (0.0, 1.0)).all(axis=0))
        if len(wide):
            raise DataError(
                f"ors takes features that are 0 or 1, and {len(wide)} of {data.p} of {data.name} have other values, "
                f"{data.features.labels[wide[0]]!r} among them",
                hint="choose ogrs, which finds thresholds",
                option="take --model ogrs, which finds thresholds",
            )

    def declare(self, m: Model, instance: RiskInstance) -> None:
        if self.variant == "tight":
            self.declare_tight(m, instance)
            return
        data, M = instance.data, max(self.max_points, -self.min_points)
        a = m.binary("a", data.features, meaning="whether the rule of a feature is on the card")
        s = m.integer(
            "s", data.features, lower=self.min_points, upper=self.max_points, meaning="points of a rule"
        )
        beta = m.continuous("beta", meaning="intercept of the card")
        zeta = m.nonnegative("zeta", data.samples, meaning="log-loss of these samples, or of a sample")
        m.minimize(data.weights @ zeta)
        m.add("rules", a.sum() == self.rules)  # (4.1b)
        m.add("below", s >= -M * a, over=data.features)
        m.add("above", s <= M * a, over=data.features)
        if self.exact_rules:
            d = m.binary("d", data.features, meaning="whether a rule has positive points")
            m.add("positive_if", s >= d + self.min_points * (a - d), over=data.features)
            m.add("negative_else", s <= self.max_points * d - (a - d), over=data.features)
            m.add("chosen", d <= a, over=data.features)
        score = data.sign * (data.X @ s + beta)
        for k, (c, slope) in enumerate(zip(instance.loss.intercepts, instance.loss.slopes, strict=True)):
            m.add(f"loss_{k}", zeta >= c + slope * score, over=data.samples)

    def encode(self, card: ScoreCard, instance: RiskInstance) -> dict[str, FloatArray]:
        if self.variant == "tight":
            return self.encode_tight(card, instance)
        data, cards = instance.data, instance.cards
        chosen, beta = cards.chosen(card)
        s = np.zeros(data.p)
        for k, points in chosen:
            s[cards.feature[k]] = points
        a = s != 0
        # Features without points make up the number.
        a[np.flatnonzero(~a)[: self.rules - int(a.sum())]] = True
        values = {
            "a": a.astype(float),
            "s": s,
            "beta": np.array(beta),
            "zeta": np.logaddexp(0.0, -data.sign * (data.X @ s + beta)),
        }
        return values | ({"d": (s > 0).astype(float)} if self.exact_rules else {})

    def decode(self, values: Values, instance: RiskInstance) -> ScoreCard:
        if self.variant == "tight":
            return self.decode_tight(values, instance)
        points = np.round(values["s"]).astype(np.int64)
        of_feature = {int(j): k for k, j in enumerate(instance.cards.feature)}
        beta = float(values["beta"])
        # Points of a constant feature are those of all samples, or of none.
        beta += sum(
            points[j] * instance.data.X[0, j] for j in range(len(points)) if j not in of_feature and points[j]
        )
        chosen = ((of_feature[j], int(points[j])) for j in of_feature if points[j])
        return instance.cards.card(chosen, float(beta))


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
            size = self.m.nonnegative(
                "points_size", rule_names(self.cards), meaning="size of a rule's points"
            )
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

    def require_feature(self, j: int | IntArray) -> None:
        """Add rows: the card has a rule of feature j, or of one of several, whose points are not 0."""
        features = [int(k) for k in np.atleast_1d(j) if (self.cards.feature == k).any()]
        if not features:
            raise NotExpressed(
                f"no rule reads the feature {name_of(self.data, np.atleast_1d(j))!r}: it is constant, or parts off too "
                "few samples"
            )
        required: list[Any] = [1.0]
        if len(features) > 1:
            required = [self.m.binary(f"required_{k}") for k in features]
            self.m.add(f"require_{features[0]}", sum(required[1:], required[0]) >= 1)
        for k, needed in zip(features, required, strict=True):
            own = np.flatnonzero(self.cards.feature == k)
            points, positive = self._rules("s")[own].sum(), self.m.binary(f"positive_{k}")
            self.m.add(f"require_{k}_rule", self._rules("u")[own].sum() >= needed)
            free = 1 - needed
            self.m.add(f"require_{k}_above", points >= positive + self.cards.least * (1 - positive) - free)
            self.m.add(f"require_{k}_below", points <= self.cards.most * positive - (1 - positive) + free)

    def keep_monotone(self, j: int, *, increasing: bool, target: int = 0) -> None:
        """Add a row: the risk never falls (never rises) in feature j."""
        points = self.feature_points()[j]
        self.m.add(free_name(self.m, f"monotone_{j}"), points >= 0 if increasing else points <= 0)

    def encode(self, card: ScoreCard) -> dict[str, FloatArray]:
        if self.variant != "tight":
            return {}
        s = np.zeros(self.cards.n_rules)
        for k, points in self.cards.chosen(card)[0]:
            s[k] += points
        by_feature = self._by_feature() @ s
        added = {"points_size": np.abs(s), "feature_used": (by_feature != 0).astype(float)}
        for j, points in enumerate(by_feature.tolist()):
            added |= {
                f"positive_{j}": np.array(float(points > 0)),
                f"required_{j}": np.array(float(points != 0)),
            }
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
