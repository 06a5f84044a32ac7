"""What is shown of a solve that is under way."""

import time

import pytest
from rich.console import Console

from mipforest.cli import progress as module
from mipforest.cli.progress import Progress
from mipforest.solvers.solution import Event

#: Seconds until a line that a thread prints every hundredth must have come, on a machine under load.
PATIENCE = 60.0


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def view(progress):
    console = Console(width=100)
    with console.capture() as captured:
        console.print(progress._view())
    return captured.get()


def test_the_clock_of_a_solve_ends_with_it(clock):
    progress = Progress(quiet=True)
    progress.phase("solving oct")
    with progress.solving(60.0):
        progress.show(Event(1.0, 5.0, 2.0))
        clock[0] = 20.0
        assert "40.0 s left" in view(progress)
    progress.phase("writing the results")
    clock[0] = 21.0
    assert view(progress).strip() == "writing the results (1.0 s)"


def test_what_is_told_during_a_solve_does_not_restart_its_clock(clock):
    progress = Progress(quiet=True)
    progress.phase("solving oct")
    with progress.solving(60.0):
        progress.show(Event(1.0, 5.0, 2.0))
        clock[0] = 10.0
        progress.phase("compiling the search")
        clock[0] = 20.0
        assert "compiling the search" in view(progress)
        assert "40.0 s left" in view(progress)
        progress.show(Event(20.0, 5.0, 3.0))
        assert "solving oct" in view(progress)
    with progress.solving(float("inf")):
        progress.show(Event(1.0, 5.0, 2.0))
        assert "no time limit" in view(progress)


def test_without_a_terminal_a_line_comes_every_so_often(capsys):
    with Progress(every=0.01) as progress:
        progress.phase("building oct")
        printed = until("building oct (", capsys)
        with progress.solving(60.0):
            progress.show(Event(1.0, 5.0, 2.0, nodes=7))
            printed = until("incumbent", capsys)
    (line,) = {
        part.partition(": ")[2].rpartition("; ")[0] for part in printed.splitlines() if "incumbent" in part
    }
    assert line == "incumbent 5, bound 2, gap 60.0%, 7 nodes"


def until(word, capsys):
    """Wait for a word on standard error."""
    printed, end = "", time.monotonic() + PATIENCE
    while word not in printed and time.monotonic() < end:
        time.sleep(0.005)
        printed += capsys.readouterr().err
    assert word in printed
    return printed
