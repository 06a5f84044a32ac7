r"""Compiled: one convex node of a routing, of any loss of kinks and any norm that the search takes.

A loss that falls to 0 along lines is a sum of hinges, :math:`f(v) = \sum_k c_k \max(0, v_k - v)`, with a kink at
each :math:`v_k`. With a norm :math:`\Omega` the dual of a node, for the samples that reach it and the sides that it
keeps, is

.. math::

    \max_{0 \le a \le U}\; \sum_k r_k a_k - \Omega^*(u), \quad u = \sum_k a_k d_k x_{g(k)},
    \quad \text{subject to} \quad \sum_k d_k a_k = 0

with directions d = 1 or -1. A margin has d = y, r = :math:`v_k`, U = C times :math:`c_k` times the weight of its
group; a side has no capacity, d = 1, r = 0 (right) or d = -1, :math:`r = \varepsilon` (left). The conjugate of the
norm is

- half the squared Euclidean norm: :math:`\tfrac12 \|u\|^2`;
- that with features to select, k of them free of cost and :math:`\alpha` for each further one (infinite: none):
  :math:`\min_{0 \le \tau \le \alpha} k \tau + \sum_j \max(0, \tfrac12 u_j^2 - \tau)`. It is the *boolean relaxation* of
  Bertsimas, Pauphilet, Van Parys, *Sparse classification: a scalable discrete optimization perspective*, Machine
  Learning 110 (2021), with their hard budget for infinite :math:`\alpha`: what the k largest charges leave is a
  bound on every choice of features;
- the l1 norm: 0 for :math:`\|u\|_\infty \le 1`, else infinite.

**Every feasible point is a lower bound on the node's value.** An interior point
(:mod:`mipforest.searches.routing.convex_interior`) may end anywhere; its end is moved to a feasible point, and that
point is valued by the formula above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, glue, kernel
from mipforest.searches.routing.interior_point import cholesky, solve_factored

#: A capacity that stands for none, and from which on it counts as none.
UNLIMITED, NO_CAPACITY = 1e12, 1e11

#: Inverse curvatures stay below this: a weight that may not be has no limit.
MOST_INVERSE = 1e10

#: A variable is free if it is farther than this from its bounds, relative to its capacity up to 1.
_FREE = 1e-6

#: What is stored of a variable: itself, what is left to its capacity, multipliers of both, curvature of their barrier,
#: a step and steps of the multipliers, and what a solve needs.
A, LEFT, S, TIGHT, THETA, DA, DS, DT, Y1, Y2, Z1, RHS, KEPT = range(13)

#: What is stored of a feature: u, the weight, the inverse curvature and selection's part of it; slacks of ``u <= 1``
#: and ``u >= -1``, their multipliers, the steps of both, the gradient of a step, and what a solve needs.
(
    U, W, INVERSE, COUPLED, ROOM_ABOVE, ROOM_BELOW, ABOVE, BELOW, DROOM_ABOVE, DROOM_BELOW, DABOVE, DBELOW, GRADIENT,
    R1, R2, R3,
) = range(16)  # fmt: skip

#: A reduced cost up to this promises no rise; no rise of the l1 norm is told to its last digits; lengths at which the
#: end of another step is valued, each this share of the one before.
_NO_GAIN, _TOLD, _LENGTHS, _SHORTER = 1e-12, 1.0 - 1e-9, 3, 0.4


class Charge(NamedTuple):
    """The norm of a node.

    Attributes
    ----------
    l1
        Whether it is the l1 norm; else half the squared Euclidean norm.
    selectable
        (p,) whether a feature is still to be selected (1.0), or is there (0.0).
    free, alpha
        How many of those are free of cost, and the cost of every further one.
    """

    l1: bool
    selectable: FloatArray
    free: float
    alpha: float


class Node(NamedTuple):
    """Where a node is solved: m variables, p features.

    Attributes
    ----------
    Z
        (m, p) directions times features.
    d, reward, capacity
        (m,) directions, rewards and capacities.
    v
        (13, m) what is stored of the variables, from :data:`A` on.
    f
        (16, p) what is stored of the features, from :data:`U` on.
    M, P
        (p, p) normal matrix, and that of the free variables.
    result
        (3,) value proven, bias, and whether ``M`` is that of a point from which rises can be measured.
    """

    Z: FloatArray
    d: FloatArray
    reward: FloatArray
    capacity: FloatArray
    v: FloatArray
    f: FloatArray
    M: FloatArray
    P: FloatArray
    result: FloatArray


def node_for(Z: FloatArray, d: FloatArray, reward: FloatArray, capacity: FloatArray) -> Node:
    """Return room for a node with these variables."""
    m, p = Z.shape
    of_variables, of_features = np.zeros((13, m)), np.zeros((16, p))
    return Node(
        Z, d, reward, capacity, of_variables, of_features, np.zeros((p, p)), np.zeros((p, p)), np.zeros(3)
    )


@kernel
def conjugate(norm: Charge, u: FloatArray) -> float:
    """Return the conjugate of the norm at u (p,), infinite beyond the unit cube of the l1 norm."""
    if norm.l1:
        for j in range(len(u)):
            if abs(u[j]) > 1.0:
                return np.inf
        return 0.0
    tau, total = cheapest(norm, u), 0.0
    for j in range(len(u)):
        if norm.selectable[j] > 0.0:
            total += max(0.0, 0.5 * u[j] * u[j] - tau)
        else:
            total += 0.5 * u[j] * u[j]
    return total + (norm.free * tau if tau > 0.0 else 0.0)


@kernel
def cheapest(norm: Charge, u: FloatArray) -> float:
    """Return the price of a feature that is free of cost: the charge of the last one that is, at most alpha."""
    before, rank = np.inf, 0.0
    while rank <= norm.free:
        largest, equal = -1.0, 0.0
        for j in range(len(u)):
            charge = 0.5 * u[j] * u[j]
            if norm.selectable[j] > 0.0 and charge < before:
                if charge > largest:
                    largest, equal = charge, 1.0
                elif charge == largest:
                    equal += 1.0
        if largest < 0.0:
            return 0.0
        before, rank = largest, rank + equal
    return min(before, norm.alpha)


@glue
def multiply(Z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write ``Z' y``."""
    for j in range(len(out)):
        out[j] = 0.0
    for r in range(len(y)):
        if y[r] != 0.0:
            for j in range(len(out)):
                out[j] += y[r] * Z[r, j]


