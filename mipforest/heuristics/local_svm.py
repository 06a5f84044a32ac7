"""The local SVM heuristic: node by node from the root down (D'Onofrio et al. 2024, algorithm 1)."""

from __future__ import annotations

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.margin_nodes import MarginNodes, bias_if_empty
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.sparse_split import exact_sparse_split
from mipforest.heuristics.top_down import top_down
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
        For scaled features, feasible for the model.
    """
    share = time_limit / len(topology.branches)
    return top_down(data, topology, nodes, lambda t, X, sign: _node_svm(t, X, sign, nodes, share))


def _node_svm(t: int, X: FloatArray, sign: FloatArray, nodes: MarginNodes, time_limit: float) -> Split:
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
