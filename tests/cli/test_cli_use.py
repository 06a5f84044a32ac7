"""``mipforest show``, ``plot`` and ``predict``: using a run."""

import csv
import json
import shutil
import sqlite3
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from small_run import SMALL
from tolerance import same

from mipforest.data import Encoding
from mipforest.trees import load

pytestmark = pytest.mark.usefixtures("few_penalties")


def test_show_tells_what_solve_told(mipforest, people_options, tmp_path):
    solved = mipforest(*people_options, "--out", tmp_path / "run").out
    shown = mipforest("show", tmp_path / "run").out
    assert solved.startswith(shown.rstrip())
    assert "colour" in shown


def test_show_as_json_is_the_result(mipforest, finished_run):
    shown = mipforest("show", finished_run, "--json").json
    result = json.loads((finished_run / "result.json").read_text())
    assert {key: shown[key] for key in result} == result
    assert shown["tree"]["target"] == "answer"


@pytest.mark.parametrize("damage", ["{", "[]", '{"status": "optimal"}'])
def test_a_damaged_result_is_refused(mipforest, finished_run, tmp_path, damage):
    run = shutil.copytree(finished_run, tmp_path / "run")
    (run / "result.json").write_text(damage)
    done = mipforest("show", run)
    assert done.code == 2
    assert "result.json" in done.err


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": "mipforest-tree"}', "null"])
def test_a_damaged_tree_is_refused(mipforest, finished_run, tmp_path, damage):
    run = shutil.copytree(finished_run, tmp_path / "run")
    (run / "tree.json").write_text(damage)
    done = mipforest("predict", run, "x.csv")
    assert done.code == 2
    assert "tree.json" in done.err
    assert "Traceback" not in done.err


def test_predictions_are_those_of_training(mipforest, finished_run, people, people_csv):
    done = mipforest("predict", finished_run, people_csv)
    assert done.code == 0
    predicted = done.out.splitlines()
    result = json.loads((finished_run / "result.json").read_text())
    assert same(np.mean(predicted == people["answer"]), result["train_accuracy"])
    assert f"accuracy: {result['train_accuracy']:.1%}" in done.err


def test_accuracy_weighs_rows_where_weights_are_named(mipforest, finished_run, people, people_csv, tmp_path):
    predicted = mipforest("predict", finished_run, people_csv).out.splitlines()
    right = np.array(predicted) == people["answer"].to_numpy()
    weighted = people.assign(count=np.where(right, 3, 0) + (np.arange(len(people)) % 2))
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    told = mipforest("predict", finished_run, tmp_path / "weighted.csv", "--weight", "count", "--json").json
    assert told["accuracy"] == pytest.approx(np.average(right, weights=weighted["count"]))
    wrong = mipforest("predict", finished_run, people_csv, "--weight", "cuont")
    assert (wrong.code, "no column 'cuont'" in wrong.err) == (2, True)


def test_predictions_are_appended_to_the_table(mipforest, finished_run, people, people_csv, tmp_path):
    printed = mipforest("predict", finished_run, people_csv).out.splitlines()
    done = mipforest("predict", finished_run, people_csv, "-o", tmp_path / "out.csv")
    assert done.code == 0
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == printed
    assert [row["colour"] for row in rows] == list(people["colour"])
    assert [int(row["age"]) for row in rows] == list(people["age"])
    again = mipforest("predict", finished_run, tmp_path / "out.csv", "-o", tmp_path / "again.csv")
    assert "'prediction_2'" in again.out


def test_columns_in_another_order_and_without_target_predict_the_same(
    mipforest, finished_run, people, people_csv, tmp_path
):
    other = people.drop(columns="answer").iloc[:, ::-1].assign(remark="new")
    other.to_csv(tmp_path / "other.csv", index=False)
    done = mipforest("predict", finished_run, tmp_path / "other.csv", "--json")
    assert done.json == {
        "n": 24,
        "predictions": mipforest("predict", finished_run, people_csv).out.splitlines(),
    }


def test_prediction_agrees_with_the_encoded_tree(mipforest, finished_run, people, people_csv):
    """An independent route: encode by pandas, apply the tree."""
    tree = load(finished_run / "tree.json")
    encoded = pd.get_dummies(people.drop(columns="answer"), prefix_sep="=")
    X = encoded[list(tree.feature_names)].to_numpy(dtype=float)
    assert list(tree.predict_labels(X)) == mipforest("predict", finished_run, people_csv).out.splitlines()


@pytest.mark.parametrize(
    ("column", "value", "word"),
    [
        ("age", None, "line 4"),
        ("colour", "pink", "pink"),
        ("age", "old", "old"),
        ("answer", "maybe", "maybe"),
    ],
)
def test_samples_that_cannot_be_used_are_named(
    mipforest, finished_run, people, tmp_path, column, value, word
):
    frame = people.astype(object)
    frame.loc[2, column] = value
    frame.to_csv(tmp_path / "bad.csv", index=False)
    done = mipforest("predict", finished_run, tmp_path / "bad.csv")
    assert done.code == 2
    assert word in done.err
    assert column in done.err


