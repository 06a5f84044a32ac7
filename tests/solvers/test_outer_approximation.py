from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from miqp_models import INF, miqp
from tolerance import at_most, less, same

from mipforest.errors import NotAllowed
from mipforest.model.check import violations
from mipforest.settings import SolveSettings
from mipforest.solvers import outer_approximation
from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Event, Solution, Status


def solve(form, start=None, on_progress=None, linear=None, **options):
    options = SolveSettings(**{"gap": 1e-6, **options})
    return outer_approximation.solve_by_tangents(
        form, linear or Highs(), Clarabel(), options, start=start, on_progress=on_progress
    )


def enumerated(form):
    """Optimal value over the integer grid, the continuous part by a convex solve; ``None`` if infeasible."""
    k = np.flatnonzero(form.integer)
    ranges = [np.arange(a, b + 1) for a, b in zip(form.col_lower[k], form.col_upper[k], strict=True)]
    values = []
    for point in product(*ranges):
        lower, upper = form.col_lower.copy(), form.col_upper.copy()
        lower[k] = upper[k] = point
        rest = replace(form, col_lower=lower, col_upper=upper, integer=np.zeros(len(lower), dtype=bool))
        if len(k) == form.n_columns:
            values += [form.objective(lower)] if violations(form, lower).max <= 1e-9 else []
        else:
            solution = Clarabel().solve(rest, SolveSettings())
            values += [solution.objective] if solution.status is Status.OPTIMAL else []
    if not values:
        return None
    return max(values) if form.maximize else min(values)


@st.composite
def miqps(draw, feasible=True):
    """Small convex MIQPs: diagonal or with cross terms, of any rank; some have columns outside Q."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = int(rng.integers(1, 5)), int(rng.integers(0, 3))
    integer = rng.random(n) < draw(st.sampled_from([0.5, 1.0]))
    integer[0] = True
    if draw(st.booleans()):
        Q = np.diag(rng.integers(0, 4, n).astype(float))
    else:
        factor = rng.normal(size=(int(rng.integers(1, n + 1)), n)) * (rng.random(n) < 0.8)
        Q = factor.T @ factor
    Q[0, 0] += 1.0
    lower = rng.integers(-3, 1, n).astype(float)
    upper = lower + rng.integers(0, 4, n)
    A = rng.integers(-3, 4, (m, n)).astype(float)
    inside = np.round(rng.uniform(lower, upper))
    activity = A @ inside if feasible else A @ inside + rng.integers(-2, 3, m)
    maximize = draw(st.booleans())
    return miqp(
        rng.normal(scale=3, size=n),
        -Q if maximize else Q,
        lower,
        upper,
        integer,
        A=A,
        row_lower=np.where(rng.random(m) < 0.5, -INF, activity - 1),
        row_upper=np.where(rng.random(m) < 0.3, INF, activity),
        offset=float(rng.integers(-50, 50)),
        maximize=maximize,
    )


def assert_bound_holds(form, bound, best):
    slack = 1e-6 * max(1.0, abs(best))
    assert bound >= best - slack if form.maximize else bound <= best + slack


@given(miqps())
@settings(max_examples=20)
def test_optimum_is_the_best_of_the_grid(form):
    best, solution = enumerated(form), solve(form)
    assert solution.status is Status.OPTIMAL, solution.warnings
    assert solution.bridges == ("quadratic_to_tangents",)
    assert solution.objective == pytest.approx(best, rel=2e-6, abs=1e-7)
    assert same(solution.objective, form.objective(solution.x))
    assert violations(form, solution.x).max <= 1e-6
    np.testing.assert_array_equal(solution.x[form.integer], np.round(solution.x[form.integer]))
    assert_bound_holds(form, solution.bound, best)


@given(miqps(feasible=False))
@settings(max_examples=12)
def test_infeasible_models_are_told(form):
    best, solution = enumerated(form), solve(form)
    if best is None:
        assert solution.status is Status.INFEASIBLE
        assert not solution.found
        assert solution.bound == (-INF if form.maximize else INF)
    else:
        assert solution.objective == pytest.approx(best, rel=2e-6, abs=1e-7)


@given(miqps(), st.sampled_from([0.0, 1e-3, 5e-3, 2e-2]))
@settings(max_examples=15)
def test_bound_and_events_hold_whenever_time_is_up(form, limit):
    best, seen = enumerated(form), []
    solution = solve(form, time_limit=limit, on_progress=seen.append)
    sign = -1 if form.maximize else 1
    assert solution.status in (Status.OPTIMAL, Status.TIME_LIMIT)
    for event in seen:
        assert_bound_holds(form, event.bound, best)
        assert not sign * event.objective < sign * best - 1e-6 * max(1, abs(best))
        if event.x is not None:
            assert form.objective(event.x) == pytest.approx(event.objective)
    for a, b in pairwise(solution.events):
        assert not sign * b.bound < sign * a.bound - 1e-6 * max(1, abs(best))
        assert not less(sign * a.objective, sign * b.objective)  # nan where there is none
        assert b.seconds >= a.seconds
    last = solution.events[-1]
    # exact: a copy
    assert (last.bound, repr(last.objective)) == (solution.bound, repr(float(last.objective)))


def knapsack(n=14, *, maximize=False, seed=0):
    """Choose half of the items, with a quadratic cost that couples them: several rounds, many nodes."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(5, n))
    sign = -1.0 if maximize else 1.0
    Q = factor.T @ factor
    return miqp(
        sign * rng.normal(size=n), sign * Q, 0, 1, True, A=np.ones((1, n)), row_lower=n // 2,
        row_upper=n // 2, offset=20.0, maximize=maximize,
    )  # fmt: skip


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("maximize", [pytest.param(False, marks=pytest.mark.slow), True])  # the signs turned
def test_equals_scip_in_few_rounds(maximize):
    pytest.importorskip("pyscipopt")
    pytest.importorskip("gurobipy")
    from independent_routes import scip_optimum

    form, counting = knapsack(maximize=maximize), Counting()
    solution = solve(form, linear=counting)
    minimised = outer_approximation._as_minimisation(form)
    expected = scip_optimum(minimised)
    assert solution.objective == pytest.approx(-expected if maximize else expected, rel=1e-5)
    assert solution.gap <= 1e-6
    assert counting.calls <= 40


class Counting(Highs):
    """HiGHS that counts its calls."""

    calls = 0

    def solve(self, *args, **kwargs):
        self.calls += 1
        return super().solve(*args, **kwargs)


def test_separable_models_take_few_rounds():
    rng = np.random.default_rng(0)
    n, counting = 12, Counting()
    integer = np.arange(n) < 6
    A = rng.normal(size=(4, n))
    form = miqp(rng.normal(size=n), np.eye(n), -5, 5, integer, A=A, row_lower=1.0)
    assert solve(form, linear=counting, gap=1e-4).status is Status.OPTIMAL
    assert counting.calls <= 5


def test_a_huge_bound_gives_no_huge_coefficients():
    form = miqp([-2.5], [[1.0]], -1e15, 1e15, True)
    assert solve(form).objective == pytest.approx(-3.0)


# ------------------------------------------------------------------ unbounded, stops, starts


def test_unbounded_models():
    Q = [[1.0, 0.0], [0.0, 0.0]]
    form = miqp([0.0, -1.0], Q, -INF, INF, [True, False])
    without, known = solve(form), solve(form, start=np.zeros(2))
    assert without.status is Status.INFEASIBLE_OR_UNBOUNDED
    assert known.status is Status.UNBOUNDED
    assert known.bound == -INF
    assert without.bound == -INF
    assert solve(replace(form, c=-form.c, Q=-form.Q, maximize=True)).bound == INF


def test_integers_without_bounds_and_a_flat_direction():
    # (x - y)^2 / 2 - 0.6 (x - y): flat along x = y; best at x - y = 1.
    form = miqp([-0.6, 0.6], [[1.0, -1.0], [-1.0, 1.0]], -INF, INF, True)
    solution = solve(form)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(-0.1)


def test_stopping_keeps_the_incumbent():
    form = knapsack()
    start = (np.arange(14) < 7).astype(float)
    solution = solve(form, start=start, on_progress=lambda event: True)
    assert solution.status is Status.INTERRUPTED
    assert same(solution.objective, form.objective(start))
    assert same(solution.objective, solution.start_objective)
    later = solve(form, on_progress=lambda event: np.isfinite(event.objective), gap=0.0)
    assert later.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert later.found


def test_without_time_the_start_is_given_back():
    form = knapsack(maximize=True)
    start = (np.arange(14) < 7).astype(float)
    solution = solve(form, start=start, time_limit=0.0)
    assert solution.status is Status.TIME_LIMIT
    np.testing.assert_array_equal(solution.x, start)
    assert solution.bound == INF


class Raising(Highs):
    """HiGHS that hears Ctrl-C."""

    def solve(self, *args, **kwargs):
        raise KeyboardInterrupt


class RaisingQuadratic(Clarabel):
    def solve(self, *args, **kwargs):
        raise KeyboardInterrupt


def test_options_that_no_solver_has_seen_leave_a_warning():
    form = knapsack(maximize=True)
    solution = solve(form, time_limit=0.0, solver_options={"nosuch": 1})
    assert solution.warnings == (
        "the options nosuch of highs were not used: the run ended before its first linear model",
    )
    with pytest.raises(NotAllowed, match="nosuch"):
        solve(form, solver_options={"nosuch": 1})


def test_ctrl_c_between_solves_keeps_the_start():
    form, start = knapsack(), (np.arange(14) < 7).astype(float)
    solution = outer_approximation.solve_by_tangents(
        form, Highs(), RaisingQuadratic(), SolveSettings(), start=start
    )
    assert solution.status is Status.INTERRUPTED
    np.testing.assert_array_equal(solution.x, start)
    with pytest.raises(KeyboardInterrupt):
        solve(form, start=start, linear=Raising())


class StoppedLate(Highs):
    """Hears of a stop only after it has come to an end of its own."""

    rounds = 0

    def solve(self, *args, **kwargs):
        self.rounds += 1
        found = super().solve(*args, **kwargs)
        return replace(found, bound=found.bound - 1.0, stopped=True)


def test_a_stop_that_comes_in_one_round_is_known_in_the_next():
    linear = StoppedLate()
    solution = solve(knapsack(), linear=linear)
    assert linear.rounds == 1
    assert solution.status is Status.INTERRUPTED
    assert solution.stopped


class Claiming(Solver):
    """A linear solver that claims what it is told to."""

    name, package, install = "claiming", "numpy", "numpy"
    features = frozenset({Feature.LP, Feature.MIP})

    def __init__(self, status, bound=-INF, event=None):
        self.status, self.bound, self.event = status, bound, event

    def version(self):
        return "1"

    def solve(self, form, options, *, start=None, priorities=None, on_progress=None):
        if self.event is not None:
            on_progress(self.event)
        return Solution(self.status, None, {}, np.nan, self.bound, 0, 0.0, self.name, "1")


def test_a_claim_against_a_known_point_is_no_proof():
    form, start = knapsack(), (np.arange(14) < 7).astype(float)
    best = solve(form).objective
    for status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED):
        solution = solve(form, start=start, linear=Claiming(status, INF))
        assert solution.status is Status.ERROR
        assert "a feasible point is known" in solution.message
        assert at_most(solution.bound, best)
        assert at_most(solution.objective, form.objective(start))
    # The relaxation's optimum, halves, does not round to a point of the model.
    form = miqp([0.0, 0.0], np.eye(2), 0, 1, True, A=[[1.0, 1.0]], row_lower=1, row_upper=1)
    assert solve(form, linear=Claiming(Status.INFEASIBLE, INF)).status is Status.INFEASIBLE
    assert solve(form, linear=Claiming(Status.INFEASIBLE_OR_UNBOUNDED)).status is Status.INFEASIBLE
    assert solve(form, linear=Claiming(Status.UNBOUNDED)).status is Status.ERROR


def test_an_infinite_bound_of_a_finished_search_counts_as_its_own_incumbent():
    form, start = knapsack(), (np.arange(14) < 7).astype(float)
    best = solve(form).objective
    # The linear incumbent may lie below the true one, and all that is above it was cut off.
    event = Event(0.0, best - 1.0, INF)
    solution = solve(form, start=start, linear=Claiming(Status.TIME_LIMIT, INF, event))
    assert solution.status is Status.TIME_LIMIT
    assert at_most(solution.bound, best)


def test_starts():
    form = miqp([1.0, -3.0], np.eye(2), [0, 0], [3, 9], [True, False], A=[[1.0, 1.0]], row_lower=2.0)
    full = solve(form, start=np.array([1.0, 3.0]))
    assert same(full.start_objective, form.objective(np.array([1.0, 3.0])))
    assert full.warnings == ()
    completed = solve(form, start=np.array([1.0, np.nan]))
    assert completed.start_objective == pytest.approx(form.objective(np.array([1.0, 3.0])))
    assert completed.warnings == ()
    repaired = solve(form, start=np.array([1.0, 0.5]))
    assert same(repaired.start_objective, completed.start_objective)
    assert "only its integer values were kept" in repaired.warnings[0]
    for wrong in ([1.4, 3.0], [7.0, 3.0]):
        dropped = solve(form, start=np.array(wrong))
        assert "start dropped" in dropped.warnings[0]
        assert np.isnan(dropped.start_objective)
    open_integers = solve(form, start=np.array([np.nan, 3.0]))
    assert open_integers.objective == pytest.approx(full.objective)
    assert solve(form, start=np.array([np.nan, 3.0]), linear=NoPartialStarts()).warnings
    with pytest.raises(NotAllowed, match=r"shape \(3,\).*2 columns"):
        solve(form, start=np.zeros(3))


class NoPartialStarts(Highs):
    features = Highs.features - {Feature.PARTIAL_START}


def test_refuses_nonconvex_objectives():
    with pytest.raises(NotAllowed, match="not convex"):
        solve(miqp([0.0, 0.0], [[1.0, 3.0], [3.0, 1.0]], 0, 1, True))
    with pytest.raises(NotAllowed, match="not convex"):
        solve(miqp([0.0], [[1.0]], 0, 1, True, maximize=True))


def test_priorities_reach_the_linear_solver():
    seen = []

    class Listening(Highs):
        def solve(self, form, options, *, start=None, priorities=None, on_progress=None):
            seen.append((form.n_columns, priorities))
            return super().solve(form, options, start=start, on_progress=on_progress)

    outer_approximation.solve_by_tangents(
        knapsack(), Listening(), Clarabel(), SolveSettings(), priorities=np.arange(14, dtype=np.int64)
    )
    n_columns, priorities = seen[0]
    assert len(priorities) == n_columns
    assert priorities[:14].tolist() == list(range(14))
