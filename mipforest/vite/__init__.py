"""VITE: what a tree ensemble looks like inside, as tables and as a picture.

``vite("random-forest", data, depth=3).save("vite.svg")`` shows at which levels and nodes a forest splits on which
features and where (the level map and the tree, above), which samples it treats alike, and how sure it is of its
predictions (proximities and probabilities, below).

The page has four panels: one tree that stands for all, with a box per node and levels from left to right; features by
level; proximities of samples; class probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
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
from mipforest.data import Dataset
from mipforest.ensembles import DEFAULT_SEED, EnsembleError, ensemble_for, proximity
from mipforest.trees import Topology
from mipforest.trees.plot import (
    FAINT,
    INK,
    add_legend,
    class_colours,
    new_figure,
    place,
    save_figure,
    shorten,
    text_width,
)
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
        Space that it needs, without the heading.
    """

    title: ClassVar[str]
    caption: tuple[str, ...]
    width: float
    height: float

    @property
    def space(self) -> float:
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
MAX_ROWS = 25

#: Space between names and cells, in inches.
NAME_GAP = 0.12

#: Proximities. Most samples in the picture: more are finer than the eye can see.
MAX_SAMPLES = 1000

#: Up to this many samples the two sides of every cluster are arranged too; the time grows with the square.
ARRANGED = 500

#: Side of the matrix, thickness of a strip, and space for the legend and at the right, in inches.
SIDE = 3.6
STRIP = 0.12
LEGEND = 0.35
RIGHT = 0.75

#: Probabilities. Size of a histogram in inches, and its number of bins.
PLOT_WIDTH = 3.7
PLOT_HEIGHT = 1.35
BINS = 25

#: Space for the axis at the left of a histogram, between the two, below the lower and above the upper one.
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
        if len(self.rows) > MAX_ROWS:
            rest = self.rows[MAX_ROWS - 1 :]
            total = sum(row for _, row in rest)
            self.rows = [*self.rows[: MAX_ROWS - 1], (f"{len(rest)} other features", total)]
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
        self.samples = np.unique(np.linspace(0, n - 1, min(n, MAX_SAMPLES)).round().astype(np.int64))
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


#: Space inside a box's edge, and between its columns, in inches.
PADDING = 0.08
BOX_GAP = 0.12

#: Space between levels, for the edges and what is written at them, and for the levels' names, in inches.
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
        first = text_width(f"n{self.node}", NORMAL, "bold") + BOX_GAP + text_width(self.role, SMALL)
        return max(first, text_width(self.rest, SMALL))


def node_box(tables: EnsembleTables, node: int, max_features: int) -> NodeBox:
    """Return the box of a node."""
    found = tables.thresholds[tables.thresholds.node == node]
    # A single feature beyond the most gets its row: to say that there is one more takes as much space.
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
        """Return columns with space for the longest texts."""
        names = max(box.columns[0] for box in boxes)
        ranges = max(box.columns[1] for box in boxes)
        table = CELL + BOX_GAP + names + BOX_GAP + ranges
        headings = max(box.heading_width for box in boxes)
        return cls(PADDING + CELL + BOX_GAP, ranges, 2 * PADDING + max(table, headings))


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


__all__ = ["Vite", "vite"]

#: Space at the edges, between panels, and for the title; height of a line of a caption; all in inches.
MARGIN = 0.3
GAP = 0.55
TITLE = 0.75
LINE = 0.16

#: Most characters of a data set's name in the title.
LONGEST_NAME = 60

#: Most levels of a picture; the last one has up to 32 boxes, 1.5 m in all.
MAX_LEVELS = 6

#: Space for the heading of a panel: its title and three lines of caption.
HEAD = 0.85

#: A panel, and the left and the upper end of its space in inches from the top left corner.
Place = tuple[Panel, float, float]


class Vite(EnsembleTables):
    """An ensemble as tables and as a picture. Made by :func:`vite`."""

    def plot(self, *, max_features: int = 6) -> Figure:
        """Draw everything on one page; see :func:`plot_vite`."""
        return plot_vite(self, max_features=max_features)

    def save(self, path: str | PathLike[str], *, max_features: int = 6) -> None:
        """Draw everything into a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

        Raises
        ------
        ValueError
            If the suffix is another one, or the tree has too many boxes.
        OSError
            If the file cannot be written.
        """
        save_figure(self.plot(max_features=max_features), path)


