r"""Best splits by sums over bins: losses of several statistics, and of many classes, where rows are many.

The ranks of every feature are cut into bins of about as many rows. For a side of a root's threshold, the sums of the
statistics over the rows in the first bins of one feature are kept by the bins of every other one. A threshold of that
feature adds the rows of one bin at most. So the sums over the rows of a part, up to each bin of each feature, take a
number of steps that does not grow with the rows, and all bins of a feature are steps of vectors.

**Bounds.** Fewer rows never lose more. A split of a part between the rows of bin b of a feature loses at least what the
rows before the bin and those behind it lose in two leaves. Splits between two bins are known exactly. Only bins whose
bound is below the best split are walked row by row, and none where the bounds of both parts are enough for what was
asked.

**Losses** are what rows lose where nothing is saved, less what is saved. Of labels a row saves by each label against
its costliest one, and a leaf the greatest sum of each target; of numbers with the weight w and the weighted targets
:math:`s_k`, a leaf saves :math:`\sum_k s_k^2 / w`, and of rates as :mod:`mipforest.searches.leaf_sums` has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.searches import entry, implement, kernel
from mipforest.searches.exact.domains import has_to_split, usable
from mipforest.searches.exact.plain import PlainSide, PlainTables
from mipforest.searches.exact.plain import leaf_below as _leaf_below
from mipforest.searches.exact.plain import restrict as _restrict
from mipforest.searches.leaf_sums import LABELS, POISSON, loss_of_sums, may_skip


class BinnedTables(NamedTuple):
    """Rows, their bins, and what they save.

    Attributes
    ----------
    plain
        The rows as plain loops have them.
    bin
        (p, U) bin of each rank of each feature.
    bin_of_row
        (n, p) bin of each row in each feature.
    is_wide
        (p, B) whether a bin has several ranks.
    first, column, amount
        (n + 1,) first entry of each row; (E,) columns and amounts of the entries: whole numbers of 32 bits, or doubles.
        Column 0 is what a row loses where nothing is saved. Of pinball losses see
        :mod:`mipforest.searches.exact.cells`.
    columns
        (V,) zeros; V is the number of columns. The first is 1 where column 0, which then has no entries, is the sum of
        all others.
    least
        (1,) half of the least weight of a row that predicts numbers: sums of less weight are rounding errors.
    """

    plain: PlainTables
    bin: NDArray[np.uint8]
    bin_of_row: NDArray[np.uint8]
    is_wide: NDArray[np.uint8]
    first: IntArray
    column: NDArray[np.int32]
    amount: NDArray[Any]
    columns: NDArray[np.uint8]
    least: FloatArray


class BinnedSide(NamedTuple):
    """Rows of a side, and their sums.

    Attributes
    ----------
    plain
        The rows in every order.
    start
        (p, B + 1) first place of each bin in the order of each feature.
    sums
        (p, B + 1, p, V, B) of each feature, over the rows in its first bins, by the bins of each feature.
    known
        (p + 1,) whether the sums of each feature are those of the rows of the side; last, whether ``whole`` is.
    whole
        (p, V, B) over all rows up to each bin.
    part
        (2, p, V, B) over the rows of both parts up to each bin.
    lines
        (6, B) workspace.
    bound
        (2, p, B) what a split of each part within a bin loses at least.
    now
        (2, V) workspace: sums of a part up to a row, and of all of it.
    """

    plain: PlainSide
    start: IntArray
    sums: NDArray[Any]
    known: IntArray
    whole: NDArray[Any]
    part: NDArray[Any]
    lines: NDArray[Any]
    bound: FloatArray
    now: NDArray[Any]


# ---------------------------------------------------------------------- sides


@kernel
def restrict(tables: BinnedTables, sides: tuple[BinnedSide, BinnedSide], f: int, t: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one."""
    _restrict(tables.plain, (sides[0].plain, sides[1].plain), f, t)
    for s in range(2):
        note_bins(tables, sides[0] if s == 0 else sides[1])


@kernel
def note_bins(tables: BinnedTables, side: BinnedSide) -> None:
    """Write where the bins of a side begin, and that nothing else is known of its rows."""
    p, B = tables.is_wide.shape
    begin, m = side.plain.span[0], side.plain.span[1]
    for g in range(p):
        start, order, bins = side.start[g], side.plain.order[g], tables.bin_of_row
        for b in range(B + 1):
            start[b] = 0
        for i in range(begin, begin + m):
            start[bins[order[i], g] + 1] += 1
        start[0] = begin
        for b in range(B):
            start[b + 1] += start[b]
    for g in range(p + 1):
        side.known[g] = 0


