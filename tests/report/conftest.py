"""Runs of every kind, with names that try to break out of the page; a browser where there is one."""

import json
import shutil
from functools import cache

import numpy as np
import pandas as pd
import pytest
from changed_runs import sealed
from headless_browser import Browser, browser_path
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart
from mipforest.report import content_of, report_page
from mipforest.runs import LoadedData, SavedTree, read_run
from mipforest.trees import Topology

SCRIPT = "<script>alert('feature')</script>"
QUOTES = "\" onmouseover=\"alert('quotes')"
CLASSES = ("</title><img src=x onerror=alert('class')>", "<b>&amp;</b>", "naïve Ω")
FILE = "it's <svg onload=alert(1)>.csv"
TARGET = "]]></style><script>alert('target')</script>"


def _solve(folder, frame, *options, command="solve"):
    path = folder / FILE
    frame.to_csv(path, index=False)
    out = folder / "run"
    words = [command, "--data", str(path), "--target", TARGET, "--out", str(out), *options]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return out


def _frame(answer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(3)
    return pd.DataFrame({SCRIPT: X[:, 0], QUOTES: X[:, 1], "age": X[:, 2], TARGET: answer(X)})


@pytest.fixture(scope="session")
def classes_run(tmp_path_factory):
    """Three classes, univariate splits, test samples."""
    frame = _frame(lambda X: np.array(CLASSES)[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)])
    options = ("--model", "oct", "--depth", "2", "--test-size", "0.25", "--time-limit", "0")
    return _solve(tmp_path_factory.mktemp("classes"), frame, *options)


@pytest.fixture(scope="session")
def logistic_run(tmp_path_factory):
    """Two classes, a logistic tree, test samples."""
    frame = _frame(lambda X: np.array(CLASSES)[(X @ [1, 1, 0.5] + np.sin(9 * X[:, 0]) > 0).astype(int)])
    options = (
        "--model",
        "olct",
        "--depth",
        "2",
        "--test-size",
        "0.25",
        "--time-limit",
        "1",
        "--start",
        "cart",
    )
    return _solve(tmp_path_factory.mktemp("logistic"), frame, *options)


@pytest.fixture(scope="session")
def values_run(tmp_path_factory):
    """A regression with linear leaves, and test samples."""
    frame = _frame(lambda X: (np.where(X[:, 0] > 0, X[:, 1], 2 - X[:, 2]) + 10).round(2))
    options = ("--model", "ort-l", "--depth", "1", "--test-size", "0.25", "--time-limit", "1")
    return _solve(tmp_path_factory.mktemp("values"), frame, *options)


