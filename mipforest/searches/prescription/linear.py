"""Compiled: all prescriptive trees of depth one and two whose leaves estimate linear functions, with a bound.

From either end of the order of a feature, one sample after the other enters a leaf, and the lasso of its treatment
begins with the coefficients that it had before. What both leaves of a split are charged is the sum of what the two ways
have told. The least bound of all trees is one for the model, whichever minima it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.problem.structure import TreeCharges
from mipforest.searches import entry
from mipforest.searches.numbers import require_charges
from mipforest.searches.prescription.enumeration import Found, ranks, splits_by_rank
from mipforest.searches.prescription.exact_lasso import Leaf, Rows, add, charge, clear


class Memory(NamedTuple):
    """Memory of an enumeration.

    Attributes
    ----------
    leaf
        The leaf that is being filled.
    side, here
        (n,) side of the root of each sample, and the samples of one side in the order of a feature.
    curve
        (2, n) charges, and bounds on them, of both leaves by the number of samples on the left, less 1.
    charge, least
        (2,) what each side is charged with its best split, and the least bound of all its splits.
    split
        (2, 2) feature and least rank on the right of the best split, -1 for none.
    told
        (2,) charge of a leaf, and the bound.
    """

    leaf: Leaf
    side: IntArray
    here: IntArray
    curve: FloatArray
    charge: FloatArray
    least: FloatArray
    split: IntArray
    told: FloatArray


def enumerate_linear_trees(
    X: FloatArray,
    charges: TreeCharges,
    depth: int,
    going_on: Callable[[float, int], bool] = lambda value, tried: True,  # noqa: ARG005
) -> Found:
    """Try all trees of depth 1 or 2; as :func:`~mipforest.searches.prescription.enumeration.enumerate_trees`."""
    require_charges("prescription-search", charges, X, products=True)
    assert charges.treatment is not None
    assert charges.coefficient_cost is not None
    (n, p), m = X.shape, int(charges.treatment.max()) + 1
    rank, order = ranks(X)
    rows = Rows(
        np.ascontiguousarray(X),
        np.asarray(charges.y, dtype=np.float64),
        np.ones(n) if charges.weight is None else charges.weight,
        charges.treatment.astype(np.int64),
        rank,
        order,
        0.5 * charges.coefficient_cost,
        charges.mu,
        charges.split_cost,
        charges.n_treatment,
        charges.N_min,
    )
    memory = Memory(
        Leaf.empty(m, p),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((2, n)),
        np.zeros(2),
        np.zeros(2),
        np.full((2, 2), -1),
        np.zeros(2),
    )
    chosen = np.full((3, 2), -1)
    charge_alone(rows, 0, memory)
    best, least = float(memory.charge[0]), float(memory.least[0])
    if depth == 1:
        for tried, f in enumerate(range(p), start=1):
            try_splits(rows, 0, f, memory)
            best, least, chosen[0] = float(memory.charge[0]), float(memory.least[0]), memory.split[0]
            if not going_on(best, tried) and tried < p:
                return Found(*splits_by_rank(X, rank, chosen, 1), False, -np.inf)
        return Found(*splits_by_rank(X, rank, chosen, 1), True, least)
    cuts = [(j, cut) for j in range(p) for cut in range(1, int(rank[j].max()) + 1)]
    for tried, (j, cut) in enumerate(cuts, start=1):
        memory.side[:] = rank[j] >= cut
        for s in range(2):
            charge_alone(rows, s, memory)
            for f in range(p):
                try_splits(rows, s, f, memory)
        least = min(least, float(memory.least.sum()) + rows.split_cost)
        if (value := float(memory.charge.sum()) + rows.split_cost) < best:
            best, chosen = value, np.vstack([[j, cut], memory.split])
        if not going_on(best, tried) and tried < len(cuts):
            return Found(*splits_by_rank(X, rank, chosen, 3), False, -np.inf)
    return Found(*splits_by_rank(X, rank, chosen, 3), True, least)


@entry
def charge_alone(rows: Rows, s: int, memory: Memory) -> None:
    """Charge a side of the root without a split: where its best split begins."""
    clear(memory.leaf)
    size = 0
    for i in range(len(rows.y)):
        if memory.side[i] == s:
            add(rows, i, memory.leaf)
            size += 1
    charge(rows, memory.leaf, memory.told)
    enough = size >= rows.N_min
    memory.charge[s] = memory.told[0] if enough else np.inf
    memory.least[s] = memory.told[1] if enough else np.inf
    memory.split[s, 0] = -1


@entry
def try_splits(rows: Rows, s: int, f: int, memory: Memory) -> None:
    """Try all splits of a side of the root on a feature; keep the best, and the least bound."""
    size, here, curve, told = 0, memory.here, memory.curve, memory.told
    for q in range(len(rows.y)):
        if memory.side[rows.order[f, q]] == s:
            here[size] = rows.order[f, q]
            size += 1
    for backward in range(2):
        clear(memory.leaf)
        for q in range(size - 1):
            add(rows, here[size - 1 - q] if backward else here[q], memory.leaf)
            left = size - q - 2 if backward else q  # the last sample on the left
            if not backward:
                curve[0, left] = curve[1, left] = np.inf
            elif curve[1, left] == np.inf:
                continue
            between = rows.rank[f, here[left]] < rows.rank[f, here[left + 1]]
            if between and q + 1 >= rows.N_min and size - q - 1 >= rows.N_min:
                charge(rows, memory.leaf, told)
                for kind in range(2):
                    curve[kind, left] = told[kind] + (curve[kind, left] if backward else 0.0)
    for left in range(size - 1):
        memory.least[s] = min(memory.least[s], curve[1, left] + rows.split_cost)
        if curve[0, left] + rows.split_cost < memory.charge[s]:
            memory.charge[s] = curve[0, left] + rows.split_cost
            memory.split[s, 0], memory.split[s, 1] = f, rows.rank[f, here[left + 1]]
