r"""All cards of a few rules: sets of rules tried in turn, and the best integer points of each, by branch and bound.

**Points.** They are searched over boxes. T rules partition the samples into :math:`2^T` cells, and the log-loss reads
the numbers P and Q of either class in each. Over a box of points, the loss is convex in points and intercept; where
:math:`(s, \beta)` is any point with the gradient g,

.. math:: f(s', \beta') \ge f(s, \beta) + g^\top (s' - s, \beta' - \beta)

for all others, and the right side is least at a corner of the box. The intercept has a box too: the best one for any
points is between ``logit(r)`` minus the largest total and minus the least one
(:func:`~mipforest.heuristics.score_cards.best_intercepts`). So the bound is a true one wherever Newton's method stops.

**Cuts.** Where each rule is a cut of a feature, all cuts but one are tried in turn, and the last one is swept. With
L(x) = x log x, no card has less log-loss than

.. math:: \mathrm{SAT} = \sum_c L(P_c + Q_c) - L(P_c) - L(Q_c),

where each cell has its own risk. A sweep of the third feature's sorted samples moves them one by one from one cell to
another, which changes two terms, read from a table of L. The points of cards with SAT below
the best loss known are searched. With four rules, those of three features are searched within each cut of the fourth
one.

**Skipping.** Adding a sample to a cell of n raises SAT by 0 to :math:`\log N + 1`; taking it away lowers it by as much.
So if SAT is at least m over all cuts of the third feature, it is at least :math:`m - d (\log N + 1)` once d samples
have changed sides of the second cut, and these cuts are skipped while this is above the best loss; likewise for the
first cut, with the least m over all second ones, and for that of a fourth rule, with the least m over all first ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel

#: Boxes whose bound is this close to the best card's loss, as a share of it, are not searched.
CLOSE = 1e-9

#: Steps of Newton's method in a box; it stops much earlier, and its bound holds wherever it stops.
STEPS = 50

#: Added to the diagonal of second derivatives, as a share of the number of samples: cells without samples have none.
DAMPING = 1e-10

#: Points this close to whole numbers count as such when a card is read off a box.
WHOLE = 1e-6


class CardWorkspace(NamedTuple):
    """Memory of a search of points: kernels allocate nothing.

    Attributes
    ----------
    stack
        (depth, 3, T + 1) boxes that wait: least and most points, and where to begin. A box that is split leaves two, so
        there is never more than one for each halving of a range of points, and one.
    space
        Vectors and matrices of Newton's method.
    now
        (6, T + 1) the box at hand, its points and those rounded.
    cells
        (2, 2^T) samples of the second class and of the first in each cell; bit t says whether rule t holds.
    """

    stack: FloatArray
    space: FloatArray
    now: FloatArray
    cells: FloatArray

    @classmethod
    def of(cls, T: int) -> CardWorkspace:
        """Return memory for T rules."""
        m = T + 1
        return cls(
            np.zeros((64 + 24 * T, 3, m)),
            np.zeros((5 + 3 * m, m)),
            np.zeros((6, m)),
            np.zeros((2, 1 << T)),
        )


class Cards(NamedTuple):
    """What a search looks for, and what it finds.

    Attributes
    ----------
    ranges
        (K, 2) least and most points of every rule, 0 between them.
    exact
        Whether points of 0 are excluded, of rules whose range is not 0 alone.
    log_odds
        Logarithm of the number of samples of the second class over that of the first.
    table, increments
        (n + 1,) values of x log x, and (n,) by how much each next one is larger.
    chosen, points
        (T,) rules and points of a better card, if one is found, are written here.
    workspace
        Memory for T rules.
    """

    ranges: FloatArray
    exact: bool
    log_odds: float
    table: FloatArray
    increments: FloatArray
    chosen: IntArray
    points: IntArray
    workspace: CardWorkspace


@kernel
def _value(
    P: FloatArray, Q: FloatArray, T: int, x: FloatArray, gradient: FloatArray, second: FloatArray
) -> float:
    """Return the log-loss at points and intercept x, and write its first and second derivatives."""
    loss = 0.0
    for t in range(T + 1):
        gradient[t] = 0.0
        for r in range(T + 1):
            second[t, r] = 0.0
    for cell in range(1 << T):
        n = P[cell] + Q[cell]
        if n == 0.0:
            continue
        score = x[T]
        for t in range(T):
            if cell >> t & 1:
                score += x[t]
        size = math.exp(-abs(score))
        loss += math.log1p(size) * n + (Q[cell] * score if score > 0 else -P[cell] * score)
        risk = 1.0 / (1.0 + size) if score > 0 else size / (1.0 + size)
        slope, curve = n * risk - P[cell], n * size / (1.0 + size) ** 2
        for t in range(T + 1):
            if t < T and not cell >> t & 1:
                continue
            gradient[t] += slope
            for r in range(t + 1):
                if r == T or cell >> r & 1:
                    second[t, r] += curve
    return loss


@kernel
def _step(
    m: int,
    free: FloatArray,
    gradient: FloatArray,
    second: FloatArray,
    damping: float,
    A: FloatArray,
    d: FloatArray,
) -> None:
    """Write Newton's step for the free ones of m variables to d, by elimination in A; the others stay."""
    for t in range(m):
        for r in range(m):
            A[t, r] = second[max(t, r), min(t, r)] if free[t] and free[r] else 0.0
        A[t, t] = A[t, t] + damping if free[t] else 1.0
        d[t] = -gradient[t] if free[t] else 0.0
    for t in range(m):
        for r in range(t + 1, m):
            share = A[r, t] / A[t, t]
            for c in range(t, m):
                A[r, c] -= share * A[t, c]
            d[r] -= share * d[t]
    for t in range(m - 1, -1, -1):
        for c in range(t + 1, m):
            d[t] -= A[t, c] * d[c]
        d[t] /= A[t, t]


