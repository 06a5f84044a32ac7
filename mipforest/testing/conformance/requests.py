"""Options, limits, the log, what a solve leaves behind, and what a solver must refuse rather than get wrong."""

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
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
from mipforest.solvers.base import Feature
from mipforest.solvers.solution import Status
from mipforest.testing.conformance.case import Cases, Trial, assert_refused, assert_value, expect
from mipforest.testing.conformance.integer import indicator_on_at_one, market_split, mip_knapsack
from mipforest.testing.conformance.linear import INFEASIBLE, lp_maximise, lp_minimise
from mipforest.testing.conformance.quadratic import miqp_nearest_integers, qp_projection

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
