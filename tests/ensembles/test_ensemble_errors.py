"""Targets that cannot be used: one clear message each."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mipforest.ensembles.libraries as loading_module
import mipforest.ensembles.libraries as xgboost_module
from mipforest.data import Dataset, load
from mipforest.ensembles import EnsembleError, ensemble_for


@pytest.fixture(scope="module")
def cancer():
    return load("breast_cancer")


def forest(X, y, **options):
    return RandomForestClassifier(**{"n_estimators": 3, "max_depth": 2, "random_state": 0} | options).fit(
        X, y
    )


def refused(target, data, depth=2):
    with pytest.raises(EnsembleError) as caught:
        ensemble_for(target, data, depth)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("random-forrest", ["'random-forrest'", "did you mean 'random-forest'", ".joblib"]),
        ("random-forest:", ["trees=N"]),
        ("random-forest:depth=3", ["'depth=3'", "trees=N and seed=N"]),
        ("random-forest:trees", ["trees=", "whole number"]),
        ("random-forest:trees=0", ["trees=0", "from 1 to 10000"]),
        ("random-forest:trees=1.5", ["trees=1.5"]),
        ("random-forest:trees=3,trees=4", ["twice"]),
        ("xgboost:seed=-1", ["seed=-1", "from 0"]),
        ("xgboost:seed=4294967296", ["seed=4294967296"]),
    ],
)
def test_unreadable_names(cancer, text, words):
    message = refused(text, cancer)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (RandomForestClassifier(), ["RandomForestClassifier is not fitted", "fit(X, y)"]),
        (GradientBoostingClassifier(), ["not fitted"]),
        (RandomForestRegressor(), ["RandomForestRegressor is a regressor"]),
        (DecisionTreeClassifier(), ["DecisionTreeClassifier", "can be taken"]),
        (make_pipeline(RandomForestClassifier()), ["Pipeline", "original units"]),
        (42, ["int", "can be taken"]),
        (None, ["NoneType"]),
    ],
)
def test_foreign_or_unfitted_objects(cancer, target, words):
    message = refused(target, cancer)
    assert all(word in message for word in words), message


def test_unfitted_xgboost(cancer):
    assert "not fitted" in refused(pytest.importorskip("xgboost").XGBClassifier(), cancer)


def test_other_width(cancer):
    message = refused(forest(cancer.X_raw[:, :7], cancer.y), cancer)
    assert "7 features" in message
    assert "has 30" in message


def test_other_names(cancer):
    frame = pd.DataFrame(cancer.X_raw, columns=list(cancer.features.labels))
    swapped = frame[[*frame.columns[:3], frame.columns[4], frame.columns[3], *frame.columns[5:]]]
    message = refused(forest(swapped, cancer.y), cancer)
    assert "feature 4 of the ensemble is 'mean smoothness'" in message
    assert "'mean area'" in message


def test_other_classes(cancer):
    message = refused(forest(cancer.X_raw, np.where(cancer.y == 1, "yes", "no")), cancer)
    assert "'no' from 'yes'" in message
    assert "'malignant' and 'benign'" in message


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1]])
def test_numbers_that_are_no_class_numbers(cancer, labels):
    assert f"'{labels[0]}' from '{labels[1]}'" in refused(
        forest(cancer.X_raw, np.array(labels)[cancer.y]), cancer
    )


def test_numbers_that_can_be_read_in_two_ways(cancer):
    reversed_data = cancer.binarise(0)
    assert reversed_data.class_values == (1, 0)
    message = refused(forest(cancer.X_raw, cancer.y), reversed_data)
    assert "class number 0" in message
    assert "do not binarise" in message


def test_one_class_or_several():
    iris = load("iris")
    two = iris.binarise("setosa")
    assert "3 class(es)" in refused(forest(iris.X_raw, iris.y), two)
    assert "1 class(es)" in refused(forest(iris.X_raw, np.zeros(iris.n)), two)
    assert "iris has 3 classes" in refused("random-forest", iris)


def test_samples_of_one_class(cancer):
    benign = cancer.take(cancer.y == 1)
    for kind in ("random-forest", "gradient-boosting"):
        assert "are of class 'benign'" in refused(kind, benign)


def test_a_regression():
    assert "regression" in refused("random-forest", load("diabetes"))


def test_several_targets(cancer):
    estimator = forest(cancer.X_raw, np.column_stack([cancer.y, cancer.y]))
    assert "2 targets" in refused(estimator, cancer)


def test_too_deep(cancer):
    estimator = forest(cancer.X_raw, cancer.y, max_depth=4)
    message = refused(estimator, cancer, depth=2)
    assert "depth 4" in message
    assert "depth=4" in message
    assert ensemble_for(estimator, cancer, 2, deeper=True).depth == 4


def test_an_ensemble_of_other_data(cancer):
    other = ensemble_for("random-forest:trees=2", load("iris").binarise("setosa"), 2)
    assert "4 features" in refused(other, cancer)


def test_trees_without_splits():
    data = Dataset.from_arrays(np.zeros((6, 2)), [0, 0, 0, 1, 1, 1])
    assert "no tree tells samples apart" in refused("random-forest:trees=2", data)
    assert "no tree tells samples apart" in refused("gradient-boosting:trees=2", data)


def test_no_trees_at_all(cancer):
    xgboost = pytest.importorskip("xgboost")
    estimator = xgboost.XGBClassifier(n_estimators=1, max_depth=1, gamma=1e9, n_jobs=1)
    assert "no tree tells samples apart" in refused(estimator.fit(cancer.X_raw, cancer.y), cancer)


def test_values_beyond_single_precision():
    data = Dataset.from_arrays([[1e300], [0.0], [1.0]], [0, 1, 1])
    assert "divide them" in refused("random-forest", data)


@pytest.mark.parametrize("booster", ["gblinear", "dart"])
def test_other_boosters(cancer, booster):
    xgboost = pytest.importorskip("xgboost")
    estimator = xgboost.XGBClassifier(n_estimators=2, n_jobs=1, booster=booster).fit(cancer.X_raw, cancer.y)
    assert f"{booster!r}" in refused(estimator, cancer)


def test_splits_on_categories():
    xgboost = pytest.importorskip("xgboost")
    letters = np.tile(np.arange(6), 20)
    frame = pd.DataFrame({"x": pd.Categorical(letters)})
    y = np.isin(letters, [1, 4]).astype(int)
    estimator = xgboost.XGBClassifier(n_estimators=2, n_jobs=1, enable_categorical=True, max_cat_to_onehot=1)
    data = Dataset.from_arrays(letters[:, None], y, features=["x"])
    assert "categories" in refused(estimator.fit(frame, y), data, depth=6)


def test_xgboost_is_not_installed(cancer, monkeypatch):
    monkeypatch.setattr(xgboost_module, "find_spec", lambda name: None)
    assert "pip install 'mipforest[xgboost]'" in refused("xgboost", cancer)


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"\x80\x04garbage", b"PK\x03\x04"])
def test_damaged_files(cancer, tmp_path, content):
    path = tmp_path / "target.joblib"
    path.write_bytes(content)
    message = refused(path, cancer)
    assert "target.joblib cannot be read as a joblib file" in message
    assert "joblib.dump" in message


def test_a_file_of_something_else(cancer, tmp_path):
    path = tmp_path / "target.joblib"
    joblib.dump({"model": 1}, path)
    assert "a dict is no classifier" in refused(path, cancer)


def test_a_file_that_needs_a_package(cancer, tmp_path, monkeypatch):
    path = tmp_path / "target.joblib"
    path.write_bytes(b"x")

    def load_it(path):
        raise ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm")

    monkeypatch.setattr(loading_module.joblib, "load", load_it)
    assert "needs the Python package lightgbm" in refused(path, cancer)


def test_a_file_of_another_scikit_learn(cancer, tmp_path, monkeypatch):
    path = tmp_path / "target.joblib"
    path.write_bytes(b"x")

    def load_it(path):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name="RandomForestClassifier",
                current_sklearn_version="9.9",
                original_sklearn_version="0.1",
            ),
            stacklevel=1,
        )

    monkeypatch.setattr(loading_module.joblib, "load", load_it)
    message = refused(path, cancer)
    assert "written with scikit-learn 0.1, this is 9.9" in message
    assert "fit the ensemble again" in message


def test_no_such_file(cancer, tmp_path):
    with pytest.raises(FileNotFoundError):
        ensemble_for(tmp_path / "absent.joblib", cancer, 2)
    with pytest.raises(IsADirectoryError):
        ensemble_for(tmp_path, cancer, 2)
