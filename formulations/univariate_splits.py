r"""Univariate splits and the assignment of samples to leaves, as in Dunn's thesis: shared by the models that use them.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 2.2. Features in
[0, 1]; a split sends ``a.x < b`` left and the rest right; a node that does not split sends everything right.

.. math::

    & \sum_j a_{jt} = d_t, \quad 0 \le b_t \le d_t, \quad a_{jt}, d_t \in \{0, 1\} && t \in B \quad (2.2 - 2.4) \\
    & d_t \le d_{p(t)} && t \in B \setminus \{0\} \quad (2.5) \\
    & z_{it} \le l_t, \quad \sum_i z_{it} \ge N_{\min} l_t && t \in L \quad (2.6, 2.7) \\
    & \sum_{t \in L} z_{it} = 1 && i \quad (2.8) \\
    & a_m^\top (x_i + \epsilon) \le b_m + (1 + \epsilon_{\max}) (1 - z_{it})
        && i,\; t \in L,\; m \in A_L(t) \quad (2.13) \\
    & a_m^\top x_i \ge b_m - (1 - z_{it}) && i,\; t \in L,\; m \in A_R(t) \quad (2.14) \\
    & l_t \le d_m && t \in L,\; m \in A_L(t) \quad (*)

with :math:`\epsilon_j` the smallest gap between distinct values of feature j, and :math:`\epsilon_{\max}` the largest
of them.

Rows (*) are not in the thesis. Without them its model is not the one it describes: at a node that does not split,
``a = 0`` and ``b = 0`` satisfy (2.13) as ``0 <= 0``, so samples may go left there at will, and a tree without any split
separates any data. The earlier paper (Bertsimas and Dunn, Machine Learning 106, 2017, eq. 21) avoids this with
:math:`\epsilon_{\min}` on the left of (2.13); (*) says the same without a constant near the solver's tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.class_leaves import leaves_of
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import Model, Values, VarArray
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False)
class LeafAssignment:
    """The blocks that the rest of a model reads.

    Attributes
    ----------
    z
        (n, |L|) whether a sample is in a leaf.
    used
        (|L|,) whether a leaf holds samples.
    splits
        (|B|,) whether a node splits.
    """

    z: VarArray
    used: VarArray
    splits: VarArray


def declare_univariate_splits(m: Model, data: Dataset, tree: Topology, n_min: int) -> LeafAssignment:
    """Write rows (2.2) to (2.14) and (*)."""
    a = m.binary("a", (tree.branches, data.features))
    b = m.nonnegative("b", tree.branches)
    d = m.binary("d", tree.branches)
    z = m.binary("z", (data.samples, tree.leaves))
    used = m.binary("l", tree.leaves)

    m.add("one_feature", a.sum(axis=1) == d, over=tree.branches)
    m.add("threshold", b <= d, over=tree.branches)
    declare_leaf_rules(m, tree, d, z, used, np.ones(data.n), n_min)
    m.add("assign", z.sum(axis=1) == 1, over=data.samples)

    # Variables are repeated per leaf, not their products with X: choosing variables copies no matrix.
    eps = smallest_gaps(data.X)
    leaf, ancestor = np.nonzero(tree.leaf_reach_left.toarray())
    big_m = 1 + eps.max()
    m.add("left", (data.X + eps) @ a[ancestor].T <= b[ancestor] + big_m * (1 - z[:, leaf]))
    leaf, ancestor = np.nonzero(tree.leaf_reach_right.toarray())
    m.add("right", data.X @ a[ancestor].T >= b[ancestor] - (1 - z[:, leaf]))
    return LeafAssignment(z, used, d)


def declare_leaf_rules(
    m: Model, tree: Topology, d: VarArray, z: VarArray, used: VarArray, weight: FloatArray, n_min: int
) -> None:
    """Write the rows on which nodes split and which leaves are used: (2.5), (2.6), (2.7), (*).

    Parameters
    ----------
    m, tree
        Model and topology.
    d, z, used
        Splits (|B|,), assignment (g, |L|), leaves in use (|L|,).
    weight
        (g,) number of samples that each row of the assignment stands for.
    n_min
        Least number of samples in a leaf that holds any.
    """
    declare_hierarchy(m, tree, d)
    m.add("in_use", z <= used)
    m.add("leaf_size", weight @ z >= n_min * used, over=tree.leaves)
    leaf, ancestor = np.nonzero(tree.leaf_reach_left.toarray())
    m.add("left_needs_split", used[leaf] <= d[ancestor])


def declare_hierarchy(m: Model, tree: Topology, d: VarArray) -> None:
    """Write row (2.5): a node splits only if its parent does."""
    children = np.arange(1, tree.n_branches)
    if len(children):
        m.add("hierarchy", d[children] <= d[(children - 1) // 2])


def smallest_gaps(X: FloatArray) -> FloatArray:
    """(p,) smallest gap between distinct values of each feature; 1 for a constant one (it splits nothing)."""
    gaps = [np.diff(np.unique(column)) for column in X.T]
    return np.array([gap.min() if len(gap) else 1.0 for gap in gaps])


# ---------------------------------------------------------------------- between trees and values


def chosen_features(fitted: Tree) -> IntArray:
    """(|B|,) feature of each split of a univariate tree, -1 where a node does not split."""
    feature: IntArray = np.where(fitted.w.any(axis=1), np.abs(fitted.w).argmax(axis=1), -1)
    return feature


def encode_univariate_splits(fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
    """Values of the blocks that :func:`declare_univariate_splits` makes, for a univariate tree."""
    tree, feature = fitted.topology, chosen_features(fitted)
    z = leaves_of(fitted, data.X)
    eps = smallest_gaps(data.X)
    goes_left, goes_right = sides(z, tree)
    a = np.zeros(fitted.w.shape)
    b = np.zeros(tree.n_branches)
    for t in tree.branches:
        j = feature[t]
        if j < 0:
            continue
        a[t, j] = 1.0
        # Any threshold in the gap between the sides routes alike; (2.13) wants it eps_j above the left side.
        x = data.X[:, j]
        b[t] = (
            x[goes_right[:, t]].min()
            if goes_right[:, t].any()
            else x[goes_left[:, t]].max(initial=0.0) + eps[j]
        )
    return {"a": a, "b": b, "d": (feature >= 0).astype(float), "z": z, "l": z.any(axis=0).astype(float)}


def sides(z: FloatArray, tree: Topology) -> tuple[BoolArray, BoolArray]:
    """(n, |B|) which samples an assignment to leaves sends left, and right, at each branch node."""
    return z @ tree.leaf_reach_left > 0.5, z @ tree.leaf_reach_right > 0.5


def univariate_tree(
    feature: IntArray, threshold: FloatArray, leaf_value: FloatArray | IntArray, tree: Topology, data: Dataset
) -> Tree:
    """Put a univariate tree together: ``x_j >= threshold`` goes right; feature -1 sends everything right.

    Parameters
    ----------
    feature, threshold
        (|B|,) the splits.
    leaf_value
        (|L|,) class indices, or values.
    tree, data
        Topology and the data whose features and classes are named.
    """
    w = np.zeros((tree.n_branches, data.p))
    splits = np.flatnonzero(feature >= 0)
    w[splits, feature[splits]] = 1.0
    b = np.where(feature >= 0, -threshold, 0.0)
    return Tree(tree.depth, w, b, leaf_value, tuple(data.classes), tuple(data.features.labels))


def decode_univariate_splits(values: Values, data: Dataset, tree: Topology) -> tuple[IntArray, FloatArray]:
    """Read features and thresholds (|B|,) off a solution; thresholds stand midway between the sides."""
    feature = np.where(values["d"] > 0.5, values["a"].argmax(axis=1), -1)
    goes_left, goes_right = sides(values["z"], tree)
    threshold = np.array(values["b"])
    for t in np.flatnonzero(feature >= 0):
        x = data.X[:, feature[t]]
        if goes_left[:, t].any() and goes_right[:, t].any():
            threshold[t] = middle(float(x[goes_left[:, t]].max()), float(x[goes_right[:, t]].min()))
        elif goes_left[:, t].any():
            threshold[t] = np.nextafter(x[goes_left[:, t]].max(), np.inf)
        elif goes_right[:, t].any():
            # The solver's threshold may lie above it by its tolerance.
            threshold[t] = x[goes_right[:, t]].min()
    return feature, threshold


def middle(low: float, high: float) -> float:
    """Midpoint of two neighbouring values; the upper one where rounding leaves nothing between."""
    value = low + (high - low) / 2
    return value if value > low else high
