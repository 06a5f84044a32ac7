from itertools import islice
from pathlib import Path

import pandas as pd
import pytest
from campaign_suites import PAIR, campaign_of

from mipforest.campaigns import Campaign, CampaignError, Store, run
from mipforest.campaigns import report as module
from mipforest.campaigns.report import markdown_table, write_report


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
