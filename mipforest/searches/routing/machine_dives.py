r"""Dives of a tree of support vector machines: the compiled ones, with what they keep between two of them.

**Floors.** Once the sides at the root are known, the two subtrees below it do not depend on each other. One tree of
branchings for both multiplies the branchings of one by those of the other; a search of each subtree on its own adds
them. From three levels on, a dive therefore begins with a bound on what each subtree costs for the groups K that are
known to reach it, whatever their sides there:

.. math::

    z(K) = \min \{ \text{cost of a tree with a level less on the samples of } K \}

by a routing search of that tree (which does the same with its own subtrees). Losses are not negative and a tree that
routes more samples routes K, too: :math:`z(K) \le z(K')` for :math:`K \subseteq K'`. So a lower bound on z(K), the
floor, holds at all partial routings that follow. It is computed anew when K has grown by a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compile_by
from mipforest.searches.numbers import require
from mipforest.searches.routing.dive import STOPPED, Room, dive, room_for
from mipforest.searches.routing.node_dual import BIAS, VALUE, Groups, RoutingProblem
from mipforest.searches.routing.recording import FIRST, NO_LOG, Recorder, WarmStart
from mipforest.searches.routing.search import STEPS, Dived, RoutingSearch
from mipforest.time_budget import TimeBudget

#: Steps of the search for a floor.
_FLOOR_STEPS = 1000

#: Floors pay as long as this share of the last ones, about that many, closes the node that they are for. Where they do
#: not, one of some positions still gets them: with a better tree they may pay again.
_PAYS, _LAST_FLOORS, _PROBED = 0.25, 50, 8

#: Groups that reach a subtree before it gets a floor, and by how much more they have to be for another one.
_LEAST_GROUPS, _FLOOR_GROWTH = 8, 1.1


def compile_kernels(budget: TimeBudget) -> float:
    """Load what a search runs, or compile it; see :func:`~mipforest.searches.compile_by`."""
    X, weight = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    dives = MachineDives(RoutingProblem(X, weight, np.ones(3), np.full(3, 10.0), 2, 1e-3))
    search = RoutingSearch(dives, gap=0.0, complete=lambda _: np.inf, propose=lambda _: np.inf)
    return compile_by(lambda: search.run(1.0, deadline=np.inf), budget)


@dataclass(frozen=True, eq=False)
class WarmPosition:
    """A partial routing (G,) with a warm start of the nodes' duals, where there is one.

    The subtrees below the root have floors, each computed for a number of groups, and known to be the cost or not.
    """

    reached: NDArray[np.int16]
    duals: WarmStart | None
    floors: tuple[float, float] = (0.0, 0.0)
    counted: tuple[int, int] = (0, 0)
    known: tuple[bool, bool] = (False, False)

    @property
    def bytes(self) -> int:
        """Memory of its routing and its warm start."""
        warm = 0 if self.duals is None else self.duals[0].nbytes + self.duals[1].nbytes
        return self.reached.nbytes + warm

    def lighter(self) -> WarmPosition:
        """Return the routing alone."""
        return replace(self, duals=None)


class MachineDives:
    """Compiled dives of a tree of support vector machines.

    Parameters
    ----------
    problem
        The problem.
    recorder
        Of a certificate.

    Raises
    ------
    DataValueError
        If a number is too large to compute with.
    """

    needs_trees = True

    def __init__(self, problem: RoutingProblem, recorder: Recorder | None = None) -> None:
        # Other dives prove nothing where their values overflow; these would prove too much.
        require("routing", "X", problem.X)
        for name in ("weight", "C", "bias_limit"):
            require("routing", name, getattr(problem, name), least=0.0)
        # The node's value does not change when all samples are moved; small numbers keep the sums exact.
        self._centre, self._recorder = problem.X.mean(axis=0), recorder
        X = np.ascontiguousarray(problem.X - self._centre)
        K = np.ascontiguousarray(X @ X.T)
        self._groups = Groups(
            X, K, np.diag(K).copy(), problem.weight, problem.C, problem.bias_limit, float(problem.epsilon)
        )
        self._n_nodes, self._n_upper = 2**problem.depth - 1, 2 ** (problem.depth - 1) - 1
        self._problem = problem
        self._tried = self._closed = self._passed = 0
        self._subtrees = [_below(1, self._n_nodes), _below(2, self._n_nodes)]
        self._rooms: list[Room] = []

    def first(self) -> WarmPosition:
        """Return the position at the root."""
        return WarmPosition(np.zeros(len(self._groups.X), np.int16), None)

    def at(self, reached: IntArray) -> WarmPosition:
        """Return the position of a partial routing; subtrees get no floors: trees are looked for there."""
        G = len(reached)
        return WarmPosition(reached.astype(np.int16), None, counted=(G, G))

    @staticmethod
    def _stored(start: WarmPosition, reached: IntArray, duals: FloatArray) -> WarmPosition:
        flat = duals.ravel()
        where = np.flatnonzero(flat)
        return replace(start, reached=reached.astype(np.int16), duals=(where.astype(np.int32), flat[where]))

    def dive(self, start: WarmPosition, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position; see :class:`Dives`."""
        if self._problem.depth < 3 or self._recorder is not None or not (self._due(start) and self._pays()):
            return self._dive(start, target, most, stop)
        # One step without branching tells what the nodes prove, and fixes what it can.
        settled = self._dive(start, target, 1, np.ones(1, np.int64))
        if settled.end != STOPPED:
            return settled
        start, steps = self._with_floors(settled.open[0][1], settled.values, target, stop)
        dived = self._dive(start, target, most, stop)
        return replace(
            dived,
            cut_bound=min(settled.cut_bound, dived.cut_bound),
            steps=dived.steps + settled.steps + steps,
            counts=dived.counts + settled.counts,
        )

    def _due(self, start: WarmPosition) -> list[int]:
        """Return the subtrees, 0 for left and 1 for right, that a good part of their groups have reached since."""
        now = [int(np.isin(start.reached, branches).sum()) for branches in self._subtrees]
        return [k for k in range(2) if now[k] >= max(_LEAST_GROUPS, _FLOOR_GROWTH * start.counted[k])]

    def _pays(self) -> bool:
        """Return whether the last floors have closed enough nodes, or it is time to see whether they would now."""
        if self._tried < _LAST_FLOORS or self._closed >= _PAYS * self._tried:
            return True
        self._passed += 1
        return self._passed % _PROBED == 0

    def _with_floors(
        self, start: WarmPosition, values: FloatArray, target: float, stop: IntArray
    ) -> tuple[WarmPosition, int]:
        """Return a position with new floors where they are due, and the steps that they took."""
        floors, counted, known, steps = list(start.floors), list(start.counted), list(start.known), 0
        for k in self._due(start):
            other = 1 - k
            of_other = max(floors[other], float(values[self._subtrees[other]].sum()))
            enough = target - float(values[0]) - of_other
            if enough <= floors[k]:
                break  # it is cut off already
            inside = np.isin(start.reached, self._subtrees[k])
            floor, known[k], spent = self._floor(inside, self._subtrees[k], enough, stop)
            floors[k], counted[k], steps = max(floors[k], floor), int(inside.sum()), steps + spent
            self._tried += 1
            self._closed += floor >= enough
            if self._tried >= 2 * _LAST_FLOORS:
                self._tried, self._closed = self._tried // 2, self._closed // 2
        return replace(
            start,
            floors=(floors[0], floors[1]),
            counted=(counted[0], counted[1]),
            known=(known[0], known[1]),
        ), steps

    def _floor(
        self, inside: BoolArray, branches: Sequence[int], enough: float, stop: IntArray
    ) -> tuple[float, bool, int]:
        """Bound what a subtree costs for some groups (G,).

        Returns
        -------
        floor, known, steps
            A bound not above ``enough``, whether the search for it ended, and its steps.
        """
        whole, nodes = self._problem, list(branches)
        # The part is centred elsewhere, which moves a bias by less than its bound.
        part = RoutingProblem(
            whole.X[inside],
            whole.weight[inside],
            whole.C[nodes],
            2.0 * whole.bias_limit[nodes],
            whole.depth - 1,
            whole.epsilon,
        )
        search = RoutingSearch(
            MachineDives(part), gap=0.0, complete=lambda dived: dived.bound, propose=lambda _: np.inf
        )
        outcome = search.run(
            enough,
            deadline=np.inf,
            on_progress=lambda *told: told[2] >= _FLOOR_STEPS or bool(stop[0]),
        )
        return outcome.bound, outcome.ended, outcome.nodes

    def _dive(self, start: WarmPosition, target: float, most: int, stop: IntArray) -> Dived:
        shape = self._groups.X.shape
        try:  # another thread may take the last one at any time
            room = self._rooms.pop()
        except IndexError:
            log = NO_LOG if self._recorder is None else self._recorder.empty_log()
            room = room_for(self._n_nodes, shape[0], shape[1], STEPS, log)
        room.start[:], room.counts[:], room.log[0] = 0.0, 0, FIRST
        if start.duals is not None:
            room.start.ravel()[start.duals[0]] = start.duals[1]
        room.reached[:] = start.reached
        room.floors[:], room.known[:] = start.floors, start.known
        end, n_open, bound, cut_bound = dive(self._groups, room, self._n_upper, target, most, stop)
        dived = Dived(
            end=end,
            position=replace(start, reached=room.reached.astype(np.int16), duals=None),
            open=[
                (float(room.open_bound[q]), self._stored(start, room.open_reached[q], room.open_duals[q]))
                for q in range(n_open)
            ],
            bound=bound,
            cut_bound=cut_bound,
            weights=room.duals.w.copy(),
            bias=room.duals.node[BIAS] - room.duals.w @ self._centre,
            steps=int(room.counts[3]),
            counts=room.counts.copy(),
            log=room.log[: int(room.log[0])].copy(),
            values=room.duals.node[VALUE].copy(),
        )
        self._rooms.append(room)
        return dived


def _below(root: int, n_nodes: int) -> list[int]:
    """Return a node and those below it, level by level."""
    found = [root] if root < n_nodes else []
    for t in found:
        found += [child for child in (2 * t + 1, 2 * t + 2) if child < n_nodes]
    return found
