import os
import signal
import sys
import threading
import time
from pathlib import Path
from subprocess import PIPE, run

import numpy as np
import pytest
from small_models import market_split, model
from tolerance import same

from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import SolveSettings
from mipforest.solvers.scip import Scip
from mipforest.solvers.solution import Event, Solution

pyscipopt = pytest.importorskip("pyscipopt")


def solve(form: MatrixForm, start: np.ndarray | None = None, **options: object) -> Solution:
    return Scip().solve(form, SolveSettings(**options), start=start)  # type: ignore[arg-type]


@pytest.mark.slow
def test_incumbents_of_a_quadratic_model_come_with_their_point() -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(10, 20))
    quadratic = model(
        rng.normal(size=20), rng.normal(size=(9, 20)), -1.0, 1.0, lower=-3, upper=3, Q=factor.T @ factor,
        integer=np.arange(20) < 15,
    )  # fmt: skip
    seen: list[Event] = []
    limit = SolveSettings(solver_options={"limits/nodes": 1})
    Scip().solve(quadratic, limit, on_progress=seen.append)
    points = [event for event in seen if event.x is not None]
    assert points
    for event in points:
        assert same(quadratic.objective(event.x), event.objective)
        assert violations(quadratic, event.x).max <= 1e-5


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


def test_other_threads_run_while_scip_solves() -> None:
    ticks: list[float] = []

    def tick() -> None:
        while len(ticks) < 10:
            time.sleep(0.01)
            ticks.append(time.perf_counter())

    clock = threading.Thread(target=tick)
    clock.start()
    began = time.perf_counter()
    solve(market_split(), time_limit=0.5)
    ended = time.perf_counter()
    clock.join()
    assert sum(began < at < ended for at in ticks) == 10


@pytest.mark.slow  # work that is left behind: test_worker
def test_giving_up_does_not_free_scip_while_it_runs() -> None:
    # The calling thread leaves at the second Ctrl-C; here before SCIP has seen the first one.
    program = (
        "from small_models import market_split\n"
        "from mipforest.settings import SolveSettings\n"
        "from mipforest.solvers.scip import Scip\n"
        "from mipforest.solvers.worker import Worker\n"
        "def call(self, work):\n"
        "    import threading, time\n"
        "    threading.Thread(target=work).start()\n"
        "    time.sleep(0.2)\n"
        "    self.stop.set()\n"
        "    raise KeyboardInterrupt\n"
        "Worker.call = call\n"
        "for _ in range(3):\n"
        "    try:\n"
        "        Scip().solve(market_split(), SolveSettings(time_limit=60))\n"
        "    except KeyboardInterrupt:\n"
        "        print('given up')\n"
    )
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    done = run(
        [sys.executable, "-c", program], stdout=PIPE, text=True, env=environment, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["given up"] * 3


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
