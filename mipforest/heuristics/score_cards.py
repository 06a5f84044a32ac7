"""Score cards of least log-loss: what rules there are to choose from, the intercept for given points, and starts.

Source: T. Aldinucci, PhD thesis, chapter 4. The thesis adds rules one by one, each by a mixed-integer model; with one
rule to choose, all cuts and points can be tried instead, each with its exact intercept.

**Which cuts and signs an optimum needs.** The log-loss falls in the score of a sample of the second class, and rises in
that of the first. So a threshold can move past the samples of one value, if they are all of one class, towards where
they gain, and no loss grows. Let G be the samples of the value just below a cut, and H those just above. Points above 0
are not needed where G is all of the second class, or H all of the first; points below 0 where G is all of the
first, or H all of the second. Past the last value the rule holds for all or none, and is as good as no rule.

**Iterated local search.** A local optimum is a card that neither another rule in the place of any of its rules
improves, over all cuts and points
(:meth:`CardProblem.polished <mipforest.heuristics.score_cards.CardProblem.polished>`), nor other points of all its
rules together. From there some rules are taken out at random, others are added, mostly the best ones, and the search
begins again; a card that is no worse is the next one to be disturbed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import combinations, product
from math import floor, log10
from typing import ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.cards import PointRule, ScoreCard
from mipforest.data import Dataset
from mipforest.special import expit, xlogy
from mipforest.time_budget import TimeBudget
from mipforest.trees.sides import midpoints

#: Steps of Newton's method for intercepts; each that leaves the bracket is a bisection, so that they suffice.
NEWTON_STEPS = 60

#: The expected number of samples of the second class is their number up to this share of all samples.
INTERCEPT_TOLERANCE = 1e-12


def saturated(P: FloatArray, Q: FloatArray) -> FloatArray:
    """Return the log-loss of cells with P and Q samples of either class, each at its own share: the least there is."""
    loss: FloatArray = xlogy(P + Q, P + Q) - xlogy(P, P) - xlogy(Q, Q)
    return loss


def best_intercepts(totals: FloatArray, P: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the best intercepts for totals, and the log-losses with them.

    The best one makes the expected number of samples of the second class their number. It is between ``logit(r) - max``
    and ``logit(r) - min`` of the totals, r being the share of the second class, and is found there by Newton's method,
    kept inside by bisection.

    Parameters
    ----------
    totals, P, Q
        (b, c) totals, and weights of the samples of the second class and of the first: b cards with c totals each.

    Returns
    -------
    intercepts, losses
        (b,) each.
    """
    n, of_one = P + Q, P.sum(axis=1)
    all_n = n.sum(axis=1)
    middle = np.log(of_one) - np.log(all_n - of_one)
    seen = n > 0
    low = middle - np.where(seen, totals, -np.inf).max(axis=1)
    high = middle - np.where(seen, totals, np.inf).min(axis=1)
    at = (low + high) / 2
    for _ in range(NEWTON_STEPS):
        risk = expit(totals + at[:, None])
        excess = (n * risk).sum(axis=1) - of_one
        if (np.abs(excess) <= INTERCEPT_TOLERANCE * all_n).all():
            break
        low, high = np.where(excess < 0, at, low), np.where(excess > 0, at, high)
        slope = (n * risk * (1 - risk)).sum(axis=1)
        step = at - excess / np.maximum(slope, np.finfo(float).tiny)
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    score = totals + at[:, None]
    loss = (P * np.logaddexp(0.0, -score) + Q * np.logaddexp(0.0, score)).sum(axis=1)
    return at, loss


def shortest_between(low: float, high: float) -> float:
    """Return a number with as few digits as any in (low, high], the one nearest to the middle of these."""
    middle, exponent = (low + high) / 2, floor(log10(high - low)) + 1 if np.isfinite(high - low) else 0
    for digits in range(-exponent, 18 - exponent):
        unit = Decimal(1).scaleb(-digits)
        number = float((Decimal(middle) / unit).to_integral_value() * unit)
        for candidate in (number, float(Decimal(number) + unit)):
            if low < candidate <= high:
                return candidate
    return float(high)


