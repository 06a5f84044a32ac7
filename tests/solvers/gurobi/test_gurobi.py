import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from small_models import INF, market_split, model
from strategies_forms import forms, small_integer_forms
from tolerance import at_least, at_most, same

from mipforest.bridges import indicator_to_big_m
from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import needed
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.convexity import is_convex
from mipforest.solvers.gurobi import Gurobi
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Solution, Status

gurobipy = pytest.importorskip("gurobipy")

#: Moderate numbers, for models that every solver can tell apart.
NUMBERS = st.integers(-12, 12).map(lambda k: k / 4)


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Gurobi().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


def best_of_all_points(form: MatrixForm) -> float:
    """Optimal value of a feasible model of a few bounded integers."""
    ranges = [np.arange(low, high + 1) for low, high in zip(form.col_lower, form.col_upper, strict=True)]
    points = [np.array(point) for point in product(*ranges)]
    values = [form.objective(x) for x in points if violations(form, x).max == 0]
    return max(values) if form.maximize else min(values)


# ------------------------------------------------------------------ answers


@given(st.booleans(), st.booleans(), st.data())
def test_integer_optimum_is_the_best_of_all_points(quadratic: bool, indicators: bool, data) -> None:
    form = data.draw(small_integer_forms(quadratic=quadratic, indicators=indicators))
    solution = solve(form, gap=0.0)
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-9
    assert solution.objective == pytest.approx(best_of_all_points(form), abs=1e-9)
    assert same(solution.objective, form.objective(solution.x))
    assert solution.bound == pytest.approx(solution.objective, abs=1e-6)


@given(forms(NUMBERS))
def test_agrees_with_the_other_solvers(form: MatrixForm) -> None:
    form = replace(form, Q=None)
    other = Clarabel() if not form.is_mip else Highs()
    bridged = indicator_to_big_m.apply(bounded(form)).form if form.indicators.n_rows else form
    form = bounded(form) if form.indicators.n_rows else form
    ours, theirs = solve(form, gap=0.0), other.solve(bridged, SolveSettings(gap=0.0))
    unclear = Status.INFEASIBLE_OR_UNBOUNDED
    if unclear not in (ours.status, theirs.status) and theirs.status is not Status.ERROR:
        assert ours.status is theirs.status
    assert ours.status is not Status.ERROR
    if theirs.status is Status.OPTIMAL:
        assert ours.objective == pytest.approx(theirs.objective, abs=1e-5)
        assert ours.x is not None
        assert violations(form, ours.x).max <= 1e-6


def bounded(form: MatrixForm) -> MatrixForm:
    """The model within a box, where every big-M is finite."""
    return replace(
        form, col_lower=np.maximum(form.col_lower, -20.0), col_upper=np.minimum(form.col_upper, 20.0)
    )


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_continuous_quadratics_agree_with_clarabel(seed: int, maximize: bool, boxed: bool) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(0, 6))
    factor, A, inside = (
        rng.normal(size=(int(rng.integers(1, n + 1)), n)),
        rng.normal(size=(m, n)),
        rng.random(n),
    )
    reach = 3.0 if boxed else INF
    form = model(
        rng.normal(size=n),
        A,
        A @ inside - rng.random(m),
        A @ inside + rng.random(m),
        lower=-reach,
        upper=reach,
        Q=factor.T @ factor * (-1 if maximize else 1),
        offset=2.0,
        maximize=maximize,
    )
    ours, theirs = solve(form), Clarabel().solve(form, SolveSettings())
    if theirs.status is Status.ERROR:
        return
    assert ours.status is theirs.status
    if theirs.x is not None:
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6, abs=1e-6)
        assert (at_least if maximize else at_most)(ours.bound, ours.objective)
        assert ours.bound == pytest.approx(ours.objective, rel=1e-6, abs=1e-6)


def test_a_nonconvex_objective_is_solved_to_its_global_optimum() -> None:
    form = model([0.0, 0.0], [[1.0, 1.0]], 1.0, 3.0, upper=2.0, Q=[[0.0, 1.0], [1.0, 0.0]], maximize=True)
    assert not is_convex(form)
    solution = solve(form)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(2.25, abs=1e-3)
    assert solution.bound == pytest.approx(2.25, abs=1e-3)
    mixed = solve(replace(form, integer=np.ones(2, bool)))
    assert mixed.objective == pytest.approx(2.0)


# ------------------------------------------------------------------ rows


