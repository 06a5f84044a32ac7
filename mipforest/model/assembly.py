"""Putting the parts of a model together as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.model.constraints import ConstraintBlock
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.model.rows import stack_rows


def stack_blocks(
    blocks: Sequence[ConstraintBlock], n_columns: int
) -> tuple[SparseMatrix, FloatArray, FloatArray, tuple[Block, ...]]:
    """Give the canonical matrix (no explicit zeros), the sides and the naming blocks, in fresh arrays."""
    A = stack_rows([block.A for block in blocks], n_columns)
    A.sum_duplicates()
    if not A.data.all():
        A.eliminate_zeros()
    starts = np.cumsum([0, *(block.size for block in blocks)])
    named = tuple(block.block(int(start)) for block, start in zip(blocks, starts, strict=False))
    lower = np.concatenate([np.zeros(0), *(block.lower for block in blocks)])
    upper = np.concatenate([np.zeros(0), *(block.upper for block in blocks)])
    return A, lower, upper, named


def stack_indicators(blocks: Sequence[ConstraintBlock], n_columns: int) -> IndicatorRows:
    """Give the indicator rows of several blocks, in fresh arrays."""
    if not blocks:
        return IndicatorRows.none(n_columns)
    A, lower, upper, named = stack_blocks(blocks, n_columns)
    binary = np.concatenate([block.binary for block in blocks if block.binary is not None])
    value = np.concatenate([block.value for block in blocks if block.value is not None])
    return IndicatorRows(binary, value, A, lower, upper, named)


def read_only(form: MatrixForm) -> MatrixForm:
    """Lock the arrays of a form that several readers share, so that none changes it for the others."""
    rows = form.indicators
    vectors = [form.c, form.row_lower, form.row_upper, form.col_lower, form.col_upper, form.integer]
    vectors += [rows.binary, rows.value, rows.lower, rows.upper]
    for matrix in (form.A, rows.A, form.Q):
        if matrix is not None:
            vectors += [matrix.data, matrix.indices, matrix.indptr]
    for vector in vectors:
        vector.setflags(write=False)
    return form
