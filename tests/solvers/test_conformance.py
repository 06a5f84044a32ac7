"""Every registered solver, and solvers behind Pyomo, against the conformance suite."""

import pytest

from mipforest.errors import SolverUnavailable
from mipforest.solvers.base import solver_classes
from mipforest.testing.conformance import CASES, arguments, check_case, run_conformance

#: Solvers that stand for themselves: ``pyomo`` alone names none.
DIRECT = [name for name in solver_classes() if name != "pyomo"]
BY_PYOMO = ["pyomo:highs", "pyomo:gurobi_direct"]
MORE_BY_PYOMO = ["pyomo:appsi_highs", "pyomo:gurobi", "pyomo:scip_direct", "pyomo:cbc", "pyomo:glpk"]

#: Tried with these by default: the others read models and starts as these do, and take as long.
ALL_CASES = ("highs", "clarabel")

#: Cases that the others have by default: of each kind of row, cost, end, start, progress and refusal the one that says
#: most. Their own tests (test_scip.py, test_gurobi.py, test_pyomo_solvers.py) go over the rest of what they translate.
CORE = {
    *("lp_free_variables", "lp_range_lower_side", "lp_constant_in_maximised_objective", "lp_infeasible"),
    *("lp_unbounded", "lp_no_rows", "mip_mixed", "mip_negative_integers", "mip_infeasible_only_for_integers"),
    *("qp_off_diagonal", "qp_maximise", "qp_infeasible", "miqp_off_diagonal_continuous"),
    *("indicator_on_at_zero", "indicator_off_at_one", "indicator_equality_from_below"),
    *("indicator_with_quadratic_objective", "time_limit_of_zero", "node_limit", "gap_is_kept", "threads"),
    *("unknown_option_is_refused", "log_is_written", "silent", "refuses_quadratic_objective_with_integers"),
    *("refuses_indicator_rows", "nonconvex_objective_with_integers_is_solved_or_refused", "nan_is_refused"),
    *("crossed_bounds_are_infeasible_or_refused", "start_full", "start_with_some_integers"),
    *("start_infeasible", "start_not_taken_leaves_a_warning", "priorities", "progress_when_maximising"),
    *("priorities_not_taken_leave_a_warning", "last_event_is_the_outcome"),
    *("interruption_keeps_the_incumbent", "error_in_progress_reaches_the_caller"),
}
assert set(CASES) >= CORE


@pytest.mark.parametrize(
    ("solver", "case"),
    [(solver, case) for solver in DIRECT + BY_PYOMO for case in CASES if solver in ALL_CASES or case in CORE],
)
def test_conformance(solver: str, case: str) -> None:
    check_case(solver, case, **arguments(solver))


@pytest.mark.slow  # one test for all cases: as parameters they would cost every run of the default tests seconds
@pytest.mark.parametrize(
    "solver", [name for name in DIRECT + BY_PYOMO if name not in ALL_CASES] + MORE_BY_PYOMO
)
def test_conformance_in_all_cases(solver: str) -> None:
    try:
        outcomes = run_conformance(solver, **arguments(solver))
    except SolverUnavailable as error:
        pytest.skip(str(error))
    assert [outcome for outcome in outcomes if not outcome.good] == []
