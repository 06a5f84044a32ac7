"""Names of files and what they say of formats; text files, compressed or not, as streams of lines.

At most a block of a file that is read is in memory. Large tables become text at the speed of numpy: a million lines
without a Python object per line.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write
from mipforest.unpacking import BLOCK, UnpackingError, unpacked_blocks

#: Formats of models that can be written.
MODEL_SUFFIXES = (".mps", ".lp", ".mof.json")

_FORMATS = {".mps": "an MPS file", ".lp": "an LP file", ".mof.json": "a MathOptFormat file"}


def split_suffix(path: str | os.PathLike[str], suffixes: Sequence[str] = MODEL_SUFFIXES) -> tuple[str, bool]:
    """Read the format of a model off the name of its file, and whether it is compressed.

    Returns
    -------
    suffix, compressed
        One of ``suffixes``; whether the name ends in ``.gz``.

    Raises
    ------
    ValueError
        If the name ends neither in a suffix nor in a suffix and ``.gz``.
    """
    name = Path(path).name.lower()
    for suffix in suffixes:
        if name.endswith((suffix, f"{suffix}.gz")):
            return suffix, name.endswith(".gz")
    kind = " or ".join(_FORMATS[suffix] for suffix in suffixes)
    raise ValueError(
        f"{os.fspath(path)} is not named as {kind}; end the name in {' or '.join(suffixes)}, with .gz behind it to "
        "compress"
    )


def stem(path: Path) -> str:
    """Name of a model's file without suffix."""
    suffix, compressed = split_suffix(path)
    return path.name[: -len(suffix + ".gz" * compressed)]


#: A line longer than this holds no record of any format that is read as lines.
LONGEST_LINE = 1 << 16

#: Beyond this level zlib takes several times as long for a few percent.
_COMPRESSION = 4

#: Makes the error of a file from the number of a line and a reason.
MakeError = Callable[[int, str], Exception]


def write_lines(path: str | os.PathLike[str], text: Iterable[bytes], *, compressed: bool) -> None:
    """Write text to a file that appears complete or not at all; the same text gives the same bytes."""
    with atomic_write(path) as file:
        if not compressed:
            file.writelines(text)
            return
        # Without name and time in the header.
        with gzip.GzipFile(
            filename="", mode="wb", compresslevel=_COMPRESSION, fileobj=file, mtime=0
        ) as packed:
            packed.writelines(text)


def numbered_lines(
    path: str | os.PathLike[str], error: MakeError, *, compressed: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1, line ends included.

    Raises
    ------
    Exception
        What ``error`` makes: a line is too long, the compressed data are damaged, or they expand to more than
        200 times their size.
    OSError
        As the system reports it.
    """
    number, rest = 0, b""
    blocks = file_blocks(path, compressed=compressed)
    while True:
        try:
            block = next(blocks, b"")
        except UnpackingError as damage:
            raise error(number + 1, str(damage)) from damage
        lines = (rest + block).splitlines(keepends=True)
        # The last line may go on in the next block, as may a line end of two characters.
        rest = lines.pop() if block and lines else b""
        for line in lines:
            number += 1
            if len(line) > LONGEST_LINE:
                raise error(number, _too_long(line))
            yield number, line
        if len(rest) > LONGEST_LINE:
            raise error(number + 1, _too_long(rest))
        if not block:
            return


def file_blocks(path: str | os.PathLike[str], *, compressed: bool) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked where it is compressed.

    Raises
    ------
    UnpackingError
        If the compressed data are damaged, or expand to more than 200 times their size.
    OSError
        As the system reports it.
    """
    if compressed:
        yield from unpacked_blocks(path)
        return
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block


def _too_long(line: bytes) -> str:
    return f"the line is longer than {LONGEST_LINE} characters and begins with {line[:20]!r}: no such file"


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
    import pandas as pd

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
    import scipy.io  # late: most runs write no such file

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
    """Return the type of a field: bytes of its greatest width."""
    if isinstance(field, bytes):
        return np.dtype(f"S{len(field)}")
    return field[0].dtype if isinstance(field, tuple) else field.dtype
