"""Linear programmes with known answers."""

from __future__ import annotations

import numpy as np

from mipforest.model import Model, between
from mipforest.solvers.solution import Status
from mipforest.testing.conformance.case import Cases

cases = Cases()

#: How a solve of an unbounded model may end: presolve often leaves the other possibility open.
UNBOUNDED = (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)

#: How a solve of an infeasible model may end.
INFEASIBLE = (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)


@cases.optimum(36.0, x=[2.0, 6.0])
def lp_maximise() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.maximize([3.0, 5.0] @ x)
    m.add("plants", np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]]) @ x <= [4.0, 12.0, 18.0])
    return m


@cases.optimum(9.0, x=[3.0, 1.0])
def lp_minimise() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize([2.0, 3.0] @ x)
    m.add("needs", np.array([[1.0, 1.0], [1.0, 3.0]]) @ x >= [4.0, 6.0])
    return m


@cases.optimum(-3.0, x=[-0.5, -2.5])
def lp_free_variables() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(x.sum())
    m.add("difference", x[0] - x[1] == 2)
    m.add("sum", x.sum() >= -3)
    return m


@cases.optimum(11.0, x=[1.0, 2.0])
def lp_fixed_variable() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=[0.0, 2.0], upper=[np.inf, 2.0])
    m.minimize([1.0, 5.0] @ x)
    m.add("sum", x.sum() >= 3)
    return m


@cases.optimum(-1.0, x=[1.0, 2.0])
def lp_all_variables_fixed() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=[1.0, 2.0], upper=[1.0, 2.0])
    m.minimize([1.0, -1.0] @ x)
    m.add("sum", x.sum() <= 3)
    return m


@cases.ends(*INFEASIBLE)
def lp_all_variables_fixed_infeasible() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=1.0, upper=1.0)
    m.add("sum", x.sum() >= 3)
    return m


@cases.optimum(-5.0, x=-5.0)
def lp_negative_lower_bound() -> Model:
    m = Model()
    m.minimize(m.continuous("x", lower=-5.0, upper=-2.0))
    return m


@cases.optimum(-2.0, x=-2.0)
def lp_negative_upper_bound() -> Model:
    m = Model()
    m.maximize(m.continuous("x", upper=-2.0))
    return m


@cases.optimum(2.0)
def lp_empty_row_and_column() -> Model:
    m = Model()
    x = m.nonnegative("x", 3)
    m.minimize([1.0, 0.0, 2.0] @ x)
    m.add("empty", between(-1.0, 0 * x.sum(), 1.0))
    m.add("sum", x[0] + x[2] >= 2)
    return m


@cases.ends(*INFEASIBLE)
def lp_empty_row_infeasible() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize(x.sum())
    m.add("empty", 0 * x.sum() >= 1)
    return m


@cases.optimum(0.0, x=[-1.0, 2.0])
def lp_no_rows() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=-1.0, upper=2.0)
    m.minimize([1.0, -1.0] @ x + 3)
    return m


@cases.optimum(3.0)
def lp_no_columns() -> Model:
    m = Model()
    m.minimize(3.0)
    return m


@cases.optimum(3.0)
def lp_columns_that_nothing_reads() -> Model:
    m = Model()
    m.continuous("x", 2, lower=[1.5, -np.inf], upper=[2.5, -1.0])
    m.minimize(3.0)
    return m


@cases.optimum(3.0)
def lp_free_row() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize(x.sum())
    m.add("free", between(-np.inf, x[0] - x[1], np.inf))
    m.add("sum", x.sum() >= 3)
    return m


@cases.optimum(9.0, x=[3.0, 3.0, 0.0])
def lp_equalities_only() -> Model:
    m = Model()
    x = m.nonnegative("x", 3)
    m.minimize([1.0, 2.0, 4.0] @ x)
    m.add("sum", x.sum() == 6)
    m.add("same", x[0] - x[1] == 0)
    return m


@cases.optimum(6.0)
def lp_repeated_equality() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize([2.0, 3.0] @ x)
    m.add("sum", x.sum() == 3)
    m.add("again", 2 * x.sum() == 6)
    return m


def _range(*, maximize: bool) -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=-10.0, upper=10.0)
    (m.maximize if maximize else m.minimize)(x.sum())
    m.add("range", between(1.0, x.sum(), 3.0))
    return m


@cases.optimum(1.0)
def lp_range_lower_side() -> Model:
    return _range(maximize=False)


@cases.optimum(3.0)
def lp_range_upper_side() -> Model:
    return _range(maximize=True)


@cases.optimum(0.0)
def lp_zero_objective() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.add("sum", x.sum() >= 1)
    return m


@cases.optimum(12.0)
def lp_constant_in_objective() -> Model:
    m = Model()
    x = m.nonnegative("x")
    m.minimize(x + 10)
    m.add("least", 1.0 * x >= 2)
    return m


@cases.optimum(-6.0)
def lp_constant_in_maximised_objective() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.maximize(x.sum() - 10)
    m.add("most", x.sum() <= 4)
    return m


@cases.optimum(100.0, x=[1.0, 0.0])
def lp_large_and_small_coefficients() -> Model:
    m = Model()
    x = m.nonnegative("x", 2, upper=1e6)
    m.minimize([100.0, 1e-3] @ x)
    m.add("need", [1e3, 1e-3] @ x >= 1e3)
    return m


@cases.ends(*INFEASIBLE)
def lp_infeasible() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize(x.sum())
    m.add("least", x.sum() >= 3)
    m.add("most", x.sum() <= 2)
    return m


@cases.ends(*UNBOUNDED)
def lp_unbounded() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize(-x.sum())
    m.add("difference", x[0] - x[1] == 1)
    return m


@cases.ends(*UNBOUNDED)
def lp_unbounded_maximised() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.maximize(x.sum())
    m.add("difference", x[0] - x[1] <= 1)
    return m


@cases.ends(*INFEASIBLE)
def lp_infeasible_with_an_improving_direction() -> Model:
    m = Model()
    x = m.nonnegative("x", 3)
    m.minimize(-x[0])
    m.add("least", x[1] - x[2] >= 2)
    m.add("most", x[1] - x[2] <= 1)
    return m
