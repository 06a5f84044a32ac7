"""What a run of several solves knows of the one model that it is about: best point, bound, progress."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.checks import with_exact_integers
from mipforest.solvers.clarabel import TOLERANCE
from mipforest.solvers.solution import Event, Progress

#: Incumbent and bound that agree to this, absolutely or relatively, have met whatever gap was asked: the
#: accuracy of the quadratic solver.
ROUND_OFF = TOLERANCE


class Incumbent:
    """The best point and bound so far, all values to be minimised; only events are in the model's own sense.

    Parameters
    ----------
    form
        The model, in its own sense.
    minimised
        The same model, to be minimised.
    settings
        Gap and time limit.
    on_progress
        Called with every event.

    Attributes
    ----------
    x
        (n,) the best point, or ``None``.
    objective, bound
        Its value, and the proven bound, never above it.
    nodes
        Branch-and-bound nodes of the solves that are over.
    events
        Recorded events, without points: those whose incumbent or bound differs from the one before.
    stopped
        Whether ``on_progress`` asked to stop.
    """

    def __init__(
        self, form: MatrixForm, minimised: MatrixForm, settings: SolveSettings, on_progress: Progress | None
    ) -> None:
        self.x: FloatArray | None = None
        self.objective = np.inf
        self.bound = -np.inf
        self.nodes = 0
        self.events: list[Event] = []
        self.stopped = False
        self._form, self._minimised = form, minimised
        self._settings, self._on_progress = settings, on_progress
        self._began = monotonic()
        self._unreported: FloatArray | None = None

    # ------------------------------------------------------------------ incumbent and bound

    def offer(self, x: FloatArray) -> None:
        """Take a point if it is feasible and better."""
        value = self._minimised.objective(x)
        if value < self.objective and violations(self._form, x).max <= FEASIBILITY_TOLERANCE:
            self.x, self.objective, self._unreported = x, value, x
            self.bound = min(self.bound, value)

    def offer_with_exact_integers(self, x: FloatArray) -> None:
        """Offer a solver's point unless it needs integers that are only nearly integral.

        Through a big-M row, those can pretend an objective that no exact point has.
        """
        exact = with_exact_integers(self._form, x)
        integers = exact[self._form.integer]
        if (integers == np.round(integers)).all():
            self.offer(exact)

    def raise_bound(self, bound: float) -> None:
        """Take a proven bound. One above the incumbent says that nothing better exists."""
        # Infinity is no bound of a model that has points: a search that is over forgets its cutoff.
        if bound < np.inf:
            self.bound = max(self.bound, min(bound, self.objective))

    @property
    def tolerance(self) -> float:
        """Distance at which incumbent and bound have met; 0 without an incumbent."""
        if self.x is None:
            return 0.0
        size = abs(self.objective)
        return max(self._settings.gap * size, ROUND_OFF * max(1.0, size))

    @property
    def closed(self) -> bool:
        """Whether incumbent and bound have met."""
        return self.x is not None and self.objective - self.bound <= self.tolerance

    # ------------------------------------------------------------------ clock and progress

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Wall time until the time limit; ``None`` without one."""
        limit = self._settings.time_limit
        return None if limit is None else max(0.0, limit - self.seconds)

    def report(self, nodes: int = 0) -> bool:
        """Report the state, with the nodes of the solve that is under way; whether the run is to stop."""
        sense = -1.0 if self._form.maximize else 1.0
        x, self._unreported = self._unreported, None
        event = Event(
            seconds=self.seconds,
            objective=np.nan if self.x is None else sense * self.objective,
            bound=sense * self.bound,
            nodes=self.nodes + nodes,
            x=x,
        )
        state = [event.objective, event.bound]
        last = [self.events[-1].objective, self.events[-1].bound] if self.events else []
        if not np.array_equal(state, last, equal_nan=True):
            self.events.append(replace(event, x=None))
        if self._on_progress is not None and self._on_progress(event):
            self.stopped = True
        return self.stopped

    def give_up(self, bound: float) -> None:
        """Forget the point: the model is infeasible (bound inf) or unbounded (-inf)."""
        self.x = self._unreported = None
        self.objective, self.bound = np.inf, bound