def switched(value: int, lower: float, upper: float, *, maximize: bool) -> MatrixForm:
    """Maximise (or minimise) x in [-9, 9], where the binary column 1 switches on lower <= x <= upper."""
    row = IndicatorRows(
        np.ones(1, int),
        np.array([value]),
        sparse.csr_array([[1.0, 0.0]]),
        np.array([lower]),
        np.array([upper]),
    )
    form = model([1.0, 0.0], lower=[-9, 0], upper=[9, 1], integer=[False, True], maximize=maximize)
    return replace(form, indicators=row)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("lower", "upper"), [(-2.0, 3.0), (1.0, 1.0), (-INF, 3.0), (-2.0, INF)])
def test_both_sides_of_an_indicator_row_hold_when_it_is_on_and_only_then(
    value: int, maximize: bool, lower: float, upper: float
) -> None:
    form = switched(value, lower, upper, maximize=maximize)
    off, on = (
        replace(form, col_lower=np.array([-9.0, v]), col_upper=np.array([9.0, v])) for v in (1 - value, value)
    )
    assert solve(off).objective == (9.0 if maximize else -9.0)
    assert same(solve(on).objective, min(9.0, upper) if maximize else max(-9.0, lower))


def test_sides_of_range_rows_are_exact() -> None:
    lower, upper = 0.1, 1e9 + 0.1
    form = model([1.0], [[1.0]], lower, upper, lower=-INF)
    assert same(solve(form).objective, lower)
    assert same(solve(replace(form, maximize=True)).objective, upper)


# ------------------------------------------------------------------ statuses


@pytest.mark.parametrize(
    ("form", "status", "bound"),
    [
        (model([1.0], [[1.0]], 3.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 3.0, upper=1.0, maximize=True), Status.INFEASIBLE, -INF),
        (model([1.0], lower=2.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[0.0]], 2.0, 3.0), Status.INFEASIBLE, INF),
        (model([1.0], lower=0.2, upper=0.8, integer=True), Status.INFEASIBLE, INF),
        (model([-1.0]), Status.UNBOUNDED, -INF),
        (model([1.0], maximize=True), Status.UNBOUNDED, INF),
        (model([-1.0], integer=True), Status.UNBOUNDED, -INF),
        (model([-1.0, -1.0], lower=-INF, Q=[[1.0, -1.0], [-1.0, 1.0]]), Status.UNBOUNDED, -INF),
        (model([-1.0, 0.0], [[0.0, 1.0]], 2.0, 3.0, upper=[INF, 1.0]), Status.INFEASIBLE, INF),
        (model([-1.0, 0.0], [[2.0, 3.0]], 2.0, upper=[INF, 1.0], integer=True), Status.UNBOUNDED, -INF),
    ],
)
def test_statuses_without_a_point(form: MatrixForm, status: Status, bound: float) -> None:
    solution = solve(form)
    assert solution.status is status
    assert not solution.found
    assert same(solution.bound, bound)
    assert np.isnan(solution.objective)
    # Of the model without an objective, which decides between infeasible and unbounded, no bound is told.
    assert not any(np.isfinite(event.bound) for event in solution.events)


def test_an_infinite_point_is_none() -> None:
    solution = solve(model([-1.0], integer=True), solver_options={"DualReductions": 0})
    assert solution.status is Status.UNBOUNDED
    assert not solution.found


def test_every_status_of_gurobi_is_known() -> None:
    from mipforest.solvers.gurobi.session import STATUS

    errors = {"LOADED", "INPROGRESS", "NUMERIC"}
    assert {name for name in dir(gurobipy.GRB.Status) if name.isupper()} <= STATUS.keys() | errors


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"NodeLimit": 1}, "node limit"),
        ({"SolutionLimit": 1}, "solution limit"),
        ({"WorkLimit": 0.05}, "work limit"),
        ({"BestObjStop": 1000.0}, "user obj limit"),
        ({"IterationLimit": 20}, "iteration limit"),
        ({"SoftMemLimit": 1e-4}, "mem limit"),
        ({"MemLimit": 0.002}, "out of memory"),
    ],
)
def test_limits_keep_the_incumbent(option: dict[str, float], message: str) -> None:
    form = market_split()
    solution = solve(form, threads=1, solver_options=option)
    assert solution.status is Status.LIMIT
    assert solution.message == message
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-6
    assert at_most(solution.bound, solution.objective)


def test_a_cutoff_below_the_optimum_leaves_nothing() -> None:
    form = model([1.0, 2.0], [[1.0, 1.0]], 1.0, upper=4.0, integer=True)
    solution = solve(form, solver_options={"Cutoff": 0.5})
    assert solution.status is Status.LIMIT
    assert not solution.found


