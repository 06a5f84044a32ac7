r"""Interior point of a node relaxation: hinges and a norm, with sides that may have to be kept.

With a norm :math:`\Omega` and a linear term of the objective, -q'w, the problem of a node and its dual are

.. math::

    \min_{w, b}\; \Omega(w) - q^\top w + \sum_i U_i \max(0,\, r_i - d_i (w^\top x_i + b)), \qquad
    \max_{0 \le a \le U}\; \sum_i r_i a_i - \Omega^*(u), \quad u = q + \sum_i a_i d_i x_i,
    \quad \text{subject to} \quad \sum_i d_i a_i = 0 .

One *row* i has a direction :math:`d_i = \pm 1`, a reward :math:`r_i` and a capacity :math:`U_i`; a side that must be
kept has no capacity. The conjugate of the norm is

- half the squared Euclidean norm: :math:`\tfrac12 \|u\|^2`;
- that with features to select, k of them free of cost and :math:`\alpha` for each further one (infinite: none):
  :math:`\min_{0 \le \tau \le \alpha} k \tau + \sum_j \max(0, \tfrac12 u_j^2 - \tau)`. It is the *boolean relaxation* of
  Bertsimas, Pauphilet, Van Parys, *Sparse classification: a scalable discrete optimization perspective*, Machine
  Learning 110 (2021), with their hard budget for infinite :math:`\alpha`: what the k largest charges leave is a
  bound on every choice of features;
- the l1 norm: 0 for :math:`\|u\|_\infty \le 1`, else infinite. It is a sum of hinges itself,
  :math:`\max(0, w_j) + \max(0, -w_j)`: 2p more rows, with capacity 1 and without the bias, and no quadratic term.

**Every feasible point of the dual is a lower bound on the node's value.** So the iterations may end anywhere: their end
is moved to a feasible point, and that point is valued by the formula above (:func:`proven`).

The method is primal-dual, with Mehrotra's predictor and corrector. Weights and bias are unknowns of their own, as sums
of large multipliers would round them, so that Newton's system has p + 1 rows, whatever the number of samples (Ferris,
Munson, *Interior-point methods for massive support vector machines*, SIAM J. Optim. 13, 2002). It begins where the
equality holds, and Newton steps keep it. Features to select are smoothed by a barrier: weights then follow from u, and
as their curvature changes along a step, there is no corrector, and a step that overshoots is made shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.searches import kernel

#: Capacity of a row that has none, and from which on it counts as none.
UNLIMITED, NO_CAPACITY = 1e12, 1e11

#: What is stored of a row: reward, capacity, its variable, slack of its margin, loss, what is left to the capacity,
#: inverse curvature of its barrier, the three steps, right-hand side, violation of its margin's equality, and the
#: variable of the best point so far.
REWARD, CAPACITY, A, SLACK, LOSS, LEFT, INVERSE, DA, DSLACK, DLOSS, SIDE, RESIDUAL, KEPT = range(13)

#: What is stored of the unknowns, weights and bias: themselves, u (and the sum of directions for the bias), what
#: ``w`` lacks to the gradient of the conjugate, the step, q, and whether a feature is still to be selected (1.0); what
#: the norm adds to Newton's system, a diagonal and a vector times itself; and two for trials.
AT, SUM, LACK, STEP, OFFSET, SELECTABLE, RIDGE, COUPLED, ALONG, BEFORE = range(10)

#: Violation of ``|u| <= 1`` of the l1 norm up to which a point may be the end.
_OUTSIDE = 1e-6

#: Where the value is above what is asked for by this share and amount, no more is needed.
_PAST_SHARE, _PAST = 1e-6, 1e-9

#: Share of the way to the boundary that a step may go.
_TO_BOUNDARY = 0.995

#: Least curvature of a row's barrier, and least divisor: far below what double precision tells apart.
_LEAST_CURVATURE, _LEAST_DIVISOR = 1e-14, 1e-300

#: Inverse curvatures of the norm stay below this: a weight that may not be has no limit.
_MAX_INVERSE = 1e10

#: A variable closer than this to a bound, relative to its capacity up to some size, is put on it.
_NEAR, _NEAR_MOST = 1e-9, 1e3

#: A sum of variables below this counts as the 0 that it should be; the rest is charged to the value.
_BALANCED = 1e-14

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
WITHIN = 1.0 + 1e-10

#: Features to select are smoothed by this share of the mean complementarity. A step that overshoots, as its slope at
#: the end is below minus this share of that at its start, is made shorter, by this factor, at most so often.
_CENTRED, _OVERSHOOT, _SHORTER, _TRIALS = 0.2, 0.3, 0.4, 7


class Norm(NamedTuple):
    """The norm of a node.

    Attributes
    ----------
    square
        1 for half the squared Euclidean norm, 0 for the l1 norm, whose rows come after those of the samples.
    selectable
        How many features are still to be selected: those that the row :data:`SELECTABLE` says.
    free, alpha
        How many of these are free of cost, and the cost of every further one.
    """

    square: float
    selectable: float
    free: float
    alpha: float


#: Half the squared Euclidean norm, and the l1 norm, of all features.
EUCLIDEAN, L1 = Norm(1.0, 0.0, 0.0, 0.0), Norm(0.0, 0.0, 0.0, 0.0)


class Limits(NamedTuple):
    """When to end, and what a point proves that violates the equality.

    Attributes
    ----------
    stop
        The value from which on no more is needed.
    accuracy, least
        Gap between primal and dual, relative to the value, or to a least value.
    iterations
        At most so many.
    bias
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    """

    stop: float
    accuracy: float
    least: float
    iterations: float
    bias: float


class InteriorWorkspace(NamedTuple):
    """Workspace: m rows at most, and n unknowns at most, the weights of features and the bias.

    Attributes
    ----------
    Z
        (n, m) directions times features, then directions.
    v
        (13, m) what is stored of the rows, from :data:`REWARD` on.
    f
        (10, n) what is stored of the unknowns, from :data:`AT` on.
    M
        (n, n) Newton's system.
    """

    Z: FloatArray
    v: FloatArray
    f: FloatArray
    M: FloatArray


def workspace_for(m: int, q: int) -> InteriorWorkspace:
    """Return a workspace for at most so many rows and features."""
    n = q + 1
    return InteriorWorkspace(np.zeros((n, m)), np.zeros((13, m)), np.zeros((10, n)), np.zeros((n, n)))


def write_l1(work: InteriorWorkspace, m: int, q: int) -> int:
    """Write the rows of an l1 norm after m rows; return how many there are then."""
    end, each = m + 2 * q, np.eye(q + 1, q)
    work.Z[: q + 1, m:end] = np.hstack([each, -each])
    work.v[REWARD, m:end], work.v[CAPACITY, m:end] = 0.0, 1.0
    return end


class Point(NamedTuple):
    """What is known of an iterate.

    Attributes
    ----------
    value, primal
        Its value in the dual, and in the primal.
    complementarity, smoothing
        Sum of the complementary products, and by how much features to select are smoothed.
    violated
        Violations of the margins' equalities times the variables.
    outside
        Largest violation of ``|u| <= 1`` of the l1 norm; infinite where variables are larger than can be.
    """

    value: float
    primal: float
    complementarity: float
    smoothing: float
    violated: float
    outside: float


@kernel
def solve_rows(work: InteriorWorkspace, m: int, q: int, norm: Norm, limits: Limits) -> int:
    """Solve the dual of a node.

    Parameters
    ----------
    work
        With ``Z``, rewards and capacities; q in the row :data:`OFFSET`, and what can be selected in :data:`SELECTABLE`.
    m, q
        Number of rows and features.
    norm, limits
        The norm, and when to end.

    Returns
    -------
    Iterations. Variables are in the row :data:`A`, weights and bias in :data:`AT`; 0 where all rows have one direction:
    then the bias alone serves them all.
    """
    v, n, known, iterations = work.v, q + 1, -np.inf, 0
    pairs = _begin(work, m, q, norm)
    if pairs == 0.0:
        return 0
    while iterations < limits.iterations:
        iterations += 1
        point = _evaluate(work, m, q, norm, limits, pairs)
        if point.value > known and point.outside < _OUTSIDE:
            known = point.value
            for i in range(m):
                v[KEPT, i] = v[A, i]
        if _is_end(point, limits):
            break
        _factorise(work, m, n)
        for i in range(m):
            v[DA, i], v[DSLACK, i], v[DLOSS, i] = 0.0, 0.0, 0.0
        aim = point.smoothing
        if norm.selectable == 0.0:
            of_a, of_slack = _find_step(work, m, n, 0.0)
            along, across = min(1.0, 1.0 / of_a), min(1.0, 1.0 / of_slack)
            left = _complementarity(work, m, along, across)
            aim = (left / point.complementarity) ** 3 * point.complementarity / pairs
        of_a, of_slack = _find_step(work, m, n, aim)
        along, across = min(1.0, _TO_BOUNDARY / of_a), min(1.0, _TO_BOUNDARY / of_slack)
        if norm.selectable > 0.0:
            share = _share_without_overshoot(work, m, q, norm, along, aim)
            along, across = share * along, share * across
        _move(work, m, n, along, across)
    if known > -np.inf:
        for i in range(m):
            v[A, i] = v[KEPT, i]
    return iterations


@kernel
def _begin(work: InteriorWorkspace, m: int, q: int, norm: Norm) -> float:
    """Write a point to begin with that fulfils the equality; return the number of complementary pairs, 0: solved."""
    Z, v, f = work.Z, work.v, work.f
    plus, minus, pairs, capacities, limited = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(m):
        if v[CAPACITY, i] < NO_CAPACITY:
            capacities += v[CAPACITY, i]
            limited += 1.0
    for i in range(m):
        within = v[CAPACITY, i] < NO_CAPACITY
        v[A, i] = 0.5 * (v[CAPACITY, i] if within else capacities / limited if limited > 0.0 else 1.0)
        pairs += 2.0 if within else 1.0
        if Z[q, i] > 0.0:
            plus += v[A, i]
        elif Z[q, i] < 0.0:
            minus += v[A, i]
    for j in range(q + 1):
        f[AT, j], f[SUM, j], f[LACK, j], f[COUPLED, j] = 0.0, 0.0, 0.0, 0.0
        f[RIDGE, j] = norm.square if j < q else 0.0
    if plus == 0.0 or minus == 0.0:
        # All want the same side, and a bias at the last kink serves them all.
        for i in range(m):
            f[AT, q] = max(f[AT, q], v[REWARD, i])
            v[A, i] = 0.0
        f[AT, q] *= 1.0 if plus > 0.0 else -1.0
        return 0.0
    for i in range(m):
        if Z[q, i] != 0.0:
            v[A, i] *= min(1.0, minus / plus) if Z[q, i] > 0.0 else min(1.0, plus / minus)
        # Without a capacity nothing is left to it, and there is no loss: a 1 and a 0 that never change.
        v[SLACK, i], v[LEFT, i], v[LOSS, i] = 1.0, 1.0, 0.0
        if v[CAPACITY, i] < NO_CAPACITY:
            v[LEFT, i], v[LOSS, i] = v[CAPACITY, i] - v[A, i], max(v[REWARD, i], 0.0) + 1.0
    return pairs


@kernel
def _evaluate(work: InteriorWorkspace, m: int, q: int, norm: Norm, limits: Limits, pairs: float) -> Point:
    """Value an iterate, and write what it violates and, with features to select, weights."""
    Z, v, f = work.Z, work.v, work.f
    complementarity, value, primal, outside = 0.0, 0.0, 0.0, 0.0
    for i in range(m):
        complementarity += v[A, i] * v[SLACK, i] + v[LEFT, i] * v[LOSS, i]
        value += v[A, i] * v[REWARD, i]
        if v[CAPACITY, i] < NO_CAPACITY:
            primal += v[CAPACITY, i] * v[LOSS, i]
        elif v[A, i] > NO_CAPACITY:  # no hyperplane keeps the sides
            outside = np.inf
    sum_up(work, m, q)
    smoothing = _CENTRED * complementarity / pairs
    if norm.selectable > 0.0:
        value -= conjugate(norm, f, f[SUM], q)
        primal = np.inf
        _smooth(norm, f, q, smoothing)
    else:
        for j in range(q):
            f[LACK, j] = f[SUM, j] - norm.square * f[AT, j]
            value -= 0.5 * norm.square * f[SUM, j] * f[SUM, j]
            primal += (0.5 * norm.square * f[AT, j] - f[OFFSET, j]) * f[AT, j]
            outside = max(outside, (1.0 - norm.square) * abs(f[LACK, j]))
    f[LACK, q] = f[SUM, q]
    value -= abs(f[SUM, q]) * limits.bias
    counts, violated = 0.0 if norm.selectable > 0.0 else 1.0, 0.0
    for i in range(m):
        lack = v[LOSS, i] - v[SLACK, i] - v[REWARD, i]
        for j in range(q + 1):
            lack += f[AT, j] * Z[j, i]
        v[RESIDUAL, i] = lack
        violated += counts * v[A, i] * abs(lack)
    return Point(value, primal, complementarity, smoothing, violated, outside)


@kernel
def sum_up(work: InteriorWorkspace, m: int, q: int) -> None:
    """Write u, and the sum of the directions times their variables, into the row :data:`SUM`."""
    Z, v, f = work.Z, work.v, work.f
    for j in range(q + 1):
        total = f[OFFSET, j]
        for i in range(m):
            total += Z[j, i] * v[A, i]
        f[SUM, j] = total


@kernel
def _is_end(point: Point, limits: Limits) -> bool:
    """Return whether an iterate is good enough, or worth no more steps."""
    if not np.isfinite(point.complementarity + point.outside):
        return True
    if point.outside < _OUTSIDE and point.value > limits.stop * (1.0 + _PAST_SHARE) + _PAST:
        return True
    size = max(limits.least, min(point.primal, abs(point.value)))
    return bool(point.outside < _OUTSIDE and point.complementarity + point.violated < limits.accuracy * size)


@kernel
def _factorise(work: InteriorWorkspace, m: int, n: int) -> None:
    """Write the inverse curvatures of the barriers, and the factor of Newton's system."""
    v = work.v
    for i in range(m):
        curvature = v[SLACK, i] / v[A, i]
        if v[CAPACITY, i] < NO_CAPACITY:
            curvature += v[LOSS, i] / v[LEFT, i]
        v[INVERSE, i] = 1.0 / max(curvature, _LEAST_CURVATURE)
    normal_matrix(work, m, n, work.M)
    cholesky(work.M, n)