@kernel
def leaf_below(tables: BinnedTables, f: int, t: int, right: bool) -> float:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on."""
    return _leaf_below(tables.plain, f, t, right)


# ---------------------------------------------------------------------- sums


@kernel
def _add(
    order: Int32Array, begin: int, end: int, sign: int, bins: NDArray[Any], first: IntArray, column: NDArray[Any],
    amount: NDArray[Any], to: NDArray[Any],
) -> None:  # fmt: skip
    """Add the entries of the rows in some places of an order to sums (p, V, B) by bins, or take them off."""
    for i in range(begin, end):
        row = order[i]
        begin_entries, end_entries = first[row], first[row + 1]
        if end_entries - begin_entries == 1:
            v, x = column[begin_entries], sign * amount[begin_entries]
            for g in range(to.shape[0]):
                to[g, v, bins[row, g]] += x
            continue
        for g in range(to.shape[0]):
            own, b = to[g], bins[row, g]
            for e in range(begin_entries, end_entries):
                own[column[e], b] += sign * amount[e]


@kernel
def _keep_sums(tables: BinnedTables, rows: BinnedSide, f: int) -> None:
    """Write the sums over the rows in the first bins of a feature."""
    sums, start, order = rows.sums[f], rows.start[f], rows.plain.order[f]
    size = sums[0].size
    sums[0].reshape(size)[:] = 0
    for b in range(len(start) - 1):
        old, new = sums[b].reshape(size), sums[b + 1].reshape(size)
        for j in range(size):
            new[j] = old[j]
        _add(
            order, start[b], start[b + 1], 1, tables.bin_of_row, tables.first, tables.column, tables.amount,
            sums[b + 1],
        )  # fmt: skip


@kernel
def _sum_below(tables: BinnedTables, rows: BinnedSide, f: int, t: int, to: NDArray[Any]) -> None:
    """Write the sums over the rows of a side below a rank up to each bin of each feature."""
    order, rank, start, size = rows.plain.order[f], tables.plain.rank[f], rows.start[f], to.size
    b = int(tables.bin[f, t])
    begin, end = start[b], start[b + 1]
    middle = begin
    while middle < end and rank[order[middle]] < t:
        middle += 1
    # From the nearer side of the bin.
    upwards = middle - begin <= end - middle
    flat, known = to.reshape(size), rows.sums[f, b if upwards else b + 1].reshape(size)
    for j in range(size):
        flat[j] = known[j]
    _add(
        order, begin if upwards else middle, middle if upwards else end, 1 if upwards else -1, tables.bin_of_row,
        tables.first, tables.column, tables.amount, to,
    )  # fmt: skip
    _cumulate(to, tables.columns[0] != 0)


@kernel
def _cumulate(sums: NDArray[Any], adds_up: bool) -> None:
    """Add up sums by bins (p, V, B) from bin to bin, and column 0 where it is the sum of all others."""
    p, V, B = sums.shape
    lines = sums.reshape(sums.size)
    if adds_up:
        for g in range(p):
            base = sums[g, 0]
            for b in range(B):
                base[b] = 0
            for v in range(1, V):
                own = sums[g, v]
                for b in range(B):
                    base[b] += own[b]
    for first in range(0, sums.size, B):
        total = lines[first]
        for b in range(first + 1, first + B):
            total += lines[b]
            lines[b] = total


@kernel
def _prepare(tables: BinnedTables, rows: BinnedSide, f: int) -> None:
    """Write the sums of a feature, and those over all rows, where they are those of another side."""
    p, size = len(rows.start), rows.whole.size
    if rows.known[f] == 0:
        rows.known[f] = 1
        _keep_sums(tables, rows, f)
    if rows.known[p] == 0:
        rows.known[p] = 1
        whole, last = rows.whole.reshape(size), rows.sums[f, -1].reshape(size)
        for j in range(size):
            whole[j] = last[j]
        _cumulate(rows.whole, tables.columns[0] != 0)


@kernel
def sum_parts(tables: BinnedTables, rows: BinnedSide, f: int, below: int, first: int) -> None:
    """Write the sums over the rows of a side below a rank, and from a rank on, up to each bin of each feature."""
    _prepare(tables, rows, f)
    part, size = rows.part, rows.whole.size
    _sum_below(tables, rows, f, below, part[0])
    if first != below:
        _sum_below(tables, rows, f, first, part[1])
    whole, left, right = (
        rows.whole.reshape(size),
        part[0 if first == below else 1].reshape(size),
        part[1].reshape(size),
    )
    for j in range(size):
        right[j] = whole[j] - left[j]


# ---------------------------------------------------------------------- what leaves save


@kernel
def _saved(kind: int, sums: NDArray[Any], least: float) -> float:
    """Return what a leaf saves by its sums (V,)."""
    V, saved = len(sums), 0.0
    if kind > LABELS:
        K = (V - 1) // (kind - LABELS)
        for first in range(1, V, K):
            most = sums[first]
            for v in range(first + 1, first + K):
                most = max(most, sums[v])
            saved += most
        return saved
    w = float(sums[1])
    if w <= least:
        return 0.0
    if kind == POISSON:
        return float(sums[0] - loss_of_sums(kind, w, float(sums[2]), float(sums[0])))
    for v in range(2, V):
        saved += float(sums[v]) * float(sums[v])
    return saved / w


@kernel
def _saved_of_both(kind: int, sums: NDArray[Any], now: NDArray[Any], least: float) -> float:
    """Return what two leaves save by the sums (V,) of one of them, and those of both (V,)."""
    V, saved = len(sums), 0.0
    if kind > LABELS:
        K = (V - 1) // (kind - LABELS)
        for first in range(1, V, K):
            most, other = now[first], sums[first] - now[first]
            for v in range(first + 1, first + K):
                most, other = max(most, now[v]), max(other, sums[v] - now[v])
            saved += most + other
        return saved
    w, rest = float(now[1]), float(sums[1] - now[1])
    if kind == POISSON:
        q, s = float(now[0]), float(now[2])
        if w > least:
            saved = q - loss_of_sums(kind, w, s, q)
        q, s = float(sums[0] - now[0]), float(sums[2] - now[2])
        return saved + (q - loss_of_sums(kind, rest, s, q) if rest > least else 0.0)
    other = 0.0
    for v in range(2, V):
        x, y = float(now[v]), float(sums[v] - now[v])
        saved += x * x
        other += y * y
    return (saved / w if w > least else 0.0) + (other / rest if rest > least else 0.0)


@kernel
def _saved_by_bin(kind: int, sums: NDArray[Any], least: float, lines: NDArray[Any]) -> None:
    """Write what the rows up to each bin save (``lines[0]``), and what those behind it save (``lines[1]``).

    Parameters
    ----------
    sums
        (V, B) up to each bin.
    """
    V, B = sums.shape
    saved, other, most, rest = lines[0], lines[1], lines[2], lines[3]
    for b in range(B):
        saved[b] = 0
        other[b] = 0
    if kind > LABELS:
        K = (V - 1) // (kind - LABELS)
        for first in range(1, V, K):
            own, total = sums[first], sums[first, B - 1]
            for b in range(B):
                most[b] = own[b]
                rest[b] = total - own[b]
            for v in range(first + 1, first + K):
                own, total = sums[v], sums[v, B - 1]
                for b in range(B):
                    x, y = own[b], total - own[b]
                    most[b] = x if x > most[b] else most[b]
                    rest[b] = y if y > rest[b] else rest[b]
            for b in range(B):
                saved[b] += most[b]
                other[b] += rest[b]
        return
    q, w, last = sums[0], sums[1], B - 1
    if kind == POISSON:
        for b in range(B):
            x, y, left = w[b], w[last] - w[b], q[last] - q[b]
            if x > least:
                saved[b] = q[b] - loss_of_sums(kind, x, sums[2, b], q[b])
            if y > least:
                other[b] = left - loss_of_sums(kind, y, sums[2, last] - sums[2, b], left)
        return
    for v in range(2, V):
        own, total = sums[v], sums[v, last]
        for b in range(B):
            x, y = own[b], total - own[b]
            saved[b] += x * x
            other[b] += y * y
    for b in range(B):
        x, y = w[b], w[last] - w[b]
        saved[b] = saved[b] / x if x > least else 0.0
        other[b] = other[b] / y if y > least else 0.0


# ---------------------------------------------------------------------- best splits


@kernel
def pair(
    tables: BinnedTables, rows: BinnedSide, f: int, below: int, first: int, cost: float, enough: float,
    totals: FloatArray, out: FloatArray,  # noqa: ARG001
) -> tuple[float, float]:  # fmt: skip
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    Lower bounds on both where these sum up to what is enough.
    """
    sum_parts(tables, rows, f, below, first)
    best_left, low_left = _at_bins(tables, rows, 0, cost, out)
    best_right, low_right = _at_bins(tables, rows, 1, cost, out)
    if low_left + low_right >= enough:
        return low_left, low_right
    best_left = _within_bins(tables, rows, 0, f, 0, below, cost, best_left)
    if best_left + low_right >= enough:
        return best_left, low_right
    best_right = _within_bins(tables, rows, 1, f, first, 2**31 - 1, cost, best_right)
    return best_left, best_right


