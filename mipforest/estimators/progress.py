"""Progress of a fit: printed lines, and a function of the user's own."""

from __future__ import annotations

import math

from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.solvers.base import Progress
from mipforest.solvers.solution import Event, relative_gap


class PrintedProgress:
    """Prints what was built, a line whenever incumbent or bound moved, and the end; passes every event on.

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

    def built(self, problem: Problem) -> None:
        """Say what is solved."""
        if self._verbose:
            form, seconds = problem.model.matrix(), problem.prepare_seconds + problem.build_seconds
            print(
                f"[{self._name}] {problem.formulation.name}, depth {problem.topology.depth}, "
                f"{problem.data.n} samples: {form.n_columns} columns, {form.n_rows} rows, built in {seconds:.1f} s",
                flush=True,
            )

    def ended(self, result: Result) -> None:
        """Say how the solve ended."""
        if self._verbose:
            print(f"[{self._name}] {result.status} after {result.solution.seconds:.1f} s", flush=True)

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