def vite(target: Any, data: Dataset, depth: int, *, seed: int = DEFAULT_SEED) -> Vite:
    """Inspect a tree ensemble (Di Teodoro, Monaci and Palagi 2024, section 5).

    Parameters
    ----------
    target
        The ensemble: a name, a ``.joblib`` file, a fitted classifier; see
        :func:`mipforest.ensembles.ensemble_for`. Its trees may be deeper than ``depth``.
    data
        A data set of two classes.
    depth
        Number of levels to show, 1 to 10, and depth of trees that are fitted here.
    seed
        Seed of trees that are fitted here, if the target names none.

    Raises
    ------
    EnsembleError, OSError
        If the target cannot be used with these data.
    ValueError
        If the depth is out of range.
    """
    depth = Topology(depth).depth
    if data.weighted:
        raise EnsembleError(
            f"{data.name} has sample weights, and what is shown of an ensemble counts samples; leave the weights out"
        )
    return Vite(ensemble_for(target, data, depth, seed=seed, deeper=True), data, depth)


def plot_vite(tables: EnsembleTables, *, max_features: int = 6) -> Figure:
    """Draw VITE's page.

    - *Features by level*: a heat map of the level frequencies.
    - *Where trees split*: one tree that stands for all; every node lists its most frequent features with
      their shares and the range of their split values.
    - *Which samples go together*: the proximity matrix; at most 1000 samples, evenly chosen, are drawn.
    - *How sure the ensemble is*: histograms of class probabilities, right and wrong predictions apart.

    Parameters
    ----------
    tables
        What to draw.
    max_features
        Most features to list in a node; the rest is counted.

    Returns
    -------
    matplotlib.figure.Figure
        A figure as large as it needs to be, unknown to ``pyplot``.

    Raises
    ------
    EnsembleError
        If there are more than :data:`MAX_LEVELS` levels.
    """
    if tables.depth > MAX_LEVELS:
        raise EnsembleError(
            f"a picture of {tables.depth} levels would have up to {2**tables.depth - 1} boxes; show at most "
            f"{MAX_LEVELS} levels, or write the tables instead"
        )
    darkest = float(max(tables.levels.to_numpy().max(), tables.nodes.to_numpy().max()))
    tree = NodeTree(tables, max_features, darkest)
    places, width, height = _arrange(
        LevelMap(tables, darkest), tree, ProximityMap(tables), ProbabilityPlot(tables)
    )
    title, subtitle = _titles(tables)
    width = 2 * MARGIN + max(width, text_width(title, 14, "bold"), text_width(subtitle, SMALL))
    height += 2 * MARGIN + TITLE
    figure = new_figure(width, height)
    axes = inch_axes(figure, 0, 0, width, height)
    write(axes, MARGIN, height - MARGIN - 0.1, title, 14, fontweight="bold")
    write(axes, MARGIN, height - MARGIN - 0.4, subtitle, SMALL, FAINT)
    for panel, left, top in places:
        _draw(figure, axes, panel, MARGIN + left, height - MARGIN - TITLE - top)
    return figure


def _arrange(levels: Panel, tree: Panel, *others: Panel) -> tuple[list[Place], float, float]:
    """Place all panels but the tree in a column beside it, or all in two rows, whichever takes less space."""
    column = (levels, *others)
    beside = [*_rows([(panel,) for panel in column]), (tree, max(panel.space for panel in column) + GAP, 0.0)]
    in_rows = _rows([(levels, tree), others])
    return min((_with_extent(places) for places in (beside, in_rows)), key=lambda page: page[1] * page[2])


def _rows(rows: list[tuple[Panel, ...]]) -> list[Place]:
    places: list[Place] = []
    top = 0.0
    for row in rows:
        left = 0.0
        for panel in row:
            places.append((panel, left, top))
            left += panel.space + GAP
        top += max(map(_height, row))
    return places


def _with_extent(places: list[Place]) -> tuple[list[Place], float, float]:
    """Return the panels with the width and the height that they take together."""
    width = max(left + panel.space for panel, left, _ in places)
    return places, width, max(top + _height(panel) for panel, _, top in places) - GAP


def _titles(tables: EnsembleTables) -> tuple[str, str]:
    ensemble = tables.ensemble
    title = f"VITE: {ensemble.kind} on {shorten(tables.data.name, LONGEST_NAME)}"
    deeper = f" Splits below level {tables.depth - 1} are not shown." if ensemble.depth > tables.depth else ""
    subtitle = (
        f"{ensemble.description}. {tables.data.n} samples, {tables.data.p} features; "
        f"accuracy {tables.accuracy:.1%}.{deeper}"
    )
    return title, subtitle


def _height(panel: Panel) -> float:
    """Return the height of a panel with its heading and the gap below."""
    return HEAD + panel.height + GAP


def _draw(figure: Figure, axes: Axes, panel: Panel, left: float, top: float) -> None:
    write(axes, left, top - 0.1, panel.title, HEADING, fontweight="bold")
    for number, sentence in enumerate(panel.caption):
        write(axes, left, top - 0.32 - number * LINE, sentence, SMALL, FAINT)
    panel.draw(figure, left, top - HEAD - panel.height)
