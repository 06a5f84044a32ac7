"""The routing search: best-first with dives over partial routings, on several threads, with true bounds at any time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import DataValueError
from mipforest.searches.numbers import require_limits
from mipforest.searches.routing.certificate_file import CertificateFile
from mipforest.searches.routing.dive import COMPLETE, STOPPED
from mipforest.searches.routing.neighbourhoods import Neighbourhoods

#: Steps of one dive: it then hands back what is open, so that limits and other threads get their turn.
STEPS = 400

#: Bytes of warm starts that open nodes may keep; beyond them, new ones start from nothing.
WARM_START_BYTES = 2_000_000_000

#: Bytes that open nodes may take, with their warm starts; beyond them, the search takes the newest of those with high
#: bounds instead of the one with the least: they close soon, and few new ones stay open.
OPEN_BYTES = 3_000_000_000

#: A best tree of more than this multiple of the bound cuts off little: see :class:`_Stages`.
POOR = 2.0

#: A stage is to take this many times the steps of the one before it.
STAGE_GROWTH = 3.0

#: By how much the first stages look above the bound, and the limits for later ones; least power of growth.
FIRST_RAISE, LEAST_RAISE, MOST_RAISE, LEAST_POWER = 1.1, 1.02, 2.0, 1.0

#: Where nothing else finds trees, one of this many dives looks for all that are better than the best.
ALL_TREES = 4

#: Dives to one tree from hyperplanes of a partial routing; at the beginning there are more.
TREES = 50


class Position(Protocol):
    """A partial routing, with what helps to go on from it."""

    @property
    def bytes(self) -> int:
        """Memory that it takes with what helps."""

    def lighter(self) -> Position:
        """Return the same without what helps."""


@dataclass(order=True)
class _Open:
    bound: float
    number: int
    #: A :class:`Position` of the dives' own kind.
    position: Any = field(compare=False)
    #: Its node in a certificate.
    name: int = field(default=0, compare=False)


@dataclass(frozen=True, eq=False)
class Dived:
    """What a dive has found.

    Attributes
    ----------
    end
        Why it ended: one of the constants of :mod:`mipforest.searches.routing.dive`.
    position
        Where it stood at its end: a complete routing has a value.
    open
        What it left open, each with a bound.
    bound, cut_bound
        Bound of the position, and the least one at which something was cut off on the way (``inf`` if nothing was).
    weights, bias
        (|B|, p) and (|B|,) hyperplanes of the position, in the coordinates of the problem.
    steps
        Number of steps.
    counts
        (4,) :attr:`~mipforest.searches.routing.dive.Room.counts`.
    log, values
        What it has logged for a certificate, and (|B|,) the proven values of the nodes at its end.
    """

    end: int
    position: Position
    open: Sequence[tuple[float, Any]]
    bound: float
    cut_bound: float
    weights: FloatArray
    bias: FloatArray
    steps: int
    counts: IntArray = field(default_factory=lambda: np.zeros(4, np.int64))
    log: Any = ()
    values: FloatArray = field(default_factory=lambda: np.zeros(0))


class Dives(Protocol):
    """What dives for a search, from several threads at once.

    Attributes
    ----------
    needs_trees
        Whether trees are to be made from hyperplanes and looked for around the best one, as dives make none of theirs.
    """

    needs_trees: bool

    def first(self) -> Position:
        """Return the position from which all trees can be reached."""

    def at(self, reached: IntArray) -> Position:
        """Return the position of a partial routing (G,): the nodes that the groups of samples have reached."""

    def dive(self, start: Any, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position.

        Parameters
        ----------
        start
            A position that these dives made.
        target
            Value from which on a bound cuts off.
        most, stop
            Steps at most, and a flag that ends the dive when it is not 0.
        """


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
    ended
        Whether nothing is left to search; what is missing to a proof then is the accuracy of the nodes' values.
    """

    bound: float
    nodes: int
    proven: bool
    interrupted: bool
    ended: bool


class _Stages:
    """Stages of a search whose best tree is poor: each looks below a value only, which cuts off far more.

    Where there is no such tree, the value is a bound, and the next stage begins at the root again with a larger one.
    Steps grow with a power of the value, which two stages tell: the value is raised by what promises the wanted growth.
    """

    def __init__(self) -> None:
        self.below = np.inf
        self._raise = FIRST_RAISE
        self._began = self._steps_before = 0

    def begin(self, bound: float) -> None:
        """Begin to look for trees a little above a positive bound."""
        self.below = self._raise * bound

    def go_on(self, steps: int) -> None:
        """Look higher, after these steps of the whole search."""
        spent = max(steps - self._began, 1)
        if self._steps_before:
            power = max(np.log(spent / self._steps_before) / np.log(self._raise), LEAST_POWER)
            self._raise = float(np.clip(STAGE_GROWTH ** (1.0 / power), LEAST_RAISE, MOST_RAISE))
        self._began, self._steps_before = steps, spent
        self.below *= self._raise


def _finite(dived: Dived) -> Dived:
    """Return what a dive has found, unless its values overflowed: then it has proven nothing."""
    if any(
        math.isnan(bound) for bound in (dived.bound, dived.cut_bound, *(bound for bound, _ in dived.open))
    ):
        raise DataValueError(
            "routing: the values of the nodes are beyond the numbers of a computer, as features, weights or C are very "
            "large, or very different in size; scale the features (scaling='minmax'), or choose a smaller C"
        )
    return dived


class RoutingSearch:
    """A search over the routings of one problem.

    Parameters
    ----------
    dives
        What dives for it.
    gap
        Relative gap within which the best tree counts as optimal.
    complete
        Called with a dive that ended at a complete routing; returns its exact value, ``inf`` where no hyperplanes
        realise it.
    propose
        Called with a dive; returns the value of a tree made from the hyperplanes of its end.
    scores
        Returns the scores (G, |B|) of the groups at the nodes of the best tree, for
        :class:`~mipforest.searches.routing.neighbourhoods.Neighbourhoods`; without it, there are none.
    threads
        Number of threads.
    recorder
        Writes a certificate. All trees are looked for from the beginning then, in one tree of branchings, and nodes
        that are closed by a bound without a dual point of their own are dived into.
    """

    def __init__(
        self,
        dives: Dives,
        *,
        gap: float,
        complete: Callable[[Dived], float],
        propose: Callable[[Dived], float],
        scores: Callable[[], FloatArray] | None = None,
        threads: int = 1,
        recorder: CertificateFile | None = None,
    ) -> None:
        self.gap, self.threads, self._dives, self._recorder = gap, threads, dives, recorder
        self._complete, self._propose = complete, propose
        self._stop = np.zeros(1, np.int64)
        self._heap: list[_Open] = []
        self._to_close: list[_Open] = []
        self._running: dict[Future[Dived], _Open] = {}
        self._neighbourhoods = None if scores is None else Neighbourhoods(scores, dives.at)
        self._nearby: Future[Dived] | None = None
        self._numbers = 0
        self._kept_bytes = 0
        self.best, self.nodes, self._dived = np.inf, 0, 0
        self._cut_bound, self._stages = np.inf, _Stages()
        self.counts = np.zeros(4, np.int64)

    @property
    def bound(self) -> float:
        """Proven lower bound on the value of every tree."""
        left = [node.bound for node in (*self._heap[:1], *self._running.values())]
        return float(min([self._cut_bound, self.best, *left]))

    @property
    def target(self) -> float:
        """Value from which on trees are not looked for at present."""
        return min(self._within_gap(), self._stages.below)

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
        # One more waits, so that no thread is idle while trees are made here; one thread alone dives in a fixed order.
        at_once = self.threads + (self.threads > 1)
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while True:
                    while not over and len(self._busy) < at_once and self._start_dive(pool):
                        pass
                    left = bool(self._heap or self._to_close)
                    if not self._running and (self._nearby is None or not left):
                        if left or over or self._stages.below >= self._within_gap():
                            break  # the time is over, or nothing better than the best tree is left
                        self._stages.go_on(self.nodes)
                        self._begin_at_root(self._cut_bound)
                        continue
                    for future in wait(self._busy, timeout=0.1, return_when=FIRST_COMPLETED).done:
                        self._end_dive(future)
                    if on_progress is not None and on_progress(self.best, self.bound, self.nodes):
                        interrupted = True
                    over = interrupted or monotonic() >= deadline
                    if over:
                        self._stop[0] = 1
            finally:
                self._stop[0] = 1
        bound = self.bound if self._recorder is None else self._close_open(self._recorder)
        ended = not self._heap and not self._to_close
        return Outcome(bound, self.nodes, ended and bound >= self._within_gap(), interrupted, ended)

    @property
    def _busy(self) -> list[Future[Dived]]:
        return [*self._running, *([] if self._nearby is None else [self._nearby])]

    def _start_dive(self, pool: ThreadPoolExecutor) -> bool:
        """Start a dive, around the best tree where it is time to; return whether there was one to start."""
        if self._neighbourhood_due():
            assert self._neighbourhoods is not None
            position, most = self._neighbourhoods.start(self.best, self._within_gap())
            self._nearby = pool.submit(self._dives.dive, position, self._within_gap(), most, self._stop)
            return True
        while self._heap or self._to_close:
            node = self._to_close.pop() if self._to_close else self._next()
            if node.bound >= self.target:
                self._cut_bound = min(self._cut_bound, node.bound)
                if self._recorder is None:
                    self._kept_bytes -= node.position.bytes
                    continue
            self._dived += 1
            all_trees = self._neighbourhoods is None and self._dived % ALL_TREES == 0
            target = self._within_gap() if all_trees else self.target
            future = pool.submit(self._dives.dive, node.position, target, STEPS, self._stop)
            self._running[future] = node
            return True
        return False

    def _neighbourhood_due(self) -> bool:
        """Return whether to dive around the best tree; also where other dives have left nothing to start."""
        if self._neighbourhoods is None or self._nearby is not None:
            return False
        if not (self._heap or self._to_close):
            return bool(self._running)
        known = np.isfinite(self.best)
        gap = (self.best - self.bound) / max(self.best, np.finfo(float).tiny) if known else 1.0
        return self.nodes > 0 and self._neighbourhoods.due(self.nodes, gap)  # the root first: it has a bound

    def _end_dive(self, future: Future[Dived]) -> None:
        """Account for a dive, and look for a tree at its end."""
        dived, around = _finite(future.result()), self._neighbourhoods
        if around is not None and future is self._nearby:
            self._nearby = None
            self.nodes += dived.steps
            self.counts += dived.counts
            if dived.end == COMPLETE:
                self.best = min(self.best, self._complete(dived))
            around.take(dived.steps, dived.open, self._within_gap())
            return
        before = self.best
        self._take(self._running.pop(future), dived)
        poor = self.best > POOR * self.bound > 0.0
        if poor and self._stages.below == np.inf and self._recorder is None:
            self._stages.begin(self.bound)
        if self._dived % TREES == 0 or self._dived & (self._dived - 1) == 0:
            self.best = min(self.best, self._propose(dived))
        if around is not None and self.best < before:
            around.begin_anew()

    def _begin_at_root(self, bound: float) -> None:
        """Begin at the root; no tree is below the bound."""
        self._push(bound, self._dives.first())
        self._cut_bound = np.inf

    def _push(self, bound: float, position: Position, name: int = 0) -> None:
        self._numbers += 1
        kept = position if self._kept_bytes < WARM_START_BYTES else position.lighter()
        node = _Open(bound, self._numbers, kept, name)
        self._kept_bytes += kept.bytes
        if self._recorder is not None and bound >= self.target:
            self._cut_bound = min(self._cut_bound, bound)
            self._to_close.append(node)
        else:
            heapq.heappush(self._heap, node)

    def _next(self) -> _Open:
        """Take the open node with the least bound; past the budget of memory, the last one, a leaf of the heap."""
        return self._heap.pop() if self._kept_bytes > OPEN_BYTES else heapq.heappop(self._heap)

    def _close_open(self, recorder: CertificateFile) -> float:
        """Write the open nodes as leaves, each with a dual point for the bound; return what all leaves prove."""
        bound = self.bound
        for node in (*self._to_close, *self._heap):
            if not recorder.leaf(node.name, node.position, at_least=bound):
                dived = self._dives.dive(node.position, bound, 1, self._stop)
                for name, (_, position) in zip(self._recorded(node, dived), dived.open, strict=True):
                    recorder.leaf(name, position)
        return min(bound, recorder.least)

    def _recorded(self, start: _Open, dived: Dived) -> list[int]:
        """Write what a dive has done; return the names of the nodes that it left open."""
        if self._recorder is None:
            return [0] * len(dived.open)
        return self._recorder.dived(
            start.name, start.position.reached, dived.log, stopped=dived.end == STOPPED
        )

    def _take(self, start: _Open, dived: Dived) -> None:
        """Account for a dive."""
        self._kept_bytes -= start.position.bytes
        self.counts += dived.counts
        self.nodes += dived.steps
        self._cut_bound = min(self._cut_bound, max(dived.cut_bound, start.bound))
        if dived.end == COMPLETE:
            self.best = min(self.best, self._complete(dived))
            self._cut_bound = min(self._cut_bound, max(dived.bound, start.bound))
        for (bound, position), name in zip(dived.open, self._recorded(start, dived), strict=True):
            self._push(max(bound, start.bound), position, name)
