"""The lines of an MPS file, read as a stream, and the error of a malformed one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mipforest.files.streams import numbered_lines
from mipforest.files.suffixes import split_suffix


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


def mps_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Give the lines of an MPS file, compressed or not, with their numbers.

    Raises
    ------
    ValueError
        If the suffix is wrong.
    MpsError
        If a line is too long, or the compressed data are damaged.
    OSError
        As the system reports it.
    """
    _, compressed = split_suffix(path, (".mps",))
    return numbered_lines(path, lambda line, reason: MpsError(path, line, reason), compressed=compressed)
