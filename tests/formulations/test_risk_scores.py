"""ORS and OGRS: tangents, variants against trying all cards, identities of the loss, starts, and what they refuse."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.model_selection import train_test_split
from tolerance import at_most, less

from mipforest import get_formulation
from mipforest.cards import PointRule, ScoreCard
from mipforest.data import DataError, Dataset
from mipforest.errors import ParameterError
from mipforest.heuristics.score_cards import (
    CardProblem,
    best_intercepts,
    saturated,
    shortest_between,
)
from mipforest.model import Model
from mipforest.objectives.losses import LogisticLoss, log_loss, tangent_points
from mipforest.solving import solve
from mipforest.trees import Tree

Ors, Ogrs = get_formulation("ors"), get_formulation("ogrs")


def binary(seed, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p))
    y = (X @ rng.integers(-2, 3, p) + rng.normal(0, 1, n) > 0).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, scaling="none")


def with_ties(seed, n=16, p=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, p)) / 2
    y = (X.sum(axis=1) + rng.normal(0, 0.7, n) > p * 0.75).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, scaling="none")


def tangent_optimum(data, formulation):
    """Return the least sum of tangents over all cards and intercepts: at an intercept where some line changes."""
    cards = formulation.bind(data, formulation.build(data).topology).cards.with_all_signs()
    loss = LogisticLoss(tangent_points(formulation.tangents))
    corners = loss.kinks()[:, 0]
    values = []
    sizes = [formulation.rules] if formulation.exact_rules else range(formulation.rules + 1)
    for size in sizes:
        for rules in combinations(range(cards.n_rules), size):
            if len({int(cards.feature[k]) for k in rules}) < size:
                continue
            for points in product(*(cards.points_of(k).tolist() for k in rules)):
                totals = cards.totals(zip(rules, points, strict=True))
                beta = (np.concatenate([corners, -corners])[:, None] - np.unique(totals)).ravel()
                score = totals + beta[:, None]
                value = loss.of_margin(score) @ cards.positive + loss.of_margin(-score) @ cards.negative
                values.append(value.min())
    return min(values)


# ---------------------------------------------------------------------- tangents


@pytest.mark.parametrize(
    ("points", "error", "flat"),
    [("V0", 0.2231, 1.386), ("V1", 0.0835, 2.971), ("V2", 0.0230, 4.564), ("V3", 0.0059, 6.163)],
)
def test_tangents_lie_below_the_log_loss_and_mirror_it(points, error, flat):
    loss, m = LogisticLoss(tangent_points(points)), np.linspace(-9, 9, 20001)
    below = log_loss(m) - loss.of_margin(m)
    assert below.min() >= -1e-12
    assert below.max() == pytest.approx(error, abs=1e-3)
    assert loss.flat_from == pytest.approx(flat, abs=1e-3)
    assert np.abs(loss.of_margin(-m) - loss.of_margin(m) - m).max() < 1e-12


# ---------------------------------------------------------------------- variants


@pytest.mark.parametrize("tangents", ["V0", "V3"])
@pytest.mark.parametrize(
    ("model", "data", "limit"), [(Ors, binary(0, p=4), 3), (Ogrs, with_ties(1), 2)], ids=["ors", "ogrs"]
)
def test_variants_have_the_optimum_of_trying_all_cards(model, data, limit, tangents):
    values = {}
    for variant in model.variants:
        formulation = model(variant=variant, rules=2, min_points=-limit, max_points=limit, tangents=tangents)
        solution = solve(formulation.build(data).model, "highs", gap=1e-8, time_limit=60)
        values[variant] = solution.objective
    expected = tangent_optimum(data, model(rules=2, min_points=-limit, max_points=limit, tangents=tangents))
    assert values == pytest.approx(dict.fromkeys(values, expected), rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", [4, 5])
def test_a_model_without_the_cuts_and_signs_that_no_optimum_needs_has_the_optimum(seed, sign):
    data = with_ties(seed)
    data = Dataset.from_arrays(data.X_raw * [sign, 1, 1], data.y, scaling="none")
    formulation = Ogrs(rules=2, min_points=-2, max_points=2, tangents="V0")
    instance = formulation.build(data).instance
    signed = instance.cards
    needed = np.flatnonzero(signed.up | signed.down)
    assert len(needed) < signed.n_rules
    fewer = replace(
        signed,
        feature=signed.feature[needed],
        cut=signed.cut[needed],
        up=signed.up[needed],
        down=signed.down[needed],
    )
    values = []
    for cards in (signed.with_all_signs(), signed, fewer.with_all_signs(), fewer):
        model = Model()
        formulation.declare(model, replace(instance, cards=cards))
        values.append(solve(model, "highs", gap=1e-8).objective)
    assert values == pytest.approx([tangent_optimum(data, formulation)] * 4, rel=1e-6)


@pytest.mark.slow
def test_epsilon_above_a_gap_is_told():
    X = np.array([[0.0], [0.5], [0.50005], [1.0]])
    data = Dataset.from_arrays(X, [0, 0, 1, 1], scaling="none")
    values, proven = [], []
    for epsilon in (1e-4, 1e-6):
        formulation = Ogrs(variant="paper", rules=1, tangents="V0", epsilon=epsilon)
        values.append(solve(formulation.build(data).model, "highs", gap=1e-9).objective)
        proven.append(formulation.build(data).solve("highs", time_limit=10).bound_for)
    assert values == pytest.approx([1.3863, 0.0], abs=1e-4)
    assert proven == ["constants", "definition"]
    tight = Ogrs(rules=1, tangents="V0").build(data)
    assert solve(tight.model, "highs", gap=1e-9).objective == pytest.approx(0.0, abs=1e-6)


def test_a_matrix_solver_gives_an_interval_around_the_log_loss():
    data = with_ties(2)
    formulation = Ogrs(rules=2, min_points=-2, max_points=2, tangents="V3")
    result = formulation.build(data).solve("highs", time_limit=30, gap=1e-6)
    cards = result.problem.instance.cards
    best = min(
        cards.least_loss(tuple(zip(rules, points, strict=True)))
        for rules in combinations(range(cards.n_rules), 2)
        for points in product((-2, -1, 0, 1, 2), repeat=2)
        if cards.feature[rules[0]] != cards.feature[rules[1]]
    )
    assert result.verified
    assert result.bound <= best + 1e-6 <= result.objective + 2e-6
    assert result.objective - result.bound <= data.n * 0.0059 + 1e-4
    assert "tangents" in " ".join(result.solution.warnings)
    assert at_most(result.to_dict()["tangent_loss"], result.objective)


# ---------------------------------------------------------------------- the loss


def test_the_best_intercept_solves_the_score_equation_within_its_bracket():
    rng = np.random.default_rng(3)
    totals = rng.integers(-9, 10, (50, 6)).astype(float)
    P, Q = rng.integers(0, 9, (2, 50, 6)).astype(float)
    P[:, 0], Q[:, 1] = 1, 1
    intercepts, losses = best_intercepts(totals, P, Q)
    expected = ((P + Q) * expit(totals + intercepts[:, None])).sum(axis=1)
    assert np.abs(expected - P.sum(axis=1)).max() < 1e-9
    middle = np.log(P.sum(axis=1) / Q.sum(axis=1))
    seen = P + Q > 0
    assert (intercepts >= middle - np.where(seen, totals, -np.inf).max(axis=1) - 1e-9).all()
    assert (intercepts <= middle - np.where(seen, totals, np.inf).min(axis=1) + 1e-9).all()
    assert (losses >= saturated(P, Q).sum(axis=1) - 1e-9).all()
    for shift in (-0.1, 0.1):
        score = totals + intercepts[:, None] + shift
        other = (P * np.logaddexp(0, -score) + Q * np.logaddexp(0, score)).sum(axis=1)
        assert less(losses, other)


def optimum(data, **settings):
    return Ogrs(**{"rules": 2, "min_points": -3, "max_points": 3} | settings).build(data).solve().objective


@pytest.mark.slow  # searches are compared with trying all cards elsewhere
def test_identities_of_the_optimum():
    data = with_ties(4, n=24)
    X, y, value = data.X_raw, data.y, optimum(data)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])

    def of(X, y):
        return optimum(Dataset.from_arrays(X, y, scaling="none"))

    assert of(X, 1 - y) == pytest.approx(value, rel=1e-8)
    assert of(np.vstack([X, X]), np.concatenate([y, y])) == pytest.approx(2 * value, rel=1e-8)
    assert of(X[rows][:, columns], y[rows]) == pytest.approx(value, rel=1e-8)
    assert of(np.exp(X) - 3, y) == pytest.approx(value, rel=1e-8)


@pytest.mark.slow
def test_more_freedom_is_never_worse():
    data = with_ties(5, n=24)
    by_rules = [optimum(data, rules=rules) for rules in (1, 2, 3)]
    by_points = [optimum(data, min_points=-q, max_points=q) for q in (1, 2, 3)]
    assert (np.diff(by_rules) <= 1e-8).all()
    assert (np.diff(by_points) <= 1e-8).all()
    assert optimum(data, min_support=4) >= optimum(data) - 1e-8
    stumps = Dataset.from_arrays(data.X_raw >= 1, data.y, scaling="none")
    ors = Ors(rules=2, min_points=-3, max_points=3).build(stumps).solve().objective
    assert optimum(data) <= ors + 1e-8
    tangents = [
        solve(
            Ogrs(rules=2, min_points=-1, max_points=1, tangents=v).build(data).model, "highs", gap=1e-8
        ).objective
        for v in ("V0", "V1", "V2", "V3")
    ]
    assert (np.diff(tangents) >= -1e-6).all()
    assert tangents[-1] <= optimum(data, min_points=-1, max_points=1) + 1e-6


def test_signs_that_no_optimum_needs_take_nothing_away():
    for seed in range(2):
        data = with_ties(seed, n=12, p=2)
        cards = CardProblem.of(data, rules=2, least=-2, most=2)
        assert not (cards.up.all() and cards.down.all())
        best = [
            min(
                problem.least_loss(tuple(zip(rules, points, strict=True)))
                for rules in combinations(range(problem.n_rules), 2)
                if problem.feature[rules[0]] != problem.feature[rules[1]]
                for points in product(*([0, *problem.points_of(k).tolist()] for k in rules))
            )
            for problem in (cards, cards.with_all_signs())
        ]
        assert best[0] == pytest.approx(best[1], rel=1e-10)


# ---------------------------------------------------------------------- cards


def test_rules_part_the_training_samples_and_thresholds_stay_in_their_interval():
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.normal(0, 1, 60), rng.integers(0, 2, 60), rng.normal(50, 20, 60)])
    data = Dataset.from_arrays(X, (X[:, 0] + X[:, 1] + X[:, 2] / 40 > 2).astype(int), scaling="none")
    card = Ogrs().build(data).solve().tree
    plain = Ogrs(round_thresholds=False).build(data).solve().tree
    assert (card.totals(X) == plain.totals(X)).all()
    assert len({rule.feature for rule in card.rules}) == len(card.rules)
    for rule in card.rules:
        assert 0 < rule.holds(X).sum() < len(X)
        assert rule.low < rule.threshold <= rule.high
        assert rule.threshold == 0.5 or rule.feature != 1
        assert rule.binary == (rule.feature == 1)


@pytest.mark.parametrize(
    ("low", "high", "shortest"),
    [
        (107, 108, 108),
        (0.0, 1.0, 1.0),
        (27.4, 28.3, 28.0),
        (-1.0, 5.0, 0.0),
        (0.132, 0.1341, 0.133),
        (99, 212, 200),
    ],
)
def test_thresholds_have_few_digits(low, high, shortest):
    assert shortest_between(low, high) == pytest.approx(shortest)
    assert low < shortest_between(low, high) <= high


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("variant", ["tight", "paper"])
@pytest.mark.parametrize("start", ["exchange", "beam", "rule-by-rule"])
def test_starts_are_cards_that_a_solver_takes(variant, start):
    data = with_ties(7, n=30)
    problem = Ogrs(variant=variant, rules=3).build(data)
    card = problem.start_tree(start)
    values, warnings = problem.start_values(card)
    assert values is not None
    assert warnings == []
    value = problem.formulation.evaluate(card, problem.instance)
    assert problem.model.objective(values) == pytest.approx(value, abs=1e-6)
    assert value >= Ogrs(rules=3).build(data).solve().objective - 1e-8
    result = problem.solve("highs", start=card.nonnegative(), time_limit=0)
    assert result.objective == pytest.approx(value, abs=1e-6)


def test_a_start_of_another_kind_is_refused():
    problem = Ogrs().build(with_ties(8))
    tree = Tree(1, np.eye(3)[:1], np.array([-0.5]), [0, 1], ("0", "1"))
    with pytest.raises(ValueError, match="the start is a tree, and ogrs finds a score card"):
        problem.solve(start=tree)
    card = ScoreCard((PointRule(0, 0.5, 1),), 0.0, ("0", "1"), 3)
    with pytest.raises(ValueError, match="the start is a score card, and oct finds a tree"):
        get_formulation("oct")().build(with_ties(8).with_scaling("minmax"), 1).solve(start=card)


# ---------------------------------------------------------------------- what is refused


def test_what_the_models_do_not_take():
    data = with_ties(9)
    with pytest.raises(DataError, match="features that are 0 or 1"):
        Ors().build(data)
    with pytest.raises(DataError, match="3 features"):
        Ogrs(rules=4, exact_rules=True).build(data)
    assert "the card has fewer" in Ogrs(rules=4).build(data).instance.notes[0]
    with pytest.raises(ParameterError, match="has no depth"):
        Ogrs().build(data, 2)
    with pytest.raises(ParameterError, match="give their depth"):
        get_formulation("oct")().build(data)
    with pytest.raises(DataError, match="scaled"):
        Ogrs().build(data.with_scaling("minmax"))
    with pytest.raises(DataError, match="parts the samples"):
        Ogrs().build(Dataset.from_arrays(np.ones((4, 2)), [0, 1, 0, 1], scaling="none"))
    for wrong in ({"min_points": 1}, {"min_points": 0, "max_points": 0}, {"tangents": "4"}):
        with pytest.raises(ParameterError):
            Ogrs(**wrong)


@pytest.mark.parametrize(("model", "data", "limit"), [(Ors, binary(3, p=4), 2), (Ogrs, with_ties(11), 2)])
def test_variants_with_exactly_as_many_rules_have_the_optimum_of_trying_all_cards(model, data, limit):
    settings = {"rules": 2, "min_points": -limit, "max_points": limit, "tangents": "V0", "exact_rules": True}
    values = {
        variant: solve(model(variant=variant, **settings).build(data).model, "highs", gap=1e-8).objective
        for variant in model.variants
    }
    assert values == pytest.approx(dict.fromkeys(values, tangent_optimum(data, model(**settings))), rel=1e-6)


# ---------------------------------------------------------------------- the papers' data

#: Optima of the log-loss that an independent prototype has proven, three rules (ORS: number of rules given).
PROVEN = {
    ("ogrs", "haberman", 3): 122.9275,
    ("ogrs", "cleveland", 3): 96.6982,
    ("ogrs", "diabetes", 3): 304.6373,
    ("ogrs", "wholesale", 3): 52.4953,
    ("ogrs", "parkinsons", 3): 34.6072,
    ("ogrs", "spectf", 3): 70.4906,
    ("ogrs", "ionosphere", 3): 65.8320,
    ("ogrs", "breast_cancer_diagnostic", 3): 50.1382,
    ("ors", "tic_tac_toe", 3): 424.5123,
    ("ors", "tic_tac_toe", 5): 388.1579,
    ("ors", "spambase", 3): 1296.6470,
}
#: Sets whose optimum takes minutes to prove: the start alone is compared.
LONG = ("ionosphere", "breast_cancer_diagnostic")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name", "rules"), PROVEN)
def test_proven_optima_of_the_papers_data(model, name, rules, papers_data):
    table = pd.read_csv(papers_data / f"{name}.csv").dropna()
    y = table.pop("target").to_numpy()
    y = (y > 0) if name == "cleveland" else y == y.max()
    X = table.to_numpy(float) > 0 if model == "ors" else table.to_numpy(float)
    X, _, y, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    data = Dataset.from_arrays(X.astype(float), y.astype(int), scaling="none")
    problem = get_formulation(model)(rules=rules).build(data)
    known = PROVEN[model, name, rules]
    begun = problem.formulation.evaluate(problem.start_tree(), problem.instance)
    assert begun >= known - 1e-4
    if name in LONG:
        assert begun == pytest.approx(known, rel=1e-6)
    else:
        result = problem.solve(time_limit=300)
        assert (result.status, result.verified) == ("optimal", True)
        assert result.objective == pytest.approx(known, rel=1e-6)
