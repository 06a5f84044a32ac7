r"""Dives of a tree of nodes with the l1 norm on all features: compiled, each node a linear programme with a warm basis.

The steps are those of :mod:`mipforest.searches.routing.dive`: solve the nodes that changed, decide the sides that lead
to no better tree otherwise, try the most promising groups on both sides, go on with the cheaper one of the best. What
differs is the node (:mod:`mipforest.searches.routing.l1_node`). One step of the simplex method is often short, as many
variables are near a bound: so candidates are tried for more steps, and a trial that reaches the best tree decides a
side, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compile_by, entry, glue, kernel
from mipforest.searches.routing.branching import most_promising, promise
from mipforest.searches.routing.cells import ConvexNodes
from mipforest.searches.routing.dive import COMPLETE, CUT_OFF, STOPPED, side_of
from mipforest.searches.routing.l1_basis import (
    ABSENT,
    AT_LOWER,
    POINT,
    SOLVED,
    VALUE,
    Bases,
    Groups,
    add_margins,
    add_side,
    empty_bases,
    refresh,
    reset,
)
from mipforest.searches.routing.l1_node import measure_rises, solve, try_added
from mipforest.searches.routing.search import STEPS, Dived
from mipforest.time_budget import TimeBudget

_CHANGED, _STALE = range(2)  # rows of ``mark``
#: Steps of the simplex method at a node at most; candidates that are tried on both sides, and the steps each gets.
_STEPS, _CANDIDATES, _TRIAL_STEPS = 20_000, 8, 20


class Room(NamedTuple):
    """Where a dive works and what it leaves behind; a thread uses it again for its next dive.

    Attributes
    ----------
    bases
        The nodes' bases.
    reached
        (G,) partial routing: where it stands, in and out.
    rises, rise_if
        (3, |B|, G) rises of a node's value for a group kept left, kept right, or charged there, and (2, G) those of the
        bound, left and right.
    mark
        (2, |B|) nodes that changed, to solve again, or are stale, with rises to measure again.
    tried
        (G,) groups that were tried.
    open_reached, open_where, open_basis, open_bound
        (most + 1, ...) what is left open.
    counts
        (4,) sums of simplex steps, trials, sides fixed, and steps.
    """

    bases: Bases
    reached: IntArray
    rises: FloatArray
    rise_if: FloatArray
    mark: BoolArray
    tried: BoolArray
    open_reached: IntArray
    open_where: NDArray[np.int8]
    open_basis: IntArray
    open_bound: FloatArray
    counts: IntArray


def room_for(groups: Groups, n_nodes: int, most: int) -> Room:
    """Return room for dives of some steps at most."""
    bases, G = empty_bases(n_nodes, groups), len(groups.X)
    return Room(
        bases=bases,
        reached=np.zeros(G, np.int64),
        rises=np.zeros((3, n_nodes, G)),
        rise_if=np.zeros((2, G)),
        mark=np.zeros((2, n_nodes), np.bool_),
        tried=np.zeros(G, np.bool_),
        open_reached=np.empty((most + 1, G), np.int64),
        open_where=np.empty((most + 1, n_nodes, bases.where.shape[1]), np.int8),
        open_basis=np.empty((most + 1, n_nodes, bases.basis.shape[1]), np.int64),
        open_bound=np.empty(most + 1),
        counts=np.zeros(4, np.int64),
    )


@entry
def dive(
    groups: Groups, room: Room, n_upper: int, target: float, most: int, stop: IntArray
) -> tuple[int, int, float, float]:
    """Dive from the partial routing ``room.reached`` with the bases in ``room``.

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
    n_open, cut_bound, end = 0, np.inf, STOPPED
    _begin(groups, room)
    bound = 0.0
    for _ in range(most):
        room.counts[3] += 1
        bound, cut_bound, cut, waiting = _close_sides(groups, room, n_upper, target, cut_bound)
        if cut:
            end = CUT_OFF
            break
        if not waiting:
            end = COMPLETE
            break
        if stop[0] != 0:
            break
        slack = target - bound
        branch = _best_by_trial(groups, room, n_upper, slack)
        if branch < 0:  # as in the dives of support vector machines: the numbers have overflowed
            bound = np.nan
            break
        left, right = room.rise_if[0, branch], room.rise_if[1, branch]
        side, other_bound = (-1 if left <= right else 1), bound + max(left, right)
        if other_bound < target:
            t = room.reached[branch]
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
    """Set up the nodes of the partial routing with the bases to begin with."""
    bases, reached = room.bases, room.reached
    N, q = bases.where.shape[1], bases.basis.shape[1]
    for t in range(len(bases.size)):
        bases.size[t] = 0
        bases.node[VALUE, t], bases.node[POINT, t], bases.node[SOLVED, t] = 0.0, 0.0, 0.0
        # The basis that is kept is moved aside, as what is there is marked anew.
        for j in range(N):
            bases.where[len(bases.size), j] = bases.where[t, j]
        for j in range(N - q):
            bases.where[t, j] = ABSENT
        for g in range(len(reached)):
            side = side_of(reached[g], t)
            bases.side[t, g] = 0
            if side != 0:
                add_margins(groups, bases, t, g)
            if side == 1 or side == -1:
                add_side(groups, bases, t, g, side)
        for j in range(N - q):
            if bases.where[t, j] != ABSENT and bases.where[len(bases.size), j] != ABSENT:
                bases.where[t, j] = bases.where[len(bases.size), j]
        if bases.basis[t, 0] < 0 or not refresh(groups, bases, t):
            reset(groups, bases, t)
            refresh(groups, bases, t)
        room.mark[_CHANGED, t] = True


