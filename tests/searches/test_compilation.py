"""Searches are compiled once on a machine, outside the time limit."""

from time import sleep

from numba import njit

from mipforest.searches import COMPILING, compile_by
from mipforest.time_budget import TimeBudget


def test_a_compilation_is_told_and_does_not_count():
    told = []
    budget = TimeBudget(1000.0, tell=lambda line, plain=False: told.append((line, plain)))

    @njit
    def twice(number):
        return 2 * number

    with budget.phase("prepare"):
        seconds = compile_by(lambda: (twice(1), sleep(0.05)), budget)
        left = budget.remaining
        again = compile_by(lambda: twice(1), budget)
    assert told == [(COMPILING, True)]
    assert budget.seconds["compile"] == seconds > 0.05 > again == 0.0
    assert left > 1000.0 - seconds
