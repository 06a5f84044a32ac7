"""Run a campaign: every experiment once, by as many processes as there are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from time import monotonic
from typing import Any

from mipforest.campaigns.campaign import Campaign
from mipforest.campaigns.experiment_result import ExperimentResult, data_path, environment, solve_experiment
from mipforest.campaigns.experiments import Experiment, PlannedExperiment
from mipforest.campaigns.store import Counts, Store
from mipforest.cluster import DiedWithTask, connected, explained
from mipforest.errors import CampaignError, SolverError
from mipforest.processes import safe_path

#: Processes that may end with an experiment until it counts as failed: one may have been killed for another reason.
MAX_ATTEMPTS = 2

#: What is said of an experiment with which that many processes ended.
ENDED_PROCESS = (
    "{} processes ended with this cell and gave no reason: native code that aborts, or too little memory"
)


@dataclass(frozen=True)
class CampaignProgress:
    """How far a campaign is.

    Attributes
    ----------
    counts
        Of the chosen experiments.
    seconds_left
        What the others will take if they last as long as those that were finished since this run began.
    """

    counts: Counts
    seconds_left: float


#: Called with an experiment, what came out of it, and how far the campaign is, after it was recorded.
Finished = Callable[[PlannedExperiment, ExperimentResult, CampaignProgress], None]


def run(
    campaign: Campaign,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    finished: Finished | None = None,
) -> Counts:
    """Run the experiments that have no result yet.

    Any number of processes may run the same campaign at once, and any may be killed at any time.

    Parameters
    ----------
    campaign
        What to run.
    jobs
        Number of processes, at least 1; with 1, this process runs the experiments itself.
    dask
        Address of a Dask cluster that runs the experiments, such as ``tcp://127.0.0.1:8786``; its workers have the
        folder of data under the same name.
    retry_failed
        Whether to run experiments again that failed before.
    finished
        Called after each experiment; from another process if there are several jobs, so it must be a function of a
        module.

    Returns
    -------
    Counts
        How many of the chosen experiments are done, have failed, and are not finished: those another process runs.

    Raises
    ------
    CampaignError
        If the suite, the results file or the data cannot be used, or a process ended by itself.
    ClusterError
        If the cluster cannot be used, or is lost.
    UnknownFormulation, SolverUnavailable
        If a model or solver is unknown or missing.
    KeyboardInterrupt
        At Ctrl-C. What was running then is run again next time.
    """
    suite, planned, chosen = campaign.read()
    for entry in chosen:
        data_path(entry.experiment.data, campaign.folder)
    with Store(campaign.results, create=True) as store:
        store.register(suite, planned)
        numbers = store.numbers({entry.experiment.key for entry in chosen}).values()
        if retry_failed:
            store.forget_failures(numbers)
        if dask is not None:
            _run_on_cluster(campaign, dask, finished)
        elif jobs == 1:
            work(campaign, stopping=_never, finished=finished)
        else:
            _run_processes(campaign, min(jobs, len(chosen)), finished)
        return store.counts(numbers)


def work(campaign: Campaign, *, stopping: Callable[[], bool], finished: Finished | None) -> None:
    """Run the experiments of a registered campaign that are free, one after the other, until none is left.

    Parameters
    ----------
    campaign, finished
        As for :func:`run`.
    stopping
        Asked before and during each experiment whether to stop.
    """
    suite, _, chosen = campaign.read()
    machine = environment()
    with Store(campaign.results) as store:
        numbers = campaign.numbers(store, chosen)
        progress = _progress_of(store, numbers)
        locks = campaign.locks()
        try:
            for entry, number in zip(chosen, numbers, strict=True):
                if stopping():
                    raise KeyboardInterrupt
                # Asked first to spare the lock, and again under it: another process may just have finished.
                if store.is_finished(number):
                    continue
                with locks.held(number) as locked:
                    if not locked or store.is_finished(number):
                        continue
                    known = partial(
                        store.check_data, entry.experiment.data_label, entry.experiment.settings.seed
                    )
                    if (ended := store.attempts(number)) >= MAX_ATTEMPTS:
                        result = ExperimentResult.failed(SolverError(ENDED_PROCESS.format(ended)))
                    else:
                        store.begin(number)
                        try:
                            result = _run_experiment(entry.experiment, campaign.folder, stopping, known)
                        except BaseException:
                            store.leave(number)
                            raise
                    store.record(number, suite.sha256, machine, result)
                if finished is not None:
                    finished(entry, result, progress())
        finally:
            locks.close()


def _progress_of(store: Store, numbers: Collection[int]) -> Callable[[], CampaignProgress]:
    """Return a function that says how far experiments are, and from the time since now, how long the others take."""
    numbers = frozenset(numbers)
    began, before = monotonic(), store.counts(numbers).waiting

    def progress() -> CampaignProgress:
        counts = store.counts(numbers)
        each = (monotonic() - began) / max(before - counts.waiting, 1)
        return CampaignProgress(counts, each * counts.waiting)

    return progress


def _run_experiment(
    experiment: Experiment,
    folder: Path | None,
    stopping: Callable[[], bool],
    check_data: Callable[[str], None],
) -> ExperimentResult:
    try:
        return solve_experiment(experiment, folder, check_data=check_data, stopping=stopping)
    except CampaignError:
        raise
    except Exception as error:
        # Whatever a model, a solver or its plug-in may raise: the other experiments go on.
        return ExperimentResult.failed(error)


def _never() -> bool:
    return False


# ---------------------------------------------------------------------- a Dask cluster


def _run_on_cluster(campaign: Campaign, address: str, finished: Finished | None) -> None:
    """Hand the free experiments to a cluster, and record what comes back, under this process' locks."""
    suite, _, chosen = campaign.read()
    folder = None if campaign.folder is None else campaign.folder.absolute()
    with ExitStack() as opened:
        client = opened.enter_context(connected(address))
        store = opened.enter_context(Store(campaign.results))
        numbers = campaign.numbers(store, chosen)
        progress = _progress_of(store, numbers)
        locks = campaign.locks()
        opened.callback(locks.close)
        pool = client.get_executor(pure=False)
        opened.callback(pool.shutdown, wait=False)
        under_way: dict[Future[tuple[Any, ExperimentResult]], tuple[PlannedExperiment, int]] = {}
        for entry, number in zip(chosen, numbers, strict=True):
            if opened.enter_context(locks.held(number)) and not store.is_finished(number):
                under_way[pool.submit(_experiment_there, entry.experiment, folder)] = entry, number
        for done in as_completed(under_way):
            entry, number = under_way[done]
            try:
                machine, result = done.result()
            except Exception as error:
                explanation = explained(error, "cell")
                if not isinstance(explanation, DiedWithTask):
                    raise explanation from error
                machine, result = environment(), ExperimentResult.failed(explanation)
            if result.values["state"] == "done":
                sha256 = str(result.values["data_sha256"])
                store.check_data(entry.experiment.data_label, entry.experiment.settings.seed, sha256)
            store.record(number, suite.sha256, machine, result)
            if finished is not None:
                finished(entry, result, progress())


