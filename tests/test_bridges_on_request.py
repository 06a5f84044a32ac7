"""Bridges that a user asks for although the solver takes the model as it is."""

import numpy as np
import pytest

from mipforest.errors import NotAllowed
from mipforest.model import Model, sum_squares
from mipforest.settings import SolveSettings
from mipforest.solving import solve

pytest.importorskip("gurobipy")

BOTH = ("indicator_to_big_m", "quadratic_to_tangents")


def model() -> Model:
    """Minimise (x - 2.6)^2 - 2 z, where z = 1 forbids x > 1.4: best is z = 0 with x = 2.6 or z = 1."""
    m = Model("both")
    x, z = m.continuous("x", lower=0, upper=5), m.binary("z")
    m.add_indicator("cap", z, 1, x <= 1.4)
    m.minimize(sum_squares(x - 2.6) - 2 * z)
    return m


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ((), ()),
        ("quadratic", BOTH),  # tangents take no indicator rows
        (["indicator"], ("indicator_to_big_m",)),
        (("quadratic", "indicator"), BOTH),
        ({"indicator", "quadratic"}, BOTH),
        (("indicator", "indicator"), ("indicator_to_big_m",)),
    ],
)
def test_what_is_asked_is_rewritten_and_the_optimum_stays(asked, used) -> None:
    solution = solve(model(), "gurobi", bridges=asked, gap=1e-8)
    assert solution.bridges == used
    assert solution.solver == "gurobi"
    assert solution.objective == pytest.approx(1.2**2 - 2, abs=1e-6)


def test_a_model_without_such_a_part_stays_as_it_is() -> None:
    m = Model()
    x = m.integer("x", 2, lower=0, upper=3)
    m.maximize(x.sum())
    solution = solve(m, "gurobi", bridges=("quadratic", "indicator"))
    assert solution.bridges == ()
    assert solution.warnings == ()
    assert solution.objective == 6.0


def test_a_continuous_quadratic_goes_where_it_goes_for_solvers_without_quadratics() -> None:
    m = Model()
    x = m.continuous("x", 2, lower=0, upper=3)
    m.minimize(sum_squares(x - np.array([1.0, 5.0])))
    assert solve(m, "gurobi").solver == "gurobi"
    assert solve(m, "gurobi", bridges="quadratic").solver == "clarabel"


def test_an_unknown_bridge_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotAllowed, match=r"no bridge named 'quadratics'; did you mean 'quadratic'\?"):
        solve(model(), "gurobi", bridges="quadratics")
    with pytest.raises(NotAllowed, match="known: quadratic, indicator"):
        SolveSettings(bridges=("zzz",))
