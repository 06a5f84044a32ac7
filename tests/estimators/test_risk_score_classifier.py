"""RiskScoreClassifier: a card behind scikit-learn's interface."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from mipforest import RiskScoreClassifier
from mipforest.constraints import forbid_features
from mipforest.estimators import OptimalTreeClassifier

X, Y = load_iris(return_X_y=True, as_frame=True)
FLOWERS = np.where(Y == 2, "virginica", "other")


@pytest.fixture(scope="module")
def fitted():
    return RiskScoreClassifier(rules=2).fit(X, FLOWERS)


def test_a_fit_is_a_proven_card(fitted):
    assert fitted.status_ == "optimal"
    assert fitted.verified_
    assert fitted.score(X, FLOWERS) > 0.94
    proba = fitted.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1)
    assert proba[:, 1].mean() == pytest.approx((Y == 2).mean(), abs=1e-9)
    assert ((proba[:, 1] >= 0.5) == (fitted.predict(X) == "virginica")).all()
    assert np.allclose(fitted.decision_function(X), fitted.apply(X) + fitted.card_.intercept)
    assert (fitted.card_.points > 0).all()
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert fitted.n_features_used_ == np.count_nonzero(fitted.feature_importances_)


def test_text_picture_and_pickle(fitted):
    assert "Risk of virginica" in fitted.to_text(X, FLOWERS)
    assert "Samples" not in fitted.to_text()
    assert fitted.plot(X, FLOWERS).axes
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(X) == fitted.predict(X)).all()


@pytest.mark.slow
def test_weights_and_constraints():
    weights = np.where(Y == 1, 3.0, 1.0)
    heavy = RiskScoreClassifier(rules=1, time_limit=0).fit(X, FLOWERS, weights)
    repeated = RiskScoreClassifier(rules=1, time_limit=0).fit(
        np.repeat(X.to_numpy(), weights.astype(int), axis=0), np.repeat(FLOWERS, weights.astype(int))
    )
    assert heavy.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    (petal,) = RiskScoreClassifier(rules=1, time_limit=0).fit(X, FLOWERS).features_used_
    without = RiskScoreClassifier(
        rules=1, constraints=lambda problem: forbid_features(problem, petal), time_limit=0
    )
    with pytest.warns(UserWarning, match="start"):
        assert petal not in without.fit(X, FLOWERS).features_used_


def test_the_number_of_rules_is_tuned_like_any_parameter():
    search = GridSearchCV(
        RiskScoreClassifier(time_limit=0), {"rules": [1, 2]}, scoring="neg_log_loss", cv=3
    ).fit(X, FLOWERS)
    assert search.best_params_["rules"] in (1, 2)


def test_a_tree_estimator_refuses_a_card():
    with pytest.raises(ValueError, match="finds a score card; fit it with RiskScoreClassifier"):
        OptimalTreeClassifier(model="ogrs").fit(X, FLOWERS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mipforest.estimators.FitWarning")
def test_passes_scikit_learns_checks():
    done = check_estimator(RiskScoreClassifier(rules=2, time_limit=0, threads=1), on_skip=None, on_fail=None)
    assert not {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert len(done) > 40
