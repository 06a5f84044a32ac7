"""Row operations on CSR matrices of coefficients, and interval arithmetic over rows: the source of valid big-Ms.

Expressions share the arrays of their matrices, so nothing here (or elsewhere) changes a matrix in place
that it did not make itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix


def index_type(entries: int, width: int) -> type[np.signedinteger[Any]]:
    """Integer type that numbers the entries and columns of a matrix: 32 bits wherever they do."""
    return np.int32 if max(entries, width) < np.iinfo(np.int32).max else np.int64


def with_data(matrix: SparseMatrix, data: FloatArray) -> SparseMatrix:
    """Return a matrix with the same pattern and other entries; the pattern is shared, not copied."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def widen(matrix: SparseMatrix, width: int) -> SparseMatrix:
    """Append empty columns to a matrix; entries are shared, not copied."""
    if matrix.shape[1] == width:
        return matrix
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def add_rows(a: SparseMatrix, b: SparseMatrix) -> SparseMatrix:
    """Add two matrices of equally many rows, whichever has more columns."""
    width = max(a.shape[1], b.shape[1])
    if not b.nnz or not a.nnz:
        return widen(a if a.nnz else b, width)
    return widen(a, width) + widen(b, width)


def scale_rows(matrix: SparseMatrix, factors: FloatArray, operation: np.ufunc = np.multiply) -> SparseMatrix:
    """Multiply (or divide) each row by its factor, or all rows by a single one."""
    per_entry = factors if factors.ndim == 0 else np.repeat(factors, np.diff(matrix.indptr))
    return with_data(matrix, operation(matrix.data, per_entry))


def stack_rows(matrices: Sequence[SparseMatrix], width: int) -> SparseMatrix:
    """Put matrices of at most ``width`` columns under each other, in fresh arrays."""
    if not matrices:
        return sparse.csr_array((0, width))
    starts = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    index = index_type(int(starts[-1]), width)
    ends = [matrix.indptr[1:] + start for matrix, start in zip(matrices, starts, strict=False)]
    indptr = np.concatenate([[0], *ends]).astype(index)
    data = np.concatenate([matrix.data for matrix in matrices])
    indices = np.concatenate([matrix.indices for matrix in matrices]).astype(index, copy=False)
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))


def row_bounds(
    A: SparseMatrix, col_lower: FloatArray, col_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of ``A x`` over a box.

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
