"""``epsilon=relative``: its number, where it is stated, what it changes, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerance import at_least, at_most, same

import mipforest
from formulations.splits.linear import GAP, LEAST_GAP, relative_gap
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.estimators import FitWarning
from mipforest.problem.parameters import ParameterError
from mipforest.trees.sides import SIDE_TOLERANCE

pytestmark = pytest.mark.usefixtures("few_penalties")

MODELS = ("margot", "hfs-margot", "sfs-margot", "olct", "budgeted-olct", "loss-optimal", "svm-leaves")


def line(n: int, repeats: int = 1) -> Dataset:
    X = np.repeat(np.arange(n, dtype=float), repeats)[:, None]
    return Dataset.from_arrays(X, np.arange(n * repeats) % 2, name="line", scaling="minmax")


def drawn(n: int = 400, p: int = 2, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    return Dataset.from_arrays(X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.4), name="drawn", scaling="none")


def test_the_number_is_a_tenth_of_the_average_gap_between_the_margins():
    assert same(relative_gap(line(1001))[0], 0.1 * 2 / 1000)
    assert relative_gap(line(2000))[0] == 1e-4  # exact: two digits of 1.0005e-4


@given(st.integers(2, 3000), st.integers(1, 3))
def test_equal_samples_count_once_and_the_number_has_limits(n, repeats):
    number, count = relative_gap(line(n, repeats))
    assert count == n  # exact: counted
    assert number == relative_gap(line(n))[0]  # exact: the same computation
    assert LEAST_GAP <= number <= GAP


def test_up_to_201_samples_it_is_the_default_and_it_never_falls_to_the_tolerance_of_sides(monkeypatch):
    assert relative_gap(line(201))[0] == GAP  # exact: the default itself
    assert relative_gap(line(203))[0] < GAP
    monkeypatch.setattr("formulations.splits.linear.SHARE_OF_GAP", 1e-12)
    assert relative_gap(line(203))[0] == LEAST_GAP  # exact: the limit itself
    assert at_least(LEAST_GAP, 100 * SIDE_TOLERANCE)


@pytest.mark.parametrize("model", MODELS)
def test_models_record_the_number(model):
    formulation = mipforest.get_formulation(model)(epsilon="relative")
    assert formulation.parameters()["epsilon"] == "relative"
    problem = formulation.build(drawn(), 1)
    number = problem.formulation.epsilon
    assert number == relative_gap(drawn())[0]  # exact: the same computation
    assert problem.formulation.parameters()["epsilon"] == number
    assert problem.structure.epsilon == number
    assert problem.instance.notes[0] == f"epsilon=relative is {number:g}, for 400 different samples"
    json.dumps(problem.formulation.parameters(), allow_nan=False)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("model", ["margot", "svm-leaves"])
@pytest.mark.parametrize("solver", ["local-search", "highs"])
def test_results_state_the_number_and_keep_the_gap(model, solver):
    problem = mipforest.get_formulation(model)(epsilon="relative", C=10.0).build(drawn(n=250), 2)
    found = problem.solve(solver, time_limit=2, threads=1)
    epsilon = problem.formulation.epsilon
    assert epsilon < GAP
    assert found.verified, found.failed_checks
    assert found.to_dict()["parameters"]["epsilon"] == epsilon
    assert any(text.startswith("epsilon=relative is") for text in found.solution.warnings)
    scores = found.tree.unscaled().scores(problem.data.X)[:, 0]
    assert at_least(scores[scores >= 0].min(), 0.0)
    assert at_most(scores[scores < 0].max(), -epsilon * (1 - 1e-3))  # a solver keeps rows to its tolerance


def test_a_smaller_gap_leaves_out_fewer_trees():
    """A tree that keeps the default gap keeps the relative one, so the best value is no larger."""
    data = drawn(n=250)
    Margot = mipforest.get_formulation("margot")
    tree = Margot(C=10.0).build(data, 2).start_tree()
    values = []
    for epsilon in (GAP, "relative"):
        problem = Margot(C=10.0, epsilon=epsilon).build(data, 2)
        assert problem.model.violations(problem.formulation.encode(tree, problem.instance)).max <= 1e-6
        values.append(problem.formulation.evaluate(tree, problem.instance))
    assert same(*values)


@pytest.mark.slow
def test_routing_finds_the_optimum_for_the_number():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.integers(0, 8, (9, 2)) / 7.0, 40, axis=0) + rng.uniform(0, 1e-3, (360, 2))
    y = np.repeat(rng.integers(0, 2, 9), 40)
    data = Dataset.from_arrays(X, y, scaling="none")
    relative = mipforest.get_formulation("svm-leaves")(epsilon="relative").build(data, 2)
    found = relative.solve("routing", time_limit=5, threads=1)
    number = relative.formulation.epsilon
    again = mipforest.get_formulation("svm-leaves")(epsilon=number).build(data, 2)
    assert found.verified, found.failed_checks
    assert again.formulation.evaluate(found.tree.unscaled(), again.instance) == pytest.approx(
        found.objective, rel=1e-6
    )


def test_a_tree_of_tiny_weights_comes_back_from_its_point():
    """Weights of a node without a loss are as small as the gap: none of them is a solver's residue."""
    data = line(2000)
    problem = mipforest.get_formulation("svm-leaves")(epsilon=1e-7).build(data, 2)
    tree = problem.start_tree()
    assert 0 < np.abs(tree.w[0]).max() < 1e-3
    values = problem.formulation.encode(tree, problem.instance)
    back = problem.formulation.decode(values, problem.instance)
    assert np.array_equal(back.scores(data.X)[:, 0] >= 0, tree.scores(data.X)[:, 0] >= 0)


def test_estimators_take_the_word():
    data = drawn(n=250)
    with pytest.warns(FitWarning, match="epsilon=relative is 0.0008"):
        fitted = mipforest.MargotClassifier(depth=1, epsilon="relative", time_limit=5).fit(data.X, data.y)
    assert fitted.verified_


@pytest.mark.parametrize("epsilon", ["relatively", "1e-3", 0.0, 1.0, -1.0, True])
def test_other_words_and_numbers_out_of_range_are_refused(epsilon):
    with pytest.raises(ParameterError, match="parameter epsilon") as refused:
        mipforest.get_formulation("margot")(epsilon=epsilon)
    assert isinstance(refused.value, MipforestError)
    if epsilon == "relatively":
        assert "number, or relative" in str(refused.value)
