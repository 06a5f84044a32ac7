"""``mipforest solve``: results, files, exit codes."""

import errno
import json
import shutil

import numpy as np
import pytest
from tolerance import at_most, same

from mipforest import load
from mipforest.problem.problem import Problem
from mipforest.runs.folder import RunFolder
from mipforest.trees import load as load_tree

pytestmark = pytest.mark.usefixtures("few_penalties")

#: What result.json holds at least.
KEYS = {
    "model",
    "variant",
    "depth",
    "parameters",
    "data",
    "solver",
    "solver_version",
    "bridges",
    "status",
    "objective",
    "bound",
    "gap",
    "seconds",
    "build_seconds",
    "nodes",
    "verified",
    "evaluated_objective",
    "max_violation",
    "train_accuracy",
    "train_balanced_accuracy",
    "features_used",
    "warm_start_objective",
    "events",
}

SMALL = ("solve", "--model", "margot", "--depth", "2", "--data", "synthetic:4-partitions")


@pytest.fixture(scope="module")
def solved(mipforest, tmp_path_factory):
    """Outcome and folder of a solve of a second; read only."""
    out = tmp_path_factory.mktemp("solved") / "deep" / "run"
    done = mipforest(*SMALL, "--param", "C=10", "--solver", "highs", "--time-limit", 1, "--out", out)
    assert done.code == 0
    return done, out


@pytest.fixture(scope="module")
def started(mipforest, tmp_path_factory):
    """Outcome as JSON and folder of a run of the start alone; read only."""
    out = tmp_path_factory.mktemp("started") / "run"
    return mipforest(*SMALL, "--time-limit", 0, "--json", "--out", out), out


def test_a_solved_model_gives_a_complete_run_folder(solved):
    done, out = solved
    assert {entry.name for entry in out.iterdir()} == {"result.json", "tree.json", "tree.svg", "solver.log"}
    assert [entry.name for entry in out.parent.iterdir()] == ["run"]
    result = json.loads((out / "result.json").read_text())
    assert result.keys() >= KEYS
    assert result["data"].keys() >= {"name", "n", "p", "sha256"}
    assert result["verified"] is True
    assert at_most(result["bound"], result["objective"])
    assert result["bridges"] == ["quadratic_to_tangents"]
    assert result["parameters"] == {"C": 10.0, "epsilon": 0.001}
    assert "HiGHS" in (out / "solver.log").read_text()
    assert (out / "tree.svg").read_text().lstrip().startswith("<?xml")
    for word in ("Status", "Proven ", "Wrong", "Verified", "Accuracy", "n0:", str(out)):
        assert word in done.out


def test_the_written_tree_has_the_accuracy_that_the_result_states(started):
    _, out = started
    result = json.loads((out / "result.json").read_text())
    data, tree = load("synthetic:4-partitions"), load_tree(out / "tree.json")
    assert same(np.mean(tree.predict(data.X_raw) == data.y), result["train_accuracy"])
    assert result["data"]["sha256"] == data.sha256


def test_a_leaf_that_one_side_of_a_split_leaves_empty_keeps_the_answer_verified(mipforest, tmp_path):
    """The second split sends all samples that reach it right, two of them by the same score."""
    rows = ["3,5,a", "5,4,a", "2,5,a", "0,2,b", "0,0,b", "7,3,b", "0,5,b"]
    (tmp_path / "points.csv").write_text("\n".join(["x0,x1,target", *rows, ""]))
    options = ("--model", "oct-h", "--depth", "2", "--param", "N_min=3", "--param", "mu=0.05")
    done = mipforest("solve", *options, "--data", tmp_path / "points.csv", "--target", "target", "--json")
    assert done.code == 0
    assert done.json["status"] == "optimal"
    assert done.json["verified"] is True
    assert same(done.json["objective"], done.json["evaluated_objective"])
    assert done.json["evaluated_objective"] == 0
    assert done.json["train_accuracy"] == 1


