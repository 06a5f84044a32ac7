"""Policy trees on the command line: rewards of a file, and rewards that are estimated of a trial."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from tolerance import less

from mipforest import Dataset
from mipforest.report.quality import decision_table, forest_decisions, held_out_decisions, no_forests


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, 90)
    had = rng.choice(["none", "drug"], 90)
    effect = np.where(age < 50, -3.0, 1.0)
    known = pd.DataFrame({"age": age, "bmi": rng.integers(18, 40, 90), "none": 0.0, "drug": -effect})
    known.to_csv(tmp_path / "rewards.csv", index=False)
    trial = known[["age", "bmi"]].assign(had=had, days=10 + np.where(had == "drug", effect, 0.0))
    trial.to_csv(tmp_path / "trial.csv", index=False)
    return tmp_path / "rewards.csv", tmp_path / "trial.csv"


@pytest.mark.slow
def test_rewards_of_a_file(mipforest, tables, tmp_path):
    base = ("solve", "--model", "policy", "--depth", 1, "--data", tables[0], "--rewards", "none,drug")
    done = mipforest(*base, "--test-size", "0.2", "--out", tmp_path / "run")
    assert done.code == 0
    assert "optimal, proven" in done.out
    assert "Mean reward" in done.out
    assert "Best single decision" in done.out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert less(result["train_best_single_reward"], result["train_mean_reward"])
    told = mipforest("predict", tmp_path / "run", tables[0], "--json").json
    ages = pd.read_csv(tables[0])["age"]
    assert told["predictions"] == ["drug" if age < 50 else "none" for age in ages]
    assert mipforest("show", tmp_path / "run").code == 0
    assert mipforest("report", tmp_path / "run", "-o", tmp_path / "run.html").code == 0
    page = (tmp_path / "run.html").read_text()
    assert "Mean reward" in page
    assert "(best single decision)" in page
    assert page.count(">forests' plug-in rule<") == 2
    assert "seed 0" in page
    assert {"none for all", "drug for all"} <= {*re.findall("(?:none|drug) for all", page)}


def test_the_page_compares_the_tree_with_each_decision_for_all():
    rewards, weights = np.array([[0.0, 4.0], [2.0, 0.0], [1.0, 0.0]]), np.array([1.0, 2.0, 1.0])
    made = decision_table(("a", "b"), rewards, np.array([1, 0, 0]), weights, "Training")
    rows = [["".join(cell.itertext()) for cell in row] for row in made.iter("tr")]
    assert rows[0] == ["", "Share in the tree", "Mean reward", "± error"]
    # The standard error of weighted means: n / (n - 1) times the sum of (w (r - mean))^2, with weights 1/4, 1/2, 1/4.
    assert rows[1][:3] == ["the tree", "–", "2.25"]
    assert rows[2][:3] == ["a for all (best single decision)", "75.0%", "1.25"]
    assert rows[3][:3] == ["b for all", "25.0%", "1"]
    assert float(rows[2][3]) == pytest.approx(np.sqrt(1.5 * (0.3125**2 + 0.375**2 + 0.0625**2)), rel=1e-3)


@pytest.mark.slow
def test_forests_decide_samples_that_they_were_not_fitted_to():
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    noise = Dataset.from_arrays(X, rewards=rng.normal(size=(120, 2)))
    table, rows = noise.rewards, np.arange(120)
    held_out, fitted = held_out_decisions(noise), forest_decisions(noise, X)
    # Of noise, what forests were fitted to looks good, and what they were not is worth nothing: five standard errors.
    assert table[rows, held_out].mean() == pytest.approx(0.0, abs=5 / np.sqrt(120))
    assert less(table[rows, held_out].mean() + 0.2, table[rows, fitted].mean())
    known = Dataset.from_arrays(X, rewards=np.column_stack([X[:, 0], 1 - X[:, 0]]))
    decided = held_out_decisions(known)
    assert (decided == (X[:, 0] < 0.5)).mean() > 0.9
    made = decision_table(("a", "b"), known.rewards, np.zeros(120, int), known.weights, "Test", decided)
    assert "".join(list(made.iter("tr"))[2][0].itertext()) == "forests' plug-in rule"
    assert "too few for 5 folds" in no_forests(known.take(range(9)))
    assert "take long" in no_forests(Dataset.from_arrays(X, rewards=rng.random((120, 11))))


def test_scores_of_a_trial(mipforest, tables):
    base = ("solve", "--model", "policy", "--depth", 1, "--data", tables[1])
    done = mipforest(*base, "--treatment", "had", "--outcome", "days", "--scores", "direct", "--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert result["data"]["target"] == "decision"
    assert "direct scores of 'days' (lower is better)" in done.out
    assert result["verified"]


def test_tuning_by_the_mean_reward_and_none_by_pruning_curves(mipforest, tables, tmp_path):
    base = ("tune", "--model", "policy", "--depth", 1, "--data", tables[0], "--rewards", "none,drug")
    done = mipforest(*base, "--grid", "alpha=9,0.1", "--folds", 3, "--out", tmp_path / "tuned")
    assert done.code == 0
    assert "validation mean reward" in done.out
    assert json.loads((tmp_path / "tuned" / "result.json").read_text())["parameters"]["alpha"] == 0.1
    batch = mipforest(*base, "--method", "batch")
    assert batch.code == 2
    assert "policy is charged by rewards" in batch.err
    told = mipforest(*base, "--grid", "alpha=0", "--score", "accuracy")
    assert "the data are a decision; choose from: mean_reward" in told.err


def test_options_that_do_not_go_together(mipforest, tables):
    base = ("solve", "--model", "policy", "--depth", 1, "--data")
    assert "leave these out" in mipforest(*base, tables[0], "--rewards", "none,drug", "--target", "age").err
    assert "give both" in mipforest(*base, tables[1], "--scores", "dr").err
    assert "give --scores" in mipforest(*base, tables[1], "--better", "higher").err
    assert "two or more decisions" in mipforest(*base, tables[0], "--rewards", "drug").err
    assert "no column is called 'drugs'" in mipforest(*base, tables[0], "--rewards", "none,drugs").err
    assert "--rewards" in mipforest(*base, tables[0], "--target", "drug").err
    assert "it has no separator" in mipforest(*base, "iris", "--rewards", "a,b").err
