"""Names of files and what they say of formats; text files, compressed or not, as streams of lines.

At most a block of a file is in memory.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from mipforest.atomic import atomic_write

#: Formats of models that can be written.
MODEL_SUFFIXES = (".mps", ".lp")

_FORMATS = {".mps": "an MPS file", ".lp": "an LP file"}


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
        f"{os.fspath(path)} is not named as {kind}; end the name in {' or '.join(suffixes)}, or "
        f"{' or '.join(f'{suffix}.gz' for suffix in suffixes)} to compress"
    )


def stem(path: Path) -> str:
    """Name of a model's file without suffix."""
    suffix, compressed = split_suffix(path)
    return path.name[: -len(suffix + ".gz" * compressed)]


#: A line longer than this holds no record of any format that is read as lines.
LONGEST_LINE = 1 << 16

_BLOCK = 1 << 20

#: Beyond this level zlib takes several times as long for a few percent.
_COMPRESSION = 4

#: A compressed file that has grown to so many bytes, and by this factor, was made to waste time: models and
#: points shrink to a tenth or twentieth, while gzip can reach a thousandth.
_SUSPECT_SIZE, _SUSPECT_RATIO = 1 << 22, 200

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
    """Give the lines of a file with their numbers, from 1, line ends included.

    Raises
    ------
    Exception
        What ``error`` makes: a line is too long, the compressed data are damaged, or they expand to more than
        200 times their size.
    OSError
        As the system reports it.
    """
    number, rest, size = 0, b"", 0
    with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
        most = max(_SUSPECT_SIZE, _SUSPECT_RATIO * os.path.getsize(path)) if compressed else None
        while True:
            block = _read(file, number, error)
            size += len(block)
            if most is not None and size > most:
                reason = f"the compressed data expand to more than {_SUSPECT_RATIO} times their size"
                raise error(number + 1, f"{reason}; if you trust the file, unpack it first")
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


def _read(file: gzip.GzipFile | IO[bytes], number: int, error: MakeError) -> bytes:
    try:
        return file.read(_BLOCK)
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        reason = (
            f"the compressed data are damaged or cut off ({cause}); "
            "fetch the file again, or leave .gz out of its name if it is plain text"
        )
        raise error(number + 1, reason) from cause


def _too_long(line: bytes) -> str:
    return f"the line is longer than {LONGEST_LINE} characters and begins with {line[:20]!r}: no such file"
