"""The optimum of trees of hyperplane splits by a route of its own: all supports, all dichotomies, all trees."""

from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from mipforest.objectives.leaf_losses import SquaredLoss
from mipforest.searches.oblique.search import Split

#: What a linear programme may miss a row by.
TOLERANCE = 1e-7


def is_parted(problem, F, left, right, least=-1.0):
    """Return whether a hyperplane on F parts two sets of groups: it exists for fixed sides, gap and box."""
    rows, limits = [], []
    k = len(F)
    for sign, groups in ((1.0, left), (-1.0, right)):
        for group in groups:
            for x in problem.X[problem.first[group] : problem.first[group + 1]][:, F]:
                rows.append([*(sign * x), *(-sign * x if problem.l1 else []), sign])
                limits.append(-problem.gap if sign > 0 else 0.0)
    bounds = [(-1, 1)] * k + [(least, 1)]
    if problem.l1:
        rows.append([1.0] * (2 * k) + [0.0])
        limits.append(1.0)
        bounds = [(0, 1)] * (2 * k) + [(-1, 1)]
    return linprog(np.zeros(len(bounds)), A_ub=rows, b_ub=limits, bounds=bounds).status == 0


def loss_of_groups(structure, X):
    """Return what the groups of a problem pay in a leaf of the best constant, by the targets of their samples."""
    group = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    y = np.asarray(structure.y, dtype=float)
    weight = np.ones(len(y)) if structure.weight is None else structure.weight

    def loss(groups):
        rows = np.isin(group, list(groups))
        if not rows.any():
            return 0.0
        here, own = y[rows], weight[rows]
        if isinstance(structure.loss, SquaredLoss):
            return float((own * (here - np.average(here, weights=own)) ** 2).sum())
        return min(float((own * np.abs(here - value)).sum()) for value in here)

    return loss


def optimum(problem, least_intercept=-1.0, loss=None):
    """Return the least value of a tree of an :class:`~mipforest.searches.oblique.problem.ObliqueProblem`.

    Leaves are charged the sum of a label, or by a function of their groups.
    """
    p = problem.X.shape[1]
    most = problem.max_features or p
    supports = [F for k in range(1, most + 1) for F in combinations(range(p), k)]

    @cache
    def parted(F, left, right, least):
        return is_parted(problem, F, left, right, least)

    @cache
    def dichotomies(F, groups, least):
        """All ways to part some groups."""
        found = [((), ())]
        for g in groups:
            found = [
                sides
                for left, right in found
                for sides in (((*left, g), right), (left, (*right, g)))
                if parted(F, *sides, least)
            ]
        return [(left, right) for left, right in found if left and right]

    def charged(groups, label):
        return float(problem.charges[list(groups), label].sum())

    def leaf(groups, label=None):
        size = int(problem.size[list(groups)].sum())
        if 0 < size < problem.N_min:
            return np.inf
        if loss is not None:
            return loss(groups)
        return (
            charged(groups, label)
            if label is not None
            else min(charged(groups, k) for k in range(problem.charges.shape[1]))
        )

    @cache
    def best(groups, level, untouched):
        last = level == problem.depth - 1
        if problem.given_labels and last:
            value = min(leaf(groups, 0), leaf(groups, 1)) + (problem.least_price if untouched else 0.0)
        elif problem.given_labels:
            value = best(groups, level + 1, untouched)
        else:
            value = leaf(groups)
        least = -1.0 if last else least_intercept
        for F in supports:
            price = float(problem.prices[level, list(F)].sum())
            if price >= value:
                continue
            for left, right in dichotomies(F, groups, least):
                if last and problem.given_labels:
                    below = leaf(left, 0) + leaf(right, 1)
                elif last:
                    below = leaf(left) + leaf(right)
                else:
                    below = best(left, level + 1, False) + best(right, level + 1, False)
                value = min(value, price + below)
        return value

    return best(tuple(range(problem.n_groups)), 0, True)


def value_of(problem, tree, loss=None):
    """Return the value of a tree that a search has found, infinite where a split keeps no gap."""

    def below(part, groups, level, split):
        if isinstance(part, Split):
            used = part.w != 0
            price = float(problem.prices[part.level][used].sum())
            size = np.abs(part.w).sum() if problem.l1 else 1.0
            sides = ([], [])
            for g in groups:
                score = problem.X[problem.first[g] : problem.first[g + 1]] @ part.w + part.b
                room = problem.gap * size / 2 - 1e-6 * max(1.0, size)
                if (score >= room).all():
                    sides[1].append(g)
                elif (score <= -room).all():
                    sides[0].append(g)
                else:
                    return np.inf
            return price + sum(
                below(child, side, part.level + 1, split or bool(used.any()))
                for child, side in zip((part.left, part.right), sides, strict=True)
            )
        size = int(problem.size[groups].sum())
        if 0 < size < problem.N_min:
            return np.inf
        if loss is not None:
            return loss(groups)
        charges = problem.charges[groups].sum(axis=0)
        value = charges.min() if part is None else charges[part]
        return float(value) + (0.0 if split else problem.least_price)

    return below(tree, list(range(problem.n_groups)), 0, False)
