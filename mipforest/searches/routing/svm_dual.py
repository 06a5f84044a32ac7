r"""Node relaxation of the routing search: the dual of a support vector machine whose samples may have to keep a side.

For the samples that reach a branch node, with hinge loss and half the squared Euclidean norm, the dual is

.. math::

    \max_{l \le \beta \le u}\; \sum_k r_k \beta_k - \tfrac12 \Bigl\| \sum_k \beta_k x_{g(k)} \Bigr\|^2
    \quad \text{subject to} \quad \sum_k \beta_k = 0 .

Variable k belongs to the group g(k) of equal samples. The margin of class +1 has :math:`0 \le \beta \le U` and rate
:math:`r = 1`, that of class -1 has :math:`-U \le \beta \le 0` and :math:`r = -1`, with U = C times the weight of the
group's samples of the class. A side that must be kept has :math:`\beta \ge 0, r = 0` (right) or
:math:`\beta \le 0, r = -\varepsilon` (left). A linear term :math:`-q^\top w` of the node's objective
(:mod:`mipforest.searches.routing.blocks`) adds q to the sum inside the norm. **Every feasible point gives a lower bound
on the node's value**, so a warm start, an early stop and an inexact solver are all safe.

Two solvers. Pair steps (sequential minimal optimisation with second-order selection: Fan, Chen, Lin, *Working set
selection using second order information for training support vector machines*, JMLR 6, 2005) cost microseconds where
little has changed since the warm start. An interior point takes over where they do not converge, as with large
capacities, or where sides nearly clash. It is not that of :mod:`mipforest.searches.routing.convex_relaxation`, which
would take 45.2 instead of 44.6 processor seconds for at most 4000 nodes of each of the MARGOT paper's ten data sets,
with the same optima, but does not solve some complete routings with a large C to 1e-8, probably as digits cancel: two
searches of the tests end without a proof. This one computes steps of all unknowns from their residuals. Factorisation
and rounding are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.routing.plunge import STEPS, Groups

#: Bound that stands for none.
UNLIMITED = 1e12

#: Least curvature of a pair step: two groups of equal samples have none.
LEAST_CURVATURE = 1e-12

#: A variable closer than this to a bound (relative to its size) is put on it.
_AT_BOUND = 1e-13


#: Violation up to which pair steps go on, at open nodes and at complete routings.
_TOLERANCE, _FINAL_TOLERANCE = 1e-3, 1e-7

#: Pair steps before the interior point takes over, and its iterations.
_PAIR_STEPS, _INTERIOR_STEPS = 200.0, 80.0

#: Gap, relative to the value, up to which an interior point goes on, at open nodes and at complete routings.
_ACCURACY, _FINAL_ACCURACY = 1e-5, 1e-8

#: Candidates of strong branching, the pair steps each gets on a side, and their tolerance.
_CANDIDATES, _TRIAL_STEPS, _TRIAL_TOLERANCE = 4, 30.0, 1e-3

#: What is stored of a variable: the variable, its bounds, r, what the score of its group lacks to r, and variable and
#: lack while something is tried.
BETA, LOW, HIGH, RATE, MISSING, KEPT, KEPT_MISSING = range(7)

#: Which variable it is - ``2 g + c`` for the margin of class c (0: -1, 1: +1) of group g, ``2 G + g`` for its side -
#: and its group.
NUMBER, GROUP = range(2)

#: What is stored of a node: its proven dual value, its bias, and least and most of what scores lack, among variables
#: that can fall or rise.
VALUE, BIAS, LEAST_FALLING, MOST_RISING = range(4)


class Duals(NamedTuple):
    """The nodes' duals during a plunge; the first ``size[t]`` of m columns are variables of node t.

    Few arrays, as each one that is handed on costs time to compile.

    Attributes
    ----------
    size
        (|B|,) number of variables.
    name
        (2, |B|, m) :data:`NUMBER` and :data:`GROUP` of the variables.
    of
        (7, |B|, m) what is stored of them.
    node
        (4, |B|) what is stored of the nodes.
    w, score
        (|B|, p) weights and (|B|, G) scores ``w.x`` of the groups.
    X
        (M, G, p) features of the groups, 0 where a node may not use them, for each set of features that nodes may use.
    K, square
        (M, G, G) inner products of these, and (M, G) those with themselves.
    mask
        (|B|,) number of the set of each node.
    """

    size: IntArray
    name: IntArray
    of: FloatArray
    node: FloatArray
    w: FloatArray
    score: FloatArray
    X: FloatArray
    K: FloatArray
    square: FloatArray
    mask: IntArray


class Masked(NamedTuple):
    """Features of the groups and their inner products for each set of features: arrays as in :class:`Duals`."""

    X: FloatArray
    K: FloatArray
    mask: IntArray


def masked(X: FloatArray, allowed: BoolArray | None, n_nodes: int) -> Masked:
    """Return the groups' features (G, p) for each set of those that nodes may use, (|B|, p) or ``None`` for all."""
    sets, mask = np.ones((1, X.shape[1]), dtype=bool), np.zeros(n_nodes, np.int64)
    if allowed is not None:
        sets, mask = np.unique(allowed, axis=0, return_inverse=True)
    own = np.ascontiguousarray(np.where(sets[:, None, :], X, 0.0))
    return Masked(own, np.ascontiguousarray(own @ own.transpose(0, 2, 1)), mask.ravel().astype(np.int64))


