r"""All cards of a few rules, each a cut of a feature: all cuts but one tried in turn, the last one swept.

T rules part the samples into :math:`2^T` cells. With L(x) = x log x, no card has less log-loss than

.. math:: \mathrm{SAT} = \sum_c L(P_c + Q_c) - L(P_c) - L(Q_c),

where each cell has its own risk. A sweep of the third feature's sorted samples moves them one by one from one cell to
another, which changes two terms, read from a table of L. Cards with SAT below the best loss known go to
:mod:`~mipforest.searches.cards.lattice`. With four rules, those of three features are searched within each cut of the
fourth one.

**Skipping.** Adding a sample to a cell of n raises SAT by 0 to :math:`\log N + 1`; taking it away lowers it by as much.
So if SAT is at least m over all cuts of the third feature, it is at least :math:`m - d (\log N + 1)` once d samples
have changed sides of the second cut, and these cuts are skipped while this is above the best loss; likewise for the
first cut, with the least m over all second ones, and for that of a fourth rule, with the least m over all first ones.
"""

from __future__ import annotations

import math

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.cards.lattice import CLOSE, Room, lattice


@kernel
def _sweep(
    codes: IntArray,
    ranks: IntArray,
    cuts: IntArray,
    y: IntArray,
    sizes: IntArray,
    of_class: IntArray,
    table: FloatArray,
    rises: FloatArray,
    found: FloatArray,
) -> float:
    """Return the least SAT over the cuts of the swept feature, by whose ranks samples are sorted; write each down.

    ``sizes`` (C,) and ``of_class`` (2, C) have the samples in each cell, none of them above a cut.
    """
    sat = 0.0
    for cell in range(len(sizes)):
        sat += table[sizes[cell]] - table[of_class[0, cell]] - table[of_class[1, cell]]
    least, at = np.inf, len(ranks)
    for c in range(len(cuts) - 1, -1, -1):
        while at > 0 and ranks[at - 1] > cuts[c]:
            at -= 1
            cell, k = codes[at], y[at]
            sizes[cell] -= 1
            of_class[k, cell] -= 1
            sat -= rises[sizes[cell]] - rises[of_class[k, cell]]
            cell += 4
            sat += rises[sizes[cell]] - rises[of_class[k, cell]]
            sizes[cell] += 1
            of_class[k, cell] += 1
        found[c] = sat
        least = min(least, sat)
    return least


@entry
def search_features(
    first: IntArray,
    second: IntArray,
    third: IntArray,
    first_cuts: IntArray,
    second_cuts: IntArray,
    third_cuts: IntArray,
    second_order: IntArray,
    fixed: IntArray,
    y: IntArray,
    table: FloatArray,
    rises: FloatArray,
    ranges: FloatArray,
    offsets: IntArray,
    exact: bool,
    best: float,
    chosen: IntArray,
    points: IntArray,
    log_odds: float,
    begin: int,
    most_sweeps: int,
    codes: IntArray,
    counts: IntArray,
    found: FloatArray,
    room: Room,
) -> tuple[float, int, float, int, int]:
    """Search the cards with a rule of each of three features, and a fourth rule that is given.

    Parameters
    ----------
    first, second, third
        (n,) ranks of the samples in the three features; the third one is swept, and samples are in its order.
    first_cuts, second_cuts, third_cuts
        Ranks above which rules hold, ascending.
    second_order
        (n,) samples in the order of the second feature.
    fixed
        (n,) 8 where the fourth rule holds, else 0.
    y
        (n,) class numbers.
    table, rises
        (n + 1,) values of x log x, and (n,) by how much each next one is larger.
    ranges
        (K, 2) least and most points of every rule, 0 between them.
    offsets
        (4,) number of the first rule of each feature, and of the fourth rule.
    exact
        Whether points of 0 are excluded.
    best
        Loss of the best card known.
    chosen, points
        (T,) rules and points of a better card are written here; T is 3, or 4 with a fourth rule.
    log_odds
        As for :func:`~mipforest.searches.cards.lattice.lattice`.
    begin, most_sweeps
        First cut of the first feature to try, and after how many sweeps to return.
    codes, counts, found, room
        Memory: (n,), (7, 2^T), one entry for each cut of the third feature, and for the points of T rules.

    Returns
    -------
    best, next, sat, sweeps, boxes
        The least loss, the cut to begin with in the next call, the least SAT of the cards so far or less, and what was
        done.
    """
    n, T, n_cells = len(y), len(points), counts.shape[1]
    step = math.log(n) + 1.0
    base, sizes, of_class, own = counts[:3], counts[3], counts[4:6], counts[6]
    cells, lows, highs = room.cells, room.lows, room.highs
    slack, least_of_all, sweeps, boxes, at_first = -np.inf, np.inf, 0, 0, begin
    while at_first < len(first_cuts) and sweeps < most_sweeps:
        cut1 = first_cuts[at_first]
        if at_first > begin:
            moved = 0
            for i in range(n):
                moved += first_cuts[at_first - 1] < first[i] <= cut1
            slack -= moved * step
        if slack > best:
            least_of_all = min(least_of_all, slack)
            at_first += 1
            continue
        for row in range(3):
            for cell in range(n_cells):
                base[row, cell] = 0
        for i in range(n):
            codes[i] = fixed[i] + (1 if first[i] > cut1 else 0)
            base[y[i], codes[i]] += 1
            base[2, codes[i]] += 1
        least_of_first, inner_slack, passed = np.inf, -np.inf, n
        for at_second in range(len(second_cuts) - 1, -1, -1):
            cut2, moved = second_cuts[at_second], 0
            while passed > 0 and second[second_order[passed - 1]] > cut2:
                passed -= 1
                i = second_order[passed]
                base[y[i], codes[i]] -= 1
                base[2, codes[i]] -= 1
                codes[i] += 2
                base[y[i], codes[i]] += 1
                base[2, codes[i]] += 1
                moved += 1
            inner_slack -= moved * step
            if inner_slack > best:
                least_of_first = min(least_of_first, inner_slack)
                continue
            for cell in range(n_cells):
                of_class[0, cell], of_class[1, cell], sizes[cell] = (
                    base[0, cell],
                    base[1, cell],
                    base[2, cell],
                )
            sweeps += 1
            inner_slack = _sweep(codes, third, third_cuts, y, sizes, of_class, table, rises, found)
            least_of_first = min(least_of_first, inner_slack)
            if inner_slack >= best * (1.0 - CLOSE):
                continue
            for at_third in range(len(third_cuts)):
                if found[at_third] >= best * (1.0 - CLOSE):
                    continue
                for cell in range(n_cells):
                    cells[0, cell] = cells[1, cell] = 0.0
                for i in range(n):
                    cells[1 - y[i], codes[i] + (4 if third[i] > third_cuts[at_third] else 0)] += 1.0
                own[0], own[1], own[2] = offsets[0] + at_first, offsets[1] + at_second, offsets[2] + at_third
                own[3] = offsets[3]
                for t in range(T):
                    lows[t], highs[t] = ranges[own[t], 0], ranges[own[t], 1]
                value, more = lattice(cells[0], cells[1], T, lows, highs, exact, best, points, log_odds, room)
                boxes += more
                if value < best:
                    best = value
                    for t in range(T):
                        chosen[t] = own[t]
        slack = least_of_first
        least_of_all = min(least_of_all, slack)
        at_first += 1
    return best, at_first, least_of_all, sweeps, boxes


