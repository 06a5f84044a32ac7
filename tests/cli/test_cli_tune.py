"""``mipforest tune``: files, output, exit codes, Ctrl-C."""

import errno
import json
import os
import signal
import tempfile

import pandas as pd
import pytest
from cli_processes import start_process
from typer.testing import CliRunner

from mipforest import load
from mipforest.cli.main import app
from mipforest.runs import RunFolder
from mipforest.trees import load as load_tree
from mipforest.tuning import tune, tune_batch
from mipforest.tuning.batch_plan import CurveWork

pytestmark = pytest.mark.usefixtures("few_penalties")

FILES = {"result.json", "tree.json", "tree.svg", "solver.log", "tuning.csv"}


@pytest.fixture(scope="module")
def options(people_csv):
    """A tuning of a moment: trees of one split."""
    data = ("--data", people_csv, "--target", "answer")
    return ("tune", "--model", "margot", "--depth", 1, *data, "--folds", 2, "--time-limit", 5)


def test_a_tuning_gives_a_run_folder_and_a_table(mipforest, options, people_csv, tmp_path):
    done = mipforest(*options, "--grid", "C=0.1,100", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == FILES
    expected = tune(
        "margot", load(people_csv, target="answer"), 1, grid={"C": [0.1, 100.0]}, folds=2, time_limit=5
    )
    table = pd.read_csv(tmp_path / "run" / "tuning.csv")
    assert list(table["C"]) == [0.1, 100.0]
    assert list(table["validation_mean"]) == pytest.approx(list(expected.table["validation_mean"]))
    assert list(table["chosen"]) == [row == expected.chosen for row in range(2)]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["parameters"] == expected.parameters
    assert result["objective"] == pytest.approx(expected.result.objective)
    assert result["verified"] is True
    assert result["tuning"]["validation_mean"] == pytest.approx(
        expected.table.iloc[expected.chosen]["validation_mean"]
    )
    assert result["options"]["grid"] == {"C": [0.1, 100.0]}
    assert load_tree(tmp_path / "run" / "tree.json").depth == 1
    assert "2 settings x 2 folds = 4 fits of at most 5.0 s each" in done.err
    for word in ("validation accuracy", "chosen", "Verified", "tuning.csv"):
        assert word in done.out


def test_the_run_can_be_used_and_replaced(mipforest, options, people_csv, tmp_path):
    out = tmp_path / "run"
    assert mipforest(*options, "--grid", "C=1", "--out", out, "--quiet").code == 0
    assert "Accuracy" in mipforest("show", out).out
    assert mipforest("predict", out, people_csv).code == 0
    assert "--force" in mipforest(*options, "--grid", "C=1", "--out", out).err
    assert mipforest(*options, "--grid", "C=1", "--out", out, "--force").code == 0


def test_json_is_one_object_with_the_table(mipforest, options):
    done = mipforest(*options, "--grid", "C=1,10", "--grid", "epsilon=0.01", "--rule", "sparse", "--json")
    assert done.code == 0
    tuning = done.json["tuning"]
    assert [(row["C"], row["epsilon"]) for row in tuning["settings"]] == [(1, 0.01), (10, 0.01)]
    assert tuning["rule"] == "sparse"
    assert tuning["fits"] == 4
    assert done.json["parameters"]["C"] == tuning["settings"][tuning["chosen"]]["C"]
    assert done.json["exit_code"] == 0


@pytest.mark.slow
def test_per_level_and_values_per_level(mipforest, options):
    deeper = (*options, "--depth", 2, "--time-limit", 0)
    # Counted before the first fit; test_tune fits them.
    per_level = ("--grid", "C=1,10", "--grid-per-level", "C", "--max-fits", 7)
    assert "4 settings" in mipforest(*deeper, *per_level).err
    hfs = mipforest(*deeper, "--model", "hfs-margot", "--grid", "B=1:2")
    assert hfs.code == 0
    assert "B=1,2" in hfs.out
    assert "1:2" in hfs.out


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--grid", "c=1"), "no parameter 'c' (did you mean 'C'?)"),
        (("--grid", "C"), "NAME=VALUE"),
        (("--grid", "C=1,x"), "'x'"),
        (("--grid", "C=1,0"), "> 0"),
        (("--grid", "C=1,1"), "twice"),
        (("--grid", "C=1,2,3", "--max-fits", 5), "3 settings on 2 folds are 6 fits"),
        (("--grid", "C=1,2,3", "--max-fits", 5), "--max-fits 6"),
        (("--grid", "C=1", "--grid-per-level", "epsilon"), "no values for it"),
        (("--grid", "C=1", "--folds", 1), "--folds"),
        (("--grid", "C=1", "--folds", 20), "20 folds need 20 samples of every class"),
        (("--grid", "C=1", "--score", "r2"), "for a regression"),
        (("--grid", "C=1", "--rule", "fewest"), "--rule"),
        (("--grid", "C=1", "--jobs", 2, "--dask", "tcp://127.0.0.1:1"), "keep one"),
        ((), "--grid"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line(mipforest, options, tmp_path, extra, message):
    done = mipforest(*options, *extra, "--out", tmp_path / "run")
    assert done.code == 2
    assert message in done.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_no_cluster_at_the_address(mipforest, options, monkeypatch):
    monkeypatch.setattr("mipforest.tuning.cross_validation.DaskCluster.__init__.__defaults__", (0.5,))
    done = mipforest(*options, "--grid", "C=1", "--dask", "tcp://127.0.0.1:1", "--json")
    assert done.code == 2
    assert done.json["kind"] == "ClusterError"
    assert "no Dask scheduler answers at tcp://127.0.0.1:1 within 0.5 s" in done.json["error"]


def test_a_missing_solver_is_told(mipforest, options):
    assert mipforest(*options, "--grid", "C=1", "--solver", "pyomo:nothing").code == 4


@pytest.mark.slow  # the table that is kept: test_tune; Ctrl-C: test_cli_processes
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished(tmp_path, jobs):
    slow = ("--data", "synthetic:4-partitions", "--depth", 2, "--grid", "C=1,1000", "--time-limit", 1)
    process = start_process(
        "tune", "--model", "margot", *slow, "--folds", 2, "--jobs", jobs, "--out", "run", cwd=tmp_path
    )
    assert process.stderr.readline().startswith("tuning margot")
    assert process.stderr.readline().startswith("2 of 4 fits done; C=1: ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err, err
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    assert [entry.name for entry in (tmp_path / "run").iterdir()] == ["tuning.csv"]
    table = pd.read_csv(tmp_path / "run" / "tuning.csv")
    assert list(table["finished"]) == [True, False]
    assert list(table["folds_done"]) == [2, 0]
    assert not table["chosen"].any()
    assert "stopped with 2 of 4 fits done" in out


def test_a_full_disk_keeps_tree_and_table_elsewhere(tmp_path, monkeypatch):
    def full(folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RunFolder, "commit", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = ("--data", "synthetic:tree,n=24,p=2,depth=1", "--grid", "alpha=0,0.1", "--folds", "2")
    done = CliRunner().invoke(
        app, ["tune", "--model", "oct", "--depth", "1", *data, "--out", str(tmp_path / "run")]
    )
    assert done.exit_code == 2
    assert "its files are in" in done.output
    (kept,) = tmp_path.glob("mipforest-run-*")
    assert {"tree.json", "result.json", "tuning.csv"} <= {entry.name for entry in kept.iterdir()}


# ---------------------------------------------------------------------- --method batch


@pytest.fixture
def batch():
    return ("tune", "--method", "batch", "--model", "oct", "--data", "wine", "--folds", 2, "--starts", 10)


@pytest.mark.slow
def test_a_batch_chooses_depth_and_cost(mipforest, batch, tmp_path):
    done = mipforest(*batch, "--depth", 2, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == FILES
    expected = tune_batch("oct", load("wine"), 2, folds=2, starts=10)
    table = pd.read_csv(tmp_path / "run" / "tuning.csv")
    assert list(table.columns[:3]) == ["depth", "alpha", "chosen"]
    assert list(table["alpha"]) == pytest.approx(list(expected.table["alpha"]))
    assert list(table["chosen"]) == [row == expected.chosen for row in range(2)]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["parameters"] == expected.parameters
    assert result["objective"] == pytest.approx(expected.result.objective)
    assert result["tuning"]["depth"] == expected.depth
    assert result["options"]["method"] == "batch"
    for word in ("validation error", "chosen", "Verified"):
        assert word in done.out
    assert "10 trees for each depth and of 2 folds" in done.err


def test_options_of_the_other_method_are_refused(mipforest, batch, options):
    assert "--score is not for --method batch" in mipforest(*batch, "--depth", 1, "--score", "accuracy").err
    assert "--validation is not for --method grid" in mipforest(*options, "--validation", 0.3).err
    refused = mipforest(*options)
    assert refused.code == 2
    assert "give --grid NAME=VALUE,VALUE, several depths, or --method batch" in refused.err


def test_a_batch_that_is_stopped_keeps_its_curves(mipforest, batch, tmp_path, monkeypatch):
    done = CurveWork.done

    def stopped(work, *given):
        if work.setting == 1:
            raise KeyboardInterrupt
        return done(work, *given)

    monkeypatch.setattr(CurveWork, "done", stopped)
    ended = mipforest(*batch, "--depth", 2, "--out", tmp_path / "run")
    assert ended.code == 130
    assert "stopped with 2 of 4 curves done" in ended.out
    assert list(pd.read_csv(tmp_path / "run" / "tuning.csv")["folds_done"]) == [2, 0]
