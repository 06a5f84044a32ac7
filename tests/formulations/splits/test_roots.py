"""Bounds by the root, from an exact search: in the model, in the result, under constraints."""

import numpy as np
import pytest
from enumerate_trees import absolute_loss, best_tree_value, misclassified, squared_loss
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance import at_most

from formulations.leaves import baseline_error
from formulations.oct import Oct
from formulations.ort import Ort
from mipforest.data import Dataset
from mipforest.problem.result import Result
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology


def numbers(seed, n=14):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 2)), 1)
    y = np.append(X[1:, 0] * X[1:, 1] + rng.random(n - 1), 3.0)
    return Dataset.from_arrays(X, y, task="regression")


def labels(seed, n=14):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 2)), 1)
    y = rng.integers(0, 3, n)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y)


def optimum(formulation, data, depth):
    if isinstance(formulation, Oct):
        cost, unit = misclassified(data.y), baseline_error(data)
    else:
        cost = {"squared": squared_loss, "absolute": absolute_loss}[formulation.loss](data.y)
        unit = cost(list(range(data.n)))
    return best_tree_value(data.X, cost, depth, formulation.alpha * unit, formulation.N_min) / unit


CASES = [
    (Oct(alpha=0.02), labels),
    (Oct(N_min=3), labels),
    (Ort(alpha=0.02), numbers),
    (Ort(loss="absolute", N_min=2), numbers),
]


@pytest.mark.parametrize(("formulation", "data_of"), CASES)
@pytest.mark.parametrize("depth", [1, 3])
def test_building_proves_the_optimum_and_finds_its_tree(formulation, data_of, depth):
    data = data_of(depth)
    instance = formulation.bind(data, Topology(depth))
    expected = optimum(formulation, data, depth)
    assert instance.least_objective == pytest.approx(expected, abs=1e-8)
    assert instance.least_objective <= expected + 1e-12
    assert formulation.evaluate(instance.known, instance) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("formulation", "data_of"), CASES)
def test_a_result_without_time_for_the_solver_has_the_bound_of_building(formulation, data_of):
    data = data_of(3)
    result = formulation.build(data, 3).solve("highs", time_limit=0)
    assert result.verified
    assert result.status == "optimal"
    assert result.bound == pytest.approx(optimum(formulation, data, 3), abs=1e-8)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_the_row_on_the_root_holds_for_every_tree(seed):
    rng = np.random.default_rng(seed)
    for formulation, data_of in CASES:
        problem = formulation.build(data_of(seed % 7), 3)
        for tree in (*_drawn(formulation, problem, rng), problem.instance.known):
            value = formulation.evaluate(tree, problem.instance)
            assert value >= problem.instance.least_objective - 1e-12
            if np.isfinite(value):
                assert not problem.worst_violation(problem.encoded(tree))


def _drawn(formulation, problem, rng):
    """Starts of features left out at random."""
    data = problem.data
    for j in range(data.p):
        X = data.X.copy()
        X[:, j] = rng.permutation(X[:, j])
        other = Dataset.from_arrays(X, data.y, task=data.task)
        known = formulation.bind(other, problem.topology).known
        yield formulation.polish(known, problem.instance)


def solved(problem) -> Result:
    return problem.solve("highs", time_limit=10, gap=1e-6)


def test_added_constraints_keep_the_bound_true():
    data = numbers(4, n=10)
    problem = Ort().build(data, 2)
    u = problem.model["u"]
    first = [k for k, label in enumerate(u.labels[1]) if label.startswith("x0<")]
    problem.model.add("not_the_first", u[:, first] == 0)
    result = solved(problem)
    rest = Dataset.from_arrays(data.X[:, 1:], data.y, task="regression")
    expected = optimum(Ort(), rest, 2)
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(expected, abs=1e-6)
    assert at_most(problem.instance.least_objective, result.bound)
    assert result.bound <= expected + 1e-6


def test_constraints_on_leaf_values_leave_the_bound_of_all_trees():
    problem = Ort().build(numbers(5), 1)
    problem.model.add("high", problem.model["beta0"] >= 0.5)
    assert solved(problem).bound == pytest.approx(problem.instance.least_objective)


def test_a_loosened_model_has_no_bound_from_trees():
    problem = Oct(alpha=0.1).build(labels(6), 3)
    problem.model.remove("root_value")
    problem.model["u"].relax()
    assert problem.least_objective() == -np.inf
    widened = Oct(alpha=0.1).build(labels(6), 3)
    widened.model["q"].set_bounds(0.0, 2.0)
    assert widened.least_objective() == -np.inf


def test_without_time_the_bound_is_still_true():
    data = labels(8)
    instance = Oct().bind(data, Topology(4), TimeBudget(0.0))
    assert instance.least_objective <= optimum(Oct(), data, 4) + 1e-12
