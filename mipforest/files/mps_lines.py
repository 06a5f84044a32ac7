"""The lines of an MPS file, read as a stream, and the error of a malformed one."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

#: A line longer than this holds no MPS record (five fields).
_LONGEST_LINE = 1 << 16
_BLOCK = 1 << 20


class MpsError(ValueError):
    """A malformed or unsupported MPS file.

    Attributes
    ----------
    path
        The file.
    line
        Number of the line at fault, from 1.
    reason
        What is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}:{line}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file name asks for gzip.

    Raises
    ------
    ValueError
        If it ends neither in ``.mps`` nor in ``.mps.gz``.
    """
    name = Path(path).name.lower()
    if not name.endswith((".mps", ".mps.gz")):
        raise ValueError(
            f"{os.fspath(path)} is not named as an MPS file; end the name in .mps, or .mps.gz to compress"
        )
    return name.endswith(".gz")


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file, compressed or not, with their numbers; at most a block of it is in memory.

    Raises
    ------
    ValueError
        If the suffix is wrong.
    MpsError
        If a line is too long, or the compressed data are damaged.
    OSError
        As the system reports it.
    """
    number, rest = 0, b""
    with gzip.open(path, "rb") if is_compressed(path) else open(path, "rb") as file:
        while True:
            try:
                block = file.read(_BLOCK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                reason = (
                    f"the compressed data are damaged or cut off ({error}); "
                    "fetch the file again, or name it .mps if it is plain text"
                )
                raise MpsError(path, number + 1, reason) from error
            lines = (rest + block).splitlines(keepends=True)
            # The last line may go on in the next block, as may a line end of two characters.
            rest = lines.pop() if block and lines else b""
            for line in lines:
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise MpsError(path, number, _too_long(line))
                yield number, line
            if len(rest) > _LONGEST_LINE:
                raise MpsError(path, number + 1, _too_long(rest))
            if not block:
                return


def _too_long(line: bytes) -> str:
    return f"the line is longer than {_LONGEST_LINE} characters and begins with {line[:20]!r}: no MPS file"
