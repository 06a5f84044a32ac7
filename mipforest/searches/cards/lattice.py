r"""The best integer points for given rules, by branch and bound over boxes of points.

T rules part the samples into :math:`2^T` cells, and the log-loss reads the numbers P and Q of either class in each.
Over a box of points, the loss is convex in points and intercept; where :math:`(s, \beta)` is any point with the
gradient g,

.. math:: f(s', \beta') \ge f(s, \beta) + g^\top (s' - s, \beta' - \beta)

for all others, and the right side is least at a corner of the box. The intercept has a box too: the best one for any
points is between ``logit(r)`` minus the largest total and minus the least one
(:func:`~mipforest.heuristics.score_cards.best_intercepts`). So the bound is a true one wherever Newton's method stops.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel

#: Boxes whose bound is this close to the best card's loss, as a share of it, are not searched.
CLOSE = 1e-9

#: Steps of Newton's method in a box; it stops much earlier, and its bound holds wherever it stops.
STEPS = 50

#: Added to the diagonal of second derivatives, as a share of the number of samples: cells without samples have none.
DAMPING = 1e-10

#: Points this close to whole numbers count as such when a card is read off a box.
WHOLE = 1e-6


class Room(NamedTuple):
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
        (2, 2^T) samples of either class by cell.
    lows, highs
        (T,) range of the points of each rule.
    """

    stack: FloatArray
    space: FloatArray
    now: FloatArray
    cells: FloatArray
    lows: FloatArray
    highs: FloatArray

    @classmethod
    def of(cls, T: int) -> Room:
        """Return memory for T rules."""
        m = T + 1
        return cls(
            np.zeros((64 + 24 * T, 3, m)),
            np.zeros((5 + 3 * m, m)),
            np.zeros((6, m)),
            np.zeros((2, 1 << T)),
            np.zeros(T),
            np.zeros(T),
        )


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
def _push(
    stack: FloatArray, filled: int, box: FloatArray, m: int, at: int, below: float, above: float
) -> None:
    """Put the two parts of a box on the stack: points of one rule at most ``below``, and at least ``above``."""
    for t in range(m):
        for side in range(2):
            for row in range(3):
                stack[filled + side, row, t] = box[row, t]
    stack[filled, 1, at], stack[filled + 1, 0, at] = below, above


@kernel
def lattice(
    P: FloatArray,
    Q: FloatArray,
    T: int,
    lows: FloatArray,
    highs: FloatArray,
    exact: bool,
    best: float,
    points: IntArray,
    log_odds: float,
    room: Room,
) -> tuple[float, int]:
    """Search the points of T rules for a card better than ``best``.

    Parameters
    ----------
    P, Q
        (2^T,) samples of the second class and of the first in each cell; bit t says whether rule t holds.
    T
        Number of rules.
    lows, highs
        (T,) range of the points of each rule.
    exact
        Whether points of 0 are excluded, of rules whose range is not 0 alone.
    best
        Loss of the best card known.
    points
        (T,) points of a better card, if one is found, are written here.
    log_odds
        Logarithm of the number of samples of the second class over that of the first.
    room
        Memory for T rules.

    Returns
    -------
    best, boxes
        The least loss, and how many boxes were searched.
    """
    m = T + 1
    stack, space, now = room.stack, room.space, room.now
    now[0, T] = now[1, T] = now[2, T] = 0.0
    low, high, x, whole, fixed_low, fixed_high = now[0], now[1], now[2], now[3], now[4], now[5]
    for t in range(T):
        stack[0, 0, t], stack[0, 1, t], stack[0, 2, t] = lows[t], highs[t], 0.0
    stack[0, 0, T], stack[0, 1, T], stack[0, 2, T] = 0.0, 0.0, log_odds
    filled, boxes = 1, 0
    while filled > 0:
        filled -= 1
        for t in range(m):
            low[t], high[t], x[t] = stack[filled, 0, t], stack[filled, 1, t], stack[filled, 2, t]
        boxes += 1
        if exact:
            split = -1
            for t in range(T):
                if low[t] == 0 and high[t] > 0:
                    low[t] = 1.0
                elif high[t] == 0 and low[t] < 0:
                    high[t] = -1.0
                elif low[t] < 0 and high[t] > 0:
                    split = t
            if split >= 0:
                _push(stack, filled, now, m, split, -1.0, 1.0)
                filled += 2
                continue
        enough = best * (1.0 - CLOSE)
        if _over_box(P, Q, T, low, high, x, enough, log_odds, space) >= enough:
            continue
        # A card: the points rounded, with their best intercept.
        for t in range(T):
            whole[t] = min(max(round(x[t]), low[t]), high[t])
            fixed_low[t] = fixed_high[t] = whole[t]
        whole[T] = x[T]
        _over_box(P, Q, T, fixed_low, fixed_high, whole, np.inf, log_odds, space)
        value = _value(P, Q, T, whole, space[0], space[5 : 5 + m])
        if value < best:
            best = value
            for t in range(T):
                points[t] = int(whole[t])
        # The two parts beside the most fractional points, or beside any where all are whole.
        at, far = -1, -1.0
        for t in range(T):
            away = abs(x[t] - round(x[t]))
            if high[t] > low[t] and away > far:
                at, far = t, away
        if at < 0:
            continue
        cut = min(math.floor(x[at] + WHOLE), high[at] - 1.0)
        _push(stack, filled, now, m, at, cut, cut + 1.0)
        filled += 2
    return best, boxes
