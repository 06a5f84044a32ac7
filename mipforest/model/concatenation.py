"""Joining arrays of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from scipy import sparse

from mipforest.arrays import IntArray
from mipforest.model.errors import ExpressionError, ShapeError
from mipforest.model.expression_array import ExpressionArray
from mipforest.model.expressions import LinearExpr, common_owner
from mipforest.model.numeric import numeric
from mipforest.model.operators import Shape, positions
from mipforest.model.quadratic import QuadraticExpr
from mipforest.model.rows import stack_rows


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
    """Give each entry of the joined array as its number in the flattened parts, one part after the other."""
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
