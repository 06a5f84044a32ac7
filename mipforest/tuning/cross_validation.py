"""Doing the fits of a plan, in an order that does not depend on where they are done.

A fit needs the tree of the setting before on the same fold. Such fits make a chain; chains are independent. Of the
fits that are ready, the one with the first setting and fold goes first, so that settings are finished early.
What is finished so far can be had as a table.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mipforest.trees import Predictor
from mipforest.tuning.executors import Executor
from mipforest.tuning.fit import Fit, Task
from mipforest.tuning.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

#: What is told of every fold, in columns such as ``fold0_gap``.
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


class Tasks(Protocol):
    """A plan, as far as the order of its tasks goes."""

    def first(self) -> Sequence[Any]:
        """Return the tasks that need no other's tree."""

    def after(self, work: Any) -> Any:
        """Return the task that starts from the tree of this one, or ``None``."""


class Recorder(Protocol):
    """Takes what comes out of tasks."""

    def add(self, fit: Any) -> None:
        """Take the outcome of one task."""


def cross_validate(plan: Tasks, executor: Executor, records: Recorder, on_fit: OnFit | None = None) -> None:
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
            running[_submitted(executor, work, neighbour)] = work
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda future: (running[future].setting, running[future].fold)):
            work = running.pop(future)
            finished = _outcome(executor, future, work)
            records.add(finished)
            following = plan.after(work)
            if following is not None:
                heapq.heappush(ready, (following.setting, following.fold, following, finished.tree))
            if on_fit is not None:
                on_fit(finished)


def _submitted(executor: Executor, work: Task, neighbour: Predictor | None) -> Future[Any]:
    with _naming_the_fit(executor, work):
        return executor.submit(work, neighbour)


def _outcome(executor: Executor, future: Future[Any], work: Task) -> Any:
    with _naming_the_fit(executor, work):
        return future.result()


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


class Records:
    """Collects the fits of a plan, each once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._fits: dict[tuple[int, int], Fit] = {}

    def __len__(self) -> int:
        return len(self._fits)

    def add(self, fit: Fit) -> None:
        """Take a fit; its tree is not kept."""
        place = (fit.setting, fit.fold)
        if place in self._fits:
            raise AssertionError(f"setting {fit.setting} was fitted twice on fold {fit.fold}")
        self._fits[place] = replace(fit, tree=None)

    def of_setting(self, setting: int) -> list[Fit]:
        """Return the finished fits of a setting, in the order of the folds."""
        places = ((setting, fold) for fold in range(len(self._plan.folds)))
        return [self._fits[place] for place in places if place in self._fits]

    def finished(self, setting: int) -> bool:
        """Return whether a setting is fitted on all folds."""
        return len(self.of_setting(setting)) == len(self._plan.folds)

    def table(self) -> pd.DataFrame:
        """Return one row per setting, in grid order; see :attr:`mipforest.tuning.run.Tuning.table`."""
        import pandas as pd

        grid = self._plan.grid
        labels = [axis.label for axis in grid.axes]
        return pd.DataFrame(
            [
                dict(zip(labels, values, strict=True)) | self._row(number)
                for number, values in enumerate(grid.rows())
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
        for fold in range(len(self._plan.folds)):
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
