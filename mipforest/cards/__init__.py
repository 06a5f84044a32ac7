"""Score cards: rules that give integer points; the total of a sample stands for its risk. Knows no model and no solver.

With a card: risks by total, the samples behind them, measures of totals, and the card as text. The picture is loaded on
first use, so that everything else does not wait for matplotlib.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import MipforestError
from mipforest.formatting import percent
from mipforest.meanings import LevelSet, Meaning, meaning_of, to_json
from mipforest.special import expit
from mipforest.trees import FeaturesUsed, Predictor
from mipforest.trees.sides import class_probabilities
from mipforest.trees.tree import as_samples

if TYPE_CHECKING:
    from mipforest.cards.picture import plot_card
    from mipforest.trees import Picture

__all__ = [
    "CardFileError",
    "PointRule",
    "RiskTable",
    "ScoreCard",
    "calibration_of_totals",
    "card_from_dict",
    "card_to_text",
    "plot_card",
    "risk_table",
]


FORMAT = "mipforest-score-card"
VERSION = 1

#: Most rules of a card: its attainable totals are the sums of their subsets.
MAX_RULES = 20


class CardFileError(MipforestError, ValueError):
    """The file or dictionary is not a score card; the message says why."""


@dataclass(frozen=True)
class PointRule:
    """One row of a card: points for the samples that a rule holds for.

    Attributes
    ----------
    feature
        Number of the feature, from 0.
    threshold
        In original units. The rule is ``x >= threshold``, of a rule turned round ``x < threshold``.
    points
        What a sample gets that the rule holds for.
    below
        Whether the rule is turned round.
    low, high
        Every threshold in (low, high] parts the training samples alike; NaN where that is not known.
    binary
        Whether the feature is 0 or 1, so that its name is the rule.
    """

    feature: int
    threshold: float
    points: int
    below: bool = False
    low: float = math.nan
    high: float = math.nan
    binary: bool = False

    def holds(self, X: FloatArray) -> BoolArray:
        """Return (n,) whether the rule holds for samples (n, p) in original units."""
        x = X[:, self.feature]
        held: BoolArray = (x < self.threshold) if self.below else (x >= self.threshold)
        return held


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCard(Predictor):
    """Rules with integer points, and an intercept: the risk is ``1 / (1 + exp(-(total + intercept)))``.

    The risk is the probability of the second class; it is predicted where the total plus the intercept is at least 0.
    Turning a rule round, its points with it, and adding the points to the intercept leaves every risk as it is
    (theorem 4.1 of the thesis): :meth:`flip`. So a card can be written without negative points
    (:meth:`nonnegative`), or with one direction of all rules (:meth:`one_direction`).

    Parameters
    ----------
    rules
        Rows of the card, none with 0 points.
    intercept
        Log-odds at the total 0.
    classes
        Names of the two classes; the risk is that of the second one.
    p
        Number of features.
    features
        Names of the features, or ``()``.
    levels
        As of :class:`~mipforest.trees.Tree`.
    allowed
        Least and most points that a rule may have.
    target
        Name of what is predicted, for a class whose name is a number alone.

    Raises
    ------
    ValueError
        If a rule names no feature, has no points or is not finite, or there are not two classes.
    """

    noun: ClassVar[str] = "score card"

    rules: tuple[PointRule, ...]
    intercept: float
    classes: tuple[str, ...]
    p: int
    features: tuple[str, ...] = ()
    levels: tuple[Meaning, ...] = ()
    allowed: tuple[int, int] = (-5, 5)
    target: str = ""
    logistic: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        object.__setattr__(self, "features", tuple(map(str, self.features)))
        object.__setattr__(self, "intercept", float(self.intercept))
        object.__setattr__(self, "levels", tuple(map(meaning_of, self.levels)))
        if len(self.classes) != 2:
            raise ValueError(f"a score card tells two classes apart, and {len(self.classes)} are given")
        if self.features and len(self.features) != self.p:
            raise ValueError(f"{len(self.features)} names for {self.p} features; give {self.p} names or none")
        if len(self.rules) > MAX_RULES:
            raise ValueError(f"{len(self.rules)} rules; a card has at most {MAX_RULES}")
        if not math.isfinite(self.intercept):
            raise ValueError(f"the intercept is {self.intercept}; it must be finite")
        for k, rule in enumerate(self.rules):
            if not 0 <= rule.feature < self.p:
                raise ValueError(f"rule {k} reads feature {rule.feature}, and there are {self.p}, from 0")
            if rule.points == 0 or rule.points != int(rule.points):
                raise ValueError(f"rule {k} has {rule.points} points; give a whole number other than 0")
            if not math.isfinite(rule.threshold):
                raise ValueError(f"the threshold of rule {k} is {rule.threshold}; it must be finite")

    def __repr__(self) -> str:
        rules = ", ".join(f"{self.rule_text(k)}: {rule.points:+d}" for k, rule in enumerate(self.rules))
        return f"ScoreCard({rules or 'no rule'}; intercept {self.intercept:.4g})"

    # ------------------------------------------------------------------ what the card is

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return self.p

    @property
    def points(self) -> IntArray:
        """(T,) points of the rules."""
        return np.array([rule.points for rule in self.rules], dtype=np.int64)

    @property
    def formula(self) -> str:
        """The risk as a formula of the total."""
        sign = "-" if self.intercept < 0 else "+"
        return f"1 / (1 + exp(-(total {sign} {abs(self.intercept):.4f})))"

    def rule_text(self, k: int, digits: int = 6) -> str:
        """Write a rule: ``age >= 50``; of a binary feature its name or ``not`` it; of a level ``city is Roma``."""
        rule = self.rules[k]
        meaning = self.levels[rule.feature] if self.levels else None
        if isinstance(meaning, LevelSet):
            return str(meaning.condition(holds=not rule.below))
        name = self.feature_names[rule.feature]
        if rule.binary:
            return f"not {name}" if rule.below else name
        return f"{name} {'<' if rule.below else '>='} {rule.threshold:.{digits}g}"

    @property
    def outcome(self) -> str:
        """What the risk is the risk of, in words."""
        name = self.classes[1]
        named = any(character.isalpha() for character in name) or not self.target
        return name if named else f"{self.target} = {name}"

    def features_used(self, tolerance: float = 0.0) -> FeaturesUsed:  # noqa: ARG002 - points are whole
        """Return the features of the rules."""
        used = tuple(sorted({rule.feature for rule in self.rules}))
        return FeaturesUsed((used,), used)

    def attainable_totals(self) -> IntArray:
        """Return the totals that some subset of the rules adds up to, ascending."""
        sums = [sum(chosen) for chosen in product(*((0, rule.points) for rule in self.rules))]
        return np.unique(np.array(sums, dtype=np.int64))

    def risk_of(self, totals: npt.ArrayLike) -> FloatArray:
        """Return the risks of totals."""
        risk: FloatArray = expit(np.asarray(totals, dtype=np.float64) + self.intercept)
        return risk

    # ------------------------------------------------------------------ the same risks, written otherwise

    def _turned(self, which: BoolArray) -> ScoreCard:
        """Turn some rules round (theorem 4.1)."""
        rules = tuple(
            replace(rule, points=-rule.points, below=not rule.below) if turn else rule
            for rule, turn in zip(self.rules, which, strict=True)
        )
        moved = sum(rule.points for rule, turn in zip(self.rules, which, strict=True) if turn)
        return replace(self, rules=rules, intercept=self.intercept + moved)

    def flip(self, k: int) -> ScoreCard:
        """Return the card with rule k turned round, and the same risks.

        Raises
        ------
        ValueError
            If the turned rule would have points that the card does not allow.
        """
        points, (least, most) = -self.rules[k].points, self.allowed
        if not least <= points <= most:
            raise ValueError(
                f"turned round, {self.rule_text(k)} would have {points:+d} points, and {least} to {most} are allowed; "
                "nonnegative() writes the card all the same"
            )
        return self._turned(np.arange(len(self.rules)) == k)

    def nonnegative(self) -> ScoreCard:
        """Return the card without negative points (corollary 4.1): totals from 0 to the sum of the points' sizes."""
        return self._turned(self.points < 0)

    def one_direction(self, *, below: bool = False) -> ScoreCard:
        """Return the card whose rules are all ``>=``, or all ``<`` (corollary 4.2)."""
        return self._turned(np.array([rule.below != below for rule in self.rules], dtype=np.bool_))

    # ------------------------------------------------------------------ for other data

    def unscaled(self) -> ScoreCard:
        """Return the card itself: it is in original units."""
        return self

    def with_scaling(self, offset: npt.ArrayLike, scale: npt.ArrayLike) -> ScoreCard:  # noqa: ARG002
        """Return the card itself: models of score cards take features as they are."""
        return self

    # ------------------------------------------------------------------ what the card does with samples

    def totals(self, X: Any) -> IntArray:
        """Return the (n,) totals of samples (n, p) in original units.

        Raises
        ------
        ValueError
            If X does not have the card's features, or holds something else than finite numbers: where a value is
            missing, neither a rule nor its opposite holds.
        """
        samples = as_samples(X, self.features, self.p)
        totals = np.zeros(len(samples), dtype=np.int64)
        for rule in self.rules:
            totals += rule.points * rule.holds(samples)
        return totals

    def scores(self, X: Any) -> FloatArray:
        """Return the (n,) log-odds of the second class."""
        scores: FloatArray = self.totals(X).astype(np.float64) + self.intercept
        return scores

    def apply(self, X: Any) -> IntArray:
        """Return the (n,) totals: samples of one total have one risk."""
        return self.totals(X)

    def predict(self, X: Any) -> IntArray:
        """Return the (n,) class numbers: 1 where the log-odds are at least 0."""
        return (self.scores(X) >= 0).astype(np.int64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the (n, 2) probabilities of the classes; the second one is the risk."""
        return class_probabilities(self.scores(X))

    def explanations(self, X: Any) -> list[str]:
        """Return, for each sample, the rules that hold with their points, the total, and the risk, on one line."""
        samples = as_samples(X, self.features, self.p)
        held = [rule.holds(samples) for rule in self.rules]
        totals, found = self.totals(samples), []
        for row, (total, risk) in enumerate(zip(totals.tolist(), self.risk_of(totals).tolist(), strict=True)):
            parts = [
                f"{self.rule_text(k)} ({rule.points:+d})" for k, rule in enumerate(self.rules) if held[k][row]
            ]
            found.append(f"{', '.join(parts) or 'no rule holds'}: total {total}, risk {percent(risk)}")
        return found

    # ------------------------------------------------------------------ pictures and files

    def plot(
        self,
        X: Any = None,
        y: npt.ArrayLike | None = None,
        *,
        max_terms: int = 3,  # noqa: ARG002
        training: bool = False,  # noqa: ARG002
    ) -> Picture:
        """Draw the card as it is printed: points, and risks by total, with samples counted if some are given."""
        from mipforest.cards import plot_card, risk_table  # the former loads matplotlib

        table = None if X is None or y is None else risk_table(self, X, y)
        return plot_card(self, table)

    def to_dict(self) -> dict[str, Any]:
        """Return the card as JSON takes it; :func:`card_from_dict` restores it exactly."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "features": list(self.features),
            "p": self.p,
            "classes": list(self.classes),
            "intercept": self.intercept,
            "allowed": list(self.allowed),
            "target": self.target,
            "rules": [
                {
                    "feature": rule.feature,
                    "text": self.rule_text(k),
                    "threshold": rule.threshold,
                    "direction": "<" if rule.below else ">=",
                    "points": int(rule.points),
                    "interval": None if math.isnan(rule.low) else [rule.low, rule.high],
                    "binary": rule.binary,
                }
                for k, rule in enumerate(self.rules)
            ],
        } | ({"levels": [to_json(meaning) for meaning in self.levels]} if self.levels else {})


