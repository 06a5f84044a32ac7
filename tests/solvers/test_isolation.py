"""A solver in a process of its own: what ends that process ends nothing else."""

from time import monotonic

import numpy as np
import pytest
from solvers.aborting import Aborting, Endless, KnownToAbort

from formulations.oct import Oct
from mipforest.data import load
from mipforest.errors import NotAllowed
from mipforest.model import Model
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Status
from mipforest.solving import solve


def knapsack():
    m = Model("knapsack")
    take = m.binary("take", 4)
    m.add("weight", [2.0, 3.0, 4.0, 5.0] @ take <= 8)
    m.maximize([3.0, 4.0, 5.0, 6.0] @ take)
    return m


def hard():
    """Return a market split problem, which takes minutes."""
    A = np.random.default_rng(0).integers(0, 100, (5, 40)).astype(float)
    m = Model("market split")
    take, slack = m.binary("take", 40), m.nonnegative("slack", (2, 5))
    m.add("split", A @ take + slack[0] - slack[1] == A.sum(axis=1) // 2)
    m.minimize(slack.sum())
    return m


def test_a_solve_there_is_a_solve_here():
    here, seen = solve(knapsack(), "highs"), []
    there = solve(knapsack(), "highs", isolate=True, on_progress=seen.append)
    assert there.status is here.status is Status.OPTIMAL
    assert there.objective == pytest.approx(here.objective)
    assert np.array_equal(there.x, here.x)
    assert seen
    assert there.solver == "highs"


def test_an_abort_leaves_the_incumbent_and_no_bound():
    solution = solve(knapsack(), Aborting(), isolate=True)
    assert solution.status is Status.ERROR
    assert solution.bound == np.inf
    assert solution.x is not None
    assert solution.objective == pytest.approx(10.0)
    (told,) = solution.warnings
    assert "the process of aborting was ended by SIGABRT" in told
    assert "its last incumbent is kept, and no bound: take another solver (highs, gurobi)" in told


def test_an_abort_leaves_the_start_tree():
    problem = Oct(alpha=0.01).build(load("iris"), 1)
    result = problem.solve(KnownToAbort(), time_limit=20)
    assert result.status == "error"
    assert result.tree is not None
    assert result.proven_for is None
    assert any(
        "the process of known-to-abort was ended by SIGABRT" in told for told in result.solution.warnings
    )


def test_a_stop_is_heard_there():
    told = []

    def stop(event):
        told.append(event)
        return True

    solution = solve(hard(), "highs", isolate=True, time_limit=60, on_progress=stop)
    assert solution.status is Status.INTERRUPTED
    assert told
    assert solution.seconds < 30, "it was stopped at once"


@pytest.mark.slow
def test_a_solver_that_hears_nothing_is_killed():
    began = monotonic()
    solution = solve(knapsack(), Endless(), isolate=True, time_limit=0.5)
    assert solution.x is None
    assert solution.status is Status.TIME_LIMIT
    assert monotonic() - began < 30, "it sleeps for a minute"


def test_errors_come_back_as_they_are():
    m = Model("quadratic")
    x = m.integer("x", lower=-5, upper=5)
    m.maximize(x**2)
    with pytest.raises(NotAllowed, match="not convex"):
        solve(m, "highs", isolate=True)
    with pytest.raises(NotAllowed, match="has no option 'tme_limit'"):
        solve(knapsack(), "highs", isolate=True, solver_options={"tme_limit": 1})


def test_what_cannot_be_handed_over_is_refused():
    class Local(Highs):
        pass

    with pytest.raises(NotAllowed, match="cannot run in a process of its own"):
        solve(knapsack(), Local(), isolate=True)


def test_a_search_has_no_process_of_its_own():
    problem = Oct().build(load("iris"), 1)
    with pytest.raises(NotAllowed, match="leave out isolate"):
        problem.solve("exact-search", isolate=True)
    with pytest.raises(NotAllowed, match="isolate is 'yes'"):
        problem.solve("highs", isolate="yes")


def test_scip_solves_quadratic_models_in_a_process_of_its_own():
    scip = pytest.importorskip("mipforest.solvers.scip").Scip()
    if not scip.available():
        pytest.skip("no SCIP here")
    m = Model("quadratic")
    x = m.integer("x", lower=-5, upper=5)
    m.minimize((x - 1.3) ** 2)
    assert scip.aborts_on(m.matrix())
    assert not scip.aborts_on(knapsack().matrix())
    solution = solve(m, scip)
    assert solution.objective == pytest.approx(0.09)
