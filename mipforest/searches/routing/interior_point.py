"""Compiled: a primal-dual interior point for one node of a routing, where pair steps do not converge.

That is so with large capacities, or where sides nearly clash. The normal matrix has low rank: one p x p system per
iteration, whatever the number of samples (Ferris, Munson, *Interior-point methods for massive support vector machines*,
SIAM J. Optim. 13, 2002), with Mehrotra's predictor and corrector. Its end is rounded to a feasible point of the dual
(:mod:`mipforest.searches.routing.node_dual`), which is a bound however far the iterations came.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compiled

#: A capacity from here on counts as none.
_NO_CAPACITY = 1e11


@compiled
def cholesky(M: FloatArray) -> None:
    """Factorise a positive definite matrix in place; its lower triangle then holds the factor."""
    q = M.shape[0]
    for j in range(q):
        pivot = M[j, j]
        for s in range(j):
            pivot -= M[j, s] * M[j, s]
        root = np.sqrt(max(pivot, 1e-300))
        M[j, j] = root
        for i in range(j + 1, q):
            entry = M[i, j]
            for s in range(j):
                entry -= M[i, s] * M[j, s]
            M[i, j] = entry / root


@compiled
def solve_factored(L: FloatArray, rhs: FloatArray) -> None:
    """Solve ``L L' x = rhs`` in place for a vector."""
    q = L.shape[0]
    for i in range(q):
        entry = rhs[i]
        for s in range(i):
            entry -= L[i, s] * rhs[s]
        rhs[i] = entry / L[i, i]
    for i in range(q - 1, -1, -1):
        entry = rhs[i]
        for s in range(i + 1, q):
            entry -= L[s, i] * rhs[s]
        rhs[i] = entry / L[i, i]


