"""Row operations on CSR matrices of coefficients.

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
    """Give a matrix with the same pattern and other entries; the pattern is shared, not copied."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def widen(matrix: SparseMatrix, width: int) -> SparseMatrix:
    """Give the same matrix more (empty) columns; entries are shared, not copied."""
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
