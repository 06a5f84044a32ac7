"""Compiled: a primal-dual interior point for one node of a routing, where pair steps do not converge.

That is so with large capacities, or where sides nearly clash. The normal matrix has low rank: one p x p system per
iteration, whatever the number of samples (Ferris, Munson, *Interior-point methods for massive support vector machines*,
SIAM J. Optim. 13, 2002), with Mehrotra's predictor and corrector. Its end is rounded to a feasible point of the dual
(:mod:`mipforest.searches.routing.node_dual`), which is a bound however far the iterations came.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.searches import glue, kernel
from mipforest.searches.routing.node_dual import (
    GROUP,
    HIGH,
    KEPT,
    LOW,
    RATE,
    Duals,
    Groups,
)

#: A capacity from here on counts as none.
_NO_CAPACITY = 1e11

#: A variable closer than this to a bound, relative to its capacity up to some size, is put on it.
_NEAR, _NEAR_MOST = 1e-9, 1e3

#: Violation of the dual's equality up to which it counts as satisfied, before the end is rounded to it; and that of the
#: conditions of optimality, in multiples of the accuracy.
_BALANCED_ENOUGH, _STATIONARY = 1e-6, 100.0

#: Where the value is above what is asked for by this share and amount, and the dual's equality is violated by less than
#: the last one, no more is needed.
_PAST_SHARE, _PAST, _PAST_BALANCED = 1e-6, 1e-9, 1e-9

#: Least curvature of a variable's barrier, and least divisor: far below what double precision tells apart.
_LEAST_THETA, _LEAST_DIVISOR = 1e-12, 1e-300

#: A sum of variables below this counts as the 0 that it should be; the rest is charged to the value.
_BALANCED = 1e-14


#: Rows for variables: direction 1 or -1, rate along it, whether there is a capacity (0 or 1), and what is left to it;
#: size of the variable, multiplier of 0, and of the capacity; what a step needs.
D, REWARD, LIMITED, LEFT, A, S, TIGHT, THETA, RESIDUAL, DA, DS, DT, Y1, Y2, Z1, Z2 = range(16)

#: Rows for features: weights and right-hand sides.
W, R1, R2 = range(3)


class Interior(NamedTuple):
    """Where an interior point works: m variables and a multiple of 4 rows, p features.

    Attributes
    ----------
    Z, M
        (m, p) directions times features, and (p, p) normal matrix.
    v
        (16, m) rows for variables, from :data:`D` to :data:`Z2`.
    f
        (3, p) rows for features.
    """

    Z: FloatArray
    M: FloatArray
    v: FloatArray
    f: FloatArray


def room_for_interior(most: int, p: int) -> Interior:
    """Return room for nodes of at most this many variables."""
    m = (most + 3) // 4 * 4
    return Interior(np.zeros((m, p)), np.zeros((p, p)), np.zeros((16, m)), np.zeros((3, p)))


@glue
def cholesky(M: FloatArray) -> None:
    """Factorise a positive definite matrix in place; its lower triangle then holds the factor."""
    q = M.shape[0]
    for j in range(q):
        pivot = M[j, j]
        for s in range(j):
            pivot -= M[j, s] * M[j, s]
        root = np.sqrt(max(pivot, _LEAST_DIVISOR))
        M[j, j] = root
        for i in range(j + 1, q):
            entry = M[i, j]
            for s in range(j):
                entry -= M[i, s] * M[j, s]
            M[i, j] = entry / root


@kernel
def solve_factored(L: FloatArray, x: FloatArray) -> None:
    """Solve ``L L' x = b`` in place for a vector."""
    q = L.shape[0]
    for i in range(q):
        entry = x[i]
        for s in range(i):
            entry -= L[i, s] * x[s]
        x[i] = entry / L[i, i]
    for i in range(q - 1, -1, -1):
        x[i] /= L[i, i]
        for s in range(i):
            x[s] -= L[i, s] * x[i]


