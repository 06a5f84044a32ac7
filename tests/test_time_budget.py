"""One budget: its limit, its stop, its account."""

import contextlib
import math

import pytest

from mipforest import get_formulation, load
from mipforest.problem import tree_search
from mipforest.settings import SolveSettings
from mipforest.time_budget import TimeBudget


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_without_a_limit_it_never_runs_out(clock):
    budget = TimeBudget(clock=clock)
    clock.now += 1e9
    assert budget.remaining == math.inf
    assert not budget.expired
    assert budget.at_most() is None
    assert budget.at_most(5.0) == 5.0


def test_what_is_left_is_shared(clock):
    budget = TimeBudget(10.0, clock=clock)
    clock.now += 4
    assert budget.remaining == 6.0
    assert budget.at_most(share=0.5) == 3.0
    assert budget.at_most(5.0) == 5.0
    clock.now += 7
    assert budget.expired
    assert budget.at_most(5.0) == 0.0


def test_a_stop_leaves_nothing(clock):
    budget = TimeBudget(clock=clock)
    budget.stop()
    assert budget.expired
    assert budget.at_most() == 0.0


def test_every_second_is_counted_once(clock):
    told = []
    budget = TimeBudget(clock=clock, report=told.append)
    with budget.phase("prepare"):
        clock.now += 1
        with budget.phase("start", "finding a start"):
            clock.now += 2
        clock.now += 4
    clock.now += 8  # the caller's own time
    with contextlib.suppress(ZeroDivisionError), budget.phase("start"):
        clock.now += 16
        raise ZeroDivisionError
    assert budget.seconds == {"prepare": 5.0, "start": 18.0}
    assert told == ["finding a start"]


def test_the_first_solve_has_what_preparation_left_and_the_next_one_its_own(clock):
    budget = TimeBudget(10.0, clock=clock)
    with budget.phase("prepare"):
        clock.now += 7
    budget.begin_solve(10.0)
    assert budget.remaining == 3.0
    with budget.phase("solve"):
        clock.now += 3
    budget.stop()
    budget.begin_solve(10.0)
    assert budget.remaining == 10.0
    assert budget.seconds == {"prepare": 7.0}


def test_a_stop_of_a_part_is_one_of_the_whole(clock):
    budget = TimeBudget(10.0, clock=clock)
    part, other = budget.part(share=0.5), budget.part()
    part.stop()
    assert budget.stopped
    assert other.stopped


def test_a_preparation_that_was_stopped_leaves_the_first_solve_nothing(clock):
    budget = TimeBudget(clock=clock)
    budget.stop()
    budget.begin_solve(10.0)
    assert budget.expired


def test_a_limit_of_zero_is_for_the_start_alone_and_limits_no_preparation():
    assert not SolveSettings(time_limit=0).budget().expired
    assert SolveSettings(time_limit=5).budget().remaining <= 5


def test_loading_searches_leaves_a_short_limit_to_the_first_solve(clock, monkeypatch):
    def slow():
        clock.now += 3
        return {}

    monkeypatch.setattr(tree_search, "search_classes", slow)
    problem = get_formulation("oct-h")().build(load("iris"), 1, budget=TimeBudget(2.0, clock=clock))
    tree_search.Auto().choose(problem, SolveSettings())
    assert problem.budget.remaining == 2.0


def test_what_is_excluded_counts_for_itself_and_puts_off_every_end(clock):
    told = []
    budget = TimeBudget(10.0, clock=clock, report=lambda line, plain=False: told.append((line, plain)))
    with budget.phase("prepare", "preparing"):
        clock.now += 1
        part = budget.part(share=0.5)
        part.report("compiling")
        clock.now += 30
        part.exclude("compile", 30.0)
        assert budget.remaining == 9.0
        assert part.remaining == 4.5
    assert budget.seconds == {"prepare": 1.0, "compile": 30.0}
    assert budget.excluded_seconds == part.excluded_seconds == 30.0
    assert "compiled in 30 s" in budget.notes[0]
    assert not TimeBudget(clock=clock).notes
    assert told == [("preparing", False), ("compiling", True)]


def test_loading_a_package_is_no_part_of_the_limit(clock):
    budget = TimeBudget(10.0, clock=clock)
    with budget.phase("prepare"), budget.loading():
        clock.now += 30
    assert budget.remaining == 10.0
    assert budget.seconds == {"prepare": 0.0, "load": 30.0}
