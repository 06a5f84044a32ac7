"""The objective of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.model.errors import DataValueError, ExpressionError, ShapeError
from mipforest.model.expressions import LinearExpr
from mipforest.model.numeric import numeric
from mipforest.model.quadratic import QuadraticExpr
from mipforest.model.rows import widen


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
