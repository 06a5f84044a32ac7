"""Small models with known optima: linear, quadratic, mixed-integer, and with indicator rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model import Model, Relation, VarArray, between, sum_squares
from mipforest.model.matrix import MatrixForm
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


@cases.optimum(7.0, take=[1.0, 1.0, 0.0])
def mip_knapsack() -> Model:
    m = Model()
    take = m.binary("take", 3)
    m.maximize([3.0, 4.0, 5.0] @ take)
    m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    return m


@cases.optimum(3.0)
def mip_vertex_cover_of_a_pentagon() -> Model:
    m = Model()
    x = m.binary("x", 5)
    m.minimize(x.sum())
    m.add("edges", x + x[np.arange(-1, 4)] >= 1)
    return m


@cases.optimum(5.0)
def mip_assignment() -> Model:
    m = Model()
    x = m.binary("x", (3, 3))
    cost = np.array([4.0, 1.0, 3.0, 2.0, 0.0, 5.0, 3.0, 2.0, 2.0])
    m.minimize(cost @ x.reshape(9))
    m.add("rows", x.sum(axis=1) == 1)
    m.add("columns", x.sum(axis=0) == 1)
    return m


@cases.optimum(10.8, k=3.0, y=0.9)
def mip_mixed() -> Model:
    m = Model()
    k, y = m.integer("k", lower=0, upper=5), m.nonnegative("y", upper=1.5)
    m.maximize(3 * k + 2 * y)
    m.add("capacity", 2 * k + y <= 6.9)
    return m


@cases.optimum(-2.0, x=-2.0)
def mip_negative_integers() -> Model:
    m = Model()
    x = m.integer("x", lower=-10, upper=10)
    m.minimize(x)
    m.add("least", 2 * x >= -5)
    return m


@cases.optimum(-2.0)
def mip_free_integers() -> Model:
    m = Model()
    x = m.integer("x", 2)
    m.minimize(x[0])
    m.add("sum", x.sum() == 1)
    m.add("most", 2 * x[1] <= 7)
    return m


@cases.optimum(3.0, x=[1.0, 2.0])
def mip_fractional_bounds() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=0.3, upper=2.7)
    m.maximize([-1.0, 2.0] @ x)
    return m


@cases.ends(*INFEASIBLE)
def mip_no_integer_between_the_bounds() -> Model:
    m = Model()
    m.minimize(m.integer("x", lower=0.2, upper=0.8))
    return m


@cases.optimum(4.0, x=[1.0, 0.0, 3.0])
def mip_fixed_integers() -> Model:
    m = Model()
    x = m.integer("x", 3, lower=[1.0, 0.0, 0.0], upper=[1.0, 0.0, 5.0])
    m.minimize(x.sum())
    m.add("sum", 2 * x.sum() >= 7)
    return m


@cases.optimum(-4.0, x=[1.0, 3.0])
def mip_no_rows() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=[1.0, -3.0], upper=[4.0, 3.0])
    m.minimize([2.0, -2.0] @ x)
    return m


@cases.optimum(3.0)
def mip_columns_that_nothing_reads() -> Model:
    m = Model()
    m.integer("x", 2, lower=[1.5, -7.0], upper=[2.5, -1.0])
    m.maximize(3.0)
    return m


@cases.optimum(17.0)
def mip_constant_in_maximised_objective() -> Model:
    m = Model()
    take = m.binary("take", 3)
    m.maximize([3.0, 4.0, 5.0] @ take + 10)
    m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    return m


@cases.optimum(0.0)
def mip_zero_objective() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=0, upper=9)
    m.add("sum", [3.0, 5.0] @ x == 14)
    return m


@cases.optimum(103.0, z=1.0, x=3.0)
def mip_big_m() -> Model:
    m = Model()
    x, z = m.nonnegative("x"), m.binary("z")
    m.minimize(x + 100 * z)
    m.add("least", 1.0 * x >= 3)
    m.add("switch", x <= 1e4 * z)
    return m


@cases.ends(*INFEASIBLE)
def mip_infeasible_only_for_integers() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=0, upper=10)
    m.minimize(x.sum())
    m.add("parity", 2 * x[0] - 2 * x[1] == 1)
    return m


@cases.ends(*UNBOUNDED)
def mip_unbounded() -> Model:
    m = Model()
    x = m.integer("x", 2, lower=0)
    m.maximize(x.sum())
    m.add("difference", x[0] - x[1] == 1)
    return m


def market_split(
    rows: int = 6, columns: int = 40, *, maximize: bool = False, offset: float = 0.0
) -> MatrixForm:
    """Split integer weights into halves as evenly as possible (Cornuejols and Dawande, 1999).

    Parameters
    ----------
    rows, columns
        Number of equations, and of binary variables.
    maximize
        Maximise the negated objective.
    offset
        Constant of the objective.
    """
    weights = np.random.default_rng(0).integers(0, 100, (rows, columns)).astype(float)
    m = Model("market split")
    x = m.binary("x", columns)
    missing, excess = m.nonnegative("missing", rows), m.nonnegative("excess", rows)
    uneven = missing.sum() + excess.sum()
    if maximize:
        m.maximize(offset - uneven)
    else:
        m.minimize(offset + uneven)
    m.add("row", weights @ x + missing - excess == np.floor(weights.sum(axis=1) / 2))
    return m.matrix()


def empty_split(form: MatrixForm) -> FloatArray:
    """Return the feasible point of a market split that takes nothing."""
    point = form.to_point({"missing": form.row_lower, "excess": np.zeros(form.n_rows)})
    return np.nan_to_num(point, nan=0.0)


def _switched(
    on: int, value: int, row: Callable[[VarArray], Relation], *, maximize: bool = True, **bounds: float
) -> Model:
    """Return a model whose binary equals ``on``; where it is ``value``, a row of the one other variable holds."""
    m = Model()
    x = m.continuous("x", lower=bounds.get("lower", 0.0), upper=bounds.get("upper", 10.0))
    z = m.binary("z")
    m.add("state", 1.0 * z == on)
    (m.maximize if maximize else m.minimize)(x)
    m.add_indicator("if", z, value, row(x))
    return m


@cases.optimum(3.0)
def indicator_on_at_one() -> Model:
    return _switched(1, 1, lambda x: 1.0 * x <= 3)


@cases.optimum(10.0)
def indicator_off_at_zero() -> Model:
    return _switched(0, 1, lambda x: 1.0 * x <= 3)


@cases.optimum(3.0)
def indicator_on_at_zero() -> Model:
    return _switched(0, 0, lambda x: 1.0 * x <= 3)


@cases.optimum(10.0)
def indicator_off_at_one() -> Model:
    return _switched(1, 0, lambda x: 1.0 * x <= 3)


@cases.optimum(2.0)
def indicator_range_lower_side() -> Model:
    return _switched(1, 1, lambda x: between(2.0, x, 4.0), maximize=False)


@cases.optimum(4.0)
def indicator_range_upper_side() -> Model:
    return _switched(1, 1, lambda x: between(2.0, x, 4.0))


@cases.optimum(2.5)
def indicator_equality_from_below() -> Model:
    return _switched(1, 1, lambda x: 1.0 * x == 2.5, maximize=False)


@cases.optimum(2.5)
def indicator_equality_from_above() -> Model:
    return _switched(0, 0, lambda x: 1.0 * x == 2.5)


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
    return _switched(1, 1, lambda x: 1.0 * x >= 5, maximize=False, lower=-np.inf, upper=np.inf)


@cases.optimum(0.0, z=0.0)
def indicator_row_that_never_holds() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=1.0), m.binary("z")
    m.maximize(z)
    m.add_indicator("if", z, 1, 0 * x >= 1)
    return m


@cases.optimum(1.0)
def indicator_row_over_its_own_binary() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=10.0), m.binary("z")
    m.add("state", 1.0 * z == 1)
    m.maximize(x)
    m.add_indicator("if", z, 1, x + 2 * z <= 3)
    return m


@cases.ends(*INFEASIBLE)
def indicator_infeasible() -> Model:
    return _switched(1, 1, lambda x: 1.0 * x >= 5, maximize=False, upper=3.0)


@cases.optimum(-1.0, x=1.0, z=1.0)
def indicator_with_quadratic_objective() -> Model:
    m = Model()
    x, z = m.nonnegative("x", upper=10.0), m.binary("z")
    m.minimize((x - 4) ** 2 - 10 * z)
    m.add_indicator("if", z, 1, 1.0 * x <= 1)
    return m
