"""Tables of many features: ranks by slot are gathered where a walk asks for them, and the last ones are kept.

The tables of :mod:`mipforest.searches.exact.classes` hold 2 or 4 bytes for each pair of features and row. Where these
do not fit into memory, every side keeps the ranks of some features, and gathers those of another one in place of what
was not asked for the longest time: as long as some thirty walks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from mipforest.arrays import Int32Array, IntArray
from mipforest.searches import implement, kernel
from mipforest.searches.exact import operations
from mipforest.searches.exact.classes import pair_by_ranks


class GatheredTables(NamedTuple):
    """Tables without ranks by slot, and what these are gathered from.

    Attributes
    ----------
    classes
        :class:`~mipforest.searches.exact.classes.TwoClasses` or ``ManyClasses``, without ranks.
    row
        (p, N) rows in the slots of each order; row 0 in empty slots.
    rank
        (p, n) ranks of the rows; 16 or 32 bits.
    """

    classes: Any
    row: Int32Array
    rank: NDArray[Any]


class GatheredSide(NamedTuple):
    """Rows of a side, and ranks that were gathered.

    Attributes
    ----------
    walk
        (p, N) as of the tables.
    ranks
        (C, p, N) ranks in some features of the rows in the slots of every order.
    feature, used
        (C,) which features, -1 for none, and when they were asked for.
    clock
        (1,) number of questions.
    """

    walk: NDArray[Any]
    ranks: NDArray[Any]
    feature: IntArray
    used: IntArray
    clock: IntArray


@kernel
def _place(tables: GatheredTables, rows: GatheredSide, f: int) -> int:
    """Return where the ranks of a feature are, and gather them if they are not there."""
    rows.clock[0] += 1
    place = 0
    for c in range(len(rows.feature)):
        if rows.feature[c] == f:
            rows.used[c] = rows.clock[0]
            return c
        if rows.used[c] < rows.used[place]:
            place = c
    rows.feature[place], rows.used[place] = f, rows.clock[0]
    rank = tables.rank[f]
    for g in range(tables.row.shape[0]):
        row, ranks = tables.row[g], rows.ranks[place, g]
        for i in range(len(row)):
            ranks[i] = rank[row[i]]
    return place


@kernel
def restrict(tables: GatheredTables, sides: tuple[GatheredSide, GatheredSide], f: int, t: int) -> None:
    """Write the walks of the rows below a threshold, and of those from it on."""
    rank, walk = tables.rank[f], tables.classes.walk
    outside = 0 if tables.classes.below.shape[2] == 2 else -1
    for g in range(walk.shape[0]):
        row, on_left, on_right = tables.row[g], sides[0].walk[g], sides[1].walk[g]
        for i in range(len(row)):
            is_left = rank[row[i]] < t
            on_left[i] = walk[g, i] if is_left else outside
            on_right[i] = outside if is_left else walk[g, i]


@kernel
def leaf_below(tables: GatheredTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    return operations.leaf_below(tables.classes, f, t, right)


@kernel
def pair(
    tables: GatheredTables, rows: GatheredSide, f: int, below: int, first: int, cost: float,
    enough: float,  # noqa: ARG001
    totals: NDArray[Any], out: NDArray[Any],
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on."""
    ranks = rows.ranks[_place(tables, rows, f)]
    return pair_by_ranks(tables.classes, ranks, rows.walk, below, first, cost, totals, out)


implement(GatheredTables, restrict, leaf_below, pair)
