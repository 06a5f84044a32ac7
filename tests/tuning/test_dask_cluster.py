"""The same tuning on a Dask cluster of real processes, one of which is killed on the way."""

import signal
import socket
import sys
from dataclasses import dataclass
from importlib.util import find_spec

import pandas as pd
import pytest
from dask_processes import Cluster

from mipforest import cluster as module
from mipforest import get_formulation, load
from mipforest.tuning import ClusterError, FitError, Plan, Records, cross_validate, tune, tune_batch
from mipforest.tuning.cross_validation import DaskCluster

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")

SMALL = {"grid": {"C": [0.1, 1.0, 10.0, 100.0]}, "folds": 3}


@pytest.fixture(scope="module")
def versicolor():
    return load("iris").binarise(["versicolor"])


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def workers(scheduler):
    """Two workers, one of which may be killed; they end with the first test that needs a cluster without."""
    started = [scheduler.add_worker(), scheduler.add_worker()]
    scheduler.wait_for_workers(2)
    return started


@pytest.fixture
def cluster(scheduler):
    """A cluster without workers; those that a test adds end with it."""
    scheduler.end_workers()
    yield scheduler
    scheduler.end_workers()


def without_times(table):
    return table.loc[:, ~table.columns.str.contains(r"seconds$")]


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(scheduler, workers, versicolor):
    plan = Plan.of("margot", versicolor, 1, **SMALL)
    records = Records(plan)
    seen = []

    def kill_one(fit):
        seen.append((fit.setting, fit.fold))
        if len(seen) == 4:
            workers[0].send_signal(signal.SIGKILL)

    with DaskCluster(plan.folds, scheduler.address) as executor:
        cross_validate(plan, executor, records, kill_one)
    assert workers[0].wait(timeout=30) == -signal.SIGKILL
    assert sorted(seen) == [(setting, fold) for setting in range(4) for fold in range(3)]
    serial = tune("margot", versicolor, 1, **SMALL)
    pd.testing.assert_frame_equal(without_times(records.table()), without_times(serial.table))


@dataclass(frozen=True, kw_only=True)
class Failing(get_formulation("margot")):
    """Fails at one penalty."""

    def bind(self, data, topology, budget=None):
        if self.C == 10.0:
            raise RuntimeError("no luck")
        return super().bind(data, topology, budget)


@pytest.mark.slow
def test_an_error_of_a_fit_comes_back_with_what_was_finished(scheduler, workers, versicolor):
    with pytest.raises(FitError, match="no luck; in the fit of margot with C=10") as caught:
        tune(Failing, versicolor, 1, grid={"C": [1.0, 10.0]}, folds=2, dask=scheduler.address)
    assert caught.value.table["finished"].iloc[0]


@pytest.mark.slow  # workers load the compiled search
def test_pruning_curves_of_a_cluster_are_those_of_this_process(scheduler, workers):
    wine = load("wine")
    here = tune_batch("oct", wine, 2, folds=2, starts=10)
    there = tune_batch("oct", wine, 2, folds=2, starts=10, dask=scheduler.address)
    pd.testing.assert_frame_equal(without_times(there.table), without_times(here.table))
    assert (there.result.tree.w == here.result.tree.w).all()


@pytest.mark.slow  # a cluster of its own; the other refusals are below
def test_a_scheduler_without_workers_is_told(cluster):
    with pytest.raises(ClusterError, match=r"no worker for 0\.5 s; start some with 'dask worker tcp://"):
        DaskCluster((), cluster.address, timeout=0.5)


@pytest.mark.slow  # a worker of its own
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("raise metadata.PackageNotFoundError(name)", r"worker tcp://.* has no mipforest; install version"),
        ("return '0.0.1'", r"worker tcp://.* has mipforest 0\.0\.1, this is .*; install the same version"),
    ],
)
def test_a_worker_with_another_mipforest_or_none_is_told(cluster, tmp_path, answer, message):
    preload = tmp_path / "another.py"
    preload.write_text(
        "import importlib.metadata as metadata\n"
        f"def version(name):\n    {answer}\n"
        "metadata.version = version\n"
    )
    cluster.add_worker("--preload", preload)
    with pytest.raises(ClusterError, match=message):
        DaskCluster((), cluster.address, timeout=60)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "nonsense", "ftp://127.0.0.1"])
def test_no_scheduler_at_the_address_is_told(address):
    with pytest.raises(ClusterError, match="no Dask scheduler answers at"):
        DaskCluster((), address, timeout=0.5)


def test_a_server_that_says_nothing_is_told():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(ClusterError, match=r"no Dask scheduler answers at .* within 0\.5 s; start one"):
            DaskCluster((), address, timeout=0.5)


def test_missing_dask_is_told(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'mipforest\[dask\]'"):
        DaskCluster((), "tcp://127.0.0.1:1")
