"""The flat view of a model that every solver, bridge, file format and check reads, and its size in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.errors import ShapeError, UnknownNameError, closest

#: Values of a model by block name; NaN marks an entry that is left open (a partial start).
Values = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Block:
    """A named, n-dimensional run of consecutive columns (or rows) of a :class:`MatrixForm`.

    Parameters
    ----------
    name
        Name of the block, ``"z"``.
    start
        Number of its first column (or row).
    shape
        Its shape; entries are numbered in C order.
    labels
        One tuple of strings per dimension, as long as that dimension; ``None`` stands for ``0, 1, 2, ...``.
    flat_names
        The entries' full names, for blocks read from a file, whose names follow no pattern.
    """

    name: str
    start: int
    shape: tuple[int, ...]
    labels: tuple[tuple[str, ...] | None, ...] | None = None
    flat_names: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    @property
    def stop(self) -> int:
        """One past the number of its last column (or row)."""
        return self.start + self.size

    def names(self) -> list[str]:
        """Return every entry's name, ``z[12,n3]``, in C order; a scalar block's is its own name."""
        if self.flat_names is not None:
            return list(self.flat_names)
        if not self.shape:
            return [self.name]
        labels = self.labels or (None,) * len(self.shape)
        axes = [
            tuple(map(str, range(length))) if given is None else given
            for length, given in zip(self.shape, labels, strict=True)
        ]
        return [f"{self.name}[{','.join(entry)}]" for entry in product(*axes)]


@dataclass(frozen=True, eq=False)
class IndicatorRows:
    """Rows ``lower <= A x <= upper`` that hold whenever column ``binary`` has the value ``value``.

    Attributes
    ----------
    binary
        (r,) column of each row's binary variable.
    value
        (r,) the value, 0 or 1, that switches the row on.
    A
        (r, n) CSR matrix.
    lower, upper
        (r,) sides, possibly infinite.
    rows
        The blocks that name the rows.
    """

    binary: IntArray
    value: IntArray
    A: SparseMatrix
    lower: FloatArray
    upper: FloatArray
    rows: tuple[Block, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of indicator rows."""
        return len(self.binary)

    @staticmethod
    def none(n_columns: int) -> IndicatorRows:
        """Return no indicator row over ``n_columns`` columns."""
        no_int, no_float = np.zeros(0, dtype=np.int64), np.zeros(0)
        return IndicatorRows(no_int, no_int, sparse.csr_array((0, n_columns)), no_float, no_float)