@kernel
def _at_bins(
    tables: BinnedTables, rows: BinnedSide, s: int, cost: float, out: FloatArray
) -> tuple[float, float]:
    """Return the least loss of one leaf, or of a split of a part between two bins, and a bound on all of its splits.

    What splits within each bin lose at least is written.
    """
    p, V, B = rows.whole.shape
    kind, use, group, lines = tables.plain.kind, tables.plain.use, tables.plain.group, rows.lines
    total, bound = rows.now[1], rows.bound[s]
    for v in range(V):
        total[v] = rows.part[s, 0, v, B - 1]
    lost = float(total[0])
    leaf = max(0.0, lost - _saved(kind, total, tables.least[0]))
    best, least, is_usable = np.inf, np.inf, False
    for g in range(p):
        own = bound[g]
        if not usable(use, group, out, s, g):
            for b in range(B):
                own[b] = np.inf
            continue
        is_usable = True
        sums, is_wide = rows.part[s, g], tables.is_wide[g]
        _saved_by_bin(kind, sums, tables.least[0], lines)
        saved, other, base = lines[0], lines[1], sums[0]
        most = saved[0] + other[0]
        for b in range(1, B):
            x = saved[b] + other[b]
            most = x if x > most else most
        best = min(best, lost - float(most))
        own[0] = lost - float(base[0] + other[0])
        for b in range(1, B):
            own[b] = lost - float(base[b] - base[b - 1] + saved[b - 1] + other[b])
        if kind > LABELS:
            # Nor do rows save more with those of the bin before them, and with those behind them.
            for b in range(B):
                x = lost - float(saved[b] + (other[b - 1] if b > 0 else saved[B - 1]))
                own[b] = x if x > own[b] else own[b]
        for b in range(B):
            own[b] = own[b] if is_wide[b] != 0 else np.inf
        for b in range(B):
            least = own[b] if own[b] < least else least
    if has_to_split(use, out, s):
        leaf = leaf + cost if is_usable else np.inf
    best = min(leaf, cost + max(0.0, best))
    return best, min(best, cost + max(0.0, least))


