"""What a model must be like to be told by a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.model.matrix import MatrixForm


def check_writable(form: MatrixForm) -> None:
    """Refuse what neither an MPS nor an LP file tells.

    Raises
    ------
    ValueError
        If a number is NaN or a coefficient infinite, sides cross, ``Q`` is not symmetric, or an indicator row
        has no side or no binary column.
    """
    indicators = form.indicators
    indicator_names = [name for block in indicators.rows for name in block.names()]
    if not np.isfinite(form.offset):
        raise ValueError(f"the objective constant is {form.offset}; make it finite")
    _check_numbers("objective coefficient of column", form.column_names, form.c)
    for what, names, matrix in (
        ("coefficient in row", form.row_names, form.A),
        ("coefficient in indicator row", indicator_names, indicators.A),
        ("quadratic coefficient of column", form.column_names, form.Q),
    ):
        if matrix is not None and not np.isfinite(matrix.data).all():
            entry = np.flatnonzero(~np.isfinite(matrix.data))[0]
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            raise ValueError(f"a {what} {names[row]} is {matrix.data[entry]}; coefficients must be finite")
    _check_sides("column", form.column_names, form.col_lower, form.col_upper)
    _check_sides("row", form.row_names, form.row_lower, form.row_upper)
    _check_sides("indicator row", indicator_names, indicators.lower, indicators.upper)
    if form.Q is not None and (form.Q != form.Q.T).nnz:
        raise ValueError("Q is not symmetric; give both triangles of the Hessian, (Q + Q') / 2")
    _check_indicators(form, indicator_names)


def _check_numbers(what: str, names: list[str], values: FloatArray) -> None:
    """Refuse NaN and infinity."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"the {what} {names[bad[0]]} is {values[bad[0]]}; make it finite")


def _check_sides(what: str, names: list[str], lower: FloatArray, upper: FloatArray) -> None:
    """Refuse sides that are NaN, cross, or are infinite on the wrong side."""
    bad = np.flatnonzero(~((lower <= upper) & (lower < np.inf) & (upper > -np.inf)))
    if len(bad):
        k = bad[0]
        raise ValueError(
            f"{what} {names[k]} has the sides [{lower[k]}, {upper[k]}], which no number meets; "
            "no file can tell this: correct or remove it"
        )


def _check_indicators(form: MatrixForm, names: list[str]) -> None:
    """Refuse indicator rows without a side, or whose condition is not on a binary column."""
    indicators = form.indicators
    free = np.flatnonzero(np.isinf(indicators.lower) & np.isinf(indicators.upper))
    if len(free):
        raise ValueError(f"indicator row {names[free[0]]} has no finite side and says nothing; remove it")
    column: npt.NDArray[np.int64] = indicators.binary
    is_binary = form.integer[column] & (form.col_lower[column] >= 0) & (form.col_upper[column] <= 1)
    bad = np.flatnonzero(~is_binary | ~np.isin(indicators.value, (0, 1)))
    if len(bad):
        k = bad[0]
        raise ValueError(
            f"indicator row {names[k]} depends on column {form.column_names[column[k]]} having the value "
            f"{indicators.value[k]}; the column must be binary and the value 0 or 1"
        )
