import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from small_models import INF, enumerated, market_split, model
from tolerance import at_most, same

import mipforest
from formulations.oct import Oct
from mipforest.errors import NotAllowed, SolverError, Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.highs import STATUS, Highs, HighsSession
from mipforest.solvers.solution import Solution, Status
from mipforest.solving import solve_form


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Highs().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


# ------------------------------------------------------------------ answers


@st.composite
def integer_models(draw: st.DrawFn) -> MatrixForm:
    n, m = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sides = np.sort(rng.integers(-6, 10, (2, m)).astype(float), axis=0)
    sides[0][rng.random(m) < 0.4] = -INF
    sides[1][rng.random(m) < 0.3] = INF
    lower = rng.integers(-3, 2, n).astype(float)
    return model(
        rng.integers(-5, 6, n),
        rng.integers(-3, 4, (m, n)),
        *sides,
        lower=lower,
        upper=lower + rng.integers(0, 4, n),
        integer=True,
        offset=float(rng.integers(-9, 9)),
        maximize=draw(st.booleans()),
    )


@given(integer_models())
@settings(deadline=None, max_examples=15)
def test_integer_optimum_is_the_best_of_all_points(form: MatrixForm) -> None:
    solution, best = solve(form, gap=0.0), enumerated(form)
    if best is None:
        assert solution.status is Status.INFEASIBLE
        assert solution.x is None
        assert solution.bound == (-INF if form.maximize else INF)
        return
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert solution.objective == pytest.approx(best)
    assert solution.bound == pytest.approx(best)
    assert violations(form, solution.x).max == 0
    assert same(form.objective(solution.x), solution.objective)


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=15)
def test_linear_optimum_agrees_with_scipy(seed: int, maximize: bool) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6), rng.integers(1, 6)
    A, inside = rng.normal(size=(m, n)), rng.random(n)
    lower_sides, upper_sides = A @ inside - rng.random(m), A @ inside + rng.random(m)
    form = model(rng.normal(size=n), A, lower_sides, upper_sides, upper=2.0, offset=1.5, maximize=maximize)
    sign = -1 if maximize else 1
    expected = optimize.linprog(
        sign * form.c,
        A_ub=np.vstack([A, -A]),
        b_ub=np.r_[upper_sides, -lower_sides],
        bounds=(0, 2),
        method="highs-ipm",
    )
    solution = solve(form)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(sign * expected.fun + 1.5, abs=1e-7)
    assert same(solution.bound, solution.objective)


def test_mixed_integer_optimum_agrees_with_scipy() -> None:
    rng = np.random.default_rng(7)
    A = rng.integers(0, 20, (5, 12)).astype(float)
    integer = np.arange(12) < 8
    form = model(-rng.integers(1, 20, 12), A, None, A.sum(axis=1) / 3, upper=1.0, integer=integer)
    expected = optimize.milp(
        form.c,
        constraints=optimize.LinearConstraint(A, -np.inf, form.row_upper),
        bounds=optimize.Bounds(0, 1),
        integrality=integer,
    )
    assert solve(form, gap=0.0).objective == pytest.approx(expected.fun)


def test_values_come_by_block() -> None:
    solution = solve(model([1.0, 1.0], [[1.0, 1.0]], 3.0, lower=1.0, upper=2.0, integer=True))
    np.testing.assert_array_equal(np.sort(solution["x"]), [1.0, 2.0])


# ------------------------------------------------------------------ statuses and edge cases


@pytest.mark.parametrize(
    ("form", "status", "bound"),
    [
        (model([1.0], [[1.0]], 3.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 3.0, upper=1.0, maximize=True), Status.INFEASIBLE, -INF),
        (model([1.0], lower=2.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 2.0, 1.0), Status.INFEASIBLE, INF),
        (model([1.0], lower=0.2, upper=0.8, integer=True), Status.INFEASIBLE, INF),
        (model([-1.0]), Status.UNBOUNDED, -INF),
        (model([1.0], maximize=True), Status.UNBOUNDED, INF),
        (model([-1.0], integer=True), Status.INFEASIBLE_OR_UNBOUNDED, -INF),
    ],
)
def test_statuses_without_a_point(form: MatrixForm, status: Status, bound: float) -> None:
    solution = solve(form)
    assert solution.status is status
    assert not solution.found
    assert same(solution.bound, bound)
    assert np.isnan(solution.objective)


def test_no_rows() -> None:
    assert solve(model([1.0, -1.0], lower=-1.0, upper=2.0, offset=3.0)).objective == 0.0