@kernel
def normal_matrix(work: InteriorWorkspace, m: int, n: int, M: FloatArray) -> None:
    """Write the lower triangle of Newton's system of some inverse curvatures into a matrix."""
    Z, v, f = work.Z, work.v, work.f
    for j in range(n):
        for i in range(m):
            v[SIDE, i] = Z[j, i] * v[INVERSE, i]
        for k in range(j + 1):
            total = f[COUPLED, j] * f[COUPLED, k]
            for i in range(m):
                total += Z[k, i] * v[SIDE, i]
            M[j, k] = total
        M[j, j] += f[RIDGE, j]


@kernel
def _find_step(work: InteriorWorkspace, m: int, n: int, aim: float) -> tuple[float, float]:
    """Compute a step towards complementary products of a size; return the reciprocals of what bounds allow of it."""
    Z, v, f = work.Z, work.v, work.f
    for i in range(m):
        v[SIDE, i] = (aim - v[DA, i] * v[DSLACK, i]) / v[A, i] - v[SLACK, i] - v[RESIDUAL, i]
        if v[CAPACITY, i] < NO_CAPACITY:
            v[SIDE, i] -= (aim + v[DA, i] * v[DLOSS, i]) / v[LEFT, i] - v[LOSS, i]
    for j in range(n):
        total = f[LACK, j]
        for i in range(m):
            total += Z[j, i] * v[INVERSE, i] * v[SIDE, i]
        f[STEP, j] = total
    solve_factored(work.M, f[STEP], n)
    of_a, of_slack = _LEAST_DIVISOR, _LEAST_DIVISOR
    for i in range(m):
        score = 0.0
        for j in range(n):
            score += Z[j, i] * f[STEP, j]
        a = (v[SIDE, i] - score) * v[INVERSE, i]
        slack = (aim - v[DA, i] * v[DSLACK, i] - v[SLACK, i] * a) / v[A, i] - v[SLACK, i]
        of_a, of_slack = max(of_a, -a / v[A, i]), max(of_slack, -slack / v[SLACK, i])
        if v[CAPACITY, i] < NO_CAPACITY:
            loss = (aim + v[DA, i] * v[DLOSS, i] + v[LOSS, i] * a) / v[LEFT, i] - v[LOSS, i]
            of_a, of_slack = max(of_a, a / v[LEFT, i]), max(of_slack, -loss / v[LOSS, i])
            v[DLOSS, i] = loss
        v[DA, i], v[DSLACK, i] = a, slack
    return of_a, of_slack


