"""Options, limits, the log, and what a solve leaves behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from mipforest.errors import NotAllowed, SolverError
from mipforest.solvers.base import Feature
from mipforest.solvers.solution import Status
from mipforest.testing.conformance.case import Cases, Trial, assert_refused, assert_value, expect
from mipforest.testing.conformance.integer import market_split, mip_knapsack
from mipforest.testing.conformance.linear import lp_maximise, lp_minimise

cases = Cases()


@cases.behaviour(Feature.MIP)
def time_limit_of_zero(trial: Trial) -> None:
    solution = trial.solve(market_split(), time_limit=0.0)
    expect(solution.status is Status.TIME_LIMIT, f"status {solution.status} instead of time_limit")


@cases.behaviour(Feature.MIP)
def time_limit(trial: Trial) -> None:
    solution = trial.solve(market_split(), time_limit=1.0)
    expect(solution.status is Status.TIME_LIMIT, f"status {solution.status} instead of time_limit")
    expect(solution.found, "no point in a second for a model whose points are trivial")
    expect(np.isfinite(solution.bound), "no bound in a second for a model with a trivial one")


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