def test_no_columns() -> None:
    assert solve(model([], offset=3.0)).objective == 3.0
    assert solve(model([], np.zeros((1, 0)), -1.0, 1.0, offset=3.0)).status is Status.OPTIMAL
    assert solve(model([], np.zeros((1, 0)), 1.0, 2.0)).status is Status.INFEASIBLE


def test_empty_rows_and_columns() -> None:
    A = [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    solution = solve(model([1.0, 1.0, 2.0], A, [-1.0, 2.0], [1.0, INF], integer=[True, True, False]))
    np.testing.assert_allclose(solution.x, [2.0, 0.0, 0.0])


def test_every_status_of_highs_is_known() -> None:
    import highspy

    errors = {
        "kNotset",
        "kLoadError",
        "kModelError",
        "kPresolveError",
        "kSolveError",
        "kPostsolveError",
        "kUnknown",
    }
    empty = {"kModelEmpty"}  # models without columns never reach HiGHS
    assert set(highspy.HighsModelStatus.__members__) == STATUS.keys() | errors | empty


def test_node_limit() -> None:
    solution = solve(market_split(), solver_options={"mip_max_nodes": 1})
    assert solution.status is Status.LIMIT
    assert solution.found


# ------------------------------------------------------------------ refusals


def test_refuses_what_it_never_takes() -> None:
    with pytest.raises(Unsupported, match="convex quadratic objective with integers"):
        solve(model([1.0], upper=1.0, integer=True, Q=[[1.0]]))
    with pytest.raises(Unsupported, match="convex quadratic objective without integers"):
        solve(model([1.0], upper=1.0, Q=[[1.0]]))
    one = np.ones(1)
    row = IndicatorRows(np.zeros(1, int), np.ones(1, int), sparse.csr_array([[1.0]]), one, one)
    with pytest.raises(Unsupported, match="indicator rows"):
        solve(replace(model([1.0], upper=1.0, integer=True), indicators=row))


@pytest.mark.parametrize(
    ("form", "named"),
    [
        (model([1.0, INF]), r"cost of x\[1\] is inf"),
        (model([1.0, np.nan]), r"cost of x\[1\] is nan"),
        (model([1.0], upper=1e25), r"upper bound of x\[0\] is 1e\+25"),
        (model([1.0], lower=INF), r"lower bound of x\[0\] is inf"),
        (model([1.0], [[1.0], [1.0]], [0.0, np.nan]), r"lower side of row\[1\] is nan"),
        (model([1.0], [[np.inf]], 0.0), "matrix holds 1 entries"),
    ],
)
def test_refuses_numbers_that_are_none(form: MatrixForm, named: str) -> None:
    with pytest.raises(NotAllowed, match=named):
        solve(form)


def test_passes_on_why_highs_refuses_a_model() -> None:
    with pytest.raises(SolverError, match=r"HiGHS refuses the model: .*1e\+15"):
        solve(model([1.0], [[1e16]], 0.0, 1.0))


def test_writes_nothing_to_the_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    solve(model([1.0], [[1.0]], 0.0, 1.0, integer=True))
    assert capfd.readouterr() == ("", "")


def test_warns_of_coefficients_that_highs_drops() -> None:
    warnings = solve(model([1.0], [[1e-10]], 0.0, 1.0)).warnings
    assert any("ignored" in text for text in warnings)


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mip_rel_gapp": 1}, "no option 'mip_rel_gapp'; did you mean mip_rel_gap"),
        ({"mip_rel_gap": -1}, "mip_rel_gap = -1.*below lower bound"),
        ({"mip_rel_gap": "x"}, "mip_rel_gap = 'x'"),
        ({"presolve": "onn"}, "presolve = 'onn'"),
        ({"mip_max_nodes": 1.5}, "mip_max_nodes = 1.5"),
        ({"solve_relaxation": True}, "solve_relaxation"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(NotAllowed, match=message):
        solve(model([1.0]), solver_options=options)


def test_takes_numpy_scalars_as_options() -> None:
    assert solve(model([1.0]), solver_options={"threads": np.int64(1), "mip_rel_gap": np.float64(0)}).found


def test_writes_its_log_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "solver.log"
    solve(market_split(2, 6), log=log)
    assert "Solving report" in log.read_text()
    assert capfd.readouterr() == ("", "")


def test_refuses_a_log_that_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match=r"absent.*No such file"):
        solve(model([1.0]), log=tmp_path / "absent" / "solver.log")


def test_the_number_of_threads_can_change() -> None:
    form = market_split(2, 10)
    values = [solve(form, threads=threads).objective for threads in (1, 2, 1)]
    assert values[0] == pytest.approx(values[1]) == pytest.approx(values[2])


def test_no_thread_outlives_a_solve() -> None:
    before = threading.active_count()
    solve(market_split(2, 10), threads=2)
    assert threading.active_count() == before


def test_the_same_seed_gives_the_same_run() -> None:
    form = market_split(3, 20)
    runs = [solve(form, seed=3, threads=1, solver_options={"mip_max_nodes": 300}) for _ in range(2)]
    assert runs[0].nodes == runs[1].nodes
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_a_looser_gap_stops_earlier() -> None:
    form = market_split(3, 20, offset=1000.0)
    loose = solve(form, gap=0.2)
    assert loose.status is Status.OPTIMAL
    assert loose.gap <= 0.2
    assert loose.nodes < 1000


# ------------------------------------------------------------------ honesty


def test_a_point_beyond_the_tolerance_leaves_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HighsSession, "point", property(lambda _: np.array([0.9])))
    solution = solve(model([1.0], [[1.0]], 1.0))
    assert "violates row row[0] by 0.1" in solution.warnings[-1]


