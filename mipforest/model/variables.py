"""Blocks of variables."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import DataValueError
from mipforest.model.expressions import LinearExpr
from mipforest.model.index_sets import Labels, kept_labels, numeric_key
from mipforest.model.operators import Shape, fitted


class Columns(Protocol):
    """What variables read and change of their model: bounds and integrality by column."""

    _lower: FloatArray
    _upper: FloatArray
    _integer: BoolArray

    @property
    def n_columns(self) -> int:
        """Number of columns so far."""

    def _changed(self) -> None: ...


class VarArray(LinearExpr):
    """An n-dimensional array of variables of a model: a block, or a part of one.

    It is a linear expression, and also gives access to what the model knows of its variables: bounds,
    integrality, and entries by label (``w[:, "age"]``, ``w[["n0", "n2"]]``).

    Attributes
    ----------
    columns
        Column numbers, in the array's shape.
    labels
        Labels per dimension, ``None`` where there are none.
    """

    owner: Columns

    def __init__(self, model: Columns, columns: IntArray, labels: tuple[Labels, ...]) -> None:
        self.columns = columns
        self.labels = labels
        self.shape = columns.shape
        self.owner = model

    @property
    def matrix(self) -> SparseMatrix:
        """(size, columns so far) CSR matrix with a single 1 per row."""
        indptr = np.arange(self.size + 1, dtype=np.int32)
        columns = self.columns.ravel().astype(np.int32)
        return sparse.csr_array(
            (np.ones(self.size), columns, indptr), shape=(self.size, self.owner.n_columns)
        )

    @property
    def constant(self) -> FloatArray:
        """(size,) zeros."""
        return np.zeros(self.size)

    def __repr__(self) -> str:
        if not self.size:
            return f"<VarArray of shape {self.shape}, no columns>"
        return f"<VarArray of shape {self.shape}, columns {self.columns.min()}..{self.columns.max()}>"

    # ------------------------------------------------------------------ bounds and integrality

    @property
    def lower(self) -> FloatArray:
        """Lower bounds, in the array's shape (a copy)."""
        return np.array(self.owner._lower[self.columns])

    @property
    def upper(self) -> FloatArray:
        """Upper bounds, in the array's shape (a copy)."""
        return np.array(self.owner._upper[self.columns])

    @property
    def integer(self) -> BoolArray:
        """Integrality, in the array's shape (a copy)."""
        return np.array(self.owner._integer[self.columns])

    def set_bounds(self, lower: Any = None, upper: Any = None) -> None:
        """Change bounds; a side that is not given stays.

        Parameters
        ----------
        lower, upper
            Numbers or arrays that broadcast to the array's shape; infinite for none.

        Raises
        ------
        DataValueError
            If a lower bound is above its upper bound, or NaN.
        ShapeError
            If an array does not broadcast to the array's shape.
        """
        low = self.lower if lower is None else fitted(lower, self.shape, "set_bounds")
        high = self.upper if upper is None else fitted(upper, self.shape, "set_bounds")
        check_bounds(low, high, "set_bounds")
        self.owner._lower[self.columns] = low
        self.owner._upper[self.columns] = high
        self.owner._changed()

    def fix(self, value: Any) -> None:
        """Fix the variables to a number, or an array that broadcasts; :meth:`set_bounds` frees them."""
        self.set_bounds(value, value)

    def relax(self) -> None:
        """Drop the integrality of the variables; their bounds stay."""
        self.owner._integer[self.columns] = False
        self.owner._changed()

    # ------------------------------------------------------------------ choosing entries: cheap, no matrix

    def _take(self, entries: IntArray) -> VarArray:
        return VarArray(self.owner, self.columns.ravel()[entries], (None,) * entries.ndim)

    def _apply(self, operator: SparseMatrix, shape: Shape) -> LinearExpr:
        # The operator's entries keep their coefficients and read the variables' columns: no product needed.
        columns = self.columns.ravel().astype(np.int32)[operator.indices]
        matrix = sparse.csr_array(
            (operator.data, columns, operator.indptr), shape=(operator.shape[0], self.owner.n_columns)
        )
        matrix.sum_duplicates()
        return LinearExpr(matrix, np.zeros(operator.shape[0]), shape, self.owner)

    def __getitem__(self, key: Any) -> VarArray:
        keys = numeric_key(key, self.labels)
        try:
            columns = np.asarray(self.columns[keys])
        except IndexError as error:
            raise IndexError(f"{error} (variables of shape {self.shape})") from None
        return VarArray(self.owner, columns, kept_labels(keys, self.labels, columns.ndim))

    @property
    def T(self) -> VarArray:  # noqa: N802
        """The transpose."""
        return VarArray(self.owner, self.columns.T, self.labels[::-1])


def check_bounds(lower: FloatArray, upper: FloatArray, where: str) -> None:
    """Refuse bounds that cross or are NaN.

    Raises
    ------
    DataValueError
        Naming the first bad entry.
    """
    bad = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if bad.any():
        at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        raise DataValueError(
            f"{where}: lower bound {lower[at]} and upper bound {upper[at]} at entry {at} leave no value; "
            "give lower <= upper"
        )
