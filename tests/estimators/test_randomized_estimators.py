"""Estimators of randomised trees."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from mipforest import RandomizedTreeClassifier


@pytest.fixture(scope="module")
def flowers():
    return load_iris(return_X_y=True)


def test_a_classifier_predicts_its_own_probabilities(flowers):
    X, y = flowers
    fitted = RandomizedTreeClassifier(depth=2, n_starts=2, lam_global=0.01).fit(X, y)
    assert fitted.score(X, y) > 0.9
    assert len(fitted.start_objectives_) == 2
    assert fitted.verified_
    proba = fitted.predict_proba(X)
    assert proba == pytest.approx(fitted.leaf_probabilities(X) @ fitted.tree_.leaf_proba)
    assert (fitted.classes_[proba.argmax(axis=1)] == fitted.predict(X)).all()
    assert (fitted.importances("max") <= fitted.importances()).all()
    assert set(fitted.sparsity_) == {"local", "global"}
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(X) == proba).all()


def test_hyperparameters_are_searched_and_labels_kept(flowers):
    X, y = flowers
    two = np.where(y == 0, "yes", "no")
    grid = {"lam_global": [0.0, 10.0]}
    search = GridSearchCV(RandomizedTreeClassifier(depth=1, n_starts=1, rates={"yes": 0.1}), grid, cv=2).fit(
        X, two
    )
    assert set(search.predict(X)) <= {"yes", "no"}
    assert search.best_params_ == {"lam_global": 0.0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_passes_scikit_learns_checks():
    done = check_estimator(RandomizedTreeClassifier(depth=2, n_starts=3), on_skip=None, on_fail=None)
    assert {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"} == {}
