"""The routing search: best-first with dives over partial routings, on several threads, with true bounds at any time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import compile_by
from mipforest.searches.routing.dive import COMPLETE, STOPPED, Room, dive, room_for
from mipforest.searches.routing.node_dual import BIAS, Groups
from mipforest.searches.routing.recording import FIRST, NO_LOG, Recorder, WarmStart
from mipforest.time_budget import TimeBudget

#: Steps of one dive: it then hands back what is open, so that limits and other threads get their turn.
STEPS = 400

#: Bytes of warm starts that open nodes may keep; beyond them, new ones start from nothing.
WARM_START_BYTES = 2_000_000_000

#: Bytes that open nodes may take, with their warm starts; beyond them, the search takes the newest of those with high
#: bounds instead of the one with the least: they close soon, and few new ones stay open.
OPEN_BYTES = 3_000_000_000

#: A best tree of more than this multiple of the bound cuts off little: at first the search looks for trees of less than
#: the multiple only, and begins again with twice as much where there are none.
ASPIRATION = 2.0

#: Of this many dives, one looks for all trees that are better than the best.
ALL_TREES = 4

#: Dives to one tree from hyperplanes of a partial routing; at the beginning there are more.
TREES = 50


@dataclass(frozen=True, eq=False)
class RoutingProblem:
    """What the search needs of a tree of support vector machines.

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
    """

    X: FloatArray
    weight: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    depth: int
    epsilon: float


@dataclass(order=True)
class _Open:
    bound: float
    number: int
    reached: NDArray[np.int16] = field(compare=False)
    duals: WarmStart | None = field(compare=False)
    #: Its node in a certificate.
    name: int = field(default=0, compare=False)

    @property
    def bytes(self) -> int:
        """Memory of its routing and its warm start."""
        warm = 0 if self.duals is None else self.duals[0].nbytes + self.duals[1].nbytes
        return self.reached.nbytes + warm


@dataclass(frozen=True, eq=False)
class _Dived:
    """A dive from an open node: why it ended, what it left open, and where it stood at its end."""

    start: _Open
    end: int
    open: list[tuple[float, NDArray[np.int16], WarmStart]]
    bound: float
    cut_bound: float
    reached: IntArray
    weights: FloatArray
    bias: FloatArray
    counts: IntArray
    log: FloatArray


@dataclass(frozen=True)
class Outcome:
    """What a search has found.

    Attributes
    ----------
    bound
        Proven lower bound on the value of every tree.
    nodes
        Steps of all dives.
    proven
        Whether nothing better than the best tree is left, within the gap.
    interrupted
        Whether the caller stopped it.
    """

    bound: float
    nodes: int
    proven: bool
    interrupted: bool


def compile_kernels(budget: TimeBudget) -> float:
    """Load what a search runs, or compile it; see :func:`~mipforest.searches.compile_by`."""
    X, weight = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    tiny = RoutingProblem(X, weight, np.ones(3), np.full(3, 10.0), 2, 1e-3)
    search = RoutingSearch(tiny, gap=0.0, complete=lambda *_: np.inf, propose=lambda *_: np.inf)
    return compile_by(lambda: search.run(1.0, deadline=np.inf), budget)


class RoutingSearch:
    """A search over the routings of one problem.

    Parameters
    ----------
    problem
        The problem.
    gap
        Relative gap within which the best tree counts as optimal.
    complete
        Called with the (G,) last branch nodes of a complete routing; returns its exact value, ``inf`` where no
        hyperplanes realise it.
    propose
        Called with weights (|B|, p) and biases (|B|,) of a partial routing; returns the value of a tree made from them.
    threads
        Number of threads.
    recorder
        Writes a certificate. All trees are looked for from the beginning then, in one tree of branchings, and nodes
        that are closed by a bound without a dual point of their own are dived into.
    """

    def __init__(
        self,
        problem: RoutingProblem,
        *,
        gap: float,
        complete: Callable[[IntArray], float],
        propose: Callable[[FloatArray, FloatArray], float],
        threads: int = 1,
        recorder: Recorder | None = None,
    ) -> None:
        self.problem, self.gap, self.threads, self._recorder = problem, gap, threads, recorder
        self._complete, self._propose = complete, propose
        # The node's value does not change when all samples are moved; small numbers keep the sums exact.
        self._centre = problem.X.mean(axis=0)
        X = np.ascontiguousarray(problem.X - self._centre)
        K = np.ascontiguousarray(X @ X.T)
        self._groups = Groups(
            X, K, np.diag(K).copy(), problem.weight, problem.C, problem.bias_limit, float(problem.epsilon)
        )
        self._n_nodes, self._n_upper = 2**problem.depth - 1, 2 ** (problem.depth - 1) - 1
        self._rooms: list[Room] = []
        self._stop = np.zeros(1, np.int64)
        self._heap: list[_Open] = []
        self._to_close: list[_Open] = []
        self._running: dict[Future[_Dived], _Open] = {}
        self._numbers = 0
        self._kept_bytes = 0
        self.best, self.nodes = np.inf, 0
        self._cut_bound = self._aspired = np.inf
        self.counts = np.zeros(4, np.int64)

    @property
    def bound(self) -> float:
        """Proven lower bound on the value of every tree."""
        left = [node.bound for node in (*self._heap[:1], *self._running.values())]
        return float(min([self._cut_bound, self.best, *left]))

    @property
    def target(self) -> float:
        """Value from which on trees are not looked for at present."""
        return min(self._within_gap(), self._aspired)

    def _within_gap(self) -> float:
        return self.best - self.gap * abs(self.best)

    def run(
        self,
        best: float,
        *,
        deadline: float,
        on_progress: Callable[[float, float, int], bool | None] | None = None,
    ) -> Outcome:
        """Search until the best tree is proven, the deadline has come, or the caller stops it.

        Parameters
        ----------
        best
            Value of the best tree known.
        deadline
            On the clock of :func:`time.monotonic`.
        on_progress
            Called now and then with objective, bound and nodes; returning ``True`` stops the search.
        """
        self.best = best
        self._begin_below(np.inf, 0.0)
        interrupted, dives = False, 0
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while True:
                    while (
                        (self._heap or self._to_close)
                        and len(self._running) < self.threads
                        and monotonic() < deadline
                        and not interrupted
                    ):
                        node = self._to_close.pop() if self._to_close else self._next()
                        if node.bound >= self.target:
                            self._cut_bound = min(self._cut_bound, node.bound)
                            if self._recorder is None:
                                self._kept_bytes -= node.bytes
                                continue
                        dives += 1
                        target = self.target if dives % ALL_TREES else self._within_gap()
                        self._running[pool.submit(self._dive, node, target)] = node
                    if not self._running:
                        if self._heap or self._to_close or self._aspired >= self._within_gap():
                            break  # the time is over, or nothing better than the best tree is left
                        self._begin_below(ASPIRATION * self._aspired, self._cut_bound)
                        continue
                    done, _ = wait(self._running, timeout=0.1, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._running.pop(future)
                        weights, bias = self._take(future.result())
                        low = self.best > ASPIRATION * self.bound > 0.0
                        if low and self._aspired == np.inf and self._recorder is None:
                            self._aspired = ASPIRATION * self.bound
                        if dives % TREES == 0 or dives & (dives - 1) == 0:
                            self.best = min(self.best, self._propose(weights, bias))
                    if on_progress is not None and on_progress(self.best, self.bound, self.nodes):
                        interrupted = True
                    if monotonic() >= deadline or interrupted:
                        self._stop[0] = 1
            finally:
                self._stop[0] = 1
        bound = self.bound if self._recorder is None else self._close_open(self._recorder)
        proven = not self._heap and bound >= self._within_gap()
        return Outcome(bound, self.nodes, proven, interrupted)

    def _begin_below(self, value: float, bound: float) -> None:
        """Begin at the root to look for trees of less than a value; none is below the bound."""
        self._aspired = value
        self._push(bound, np.zeros(len(self._groups.X), np.int16), None)
        self._cut_bound = np.inf

    def _push(self, bound: float, reached: NDArray[np.int16], duals: WarmStart | None, name: int = 0) -> None:
        self._numbers += 1
        kept = duals if self._kept_bytes < WARM_START_BYTES else None
        node = _Open(bound, self._numbers, reached, kept, name)
        self._kept_bytes += node.bytes
        if self._recorder is not None and bound >= self.target:
            self._cut_bound = min(self._cut_bound, bound)
            self._to_close.append(node)
        else:
            heapq.heappush(self._heap, node)

    def _next(self) -> _Open:
        """Take the open node with the least bound; past the budget of memory, the last one, a leaf of the heap."""
        return self._heap.pop() if self._kept_bytes > OPEN_BYTES else heapq.heappop(self._heap)

    def _close_open(self, recorder: Recorder) -> float:
        """Write the open nodes as leaves, each with a dual point for the bound; return what all leaves prove."""
        bound = self.bound
        for node in (*self._to_close, *self._heap):
            if not recorder.leaf(node.name, node.reached, node.duals, at_least=bound):
                dived = self._dive(node, bound, most=1)
                for name, (_, reached, duals) in zip(self._recorded(dived), dived.open, strict=True):
                    recorder.leaf(name, reached, duals)
        return min(bound, recorder.least)

    def _recorded(self, dived: _Dived) -> list[int]:
        """Write what a dive has done; return the names of the nodes that it left open."""
        if self._recorder is None:
            return [0] * len(dived.open)
        start = dived.start
        return self._recorder.dived(start.name, start.reached, dived.log, stopped=dived.end == STOPPED)

    @staticmethod
    def _stored(reached: IntArray, duals: FloatArray) -> tuple[NDArray[np.int16], WarmStart]:
        flat = duals.ravel()
        where = np.flatnonzero(flat)
        return reached.astype(np.int16), (where.astype(np.int32), flat[where])

    def _dive(self, node: _Open, target: float, most: int = STEPS) -> _Dived:
        shape = self._groups.X.shape
        if self._rooms:
            room = self._rooms.pop()
        else:
            log = NO_LOG if self._recorder is None else self._recorder.empty_log()
            room = room_for(self._n_nodes, shape[0], shape[1], STEPS, log)
        room.start[:], room.counts[:], room.log[0] = 0.0, 0, FIRST
        if node.duals is not None:
            room.start.ravel()[node.duals[0]] = node.duals[1]
        room.reached[:] = node.reached
        end, n_open, bound, cut_bound = dive(self._groups, room, self._n_upper, target, most, self._stop)
        found = [
            (
                max(float(room.open_bound[q]), node.bound),
                *self._stored(room.open_reached[q], room.open_duals[q]),
            )
            for q in range(n_open)
        ]
        dived = _Dived(
            start=node,
            end=end,
            open=found,
            bound=max(bound, node.bound),
            cut_bound=max(cut_bound, node.bound),
            reached=room.reached.copy(),
            weights=room.duals.w.copy(),
            bias=room.duals.node[BIAS].copy(),
            counts=room.counts.copy(),
            log=room.log[: int(room.log[0])].copy(),
        )
        self._rooms.append(room)
        return dived

    def _take(self, dived: _Dived) -> tuple[FloatArray, FloatArray]:
        """Account for a dive; return the hyperplanes at its end, in the coordinates of the problem."""
        self._kept_bytes -= dived.start.bytes
        self.counts += dived.counts
        self.nodes += int(dived.counts[3])
        self._cut_bound = min(self._cut_bound, dived.cut_bound)
        if dived.end == COMPLETE:
            self.best = min(self.best, self._complete(dived.reached))
            self._cut_bound = min(self._cut_bound, dived.bound)
        for (bound, reached, duals), name in zip(dived.open, self._recorded(dived), strict=True):
            self._push(bound, reached, duals, name)
        return dived.weights, dived.bias - dived.weights @ self._centre