def test_a_missing_column_is_named(mipforest, finished_run, people, tmp_path):
    people.drop(columns="colour").to_csv(tmp_path / "bad.csv", index=False)
    done = mipforest("predict", finished_run, tmp_path / "bad.csv")
    assert done.code == 2
    assert "colour" in done.err


def test_predict_knows_the_classes_before_merging(mipforest, tmp_path):
    frame = pd.DataFrame({"x": np.arange(30.0), "target": np.repeat(["a", "b", "c"], 10)})
    frame.to_csv(tmp_path / "abc.csv", index=False)
    solve = ("solve", "--model", "margot", "--depth", "1", "--data", tmp_path / "abc.csv", "--positive", "c")
    assert mipforest(*solve, "--param", "C=100", "--out", tmp_path / "run").code == 0
    done = mipforest("predict", tmp_path / "run", tmp_path / "abc.csv", "--json").json
    assert done["accuracy"] == 1.0
    assert done["predictions"] == ["a|b"] * 20 + ["c"] * 10


@pytest.mark.parametrize(  # the other formats by default: test_tree_plot
    "suffix", [".svg", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".png", ".pdf"))]
)
def test_plot_writes_a_picture(mipforest, finished_run, tmp_path, suffix):
    path = tmp_path / f"tree{suffix}"
    assert mipforest("plot", finished_run, "-o", path).code == 0
    assert path.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r", b"%PDF-")


def test_plot_is_the_picture_of_solve_and_does_not_bar_another_run(mipforest, people_options, tmp_path):
    run = tmp_path / "run"
    mipforest(*people_options, "--out", run)
    before = (run / "tree.svg").read_bytes()
    (run / "tree.svg").unlink()
    assert mipforest("plot", run).code == 0
    assert (run / "tree.svg").read_bytes() == before
    assert mipforest("plot", run, "-o", run / "tree.png").code == 0
    assert mipforest(*people_options, "--out", run, "--force").code == 0


def test_plot_of_data_that_are_gone(mipforest, people, tmp_path):
    people.to_csv(tmp_path / "gone.csv", index=False)
    data = ("--data", tmp_path / "gone.csv", "--target", "answer")
    mipforest(
        "solve", "--model", "margot", "--depth", "1", *data, "--time-limit", "0", "--out", tmp_path / "run"
    )
    (tmp_path / "gone.csv").unlink()
    done = mipforest("plot", tmp_path / "run", "-o", tmp_path / "tree.svg")
    assert done.code == 0
    assert "drawn without" in done.err
    people.assign(age=1 + people["age"]).to_csv(tmp_path / "gone.csv", index=False)
    assert "has changed" in mipforest("plot", tmp_path / "run", "-o", tmp_path / "tree.svg").err


def test_plot_partition(mipforest, finished_run, tmp_path):
    mipforest(*SMALL, "--out", tmp_path / "run")
    assert mipforest("plot", tmp_path / "run", "--partition").code == 0
    assert (tmp_path / "run" / "partition.svg").exists()
    assert "2 features" in mipforest("plot", finished_run, "--partition").err
    refused = mipforest("plot", finished_run, "-o", tmp_path / "tree.jpg")
    assert refused.code == 2
    assert ".png" in refused.err


def test_probabilities_are_the_shares_of_the_leaf(mipforest, finished_run, people, people_csv, tmp_path):
    done = mipforest("predict", finished_run, people_csv, "--proba")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert list(rows[0]) == ["prediction", "probability_no", "probability_yes"]
    assert len(rows) == len(people)
    told = mipforest("predict", finished_run, people_csv, "--proba", "--json").json
    assert told["predictions"] == [row["prediction"] for row in rows]
    assert [float(row["probability_yes"]) for row in rows] == told["probabilities"]["yes"]
    mipforest("predict", finished_run, people_csv, "--proba", "-o", tmp_path / "out.csv")
    assert "probability_yes" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_a_prediction_is_explained_by_its_path(mipforest, finished_run, people, people_csv, tmp_path):
    done = mipforest("predict", finished_run, people_csv, "--explain")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert list(rows[0]) == ["prediction", "explanation"]
    assert all(row["explanation"].endswith(f": {row['prediction']}") for row in rows)
    told = mipforest("predict", finished_run, people_csv, "--explain", "--json").json
    assert told["explanations"] == [row["explanation"] for row in rows]
    mipforest("predict", finished_run, people_csv, "--explain", "-o", tmp_path / "out.csv")
    assert "explanation" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_a_tree_is_written_for_graphviz_and_as_code(mipforest, finished_run, people, people_csv, tmp_path):
    for name in ("tree.dot", "tree.py"):
        assert mipforest("plot", finished_run, "-o", tmp_path / name).err == ""
    assert (tmp_path / "tree.dot").read_text().startswith("digraph tree {")
    found: dict[str, Any] = {}
    code = (tmp_path / "tree.py").read_text()
    assert "x['colour=blue'] is 1 where 'colour is blue', else 0" in code
    exec(code, found)
    frame = Encoding.from_dict(json.loads((finished_run / "tree.json").read_text())["encoding"])
    X = frame.encode(people)
    predicted = [found["predict"](dict(zip(frame.features, x, strict=True))) for x in X.tolist()]
    assert predicted == mipforest("predict", finished_run, people_csv).out.splitlines()
    assert mipforest("plot", finished_run, "-o", tmp_path / "tree.py", "--partition").code == 2


