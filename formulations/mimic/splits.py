r"""Splits that keep a gap between their sides: fitting a tree's splits into the box and the gap of a model.

MIRET's split of a node has :math:`a \in [-1, 1]^p`, :math:`b \in [-1, 1]`, sends samples with
:math:`a^\top x + b \ge 0` right and those with :math:`a^\top x + b \le -\varepsilon` left. A tree's split is scaled
and its intercept moved so that this holds; the sides of the samples stay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.trees import Topology, Tree


def with_fixed_labels(tree: Tree) -> Tree:
    """Return a tree of two classes whose left leaves predict the first class and right leaves the second.

    Predictions stay: a last split with the labels the other way round is reversed, one with two equal labels is
    replaced by none.
    """
    left, right = tree.leaf_value[0::2], tree.leaf_value[1::2]
    last = np.asarray(tree.topology.last_branches)
    w, b = tree.w.copy(), tree.b.copy()
    reversed_ = last[left > right]
    w[reversed_] = -w[reversed_]
    # A score of 0 went right and has to go left.
    b[reversed_] = np.nextafter(-b[reversed_], -np.inf)
    w[last[left == right]] = 0.0
    b[last[left == right]] = np.where(right[left == right] == 1, 1.0, -1.0)
    return replace(tree, w=w, b=b, leaf_value=fixed_labels(tree.topology))


def fixed_labels(topology: Topology) -> IntArray:
    """Return (|L|,) 0, 1, 0, 1, ...: left leaves predict the first class, right leaves the second."""
    return np.tile([0, 1], topology.n_leaves // 2).astype(np.int64)


def scale_into_box(
    w: FloatArray, b: float, right: FloatArray, left: FloatArray, epsilon: float
) -> tuple[float, float, float]:
    """Scale a split into the box; return the scale and the intercepts that keep all samples on their sides.

    Parameters
    ----------
    w, b
        (p,) weights, not all 0, and intercept.
    right, left
        ``X @ w`` of the samples on either side; either may be empty.
    epsilon
        Gap between the sides.

    Returns
    -------
    scale, low, high
        ``scale * w`` lies in the box; an intercept from ``low`` to ``high`` keeps the sides. No such intercept
        exists where ``low`` is above ``high``.
    """
    lowest, highest = right.min(initial=np.inf), left.max(initial=-np.inf)
    limits = [1.0 / np.abs(w).max()]
    if lowest < 0:
        limits.append(-1.0 / lowest)
    if 0 < highest < np.inf:
        limits.append((1.0 - epsilon) / highest)
    most = min(limits)

    def sides(scale: float) -> tuple[float, float, float]:
        return scale, max(-1.0, -scale * lowest), min(1.0, -epsilon - scale * highest)

    unscaled = sides(1.0)
    # A gap that is too small by the tolerance still fits: each side then misses its row by half of it.
    fits = most >= 1.0 and abs(b) <= 1.0 and unscaled[1] <= unscaled[2] + FEASIBILITY_TOLERANCE
    return unscaled if fits else sides(most)


def fit_splits(
    tree: Tree, X: FloatArray, epsilon: float, least_intercept: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Fit all splits of a tree into the box, the gap and least intercepts.

    Where an intercept above the last level is too small, the split is turned round and the subtrees below it
    change places: the samples of a leaf stay together, and its label stays.

    Parameters
    ----------
    tree
        A tree with fixed labels, for scaled features.
    X
        (n, p) training samples, scaled.
    epsilon
        Gap between the sides.
    least_intercept
        (|B|,) least ``b`` of each node; -1 at the last level.

    Returns
    -------
    a, b, leaf
        (|B|, p) weights, (|B|,) intercepts, and the (n,) leaf of each sample, 0 to 2^depth - 1. Rows that no
        scaling can satisfy (a gap too small) stay violated.
    """
    topology = tree.topology
    goes_left, goes_right = topology.leaf_reach_left.toarray() > 0, topology.leaf_reach_right.toarray() > 0
    w, b = tree.w.copy(), tree.b.copy()
    leaf = tree.apply(X) - topology.n_branches
    for t in topology.branches:
        here = (goes_left | goes_right)[leaf, t]
        right = goes_right[leaf[here], t]
        a_t, b_t = _split(w[t], b[t], X[here] @ w[t], right, epsilon, least_intercept[t])
        if b_t < least_intercept[t]:
            other = swapped_subtrees(t, topology)
            leaf = other[leaf + topology.n_branches] - topology.n_branches
            branch = other[: topology.n_branches]
            w, b = w[branch], b[branch]
            a_t, b_t = _split(-w[t], -b[t] - epsilon, -(X[here] @ w[t]), ~right, epsilon, least_intercept[t])
        w[t], b[t] = a_t, b_t
    return w, b, leaf


def _split(
    w: FloatArray, b: float, score: FloatArray, right: BoolArray, epsilon: float, least: float
) -> tuple[FloatArray, float]:
    """Fit one split; its intercept stays where it can, and is below ``least`` only where it has to be."""
    if not w.any():
        goes_right = right.any() if len(right) else b >= 0
        return w, 1.0 if goes_right else -1.0
    scale, low, high = scale_into_box(w, b, score[right], score[~right], epsilon)
    if low > high:
        return scale * w, (low + high) / 2
    wanted = max(scale * b, least)
    return scale * w, float(np.clip(wanted, low, high))


def swapped_subtrees(t: int, topology: Topology) -> IntArray:
    """Return the (n_nodes,) new number of each node when the two subtrees below t change places."""
    number = np.arange(topology.n_nodes)
    mirrored = [(topology.left(t), topology.right(t))]
    while mirrored:
        here, there = mirrored.pop()
        number[here], number[there] = there, here
        if here < topology.n_branches:
            mirrored.append((topology.left(here), topology.left(there)))
            mirrored.append((topology.right(here), topology.right(there)))
    return number
