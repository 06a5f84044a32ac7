"""Dives of a tree of support vector machines: the compiled ones, with what they keep between two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compile_by
from mipforest.searches.routing.dive import Room, dive, room_for
from mipforest.searches.routing.node_dual import BIAS, Groups, RoutingProblem
from mipforest.searches.routing.recording import FIRST, NO_LOG, Recorder, WarmStart
from mipforest.searches.routing.search import STEPS, Dived, RoutingSearch
from mipforest.time_budget import TimeBudget


def compile_kernels(budget: TimeBudget) -> float:
    """Load what a search runs, or compile it; see :func:`~mipforest.searches.compile_by`."""
    X, weight = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    dives = MachineDives(RoutingProblem(X, weight, np.ones(3), np.full(3, 10.0), 2, 1e-3))
    search = RoutingSearch(dives, gap=0.0, complete=lambda _: np.inf, propose=lambda _: np.inf)
    return compile_by(lambda: search.run(1.0, deadline=np.inf), budget)


@dataclass(frozen=True, eq=False)
class WarmPosition:
    """A partial routing (G,) with a warm start of the nodes' duals, where there is one."""

    reached: NDArray[np.int16]
    duals: WarmStart | None

    @property
    def bytes(self) -> int:
        """Memory of its routing and its warm start."""
        warm = 0 if self.duals is None else self.duals[0].nbytes + self.duals[1].nbytes
        return self.reached.nbytes + warm

    def lighter(self) -> WarmPosition:
        """Return the routing alone."""
        return WarmPosition(self.reached, None)


class MachineDives:
    """Compiled dives of a tree of support vector machines.

    Parameters
    ----------
    problem
        The problem.
    recorder
        Of a certificate.
    """

    needs_trees = True

    def __init__(self, problem: RoutingProblem, recorder: Recorder | None = None) -> None:
        # The node's value does not change when all samples are moved; small numbers keep the sums exact.
        self._centre, self._recorder = problem.X.mean(axis=0), recorder
        X = np.ascontiguousarray(problem.X - self._centre)
        K = np.ascontiguousarray(X @ X.T)
        self._groups = Groups(
            X, K, np.diag(K).copy(), problem.weight, problem.C, problem.bias_limit, float(problem.epsilon)
        )
        self._n_nodes, self._n_upper = 2**problem.depth - 1, 2 ** (problem.depth - 1) - 1
        self._rooms: list[Room] = []

    def first(self) -> WarmPosition:
        """Return the position at the root."""
        return self.at(np.zeros(len(self._groups.X), np.int64))

    def at(self, reached: IntArray) -> WarmPosition:
        """Return the position of a partial routing."""
        return WarmPosition(reached.astype(np.int16), None)

    @staticmethod
    def _stored(reached: IntArray, duals: FloatArray) -> WarmPosition:
        flat = duals.ravel()
        where = np.flatnonzero(flat)
        return WarmPosition(reached.astype(np.int16), (where.astype(np.int32), flat[where]))

    def dive(self, start: WarmPosition, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position; see :class:`Dives`."""
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
        end, n_open, bound, cut_bound = dive(self._groups, room, self._n_upper, target, most, stop)
        dived = Dived(
            end=end,
            position=WarmPosition(room.reached.astype(np.int16), None),
            open=[
                (float(room.open_bound[q]), self._stored(room.open_reached[q], room.open_duals[q]))
                for q in range(n_open)
            ],
            bound=bound,
            cut_bound=cut_bound,
            weights=room.duals.w.copy(),
            bias=room.duals.node[BIAS] - room.duals.w @ self._centre,
            steps=int(room.counts[3]),
            counts=room.counts.copy(),
            log=room.log[: int(room.log[0])].copy(),
        )
        self._rooms.append(room)
        return dived
