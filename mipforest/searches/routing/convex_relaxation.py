r"""Node relaxation of the routing search: a convex node, of any loss of kinks and any norm that the search takes.

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

**Every feasible point is a lower bound on the node's value.** A primal-dual interior point with Mehrotra's predictor
and corrector (:func:`solve_node`) may end anywhere; its end is moved to a feasible point, and that point is valued by
the formula above. The normal matrix has low rank: one p x p system per iteration, whatever the number of samples
(Ferris, Munson, *Interior-point methods for massive support vector machines*, SIAM J. Optim. 13, 2002). The rows of the
l1 norm have slacks of their own. Features to select are smoothed by a barrier; their curvature changes along a step,
which is made shorter where it overshoots.

An interior point may end while rows of the size of :math:`\varepsilon` are still broken: of a node that no hyperplane
keeps it then proves far too little. At the end of a plunge nothing is left to branch on, so nodes are solved once more
there (:func:`solve_finely`). Sides that no hyperplane keeps have a ray, by Farkas' lemma: amounts a of the sides with
:math:`\sum_k a_k d_k = 0`, :math:`\sum_k a_k d_k x_{g(k)} = 0` and a positive reward, multiples of which raise the
dual without end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.routing.svm_dual import cholesky, round_to_feasible, solve_factored

#: A capacity that stands for none, and from which on it counts as none.
UNLIMITED, NO_CAPACITY = 1e12, 1e11

#: Inverse curvatures stay below this: a weight that may not be has no limit.
MAX_INVERSE = 1e10

#: A variable is free if it is farther than this from its bounds, relative to its capacity up to 1.
_FREE = 1e-6

#: What is stored of a variable: itself, what is left to its capacity, multipliers of both, curvature of their barrier,
#: a step and steps of the multipliers, and what a solve needs.
A, LEFT, S, TIGHT, THETA, DA, DS, DT, Y1, Y2, Z1, RHS, KEPT = range(13)

#: What is stored of a feature: u, the weight, the inverse curvature and selection's part of it; slacks of ``u <= 1``
#: and ``u >= -1``, their multipliers, the steps of both, the gradient of a step, and what a solve needs.
(
    U, W, INVERSE, COUPLED, SLACK_ABOVE, SLACK_BELOW, ABOVE, BELOW, DSLACK_ABOVE, DSLACK_BELOW, DABOVE, DBELOW,
    GRADIENT, R1, R2, R3,
) = range(16)  # fmt: skip

#: A reduced cost up to this gains nothing; share of a gain of the l1 norm that rounding cannot take; lengths at which
#: the end of another step is valued, each this share of the one before.
_NO_GAIN, _SAFE_SHARE, _LENGTHS, _NEXT_LENGTH = 1e-12, 1.0 - 1e-9, 3, 0.4

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

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
_WITHIN = 1.0 + 1e-10

#: Reward of a ray, as a share of the largest of a side, below which rounding may have made it.
_LEAST_REWARD = 1e-9

#: Gap and violations up to which a node is solved, and what stands for no capacity in a linear programme.
_TOLERANCE, _LARGE = 1e-11, 1e6

#: By how much more than the cutoff a ray is to prove: amounts lose digits where they become large.
_BEYOND = 1.5


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
    """Workspace of a node: m variables, p features.

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
        (3,) value proven, bias, and whether ``M`` is that of a point from which gains can be measured.
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
    """Return a workspace for a node with these variables."""
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


