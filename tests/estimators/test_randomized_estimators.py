"""Estimators of randomised trees."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from mipforest import FunctionalTreeRegressor, RandomizedTreeClassifier, RandomizedTreeRegressor


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
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(X) == proba).all()  # exact: a copy


def test_hyperparameters_are_searched_and_labels_kept(flowers):
    X, y = flowers
    two = np.where(y == 0, "yes", "no")
    grid = {"lam_global": [0.0, 10.0]}
    search = GridSearchCV(RandomizedTreeClassifier(depth=1, n_starts=1, rates={"yes": 0.1}), grid, cv=2).fit(
        X, two
    )
    assert set(search.predict(X)) <= {"yes", "no"}
    assert search.best_params_ == {"lam_global": 0.0}


#: Of the classifier. Over many steps, the rounding of sums over repeated rows grows to the tolerance of the descent.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "local optima agree up to the descent's tolerance",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        RandomizedTreeClassifier(depth=2, n_starts=3),
        RandomizedTreeRegressor(depth=1, n_starts=1, stages=1),
        FunctionalTreeRegressor(depth=1, n_starts=1, stages=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_passes_scikit_learns_checks(estimator):
    expected = EXPECTED if isinstance(estimator, RandomizedTreeClassifier) else {}
    done = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"} == {}


@pytest.mark.parametrize("kind", [RandomizedTreeClassifier, RandomizedTreeRegressor])
def test_whole_weights_lead_to_the_tree_of_repeated_samples(kind):
    rng = np.random.default_rng(0)
    X, counts = rng.random((30, 3)), rng.integers(0, 4, 30)
    y = (X[:, 0] > X[:, 1]) + 0
    rows = rng.permutation(np.repeat(np.arange(30), counts))
    tree = kind(depth=1, n_starts=2)
    weighted, again = clone(tree).fit(X, y, sample_weight=counts), clone(tree).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.tree_.w, again.tree_.w, rtol=1e-12)
    assert weighted.objective_ == pytest.approx(again.objective_, rel=1e-12)
    assert not hasattr(tree, "min_weight_fraction_leaf")
