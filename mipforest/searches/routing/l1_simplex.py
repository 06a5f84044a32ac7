r"""Node relaxation of the routing search: the linear programme of a node with the l1 norm and a loss of kinks.

In the dual of :mod:`mipforest.searches.routing.convex_relaxation`, the l1 norm has only rows,

.. math::

    \max_{0 \le a \le U}\; \sum_k r_k a_k, \quad \sum_k a_k d_k x_{g(k)} + s = 0, \; -1 \le s \le 1,
    \quad \sum_k d_k a_k = 0,

p + 1 of them: a basis is small, and a step of the simplex method costs microseconds, most of which price the samples.
Samples and sides that are added to a node are further variables at 0, so **the basis of an open node stays feasible for
all that extends it**: its optimum is some steps away, where an interior point would begin anew. What is proven is
computed from the variables alone (:func:`prove`): clipped to their bounds, and shrunk until the rows hold.

One step is often short, as many variables are near a bound: so candidates of strong branching are tried for more steps,
and a trial that reaches the cutoff closes a side, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.routing.plunge import (
    STEPS,
    CompiledBackend,
    ConvexNodes,
    Groups,
    WarmStart,
)

#: Bound of a variable that has none, and from which on it counts as none.
UNLIMITED, NO_BOUND = 1e300, 1e299

#: Where a variable is; slacks at their lower bound are -1, all others 0.
ABSENT, AT_LOWER, AT_UPPER, BASIC = -1, 0, 1, 2

#: What is stored of a node: its proven value, and what the variables prove now.
VALUE, POINT = range(2)

#: Rows of the workspace for vectors: a column, the direction of basic variables, the right-hand side, and u.
COLUMN, DIRECTION, RIGHT, SUM = range(4)

#: Pivots that count as 0; by what basic variables may be outside of their bounds when they are computed anew.
_SINGULAR, _INFEASIBLE = 1e-11, 1e-6

#: Reduced cost up to which nothing is gained; entries of a direction that count as 0; by what a step may leave bounds,
#: so that among almost equal ones the largest entry is taken (Harris, *Pivot selection methods of the Devex LP code*,
#: Mathematical Programming 5, 1973).
_OPTIMAL, _NO_PIVOT, _OUTSIDE = 1e-9, 1e-9, 1e-9

#: Steps after which the inverse is computed anew; steps of length 0, and what counts as 0, after which the first
#: variable enters and leaves that may, against circles; what a value may rise above a limit before its proof.
_ANEW, _STALLED, _NO_LENGTH, _ABOVE = 64, 40, 1e-12, 1e-6

#: The gain of a further variable is lowered by what such an error of its direction may cost, per length; the longest
#: step whose gain counts.
_ERROR, _LONGEST = 1e-9, 1e4

#: By what u is divided beyond its largest entry, so that rounding leaves it within the unit cube.
_WITHIN = 1.0 + 1e-10

#: Steps of the simplex method at a node at most; candidates of strong branching, and the steps each gets on a side.
_MAX_STEPS, _CANDIDATES, _TRIAL_STEPS = 20_000, 8, 20


class Bases(NamedTuple):
    """The nodes' bases during a plunge; of q = p + 1 variables each, of N in all.

    Variable ``(2 g + c) K + k`` is the margin of class c of group g at kink k, ``2 G K + g`` the side of group g, and
    ``2 G K + G + j`` the slack of row j.

    Attributes
    ----------
    size, here
        (|B|,) number of the groups that reach a node, and (|B|, G + 1) which ones.
    side
        (|B|, G) -1 or 1 where a group must stay left or right, else 0.
    where
        (|B| + 1, N) where the variables are; the last row is what is kept while something is tried.
    basis, x
        (|B| + 1, q) basic variables and their values.
    inverse, y
        (|B| + 1, q, q) inverses of the bases, and (|B| + 1, q) weights and bias.
    node
        (2, |B|) :data:`VALUE` and :data:`POINT`.
    work, net
        (4, q) and (G,) workspace.
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
    """Return a workspace for the bases of a plunge."""
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
        node=np.zeros((2, n_nodes)),
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


@kernel
def lower(groups: Groups, j: int) -> float:
    """Return the lower bound of a variable."""
    first = 2 * len(groups.X) * len(groups.kinks) + len(groups.X)
    return -1.0 if first <= j < first + groups.X.shape[1] else 0.0


@kernel
def direction_of(groups: Groups, bases: Bases, t: int, j: int) -> float:
    """Return the direction of a margin or a side."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    return 2.0 * ((j // len(groups.kinks)) % 2) - 1.0 if j < margins else float(bases.side[t, j - margins])


@kernel
def group_of(groups: Groups, j: int) -> int:
    """Return the group of a margin or a side."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    return j // (2 * len(groups.kinks)) if j < margins else j - margins


