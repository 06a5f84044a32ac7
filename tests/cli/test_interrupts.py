"""What Ctrl-C does in each phase."""

import inspect
import signal
import time

import pytest

from mipforest.interruption import interruptible
from mipforest.solvers.worker import Worker
from mipforest.time_budget import TimeBudget


@pytest.fixture
def asked():
    return []


def test_before_the_solve_it_leaves_at_once(asked):
    with interruptible(lambda: asked.append(True)) as interruption:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interruption.asked
    assert asked == [True]


def test_while_solving_the_first_one_is_noted_and_the_second_one_raised(asked):
    with interruptible(lambda: asked.append(True)) as interruption:
        budget = TimeBudget()
        interruption.solving(budget)
        signal.raise_signal(signal.SIGTERM)
        assert interruption.asked
        assert budget.expired
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_a_waiting_solver_hears_the_first_one():
    watch = Worker(maximize=False)
    with interruptible(lambda: None) as interruption:
        interruption.solving(TimeBudget())

        def work() -> bool:
            time.sleep(0.2)  # until the main thread waits: it is there that Python runs the handler
            signal.raise_signal(signal.SIGINT)
            return watch.stop.wait(timeout=10)

        assert watch.call(work)
        assert interruption.asked


def test_while_writing_it_does_nothing(asked):
    with interruptible(lambda: asked.append(True)) as interruption:
        interruption.writing()
        signal.raise_signal(signal.SIGINT)
        assert not interruption.asked
    assert asked == []


def test_handlers_come_back_and_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inside = signal.getsignal(signal.SIGINT)
    try:
        with interruptible(lambda: None) as interruption:
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
            assert inspect.ismethod(signal.getsignal(signal.SIGINT))
            assert not interruption.asked
        assert signal.getsignal(signal.SIGINT) == inside
    finally:
        signal.signal(signal.SIGTERM, before)
