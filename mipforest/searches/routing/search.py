"""The routing search: best-first branch and bound with plunges, on several threads, with valid bounds at any time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import DataValueError
from mipforest.searches.numbers import require_limits
from mipforest.searches.routing.certificate_writer import CertificateWriter
from mipforest.searches.routing.plunge import COMPLETE, STEPS, STOPPED, Backend, OpenNode, PlungeResult

#: Bytes of warm starts that open nodes may keep; beyond them, new ones start from nothing.
WARM_START_BYTES = 2_000_000_000

#: Bytes that open nodes may take, with their warm starts; beyond them, the search takes the newest of those with high
#: bounds instead of the one with the least: they close soon, and few new ones stay open.
OPEN_BYTES = 3_000_000_000

#: A best tree of more than this multiple of the bound cuts off little: see :class:`_ObjectiveLimit`.
POOR = 2.0

#: A restart is to take this many times the steps of the search before it.
RESTART_GROWTH = 3.0

#: By how much the first limits are above the bound, and the range for later ones; least power of growth.
FIRST_RAISE, MIN_RAISE, MAX_RAISE, LEAST_POWER = 1.1, 1.02, 2.0, 1.0

#: Where nothing else finds trees, one of this many plunges looks for all that are better than the best.
ALL_TREES = 4

#: Plunges to one tree from hyperplanes of an open node; at the beginning there are more.
TREES = 50

#: Share of the groups at a node that are decided anew, at first, and by what it grows where that leads to nothing.
_SHARE, _SHARE_GROWTH = 0.05, 1.5

#: Steps of one neighbourhood. The next one begins with few groups again, and takes others by chance: their distances
#: are multiplied by a random number whose logarithm has this standard deviation.
_STEPS_AROUND, _NOISE = 400, 1.0

#: Steps in all neighbourhoods as a share of all steps of the search: the largest, until one has used up its steps, and
#: the least. In between the share is the gap: where it is wide, better trees are likely, and a proof is far away.
_MAX_PART, _MIN_PART = 0.5, 0.05


@dataclass(order=True)
class _Open:
    bound: float
    number: int
    #: An :class:`~mipforest.searches.routing.plunge.OpenNode` of the backend's own kind.
    node: Any = field(compare=False)
    #: Its node in a certificate.
    name: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Outcome:
    """Result of a search.

    Attributes
    ----------
    bound
        Proven lower bound on the value of every tree.
    nodes
        Steps of all plunges.
    proven
        Whether nothing better than the best tree is left, within the gap.
    interrupted
        Whether the caller stopped it.
    ended
        Whether nothing is left to search; what is missing to a proof then is the accuracy of the nodes' values.
    """

    bound: float
    nodes: int
    proven: bool
    interrupted: bool
    ended: bool


class _ObjectiveLimit:
    """Restarts with an objective limit, for a search whose best tree is poor: below a limit far more is cut off.

    Where there is no tree below the limit, it is a bound, and the search restarts at the root with a larger one. Steps
    grow with a power of the limit, which two restarts show: the limit is raised by what gives the wanted growth.
    """

    def __init__(self) -> None:
        self.value = np.inf
        self._raise = FIRST_RAISE
        self._began = self._steps_before = 0

    def begin(self, bound: float) -> None:
        """Set the first limit, a little above a positive bound."""
        self.value = self._raise * bound

    def restart(self, steps: int) -> None:
        """Raise the limit, after these steps of the whole search."""
        spent = max(steps - self._began, 1)
        if self._steps_before:
            power = max(np.log(spent / self._steps_before) / np.log(self._raise), LEAST_POWER)
            self._raise = float(np.clip(RESTART_GROWTH ** (1.0 / power), MIN_RAISE, MAX_RAISE))
        self._began, self._steps_before = steps, spent
        self.value *= self._raise


class Neighbourhoods:
    """Neighbourhoods of the best tree: small searches that decide anew the groups of samples close to its hyperplanes.

    All other groups stay where the tree has them, which leaves few routings: a plunge finds better trees where one from
    the root is cut off. What they find are trees; their bounds are valid in the neighbourhood alone. The idea is that
    of local branching (Fischetti, Lodi, *Local branching*, Mathematical Programming 98, 2003), with the distance to a
    hyperplane to say what is near.

    Parameters
    ----------
    scores
        Returns (G, |B|) scores of the groups at the nodes of the best tree.
    at
        Returns the open node of a partial assignment (G,).
    """

    def __init__(self, scores: Callable[[], FloatArray], at: Callable[[IntArray], Any]) -> None:
        self._scores, self._at = scores, at
        self._heap: list[tuple[float, int, Any]] = []
        self._numbers = count()
        self._random = np.random.default_rng(0)
        self._steps = self._steps_here = 0
        self._around = np.inf
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin again with the groups that are closest, as another search has found a better tree."""
        self._share, self._noise = _SHARE, 0.0
        self._heap.clear()

    def due(self, nodes: int, gap: float) -> bool:
        """Return whether it is their turn, after these steps of all searches, with this relative gap."""
        return (
            self._steps <= (_MAX_PART if self._noise == 0.0 else min(max(gap, _MIN_PART), _MAX_PART)) * nodes
        )

    def start(self, best: float, cutoff: float) -> tuple[Any, int]:
        """Return the open node to plunge from, and the limit of steps.

        Parameters
        ----------
        best
            Value of the best tree.
        cutoff
            Objective value from which nodes are pruned.
        """
        spent = self._steps_here >= _STEPS_AROUND
        if not self._heap or spent or self._heap[0][0] >= cutoff:
            if best >= self._around:
                self._share *= _SHARE_GROWTH
                if spent or self._share >= 1.0:
                    self._share, self._noise = _SHARE, _NOISE
            self._around, self._steps_here = best, 0
            scores = self._scores()
            distance = np.abs(scores) * np.exp(self._noise * self._random.standard_normal(scores.shape))
            self._heap = [(0.0, 0, self._at(near(scores >= 0.0, distance, self._share)))]
        return heapq.heappop(self._heap)[2], _STEPS_AROUND - self._steps_here

    def take(self, steps: int, left_open: Sequence[tuple[float, Any]], cutoff: float) -> None:
        """Account for a plunge: its steps, and what it left open."""
        self._steps += steps
        self._steps_here += steps
        for bound, node in left_open:
            if bound < cutoff:
                heapq.heappush(self._heap, (bound, next(self._numbers), node))


