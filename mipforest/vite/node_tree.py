"""One tree that stands for all: a box per node, levels from left to right."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mipforest.trees.figure import FAINT
from mipforest.trees.live import LiveNode
from mipforest.trees.tree_layout import place
from mipforest.vite.drawing import SMALL, TINY, Panel, inch_axes, write
from mipforest.vite.node_card import CardColumns, draw_card, node_card
from mipforest.vite.unboxed import Vite

#: Room between levels, for the edges and what is written at them, and for the levels' names, in inches.
LEVEL_GAP = 0.75
LEVEL_LABEL = 0.3

#: Where on its edge an answer stands: nearer to the child, where edges are well apart.
ANSWER_AT = 0.62


class NodeTree(Panel):
    """The nodes at which some tree splits."""

    title = "Where trees split"

    def __init__(self, vite: Vite, max_features: int, darkest: float) -> None:
        self.darkest = darkest
        self.caption = (
            "A box: share of the node's splits by feature, and the split values from least to greatest.",
            "Samples with smaller values go to the upper box, the others to the lower one.",
            _remark(vite),
        )
        split = vite.roles.index[vite.roles.split > 0]
        self.cards = {node: node_card(vite, node, max_features) for node in split}
        self.columns = CardColumns.of(list(self.cards.values()))
        levels = int(max(split) + 1).bit_length()
        self.width = levels * self.columns.width + (levels - 1) * LEVEL_GAP
        # The layout is made for levels from top to bottom: its widths are heights here.
        sizes = {node: (card.height, self.columns.width) for node, card in self.cards.items()}
        layout = place(self._live(0), sizes)
        self.middle, self.height = layout.centre, layout.width + LEVEL_LABEL

    def _live(self, node: int) -> LiveNode:
        """Give the subtree of a node as what can be laid out."""
        left, right = (
            self._live(child) if child in self.cards else None for child in (2 * node + 1, 2 * node + 2)
        )
        return LiveNode(node, left=left, right=right)

    def draw(self, figure: Figure, left: float, bottom: float) -> None:
        """Draw levels' names, edges and boxes."""
        axes = inch_axes(figure, left, bottom, self.width, self.height)
        for node, card in self.cards.items():
            self._draw_edge(axes, node)
            draw_card(
                axes, card, self.columns, self._left(node), self._y(node) + card.height / 2, self.darkest
            )
        for level in range((max(self.cards) + 1).bit_length()):
            x = self._left(2**level - 1) + self.columns.width / 2
            write(axes, x, self.height - 0.1, f"level {level}", SMALL, FAINT, horizontalalignment="center")

    def _draw_edge(self, axes: Axes, node: int) -> None:
        if node == 0:
            return
        parent = (node - 1) // 2
        start, end = self._left(parent) + self.columns.width, self._left(node)
        axes.plot((start, end), (self._y(parent), self._y(node)), color="#888888", linewidth=1.1, zorder=1)
        word = "smaller" if node % 2 else "larger"
        x = start + ANSWER_AT * (end - start)
        y = self._y(parent) + ANSWER_AT * (self._y(node) - self._y(parent))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        write(axes, x, y, word, TINY, FAINT, horizontalalignment="center", bbox=box, zorder=1.5)

    def _left(self, node: int) -> float:
        level = (node + 1).bit_length() - 1
        return level * (self.columns.width + LEVEL_GAP)

    def _y(self, node: int) -> float:
        return self.height - LEVEL_LABEL - self.middle[node]


def _remark(vite: Vite) -> str:
    weights = {member.weight for member in vite.ensemble.members}
    weighing = "Trees count by the variance of their output. " if len(weights) > 1 else ""
    ended = (
        "Trees that neither split nor end at a node have ended above it." if vite.roles.absent.any() else ""
    )
    return weighing + ended