def empty_duals(groups: Groups, of_sets: Masked) -> Duals:
    """Return a workspace for the duals of a plunge, with the groups' inner products."""
    (G, p), n_nodes = groups.X.shape, len(groups.C)
    m = 3 * G + 2  # a group that is tried on a side needs up to two more
    return Duals(
        size=np.zeros(n_nodes, np.int64),
        name=np.zeros((2, n_nodes, m), np.int64),
        of=np.zeros((7, n_nodes, m)),
        node=np.zeros((4, n_nodes)),
        w=np.zeros((n_nodes, p)),
        score=np.zeros((n_nodes, G)),
        X=of_sets.X,
        K=of_sets.K,
        square=np.ascontiguousarray(np.diagonal(of_sets.K, axis1=1, axis2=2)),
        mask=of_sets.mask,
    )


@kernel
def add_variable(duals: Duals, t: int, number: int, g: int, r: float, capacity: float) -> None:
    """Add a variable at 0 to a node: one that falls where r is below 0, else one that rises."""
    q = duals.size[t]
    duals.size[t] = q + 1
    duals.name[NUMBER, t, q] = number
    duals.name[GROUP, t, q] = g
    duals.of[BETA, t, q] = 0.0
    duals.of[LOW, t, q] = -capacity if r < 0.0 else 0.0
    duals.of[HIGH, t, q] = capacity if r >= 0.0 else 0.0
    duals.of[RATE, t, q] = r
    duals.of[MISSING, t, q] = r - duals.score[t, g]


@kernel
def pair_steps(duals: Duals, t: int, tolerance: float, max_steps: float, stop: float) -> int:
    """Take pair steps at a node until the duality conditions hold to a tolerance, or the value exceeds ``stop``.

    Variables, ``missing``, value and bias are changed; weights and scores are those of :func:`refresh`.

    Parameters
    ----------
    duals, t
        The duals, and the node.
    tolerance, max_steps, stop
        When to end: violation, number of steps, value.

    Returns
    -------
    Steps.
    """
    K, square, name, of = duals.K[duals.mask[t]], duals.square[duals.mask[t]], duals.name, duals.of
    n, steps, value, bias = duals.size[t], 0, duals.node[VALUE, t], 0.0
    while steps < max_steps:
        up, max_missing, down, least_missing = -1, -np.inf, -1, np.inf
        for q in range(n):
            f, x = of[MISSING, t, q], of[BETA, t, q]
            if f > max_missing and x < of[HIGH, t, q]:
                max_missing, up = f, q
            if f < least_missing and x > of[LOW, t, q]:
                least_missing, down = f, q
        if up < 0 or down < 0:
            bias = max_missing if up >= 0 else (least_missing if down >= 0 else 0.0)
            break
        bias = 0.5 * (max_missing + least_missing)
        if max_missing - least_missing < tolerance:
            break
        i, max_gained = name[GROUP, t, up], 0.0
        for q in range(n):
            violation = max_missing - of[MISSING, t, q]
            if violation > 0.0 and of[BETA, t, q] > of[LOW, t, q]:
                j = name[GROUP, t, q]
                curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
                if violation * violation > max_gained * curvature:
                    max_gained, down = violation * violation / curvature, q
        j = name[GROUP, t, down]
        curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
        violation = max_missing - of[MISSING, t, down]
        step = min(
            violation / curvature, of[HIGH, t, up] - of[BETA, t, up], of[BETA, t, down] - of[LOW, t, down]
        )
        of[BETA, t, up] = _at_bound(of[BETA, t, up] + step, of[LOW, t, up], of[HIGH, t, up])
        of[BETA, t, down] = _at_bound(of[BETA, t, down] - step, of[LOW, t, down], of[HIGH, t, down])
        for q in range(n):
            g = name[GROUP, t, q]
            of[MISSING, t, q] -= step * (K[i, g] - K[j, g])
        value += step * violation - 0.5 * step * step * curvature
        steps += 1
        if value > stop:
            break
    duals.node[VALUE, t] = value
    duals.node[BIAS, t] = bias
    return steps