@kernel
def reward_of(groups: Groups, bases: Bases, t: int, j: int) -> float:
    """Return the reward of a variable."""
    margins = 2 * len(groups.X) * len(groups.kinks)
    reward = 0.0
    if j < margins:
        reward = groups.kinks[j % len(groups.kinks), 0]
    elif j < margins + len(groups.X) and bases.side[t, j - margins] < 0:
        reward = groups.epsilon
    return reward


@kernel
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
    if not _invert(groups, bases, t):
        return False
    _write_right_side(groups, bases, t)
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


@kernel
def _invert(groups: Groups, bases: Bases, t: int) -> bool:
    """Invert a basis with pivots; return whether that is possible."""
    inverse, basis, work, q = bases.inverse[t], bases.basis[t], bases.work, bases.inverse.shape[1]
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
    return True


@kernel
def _write_right_side(groups: Groups, bases: Bases, t: int) -> None:
    """Write what the variables that are not basic leave of the right-hand side."""
    work, q = bases.work, bases.inverse.shape[1]
    p, K = q - 1, len(groups.kinks)
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


# ---------------------------------------------------------------------- simplex method


@kernel
def _enter(groups: Groups, bases: Bases, t: int, first_will_do: bool) -> tuple[int, float]:
    """Return the variable that enters the basis, -1 for none, and its reduced cost: the largest, or the first one's."""
    where, y, K = bases.where[t], bases.y[t], len(groups.kinks)
    p, entering, cost, best = groups.X.shape[1], -1, 0.0, _OPTIMAL
    margins = 2 * len(groups.X) * K
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        score = y[p]
        for i in range(p):
            score += y[i] * groups.X[g, i]
        for c in range(2):
            if groups.weight[g, c] > 0.0:
                margin = (2.0 * c - 1.0) * score
                for k in range(K):
                    j = (2 * g + c) * K + k
                    at = where[j]
                    if at != BASIC:
                        lack = groups.kinks[k, 0] - margin
                        gain = lack if at == AT_LOWER else -lack
                        if gain > best:
                            entering, cost, best = j, lack, np.inf if first_will_do else gain
        if where[margins + g] == AT_LOWER:
            side = bases.side[t, g]
            lack = (groups.epsilon if side < 0 else 0.0) - side * score
            if lack > best:
                entering, cost, best = margins + g, lack, np.inf if first_will_do else lack
    first = margins + len(groups.X)
    for i in range(p):
        at = where[first + i]
        if at != BASIC:
            gain = -y[i] if at == AT_LOWER else y[i]
            if gain > best:
                entering, cost, best = first + i, -y[i], np.inf if first_will_do else gain
    return entering, cost


@kernel
def _turn(bases: Bases, t: int, sign: float) -> None:
    """Write the direction of basic variables when that of the column changes by one, up (1) or down (-1)."""
    inverse, work, q = bases.inverse[t], bases.work, bases.inverse.shape[1]
    for i in range(q):
        total = 0.0
        for k in range(q):
            total += inverse[i, k] * work[COLUMN, k]
        work[DIRECTION, i] = -sign * total


@kernel
def _leave(groups: Groups, bases: Bases, t: int, first_will_do: bool) -> tuple[int, float]:
    """Return which basic variable meets a bound on the way of the direction, and where; -1: none does."""
    basis, x, direction = bases.basis[t], bases.x[t], bases.work[DIRECTION]
    longest, leaving, length, best = np.inf, -1, np.inf, 0.0
    for phase in range(2):
        for i in range(len(basis)):
            along = direction[i]
            if abs(along) <= _NO_PIVOT:
                continue
            if along < 0.0:
                distance = x[i] - lower(groups, basis[i])
            else:
                distance = upper(groups, t, basis[i]) - x[i]
                if distance > NO_BOUND:
                    continue
            if phase == 0:
                longest = min(longest, (max(distance, 0.0) + _OUTSIDE) / abs(along))
            elif max(distance, 0.0) / abs(along) <= longest:
                rank = -float(basis[i]) - 1.0 if first_will_do else abs(along)
                if leaving < 0 or rank > best:
                    leaving, length, best = i, max(distance, 0.0) / abs(along), rank
    return leaving, length


