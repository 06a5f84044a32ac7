"""What happens to real processes: Ctrl-C, kill, full disks, pipes."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_processes import start_process

#: One run of the solver, not many short ones as with tangents.
ONE_LONG_RUN = (
    "solve",
    "--model",
    "oct",
    "--variant",
    "paper",
    "--depth",
    "3",
    "--data",
    "wine",
    "--start",
    "none",
    "--solver",
    "highs",
)

LONG = (
    *("solve", "--model", "margot", "--depth", "2", "--param", "C=10", "--data", "synthetic:4-partitions"),
    *("--solver", "highs"),
)


def wait_for_solver(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until the solver writes its log."""
    wait_for_announcement(process)
    while process.poll() is None:
        logs = list(folder.glob(".run.*.part/solver.log"))
        if logs and logs[0].stat().st_size > 0:
            return
        time.sleep(0.02)


def wait_for_announcement(process: subprocess.Popen[str]) -> None:
    """Wait until the solve begins: its first steps are not the solver's."""
    assert process.stderr is not None
    assert process.stderr.readline().startswith("solving")


@pytest.mark.parametrize(
    ("number", "late"),
    [
        pytest.param(signal.SIGINT, False, marks=pytest.mark.slow),  # as test_a_terminal_shows_live_progress
        (signal.SIGTERM, True),
    ],
)
def test_a_stopped_run_keeps_the_incumbent(tmp_path, number, late):
    process = start_process(*LONG, "--time-limit", 60, "--out", "run", cwd=tmp_path)
    wait_for_solver(process, tmp_path) if late else wait_for_announcement(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["status"] == "interrupted"
    assert result["verified"] is True
    assert "stopped by the user" in out
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow  # a kill: test_campaign_kill
def test_a_killed_run_leaves_nothing_and_does_not_block_the_next(mipforest, tmp_path):
    process = start_process(*LONG, "--time-limit", 60, "--out", "run", cwd=tmp_path)
    wait_for_solver(process, tmp_path)
    process.kill()
    process.communicate()
    assert not (tmp_path / "run").exists()
    assert len(list(tmp_path.glob(".run.*.part"))) == 1
    again = mipforest(*LONG, "--time-limit", 0, "--out", tmp_path / "run")
    assert again.code == 0, again.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow  # as above, of a search
def test_a_killed_search_leaves_no_half_certificate_and_does_not_block_the_next(
    mipforest, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    search = [*LONG[:-1], "routing", "--threads", 1, "--certificate", "proof.gz", "--out", "run"]
    process = start_process(*search, "--time-limit", 60, cwd=tmp_path)
    wait_for_announcement(process)
    while process.poll() is None and not any(entry.is_file() for entry in tmp_path.glob(".*.part")):
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert all(entry.match(".*.part") for entry in tmp_path.iterdir())
    again = mipforest(*search, "--time-limit", 1)
    assert again.code == 0, again.err
    assert json.loads((tmp_path / "run" / "result.json").read_text())["verified"] is True
    assert mipforest("certify", "proof.gz").code == 0


def test_files_that_cannot_grow_leave_no_half_written_run(mipforest, tmp_path):
    _, most = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, most))
    try:
        done = mipforest(*LONG, "--time-limit", 0, "--out", tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.code == 2, done.err
    assert done.err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.err
    assert "objective" in done.out
    assert json.loads(done.out.partition("would have been:")[2])["depth"] == 2
    assert list(tmp_path.iterdir()) == []


#: Runs the command line where scikit-learn cannot be imported.
WITHOUT_SCIKIT_LEARN = """
import sys
sys.modules["sklearn"] = None
from mipforest.cli.main import run
run()
"""


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path):
    """Nor does a list wait for scikit-learn, which takes longer to import than all else."""
    process = start_process("models", cwd=tmp_path, program=("-c", WITHOUT_SCIKIT_LEARN))
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 141


def test_a_terminal_shows_live_progress(tmp_path):
    """In a pseudo-terminal: incumbent, bound, gap and time left, redrawn."""
    command = [sys.executable, "-m", "mipforest", *LONG, "--time-limit", "60"]
    main, other = os.openpty()
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=other)
    os.close(other)
    shown, stopped = b"", False
    try:
        while block := os.read(main, 1 << 16):
            shown += block
            if shown.count(b"incumbent") > 5 and not stopped:
                process.send_signal(signal.SIGINT)
                stopped = True
    except OSError:  # Linux ends the reading of a pseudo-terminal whose other side is closed so.
        pass
    finally:
        os.close(main)
    assert process.wait(timeout=30) == 0, shown.decode()[-3000:]
    text = shown.decode()
    for word in ("incumbent", "bound", "gap", "nodes", "s left", "Ctrl-C"):
        assert word in text
    assert text.count("incumbent") > 5


#: Runs the command line with a solver that does not hear of Ctrl-C, as one in a long step: what it is replied is lost.
DEAF = """
from types import SimpleNamespace
from mipforest.solvers.highs import HighsSession
heard = HighsSession._callback
def deaf(self, kind, message, state, reply, data):
    heard(self, kind, message, state, SimpleNamespace(), data)
HighsSession._callback = deaf
from mipforest.cli.main import run
run()
"""


@pytest.mark.slow  # the second Ctrl-C: solvers/test_worker.py
def test_a_second_ctrl_c_leaves_at_once_while_the_solver_runs_on(tmp_path):
    run = (*ONE_LONG_RUN, "--time-limit", "60", "--out", "run")
    process = start_process(*run, cwd=tmp_path, program=("-c", DEAF))
    wait_for_solver(process, tmp_path)
    for _ in range(2):
        time.sleep(0.3)  # in its work
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted; nothing was written" in err
    assert list(tmp_path.iterdir()) == []
