"""What a tuning will do: the order of a grid, what is refused, and the rules that choose a setting."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest import get_formulation
from mipforest.problem.parameters import ParameterError
from mipforest.tuning import Grid, NoTreeFound, TuningError, choose, parse_grid

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


def table(scores, features, finished=None):
    return pd.DataFrame(
        {
            "finished": [True] * len(scores) if finished is None else finished,
            "validation_mean": scores,
            "features_mean": features,
        }
    )


@pytest.mark.parametrize(
    ("scores", "features", "best", "sparse"),
    [
        ([0.90, 0.95, 0.94], [1, 8, 5], 1, 2),  # 0.90 is below 97.5% of 0.95 = 0.92625
        ([0.80, 0.78, 0.779], [9, 3, 1], 0, 1),  # 0.78 is 97.5% of 0.8 exactly
        ([0.94, 0.95, 0.94], [3, 8, 3], 1, 0),  # equal in both: the first one
        ([0.93, 0.95, 0.94], [3, 3, 3], 1, 1),  # equally few features: the best score
        ([0.95, 0.95], [4, 4], 0, 0),
        ([0.95, 0.95], [4, 3], 0, 1),
        ([1.0, 0.975, 0.9749], [2.5, 2.25, 1.0], 0, 1),
    ],
)
def test_choices_by_hand(scores, features, best, sparse):
    assert choose(table(scores, features), "best") == best
    assert choose(table(scores, features), "sparse") == sparse


def test_scores_added_in_another_order_are_equal():
    one, other = np.mean([0.1, 0.2, 0.3]), np.mean([0.3, 0.2, 0.1])
    assert one != other  # exact: another rule
    assert choose(table([min(one, other), max(one, other)], [1, 1]), "best") == 0


def test_a_smaller_error_is_better():
    errors = table([10.0, 8.0, 8.1, 8.3], [1, 9, 4, 2])
    assert choose(errors, "best", sign=-1) == 1
    assert choose(errors, "sparse", sign=-1) == 2  # 8.2 is 2.5% more than 8


def test_a_negative_r2_has_a_range_too():
    assert choose(table([-0.40, -0.41, -0.42], [5, 3, 1]), "sparse") == 1


def test_settings_without_all_scores_are_left_out():
    scores = table([0.99, np.nan, 0.9, 0.8], [1, 1, 3, 2], finished=[False, True, True, True])
    assert choose(scores, "best") == 2
    assert choose(scores, "sparse") == 2


def test_nothing_to_choose_from():
    with pytest.raises(NoTreeFound, match="raise the time limit"):
        choose(table([np.nan, 0.9], [1, 1], finished=[True, False]), "best")


def test_an_unknown_rule_is_refused():
    with pytest.raises(TuningError, match="did you mean 'sparse'"):
        choose(table([0.9], [1]), "spars")


settings = st.lists(
    st.tuples(st.integers(0, 40).map(lambda errors: 1 - errors / 200), st.integers(0, 6)),
    min_size=1,
    max_size=12,
)


@given(settings)
def test_the_sparse_choice_is_that_of_the_definition(rows):
    scores, features = zip(*rows, strict=True)
    chosen = choose(table(scores, features), "sparse")
    good = [k for k in range(len(rows)) if scores[k] >= 0.975 * max(scores) - 1e-9]
    assert chosen in good
    fewest = [k for k in good if features[k] == min(features[k] for k in good)]
    assert chosen in fewest
    assert chosen == next(
        k for k in fewest if scores[k] == max(scores[k] for k in fewest)
    )  # exact: of one list
