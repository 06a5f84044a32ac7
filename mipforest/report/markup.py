"""Elements of a page, and values of ``result.json``, whatever they are, as elements for people to read.

All text and all attributes are escaped when the page is written; there is no other way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, tostring

from mipforest.formatting import entry_name, number, percent

#: Most entries and columns of a list or table that a formulation reports, and how deep they may be nested.
MAX_ENTRIES = 100
MAX_COLUMNS = 20
DEEPEST = 3

#: Beginning of the names of measures, and the samples that they are of.
PARTS = (("train", "Training"), ("test", "Test"))

_NAMES = {
    "r2": "R²",
    "n": "samples",
    "p": "features",
}

#: Measures that are shares.
_SHARES = ("accuracy", "followed", "fidelity", "share", "together")


#: Longest text or attribute of one element. What stands in a changed file cannot blow the page up.
LONGEST = 20_000

#: Longest name, of a feature, a class or a file, that is written out.
LONGEST_NAME = 160

#: A part of an element: text, or an element of its own.
Part = str | Element


def element(tag: str, *parts: Part, **attributes: str | float | None) -> Element:
    """Make an element.

    Parameters
    ----------
    tag
        Its name.
    parts
        Text and elements inside, in order.
    attributes
        By name, with ``_`` for ``-``, and a ``_`` at the end of names that Python reserves (``class_``);
        ``None`` leaves one out.
    """
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            text = visible(value) if isinstance(value, str) else f"{value:.6g}"
            made.set(name.rstrip("_").replace("_", "-"), text)
    for part in parts:
        if isinstance(part, Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + visible(part)
        else:
            made.text = (made.text or "") + visible(part)
    return made


def verbatim(tag: str, text: str) -> Element:
    """Make a ``script`` or ``style`` element, whose text a browser takes as it is: never a text of a run."""
    made = Element(tag)
    made.text = text
    return made


def document(root: Element) -> bytes:
    """Write a page."""
    return ("<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n").encode()


def visible(text: str) -> str:
    r"""Show characters that do not print as ``\u202e``: they could turn, hide or cut the text behind them."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in cut)


def short(name: str) -> str:
    """Shorten a very long name by leaving out its middle."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def table(head: list[Part], rows: list[list[Part]], caption: str = "", class_: str | None = None) -> Element:
    """Make a table, the first cell of each row its header, in a frame that scrolls if it is too wide."""
    made = element("table", class_=class_)
    if caption:
        made.append(element("caption", caption))
    made.append(element("thead", element("tr", *(element("th", part, scope="col") for part in head))))
    body = element("tbody")
    for first, *rest in rows:
        body.append(element("tr", element("th", first, scope="row"), *(_cell(part) for part in rest)))
    made.append(body)
    return element("div", made, class_="wide", tabindex="0", role="group", aria_label=caption or "table")


def description_list(pairs: list[tuple[str, Part]]) -> Element:
    """Make a description list: names, each with its description."""
    rows = [element("div", element("dt", name), element("dd", part)) for name, part in pairs]
    return element("dl", *rows)


def section(title: str, *parts: Part, id_: str) -> Element:
    """Make a section with a heading."""
    return element("section", element("h2", title, id=id_), *parts, aria_labelledby=id_)


def details(summary: str, *parts: Part, class_: str | None = None) -> Element:
    """Put parts behind a summary that opens them."""
    return element("details", element("summary", summary), *parts, class_=class_)


def _cell(part: Part) -> Element:
    return part if isinstance(part, Element) and part.tag == "td" else element("td", part)


def title(name: str) -> str:
    """Write the name of an entry as a title: ``balanced_accuracy`` becomes ``Balanced accuracy``."""
    return _NAMES.get(name, short(entry_name(name)))


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
        pairs = [(short(name), shown(part, deep + 1)) for name, part in list(value.items())[:MAX_ENTRIES]]
        return _with_rest(description_list(pairs), len(value)) if pairs else "none"
    if not isinstance(value, list):
        return plain(value)
    first = value[:MAX_ENTRIES]
    if first and all(isinstance(part, Mapping) and part for part in first):
        return _with_rest(_table(first), len(value))
    if any(isinstance(part, Mapping | list) for part in first):
        items = [element("li", shown(part, deep + 1)) for part in first]
        return _with_rest(element("ul", *items), len(value))
    return _in_line(value)


def _table(rows: list[Mapping[str, Any]]) -> Part:
    columns = list(dict.fromkeys(name for row in rows for name in row))[:MAX_COLUMNS]
    cells: list[list[Part]] = [[_in_line(row.get(name)) for name in columns] for row in rows]
    return table([short(name) for name in columns], cells)


def _in_line(value: Any) -> str:
    """Write a value on one line, without what is nested further inside."""
    if not isinstance(value, Mapping | list):
        return plain(value)
    names = [f"{short(name)} " for name in value] if isinstance(value, Mapping) else [""] * len(value)
    parts = value.values() if isinstance(value, Mapping) else value
    shown = [
        name + (f"({len(part)} entries)" if isinstance(part, Mapping | list) else plain(part))
        for name, part in list(zip(names, parts, strict=True))[:MAX_ENTRIES]
    ]
    hidden = len(value) - len(shown)
    return (", ".join(shown) + (f" and {hidden} more" if hidden else "")) or "none"


def _with_rest(part: Part, length: int) -> Part:
    hidden = length - MAX_ENTRIES
    return part if hidden <= 0 else element("div", part, element("p", f"and {hidden} more", class_="faint"))