@kernel
def _complementarity(work: InteriorWorkspace, m: int, along: float, across: float) -> float:
    """Return what complementary products add up to after a step of some lengths."""
    v, left = work.v, 0.0
    for i in range(m):
        left += (v[A, i] + along * v[DA, i]) * (v[SLACK, i] + across * v[DSLACK, i])
        if v[CAPACITY, i] < NO_CAPACITY:
            left += (v[LEFT, i] - along * v[DA, i]) * (v[LOSS, i] + across * v[DLOSS, i])
    return left


@kernel
def _move(work: InteriorWorkspace, m: int, n: int, along: float, across: float) -> None:
    """Take a step of some lengths."""
    v, f = work.v, work.f
    for i in range(m):
        v[A, i] += along * v[DA, i]
        v[SLACK, i] += across * v[DSLACK, i]
        if v[CAPACITY, i] < NO_CAPACITY:
            v[LEFT, i] -= along * v[DA, i]
            v[LOSS, i] += across * v[DLOSS, i]
    for j in range(n):
        f[AT, j] += across * f[STEP, j]


# ---------------------------------------------------------------------- systems of equations


@kernel
def cholesky(M: FloatArray, n: int) -> None:
    """Factorise the first n rows of a positive definite matrix in place; the lower triangle then holds the factor."""
    for j in range(n):
        pivot = M[j, j]
        for s in range(j):
            pivot -= M[j, s] * M[j, s]
        root = np.sqrt(max(pivot, _LEAST_DIVISOR))
        M[j, j] = root
        for i in range(j + 1, n):
            entry = M[i, j]
            for s in range(j):
                entry -= M[i, s] * M[j, s]
            M[i, j] = entry / root


