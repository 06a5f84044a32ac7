"""Run folders, their digests, sources of data, saved trees."""

import json
import multiprocessing
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from changed_runs import sealed
from small_run import SMALL
from typer.testing import CliRunner

from formulations.olct import Olct, UnivariateOlct
from mipforest.cli.main import app
from mipforest.data import DataError, Encoding, load
from mipforest.data.encoding import Column
from mipforest.runs import (
    DataSource,
    RunError,
    RunFolder,
    SavedTree,
    instance_files,
    load_saved_tree,
    read_run,
    write_instance,
)
from mipforest.runs.folder import check_digests, digest_of, with_digests
from mipforest.trees import Tree, TreeFileError, to_dict, to_text

# ------------------------------------------------------------------ folders


def write(folder: RunFolder, text: str = "{}") -> None:
    (folder.staging / "result.json").write_text(text)
    folder.commit()


def test_a_folder_appears_with_all_its_files_at_the_end(tmp_path):
    with RunFolder(tmp_path / "new" / "run") as folder:
        (folder.staging / "solver.log").write_text("log")
        assert not folder.path.exists()
        write(folder)
        assert {entry.name for entry in folder.path.iterdir()} == {"result.json", "solver.log"}
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["run"]


def test_nothing_is_left_without_commit_or_after_an_error(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        (folder.staging / "solver.log").write_text("log")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), RunFolder(tmp_path / "run"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_and_a_link_are_filled(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    with RunFolder(tmp_path / "link") as folder:
        write(folder)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "run" / "result.json").exists()


def test_an_earlier_run_stays_until_the_new_one_is_complete(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        write(folder, "1")
    with pytest.raises(RunError, match="earlier run"):
        RunFolder(tmp_path / "run")
    with RunFolder(tmp_path / "run", replace=True):
        pass
    assert (tmp_path / "run" / "result.json").read_text() == "1"
    with RunFolder(tmp_path / "run", replace=True) as folder:
        assert (tmp_path / "run" / "result.json").read_text() == "1"
        write(folder, "2")
    assert (tmp_path / "run" / "result.json").read_text() == "2"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_run_that_another_process_wrote_meanwhile_is_not_overwritten(tmp_path):
    with RunFolder(tmp_path / "run") as slow:
        with RunFolder(tmp_path / "run") as quick:
            write(quick, "quick")
        with pytest.raises(RunError, match="earlier run"):
            write(slow, "slow")
    assert (tmp_path / "run" / "result.json").read_text() == "quick"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_failing_rename_brings_the_earlier_run_back(tmp_path, monkeypatch):
    with RunFolder(tmp_path / "run") as folder:
        write(folder, "1")
    rename = Path.rename

    def fails_for_parts(self, target):
        if self.suffix == ".part":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_parts)
    with RunFolder(tmp_path / "run", replace=True) as folder, pytest.raises(OSError, match="no"):
        write(folder, "2")
    assert (tmp_path / "run" / "result.json").read_text() == "1"


def test_places_that_are_taken_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    for place, word in (
        ("file", "is a file"),
        ("other", "notes.txt"),
        (".", "current folder"),
        ("/", "current folder"),
    ):
        with pytest.raises(RunError, match=word):
            RunFolder(place, replace=True)
    with pytest.raises(RunError, match="is a file"), RunFolder("file/run"):
        pass
    with pytest.raises(RunError, match="cannot write"), RunFolder("/proc/run"):
        pass


def _die_while_staging(path: str) -> None:
    RunFolder(path).__enter__()
    os._exit(1)


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    run = tmp_path / "run[1]"
    process = multiprocessing.get_context("fork").Process(target=_die_while_staging, args=(str(run),))
    process.start()
    process.join()
    dead = list(tmp_path.glob(".run*.part"))
    assert len(dead) == 1
    with RunFolder(run) as first, RunFolder(run) as second:
        assert not dead[0].exists()
        assert first.staging.exists()
        assert second.staging.exists()


# ------------------------------------------------------------------ sources of data


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"x": rng.normal(size=30), "kind": rng.choice(["a", "b", "c"], 30), "y": np.tile([1, 2, 3], 10)}
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_a_source_is_restored_from_json_and_found_from_elsewhere(table, tmp_path, monkeypatch):
    monkeypatch.chdir(table.parent)
    source = DataSource(
        data="table.csv", target="y", positive=("3",), test_size=0.3, seed=5, scaling="standard"
    )
    first = source.load()
    entries = json.loads(json.dumps(source.to_dict()))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    second = DataSource.from_dict(entries).load()
    assert first.train.sha256 == second.train.sha256
    assert first.test is not None
    assert second.test is not None
    assert first.test.sha256 == second.test.sha256
    np.testing.assert_array_equal(first.train.X, second.train.X)