def near(goes_right: BoolArray, distance: FloatArray, share: float) -> IntArray:
    """Return the partial assignment in which the groups close to hyperplanes wait at the first one.

    Parameters
    ----------
    goes_right, distance
        (G, |B|) sides of the groups at the nodes of a tree, and distances from its hyperplanes.
    share
        Of the groups that reach a node above the last level, the part that waits there, rounded up.

    Returns
    -------
    (G,) nodes that the groups have reached.
    """
    G, n_nodes = distance.shape
    reached, waits = np.zeros(G, np.int64), np.zeros(G, np.bool_)
    for t in range(n_nodes // 2):
        here = np.flatnonzero((reached == t) & ~waits)
        here = here[np.argsort(distance[here, t], kind="stable")]
        n_waiting = int(np.ceil(share * len(here)))
        waits[here[:n_waiting]] = True
        reached[here[n_waiting:]] = 2 * t + 1 + goes_right[here[n_waiting:], t]
    return reached


def _finite(result: PlungeResult) -> PlungeResult:
    """Return the result of a plunge, unless its values overflowed: then it has proven nothing."""
    bounds = (result.bound, result.cut_bound, *(bound for bound, _ in result.open))
    if any(map(math.isnan, bounds)):
        raise DataValueError(
            "routing: the values of the nodes are beyond the numbers of a computer, as features, weights or C are very "
            "large, or very different in size; scale the features (scaling='minmax'), or choose a smaller C"
        )
    return result


class RoutingSearch:
    """Branch and bound over the routings of one problem.

    Parameters
    ----------
    backend
        What plunges for it.
    gap
        Relative gap within which the best tree counts as optimal.
    complete
        Called with a plunge that ended at a complete routing; returns its exact value, ``inf`` where no hyperplanes
        realise it.
    propose
        Called with the result of a plunge; returns the value of a tree made from the hyperplanes of its end.
    scores
        Returns the scores (G, |B|) of the groups at the nodes of the best tree, for :class:`Neighbourhoods`; without
        it, there are none.
    threads
        Number of threads.
    writer
        Writes a certificate. All trees are looked for from the beginning then, in one tree of branchings, and nodes
        that are pruned by a bound without a dual point of their own are plunged into.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        gap: float,
        complete: Callable[[PlungeResult], float],
        propose: Callable[[PlungeResult], float],
        scores: Callable[[], FloatArray] | None = None,
        threads: int = 1,
        writer: CertificateWriter | None = None,
    ) -> None:
        self.gap, self.threads, self._backend, self._writer = gap, threads, backend, writer
        self._complete, self._propose = complete, propose
        self._stop = np.zeros(1, np.int64)
        self._heap: list[_Open] = []
        self._to_close: list[_Open] = []
        self._running: dict[Future[PlungeResult], _Open] = {}
        self._neighbourhoods = None if scores is None else Neighbourhoods(scores, backend.at)
        self._nearby: Future[PlungeResult] | None = None
        self._numbers = 0
        self._kept_bytes = 0
        self.best, self.nodes, self._plunges = np.inf, 0, 0
        self._cut_bound, self._limit = np.inf, _ObjectiveLimit()

    @property
    def bound(self) -> float:
        """Proven lower bound on the value of every tree."""
        left = [node.bound for node in (*self._heap[:1], *self._running.values())]
        return float(min([self._cut_bound, self.best, *left]))

    @property
    def cutoff(self) -> float:
        """Objective value from which nodes are pruned at present."""
        return min(self._within_gap(), self._limit.value)

    def _within_gap(self) -> float:
        # Without a tree nothing is cut off; infinity less a share of it would be no number.
        return self.best - self.gap * abs(self.best) if np.isfinite(self.best) else self.best

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

        Raises
        ------
        DataValueError
            If a limit is no number, or the nodes' values overflow.
        """
        require_limits("routing", best=best, gap=self.gap, deadline=deadline)
        self.best = best
        self._begin_at_root(0.0)
        interrupted, over = False, monotonic() >= deadline
        # One more waits, so that no thread is idle while trees are made here; one thread alone has a fixed order.
        at_once = self.threads + (self.threads > 1)
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while True:
                    while not over and len(self._busy) < at_once and self._start_plunge(pool):
                        pass
                    left = bool(self._heap or self._to_close)
                    if not self._running and (self._nearby is None or not left):
                        if left or over or self._limit.value >= self._within_gap():
                            break  # the time is over, or nothing better than the best tree is left
                        self._limit.restart(self.nodes)
                        self._begin_at_root(self._cut_bound)
                        continue
                    for future in wait(self._busy, timeout=0.1, return_when=FIRST_COMPLETED).done:
                        self._end_plunge(future)
                    if on_progress is not None and on_progress(self.best, self.bound, self.nodes):
                        interrupted = True
                    over = interrupted or monotonic() >= deadline
                    if over:
                        self._stop[0] = 1
            finally:
                self._stop[0] = 1
        bound = self.bound if self._writer is None else self._close_open(self._writer)
        ended = not self._heap and not self._to_close
        return Outcome(bound, self.nodes, ended and bound >= self._within_gap(), interrupted, ended)

    @property
    def _busy(self) -> list[Future[PlungeResult]]:
        return [*self._running, *([] if self._nearby is None else [self._nearby])]

    def _start_plunge(self, pool: ThreadPoolExecutor) -> bool:
        """Start a plunge, around the best tree where it is time to; return whether there was one to start."""
        if self._neighbourhood_due():
            assert self._neighbourhoods is not None
            node, max_steps = self._neighbourhoods.start(self.best, self._within_gap())
            self._nearby = pool.submit(self._backend.plunge, node, self._within_gap(), max_steps, self._stop)
            return True
        while self._heap or self._to_close:
            entry = self._to_close.pop() if self._to_close else self._next()
            if entry.bound >= self.cutoff:
                self._cut_bound = min(self._cut_bound, entry.bound)
                if self._writer is None:
                    self._kept_bytes -= entry.node.bytes
                    continue
            self._plunges += 1
            all_trees = self._neighbourhoods is None and self._plunges % ALL_TREES == 0
            cutoff = self._within_gap() if all_trees else self.cutoff
            future = pool.submit(self._backend.plunge, entry.node, cutoff, STEPS, self._stop)
            self._running[future] = entry
            return True
        return False

    def _neighbourhood_due(self) -> bool:
        """Return whether to plunge around the best tree; also where other plunges have left nothing to start."""
        if self._neighbourhoods is None or self._nearby is not None:
            return False
        if not (self._heap or self._to_close):
            return bool(self._running)
        known = np.isfinite(self.best)
        gap = (self.best - self.bound) / max(self.best, np.finfo(float).tiny) if known else 1.0
        return self.nodes > 0 and self._neighbourhoods.due(self.nodes, gap)  # the root first: it has a bound

    def _end_plunge(self, future: Future[PlungeResult]) -> None:
        """Account for a plunge, and look for a tree at its end."""
        result, around = _finite(future.result()), self._neighbourhoods
        if around is not None and future is self._nearby:
            self._nearby = None
            self.nodes += result.steps
            if result.end == COMPLETE:
                self.best = min(self.best, self._complete(result))
            around.take(result.steps, result.open, self._within_gap())
            return
        before = self.best
        self._take(self._running.pop(future), result)
        poor = self.best > POOR * self.bound > 0.0
        if poor and self._limit.value == np.inf and self._writer is None:
            self._limit.begin(self.bound)
        if self._plunges % TREES == 0 or self._plunges & (self._plunges - 1) == 0:
            self.best = min(self.best, self._propose(result))
        if around is not None and self.best < before:
            around.begin_anew()

    def _begin_at_root(self, bound: float) -> None:
        """Begin at the root; no tree is below the bound."""
        self._push(bound, self._backend.first())
        self._cut_bound = np.inf

    def _push(self, bound: float, node: OpenNode, name: int = 0) -> None:
        self._numbers += 1
        kept = node if self._kept_bytes < WARM_START_BYTES else node.lighter()
        entry = _Open(bound, self._numbers, kept, name)
        self._kept_bytes += kept.bytes
        if self._writer is not None and bound >= self.cutoff:
            self._cut_bound = min(self._cut_bound, bound)
            self._to_close.append(entry)
        else:
            heapq.heappush(self._heap, entry)

    def _next(self) -> _Open:
        """Take the open node with the least bound; past the budget of memory, the last one, a leaf of the heap."""
        return self._heap.pop() if self._kept_bytes > OPEN_BYTES else heapq.heappop(self._heap)

    def _close_open(self, writer: CertificateWriter) -> float:
        """Write the open nodes as leaves, each with a dual point for the bound; return what all leaves prove."""
        bound = self.bound
        for entry in (*self._to_close, *self._heap):
            if not writer.leaf(entry.name, entry.node, at_least=bound):
                result = self._backend.plunge(entry.node, bound, 1, self._stop)
                for name, (_, node) in zip(self._recorded(entry, result), result.open, strict=True):
                    writer.leaf(name, node)
        return min(bound, writer.least)

    def _recorded(self, start: _Open, result: PlungeResult) -> list[int]:
        """Write what a plunge has done; return the names of the nodes that it left open."""
        if self._writer is None:
            return [0] * len(result.open)
        return self._writer.record(start.name, start.node.reached, result.log, stopped=result.end == STOPPED)

    def _take(self, start: _Open, result: PlungeResult) -> None:
        """Account for a plunge."""
        self._kept_bytes -= start.node.bytes
        self.nodes += result.steps
        self._cut_bound = min(self._cut_bound, max(result.cut_bound, start.bound))
        if result.end == COMPLETE:
            self.best = min(self.best, self._complete(result))
            self._cut_bound = min(self._cut_bound, max(result.bound, start.bound))
        for (bound, node), name in zip(result.open, self._recorded(start, result), strict=True):
            self._push(max(bound, start.bound), node, name)
