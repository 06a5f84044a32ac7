"""What the panels of VITE's picture share: text, cells coloured by a percentage, and their place on the page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mipforest.arrays import FloatArray
from mipforest.trees.figure import INK, text_size

#: Height of a line of a table, and width of a cell with a percentage, in inches.
ROW = 0.2
CELL = 0.46

#: Sizes of text in points.
TINY, SMALL, NORMAL, HEADING = 7.5, 8.0, 9.0, 11.5

#: A percentage that is this near to 100 differs from it by the rounding of sums of weights only.
ROUNDING = 1e-9


class Panel(ABC):
    """A part of the picture with a heading; all sizes are in inches.

    Attributes
    ----------
    title
        What it shows.
    caption
        How to read it, one sentence per line.
    width, height
        Room that it needs, without the heading.
    """

    title: ClassVar[str]
    caption: tuple[str, ...]
    width: float
    height: float

    @property
    def room(self) -> float:
        """Width with the heading."""
        title = text_size(self.title, HEADING, "bold")[0]
        return max(self.width, title, *(text_size(sentence, SMALL)[0] for sentence in self.caption))

    @abstractmethod
    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw it with its bottom left corner at this place of the figure."""


def inch_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes without frame whose data units are inches from their bottom left corner."""
    axes = plain_axes(figure, left, bottom, width, height)
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    return axes


def plain_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes at a place of the figure that is given in inches."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def write(
    axes: Axes, x: float, y: float, text: str, points: float = NORMAL, colour: str = INK, **options: Any
) -> None:
    """Write a line of text as it is, by default from its left end, centred in height."""
    style = {"horizontalalignment": "left", "verticalalignment": "center_baseline"} | options
    axes.text(x, y, text, fontsize=points, color=colour, parse_math=False, **style)


def shade(shares: FloatArray) -> FloatArray:
    """Return the (..., 3) colours of shares, 0 (almost white) to 1 (dark), safe for colour-blind readers."""
    return np.asarray(matplotlib.colormaps["YlGnBu"](0.9 * np.asarray(shares))[..., :3], dtype=np.float64)


def percent_cell(axes: Axes, left: float, bottom: float, value: float, darkest: float) -> None:
    """Draw a cell with a percentage in it: the darker, the nearer to ``darkest`` it is; 0 leaves it empty."""
    rgb = shade(np.array([min(value / darkest, 1.0)]))[0] if value > 0 else np.ones(3)
    cell = Rectangle(
        (left, bottom), CELL, ROW, facecolor=to_hex(rgb), edgecolor="white", linewidth=0.8, zorder=3
    )
    axes.add_patch(cell)
    if value > 0:
        middle = (left + CELL / 2, bottom + ROW / 2)
        colour = INK if is_light(rgb) else "white"
        write(axes, *middle, percent(value), SMALL, colour, horizontalalignment="center", zorder=4)


def is_light(rgb: Any) -> bool:
    """Return whether dark text reads better on a colour than white (relative luminance, ITU-R BT.709)."""
    return bool(np.dot(rgb, (0.2126, 0.7152, 0.0722)) > 0.45)


def percent(value: float) -> str:
    """Write a percentage in few characters, a small one never as 0% and a large one never as 100%."""
    if 0 < value < 1:
        return "<1%"
    if 99 < value < 100 - ROUNDING:
        return ">99%"
    return f"{value:.0f}%"
