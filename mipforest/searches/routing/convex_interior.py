"""Compiled: a primal-dual interior point for a convex node of a routing, of which every end proves a bound.

The normal matrix has low rank: one p x p system per iteration, as in
:mod:`mipforest.searches.routing.interior_point`, with Mehrotra's predictor and corrector. The rows of the l1 norm have
slacks of their own. Features to select are smoothed by a barrier; their curvature changes along a step, which is made
shorter where it overshoots.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.searches import entry, glue, kernel
from mipforest.searches.routing.convex_node import (
    ABOVE,
    BELOW,
    COUPLED,
    DA,
    DABOVE,
    DBELOW,
    DROOM_ABOVE,
    DROOM_BELOW,
    DS,
    DT,
    GRADIENT,
    INVERSE,
    KEPT,
    LEFT,
    MOST_INVERSE,
    NO_CAPACITY,
    R1,
    R2,
    R3,
    RHS,
    ROOM_ABOVE,
    ROOM_BELOW,
    THETA,
    TIGHT,
    Y1,
    Y2,
    Z1,
    A,
    Charge,
    Node,
    S,
    U,
    W,
    conjugate,
    factor,
    multiply,
    smooth,
)  # fmt: skip
from mipforest.searches.routing.interior_point import solve_factored

#: A variable closer than this to a bound, relative to its capacity up to some size, is put on it.
_NEAR, _NEAR_MOST = 1e-9, 1e3

#: Least curvature of a variable's barrier: below, the low rank of the normal matrix costs too many digits.
_LEAST_THETA = 1e-9

#: Share of the way to the boundary that a step may go.
_TO_BOUNDARY = 0.99

#: Features to select are smoothed by this share of the mean complementarity. A step that overshoots, as its slope at
#: the end is below minus this share of that at its start, is made shorter, at most so often.
_CENTRED, _OVERSHOOT, _SHORTER = 0.2, 0.3, 8

#: Violation of the dual's equality up to which it counts as satisfied before the end is rounded to it, and that of the
#: conditions of optimality, relative to the value.
_BALANCED_ENOUGH, _STATIONARY = 1e-6, 1e-2

#: Rounding errors are all that is left where complementarity is below this share of the accuracy, or where it rises so
#: much after it was below a share of the value.
_EXHAUSTED, _DIVERGED, _NEAR_THE_END = 1e-2, 1e1, 1e-2

#: A sum of variables below this counts as the 0 that it should be; the rest is charged to the value.
_BALANCED = 1e-14

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
_WITHIN = 1.0 + 1e-10


@glue
def _solve(node: Node, y: FloatArray, out: FloatArray) -> None:
    """Write the solution of the node's Newton system for a right-hand side (m,), its normal matrix factored."""
    Z, v, f = node.Z, node.v, node.f
    for r in range(len(y)):
        out[r] = y[r] / v[THETA, r]
    multiply(Z, out, f[R1])
    solve_factored(node.M, f[R1])
    for r in range(len(y)):
        total = 0.0
        for j in range(f.shape[1]):
            total += Z[r, j] * f[R1, j]
        out[r] = (y[r] - total) / v[THETA, r]


@kernel
def _without_overshoot(node: Node, norm: Charge, step: float, mu: float, multiplier: float) -> float:
    """Return what share of a step to take, so that the smoothed dual does not fall steeply at its end."""
    Z, d, v, f = node.Z, node.d, node.v, node.f
    m, p = Z.shape
    multiply(Z, v[DA], f[R2])
    for j in range(p):
        f[R3, j] = f[U, j]
    share, at_start, slope = 1.0, 0.0, 0.0
    for attempt in range(_SHORTER):
        length = 0.0 if attempt == 0 else share * step
        slope = 0.0
        for r in range(m):
            change = node.reward[r] - multiplier * d[r] + mu / (v[A, r] + length * v[DA, r])
            if v[TIGHT, r] > 0.0:
                change -= mu / (v[LEFT, r] - length * v[DA, r])
            slope += change * v[DA, r]
        for j in range(p):
            f[U, j] = f[R3, j] + length * f[R2, j]
        smooth(norm, f, mu)
        for j in range(p):
            slope -= f[W, j] * f[R2, j]
        if attempt == 0:
            at_start = slope
        elif at_start <= 0.0 or slope >= -_OVERSHOOT * at_start:
            break
        else:
            share *= 0.4
    for j in range(p):
        f[U, j] = f[R3, j]
    return share


