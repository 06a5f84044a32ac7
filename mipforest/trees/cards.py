"""What the box of a node says in the plot of a tree, and how large it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.figure import FAINT, INK, class_colours, shorten, text_size, tint, value_colours
from mipforest.trees.live import LiveNode
from mipforest.trees.split_text import describe_split, format_number
from mipforest.trees.statistics import NodeStatistics
from mipforest.trees.text import leaf_text
from mipforest.trees.tree import Tree

PADDING = 0.08
BAR_HEIGHT = 0.09
BAR_GAP = 0.04
MIN_WIDTH = 0.95

#: Up to this many classes, their counts are written out below the bar.
MOST_COUNTS = 4


class Line(NamedTuple):
    """One line of text: what it says, its size in points, weight and colour."""

    text: str
    points: float = 9.0
    weight: str = "normal"
    colour: str = INK


@dataclass(frozen=True)
class Card:
    """The box of a node, from top to bottom: lines, bar of class counts, counts. Sizes in inches.

    Attributes
    ----------
    lines
        Lines above the bar.
    bar
        Width of each class in the bar, summing to 1; empty for no bar.
    footer
        Lines below the bar.
    face, edge
        Colours of the box.
    """

    lines: tuple[Line, ...]
    bar: tuple[float, ...]
    footer: tuple[Line, ...]
    face: str
    edge: str

    @property
    def width(self) -> float:
        """Width of the box."""
        texts = [text_size(line.text, line.points, line.weight)[0] for line in self.lines + self.footer]
        return max([MIN_WIDTH, *(width + 2 * PADDING for width in texts)])

    @property
    def height(self) -> float:
        """Height of the box."""
        texts = sum(text_size(line.text, line.points)[1] for line in self.lines + self.footer)
        return texts + (BAR_HEIGHT + 2 * BAR_GAP if self.bar else 0.0) + 2 * PADDING


def node_card(tree: Tree, node: LiveNode, statistics: NodeStatistics | None, max_terms: int) -> Card:
    """Make the card of a split or a leaf."""
    header = Line(f"n{node.number}{_samples(statistics, node.number)}", 7.5, colour=FAINT)
    bar, footer = _distribution(statistics, node.number)
    if node.children:
        return Card((header, *_split_lines(tree, node.number, max_terms)), bar, footer, "white", "#888888")
    colour = leaf_colours(tree)[node.number - tree.topology.n_branches]
    prediction = Line(shorten(leaf_text(tree, node.number)), 10.0, "bold")
    return Card((header, prediction), bar, footer, tint(colour, 0.25 if tree.is_classifier else 0.35), colour)


def leaf_colours(tree: Tree, values: IntArray | FloatArray | None = None) -> tuple[str, ...]:
    """Give one colour per leaf, left to right: of its class, or of its value.

    ``values`` widens the range of colours of a regression tree, so that targets can share it.
    """
    if not tree.is_classifier:
        every = tree.leaf_value if values is None else np.append(tree.leaf_value, values)
        return value_colours(tree.leaf_value, float(every.min()), float(every.max()))
    colours = class_colours(len(tree.classes))
    return tuple(colours[k] for k in tree.leaf_value)


def _split_lines(tree: Tree, t: int, max_terms: int) -> Sequence[Line]:
    """Give a univariate split on one line, an oblique one with one term per line."""
    n_terms = np.count_nonzero(tree.w[t])
    split = describe_split(tree, t, digits=4 if n_terms == 1 else 3, max_terms=max_terms)
    relation = {">=": "≥", "<=": "≤"}[split.relation]
    threshold = split.threshold.replace("-", "−")
    if n_terms == 1:
        return [Line(f"{shorten(split.terms[0])} {relation} {threshold}")]
    more = [Line(f"+ {split.n_hidden} more", colour=FAINT)] if split.n_hidden else []
    terms = [Line(shorten("−" + term[1:] if term.startswith("-") else term, 34)) for term in split.terms]
    return [*terms, *more, Line(f"{relation} {threshold}")]


def _samples(statistics: NodeStatistics | None, node: int) -> str:
    if statistics is None:
        return ""
    n = int(statistics.samples[node])
    return f"  ·  {n} sample{'' if n == 1 else 's'}"


def _distribution(statistics: NodeStatistics | None, node: int) -> tuple[tuple[float, ...], tuple[Line, ...]]:
    """Give the bar of a node and the line below it; both empty where nothing is known."""
    if statistics is None or statistics.samples[node] == 0:
        return (), ()
    if statistics.mean is not None:
        return (), (Line(f"mean {format_number(float(statistics.mean[node]), 3)}", 8.0, colour=FAINT),)
    if statistics.class_counts is None:
        return (), ()
    counts = statistics.class_counts[node]
    bar = tuple(float(count) for count in counts / counts.sum())
    if len(counts) > MOST_COUNTS:
        return bar, ()
    return bar, (Line("  |  ".join(map(str, counts)), 8.0),)
