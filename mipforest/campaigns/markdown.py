"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, the others to the right; bars in cells are escaped."""
    lines = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 2) if k == 0 else "-" * (width + 1) + ":" for k, width in enumerate(widths)
    )
    return "\n".join([text(lines[0]), f"|{rule}|", *map(text, lines[1:])])
