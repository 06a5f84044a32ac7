import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_models import market_split, model

from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.scip import Scip
from mipforest.solvers.solution import Event, Solution, Status

pyscipopt = pytest.importorskip("pyscipopt")


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Scip().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


# Minimising differs by signs alone, and is tried by the case ``progress_when_minimising`` of the conformance suite.
@pytest.mark.parametrize("maximize", [pytest.param(False, marks=pytest.mark.slow), True])
def test_progress_closes_in_on_the_optimum(maximize: bool) -> None:
    form = market_split(maximize=maximize, offset=1000.0)
    seen: list[Event] = []
    Scip().solve(form, SolveSettings(time_limit=1.0), on_progress=seen.append)
    worse = (lambda a, b: a <= b) if maximize else (lambda a, b: a >= b)
    objectives = [event.objective for event in seen if np.isfinite(event.objective)]
    bounds = [event.bound for event in seen]
    seconds = [event.seconds for event in seen]
    assert len(objectives) > 3
    assert all(worse(a, b) for a, b in pairwise(objectives))
    assert all(worse(b, a) for a, b in pairwise(bounds))
    assert all(worse(a, bounds[-1]) for a in objectives)
    assert np.isfinite(bounds[-1])
    assert seconds == sorted(seconds)
    assert seen[-1].nodes > 0
    assert len(seen) < 60


def test_new_incumbents_come_with_their_point() -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(10, 20))
    quadratic = model(
        rng.normal(size=20), rng.normal(size=(9, 20)), -1.0, 1.0, lower=-3, upper=3, Q=factor.T @ factor,
        integer=np.arange(20) < 15,
    )  # fmt: skip
    for form in (market_split(), quadratic):
        seen: list[Event] = []
        Scip().solve(form, SolveSettings(time_limit=0.7), on_progress=seen.append)
        points = [event for event in seen if event.x is not None]
        assert points
        for event in points:
            assert form.objective(event.x) == event.objective
            assert violations(form, event.x).max <= 1e-5


def test_the_last_event_is_the_outcome() -> None:
    solution = solve(market_split(3, 20), solver_options={"limits/nodes": 50})
    last = solution.events[-1]
    assert (last.objective, last.bound) == (solution.objective, solution.bound)


def test_progress_can_stop_the_solve() -> None:
    form = market_split()
    solution = Scip().solve(form, SolveSettings(), on_progress=lambda event: np.isfinite(event.objective))
    assert solution.status is Status.INTERRUPTED
    assert solution.found
    assert violations(form, solution.x).max <= 1e-6
    assert solution.seconds < 10


def test_an_error_in_progress_reaches_the_caller(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(event: Event) -> None:
        raise LookupError("display is gone")

    with pytest.raises(LookupError, match="display is gone"):
        Scip().solve(market_split(), SolveSettings(), on_progress=fail)
    assert capfd.readouterr() == ("", "")


def test_an_error_inside_an_event_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> float:
        raise LookupError("no objective")

    monkeypatch.setattr(MatrixForm, "objective", fail)
    with pytest.raises(LookupError, match="no objective"):
        solve(market_split())
    assert capfd.readouterr() == ("", "")


def test_progress_is_called_in_the_callers_thread() -> None:
    threads = set()
    Scip().solve(
        market_split(),
        SolveSettings(time_limit=0.3),
        on_progress=lambda _: threads.add(threading.get_ident()),
    )
    assert threads == {threading.get_ident()}


def test_other_threads_run_while_scip_solves() -> None:
    ticks: list[float] = []

    def tick() -> None:
        while len(ticks) < 20:
            time.sleep(0.01)
            ticks.append(time.perf_counter())

    clock = threading.Thread(target=tick)
    clock.start()
    began = time.perf_counter()
    solve(market_split(), time_limit=1.0)
    ended = time.perf_counter()
    clock.join()
    assert sum(began < at < ended for at in ticks) == 20


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


def started(program: str) -> subprocess.Popen[str]:
    """A process of its own, which has begun to branch."""
    head = (
        "from small_models import market_split\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.scip import Scip\n"
        "started = lambda event: print('running', flush=True) if event.nodes else None\n"
    )
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    process = subprocess.Popen(
        [sys.executable, "-c", head + program], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    return process


def test_ctrl_c_in_a_process_of_its_own() -> None:
    process = started(
        "solution = Scip().solve(market_split(), SolveSettings(time_limit=60), on_progress=started)\n"
        "print(solution.status, solution.found, solution.seconds < 30)\n"
    )
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=40)
    assert output.splitlines()[-1] == "interrupted True True"
    assert process.returncode == 0


def test_giving_up_does_not_free_scip_while_it_runs() -> None:
    # The calling thread leaves at the second Ctrl-C; here before SCIP has seen the first one.
    process = started(
        "from mipforest.solvers.worker import Worker\n"
        "class GivesUp(Exception): pass\n"
        "def call(self, work):\n"
        "    import threading, time\n"
        "    threading.Thread(target=work).start()\n"
        "    time.sleep(0.5)\n"
        "    self.stop.set()\n"
        "    raise KeyboardInterrupt\n"
        "Worker.call = call\n"
        "print('running', flush=True)\n"
        "for _ in range(3):\n"
        "    try:\n"
        "        Scip().solve(market_split(), SolveSettings(time_limit=60))\n"
        "    except KeyboardInterrupt:\n"
        "        print('given up')\n"
    )
    output, _ = process.communicate(timeout=40)
    assert output.split("\n") == ["given up"] * 3 + [""]
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_in_a_forked_process() -> None:
    form = model([1.0], lower=2.0, integer=True)
    assert solve(form).objective == 2.0
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if solve(form).objective == 2.0 else 1)
        finally:
            os._exit(2)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done == child
    assert os.waitstatus_to_exitcode(status) == 0
