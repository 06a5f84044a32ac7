"""``mipforest check``: rows in rational arithmetic, and the tree beside the point."""

import json
from pathlib import Path

import numpy as np
import pytest

from mipforest.files import read_mps, write_mps
from mipforest.files.solutions import write_point
from mipforest.model import Model
from mipforest.settings import SolveSettings
from mipforest.solvers.registry import get_solver
from mipforest.solving import solve_form

UNSAFE = Path(__file__).parents[2] / "instances/small/univariate-olct-iris-virginica-d2-thesis.mps.gz"


@pytest.fixture
def cancelling(tmp_path):
    """An instance that a point of ones violates by 1, which float64 does not see, and the point."""
    m = Model("cancelling")
    a, b, c = (m.continuous(name) for name in "abc")
    m.add("row", 1e16 * a + b - 1e16 * c <= 0)
    m.minimize(1e16 * a + b - 1e16 * c)
    instance, point = tmp_path / "cancelling.mps", tmp_path / "ones.sol"
    write_mps(m.matrix(), instance)
    write_point(m.matrix(), np.ones(3), point, comments=(), model=instance)
    return str(instance), str(point)


def test_rows_are_evaluated_exactly(mipforest, cancelling):
    found = mipforest("check", *cancelling)
    assert found.code == 3
    assert "max violation  1 " in found.out
    assert "objective      1\n" in found.out


def test_exactness_can_be_switched_off(mipforest, cancelling):
    found = mipforest("check", *cancelling, "--no-exact", "--json")
    assert found.code == 0
    assert json.loads(found.out)["exact"] is False


def test_large_instances_are_exact_on_request_only(mipforest, cancelling, monkeypatch):
    monkeypatch.setattr("mipforest.cli.exchange.EXACT_ENTRIES", 2)
    assert mipforest("check", *cancelling).code == 0
    assert mipforest("check", *cancelling, "--exact").code == 3


def test_a_point_whose_tree_is_worse_is_not_accepted(mipforest, tmp_path):
    form = read_mps(UNSAFE)
    found = solve_form(form, get_solver("highs"), SolveSettings(time_limit=60))
    assert found.x is not None
    point = tmp_path / "highs.sol"
    write_point(form, found.x, point, comments=(), model=UNSAFE)
    told = mipforest("check", str(UNSAFE), str(point), "--json")
    content = json.loads(told.out)
    assert content["feasible"] is True
    assert content["objective"] == pytest.approx(6.979, abs=1e-2)
    assert content["definition"] > 8
    assert (content["tree_agrees"], told.code) == (False, 3)
    words = mipforest("check", str(UNSAFE), str(point))
    assert "NOT BY THE DEFINITION" in words.out
    assert mipforest("check", str(UNSAFE), str(point), "--no-tree").code == 0


def test_a_point_whose_tree_has_its_value_is_accepted(mipforest):
    told = mipforest(
        "check", str(UNSAFE), str(UNSAFE.with_name(UNSAFE.name.replace(".mps.gz", ".mst"))), "--json"
    )
    content = json.loads(told.out)
    assert content["definition"] == pytest.approx(content["objective"])
    assert (content["tree_agrees"], told.code) == (True, 0)


def test_changed_metadata_leave_a_note_and_no_tree(mipforest, tmp_path):
    instance = tmp_path / UNSAFE.name
    instance.write_bytes(UNSAFE.read_bytes())
    start = UNSAFE.with_name(UNSAFE.name.replace(".mps.gz", ".mst"))
    (tmp_path / "univariate-olct-iris-virginica-d2-thesis.json").write_text("{}")
    told = mipforest("check", str(instance), str(start))
    assert told.code == 0
    assert "definition     not compared" in told.out