@entry
def solve_node(
    node: Node, norm: Charge, bias_limit: float, accuracy: float, most: float, stop: float
) -> float:
    """Solve a node's dual by a primal-dual interior point, and leave a feasible point in the row :data:`A`.

    Parameters
    ----------
    node, norm
        The node, and its norm.
    bias_limit
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    accuracy, most, stop
        Gap relative to the value, iterations, and the value from which on no more is needed.

    Returns
    -------
    Iterations; ``node.result`` has the value that is proven, and the bias.
    """
    Z, d, v, f = node.Z, node.d, node.v, node.f
    m, p = Z.shape
    rises, falls, pairs, selects = False, False, 0.0, False
    node.result[0], node.result[1], node.result[2] = 0.0, 0.0, 0.0
    for j in range(p):
        f[U, j], f[W, j] = 0.0, 0.0
        selects = selects or norm.selectable[j] > 0.0
    for r in range(m):
        v[A, r] = 0.0
        rises, falls = rises or d[r] > 0.0, falls or d[r] < 0.0
    if not (rises and falls):
        best = 0.0
        for r in range(m):
            best = max(best, node.reward[r])
        node.result[1] = best if rises else -best
        return 0.0
    for r in range(m):
        limited = node.capacity[r] < NO_CAPACITY
        v[A, r] = min(1.0, 0.5 * node.capacity[r])
        v[LEFT, r] = node.capacity[r] - v[A, r] if limited else 1.0
        v[S, r] = 1.0
        v[TIGHT, r] = 1.0 if limited else 0.0
        pairs += 2.0 if limited else 1.0
    if norm.l1:
        pairs += 2.0 * p
        multiply(Z, v[A], f[U])
        for j in range(p):
            f[ROOM_ABOVE, j], f[ROOM_BELOW, j] = 1.0 + abs(f[U, j]), 1.0 + abs(f[U, j])
            f[ABOVE, j], f[BELOW, j] = 0.5, 0.5
    iterations, multiplier, before, known, smoothing = 0.0, 0.0, np.inf, -np.inf, 0.0
    while iterations < most:
        iterations += 1.0
        multiply(Z, v[A], f[U])
        balance, reward, complementarity, outside = 0.0, 0.0, 0.0, 0.0
        for r in range(m):
            balance += d[r] * v[A, r]
            reward += v[A, r] * node.reward[r]
            complementarity += v[A, r] * v[S, r] + v[LEFT, r] * v[TIGHT, r]
            v[THETA, r] = max(v[S, r] / v[A, r] + v[TIGHT, r] / v[LEFT, r], _LEAST_THETA)
        objective = reward
        if norm.l1:
            for j in range(p):
                above, below = f[ROOM_ABOVE, j], f[ROOM_BELOW, j]
                complementarity += above * f[ABOVE, j] + below * f[BELOW, j]
                outside = max(outside, abs(1.0 - f[U, j] - above), abs(1.0 + f[U, j] - below))
                f[W, j] = f[ABOVE, j] - f[BELOW, j]
                f[INVERSE, j] = min(1.0 / (f[ABOVE, j] / above + f[BELOW, j] / below), MOST_INVERSE)
                f[COUPLED, j] = 0.0
        else:
            objective -= conjugate(norm, f[U])
            smoothing = _CENTRED * complementarity / pairs
            smooth(norm, f, smoothing)
        worst, small = 0.0, 1.0 + abs(objective)
        for r in range(m):
            score = 0.0
            for j in range(p):
                score += Z[r, j] * f[W, j]
            v[Z1, r] = score
            worst = max(worst, abs(score - node.reward[r] + multiplier * d[r] - v[S, r] + v[TIGHT, r]))
        met = abs(balance) < _BALANCED_ENOUGH * small and outside < _BALANCED_ENOUGH
        if complementarity < accuracy * small and met and worst < _STATIONARY * small:
            break
        if met and objective > stop * (1.0 + 1e-6) + 1e-9:
            break
        # Rounding errors are all that is left; where no hyperplane keeps the sides the dual rises without end.
        diverges = (
            complementarity > _DIVERGED * before
            and before < _NEAR_THE_END * small
            and objective < 2.0 * known
        )
        if diverges or not complementarity >= _EXHAUSTED * accuracy * small:
            if known > -np.inf:
                for r in range(m):
                    v[A, r] = v[KEPT, r]
            break
        before = min(before, complementarity)
        if met and objective > known:
            known = objective
            for r in range(m):
                v[KEPT, r] = v[A, r]
        factor(node, node.M, 0.0)
        for r in range(m):
            v[DA, r], v[DS, r], v[DT, r] = 0.0, 0.0, 0.0
        for j in range(p):
            f[DROOM_ABOVE, j], f[DROOM_BELOW, j], f[DABOVE, j], f[DBELOW, j] = 0.0, 0.0, 0.0, 0.0
        _solve(node, d, v[Y2])
        denominator, aim, primal, dual = 0.0, 0.0, 1.0, 1.0
        for r in range(m):
            denominator += d[r] * v[Y2, r]
        after = multiplier
        for phase in range(2):
            if norm.l1:
                for j in range(p):
                    above, below = f[ROOM_ABOVE, j], f[ROOM_BELOW, j]
                    f[GRADIENT, j] = (
                        aim - f[DROOM_ABOVE, j] * f[DABOVE, j] - f[ABOVE, j] * (1.0 - f[U, j] - above)
                    ) / above - (
                        aim - f[DROOM_BELOW, j] * f[DBELOW, j] - f[BELOW, j] * (1.0 + f[U, j] - below)
                    ) / below
            for r in range(m):
                score = v[Z1, r]
                if norm.l1:
                    score = 0.0
                    for j in range(p):
                        score += Z[r, j] * f[GRADIENT, j]
                v[RHS, r] = node.reward[r] - score + (aim - v[DA, r] * v[DS, r]) / v[A, r]
                if v[TIGHT, r] > 0.0:
                    v[RHS, r] -= (aim + v[DA, r] * v[DT, r]) / v[LEFT, r]
            _solve(node, v[RHS], v[Y1])
            after = balance
            for r in range(m):
                after += d[r] * v[Y1, r]
            after = after / denominator if denominator > 1e-300 else 0.0
            primal, dual = 1.0, 1.0
            for r in range(m):
                step = v[Y1, r] - after * v[Y2, r]
                ds = (aim - v[DA, r] * v[DS, r] - v[S, r] * step) / v[A, r] - v[S, r]
                dt = 0.0
                if v[TIGHT, r] > 0.0:
                    dt = (aim + v[DA, r] * v[DT, r] + v[TIGHT, r] * step) / v[LEFT, r] - v[TIGHT, r]
                v[DA, r], v[DS, r], v[DT, r] = step, ds, dt
                if step < 0.0:
                    primal = min(primal, -v[A, r] / step)
                elif v[TIGHT, r] > 0.0 and step > 0.0:
                    primal = min(primal, v[LEFT, r] / step)
                if ds < 0.0:
                    dual = min(dual, -v[S, r] / ds)
                if dt < 0.0:
                    dual = min(dual, -v[TIGHT, r] / dt)
            if norm.l1:
                multiply(Z, v[DA], f[R2])
                for j in range(p):
                    above, below, du = f[ROOM_ABOVE, j], f[ROOM_BELOW, j], f[R2, j]
                    da, db = 1.0 - f[U, j] - above - du, 1.0 + f[U, j] - below + du
                    up = (aim - f[DROOM_ABOVE, j] * f[DABOVE, j] - f[ABOVE, j] * da) / above - f[ABOVE, j]
                    down = (aim - f[DROOM_BELOW, j] * f[DBELOW, j] - f[BELOW, j] * db) / below - f[BELOW, j]
                    f[DROOM_ABOVE, j], f[DROOM_BELOW, j], f[DABOVE, j], f[DBELOW, j] = da, db, up, down
                    if da < 0.0:
                        primal = min(primal, -above / da)
                    if db < 0.0:
                        primal = min(primal, -below / db)
                    if up < 0.0:
                        dual = min(dual, -f[ABOVE, j] / up)
                    if down < 0.0:
                        dual = min(dual, -f[BELOW, j] / down)
            if phase == 0:
                left = 0.0
                for r in range(m):
                    left += (v[A, r] + primal * v[DA, r]) * (v[S, r] + dual * v[DS, r])
                    if v[TIGHT, r] > 0.0:
                        left += (v[LEFT, r] - primal * v[DA, r]) * (v[TIGHT, r] + dual * v[DT, r])
                if norm.l1:
                    for j in range(p):
                        above = f[ROOM_ABOVE, j] + primal * f[DROOM_ABOVE, j]
                        below = f[ROOM_BELOW, j] + primal * f[DROOM_BELOW, j]
                        left += above * (f[ABOVE, j] + dual * f[DABOVE, j])
                        left += below * (f[BELOW, j] + dual * f[DBELOW, j])
                aim = max((left / complementarity) ** 3, 1e-4) * complementarity / pairs
                if selects:  # its curvature changes along the way: no correction of second order
                    aim = smoothing
                    for r in range(m):
                        v[DA, r] = 0.0
        primal, dual = min(1.0, _TO_BOUNDARY * primal), min(1.0, _TO_BOUNDARY * dual)
        if selects:
            short = _without_overshoot(node, norm, primal, smoothing, after)
            primal, dual = primal * short, dual * short
        for r in range(m):
            v[A, r] += primal * v[DA, r]
            if v[TIGHT, r] > 0.0:
                v[LEFT, r] -= primal * v[DA, r]
                v[TIGHT, r] += dual * v[DT, r]
            v[S, r] += dual * v[DS, r]
        if norm.l1:
            for j in range(p):
                f[ROOM_ABOVE, j] += primal * f[DROOM_ABOVE, j]
                f[ROOM_BELOW, j] += primal * f[DROOM_BELOW, j]
                f[ABOVE, j] += dual * f[DABOVE, j]
                f[BELOW, j] += dual * f[DBELOW, j]
        multiplier += dual * (after - multiplier)
    node.result[1], node.result[2] = multiplier, 1.0
    _to_feasible(node, norm, bias_limit)
    return iterations


