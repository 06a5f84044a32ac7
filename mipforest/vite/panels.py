"""Panels of VITE's page: one tree that stands for all, features by level, proximities of samples, class probabilities.

The tree has a box per node, and its levels run from left to right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mipforest.arrays import FloatArray, IntArray
from mipforest.ensembles import proximity
from mipforest.trees import Topology
from mipforest.trees.plot import FAINT, INK, add_legend, class_colours, place, shorten, text_width
from mipforest.trees.reachable import ReachableNode
from mipforest.trees.text import format_number
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


#: Room inside a box's edge, and between its columns, in inches.
PADDING = 0.08
GAP = 0.12

#: Room between levels, for the edges and what is written at them, and for the levels' names, in inches.
LEVEL_GAP = 0.75
LEVEL_LABEL = 0.3

#: Where on its edge an answer stands: nearer to the child, where edges are well apart.
ANSWER_AT = 0.62


class NodeTree(Panel):
    """The nodes at which some tree splits."""

    title = "Where trees split"

    def __init__(self, tables: EnsembleTables, max_features: int, darkest: float) -> None:
        self.darkest = darkest
        self.topology = Topology(tables.depth)
        self.caption = (
            "A box: share of the node's splits by feature, and the split values from least to greatest.",
            "Samples with smaller values go to the upper box, the others to the lower one.",
            _remark(tables),
        )
        split = tables.roles.index[tables.roles.split > 0]
        self.boxes = {node: node_box(tables, node, max_features) for node in split}
        self.columns = BoxColumns.of(list(self.boxes.values()))
        levels = self.topology.level(int(max(split))) + 1
        self.width = levels * self.columns.width + (levels - 1) * LEVEL_GAP
        # The layout is made for levels from top to bottom: its widths are heights here.
        sizes = {node: (box.height, self.columns.width) for node, box in self.boxes.items()}
        layout = place(self._below(0), sizes)
        self.middle, self.height = layout.centre, layout.width + LEVEL_LABEL

    def _below(self, node: int) -> ReachableNode:
        """Return the subtree of a node in the form that the layout takes."""
        left, right = (
            self._below(child) if child in self.boxes else None
            for child in (self.topology.left(node), self.topology.right(node))
        )
        return ReachableNode(node, left=left, right=right)

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw levels' names, edges and boxes."""
        axes = inch_axes(figure, left, bottom, self.width, self.height)
        for node, box in self.boxes.items():
            self._draw_edge(axes, node)
            draw_box(axes, box, self.columns, self._left(node), self._y(node) + box.height / 2, self.darkest)
        for level in range(self.topology.level(int(max(self.boxes))) + 1):
            x = self._left(self.topology.at_level(level)[0]) + self.columns.width / 2
            write(axes, x, self.height - 0.1, f"level {level}", SMALL, FAINT, horizontalalignment="center")

    def _draw_edge(self, axes: Axes, node: int) -> None:
        if node == 0:
            return
        parent = self.topology.parent(node)
        start, end = self._left(parent) + self.columns.width, self._left(node)
        axes.plot((start, end), (self._y(parent), self._y(node)), color="#888888", linewidth=1.1, zorder=1)
        word = "smaller" if node % 2 else "larger"
        x = start + ANSWER_AT * (end - start)
        y = self._y(parent) + ANSWER_AT * (self._y(node) - self._y(parent))
        background = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        write(axes, x, y, word, TINY, FAINT, horizontalalignment="center", bbox=background, zorder=1.5)

    def _left(self, node: int) -> float:
        return self.topology.level(node) * (self.columns.width + LEVEL_GAP)

    def _y(self, node: int) -> float:
        return self.height - LEVEL_LABEL - self.middle[node]


def _remark(tables: EnsembleTables) -> str:
    weights = {member.weight for member in tables.ensemble.members}
    weighing = "Trees count by the variance of their output. " if len(weights) > 1 else ""
    ended = (
        "Trees that neither split nor end at a node have ended above it." if tables.roles.absent.any() else ""
    )
    return weighing + ended