def card_from_dict(content: Mapping[str, Any]) -> ScoreCard:
    """Return the card that :meth:`ScoreCard.to_dict` described.

    Raises
    ------
    CardFileError
        If a key is absent or holds something else than it should.
    """
    try:
        if content.get("format") != FORMAT or content.get("version") != VERSION:
            raise CardFileError(
                f"the format is {content.get('format')!r:.60}, version {content.get('version')!r:.20}; "
                f"a score card has {FORMAT!r}, version {VERSION}"
            )
        rules = []
        for entry in content["rules"]:
            if entry["direction"] not in (">=", "<"):
                raise CardFileError(f"a rule has the direction {entry['direction']!r:.20}; it is '>=' or '<'")
            low, high = entry.get("interval") or (math.nan, math.nan)
            rules.append(
                PointRule(
                    int(entry["feature"]),
                    float(entry["threshold"]),
                    int(entry["points"]),
                    entry["direction"] == "<",
                    float(low),
                    float(high),
                    bool(entry.get("binary", False)),
                )
            )
        least, most = content["allowed"]
        return ScoreCard(
            rules=tuple(rules),
            intercept=float(content["intercept"]),
            classes=tuple(content["classes"]),
            p=int(content["p"]),
            features=tuple(content["features"]),
            levels=tuple(map(meaning_of, content.get("levels", ()))),
            allowed=(int(least), int(most)),
            target=str(content.get("target", "")),
        )
    except CardFileError:
        raise
    except KeyError as absent:
        raise CardFileError(f"the entry {absent} is absent; use the card.json of a run") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CardFileError(f"not a score card: {error}") from error


