"""Compiled: which sample a dive of the routing search decides next, and what deciding it does to the bound."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compiled
from mipforest.searches.routing.node_dual import UNLIMITED, pair_steps, rise_if_added

#: Candidates that are tried on both sides, the pair steps each gets, and their tolerance.
_CANDIDATES, _TRIAL_STEPS, _TRIAL_TOLERANCE = 4, 30, 1e-3

#: Weight of candidates below the root: a side there is decided for fewer samples.
_BELOW_ROOT = 0.5


@compiled
def promise(left: float, right: float, t: int) -> float:
    """Rank a candidate at node t by the rises of the bound on its sides: the smaller counts most."""
    low, high = min(left, right), max(left, right)
    rank: float = max(low, 1e-9) * max(high, 1e-9) ** 0.3
    return rank if t == 0 else _BELOW_ROOT * rank


@compiled
def rises_by_side(
    K: FloatArray,
    scores: FloatArray,
    partner: IntArray,
    partners: FloatArray,
    n_active: IntArray,
    weight: FloatArray,
    C: FloatArray,
    epsilon: float,
    g: int,
    t: int,
    slack: float,
) -> tuple[float, float]:
    """Rises of the bound, proven by one pair step in each node, if group g goes left or right at node t."""
    Kg, Kgg, n = K[g], K[g, g], n_active[t]
    left = rise_if_added(Kg, Kgg, partner[t], partners[t], n, -epsilon - scores[t, g], False, UNLIMITED)
    right = rise_if_added(Kg, Kgg, partner[t], partners[t], n, -scores[t, g], True, UNLIMITED)
    if left < slack:
        left += _rise_of_child(Kg, Kgg, scores, partner, partners, n_active, weight, C, g, 2 * t + 1)
    if right < slack:
        right += _rise_of_child(Kg, Kgg, scores, partner, partners, n_active, weight, C, g, 2 * t + 2)
    return left, right


@compiled
def _rise_of_child(
    Kg: FloatArray,
    Kgg: float,
    scores: FloatArray,
    partner: IntArray,
    partners: FloatArray,
    n_active: IntArray,
    weight: FloatArray,
    C: FloatArray,
    g: int,
    child: int,
) -> float:
    """Rise of a child's value by one pair step with the better of group g's margins: two steps do not add up."""
    best = 0.0
    for c in range(2):
        if weight[g, c] > 0.0:
            rate = 1.0 if c == 1 else -1.0
            rise = rise_if_added(
                Kg, Kgg, partner[child], partners[child], n_active[child], rate - scores[child, g], c == 1,
                C[child] * weight[g, c],
            )  # fmt: skip
            best = max(best, rise)
    return best


@compiled
def best_by_trial(
    K: FloatArray,
    group: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    duals: FloatArray,
    scores: FloatArray,
    value: FloatArray,
    active: IntArray,
    n_active: IntArray,
    weight: FloatArray,
    C: FloatArray,
    epsilon: float,
    reached: IntArray,
    n_upper: int,
    left_rise: FloatArray,
    right_rise: FloatArray,
    slack: float,
) -> int:
    """Try the most promising groups on both sides for some pair steps; return the best, its rises written."""
    G = len(reached)
    tried = np.zeros(G, np.bool_)
    best_promise, branch = -1.0, -1
    for _ in range(_CANDIDATES):
        candidate, candidate_promise = -1, -1.0
        for g in range(G):
            if reached[g] < n_upper and not tried[g]:
                rank = promise(left_rise[g], right_rise[g], reached[g])
                if rank > candidate_promise:
                    candidate, candidate_promise = g, rank
        if candidate < 0:
            break
        tried[candidate] = True
        t, k = reached[candidate], 2 * G + candidate
        for side in (-1, 1):
            child = 2 * t + 1 if side < 0 else 2 * t + 2
            a, score = duals[t].copy(), scores[t].copy()
            slope[t, k], capacity[t, k] = side, UNLIMITED
            rate[t, k] = -epsilon if side < 0 else 0.0
            active[t, n_active[t]] = k
            here, _, _ = pair_steps(
                K, group, slope[t], rate[t], capacity[t], a, score, active[t], n_active[t] + 1, value[t],
                _TRIAL_TOLERANCE, _TRIAL_STEPS, value[t] + slack,
            )  # fmt: skip
            slope[t, k], rate[t, k], capacity[t, k] = 1.0, 0.0, 0.0
            a, score = duals[child].copy(), scores[child].copy()
            added = 0
            for c in range(2):
                if weight[candidate, c] > 0.0:
                    capacity[child, 2 * candidate + c] = C[child] * weight[candidate, c]
                    active[child, n_active[child] + added] = 2 * candidate + c
                    added += 1
            below, _, _ = pair_steps(
                K, group, slope[child], rate[child], capacity[child], a, score, active[child],
                n_active[child] + added, value[child], _TRIAL_TOLERANCE, _TRIAL_STEPS, value[child] + slack,
            )  # fmt: skip
            capacity[child, 2 * candidate], capacity[child, 2 * candidate + 1] = 0.0, 0.0
            rise = min(here - value[t] + below - value[child], 2.0 * slack)
            if side < 0:
                left_rise[candidate] = rise
            else:
                right_rise[candidate] = rise
        rank = promise(left_rise[candidate], right_rise[candidate], reached[candidate])
        if rank > best_promise:
            best_promise, branch = rank, candidate
    return branch
