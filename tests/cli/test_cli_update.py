"""``mipforest update``: last year's tree on this year's data."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tolerance import at_most


@pytest.fixture(scope="module")
def years(tmp_path_factory, mipforest):
    """A folder with old and new data, and the run on the old ones."""
    folder, rng = tmp_path_factory.mktemp("years"), np.random.default_rng(0)
    for name, shift in (("old", 0), ("new", 1)):
        frame = pd.DataFrame({column: rng.integers(0, 8, 60) for column in ("a", "b", "c")})
        frame["y"] = np.where(frame.a + frame.b + rng.integers(0, 3, 60) > 8 + shift, "yes", "no")
        frame.to_csv(folder / f"{name}.csv", index=False)
    command = ("solve", "--model", "oct", "--depth", "2", "--data", folder / "old.csv", "--target", "y")
    assert mipforest(*command, "--forbid", "c", "--out", folder / "last").code == 0
    return folder


def test_it_says_what_changes_and_writes_a_run(mipforest, years, tmp_path):
    done = mipforest(
        "update", years / "last", "--data", years / "new.csv", "--within", "5%", "--out", tmp_path / "this"
    )
    assert done.code == 0, done.err
    update = json.loads((tmp_path / "this" / "result.json").read_text())["update"]
    assert update["proven"]
    assert update["distance"] == sum(change["cost"] for change in update["changes"])  # exact: whole numbers
    for change in update["changes"]:
        assert change["words"] in done.out
    shown = mipforest("show", tmp_path / "this")
    assert shown.code == 0
    assert "forbid c" in shown.out  # what the run had to satisfy holds on
    assert mipforest("predict", tmp_path / "this", years / "new.csv").code == 0


def test_the_front_ends_at_the_best_tree(mipforest, years):
    done = mipforest("update", years / "last", "--data", years / "new.csv", "--front", "--json")
    assert done.code == 0, done.err
    update = done.json["update"]
    values = [point["objective"] for point in update["front"] if point["objective"] is not None]
    assert all(at_most(later, earlier) for earlier, later in pairwise(values))
    assert values[-1] == pytest.approx(update["best"])


def test_the_same_data_change_nothing(mipforest, years):
    done = mipforest("update", years / "last", "--data", years / "old.csv", "--within", "0%")
    assert done.code == 0, done.err
    assert "Distance 0" in done.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--within", "-1%"), "within"),
        (("--weights", "1,2"), "three numbers"),
        (("--weights", "1,2,1"), "above that of the feature"),
        (("--data", "absent.csv"), "absent.csv"),
    ],
)
def test_what_it_refuses(mipforest, years, given, message):
    data = () if "--data" in given else ("--data", years / "new.csv")
    done = mipforest("update", years / "last", *data, *given)
    assert done.code == 2
    assert message in done.err


def test_new_data_have_the_columns_of_the_run(mipforest, years, tmp_path):
    frame = pd.read_csv(years / "new.csv")
    frame.assign(late=frame.y == "yes").to_csv(tmp_path / "more.csv", index=False)
    frame.drop(columns="b").to_csv(tmp_path / "fewer.csv", index=False)
    done = mipforest("update", years / "last", "--data", tmp_path / "more.csv", "--json")
    assert done.code == 0, done.err
    assert "left out, as the run does not have them: late" in done.err
    assert done.json["data"]["p"] == 3
    done = mipforest("update", years / "last", "--data", tmp_path / "fewer.csv")
    assert done.code == 2
    assert "has no column 'b', which the run has" in done.err


def test_a_run_of_hyperplanes_is_refused(mipforest, years, tmp_path):
    command = ("solve", "--model", "margot", "--depth", "1", "--data", years / "old.csv", "--target", "y")
    assert mipforest(*command, "--out", tmp_path / "run").code == 0
    done = mipforest("update", tmp_path / "run", "--data", years / "new.csv")
    assert done.code == 2
    assert "several features" in done.err
