"""Bad input: exit code, one clear message, no traceback, and with ``--json`` one object."""

import os
import threading

import pytest
from small_run import SMALL

from mipforest.cli.errors import _leave
from mipforest.solvers import worker

pytestmark = pytest.mark.usefixtures("few_penalties")

NO_MODEL = ("solve", "--depth", "1", "--data", "iris")
NO_DATA = ("solve", "--model", "margot", "--depth", "1")

#: Command line, exit code, words of the message.
BAD = [
    (("sovle",), 2, ["'sovle'", "'solve'"]),
    (("solve", "--modle", "margot"), 2, ["--modle", "--model"]),
    (("solve",), 2, ["--model", "mipforest solve --help"]),
    ((*NO_MODEL, "--model", "margott"), 2, ["'margott'", "'margot'"]),
    ((*NO_DATA, "--data", "irs"), 2, ["'irs'", "'iris'"]),
    ((*NO_DATA, "--data", "synthetic:4-partition"), 2, ["4-partitions"]),
    ((*NO_DATA, "--data", "absent.csv"), 2, ["no file absent.csv"]),
    ((*NO_DATA, "--data", "diabetes"), 2, ["regression", "--task classification"]),
    ((*NO_DATA, "--data", "iris"), 2, ["3 classes", "--positive CLASS"]),
    ((*NO_DATA, "--data", "iris", "--positive", "setoza"), 2, ["'setoza'", "'setosa'"]),
    ((*SMALL, "--target", "x"), 2, ["fixed target"]),
    ((*SMALL, "--solver", "higs"), 2, ["'higs'", "highs"]),
    ((*SMALL, "--start", "svm-pth"), 2, ["'svm-pth'", "'svm-path'"]),
    ((*SMALL, "--start", "absent.json"), 2, ["absent.json"]),
    ((*SMALL, "--variant", "valdi"), 2, ["'valdi'", "'valid'"]),
    ((*SMALL, "--param", "epsilom=1"), 2, ["'epsilom'", "'epsilon'"]),
    ((*SMALL, "--param", "C=-1"), 2, ["C", "-1", "> 0"]),
    ((*SMALL, "--param", "C=nan"), 2, ["C", "nan"]),
    ((*SMALL, "--param", "C=many"), 2, ["'many'"]),
    ((*SMALL, "--param", "C=1,2,3,4"), 2, ["4 values"]),
    ((*SMALL, "--param", "C"), 2, ["NAME=VALUE"]),
    ((*SMALL, "--param", "C=1", "--param", "C=2"), 2, ["twice"]),
    ((*SMALL, "--depth", "0"), 2, ["depth", "0"]),
    ((*SMALL, "--depth", "12"), 2, ["1 to 10", "12"]),
    ((*SMALL, "--depth", "two"), 2, ["--depth"]),
    ((*SMALL, "--time-limit", "-1"), 2, ["--time-limit"]),
    ((*SMALL, "--time-limit", "nan"), 2, ["time"]),
    ((*SMALL, "--gap", "-0.1"), 2, ["--gap"]),
    ((*SMALL, "--threads", "0"), 2, ["--threads"]),
    ((*SMALL, "--seed", "-1"), 2, ["--seed"]),
    ((*SMALL, "--scaling", "minmx"), 2, ["minmax"]),
    ((*SMALL, "--test-size", "1.5"), 2, ["1.5", "0.2"]),
    ((*SMALL, "--test-size", "0.2", "--test", "x.csv"), 2, ["keep one"]),
    ((*SMALL, "--test", "absent.csv"), 2, ["absent.csv"]),
    ((*SMALL, "--solver-option", "threads"), 2, ["NAME=VALUE"]),
    ((*SMALL, "--time-limit", "1", "--solver-option", "mip_rel_gab=1"), 2, ["mip_rel_gab"]),
    (("show", "absent"), 2, ["absent", "does not exist"]),
    (("predict", "absent", "x.csv"), 2, ["absent"]),
    (("plot", "absent"), 2, ["absent"]),
    (("models", "margott"), 2, ["'margot'"]),
    (("check", "absent.mps", "x.sol"), 2, ["absent.mps"]),
    (("check", "instance.txt", "x.sol"), 2, [".mps", ".lp"]),
    (("export", *NO_DATA[1:], "--data", "iris", "-o", "x.txt"), 2, [".mps"]),
    (("export", *NO_DATA[1:], "--data", "iris", "-o", "absent/x.mps"), 2, ["absent"]),
]


