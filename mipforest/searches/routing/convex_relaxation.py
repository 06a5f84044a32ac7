r"""Node relaxation of the routing search: a convex node, of any loss of kinks and any norm that the search takes.

A loss that falls to 0 along lines is a sum of hinges, :math:`f(v) = \sum_k c_k \max(0, v_k - v)`, with a kink at
each :math:`v_k`. For the samples that reach a node and the sides that it keeps, the rows of its interior point
(:mod:`mipforest.searches.routing.interior_point`) are: a margin, with d = y, r = :math:`v_k`, U = C times :math:`c_k`
times the weight of its group; a side, which has no capacity, d = 1, r = 0 (right) or d = -1, :math:`r = \varepsilon`
(left).

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
from mipforest.searches.routing.interior_point import (
    ALONG,
    AT,
    BEFORE,
    CAPACITY,
    INVERSE,
    LEFT,
    LOSS,
    NO_CAPACITY,
    REWARD,
    SELECTABLE,
    SLACK,
    STEP,
    SUM,
    WITHIN,
    A,
    InteriorWorkspace,
    Limits,
    Norm,
    cholesky,
    conjugate,
    normal_matrix,
    proven,
    solve_factored,
    solve_rows,
    workspace_for,
    write_l1,
)

#: A variable is free if it is farther than this from its bounds, relative to its capacity up to 1.
_FREE = 1e-6

#: Least curvature of a variable's barrier.
_LEAST_CURVATURE = 1e-9

#: A reduced cost up to this gains nothing; share of a gain of the l1 norm that rounding cannot take; lengths at which
#: the end of another step is valued, each this share of the one before.
_NO_GAIN, _SAFE_SHARE, _LENGTHS, _NEXT_LENGTH = 1e-12, 1.0 - 1e-9, 3, 0.4

#: Reward of a ray, as a share of the largest of a side, below which rounding may have made it.
_LEAST_REWARD = 1e-9

#: Gap and violations up to which a node is solved, and what stands for no capacity in a linear programme.
_TOLERANCE, _LARGE = 1e-11, 1e6

#: By how much more than the cutoff a ray is to prove: amounts lose digits where they become large.
_BEYOND = 1.5


class Node(NamedTuple):
    """A node: m variables, p features.

    Attributes
    ----------
    work
        Workspace of its interior point, with 2p more rows for the l1 norm.
    m
        Number of variables.
    norm
        The norm.
    result
        (3,) value proven, bias, and whether gains can be measured from the point (1.0).
    """

    work: InteriorWorkspace
    m: int
    norm: Norm
    result: FloatArray

    @property
    def Z(self) -> FloatArray:  # noqa: N802
        """(m, p) directions times features."""
        return self.work.Z[:-1, : self.m].T

    @property
    def d(self) -> FloatArray:
        """(m,) directions."""
        return self.work.Z[-1, : self.m]

    @property
    def reward(self) -> FloatArray:
        """(m,) rewards."""
        return self.work.v[REWARD, : self.m]

    @property
    def capacity(self) -> FloatArray:
        """(m,) capacities."""
        return self.work.v[CAPACITY, : self.m]

    @property
    def a(self) -> FloatArray:
        """(m,) the variables."""
        return self.work.v[A, : self.m]

    @property
    def u(self) -> FloatArray:
        """(p,) the sum that the conjugate of the norm charges."""
        return self.work.f[SUM, :-1]

    @property
    def w(self) -> FloatArray:
        """(p,) the weights."""
        return self.work.f[AT, :-1]

    @property
    def is_finite(self) -> bool:
        """Whether nothing has overflown."""
        return bool(all(np.isfinite(each).all() for each in (self.result, self.w, self.u, self.a)))


def node_for(
    Z: FloatArray, d: FloatArray, reward: FloatArray, capacity: FloatArray, norm: Norm,
    selectable: FloatArray | None = None,
) -> Node:  # fmt: skip
    """Return a node with variables (m,), directions times features (m, p), and (p,) 1.0 for features to select."""
    m, p = Z.shape
    work = workspace_for(m if norm.square else m + 2 * p, p)
    work.Z[:p, :m], work.Z[p, :m] = Z.T, d
    work.v[REWARD, :m], work.v[CAPACITY, :m] = reward, capacity
    if not norm.square:
        write_l1(work, m, p)
    if selectable is not None:
        work.f[SELECTABLE, :p] = selectable
    return Node(work, m, norm, np.zeros(3))


@entry
def solve_node(node: Node, limits: Limits) -> float:
    """Solve a node's dual by an interior point, and leave a feasible point in it.

    Parameters
    ----------
    node
        The node.
    limits
        When to end, and the bound on the bias.

    Returns
    -------
    Iterations; ``node.result`` has the value that is proven, and the bias.
    """
    work, result = node.work, node.result
    q = work.Z.shape[0] - 1
    iterations = solve_rows(work, work.Z.shape[1], q, node.norm, limits)
    result[0] = proven(work, node.m, q, node.norm, limits) if iterations > 0 else 0.0
    result[1] = work.f[AT, q]
    result[2] = 1.0 if iterations > 0 else 0.0
    return float(iterations)


# ---------------------------------------------------------------------- gains of one step


@entry
def measure_gains(
    node: Node, X: FloatArray, group: IntArray, d: FloatArray, reward: FloatArray, capacity: FloatArray,
    bias_limit: float, gains: FloatArray,
) -> None:  # fmt: skip
    """Measure what one step with a further variable raises the value of a node that was just solved.

    The step keeps the free variables stationary, as the next Newton step would, and ends where one of them meets a
    bound; where nothing is free, one partner at a bound moves. Its end is valued exactly.

    Parameters
    ----------
    node
        The node, as :func:`solve_node` left it.
    X
        (G, p) features of the groups.
    group, d, reward, capacity
        (c,) groups, directions, rewards and capacities of variables that are tried one by one.
    bias_limit
        Bound on the bias of some optimal tree.
    gains
        (c,) gains, written.
    """
    if node.result[2] == 0.0:
        for c in range(len(gains)):
            gains[c] = 0.0
        return
    free = _factorise_free(node)
    for c in range(len(gains)):
        lack = reward[c] - d[c] * node.result[1]
        for j in range(X.shape[1]):
            lack -= d[c] * X[group[c], j] * node.work.f[AT, j]
        gains[c] = 0.0
        if lack > _NO_GAIN:
            for j in range(X.shape[1]):  # what the variable adds to u and to the equality
                node.work.f[ALONG, j] = d[c] * X[group[c], j]
            node.work.f[ALONG, X.shape[1]] = d[c]
            if free:
                step = _with_free(node, reward[c], capacity[c])
            else:
                step = _with_partner(node, d[c], reward[c], capacity[c], lack)
            gains[c] = _gain(node, step, bias_limit)


class Step(NamedTuple):
    """A step along the row :data:`ALONG` of u: its longest length, and reward and violated equality per length."""

    limit: float
    reward: float
    unbalanced: float


@kernel
def _factorise_free(node: Node) -> bool:
    """Factorise Newton's system of free variables, others with inverse curvature 0; return whether there are any."""
    work, m, any_free = node.work, node.m, False
    v, n = work.v, work.Z.shape[0]
    for i in range(work.Z.shape[1]):
        near = _FREE * min(v[CAPACITY, i], 1.0)
        free = i >= m or (v[A, i] > near and v[CAPACITY, i] - v[A, i] > near)
        v[INVERSE, i] = 0.0
        if free:
            v[INVERSE, i] = 1.0 / max(v[SLACK, i] / v[A, i] + v[LOSS, i] / v[LEFT, i], _LEAST_CURVATURE)
            any_free = any_free or i < m
    if any_free:
        normal_matrix(work, work.Z.shape[1], n, work.M)
        cholesky(work.M, n)
    return any_free


