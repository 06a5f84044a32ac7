r"""Exact search of trees of two levels by covers, and of the sides of a threshold of a tree of three levels.

**Depth one.** :math:`W_1(S)`, the least loss of at most one split on some rows S, comes from one walk over each feature
(:mod:`mipforest.searches.exact.walks`), for both sides of a threshold at once. What differs between losses are
operations on tables: :mod:`mipforest.searches.exact.classes`, :mod:`~mipforest.searches.exact.squared`, by sums over
bins :mod:`~mipforest.searches.exact.binned` and, by plain loops for any loss, :mod:`~mipforest.searches.exact.plain`.

**Depth two: a cover** of S is a list of intervals of thresholds, each of one feature f with ranks lo to hi and two
numbers: a lower bound ``left`` on :math:`W_1` of the rows of S below lo, and ``right`` on that of the rows from hi on.
Fewer rows never lose more, so every tree whose first split is in the interval loses at least ``left + right``, its
**key**, beside the cost of that split. :func:`refine` takes the interval of the least key: one whose numbers were found
for other rows is evaluated anew with its hole left out; any other is split at the threshold in the middle of its rows.
Moving rows of weight m to the other side changes a number of errors by m at most, which drops thresholds near a bad
one.

**Depth three.** An open interval of thresholds of the root has bounds on :math:`W_2` of the rows below its first and
from its last threshold on, each with the cover that proves it. :func:`evaluate` raises both at one threshold, and the
two parts of the interval inherit its covers: the rows left of a threshold in a part contain those that its left cover
was made for, so that all keys remain valid, and an interval whose key has reached what the node can use never comes
back, as that only falls (:mod:`mipforest.searches.exact.open_intervals`).

**Leaves of at least** ``N_min`` **samples.** More rows may allow a split that fewer do not, so that numbers which other
rows inherit are relaxed. Let S be the rows left of a threshold of the root and of one of a node below it, each in an
interval, :math:`S_-` those left of both first thresholds, and :math:`S_+` those left of both last ones. For every tree
:math:`\tau` and leaf L

.. math::  \ell(\tau, S) \ge \ell(\tau, S_-), \qquad |S \cap L| \le |S_+ \cap L|.

So losses are those of :math:`S_-`, and leaves count the samples of :math:`S_+`: what S allows is allowed, and loses no
less. Both tend to S as the intervals narrow, and a threshold that stands alone in the root and below it has its exact
value. :func:`evaluate` raises relaxed bounds. Where these leave room, the tree of their splits is tried: if its leaves
have enough samples, it is the best one of the threshold; else the threshold stays open by itself. What drops
thresholds near a bad one holds as well: rows that change sides leave enough samples on both, counted so. Walks over
classes count samples this way; other losses, and nodes that may split without parting their rows, are relaxed to
leaves of any size.

Ranks, weights and covers are those of distinct rows: samples that are equal in features and class are one; with the
squared loss, those that are equal in features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.addresses import call
from mipforest.searches.exact.domains import ROOT, SIDE, UPPER
from mipforest.searches.exact.operations import Side, Tables

#: An interval of thresholds of a feature in a cover. ``stamp`` is the evaluation of which its numbers are: that number
#: where the interval is one threshold that was evaluated, else the number below 0. ``value`` counts for one threshold
#: that was evaluated on the rows at work.
INTERVAL = np.dtype(
    [
        ("feature", np.int32),
        ("low", np.int32),
        ("high", np.int32),
        ("stamp", np.int32),
        ("left", np.float64),
        ("right", np.float64),
    ]
)

#: What an evaluation knows of a side: the bound that more rows inherit; the bound for these rows; the least value of a
#: tree; and the loss of one leaf of any size.
OF_SIDE = np.dtype(
    [("bound", np.float64), ("limited", np.float64), ("best", np.float64), ("leaf", np.float64)]
)

#: How an evaluation ends: done; the working covers are too small, call again with larger ones; stopped; it has taken as
#: many pairs as its effort allows, and what it has proven so far counts; or it has raised the relaxed bounds, and a
#: better tree may be left.
DONE, FULL, STOPPED, PARTIAL, RELAXED = range(5)

#: Entry of the array ``stop``: not 0 to stop.
FLAG = 0

#: Entries of :attr:`CoverWorkspace.counts`: pairs of sides that were evaluated; their number from which on to stop, and
#: that from which on a side has had its share of an evaluation; this share; and whether an evaluation is to go on: with
#: both sides (1), or with the lighter one, as the heavier one has had its share (2).
PAIRS, MOST_PAIRS, ENOUGH, SHARE, BEGUN = range(5)

#: Pairs of a search that has no limit.
NO_LIMIT = int(np.iinfo(np.int64).max)


#: Intervals of thresholds, a record :data:`INTERVAL` each.
Cover = NDArray[Any]


class CoverWorkspace(NamedTuple):
    """What an evaluation works in and what it finds.

    Attributes
    ----------
    left, right
        Covers of both sides, with room for more.
    size
        (2,) number of intervals of each, in and out.
    side
        (2,) rows on each side: :class:`~mipforest.searches.exact.operations.Side`.
    found
        (2,) what is known of each side, a record :data:`OF_SIDE`.
    known
        (1,) value of both sides' trees to improve on, in and out.
    split
        (2, 2) feature and threshold of the best split of each side; -1 where it is a leaf.
    best
        (6,) root and splits of an incumbent that was found; -1 in front where none was.
    node
        The node at work: see the entries of :mod:`mipforest.searches.exact.domains`.
    losses
        (2,) what operations write.
    counts
        (5,) see the names of its entries.
    """

    left: Cover
    right: Cover
    size: IntArray
    side: Any
    found: NDArray[Any]
    known: FloatArray
    split: IntArray
    best: IntArray
    node: IntArray
    losses: FloatArray
    counts: IntArray


@kernel
def restrict(tables: Tables, sides: Any, f: int, t: int, low: int, high: int) -> None:
    """Write the rows below a threshold into the left side, and those from it on into the right one.

    Sizes of leaves are counted among the rows below ``high`` and from ``low`` on, where the tables relax.
    """
    call(tables.restrict, (tables.words, sides[0].words, sides[1].words, f, t))
    if tables.relaxes != 0 or samples_between(tables, f, low, high) == 0:
        restrict_sizes(tables, sides, f, t, low, high)


@kernel
def restrict_sizes(tables: Tables, sides: Any, f: int, t: int, low: int, high: int) -> None:
    """Write whose samples leaves count, of the same rows."""
    if tables.restrict_sized != 0:
        call(tables.restrict_sized, (tables.sized, sides[0].sized, sides[1].sized, f, t, low, high))


@kernel
def leaf_below(tables: Tables, f: int, t: int, right: bool, of: int) -> tuple[float, float]:
    """Return the loss of one leaf for the rows below a threshold, or for those from it on.

    The second number is infinite if there are samples below the threshold ``of``, or from it on, but fewer than
    ``N_min``.
    """
    loss = call(tables.leaf, (tables.words, f, t, 1 if right else 0))
    if tables.N_min <= 1:
        return loss, loss
    size, last = tables.size_below[f, of], tables.size_below.shape[1] - 1
    if right:
        size = tables.size_below[f, last] - size
    return loss, loss if size >= tables.N_min or size == 0 else np.inf


@kernel
def reach(tables: Tables, excess: float) -> float:
    """Return the weight of rows that may change sides before a loss falls by more than a value, -1 if it is unknown."""
    return excess if tables.moves != 0 else -1.0


@kernel
def pair(
    tables: Tables,
    rows: Side,
    f: int,
    below: int,
    first: int,
    cost: float,
    enough: float,
    node: IntArray,
    losses: FloatArray,
) -> tuple[float, float]:
    """Return the least losses of at most one split for the rows of a side below a rank, and from a rank on.

    Lower bounds on them where their sum is at least ``enough``.
    """
    call(tables.pair, (tables.words, rows.words, f, below, first, cost, enough, node, losses))
    return losses[0], losses[1]


@kernel
def sized_pair(
    tables: Tables, rows: Side, f: int, below: int, first: int, low: int, high: int, is_exact: bool, cost: float,
    enough: float, node: IntArray, losses: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """As :func:`pair`, for leaves of at least ``N_min`` samples, or lower bounds on them.

    Parameters
    ----------
    low, high
        Samples are those of the rows from ``low`` on, and below ``high``.
    is_exact
        Whether these are the rows of the pair.
    """
    x, y = pair(tables, rows, f, below, first, cost, enough, node, losses)
    if tables.N_min <= 1 or x + y >= enough or not (is_exact or tables.relaxes != 0):
        return x, y
    call(tables.sized_pair, (tables.sized, rows.sized, f, below, first, low, high, cost, node, losses))
    return losses[0], losses[1]


@kernel
def samples_between(tables: Tables, f: int, low: int, high: int) -> int:
    """Return the number of samples between two thresholds of a feature, 0 where sizes of leaves do not matter."""
    if tables.N_min <= 1:
        return 0
    return int(tables.size_below[f, high] - tables.size_below[f, low])


@kernel
def middle(weight_below: Any, low: int, high: int) -> int:
    """Return the threshold in an interval that comes nearest to halving the weight in it."""
    goal = 0.5 * (weight_below[low - 1] + weight_below[min(high + 1, len(weight_below) - 1)])
    a, b = low, high
    while a < b:
        m = (a + b) // 2
        if weight_below[m] < goal:
            a = m + 1
        else:
            b = m
    if a > low and goal - weight_below[a - 1] < weight_below[a] - goal:
        a -= 1
    return a


@kernel
def write_interval(
    cover: Cover, q: int, f: int, low: int, high: int, stamp: int, left: float, right: float
) -> None:
    """Write an interval of a cover."""
    one = cover[q]
    one.feature, one.low, one.high, one.stamp = f, low, high, stamp
    one.left, one.right = left, right


@kernel
def _least(cover: Cover, size: int) -> tuple[int, float]:
    """Return the interval with the least key, and that key; -1 where there is none."""
    i, least = -1, np.inf
    for q in range(size):
        x = cover[q].left + cover[q].right
        if x < least:
            i, least = q, x
    return i, least


@kernel
def refine(
    tables: Tables,
    rows: Side,
    cover: Cover,
    size: int,
    cutoff: float,
    target: float,
    stamp: int,
    cost: float,
    work: CoverWorkspace,
    side: int,
    is_exact: bool,
    stop: IntArray,
) -> tuple[int, int, float]:
    """Raise the least bound of a cover to a value, or find the best tree of two levels.

    Parameters
    ----------
    tables, rows
        The tables, and the rows of the side.
    cover, size
        Intervals of thresholds, in and out.
    cutoff
        Key from which on an interval is dropped for good.
    target
        Bound that is enough.
    stamp
        Number of this evaluation.
    cost
        Cost of a split.
    work, side
        Where the value of a tree that is found and its split are written.
    is_exact
        Whether the samples of these rows are counted, and no more.
    stop
        See the names of its entries.

    Returns
    -------
    end, size, bound
        :data:`DONE`, :data:`FULL`, :data:`STOPPED` or :data:`PARTIAL`; the number of intervals; and the least bound for
        these rows, at most ``cutoff``.
    """
    work.node[SIDE] = side
    while True:
        # What is no better than a tree that is found need not be exact.
        enough = min(cutoff, work.found[side].best - cost)
        if work.node[ROOT] < 0:
            cutoff = enough  # nobody inherits the cover
        i, bound = _least(cover, size)
        if work.node[ROOT] < 0:
            known = min(work.found[side].best, cost + min(bound, cutoff))
            work.found[side].limited = max(work.found[side].limited, known)
        if i < 0 or bound >= target or bound >= cutoff:
            return DONE, size, min(bound, cutoff)
        f, low, high, seen = cover[i].feature, cover[i].low, cover[i].high, cover[i].stamp
        if low == high and seen == stamp:
            return DONE, size, bound  # evaluated on these rows
        if stop[FLAG] != 0 or work.counts[PAIRS] >= work.counts[MOST_PAIRS]:
            return STOPPED, size, bound
        if work.counts[PAIRS] >= work.counts[ENOUGH]:
            return PARTIAL, size, bound
        if size + 3 > len(cover):
            return FULL, size, bound
        left, right = cover[i].left, cover[i].right
        work.counts[PAIRS] += 1
        work.node[UPPER] = f
        weight_below = tables.weight_below[f]
        if low == high or abs(seen) != stamp:
            x, y = sized_pair(
                tables, rows, f, low, high, low, high, is_exact and low == high, cost, enough, work.node, work.losses
            )  # fmt: skip
            x, y = max(x, left), max(y, right)
            write_interval(cover, i, f, low, high, stamp, x, y)
            if x + y >= cutoff:
                size -= 1
                cover[i] = cover[size]
            elif low == high:
                _note_tree(work, side, f, low, x + y + cost)
            continue
        c = middle(weight_below, low, high)
        x, y = sized_pair(tables, rows, f, c, c, low, high, False, cost, enough, work.node, work.losses)
        x, y = max(x, left), max(y, right)  # no less, even where they are bounds
        size -= 1
        cover[i] = cover[size]
        if x + y < cutoff:
            # Where samples of more rows are counted, this one is evaluated again.
            write_interval(cover, size, f, c, c, stamp if tables.N_min <= 1 else -stamp, x, y)
            size += 1
            if tables.N_min <= 1:
                _note_tree(work, side, f, c, x + y + cost)
        near = reach(tables, x + y - cutoff)
        a = c - 1
        while a >= low and weight_below[c] - weight_below[a] <= near:
            a -= 1
        if a >= low and left + y < cutoff:
            write_interval(cover, size, f, low, a, -stamp, left, y)
            size += 1
        a = c + 1
        while a <= high and weight_below[a] - weight_below[c] <= near:
            a += 1
        if a <= high and x + right < cutoff:
            write_interval(cover, size, f, a, high, -stamp, x, right)
            size += 1


@kernel
def _note_tree(work: CoverWorkspace, side: int, f: int, t: int, value: float) -> None:
    """Note the tree of a threshold that was evaluated, if it is better than what is known."""
    if value < work.found[side].best:
        work.found[side].best, work.split[side, 0], work.split[side, 1] = value, f, t


@kernel
def thin(cover: Cover, size: int, cutoff: float) -> tuple[int, float]:
    """Drop intervals whose key has reached a value; return how many are left, and the least key, at most that."""
    least, q = cutoff, 0
    while q < size:
        x = cover[q].left + cover[q].right
        if x >= cutoff:
            size -= 1
            cover[q] = cover[size]
        else:
            least = min(least, x)
            q += 1
    return size, least


@entry
def evaluate_all(tables: Tables, work: CoverWorkspace, cost: float, cutoff: float, stop: IntArray) -> int:
    """Find the best tree of two levels for all rows, if it loses less than a value; the cover is the left one.

    Returns
    -------
    int
        As :func:`refine`; ``work.found[0].limited`` is a lower bound, at most ``cutoff``, also while it runs, and
        ``work.found[0].best`` the least loss.
    """
    target = min(cutoff, work.found[0].best) - cost
    work.node[ROOT] = -1
    end, work.size[0], bound = refine(
        tables, work.side[0], work.left, work.size[0], cutoff - cost, target, 1, cost, work, 0, True, stop
    )
    work.found[0].limited = min(work.found[0].best, cost + bound)
    return end


@entry
def evaluate_each(
    tables: Tables, work: CoverWorkspace, first: IntArray, cost: float, value: FloatArray, stop: IntArray
) -> int:
    """Find the value of the best tree of two levels for every threshold of its root, on all rows.

    Parameters
    ----------
    first
        (p + 1,) number of each feature's first threshold.
    value
        (q,) written, up to where the search is stopped; infinite where a side is too small.
    """
    for f in range(len(first) - 1):
        for t in range(1, first[f + 1] - first[f] + 1):
            if stop[FLAG] != 0 or work.counts[PAIRS] >= work.counts[MOST_PAIRS]:
                return STOPPED
            work.counts[PAIRS] += 1
            work.node[SIDE], work.node[ROOT], work.node[UPPER] = 0, -1, f
            x, y = sized_pair(tables, work.side[0], f, t, t, t, t, True, cost, np.inf, work.node, work.losses)
            value[first[f] + t - 1] = cost + x + y
            _note_tree(work, 0, f, t, cost + x + y)
    return DONE


@kernel
def evaluate(
    tables: Tables,
    work: CoverWorkspace,
    f: int,
    t: int,
    low: int,
    high: int,
    left: float,
    right: float,
    stamp: int,
    cost: float,
    tolerance: float,
    again: bool,
    stop: IntArray,
) -> int:
    """Evaluate a threshold of the root: bounds and covers of both sides, and their trees.

    Parameters
    ----------
    tables
        The tables of all rows.
    work
        Covers of the open interval, and ``known``; all else is written.
    f, t
        Feature and threshold.
    low, high
        First and last threshold of the interval.
    left, right
        Bounds on :math:`W_2` left of the interval's first and right of its last threshold.
    stamp
        Number of this evaluation, unlike those before.
    cost, tolerance
        Cost of a split, and values closer than this are the same.
    again
        Whether the call goes on with larger covers.
    stop
        See the names of its entries.

    Returns
    -------
    int
        :data:`DONE`, :data:`FULL`, :data:`STOPPED`, :data:`PARTIAL` or :data:`RELAXED`.
    """
    found = work.found
    work.node[ROOT] = f
    is_exact = samples_between(tables, f, low, high) == 0
    if not again:
        restrict(tables, work.side, f, t, low, high)
        for side in range(2):
            found[side].leaf, found[side].best = leaf_below(
                tables, f, t, side == 1, high if side == 0 else low
            )
            if tables.must[side] != 0:
                found[side].leaf, found[side].best = np.inf, np.inf
            work.split[side, 0] = -1
            cover, other, own = (work.left, right, left) if side == 0 else (work.right, left, right)
            work.size[side], key = thin(cover, work.size[side], work.known[0] - tolerance - other - cost)
            found[side].bound = max(own, min(found[side].leaf, cost + key))
            found[side].limited = found[side].bound
    side = 0 if 2 * tables.weight_below[f, t] > tables.weight_below[f, -1] else 1
    if work.counts[BEGUN] == 2:
        side = 1 - side
    while True:
        if is_exact:
            _note_both(work, f, t, found[0].best + found[1].best, tolerance)
        keep_left, keep_right = work.known[0] - tolerance - right, work.known[0] - tolerance - left
        left_done = found[0].limited >= min(keep_left, found[0].best) - tolerance
        right_done = found[1].limited >= min(keep_right, found[1].best) - tolerance
        if left_done and right_done:
            is_closed = is_exact or _has_tree_of_bounds(tables, work, f, t, cost, tolerance)
            return DONE if is_closed else RELAXED
        if left_done if side == 0 else right_done:
            side = 1 - side
        end = _raise(tables, work, side, left, right, stamp, cost, tolerance, is_exact, stop)
        if end != DONE and not _turns(work, end):
            return end
        side = 1 - side


@kernel
def _note_both(work: CoverWorkspace, f: int, t: int, value: float, tolerance: float) -> None:
    """Note the tree of both sides of a threshold, if it is better than what is known."""
    if value < work.known[0] - tolerance:
        work.known[0], work.best[0], work.best[1] = value, f, t
        for s in range(2):
            work.best[2 + 2 * s], work.best[3 + 2 * s] = work.split[s, 0], work.split[s, 1]


@kernel
def _has_tree_of_bounds(
    tables: Tables, work: CoverWorkspace, f: int, t: int, cost: float, tolerance: float
) -> bool:
    """Return whether no tree of a threshold is better than what is known, and note the tree of its relaxed splits.

    That is best where both sides lose what their relaxations do.
    """
    relaxed, value = work.found[0].best + work.found[1].best, 0.0
    if relaxed >= work.known[0] - tolerance:
        return True
    restrict_sizes(tables, work.side, f, t, t, t)
    for side in range(2):
        g, c = work.split[side, 0], work.split[side, 1]
        if g < 0:
            _, loss = leaf_below(tables, f, t, side == 1, t)
        else:
            work.counts[PAIRS] += 1
            work.node[SIDE], work.node[UPPER] = side, g
            x, y = sized_pair(
                tables, work.side[side], g, c, c, c, c, True, cost, np.inf, work.node, work.losses
            )
            loss = cost + x + y
        value += loss
    _note_both(work, f, t, value, tolerance)
    return bool(value <= relaxed + tolerance)


@kernel
def _turns(work: CoverWorkspace, end: int) -> bool:
    """Return whether an evaluation goes on with the share of the other side.

    A partial evaluation proves something of both sides: else one part of the interval would go on with nothing.
    """
    if end != PARTIAL or work.counts[BEGUN] == 2:
        return False
    work.counts[BEGUN] = 2
    work.counts[ENOUGH] = work.counts[PAIRS] + work.counts[SHARE]
    return True


@kernel
def _raise(
    tables: Tables,
    work: CoverWorkspace,
    side: int,
    left: float,
    right: float,
    stamp: int,
    cost: float,
    tolerance: float,
    is_exact: bool,
    stop: IntArray,
) -> int:
    """Raise the bounds of a side; parameters as for :func:`evaluate` and :func:`refine`."""
    found = work.found
    cutoff = work.known[0] - tolerance - (right if side == 0 else left)
    cover = work.left if side == 0 else work.right
    end, work.size[side], bound = refine(
        tables,
        work.side[side],
        cover,
        work.size[side],
        cutoff - cost,
        min(cutoff, found[side].best) - cost,
        stamp,
        cost,
        work,
        side,
        is_exact,
        stop,
    )
    key = cutoff - cost
    for q in range(work.size[side]):
        key = min(key, cover[q].left + cover[q].right)
    found[side].bound = max(found[side].bound, min(found[side].leaf, cost + key))
    found[side].limited = max(found[side].limited, min(found[side].best, cost + bound))
    return int(end)
