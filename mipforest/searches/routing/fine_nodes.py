r"""Solve a convex node whose features are decided to many digits, or show that no hyperplane keeps its sides.

An interior point may end while rows of the size of :math:`\varepsilon` are still broken: of a node that no hyperplane
keeps it then proves far too little. At the end of a dive nothing is left to branch on, so nodes are solved once more
there. Sides that no hyperplane keeps have a ray, by Farkas' lemma: amounts a of the sides with
:math:`\sum_k a_k d_k = 0`, :math:`\sum_k a_k d_k x_{g(k)} = 0` and a positive reward, multiples of which raise the
dual without end.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray
from mipforest.searches.routing.convex_node import NO_CAPACITY, A, Node, U, W

#: Reward of a ray, as a share of the largest of a side, below which rounding may have made it.
_LEAST_REWARD = 1e-9

#: Gap and violations up to which a node is solved, and what stands for no capacity in a linear programme.
_TOLERANCE, _LARGE = 1e-11, 1e6

#: By how much more than the target a ray is to prove: amounts lose digits where they become large.
_BEYOND = 1.5

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
_WITHIN = 1.0 + 1e-10


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
    # A point of the l1 norm is divided by its largest entry; beside the ray its own part counts for nothing.
    _take(node, node.v[A] + missing * ray, l1, bias_limit)


def _take(node: Node, a: FloatArray | None, l1: bool, bias_limit: float) -> None:
    """Put a node to a dual point (m,), if that proves more than the one it has."""
    if a is None or not np.isfinite(a).all():
        return
    a = np.clip(a, 0.0, node.capacity)
    surplus = float(a @ node.d)
    for r in np.argsort(
        -np.minimum(a, node.capacity - a)
    ):  # a few variables with room take what rounding has left
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
        # The normal matrix is that of another point: no rises can be measured from this one.
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
    most = float(node.reward[sides].max(initial=0.0))
    if most <= 0.0:
        return None
    size = np.maximum(np.abs(node.Z[sides]).max(axis=0, initial=0.0), 1e-300)
    balanced = np.vstack([(node.Z[sides] / size).T, node.d[sides]])
    found = linprog(
        -node.reward[sides] / most, A_eq=balanced, b_eq=np.zeros(len(balanced)), bounds=(0.0, 1.0), method="highs-ds"
    )  # fmt: skip
    if found.x is None or -found.fun <= _LEAST_REWARD:
        return None
    ray = np.zeros(len(node.d))
    ray[sides] = np.clip(found.x, 0.0, 1.0)
    return ray
