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
little has changed since the warm start. An interior point (:mod:`mipforest.searches.routing.interior_point`) takes over
where they do not converge, as with large capacities, or where sides nearly clash.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray, Records
from mipforest.searches import implement, kernel
from mipforest.searches.routing.interior_point import (
    CAPACITY,
    EUCLIDEAN,
    OFFSET,
    REWARD,
    UNLIMITED,
    A,
    InteriorWorkspace,
    Limits,
    round_to_feasible,
    solve_rows,
    workspace_for,
)
from mipforest.searches.routing.plunge import STEPS, Groups

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

#: A variable: which one it is - ``2 g + c`` for the margin of class c (0: -1, 1: +1) of group g, ``2 G + g`` for its
#: side - and its group; its value, its bounds, r, what the score of its group lacks to r; and value and lack while
#: something is tried.
VARIABLE = np.dtype(
    [
        ("number", "i8"),
        ("group", "i8"),
        ("beta", "f8"),
        ("low", "f8"),
        ("high", "f8"),
        ("rate", "f8"),
        ("missing", "f8"),
        ("saved", "f8"),
        ("saved_missing", "f8"),
    ]
)

#: A node: its proven dual value, its bias, and least and most of what scores lack, among variables that can fall or
#: rise.
NODE = np.dtype([("value", "f8"), ("bias", "f8"), ("least_falling", "f8"), ("most_rising", "f8")])


