from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from campaign_suites import PAIR, campaign_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tolerance import same

from mipforest.campaigns import Campaign, CampaignError, Store, run
from mipforest.campaigns import report as module
from mipforest.campaigns.report import (
    Distribution,
    distances_from_best,
    instance_table,
    markdown_table,
    performance_profiles,
    series_figure,
    shifted_geometric_mean,
    write_report,
)


@pytest.fixture(scope="module")
def report(undisturbed: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report; read only."""
    folder = tmp_path_factory.mktemp("report")
    write_report(undisturbed.results, folder)
    return folder


@pytest.fixture
def fewer_pictures(monkeypatch):
    """Draw one picture of each report: drawing all takes most of the time."""
    draw = module._pictures
    monkeypatch.setattr(module, "_pictures", lambda *tables: dict(islice(draw(*tables).items(), 1)))


def test_the_same_results_give_the_same_bytes(undisturbed, report, tmp_path, fewer_pictures):
    again = [path for path in write_report(undisturbed.results, tmp_path) if path.suffix != ".md"]
    assert {path.suffix for path in again} == {".csv", ".png", ".svg"}
    for path in again:
        assert path.read_bytes() == (report / path.name).read_bytes(), path.name


def test_the_report_tells_every_cell_failures_and_published_figures(report):
    names = {path.name for path in report.iterdir()}
    pictures = ("profile-time", "profile-features", "gaps", "distance-balanced-accuracy", "bounds-tree")
    assert names >= {f"{name}.{suffix}" for name in pictures for suffix in ("svg", "png")}
    cells = pd.read_csv(report / "cells.csv")
    assert list(cells["state"].value_counts()) == [18, 2]
    page = (report / "report.md").read_text()
    assert "18 of 20 cells are done, 2 failed, 0 are not run yet." in page
    assert "ZeroDivisionError" in page or "DataError" in page
    margot = page.split("## margot\n")[1].split("##")[0]
    assert "91.2" in margot
    assert "25.0" in margot
    assert page.count("paper |") == 2


def test_tables_average_over_seeds(report):
    cells, rows = pd.read_csv(report / "cells.csv"), pd.read_csv(report / "by_data.csv")
    for _, row in rows.iterrows():
        own = cells[(cells["setting"] == row["setting"]) & (cells["state"] == "done")]
        assert row["test_accuracy"] == pytest.approx(own["test_accuracy"].mean())
        assert row["test_accuracy_sd"] == pytest.approx(own["test_accuracy"].std())
        assert (row["cells"], row["done"]) == (5, len(own))
        assert row["solved"] == (own["status"] == "optimal").sum()
        # All are solved: rounding errors of an objective of 0 are no gap.
        assert row["gap"] <= 1e-4


@pytest.mark.slow
def test_all_pictures_have_the_same_bytes(undisturbed, report, tmp_path):
    again = write_report(undisturbed.results, tmp_path)
    assert sorted(path.name for path in again) == sorted(path.name for path in report.iterdir())
    for path in again:
        assert path.read_bytes() == (report / path.name).read_bytes(), path.name


def test_a_campaign_that_has_not_begun_has_a_report(tmp_path, fewer_pictures):
    text = PAIR + '[models.other]\nmodel = "oct"\ndepth = 1\n'
    campaign = campaign_of(tmp_path, text, only=("oct",))
    run(campaign)
    write_report(campaign.results, tmp_path / "half")
    assert "2 of 4 cells are done, 0 failed, 2 are not run yet." in (tmp_path / "half/report.md").read_text()
    with Store(tmp_path / "new.sqlite", create=True) as store:
        with pytest.raises(CampaignError, match="no campaign yet"):
            write_report(store.path, tmp_path / "none")
        suite, planned, _ = campaign.read()
        store.register(suite, planned)
    write_report(tmp_path / "new.sqlite", tmp_path / "new")
    assert "0 of 4 cells are done" in (tmp_path / "new/report.md").read_text()


def test_a_campaign_that_proves_nothing_has_a_report(tmp_path, fewer_pictures):
    starts = PAIR.replace('model = "oct"', 'model = "margot"').replace("[60.0]", "[0.0]")
    campaign = campaign_of(tmp_path, starts)
    run(campaign)
    write_report(campaign.results, tmp_path / "report")
    page = (tmp_path / "report/report.md").read_text()
    assert "2 of 2 cells are done, 0 failed" in page


def test_a_report_goes_into_a_folder(undisturbed, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CampaignError, match="is a file"):
        write_report(undisturbed.results, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_bars_and_line_ends_do_not_break_tables():
    table = markdown_table(["a", "b"], [["x|y", "1\n2"]])
    assert table.splitlines()[2] == "| x\\|y | 1 2 |"
    assert len(table.splitlines()) == 3


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
