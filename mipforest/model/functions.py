"""Functions of expressions: joining, sums of squares, two-sided comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from scipy import sparse

from mipforest.arrays import IntArray
from mipforest.errors import DataValueError, ExpressionError, ShapeError
from mipforest.model.expression_array import ExpressionArray, Relation
from mipforest.model.expressions import LinearExpr, QuadraticExpr, common_owner, square
from mipforest.model.matrix import stack_rows
from mipforest.model.operators import Shape, broadcast_shape, numeric, positions


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


def sum_squares(expression: LinearExpr, axis: int | tuple[int, ...] | None = None) -> QuadraticExpr:
    """Sum of the squares of all entries, or over one or several axes.

    Raises
    ------
    ExpressionError
        If it is not a linear expression.
    """
    if not isinstance(expression, LinearExpr):
        raise ExpressionError(
            f"sum_squares of a {type(expression).__name__}: only linear expressions are squared in a model; "
            "for numbers write (values ** 2).sum()"
        )
    return square(expression).sum(axis) if axis is not None else _sum_of_all_squares(expression)


def _sum_of_all_squares(expression: LinearExpr) -> QuadraticExpr:
    """Return ``|A x + c|^2 = x'(A'A)x + 2 (A'c).x + c.c`` without the single squares: far fewer terms."""
    A, c = expression.matrix, expression.constant
    gram = sparse.coo_array(A.T @ A)
    pairs = np.stack(gram.coords, axis=1).astype(np.int64)
    weights = sparse.csr_array(gram.data.reshape(1, -1))
    linear = LinearExpr(
        sparse.csr_array((2 * (A.T @ c)).reshape(1, -1)), np.array([c @ c]), (), expression.owner
    )
    return QuadraticExpr(linear, weights, pairs)


@overload
def concatenate(parts: Sequence[LinearExpr], axis: int = 0) -> LinearExpr: ...
@overload
def concatenate(parts: Sequence[Any], axis: int = 0) -> Any: ...
def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    """Join expressions (or numbers) along an axis, as :func:`numpy.concatenate`.

    Parameters
    ----------
    parts
        Expressions and arrays of numbers, equal in all other dimensions; at least one expression.
    axis
        The dimension along which they follow each other.

    Returns
    -------
    LinearExpr or QuadraticExpr
        Quadratic when one of the parts is.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    """
    if isinstance(parts, ExpressionArray):
        raise ExpressionError(
            f"concatenate takes a list of expressions, not one of shape {parts.shape}; write [a, b]"
        )
    if not any(isinstance(part, ExpressionArray) for part in parts):
        raise ExpressionError("concatenate of no expression; use numpy.concatenate for numbers")
    expressions: list[LinearExpr | QuadraticExpr] = [
        part if isinstance(part, LinearExpr | QuadraticExpr) else _constants(part) for part in parts
    ]
    order = _joined_positions([part.shape for part in expressions], axis)
    linear = _stacked([e.linear if isinstance(e, QuadraticExpr) else e for e in expressions])
    if not any(isinstance(part, QuadraticExpr) for part in expressions):
        return linear._take(order)
    weights = [
        e.weights if isinstance(e, QuadraticExpr) else sparse.csr_array((e.size, 0)) for e in expressions
    ]
    pairs = np.concatenate([e.pairs for e in expressions if isinstance(e, QuadraticExpr)])
    return QuadraticExpr(linear, sparse.block_diag(weights, format="csr"), pairs)._take(order)


def _joined_positions(shapes: list[Shape], axis: int) -> IntArray:
    """Return each entry of the joined array as its number in the flattened parts, one part after the other."""
    sizes = [positions(shape).size for shape in shapes]
    starts = np.cumsum([0, *sizes])
    numbered = [positions(shape) + start for shape, start in zip(shapes, starts, strict=False)]
    try:
        return np.concatenate(numbered, axis=axis)
    except ValueError:
        listed = ", ".join(map(str, shapes))
        raise ShapeError(
            f"shapes {listed} do not join along axis {axis}; all other dimensions must be equal: "
            "insert one with expr[None], or turn an array with .T"
        ) from None


def _stacked(parts: list[LinearExpr]) -> LinearExpr:
    width = max(part.matrix.shape[1] for part in parts)
    matrix = stack_rows([part.matrix for part in parts], width)
    constant = np.concatenate([part.constant for part in parts])
    return LinearExpr(matrix, constant, constant.shape, common_owner(*parts))


def _constants(value: Any) -> LinearExpr:
    values = numeric(value)
    return LinearExpr(sparse.csr_array((values.size, 0)), values.ravel(), values.shape, None)
