"""A solve that is under way: its live progress on a terminal."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mipforest.formatting import duration, percent, printable, value_text
from mipforest.interruption import Interruption

if TYPE_CHECKING:
    from mipforest.solvers.solution import Event


#: Improvements of incumbent or bound that stay in view.
HISTORY = 6

#: Redraws per second.
REFRESH = 8

#: Seconds between two lines where there is no terminal: a log of an hour stays short, and a minute is not silent.
EVERY = 30.0


class Progress:
    """What a command is doing, on standard error.

    On a terminal a display that redraws itself and vanishes at the end; elsewhere one plain line per phase, and one
    every so often.

    Parameters
    ----------
    quiet
        Show nothing.
    every
        Seconds between two lines where there is no terminal.
    """

    def __init__(self, *, quiet: bool = False, every: float = EVERY) -> None:
        self._quiet = quiet
        self._every = every
        self._phase = "starting"
        self._aside = ""
        self._foot = ""
        self._began = monotonic()
        self._limit: float | None = None
        self._ended = threading.Event()
        self._lines: threading.Thread | None = None
        self._event: Event | None = None
        self._history: list[Event] = []
        self._live: Live | None = None
        console = Console(stderr=True)
        if not quiet and console.is_terminal:
            self._live = Live(
                console=console, get_renderable=self._view, refresh_per_second=REFRESH, transient=True
            )

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        elif not self._quiet:
            self._lines = threading.Thread(target=self._print_lines, daemon=True)
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the display."""
        self._ended.set()
        if self._lines is not None:
            self._lines.join()
            self._lines = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def phase(self, text: str, *, plain: bool = False) -> None:
        """Show what is done now.

        Parameters
        ----------
        text
            What is done.
        plain
            Whether it is worth a line where there is no terminal.
        """
        text = printable(text)  # it may name a file
        if self._limit is None:
            self._phase, self._began = text, monotonic()
        else:
            self._aside = text  # the clock of the solve goes on
        if plain and self._live is None and not self._quiet:
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def solving(self, seconds: float) -> Iterator[None]:
        """Show the clock and the events of a solve inside the ``with`` block.

        Parameters
        ----------
        seconds
            How long it may last, infinite without a limit.
        """
        self._began, self._limit = monotonic(), seconds
        try:
            yield
        finally:
            self._limit, self._event, self._history, self._aside = None, None, [], ""
            self._began = monotonic()

    def stopping(self) -> None:
        """Show that the user has asked to stop; safe in a signal handler."""
        self._foot = "stopping and keeping the incumbent; Ctrl-C again gives it up"

    def show(self, event: Event) -> None:
        """Show a progress event of the solver."""
        self._aside = ""
        if not self._history or _improved(self._history[-1], event):
            self._history = [*self._history[-HISTORY:], event]
        self._event = event

    def _view(self) -> Group:
        """Draw the display; called by its own thread."""
        elapsed, event = monotonic() - self._began, self._event
        if event is None:
            return Group(_line(f"{self._aside or self._phase} ({duration(elapsed)})", "bold"))
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("time", "incumbent", "bound", "gap", "nodes"):
            table.add_column(column, justify="right", min_width=10)
        for earlier in self._history[:-1]:
            table.add_row(*_cells(earlier, earlier.seconds), style="dim")
        table.add_row(*_cells(event, elapsed), style="bold")
        foot = self._foot or f"{self._time_left(elapsed)}; Ctrl-C stops and keeps the incumbent"
        return Group(_line(self._aside or self._phase, "bold"), table, _line(foot, "dim"))

    def _print_lines(self) -> None:
        """Print how far it is, again and again until the end; runs in a thread of its own."""
        while not self._ended.wait(self._every):
            elapsed, event = monotonic() - self._began, self._event
            if event is None:
                line = f"{self._aside or self._phase} ({duration(elapsed)})"
            else:
                time, incumbent, bound, gap, nodes = _cells(event, elapsed)
                state = f"incumbent {incumbent}, bound {bound}, gap {gap}, {nodes} nodes"
                line = f"{time}: {state}; {self._foot or self._time_left(elapsed)}"
            print(line, file=sys.stderr, flush=True)

    def _time_left(self, elapsed: float) -> str:
        left = max(0.0, (math.inf if self._limit is None else self._limit) - elapsed)
        return f"{duration(left)} left" if math.isfinite(left) else "no time limit"


def _line(text: str, style: str) -> Text:
    """Return one line, cut where the terminal ends: a display that wraps cannot be redrawn in place."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _cells(event: Event, seconds: float) -> tuple[str, ...]:
    from mipforest.solvers.solution import relative_gap

    gap = relative_gap(event.objective, event.bound)
    return (
        duration(seconds),
        value_text(event.objective, event.bound),
        value_text(event.bound, event.objective),
        percent(gap),
        str(event.nodes),
    )


def _improved(before: Event, after: Event) -> bool:
    """Return whether incumbent or bound moved so far that it shows."""
    return _cells(before, 0.0)[1:3] != _cells(after, 0.0)[1:3]


def stoppable(progress: Progress, interruption: Interruption) -> Callable[[Event], bool]:
    """Return what a solve is given: it shows every event, and stops the solve once that is asked for."""

    def on_progress(event: Event) -> bool:
        progress.show(event)
        return interruption.asked

    return on_progress