@kernel
def multiply(Z: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write ``Z' y``."""
    for j in range(len(out)):
        out[j] = 0.0
    for r in range(len(y)):
        if y[r] != 0.0:
            for j in range(len(out)):
                out[j] += y[r] * Z[r, j]


@kernel
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
        f[INVERSE, j] = min(1.0 / max(kept + u * u * kappa, 1e-300), MAX_INVERSE)
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
    cholesky(M, p)


@kernel
def _free(node: Node, r: int) -> bool:
    """Return whether a variable is away from its bounds."""
    a, capacity = node.v[A, r], node.capacity[r]
    near = _FREE * min(capacity, 1.0)
    return bool(a > near and capacity - a > near)


# ---------------------------------------------------------------------- interior point


@kernel
def _solve(node: Node, y: FloatArray, out: FloatArray) -> None:
    """Write the solution of the node's Newton system for a right-hand side (m,), its normal matrix factored."""
    Z, v, f = node.Z, node.v, node.f
    for r in range(len(y)):
        out[r] = y[r] / v[THETA, r]
    multiply(Z, out, f[R1])
    solve_factored(node.M, f[R1], len(node.M))
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
    node: Node, norm: Charge, bias_limit: float, accuracy: float, max_iterations: float, stop: float
) -> float:
    """Solve a node's dual by a primal-dual interior point, and leave a feasible point in the row :data:`A`.

    Parameters
    ----------
    node, norm
        The node, and its norm.
    bias_limit
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    accuracy, max_iterations, stop
        Gap relative to the value, iterations, and the value from which no more is needed.

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
            f[SLACK_ABOVE, j], f[SLACK_BELOW, j] = 1.0 + abs(f[U, j]), 1.0 + abs(f[U, j])
            f[ABOVE, j], f[BELOW, j] = 0.5, 0.5
    iterations, multiplier, before, known, smoothing = 0.0, 0.0, np.inf, -np.inf, 0.0
    while iterations < max_iterations:
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
                above, below = f[SLACK_ABOVE, j], f[SLACK_BELOW, j]
                complementarity += above * f[ABOVE, j] + below * f[BELOW, j]
                outside = max(outside, abs(1.0 - f[U, j] - above), abs(1.0 + f[U, j] - below))
                f[W, j] = f[ABOVE, j] - f[BELOW, j]
                f[INVERSE, j] = min(1.0 / (f[ABOVE, j] / above + f[BELOW, j] / below), MAX_INVERSE)
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
            f[DSLACK_ABOVE, j], f[DSLACK_BELOW, j], f[DABOVE, j], f[DBELOW, j] = 0.0, 0.0, 0.0, 0.0
        _solve(node, d, v[Y2])
        denominator, aim, primal, dual = 0.0, 0.0, 1.0, 1.0
        for r in range(m):
            denominator += d[r] * v[Y2, r]
        after = multiplier
        for phase in range(2):
            if norm.l1:
                for j in range(p):
                    above, below = f[SLACK_ABOVE, j], f[SLACK_BELOW, j]
                    f[GRADIENT, j] = (
                        aim - f[DSLACK_ABOVE, j] * f[DABOVE, j] - f[ABOVE, j] * (1.0 - f[U, j] - above)
                    ) / above - (
                        aim - f[DSLACK_BELOW, j] * f[DBELOW, j] - f[BELOW, j] * (1.0 + f[U, j] - below)
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
                    above, below, du = f[SLACK_ABOVE, j], f[SLACK_BELOW, j], f[R2, j]
                    da, db = 1.0 - f[U, j] - above - du, 1.0 + f[U, j] - below + du
                    up = (aim - f[DSLACK_ABOVE, j] * f[DABOVE, j] - f[ABOVE, j] * da) / above - f[ABOVE, j]
                    down = (aim - f[DSLACK_BELOW, j] * f[DBELOW, j] - f[BELOW, j] * db) / below - f[BELOW, j]
                    f[DSLACK_ABOVE, j], f[DSLACK_BELOW, j], f[DABOVE, j], f[DBELOW, j] = da, db, up, down
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
                        above = f[SLACK_ABOVE, j] + primal * f[DSLACK_ABOVE, j]
                        below = f[SLACK_BELOW, j] + primal * f[DSLACK_BELOW, j]
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
                f[SLACK_ABOVE, j] += primal * f[DSLACK_ABOVE, j]
                f[SLACK_BELOW, j] += primal * f[DSLACK_BELOW, j]
                f[ABOVE, j] += dual * f[DABOVE, j]
                f[BELOW, j] += dual * f[DBELOW, j]
        multiplier += dual * (after - multiplier)
    node.result[1], node.result[2] = multiplier, 1.0
    _to_feasible(node, norm, bias_limit)
    return iterations


@kernel
def _to_feasible(node: Node, norm: Charge, bias_limit: float) -> None:
    """Put variables near a bound on it, repair the equality, then the unit cube; write the value that is proven."""
    Z, d, v, f = node.Z, node.d, node.v, node.f
    m, p = Z.shape
    round_to_feasible(v[A], d, node.capacity, m)
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


# ---------------------------------------------------------------------- gains of one step


@entry
def measure_gains(
    node: Node, norm: Charge, X: FloatArray, group: IntArray, d: FloatArray, reward: FloatArray,
    capacity: FloatArray, bias_limit: float, G: FloatArray, work: FloatArray, gains: FloatArray,
) -> None:  # fmt: skip
    """Measure what one step with a further variable raises the value of a node that was just solved.

    The step keeps the free variables stationary, as the next Newton step would, and ends where one of them meets a
    bound; where nothing is free, one partner at a bound moves. Its end is valued exactly.

    Parameters
    ----------
    node, norm
        The node, as :func:`solve_node` left it, and its norm.
    X
        (G, p) features of the groups.
    group, d, reward, capacity
        (c,) groups, directions, rewards and capacities of variables that are tried one by one.
    bias_limit
        As for :func:`solve_node`.
    G, work
        Workspace: (m, p) and (3, max(m, p)).
    gains
        (c,) gains, written.
    """
    Z, v, f, P = node.Z, node.v, node.f, node.P
    m, p = Z.shape
    bias, count, denominator = node.result[1], 0, 0.0
    if node.result[2] == 0.0:
        for c in range(len(gains)):
            gains[c] = 0.0
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
            solve_factored(P, f[R1], p)
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
    for c in range(len(gains)):
        gains[c] = 0.0
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
                free = v[A, r] if node.d[r] == d[c] else node.capacity[r] - v[A, r]
                if free > 0.0:
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
                gains[c] = max(0.0, limit * moved * _SAFE_SHARE - limit * unbalanced)
            continue
        if slope <= 0.0:
            continue
        limit = min(limit, slope / max(curvature, 1e-12))
        before = conjugate(norm, f[U])
        for _ in range(_LENGTHS):
            for j in range(p):
                work[2, j] = f[U, j] + limit * work[0, j]
            gains[c] = max(gains[c], limit * (moved - unbalanced) - (conjugate(norm, work[2, :p]) - before))
            limit *= _NEXT_LENGTH


# ---------------------------------------------------------------------- many digits


def solve_finely(node: Node, *, l1: bool, bias_limit: float, stop: float) -> None:
    """Put a node to the best of what its point, a finer solution and a ray prove.

    Parameters
    ----------
    node
        The node, as an interior point has left it; no feature of it is to be selected.
    l1
        Whether the norm is the l1 norm; else half the squared Euclidean norm.
    bias_limit
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    stop
        The value from which on no more is needed; where it is infinite, a ray proves a multiple of the node's value.
    """
    if not (np.isfinite(node.result).all() and np.isfinite(node.f).all() and np.isfinite(node.v[A]).all()):
        node.result[:], node.f[:], node.v[:] = 0.0, 0.0, 0.0
    if not ((node.d > 0.0).any() and (node.d < 0.0).any()):
        return
    _take(node, _solution_l1(node) if l1 else _solution_l2(node), l1, bias_limit)
    ray = None if node.result[0] >= stop else _ray(node)
    if ray is None:
        return
    wanted = _BEYOND * stop if np.isfinite(stop) else 10.0 * (1.0 + abs(node.result[0]))
    missing = max(wanted - node.result[0], 1.0) / float(ray @ node.reward)
    # A point of the l1 norm is divided by its largest entry; against the ray its own part counts for nothing.
    _take(node, node.v[A] + missing * ray, l1, bias_limit)


def solve_by_simplex(node: Node, bias_limit: float) -> None:
    """Put a node of the l1 norm to what the simplex method proves of it, if that is more."""
    _take(node, _solution_l1(node), True, bias_limit)


def _take(node: Node, a: FloatArray | None, l1: bool, bias_limit: float) -> None:
    """Put a node to a dual point (m,), if that proves more than the one it has."""
    if a is None or not np.isfinite(a).all():
        return
    a = np.clip(a, 0.0, node.capacity)
    surplus = float(a @ node.d)
    # A few variables far from their bounds take what rounding has left.
    for r in np.argsort(-np.minimum(a, node.capacity - a)):
        moved = min(max(a[r] - node.d[r] * surplus, 0.0), node.capacity[r])
        surplus += float(node.d[r] * (moved - a[r]))
        a[r] = moved
        if surplus == 0.0:
            break
    u = a @ node.Z
    size = max(1.0, float(np.abs(u).max(initial=0.0)) * _WITHIN) if l1 else 1.0
    charge = 0.0 if l1 else 0.5 * float(u @ u)
    value = (float(a @ node.reward) - charge - abs(float(a @ node.d)) * bias_limit) / size
    if value > node.result[0]:
        node.v[A], node.f[U], node.result[0] = a / size, u / size, value
        # The normal matrix is that of another point: no gains can be measured from this one.
        node.result[2] = 0.0


def _solution_l2(node: Node) -> FloatArray | None:
    """Return the dual point (m,) of a node of half the squared norm, by its primal; the weights go to the node."""
    import clarabel  # takes a while to load, and is seldom needed

    m, p = node.Z.shape
    charged = np.flatnonzero(node.capacity < NO_CAPACITY)
    k = len(charged)
    # Variables w, b and what every charged row lacks; rows: Z w + d b + lacking >= reward, lacking >= 0.
    lacking = sparse.csc_matrix((np.ones(k), (charged, np.arange(k))), shape=(m, k))
    rows = sparse.hstack([sparse.csc_matrix(np.column_stack([node.Z, node.d])), lacking])
    free = sparse.csc_matrix((k, p + 1))
    G = -sparse.vstack([rows, sparse.hstack([free, sparse.eye(k)])], format="csc")
    P = sparse.diags(np.concatenate([np.ones(p), np.zeros(k + 1)]), format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    cost = np.concatenate([np.zeros(p + 1), node.capacity[charged]])
    side = np.concatenate([-node.reward, np.zeros(k)])
    found = clarabel.DefaultSolver(P, cost, G, side, [clarabel.NonnegativeConeT(m + k)], settings).solve()
    x, a = np.array(found.x), np.array(found.z)[:m]
    if str(found.status) in ("Solved", "AlmostSolved") and np.isfinite(x).all():
        node.f[W], node.result[1] = x[:p], x[p]
    return a


def _solution_l1(node: Node) -> FloatArray | None:
    """Return the dual point (m,) of a node of the l1 norm, by the simplex method; the weights go to the node."""
    from scipy.optimize import linprog  # takes a while to load

    p, limits = node.Z.shape[1], np.minimum(node.capacity, _LARGE)
    found = linprog(
        -node.reward, np.vstack([node.Z.T, -node.Z.T]), np.ones(2 * p), node.d[None, :], np.zeros(1),
        bounds=np.column_stack([np.zeros(len(limits)), limits]), method="highs-ds",
    )  # fmt: skip
    if found.x is None:
        return None
    node.f[W] = found.ineqlin.marginals[p:] - found.ineqlin.marginals[:p]
    node.result[1] = -found.eqlin.marginals[0]
    return np.asarray(found.x, dtype=np.float64)


def _ray(node: Node) -> FloatArray | None:
    """Return amounts (m,) of the sides that raise the dual without end, the largest 1; ``None`` if there are none."""
    from scipy.optimize import linprog

    sides = np.flatnonzero(node.capacity >= NO_CAPACITY)
    largest = float(node.reward[sides].max(initial=0.0))
    if largest <= 0.0:
        return None
    size = np.maximum(np.abs(node.Z[sides]).max(axis=0, initial=0.0), 1e-300)
    balanced = np.vstack([(node.Z[sides] / size).T, node.d[sides]])
    found = linprog(
        -node.reward[sides] / largest, A_eq=balanced, b_eq=np.zeros(len(balanced)), bounds=(0.0, 1.0), method="highs-ds"
    )  # fmt: skip
    if found.x is None or -found.fun <= _LEAST_REWARD:
        return None
    ray = np.zeros(len(node.d))
    ray[sides] = np.clip(found.x, 0.0, 1.0)
    return ray
