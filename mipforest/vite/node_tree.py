"""One tree that stands for all: a box per node, levels from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from mipforest.trees import Topology
from mipforest.trees.figure import FAINT, place, shorten, text_width
from mipforest.trees.reachable import ReachableNode
from mipforest.trees.text import format_number
from mipforest.vite.panels import (
    CELL,
    NORMAL,
    ROW,
    SMALL,
    TINY,
    Panel,
    inch_axes,
    percent,
    percent_cell,
    write,
)
from mipforest.vite.tables import EnsembleTables

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
