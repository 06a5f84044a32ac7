"""Processes that are killed, interrupted, or work on the same results at the same time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from campaign_suites import PAIR, TINY, campaign_of

from mipforest.campaigns import Campaign, Counts, Store, run
from mipforest.campaigns.experiments import ExperimentLocks, PlannedExperiment
from mipforest.campaigns.report import results_table

#: Columns that differ from run to run of the same cell.
TIMINGS = (
    "finished",
    "load_average",
    "seconds",
    "prepare_seconds",
    "build_seconds",
    "wall_seconds",
    "cpu_seconds",
)


def start(campaign: Campaign, *options: object) -> subprocess.Popen[str]:
    """Run a campaign in a process of its own; a line of output per finished cell."""
    files = (campaign.suite_path, "--results", campaign.results)
    return subprocess.Popen(
        [sys.executable, "-m", "mipforest", "campaign", "run", *map(str, (*files, *options))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def kill_after(process: subprocess.Popen[str], lines: int, delay: float) -> list[str]:
    """Read that many lines, wait, and kill the process; give all lines it wrote."""
    assert process.stdout is not None
    read = [process.stdout.readline() for _ in range(lines)]
    time.sleep(delay)
    process.kill()
    rest, _ = process.communicate()
    return [*read, *rest.splitlines(keepends=True)]


def cells_named(lines: list[str]) -> list[str]:
    """Give the cells that whole lines of output name."""
    return [
        line.rpartition(" seed ")[0] + line.split(" seed ")[1].split(":")[0]
        for line in lines
        if " seed " in line
    ]


def cell_of(planned: PlannedExperiment) -> str:
    """Give a cell as :func:`cells_named` does."""
    experiment = planned.experiment
    return f"{planned.setting}, {experiment.data_label},{experiment.settings.seed}"


def final_table(campaign: Campaign) -> pd.DataFrame:
    """Give the final table without what differs from run to run: times, and names of environments."""
    with Store(campaign.results) as store:
        return results_table(store).drop(columns=[*TIMINGS, "cell"])


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])  # again and again: as once
def test_a_campaign_that_is_killed_ends_with_the_same_table(tmp_path, undisturbed, kills):
    campaign = campaign_of(tmp_path, TINY)
    rng = random.Random(20)
    lines = []
    for _ in range(kills):
        lines += kill_after(start(campaign), rng.randint(1, 4), rng.uniform(0, 0.15))
    with Store(campaign.results) as store:
        finished = len(store.rows("SELECT * FROM results"))
    assert kills <= finished < 20, "the last kill came after the end: nothing was tested"
    named = cells_named(lines)
    counts = run(campaign, finished=lambda planned, *_: named.append(cell_of(planned)))
    assert counts == Counts(done=18, failed=2, waiting=0)
    assert len(named) == len(set(named)), "a cell was run twice"
    # A process may be killed between recording a cell and telling so, at most once per kill.
    assert 20 - kills <= len(named) <= 20
    pd.testing.assert_frame_equal(final_table(campaign), final_table(undisturbed))


@pytest.mark.slow  # by the lock that is tested below, as the campaign that is killed
def test_processes_share_out_the_cells(tmp_path, undisturbed):
    campaign = campaign_of(tmp_path, TINY.replace("1, 2, 3, 8]", "1]"))
    process = start(campaign, "--jobs", 2)
    assert process.stdout is not None
    named = cells_named([process.stdout.readline()])
    run(campaign, finished=lambda planned, *_: named.append(cell_of(planned)))
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    named += cells_named(out.splitlines(keepends=True))
    assert len(named) == len(set(named)) == 8
    found, expected = final_table(campaign), final_table(undisturbed)
    expected = expected[expected["seed"] <= 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected[found.columns], check_dtype=False)


@pytest.mark.slow  # Ctrl-C of the command line: test_a_terminal_shows_live_progress
@pytest.mark.parametrize("jobs", [1, 2])  # two also have a parent that waits for them
def test_ctrl_c_stops_and_says_how_to_go_on(tmp_path, jobs):
    # A minute of work for either cell.
    text = PAIR.replace('model = "oct"\ndepth = 1', 'model = "margot"\ndepth = 3').replace(
        "depth=1,n=24", "depth=2,n=300"
    )
    text = text.replace("threads = 1", 'threads = 1\nsolvers = ["highs"]')
    campaign = campaign_of(tmp_path, text)
    process = start(campaign, "--jobs", jobs)
    deadline = time.monotonic() + 60
    while not campaign.results.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    # Where Ctrl-C met an import, CPython ends itself by the signal after all: shells report 130 for both.
    assert process.returncode in (130, -signal.SIGINT), errors
    assert "the same command goes on" in out
    assert "Traceback" not in errors
    with Store(campaign.results) as store:
        assert store.rows("SELECT * FROM results") == []


HOLD = """
import sys
from pathlib import Path
from mipforest.campaigns.experiments import ExperimentLocks
locks = ExperimentLocks(Path(sys.argv[1]))
with locks.held(3) as locked:
    print(locked, flush=True)
    sys.stdin.read()
"""


def test_a_lock_excludes_other_processes_until_its_own_is_killed(tmp_path: Path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    locks = ExperimentLocks(path)
    with locks.held(3) as locked, locks.held(4) as other:
        assert (locked, other) == (False, True)
    holder.kill()
    holder.communicate()
    with locks.held(3) as locked:
        assert locked
    locks.close()
