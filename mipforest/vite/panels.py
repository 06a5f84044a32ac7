"""Panels of VITE's page beside the tree: features by level, proximities of samples, class probabilities.

First what they share with the tree's panel: text, cells coloured by a percentage, and their place on the page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles import proximity
from mipforest.trees.figure import FAINT, INK, add_legend, class_colours, shorten, text_width
from mipforest.vite.tables import EnsembleTables

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
        title = text_width(self.title, HEADING, "bold")
        return max(self.width, title, *(text_width(sentence, SMALL) for sentence in self.caption))

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


#: Features by level. Most rows; the features beyond them share the last one.
MOST_ROWS = 25

#: Room between names and cells, in inches.
NAME_GAP = 0.12

#: Proximities. Most samples in the picture: more are finer than the eye can see.
MOST_SAMPLES = 1000

#: Up to this many samples the two sides of every cluster are arranged too; the time grows with the square.
ARRANGED = 500

#: Side of the matrix, thickness of a strip, and room for the legend and at the right, in inches.
SIDE = 3.6
STRIP = 0.12
LEGEND = 0.35
RIGHT = 0.75

#: Probabilities. Size of a histogram in inches, and its number of bins.
PLOT_WIDTH = 3.7
PLOT_HEIGHT = 1.35
BINS = 25

#: Room for the axis at the left of a histogram, between the two, below the lower and above the upper one.
LEFT = 0.5
BETWEEN = 0.75
BELOW = 0.5
ABOVE = 0.3


class LevelMap(Panel):
    """How often each level splits on each feature, the most used features first."""

    title = "Features by level"

    def __init__(self, tables: EnsembleTables, darkest: float) -> None:
        self.darkest = darkest
        used = tables.levels[tables.levels.sum(axis=1) > 0]
        ordered = used.loc[used.mean(axis=1).sort_values(ascending=False, kind="stable").index]
        self.rows = [
            (shorten(name), row) for name, row in zip(ordered.index, ordered.to_numpy(), strict=True)
        ]
        if len(self.rows) > MOST_ROWS:
            rest = self.rows[MOST_ROWS - 1 :]
            total = sum(row for _, row in rest)
            self.rows = [*self.rows[: MOST_ROWS - 1], (f"{len(rest)} other features", total)]
        self.depth = tables.depth
        unused = tables.data.p - len(used)
        self.caption = (
            "Share of the splits at a level",
            "that are on the feature.",
            f"{unused} other feature{'s' * (unused > 1)}: no splits." if unused else "",
        )
        self.names = max(text_width(name, NORMAL) for name, _ in self.rows) + NAME_GAP
        self.width = self.names + self.depth * CELL
        self.height = (len(self.rows) + 1.4) * ROW

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw names, and a cell per level."""
        axes = inch_axes(figure, left, bottom, self.width, self.height)
        y = self.height - ROW / 2
        write(axes, self.names - NAME_GAP, y, "level", SMALL, FAINT, horizontalalignment="right")
        for level in range(self.depth):
            x = self.names + (level + 0.5) * CELL
            write(axes, x, y, str(level), SMALL, FAINT, horizontalalignment="center")
        for number, (name, shares) in enumerate(self.rows):
            y = self.height - (number + 2.2) * ROW
            write(axes, self.names - NAME_GAP, y + ROW / 2, name, horizontalalignment="right")
            for level, value in enumerate(shares):
                percent_cell(axes, self.names + level * CELL, y, value, self.darkest)


