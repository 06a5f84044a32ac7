"""Progress while solving, and interruption."""

from __future__ import annotations

import numpy as np

from mipforest.model.check import violations
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import Feature
from mipforest.solvers.solution import Event, Status
from mipforest.testing.conformance.case import Cases, Trial, above, assert_progress, assert_value, expect
from mipforest.testing.conformance.integer import market_split, mip_vertex_cover_of_a_pentagon

cases = Cases()

#: Seconds after which an interrupted solve that goes on counts as not interrupted.
PATIENCE = 20.0


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def progress_when_minimising(trial: Trial) -> None:
    _watch(trial, maximize=False)


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def progress_when_maximising(trial: Trial) -> None:
    _watch(trial, maximize=True)


def _watch(trial: Trial, *, maximize: bool) -> None:
    form = market_split(maximize=maximize, offset=100.0)
    seen: list[Event] = []
    solution = trial.solve(form, time_limit=1.0, on_progress=seen.append)
    assert_progress(form, seen)
    expect(len(seen) > 2, f"{len(seen)} events in a second")
    expect(any(np.isfinite(event.objective) for event in seen), "no event tells of an incumbent")
    expect(any(np.isfinite(event.bound) for event in seen), "no event tells of a bound")
    for event in seen:
        if event.x is not None:
            worst = violations(form, event.x).max
            # Points come out while the solver works: rounding of integers is not yet done.
            expect(worst <= 10 * FEASIBILITY_TOLERANCE, f"an event's point violates the model by {worst:.3g}")
    expect(bool(solution.events), "the solution records no events")


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def last_event_is_the_outcome(trial: Trial) -> None:
    form = mip_vertex_cover_of_a_pentagon().matrix()
    seen: list[Event] = []
    solution = trial.solve(form, on_progress=seen.append)
    assert_value(form, solution, 3.0, {})
    expect(bool(seen), "no event at all")
    last = seen[-1]
    same = last.objective == solution.objective and last.bound == solution.bound
    expect(
        same,
        f"the last event says ({last.objective}, {last.bound}), "
        f"the solution ({solution.objective}, {solution.bound})",
    )


@cases.behaviour(Feature.MIP, Feature.PROGRESS, Feature.INTERRUPT)
def interruption_keeps_the_incumbent(trial: Trial) -> None:
    form = market_split()
    seen: list[Event] = []

    def stop(event: Event) -> bool:
        seen.append(event)
        return bool(np.isfinite(event.objective))

    solution = trial.solve(form, time_limit=PATIENCE, on_progress=stop)
    expect(solution.status is Status.INTERRUPTED, f"status {solution.status} instead of interrupted")
    expect(solution.found, "the incumbent is lost")
    told = [event.objective for event in seen if np.isfinite(event.objective)]
    expect(
        not above(form, solution.objective, told[0]),
        f"objective {solution.objective} after an incumbent of {told[0]}",
    )


@cases.behaviour(Feature.MIP, Feature.PROGRESS, Feature.INTERRUPT)
def interruption_at_the_first_event(trial: Trial) -> None:
    solution = trial.solve(market_split(), time_limit=PATIENCE, on_progress=lambda _: True)
    expect(solution.status is Status.INTERRUPTED, f"status {solution.status} instead of interrupted")


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def error_in_progress_reaches_the_caller(trial: Trial) -> None:
    class DisplayIsGone(Exception):
        pass

    def fail(_: Event) -> None:
        raise DisplayIsGone

    try:
        trial.solve(market_split(), time_limit=PATIENCE, on_progress=fail)
    except DisplayIsGone:
        return
    raise AssertionError("an error raised in on_progress was swallowed")
