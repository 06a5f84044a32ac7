"""The partition of the plane by a tree of two features: coloured regions, samples, splits and margins."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.plot import (
    INK,
    add_legend,
    class_colours,
    figure_of,
    new_figure,
    tint,
    tint_rgb,
    value_colours,
    value_rgb,
)
from mipforest.trees.reachable import Region, chord, reachable_tree, rectangle, regions_below, split_line
from mipforest.trees.text import format_number
from mipforest.trees.tree import Tree, as_samples, class_numbers, target_values

#: Least distance between the names of two splits, as a share of the plot's side.
CLEARANCE = 0.06

#: Name and handle.
LegendEntry = tuple[str, Any]

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: How much colour, the rest being white, the regions of classes and of real values have.
CLASS_STRENGTH = 0.22

VALUE_STRENGTH = 0.5

#: Side of the image of a linear leaf's values.
PIXELS = 64


def plot_partition(
    tree: Tree, X: Any, y: npt.ArrayLike, ax: Axes | None = None, *, margins: bool | None = None
) -> Figure:
    """Draw how a tree of two features cuts the plane, in original units.

    Regions have the colour of their prediction, points that of their class or value; the prediction of a
    linear leaf is a field of colours. Their range, which the legend shows, is that of the samples' targets
    and predictions (and of constant leaves); where a linear leaf leaves it, at the border of the plot, the
    colour stays that of its end. Each split is a line within the region it splits, thinner further down,
    named by its node. For splits without a split below, dashed lines mark the margin, score = -1 and +1:
    MARGOT's supporting hyperplanes (D'Onofrio, Grani, Monaci and Palagi, "Margin optimal classification
    trees", section 6.1).

    Parameters
    ----------
    tree
        A tree of exactly two features.
    X
        (n, 2) samples in original units, n >= 1; the plot covers their range and 5% around it.
    y
        (n,) their targets: class numbers, class names, or real values.
    ax
        Axes to draw into; ``None`` makes a figure.
    margins
        Whether to draw the margins; only models that maximise them give scores such a meaning. ``None`` draws
        those of classifiers.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, unknown to ``pyplot``; :func:`mipforest.trees.save_figure` writes it.

    Raises
    ------
    ValueError
        If the tree does not have two features, there is no sample, or X or y do not fit.
    """
    if tree.n_features != 2:
        raise ValueError(
            f"a partition of the plane needs a tree of 2 features, this one has {tree.n_features}; "
            f"plot_tree draws trees of any number"
        )
    if tree.targets:
        raise ValueError(
            f"a partition of the plane shows one target, and this tree has {len(tree.targets)} "
            f"({', '.join(tree.targets)}); plot_tree draws it"
        )
    samples = as_samples(X, tree.features, 2)
    if len(samples) == 0:
        raise ValueError("X has no sample; the range of the plot is taken from the samples")
    targets = (
        class_numbers(tree.classes, y, len(samples)) if tree.is_classifier else target_values(y, len(samples))
    )
    axes = new_figure(7.2, 5.4, layout="constrained").add_subplot() if ax is None else ax
    lower, upper = _range(samples)
    axes.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]))
    axes.set_xlabel(tree.feature_names[0], parse_math=False)
    axes.set_ylabel(tree.feature_names[1], parse_math=False)
    regions = list(regions_below(tree, reachable_tree(tree), rectangle(lower, upper)))
    legend = paint(axes, tree, regions, samples, targets)
    legend += _draw_splits(axes, tree, regions)
    if tree.is_classifier if margins is None else margins:
        legend += _draw_margins(axes, tree, regions)
    _name_splits(axes, tree, regions, upper - lower)
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0, "frameon": False}
    add_legend(axes, [handle for _, handle in legend], [name for name, _ in legend], **beside)
    return figure_of(axes)


def _range(samples: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the plot: the range of the samples and 5% around it."""
    lower, upper = samples.min(axis=0), samples.max(axis=0)
    border = np.where(upper > lower, 0.05 * (upper - lower), 1.0)
    return lower - border, upper + border


def _draw_splits(axes: Axes, tree: Tree, regions: list[Region]) -> list[LegendEntry]:
    """Draw the splits within their regions, thinner further down, and return their legend entry."""
    for region in regions:
        width = 2.2 * 0.75 ** tree.topology.level(region.node.number)
        ends = _chord(tree, region)
        if ends is not None:
            axes.plot(*ends.T, color=INK, linewidth=width, solid_capstyle="butt", zorder=4)
    return [("split", Line2D([], [], color=INK, linewidth=1.6))] if tree.n_splits else []


def _draw_margins(axes: Axes, tree: Tree, regions: list[Region]) -> list[LegendEntry]:
    """Draw the lines of score -1 and +1 of the last splits in their regions; return their legend entry."""
    style: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (4, 3))}
    last = [region for region in regions if region.node.is_last_split]
    margins = [_chord(tree, region, score) for region in last for score in (-1.0, 1.0)]
    drawn = [ends for ends in margins if ends is not None]
    for ends in drawn:
        axes.plot(*ends.T, zorder=4, **style)
    return [("margin, score ±1", Line2D([], [], **style))] if drawn else []


def _chord(tree: Tree, region: Region, score: float = 0.0) -> FloatArray | None:
    """Return the (2, 2) end points, within the region, of the line on which its split has a score."""
    if not region.node.children:
        return None
    normal, constant = split_line(tree, region.node.number)
    return chord(region.polygon, normal, constant - score)


