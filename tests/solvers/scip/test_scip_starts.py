import numpy as np
import pytest
from small_models import empty_split, market_split, model
from tolerance import at_most, same

from mipforest.errors import NotAllowed
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.scip import Scip
from mipforest.solvers.solution import Solution, Status

pyscipopt = pytest.importorskip("pyscipopt")


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Scip().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


def quadratic() -> MatrixForm:
    """Least squares over integers and continuous columns; the origin is feasible."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(10, 20))
    return model(
        factor.T @ rng.normal(size=10) * 3,
        rng.normal(size=(9, 20)),
        -1.0,
        1.0,
        lower=-3,
        upper=3,
        Q=factor.T @ factor,
        integer=np.arange(20) < 15,
        offset=50.0,
    )


@pytest.mark.parametrize("form", [market_split(), market_split(maximize=True, offset=7.0)])
def test_a_feasible_start_is_the_incumbent_at_once(form: MatrixForm) -> None:
    start = empty_split(form)
    solution = solve(form, start=start, time_limit=0.0)
    assert solution.status is Status.TIME_LIMIT
    np.testing.assert_array_equal(solution.x, start)
    assert same(solution.start_objective, form.objective(start))
    assert same(solution.start_objective, solution.objective)
    assert solution.warnings == ()


def test_a_feasible_start_of_a_quadratic_model_is_taken_with_its_value() -> None:
    form = quadratic()
    start = np.zeros(20)
    solution = solve(form, start=start, time_limit=0.0)
    assert same(solution.start_objective, form.objective(start))
    assert form.objective(start) == 50.0
    assert solution.warnings == ()
    # With its integers kept, the rest was improved.
    assert solution.objective < 50.0
    np.testing.assert_array_equal(solution.x[form.integer], 0.0)


def test_a_start_of_a_continuous_model_is_taken() -> None:
    solution = solve(model([1.0, 1.0], [[1.0, 1.0]], 3.0, upper=2.0), start=np.array([2.0, 1.5]))
    assert same(solution.start_objective, 3.5)
    assert solution.objective == pytest.approx(3.0)
    assert solution.warnings == ()


@pytest.mark.parametrize("given", ["integers", "half the integers"])
def test_a_partial_start_is_completed(given: str) -> None:
    form = market_split()
    known = form.integer if given == "integers" else form.integer & (np.arange(form.n_columns) < 20)
    start = np.where(known, empty_split(form), np.nan)
    solution = solve(form, start=start, solver_options={"limits/nodes": 1})
    assert solution.warnings == ()
    assert np.isfinite(solution.start_objective)
    assert at_most(solution.objective, solution.start_objective)
    if given == "integers":
        assert solution.start_objective == pytest.approx(form.objective(empty_split(form)))


def test_a_nearly_empty_start_is_not_ignored() -> None:
    form = market_split()
    start = np.full(form.n_columns, np.nan)
    start[0] = 1.0
    solution = solve(form, start=start, solver_options={"limits/nodes": 1})
    assert np.isfinite(solution.start_objective)


@pytest.mark.slow
def test_a_partial_start_of_a_quadratic_model_is_completed() -> None:
    form = quadratic()
    start = np.where(form.integer, 0.0, np.nan)
    solution = solve(form, start=start, solver_options={"limits/nodes": 1})
    assert solution.warnings == ()
    assert at_most(solution.objective, solution.start_objective)
    assert solution.start_objective <= 50.0 + 1e-5


def test_of_an_infeasible_start_the_integers_are_kept() -> None:
    form = market_split()
    start = empty_split(form)
    start[0] = 1.0
    solution = solve(form, start=start, solver_options={"limits/nodes": 1})
    assert "start is infeasible (row row[0] by 85)" in solution.warnings[0]
    assert "only its integer values were kept" in solution.warnings[0]
    off = np.abs(form.A[:, form.integer] @ start[form.integer] - form.row_lower).sum()
    assert solution.start_objective == pytest.approx(off)


def test_a_start_without_completion_leaves_a_warning() -> None:
    form = model([1.0, 1.0], [[1.0, 1.0]], 3.0, upper=2.0, integer=True)
    solution = solve(form, start=np.zeros(2))
    assert solution.status is Status.OPTIMAL
    assert "row row[0] by 3" in solution.warnings[0]
    assert "no completion" in solution.warnings[0]
    assert np.isnan(solution.start_objective)


@pytest.mark.parametrize("value", [1.4, 7.0, -1.0])
def test_values_that_no_solution_has_are_not_kept(value: float) -> None:
    solution = solve(model([1.0], upper=3.0, integer=True), start=np.array([value]))
    assert solution.objective == 0.0
    assert "start dropped" in solution.warnings[0]
    assert np.isnan(solution.start_objective)


def test_a_start_without_integer_values_leaves_a_warning() -> None:
    form = model([1.0, 1.0], upper=3.0, integer=[True, False])
    solution = solve(form, start=np.array([np.nan, 1.0]))
    assert "leaves 1 of 2 values open, and gives no integer value to keep" in solution.warnings[0]


def test_a_start_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(NotAllowed, match=r"shape \(3,\).*2 columns"):
        solve(model([1.0, 1.0], upper=1.0, integer=True), start=np.zeros(3))