@kernel
def _over_box(
    P: FloatArray,
    Q: FloatArray,
    T: int,
    low: FloatArray,
    high: FloatArray,
    x: FloatArray,
    enough: float,
    log_odds: float,
    space: FloatArray,
) -> float:
    """Minimise over a box from x on, which is moved; return a lower bound, as soon as it is above ``enough``."""
    most, least = 0.0, 0.0
    for t in range(T):
        x[t] = min(max(x[t], low[t]), high[t])
        most, least = most + max(0.0, high[t]), least + min(0.0, low[t])
    low[T], high[T] = log_odds - most, log_odds - least
    x[T] = min(max(x[T], low[T]), high[T])
    m = T + 1
    gradient, new_gradient, other, free, d = space[0], space[1], space[2], space[3], space[4]
    second, new_second, A = space[5 : 5 + m], space[5 + m : 5 + 2 * m], space[5 + 2 * m :]
    loss, bound = _value(P, Q, T, x, gradient, second), -np.inf
    damping = 0.0
    for cell in range(1 << T):
        damping += DAMPING * (P[cell] + Q[cell])
    for _ in range(STEPS):
        found = loss
        for t in range(m):
            at_low, at_high = x[t] <= low[t], x[t] >= high[t]
            free[t] = 0.0 if (at_low and gradient[t] >= 0) or (at_high and gradient[t] <= 0) else 1.0
            found += min(gradient[t] * (low[t] - x[t]), gradient[t] * (high[t] - x[t]))
        bound = max(bound, found)
        if bound >= enough or loss - bound <= CLOSE * 0.1 * loss:
            break
        _step(m, free, gradient, second, damping, A, d)
        length, moved = 1.0, False
        while length > 1e-10:
            change = 0.0
            for t in range(m):
                other[t] = min(max(x[t] + length * d[t], low[t]), high[t])
                change += gradient[t] * (other[t] - x[t])
            value = _value(P, Q, T, other, new_gradient, new_second)
            if value <= loss + 1e-4 * change and value < loss:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        loss = value
        for t in range(m):
            x[t] = other[t]
        gradient, new_gradient, second, new_second = new_gradient, gradient, new_second, second
    return bound


@kernel
def _add_parts(
    stack: FloatArray, filled: int, box: FloatArray, m: int, at: int, below: float, above: float
) -> None:
    """Put the two parts of a box on the stack: points of one rule at most ``below``, and at least ``above``."""
    for t in range(m):
        for side in range(2):
            for row in range(3):
                stack[filled + side, row, t] = box[row, t]
    stack[filled, 1, at], stack[filled + 1, 0, at] = below, above


