"""Doing the fits of a plan, in an order that does not depend on where they are done.

A fit needs the tree of the setting before on the same fold. Such fits make a chain; chains are independent. Of the
fits that are ready, the one with the first setting and fold goes first, so that settings are finished early.
What is finished so far can be had as a table.

Fits are done in this process, in several, or on a Dask cluster, which is imported where it is used. A fit whose worker
of the cluster dies is done again on another; the samples are kept as the outcome of a task, which Dask computes anew
where a worker took them with it.
"""

from __future__ import annotations

import heapq
import math
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor

from mipforest.cluster import TIMEOUT, connected, explained
from mipforest.errors import TuningError
from mipforest.processes import SAFE_PATH, safe_path
from mipforest.trees import Predictor
from mipforest.tuning.fit import Fit, Fold, Task
from mipforest.tuning.plan import Plan, choose

if TYPE_CHECKING:
    import pandas as pd

    from mipforest.tuning.batch_plan import CurveFit

#: Seconds after which an idle process ends.
_IDLE = 60

#: Longest wait, in seconds, for a fit to reach its process before all processes are ended.
_HANDOVER = 2.0

#: Libraries of linear algebra take all processors unless their number is set; there is one process per job already.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


#: Asked whether to stop.
Stopping = Callable[[], bool]


class Executor(Protocol):
    """Does fits, some at a time.

    Attributes
    ----------
    slots
        How many fits to hand over at a time.
    """

    slots: float

    def submit(self, work: Task, neighbour: Predictor | None) -> Future[Any]:
        """Begin a fit, with the tree of the setting before."""

    def explained(self, error: Exception) -> Exception:
        """Say what an error of the executor itself means; any other is given back."""


class InThisProcess(AbstractContextManager["InThisProcess"]):
    """One fit after the other.

    Parameters
    ----------
    folds
        The samples.
    stopping
        Asked during every solve whether to stop.
    """

    slots: float = 1

    def __init__(self, folds: Sequence[Fold], stopping: Stopping | None = None) -> None:
        self._folds = folds
        self._stopping = stopping

    def __exit__(self, *exception: object) -> None:
        """Leave nothing behind."""

    def submit(self, work: Task, neighbour: Predictor | None) -> Future[Any]:
        """Do a fit; Ctrl-C and errors arrive here."""
        if self._stopping is not None and self._stopping():
            raise KeyboardInterrupt
        done: Future[Any] = Future()
        done.set_result(work.done(self._folds[work.fold], neighbour, self._stopping))
        return done

    def explained(self, error: Exception) -> Exception:
        """Return the error as it is."""
        return error


