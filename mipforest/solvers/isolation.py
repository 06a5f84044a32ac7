"""A solve in a process of its own: what ends that process ends nothing else.

Native solvers can abort: SCIP 10 does on some quadratic models. ``python -P -m mipforest.solvers.isolation`` is the
other process. It reads one call from its standard input and writes events and the outcome to its standard output, all
of them pickled; a stop is another line of input.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import MipforestError, NotAllowed, SolverError
from mipforest.model.matrix import MatrixForm
from mipforest.processes import environment_of_pythons, python_of
from mipforest.settings import SolveSettings
from mipforest.solvers.base import Solver, assembled
from mipforest.solvers.checks import judge_start
from mipforest.solvers.solution import Event, Progress, Solution, Status
from mipforest.solvers.worker import Worker

#: What is called there: :func:`mipforest.solving.solve_form`, as this module must not import it.
Call = Callable[..., Solution]

#: Least seconds that a solver gets, where loading the other process takes the whole limit.
LEAST_LIMIT = 0.1

#: Seconds beyond its limit, and after a stop, until the process is killed; it ends half a second after, as a rule.
PATIENCE = 0.8

#: What to do when the other process died.
ADVICE = "take another solver (highs, gurobi) or, for a tree, a search (auto, routing)"

_STOP = b"stop\n"


def isolated(
    call: Call,
    form: MatrixForm,
    solver: Solver,
    settings: SolveSettings,
    *,
    start: FloatArray | None = None,
    priorities: IntArray | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Solve a matrix form in a process of its own.

    Where that process dies, the solution has status ``error``, its last incumbent, or the start, and no
    bound.

    Parameters
    ----------
    call
        Solves it there, with the other arguments; a function of a module.
    form, solver, settings, start, priorities, on_progress
        As for :func:`mipforest.solving.solve_form`.

    Raises
    ------
    NotAllowed
        If the solver cannot be handed over: a class of the main program, say.
    SolverError
        What the solve raised there.
    """
    settings = replace(settings, isolate=False)
    try:
        job = pickle.dumps((call, form, solver, settings, start, priorities, time.time()))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise NotAllowed(
            f"{solver.name} cannot run in a process of its own: {error}",
            hint="leave isolate out, or define the solver in a module",
            option="leave --isolate out, or define the solver in a module",
        ) from error
    worker = Worker(form.maximize, on_progress)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            python_of(__name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment_of_pythons(),
            start_new_session=True,  # Ctrl-C on a terminal is for this process, which stops the other
        )
        other = _Other(process)
        watch = threading.Thread(target=_end_in_time, args=(other, worker, settings.time_limit), daemon=True)
        watch.start()
        try:
            outcome = worker.call(lambda: _answer(other, job, worker))
        finally:
            process.kill()
            process.wait()
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            return outcome
        said.seek(0)
        words = said.read().decode(errors="replace").strip().splitlines()[-1:]
    known, warnings = judge_start(form, start).full, []
    if other.late:
        status = Status.INTERRUPTED if worker.stop.is_set() else Status.TIME_LIMIT
        why = f"{solver.name} did not end when it had to, and its process was killed"
    else:
        status, why = Status.ERROR, f"the process of {solver.name} {_ending(process.returncode, words)}"
        kept = "the start" if known is not None else "nothing"
        kept = "its last incumbent" if other.incumbent is not None else kept
        warnings = [f"{why}; {kept} is kept, and no bound: {ADVICE}"]
    return assembled(
        form,
        worker,
        solver=solver.name,
        version=solver.version(),
        status=status,
        x=other.incumbent,
        start=known,
        warnings=warnings,
        message=why,
    )


class _Other:
    """The other process: its last incumbent, and whether it was killed as it did not end in time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.late = process, False
        self.incumbent: FloatArray | None = None


def _ending(code: int | None, words: list[str]) -> str:
    """Say how a process ended, with its last word."""
    if code is not None and code < 0:
        names = {number.value: number.name for number in signal.Signals}
        how = f"was ended by {names.get(-code, f'signal {-code}')}"
    else:
        how = f"ended with exit code {code} and no answer"
    return f"{how}: {words[0]}" if words else how


def _answer(other: _Other, job: bytes, worker: Worker) -> Solution | BaseException | None:
    """Send the call, hand on events, and return the outcome; ``None`` where the process ends without one."""
    process = other.process
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(len(job).to_bytes(8, "big") + job)
        process.stdin.flush()
        while True:
            answer = pickle.load(process.stdout)
            if not isinstance(answer, Event):
                found: Solution | BaseException = answer
                return found
            if answer.x is not None:
                other.incumbent = answer.x
            worker.observe(answer.objective, answer.bound, answer.nodes, answer.x)
    except (EOFError, OSError, pickle.UnpicklingError):
        process.wait()
        return None


def _end_in_time(other: _Other, worker: Worker, time_limit: float | None) -> None:
    """Stop the other process once a stop is asked for, or its time is over; kill it where it does not end."""
    process = other.process
    latest = math.inf if time_limit is None else time.monotonic() + time_limit + PATIENCE
    while process.poll() is None:
        if worker.stop.is_set() or time.monotonic() > latest:
            try:
                assert process.stdin is not None
                process.stdin.write(_STOP)
                process.stdin.flush()
                process.wait(PATIENCE)
            except (OSError, ValueError, subprocess.TimeoutExpired):
                other.late = True
                process.kill()
            return
        time.sleep(0.02)


# ---------------------------------------------------------------------- the other process


def main() -> None:
    """Read a call, make it, and write its outcome."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
    # What the solver prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    given = sys.stdin.buffer
    size = int.from_bytes(given.read(8), "big")
    call, form, solver, settings, start, priorities, sent = pickle.loads(given.read(size))
    if settings.time_limit is not None:
        left = max(settings.time_limit - (time.time() - sent), LEAST_LIMIT)
        settings = replace(settings, time_limit=min(left, settings.time_limit))
    threading.Thread(target=_listen, args=(given,), daemon=True).start()

    def send(event: Event) -> None:
        _write(answers, event)

    outcome: Any
    try:
        outcome = call(form, solver, settings, start=start, priorities=priorities, on_progress=send)
    except KeyboardInterrupt:
        return
    except MipforestError as error:
        outcome = error
    except Exception as error:
        outcome = SolverError(f"{solver.name} failed: {type(error).__name__}: {error}")
    _write(answers, outcome)
    answers.flush()
    os._exit(0)  # a solver that still has threads when C++ takes down its globals ends the process by SIGABRT


def _write(answers: IO[bytes], answer: Any) -> None:
    """Write an event or the outcome whole."""
    buffer = io.BytesIO()
    try:
        pickle.dump(answer, buffer)
        pickle.loads(buffer.getvalue())  # an error may have arguments of its own
    except Exception:
        buffer = io.BytesIO()
        pickle.dump(SolverError(str(answer)), buffer)
    answers.write(buffer.getvalue())
    answers.flush()


def _listen(given: IO[bytes]) -> None:
    """Turn a stop, or the end of the process that asked, into Ctrl-C: every solver heeds that."""
    asked = given.readline() == _STOP
    signal.raise_signal(signal.SIGINT) if asked else os._exit(1)


if __name__ == "__main__":
    main()
