r"""Tangents of a convex quadratic objective, and the linear models made of them.

The quadratic part falls apart into one function per connected component k of Q,

.. math::  q_k(x) = \tfrac12 x_k^\top Q_k x_k, \qquad
           \theta_k \ge q_k(v) + \nabla q_k(v)^\top (x - v) .

One theta per component, not one for the whole objective: a separable objective gets one tangent family per
variable, which is much tighter for the same number of rows (Hijazi, Bonami and Ouorou 2014).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.solvers.checks import SMALL_ENTRY

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
        """(count,) value of every q_k at a point of the model."""
        part = x[self.columns]
        return self.sums(0.5 * part * (self.Q @ part))

    def sums(self, parts: FloatArray) -> FloatArray:
        """(count,) sums over each component of (q,) numbers."""
        sums: FloatArray = np.bincount(self.component, weights=parts, minlength=self.count).astype(float)
        return sums

    def alone(self) -> IntArray:
        """Columns that are components of their own."""
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
        """(count,) least value of each theta at a point that the tangents so far allow."""
        theta = np.zeros(self.components.count)
        n = self.form.n_columns
        for rows, sides in zip(self._rows, self._sides, strict=True):
            component = rows[:, n:].tocoo().col
            np.maximum.at(theta, component, rows[:, :n] @ x - sides)
        return theta

    def _at(self, x: FloatArray) -> tuple[SparseMatrix, FloatArray]:
        """Rows ``gradient.x - theta <= side`` at a point: (count, n + count) matrix and (count,) sides."""
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
