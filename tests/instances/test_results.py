import math
from dataclasses import dataclass, replace

import pytest

from mipforest.instances.results import (
    ResultsError,
    Run,
    difficulty_of,
    fault_of,
    primal_gap,
    proof_of,
    read_results,
    record_results,
    solved_by,
    write_results,
)
from mipforest.solvers.solution import Event
from tests.tolerance import ROUNDING


@dataclass
class Known:
    objective: float = 10.0
    bound: float = 10.0
    tolerance: float = math.nan
    is_approximated: bool = False


RUN = Run(
    instance="a",
    sha256="0",
    solver="highs",
    version="1",
    kind="solver",
    machine="one",
    threads=1,
    time_limit=60.0,
    seconds=5.0,
    status="optimal",
    objective=10.0,
    bound=10.0,
    violation=0.0,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, ""),
        ({"status": "infeasible", "objective": math.nan}, "says infeasible, and a tree has the value 10"),
        ({"bound": 10.1, "objective": 10.1}, "claims the bound 10.1"),
        ({"bound": 9.0, "objective": 11.0}, "calls 11 optimal"),
        ({"objective": 9.0, "bound": 9.0}, "below the proven bound 10"),
        ({"objective": 9.0, "bound": 9.0, "violation": 1e-3}, "its point violates the model by 0.001"),
        ({"status": "time_limit", "objective": 11.0, "bound": 2.0}, ""),
        ({"status": "time_limit", "objective": math.nan, "bound": -math.inf, "violation": math.nan}, ""),
        ({"objective": 10.0005, "bound": 9.9999}, ""),  # within the gap
    ],
)
def test_faults(changes, message):
    run = replace(RUN, **changes)
    found = fault_of(run, Known())
    assert found.startswith(message) if not message else message in found
    assert solved_by(run, Known()) == (run.status == "optimal" and not message)


def test_a_point_below_the_bound_is_the_tolerances_where_the_instance_needs_finer_ones():
    run = replace(RUN, objective=9.0, bound=9.0)
    assert fault_of(run, Known(tolerance=1e-8)) == ""
    assert not solved_by(run, Known(tolerance=1e-8))
    assert fault_of(run, Known(objective=math.nan, bound=-math.inf)) == ""  # nothing is known


def test_a_point_below_the_bound_is_no_fault_where_the_objective_approximates_that_of_trees():
    run = replace(RUN, objective=9.0, bound=9.0)
    assert fault_of(run, Known()) != ""
    assert fault_of(run, Known(is_approximated=True)) == ""
    assert "claims the bound" in fault_of(
        replace(run, objective=11.0, bound=11.0), Known(is_approximated=True)
    )


def test_a_proof_is_a_certificate_or_two_routes_with_one_value():
    search = replace(RUN, solver="exact-search", kind="search", certified=True)
    assert proof_of([RUN], Known()) == ""
    assert proof_of([RUN, search], Known()) == "certificate of exact-search"
    scip = replace(RUN, solver="scip")
    assert proof_of([RUN, scip], Known()) == "highs and scip"
    assert proof_of([RUN, replace(RUN, solver="pyomo:highs")], Known()) == ""  # one route by two names
    assert (
        proof_of([RUN, replace(scip, objective=10.0005, bound=10.0)], Known()) == ""
    )  # apart by more than 1e-6
    assert proof_of([RUN, replace(scip, status="time_limit")], Known()) == ""


def test_difficulty_is_what_matrix_solvers_made_of_it():
    search = replace(RUN, solver="exact-search", kind="search")
    late = replace(RUN, status="time_limit", bound=2.0)
    assert difficulty_of([RUN, late, search], Known(), solved=True) == ("easy", 5.0)
    assert difficulty_of([late, search], Known(), solved=True) == ("hard", 60.0)
    assert difficulty_of([late], Known(), solved=False) == ("", 60.0)
    untried = difficulty_of([search], Known(), solved=True)
    assert untried[0] == ""
    assert math.isnan(untried[1])


def test_the_mean_primal_gap_is_the_area_under_the_gap():
    events = [Event(2.0, 20.0, 0.0), Event(4.0, 12.5, 0.0), Event(6.0, 10.0, 0.0)]
    # 1 for two seconds, then |20 - 10| / 20 and |12.5 - 10| / 12.5 for two each, then 0.
    assert primal_gap(events, 10.0, 10.0) == pytest.approx((2 + 1 + 0.4) / 10, rel=ROUNDING)
    assert primal_gap([], 10.0, 10.0) == pytest.approx(1.0, rel=ROUNDING)
    assert primal_gap([Event(0.0, -1.0, 0.0)], 10.0, 10.0) == pytest.approx(1.0, rel=ROUNDING)  # another sign
    assert math.isnan(primal_gap(events, 10.0, math.nan))


def test_results_read_back_and_a_repetition_replaces_a_run(tmp_path):
    path = tmp_path / "results.csv"
    failed = Run(
        instance="b", sha256="1", solver="scip", version="2", kind="solver", machine="one", message="a\nb"
    )
    assert len(record_results(path, [RUN, failed])) == 2
    again = replace(RUN, seconds=4.0)
    assert len(record_results(path, [again])) == 2
    read = read_results(path)
    assert read[0] == again
    assert str(read[1]) == str(replace(failed, message="a b"))  # NaN differs from itself
    text = path.read_text()
    write_results(path, read)
    assert path.read_text() == text
    assert read_results(tmp_path / "none.csv") == []


@pytest.mark.parametrize(("old", "new"), [("instance", "cols"), ("60.0", "soon")])
def test_damaged_results_are_refused(tmp_path, old, new):
    path = tmp_path / "results.csv"
    write_results(path, [RUN])
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ResultsError, match=r"line 2: (the columns are not|time_limit is 'soon')"):
        read_results(path)