class Duals(NamedTuple):
    """The nodes' duals during a plunge; the first ``size[t]`` of m columns are variables of node t.

    Few arrays, as each one that is handed on costs time to compile.

    Attributes
    ----------
    size
        (|B|,) number of variables.
    variables
        (|B|, m) records :data:`VARIABLE`.
    nodes
        (|B|,) records :data:`NODE`.
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
    variables: Records
    nodes: Records
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
        variables=np.zeros((n_nodes, m), VARIABLE),
        nodes=np.zeros(n_nodes, NODE),
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
    variable = duals.variables[t, q]
    variable.number, variable.group, variable.beta = number, g, 0.0
    variable.low, variable.high = -capacity if r < 0.0 else 0.0, capacity if r >= 0.0 else 0.0
    variable.rate, variable.missing = r, r - duals.score[t, g]


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
    K, square, variables = duals.K[duals.mask[t]], duals.square[duals.mask[t]], duals.variables[t]
    n, steps, value, bias = duals.size[t], 0, duals.nodes[t].value, 0.0
    while steps < max_steps:
        up, max_missing, down, least_missing = -1, -np.inf, -1, np.inf
        for q in range(n):
            variable = variables[q]
            if variable.missing > max_missing and variable.beta < variable.high:
                max_missing, up = variable.missing, q
            if variable.missing < least_missing and variable.beta > variable.low:
                least_missing, down = variable.missing, q
        if up < 0 or down < 0:
            bias = max_missing if up >= 0 else (least_missing if down >= 0 else 0.0)
            break
        bias = 0.5 * (max_missing + least_missing)
        if max_missing - least_missing < tolerance:
            break
        i, max_gained = variables[up].group, 0.0
        for q in range(n):
            variable = variables[q]
            violation = max_missing - variable.missing
            if violation > 0.0 and variable.beta > variable.low:
                j = variable.group
                curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
                if violation * violation > max_gained * curvature:
                    max_gained, down = violation * violation / curvature, q
        first, second = variables[up], variables[down]
        j = second.group
        curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
        violation = max_missing - second.missing
        step = min(violation / curvature, first.high - first.beta, second.beta - second.low)
        first.beta = _at_bound(first.beta + step, first.low, first.high)
        second.beta = _at_bound(second.beta - step, second.low, second.high)
        for q in range(n):
            g = variables[q].group
            variables[q].missing -= step * (K[i, g] - K[j, g])
        value += step * violation - 0.5 * step * step * curvature
        steps += 1
        if value > stop:
            break
    duals.nodes[t].value, duals.nodes[t].bias = value, bias
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
    X, variables, w, score = duals.X[duals.mask[t]], duals.variables[t], duals.w, duals.score
    n, p, node = duals.size[t], X.shape[1], duals.nodes[t]
    for j in range(p):
        w[t, j] = groups.pull[t, j]
    value, imbalance = 0.0, 0.0
    for q in range(n):
        x = variables[q].beta
        if x != 0.0:
            value += x * variables[q].rate
            imbalance += x
            g = variables[q].group
            for j in range(p):
                w[t, j] += x * X[g, j]
    for j in range(p):
        value -= 0.5 * w[t, j] * w[t, j]
    # What rounding leaves of the equality is charged: the bias of some optimal tree is bounded.
    node.value = value - abs(imbalance) * groups.bias_limit[t]
    for g in range(len(X)):
        total = 0.0
        for j in range(p):
            total += X[g, j] * w[t, j]
        score[t, g] = total
    least, most = np.inf, -np.inf
    for q in range(n):
        variable = variables[q]
        variable.missing = variable.rate - score[t, variable.group]
        if variable.missing < least and variable.beta > variable.low:
            least = variable.missing
        if variable.missing > most and variable.beta < variable.high:
            most = variable.missing
    node.least_falling, node.most_rising = least, most


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
    K, square, variables = duals.K[duals.mask[t]], duals.square[duals.mask[t]], duals.variables[t]
    own, direction, node = r - duals.score[t, g], -1.0 if r < 0.0 else 1.0, duals.nodes[t]
    best, partner, length = 0.0, -1, 0.0
    if own >= node.most_rising if r < 0.0 else own <= node.least_falling:
        return best, partner, length
    for q in range(duals.size[t]):
        variable = variables[q]
        violation = direction * (own - variable.missing)
        free = min(variable.high - variable.beta if r < 0.0 else variable.beta - variable.low, capacity)
        if violation * free > best:
            j = variable.group
            curvature = max(square[g] + square[j] - 2.0 * K[g, j], LEAST_CURVATURE)
            if violation * violation > 2.0 * best * curvature:
                step = min(violation / curvature, free)
                gain = step * (violation - 0.5 * step * curvature)
                if gain > best:
                    best, partner, length = gain, q, step
    return best, partner, length


@kernel
def interior_point(groups: Groups, duals: Duals, work: InteriorWorkspace, t: int, limits: Limits) -> None:
    """Solve a node's dual by an interior point; write a feasible point near its end to ``saved``.

    That is 0 where only 0 is feasible, as all variables have one direction.
    """
    X, variables, m = duals.X[duals.mask[t]], duals.variables[t], duals.size[t]
    p = X.shape[1]
    for j in range(p):
        work.f[OFFSET, j] = groups.pull[t, j]
    for r in range(m):
        g, d = variables[r].group, 1.0 if variables[r].high > 0.0 else -1.0
        for j in range(p):
            work.Z[j, r] = d * X[g, j]
        work.Z[p, r] = d
        work.v[REWARD, r] = d * variables[r].rate
        work.v[CAPACITY, r] = variables[r].high - variables[r].low
    solve_rows(work, m, p, EUCLIDEAN, limits)
    round_to_feasible(work.v[A], work.Z[p], work.v[CAPACITY], m)
    for r in range(m):
        variables[r].saved = work.Z[p, r] * work.v[A, r]


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
            variable = duals.variables[t, q]
            if variable.beta != 0.0:
                log[at], log[at + 1] = variable.number, abs(variable.beta)
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
    interior: InteriorWorkspace
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
        interior=workspace_for(wide, groups.X.shape[1]),
        start=np.zeros((n_nodes, wide)),
        saved=np.empty((STEPS + 1, n_nodes, wide)),
        log=log,
        candidates=_CANDIDATES,
        trials_close=False,
    )


@kernel
def value_of(nodes: SvmNodes, t: int) -> float:
    """Return the proven value of node t."""
    value: float = nodes.duals.nodes[t].value
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
        variable = duals.variables[t, q]
        variable.beta = nodes.start[t, variable.number]
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
    before = duals.nodes[t].value
    if steps < max_steps or before > stop or brief:
        return
    interior_point(
        groups, duals, nodes.interior, t, Limits(stop, accuracy, 1.0, _INTERIOR_STEPS, groups.bias_limit[t])
    )
    for attempt in range(2):  # the second time puts the better point back
        if attempt == 0 or duals.nodes[t].value < before:
            for q in range(duals.size[t]):
                variable = duals.variables[t, q]
                variable.saved, variable.beta = variable.beta, variable.saved
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
    duals, node, variables = nodes.duals, nodes.duals.nodes[t], nodes.duals.variables[t]
    n, value, bias = duals.size[t], node.value, node.bias
    for q in range(n):
        variables[q].saved, variables[q].saved_missing = variables[q].beta, variables[q].missing
    if side == 0:
        add_margins(nodes, t, g)
    else:
        add_side(nodes, t, g, side)
    pair_steps(duals, t, _TRIAL_TOLERANCE, _TRIAL_STEPS, value + slack)
    gain: float = node.value - value
    for q in range(n):
        variables[q].beta, variables[q].missing = variables[q].saved, variables[q].saved_missing
    duals.size[t], node.value, node.bias = n, value, bias
    return gain


@kernel
def save(nodes: SvmNodes, t: int, at: int) -> None:
    """Write the variables of node t to a row of the open nodes, by number."""
    duals, saved = nodes.duals, nodes.saved
    for k in range(saved.shape[2]):
        saved[at, t, k] = 0.0
    for q in range(duals.size[t]):
        saved[at, t, duals.variables[t, q].number] = duals.variables[t, q].beta


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
    log[end], log[end + 1], log[end + 2], log[end + 3] = t, number, duals.variables[t, partner].number, step
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