@compiled
def interior_point(
    X: FloatArray,
    group: IntArray,
    slope: FloatArray,
    rate: FloatArray,
    capacity: FloatArray,
    active: IntArray,
    n_active: int,
    found: FloatArray,
    most: int,
    stop: float,
) -> int:
    """Solve the dual by a primal-dual interior point; write a feasible point near its end into ``found``.

    Parameters
    ----------
    X
        (G, p) features of the groups.
    group, slope, rate, capacity, active, n_active
        As for :func:`pair_steps`.
    found
        (m,) variables; those that are active are overwritten.
    most, stop
        Iterations, and the value from which on no more is needed.

    Returns
    -------
    Iterations; 0 where only ``a = 0`` is feasible, as all directions agree.
    """
    m, p = n_active, X.shape[1]
    Z, reward, d, cap = np.empty((m, p)), np.empty(m), np.empty(m), np.empty(m)
    rises, falls = False, False
    for r in range(m):
        k = active[r]
        d[r], cap[r], reward[r] = slope[k], capacity[k], rate[k] * slope[k]
        found[k] = 0.0
        if d[r] > 0:
            rises = True
        else:
            falls = True
        for j in range(p):
            Z[r, j] = d[r] * X[group[k], j]
    if not (rises and falls):
        return 0
    a, s, t = np.empty(m), np.ones(m), np.zeros(m)
    pairs = 0
    for r in range(m):
        limited = cap[r] < _NO_CAPACITY
        a[r] = min(1.0, 0.5 * cap[r]) if limited else 1.0
        if limited:
            t[r] = 1.0
        pairs += 2 if limited else 1
    multiplier, iterations = 0.0, 0
    w, M, W = np.empty(p), np.empty((p, p)), np.empty((m, p))
    residual, theta = np.empty(m), np.empty(m)
    da, ds, dt, y1, y2 = np.zeros(m), np.zeros(m), np.zeros(m), np.empty(m), np.empty(m)
    r1, r2, z1, z2, score = np.empty(p), np.empty(p), np.empty(m), np.empty(m), np.empty(m)
    while iterations < most:
        iterations += 1
        np.dot(a, Z, w)
        np.dot(Z, w, score)
        balance, rewards, complementarity = 0.0, 0.0, 0.0
        for r in range(m):
            balance += d[r] * a[r]
            rewards += reward[r] * a[r]
            complementarity += a[r] * s[r]
            if cap[r] < _NO_CAPACITY:
                complementarity += (cap[r] - a[r]) * t[r]
        squared, worst = 0.0, 0.0
        for j in range(p):
            squared += w[j] * w[j]
        for r in range(m):
            residual[r] = score[r] - reward[r] + multiplier * d[r] - s[r] + t[r]
            worst = max(worst, abs(residual[r]))
        objective = rewards - 0.5 * squared
        balanced = abs(balance) < 1e-6 * (1.0 + abs(rewards))
        if worst < 1e-6 and balanced and complementarity < 1e-8 * (1.0 + abs(objective)):
            break
        if abs(balance) < 1e-9 * (1.0 + abs(rewards)) and objective > stop * (1.0 + 1e-6) + 1e-9:
            break
        mu = complementarity / pairs
        for r in range(m):
            theta[r] = s[r] / a[r]
            if cap[r] < _NO_CAPACITY:
                theta[r] += t[r] / (cap[r] - a[r])
            theta[r] = max(theta[r], 1e-12)
            shrink = 1.0 / np.sqrt(theta[r])
            for j in range(p):
                W[r, j] = Z[r, j] * shrink
        np.dot(W.T, W, M)
        for i in range(p):
            M[i, i] += 1.0
        cholesky(M)
        centring = 0.0
        for phase in range(2):
            for r in range(m):
                c1 = -a[r] * s[r]
                c2 = 0.0
                if phase == 1:
                    c1 += centring * mu - da[r] * ds[r]
                right = -residual[r] + c1 / a[r]
                if cap[r] < _NO_CAPACITY:
                    c2 = -(cap[r] - a[r]) * t[r]
                    if phase == 1:
                        c2 += centring * mu + da[r] * dt[r]
                    right -= c2 / (cap[r] - a[r])
                y1[r], y2[r] = right / theta[r], d[r] / theta[r]
            np.dot(y1, Z, r1)
            if phase == 0:
                np.dot(y2, Z, r2)
                solve_factored(M, r2)
                np.dot(Z, r2, z2)
            solve_factored(M, r1)
            np.dot(Z, r1, z1)
            numerator, denominator = balance, 0.0
            for r in range(m):
                y1[r] -= z1[r] / theta[r]
                y2[r] -= z2[r] / theta[r]
                numerator += d[r] * y1[r]
                denominator += d[r] * y2[r]
            change = numerator / denominator if denominator > 1e-300 else 0.0
            primal, dual = 1.0, 1.0
            for r in range(m):
                c1 = -a[r] * s[r]
                if phase == 1:
                    c1 += centring * mu - da[r] * ds[r]
                step = y1[r] - change * y2[r]
                ds_new = (c1 - s[r] * step) / a[r]
                if cap[r] < _NO_CAPACITY:
                    c2 = -(cap[r] - a[r]) * t[r]
                    if phase == 1:
                        c2 += centring * mu + da[r] * dt[r]
                    dt[r] = (c2 + t[r] * step) / (cap[r] - a[r])
                    if step > 0.0:
                        primal = min(primal, (cap[r] - a[r]) / step)
                    if dt[r] < 0.0:
                        dual = min(dual, -t[r] / dt[r])
                da[r], ds[r] = step, ds_new
                if step < 0.0:
                    primal = min(primal, -a[r] / step)
                if ds_new < 0.0:
                    dual = min(dual, -s[r] / ds_new)
            if phase == 0:
                after = 0.0
                for r in range(m):
                    after += (a[r] + primal * da[r]) * (s[r] + dual * ds[r])
                    if cap[r] < _NO_CAPACITY:
                        after += (cap[r] - a[r] - primal * da[r]) * (t[r] + dual * dt[r])
                centring = (after / complementarity) ** 3
        primal, dual = min(1.0, 0.995 * primal), min(1.0, 0.995 * dual)
        for r in range(m):
            a[r] += primal * da[r]
            s[r] += dual * ds[r]
            t[r] += dual * dt[r]
        multiplier += dual * change
    _round_to_feasible(a, d, cap)
    for r in range(m):
        found[active[r]] = a[r]
    return iterations


@compiled
def _round_to_feasible(a: FloatArray, d: FloatArray, cap: FloatArray) -> None:
    """Put variables near a bound on it, and repair the equality by those with room, in place."""
    balance = 0.0
    for r in range(len(a)):
        near = 1e-9 * min(cap[r], 1e3)
        if a[r] < near:
            a[r] = 0.0
        if cap[r] < _NO_CAPACITY and cap[r] - a[r] < near:
            a[r] = cap[r]
        balance += d[r] * a[r]
    for inner in range(2):
        for r in range(len(a)):
            if abs(balance) < 1e-14:
                return
            if inner == 0 and (a[r] == 0.0 or a[r] == cap[r]):
                continue
            moved = min(max(a[r] - balance * d[r], 0.0), cap[r])
            balance += d[r] * (moved - a[r])
            a[r] = moved