@kernel
def solve_factored(L: FloatArray, x: FloatArray, n: int) -> None:
    """Solve ``L L' x = b`` in place for a vector (n,)."""
    for i in range(n):
        entry = x[i]
        for s in range(i):
            entry -= L[i, s] * x[s]
        x[i] = entry / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for s in range(i):
            x[s] -= L[i, s] * x[i]


# ---------------------------------------------------------------------- what is proven


@kernel
def proven(work: InteriorWorkspace, m: int, q: int, norm: Norm, limits: Limits) -> float:
    """Move the variables of m rows, those of an l1 norm left out, to a feasible point; return the value proven.

    What rounding leaves of the equality is charged, and is in ``f[SUM, q]`` then.
    """
    v, f, value, scale = work.v, work.f, 0.0, 1.0
    round_to_feasible(v[A], work.Z[q], v[CAPACITY], m)
    sum_up(work, m, q)
    if norm.square == 0.0:
        for j in range(q):
            scale = max(scale, abs(f[SUM, j]) * WITHIN)
        for i in range(m):
            v[A, i] /= scale
        for j in range(q + 1):
            f[SUM, j] /= scale
    for i in range(m):
        value += v[A, i] * v[REWARD, i]
    f[SUM, q] = abs(f[SUM, q]) * limits.bias
    value -= conjugate(norm, f, f[SUM], q) + f[SUM, q]
    # An overflow proves nothing.
    return value if 0.0 < value < np.inf else 0.0


