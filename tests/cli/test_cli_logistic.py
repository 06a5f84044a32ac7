"""Probabilities, influences and a formulation's own facts on the command line."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss
from tolerance import same

from formulations.margot import Margot
from mipforest.problem.registry import formulation_classes
from mipforest.runs import load_saved_tree

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def logistic(monkeypatch):
    """Margin trees whose scores are taken for log-odds, with facts of all kinds to report."""
    report = {
        "refined_log_loss_objective": 12.3456789,
        "was_refined": True,
        "n_tangents": 6,
        "rule": "left to right",
        "unknown": None,
        "long": "word " * 40,
        "nested": {"a": [1, 2]},
    }
    monkeypatch.setattr(Margot, "refine", lambda self, fitted, data: replace(fitted, logistic=True))
    monkeypatch.setattr(Margot, "measures", lambda self, tree, data, instance: {"share_of_yes": 0.25})
    monkeypatch.setattr(Margot, "report", lambda self, solved, refined, instance: report)


@pytest.fixture
def run(logistic, mipforest, people_options, people_csv, tmp_path):
    done = mipforest(*people_options, "--test", people_csv, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    return tmp_path / "run"


def test_the_summary_tells_brier_score_log_loss_and_what_the_model_reports(mipforest, run):
    shown = mipforest("show", run).out
    result = json.loads((run / "result.json").read_text())
    facts = dict(re.findall(r"^(\S.*?)  +(\S.*)$", shown, re.MULTILINE))
    brier, loss = result["train_brier_score"], result["train_log_loss"]
    assert facts["Brier score"] == f"{brier:.4g} in training, {brier:.4g} in the test"
    assert facts["Log loss"] == f"{loss:.4g} in training, {loss:.4g} in the test"
    assert facts["Refined log loss objective"] == "12.3457"
    assert facts["Was refined"] == "yes"
    assert facts["N tangents"] == "6"
    assert facts["Rule"] == "left to right"
    assert facts["Share of yes"] == "0.25 in training, 0.25 in the test"
    assert not {"Unknown", "Long", "Nested", "Reported"} & facts.keys()
    assert "influence: " in shown


def test_json_carries_everything(mipforest, run, people):
    shown = mipforest("show", run, "--json").json
    saved = load_saved_tree(run / "tree.json")
    assert shown["tree"]["logistic"] is saved.tree.logistic is True
    assert shown["nested"] == {"a": [1, 2]}
    assert sum(part["count"] for part in shown["train_reliability"]) == len(people)
    np.testing.assert_array_equal(shown["tree"]["training_samples"]["influence"], saved.statistics.influence)
    assert saved.statistics.influence.shape == saved.tree.w.shape


def test_probabilities_are_columns_of_the_table(mipforest, run, people, people_csv, tmp_path):
    done = mipforest("predict", run, people_csv, "-o", tmp_path / "out.csv")
    assert done.code == 0
    assert "'prediction', probabilities in 'probability_no' and 'probability_yes'" in done.out
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table.columns) == [*people.columns, "prediction", "probability_no", "probability_yes"]
    proba = table[["probability_no", "probability_yes"]].to_numpy()
    expected = load_saved_tree(run / "tree.json").predict_proba(people)
    assert same(proba, expected)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-15)
    assert list(np.array(["no", "yes"])[proba.argmax(axis=1)]) == list(table["prediction"])
    truth = people["answer"] == "yes"
    assert f"brier_score: {brier_score_loss(truth, proba[:, 1]):.6g}" in done.out
    assert f"log_loss: {log_loss(truth, proba):.6g}" in done.out
    again = mipforest("predict", run, tmp_path / "out.csv", "-o", tmp_path / "again.csv")
    assert "'probability_yes_2'" in again.out


def test_probabilities_as_json_and_none_among_printed_predictions(mipforest, run, people, people_csv):
    done = mipforest("predict", run, people_csv, "--json").json
    expected = load_saved_tree(run / "tree.json").predict_proba(people)
    assert list(done["probabilities"]) == ["no", "yes"]
    assert same(np.column_stack(list(done["probabilities"].values())), expected)
    printed = mipforest("predict", run, people_csv)
    assert printed.out.splitlines() == done["predictions"]
    assert f"brier_score: {done['brier_score']:.6g}" in printed.err


def test_other_trees_have_no_columns_of_probabilities(mipforest, finished_run, people_csv, tmp_path):
    mipforest("predict", finished_run, people_csv, "-o", tmp_path / "out.csv")
    assert not any("probability" in column for column in pd.read_csv(tmp_path / "out.csv").columns)
    assert "probabilities" not in mipforest("predict", finished_run, people_csv, "--json").json


def test_statistics_that_do_not_fit_the_tree_are_refused(mipforest, finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    content = json.loads((run / "tree.json").read_text())
    without = {name: value for name, value in content["training_samples"].items() if name != "influence"}
    (run / "tree.json").write_text(json.dumps(content | {"training_samples": without}))
    assert "'training_samples' has no 'influence'" in mipforest("show", run).err
    for name in ("influence", "samples", "class_counts"):
        part = content["training_samples"] | {name: content["training_samples"][name][:-1]}
        (run / "tree.json").write_text(json.dumps(content | {"training_samples": part}))
        refused = mipforest("show", run)
        assert refused.code == 2
        assert f"'{name}' of 'training_samples' has shape" in refused.err
    content["training_samples"]["samples"][0] = 10**30
    (run / "tree.json").write_text(json.dumps(content))
    assert mipforest("show", run).code == 2


# ------------------------------------------------------------------ scaling


def test_the_model_chooses_the_scaling_unless_told(mipforest, people_options, tmp_path, monkeypatch):
    assert mipforest(*people_options, "--json").json["data"]["scaling"] == "minmax"
    monkeypatch.setattr(Margot, "scaling", "standard")
    done = mipforest(*people_options, "--json").json
    assert done["data"]["scaling"] == done["data_source"]["scaling"] == "standard"
    assert done["tree"]["encoding"]["scaling"] == "standard"
    told = mipforest(*people_options, "--scaling", "none", "--out", tmp_path / "run")
    assert "scaling none" in told.out
    assert json.loads((tmp_path / "run" / "result.json").read_text())["data"]["scaling"] == "none"


def test_instances_have_the_models_scaling_too(mipforest, tmp_path, monkeypatch):
    monkeypatch.setattr(Margot, "scaling", "standard")
    export = ("export", "--model", "margot", "--depth", 1, "--data", "synthetic:4-partitions")
    done = mipforest(*export, "-o", tmp_path / "a.mps", "--json").json
    assert done["data_source"]["scaling"] == "standard"
    done = mipforest(*export, "--scaling", "minmax", "-o", tmp_path / "b.mps", "--json").json
    assert done["data_source"]["scaling"] == "minmax"


def test_models_tell_their_scaling(mipforest):
    told = mipforest("models", "--json").json["models"]
    assert [model["scaling"] for model in told] == [cls.scaling for cls in formulation_classes().values()]
    assert "scaling:  minmax" in mipforest("models", "margot").out


def test_an_unknown_model_is_refused_with_any_scaling(mipforest):
    for scaling in ((), ("--scaling", "none")):
        done = mipforest("solve", "--model", "margott", "--depth", 1, "--data", "iris", *scaling)
        assert done.code == 2
        assert "margott" in done.err
