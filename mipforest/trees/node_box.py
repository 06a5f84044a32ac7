"""The box of a node in the plot of a tree: what it says, and how large it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.trees.figure import (
    FAINT,
    INK,
    class_colours,
    line_height,
    shorten,
    text_width,
    tint,
    value_colours,
)
from mipforest.trees.node_statistics import NodeStatistics
from mipforest.trees.reachable import ReachableNode
from mipforest.trees.text import (
    describe_linear_leaf,
    describe_split,
    estimates_text,
    format_number,
    leaf_text,
)
from mipforest.trees.tree import Tree

PADDING = 0.08
BAR_HEIGHT = 0.09
BAR_GAP = 0.04
MIN_WIDTH = 0.95

#: Colour of a linear leaf of which no target is known.
UNKNOWN = "#a8a8a8"

#: Colour of the text of a leaf without samples: as pale as can be read on white.
PALE = "#767676"

#: Up to this many classes, their counts are written out below the bar.
MOST_COUNTS = 4


class Line(NamedTuple):
    """One line of text: what it says, its size in points, weight and colour."""

    text: str
    points: float = 9.0
    weight: str = "normal"
    colour: str = INK


@dataclass(frozen=True)
class NodeBox:
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

    @cached_property
    def width(self) -> float:
        """Width of the box."""
        texts = [text_width(line.text, line.points, line.weight) for line in self.lines + self.footer]
        return max([MIN_WIDTH, *(width + 2 * PADDING for width in texts)])

    @property
    def height(self) -> float:
        """Height of the box."""
        texts = sum(line_height(line.points) for line in self.lines + self.footer)
        return texts + (BAR_HEIGHT + 2 * BAR_GAP if self.bar else 0.0) + 2 * PADDING


def node_box(tree: Tree, node: ReachableNode, statistics: NodeStatistics | None, max_terms: int) -> NodeBox:
    """Return the box of a split or a leaf."""
    header = Line(f"n{node.number}{_samples(statistics, node.number)}", 7.5, colour=FAINT)
    bar, counts = _class_counts(statistics, node.number)
    mean = _mean(statistics, node.number)
    if node.children:
        footer = (*counts, *([Line(mean, 8.0, colour=FAINT)] if mean else []))
        lines = (header, *_split_lines(tree, node.number, max_terms, statistics))
        return NodeBox(lines, bar, footer, "white", "#888888")
    colour = leaf_colours(tree, statistics)[node.number - tree.topology.n_branches]
    prediction = _prediction_lines(tree, node.number, mean, max_terms)
    if statistics is not None and statistics.samples[node.number] == 0:
        # Nobody comes here: what it predicts rests on no sample.
        pale = [line._replace(colour=PALE, weight="normal") for line in (header, *prediction)]
        return NodeBox(tuple(pale), (), (), "white", tint(colour, 0.35))
    footer = (
        *counts,
        *_probability_lines(tree, node.number, statistics),
        *_error_lines(tree, node.number, statistics),
    )
    face = tint(colour, 0.25 if tree.is_classifier else 0.35)
    return NodeBox((header, *prediction), bar, footer, face, colour)


def leaf_colours(tree: Tree, statistics: NodeStatistics | None) -> tuple[str, ...]:
    """Return the colour of each leaf, left to right: by class, value, or mean target of a linear leaf."""
    if tree.is_classifier:
        colours = class_colours(len(tree.classes))
        return tuple(colours[k] for k in tree.leaf_value)
    levels = _leaf_levels(tree, statistics)
    known = levels[~np.isnan(levels)]
    if len(known) == 0:
        return (UNKNOWN,) * len(levels)
    low, high = float(known.min()), float(known.max())
    return tuple(UNKNOWN if np.isnan(x) else value_colours(np.array([x]), low, high)[0] for x in levels)


def _leaf_levels(tree: Tree, statistics: NodeStatistics | None) -> FloatArray:
    """Return (|L|,) one number per leaf of a regression tree; NaN for a linear leaf without targets."""
    if not tree.has_linear_leaves:
        return np.asarray(tree.leaf_value, dtype=np.float64)
    if statistics is None or statistics.mean is None:
        return np.full(tree.topology.n_leaves, np.nan)
    return statistics.mean[tree.topology.n_branches :]


def _prediction_lines(tree: Tree, leaf: int, mean: str, max_terms: int) -> Sequence[Line]:
    """Return the lines of a prediction: treatment and outcomes; class; value, mean if it differs; linear function."""
    if tree.prescribes:
        treatment = tree.classes[tree.leaf_value[leaf - tree.topology.n_branches]]
        estimates = estimates_text(tree, leaf, max_terms, digits=3)
        return [
            Line(shorten(treatment), 10.0, "bold"),
            *_terms(estimates[:MOST_COUNTS], len(estimates[MOST_COUNTS:])),
        ]
    if tree.is_classifier:
        return [Line(shorten(leaf_text(tree, leaf)), 10.0, "bold")]
    if tree.has_linear_leaves:
        linear = describe_linear_leaf(tree, leaf, digits=3, max_terms=max_terms)
        average = [Line(mean, 10.0, "bold")] if mean else []
        return [*average, Line(linear.constant.replace("-", "−")), *_terms(linear.terms, linear.n_hidden)]
    value = float(tree.leaf_value[leaf - tree.topology.n_branches])
    differs = mean and mean != _mean_text(value)
    return [
        Line(leaf_text(tree, leaf), 10.0, "bold"),
        *([Line(mean, 8.0, colour=FAINT)] if differs else []),
    ]


def _split_lines(tree: Tree, t: int, max_terms: int, statistics: NodeStatistics | None) -> Sequence[Line]:
    """Return a univariate split on one line, an oblique one with one term per line, those that matter most first."""
    n_terms = np.count_nonzero(tree.w[t])
    known = statistics is not None and statistics.influence is not None and statistics.influence[t].any()
    influence = statistics.influence[t] if known and statistics and statistics.influence is not None else None
    split = describe_split(tree, t, digits=4 if n_terms == 1 else 3, max_terms=max_terms, influence=influence)
    if split.relation.startswith("is"):
        return [Line(shorten(str(split), 40))]
    relation = {">=": "≥", "<=": "≤"}[split.relation]
    threshold = split.threshold.replace("-", "−")
    if n_terms == 1:
        return [Line(f"{shorten(split.terms[0])} {relation} {threshold}")]
    return [*_terms(split.terms, split.n_hidden), Line(f"{relation} {threshold}")]


def _terms(terms: Sequence[str], n_hidden: int) -> Sequence[Line]:
    """Return one term per line, and how many more there are."""
    shown = [Line(shorten("−" + term[1:] if term.startswith("-") else term, 34)) for term in terms]
    return [*shown, Line(f"+ {n_hidden} more", colour=FAINT)] if n_hidden else shown


def _samples(statistics: NodeStatistics | None, node: int) -> str:
    if statistics is None:
        return ""
    n = int(statistics.samples[node])
    return f"  ·  {n} sample{'' if n == 1 else 's'}"


def _mean(statistics: NodeStatistics | None, node: int) -> str:
    """Return the mean target of a node in words, or an empty text if it is unknown."""
    if statistics is None or statistics.mean is None or statistics.samples[node] == 0:
        return ""
    return _mean_text(float(statistics.mean[node]))


def _mean_text(value: float) -> str:
    return f"mean {format_number(value, 3)}"


def _class_counts(statistics: NodeStatistics | None, node: int) -> tuple[tuple[float, ...], tuple[Line, ...]]:
    """Return the bar of a node and the line below it; both are empty if no counts are known."""
    if statistics is None or statistics.class_counts is None or statistics.samples[node] == 0:
        return (), ()
    counts = statistics.class_counts[node]
    bar = tuple(float(count) for count in counts / counts.sum())
    if len(counts) > MOST_COUNTS:
        return bar, ()
    return bar, (Line("  |  ".join(map(str, counts)), 8.0),)


def _probability_lines(tree: Tree, leaf: int, statistics: NodeStatistics | None) -> tuple[Line, ...]:
    """Return the mean probability that a logistic tree gives the class of a leaf."""
    if statistics is None or statistics.probability is None:
        return ()
    mean = statistics.probability[leaf - tree.topology.n_branches]
    return (Line(f"probability {mean:.0%} on average", 8.0, colour=FAINT),)


def _error_lines(tree: Tree, leaf: int, statistics: NodeStatistics | None) -> tuple[Line, ...]:
    """Return the errors of a leaf's predictions, without R2 for a constant leaf: it cannot exceed 0."""
    if statistics is None or statistics.samples[leaf] == 0:
        return ()
    if statistics.r2 is None or statistics.mse is None or statistics.mae is None:
        return ()
    mse, mae = (format_number(float(measure[leaf]), 3) for measure in (statistics.mse, statistics.mae))
    errors = f"MSE {mse}  |  MAE {mae}"
    if tree.has_linear_leaves:
        errors = f"R² {format_number(float(statistics.r2[leaf]), 2)}  |  {errors}"
    return (Line(errors.replace("-", "−"), 8.0, colour=FAINT),)
