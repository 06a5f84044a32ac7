"""Suites that include others."""

import sqlite3
from pathlib import Path

import pytest
from campaign_suites import PAIR

from mipforest.campaigns import Campaign, CampaignError, Counts, campaigns, included_suites, read_suite, run

OTHER = (
    PAIR.replace('"pair"', '"other"')
    .replace('model = "oct"', 'model = "margot"')
    .replace("models.oct", "models.m")
)


@pytest.fixture
def place(tmp_path):
    """A folder with two suites of two cells each, and one that includes both."""
    (tmp_path / "pair.toml").write_text(PAIR)
    (tmp_path / "other.toml").write_text(OTHER)
    write(tmp_path, "both", '"pair.toml", "other.toml"')
    return tmp_path


def write(place: Path, name: str, entries: str) -> Path:
    path = place / f"{name}.toml"
    path.write_text(f'name = "{name}"\ninclude = [{entries}]\n')
    return path


def keys(found: tuple[Campaign, ...]) -> list[list[str]]:
    return [[entry.experiment.key for entry in campaign.read()[2]] for campaign in found]


def test_cells_are_the_same_alone_and_included(place):
    results = place / "results"
    both = campaigns([place / "both.toml"], results)
    alone = campaigns([place / "pair.toml", place / "other.toml"], results)
    assert keys(both) == keys(alone)
    assert [campaign.results for campaign in both] == [campaign.results for campaign in alone]
    (one,) = campaigns([place / "pair.toml"], results / "pair.sqlite")
    assert keys((one,)) == keys(both[:1])
    # By default, results are in the current folder either way.
    assert campaigns([place / "both.toml"])[0].results == campaigns([place / "pair.toml"])[0].results


def test_what_was_run_alone_is_not_run_again(place):
    results = place / "results"
    results.mkdir()
    (one,) = campaigns([place / "pair.toml"], results / "pair.sqlite")
    assert run(one) == Counts(done=2, failed=0, waiting=0)
    with sqlite3.connect(one.results) as connection:
        before = connection.execute("SELECT cell, finished, wall_seconds FROM results").fetchall()
    pair, other = campaigns([place / "both.toml"], results)
    assert (pair.outlook().waiting, other.outlook().waiting) == (0, 2)
    assert other.outlook().seconds == 2 * 60.0
    assert not other.results.exists()
    assert run(pair) == Counts(done=2, failed=0, waiting=0)
    with sqlite3.connect(one.results) as connection:
        assert connection.execute("SELECT cell, finished, wall_seconds FROM results").fetchall() == before


def test_an_including_suite_takes_a_part_and_another_limit(place):
    path = write(place, "part", '{ suite = "pair.toml", time_limit = 5, only = ["oct"] }, "other.toml"')
    pair, other = campaigns([path])
    assert {entry.experiment.settings.time_limit for entry in pair.read()[2]} == {5.0}
    assert {entry.experiment.settings.time_limit for entry in other.read()[2]} == {60.0}
    assert keys((pair,)) != keys(campaigns([place / "pair.toml"]))
    # That of the command counts for all.
    limits = {
        entry.experiment.settings.time_limit
        for campaign in campaigns([path], time_limit=2.0)
        for entry in campaign.read()[2]
    }
    assert limits == {2.0}
    wrong = write(place, "wrong", '{ suite = "pair.toml", only = ["octt"] }')
    with pytest.raises(CampaignError, match="did you mean 'oct'"):
        campaigns([wrong])[0].read()


def test_suites_of_suites_may_be_included(place):
    write(place, "part", '{ suite = "pair.toml", time_limit = 5 }')
    found = included_suites(write(place, "outer", '"part.toml", "other.toml"'))
    assert [(entry.path.name, entry.time_limit) for entry in found] == [
        ("pair.toml", 5.0),
        ("other.toml", None),
    ]


def test_only_takes_suites_labels_or_both(place):
    both = [place / "both.toml"]

    def asked(*only: str) -> list[tuple[str, tuple[str, ...], int]]:
        return [(c.suite_path.stem, c.only, len(c.read()[2])) for c in campaigns(both, only=only)]

    assert asked("other") == [("other", (), 2)]
    assert asked("oct") == [("pair", ("oct",), 2)]
    assert asked("oct", "m") == [("pair", ("oct",), 2), ("other", ("m",), 2)]
    assert asked("tree", "m") == [("other", ("tree", "m"), 2)]
    with pytest.raises(CampaignError, match="did you mean 'oct'"):
        asked("octt")
    with pytest.raises(CampaignError, match="no suite has experiments of all of"):
        asked("other", "oct")


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ("", "include is an empty list"),
        ('"absent.toml"', "'absent.toml', and there is no file"),
        ('"../pair.toml"', "leads out of the folder"),
        ('"/pair.toml"', "leads out of the folder"),
        ('"pair.toml", "pair.toml"', "'pair.toml' twice"),
        ('"pair.toml", "both.toml"', "'pair.toml' twice"),
        ('"made.toml"', "made.toml -> made.toml"),
        ("3", "an entry of include is 3; it must be a table"),
        ('{ only = ["oct"] }', "lacks the key 'suite'"),
        ('{ suite = "pair.toml", time_limits = 1 }', "did you mean 'time_limit'"),
        ('{ suite = "pair.toml", time_limit = -1 }', "time_limit"),
        ('{ suite = "pair.toml", time_limit = nan }', "time_limit"),
        ('{ suite = "pair.toml", only = [] }', "empty list"),
        ('{ suite = "both.toml", time_limit = 1 }', "includes other suites, so it takes no only"),
    ],
)
def test_what_cannot_be_included_is_told_with_file_and_value(place, entries, told):
    path = write(place, "made", entries)
    with pytest.raises(CampaignError, match=told) as caught:
        campaigns([path])
    assert str(path) in str(caught.value)


def test_a_cycle_is_told_with_its_files(place):
    write(place, "a", '"b.toml"')
    write(place, "b", '"pair.toml", "c.toml"')
    write(place, "c", '"a.toml"')
    with pytest.raises(CampaignError, match=r"a\.toml -> b\.toml -> c\.toml -> a\.toml"):
        campaigns([place / "a.toml"])


def test_a_suite_of_suites_is_no_suite_of_models(place):
    with pytest.raises(CampaignError, match="includes other suites, and has no models"):
        read_suite(place / "both.toml")
    path = place / "mixed.toml"
    path.write_text(PAIR.replace("seeds", 'include = ["other.toml"]\nseeds'))
    with pytest.raises(CampaignError, match="known are name, summary, include"):
        campaigns([path])


def test_results_of_several_suites_are_a_folder(place):
    file = place / "results.sqlite"
    file.write_text("mine")
    with pytest.raises(CampaignError, match="is a file; give --results a folder"):
        campaigns([place / "both.toml"], file)