@kernel
def round_to_feasible(a: FloatArray, d: FloatArray, capacity: FloatArray, m: int) -> None:
    """Put m variables near a bound on it, and repair the equality by those between their bounds, then by all."""
    balance = 0.0
    for r in range(m):
        near = _NEAR * min(capacity[r], _NEAR_MOST)
        a[r] = 0.0 if not a[r] >= near else (capacity[r] if capacity[r] - a[r] < near else a[r])
        balance += d[r] * a[r]
    for inner in range(2):
        for r in range(m):
            before = a[r]
            if abs(balance) < _BALANCED:
                return
            if inner == 1 or 0.0 < before < capacity[r]:
                a[r] = min(max(before - d[r] * balance, 0.0), capacity[r])
                balance += d[r] * (a[r] - before)


@kernel
def conjugate(norm: Norm, f: FloatArray, u: FloatArray, q: int) -> float:
    """Return the conjugate of the norm at the first q entries of u, 0 or infinite for the l1 norm."""
    tau, total = 0.0, 0.0
    if norm.selectable > 0.0:
        tau = _cheapest(norm, f, u, q)
    for j in range(q):
        charge = 0.5 * norm.square * u[j] * u[j]
        total += max(0.0, charge - tau) if f[SELECTABLE, j] > 0.0 else charge
        if norm.square == 0.0 and abs(u[j]) > 1.0:
            return np.inf
    return total + (norm.free * tau if tau > 0.0 else 0.0)


