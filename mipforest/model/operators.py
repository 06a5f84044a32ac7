"""Operands and operations of arrays of expressions, linear or quadratic.

Operands are numbers and arrays of numbers: what is taken, and what is refused. numpy's operations become sparse
matrices that act on flattened arrays: an array of shape ``s`` is a vector of ``prod(s)`` entries in C order.
Indexing, broadcasting and transposing only choose entries (an index array); sums and matrix products combine
them (a CSR matrix). Comparisons make constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import DataValueError, ExpressionError, ShapeError
from mipforest.model.algebra import SHOWN_ROWS, cut_off, row_text
from mipforest.model.matrix import index_type

Expression = TypeVar("Expression", bound="ExpressionArray[Any]")


class ExpressionArray(ABC, Generic[Expression]):
    """An n-dimensional array of expressions that behaves as numpy's arrays do.

    A subclass says how entries are chosen (:meth:`_select`) and combined linearly (:meth:`_apply`);
    indexing, ``.T``, :meth:`reshape`, :meth:`sum` and ``@`` follow from these two.
    """

    shape: Shape

    # numpy, scipy and pandas leave every operator between their arrays and an expression to the expression.
    __array_ufunc__ = None
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000

    @abstractmethod
    def _select(self, entries: IntArray) -> Expression:
        """Choose entries by number; the result has the shape of the index array."""

    @abstractmethod
    def _apply(self, operator: SparseMatrix, shape: Shape) -> Expression:
        """Combine entries linearly: one row of the operator per entry of the result."""

    # ------------------------------------------------------------------ shape

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a single expression (shape ()) has no length; .size is 1")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        if not self.shape:
            raise ShapeError("a single expression (shape ()) has no entries to go through; .ravel() has one")
        return (self[k] for k in range(self.shape[0]))

    # ------------------------------------------------------------------ choosing and combining entries

    def broadcast_to(self, shape: Shape) -> Expression:
        """Repeat entries so that the array has the given shape."""
        shape = tuple(shape)
        if broadcast_shape(self.shape, shape, "broadcast_to") != shape:
            raise ShapeError(f"an expression of shape {self.shape} does not broadcast to {shape}")
        return self._select(np.broadcast_to(positions(self.shape), shape))

    def __getitem__(self, key: Any) -> Expression:
        try:
            return self._select(np.asarray(positions(self.shape)[key]))
        except IndexError as error:
            raise IndexError(
                f"{error} (expression of shape {self.shape}; only variables take labels as an index)"
            ) from None

    @property
    def T(self) -> Expression:  # noqa: N802
        """The transpose."""
        return self._select(positions(self.shape).T)

    def reshape(self, *shape: int | Shape) -> Expression:
        """Return the same entries in another shape (``-1`` stands for what remains)."""
        wanted: Any = shape[0] if len(shape) == 1 else shape
        try:
            return self._select(positions(self.shape).reshape(wanted))
        except ValueError:
            raise ShapeError(
                f"an expression of shape {self.shape} has {self.size} entries; it does not "
                f"reshape to {wanted}: give a shape of as many (-1 for one open dimension)"
            ) from None

    def ravel(self) -> Expression:
        """Return the entries as a vector, in C order."""
        return self.reshape(-1)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Expression:
        """Sum over all entries, or over one or several axes."""
        return self._apply(*summation(self.shape, axis))

    def __matmul__(self, other: Any) -> Expression:
        self._refuse_product(other)
        return self._apply(*right_product(self.shape, other))

    def __rmatmul__(self, other: Any) -> Expression:
        return self._apply(*left_product(other, self.shape))

    def _refuse_product(self, other: Any) -> None:
        if isinstance(other, ExpressionArray):
            raise ExpressionError(
                f"'@' of two expressions (shapes {self.shape} and {other.shape}) is not linear; "
                "for x @ x write sum_squares(x), for x'Qx with Q = L'L write sum_squares(L @ x)"
            )

    # ------------------------------------------------------------------ what is refused

    def __array__(self, *_: Any, **__: Any) -> npt.NDArray[np.object_]:
        # One opaque object: scipy's sparse matrices then return NotImplemented and leave '@' and '*' to us.
        opaque = np.empty((), dtype=object)
        opaque[()] = self
        return opaque

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise ExpressionError(
            f"numpy.{function.__name__} does not take expressions; write the operators + - * / @, "
            ".sum(axis), .T, .reshape(...), expr[...], or mipforest.model's concatenate and sum_squares"
        )

    def __ne__(self, other: object) -> NoReturn:
        raise ExpressionError(
            "'!=' is no constraint of a mixed-integer model; write it with a binary variable and two sides"
        )

    def __lt__(self, other: Any) -> NoReturn:
        raise ExpressionError(
            "'<' is not closed; write '<=' with the gap you mean, as in expr <= 1 - epsilon"
        )

    def __gt__(self, other: Any) -> NoReturn:
        raise ExpressionError("'>' is not closed; write '>=' with the gap you mean, as in expr >= epsilon")

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "an expression has no truth value; compare it and hand the constraint to model.add(name, ...)"
        )

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise ExpressionError(
            f"division by an expression of shape {self.shape} is not linear; multiply both sides by it first"
        )

    def __rpow__(self, other: Any) -> NoReturn:
        raise ExpressionError(
            f"an expression of shape {self.shape} as an exponent is not linear; "
            "take the logarithm of both sides, or approximate by line pieces"
        )

    def __abs__(self) -> NoReturn:
        raise ExpressionError(
            f"the absolute value of an expression of shape {self.shape} is not linear; add nonnegative "
            "variables t with t >= expr and t >= -expr, and minimise t"
        )


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows ``lower <= A x <= upper``, one per entry of an array of the given shape.

    Made by comparing expressions (``x.sum(axis=1) == 1``, ``X @ w >= 1 - xi``) or by
    :func:`~mipforest.model.expressions.between`; becomes part of a model through
    :meth:`Model.add <mipforest.model.model.Model.add>`.
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

    def __str__(self) -> str:
        blocks = getattr(self.owner, "column_blocks", None)
        if blocks is None:
            return repr(self)
        lines = []
        for i in range(min(len(self.lower), SHOWN_ROWS)):
            place = f"[{','.join(str(k) for k in np.unravel_index(i, self.shape))}]: " if self.shape else ""
            lines.append(place + row_text(self.A, i, self.lower[i], self.upper[i], blocks))
        return cut_off(lines, len(self.lower))


def is_sparse(value: object) -> bool:
    """Return whether a value is a scipy sparse array or matrix."""
    return bool(sparse.issparse(value))


def numeric(value: Any) -> FloatArray:
    """Take a number or array of numbers as a float array; it may share memory with the value.

    Raises
    ------
    ExpressionError
        If it is neither (text, an expression, expressions inside a list).
    DataValueError
        If it is an array with masked entries.
    """
    try:
        array = value.toarray() if is_sparse(value) else np.asarray(value)
    except ValueError as error:
        raise ExpressionError(f"a {type(value).__name__} is no array of numbers here: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ExpressionError(
            f"an operand of type {type(value).__name__} is no number or array of numbers (its dtype is "
            f"{array.dtype}); turn numbers into floats with .astype(float), join expressions with "
            "mipforest.model.concatenate"
        )
    if np.ma.is_masked(value):
        raise DataValueError("an array with masked entries has no value there; fill them with .filled(value)")
    return array.astype(np.float64, copy=False)


def numeric_matrix(value: Any) -> Any:
    """Take an operand of '@' as a float array, or a CSR matrix where it is sparse and two-dimensional."""
    if is_sparse(value) and value.ndim == 2 and value.dtype.kind in "biuf":
        matrix = sparse.csr_array(value, dtype=np.float64)
        refuse_nonfinite(matrix.data, f"the entries of a sparse operand of '@' of shape {matrix.shape}")
        return matrix
    array = numeric(value)
    refuse_nonfinite(array, "an operand of '@'")
    return array


def numeric_factors(value: Any) -> FloatArray:
    """Take an operand of '*' as a float array; refuse the types for which '*' is the matrix product."""
    if isinstance(value, sparse.spmatrix | np.matrix):
        raise ExpressionError(
            f"'*' with a {type(value).__name__} of shape {value.shape} would be the matrix product in "
            "its own library, entry by entry here; write '@' for the product, or make it a csr_array or "
            "ndarray first"
        )
    factors = numeric(value)
    refuse_nonfinite(factors, "a factor")
    return factors


def numeric_divisors(value: Any) -> FloatArray:
    """Take an operand of '/' as a float array without zeros.

    Raises
    ------
    ZeroDivisionError
        If an entry is zero.
    """
    values = numeric(value)
    refuse_nonfinite(values, "a divisor")
    if not values.all():
        raise ZeroDivisionError(
            f"an expression divided by {int((values == 0).sum())} zeros of an array of shape {values.shape}; "
            "multiply both sides by it instead, or take these entries out"
        )
    return values


def refuse_nonfinite(values: FloatArray, what: str) -> None:
    """Refuse coefficients that are NaN or infinite.

    Raises
    ------
    DataValueError
        Naming the first such entry.
    """
    finite = np.isfinite(values)
    if not finite.all():
        first = tuple(map(int, np.unravel_index(int(np.argmin(finite)), values.shape)))
        raise DataValueError(
            f"{what} (an array of shape {values.shape}) holds {int((~finite).sum())} numbers that are NaN or "
            f"infinite, entry {first} = {values[first]} first; a coefficient must be finite: drop or fill "
            "missing data before"
        )


def fitted(value: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """Broadcast a number or array to a given shape (a read-only view).

    Raises
    ------
    ShapeError
        If it does not broadcast to it.
    """
    values = numeric(value)
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(
            f"{what}: values of shape {values.shape} do not broadcast to shape {shape}; "
            "give one number, or an array of that shape"
        ) from None


Shape = tuple[int, ...]


def positions(shape: Shape) -> IntArray:
    """Return the number in C order of every entry of an array."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)