@kernel
def _at_bound(x: float, low: float, high: float) -> float:
    """Return a variable, put on a bound that it is close to."""
    near = _AT_BOUND * max(abs(x), min(high - low, 1.0))
    if x - low < near:
        return low
    return high if high - x < near else x


@kernel
def refresh(groups: Groups, duals: Duals, t: int) -> None:
    """Compute weights, scores, ``missing`` and the proven value of a node anew from its variables."""
    X, name, of, w, score = duals.X[duals.mask[t]], duals.name, duals.of, duals.w, duals.score
    n, p = duals.size[t], X.shape[1]
    for j in range(p):
        w[t, j] = groups.pull[t, j]
    value, imbalance = 0.0, 0.0
    for q in range(n):
        x = of[BETA, t, q]
        if x != 0.0:
            value += x * of[RATE, t, q]
            imbalance += x
            g = name[GROUP, t, q]
            for j in range(p):
                w[t, j] += x * X[g, j]
    for j in range(p):
        value -= 0.5 * w[t, j] * w[t, j]
    # What rounding leaves of the equality is charged: the bias of some optimal tree is bounded.
    duals.node[VALUE, t] = value - abs(imbalance) * groups.bias_limit[t]
    for g in range(len(X)):
        total = 0.0
        for j in range(p):
            total += X[g, j] * w[t, j]
        score[t, g] = total
    least, most = np.inf, -np.inf
    for q in range(n):
        f = of[RATE, t, q] - score[t, name[GROUP, t, q]]
        of[MISSING, t, q] = f
        if f < least and of[BETA, t, q] > duals.of[LOW, t, q]:
            least = f
        if f > most and of[BETA, t, q] < duals.of[HIGH, t, q]:
            most = f
    duals.node[LEAST_FALLING, t] = least
    duals.node[MOST_RISING, t] = most


@kernel
def best_step(duals: Duals, t: int, g: int, r: float, capacity: float) -> tuple[float, int, float]:
    """Return the pair step with a new variable of group g that raises the dual value of node t most.

    Parameters
    ----------
    duals, t, g
        The duals, a node and a group.
    r, capacity
        The new variable's rate - it falls where that is below 0, else it rises - and how far it may go.

    Returns
    -------
    gain, partner, step
        By what the value rises, the variable that moves too, -1 if there is none, and how far they move.
    """
    K, square, name, of = duals.K[duals.mask[t]], duals.square[duals.mask[t]], duals.name, duals.of
    own, direction, bound = r - duals.score[t, g], 1.0, LOW
    best, partner, length = 0.0, -1, 0.0
    if r < 0.0:
        direction, bound = -1.0, HIGH
        if own >= duals.node[MOST_RISING, t]:
            return best, partner, length
    elif own <= duals.node[LEAST_FALLING, t]:
        return best, partner, length
    for q in range(duals.size[t]):
        violation = direction * (own - of[MISSING, t, q])
        free = min(direction * (of[BETA, t, q] - of[bound, t, q]), capacity)
        if violation * free > best:
            j = name[GROUP, t, q]
            curvature = max(square[g] + square[j] - 2.0 * K[g, j], LEAST_CURVATURE)
            if violation * violation > 2.0 * best * curvature:
                step = min(violation / curvature, free)
                gain = step * (violation - 0.5 * step * curvature)
                if gain > best:
                    best, partner, length = gain, q, step
    return best, partner, length