def _name_splits(axes: Axes, tree: Tree, regions: list[Region], extent: FloatArray) -> None:
    """Write each split's node on its line: in its middle, or where it is clear of the names before."""
    box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    taken: list[FloatArray] = []
    for region in regions:
        ends = _chord(tree, region)
        if ends is None:
            continue
        places = [ends[0] + share * (ends[1] - ends[0]) for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)]
        distances = [
            min((_distance(place - other, extent) for other in taken), default=1.0) for place in places
        ]
        clear = next(
            (i for i, distance in enumerate(distances) if distance >= CLEARANCE), int(np.argmax(distances))
        )
        taken.append(places[clear])
        x, y = places[clear]
        name = f"n{region.node.number}"
        axes.text(x, y, name, fontsize=7.5, color=INK, ha="center", va="center", bbox=box, zorder=5)


def _distance(difference: FloatArray, extent: FloatArray) -> float:
    return float(np.linalg.norm(difference / extent))


def paint(
    axes: Axes, tree: Tree, regions: list[Region], samples: FloatArray, targets: IntArray | FloatArray
) -> list[LegendEntry]:
    """Draw regions and samples, and return the legend entries of their colours.

    Parameters
    ----------
    axes
        Axes to draw into, in original units.
    tree, regions
        The tree and its regions.
    samples, targets
        (n, 2) samples and (n,) class numbers or values.
    """
    if tree.is_classifier:
        _draw_class_regions(axes, tree, regions)
        return _draw_class_points(axes, tree, samples, targets)
    span = _value_range(tree, samples, targets)
    _draw_value_regions(axes, tree, regions, span)
    return _draw_value_points(axes, samples, targets, span)


def _draw_class_regions(axes: Axes, tree: Tree, regions: list[Region]) -> None:
    colours = class_colours(len(tree.classes))
    for region in regions:
        if not region.node.children:
            k = tree.leaf_value[region.node.number - tree.topology.n_branches]
            _fill(axes, region, tint(colours[k], CLASS_STRENGTH))


def _value_range(tree: Tree, samples: FloatArray, targets: IntArray | FloatArray) -> tuple[float, float]:
    """Return the values that have the palest and the darkest colour."""
    shown = tree.predict(samples) if tree.has_linear_leaves else tree.leaf_value
    every = np.append(shown, targets)
    return float(every.min()), float(every.max())


def _draw_value_regions(axes: Axes, tree: Tree, regions: list[Region], span: tuple[float, float]) -> None:
    """Shade each region by what its leaf predicts there."""
    coefficients, constants = tree.leaves_in_original_units()
    for region in regions:
        if region.node.children:
            continue
        leaf = region.node.number - tree.topology.n_branches
        centre = region.polygon.mean(axis=0)
        value = coefficients[leaf] @ centre + constants[leaf]
        patch = _fill(axes, region, tint(value_colours(np.array([value]), *span)[0], VALUE_STRENGTH))
        if coefficients[leaf].any():
            shades = _linear_shades(region.polygon, coefficients[leaf], constants[leaf], span)
            image = axes.imshow(**shades, aspect=axes.get_aspect(), zorder=1)
            image.set_clip_path(patch)


def _linear_shades(
    polygon: FloatArray, coefficients: FloatArray, constant: float, span: tuple[float, float]
) -> dict[str, Any]:
    """Return the image of a linear function over the bounding box of a region, as arguments of ``imshow``."""
    lower, upper = polygon.min(axis=0), polygon.max(axis=0)
    x, y = (
        low + (np.arange(PIXELS) + 0.5) / PIXELS * (high - low)
        for low, high in zip(lower, upper, strict=True)
    )
    values = coefficients[0] * x + (coefficients[1] * y + constant)[:, None]
    return {
        "X": tint_rgb(value_rgb(values, *span), VALUE_STRENGTH),
        "origin": "lower",
        "extent": (lower[0], upper[0], lower[1], upper[1]),
        "interpolation": "bilinear",
    }


def _fill(axes: Axes, region: Region, colour: str) -> Polygon:
    patch = Polygon(region.polygon, closed=True, facecolor=colour, edgecolor=colour, linewidth=0.5, zorder=1)
    axes.add_patch(patch)
    return patch


def _draw_class_points(
    axes: Axes, tree: Tree, samples: FloatArray, targets: IntArray | FloatArray
) -> list[LegendEntry]:
    """Draw the samples, and return the legend entries of their classes."""
    entries: list[LegendEntry] = []
    for k, (name, colour) in enumerate(zip(tree.classes, class_colours(len(tree.classes)), strict=True)):
        points = samples[targets == k]
        marker = MARKERS[k % len(MARKERS)]
        style = _point_style(len(samples), "white")
        entries.append((name, axes.scatter(points[:, 0], points[:, 1], color=colour, marker=marker, **style)))
    return entries


def _draw_value_points(
    axes: Axes, samples: FloatArray, targets: IntArray | FloatArray, span: tuple[float, float]
) -> list[LegendEntry]:
    """Draw the samples, and return the legend entries of values over the range."""
    axes.scatter(
        samples[:, 0], samples[:, 1], c=value_colours(targets, *span), **_point_style(len(samples), INK)
    )
    low, high = span
    steps = np.linspace(low, high, 5 if high > low else 1)
    colours = value_colours(steps, low, high)
    return [(format_number(x, 3), Patch(facecolor=c)) for x, c in zip(steps, colours, strict=True)]


def _point_style(n_samples: int, edge: str) -> dict[str, Any]:
    size = float(np.clip(6000 / n_samples, 10, 28))
    return {"s": size, "linewidths": 0.4, "edgecolors": edge, "zorder": 3}
