"""Numbers and arrays of numbers as operands: what is taken, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.errors import DataValueError, ExpressionError, ShapeError


def is_sparse(value: object) -> bool:
    """Whether a value is a scipy sparse array or matrix."""
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
