"""The objective of a model, and its rows put together as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.errors import DataValueError, ExpressionError, ShapeError
from mipforest.model.constraints import ConstraintBlock
from mipforest.model.expressions import LinearExpr, QuadraticExpr
from mipforest.model.matrix import Block, IndicatorRows, MatrixForm
from mipforest.model.operators import numeric
from mipforest.model.rows import stack_rows, widen


@dataclass(frozen=True, eq=False)
class Objective:
    """A scalar expression and its sense."""

    expression: LinearExpr | QuadraticExpr
    maximize: bool

    @property
    def linear(self) -> LinearExpr:
        """The linear part and the constant."""
        return self.expression.linear if isinstance(self.expression, QuadraticExpr) else self.expression

    def coefficients(self, n_columns: int) -> tuple[FloatArray, float, SparseMatrix | None]:
        """Give c, the offset, and Q (``None`` for a linear objective) over all columns."""
        c = widen(self.linear.matrix, n_columns).toarray().ravel()
        Q = self.expression.hessian(n_columns) if isinstance(self.expression, QuadraticExpr) else None
        return c, float(self.linear.constant[0]), Q

    def copied_to(self, model: object) -> Objective:
        """Give the same objective for a copy of the model."""
        linear = LinearExpr(self.linear.matrix, self.linear.constant, (), model)
        if isinstance(self.expression, QuadraticExpr):
            return Objective(
                QuadraticExpr(linear, self.expression.weights, self.expression.pairs), self.maximize
            )
        return Objective(linear, self.maximize)


def objective(model: object, expression: Any, *, maximize: bool) -> Objective:
    """Check an expression (or a number) and make it the objective of a model.

    Raises
    ------
    ModelError
        As :meth:`Model.minimize <mipforest.model.model.Model.minimize>`.
    """
    if not isinstance(expression, LinearExpr | QuadraticExpr):
        values = numeric(expression)
        expression = LinearExpr(sparse.csr_array((values.size, 0)), values.flatten(), values.shape, model)
    if expression.shape != ():
        raise ShapeError(
            f"the objective has shape {expression.shape}, it must have shape (); add .sum(), or weigh the "
            "entries with weights @ expr"
        )
    linear = expression.linear if isinstance(expression, QuadraticExpr) else expression
    if linear.owner is not model:
        raise ExpressionError(
            "the objective reads variables of another model; take them from this one: model['name']"
        )
    weights = expression.weights.data if isinstance(expression, QuadraticExpr) else np.zeros(0)
    if not all(np.isfinite(part).all() for part in (linear.matrix.data, linear.constant, weights)):
        raise DataValueError(
            "the objective has a coefficient that is NaN or infinite; check the data it is built from"
        )
    return Objective(expression, maximize)


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
