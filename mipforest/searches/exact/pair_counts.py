r"""Sums over pairs of thresholds, of which the best trees of two and three levels are made on tables of few thresholds.

Let :math:`S_j` be the rows of S from threshold j on, and :math:`S_{jk}` those from both j and k on. The sums of a loss
over all :math:`S_{jk}` give those of every leaf of a tree of two levels: with the root j, its children split by k have
the leaves

.. math::

    S_{jk}, \quad S_j \setminus S_{jk}, \quad S_k \setminus S_{jk}, \quad S \setminus (S_j \cup S_k),

whose sums are differences. So one pass over the pairs finds the best tree of two levels, and the least loss
:math:`W_2` that is proven for each of its roots. Classes whose samples have whole weights, or all of a class the same
weight, are counted by bitsets, 64 rows at a time (Demirovic et al., *MurTree*, JMLR 23, 2022, count pairs for
indicators row by row); all other sums are products of matrices.

**Three levels.** A root r has two sides, of which one has the sums of pairs :math:`S_{rjk}`, and the other what is left
of all. Moving rows of weight m to the other side changes a number of errors by m at most, so for roots r and q

.. math::

    W_2(S_r) \ge W_2(S_q) - w(S_q \setminus S_r) ,

and the same with the other sides. Roots whose bounds leave no better tree are not evaluated. Of other losses, only
:math:`S_q \subseteq S_r` says something: fewer rows never lose more.

A table where features have many values has too many pairs: covers take that (:mod:`mipforest.searches.exact.covers`).
The search is :mod:`mipforest.searches.exact.pair_search`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, Int32Array, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.exact.covers import DONE, FLAG, STOPPED
from mipforest.searches.exact.plain import loss_of_rest
from mipforest.searches.exact.tables import DistinctRows, bits_of_classes, fit_bits
from mipforest.searches.exact.walks import count_common
from mipforest.searches.leaf_sums import POISSON, may_skip

#: Most thresholds of a table: the sums of their pairs are held in memory.
MOST = 3000

#: Measured: thresholds of a feature that covers evaluate, in those of a bisection; the same for both sides of a root of
#: three levels, in the product of both levels.
EVALUATED, REPEATED = 1.9, 1.5

#: Nanoseconds of a row and feature in a walk and in plain loops; of a word and pair in a count; of a row, pair and sum
#: in a product; and of a pair that is compared.
WALKED, PLAIN, COUNTED, SUMMED, COMPARED = 0.3, 3.0, 0.5, 0.15, 10.0

#: Thresholds of a block of pairs.
BLOCK = 32

#: Sums over pairs of thresholds, or counts.
Sums = FloatArray | Int32Array

#: More errors than rows; four times as many fit: a domain, a group and two leaves may all bar a split.
MANY = 1 << 28


# ---------------------------------------------------------------------- sums over pairs


@kernel
def _count_pairs(bits: Any, mask: Any, starts: Any, unit: Any, work: Any, counts: Any) -> None:
    (T, W), cast = bits.shape, counts.dtype.type
    for j in range(T):
        for w in range(W):
            work[j, w] = bits[j, w] & mask[w]
    for first in range(0, T, BLOCK):
        for other in range(0, first + 1, BLOCK):  # pairs are written twice, which is fast in blocks
            for j in range(first, min(first + BLOCK, T)):
                for k in range(other, min(other + BLOCK, j + 1)):
                    for c in range(len(starts) - 1):
                        count = count_common(work[j], bits[k], starts[c], starts[c + 1])
                        counts[c, j, k] = counts[c, k, j] = cast(cast(count) * unit[c])


@entry
def count_pairs(
    bits: NDArray[np.uint64],
    mask: NDArray[np.uint64],
    starts: IntArray,
    unit: Sums,
    work: NDArray[np.uint64],
    counts: Sums,
) -> None:
    """Find the weights of the rows of each class from both thresholds of each pair on, by counting.

    Parameters
    ----------
    bits
        (T, W) rows from each threshold on, by bits.
    mask
        (W,) rows that are counted.
    starts
        (K + 1,) first word of each class.
    unit
        (K,) weight of a bit of each class, of the type of the counts.
    work
        (T, W) memory.
    counts
        (K, T, T) written.
    """
    _count_pairs(bits, mask, starts, unit, work, counts)


@dataclass(frozen=True, eq=False)
class PairTables:
    """Thresholds of a table, and what the sums over their pairs are made of.

    Attributes
    ----------
    feature, threshold
        (T,) feature and rank of each threshold; of those that part the rows alike, if they are one, of the first.
    place
        (q,) for each threshold of all features, the number of the one that stands for it.
    right
        (T, n) whether a row is from it on.
    sums
        (T, T, V) sums over the pairs, of all rows; (K, T, T) weights of classes, where rows are counted.
    sizes
        (T, T) samples of the pairs; (0, 0) where leaves may have any size.
    moved
        (T, T) the most that a loss changes by where the rows from the first threshold on that are not from the second
        one on change sides; infinite where it is not bounded.
    bits, start
        (T, W) rows from each threshold on, by bits, and (K + 1,) first word of each class; empty where rows are not
        counted.
    """

    feature: IntArray
    threshold: IntArray
    place: IntArray
    right: BoolArray
    sums: Sums
    sizes: FloatArray
    moved: FloatArray
    bits: NDArray[np.uint64]
    start: IntArray
    _rows: DistinctRows

    @classmethod
    def of(cls, rows: DistinctRows, *, alike: bool) -> PairTables:
        """Return the tables of rows; ``alike`` tells that thresholds that part the rows alike are one."""
        known = _TABLES.setdefault(rows, {})
        if alike not in known:
            known[alike] = _tables_of(rows, alike=alike)
        return known[alike]

    @cached_property
    def _value(self) -> FloatArray:
        """(n, V) what is summed; not needed where rows are counted."""
        return np.ascontiguousarray(self._rows.statistics, dtype=np.float64)

    @property
    def is_counted(self) -> bool:
        """Whether the sums are those of classes, (K, T, T)."""
        return len(self.start) > 0

    @property
    def part_some(self) -> BoolArray:
        """(T,) whether there are rows on both sides of each threshold."""
        return np.asarray(self.right.any(axis=1) & ~self.right.all(axis=1))

    def pairs_of(self, chosen: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return sums (T, T, V) and sizes (T, T) of the pairs of some rows (n,)."""
        size = self._rows.size[chosen].astype(np.float64)
        return _products(self.right[:, chosen], self._value[chosen], size if len(self.sizes) else None)

    def part(self, rows: DistinctRows, chosen: BoolArray, *, alike: bool) -> PairTables:
        """Return the tables of those rows that are some of these (n,)."""
        right = np.compress(chosen, self.right, axis=1)
        return _with_sums(rows, self.feature, self.threshold, self.place, right, alike=alike)

    def total_of(self, chosen: BoolArray) -> tuple[FloatArray, float]:
        """Return the sums (V,) of some rows (n,), and the number of their samples."""
        return self._value[chosen].sum(axis=0), float(self._rows.size[chosen].sum())


