import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tolerance import same

from mipforest.campaigns.report import (
    Distribution,
    distances_from_best,
    instance_table,
    performance_profiles,
    series_figure,
    shifted_geometric_mean,
)

COSTS = hnp.arrays(
    float,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.one_of(st.floats(0.01, 1e4), st.just(np.nan), st.just(np.inf)),
)


@given(COSTS)
def test_performance_profiles_are_those_of_the_definition(costs):
    lines = performance_profiles(pd.DataFrame(costs, columns=list("abcd")[: costs.shape[1]]))
    solved = np.isfinite(costs)
    for k, line in enumerate(lines):
        assert same(line.last, solved[:, k].mean())
        for tau in (1.0, 1.5, 3.0, 1e9):
            # rho(tau) = share of instances whose cost is at most tau times the least one.
            count = sum(
                solved[i, k] and costs[i, k] / costs[i, solved[i]].min() <= tau for i in range(len(costs))
            )
            assert np.isclose(line.at(tau), count / len(costs))


@given(COSTS)
def test_profiles_are_distributions(costs):
    for line in performance_profiles(pd.DataFrame(costs)):
        assert (np.diff(line.values) >= 0).all()
        assert (np.diff(line.shares) > 0).all()
        assert (line.values >= 1).all()
        assert 0 <= line.last <= 1


def test_costs_of_nothing_are_the_best():
    zero, some = performance_profiles(pd.DataFrame({"zero": [0.0], "some": [1.0]}))
    assert (zero.at(1.0), some.at(1e9)) == (1.0, 0.0)


def test_short_times_count_alike():
    fast, slow = performance_profiles(pd.DataFrame({"fast": [0.001], "slow": [0.009]}), least=0.01)
    assert fast.at(1.0) == slow.at(1.0) == 1.0


def test_distances_from_the_best_value():
    a, b = distances_from_best(pd.DataFrame({"a": [0.9, 0.5, np.nan], "b": [0.8, 0.7, 0.6]}))
    assert (a.at(0.0), b.at(0.0)) == (1 / 3, 2 / 3)
    assert np.isclose(a.at(0.21), 2 / 3)
    assert np.isclose(b.at(0.11), 1.0)


def test_an_empty_distribution():
    line = Distribution.of("none", np.array([np.nan, np.inf]))
    assert line.last == 0.0
    assert line.at(5.0) == 0.0


def test_instances_that_a_setting_has_not_come_to_are_left_out():
    cells = pd.DataFrame(
        {
            "setting": ["a", "a", "b", "b"],
            "data": ["x", "y", "x", "y"],
            "seed": 0,
            "state": ["done", "done", "failed", "waiting"],
            "seconds": [1.0, 2.0, np.nan, np.nan],
        }
    )
    table = instance_table(cells, "seconds")
    assert list(table.index) == [("x", 0)]
    assert list(table.columns) == ["a", "b"]
    assert table.loc[("x", 0), "a"] == 1.0
    assert np.isnan(table.loc[("x", 0), "b"])


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=6), st.floats(0.1, 100))
def test_shifted_geometric_mean(values, shift):
    mean = shifted_geometric_mean(values, shift)
    assert min(values) - 1e-6 <= mean <= max(values) * (1 + 1e-9) + 1e-6
    assert np.isclose((mean + shift) ** len(values), np.prod(np.array(values) + shift), rtol=1e-6)


def test_series_leave_out_data_and_settings_without_results():
    per_data = pd.DataFrame(
        {
            "setting": ["cart", "oct", "oct", "oct-h"],
            "data": ["few", "few", "later", "few"],
            "done": [2, 2, 0, 0],
            "test_accuracy": [0.8, 0.9, np.nan, np.nan],
            "test_accuracy_sd": [0.1, 0.1, np.nan, np.nan],
        }
    )
    (axes,) = series_figure(per_data, ["test_accuracy"]).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["few"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cart", "oct"]
