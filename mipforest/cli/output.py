"""Printing: JSON objects, and text for people."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from shutil import get_terminal_size
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mipforest.formatting import printable, value_text


def open_standard_streams() -> bool:
    """Open standard streams that are closed, on the null device; return whether standard output was.

    Otherwise the next file that is opened takes its number, and what native code prints goes there.
    """
    closed = sys.stdout is None
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may hold bytes that are no text
    sys.stderr = _Lossy(sys.stderr)
    return closed


class _Lossy:
    """Standard error that drops what it cannot write: a full disk under a message is no reason to lose an answer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def output_fails() -> bool:
    """Return whether standard output takes no line end: its disk is full, say."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def discard_output() -> None:
    """Send standard output nowhere: Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def cell(value: Any) -> str:
    """Write an entry of a table: a text, an objective or a bound, or a dash for none."""
    return "-" if value is None else value if isinstance(value, str) else value_text(value)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Sequence[str] = ()
) -> None:
    """Print a table on standard output.

    Columns ``wrapped`` share the width that is left and break between words only, so that no name is cut: a terminal
    that is narrower than their longest words breaks the lines instead. Without them no line is broken.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    cells = [[column, *(row[k] for row in rows)] for k, column in enumerate(columns)]
    widths = [max(map(cell_len, texts)) for texts in cells]
    if wrapped:
        open_to = {k: width for k, width in enumerate(widths) if columns[k] in wrapped}
        for k in open_to:
            widths[k] = max(cell_len(word) for text in cells[k] for word in text.split())
        # What is left goes to the narrowest column that has use for it.
        free = Console().width - _GAP * (len(columns) - 1) - sum(widths)
        while free > 0 and (short := [k for k in open_to if widths[k] < open_to[k]]):
            widths[min(short, key=widths.__getitem__)] += 1
            free -= 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, no_wrap=column not in wrapped, overflow="fold", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    if wrapped:
        Console(width=sum(widths) + _GAP * len(widths)).print(table)
        return
    console = Console(width=_UNBROKEN, no_color=True)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))
