"""The estimators that tune themselves."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import LeaveOneGroupOut, ShuffleSplit
from sklearn.utils.estimator_checks import check_estimator

from mipforest import OptimalTreeClassifierCV, OptimalTreeRegressorCV, constraints
from mipforest.problem.parameters import ParameterError


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def tuned(iris):
    return OptimalTreeClassifierCV(2, starts=10, cv=2).fit(*iris)


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
    found = OptimalTreeRegressorCV(1, solver="local-search", starts=5, cv=ShuffleSplit(1, test_size=0.3)).fit(
        X[:80], y[:80]
    )
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
        OptimalTreeClassifierCV(1, cv=4).fit(X.iloc[few], y[few])


def test_folds_are_given_as_in_scikit_learn():
    X, y = (part[:60] for part in load_diabetes(return_X_y=True))
    groups = np.arange(60) % 3
    counts = np.where(groups == 0, np.arange(60) % 4, 1)  # repeated rows stay in one fold
    rows = np.repeat(np.arange(60), counts)
    by_group = LeaveOneGroupOut()
    tree = OptimalTreeRegressorCV(1, starts=2)
    weighted = clone(tree).set_params(cv=list(by_group.split(X, groups=groups))).fit(X, y, counts)
    splits = by_group.split(X[rows], groups=groups[rows])
    repeated = clone(tree).set_params(cv=list(splits)).fit(X[rows], y[rows])
    assert weighted.cv_results_["validation_mean"] == pytest.approx(repeated.cv_results_["validation_mean"])
    assert weighted.predict(X) == pytest.approx(repeated.predict(X))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0, 1],)], "cv has no pairs of positions to train on and validate"),
        ([([], [0, 1])], "split 0 has 0 samples to train on and 2 to validate"),
        ([], "there are no splits"),
        ("two", "folds is 'two'"),
    ],
)
def test_what_are_no_folds_is_refused(iris, cv, message):
    with pytest.raises(ValueError, match=message):
        OptimalTreeClassifierCV(1, cv=cv).fit(*iris)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
@pytest.mark.parametrize("kind", [OptimalTreeClassifierCV, OptimalTreeRegressorCV])
def test_passes_scikit_learns_checks(kind):
    done = check_estimator(kind(2, starts=4, cv=2, threads=1), on_skip=None, on_fail=None)
    assert not {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert len(done) > 40
