"""The estimators that tune themselves."""

import pickle

import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.utils.estimator_checks import check_estimator

from mipforest import OptimalTreeClassifierCV, OptimalTreeRegressorCV, constraints
from mipforest.problem.parameters import ParameterError


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def tuned(iris):
    return OptimalTreeClassifierCV(2, starts=10, folds=2).fit(*iris)


def test_it_tunes_and_fits_in_one_call(iris, tuned):
    assert (tuned.depth_, tuned.status_) == (2, "optimal")
    assert tuned.alpha_ == tuned.tuning_.alpha > 0
    assert tuned.cv_results_["depth"] == [1, 2]
    assert tuned.score(*iris) > 0.95
    assert set(tuned.predict(iris[0])) == {0, 1, 2}
    assert tuned.predict_proba(iris[0]).shape == (150, 3)
    assert tuned.result_.verified


def test_it_is_a_scikit_learn_estimator(iris, tuned):
    assert clone(tuned).get_params()["depth"] == 2
    assert clone(tuned).set_params(parameters__N_min=5).parameters == {"N_min": 5}
    loaded = pickle.loads(pickle.dumps(tuned))
    assert (loaded.predict(iris[0]) == tuned.predict(iris[0])).all()
    assert loaded.cv_results_ == tuned.cv_results_
    assert not hasattr(loaded, "tuning_")


def test_deeper_trees_are_the_best_ones_found():
    X, y = load_diabetes(return_X_y=True)
    found = OptimalTreeRegressorCV(1, solver="local-search", starts=5, validation=0.3).fit(X[:80], y[:80])
    assert found.status_ == "best_found"
    assert found.depth_ == 1


def test_what_a_local_search_would_not_see_is_refused(iris):
    limited = OptimalTreeClassifierCV(constraints=constraints.forbid_features)
    with pytest.raises(ParameterError, match="fit OptimalTreeClassifier with it, the depth_ and alpha_"):
        limited.fit(*iris)
    assert not hasattr(limited, "min_weight_fraction_leaf")
    assert "min_weight_fraction_leaf" not in limited.get_params()


def test_a_small_class_has_fewer_folds_unless_they_are_given(iris):
    X, y = iris
    few = [*range(10), *range(50, 53)]
    fitted = OptimalTreeClassifierCV(1, starts=1).fit(X.iloc[few], y[few])
    assert [
        name for name in fitted.cv_results_ if name.endswith("validation") and name.startswith("fold")
    ] == [f"fold{k}_validation" for k in range(3)]
    with pytest.raises(ValueError, match="4 folds need 4 samples of every class"):
        OptimalTreeClassifierCV(1, folds=4).fit(X.iloc[few], y[few])


#: scikit-learn's own estimators that cross-validate fail on such small folds, too.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "folds part repeated rows, and not one row with a weight",
    "check_fit2d_1feature": "ten samples, whose target does not vary in one of the folds",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
@pytest.mark.parametrize("kind", [OptimalTreeClassifierCV, OptimalTreeRegressorCV])
def test_passes_scikit_learns_checks(kind):
    done = check_estimator(
        kind(2, starts=4, folds=2, threads=1), expected_failed_checks=EXPECTED, on_skip=None, on_fail=None
    )
    assert not {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert len(done) > 40
