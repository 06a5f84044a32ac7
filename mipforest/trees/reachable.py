"""What samples can reach: the part of a tree that a reader needs to see.

Of trees of two features also the part of the plane whose points reach each node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees.node_statistics import NodeStatistics
from mipforest.trees.randomized import RandomizedTree
from mipforest.trees.tree import Tree


@dataclass(frozen=True)
class ReachableNode:
    """A split or a leaf that a sample may reach.

    Attributes
    ----------
    number
        Number of the node in the tree.
    passed
        Numbers of the nodes just above it that are left out, top-down: they send every sample on towards it.
    left, right
        Its children; ``None`` at a leaf.
    """

    number: int
    passed: tuple[int, ...] = ()
    left: ReachableNode | None = None
    right: ReachableNode | None = None

    @property
    def children(self) -> tuple[ReachableNode, ...]:
        """Left and right child; empty at a leaf."""
        return tuple(child for child in (self.left, self.right) if child is not None)

    @property
    def depth(self) -> int:
        """Number of splits on the longest path down from it."""
        return 1 + max(child.depth for child in self.children) if self.children else 0

    @property
    def n_leaves(self) -> int:
        """Number of leaves below it, 1 for a leaf."""
        return sum(child.n_leaves for child in self.children) if self.children else 1

    @property
    def is_last_split(self) -> bool:
        """Whether it is a split with no split below."""
        return bool(self.children) and not any(child.children for child in self.children)


def reachable_tree(tree: Tree, node: int = 0) -> ReachableNode:
    """Return the subtree of ``node`` without its trivial nodes and the dead branches below them."""
    topology = tree.topology
    passed: list[int] = []
    while node < topology.n_branches and tree.is_trivial(node):
        passed.append(node)
        node = topology.right(node) if tree.b[node] >= 0 else topology.left(node)
    if node >= topology.n_branches:
        return ReachableNode(node, tuple(passed))
    left, right = (reachable_tree(tree, child) for child in (topology.left(node), topology.right(node)))
    return ReachableNode(node, tuple(passed), left, right)


def shown_tree(tree: Tree, *counts: NodeStatistics | None) -> ReachableNode:
    """Return the part of a tree that a text or picture shows: no trivial nodes, and no leaves without samples.

    A split is left out where one of its sides has no sample by any of the counts: the side that has them stands in its
    place. What predicts, such as generated code, keeps these splits, because other samples may go there.

    Parameters
    ----------
    tree
        The tree.
    counts
        Samples by node: those that the tree was fitted on, and others that are shown. Without any, and of a randomised
        tree, whose samples reach every leaf, this is :func:`reachable_tree`.
    """
    known = [count.samples for count in counts if count is not None]
    if not known or isinstance(tree, RandomizedTree):
        return reachable_tree(tree)
    return _with_samples(reachable_tree(tree), np.sum(known, axis=0))


def _with_samples(node: ReachableNode, samples: IntArray) -> ReachableNode:
    passed = node.passed
    while node.left is not None and node.right is not None:
        there = [child for child in (node.left, node.right) if samples[child.number]]
        if len(there) != 1:
            left, right = _with_samples(node.left, samples), _with_samples(node.right, samples)
            return ReachableNode(node.number, passed, left, right)
        passed = (*passed, node.number, *there[0].passed)
        node = there[0]
    return ReachableNode(node.number, passed)


@dataclass(frozen=True, eq=False)
class Region:
    """The part of the plane whose points reach a node: a convex polygon, (m, 2) corners in order."""

    node: ReachableNode
    polygon: FloatArray


def leaf_regions(tree: Tree, lower: npt.ArrayLike, upper: npt.ArrayLike) -> dict[int, FloatArray]:
    """Return the part of a rectangle whose points reach each leaf.

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
        region.node.number: region.polygon
        for region in regions_below(tree, reachable_tree(tree), whole)
        if not region.node.children
    }


def regions_below(tree: Tree, node: ReachableNode, polygon: FloatArray) -> Iterator[Region]:
    """Iterate over the regions of a subtree that are not empty, parents before their children."""
    if len(polygon) == 0:
        return
    yield Region(node, polygon)
    if node.left is not None and node.right is not None:
        normal, constant = split_line(tree, node.number)
        yield from regions_below(tree, node.left, cut(polygon, -normal, -constant))
        yield from regions_below(tree, node.right, cut(polygon, normal, constant))


def split_line(tree: Tree, t: int) -> tuple[FloatArray, float]:
    """Return the normal (2,) and the constant of the line on which branch node t has score 0, in original units."""
    w, b = tree.original_units()
    return w[t], float(b[t])


def rectangle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the (4, 2) corners of a rectangle, counter-clockwise."""
    return np.array([lower, (upper[0], lower[1]), upper, (lower[0], upper[1])], dtype=np.float64)


def cut(polygon: FloatArray, normal: FloatArray, constant: float) -> FloatArray:
    """Keep the part of a convex polygon where ``normal . x + constant >= 0``.

    Parameters
    ----------
    polygon
        (m, 2) corners in order; m may be 0.
    normal
        (2,) direction.
    constant
        Number.

    Returns
    -------
    FloatArray
        (m', 2) corners in the same order; m' = 0 where nothing is left.

    Notes
    -----
    One step of Sutherland and Hodgman's reentrant polygon clipping (Communications of the ACM, 1974).
    """
    side = polygon @ normal + constant
    corners: list[FloatArray] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if side[i] >= 0:
            corners.append(polygon[i])
        if (side[i] < 0) != (side[j] < 0) and side[i] != 0 and side[j] != 0:
            corners.append(_crossing(polygon[i], polygon[j], side[i], side[j]))
    return np.array(corners) if len(corners) > 2 else np.zeros((0, 2))


def chord(polygon: FloatArray, normal: FloatArray, constant: float) -> FloatArray | None:
    """Return the (2, 2) ends of the line ``normal . x + constant = 0`` within a convex polygon, or ``None``."""
    side = polygon @ normal + constant
    ends: list[FloatArray] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if side[i] == 0:
            ends.append(polygon[i])
        elif side[i] * side[j] < 0:
            ends.append(_crossing(polygon[i], polygon[j], side[i], side[j]))
    return np.array(ends[:2]) if len(ends) >= 2 else None


def _crossing(start: FloatArray, end: FloatArray, side_start: float, side_end: float) -> FloatArray:
    share = side_start / (side_start - side_end)
    return start + share * (end - start)
