"""Forest selectors: which tree predicts, what it says, and what it is compared with."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator
from tolerance import at_least, at_most, less, same

from mipforest import ForestSelectorClassifier, ForestSelectorRegressor
from mipforest.data import DataError
from mipforest.problem.parameters import ParameterError

GATES = ("tree", "network", "neighbours", "single")

#: Checks that scikit-learn's own random forests fail as well.
WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


def small(gate, **settings):
    return ForestSelectorClassifier(depth=2, n_trees=8, gate=gate, epochs=20, **settings)


@pytest.fixture(scope="module", params=GATES)
def fitted(request, wine):
    return small(request.param).fit(*wine)


def test_the_selected_tree_predicts(fitted, wine):
    X, _ = wine
    selected, predicted = fitted.select(X), fitted.predict(X)
    assert set(predicted) <= set(fitted.classes_)
    for i in range(0, len(X), 20):
        tree = fitted.trees_[selected[i]]
        assert fitted.classes_[tree.predict(X.to_numpy()[i : i + 1])[0]] == predicted[i]
    proba = fitted.predict_proba(X)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert (fitted.classes_[proba.argmax(axis=1)] == predicted).all()
    assert proba == pytest.approx(
        np.stack([grown.predict_proba(X.to_numpy()) for grown in fitted.forest_.estimators_])[
            selected, np.arange(len(X))
        ]
    )


def test_an_explanation_is_the_path_of_the_chosen_tree(fitted, wine):
    X, _ = wine
    text = fitted.explain(X.iloc[[3]])
    assert f"tree {fitted.select(X)[3]} of 0 to 7" in text
    assert text.splitlines()[-1].endswith(f": {fitted.predict(X)[3]}")
    assert text.startswith("gate\nn0: ") == (fitted.gate == "tree")
    assert fitted.explain(X.iloc[3:4]) == text
    with pytest.raises(ValueError, match="explain takes one sample, x has 2; give one row"):
        fitted.explain(X.iloc[:2])


def test_the_report_compares(fitted, wine):
    X, y = wine
    report = fitted.report(X, y)
    assert list(report.values) == [
        "selector", "best single tree", "mean tree", "oracle", "forest", "CART, depth 2", "CART, depth 5",
    ]  # fmt: skip
    assert report.values["selector"] == pytest.approx(fitted.score(X, y))
    assert at_least(
        report.values["oracle"], max(report.values["selector"], report.values["best single tree"])
    )
    assert report.values["best single tree"] == pytest.approx((1 + fitted.training_rewards_.max()) / 2)
    assert report.shares.sum() == pytest.approx(1)
    assert (np.flatnonzero(report.shares) == np.unique(fitted.select(X))).all()
    assert report.seed == fitted.seed_ == 0
    assert "of 8 trees used: tree " in str(report)
    # A label that training did not have is predicted by no tree.
    assert fitted.report(X, np.full(len(X), "d")).values["oracle"] == 0


def test_a_fit_is_the_same_again_and_in_a_pickle(fitted, wine):
    X, y = wine
    again = clone(fitted).fit(X, y)
    assert (again.select(X) == fitted.select(X)).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)).all()


@pytest.mark.parametrize("gate", GATES)
def test_the_only_tree_predicts_everything(gate, wine):
    X, y = wine
    one = ForestSelectorClassifier(depth=2, n_trees=1, gate=gate, epochs=2).fit(X, y)
    assert (one.select(X) == 0).all()
    assert (one.predict(X) == one.classes_[one.forest_.predict(X.to_numpy())]).all()
    assert same(one.report(X, y).values["oracle"], one.score(X, y))


@pytest.mark.parametrize("gate", GATES)
def test_identical_trees_predict_as_each_of_them(gate, wine):
    X, y = wine
    # Without draws of samples and features all trees are CART.
    forest = RandomForestClassifier(5, max_depth=2, bootstrap=False, max_features=None)
    fitted = ForestSelectorClassifier(forest=forest, gate=gate, epochs=2).fit(X, y)
    report = fitted.report(X, y)
    assert same(report.values["selector"], report.values["mean tree"])
    assert same(report.values["mean tree"], report.values["oracle"])


def test_a_gate_without_splits_is_the_best_single_tree(wine):
    X, y = wine
    flat = small("tree", gate_depth=0).fit(X, y)
    assert (flat.select(X) == flat.best_single_).all()
    assert (flat.predict(X) == small("single").fit(X, y).predict(X)).all()


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("reward", ["global", "per_sample"])
def test_regressors_of_all_gates(gate, reward, diabetes):
    X, y = diabetes[0].to_numpy(), diabetes[1]
    fitted = ForestSelectorRegressor(depth=2, n_trees=8, gate=gate, reward=reward, epochs=5).fit(X, y)
    report = fitted.report(X, y)
    assert report.measure == "RMSE"
    assert report.values["selector"] == pytest.approx(np.sqrt(np.mean((fitted.predict(X) - y) ** 2)))
    assert at_most(report.values["oracle"], min(report.values["selector"], report.values["best single tree"]))
    trees = np.stack([grown.predict(X) for grown in fitted.forest_.estimators_])
    assert fitted.predict(X) == pytest.approx(trees[fitted.select(X), np.arange(len(X))])
    assert f"tree {fitted.select(X)[0]} of" in fitted.explain(X[0])


@pytest.mark.parametrize("gate", ["tree", "single"])
def test_whole_weights_are_repeated_rows_where_trees_draw_none(gate, wine):
    X, y = wine[0].to_numpy(), wine[1]
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    # Every tree has another feature at each split, and all rows.
    forest = ExtraTreesClassifier(6, max_depth=2, max_features=1, random_state=1)
    selector = ForestSelectorClassifier(forest=forest, gate=gate, gate_min_leaf=1)
    weighted, again = clone(selector).fit(X, y, sample_weight=counts), selector.fit(X[rows], y[rows])
    assert weighted.training_rewards_ == pytest.approx(again.training_rewards_)
    assert (weighted.predict(X) == again.predict(X)).all()
    one, other = weighted.report(X, y, sample_weight=counts), again.report(X[rows], y[rows])
    assert one.values == pytest.approx(other.values)
    assert one.shares == pytest.approx(other.shares)


def test_class_weights_multiply_weights_of_samples(wine):
    X, y = wine
    heavy = ForestSelectorClassifier(depth=2, n_trees=8, class_weight={"a": 3.0, "b": 1.0, "c": 1.0}).fit(
        X, y
    )
    same = small("tree").fit(X, y, sample_weight=np.where(y == "a", 3.0, 1.0))
    assert (heavy.predict(X) == same.predict(X)).all()
    assert heavy.training_rewards_ == pytest.approx(same.training_rewards_)


def test_out_of_bag_rewards_are_lower(wine):
    X, y = wine
    own, other = (small("single", out_of_bag=bag).fit(X, y) for bag in (False, True))
    assert less(other.training_rewards_.mean(), own.training_rewards_.mean())


def test_tables_with_texts_and_missing_values(wine):
    X, y = wine
    table = X[["alcohol", "hue"]].assign(colour=np.where(X.color_intensity > 5, "dark", "light"))
    table.loc[3, "hue"] = np.nan
    fitted = small("tree", missing="impute", gate_depth=1).fit(table, y)
    assert fitted.score(table, y) > 0.8
    assert "colour is light" in "".join(fitted.explain(table.iloc[[i]]) for i in range(0, 170, 10))


def test_settings_that_are_not_allowed(wine, diabetes):
    X, y = wine
    for settings, message in (
        ({"gate": "door"}, "gate is 'door'; choose 'tree' or"),
        ({"entropy": "none"}, "entropy is 'none'; choose 'full' or 'printed'"),
        ({"depth": 11}, "depth is 11"),
        ({"epochs": 0}, "epochs is 0"),
        ({"forest": RandomForestRegressor()}, "give a RandomForestClassifier or ExtraTreesClassifier"),
        ({"forest": ExtraTreesClassifier(2, max_depth=2), "out_of_bag": True}, "bootstrap=False"),
    ):
        with pytest.raises(ParameterError, match=message):
            ForestSelectorClassifier(**settings).fit(X, y)
    with pytest.raises(ParameterError, match="reward is 'correct'; choose 'per_sample' or 'global'"):
        ForestSelectorRegressor(reward="correct").fit(*diabetes)
    with pytest.raises(ParameterError, match="give it max_depth=10 or less"):
        ForestSelectorRegressor(forest=RandomForestRegressor(1, random_state=0)).fit(*diabetes)
    with pytest.raises(DataError, match="y has one class only, 'a'"):
        ForestSelectorClassifier().fit(X, ["a"] * len(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [ForestSelectorClassifier(), ForestSelectorRegressor()], ids=lambda one: type(one).__name__
)
def test_passes_scikit_learns_checks_with_default_arguments(estimator):
    drawn = "trees draw rows, whatever they weigh"
    expected = dict.fromkeys(WEIGHT_CHECKS, drawn)
    done = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"} == {}
    assert len(done) > 40


@pytest.mark.slow
def test_spambase_as_in_the_thesis(papers_data):
    """Means of five splits; the thesis has 0.923 for its policy network."""
    frame = pd.read_csv(papers_data / "spambase.csv")
    X, y = frame.drop(columns="target"), frame["target"]
    network, gate, cart = [], [], []
    for seed in range(5):
        train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.2, random_state=seed)
        grown = ForestSelectorClassifier(random_state=seed).fit(train_X, train_y)
        report = grown.report(test_X, test_y)
        gate.append(report.values["selector"])
        cart.append(report.values["CART, depth 4"])
        network.append(grown.set_params(gate="network").fit(train_X, train_y).score(test_X, test_y))
    print(f"network {np.mean(network):.4f}, gate tree {np.mean(gate):.4f}, CART {np.mean(cart):.4f}")
    assert np.mean(network) >= 0.91
    assert less(np.mean(cart), np.mean(network))
    assert np.mean(gate) >= np.mean(cart) - 0.01
