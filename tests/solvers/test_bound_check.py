import numpy as np
import pytest
from small_models import INF, model
from tolerance import same

from mipforest.settings import SolveSettings
from mipforest.solvers.base import Feature, Solver, assembled
from mipforest.solvers.bound_check import Lost, checked_against, lost_entries
from mipforest.solvers.solution import Solution, Status, closed, gap_in_words, relative_gap
from mipforest.solvers.worker import Worker
from mipforest.solving import solve_form

#: Minimise 2x over 0 <= x <= 30, x integer and at least 20: the optimum is 40.
FORM = model([2.0], [[1.0]], 20.0, upper=30.0, integer=True)
FLIPPED = model([-2.0], [[1.0]], 20.0, upper=30.0, integer=True, maximize=True)


def reported(status: Status, x: float | None, bound: float, form=FORM, **more: object) -> Solution:
    point = None if x is None else np.array([x])
    return assembled(
        form,
        Worker(form.maximize),
        solver="s",
        version="1",
        status=status,
        x=point,
        bound=bound,
        gap=1e-4,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("form", "sign"), [(FORM, 1), (FLIPPED, -1)])
def test_a_gap_that_the_status_does_not_meet_is_not_optimal(form, sign: int) -> None:
    # CBC said so of 47 and 45, at a gap of 1e-4.
    found = reported(Status.OPTIMAL, 23.5, sign * 45.0, form)
    assert (found.status, found.bound) == (Status.LIMIT, sign * 45)  # exact: as reported
    assert "calls this optimal" in found.warnings[-1]


@pytest.mark.parametrize(("form", "sign"), [(FORM, 1), (FLIPPED, -1)])
@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.TIME_LIMIT])
def test_a_bound_beyond_the_objective_proves_nothing(form, sign: int, status: Status) -> None:
    found = reported(status, 20.0, sign * 41.0, form)
    assert found.status is (Status.LIMIT if status is Status.OPTIMAL else status)
    assert same(found.bound, -sign * INF)
    assert "contradicted" in found.warnings[-1]


@pytest.mark.parametrize(("violation", "left"), [(1e-5, Status.OPTIMAL), (0.4, Status.LIMIT)])
def test_a_point_that_breaks_a_row_is_no_optimum(violation: float, left: Status) -> None:
    # SCIP 10 said so of a point that broke an indicator row by 0.4, far below the optimum.
    continuous = model([2.0], [[1.0]], 20.0, upper=30.0)
    found = reported(Status.OPTIMAL, 20.0 - violation, 40.0 - 2.0 * violation, continuous)
    assert found.status is left
    assert "violates" in found.warnings[0]


def test_round_off_contradicts_nothing() -> None:
    found = reported(Status.OPTIMAL, 20.0, 40.0 + 1e-7)
    assert (found.status, found.bound, found.warnings) == (Status.OPTIMAL, 40.0, ())


def test_a_known_start_counts_as_a_feasible_point() -> None:
    found = reported(Status.OPTIMAL, 23.0, 46.0, start=np.array([20.0]))
    assert (found.status, found.objective, found.bound) == (Status.LIMIT, 40.0, -INF)


def test_an_optimum_without_a_bound_is_not_proven() -> None:
    found = reported(Status.OPTIMAL, 20.0, -INF)
    assert found.status is Status.LIMIT
    assert "gives no bound" in found.warnings[-1]


