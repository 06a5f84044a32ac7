"""What a run folder from elsewhere can make commands read, write or print: its own files, and no more."""

import json
import pickle
import shutil

import pytest
from changed_runs import without_digests

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
    return without_digests(shutil.copytree(finished_run, tmp_path / "crafted"))


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


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