@kernel
def search_points(rules: IntArray, cards: Cards, best: float) -> tuple[float, int]:
    """Search the points of T rules (T,) for a card better than ``best``, with their samples in the workspace's cells.

    Returns
    -------
    best, boxes
        The least loss, and how many boxes were searched.
    """
    T, m = len(rules), len(rules) + 1
    P, Q, ranges = cards.workspace.cells[0], cards.workspace.cells[1], cards.ranges
    stack, space, now = cards.workspace.stack, cards.workspace.space, cards.workspace.now
    now[0, T] = now[1, T] = now[2, T] = 0.0
    low, high, x, whole, fixed_low, fixed_high = now[0], now[1], now[2], now[3], now[4], now[5]
    for t in range(T):
        stack[0, 0, t], stack[0, 1, t], stack[0, 2, t] = ranges[rules[t], 0], ranges[rules[t], 1], 0.0
    stack[0, 0, T], stack[0, 1, T], stack[0, 2, T] = 0.0, 0.0, cards.log_odds
    filled, boxes = 1, 0
    while filled > 0:
        filled -= 1
        for t in range(m):
            low[t], high[t], x[t] = stack[filled, 0, t], stack[filled, 1, t], stack[filled, 2, t]
        boxes += 1
        if cards.exact:
            split = -1
            for t in range(T):
                if low[t] == 0 and high[t] > 0:
                    low[t] = 1.0
                elif high[t] == 0 and low[t] < 0:
                    high[t] = -1.0
                elif low[t] < 0 and high[t] > 0:
                    split = t
            if split >= 0:
                _add_parts(stack, filled, now, m, split, -1.0, 1.0)
                filled += 2
                continue
        enough = best * (1.0 - CLOSE)
        if _over_box(P, Q, T, low, high, x, enough, cards.log_odds, space) >= enough:
            continue
        # A card: the points rounded, with their best intercept.
        for t in range(T):
            whole[t] = min(max(round(x[t]), low[t]), high[t])
            fixed_low[t] = fixed_high[t] = whole[t]
        whole[T] = x[T]
        _over_box(P, Q, T, fixed_low, fixed_high, whole, np.inf, cards.log_odds, space)
        value = _value(P, Q, T, whole, space[0], space[5 : 5 + m])
        if value < best:
            best = value
            for t in range(T):
                cards.chosen[t], cards.points[t] = rules[t], int(whole[t])
        # The two parts beside the most fractional points, or beside any where all are whole.
        at, far = -1, -1.0
        for t in range(T):
            away = abs(x[t] - round(x[t]))
            if high[t] > low[t] and away > far:
                at, far = t, away
        if at < 0:
            continue
        cut = min(math.floor(x[at] + WHOLE), high[at] - 1.0)
        _add_parts(stack, filled, now, m, at, cut, cut + 1.0)
        filled += 2
    return best, boxes


class Cuts(NamedTuple):
    """A feature: ranks of samples (n,), those above which its rules hold, ascending, and its first rule's number."""

    ranks: IntArray
    above: IntArray
    first: int


class Features(NamedTuple):
    """Three features, with a fourth rule that is given; the third one is swept, and samples are in its order.

    Attributes
    ----------
    y
        (n,) class numbers.
    first, second, third
        The features.
    order
        (n,) samples in the order of the second feature.
    fixed, rule
        (n,) 8 where the fourth rule holds, else 0; and its number.
    """

    y: IntArray
    first: Cuts
    second: Cuts
    third: Cuts
    order: IntArray
    fixed: IntArray
    rule: int


class Cells(NamedTuple):
    """Memory of the cells of T rules.

    Attributes
    ----------
    codes
        (n,) the cell that each sample is in, with no cut of the third feature.
    base, now
        (3, 2^T) samples in each cell of either class and of both, with no cut of the third feature, and while it is
        swept.
    sat
        SAT of each cut of the third feature.
    rules
        (T,) rules.
    """

    codes: IntArray
    base: IntArray
    now: IntArray
    sat: FloatArray
    rules: IntArray

    @classmethod
    def of(cls, n: int, T: int, n_cuts: int) -> Cells:
        """Return memory for n samples, T rules, and a number of cuts."""
        base, now = np.zeros((3, 1 << T), np.int64), np.zeros((3, 1 << T), np.int64)
        return cls(np.zeros(n, np.int64), base, now, np.zeros(n_cuts), np.zeros(T, np.int64))


