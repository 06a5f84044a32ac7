"""What a column of a table holds, and its values as numbers or as texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray
from mipforest.errors import DataError, some_of

#: A class label as the user wrote it.
Label = str | int | float | bool

_NUMBER_KINDS = {"integer", "floating", "mixed-integer-float", "decimal"}


def is_numeric(column: Any) -> bool:
    """Return whether a column holds numbers (true) or levels: texts, categories, true/false (false).

    A categorical column holds levels even if its categories are numbers.

    Parameters
    ----------
    column
        A pandas Series.

    Raises
    ------
    DataError
        If it holds something else: dates, complex numbers, lists, ...
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return True
    if not pd.api.types.is_object_dtype(dtype):
        if pd.api.types.is_string_dtype(dtype):
            return False
        raise DataError(f"column {column.name!r} holds {dtype} values; turn them into numbers or text first")
    present = column.dropna()
    if len(present) and pd.api.types.infer_dtype(present) in _NUMBER_KINDS:
        return True
    for row, value in present.items():
        if not isinstance(value, str | bool | np.bool_ | Real):
            kind = type(value).__name__
            raise DataError(
                f"column {column.name!r} holds a {kind} in row {row}; turn it into numbers or text first"
            )
    return False


def refuse_missing(frame: Any) -> None:
    """Refuse a table with missing values.

    Raises
    ------
    DataError
        Naming the columns and how many values each lacks.
    """
    counts = frame.isna().sum()
    lacking = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if lacking:
        ways = "fill them in (impute), remove the columns, or drop rows that lack a value with"
        raise DataError(
            f"missing values in {len(lacking)} column(s) of {len(frame)} rows: {some_of(lacking)}",
            hint=f"{ways} missing='drop'",
            option=f"{ways} --missing drop",
        )


def numbers(column: Any) -> FloatArray:
    """Return a column without missing values as finite float64 values.

    Raises
    ------
    DataError
        If a value is not a number or not finite; names the first such row.
    """
    try:
        values = np.array(column.to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        bad = pd.to_numeric(column.astype(object), errors="coerce").isna().to_numpy()
        raise DataError(
            f"column {column.name!r} must hold numbers, but row {column.index[bad.argmax()]} holds "
            f"{column[bad].iloc[0]!r}; correct the value"
        ) from None
    infinite = ~np.isfinite(values)
    if infinite.any():
        raise DataError(
            f"column {column.name!r} has {infinite.sum()} value(s) that are not finite, the first in row "
            f"{column.index[infinite.argmax()]}; replace them by finite numbers or drop the rows"
        )
    return values


def text(value: object) -> str:
    """Write a label as text; whole numbers lose their decimal point, so that 2 and 2.0 are one label."""
    if isinstance(value, str):
        return value
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def texts(column: Any) -> list[str]:
    """Write every value of a column as text (see :func:`text`)."""
    return [text(value) for value in column]


def sort_texts(labels: Iterable[str]) -> tuple[str, ...]:
    """Sort texts: by value if all are finite numbers (so 9 before 10), otherwise alphabetically."""
    alphabetic = sorted(labels)
    try:
        values = {label: float(label) for label in alphabetic}
    except ValueError:
        return tuple(alphabetic)
    if not all(map(math.isfinite, values.values())):
        return tuple(alphabetic)
    return tuple(sorted(alphabetic, key=values.__getitem__))


def to_label(value: Any) -> Label:
    """Turn a numpy scalar into the Python value it stands for, and what JSON cannot hold into text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else text(value)
