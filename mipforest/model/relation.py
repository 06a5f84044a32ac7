"""Comparisons between expressions, before they become a named block of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.model.errors import DataValueError, ExpressionError
from mipforest.model.expression_array import ExpressionArray
from mipforest.model.numeric import numeric
from mipforest.model.operators import Shape, broadcast_shape

if TYPE_CHECKING:
    from mipforest.model.expressions import LinearExpr


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows ``lower <= A x <= upper``, one per entry of an array of the given shape.

    Made by comparing expressions (``x.sum(axis=1) == 1``, ``X @ w >= 1 - xi``) or by :func:`between`;
    becomes part of a model through :meth:`Model.add <mipforest.model.model.Model.add>`.
    """

    A: SparseMatrix
    lower: FloatArray
    upper: FloatArray
    shape: Shape
    owner: object

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "a comparison of expressions is a constraint, not a truth value; for 'a <= expr <= b' write "
            "between(a, expr, b), and hand constraints to model.add(name, ...)"
        )

    def __repr__(self) -> str:
        return f"<Relation of shape {self.shape}, {self.A.nnz} terms>"


def between(lower: Any, expression: LinearExpr, upper: Any) -> Relation:
    """Constrain an expression from both sides, as one row per entry.

    Parameters
    ----------
    lower, upper
        Numbers or arrays that broadcast with the expression; infinite for no side.
    expression
        Any linear expression.

    Raises
    ------
    DataValueError
        If a lower side is above its upper side, or NaN.
    ExpressionError
        If a side is an expression, or the middle is none.
    """
    if isinstance(lower, ExpressionArray) or isinstance(upper, ExpressionArray):
        raise ExpressionError(
            "between(lower, expr, upper) takes numbers as its sides; write two constraint blocks, "
            "expr >= lower and expr <= upper"
        )
    if not hasattr(expression, "constant") or not isinstance(expression, ExpressionArray):
        raise ExpressionError(
            "between(lower, expr, upper) takes a linear expression in the middle, not a "
            f"{type(expression).__name__}"
        )
    low, high = numeric(lower), numeric(upper)
    shape = broadcast_shape(broadcast_shape(low.shape, expression.shape, "between"), high.shape, "between")
    if not (low <= high).all():
        raise DataValueError(
            "between(lower, expr, upper) has a lower side above its upper side (or NaN): no point satisfies "
            "it; check the data the sides are built from"
        )
    body = expression.broadcast_to(shape)
    return Relation(
        body.matrix,
        np.broadcast_to(low, shape).ravel() - body.constant,
        np.broadcast_to(high, shape).ravel() - body.constant,
        shape,
        body.owner,
    )