# ---------------------------------------------------------------------- features to select


@kernel
def _cheapest(norm: Norm, f: FloatArray, u: FloatArray, q: int) -> float:
    """Return the price of a feature that is free of cost: the charge of the last one that is, at most alpha."""
    before, rank = np.inf, 0.0
    while rank <= norm.free:
        largest, equal = -1.0, 0.0
        for j in range(q):
            charge = 0.5 * u[j] * u[j]
            if f[SELECTABLE, j] > 0.0 and charge < before:
                if charge > largest:
                    largest, equal = charge, 1.0
                elif charge == largest:
                    equal += 1.0
        if largest < 0.0:
            return 0.0
        before, rank = largest, rank + equal
    return min(before, norm.alpha)


@kernel
def _smooth(norm: Norm, f: FloatArray, q: int, mu: float) -> None:
    """Write weights, inverse curvatures and their coupling for the conjugate smoothed by a barrier of weight mu.

    A selectable feature pays t with barriers on ``t >= 0`` and ``t >= u^2 / 2 - tau``; their best t has a closed form.
    """
    tau = _price(norm, f, q, mu) if norm.free > 0.0 else norm.alpha
    rho = mu / max(tau, 1e-150) ** 2
    if norm.alpha < NO_CAPACITY:
        rho += mu / max(norm.alpha - tau, 1e-150) ** 2
    for j in range(q):
        u = f[SUM, j]
        f[AT, j], f[RIDGE, j], f[COUPLED, j] = u, 1.0, 0.0
        if f[SELECTABLE, j] > 0.0:
            charge = 0.5 * u * u - tau
            kept = _share_kept(charge, mu)
            y = mu / max(kept, _LEAST_DIVISOR)
            t = y + charge if charge > 0.0 else mu / max(1.0 - kept, _LEAST_DIVISOR)
            kappa = mu / (t * t + y * y)
            f[AT, j] = kept * u
            f[RIDGE, j] = min(1.0 / max(kept + u * u * kappa, _LEAST_DIVISOR), _MAX_INVERSE)
            f[COUPLED, j] = u * kappa
            rho += kappa - f[COUPLED, j] * f[COUPLED, j] * f[RIDGE, j]
    scale = 1.0 / np.sqrt(max(rho, _LEAST_DIVISOR)) if norm.free > 0.0 else 0.0
    for j in range(q):
        f[COUPLED, j] *= f[RIDGE, j] * scale


