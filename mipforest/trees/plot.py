"""A tree as a figure: boxes with splits in original units, class counts, coloured leaves.

Figures have no global state. Their colours are told apart by colour-blind readers. A box is laid out before it is
drawn: its lines, and its size.

Of a randomised tree, a figure of parallel coordinates shows what moves its predictions, sample by sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from matplotlib.text import Text

from mipforest.arrays import FloatArray, IntArray
from mipforest.atomic import atomic_write
from mipforest.formatting import printable
from mipforest.meanings import LevelSet
from mipforest.trees.node_statistics import NodeStatistics, node_statistics
from mipforest.trees.randomized import RandomizedTree
from mipforest.trees.reachable import (
    ReachableNode,
    chord,
    reachable_tree,
    rectangle,
    shown_tree,
    split_line,
)
from mipforest.trees.text import (
    describe_linear_leaf,
    describe_split,
    estimates_text,
    format_number,
    leaf_text,
    vector_text,
)
from mipforest.trees.tree import Tree, as_samples, class_numbers, target_values

#: Space between the boxes of a tree, in inches.
HORIZONTAL_GAP = 0.18
VERTICAL_GAP = 0.5

#: Width and height of each node's box in inches, by node number.
Sizes = Mapping[int, tuple[float, float]]

#: Okabe and Ito's palette (Color Universal Design, 2008), without black and with its yellow last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
INK = "#222222"
FAINT = "#5a5a5a"

#: Entries of the file's metadata that hold the time of writing, by suffix.
_FORMATS: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}


class Picture(Figure):
    """A matplotlib figure that notebooks show as SVG, also where ``pyplot`` was never loaded."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a ``.svg``, ``.png`` or ``.pdf`` file; see :func:`save_figure`."""
        save_figure(self, path)

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Write the picture as matplotlib does; what does not print is escaped."""
        _escape(self)
        super().savefig(*arguments, **options)

    def _repr_svg_(self) -> str:
        drawing = _content(self, ".svg").decode()
        return drawing[drawing.index("<svg") :]  # without the prologue of a file, so that it stands in a page


def new_figure(width: float, height: float, **options: Any) -> Picture:
    """Return an empty figure of a size in inches, with a canvas of its own."""
    figure = Picture(figsize=(width, height), facecolor="white", **options)
    FigureCanvasAgg(figure)
    return figure


def figure_of(axes: Axes) -> Figure:
    """Return the figure that axes belong to, even if they lie in a subfigure."""
    figure = axes.figure
    return figure if isinstance(figure, Figure) else figure.figure


def class_colours(n_classes: int) -> tuple[str, ...]:
    """Return one colour per class: the palette, or an even sample of viridis for more than seven classes."""
    if n_classes <= len(PALETTE):
        return PALETTE[:n_classes]
    colours = matplotlib.colormaps["viridis"]
    return tuple(to_hex(colours(k / (n_classes - 1))) for k in range(n_classes))


def value_colours(values: IntArray | FloatArray, low: float, high: float) -> tuple[str, ...]:
    """Return the colours of (n,) real values between ``low`` (pale) and ``high`` (dark)."""
    return tuple(to_hex(colour) for colour in value_rgb(values, low, high))


def value_rgb(values: IntArray | FloatArray, low: float, high: float) -> FloatArray:
    """Return the (..., 3) colours of values of any shape, as :func:`value_colours` does; clipped to the range."""
    position = np.clip((values - low) / (high - low), 0, 1) if high > low else np.zeros(np.shape(values))
    return np.asarray(matplotlib.colormaps["YlGnBu"](0.2 + 0.65 * position)[..., :3], dtype=np.float64)


def tint(colour: str, strength: float) -> str:
    """Mix a colour with white; strength 1 is the colour itself, 0 white."""
    return str(to_hex(tint_rgb(np.array(to_rgb(colour)), strength)))


def tint_rgb(colours: FloatArray, strength: float) -> FloatArray:
    """Mix (..., 3) colours with white, as :func:`tint`."""
    return 1 - strength * (1 - colours)


def line_height(points: float) -> float:
    """Return the height of a line of text in inches."""
    return 1.3 * points / 72


def text_width(text: str, points: float, weight: str = "normal") -> float:
    """Return the width of one line of text in inches, in matplotlib's current font; it takes a millisecond."""
    width, _, _ = RendererAgg(1, 1, 72).get_text_width_height_descent(
        printable(text), FontProperties(size=points, weight=weight), ismath=False
    )
    return float(width) / 72


