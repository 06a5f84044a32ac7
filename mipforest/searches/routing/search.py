"""The routing search: best-first branch and bound with plunges, on several threads, with valid bounds at any time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import ClusterError, DataValueError
from mipforest.searches.numbers import require_limits
from mipforest.searches.pool import Pool, Threads
from mipforest.searches.routing.certificate_writer import CertificateWriter
from mipforest.searches.routing.plunge import (
    COMPLETE,
    STEPS,
    STOPPED,
    Backend,
    ConvexNodes,
    PlungeResult,
)
from mipforest.searches.workers import Shared, Slices
from mipforest.time_budget import TimeBudget

#: Nodes after which another search improves the best tree: before, it would take longer than many a proof.
IMPROVED_AFTER = 500

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

#: The largest share where a local search has looked for trees before: few better ones are left to find.
_MAX_PART_AFTER = 0.1


#: Open nodes, each with its bound.
Bounded = list[tuple[float, Any]]


@dataclass(order=True)
class _OpenNode:
    bound: float
    number: int
    #: An :class:`~mipforest.searches.routing.plunge.OpenNode` of the backend's own kind.
    node: Any = field(compare=False)
    #: Its node in a certificate.
    name: int = field(default=0, compare=False)


@dataclass(frozen=True)
class RoutingResult:
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
    lost
        Why a cluster could not go on, empty where none was asked or it could.
    """

    bound: float
    nodes: int
    proven: bool
    interrupted: bool
    ended: bool
    lost: str = ""


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

    Attributes
    ----------
    most
        Their largest share of all steps.
    """

    def __init__(self, scores: Callable[[], FloatArray], at: Callable[[IntArray], Any]) -> None:
        self._scores, self._at, self.most = scores, at, _MAX_PART
        self._heap: list[tuple[float, int, Any]] = []
        self._numbers = count()
        self._random = np.random.default_rng(0)
        self._steps = self._steps_here = 0
        self._around = np.inf
        self.reset()

    def reset(self) -> None:
        """Begin again with the groups that are closest, as another search has found a better tree."""
        self._share, self._noise = _SHARE, 0.0
        self._heap.clear()

    def due(self, nodes: int, gap: float) -> bool:
        """Return whether it is their turn, after these steps of all searches, with this relative gap."""
        return (
            self._steps <= (self.most if self._noise == 0.0 else min(max(gap, _MIN_PART), self.most)) * nodes
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

    def record(self, steps: int, left_open: Sequence[tuple[float, Any]], cutoff: float) -> None:
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


def within_gap(best: float, gap: float) -> float:
    """Return the value from which no node is within a relative gap of the best tree's, infinite where there is none."""
    # Infinity less a share of it would be no number.
    return best - gap * abs(best) if np.isfinite(best) else best


