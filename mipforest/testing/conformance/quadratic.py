"""Convex quadratic programmes, with and without integers, with known answers."""

from __future__ import annotations

import numpy as np

from mipforest.model import Model, between, sum_squares
from mipforest.testing.conformance.case import Cases
from mipforest.testing.conformance.linear import INFEASIBLE, UNBOUNDED

cases = Cases()


@cases.optimum(2.0, x=[0.0, 1.0])
def qp_projection() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(sum_squares(x - np.array([1.0, 2.0])))
    m.add("sum", x.sum() <= 1)
    return m


@cases.optimum(9.0, x=3.0)
def qp_square() -> Model:
    m = Model()
    x = m.continuous("x", lower=3.0)
    m.minimize(x**2)
    return m


@cases.optimum(0.5, x=[3.0, -0.5])
def qp_off_diagonal() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=[3.0, -np.inf])
    m.minimize((x.sum() - 2) ** 2 + x[1] ** 2)
    return m


@cases.optimum(0.0, x=[0.0, 1.0])
def qp_semidefinite() -> Model:
    m = Model()
    x = m.nonnegative("x", 2)
    m.minimize((x.sum() - 1) ** 2 + 0.1 * x[0])
    return m


@cases.optimum(3.0, x=[1.0, -2.0])
def qp_no_rows_and_no_bounds() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(sum_squares(x - np.array([1.0, -2.0])) + 3)
    return m


@cases.optimum(5.0, x=2.0)
def qp_maximise() -> Model:
    m = Model()
    x = m.nonnegative("x", upper=10.0)
    m.maximize(4 * x - x**2 + 1)
    return m


@cases.optimum(3.0, x=[1.0, 1.0, 1.0])
def qp_equality() -> Model:
    m = Model()
    x = m.continuous("x", 3)
    m.minimize(sum_squares(x))
    m.add("sum", x.sum() == 3)
    return m


@cases.optimum(1.0, x=[0.0, 1.0])
def qp_range() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(sum_squares(x))
    m.add("range", between(1.0, x[1], 2.0))
    return m


@cases.optimum(3.0, x=[1.0, 2.0])
def qp_fixed_variable() -> Model:
    m = Model()
    x = m.continuous("x", 2, lower=[0.0, 2.0], upper=[10.0, 2.0])
    m.minimize(x.sum() ** 2 - 6 * x[0])
    return m


@cases.optimum(-1.0)
def qp_linear_part_elsewhere() -> Model:
    m = Model()
    x, y = m.continuous("x"), m.nonnegative("y", upper=1.0)
    m.minimize(x**2 - y)
    return m


@cases.ends(*INFEASIBLE)
def qp_infeasible() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(sum_squares(x))
    m.add("least", x.sum() >= 3)
    m.add("most", x.sum() <= 2)
    return m


@cases.ends(*UNBOUNDED)
def qp_unbounded() -> Model:
    m = Model()
    x = m.continuous("x", 2)
    m.minimize(x[0] ** 2 - x[1])
    m.add("sum", x.sum() >= 0)
    return m


@cases.optimum(0.49, x=[1.0, 2.0, -2.0])
def miqp_nearest_integers() -> Model:
    m = Model()
    x = m.integer("x", 3, lower=-5, upper=5)
    m.minimize(sum_squares(x - np.array([0.4, 1.7, -2.2])))
    m.add("sum", x.sum() >= 1)
    return m


@cases.optimum(1.16, x=[1.0, 0.0])
def miqp_off_diagonal() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=[1, -3], upper=3)
    m.minimize((x.sum() - 1.4) ** 2 + x[0] ** 2)
    return m


@cases.optimum(12.0)
def miqp_maximise_with_constant() -> Model:
    m = Model()
    x = m.integer("x", lower=-10, upper=10)
    m.maximize(3 * x - x**2 + 10)
    return m


@cases.optimum(1.0, w=2.0, z=1.0)
def miqp_continuous_square() -> Model:
    m = Model()
    w, z = m.continuous("w", lower=-1.0, upper=10.0), m.binary("z")
    m.minimize((w - 2) ** 2 + z)
    m.add("switch", w <= 3 * z)
    return m


@cases.optimum(1.25, w=[1.0, 0.0], z=[1.0, 0.0])
def miqp_off_diagonal_continuous() -> Model:
    m = Model()
    w, z = m.continuous("w", 2, lower=-5.0, upper=5.0), m.binary("z", 2)
    m.minimize((w.sum() - 1.5) ** 2 + w[1] ** 2 + [1.0, 4.0] @ z)
    m.add("switch", w.sum() <= z.sum())
    return m


@cases.ends(*INFEASIBLE)
def miqp_infeasible() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=0, upper=10)
    m.minimize(sum_squares(x))
    m.add("parity", 2 * x[0] - 2 * x[1] == 1)
    return m
