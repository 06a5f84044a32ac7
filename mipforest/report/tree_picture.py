"""The tree as a picture in the page: boxes that are links to what the list below says of them."""

from __future__ import annotations

import warnings
from xml.etree.ElementTree import Element

from mipforest.report.content import FittedTree
from mipforest.report.markup import element
from mipforest.report.node_text import NodeTexts
from mipforest.trees.figure import FAINT, Sizes, class_colours, place, text_size
from mipforest.trees.node_box import BAR_GAP, BAR_HEIGHT, PADDING, Line, NodeBox, node_box
from mipforest.trees.reachable import ReachableNode

#: Pixels per inch, the unit of boxes and layout, and per point, the unit of letters.
INCH = 96
POINT = 96 / 72

#: Free space around the tree, in pixels.
MARGIN = 16

#: Terms of an oblique split or a linear leaf that a box shows.
SHOWN_TERMS = 3


def tree_picture(fitted: FittedTree, texts: NodeTexts) -> Element:
    """Draw the tree."""
    with warnings.catch_warnings():
        # Letters that the font for measuring lacks get a usual width; the browser has fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        boxes = {
            node.number: node_box(fitted.tree, node, fitted.statistics, SHOWN_TERMS) for node in fitted.nodes
        }
        sizes = {number: (box.width, box.height) for number, box in boxes.items()}
    return _Picture(fitted, texts, boxes, sizes).drawn()


class _Picture:
    """Draws boxes and the edges between them."""

    def __init__(self, fitted: FittedTree, texts: NodeTexts, boxes: dict[int, NodeBox], sizes: Sizes) -> None:
        self.fitted, self.texts, self.boxes, self.sizes = fitted, texts, boxes, sizes
        self.layout = place(fitted.root, sizes)
        self.colours = class_colours(len(fitted.tree.classes))

    def drawn(self) -> Element:
        width, height = (2 * MARGIN + INCH * size for size in (self.layout.width, self.layout.height))
        edges = [
            part
            for node in self.fitted.nodes
            for child, answer in zip(node.children, ("no", "yes"), strict=False)
            for part in self._edge(node, child, answer)
        ]
        return element(
            "svg",
            element("g", *edges, class_="edges", aria_hidden="true"),
            *(self._box(node) for node in self.fitted.nodes),
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=f"{width:.0f}",
            height=f"{height:.0f}",
            class_="tree",
            role="group",
            aria_label=f"Decision tree, {len(self.fitted.nodes)} nodes",
        )

    def _x(self, node: int) -> float:
        return MARGIN + INCH * self.layout.centre[node]

    def _y(self, node: int) -> float:
        return MARGIN + INCH * (self.layout.height - self.layout.top[node])

    def _edge(self, parent: ReachableNode, child: ReachableNode, answer: str) -> list[Element]:
        x, y = self._x(parent.number), self._y(parent.number) + INCH * self.sizes[parent.number][1]
        to_x, to_y = self._x(child.number), self._y(child.number)
        # The answer stands just above the child's level, where edges to different children are well apart.
        share = 1 - 20 / (to_y - y)
        at_x, at_y = x + share * (to_x - x), to_y - 20
        return [
            element("path", d=f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"),
            element("rect", x=f"{at_x - 14:.1f}", y=f"{at_y - 8:.1f}", width="28", height="16", class_="gap"),
            element("text", answer, x=f"{at_x:.1f}", y=f"{at_y:.1f}"),
        ]

    def _box(self, node: ReachableNode) -> Element:
        box = self.boxes[node.number]
        width, height = (INCH * length for length in self.sizes[node.number])
        left, top = self._x(node.number) - width / 2, self._y(node.number)
        outline = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        shapes = [element("rect", **outline, rx="6", class_="ground")]
        if not node.children:
            shapes.append(element("rect", **outline, rx="6", class_="leaf", fill=box.edge, stroke=box.edge))
        y = top + INCH * PADDING
        shapes += self._lines(box.lines, y, node.number)
        y += INCH * sum(_height(line) for line in box.lines)
        if box.bar:
            shapes += self._bar(box, left + INCH * PADDING, y + INCH * BAR_GAP, width - 2 * INCH * PADDING)
            y += INCH * (BAR_HEIGHT + 2 * BAR_GAP)
        shapes += self._lines(box.footer, y, node.number)
        kind = "split" if node.children else "leaf"
        label = f"n{node.number}, {kind}: {self.texts.headline(node)}; {self.texts.samples(node)}"
        return element(
            "a",
            *shapes,
            href=f"#node-{node.number}",
            class_="node",
            data_node=str(node.number),
            aria_label=label,
        )

    def _lines(self, lines: tuple[Line, ...], y: float, node: int) -> list[Element]:
        parts = []
        for line in lines:
            height = INCH * _height(line)
            parts.append(
                element(
                    "text",
                    line.text,
                    x=f"{self._x(node):.1f}",
                    y=f"{y + height / 2:.1f}",
                    font_size=f"{line.points * POINT:.2f}",
                    font_weight=None if line.weight == "normal" else line.weight,
                    class_="faint" if line.colour == FAINT else None,
                )
            )
            y += height
        return parts

    def _bar(self, box: NodeBox, left: float, top: float, width: float) -> list[Element]:
        parts = []
        for share, colour in zip(box.bar, self.colours, strict=True):
            if share > 0:
                size = {"width": f"{share * width:.2f}", "height": f"{INCH * BAR_HEIGHT:.2f}"}
                parts.append(
                    element("rect", x=f"{left:.2f}", y=f"{top:.2f}", **size, fill=colour, class_="bar")
                )
            left += share * width
        return parts


def _height(line: Line) -> float:
    return text_size("", line.points)[1]
