"""Policy trees behind scikit-learn's interface, and rewards that are estimated of treatments and outcomes."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from tolerance import same

from mipforest import Dataset, PolicyTreeClassifier, reward_scores
from mipforest.data import DataError
from mipforest.problem.parameters import ParameterError
from mipforest.tuning import tune

rng = np.random.default_rng(0)
AGE = rng.integers(20, 80, 200)
FRAME = pd.DataFrame({"age": AGE, "city": rng.choice(["Roma", "Pisa", "Siena"], 200)})
EFFECT = np.where(AGE < 50, 2.0, -1.0)
REWARDS = pd.DataFrame({"wait": np.zeros(200), "treat": EFFECT + 0.1 * rng.standard_normal(200)})


@pytest.fixture(scope="module")
def fitted():
    return PolicyTreeClassifier(depth=1).fit(FRAME, REWARDS)


def test_it_decides_and_knows_its_value(fitted):
    new = pd.DataFrame({"age": [30, 70], "city": ["Roma", "Pisa"]})
    assert fitted.decide(new).tolist() == fitted.predict(new).tolist() == ["treat", "wait"]
    assert fitted.decisions_.tolist() == ["wait", "treat"]
    assert (fitted.status_, fitted.verified_) == ("optimal", True)
    own = np.where(AGE < 50, REWARDS["treat"], 0.0)
    value = fitted.value(FRAME, REWARDS)
    assert same(value.mean_reward, own.mean())
    assert same(value.mean_reward_error, own.std(ddof=1) / np.sqrt(200))
    assert same(value.best_single_reward, max(0.0, REWARDS["treat"].mean()))
    assert same(value.gain, value.mean_reward - value.best_single_reward)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.decide(new).tolist() == ["treat", "wait"]
    assert clone(fitted).get_params()["depth"] == 1
    assert not hasattr(fitted, "feature_importances_")


def test_columns_of_levels_and_missing_values():
    """A split sends any set of levels to a side, and missing values where they are best."""
    frame = pd.DataFrame({"city": list("rpsk") * 10, "age": [30.0, np.nan, 60.0, 50.0] * 10})
    frame["age"] += np.arange(40) % 3
    best = np.where(frame["city"].isin(["r", "k"]) | frame["age"].isna(), "treat", "wait")
    rewards = pd.DataFrame({"wait": best == "wait", "treat": best == "treat"}).astype(float)
    fitted = PolicyTreeClassifier(depth=2, alpha=0.0, categorical="all", missing="branch").fit(frame, rewards)
    assert (fitted.status_, fitted.verified_) == ("optimal", True)
    assert fitted.decide(frame).tolist() == best.tolist()
    one = PolicyTreeClassifier(depth=1, alpha=0.0, categorical=["city"], missing="branch").fit(frame, rewards)
    assert one.value(frame, rewards).mean_reward == pytest.approx(1.0)
    assert "city is s" in one.to_text()


def test_weights_count_as_repeated_samples():
    twice = rng.integers(1, 3, 200)
    weighted = PolicyTreeClassifier(depth=2).fit(FRAME, REWARDS, sample_weight=twice)
    rows = np.repeat(np.arange(200), twice)
    repeated = PolicyTreeClassifier(depth=2).fit(FRAME.iloc[rows], REWARDS.iloc[rows])
    assert same(weighted.objective_, repeated.objective_)
    value = weighted.value(FRAME, REWARDS, twice)
    assert same(value.mean_reward, repeated.value(FRAME.iloc[rows], REWARDS.iloc[rows]).mean_reward)


def test_tuning_takes_the_mean_reward():
    """The same score by scikit-learn's search, by tune, and by the definition."""
    X, parts = AGE[:, None], KFold(3, shuffle=True, random_state=0)
    grid = {"alpha": [9.0, 0.01]}
    search = GridSearchCV(PolicyTreeClassifier(depth=1), grid, cv=parts, error_score="raise").fit(X, REWARDS)
    tuned = tune("policy", Dataset.from_arrays(X, rewards=REWARDS.to_numpy()), 1, grid=grid, folds=3, seed=0)
    train, held = next(iter(parts.split(X)))
    one = PolicyTreeClassifier(depth=1, alpha=0.01).fit(X[train], REWARDS.iloc[train])
    value = one.value(X[held], REWARDS.iloc[held]).mean_reward
    assert same(one.score(X[held], REWARDS.iloc[held]), value)
    assert same(search.cv_results_["split0_test_score"][1], value)
    assert same(tuned.table["fold0_validation"][1], value)
    assert search.best_params_ == {"alpha": tuned.parameters["alpha"]} == {"alpha": 0.01}
    assert tuned.score == "mean_reward"


def test_hyperplanes_are_a_choice():
    X = np.random.default_rng(1).integers(0, 20, (60, 2)) / 20
    gained = np.where(X.sum(axis=1) > 0.9, 1.0, -1.0)
    table = np.column_stack([np.zeros(60), gained])
    oblique = PolicyTreeClassifier(depth=1, splits="hyperplane", solver="local-search").fit(X, table)
    assert same(oblique.score(X, table), np.maximum(gained, 0).mean())
    assert (oblique.tree_.w != 0).sum() == 2
    with pytest.raises(ParameterError, match="choose from: univariate, hyperplane"):
        PolicyTreeClassifier(splits="oblique").fit(X, table)


