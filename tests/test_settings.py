"""Settings of a solve: what is allowed, and one object in place of the keywords."""

from __future__ import annotations

import inspect
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import mipforest
from mipforest.errors import NotAllowed
from mipforest.settings import SolveSettings, chosen_settings
from mipforest.tuning import tune, tune_batch


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"time_limit": -1}, "time_limit is -1; give seconds, 0 or more"),
        ({"time_limit": "1"}, "time_limit is '1'; give seconds"),
        ({"time_limit": nan}, "time_limit is nan"),
        ({"gap": -0.1}, "gap is -0.1; give a relative gap"),
        ({"gap": None}, "gap is None"),
        ({"gap": nan}, "gap is nan"),
        ({"threads": 0}, "threads is 0; give 1 or more"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
        ({"seed": -1}, "seed is -1; give a whole number"),
        ({"log": 1}, "log is 1; give the name of a file"),
        ({"solver_options": ["a=1"]}, "give a mapping"),
        ({"gap": inf}, "gap is inf; give a finite relative gap"),
        ({"solver_options": {"mip_rel_gap": inf}}, "mip_rel_gap is inf; give a finite number"),
        ({"solver_options": {"mip_rel_gap": nan}}, "mip_rel_gap is nan"),
        ({"threads": 10**8}, "threads is 100000000, and this machine has"),
        ({"threads": 10**400}, "threads is more than 1e20"),
        ({"solver_options": {"Threads": 10**6}}, "solver_options: Threads is 1000000, and this machine has"),
        ({"bridges": ("quadratics",)}, "did you mean 'quadratic'"),
    ],
)
def test_what_is_not_allowed_is_named_with_what_is(settings, told) -> None:
    with pytest.raises(NotAllowed) as refused:
        SolveSettings(**settings)
    assert told in str(refused.value)


def test_values_are_taken_in_their_usual_forms() -> None:
    settings = SolveSettings(time_limit=inf, log="solver.log", bridges="quadratic", threads=np.int64(2))  # type: ignore[arg-type]
    assert settings.time_limit is None
    assert settings.log == Path("solver.log")
    assert settings.bridges == ("quadratic",)
    assert settings.threads == 2


def test_one_object_stands_for_the_keywords() -> None:
    m = mipforest.Model()
    x = m.integer("x", 3, lower=0, upper=4)
    m.maximize(x.sum())
    m.add("limit", [2.0, 3.0, 5.0] @ x <= 10.5)
    solution = mipforest.solve(m, settings=SolveSettings(seed=3, gap=0.0))
    assert (
        solution.objective == mipforest.solve(m, seed=3, gap=0.0).objective == 4 + 0
    )  # exact: whole numbers
    with pytest.raises(NotAllowed, match="one object and as keywords"):
        mipforest.solve(m, seed=3, settings=SolveSettings())


def test_a_start_beside_settings_is_refused() -> None:
    settings, defaults = SolveSettings(gap=0.0), SolveSettings()
    assert chosen_settings(settings, {}, defaults) is settings
    with pytest.raises(NotAllowed, match="give one of the two"):
        chosen_settings(settings, {}, defaults, start={"x": np.zeros(3)})


def test_unknown_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'time'"):
        mipforest.solve(mipforest.Model(), time=3)


def test_help_names_every_keyword() -> None:
    keywords = {"time_limit", "gap", "threads", "seed", "solver_options", "bridges"}
    for function in (mipforest.solve, mipforest.Problem.solve, tune, tune_batch):
        parameters = inspect.signature(function).parameters
        assert keywords <= set(parameters)
        assert parameters["gap"].default == SolveSettings().gap  # exact: a copy