@entry
def search_features(
    features: Features, cards: Cards, best: float, begin: int, max_sweeps: int, cells: Cells
) -> tuple[float, int, float, int, int]:
    """Search the cards with a rule of each of three features, and a fourth rule that is given.

    Parameters
    ----------
    features, cards
        The features, and the cards; T is 3, or 4 with a fourth rule.
    best
        Loss of the best card known.
    begin, max_sweeps
        First cut of the first feature to try, and after how many sweeps to return.
    cells
        Memory.

    Returns
    -------
    best, next, sat, sweeps, boxes
        The least loss, the cut to begin with in the next call, the least SAT of the cards so far or less, and what was
        done.
    """
    cuts, at = features.first.above, begin
    slack, least, sweeps, boxes = -np.inf, np.inf, 0, 0
    while at < len(cuts) and sweeps < max_sweeps:
        if at > begin:
            slack -= _most_change(features, cuts[at - 1], cuts[at])
        if slack <= best:
            _count_cells(features, cuts[at], cells)
            best, slack, swept, searched = _search_second(features, cards, best, at, cells)
            sweeps, boxes = sweeps + swept, boxes + searched
        least = min(least, slack)
        at += 1
    return best, at, least, sweeps, boxes


@kernel
def _most_change(features: Features, before: int, after: int) -> float:
    """Return the most that SAT changes from one cut of the first feature to the next one."""
    moved, n = 0, len(features.y)
    for i in range(n):
        moved += before < features.first.ranks[i] <= after
    return moved * (math.log(n) + 1.0)


@kernel
def _count_cells(features: Features, cut: int, cells: Cells) -> None:
    """Put samples into the cells of the fourth rule and a cut of the first feature."""
    codes, base, y = cells.codes, cells.base, features.y
    for row in range(3):
        for cell in range(base.shape[1]):
            base[row, cell] = 0
    for i in range(len(y)):
        codes[i] = features.fixed[i] + (1 if features.first.ranks[i] > cut else 0)
        base[y[i], codes[i]] += 1
        base[2, codes[i]] += 1


@kernel
def _search_second(
    features: Features, cards: Cards, best: float, at_first: int, cells: Cells
) -> tuple[float, float, int, int]:
    """Search the cards of a cut of the first feature; return best loss, least SAT or less, sweeps and boxes."""
    second, order, y = features.second, features.order, features.y
    codes, base, now = cells.codes, cells.base, cells.now
    least, slack, sweeps, boxes, passed = np.inf, -np.inf, 0, 0, len(y)
    step = math.log(len(y)) + 1.0
    for at in range(len(second.above) - 1, -1, -1):
        moved = 0
        while passed > 0 and second.ranks[order[passed - 1]] > second.above[at]:
            passed -= 1
            i = order[passed]
            base[y[i], codes[i]] -= 1
            base[2, codes[i]] -= 1
            codes[i] += 2
            base[y[i], codes[i]] += 1
            base[2, codes[i]] += 1
            moved += 1
        slack -= moved * step
        if slack <= best:
            for row in range(3):
                for cell in range(base.shape[1]):
                    now[row, cell] = base[row, cell]
            slack = _sweep(features, cards, cells)
            sweeps += 1
            if slack < best * (1.0 - CLOSE):
                best, searched = _search_third(features, cards, best, at_first, at, cells)
                boxes += searched
        least = min(least, slack)
    return best, least, sweeps, boxes


@kernel
def _sweep(features: Features, cards: Cards, cells: Cells) -> float:
    """Return the least SAT over the cuts of the third feature, by whose ranks samples are sorted; write each down."""
    third, table, increments, now, y = features.third, cards.table, cards.increments, cells.now, features.y
    sat = 0.0
    for cell in range(now.shape[1]):
        sat += table[now[2, cell]] - table[now[0, cell]] - table[now[1, cell]]
    least, at = np.inf, len(y)
    for c in range(len(third.above) - 1, -1, -1):
        while at > 0 and third.ranks[at - 1] > third.above[c]:
            at -= 1
            cell, k = cells.codes[at], y[at]
            now[2, cell] -= 1
            now[k, cell] -= 1
            sat -= increments[now[2, cell]] - increments[now[k, cell]]
            cell += 4
            sat += increments[now[2, cell]] - increments[now[k, cell]]
            now[2, cell] += 1
            now[k, cell] += 1
        cells.sat[c] = sat
        least = min(least, sat)
    return least