def test_the_split_is_that_of_the_data_set(table):
    source = DataSource(data=str(table), target="y", test_size=0.3, seed=5)
    train, test = load(table, target="y").split(0.3, seed=5)
    loaded = source.load()
    assert loaded.test is not None
    assert (loaded.train.sha256, loaded.test.sha256) == (train.sha256, test.sha256)
    np.testing.assert_array_equal(loaded.train.X, train.X)
    assert loaded.train.X.min() == 0
    assert loaded.train.X.max() == 1


def test_labels_lead_to_the_merged_classes(table):
    assert DataSource(data=str(table), target="y").load().labels == {"1": 0, "2": 1, "3": 2}
    merged = DataSource(data=str(table), target="y", positive=("1", "3")).load()
    assert merged.train.classes == ("2", "1|3")
    assert merged.labels == {"2": 0, "1|3": 1, "1": 1, "3": 1}
    named = DataSource(data="iris").load().labels
    assert named == {"setosa": 0, "versicolor": 1, "virginica": 2, "0": 0, "1": 1, "2": 2}
    assert DataSource(data="diabetes").load().labels == {}


def test_a_test_file_is_read_like_the_training_data_and_merged_too(table):
    loaded = DataSource(data=str(table), target="y", positive=("3",), test=str(table)).load()
    assert loaded.test is not None
    np.testing.assert_array_equal(loaded.test.X, loaded.train.X)
    np.testing.assert_array_equal(loaded.test.y, loaded.train.y)


def test_errors_of_a_test_file_name_it(table):
    other = table.with_name("other.csv")
    other.write_text("x,kind,y\n1,d,1\n")
    with pytest.raises(DataError, match=r"other\.csv: .*'d'"):
        DataSource(data=str(table), target="y", test=str(other)).load()


# ------------------------------------------------------------------ saved trees


@pytest.fixture
def saved(table):
    data = DataSource(data=str(table), target="y", positive=("3",)).load()
    w, b = np.array([[1.0, 0.5, 0.0, 0.0]]), np.array([-0.7])
    encoding = data.train.encoding
    tree = Tree(
        1, w, b, [0, 1], data.train.classes, data.train.features.labels, encoding.offset, encoding.scale
    )
    return SavedTree.of(tree, data)


def test_a_saved_tree_predicts_from_the_table_as_the_tree_does_from_features(saved, table, tmp_path):
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(saved.to_dict()))
    loaded, data = load_saved_tree(path), load(table, target="y")
    frame = pd.read_csv(table)
    np.testing.assert_array_equal(loaded.predict(frame), saved.tree.predict(data.X_raw))
    np.testing.assert_array_equal(loaded.targets(frame["y"]), (frame["y"] == 3).astype(int))
    assert to_text(loaded.tree, loaded.statistics) == to_text(saved.tree, saved.statistics)
    assert loaded.to_dict() == saved.to_dict()


def test_a_regression_tree_is_saved_with_its_means(tmp_path):
    data = DataSource(data="diabetes").load()
    w = np.zeros((1, 10))
    w[0, 2] = 1.0
    saved = SavedTree.of(Tree(1, w, np.array([-0.5]), np.array([100.0, 200.0])), data)
    (tmp_path / "tree.json").write_text(json.dumps(saved.to_dict(), allow_nan=False))
    loaded = load_saved_tree(tmp_path / "tree.json")
    for name in ("mean", "r2", "mse", "mae"):
        np.testing.assert_array_equal(getattr(loaded.statistics, name), getattr(saved.statistics, name))
    np.testing.assert_array_equal(loaded.targets([1, 2.5]), [1.0, 2.5])
    with pytest.raises(DataError, match="'target' must hold numbers, but row 1 holds 'much'"):
        loaded.targets([1, "much"])


def test_a_tree_with_linear_leaves_is_saved(tmp_path):
    data = DataSource(data="diabetes").load()
    rng = np.random.default_rng(0)
    encoding = data.train.encoding
    tree = Tree(
        1, rng.normal(size=(1, 10)), [0.0], [100.0, 200.0], offset=encoding.offset, scale=encoding.scale
    )
    linear = SavedTree.of(replace(tree, leaf_w=rng.normal(size=(2, 10))), data)
    (tmp_path / "tree.json").write_text(json.dumps(linear.to_dict(), allow_nan=False))
    loaded = load_saved_tree(tmp_path / "tree.json")
    np.testing.assert_array_equal(
        loaded.tree.predict(data.train.X_raw), linear.tree.predict(data.train.X_raw)
    )


@pytest.mark.parametrize("key", ["encoding", "labels", "target", "training_samples", "w", "leaf_w"])
def test_a_tree_without_a_part_is_refused(saved, tmp_path, key):
    content = saved.to_dict()
    del content[key]
    (tmp_path / "tree.json").write_text(json.dumps(content))
    with pytest.raises(TreeFileError, match=key):
        load_saved_tree(tmp_path / "tree.json")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", "3", '{"format": 1}', "\0"])
