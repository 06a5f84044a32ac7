"""What a run folder from elsewhere can make commands read, write or print: its own files, and no more."""

import io
import json
import pickle
import shutil
import sys
from urllib.error import URLError

import pytest
from changed_runs import sealed

from mipforest.cli.pictures import _may_fetch
from mipforest.runs import read_run

pytestmark = pytest.mark.usefixtures("few_penalties")


class Trap:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.fixture
def crafted(finished_run, tmp_path):
    """A copy of a run, to be changed."""
    return shutil.copytree(finished_run, tmp_path / "crafted")


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    if path.name == "result.json":
        sealed(path.parent)


def test_a_link_in_place_of_the_picture_is_not_followed(mipforest, crafted, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (crafted / "tree.svg").unlink()
    (crafted / "tree.svg").symlink_to(precious)
    done = mipforest("plot", crafted)
    assert done.code == 2
    assert "is a link" in done.err
    assert precious.read_text() == "precious"


def test_other_data_than_those_of_the_run_are_not_drawn(mipforest, crafted, people, tmp_path):
    other = tmp_path / "other.csv"
    people.assign(age=1).to_csv(other, index=False)
    edit(crafted / "result.json", lambda result: result["data_source"].update(data=str(other)))
    done = mipforest("plot", crafted, "-o", tmp_path / "picture.svg")
    assert done.code == 0
    assert "drawn without numbers of samples" in done.err


@pytest.mark.parametrize(
    "source",
    [
        {"data": "/etc/passwd"},
        {"data": "/dev/zero"},
        {"data": ["iris"]},
        {"data": "iris", "seed": "x"},
        {"data": "iris", "positive": 1},
        [],
        None,
    ],
)
def test_a_source_that_is_none_is_told(mipforest, crafted, tmp_path, source):
    edit(crafted / "result.json", lambda result: result.update(data_source=source))
    done = mipforest("plot", crafted, "-o", tmp_path / "picture.svg")
    assert done.code == 0
    assert "drawn without numbers of samples" in done.err


def test_no_pickle_is_loaded(mipforest, crafted, people_csv, tmp_path):
    trace = tmp_path / "trace"
    for name in ("tree.joblib", "tree.pkl", "result.pkl", "tree.svg"):
        (crafted / name).write_bytes(pickle.dumps(Trap(trace)))
    assert mipforest("show", crafted).code == 0
    assert mipforest("predict", crafted, people_csv).code == 0
    assert mipforest("plot", crafted).code == 0
    (crafted / "tree.json").write_bytes(pickle.dumps(Trap(trace)))
    assert mipforest("show", crafted).code == 2
    assert not trace.exists()


def test_names_cannot_give_orders_to_the_terminal(mipforest, crafted):
    def rename(result):
        result["data"]["name"] = "\x1b[2J\x07people"
        result["features_used"] = ["\x9b31m"]

    edit(crafted / "result.json", rename)
    done = mipforest("show", crafted)
    assert done.code == 0
    assert "\\x1b[2J\\x07people" in done.out
    assert not any(mark in done.out for mark in "\x1b\x07\x9b")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"status": ' + "[" * 100_000, '{"status": NaN}', '{"status": 1e999}', "\xff"]
)
def test_malformed_results_are_refused(mipforest, crafted, text):
    (crafted / "result.json").write_text(text, encoding="latin-1")
    done = mipforest("show", crafted)
    assert done.code == 2
    assert "result.json" in done.err


@pytest.fixture
def asked(monkeypatch, crafted):
    """What the network is asked for; the run names data that are there."""
    found = []

    def urlopen(request, *_, **__):
        found.append(request.full_url)
        raise URLError("no network here")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
    monkeypatch.setattr("time.sleep", lambda _: None)
    edit(
        crafted / "result.json", lambda result: result["data_source"].update(data="openml:tracker-of-readers")
    )
    return found


@pytest.mark.parametrize("command", [("report", "page.html"), ("plot", "tree.svg")])
def test_a_run_of_others_reads_the_network_only_when_that_is_allowed(
    mipforest, crafted, asked, tmp_path, command
):
    name, output = command
    refused = mipforest(name, crafted, "-o", tmp_path / output)
    assert refused.code == 2
    assert "names openml:tracker-of-readers" in refused.err
    assert "--network" in refused.err
    assert not (tmp_path / output).exists()
    without = mipforest(name, crafted, "-o", tmp_path / output, "--no-network")
    assert (without.code, asked) == (0, [])
    assert "was not allowed" in without.err
    (tmp_path / output).unlink()
    allowed = mipforest(name, crafted, "-o", tmp_path / output, "--network")
    assert allowed.code == 0
    assert asked


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("answer", "fetches"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False), ("", False)]
)
def test_on_a_terminal_it_is_asked_for(crafted, asked, monkeypatch, answer, fetches):
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    assert _may_fetch(read_run(crafted), None) is fetches
    assert "names openml:tracker-of-readers: fetch it" in said.getvalue()
    assert asked == []


def test_metadata_of_others_read_the_network_only_where_the_data_are_named(
    mipforest, people_csv, asked, tmp_path
):
    instance = tmp_path / "oct.mps"
    options = ("--model", "oct", "--depth", "1", "--data", people_csv, "--target", "answer")
    assert mipforest("export", *options, "-o", instance).code == 0
    edit(
        tmp_path / "oct.json",
        lambda metadata: metadata["data_source"].update(data="openml:tracker-of-readers"),
    )
    refused = mipforest("import", tmp_path / "oct.mst", "--instance", instance)
    assert refused.code == 2
    assert "--data openml:tracker-of-readers" in refused.err
    checked = mipforest("check", instance, tmp_path / "oct.mst")
    assert (checked.code, asked) == (0, [])
    assert "not compared" in checked.out
    assert (
        mipforest(
            "import", tmp_path / "oct.mst", "--instance", instance, "--data", "openml:tracker-of-readers"
        ).code
        == 2
    )
    assert asked
