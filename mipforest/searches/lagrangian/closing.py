r"""What is left between bound and incumbent at depth 1 and 2: subtrees of one split, in pairs, by their prices.

Every tree within the limits that is better than the incumbent, of value U, has :math:`L_T(\lambda) = f(T) +
\sum_r \lambda_r (g_r(T) - h_r) < U` for all prices :math:`\lambda \ge 0`. So with the root's threshold given, a
subtree of one split whose own share of this sum leaves no room for the best one on the other side is in no such tree.
The others are paired: with one limit by a binary search among those of the other side, with several by trying the
pairs whose sum is below U.

A threshold whose best sum is known bounds that of the feature's other thresholds, as for errors in
:mod:`mipforest.searches.exact.covers`: a sample between both changes it by the range of its priced costs at most. That
holds where leaves may have any size and no label is forbidden, in a box too
(:class:`~mipforest.searches.exact.boxes.Box`). A node that has to split may have one label on both sides, or a split
that parts none of its samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.exact.boxes import Box
from mipforest.searches.lagrangian.limited import LimitedTrees

#: Pairs of subtrees that are tried for one threshold at the root; with more, it keeps its bound.
MAX_PAIRS = 20_000_000

#: Pairs at a time.
PAIRS = 1_000_000

#: Sums of label pairs of one threshold after the other at a time; thresholds up to which each has sums of its own.
SUMS, FEW = 2_000_000, 1000

#: Share of :attr:`LimitedTrees.spread` that rounding may take from a sum.
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Subtrees:
    """Trees of at most one split for some samples.

    Attributes
    ----------
    cost, priced
        (m,) costs, with those of splits, and the same with the prices of what they use.
    use
        (r, m) what they use.
    threshold
        (m,) threshold, -1 where there is no split.
    labels
        (m, 2) labels of the two leaves, the same one twice without a split.
    """

    cost: FloatArray
    priced: FloatArray
    use: FloatArray
    threshold: IntArray
    labels: IntArray

    def subset(self, chosen: BoolArray | IntArray) -> Subtrees:
        """Return some of them."""
        return Subtrees(
            self.cost[chosen],
            self.priced[chosen],
            self.use[:, chosen],
            self.threshold[chosen],
            self.labels[chosen],
        )

    @classmethod
    def joined(cls, parts: Sequence[Subtrees]) -> Subtrees:
        """Return those of all parts."""
        return cls(
            np.concatenate([part.cost for part in parts]),
            np.concatenate([part.priced for part in parts]),
            np.concatenate([part.use for part in parts], axis=1),
            np.concatenate([part.threshold for part in parts]),
            np.concatenate([part.labels for part in parts]),
        )


class Sides(NamedTuple):
    """Both sides of a threshold at the root.

    Attributes
    ----------
    root
        Number of the threshold.
    left
        (g,) which groups are on its left.
    least_left, least_right
        Least priced costs of trees of at most one split there.
    """

    root: int
    left: BoolArray
    least_left: float
    least_right: float


class Closing:
    """Best trees of depth 1 and 2 by the root's threshold.

    Parameters
    ----------
    trees
        Costs and limits.
    prices
        (r,) prices of the limits, at least 0.
    box
        Trees to search among; all of them without it.
    """

    def __init__(self, trees: LimitedTrees, prices: FloatArray, box: Box | None = None) -> None:
        self.trees, self.prices, self.box = trees, prices, box
        thresholds, n_rows = trees.charges.thresholds, len(trees.use)
        group, g = thresholds.group, len(thresholds.X)
        columns = [trees.cost, *trees.use, trees.forbidden.astype(float)]
        table = np.zeros((g, len(columns), trees.cost.shape[1]))
        np.add.at(table, group, np.stack(columns, axis=1))
        #: (g, 2 + r, K) costs, uses and numbers of forbidden labels of each group.
        self.table, self.size = table, np.bincount(group, minlength=g).astype(float)
        self.left = thresholds.left.T.tocsr()
        self.n_rows = n_rows
        #: What sums of costs may be wrong by, and sums of priced costs: prices may be far larger than costs.
        self.rounding = ROUNDING * trees.spread
        self.priced_rounding = self.rounding + ROUNDING * float(
            prices @ np.abs(trees.use).max(axis=2).sum(axis=1)
        )
        #: (r,) limits, beyond which no sum is by its own rounding.
        self.most = trees.most + np.finfo(np.float64).eps * thresholds.X.size

        #: (g, K) priced costs of each group, forbidden labels above all else; and (q,) sums of their ranges.
        priced = self.table[:, 0] + np.tensordot(prices, self.table[:, 1 : 1 + n_rows], (0, 1))
        forbidden = self.table[:, -1] > 0
        barrier = 2.0 * float(np.abs(priced).max(axis=1).sum()) + trees.alpha * 2**trees.depth + 1.0
        self.priced = np.where(forbidden, barrier, priced)
        ranges = np.cumsum(self.left @ np.ptp(self.priced, axis=1))
        self.ranges = None if forbidden.any() or trees.charges.N_min > 1 else ranges

    def least(self, sides: Sides) -> float:
        """Return the least priced cost of a tree of depth 2 with a threshold at the root, limits paid back."""
        return sides.least_left + sides.least_right + self._fixed - self.priced_rounding

    @property
    def _fixed(self) -> float:
        """Cost of the root's split, less what limits pay back."""
        return self.trees.alpha - float(self.prices @ self.trees.most)

    def sides(self, root: int) -> Sides:
        """Return both sides of a threshold at the root."""
        thresholds = self.trees.charges.thresholds
        left = thresholds.X[:, thresholds.feature[root]] < thresholds.value[root]
        least = (self._least_of_one_split(here, root, node) for node, here in ((1, left), (2, ~left)))
        return Sides(root, left, *least)

    def _usable(self, root: int, node: int) -> tuple[BoolArray, bool]:
        """Return (q,) which thresholds a node may have below a root, -1 without one, and whether it has to split."""
        of, box = self.trees.charges.thresholds.feature, self.box
        if box is None:
            return np.ones(len(of), dtype=bool), False
        allowed = box.allowed[node]
        if root >= 0 and (group := box.group[of[root]]) >= 0:
            allowed = allowed & (box.group != group)
        return allowed[of], bool(box.must[node])

    def _least_of_one_split(self, here: BoolArray, root: int, node: int) -> float:
        """Return the least priced cost of a tree of at most one split for the groups (g,) that are here."""
        trees, at = self.trees, np.flatnonzero(here)
        if self.size[at].sum() < trees.charges.N_min:
            return np.inf
        below, parts, _, must, alone = self._parted(at, self.priced[at], root, node)
        whole, below = self.priced[at].sum(axis=0), below[parts]
        leaf = float(whole.min())
        if must:
            leaf = leaf + trees.alpha if alone >= 0 else np.inf
        split = below.min(axis=1) + (whole - below).min(axis=1) + trees.alpha
        return min(leaf, float(split.min(initial=np.inf)))

    def _parted(
        self, at: IntArray, sums: FloatArray, root: int, node: int
    ) -> tuple[FloatArray, BoolArray, BoolArray, bool, int]:
        """Return what thresholds part of the groups (m,) at a node, with sums (m, k).

        These are (q, k) what the sums are below each threshold; (q,) whether both sides are large enough; the same of
        those that part what others before them do not; whether the node has to split, and then a threshold that parts
        nothing, -1 if there is none.
        """
        thresholds, N_min = self.trees.charges.thresholds, self.trees.charges.N_min
        steps = self.left[:, at] @ np.column_stack([sums, self.size[at]])
        below = np.cumsum(steps, axis=0)
        first = thresholds.first[:-1][thresholds.feature]
        below -= np.vstack([np.zeros(below.shape[1]), below])[first]
        n_here, n_below = self.size[at].sum(), np.rint(below[:, -1])
        usable, must = self._usable(root, node)
        parts = usable & (n_below >= N_min) & (n_here - n_below >= N_min)
        alone = np.flatnonzero(usable & ((n_below == 0) | (n_below == n_here)))
        fresh = parts & (np.rint(steps[:, -1]) > 0)
        return below[:, :-1], parts, fresh, must, int(alone[0]) if must and len(alone) else -1

    def spread_to(self, root: int, least: float) -> tuple[slice, FloatArray]:
        """Return the thresholds of the root's feature, and what they cost at least by what the root's does."""
        of = self.trees.charges.thresholds.of(int(self.trees.charges.thresholds.feature[root]))
        if self.ranges is None:
            return slice(root, root + 1), np.full(1, least)
        return of, least - np.abs(self.ranges[of] - self.ranges[root]) - self.priced_rounding

    def subtrees(self, here: BoolArray, root: int = -1, node: int = 0, *, most: float = np.inf) -> Subtrees:
        """Return the trees of at most one split for the groups (g,) that are here, forbidden labels left out.

        ``node`` is theirs, below a threshold ``root``. Of the splits that part none of the samples it is one. Those
        whose priced cost is above ``most`` are left out; of many labels and thresholds, few others are left.
        """
        trees, K, at = self.trees, self.trees.cost.shape[1], np.flatnonzero(here)
        own, priced = self.table[at].reshape(len(at), -1), self.priced[at]
        if self.size[at].sum() < trees.charges.N_min:
            none = np.zeros(0)
            return Subtrees(none, none, np.zeros((self.n_rows, 0)), none.astype(int), np.zeros((0, 2), int))
        below, _, fresh, must, alone = self._parted(at, priced, root, node)
        k = np.flatnonzero(fresh)
        least = below[k].min(axis=1) + (priced.sum(axis=0) - below[k]).min(axis=1) + trees.alpha
        k = k[least <= most]
        whole = own.sum(axis=0).reshape(-1, K)
        left = self._sums_below(at, own, k, root, node).reshape(len(k), len(whole), K)
        a, b = (pair.ravel() for pair in np.nonzero(np.ones((K, K)) if must else ~np.eye(K, dtype=bool)))

        def within(values: FloatArray, split_cost: float, threshold: IntArray, labels: IntArray) -> Subtrees:
            """Return those trees of sums (2 + r, m) that are asked for."""
            cost, use = values[0] + split_cost, values[1 : 1 + self.n_rows]
            found = Subtrees(cost, cost + self.prices @ use, use, threshold, labels)
            return found.subset((np.rint(values[-1]) == 0) & (found.priced <= most))

        of_leaf = np.repeat(np.arange(K)[:, None], 2, axis=1)
        parts = []
        if not must or alone >= 0:
            parts.append(within(whole, trees.alpha * must, np.full(K, alone), of_leaf))
        n_parts = 1 + len(k) * len(whole) * len(a) // SUMS
        for some in np.array_split(np.arange(len(k)), n_parts):
            both = left[some][:, :, a] + (whole - left[some])[:, :, b]
            values = np.moveaxis(both, 1, 0).reshape(len(whole), -1)
            labels = np.tile(np.column_stack([a, b]), (len(some), 1))
            parts.append(within(values, trees.alpha, np.repeat(k[some], len(a)), labels))
        return Subtrees.joined(parts)

    def _sums_below(self, at: IntArray, sums: FloatArray, k: IntArray, root: int, node: int) -> FloatArray:
        """Return what sums (m, c) of some groups (m,) are below each of some thresholds."""
        if len(k) > FEW:
            return self._parted(at, sums, root, node)[0][k]
        thresholds = self.trees.charges.thresholds
        found, n_parts = np.zeros((len(k), sums.shape[1])), 1 + len(k) * len(at) // SUMS
        for some in np.array_split(np.arange(len(k)), n_parts):
            f, value = thresholds.feature[k[some]], thresholds.value[k[some]]
            found[some] = (thresholds.X[np.ix_(at, f)] < value).T.astype(np.float64) @ sums
        return found

    def best(self, sides: Sides, cutoff: float) -> tuple[float, float, IntArray, IntArray]:
        """Find the best tree of depth 2 within the limits with a threshold at the root.

        Parameters
        ----------
        sides
            Those of the threshold.
        cutoff
            Only trees of lower cost are asked for.

        Returns
        -------
        bound, cost, splits, labels
            A lower bound on the cost of all these trees, about ``cutoff`` at most; and the best one, infinite and
            empty where none was found.
        """
        trees, nothing = self.trees, np.zeros(0, dtype=np.int64)
        root, least = sides.root, self.least(sides)
        if not least < cutoff:
            return cutoff, np.inf, nothing, nothing
        room = cutoff - self._fixed + self.priced_rounding
        one = self.subtrees(sides.left, root, 1, most=room - sides.least_right)
        other = self.subtrees(~sides.left, root, 2, most=room - sides.least_left)
        if not (len(one.cost) and len(other.cost)):
            return cutoff, np.inf, nothing, nothing
        found = self._paired(one, other, room)
        if found is None:
            return least, np.inf, nothing, nothing
        cost, i, j = found
        cost += trees.alpha
        if not cost < cutoff:
            return cutoff - self.rounding, np.inf, nothing, nothing
        splits = np.array([root, one.threshold[i], other.threshold[j]])
        return cost - self.rounding, cost, splits, np.concatenate([one.labels[i], other.labels[j]])

    def best_of_one_split(self, cutoff: float) -> tuple[float, IntArray, IntArray]:
        """Return cost, split (1,) and labels (2,) of the best tree of depth 1; infinite and empty without one.

        Trees whose cost is above ``cutoff`` are not looked for.
        """
        room = cutoff + float(self.prices @ self.trees.most) + self.priced_rounding
        found = self.subtrees(np.ones(len(self.size), dtype=bool), most=room)
        cost = np.where((found.use <= self.most[:, None]).all(axis=0), found.cost, np.inf)
        if not np.isfinite(cost).any():
            return np.inf, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        best = int(cost.argmin())
        return float(cost[best]), found.threshold[[best]], found.labels[best]

    def _paired(self, one: Subtrees, other: Subtrees, room: float) -> tuple[float, int, int] | None:
        """Return cost and numbers of the cheapest pair within the limits; ``None`` where there are too many pairs."""
        most = self.most
        if self.n_rows <= 1:
            order = np.argsort(other.use[0], kind="stable") if self.n_rows else np.argsort(other.cost)[:1]
            cheapest = np.minimum.accumulate(other.cost[order])
            where = np.maximum.accumulate(np.where(other.cost[order] == cheapest, np.arange(len(order)), 0))
            if self.n_rows:
                n = np.searchsorted(other.use[0][order], most[0] - one.use[0], side="right")
            else:
                n = np.ones(len(one.cost), dtype=np.int64)
            total = np.where(n > 0, one.cost + cheapest[np.maximum(n, 1) - 1], np.inf)
            i = int(total.argmin())
            return float(total[i]), i, int(order[where[max(int(n[i]), 1) - 1]])
        order = np.argsort(other.priced)
        ascending = other.priced[order]
        n = np.searchsorted(ascending, room - one.priced, side="right")
        if n.sum() > MAX_PAIRS:
            return None
        best = (np.inf, 0, 0)
        for rows in np.array_split(np.arange(len(n)), max(1, int(n.sum()) // PAIRS)):
            if not n[rows].sum():
                continue
            ones = np.repeat(rows, n[rows])
            others = order[np.arange(len(ones)) - np.repeat(np.cumsum(n[rows]) - n[rows], n[rows])]
            within = (one.use[:, ones] + other.use[:, others] <= most[:, None]).all(axis=0)
            total = np.where(within, one.cost[ones] + other.cost[others], np.inf)
            at = int(total.argmin())
            if total[at] < best[0]:
                best = (float(total[at]), int(ones[at]), int(others[at]))
        return best
