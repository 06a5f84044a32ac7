r"""Hyperplane splits and the assignment of samples to the last branching level: what trees of linear classifiers share.

.. math::

    & w_t^\top x_i + b_t \ge -M_H \Bigl(1 - \sum_{s \in S''_R(t)} z_{is}\Bigr) && i,\; t \in B' \\
    & w_t^\top x_i + b_t + \varepsilon \le M_H \Bigl(1 - \sum_{s \in S''_L(t)} z_{is}\Bigr) && i,\; t \in B' \\
    & \sum_{s \in B''} z_{is} = 1, \quad z_{is} \in \{0, 1\}

with :math:`B''` the nodes of the last branching level, :math:`B'` those above, and :math:`S''_L(t), S''_R(t)` the nodes
of :math:`B''` below the left and the right child of t.
"""

from __future__ import annotations

import numpy as np

from formulations.margin_limits import MarginLimits
from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import BigM
from mipforest.heuristics.margin_split import keep_sides
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import Nodes

#: A weight counts as zero below this share of its node's largest, a node's weights all do below it absolutely:
#: the residue that an interior-point solver leaves.
NEGLIGIBLE = 1e-7


def declare_splits(
    m: Model, data: Dataset, tree: Topology, limits: MarginLimits
) -> tuple[VarArray, VarArray]:
    """Make the blocks ``w`` (|B|, p) and ``b`` (|B|,) with their bounds."""
    w = m.continuous("w", (tree.branches, data.features), lower=-limits.weight, upper=limits.weight)
    b = m.continuous("b", tree.branches, lower=-limits.bias, upper=limits.bias)
    return w, b


def declare_routing(
    m: Model,
    score: LinearExpr,
    z: VarArray,
    data: Dataset,
    tree: Topology,
    limits: MarginLimits,
    epsilon: float,
) -> None:
    """Write the rows that make samples follow the sides of their scores (n, |B|) above the last level."""
    if not tree.upper_branches:
        return
    upper = tree.upper_branches
    above, routed = score[:, upper], (data.samples, upper)
    m.add("right", above >= -at_nodes(limits.M_right, upper) * (1 - z @ tree.reach_right), over=routed)
    m.add("left", above + epsilon <= at_nodes(limits.M_left, upper) * (1 - z @ tree.reach_left), over=routed)


def encode_splits(fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
    """Values of ``w``, ``b`` and ``z`` for a tree for scaled features."""
    last = np.asarray(fitted.topology.last_branches)
    return {"w": fitted.w.copy(), "b": fitted.b.copy(), "z": passed(fitted, data)[:, last].astype(float)}


def clear_residue(w: FloatArray) -> FloatArray:
    """Give weights (|B|, p) with what is negligible in its node set to 0."""
    largest = np.abs(w).max(axis=1, keepdims=True)
    return np.where(np.abs(w) <= NEGLIGIBLE * np.maximum(largest, 1.0), 0.0, w)


def biases_that_keep_sides(w: FloatArray, values: Values, data: Dataset, tree: Topology) -> FloatArray:
    """(|B|,) biases of a solution, moved by its tolerance so that ``z`` and the tree agree on every side."""
    b = np.array(values["b"])
    goes_right = values["z"] @ tree.reach_right > 0.5
    passes = values["z"] @ tree.reach > 0.5
    for t in tree.upper_branches:
        samples = passes[:, t]
        b[t] = keep_sides(data.X[samples] @ w[t] + b[t], goes_right[samples, t], float(b[t]))
    return b


def passed(fitted: Tree, data: Dataset) -> BoolArray:
    """(n, |B|) whether a sample passes a branch node of a tree for scaled features."""
    return fitted.decision_path(data.X)[:, : fitted.topology.n_branches]


def at_nodes(M: BigM, nodes: Nodes) -> BigM:
    """Give the big-Ms of some nodes, where they differ by node."""
    return M if np.ndim(M) == 0 or np.shape(M)[1] == 1 else np.asarray(M)[:, np.asarray(nodes)]
