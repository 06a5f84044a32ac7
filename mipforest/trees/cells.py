"""The parts of the plane whose points reach each node of a tree of two features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.trees.live import LiveNode, live_view
from mipforest.trees.polygon import cut, rectangle
from mipforest.trees.tree import Tree


@dataclass(frozen=True, eq=False)
class Cell:
    """The part of the plane whose points reach a node: a convex polygon, (m, 2) corners in order."""

    node: LiveNode
    polygon: FloatArray


def leaf_regions(tree: Tree, lower: npt.ArrayLike, upper: npt.ArrayLike) -> dict[int, FloatArray]:
    """Give the part of a rectangle whose points reach each leaf.

    Parameters
    ----------
    tree
        A tree of two features.
    lower, upper
        (2,) corners of the rectangle in original units.

    Returns
    -------
    dict
        Corners (m, 2) of the leaf's convex polygon, counter-clockwise, by leaf number; leaves that no point
        of positive area reaches are absent.
    """
    whole = rectangle(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
    return {
        cell.node.number: cell.polygon
        for cell in cells_below(tree, live_view(tree), whole)
        if not cell.node.children
    }


def cells_below(tree: Tree, node: LiveNode, polygon: FloatArray) -> Iterator[Cell]:
    """Give the cells of a subtree that are not empty, parents before their children."""
    if len(polygon) == 0:
        return
    yield Cell(node, polygon)
    if node.left is not None and node.right is not None:
        normal, constant = split_line(tree, node.number)
        yield from cells_below(tree, node.left, cut(polygon, -normal, -constant))
        yield from cells_below(tree, node.right, cut(polygon, normal, constant))


def split_line(tree: Tree, t: int) -> tuple[FloatArray, float]:
    """Give normal (2,) and constant of the line on which branch node t has score 0, in original units."""
    w, b = tree.original_units()
    return w[t], float(b[t])
