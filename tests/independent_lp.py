"""Optimal values of small loss-optimal trees by trying every routing, with scipy's LPs and no code of the package."""

from itertools import product

import numpy as np
from scipy.optimize import linprog

#: Tangents of log(1 + exp(-v)) at 0 and at minus infinity, as (intercept, slope); that at infinity is 0.
V0 = ((np.log(2), -0.5), (0.0, -1.0))
HINGE = ((1.0, -1.0),)


def tangent(v):
    """Intercept and slope of the tangent of log(1 + exp(-v)), straight from the definition."""
    slope = -1 / (1 + np.exp(v))
    return np.log(1 + np.exp(-v)) - slope * v, slope


def all_sides(n):
    """All ways to send n samples left (False) or right (True)."""
    return [np.array(sides, dtype=bool) for sides in product((False, True), repeat=n)]


def node_lp(X, sign, C, lines, right=None, epsilon=0.0):
    """Least ``|w|_1 + C sum of the loss`` of a node, inf if no hyperplane keeps the sides."""
    n, p = X.shape
    if n == 0:
        return 0.0
    # Columns: w+, w-, b+, b-, xi.
    score = np.hstack([X, -X, np.ones((n, 1)), -np.ones((n, 1))])
    rows, sides = [], []
    for intercept, slope in lines:
        rows.append(np.hstack([slope * sign[:, None] * score, -np.eye(n)]))
        sides.append(np.full(n, -intercept))
    if right is not None:
        rows.append(np.hstack([np.where(right, -1.0, 1.0)[:, None] * score, np.zeros((n, n))]))
        sides.append(np.where(right, 0.0, -epsilon))
    cost = np.concatenate([np.ones(2 * p), [0, 0], np.full(n, C)])
    found = linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(sides), method="highs")
    return found.fun if found.status == 0 else np.inf


def enumerated_tree(X, sign, C, epsilon, lines, *, sides_of=None, features=None):
    """Optimal value at depth 2 with the loss ``max(0, lines)``, the l1 norm, all levels; C by level.

    ``sides_of(X)`` lists the routings of the root to try; all when left out. With ``features``, each node
    uses one of these sets of features.
    """
    supports = [np.arange(X.shape[1])] if features is None else features
    known = {}

    def node(rows, level, right=None):
        return min(
            node_lp(X[np.ix_(rows, support)], sign[rows], C[level], lines, right, epsilon)
            for support in supports
        )

    def last(members):
        if members not in known:
            known[members] = node(np.array(members, dtype=int), 1)
        return known[members]

    everyone, best = np.arange(len(X)), np.inf
    for right in sides_of(X) if sides_of else all_sides(len(X)):
        left_members, right_members = tuple(everyone[~right]), tuple(everyone[right])
        below = last(left_members) + last(right_members)
        if below < best:
            best = min(best, node(everyone, 0, right) + below)
    return best


def enumerated_errors(X, sign, C, epsilon):
    """Optimal value at depth 2 with misclassification, the l1 norm, all levels; one C for both."""
    norm, known = {}, {}

    def least_norm(members, right):
        key = (members, right.tobytes())
        if key not in norm:
            rows = list(members)
            norm[key] = node_lp(X[rows], sign[rows], 0.0, HINGE, right, epsilon)
        return norm[key]

    def priced(members, right):
        errors = int((right != (sign[list(members)] > 0)).sum())
        return C * errors + least_norm(members, right)

    def last(members):
        if members not in known:
            known[members] = (
                min(priced(members, right) for right in all_sides(len(members))) if members else 0.0
            )
        return known[members]

    everyone = tuple(range(len(X)))
    return min(
        priced(everyone, right)
        + last(tuple(np.flatnonzero(~right).tolist()))
        + last(tuple(np.flatnonzero(right).tolist()))
        for right in all_sides(len(X))
    )


def thresholds(X):
    """Routings of one feature by a threshold, in both directions."""
    order = np.argsort(X[:, 0])
    upper = [np.isin(np.arange(len(X)), order[k:]) for k in range(len(X) + 1)]
    return upper + [~right for right in upper]
