"""Values of ``result.json``, whatever they are, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipforest.formatting import number, percent
from mipforest.report.markup import Part, description_list, element, short, table

#: Most entries and columns of a list or table that a formulation reports, and how deep they may be nested.
MOST_ENTRIES = 100
MOST_COLUMNS = 20
DEEPEST = 3

#: Beginning of the names of measures, and the samples that they are of.
PARTS = (("train", "Training"), ("test", "Test"))

_NAMES = {
    "r2": "R²",
    "mse": "MSE",
    "mae": "MAE",
    "n": "samples",
    "p": "features",
}

#: Measures that are shares.
_SHARES = ("accuracy", "fidelity", "share", "together")


def title(name: str) -> str:
    """Write the name of an entry as a title: ``balanced_accuracy`` becomes ``Balanced accuracy``."""
    return _NAMES.get(name, short(name.replace("_", " ")[:1].upper() + name.replace("_", " ")[1:]))


def plain(value: Any) -> str:
    """Write a value that is neither a list nor an object."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return str(value)


def measure(name: str, value: Any) -> str:
    """Write a measure; shares in percent."""
    is_share = isinstance(value, float) and 0 <= value <= 1 and name.endswith(_SHARES)
    return percent(value) if is_share else plain(value)


def shown(value: Any, deep: int = 0) -> Part:
    """Write any value: objects as description lists, lists of objects as tables; names inside stay."""
    if isinstance(value, Mapping | list) and deep == DEEPEST:
        return f"{len(value)} entries"
    if isinstance(value, Mapping):
        pairs = [(short(name), shown(part, deep + 1)) for name, part in list(value.items())[:MOST_ENTRIES]]
        return _with_rest(description_list(pairs), len(value)) if pairs else "none"
    if not isinstance(value, list):
        return plain(value)
    first = value[:MOST_ENTRIES]
    if first and all(isinstance(part, Mapping) and part for part in first):
        return _with_rest(_table(first), len(value))
    if any(isinstance(part, Mapping | list) for part in first):
        items = [element("li", shown(part, deep + 1)) for part in first]
        return _with_rest(element("ul", *items), len(value))
    return _in_line(value)


def _table(rows: list[Mapping[str, Any]]) -> Part:
    columns = list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]
    cells: list[list[Part]] = [[_in_line(row.get(name)) for name in columns] for row in rows]
    return table([short(name) for name in columns], cells)


def _in_line(value: Any) -> str:
    """Write a value on one line, without what is nested further inside."""
    if not isinstance(value, Mapping | list):
        return plain(value)
    names = [f"{short(name)} " for name in value] if isinstance(value, Mapping) else [""] * len(value)
    parts = value.values() if isinstance(value, Mapping) else value
    told = [
        name + (f"({len(part)} entries)" if isinstance(part, Mapping | list) else plain(part))
        for name, part in list(zip(names, parts, strict=True))[:MOST_ENTRIES]
    ]
    hidden = len(value) - len(told)
    return (", ".join(told) + (f" and {hidden} more" if hidden else "")) or "none"


def _with_rest(part: Part, length: int) -> Part:
    hidden = length - MOST_ENTRIES
    return part if hidden <= 0 else element("div", part, element("p", f"and {hidden} more", class_="faint"))
