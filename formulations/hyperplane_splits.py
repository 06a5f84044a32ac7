r"""Hyperplane splits and the assignment of samples to leaves, as in Dunn's thesis: shared by the models that use them.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 3.1. Features in [0, 1].

.. math::

    & \sum_j \hat a_{jt} \le d_t, \quad \hat a_{jt} \ge \pm a_{jt}, \quad -d_t \le b_t \le d_t && t \in B \\
    & -s_{jt} \le a_{jt} \le s_{jt}, \quad s_{jt} \le d_t, \quad \sum_j s_{jt} \ge d_t && t \in B,\; j \\
    & s_{jt}, d_t \in \{0, 1\} && t \in B,\; j \\
    & a_m^\top x_i + \mu \le b_m + (2 + \mu)(1 - z_{it}) && i,\; t \in L,\; m \in A_L(t) \quad (3.1) \\
    & a_m^\top x_i \ge b_m - 2 (1 - z_{it}) && i,\; t \in L,\; m \in A_R(t) \quad (3.2)

with (2.5) to (2.8) as for univariate splits. The split of a node sends ``a.x < b`` left; a node without a split sends
everything right. As :math:`\|a_t\|_1 \le 1`, :math:`\mu` is a margin: only hyperplanes that keep the two sides at
least :math:`\mu` apart, in that scaling, are in the model.
"""

from __future__ import annotations

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.univariate_splits import LeafAssignment, declare_leaf_rules, middle, sides
from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.model import Model, Values
from mipforest.trees import Topology, Tree

#: A coefficient below this is a solver's residue: ``|a_t|`` sums to about 1.
NEGLIGIBLE = 1e-9


def declare_hyperplane_splits(
    m: Model, data: Dataset, tree: Topology, n_min: int, mu: float
) -> LeafAssignment:
    """Write the rows above; ``m["s"]`` says which features each split uses."""
    nodes = (tree.branches, data.features)
    a = m.continuous("a", nodes, lower=-1, upper=1)
    size = m.nonnegative("a_abs", nodes)
    s = m.binary("s", nodes)
    b = m.continuous("b", tree.branches, lower=-1, upper=1)
    d = m.binary("d", tree.branches)
    z = m.binary("z", (data.samples, tree.leaves))
    used = m.binary("l", tree.leaves)

    m.add("norm", size.sum(axis=1) <= d, over=tree.branches)
    m.add("abs_above", size >= a, over=nodes)
    m.add("abs_below", size >= -a, over=nodes)
    m.add("threshold_above", b <= d, over=tree.branches)
    m.add("threshold_below", b >= -d, over=tree.branches)
    m.add("feature_above", a <= s, over=nodes)
    m.add("feature_below", a >= -s, over=nodes)
    m.add("feature_needs_split", s <= d[:, None], over=nodes)
    m.add("split_needs_feature", s.sum(axis=1) >= d, over=tree.branches)
    declare_leaf_rules(m, tree, d, z, used, np.ones(data.n), n_min)
    m.add("assign", z.sum(axis=1) == 1, over=data.samples)

    score = data.X @ a.T
    leaf, ancestor = np.nonzero(tree.leaf_reach_left.toarray())
    m.add("left", score[:, ancestor] + mu <= b[ancestor] + (2 + mu) * (1 - z[:, leaf]))
    leaf, ancestor = np.nonzero(tree.leaf_reach_right.toarray())
    m.add("right", score[:, ancestor] >= b[ancestor] - 2 * (1 - z[:, leaf]))
    return LeafAssignment(z, used, d)


def encode_hyperplane_splits(fitted: Tree, data: Dataset, mu: float) -> dict[str, FloatArray]:
    """Values of the blocks that :func:`declare_hyperplane_splits` makes, for a tree for scaled features."""
    tree = fitted.topology
    z = leaves_of(fitted, data.X)
    goes_left, goes_right = sides(z, tree)
    norm = np.abs(fitted.w).sum(axis=1)
    splits = norm > 0
    a = fitted.w / np.where(splits, norm, 1.0)[:, None]
    b = np.zeros(tree.n_branches)
    for t in np.flatnonzero(splits):
        score = data.X @ a[t]
        # Any threshold between the sides routes alike; the highest leaves the left side the most room.
        b[t] = (
            score[goes_right[:, t]].min()
            if goes_right[:, t].any()
            else score[goes_left[:, t]].max(initial=-1.0) + mu
        )
    return {
        "a": a,
        "a_abs": np.abs(a),
        "s": (a != 0).astype(float),
        "b": b,
        "d": splits.astype(float),
        "z": z,
        "l": z.any(axis=0).astype(float),
    }


def decode_hyperplane_splits(values: Values, data: Dataset, tree: Topology) -> Tree:
    """Read a tree (for scaled features, leaves still 0) off a solution; splits stand midway between their sides."""
    keeps = (values["s"] > 0.5) & (np.abs(values["a"]) > NEGLIGIBLE) & (values["d"] > 0.5)[:, None]
    w = np.where(keeps, values["a"], 0.0)
    goes_left, goes_right = sides(values["z"], tree)
    b = np.zeros(tree.n_branches)
    for t in tree.branches:
        score = data.X @ w[t]
        if goes_left[:, t].any() and goes_right[:, t].any():
            b[t] = -middle(float(score[goes_left[:, t]].max()), float(score[goes_right[:, t]].min()))
        # Where all samples take one side, the solver's threshold may miss it by its tolerance.
        elif goes_left[:, t].any():
            b[t] = -np.nextafter(score[goes_left[:, t]].max(), np.inf)
        elif goes_right[:, t].any():
            b[t] = -score[goes_right[:, t]].min()
    return Tree(tree.depth, w, b, np.zeros(tree.n_leaves), tuple(data.classes), tuple(data.features.labels))
