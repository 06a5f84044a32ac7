r"""Outer approximation: tangents of a convex quadratic objective, the linear models of them, what their solves come to.

The quadratic part falls apart into one function per connected component k of Q,

.. math::  q_k(x) = \tfrac12 x_k^\top Q_k x_k, \qquad
           \theta_k \ge q_k(v) + \nabla q_k(v)^\top (x - v) .

One theta per component, not one for the whole objective: a separable objective gets one tangent family per
variable, which is much tighter for the same number of rows (Hijazi, Bonami and Ouorou 2014).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.check import violations
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.checks import SMALL_ENTRY, with_exact_integers
from mipforest.solvers.clarabel import TOLERANCE
from mipforest.solvers.solution import Event, Progress

#: Points of the ladder on each side of 0, as shares of a variable's range: each half the last. Below the
#: last, the square is small: 1/1000 of its value at the bound.
LADDER = tuple(2.0**-k for k in range(1, 6))

#: Reach of the ladder at most: beyond, the tangents' coefficients are too large for linear solvers.
FARTHEST = 1e4

#: A tangent counts as new if it lifts theta by more than this, absolutely and relative to q.
NEW = 1e-12


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of Q: who shares a theta.

    Attributes
    ----------
    Q
        (q, q) the rows and columns of Q that are not empty.
    columns
        (q,) the column of each.
    component
        (q,) the component of each, numbered from 0.
    count
        Number of components.
    """

    Q: SparseMatrix
    columns: IntArray
    component: IntArray
    count: int

    @staticmethod
    def of(Q: SparseMatrix) -> Components:
        """Find the components of a symmetric matrix."""
        columns = np.flatnonzero(np.diff(Q.indptr)).astype(np.int64)
        inner = Q[columns][:, columns].tocsr()
        count, component = connected_components(inner, directed=False)
        return Components(inner, columns, component.astype(np.int64), int(count))

    def values(self, x: FloatArray) -> FloatArray:
        """Return the (count,) value of every q_k at a point of the model."""
        part = x[self.columns]
        return self.sums(0.5 * part * (self.Q @ part))

    def sums(self, parts: FloatArray) -> FloatArray:
        """Return the (count,) sums over each component of (q,) numbers."""
        sums: FloatArray = np.bincount(self.component, weights=parts, minlength=self.count).astype(float)
        return sums

    def alone(self) -> IntArray:
        """Return the columns that are components of their own."""
        sizes = np.bincount(self.component, minlength=self.count)
        alone: IntArray = self.columns[sizes[self.component] == 1]
        return alone


