"""Files of data that suites read: made of bundled tables, of files of UCI, of OpenML; what is said of missing ones."""

import csv
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from mipforest import load
from mipforest.campaigns import CampaignError
from mipforest.campaigns.data_files import checksum, files_of, prepare
from mipforest.campaigns.known_files import KNOWN
from mipforest.cli.main import app

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"


def test_every_file_of_the_suites_is_known():
    for suite in CAMPAIGNS.glob("*.toml"):
        assert set(files_of(suite)) <= KNOWN.keys()


@pytest.mark.parametrize("name", [name for name, source in KNOWN.items() if source.bundled])
def test_bundled_tables_are_the_files_of_the_results(tmp_path, name):
    (made,) = prepare([name], tmp_path)
    assert (made.state, made.as_published) == ("made", True)
    assert load(tmp_path / name, task="classification").n > 100
    (again,) = prepare([name], tmp_path)
    assert (again.state, again.as_published) == ("there", True)


def test_a_checksum_is_of_values_and_their_order(tmp_path):
    paths = [tmp_path / f"{k}.csv" for k in range(3)]
    for path, text in zip(
        paths, ("a,target\n1,x\n2,y\n", "b,target\n1.0,x\n2.00,y\n", "a,target\n2,y\n1,x\n"), strict=True
    ):
        path.write_text(text)
    first, alike, turned = map(checksum, paths)
    assert first == alike != turned


def test_files_of_uci_have_their_target_last_and_no_gaps(tmp_path):
    uci = tmp_path / "uci" / "deeper"
    uci.mkdir(parents=True)
    (uci / "breast-cancer-wisconsin.data").write_text(
        "1000025,5,1,1,1,2,1,3,1,1,2\n1,8,4,5,1,2,?,7,3,1,4\n1002945,5,4,4,5,7,10,3,2,1,4\n"
    )
    (uci / "yacht_hydrodynamics.data").write_text("-2.3 0.5 4.7 3.9 3.1  0.1 0.11 \n\n-5 1 2 3 4 5 6\n")
    (uci / "transfusion.data").write_text('"a","b","c","d","e"\n2,50,12500,98,1\n')
    names = ["breast_cancer_wisconsin.csv", "yacht.csv", "transfusion.csv", "sonar.csv"]
    *made, missing = prepare(names, tmp_path, uci=tmp_path / "uci")
    assert [(file.state, file.as_published) for file in made] == [("made", False)] * 3
    assert missing.state == "missing"
    assert "sonar.all-data of https://archive.ics.uci.edu/dataset/151" in missing.about
    with (tmp_path / names[0]).open() as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == [*(f"x{k}" for k in range(9)), "target"]
    assert rows[1:] == [["5", "1", "1", "1", "2", "1", "3", "1", "1", "2"], [*"54457", "10", *"321", "4"]]
    assert (tmp_path / "yacht.csv").read_text().splitlines()[2] == "-5,1,2,3,4,5,6"


def test_what_openml_has_is_fetched_when_asked(tmp_path, monkeypatch):
    asked = []

    def fetch(**query):
        asked.append(query["data_id"])
        return SimpleNamespace(data=pd.DataFrame({"a": [1, 2]}), target=pd.Series(["x", "y"]))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    assert prepare(["sonar.csv"], tmp_path)[0].state == "missing"
    assert not asked
    (made,) = prepare(["sonar.csv"], tmp_path, openml=True)
    assert (made.state, made.about, asked) == ("made", "of openml:40", [40])
    assert (tmp_path / "sonar.csv").read_text() == "x0,target\n1,x\n2,y\n"


def test_a_network_that_fails_is_told(tmp_path, monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    (missing,) = prepare(["sonar.csv"], tmp_path, openml=True)
    assert "(openml:40: no network)" in missing.about
    with pytest.raises(CampaignError, match="there is no folder"):
        prepare(["sonar.csv"], tmp_path, uci=tmp_path / "absent")


def test_the_command_says_what_is_there_and_what_is_missing(tmp_path):
    suite, folder = CAMPAIGNS / "margot-tables-5-6.toml", tmp_path / "data"
    told = CliRunner().invoke(app, ["campaign", "data", str(suite), "--data", str(folder)])
    assert told.exit_code == 3
    assert (
        "breast_cancer_diagnostic.csv: made of what scikit-learn bundles; its checksum is right"
        in told.stdout
    )
    assert "wholesale.csv: missing: Wholesale customers" in told.stdout
    assert "1 of 10 files are in" in told.stdout.replace("\n", " ")
    bundled = CAMPAIGNS / "orct-bundled.toml"
    told = CliRunner().invoke(app, ["campaign", "data", str(bundled), "--data", str(folder)])
    assert told.exit_code == 0
    assert "the suites read no files" in told.stdout