@glue
def _to_feasible(node: Node, norm: Charge, bias_limit: float) -> None:
    """Put variables near a bound on it, repair the equality, then the unit cube; write the value that is proven."""
    Z, d, v, f = node.Z, node.d, node.v, node.f
    balance, m, p = 0.0, Z.shape[0], Z.shape[1]
    for r in range(m):
        capacity, a = node.capacity[r], v[A, r]
        near = _NEAR * min(capacity, _NEAR_MOST)
        v[A, r] = 0.0 if a < near else (capacity if capacity - a < near else a)
        balance += d[r] * v[A, r]
    for inner in range(2):
        for r in range(m):
            a, capacity = v[A, r], node.capacity[r]
            if abs(balance) >= _BALANCED and (inner == 1 or 0.0 < a < capacity):
                v[A, r] = min(max(a - d[r] * balance, 0.0), capacity)
                balance += d[r] * (v[A, r] - a)
    multiply(Z, v[A], f[U])
    scale = 1.0
    if norm.l1:
        for j in range(p):
            scale = max(scale, abs(f[U, j]) * _WITHIN)
    value, balance = 0.0, 0.0
    for r in range(m):
        if scale > 1.0:
            v[A, r] /= scale
        value += v[A, r] * node.reward[r]
        balance += d[r] * v[A, r]
    if scale > 1.0:
        multiply(Z, v[A], f[U])
    node.result[0] = value - conjugate(norm, f[U]) - abs(balance) * bias_limit
