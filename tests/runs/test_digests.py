"""The files of a run are tied: a tree that is not the result's is refused, and which file was changed is told."""

import json
import shutil

import pytest
from changed_runs import without_digests
from small_run import SMALL
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.runs import RunError, read_run
from mipforest.runs.folder import check_digests, digest_of, with_digests

CARD = (
    "solve",
    "--model",
    "ogrs",
    "--param",
    "rules=1",
    "--data",
    "iris",
    "--positive",
    "setosa",
    "--time-limit",
    "0",
)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digests") / "run"
    assert run(*SMALL, "--quiet", "--out", folder).exit_code in (0, 3)
    return folder


@pytest.fixture
def copy(written, tmp_path):
    return shutil.copytree(written, tmp_path / "run")


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("command", ["show", "predict", "report", "plot"])
def test_a_changed_tree_is_refused_by_all_that_read_a_run(copy, tmp_path, command):
    edit(copy / "tree.json", lambda tree: tree["b"].__setitem__(0, 0.123))
    more = {"predict": ["x.csv"], "report": ["-o", tmp_path / "page.html"]}.get(command, [])
    done = run(command, copy, *more)
    assert done.exit_code == 2
    assert "tree.json was changed after the run" in done.output
    assert "result.json was changed" not in done.output
    assert "solve again" in done.output


def test_a_changed_result_is_refused_and_told(copy):
    edit(copy / "result.json", lambda result: result.update(objective=0.5))
    done = run("show", copy)
    assert done.exit_code == 2
    assert "result.json was changed after the run" in done.output
    assert "tree.json was changed" not in done.output


def test_another_layout_another_place_and_runs_without_digests_are_read(copy):
    edit(copy / "tree.json", lambda tree: None)
    edit(copy / "result.json", lambda result: result["data_source"].update(data="elsewhere.csv"))
    assert run("show", copy).exit_code == 0
    edit(copy / "tree.json", lambda tree: tree["b"].__setitem__(0, 0.123))
    assert run("show", without_digests(copy)).exit_code == 0


def test_a_tree_that_is_gone_or_of_another_run_is_told(copy):
    tree = (copy / "tree.json").read_text()
    (copy / "tree.json").unlink()
    with pytest.raises(RunError, match=r"tree\.json is absent, and result\.json tells of one"):
        read_run(copy)
    (copy / "tree.json").write_text(tree)
    result = json.loads((copy / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps(with_digests(result, {})))
    with pytest.raises(RunError, match=r"tree\.json is not of this run"):
        read_run(copy)
    edit(copy / "result.json", lambda result: result.update(digests=[]))
    with pytest.raises(RunError, match="digests are no object"):
        read_run(copy)


def test_a_changed_card_is_refused(tmp_path):
    folder = tmp_path / "card"
    assert run(*CARD, "--quiet", "--out", folder).exit_code in (0, 3)
    assert run("show", folder).exit_code == 0
    edit(folder / "card.json", lambda card: card.update(target="other"))
    done = run("show", folder)
    assert done.exit_code == 2
    assert "card.json was changed after the run" in done.output


def test_what_json_writes_otherwise_is_no_change(tmp_path):
    content = {2: (1, 2.5), 10: [None, -0.0, 1e300]}
    result = with_digests({"status": "optimal", "levels": {2: 1, 10: 2}}, {"tree.json": content})
    again = json.loads(json.dumps(result, indent=3))
    tree = json.loads(json.dumps(content))
    check_digests(tmp_path, again, {"tree.json": tree})
    assert again["digests"]["tree.json"] == digest_of(tree)
