"""Running a campaign: every cell once, by as many processes as there are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

from mipforest.campaigns.cells import Planned, plan
from mipforest.campaigns.measured import Measured, environment
from mipforest.campaigns.solve import data_path, solve_cell
from mipforest.campaigns.store import Counts, Store
from mipforest.campaigns.suite import Suite, read_suite
from mipforest.errors import CampaignError, did_you_mean

#: Called with a cell and what came out of it, after it was recorded.
Finished = Callable[[Planned, Measured], None]


@dataclass(frozen=True)
class Campaign:
    """A suite, its results file, and which of its cells to run.

    Attributes
    ----------
    suite_path, results
        The files.
    folder
        Where files of data are, or ``None``.
    only
        Labels of models, data or solvers, or whole settings, to run; all if empty. Of several labels of one
        kind any counts; of several kinds all must fit.
    time_limit
        Seconds that count instead of the suite's own limits.
    """

    suite_path: Path
    results: Path
    folder: Path | None = None
    only: tuple[str, ...] = ()
    time_limit: float | None = None

    def read(self) -> tuple[Suite, tuple[Planned, ...], tuple[Planned, ...]]:
        """Read the suite; give it, all cells, and the chosen ones.

        Raises
        ------
        CampaignError
            If the suite is malformed, or there is nothing of a chosen name.
        UnknownFormulation, SolverUnavailable
            If a model or solver is unknown or missing.
        """
        suite = read_suite(self.suite_path)
        planned = plan(suite, time_limit=self.time_limit)
        return suite, planned, _chosen(planned, self.only)


def _chosen(planned: tuple[Planned, ...], only: Collection[str]) -> tuple[Planned, ...]:
    kinds: tuple[Callable[[Planned], str], ...] = (
        lambda entry: entry.cell.model_label,
        lambda entry: entry.cell.data_label,
        lambda entry: entry.cell.solver,
        lambda entry: entry.setting,
    )
    known = {kind(entry) for kind in kinds for entry in planned}
    for name in only:
        if name not in known:
            raise CampaignError(
                f"nothing in the suite is called {name!r:.60}{did_you_mean(name, known)}; "
                "--only takes labels of models, data or solvers"
            )
    for kind in kinds:
        wanted = {name for name in only if name in {kind(entry) for entry in planned}}
        planned = tuple(entry for entry in planned if not wanted or kind(entry) in wanted)
    return planned


def run(
    campaign: Campaign, *, jobs: int = 1, retry_failed: bool = False, finished: Finished | None = None
) -> Counts:
    """Run the cells that have no result yet.

    Any number of processes may run the same campaign at once, and any may be killed at any time.

    Parameters
    ----------
    campaign
        What to run.
    jobs
        Number of processes, at least 1; with 1, this process runs the cells itself.
    retry_failed
        Whether to run cells again that failed before.
    finished
        Called after each cell; from another process if there are several jobs, so it must be a function of a
        module.

    Returns
    -------
    Counts
        How many of the chosen cells are done, have failed, and are not finished: those another process runs.

    Raises
    ------
    CampaignError
        If the suite, the results file or the data cannot be used, or a process ended by itself.
    UnknownFormulation, SolverUnavailable
        If a model or solver is unknown or missing.
    KeyboardInterrupt
        At Ctrl-C. What was running then is run again next time.
    """
    suite, planned, chosen = campaign.read()
    for entry in chosen:
        data_path(entry.cell.data, campaign.folder)
    with Store(campaign.results, create=True) as store:
        store.register(suite, planned)
        numbers = store.numbers({entry.cell.key for entry in chosen}).values()
        if retry_failed:
            store.forget_failures(numbers)
        if jobs == 1:
            work(campaign, stopping=_never, finished=finished)
        else:
            _run_processes(campaign, min(jobs, len(chosen)), finished)
        return store.counts(numbers)


def work(campaign: Campaign, *, stopping: Callable[[], bool], finished: Finished | None) -> None:
    """Run the cells of a registered campaign that are free, one after the other, until none is left.

    Parameters
    ----------
    campaign, finished
        As for :func:`run`.
    stopping
        Asked before and during each cell whether to stop.
    """
    suite, _, chosen = campaign.read()
    machine = environment()
    with Store(campaign.results) as store:
        numbers = store.numbers({entry.cell.key for entry in chosen})
        claims = Claims(campaign.results.with_name(f"{campaign.results.name}.lock"))
        try:
            for entry in chosen:
                if stopping():
                    raise KeyboardInterrupt
                number = numbers.get(entry.cell.key)
                if number is None:
                    raise CampaignError(f"{campaign.suite_path} changed while it was read; run it again")
                # Asked first to spare the lock, and again under it: another process may just have finished.
                if store.is_finished(number):
                    continue
                with claims.held(number) as claimed:
                    if not claimed or store.is_finished(number):
                        continue
                    measured = _measured(entry, campaign.folder, store, stopping)
                    store.record(number, suite.sha256, machine, measured)
                if finished is not None:
                    finished(entry, measured)
        finally:
            claims.close()


def _measured(entry: Planned, folder: Path | None, store: Store, stopping: Callable[[], bool]) -> Measured:
    cell = entry.cell
    try:
        return solve_cell(
            cell,
            folder,
            check_data=partial(store.check_data, cell.data_label, cell.seed),
            stopping=stopping,
        )
    except CampaignError:
        raise
    except Exception as error:
        # Whatever a model, a solver or its plug-in may raise: the other cells go on.
        return Measured.failed(error)


def _never() -> bool:
    return False


# ---------------------------------------------------------------------- several processes


def _run_processes(campaign: Campaign, jobs: int, finished: Finished | None) -> None:
    """Let several processes work; they share out the cells by their claims.

    The first Ctrl-C asks them to stop and waits until they have, the second ends them.
    """
    # Forked processes would share the locks of this one's threads, and solvers have threads.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    processes: list[BaseProcess] = [
        context.Process(target=_work_as_child, args=(campaign, os.getpid(), stop, finished))
        for _ in range(jobs)
    ]
    with _ctrl_c_ignored():
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
    if broken:
        raise CampaignError(
            f"{len(broken)} of {jobs} processes ended before the campaign did (exit code {broken[0]}); "
            "what they finished is kept, the same command goes on"
        )


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


# ---------------------------------------------------------------------- claims


class Claims:
    """Claims of this process on the cells of a results file.

    The system drops a lock when its process ends, however it ends: a killed process leaves nothing to wait for,
    and one that hangs, sleeps or holds up all its threads keeps its claim. Leases with a clock give neither.

    Parameters
    ----------
    path
        The lock file; made where it is missing, left where it is.

    Raises
    ------
    CampaignError
        If the system has no such locks.
    OSError
        If the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise CampaignError(
                "campaigns need file locks of POSIX systems, which this system lacks; "
                "run them on Linux, macOS or in WSL"
            ) from error
        self._fcntl = fcntl
        # Closing any descriptor of this file would drop all locks of the process: it is opened once.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        """Drop all claims."""
        os.close(self._file)

    @contextmanager
    def held(self, number: int) -> Iterator[bool]:
        """Claim a cell for the ``with`` block; gives ``False`` where another process has claimed it.

        Parameters
        ----------
        number
            The cell's number in the results file, at least 0.
        """
        claimed = self._claim(number)
        try:
            yield claimed
        finally:
            if claimed:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, number)

    def _claim(self, number: int) -> bool:
        try:
            self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # POSIX allows either to say that another has it
            return False
        return True
