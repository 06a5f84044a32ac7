"""Several targets on the command line: columns of a file, predictions by target, the page, tuning, refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_linnerud
from tolerance import same

from mipforest import MultiTreeRegressor, load
from mipforest.errors import DataError


@pytest.fixture
def men(tmp_path):
    path = tmp_path / "men.csv"
    load_linnerud(as_frame=True).frame.to_csv(path, index=False)
    return path


@pytest.fixture
def bands(tmp_path):
    table = load_linnerud(as_frame=True).frame
    labels = {
        "pulse": np.where(table["Pulse"] > 56, "high", "low"),
        "size": np.digitize(table["Weight"], [160, 185]),
    }
    path = tmp_path / "bands.csv"
    table.drop(columns=["Weight", "Waist", "Pulse"]).assign(**labels).to_csv(path, index=False)
    return path


TARGETS = ["Weight", "Waist", "Pulse"]
NUMBERS = ("--model", "multi", "--targets", ",".join(TARGETS), "--task", "regression")
LABELS = ("--model", "multi", "--targets", "pulse,size")


def test_a_run_of_numbers_is_solved_kept_read_and_predicts(mipforest, men, tmp_path):
    run, table = tmp_path / "run", pd.read_csv(men)
    done = mipforest("solve", *NUMBERS, "--depth", 2, "--data", men, "--test-size", "0.3", "--out", run)
    assert done.code == 0
    assert "optimal, proven" in done.out
    result = json.loads((run / "result.json").read_text())
    train = load(men, targets=TARGETS, task="regression").split(0.3, seed=0)[0]
    tree = MultiTreeRegressor(depth=2).fit(train.X_raw, train.y)
    assert same(result["objective"], tree.objective_)
    assert same(result["train_r2"], tree.score(train.X_raw, train.y))
    predicted = mipforest("predict", run, men, "--json").json
    assert list(predicted["predictions"]) == TARGETS
    expected = tree.predict(table.drop(columns=TARGETS).to_numpy())
    assert same(np.column_stack(list(predicted["predictions"].values())), expected)
    assert 0 < predicted["mae"] < 20
    assert mipforest("predict", run, men, "-o", tmp_path / "new.csv").code == 0
    written = pd.read_csv(tmp_path / "new.csv")
    assert same(written[[f"prediction_{name}" for name in TARGETS]].to_numpy(), expected)
    # Without the targets the columns are predicted all the same.
    table.drop(columns=TARGETS).to_csv(tmp_path / "features.csv", index=False)
    assert mipforest("predict", run, tmp_path / "features.csv").out.startswith(
        "prediction_Weight,prediction_Waist"
    )


def test_the_page_shows_the_vectors_of_leaves_and_what_is_explained_of_each(mipforest, men, bands, tmp_path):
    for path, given in ((men, NUMBERS), (bands, LABELS)):
        run = tmp_path / path.stem
        assert mipforest("solve", *given, "--depth", 1, "--data", path, "--out", run).code == 0
        assert mipforest("report", run).code == 0
        page, result = (run / "report.html").read_text(), json.loads((run / "result.json").read_text())
        assert "Predictions by target" in page
        assert "Predictions of the leaf n1" in page
        assert f"--targets {given[3]}" in page
        assert "Weight: " in (run / "tree.svg").read_text() or path == bands
        assert 0 < result["train_r2" if path == men else "train_label_accuracy"] < 1


def test_labels_are_predicted_by_name(mipforest, bands, tmp_path):
    run, table = tmp_path / "run", pd.read_csv(bands)
    assert mipforest("solve", *LABELS, "--depth", 2, "--data", bands, "--out", run).code == 0
    predicted = mipforest("predict", run, bands, "--json").json
    right = [
        np.mean(np.array(predicted["predictions"][name]) == table[name].astype(str))
        for name in ("pulse", "size")
    ]
    assert same(predicted["label_accuracy"], np.mean(right))
    assert set(predicted["predictions"]["pulse"]) <= {"high", "low"}


def test_a_test_file_has_the_classes_of_the_training_file(mipforest, bands, tmp_path):
    table = pd.read_csv(bands)
    other = tmp_path / "other.csv"
    table.assign(pulse="medium").to_csv(other, index=False)
    told = mipforest("solve", *LABELS, "--depth", 1, "--data", bands, "--test", other)
    assert told.code != 0
    assert "'medium'" in told.err
    table.head(7).to_csv(other, index=False)
    assert mipforest("solve", *LABELS, "--depth", 1, "--data", bands, "--test", other).code == 0


def test_depths_are_tuned_by_r2_or_by_labels(mipforest, men, bands, tmp_path):
    for path, given, score in ((men, NUMBERS, "r2"), (bands, LABELS, "label_accuracy")):
        run = tmp_path / f"tuned-{path.stem}"
        words = ("--depth", "1,2", "--folds", 2, "--data", path, "--time-limit", 5, "--out", run)
        assert mipforest("tune", *given, *words).code == 0
        told = json.loads((run / "result.json").read_text())["tuning"]
        assert str(told["score"]) in (score,)


def test_a_certificate_is_of_these_targets(mipforest, men, bands, tmp_path):
    for path, given in ((men, NUMBERS), (bands, LABELS)):
        proof = tmp_path / f"{path.stem}.gz"
        assert mipforest("solve", *given, "--depth", 2, "--data", path, "--certificate", proof).code == 0
        assert mipforest("certify", proof, *given, "--depth", 2, "--data", path).code == 0
        pd.read_csv(path).iloc[::-1].iloc[1:].to_csv(tmp_path / "fewer.csv", index=False)
        told = mipforest("certify", proof, *given, "--data", tmp_path / "fewer.csv")
        assert told.code == 3
        assert "sha256" in told.err


def test_trees_near_the_optimum_are_on_the_page(mipforest, men, bands, tmp_path):
    for path, given in ((men, NUMBERS), (bands, LABELS)):
        run = tmp_path / path.stem
        words = ("--depth", 2, "--data", path, "--keep-trees", 5, "--out", run)
        assert mipforest("solve", *given, *words).code == 0
        assert mipforest("report", run).code == 0
        assert "Trees near the optimum" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--target", "Weight"), "--targets takes the place"),
        (("--method", "batch"), "one target"),
        (("--model", "ort"), "--model multi"),
        (("--recall", "high=0.5"), "predicts numbers"),
    ],
)
def test_what_takes_one_target_refuses_several(mipforest, men, tmp_path, more, says):
    given = [word for word in NUMBERS if more[0] != "--model" or word not in ("--model", "multi")]
    command = "tune" if more[0] == "--method" else "solve"
    out = ("--out", tmp_path / "run") if command == "tune" else ()
    told = mipforest(command, *given, "--depth", 2, "--data", men, *more, *out)
    assert told.code != 0
    assert says in told.err


def test_targets_that_do_not_fit_together_are_refused(men, bands, tmp_path):
    with pytest.raises(DataError, match="hold text"):
        load(bands, targets=["pulse", "Chins"], task="regression")
    with pytest.raises(DataError, match="no column is called"):
        load(men, targets=["Weight", "Height"])
    with pytest.raises(DataError, match="target 1"):
        load(men, targets=["Weight", "Weight"])
    table = pd.read_csv(men).assign(Weight=1.0, Waist=2.0, Pulse=3.0)
    table.to_csv(tmp_path / "same.csv", index=False)
    with pytest.raises(DataError, match="nothing to predict"):
        load(tmp_path / "same.csv", targets=TARGETS)
