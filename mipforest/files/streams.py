"""Names of files and what they say of formats; text files, compressed or not, as streams of lines.

At most a block of a file is in memory.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mipforest.atomic import atomic_write
from mipforest.unpacking import BLOCK, UnpackingError, unpacked_blocks

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
    blocks = unpacked_blocks(path) if compressed else _plain_blocks(path)
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


def _plain_blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block


def _too_long(line: bytes) -> str:
    return f"the line is longer than {LONGEST_LINE} characters and begins with {line[:20]!r}: no such file"
