"""What a tree search found, and what it tells on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from mipforest.solvers.solution import Event, Progress, Status
from mipforest.trees import Predictor

#: Seconds between two events of progress without a better tree.
PROGRESS_INTERVAL = 0.5


@dataclass(frozen=True, eq=False)
class Found:
    """Outcome of a tree search.

    Attributes
    ----------
    tree
        Best tree found, for scaled features; ``None`` if there is none.
    bound
        Proven lower bound on the value of every tree, ``-inf`` of a search that proves nothing.
    status
        Why the search ended; :attr:`~mipforest.solvers.solution.Status.OPTIMAL` only where the bound proves the tree
        within the gap.
    nodes
        Steps of the search.
    events
        Progress, in order of time.
    warnings
        What the user should know.
    message
        The search's own last word.
    objective
        Value of the tree by the search, of a model without rows; NaN where the model tells it.
    reported
        What else the search found out, ready for JSON: part of the result.
    """

    tree: Predictor | None
    bound: float
    status: Status
    nodes: int = 0
    events: tuple[Event, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    objective: float = float("nan")
    reported: Mapping[str, Any] = field(default_factory=dict)


class SearchEvents:
    """The progress of a search: better trees at once, the rest at most every :data:`PROGRESS_INTERVAL` seconds.

    Parameters
    ----------
    on_progress
        Called with every event; returning ``True`` stops the search.

    Attributes
    ----------
    began
        When the search began, on the clock of :func:`time.monotonic`.
    """

    def __init__(self, on_progress: Progress | None) -> None:
        self.began = monotonic()
        self._on_progress = on_progress
        self._events: list[Event] = []

    def deadline(self, time_limit: float | None) -> float:
        """Return when a time limit (seconds, or ``None``) is over, on the clock of :func:`time.monotonic`."""
        return inf if time_limit is None else self.began + time_limit

    def tell(self, objective: float, bound: float, nodes: int) -> bool:
        """Tell objective, bound and nodes where it is time to; return whether to stop."""
        last = self._events[-1] if self._events else None
        if last is None or objective < last.objective or self._seconds() - last.seconds >= PROGRESS_INTERVAL:
            return self._told(objective, bound, nodes)
        return False

    def end(self, objective: float, bound: float, nodes: int) -> tuple[Event, ...]:
        """Tell how the search ended; return all events."""
        self._told(objective, bound, nodes)
        return tuple(self._events)

    def _told(self, objective: float, bound: float, nodes: int) -> bool:
        self._events.append(Event(self._seconds(), objective, bound, nodes))
        return bool(self._on_progress is not None and self._on_progress(self._events[-1]))

    def _seconds(self) -> float:
        return monotonic() - self.began
