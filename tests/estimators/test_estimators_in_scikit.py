"""Estimators inside scikit-learn's pipelines, searches and meta-estimators, and as files."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from estimators_at_hand import SHAPES
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import same

import mipforest
from mipforest.estimators import MargotClassifier, OCTClassifier, ORTRegressor

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::6, :5], np.where(Y[::6] == 1, "benign", "malignant")


def test_a_pipeline_scales_and_fits():
    pipeline = make_pipeline(StandardScaler(), MargotClassifier(depth=1, scaling="none", time_limit=0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.85


def test_a_pipeline_passes_tables_on():
    table = load_iris(as_frame=True)
    keep = make_column_transformer(("passthrough", ["petal length (cm)"])).set_output(transform="pandas")
    pipeline = make_pipeline(keep, OCTClassifier(depth=2, time_limit=0)).fit(table.data, table.target)
    assert pipeline[-1].features_used_ == ("passthrough__petal length (cm)",)


@pytest.mark.parametrize(
    # Where estimators are pickled on their way: below, and in test_tune, whose workers are processes of the same kind.
    "backend",
    ["threading", pytest.param("loky", marks=pytest.mark.slow)],
)
def test_a_search_over_two_workers_refits_the_best(backend):
    grid = {"C": [10.0], "feature_selection": [None, "hard"]}
    search = GridSearchCV(MargotClassifier(depth=1, time_limit=0), grid, cv=2, n_jobs=2, error_score="raise")
    with joblib.parallel_config(backend):
        search.fit(X, Y)
    alone = GridSearchCV(MargotClassifier(depth=1, time_limit=0), grid, cv=2).fit(X, Y)
    assert same(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert search.best_estimator_.verified_
    assert search.best_score_ > 0.85


def test_cross_validation_scores():
    scores = cross_val_score(OCTClassifier(depth=1, time_limit=0), X, Y, cv=3, error_score="raise")
    assert scores.min() > 0.7
    errors = cross_val_score(
        ORTRegressor(depth=1, time_limit=0), X[:, 1:], X[:, 0], cv=3, error_score="raise"
    )
    assert errors.min() > 0.3


def test_one_tree_per_class_tells_three_apart():
    flowers = load_iris()
    three = OneVsRestClassifier(MargotClassifier(depth=1, time_limit=0)).fit(flowers.data, flowers.target)
    assert len(three.estimators_) == 3
    assert three.score(flowers.data, flowers.target) > 0.8


def test_calibration_takes_the_shares():
    calibrated = CalibratedClassifierCV(OCTClassifier(depth=1, time_limit=0), cv=2).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_scorers_read_the_probabilities():
    scores = cross_val_score(MargotClassifier(depth=1, time_limit=0), X, Y, cv=2, scoring="roc_auc")
    assert scores.min() > 0.8


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_a_file_holds_the_tree_and_not_the_model(name, tmp_path):
    estimator = clone(SHAPES[name]).set_params(depth=1, time_limit=0)
    targets = Y if is_classifier(estimator) else X[:, 0]
    fitted = estimator.fit(X, targets)
    joblib.dump(fitted, tmp_path / "tree.joblib")
    for again in (joblib.load(tmp_path / "tree.joblib"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        assert same(again.objective_, fitted.objective_)
        assert again.features_used_ == fitted.features_used_
        assert again.to_text(X, targets) == fitted.to_text(X, targets)
        assert not hasattr(again, "result_")
        assert not hasattr(again, "solution_")
    assert hasattr(fitted, "result_")
    assert len(pickle.dumps(fitted)) < 10_000


def test_a_clone_is_not_fitted_and_has_the_same_settings():
    fitted = MargotClassifier(depth=1, C=(3.0,), time_limit=0).fit(X, Y)
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "tree_")


def test_the_package_offers_the_estimators_and_imports_them_late():
    for name in ("MIRETClassifier", "MargotClassifier", "OCTClassifier", "OCTHClassifier", "OLCTClassifier"):
        assert getattr(mipforest, name).__name__ == name
    assert mipforest.ORTRegressor is ORTRegressor
    code = "import sys, mipforest; print('sklearn' in sys.modules, 'mipforest.estimators' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
