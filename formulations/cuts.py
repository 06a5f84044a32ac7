r"""Thresholds as discrete cuts: univariate routing that is linear and exact, without a big-M.

A feature j with distinct values :math:`v_0 < \dots < v_m` has the cuts 1..m, cut k between :math:`v_{k-1}` and
:math:`v_k`. The binary :math:`u_{tjk}` says that node t splits on feature j **at cut k or a higher one**:

.. math::

    u_{tj1} \ge u_{tj2} \ge \dots, \qquad \sum_j u_{tj1} = d_t, \qquad
    \mathrm{left}_{it} = \sum_j u_{t,j,r_{ij}+1} \in \{0, 1\},

with :math:`r_{ij}` the rank of :math:`x_{ij}` among the distinct values (and :math:`u_{t,j,m+1} = 0`). Cumulated
like this a routing row has p entries; with one binary per cut it would have one for every cut above the sample. Both
have the same linear relaxation: :math:`u_{tjk} - u_{t,j,k+1}` is the binary of cut k.

Samples with equal features go to the same leaf, so they are merged into groups first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from formulations.univariate_splits import declare_hierarchy, declare_leaf_rules, middle, univariate_tree
from mipforest.arrays import FloatArray, IntArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Nodes, Topology, Tree


@dataclass(frozen=True, eq=False)
class Cuts:
    """All cuts of a data set, feature by feature.

    Attributes
    ----------
    X
        (g, p) distinct rows of the data.
    group
        (n,) the group of each sample: its row of ``X``.
    feature, threshold
        (q,) feature and threshold of each cut, ascending within a feature.
    first
        (p + 1,) where each feature's cuts begin.
    left
        (g, q) CSR matrix with a 1 at the lowest cut that sends a group left, feature by feature.
    labels
        Names of the cuts.
    """

    X: FloatArray
    group: IntArray
    feature: IntArray
    threshold: FloatArray
    first: IntArray
    left: SparseMatrix
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def below(self) -> IntArray:
        """Cuts that have a lower one of the same feature."""
        return np.setdiff1d(np.arange(len(self)), self.first)

    @property
    def lowest(self) -> IntArray:
        """The lowest cut of each feature that has any."""
        return self.first[:-1][np.diff(self.first) > 0]


def find_cuts(X: FloatArray, names: tuple[str, ...]) -> Cuts:
    """List the cuts of a data set.

    Parameters
    ----------
    X
        (n, p) samples.
    names
        Names of the p features.
    """
    rows, group = np.unique(X, axis=0, return_inverse=True)
    values = [np.unique(column) for column in rows.T]
    thresholds = [np.array([middle(low, high) for low, high in pairwise(v)]) for v in values]
    sizes = np.array([len(t) for t in thresholds])
    first = np.concatenate([[0], np.cumsum(sizes)])
    # The lowest cut that sends a value of rank r left is cut r + 1; the greatest value is sent left by none.
    at = [(np.searchsorted(v, column), j) for j, (v, column) in enumerate(zip(values, rows.T, strict=True))]
    entries = [(np.flatnonzero(rank < sizes[j]), first[j] + rank[rank < sizes[j]]) for rank, j in at]
    row = np.concatenate([r for r, _ in entries])
    column = np.concatenate([c for _, c in entries])
    left = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(rows), int(first[-1])))
    labels = tuple(f"{names[j]}<{t:.6g}#{k}" for j, ts in enumerate(thresholds) for k, t in enumerate(ts))
    return Cuts(
        X=rows,
        group=group.ravel(),
        feature=np.repeat(np.arange(X.shape[1]), sizes),
        threshold=np.concatenate([np.zeros(0), *thresholds]),
        first=first,
        left=left,
        labels=labels,
    )


def declare_cuts(m: Model, cuts: Cuts, tree: Topology, d: VarArray) -> LinearExpr:
    """Write the cut variables of every branch node.

    Returns
    -------
    (g, |B|) expression that is 1 where a group goes left at a node, 0 where it goes right.
    """
    u = m.binary("u", (tree.branches, list(cuts.labels)))
    m.add("one_cut", u[:, cuts.lowest].sum(axis=1) == d, over=tree.branches)
    if len(cuts.below):
        m.add("ordered", u[:, cuts.below] <= u[:, cuts.below - 1])
    return goes_left(cuts, u)


def goes_left(cuts: Cuts, u: VarArray) -> LinearExpr:
    """(g, |B|) expression that is 1 where a group goes left at a node, 0 where it goes right."""
    left: LinearExpr = cuts.left @ u.T
    return left


def declare_group_leaves(
    m: Model, tree: Topology, d: VarArray, left: LinearExpr, weight: FloatArray, n_min: int
) -> VarArray:
    """Assign groups to leaves, and keep leaves that hold samples large enough: (2.5) to (2.8), (*).

    The assignment is continuous: for binary cuts its rows leave each group one leaf only. With ``n_min = 1``
    rows (2.6), (2.7) only let a leaf be empty or not, and are left out.

    Parameters
    ----------
    m, tree
        Model and topology.
    d, left
        Splits (|B|,) and what :func:`declare_cuts` gave.
    weight
        (g,) number of samples in each group.
    n_min
        Least number of samples in a leaf that holds any.

    Returns
    -------
    (g, |L|) assignment
    """
    z = declare_assignment(m, tree, left)
    if n_min > 1:
        declare_leaf_rules(m, tree, d, z, m.binary("l", tree.leaves), weight, n_min)
    else:
        declare_hierarchy(m, tree, d)
    return z


def declare_assignment(m: Model, tree: Topology, left: LinearExpr) -> VarArray:
    """Write (2.8): the (g, |L|) assignment of groups to leaves, continuous, that follows the cuts."""
    z = m.nonnegative("z", (left.shape[0], tree.leaves), upper=1)
    m.add("assign", z.sum(axis=1) == 1)
    m.add("assign_left", z @ tree.leaf_reach_left <= left)
    m.add("assign_right", z @ tree.leaf_reach_right <= 1 - left)
    return z


def encode_cuts(feature: IntArray, threshold: FloatArray, cuts: Cuts, branches: Nodes) -> FloatArray:
    """(|B|, q) values of the cut variables for splits ``x_j < threshold``."""
    u = np.zeros((len(branches), len(cuts)))
    for t in np.flatnonzero(feature >= 0):
        own = slice(cuts.first[feature[t]], cuts.first[feature[t] + 1])
        values = np.unique(cuts.X[:, feature[t]])
        # Cut k is chosen when k values lie below the threshold; it and all lower cuts are on.
        u[t, own] = np.arange(1, len(values)) <= (values < threshold[t]).sum()
    return u


def decode_cuts(u: FloatArray, cuts: Cuts) -> tuple[IntArray, FloatArray]:
    """Read features (-1: no split) and thresholds (|B|,) off the cut variables."""
    feature = np.full(len(u), -1)
    threshold = np.zeros(len(u))
    for t, row in enumerate(u):
        on = np.flatnonzero(row > 0.5)
        if len(on):
            # The highest cut that is on is the one chosen.
            feature[t], threshold[t] = cuts.feature[on[-1]], cuts.threshold[on[-1]]
    return feature, threshold


def tree_of_cuts(chosen: IntArray, cuts: Cuts, tree: Topology, data: Dataset) -> Tree:
    """Put a tree together (leaves still 0) from one cut per branch node (|B|,), -1 where a node does not split."""
    feature, threshold = np.full(len(chosen), -1), np.zeros(len(chosen))
    splits = np.flatnonzero(chosen >= 0)
    feature[splits], threshold[splits] = cuts.feature[chosen[splits]], cuts.threshold[chosen[splits]]
    return univariate_tree(feature, threshold, np.zeros(tree.n_leaves), tree, data)
