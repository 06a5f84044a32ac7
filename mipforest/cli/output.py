"""Printing: JSON objects, and text for people."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

#: Control characters, but for line ends and tabs: a terminal may take them for orders.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Escape control characters, which names in files may hold: a terminal may obey them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(content, indent=2, allow_nan=False, ensure_ascii=True))


def print_text(text: str = "") -> None:
    """Print plain text on standard output, whatever its brackets and colons."""
    print(printable(text))


def print_note(text: str) -> None:
    """Print a remark on standard error."""
    print(f"note: {printable(text)}", file=sys.stderr)


def terminal_width() -> int | None:
    """Return the width of the terminal that standard output goes to; ``None`` if it goes elsewhere."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


#: Wider than any table: lines are not broken.
_UNBROKEN = 10_000

#: Blanks between two columns.
_GAP = 2

#: Least width of a column that wraps: a narrower terminal breaks the lines instead, so that no text is cut off.
_LEAST_WRAPPED = 15


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: str | None) -> None:
    """Print a table on standard output; column ``wrapped`` takes the room that is left, ``None`` breaks no line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column != wrapped, overflow="fold")
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    if wrapped is not None:
        widths = [
            max(cell_len(cell) for cell in cells)
            for name, *cells in zip(columns, columns, *rows, strict=True)
            if name != wrapped
        ]
        needed = sum(widths) + _GAP * len(widths) + _LEAST_WRAPPED
        Console(width=max(Console().width, needed)).print(table)
        return
    console = Console(width=_UNBROKEN, no_color=True)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _plain(cell: str) -> Any:
    from rich.text import Text

    return Text(cell)