def _products(right: BoolArray, value: FloatArray, size: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return sums (T, T, V) over pairs of thresholds, and their sizes (T, T) where these count, by matrices."""
    indicators, T = right.astype(np.float64), len(right)
    sums = np.empty((T, T, value.shape[1]))
    for v in range(value.shape[1]):
        sums[:, :, v] = (indicators * value[:, v]) @ indicators.T
    return sums, np.zeros((0, 0)) if size is None else (indicators * size) @ indicators.T


def _packed(right: BoolArray, place: IntArray, n_words: int) -> NDArray[np.uint64]:
    """Return rows (m, n) by the bits of words (m, W): entry b of ``place`` is the row of bit b, -1 for none."""
    spread = np.take(np.pad(right, ((0, 0), (0, 1))), place, axis=1)  # the last one is none
    return np.packbits(spread, axis=1, bitorder="little").view(np.uint64).reshape(len(right), n_words)


#: Tables by their rows.
_TABLES: WeakKeyDictionary[DistinctRows, dict[bool, PairTables]] = WeakKeyDictionary()


def _tables_of(rows: DistinctRows, *, alike: bool) -> PairTables:
    n_of = rows.n_values - 1
    feature = np.repeat(np.arange(len(n_of)), n_of)
    threshold = np.concatenate([np.arange(1, U) for U in rows.n_values])
    right = rows.rank[feature] >= threshold[:, None]
    return _with_sums(rows, feature, threshold, np.arange(len(feature)), right, alike=alike)


def _with_sums(
    rows: DistinctRows,
    feature: IntArray,
    threshold: IntArray,
    place: IntArray,
    right: BoolArray,
    *,
    alike: bool,
) -> PairTables:
    """Return the tables of rows and thresholds, of which ``place`` tells where those of all features are."""
    if alike and right.shape[1]:
        # Two sides are exchanged so that the first row is on the left.
        seen: dict[bytes, int] = {}
        packed = np.packbits(right ^ right[:, :1], axis=1)
        at = np.array([seen.setdefault(one.tobytes(), len(seen)) for one in packed])
        first = np.unique(at, return_index=True)[1]
        feature, threshold, right, place = feature[first], threshold[first], right[first], at[place]
    none = np.zeros((0, 0))
    sums: Sums
    if are_counted(rows):
        of_bit, start = bits_of_classes(rows, rows.multiplicity)
        bits = _packed(right, of_bit, int(start[-1]))
        unit = unit_of(rows)
        sums = np.empty((len(start) - 1, len(right), len(right)), unit.dtype)
        every = np.packbits(of_bit >= 0, bitorder="little").view(np.uint64)
        count_pairs(bits, every, start, unit, np.empty_like(bits), sums)
        tables = PairTables(feature, threshold, place, right, sums, none, none, bits, start, rows)
        both = sums.sum(axis=0)
    else:
        bits, start = np.zeros((0, 0), np.uint64), np.zeros(0, np.int64)
        sizes = np.zeros((1, 1)) if rows.N_min > 1 else none  # filled in below
        tables = PairTables(feature, threshold, place, right, none, sizes, none, bits, start, rows)
        sums, sizes = tables.pairs_of(np.ones(len(rows.value), dtype=bool))
        tables = replace(tables, sums=sums, sizes=sizes)
        both = _products(right, rows.moved[:, None], None)[0][:, :, 0]
    moved = np.diag(both)[:, None] - both
    if not rows.predicts_labels:
        moved = np.where(moved > 0.5, np.inf, 0.0)
    return replace(tables, moved=moved.astype(np.float64))


def are_counted(rows: DistinctRows) -> bool:
    """Return whether pairs of thresholds of rows of classes are counted by bits."""
    if not rows.of_classes or (rows.unit is None and not rows.is_whole):
        return False
    times = rows.multiplicity
    if rows.N_min > 1 and (rows.size != times).any():
        return False
    return fit_bits(times)


def unit_of(rows: DistinctRows) -> Sums:
    """Return the weight of a bit of each class (K,), of the type in which classes are added up."""
    if (unit := rows.unit) is None:
        return np.ones(rows.n_classes, np.int32)
    is_short = rows.is_whole and rows.value[:, 1].sum() < MANY
    return unit.astype(np.int32) if is_short and rows.N_min <= 1 else unit


def are_faster(rows: DistinctRows, depth: int) -> bool:
    """Return whether sums over pairs of thresholds are faster than covers, by what both took on sets of all kinds."""
    n_of, n = rows.n_values[rows.n_values > 1] - 1, rows.rank.shape[1]
    T = int(n_of.sum())
    if depth < 2 or not 0 < T <= MOST or not rows.loss.has_sums:
        return False
    # Covers evaluate few of many thresholds of a feature.
    evaluated = float(np.minimum(n_of, EVALUATED * np.log2(1.0 + n_of)).sum())
    of_covers = evaluated * n * len(n_of) * (PLAIN if rows.kind is None else WALKED)
    of_pairs = T * T * (COUNTED * n / 64 if are_counted(rows) else SUMMED * n * rows.statistics.shape[1])
    of_pairs += T * T * COMPARED
    return bool(of_pairs <= of_covers if depth == 2 else T * of_pairs <= REPEATED * evaluated * of_covers)


# ---------------------------------------------------------------------- the best trees of two levels


@kernel
def _loss_of_part(
    kind: int, total: FloatArray, less: FloatArray, alone: bool, size: float, N_min: int
) -> float:
    """Return the loss of a leaf, infinite where it has samples, but too few."""
    if 0.0 < size < N_min:
        return np.inf
    return loss_of_rest(kind, total, less, alone)


@entry
def best_roots(
    kind: int,
    sums: FloatArray,
    sizes: FloatArray,
    total: FloatArray,
    size: float,
    cost: float,
    N_min: int,
    use: NDArray[np.uint8],
    group: IntArray,
    work: FloatArray,
    by_root: FloatArray,
) -> None:
    """Find the least loss of trees of two levels by their roots, beside the root's cost.

    Parameters
    ----------
    kind
        Which loss; see :mod:`mipforest.searches.leaf_sums`.
    sums, sizes
        (T, T, V) sums over pairs of thresholds, and (T, T) samples; sizes (0, 0) where leaves may have any size.
    total, size
        (V,) sums of all rows, and the number of their samples.
    cost, N_min
        Cost of a split, and least number of samples in a leaf.
    use
        (3, T + 1) whether the root, its left and its right child may split on a threshold, and whether it has to split.
    group
        (T,) number of the thresholds that come once on a path, -1 for others.
    work
        (2, V) memory.
    by_root
        (T,) written; infinite where the root may not split so.
    """
    T, rest, less = sums.shape[0], work[0], work[1]
    has_sizes = len(sizes) > 0
    for j in range(T):
        by_root[j] = np.inf
        if use[0, j] == 0:
            continue
        own = sums[j, j]
        n_right = sizes[j, j] if has_sizes else 0.0
        n_left = size - n_right if has_sizes else 0.0
        for v in range(len(total)):
            rest[v] = total[v] - own[v]
        right = _loss_of_part(kind, own, own, True, n_right, N_min)
        left = _loss_of_part(kind, rest, rest, True, n_left, N_min)
        leaf_right, leaf_left = loss_of_rest(kind, own, own, True), loss_of_rest(kind, rest, rest, True)
        if use[1, T] != 0:
            left = np.inf
        if use[2, T] != 0:
            right = np.inf
        for k in range(T):
            if group[k] >= 0 and group[k] == group[j]:
                continue
            both = sums[j, k]
            n_both = sizes[j, k] if has_sizes else 0.0
            if use[2, k] != 0 and not (
                kind == POISSON and may_skip(both[0], both[1], own[0], own[1], leaf_right + cost - right)
            ):
                lost = cost + _loss_of_part(kind, both, both, True, n_both, N_min)
                if lost < right:
                    right = min(right, lost + _loss_of_part(kind, own, both, False, n_right - n_both, N_min))
            if use[1, k] != 0:
                for v in range(len(total)):
                    less[v] = sums[k, k, v] - both[v]
                if kind == POISSON and may_skip(less[0], less[1], rest[0], rest[1], leaf_left + cost - left):
                    continue
                n_other = sizes[k, k] - n_both if has_sizes else 0.0
                lost = cost + _loss_of_part(kind, less, less, True, n_other, N_min)
                if lost < left:
                    left = min(left, lost + _loss_of_part(kind, rest, less, False, n_left - n_other, N_min))
        by_root[j] = left + right


@kernel
def _if_too_small(size: Any, limits: Any, none: Any) -> Any:
    """Return more than any tree loses where a leaf has samples, but too few."""
    return limits[0] if limits[1] < size < limits[2] else none


class PairCounts(NamedTuple):
    """Tables of classes that are counted by bits, and what nodes may split on.

    Weights are of 32 bits where they are whole numbers and leaves may have any size, or all are 1; else doubles.

    Attributes
    ----------
    bits, start
        (T, W) rows from each threshold on, by bits, and (K + 1,) first word of each class.
    unit, samples
        (K,) weight of a bit of each class, and samples for a weight of 1.
    every, whole
        (K, T, T) weights of all rows from both thresholds of a pair on, and (K,) of all rows.
    limits
        (3,) more than any tree loses; and between which numbers of samples a leaf is too small.
    moved
        As in :class:`PairTables`.
    use, group
        (|B|, T + 1) whether each node may split on a threshold, and whether it has to split; (T,) number of the
        thresholds that come once on a path, -1 for others.
    """

    bits: NDArray[np.uint64]
    start: IntArray
    unit: Sums
    samples: Sums
    every: Sums
    whole: Sums
    limits: Sums
    moved: FloatArray
    use: NDArray[np.uint8]
    group: IntArray

    @classmethod
    def of(
        cls, tables: PairTables, rows: DistinctRows, use: NDArray[np.uint8], group: IntArray
    ) -> PairCounts:
        """Return the counts of some tables with what nodes may split on."""
        unit, N_min = unit_of(rows), rows.N_min
        is_whole = unit.dtype.kind == "i"
        # Numbers of samples are multiples of 1 but for rounding.
        limits = np.array([MANY, 0, N_min] if is_whole else [np.inf, 0.5, N_min - 0.5])
        whole = np.bincount(rows.value[:, 0].astype(np.int64), rows.multiplicity, len(unit)) * unit
        if is_whole:
            limits, whole = limits.astype(np.int32), whole.astype(np.int32)
        samples = np.ones_like(unit) if is_whole else 1.0 / unit
        return cls(
            tables.bits, tables.start, unit, samples, tables.sums, whole, limits, tables.moved, use, group
        )  # fmt: skip


class PairWork(NamedTuple):
    """What the evaluation of roots works in.

    Attributes
    ----------
    words, counts
        (T, W) and (2, K, T, T) rows of a side and their counts by pairs, of the left side first.
    lines, whole
        (8 + K, T) and (K,).
    by_root
        (T,) fewest errors of trees of two levels by their roots, beside the root's cost.
    of_children
        (4, T) of what they are made: errors of the left and of the right leaf, and of the best splits there with their
        cost; infinite where there may be none.
    """

    words: NDArray[np.uint64]
    counts: Sums
    lines: Sums
    whole: Sums
    by_root: FloatArray
    of_children: FloatArray

    @classmethod
    def of(cls, counts: PairCounts, sides: int) -> PairWork:
        """Return memory for the evaluation of roots of two levels, or of some sides of roots of three."""
        (T, W), K, kind = counts.bits.shape, len(counts.whole), counts.whole.dtype
        return cls(
            words=np.empty((T, W), np.uint64),
            counts=np.empty((sides, K, T, T), kind),
            lines=np.empty((8 + K, T), kind),
            whole=np.empty(K, kind),
            by_root=np.empty(T),
            of_children=np.empty((4, T)),
        )


class OpenRoots(NamedTuple):
    """Roots of three levels, and the best tree of what was evaluated.

    Attributes
    ----------
    of_side
        (2, T) lower bounds on the losses of both sides of each root, for leaves of any size below a split of no group.
    of_root
        (T,) lower bounds on the losses of both sides together, of the trees that the root may have.
    is_open, is_evaluated
        (T,) whether a better tree may have the root, and whether it was evaluated.
    known, best
        (1,) errors of the best tree less the cost of its root, and (3,) thresholds of its upper nodes, if it was found
        here; -1 for a leaf.
    pairs
        (1,) thresholds whose pairs were counted.
    """

    of_side: FloatArray
    of_root: FloatArray
    is_open: NDArray[np.uint8]
    is_evaluated: NDArray[np.uint8]
    known: FloatArray
    best: IntArray
    pairs: IntArray


@kernel
def best_roots_of_classes(
    tables: PairCounts, counts: Any, whole: Any, cost: float, N_min: int, node: int, above: int, work: PairWork
) -> None:  # fmt: skip
    """Find the fewest errors of trees of two levels by their roots, beside the root's cost, from counts of some rows.

    ``node`` is the root's number, and ``above`` the group of the split above it.
    """
    use, group, lines, by_root, parts = tables.use, tables.group, work.lines, work.by_root, work.of_children
    # Whole numbers stay of 32 bits.
    K, T, is_sized, cast = len(whole), counts.shape[1], N_min > 1, work.lines.dtype.type
    limits, many, none, samples = tables.limits, tables.limits[0], cast(0), tables.samples
    off_left, off_right = lines[0], lines[1]
    both, rest, on, off, n_both, n_on = lines[2], lines[3], lines[4], lines[5], lines[6], lines[7]
    for k in range(T):
        is_again = above >= 0 and group[k] == above
        off_left[k] = many if is_again or use[2 * node + 1, k] == 0 else cast(0)
        off_right[k] = many if is_again or use[2 * node + 2, k] == 0 else cast(0)
        for c in range(K):
            lines[8 + c, k] = counts[c, k, k]
    for j in range(T):
        by_root[j] = parts[0, j] = parts[1, j] = parts[2, j] = parts[3, j] = np.inf
        if use[node, j] == 0 or (above >= 0 and group[j] == above):
            continue
        n_left, n_right, most_left, most_right = cast(0), cast(0), cast(0), cast(0)
        size_left, size_right = cast(0), cast(0)
        for k in range(T):
            both[k] = rest[k] = on[k] = off[k] = n_both[k] = n_on[k] = cast(0)
        for c in range(K):
            of_right = counts[c, j, j]
            of_left = cast(whole[c] - of_right)
            n_right, most_right = cast(n_right + of_right), max(most_right, of_right)
            n_left, most_left = cast(n_left + of_left), max(most_left, of_left)
            for k in range(T):
                x = counts[c, j, k]
                y = cast(lines[8 + c, k] - x)
                both[k], rest[k] = max(both[k], x), max(rest[k], cast(of_right - x))
                on[k], off[k] = max(on[k], y), max(off[k], cast(of_left - y))
            if is_sized:
                per = samples[c]
                size_left, size_right = cast(size_left + of_left * per), cast(size_right + of_right * per)
                for k in range(T):
                    n_both[k] += counts[c, j, k] * per
                    n_on[k] += cast(lines[8 + c, k] - counts[c, j, k]) * per
        if group[j] >= 0:
            for k in range(T):
                if group[k] == group[j]:
                    both[k] = on[k] = -many
        if is_sized:
            for k in range(T):
                of_right, of_left = cast(size_right - n_both[k]), cast(size_left - n_on[k])
                both[k] -= _if_too_small(n_both[k], limits, none) + _if_too_small(of_right, limits, none)
                on[k] -= _if_too_small(n_on[k], limits, none) + _if_too_small(of_left, limits, none)
        best_left, best_right = many, many
        for k in range(T):
            best_right = min(best_right, cast(off_right[k] + n_right - both[k] - rest[k]))
            best_left = min(best_left, cast(off_left[k] + n_left - on[k] - off[k]))
        if use[2 * node + 1, T] == 0 and _if_too_small(size_left, limits, none) == none:
            parts[0, j] = n_left - most_left
        if use[2 * node + 2, T] == 0 and _if_too_small(size_right, limits, none) == none:
            parts[1, j] = n_right - most_right
        if best_left < many:
            parts[2, j] = cost + best_left
        if best_right < many:
            parts[3, j] = cost + best_right
        by_root[j] = min(parts[0, j], parts[2, j]) + min(parts[1, j], parts[3, j])


@kernel
def count_both_sides(tables: PairCounts, r: int, work: PairWork) -> None:
    """Count the pairs of the rows on both sides of a threshold, the left side first."""
    _count_pairs(tables.bits, tables.bits[r], tables.start, tables.unit, work.words, work.counts[1])
    (K, T, _), (left, right) = tables.every.shape, (work.counts[0], work.counts[1])
    for c in range(K):
        for j in range(T):
            for k in range(T):
                left[c, j, k] = tables.every[c, j, k] - right[c, j, k]


@kernel
def leaf_of_side(tables: PairCounts, side: int, r: int, N_min: int, work: PairWork) -> float:
    """Find the weights of the classes on a side of a root of three levels; return what a leaf loses there.

    Infinite where there may be none.
    """
    own, T, cast = work.whole, len(work.by_root), work.whole.dtype.type
    n, most, size, none = cast(0), cast(0), cast(0), cast(0)
    for c in range(len(own)):
        right = work.counts[1, c, r, r]
        own[c] = right if side == 1 else tables.whole[c] - right
        n, most, size = cast(n + own[c]), max(most, own[c]), cast(size + own[c] * tables.samples[c])
    if tables.use[1 + side, T] != 0 or (N_min > 1 and _if_too_small(size, tables.limits, none) != none):
        return np.inf
    return float(n - most)


@entry
def search_two(tables: PairCounts, cost: float, N_min: int, work: PairWork) -> None:
    """Find the fewest errors of trees of two levels by their roots, beside the root's cost."""
    best_roots_of_classes(tables, tables.every, tables.whole, cost, N_min, 0, -1, work)


@entry
def search_three(
    tables: PairCounts, cost: float, tolerance: float, gap: float, N_min: int, order: IntArray, most_pairs: int,
    stop: IntArray, work: PairWork, roots: OpenRoots
) -> int:  # fmt: skip
    """Evaluate the open roots of trees of three levels in an order; return how it ended.

    Parameters
    ----------
    cost, tolerance, gap
        Cost of a split; how much better than the best one a tree has to be, and the same as a share of its errors.
    N_min
        Least number of samples in a leaf; every sample is a row where it is more than 1.
    order
        Some roots.
    most_pairs, stop
        How many pairs are enough, and whether to stop.

    Returns
    -------
    :data:`DONE` or :data:`STOPPED`.
    """
    group, moved, of_side, is_open, known = (
        tables.group,
        tables.moved,
        roots.of_side,
        roots.is_open,
        roots.known,
    )
    counts, own, T = work.counts, work.whole, len(roots.is_open)
    for i in range(len(order)):
        r = order[i]
        least = tolerance if known[0] == np.inf else max(tolerance, gap * (known[0] + cost))
        if is_open[r] == 0 or of_side[0, r] + of_side[1, r] >= known[0] - least:
            continue
        if stop[FLAG] != 0 or roots.pairs[0] >= most_pairs:
            return STOPPED
        roots.pairs[0] += T
        count_both_sides(tables, r, work)
        left, right, root_left, root_right, of_all_left, of_all_right = 0.0, 0.0, -1, -1, 0.0, 0.0
        for turn in range(2 if N_min > 1 or group[r] >= 0 else 1):
            # Other roots inherit bounds on trees with leaves of any size, below a split of no group.
            N, above = (1, -1) if turn == 0 else (N_min, group[r])
            if turn == 1 and left + right >= known[0] - tolerance:
                break
            for side in range(2):
                leaf = leaf_of_side(tables, side, r, N, work)
                best_roots_of_classes(tables, counts[side], own, cost, N, 1 + side, above, work)
                j = 0
                for k in range(T):
                    if work.by_root[k] < work.by_root[j]:
                        j = k
                loss = min(leaf, cost + work.by_root[j])
                if not loss < leaf - tolerance:
                    j = -1
                if side == 0:
                    left, root_left = loss, j
                else:
                    right, root_right = loss, j
            if turn == 0:
                of_all_left, of_all_right = left, right
        if left + right < known[0] - tolerance:
            known[0] = left + right
            roots.best[0], roots.best[1], roots.best[2] = r, root_left, root_right
        roots.is_evaluated[r], is_open[r] = 1, 0
        for q in range(T):
            if is_open[q] != 0:
                # Rows on the left of r that another root has on the right, and the other way round.
                of_side[0, q] = max(of_side[0, q], of_all_left - moved[q, r])
                of_side[1, q] = max(of_side[1, q], of_all_right - moved[r, q])
            if of_side[0, q] + of_side[1, q] >= known[0] - tolerance:
                is_open[q] = 0
        of_side[0, r], of_side[1, r], roots.of_root[r] = of_all_left, of_all_right, left + right
    return DONE
