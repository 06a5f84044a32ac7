r"""Compiled: one dive of the routing search, from an open node down to a complete routing or until it is cut off.

A **partial routing** says for every group of equal samples which node it has reached: it has passed all nodes above,
and its sides there are decided. The value of a node for the groups that reach it, with the sides decided so far, never
falls when more is decided. So the sum of the nodes' dual values is a lower bound on every tree that extends the partial
routing, and equals a tree's value where all groups are decided at all nodes above the last level.

The subtrees below the root do not depend on each other once the sides at the root are known. A **floor** is a bound on
what any subtree costs for groups that are known to reach it (:mod:`mipforest.searches.routing.machine_dives`). It stays
one when more groups are decided, and takes the place of the subtree's dual values where it is higher.

At each step of a dive:

1. The nodes that changed are solved again from their warm start (:mod:`mipforest.searches.routing.node_dual`).
2. *Screening.* Sending group g to a side adds one variable at 0 to its node, and one per class to the child. One pair
   step with it raises the bound by a known amount; where that reaches the best tree known, g must take the other side,
   and where both do, the routing is cut off. This is repeated until nothing is fixed.
3. *Strong branching.* The most promising candidates are tried for some pair steps on both sides. The dive goes on with
   the cheaper side of the best one; the other becomes an open node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, glue, kernel
from mipforest.searches.routing.branching import (
    best_by_trial,
    measure_rises,
    promise,
    rise_of_bound,
    shown,
    subtree_of,
)
from mipforest.searches.routing.interior_point import Interior, interior_point, room_for_interior
from mipforest.searches.routing.node_dual import (
    BETA,
    KEPT,
    NUMBER,
    VALUE,
    Duals,
    Groups,
    add_margins,
    add_side,
    empty_duals,
    pair_steps,
    refresh,
)
from mipforest.searches.routing.recording import LEAF, log_branch, log_closed, log_dual

#: Why a dive ended.
CUT_OFF, COMPLETE, STOPPED = 0, 1, 2

#: Nodes to solve again, and nodes whose rises have to be measured again.
CHANGED, STALE = range(2)

#: Violation up to which pair steps go on, at open nodes and at complete routings.
_TOLERANCE, _FINAL_TOLERANCE = 1e-3, 1e-7

#: Pair steps before the interior point takes over, and its iterations.
_PAIR_STEPS, _INTERIOR_STEPS = 200.0, 80.0

#: Gap, relative to the value, up to which an interior point goes on, at open nodes and at complete routings.
_ACCURACY, _FINAL_ACCURACY = 1e-5, 1e-8


class Room(NamedTuple):
    """Where a dive works and what it leaves behind; a thread uses it again for its next dive.

    Attributes
    ----------
    duals, interior
        The nodes' duals, and where interior points work.
    reached
        (G,) partial routing: where it stands, in and out.
    start
        (|B|, 3 G) variables to begin with, by number.
    floors, excess, known
        (2,) bounds on the cost of the subtrees below the root, in, what they are above their duals, and, in, whether
        they were the cost itself when they were found.
    rises, rise_if
        (3, |B|, G) rises of a node's value (:func:`measure_rises`), and (2, G) what left and right count in ranks.
    mark
        (2, |B|) nodes that are :data:`CHANGED`, to solve again, or :data:`STALE`, with rises to measure again.
    tried, proven
        (G,) groups that were tried, and (2, 2) rises of the bound that a trial proves.
    open_reached, open_duals, open_bound
        (most + 1, ...) what is left open.
    counts
        (4,) sums of pair steps, interior-point iterations, sides fixed by screening, and steps.
    log
        Where to log what is proven (:mod:`mipforest.searches.routing.recording`); of length 1 to log nothing. All that
        branching leaves is open when it is logged: it has no dual point yet that closes it.
    """

    duals: Duals
    interior: Interior
    reached: IntArray
    start: FloatArray
    floors: FloatArray
    excess: FloatArray
    known: BoolArray
    rises: FloatArray
    rise_if: FloatArray
    mark: BoolArray
    tried: BoolArray
    proven: FloatArray
    open_reached: IntArray
    open_duals: FloatArray
    open_bound: FloatArray
    counts: IntArray
    log: FloatArray


def room_for(n_nodes: int, n_groups: int, p: int, most: int, log: FloatArray) -> Room:
    """Return room for dives of some steps at most, with this log."""
    wide = 3 * n_groups
    return Room(
        duals=empty_duals(n_nodes, n_groups, p),
        interior=room_for_interior(wide, p),
        reached=np.zeros(n_groups, np.int64),
        start=np.zeros((n_nodes, wide)),
        floors=np.zeros(2),
        excess=np.zeros(2),
        known=np.zeros(2, np.bool_),
        rises=np.zeros((3, n_nodes, n_groups)),
        rise_if=np.zeros((2, n_groups)),
        mark=np.zeros((2, n_nodes), np.bool_),
        tried=np.zeros(n_groups, np.bool_),
        proven=np.zeros((2, 2)),
        open_reached=np.empty((most + 1, n_groups), np.int64),
        open_duals=np.empty((most + 1, n_nodes, wide)),
        open_bound=np.empty(most + 1),
        counts=np.zeros(4, np.int64),
        log=log,
    )


@kernel
def side_of(reached: int, t: int) -> int:
    """Return -1 or 1 where a group that has reached a node went left or right at t, 2 where it stands at t, else 0."""
    if reached == t:
        return 2
    node = reached
    while node > t:
        parent = (node - 1) // 2
        if parent == t:
            return -1 if node == 2 * t + 1 else 1
        node = parent
    return 0


@entry
def dive(
    groups: Groups, room: Room, n_upper: int, target: float, most: int, stop: IntArray
) -> tuple[int, int, float, float]:
    """Dive from the partial routing ``room.reached`` with the variables ``room.start``.

    Parameters
    ----------
    groups
        The groups.
    room
        Where to work, and to begin.
    n_upper
        Number of nodes above the last level.
    target
        Value from which on a bound cuts off.
    most, stop
        Steps at most, and a flag that ends the dive when it is not 0.

    Returns
    -------
    end, n_open, bound, cut_bound
        Why it ended, the number of open nodes, the bound of the routing at the end, and the least bound at which
        something was cut off on the way (``inf`` if nothing was).
    """
    duals, reached, rises, rise_if = room.duals, room.reached, room.rises, room.rise_if
    excess, known, proven = room.excess, room.known, room.proven
    G, n_nodes, log, logs = len(reached), len(duals.size), room.log, len(room.log) > 1
    _begin(groups, room)
    n_open, bound, cut_bound, end = 0, 0.0, np.inf, STOPPED
    for _ in range(most):
        room.counts[3] += 1
        cut, branch, full = False, -1, False
        while True:
            bound = _solve_changed(groups, room, target, False)
            slack = target - bound
            if slack <= 0.0:
                cut, cut_bound = True, min(cut_bound, bound)
                if logs:
                    log_dual(log, LEAF, duals)
                break
            full = logs and log[0] > log[1]
            if full:
                break
            for t in range(n_nodes):
                if room.mark[STALE, t]:
                    measure_rises(groups, duals, t, n_upper, reached, rises)
                    room.mark[STALE, t] = False
            fixed, best_promise, branch = 0, -1.0, -1
            for g in range(G):
                t = reached[g]
                if t >= n_upper:
                    continue
                left = rise_of_bound(excess, t, 2 * t + 1, rises[0, t, g], rises[2, 2 * t + 1, g])
                right = rise_of_bound(excess, t, 2 * t + 2, rises[1, t, g], rises[2, 2 * t + 2, g])
                rise_if[0, g] = shown(known, t, left, rises[0, t, g] + rises[2, 2 * t + 1, g])
                rise_if[1, g] = shown(known, t, right, rises[1, t, g] + rises[2, 2 * t + 2, g])
                if logs and max(left, right) >= slack:
                    if left >= slack:
                        log_closed(log, fixed == 0, groups, duals, g, t, -1)
                    if right >= slack:
                        log_closed(log, fixed == 0 and left < slack, groups, duals, g, t, 1)
                if min(left, right) >= slack:
                    cut, cut_bound = True, min(cut_bound, bound + min(left, right))
                    break
                if max(left, right) >= slack:
                    cut_bound = min(cut_bound, bound + max(left, right))
                    _decide(groups, room, g, 1 if left >= slack else -1, n_upper)
                    fixed += 1
                else:
                    rank = promise(rise_if[0, g], rise_if[1, g], t)
                    if rank > best_promise:
                        best_promise, branch = rank, g
            room.counts[2] += fixed
            if cut or fixed == 0:
                break
        if full:
            break
        if cut:
            end = CUT_OFF
            break
        if branch < 0:
            bound = _solve_changed(groups, room, np.inf, True)
            end = COMPLETE
            if logs:
                log_dual(log, LEAF, duals)
            break
        if stop[0] != 0:
            break
        branch = best_by_trial(
            groups, duals, n_upper, reached, rise_if, room.tried, slack, excess, known, proven
        )
        if branch < 0:  # no rank compares with NaN: the numbers have overflowed, which the caller hears
            bound = np.nan
            break
        side = -1 if rise_if[0, branch] <= rise_if[1, branch] else 1
        other_bound = bound + (proven[0, 1] if side < 0 else proven[0, 0])
        if logs:
            log_branch(log, branch, side)
        if other_bound < target or logs:
            t = reached[branch]
            _leave_open(room, n_open, other_bound)
            room.open_reached[n_open, branch] = 2 * t + 1 if side > 0 else 2 * t + 2
            n_open += 1
        else:
            cut_bound = min(cut_bound, other_bound)
        _decide(groups, room, branch, side, n_upper)
    if end == STOPPED:
        _leave_open(room, n_open, bound)
        n_open += 1
    return end, n_open, bound, cut_bound


@glue
def _begin(groups: Groups, room: Room) -> None:
    """Set up the duals of the partial routing, and their warm start."""
    duals, reached = room.duals, room.reached
    for t in range(len(duals.size)):
        duals.size[t] = 0
        for g in range(len(reached)):
            side = side_of(reached[g], t)
            if side != 0:
                add_margins(groups, duals, t, g)
            if side == 1 or side == -1:
                add_side(groups, duals, t, g, side)
        for q in range(duals.size[t]):
            duals.of[BETA, t, q] = room.start[t, duals.name[NUMBER, t, q]]
        refresh(groups, duals, t)
        room.mark[CHANGED, t] = True


@glue
def _solve_changed(groups: Groups, room: Room, target: float, final: bool) -> float:
    """Solve the changed nodes again until the target is reached; return the bound.

    At the end of a complete routing (``final``) all nodes are solved, and to a smaller tolerance.
    """
    duals, mark = room.duals, room.mark
    tolerance, short, accuracy = _TOLERANCE, _PAIR_STEPS, _ACCURACY
    if final:
        tolerance, short, accuracy = _FINAL_TOLERANCE, 10.0 * _PAIR_STEPS, _FINAL_ACCURACY
    bound = _bound(room)
    for t in range(mark.shape[1]):
        if (mark[CHANGED, t] or final) and bound < target:
            enough, covered = duals.node[VALUE, t] + target - bound, 0.0
            if t > 0:
                covered = room.excess[subtree_of(t)]
            # What a floor covers matters for the choice of branches only.
            most = _INTERIOR_STEPS if covered == 0.0 or final else 0.0
            _settle(groups, room, t, tolerance, short, accuracy, most, enough + covered)
            bound = _bound(room)
            mark[CHANGED, t] = False
            mark[STALE, t] = True
    return bound


@glue
def _bound(room: Room) -> float:
    """Return the bound of the routing: of each subtree below the root, the duals or its floor, whichever is higher."""
    value, floors, excess = room.duals.node, room.floors, room.excess
    excess[0], excess[1] = floors[0], floors[1]
    bound: float = value[VALUE, 0]
    for t in range(1, value.shape[1]):
        bound += value[VALUE, t]
        excess[subtree_of(t)] -= value[VALUE, t]
    for k in range(2):
        excess[k] = max(excess[k], 0.0)
        bound += excess[k]
    return bound


@glue
def _settle(
    groups: Groups,
    room: Room,
    t: int,
    tolerance: float,
    short: float,
    accuracy: float,
    most: float,
    stop: float,
) -> None:
    """Solve a node from its warm start, by some interior-point iterations at most where pair steps are not enough."""
    duals = room.duals
    steps = pair_steps(groups, duals, t, tolerance, short, stop)
    room.counts[0] += steps
    refresh(groups, duals, t)
    before = duals.node[VALUE, t]
    if steps < short or before > stop or most == 0.0:
        return
    room.counts[1] += interior_point(groups, duals, room.interior, t, accuracy, most, stop)
    for attempt in range(2):  # the second time puts the better point back
        if attempt == 0 or duals.node[VALUE, t] < before:
            for q in range(duals.size[t]):
                other = duals.of[KEPT, t, q]
                duals.of[KEPT, t, q] = duals.of[BETA, t, q]
                duals.of[BETA, t, q] = other
            refresh(groups, duals, t)


@glue
def _leave_open(room: Room, at: int, bound: float) -> None:
    """Write the partial routing and its variables into the list of what is left open."""
    duals, open_duals = room.duals, room.open_duals
    room.open_bound[at] = bound
    for g in range(len(room.reached)):
        room.open_reached[at, g] = room.reached[g]
    for t in range(open_duals.shape[1]):
        for k in range(open_duals.shape[2]):
            open_duals[at, t, k] = 0.0
        for q in range(duals.size[t]):
            open_duals[at, t, duals.name[NUMBER, t, q]] = duals.of[BETA, t, q]


@glue
def _decide(groups: Groups, room: Room, g: int, side: int, n_upper: int) -> None:
    """Send a group from the node that it has reached to a side."""
    t = room.reached[g]
    child = 2 * t + 1 if side < 0 else 2 * t + 2
    room.reached[g] = child
    add_side(groups, room.duals, t, g, side)
    add_margins(groups, room.duals, child, g)
    room.mark[CHANGED, t] = True
    room.mark[CHANGED, child] = True
    if child < n_upper:
        room.mark[STALE, 2 * child + 1] = True
        room.mark[STALE, 2 * child + 2] = True
