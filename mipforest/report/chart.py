"""Line and dot charts as SVG elements, in the colours of the page; incumbent, bound and gap over time as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.ticker import MaxNLocator

from mipforest.arrays import FloatArray
from mipforest.formatting import duration, number, percent
from mipforest.report.markup import Part, details, element, plain, section, table
from mipforest.solvers.solution import relative_gap
from mipforest.trees.text import format_number

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

    def steps(self, points: Sequence[Point], class_: str) -> Element:
        """Keep each value until the next one comes."""
        corners = [self.place(point) for point in points]
        path = corners[:1]
        for corner in corners[1:]:
            path += [(corner[0], path[-1][1]), corner]
        return _path(path, class_)

    def dots(self, points: Sequence[Point], class_: str, *, triangles: bool = False) -> Element:
        """Draw one mark per point: circles, or triangles to tell a second kind without its colour."""
        return element("g", *(_mark(*self.place(point), triangles) for point in points), class_=class_)

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


#: Most events that the table lists.
MAX_ROWS = 100

#: Bounds that lie this many times as far from the final incumbent as all incumbents and the final bound are drawn
#: at the edge: the first bounds of a solver may be without meaning, and would flatten all that follows.
FARTHEST = 4.0

#: Percent of a gap that no chart shows.
CLOSED = 0.01

#: Most percent on the axis of the gap.
FULL = 100.0


@dataclass(frozen=True)
class Moment:
    """Where a solve stood: seconds, incumbent, bound, gap; ``None`` for what was not known."""

    seconds: float
    objective: float | None
    bound: float | None
    nodes: int

    @property
    def gap(self) -> float | None:
        """Relative gap."""
        return (
            None if self.objective is None or self.bound is None else relative_gap(self.objective, self.bound)
        )


def progress_section(result: Mapping[str, Any]) -> Element:
    """Draw the events of ``result.json``."""
    moments = [_moment(event) for event in result["events"]]
    if not any(moment.objective is not None or moment.bound is not None for moment in moments):
        return section("Progress", element("p", "The solver reported no progress."), id_="progress")
    drawn = [moments[i] for i in thinned(len(moments))]
    end = max(drawn[-1].seconds, float(result["seconds"]), 1e-3)
    charts = [_values(drawn, end, str(result.get("finds", "tree"))), *_gap(drawn, end)]
    return section("Progress", element("div", *charts, class_="beside"), _events(moments), id_="progress")


def _moment(event: Mapping[str, Any]) -> Moment:
    """Read an event; TypeError or ValueError if an entry is not a number."""
    objective, bound = (
        None if event[name] is None else float(event[name]) for name in ("objective", "bound")
    )
    return Moment(float(event["seconds"]), objective, bound, int(event["nodes"]))


def _values(moments: Sequence[Moment], end: float, found: str) -> Element:
    incumbent = [(m.seconds, m.objective) for m in moments if m.objective is not None]
    bound = [(m.seconds, m.bound) for m in moments if m.bound is not None]
    chart = Chart((0.0, end), _range(incumbent, bound), "seconds", "objective")
    named = (
        ("incumbent", f"incumbent: best {found} so far", incumbent),
        ("bound", "bound: proven", bound),
    )
    drawn = [(class_, words, points) for class_, words, points in named if points]
    marks = [
        mark
        for class_, _, points in drawn
        for mark in (
            chart.steps([*points, (end, points[-1][1])], class_),
            chart.dots([(end, points[-1][1])], class_, triangles=class_ == "bound"),
        )
    ]
    last = ", ".join(f"{class_} {number(points[-1][1])}" for class_, _, points in drawn)
    what = " and ".join(class_ for class_, _, _ in drawn).capitalize()
    summary = f"{what} over time; at the end {last}."
    entries = legend(*((class_, "line", words) for class_, words, _ in drawn))
    return element("figure", chart.drawn(summary, *marks), element("figcaption", entries))


def _range(incumbent: Sequence[Point], bound: Sequence[Point]) -> tuple[float, float]:
    """Return the range of the objective's axis."""
    values = [value for _, value in incumbent] + [bound[-1][1] for _ in bound[-1:]]
    last = values[len(incumbent) - 1] if incumbent else values[-1]
    reach = FARTHEST * max(abs(value - last) for value in values)
    return span(values + [value for _, value in bound if not incumbent or abs(value - last) <= reach])


def _gap(moments: Sequence[Moment], end: float) -> list[Element]:
    points = [(m.seconds, min(100 * m.gap, FULL)) for m in moments if m.gap is not None]
    if not points:
        return []
    if max(gap for _, gap in points) <= CLOSED:
        at = duration(points[0][0])
        return [
            element(
                "p", f"The gap was closed at once, {at} after the start: there is no curve of it to draw."
            )
        ]
    chart = Chart(
        (0.0, end), (0.0, max(1.05 * max(gap for _, gap in points), 1.0)), "seconds", "gap in percent"
    )
    known = [m.gap for m in moments if m.gap is not None]
    summary = f"Relative gap over time; at the end {percent(known[-1])}."
    entries = legend(("gap-line", "line", f"gap between incumbent and bound, cut at {FULL:g}%"))
    line = chart.steps([*points, (end, points[-1][1])], "gap-line")
    return [element("figure", chart.drawn(summary, line), element("figcaption", entries))]


def _events(moments: Sequence[Moment]) -> Element:
    chosen = thinned(len(moments), MAX_ROWS)
    rows: list[list[Part]] = [
        [
            f"{m.seconds:.2f}",
            number(m.objective),
            number(m.bound),
            percent(m.gap),
            plain(m.nodes),
        ]
        for m in (moments[i] for i in chosen)
    ]
    shown = (
        f"{len(chosen)} of {len(moments)} events" if len(chosen) < len(moments) else f"{len(moments)} events"
    )
    caption = f"Progress of the solver, {shown}"
    return details(
        f"Table of {shown}", table(["Seconds", "Incumbent", "Bound", "Gap", "Nodes"], rows, caption)
    )
