"""What a solver gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mipforest.formatting import duration, percent, value_text
from mipforest.settings import DEFAULT_GAP

if TYPE_CHECKING:
    from mipforest.arrays import FloatArray

#: Differences up to this are what sums of doubles near 1 leave of an exact zero: a share of errors 1 - (1/3 + 2/3).
ROUNDED_ZERO = 1e-14

#: Distance between objective and bound, beyond the asked gap, that counts as round-off: of the objective, whose
#: point has its integers rounded, and absolutely. SCIP's own value of a quadratic objective is up to 1e-6 below the
#: exact one, more than that counts.
ROUND_OFF, ABSOLUTE_GAP = 1e-6, 1e-7


class Status(StrEnum):
    """Why a solver stopped, and what it knows."""

    OPTIMAL = "optimal"
    """A solution within the asked gap, proven."""
    TIME_LIMIT = "time_limit"
    """The time limit came first; there may be a solution (see ``Solution.x``)."""
    INTERRUPTED = "interrupted"
    """The user stopped the run; there may be a solution."""
    LIMIT = "limit"
    """Another limit (nodes, memory, solutions, iterations) came first; there may be a solution."""
    BEST_FOUND = "best_found"
    """A search that proves nothing came to its end: there is a solution, and no bound."""
    INFEASIBLE = "infeasible"
    """Proven: no point satisfies all rows."""
    UNBOUNDED = "unbounded"
    """Proven: the objective improves without end."""
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"
    """One of the two; the solver did not find out which."""
    IMPORTED = "imported"
    """The solution was made elsewhere and read from a file; nothing is known of the optimal value."""
    ERROR = "error"
    """The solver gave up; ``Solution.message`` says why."""


@dataclass(frozen=True)
class Event:
    """One line of progress.

    Attributes
    ----------
    seconds
        Time since the solve began.
    objective
        Value of the incumbent, NaN while there is none.
    bound
        Proven bound on the optimal value, infinite while there is none.
    nodes
        Branch-and-bound nodes so far.
    x
        (n,) the point, on the event that reports a new incumbent (where the solver hands it out).
    """

    seconds: float
    objective: float
    bound: float
    nodes: int = 0
    x: FloatArray | None = field(default=None, repr=False, compare=False)


#: Called with every progress event; returning ``True`` asks the solver to stop and keep its incumbent.
Progress = Callable[[Event], bool | None]


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Outcome of a solve.

    Attributes
    ----------
    status
        Why the solver stopped.
    x
        (n,) best point found, or ``None``.
    values
        The same by variable block.
    objective
        Value of ``x`` (NaN without one), in the model's own sense.
    bound
        Proven bound on the optimal value: below it when minimising, above when maximising.
    nodes
        Branch-and-bound nodes explored.
    seconds
        Wall time of the solve.
    events
        Progress, in order of time.
    solver, solver_version
        Who solved it.
    bridges
        Names of the rewritings between the model and the solver, in order of use.
    start_objective
        Value of the start that the solver took, NaN without one.
    warnings
        What the user should know: a start that was dropped, a tolerance that was not met.
    message
        The solver's own last word.
    stopped
        Whether a stop was asked for, also where the solver came to an end of its own just before.
    bound_by
        What vouches for the bound: ``solver``, ``exact-search`` (one over all trees before the solve), ``definition``
        (no tree has less).
    reported
        What else a tree search found out, ready for JSON.
    row_duals
        (m,) duals y of the linear rows at an optimum of a continuous model, in the model's own sense: the objective
        changes by ``y_i`` per unit of the side of row i. ``None`` where the solver gives none, or the model was
        rewritten.
    reduced_costs
        (n,) ``c + Qx - A'y``.
    """

    status: Status
    x: FloatArray | None
    values: Mapping[str, FloatArray]
    objective: float
    bound: float
    nodes: int
    seconds: float
    solver: str
    solver_version: str
    events: tuple[Event, ...] = ()
    bridges: tuple[str, ...] = ()
    start_objective: float = float("nan")
    warnings: tuple[str, ...] = ()
    message: str = ""
    stopped: bool = False
    bound_by: tuple[str, ...] = ("solver",)
    reported: Mapping[str, Any] = field(default_factory=dict)
    row_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None

    def __repr__(self) -> str:
        numbers = f"objective {value_text(self.objective, self.bound)}, bound {value_text(self.bound, self.objective)}"
        return f"Solution({self.solver}: {self.status}, {numbers}, {duration(self.seconds)})"

    @property
    def found(self) -> bool:
        """Whether there is a point."""
        return self.x is not None

    @property
    def gap(self) -> float:
        """``|objective - bound| / |objective|``; 0 when both agree, inf without a point or a bound."""
        return relative_gap(self.objective, self.bound) if self.found else float("inf")

    def __getitem__(self, block: str) -> FloatArray:
        """Return the values of one variable block."""
        return self.values[block]


@dataclass(frozen=True, eq=False, repr=False)
class PooledSolution:
    """One of several solutions of a model.

    Attributes
    ----------
    objective
        Its value.
    x
        (n,) point.
    values
        The same by variable block.
    """

    objective: float
    x: FloatArray
    values: Mapping[str, FloatArray]

    def __repr__(self) -> str:
        return f"PooledSolution(objective {value_text(self.objective)})"

    def __getitem__(self, block: str) -> FloatArray:
        """Return the values of one variable block."""
        return self.values[block]


def relative_gap(objective: float, bound: float) -> float:
    """Return the gap between an objective value and a bound, relative to the objective.

    The convention of HiGHS and Gurobi: ``|objective - bound| / |objective|``, with 0 when they agree up to
    :data:`ROUNDED_ZERO`, and inf when the objective is 0 and they do not.
    """
    difference = abs(objective - bound)
    if difference <= ROUNDED_ZERO:
        return 0.0
    return difference / abs(objective) if objective else float("inf")


def closed(objective: float, bound: float, gap: float | None = 0.0, unit: float = 1.0) -> bool:
    """Say whether objective and bound are close enough to call the point optimal: the one rule of all that do.

    Parameters
    ----------
    objective, bound
        NaN and infinity where there is none; nothing is optimal then.
    gap
        Relative gap that was asked for, ``None`` for any. Round-off comes on top: ``ROUND_OFF`` of the objective, and
        ``ABSOLUTE_GAP``, which is what counts near 0, where relative gaps mean nothing.
    unit
        What the absolute part is relative to: below 1 where costs
        are so small that an objective is within it of anything (:func:`~mipforest.solvers.bound_check.objective_unit`).
    """
    size, difference = abs(objective), abs(objective - bound)
    if not difference < float("inf"):
        return False
    return gap is None or bool(difference <= gap * size + max(unit * ABSOLUTE_GAP, ROUND_OFF * size))


def gap_in_words(objective: float, bound: float) -> str:
    """Write the gap in percent; the difference itself where that is round-off near 0, and its share means nothing."""
    gap, difference = relative_gap(objective, bound), abs(objective - bound)
    return f"{difference:.1g}, absolute" if difference <= ABSOLUTE_GAP and gap > DEFAULT_GAP else percent(gap)