@entry
def search_supports(
    holds: BoolArray,
    ones: IntArray,
    ends: IntArray,
    P: IntArray,
    Q: IntArray,
    table: FloatArray,
    ranges: FloatArray,
    T: int,
    begin: IntArray,
    exact: bool,
    best: float,
    chosen: IntArray,
    points: IntArray,
    log_odds: float,
    codes: IntArray,
    counts: IntArray,
    rules: IntArray,
    room: Room,
) -> tuple[float, int, int]:
    """Search the cards of T rules that begin with some rules, each a column of its own.

    Parameters
    ----------
    holds
        (K, g) whether a rule holds for a distinct sample.
    ones, ends
        Samples that rules hold for, one rule after the other, and where each rule's samples end, with 0 before.
    P, Q, table, ranges, exact, best, chosen, points, log_odds
        As for :func:`search_features`; ``chosen`` and ``points`` are (T,).
    T
        Number of rules.
    begin
        First rules of the cards, ascending; fewer than T.
    codes, counts, rules, room
        Memory: (T, g), (4, 2^(T-1)), (T,), and for the points of T rules.

    Returns
    -------
    best, supports, boxes
        The least loss, and how many sets of rules and boxes of points were searched.
    """
    K, g = holds.shape
    half = 1 << (T - 1)
    for i in range(g):
        codes[0, i] = 0
    for t in range(len(begin)):
        rules[t] = begin[t]
        for i in range(g):
            codes[t + 1, i] = codes[t, i] + (1 << t if holds[begin[t], i] else 0)
    whole, upper = counts[:2], counts[2:]
    cells, lows, highs = room.cells, room.lows, room.highs
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
                whole[0, code[i]] += P[i]
                whole[1, code[i]] += Q[i]
            stale = False
        k = rules[level]
        for cell in range(half):
            upper[0, cell] = upper[1, cell] = 0
        for at in range(ends[k], ends[k + 1]):
            i = ones[at]
            upper[0, code[i]] += P[i]
            upper[1, code[i]] += Q[i]
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
            for t in range(T):
                lows[t], highs[t] = ranges[rules[t], 0], ranges[rules[t], 1]
            value, more = lattice(cells[0], cells[1], T, lows, highs, exact, best, points, log_odds, room)
            boxes += more
            if value < best:
                best = value
                for t in range(T):
                    chosen[t] = rules[t]
        rules[level] += 1
    return best, supports, boxes