def test_text_and_pictures_tell_decisions(fitted, tmp_path):
    assert "treat" in fitted.to_text()
    assert "age" in fitted.to_text()
    fitted.plot().savefig(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 0


def test_rewards_without_names_are_numbered_and_odd_ones_refused():
    fitted = PolicyTreeClassifier(depth=1).fit(FRAME, REWARDS.to_numpy())
    assert fitted.decide(FRAME).dtype.kind == "i"
    with pytest.raises(DataError, match="rewards have 3 rows"):
        PolicyTreeClassifier(depth=1).fit(FRAME, REWARDS[:3])
    with pytest.raises(DataError, match="2 names for 3 decisions"):
        fitted.value(FRAME, np.zeros((200, 3)))


def trial(n=600, seed=0):
    """Return a trial with a known effect: lower outcomes are better, and treatment helps those whose x0 is above 0."""
    own = np.random.default_rng(seed)
    X = own.normal(size=(n, 3))
    share = 1 / (1 + np.exp(-X[:, 1]))
    had = own.random(n) < share
    effect = np.where(X[:, 0] > 0, -2.0, 1.0)
    y = X[:, 2] + had * effect + 0.3 * own.normal(size=n)
    return Dataset.from_arrays(X, y, treatments=had.astype(int)), effect, share


@pytest.mark.parametrize("scores", ["dr", "ipw", "direct"])
def test_estimated_rewards_are_near_the_effect(scores):
    data, effect, _ = trial()
    found = reward_scores(data, scores, regressor=LinearRegression(), propensity=LogisticRegression())
    assert found.task == "decision"
    assert found.rewards.shape == (600, 2)
    gained = found.rewards[:, 1] - found.rewards[:, 0]
    # A mean of 600 samples whose scores have a standard deviation below 6: four standard errors.
    assert gained.mean() == pytest.approx(-effect.mean(), abs=1.0)
    again = reward_scores(data, scores, regressor=LinearRegression(), propensity=LogisticRegression())
    assert same(found.rewards, again.rewards)


@pytest.mark.slow
def test_the_policy_of_doubly_robust_scores_is_the_true_one():
    data, effect, share = trial()
    found = reward_scores(data, "dr")
    tree = PolicyTreeClassifier(depth=1).fit(data.X_raw, found.rewards)
    assert (tree.decide(data.X_raw) == (effect < 0)).mean() > 0.95
    known = reward_scores(data, "ipw", propensity=[1 - share.mean(), share.mean()])
    rows = np.flatnonzero(data.treatments == 1)
    np.testing.assert_allclose(known.rewards[rows, 1], -data.y[rows] / share.mean())
    assert not known.rewards[rows, 0].any()
    higher = reward_scores(data, "ipw", propensity=[1 - share.mean(), share.mean()], better="higher")
    assert same(higher.rewards, -known.rewards)


@pytest.mark.slow
def test_refusals_say_what_to_do():
    data, _, _ = trial(40)
    with pytest.raises(DataError, match="has no treatments"):
        reward_scores(Dataset.from_arrays(data.X_raw, data.y))
    with pytest.raises(DataError, match="unknown scores 'dt'; choose dr, ipw, direct"):
        reward_scores(data, "dt")
    with pytest.raises(DataError, match="no more than samples"):
        reward_scores(data, folds=35)
    with pytest.raises(DataError, match="whose sum is 1"):
        reward_scores(data, propensity=[0.5, 0.6])
    with pytest.raises(DataError, match="better is 'more'"):
        reward_scores(data, better="more")


def test_estimates_count_weights():
    """Those of a sample are of models that were fitted to the other folds, each row as often as its weight says."""
    data = trial(80)[0].with_weights(np.random.default_rng(1).integers(1, 4, 80))
    models = {"regressor": LinearRegression(), "propensity": LogisticRegression()}
    found, folds = {s: reward_scores(data, s, folds=2, **models).rewards for s in ("direct", "ipw")}, 0
    X, had, y = data.X_raw, data.treatments, -data.y
    for fit, held in StratifiedKFold(2, shuffle=True, random_state=0).split(X, had):
        rows = np.repeat(fit, data.weights[fit].astype(int))
        for k in (0, 1):
            own = rows[had[rows] == k]
            assert found["direct"][held, k] == pytest.approx(
                LinearRegression().fit(X[own], y[own]).predict(X[held])
            )
        share = (
            LogisticRegression()
            .fit(X[rows], had[rows])
            .predict_proba(X[held])[np.arange(len(held)), had[held]]
        )
        assert found["ipw"][held, had[held]] == pytest.approx(y[held] / np.maximum(share, 0.02), rel=1e-3)
        folds += 1
    assert folds == 2
    with pytest.raises(DataError, match="fit of KNeighborsRegressor takes no sample_weight"):
        reward_scores(data, "direct", regressor=KNeighborsRegressor())
