r"""Rewrite a model with entries that solvers take for zeros as one of other units.

Source: entries :math:`a_{ij}` so small that solvers drop them, in rows that cannot do without them
(:mod:`mipforest.solvers.claims`). Target: the same model in the columns :math:`x_j = s_j x'_j`, with rows
multiplied by factors :math:`r_i`, powers of two all of them, so that no number is rounded:

1. The continuous columns of such entries get the factor that brings the geometric mean of the least of them and the
   column's greatest entry near 1. Their range shrinks by it, and with it what a solver's dual tolerance is worth: a
   reduced cost below the tolerance counts as none, whatever the range of its column.
2. Rows that still hold such entries are multiplied until these are large enough.

No factor makes an entry, cost or side larger than 1e8: that costs a solver more digits than it saves. What that leaves
small stays as it is, and the plug-in reports it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.bridges.indicator_to_big_m import Bridged
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.checks import SMALL_ENTRY
from mipforest.solvers.claims import mattering

NAME = "small_entries_to_scaled"

#: Largest size that a scaled number may have.
LARGEST = 1e8


def applies(form: MatrixForm) -> bool:
    """Return whether a model has small entries that matter."""
    return any(mattering(form, A, SMALL_ENTRY).any() for A in (form.A, form.indicators.A))


def apply(form: MatrixForm) -> Bridged:
    """Scale the columns and rows of small entries that matter; the rest stays the same."""
    columns = _column_factors(form)
    scaled = _with_columns_scaled(form, columns)
    rows = _row_factors(scaled, scaled.A, scaled.row_lower, scaled.row_upper)
    indicators = scaled.indicators
    indicator_rows = _row_factors(scaled, indicators.A, indicators.lower, indicators.upper)
    new = replace(
        scaled,
        A=_csr(sparse.diags_array(rows) @ scaled.A),
        row_lower=rows * scaled.row_lower,
        row_upper=rows * scaled.row_upper,
        indicators=replace(
            indicators,
            A=_csr(sparse.diags_array(indicator_rows) @ indicators.A),
            lower=indicator_rows * indicators.lower,
            upper=indicator_rows * indicators.upper,
        ),
    )

    def undo(x: FloatArray) -> FloatArray:
        point = columns * x
        # A bound that is missed by a solver's tolerance is missed by a multiple of it in the old units.
        clipped = np.clip(point, form.col_lower, form.col_upper)
        return clipped if violations(form, clipped).max <= violations(form, point).max else point

    return Bridged(new, undo=undo, carry=lambda x: x / columns)


def _column_factors(form: MatrixForm) -> FloatArray:
    """Return the (n,) powers of two, 1 for columns that are integer or have no small entry that matters."""
    n = form.n_columns
    least, greatest = np.full(n, np.inf), np.abs(form.c)
    largest_entry = np.zeros(n)
    for A in (form.A, form.indicators.A):
        size, matters = np.abs(A.data), mattering(form, A, SMALL_ENTRY)
        np.minimum.at(least, A.indices[matters], size[matters])
        np.maximum.at(largest_entry, A.indices, size)
    wanted = np.isfinite(least) & ~form.integer
    if form.Q is not None:
        np.maximum.at(greatest, form.Q.indices, np.sqrt(np.abs(form.Q.data)))
    greatest = np.maximum(greatest, largest_entry)
    factors = np.ones(n)
    ideal = -0.5 * (np.log2(least[wanted]) + np.log2(largest_entry[wanted]))
    factors[wanted] = _power(ideal, greatest[wanted], least[wanted])
    return factors


def _row_factors(form: MatrixForm, A: SparseMatrix, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the (m,) powers of two, 1 for rows without a small entry that matters."""
    m = A.shape[0]
    row = np.repeat(np.arange(m), np.diff(A.indptr))
    matters = mattering(form, A, SMALL_ENTRY)
    sides = np.abs(np.stack([lower, upper]))
    least = np.full(m, np.inf)
    greatest = np.where(np.isfinite(sides), sides, 0.0).max(axis=0)
    np.minimum.at(least, row[matters], np.abs(A.data[matters]))
    np.maximum.at(greatest, row, np.abs(A.data))
    wanted = np.isfinite(least)
    factors = np.ones(m)
    factors[wanted] = _power(np.log2(2 * SMALL_ENTRY / least[wanted]), greatest[wanted], least[wanted])
    return factors


def _power(exponent: FloatArray, greatest: FloatArray, least: FloatArray) -> FloatArray:
    """Return 2 to the exponents, rounded up, or what leaves the greatest numbers below the largest size.

    It is 1 where that does not make the least ones large enough.
    """
    most = np.floor(np.log2(LARGEST / np.maximum(greatest, np.finfo(float).tiny)))
    powers = np.exp2(np.clip(np.ceil(exponent), 0, np.maximum(most, 0)))
    saves: FloatArray = np.where(powers * least > SMALL_ENTRY, powers, 1.0)
    return saves


def _with_columns_scaled(form: MatrixForm, factors: FloatArray) -> MatrixForm:
    """Return the model in the columns ``x / factors``."""
    by = sparse.diags_array(factors)
    return replace(
        form,
        c=factors * form.c,
        Q=None if form.Q is None else _csr(by @ form.Q @ by),
        A=_csr(form.A @ by),
        col_lower=form.col_lower / factors,
        col_upper=form.col_upper / factors,
        indicators=replace(form.indicators, A=_csr(form.indicators.A @ by)),
    )


def _csr(matrix: SparseMatrix) -> SparseMatrix:
    found = sparse.csr_array(matrix)
    found.sort_indices()
    return found
