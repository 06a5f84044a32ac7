"""Optimal univariate trees by dynamic programming on continuous features: ConTree, through the package pycontree."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from mipforest.arrays import IntArray
from mipforest.data import Dataset
from mipforest.errors import SolverUnavailable
from mipforest.trees import Topology, Tree

#: Seconds after which ConTree returns the best tree so far.
TIME_LIMIT = 60.0


def contree(
    data: Dataset, topology: Topology, *, split_cost: float = 0.0, time_limit: float = TIME_LIMIT
) -> Tree:
    """Find the tree with the fewest errors (Brita, van der Linden and Demirovic 2025).

    Parameters
    ----------
    data
        Scaled features; classes.
    topology
        Index sets of the tree.
    split_cost
        Cost of a split as a share of the samples, 0 to 1.
    time_limit
        Seconds.

    Returns
    -------
    Tree
        For scaled features; nodes without a split send every sample to the right.

    Raises
    ------
    SolverUnavailable
        If pycontree is not installed.
    """
    if find_spec("pycontree") is None:
        raise SolverUnavailable(
            "start 'dp' needs the Python package pycontree; run: pip install 'mipforest[dp]'"
        )
    from pycontree import ConTree

    learner = ConTree(max_depth=topology.depth, complexity_cost=split_cost, time_limit=time_limit)
    source = learner.fit(data.X, data.y).get_tree()
    w = np.zeros((topology.n_branches, data.p))
    b = np.zeros(topology.n_branches)
    leaf_value = np.zeros(topology.n_leaves)

    def copy(node: Any, t: int, members: IntArray) -> None:
        """Copy ConTree's node, which the given samples reach, to node t, and all that lies below."""
        if t >= topology.n_branches:
            leaf_value[t - topology.n_branches] = node.get_label()
        elif node.is_leaf_node():
            copy(node, topology.left(t), members[:0])
            copy(node, topology.right(t), members)
        else:
            j, threshold = node.get_split_feature(), node.get_split_threshold()
            goes_left = data.X[members, j] <= threshold
            w[t, j], b[t] = 1.0, -np.nextafter(threshold, np.inf)
            copy(node.get_left(), topology.left(t), members[goes_left])
            copy(node.get_right(), topology.right(t), members[~goes_left])

    copy(source, 0, np.arange(data.n))
    return Tree(topology.depth, w, b, leaf_value, tuple(data.classes), tuple(data.features.labels))