@kernel
def prove(groups: Groups, bases: Bases, t: int, entering: int, length: float) -> float:
    """Return what the variables prove of a node's value, one that enters moved by a length along the direction.

    Parameters
    ----------
    groups, bases, t
        The groups, the bases, and the node.
    entering, length
        -1 and 0 for the variables as they are.
    """
    net, basis, x, work = bases.net, bases.basis[t], bases.x[t], bases.work
    G, p, K = len(groups.X), groups.X.shape[1], len(groups.kinks)
    margins, value, balance = 2 * G * K, 0.0, 0.0
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        net[g] = 0.0
        for c in range(2):
            for k in range(K):
                j = (2 * g + c) * K + k
                if bases.where[t, j] == AT_UPPER:
                    a = upper(groups, t, j)
                    net[g] += (2.0 * c - 1.0) * a
                    value += a * groups.kinks[k, 0]
    for i in range(p + 1):
        j = basis[i]
        if j < margins + G:
            a = x[i] + (length * work[DIRECTION, i] if length > 0.0 else 0.0)
            a = min(max(a, 0.0), upper(groups, t, j))
            net[group_of(groups, j)] += direction_of(groups, bases, t, j) * a
            value += a * reward_of(groups, bases, t, j)
    if entering >= 0:
        net[group_of(groups, entering)] += direction_of(groups, bases, t, entering) * length
        value += length * reward_of(groups, bases, t, entering)
    for i in range(p):
        work[SUM, i] = 0.0
    for n in range(bases.size[t]):
        g = bases.here[t, n]
        if net[g] != 0.0:
            balance += net[g]
            for i in range(p):
                work[SUM, i] += net[g] * groups.X[g, i]
    scale = 1.0
    for i in range(p):
        scale = max(scale, abs(work[SUM, i]) * _WITHIN)
    proven: float = (value - abs(balance) * groups.bias_limit[t]) / scale
    return proven


@kernel
def simplex(groups: Groups, bases: Bases, t: int, max_steps: int, stop: float) -> int:
    """Solve a node in so many steps at most, or up to a value; write what is proven, and return the steps."""
    where, basis, x, y = bases.where[t], bases.basis[t], bases.x[t], bases.y[t]
    inverse, work, q = bases.inverse[t], bases.work, bases.inverse.shape[1]
    value, stalled, steps = bases.node[VALUE, t], 0, 0
    while steps < max_steps:
        if steps % _ANEW == _ANEW - 1:
            if not refresh(groups, bases, t):
                reset(groups, bases, t)
                refresh(groups, bases, t)
            value = prove(groups, bases, t, -1, 0.0)
            if value > stop:
                break
        j, cost = _enter(groups, bases, t, stalled > _STALLED)
        if j < 0:
            break
        steps += 1
        write_column(groups, bases, t, j, work[COLUMN])
        sign = 1.0 if where[j] == AT_LOWER else -1.0
        _turn(bases, t, sign)
        leaving, length = _leave(groups, bases, t, stalled > _STALLED)
        low, high = lower(groups, j), upper(groups, t, j)
        if leaving < 0 and high - low > NO_BOUND:
            # No hyperplane keeps the sides: the direction proves any value.
            away = 2.0 * (max(stop - value, 0.0) + 1.0) / cost if stop < np.inf else 0.0
            bases.node[VALUE, t] = max(bases.node[VALUE, t], prove(groups, bases, t, j, away))
            break
        if length >= high - low:
            length, leaving = high - low, -1
        value += abs(cost) * length
        stalled = stalled + 1 if length < _NO_LENGTH else 0
        for i in range(q):
            x[i] += length * work[DIRECTION, i]
        if leaving < 0:
            where[j] = AT_UPPER if sign > 0.0 else AT_LOWER
            continue
        where[basis[leaving]] = AT_LOWER if work[DIRECTION, leaving] < 0.0 else AT_UPPER
        where[j], basis[leaving] = BASIC, j
        x[leaving] = low + length if sign > 0.0 else high - length
        scale = -sign / work[DIRECTION, leaving]
        for k in range(q):
            inverse[leaving, k] *= scale
        for i in range(q):
            factor = -sign * work[DIRECTION, i]
            if i != leaving and factor != 0.0:
                for k in range(q):
                    inverse[i, k] -= factor * inverse[leaving, k]
        for k in range(q):
            y[k] += cost * inverse[leaving, k]
        if value > stop + _ABOVE * (1.0 + abs(stop)):
            break
    bases.node[POINT, t] = prove(groups, bases, t, -1, 0.0)
    bases.node[VALUE, t] = max(bases.node[VALUE, t], bases.node[POINT, t])
    return steps


