"""A tree as a figure: boxes with splits in original units, class counts, coloured leaves."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from mipforest.trees.figure import (
    FAINT,
    Layout,
    add_legend,
    class_colours,
    figure_of,
    line_height,
    new_figure,
    place,
    save_figure,
    shorten,
    text_width,
)
from mipforest.trees.node_box import BAR_GAP, BAR_HEIGHT, PADDING, Line, NodeBox, node_box
from mipforest.trees.node_statistics import node_statistics
from mipforest.trees.reachable import ReachableNode, reachable_tree
from mipforest.trees.tree import Tree

MARGIN = 0.15
LEGEND_HEIGHT = 0.2


def plot_tree(
    tree: Tree, X: Any = None, y: npt.ArrayLike | None = None, ax: Axes | None = None, *, max_terms: int = 3
) -> Figure:
    """Draw a tree.

    A split shows the condition for going right ("yes") in original units: a univariate one with four
    significant digits, an oblique one with three and some of its terms only, one per line: those of largest weight, or,
    with samples, those that move the score most (see :func:`~mipforest.trees.influence.feature_influence`). A leaf
    shows its prediction in the colour of its class or value; a linear leaf its function in original units,
    the most influential terms only, in the colour of its mean target (grey where none is known). With
    samples, boxes show their number, leaves without any are pale, and those of a logistic tree show the mean
    probability of their class; with targets too, the class counts, in the order of the legend, or the mean, and at the
    leaves of a regression tree the errors: MSE, MAE, and R2 of linear leaves. Trivial nodes (no weight) and what lies
    dead below them are left out.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units, or ``None``.
    y
        (n,) their targets: class numbers, class names, or real values; needs ``X``.
    ax
        Axes to draw into, shrunk to fit them; ``None`` makes a figure large enough to read.
    max_terms
        Most terms of an oblique split or a linear leaf to show; the rest is counted.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, unknown to ``pyplot``; :func:`save_figure` writes it.

    Raises
    ------
    ValueError
        If X or y do not fit the tree, or y comes without X.
    """
    if y is not None and X is None:
        raise ValueError("y without X: targets are counted where their samples go; give X too")
    statistics = None if X is None else node_statistics(tree, X, y)
    root = reachable_tree(tree)
    boxes = {node.number: node_box(tree, node, statistics, max_terms) for node in _walk(root)}
    layout = place(root, {number: (box.width, box.height) for number, box in boxes.items()})
    legend = _legend_width(tree) if tree.is_classifier else 0.0
    width = max(layout.width, legend) + 2 * MARGIN
    height = layout.height + 2 * MARGIN + (LEGEND_HEIGHT if legend else 0.0)
    axes = new_figure(width, height).add_axes((0, 0, 1, 1)) if ax is None else ax
    figure = figure_of(axes)
    extent = axes.get_window_extent()
    zoom = min(1.0, extent.width / figure.dpi / width, extent.height / figure.dpi / height)
    _Drawing(axes, tree, boxes, layout, zoom).draw(root, width, height)
    return figure


def save_plot(
    tree: Tree,
    path: str | PathLike[str],
    X: Any = None,
    y: npt.ArrayLike | None = None,
    *,
    max_terms: int = 3,
) -> None:
    """Draw a tree (see :func:`plot_tree`) into a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

    The same tree and data give the same bytes.

    Raises
    ------
    ValueError
        If the suffix is another one, or X or y do not fit the tree.
    OSError
        If the file cannot be written.
    """
    save_figure(plot_tree(tree, X, y, max_terms=max_terms), path)


def _walk(node: ReachableNode) -> Iterator[ReachableNode]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _legend_width(tree: Tree) -> float:
    return sum(text_width(shorten(name), 9) + 0.55 for name in tree.classes)


class _Drawing:
    """Draws boxes and edges into axes whose data units are inches of the unshrunk figure."""

    def __init__(
        self, axes: Axes, tree: Tree, boxes: dict[int, NodeBox], layout: Layout, zoom: float
    ) -> None:
        self.axes = axes
        self.tree = tree
        self.boxes = boxes
        self.layout = layout
        self.zoom = zoom
        self.colours = class_colours(len(tree.classes))

    def draw(self, root: ReachableNode, width: float, height: float) -> None:
        spare = (width - self.layout.width) / 2
        self.axes.set_xlim(-spare, width - spare)
        self.axes.set_ylim(-MARGIN, height - MARGIN)
        self.axes.set_aspect("equal")
        self.axes.set_axis_off()
        for node in _walk(root):
            for child, answer in zip(node.children, ("no", "yes"), strict=False):
                self._edge(node, child, answer)
        for number, box in self.boxes.items():
            self._box(box, self.layout.centre[number], self.layout.top[number])
        if self.tree.is_classifier:
            self._legend()

    def _edge(self, parent: ReachableNode, child: ReachableNode, answer: str) -> None:
        x = (self.layout.centre[parent.number], self.layout.centre[child.number])
        y = (self.layout.top[parent.number] - self.boxes[parent.number].height, self.layout.top[child.number])
        self.axes.plot(x, y, color="#888888", linewidth=1.2 * self.zoom, zorder=1)
        # The answer stands just above the child's level, where edges to different children are well apart.
        share = 1 - 0.22 / (y[0] - y[1])
        background = {"facecolor": "white", "edgecolor": "none", "pad": 1.5 * self.zoom}
        self._text(
            Line(answer, 8.0, colour=FAINT), x[0] + share * (x[1] - x[0]), y[1] + 0.22, bbox=background
        )

    def _box(self, box: NodeBox, centre: float, top: float) -> None:
        width, height = box.width, box.height
        outline = FancyBboxPatch(
            (centre - width / 2, top - height),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=box.face,
            edgecolor=box.edge,
            linewidth=1.2 * self.zoom,
            zorder=2,
        )
        self.axes.add_patch(outline)
        y = self._lines(box.lines, centre, top - PADDING)
        if box.bar:
            self._bar(box, centre - width / 2 + PADDING, y - BAR_GAP - BAR_HEIGHT, width - 2 * PADDING)
            y -= BAR_HEIGHT + 2 * BAR_GAP
        self._lines(box.footer, centre, y)

    def _lines(self, lines: tuple[Line, ...], x: float, y: float) -> float:
        for line in lines:
            height = line_height(line.points)
            self._text(line, x, y - height / 2)
            y -= height
        return y

    def _bar(self, box: NodeBox, left: float, bottom: float, width: float) -> None:
        for share, colour in zip(box.bar, self.colours, strict=True):
            if share > 0:
                self.axes.add_patch(
                    Rectangle(
                        (left, bottom), share * width, BAR_HEIGHT, facecolor=colour, linewidth=0, zorder=3
                    )
                )
            left += share * width

    def _text(self, line: Line, x: float, y: float, **options: Any) -> None:
        self.axes.text(
            x,
            y,
            line.text,
            fontsize=line.points * self.zoom,
            fontweight=line.weight,
            color=line.colour,
            horizontalalignment="center",
            verticalalignment="center_baseline",
            parse_math=False,
            zorder=4,
            **options,
        )

    def _legend(self) -> None:
        handles = [Patch(facecolor=colour) for colour in self.colours]
        options = {"ncols": len(handles), "frameon": False, "fontsize": 9 * self.zoom, "handlelength": 1.0}
        add_legend(
            self.axes, handles, list(self.tree.classes), loc="upper center", borderaxespad=0.3, **options
        )
