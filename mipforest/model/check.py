"""Violations of a point, in plain numpy: the check that needs no solver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.errors import DataValueError, ShapeError
from mipforest.model.matrix import MatrixForm

#: What the rounding of a row's terms may miss, as a share of the sum of their sizes: some thirty roundings of doubles.
#: Where terms of 1e13 cancel, a row is kept that is missed by 0.1.
ROUNDING = 32 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Violations:
    """By how much a point misses each part of a model; 0 where it holds.

    Attributes
    ----------
    bounds
        (n,) distance to the column bounds.
    integrality
        (n,) distance to the nearest integer, for integer columns.
    rows
        (m,) distance to the row sides.
    indicators
        (r,) distance to the sides of the indicator rows that the point switches on (whose binary is nearer
        to their value than to the other).
    form
        The model.
    """

    bounds: FloatArray
    integrality: FloatArray
    rows: FloatArray
    indicators: FloatArray
    form: MatrixForm

    @property
    def max(self) -> float:
        """The largest violation."""
        parts = (self.bounds, self.integrality, self.rows, self.indicators)
        return max(float(part.max(initial=0.0)) for part in parts)

    def worst(self, count: int = 5) -> list[tuple[str, float]]:
        """Name the ``count`` worst violated bounds, integralities and rows, worst first."""
        indicator_names = [name for block in self.form.indicators.rows for name in block.names()]
        parts = (
            ("bound of", self.form.column_names, self.bounds),
            ("integrality of", self.form.column_names, self.integrality),
            ("row", self.form.row_names, self.rows),
            ("indicator row", indicator_names, self.indicators),
        )
        found = [
            (f"{kind} {names[k]}", float(amounts[k]))
            for kind, names, amounts in parts
            for k in np.argsort(-amounts, kind="stable")[:count]
            if amounts[k] > 0
        ]
        return sorted(found, key=lambda entry: -entry[1])[:count]


def violations(form: MatrixForm, x: FloatArray, *, exact: bool = False) -> Violations:
    """Measure how much a point violates a model.

    Parameters
    ----------
    form
        The model.
    x
        (n,) finite point.
    exact
        Whether rows are evaluated in rational arithmetic: float64 adds ``1e16 + 1 - 1e16`` up to 0. Takes some
        microseconds per entry. Otherwise a row holds that is missed by no more than the rounding of its terms
        (:data:`ROUNDING`).

    Raises
    ------
    ShapeError
        If the point has another length.
    DataValueError
        If it holds NaN or an infinite value.
    """
    x = complete_point(form, x)
    indicators = form.indicators
    active = np.abs(x[indicators.binary] - indicators.value) < 0.5
    outside = _exactly_outside if exact else _product_outside
    off_side = outside(indicators.A, x, indicators.lower, indicators.upper)
    return Violations(
        bounds=_outside(x, form.col_lower, form.col_upper),
        integrality=np.where(form.integer, np.abs(x - np.round(x)), 0.0),
        rows=outside(form.A, x, form.row_lower, form.row_upper),
        indicators=np.where(active, off_side, 0.0),
        form=form,
    )


def complete_point(form: MatrixForm, x: Any) -> FloatArray:
    """Take a point as an array that gives every column a finite value; see :func:`violations`."""
    point = np.asarray(x, dtype=np.float64)
    if point.shape != (form.n_columns,):
        raise ShapeError(
            f"the point has shape {point.shape}, the model has {form.n_columns} columns; give one value per "
            "column, or a mapping from block names to arrays"
        )
    unusable = ~np.isfinite(point)
    if unusable.any():
        first = int(np.argmax(unusable))
        raise DataValueError(
            f"the point has no finite value for {int(unusable.sum())} columns, {form.column_names[first]} = "
            f"{point[first]} first; complete it before checking"
        )
    return point


def exact_objective(form: MatrixForm, x: FloatArray) -> float:
    """Return the objective value of a (n,) point, computed in rational arithmetic and rounded once."""
    point = [Fraction(value) for value in x.tolist()]
    value = Fraction(form.offset) + sum(
        (Fraction(form.c[j]) * point[j] for j in np.flatnonzero(form.c).tolist()), Fraction(0)
    )
    if form.Q is not None:
        value += sum(map(Fraction.__mul__, point, _exact_product(form.Q, x)), Fraction(0)) / 2
    return float(value)


def _product_outside(A: SparseMatrix, x: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    missed = _outside(A @ x, lower, upper)
    if missed.any():
        missed[missed <= ROUNDING * (abs(A) @ np.abs(x))] = 0.0
    return missed


def _exactly_outside(A: SparseMatrix, x: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the (m,) distances of the rows to their sides, each rounded once."""
    amounts = np.zeros(A.shape[0])
    for i, (value, least, most) in enumerate(zip(_exact_product(A, x), lower, upper, strict=True)):
        if value < least:
            amounts[i] = float(Fraction(least) - value) if np.isfinite(least) else np.inf
        elif value > most:
            amounts[i] = float(value - Fraction(most)) if np.isfinite(most) else np.inf
    return amounts


def _exact_product(A: SparseMatrix, x: FloatArray) -> list[Fraction]:
    """Return the entries of ``A x`` as fractions."""
    point = [Fraction(value) for value in x.tolist()]
    columns, data = A.indices.tolist(), A.data.tolist()
    return [
        sum((Fraction(data[k]) * point[columns[k]] for k in range(start, stop)), Fraction(0))
        for start, stop in pairwise(A.indptr.tolist())
    ]


def _outside(value: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the distance from each value to its interval."""
    return np.maximum(0.0, np.maximum(lower - value, value - upper))