@glue
def smooth(norm: Charge, f: FloatArray, mu: float) -> None:
    """Write weights, inverse curvatures and their coupling for the conjugate smoothed by a barrier of weight mu.

    A selectable feature pays t with barriers on ``t >= 0`` and ``t >= u^2 / 2 - tau``; their best t has a closed form.
    The price tau is the best one, found by bisection as the share of features that it keeps falls with it.
    """
    p, chosen = f.shape[1], 0.0
    for j in range(p):
        f[COUPLED, j] = 0.0
        chosen += norm.selectable[j]
    tau = norm.alpha
    if chosen > 0.0 and norm.free > 0.0:
        low, high = 0.0, 0.0
        for j in range(p):
            high = max(high, 0.5 * f[U, j] * f[U, j])
        high = min(norm.alpha, high + 4.0 * mu * (chosen + 1.0))
        for _ in range(60):
            tau = 0.5 * (low + high)
            excess = norm.free - mu / max(tau, 1e-300)
            if norm.alpha < NO_CAPACITY:
                excess += mu / max(norm.alpha - tau, 1e-300)
            for j in range(p):
                if norm.selectable[j] > 0.0:
                    excess -= share(0.5 * f[U, j] * f[U, j] - tau, mu)
            if excess > 0.0:
                high = tau
            else:
                low = tau
            if high - low < 1e-12 * high:
                break
    rho = mu / max(tau, 1e-150) ** 2
    if norm.alpha < NO_CAPACITY:
        rho += mu / max(norm.alpha - tau, 1e-150) ** 2
    fixed = chosen == 0.0 or norm.free <= 0.0
    for j in range(p):
        u = f[U, j]
        if norm.selectable[j] == 0.0:
            f[W, j], f[INVERSE, j] = u, 1.0
            continue
        q = 0.5 * u * u - tau
        kept = share(q, mu)
        y = mu / max(kept, 1e-300)
        t = y + q if q > 0.0 else mu / max(1.0 - kept, 1e-300)
        kappa = mu / (t * t + y * y)
        f[W, j] = kept * u
        f[INVERSE, j] = min(1.0 / max(kept + u * u * kappa, 1e-300), MOST_INVERSE)
        rho += kappa
        f[COUPLED, j] = u * kappa
    if fixed:
        for j in range(p):
            f[COUPLED, j] = 0.0
        return
    for j in range(p):
        rho -= f[COUPLED, j] * f[COUPLED, j] * f[INVERSE, j]
    scale = 1.0 / np.sqrt(max(rho, 1e-300))
    for j in range(p):
        f[COUPLED, j] *= f[INVERSE, j] * scale


