"""The lines of an MPS file as a stream, the error of a malformed one, and the state that its sections share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from math import inf, nan
from pathlib import Path

from mipforest.errors import MipforestError, close_names
from mipforest.files.mps.content import MpsContent
from mipforest.files.streams import numbered_lines, split_suffix


class MpsError(MipforestError, ValueError):
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


class Reading:
    """State of the reading of one file.

    Attributes
    ----------
    path, line
        The file, and the number of the line at hand.
    content
        What the file has said so far.
    row_of, column_of
        Numbers of the rows (-1 for the objective) and columns by name.
    objective
        Name of the objective.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.line = 1
        self.content = MpsContent()
        self.row_of: dict[bytes, int] = {}
        self.column_of: dict[bytes, int] = {}
        self.objective: bytes | None = None
        self._set_names: dict[str, bytes] = {}

    def error(self, reason: str, line: int | None = None) -> MpsError:
        """Make the error of a line, by default the one at hand."""
        return MpsError(self.path, self.line if line is None else line, reason)

    def printable(self, text: bytes) -> str:
        """Decode a name."""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError:
            decoded = "\0"
        if not decoded.isprintable():
            raise self.error(f"{short(text)} is no printable text in UTF-8; is this an MPS file?")
        return decoded

    def number(self, text: bytes) -> float:
        """Read a finite number."""
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not -inf < value < inf or b"_" in text:  # Python takes 1_000 for a number, other readers do not
            raise self.error(f"{short(text)} is not a finite number")
        return value + 0.0  # no negative zero

    def bound(self, text: bytes) -> float:
        """Read a number, possibly infinite."""
        word = text.lower().lstrip(b"+-")
        if word not in (b"inf", b"infinity"):
            return self.number(text)
        return -inf if text.startswith(b"-") else inf

    def row(self, name: bytes) -> int:
        """Find a row."""
        try:
            return self.row_of[name]
        except KeyError:
            raise self._unknown("row", name, self.row_of) from None

    def column(self, name: bytes) -> int:
        """Find a column."""
        try:
            return self.column_of[name]
        except KeyError:
            raise self._unknown("column", name, self.column_of) from None

    def _unknown(self, what: str, name: bytes, known: dict[bytes, int]) -> MpsError:
        """Tell of an unknown name, with the nearest of the first ones."""
        names = [other.decode() for other in islice(known, 10_000)]
        near = close_names(name[:255].decode("utf-8", "replace"), names)
        return self.error(f"unknown {what} {short(name)}" + (f"; did you mean '{near[0]}'?" if near else ""))

    def pairs(self, section: str, fields: list[bytes]) -> list[tuple[int, float]]:
        """Read row and value of each pair on a line ``[set] row value [row value]``."""
        if not 2 <= len(fields) <= 5:
            raise self.error(f"{len(fields)} fields; a line of {section} has [set] row value [row value]")
        has_set = len(fields) % 2
        names, values = fields[has_set::2], fields[has_set + 1 :: 2]
        pairs = [(self.row(name), self.number(value)) for name, value in zip(names, values, strict=True)]
        self.check_set(section, fields[0] if has_set else b"")
        return pairs

    def check_set(self, section: str, name: bytes) -> None:
        """Refuse a second set of right-hand sides, ranges or bounds: a reader would have to choose."""
        first = self._set_names.setdefault(section, name)
        if first != name:
            raise self.error(
                f"a second set {short(name)} in {section} after the set {short(first)}; keep one"
            )


def short(text: bytes) -> str:
    """Quote a field for an error message, with at most 40 characters."""
    shown = text if len(text) <= 40 else text[:37] + b"..."
    return f"'{shown.decode('utf-8', 'backslashreplace')}'"