class PlungeSlices(Slices):
    """A worker's part in the search: the backend, and slices that plunge below open nodes."""

    def __init__(self, problem: tuple[type[Backend], ConvexNodes]) -> None:
        kind, nodes = problem
        self._backend = kind(nodes)

    @classmethod
    def compile(cls, problem: tuple[type[Backend], ConvexNodes], budget: TimeBudget) -> float:
        """Load what the backend runs, or compile it; see :class:`~mipforest.searches.workers.Slices`."""
        return problem[0].compile(budget)

    def run(
        self, shared: Shared, numbering: tuple[int, float], nodes: Bounded, cutoff: float, gap: float,
        seconds: float, steps: int | None, threads: int,
    ) -> PlungeResult:  # fmt: skip
        """Plunge below open nodes, the least bound first, until the seconds are over or a routing is complete.

        Parameters
        ----------
        shared
            The best value of all processes, and whether to stop.
        numbering
            Number of the slice, and the highest cutoff so far: see :meth:`Backend.begin_slice`.
        nodes
            The open nodes with their bounds.
        cutoff, gap
            Objective value from which nodes are pruned, and the relative gap, for better values that become known.
        seconds, steps
            Seconds and steps after which no plunge begins; without the latter, plunges have their own limit alone.
        threads
            Plunges at a time.

        Returns
        -------
        result
            The last plunge, with the number and the steps of all, all that they left open, and the least bound at
            which one cut off.
        """
        self._backend.begin_slice(*numbering)
        until, numbers = monotonic() + seconds, count()
        plunges, total, cut = 0, 0, np.inf
        heap: list[tuple[float, int, Any]] = [(bound, next(numbers), node) for bound, node in nodes]
        heapq.heapify(heap)
        last: PlungeResult | None = None
        with ThreadPoolExecutor(threads) as pool:
            while heap:
                limit = min(cutoff, within_gap(shared.best, gap))
                batch: list[tuple[float, Any]] = []
                while heap and len(batch) < threads:
                    bound, _, node = heapq.heappop(heap)
                    if bound >= limit and last is not None:
                        cut = min(cut, bound)
                    else:
                        batch.append((bound, node))
                plunge, of_one = self._backend.plunge, STEPS if steps is None else max(1, steps - total)
                running = [pool.submit(plunge, node, limit, of_one, shared.stop) for _, node in batch]
                complete = False
                for (least, node), future in zip(batch, running, strict=True):
                    result = future.result()
                    plunges, total = plunges + 1, total + result.steps
                    if complete:  # one complete routing is handed back: others are found again
                        heapq.heappush(heap, (least, next(numbers), node))
                        continue
                    last, complete = result, result.end == COMPLETE
                    cut = min(cut, max(result.cut_bound, least))
                    for bound, below in result.open:
                        heapq.heappush(heap, (max(bound, least), next(numbers), below))
                if (
                    complete
                    or shared.stop[0]
                    or monotonic() >= until
                    or (steps is not None and total >= steps)
                ):
                    break
        assert last is not None
        left = [(bound, node) for bound, _, node in heap]
        return replace(last, open=left, steps=total, cut_bound=cut, plunges=plunges)


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
    known
        Returns the value of the best tree, where ``complete`` and ``propose`` may find further ones.
    improve
        Looks for a better tree; returns the value of the best one. Called once, after :data:`IMPROVED_AFTER` nodes.
    threads
        Plunges at a time: on threads of this process, or in each slice of a worker.
    workers
        Of a cluster, whose part is :class:`PlungeSlices`, in place of this process.
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
        known: Callable[[], float] = lambda: np.inf,
        improve: Callable[[], float] | None = None,
        threads: int = 1,
        workers: Pool | None = None,
        writer: CertificateWriter | None = None,
    ) -> None:
        self.gap, self._backend, self._writer = gap, backend, writer
        self._complete, self._propose, self._improve, self._known = complete, propose, improve, known
        self._stop = np.zeros(1, np.int64)
        # One task more waits, so that no thread is idle while trees are made here; one thread alone has a fixed order.
        here = Threads(self._plunge, threads, self._stop, waiting=int(threads > 1))
        self._pool, self._of_slice, self._handed_out, self._highest = workers or here, threads, 0, -np.inf
        self._limits = backend.nodes.limits
        self._heap: list[_OpenNode] = []
        #: Nodes that come before those of the heap: the last one first.
        self._stack: list[_OpenNode] = []
        self._running: dict[Future[PlungeResult], list[_OpenNode]] = {}
        self._neighbourhoods = None if scores is None else Neighbourhoods(scores, backend.at)
        self._nearby: Future[PlungeResult] | None = None
        self._numbers = 0
        self._kept_bytes = 0
        self.best, self.nodes, self._plunges = np.inf, 0, 0
        self._cut_bound, self._limit = np.inf, _ObjectiveLimit()
        self.deadline, self._floor = np.inf, -np.inf

    @property
    def bound(self) -> float:
        """Proven lower bound on the value of every tree."""
        waiting = (self._heap[:1], self._stack, *self._running.values())
        left = [entry.bound for entries in waiting for entry in entries]
        return min(self.best, max(self._floor, float(min([self._cut_bound, *left], default=np.inf))))

    @property
    def cutoff(self) -> float:
        """Objective value from which nodes are pruned at present."""
        return min(self._within_gap(), self._limit.value)

    def _within_gap(self) -> float:
        return within_gap(self.best, self.gap)

    def run(
        self,
        best: float,
        *,
        deadline: float,
        floor: float = -np.inf,
        on_progress: Callable[[float, float, int], bool | None] | None = None,
    ) -> RoutingResult:
        """Search until the best tree is proven, the deadline has come, or the caller stops it.

        Parameters
        ----------
        best
            Value of the best tree known.
        deadline
            On the clock of :func:`time.monotonic`.
        floor
            A lower bound on the value of every tree.
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
        self.deadline, self._floor = deadline, floor
        interrupted, over, lost = False, monotonic() >= deadline, ""
        pool = self._pool
        with pool if isinstance(pool, Threads) else nullcontext():  # who made workers ends them
            try:
                while True:
                    while not over and len(self._busy) < pool.at_once and self._start_plunge():
                        pass
                    left = bool(self._heap or self._stack)
                    if not self._running and (self._nearby is None or not left):
                        if left or over or self._limit.value >= self._within_gap():
                            break  # the time is over, or nothing better than the best tree is left
                        self._limit.restart(self.nodes)
                        self._begin_at_root(self._cut_bound)
                        continue
                    if over and pool.is_given_up:
                        break
                    for future in wait(self._busy, timeout=0.1, return_when=FIRST_COMPLETED).done:
                        self._end_plunge(future)
                    pool.publish(self.best)
                    if on_progress is not None and on_progress(self.best, self.bound, self.nodes):
                        interrupted = True
                    over = interrupted or monotonic() >= self.deadline
                    if over:
                        pool.stop()
            except ClusterError as error:
                lost = str(error)
        bound = self.bound if self._writer is None else self._close_open(self._writer)
        ended = not self._heap and not self._stack and not self._running
        return RoutingResult(
            bound, self.nodes, ended and bound >= self._within_gap(), interrupted, ended, lost
        )

    @property
    def _busy(self) -> list[Future[PlungeResult]]:
        return [*self._running, *([] if self._nearby is None else [self._nearby])]

    def _start_plunge(self) -> bool:
        """Start a task, around the best tree where it is time to; return whether there was one to start."""
        number, seconds = self._pool.share(len(self._heap))
        if self._neighbourhood_due():
            assert self._neighbourhoods is not None
            node, steps = self._neighbourhoods.start(self.best, self._within_gap())
            self._nearby = self._submit([(-np.inf, node)], self._within_gap(), seconds, steps)
            return True
        entries: list[_OpenNode] = []
        while (self._heap or self._stack) and len(entries) < number:
            entry = self._stack.pop() if self._stack else self._next()
            if entry.bound >= self.cutoff:
                self._cut_bound = min(self._cut_bound, entry.bound)
                if self._writer is None:
                    self._kept_bytes -= entry.node.bytes
                    continue
            entries.append(entry)
        if not entries:
            return False
        self._plunges += 1
        all_trees = self._neighbourhoods is None and self._plunges % ALL_TREES == 0
        cutoff = self._within_gap() if all_trees else self.cutoff
        nodes = [(entry.bound, entry.node) for entry in entries]
        self._running[self._submit(nodes, cutoff, seconds)] = entries
        return True

    def _submit(
        self, nodes: Bounded, cutoff: float, seconds: float, steps: int | None = None
    ) -> Future[PlungeResult]:
        """Hand out plunges below open nodes, which end after some seconds, or some steps if these are given."""
        self._handed_out, self._highest = self._handed_out + 1, max(self._highest, cutoff)
        numbering = self._handed_out, self._highest
        return self._pool.submit(
            numbering, nodes, cutoff, self.gap, seconds, steps, self._of_slice, best=self.best
        )

    def _plunge(
        self, numbering: tuple[int, float], nodes: Bounded, cutoff: float, gap: float,
        seconds: float, steps: int | None, threads: int,
    ) -> PlungeResult:  # fmt: skip
        """Plunge from an open node in this process; see :meth:`PlungeSlices.run`."""
        del numbering, gap, seconds, threads
        return self._backend.plunge(nodes[0][1], cutoff, steps or STEPS, self._stop)

    def _neighbourhood_due(self) -> bool:
        """Return whether to plunge around the best tree; also where other plunges have left nothing to start."""
        if self._neighbourhoods is None or self._nearby is not None:
            return False
        if not (self._heap or self._stack):
            return bool(self._running)
        known = np.isfinite(self.best)
        gap = (self.best - self.bound) / max(self.best, np.finfo(float).tiny) if known else 1.0
        return self.nodes > 0 and self._neighbourhoods.due(self.nodes, gap)  # the root first: it has a bound

    def _end_plunge(self, future: Future[PlungeResult]) -> None:
        """Account for a task, and look for a tree at its end."""
        found, around = self._pool.result(future), self._neighbourhoods
        if found is None:  # its workers died
            for entry in self._running.pop(future, []):
                heapq.heappush(self._heap, entry)
            self._nearby = None if future is self._nearby else self._nearby
            return
        result = _finite(found)
        if around is not None and future is self._nearby:
            self._nearby = None
            self.nodes += result.steps
            if result.end == COMPLETE:
                self._update_best(self._complete(result))
            around.record(result.steps, result.open, self._within_gap())
            return
        before, begun = self.best, self._plunges
        self._plunges += result.plunges - 1
        self._record(self._running.pop(future), result)
        if self._improve is not None and self.nodes >= IMPROVED_AFTER and self.bound < self._within_gap():
            improve, self._improve = self._improve, None
            self.best = min(self.best, improve())
            if around is not None:
                around.most = _MAX_PART_AFTER
        poor = self.best > POOR * self.bound > 0.0
        if poor and self._limit.value == np.inf and self._writer is None:
            self._limit.begin(self.bound)
        if self._tree_due(begun):
            self._update_best(self._propose(result))
        if around is not None and self.best < before:
            around.reset()

    def _update_best(self, value: float) -> None:
        """Lower the best value to that of a tree, or of a further one that was found with it."""
        self.best = min(self.best, value, self._known())

    def _tree_due(self, before: int) -> bool:
        """Return whether to make a tree from hyperplanes, after a task that began with so many plunges in all.

        It is due where their number is a power of 2 or divisible, or passed such a number within the task.
        """
        now = self._plunges
        last = before if now > before else before - 1
        return now // TREES > last // TREES or now.bit_length() > last.bit_length()

    def _begin_at_root(self, bound: float) -> None:
        """Begin at the root; no tree is below the bound."""
        self._push(bound, self._backend.first())
        self._cut_bound = np.inf

    def _decide_at_leaves(self, result: PlungeResult, bound: float) -> bool:
        """Send a group of a complete routing, whose best tree breaks a limit, to either side at the last level.

        Returns
        -------
        bool
            Whether there was one, or limits leave no tree of the routing: else nothing but accuracy is missing to it.
        """
        if self._limits is None:
            return False
        node: Any = result.node
        reached = self._limits.propagated(node.reached)
        if reached is None:
            return True  # no tree has this routing
        if (reached != node.reached).any():
            self._push(max(bound, result.bound), self._backend.decided(node, reached))
            return True
        scores = self._backend.nodes.X @ result.weights.T + result.bias
        g, first = self._limits.branching_group(reached, scores, self._backend.nodes.epsilon)
        if g < 0:
            return False
        for side in (1 - first, first):
            further = reached.copy()
            further[g] = 2 * reached[g] + 1 + side
            self._push(max(bound, result.bound), self._backend.decided(node, further), before=side == first)
        return True

    def _push(self, bound: float, node: Any, name: int = 0, *, before: bool = False) -> None:
        if self._limits is not None:
            reached = self._limits.propagated(node.reached)
            if reached is None:
                return
            if (reached != node.reached).any():
                node = self._backend.decided(node, reached)
        self._numbers += 1
        kept = node if self._kept_bytes < WARM_START_BYTES else node.lighter()
        entry = _OpenNode(bound, self._numbers, kept, name)
        self._kept_bytes += kept.bytes
        closes = self._writer is not None and bound >= self.cutoff
        if closes:
            self._cut_bound = min(self._cut_bound, bound)
        if closes or before:
            self._stack.append(entry)
        else:
            heapq.heappush(self._heap, entry)

    def _next(self) -> _OpenNode:
        """Take the open node with the least bound; past the budget of memory, the last one, a leaf of the heap."""
        return self._heap.pop() if self._kept_bytes > OPEN_BYTES else heapq.heappop(self._heap)

    def _close_open(self, writer: CertificateWriter) -> float:
        """Write the open nodes as leaves, each with a dual point for the bound; return what all leaves prove."""
        bound = self.bound
        for entry in (*self._stack, *self._heap):
            if not writer.leaf(entry.name, entry.node, at_least=bound):
                result = self._backend.plunge(entry.node, bound, 1, self._stop)
                for name, (_, node) in zip(self._write_certificate(entry, result), result.open, strict=True):
                    writer.leaf(name, node)
        return min(bound, writer.least)

    def _write_certificate(self, start: _OpenNode, result: PlungeResult) -> list[int]:
        """Write what a plunge has done; return the names of the nodes that it left open."""
        if self._writer is None:
            return [0] * len(result.open)
        return self._writer.record(start.name, start.node.reached, result.log, stopped=result.end == STOPPED)

    def _record(self, entries: list[_OpenNode], result: PlungeResult) -> None:
        """Account for a task from open nodes, the least bound first."""
        start = entries[0]
        self._kept_bytes -= sum(entry.node.bytes for entry in entries)
        self.nodes += result.steps
        self._cut_bound = min(self._cut_bound, max(result.cut_bound, start.bound))
        if result.end == COMPLETE:
            value = self._complete(result)
            self._update_best(value)
            if not np.isinf(value) or not self._decide_at_leaves(result, start.bound):
                self._cut_bound = min(self._cut_bound, max(result.bound, start.bound))
        for (bound, node), name in zip(result.open, self._write_certificate(start, result), strict=True):
            self._push(max(bound, start.bound), node, name)
