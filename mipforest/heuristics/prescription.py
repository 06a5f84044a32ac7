"""Greedy growth of prescriptive trees, such as the personalisation trees of Kallus (2017)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.trees import Topology
from mipforest.trees.sides import midpoint

#: What leaves are charged, (k,), by sums (k, m) over the samples of each treatment: of 1, and with weights of 1, the
#: outcome, and its square.
LeafCosts = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]

#: Least improvement of a split, as a share of the size of its node's cost: sums of squares are rounded.
ROUNDING = 1e-9


def greedy_prescription(
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    members: BoolArray,
    topology: Topology,
    costs: LeafCosts,
    *,
    split_cost: float = 0.0,
    N_min: int = 1,
    gap: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Grow a tree of univariate splits, at every node by the one that lowers the cost of its two leaves most.

    Parameters
    ----------
    X, y, weight, members
        (n, p) features, (n,) outcomes and weights, and (n, m) which treatment each sample had.
    topology
        Index sets of the tree.
    costs
        What leaves are charged.
    split_cost
        What a split has to save at least.
    N_min
        Least number of samples in a leaf.
    gap
        Least distance between the sides of a split.

    Returns
    -------
    tuple
        Weights (|B|, p) and intercepts (|B|,) of a tree: all 0 where a node does not split.
    """
    w, b = np.zeros((topology.n_branches, X.shape[1])), np.zeros(topology.n_branches)
    here = {0: np.arange(len(X))}
    for t in topology.branches:
        rows = here.pop(t, None)
        if rows is None or len(rows) < 2 * N_min:
            continue
        one, own, outcome = np.ones(len(rows)), weight[rows], y[rows]
        sums = [members[rows] * term[:, None] for term in (one, own, own * outcome, own * outcome**2)]
        whole = [part.sum(axis=0) for part in sums]
        alone = float(costs(*(part[None] for part in whole))[0])
        best = alone - split_cost - ROUNDING * abs(alone) if np.isfinite(alone) else np.inf
        for j in range(X.shape[1]):
            order = np.argsort(X[rows, j], kind="stable")
            x = X[rows[order], j]
            cuts = np.flatnonzero(x[1:] - x[:-1] > gap)
            cuts = cuts[(cuts + 1 >= N_min) & (len(rows) - cuts - 1 >= N_min)]
            if not len(cuts):
                continue
            left = [part[order].cumsum(axis=0)[cuts] for part in sums]
            right = [total - part for total, part in zip(whole, left, strict=True)]
            value = costs(*left) + costs(*right)
            at = int(value.argmin())
            if value[at] < best:
                best = float(value[at])
                w[t], b[t] = np.eye(X.shape[1])[j], -midpoint(x[cuts[at]], x[cuts[at] + 1])
        if w[t].any():
            goes_right = X[rows] @ w[t] + b[t] >= 0
            here[topology.left(t)], here[topology.right(t)] = rows[~goes_right], rows[goes_right]
    return w, b