@kernel
def share(q: float, mu: float) -> float:
    """Return the share of a feature with charge q above its price: ``mu / y`` with ``mu / y + mu / (y + q) = 1``."""
    # y solves y^2 + (q - 2 mu) y - mu q = 0; its larger root, without cancellation.
    half = 0.5 * (2.0 * mu - q)
    root = np.sqrt(half * half + mu * q) if half * half + mu * q > 0.0 else 0.0
    y = half + root if half > 0.0 else mu * q / (root - half)
    return min(1.0, mu / max(y, 1e-300))


@kernel
def factor(node: Node, M: FloatArray, free_from: float) -> None:
    """Factor ``H^-1 + Z' Theta^-1 Z`` of all variables, or of those that are free, into a matrix."""
    Z, v, f = node.Z, node.v, node.f
    p = len(M)
    for i in range(p):
        for j in range(i):
            M[i, j] = f[COUPLED, i] * f[COUPLED, j]
        M[i, i] = f[INVERSE, i] + f[COUPLED, i] * f[COUPLED, i]
    for r in range(Z.shape[0]):
        if free_from > 0.0 and not _free(node, r):
            continue
        for i in range(p):
            entry_i = Z[r, i] / v[THETA, r]
            for j in range(i + 1):
                M[i, j] += entry_i * Z[r, j]
    cholesky(M)


@glue
def _free(node: Node, r: int) -> bool:
    """Return whether a variable is away from its bounds."""
    a, capacity = node.v[A, r], node.capacity[r]
    near = _FREE * min(capacity, 1.0)
    return bool(a > near and capacity - a > near)


