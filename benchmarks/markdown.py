"""Tables in Markdown, and the note that says what they were measured with."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, the others to the right."""
    widths = [max(len(line[k]) for line in (header, *rows)) for k in range(len(header))]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 2) if k == 0 else "-" * (width + 1) + ":" for k, width in enumerate(widths)
    )
    return "\n".join([text(header), f"|{rule}|", *map(text, rows)])


def measured_with(packages: Sequence[str]) -> str:
    """Say which versions, and how many cores."""
    known = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"Measured with Python {platform.python_version()}, {known}, on {os.cpu_count()} cores."


def publish(text: str, output: Path | None) -> None:
    """Print a page, and write it if asked to."""
    print(text, end="")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, help="Markdown file to write as well")