@pytest.mark.parametrize(("arguments", "code", "words"), BAD, ids=[" ".join(line[0][-2:]) for line in BAD])
def test_bad_input_has_one_clear_message(mipforest, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    done = mipforest(*arguments)
    assert done.code == code
    assert done.out == ""
    message = done.err.splitlines()[-1]
    assert message.startswith("error: ")
    assert "Traceback" not in done.err
    assert "internal error" not in done.err
    for word in words:
        assert word in message
    as_json = mipforest(*arguments, "--json")
    assert as_json.code == as_json.json["exit_code"] == code
    assert "error: " + as_json.json["error"] == message
    assert as_json.json["kind"]
    assert list(tmp_path.iterdir()) == []


BROKEN = {
    "empty": "",
    "header only": "a,b,target\n",
    "ragged": "a,b,target\n1,2,x\n1,2,3,y\n",
    "one class": "a,target\n1,x\n2,x\n",
    "missing": "a,target\n1,x\n,y\n",
    "no target": "a,b\n1,2\n2,1\n",
    "not text": "a,target\n\udcff\udcfe,x\n",
    "no header": "1,2\n3,4\n",
    "twice the same column": "a,a,target\n1,2,x\n3,4,y\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_csv_is_refused(mipforest, tmp_path, kind):
    path = tmp_path / "broken.csv"
    path.write_text(BROKEN[kind], errors="surrogateescape")
    done = mipforest(*NO_DATA, "--data", path)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    assert "broken.csv" in done.err


def test_rows_with_gaps_can_be_dropped(mipforest, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,target\n1,x\n2,x\n,y\n4,y\n5,y\n")
    refused = mipforest(*NO_DATA, "--data", path)
    assert "--missing drop" in refused.err
    done = mipforest(*NO_DATA, "--data", path, "--missing", "drop", "--json", "--time-limit", 1)
    assert done.code == 0
    assert done.json["data"]["n"] == 4


def test_a_bug_shows_its_traceback_and_exits_with_1(mipforest, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("mipforest.runs.DataSource.load", broken)
    done = mipforest(*SMALL)
    assert done.code == 1
    assert "Traceback" in done.err
    assert "please report" in done.err


def test_out_of_memory_is_told(mipforest, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("mipforest.runs.DataSource.load", greedy)
    done = mipforest(*SMALL)
    assert done.code == 3
    assert "out of memory" in done.err


def test_ctrl_c_before_the_solve_is_exit_code_130(mipforest, monkeypatch, tmp_path):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mipforest.runs.DataSource.load", interrupted)
    done = mipforest(*SMALL, "--out", tmp_path / "run")
    assert done.code == 130
    assert done.err == "error: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_a_licence_that_does_not_suffice_is_exit_code_4(mipforest, monkeypatch):
    from mipforest.errors import LicenseLimit

    def refuse(*_: object, **__: object) -> None:
        raise LicenseLimit("2 412 variables, the licence takes 2 000")

    monkeypatch.setattr("mipforest.problem.problem.Problem.solve", refuse)
    done = mipforest(*SMALL, "--json")
    assert done.code == 4
    assert done.json["kind"] == "LicenseLimit"


def test_options_are_refused_before_anything_is_prepared(mipforest, monkeypatch):
    monkeypatch.setattr("mipforest.problem.formulation.Formulation.build", None)
    for solver in ("highs", "auto"):
        done = mipforest(*SMALL, "--solver", solver, "--solver-option", "mip_rel_gab=1")
        assert done.code == 2
        assert "'mip_rel_gab'" in done.err


def test_infeasible_is_exit_code_3(mipforest, monkeypatch):
    from mipforest.problem.formulation import Formulation

    original = Formulation.build

    def impossible(self, data, depth, **within):
        problem = original(self, data, depth, **within)
        problem.model.add("impossible", problem.model["z"][0].sum() >= 2)
        return problem

    monkeypatch.setattr(Formulation, "build", impossible)
    done = mipforest(*SMALL, "--variant", "paper", "--time-limit", "10", "--start", "none", "--json")
    assert done.code == 3
    assert done.json["status"] == "infeasible"
    assert "impossible: " in done.json["conflict"]
    told = mipforest(*SMALL, "--variant", "paper", "--time-limit", "10", "--start", "none").out
    assert "infeasible" in told
    assert "Conflict" in told


def test_a_process_does_not_wait_for_a_solver_that_was_left_behind(monkeypatch, capfd):
    """Its thread may take minutes, and an interpreter that ended with it would end by a signal."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, args=(20,), name=worker.THREAD_NAME, daemon=True)
    thread.start()
    ends = []

    def end(code):
        ends.append(code)
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    print("the result")
    with pytest.raises(SystemExit):
        _leave(3)
    release.set()
    thread.join()
    with pytest.raises(SystemExit):
        _leave(2)
    assert ends == [3]
    assert capfd.readouterr().out == "the result\n"
