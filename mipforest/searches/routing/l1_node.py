"""Compiled: solves a node with the l1 norm by the simplex method, from a basis that is feasible.

A step costs microseconds, most of which price the samples. What is proven is computed from the variables alone
(:func:`prove`): clipped to their bounds, and shrunk until the rows of :mod:`mipforest.searches.routing.l1_basis` hold.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import glue, kernel
from mipforest.searches.routing.l1_basis import (
    AT_LOWER,
    AT_UPPER,
    BASIC,
    COLUMN,
    DIRECTION,
    NO_BOUND,
    POINT,
    SOLVED,
    SUM,
    VALUE,
    Bases,
    Groups,
    add_margins,
    add_side,
    direction_of,
    group_of,
    lower,
    refresh,
    reset,
    reward_of,
    upper,
    write_column,
)

#: Reduced cost up to which nothing is gained; entries of a direction that count as 0; by what a step may leave bounds,
#: so that among almost equal ones the largest entry is taken (Harris, *Pivot selection methods of the Devex LP code*,
#: Mathematical Programming 5, 1973).
_OPTIMAL, _NO_PIVOT, _OUTSIDE = 1e-9, 1e-9, 1e-9

#: Steps after which the inverse is computed anew; steps of length 0, and what counts as 0, after which the first
#: variable enters and leaves that may, against circles; what a value may rise above a limit before its proof.
_ANEW, _STALLED, _NO_LENGTH, _ABOVE = 64, 40, 1e-12, 1e-6

#: What a further variable raises the value by is told less what such an error of its direction may cost, per length;
#: the longest step that is told.
_ERROR, _LONGEST = 1e-9, 1e4

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
_WITHIN = 1.0 + 1e-10


@kernel
def _enter(groups: Groups, bases: Bases, t: int, first_will_do: bool) -> tuple[int, float]:
    """Return the variable that enters the basis, -1 for none, and its reduced cost: the largest, or the first one's."""
    where, y, K = bases.where[t], bases.y[t], len(groups.kinks)
    p, entering, cost, best = groups.X.shape[1], -1, 0.0, _OPTIMAL
    margins = 2 * len(groups.X) * K
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        score = y[p]
        for i in range(p):
            score += y[i] * groups.X[g, i]
        for c in range(2):
            if groups.weight[g, c] > 0.0:
                margin = (2.0 * c - 1.0) * score
                for k in range(K):
                    j = (2 * g + c) * K + k
                    at = where[j]
                    if at != BASIC:
                        lack = groups.kinks[k, 0] - margin
                        gain = lack if at == AT_LOWER else -lack
                        if gain > best:
                            entering, cost, best = j, lack, np.inf if first_will_do else gain
        if where[margins + g] == AT_LOWER:
            side = bases.side[t, g]
            lack = (groups.epsilon if side < 0 else 0.0) - side * score
            if lack > best:
                entering, cost, best = margins + g, lack, np.inf if first_will_do else lack
    first = margins + len(groups.X)
    for i in range(p):
        at = where[first + i]
        if at != BASIC:
            gain = -y[i] if at == AT_LOWER else y[i]
            if gain > best:
                entering, cost, best = first + i, -y[i], np.inf if first_will_do else gain
    return entering, cost


@glue
def _turn(bases: Bases, t: int, sign: float) -> None:
    """Write the direction of basic variables when that of the column changes by one, up (1) or down (-1)."""
    inverse, work, q = bases.inverse[t], bases.work, bases.inverse.shape[1]
    for i in range(q):
        total = 0.0
        for k in range(q):
            total += inverse[i, k] * work[COLUMN, k]
        work[DIRECTION, i] = -sign * total


@kernel
def _leave(groups: Groups, bases: Bases, t: int, first_will_do: bool) -> tuple[int, float]:
    """Return which basic variable meets a bound on the way of the direction, and where; -1: none does."""
    basis, x, direction = bases.basis[t], bases.x[t], bases.work[DIRECTION]
    longest, leaving, length, best = np.inf, -1, np.inf, 0.0
    for phase in range(2):
        for i in range(len(basis)):
            along = direction[i]
            if abs(along) <= _NO_PIVOT:
                continue
            if along < 0.0:
                room = x[i] - lower(groups, basis[i])
            else:
                room = upper(groups, t, basis[i]) - x[i]
                if room > NO_BOUND:
                    continue
            if phase == 0:
                longest = min(longest, (max(room, 0.0) + _OUTSIDE) / abs(along))
            elif max(room, 0.0) / abs(along) <= longest:
                rank = -float(basis[i]) - 1.0 if first_will_do else abs(along)
                if leaving < 0 or rank > best:
                    leaving, length, best = i, max(room, 0.0) / abs(along), rank
    return leaving, length


