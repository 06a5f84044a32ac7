import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from linear_leaves import LinearLeaves
from margin_data import random_data
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)
from tolerance import same

from formulations.margot import Margot, SfsMargot
from formulations.oct_h import OctH
from mipforest.data import Dataset

pytestmark = pytest.mark.usefixtures("few_penalties")

KEYS = {
    "model", "variant", "depth", "parameters", "data", "solver", "solver_version", "bridges", "status",
    "objective", "bound", "gap", "seconds", "build_seconds", "nodes", "verified", "evaluated_objective",
    "max_violation", "train_accuracy", "train_balanced_accuracy", "features_used", "warm_start_objective",
    "events",
}  # fmt: skip
DATA = random_data(4, n=12, p=2)


@pytest.fixture(scope="module")
def result():
    return SfsMargot(C=(1.0, 2.0), B=np.int64(1)).build(DATA, 2).solve("highs", time_limit=None)


def test_everything_is_json(result):
    found = result.to_dict(test=DATA)
    assert found.keys() >= KEYS | {"test_accuracy", "test_balanced_accuracy"}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["parameters"] == {"C": [1.0, 2.0], "epsilon": 1e-3, "B": 1, "alpha": 1.0}
    assert found["data"] == {
        "name": "random",
        "n": 12,
        "p": 2,
        "sha256": DATA.sha256,
        "scaling": "minmax",
    }
    assert found["reported"] == []
    assert found["bridges"] == ["quadratic_to_tangents"]
    assert found["status"] == "optimal"
    assert found["verified"] is True
    assert found["evaluated_objective"] == pytest.approx(found["objective"], rel=1e-6)
    assert found["objective"] <= found["warm_start_objective"] + 1e-9
    assert found["events"][-1]["objective"] == found["objective"]  # exact: a copy
    assert found["events"][-1]["bound"] == found["bound"]  # exact: a copy
    assert same(found["test_accuracy"], found["train_accuracy"])


def test_without_a_tree_the_same_keys_hold_nothing():
    found = (
        Margot(variant="paper").build(DATA, 2).solve("highs", start=None, time_limit=0.0).to_dict(test=DATA)
    )
    assert found.keys() >= KEYS
    json.dumps(found, allow_nan=False)
    for key in ("objective", "gap", "train_accuracy", "test_balanced_accuracy", "evaluated_objective"):
        assert found[key] is None
    assert found["bound"] == 0  # of every tree it is at least that
    assert found["features_used"] == []
    assert found["verified"] is False


def test_the_start_counts_without_a_bridge_too():
    from mipforest.model import Model
    from mipforest.solving import solve

    m = Model("linear")
    x = m.integer("x", 2, lower=0, upper=5)
    m.minimize(x.sum())
    m.add("row", x.sum() >= 3)
    assert solve(m, start={"x": np.array([5.0, 5.0])}).start_objective == 10.0


