"""CART for models that want a least distance between the two sides of a split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.univariate_splits import middle, sides
from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart
from mipforest.trees import Topology, Tree


def cart_with_gaps(
    data: Dataset, topology: Topology, gap: float, *, min_leaf: int = 1, seed: int = 0
) -> Tree:
    """Grow a CART tree whose thresholds all have an empty interval of a given width around them.

    Neighbouring values of a feature less than ``gap`` apart are taken as one value; CART then has no threshold
    between them to choose.

    Parameters
    ----------
    data, topology, min_leaf, seed
        As for :func:`mipforest.heuristics.cart.cart`.
    gap
        Least distance between the greatest value sent left and the least sent right.
    """
    merged = np.column_stack([_merged(column, gap) for column in data.X.T])
    grown = cart(replace(data, X=merged), topology, min_leaf=min_leaf, seed=seed)
    goes_left, goes_right = sides(leaves_of(grown, merged), topology)
    b = grown.b.copy()
    for t in np.flatnonzero(grown.w.any(axis=1)):
        x = data.X @ grown.w[t]
        b[t] = -middle(float(x[goes_left[:, t]].max()), float(x[goes_right[:, t]].min()))
    b[~grown.w.any(axis=1)] = 0.0
    return replace(grown, b=b)


def _merged(column: FloatArray, gap: float) -> FloatArray:
    """Replace each value by the number of its run: values less than ``gap`` apart are in one run."""
    values, inverse = np.unique(column, return_inverse=True)
    run = np.concatenate([[0], np.cumsum(np.diff(values) >= gap)])
    numbers: FloatArray = run[inverse].astype(float)
    return numbers