@kernel
def prove(groups: Groups, bases: Bases, t: int, entering: int, length: float) -> float:
    """Return what the variables prove of a node's value, one that enters moved by a length along the direction.

    Parameters
    ----------
    groups, bases, t
        The groups, the bases, and the node.
    entering, length
        -1 and 0 for the variables as they are.
    """
    net, basis, x, work = bases.net, bases.basis[t], bases.x[t], bases.work
    G, p, K = len(groups.X), groups.X.shape[1], len(groups.kinks)
    margins, value, balance = 2 * G * K, 0.0, 0.0
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        net[g] = 0.0
        for c in range(2):
            for k in range(K):
                j = (2 * g + c) * K + k
                if bases.where[t, j] == AT_UPPER:
                    a = upper(groups, t, j)
                    net[g] += (2.0 * c - 1.0) * a
                    value += a * groups.kinks[k, 0]
    for i in range(p + 1):
        j = basis[i]
        if j < margins + G:
            a = x[i] + (length * work[DIRECTION, i] if length > 0.0 else 0.0)
            a = min(max(a, 0.0), upper(groups, t, j))
            net[group_of(groups, j)] += direction_of(groups, bases, t, j) * a
            value += a * reward_of(groups, bases, t, j)
    if entering >= 0:
        net[group_of(groups, entering)] += direction_of(groups, bases, t, entering) * length
        value += length * reward_of(groups, bases, t, entering)
    for i in range(p):
        work[SUM, i] = 0.0
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        if net[g] != 0.0:
            balance += net[g]
            for i in range(p):
                work[SUM, i] += net[g] * groups.X[g, i]
    scale = 1.0
    for i in range(p):
        scale = max(scale, abs(work[SUM, i]) * _WITHIN)
    proven: float = (value - abs(balance) * groups.bias_limit[t]) / scale
    return proven


@kernel
def solve(groups: Groups, bases: Bases, t: int, most: int, stop: float) -> int:
    """Solve a node in so many steps at most, or up to a value; write what is proven, return the steps."""
    where, basis, x, y = bases.where[t], bases.basis[t], bases.x[t], bases.y[t]
    inverse, work, q = bases.inverse[t], bases.work, bases.inverse.shape[1]
    value, stalled, steps = bases.node[VALUE, t], 0, 0
    bases.node[SOLVED, t] = 0.0
    while steps < most:
        if steps % _ANEW == _ANEW - 1:
            if not refresh(groups, bases, t):
                reset(groups, bases, t)
                refresh(groups, bases, t)
            value = prove(groups, bases, t, -1, 0.0)
            if value > stop:
                break
        j, cost = _enter(groups, bases, t, stalled > _STALLED)
        if j < 0:
            bases.node[SOLVED, t] = 1.0
            break
        steps += 1
        write_column(groups, bases, t, j, work[COLUMN])
        sign = 1.0 if where[j] == AT_LOWER else -1.0
        _turn(bases, t, sign)
        leaving, length = _leave(groups, bases, t, stalled > _STALLED)
        low, high = lower(groups, j), upper(groups, t, j)
        if leaving < 0 and high - low > NO_BOUND:
            # No hyperplane keeps the sides: the direction proves any value.
            away = 2.0 * (max(stop - value, 0.0) + 1.0) / cost if stop < np.inf else 0.0
            bases.node[VALUE, t] = max(bases.node[VALUE, t], prove(groups, bases, t, j, away))
            break
        if length >= high - low:
            length, leaving = high - low, -1
        value += abs(cost) * length
        stalled = stalled + 1 if length < _NO_LENGTH else 0
        for i in range(q):
            x[i] += length * work[DIRECTION, i]
        if leaving < 0:
            where[j] = AT_UPPER if sign > 0.0 else AT_LOWER
            continue
        where[basis[leaving]] = AT_LOWER if work[DIRECTION, leaving] < 0.0 else AT_UPPER
        where[j], basis[leaving] = BASIC, j
        x[leaving] = low + length if sign > 0.0 else high - length
        scale = -sign / work[DIRECTION, leaving]
        for k in range(q):
            inverse[leaving, k] *= scale
        for i in range(q):
            factor = -sign * work[DIRECTION, i]
            if i != leaving and factor != 0.0:
                for k in range(q):
                    inverse[i, k] -= factor * inverse[leaving, k]
        for k in range(q):
            y[k] += cost * inverse[leaving, k]
        if value > stop + _ABOVE * (1.0 + abs(stop)):
            break
    bases.node[POINT, t] = prove(groups, bases, t, -1, 0.0)
    bases.node[VALUE, t] = max(bases.node[VALUE, t], bases.node[POINT, t])
    return steps


