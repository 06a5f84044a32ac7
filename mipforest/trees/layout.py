"""Where the boxes of a plotted tree go: children beside each other, parents centred above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mipforest.trees.reachable import ReachableNode

HORIZONTAL_GAP = 0.18
VERTICAL_GAP = 0.5

#: Width and height of each node's box in inches, by node number.
Sizes = Mapping[int, tuple[float, float]]


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
