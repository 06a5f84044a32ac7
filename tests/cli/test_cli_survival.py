"""Survival trees on the command line: times and events of a file, hazards of the training samples, the report."""

import json

import numpy as np
import pandas as pd
import pytest
from tolerance import same

from mipforest import Dataset, get_formulation, load
from mipforest.survival import concordance, nelson_aalen


@pytest.fixture
def patients(tmp_path):
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame({"age": rng.integers(30, 80, n), "stage": rng.integers(1, 4, n)})
    death, end = rng.exponential(1 + 2 * (table["age"] < 55)), rng.uniform(0.5, 4, n)
    table = table.assign(years=np.minimum(death, end).round(2), seen=np.where(death <= end, "yes", "no"))
    path = tmp_path / "patients.csv"
    table.to_csv(path, index=False)
    return path


SOLVE = ("solve", "--model", "survival", "--depth", 1, "--target", "years", "--event", "seen")


def test_a_run_has_its_measures_and_curves(mipforest, patients, tmp_path):
    run = tmp_path / "run"
    done = mipforest(*SOLVE, "--data", patients, "--test-size", "0.3", "--out", run)
    assert done.code == 0
    assert "optimal, proven" in done.out
    assert "Harrell's C" in done.out
    assert "RMSE" not in done.out
    result = json.loads((run / "result.json").read_text())
    table = pd.read_csv(patients).drop(columns=["years", "seen"])
    told = pd.read_csv(patients)
    data = Dataset.from_arrays(table, told["years"], event=told["seen"] == "yes")
    train, test = data.split(0.3, seed=0)
    predicted = mipforest("predict", run, patients, "--json").json["predictions"]
    rows = [int(sample) for sample in test.samples.labels]
    time, event, _ = test.followed.T
    assert same(result["test_concordance"], concordance(time, event > 0, np.array(predicted)[rows]))
    # Hazards are relative to those of the training samples, also of the test's.
    time, event, _ = train.followed.T
    assert same(train.baseline_hazard.values, nelson_aalen(time, event > 0).values)
    assert same(test.baseline_hazard.values, train.baseline_hazard.values)
    assert mipforest("report", run).code == 0
    page = (run / "report.html").read_text()
    assert "Survival at the leaves" in page
    assert "--event seen" in page
    assert page.count('class="alive"') == 2
    assert "Predicted and true values" not in page


def test_a_test_file_has_the_hazards_of_the_training_file(mipforest, patients, tmp_path):
    told = pd.read_csv(patients)
    told[:60].to_csv(tmp_path / "train.csv", index=False)
    told[60:].to_csv(tmp_path / "test.csv", index=False)
    files = ("--data", tmp_path / "train.csv", "--test", tmp_path / "test.csv")
    done = mipforest(*SOLVE, *files, "--json")
    assert done.code == 0
    assert 0 <= done.json["test_concordance"] <= 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--model", "survival", "--target", "years"), "and that of events with --event"),
        (("--model", "ort", "--target", "years", "--event", "seen"), "ort predicts no hazards"),
        (("--model", "survival", "--event", "seen"), "--event tells at which of the times in --target"),
        (("--model", "survival", "--target", "years", "--event", "stage"), "it needs two"),
        (("--model", "survival", "--target", "age", "--event", "absent"), "absent"),
    ],
)
def test_what_cannot_be_is_refused(mipforest, patients, given, said):
    done = mipforest("solve", "--depth", 1, "--data", patients, *given)
    assert done.code != 0
    assert said in done.err


def test_grids_are_chosen_by_concordance_and_by_deviance(mipforest, patients, tmp_path):
    tune = ("tune", "--depth", "1", "--grid", "alpha=0,0.1", "--folds", 2, "--json")
    done = mipforest(*tune, "--model", "survival", "--data", patients, "--target", "years", "--event", "seen")
    assert done.code == 0
    assert done.json["tuning"]["score"] == "concordance"
    told = pd.read_csv(patients)
    told.assign(count=(told["age"] // 20)).drop(columns=["seen"]).to_csv(tmp_path / "counts.csv", index=False)
    done = mipforest(
        *tune,
        "--model",
        "poisson",
        "--data",
        tmp_path / "counts.csv",
        "--target",
        "count",
        "--task",
        "regression",
    )
    assert done.code == 0, done.out
    assert done.json["tuning"]["score"] == "deviance_explained"


def test_weights_stay_beside_exposures():
    data = load("diabetes")
    own = Dataset.from_arrays(data.X_raw, data.y, event=data.X[:, 0] > 0.4)
    twice = own.with_weights(np.full(data.n, 2.0))
    assert same(twice.y, own.y)
    assert same(twice.weights, 2 * own.weights)
    assert same(twice.with_weights(np.ones(data.n)).weights, own.weights)


def test_concordance_counts_weights():
    rng = np.random.default_rng(2)
    X, weights = rng.integers(0, 4, (40, 2)).astype(float), rng.choice([1.0, 3.0], 40)
    time, event = rng.exponential(1 + X[:, 0]), rng.random(40) < 0.7
    data = Dataset.from_arrays(X, time, event=event, weights=weights)
    result = get_formulation("survival")().build(data, 1).solve("exact-search")
    expected = concordance(time, event, result.tree.predict(X), weights)
    assert same(result.measures(data)["concordance"], expected)
