"""A score card on the command line: solved, shown, predicted with, drawn, reported, and started from."""

import json

import pandas as pd
import pytest

from mipforest.formatting import percent


@pytest.fixture(scope="module")
def card_run(mipforest, people_csv, tmp_path_factory):
    run = tmp_path_factory.mktemp("cards") / "run"
    options = ("--model", "ogrs", "--param", "rules=2", "--data", people_csv, "--target", "answer")
    done = mipforest("solve", *options, "--out", run)
    assert done.code == 0, done.err
    return run, options, done.out


def test_solve_prints_a_proven_card(card_run):
    run, _, out = card_run
    assert "optimal, proven" in out
    assert "yes: the score card, applied to the samples" in out
    assert "depth" not in out.partition("Compare")[0]
    assert "Risk of yes" in out
    assert "AUC   " in out
    assert "Calibration error (rms)" in out
    assert sorted(path.name for path in run.iterdir()) == [
        "card.json",
        "card.svg",
        "result.json",
        "solver.log",
    ]
    assert json.loads((run / "result.json").read_text())["finds"] == "score card"


def test_show_predict_plot_and_report(card_run, mipforest, people_csv, tmp_path):
    run, options, out = card_run
    assert mipforest("show", run).out.split("Status")[1].split("Time")[0] in out
    told = mipforest("show", run, "--json").json
    assert told["card"]["format"] == "mipforest-score-card"
    predicted = mipforest("predict", run, people_csv, "--proba", "--json").json
    assert set(predicted["probabilities"]) == {"no", "yes"}
    assert predicted["accuracy"] == pytest.approx(told["train_accuracy"])
    assert mipforest("plot", run, "-o", tmp_path / "card.png").code == 0
    assert mipforest("report", run, "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Add the points of every line that applies" in page
    assert "Decision tree" not in page
    assert "Proven: no other card of at most 2 rules with -5 to 5 points each" in page
    assert "the score card read off it" in page
    assert f"higher total in {percent(told['train_auc'])} of all pairs" in page
    assert "--depth" not in page
    again = mipforest("solve", *options, "--start", run, "--time-limit", "0", "--json").json
    assert again["objective"] == pytest.approx(told["objective"], rel=1e-9)


def test_what_is_for_trees_is_refused(card_run, mipforest, tmp_path):
    run, options, _ = card_run
    for suffix in (".dot", ".py", ".joblib"):
        refused = mipforest("plot", run, "-o", (tmp_path / "card").with_suffix(suffix)).err
        assert f"score card, and {suffix} is for trees; write it as .sql or .onnx" in refused
        assert "points from card.json" in refused
    assert "finds a score card, which has no depth" in mipforest("solve", *options, "--depth", "2").err
    of_tree = ("--model", "oct", *options[4:])
    assert "--depth is missing" in mipforest("solve", *of_tree).err


def test_a_total_is_explained_by_its_rules(card_run, mipforest, people_csv):
    run, _, _ = card_run
    told = mipforest("predict", run, people_csv, "--explain", "--json").json
    assert len(told["explanations"]) == told["n"]
    assert all(": total " in line and "risk " in line for line in told["explanations"])


def test_a_card_is_written_as_an_expression(card_run, mipforest, tmp_path):
    run, _, _ = card_run
    assert mipforest("plot", run, "-o", tmp_path / "card.sql").code == 0
    assert (tmp_path / "card.sql").read_text().startswith("CASE WHEN")


def test_a_changed_card_file_is_refused(card_run, mipforest, tmp_path):
    run, _, _ = card_run
    for name in ("result.json", "card.json"):
        (tmp_path / name).write_text((run / name).read_text())
    content = json.loads((tmp_path / "card.json").read_text())
    content["rules"][0]["feature"] = 99
    (tmp_path / "card.json").write_text(json.dumps(content))
    done = mipforest("show", tmp_path)
    assert done.code == 2
    assert "feature 99" in done.err


def test_export_and_import(card_run, mipforest, tmp_path):
    _, options, _ = card_run
    assert mipforest("export", *options, "-o", tmp_path / "card.mps").code == 0
    (solution,) = [path for path in tmp_path.iterdir() if path.suffix == ".mst" or "start" in path.name]
    done = mipforest("import", solution, "--instance", tmp_path / "card.mps")
    assert done.code == 0, done.err
    assert "Risk of yes" in done.out


def test_the_risk_is_that_of_the_rarer_class_unless_another_is_named(mipforest, tmp_path):
    frame = pd.DataFrame({"age": range(20), "state": ["ill"] * 6 + ["well"] * 14})
    frame.to_csv(tmp_path / "people.csv", index=False)
    base = ("solve", "--model", "ogrs", "--param", "rules=1", "--data", tmp_path / "people.csv")
    base = (*base, "--target", "state")
    assert "Risk of ill" in mipforest(*base, "--out", tmp_path / "run").out
    assert "Risk of well" in mipforest(*base, "--positive", "well").out
    source = mipforest("show", tmp_path / "run", "--json").json["data_source"]
    assert source["positive"] == ["ill"]
    assert "rarer_positive" not in source


def test_a_class_that_is_absent_is_said_in_words(card_run, mipforest, tmp_path):
    run, options, _ = card_run
    table = pd.read_csv(options[options.index("--data") + 1])
    target = table.columns[-1]
    table[table[target] == "no"].to_csv(tmp_path / "one.csv", index=False)
    done = mipforest("predict", run, tmp_path / "one.csv", "-o", tmp_path / "out.csv")
    assert "sensitivity: not known, no row has the class yes" in done.out
    assert "nan" not in done.out
