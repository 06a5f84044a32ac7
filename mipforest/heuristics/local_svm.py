"""The local SVM heuristic: node by node from the root down (D'Onofrio et al. 2024, algorithm 1)."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray
from mipforest.data import Dataset
from mipforest.heuristics.margin_nodes import MarginNodes, bias_if_empty, margin_tree
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.sparse_split import exact_sparse_split
from mipforest.trees import Topology, Tree

#: Seconds for all nodes together where a feature budget makes each a mixed-integer model, as in the paper.
TIME_LIMIT = 30.0


def local_svm(
    data: Dataset, topology: Topology, nodes: MarginNodes, *, time_limit: float = TIME_LIMIT
) -> Tree:
    """Fit each node to the samples that its ancestors send it, level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        What each node's split costs.
    time_limit
        Seconds for all nodes together; matters with a feature budget only.

    Returns
    -------
    Tree
        For scaled features. Where samples fall between the sides of a node above the last level, its bias is
        shifted to the nearest gap of their scores, so that the tree is feasible for the model.
    """
    X, sign = data.X, data.sign
    here: dict[int, BoolArray] = {0: np.ones(len(X), dtype=bool)}
    splits: dict[int, Split] = {}
    for t in topology.branches:
        reached = here[t]
        split = _node_svm(t, data, reached, nodes, time_limit / len(topology.branches))
        if t in topology.last_branches:
            splits[t] = split
            continue
        splits[t], goes_right = nodes.route(split, X[reached])
        members = np.flatnonzero(reached)
        here[2 * t + 1] = _mask(len(sign), members[~goes_right])
        here[2 * t + 2] = _mask(len(sign), members[goes_right])
    return margin_tree(splits, data, topology)


def _node_svm(t: int, data: Dataset, reached: BoolArray, nodes: MarginNodes, time_limit: float) -> Split:
    X, sign = data.X[reached], data.sign[reached]
    if nodes.budget is not None and nodes.budget[t] < X.shape[1]:
        return exact_sparse_split(
            X,
            sign,
            float(nodes.C[t]),
            int(nodes.budget[t]),
            nodes.alpha,
            time_limit=time_limit,
            bias_if_empty=bias_if_empty(t),
        )
    split = nodes.split(t, X, sign)
    assert split is not None  # a plain support vector machine always has a solution
    return split


def _mask(n: int, members: np.ndarray) -> BoolArray:
    mask = np.zeros(n, dtype=bool)
    mask[members] = True
    return mask
