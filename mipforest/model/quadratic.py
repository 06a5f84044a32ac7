"""Arrays of quadratic expressions, for objectives."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.model.errors import ExpressionError
from mipforest.model.expression_array import ExpressionArray
from mipforest.model.expressions import LinearExpr, common_owner, quadratic_row
from mipforest.model.numeric import numeric, numeric_divisors, numeric_factors
from mipforest.model.operators import Shape, broadcast_shape
from mipforest.model.rows import scale_rows, with_data


class QuadraticExpr(ExpressionArray["QuadraticExpr"]):
    """An n-dimensional array of quadratic expressions: a linear part plus weighted products of two columns.

    Made by ``expr ** 2`` and :func:`sum_squares`; supports ``+ -`` with expressions and numbers,
    ``*`` and ``/`` with numbers, ``@`` with matrices of numbers, :meth:`sum`, :meth:`reshape`,
    :attr:`T` and indexing.

    Attributes
    ----------
    linear
        The linear part, of the same shape.
    weights
        (size, q) CSR matrix: entry k of the array holds ``weights[k, r] * x_i * x_j``, ``(i, j) = pairs[r]``.
    pairs
        (q, 2) columns of each product.
    """

    def __init__(self, linear: LinearExpr, weights: SparseMatrix, pairs: IntArray) -> None:
        self.linear = linear
        self.weights = weights
        self.pairs = pairs
        self.shape = linear.shape

    def __repr__(self) -> str:
        return f"<QuadraticExpr of shape {self.shape}, {self.weights.nnz} quadratic terms>"

    def hessian(self, n_columns: int) -> SparseMatrix:
        """Symmetric (n, n) CSR matrix Q: the quadratic part of a scalar expression is ``1/2 x'Qx``."""
        weight = np.asarray(self.weights.sum(axis=0)).ravel()
        half = sparse.coo_array((weight, (self.pairs[:, 0], self.pairs[:, 1])), shape=(n_columns, n_columns))
        Q = sparse.csr_array(half.tocsr() + half.T.tocsr())
        Q.eliminate_zeros()
        Q.sort_indices()
        return Q

    def _take(self, entries: IntArray) -> QuadraticExpr:
        return QuadraticExpr(self.linear._take(entries), self.weights[entries.ravel()], self.pairs)

    def _apply(self, operator: SparseMatrix, shape: Shape) -> QuadraticExpr:
        return QuadraticExpr(self.linear._apply(operator, shape), operator @ self.weights, self.pairs)

    def broadcast_to(self, shape: Shape) -> QuadraticExpr:
        """Repeat entries so that the array has the given shape."""
        return self if shape == self.shape else super().broadcast_to(shape)

    # ------------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> QuadraticExpr:
        if not isinstance(other, QuadraticExpr):
            other_shape = other.shape if isinstance(other, LinearExpr) else numeric(other).shape
            body = self.broadcast_to(broadcast_shape(self.shape, other_shape, "+"))
            return QuadraticExpr(body.linear + other, body.weights, body.pairs)
        common_owner(self.linear, other.linear)
        shape = broadcast_shape(self.shape, other.shape, "+")
        a, b = self.broadcast_to(shape), other.broadcast_to(shape)
        weights = sparse.hstack([a.weights, b.weights], format="csr")
        return QuadraticExpr(a.linear + b.linear, weights, np.concatenate([a.pairs, b.pairs]))

    __radd__ = __add__

    def __neg__(self) -> QuadraticExpr:
        return QuadraticExpr(-self.linear, with_data(self.weights, -self.weights.data), self.pairs)

    def __pos__(self) -> QuadraticExpr:
        return self

    def __sub__(self, other: Any) -> QuadraticExpr:
        return self.__add__(-other if isinstance(other, LinearExpr | QuadraticExpr) else -numeric(other))

    def __rsub__(self, other: Any) -> QuadraticExpr:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> QuadraticExpr:
        if isinstance(other, ExpressionArray):
            raise ExpressionError(
                f"a quadratic expression (shape {self.shape}) times an expression (shape {other.shape}) "
                "is not quadratic; write the product with new variables"
            )
        return self._scaled(numeric_factors(other), np.multiply, "*")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> QuadraticExpr:
        if isinstance(other, ExpressionArray):
            raise ExpressionError(
                f"division of a quadratic expression of shape {self.shape} by an expression of shape "
                f"{other.shape} is not quadratic; divide by numbers only"
            )
        return self._scaled(numeric_divisors(other), np.divide, "/")

    def _scaled(self, factors: FloatArray, operation: np.ufunc, symbol: str) -> QuadraticExpr:
        shape = broadcast_shape(self.shape, factors.shape, symbol)
        body = self.broadcast_to(shape)
        linear = body.linear._scaled(factors, operation, symbol)
        if factors.ndim:
            factors = np.broadcast_to(factors, shape).ravel()
        return QuadraticExpr(linear, scale_rows(body.weights, factors, operation), body.pairs)

    def __pow__(self, exponent: Any) -> NoReturn:
        raise ExpressionError(
            f"a quadratic expression (shape {self.shape}) ** {exponent!r} is not quadratic; "
            "only a linear expression can be squared"
        )

    # ------------------------------------------------------------------ comparison

    def _refuse_comparison(self, _: Any) -> NoReturn:
        raise quadratic_row(self.shape)

    __le__ = __ge__ = __lt__ = __gt__ = _refuse_comparison
    __eq__ = _refuse_comparison
    __hash__ = object.__hash__


def square(expression: LinearExpr) -> QuadraticExpr:
    """Square every entry: ``(a.x + c)^2 = sum_jk a_j a_k x_j x_k + 2 c a.x + c^2``."""
    matrix, constant = expression.matrix, expression.constant
    in_row = np.diff(matrix.indptr)
    row = np.repeat(np.arange(expression.size), in_row)
    # Every entry of a row meets every entry of that row.
    left = np.repeat(np.arange(matrix.nnz), in_row[row])
    meeting = np.arange(len(left)) - np.repeat(np.cumsum(in_row[row]) - in_row[row], in_row[row])
    right = matrix.indptr[row[left]] + meeting
    pairs = np.stack([matrix.indices[left], matrix.indices[right]], axis=1).astype(np.int64)
    products = matrix.data[left] * matrix.data[right]
    weights = sparse.csr_array(
        (products, (row[left], np.arange(len(left)))), shape=(expression.size, len(left))
    )
    linear = LinearExpr(scale_rows(matrix, 2 * constant), constant**2, expression.shape, expression.owner)
    return QuadraticExpr(linear, weights, pairs)


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
    """Give ``|A x + c|^2 = x'(A'A)x + 2 (A'c).x + c.c`` without the single squares: far fewer terms."""
    A, c = expression.matrix, expression.constant
    gram = sparse.coo_array(A.T @ A)
    pairs = np.stack(gram.coords, axis=1).astype(np.int64)
    weights = sparse.csr_array(gram.data.reshape(1, -1))
    linear = LinearExpr(
        sparse.csr_array((2 * (A.T @ c)).reshape(1, -1)), np.array([c @ c]), (), expression.owner
    )
    return QuadraticExpr(linear, weights, pairs)