def test_integers_come_exact() -> None:
    form = market_split()
    solution = solve(form, time_limit=0.5)
    assert solution.x is not None
    np.testing.assert_array_equal(solution.x[form.integer], np.round(solution.x[form.integer]))


def test_a_solve_leaves_nothing_behind(monkeypatch):
    # Some hundreds of models each, with their callbacks, stayed in memory: a fit solves many small ones.
    made = []
    ready = HighsSession.load
    monkeypatch.setattr(
        HighsSession, "load", lambda self, form: made.append(weakref.ref(self)) or ready(self, form)
    )
    solve(model([1.0], [[1.0]], 0.5, upper=3.0, integer=True))
    gc.collect()
    assert made
    assert [session() for session in made] == [None]


# ------------------------------------------------------------------ left behind


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let HiGHS hang at its end, and nobody be patient with it."""
    monkeypatch.setattr("mipforest.solvers.worker.PATIENCE", 0.0)
    release, run = threading.Event(), HighsSession._run

    def hang(session: HighsSession) -> object:
        status = run(session)
        release.wait(20)
        return status

    monkeypatch.setattr(HighsSession, "_run", hang)
    yield
    release.set()


@pytest.mark.usefixtures("late")
def test_left_behind_it_keeps_what_it_had_told() -> None:
    form = market_split(3, 20)
    solution = solve(form, time_limit=1.0, solver_options={"mip_max_nodes": 30})
    told = [event for event in solution.events if np.isfinite(event.objective)]
    assert solution.status is Status.TIME_LIMIT
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-6
    assert same(solution.objective, form.objective(solution.x))
    assert form.objective(solution.x) == pytest.approx(told[-1].objective)
    assert same(solution.bound, solution.events[-1].bound)
    assert at_most(solution.events[-1].bound, solution.objective)
    assert any("did not stop" in warning for warning in solution.warnings)


@pytest.mark.usefixtures("late")
def test_left_behind_it_keeps_the_start() -> None:
    form = model([1.0], [[1.0]], [0.5], [INF], lower=[0.0], upper=[9.0], integer=True)
    solution = solve(form, np.array([7.0]), time_limit=0.0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.objective <= 7.0


@pytest.mark.usefixtures("late")
def test_a_continuous_model_left_behind_has_no_bound() -> None:
    form = model([1.0], [[1.0]], [0.5], [INF], lower=[0.0], upper=[9.0], integer=False)
    solution = solve(form, time_limit=0.0)
    assert (solution.status, solution.x, solution.bound) == (Status.TIME_LIMIT, None, -INF)


@pytest.mark.slow
def test_presolve_has_the_stack_that_long_chains_of_rows_need() -> None:
    """HiGHS 1.16 ends the process by SIGSEGV within the 8 MiB of a usual stack."""
    data = mipforest.load("synthetic:tree,depth=3,n=50000,p=2,classes=2,label_noise=0.1")
    problem = Oct(alpha=0.005).build(data, 2)
    limits = SolveSettings(time_limit=20, threads=1, isolate=True)
    solution = solve_form(problem.model.matrix(), Highs(), limits)
    assert solution.status is Status.TIME_LIMIT, solution.message
