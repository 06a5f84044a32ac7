"""What arrays of linear and of quadratic expressions have in common: numpy's operations; and their comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.errors import ExpressionError, ShapeError
from mipforest.model.operators import (
    Shape,
    broadcast_shape,
    left_product,
    positions,
    right_product,
    summation,
)

Expression = TypeVar("Expression", bound="ExpressionArray[Any]")


class ExpressionArray(ABC, Generic[Expression]):
    """An n-dimensional array of expressions that behaves as numpy's arrays do.

    A subclass says how entries are chosen (:meth:`_take`) and combined linearly (:meth:`_apply`);
    indexing, ``.T``, :meth:`reshape`, :meth:`sum` and ``@`` follow from these two.
    """

    shape: Shape

    # numpy, scipy and pandas leave every operator between their arrays and an expression to the expression.
    __array_ufunc__ = None
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000

    @abstractmethod
    def _take(self, entries: IntArray) -> Expression:
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
        return self._take(np.broadcast_to(positions(self.shape), shape))

    def __getitem__(self, key: Any) -> Expression:
        try:
            return self._take(np.asarray(positions(self.shape)[key]))
        except IndexError as error:
            raise IndexError(
                f"{error} (expression of shape {self.shape}; only variables take labels as an index)"
            ) from None

    @property
    def T(self) -> Expression:  # noqa: N802
        """The transpose."""
        return self._take(positions(self.shape).T)

    def reshape(self, *shape: int | Shape) -> Expression:
        """Return the same entries in another shape (``-1`` stands for what remains)."""
        wanted: Any = shape[0] if len(shape) == 1 else shape
        try:
            return self._take(positions(self.shape).reshape(wanted))
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
    :func:`~mipforest.model.functions.between`; becomes part of a model through
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
