"""Score cards: the same risks in every form, files that restore them, texts, tables and measures."""

import json
from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tolerance import same

from mipforest.cards import (
    CardFileError,
    PointRule,
    RiskTable,
    ScoreCard,
    calibration_of_totals,
    card_from_dict,
    card_to_text,
    risk_table,
)
from mipforest.trees import auc_of_scores

RULES = (
    PointRule(0, 2.5, 3, low=2.0, high=3.0),
    PointRule(2, 0.5, -2, binary=True),
    PointRule(1, 1.0, -4, below=True),
    PointRule(3, 7.0, 1),
)
CARD = ScoreCard(RULES, -0.7, ("well", "sick"), 4, ("age", "pain", "smoker", "count"))
RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.integers(0, 6, 300), RNG.random(300) * 2, RNG.integers(0, 2, 300), RNG.integers(0, 12, 300)]
).astype(float)
Y = (RNG.random(300) < CARD.predict_proba(X)[:, 1]).astype(int)


def log_loss(card):
    return float(np.logaddexp(0.0, -(2 * Y - 1) * card.scores(X)).sum())


def same_risks(card, other):
    return np.abs(card.predict_proba(X) - other.predict_proba(X)).max() < 1e-12


def test_any_rules_can_be_turned_round_in_any_order():
    # Theorem 4.1 of the thesis.
    for turned in chain.from_iterable(combinations(range(4), size) for size in range(5)):
        for order in (turned, turned[::-1]):
            card = CARD
            for k in order:
                card = card.flip(k)
            assert same_risks(card, CARD)
            assert log_loss(card) == pytest.approx(log_loss(CARD), abs=1e-10)
            assert same(auc_of_scores(card.totals(X), Y), auc_of_scores(CARD.totals(X), Y))
            table = risk_table(card, X, Y)
            assert np.allclose(table.risks, risk_table(CARD, X, Y).risks, atol=1e-12)
            assert (np.diff(table.risks) > 0).all()
    assert CARD.flip(1).flip(1).rules == CARD.rules
    assert CARD.flip(1).flip(1).intercept == pytest.approx(CARD.intercept, abs=1e-12)


def test_forms_without_negative_points_and_of_one_direction():
    # Corollaries 4.1 and 4.2.
    shown = CARD.nonnegative()
    assert same_risks(shown, CARD)
    assert (shown.points > 0).all()
    totals = shown.attainable_totals()
    assert (totals[0], totals[-1]) == (0, np.abs(CARD.points).sum())
    for below in (False, True):
        card = CARD.one_direction(below=below)
        assert same_risks(card, CARD)
        assert {rule.below for rule in card.rules} == {below}
    again = card_from_dict(json.loads(json.dumps(shown.to_dict())))
    assert same_risks(again.flip(2), CARD)


def test_a_flip_outside_the_allowed_points_is_refused():
    card = replace(CARD, allowed=(-4, 3))
    with pytest.raises(ValueError, match=r"\+4 points, and -4 to 3 are allowed"):
        card.flip(2)
    assert same_risks(card.nonnegative(), CARD)


def test_a_missing_value_is_refused():
    # Neither a rule nor its opposite holds for it: turning a rule round would change its risk.
    with pytest.raises(ValueError, match="holds nan"):
        CARD.predict(np.full((1, 4), np.nan))


def test_json_restores_a_card_exactly_and_refuses_what_is_none():
    content = CARD.to_dict()
    restored = card_from_dict(json.loads(json.dumps(content)))
    assert restored.to_dict() == content
    assert (restored.scores(X) == CARD.scores(X)).all()  # exact: a copy
    for key in ("rules", "intercept", "p", "allowed"):
        with pytest.raises(CardFileError, match=key):
            card_from_dict({name: value for name, value in content.items() if name != key})
    for wrong in ({"format": "tree"}, {"p": 2}, {"classes": ["one"]}, {"intercept": "much"}):
        with pytest.raises(CardFileError):
            card_from_dict(content | wrong)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (PointRule(9, 1.0, 1), "feature 9"),
        (PointRule(0, 1.0, 0), "0 points"),
        (PointRule(0, np.inf, 1), "threshold"),
    ],
)
def test_a_rule_that_is_none_is_refused(rule, words):
    with pytest.raises(ValueError, match=words):
        ScoreCard((rule,), 0.0, ("a", "b"), 4)


def test_auc_is_that_of_scikit_learn_on_totals_and_on_risks():
    totals, risks = CARD.totals(X), CARD.predict_proba(X)[:, 1]
    assert auc_of_scores(totals, Y) == pytest.approx(roc_auc_score(Y, totals), abs=1e-12)
    assert auc_of_scores(totals, Y) == pytest.approx(roc_auc_score(Y, risks), abs=1e-12)
    weights = RNG.random(300)
    expected = roc_auc_score(Y, totals, sample_weight=weights)
    assert auc_of_scores(totals, Y, weights) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(auc_of_scores(totals, np.ones(300)))


def test_the_risk_table_has_every_attainable_total_once():
    table = risk_table(CARD, X, Y)
    assert set(CARD.totals(X)) <= set(table.totals.tolist())
    assert len(set(table.totals.tolist())) == len(table.totals)
    assert table.samples.sum() == 300
    assert table.positives.sum() == Y.sum()
    unseen = table.samples == 0
    assert np.isnan(table.rates[unseen]).all()
    assert RiskTable.from_dict(table.to_dict()).to_dict() == table.to_dict()
    with pytest.raises(CardFileError, match="add up"):
        RiskTable.from_dict(table.to_dict() | {"samples": [0] * len(table.totals)})


def test_calibration_by_total():
    table = RiskTable(np.array([0, 1]), np.array([0.2, 0.6]), np.array([30.0, 10.0]), np.array([3.0, 10.0]))
    mean, square = calibration_of_totals(table)
    assert mean == pytest.approx(0.75 * 0.1 + 0.25 * 0.4)
    assert square == pytest.approx(np.sqrt(0.75 * 0.01 + 0.25 * 0.16))


def test_texts_say_what_applies():
    shown = CARD.nonnegative()
    assert [shown.rule_text(k) for k in range(4)] == ["age >= 2.5", "not smoker", "pain >= 1", "count >= 7"]
    text = card_to_text(shown, risk_table(shown, X, Y))
    assert "Risk of sick" in text
    assert "0 to 10" in text
    assert text.endswith("Risk = 1 / (1 + exp(-(total - 6.7000)))")
    assert card_to_text(replace(shown, intercept=0.5)).endswith("(total + 0.5000)))")
    assert replace(CARD, classes=("0", "1"), target="ill").outcome == "ill = 1"
    towns = replace(CARD, levels=(None, None, ("town", "Roma"), None))
    assert towns.rule_text(1) == "town is Roma"
    assert towns.nonnegative().rule_text(1) == "town is not Roma"


def test_the_picture_has_points_and_risks():
    drawn = [text.get_text() for text in CARD.plot(X, Y).axes[0].texts]
    assert {"Risk of sick", "4 points", "3.  not smoker"} <= {*drawn}
    assert "Training samples" in drawn
    assert "Training samples" not in [text.get_text() for text in CARD.plot().axes[0].texts]


def test_a_card_without_rules_has_one_risk():
    empty = ScoreCard((), 0.4, ("a", "b"), 2)
    assert np.allclose(empty.predict_proba(np.zeros((3, 2)))[:, 1], 1 / (1 + np.exp(-0.4)))
    assert "no rule" in card_to_text(empty)
