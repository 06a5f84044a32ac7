"""Compiled: all prescriptive trees of depth one and two whose estimates are constant.

Below each threshold of the root, one sweep through the order of every feature moves the samples of both sides from a
right leaf to a left one, so that all splits of both children are tried at a time. That takes O((np)^2) moves at depth
2. Nothing is bounded: what a leaf is charged may rise when samples leave it, as prescriptions are estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.problem.structure import TreeCharges
from mipforest.searches import entry, kernel
from mipforest.searches.local.leaves import may_prescribe, prescription_cost, statistics
from mipforest.searches.numbers import require_charges
from mipforest.trees.sides import midpoint

#: Moves of samples between two looks at the clock.
MOVES_AT_A_TIME = 2e6


#: Columns of :attr:`Memory.size`.
WHOLE, LEFT, SEEN = range(3)


class Rows(NamedTuple):
    """The samples, and what their trees are charged.

    Attributes
    ----------
    treatments
        Their number.
    value
        (n, V) statistics of the samples.
    rank, order
        (p, n) their ranks among the distinct values of each feature, and their order.
    N_min, split_cost
        Least number of samples in a leaf, and cost of a split.
    """

    treatments: int
    value: FloatArray
    rank: Int32Array
    order: Int32Array
    N_min: int
    split_cost: float


class Memory(NamedTuple):
    """Memory of an enumeration.

    Attributes
    ----------
    side
        (n,) side of the root on which a sample is: 0 or 1.
    sums
        (5, V) sums of both sides, of the left leaf below each, and of a right leaf.
    size
        (2, 3) for each side, its samples, those in its left leaf, and the rank of the last of them.
    cost, split
        (2,) and (2, 2): what each side is charged with its best split, and that split, feature -1 for none.
    """

    side: IntArray
    sums: FloatArray
    size: IntArray
    cost: FloatArray
    split: IntArray


class Found(NamedTuple):
    """What an enumeration has found.

    Attributes
    ----------
    w, b
        Weights (|B|, p) and intercepts (|B|,) of the best tree.
    ended
        Whether all trees were tried.
    least
        What no tree is charged less than, in units of the loss; minus infinity unless all were tried.
    """

    w: FloatArray
    b: FloatArray
    ended: bool
    least: float


def enumerate_trees(
    X: FloatArray,
    charges: TreeCharges,
    depth: int,
    going_on: Callable[[float, int], bool] = lambda value, tried: True,  # noqa: ARG005
) -> Found:
    """Try all trees of depth 1 or 2.

    Parameters
    ----------
    X
        (n, p) features.
    charges
        What trees are charged; the loss is ``"prescription"``.
    depth
        1 or 2.
    going_on
        Called now and then with the best value, in units of the loss, and the number of thresholds of the root that
        were tried; returning ``False`` ends the enumeration.

    Returns
    -------
    Found
        The best tree, and a bound.

    Raises
    ------
    DataValueError
        If a number is NaN, infinite where it may not be, or too large to compute with.
    """
    require_charges("prescription-search", charges, X)
    assert charges.treatment is not None
    (n, p), y = X.shape, np.asarray(charges.y, dtype=np.float64)
    value = statistics(y, charges.treatment, charges.mu, charges.n_treatment, charges.weight)
    rank, order = ranks(X)
    cuts = [(j, cut) for j in range(p) for cut in range(1, int(rank[j].max()) + 1)]
    treatments, split_cost = int(charges.treatment.max()) + 1, charges.split_cost / charges.n_treatment
    memory = Memory(
        side=np.zeros(n, np.int64),
        sums=np.zeros((5, value.shape[1])),
        size=np.zeros((2, 3), np.int64),
        cost=np.zeros(2),
        split=np.zeros((2, 2), np.int64),
    )
    best, chosen = np.full(1, np.inf), np.full((3, 2), -1)
    best[0] = cost_of_all(treatments, value, memory.sums[0])
    some = max(1, int(MOVES_AT_A_TIME / (n * p)))
    for begin in range(0, len(cuts), some):
        roots = np.array(cuts[begin : begin + some], dtype=np.int64)
        rows = Rows(treatments, value, rank, order, charges.N_min, split_cost)
        try_roots(rows, roots, depth, memory, best, chosen)
        tried = begin + len(roots)
        if not going_on(float(best[0]) * charges.n_treatment, tried) and tried < len(cuts):
            return Found(*splits_by_rank(X, rank, chosen, 2**depth - 1), False, -np.inf)
    least = float(best[0]) * charges.n_treatment
    return Found(*splits_by_rank(X, rank, chosen, 2**depth - 1), True, least)


def ranks(X: FloatArray) -> tuple[Int32Array, Int32Array]:
    """Return (p, n) ranks of the samples among the distinct values of each feature, and their order."""
    rank = np.array([np.unique(column, return_inverse=True)[1] for column in X.T], dtype=np.int32)
    return rank, np.argsort(rank, axis=1, kind="stable").astype(np.int32)


def splits_by_rank(
    X: FloatArray, rank: Int32Array, chosen: IntArray, nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Return weights and intercepts of splits, given by (3, 2) feature, -1 for none, and least rank on the right.

    Thresholds stand in the middle between both sides of their node.
    """
    w, b = np.zeros((nodes, X.shape[1])), np.zeros(nodes)
    here = {0: np.arange(len(X))}
    for t in range(nodes):
        members, (j, cut) = here.pop(t, None), chosen[t]
        if members is None or j < 0:
            continue
        right = rank[j, members] >= cut
        w[t, j], b[t] = 1.0, -midpoint(X[members[~right], j].max(), X[members[right], j].min())
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
    return w, b


