"""Doing the fits of a plan, in an order that does not depend on where they are done.

A fit needs the tree of the setting before on the same fold. Such fits make a chain; chains are independent. Of the
fits that are ready, the one with the first setting and fold goes first, so that settings are finished early.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager

from mipforest.trees import Tree
from mipforest.tuning.executors import Executor
from mipforest.tuning.fit import Fit, Work
from mipforest.tuning.plan import Plan
from mipforest.tuning.records import Records

#: Called with a finished fit, after it was recorded.
OnFit = Callable[[Fit], None]


def cross_validate(plan: Plan, executor: Executor, records: Records, on_fit: OnFit | None = None) -> None:
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
    ready: list[tuple[int, int, Work, Tree | None]] = [
        (work.setting, work.fold, work, None) for work in plan.first()
    ]
    heapq.heapify(ready)
    running: dict[Future[Fit], Work] = {}
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


def _submitted(executor: Executor, work: Work, neighbour: Tree | None) -> Future[Fit]:
    with _telling(executor, work):
        return executor.submit(work, neighbour)


def _outcome(executor: Executor, future: Future[Fit], work: Work) -> Fit:
    with _telling(executor, work):
        return future.result()


@contextmanager
def _telling(executor: Executor, work: Work) -> Iterator[None]:
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
