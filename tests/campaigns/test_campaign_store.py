import sqlite3

import pytest
from campaign_suites import PAIR, TINY, campaign_of

from mipforest.campaigns import CampaignError, Store, run
from mipforest.campaigns.experiment_result import ExperimentResult, environment


def test_files_that_hold_no_results_are_refused_and_left_as_they_are(tmp_path):
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but long enough to have a header of a hundred bytes or so " * 3)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for path, told in ((text, "not a database"), (other, "no results of a campaign")):
        before = path.read_bytes()
        with pytest.raises(CampaignError, match=told):
            Store(path, create=True)
        assert path.read_bytes() == before
    with pytest.raises(CampaignError, match="no results file"):
        Store(tmp_path / "absent.sqlite")
    with pytest.raises(CampaignError, match="no folder"):
        Store(tmp_path / "absent" / "results.sqlite", create=True)


def test_tables_of_another_version_are_refused(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    with sqlite3.connect(campaign.results) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(CampaignError, match="version 99"):
        Store(campaign.results)


def test_results_of_another_suite_are_refused(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    before = campaign.results.read_bytes()
    with pytest.raises(CampaignError, match=r"suite 'pair', not of 'tiny'.*another --results"):
        run(campaign_of(tmp_path, TINY))
    assert campaign.results.read_bytes() == before


def test_a_second_result_of_a_cell_is_refused(tmp_path):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    with Store(campaign.results) as store:
        (sha256,) = {row["sha256"] for row in store.rows("SELECT sha256 FROM suites")}
        with pytest.raises(CampaignError, match="has a result already"):
            store.record(1, sha256, environment(), ExperimentResult.failed(ValueError("again")))
        assert store.rows("SELECT state FROM results WHERE cell = 1") == [{"state": "done"}]


def test_the_environment_names_no_host_and_no_user(tmp_path):
    import getpass
    import platform

    told = " ".join(map(str, environment().values()))
    assert platform.node() not in told.split()
    assert getpass.getuser() not in told.split()
    assert environment()["python"] == f"{platform.python_implementation()} {platform.python_version()}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE environments SET cores = 'many'", "cores of row 1 of table environments is of type text"),
        ("UPDATE cells SET model = x'ff'", "model of row 1 of table cells is of type blob"),
        ("UPDATE suites SET text = x'ff00'", "text of row 1 of table suites is of type blob"),
        ("ALTER TABLE results DROP COLUMN tree", "table results lacks tree"),
        ("DROP TABLE events", "table events lacks cell"),
    ],
)
def test_a_file_with_values_of_other_types_is_refused(tmp_path, change, told):
    campaign = campaign_of(tmp_path, PAIR)
    run(campaign)
    with sqlite3.connect(campaign.results) as connection:
        connection.execute(change)
    with pytest.raises(CampaignError, match=told):
        Store(campaign.results)