@dataclass(frozen=True, eq=False)
class MatrixForm:
    """A mixed-integer (quadratic) programme as flat arrays.

    ``minimise (or maximise)  offset + c.x + 1/2 x'Qx`` subject to ``row_lower <= A x <= row_upper``,
    ``col_lower <= x <= col_upper``, ``x_j`` integer where ``integer[j]``, and the indicator rows.
    Infinite sides are ``-inf`` / ``inf``. ``A`` and ``Q`` are canonical CSR: sorted, no duplicates, no
    explicit zeros. Arrays are shared, not copied: treat them as read-only (those of
    :meth:`Model.matrix <mipforest.model.model.Model.matrix>` are) and use :func:`dataclasses.replace` for a
    changed form.

    Attributes
    ----------
    c, offset
        (n,) linear objective, and the constant.
    Q
        (n, n) symmetric CSR matrix (both triangles), or ``None``.
    A, row_lower, row_upper
        (m, n) CSR matrix and (m,) sides.
    col_lower, col_upper
        (n,) bounds.
    integer
        (n,) integrality.
    columns, rows
        Blocks that name the columns and rows, in order, without gaps.
    maximize
        Sense of the objective.
    name
        Name of the model.
    """

    c: FloatArray
    A: SparseMatrix
    row_lower: FloatArray
    row_upper: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    integer: BoolArray
    indicators: IndicatorRows
    Q: SparseMatrix | None = None
    offset: float = 0.0
    columns: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()
    maximize: bool = False
    name: str = ""

    @property
    def n_columns(self) -> int:
        """Number of columns, n."""
        return len(self.c)

    @property
    def n_rows(self) -> int:
        """Number of linear rows, m (indicator rows are counted apart)."""
        return len(self.row_lower)

    @property
    def is_mip(self) -> bool:
        """Whether a column is integer or a row is an indicator."""
        return bool(self.integer.any()) or self.indicators.n_rows > 0

    @property
    def is_quadratic(self) -> bool:
        """Whether the objective has a quadratic term."""
        return self.Q is not None and self.Q.nnz > 0

    def relaxed(self) -> MatrixForm:
        """Return the continuous relaxation; indicator rows, which a fraction switches off, are left out."""
        continuous = np.zeros(self.n_columns, dtype=bool)
        return replace(self, integer=continuous, indicators=IndicatorRows.none(self.n_columns))

    @cached_property
    def column_names(self) -> list[str]:
        """Every column's name (made on first use)."""
        return [name for block in self.columns for name in block.names()]

    @cached_property
    def row_names(self) -> list[str]:
        """Every row's name (made on first use)."""
        return [name for block in self.rows for name in block.names()]

    def objective(self, x: FloatArray) -> float:
        """Return the objective value at a point; 0 where it is no more than what rounding leaves of its terms.

        Parameters
        ----------
        x
            (n,) point.
        """
        value = self.offset + float(self.c @ x)
        if self.Q is not None:
            value += 0.5 * float(x @ (self.Q @ x))
        return 0.0 if abs(value) <= self.objective_rounding(x) else value

    def objective_rounding(self, x: FloatArray) -> float:
        """Return the most that rounding may change of the objective at a point (n,): its terms may cancel."""
        size, count = np.abs(x), 1 + np.count_nonzero(self.c)
        terms = abs(self.offset) + float(np.abs(self.c) @ size)
        if self.Q is not None:
            terms += 0.5 * float(size @ (abs(self.Q) @ size))
            count += self.Q.nnz
        return float(np.finfo(np.float64).eps) * count * terms

    def to_point(self, values: Values) -> FloatArray:
        """Lay values by block out as one (n,) point; entries not given are NaN.

        Raises
        ------
        UnknownNameError
            If a name is not a block of this form.
        ShapeError
            If a shape is not the block's.
        """
        blocks = {block.name: block for block in self.columns}
        point = np.full(self.n_columns, np.nan)
        for name, value in values.items():
            if name not in blocks:
                raise UnknownNameError(
                    f"no variable block {name!r} in this model{closest(str(name), blocks)}"
                )
            block = blocks[name]
            array = np.asarray(value, dtype=float)
            if array.shape != block.shape:
                raise ShapeError(
                    f"values of block {name!r} have shape {array.shape}, the block has shape {block.shape}"
                )
            point[block.start : block.stop] = array.ravel()
        return point

    def to_values(self, x: FloatArray) -> dict[str, FloatArray]:
        """Cut an (n,) point into one array per column block."""
        return {block.name: x[block.start : block.stop].reshape(block.shape) for block in self.columns}


@dataclass(frozen=True)
class Statistics:
    """Counts that describe a model.

    Attributes
    ----------
    columns, continuous, binary, integer
        Columns in all, and by kind (``integer`` counts those that are not binary).
    rows, equalities, inequalities, ranges, free_rows
        Linear rows in all, and by kind.
    indicators
        Indicator rows.
    nonzeros
        Entries of the constraint matrix, indicator rows included.
    quadratic_terms
        Entries in one triangle of the quadratic objective, diagonal included.
    smallest, largest
        Least and greatest absolute coefficient of the constraint matrix (0 when it is empty).
    dynamism
        Greatest ratio of two absolute coefficients of one row, indicator rows included; 1 when no row has two.
    """

    columns: int
    continuous: int
    binary: int
    integer: int
    rows: int
    equalities: int
    inequalities: int
    ranges: int
    free_rows: int
    indicators: int
    nonzeros: int
    quadratic_terms: int
    smallest: float
    largest: float
    dynamism: float

    def __str__(self) -> str:
        return (
            f"{self.columns} columns ({self.continuous} continuous, {self.binary} binary, "
            f"{self.integer} integer), "
            f"{self.rows} rows, {self.indicators} indicator rows, {self.nonzeros} nonzeros, "
            f"{self.quadratic_terms} quadratic terms, coefficients {self.smallest:.3g} to {self.largest:.3g}"
        )


def statistics(form: MatrixForm) -> Statistics:
    """Count what a model consists of."""
    binary = form.integer & (form.col_lower >= 0) & (form.col_upper <= 1)
    equal = form.row_lower == form.row_upper
    has_lower, has_upper = np.isfinite(form.row_lower), np.isfinite(form.row_upper)
    magnitudes = np.abs(np.concatenate([form.A.data, form.indicators.A.data]))
    return Statistics(
        columns=form.n_columns,
        continuous=int((~form.integer).sum()),
        binary=int(binary.sum()),
        integer=int((form.integer & ~binary).sum()),
        rows=form.n_rows,
        equalities=int(equal.sum()),
        inequalities=int((has_lower ^ has_upper).sum()),
        ranges=int((has_lower & has_upper & ~equal).sum()),
        free_rows=int((~has_lower & ~has_upper).sum()),
        indicators=form.indicators.n_rows,
        nonzeros=form.A.nnz + form.indicators.A.nnz,
        quadratic_terms=0 if form.Q is None else (form.Q.nnz + int((form.Q.diagonal() != 0).sum())) // 2,
        smallest=float(magnitudes.min()) if len(magnitudes) else 0.0,
        largest=float(magnitudes.max(initial=0.0)),
        dynamism=max(_dynamism(form.A), _dynamism(form.indicators.A)),
    )


