"""Solvers that end their process: their cells fail, all others run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from campaign_suites import campaign_of
from dask_processes import Cluster

from mipforest.campaigns import Store

SUITE = """
name = "abort"
seeds = [2, 3]
time_limits = [20.0]
threads = 1
solvers = ["aborting", "aborting-here", "highs"]

[data.tree]
load = "synthetic:tree,depth=1,n=24,p=2"

[models.oct]
model = "oct"
depth = 1
"""

ENTRY_POINTS = """
[mipforest.solvers]
aborting = solvers.aborting:Aborting
aborting-here = solvers.aborting:AbortingHere
"""


@pytest.fixture
def environment(tmp_path):
    """Environment in which the two plug-ins are installed."""
    installed = tmp_path / "site" / "aborting-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: aborting\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(installed.parent), *sys.path])}


def run(campaign, environment, *options):
    command = ["campaign", "run", str(campaign.suite_path), "--results", str(campaign.results), *options]
    return subprocess.run(
        [sys.executable, "-m", "mipforest", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def states(campaign):
    """State and error of each cell, by its solver."""
    with Store(campaign.results) as store:
        rows = store.rows(
            "SELECT solver, state, error FROM results JOIN cells ON cells.number = results.cell"
        )
    return sorted((row["solver"], row["state"], row["error"] or "") for row in rows)


def check(found):
    assert [(solver, state) for solver, state, _ in found] == [
        *[("aborting", "failed")] * 2,
        *[("aborting-here", "failed")] * 2,
        *[("highs", "done")] * 2,
    ]
    assert all("was ended by SIGABRT" in error for solver, _, error in found if solver == "aborting")


@pytest.mark.slow
def test_two_processes_go_on_behind_cells_that_end_them(tmp_path, environment):
    campaign = campaign_of(tmp_path, SUITE)
    done = run(campaign, environment, "--jobs", "2")
    check(states(campaign))
    ended = [error for solver, _, error in states(campaign) if solver == "aborting-here"]
    assert all("2 processes ended with this cell" in error for error in ended)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_one_process_keeps_its_solvers_apart(tmp_path, environment):
    campaign = campaign_of(tmp_path, SUITE.replace('"aborting-here", ', ""))
    done = run(campaign, environment)
    assert [(solver, state) for solver, state, _ in states(campaign)] == [
        *[("aborting", "failed")] * 2,
        *[("highs", "done")] * 2,
    ]
    assert "Traceback" not in done.stderr


@pytest.mark.slow  # a cluster of its own
def test_a_cluster_goes_on_behind_cells_that_end_its_workers(tmp_path, environment, monkeypatch):
    monkeypatch.syspath_prepend(environment["PYTHONPATH"].partition(os.pathsep)[0])  # what the workers get
    campaign = campaign_of(tmp_path, SUITE)
    with Cluster(tmp_path) as cluster:
        for _ in range(10):  # without a nanny each death takes one away
            cluster.add_worker()
        cluster.wait_for_workers(10)
        run(campaign, environment, "--dask", cluster.address)
    check(states(campaign))
