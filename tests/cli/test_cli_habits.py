"""Values and names as people write them: per cents, minutes, upper case, scikit-learn's names, several depths."""

import json

import pytest
import tolerance
from typer import BadParameter

from mipforest.cli import quantities

IRIS = ("--depth", 1, "--data", "iris")


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.2", 0.2), ("20 %", 0.2), (0.5, 0.5)])
def test_shares(text, value):
    assert tolerance.same(quantities.share(text), value)


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("1m", 60), ("1.5 h", 5400), ("5min", 300), ("2s", 2), ("1e3", 1000)]
)
def test_times(text, value):
    assert tolerance.same(quantities.seconds(text), value)


def test_no_limit():
    assert quantities.seconds("inf") == float("inf")  # exact: a constant


@pytest.mark.parametrize("text", ["5x", "-1", "nan", "m", "%", ""])
def test_what_is_no_quantity(text):
    for read in (quantities.share, quantities.seconds):
        with pytest.raises(BadParameter, match="give"):
            read(text)


def test_a_solve_with_values_and_names_as_people_write_them(mipforest, tmp_path):
    asked = ("--gap", "1%", "--test-size", "20%", "--time-limit", "1m", "--solver", "Exact-Search")
    done = mipforest("solve", "--model", "OCT", *IRIS, *asked, "--out", tmp_path / "run")
    assert done.code == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["model"] == "oct"
    assert result["options"]["gap"] == 0.01  # exact: one division
    assert result["options"]["time_limit"] == 60
    assert result["data"]["n"] == 120


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--solver", "cplex"), "no solver named 'cplex'. Known: clarabel"),
        (
            ("--param", "min_samples_leaf=5"),
            "what scikit-learn's trees call min_samples_leaf is N_min here",
        ),
        (("--param", "max_depth=5"), "what scikit-learn calls max_depth is --depth here"),
        (("--time-limit", "5x"), "'5x' is not understood; give seconds, or a time such as 90s, 5m or 1h"),
    ],
)
def test_what_is_not_understood(mipforest, asked, said):
    done = mipforest("solve", "--model", "oct", *IRIS, *asked)
    assert done.code == 2
    assert said in done.err


def test_several_depths_are_a_grid(mipforest, tmp_path):
    out = tmp_path / "run"
    done = mipforest("tune", "--model", "oct", "--depth", "1,2", "--data", "iris", "--out", out)
    assert done.code == 0
    assert "tuning oct, depth 1, 2, iris: 2 settings x 4 folds" in done.err
    result = json.loads((out / "result.json").read_text())
    assert result["depth"] == 2
    assert result["options"]["grid"] == {"depth": [1, 2]}
    table = (out / "tuning.csv").read_text().splitlines()
    assert table[0].startswith("depth,chosen,")
    assert [line.split(",")[:2] for line in table[1:]] == [["1", "False"], ["2", "True"]]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--depth", "1,b"), "--depth is '1,b'; give a whole number, or several with commas"),
        (("--depth", "1,1"), "the depths 1, 1 have one twice"),
        (("--depth", "1,11"), "--depth: "),
        (("--depth", "1,2", "--method", "batch"), "tries all depths up to --depth; give the greatest one"),
        (("--depth", "1"), "there are no values to try; give --grid NAME=VALUE,VALUE, several depths"),
        (
            ("--depth", "1", "--grid", "ccp_alpha=0,1"),
            "what scikit-learn's trees call ccp_alpha is alpha here",
        ),
    ],
)
def test_depths_that_are_no_grid(mipforest, asked, said):
    done = mipforest("tune", "--model", "oct", "--data", "iris", *asked)
    assert done.code == 2
    assert said in done.err