@kernel
def _with_free(node: Node, reward: float, capacity: float) -> Step:
    """Return the step that keeps the free variables stationary."""
    work, limit = node.work, capacity
    Z, v, f, n = work.Z, work.v, work.f, work.Z.shape[0]
    for j in range(n):
        f[STEP, j] = f[ALONG, j]
    solve_factored(work.M, f[STEP], n)
    for i in range(node.m):
        if v[INVERSE, i] == 0.0:
            continue
        score = 0.0
        for j in range(n):
            score += Z[j, i] * f[STEP, j]
        move = -v[INVERSE, i] * score
        if move < 0.0:
            limit = min(limit, -v[A, i] / move)
        elif move > 0.0 and v[CAPACITY, i] < NO_CAPACITY:
            limit = min(limit, (v[CAPACITY, i] - v[A, i]) / move)
        reward += move * v[REWARD, i]
        for j in range(n):
            f[ALONG, j] += move * Z[j, i]
    return Step(limit, reward, f[ALONG, n - 1])


@kernel
def _with_partner(node: Node, d: float, reward: float, capacity: float, lack: float) -> Step:
    """Return the step that moves the best partner at a bound; one of no length if there is none."""
    work, best, partner = node.work, 0.0, -1
    Z, v, f, n = work.Z, work.v, work.f, work.Z.shape[0]
    for i in range(node.m):
        # The equality is kept: a variable of the same direction falls, another one rises.
        away = -1.0 if Z[n - 1, i] == d else 1.0
        if (v[A, i] if away < 0.0 else v[CAPACITY, i] - v[A, i]) > 0.0:
            slope = v[REWARD, i] - Z[n - 1, i] * node.result[1]
            for j in range(n - 1):
                slope -= Z[j, i] * f[AT, j]
            if partner < 0 or away * slope > best:
                best, partner = away * slope, i
    if partner < 0 or lack + best <= 0.0:
        return Step(0.0, 0.0, 0.0)
    away = -1.0 if Z[n - 1, partner] == d else 1.0
    left = v[A, partner] if away < 0.0 else v[CAPACITY, partner] - v[A, partner]
    for j in range(n):
        f[ALONG, j] += away * Z[j, partner]
    return Step(min(capacity, left), reward + away * v[REWARD, partner], 0.0)