def broadcast_shape(a: Shape, b: Shape, operation: str) -> Shape:
    """Return the shape that two shapes broadcast to.

    Raises
    ------
    ShapeError
        If they do not broadcast.
    """
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ShapeError(
            f"shapes {a} and {b} do not broadcast in '{operation}'; as in numpy, trailing dimensions must be "
            "equal or 1: insert one with expr[:, None] or turn the array with .T"
        ) from None


def summation(shape: Shape, axis: int | tuple[int, ...] | None) -> tuple[SparseMatrix, Shape]:
    """Return the matrix that sums an array over axes, and the shape that remains."""
    ndim = len(shape)
    axes = tuple(range(ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if any(not isinstance(a, int) or not -ndim <= a < ndim for a in axes):
        raise ShapeError(f"sum over axis {axis} of an expression of shape {shape}; it has {ndim} dimensions")
    axes = tuple(a % ndim for a in axes)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"sum over axis {axis} of an expression of shape {shape} names an axis twice")
    kept = [a for a in range(ndim) if a not in axes]
    remaining = tuple(shape[a] for a in kept)
    per_sum = prod(shape[a] for a in axes)
    summands = positions(shape).transpose(*kept, *axes).reshape(prod(remaining), per_sum)
    return _uniform_rows(np.ones(summands.size), summands, prod(shape)), remaining


def left_product(X: Any, shape: Shape) -> tuple[SparseMatrix, Shape]:
    """Return the matrix of ``E -> X @ E`` for an expression array E of the given shape, and the product's shape."""
    X = numeric_matrix(X)
    check_product(X.shape, shape)
    if X.ndim == 1:
        return left_product(X[None, :], shape)[0], shape[1:]
    columns = prod(shape[1:])
    if is_sparse(X):
        operator = sparse.kron(X, sparse.eye_array(columns), format="csr")
    else:
        # Row (i, j) of the product reads entries l * columns + j with coefficients X[i, l].
        r, k = X.shape
        index = index_type(r * columns * k, columns * k)
        reads = np.arange(columns, dtype=index)[:, None] + index(columns) * np.arange(k, dtype=index)
        entries = np.broadcast_to(reads, (r, columns, k))
        coefficients = np.broadcast_to(X[:, None, :], (r, columns, k))
        operator = _uniform_rows(coefficients.flatten(), entries.reshape(r * columns, k), k * columns)
    return operator, (X.shape[0], *shape[1:])


def right_product(shape: Shape, X: Any) -> tuple[SparseMatrix, Shape]:
    """Return the matrix of ``E -> E @ X`` for an expression array E of the given shape, and the product's shape."""
    X = numeric_matrix(X)
    check_product(shape, X.shape)
    if X.ndim == 1:
        return right_product(shape, X[:, None])[0], shape[:-1]
    return _equal_blocks(sparse.csr_array(X.T), prod(shape[:-1])), (*shape[:-1], X.shape[1])


def check_product(a: Shape, b: Shape) -> None:
    """Refuse a matrix product of shapes that do not fit, or of more than two dimensions."""
    if not 1 <= len(a) <= 2 or not 1 <= len(b) <= 2:
        raise ShapeError(
            f"'@' takes one- and two-dimensional operands, not shapes {a} and {b}; use '*' and .sum(axis)"
        )
    if a[-1] != b[0]:
        raise ShapeError(
            f"shapes {a} and {b} do not fit in '@': {a[-1]} and {b[0]} must be equal; transpose one with .T?"
        )


def _uniform_rows(coefficients: FloatArray, entries: Any, width: int) -> SparseMatrix:
    """Return the CSR matrix in which every row has the same number of entries."""
    n_rows, per_row = entries.shape
    index = index_type(entries.size, width)
    indptr = np.arange(n_rows + 1, dtype=index) * index(per_row)
    return sparse.csr_array(
        (coefficients, entries.ravel().astype(index, copy=False), indptr), shape=(n_rows, width)
    )


def _equal_blocks(block: SparseMatrix, times: int) -> SparseMatrix:
    """Return the block-diagonal CSR matrix of one block several times."""
    height, width = block.shape
    index = index_type(times * max(block.nnz, 1), times * width)
    shifts = np.arange(times, dtype=index)[:, None]
    indices = (block.indices.astype(index) + index(width) * shifts).ravel()
    ends = (block.indptr[1:].astype(index) + index(block.nnz) * shifts).ravel()
    indptr = np.concatenate([np.zeros(1, dtype=index), ends])
    return sparse.csr_array(
        (np.tile(block.data, times), indices, indptr), shape=(times * height, times * width)
    )