def test_measures_are_scikit_learns(result):
    predicted = result.tree.predict(DATA.X_raw)
    measures = result.measures(DATA)
    assert same(measures["accuracy"], np.mean(predicted == DATA.y))
    assert measures["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(DATA.y, predicted))


def test_a_class_that_is_absent_or_never_predicted_is_no_trouble(result):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (0, 1):
            part = DATA.take(DATA.y == k)
            measures = result.measures(part)
            assert same(measures["balanced_accuracy"], measures["accuracy"])
        constant = Dataset.from_arrays(np.zeros((3, 2)), [0, 1, 1])
        assert same(result.measures(constant)["balanced_accuracy"], 0.5)


def test_features_used_by_name(result):
    used = result.tree.features_used().overall
    assert result.features_used == tuple(DATA.features.labels[j] for j in used)


# ------------------------------------------------------------------ probabilities, and a formulation's own facts


class Logistic(Margot):
    """Margin trees whose scores are taken for log-odds, as far as results and files are concerned."""

    def refine(self, tree, instance):
        return replace(tree, logistic=True)

    def measures(self, tree, data, instance):
        return {"mean_probability": float(tree.predict_proba(data.X_raw)[:, 1].mean())}

    def report(self, solved, refined, instance):
        return {"refined_by": float("nan"), "tangents": [[-1.9, 0.0], [1.9]], "was_refined": refined.logistic}


@pytest.fixture(scope="module")
def logistic():
    return Logistic().build(DATA, 2).solve("highs", time_limit=0.0)


def test_probabilities_of_a_logistic_tree_are_measured(logistic):
    assert logistic.tree.logistic
    assert not logistic.solved_tree.logistic
    second = logistic.tree.predict_proba(DATA.X_raw)[:, 1]
    measures = logistic.measures(DATA)
    assert measures["brier_score"] == pytest.approx(brier_score_loss(DATA.y, second))
    assert measures["log_loss"] == pytest.approx(log_loss(DATA.y, second))
    assert sum(part.count for part in measures["reliability"].bins) == DATA.n
    assert same(measures["accuracy"], np.mean((second > 0.5) == DATA.y))


def test_probabilities_and_what_the_formulation_adds_are_json(logistic):
    test = DATA.take(range(5))
    found = logistic.to_dict(test=test)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for part, data in (("train", DATA), ("test", test)):
        measures = logistic.measures(data)
        assert same(found[f"{part}_brier_score"], measures["brier_score"])
        assert same(found[f"{part}_log_loss"], measures["log_loss"])
        assert found[f"{part}_reliability"] == measures["reliability"].to_list()
        assert 0 < found[f"{part}_mean_probability"] < 1
    assert found["reported"] == ["mean_probability", "refined_by", "tangents", "was_refined"]
    assert (found["refined_by"], found["tangents"]) == (None, [[-1.9, 0.0], [1.9]])
    assert found["was_refined"] is True


def test_one_class_alone_has_probabilities_too(logistic):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (0, 1):
            measures = logistic.measures(DATA.take(DATA.y == k))
            assert 0 <= measures["brier_score"] <= 1


def test_a_logistic_tree_starts_a_model_that_labels_leaves_itself(logistic):
    problem = OctH().build(DATA, 2)
    start = problem.start_tree(logistic.tree)
    assert not start.logistic
    found = problem.solve("highs", start=logistic.tree, time_limit=0.0)
    assert found.verified
    assert not found.tree.logistic


def test_trees_without_probabilities_have_no_such_measures(result):
    assert result.measures(DATA).keys() == {"accuracy", "balanced_accuracy"}
    lost = replace(result, tree=None, solved_tree=None).to_dict(test=DATA)
    assert lost["reported"] == []
    assert not any("brier" in key or "mean_probability" in key for key in lost)


# ------------------------------------------------------------------ regression


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = 100 * rng.normal(size=(30, 2))
    y = 1e4 + 50 * X[:, 0] + 1e3 * rng.normal(size=30)
    return LinearLeaves().build(Dataset.from_arrays(X, y), 1).solve("highs", time_limit=None)


def test_a_regression_is_measured_in_original_units(regression):
    data = regression.problem.data
    predicted = regression.tree.predict(data.X_raw)
    found = regression.to_dict(test=data)
    assert regression.verified
    assert found["train_r2"] == pytest.approx(r2_score(data.y, predicted))
    assert found["train_mse"] == pytest.approx(mean_squared_error(data.y, predicted))
    assert found["train_mae"] == pytest.approx(mean_absolute_error(data.y, predicted))
    assert found["objective"] == pytest.approx(data.n * found["train_mae"])
    assert not any("accuracy" in key for key in found)
    assert {f"test_{key}" for key in ("r2", "mse", "mae")} <= found.keys()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_regression_tested_on_constant_targets_is_no_trouble(regression):
    data = regression.problem.data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 3):
            part = replace(data.take(range(n)), y=np.full(n, 0.1))
            error = regression.tree.predict(part.X_raw) - 0.1
            expected = {"r2": 0, "mse": np.mean(error**2), "mae": np.mean(np.abs(error))}
            assert regression.measures(part) == pytest.approx(expected)


def test_a_regression_without_a_tree_has_the_same_keys(regression):
    found = replace(regression, tree=None).to_dict(test=regression.problem.data)
    assert [found[f"{part}_{key}"] for part in ("train", "test") for key in ("r2", "mse", "mae")] == [
        None
    ] * 6