# ---------------------------------------------------------------------- interior point

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
    """Workspace of the interior point: m variables and a multiple of 4 rows, p features.

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


def interior_workspace(max_variables: int, p: int) -> Interior:
    """Return a workspace for nodes of at most this many variables."""
    m = (max_variables + 3) // 4 * 4
    return Interior(np.zeros((m, p)), np.zeros((p, p)), np.zeros((16, m)), np.zeros((3, p)))


@kernel
def cholesky(M: FloatArray, q: int) -> None:
    """Factorise the first q rows of a positive definite matrix in place; the lower triangle then holds the factor."""
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
def solve_factored(L: FloatArray, x: FloatArray, q: int) -> None:
    """Solve ``L L' x = b`` in place for a vector (q,)."""
    for i in range(q):
        entry = x[i]
        for s in range(i):
            entry -= L[i, s] * x[s]
        x[i] = entry / L[i, i]
    for i in range(q - 1, -1, -1):
        x[i] /= L[i, i]
        for s in range(i):
            x[s] -= L[i, s] * x[i]


@kernel
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
    groups: Groups, duals: Duals, work: Interior, t: int, accuracy: float, max_iterations: float, stop: float
) -> int:
    """Solve a node's dual by a primal-dual interior point; write a feasible point near its end into the row KEPT.

    Parameters
    ----------
    groups, duals, work, t
        The groups, the duals, the workspace, and the node.
    accuracy, max_iterations, stop
        Gap between primal and dual relative to the value, iterations, and the value from which on no more is needed.

    Returns
    -------
    Iterations; 0 where only 0 is feasible, as all variables have one direction.
    """
    Z, M, v, f = work
    X = duals.X[duals.mask[t]]
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
            Z[r, j] = v[D, r] * X[g, j]
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
    while iterations < max_iterations:
        iterations += 1
        _to_features(Z, v[A], m, f[W])
        balance, objective, complementarity, worst = 0.0, 0.0, 0.0, 0.0
        for j in range(p):
            f[W, j] += groups.pull[t, j]
            objective -= 0.5 * groups.pull[t, j] * f[W, j]
        _to_samples(Z, f[W], m, v[Z1])
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
        cholesky(M, p)
        for r in range(m):
            v[Y2, r] = v[D, r] / v[THETA, r]
        _to_features(Z, v[Y2], m, f[R2])
        solve_factored(M, f[R2], p)
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
            solve_factored(M, f[R1], p)
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
    for r in range(m):
        v[Z1, r] = duals.of[HIGH, t, r] - duals.of[LOW, t, r]
    round_to_feasible(v[A], v[D], v[Z1], m)
    for r in range(m):
        duals.of[KEPT, t, r] = v[D, r] * v[A, r]
    return iterations


@kernel
def round_to_feasible(a: FloatArray, d: FloatArray, capacity: FloatArray, m: int) -> None:
    """Put m variables near a bound on it, and repair the equality by those between their bounds, then by all."""
    balance = 0.0
    for r in range(m):
        near = _NEAR * min(capacity[r], _NEAR_MOST)
        a[r] = 0.0 if a[r] < near else (capacity[r] if capacity[r] - a[r] < near else a[r])
        balance += d[r] * a[r]
    for inner in range(2):
        for r in range(m):
            before = a[r]
            if abs(balance) < _BALANCED:
                return
            if inner == 1 or 0.0 < before < capacity[r]:
                a[r] = min(max(before - d[r] * balance, 0.0), capacity[r])
                balance += d[r] * (a[r] - before)


# ---------------------------------------------------------------------- logs of certificates

#: What an entry of a log is.
LEAF, DUAL, CLOSED, BRANCH = 1.0, 2.0, 3.0, 4.0


@kernel
def _log_dual(log: FloatArray, kind: float, duals: Duals) -> None:
    """Log the dual point of a plunge: of a leaf, or from which sides are closed."""
    at = int(log[0])
    log[at] = kind
    at += 1
    for t in range(len(duals.size)):
        start, at = at, at + 1
        for q in range(duals.size[t]):
            if duals.of[BETA, t, q] != 0.0:
                log[at], log[at + 1] = duals.name[NUMBER, t, q], abs(duals.of[BETA, t, q])
                at += 2
        log[start] = (at - start - 1) // 2
    log[0] = at


# ---------------------------------------------------------------------- the relaxation