@entry
def measure_rises(
    node: Node, norm: Charge, X: FloatArray, group: IntArray, d: FloatArray, reward: FloatArray,
    capacity: FloatArray, bias_limit: float, G: FloatArray, work: FloatArray, rises: FloatArray,
) -> None:  # fmt: skip
    """Measure what one step with a further variable raises the value of a node that was just solved.

    The step keeps the free variables stationary, as the next Newton step would, and ends where one of them meets a
    bound; where nothing is free, one partner at a bound moves. Its end is valued exactly.

    Parameters
    ----------
    node, norm
        The node, as :func:`~mipforest.searches.routing.convex_interior.solve_node` left it, and its norm.
    X
        (G, p) features of the groups.
    group, d, reward, capacity
        (c,) groups, directions, rewards and capacities of variables that are tried one by one.
    bias_limit
        As for :func:`~mipforest.searches.routing.convex_interior.solve_node`.
    G, work
        Room: (m, p) and (3, max(m, p)).
    rises
        (c,) rises, written.
    """
    Z, v, f, P = node.Z, node.v, node.f, node.P
    m, p = Z.shape
    bias, count, denominator = node.result[1], 0, 0.0
    if node.result[2] == 0.0:
        for c in range(len(rises)):
            rises[c] = 0.0
        return
    for r in range(m):
        if _free(node, r):
            v[DS, count] = r
            count += 1
    if count > 0:
        factor(node, P, 1.0)
        for k in range(count):
            r = int(v[DS, k])
            for j in range(p):
                f[R1, j] = Z[r, j] / v[THETA, r]
            solve_factored(P, f[R1])
            for j in range(p):
                G[k, j] = f[R1, j]
        for j in range(p):
            f[R2, j] = 0.0
        for k in range(count):
            r = int(v[DS, k])
            for j in range(p):
                f[R2, j] += node.d[r] * G[k, j]
        for k in range(count):
            r = int(v[DS, k])
            total = node.d[r]
            for j in range(p):
                total -= Z[r, j] * f[R2, j]
            v[DT, k] = total / v[THETA, r]
            denominator += node.d[r] * v[DT, k]
    for c in range(len(rises)):
        rises[c] = 0.0
        g, score = group[c], 0.0
        for j in range(p):
            score += X[g, j] * f[W, j]
        gain = reward[c] - d[c] * (score + bias)
        if gain <= _NO_GAIN:
            continue
        limit, moved, unbalanced = capacity[c], gain, 0.0
        for j in range(p):
            work[0, j] = d[c] * X[g, j]
        partner = -1
        if count > 0 and denominator > 1e-300:
            nu = d[c]
            for j in range(p):
                nu -= f[R2, j] * work[0, j]
            nu /= denominator
            for k in range(count):
                total = -nu * v[DT, k]
                for j in range(p):
                    total -= G[k, j] * d[c] * X[g, j]
                work[1, k] = total
                r = int(v[DS, k])
                if total < 0.0:
                    limit = min(limit, -v[A, r] / total)
                elif node.capacity[r] < NO_CAPACITY and total > 0.0:
                    limit = min(limit, (node.capacity[r] - v[A, r]) / total)
            moved, unbalanced = reward[c], d[c]
            for k in range(count):
                r = int(v[DS, k])
                unbalanced += work[1, k] * node.d[r]
                moved += work[1, k] * node.reward[r]
                for j in range(p):
                    work[0, j] += work[1, k] * Z[r, j]
        else:
            best = 0.0
            for r in range(m):
                room = v[A, r] if node.d[r] == d[c] else node.capacity[r] - v[A, r]
                if room > 0.0:
                    slope = 0.0
                    for j in range(p):
                        slope += Z[r, j] * f[W, j]
                    slope = (node.reward[r] - slope - node.d[r] * bias) * (-1.0 if node.d[r] == d[c] else 1.0)
                    if partner < 0 or slope > best:
                        best, partner = slope, r
            if partner < 0 or gain + best <= 0.0:
                continue
            away = -1.0 if node.d[partner] == d[c] else 1.0
            limit = min(limit, v[A, partner] if away < 0.0 else node.capacity[partner] - v[A, partner])
            moved = reward[c] + away * node.reward[partner]
            for j in range(p):
                work[0, j] += away * Z[partner, j]
        unbalanced = abs(unbalanced) * bias_limit
        slope, curvature = moved, 0.0
        for j in range(p):
            slope -= f[W, j] * work[0, j]
            curvature += work[0, j] * work[0, j]
        if norm.l1:
            for j in range(p):
                if work[0, j] > 0.0:
                    limit = min(limit, max(0.0, 1.0 - f[U, j]) / work[0, j])
                elif work[0, j] < 0.0:
                    limit = min(limit, max(0.0, 1.0 + f[U, j]) / -work[0, j])
            if limit < NO_CAPACITY:
                rises[c] = max(0.0, limit * moved * _TOLD - limit * unbalanced)
            continue
        if slope <= 0.0:
            continue
        limit = min(limit, slope / max(curvature, 1e-12))
        before = conjugate(norm, f[U])
        for _ in range(_LENGTHS):
            for j in range(p):
                work[2, j] = f[U, j] + limit * work[0, j]
            rises[c] = max(rises[c], limit * (moved - unbalanced) - (conjugate(norm, work[2]) - before))
            limit *= _SHORTER
