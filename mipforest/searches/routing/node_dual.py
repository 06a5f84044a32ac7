r"""Compiled kernels for one node of a routing: a support vector machine whose samples may have to keep a side.

For the samples that reach a branch node, with hinge loss and half the squared Euclidean norm, the dual is

.. math::

    \max_{l \le \beta \le u}\; \sum_k r_k \beta_k - \tfrac12 \Bigl\| \sum_k \beta_k x_{g(k)} \Bigr\|^2
    \quad \text{subject to} \quad \sum_k \beta_k = 0 .

Variable k belongs to the group g(k) of equal samples. The margin of class +1 has :math:`0 \le \beta \le U` and rate
:math:`r = 1`, that of class -1 has :math:`-U \le \beta \le 0` and :math:`r = -1`, with U = C times the weight of the
group's samples of the class. A side that must be kept has :math:`\beta \ge 0, r = 0` (right) or
:math:`\beta \le 0, r = -\varepsilon` (left). **Every feasible point gives a lower bound on the node's value**, so a
warm start, an early stop and an inexact solver are all safe.

Two solvers. Pair steps (sequential minimal optimisation with second-order selection: Fan, Chen, Lin, *Working set
selection using second order information for training support vector machines*, JMLR 6, 2005), which cost microseconds
where little has changed since the warm start, stand here; an interior point takes over where they do not converge
(:mod:`mipforest.searches.routing.interior_point`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import glue, kernel
from mipforest.searches.numbers import ANY_SIZE, require

#: Bound that stands for none.
UNLIMITED = 1e12

#: Least curvature of a pair step: two groups of equal samples have none.
LEAST_CURVATURE = 1e-12

#: A variable closer than this to a bound (relative to its size) is put on it.
_AT_BOUND = 1e-13


@dataclass(frozen=True, eq=False)
class RoutingProblem:
    """What the search needs of a tree of support vector machines, and of any other convex nodes.

    Attributes
    ----------
    X
        (G, p) distinct samples.
    weight
        (G, 2) total weight of the samples of class -1 and +1 in each group.
    C
        (|B|,) penalties.
    bias_limit
        (|B|,) bounds on the biases of some optimal tree, in the coordinates of ``X``.
    depth
        Levels of branch nodes.
    epsilon
        Gap that stands for a strict inequality.

    Raises
    ------
    DataValueError
        If a number is NaN or infinite, as a bound on the biases is where no tree is known.
    """

    X: FloatArray
    weight: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    depth: int
    epsilon: float

    def __post_init__(self) -> None:
        """Refuse numbers that compiled loops cannot compute with."""
        require("routing", "X", self.X, least=-ANY_SIZE, most=ANY_SIZE)
        for name in ("weight", "C", "bias_limit", "epsilon"):
            require("routing", name, getattr(self, name), least=0.0, most=ANY_SIZE)


class Groups(NamedTuple):
    """What stays the same during a search.

    Attributes
    ----------
    X
        (G, p) features of the groups of equal samples, centred.
    K, square
        (G, G) inner products of the groups, and (G,) those with themselves.
    weight
        (G, 2) total weight of the samples of each class, -1 and +1.
    C, bias_limit
        (|B|,) penalties, and bounds on the biases of some optimal tree.
    epsilon
        Gap that stands for a strict inequality.
    """

    X: FloatArray
    K: FloatArray
    square: FloatArray
    weight: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    epsilon: float


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
    """The nodes' duals during a dive; the first ``size[t]`` of m columns are variables of node t.

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
    """

    size: IntArray
    name: IntArray
    of: FloatArray
    node: FloatArray
    w: FloatArray
    score: FloatArray


def empty_duals(n_nodes: int, n_groups: int, p: int) -> Duals:
    """Return room for the duals of a dive."""
    m = 3 * n_groups + 2  # a group that is tried on a side needs up to two more
    return Duals(
        size=np.zeros(n_nodes, np.int64),
        name=np.zeros((2, n_nodes, m), np.int64),
        of=np.zeros((7, n_nodes, m)),
        node=np.zeros((4, n_nodes)),
        w=np.zeros((n_nodes, p)),
        score=np.zeros((n_nodes, n_groups)),
    )


@glue
def add_margins(groups: Groups, duals: Duals, t: int, g: int) -> None:
    """Charge a group at a node: one variable per class that it has samples of."""
    C, weight = groups.C, groups.weight
    for c in range(2):
        capacity = C[t] * weight[g, c]
        if capacity > 0.0:
            add_variable(duals, t, 2 * g + c, g, 2.0 * c - 1.0, capacity)


@glue
def add_side(groups: Groups, duals: Duals, t: int, g: int, side: int) -> None:
    """Keep a group on a side of a node."""
    add_variable(duals, t, 2 * len(groups.square) + g, g, 0.0 if side > 0 else -groups.epsilon, UNLIMITED)


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
def pair_steps(groups: Groups, duals: Duals, t: int, tolerance: float, most: float, stop: float) -> int:
    """Take pair steps at a node until the duality conditions hold to a tolerance, or the value exceeds ``stop``.

    Variables, ``missing``, value and bias are changed; weights and scores are those of :func:`refresh`.

    Parameters
    ----------
    groups, duals, t
        The groups, the duals, and the node.
    tolerance, most, stop
        When to end: violation, number of steps (a float, as every literal whole number would be compiled anew), value.

    Returns
    -------
    Steps.
    """
    K, square, name, of = groups.K, groups.square, duals.name, duals.of
    n, steps, value, bias = duals.size[t], 0, duals.node[VALUE, t], 0.0
    while steps < most:
        up, most_missing, down, least_missing = -1, -np.inf, -1, np.inf
        for q in range(n):
            f, x = of[MISSING, t, q], of[BETA, t, q]
            if f > most_missing and x < of[HIGH, t, q]:
                most_missing, up = f, q
            if f < least_missing and x > of[LOW, t, q]:
                least_missing, down = f, q
        if up < 0 or down < 0:
            bias = most_missing if up >= 0 else (least_missing if down >= 0 else 0.0)
            break
        bias = 0.5 * (most_missing + least_missing)
        if most_missing - least_missing < tolerance:
            break
        i, most_gained = name[GROUP, t, up], 0.0
        for q in range(n):
            violation = most_missing - of[MISSING, t, q]
            if violation > 0.0 and of[BETA, t, q] > of[LOW, t, q]:
                j = name[GROUP, t, q]
                curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
                if violation * violation > most_gained * curvature:
                    most_gained, down = violation * violation / curvature, q
        j = name[GROUP, t, down]
        curvature = max(square[i] + square[j] - 2.0 * K[i, j], LEAST_CURVATURE)
        violation = most_missing - of[MISSING, t, down]
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


@glue
def _at_bound(x: float, low: float, high: float) -> float:
    """Return a variable, put on a bound that it is close to."""
    near = _AT_BOUND * max(abs(x), min(high - low, 1.0))
    if x - low < near:
        return low
    return high if high - x < near else x


@kernel
def refresh(groups: Groups, duals: Duals, t: int) -> None:
    """Compute weights, scores, ``missing`` and the proven value of a node anew from its variables."""
    X, name, of, w, score = groups.X, duals.name, duals.of, duals.w, duals.score
    n, p = duals.size[t], X.shape[1]
    for j in range(p):
        w[t, j] = 0.0
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
def rise_if_added(groups: Groups, duals: Duals, t: int, g: int, r: float, capacity: float) -> float:
    """Return the most that one pair step with a new variable of group g raises the dual value of node t.

    Parameters
    ----------
    groups, duals, t, g
        The groups, the duals, a node and a group.
    r, capacity
        The new variable's rate - it falls where that is below 0, else it rises - and how far it may go.
    """
    K, square, name, of = groups.K, groups.square, duals.name, duals.of
    own, best, direction, bound = r - duals.score[t, g], 0.0, 1.0, LOW
    if r < 0.0:
        direction, bound = -1.0, HIGH
        if own >= duals.node[MOST_RISING, t]:
            return 0.0
    elif own <= duals.node[LEAST_FALLING, t]:
        return 0.0
    for q in range(duals.size[t]):
        violation = direction * (own - of[MISSING, t, q])
        room = min(direction * (of[BETA, t, q] - of[bound, t, q]), capacity)
        if violation * room > best:
            j = name[GROUP, t, q]
            curvature = max(square[g] + square[j] - 2.0 * K[g, j], LEAST_CURVATURE)
            if violation * violation > 2.0 * best * curvature:
                step = min(violation / curvature, room)
                best = max(best, step * (violation - 0.5 * step * curvature))
    return best
