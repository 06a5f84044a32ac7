"""Constraints on the command line: options, files, groups of dropped columns, what a run keeps, exports, messages."""

import json

import numpy as np
import pandas as pd
import pytest
from tolerance import at_most

from mipforest.files import read_model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame({"age": rng.integers(18, 90, n), "dose": rng.integers(0, 9, n)})
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["site"] = rng.choice(["a", "b"], n)
    frame["ill"] = np.where(frame.age + 9 * (frame.sex == "m") + rng.normal(0, 12, n) > 55, "yes", "no")
    path = tmp_path_factory.mktemp("constraints") / "people.csv"
    frame.to_csv(path, index=False)
    return path


def options(table, *more):
    return ("--model", "oct", "--depth", 1, "--data", table, "--target", "ill", *more)


@pytest.fixture(scope="module")
def run(mipforest, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("constrained")
    rules = folder / "rules.toml"
    rules.write_text('parity = {sex = "10%"}\n[feature-budget]\nbudget = 3\ncost = {age = 2, dose = 3}\n')
    done = mipforest(
        *("solve", *options(table, "--drop", "sex", "--forbid", "site", "--min-leaf", "10%")),
        *("--constraints", rules, "--time-limit", 20, "--out", folder / "run"),
    )
    assert done.code == 0, done.err
    return folder / "run"


def test_a_run_keeps_its_constraints_with_value_limit_and_price(mipforest, run, table):
    result = json.loads((run / "result.json").read_text())
    found = {own["kind"]: own for own in result["constraints"]}
    assert found.keys() == {"forbid", "min-leaf", "parity", "feature-budget"}
    frame = pd.read_csv(table)
    done = mipforest("predict", run, table, "--json")
    assert done.code == 0
    predicted = pd.Series(
        [row["prediction"] if isinstance(row, dict) else row for row in done.json["predictions"]]
    )
    shares = (predicted == "yes").groupby(frame.sex.to_numpy()).mean()
    assert found["parity"]["value"] == pytest.approx(abs(shares["f"] - shares["m"]))
    assert at_most(found["parity"]["value"], 0.1)
    for own in found.values():
        price = own["price"]
        assert at_most(price["least"], price["most"])
        assert at_most(price["objective"], result["objective"])
    shown = mipforest("show", run).out
    assert "Constraint" in shown
    assert "parity sex=10%" in shown


def test_the_report_shows_them_and_the_command_repeats_them(mipforest, run):
    assert mipforest("report", run, "--force").code == 0
    page = (run / "report.html").read_text()
    assert "Constraints on the tree" in page
    assert "--forbid site" in page
    assert "--min-leaf 10%" in page
    assert "--constraints constraints.toml" in page
    assert "[[feature-budget]]" in page


@pytest.mark.slow
def test_an_exported_instance_has_the_rows_and_imports_with_them(mipforest, table, tmp_path):
    path = tmp_path / "people.mps"
    more = ("--drop", "sex", "--parity", "sex=20%", "--split", "age >= 50")
    done = mipforest("export", *options(table, *more), "-o", path)
    assert done.code == 0, done.err
    assert any("demographic_parity" in name for name in read_model(path).row_names)
    assert [own["kind"] for own in json.loads(path.with_suffix(".json").read_text())["constraints"]] == [
        "split",
        "parity",
    ]
    assert mipforest("solve-model", path, "-o", tmp_path / "people.sol", "--time-limit", 20).code == 0
    done = mipforest("import", tmp_path / "people.sol", "--instance", path, "--json")
    assert done.code == 0, done.err
    assert [own["kind"] for own in done.json["constraints"]] == ["split", "parity"]
    assert done.json["constraints"][0]["value"] == 0  # exact: a count


@pytest.mark.slow
def test_the_announcement_says_that_rows_go_to_a_matrix_solver(mipforest, table):
    done = mipforest("solve", *options(table, "--require", "dose", "--recall", "yes=50%", "--time-limit", 10))
    assert done.code == 0
    assert "the constraints require, recall are rows for it" in " ".join(done.err.split())


def test_the_announcement_says_that_a_search_keeps_them(mipforest, table):
    done = mipforest("solve", *options(table, "--forbid", "dose", "--time-limit", 10))
    assert done.code == 0
    assert "exact-search (auto: the search keeps the constraints)" in " ".join(done.err.split())


def test_constraints_that_contradict_each_other_are_named(mipforest, table):
    done = mipforest("solve", *options(table, "--forbid", "age", "--require", "age", "--time-limit", 20))
    assert done.code == 3
    assert "forbid_age" in done.out
    assert "require_age" in done.out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--recall", "maybe=90%"), "no class 'maybe'"),
        (("--recall", "yes"), "'yes' is not NAME=SHARE"),
        (("--forbid", "agee"), "did you mean 'age'?"),
        (("--parity", "gender=3%"), "no column 'gender'"),
        (("--parity", "sex=300%"), "300% is no share from 0% to 100%"),
        (("--min-leaf", "500"), "there are 40 in all"),
        (("--min-leaf", "60%"), "give one above 0, at most 0.5"),
        (("--split", "age > 60"), "'age > 60' is no split"),
        (("--split", "age >= 500"), "choose a threshold inside"),
        (("--split", "7: age >= 50"), "there is no branch node 7"),
        (("--at-most-features", "few"), "'few' is no whole number"),
        (("--monotone", "age"), "write age+ or age-"),
        (("--feature-budget", "nothing.toml"), "nothing.toml cannot be read"),
        (("--constraints", "nothing.toml"), "nothing.toml cannot be read"),
        (("--forbid", ""), "is no list of names"),
    ],
)
def test_what_is_not_allowed(mipforest, table, asked, said):
    done = mipforest("solve", *options(table, *asked))
    assert done.code == 2
    assert said in done.err


def test_a_model_that_cannot_express_one_says_so(mipforest, table):
    done = mipforest(
        *("solve", "--model", "ort", "--depth", 1, "--data", table, "--target", "age"),
        *("--recall", "yes=90%"),
    )
    assert done.code == 2
    assert "predicts numbers" in done.err
