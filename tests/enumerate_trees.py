"""Best univariate trees by brute force over all cuts: the exact route that knows nothing of the package."""

from itertools import pairwise

import numpy as np


def best_tree_value(X, leaf_cost, depth, split_cost, n_min):
    """Least cost of a tree of at most the given depth.

    ``leaf_cost(rows)`` is the cost of a leaf with these samples; every split costs ``split_cost``, and a leaf
    that holds samples holds at least ``n_min``.
    """
    known = {}

    def best(rows, levels):
        if (rows, levels) not in known:
            known[rows, levels] = min(options(rows, levels))
        return known[rows, levels]

    def options(rows, levels):
        yield leaf_cost(list(rows)) if len(rows) >= n_min else np.inf
        if levels == 0:
            return
        for j in range(X.shape[1]):
            values = sorted({X[i, j] for i in rows})
            for low, high in pairwise(values):
                cut = (low + high) / 2
                left = tuple(i for i in rows if X[i, j] < cut)
                right = tuple(i for i in rows if X[i, j] >= cut)
                yield split_cost + best(left, levels - 1) + best(right, levels - 1)

    return best(tuple(range(len(X))), depth)


def misclassified(y):
    """Cost of a leaf: samples outside its most common class."""
    return lambda rows: len(rows) - np.bincount(y[rows]).max()


def absolute_loss(y):
    """Cost of a leaf that predicts its median."""
    return lambda rows: np.abs(y[rows] - np.median(y[rows])).sum()


def squared_loss(y):
    """Cost of a leaf that predicts its mean."""
    return lambda rows: ((y[rows] - y[rows].mean()) ** 2).sum()
