"""Line and dot charts as SVG elements, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.ticker import MaxNLocator

from mipforest.arrays import FloatArray
from mipforest.report.markup import element
from mipforest.trees.text import format_number

#: Size of a chart in pixels, and room for the labels of its axes.
WIDTH, HEIGHT = 560, 320
LEFT, BOTTOM, TOP, RIGHT = 78, 46, 12, 18

#: Most points of one kind that are drawn.
MOST_POINTS = 1000

Point = tuple[float, float]


@dataclass(frozen=True)
class Chart:
    """Axes with numbers, and the way from values to pixels. What lies outside is drawn at the edge.

    Attributes
    ----------
    x, y
        Least and greatest value of each axis.
    x_label, y_label
        What the axes stand for.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str

    def place(self, point: Point) -> Point:
        """Return the pixel of a point."""
        across, up = (
            float(np.clip((value - low) / (high - low), 0, 1))
            for value, (low, high) in zip(point, (self.x, self.y), strict=True)
        )
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def line(self, points: Sequence[Point], class_: str) -> Element:
        """Join points by straight lines."""
        return _path(map(self.place, points), class_)

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
        for value in ticks(*self.x):
            x, y = self.place((value, self.y[0]))
            parts += [
                element("path", d=f"M{x:.1f} {TOP}V{y:.1f}"),
                element("text", format_number(value, 6), x=x, y=y + 17, text_anchor="middle"),
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
    """Return the range of an axis that shows all values, with some room around them.

    Raises
    ------
    ValueError
        If they are too large to be drawn.
    """
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    if not np.isfinite(high - low + 2 * room):
        raise ValueError(f"values from {low:g} to {high:g} cannot be drawn")
    return low - room, high + room


def legend(*entries: tuple[str, str, str]) -> Element:
    """Explain marks: for each its class, its kind (``line``, ``dot`` or ``triangle``) and what it shows."""
    items = [
        element("li", element("svg", _sample(kind), class_=f"key {class_}", viewBox="0 0 28 14"), f" {text}")
        for class_, kind, text in entries
    ]
    return element("ul", *items, class_="legend")


def thinned(n: int, most: int = MOST_POINTS) -> list[int]:
    """Return at most ``most`` of the numbers 0 to n - 1, evenly spread, first and last included."""
    return list(range(n)) if n <= most else np.linspace(0, n - 1, most).astype(int).tolist()


def _sample(kind: str) -> Element:
    return element("path", d="M1 7H27") if kind == "line" else _mark(14, 7, kind == "triangle")


def _mark(x: float, y: float, triangle: bool) -> Element:
    if triangle:
        return element("path", d=f"M{x:.1f} {y - 4.5:.1f}l4.2 7.5h-8.4z")
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="3.2")


def _path(points: Sequence[Point] | map[Point], class_: str) -> Element:
    return element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=class_)
