"""The exact search of two to four levels: open intervals of the root's thresholds, the best bound first.

:mod:`mipforest.searches.exact.covers` has the mathematics; here are the tables, the open intervals and the tree.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.exact.classes import Tables
from mipforest.searches.exact.covers import (
    DONE,
    FULL,
    Cover,
    Workspace,
    evaluate,
    evaluate_all,
    fill,
    leaf_loss,
    nearest_middle,
)
from mipforest.searches.exact.losses import Int32Array
from mipforest.searches.exact.squared import Part, SquaredTables
from mipforest.searches.exact.walks import LANES, MOST_OF_A_CHUNK, PENALTY, TWO_WIDE, WIDE_LANES

#: Most bytes of the tables of ranks, and most values of a feature.
MOST_BYTES, MOST_RANKS = 1_500_000_000, 65_000

#: Seconds between two looks at the clock.
INTERVAL = 0.05

#: Samples times features from which on kernels run while another thread looks at the clock.
LONG = 100_000

#: Share of the time in which a search of more levels looks for the best tree of three, at whose root it begins.
SHARE_OF_THREE = 0.25

#: Open intervals that are evaluated at a time then, whatever the number of threads.
AT_A_TIME = 8


@dataclass(order=True, slots=True)
class OpenInterval:
    """An open interval of thresholds of the root.

    Attributes
    ----------
    bound
        Lower bound on the losses of both sides for every threshold in it.
    width
        Weight of the rows between its thresholds, negative: wide ones come first.
    number
        Of its making: the last key of the order.
    feature, low, high
        The thresholds.
    left, right
        Bounds on the losses of the rows left of its first and right of its last threshold.
    covers
        What proves these.
    """

    bound: float
    width: int
    number: int
    feature: int = field(compare=False)
    low: int = field(compare=False)
    high: int = field(compare=False)
    left: float = field(compare=False)
    right: float = field(compare=False)
    covers: tuple[Cover, Cover] = field(compare=False)


@dataclass(frozen=True)
class Evaluated:
    """What the evaluation of a threshold has found.

    Attributes
    ----------
    ended
        Whether it was not stopped.
    t
        The threshold.
    bounds, covers
        Lower bounds on the losses of both sides, and what proves them.
    pairs
        Pairs of sides that were evaluated.
    value, splits
        Sum of the losses of both sides with a better tree than was known, and its splits in heap order; infinite and
        anything where there is none.
    """

    ended: bool
    t: int
    bounds: tuple[float, float]
    covers: tuple[Cover, Cover]
    pairs: int
    value: float
    splits: list[tuple[int, int]]


class CoverSearch:
    """A search on the rows of a problem with classes or with the squared loss.

    Parameters
    ----------
    rank, order
        (p, n) ranks of the rows among the values of each feature, and rows in the order of each.
    rows
        (n, 2) classes from 0 and weights, whole numbers; or (n, 3) for the squared loss, the sums of weights w, of w y
        and of w y^2 of centred targets y.
    cost
        Cost of a split.
    tolerance
        Losses closer than this are the same; 0 where all are whole numbers.
    incumbent
        Loss of a tree that is known.
    n_values, n_classes
        (p,) number of values of each feature, and number of classes; ``None`` and 0 for those of the rows.
    """

    def __init__(
        self, rank: Int32Array, order: Int32Array, rows: NDArray[Any], *, cost: float, tolerance: float,
        incumbent: float, n_values: IntArray | None = None, n_classes: int = 0,
    ) -> None:  # fmt: skip
        self.rank, self.rows, self.cost, self.tolerance = rank, rows, cost, tolerance
        self.values = rank.max(axis=1).astype(np.int64) + 1 if n_values is None else n_values
        self._order, self.squared = order, rows.shape[1] == 3
        (p, n), U = rank.shape, int(self.values.max())
        lanes, slots = (WIDE_LANES, TWO_WIDE) if self.squared else (LANES, LANES)
        N = -(-n // slots) * slots
        ranks, penalty = np.zeros((p, p, N), np.uint16), np.full((p, N), PENALTY, np.int16)
        weight_below = np.zeros((p, U + 1), np.int64)
        self.tables: Tables | SquaredTables
        if self.squared:
            self._sums: FloatArray = rows
            self._least = 0.5 * float(rows[:, 0].min())
            self.tables = SquaredTables(
                rank=ranks,
                walk=np.zeros((2 * p + 1, N)),
                penalty=penalty,
                below=np.zeros((p, U + 1, 3)),
                weight_below=weight_below,
                least=np.array([self._least]),
            )
        else:
            K = n_classes or max(2, int(rows[:, 0].max()) + 1)
            self._sums = rows[:, 1:] * np.eye(K)[rows[:, 0]]
            self.tables = Tables(
                rank=ranks,
                walk=np.full((p, N), 0 if K == 2 else -1, np.int16),
                weight=np.zeros((p, N), np.int16),
                penalty=penalty,
                below=np.zeros((p, U + 1, K), np.int64),
                weight_below=weight_below,
            )
        fill(order, rank, rows, lanes, self.tables)
        leaf = float(self._loss(self._sums.sum(axis=0)))
        self.incumbent = min(incumbent, leaf)
        #: Feature and threshold of each node of the best tree in heap order, -1 for a leaf; ``None``: the known one.
        self.splits: list[tuple[int, int]] | None = [(-1, -1)] if leaf <= incumbent else None
        self.open: list[OpenInterval] = []
        #: Least bound of what is evaluated at present.
        self._taken = np.inf
        self.pairs, self._stamp = 0, p
        self.stop = np.zeros(1, np.int64)

    def _loss(self, sums: FloatArray) -> FloatArray:
        """Return the loss of leaves from their sums, by class or of the squared loss."""
        if not self.squared:
            return np.asarray(sums.sum(axis=-1) - sums.max(axis=-1, initial=0))
        weight = np.maximum(sums[..., 0], self._least)
        return np.maximum(0.0, sums[..., 2] - sums[..., 1] ** 2 / weight)

    @staticmethod
    def fits(rows: int, p: int, values: int) -> bool:
        """Return whether the tables of so many rows and features fit into memory, and ranks into 16 bits."""
        return values <= MOST_RANKS and 2 * p * p * rows <= MOST_BYTES

    @staticmethod
    def takes(X: FloatArray, group: IntArray, y: IntArray, weight: FloatArray, values: int) -> bool:
        """Return whether tables fit into memory, and weights into the lanes of vectors, wherever the chunks begin.

        Parameters
        ----------
        X, group
            (g, p) samples without repetition, and (n,) which of them each sample is.
        y, weight
            (n,) classes and weights.
        values
            Most values of a feature.
        """
        row = group * (int(y.max()) + 1) + y
        rows, p = int(np.count_nonzero(np.bincount(row))), X.shape[1]
        if not CoverSearch.fits(rows, p, values) or not (weight == np.rint(weight)).all():
            return False
        heaviest = np.bincount(row, weight)
        steps = -(-rows // LANES)
        return bool(np.partition(heaviest, -steps)[-steps:].sum() <= MOST_OF_A_CHUNK)

    @property
    def bound(self) -> float:
        """Proven lower bound on the loss of every tree."""
        least = min(self._taken, self.open[0].bound if self.open else np.inf)
        return max(0.0, min(self.incumbent, least + self.cost))

    def first_cover(self) -> Cover:
        """Return the cover of all thresholds that says nothing."""
        features = np.flatnonzero(self.values > 1)
        at = np.zeros((len(features), 4), np.int32)
        at[:, 0], at[:, 1], at[:, 2] = features, 1, self.values[features] - 1
        return Cover(at, np.zeros((len(features), 2)))

    def workspace(self, covers: tuple[Cover, Cover], room: int, sides: Any) -> Workspace:
        """Return a workspace with covers and room for more intervals."""

        def roomy(cover: Cover) -> Cover:
            at, key = np.zeros((len(cover.at) + room, 4), np.int32), np.zeros((len(cover.at) + room, 2))
            at[: len(cover.at)], key[: len(cover.at)] = cover.at, cover.key
            return Cover(at, key)

        return Workspace(
            left=roomy(covers[0]),
            right=roomy(covers[1]),
            size=np.array([len(cover.at) for cover in covers], np.int64),
            side=sides,
            found=np.array([0.0, 0.0, np.inf, np.inf, self.incumbent - self.cost]),
            split=np.full((2, 2), -1, np.int64),
            best=np.full(6, -1, np.int64),
            totals=np.zeros(self.tables.below.shape[2], self.tables.below.dtype),
            out=np.zeros(8, self.tables.below.dtype),
            counts=np.zeros(1, np.int64),
        )

    def _all_rows(self) -> Any:
        """Return all rows as those of a side."""
        tables = self.tables
        if isinstance(tables, Tables):
            return tables.walk[None]
        return (Part(tables.rank, tables.walk, tables.penalty, np.zeros(0, np.int64)),)

    def _sides(self, f: int, t: int) -> Any:
        """Return memory for the rows of both sides of a threshold."""
        if not self.squared:
            return np.empty((2, *self.tables.walk.shape), np.int16)
        p, n, parts = len(self.rank), len(self.rows), []
        below = int(self.tables.weight_below[f, t])
        for m in (below, n - below):
            N = -(-m // TWO_WIDE) * TWO_WIDE
            parts.append(
                Part(
                    np.empty((p, p, N), np.uint16),
                    np.empty((2 * p + 1, N)),
                    np.empty((p, N), np.int16),
                    np.empty(N, np.int64),
                )
            )
        return tuple(parts)

    def larger(self, work: Workspace) -> Workspace:
        """Return the same workspace with twice the room for intervals."""
        covers = _cover(work, 0), _cover(work, 1)
        new = self.workspace(covers, 64 + 2 * max(len(cover.at) for cover in covers), None)
        return work._replace(left=new.left, right=new.right)

    # ------------------------------------------------------------------ two levels

    def run_two(self) -> int:
        """Search all trees of two levels; return how it ended."""
        self._taken = -np.inf
        work = self.workspace((self.first_cover(), self.first_cover()), 1000, self._all_rows())
        work.found[2] = self.incumbent
        while True:
            end: int = evaluate_all(self.tables, work, self.cost, self.incumbent - self.tolerance, self.stop)
            self.pairs = int(work.counts[0])
            if work.found[2] < self.incumbent - self.tolerance:
                self.incumbent = float(work.found[2])
                self.splits = [(int(work.split[0, 0]), int(work.split[0, 1]))]
            if end != FULL:
                break
            work = self.larger(work)
        least = float(work.found[0]) - self.cost
        cover = _cover(work, 0)
        self.open = [
            OpenInterval(left + right, 0, q, f, low, high, left, right, (cover, cover))
            for q, ((f, low, high, _), (left, right)) in enumerate(
                zip(cover.at.tolist(), cover.key.tolist(), strict=True)
            )
        ]
        if end == DONE:
            self.open = [interval for interval in self.open if interval.bound < least]
        heapq.heapify(self.open)
        self._taken = np.inf
        return end

    # ------------------------------------------------------------------ three levels

    def begin(self, depth: int) -> None:
        """Open all thresholds of the root."""
        whole = int(self.tables.weight_below[0, -1])
        cover = self.first_cover() if depth == 3 else Cover(np.zeros((0, 4), np.int32), np.zeros((0, 2)))
        self.open = [
            OpenInterval(0.0, -whole, f, f, 1, int(self.values[f]) - 1, 0.0, 0.0, (cover, cover))
            for f in np.flatnonzero(self.values > 1).tolist()
        ]
        heapq.heapify(self.open)

    def take(self, gap: float) -> OpenInterval | None:
        """Take the open interval with the least bound, if a better tree may be in it."""
        if not self.open:
            return None
        known = self.incumbent - self.cost
        if self.open[0].bound >= known - self.tolerance:
            self.open.clear()
            return None
        if self.open[0].bound >= known - gap * abs(self.incumbent):
            return None
        return heapq.heappop(self.open)

    def evaluate(self, interval: OpenInterval, stamp: int, depth: int, t: int = 0) -> Evaluated:
        """Evaluate a threshold of an interval, the one in the middle where none is given."""
        t = t or int(nearest_middle(self.tables.weight_below[interval.feature], interval.low, interval.high))
        if depth > 3:
            return self._evaluate_deep(interval, t, depth)
        work, again = self.workspace(interval.covers, 64, self._sides(interval.feature, t)), False
        while True:
            end: int = evaluate(
                self.tables, work, interval.feature, t, interval.left, interval.right, stamp, self.cost,
                self.tolerance, again, self.stop,
            )  # fmt: skip
            if end != FULL:
                break
            work, again = self.larger(work), True
        return Evaluated(
            end == DONE,
            t,
            (float(work.found[0]), float(work.found[1])),
            (_cover(work, 0), _cover(work, 1)),
            int(work.counts[0]),
            float(work.found[4]) if work.best[0] >= 0 else np.inf,
            [(int(f), int(k)) for f, k in work.best.reshape(3, 2)],
        )

    def _evaluate_deep(self, interval: OpenInterval, t: int, depth: int) -> Evaluated:
        """Evaluate a threshold by searches of their own on both sides, with one level less."""
        f, known = interval.feature, self.incumbent - self.cost - self.tolerance
        on_right = self.rank[f] >= t
        bounds, values, pairs = [interval.left, interval.right], [np.inf, np.inf], 0
        trees: list[list[tuple[int, int]]] = [[], []]
        for side, rows in enumerate((~on_right, on_right)):
            keep = known - (interval.right if side == 0 else interval.left)
            part = self.part(rows, keep)
            ended = part.solve(depth - 1)
            pairs += part.pairs
            bounds[side] = max(bounds[side], part.bound)
            if part.splits is not None:
                values[side], trees[side] = part.incumbent, part.tree(depth - 1)
            if not ended:
                break
        splits = _under(f, t, trees[0], trees[1], depth) if np.isfinite(sum(values)) else []
        return Evaluated(ended, t, (bounds[0], bounds[1]), interval.covers, pairs, sum(values), splits)

    def part(self, rows: BoolArray, incumbent: float) -> CoverSearch:
        """Return a search on some of the rows, for trees that lose less than a value."""
        number = np.cumsum(rows) - 1
        order = self._order[rows[self._order]].reshape(len(self._order), -1)
        part = CoverSearch(
            np.ascontiguousarray(self.rank[:, rows]), number[order].astype(np.int32), self.rows[rows],
            cost=self.cost, tolerance=self.tolerance, incumbent=incumbent, n_values=self.values,
            n_classes=self.tables.below.shape[2],
        )  # fmt: skip
        part.stop = self.stop
        return part

    def close(self, interval: OpenInterval, found: Evaluated) -> None:
        """Keep the tree that an evaluation found, and open what it leaves of the interval."""
        self.pairs += found.pairs
        if found.value < self.incumbent - self.cost - self.tolerance:
            self.incumbent, self.splits = found.value + self.cost, found.splits
        if not found.ended:
            heapq.heappush(self.open, interval)
            return
        known = self.incumbent - self.cost - self.tolerance
        (left, right), t = found.bounds, found.t
        weight, last, first = self.tables.weight_below[interval.feature], t - 1, t + 1
        if not self.squared:
            # Thresholds so near that moving the rows between cannot make up for what this one loses too much.
            excess = left + right - known
            last = min(last, int(np.searchsorted(weight, weight[t] - excess, side="left")) - 1)
            first = max(first, int(np.searchsorted(weight, weight[t] + excess, side="right")))
        old_left, old_right = interval.covers
        new_left, new_right = found.covers
        if last >= interval.low:
            self._open(interval, interval.low, last, (interval.left, right), (old_left, new_right), known)
        if first <= interval.high:
            self._open(interval, first, interval.high, (left, interval.right), (new_left, old_right), known)

    def _open(
        self, parent: OpenInterval, low: int, high: int, bounds: tuple[float, float], covers: tuple[Cover, Cover],
        known: float,
    ) -> None:  # fmt: skip
        """Open a part of an interval, with what its covers say now that the incumbent may be better."""
        left, right = bounds
        f = parent.feature
        alive = [covers[0], covers[1]]
        for side in (0, 1) if len(covers[0].at) or len(covers[1].at) else ():
            keep = known - (right if side == 0 else left) - self.cost
            key = alive[side].key.sum(axis=1)
            alive[side] = Cover(alive[side].at[key < keep], alive[side].key[key < keep])
            least = min(keep, float(key.min(initial=np.inf)))
            new = min(
                float(leaf_loss(self.tables, f, low if side == 0 else high, side == 1)), self.cost + least
            )
            if side == 0:
                left = max(left, new)
            else:
                right = max(right, new)
        if left + right >= known:
            return
        weight = self.tables.weight_below[f]
        self._stamp += 1
        width = int(weight[high] - weight[low])
        heapq.heappush(
            self.open,
            OpenInterval(left + right, -width, self._stamp, f, low, high, left, right, (alive[0], alive[1])),
        )

    # ------------------------------------------------------------------ run

    def solve(self, depth: int) -> bool:
        """Search on this thread; return whether it ended, and was not stopped."""
        if self.incumbent <= self.tolerance:
            return True
        if depth == 2:
            return self.run_two() == DONE
        self.begin(depth)
        while (interval := self.take(0.0)) is not None:
            self._stamp += 1
            self.close(interval, self.evaluate(interval, self._stamp, depth))
            if self.stop[0]:
                return False
        return True

    def run(
        self,
        depth: int,
        *,
        gap: float,
        deadline: float,
        threads: int | None,
        look: Callable[[], bool],
    ) -> tuple[bool, bool]:
        """Search; return whether it ended, and whether the caller stopped it.

        Parameters
        ----------
        depth
            At least 2.
        gap
            Relative gap within which the best tree will do.
        deadline
            On the clock of :func:`time.monotonic`.
        threads
            Intervals of the root that are evaluated at a time.
        look
            Called now and then; returns whether to stop.
        """
        interrupted, until = False, deadline

        def stopped() -> bool:
            nonlocal interrupted
            interrupted = interrupted or look()
            if interrupted or monotonic() >= until:
                self.stop[0] = 1
            return bool(self.stop[0])

        with ThreadPoolExecutor(min(AT_A_TIME, threads or os.cpu_count() or 1)) as pool:

            def finish(running: list[Future[Any]]) -> list[Any]:
                try:
                    while wait(running, timeout=INTERVAL).not_done:
                        stopped()
                except BaseException:
                    self.stop[0] = 1
                    raise
                return [future.result() for future in running]

            def branch(search: CoverSearch, levels: int) -> bool:
                """Evaluate open intervals until none is left, or the search is stopped."""
                long = levels > 3 or self.tables.walk.size >= LONG
                looked, batches = monotonic(), 0
                while True:
                    # Deep trees take long: the first few are known before many are begun.
                    size = (
                        1 if not long else AT_A_TIME if levels == 3 else min(AT_A_TIME, 2 ** (batches // 2))
                    )
                    batches += 1
                    batch: list[tuple[OpenInterval, int]] = []
                    while len(batch) < size and (interval := search.take(gap)) is not None:
                        search._stamp += 1
                        batch.append((interval, search._stamp))
                    if not batch:
                        return True
                    search._taken = batch[0][0].bound
                    if long:
                        results = finish([pool.submit(search.evaluate, *task, levels) for task in batch])
                    else:
                        results = [search.evaluate(*task, levels) for task in batch]
                        if monotonic() - looked > INTERVAL:
                            looked = monotonic()
                            stopped()
                    for (interval, _), found in zip(batch, results, strict=True):
                        search.close(interval, found)
                    search._taken = np.inf
                    if self.stop[0]:
                        return False

            if depth == 2:
                return finish([pool.submit(self.run_two)])[0] == DONE, interrupted
            self.begin(depth)
            if depth > 3 and self.incumbent > self.tolerance:
                until = min(deadline, monotonic() + SHARE_OF_THREE * (deadline - monotonic()))
                smaller = self._without_incumbent()
                smaller.begin(3)
                branch(smaller, 3)
                self.pairs += smaller.pairs
                root = self._grow(smaller, depth)
                until = deadline
                if not interrupted and monotonic() < deadline:
                    self.stop[0] = 0
                    task = self._take_feature(root[0])
                    if task is not None:
                        self._taken = 0.0
                        self._stamp += 1
                        self.close(
                            task, finish([pool.submit(self.evaluate, task, self._stamp, depth, root[1])])[0]
                        )
                        self._taken = np.inf
                if self.stop[0]:
                    return False, interrupted
            return branch(self, depth), interrupted

    def _without_incumbent(self) -> CoverSearch:
        """Return a search with the same tables that knows of one leaf only."""
        other = copy(self)
        other.incumbent, other.splits = float(self._loss(self._sums.sum(axis=0))), [(-1, -1)]
        other.pairs, other.open = 0, []
        return other

    def _grow(self, smaller: CoverSearch, depth: int) -> tuple[int, int]:
        """Take the tree of a search with fewer levels, with the best splits below; return its root's split."""
        nodes, value = smaller.tree(depth), 0.0
        rows: dict[int, BoolArray] = {0: np.ones(len(self.rows), np.bool_)}
        for node in range(2 ** (depth + 1) - 1):
            here = rows.pop(node, None)
            if here is None:
                continue
            f, t = nodes[node] if node < len(nodes) else (-1, -1)
            if f < 0:
                value += float(self._loss(self._sums[here].sum(axis=0)))
                continue
            value += self.cost
            right = self.rank[f] >= t
            rows[2 * node + 1], rows[2 * node + 2] = here & ~right, here & right
        if value < self.incumbent - self.tolerance:
            self.incumbent, self.splits = value, nodes
        return nodes[0]

    def _take_feature(self, f: int) -> OpenInterval | None:
        """Take the open interval of all thresholds of a feature, if it has any."""
        for i, interval in enumerate(self.open):
            if interval.feature == f:
                del self.open[i]
                heapq.heapify(self.open)
                return interval
        return None

    def tree(self, depth: int) -> list[tuple[int, int]]:
        """Return feature and threshold of all nodes of the best tree in heap order, -1 where one does not split."""
        assert self.splits is not None
        given = dict(enumerate(self.splits))
        nodes = [(-1, -1)] * (2**depth - 1)
        rows: dict[int, BoolArray] = {0: np.ones(len(self.rows), np.bool_)}
        for node in range(2**depth - 1):
            here = rows.pop(node, None)
            if here is None:
                continue
            f, t = given.get(node, (-1, -1))
            right = self.rank[f] >= t
            if f < 0 or not (here & right).any() or not (here & ~right).any():
                # One that parts none of these rows is worth no more than the best of all.
                f, t = self._best_split(here) if node else (-1, -1)
                right = self.rank[f] >= t
            if f < 0:
                continue
            nodes[node] = (f, t)
            rows[2 * node + 1], rows[2 * node + 2] = here & ~right, here & right
        return nodes

    def _best_split(self, rows: BoolArray) -> tuple[int, int]:
        """Return the best split of some rows, -1 where one leaf loses no more."""
        sums = self._sums[rows]
        totals = sums.sum(axis=0)
        best, split = self._loss(totals) - self.tolerance, (-1, -1)
        for f in range(len(self.rank)):
            rank = self.rank[f, rows]
            below = np.zeros((self.values[f] + 1, len(totals)))
            np.add.at(below, rank + 1, sums)
            below = below.cumsum(axis=0)
            loss = self.cost + self._loss(below) + self._loss(totals - below)
            loss[: rank.min() + 1] = loss[rank.max() + 1 :] = np.inf
            t = int(loss.argmin())
            if loss[t] < best:
                best, split = loss[t], (f, t)
        return split


def _under(
    f: int, t: int, left: list[tuple[int, int]], right: list[tuple[int, int]], depth: int
) -> list[tuple[int, int]]:
    """Return the nodes of a tree in heap order from its root's split and the nodes of both subtrees."""
    nodes = [(f, t)]
    for level in range(depth - 1):
        first, beyond = 2**level - 1, 2 ** (level + 1) - 1
        nodes += left[first:beyond] + right[first:beyond]
    return nodes


def _cover(work: Workspace, side: int) -> Cover:
    """Return a copy of the cover of a side."""
    cover, size = (work.left, work.right)[side], int(work.size[side])
    return Cover(cover.at[:size].copy(), cover.key[:size].copy())
