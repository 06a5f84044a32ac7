import math
import os
import signal
import threading

import numpy as np
import pytest

from mipforest.solvers import worker
from mipforest.solvers.solution import Event
from mipforest.solvers.worker import EVENT_INTERVAL, SolverLate, Worker, solvers_run_on


def test_gives_what_the_work_gives() -> None:
    assert Worker(maximize=False).call(lambda: 7) == 7


def test_an_error_of_the_work_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        Worker(maximize=False).call(lambda: 1 / 0)


def test_an_error_of_the_listener_stops_the_work_and_reaches_the_caller() -> None:
    before = threading.active_count()
    watch = Worker(maximize=False, on_progress=lambda event: {}["absent"])

    def work() -> None:
        watch.observe(1.0, 0.0, 0)
        assert watch.stop.wait(10)

    with pytest.raises(KeyError):
        watch.call(work)
    assert threading.active_count() == before


@pytest.mark.parametrize(("maximize", "best"), [(False, 2.0), (True, 1.0)])
def test_only_the_best_bound_counts(maximize: bool, best: float) -> None:
    watch = Worker(maximize)
    point = np.zeros(1)
    watch.call(lambda: [watch.observe(5.0, bound, 0, point) for bound in (1.5, 1.0, 2.0, 1.7)])
    assert watch.events[-1].bound == best  # exact: a copy


def test_every_incumbent_but_not_every_look_is_an_event() -> None:
    seen: list[Event] = []
    watch = Worker(maximize=False, on_progress=seen.append)

    def work() -> None:
        for k in range(1000):
            watch.observe(math.inf, float(k), k)
        for k in range(3):
            watch.observe(9.0 - k, 0.0, 0, np.full(1, 9.0 - k))

    watch.call(work)
    assert len(seen) <= 4 + watch.seconds / EVENT_INTERVAL  # exact: a count
    assert math.isnan(seen[0].objective)
    assert [event.x[0] for event in seen if event.x is not None] == [9.0, 8.0, 7.0]
    assert all(event.x is None for event in watch.events)


def test_events_without_news_are_not_recorded() -> None:
    watch = Worker(maximize=False)
    watch.finish(math.nan, 0.0, 1)
    watch.finish(math.nan, 0.0, 2)
    watch.finish(3.0, 0.0, 3)
    assert [event.nodes for event in watch.events] == [1, 3]


def test_the_first_ctrl_c_asks_the_work_to_stop() -> None:
    watch = Worker(maximize=False)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    assert watch.call(lambda: watch.stop.wait(20))
    timer.join()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("first", [0.05, 0.13, 0.21])
def test_the_second_ctrl_c_gives_up_waiting(first: float) -> None:
    watch = Worker(maximize=False)
    release = threading.Event()
    timers = [threading.Timer(t, os.kill, (os.getpid(), signal.SIGINT)) for t in (first, 0.5)]
    for timer in timers:
        timer.start()
    with pytest.raises(KeyboardInterrupt):
        watch.call(lambda: release.wait(20))
    assert watch.stop.is_set()
    assert not timers[0].is_alive()
    release.set()
    for timer in timers:
        timer.join()


@pytest.fixture
def hanging(monkeypatch):
    """Return work that ends when the test does, without patience for it; the end of the program must wait for it."""
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    at_exit, release = [], threading.Event()
    monkeypatch.setattr(worker.atexit, "register", at_exit.append)
    yield lambda: release.wait(20)
    release.set()
    for join in at_exit:
        join()
    assert len(at_exit) == 1


def test_work_that_does_not_end_in_time_is_left_behind(hanging):
    watch = Worker(maximize=False)
    with pytest.raises(SolverLate):
        watch.call(hanging, seconds=0.0, leave=True)
    assert not watch.stop.is_set()
    assert solvers_run_on()


def test_work_that_does_not_stop_is_left_behind(hanging):
    watch = Worker(maximize=False)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(SolverLate):
        watch.call(hanging, leave=True)
    timer.join()
    assert watch.stop.is_set()


def test_work_that_may_not_be_left_is_waited_for(monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    release = threading.Event()
    threading.Timer(2 * EVENT_INTERVAL, release.set).start()
    assert Worker(maximize=False).call(lambda: release.wait(20), seconds=0.0)


def test_the_stack_of_other_threads_keeps_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.stack_size()
    assert Worker(maximize=False).call(threading.stack_size) in (before, worker.STACK_BYTES)
    assert threading.stack_size() == before
    monkeypatch.setattr(worker, "STACK_BYTES", 1)  # refused by every system: the default serves
    assert Worker(maximize=False).call(lambda: 7) == 7
    assert threading.stack_size() == before
