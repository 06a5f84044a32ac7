"""Values, duals and reduced costs of the last solution."""

import numpy as np
import pytest
from tolerance import same

from formulations.oct import Oct
from mipforest import Model, between, load, solve, sum_squares
from mipforest.errors import ModelError
from mipforest.files import read_mps

#: Interior-point duals are those of the optimum up to about the square root of Clarabel's and Gurobi's accuracy.
DUALS = 1e-4


def diet(maximize=False):
    m = Model()
    x = m.nonnegative("x", ["oats", "milk", "eggs"], upper=4)
    m.add("energy", [110.0, 160.0, 180.0] @ x >= 600, over=())
    m.add("protein", between(20, [4.0, 8.0, 13.0] @ x, 90))
    cost = [3.0, 9.0, 13.0] @ x
    (m.maximize if maximize else m.minimize)(-cost if maximize else cost)
    return m


def test_values_of_variables_and_expressions():
    m = diet()
    solution = solve(m)
    x = m["x"]
    assert same(x.value, solution["x"])
    assert same(x["oats"].value, solution["x"][0])
    assert isinstance(x["oats"].value, float)
    assert same((2 * x + 1).value, 2 * solution["x"] + 1)
    assert same(sum_squares(x).value, (solution["x"] ** 2).sum())
    assert same(m.objective(m["x"].value), solution.objective)
    x.upper = 3
    assert same(x.value, solution["x"])  # of the last solution, not of the model as it is


def test_what_has_no_value_says_why():
    m = diet()
    with pytest.raises(
        ModelError, match=r"there is no value yet: the model was not solved; call mipforest.solve"
    ):
        m["x"].value  # noqa: B018
    with pytest.raises(ModelError, match="no dual yet"):
        m.constraints["energy"].dual  # noqa: B018
    solve(m)
    with pytest.raises(ModelError, match="new was added after the last solve"):
        m.binary("new").value  # noqa: B018
    with pytest.raises(ModelError, match="'late' was added after the last solve"):
        m.add("late", m["x"] <= 3).dual  # noqa: B018
    with pytest.raises(ModelError, match="was not solved"):
        m.copy()["x"].value  # noqa: B018
    solve(m)
    with pytest.raises(ModelError, match="integer variables"):
        m["x"].reduced_cost  # noqa: B018
    m.add("impossible", m["x"].sum() <= -1)
    solve(m)
    with pytest.raises(
        ModelError, match=r"ended without a point \(infeasible\); model.explain_infeasibility"
    ):
        m["x"].value  # noqa: B018


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("solver", ["highs", "gurobi", "clarabel"])
def test_duals_are_rates_of_change(solver, maximize):
    m = diet(maximize)
    value = solve(m, solver).objective
    dual, cost = m.constraints["energy"].dual, m["x"].reduced_cost
    assert m.constraints["protein"].dual == pytest.approx(0, abs=DUALS)
    for change in (-0.5, 0.5):
        m.constraints["energy"].lower = 600 + change
        assert solve(m, solver).objective - value == pytest.approx(change * dual, abs=DUALS)
        m.constraints["energy"].lower = 600
    m["x"]["oats"].upper = 4.1
    assert solve(m, solver).objective - value == pytest.approx(0.1 * cost[0], abs=DUALS)


@pytest.mark.parametrize("solver", ["gurobi", "clarabel"])
def test_duals_of_a_quadratic_model(solver):
    m = Model()
    x = m.continuous("x", 2)
    m.add("sum", x.sum() == 2)
    m.minimize(sum_squares(x))
    solve(m, solver)
    assert m.constraints["sum"].dual == pytest.approx(2, abs=DUALS)
    assert x.reduced_cost == pytest.approx(np.zeros(2), abs=DUALS)


def test_rows_of_indicators_have_no_duals():
    m = diet()
    solve(m)
    block = m.add_indicator("if", m.binary("b"), 1, m["x"]["oats"] <= 1)
    with pytest.raises(ModelError, match="have no duals"):
        block.dual  # noqa: B018


def test_a_problem_keeps_the_values_of_its_tree():
    problem = Oct().build(load("iris").take(range(40, 60)), 1)
    result = problem.solve("highs", time_limit=10)
    for name, values in result.solution.values.items():
        assert same(problem.model[name].value, values)


def test_a_model_writes_itself(tmp_path):
    m = diet()
    m.write(tmp_path / "diet.mps")
    assert same(read_mps(tmp_path / "diet.mps").A.toarray(), m.matrix().A.toarray())
    m.write(tmp_path / "diet.lp.gz")
    with pytest.raises(ValueError, match=r"end the name in"):
        m.write(tmp_path / "diet.txt")
