r"""Node relaxation of the routing search: a support vector machine on few features.

With few features a node has few unknowns, weights and bias, and Newton's system of its interior point has two to four
rows: a solution costs about 0.1 ms for some hundred samples. The dual is that of
:mod:`mipforest.searches.routing.convex_relaxation` with half the squared Euclidean norm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel
from mipforest.searches.routing.svm_dual import cholesky, solve_factored

#: Capacity of a variable that has none, and from which on it counts as none.
UNLIMITED, _NO_CAPACITY = 1e12, 1e11

#: What is stored of a variable: reward, capacity, itself, slack of its margin, loss, what is left to the capacity,
#: inverse curvature of its barrier, the three steps, right-hand side, and violation of its margin's equality.
REWARD, CAPACITY, A, SLACK, LOSS, LEFT, INVERSE, DA, DSLACK, DLOSS, SIDE, RESIDUAL = range(12)

#: What is stored of the unknowns, weights and bias: themselves, ``Z a``, the violation of ``w = Z a``, and the step.
AT, SUM, LACK, STEP = range(4)

#: Gap relative to the value up to which a node is solved, iterations at most, and violation of margins.
ACCURACY, ITERATIONS, _MARGIN = 1e-7, 60, 1e-4

#: Share of the way to the boundary that a step may go.
_TO_BOUNDARY = 0.995

#: A variable closer than this to a bound, relative to its capacity up to some size, is put on it.
_NEAR, _NEAR_MOST = 1e-9, 1e3


class Samples(NamedTuple):
    """Groups of equal samples, and the loss that is charged for them.

    Attributes
    ----------
    X
        (G, p) features, centred.
    codes, sizes
        (p, G) ranks of the values of each feature, and (p,) how many values it has.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    """

    X: FloatArray
    codes: IntArray
    sizes: IntArray
    kinks: FloatArray


def samples_of(X: FloatArray, kinks: FloatArray) -> Samples:
    """Return groups (G, p) with the ranks of their values."""
    ranks = [np.unique(column, return_inverse=True) for column in X.T]
    codes = np.array([rank.ravel() for _, rank in ranks], np.int64)
    sizes = np.array([len(values) for values, _ in ranks], np.int64)
    return Samples(np.ascontiguousarray(X), codes, sizes, kinks)


class Points:
    """A node on some features: its different points (K, q), which one each group is at (G,), weights (K, 2).

    ``plunges`` counts those that have begun there; ``dichotomies`` is what
    :func:`~mipforest.searches.routing.dichotomies.dichotomies_left` has listed, with the cutoff it was listed for.
    """

    dichotomies: tuple[float, list[tuple[float, IntArray]] | None] | None = None

    def __init__(self, samples: Samples, weight: FloatArray, features: IntArray) -> None:
        points, at = np.unique(samples.X[:, features], axis=0, return_inverse=True)
        self.at: IntArray = at.ravel()
        self.weight = np.zeros((len(points), 2))
        np.add.at(self.weight, self.at, weight)
        self.samples, self.plunges = samples_of(points, samples.kinks), 0


class Workspace(NamedTuple):
    """Per-thread workspace of the solver.

    Attributes
    ----------
    Z
        (q + 1, m) directions times features, then directions.
    v
        (12, m) what is stored of the variables, from :data:`REWARD` on.
    f
        (4, q + 1) what is stored of the unknowns, from :data:`AT` on.
    M
        (q + 1, q + 1) Newton's system.
    point, points
        (G,) samples that are equal in the features at hand, and (G, 3) weights of these by class, and one of them.
    charge
        (p,) half the square of u.
    """

    Z: FloatArray
    v: FloatArray
    f: FloatArray
    M: FloatArray
    point: IntArray
    points: FloatArray
    charge: FloatArray


def workspace_for(samples: Samples, q: int) -> Workspace:
    """Return a workspace for nodes with at most q features."""
    G, p = samples.X.shape
    m = (2 * len(samples.kinks) + 1) * G
    return Workspace(
        np.zeros((q + 1, m)), np.zeros((12, m)), np.zeros((4, q + 1)), np.zeros((q + 1, q + 1)),
        np.zeros(G, np.int64), np.zeros((G, 3)), np.zeros(p),
    )  # fmt: skip


@kernel
def solve_small(
    work: Workspace,
    m: int,
    q: int,
    ridge: float,
    bias_limit: float,
    stop: float,
    accuracy: float,
    iterations: int,
) -> float:
    """Solve the dual of a node by a primal-dual interior point, with Mehrotra's predictor and corrector.

    It begins where the equality holds, and Newton steps keep it: its value is proven at any time.

    Parameters
    ----------
    work
        With variables: ``Z``, and rewards and capacities.
    m, q
        Number of variables and features.
    ridge
        1 for half the squared norm of the weights, 0 for none: variables without a bias may charge for weights. Then
        :math:`Z a = 0` has to hold, which steps only come near to, and nothing is proven.
    bias_limit
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    stop
        Value from which on no more is needed.
    accuracy, iterations
        Gap relative to the value at which to end, and iterations at most.

    Returns
    -------
    The value that is proven. Variables are in row :data:`A`, weights and bias in :data:`AT`.
    """
    Z, v, f, M = work.Z, work.v, work.f, work.M
    n, pairs = q + 1, _begin(work, m, q)
    if pairs == 0.0:
        return 0.0
    for _ in range(iterations):
        complementarity, value, primal = 0.0, 0.0, 0.0
        for i in range(m):
            complementarity += v[A, i] * v[SLACK, i] + v[LEFT, i] * v[LOSS, i]
            value += v[A, i] * v[REWARD, i]
            if v[CAPACITY, i] < _NO_CAPACITY:
                primal += v[CAPACITY, i] * v[LOSS, i]
        for j in range(n):
            total = 0.0
            for i in range(m):
                total += Z[j, i] * v[A, i]
            f[SUM, j] = f[LACK, j] = total
            if j < q:
                f[LACK, j] -= ridge * f[AT, j]
                value -= 0.5 * ridge * total * total
                primal += 0.5 * ridge * f[AT, j] * f[AT, j]
        if value > stop or not np.isfinite(complementarity):
            break
        worst = 0.0
        for i in range(m):
            score = -v[REWARD, i] + v[LOSS, i] - v[SLACK, i]
            for j in range(n):
                score += f[AT, j] * Z[j, i]
            v[RESIDUAL, i] = score
            worst = max(worst, abs(score))
        if complementarity < accuracy * min(primal, abs(value)) and worst < _MARGIN:
            break
        for i in range(m):
            curvature = v[SLACK, i] / v[A, i]
            if v[CAPACITY, i] < _NO_CAPACITY:
                curvature += v[LOSS, i] / v[LEFT, i]
            v[INVERSE, i] = 1.0 / max(curvature, 1e-14)
        for j in range(n):
            for k in range(j + 1):
                total = 0.0
                for i in range(m):
                    total += Z[j, i] * Z[k, i] * v[INVERSE, i]
                M[j, k] = total
            M[j, j] += ridge if j < q else 0.0
        cholesky(M, n)
        aim, of_a, of_slack = 0.0, 0.0, 0.0
        for i in range(m):
            v[DA, i], v[DSLACK, i], v[DLOSS, i] = 0.0, 0.0, 0.0
        for phase in range(2):
            of_a, of_slack = _step(work, m, n, aim)
            if phase == 0:
                along, across, after = min(1.0, 1.0 / of_a), min(1.0, 1.0 / of_slack), 0.0
                for i in range(m):
                    after += (v[A, i] + along * v[DA, i]) * (v[SLACK, i] + across * v[DSLACK, i])
                    if v[CAPACITY, i] < _NO_CAPACITY:
                        after += (v[LEFT, i] - along * v[DA, i]) * (v[LOSS, i] + across * v[DLOSS, i])
                aim = (after / complementarity) ** 3 * complementarity / pairs
        along, across = min(1.0, _TO_BOUNDARY / of_a), min(1.0, _TO_BOUNDARY / of_slack)
        for i in range(m):
            v[A, i] += along * v[DA, i]
            v[SLACK, i] += across * v[DSLACK, i]
            if v[CAPACITY, i] < _NO_CAPACITY:
                v[LEFT, i] -= along * v[DA, i]
                v[LOSS, i] += across * v[DLOSS, i]
        for j in range(n):
            f[AT, j] += across * f[STEP, j]
    return _proven(work, m, q, bias_limit)


@kernel
def _begin(work: Workspace, m: int, q: int) -> float:
    """Write a point to begin with that fulfils the equality; return the number of complementary pairs, 0: solved."""
    Z, v, f = work.Z, work.v, work.f
    plus, minus, pairs, capacities, limited = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(m):
        if v[CAPACITY, i] < _NO_CAPACITY:
            capacities += v[CAPACITY, i]
            limited += 1.0
    for i in range(m):
        within = v[CAPACITY, i] < _NO_CAPACITY
        v[A, i] = 0.5 * (v[CAPACITY, i] if within else capacities / limited if limited > 0.0 else 1.0)
        pairs += 2.0 if within else 1.0
        if Z[q, i] > 0.0:
            plus += v[A, i]
        elif Z[q, i] < 0.0:
            minus += v[A, i]
    for j in range(q + 1):
        f[AT, j], f[SUM, j] = 0.0, 0.0
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
        v[SLACK, i], v[LEFT, i], v[LOSS, i] = 1.0, 1.0, 0.0
        if v[CAPACITY, i] < _NO_CAPACITY:
            v[LEFT, i], v[LOSS, i] = v[CAPACITY, i] - v[A, i], max(v[REWARD, i], 0.0) + 1.0
    return pairs


@kernel
def _step(work: Workspace, m: int, n: int, aim: float) -> tuple[float, float]:
    """Compute a step towards complementary products of a size; return the reciprocals of what bounds allow of it."""
    Z, v, f, M = work.Z, work.v, work.f, work.M
    for i in range(m):
        v[SIDE, i] = (aim - v[DA, i] * v[DSLACK, i]) / v[A, i] - v[SLACK, i] - v[RESIDUAL, i]
        if v[CAPACITY, i] < _NO_CAPACITY:
            v[SIDE, i] -= (aim + v[DA, i] * v[DLOSS, i]) / v[LEFT, i] - v[LOSS, i]
    for j in range(n):
        total = f[LACK, j]
        for i in range(m):
            total += Z[j, i] * v[INVERSE, i] * v[SIDE, i]
        f[STEP, j] = total
    solve_factored(M, f[STEP], n)
    of_a, of_slack = 1e-300, 1e-300
    for i in range(m):
        score = 0.0
        for j in range(n):
            score += Z[j, i] * f[STEP, j]
        a = (v[SIDE, i] - score) * v[INVERSE, i]
        slack = (aim - v[DA, i] * v[DSLACK, i] - v[SLACK, i] * a) / v[A, i] - v[SLACK, i]
        of_a, of_slack = max(of_a, -a / v[A, i]), max(of_slack, -slack / v[SLACK, i])
        if v[CAPACITY, i] < _NO_CAPACITY:
            loss = (aim + v[DA, i] * v[DLOSS, i] + v[LOSS, i] * a) / v[LEFT, i] - v[LOSS, i]
            of_a, of_slack = max(of_a, a / v[LEFT, i]), max(of_slack, -loss / v[LOSS, i])
            v[DLOSS, i] = loss
        v[DA, i], v[DSLACK, i] = a, slack
    return of_a, of_slack


@kernel
def _proven(work: Workspace, m: int, q: int, bias_limit: float) -> float:
    """Put variables near a bound on it, shrink those of one direction to the equality; return the value proven."""
    Z, v, f = work.Z, work.v, work.f
    plus, minus, balance, value = 0.0, 0.0, 0.0, 0.0
    for i in range(m):
        a, capacity = v[A, i], v[CAPACITY, i]
        near = _NEAR * min(capacity, _NEAR_MOST)
        v[A, i] = 0.0 if not a >= near else (capacity if capacity - a < near else a)
        if Z[q, i] > 0.0:
            plus += v[A, i]
        elif Z[q, i] < 0.0:
            minus += v[A, i]
    for i in range(m):
        if Z[q, i] > 0.0:
            v[A, i] *= min(1.0, minus / plus) if plus > 0.0 else 0.0
        elif Z[q, i] < 0.0:
            v[A, i] *= min(1.0, plus / minus) if minus > 0.0 else 0.0
        balance += Z[q, i] * v[A, i]
        value += v[REWARD, i] * v[A, i]
    for j in range(q):
        total = 0.0
        for i in range(m):
            total += Z[j, i] * v[A, i]
        f[SUM, j] = total
        value -= 0.5 * total * total
    f[SUM, q] = abs(balance) * bias_limit
    value -= f[SUM, q]
    # An overflow proves nothing.
    return value if 0.0 < value < np.inf else 0.0