def test_without_out_nothing_is_written(mipforest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = mipforest(*SMALL, "--time-limit", 0)
    assert done.code == 0
    assert "--out" in done.out
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object_with_the_tree(started):
    done, out = started
    content = done.json
    written = json.loads((out / "result.json").read_text())
    assert written.pop("digests").keys() >= {"tree.json"}  # of the files: the object has the tree itself
    assert {key: content[key] for key in written} == written
    assert content["exit_code"] == 0
    assert content["tree"] == json.loads((out / "tree.json").read_text())


def test_quiet_prints_nothing(mipforest):
    done = mipforest(*SMALL, "--time-limit", 0, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_outside_a_terminal_progress_is_one_plain_line(solved):
    done, _ = solved
    assert done.err.count("\n") == 1
    assert done.err.startswith("solving margot, depth 2")
    assert "\x1b" not in done.err + done.out


def test_time_limit_zero_keeps_the_start(started):
    done, _ = started
    assert done.code == 0
    assert done.json["status"] == "time_limit"
    assert done.json["objective"] == pytest.approx(done.json["warm_start_objective"])


def test_no_solution_within_the_limits_is_exit_code_3(mipforest, tmp_path):
    done = mipforest(*SMALL, "--time-limit", 0, "--start", "none", "--out", tmp_path / "run", "--json")
    assert done.code == done.json["exit_code"] == 3
    assert done.json["verified"] is False
    assert done.json["tree"] is None
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == {"result.json", "solver.log"}
    shown = mipforest("show", tmp_path / "run")
    assert "without a solution" in shown.out


def test_a_test_part_is_scored(mipforest):
    done = mipforest(*SMALL, "--time-limit", 0, "--test-size", 0.25, "--seed", 3, "--json").json
    train, test = load("synthetic:4-partitions", seed=3).split(0.25, seed=3)
    assert done["data"]["sha256"] == train.sha256
    assert done["test_data"] == {"name": test.name, "n": 27, "sha256": test.sha256}
    assert 0 <= done["test_accuracy"] <= 1
    assert 0 <= done["test_balanced_accuracy"] <= 1


def test_a_test_file_is_scored(mipforest, people_options, people_csv):
    done = mipforest(*people_options, "--test", people_csv, "--json").json
    assert same(done["test_accuracy"], done["train_accuracy"])


def test_a_class_against_the_rest(mipforest, tmp_path):
    iris = ("solve", "--model", "margot", "--depth", "1", "--data", "iris", "--time-limit", "0")
    refused = mipforest(*iris)
    assert refused.code == 2
    assert "--positive CLASS" in refused.err
    done = mipforest(*iris, "--positive", "setosa", "--json", "--out", tmp_path / "run")
    assert done.code == 0
    assert done.json["train_accuracy"] == 1.0
    assert done.json["tree"]["classes"] == ["versicolor|virginica", "setosa"]
    assert done.json["tree"]["labels"]["virginica"] == done.json["tree"]["labels"]["2"] == 0


def test_a_run_is_a_start(mipforest, solved):
    _, out = solved
    first = json.loads((out / "result.json").read_text())
    for start in (out, out / "tree.json"):
        second = mipforest(*SMALL, "--time-limit", 0, "--param", "C=10", "--start", start, "--json").json
        assert second["warm_start_objective"] == pytest.approx(first["objective"], rel=1e-6)


def test_an_earlier_run_is_replaced_only_by_force(mipforest, people_options, tmp_path):
    out = tmp_path / "run"
    assert mipforest(*people_options, "--out", out).code == 0
    before = (out / "result.json").read_text()
    refused = mipforest(*people_options, "--out", out)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (out / "result.json").read_text() == before
    assert mipforest(*people_options, "--seed", 7, "--out", out, "--force").code == 0
    assert json.loads((out / "result.json").read_text())["options"]["seed"] == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_files_is_never_replaced(mipforest, people_options, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    done = mipforest(*people_options, "--out", tmp_path, "--force")
    assert done.code == 2
    assert "thesis.tex" in done.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("place", ["file/run", "file"])
def test_an_unwritable_place_is_refused_before_the_solve(mipforest, tmp_path, monkeypatch, place):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("mipforest.runs.DataSource.load", lambda self: pytest.fail("data were loaded"))
    done = mipforest(*SMALL, "--out", tmp_path / place)
    assert done.code == 2
    assert "is a file" in done.err


def test_a_folder_that_appears_meanwhile_is_kept_and_the_outcome_told(
    mipforest, people_options, tmp_path, monkeypatch
):
    solve = Problem.solve

    def meanwhile(self, *args, **options):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "notes.txt").write_text("mine")
        return solve(self, *args, **options)

    monkeypatch.setattr(Problem, "solve", meanwhile)
    done = mipforest(*people_options, "--out", tmp_path / "run")
    assert done.code == 2
    assert "Proven " in done.out
    assert "notes.txt" in done.err
    assert [entry.name for entry in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_a_folder_that_was_removed_during_the_solve_costs_nothing(
    mipforest, people_options, tmp_path, monkeypatch
):
    solve = Problem.solve

    def meanwhile(self, *args, **options):
        result = solve(self, *args, **options)
        shutil.rmtree(tmp_path / "deep")
        return result

    monkeypatch.setattr(Problem, "solve", meanwhile)
    done = mipforest(*people_options, "--out", tmp_path / "deep" / "run")
    assert done.code == 0, done.err
    assert {"tree.json", "result.json"} <= {entry.name for entry in (tmp_path / "deep" / "run").iterdir()}


def test_a_full_disk_at_the_end_still_tells_the_outcome(mipforest, people_options, tmp_path, monkeypatch):
    def full(self: RunFolder) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(self.path))

    monkeypatch.setattr(RunFolder, "commit", full)
    done = mipforest(*people_options, "--out", tmp_path / "run")
    assert done.code == 2
    assert "Proven " in done.out
    assert "No space left on device" in done.err
    assert list(tmp_path.iterdir()) == []
    told = mipforest(*people_options, "--out", tmp_path / "run", "--json")
    assert told.code == told.json["exit_code"] == 2
    assert told.json["verified"] is True
    assert told.json["out"] is None
    assert "No space left" in told.json["error"]


def test_weights_come_from_a_column_and_return_with_the_tree(mipforest, people, tmp_path):
    path, out = tmp_path / "weighted.csv", tmp_path / "run"
    people.assign(times=np.arange(len(people)) % 3).to_csv(path, index=False)
    common = ["--data", path, "--target", "answer", "--weight", "times", "--depth", "1"]
    done = mipforest("solve", "--model", "oct", *common, "--out", out, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["verified"]
    assert result["data"]["n"] == (np.arange(len(people)) % 3 > 0).sum()
    assert result["data_source"]["weight"] == "times"
    saved = json.loads((out / "tree.json").read_text())["training_samples"]
    assert np.sum(saved["class_weights"][0]) == (np.arange(len(people)) % 3).sum()
    refused = mipforest("solve", "--model", "oct", "--data", "iris", "--weight", "times", "--depth", "1")
    assert refused.code == 2
    assert "leave --weight out" in " ".join(refused.err.split())


@pytest.mark.slow
def test_a_cluster_that_cannot_be_used_is_told_in_a_line(mipforest, tmp_path, monkeypatch):
    monkeypatch.setattr("mipforest.searches.workers.connected.__defaults__", (0.5,))
    there = ("--dask", "tcp://127.0.0.1:1", "--time-limit", 5, "--out", tmp_path / "run")
    done = mipforest(*SMALL, *there, "--json")
    assert done.code == 2
    assert done.json["kind"] == "ClusterError"
    assert "no Dask scheduler answers at tcp://127.0.0.1:1 within 0.5 s" in done.json["error"]
    done = mipforest(*SMALL, *there, "--solver", "highs")
    assert done.code == 2
    assert "highs does not run on a Dask cluster" in done.err
    assert "leave --dask out" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_long_reason_of_auto_is_told_on_request(mipforest):
    words = ("solve", "--model", "sfs-margot", "--variant", "paper", "--depth", "1", "--data", "iris")
    words += ("--positive", "setosa", "--time-limit", "1", "--start", "cart")
    short, full = mipforest(*words).err, mipforest(*words, "--verbose").err
    assert "(auto: the exact tree searches do not take this problem; --verbose says why)" in short
    assert "routing does not take this problem: variant 'paper' has constants" in full
