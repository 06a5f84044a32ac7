"""A regression from ``solve`` to ``predict``: nothing assumes classes."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest
from linear_leaves import LinearLeaves
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from mipforest.cli.main import app
from mipforest.trees import load


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """30 houses whose price depends on size and age, and their table."""
    rng = np.random.default_rng(0)
    size, age = rng.uniform(40, 200, 30).round(1), rng.integers(0, 90, 30)
    price = (2.5 * size - age + rng.normal(0, 10, 30)).round(2)
    frame = pd.DataFrame({"size": size, "age": age, "price": price})
    path = tmp_path_factory.mktemp("data") / "houses.csv"
    frame.to_csv(path, index=False)
    return frame, path


@pytest.fixture(scope="module")
def run(houses, tmp_path_factory):
    """A run folder and what the solve said."""
    from typer.testing import CliRunner

    out = tmp_path_factory.mktemp("runs") / "run"
    patch = pytest.MonkeyPatch()
    patch.setattr("mipforest.problem.registry.formulation_classes", lambda: {"linear-leaves": LinearLeaves})
    patch.setattr("mipforest.problem.registry.get_formulation", lambda _: LinearLeaves)
    data = ("--data", str(houses[1]), "--target", "price", "--test-size", "0.2")
    done = CliRunner().invoke(
        app, ["solve", "--model", "linear-leaves", "--depth", "1", *data, "--out", str(out)]
    )
    patch.undo()
    assert done.exit_code == 0, done.output
    return out, done.stdout


def test_solve_and_show_tell_errors_and_linear_leaves(mipforest, run):
    folder, told = run
    result = json.loads((folder / "result.json").read_text())
    assert {f"{part}_{name}" for part in ("train", "test") for name in ("r2", "mse", "mae")} <= result.keys()
    assert f"MAE       {result['train_mae']:.6g} in training, {result['test_mae']:.6g} in the test" in told
    assert f"R2        {result['train_r2']:.4g} in training" in told
    assert "ccuracy" not in told
    assert re.search(r"n1: y = \S+ [+-] \S+ size [+-] \S+ age", told)
    assert told.startswith(mipforest("show", folder).out.rstrip())
    shown = mipforest("show", folder, "--json").json
    assert len(shown["tree"]["leaf_w"]) == 2
    assert len(shown["tree"]["training_samples"]["mse"]) == 3


def test_predict_gives_values_and_errors(mipforest, run, houses, tmp_path):
    frame, path = houses
    tree = load(run[0] / "tree.json")
    expected = tree.predict(frame[["size", "age"]].to_numpy())
    done = mipforest("predict", run[0], path)
    predicted = np.array(done.out.splitlines(), dtype=float)
    np.testing.assert_array_equal(predicted, expected)
    assert f"r2: {r2_score(frame['price'], expected):.6g}" in done.err
    found = mipforest("predict", run[0], path, "--json").json
    assert found["mse"] == pytest.approx(mean_squared_error(frame["price"], expected))
    assert found["mae"] == pytest.approx(mean_absolute_error(frame["price"], expected))
    assert "accuracy" not in found
    assert mipforest("predict", run[0], path, "-o", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open() as file:
        np.testing.assert_array_equal([float(row["prediction"]) for row in csv.DictReader(file)], expected)


def test_targets_that_are_no_numbers_are_named(mipforest, run, houses, tmp_path):
    houses[0].astype({"price": object}).replace({"price": {houses[0]["price"][2]: "cheap"}}).to_csv(
        tmp_path / "bad.csv", index=False
    )
    done = mipforest("predict", run[0], tmp_path / "bad.csv")
    assert done.code == 2
    assert "'price' must hold numbers" in done.err
    assert "cheap" in done.err


def test_pictures_are_drawn(mipforest, run, tmp_path):
    picture = (run[0] / "tree.svg").read_text()
    assert "MSE" in picture
    assert "y = " in picture
    for extra in ((), ("--partition",)):
        assert mipforest("plot", run[0], *extra, "-o", tmp_path / "picture.png").code == 0
