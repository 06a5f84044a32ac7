r"""Line moves: the best hyperplane :math:`(w, b) + \tau (e, f)` of one node, exactly, all other nodes fixed.

Along a line the scores of the node's samples are :math:`s_i + \tau g_i`. The node's own loss is convex and piecewise
linear in :math:`\tau`, its norm quadratic, or piecewise linear for l1. A sample that changes sides changes the
objective by the difference of the costs-to-go of both children, which is a jump at :math:`\tau = -s_i / g_i`. So the
objective is a quadratic function between neighbouring events, and its least value on each interval is known: after
sorting, all of them are compared.

A sample between the sides, :math:`-\varepsilon < s < 0`, makes the tree infeasible. It can be charged a *price*: it
enters or leaves the gap at another event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches.hyperplanes import CLEARANCE, HyperplaneProblem, Hyperplanes

#: How far a line is followed: until the largest score has changed by this multiple of its size.
REACH = 2.0

#: Share of an interval between two events that the minimum stays away from its ends: at an end itself, rounding would
#: choose the side of a sample.
_INSIDE = 1e-6

#: Width of an interval, as a share of the line, up to which rounding may have made it: events that coincide.
_COINCIDE = 1e-10

#: Least gain that counts, relative to the objective: far above what rounding makes of sums.
LEAST_GAIN = 1e-9

#: Samples whose mean a line turns about, drawn at random.
_CENTRE = 1000

#: Kinds of directions, with how often each is drawn: the bias, the scale of the hyperplane, one feature, all features.
_KINDS = (0.25, 0.25, 0.25, 0.25)


class Line(NamedTuple):
    """A line through the hyperplane of a node.

    Attributes
    ----------
    node
        The node.
    e, f
        (p,) direction of the weights, and that of the bias.
    """

    node: int
    e: FloatArray
    f: float


class Minimum(NamedTuple):
    """The best point of a line: how far along it, and by how much the objective, with its price, changes."""

    step: float
    change: float


def best_on(
    problem: HyperplaneProblem,
    tree: Hyperplanes,
    line: Line,
    rows: IntArray,
    scores: FloatArray,
    difference: FloatArray,
    *,
    price: float = 0.0,
) -> Minimum:
    """Return the best point of a line.

    Parameters
    ----------
    problem, tree, line
        The problem, a tree, and a line through one of its hyperplanes above the last level.
    rows, scores
        (m,) samples that reach the node, and their scores there.
    difference
        (m,) cost-to-go of the right child less that of the left one.
    price
        Charge for a sample between the sides, in multiples of C times its weight; of the largest C where that is 0.
    """
    w, e = tree.w[line.node], line.e
    sign, charge = problem.sign[rows], problem.C[line.node] * problem.weight[rows]
    price *= problem.penalty(line.node)
    g = problem.X[rows] @ e + line.f
    largest = float(np.abs(g).max(initial=0.0))
    if largest == 0.0:
        return Minimum(0.0, 0.0)
    reach = REACH * (float(np.abs(scores).max()) + 0.1) / largest
    priced, gap = price * problem.weight[rows], problem.epsilon + CLEARANCE
    moving = np.flatnonzero(np.abs(g) > 1e-300)
    s, speed = scores[moving], g[moving]

    # Events: where, by how much the slope of the loss rises, and by how much the objective jumps.
    places, rises, jumps = [], [], []
    for at, change in problem.kinks:
        places.append((at * sign[moving] - s) / speed)
        rises.append(change * charge[moving] * np.abs(speed))
        jumps.append(np.zeros(len(moving)))
    crossings = [(0.0, np.sign(speed) * difference[moving])]
    if price:
        into = np.sign(speed) * priced[moving]
        crossings += [(-gap, into), (CLEARANCE, -into)]
    for side, jump in crossings:
        places.append((side - s) / speed)
        rises.append(np.zeros(len(moving)))
        jumps.append(jump)
    if problem.l1:
        turning = np.flatnonzero(e)
        places.append(-w[turning] / e[turning])
        rises.append(2.0 * np.abs(e[turning]))
        jumps.append(np.zeros(len(turning)))
    place, rise, jump = np.concatenate(places), np.concatenate(rises), np.concatenate(jumps)
    inside = np.flatnonzero((place > -reach) & (place < reach))
    inside = inside[np.argsort(place[inside])]
    place, rise, jump = place[inside], rise[inside], jump[inside]

    # At the beginning of the line.
    first = scores - reach * g
    right = (first > 0.0) | ((first == 0.0) & (g >= 0.0))
    step = float(difference[right].sum())
    if price:
        step += float(priced[(first > -gap) & (first < CLEARANCE)].sum())
    slope, loss, we, ee = 0.0, 0.0, float(w @ e), float(e @ e)
    if problem.l1:  # the first slope is that right of the beginning, as for losses
        there = w - reach * e
        slope = float(np.where(there == 0.0, np.abs(e), np.sign(there) * e).sum())
        loss, we, ee = float(np.abs(there).sum() - np.abs(w).sum()), 0.0, 0.0
    for at, change in problem.kinks:
        lack = at - sign * first
        paying = (lack > 0.0) | ((lack == 0.0) & (sign * g < 0.0))
        loss += change * float(charge[paying] @ lack[paying])
        slope -= change * float((charge * sign * g)[paying].sum())

    # On every interval between two events.
    left = np.concatenate([[-reach], place])
    width = np.diff(left, append=reach)
    slopes = slope + np.concatenate([[0.0], np.cumsum(rise)])
    losses = loss + np.concatenate([[0.0], np.cumsum(slopes[:-1] * width[:-1])])
    steps = step + np.concatenate([[0.0], np.cumsum(jump)])
    descends: FloatArray = -(slopes + we)
    lowest: FloatArray = descends / ee if ee > 0.0 else np.copysign(np.inf, descends)
    at_step = np.clip(lowest, left + _INSIDE * width, left + (1.0 - _INSIDE) * width)
    values = at_step * we + 0.5 * ee * at_step**2 + losses + slopes * (at_step - left) + steps
    values[width <= _COINCIDE * reach] = np.inf
    best = int(np.argmin(values))
    now = float(problem.losses(line.node, scores, rows).sum()) + float(difference[scores >= 0.0].sum())
    if price:
        now += float(priced[(scores < CLEARANCE) & (scores > -gap)].sum())
    return Minimum(float(at_step[best]), float(values[best]) - now)


def random_line(
    problem: HyperplaneProblem, tree: Hyperplanes, t: int, rows: IntArray, rng: np.random.Generator
) -> Line:
    """Draw a line through the hyperplane of node t; it turns about the samples there."""
    p = problem.X.shape[1]
    kind = int(rng.choice(len(_KINDS), p=_KINDS))
    e: FloatArray
    used = problem.features(t, tree.w[t])
    if kind >= 2 and not len(used):
        kind = 0
    if kind == 0:
        return Line(t, np.zeros(p), 1.0)
    if kind == 1:
        return Line(t, tree.w[t].copy(), float(tree.b[t]))
    if kind == 2:
        e = np.zeros(p)
        e[used[rng.integers(len(used))]] = 1.0
        some = rows[rng.integers(len(rows), size=min(len(rows), _CENTRE))]
        return Line(t, e, -float(problem.X[some].mean(axis=0) @ e))
    e = np.zeros(p)
    e[used] = rng.normal(size=len(used))
    return Line(t, e, -float(problem.X[rows[rng.integers(len(rows))]] @ e))


class LineDescent:
    """Line moves at the nodes above the last level, one after the other.

    Scores are kept from move to move; costs-to-go are computed again where a move has changed them.
    """

    def __init__(self, problem: HyperplaneProblem, tree: Hyperplanes, price: float = 0.0) -> None:
        self.problem, self.price = problem, price
        self.tree = Hyperplanes(tree.w.copy(), tree.b.copy(), tree.value)
        self.scores = problem.scores(self.tree)
        self._refresh()

    def _refresh(self) -> None:
        self.costs, self.members = self.problem.costs(self.scores), self.problem.members(self.scores)

    def try_line(self, line: Line) -> bool:
        """Move to the best point of a line if that lowers the objective, with its price; return whether it did."""
        t, rows = line.node, self.members[line.node]
        if len(rows) < 2:
            return False
        scores = self.scores[rows, t]
        difference = self.costs[rows, 2 * t + 2] - self.costs[rows, 2 * t + 1]
        step, change = best_on(self.problem, self.tree, line, rows, scores, difference, price=self.price)
        if not change < -LEAST_GAIN * abs(self.tree.value):
            return False
        self.tree.w[t] += step * line.e
        self.tree.b[t] += step * line.f
        self.scores[:, t] = self.problem.X @ self.tree.w[t] + self.tree.b[t]
        self._refresh()
        return True
