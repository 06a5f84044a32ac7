"""Semantic comparison of models."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import SparseMatrix
from mipforest.model.matrix import Block, MatrixForm


def assert_same_form(first: MatrixForm, second: MatrixForm, *, names: bool = True) -> None:
    """Assert that two models are the same, every number to the last bit, columns and rows in order.

    Zeros of both signs are equal, as are ``Q = None`` and a ``Q`` without entries. How names are
    grouped into blocks does not matter.

    Parameters
    ----------
    first, second
        The models.
    names
        Whether the names of the model, its columns, rows and indicator rows must agree too.

    Raises
    ------
    AssertionError
        With the first part that differs, where it differs, and both values.
    """
    for part in ("n_columns", "n_rows", "maximize", "offset"):
        _assert_equal(part, getattr(first, part), getattr(second, part))
    _assert_equal("indicators.n_rows", first.indicators.n_rows, second.indicators.n_rows)
    if names:
        _assert_equal("name", first.name, second.name)
        for part in ("column_names", "row_names"):
            _assert_arrays(part, getattr(first, part), getattr(second, part))
        _assert_arrays("indicator names", _names(first.indicators.rows), _names(second.indicators.rows))
    for part in ("c", "row_lower", "row_upper", "col_lower", "col_upper", "integer"):
        _assert_arrays(part, getattr(first, part), getattr(second, part))
    for part in ("binary", "value", "lower", "upper"):
        _assert_arrays(
            f"indicators.{part}", getattr(first.indicators, part), getattr(second.indicators, part)
        )
    _assert_matrices("A", first.A, second.A)
    _assert_matrices("indicators.A", first.indicators.A, second.indicators.A)
    if first.is_quadratic or second.is_quadratic:
        _assert_equal("is_quadratic", first.is_quadratic, second.is_quadratic)
        _assert_matrices("Q", first.Q, second.Q)


def _names(blocks: tuple[Block, ...]) -> list[str]:
    return [name for block in blocks for name in block.names()]


def _assert_equal(part: str, first: object, second: object) -> None:
    if first != second:
        raise AssertionError(f"{part} differs: {first!r} and {second!r}")


def _assert_arrays(part: str, first: object, second: object) -> None:
    a, b = np.asarray(first), np.asarray(second)
    _assert_equal(f"shape of {part}", a.shape, b.shape)
    different = np.flatnonzero(a != b)
    if len(different):
        k = int(different[0])
        raise AssertionError(
            f"{part} differs at {len(different)} places, first at {k}: {a[k]!r} and {b[k]!r}"
        )


def _assert_matrices(part: str, first: SparseMatrix, second: SparseMatrix) -> None:
    _assert_equal(f"shape of {part}", first.shape, second.shape)
    for array in ("indptr", "indices", "data"):
        _assert_arrays(f"{part}.{array}", getattr(first, array), getattr(second, array))
