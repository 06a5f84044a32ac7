"""What is refused, and what is told."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mipforest.data import DataError
from mipforest.errors import SolverError, SolverUnavailable
from mipforest.estimators import (
    FitWarning,
    MargotClassifier,
    NoTreeFound,
    OCTClassifier,
    ORTRegressor,
    UnverifiedTreeWarning,
)
from mipforest.estimators.base import seed_of
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import Problem

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.where(X[:, 0] > 0, "in", "out")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"depth": 0}, "depth is 0"),
        ({"depth": 2.5}, "depth is 2.5"),
        ({"depth": 11}, "10"),
        ({"depth": None}, "depth is None"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"time_limit": "1"}, "time_limit is '1'"),
        ({"gap": None}, "gap is None"),
        ({"gap": -0.1}, "gap is -0.1"),
        ({"threads": 0}, "threads is 0"),
        ({"verbose": -1}, "verbose is -1"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "x"}, "'x'"),
        ({"constraints": "none"}, "constraints is 'none'"),
        ({"on_progress": 1}, "on_progress is 1"),
        ({"C": 0}, "C is 0"),
        ({"C": [1, 2, 3, 4, 5]}, "C has 5 values"),
        ({"variant": "quick"}, "no variant 'quick'"),
        ({"start": "good"}, "no start 'good'"),
        ({"scaling": "max"}, "unknown scaling 'max'"),
        ({"feature_selection": "medium"}, "feature_selection is 'medium'"),
        ({"feature_selection": ["hard"]}, "feature_selection is"),
        ({"feature_selection": "hard", "B": 0}, "B is 0"),
    ],
)
def test_a_setting_that_is_not_allowed_is_named(settings, told):
    with pytest.raises(ValueError) as refused:
        MargotClassifier(**{"time_limit": 0} | settings).fit(X, Y)
    assert told in str(refused.value)


@pytest.mark.parametrize("setting", ["splits", "leaves"])
def test_an_unknown_kind_of_regression_tree_is_named(setting):
    with pytest.raises(ParameterError, match=f"parameter {setting} is 'oblique'; choose from"):
        ORTRegressor(**{setting: "oblique"}).fit(X, X[:, 0])


def test_a_solver_that_is_not_there_is_named():
    with pytest.raises(SolverUnavailable, match="simplicio"):
        MargotClassifier(solver="simplicio").fit(X, Y)


def test_a_solver_option_that_is_not_there_is_named():
    with pytest.raises(SolverError, match="mip_magic"):
        OCTClassifier(depth=1, solver_options={"mip_magic": 1}).fit(X, Y)


def test_three_classes_are_refused_with_the_way_out():
    with pytest.raises(
        DataError, match=r"y has 3: wrap it as sklearn.multiclass.OneVsRestClassifier\(Margot"
    ):
        MargotClassifier().fit(X, np.arange(20) % 3)


@pytest.mark.parametrize("estimator", [MargotClassifier(), OCTClassifier()])
def test_one_class_is_refused(estimator):
    with pytest.raises(DataError, match="one class only, 'in' in all 20 rows"):
        estimator.fit(X, ["in"] * 20)


def test_values_are_no_classes():
    with pytest.raises(ValueError, match="continuous"):
        OCTClassifier().fit(X, X[:, 0])


def test_labels_are_no_values():
    with pytest.raises(ValueError, match="could not convert string to float"):
        ORTRegressor().fit(X, Y)


def test_a_constant_target_is_refused():
    with pytest.raises(DataError, match="nothing to predict"):
        ORTRegressor().fit(X, np.ones(20))


@pytest.mark.parametrize("y", [[*Y[:-1], None], [*Y[:-1], np.nan], pd.Series([*Y[:-1], pd.NA])])
def test_missing_labels_are_refused(y):
    with pytest.raises(DataError, match="y lacks 1 of 20 labels"):
        OCTClassifier().fit(X, np.array(y, dtype=object))


@pytest.mark.parametrize("estimator", [OCTClassifier(), ORTRegressor()])
@pytest.mark.parametrize("table", [pd.DataFrame(X), X])
def test_targets_are_needed_one_for_each_row(estimator, table):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        estimator.fit(table, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator.fit(table, np.arange(19) % 2)


@pytest.mark.parametrize("shape", [(1, 2), (0, 2), (3, 0)])
def test_a_table_without_samples_or_columns_is_refused(shape):
    with pytest.raises(ValueError, match=r"sample|feature"):
        OCTClassifier().fit(pd.DataFrame(np.zeros(shape)), np.arange(shape[0]) % 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 19 + [-1.0], "sample_weight: row 19 has the weight -1"),
        ([1.0] * 19, "sample_weight has shape"),
        ([0.0] * 20, "all 20 weights are zero"),
    ],
)
def test_sample_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=message):
        OCTClassifier().fit(X, Y, sample_weight=weights)


def test_an_unknown_label_is_named_in_pictures():
    with pytest.raises(DataError, match="'elsewhere', which is no class"):
        OCTClassifier(depth=1, time_limit=0).fit(X, Y).to_text(X, ["elsewhere"] * 20)


def impossible(problem):
    problem.model.add("impossible", problem.model["d"].sum() >= 5)


def test_no_tree_is_an_error_that_says_why():
    with pytest.raises(NoTreeFound, match=r"status infeasible.*relax"):
        OCTClassifier(depth=1, start=None, constraints=impossible).fit(X, Y)
    with pytest.raises(NoTreeFound, match=r"status time_limit.*raise time_limit"):
        OCTClassifier(depth=3, start=None, time_limit=0).fit(X, Y)


def test_a_fit_that_fails_leaves_no_earlier_tree_behind():
    fitted = OCTClassifier(depth=1, time_limit=0).fit(X, Y)
    with pytest.raises(NoTreeFound):
        fitted.set_params(constraints=impossible, start=None).fit(X, Y == "in")
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    for method in (fitted.plot, fitted.to_text):
        with pytest.raises(NotFittedError):
            method()


def test_an_unverified_answer_is_told(monkeypatch):
    solve = Problem.solve

    def doubted(self, *args, **kwargs):
        return replace(solve(self, *args, **kwargs), failed_checks=("the numbers differ",))

    monkeypatch.setattr(Problem, "solve", doubted)
    with pytest.warns(UnverifiedTreeWarning, match="not verified: the numbers differ") as told:
        fitted = OCTClassifier(depth=1, time_limit=0).fit(X, Y)
    assert not fitted.verified_
    assert told[0].filename == __file__


def test_a_clean_fit_tells_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OCTClassifier(depth=1).fit(X, Y)


def bias_above(problem):
    problem.model.add("above", problem.model["b"] >= 3.0)


def test_warnings_of_the_solve_are_passed_on():
    with pytest.warns(FitWarning, match="no better bound than .* is proven"):
        MargotClassifier(depth=1, constraints=bias_above).fit(X, Y)


def test_a_whole_number_is_the_seed_itself():
    assert seed_of(42) == 42
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))
    assert seed_of(np.random.RandomState(1)) != seed_of(np.random.RandomState(2))
