"""Exchanging rules of score cards: points chosen anew together, cards that only get better, and what is kept."""

from itertools import product

import numpy as np
import pytest
from tolerance import at_most, less

from mipforest.data import Dataset
from mipforest.heuristics.score_cards import CardProblem, exchange_rules, optimise_points
from mipforest.time_budget import TimeBudget


def cards_of(seed, *, rules, n=60, p=5, **settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, p)).round(1)
    y = (X @ rng.normal(0, 1, p) + rng.normal(0, 0.8, n) > 0).astype(int)
    data = Dataset.from_arrays(X, y, scaling="none")
    return CardProblem.of(data, rules=rules, least=-3, most=3, **settings)


@pytest.mark.parametrize("exact", [False, True])
def test_no_points_nearby_are_better_than_those_chosen_anew(exact):
    cards = cards_of(0, rules=3, exact=exact)
    begun = tuple((int(np.flatnonzero(cards.feature == j)[5]), 1) for j in (0, 2, 3))
    chosen, loss = optimise_points(cards, begun)
    assert loss == pytest.approx(cards.least_loss(chosen), rel=1e-10)
    assert at_most(loss, cards.least_loss(begun))
    assert {k for k, _ in chosen} <= {k for k, _ in begun}
    assert len(chosen) == 3 or not exact
    for moves in product((-1, 0, 1), repeat=len(chosen)):
        near = [(k, points + move) for (k, points), move in zip(chosen, moves, strict=True)]
        allowed = all(points in cards.points_of(k) or (points == 0 and not exact) for k, points in near)
        assert not allowed or cards.least_loss(near) >= loss * (1 - 1e-9)


@pytest.mark.parametrize("settings", [{}, {"exact": True}, {"min_support": 10}])
def test_a_card_only_gets_better_and_the_seed_decides(settings):
    cards = cards_of(1, rules=4, **settings)
    begun, loss = cards.beam(1)
    found, again = (exchange_rules(cards, begun, rounds=4, seed=3, budget=TimeBudget()) for _ in range(2))
    assert found == again
    assert at_most(found[1], loss)
    assert found[1] == pytest.approx(cards.least_loss(found[0]), rel=1e-10)
    features = [int(cards.feature[k]) for k, _ in found[0]]
    assert len(set(features)) == len(features) <= 4
    assert len(features) == 4 or "exact" not in settings
    assert all(points in cards.points_of(k) for k, points in found[0])


def test_without_time_the_card_stays_as_good():
    cards = cards_of(2, rules=3)
    begun, loss = cards.beam(1)
    found = exchange_rules(cards, begun, rounds=50, seed=0, budget=TimeBudget(0.0))
    assert at_most(found[1], loss)


def test_of_many_cuts_starts_try_quantiles_and_then_those_of_the_features_of_a_card(monkeypatch):
    every = cards_of(3, rules=2, n=400)
    best = every.polished(every.beam()[0])
    monkeypatch.setattr("mipforest.heuristics.score_cards.MAX_TRIED", 50)
    some = cards_of(3, rules=2, n=400)
    assert every.n_rules == some.n_rules > 50
    assert not some.all_tried
    tried = some._tried
    assert sum(map(len, tried.values())) <= 50
    assert all((some.feature[rules] == j).all() for j, rules in tried.items())
    chosen, loss = some.polished(some.beam()[0])
    refined = some.refined(chosen)
    assert at_most(best[1], some.least_loss(refined))
    assert at_most(some.least_loss(refined), loss)
    assert less(some.least_loss(refined), loss) or {k for k, _ in refined} == {k for k, _ in chosen}


@pytest.mark.parametrize("exact", [False, True])
def test_without_time_there_is_a_card_with_all_the_rules_that_it_must_have(exact):
    cards = cards_of(3, rules=3, exact=exact, budget=TimeBudget(0.0))
    chosen, loss = cards.polished(cards.beam()[0])
    assert len(chosen) == 3 or not exact
    assert loss == pytest.approx(cards.least_loss(chosen))
