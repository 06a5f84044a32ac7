"""Arrays of linear and of quadratic expressions with numpy's semantics, and functions of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn, overload

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import DataValueError, ExpressionError, ModelError, ShapeError
from mipforest.model.algebra import SHOWN_ROWS, cut_off, linear_text
from mipforest.model.matrix import add_rows, scale_rows, stack_rows, widen, with_data
from mipforest.model.operators import (
    ExpressionArray,
    Relation,
    Shape,
    broadcast_shape,
    is_sparse,
    numeric,
    numeric_divisors,
    numeric_factors,
    positions,
)


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
        self._announce(matrix.nnz)

    def _announce(self, terms: int) -> None:
        """Tell whoever watches the model of terms that an expression has, or is about to have."""
        announce = getattr(self.owner, "announce", None)
        if announce is not None:
            announce(int(terms))

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

    def __str__(self) -> str:
        blocks = getattr(self.owner, "column_blocks", None)
        if blocks is None:
            return repr(self)
        A, lines = self.matrix, []
        for i in range(min(self.size, SHOWN_ROWS)):
            entries = slice(A.indptr[i], A.indptr[i + 1])
            text = linear_text(A.indices[entries], A.data[entries], blocks, constant=float(self.constant[i]))
            place = ",".join(str(k) for k in np.unravel_index(i, self.shape)) if self.shape else ""
            lines.append(f"[{place}]: {text}" if self.shape else text)
        return cut_off(lines, self.size)

    @property
    def value(self) -> Any:
        """Values at the last solution of the model, in the array's shape; a number for a scalar.

        They stay until the next solve, whatever is changed in between.

        Raises
        ------
        ModelError
            If the model was not solved, its last solve found no point, or it had fewer variables then.
        """
        last_point = getattr(self.owner, "last_point", None)
        if last_point is None:
            raise ModelError("an expression without variables has no value to read; it is its constant")
        matrix = self.matrix
        x = last_point(int(matrix.indices.max(initial=-1)) + 1)
        values = widen(matrix, len(x)) if matrix.shape[1] <= len(x) else matrix[:, : len(x)]
        return (values @ x + self.constant).reshape(self.shape)[()]

    def _select(self, entries: IntArray) -> LinearExpr:
        flat = entries.ravel()
        if len(flat) > self.size:  # entries are repeated, without end for all that is known here
            self._announce(np.diff(self.matrix.indptr)[flat].sum())
        return LinearExpr(self.matrix[flat], self.constant[flat], entries.shape, self.owner)

    def _apply(self, operator: SparseMatrix, shape: Shape) -> LinearExpr:
        combined = operator @ self.matrix
        combined.sum_duplicates()
        return LinearExpr(combined, operator @ self.constant, shape, self.owner)

    def __matmul__(self, other: Any) -> LinearExpr:
        self._announce(_terms(other) * prod(self.shape[:-1]))
        return super().__matmul__(other)

    def __rmatmul__(self, other: Any) -> LinearExpr:
        self._announce(_terms(other) * prod(self.shape[1:]))
        return super().__rmatmul__(other)

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
    """Return the model that all expressions read; refuse a mixture of two models."""
    owners = [e.owner for e in expressions if e.owner is not None]
    if any(owner is not owners[0] for owner in owners):
        raise ExpressionError(
            "variables of two models in one expression; take them all from one model "
            "(after copy(): from the copy, copy['name'])"
        )
    return owners[0] if owners else None


def _terms(factor: Any) -> int:
    """Return how many numbers of a factor of a matrix product may be others than 0."""
    if isinstance(factor, ExpressionArray):
        return 0  # refused by the product
    return int(factor.nnz if is_sparse(factor) else np.size(factor))


def _is_quadratic(value: object) -> bool:
    return isinstance(value, ExpressionArray) and not isinstance(value, LinearExpr)


class QuadraticExpr(ExpressionArray["QuadraticExpr"]):
    """An n-dimensional array of quadratic expressions: a linear part plus weighted products of two columns.

    Made by ``expr ** 2`` and :func:`~mipforest.model.expressions.sum_squares`; supports ``+ -`` with
    expressions and numbers, ``*`` and ``/`` with numbers, ``@`` with matrices of numbers, :meth:`sum`, :meth:`reshape`,
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

    @property
    def value(self) -> Any:
        """Values at the last solution; see :attr:`LinearExpr.value`."""
        linear = self.linear.value
        if not len(self.pairs):
            return linear
        x = self.linear.owner.last_point(int(self.pairs.max()) + 1)  # type: ignore[attr-defined]
        products = x[self.pairs[:, 0]] * x[self.pairs[:, 1]]
        return (linear + (self.weights @ products).reshape(self.shape))[()]

    def hessian(self, n_columns: int) -> SparseMatrix:
        """Return the symmetric (n, n) CSR matrix Q: the quadratic part of a scalar expression is ``1/2 x'Qx``."""
        weight = np.asarray(self.weights.sum(axis=0)).ravel()
        half = sparse.coo_array((weight, (self.pairs[:, 0], self.pairs[:, 1])), shape=(n_columns, n_columns))
        Q = sparse.csr_array(half.tocsr() + half.T.tocsr())
        Q.eliminate_zeros()
        Q.sort_indices()
        return Q

    def _select(self, entries: IntArray) -> QuadraticExpr:
        return QuadraticExpr(self.linear._select(entries), self.weights[entries.ravel()], self.pairs)

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
        return linear._select(order)
    weights = [
        e.weights if isinstance(e, QuadraticExpr) else sparse.csr_array((e.size, 0)) for e in expressions
    ]
    pairs = np.concatenate([e.pairs for e in expressions if isinstance(e, QuadraticExpr)])
    return QuadraticExpr(linear, sparse.block_diag(weights, format="csr"), pairs)._select(order)


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
