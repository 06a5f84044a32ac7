"""Large tables as text, at the speed of numpy: a million lines without a Python object per line."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.io

from mipforest.arrays import FloatArray

#: (k,) byte strings of a fixed width; numpy fills up with NUL bytes, which no text holds.
TextArray = npt.NDArray[np.bytes_]

#: A part of every line: a constant, one text per line, or a table of texts and each line's position in it.
Field = bytes | TextArray | tuple[TextArray, npt.NDArray[np.integer]]

#: Lines that are put together at a time: few enough to stay in the processor's cache.
_CHUNK = 1 << 13


def number_table(values: FloatArray) -> tuple[TextArray, npt.NDArray[np.intp]]:
    """Write numbers with the fewest digits that read back as the same float64.

    Each distinct value is written once: coefficients of large models repeat. Integers below 1e15 are written
    plainly, other numbers as decimals or with an exponent, ``7.5``, ``2.5E-1``; negative zero becomes ``0``.

    Parameters
    ----------
    values
        (k,) finite numbers.

    Returns
    -------
    table, index
        The distinct texts, and the (k,) position of each value's text in them.
    """
    index, distinct = pd.factorize(values + 0.0)  # -0.0 + 0.0 is 0.0
    is_integer = (distinct == np.floor(distinct)) & (np.abs(distinct) < 1e15)
    table = np.empty(
        len(distinct), dtype="S24"
    )  # sign, 17 digits, point, E, and an exponent of four characters
    table[is_integer] = list(map(b"%d".__mod__, distinct[is_integer].tolist()))
    table[~is_integer] = _scientific(distinct[~is_integer])
    return table, index


def _scientific(values: FloatArray) -> list[bytes]:
    """Write (k,) numbers with SciPy's Matrix Market writer.

    It is compiled and uses the shortest digits that read back (Jeon's Dragonbox algorithm): about eight
    times as fast as Python's ``repr`` number by number, which would take longer than all the rest of a file.
    """
    if not len(values):
        return []
    text = io.BytesIO()
    scipy.io.mmwrite(text, values[:, np.newaxis], symmetry="general")
    return text.getvalue().split(b"\n")[3:-1]  # after the header, the comment and the shape


def number_text(values: FloatArray) -> TextArray:
    """Write (k,) numbers as :func:`number_table` does, one text per number."""
    table, index = number_table(values)
    return table[index]


def lines(*fields: Field) -> Iterator[bytes]:
    """Put fields side by side into lines of text.

    Parameters
    ----------
    fields
        From left to right, not all of them constants: constants (blanks, line ends), (k,) arrays of texts, or
        pairs ``(table, index)`` that stand for the (k,) array ``table[index]``.

    Yields
    ------
    bytes
        Runs of complete lines, ``k`` in all.
    """
    columns = {str(k): field for k, field in enumerate(fields) if not isinstance(field, bytes)}
    count = max(len(field[1]) if isinstance(field, tuple) else len(field) for field in columns.values())
    buffer = np.empty(min(count, _CHUNK), dtype=[(str(k), _width(field)) for k, field in enumerate(fields)])
    for k, field in enumerate(fields):
        if isinstance(field, bytes):
            buffer[str(k)] = field
    for start in range(0, count, _CHUNK):
        chunk = buffer[: count - start]
        part = slice(start, start + len(chunk))
        for key, field in columns.items():
            chunk[key] = field[0][field[1][part]] if isinstance(field, tuple) else field[part]
        yield chunk.tobytes().translate(None, delete=b"\0")


def _width(field: Field) -> np.dtype[np.bytes_]:
    """Type of a field: bytes of its greatest width."""
    if isinstance(field, bytes):
        return np.dtype(f"S{len(field)}")
    return field[0].dtype if isinstance(field, tuple) else field.dtype
