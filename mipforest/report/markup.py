"""Elements of a page: values of ``result.json``, whatever they are, tables, and line and dot charts as SVG.

All text and all attributes are escaped when the page is written; no other code writes text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, tostring

import numpy as np
from matplotlib.ticker import MaxNLocator

from mipforest.arrays import FloatArray
from mipforest.formatting import entry_name, number, percent, printable
from mipforest.trees.text import format_number

#: Most entries and columns of a list or table that a formulation reports, and how deep they may be nested.
MAX_ENTRIES = 100
MAX_COLUMNS = 20
DEEPEST = 3

#: Beginning of the names of measures, and the samples that they are of.
PARTS = (("train", "Training"), ("test", "Test"))

_NAMES = {
    "r2": "R²",
    "concordance": "Harrell's C",
    "label_accuracy": "Labels right",
    "exact_match": "All labels right",
    "integrated_brier_score": "Integrated Brier score",
    "n": "samples",
    "p": "features",
}

#: Measures that are shares.
_SHARES = ("accuracy", "exact_match", "followed", "fidelity", "share", "together")


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


def fragment(part: Element) -> str:
    """Write a picture that a script puts into a page: as XML, no attribute of which has a ``<``."""
    return tostring(part, encoding="unicode")


def visible(text: str) -> str:
    """Cut a very long text, and escape what does not print."""
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


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


#: Size of a chart in pixels, and space for the labels of its axes.
WIDTH, HEIGHT = 560, 320
LEFT, BOTTOM, TOP, RIGHT = 78, 46, 12, 18

#: Values closer than this share of their size are drawn as one: axes have numbers of six digits.
SAME = 1e-5

#: Most points of one kind that are drawn.
MAX_POINTS = 1000

Point = tuple[float, float]


@dataclass(frozen=True)
class Chart:
    """Axes with numbers, and the map from values to pixels. What lies outside is drawn at the edge.

    Attributes
    ----------
    x, y
        Least and greatest value of each axis.
    x_label, y_label
        What the axes stand for.
    log_x
        Whether x holds decimal logarithms of what its axis is to show.
    x_ticks
        Places on the x axis with their names, instead of round numbers.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    log_x: bool = False
    x_ticks: Sequence[tuple[float, str]] = ()

    def place(self, point: Point) -> Point:
        """Return the pixel of a point."""
        across, up = (
            float(np.clip((value - low) / (high - low), 0, 1))
            for value, (low, high) in zip(point, (self.x, self.y), strict=True)
        )
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def line(self, points: Sequence[Point], class_: str, colour: str | None = None) -> Element:
        """Join points by straight lines, in a colour if the class does not say one."""
        return _path(map(self.place, points), class_, stroke=colour)

    def steps(self, points: Sequence[Point], class_: str, colour: str | None = None) -> Element:
        """Keep each value until the next one comes; a colour as for :meth:`line`."""
        corners = [self.place(point) for point in points]
        path = corners[:1]
        for corner in corners[1:]:
            path += [(corner[0], path[-1][1]), corner]
        return _path(path, class_, stroke=colour)

    def dots(self, points: Sequence[Point], class_: str, *, triangles: bool = False) -> Element:
        """Draw one mark per point: circles, or triangles to tell a second kind without its colour."""
        return element("g", *(_mark(*self.place(point), triangles) for point in points), class_=class_)

    def name(self, text: str, point: Point) -> Element:
        """Write a name right of a point."""
        x, y = self.place(point)
        return element("text", text, x=f"{x + 4:.1f}", y=f"{y + 4:.1f}")

    def band(self, low: float, high: float, class_: str) -> Element:
        """Shade a part of the x axis over the whole height; of no length, it is a line."""
        left, right = (self.place((value, self.y[0]))[0] for value in (low, high))
        return element(
            "rect",
            x=f"{left:.1f}",
            y=str(TOP),
            width=f"{max(right - left, 1.0):.1f}",
            height=str(HEIGHT - TOP - BOTTOM),
            class_=class_,
        )

    def drawn(self, summary: str, *marks: Element) -> Element:
        """Return the chart; ``summary`` is read out to those who cannot see it."""
        axes = element("g", *self._axis_x(), *self._axis_y(), class_="axes", aria_hidden="true")
        return element(
            "svg",
            axes,
            *marks,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            class_="chart",
            role="img",
            aria_label=summary,
        )

    def _axis_x(self) -> list[Element]:
        parts = []
        labelled = [
            (value, format_number(10**value, 3) if self.log_x else format_number(value, 6))
            for value in ticks(*self.x)
        ]
        for value, name in self.x_ticks or labelled:
            x, y = self.place((value, self.y[0]))
            parts += [
                element("path", d=f"M{x:.1f} {TOP}V{y:.1f}"),
                element("text", name, x=x, y=y + 17, text_anchor="middle"),
            ]
        middle = (LEFT + WIDTH - RIGHT) / 2
        return [*parts, element("text", self.x_label, x=middle, y=HEIGHT - 8, text_anchor="middle")]

    def _axis_y(self) -> list[Element]:
        parts = []
        for value in ticks(*self.y):
            x, y = self.place((self.x[0], value))
            parts += [
                element("path", d=f"M{x:.1f} {y:.1f}H{WIDTH - RIGHT}"),
                element("text", format_number(value, 6), x=x - 7, y=y + 4, text_anchor="end"),
            ]
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f"translate(15 {middle:.1f}) rotate(-90)"
        return [*parts, element("text", self.y_label, transform=turned, text_anchor="middle")]


def ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers between two values."""
    values = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(value) for value in values if low <= value <= high]


def span(values: Sequence[float] | FloatArray) -> tuple[float, float]:
    """Return the range of an axis that shows all values, with some space around them.

    Raises
    ------
    ValueError
        If they are too large to be drawn.
    """
    low, high = float(np.min(values)), float(np.max(values))
    apart = high - low > SAME * max(abs(low), abs(high))
    margin = 0.05 * (high - low if apart else abs(high)) or 1.0
    if not np.isfinite(high - low + 2 * margin):
        raise ValueError(f"values from {low:g} to {high:g} cannot be drawn")
    return low - margin, high + margin


def legend(*entries: tuple[str, str, str]) -> Element:
    """Explain marks: for each its class, its kind (``line``, ``dot`` or ``triangle``) and what it shows."""
    items = [
        element("li", element("svg", _sample(kind), class_=f"key {class_}", viewBox="0 0 28 14"), f" {text}")
        for class_, kind, text in entries
    ]
    return element("ul", *items, class_="legend")


def thinned(n: int, max_points: int = MAX_POINTS) -> list[int]:
    """Return at most ``max_points`` of the numbers 0 to n - 1, evenly spread, first and last included."""
    return list(range(n)) if n <= max_points else np.linspace(0, n - 1, max_points).astype(int).tolist()


def _sample(kind: str) -> Element:
    return element("path", d="M1 7H27") if kind == "line" else _mark(14, 7, kind == "triangle")


def _mark(x: float, y: float, triangle: bool) -> Element:
    if triangle:
        return element("path", d=f"M{x:.1f} {y - 4.5:.1f}l4.2 7.5h-8.4z")
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="3.2")


def _path(points: Sequence[Point] | map[Point], class_: str, **attributes: str | None) -> Element:
    return element(
        "path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=class_, **attributes
    )
