r"""Rewrite a model whose numbers a solver's absolute tolerances do not fit as one of other units.

Source: a model with matrix entries so small that solvers drop them, in rows that cannot do without them
(:mod:`mipforest.solvers.bound_check`), with entries so large that solvers refuse them or lose the others, or with costs
so small that a solver's tolerance on the objective, 1e-6 and less, hides them. Target: the same model in the columns
:math:`x_j = s_j x'_j`, with rows multiplied by factors :math:`r_i` and the objective by a factor f, powers of two all
of them, so that no number is rounded:

1. The continuous columns of small entries get the factor that brings the geometric mean of the least of them and the
   column's greatest entry near 1; those of large entries, the factor that brings the geometric mean of their least and
   greatest entry near 1. The range of a column with small entries shrinks by it, and with it what a solver's dual
   tolerance is worth: a reduced cost below the tolerance counts as none, whatever the range of its column.
2. Rows that still hold small entries are multiplied until these are large enough; rows with entries that solvers refuse
   are divided. In such a row a tolerance is worth as many units more.
3. The objective is multiplied until its least cost is 1, where this is below 1e-6. Objective and bound
   are given in the old units.

No factor makes an entry, cost or side larger than 1e8: that costs a solver more digits than it saves. What that leaves
small stays as it is, and the plug-in reports it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.bridges import Bridged
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.solvers.base import Feature
from mipforest.solvers.bound_check import LARGEST, mattering, objective_unit
from mipforest.solvers.checks import SMALL_ENTRY

NAME = "unscaled_to_scaled"

ADVICE = "rescale the data"

#: Entries above this are divided through their columns: a feasibility tolerance of 1e-6 is below their rounding errors'
#: worth in pivots of doubles.
LARGE_ENTRY = 1e7

#: Entries above this are divided through their rows as well: HiGHS refuses those above 1e15.
LARGE_ROW = 1e12


def applies(form: MatrixForm, missing: frozenset[Feature] = frozenset()) -> bool:  # noqa: ARG001 - for all solvers
    """Return whether a model has small entries that matter, large entries, or small costs."""
    matrices = (form.A, form.indicators.A)
    if not all(np.isfinite(numbers).all() for numbers in (form.c, *(A.data for A in matrices))):
        return False  # solvers refuse such a model, with the name of the entry
    small = any(mattering(form, A, SMALL_ENTRY).any() for A in matrices)
    large = any(np.abs(A.data).max(initial=0.0) > LARGE_ENTRY for A in matrices)
    return small or large or objective_unit(form) != 1.0


def apply(form: MatrixForm) -> Bridged:
    """Scale the columns, rows and costs that ask for it; the rest stays the same."""
    columns = _column_factors(form)
    scaled = _with_columns_scaled(form, columns)
    factor = 1.0 / objective_unit(scaled)
    scaled = replace(
        scaled,
        c=factor * scaled.c,
        Q=None if scaled.Q is None else _csr(factor * scaled.Q),
        offset=factor * scaled.offset,
    )
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

    return Bridged(new, undo=undo, carry=lambda x: x / columns, objective=factor)


def _column_factors(form: MatrixForm) -> FloatArray:
    """Return the (n,) powers of two: 1 for integers, and where no entry is small and matters, or is large."""
    n = form.n_columns
    least, greatest = np.full(n, np.inf), np.abs(form.c)
    largest_entry, least_entry = np.zeros(n), np.full(n, np.inf)
    for A in (form.A, form.indicators.A):
        size, matters = np.abs(A.data), mattering(form, A, SMALL_ENTRY)
        np.minimum.at(least, A.indices[matters], size[matters])
        np.maximum.at(largest_entry, A.indices, size)
        np.minimum.at(least_entry, A.indices, size)
    small = np.isfinite(least) & ~form.integer
    large = (largest_entry > LARGE_ENTRY) & ~form.integer & ~small
    if form.Q is not None:
        np.maximum.at(greatest, form.Q.indices, np.sqrt(np.abs(form.Q.data)))
    greatest = np.maximum(greatest, largest_entry)
    factors = np.ones(n)
    ideal = -0.5 * (np.log2(least[small]) + np.log2(largest_entry[small]))
    factors[small] = _power(ideal, greatest[small], least[small])
    mean = 0.5 * (np.log2(least_entry[large]) + np.log2(largest_entry[large]))
    factors[large] = np.exp2(-np.ceil(np.maximum(mean, 0.0)))
    return factors


def _row_factors(form: MatrixForm, A: SparseMatrix, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the (m,) powers of two, 1 for rows without a small entry that matters, or one that solvers refuse."""
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
    refused = greatest > LARGE_ROW
    factors[refused] = np.exp2(-np.ceil(np.log2(greatest[refused] / LARGEST)))
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
