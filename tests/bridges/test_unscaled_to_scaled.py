import numpy as np
import pytest
from tolerance import same

from mipforest.bridges import unscaled_to_scaled
from mipforest.model import Model
from mipforest.model.check import violations
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Event, Status
from mipforest.solving import solve

SOLVERS = ("highs", "scip", "gurobi")


def wide(entry: float) -> Model:
    """A model whose optimum, -1.4 at x = 1.5, needs the entry: without it, x = 0.5 is best, of value -0.4."""
    m = Model("wide")
    x, y, z = m.continuous("x"), m.continuous("y"), m.binary("z")
    m.add("box", x >= 0)
    m.add("top", x <= 10)
    m.add("floor", y >= 0)
    m.add("range", y <= 1 / entry)
    m.add("tiny", x <= entry * y + 0.5 * z)
    m.minimize(0.1 * z - x)
    return m


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("entry", [1e-8, 1e-9, 5e-10, 1e-10, 1e-12, 1e-14])
def test_an_entry_of_a_wide_column_is_not_lost(solver: str, entry: float) -> None:
    solution = solve(wide(entry), solver)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(-1.4, rel=1e-5)
    assert solution.bound == pytest.approx(-1.4, rel=1e-5)
    form = wide(entry).matrix()
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_plug_in_that_drops_the_entry_claims_no_bound(solver: str) -> None:
    plugin = get_solver(solver)
    entry = 0.5 * plugin.zero
    form = wide(entry).matrix()
    solution = plugin.solve(form, SolveSettings())
    assert solution.status is not Status.OPTIMAL
    assert not solution.bound > -1.4 + 1e-3
    assert any("column y in row tiny" in text for text in solution.warnings)


@pytest.mark.parametrize("solver", SOLVERS)
def test_infeasibility_is_not_claimed_where_the_entry_is_dropped(solver: str) -> None:
    plugin = get_solver(solver)
    entry = 0.5 * plugin.zero
    m = Model("needs y")
    y, z = m.nonnegative("y"), m.binary("z")
    m.add("range", y <= 10 / entry)
    m.add("reach", entry * y + z >= 2)
    m.minimize(z)
    solution = plugin.solve(m.matrix(), SolveSettings(solver_options=_without_presolve(solver)))
    assert solution.status is not Status.INFEASIBLE
    assert solution.bound == -np.inf


def _without_presolve(solver: str) -> dict[str, object]:
    return {"Presolve": 0} if solver == "gurobi" else {}


def test_harmless_entries_change_nothing() -> None:
    m = Model("harmless")
    x, z = m.continuous("x"), m.binary("z")
    m.add("low", x >= -1)
    m.add("high", x <= 1e-10 * z + 1)
    m.minimize(z - x)
    form = m.matrix()
    assert not unscaled_to_scaled.applies(form)
    solution = solve(m)
    assert solution.bridges == ()
    assert solution.status is Status.OPTIMAL


def test_start_and_events_are_in_the_models_own_units() -> None:
    m = wide(1e-10)
    start = {"x": np.array(1.0), "y": np.array(1e10), "z": np.array(0.0)}
    form, seen = m.matrix(), list[Event]()
    solution = solve(m, "highs", start=start, on_progress=seen.append)
    assert solution.start_objective == pytest.approx(-1.0)
    assert solution.bridges == ("unscaled_to_scaled",)
    points = [event.x for event in seen if event.x is not None]
    assert all(violations(form, x).max <= 1e-6 for x in points)


def test_scaling_rounds_nothing() -> None:
    form = wide(3e-10).matrix()
    bridged = unscaled_to_scaled.apply(form)
    assert not unscaled_to_scaled.applies(bridged.form)
    rng = np.random.default_rng(0)
    x = rng.random(form.n_columns)
    assert np.array_equal(bridged.undo(bridged.carry(np.clip(x, form.col_lower, form.col_upper))), x)
    assert same(bridged.form.objective(bridged.carry(x)), form.objective(x))


def test_integers_keep_their_units_and_rows_are_scaled_instead() -> None:
    m = Model("integers")
    k, x = m.integer("k", lower=0, upper=10**9), m.continuous("x")
    m.add("row", x <= 5e-10 * k)
    m.minimize(-x)
    form = m.matrix()
    bridged = unscaled_to_scaled.apply(form)
    assert np.array_equal(bridged.carry(np.ones(2)), np.ones(2))
    assert np.abs(bridged.form.A.data).min() > 1e-9
    assert solve(m).objective == pytest.approx(-0.5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_indicator_rows_are_scaled_too(solver: str) -> None:
    m = Model("indicator")
    y, z = m.nonnegative("y", upper=4e10), m.binary("z")
    m.add_indicator("on", z, 1, 1e-10 * y <= 1)
    m.minimize(-1e-8 * y - 500 * z)
    assert solve(m, solver).objective == pytest.approx(-600)
