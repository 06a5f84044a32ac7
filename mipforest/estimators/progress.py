"""Progress of a fit: printed lines, and a function of the user."""

from __future__ import annotations

import math

from mipforest.solvers.base import Progress
from mipforest.solvers.solution import Event, relative_gap


class PrintedProgress:
    """Prints a line whenever incumbent or bound moved, and passes every event on.

    Parameters
    ----------
    name
        Stands at the beginning of every line.
    verbose
        0 prints nothing.
    then
        Called with every event; what it gives back is given back.
    """

    def __init__(self, name: str, verbose: int, then: Progress | None) -> None:
        self._name = name
        self._verbose = verbose
        self._then = then
        self._printed = ""

    def __call__(self, event: Event) -> bool | None:
        """Take an event; ``True`` asks the solver to stop and keep its incumbent."""
        state = f"incumbent {_written(event.objective)}  bound {_written(event.bound)}"
        if self._verbose and state != self._printed:
            self._printed = state
            gap = relative_gap(event.objective, event.bound)
            share = f"{gap:.2%}" if math.isfinite(gap) else "-"
            print(f"[{self._name}] {event.seconds:7.1f} s  {state}  gap {share}", flush=True)
        return None if self._then is None else self._then(event)


def _written(value: float) -> str:
    """Write a value with six digits, - where there is none."""
    return f"{value:.6g}" if math.isfinite(value) else "-"
