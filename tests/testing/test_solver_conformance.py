"""The conformance suite passes what is right and catches what is wrong."""

from __future__ import annotations

import subprocess
import sys

import broken_solvers as broken
import pytest
from broken_solvers import Bridged, mishears, misreads, misreads_quietly, misreports

from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.clarabel import Clarabel
from mipforest.testing.conformance import (
    CASES,
    Verdict,
    check_case,
    conformance_tests,
    run_conformance,
)

NODE_LIMIT = {"mip_max_nodes": 1}
UNBOUNDED_INDICATOR = {"indicator_on_an_unbounded_variable": "a big-M row needs bounds"}

test_bridges_conform = conformance_tests(Bridged(), opt_out=UNBOUNDED_INDICATOR, node_limit=NODE_LIMIT)

WRONG_MODELS = [
    (broken.without_range_lower_sides, "lp_range_lower_side"),
    (broken.without_range_upper_sides, "lp_range_upper_side"),
    (broken.with_equalities_as_inequalities, "lp_equalities_only"),
    (broken.with_nonnegative_columns, "lp_free_variables"),
    (broken.with_nonnegative_columns, "mip_negative_integers"),
    (broken.with_binary_integers, "mip_fractional_bounds"),
    (broken.without_integrality, "mip_vertex_cover_of_a_pentagon"),
    (broken.minimising, "lp_maximise"),
    (broken.minimising, "qp_maximise"),
    (broken.without_quadratic_terms, "qp_projection"),
    (broken.without_quadratic_terms, "miqp_nearest_integers"),
    (broken.with_halved_quadratic_terms, "qp_maximise"),
    (broken.with_one_triangle, "qp_off_diagonal"),
    (broken.with_one_triangle, "miqp_off_diagonal_continuous"),
    (broken.without_indicators, "indicator_on_at_one"),
    (broken.with_indicators_on_at_one, "indicator_on_at_zero"),
    (broken.with_indicators_on_at_one, "indicator_off_at_one"),
    (broken.with_one_sided_indicators, "indicator_equality_from_below"),
]


@pytest.mark.parametrize("honest_about_its_point", [False, True])
@pytest.mark.parametrize(("change", "case"), WRONG_MODELS)
def test_a_misread_model_is_caught(change, case, honest_about_its_point) -> None:
    check_case(Bridged(), case)
    solver = (misreads_quietly if honest_about_its_point else misreads)(change)
    with pytest.raises(AssertionError, match=case):
        check_case(solver, case)


@pytest.mark.parametrize("case", ["lp_constant_in_objective", "mip_constant_in_maximised_objective"])
def test_a_dropped_constant_is_caught(case) -> None:
    with pytest.raises(AssertionError, match="objective"):
        check_case(misreads(broken.without_offset), case)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("solver", "case", "complaint"),
    [
        (misreports(broken.with_bound_on_the_wrong_side), "mip_knapsack", "wrong side"),
        (misreports(broken.with_bound_on_the_wrong_side), "lp_minimise", "wrong side"),
        (misreports(broken.with_nan_bound), "lp_minimise", "bound is NaN"),
        (misreports(broken.always_optimal), "time_limit", "optimal, with objective"),
        (misreports(broken.always_optimal), "lp_infeasible", "optimal without a point"),
        (misreports(broken.with_values_of_another_point), "lp_maximise", "values by block"),
        (misreports(broken.without_warnings), "start_infeasible", "no warning"),
        (misreports(broken.without_incumbent_when_stopped), "interruption_keeps_the_incumbent", "lost"),
        (misreports(broken.with_events_backwards), "progress_when_minimising", "after .* s comes"),
        (misreports(broken.printing), "silent", "printed: 'Set parameter"),
        (mishears(broken.deaf_to_unknown_options), "unknown_option_is_refused", "not refused"),
        (mishears(broken.deaf_to_starts), "start_full", "start_objective nan"),
        (mishears(broken.deaf_to_starts), "start_of_wrong_length", "not refused"),
        (mishears(broken.deaf_to_the_gap), "gap_of_zero_is_closed", "optimal, with objective"),
        (mishears(broken.deaf_to_the_log), "log_is_written", "not written"),
        (mishears(broken.deaf_to_time_limits), "time_limit", "status limit"),
        (mishears(broken.deaf_to_interruption), "interruption_at_the_first_event", "instead of interrupted"),
        (broken.SwallowsErrors(), "error_in_progress_reaches_the_caller", "swallowed"),
        (broken.RaisesTooLate(), "refuses_quadratic_objective_with_integers", "SolverError"),
    ],
)
def test_a_wrong_report_is_caught(solver: Solver, case: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_case(solver, case, node_limit=NODE_LIMIT)


def test_cases_that_need_a_missing_feature_do_not_apply() -> None:
    outcomes = {outcome.case: outcome for outcome in run_conformance(Clarabel())}
    assert outcomes.keys() == CASES.keys()
    assert outcomes["mip_knapsack"].verdict is Verdict.NOT_APPLICABLE
    assert outcomes["mip_knapsack"].detail == "the solver takes no integer variables"
    assert outcomes["refuses_quadratic_objective"].verdict is Verdict.NOT_APPLICABLE
    assert outcomes["refuses_integers"].verdict is Verdict.PASSED
    assert all(outcome.good for outcome in outcomes.values())
    with pytest.raises(pytest.skip.Exception, match="no integer variables"):
        check_case(Clarabel(), "mip_knapsack")


def test_a_listed_feature_brings_its_cases() -> None:
    class Boastful(Clarabel):
        features = Clarabel.features | {Feature.MIP}

    with pytest.raises(AssertionError, match="mip_vertex_cover_of_a_pentagon"):
        check_case(Boastful(), "mip_vertex_cover_of_a_pentagon")


def test_an_announced_failure_is_an_opt_out() -> None:
    solver = misreads(broken.without_offset)
    reason = {"lp_constant_in_objective": "constants come with version 2"}
    with pytest.raises(pytest.xfail.Exception, match="version 2"):
        check_case(solver, "lp_constant_in_objective", opt_out=reason)


@pytest.mark.parametrize("case", ["lp_maximise", "mip_knapsack"])
def test_an_opt_out_that_is_not_needed_fails(case: str) -> None:
    with pytest.raises(AssertionError, match="opt-out is stale"):
        check_case(Clarabel(), case, opt_out={case: "out of date"})
    outcomes = {
        outcome.case: outcome for outcome in run_conformance(Clarabel(), opt_out={case: "out of date"})
    }
    assert outcomes[case].verdict is Verdict.OPT_OUT_IS_STALE
    assert not outcomes[case].good


def test_an_opt_out_of_no_case_is_refused() -> None:
    for attempt in (run_conformance, conformance_tests):
        with pytest.raises(ValueError, match=r"no case 'lp_maximize'.*did you mean 'lp_maximise'"):
            attempt(Clarabel(), opt_out={"lp_maximize": "?"})


def test_a_solver_that_is_not_installed_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception, match="no solver named"):
        check_case("absent", "lp_maximise")


@pytest.mark.slow  # a process of its own; the guide's page runs it too
def test_the_suite_needs_no_pytest() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "from mipforest.testing.conformance import run_conformance\n"
        "print(all(outcome.good for outcome in run_conformance('clarabel')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "True\n"
