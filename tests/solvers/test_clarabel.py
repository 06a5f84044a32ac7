import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from small_models import INF, model
from tolerance import at_least, at_most, same

from mipforest.errors import NotAllowed, Unsupported
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers import clarabel
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.solution import Event, Solution, Status


def solve(form: MatrixForm, **options: object) -> Solution:
    return Clarabel().solve(form, SolveSettings(**options))  # type: ignore[arg-type]


@st.composite
def feasible_quadratics(draw: st.DrawFn) -> MatrixForm:
    """Convex programmes with every kind of row and column, bounded because their box is."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = int(rng.integers(1, 7)), int(rng.integers(0, 6))
    factor, A, inside = (
        rng.normal(size=(int(rng.integers(1, n + 1)), n)),
        rng.normal(size=(m, n)),
        rng.normal(size=n),
    )
    lower_sides, upper_sides = A @ inside - rng.random(m), A @ inside + rng.random(m)
    lower_sides[rng.random(m) < 0.3] = -INF
    upper_sides[rng.random(m) < 0.3] = INF
    equal = rng.random(m) < 0.2
    lower_sides[equal] = upper_sides[equal] = (A @ inside)[equal]
    lower, upper = inside - 3 * rng.random(n), inside + 3 * rng.random(n)
    fixed = rng.random(n) < 0.2
    lower[fixed] = upper[fixed] = inside[fixed]
    maximize = draw(st.booleans())
    Q = factor.T @ factor * (-1 if maximize else 1) * draw(st.sampled_from([0.0, 1.0, 1e-3, 1e3]))
    return model(
        rng.normal(size=n),
        A,
        lower_sides,
        upper_sides,
        lower=lower,
        upper=upper,
        Q=Q,
        offset=2.0,
        maximize=maximize,
    )


@given(feasible_quadratics())
@settings(deadline=None, max_examples=15)
def test_optimum_is_feasible_and_proven_by_its_bound(form: MatrixForm) -> None:
    solution = solve(form)
    assert solution.status is Status.OPTIMAL
    assert solution.x is not None
    assert violations(form, solution.x).max <= 1e-6
    assert same(solution.objective, form.objective(solution.x))
    assert abs(solution.objective - solution.bound) <= 1e-6 * max(1.0, abs(solution.objective))
    assert (at_least if form.maximize else at_most)(solution.bound, solution.objective)


@given(feasible_quadratics())
@settings(deadline=None, max_examples=15)
def test_no_feasible_point_nearby_is_better(form: MatrixForm) -> None:
    solution = solve(form)
    assert solution.x is not None
    sign = -1.0 if form.maximize else 1.0
    gradient = form.c + (0 if form.Q is None else form.Q @ solution.x)
    A = form.A.toarray()
    # First-order optimality of a convex programme: no feasible v has gradient.(v - x) < 0.
    upper, lower = np.isfinite(form.row_upper), np.isfinite(form.row_lower)
    best = optimize.linprog(
        sign * gradient,
        A_ub=np.vstack([A[upper], -A[lower]]),
        b_ub=np.r_[form.row_upper[upper], -form.row_lower[lower]] + 1e-9,
        bounds=list(zip(form.col_lower, form.col_upper, strict=True)),
    )
    assert best.fun >= sign * gradient @ solution.x - 1e-5 * max(1.0, np.abs(gradient).max())


def test_unconstrained_minimum() -> None:
    Q, c = np.array([[2.0, 1.0], [1.0, 4.0]]), np.array([-1.0, -3.0])
    solution = solve(model(c, lower=-INF, Q=Q))
    np.testing.assert_allclose(solution.x, np.linalg.solve(Q, -c), atol=1e-9)


def test_free_rows_and_infinite_sides_play_no_part() -> None:
    form = model([1.0, 1.0], [[1.0, 1.0], [1.0, 0.0]], [-INF, 2.0], [INF, INF])
    np.testing.assert_allclose(solve(form).x, [2.0, 0.0], atol=1e-8)


def test_fixed_columns_are_substituted() -> None:
    Q = [[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    form = model(
        [1.0, 2.0, 3.0], [[1.0, 1.0, 1.0]], 2.0, 9.0, lower=[1, 0, 0], upper=[1, 5, 5], Q=Q, offset=1.0
    )
    solution = solve(form)
    # With x0 = 1: minimise x1^2 + 3 x1 + 3 x2 over x1 + x2 >= 1.
    np.testing.assert_allclose(solution.x, [1.0, 0.0, 1.0], atol=1e-4)
    assert solution.objective == pytest.approx(1 + 1 + 0.5 + 3, abs=1e-8)
    assert solution.x is not None
    assert solution.x[0] == 1.0


def test_all_columns_fixed() -> None:
    form = model([2.0], [[1.0]], 3.0, 3.0, lower=3.0, upper=3.0)
    assert solve(form).objective == 6.0
    assert solve(model([2.0], [[1.0]], 4.0, 5.0, lower=3.0, upper=3.0)).status is Status.INFEASIBLE
    assert solve(model([], offset=4.0)).objective == 4.0


@pytest.mark.parametrize(
    ("form", "status", "bound"),
    [
        (model([1.0], [[1.0]], 3.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[1.0]], 3.0, upper=1.0, maximize=True), Status.INFEASIBLE, -INF),
        (model([1.0], lower=2.0, upper=1.0), Status.INFEASIBLE, INF),
        (model([1.0], [[0.0]], 1.0, 2.0), Status.INFEASIBLE, INF),
        (model([-1.0]), Status.UNBOUNDED, -INF),
        (model([1.0], maximize=True), Status.UNBOUNDED, INF),
        (model([-1.0, -1.0], lower=-INF, Q=[[1.0, -1.0], [-1.0, 1.0]]), Status.UNBOUNDED, -INF),
    ],
)
def test_statuses_without_a_point(form: MatrixForm, status: Status, bound: float) -> None:
    solution = solve(form)
    assert solution.status is status
    assert not solution.found
    assert same(solution.bound, bound)


def test_an_unbounded_direction_of_an_infeasible_model_proves_nothing() -> None:
    form = model([-1.0, 0.0], [[0.0, 1.0]], 2.0, 3.0, upper=[INF, 1.0])
    assert solve(form).status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)


def test_time_and_iteration_limits() -> None:
    form = model([-1.0, -2.0], [[1.0, 1.0]], None, 3.0, Q=np.eye(2))
    assert solve(form, time_limit=0.0).status is Status.TIME_LIMIT
    assert solve(form, solver_options={"max_iter": 1}).status is Status.LIMIT


def test_refuses_what_it_does_not_take() -> None:
    with pytest.raises(Unsupported, match="integer variables"):
        solve(model([1.0], upper=1.0, integer=True))
    with pytest.raises(NotAllowed, match="not positive semidefinite"):
        solve(model([0.0, 0.0], upper=1.0, Q=[[1.0, 3.0], [3.0, 1.0]]))
    with pytest.raises(NotAllowed, match=r"cost of x\[0\] is nan"):
        solve(model([np.nan]))
    with pytest.raises(NotAllowed, match="quadratic objective holds 1 entries"):
        solve(model([1.0], Q=[[np.nan]]))


def test_wrong_options_are_named() -> None:
    with pytest.raises(NotAllowed, match="no option 'max_iters'; did you mean max_iter"):
        solve(model([1.0]), solver_options={"max_iters": 3})
    with pytest.raises(NotAllowed, match="max_iter = 'many'"):
        solve(model([1.0]), solver_options={"max_iter": "many"})


def test_starts_and_priorities_leave_a_warning() -> None:
    solution = Clarabel().solve(model([1.0]), SolveSettings(), start=np.zeros(1), priorities=np.ones(1, int))
    assert len(solution.warnings) == 2


def test_one_event_at_the_end() -> None:
    seen: list[Event] = []
    solution = Clarabel().solve(model([1.0], lower=2.0), SolveSettings(), on_progress=seen.append)
    assert tuple(seen) == solution.events
    assert same(seen[0].objective, solution.objective)


def test_writes_its_log_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    solve(model([1.0], lower=2.0), log=tmp_path / "solver.log")
    assert "Clarabel" in (tmp_path / "solver.log").read_text()
    assert capfd.readouterr() == ("", "")


def test_left_behind_in_an_iteration_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(clarabel, "MAX_ENTRIES_HERE", 0)
    monkeypatch.setattr("mipforest.solvers.worker.PATIENCE", 0.0)
    monkeypatch.setattr(clarabel, "_solve", lambda *_: release.wait(20))
    form = model([1.0, 1.0], [[1.0, 1.0]], [1.0], [INF], lower=[0.0, 0.0], upper=[2.0, 2.0], integer=False)
    solution = solve(form, time_limit=0.0)
    release.set()
    assert (solution.status, solution.x, solution.bound) == (Status.TIME_LIMIT, None, -INF)
    assert any("Clarabel did not stop" in warning for warning in solution.warnings)