@entry
def cost_of_all(treatments: int, value: FloatArray, total: FloatArray) -> float:
    """Return what one leaf with all samples is charged; ``total`` (V,) is 0, and is overwritten."""
    for i in range(len(value)):
        add(value, i, 1.0, total)
    return float(prescription_cost(treatments, False, total))


@kernel
def add(value: FloatArray, i: int, times: float, total: FloatArray) -> None:
    """Add the statistics of a sample to the sums of a leaf."""
    for v in range(len(total)):
        total[v] += times * value[i, v]


@kernel
def leaf(rows: Rows, total: FloatArray, size: int) -> float:
    """Return what a leaf is charged; infinite where it has too few samples, or may prescribe nothing."""
    if size < rows.N_min or not may_prescribe(rows.treatments, total):
        return np.inf
    return float(prescription_cost(rows.treatments, False, total))


@entry
def try_roots(
    rows: Rows, roots: IntArray, depth: int, memory: Memory, best: FloatArray, chosen: IntArray
) -> None:
    """Try all trees with some splits of the root, and keep the best.

    Parameters
    ----------
    rows, memory
        Samples, and memory.
    roots
        (r, 2) features and least ranks that go right.
    depth
        1 or 2 levels of splits.
    best, chosen
        (1,) value of the best tree and its (3, 2) splits, feature -1 for none: brought up to date.
    """
    side, size, cost, split = memory.side, memory.size, memory.cost, memory.split
    n, V = rows.value.shape
    for r in range(len(roots)):
        for s in range(2):
            size[s, WHOLE], split[s, 0] = 0, -1
            for v in range(V):
                memory.sums[s, v] = 0.0
        for i in range(n):
            s = 1 if rows.rank[roots[r, 0], i] >= roots[r, 1] else 0
            side[i] = s
            size[s, WHOLE] += 1
            add(rows.value, i, 1.0, memory.sums[s])
        for s in range(2):
            cost[s] = leaf(rows, memory.sums[s], size[s, WHOLE])
        if depth > 1:
            for f in range(len(rows.rank)):
                sweep(rows, f, memory)
        value = cost[0] + cost[1] + rows.split_cost
        if value < best[0]:
            best[0] = value
            chosen[0, 0], chosen[0, 1] = roots[r, 0], roots[r, 1]
            for s in range(2):
                chosen[1 + s, 0], chosen[1 + s, 1] = split[s, 0], split[s, 1]


@kernel
def sweep(rows: Rows, f: int, memory: Memory) -> None:
    """Try all splits of both children of the root on a feature; keep the best of each side."""
    order, rank, size, side = rows.order[f], rows.rank[f], memory.size, memory.side
    n, V = rows.value.shape
    for s in range(2):
        size[s, LEFT] = size[s, SEEN] = 0
        for v in range(V):
            memory.sums[2 + s, v] = 0.0
    for q in range(n):
        i = order[q]
        s = side[i]
        # The left leaf is whole where the side's next sample has a greater value.
        if size[s, LEFT] > 0 and rank[i] > size[s, SEEN] and size[s, LEFT] >= rows.N_min:
            left = leaf(rows, memory.sums[2 + s], size[s, LEFT])
            if left < memory.cost[s]:
                for v in range(V):
                    memory.sums[4, v] = memory.sums[s, v] - memory.sums[2 + s, v]
                value = left + leaf(rows, memory.sums[4], size[s, WHOLE] - size[s, LEFT]) + rows.split_cost
                if value < memory.cost[s]:
                    memory.cost[s], memory.split[s, 0], memory.split[s, 1] = value, f, rank[i]
        size[s, LEFT] += 1
        size[s, SEEN] = rank[i]
        add(rows.value, i, 1.0, memory.sums[2 + s])