@kernel
def rise_if_added(
    groups: Groups, bases: Bases, t: int, g: int, d: float, reward: float, capacity: float
) -> float:
    """Return what one step with a further margin or side of a group raises the value of a node by at least."""
    work, y, p = bases.work, bases.y[t], groups.X.shape[1]
    cost = y[p]
    for i in range(p):
        cost += y[i] * groups.X[g, i]
        work[COLUMN, i] = d * groups.X[g, i]
    work[COLUMN, p] = d
    cost = reward - d * cost
    if cost <= _OPTIMAL:
        return 0.0
    _turn(bases, t, 1.0)
    length = min(_leave(groups, bases, t, False)[1], capacity, _LONGEST)
    value, rise = bases.node[VALUE, t], cost * length
    told: float = bases.node[POINT, t] + rise - value - _ERROR * (1.0 + length) * (value + rise)
    return max(0.0, told)


@glue
def measure_rises(
    groups: Groups, bases: Bases, t: int, n_upper: int, reached: IntArray, rises: FloatArray
) -> None:
    """Measure what one step at node t proves for every group that may be decided there or sent there.

    Parameters
    ----------
    groups, bases, t
        The groups, the bases, and the node.
    n_upper
        Number of nodes above the last level.
    reached
        (G,) nodes that the groups have reached.
    rises
        (3, |B|, G) rises of the value of node t for a group kept left, kept right, or charged there, written.
    """
    parent, K = ((t - 1) // 2 if t > 0 else -1), len(groups.kinks)
    for g in range(len(reached)):
        if reached[g] == t and t < n_upper:
            rises[0, t, g] = rise_if_added(groups, bases, t, g, -1.0, groups.epsilon, np.inf)
            rises[1, t, g] = rise_if_added(groups, bases, t, g, 1.0, 0.0, np.inf)
        elif reached[g] == parent:
            best = 0.0
            for c in range(2):
                weight = groups.C[t] * groups.weight[g, c]
                if weight > 0.0:
                    for k in range(K):
                        capacity, d = weight * groups.kinks[k, 1], 2.0 * c - 1.0
                        best = max(best, rise_if_added(groups, bases, t, g, d, groups.kinks[k, 0], capacity))
            rises[2, t, g] = best


@kernel
def try_added(groups: Groups, bases: Bases, t: int, g: int, side: int, most: int, slack: float) -> float:
    """Return what some steps raise a node's value by with a group charged there (side 0) or kept on a side."""
    where, kept, q = bases.where[t], len(bases.where) - 1, bases.inverse.shape[1]
    value, point, solved, n = bases.node[VALUE, t], bases.node[POINT, t], bases.node[SOLVED, t], bases.size[t]
    for j in range(len(where)):
        bases.where[kept, j] = where[j]
    for i in range(q):
        bases.basis[kept, i], bases.x[kept, i], bases.y[kept, i] = (
            bases.basis[t, i],
            bases.x[t, i],
            bases.y[t, i],
        )
        for k in range(q):
            bases.inverse[kept, i, k] = bases.inverse[t, i, k]
    if side == 0:
        add_margins(groups, bases, t, g)
    else:
        add_side(groups, bases, t, g, side)
    solve(groups, bases, t, most, value + slack)
    rise: float = bases.node[VALUE, t] - value
    for j in range(len(where)):
        where[j] = bases.where[kept, j]
    for i in range(q):
        bases.basis[t, i], bases.x[t, i], bases.y[t, i] = (
            bases.basis[kept, i],
            bases.x[kept, i],
            bases.y[kept, i],
        )
        for k in range(q):
            bases.inverse[t, i, k] = bases.inverse[kept, i, k]
    bases.size[t] = n
    bases.node[VALUE, t], bases.node[POINT, t], bases.node[SOLVED, t] = value, point, solved
    if side != 0:
        bases.side[t, g] = 0
    return rise