@glue
def _solve_changed(groups: Groups, room: Room, target: float) -> float:
    """Solve the changed nodes again until the target is reached; return the bound."""
    bases, mark, total = room.bases, room.mark, 0.0
    for t in range(mark.shape[1]):
        total += bases.node[VALUE, t]
    for t in range(mark.shape[1]):
        if mark[_CHANGED, t] and total < target:
            before = bases.node[VALUE, t]
            room.counts[0] += solve(groups, bases, t, _STEPS, target - (total - before))
            total += bases.node[VALUE, t] - before
            mark[_CHANGED, t] = False
            mark[_STALE, t] = True
    return total


@kernel
def _close_sides(
    groups: Groups, room: Room, n_upper: int, target: float, cut_bound: float
) -> tuple[float, float, bool, bool]:
    """Solve what changed and decide sides that lead to no better tree otherwise, until nothing changes.

    Returns
    -------
    bound, cut_bound, cut, waiting
        The bound, the least one at which something was cut off, whether all was, and whether a group is undecided.
    """
    reached, rises, rise_if = room.reached, room.rises, room.rise_if
    while True:
        bound = _solve_changed(groups, room, target)
        slack = target - bound
        if slack <= 0.0:
            return bound, min(cut_bound, bound), True, False
        for t in range(room.mark.shape[1]):
            if room.mark[_STALE, t]:
                measure_rises(groups, room.bases, t, n_upper, reached, rises)
                room.mark[_STALE, t] = False
        fixed, waiting = 0, False
        for g in range(len(reached)):
            t = reached[g]
            if t >= n_upper:
                continue
            left = rises[0, t, g] + rises[2, 2 * t + 1, g]
            right = rises[1, t, g] + rises[2, 2 * t + 2, g]
            rise_if[0, g], rise_if[1, g] = left, right
            if min(left, right) >= slack:
                return bound, min(cut_bound, bound + min(left, right)), True, False
            if max(left, right) >= slack:
                cut_bound = min(cut_bound, bound + max(left, right))
                _decide(groups, room, g, 1 if left >= slack else -1, n_upper)
                fixed += 1
            else:
                waiting = True
        room.counts[2] += fixed
        if fixed == 0:
            return bound, cut_bound, False, waiting


@kernel
def _best_by_trial(groups: Groups, room: Room, n_upper: int, slack: float) -> int:
    """Try the most promising groups on both sides for some steps; return the best, its rises written."""
    bases, reached, rise_if, tried = room.bases, room.reached, room.rise_if, room.tried
    best_promise, branch = -1.0, -1
    for g in range(len(reached)):
        tried[g] = False
    for _ in range(_CANDIDATES):
        candidate = most_promising(n_upper, reached, rise_if, tried)
        if candidate < 0:
            break
        tried[candidate] = True
        room.counts[1] += 1
        t = reached[candidate]
        for side in (-1, 1):
            child = 2 * t + 1 if side < 0 else 2 * t + 2
            rise = try_added(groups, bases, t, candidate, side, _TRIAL_STEPS, slack)
            if rise < slack:
                rise += try_added(groups, bases, child, candidate, 0, _TRIAL_STEPS, slack)
            row = 0 if side < 0 else 1
            rise_if[row, candidate] = max(rise_if[row, candidate], min(rise, 2.0 * slack))
        rank = promise(rise_if[0, candidate], rise_if[1, candidate], t)
        if rank > best_promise:
            best_promise, branch = rank, candidate
        if max(rise_if[0, candidate], rise_if[1, candidate]) >= slack:
            return candidate
    return branch