@kernel
def _within_bins(
    tables: BinnedTables, rows: BinnedSide, s: int, f: int, low: int, high: int, cost: float, best: float
) -> float:
    """Return the least loss of a split of a part, of those between two bins and those within."""
    p, B = tables.is_wide.shape
    bound, at, least = rows.bound[s], 0, np.inf
    flat = bound.reshape(p * B)
    for j in range(p * B):
        if flat[j] < least:
            at, least = j, flat[j]
    if cost + least >= best:
        return best
    for v in range(rows.now.shape[1]):
        rows.now[1, v] = rows.part[s, 0, v, B - 1]
    by, total = tables.plain.rank[f], rows.now[1]
    leaf = float(total[0]) - _saved(tables.plain.kind, total, tables.least[0])
    best = _within(tables, rows, s, at // B, at % B, by, low, high, cost, leaf, best)
    for j in range(p * B):
        if j != at and cost + flat[j] < best:
            best = _within(tables, rows, s, j // B, j % B, by, low, high, cost, leaf, best)
    return best


@kernel
def _within(
    tables: BinnedTables, rows: BinnedSide, s: int, g: int, b: int, by: Int32Array, low: int, high: int, cost: float,
    leaf: float, best: float,
) -> float:  # fmt: skip
    """Return the least loss of a split of a part within a bin, or what is known, if that is less.

    ``leaf`` is the loss of the part as one leaf.
    """
    kind, V, moved = tables.plain.kind, rows.now.shape[1], tables.plain.moved
    now, total, order, rank = rows.now[0], rows.now[1], rows.plain.order[g], tables.plain.rank[g]
    first, column, amount = tables.first, tables.column, tables.amount
    for v in range(V):
        now[v] = rows.part[s, g, v, b - 1] if b > 0 else 0
    due, lost, last, new = 0.0, float(total[0]), -1, False
    for i in range(rows.start[g, b], rows.start[g, b + 1]):
        row = order[i]
        if not low <= by[row] < high:
            continue
        if new and rank[row] != last:
            is_idle = kind == POISSON and may_skip(now[1], now[2], total[1], total[2], leaf + cost - best)
            if due <= 0.0 and not is_idle:
                value = cost + max(0.0, lost - _saved_of_both(kind, total, now, tables.least[0]))
                best = min(best, value)
                due = (value - best) / moved if kind > LABELS else 0.0
            new = False
        for e in range(first[row], first[row + 1]):
            now[column[e]] += amount[e]
        new, last = True, rank[row]
        due -= 1.0
    return best


@entry
def note_all_bins(tables: BinnedTables, side: BinnedSide) -> None:
    """Write where the bins of all rows begin."""
    note_bins(tables, side)


implement(BinnedTables, restrict, leaf_below, pair)