@pytest.fixture(scope="session")
def parts_run(tmp_path_factory):
    """Splits on sets of levels, which also send missing values to a side."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 9, 80).astype(float),
            "city": rng.choice(["Roma", "Bari", "Lecce", "Pisa", SCRIPT], 80),
            "smoker": rng.choice(["no", "yes"], 80),
        }
    ).mask(rng.random((80, 3)) < 0.25)
    frame[TARGET] = np.array(CLASSES[:2])[rng.integers(2, size=80)]
    options = ("--model", "oct", "--depth", "3", "--categorical", "all", "--missing", "branch")
    return _solve(tmp_path_factory.mktemp("parts"), frame, *options)


@pytest.fixture(scope="session")
def levels_run(tmp_path_factory):
    """A tuning: columns of text and of numbers with gaps, which are filled in."""
    rng = np.random.default_rng(2)
    age, city = rng.integers(20, 70, size=60).astype(float), rng.choice([QUOTES, "Pisa", "Bari"], size=60)
    smoker = rng.choice(["no", "yes"], size=60)
    ill = np.where(city == "Pisa", age >= 45, smoker == "yes")
    frame = pd.DataFrame(
        {SCRIPT: age, "city": city, "smoker": smoker, TARGET: np.array(CLASSES)[ill.astype(int)]}
    )
    frame.loc[::15, SCRIPT] = np.nan
    frame.loc[::20, "smoker"] = None
    words = ("--model", "oct", "--depth", "2", "--missing", "impute", "--time-limit", "5")
    grid = ("--grid", "alpha=0.001,0.01,0.1", "--grid", "N_min=1,5", "--folds", "2")
    return _solve(tmp_path_factory.mktemp("levels"), frame, *words, *grid, command="tune")


_RANDOM = ("--depth", "2", "--test-size", "0.25", "--param", "gamma=16", "--param", "n_starts=1")


@pytest.fixture(scope="session")
def chances_run(tmp_path_factory):
    """A randomised tree of three classes, with test samples."""
    frame = _frame(lambda X: np.array(CLASSES)[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)])
    return _solve(tmp_path_factory.mktemp("chances"), frame, "--model", "orct", *_RANDOM)


@pytest.fixture(scope="session")
def means_run(tmp_path_factory):
    """A randomised tree with linear leaves, and test samples."""
    frame = _frame(lambda X: (np.where(X[:, 0] > 0, X[:, 1], 2 - X[:, 2]) + 10).round(2))
    return _solve(tmp_path_factory.mktemp("means"), frame, "--model", "s-orrt", *_RANDOM)


@pytest.fixture(scope="session")
def card_run(tmp_path_factory):
    """A score card, with rules on a column of text."""
    frame = _frame(lambda X: np.array(CLASSES[:2])[(X[:, 0] + X[:, 1] > 0).astype(int)])
    frame["city"] = np.where(frame["age"] > 0.5, QUOTES, "Pisa")
    options = ("--model", "ogrs", "--time-limit", "0")
    return _solve(tmp_path_factory.mktemp("card"), frame, *options)


@pytest.fixture(scope="session")
def treatment_run(tmp_path_factory):
    """A prescriptive tree with linear estimates."""
    frame = _frame(lambda X: (np.where(X[:, 0] > 0, X[:, 1], 2 - X[:, 2]) + 10).round(2))
    frame["drug"] = np.array(CLASSES)[np.arange(len(frame)) % 2]
    options = ("--model", "opt-l", "--depth", "1", "--treatment", "drug", "--time-limit", "0")
    return _solve(tmp_path_factory.mktemp("treatment"), frame, *options)


@pytest.fixture(scope="session")
def policy_run(tmp_path_factory):
    """A tree that decides, by rewards of each decision, with test samples."""
    frame = _frame(lambda X: X[:, 0])
    frame["treat"], frame[QUOTES + "!"] = frame["age"].round(2), (0.5 - frame["age"]).round(2)
    path = tmp_path_factory.mktemp("policy") / FILE
    frame.drop(columns=TARGET).to_csv(path, index=False)
    out, rewards = path.parent / "run", ("--rewards", f"treat,{QUOTES}!")
    words = ["solve", "--data", str(path), *rewards, "--model", "policy", "--depth", "2", "--out", str(out)]
    done = CliRunner().invoke(app, [*words, "--test-size", "0.25"])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="session")
def infeasible_run(classes_run, tmp_path_factory):
    """A run that found no tree."""
    run = shutil.copytree(classes_run, tmp_path_factory.mktemp("infeasible") / "run")
    (run / "tree.json").unlink()
    result = json.loads((run / "result.json").read_text())
    names = ("objective", "bound", "gap", "evaluated_objective", "max_violation", "warm_start_objective")
    nothing = dict.fromkeys([*names, *(name for name in result if name.startswith("train_"))])
    result |= nothing | {"status": "infeasible", "verified": False, "features_used": [], "events": []}
    (run / "result.json").write_text(json.dumps(result))
    return sealed(run)


@pytest.fixture(scope="session")
def deep_run(classes_run, tmp_path_factory):
    """A tree of depth five; its samples are gone."""
    run = shutil.copytree(classes_run, tmp_path_factory.mktemp("deep") / "run")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=[SCRIPT, QUOTES, "age"])
    noise = rng.integers(0, 3, size=400).astype(str)
    data = Dataset.from_frame(frame.assign(answer=noise), target="answer")
    tree = cart(data, Topology(5)).with_scaling(*_scaling(data))
    saved = SavedTree.of(tree, LoadedData(data, None, {}))
    (run / "tree.json").write_text(json.dumps(saved.to_dict()))
    result = json.loads((run / "result.json").read_text())
    result["data_source"]["data"] = str(run / "gone.csv")
    (run / "result.json").write_text(json.dumps(result))
    return sealed(run)


def _scaling(data):
    return data.encoding.offset, data.encoding.scale


KINDS = [
    "classes",
    "logistic",
    "values",
    "infeasible",
    "deep",
    "levels",
    "parts",
    "chances",
    "means",
    "card",
    "treatment",
    "policy",
]


@pytest.fixture(params=KINDS)
def any_run(request):
    return request.getfixturevalue(f"{request.param}_run")


@pytest.fixture(scope="session")
def page_of():
    """Make the page of a run folder; once for each."""
    return cache(lambda run: report_page(content_of(read_run(run))))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if browser_path() is None:
        pytest.skip("no Chromium here")
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
