"""Arrays of linear expressions with numpy's semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.errors import ExpressionError
from mipforest.model.expression_array import ExpressionArray
from mipforest.model.numeric import numeric, numeric_divisors, numeric_factors
from mipforest.model.operators import Shape, broadcast_shape
from mipforest.model.relation import Relation
from mipforest.model.rows import add_rows, scale_rows, with_data

if TYPE_CHECKING:
    from mipforest.model.quadratic import QuadraticExpr


class LinearExpr(ExpressionArray["LinearExpr"]):
    """An n-dimensional array of linear expressions ``A x + constant``.

    Supports what numpy arrays of numbers support, as far as it stays linear: ``+ - * /`` with
    broadcasting, ``@`` with dense or sparse matrices on either side, indexing, :meth:`sum`,
    :meth:`reshape`, :attr:`T`; ``** 2`` gives a quadratic expression, ``<= >= ==`` a constraint block.
    Series and data frames of pandas count as the arrays of their values, by position (pandas itself
    cannot start ``frame @ expr``; write ``frame.to_numpy() @ expr``).

    Attributes
    ----------
    matrix
        (size, columns so far) CSR matrix, one row per entry in C order.
    constant
        (size,) constants.
    shape
        Shape of the array.
    owner
        The model whose variables it reads (``None`` for pure numbers).
    """

    def __init__(self, matrix: SparseMatrix, constant: FloatArray, shape: Shape, owner: object) -> None:
        self._matrix = matrix
        self._constant = constant
        self.shape = shape
        self.owner = owner

    @property
    def matrix(self) -> SparseMatrix:
        """(size, columns so far) CSR matrix; shared among expressions, never to be changed."""
        return self._matrix

    @property
    def constant(self) -> FloatArray:
        """(size,) constants; shared among expressions, never to be changed."""
        return self._constant

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape}, {self.matrix.nnz} terms>"

    def _take(self, entries: IntArray) -> LinearExpr:
        flat = entries.ravel()
        return LinearExpr(self.matrix[flat], self.constant[flat], entries.shape, self.owner)

    def _apply(self, operator: SparseMatrix, shape: Shape) -> LinearExpr:
        combined = operator @ self.matrix
        combined.sum_duplicates()
        return LinearExpr(combined, operator @ self.constant, shape, self.owner)

    def broadcast_to(self, shape: Shape) -> LinearExpr:
        """Repeat entries so that the array has the given shape."""
        return self if shape == self.shape else super().broadcast_to(shape)

    # ------------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> LinearExpr:
        if _is_quadratic(other):
            return NotImplemented
        if not isinstance(other, LinearExpr):
            values = numeric(other)
            shape = broadcast_shape(self.shape, values.shape, "+")
            body = self.broadcast_to(shape)
            constant = body.constant + np.broadcast_to(values, shape).ravel()
            return LinearExpr(body.matrix, constant, shape, self.owner)
        owner = common_owner(self, other)
        shape = broadcast_shape(self.shape, other.shape, "+")
        a, b = self.broadcast_to(shape), other.broadcast_to(shape)
        return LinearExpr(add_rows(a.matrix, b.matrix), a.constant + b.constant, shape, owner)

    __radd__ = __add__

    def __neg__(self) -> LinearExpr:
        matrix = self.matrix
        return LinearExpr(with_data(matrix, -matrix.data), -self.constant, self.shape, self.owner)

    def __pos__(self) -> LinearExpr:
        return self

    def __sub__(self, other: Any) -> LinearExpr:
        if _is_quadratic(other):
            return NotImplemented
        return self.__add__(-other if isinstance(other, LinearExpr) else -numeric(other))

    def __rsub__(self, other: Any) -> LinearExpr:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Any:
        if other is self:
            return self**2
        if isinstance(other, ExpressionArray):
            raise ExpressionError(
                f"a product of two expressions (shapes {self.shape} and {other.shape}) is not linear; write "
                "expr ** 2 or sum_squares(expr) for squares, and model a product with a binary by "
                "model.add_indicator or big-M rows"
            )
        return self._scaled(numeric_factors(other), np.multiply, "*")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> LinearExpr:
        if isinstance(other, ExpressionArray):
            raise ExpressionError(
                f"division of an expression of shape {self.shape} by an expression of shape {other.shape} "
                "is not linear; multiply both sides by the divisor first"
            )
        return self._scaled(numeric_divisors(other), np.divide, "/")

    def _scaled(self, factors: FloatArray, operation: np.ufunc, symbol: str) -> LinearExpr:
        shape = broadcast_shape(self.shape, factors.shape, symbol)
        body = self.broadcast_to(shape)
        if factors.ndim:
            factors = np.broadcast_to(factors, shape).ravel()
        matrix = scale_rows(body.matrix, factors, operation)
        return LinearExpr(matrix, operation(body.constant, factors), shape, self.owner)

    def __pow__(self, exponent: Any) -> QuadraticExpr:
        from mipforest.model.quadratic import square  # quadratic.py builds on this module

        if not np.isscalar(exponent) or exponent != 2:
            raise ExpressionError(f"expr ** {exponent!r}: only squares, expr ** 2, can stand in a model")
        return square(self)

    # ------------------------------------------------------------------ comparison

    def _compare(self, other: Any, sense: str) -> Relation:
        if _is_quadratic(other):
            raise quadratic_row(other.shape)
        difference = self - other
        side = 0.0 - difference.constant
        free = np.full(difference.size, np.inf)
        lower = side if sense in (">=", "==") else -free
        upper = side if sense in ("<=", "==") else free
        return Relation(difference.matrix, lower, upper, difference.shape, difference.owner)

    def __le__(self, other: Any) -> Relation:
        return self._compare(other, "<=")

    def __ge__(self, other: Any) -> Relation:
        return self._compare(other, ">=")

    def __eq__(self, other: object) -> Relation:  # type: ignore[override]
        return self._compare(other, "==")

    __hash__ = object.__hash__


def quadratic_row(shape: Shape) -> ExpressionError:
    """Make the error of a quadratic expression in a comparison."""
    return ExpressionError(
        f"a quadratic expression (shape {shape}) can stand in the objective only, not in a constraint; move "
        "it there with a weight, or bound the linear expression under the square from both sides"
    )


def common_owner(*expressions: LinearExpr) -> object:
    """Give the model that all expressions read; refuse a mixture of two models."""
    owners = [e.owner for e in expressions if e.owner is not None]
    if any(owner is not owners[0] for owner in owners):
        raise ExpressionError(
            "variables of two models in one expression; take them all from one model "
            "(after copy(): from the copy, copy['name'])"
        )
    return owners[0] if owners else None


def _is_quadratic(value: object) -> bool:
    return isinstance(value, ExpressionArray) and not isinstance(value, LinearExpr)
