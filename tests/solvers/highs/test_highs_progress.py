import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_models import market_split

from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Event, Solution, Status


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Highs().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


# Minimising differs by signs alone, and is tried by the case ``progress_when_minimising`` of the conformance suite.
@pytest.mark.parametrize("maximize", [pytest.param(False, marks=pytest.mark.slow), True])
def test_progress_closes_in_on_the_optimum(maximize: bool) -> None:
    form = market_split(maximize=maximize, offset=1000.0)
    seen: list[Event] = []
    Highs().solve(form, SolveSettings(time_limit=1.0), on_progress=seen.append)
    worse = (lambda a, b: a <= b) if maximize else (lambda a, b: a >= b)
    objectives = [event.objective for event in seen if np.isfinite(event.objective)]
    bounds = [event.bound for event in seen]
    seconds = [event.seconds for event in seen]
    assert len(objectives) > 3
    assert all(worse(a, b) for a, b in pairwise(objectives))
    assert all(worse(b, a) for a, b in pairwise(bounds))
    assert all(worse(a, b) for a, b in zip(objectives, [bounds[-1]] * len(objectives), strict=True))
    assert seconds == sorted(seconds)
    assert len(seen) < 60


def test_new_incumbents_come_with_their_point() -> None:
    form = market_split()
    seen: list[Event] = []
    Highs().solve(form, SolveSettings(time_limit=0.5), on_progress=seen.append)
    points = [event for event in seen if event.x is not None]
    assert points
    for event in points:
        assert form.objective(event.x) == pytest.approx(event.objective)
        assert violations(form, event.x).max <= 1e-5


def test_the_last_event_is_the_outcome() -> None:
    solution = solve(market_split(3, 20), solver_options={"mip_max_nodes": 50})
    last = solution.events[-1]
    assert (last.objective, last.bound) == (solution.objective, solution.bound)


def test_progress_can_stop_the_solve() -> None:
    form = market_split()
    solution = Highs().solve(form, SolveSettings(), on_progress=lambda event: np.isfinite(event.objective))
    assert solution.status is Status.INTERRUPTED
    assert solution.found
    assert violations(form, solution.x).max <= 1e-6
    assert solution.seconds < 10


def test_an_error_in_progress_reaches_the_caller() -> None:
    def fail(event: Event) -> None:
        raise LookupError("display is gone")

    with pytest.raises(LookupError, match="display is gone"):
        Highs().solve(market_split(), SolveSettings(), on_progress=fail)


def test_progress_is_called_in_the_callers_thread() -> None:
    threads = set()
    Highs().solve(
        market_split(),
        SolveSettings(time_limit=0.3),
        on_progress=lambda _: threads.add(threading.get_ident()),
    )
    assert threads == {threading.get_ident()}


def test_ctrl_c_keeps_the_incumbent_and_the_handler() -> None:
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    solution = solve(market_split(), time_limit=30.0)
    timer.join()
    assert solution.status is Status.INTERRUPTED
    assert solution.found
    assert solution.seconds < 5
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_in_a_process_of_its_own() -> None:
    program = (
        "from small_models import market_split\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.highs import Highs\n"
        "started = lambda event: print('running', flush=True) if event.nodes else None\n"
        "solution = Highs().solve(market_split(), SolveSettings(time_limit=60), on_progress=started)\n"
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
