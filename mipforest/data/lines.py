"""How messages name the rows of a table: by the line of the file that holds them, or by their label."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np


class Lines(Protocol):
    """Tells where a table that was read from a file stands in it."""

    def line(self, row: int) -> int | None:
        """Return the line, counted from 1 as editors do, of a data row counted from 0; ``None`` if it is not known."""

    def missing_words(self, column: str) -> Collection[str]:
        """Return the words of a column that count as missing, such as ``None``; an empty value is none."""

    def short(self) -> str:
        """Say which lines have fewer values than there are columns; empty where none has."""


#: Key of the attributes (``attrs``) of a pandas table under which its :class:`Lines` stand.
LINES = "lines"


def row_text(table: Any, label: object) -> str:
    """Name a row of a table or column in a message: by its line where a file is known, else by its label."""
    lines: Lines | None = table.attrs.get(LINES)
    line = lines.line(int(label)) if lines is not None and isinstance(label, int | np.integer) else None
    return f"row {label}" if line is None else f"line {line}"


def missing_words(table: Any, column: str) -> list[str]:
    """Return the words of a file's column that count as missing, sorted; none where no file is known."""
    lines: Lines | None = table.attrs.get(LINES)
    return [] if lines is None else sorted(lines.missing_words(column))


def short_lines(table: Any) -> str:
    """Say which lines of a table's file have too few values; empty where none has, or no file is known."""
    lines: Lines | None = table.attrs.get(LINES)
    return "" if lines is None else lines.short()
