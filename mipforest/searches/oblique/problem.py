"""Trees of hyperplane splits with additive losses, in the form that the search works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import linprog

from mipforest.arrays import FloatArray, IntArray
from mipforest.objectives.leaf_losses import PinballLoss, SquaredLoss
from mipforest.problem.structure import HyperplaneCharges, LabelledLeaves
from mipforest.searches.oblique.kernels import BY_SUMS, Items, NodeGroups, Points
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.trees.sides import RESIDUE

#: Most features of a support whose splits are searched; larger ones are bounded by their price.
MOST_FEATURES = 6

#: Most supports of a level that are searched, the cheapest first; the price of the next one bounds the others.
MOST_SUPPORTS = 3000

#: Most supports of one number of features that are listed, to choose the cheapest from.
MOST_LISTED = 100_000

#: Share of the weight of all samples that sums of weights may be off by: some thousand rounding errors.
NEGLIGIBLE = 1e-12

#: What HiGHS may miss a row of a separation by; added to the tolerance, so that no split is lost by it.
LP_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class ObliqueProblem:
    """A problem of :class:`HyperplaneCharges` or :class:`LabelledLeaves`, with the samples that stay together merged.

    Attributes
    ----------
    X
        (N, p) distinct points of the groups, features in [0, 1], those of a group one after the other.
    first
        (G + 1,) where each group begins.
    size
        (G,) samples of each group.
    charges
        (G, K) what each group pays for each label; of squared loss, sums over its samples: of weights, of weighted
        targets, and of weighted squared targets (K = 3).
    prices
        (depth, p) what a feature costs at a level, infinite where it is not allowed.
    gap
        Least distance between the scores of both sides.
    l1
        Whether that is for weights of absolute sum 1, and any threshold; else weights and intercepts are in [-1, 1].
    given_labels
        Whether the left child of a node of the last level predicts label 0 and the right one label 1; else leaves
        predict what is cheapest.
    squared
        Whether a leaf pays the squared deviations from the mean of its targets.
    values
        Whether labels are values of a target. Leaves are then charged by the sums over their groups, as with squared
        loss, and last splits have no pairs of labels, which would be too many.
    N_min
        Least number of samples in a leaf that holds any.
    upper_intercepts
        Least intercept above the last level.
    least_price
        What a tree without a split pays in addition.
    max_features
        Most features in a split; 0 for any number.
    """

    X: FloatArray
    first: IntArray
    size: IntArray
    charges: FloatArray
    prices: FloatArray
    gap: float
    l1: bool
    given_labels: bool
    squared: bool = False
    values: bool = False
    N_min: int = 1
    upper_intercepts: float = -1.0
    least_price: float = 0.0
    max_features: int = 0

    @classmethod
    def of(cls, structure: HyperplaneCharges | LabelledLeaves, X: FloatArray, depth: int) -> ObliqueProblem:
        """Merge samples (n, p) that no tree parts, and sum up what they are charged."""
        if isinstance(structure, LabelledLeaves):
            allowed = np.isfinite(structure.prices).any(axis=0)
            seen = np.where(allowed, X, 0.0)
            group = np.asarray(structure.group)
            points, at = np.unique(np.column_stack([group, seen]), axis=0, return_index=True)
            count = np.bincount(points[:, 0].astype(np.int64))
            finite = structure.prices[np.isfinite(structure.prices)]
            return cls(
                X=np.ascontiguousarray(X[at]),
                first=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
                size=np.bincount(group).astype(np.int64),
                charges=np.ascontiguousarray(structure.charges),
                prices=structure.prices,
                gap=structure.gap,
                l1=False,
                given_labels=True,
                upper_intercepts=structure.upper_intercepts,
                least_price=float(finite.min(initial=np.inf)) if structure.needs_split else 0.0,
            )
        rows, group = np.unique(X, axis=0, return_inverse=True)
        group = group.ravel()
        charged = _charged(structure)
        charges = np.zeros((len(rows), charged.shape[1]))
        np.add.at(charges, group, charged)
        return cls(
            X=np.ascontiguousarray(rows),
            first=np.arange(len(rows) + 1, dtype=np.int64),
            size=np.bincount(group).astype(np.int64),
            charges=charges,
            prices=np.full((depth, X.shape[1]), float(structure.split_cost)),
            gap=structure.margin,
            l1=True,
            given_labels=False,
            squared=isinstance(structure.loss, SquaredLoss),
            values=isinstance(structure.loss, PinballLoss),
            N_min=structure.N_min,
            max_features=structure.max_features,
        )

    @property
    def depth(self) -> int:
        """Levels of splits."""
        return len(self.prices)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.size)

    @cached_property
    def least(self) -> FloatArray:
        """(G,) what each group pays at least."""
        least: FloatArray = self.charges.min(axis=1)
        if self.squared:
            weight, first, second = self.charges.T
            least = np.maximum(second - first**2 / weight, 0.0)
        return least

    @cached_property
    def most(self) -> FloatArray:
        """(G,) what each group may pay: what makes its side worth a decision."""
        most: FloatArray = self.charges[:, 2] if self.squared else self.charges.max(axis=1)
        return most

    @property
    def scale(self) -> float:
        """Size of the sums of charges, of which their rounding errors are a small share."""
        return float(self.charges[:, 0].sum() if self.squared else self.charges.sum())

    @property
    def negligible(self) -> float:
        """Weight of the samples of a leaf, of squared loss, from which down it is a rounding error of their sums."""
        return NEGLIGIBLE * self.scale

    def capped(self, upper: float) -> ObliqueProblem:
        """Return the problem whose groups pay at most twice the value of a known tree for any label.

        A tree that pays such a charge is worse than the known one, with the charge or with what is left of it; all
        others have the same value. Charges that can only be avoided would otherwise round the sums of the others.
        """
        if self.squared or not 0.0 < 2.0 * upper < self.charges.max(initial=0.0):
            return self
        return replace(self, charges=np.minimum(self.charges, 2.0 * upper))

    def of_leaf(self, groups: IntArray) -> float:
        """Return what some groups (m,) pay in one leaf of the best label, or of the mean of their targets."""
        charged = self.charges[groups].sum(axis=0)
        if not self.squared:
            return float(charged.min())
        weight, first, second = charged
        return max(float(second - first**2 / weight), 0.0) if weight > self.negligible else 0.0

    def midway(self, features: IntArray, weights: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return weights (p,) and the intercept that moves the threshold of a tree, 0, to the middle of the gap."""
        w = np.zeros(self.X.shape[1])
        w[features] = weights
        return w, intercept + self.gap / 2 * (float(np.abs(weights).sum()) if self.l1 else 1.0)

    def part(self, groups: IntArray, charges: FloatArray) -> NodeGroups:
        """Return some groups (m,) with their charges (G, K) for compiled loops."""
        own, first = self.points_of(groups)
        return NodeGroups(
            np.ascontiguousarray(self.X[own].T),
            first,
            self.size[groups],
            np.ascontiguousarray(charges[groups].T),
            np.empty(len(own)),
            np.empty(len(own)),
            np.empty((charges.shape[1], 4)),
        )

    def points_of(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Return the points of some groups (m,), one group after the other, and where each begins (m + 1,)."""
        count = self.first[groups + 1] - self.first[groups]
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        own = np.arange(first[-1]) - np.repeat(first[:-1], count) + np.repeat(self.first[groups], count)
        return own, first

    def points(self) -> Points:
        """Return what compiled loops read."""
        return Points(
            self.X,
            self.first,
            self.size,
            self.gap,
            self.l1,
            FEASIBILITY_TOLERANCE,
            self.squared,
            self.negligible,
        )


def _charged(structure: HyperplaneCharges) -> FloatArray:
    """Return what samples are charged (n, K), or what their squared loss is the sum of.

    The median of a leaf is a target of its samples, so that of absolute loss the labels are all targets.
    """
    loss, weight = structure.loss, structure.weights
    if structure.predicts_class:
        return structure.statistics
    y = np.asarray(structure.y, dtype=np.float64)
    if isinstance(loss, PinballLoss):
        return np.column_stack([weight * loss.of(value, y) for value in np.unique(y)])
    return loss.statistics(loss.centred(y, weight), weight)


@dataclass(frozen=True, eq=False)
class Level:
    """The supports of a level whose price is below a limit, and the first boxes of their hyperplanes.

    Attributes
    ----------
    items
        The supports, with both labels at the last level.
    centre, half, item
        Boxes that hold all hyperplanes of these supports, up to scaling, and above the last level up to a change of
        sides.
    rest
        What any support costs at least that is not among them.
    """

    items: Items
    centre: FloatArray
    half: FloatArray
    item: IntArray
    rest: float

    @classmethod
    def of(cls, problem: ObliqueProblem, level: int, limit: float, *, sides_differ: bool = False) -> Level:
        """Enumerate supports by price, and cut the hyperplanes of each into boxes.

        A hyperplane is scaled so that its largest weight, or its intercept where that is larger and bounded, is 1 in
        size. Scaling up keeps the gap.
        """
        last = level == problem.depth - 1
        # Leaves that predict what is best for them can change sides.
        by_sums = problem.squared or problem.values
        both_ways = (last and not by_sums) or sides_differ
        supports, rest = cheap_supports(problem.prices[level], limit, problem.max_features)
        pairs = [(0, 1)]
        if last:
            K = problem.charges.shape[1]
            pairs = [(0, 1)] if problem.given_labels else list(combinations(range(K), 2))
            if by_sums:
                pairs = [(BY_SUMS, BY_SUMS)]
        n_dims = max((len(support) for support, _ in supports), default=1)
        features = np.full((len(supports) * len(pairs), n_dims), -1, dtype=np.int64)
        count, price = np.zeros(len(features), np.int64), np.zeros(len(features))
        labels = np.zeros((2, len(features)), np.int64)
        centre, half, item = [], [], []
        one = 0
        for support, cost in supports:
            boxes = _faces(len(support), problem, both_ways=both_ways)
            for pair in pairs:
                k = len(support)
                features[one, :k], count[one], price[one], labels[:, one] = support, k, cost, pair
                for low, high in boxes:
                    padded = np.zeros((2, n_dims + 1))
                    padded[:, : k + 1] = (low + high) / 2, (high - low) / 2
                    centre.append(padded[0])
                    half.append(padded[1])
                    item.append(one)
                one += 1
        return cls(
            Items(features, count, price, labels[0].copy(), labels[1].copy()),
            np.array(centre).reshape(-1, n_dims + 1),
            np.array(half).reshape(-1, n_dims + 1),
            np.array(item, dtype=np.int64),
            rest,
        )


def cheap_supports(
    prices: FloatArray,
    limit: float,
    max_features: int = 0,
    *,
    most_features: int = MOST_FEATURES,
    most_supports: int = MOST_SUPPORTS,
) -> tuple[list[tuple[tuple[int, ...], float]], float]:
    """Return supports whose price is below a limit, and the least price of the supports left out (inf if none are).

    A support has as many features without a price as it may have, all of them if there is no other limit: they can have
    the weight 0.

    Parameters
    ----------
    prices
        (p,) what each feature costs.
    limit
        Price from which on supports are of no use.
    max_features
        Most features of a support that count, as no other ones are allowed; 0 for any number.
    most_features, most_supports
        Supports that are left out have more features than this, or are none of so many cheapest ones.
    """
    free = np.flatnonzero(prices == 0).tolist()
    priced = [int(j) for j in np.argsort(prices, kind="stable") if 0 < prices[j] < limit]
    most = max_features or len(prices)
    found: list[tuple[tuple[int, ...], float]] = []
    rest = np.inf
    for k in range(min(len(priced), most) + 1):
        least, n_free = float(prices[priced[:k]].sum()), min(len(free), most - k)
        if k + n_free == 0:
            continue
        if least >= limit:
            break
        listed = comb(len(priced), k) * comb(len(free), n_free)
        if k + n_free > most_features or len(found) > most_supports or listed > MOST_LISTED:
            rest = least
            break
        found += [
            (tuple(sorted((*unpaid, *chosen))), cost)
            for chosen in combinations(priced, k)
            if (cost := float(prices[list(chosen)].sum())) < limit
            for unpaid in combinations(free, n_free)
        ]
    found.sort(key=lambda support: support[1])
    if len(found) > most_supports:
        rest = min(rest, found[most_supports][1])
    return found[:most_supports], rest


def _faces(k: int, problem: ObliqueProblem, *, both_ways: bool) -> list[tuple[FloatArray, FloatArray]]:
    """Return boxes, by their lowest and highest corners, that hold all hyperplanes on k features up to scaling.

    Parameters
    ----------
    k
        Number of features.
    problem
        Its weights and gap.
    both_ways
        Whether the right side is told from the left one. Otherwise, with weights of absolute sum 1, a hyperplane whose
        largest weight is -1 is replaced by the reversed one: weights -a and intercept -b - gap.
    """
    boxes = []
    signs = (1.0, -1.0) if both_ways else (1.0,)
    for j in range(k):
        for sign in signs:
            low, high = -np.ones(k + 1), np.ones(k + 1)
            low[j] = high[j] = sign
            if problem.l1:  # a score of 0 on the right side: the intercept is minus the score of some point
                low[k], high[k] = (-k, k - 1.0) if sign > 0 else (1.0 - k, k)
            boxes.append((low, high))
    if not problem.l1:
        for sign in signs:
            low, high = -np.ones(k + 1), np.ones(k + 1)
            low[k] = high[k] = sign
            boxes.append((low, high))
    return boxes


def separating(
    problem: ObliqueProblem,
    features: IntArray,
    left: IntArray,
    right: IntArray,
    least_intercept: float = -1.0,
) -> tuple[FloatArray, float] | None:
    """Return the hyperplane that parts two sets of groups with the widest room to its gap.

    A linear programme finds it, or, for weights of absolute sum 1 on one or two features, :func:`widest_line`.

    Parameters
    ----------
    problem
        The problem.
    features
        (k,) features that it may use.
    left, right
        Groups of both sides.
    least_intercept
        Least intercept, where intercepts are bounded.

    Returns
    -------
    weights, intercept
        (p,) weights and the intercept; ``None`` where every hyperplane misses some row by more than the tolerance.
    """
    k = len(features)
    low, high = (problem.X[problem.points_of(side)[0]][:, features] for side in (left, right))
    if problem.l1 and k <= 2 and len(low) and len(high):
        weights, reach, floor = widest_line(low, high)
        room = (floor - reach - problem.gap) / 2
        if room < -FEASIBILITY_TOLERANCE - 10 * LP_TOLERANCE:
            return None
        return problem.midway(features, weights, room - floor)
    X, n_left = np.vstack([low, high]), len(low)
    right_side = np.arange(len(X)) >= n_left
    sign = np.where(right_side, -1.0, 1.0)
    limit = np.where(right_side, 0.0, -problem.gap)
    # Columns: weights, intercept, the room; with the l1 norm, weights are differences of two columns.
    signed = sign[:, None] * X
    if problem.l1:
        A = np.column_stack([signed, -signed, sign, np.ones(len(X))])
        A = np.vstack([A, np.concatenate([np.ones(2 * k), [0.0, 0.0]])])
        limit = np.append(limit, 1.0)
        bounds = [(0.0, 1.0)] * (2 * k) + [(-2.0, 2.0), (-1.0, 1.0)]
    else:
        A = np.column_stack([signed, sign, np.ones(len(X))])
        bounds = [(-1.0, 1.0)] * k + [(least_intercept, 1.0), (-1.0, 1.0)]
    cost = np.zeros(A.shape[1])
    cost[-1] = -1.0
    found = linprog(
        cost,
        A_ub=A,
        b_ub=limit,
        bounds=bounds,
        method="highs-ds",
        options={"primal_feasibility_tolerance": LP_TOLERANCE, "dual_feasibility_tolerance": LP_TOLERANCE},
    )
    if found.x is None:
        raise ArithmeticError(f"the separation by a linear programme ended with: {found.message}")
    if found.x[-1] < -FEASIBILITY_TOLERANCE - 10 * LP_TOLERANCE:
        return None
    weights = found.x[:k] - found.x[k : 2 * k] if problem.l1 else found.x[:k]
    return problem.midway(features, np.where(np.abs(weights) > RESIDUE, weights, 0.0), float(found.x[-2]))


def widest_line(left: FloatArray, right: FloatArray) -> tuple[FloatArray, float, float]:
    """Return the weights of absolute sum 1 on one or two features that part two sets of points the widest.

    The weights are the four edges of a square. Along an edge the least score of the right side, less the greatest of
    the left one, is concave and piecewise linear: tangents from both ends meet above its maximum, until one touches it
    there.

    Parameters
    ----------
    left, right
        (m, k) and (r, k) points of both sides, k of 1 or 2, m and r at least 1.

    Returns
    -------
    weights, reach, floor
        The weights (k,), the greatest score of the left side, and the least score of the right one.
    """
    k = left.shape[1]
    corners = [np.array(corner)[:k] for corner in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    if k == 1:  # an edge is a corner
        edges = [(corner, corner) for corner in corners[::2]]
    else:
        edges = [(corners[i], corners[(i + 1) % 4]) for i in range(4)]
    best: tuple[float, FloatArray, float, float] | None = None
    for begin, end in edges:
        at_left, at_right = left @ begin, right @ begin
        along_left, along_right = left @ (end - begin), right @ (end - begin)

        def tangent(t: float) -> tuple[float, float]:
            """Value and slope at a share of the edge; remember the best one."""
            nonlocal best
            scores_left, scores_right = at_left + t * along_left, at_right + t * along_right  # noqa: B023
            i, j = int(scores_left.argmax()), int(scores_right.argmin())
            value = float(scores_right[j] - scores_left[i])
            if best is None or value > best[0]:
                weights = begin + t * (end - begin)  # noqa: B023
                best = value, weights, float(scores_left[i]), float(scores_right[j])
            return value, float(along_right[j] - along_left[i])  # noqa: B023

        low, high = 0.0, 1.0
        (value_low, slope_low), (value_high, slope_high) = tangent(low), tangent(high)
        while slope_low > 0 > slope_high:
            t = (value_high - value_low + slope_low * low - slope_high * high) / (slope_low - slope_high)
            assert best is not None
            if not low < t < high or value_low + slope_low * (t - low) <= best[0]:
                break
            value, slope = tangent(t)
            if slope > 0:
                low, value_low, slope_low = t, value, slope
            else:
                high, value_high, slope_high = t, value, slope
    assert best is not None
    return best[1:]
