"""Trees grown from the root down: each node is fitted to the samples that its ancestors send it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.margin_nodes import MarginNodes, margin_tree
from mipforest.heuristics.margin_split import Split
from mipforest.trees import Topology, Tree


def top_down(
    data: Dataset,
    topology: Topology,
    nodes: MarginNodes,
    fit: Callable[[int, FloatArray, FloatArray], Split],
) -> Tree:
    """Grow a tree level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        Shifts splits so that they route.
    fit
        Gives the split of node t for the samples (n_t, p) that reach it, with their labels, -1 or +1.

    Returns
    -------
    Tree
        For scaled features. Where samples fall between the sides of a node above the last level, its bias is
        shifted to the nearest gap of their scores, so that the tree is feasible for the model.
    """
    members = {0: np.arange(data.n)}
    splits: dict[int, Split] = {}
    for t in topology.branches:
        X, sign = data.X[members[t]], data.sign[members[t]]
        splits[t] = fit(t, X, sign)
        if t not in topology.last_branches:
            splits[t], goes_right = nodes.route(splits[t], X)
            members[2 * t + 1], members[2 * t + 2] = members[t][~goes_right], members[t][goes_right]
    return margin_tree(splits, data, topology)
