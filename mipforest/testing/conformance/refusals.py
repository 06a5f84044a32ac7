"""What a solver must refuse rather than get wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mipforest.errors import SolverError, Unsupported
from mipforest.model.matrix import MatrixForm
from mipforest.model.model import Model
from mipforest.solvers.base import Feature
from mipforest.testing.conformance.case import Cases, Trial, assert_refused, assert_value, expect
from mipforest.testing.conformance.indicators import indicator_on_at_one
from mipforest.testing.conformance.integer import mip_knapsack
from mipforest.testing.conformance.linear import INFEASIBLE, lp_maximise, lp_minimise
from mipforest.testing.conformance.quadratic import miqp_nearest_integers, qp_projection

cases = Cases()


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