def shorten(name: str, length: int = 28) -> str:
    """Shorten a name to one line of at most ``length`` characters by leaving out its middle; all of them print."""
    name = printable(" ".join(name.split()))
    if len(name) <= length:
        return name
    tail = (length - 1) // 3
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def add_legend(axes: Axes, handles: list[Any], names: list[str], **options: Any) -> None:
    """Add a legend whose names are shown as they are: no formulas, no meaning of a leading underscore."""
    legend = axes.legend(handles, [" "] * len(names), **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(shorten(name))


def save_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a figure to a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

    The same figure gives the same bytes: no date, no random identifiers. Text in SVG files stays text.

    Raises
    ------
    ValueError
        If the suffix is another one.
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise ValueError(
            f"cannot write a figure to {path.name!r}: the suffix must be one of {', '.join(_FORMATS)}"
        )
    content = _content(figure, suffix)
    with atomic_write(path) as file:
        file.write(content)


def _content(figure: Figure, suffix: str) -> bytes:
    """Return what the file of a figure holds."""
    content = BytesIO()
    _escape(figure)
    with matplotlib.rc_context({"svg.hashsalt": "mipforest", "svg.fonttype": "none"}):
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=_FORMATS[suffix])
    return content.getvalue()


def _escape(figure: Figure) -> None:
    """Escape what does not print in all texts: names and levels may be from others, and XML has no such characters.

    Labels of ticks are made when they are drawn: who names ticks uses :func:`shorten`.
    """
    for text in figure.findobj(Text):
        if (escaped := printable(text.get_text())) != text.get_text():
            text.set_text(escaped)


@dataclass(frozen=True)
class Layout:
    """Positions in inches, x to the right, y upwards, origin at the bottom left.

    Attributes
    ----------
    centre
        x of the centre of each box, by node number.
    top
        y of the upper side of each box.
    width, height
        Extent of the whole.
    """

    centre: dict[int, float]
    top: dict[int, float]
    width: float
    height: float


def place(root: ReachableNode, sizes: Sizes) -> Layout:
    """Lay out a tree so that no two boxes overlap.

    Every subtree keeps a vertical strip of its own, so edges never cross a box; all nodes of a level hang
    from the same height.
    """
    centre: dict[int, float] = {}
    width = _place_across(root, sizes, 0.0, centre)
    levels: list[list[ReachableNode]] = [[root]]
    while any(node.children for node in levels[-1]):
        levels.append([child for node in levels[-1] for child in node.children])
    heights = [max(sizes[node.number][1] for node in level) for level in levels]
    total = sum(heights) + VERTICAL_GAP * (len(levels) - 1)
    top: dict[int, float] = {}
    y = total
    for level, height in zip(levels, heights, strict=True):
        top |= {node.number: y for node in level}
        y -= height + VERTICAL_GAP
    return Layout(centre, top, width, total)


def _place_across(node: ReachableNode, sizes: Sizes, left: float, centre: dict[int, float]) -> float:
    """Place a subtree from x = ``left`` on and return the width of its strip."""
    own = sizes[node.number][0]
    if not node.children:
        centre[node.number] = left + own / 2
        return own
    width = -HORIZONTAL_GAP
    for child in node.children:
        width += HORIZONTAL_GAP + _place_across(child, sizes, left + width + HORIZONTAL_GAP, centre)
    middle = sum(centre[child.number] for child in node.children) / len(node.children)
    overhang = max(own / 2 - (middle - left), 0.0)
    if overhang:
        _shift(node, overhang, centre)
        middle += overhang
    centre[node.number] = middle
    return max(width + overhang, middle + own / 2 - left)


def _shift(node: ReachableNode, distance: float, centre: dict[int, float]) -> None:
    for child in node.children:
        centre[child.number] += distance
        _shift(child, distance, centre)


PADDING = 0.08
BAR_HEIGHT = 0.09
BAR_GAP = 0.04
MIN_WIDTH = 0.95

#: Colour of a linear leaf of which no target is known.
UNKNOWN = "#a8a8a8"

#: Colour of the text of a leaf without samples: as pale as can be read on white.
PALE = "#767676"

#: Up to this many classes, their counts are written out below the bar.
MAX_COUNTS = 4


#: Side of the scatter plot of a split on two features, in inches, and most samples that it shows.
SCATTER, MAX_POINTS = 1.3, 300


