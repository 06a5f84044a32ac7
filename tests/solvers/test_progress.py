"""Progress and Ctrl-C of the solvers with branch and bound, beyond the conformance suite's cases."""

import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from small_models import market_split
from tolerance import at_most, same

from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, get_solver
from mipforest.solvers.solution import Event, Solution, Status

#: Each solver, with its own name for the limit of nodes.
NODE_LIMITS = {"highs": "mip_max_nodes", "gurobi": "NodeLimit", "scip": "limits/nodes"}
PACKAGES = {"highs": "highspy", "gurobi": "gurobipy", "scip": "pyscipopt"}


@pytest.fixture(params=NODE_LIMITS)
def solver(request: pytest.FixtureRequest) -> Solver:
    pytest.importorskip(PACKAGES[request.param])
    return get_solver(request.param)


def watched(solver: Solver, form: MatrixForm, nodes: int) -> tuple[Solution, list[Event], set[int]]:
    """Solve up to a number of nodes; return the solution, the events, and the threads that told them."""
    seen: list[Event] = []
    threads: set[int] = set()

    def on_progress(event: Event) -> None:
        seen.append(event)
        threads.add(threading.get_ident())

    limit = {NODE_LIMITS[solver.name]: nodes}
    solution = solver.solve(form, SolveSettings(solver_options=limit), on_progress=on_progress)
    return solution, seen, threads


@pytest.mark.first_cases(1)
def test_progress_closes_in_on_the_optimum(solver: Solver) -> None:
    """That neither incumbents nor bounds turn back is tried by the cases ``progress_when_...``."""
    form = market_split(maximize=True, offset=1000.0)
    solution, seen, threads = watched(solver, form, nodes=300)
    assert solution.status is Status.LIMIT
    objectives = [event.objective for event in seen if np.isfinite(event.objective)]
    assert len(set(objectives)) > 2
    assert np.isfinite(seen[-1].bound)
    assert at_most(objectives, seen[-1].bound)
    assert seen[-1].nodes > 0
    assert len(seen) < 60
    assert threads == {threading.get_ident()}
    for last in (seen[-1], solution.events[-1]):
        assert same([last.objective, last.bound], [solution.objective, solution.bound])


def test_new_incumbents_come_with_their_point(solver: Solver) -> None:
    form = market_split()
    _, seen, _ = watched(solver, form, nodes=50)
    points = [event for event in seen if event.x is not None]
    assert points
    for event in points:
        assert same(form.objective(event.x), event.objective)
        assert violations(form, event.x).max <= 1e-5


def test_ctrl_c_keeps_the_incumbent_and_the_handler(
    solver: Solver, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[int] = []
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

    def handler(number: int, frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    def on_progress(event: Event) -> None:
        if np.isfinite(event.objective) and timer.ident is None:
            timer.start()

    before = signal.signal(signal.SIGINT, handler)
    try:
        solution = solver.solve(market_split(), SolveSettings(time_limit=30.0), on_progress=on_progress)
        timer.join()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert solution.status is Status.INTERRUPTED
    assert solution.found
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow  # Ctrl-C in this process: above; in one of its own: test_cli_processes
def test_ctrl_c_in_a_process_of_its_own() -> None:
    """One process for all solvers, as starting one takes longer than the solves."""
    installed = [name for name, package in PACKAGES.items() if find_spec(package)]
    program = (
        "from small_models import market_split\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.base import get_solver\n"
        "for name in input().split():\n"
        "    told = []\n"
        "    def started(event):\n"
        "        if event.nodes and not told:\n"
        "            told.append(event)\n"
        "            print('running', flush=True)\n"
        "    settings = SolveSettings(time_limit=60)\n"
        "    solution = get_solver(name).solve(market_split(), settings, on_progress=started)\n"
        "    print(name, solution.status, solution.found, flush=True)\n"
    )
    here = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(" ".join(installed) + "\n")
    process.stdin.flush()
    for name in installed:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == f"{name} interrupted True\n"
    output, _ = process.communicate(timeout=40)
    assert output == ""
    assert process.returncode == 0


def test_works_in_another_thread_and_twice_at_once(solver: Solver) -> None:
    found: list[Solution] = []
    form = market_split(2, 10)
    threads = [
        threading.Thread(target=lambda: found.append(solver.solve(form, SolveSettings()))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [solution.status for solution in found] == [Status.OPTIMAL] * 2
    assert found[0].objective == pytest.approx(solver.solve(form, SolveSettings()).objective)
