"""A session gives what a new solve gives, and builds a model once where numbers alone change."""

import numpy as np
import pytest
from tolerance import ROUNDING, same

from mipforest import Model, Session, solve, sum_squares
from mipforest.errors import Unsupported
from mipforest.solvers.highs import HighsSession

#: The solves below go to this relative gap.
GAP = 1e-9

KEEPING = ("highs", "gurobi")


def covering(seed, *, integer):
    rng = np.random.default_rng(seed)
    m = Model()
    x = m.binary("x", 8) if integer else m.nonnegative("x", 8, upper=1)
    m.add("cover", rng.integers(0, 4, (5, 8)).astype(float) @ x >= 3)
    m.add("most", x.sum() <= 7)
    m.minimize(rng.uniform(1, 2, 8) @ x)
    return m, rng


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("solver", KEEPING)
def test_changed_numbers_give_what_a_new_solve_gives(solver, integer):
    m, rng = covering(0, integer=integer)
    x = m["x"]
    with Session(m, solver) as session:
        for step in range(8):
            m.minimize(rng.uniform(1, 2, 8) @ x + step)
            if step == 3:
                m.maximize(rng.uniform(-2, 1, 8) @ x)
            x[step].upper = 0 if step % 2 else 1
            m.constraints["cover"].lower = rng.integers(1, 3, 5).astype(float)
            m.constraints["most"].upper = 4 + step % 4
            kept, new = session.solve(gap=GAP), solve(m, solver, gap=GAP)
            assert kept.status == new.status, step
            if new.found:
                assert kept.objective == pytest.approx(new.objective, rel=10 * GAP, abs=ROUNDING)
                assert m.violations(kept.x).max <= 1e-6
            x.upper = 1


@pytest.mark.parametrize("solver", KEEPING)
def test_infeasible_and_feasible_again(solver):
    m, _ = covering(1, integer=True)
    with Session(m, solver) as session:
        value = session.solve().objective
        m.constraints["most"].upper = 0
        assert session.solve().status == "infeasible"
        m.constraints["most"].upper = 7
        assert same(session.solve().objective, value)


def test_highs_builds_the_model_once_unless_more_than_numbers_change(monkeypatch):
    loads = []
    load = HighsSession.load
    monkeypatch.setattr(HighsSession, "load", lambda self, form: (loads.append(form), load(self, form)))
    m, _ = covering(2, integer=False)
    with Session(m) as session:
        for upper in (7, 6, 5):
            m.constraints["most"].upper = upper
            session.solve()
        assert len(loads) == 1
        m.add("new", m["x"][0] <= m["x"][1])
        session.solve()
        session.solve(time_limit=10)  # limits belong to a run
        assert len(loads) == 2
        session.solve(seed=3)  # other settings belong to the object
        assert len(loads) == 3


@pytest.mark.parametrize("solver", KEEPING)
def test_the_last_solution_is_the_next_start(solver):
    m, _ = covering(3, integer=True)
    with Session(m, solver) as session:
        first = session.solve()
        assert np.isnan(first.start_objective)
        assert same(session.solve().start_objective, first.objective)


@pytest.mark.parametrize("solver", KEEPING)
def test_a_quadratic_model_is_solved_in_a_session(solver):
    m = Model()
    x = m.continuous("x", 2)
    r = m.add("sum", x.sum() >= 2)
    m.minimize(sum_squares(x))
    with Session(m, solver) as session:
        assert session.solve().objective == pytest.approx(2, abs=1e-6)
        r.lower = 4
        assert session.solve().objective == pytest.approx(8, abs=1e-6)


@pytest.mark.parametrize("integer", [False, True])
def test_each_solve_has_its_own_time_limit(integer):
    """HiGHS' clock of linear programmes runs on between the runs of an object: its limit is set that much later."""
    m, _ = covering(4, integer=integer)
    with Session(m) as session:
        session.solve(time_limit=5)
        highs = session._solver._kept[0].highs
        for _ in range(2):
            ran = 0 if integer else highs.getRunTime()
            session.solve(time_limit=5)
            limit = highs.getOptionValue("time_limit")[1] - ran
            assert limit == pytest.approx(5, abs=1)  # less what passes before the run
        session.solve()
        assert highs.getOptionValue("time_limit")[1] == np.inf


def test_solvers_that_keep_nothing_are_refused():
    m, _ = covering(0, integer=True)
    with pytest.raises(Unsupported, match="builds a model anew for each solve"):
        Session(m, "scip")