def test_a_tree_is_written_for_databases(mipforest, finished_run, people, people_csv, tmp_path):
    assert mipforest("plot", finished_run, "-o", tmp_path / "tree.sql").err == ""
    predicted = mipforest("predict", finished_run, people_csv).out.splitlines()
    with sqlite3.connect(":memory:") as database:
        people.to_sql("people", database, index=False)
        rows = database.execute(f"SELECT {(tmp_path / 'tree.sql').read_text()} FROM people ORDER BY rowid")
        assert list(rows) == [(label,) for label in predicted]
    assert mipforest("plot", finished_run, "-o", tmp_path / "tree.sql", "--dialect", "mysql").err == ""
    assert "`age`" in (tmp_path / "tree.sql").read_text()
    refused = mipforest("plot", finished_run, "-o", tmp_path / "tree.sql", "--dialect", "mysq")
    assert (refused.code, "did you mean 'mysql'" in refused.err) == (2, True)
    refused = mipforest("plot", finished_run, "-o", tmp_path / "tree.svg", "--dialect", "mysql")
    assert (refused.code, "is for .sql files" in refused.err) == (2, True)


def test_a_tree_is_written_for_scikit_learn(mipforest, finished_run, people, people_csv, tmp_path):
    refused = mipforest("plot", finished_run, "-o", tmp_path / "tree.joblib")
    assert refused.code == 2
    assert ".joblib: node 0 splits on 5 features" in refused.err
    options = ("--model", "oct", "--depth", "1", "--data", people_csv, "--target", "answer")
    assert mipforest("solve", *options, "--out", tmp_path / "run").code == 0
    assert mipforest("plot", tmp_path / "run", "-o", tmp_path / "tree.joblib").err == ""
    encoding = Encoding.from_dict(json.loads((tmp_path / "run" / "tree.json").read_text())["encoding"])
    X = pd.DataFrame(encoding.encode(people), columns=list(encoding.features))
    predicted = mipforest("predict", tmp_path / "run", people_csv).out.splitlines()
    assert joblib.load(tmp_path / "tree.joblib").predict(X).tolist() == predicted


def test_a_tree_is_written_as_an_onnx_model(mipforest, finished_run, people, people_csv, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert mipforest("plot", finished_run, "-o", tmp_path / "tree.onnx").err == ""
    encoding = Encoding.from_dict(json.loads((finished_run / "tree.json").read_text())["encoding"])
    found = runtime.InferenceSession(tmp_path / "tree.onnx").run(
        ["prediction"], {"X": encoding.encode(people)}
    )
    assert found[0].tolist() == mipforest("predict", finished_run, people_csv).out.splitlines()


def test_an_unseen_level_may_be_none_of_those_known(mipforest, finished_run, people, tmp_path):
    people.assign(colour="violet").to_csv(tmp_path / "new.csv", index=False)
    refused = mipforest("predict", finished_run, tmp_path / "new.csv")
    assert refused.code == 2
    assert "--unseen none" in refused.err
    assert f"{tmp_path / 'new.csv'}: column 'colour'" in refused.err
    done = mipforest("predict", finished_run, tmp_path / "new.csv", "--unseen", "none")
    assert len(done.out.splitlines()) == len(people)


def test_a_column_that_is_an_identifier_is_dropped(mipforest, people, tmp_path):
    many = pd.concat([people] * 6, ignore_index=True)
    many.assign(name=[f"person {k}" for k in range(len(many))]).to_csv(tmp_path / "named.csv", index=False)
    asked = ("solve", "--model", "oct", "--depth", "1", "--data", tmp_path / "named.csv")
    told = mipforest(*asked)
    assert "--target" in told.err
    asked = (*asked, "--target", "answer", "--time-limit", "0")
    assert "--drop name" in mipforest(*asked).err
    done = mipforest(*asked, "--drop", "name", "--json").json
    assert done["options"]
    assert done["data_source"]["drop"] == ["name"]
