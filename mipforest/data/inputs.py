"""Checking feature matrices and targets that are given as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.data.errors import DataError


def feature_matrix(X: ArrayLike) -> FloatArray:
    """Give a feature matrix as an own (n, p) float64 array in C order, n and p at least 1.

    Raises
    ------
    DataError
        If it is sparse, not numeric, not two-dimensional, or has values that are missing or infinite.
    """
    if sparse.issparse(X):
        raise DataError("X is a sparse matrix; pass X.toarray()")
    try:
        matrix = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X must be a matrix of numbers ({error}); use Dataset.from_frame for text"
        ) from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataError(
            f"X has shape {matrix.shape}; it must be two-dimensional with at least one row and one column"
        )
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"X has {bad.sum()} value(s) that are missing or infinite, the first in row {row}, column "
            f"{column}; replace them (impute) or drop the rows"
        )
    return matrix


def target_column(y: ArrayLike, n: int, name: str) -> Any:
    """Give a target array as a pandas Series of ``n`` values, none missing.

    Raises
    ------
    DataError
        If the shape is not (n,) or values are missing.
    """
    if np.shape(y) != (n,):
        raise DataError(f"y has shape {np.shape(y)}, it must be ({n},): one label or value for each row of X")
    column = pd.Series(np.asarray(y), name=name)
    if column.isna().any():
        raise DataError(f"y lacks {column.isna().sum()} of {n} values; drop these rows of X and y")
    return column
