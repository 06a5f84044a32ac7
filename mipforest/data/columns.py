"""What a column of a table holds, and its values as numbers or as texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import DataError, did_you_mean, some_of

#: A class label as the user wrote it.
Label = str | int | float | bool

#: Up to here float64 holds every whole number; beyond, neighbours are rounded to the same value.
EXACT = 1 << 53

#: Digits of a long number that a message shows.
_SHOWN_DIGITS = 30

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
    import pandas as pd  # late, as in all of the package: it takes longer than most commands

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
        ways = "remove the columns, fill the values in (impute), or drop the rows, with"
        raise DataError(
            f"missing values in {len(lacking)} column(s) of {len(frame)} rows: {some_of(lacking)}",
            hint=f"{ways} drop=, missing='impute' or missing='drop'; estimators take missing='impute'",
            option=f"{ways} --drop COLUMN, --missing impute or --missing drop",
        )


def numbers(column: Any, base: int = 0) -> FloatArray:
    """Return a column without missing values, less ``base``, as finite float64 values.

    Parameters
    ----------
    column
        A pandas Series.
    base
        What is subtracted, exactly, before whole numbers become float64 (see :func:`exact_base`).

    Raises
    ------
    DataError
        If a value is not a number, not finite, or a whole number that float64 would round; names the first
        such row.
    """
    import pandas as pd

    try:
        given: Any = [_less(value, base) for value in column] if base else column.to_numpy()
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        bad = pd.to_numeric(column.astype(object), errors="coerce").isna().to_numpy()
        raise DataError(
            f"column {column.name!r} must hold numbers, but row {column.index[bad.argmax()]} holds "
            f"{column[bad].iloc[0]!r}; correct the value"
        ) from None
    except OverflowError:
        huge = next(row for row, value in column.items() if _rounded(value))
        raise _rounding(f"column {column.name!r}, row {huge},", column[huge]) from None
    infinite = ~np.isfinite(values)
    if infinite.any():
        raise DataError(
            f"column {column.name!r} has {infinite.sum()} value(s) that are not finite, the first in row "
            f"{column.index[infinite.argmax()]}; replace them by finite numbers or drop the rows"
        )
    for k in np.flatnonzero(np.abs(values) >= EXACT).tolist():
        value = given[k]
        if _rounded(value):
            raise _rounding(f"column {column.name!r}, row {column.index[k]},", value)
    return values


def exact_base(column: Any) -> int:
    """Return what to subtract from a column of numbers so that float64 keeps all differences of whole numbers.

    0 for columns that float64 holds as they are. Otherwise the smallest value: of times in nanoseconds, about
    1.7e18, float64 keeps every 256th only, but the differences between those of a century are exact.

    Raises
    ------
    DataError
        If the numbers are whole and their range exceeds 2^53, so that neighbours would merge.
    """
    if column.dtype.kind == "f" or not any(map(_rounded, column)):
        return 0
    if not all(isinstance(value, Integral) for value in column):
        return 0  # beside fractions there is no exact way: numbers() names the value
    least, greatest = int(column.min()), int(column.max())
    if greatest - least > EXACT:
        raise DataError(
            f"column {column.name!r} holds whole numbers from {_short(least)} to {_short(greatest)}: the range "
            f"exceeds 2^53 = {EXACT}, and float64 would make neighbours equal; divide them by a constant, or "
            "split the column in two"
        )
    return least


def refuse_rounding(given: ArrayLike, values: FloatArray, what: str) -> None:
    """Refuse whole numbers that became other numbers on their way to float64.

    Parameters
    ----------
    given
        What the user passed: an array, lists, or a table.
    values
        The same as float64.
    what
        What it is, for the message.

    Raises
    ------
    DataError
        Naming the first such number and where it is.
    """
    large = np.argwhere(np.abs(values) >= EXACT)
    if not len(large) or (isinstance(given, np.ndarray) and given.dtype.kind == "f"):
        return
    import pandas as pd

    exact = (
        given.astype(object).to_numpy()
        if isinstance(given, pd.DataFrame)
        else np.asarray(given, dtype=object)
    )
    for position in map(tuple, large.tolist()):
        if _rounded(exact[position]):
            where = ", ".join(f"{name} {k}" for name, k in zip(("row", "column"), position, strict=False))
            raise _rounding(f"{what}, {where},", exact[position])


def rounds(column: Any) -> bool:
    """Return whether float64 would round a whole number of a column."""
    return column.dtype.kind != "f" and any(map(_rounded, column))


def _rounded(value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value() and abs(value) > EXACT and value != float(value)
    if not isinstance(value, Integral) or abs(int(value)) <= EXACT:
        return False
    try:
        return int(value) != int(float(int(value)))
    except OverflowError:
        return True


def _less(value: Any, base: int) -> Any:
    """Subtract exactly; whole numbers stay whole."""
    return (int(value) if value == int(value) else Fraction(value)) - base


def _rounding(where: str, value: object) -> DataError:
    return DataError(
        f"{where} holds {_short(value)}, which float64 would round: beyond 2^53 = {EXACT} it lacks whole numbers; "
        "subtract a constant or divide by one, or give the numbers as text if they are names"
    )


def _short(value: object) -> str:
    digits = str(value)
    return digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}... ({len(digits)} digits)"


def text(value: object) -> str:
    """Write a label as text; whole numbers lose their decimal point, so that 2 and 2.0 are one label."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
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
        values = {label: Decimal(label) for label in alphabetic}
    except InvalidOperation:
        return tuple(alphabetic)
    if not all(value.is_finite() for value in values.values()):
        return tuple(alphabetic)
    return tuple(sorted(alphabetic, key=values.__getitem__))


def to_label(value: Any) -> Label:
    """Turn a numpy scalar into the Python value it stands for, and what JSON cannot hold into text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else text(value)


@dataclass(frozen=True)
class Axis(Sequence[str]):
    """A sequence of unique labels that knows the position of each.

    Parameters
    ----------
    labels
        The labels, in order.
    of
        What an entry is, for messages: ``"feature"``, ``"sample"``.

    Raises
    ------
    DataError
        If a label occurs twice.
    """

    labels: tuple[str, ...]
    of: str = "entry"

    def __post_init__(self) -> None:
        if len(self._positions) != len(self.labels):
            repeated = [label for label, count in Counter(self.labels).items() if count > 1]
            names = some_of([repr(label) for label in repeated])
            raise DataError(
                f"{self.of} names must differ, but these occur more than once: {names}; rename them"
            )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: position for position, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.labels[index]

    def __contains__(self, label: object) -> bool:
        return label in self._positions

    def position(self, label: str) -> int:
        """Return the position of a label.

        Raises
        ------
        DataError
            If there is no such label; names the nearest.
        """
        try:
            return self._positions[label]
        except KeyError:
            hint = did_you_mean(label, self.labels) or f"; there are: {some_of(self.labels)}"
            raise DataError(f"no {self.of} is called {label!r}{hint}") from None


def fingerprint(names: Iterable[str], *arrays: FloatArray | IntArray) -> str:
    """Return the SHA-256 of names and arrays, the same on every machine."""
    digest = sha256("".join(f"{len(name)}:{name}" for name in names).encode())
    for array in arrays:
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(f"{kind}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return digest.hexdigest()
