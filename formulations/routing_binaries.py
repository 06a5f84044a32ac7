"""Binaries that say to which side of each node a sample goes, as in the improved model of MIRET (section 7.3)."""

from __future__ import annotations

import numpy as np

from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Topology


def declare_sides(
    m: Model, left: LinearExpr, right: LinearExpr, members: list[str], tree: Topology
) -> tuple[VarArray, VarArray]:
    """Give the sides of samples variables of their own, on which a solver can branch.

    Parameters
    ----------
    m
        The model.
    left, right
        (G, |B|) sums of leaf assignments: 1 where a sample (or group) goes left, right at a node.
    members
        Names of the G samples or groups.
    tree
        Topology.

    Returns
    -------
    goes_left, goes_right
        (G, |B|) binaries, with rows that tie them to the leaves, at the root, and to the parent's side.
    """
    routed = (members, tree.branches)
    goes_left, goes_right = m.binary("goes_left", routed), m.binary("goes_right", routed)
    m.add("leaves_left", goes_left == left, over=routed)
    m.add("leaves_right", goes_right == right, over=routed)
    m.add("root", goes_left[:, 0] + goes_right[:, 0] == 1, over=members)
    passed = goes_left + goes_right
    for name, side, first in (("left", goes_left, 1), ("right", goes_right, 2)):
        child = np.arange(first, tree.n_branches, 2)
        if len(child):
            m.add(f"parent_{name}", side[:, (child - 1) // 2] == passed[:, child])
    return goes_left, goes_right