class SvmNodes(NamedTuple):
    """Node relaxations of a plunge: all nodes' duals.

    Attributes
    ----------
    groups, duals, interior
        The problem, the duals, and the workspace of the interior point.
    start, saved
        (|B|, 3 G) variables to begin with, by number, and (steps + 1, |B|, 3 G) those of open nodes.
    log
        What is proven, for a certificate; of length 1 to log nothing.
    candidates, trials_close
        Candidates of strong branching, and whether a trial that closes a side ends it.
    """

    groups: Groups
    duals: Duals
    interior: Interior
    start: FloatArray
    saved: FloatArray
    log: FloatArray
    candidates: int
    trials_close: bool


def svm_nodes(groups: Groups, of_sets: Masked, log: FloatArray) -> SvmNodes:
    """Return a workspace for the nodes of a problem, with the groups' inner products."""
    n_nodes, wide = len(groups.C), 3 * len(groups.X)
    return SvmNodes(
        groups=groups,
        duals=empty_duals(groups, of_sets),
        interior=interior_workspace(wide, groups.X.shape[1]),
        start=np.zeros((n_nodes, wide)),
        saved=np.empty((STEPS + 1, n_nodes, wide)),
        log=log,
        candidates=_CANDIDATES,
        trials_close=False,
    )


@kernel
def value_of(nodes: SvmNodes, t: int) -> float:
    """Return the proven value of node t."""
    value: float = nodes.duals.node[VALUE, t]
    return value


@kernel
def clear(nodes: SvmNodes, t: int) -> None:
    """Remove all variables of node t."""
    nodes.duals.size[t] = 0


@kernel
def add_margins(nodes: SvmNodes, t: int, g: int) -> None:
    """Charge a group at a node: one variable per class that it has samples of."""
    C, weight = nodes.groups.C, nodes.groups.weight
    for c in range(2):
        capacity = C[t] * weight[g, c]
        if capacity > 0.0:
            add_variable(nodes.duals, t, 2 * g + c, g, 2.0 * c - 1.0, capacity)


@kernel
def add_side(nodes: SvmNodes, t: int, g: int, side: int) -> None:
    """Keep a group on a side of a node."""
    number = 2 * len(nodes.groups.X) + g
    add_variable(nodes.duals, t, number, g, 0.0 if side > 0 else -nodes.groups.epsilon, UNLIMITED)


@kernel
def warm_start(nodes: SvmNodes, t: int) -> None:
    """Take the variables of node t from the warm start."""
    duals = nodes.duals
    for q in range(duals.size[t]):
        duals.of[BETA, t, q] = nodes.start[t, duals.name[NUMBER, t, q]]
    refresh(nodes.groups, duals, t)


@kernel
def solve(nodes: SvmNodes, t: int, stop: float, brief: bool, final: bool) -> None:
    """Solve node t from its warm start: by pair steps, and by the interior point where these are not enough."""
    groups, duals = nodes.groups, nodes.duals
    tolerance, max_steps, accuracy = _TOLERANCE, _PAIR_STEPS, _ACCURACY
    if final:
        tolerance, max_steps, accuracy = _FINAL_TOLERANCE, 10.0 * _PAIR_STEPS, _FINAL_ACCURACY
    steps = pair_steps(duals, t, tolerance, max_steps, stop)
    refresh(groups, duals, t)
    before = duals.node[VALUE, t]
    if steps < max_steps or before > stop or brief:
        return
    interior_point(groups, duals, nodes.interior, t, accuracy, _INTERIOR_STEPS, stop)
    for attempt in range(2):  # the second time puts the better point back
        if attempt == 0 or duals.node[VALUE, t] < before:
            for q in range(duals.size[t]):
                other = duals.of[KEPT, t, q]
                duals.of[KEPT, t, q] = duals.of[BETA, t, q]
                duals.of[BETA, t, q] = other
            refresh(groups, duals, t)


@kernel
def gain_of_side(nodes: SvmNodes, t: int, g: int, side: int) -> float:
    """Return the most that one pair step with a group kept on a side proves of node t."""
    r = 0.0 if side > 0 else -nodes.groups.epsilon
    return best_step(nodes.duals, t, g, r, UNLIMITED)[0]


