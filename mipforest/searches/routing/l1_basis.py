r"""Compiled: bases of nodes with the l1 norm and a loss of kinks, whose dual is a linear programme.

In the dual of :mod:`mipforest.searches.routing.convex_node`, the l1 norm has only rows,

.. math::

    \max_{0 \le a \le U}\; \sum_k r_k a_k, \quad \sum_k a_k d_k x_{g(k)} + s = 0, \; -1 \le s \le 1,
    \quad \sum_k d_k a_k = 0,

p + 1 of them: a basis is small, and a step costs microseconds, most of which price the samples. Samples and sides that
are added to a node are further variables at 0, so **the basis of a partial routing stays feasible for all that extends
it**: its optimum is some steps of the simplex method away (:mod:`mipforest.searches.routing.l1_node`), where an
interior point would begin anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import glue, kernel

#: Bound of a variable that has none, and from which on it counts as none.
UNLIMITED, NO_BOUND = 1e300, 1e299

#: Where a variable is; slacks at their lower bound are -1, all others 0.
ABSENT, AT_LOWER, AT_UPPER, BASIC = -1, 0, 1, 2

#: What is stored of a node: its proven value, what the variables prove now, and whether it was solved to its end.
VALUE, POINT, SOLVED = range(3)

#: Rows of the room for vectors: a column, the direction of basic variables, the right-hand side, and u.
COLUMN, DIRECTION, RIGHT, SUM = range(4)

#: Pivots that count as 0; by what basic variables may be outside of their bounds when they are computed anew.
_SINGULAR, _INFEASIBLE = 1e-11, 1e-6


class Groups(NamedTuple):
    """What stays the same during a search.

    Attributes
    ----------
    X
        (G, p) features of the groups of equal samples, centred.
    weight
        (G, 2) total weight of the samples of each class, -1 and +1.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    C, bias_limit
        (|B|,) penalties, and bounds on the biases of some optimal tree.
    epsilon
        Gap that stands for a strict inequality.
    """

    X: FloatArray
    weight: FloatArray
    kinks: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    epsilon: float


class Bases(NamedTuple):
    """The nodes' bases during a dive; of q = p + 1 variables each, of N in all.

    Variable ``(2 g + c) K + k`` is the margin of class c of group g at kink k, ``2 G K + g`` the side of group g, and
    ``2 G K + G + j`` the slack of row j.

    Attributes
    ----------
    size, here
        (|B|,) number of the groups that reach a node, and (|B|, G + 1) which ones.
    side
        (|B|, G) -1 or 1 where a group must stay left or right, else 0.
    where
        (|B| + 1, N) where the variables are; the last row is what is kept while something is tried, as below.
    basis, x
        (|B| + 1, q) basic variables and their values.
    inverse, y
        (|B| + 1, q, q) inverses of the bases, and (|B| + 1, q) weights and bias.
    node
        (3, |B|) :data:`VALUE`, :data:`POINT` and :data:`SOLVED`.
    work, net
        (4, q) and (G,) room.
    """

    size: IntArray
    here: IntArray
    side: IntArray
    where: NDArray[np.int8]
    basis: IntArray
    x: FloatArray
    inverse: FloatArray
    y: FloatArray
    node: FloatArray
    work: FloatArray
    net: FloatArray


def empty_bases(n_nodes: int, groups: Groups) -> Bases:
    """Return room for the bases of a dive."""
    G, p = groups.X.shape
    q, N = p + 1, 2 * G * len(groups.kinks) + G + p + 1
    return Bases(
        size=np.zeros(n_nodes, np.int64),
        here=np.zeros((n_nodes, G + 1), np.int64),
        side=np.zeros((n_nodes, G), np.int64),
        where=np.zeros((n_nodes + 1, N), np.int8),
        basis=np.zeros((n_nodes + 1, q), np.int64),
        x=np.zeros((n_nodes + 1, q)),
        inverse=np.zeros((n_nodes + 1, q, q)),
        y=np.zeros((n_nodes + 1, q)),
        node=np.zeros((3, n_nodes)),
        work=np.zeros((4, q)),
        net=np.zeros(G),
    )


# ---------------------------------------------------------------------- variables


@kernel
def upper(groups: Groups, t: int, j: int) -> float:
    """Return the upper bound of a variable."""
    G, K = len(groups.X), len(groups.kinks)
    if j < 2 * G * K:
        of = j // K
        capacity: float = groups.C[t] * groups.weight[of // 2, of % 2] * groups.kinks[j % K, 1]
        return capacity
    if j < 2 * G * K + G:
        return UNLIMITED
    return 1.0 if j < 2 * G * K + G + groups.X.shape[1] else 0.0


@glue
def lower(groups: Groups, j: int) -> float:
    """Return the lower bound of a variable."""
    first = 2 * len(groups.X) * len(groups.kinks) + len(groups.X)
    return -1.0 if first <= j < first + groups.X.shape[1] else 0.0


@glue
def direction_of(groups: Groups, bases: Bases, t: int, j: int) -> float:
    """Return the direction of a margin or a side."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    return 2.0 * ((j // len(groups.kinks)) % 2) - 1.0 if j < margins else float(bases.side[t, j - margins])