@kernel
def _price(norm: Norm, f: FloatArray, q: int, mu: float) -> float:
    """Return the best price tau, by bisection, as the share of features that it keeps falls with it."""
    low, high = 0.0, 0.0
    for j in range(q):
        high = max(high, 0.5 * f[SUM, j] * f[SUM, j])
    high = min(norm.alpha, high + 4.0 * mu * (norm.selectable + 1.0))
    tau = norm.alpha
    for _ in range(60):
        tau = 0.5 * (low + high)
        excess = norm.free - mu / max(tau, _LEAST_DIVISOR)
        if norm.alpha < NO_CAPACITY:
            excess += mu / max(norm.alpha - tau, _LEAST_DIVISOR)
        for j in range(q):
            if f[SELECTABLE, j] > 0.0:
                excess -= _share_kept(0.5 * f[SUM, j] * f[SUM, j] - tau, mu)
        if excess > 0.0:
            high = tau
        else:
            low = tau
        if high - low < 1e-12 * high:
            break
    return tau


@kernel
def _share_kept(q: float, mu: float) -> float:
    """Return the share of a feature with charge q above its price: ``mu / y`` with ``mu / y + mu / (y + q) = 1``."""
    # y solves y^2 + (q - 2 mu) y - mu q = 0; its larger root, without cancellation.
    half = 0.5 * (2.0 * mu - q)
    root = np.sqrt(half * half + mu * q) if half * half + mu * q > 0.0 else 0.0
    y = half + root if half > 0.0 else mu * q / (root - half)
    return min(1.0, mu / max(y, _LEAST_DIVISOR))


@kernel
def _share_without_overshoot(
    work: InteriorWorkspace, m: int, q: int, norm: Norm, step: float, mu: float
) -> float:
    """Return what share of a step to take, so that the smoothed dual does not fall steeply at its end."""
    Z, v, f = work.Z, work.v, work.f
    for j in range(q):
        total = 0.0
        for i in range(m):
            total += Z[j, i] * v[DA, i]
        f[ALONG, j], f[BEFORE, j] = total, f[SUM, j]
    share, at_start = 1.0, _slope(work, m, q, norm, 0.0, mu)
    for _ in range(_TRIALS):
        slope = _slope(work, m, q, norm, share * step, mu)
        if at_start <= 0.0 or slope >= -_OVERSHOOT * at_start:
            break
        share *= _SHORTER
    for j in range(q):
        f[SUM, j] = f[BEFORE, j]
    return share


@kernel
def _slope(work: InteriorWorkspace, m: int, q: int, norm: Norm, length: float, mu: float) -> float:
    """Return the slope of the smoothed dual along a step, after some length of it."""
    v, f, slope = work.v, work.f, 0.0
    for i in range(m):  # the bias counts for nothing, as steps keep the equality
        change = v[REWARD, i] + mu / (v[A, i] + length * v[DA, i])
        if v[CAPACITY, i] < NO_CAPACITY:
            change -= mu / (v[LEFT, i] - length * v[DA, i])
        slope += change * v[DA, i]
    for j in range(q):
        f[SUM, j] = f[BEFORE, j] + length * f[ALONG, j]
    _smooth(norm, f, q, mu)
    for j in range(q):
        slope -= f[AT, j] * f[ALONG, j]
    return slope
