r"""First bounds on trees of two levels of many rows, from sums over the quantiles of pairs of features.

A table of many rows takes long to sort into what walks read (:mod:`mipforest.searches.exact.tables`). One pass over the
rows for each pair of features has the sums of the loss over the rows of every pair of their bins. Let L be the rows
below the first threshold of a bin of the root's feature: a split of L at a threshold within a bin of another feature
loses at least what one leaf on each side of that bin does, as fewer rows never lose more. So these sums bound
:math:`W_1` of the rows on both sides of every bin: the cover that a search begins with
(:mod:`mipforest.searches.exact.covers`).

Of many features, whose classes are counted by bits (:mod:`mipforest.searches.exact.counted`), there is one bound on all
trees, from the medians: pairs of features are too many for more bins.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.searches import entry
from mipforest.searches.exact.covers import INTERVAL, Cover
from mipforest.searches.exact.tables import DistinctRows, bits_of_classes
from mipforest.searches.exact.walks import count_common

#: Bins of a feature.
BINS = 32

#: Rows times features from which on these bounds are found, and additions that they may take.
LEAST, MOST = 1_000_000, 3_000_000_000


@entry
def add_by_bins(one: NDArray[Any], other: NDArray[Any], value: FloatArray, sums: FloatArray) -> None:
    """Add up values (n, V) by the bins (n,) of both features into sums (B, B, V)."""
    for i in range(len(one)):
        own = sums[one[i], other[i]]
        for v in range(value.shape[1]):
            own[v] += value[i, v]


def are_worth_it(rows: DistinctRows) -> bool:
    """Return whether a search of two levels begins with bounds of bins."""
    p, n = rows.rank.shape
    return rows.loss.has_sums and n * p >= LEAST and 0 < p * p * n * rows.statistics.shape[1] <= MOST


def cover_of_bins(rows: DistinctRows, cost: float) -> Cover:
    """Return the cover of all thresholds with what the sums over bins prove, as of an evaluation with stamp 1.

    Parameters
    ----------
    rows
        Rows of a loss that is a function of sums.
    cost
        Cost of a split.
    """
    features = np.flatnonzero(rows.n_values > 1).tolist()
    value = np.ascontiguousarray(rows.statistics, dtype=np.float64)
    edges = {f: _edges(rows, f) for f in features}
    bins = {f: np.repeat(np.arange(BINS, dtype=np.uint8), np.diff(edges[f]))[rows.rank[f]] for f in features}
    # A bin of one value has no threshold inside.
    wide = {f: np.diff(edges[f]) > 1 for f in features}
    shape = BINS, value.shape[1]
    # Least loss of a split of the rows in the bins below each, and of those above each, so far.
    least = {f: np.full((2, BINS), np.inf) for f in features}
    leaf = {f: np.zeros((2, BINS)) for f in features}
    for f in features:
        for g in [g for g in features if g <= f]:
            sums = np.zeros((BINS, *shape))
            add_by_bins(bins[f], bins[g], value, sums)
            for one, other, by_bin in ((f, g, sums), (g, f, sums.swapaxes(0, 1))):
                below = by_bin.cumsum(axis=0) - by_bin
                above = by_bin.sum(axis=0) - below - np.where(wide[one][:, None, None], by_bin, 0.0)
                for side, part in enumerate((below, above)):
                    before = part.cumsum(axis=1) - part
                    after = part.sum(axis=1)[:, None] - before - np.where(wide[other][:, None], part, 0.0)
                    split = (rows.loss_of(before) + rows.loss_of(after)).min(axis=1)
                    least[one][side] = np.minimum(least[one][side], split)
                    leaf[one][side] = rows.loss_of(part.sum(axis=1))
    covers = []
    for f in features:
        bound = np.maximum(0.0, np.minimum(leaf[f], cost + least[f]))
        # Ranks from 1 on are thresholds, each of the bin that begins with it or has it inside.
        low, high = np.maximum(1, edges[f][:-1]), edges[f][1:] - 1
        some = np.flatnonzero(low <= high)
        cover = np.zeros(len(some), INTERVAL)
        cover["feature"], cover["low"], cover["high"], cover["stamp"] = f, low[some], high[some], -1
        cover["left"], cover["right"] = bound[:, some]
        covers.append(cover)
    return np.concatenate([np.zeros(0, INTERVAL), *covers])


@entry
def count_with_each(rows: Any, bits: Any, start: IntArray, counts: IntArray) -> None:
    """Count the rows of each class that a set (W,) has in common with each of others (m, W), as counts (K, m).

    ``start`` (K + 1,) is the first word of each class.
    """
    for g in range(len(bits)):
        for k in range(len(start) - 1):
            counts[k, g] = count_common(rows, bits[g], start[k], start[k + 1])


def bound_of_medians(rows: DistinctRows, cost: float) -> float:
    """Return a lower bound on the loss of trees of two levels that split, from the medians of all features.

    A threshold of the root leaves the rows above or below the median of its feature on one side. A split of these by
    another feature leaves those above or below its median in one leaf, and one by the same feature those above or below
    a quartile.

    Parameters
    ----------
    rows
        Rows of classes that are counted by bits.
    cost
        Cost of a split.
    """
    row, start = bits_of_classes(rows, rows.value[:, 1])
    is_row, n, K = row >= 0, rows.rank.shape[1], len(start) - 1
    features = np.flatnonzero(rows.n_values > 1)

    def bits_from(f: int, ranks: list[int]) -> NDArray[np.uint64]:
        """Return the rows from each of some ranks of a feature on."""
        own = (rows.rank[f, row] >= np.array(ranks)[:, None]) & is_row
        return np.asarray(np.packbits(own, axis=1, bitorder="little").view(np.uint64))

    U = rows.n_values[features]
    edges = np.zeros((len(features), 3), np.int64)
    for i, f in enumerate(features.tolist()):
        edges[i] = [_nearest_rank(rows.rank[f], rows.order[f], e * n // 4) for e in (1, 2, 3)]
    # Thresholds, where there are some on both sides of the median.
    median = edges[:, 1] = edges[:, 1].clip(1, U - 1)
    edges[:, 0] = edges[:, 0].clip(1, np.maximum(1, median - 1))
    edges[:, 2] = edges[:, 2].clip(np.minimum(median + 1, U - 1), U - 1)
    bits = np.concatenate(
        [bits_from(f, [t]) for f, t in zip(features.tolist(), median.tolist(), strict=True)]
    )
    whole, above, both = (np.zeros((K, m), np.int64) for m in (1, len(bits), len(bits)))
    own, every = np.zeros((K, 3), np.int64), np.packbits(is_row, bitorder="little").view(np.uint64)
    count_with_each(every, every[None], start, whole)
    count_with_each(every, bits, start, above)
    least, has_below, has_above = np.inf, median > 1, median < U - 1
    for i, f in enumerate(features.tolist()):
        count_with_each(bits[i], bits, start, both)
        count_with_each(every, bits_from(f, edges[i].tolist()), start, own)
        quarters = np.diff(np.column_stack([np.zeros(K, np.int64), own[:, ::-1], whole]))[:, ::-1]
        for side, (rest, part) in enumerate(((above - both, whole - own[:, 1:2]), (both, own[:, 1:2]))):
            on_left, on_right = _errors(part - rest), _errors(rest)
            split = np.minimum(
                np.where(has_below, 0, on_left) + on_right, on_left + np.where(has_above, 0, on_right)
            )
            first, second = _errors(quarters[:, 2 * side : 2 * side + 2]).tolist()
            split[i] = min(first, second) if (has_below, has_above)[side][i] else _errors(part)[0]
            least = min(least, float(_errors(part)[0]), cost + float(split.min()))
    return cost + least


def _errors(counts: IntArray) -> IntArray:
    """Return the errors of leaves (m,) from the counts of their classes (K, m)."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _edges(rows: DistinctRows, f: int) -> IntArray:
    """Return the first rank of each bin of a feature (B + 1,), ascending from 0 to the number of values."""
    n, U = rows.rank.shape[1], int(rows.n_values[f])
    if U <= BINS:
        return np.minimum(np.arange(BINS + 1), U)
    rank, order = rows.rank[f], rows.order[f]
    return np.array([0, *(_nearest_rank(rank, order, e * n // BINS) for e in range(1, BINS)), U])


def _nearest_rank(rank: Int32Array, order: Int32Array, at: int) -> int:
    """Return the rank at a place of an order, or the next one, whichever has its first row nearer to the place."""
    own, places = int(rank[order[at]]), range(len(order))
    first, beyond = (bisect_left(places, r, key=lambda i: rank[order[i]]) for r in (own, own + 1))
    return own + int(beyond - at < at - first)
