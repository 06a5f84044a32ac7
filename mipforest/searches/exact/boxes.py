"""The best tree of a box: what every node may split on, which nodes have to, and which features come once on a path.

A box is a set of trees that is fixed without looking at rows, so that the search by covers holds in it as it is
(:mod:`mipforest.searches.exact.domains`). Nodes of the upper levels begin with covers of their own features; below a
feature of the root that comes once on a path, its side begins without the features of that group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, IntArray
from mipforest.searches.exact.cover_search import CoverSearch
from mipforest.searches.exact.covers import Cover
from mipforest.searches.exact.domains import COLUMNS, MUST, ONCE
from mipforest.searches.exact.tables import LossTables, Rows, first_cover, tables_of


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


def _is_above(s: int, t: int) -> bool:
    """Return whether node s is above node t."""
    while t > s:
        t = (t - 1) // 2
    return s == t


class BoxSearch(CoverSearch):
    """A search for the best tree of a box, of one to three levels.

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

    def _first_cover(self) -> Cover:
        return first_cover(self.rows, self.box.allowed[0])

    def _allowed_at_root(self) -> BoolArray:
        allowed: BoolArray = self.box.allowed[0]
        return allowed

    def _covers_of_sides(self, features: list[int]) -> list[tuple[Cover, list[tuple[int, int]]]]:
        group = self.box.group
        return [
            (
                first_cover(self.rows, self.box.allowed[1 + side] & ((group != group[f]) | (group < 0))),
                [(side, f)],
            )
            for side in range(2)
            for f in features
        ]

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
        for f, values in enumerate(rows.splits(self.cost, parts_none=True)):
            if self.box.allowed[node, f] and int(self.box.group[f]) not in above and len(values):
                t = int(values.argmin())
                if values[t] < best:
                    best, found = float(values[t]), (f, t + 1, float(values[t]))
        return found


def _masked(tables: LossTables, box: Box, depth: int) -> LossTables:
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

    return tables.masked(use, box.group.astype(np.int64), must)
