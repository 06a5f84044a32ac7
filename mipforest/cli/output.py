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


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Sequence[str] = ()
) -> None:
    """Print a table on standard output.

    Columns ``wrapped`` share the room that is left and break between words only, so that no name is cut: a terminal
    that is narrower than their longest words breaks the lines instead. Without them no line is broken.
    """
    cells = [[column, *(row[k] for row in rows)] for k, column in enumerate(columns)]
    widths = [max(map(cell_len, texts)) for texts in cells]
    if wrapped:
        open_to = {k: width for k, width in enumerate(widths) if columns[k] in wrapped}
        for k in open_to:
            widths[k] = max(cell_len(word) for text in cells[k] for word in text.split())
        # What is left goes to the narrowest column that has use for it.
        room = Console().width - _GAP * (len(columns) - 1) - sum(widths)
        while room > 0 and (short := [k for k in open_to if widths[k] < open_to[k]]):
            widths[min(short, key=widths.__getitem__)] += 1
            room -= 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, no_wrap=column not in wrapped, overflow="fold", width=width)
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    if wrapped:
        Console(width=sum(widths) + _GAP * len(widths)).print(table)
        return
    console = Console(width=_UNBROKEN, no_color=True)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _plain(cell: str) -> Any:
    from rich.text import Text

    return Text(cell)
