r"""Best splits for pinball losses, where rows are many: bounds by sums over bins and cells, and lists.

Pinball losses are no functions of sums. Targets are cut into cells of about as many rows. In a part of the rows, all
rows of a cell count as ones of their mean target: as the loss is convex in the target, a leaf loses no less (Jensen),
and just as much around constants outside the cell. The loss around the mean y of a cell j is

.. math::  2 (1 - \tau) (y W_{<j} - Y_{<j}) + 2 \tau (Y_{>j} - y W_{>j})

with the sums W of weights and Y of weights times targets. It is convex in y, so one of the means loses least.

The sums by cells are those of :mod:`mipforest.searches.exact.binned`, in place of what is saved. They bound the splits
within each bin and behind it. Where the bounds of both parts are not enough, features are walked by lists
(:mod:`mipforest.searches.medians`), the one of the least bound first, as long as that is below the best split.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray
from mipforest.searches import implement, kernel
from mipforest.searches.exact import binned, plain
from mipforest.searches.exact.binned import BinnedSide, BinnedTables, sum_parts
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.plain import losses_of_quantiles, note_losses

#: Above all ranks.
_BEYOND = 2**31 - 1


class CellTables(NamedTuple):
    """Rows and their bins: columns 1 to G are the weight in each cell, the next G weight times target.

    Attributes
    ----------
    binned
        The tables.
    """

    binned: BinnedTables


@kernel
def restrict(tables: CellTables, sides: tuple[BinnedSide, BinnedSide], f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    binned.restrict(tables.binned, sides, f, t)


@kernel
def leaf_below(tables: CellTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    return plain.leaf_below(tables.binned.plain, f, t, right)


@kernel
def pair(
    tables: CellTables, rows: BinnedSide, f: int, below: int, first: int, cost: float, enough: float,
    totals: FloatArray, out: FloatArray,  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    Lower bounds on both where these sum up to what is enough.
    """
    sum_parts(tables.binned, rows, f, below, first)
    low_left = _least(tables.binned, rows, 0, cost, out)
    low_right = _least(tables.binned, rows, 1, cost, out)
    if low_left + low_right >= enough:
        return low_left, low_right
    left = _by_lists(tables.binned, rows, 0, f, below, _BEYOND, cost, out)
    if left + low_right >= enough:
        return left, low_right
    return left, _by_lists(tables.binned, rows, 1, f, 0, first, cost, out)


@kernel
def _least(tables: BinnedTables, rows: BinnedSide, s: int, cost: float, out: FloatArray) -> float:
    """Return a bound on one leaf and all splits of a part; those by feature are written (``bound[s, :, 0]``)."""
    p, _, B = rows.whole.shape
    level, least, use, group = tables.plain.level, tables.least[0], tables.plain.use, tables.plain.group
    leaf, split, is_usable, before, behind = 0.0, np.inf, False, rows.lines[0], rows.lines[1]
    for g in range(p):
        rows.bound[s, g, 0] = np.inf
        if usable(use, group, out, s, g):
            is_usable = True
            _losses_by_bin(level, rows.part[s, g], least, rows.lines)
            leaf, is_wide = before[B - 1], tables.is_wide[g]
            # Splits within a bin are between those on both sides of it: rows in it may lose nothing.
            own = behind[0] if is_wide[0] != 0 else np.inf
            for b in range(1, B):
                x = before[b - 1] + behind[b if is_wide[b] != 0 else b - 1]
                own = x if x < own else own
            rows.bound[s, g, 0] = own
            split = min(split, own)
    if has_to_split(use, out, s):
        leaf = leaf + cost if is_usable else np.inf
    return min(leaf, cost + split)


@kernel
def _losses_by_bin(level: float, sums: NDArray[Any], least: float, lines: NDArray[Any]) -> None:
    """Write what the rows up to each bin lose at least (``lines[0]``), and those behind it (``lines[1]``).

    Parameters
    ----------
    sums
        (V, B) up to each bin.
    """
    V, B = sums.shape
    G, last, low, high = (V - 1) // 2, B - 1, 2.0 * (1.0 - level), 2.0 * level
    one, other, weight, target, below, below_y = lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
    for b in range(B):
        one[b], other[b] = np.inf, np.inf
        weight[b], target[b], below[b], below_y[b] = 0.0, 0.0, 0.0, 0.0
    for v in range(1, G + 1):
        of_weight, of_target = sums[v], sums[G + v]
        for b in range(B):
            weight[b] += of_weight[b]
            target[b] += of_target[b]
    all_weight, all_target, all_below, all_below_y = weight[last], target[last], 0.0, 0.0
    for v in range(1, G + 1):
        of_weight, of_target = sums[v], sums[G + v]
        own, own_y = of_weight[last], of_target[last]
        for b in range(B):
            w, s = of_weight[b], of_target[b]
            y = s / w if w > least else 0.0
            x = low * (y * below[b] - below_y[b]) + high * (
                target[b] - below_y[b] - s - y * (weight[b] - below[b] - w)
            )
            x = x if w > least else np.inf
            one[b] = x if x < one[b] else one[b]
            w, s = own - w, own_y - s
            left, left_y = all_below - below[b], all_below_y - below_y[b]
            y = s / w if w > least else 0.0
            x = low * (y * left - left_y) + high * (
                all_target - target[b] - left_y - s - y * (all_weight - weight[b] - left - w)
            )
            x = x if w > least else np.inf
            other[b] = x if x < other[b] else other[b]
        for b in range(B):
            below[b] += of_weight[b]
            below_y[b] += of_target[b]
        all_below += own
        all_below_y += own_y
    for b in range(B):
        # No rows lose nothing.
        one[b] = 0.0 if one[b] < 0.0 or one[b] == np.inf else one[b]
        other[b] = 0.0 if other[b] < 0.0 or other[b] == np.inf else other[b]


@kernel
def _by_lists(
    tables: BinnedTables, rows: BinnedSide, s: int, f: int, below: int, first: int, cost: float, out: FloatArray
) -> float:  # fmt: skip
    """Return the least loss of one leaf or of a split of a part: of the rows below a rank, or from a rank on.

    The rank of the other part leaves it without rows.
    """
    p, V, B = rows.whole.shape
    G, own, side, by = (V - 1) // 2, tables.plain, rows.plain, tables.plain.rank[f]
    for v in range(2):
        side.totals[s, v] = 0.0
        for c in range(1 + v * G, 1 + v * G + G):
            side.totals[s, v] += rows.part[s, 0, c, B - 1]
    best, bound, is_usable = losses_of_quantiles(own, side, by, below, first)[s], rows.bound[s], False
    for g in range(p):
        is_usable |= usable(own.use, own.group, out, s, g)
    if has_to_split(own.use, out, s):
        best = best + cost if is_usable else np.inf
    while True:
        g = 0
        for h in range(1, p):
            g = h if bound[h, 0] < bound[g, 0] else g
        if cost + bound[g, 0] >= best:
            return best
        bound[g, 0] = np.inf
        note_losses(own, side, g, by, below, first)
        begin, m, order, rank = side.span[0], side.span[1], side.order[g], own.rank[g]
        left, right = side.lines[2 * s], side.lines[2 * s + 1]
        for i in range(begin, begin + m - 1):
            value = cost + left[i] + right[i]
            if value < best and rank[order[i]] != rank[order[i + 1]]:
                best = value


implement(CellTables, restrict, leaf_below, pair)
