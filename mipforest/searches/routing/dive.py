r"""Compiled: one dive of the routing search, from an open node down to a complete routing or until it is cut off.

A **partial routing** says for every group of equal samples which node it has reached: it has passed all nodes above,
and its sides there are decided. The value of a node for the groups that reach it, with the sides decided so far, never
falls when more is decided. So the sum of the nodes' dual values is a lower bound on every tree that extends the partial
routing, and equals a tree's value where all groups are decided at all nodes above the last level.

At each step of a dive:

1. The nodes that changed are solved again from their warm start (:mod:`mipforest.searches.routing.node_dual`).
2. *Screening.* Sending group g to a side adds one variable at 0 to its node, and one per class to the child. One pair
   step with it raises the bound by a known amount; where that reaches the best tree known, g must take the other side,
   and where both do, the routing is cut off. This is repeated until nothing is fixed.
3. *Strong branching.* The most rank candidates are tried for some pair steps on both sides. The dive goes on with
   the cheaper side of the best one; the other becomes an open node.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compiled
from mipforest.searches.routing.branching import best_by_trial, promise, rises_by_side
from mipforest.searches.routing.interior_point import interior_point
from mipforest.searches.routing.node_dual import (
    UNLIMITED,
    imbalance,
    list_partners,
    pair_steps,
    scores_and_value,
)

#: Why a dive ended.
CUT_OFF, COMPLETE, STOPPED = 0, 1, 2

#: Violation up to which pair steps go on, at open nodes and at complete routings.
_TOLERANCE, _FINAL_TOLERANCE = 1e-5, 1e-7

#: Pair steps before the interior point takes over.
_PAIR_STEPS = 200


@compiled
def side_of(reached: int, t: int) -> int:
    """Return -1 or 1 where a group that has reached a node went left or right at t, 2 where it stands at t, else 0."""
    if reached == t:
        return 2
    node = reached
    while node > t:
        parent = (node - 1) // 2
        if parent == t:
            return -1 if node == 2 * t + 1 else 1
        node = parent
    return 0


@compiled
def _settle(
    K: FloatArray,
    X: FloatArray,
    group: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    a: FloatArray,
    score: FloatArray,
    active: IntArray,
    n: int,
    tolerance: float,
    short: int,
    stop: float,
    value: float,
    bias_limit: float,
    counts: IntArray,
) -> tuple[float, float]:
    """Solve a node from its warm start; return a proven value and the bias."""
    value, bias, steps = pair_steps(
        K, group, slope, rate, capacity, a, score, active, n, value, tolerance, short, stop
    )
    counts[0] += steps
    if steps >= short and value <= stop:
        other = a.copy()
        counts[1] += interior_point(X, group, slope, rate, capacity, active, n, other, 80, stop)
        other_score = np.empty_like(score)
        other_value = scores_and_value(K, group, slope, rate, other, other_score)
        other_value -= abs(imbalance(slope, other)) * bias_limit
        if other_value > value:
            a[:] = other
            score[:] = other_score
            value = other_value
    return value, bias


@compiled
def dive(
    K: FloatArray,
    X: FloatArray,
    weight: FloatArray,
    C: FloatArray,
    bias_limit: FloatArray,
    depth: int,
    epsilon: float,
    best: float,
    gap: float,
    reached: IntArray,
    duals: FloatArray,
    most: int,
    stop: IntArray,
    open_reached: IntArray,
    open_duals: FloatArray,
    open_bound: FloatArray,
    bias: FloatArray,
    weights: FloatArray,
    counts: IntArray,
) -> tuple[int, int, float, float]:
    """Dive from a partial routing.

    Parameters
    ----------
    K, X
        (G, G) inner products and (G, p) features of the groups.
    weight
        (G, 2) total weight of the samples of each class in each group.
    C, bias_limit
        (|B|,) penalties, and bounds on the biases of some optimal tree.
    depth, epsilon
        Levels of branch nodes, and the gap that stands for a strict inequality.
    best, gap
        Value of the best tree known, and the relative gap within which nothing more is looked for.
    reached, duals
        (G,) partial routing and (|B|, 3 G) warm start; changed in place.
    most, stop
        Steps at most, and a flag that ends the dive when it is not 0.
    open_reached, open_duals, open_bound
        Room for ``most + 1`` open nodes, which are written here.
    bias, weights
        (|B|,) and (|B|, p): hyperplanes at the end of the dive.
    counts
        (4,) sums of pair steps, interior-point iterations, sides fixed by screening, and steps.

    Returns
    -------
    end, n_open, bound, cut_bound
        Why it ended, the number of open nodes, the bound of the routing at the end, and the least bound at which
        something was cut off on the way (``inf`` if nothing was).
    """
    G, n_nodes, n_upper = K.shape[0], 2**depth - 1, 2 ** (depth - 1) - 1
    first_side, n_variables = 2 * G, 3 * G
    group = np.empty(n_variables, np.int64)
    slope, rate = np.ones((n_nodes, n_variables)), np.zeros((n_nodes, n_variables))
    capacity = np.zeros((n_nodes, n_variables))
    for g in range(G):
        group[2 * g], group[2 * g + 1], group[first_side + g] = g, g, g
        for t in range(n_nodes):
            slope[t, 2 * g], rate[t, 2 * g], rate[t, 2 * g + 1] = -1.0, -1.0, 1.0
            side = side_of(reached[g], t)
            if side != 0:
                capacity[t, 2 * g], capacity[t, 2 * g + 1] = C[t] * weight[g, 0], C[t] * weight[g, 1]
            if side == 1 or side == -1:
                slope[t, first_side + g], capacity[t, first_side + g] = side, UNLIMITED
                rate[t, first_side + g] = -epsilon if side < 0 else 0.0
    active, n_active = np.empty((n_nodes, n_variables), np.int64), np.zeros(n_nodes, np.int64)
    partner, partners = np.empty((n_nodes, n_variables), np.int64), np.empty((n_nodes, 4, n_variables))
    scores, value = np.zeros((n_nodes, G)), np.zeros(n_nodes)
    for t in range(n_nodes):
        value[t] = scores_and_value(K, group, slope[t], rate[t], duals[t], scores[t])
        value[t] -= abs(imbalance(slope[t], duals[t])) * bias_limit[t]
    changed = np.ones(n_nodes, np.bool_)
    left_rise, right_rise = np.empty(G), np.empty(G)
    target = best - gap * abs(best)
    n_open, cut_bound, end = 0, np.inf, STOPPED
    bound = value.sum()
    for _ in range(most):
        counts[3] += 1
        cut, branch = False, -1
        while True:
            total = value.sum()
            for t in range(n_nodes):
                if not changed[t]:
                    continue
                n = 0
                for k in range(n_variables):
                    if capacity[t, k] > 0.0:
                        active[t, n] = k
                        n += 1
                n_active[t] = n
                before = value[t]
                value[t], bias[t] = _settle(
                    K, X, group, slope[t], rate[t], capacity[t], duals[t], scores[t], active[t], n,
                    _TOLERANCE, _PAIR_STEPS, target - (total - before), before, bias_limit[t], counts,
                )  # fmt: skip
                total += value[t] - before
                list_partners(
                    K,
                    group,
                    slope[t],
                    rate[t],
                    capacity[t],
                    duals[t],
                    scores[t],
                    active[t],
                    n,
                    partner[t],
                    partners[t],
                )
                changed[t] = False
                if total >= target:
                    break
            bound = value.sum()
            slack = target - bound
            if slack <= 0.0:
                cut, cut_bound = True, min(cut_bound, bound)
                break
            fixed, best_promise, branch = 0, -1.0, -1
            for g in range(G):
                t = reached[g]
                if t >= n_upper:
                    continue
                rises = rises_by_side(K, scores, partner, partners, n_active, weight, C, epsilon, g, t, slack)
                left_rise[g], right_rise[g] = rises
                if min(rises) >= slack:
                    cut, cut_bound = True, min(cut_bound, bound + min(rises))
                    break
                if max(rises) >= slack:
                    cut_bound = min(cut_bound, bound + max(rises))
                    side = 1 if rises[0] >= slack else -1
                    _decide(reached, slope, rate, capacity, weight, C, epsilon, g, t, side, changed)
                    fixed += 1
                else:
                    rank = promise(rises[0], rises[1], t)
                    if rank > best_promise:
                        best_promise, branch = rank, g
            counts[2] += fixed
            if cut or fixed == 0:
                break
        if cut:
            end = CUT_OFF
            break
        if branch < 0:
            for t in range(n_nodes):
                value[t], bias[t] = _settle(
                    K, X, group, slope[t], rate[t], capacity[t], duals[t], scores[t], active[t], n_active[t],
                    _FINAL_TOLERANCE, 10 * _PAIR_STEPS, np.inf, value[t], bias_limit[t], counts,
                )  # fmt: skip
            bound = value.sum()
            end = COMPLETE
            break
        if stop[0] != 0:
            break
        branch = best_by_trial(
            K, group, slope, rate, capacity, duals, scores, value, active, n_active, weight, C, epsilon,
            reached, n_upper, left_rise, right_rise, slack,
        )  # fmt: skip
        t = reached[branch]
        side = -1 if left_rise[branch] <= right_rise[branch] else 1
        other_bound = bound + max(left_rise[branch], right_rise[branch])
        if other_bound < target:
            open_reached[n_open] = reached
            open_reached[n_open, branch] = 2 * t + 1 if side > 0 else 2 * t + 2
            open_duals[n_open], open_bound[n_open] = duals, other_bound
            n_open += 1
        else:
            cut_bound = min(cut_bound, other_bound)
        _decide(reached, slope, rate, capacity, weight, C, epsilon, branch, t, side, changed)
    if end == STOPPED:
        open_reached[n_open], open_duals[n_open], open_bound[n_open] = reached, duals, bound
        n_open += 1
    for t in range(n_nodes):
        for j in range(X.shape[1]):
            weights[t, j] = 0.0
        for k in range(n_variables):
            if duals[t, k] > 0.0:
                for j in range(X.shape[1]):
                    weights[t, j] += duals[t, k] * slope[t, k] * X[group[k], j]
    return end, n_open, bound, cut_bound


@compiled
def _decide(
    reached: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    weight: FloatArray,
    C: FloatArray,
    epsilon: float,
    g: int,
    t: int,
    side: int,
    changed: BoolArray,
) -> None:
    """Send a group from node t to a side."""
    child = 2 * t + 1 if side < 0 else 2 * t + 2
    k = 2 * len(reached) + g
    reached[g] = child
    slope[t, k], capacity[t, k] = side, UNLIMITED
    rate[t, k] = -epsilon if side < 0 else 0.0
    for c in range(2):
        capacity[child, 2 * g + c] = C[child] * weight[g, c]
    changed[t], changed[child] = True, True
