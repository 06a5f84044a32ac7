"""Grids of hyperparameters: order, neighbours, what is refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest import get_formulation
from mipforest.problem.parameters import ParameterError
from mipforest.tuning import Grid, TuningError, parse_grid

MARGOT, HFS, OCT = map(get_formulation, ("margot", "hfs-margot", "oct"))

penalties = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=4, unique=True)
budgets = st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)


@given(penalties, budgets)
def test_settings_are_the_product_in_order(C, B):
    grid = Grid.of(HFS, {"C": C, "B": B}, depth=2)
    assert list(grid.settings()) == [{"C": c, "B": b} for c, b in product(C, B)]
    assert grid.size == len(C) * len(B)


@given(penalties, st.integers(1, 3))
def test_per_level_is_the_product_over_levels(C, depth):
    grid = Grid.of(MARGOT, {"C": C}, ["C"], depth=depth)
    assert [setting["C"] for setting in grid.settings()] == list(product(C, repeat=depth))
    assert [axis.label for axis in grid.axes] == [f"C[{level}]" for level in range(depth)]


@given(penalties, budgets)
def test_the_next_setting_of_a_chain_differs_in_the_last_parameter_alone(C, B):
    grid = Grid.of(HFS, {"C": C, "B": B}, depth=2)
    settings = list(grid.settings())
    followed = set()
    for number, setting in enumerate(settings):
        after = grid.after(number)
        if after is None:
            assert setting["B"] == B[-1]
            continue
        followed.add(after)
        assert settings[after]["C"] == setting["C"]
        assert B.index(settings[after]["B"]) == B.index(setting["B"]) + 1
    heads = set(range(grid.size)) - followed
    assert heads == {number for number, setting in enumerate(settings) if setting["B"] == B[0]}


def test_values_are_checked_and_normalised():
    grid = Grid.of(HFS, {"C": np.logspace(-1, 1, 3), "B": [1, (1, 2)]}, depth=2)
    assert [axis.values for axis in grid.axes] == [(0.1, 1.0, 10.0), (1, (1, 2))]  # exact: as written


def test_the_size_of_a_huge_grid_is_known_at_once():
    values = list(range(1, 1001))
    assert Grid.of(HFS, {"C": values, "B": values}, ["C", "B"], depth=3).size == 10**18


@pytest.mark.parametrize(
    ("formulation", "values", "per_level", "message"),
    [
        (MARGOT, {}, (), "the grid is empty; give values for at least one of: C, epsilon"),
        (MARGOT, {"c": [1]}, (), "no parameter 'c'.*did you mean 'C'"),
        (MARGOT, {"C": []}, (), "no value for C"),
        (MARGOT, {"C": 1}, (), "give a list"),
        (MARGOT, {"C": "1"}, (), "give a list"),
        (MARGOT, {"C": [1, 2, 1.0]}, (), "C=1.0 twice"),
        (MARGOT, {"C": [1]}, ["B"], "no parameter 'B'"),
        (HFS, {"C": [1]}, ["B"], "the grid has no values for it"),
        (MARGOT, {"epsilon": [0.1]}, ["epsilon"], "cannot differ between levels"),
        (MARGOT, {"C": [(1, 2)]}, ["C"], "give single numbers"),
    ],
)
def test_what_is_no_grid_is_refused(formulation, values, per_level, message):
    with pytest.raises(TuningError, match=message):
        Grid.of(formulation, values, per_level, depth=2)


@pytest.mark.parametrize("value", [0, -1, float("nan"), "one", (1, 2, 3, 4, 5)])
def test_values_out_of_range_are_refused(value):
    with pytest.raises(ParameterError, match="C"):
        Grid.of(MARGOT, {"C": [value]}, depth=2)


def test_texts_become_values():
    found = parse_grid(HFS, ["C=0.1, 1,1e1", "B=1,1:2"])
    assert found == {"C": [0.1, 1.0, 10.0], "B": [1, (1, 2)]}


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["C"], TuningError, "NAME=VALUE"),
        (["D=1"], TuningError, "no parameter 'D'"),
        (["C=1", "C=2"], TuningError, "C twice"),
        (["C="], ParameterError, "C=''"),
        (["C=1,,2"], ParameterError, "C=''"),
        (["C=1,0"], ParameterError, "> 0"),
    ],
)
def test_texts_that_are_no_grid_are_refused(texts, error, message):
    with pytest.raises(error, match=message):
        parse_grid(MARGOT, texts)


def test_a_parameter_of_the_whole_tree_takes_several_values():
    assert parse_grid(OCT, ["alpha=0,0.01"]) == {"alpha": [0.0, 0.01]}
