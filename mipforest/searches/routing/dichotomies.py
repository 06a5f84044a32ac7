r"""Linear dichotomies: which points hyperplanes on few features can send to either side, and bounds of each.

Where the root's penalty is small its cost bounds nothing, and what the nodes below cost is known only once nearly all
samples have a side. On few features there are few linear dichotomies: as many as values on one feature, and about the
square of the number of points in a plane, which are listed here with a bound each.

**Every linear dichotomy, which a line separates strictly, is listed.** Move the line towards its left side until it
meets a point i of it; turned about i a little, it has the other points of the left side on its left and the right side
on its right. So a line that turns about each point, with that point on either side, meets them all; between two of the
directions in which another point lies nothing changes.

**The bound of a dichotomy** is that of one dual point of each node. Below the root, with :math:`m` the weight of the
rarer class and :math:`\bar x_{\pm}` the means of the classes, the margins of the rarer class are at their capacity and
those of the other one at the same share of theirs, so that the equality holds:

.. math::

    V \ge 2 C r m s - s^2 Q, \qquad u = C l m (\bar x_+ - \bar x_-), \qquad 0 \le s \le 1,

where l and r add up the changes of slope at the loss's kinks, and these times the kinks, and Q is what the best choice
of features makes of :math:`\tfrac12 u_j^2` (:mod:`mipforest.searches.routing.feature_branching`; with s it falls at
least as its square). At the root all margins are at their capacity, and the sides of the points left or right, each as
much as it weighs, keep the equality: :math:`V \ge s q - \tfrac12 s^2 \|u\|^2` with q the rewards. All sums change with
one point at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.routing.interior_point import (
    CAPACITY,
    EUCLIDEAN,
    REWARD,
    SIDE,
    SUM,
    UNLIMITED,
    A,
    InteriorWorkspace,
    Limits,
    proven,
    solve_rows,
)
from mipforest.searches.routing.plunge import ConvexNodes

#: More dichotomies than these are not listed: branching on sides shares work that they would repeat.
MAX_DICHOTOMIES = 20_000

#: A variable farther than this from its bounds, relative to its capacity up to 1, is free.
_INSIDE = 1e-6

#: Share of the cutoff up to which the root bounds next to nothing by itself. Where it costs more the list
#: does not pay: at 0.5 HFS-MARGOT on tic_tac_toe takes 68 processor seconds, not 24, and SFS-MARGOT on
#: breast_cancer_wisconsin 3.6, not 1.4.
_CHEAP = 0.05

#: Error of an angle, several times over.
_ANGLE = 1e-14

#: Weights below this share of the total are what rounding leaves of none.
_NO_WEIGHT = 1e-12

#: Gap relative to the value up to which a node on few features is solved, and iterations at most.
_ACCURACY, _ITERATIONS = 1e-7, 60.0

#: Linear dichotomies: sides of points, -1 left and 1 right, each with a bound.
Dichotomies = list[tuple[float, IntArray]]


class Samples(NamedTuple):
    """Groups of equal samples, and the loss that is charged for them.

    Attributes
    ----------
    X
        (G, p) features, centred.
    codes, sizes
        (p, G) ranks of the values of each feature, and (p,) how many values it has.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    """

    X: FloatArray
    codes: IntArray
    sizes: IntArray
    kinks: FloatArray


def samples_of(X: FloatArray, kinks: FloatArray) -> Samples:
    """Return groups (G, p) with the ranks of their values."""
    ranks = [np.unique(column, return_inverse=True) for column in X.T]
    codes = np.array([rank.ravel() for _, rank in ranks], np.int64)
    sizes = np.array([len(values) for values, _ in ranks], np.int64)
    return Samples(np.ascontiguousarray(X), codes, sizes, kinks)


class Sweep(NamedTuple):
    """Parameters of a sweep.

    Attributes
    ----------
    C, free, alpha
        Below the root: penalty, features free of cost, and cost of further ones (0: forbidden).
    slope, reward
        Sums over the kinks of changes of slope, and of these times the kinks.
    cutoff
        Value from which no dichotomy is listed.
    root, C_root, epsilon
        Of the root: what it is worth for all of them, its penalty, and the gap that stands for a strict inequality.
    """

    C: float
    free: int
    alpha: float
    slope: float
    reward: float
    cutoff: float
    root: float
    C_root: float
    epsilon: float


class Points:
    """A node on some features: its different points (K, q), which one each group is at (G,), weights (K, 2).

    ``plunges`` counts those that have begun there; ``dichotomies`` is what
    :func:`~mipforest.searches.routing.dichotomies.dichotomies_left` has listed, with the cutoff it was listed for.
    """

    dichotomies: tuple[float, list[tuple[float, IntArray]] | None] | None = None

    def __init__(self, samples: Samples, weight: FloatArray, features: IntArray) -> None:
        points, at = np.unique(samples.X[:, features], axis=0, return_inverse=True)
        self.at: IntArray = at.ravel()
        self.weight = np.zeros((len(points), 2))
        np.add.at(self.weight, self.at, weight)
        self.samples, self.plunges = samples_of(points, samples.kinks), 0


@kernel
def solve_plain(work: InteriorWorkspace, m: int, q: int, bias_limit: float, stop: float) -> float:
    """Return what is proven of a support vector machine of m rows and q features, at most a little above ``stop``."""
    limits = Limits(stop, _ACCURACY, 0.0, _ITERATIONS, bias_limit)
    solve_rows(work, m, q, EUCLIDEAN, limits)
    return proven(work, m, q, EUCLIDEAN, limits)


def dichotomies_left(
    points: Points, chosen: IntArray, samples: Samples, nodes: ConvexNodes, budget: IntArray, root: float, cutoff: float
) -> Dichotomies | None:  # fmt: skip
    """Return what :func:`dichotomies_in_plane` lists, once for the largest cutoff; ``None``, too, if it does not pay.

    That is where the root is no plane, or costs enough to bound by itself.
    """
    if len(chosen) != 2 or root > _CHEAP * cutoff:
        return None
    if points.dichotomies is None or points.dichotomies[0] < cutoff:
        points.dichotomies = (
            cutoff,
            dichotomies_in_plane(points, chosen, samples, nodes, budget, root, cutoff),
        )
    return points.dichotomies[1]


def dichotomies_in_plane(
    points: Points, chosen: IntArray, samples: Samples, nodes: ConvexNodes, budget: IntArray, root: float, cutoff: float
) -> Dichotomies | None:  # fmt: skip
    """List the linear dichotomies of the root's points that may lead to a tree below a value.

    Parameters
    ----------
    points, chosen
        The root on two features, and these.
    samples, nodes, budget
        The samples, the problem, and (|B|,) how many features are free of cost at a node.
    root
        Lower bound on the root's value, whatever the sides.
    cutoff
        Objective value from which nodes are pruned.

    Returns
    -------
    Bounds and sides (K,); ``None`` where there are too many, or angles are not accurate enough to distinguish them.
    """
    x, K = points.samples.X, len(points.weight)
    # Hyperplanes of trees below the cutoff leave a gap this wide. Turned by less than half of it over the diameter they
    # still separate, and that range has a direction this share of it away from those of all pairs of K points that
    # would be on one side; so an error of angles, of some 1e-16 each, hides nothing.
    gap, diameter = nodes.epsilon / np.sqrt(2.0 * cutoff), 2.0 * np.linalg.norm(x, axis=1).max()
    if not gap > 4.0 * K * _ANGLE * diameter:
        return None
    sums = np.zeros((K, 2, samples.X.shape[1]))
    for c in range(2):
        np.add.at(sums[:, c], points.at, nodes.weight[:, c, None] * samples.X)
    angle = np.arctan2(x[None, :, 1] - x[:, None, 1], x[None, :, 0] - x[:, None, 0])
    # A line turns by half a circle: points in its first half are on the left at first, the others on the right.
    start = np.where((angle >= 0.0) & (angle < np.pi), -1, 1)
    angle = np.where(angle >= np.pi, 0.0, np.where(angle < 0.0, angle + np.pi, angle))
    np.fill_diagonal(angle, -1.0)  # the point itself comes first
    order = np.argsort(angle, axis=1)
    in_order = np.take_along_axis(angle, order, axis=1)
    again = np.zeros((K, K), np.bool_)
    again[:, :-1] = in_order[:, 1:] == in_order[:, :-1]
    kinks, changes = nodes.kinks.T
    parameters = Sweep(
        C=float(nodes.C[1:].min()),
        free=int(budget[1:].max()),
        alpha=float(nodes.alpha) if np.isfinite(nodes.alpha) else 0.0,
        slope=float(changes.sum()),
        reward=float(kinks @ changes),
        cutoff=float(cutoff),
        root=float(root),
        C_root=float(nodes.C[0]),
        epsilon=float(nodes.epsilon),
    )
    found, bound = np.zeros((MAX_DICHOTOMIES, 4), np.int64), np.zeros(MAX_DICHOTOMIES)
    n = sweep(
        points.weight, sums, chosen, order, start, again, parameters, np.zeros((2, 2, sums.shape[2] + 1)),
        np.zeros(sums.shape[2]), found, bound,
    )  # fmt: skip
    if n > MAX_DICHOTOMIES:
        return None
    found_sides = {}
    for (i, turned, own, left), value in zip(found[:n], bound, strict=False):
        side = start[i].copy()
        side[order[i, : turned + 1]] *= -1
        side[i] = own
        side *= left
        found_sides[side.astype(np.int8).tobytes()] = (float(value), side)
    return list(found_sides.values())


@entry
def sweep(
    weight: FloatArray, sums: FloatArray, chosen: IntArray, order: IntArray, start: IntArray, again: BoolArray,
    parameters: Sweep, sides: FloatArray, square: FloatArray, found: IntArray, bound: FloatArray,
) -> int:  # fmt: skip
    """Turn a line about each point and list the dichotomies that may be worth less than a value.

    Parameters
    ----------
    weight, sums
        (K, 2) weights of the samples at each point by class, and (K, 2, p) sums of their features times weights.
    chosen
        (2,) features of the root.
    order, start, again
        (K, K) points in the order in which a line meets them that turns about each point, itself first; sides, -1 or 1,
        on which points (not in this order) are before; and which are met in the same direction as the next.
    parameters
        What else matters.
    sides, square
        (2, 2, p + 1) workspace for the sums on both sides, weights last, and (p,) workspace.
    found, bound
        (N, 4) pivot, last point in order that was met, side of the pivot, and which of the two sides is left (1: the
        one called so); and (N,) bounds: written.

    Returns
    -------
    How many were found, at most N + 1; some are found more than once, from several points.
    """
    K, p, n = len(weight), sums.shape[2], 0
    for i in range(K):
        for c in range(2):
            for j in range(p + 1):
                sides[0, c, j], sides[1, c, j] = 0.0, 0.0
        for k in range(K):
            _add(weight, sums, k, sides[1 if k == i or start[i, k] > 0 else 0], 1.0)
        own = 1
        # Before a point is met the pivot alone changes sides: this is also where all others are on one side.
        for e in range(K):
            k = order[i, e]
            if e > 0:
                to = 1 if start[i, k] < 0 else 0
                _add(weight, sums, k, sides[to], 1.0)
                _add(weight, sums, k, sides[1 - to], -1.0)
            if again[i, e]:
                continue
            for _ in range(2):
                below = parameters.cutoff - parameters.root
                value = _bound_below(sides[0], parameters, below, square)
                if value < below:
                    value += _bound_below(sides[1], parameters, below - value, square)
                if value < below:
                    for left in range(2):
                        root = max(parameters.root, _bound_root(sides, left, chosen, parameters))
                        if value + root < parameters.cutoff:
                            if n == len(found):
                                return n + 1
                            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = i, e, own, 1 - 2 * left
                            bound[n] = value + root
                            n += 1
                to = 0 if own > 0 else 1
                _add(weight, sums, i, sides[to], 1.0)
                _add(weight, sums, i, sides[1 - to], -1.0)
                own = -own
    return n


@kernel
def _add(weight: FloatArray, sums: FloatArray, k: int, side: FloatArray, sign: float) -> None:
    """Add a point to the sums of a side, or take it away."""
    p = sums.shape[2]
    for c in range(2):
        if weight[k, c] > 0.0:
            side[c, p] += sign * weight[k, c]
            for j in range(p):
                side[c, j] += sign * sums[k, c, j]


@kernel
def _bound_below(side: FloatArray, parameters: Sweep, enough: float, square: FloatArray) -> float:
    """Return a lower bound on the value of a node below the root for a side; rougher above ``enough``."""
    p = len(square)
    rare = min(side[0, p], side[1, p])
    if rare <= _NO_WEIGHT * (side[0, p] + side[1, p]):
        return 0.0
    first, second = 1.0 / side[0, p], 1.0 / side[1, p]
    size, rewards = (
        parameters.C * parameters.slope * rare,
        2.0 * parameters.C * parameters.reward * rare,
    )
    charge = 0.0
    for j in range(p):
        u = size * (side[1, j] * second - side[0, j] * first)
        square[j] = 0.5 * u * u
        charge += square[j]
    if _best_share(rewards, charge) >= enough:
        return _best_share(rewards, charge)
    charge = 0.0
    for _ in range(min(parameters.free, p)):
        largest = 0
        for j in range(1, p):
            if square[j] > square[largest]:
                largest = j
        charge += square[largest]
        square[largest] = 0.0
    if parameters.alpha > 0.0:
        for j in range(p):
            charge += max(0.0, square[j] - parameters.alpha)
    return _best_share(rewards, charge)


@kernel
def _best_share(rewards: float, charge: float) -> float:
    """Return the most that a share s of a dual point is worth: ``rewards s - charge s^2``, at least 0."""
    if rewards <= 0.0:
        return 0.0
    return rewards - charge if 2.0 * charge <= rewards else rewards * rewards / (4.0 * charge)


@kernel
def _bound_root(sides: FloatArray, left: int, chosen: IntArray, parameters: Sweep) -> float:
    """Return a lower bound on the root's value where the left side is one of the two; no more than 0 if it is empty."""
    p = sides.shape[2] - 1
    minus, plus = sides[0, 0, p] + sides[1, 0, p], sides[0, 1, p] + sides[1, 1, p]
    # What margins lack of the equality, points that must stay left make up for if it is positive, else those right.
    lack = parameters.C_root * parameters.slope * (plus - minus)
    kept = sides[left if lack > 0.0 else 1 - left]
    total, charge = kept[0, p] + kept[1, p], 0.0
    if total <= _NO_WEIGHT * (plus + minus):
        return 0.0
    for k in range(len(chosen)):
        j = chosen[k]
        u = (
            parameters.C_root
            * parameters.slope
            * (sides[0, 1, j] + sides[1, 1, j] - sides[0, 0, j] - sides[1, 0, j])
        )
        u -= lack * (kept[0, j] + kept[1, j]) / total
        charge += 0.5 * u * u
    rewards = parameters.C_root * parameters.reward * (plus + minus) + parameters.epsilon * max(0.0, lack)
    return _best_share(rewards, charge)


