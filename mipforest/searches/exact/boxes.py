"""The best tree of a box: what every node may split on, which nodes have to, and which features come once on a path.

A box is a set of trees that is fixed without looking at rows, so that the search by covers holds in it as it is
(:mod:`mipforest.searches.exact.domains`). Nodes of the upper levels begin with covers of their own features; below a
feature of the root that comes once on a path, its side begins without the features of that group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, IntArray
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.covers import Cover
from mipforest.searches.exact.domains import COLUMNS, MUST, ONCE
from mipforest.searches.exact.search import ROUNDING, TOLERANCE, Outcome, rows_of
from mipforest.searches.exact.tables import Rows, tables_of

#: Most levels of trees in a box that differs from node to node.
MAX_DEPTH = 3


@dataclass(frozen=True, eq=False)
class Box:
    """Trees whose nodes split on some features.

    Attributes
    ----------
    allowed
        (|B|, p) features that each node may split on.
    must
        (|B|,) whether a node has to split.
    group
        (p,) number of the group of each feature that comes once on a path, -1 for one that may come again.
    """

    allowed: BoolArray
    must: BoolArray
    group: IntArray

    @classmethod
    def of(cls, allowed: BoolArray, once: IntArray | None = None) -> Box:
        """Return the box of allowed features, in which no node has to split."""
        B, p = allowed.shape
        return cls(allowed, np.zeros(B, dtype=bool), np.full(p, -1) if once is None else once)

    def settled(self) -> Box | None:
        """Return the same trees, with what follows for other nodes; ``None`` where there is none.

        Above a node that has to split all have to; below one that cannot split none can.
        """
        allowed, must, group = self.allowed.copy(), self.must.copy(), self.group
        for t in range(len(must) - 1, 0, -1):
            must[(t - 1) // 2] |= must[t]
        for t in np.flatnonzero(must).tolist():
            own = np.unique(group[allowed[t]])
            if len(own) == 1 and own[0] >= 0:  # it uses the group, and no other node of its paths does
                for s in range(len(must)):
                    if s != t and (_is_above(s, t) or _is_above(t, s)):
                        allowed[s, group == own[0]] = False
        for t in range(1, len(must)):
            if not allowed[(t - 1) // 2].any():
                allowed[t] = False
        return None if (must & ~allowed.any(axis=1)).any() else replace(self, allowed=allowed, must=must)

    def with_features(self, features: IntArray) -> Box:
        """Return the box of some features alone, which are numbered anew."""
        return Box(self.allowed[:, features], self.must, self.group[features])


def _is_above(s: int, t: int) -> bool:
    """Return whether node s is above node t."""
    while t > s:
        t = (t - 1) // 2
    return s == t


class BoxSearch(CoverSearch):
    """A search for the best tree of a box, of one to three levels, whose leaves may have any size.

    Parameters
    ----------
    rows, depth, cost, tolerance, incumbent
        As for :class:`CoverSearch`.
    box
        A settled box; each of its features may be used by some node, and has more than one value.
    """

    def __init__(
        self, rows: Rows, depth: int, box: Box, *, cost: float, tolerance: float, incumbent: float
    ) -> None:
        self.box = box
        super().__init__(rows, depth, cost=cost, tolerance=tolerance, incumbent=incumbent)
        if box.must[0]:
            self._known, self.splits, self._leaf = incumbent, None, np.inf
        if depth > 1 and self.tables is None:
            self.tables = tables_of(rows)
        if self.tables is not None:
            self.tables = _masked(self.tables, box, depth)

    @property
    def is_trivial(self) -> bool:
        """Whether nothing better than the incumbent can be found."""
        if self.box.must[0]:
            return self._known <= self.tolerance
        return super().is_trivial

    def one_split(self) -> None:
        """Find the best tree of one level."""
        split = self._last(self.rows, 0, ())
        if split is not None and split[2] < self._known - self.tolerance:
            self._known, self.splits = split[2], [split[:2]]

    def _first_cover(self, node: int, root: int = -1) -> Cover:
        allowed = self.box.allowed[node]
        if root >= 0 and self.box.group[root] >= 0:
            allowed = allowed & (self.box.group != self.box.group[root])
        features = np.flatnonzero(allowed)
        at = np.zeros((len(features), 4), np.int32)
        at[:, 0], at[:, 1], at[:, 2] = features, 1, self.rows.n_values[features] - 1
        return Cover(at, np.zeros((len(features), 3)))

    def _covers_of_sides(self, features: list[int]) -> list[tuple[Cover, list[tuple[int, int]]]]:
        return [(self._first_cover(1 + side, f), [(side, f)]) for side in range(2) for f in features]

    def tree(self) -> list[tuple[int, int]]:
        """Return feature and threshold of all nodes of the best tree in heap order, -1 where one does not split.

        A split stays where it parts none of the rows of its node: a node may have to split.
        """
        assert self.splits is not None
        given, B = dict(enumerate(self.splits)), 2**self.depth - 1
        nodes = [(-1, -1)] * B
        here: dict[int, tuple[BoolArray, tuple[int, ...]]] = {
            0: (np.ones(self.rows.rank.shape[1], dtype=bool), ())
        }
        for t in range(B):
            if t not in here:
                continue
            members, path = here.pop(t)
            if 2 * t + 1 < B or self.depth == 1:
                f, threshold = given.get(t, (-1, -1))
            else:
                last = self._last(self.rows.take(members), t, path)
                f, threshold = (-1, -1) if last is None else last[:2]
            if f < 0:
                continue
            nodes[t], right = (f, threshold), self.rows.rank[f] >= threshold
            here[2 * t + 1] = members & ~right, (*path, f)
            here[2 * t + 2] = members & right, (*path, f)
        return nodes

    def _last(self, rows: Rows, node: int, path: tuple[int, ...]) -> tuple[int, int, float] | None:
        """Return the best split of a node of the last level and its loss; ``None`` where a leaf loses no more."""
        best = np.inf if self.box.must[node] else rows.leaf() - self.tolerance
        above = {int(self.box.group[f]) for f in path} - {-1}
        found = None
        for f, values in enumerate(rows.splits(self.cost)):
            if self.box.allowed[node, f] and int(self.box.group[f]) not in above and len(values):
                t = int(values.argmin())
                if values[t] < best:
                    best, found = float(values[t]), (f, t + 1, float(values[t]))
        return found


def search_in_box(
    problem: UnivariateProblem,
    depth: int,
    box: Box,
    *,
    best: float,
    deadline: float,
    on_progress: Callable[[float, float, int], bool],
    threads: int | None = 1,
) -> Outcome:
    """Search for the best tree in a box, as :func:`~mipforest.searches.exact.search.exact_search` does for all trees.

    Parameters
    ----------
    problem, depth
        What trees are charged, whose leaves may have any size; at most :data:`MAX_DEPTH` levels.
    box
        Its features are those of the problem.
    best
        Objective of a tree that is known.
    deadline, on_progress, threads
        As for ``exact_search``.

    Returns
    -------
    Outcome
        Without bounds by threshold; the bound is infinite where the box has no tree.
    """
    rows, base = rows_of(problem)
    settled, unit, none = box.settled(), problem.unit, np.zeros(0)
    if settled is None:
        return Outcome(best, np.inf, None, none, 0, ended=True, interrupted=False)
    slack = max(1.0, float(rows.value[:, 2].sum()) / unit) if rows.loss == "squared" else 1.0
    if rows.is_whole and problem.split_cost == 0:
        slack = 0.0
    search = BoxSearch(
        rows,
        depth,
        settled,
        cost=problem.split_cost,
        tolerance=slack * TOLERANCE * unit,
        incumbent=best * unit - base,
    )

    def look() -> bool:
        return bool(
            on_progress(best, max(0.0, (search.bound + base) / unit - slack * ROUNDING), search.pairs)
        )

    if depth == 1:
        search.one_split()
        ended, interrupted = True, False
    else:
        ended, interrupted = search.run(gap=0.0, deadline=deadline, threads=threads, look=look)
    chosen = None
    if search.splits is not None:
        first = problem.thresholds.first
        chosen = np.array([-1 if f < 0 else first[f] + t - 1 for f, t in search.tree()])
    bound = search.incumbent if ended else min(search.bound, search.incumbent)
    lowered = (bound + base) / unit - slack * ROUNDING
    return Outcome(
        best if chosen is None else (search.incumbent + base) / unit,
        max(0.0, lowered),
        chosen,
        none,
        search.pairs,
        ended=ended,
        interrupted=interrupted,
    )


def _masked(tables: Any, box: Box, depth: int) -> Any:
    """Return tables with the masks of a box."""
    p = box.allowed.shape[1]
    use, must = np.zeros((2, 2, p + COLUMNS), np.uint8), np.zeros(2, np.uint8)
    for side in range(2):
        for child in range(2):
            t = 3 + 2 * side + child if depth == 3 else 1 + child
            if t < len(box.must):
                use[side, child, :p], use[side, child, p + MUST] = box.allowed[t], box.must[t]
        if depth == 3:
            must[side] = box.must[1 + side]
    use[0, 0, p + ONCE] = bool((box.group >= 0).any())

    def put(part: Any) -> Any:
        inner = {
            name: put(getattr(part, name)) for name in ("bounds", "values", "classes") if name in part._fields
        }
        own = {"use": use, "group": box.group.astype(np.int64)} if "use" in part._fields else {}
        return part._replace(must=must, **inner, **own)

    return put(tables)