@kernel
def _search_third(
    features: Features, cards: Cards, best: float, at_first: int, at_second: int, cells: Cells
) -> tuple[float, int]:
    """Search the points of the cards of two cuts whose SAT is below the best loss; return that, and boxes."""
    third, of_class, rules, boxes = features.third, cards.workspace.cells, cells.rules, 0
    rules[0], rules[1] = features.first.first + at_first, features.second.first + at_second
    if len(rules) > 3:
        rules[3] = features.rule
    for at in range(len(third.above)):
        if cells.sat[at] >= best * (1.0 - CLOSE):
            continue
        for cell in range(of_class.shape[1]):
            of_class[0, cell], of_class[1, cell] = 0.0, 0.0
        for i in range(len(features.y)):
            of_class[1 - features.y[i], cells.codes[i] + (4 if third.ranks[i] > third.above[at] else 0)] += (
                1.0
            )
        rules[2] = third.first + at
        best, more = search_points(rules, cards, best)
        boxes += more
    return best, boxes


class Rules(NamedTuple):
    """Rules of columns of their own.

    Attributes
    ----------
    holds
        (K, g) whether a rule holds for a distinct sample.
    ones, ends
        Samples that rules hold for, one rule after the other, and where each rule's samples end, with 0 before.
    P, Q
        (g,) samples of the second class, and of the first.
    """

    holds: BoolArray
    ones: IntArray
    ends: IntArray
    P: IntArray
    Q: IntArray


@entry
def search_supports(
    of: Rules, cards: Cards, begin: IntArray, best: float, codes: IntArray, counts: IntArray, rules: IntArray
) -> tuple[float, int, int]:
    """Search the cards of T rules that begin with some rules, each a column of its own.

    Parameters
    ----------
    of, cards
        The rules, and the cards.
    begin
        First rules of the cards, ascending; fewer than T.
    best
        Loss of the best card known.
    codes, counts, rules
        Memory: (T, g), (4, 2^(T-1)) and (T,).

    Returns
    -------
    best, supports, boxes
        The least loss, and how many sets of rules and boxes of points were searched.
    """
    holds, table, T = of.holds, cards.table, len(rules)
    K, g = holds.shape
    half = 1 << (T - 1)
    for i in range(g):
        codes[0, i] = 0
    for t in range(len(begin)):
        rules[t] = begin[t]
        for i in range(g):
            codes[t + 1, i] = codes[t, i] + (1 << t if holds[begin[t], i] else 0)
    whole, upper = counts[:2], counts[2:]
    cells = cards.workspace.cells
    supports, boxes, fixed = 0, 0, len(begin)
    level = fixed
    rules[level] = (rules[level - 1] if level else -1) + 1
    stale = True
    while level >= fixed:
        if rules[level] > K - (T - level):
            level -= 1
            if level >= fixed:
                rules[level] += 1
            stale = True
            continue
        if level < T - 1:
            k = rules[level]
            for i in range(g):
                codes[level + 1, i] = codes[level, i] + (1 << level if holds[k, i] else 0)
            level += 1
            rules[level] = k + 1
            stale = True
            continue
        code = codes[T - 1]
        if stale:
            for cell in range(half):
                whole[0, cell] = whole[1, cell] = 0
            for i in range(g):
                whole[0, code[i]] += of.P[i]
                whole[1, code[i]] += of.Q[i]
            stale = False
        k = rules[level]
        for cell in range(half):
            upper[0, cell] = upper[1, cell] = 0
        for at in range(of.ends[k], of.ends[k + 1]):
            i = of.ones[at]
            upper[0, code[i]] += of.P[i]
            upper[1, code[i]] += of.Q[i]
        supports += 1
        sat = 0.0
        for cell in range(half):
            p, q = upper[0, cell], upper[1, cell]
            sat += table[p + q] - table[p] - table[q]
            p, q = whole[0, cell] - p, whole[1, cell] - q
            sat += table[p + q] - table[p] - table[q]
        if sat < best * (1.0 - CLOSE):
            for cell in range(half):
                for side in range(2):
                    cells[side, cell] = whole[side, cell] - upper[side, cell]
                    cells[side, cell + half] = upper[side, cell]
            best, more = search_points(rules, cards, best)
            boxes += more
        rules[level] += 1
    return best, supports, boxes