@glue
def _leave_open(room: Room, at: int, bound: float) -> None:
    """Write the partial routing and its bases into the list of what is left open."""
    bases = room.bases
    room.open_bound[at] = bound
    for g in range(len(room.reached)):
        room.open_reached[at, g] = room.reached[g]
    for t in range(len(bases.size)):
        for j in range(bases.where.shape[1]):
            room.open_where[at, t, j] = bases.where[t, j]
        for i in range(bases.basis.shape[1]):
            room.open_basis[at, t, i] = bases.basis[t, i]


@glue
def _decide(groups: Groups, room: Room, g: int, side: int, n_upper: int) -> None:
    """Send a group from the node that it has reached to a side."""
    t = room.reached[g]
    child = 2 * t + 1 if side < 0 else 2 * t + 2
    room.reached[g] = child
    add_side(groups, room.bases, t, g, side)
    add_margins(groups, room.bases, child, g)
    room.mark[_CHANGED, t] = True
    room.mark[_CHANGED, child] = True
    if child < n_upper:
        room.mark[_STALE, 2 * child + 1] = True
        room.mark[_STALE, 2 * child + 2] = True


@dataclass(frozen=True, eq=False)
class BasisPosition:
    """A partial routing (G,) with the nodes' bases, where there are some: where variables are, and the basic ones."""

    reached: NDArray[np.int16]
    where: NDArray[np.int8] | None
    basis: NDArray[np.int32] | None

    @property
    def bytes(self) -> int:
        """Memory of its routing and its bases."""
        known = (array.nbytes for array in (self.where, self.basis) if array is not None)
        return self.reached.nbytes + sum(known)

    def lighter(self) -> BasisPosition:
        """Return the routing alone."""
        return BasisPosition(self.reached, None, None)


def compile_l1(budget: TimeBudget) -> float:
    """Load what the dives run, or compile it; see :func:`~mipforest.searches.compile_by`."""
    X, three = np.array([[0.0], [1.0], [2.0]]), np.ones(3)
    tiny = ConvexNodes(X, np.eye(2)[[0, 1, 0]], three, three, 2, 1e-3, np.ones((1, 2)), True, None, np.inf)
    return compile_by(
        lambda: L1Dives(tiny).dive(L1Dives(tiny).first(), 1.0, 1, np.zeros(1, np.int64)), budget
    )


class L1Dives:
    """Dives of one problem.

    Parameters
    ----------
    nodes
        The problem.
    """

    needs_trees = True

    def __init__(self, nodes: ConvexNodes) -> None:
        self._centre = nodes.X.mean(axis=0)
        X = np.ascontiguousarray(nodes.X - self._centre)
        self._groups = Groups(
            X,
            nodes.weight,
            np.ascontiguousarray(nodes.kinks),
            nodes.C,
            nodes.bias_limit,
            float(nodes.epsilon),
        )
        self._n_nodes, self._n_upper = 2**nodes.depth - 1, 2 ** (nodes.depth - 1) - 1
        self._rooms: list[Room] = []

    def first(self) -> BasisPosition:
        """Return the position at the root."""
        return self.at(np.zeros(len(self._groups.X), np.int64))

    def at(self, reached: IntArray) -> BasisPosition:
        """Return the position of a partial routing."""
        return BasisPosition(reached.astype(np.int16), None, None)

    def dive(self, start: BasisPosition, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position; see :class:`~mipforest.searches.routing.search.Dives`."""
        try:  # another thread may take the last one at any time
            room = self._rooms.pop()
        except IndexError:
            room = room_for(self._groups, self._n_nodes, STEPS)
        room.counts[:], room.reached[:] = 0, start.reached
        room.bases.where[: self._n_nodes] = AT_LOWER if start.where is None else start.where
        room.bases.basis[: self._n_nodes] = -1 if start.basis is None else start.basis
        end, n_open, bound, cut_bound = dive(self._groups, room, self._n_upper, target, most, stop)
        weights = room.bases.y[: self._n_nodes, :-1].copy()
        dived = Dived(
            end=end,
            position=BasisPosition(room.reached.astype(np.int16), None, None),
            open=[
                (
                    float(room.open_bound[k]),
                    BasisPosition(
                        room.open_reached[k].astype(np.int16),
                        room.open_where[k].copy(),
                        room.open_basis[k].astype(np.int32),
                    ),
                )
                for k in range(n_open)
            ],
            bound=bound,
            cut_bound=cut_bound,
            weights=weights,
            bias=room.bases.y[: self._n_nodes, -1] - weights @ self._centre,
            steps=int(room.counts[3]),
            counts=room.counts.copy(),
        )
        self._rooms.append(room)
        return dived
