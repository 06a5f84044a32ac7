"""One time limit for all that is done for an answer: preparation, starts, bounds, building, solving, checking."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

#: Seconds from which on a result says that a search was compiled first, and what it says.
LONG_COMPILATION = 3.0
COMPILED = "the search was compiled in {:.0f} s, which the time limit does not count; later runs need not"


class Stopped(KeyboardInterrupt):
    """A stop was asked for where a search has not begun: there is nothing to keep but what was known before."""


class ReportLine(Protocol):
    """Shows the user a line."""

    def __call__(self, line: str, /, *, plain: bool = ...) -> object:
        """Show a line; ``plain`` where it is worth one also without a live display."""


class TimeBudget:
    """A time limit that everything done for one answer shares, a request to stop, and the seconds of each phase.

    Loops that may take long ask :attr:`expired` between two steps, and end with the best that they have. Who calls
    something with a time limit of its own passes on :meth:`at_most`. A budget without a limit that nobody stops changes
    nothing: what is computed then does not depend on the clock.

    Parameters
    ----------
    seconds
        Wall time from now on; ``None`` for no limit.
    report
        Called with a line for the user when something begins that may last; with ``plain=True`` where it is worth one
        also without a live display.
    clock
        Returns seconds; another one in tests.

    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        report: ReportLine | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._stopped = False
        self._whole: TimeBudget | None = None
        self._report, self._clock = report, clock
        self._deadline = math.inf if seconds is None else clock() + seconds
        self._seconds: dict[str, float] = {}
        self._excluded = 0.0
        self._noted: list[str] = []
        self._prepared: dict[str, float] | None = None
        self._under_way: list[str] = []
        self._since = clock()

    # ------------------------------------------------------------------ the limit

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for, as by Ctrl-C; of a part also, of the whole."""
        return self._stopped or (self._whole is not None and self._whole.stopped)

    @property
    def remaining(self) -> float:
        """Seconds that are left: infinite without a limit, 0 once a stop was asked for."""
        if self.stopped:
            return 0.0
        own = max(0.0, self._deadline - self._clock())
        return own if self._whole is None else min(own, self._whole.remaining)

    @property
    def expired(self) -> bool:
        """Whether to end now with the best that is known."""
        return self.remaining == 0.0

    def at_most(self, seconds: float | None = None, *, share: float = 1.0) -> float | None:
        """Return a share of what is left, and no more than some seconds; ``None`` where nothing limits it.

        What :class:`~mipforest.settings.SolveSettings` takes as a time limit.
        """
        left = share * self.remaining
        least = left if seconds is None else min(left, seconds)
        return None if least == math.inf else least

    def part(self, seconds: float | None = None, *, share: float = 1.0) -> TimeBudget:
        """Return a budget of its own for a part of the work: a share of what is left, and at most some seconds.

        It runs out with this one, and its phases are not accounted for here.
        """
        part = TimeBudget(self.at_most(seconds, share=share), clock=self._clock)
        part._whole = self
        return part

    def stop(self) -> None:
        """Ask everything to end with the best that is known; safe in a signal handler."""
        self._stopped = True
        if self._whole is not None:
            self._whole.stop()

    def begin_solve(self, seconds: float | None) -> None:
        """Begin a solve of at most some seconds.

        The first one has what the preparation has left, where that had a limit, and ends at once if that was stopped.
        Each further solve of the same problem has time of its own.
        """
        end = math.inf if seconds is None else self._clock() + seconds
        if self._prepared is None:
            self._deadline = min(self._deadline, end)
            self._prepared = dict(self._seconds)
        else:
            self._deadline, self._stopped = end, False
            self._seconds = dict(self._prepared)

    # ------------------------------------------------------------------ the account

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall time of each phase that is over, in the order in which they began; they do not overlap."""
        return dict(self._seconds)

    @property
    def excluded_seconds(self) -> float:
        """Wall time of compiling and loading so far, which the limit does not count."""
        return (self._whole or self)._excluded

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result says of seconds that were not counted: nothing where a search was loaded, not compiled."""
        whole = self._whole or self
        seconds = whole._seconds.get("compile", 0.0)
        # What was noted is why later runs compile it again.
        return tuple(whole._noted) or ((COMPILED.format(seconds),) if seconds > LONG_COMPILATION else ())

    @contextmanager
    def phase(self, name: str, message: str = "") -> Iterator[None]:
        """Account for a phase; one inside another interrupts it, so that every second is counted once.

        Parameters
        ----------
        name
            What the seconds are counted as.
        message
            A line for the user, where the phase may last.
        """
        self._switch()
        self._under_way.append(name)
        self._seconds.setdefault(name, 0.0)
        if message and self._report is not None:
            self._report(message)
        try:
            yield
        finally:
            self._switch()
            self._under_way.pop()

    def report(self, line: str) -> None:
        """Show the user a line in any case."""
        if self._whole is not None:
            self._whole.report(line)
        elif self._report is not None:
            self._report(line, plain=True)

    def note(self, line: str) -> None:
        """Have the result say, once, why later runs have to compile a search again."""
        noted = (self._whole or self)._noted
        if line not in noted:
            noted.append(line)

    def exclude(self, name: str, seconds: float) -> None:
        """Count seconds that have just passed as a phase of this name, and not against the limit."""
        self._deadline += seconds
        if self._whole is not None:
            self._whole.exclude(name, seconds)
            return
        self._switch()
        if self._under_way:
            self._seconds[self._under_way[-1]] -= seconds
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        self._excluded += seconds

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Count the loading of a package as the phase ``load``, and not against the limit."""
        began = self._clock()
        try:
            yield
        finally:
            self.exclude("load", self._clock() - began)

    def _switch(self) -> None:
        """Count the time since the last change of phase for the phase under way."""
        now = self._clock()
        if self._under_way:
            # Another solve of the problem, in another thread, may have begun the account anew.
            name = self._under_way[-1]
            self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now
