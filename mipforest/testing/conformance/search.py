"""What guides a search, and what it tells: starts, branching priorities, progress, interruption."""

from __future__ import annotations

import numpy as np

from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solvers.base import Feature
from mipforest.solvers.solution import Event, Status
from mipforest.testing.conformance.case import (
    Cases,
    Trial,
    above,
    assert_progress,
    assert_refused,
    assert_value,
    expect,
)
from mipforest.testing.conformance.integer import (
    empty_split,
    market_split,
    mip_assignment,
    mip_knapsack,
    mip_mixed,
    mip_vertex_cover_of_a_pentagon,
)

#: Seconds after which an interrupted solve that goes on counts as not interrupted.
PATIENCE = 20.0

cases = Cases()


@cases.behaviour(Feature.MIP, Feature.START)
def start_full(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, start=np.array([0.0, 0.0, 1.0]))
    assert_value(form, solution, 7.0, {})
    expect(solution.start_objective == 5.0, f"start_objective {solution.start_objective} instead of 5")
    expect(not solution.warnings, f"a good start leaves warnings: {solution.warnings}")


@cases.behaviour(Feature.MIP, Feature.START)
def start_is_never_worse_than_the_outcome(trial: Trial) -> None:
    form = market_split()
    start = empty_split(form)
    solution = trial.solve(form, start=start, time_limit=0.3)
    expect(solution.found, "a feasible start was given, and no point came back")
    value = form.objective(start)
    expect(
        not above(form, solution.objective, value),
        f"objective {solution.objective} after a start of {value}",
    )


@cases.behaviour(Feature.MIP, Feature.PARTIAL_START)
def start_with_all_integers(trial: Trial) -> None:
    form = mip_mixed().matrix()
    solution = trial.solve(form, start=np.array([1.0, np.nan]))
    assert_value(form, solution, 10.8, {})
    told = np.isfinite(solution.start_objective) or bool(solution.warnings)
    expect(told, "the start was neither taken (start_objective) nor dropped with a warning")


@cases.behaviour(Feature.MIP, Feature.PARTIAL_START)
def start_with_some_integers(trial: Trial) -> None:
    form = mip_assignment().matrix()
    start = np.full(9, np.nan)
    start[0] = 1.0
    solution = trial.solve(form, start=start)
    assert_value(form, solution, 5.0, {})
    told = np.isfinite(solution.start_objective) or bool(solution.warnings)
    expect(told, "the start was neither taken (start_objective) nor dropped with a warning")


@cases.behaviour(Feature.MIP, Feature.START)
def start_infeasible(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, start=np.ones(3))
    assert_value(form, solution, 7.0, {})
    expect(bool(solution.warnings), "an infeasible start leaves no warning")


@cases.behaviour(Feature.MIP, Feature.START)
def start_outside_the_bounds(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, start=np.array([7.0, 0.0, 0.0]))
    assert_value(form, solution, 7.0, {})
    expect(bool(solution.warnings), "a start outside the bounds leaves no warning")


@cases.behaviour(Feature.MIP, Feature.START)
def start_of_wrong_length(trial: Trial) -> None:
    assert_refused(lambda: trial.solve(mip_knapsack(), start=np.zeros(2)), NotAllowed)


@cases.behaviour(Feature.MIP, lacks=Feature.START)
def start_not_taken_leaves_a_warning(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, start=np.array([0.0, 0.0, 1.0]))
    assert_value(form, solution, 7.0, {})
    expect(bool(solution.warnings), "the solver takes no starts, and does not say so")


@cases.behaviour(Feature.MIP, Feature.PRIORITIES)
def priorities(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, priorities=np.array([0, 5, -1]))
    assert_value(form, solution, 7.0, {})
    expect(not solution.warnings, f"priorities leave warnings: {solution.warnings}")


@cases.behaviour(Feature.MIP, lacks=Feature.PRIORITIES)
def priorities_not_taken_leave_a_warning(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    solution = trial.solve(form, priorities=np.array([0, 5, -1]))
    assert_value(form, solution, 7.0, {})
    expect(bool(solution.warnings), "the solver takes no priorities, and does not say so")


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def progress_when_minimising(trial: Trial) -> None:
    _watch(trial, maximize=False)


@cases.behaviour(Feature.MIP, Feature.PROGRESS)
def progress_when_maximising(trial: Trial) -> None:
    _watch(trial, maximize=True)


def _watch(trial: Trial, *, maximize: bool) -> None:
    form = market_split(maximize=maximize, offset=100.0)
    seen: list[Event] = []
    solution = trial.solve(form, time_limit=0.5, on_progress=seen.append)
    assert_progress(form, seen)
    expect(len(seen) > 2, f"{len(seen)} events in half a second")
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
