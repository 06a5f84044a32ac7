import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipforest.bridges import indicator_to_big_m
from mipforest.errors import NotAllowed, SolverUnavailable, Unsupported
from mipforest.model import Model, sum_squares
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.highs import Highs
from mipforest.solving import solve


def quadratic(*, integer):
    m = Model("q")
    x = m.integer("x", 2, lower=-5, upper=5) if integer else m.continuous("x", 2, lower=-5, upper=5)
    m.minimize(sum_squares(x - 0.4))
    m.add("sum", x.sum() >= 1.5)
    return m


def switched(*, reach=10.0):
    """Maximise x, where z = 1 forbids x > 1 and pays 3."""
    m = Model("switched")
    x, z = m.continuous("x", lower=0, upper=reach), m.binary("z")
    m.add_indicator("cap", z, 1, x <= 1)
    m.maximize(x + 3 * z)
    return m


def test_continuous_quadratics_go_to_clarabel():
    solution = solve(quadratic(integer=False))
    assert solution.solver == "clarabel"
    assert solution.objective == pytest.approx(2 * 0.35**2)
    assert solution.warnings == ()
    told = solve(quadratic(integer=False), solver_options={"presolve": "off"})
    assert "presolve of highs were not used" in told.warnings[0]


def test_integer_quadratics_are_bridged():
    solution = solve(quadratic(integer=True))
    assert solution.solver == "highs"
    assert solution.bridges == ("quadratic_to_tangents",)
    assert solution.objective == pytest.approx(0.72)


def test_indicators_are_bridged_alone_and_with_a_quadratic():
    assert solve(switched()).bridges == ("indicator_to_big_m",)
    assert solve(switched()).objective == pytest.approx(10.0)
    assert solve(switched(reach=3.0)).objective == pytest.approx(4.0)
    m = switched(reach=3.0)
    m.maximize(m["x"] + 3 * m["z"] - 0.5 * (m["x"] * m["x"]))
    both = solve(m)
    assert both.bridges == ("indicator_to_big_m", "quadratic_to_tangents")
    assert both.objective == pytest.approx(3.5)


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_indicator_models_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    m = Model()
    x, z = m.integer("x", 3, lower=-2, upper=2), m.binary("z", 2)
    a, side, value = rng.integers(-3, 4, (2, 3)).astype(float), rng.integers(-2, 3, 2), rng.integers(0, 2)
    cost = rng.normal(size=5)
    m.add_indicator("if", z, int(value), a @ x <= side)
    m.minimize(cost[:3] @ x + cost[3:] @ z)
    grid = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3, *[[0, 1]] * 2), -1).reshape(-1, 5)
    holds = ((grid[:, 3:] != value) | (grid[:, :3] @ a.T <= side)).all(axis=1)
    solution = solve(m, gap=0.0)
    assert solution.objective == pytest.approx((grid[holds] @ cost).min())
    assert m.violations(solution.x).max <= 1e-6


def test_a_point_off_the_indicator_rows_leaves_a_warning(monkeypatch):
    m = switched()
    identity = indicator_to_big_m.apply

    def shifted(form):
        bridged = identity(form)
        return type(bridged)(bridged.form, lambda x: np.array([4.0, 1.0]), bridged.carry)

    monkeypatch.setattr(indicator_to_big_m, "apply", shifted)
    warning = solve(m).warnings[-1]
    assert "indicator row cap" in warning
    assert "by 3, above the tolerance" in warning


def test_starts_reach_every_route():
    m = switched(reach=3.0)
    m.set_start({"x": np.array(2.0), "z": np.array(0.0)})
    assert solve(m).start_objective == 2.0
    assert solve(m, start={"x": np.array(1.0), "z": np.array(1.0)}).start_objective == 4.0
    q = quadratic(integer=True)
    assert solve(q, start={"x": np.array([5.0, 5.0])}).start_objective == pytest.approx(2 * 4.6**2)


def test_priorities_leave_a_word_where_they_are_not_taken():
    m = switched()
    m.set_priority("z", 3)
    assert any("priorities" in text for text in solve(m).warnings)


def test_what_no_bridge_helps_is_refused():
    with pytest.raises(Unsupported, match=r"clarabel takes no .*integer"):
        solve(quadratic(integer=True), Clarabel())
    with pytest.raises(Unsupported, match="no finite big-M"):
        solve(switched(reach=np.inf))
    with pytest.raises(SolverUnavailable, match="did you mean"):
        solve(switched(), "hihgs")
    with pytest.raises(NotAllowed, match="gap is -1"):
        solve(switched(), gap=-1)


def test_a_solver_object_will_do():
    assert solve(switched(), Highs()).solver == "highs"