@glue
def _normal_matrix(Z: FloatArray, v: FloatArray, m: int, M: FloatArray) -> None:
    """Write the lower triangle of ``I + Z' Theta^-1 Z``; the rows of Z are padded with zeros to a multiple of 4."""
    p = M.shape[0]
    for i in range(p):
        for j in range(i):
            M[i, j] = 0.0
        M[i, i] = 1.0
    for r in range(0, m, 4):
        for i in range(p):
            z0, z1 = Z[r, i] / v[THETA, r], Z[r + 1, i] / v[THETA, r + 1]
            z2, z3 = Z[r + 2, i] / v[THETA, r + 2], Z[r + 3, i] / v[THETA, r + 3]
            for j in range(i + 1):
                M[i, j] += z0 * Z[r, j] + z1 * Z[r + 1, j] + z2 * Z[r + 2, j] + z3 * Z[r + 3, j]


@kernel
def _to_features(Z: FloatArray, y: FloatArray, m: int, out: FloatArray) -> None:
    """Write ``Z' y``."""
    for j in range(len(out)):
        out[j] = 0.0
    for r in range(m):
        for j in range(len(out)):
            out[j] += y[r] * Z[r, j]


@kernel
def _to_samples(Z: FloatArray, u: FloatArray, m: int, out: FloatArray) -> None:
    """Write ``Z u``."""
    for r in range(m):
        entry = 0.0
        for j in range(len(u)):
            entry += Z[r, j] * u[j]
        out[r] = entry


