"""The box of one node: what splits there, with ranges of split values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from mipforest.trees.figure import FAINT, shorten, text_size
from mipforest.trees.split_text import format_number
from mipforest.vite.drawing import CELL, NORMAL, ROW, SMALL, percent, percent_cell, write
from mipforest.vite.unboxed import Vite

#: Room inside a card's edge, and between its columns, in inches.
PADDING = 0.08
GAP = 0.12


class Row(NamedTuple):
    """A feature of a node: its share of the splits, name, and range of split values."""

    share: float
    name: str
    range: str


@dataclass(frozen=True)
class NodeCard:
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
        names = max((text_size(row.name, NORMAL)[0] for row in self.rows), default=0.0)
        ranges = max((text_size(row.range, SMALL)[0] for row in self.rows), default=0.0)
        return names, ranges

    @property
    def heading_width(self) -> float:
        """Width in inches of its first line, and of its last."""
        first = text_size(f"n{self.node}", NORMAL, "bold")[0] + GAP + text_size(self.role, SMALL)[0]
        return max(first, text_size(self.rest, SMALL)[0])


def node_card(vite: Vite, node: int, max_features: int) -> NodeCard:
    """Make the card of a node."""
    found = vite.thresholds[vite.thresholds.node == node]
    # A single feature beyond the most gets its row: to say that there is one more takes as much room.
    shown = found if len(found) <= max_features + 1 else found[:max_features]
    hidden = found[len(shown) :]
    rows = tuple(Row(row.percent, shorten(row.feature), _range(row)) for row in shown.itertuples())
    rest = f"{len(hidden)} other features: {percent(hidden.percent.sum())}" if len(hidden) else ""
    return NodeCard(node, _role(vite.roles.loc[node]), rows, rest)


def _range(row: Any) -> str:
    lower, upper = format_number(row.lower), format_number(row.upper)
    return lower if lower == upper else f"{lower} to {upper}"


def _role(shares: Any) -> str:
    if shares.leaf == 0 and shares.absent == 0:
        return "all trees split"
    ending = f", {percent(shares.leaf)} end here" if shares.leaf > 0 else ""
    return f"{percent(shares.split)} of trees split{ending}"


@dataclass(frozen=True)
class CardColumns:
    """Where the columns of all cards stand, in inches from a card's left side."""

    names: float
    ranges: float
    width: float

    @classmethod
    def of(cls, cards: Sequence[NodeCard]) -> CardColumns:
        """Make room for the longest texts."""
        names = max(card.columns[0] for card in cards)
        ranges = max(card.columns[1] for card in cards)
        table = CELL + GAP + names + GAP + ranges
        headings = max(card.heading_width for card in cards)
        return cls(PADDING + CELL + GAP, ranges, 2 * PADDING + max(table, headings))


def draw_card(
    axes: Axes, card: NodeCard, columns: CardColumns, left: float, top: float, darkest: float
) -> None:
    """Draw a card with its top left corner at a place; ``darkest`` as for :func:`.drawing.percent_cell`."""
    right = left + columns.width
    axes.add_patch(
        FancyBboxPatch(
            (left, top - card.height),
            columns.width,
            card.height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="#fafafa",
            edgecolor="#999999",
            linewidth=0.9,
            clip_on=False,
            zorder=2,
        )
    )
    y = top - PADDING - ROW / 2
    write(axes, left + PADDING, y, f"n{card.node}", fontweight="bold", zorder=4)
    write(axes, right - PADDING, y, card.role, SMALL, FAINT, horizontalalignment="right", zorder=4)
    y -= 0.2 * ROW
    for row in card.rows:
        y -= ROW
        percent_cell(axes, left + PADDING, y - ROW / 2, row.share, darkest)
        write(axes, left + columns.names, y, row.name, zorder=4)
        write(axes, right - PADDING, y, row.range, SMALL, FAINT, horizontalalignment="right", zorder=4)
    if card.rest:
        write(axes, left + PADDING, y - ROW, card.rest, SMALL, FAINT, zorder=4)