def test_models_without_columns_or_rows() -> None:
    assert solve(model([], offset=3.0)).objective == 3.0
    assert solve(model([], np.zeros((1, 0)), 1.0, 2.0)).status is Status.INFEASIBLE
    assert solve(model([1.0, -1.0], lower=-1.0, upper=2.0, offset=3.0)).objective == 0.0
    assert solve(model([1.0], [[1.0], [0.0]], [-INF, -INF], INF)).objective == 0.0


# ------------------------------------------------------------------ options and refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"NodLimit": 1}, "Gurobi has no option 'NodLimit'; did you mean NodeLimit"),
        ({"softmemlimits": 1}, "did you mean SoftMemLimit"),
        ({"Node*": 1}, "no option 'Node"),
        ({"MIPFocus": 9}, "MIPFocus = 9.*maximum is 3"),
        ({"Threads": 1.5}, "Threads = 1.5: it takes a whole number"),
        ({"NodeLimit": "many"}, "NodeLimit = 'many': it takes a number"),
        ({"Heuristics": np.nan}, "Heuristics is nan"),
        ({"LogFile": 3}, "LogFile = 3: it takes a text"),
        ({"SolutionLimit": 10**12}, "SolutionLimit"),
        ({"WLSSecret": "x"}, "belongs in the licence file"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(NotAllowed, match=message):
        solve(model([1.0]), solver_options=options)


def test_a_seed_beyond_gurobis_is_refused() -> None:
    with pytest.raises(NotAllowed, match="Seed = 3000000000"):
        solve(model([1.0]), seed=3_000_000_000)


def test_options_are_taken_whatever_their_case_and_number_type() -> None:
    options = {"mipfocus": np.int64(1), "Heuristics": np.float64(0), "NodeLimit": 10.0}
    assert solve(market_split(2, 6), solver_options=options).found


@pytest.mark.parametrize(
    ("form", "named"),
    [
        (model([1.0, np.nan]), r"cost of x\[1\] is nan"),
        (model([1.0], upper=1e25), r"upper bound of x\[0\] is 1e\+25"),
        (model([1.0], [[np.inf]], 0.0), "matrix holds 1 entries"),
    ],
)
def test_refuses_numbers_that_are_none(form: MatrixForm, named: str) -> None:
    with pytest.raises(NotAllowed, match=named):
        solve(form)


def test_refusing_convexity_is_refused() -> None:
    form = model([0.0, 0.0], upper=2.0, Q=[[0.0, 1.0], [1.0, 0.0]], maximize=True)
    with pytest.raises(NotAllowed, match="leave out the option NonConvex"):
        solve(form, solver_options={"NonConvex": 0})


def test_writes_its_log_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "solver.log"
    form = market_split(2, 6)
    solve(form, log=log)
    once = len(log.read_text())
    solve(form, log=log, threads=1)
    assert "Optimize a model with 2 rows, 10 columns" in log.read_text()
    assert len(log.read_text()) > once
    assert capfd.readouterr() == ("", "")


def test_refuses_a_log_that_it_cannot_write(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotAllowed, match=r"absent.*No such file"):
        solve(model([1.0]), log=tmp_path / "absent" / "solver.log")
    assert capfd.readouterr() == ("", "")


def test_the_same_seed_gives_the_same_run() -> None:
    form = market_split(4, 20)
    runs = [solve(form, seed=3, threads=1, solver_options={"NodeLimit": 300}) for _ in range(2)]
    assert runs[0].nodes == runs[1].nodes
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_a_looser_gap_stops_earlier() -> None:
    solution = solve(market_split(3, 20, offset=1000.0), gap=0.2)
    assert solution.status is Status.OPTIMAL
    assert 1e-6 < solution.gap <= 0.2


def test_integers_come_exact_through_a_big_m() -> None:
    form = model([1.0, 0.0], [[-1e5, 1.0]], None, 0.0, lower=[0, 0.5], upper=[1, 9], integer=[True, False])
    solution = solve(form)
    np.testing.assert_array_equal(solution.x[0], 1.0)
    assert solution.objective == 1.0


def test_coefficients_that_gurobi_doubts_leave_a_warning() -> None:
    form = model([1.0, 1.0], [[1e13, 1e-3]], 1.0, upper=1.0, integer=True)
    assert any("coefficient" in text for text in solve(form).warnings)


def test_takes_every_feature() -> None:
    form = switched(1, -2.0, 3.0, maximize=False)
    assert needed(replace(form, Q=sparse.eye_array(2, format="csr"))) <= Gurobi.features


def test_listing_solvers_does_not_import_it() -> None:
    program = (
        "import sys; from mipforest.solvers.base import solver_classes; "
        "print(solver_classes()['gurobi'].available(), 'gurobipy' in sys.modules)"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr
