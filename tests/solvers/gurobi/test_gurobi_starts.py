import numpy as np
import pytest
from small_models import INF, empty_split, market_split, model
from tolerance import at_most, same

from mipforest.errors import NotAllowed
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.gurobi import Gurobi
from mipforest.solvers.solution import Solution, Status

pytest.importorskip("gurobipy")

#: Stops after the start was looked at.
ROOT = {"NodeLimit": 0}


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Gurobi().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


@pytest.mark.parametrize("maximize", [False, True])
def test_a_feasible_start_is_the_incumbent_at_once(maximize: bool) -> None:
    form = market_split(maximize=maximize)
    start = empty_split(form)
    solution = solve(form, start=start, time_limit=0.0)
    assert solution.status is Status.TIME_LIMIT
    np.testing.assert_array_equal(solution.x, start)
    assert same(solution.start_objective, form.objective(start))
    assert same(solution.start_objective, solution.objective)
    assert solution.bound == (INF if maximize else -INF)
    assert solution.warnings == ()


def test_gurobi_takes_a_feasible_start() -> None:
    form = market_split()
    start = empty_split(form)
    start[0] = 1.0
    start[~form.integer] = 0.0
    rest = form.A[:, form.integer] @ start[form.integer] - form.row_lower
    start[~form.integer] = np.r_[np.maximum(-rest, 0), np.maximum(rest, 0)]
    solution = solve(form, start=start, solver_options=ROOT)
    assert solution.warnings == ()
    assert solution.start_objective == pytest.approx(np.abs(rest).sum())
    assert at_most(solution.objective, solution.start_objective)
    assert solution.events[0].objective == pytest.approx(solution.start_objective)


@pytest.mark.parametrize("given", ["integers", "half the integers", "half of all"])
def test_a_partial_start_is_completed(given: str) -> None:
    form = market_split()
    known = form.integer & (np.arange(form.n_columns) < 20)
    if given == "integers":
        known = form.integer
    elif given == "half of all":
        known = np.arange(form.n_columns) % 2 == 0
    start = np.where(known, empty_split(form), np.nan)
    solution = solve(form, start=start, solver_options=ROOT)
    assert solution.warnings == ()
    assert np.isfinite(solution.start_objective)
    assert at_most(solution.objective, solution.start_objective)
    if given == "integers":
        assert same(solution.start_objective, form.objective(empty_split(form)))


def test_continuous_values_in_the_way_of_a_partial_start_are_left_out() -> None:
    form = market_split()
    start = np.where(form.integer, empty_split(form), np.nan)
    start[-form.n_rows :] = 1e-3  # as slack of the other side, it contradicts no row but leaves none closed
    start[form.integer.sum()] = 1.0
    solution = solve(form, start=start, solver_options=ROOT)
    assert solution.warnings == ()
    assert same(solution.start_objective, form.objective(empty_split(form)))


def test_of_an_infeasible_start_the_integers_are_kept() -> None:
    form = market_split()
    start = empty_split(form)
    start[0] = 1.0
    solution = solve(form, start=start, solver_options=ROOT)
    assert "start is infeasible (row row[0] by 85)" in solution.warnings[0]
    assert "only its integer values were kept" in solution.warnings[0]
    off = np.abs(form.A[:, form.integer] @ start[form.integer] - form.row_lower).sum()
    assert solution.start_objective == pytest.approx(off)


@pytest.mark.parametrize("start", [np.zeros(2), np.array([0.0, np.nan]), np.full(2, np.nan), np.full(2, 0.5)])
def test_a_start_without_use_is_dropped_with_a_word(start: np.ndarray) -> None:
    form = model([1.0, 1.0], [[1.0, 1.0]], 3.0, upper=2.0, integer=True)
    solution = solve(form, start=start)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == 3.0
    assert "dropped" in solution.warnings[0]
    assert np.isnan(solution.start_objective)


def test_a_continuous_model_takes_no_start_and_says_so() -> None:
    assert "start was not used" in solve(model([1.0]), start=np.zeros(1)).warnings[0]


def test_a_start_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(NotAllowed, match=r"shape \(3,\).*2 columns"):
        solve(model([1.0, 1.0], upper=1.0, integer=True), start=np.zeros(3))


def test_priorities_are_taken() -> None:
    form = market_split(3, 18)
    priorities = np.where(form.integer, np.arange(form.n_columns), 0)
    with_them = Gurobi().solve(form, SolveSettings(threads=1, gap=0.0), priorities=priorities)
    without = solve(form, threads=1, gap=0.0)
    assert with_them.warnings == ()
    assert with_them.objective == pytest.approx(without.objective)
    # The search goes another way.
    assert with_them.nodes != without.nodes
