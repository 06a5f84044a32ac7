import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_models import market_split, model

from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.gurobi import Gurobi
from mipforest.solvers.solution import Event, Solution, Status

pytest.importorskip("gurobipy")


def solve(form: MatrixForm, **options: object) -> Solution:
    return Gurobi().solve(form, SolveSettings(**options))  # type: ignore[arg-type]


# Minimising differs by signs alone, and is tried by the case ``progress_when_minimising`` of the conformance suite.
@pytest.mark.parametrize("maximize", [pytest.param(False, marks=pytest.mark.slow), True])
def test_progress_closes_in_on_the_optimum(maximize: bool) -> None:
    form = market_split(maximize=maximize, offset=1000.0)
    seen: list[Event] = []
    Gurobi().solve(form, SolveSettings(time_limit=1.0), on_progress=seen.append)
    sign = -1 if maximize else 1
    objectives = [sign * event.objective for event in seen if np.isfinite(event.objective)]
    bounds = [sign * event.bound for event in seen]
    seconds = [event.seconds for event in seen]
    assert len(objectives) > 3
    assert all(a >= b for a, b in pairwise(objectives))
    assert all(a <= b for a, b in pairwise(bounds))
    assert all(value >= bounds[-1] for value in objectives)
    assert seconds == sorted(seconds)
    assert seen[-1].nodes > 0


def test_new_incumbents_come_with_their_point() -> None:
    form = market_split()
    seen: list[Event] = []
    Gurobi().solve(form, SolveSettings(time_limit=0.5), on_progress=seen.append)
    points = [event for event in seen if event.x is not None]
    assert points
    for event in points:
        assert form.objective(event.x) == event.objective
        assert violations(form, event.x).max <= 1e-5


def test_progress_can_stop_the_solve() -> None:
    form = market_split()
    solution = Gurobi().solve(form, SolveSettings(), on_progress=lambda event: np.isfinite(event.objective))
    assert solution.status is Status.INTERRUPTED
    assert violations(form, solution.x).max <= 1e-6
    assert solution.seconds < 10


def test_an_error_in_progress_reaches_the_caller(capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()

    def fail(event: Event) -> None:
        raise LookupError("display is gone")

    with pytest.raises(LookupError, match="display is gone"):
        Gurobi().solve(market_split(), SolveSettings(), on_progress=fail)
    assert threading.active_count() == before
    assert capfd.readouterr() == ("", "")


def test_an_error_inside_a_callback_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from mipforest.solvers.gurobi.session import GurobiListener

    def fail(listener: GurobiListener, x: np.ndarray) -> None:
        raise ZeroDivisionError("in the callback")

    monkeypatch.setattr(GurobiListener, "_new_incumbent", fail)
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        solve(market_split(), time_limit=20.0)
    assert capfd.readouterr() == ("", "")


def test_progress_is_called_in_the_callers_thread() -> None:
    threads = set()
    Gurobi().solve(
        market_split(),
        SolveSettings(time_limit=0.3),
        on_progress=lambda _: threads.add(threading.get_ident()),
    )
    assert threads == {threading.get_ident()}


def test_the_last_event_is_the_outcome() -> None:
    solution = solve(market_split(3, 20), solver_options={"NodeLimit": 50})
    last = solution.events[-1]
    assert (last.objective, last.bound) == (solution.objective, solution.bound)


def test_ctrl_c_keeps_the_incumbent_and_the_handler(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[int] = []

    def handler(number: int, frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        solution = solve(market_split(), time_limit=30.0)
        timer.join()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert solution.status is Status.INTERRUPTED
    assert solution.found
    assert solution.seconds < 5
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_in_a_process_of_its_own() -> None:
    program = (
        "from small_models import market_split\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.gurobi import Gurobi\n"
        "started = lambda event: print('running', flush=True) if event.nodes else None\n"
        "solution = Gurobi().solve(market_split(), SolveSettings(time_limit=60.0), on_progress=started)\n"
        "print(solution.status, solution.found, solution.seconds < 30)\n"
    )
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=40)
    assert "Interrupt request" not in output
    assert output.splitlines()[-1] == "interrupted True True"
    assert process.returncode == 0


def test_works_in_another_thread_and_twice_at_once() -> None:
    found: list[Solution] = []
    form = market_split(2, 10)
    threads = [threading.Thread(target=lambda: found.append(solve(form))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [solution.status for solution in found] == [Status.OPTIMAL] * 2
    assert found[0].objective == pytest.approx(solve(form).objective)


def test_a_linear_model_reports_its_outcome() -> None:
    solution = solve(model([1.0, 2.0], [[1.0, 1.0]], 3.0))
    assert solution.events[-1].objective == solution.objective == solution.bound == 3.0
