r"""First bounds on trees of two levels of many rows, from sums over the quantiles of pairs of features.

A table of many rows takes long to sort into what walks read (:mod:`mipforest.searches.exact.tables`). One pass over the
rows for each pair of features has the sums of the loss over the rows of every pair of their bins. Let L be the rows
below the first threshold of a bin of the root's feature: a split of L at a threshold within a bin of another feature
loses at least what one leaf on each side of that bin does, as fewer rows never lose more. So these sums bound
:math:`W_1` of the rows on both sides of every bin: the cover that a search begins with
(:mod:`mipforest.searches.exact.covers`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry
from mipforest.searches.exact.covers import INTERVAL, Cover
from mipforest.searches.exact.tables import DistinctRows

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
    bins = {f: (np.searchsorted(edges[f], rows.rank[f], side="right") - 1).astype(np.uint8) for f in features}
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


def _edges(rows: DistinctRows, f: int) -> IntArray:
    """Return the first rank of each bin of a feature (B + 1,), ascending from 0 to the number of values."""
    n, U = rows.rank.shape[1], int(rows.n_values[f])
    if U <= BINS:
        return np.minimum(np.arange(BINS + 1), U)
    ranks, at = rows.rank[f, rows.order[f]], np.arange(1, BINS) * n // BINS
    # Below or above the rows of the value at the quantile, whichever is nearer.
    inner = ranks[at].astype(np.int64)
    inner += np.searchsorted(ranks, inner + 1) - at < at - np.searchsorted(ranks, inner)
    return np.concatenate([[0], inner, [U]])
