"""``solve`` and ``export`` of a model that mimics a tree ensemble."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    """60 samples of two classes with three features: the table's path, features and labels."""
    rng = np.random.default_rng(3)
    X = rng.random((60, 3)).round(2)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(60) > 0.8, "rose", "tulip")
    path = tmp_path_factory.mktemp("data") / "flowers.csv"
    pd.DataFrame(X, columns=["length", "width", "age"]).assign(kind=y).to_csv(path, index=False)
    return path, X, y


@pytest.fixture
def options(flowers):
    data = ("--data", flowers[0], "--target", "kind")
    return ("solve", "--model", "miret", "--depth", 2, *data, "--time-limit", 30)


def test_an_ensemble_by_name(mipforest, options, tmp_path):
    found = mipforest(*options, "--ensemble", "random-forest:trees=7", "--test-size", 0.25, "--json")
    assert found.code == 0, found.err
    result = found.json
    assert result["parameters"]["ensemble"] == "random-forest:trees=7"
    assert "7 trees of depth 2" in result["ensemble"]
    assert result["verified"]
    assert 0.8 <= result["train_fidelity"] <= 1
    assert result["test_ensemble_accuracy"] is not None
    assert result["unfaithfulness"] + result["feature_cost"] == pytest.approx(result["objective"], abs=1e-6)


def test_a_fitted_ensemble_from_a_file(mipforest, options, flowers, tmp_path):
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(flowers[1], flowers[2])
    joblib.dump(forest, tmp_path / "forest.joblib")
    out = tmp_path / "run"
    found = mipforest(
        *options, "--ensemble", tmp_path / "forest.joblib", "--param", "proximity=0.8", "--out", out
    )
    assert found.code == 0, found.err
    assert "idelity" in found.out
    assert "share a leaf" in found.out
    result = json.loads((out / "result.json").read_text())
    assert "from forest.joblib" in result["ensemble"]
    shown = mipforest("show", out)
    assert shown.code == 0
    assert f"{result['train_fidelity']:.1%} in training" in shown.out
    assert "Close pairs together  100.0% in training" in shown.out
    assert mipforest("predict", out, flowers[0]).code == 0


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (("--ensemble", "random-woods"), "random-forest"),
        (("--ensemble", "nowhere.joblib"), "nowhere.joblib"),
        (("--ensemble", "random-forest:trees=0"), "trees"),
        (("--param", "gamma=1.5"), "largest frequency"),
        (("--param", "gamma=0.1,0.1,0.1"), "3 values"),
        (("--param", "gamma_percentile=150"), "0 to 100"),
        (("--param", "proximity=0"), "proximity"),
        (("--scaling", "standard"), "min-max"),
    ],
)
def test_wrong_requests_are_usage_errors(mipforest, options, extra, said):
    found = mipforest(*options, *extra)
    assert found.code == 2
    assert said in found.err
    assert "Traceback" not in found.err


def test_ensembles_that_do_not_fit(mipforest, options, flowers, tmp_path):
    _, X, y = flowers
    files = {
        "deep": RandomForestClassifier(3, max_depth=5, random_state=0).fit(X, y),
        "narrow": RandomForestClassifier(3, max_depth=2, random_state=0).fit(X[:, :2], y),
        "other": RandomForestClassifier(3, max_depth=2, random_state=0).fit(
            X, np.where(X[:, 0] > 0.5, "oak", "elm")
        ),
        "numbers": RandomForestRegressor(3, max_depth=2, random_state=0).fit(X, X[:, 0]),
        "unfitted": RandomForestClassifier(),
    }
    said = {"deep": "--depth 5", "narrow": "2 features", "numbers": "regressor", "unfitted": "not fitted"}
    for name, estimator in files.items():
        path = tmp_path / f"{name}.joblib"
        joblib.dump(estimator, path)
        found = mipforest(*options, "--ensemble", path, "--out", tmp_path / name)
        assert found.code == 2, (name, found.out)
        assert said.get(name, "") in found.err
        assert not (tmp_path / name).exists()


def test_models_that_mimic_nothing_take_no_ensemble(mipforest, options):
    found = mipforest(
        *["oct" if part == "miret" else part for part in options], "--ensemble", "random-forest"
    )
    assert found.code == 2
    assert "oct mimics no tree ensemble" in found.err


def test_several_classes_are_refused_with_a_way_on(mipforest):
    found = mipforest("solve", "--model", "miret", "--depth", 2, "--data", "iris")
    assert found.code == 2
    assert "--positive" in found.err


def test_export_and_check(mipforest, options, tmp_path):
    instance = tmp_path / "flowers.mps"
    exported = ("export", *options[1:-2], "--ensemble", "random-forest:trees=5", "-o", instance)
    made = mipforest(*exported)
    assert made.code == 0, made.err
    metadata = json.loads((tmp_path / "flowers.json").read_text())
    assert metadata["parameters"]["ensemble"] == "random-forest:trees=5"
    checked = mipforest("check", instance, tmp_path / "flowers.mst")
    assert checked.code == 0, checked.err
    imported = mipforest("import", tmp_path / "flowers.mst", "--instance", instance, "--json")
    assert imported.code == 0, imported.err
    assert imported.json["verified"]
    assert imported.json["objective"] == pytest.approx(metadata["start_objective"])


def test_models_lists_miret(mipforest):
    found = mipforest("models", "miret")
    assert found.code == 0
    for word in ("tight", "improved", "paper", "node-by-node", "gamma_percentile"):
        assert word in found.out