@pytest.mark.parametrize(
    ("status", "lost", "left"),
    [
        (Status.OPTIMAL, Lost(tightens="it"), Status.LIMIT),
        (Status.OPTIMAL, Lost(loosens="it"), Status.OPTIMAL),
        (Status.INFEASIBLE, Lost(tightens="it"), Status.LIMIT),
        (Status.INFEASIBLE, Lost(loosens="it"), Status.INFEASIBLE),
        (Status.UNBOUNDED, Lost(loosens="it"), Status.LIMIT),
        (Status.UNBOUNDED, Lost(tightens="it"), Status.UNBOUNDED),
        (Status.ERROR, Lost(tightens="it"), Status.ERROR),
    ],
)
def test_what_the_loss_of_entries_leaves_of_a_status(status: Status, lost: Lost, left: Status) -> None:
    found = reported(status, 20.0, 40.0, lost=lost)
    assert found.status is left
    if left is Status.LIMIT:
        assert found.bound == -INF
        assert "takes it, for zero" in found.warnings[-1]


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.INFEASIBLE])
def test_rows_whose_rounding_exceeds_the_tolerance_prove_nothing(status: Status) -> None:
    # x - 2e10 z: SCIP called 2e10 optimal with such big-Ms, where 4e9 was attainable.
    big = model([1.0, 0.0], [[1.0, -2e10]], -2e10, upper=1.0)
    lost = lost_entries(big, 0.0)
    assert "column x[1] is worth up to 2e+10" in lost.unresolved
    found = reported(status, 20.0, 40.0, lost=lost)
    assert (found.status, found.bound) == (Status.LIMIT, -INF)
    assert "rounding alone" in found.warnings[-1]


def test_a_large_bound_alone_in_its_row_is_kept_exactly() -> None:
    assert lost_entries(model([1.0], [[1.0]], 1e14, upper=1e15), 0.0).unresolved == ""


def test_a_point_beside_a_solution_can_contradict_it() -> None:
    claimed = reported(Status.OPTIMAL, 23.0, 46.0)
    assert checked_against(claimed, FORM, np.array([23.0])) is claimed
    held = checked_against(claimed, FORM, np.array([20.0]))
    assert (held.status, held.bound, held.objective) == (Status.LIMIT, -INF, 46.0)
    none = reported(Status.INFEASIBLE, None, INF)
    held = checked_against(none, FORM, np.array([20.0]))
    assert (held.status, held.bound) == (Status.ERROR, -INF)


class Boaster(Solver):
    """Claims 46 to be optimal, and takes no starts."""

    name, package, install = "boaster", "numpy", "numpy"
    features = frozenset({Feature.LP, Feature.MIP})

    def version(self) -> str:
        return "1"

    def solve(self, form, settings, *, start=None, priorities=None, on_progress=None) -> Solution:
        worker = Worker(form.maximize, on_progress)
        return self.solution(form, worker, settings, status=Status.OPTIMAL, x=np.array([23.0]), bound=46.0)


def test_the_start_of_a_user_contradicts_a_solver_that_takes_none() -> None:
    found = solve_form(FORM, Boaster(), SolveSettings(), start=np.array([20.0]))
    assert (found.status, found.bound) == (Status.LIMIT, -INF)
    assert solve_form(FORM, Boaster(), SolveSettings()).status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(4e-16, -2e-16, 0.0), (4e-16, 0.0, 0.0), (0.0, 1e-9, np.inf), (2e-9, 1e-9, 0.5)],
)
def test_a_rounded_zero_has_no_gap_and_small_values_keep_theirs(
    objective: float, bound: float, gap: float
) -> None:
    assert relative_gap(objective, bound) == pytest.approx(gap)


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "enough", "words"),
    [
        (4e-16, -2e-16, 0.0, True, "0.00%"),
        (4e-9, -2e-9, 0.0, True, "6e-09, absolute"),  # 150 percent of nothing
        (2e-3, -2e-3, 0.0, False, "200.0%"),
        (1.0, 0.875, 0.125, True, "12.5%"),
        (1.0, 0.875, 0.05, False, "12.5%"),
        (np.nan, 0.0, 0.1, False, "-"),
        (1.0, -np.inf, 0.1, False, "-"),
    ],
)
def test_one_rule_says_what_is_close_enough_and_words_say_how_close(
    objective: float, bound: float, gap: float, enough: bool, words: str
) -> None:
    assert closed(objective, bound, gap) is enough
    assert gap_in_words(objective, bound) == words
