"""Best univariate trees by brute force over all cuts: the exact route that knows nothing of the package."""

from itertools import combinations, pairwise

import numpy as np


def best_tree_value(X, leaf_cost, depth, split_cost, n_min):
    """Least cost of a tree of at most the given depth.

    ``leaf_cost(rows)`` is the cost of a leaf with these samples; every split costs ``split_cost``, and a leaf
    that holds samples holds at least ``n_min``.
    """

    def sides(rows):
        for j in range(X.shape[1]):
            values = sorted({X[i, j] for i in rows})
            for low, high in pairwise(values):
                cut = (low + high) / 2
                yield [i for i in rows if X[i, j] < cut]

    return best_value(sides, len(X), leaf_cost, depth, split_cost, n_min)


def best_table_value(table, leaf_cost, depth, split_cost, n_min):
    """The same of a table, by columns: numbers are cut, sets of texts parted, ``None`` goes to either side."""

    def sides(rows):
        for column in table:
            known = [i for i in rows if column[i] is not None]
            present = sorted({column[i] for i in known})
            if present and isinstance(present[0], str):
                parts = [part for k in range(1, len(present) + 1) for part in combinations(present, k)]
                chosen = [[i for i in known if column[i] in part] for part in parts]
            else:
                chosen = [[i for i in known if column[i] <= value] for value in present]
            for left in chosen:
                yield left
                yield left + [i for i in rows if column[i] is None]

    return best_value(sides, len(table[0]), leaf_cost, depth, split_cost, n_min)


def best_value(sides, n, leaf_cost, depth, split_cost, n_min):
    """The same for any splits: ``sides(rows)`` gives the samples on one side of each, which may be all or none."""
    known = {}

    def best(rows, levels):
        if (rows, levels) not in known:
            known[rows, levels] = min(options(rows, levels))
        return known[rows, levels]

    def options(rows, levels):
        yield leaf_cost(list(rows)) if len(rows) >= n_min else np.inf
        if levels == 0:
            return
        for left in {tuple(sorted(side)) for side in sides(rows)}:
            right = tuple(sorted(set(rows) - set(left)))
            if left and right:
                yield split_cost + best(left, levels - 1) + best(right, levels - 1)

    return best(tuple(range(n)), depth)


def misclassified(y):
    """Cost of a leaf: samples outside its most common class."""
    return lambda rows: len(rows) - np.bincount(y[rows]).max()


def absolute_loss(y):
    """Cost of a leaf that predicts its median."""
    return lambda rows: np.abs(y[rows] - np.median(y[rows])).sum()


def squared_loss(y):
    """Cost of a leaf that predicts its mean."""
    return lambda rows: ((y[rows] - y[rows].mean()) ** 2).sum()
