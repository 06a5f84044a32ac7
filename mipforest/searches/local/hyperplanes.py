r"""Compiled: the best hyperplane of a node, one coefficient at a time (Dunn 2018, algorithm 3.1), with a margin.

A sample's score is :math:`V_i = a^\top x_i - b`; it goes left where that is negative. Features are in [0, 1]. Changing
the coefficient :math:`a_k` alone sends a sample left iff :math:`a_k < U_i` with

.. math::  U_i = a_k - V_i / x_{ik} \quad (x_{ik} > 0),

and samples with :math:`x_{ik} = 0` stay. So all values of the coefficient are one sweep in the order of U. Without the
coefficient, or with it, all thresholds are one sweep in the order of the other scores. What a sweep finds counts only
where both sides keep the model's margin: their scores are at least ``margin`` apart, for weights of sum 1. That is
looked at for positions that are better than the best so far, neighbours first.

Printed, the algorithm takes every trial for the incumbent and never returns it; here the incumbent only gets better.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, Int32Array
from mipforest.searches import glue, kernel
from mipforest.searches.local.leaves import ABSOLUTE
from mipforest.searches.local.state import SIDE, Samples, Work, draw
from mipforest.searches.local.sweeps import add_medians, fit_leaves, keep_base, sweep, value_of_leaves

#: Rows of :attr:`Work.weights`, each with the threshold last: at work, and the best of a visit.
AT_WORK, BEST = 0, 1

#: Most rounds over all coefficients of one hyperplane; two to four are usual.
ROUNDS = 20

#: Features of a random hyperplane, at most.
MAX_FEATURES = 10

#: Sizes of the largest weight between which a hyperplane is not scaled anew: scores stay far from overflow.
SMALL, LARGE = 1e-6, 1e6

#: The margin is asked for with this share more, so that rounding in another order leaves it.
MARGIN_ROOM = 1e-6


@kernel
def improved_by_hyperplane(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    leaves: int,
    charges: float,
    feature: int,
    cut: int,
    parallel: float,
    best: float,
) -> bool:
    """Find a hyperplane for a node whose value is below the best one; return whether there is one.

    It starts with the best univariate split (``feature``, -1 for none; ``cut``; its value), then with random ones. The
    other parameters are those of :func:`improve_hyperplane`. The weights stand in row :data:`BEST`.
    """
    p, a, found = len(samples.rank), work.weights[AT_WORK], False
    for h in range(samples.hyperplanes + 1):
        value = np.inf
        if h > 0:
            draw_hyperplane(samples, work, order, begin, m)
        elif feature < 0:
            continue
        else:
            low, high, value = -np.inf, np.inf, parallel
            for j in range(p):
                a[j] = 1.0 if j == feature else 0.0
            for q in range(begin, begin + m):
                i = order[0, q]
                if samples.rank[feature, i] < cut:
                    low = max(low, samples.X[i, feature])
                else:
                    high = min(high, samples.X[i, feature])
            a[p] = low + 0.5 * (high - low)
        value = improve_hyperplane(samples, work, order, begin, m, leaves, charges, value)
        if value < best:
            found, best = True, value
            for j in range(p + 1):
                work.weights[BEST, j] = a[j]
    return found


@kernel
def no_hyperplane(*_: object) -> bool:
    """Find none: in place of :func:`improved_by_hyperplane` where splits are univariate."""
    return False


@glue
def draw_hyperplane(samples: Samples, work: Work, order: Int32Array, begin: int, m: int) -> None:
    """Draw weights, and a threshold between the scores of two samples of the node."""
    p, a = len(samples.rank), work.weights[AT_WORK]
    number = p if p <= MAX_FEATURES else 1 + draw(work, MAX_FEATURES)
    for j in range(p):
        a[j], work.features[j] = 0.0, j
    for k in range(number):
        other = k + draw(work, p - k)
        j = work.features[other]
        work.features[other] = work.features[k]
        a[j] = 2.0 * draw(work, 2**30) / 2**30 - 1.0
    a[p] = 0.0
    for _ in range(2):
        i = order[0, begin + draw(work, m)]
        for j in range(p):
            a[p] += 0.5 * a[j] * samples.X[i, j]


@glue
def improve_hyperplane(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    leaves: int,
    charges: float,
    value: float,
) -> float:
    """Improve the hyperplane at work of the node whose samples' leaves are in ``work``; return its value.

    Parameters
    ----------
    samples, work, order, begin, m, leaves
        As for :func:`~mipforest.searches.local.sweeps.add_medians`.
    charges
        Costs of the splits of both subtrees.
    value
        Value of the hyperplane; infinite where it is unknown, or keeps no margin.
    """
    p, a = len(samples.rank), work.weights[AT_WORK]
    _score(samples, work, order, begin, m)
    for _ in range(ROUNDS):
        changed = False
        for j in range(p):
            work.features[j] = j
        # First the threshold alone.
        for step in range(p + 1):
            k = -1
            if step > 0:
                other = step - 1 + draw(work, p - step + 1)
                k = work.features[other]
                work.features[other] = work.features[step - 1]
            used, size = 0, 0.0
            for j in range(p):
                if j != k:
                    used += a[j] != 0.0
                    size += abs(a[j])
            best, new, shift = value - samples.tolerance, 0.0, 0.0
            if k < 0 or (a[k] != 0.0 and used > 0):
                constant = charges + samples.split_cost * used
                found, b = _best_threshold(samples, work, order, begin, m, leaves, k, size, best - constant)
                if found < np.inf:
                    best, shift = found + constant, b - a[p]
            if k >= 0:
                constant = charges + samples.split_cost * (used + 1)
                found, c, moved = _best_coefficient(
                    samples, work, order, begin, m, leaves, k, size, best - constant
                )
                if found < np.inf:
                    best, new, shift = found + constant, c, moved
            if best < value - samples.tolerance:
                changed, value = True, best
                if k >= 0:
                    a[k] = new
                a[p] += shift
                _score(samples, work, order, begin, m)
        if not changed:
            break
    return value


@kernel
def _score(samples: Samples, work: Work, order: Int32Array, begin: int, m: int) -> None:
    """Write the scores of a node's samples, less the threshold; keep the weights' sizes in bounds."""
    p, a = len(samples.rank), work.weights[AT_WORK]
    largest = abs(a[p])
    for j in range(p):
        largest = max(largest, abs(a[j]))
    if largest > LARGE or 0.0 < largest < SMALL:
        for j in range(p + 1):
            a[j] /= largest
    for q in range(begin, begin + m):
        i = order[0, q]
        score = 0.0
        for j in range(p):
            score += a[j] * samples.X[i, j]
        work.scores[i] = score - a[p]


@kernel
def _sweep(
    samples: Samples, work: Work, order: Int32Array, begin: int, m: int, leaves: int, moving: int, source: int
) -> float:
    """Sort the moving samples by key and sweep them; return what the leaves cost before."""
    _sort(work.key, work.ids, moving)
    fit_leaves(samples, work, order, begin, m, source, leaves)
    keep_base(work, leaves)
    before = value_of_leaves(samples, work, leaves)
    ids = work.ids[:moving]
    sweep(samples, work, ids, source, leaves, samples.kind, 1.0, samples.tie)
    if samples.kind == ABSOLUTE:
        add_medians(samples, work, order, begin, m, ids, source, leaves)
    return before


@glue
def _best_threshold(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    leaves: int,
    k: int,
    size: float,
    cutoff: float,
) -> tuple[float, float]:
    """Return the least value below a cutoff, of thresholds without coefficient k (-1: with all), and the threshold."""
    p, a, best, threshold = len(samples.rank), work.weights[AT_WORK], np.inf, 0.0
    for q in range(m):
        i = order[0, begin + q]
        work.ids[q], work.leaf[i, SIDE] = i, 2
        work.key[q] = work.scores[i] + a[p] - (a[k] * samples.X[i, k] if k >= 0 else 0.0)
    _sweep(samples, work, order, begin, m, leaves, m, 1)
    least = samples.margin * (1.0 + MARGIN_ROOM) * size
    for q in range(m - 1):
        if work.curve[q] < cutoff and work.key[q + 1] - work.key[q] > least:
            best = cutoff = work.curve[q]
            threshold = work.key[q] + 0.5 * (work.key[q + 1] - work.key[q])
    return best, threshold


@glue
def _best_coefficient(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    leaves: int,
    k: int,
    size: float,
    cutoff: float,
) -> tuple[float, float, float]:
    """Return the least value below a cutoff of all coefficients k, that coefficient, and a move of the threshold."""
    a, best, coefficient, shift, moving = work.weights[AT_WORK], np.inf, 0.0, 0.0, 0
    for q in range(begin, begin + m):
        i = order[0, q]
        x, score = samples.X[i, k], work.scores[i]
        if x > 0.0:
            work.ids[moving], work.key[moving], work.leaf[i, SIDE] = i, a[k] - score / x, 2
            moving += 1
        else:
            work.leaf[i, SIDE] = score >= 0.0
    if moving == 0:
        return best, coefficient, shift
    before = _sweep(samples, work, order, begin, m, leaves, moving, 0)
    for q in range(-1, moving):
        found = before if q < 0 else work.curve[q]
        if not found < cutoff:
            continue
        if q < 0:
            c = work.key[0] - max(1.0, abs(work.key[0]))
        elif q == moving - 1:
            c = work.key[q] + max(1.0, abs(work.key[q]))
        else:
            c = work.key[q] + 0.5 * (work.key[q + 1] - work.key[q])
            if not work.key[q] < c < work.key[q + 1]:
                continue
        if c == 0.0:
            continue
        low, high = _sides(
            samples,
            work,
            order,
            begin,
            m,
            k,
            c - a[k],
            q,
            samples.margin * (1.0 + MARGIN_ROOM) * (size + abs(c)),
        )
        if low < high:
            best = cutoff = found
            coefficient, shift = c, low + 0.5 * (high - low)
    return best, coefficient, shift


@glue
def _sides(
    samples: Samples,
    work: Work,
    order: Int32Array,
    begin: int,
    m: int,
    k: int,
    change: float,
    at: int,
    least: float,
) -> tuple[float, float]:
    """Return the greatest score left and the least right once a coefficient has changed; (0, 0) within the margin.

    Samples near position ``at`` of the sweep come first: where there is no margin, they mostly show it.
    """
    low, high = -np.inf, np.inf
    for q in range(max(0, at - 2), min(len(work.ids), at + 4)):
        if q >= m:
            break
        i = work.ids[q]
        if work.leaf[i, SIDE] != 2:
            break
        score = work.scores[i] + change * samples.X[i, k]
        if score < 0.0:
            low = max(low, score)
        else:
            high = min(high, score)
    if high - low <= least:
        return 0.0, 0.0
    for q in range(begin, begin + m):
        i = order[0, q]
        score = work.scores[i] + change * samples.X[i, k]
        if score < 0.0:
            low = max(low, score)
        else:
            high = min(high, score)
        if high - low <= least:
            return 0.0, 0.0
    if low == -np.inf or high == np.inf:
        return 0.0, 0.0
    return low, high


@glue
def _sort(key: FloatArray, ids: Int32Array, m: int) -> None:
    """Sort keys, and samples with them, in place (a heap sort)."""
    for step in range(m // 2 - 1 + m):
        root, end = m // 2 - 1 - step, m
        if root < 0:
            end, root = m + root, 0
            key[0], key[end] = key[end], key[0]
            ids[0], ids[end] = ids[end], ids[0]
        top, sample = key[root], ids[root]
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and key[child + 1] > key[child]:
                child += 1
            if key[child] <= top:
                break
            key[root], ids[root] = key[child], ids[child]
            root = child
        key[root], ids[root] = top, sample