@kernel
def gain_of_variable(
    groups: Groups, bases: Bases, t: int, g: int, d: float, reward: float, capacity: float
) -> float:
    """Return what one step with a further margin or side of a group raises the value of a node by at least."""
    work, y, p = bases.work, bases.y[t], groups.X.shape[1]
    cost = y[p]
    for i in range(p):
        cost += y[i] * groups.X[g, i]
        work[COLUMN, i] = d * groups.X[g, i]
    work[COLUMN, p] = d
    cost = reward - d * cost
    if cost <= _OPTIMAL:
        return 0.0
    _turn(bases, t, 1.0)
    length = min(_leave(groups, bases, t, False)[1], capacity, _LONGEST)
    value, gain = bases.node[VALUE, t], cost * length
    proven: float = bases.node[POINT, t] + gain - value - _ERROR * (1.0 + length) * (value + gain)
    return max(0.0, proven)


# ---------------------------------------------------------------------- the relaxation


class L1Nodes(NamedTuple):
    """Node relaxations of a plunge: all nodes' bases.

    Attributes
    ----------
    groups, bases
        The problem, and the bases.
    saved_where, saved_basis
        (steps + 1, |B|, ...) where variables are and which are basic, of open nodes.
    candidates, trials_close
        Candidates of strong branching, and whether a trial that closes a side ends it.
    """

    groups: Groups
    bases: Bases
    saved_where: NDArray[np.int8]
    saved_basis: NDArray[np.int32]
    candidates: int
    trials_close: bool


@kernel
def value_of(nodes: L1Nodes, t: int) -> float:
    """Return the proven value of node t."""
    value: float = nodes.bases.node[VALUE, t]
    return value


@kernel
def clear(nodes: L1Nodes, t: int) -> None:
    """Remove all margins and sides of node t; the basis that was loaded is moved aside, as what is there is marked."""
    bases = nodes.bases
    aside, N, q = len(bases.size), bases.where.shape[1], bases.basis.shape[1]
    bases.size[t] = 0
    bases.node[VALUE, t], bases.node[POINT, t] = 0.0, 0.0
    for j in range(N):
        bases.where[aside, j] = bases.where[t, j]
    for j in range(N - q):
        bases.where[t, j] = ABSENT
    for g in range(bases.side.shape[1]):
        bases.side[t, g] = 0


@kernel
def add_margins(nodes: L1Nodes, t: int, g: int) -> None:
    """Charge a group at a node: a variable at 0 for each class that it has samples of, and kink of the loss."""
    groups, bases = nodes.groups, nodes.bases
    K = len(groups.kinks)
    bases.here[t, bases.size[t]] = g
    bases.size[t] += 1
    for c in range(2):
        if groups.weight[g, c] > 0.0:
            for k in range(K):
                bases.where[t, (2 * g + c) * K + k] = AT_LOWER


@kernel
def add_side(nodes: L1Nodes, t: int, g: int, side: int) -> None:
    """Keep a group of a node on a side."""
    nodes.bases.side[t, g] = side
    nodes.bases.where[t, 2 * len(nodes.groups.X) * len(nodes.groups.kinks) + g] = AT_LOWER


@kernel
def warm_start(nodes: L1Nodes, t: int) -> None:
    """Take the basis of node t that was loaded, for the variables that are there; begin with the slacks without one."""
    groups, bases = nodes.groups, nodes.bases
    aside = len(bases.size)
    for j in range(bases.where.shape[1] - bases.basis.shape[1]):
        if bases.where[t, j] != ABSENT and bases.where[aside, j] != ABSENT:
            bases.where[t, j] = bases.where[aside, j]
    if bases.basis[t, 0] < 0 or not refresh(groups, bases, t):
        reset(groups, bases, t)
        refresh(groups, bases, t)


@kernel
def solve(nodes: L1Nodes, t: int, stop: float, brief: bool, final: bool) -> None:  # noqa: ARG001
    """Solve node t from its basis; at the end of a complete routing it has been, to its last digits."""
    if not final:
        simplex(nodes.groups, nodes.bases, t, _MAX_STEPS, stop)


@kernel
def gain_of_side(nodes: L1Nodes, t: int, g: int, side: int) -> float:
    """Return what one step with a group kept on a side proves of node t."""
    reward = nodes.groups.epsilon if side < 0 else 0.0
    return gain_of_variable(nodes.groups, nodes.bases, t, g, float(side), reward, np.inf)


@kernel
def gain_of_margins(nodes: L1Nodes, t: int, g: int) -> float:
    """Return the most that one step with a margin of a group proves of node t."""
    groups, best = nodes.groups, 0.0
    for c in range(2):
        weight = groups.C[t] * groups.weight[g, c]
        if weight > 0.0:
            for k in range(len(groups.kinks)):
                capacity, reward = weight * groups.kinks[k, 1], groups.kinks[k, 0]
                best = max(best, gain_of_variable(groups, nodes.bases, t, g, 2.0 * c - 1.0, reward, capacity))
    return best


