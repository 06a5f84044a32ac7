"""Searches are compiled once on a machine, outside the time limit."""

import os
from pathlib import Path
from time import sleep

import pytest
from numba import config, njit

import mipforest
from mipforest.searches import COMPILING, compile_by
from mipforest.searches.exact.open_intervals import advance
from mipforest.time_budget import Stopped, TimeBudget


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


@pytest.mark.skipif("NUMBA_CACHE_DIR" in os.environ, reason="the user has chosen a place")
def test_machine_code_is_kept_outside_the_package():
    """A package manager would leave behind what it did not write, and that would be imported in the package's place."""
    kept = Path(advance.stats.cache_path)
    assert kept.is_absolute()
    assert not kept.is_relative_to(Path(mipforest.__file__).parent)
    assert not config.CACHE_DIR


def test_a_stop_ends_a_compilation_between_two_functions():
    budget = TimeBudget()
    budget.stop()
    with pytest.raises(Stopped):
        compile_by(lambda: njit(lambda x: x + 1)(1), budget)
