"""Values of ``result.json``, whatever they are, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipforest.readable import number, percent
from mipforest.report.markup import Part, element, facts, short, table

#: Most entries of a list or table that a formulation reports, and how deep they may be nested.
MOST_ENTRIES = 100
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
_SHARES = ("accuracy", "fidelity", "share")


def title(name: str) -> str:
    """Give the name of an entry as a title: ``balanced_accuracy`` becomes ``Balanced accuracy``."""
    return _NAMES.get(name, short(name.replace("_", " ")[:1].upper() + name.replace("_", " ")[1:]))


def plain(value: Any) -> str:
    """Write a value that is no list and no object."""
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
    """Write any value: objects as lists of facts, lists of objects as tables."""
    if isinstance(value, Mapping | list) and deep == DEEPEST:
        return f"{len(value)} entries"
    if isinstance(value, Mapping):
        pairs = [(title(name), shown(part, deep + 1)) for name, part in list(value.items())[:MOST_ENTRIES]]
        return _with_rest(facts(pairs), len(value)) if pairs else "none"
    if not isinstance(value, list):
        return plain(value)
    first = value[:MOST_ENTRIES]
    if first and all(isinstance(part, Mapping) and part for part in first):
        return _with_rest(_table(first, deep), len(value))
    if any(isinstance(part, Mapping | list) for part in first):
        items = [element("li", shown(part, deep + 1)) for part in first]
        return _with_rest(element("ul", *items), len(value))
    hidden = len(value) - len(first)
    return ", ".join(map(plain, first)) + (f" and {hidden} more" if hidden else "") or "none"


def _table(rows: list[Mapping[str, Any]], deep: int) -> Part:
    columns = list(dict.fromkeys(name for row in rows for name in row))[:MOST_ENTRIES]
    cells = [[shown(row.get(name), deep + 1) for name in columns] for row in rows]
    return table([title(name) for name in columns], cells)


def _with_rest(part: Part, length: int) -> Part:
    hidden = length - MOST_ENTRIES
    return part if hidden <= 0 else element("div", part, element("p", f"and {hidden} more", class_="faint"))