class Processes(AbstractContextManager["Processes"]):
    """Several processes on this machine, with joblib's executor.

    Parameters
    ----------
    folds
        The samples.
    jobs
        Number of processes.
    """

    def __init__(self, folds: Sequence[Fold], jobs: int) -> None:
        self.slots: float = jobs
        self._folds = folds
        self._latest: Future[Any] | None = None
        with safe_path():  # of the executor's own helper, too
            self._pool: Any = ProcessPoolExecutor(
                jobs, timeout=_IDLE, initializer=_ignore_ctrl_c, env={**_ONE_THREAD, SAFE_PATH: "1"}
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._wait_for_handover()
        self._pool.shutdown(wait=True, kill_workers=error is not None)

    def submit(self, work: Task, neighbour: Predictor | None) -> Future[Any]:
        """Hand a fit to the next process that is free."""
        with safe_path():
            self._latest = self._pool.submit(work.done, self._folds[work.fold], neighbour)
        return self._latest

    def _wait_for_handover(self) -> None:
        """Wait until a process has the last fit: killed before, the pool prints a traceback."""
        end = monotonic() + _HANDOVER
        while self._latest is not None and not (self._latest.running() or self._latest.done()):
            if monotonic() > end:
                return
            sleep(0.01)

    def explained(self, error: Exception) -> Exception:
        """Say that a process died."""
        if isinstance(error, BrokenExecutor):
            return TuningError(
                f"one of the {math.floor(self.slots)} processes ended by itself, as when the memory is used up; "
                "take fewer jobs, or a smaller model"
            )
        return error


def _ignore_ctrl_c() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that started the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class DaskCluster(AbstractContextManager["DaskCluster"]):
    """A Dask cluster that is there already.

    Parameters
    ----------
    folds
        The samples.
    address
        Address of the scheduler, such as ``tcp://127.0.0.1:8786``.
    timeout
        Seconds to wait for the scheduler, and then for its first worker.

    Raises
    ------
    ClusterError
        If Dask is not installed, there is no scheduler at the address, it has no workers, or a worker lacks
        this version of mipforest.
    """

    slots: float = math.inf

    def __init__(self, folds: Sequence[Fold], address: str, timeout: float = TIMEOUT) -> None:
        self._client = connected(address, timeout)
        try:
            self._folds = [self._client.submit(_kept, fold, pure=False) for fold in folds]
            self._pool = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close()
            raise

    def __exit__(self, *exception: object) -> None:
        """Leave the cluster; what is under way there is given up, and its outcome not waited for."""
        self._pool.shutdown(wait=False)
        self._client.close()

    def submit(self, work: Task, neighbour: Predictor | None) -> Future[Any]:
        """Hand a fit to the scheduler."""
        future: Future[Any] = self._pool.submit(work.done, self._folds[work.fold], neighbour)
        return future

    def explained(self, error: Exception) -> Exception:
        """Say what Dask's own errors mean."""
        return explained(error, "fit")


def _kept(fold: Fold) -> Fold:
    """Keep samples on the cluster."""
    return fold


class Tasks(Protocol):
    """A plan: tasks on folds, some of which wait for others."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Training and validation samples."""

    @property
    def n_chains(self) -> int:
        """Number of tasks that can be done at a time."""

    def first(self) -> Sequence[Any]:
        """Return the tasks that need no other's tree."""

    def after(self, work: Any) -> Any:
        """Return the task that starts from the tree of this one, or ``None``."""


def executor_for(
    plan: Tasks, *, jobs: int = 1, dask: str | None = None, stopping: Stopping | None = None
) -> AbstractContextManager[Executor]:
    """Return what does the fits of a plan.

    Parameters
    ----------
    plan
        The plan.
    jobs, dask
        As for :func:`mipforest.tuning.run.tune`.
    stopping
        Asked during the solves in this process whether to stop.

    Raises
    ------
    TuningError
        If the number of jobs is not 1 or more, or both several jobs and a cluster are asked for.
    ClusterError
        If the cluster cannot be used.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise TuningError(f"jobs is {jobs!r}; give a whole number, 1 or more")
    if dask is not None:
        if jobs != 1:
            raise TuningError(f"jobs={jobs} and a Dask cluster are both given; keep one")
        return DaskCluster(plan.folds, dask)
    return (
        InThisProcess(plan.folds, stopping) if jobs == 1 else Processes(plan.folds, min(jobs, plan.n_chains))
    )


#: What the table has of every fold, in columns such as ``fold0_gap``.
_PER_FOLD = (
    "validation",
    "train",
    "features",
    "gap",
    "seconds",
    "objective",
    "status",
    "verified",
    "start",
    "start_objective",
)

#: Called with a finished fit, after it was recorded.
OnFit = Callable[[Any], None]


def cross_validate(
    plan: Tasks, executor: Executor, records: TaskRecords[Any, Any], on_fit: OnFit | None = None
) -> None:
    """Do all fits of a plan.

    Parameters
    ----------
    plan
        What to do.
    executor
        Who does it.
    records
        Takes the finished fits; after an exception it has those finished before.
    on_fit
        Called with every finished fit.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C.
    Exception
        What a fit raised, with a note that names its setting.
    """
    ready: list[tuple[int, int, Task, Predictor | None]] = [
        (work.setting, work.fold, work, None) for work in plan.first()
    ]
    heapq.heapify(ready)
    running: dict[Future[Any], Task] = {}
    while ready or running:
        while ready and len(running) < executor.slots:
            *_, work, neighbour = heapq.heappop(ready)
            with _naming_the_fit(executor, work):
                running[executor.submit(work, neighbour)] = work
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda future: (running[future].setting, running[future].fold)):
            work = running.pop(future)
            with _naming_the_fit(executor, work):
                finished = future.result()
            records.add(finished)
            following = plan.after(work)
            if following is not None:
                heapq.heappush(ready, (following.setting, following.fold, following, finished.tree))
            if on_fit is not None:
                on_fit(finished)


@contextmanager
def _naming_the_fit(executor: Executor, work: Task) -> Iterator[None]:
    """Note on an error which fit it is of."""
    try:
        yield
    except Exception as error:
        given = ", ".join(f"{name}={value}" for name, value in work.formulation.parameters().items())
        explained = executor.explained(error)
        explained.add_note(f"in the fit of {work.formulation.name} with {given}, fold {work.fold}")
        if explained is error:
            raise
        raise explained from error


P = TypeVar("P", bound=Tasks)
F = TypeVar("F", bound="Fit | CurveFit")


class TaskRecords(ABC, Generic[P, F]):
    """Collects what comes out of the tasks of a plan, each once.

    Parameters
    ----------
    plan
        What is to be done.

    Attributes
    ----------
    name
        What the tasks are together, in messages.
    """

    name: ClassVar[str]

    def __init__(self, plan: P) -> None:
        self.plan = plan
        self._fits: dict[tuple[int, int], F] = {}

    def __len__(self) -> int:
        return len(self._fits)

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""

    @property
    @abstractmethod
    def progress(self) -> str:
        """How much is done, of how much."""

    @abstractmethod
    def do(self, executor: Executor, on_fit: OnFit | None = None) -> None:
        """Do all tasks of the plan; see :func:`cross_validate`."""

    @abstractmethod
    def choose(self) -> int:
        """Return the row of the table that is best, by the plan's rule."""

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return one row per setting."""

    def add(self, fit: F) -> None:
        """Take a fit; its tree is not kept."""
        place = (fit.setting, fit.fold)
        if place in self._fits:
            raise AssertionError(f"setting {fit.setting} was fitted twice on fold {fit.fold}")
        self._fits[place] = replace(fit, tree=None)

    def of_setting(self, setting: int) -> list[F]:
        """Return the finished fits of a setting, in the order of the folds."""
        places = ((setting, fold) for fold in range(len(self.plan.folds)))
        return [self._fits[place] for place in places if place in self._fits]

    def finished(self, setting: int) -> bool:
        """Return whether a setting is fitted on all folds."""
        return len(self.of_setting(setting)) == len(self.plan.folds)


class Records(TaskRecords[Plan, Fit]):
    """Collects the fits of a cross-validation over a grid."""

    name = "cross-validation"

    @property
    def labels(self) -> list[str]:
        """Columns of the table that name a setting."""
        return [axis.label for axis in self.plan.grid.axes]

    @property
    def progress(self) -> str:
        """How many fits are done, of how many."""
        return f"{len(self)} of {self.plan.n_fits} fits"

    def do(self, executor: Executor, on_fit: OnFit | None = None) -> None:
        """Do all fits of the plan; see :func:`cross_validate`."""
        cross_validate(self.plan, executor, self, on_fit)

    def choose(self) -> int:
        """Return the row that the plan's rule takes; see :func:`mipforest.tuning.plan.choose`."""
        return choose(self.table(), self.plan.rule, sign=self.plan.score.sign)

    def table(self) -> pd.DataFrame:
        """Return one row per setting, in grid order; see :attr:`mipforest.tuning.run.Tuning.table`."""
        import pandas as pd

        return pd.DataFrame(
            [
                dict(zip(self.labels, values, strict=True)) | self._row(number)
                for number, values in enumerate(self.plan.grid.rows())
            ]
        )

    def _row(self, setting: int) -> dict[str, Any]:
        fits = self.of_setting(setting)
        row: dict[str, Any] = {"finished": self.finished(setting), "folds_done": len(fits)}
        for name in ("validation", "train", "features"):
            values = _numbers(fits, name)
            row[f"{name}_mean"], row[f"{name}_std"] = _mean(values), _std(values)
        gaps = _numbers(fits, "gap")
        row["gap_mean"], row["gap_max"] = _mean(gaps), max(gaps, default=np.nan)
        row["seconds"] = sum(fit.seconds for fit in fits)
        row["verified"] = bool(fits) and all(fit.verified for fit in fits)
        by_fold = {fit.fold: fit for fit in fits}
        for fold in range(len(self.plan.folds)):
            for name in _PER_FOLD:
                row[f"fold{fold}_{name}"] = getattr(by_fold.get(fold), name, None)
        return row


def _numbers(fits: Sequence[Fit], name: str) -> list[float]:
    values = (getattr(fit, name) for fit in fits)
    return [np.nan if value is None else float(value) for value in values]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def _std(values: Sequence[float]) -> float:
    """Return the standard deviation over the folds, which are all there are: as in scikit-learn's ``cv_results_``."""
    return float(np.std(values)) if values else np.nan