class ProximityMap(Panel):
    """Which samples share leaves, ordered by prediction and then by likeness."""

    title = "Which samples go together"

    def __init__(self, tables: EnsembleTables) -> None:
        self.tables = tables
        n = tables.data.n
        self.samples = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLES)).round().astype(np.int64))
        some = f"{len(self.samples)} of {n}" if len(self.samples) < n else f"{n}"
        self.caption = (
            f"Proximity of {some} samples: the share of trees",
            "in which two of them reach the same leaf.",
            "Like samples stand side by side.",
        )
        self.width = SIDE + RIGHT
        self.height = SIDE + 3.1 * STRIP + LEGEND

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw the matrix, its scale, and two strips of class colours above."""
        predicted, target = (self._class_numbers(column) for column in ("predicted", "target"))
        alike = proximity(self.tables.ensemble, self.tables.data.X_raw[self.samples])
        order = sample_order(alike, predicted)
        bottom += LEGEND
        axes = plain_axes(figure, left, bottom, SIDE, SIDE)
        axes.imshow(shade(alike[np.ix_(order, order)]), aspect="auto", interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        border = int((predicted == predicted[order[0]]).sum()) - 0.5
        if border < len(order) - 1:
            axes.axhline(border, color=INK, linewidth=0.8)
            axes.axvline(border, color=INK, linewidth=0.8)
        self._draw_scale(figure, left + SIDE + 0.15, bottom)
        for number, (name, classes) in enumerate((("predicted", predicted), ("true class", target))):
            y = bottom + SIDE + (1 + 1.1 * number) * STRIP
            self._draw_strip(figure, left, y, name, classes[order])
        self._draw_legend(axes)

    def _class_numbers(self, column: str) -> IntArray:
        names = self.tables.probabilities[column].to_numpy()[self.samples]
        return np.asarray(names == self.tables.data.classes[1], dtype=np.int64)

    def _draw_strip(self, figure: Figure, left: float, bottom: float, name: str, classes: IntArray) -> None:
        axes = plain_axes(figure, left, bottom, SIDE, STRIP)
        colours = np.array([to_rgb(colour) for colour in class_colours(2)])
        axes.imshow(colours[classes][None, :, :], aspect="auto", interpolation="nearest")
        axes.set_axis_off()
        write(axes, 1.03, 0.5, name, TINY, FAINT, transform=axes.transAxes)

    def _draw_scale(self, figure: Figure, left: float, bottom: float) -> None:
        axes = plain_axes(figure, left, bottom, 0.13, SIDE)
        colours = ListedColormap(shade(np.linspace(0, 1, 256)))
        scale = figure.colorbar(ScalarMappable(Normalize(0, 1), colours), cax=axes, ticks=[0, 0.5, 1])
        scale.ax.tick_params(labelsize=SMALL, colors=FAINT, length=2)
        scale.outline.set_visible(False)

    def _draw_legend(self, axes: Axes) -> None:
        handles = [Patch(facecolor=colour) for colour in class_colours(2)]
        names = list(self.tables.data.classes)
        place = {"loc": "upper left", "bbox_to_anchor": (0, -0.02), "borderaxespad": 0.0}
        add_legend(axes, handles, names, ncols=2, frameon=False, fontsize=SMALL, handlelength=1.0, **place)


def sample_order(proximity: FloatArray, predicted: IntArray) -> IntArray:
    """Return the (n,) samples by predicted class; within a class, those that go together stand together.

    The order within a class is that of the leaves of an average-linkage clustering by 1 - proximity.

    Parameters
    ----------
    proximity
        (n, n) proximities, 0 to 1.
    predicted
        (n,) predicted class numbers.
    """
    parts = [_clustered(proximity, np.flatnonzero(predicted == k)) for k in np.unique(predicted)]
    return np.concatenate(parts)


def _clustered(proximity: FloatArray, rows: IntArray) -> IntArray:
    if len(rows) < 3:
        return rows
    distance = squareform(1 - proximity[np.ix_(rows, rows)], checks=False)
    clusters = linkage(distance, method="average", optimal_ordering=len(rows) <= ARRANGED)
    order: IntArray = rows[leaves_list(clusters)]
    return order


class ProbabilityPlot(Panel):
    """Probability of the predicted class, one histogram per class, errors on top."""

    title = "How sure the ensemble is"

    def __init__(self, tables: EnsembleTables) -> None:
        table = tables.probabilities
        self.groups = [table[table.predicted == name] for name in tables.data.classes]
        self.headings = [
            _heading(name, own) for name, own in zip(tables.data.classes, self.groups, strict=True)
        ]
        self.low = min(0.5, float(table.probability.min()))
        self.caption = (
            "Number of samples by the probability that the",
            "ensemble gives to the class it predicts.",
            "Black: samples that it predicts wrongly.",
        )
        self.width = LEFT + max(PLOT_WIDTH, *(text_width(heading, NORMAL) for heading in self.headings))
        self.height = 2 * PLOT_HEIGHT + BETWEEN + BELOW + ABOVE

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw one histogram above the other, on the same scale."""
        upper, lower = (
            plain_axes(figure, left + LEFT, bottom + y, PLOT_WIDTH, PLOT_HEIGHT)
            for y in (BELOW + PLOT_HEIGHT + BETWEEN, BELOW)
        )
        lower.sharey(upper)
        for k, axes in enumerate((upper, lower)):
            self._draw_class(axes, k)
        lower.set_xlabel("probability of the predicted class", fontsize=SMALL, color=FAINT)

    def _draw_class(self, axes: Axes, k: int) -> None:
        own = self.groups[k]
        right = own.target == own.predicted
        axes.hist(
            [own.probability[right], own.probability[~right]],
            bins=np.linspace(self.low, 1.0, BINS + 1).tolist(),
            stacked=True,
            color=[class_colours(2)[k], INK],
            edgecolor="white",
            linewidth=0.4,
        )
        axes.set_xlim(self.low, 1.0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=SMALL, colors=FAINT)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        write(axes, 0, 1.12, self.headings[k], transform=axes.transAxes)


def _heading(name: str, own: Any) -> str:
    heading = f"predicted {shorten(name)}: {len(own)} samples"
    if not len(own):
        return heading
    wrong = int((own.target != own.predicted).sum())
    return f"{heading}, {wrong} wrongly, mean {own.probability.mean():.2f}"