def test_what_is_no_tree_is_refused(tmp_path, text):
    (tmp_path / "tree.json").write_text(text)
    with pytest.raises(TreeFileError, match=r"tree\.json"):
        load_saved_tree(tmp_path / "tree.json")


# ------------------------------------------------------------------ reading runs, naming instances


def test_what_is_no_run_is_refused(tmp_path):
    (tmp_path / "first").mkdir()
    with pytest.raises(RunError, match=r"does not exist.*did you mean 'first'"):
        read_run(tmp_path / "frist")
    with pytest.raises(RunError, match=r"has no result\.json"):
        read_run(tmp_path / "first")
    (tmp_path / "first" / "result.json").write_text('{"status": "time_limit"}')
    run = read_run(sealed(tmp_path / "first"))
    with pytest.raises(RunError, match=r"no tree.*time_limit"):
        run.found_tree  # noqa: B018


@pytest.mark.parametrize("name", ["a.b.mps", "a.b.mps.gz", "a.b.MPS.GZ"])
def test_instance_files_stand_next_to_the_instance(name):
    assert instance_files(Path("x") / name) == (Path("x/a.b.mst"), Path("x/a.b.json"))


@pytest.mark.parametrize("epsilon", [1e-5, 1.5e-4, 2e-3])  # at 1.5e-4 solvers find 6.979 still, not 8.0975
@pytest.mark.parametrize("model", [Olct, UnivariateOlct])
def test_an_instance_says_what_tolerance_it_needs(tmp_path, model, epsilon):
    source = DataSource(data="iris", positive=("virginica",), scaling="standard")
    problem = model(variant="paper", epsilon=epsilon).build(source.load().train, 2)
    found = write_instance(problem, tmp_path / "x.mps", source, start=None, seed=0, version="test")
    # M of the thesis is 100, and a child has one last node below it; both sides slip.
    slips = 2 * (1 + 100)
    if model is UnivariateOlct:
        # A weight is as large as M times the tolerance although its feature is switched off.
        slips += slips * np.abs(problem.data.X).sum(axis=1).max()
    assert found["tolerance"] == pytest.approx(epsilon / slips)
    told = [text for text in found["warnings"] if "may be that of no tree" in text]
    assert bool(told) is (found["tolerance"] < 1e-6)
    assert bool(told) is (epsilon < 1e-3)


@pytest.mark.parametrize(
    "labels", [[], {"no": 10**400}, {"no": -1}, {"no": 7}, {"no": True}, {"no": "0"}, {"no": None}]
)
def test_odd_labels_of_a_saved_tree_are_refused(tmp_path, labels):
    tree = Tree(depth=1, w=[[1.0]], b=[-0.5], leaf_value=[0, 1], classes=("no", "yes"), features=("a",))
    encoding = Encoding.unscaled([Column("a")]).to_dict()
    content = to_dict(tree) | {"encoding": encoding, "target": "t", "labels": labels}
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(content | {"training_samples": {"samples": [2, 1, 1]}}))
    with pytest.raises(TreeFileError, match="'labels'"):
        load_saved_tree(path)


def test_what_is_filled_in_is_learned_from_training_samples_alone(table):
    frame = pd.read_csv(table)
    frame.loc[::3, "x"] = np.nan
    frame.to_csv(table, index=False)
    source = DataSource(data=str(table), target="y", missing="impute", test_size=0.5, seed=1)
    loaded = source.load()
    train = frame.loc[[int(row) for row in loaded.train.samples], "x"].dropna()
    assert loaded.train.encoding.columns[0].fill == sorted(train)[(len(train) - 1) // 2]
    assert loaded.test.encoding.columns == loaded.train.encoding.columns
    assert (
        DataSource.from_dict(json.loads(json.dumps(source.to_dict()))).load().train.sha256
        == loaded.train.sha256
    )


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


def test_another_layout_and_another_place_are_read(copy):
    edit(copy / "tree.json", lambda tree: None)
    edit(copy / "result.json", lambda result: result["data_source"].update(data="elsewhere.csv"))
    assert run("show", copy).exit_code == 0
    edit(copy / "tree.json", lambda tree: tree["b"].__setitem__(0, 0.123))
    assert run("show", sealed(copy)).exit_code == 0


def test_a_tree_that_is_gone_or_of_another_run_is_told(copy):
    tree = (copy / "tree.json").read_text()
    (copy / "tree.json").unlink()
    with pytest.raises(RunError, match=r"tree\.json is absent, and result\.json names one"):
        read_run(copy)
    (copy / "tree.json").write_text(tree)
    result = json.loads((copy / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps(with_digests(result, {})))
    with pytest.raises(RunError, match=r"tree\.json is not of this run"):
        read_run(copy)
    for change in (lambda result: result.update(digests=[]), lambda result: result.pop("digests")):
        edit(copy / "result.json", change)
        with pytest.raises(RunError, match="has no digests, which tell"):
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