@dataclass(frozen=True, eq=False)
class RiskTable:
    """What each total of a card stands for.

    Attributes
    ----------
    totals
        (k,) totals that the card can give, ascending.
    risks
        (k,) risks.
    samples, positives
        (k,) training samples with this total, and those of them of the second class, weighted where they have weights.
    """

    totals: IntArray
    risks: FloatArray
    samples: FloatArray
    positives: FloatArray

    @property
    def rates(self) -> FloatArray:
        """(k,) shares of the second class among the samples, NaN where there are none."""
        rates = np.full(len(self.totals), np.nan)
        seen = self.samples > 0
        rates[seen] = self.positives[seen] / self.samples[seen]
        return rates

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON takes it."""
        return {
            "totals": self.totals.tolist(),
            "risks": self.risks.tolist(),
            "samples": self.samples.tolist(),
            "positives": self.positives.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RiskTable:
        """Return the table that :meth:`to_dict` described.

        Raises
        ------
        CardFileError
            If its columns are not of one length, or numbers of samples contradict each other.
        """
        found = cls(
            np.array(content["totals"], dtype=np.int64),
            *(np.array(content[name], dtype=np.float64) for name in ("risks", "samples", "positives")),
        )
        columns = (found.totals, found.risks, found.samples, found.positives)
        if found.totals.ndim != 1 or len({column.shape for column in columns}) != 1:
            raise CardFileError("the columns of 'risk_table' are not of one length; solve again")
        counts = np.concatenate([found.samples, found.positives, found.samples - found.positives])
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise CardFileError("the numbers of samples in 'risk_table' do not add up; solve again")
        return found


def risk_table(
    card: ScoreCard, X: Any = None, y: npt.ArrayLike | None = None, weights: FloatArray | None = None
) -> RiskTable:
    """Return the risks of every attainable total, with samples counted if some are given.

    Parameters
    ----------
    card
        The card, as it is to be shown.
    X, y, weights
        (n, p) samples in original units, (n,) class numbers, and (n,) weights or ``None``.
    """
    totals = card.attainable_totals()
    counts = np.zeros((2, len(totals)))
    if X is not None and y is not None:
        at, classes = np.searchsorted(totals, card.totals(X)), np.asarray(y)
        ones = np.ones(len(classes)) if weights is None else weights
        for k in (0, 1):
            counts[k] = np.bincount(at, ones * (classes == k), minlength=len(totals))
    return RiskTable(totals, card.risk_of(totals), counts.sum(axis=0), counts[1])


# ---------------------------------------------------------------------- measures


def calibration_of_totals(table: RiskTable) -> tuple[float, float]:
    """Return how far risks are from the shares observed: the mean over samples, and the root of the mean square.

    Samples of one total have one risk, so no binning is needed.
    """
    seen = table.samples > 0
    share = table.samples[seen] / table.samples.sum()
    error = np.abs(table.risks - table.rates)[seen]
    return float(share @ error), float(np.sqrt(share @ error**2))


# ---------------------------------------------------------------------- text


def card_to_text(card: ScoreCard, table: RiskTable | None = None) -> str:
    """Write a card as two tables: the points, and the risk of each total.

    Parameters
    ----------
    card
        As it is to be shown; :meth:`ScoreCard.nonnegative` is the usual form.
    table
        Its :func:`risk_table`; without samples unless given.
    """
    table = risk_table(card) if table is None else table
    order = np.argsort(-np.abs(card.points), kind="stable")
    rows = [(card.rule_text(k), f"{card.points[k]:+d}") for k in order]
    rows = rows or [("no rule: every sample has the same risk", "0")]
    wide = max(len(text) for text, _ in rows)
    lines = [*(f"  {text:<{wide}}  {points:>7}" for text, points in rows)]
    totals = f"{table.totals[0]} to {table.totals[-1]}" if len(table.totals) > 1 else f"{table.totals[0]}"
    lines = [f"  {'Rule':<{wide}}  {'Points':>7}", *lines, f"  {'Total':<{wide}}  {totals:>7}", ""]
    counted = bool(table.samples.sum())
    heads = ["Total", f"Risk of {card.outcome}", *(("Samples", "Observed") if counted else ())]
    widths = [len(head) for head in heads]
    lines.append("  " + "   ".join(heads))
    for k, total in enumerate(table.totals):
        cells = [f"{total}", percent(table.risks[k])]
        if counted:
            cells += [f"{table.samples[k]:g}", percent(table.rates[k]) if table.samples[k] else "not seen"]
        lines.append("  " + "   ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    lines += ["", f"  Risk = {card.formula}"]
    return "\n".join(lines)


def __getattr__(name: str) -> Any:
    if name == "plot_card":
        from mipforest.cards.picture import plot_card

        return plot_card
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