def _experiment_there(experiment: Experiment, folder: Path | None) -> tuple[Any, ExperimentResult]:
    """Run an experiment on a worker; return the worker's environment, too."""
    return environment(), _run_experiment(experiment, folder, _never, lambda _: None)


# ---------------------------------------------------------------------- several processes


def _run_processes(campaign: Campaign, jobs: int, finished: Finished | None) -> None:
    """Let several processes work; they share out the experiments by their locks.

    The first Ctrl-C asks them to stop and waits until they have, the second ends them.
    """
    # Forked processes would share the locks of this one's threads, and solvers have threads.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    while True:
        before = _progress(campaign)
        processes: list[BaseProcess] = [
            context.Process(target=_work_as_child, args=(campaign, os.getpid(), stop, finished))
            for _ in range(jobs)
        ]
        with _ctrl_c_ignored(), safe_path():
            for process in processes:
                process.start()
        try:
            _join(processes)
        except KeyboardInterrupt:
            stop.set()
            try:
                _join(processes)
            except KeyboardInterrupt:
                for process in processes:
                    process.terminate()
                _join(processes)
            raise
        broken = [process.exitcode for process in processes if process.exitcode]
        if not broken:
            return
        # An experiment that ended its process is tried once more, then failed: the others go on.
        if _progress(campaign) == before:
            raise CampaignError(
                f"{len(broken)} of {jobs} processes ended before the campaign did (exit code {broken[0]}); "
                "what they finished is kept, the same command goes on"
            )


def _progress(campaign: Campaign) -> tuple[int, int]:
    """Return how many experiments have a result, and how many attempts at others ended without a word."""
    with Store(campaign.results) as store:
        return store.finished(), store.all_attempts()


def _join(processes: Collection[BaseProcess]) -> None:
    for process in processes:
        process.join()


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, from their first moment: a terminal sends it to all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work_as_child(campaign: Campaign, parent: int, stop: Event, finished: Finished | None) -> None:
    """Work until nothing is left, the process that started this one says so, or it has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(campaign, stopping=lambda: stop.is_set() or os.getppid() != parent, finished=finished)
    except KeyboardInterrupt:
        return
    except CampaignError as error:
        # The parent sees the exit code only.
        raise SystemExit(f"error: {error}") from error
