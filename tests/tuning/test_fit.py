"""Folds, which samples they have and how these are scaled; and the better start of a fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest import DataError, Dataset, get_formulation, load
from mipforest.tuning import TuningError
from mipforest.tuning.fit import better_start, make_folds


@pytest.mark.parametrize("source", ["iris", "diabetes"])
def test_every_sample_is_validated_once(source):
    data = load(source)
    folds = make_folds(data, 4, seed=3)
    assert sorted(label for fold in folds for label in fold.validation.samples) == sorted(data.samples)
    for fold in folds:
        assert not set(fold.train.samples) & set(fold.validation.samples)
        assert fold.train.n + fold.validation.n == data.n


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_the_scaling_is_fitted_on_the_training_samples_of_the_fold(scaling):
    data = load("iris").with_scaling(scaling)
    for fold in make_folds(data, 3, seed=0):
        alone = Dataset.from_arrays(fold.train.X_raw, fold.train.y, scaling=scaling)
        np.testing.assert_array_equal(fold.train.X, alone.X)
        assert fold.train.encoding.scaling == scaling


@given(st.lists(st.integers(4, 12), min_size=2, max_size=4), st.integers(2, 4), st.integers(0, 9))
def test_every_fold_has_its_share_of_every_class(counts, folds, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    data = Dataset.from_arrays(np.arange(len(y), dtype=float)[:, None], y, task="classification")
    shares = np.array([fold.validation.class_counts for fold in make_folds(data, folds, seed)])
    assert np.all(shares >= np.array(counts) // folds)
    assert np.all(shares <= -(-np.array(counts) // folds))


def test_the_seed_decides():
    data = load("iris")
    one, same, other = (make_folds(data, 3, seed)[0].validation.samples for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_class_of_few_samples_is_refused():
    data = Dataset.from_arrays(np.arange(12.0)[:, None], ["a"] * 9 + ["b"] * 3)
    with pytest.raises(DataError, match=r"4 folds need 4 samples of every class.*b \(3\); take 3 folds"):
        make_folds(data, 4, seed=0)
    assert len(make_folds(data, 3, seed=0)) == 3


def test_a_class_of_one_sample_has_no_folds():
    data = Dataset.from_arrays(np.arange(12.0)[:, None], ["a"] * 11 + ["b"])
    with pytest.raises(DataError, match=r"b \(1\); merge classes"):
        make_folds(data, 2, seed=0)


def test_a_class_that_does_not_occur_asks_for_nothing():
    data = load("iris")
    two = data.take(data.y < 2)
    assert len(make_folds(two, 4, seed=0)) == 4


def test_a_regression_of_few_samples_is_refused():
    data = load("diabetes").take(np.arange(7))
    with pytest.raises(DataError, match="7 samples, 4 folds of a regression need 8"):
        make_folds(data, 4, seed=0)


@pytest.mark.parametrize("folds", [1, 0, -2, 2.5, True, "4"])
def test_what_is_no_number_of_folds_is_refused(folds):
    with pytest.raises(TuningError, match="2 or more"):
        make_folds(load("iris"), folds, seed=0)


pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture(scope="module")
def fold():
    return make_folds(load("iris").binarise(["versicolor"]), 3, seed=0)[0]


def chain(name, parameter, values, depth, fold):
    """Solve for one value after the other, for a few nodes; give start, default start and tree of each."""
    neighbour = None
    for value in values:
        problem = get_formulation(name)(**{parameter: value}).build(fold.train, depth)
        start = better_start(problem, neighbour, seed=0)
        alone = problem.solve("highs", start="default", time_limit=0)
        solved = problem.solve(
            "highs", start=start.tree, time_limit=1, threads=1, solver_options={"mip_max_nodes": 1}
        )
        yield start, alone, solved
        neighbour = solved.solved_tree


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("name", "parameter", "values", "depth"),
    [
        pytest.param(
            "margot", "C", [0.01, 100.0], 2, marks=pytest.mark.slow
        ),  # hfs-margot stands for it by default
        ("hfs-margot", "B", [3, 2, 1], 1),
        ("oct", "alpha", [0.1, 0.0], 2),
        ("oct-h", "alpha", [0.1, 0.0], 1),
    ],
)
def test_the_start_is_feasible_and_never_worse_than_the_default_alone(fold, name, parameter, values, depth):
    for start, alone, solved in chain(name, parameter, values, depth, fold):
        assert start.objective <= alone.objective * (1 + 1e-9) + 1e-12
        assert solved.objective <= start.objective * (1 + 1e-6) + 1e-9
        assert not [warning for warning in solved.solution.warnings if "violates" in warning]


@pytest.mark.slow
def test_a_better_neighbour_is_taken(fold):
    """The optimum of MARGOT for another C is ahead of its own start."""
    margot = get_formulation("margot")
    before = margot(C=1.0).build(fold.train, 2)
    neighbour = before.solve("routing", time_limit=10, threads=1).solved_tree
    problem = margot(C=10.0).build(fold.train, 2)
    start = better_start(problem, neighbour, seed=0)
    assert start.name == "neighbour"
    assert start.objective == pytest.approx(problem.formulation.evaluate(start.tree, problem.instance))
    assert start.objective < 0.9 * problem.formulation.evaluate(
        problem.start_tree("default"), problem.instance
    )


def test_a_neighbour_beyond_the_budget_is_not_taken(fold):
    hfs = get_formulation("hfs-margot")
    greedy = hfs(C=100.0, B=4).build(fold.train, 1).solve("highs", time_limit=10).solved_tree
    assert len(greedy.features_used().overall) > 1
    problem = hfs(C=100.0, B=1).build(fold.train, 1)
    start = better_start(problem, greedy, seed=0)
    assert len(start.tree.features_used().overall) == 1
