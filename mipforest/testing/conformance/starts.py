"""Starts and branching priorities."""

from __future__ import annotations

import numpy as np

from mipforest.errors import NotAllowed
from mipforest.solvers.base import Feature
from mipforest.testing.conformance.case import Cases, Trial, above, assert_refused, assert_value, expect
from mipforest.testing.conformance.integer import (
    empty_split,
    market_split,
    mip_assignment,
    mip_knapsack,
    mip_mixed,
)

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
    solution = trial.solve(form, start=start, time_limit=1.0)
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