@kernel
def interior_point(
    groups: Groups, duals: Duals, room: Interior, t: int, accuracy: float, most: float, stop: float
) -> int:
    """Solve a node's dual by a primal-dual interior point; write a feasible point near its end into the row KEPT.

    Parameters
    ----------
    groups, duals, room, t
        The groups, the duals, where to work, and the node.
    accuracy, most, stop
        Gap between primal and dual relative to the value, iterations, and the value from which on no more is needed.

    Returns
    -------
    Iterations; 0 where only 0 is feasible, as all variables have one direction.
    """
    Z, M, v, f = room
    m, p, pairs = duals.size[t], len(M), 0.0
    rises, falls = False, False
    for r in range((m + 3) // 4 * 4):
        v[THETA, r] = 1.0
        for j in range(p):
            Z[r, j] = 0.0
    for r in range(m):
        g, capacity = duals.name[GROUP, t, r], duals.of[HIGH, t, r] - duals.of[LOW, t, r]
        v[D, r] = 1.0 if duals.of[HIGH, t, r] > 0.0 else -1.0
        rises, falls = rises or v[D, r] > 0.0, falls or v[D, r] < 0.0
        v[REWARD, r] = duals.of[RATE, t, r] * v[D, r]
        for j in range(p):
            Z[r, j] = v[D, r] * groups.X[g, j]
        # Without a capacity there is nothing left to it, and no multiplier: a 1 that never changes, and a 0.
        v[LIMITED, r] = 1.0 if capacity < _NO_CAPACITY else 0.0
        v[A, r] = min(1.0, 0.5 * capacity)
        v[LEFT, r] = capacity - v[A, r] if capacity < _NO_CAPACITY else 1.0
        v[S, r], v[TIGHT, r] = 1.0, v[LIMITED, r]
        pairs += 1.0 + v[LIMITED, r]
        duals.of[KEPT, t, r] = 0.0
    if not (rises and falls):
        return 0
    multiplier, iterations = 0.0, 0
    while iterations < most:
        iterations += 1
        _to_features(Z, v[A], m, f[W])
        _to_samples(Z, f[W], m, v[Z1])
        balance, objective, complementarity, worst = 0.0, 0.0, 0.0, 0.0
        for r in range(m):
            balance += v[D, r] * v[A, r]
            objective += v[A, r] * (v[REWARD, r] - 0.5 * v[Z1, r])
            complementarity += v[A, r] * v[S, r] + v[LEFT, r] * v[TIGHT, r]
            v[RESIDUAL, r] = v[Z1, r] - v[REWARD, r] + multiplier * v[D, r] - v[S, r] + v[TIGHT, r]
            worst = max(worst, abs(v[RESIDUAL, r]))
            v[THETA, r] = max(v[S, r] / v[A, r] + v[TIGHT, r] / v[LEFT, r], _LEAST_THETA)
        small = 1.0 + abs(objective)
        if (
            abs(balance) < _BALANCED_ENOUGH * small
            and complementarity < accuracy * small
            and worst < _STATIONARY * accuracy
        ):
            break
        if abs(balance) < _PAST_BALANCED * small and objective > stop * (1.0 + _PAST_SHARE) + _PAST:
            break
        _normal_matrix(Z, v, m, M)
        cholesky(M)
        for r in range(m):
            v[Y2, r] = v[D, r] / v[THETA, r]
        _to_features(Z, v[Y2], m, f[R2])
        solve_factored(M, f[R2])
        _to_samples(Z, f[R2], m, v[Z2])
        denominator = 0.0
        for r in range(m):
            v[Y2, r] -= v[Z2, r] / v[THETA, r]
            denominator += v[D, r] * v[Y2, r]
            v[DA, r], v[DS, r], v[DT, r] = 0.0, 0.0, 0.0
        aim, change, primal, dual = 0.0, 0.0, 1.0, 1.0
        for phase in range(2):
            for r in range(m):
                c1 = aim - v[A, r] * v[S, r] - v[DA, r] * v[DS, r]
                c2 = v[LIMITED, r] * (aim + v[DA, r] * v[DT, r]) - v[LEFT, r] * v[TIGHT, r]
                v[Y1, r] = (c1 / v[A, r] - c2 / v[LEFT, r] - v[RESIDUAL, r]) / v[THETA, r]
            _to_features(Z, v[Y1], m, f[R1])
            solve_factored(M, f[R1])
            _to_samples(Z, f[R1], m, v[Z1])
            numerator = balance
            for r in range(m):
                v[Y1, r] -= v[Z1, r] / v[THETA, r]
                numerator += v[D, r] * v[Y1, r]
            change = numerator / denominator if denominator > _LEAST_DIVISOR else 0.0
            primal, dual = 1.0, 1.0
            for r in range(m):
                c1 = aim - v[A, r] * v[S, r] - v[DA, r] * v[DS, r]
                c2 = v[LIMITED, r] * (aim + v[DA, r] * v[DT, r]) - v[LEFT, r] * v[TIGHT, r]
                step = v[Y1, r] - change * v[Y2, r]
                v[DA, r], v[DS, r], v[DT, r] = (
                    step,
                    (c1 - v[S, r] * step) / v[A, r],
                    (c2 + v[TIGHT, r] * step) / v[LEFT, r],
                )
                if step < 0.0:
                    primal = min(primal, -v[A, r] / step)
                elif v[LIMITED, r] * step > 0.0:
                    primal = min(primal, v[LEFT, r] / step)
                if v[DS, r] < 0.0:
                    dual = min(dual, -v[S, r] / v[DS, r])
                if v[DT, r] < 0.0:
                    dual = min(dual, -v[TIGHT, r] / v[DT, r])
            if phase == 0:
                after = 0.0
                for r in range(m):
                    after += (v[A, r] + primal * v[DA, r]) * (v[S, r] + dual * v[DS, r])
                    after += (v[LEFT, r] - v[LIMITED, r] * primal * v[DA, r]) * (
                        v[TIGHT, r] + dual * v[DT, r]
                    )
                aim = (after / complementarity) ** 3 * complementarity / pairs
        primal, dual = min(1.0, 0.995 * primal), min(1.0, 0.995 * dual)
        for r in range(m):
            v[A, r] += primal * v[DA, r]
            v[LEFT, r] -= v[LIMITED, r] * primal * v[DA, r]
            v[S, r] += dual * v[DS, r]
            v[TIGHT, r] += dual * v[DT, r]
        multiplier += dual * change
    _round_to_feasible(duals, t, v)
    return iterations


@glue
def _round_to_feasible(duals: Duals, t: int, v: FloatArray) -> None:
    """Put variables near a bound on it, repair the equality by those with room, and write them into the row KEPT."""
    of, balance, m = duals.of, 0.0, duals.size[t]
    for r in range(m):
        low, high, x = of[LOW, t, r], of[HIGH, t, r], v[D, r] * v[A, r]
        near = _NEAR * min(high - low, _NEAR_MOST)
        x = low if x - low < near else (high if high - x < near else x)
        of[KEPT, t, r] = x
        balance += x
    for inner in range(2):
        for r in range(m):
            low, high, x = of[LOW, t, r], of[HIGH, t, r], of[KEPT, t, r]
            if abs(balance) < _BALANCED:
                return
            if inner == 1 or low < x < high:
                of[KEPT, t, r] = min(max(x - balance, low), high)
                balance += of[KEPT, t, r] - x
