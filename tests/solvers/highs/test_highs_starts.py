import numpy as np
import pytest
from small_models import empty_split, market_split, model
from tolerance import at_most, same

from mipforest.errors import NotAllowed
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Solution, Status


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Highs().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


def test_a_feasible_start_is_the_incumbent_at_once() -> None:
    form = market_split()
    start = empty_split(form)
    solution = solve(form, start=start, time_limit=0.0)
    assert solution.status is Status.TIME_LIMIT
    np.testing.assert_array_equal(solution.x, start)
    assert same(solution.start_objective, form.objective(start))
    assert same(solution.start_objective, solution.objective)
    assert solution.warnings == ()


@pytest.mark.parametrize("given", ["integers", "half the integers"])
def test_a_partial_start_is_completed(given: str) -> None:
    form = market_split()
    known = form.integer if given == "integers" else form.integer & (np.arange(form.n_columns) < 20)
    start = np.where(known, empty_split(form), np.nan)
    solution = solve(form, start=start, solver_options={"mip_max_nodes": 1})
    assert solution.warnings == ()
    assert np.isfinite(solution.start_objective)
    assert at_most(solution.objective, solution.start_objective)
    if given == "integers":
        assert same(solution.start_objective, form.objective(empty_split(form)))


def test_bounds_of_a_completion_are_not_reported_as_the_models() -> None:
    form = market_split()
    start = np.where(np.arange(form.n_columns) < 20, empty_split(form), np.nan)
    solution = solve(form, start=start, solver_options={"mip_max_nodes": 1})
    assert all(event.bound <= 0 for event in solution.events)


def test_of_an_infeasible_start_the_integers_are_kept() -> None:
    form = market_split()
    start = empty_split(form)
    start[0] = 1.0
    solution = solve(form, start=start, solver_options={"mip_max_nodes": 1})
    assert "start is infeasible (row row[0] by 85)" in solution.warnings[0]
    assert "only its integer values were kept" in solution.warnings[0]
    off = np.abs(form.A[:, form.integer] @ start[form.integer] - form.row_lower).sum()
    assert solution.start_objective == pytest.approx(off)


def test_a_start_without_use_is_dropped_with_a_word() -> None:
    form = model([1.0, 1.0], [[1.0, 1.0]], 3.0, upper=2.0, integer=True)
    solution = solve(form, start=np.zeros(2))
    assert solution.status is Status.OPTIMAL
    assert "row row[0] by 3" in solution.warnings[0]
    assert "dropped" in solution.warnings[0]
    assert np.isnan(solution.start_objective)


def test_a_start_of_fractions_is_not_rounded_into_another() -> None:
    solution = solve(model([1.0], upper=3.0, integer=True), start=np.array([1.4]))
    assert "integrality of x[0]" in solution.warnings[0]


def test_a_continuous_model_takes_no_start_and_says_so() -> None:
    assert "start was not used" in solve(model([1.0]), start=np.zeros(1)).warnings[0]


def test_a_start_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(NotAllowed, match=r"shape \(3,\).*2 columns"):
        solve(model([1.0, 1.0], upper=1.0, integer=True), start=np.zeros(3))


def test_priorities_leave_a_warning() -> None:
    form = model([1.0], upper=1.0, integer=True)
    solution = Highs().solve(form, SolveSettings(), priorities=np.ones(1, int))
    assert "priorities" in solution.warnings[0]


def test_a_start_that_meets_its_rows_but_for_rounding_is_kept_at_once() -> None:
    """HiGHS with a tight tolerance repairs such a start, for which a limit may leave no time."""
    form = market_split()
    start = empty_split(form)
    start[~form.integer] -= 1e-8
    options = {"mip_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9}
    solution = solve(form, start=start, time_limit=0.0, solver_options=options)
    assert solution.status is Status.TIME_LIMIT
    np.testing.assert_array_equal(solution.x, start)
    assert same(solution.objective, form.objective(start))
