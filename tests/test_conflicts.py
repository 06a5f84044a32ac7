"""Rows that contradict each other are found, whoever is asked, and none of them can be left out."""

import numpy as np
import pytest

from mipforest import Model, solve
from mipforest.conflicts import explain_infeasibility
from mipforest.errors import ModelError

SOLVERS = ("highs", "gurobi", "scip", "clarabel")


def linear(solver="highs"):
    m = Model()
    x = m.nonnegative("x", 3, upper=5)
    m.add("least", x.sum() >= 16)
    m.add("other", x[0] - x[1] <= 14)
    return m


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_row_against_bounds(solver):
    found = linear().explain_infeasibility(solver)
    assert found.blocks == ("least",)
    assert found.bounds == ("x[0] <= 5", "x[1] <= 5", "x[2] <= 5")
    assert found.irreducible
    assert str(found).startswith(
        "1 row and 3 bounds cannot hold together (a smallest set): least: x[0] + x[1]"
    )


@pytest.mark.parametrize("solver", ["highs", "gurobi", "scip"])
def test_rows_that_contradict_each_other_only_for_integers(solver):
    m = Model()
    x = m.binary("x", ["a", "b", "c"])
    m.add("harmless", x.sum() <= 3)
    m.add("pairs", x[["a", "b"]].sum() == 1)
    m.add("alike", x["a"] == x["b"])
    found = m.explain_infeasibility(solver)
    assert [row.name for row in found.rows] == ["alike", "pairs"]
    assert [row.text for row in found.rows] == ["x[a] - x[b] = 0", "x[a] + x[b] = 1"]
    assert not found.bounds
    assert found.irreducible


@pytest.mark.parametrize("solver", ["highs", "gurobi", "scip"])
def test_indicator_rows_take_part(solver):
    m = Model()
    x, z = m.continuous("x", 2, lower=0, upper=5), m.binary("z")
    m.add_indicator("if_on", z, 1, x.sum() >= 11)
    m.add("harmless", x[0] <= x[1])
    m.add("on", z >= 1)
    found = m.explain_infeasibility(solver)
    assert {row.text for row in found.rows} == {"z >= 1", "z = 1 => x[0] + x[1] >= 11"}


def test_fixed_variables_are_named_as_bounds():
    m = Model()
    z = m.binary("z", 3)
    m.add("some", z.sum() >= 1)
    z.fix(0)
    found = m.explain_infeasibility()
    assert found.bounds == ("z[0] <= 0", "z[1] <= 0", "z[2] <= 0")


def test_bounds_alone():
    m = Model()
    m.integer("k", lower=0.3, upper=0.7)
    assert m.explain_infeasibility().bounds == ("0.3 <= k <= 0.7, integer",)


def test_a_row_without_variables():
    m = Model()
    x = m.nonnegative("x", 2)
    m.add("never", 0 * x[0] >= 1)
    assert m.explain_infeasibility().blocks == ("never",)


@pytest.mark.parametrize("seed", range(10))
def test_no_row_of_a_conflict_can_be_left_out(seed):
    rng = np.random.default_rng(seed)
    m = Model()
    x = m.binary("x", 5)
    while solve(m).found:
        coefficients = rng.integers(-2, 3, 5)
        m.add(f"r{len(m.constraints)}", coefficients @ x >= rng.integers(1, 4))
    found = m.explain_infeasibility()
    assert found.irreducible
    for left_out in (None, *found.blocks):
        rest = m.copy()
        for name in m.constraints:
            if name not in found.blocks or name == left_out:
                rest.remove(name)
        assert solve(rest).found == (left_out is not None)


def test_a_model_with_a_solution_is_refused():
    m = linear()
    m.remove("least")
    with pytest.raises(ModelError, match="the model has a solution: highs found one"):
        explain_infeasibility(m)


def test_what_is_not_known_in_time_is_said():
    m = Model()
    x = m.integer("x", 2)
    m.add("parity", 2 * x[0] - 2 * x[1] == 1)  # no solver without presolve ends
    with pytest.raises(ModelError, match="did not find out"):
        explain_infeasibility(m, time_limit=0.0)


def test_a_set_that_is_not_reduced_is_not_called_a_smallest(monkeypatch):
    monkeypatch.setattr("mipforest.time_budget.TimeBudget.expired", True)
    found = linear().explain_infeasibility("clarabel")  # which has no means of its own
    assert set(found.blocks) == {"least", "other"}
    assert "perhaps not a smallest set" in str(found)