@kernel
def _gain(node: Node, step: Step, bias_limit: float) -> float:
    """Return the most that a step of any length proves to raise the value of a node."""
    f, norm, limit = node.work.f, node.norm, step.limit
    q = f.shape[1] - 1
    slope, curvature, best = step.reward, 0.0, 0.0
    kept = step.reward - abs(step.unbalanced) * bias_limit
    for j in range(q):
        slope -= f[AT, j] * f[ALONG, j]
        curvature += f[ALONG, j] * f[ALONG, j]
        if norm.square == 0.0 and f[ALONG, j] != 0.0:
            room = 1.0 - f[SUM, j] if f[ALONG, j] > 0.0 else 1.0 + f[SUM, j]
            limit = min(limit, max(0.0, room) / abs(f[ALONG, j]))
    if norm.square == 0.0:
        return max(0.0, limit * (kept - (1.0 - _SAFE_SHARE) * step.reward)) if limit < NO_CAPACITY else 0.0
    if slope <= 0.0:
        return 0.0
    limit = min(limit, slope / max(curvature, _NO_GAIN))
    before = conjugate(norm, f, f[SUM], q)
    for _ in range(_LENGTHS):
        for j in range(q):
            f[BEFORE, j] = f[SUM, j] + limit * f[ALONG, j]
        best = max(best, limit * kept - (conjugate(norm, f, f[BEFORE], q) - before))
        limit *= _NEXT_LENGTH
    return best


# ---------------------------------------------------------------------- many digits


def solve_finely(node: Node, *, bias_limit: float, stop: float) -> None:
    """Put a node to the best of what its point, a finer solution and a ray prove.

    Parameters
    ----------
    node
        The node, as an interior point has left it; no feature of it is to be selected.
    bias_limit
        Bound on the bias of some optimal tree: what rounding leaves of the equality is charged with it.
    stop
        The value from which on no more is needed; where it is infinite, a ray proves a multiple of the node's value.
    """
    if not node.is_finite:
        node.result[:], node.w[:], node.u[:], node.a[:] = 0.0, 0.0, 0.0, 0.0
    if not ((node.d > 0.0).any() and (node.d < 0.0).any()):
        return
    _improve(node, _solution_l2(node) if node.norm.square else _solution_l1(node), bias_limit)
    ray = None if node.result[0] >= stop else _ray(node)
    if ray is None:
        return
    wanted = _BEYOND * stop if np.isfinite(stop) else 10.0 * (1.0 + abs(node.result[0]))
    missing = max(wanted - node.result[0], 1.0) / float(ray @ node.reward)
    # A point of the l1 norm is divided by its largest entry; against the ray its own part counts for nothing.
    _improve(node, node.a + missing * ray, bias_limit)


def solve_by_simplex(node: Node, bias_limit: float) -> None:
    """Put a node of the l1 norm to what the simplex method proves of it, if that is more."""
    _improve(node, _solution_l1(node), bias_limit)


def _improve(node: Node, a: FloatArray | None, bias_limit: float) -> None:
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
    size = 1.0 if node.norm.square else max(1.0, float(np.abs(u).max(initial=0.0)) * WITHIN)
    charge = 0.5 * node.norm.square * float(u @ u)
    value = (float(a @ node.reward) - charge - abs(float(a @ node.d)) * bias_limit) / size
    if value > node.result[0]:
        node.a[:], node.u[:], node.result[0] = a / size, u / size, value
        # The barriers are those of another point: no gains can be measured from this one.
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
        node.w[:], node.result[1] = x[:p], x[p]
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
    node.w[:] = found.ineqlin.marginals[p:] - found.ineqlin.marginals[:p]
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
