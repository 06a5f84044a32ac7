"""Figures without global state: colours that colour-blind readers can tell apart, text sizes, layouts, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from mipforest.arrays import FloatArray, IntArray
from mipforest.atomic import atomic_write
from mipforest.trees.reachable import ReachableNode

#: Room between the boxes of a tree, in inches.
HORIZONTAL_GAP = 0.18
VERTICAL_GAP = 0.5

#: Width and height of each node's box in inches, by node number.
Sizes = Mapping[int, tuple[float, float]]

#: Okabe and Ito's palette (Color Universal Design, 2008), without black and with its yellow last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
INK = "#222222"
FAINT = "#5a5a5a"

#: Entries of the file's metadata that hold the time of writing, by suffix.
_FORMATS: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}


class Picture(Figure):
    """A matplotlib figure that notebooks show as SVG, also where ``pyplot`` was never loaded."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a ``.svg``, ``.png`` or ``.pdf`` file; see :func:`save_figure`."""
        save_figure(self, path)

    def _repr_svg_(self) -> str:
        drawing = _content(self, ".svg").decode()
        return drawing[drawing.index("<svg") :]  # without the prologue of a file, so that it stands in a page


def new_figure(width: float, height: float, **options: Any) -> Picture:
    """Return an empty figure of a size in inches, with a canvas of its own."""
    figure = Picture(figsize=(width, height), facecolor="white", **options)
    FigureCanvasAgg(figure)
    return figure


def figure_of(axes: Axes) -> Figure:
    """Return the figure that axes belong to, even if they lie in a subfigure."""
    figure = axes.figure
    return figure if isinstance(figure, Figure) else figure.figure


def class_colours(n_classes: int) -> tuple[str, ...]:
    """Return one colour per class: the palette, or an even sample of viridis for more than seven classes."""
    if n_classes <= len(PALETTE):
        return PALETTE[:n_classes]
    colours = matplotlib.colormaps["viridis"]
    return tuple(to_hex(colours(k / (n_classes - 1))) for k in range(n_classes))


def value_colours(values: IntArray | FloatArray, low: float, high: float) -> tuple[str, ...]:
    """Return the colours of (n,) real values between ``low`` (pale) and ``high`` (dark)."""
    return tuple(to_hex(colour) for colour in value_rgb(values, low, high))


def value_rgb(values: IntArray | FloatArray, low: float, high: float) -> FloatArray:
    """Return the (..., 3) colours of values of any shape, as :func:`value_colours` does; clipped to the range."""
    position = np.clip((values - low) / (high - low), 0, 1) if high > low else np.zeros(np.shape(values))
    return np.asarray(matplotlib.colormaps["YlGnBu"](0.2 + 0.65 * position)[..., :3], dtype=np.float64)


def tint(colour: str, strength: float) -> str:
    """Mix a colour with white; strength 1 is the colour itself, 0 white."""
    return str(to_hex(tint_rgb(np.array(to_rgb(colour)), strength)))


def tint_rgb(colours: FloatArray, strength: float) -> FloatArray:
    """Mix (..., 3) colours with white, as :func:`tint`."""
    return 1 - strength * (1 - colours)


def line_height(points: float) -> float:
    """Return the height of a line of text in inches."""
    return 1.3 * points / 72


def text_width(text: str, points: float, weight: str = "normal") -> float:
    """Return the width of one line of text in inches, in matplotlib's current font; it takes a millisecond."""
    width, _, _ = RendererAgg(1, 1, 72).get_text_width_height_descent(
        text, FontProperties(size=points, weight=weight), ismath=False
    )
    return float(width) / 72


def shorten(name: str, length: int = 28) -> str:
    """Shorten a name to one line of at most ``length`` characters by leaving out its middle."""
    name = " ".join(name.split())
    if len(name) <= length:
        return name
    tail = (length - 1) // 3
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def add_legend(axes: Axes, handles: list[Any], names: list[str], **options: Any) -> None:
    """Add a legend whose names are shown as they are: no formulas, no meaning of a leading underscore."""
    legend = axes.legend(handles, [" "] * len(names), **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(shorten(name))


def save_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure to a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

    The same figure gives the same bytes: no date, no random identifiers. Text in SVG files stays text.

    Raises
    ------
    ValueError
        If the suffix is another one.
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise ValueError(
            f"cannot write a figure to {path.name!r}: the suffix must be one of {', '.join(_FORMATS)}"
        )
    content = _content(figure, suffix)
    with atomic_write(path) as file:
        file.write(content)


def _content(figure: Figure, suffix: str) -> bytes:
    """Return what the file of a figure holds."""
    content = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "mipforest", "svg.fonttype": "none"}):
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=_FORMATS[suffix])
    return content.getvalue()


@dataclass(frozen=True)
class Layout:
    """Positions in inches, x to the right, y upwards, origin at the bottom left.

    Attributes
    ----------
    centre
        x of the centre of each box, by node number.
    top
        y of the upper side of each box.
    width, height
        Extent of the whole.
    """

    centre: dict[int, float]
    top: dict[int, float]
    width: float
    height: float


def place(root: ReachableNode, sizes: Sizes) -> Layout:
    """Lay out a tree so that no two boxes overlap.

    Every subtree keeps a vertical strip of its own, so edges never cross a box; all nodes of a level hang
    from the same height.
    """
    centre: dict[int, float] = {}
    width = _place_across(root, sizes, 0.0, centre)
    levels: list[list[ReachableNode]] = [[root]]
    while any(node.children for node in levels[-1]):
        levels.append([child for node in levels[-1] for child in node.children])
    heights = [max(sizes[node.number][1] for node in level) for level in levels]
    total = sum(heights) + VERTICAL_GAP * (len(levels) - 1)
    top: dict[int, float] = {}
    y = total
    for level, height in zip(levels, heights, strict=True):
        top |= {node.number: y for node in level}
        y -= height + VERTICAL_GAP
    return Layout(centre, top, width, total)


def _place_across(node: ReachableNode, sizes: Sizes, left: float, centre: dict[int, float]) -> float:
    """Place a subtree from x = ``left`` on and return the width of its strip."""
    own = sizes[node.number][0]
    if not node.children:
        centre[node.number] = left + own / 2
        return own
    width = -HORIZONTAL_GAP
    for child in node.children:
        width += HORIZONTAL_GAP + _place_across(child, sizes, left + width + HORIZONTAL_GAP, centre)
    middle = sum(centre[child.number] for child in node.children) / len(node.children)
    overhang = max(own / 2 - (middle - left), 0.0)
    if overhang:
        _shift(node, overhang, centre)
        middle += overhang
    centre[node.number] = middle
    return max(width + overhang, middle + own / 2 - left)


def _shift(node: ReachableNode, distance: float, centre: dict[int, float]) -> None:
    for child in node.children:
        centre[child.number] += distance
        _shift(child, distance, centre)
