"""Where fits are done: in this process, in several, or on a Dask cluster, which is imported where it is used.

A fit whose worker of the cluster dies is done again on another; the samples are kept as the outcome of a task, which
Dask computes anew where a worker took them with it.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Protocol

from joblib.externals.loky import ProcessPoolExecutor

from mipforest.cluster import TIMEOUT, connected, explained
from mipforest.errors import TuningError
from mipforest.trees import Predictor
from mipforest.tuning.fit import Fold, Task

#: Seconds after which an idle process ends.
_IDLE = 60

#: Longest wait, in seconds, for a fit to reach its process before all processes are ended.
_HANDOVER = 2.0

#: Libraries of linear algebra take all processors unless told otherwise; there is one process per job already.
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
        self._pool: Any = ProcessPoolExecutor(
            jobs, timeout=_IDLE, initializer=_ignore_ctrl_c, env=_ONE_THREAD
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._wait_for_handover()
        self._pool.shutdown(wait=True, kill_workers=error is not None)

    def submit(self, work: Task, neighbour: Predictor | None) -> Future[Any]:
        """Hand a fit to the next process that is free."""
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
