"""Interval arithmetic over linear rows: the source of valid big-Ms."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, SparseMatrix


def row_bounds(
    A: SparseMatrix, col_lower: FloatArray, col_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give the least and the greatest value of ``A x`` over a box.

    Parameters
    ----------
    A
        (m, n) CSR matrix without explicit zeros (so that 0 * inf does not arise) and without duplicates.
    col_lower, col_upper
        (n,) sides of the box, possibly infinite: ``col_lower < inf``, ``col_upper > -inf``.

    Returns
    -------
    lower, upper
        (m,) interval of each row on its own, exact up to rounding; infinite where an unbounded column
        decides.
    """
    coefficient, column = A.data, A.indices
    at_lower, at_upper = coefficient * col_lower[column], coefficient * col_upper[column]
    rises = coefficient > 0
    # No term of 'least' is +inf and none of 'greatest' is -inf, so that no sum is inf - inf.
    least = np.where(rises, at_lower, at_upper)
    greatest = np.where(rises, at_upper, at_lower)
    return _row_sums(least, A.indptr), _row_sums(greatest, A.indptr)


def _row_sums(entries: FloatArray, indptr: np.ndarray) -> FloatArray:
    """Sum the entries of each CSR row; 0 for an empty row."""
    sums = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        sums[filled] = np.add.reduceat(entries, indptr[filled])
    return sums
