"""Sets of levels, missing values as a branch, and columns of two levels, from ``solve`` to ``predict``."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """A table of which 'sick' follows from colour, age and smoker; ages and habits are missing."""
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "colour": rng.choice(list("abcde"), n),
            "smoker": rng.choice(["yes", "no"], n),
            "noise": rng.normal(size=n).round(2),
        }
    )
    smokes, old = frame["smoker"] == "yes", frame["age"] > 50
    frame["sick"] = np.where(frame["colour"].isin(["a", "d"]) ^ (old & smokes), "ill", "well")
    frame.loc[rng.random(n) < 0.15, "age"] = np.nan
    frame.loc[rng.random(n) < 0.15, "smoker"] = None
    path = tmp_path_factory.mktemp("clinic") / "clinic.csv"
    frame.to_csv(path, index=False)
    return path, frame


SOLVE = ("solve", "--model", "oct", "--target", "sick", "--drop", "noise", "--time-limit", "20")


@pytest.fixture(scope="module")
def run(mipforest, clinic, tmp_path_factory):
    """A proven tree of depth 2 on sets of levels, with missing values sent to a side."""
    out = tmp_path_factory.mktemp("run") / "run"
    options = (
        "--depth",
        "2",
        "--categorical",
        "all",
        "--missing",
        "branch",
        "--data",
        clinic[0],
        "--out",
        out,
    )
    done = mipforest(*SOLVE, *options)
    assert done.code == 0, done.err
    return out, done


def test_the_tree_says_which_levels_and_where_missing_values_go(run):
    out, done = run
    assert "n0: colour in {a, d}" in done.out
    assert "age >= 50.5 (missing goes left)" in done.out
    assert "smoker is yes (missing goes left)" in done.out
    assert "column 'colour' has 5 levels: a split sends a set of them to each side" in done.out
    source = json.loads((out / "result.json").read_text())["data_source"]
    assert (source["categorical"], source["missing"]) == (["all"], "branch")


def test_predictions_note_missing_values_and_ask_for_the_columns_used(mipforest, run, clinic, tmp_path):
    out, _ = run
    path, frame = clinic
    written = tmp_path / "out.csv"
    done = mipforest("predict", out, path, "--out", written, "--explain")
    assert done.code == 0
    assert "more in 'explanation' and 'note'" in done.out
    table = pd.read_csv(written)
    lacks_age = frame["age"].isna()
    assert table["note"].str.contains("age missing").fillna(False).tolist() == lacks_age.tolist()
    red = (frame["colour"] == "b") & lacks_age
    assert set(table.loc[red, "explanation"]) == {
        "colour not in {a, d}, age < 50.5 or missing (missing): well"
    }
    # Columns that the tree does not read may be absent.
    frame[["age", "colour", "smoker"]].to_csv(tmp_path / "few.csv", index=False)
    predicted = mipforest("predict", out, tmp_path / "few.csv")
    assert predicted.out.split() == table["prediction"].tolist()
    assert f"{int((table['note'].notna()).sum())} of 120 rows lack a value" in predicted.err
    frame[["age", "smoker"]].to_csv(tmp_path / "fewer.csv", index=False)
    assert "lacks 1 feature column(s): colour" in mipforest("predict", out, tmp_path / "fewer.csv").err


def test_a_missing_value_where_training_had_none_is_refused(mipforest, run, clinic, tmp_path):
    frame = clinic[1].assign(colour=None)
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert "has no value in column 'colour'" in mipforest("predict", run[0], tmp_path / "new.csv").err


def test_the_forms_of_the_tree_say_the_same(mipforest, run, clinic, tmp_path):
    out, frame = run[0], clinic[1]
    for name in ("tree.py", "tree.sql", "tree.dot"):
        assert mipforest("plot", out, "-o", tmp_path / name).code == 0
    assert "age >= 50.5 (missing goes left)" in (tmp_path / "tree.dot").read_text()
    assert "\"colour\" IN ('a', 'd')" in (tmp_path / "tree.sql").read_text()
    code: dict = {}
    exec((tmp_path / "tree.py").read_text(), code)
    predicted = mipforest("predict", out, clinic[0], "--json").json
    assert [code["predict"](row) for row in frame.to_dict("records")] == predicted["predictions"]
    assert len(predicted["notes"]) == len(frame)


@pytest.mark.parametrize("model", ["oct", "ogrs"])
def test_two_levels_read_as_they_are_called(mipforest, model, tmp_path):
    ill = pd.DataFrame({"smoker": ["yes", "no"] * 20, "age": [40, 50, 60, 70] * 10})
    ill.assign(target=np.where(ill["smoker"] == "no", "ill", "well")).to_csv(tmp_path / "x.csv", index=False)
    how = ("--depth", "1") if model == "oct" else ("--param", "rules=1")
    out = tmp_path / "run"
    found = mipforest("solve", "--model", model, *how, "--data", tmp_path / "x.csv", "--out", out).out
    assert "smoker is yes" in found or "smoker is no" in found
    for form in ("-o tree.svg", "-o tree.dot", "-o tree.py")[: 3 if model == "oct" else 1]:
        assert mipforest("plot", out, "-o", tmp_path / form.removeprefix("-o ")).code == 0
    assert mipforest("report", out).code == 0
    texts = [found, *(path.read_text() for path in (*tmp_path.glob("tree.*"), out / "report.html"))]
    assert not any("smoker is not" in text for text in texts)
    paths = mipforest("predict", out, tmp_path / "x.csv", "--explain").out
    assert "smoker is yes" in paths or "smoker is no" in paths


def test_a_card_gives_total_risk_and_what_was_filled_in(mipforest, clinic, tmp_path):
    path, frame = clinic
    card = ("solve", "--model", "ogrs", "--param", "rules=2", "--target", "sick", "--missing", "impute")
    out = tmp_path / "card"
    drop = ("--drop", "noise", "--drop", "colour")
    assert mipforest(*card, *drop, "--data", path, "--out", out).code == 0
    done = mipforest("predict", out, path)
    first, *rows = done.out.splitlines()
    assert first == "prediction,total,risk,note"
    assert len(rows) == len(frame)
    told = mipforest("predict", out, path, "--json").json
    rules = json.loads((out / "card.json").read_text())["rules"]
    assert set(told["totals"]) <= {0, *(r["points"] for r in rules), sum(r["points"] for r in rules)}
    assert all(0 < risk < 1 for risk in told["risks"])
    filled = {note for note in told["notes"] if note}
    assert all("missing, counted as" in note for note in filled)


def test_other_models_name_what_takes_the_options(mipforest, clinic):
    refused = mipforest("solve", "--model", "margot", "--depth", "1", "--target", "sick", "--categorical", "all",
                        "--missing", "impute", "--data", clinic[0])  # fmt: skip
    assert refused.code == 2
    assert "leave it out of --categorical" in refused.err
    refused = mipforest("solve", "--model", "oct", "--depth", "1", "--target", "sick", "--data", clinic[0])
    assert "--missing branch" in refused.err