def _dynamism(A: SparseMatrix) -> float:
    starts = A.indptr[:-1][np.diff(A.indptr) > 0]
    if not len(starts):
        return 1.0
    magnitudes = np.abs(A.data)
    return float((np.maximum.reduceat(magnitudes, starts) / np.minimum.reduceat(magnitudes, starts)).max())


def read_only(form: MatrixForm) -> MatrixForm:
    """Lock the arrays of a form that several readers share, so that none changes it for the others."""
    rows = form.indicators
    vectors = [form.c, form.row_lower, form.row_upper, form.col_lower, form.col_upper, form.integer]
    vectors += [rows.binary, rows.value, rows.lower, rows.upper]
    for matrix in (form.A, rows.A, form.Q):
        if matrix is not None:
            vectors += [matrix.data, matrix.indices, matrix.indptr]
    for vector in vectors:
        vector.setflags(write=False)
    return form


def index_type(entries: int, width: int) -> type[np.signedinteger[Any]]:
    """Return the integer type that numbers the entries and columns of a matrix: 32 bits wherever they do."""
    return np.int32 if max(entries, width) < np.iinfo(np.int32).max else np.int64


def with_data(matrix: SparseMatrix, data: FloatArray) -> SparseMatrix:
    """Return a matrix with the same pattern and other entries; the pattern is shared, not copied."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def widen(matrix: SparseMatrix, width: int) -> SparseMatrix:
    """Append empty columns to a matrix; entries are shared, not copied."""
    if matrix.shape[1] == width:
        return matrix
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def add_rows(a: SparseMatrix, b: SparseMatrix) -> SparseMatrix:
    """Add two matrices of equally many rows, whichever has more columns."""
    width = max(a.shape[1], b.shape[1])
    if not b.nnz or not a.nnz:
        return widen(a if a.nnz else b, width)
    return widen(a, width) + widen(b, width)


def scale_rows(matrix: SparseMatrix, factors: FloatArray, operation: np.ufunc = np.multiply) -> SparseMatrix:
    """Multiply (or divide) each row by its factor, or all rows by a single one."""
    per_entry = factors if factors.ndim == 0 else np.repeat(factors, np.diff(matrix.indptr))
    return with_data(matrix, operation(matrix.data, per_entry))


def stack_rows(matrices: Sequence[SparseMatrix], width: int) -> SparseMatrix:
    """Put matrices of at most ``width`` columns under each other, in fresh arrays."""
    if not matrices:
        return sparse.csr_array((0, width))
    starts = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    index = index_type(int(starts[-1]), width)
    ends = [matrix.indptr[1:] + start for matrix, start in zip(matrices, starts, strict=False)]
    indptr = np.concatenate([[0], *ends]).astype(index)
    data = np.concatenate([matrix.data for matrix in matrices])
    indices = np.concatenate([matrix.indices for matrix in matrices]).astype(index, copy=False)
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))


def row_bounds(
    A: SparseMatrix, col_lower: FloatArray, col_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of ``A x`` over a box.

    Parameters
    ----------
    A
        (m, n) CSR matrix without explicit zeros (so that 0 * inf does not arise) and without duplicates.
    col_lower, col_upper
        (n,) sides of the box, possibly infinite: ``col_lower < inf``, ``col_upper > -inf``.

    Returns
    -------
    lower, upper
        (m,) interval of each row on its own, exact up to rounding; infinite where an unbounded column
        decides.
    """
    coefficient, column = A.data, A.indices
    at_lower, at_upper = coefficient * col_lower[column], coefficient * col_upper[column]
    rises = coefficient > 0
    # No term of 'least' is +inf and none of 'greatest' is -inf, so that no sum is inf - inf.
    least = np.where(rises, at_lower, at_upper)
    greatest = np.where(rises, at_upper, at_lower)
    return _row_sums(least, A.indptr), _row_sums(greatest, A.indptr)


def _row_sums(entries: FloatArray, indptr: np.ndarray) -> FloatArray:
    """Sum the entries of each CSR row; 0 for an empty row."""
    sums = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        sums[filled] = np.add.reduceat(entries, indptr[filled])
    return sums
