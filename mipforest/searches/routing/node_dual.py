r"""Compiled kernels for one node of a routing: a support vector machine whose samples may have to keep a side.

For the samples that reach a branch node, with hinge loss and half the squared Euclidean norm, the dual is

.. math::

    \max_{0 \le a \le U}\; \sum_k p_k a_k - \tfrac12 \Bigl\| \sum_k a_k d_k x_{g(k)} \Bigr\|^2
    \quad \text{subject to} \quad \sum_k a_k d_k = 0 .

Variable k belongs to the group g(k) of equal samples. A margin of class :math:`y` has :math:`d = y`, reward
:math:`p = 1` and capacity :math:`U = C` times the weight of the group's samples of that class; a side that must be
kept has :math:`d = 1, p = 0` (right) or :math:`d = -1, p = \varepsilon` (left) and no capacity. **Every feasible a
gives a lower bound on the node's value**, so a warm start, an early stop and an inexact solver are all safe.

Two solvers. Pair steps (sequential minimal optimisation with second-order selection: Fan, Chen, Lin, *Working set
selection using second order information for training support vector machines*, JMLR 6, 2005), which cost microseconds
where little has changed since the warm start, stand here; an interior point takes over where they do not converge
(:mod:`mipforest.searches.routing.interior_point`).

**Notation.** A node's variables are numbered ``2 g + c`` for the margin of group g and class c (0: -1, 1: +1), and
``2 G + g`` for its side. ``score`` (G,) holds :math:`w^\top x_g` for the current :math:`w = \sum_k a_k d_k x_{g(k)}`;
``slope`` is d, ``gain_rate`` is :math:`p_k d_k`, what the score of k would have to be.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compiled

#: Capacity that stands for none.
UNLIMITED = 1e12

#: Least curvature of a pair step: two groups of equal samples have none.
_LEAST_CURVATURE = 1e-12

#: A variable closer than this to a bound (relative to the capacity above) is put on it.
_AT_BOUND = 1e-13


@compiled
def can_rise(a: float, capacity: float, slope: float) -> bool:
    """Whether the variable may move so that ``a * slope`` grows."""
    return a < capacity if slope > 0 else a > 0.0


@compiled
def can_fall(a: float, capacity: float, slope: float) -> bool:
    """Whether the variable may move so that ``a * slope`` falls."""
    return a > 0.0 if slope > 0 else a < capacity


@compiled
def room_to_rise(a: float, capacity: float, slope: float) -> float:
    """How far the variable may move so that ``a * slope`` grows."""
    return capacity - a if slope > 0 else a


@compiled
def room_to_fall(a: float, capacity: float, slope: float) -> float:
    """How far the variable may move so that ``a * slope`` falls."""
    return a if slope > 0 else capacity - a


@compiled
def pair_steps(
    K: FloatArray,
    group: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    a: FloatArray,
    score: FloatArray,
    active: IntArray,
    n_active: int,
    value: float,
    tolerance: float,
    most: int,
    stop: float,
) -> tuple[float, float, int]:
    """Take pair steps until the duality conditions hold to a tolerance, or the value exceeds ``stop``.

    Parameters
    ----------
    K
        (G, G) inner products of the groups.
    group, slope, rate, capacity
        (m,) of each variable: its group, d, ``p d``, U.
    a, score
        (m,) variables and (G,) scores of the groups; changed in place.
    active, n_active
        Numbers of the variables with a capacity, and how many there are.
    value
        Dual value of ``a``.
    tolerance, most, stop
        When to end: violation, number of steps, value.

    Returns
    -------
    value, bias, steps
    """
    bias, steps = 0.0, 0
    while steps < most:
        up, best_up, low, least = -1, -np.inf, -1, np.inf
        for q in range(n_active):
            k = active[q]
            missing = rate[k] - score[group[k]]
            if missing > best_up and can_rise(a[k], capacity[k], slope[k]):
                best_up, up = missing, k
            if missing < least and can_fall(a[k], capacity[k], slope[k]):
                least, low = missing, k
        if up < 0 or low < 0:
            bias = best_up if up >= 0 else (least if low >= 0 else 0.0)
            break
        bias = 0.5 * (best_up + least)
        if best_up - least < tolerance:
            break
        i = group[up]
        Ki, Kii = K[i], K[i, i]
        most_gained = 0.0
        for q in range(n_active):
            k = active[q]
            violation = best_up - (rate[k] - score[group[k]])
            if violation > 0.0 and can_fall(a[k], capacity[k], slope[k]):
                j = group[k]
                curvature = max(Kii + K[j, j] - 2.0 * Ki[j], _LEAST_CURVATURE)
                gained = violation * violation / curvature
                if gained > most_gained:
                    most_gained, low = gained, k
        j = group[low]
        curvature = max(Kii + K[j, j] - 2.0 * Ki[j], _LEAST_CURVATURE)
        violation = best_up - (rate[low] - score[j])
        step = min(violation / curvature, room_to_rise(a[up], capacity[up], slope[up]))
        step = min(step, room_to_fall(a[low], capacity[low], slope[low]))
        _move(a, up, slope[up] * step, capacity)
        _move(a, low, -slope[low] * step, capacity)
        Kj = K[j]
        for g in range(len(score)):
            score[g] += step * (Ki[g] - Kj[g])
        value += step * violation - 0.5 * step * step * curvature
        steps += 1
        if value > stop:
            break
    return value, bias, steps


@compiled
def _move(a: FloatArray, k: int, by: float, capacity: FloatArray) -> None:
    a[k] += by
    if a[k] < _AT_BOUND:
        a[k] = 0.0
    if capacity[k] - a[k] < _AT_BOUND * capacity[k]:
        a[k] = capacity[k]


@compiled
def list_partners(
    K: FloatArray,
    group: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    a: FloatArray,
    score: FloatArray,
    active: IntArray,
    n_active: int,
    partner: IntArray,
    partners: FloatArray,
) -> None:
    """Write what a pair step with each active variable needs, for :func:`rise_if_added`.

    Parameters
    ----------
    K, group, slope, rate, capacity, a, score, active, n_active
        As for :func:`pair_steps`.
    partner
        (m,) group of each partner, written.
    partners
        (4, m) violation without the new variable, room to rise, room to fall, and squared norm, written.
    """
    for q in range(n_active):
        k = active[q]
        j = group[k]
        partner[q] = j
        partners[0, q] = rate[k] - score[j]
        partners[1, q] = room_to_rise(a[k], capacity[k], slope[k])
        partners[2, q] = room_to_fall(a[k], capacity[k], slope[k])
        partners[3, q] = K[j, j]


@compiled
def rise_if_added(
    Kg: FloatArray,
    Kgg: float,
    partner: IntArray,
    partners: FloatArray,
    n_active: int,
    missing: float,
    rising: bool,
    capacity: float,
) -> float:
    """Return the most that one pair step with a new variable of group g raises the dual value.

    Parameters
    ----------
    Kg, Kgg
        (G,) inner products of the group with all, and its own.
    partner, partners, n_active
        What :func:`list_partners` wrote.
    missing
        The new variable's rate less the group's score.
    rising
        Whether the new variable's d is 1.
    capacity
        Its capacity.
    """
    best = 0.0
    for q in range(n_active):
        if rising:
            violation, room = missing - partners[0, q], partners[2, q]
        else:
            violation, room = partners[0, q] - missing, partners[1, q]
        if violation > 0.0 and room > 0.0:
            curvature = max(Kgg + partners[3, q] - 2.0 * Kg[partner[q]], _LEAST_CURVATURE)
            step = min(violation / curvature, room, capacity)
            best = max(best, step * (violation - 0.5 * step * curvature))
    return best


@compiled
def scores_and_value(
    K: FloatArray, group: IntArray, slope: FloatArray, rate: FloatArray, a: FloatArray, score: FloatArray
) -> float:
    """Compute the scores (in place) and the dual value of a point from nothing."""
    score[:] = 0.0
    for k in range(len(a)):
        if a[k] > 0.0:
            Kk, weight = K[group[k]], a[k] * slope[k]
            for g in range(len(score)):
                score[g] += weight * Kk[g]
    value = 0.0
    for k in range(len(a)):
        if a[k] > 0.0:
            value += a[k] * slope[k] * (rate[k] - 0.5 * score[group[k]])
    return value


@compiled
def imbalance(slope: FloatArray, a: FloatArray) -> float:
    """``sum a_k d_k``, 0 for a feasible point up to rounding: what the bias may gain per unit."""
    total = 0.0
    for k in range(len(a)):
        if a[k] > 0.0:
            total += a[k] * slope[k]
    return total
