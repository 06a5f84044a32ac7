"""Prescriptive trees on the command line, from a table to prescriptions for another one, and a report."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def care(tmp_path_factory):
    """60 cases in which one of three treatments was given, and their table."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 60), "city": rng.choice(["Roma", "Pisa"], 60)})
    frame["care"] = rng.choice(["drug", "none", "surgery"], 60)
    best = np.where(frame["age"] < 50, "drug", "surgery")
    frame["days"] = np.round(10 - 6 * (frame["care"] == best) + 0.1 * rng.standard_normal(60), 2)
    path = tmp_path_factory.mktemp("care") / "care.csv"
    frame.to_csv(path, index=False)
    return frame, path


@pytest.fixture(scope="module")
def run(mipforest, care):
    """A run, and what the solve said."""
    out = care[1].parent / "run"
    data = ("--data", care[1], "--treatment", "care", "--outcome", "days", "--test-size", "0.2")
    done = mipforest("solve", "--model", "opt", "--depth", 1, *data, "--param", "n_treatment=5", "--out", out)
    assert done.code == 0, done.err
    return out, done.out


def test_solve_tells_outcomes_and_prescriptions(run):
    folder, told = run
    result = json.loads((folder / "result.json").read_text())
    assert result["status"] == "optimal"
    assert result["train_prescribed_outcome"] < result["train_observed_outcome"]
    assert f"Outcome prescribed  {result['train_prescribed_outcome']:.4g} in training" in told
    assert "drug (drug: 4" in told
    assert "prescription-search" in told
    tree = json.loads((folder / "tree.json").read_text())
    assert (tree["target"], tree["treatment"], len(tree["outcomes"])) == ("days", "care", 2)


def test_predict_gives_the_treatment_and_the_outcome_under_each(mipforest, care, run):
    frame, path = care
    told = mipforest("predict", run[0], path, "--json").json
    assert told["n"] == 60
    assert set(told["outcomes"]) == {"drug", "none", "surgery"}
    assert told["predictions"] == ["drug" if age < 50 else "surgery" for age in frame["age"]]
    assert told["observed_outcome"] == pytest.approx(frame["days"].mean())
    assert told["followed"] == pytest.approx((frame["care"] == told["predictions"]).mean())
    written = path.parent / "out.csv"
    assert (
        "outcomes in 'outcome_drug' and 'outcome_none'"
        in mipforest("predict", run[0], path, "-o", written).out
    )
    assert pd.read_csv(written)["outcome_surgery"].tolist() == pytest.approx(told["outcomes"]["surgery"])
    new = path.parent / "new.csv"
    frame[["age", "city"]].head(2).to_csv(new, index=False)
    lines = mipforest("predict", run[0], new).out.splitlines()
    assert lines[0] == "prediction,outcome_drug,outcome_none,outcome_surgery"
    assert len(lines) == 3
    assert "estimates outcomes, no probabilities" in mipforest("predict", run[0], new, "--proba").err


def test_the_report_shows_who_had_what_and_what_is_prescribed(mipforest, run):
    assert mipforest("report", run[0]).code == 0
    page = (run[0] / "report.html").read_text()
    assert "Treatments that samples had, and what is prescribed" in page
    assert "Outcome prescribed, test" in page
    assert "prescribes drug (drug: 4" in page


def test_options_that_do_not_go_together_are_refused(mipforest, care):
    base = ("solve", "--depth", 1, "--data", care[1])
    told = mipforest(*base, "--model", "opt", "--outcome", "days").err
    assert "--outcome names the outcomes of the treatments in --treatment" in told
    told = mipforest(
        *base, "--model", "opt", "--treatment", "care", "--outcome", "days", "--target", "age"
    ).err
    assert "leave --target out" in told
    told = mipforest(*base, "--model", "opt", "--target", "days").err
    assert "name it with --treatment, and the outcome with --outcome" in told
    told = mipforest(*base, "--model", "ort", "--treatment", "care", "--outcome", "days").err
    assert "leave --treatment out" in told
