"""Models with indicator rows and known answers."""

from __future__ import annotations

import numpy as np

from mipforest.model import Model, VarArray, between
from mipforest.testing.conformance.case import Cases
from mipforest.testing.conformance.linear import INFEASIBLE

cases = Cases()


def _switch(on: int, **bounds: float) -> tuple[Model, VarArray, VarArray]:
    """Return a model with one continuous variable and a binary one that equals ``on``."""
    m = Model()
    x, z = m.continuous("x", **{"lower": 0.0, "upper": 10.0, **bounds}), m.binary("z")
    m.add("state", 1.0 * z == on)
    return m, x, z


@cases.optimum(3.0)
def indicator_on_at_one() -> Model:
    m, x, z = _switch(on=1)
    m.maximize(x)
    m.add_indicator("if", z, 1, 1.0 * x <= 3)
    return m


@cases.optimum(10.0)
def indicator_off_at_zero() -> Model:
    m, x, z = _switch(on=0)
    m.maximize(x)
    m.add_indicator("if", z, 1, 1.0 * x <= 3)
    return m


@cases.optimum(3.0)
def indicator_on_at_zero() -> Model:
    m, x, z = _switch(on=0)
    m.maximize(x)
    m.add_indicator("if", z, 0, 1.0 * x <= 3)
    return m


@cases.optimum(10.0)
def indicator_off_at_one() -> Model:
    m, x, z = _switch(on=1)
    m.maximize(x)
    m.add_indicator("if", z, 0, 1.0 * x <= 3)
    return m


@cases.optimum(2.0)
def indicator_range_lower_side() -> Model:
    m, x, z = _switch(on=1)
    m.minimize(x)
    m.add_indicator("if", z, 1, between(2.0, x, 4.0))
    return m


@cases.optimum(4.0)
def indicator_range_upper_side() -> Model:
    m, x, z = _switch(on=1)
    m.maximize(x)
    m.add_indicator("if", z, 1, between(2.0, x, 4.0))
    return m


@cases.optimum(2.5)
def indicator_equality_from_below() -> Model:
    m, x, z = _switch(on=1)
    m.minimize(x)
    m.add_indicator("if", z, 1, 1.0 * x == 2.5)
    return m


@cases.optimum(2.5)
def indicator_equality_from_above() -> Model:
    m, x, z = _switch(on=0)
    m.maximize(x)
    m.add_indicator("if", z, 0, 1.0 * x == 2.5)
    return m


@cases.optimum(5.0, x=3.0, z=1.0)
def indicator_choice() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=10.0), m.binary("z")
    m.minimize(x + 2 * z)
    m.add_indicator("cheap", z, 1, 1.0 * x >= 3)
    m.add_indicator("dear", z, 0, 1.0 * x >= 6)
    return m


@cases.optimum(8.0, x=[2.0, 6.0], z=[1.0, 0.0])
def indicator_array() -> Model:
    m = Model()
    x, z = m.nonnegative("x", 2, upper=10.0), m.binary("z", 2)
    m.minimize(x.sum())
    m.add("one", z.sum() == 1)
    m.add_indicator("low", z, 1, 1.0 * x >= [2.0, 5.0])
    m.add_indicator("high", z, 0, 1.0 * x >= [7.0, 6.0])
    return m


@cases.optimum(5.0)
def indicator_on_an_unbounded_variable() -> Model:
    m, x, z = _switch(on=1, lower=-np.inf, upper=np.inf)
    m.minimize(x)
    m.add_indicator("if", z, 1, 1.0 * x >= 5)
    return m


@cases.optimum(0.0, z=0.0)
def indicator_row_that_never_holds() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=1.0), m.binary("z")
    m.maximize(z)
    m.add_indicator("if", z, 1, 0 * x >= 1)
    return m


@cases.optimum(1.0)
def indicator_row_over_its_own_binary() -> Model:
    m, x, z = _switch(on=1)
    m.maximize(x)
    m.add_indicator("if", z, 1, x + 2 * z <= 3)
    return m


@cases.ends(*INFEASIBLE)
def indicator_infeasible() -> Model:
    m, x, z = _switch(on=1, upper=3.0)
    m.minimize(x)
    m.add_indicator("if", z, 1, 1.0 * x >= 5)
    return m


@cases.optimum(-1.0, x=1.0, z=1.0)
def indicator_with_quadratic_objective() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=10.0), m.binary("z")
    m.minimize((x - 4) ** 2 - 10 * z)
    m.add_indicator("if", z, 1, 1.0 * x <= 1)
    return m
