"""What a solve is asked for besides the optimum: limits, starts, progress, logs and options; and longer searches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mipforest.errors import NotAllowed, SolverError, Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
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
from mipforest.testing.conformance.models import (
    INFEASIBLE,
    empty_split,
    indicator_on_at_one,
    lp_maximise,
    lp_minimise,
    market_split,
    mip_assignment,
    mip_knapsack,
    mip_mixed,
    mip_vertex_cover_of_a_pentagon,
    miqp_nearest_integers,
    qp_projection,
)

cases = Cases()


@cases.behaviour(Feature.MIP)
def time_limit_of_zero(trial: Trial) -> None:
    solution = trial.solve(market_split(), time_limit=0.0)
    expect(solution.status is Status.TIME_LIMIT, f"status {solution.status} instead of time_limit")


@cases.behaviour(Feature.MIP)
def time_limit(trial: Trial) -> None:
    solution = trial.solve(market_split(), time_limit=0.5)
    expect(solution.status is Status.TIME_LIMIT, f"status {solution.status} instead of time_limit")
    expect(solution.found, "no point in half a second for a model whose points are trivial")
    expect(np.isfinite(solution.bound), "no bound in half a second for a model with a trivial one")


@cases.behaviour(Feature.MIP)
def time_limit_that_is_not_reached(trial: Trial) -> None:
    form = mip_knapsack().matrix()
    assert_value(form, trial.solve(form, time_limit=60.0), 7.0, {})


@cases.behaviour(Feature.MIP, limits_nodes=True)
def node_limit(trial: Trial) -> None:
    solution = trial.solve(market_split(), solver_options=trial.node_limit, time_limit=60.0)
    expect(solution.status is Status.LIMIT, f"status {solution.status} instead of limit")


@cases.behaviour(Feature.MIP)
def gap_is_kept(trial: Trial) -> None:
    solution = trial.solve(market_split(3, 20, offset=1000.0), gap=0.5, time_limit=60.0)
    expect(solution.status is Status.OPTIMAL, f"status {solution.status} instead of optimal")
    expect(solution.gap <= 0.5, f"gap {solution.gap} above 0.5")


@cases.behaviour(Feature.MIP)
def gap_of_zero_is_closed(trial: Trial) -> None:
    solution = trial.solve(market_split(2, 10, offset=100.0), gap=0.0, time_limit=60.0)
    expect(solution.status is Status.OPTIMAL, f"status {solution.status} instead of optimal")


@cases.behaviour(Feature.LP)
def threads(trial: Trial) -> None:
    form = lp_maximise().matrix()
    for count in (1, 2, 1):
        assert_value(form, trial.solve(form, threads=count), 36.0, {})


@cases.behaviour(Feature.MIP)
def same_seed_gives_the_same_point(trial: Trial) -> None:
    form = market_split(2, 8)
    first, second = (trial.solve(form, seed=3, threads=1, time_limit=60.0) for _ in range(2))
    expect(np.array_equal(first.x, second.x), "two runs with the same seed give different points")  # type: ignore[arg-type]


@cases.behaviour(Feature.LP)
def unknown_option_is_refused(trial: Trial) -> None:
    options = {"no_such_option": 1}
    attempt = lambda: trial.solve(lp_maximise(), solver_options=options)  # noqa: E731
    assert_refused(attempt, NotAllowed, naming="no_such_option")


@cases.behaviour(Feature.LP)
def log_is_written(trial: Trial) -> None:
    log = trial.folder / "solver.log"
    trial.solve(lp_maximise(), log=log)
    expect(log.exists() and log.stat().st_size > 0, "the log was not written, or is empty")


@cases.behaviour(Feature.LP)
def log_that_cannot_be_written_is_refused(trial: Trial) -> None:
    log = trial.folder / "no_such_folder" / "solver.log"
    assert_refused(lambda: trial.solve(lp_maximise(), log=log), SolverError)


@cases.behaviour(Feature.LP)
def silent(trial: Trial) -> None:
    captured = trial.folder / "captured"
    with _output_to(captured):
        trial.solve(lp_maximise())
        trial.solve(lp_minimise())
    expect(captured.stat().st_size == 0, f"printed: {captured.read_text(errors='replace')[:200]!r}")


@cases.behaviour(Feature.LP)
def solves_do_not_depend_on_each_other(trial: Trial) -> None:
    one, other = lp_maximise().matrix(), lp_minimise().matrix()
    for form, value in ((one, 36.0), (other, 9.0), (one, 36.0)):
        assert_value(form, trial.solve(form), value, {})


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Send what the process prints, in Python or in C, to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        with path.open("w") as file, redirect_stdout(file), redirect_stderr(file):
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for saved, number in zip(kept, (1, 2), strict=True):
            os.dup2(saved, number)
            os.close(saved)


@cases.behaviour(lacks=Feature.MIP)
def refuses_integers(trial: Trial) -> None:
    assert_refused(lambda: trial.solve(mip_knapsack()), Unsupported)


@cases.behaviour(lacks=Feature.QP)
def refuses_quadratic_objective(trial: Trial) -> None:
    assert_refused(lambda: trial.solve(qp_projection()), Unsupported)


@cases.behaviour(lacks=Feature.MIQP)
def refuses_quadratic_objective_with_integers(trial: Trial) -> None:
    assert_refused(lambda: trial.solve(miqp_nearest_integers()), Unsupported)


@cases.behaviour(lacks=Feature.INDICATORS)
def refuses_indicator_rows(trial: Trial) -> None:
    assert_refused(lambda: trial.solve(indicator_on_at_one()), Unsupported)


@cases.behaviour(Feature.QP)
def nonconvex_objective_is_solved_or_refused(trial: Trial) -> None:
    m = Model()
    x = m.continuous("x", lower=-1.0, upper=2.0)
    m.minimize(-1 * x**2)
    try:
        solution = trial.solve(m)
    except SolverError:
        return
    assert_value(m.matrix(), solution, -4.0, {"x": 2.0})


@cases.behaviour(Feature.MIQP)
def nonconvex_objective_with_integers_is_solved_or_refused(trial: Trial) -> None:
    m = Model()
    x = m.integer("x", 2, lower=-1, upper=2)
    m.minimize((x[0] - x[1]) ** 2 - 3 * x[0] ** 2)
    try:
        solution = trial.solve(m)
    except SolverError:
        return
    assert_value(m.matrix(), solution, -12.0, {"x": [2.0, 2.0]})


@cases.behaviour(Feature.LP)
def nan_is_refused(trial: Trial) -> None:
    form = lp_maximise().matrix()
    nan = np.array([np.nan, 1.0])
    changes: tuple[dict[str, Any], ...] = ({"c": nan}, {"col_upper": nan}, {"A": _with_entry(form, np.nan)})
    for changed in changes:
        assert_refused(lambda changed=changed: trial.solve(replace(form, **changed)), SolverError)  # type: ignore[misc]


@cases.behaviour(Feature.LP)
def infinite_coefficient_is_refused(trial: Trial) -> None:
    form = lp_maximise().matrix()
    assert_refused(lambda: trial.solve(replace(form, A=_with_entry(form, np.inf))), SolverError)
    assert_refused(lambda: trial.solve(replace(form, c=np.array([np.inf, 1.0]))), SolverError)


@cases.behaviour(Feature.LP)
def crossed_bounds_are_infeasible_or_refused(trial: Trial) -> None:
    form = lp_minimise().matrix()
    _assert_no_answer(trial, replace(form, col_lower=np.array([2.0, 0.0]), col_upper=np.array([1.0, 9.0])))


@cases.behaviour(Feature.LP)
def crossed_sides_are_infeasible_or_refused(trial: Trial) -> None:
    form = lp_minimise().matrix()
    _assert_no_answer(trial, replace(form, row_upper=form.row_lower - 1))


def _assert_no_answer(trial: Trial, form: MatrixForm) -> None:
    try:
        status = trial.solve(form).status
    except SolverError:
        return
    expect(status in INFEASIBLE, f"status {status}")


def _with_entry(form: MatrixForm, value: float) -> Any:
    A = form.A.copy()
    A.data[0] = value
    return A


#: Seconds after which an interrupted solve that goes on counts as not interrupted.
PATIENCE = 20.0


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
    reported = np.isfinite(solution.start_objective) or bool(solution.warnings)
    expect(reported, "the start was neither taken (start_objective) nor dropped with a warning")


@cases.behaviour(Feature.MIP, Feature.PARTIAL_START)
def start_with_some_integers(trial: Trial) -> None:
    form = mip_assignment().matrix()
    start = np.full(9, np.nan)
    start[0] = 1.0
    solution = trial.solve(form, start=start)
    assert_value(form, solution, 5.0, {})
    reported = np.isfinite(solution.start_objective) or bool(solution.warnings)
    expect(reported, "the start was neither taken (start_objective) nor dropped with a warning")


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
    reported = [event.objective for event in seen if np.isfinite(event.objective)]
    expect(
        not above(form, solution.objective, reported[0]),
        f"objective {solution.objective} after an incumbent of {reported[0]}",
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
