"""The greedy logistic tree: a logistic regression per node, from the root down (Aldinucci 2023, chapter 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.logistic_split import logistic_split
from mipforest.heuristics.margin_nodes import MarginNodes, bias_if_empty
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.sparse_split import search_features
from mipforest.heuristics.top_down import top_down
from mipforest.trees import Topology, Tree


def greedy_logistic(data: Dataset, topology: Topology, nodes: MarginNodes) -> Tree:
    """Fit each node's logistic regression to the samples that its ancestors send it, level by level.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        Penalties, norm and feature budgets of the nodes, and the gap between their sides.

    Returns
    -------
    Tree
        For scaled features; it routes by the sign of the log-odds. A node that one class alone reaches has no
        weights, and sends its samples that way.
    """
    return top_down(data, topology, nodes, lambda t, X, sign: _node_regression(t, X, sign, nodes))


def _node_regression(t: int, X: FloatArray, sign: FloatArray, nodes: MarginNodes) -> Split:
    p = X.shape[1]
    if len(sign) == 0 or (sign == sign[0]).all():
        side = sign[0] if len(sign) else bias_if_empty(t)
        return Split(np.zeros(p), nodes.loss.flat_from * float(side), 0.0)

    def fit(features: IntArray) -> Split:
        split = logistic_split(X[:, features], sign, float(nodes.C[t]), nodes.norm)
        w = np.zeros(p)
        w[features] = split.w
        return replace(split, w=w)

    if nodes.budget is None or nodes.budget[t] >= p:
        return fit(np.arange(p))
    found = search_features(fit, p, int(nodes.budget[t]), nodes.alpha)
    assert found is not None  # every set of features has a regression
    return found