@dataclass(frozen=True, eq=False)
class Scatter:
    """The samples at a split on two features, and its line, in a square from 0 to 1.

    Attributes
    ----------
    points
        (m, 2) samples, the first feature to the right and the second one up.
    colours
        (m,) their colours.
    line
        (2, 2) ends of the line; ``None`` where it does not cross the square.
    """

    points: FloatArray
    colours: tuple[str, ...]
    line: FloatArray | None


class Line(NamedTuple):
    """One line of text: what it says, its size in points, weight and colour."""

    text: str
    points: float = 9.0
    weight: str = "normal"
    colour: str = INK


@dataclass(frozen=True)
class NodeBox:
    """The box of a node, from top to bottom: lines, scatter plot, bar of class counts, counts. Sizes in inches.

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
    scatter
        Scatter plot of a split on two features, if there is one.
    """

    lines: tuple[Line, ...]
    bar: tuple[float, ...]
    footer: tuple[Line, ...]
    face: str
    edge: str
    scatter: Scatter | None = None

    @cached_property
    def width(self) -> float:
        """Width of the box."""
        texts = [text_width(line.text, line.points, line.weight) for line in self.lines + self.footer]
        drawn = [] if self.scatter is None else [SCATTER]
        return max([MIN_WIDTH, *(width + 2 * PADDING for width in (*texts, *drawn))])

    @property
    def height(self) -> float:
        """Height of the box."""
        texts = sum(line_height(line.points) for line in self.lines + self.footer)
        drawn = 0.0 if self.scatter is None else SCATTER + BAR_GAP
        return texts + drawn + (BAR_HEIGHT + 2 * BAR_GAP if self.bar else 0.0) + 2 * PADDING


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


def with_scatters(
    tree: Tree, boxes: Mapping[int, NodeBox], X: Any, y: npt.ArrayLike | None
) -> dict[int, NodeBox]:
    """Give the box of each split on exactly two features a scatter plot of the samples there.

    Parameters
    ----------
    tree
        The tree.
    boxes
        Box of each node that is shown, by number.
    X, y
        (n, p) samples in original units, and (n,) their targets, which colour them, or ``None``.
    """
    two = [t for t in boxes if t < tree.topology.n_branches and np.count_nonzero(tree.w[t]) == 2]
    if not two or isinstance(tree, RandomizedTree):
        return dict(boxes)
    samples, passed = as_samples(X, tree.features, tree.n_features), tree.decision_path(X)
    if y is None or tree.targets:
        colours = np.full(len(samples), FAINT)
    elif tree.is_classifier:
        palette = np.array(class_colours(len(tree.classes)))
        colours = palette[class_numbers(tree.classes, y, len(samples))]
    else:
        values = target_values(y, len(samples))
        colours = np.array(value_colours(values, float(values.min()), float(values.max())))
    found = dict(boxes)
    for t in two:
        here = np.flatnonzero(passed[:, t])
        if len(here) == 0:
            continue
        features = np.flatnonzero(tree.w[t])
        points = samples[here][:, features]
        low, high = points.min(axis=0), points.max(axis=0)
        border = np.where(high > low, 0.05 * (high - low), 1.0)
        low, size = low - border, high - low + 2 * border
        w, b = split_line(tree, t)
        line = chord(rectangle(np.zeros(2), np.ones(2)), w[features] * size, float(w[features] @ low) + b)
        shown = np.unique(np.linspace(0, len(here) - 1, MAX_POINTS).round().astype(np.int64))
        scatter = Scatter((points[shown] - low) / size, tuple(colours[here[shown]]), line)
        axes = [Line(f"{arrow} {shorten(tree.feature_names[j], 24)}", 7.5, colour=FAINT)
                for arrow, j in zip("→↑", features, strict=True)]  # fmt: skip
        found[t] = replace(boxes[t], lines=(*boxes[t].lines, *axes), scatter=scatter)
    return found


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
    if tree.targets:  # no one number stands for several
        return np.full(tree.topology.n_leaves, np.nan)
    if not tree.has_linear_leaves:
        return np.asarray(tree.leaf_value, dtype=np.float64)
    if statistics is None or statistics.mean is None:
        return np.full(tree.topology.n_leaves, np.nan)
    return statistics.mean[tree.topology.n_branches :]


