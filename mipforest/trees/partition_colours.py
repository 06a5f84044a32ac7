"""Colours of the plane under a tree of two features: its regions by prediction, samples by target."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Polygon

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.cells import Cell
from mipforest.trees.figure import INK, class_colours, tint, tint_rgb, value_colours, value_rgb
from mipforest.trees.split_text import format_number
from mipforest.trees.tree import Tree

#: Name and handle.
LegendEntry = tuple[str, Any]

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: How much colour, the rest being white, the regions of classes and of real values have.
CLASS_STRENGTH = 0.22
VALUE_STRENGTH = 0.5

#: Side of the image of a linear leaf's values.
PIXELS = 64


def paint(
    axes: Axes, tree: Tree, cells: list[Cell], samples: FloatArray, targets: IntArray | FloatArray
) -> list[LegendEntry]:
    """Draw regions and samples; give the legend entries of their colours.

    Parameters
    ----------
    axes
        Axes to draw into, in original units.
    tree, cells
        The tree and its cells.
    samples, targets
        (n, 2) samples and (n,) class numbers or values.
    """
    if tree.is_classifier:
        _draw_class_regions(axes, tree, cells)
        return _draw_class_points(axes, tree, samples, targets)
    span = _value_range(tree, samples, targets)
    _draw_value_regions(axes, tree, cells, span)
    return _draw_value_points(axes, samples, targets, span)


def _draw_class_regions(axes: Axes, tree: Tree, cells: list[Cell]) -> None:
    colours = class_colours(len(tree.classes))
    for cell in cells:
        if not cell.node.children:
            k = tree.leaf_value[cell.node.number - tree.topology.n_branches]
            _fill(axes, cell, tint(colours[k], CLASS_STRENGTH))


def _value_range(tree: Tree, samples: FloatArray, targets: IntArray | FloatArray) -> tuple[float, float]:
    """Give the values of the palest and the darkest colour."""
    shown = tree.predict(samples) if tree.has_linear_leaves else tree.leaf_value
    every = np.append(shown, targets)
    return float(every.min()), float(every.max())


def _draw_value_regions(axes: Axes, tree: Tree, cells: list[Cell], span: tuple[float, float]) -> None:
    """Shade each region by what its leaf predicts there."""
    coefficients, constants = tree.leaves_in_original_units()
    for cell in cells:
        if cell.node.children:
            continue
        leaf = cell.node.number - tree.topology.n_branches
        centre = cell.polygon.mean(axis=0)
        value = coefficients[leaf] @ centre + constants[leaf]
        region = _fill(axes, cell, tint(value_colours(np.array([value]), *span)[0], VALUE_STRENGTH))
        if coefficients[leaf].any():
            shades = _linear_shades(cell.polygon, coefficients[leaf], constants[leaf], span)
            shades_of_region = axes.imshow(**shades, aspect=axes.get_aspect(), zorder=1)
            shades_of_region.set_clip_path(region)


def _linear_shades(
    polygon: FloatArray, coefficients: FloatArray, constant: float, span: tuple[float, float]
) -> dict[str, Any]:
    """Give the image of a linear function over the bounding box of a region, as arguments of ``imshow``."""
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


def _fill(axes: Axes, cell: Cell, colour: str) -> Polygon:
    region = Polygon(cell.polygon, closed=True, facecolor=colour, edgecolor=colour, linewidth=0.5, zorder=1)
    axes.add_patch(region)
    return region


def _draw_class_points(
    axes: Axes, tree: Tree, samples: FloatArray, targets: IntArray | FloatArray
) -> list[LegendEntry]:
    """Draw the samples; give the legend entries of their classes."""
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
    """Draw the samples; give the legend entries of values over the range."""
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