@kernel
def _copy_basis(bases: Bases, source: int, target: int) -> None:
    """Copy a basis with its inverse and its values to another row."""
    q = bases.basis.shape[1]
    for j in range(bases.where.shape[1]):
        bases.where[target, j] = bases.where[source, j]
    for i in range(q):
        bases.basis[target, i] = bases.basis[source, i]
        bases.x[target, i], bases.y[target, i] = bases.x[source, i], bases.y[source, i]
        for k in range(q):
            bases.inverse[target, i, k] = bases.inverse[source, i, k]


@kernel
def trial_gain(nodes: L1Nodes, t: int, g: int, side: int, slack: float) -> float:
    """Return the gain of node t by some steps with a group charged there (side 0) or kept on a side."""
    bases = nodes.bases
    aside, n = len(bases.size), bases.size[t]
    value, point = bases.node[VALUE, t], bases.node[POINT, t]
    _copy_basis(bases, t, aside)
    if side == 0:
        add_margins(nodes, t, g)
    else:
        add_side(nodes, t, g, side)
    simplex(nodes.groups, bases, t, _TRIAL_STEPS, value + slack)
    gain: float = bases.node[VALUE, t] - value
    _copy_basis(bases, aside, t)
    bases.size[t] = n
    bases.node[VALUE, t], bases.node[POINT, t] = value, point
    if side != 0:
        bases.side[t, g] = 0
    return gain


@kernel
def save(nodes: L1Nodes, t: int, at: int) -> None:
    """Write the basis of node t to a row of the open nodes."""
    bases = nodes.bases
    for j in range(bases.where.shape[1]):
        nodes.saved_where[at, t, j] = bases.where[t, j]
    for i in range(bases.basis.shape[1]):
        nodes.saved_basis[at, t, i] = bases.basis[t, i]


@kernel
def log_leaf(nodes: L1Nodes) -> None:
    """Log nothing: certificates of these nodes are written by another backend."""


@kernel
def log_closed(nodes: L1Nodes, first: bool, g: int, t: int, side: int) -> None:
    """Log nothing."""


@kernel
def log_branch(nodes: L1Nodes, g: int, side: int) -> None:
    """Log nothing."""


implement(
    L1Nodes, value_of, clear, add_margins, add_side, warm_start, solve, gain_of_side, gain_of_margins, trial_gain,
    save, log_leaf, log_closed, log_branch,
)  # fmt: skip


class L1Backend(CompiledBackend):
    """Plunges of a tree of nodes with the l1 norm on all features; parameters as for the base class."""

    @classmethod
    def takes(cls, nodes: ConvexNodes, *, certified: bool) -> bool:
        """Return whether nodes have the l1 norm on all features, and no certificate is asked for."""
        return nodes.l1 and nodes.budget is None and nodes.allowed is None and not certified

    @classmethod
    def _run_tiny(cls) -> None:
        X, three = np.array([[0.0], [1.0], [2.0]]), np.ones(3)
        hinge = np.ones((1, 2))
        tiny = ConvexNodes(X, np.eye(2)[[0, 1, 0]], three, three, 2, 1e-3, hinge, True, None, np.inf)
        cls(tiny).plunge(cls(tiny).first(), 1.0, 1, np.zeros(1, np.int64))

    def _relaxation(self, log: FloatArray) -> L1Nodes:
        del log
        bases = empty_bases(self.nodes.n_nodes, self._groups)
        return L1Nodes(
            groups=self._groups,
            bases=bases,
            saved_where=np.empty((STEPS + 1, self.nodes.n_nodes, bases.where.shape[1]), np.int8),
            saved_basis=np.empty((STEPS + 1, self.nodes.n_nodes, bases.basis.shape[1]), np.int32),
            candidates=_CANDIDATES,
            trials_close=True,
        )

    def _load(self, nodes: L1Nodes, warm: WarmStart | None) -> None:
        n = self.nodes.n_nodes
        nodes.bases.where[:n], nodes.bases.basis[:n] = (AT_LOWER, -1) if warm is None else warm

    def _saved(self, nodes: L1Nodes, at: int) -> WarmStart:
        return nodes.saved_where[at].copy(), nodes.saved_basis[at].copy()

    def _solution(self, nodes: L1Nodes) -> tuple[FloatArray, FloatArray, FloatArray]:
        y = nodes.bases.y[: self.nodes.n_nodes]
        return y[:, :-1].copy(), y[:, -1].copy(), nodes.bases.node[VALUE].copy()