@kernel
def gain_of_margins(nodes: SvmNodes, t: int, g: int) -> float:
    """Return the most that one pair step with a group charged at node t proves of it.

    Two steps with the margins of both classes do not add up: the better one counts.
    """
    best, C, weight = 0.0, nodes.groups.C, nodes.groups.weight
    for c in range(2):
        capacity = C[t] * weight[g, c]
        if capacity > 0.0:
            rate = 1.0 if c == 1 else -1.0
            best = max(best, best_step(nodes.duals, t, g, rate, capacity)[0])
    return best


@kernel
def trial_gain(nodes: SvmNodes, t: int, g: int, side: int, slack: float) -> float:
    """Return the gain of node t by some pair steps with a group charged there (side 0) or kept on a side."""
    duals = nodes.duals
    of = duals.of
    n, value, bias = duals.size[t], duals.node[VALUE, t], duals.node[BIAS, t]
    for q in range(n):
        of[KEPT, t, q] = of[BETA, t, q]
        of[KEPT_MISSING, t, q] = of[MISSING, t, q]
    if side == 0:
        add_margins(nodes, t, g)
    else:
        add_side(nodes, t, g, side)
    pair_steps(duals, t, _TRIAL_TOLERANCE, _TRIAL_STEPS, value + slack)
    gain: float = duals.node[VALUE, t] - value
    for q in range(n):
        of[BETA, t, q] = of[KEPT, t, q]
        of[MISSING, t, q] = of[KEPT_MISSING, t, q]
    duals.size[t] = n
    duals.node[VALUE, t] = value
    duals.node[BIAS, t] = bias
    return gain


@kernel
def save(nodes: SvmNodes, t: int, at: int) -> None:
    """Write the variables of node t to a row of the open nodes, by number."""
    duals, saved = nodes.duals, nodes.saved
    for k in range(saved.shape[2]):
        saved[at, t, k] = 0.0
    for q in range(duals.size[t]):
        saved[at, t, duals.name[NUMBER, t, q]] = duals.of[BETA, t, q]


@kernel
def log_leaf(nodes: SvmNodes) -> None:
    """Log the dual point of a leaf."""
    _log_dual(nodes.log, LEAF, nodes.duals)


@kernel
def log_closed(nodes: SvmNodes, first: bool, g: int, t: int, side: int) -> None:
    """Log that group g cannot take a side of node t, with the pair steps there and in the child that prove it."""
    groups, duals, log = nodes.groups, nodes.duals, nodes.log
    if first:
        _log_dual(log, DUAL, duals)
    at = int(log[0])
    log[at], log[at + 1], log[at + 2], log[at + 3], log[at + 4] = CLOSED, g, t, side, 0.0
    number = 2.0 * len(groups.weight) + g
    _log_step(log, at, duals, t, g, number, 0.0 if side > 0 else -groups.epsilon, UNLIMITED, 0.0)
    gain, child = 0.0, 2 * t + 1 if side < 0 else 2 * t + 2
    for c in range(2):  # the better of the margins
        capacity = groups.C[child] * groups.weight[g, c]
        if capacity > 0.0:
            gain = _log_step(log, at, duals, child, g, 2.0 * g + c, 2.0 * c - 1.0, capacity, gain)
    log[0] = at + 5 + 4 * int(log[at + 4])


@kernel
def _log_step(
    log: FloatArray, at: int, duals: Duals, t: int, g: int, number: float, r: float, capacity: float, known: float
) -> float:  # fmt: skip
    """Log a pair step with a new variable in place of one at the same node with a known gain, if it gains more.

    Returns the gain of the step that is logged.
    """
    gain, partner, step = best_step(duals, t, g, r, capacity)
    if gain <= known:
        return known
    if known == 0.0:
        log[at + 4] += 1.0
    end = at + 1 + 4 * int(log[at + 4])
    log[end], log[end + 1], log[end + 2], log[end + 3] = t, number, duals.name[NUMBER, t, partner], step
    return gain


@kernel
def log_branch(nodes: SvmNodes, g: int, side: int) -> None:
    """Log that a plunge goes on with a side of group g and leaves the other open."""
    log, at = nodes.log, int(nodes.log[0])
    log[at], log[at + 1], log[at + 2] = BRANCH, g, side
    log[0] = at + 3


implement(
    SvmNodes, value_of, clear, add_margins, add_side, warm_start, solve, gain_of_side, gain_of_margins, trial_gain,
    save, log_leaf, log_closed, log_branch,
)  # fmt: skip