class Row(NamedTuple):
    """A feature of a node: its share of the splits, name, and range of split values."""

    share: float
    name: str
    range: str


@dataclass(frozen=True)
class NodeBox:
    """What the box of a node says.

    Attributes
    ----------
    node
        Number in heap order.
    role
        How many trees split there, and how many end.
    rows
        The most frequent features.
    rest
        How many others there are, and their share; empty if there are none.
    """

    node: int
    role: str
    rows: tuple[Row, ...]
    rest: str

    @property
    def height(self) -> float:
        """Height of the box in inches."""
        return (1.2 + len(self.rows) + bool(self.rest)) * ROW + 2 * PADDING

    @property
    def columns(self) -> tuple[float, float]:
        """Width in inches that its names, and its ranges, need."""
        names = max((text_width(row.name, NORMAL) for row in self.rows), default=0.0)
        ranges = max((text_width(row.range, SMALL) for row in self.rows), default=0.0)
        return names, ranges

    @property
    def heading_width(self) -> float:
        """Width in inches of its first line, and of its last."""
        first = text_width(f"n{self.node}", NORMAL, "bold") + GAP + text_width(self.role, SMALL)
        return max(first, text_width(self.rest, SMALL))


def node_box(tables: EnsembleTables, node: int, max_features: int) -> NodeBox:
    """Return the box of a node."""
    found = tables.thresholds[tables.thresholds.node == node]
    # A single feature beyond the most gets its row: to say that there is one more takes as much room.
    shown = found if len(found) <= max_features + 1 else found[:max_features]
    hidden = found[len(shown) :]
    rows = tuple(Row(row.percent, shorten(row.feature), _range(row)) for row in shown.itertuples())
    rest = f"{len(hidden)} other features: {percent(hidden.percent.sum())}" if len(hidden) else ""
    return NodeBox(node, _role(tables.roles.loc[node]), rows, rest)


def _range(row: Any) -> str:
    lower, upper = format_number(row.lower), format_number(row.upper)
    return lower if lower == upper else f"{lower} to {upper}"


def _role(shares: Any) -> str:
    if shares.leaf == 0 and shares.absent == 0:
        return "all trees split"
    ending = f", {percent(shares.leaf)} end here" if shares.leaf > 0 else ""
    return f"{percent(shares.split)} of trees split{ending}"


@dataclass(frozen=True)
class BoxColumns:
    """Positions of the columns of all boxes, in inches from a box's left side."""

    names: float
    ranges: float
    width: float

    @classmethod
    def of(cls, boxes: Sequence[NodeBox]) -> BoxColumns:
        """Return columns with room for the longest texts."""
        names = max(box.columns[0] for box in boxes)
        ranges = max(box.columns[1] for box in boxes)
        table = CELL + GAP + names + GAP + ranges
        headings = max(box.heading_width for box in boxes)
        return cls(PADDING + CELL + GAP, ranges, 2 * PADDING + max(table, headings))


def draw_box(axes: Axes, box: NodeBox, columns: BoxColumns, left: float, top: float, darkest: float) -> None:
    """Draw a box with its top left corner at a place; ``darkest`` as for :func:`.drawing.percent_cell`."""
    right = left + columns.width
    axes.add_patch(
        FancyBboxPatch(
            (left, top - box.height),
            columns.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="#fafafa",
            edgecolor="#999999",
            linewidth=0.9,
            clip_on=False,
            zorder=2,
        )
    )
    y = top - PADDING - ROW / 2
    write(axes, left + PADDING, y, f"n{box.node}", fontweight="bold", zorder=4)
    write(axes, right - PADDING, y, box.role, SMALL, FAINT, horizontalalignment="right", zorder=4)
    y -= 0.2 * ROW
    for row in box.rows:
        y -= ROW
        percent_cell(axes, left + PADDING, y - ROW / 2, row.share, darkest)
        write(axes, left + columns.names, y, row.name, zorder=4)
        write(axes, right - PADDING, y, row.range, SMALL, FAINT, horizontalalignment="right", zorder=4)
    if box.rest:
        write(axes, left + PADDING, y - ROW, box.rest, SMALL, FAINT, zorder=4)
