"""Solvers behind Pyomo: their names, options, warnings and errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from small_models import enumerated, market_split, model
from strategies_forms import small_integer_forms
from tolerance import same

from mipforest.errors import LicenseLimit, NotAllowed, SolverError, SolverUnavailable, Unsupported
from mipforest.model.check import violations
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature, get_solver
from mipforest.solvers.pyomo import native_options
from mipforest.solvers.solution import Event, Status
from mipforest.solving import solve_form

pytest.importorskip("pyomo.environ")


def solver(name: str = "highs"):
    try:
        return get_solver(f"pyomo:{name}")
    except SolverUnavailable as error:
        pytest.skip(str(error))


@given(small_integer_forms(quadratic=False, indicators=False))
@settings(max_examples=15)
def test_the_optimum_is_the_best_of_all_points(form) -> None:
    solution = solver("appsi_highs").solve(form, SolveSettings(gap=0.0))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(enumerated(form))
    assert violations(form, solution.x).max == 0


@given(small_integer_forms(quadratic=True, indicators=True))
@settings(max_examples=10)
def test_bridges_serve_it_as_any_other_solver(form) -> None:
    through = solve_form(form, solver("highs"), SolveSettings())
    direct = solve_form(form, get_solver("highs"), SolveSettings())
    assert through.objective == pytest.approx(direct.objective, abs=1e-6)


def test_an_unknown_or_absent_name_tells_what_is_found() -> None:
    for name in ("nonsense", "baron"):
        with pytest.raises(SolverUnavailable, match=f"Pyomo has no solver '{name}'.*found here: .*highs"):
            get_solver(f"pyomo:{name}")
    with pytest.raises(SolverUnavailable, match="needs the name of Pyomo's solver: pyomo:NAME; found here"):
        get_solver("pyomo")


def test_other_solvers_take_nothing_behind_a_colon() -> None:
    with pytest.raises(SolverUnavailable, match="'highs' takes no ':fast'"):
        get_solver("highs:fast")
    with pytest.raises(SolverUnavailable, match=r"no solver named 'pyom:highs'; did you mean pyomo"):
        get_solver("pyom:highs")


def test_features_are_those_of_the_interface() -> None:
    highs, gurobi = solver("highs"), solver("gurobi_direct")
    assert highs.name == "pyomo:highs"
    assert highs.features == {Feature.LP, Feature.MIP}
    assert gurobi.features == {Feature.LP, Feature.MIP, Feature.QP, Feature.MIQP}
    with pytest.raises(Unsupported, match="pyomo:highs takes no convex quadratic"):
        highs.solve(model([1.0], upper=1.0, integer=True, Q=[[1.0]]), SolveSettings())


def test_common_options_get_the_solvers_own_names() -> None:
    options = SolveSettings(time_limit=5.5, gap=0.01, threads=2, seed=7, solver_options={"mip_rel_gap": 0.2})
    assert native_options("appsi_highs", options) == (
        {"mip_rel_gap": 0.2, "threads": 2, "random_seed": 7},
        5.5,
        [],
    )
    settings_of_gurobi = {"MIPGap": 0.01, "Threads": 2, "Seed": 7, "TimeLimit": 5.5, "mip_rel_gap": 0.2}
    assert native_options("gurobi_persistent", options) == (settings_of_gurobi, None, [])
    assert native_options("cbc", options)[1] == 6


def test_what_is_not_passed_on_leaves_a_warning() -> None:
    _, seconds, warnings = native_options("xpress_direct", SolveSettings(time_limit=5.0, threads=2, seed=7))
    assert seconds == 5.0
    assert [text.split()[0] for text in warnings] == ["gap", "threads", "seed", "the"]
    assert native_options("glpk", SolveSettings(threads=2))[2] == [
        "threads = 2 was not passed on: its name in glpk is not known here; set it through solver_options"
    ]


def test_starts_and_priorities_leave_warnings() -> None:
    form = model([1.0], upper=3.0, integer=True)
    solution = solver().solve(form, SolveSettings(), start=np.zeros(1), priorities=np.ones(1, int))
    assert len(solution.warnings) == 2


def test_an_option_that_the_solver_refuses_is_named() -> None:
    with pytest.raises(NotAllowed, match="interface scip_direct fails with the options limits/gapp = 1: "):
        solver("scip_direct").solve(model([1.0]), SolveSettings(solver_options={"limits/gapp": 1}))


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        ("no such luck", SolverError, "interface highs fails: RuntimeError: no such luck"),
        ("Model too large for size-limited license", LicenseLimit, "size-limited license; use a licence for"),
    ],
)
def test_an_interface_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, reason, kind, message) -> None:
    from mipforest.solvers.pyomo import session

    class Broken:
        def solve(self, *_, **__):
            raise RuntimeError(reason)

    plugin = solver()
    monkeypatch.setattr(session, "SolverFactory", lambda name: Broken())
    with pytest.raises(kind, match=message):
        plugin.solve(model([1.0]), SolveSettings())


def test_columns_that_no_row_reads_get_a_value_within_their_bounds() -> None:
    form = model(
        [1.0, 0.0, 0.0, 0.0],
        [[1.0, 0.0, 0.0, 0.0]],
        1.5,
        lower=[0.0, 2.5, -9.0, 0.25],
        upper=[9.0, 7.0, -3.5, 0.75],
        integer=[False, True, True, False],
    )
    solution = solver().solve(form, SolveSettings())
    np.testing.assert_allclose(solution.x, [1.5, 3.0, -4.0, 0.25])


def test_one_event_tells_the_outcome() -> None:
    seen: list[Event] = []
    solution = solver().solve(market_split(2, 8), SolveSettings(), on_progress=seen.append)
    assert len(seen) == 1
    assert same([seen[0].objective, seen[0].bound], [solution.objective, solution.bound])


def test_problems_are_solved_by_its_name() -> None:
    from mipforest import Model, solve

    m = Model()
    take = m.binary("take", ["lamp", "rope", "tent"])
    m.maximize([3.0, 4.0, 5.0] @ take)
    m.add("weight", [2.0, 3.0, 4.0] @ take <= 5)
    solver("highs")
    solution = solve(m, "pyomo:highs")
    assert (solution.objective, solution.solver) == (7.0, "pyomo:highs")
