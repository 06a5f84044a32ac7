r"""The gap epsilon: trees whose scores are between the sides of a split become feasible at little cost.

A sample with :math:`-\varepsilon < s < 0` at a node above the last level fits neither side. Among many samples some are
always there, and the best tree without the gap is infeasible. Two steps make it feasible:

1. *A price.* Line moves (:mod:`~mipforest.searches.hyperplanes.line_moves`) charge each sample in the gap; the price
   rises. This moves hyperplanes to where few samples are.
2. *A gap of the scores.* From the root down, each split that still has samples between its sides is scaled and
   shifted so that a gap between two neighbouring scores holds :math:`-\varepsilon` and 0. All gaps are ranked by the
   costs-to-go of the samples that change sides and by what a shift costs at most; the best ones are valued on part of
   the samples, and the best of these exactly. A split that sends all samples to one side is another candidate.

The second step alone can lose 13% of the objective on 10,000 samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches.hyperplanes import CLEARANCE, HyperplaneProblem, Hyperplanes
from mipforest.searches.hyperplanes.line_moves import Line, LineDescent, random_line

#: Prices of a sample between the sides, in multiples of C times its weight, one after the other: where they rise fast,
#: a line move leaves the tree for a split that sends all samples to one side.
PRICES = tuple(8.0 * 1.5**k for k in range(18))

#: Line moves at each price.
LINES = 18

#: Least gain of a round of line moves, relative to the objective, for another one.
ROUND_GAIN = 1e-4

#: Scales at which a split may have wide enough gaps; the last ones make room in any data of double precision.
SCALES = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0, 100.0, 1e3, 1e4, 1e5)

#: Gaps of each scale that are valued on so many samples, and how many of all scales are valued exactly.
_VALUED, _PART, _EXACTLY = 6, 20_000, 8

#: By how much a gap is to be wider than epsilon: scores are computed anew afterwards.
_WIDER = 1e-9


def made_feasible(problem: HyperplaneProblem, tree: Hyperplanes, *, accuracy: float) -> Hyperplanes:
    """Return a feasible tree near another one, its last level refitted, with its objective."""
    if problem.n_upper == 0:
        return problem.refitted(tree, accuracy=accuracy)
    w, b = tree.w.copy(), tree.b.copy()
    members = {0: np.arange(len(problem.X))}
    for t in problem.upper:
        rows = members[t]
        scores = problem.X[rows] @ w[t] + b[t]
        for _ in range(3):  # rounding may leave a sample between the sides once more
            if not problem.between(scores).any():
                break
            costs = problem.costs(problem.scores(Hyperplanes(w, b)))[rows]
            scale, shift = _into_gap(problem, t, w[t], rows, scores, costs)
            w[t], b[t] = scale * w[t], scale * b[t] + shift if scale else shift
            scores = problem.X[rows] @ w[t] + b[t]
        right = scores >= 0.0
        members[2 * t + 1], members[2 * t + 2] = rows[~right], rows[right]
    return problem.refitted(Hyperplanes(w, b), accuracy=accuracy)


def _into_gap(
    problem: HyperplaneProblem, t: int, w: FloatArray, rows: IntArray, scores: FloatArray, costs: FloatArray
) -> tuple[float, float]:
    """Return the scale and the shift of the bias that put a split into a gap of its scores at least cost."""
    order = np.argsort(scores, kind="stable")
    ordered, n = scores[order], len(scores)
    left, right = costs[order, 2 * t + 1], costs[order, 2 * t + 2]
    # With the k lowest scores on the left.
    routed = (
        np.concatenate([[0.0], np.cumsum(left)]) + right.sum() - np.concatenate([[0.0], np.cumsum(right)])
    )
    per_shift = 0.5 * float(problem.C[t] * problem.weight[rows].sum() * problem.kinks[:, 1].sum())
    wide = problem.epsilon + 2.0 * CLEARANCE + _WIDER
    part = rows[:: max(1, n // _PART)]
    share, some = n / len(part), scores[:: max(1, n // _PART)]
    # All samples on one side: without weights, the bias at the last kink costs least, or nearly.
    last = max(float(problem.kinks[:, 0].max()), wide)
    candidates = []
    for shift, to in ((last, right), (-last, left)):
        own = float(problem.losses(t, np.full(n, shift), rows).sum())
        candidates.append((own + float(to.sum()), 0.0, shift))
    for scale in SCALES:
        scaled = scale * ordered
        gaps = np.diff(scaled, prepend=-np.inf, append=np.inf)
        found = np.flatnonzero(gaps >= wide)
        least = np.where(found < n, CLEARANCE - scaled[np.minimum(found, n - 1)], -np.inf)
        most = np.where(found > 0, -problem.epsilon - CLEARANCE - scaled[np.maximum(found - 1, 0)], np.inf)
        # The shift nearest to none; a little inside the gap, as scores are rounded.
        shifts = np.clip(
            0.0, np.minimum(least + 0.25 * _WIDER, most), np.maximum(most - 0.25 * _WIDER, least)
        )
        rank = routed[found] + per_shift * np.abs(shifts)
        for k in np.argsort(rank, kind="stable")[:_VALUED]:
            own = share * float(problem.losses(t, scale * some + shifts[k], part).sum())
            own += problem.charge(t, scale * w) + float(routed[found[k]])
            candidates.append((own, scale, float(shifts[k])))
    candidates.sort()
    if share == 1.0:
        return candidates[0][1:]
    valued = []
    for _, scale, shift in candidates[:_EXACTLY]:
        at = scale * scores + shift if scale else np.full(n, shift)
        own = problem.charge(t, scale * w) + float(problem.losses(t, at, rows).sum())
        own += float(costs[at >= 0.0, 2 * t + 2].sum()) + float(costs[at < 0.0, 2 * t + 1].sum())
        valued.append((own, scale, shift))
    return min(valued)[1:]


def move_out_of_gap(
    problem: HyperplaneProblem,
    tree: Hyperplanes,
    rng: np.random.Generator,
    *,
    accuracy: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> Hyperplanes:
    """Return a feasible tree near another one, found by line moves with a rising price, with its objective."""
    best = made_feasible(problem, tree, accuracy=accuracy)
    if problem.n_upper == 0 or problem.feasible(tree):
        return best
    moved = tree
    for price in PRICES:
        if should_stop():
            break
        moved = _along_lines(problem, moved, price, LINES, rng, should_stop)
        moved = problem.refitted(moved, accuracy=accuracy)
        if problem.feasible(moved):
            break
    return min(best, made_feasible(problem, moved, accuracy=accuracy), key=lambda found: found.value)


def improve_feasible(
    problem: HyperplaneProblem,
    tree: Hyperplanes,
    rng: np.random.Generator,
    *,
    accuracy: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> Hyperplanes:
    """Return a feasible tree that is no worse than another one, found by line moves with the highest price."""
    best = tree
    while not should_stop() and problem.n_upper:
        moved = _along_lines(problem, best, PRICES[-1], 2 * LINES, rng, should_stop)
        found = made_feasible(problem, moved, accuracy=accuracy)
        if not found.value < best.value * (1.0 - ROUND_GAIN):
            return min(best, found, key=lambda each: each.value)
        best = found
    return best


def _along_lines(
    problem: HyperplaneProblem,
    tree: Hyperplanes,
    price: float,
    count: int,
    rng: np.random.Generator,
    should_stop: Callable[[], bool],
) -> Hyperplanes:
    """Return a tree after line moves with a price: along the scales of all nodes, then along random lines."""
    descent = LineDescent(problem, problem.valued(tree), price)
    for k in range(problem.n_upper + count):
        if should_stop():
            break
        scales = k < problem.n_upper
        t = k if scales else int(rng.integers(problem.n_upper))
        if len(descent.members[t]) < 2:
            continue
        own = Line(t, descent.tree.w[t].copy(), float(descent.tree.b[t]))
        descent.try_line(own if scales else random_line(problem, descent.tree, t, descent.members[t], rng))
    return descent.tree