def _prediction_lines(tree: Tree, leaf: int, mean: str, max_terms: int) -> Sequence[Line]:
    """Return the lines of a prediction: targets; treatment and outcomes; class; value, and mean; linear function."""
    if tree.targets:
        said = [f"{name}: {value}".replace("-", "−") for name, value in vector_text(tree, leaf)]
        shown = [Line(shorten(text, 34), 9.0, "bold") for text in said[:MAX_COUNTS]]
        rest = len(said) - len(shown)
        return [*shown, *([Line(f"+ {rest} more", colour=FAINT)] if rest else [])]
    if tree.prescribes:
        treatment = tree.classes[tree.leaf_value[leaf - tree.topology.n_branches]]
        estimates = estimates_text(tree, leaf, max_terms, digits=3)
        return [
            Line(shorten(treatment), 10.0, "bold"),
            *_terms(estimates[:MAX_COUNTS], len(estimates[MAX_COUNTS:])),
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
    plain = split.without_note
    note = [Line("missing goes left", 8.0, colour=FAINT)] if plain != split else []
    if not split.compares:
        return [
            *(Line(shorten(part, 40)) for part in wrap(str(plain), 40, max_lines=3, placeholder=" …")),
            *note,
        ]
    relation = {">=": "≥", "<=": "≤"}[split.relation]
    threshold = plain.threshold.replace("-", "−")
    if n_terms == 1:
        return [Line(f"{shorten(split.terms[0])} {relation} {threshold}"), *note]
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
    if len(counts) > MAX_COUNTS:
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


MARGIN = 0.15
LEGEND_HEIGHT = 0.2


def plot_tree(
    tree: Tree,
    X: Any = None,
    y: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    max_terms: int = 3,
    training: NodeStatistics | bool = False,
    weights: FloatArray | None = None,
) -> Figure:
    """Draw a tree.

    A split shows the condition for going right ("yes") in original units: a univariate one with four
    significant digits, an oblique one with three and some of its terms only, one per line: those of largest weight, or,
    with samples, those that move the score most
    (see :func:`~mipforest.trees.node_statistics.feature_influence`). With samples, a split on exactly two features is
    a small scatter plot too, of at most 300 of the samples there, with its line. A leaf
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
    training
        Training samples by node, or ``True`` where ``X`` are these: splits that send all of them, and of ``X``, to one
        side are left out.
    weights
        (n,) weights of the samples in means and shares, 1 unless given.

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
    statistics = None if X is None else node_statistics(tree, X, y, weights)
    known = [training] if isinstance(training, NodeStatistics) else []
    root = shown_tree(tree, *known, statistics) if training else reachable_tree(tree)
    boxes = {node.number: node_box(tree, node, statistics, max_terms) for node in _walk(root)}
    if X is not None:
        boxes = with_scatters(tree, boxes, X, y)
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
    training: NodeStatistics | bool = False,
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
    save_figure(plot_tree(tree, X, y, max_terms=max_terms, training=training), path)


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
        if box.scatter is not None:
            self._scatter(box.scatter, centre - SCATTER / 2, y - BAR_GAP - SCATTER)
            y -= SCATTER + BAR_GAP
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

    def _scatter(self, scatter: Scatter, left: float, bottom: float) -> None:
        corner = np.array([left, bottom])
        frame = Rectangle(
            (left, bottom),
            SCATTER,
            SCATTER,
            facecolor="white",
            edgecolor="#bbbbbb",
            linewidth=0.6 * self.zoom,
            zorder=3,
        )
        self.axes.add_patch(frame)
        points, size = corner + SCATTER * scatter.points, (2.2 * self.zoom) ** 2
        self.axes.scatter(
            points[:, 0], points[:, 1], s=size, c=list(scatter.colours), linewidths=0, alpha=0.8, zorder=4
        )
        if scatter.line is not None:
            ends = corner + SCATTER * scatter.line
            self.axes.plot(*ends.T, color=INK, linewidth=1.2 * self.zoom, solid_capstyle="butt", zorder=5)

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


#: Inches of one feature's axis, of one panel, and around them.
_ACROSS, _HIGH, _ROOM = 0.55, 2.4, 1.2

#: Colours of samples whose squared error is at most half of the mean, at most the mean, and above, and of unknown ones.
_RELIABLE, _UNKNOWN = ("#1b7837", "#e08214", "#b2182b"), "#4575b4"


def plot_explanation(
    tree: RandomizedTree, X: Any, y: npt.ArrayLike | None = None, *, max_features: int = 20
) -> Figure:
    """Draw what moves the prediction of each sample: one axis per feature, one line per sample.

    Of a regression tree, a line joins the derivatives of the prediction in the scaled features (Blanquero and others
    2022, section 4.5), in the colour of the sample's squared error against the mean one; features that are 0 or 1
    have none to read and are left out. Of a classifier there is one panel per level: how much more each feature sends
    the sample right there than it does the mean of the samples, in the colour of the predicted class.

    Parameters
    ----------
    tree
        The tree.
    X
        (n, p) samples in original units.
    y
        (n,) targets of a regression; all lines have one colour without.
    max_features
        Most axes: those of the features that move most, in the order of the tree.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, unknown to ``pyplot``; :func:`~mipforest.trees.save_figure` writes it.

    Raises
    ------
    ValueError
        If X or y do not fit the tree, or no feature can be shown.
    """
    X = np.asarray(X, dtype=np.float64)
    panels = lines_of(tree, X, X.mean(axis=0))
    shown = features_shown(tree, panels, max_features)
    if not len(shown):
        raise ValueError(f"{tree!r} uses no feature that could be shown: nothing moves its predictions")
    titles = ["derivative of the prediction in scaled features"]
    if tree.is_classifier:
        titles = [f"level {level}: sent right" for level in range(tree.depth)]
    colours = thread_colours(tree, X, y)
    width, height = _ACROSS * len(shown) + _ROOM, _HIGH * len(panels) + _ROOM
    figure = new_figure(width, height)
    for k, (title, panel) in enumerate(zip(titles, panels, strict=True)):
        axes = figure.add_axes(
            (
                _ROOM * 0.7 / width,
                (_ROOM * 0.8 + _HIGH * (len(panels) - 1 - k)) / height,
                1 - _ROOM / width,
                (_HIGH - 0.5) / height,
            )
        )
        last = k == len(panels) - 1
        _parallel(axes, panel[:, shown], [tree.feature_names[j] for j in shown] if last else [], colours)
        axes.set_title(title, fontsize=9, loc="left")
    return figure


def lines_of(tree: RandomizedTree, X: FloatArray, reference: FloatArray) -> list[FloatArray]:
    """Return by panel the (n, p) values that :func:`plot_explanation` joins; classifiers compare with a reference."""
    if not tree.is_classifier:
        return [tree.derivatives(X)]
    found = tree.contributions(X, reference)
    return [found[:, level] for level in range(tree.depth)]


def features_shown(tree: RandomizedTree, panels: list[FloatArray], most: int) -> IntArray:
    """Return the features that move most over all panels, in order; of derivatives none that is 0 or 1."""
    sizes = sum(np.abs(panel).mean(axis=0) for panel in panels)
    if not tree.is_classifier:
        one_hot = [isinstance(level, LevelSet) for level in tree.levels] or False
        sizes = np.where(one_hot, 0.0, sizes)
    ranked = np.argsort(-np.asarray(sizes), kind="stable")[:most]
    return np.sort(ranked[np.asarray(sizes)[ranked] > 0])


def thread_colours(tree: RandomizedTree, X: FloatArray, y: npt.ArrayLike | None) -> list[str]:
    """Return the colour of each sample: that of its predicted class, or of its squared error against the mean one."""
    predicted = np.asarray(tree.predict(X))
    if tree.is_classifier:
        return [class_colours(len(tree.classes))[k] for k in predicted.astype(np.int64).tolist()]
    if y is None:
        return [_UNKNOWN] * len(predicted)
    error: FloatArray = (predicted.astype(np.float64) - np.asarray(y, dtype=np.float64)) ** 2
    share = error / max(float(error.mean()), np.finfo(float).tiny)
    return [_RELIABLE[k] for k in np.digitize(share, (0.5, 1.0), right=True).tolist()]


def _parallel(axes: Axes, values: FloatArray, names: list[str], colours: list[str]) -> None:
    places = np.arange(values.shape[1])
    for line, colour in zip(values, colours, strict=True):
        axes.plot(places, line, color=colour, linewidth=0.7, alpha=0.6, marker=".", markersize=3)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xticks(places)
    axes.set_xticklabels(
        [shorten(name, 18) for name in names] or [""] * len(places),
        rotation=35,
        ha="right",
        fontsize=8,
        parse_math=False,
    )
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.grid(axis="x", color="0.9")
