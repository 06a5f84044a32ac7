"""Searches of score cards find what trying all cards finds, and prove the log-loss itself."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from tolerance import at_least, at_most

from mipforest import get_formulation
from mipforest.constraints import (
    at_most_of,
    feature_budget,
    forbid_features,
    max_total,
    monotone,
    require_features,
)
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.heuristics.score_cards import CardProblem, saturated
from mipforest.testing.formulation_conformance import repeated

Ors, Ogrs = get_formulation("ors"), get_formulation("ogrs")


def binary(seed, n=40, p=6):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p))
    y = (X @ rng.integers(-2, 3, p) + rng.normal(0, 1, n) > 0).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, scaling="none")


def with_ties(seed, n=16, p=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, p)) / 2
    y = (X.sum(axis=1) + rng.normal(0, 0.7, n) > p).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, scaling="none")


def best_by_trying(formulation, data):
    """Try all rules with all points, each with its exact intercept."""
    cards = CardProblem.of(
        data,
        rules=formulation.rules,
        least=formulation.min_points,
        most=formulation.max_points,
        exact=formulation.exact_rules,
        min_support=formulation.min_support,
    ).with_all_signs()
    sizes = [formulation.rules] if formulation.exact_rules else range(formulation.rules + 1)
    values = []
    for size in sizes:
        for rules in combinations(range(cards.n_rules), size):
            if len({int(cards.feature[k]) for k in rules}) == size:
                points = [cards.points_of(k).tolist() for k in rules]
                values += [cards.least_loss(tuple(zip(rules, s, strict=True))) for s in product(*points)]
    return min(values)


CASES = [
    (Ors(rules=2, min_points=-3, max_points=3), binary(0, p=5)),
    (Ors(rules=3, min_points=-1, max_points=2, exact_rules=True), binary(1, p=5)),
    (Ogrs(rules=2, min_points=-2, max_points=2), with_ties(2)),
    (Ogrs(rules=2, min_points=-2, max_points=2, exact_rules=True), with_ties(3)),
    (Ogrs(rules=1, min_points=0, max_points=3), with_ties(4)),
    (Ogrs(rules=3, min_points=-1, max_points=1, min_support=4), with_ties(5)),
    (Ogrs(rules=4, min_points=-1, max_points=1), with_ties(6, p=4)),
    (Ogrs(rules=4, min_points=0, max_points=2, exact_rules=True), with_ties(7, p=4)),
]


@pytest.mark.first_cases(4)
@pytest.mark.parametrize(("formulation", "data"), CASES)
def test_auto_finds_and_proves_what_trying_all_cards_finds(formulation, data):
    result = formulation.build(data).solve()
    expected = best_by_trying(formulation, data)
    assert result.status == "optimal"
    assert result.proven_for == "definition"
    assert result.verified
    assert result.objective == pytest.approx(expected, rel=1e-8)
    assert result.bound == pytest.approx(expected, rel=1e-6)
    assert result.solution.solver == "card-enumeration"


def test_more_rules_than_three_over_binary_features():
    formulation, data = Ors(rules=4, min_points=-2, max_points=2), binary(6, p=6)
    result = formulation.build(data).solve("card-enumeration")
    fewer = Ors(rules=3, min_points=-2, max_points=2).build(data).solve()
    assert result.status == "optimal"
    assert at_most(result.objective, fewer.objective)
    chosen = formulation.bind(data, result.problem.topology).cards
    assert result.objective <= chosen.beam(50)[1] + 1e-9


@pytest.mark.parametrize(("formulation", "data"), [CASES[0], CASES[2]], ids=["ors", "ogrs"])
def test_the_cut_loop_ends_at_the_log_loss_of_trying_all_cards(formulation, data):
    result = formulation.build(data).solve("cut-loop", time_limit=60, gap=1e-5)
    expected = best_by_trying(formulation, data)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(expected, rel=1e-6)
    assert result.bound <= expected * (1 + 1e-9)


def test_the_cut_loop_keeps_added_rows_and_other_searches_refuse_them():
    formulation = Ogrs(rules=2, min_points=-2, max_points=2, tangents="V0")
    data = with_ties(7, n=20)
    problem = formulation.build(data)
    require_features(problem, "x1")
    monotone(problem, "x1", increasing=False)
    max_total(problem, 3)
    at_most_of(problem, ["x0", "x2"], 1)
    with pytest.raises(Unsupported, match="changed after it was built"):
        problem.solve("card-enumeration")
    result = problem.solve("cut-loop", time_limit=60, gap=1e-5)
    cards = formulation.bind(data, problem.topology).cards.with_all_signs()
    allowed = [
        cards.least_loss(tuple(zip(rules, points, strict=True)))
        for size in (1, 2)
        for rules in combinations(range(cards.n_rules), size)
        for points in product((-2, -1, 1, 2), repeat=size)
        if len({int(cards.feature[k]) for k in rules}) == size
        and any(cards.feature[k] == 1 and s < 0 for k, s in zip(rules, points, strict=True))
        and sum(map(abs, points)) <= 3
    ]
    assert result.status == "optimal"
    assert result.objective == pytest.approx(min(allowed), rel=1e-5)
    (points,) = [rule.points for rule in result.tree.rules if rule.feature == 1]
    assert points < 0
    assert np.abs(result.tree.points).sum() <= 3


@pytest.mark.slow
def test_a_search_that_is_stopped_keeps_its_card_and_a_true_bound():
    data = with_ties(8, n=60, p=6)
    problem = Ogrs().build(data)
    stopped = problem.solve("card-enumeration", on_progress=lambda event: True)
    assert stopped.status == "interrupted"
    assert stopped.verified
    assert at_most(stopped.bound, problem.solve("card-enumeration").objective)
    cards = problem.instance.cards
    assert stopped.bound >= saturated(cards.positive, cards.negative).sum() - 1e-9
    assert at_least(problem.solve("card-enumeration", time_limit=0).objective, problem.solve().objective)


@pytest.mark.parametrize("model", [Ogrs, Ors])
def test_whole_weights_are_repeated_samples(model):
    data = with_ties(3) if model is Ogrs else binary(3)
    counts = 1 + np.arange(data.n) % 3
    weighted, again = (
        model(rules=2).build(one).solve() for one in (data.with_weights(counts), repeated(data, counts))
    )
    assert weighted.solution.solver == again.solution.solver == "card-enumeration"
    assert (weighted.status, weighted.verified) == ("optimal", True)
    assert weighted.objective == pytest.approx(again.objective, rel=1e-8)


def test_what_searches_do_not_take():
    many = Ogrs(rules=5, min_points=0, max_points=1).build(with_ties(9, p=5))
    with pytest.raises(Unsupported, match="at most 4 rules that are cuts, and these are 5"):
        many.solve("card-enumeration")
    many = Ors(rules=9, min_points=0, max_points=1).build(binary(1, p=10))
    with pytest.raises(Unsupported, match="at most 8 rules, and these are 9"):
        many.solve("card-enumeration")
    weighted = Ors(rules=2).build(binary(1).with_weights(np.linspace(1, 2, 40)))
    with pytest.raises(Unsupported, match="weights have to be whole numbers"):
        weighted.solve("card-enumeration")
    with pytest.raises(
        Unsupported, match=r"takes score cards of least log-loss .* and oct has trees of univariate splits"
    ):
        get_formulation("oct")().build(binary(1), 1).solve("card-enumeration")


def test_the_cut_loop_pays_columns_once():
    """Levels are rules of one column; the binaries of columns are completed for each card."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(list("rgb"), 30), "z": rng.integers(0, 2, 30)})
    frame["y"] = np.where((frame["c"] == "r") | (rng.random(30) < 0.2), "v", "u")
    data = Dataset.from_frame(frame, "y", scaling="none")
    formulation = Ogrs(rules=2, min_points=-2, max_points=2)
    found = []
    for constrain in (lambda p: feature_budget(p, 1), lambda p: forbid_features(p, "z")):
        problem = formulation.build(data)
        constrain(problem)
        result = problem.solve("cut-loop", time_limit=60, gap=1e-5)
        assert result.verified, result.failed_checks
        assert result.status == "optimal"
        found.append(result)
    # The column z alone is worse.
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-5)
    assert all(name.startswith("c=") for name in found[0].features_used)


@pytest.mark.parametrize(("formulation", "data"), [CASES[0], CASES[2]], ids=["ors", "ogrs"])
def test_without_a_card_to_begin_with_the_same_one_is_found(formulation, data):
    result = formulation.build(data).solve("card-enumeration", start="none")
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best_by_trying(formulation, data), rel=1e-8)