@entry
def solve_split(
    points: Samples, work: InteriorWorkspace, weight: FloatArray, C: float, bias_limit: float, epsilon: float,
    side: IntArray, gains: FloatArray, stop: float,
) -> float:  # fmt: skip
    """Solve the relaxation of a node above the last level, and measure the gain of keeping another point on a side.

    Parameters
    ----------
    points
        The K different points on the features of the node: all features are used.
    work
        Workspace.
    weight
        (K, 2) weights of the samples at each point, by class.
    C, bias_limit, epsilon
        Penalty, bound on the bias, and gap that stands for a strict inequality.
    side
        (K,) -1 for points that must stay left, 1 right, 0 for undecided ones.
    gains
        (2, K) proven gains for undecided points that are kept left, or right, written.
    stop
        Value from which no more is needed.

    Returns
    -------
    The value that is proven.
    """
    X, Z, v, f, kinks = points.X, work.Z, work.v, work.f, points.kinks
    n_points, q = X.shape
    m = 0
    for g in range(n_points):
        for c in range(2):
            if weight[g, c] > 0.0:
                for k in range(len(kinks)):
                    for j in range(q):
                        Z[j, m] = (2.0 * c - 1.0) * X[g, j]
                    Z[q, m] = 2.0 * c - 1.0
                    v[REWARD, m], v[CAPACITY, m] = kinks[k, 0], C * weight[g, c] * kinks[k, 1]
                    m += 1
        if side[g] != 0:
            for j in range(q):
                Z[j, m] = side[g] * X[g, j]
            Z[q, m] = side[g]
            v[REWARD, m], v[CAPACITY, m] = epsilon if side[g] < 0 else 0.0, UNLIMITED
            m += 1
    value: float = solve_plain(work, m, q, bias_limit, stop)
    for g in range(n_points):
        gains[0, g], gains[1, g] = 0.0, 0.0
    if value >= stop:
        return value
    free = 0
    for i in range(m):
        near = _INSIDE * min(v[CAPACITY, i], 1.0)
        if v[A, i] > near and v[CAPACITY, i] - v[A, i] > near:
            v[SIDE, free] = i
            free += 1
    for g in range(n_points):
        if side[g] == 0:
            score = 0.0
            for j in range(q):
                score += X[g, j] * f[SUM, j]
            gains[0, g] = _gain(work, X[g], q, free, -1.0, epsilon + score)
            gains[1, g] = _gain(work, X[g], q, free, 1.0, -score)
    return value


@kernel
def _gain(work: InteriorWorkspace, x: FloatArray, q: int, free: int, d: float, lack: float) -> float:
    """Return the most that one pair step with a point's side and a free variable raises the value.

    Parameters
    ----------
    work, free
        A solved node, and how many of its variables are free.
    x, q
        The point and the number of its features.
    d, lack
        Side, and what is lacking of its reward without the bias.
    """
    Z, v, f, best = work.Z, work.v, work.f, 0.0
    for k in range(free):
        i = int(v[SIDE, k])
        own, curvature = v[REWARD, i], 0.0
        for j in range(q):
            own -= Z[j, i] * f[SUM, j]
            curvature += (x[j] - Z[q, i] * Z[j, i]) ** 2
        # The equality is kept: a variable of the same direction falls, another one rises.
        same = Z[q, i] == d
        slope = lack - own if same else lack + own
        limit = v[A, i] if same else v[CAPACITY, i] - v[A, i]
        if slope > 0.0:
            step = min(limit, slope / max(curvature, 1e-12))
            best = max(best, step * (slope - 0.5 * step * curvature))
    return best
