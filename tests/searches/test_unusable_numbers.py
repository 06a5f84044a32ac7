"""No number crashes a compiled search: it is refused in words, or means what it says."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mipforest
from mipforest.data import Dataset
from mipforest.errors import DataValueError, Unsupported
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.driver import Driver
from mipforest.problem.registry import get_formulation
from mipforest.problem.structure import TreeCharges
from mipforest.searches.numbers import LARGEST, require, require_charges, require_limits
from mipforest.searches.routing.plugin import Routing, _CandidateTrees

PROGRAM = Path(__file__).with_name("unusable_numbers.py")

#: Numbers with a meaning: no tree is known, no limit, no time, no further feature, all to one side.
WITH_A_MEANING = (
    "best=inf", "deadline=inf", "until=inf", "deadline=-inf", "until=-inf", "alpha=inf", "tree b=inf", "tree b=-inf",
)  # fmt: skip


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("search", ["exact", "local", "prescription", "tao", "cards", "routing"])
def test_no_number_crashes_a_search(search):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), search],
        env=os.environ | {"PYTHONPATH": str(Path(mipforest.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1] if lines else ""
    assert done.returncode == 0, f"{done.returncode} after {last}: {done.stderr}"
    found = list(zip(lines[::2], lines[1::2], strict=True))
    assert len(found) > 20
    for began, ended in found:
        case = began["case"]
        number = case.partition("=")[2]
        assert "failed" not in ended, f"{case}: {ended}"
        if " cutoff=" in case:
            assert "value" in ended, f"{case}: {ended}"
        elif not math.isfinite(float(number or 0.0)) and not case.endswith(WITH_A_MEANING):
            assert "refused" in ended, f"{case}: {ended}"
        elif case.endswith(WITH_A_MEANING) or not number:
            assert math.isfinite(ended["value"]), f"{case}: {ended}"
        if "refused" in ended and "all=" not in case:
            assert (
                "; find out where it comes from" in ended["refused"]
                or "; scale the features" in ended["refused"]
            )


def test_a_number_is_refused_with_its_name_its_place_and_the_range():
    with pytest.raises(
        DataValueError, match=r"^tao: weight\[1, 0\] is nan, and it can compute with numbers from 0 to 1e"
    ):
        require("tao", "weight", [[1.0, 2.0], [math.nan, 0.0]], least=0.0)
    with pytest.raises(
        DataValueError, match=r"^tao: X is inf, and it can compute with finite numbers only; find out"
    ):
        require("tao", "X", math.inf, least=-np.finfo(float).max, most=np.finfo(float).max)
    with pytest.raises(DataValueError, match="the value of a known tree is nan"):
        require_limits("tao", best=math.nan)
    require_limits("tao", best=math.inf, deadline=-math.inf)
    require("tao", "weight", None)
    require("tao", "weight", np.zeros((0, 3)))


def test_features_that_are_only_compared_may_be_of_any_size():
    charges = TreeCharges(y=np.array([0, 1]), loss=ClassLoss())
    far = np.array([[0.0], [1e200]])
    require_charges("tao", charges, far)
    with pytest.raises(DataValueError, match=r"X\[1, 0\] is 1e\+200"):
        require_charges("tao", charges, far, products=True)
    assert LARGEST < 1e200


def test_without_a_tree_that_bounds_the_nodes_routing_says_so():
    """Their limits would be infinite, which ended in a segmentation fault."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    problem = get_formulation("margot")().build(Dataset.from_arrays(X, [0, 1, 1, 0]), 2)
    some = next(iter(problem.model.variables.values()))
    problem.model.add("never", (some - some).sum() >= 1)
    with pytest.raises(Unsupported, match=r"routing has no tree to begin with.*solver='highs'"):
        _CandidateTrees(Driver(Routing(), problem), None).convex_nodes()
