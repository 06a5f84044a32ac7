"""The exact search against enumeration of all trees and integer programmes, and as a tree search."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight
from tolerance import at_most, in_order, same
from univariate_cases import Case, hold_for_all, leaf_cost

from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort
from formulations.ort_l import OrtL
from formulations.quantile import Quantile
from mipforest import solve
from mipforest.data import Dataset, load
from mipforest.errors import LicenseLimit, Unsupported
from mipforest.heuristics.thresholds import find_thresholds
from mipforest.objectives.leaf_losses import ClassLoss, PinballLoss
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches import medians
from mipforest.searches.exact import cover_search
from mipforest.searches.exact import search as exact_module
from mipforest.searches.exact.search import exact_search, in_whole_units

#: The first ones have every loss with and without weights, costs of classes, leaf sizes, at every depth.
FIRST = 24


def agree_with_enumeration(seed):
    case = Case(seed)
    optimum = case.enumerated(np.arange(case.data.n), case.depth)
    found = exact_search(case.problem, case.depth)
    assert found.ended
    assert found.value == pytest.approx(optimum, abs=1e-9)
    assert found.bound == pytest.approx(optimum, abs=1e-8)
    assert found.bound <= optimum + 1e-12
    assert case.value(found.chosen) == pytest.approx(optimum, abs=1e-9)

    complete = exact_search(case.problem, case.depth, complete=True)
    assert complete.value == pytest.approx(optimum, abs=1e-9)
    limited = exact_search(case.problem, case.depth, most_nodes=seed % 5)
    assert limited.bound <= optimum + 1e-12 <= limited.value + 1e-9
    X, thresholds = case.data.X, case.thresholds
    for k in range(len(thresholds)):
        left = X[:, thresholds.feature[k]] < thresholds.value[k]
        best = case.split_cost + sum(
            case.enumerated(np.flatnonzero(side), case.depth - 1) for side in (left, ~left)
        )
        for outcome in (found, complete, limited):
            assert outcome.by_threshold[k] <= best + 1e-12
        if case.depth <= 2:
            assert complete.by_threshold[k] == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("seed", range(FIRST))
def test_value_tree_and_bounds_are_those_of_enumeration(seed):
    agree_with_enumeration(seed)


@pytest.mark.slow
def test_value_tree_and_bounds_are_those_of_enumeration_in_more_cases():
    hold_for_all(agree_with_enumeration, range(FIRST, 500))


@pytest.mark.parametrize(("depth", "K"), [(2, 2), (2, 3), (3, 2)])
def test_balanced_weights_are_searched_as_whole_numbers(depth, K, monkeypatch):
    rng = np.random.default_rng(depth + K)
    X, y = rng.random((150, 3)), rng.choice(K, 150, p=np.array([6.0, 3.0, 1.0][:K]) / sum([6, 3, 1][:K]))
    weight = compute_sample_weight("balanced", y)
    problem = UnivariateProblem(
        thresholds=find_thresholds(Dataset.from_arrays(X, y)),
        y=y,
        loss=ClassLoss(),
        weight=weight,
        unit=weight.sum(),
        split_cost=0.4,
    )
    whole = in_whole_units(problem)
    assert (whole.weights == np.rint(whole.weights)).all()
    np.testing.assert_allclose(whole.weights / whole.unit, weight / problem.unit, rtol=1e-14)
    assert same(whole.split_cost / whole.unit, problem.split_cost / problem.unit)
    found = exact_search(problem, depth)
    monkeypatch.setattr(exact_module, "in_whole_units", lambda problem: problem)
    other = exact_search(problem, depth)
    assert same(found.value, other.value)
    assert same(found.bound, other.bound)


def test_weights_without_a_unit_stay_as_they_are():
    y = np.array([0, 1, 0, 1, 1])
    thresholds = find_thresholds(Dataset.from_arrays(np.arange(5.0)[:, None], y))
    for weight in (
        np.array([1.0, 2.0, 1.0, 3.0, 2.0]),  # whole already
        np.array([1.0, 2.0**0.5, 1.0, 1.0, 1.0]),  # no fraction
        np.array([1.0, 1e9 + 0.5, 1.0, 1.0, 1.0]),  # too heavy for sums of whole numbers
    ):
        problem = UnivariateProblem(thresholds=thresholds, y=y, loss=ClassLoss(), weight=weight)
        assert in_whole_units(problem) is problem


def test_a_split_that_gains_nothing_but_rounding_is_none():
    """Sums of weights and costs of classes differ by 1e-16 with the order of the samples."""
    agree_with_enumeration(411)


@pytest.mark.parametrize(("seed", "depth"), [(2, 3), (5, 4)])
def test_the_outcome_is_the_same_for_any_number_of_threads(seed, depth, monkeypatch):
    data = medium(seed, n=70)
    problem = Oct(alpha=0.01).structure(Oct(alpha=0.01).build(data, depth).instance)
    alone = exact_search(problem, depth)
    monkeypatch.setattr(cover_search, "LONG", 0)
    one, two = (exact_search(problem, depth, threads=threads) for threads in (1, 2))
    assert same(alone.value, one.value)
    assert same(one.value, two.value)
    assert one.ended
    assert two.ended
    assert one.nodes == two.nodes
    assert (one.chosen == two.chosen).all()
    assert (one.by_threshold == two.by_threshold).all()
    assert two.by_threshold.min() >= two.bound - 1e-9
    told = []
    stopped = exact_search(
        problem, depth, threads=2, on_progress=lambda *event: told.append(event) or len(told) > 2
    )
    for value, bound in [(stopped.value, stopped.bound), *(event[:2] for event in told)]:
        assert at_most(bound, alone.value)
        assert at_most(alone.value, value)
    assert (stopped.by_threshold >= stopped.bound - 1e-9).all()


def agree_with_an_integer_programme(seed):
    """Compare with rows and enumeration, and the local search with the optimum and with CART."""
    case = Case(seed)
    if case.loss == "deviance":
        return  # its rows are tangents
    rows, charged = np.arange(case.data.n), case.problem
    data = case.data if charged.weight is None else case.data.with_weights(charged.weight)
    costs = charged.loss.costs if isinstance(charged.loss, ClassLoss) else None
    if costs is not None:
        # A model predicts classes that are there.
        classes = np.unique(charged.y)
        costs = costs[np.ix_(classes, classes)]
        case.cost = leaf_cost(case.loss, data.y, data.weights, costs)
    baseline = case.cost(rows)
    charges = {"variant": "paper", "alpha": charged.split_cost / baseline, "N_min": charged.N_min}
    if isinstance(charged.loss, ClassLoss):
        formulation = Oct(**charges, costs=None if costs is None else tuple(map(tuple, costs.tolist())))
    elif isinstance(charged.loss, PinballLoss):
        formulation = Quantile(**charges, tau=case.level)
    else:
        formulation = Ort(**charges, loss=charged.loss.name)
    depth = min(case.depth, 2 + seed % 2)
    problem = formulation.build(data, depth)
    exact = problem.solve("exact-search", gap=1e-9)
    local = problem.solve("local-search", start=None, solver_options={"starts": 2, "kicks": 5})
    cart = formulation.evaluate(formulation.start("cart", problem.instance), problem.instance)
    for result in (exact, local):
        assert result.verified, result.failed_checks
    assert exact.status == "optimal"
    assert exact.objective == pytest.approx(case.enumerated(rows, depth) / baseline, abs=1e-8)
    assert exact.objective - 1e-9 <= local.objective <= cart + 1e-9
    # The rows alone: nothing that a search has found is known to the solver.
    settings = {"time_limit": 20, "gap": 1e-7, "threads": 1}
    try:
        by_rows = solve(problem.model, "gurobi", **settings)
    except LicenseLimit:
        by_rows = solve(problem.model, "highs", **settings)
    assert by_rows.bound <= exact.objective + 1e-6
    assert by_rows.objective >= exact.objective - 1e-5
    if by_rows.status == "optimal":
        assert by_rows.objective == pytest.approx(exact.objective, abs=1e-5)


@pytest.mark.slow
def test_an_integer_programme_has_the_same_optimum_and_the_local_search_is_between_it_and_cart():
    hold_for_all(agree_with_an_integer_programme, range(500))


def test_a_tree_that_is_known_and_optimal_stays():
    case = Case(3)
    optimum = case.enumerated(np.arange(case.data.n), case.depth)
    found = exact_search(case.problem, case.depth, best=optimum)
    assert found.chosen is None
    assert same(found.value, optimum)


def test_losses_around_quantiles_of_what_is_left_are_the_least(monkeypatch):
    monkeypatch.setattr(medians, "move_to_quantile", medians.move_to_quantile.py_func)
    monkeypatch.setattr(medians, "loss_around", medians.loss_around.py_func)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        y = np.sort(rng.integers(0, 6, n) / 2.0)
        level = (0.5, 0.9, 0.25)[seed % 3]
        rows = SimpleNamespace(
            value=np.column_stack([np.ones(n), y]), target=y, place=np.arange(n), level=level
        )
        room = SimpleNamespace(before=np.arange(n) - 1, after=np.append(np.arange(1, n), -1))
        middle, below, below_y = np.zeros(1, int), np.zeros(1), np.zeros(1)
        weight, weight_y, left = np.array([float(n)]), np.array([y.sum()]), list(range(n))
        for row in rng.permutation(n):
            left.remove(row)
            loss = medians.remove.py_func(rows, row, 0, middle, weight, weight_y, below, below_y, room)
            expected = leaf_cost("absolute", y, np.ones(n), None, level)(np.array(left)) if left else 0.0
            assert loss == pytest.approx(expected, abs=1e-9)


# ---------------------------------------------------------------------- as a tree search


def medium(seed, *, n=60, classes=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 4)), 2)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.random(n), np.linspace(0.3, 1.3, classes - 1))
    return Dataset.from_arrays(X, y)


@pytest.mark.parametrize(
    "formulation", [Oct(alpha=0.01), pytest.param(Oct(N_min=3, variant="paper"), marks=pytest.mark.slow)]
)
def test_the_search_agrees_with_a_matrix_solver_on_classes(formulation):
    problem = formulation.build(medium(2, n=16), 2)
    by_search, by_matrix = problem.solve("exact-search"), problem.solve("highs", gap=1e-6, time_limit=5)
    assert by_search.status == "optimal"
    assert by_search.verified, by_search.failed_checks
    assert by_search.objective <= by_matrix.objective + 1e-6
    assert by_matrix.bound <= by_search.objective + 1e-6


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("depth", [1, 3])
def test_regression_trees_are_verified_and_no_worse_than_any_start(loss, depth):
    data = load("diabetes").take(np.arange(0, 442, 12))
    problem = Ort(loss=loss, N_min=3, alpha=0.01).build(data, depth)
    result = problem.solve("exact-search", gap=1e-6)
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert result.gap <= 1e-6
    assert at_most(
        result.objective, problem.formulation.evaluate(problem.start_tree("cart"), problem.instance)
    )


def test_every_bound_is_below_the_optimum_and_every_value_above():
    problem = Oct(variant="paper").build(medium(5, n=60, classes=4), 3)
    optimum = problem.solve("exact-search", time_limit=60)
    assert optimum.status == "optimal"
    stopped = problem.solve("exact-search", on_progress=lambda event: event.nodes > 20)
    for result in (optimum, stopped):
        events = result.solution.events
        assert all(event.bound <= optimum.objective + 1e-12 <= event.objective + 1e-9 for event in events)
        assert in_order(event.bound for event in events)
    assert stopped.status in ("interrupted", "optimal")
    assert stopped.verified


def test_without_time_the_start_remains():
    problem = Oct(variant="paper").build(medium(6), 3)
    result = problem.solve("exact-search", time_limit=0, start="cart")
    assert result.verified
    assert result.status in ("time_limit", "optimal")
    assert at_most(result.objective, result.solution.start_objective)


def test_other_models_are_refused_with_the_way_out():
    data = medium(1, n=20)
    with pytest.raises(Unsupported, match=r"univariate splits and constant leaves.*solver='highs'"):
        OctH().build(data, 1).solve("exact-search")
    numbers = load("diabetes").take(np.arange(15))
    with pytest.raises(Unsupported, match="ort-l has trees with additive losses"):
        OrtL().build(numbers, 1).solve("exact-search")


def test_added_constraints_are_refused_with_who_takes_them():
    problem = Oct().build(medium(1, n=20), 2)
    problem.model.minimize(problem.model.objective_expression + 0.1 * problem.model["c"][0, 0])
    with pytest.raises(Unsupported, match="sees no rows; use a matrix solver"):
        problem.solve("exact-search")


def test_rows_that_all_trees_lose_alike_have_a_leaf():
    X, y = np.repeat(np.arange(3.0), 2)[:, None], np.tile([0, 1], 3)
    thresholds = find_thresholds(Dataset.from_arrays(X, y, scaling="none"))
    outcome = exact_search(UnivariateProblem(thresholds=thresholds, y=y, loss=ClassLoss(), split_cost=0.1), 2)
    assert outcome.chosen.tolist() == [-1, -1, -1]
    assert same(outcome.value, 3.0)
    assert at_most(outcome.bound, 3.0)