class Tangents:
    """The tangents found so far for a model.

    Parameters
    ----------
    form
        A model to be minimised, with a convex quadratic objective and without indicator rows.

    Attributes
    ----------
    components
        Who shares a theta.
    """

    def __init__(self, form: MatrixForm) -> None:
        assert form.Q is not None
        self.form = form
        self.components = Components.of(form.Q)
        self._rows: list[SparseMatrix] = []
        self._sides: list[FloatArray] = []

    def extended(self, x: FloatArray) -> FloatArray:
        """Return the point of the linear models for a point of the model, with every theta at its q."""
        return np.concatenate([x, self.components.values(x)])

    def add(self, x: FloatArray, lift: float = 0.0) -> bool:
        """Add the tangents at a point where they lift theta; say whether any does.

        Parameters
        ----------
        x
            (n,) point.
        lift
            Least lift of theta that is worth a row.
        """
        rows, sides = self._at(x)
        values = self.components.values(x)
        new = values > self.theta(x) + np.maximum(lift, NEW * np.maximum(1.0, values))
        if not new.any():
            return False
        self._rows.append(rows[np.flatnonzero(new)])
        self._sides.append(sides[new])
        return True

    def add_ladder(self, seen: Iterable[FloatArray]) -> None:
        """Add tangents at points spread over the range of each variable that is a component of its own.

        Parameters
        ----------
        seen
            Points of the model. Without a bound, twice the largest value seen stands for the range.
        """
        columns = self.components.alone()
        lower, upper = self.form.col_lower[columns], self.form.col_upper[columns]
        reach = np.maximum(np.abs(lower), np.abs(upper))
        reach[np.isinf(reach)] = 2 * max((np.abs(x[columns]).max(initial=0.0) for x in seen), default=0.0)
        reach = np.minimum(reach, FARTHEST)
        for share in LADDER:
            for sign in (1.0, -1.0):
                point = np.zeros(self.form.n_columns)
                point[columns] = np.clip(sign * share * reach, lower, upper)
                self.add(point)

    def theta(self, x: FloatArray) -> FloatArray:
        """Return the (count,) least value of each theta at a point that the tangents so far allow."""
        theta = np.zeros(self.components.count)
        n = self.form.n_columns
        for rows, sides in zip(self._rows, self._sides, strict=True):
            component = rows[:, n:].tocoo().col
            np.maximum.at(theta, component, rows[:, :n] @ x - sides)
        return theta

    def _at(self, x: FloatArray) -> tuple[SparseMatrix, FloatArray]:
        """Return the rows ``gradient.x - theta <= side`` at a point: (count, n + count) matrix and (count,) sides."""
        parts = self.components
        gradient = parts.Q @ x[parts.columns]
        # q(v) + g.(x - v) <= theta, and g.v = 2 q(v):  g.x - theta <= q(v)
        sides = parts.values(x)
        # A solver that drops a coefficient tightens the row where the term would be negative: drop it here,
        # and give the side what it can be worth.
        with np.errstate(invalid="ignore"):
            worth = np.maximum(
                -gradient * self.form.col_lower[parts.columns], -gradient * self.form.col_upper[parts.columns]
            )
        small = (np.abs(gradient) <= SMALL_ENTRY) & np.isfinite(worth)
        sides = sides + parts.sums(np.where(small, worth, 0.0))
        gradient = np.where(small, 0.0, gradient)
        slopes = sparse.coo_array(
            (gradient, (parts.component, parts.columns)), shape=(parts.count, self.form.n_columns)
        )
        rows = sparse.hstack([slopes, -sparse.eye_array(parts.count)], format="csr")
        rows.eliminate_zeros()
        return rows, sides

    def linear_form(self) -> MatrixForm:
        """Write the linear model with all tangents so far; its last columns are the thetas."""
        form, count = self.form, self.components.count
        n = form.n_columns
        wide = sparse.csr_array((form.A.data, form.A.indices, form.A.indptr), shape=(form.n_rows, n + count))
        sides = np.concatenate([np.zeros(0), *self._sides])
        return replace(
            form,
            c=np.concatenate([form.c, np.ones(count)]),
            Q=None,
            A=sparse.vstack([wide, *self._rows], format="csr"),
            row_lower=np.concatenate([form.row_lower, np.full(len(sides), -np.inf)]),
            row_upper=np.concatenate([form.row_upper, sides]),
            # Each q_k is nonnegative: Q is positive semidefinite.
            col_lower=np.concatenate([form.col_lower, np.zeros(count)]),
            col_upper=np.concatenate([form.col_upper, np.full(count, np.inf)]),
            integer=np.concatenate([form.integer, np.zeros(count, dtype=bool)]),
            indicators=IndicatorRows.none(n + count),
            columns=(*form.columns, Block("theta", n, (count,))),
            rows=(*form.rows, Block("tangent", form.n_rows, (len(sides),))),
        )


#: Incumbent and bound that agree to this, absolutely or relatively, have met whatever gap was asked: the
#: accuracy of the quadratic solver.
ROUND_OFF = TOLERANCE


class Incumbent:
    """What a run of several solves knows of its one model: best point and bound, progress.

    All values are to be minimised; only events are in the model's own sense.

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