@glue
def group_of(groups: Groups, j: int) -> int:
    """Return the group of a margin or a side."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    return j // (2 * len(groups.kinks)) if j < margins else j - margins


@glue
def reward_of(groups: Groups, bases: Bases, t: int, j: int) -> float:
    """Return the reward of a variable."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    reward = 0.0
    if j < margins:
        reward = groups.kinks[j % len(groups.kinks), 0]
    elif j < margins + len(groups.X) and bases.side[t, j - margins] < 0:
        reward = groups.epsilon
    return reward


@glue
def write_column(groups: Groups, bases: Bases, t: int, j: int, out: FloatArray) -> None:
    """Write the column (q,) of a variable."""
    G, p = groups.X.shape
    slack = j - 2 * G * len(groups.kinks) - G
    if slack >= 0:
        for i in range(p + 1):
            out[i] = 0.0
        out[slack] = 1.0
    else:
        d, g = direction_of(groups, bases, t, j), group_of(groups, j)
        for i in range(p):
            out[i] = d * groups.X[g, i]
        out[p] = d


@glue
def add_margins(groups: Groups, bases: Bases, t: int, g: int) -> None:
    """Add the margins of a group that comes to a node."""
    K = len(groups.kinks)
    bases.here[t, bases.size[t]] = g
    bases.size[t] += 1
    for c in range(2):
        if groups.weight[g, c] > 0.0:
            for k in range(K):
                bases.where[t, (2 * g + c) * K + k] = AT_LOWER


@glue
def add_side(groups: Groups, bases: Bases, t: int, g: int, side: int) -> None:
    """Keep a group of a node on a side."""
    bases.side[t, g] = side
    bases.where[t, 2 * len(groups.X) * len(groups.kinks) + g] = AT_LOWER


# ---------------------------------------------------------------------- bases


@kernel
def reset(groups: Groups, bases: Bases, t: int) -> None:
    """Begin with all variables at 0: the slacks are the basis."""
    where, q = bases.where, groups.X.shape[1] + 1
    first = where.shape[1] - q
    for j in range(first):
        if where[t, j] != ABSENT:
            where[t, j] = AT_LOWER
    for i in range(q):
        where[t, first + i], bases.basis[t, i] = BASIC, first + i


@kernel
def refresh(groups: Groups, bases: Bases, t: int) -> bool:
    """Compute the inverse of a basis, its variables and its duals anew; return whether it is feasible."""
    inverse, basis, x, y, work = bases.inverse[t], bases.basis[t], bases.x[t], bases.y[t], bases.work
    q = len(basis)
    p, K = q - 1, len(groups.kinks)
    # The rows of this matrix are the columns of the basis: its inverse is the transposed one.
    for i in range(q):
        write_column(groups, bases, t, basis[i], inverse[i])
    for i in range(q):
        work[DIRECTION, i] = i
    for i in range(q):
        pivot = i
        for k in range(i + 1, q):
            if abs(inverse[k, i]) > abs(inverse[pivot, i]):
                pivot = k
        if abs(inverse[pivot, i]) < _SINGULAR:
            return False
        if pivot != i:
            for k in range(q):
                inverse[i, k], inverse[pivot, k] = inverse[pivot, k], inverse[i, k]
            work[DIRECTION, i], work[DIRECTION, pivot] = work[DIRECTION, pivot], work[DIRECTION, i]
        scale = 1.0 / inverse[i, i]
        inverse[i, i] = 1.0
        for k in range(q):
            inverse[i, k] *= scale
        for r in range(q):
            if r != i:
                factor = inverse[r, i]
                inverse[r, i] = 0.0
                if factor != 0.0:
                    for k in range(q):
                        inverse[r, k] -= factor * inverse[i, k]
    # Undo the exchanges of rows as exchanges of columns, then transpose.
    for i in range(q):
        while int(work[DIRECTION, i]) != i:
            k = int(work[DIRECTION, i])
            for r in range(q):
                inverse[r, i], inverse[r, k] = inverse[r, k], inverse[r, i]
            work[DIRECTION, i], work[DIRECTION, k] = work[DIRECTION, k], work[DIRECTION, i]
    for i in range(q):
        for k in range(i):
            inverse[i, k], inverse[k, i] = inverse[k, i], inverse[i, k]
    first = bases.where.shape[1] - q
    for i in range(q):
        at = bases.where[t, first + i]
        work[RIGHT, i] = 0.0
        if i < p and at != BASIC:
            work[RIGHT, i] = 1.0 if at == AT_LOWER else -1.0
    for n in range(bases.size[t]):
        g, net = bases.here[t, n], 0.0
        for c in range(2):
            for k in range(K):
                j = (2 * g + c) * K + k
                if bases.where[t, j] == AT_UPPER:
                    net += (2.0 * c - 1.0) * upper(groups, t, j)
        if net != 0.0:
            for i in range(p):
                work[RIGHT, i] -= net * groups.X[g, i]
            work[RIGHT, p] -= net
    feasible = True
    for i in range(q):
        y[i] = 0.0
    for i in range(q):
        x[i] = 0.0
        for k in range(q):
            x[i] += inverse[i, k] * work[RIGHT, k]
        j = basis[i]
        low, high = lower(groups, j), upper(groups, t, j)
        feasible = feasible and low - _INFEASIBLE <= x[i] <= high + _INFEASIBLE * max(1.0, high)
        reward = reward_of(groups, bases, t, j)
        if reward != 0.0:
            for k in range(q):
                y[k] += reward * inverse[i, k]
    return feasible