#: Cards that a beam keeps.
BEAM = 10

#: Cuts whose points are tried at once.
CHUNK = 64

#: Cuts that starts look at: of more, as many quantiles of the samples, and in the end the neighbours of those chosen.
MAX_TRIED = 20_000

#: The same once the time has run out, and a card must have all its rules.
FEW_TRIED = 400

#: A card: its cuts with their points.
Chosen = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class CardProblem:
    """What rules a card may have, and the samples that they are judged by.

    Attributes
    ----------
    data
        Training samples in original units, of two classes.
    ranks
        (g, p) of each distinct sample and feature, the number of its value among the feature's distinct values.
    of_sample
        (n,) which distinct sample each sample is.
    positive, negative
        (g,) weights of the samples of the second class and of the first.
    values
        Of each feature, its distinct values, ascending.
    feature, cut
        (K,) feature of each rule, and the rank above which it holds.
    up, down
        (K,) whether an optimum may need it with points above 0, and below 0.
    rules
        Most rules of a card; each feature gives at most one.
    least, most
        Range of the points, 0 within it.
    exact
        Whether all rules must be there, with points other than 0.
    round_thresholds
        Whether thresholds have as few digits as they can, instead of lying midway between two values.
    budget
        Starts end with the best card that they have when it has run out.
    """

    words: ClassVar[str] = "score cards of least log-loss"

    data: Dataset
    ranks: IntArray
    of_sample: IntArray
    positive: FloatArray
    negative: FloatArray
    values: tuple[FloatArray, ...]
    feature: IntArray
    cut: IntArray
    up: BoolArray
    down: BoolArray
    rules: int
    least: int
    most: int
    exact: bool
    round_thresholds: bool
    budget: TimeBudget = field(default_factory=TimeBudget)

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        rules: int,
        least: int,
        most: int,
        exact: bool = False,
        min_support: int = 1,
        round_thresholds: bool = True,
        budget: TimeBudget | None = None,
    ) -> CardProblem:
        """Find the rules of a data set.

        Parameters
        ----------
        data
            Training samples of two classes.
        rules, least, most, exact, round_thresholds, budget
            As for the class.
        min_support
            Least number of training samples that a rule holds for, and that it does not hold for.
        """
        ranks = np.empty(data.X_raw.shape, dtype=np.int64)
        values, feature, cut = [], [], []
        for j in range(data.p):
            distinct, ranks[:, j] = np.unique(data.X_raw[:, j], return_inverse=True)
            values.append(distinct)
            held = data.n - np.cumsum(np.bincount(ranks[:, j], minlength=len(distinct)))[:-1]
            wide = np.flatnonzero((held >= min_support) & (data.n - held >= min_support))
            feature.append(np.full(len(wide), j))
            cut.append(wide)
        rows, of_sample = np.unique(ranks, axis=0, return_inverse=True)
        of_sample = of_sample.ravel()
        positive, negative = (
            np.bincount(of_sample, data.weights * (data.y == k), minlength=len(rows)).astype(np.float64)
            for k in (1, 0)
        )
        found = cls(
            data=data,
            ranks=rows,
            of_sample=of_sample,
            positive=positive,
            negative=negative,
            values=tuple(values),
            feature=np.concatenate(feature).astype(np.int64),
            cut=np.concatenate(cut).astype(np.int64),
            up=np.ones(sum(map(len, cut)), dtype=np.bool_),
            down=np.ones(sum(map(len, cut)), dtype=np.bool_),
            rules=rules,
            least=least,
            most=most,
            exact=exact,
            round_thresholds=round_thresholds,
            budget=budget or TimeBudget(),
        )
        # A rule with a least support, or one that must be there, cannot move past the last value.
        return found if exact or min_support > 1 else found._with_signs()

    def _with_signs(self) -> CardProblem:
        """Return the problem with the signs that an optimum may need (see the module)."""
        up, down = np.ones_like(self.up), np.ones_like(self.down)
        for j, values in enumerate(self.values):
            at = self.feature == j
            of_one = np.bincount(self.ranks[:, j], self.positive, minlength=len(values))
            of_zero = np.bincount(self.ranks[:, j], self.negative, minlength=len(values))
            below, above = self.cut[at], self.cut[at] + 1
            up[at] = (of_zero[below] > 0) & (of_one[above] > 0)
            down[at] = (of_one[below] > 0) & (of_zero[above] > 0)
        return replace(self, up=up, down=down)

    def with_all_signs(self) -> CardProblem:
        """Return the problem with both signs everywhere: what constraints of users need."""
        every = np.ones_like(self.up)
        return replace(self, up=every, down=every)

    @property
    def n_rules(self) -> int:
        """Number of rules to choose from, K."""
        return len(self.feature)

    @property
    def n_features(self) -> int:
        """Number of features that have a rule."""
        return len(np.unique(self.feature))

    @cached_property
    def total_weights(self) -> tuple[float, float]:
        """Weights of all samples of the second class, and of the first."""
        return float(self.positive.sum()), float(self.negative.sum())

    def points_of(self, k: int) -> IntArray:
        """Return the points other than 0 that rule k may have."""
        points = np.arange(self.least, self.most + 1)
        allowed: IntArray = points[((points > 0) & self.up[k]) | ((points < 0) & self.down[k])]
        return allowed

    def holds(self, k: int) -> BoolArray:
        """Return (g,) whether rule k holds for each distinct sample."""
        held: BoolArray = self.ranks[:, self.feature[k]] > self.cut[k]
        return held

    def totals(self, chosen: Iterable[tuple[int, int]]) -> IntArray:
        """Return the (g,) totals of the distinct samples."""
        totals: IntArray = np.zeros(len(self.ranks), dtype=np.int64)
        for k, points in chosen:
            totals[self.holds(k)] += points
        return totals

    # ------------------------------------------------------------------ cards

    def card(self, chosen: Iterable[tuple[int, int]], intercept: float | None = None) -> ScoreCard:
        """Return the card of some rules with points, those with 0 points left out, rules in the order of features.

        Parameters
        ----------
        chosen
            Rules and points.
        intercept
            The best one unless given.
        """
        kept = sorted((k, points) for k, points in chosen if points)
        if intercept is None:
            intercept = self.refit(self.totals(kept))[0]
        data = self.data
        return ScoreCard(
            rules=tuple(self._rule(k, points) for k, points in kept),
            intercept=float(intercept),
            classes=data.classes,
            p=data.p,
            features=data.features.labels,
            levels=data.encoding.levels,
            allowed=(self.least, self.most),
            target=data.target,
        )

    def _rule(self, k: int, points: int) -> PointRule:
        j = int(self.feature[k])
        values = self.values[j]
        low, high = values[self.cut[k]], values[self.cut[k] + 1]
        binary = len(values) == 2 and low == 0 and high == 1
        rounded = self.round_thresholds and not binary
        threshold = shortest_between(low, high) if rounded else float(midpoints(np.array([low, high]))[0])
        return PointRule(j, threshold, int(points), low=float(low), high=float(high), binary=bool(binary))

    def chosen(self, card: ScoreCard) -> tuple[Chosen, float]:
        """Return the rules and points of a card, all written as ``>=``, and its intercept.

        A rule that no training sample tells from none, or from one for all, is folded into the intercept.

        Raises
        ------
        ValueError
            If a rule of the card is none of the problem's: too few samples hold it.
        """
        card = card.one_direction()
        found, intercept = [], card.intercept
        for rule in card.rules:
            values = self.values[rule.feature]
            below = int(np.searchsorted(values, rule.threshold))
            if below == 0:
                intercept += rule.points
            elif below < len(values):
                at = np.flatnonzero((self.feature == rule.feature) & (self.cut == below - 1))
                if not len(at):
                    raise ValueError(
                        f"a rule on {card.feature_names[rule.feature]} at {rule.threshold:g} holds for fewer training "
                        "samples than min_support asks for, or for nearly all"
                    )
                found.append((int(at[0]), rule.points))
        return tuple(found), intercept

    # ------------------------------------------------------------------ the best intercept

    def refit(self, totals: IntArray) -> tuple[float, float]:
        """Return the best intercept for (g,) totals, and the log-loss with it."""
        levels, at = np.unique(totals, return_inverse=True)
        P = np.bincount(at, self.positive)[None].astype(np.float64)
        Q = np.bincount(at, self.negative)[None].astype(np.float64)
        intercepts, losses = best_intercepts(levels[None].astype(np.float64), P, Q)
        return float(intercepts[0]), float(losses[0])

    def least_loss(self, chosen: Iterable[tuple[int, int]]) -> float:
        """Return the log-loss of rules with points at their best intercept."""
        return self.refit(self.totals(chosen))[1]

    def loss(self, totals: IntArray, intercept: float) -> float:
        """Return the log-loss, a sum over the samples, of totals (g,) with an intercept."""
        score = totals + intercept
        return float(self.positive @ np.logaddexp(0.0, -score) + self.negative @ np.logaddexp(0.0, score))

    # ------------------------------------------------------------------ starts

    def beam(self, width: int = BEAM, fixed: Chosen = (), wanted: int | None = None) -> tuple[Chosen, float]:
        """Return the best card found by adding rule after rule to the best few, and its loss; width 1 is greedy.

        Parameters
        ----------
        width
            Cards that are kept after each rule.
        fixed
            Rules that are there already.
        wanted
            Rules of the card; all that there may be unless given.
        """
        wanted = min(self.rules, self.n_features) if wanted is None else wanted
        kept = [(self.least_loss(fixed), fixed)]
        best = (np.inf, fixed) if self.exact and len(fixed) < wanted else kept[0]
        for size in range(len(fixed) + 1, wanted + 1):
            longer: dict[Chosen, float] = {}
            if self.budget.expired and not self.exact:
                break
            for _, card in kept:
                for loss, k, points in self.additions(card, width):
                    longer[tuple(sorted((*card, (k, points))))] = loss
                if self.budget.expired and longer:
                    break
            if not longer:
                break
            kept = sorted((loss, card) for card, loss in longer.items())[:width]
            if kept[0][0] < best[0] or (self.exact and size == wanted):
                best = kept[0]
        return best[1], best[0]

    def polished(self, chosen: Chosen, *, removed: int = 1, width: int = 1) -> tuple[Chosen, float]:
        """Choose some rules of a card anew, others kept, until no such choice is better; return card and loss.

        Parameters
        ----------
        chosen
            The card.
        removed
            Rules that are chosen anew together: 1, or 2 for pairs.
        width
            Of the :meth:`beam` that chooses them.
        """
        best = self.least_loss(chosen)
        improved = True
        while improved:
            improved = False
            for gone in combinations(range(len(chosen)), min(removed, len(chosen))):
                if self.budget.expired:
                    return chosen, best
                rest = tuple(part for k, part in enumerate(chosen) if k not in gone)
                other, loss = self.beam(width, rest)
                if loss < best * (1 - 1e-12):
                    chosen, best, improved = other, loss, True
                    break
        return chosen, best

    def refined(self, chosen: Chosen) -> Chosen:
        """Choose the cut of each rule anew among all of its feature, one after the other, until none is better."""
        if self.all_tried:
            return chosen
        best, improved = self.least_loss(chosen), True
        while improved:
            improved = False
            for k, _ in chosen:
                if self.budget.expired:
                    return chosen
                rest = tuple(part for part in chosen if part[0] != k)
                j = int(self.feature[k])
                found = self.additions(rest, 1, tried={j: np.flatnonzero(self.feature == j)})
                if found and found[0][0] < best * (1 - 1e-12):
                    chosen, best, improved = (*rest, found[0][1:]), found[0][0], True
                    break
        return chosen

    @property
    def all_tried(self) -> bool:
        """Whether starts look at all cuts."""
        return self.n_rules <= MAX_TRIED

    @cached_property
    def _tried(self) -> dict[int, IntArray]:
        return self._quantiles(MAX_TRIED)

    @cached_property
    def _few_tried(self) -> dict[int, IntArray]:
        return self._quantiles(FEW_TRIED)

    def _quantiles(self, most: int) -> dict[int, IntArray]:
        """Return by feature the rules that are tried: all, or those at quantiles of the samples."""
        found, p = dict[int, IntArray](), len(self.values)
        for j, values in enumerate(self.values):
            mine = np.flatnonzero(self.feature == j)
            if self.n_rules > most and len(mine) > (share := max(1, most // p)):
                below = np.cumsum(np.bincount(self.ranks[:, j], minlength=len(values)))[self.cut[mine]]
                wanted = np.arange(1, share + 1) / (share + 1) * len(self.ranks)
                mine = mine[np.unique(np.minimum(np.searchsorted(below, wanted), len(mine) - 1))]
            if len(mine):
                found[j] = mine
        return found

    def additions(
        self, card: Chosen, most: int, *, tried: dict[int, IntArray] | None = None
    ) -> list[tuple[float, int, int]]:
        """Return the best (loss, rule, points) to add to a card, at most ``most``.

        Rules are tried in the order of a lower bound, the loss with a risk of its own for each total and side, until no
        more can be among the best.

        Parameters
        ----------
        card
            The card.
        most
            How many to return.
        tried
            By feature, the rules to try; those of :data:`MAX_TRIED` unless given.
        """
        levels, at = np.unique(self.totals(card), return_inverse=True)
        used = {int(self.feature[k]) for k, _ in card}
        P, Q, rules = list[FloatArray](), list[FloatArray](), list[IntArray]()
        if tried is None:
            tried = self._few_tried if self.budget.expired else self._tried
        for j, mine in tried.items():
            if j in used:
                continue
            # Which of the cuts a sample is above.
            interval = np.searchsorted(self.cut[mine], self.ranks[:, j])
            shape = (len(levels), len(mine) + 1)
            cell = at * shape[1] + interval
            for weights, held in ((self.positive, P), (self.negative, Q)):
                counts = np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
                above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
                held.append(above[:, 1:].T)
            rules.append(mine)
        if not rules:
            return []
        all_P, all_Q = np.bincount(at, self.positive), np.bincount(at, self.negative)
        P_in, Q_in, k_of = np.concatenate(P), np.concatenate(Q), np.concatenate(rules)
        P_both = np.concatenate([all_P - P_in, P_in], axis=1)
        Q_both = np.concatenate([all_Q - Q_in, Q_in], axis=1)
        bound = saturated(P_both, Q_both).sum(axis=1)
        order, best = np.argsort(bound, kind="stable"), list[tuple[float, int, int]]()
        for first in range(0, len(order), CHUNK):
            part = order[first : first + CHUNK]
            if len(best) >= most and (bound[part[0]] >= best[-1][0] or self.budget.expired):
                break
            pairs = [(i, points) for i in part for points in self.points_of(int(k_of[i])).tolist()]
            if not pairs:
                continue
            rows, points = np.array(pairs).T
            shifted = np.concatenate(
                [np.tile(levels, (len(rows), 1)), levels + points[:, None]], axis=1
            ).astype(float)
            _, losses = best_intercepts(shifted, P_both[rows], Q_both[rows])
            found = zip(losses.tolist(), k_of[rows].tolist(), points.tolist(), strict=True)
            best = sorted([*best, *found])[:most]
        return best


#: Rules whose points change together, each by at most 1: 3 to this power are tried at once.
TOGETHER = 5

#: Most rules that are taken out at a time.
TAKEN_OUT = 3

#: The rule that is added is one of this many best ones, as often as the best one.
ADDED_FROM = 8

#: Losses that differ by less than this share are the same, however sums were rounded.
SAME = 1e-10


def exchange_rules(
    cards: CardProblem, chosen: Chosen, *, rounds: int, seed: int, budget: TimeBudget
) -> tuple[Chosen, float]:
    """Improve a card by exchanging rules and points.

    Parameters
    ----------
    cards
        The rules that there are.
    chosen
        The card to begin with.
    rounds
        How often rules are taken out.
    seed
        Seed of what is taken out and added.
    budget
        The search ends when it has run out.

    Returns
    -------
    chosen, loss
        The best card found, no worse than the first, and its log-loss.
    """
    rng = np.random.default_rng(seed)
    best = here = _local_optimum(cards, chosen, budget)
    wanted = min(cards.rules, cards.n_features)
    for _ in range(rounds):
        if budget.expired or not here[0]:
            break
        size = len(here[0])
        gone = rng.choice(size, min(size, int(rng.integers(1, TAKEN_OUT + 1))), replace=False)
        other = tuple(part for k, part in enumerate(here[0]) if k not in gone)
        while len(other) < wanted and (found := cards.additions(other, ADDED_FROM)):
            take = int(rng.integers(len(found))) if rng.random() < 0.5 else 0
            other = (*other, found[take][1:])
        if cards.exact and len(other) < wanted:
            continue
        reached = _local_optimum(cards, other, budget)
        if reached[1] <= here[1] * (1 + SAME):
            here = reached
        if here[1] < best[1] * (1 - SAME):
            best = here
    return best


def _local_optimum(cards: CardProblem, chosen: Chosen, budget: TimeBudget) -> tuple[Chosen, float]:
    """Choose points and single rules anew until neither is better."""
    chosen, loss = optimise_points(cards, chosen)
    while not budget.expired:
        chosen, improved = optimise_points(cards, cards.polished(chosen)[0])
        if improved >= loss * (1 - SAME):
            break
        loss = improved
    return chosen, cards.least_loss(chosen)


def optimise_points(cards: CardProblem, chosen: Chosen) -> tuple[Chosen, float]:
    """Change the points of a card's rules together, each by at most 1, until no such change is better.

    Returns
    -------
    chosen, loss
        The card, rules with 0 points left out, and its log-loss.
    """
    loss = cards.least_loss(chosen)
    improved = True
    while improved and chosen:
        improved = False
        for first in range(0, len(chosen), TOGETHER):
            other, value = _optimise_some_points(
                cards, chosen, range(first, min(first + TOGETHER, len(chosen)))
            )
            if value < loss * (1 - SAME):
                chosen, loss, improved = other, value, True
    return tuple(part for part in chosen if part[1]), loss


def _optimise_some_points(cards: CardProblem, chosen: Chosen, some: range) -> tuple[Chosen, float]:
    """Return the card with the best points of some rules, each within 1 of what they are, and its loss."""
    fixed = cards.totals(part for k, part in enumerate(chosen) if k not in some)
    holds = np.array([cards.holds(chosen[k][0]) for k in some])
    # Samples with the same total of the other rules, for which the same rules hold, are one cell.
    cells, at = np.unique(np.vstack([fixed, holds]), axis=1, return_inverse=True)
    P, Q = (np.bincount(at.ravel(), weights) for weights in (cards.positive, cards.negative))
    ranges = []
    for k in some:
        rule, points = chosen[k]
        allowed = cards.points_of(rule)
        near = allowed[np.abs(allowed - points) <= 1].tolist()
        ranges.append(near if cards.exact or abs(points) > 1 else [0, *near])
    tried = np.array(list(product(*ranges)))
    totals = (cells[0] + tried @ cells[1:]).astype(np.float64)
    shape = (len(tried), len(P))
    _, losses = best_intercepts(totals, np.broadcast_to(P, shape), np.broadcast_to(Q, shape))
    least = int(losses.argmin())
    points_of = dict(zip(some, tried[least].tolist(), strict=True))
    return tuple((rule, points_of.get(k, points)) for k, (rule, points) in enumerate(chosen)), float(
        losses[least]
    )
