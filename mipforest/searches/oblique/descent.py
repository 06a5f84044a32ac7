"""Local search: one node of a tree at a time, given the others, by a few steps of the exact search.

Given the trees below a node and the groups that reach it, each group has a charge on either side. So the node's best
split is a split of the last level with these charges, and the compiled loops look for it among the hyperplanes of a few
supports, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from warnings import catch_warnings, simplefilter

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.oblique.kernels import Items, refine
from mipforest.searches.oblique.problem import Level, ObliqueProblem
from mipforest.searches.oblique.search import ROUNDING, Boxes, new_store

#: Supports that a visit of a node looks at, and boxes that it bisects.
SUPPORTS, STEPS = 8, 1_500

#: Share of visits that fit a logistic regression instead, and the decimal exponents of its inverse penalty.
FITTED, PENALTIES = 0.3, (-1.0, 4.0)

#: Share of fits with as many features as could pay, where features have a price; the others have a few.
DENSE = 0.25

#: Share of visits of nodes above the last level that put one fitted split in place of the subtree, and how many such
#: splits are tried for the whole tree first. On tic-tac-toe one split on all 18 features is better than trees of
#: several splits on few, and no change of one node leads from these to it.
COLLAPSED, FIRST = 0.1, 20

#: Visits without a better tree, for each node, before a node is changed at random.
PATIENCE = 6

#: Visits without a better tree, for each group of samples, after which the exact search begins.
VISITS = 3


@dataclass(eq=False)
class Splits:
    """The splits of a tree: weights (|B|, p), intercepts (|B|,)."""

    w: FloatArray
    b: FloatArray

    def copy(self) -> Splits:
        """Return a copy."""
        return Splits(self.w.copy(), self.b.copy())


class Descent:
    """A local search of a problem.

    Parameters
    ----------
    problem
        The problem.
    limit
        Price from which on supports are of no use.
    seed
        Seed of what is drawn.
    """

    def __init__(self, problem: ObliqueProblem, limit: float, seed: int) -> None:
        self.problem = problem
        self._rng = np.random.default_rng(seed)
        self._points = problem.points()
        self._levels = [Level.of(problem, level, limit, sides_differ=True) for level in range(problem.depth)]
        self._rounding = ROUNDING * float(problem.charges.sum())
        self._all = np.arange(problem.n_groups)

    def run(
        self,
        tree: Splits,
        adopt: Callable[[Splits], None],
        expired: Callable[[], bool],
        visits: int | None,
    ) -> None:
        """Improve a tree until the time is over or enough nodes have been visited without a better tree.

        Parameters
        ----------
        tree
            Where to begin.
        adopt
            Called with every tree that is the best so far.
        expired
            Whether to stop.
        visits
            Most nodes to visit without a better tree; ``None`` for no limit.
        """
        best, best_value = tree.copy(), self.value(tree)
        for _ in range(FIRST if self.problem.depth > 1 else 0):
            alone = None if expired() else self._collapsed(best, 0, self._all)
            if alone is not None:
                best, best_value = alone, self.value(alone)
                adopt(best)
        here, value, failed = best.copy(), best_value, 0
        n_nodes, last = len(tree.b), 0
        for visit in count():
            if expired() or (visits is not None and visit - last >= visits):
                return
            if failed > PATIENCE * n_nodes:
                if value < best_value - self._rounding:
                    best, best_value, last = here.copy(), value, visit
                    adopt(best)
                here, failed = best.copy(), 0
                self._kick(here)
                value = self.value(here)
            t = int(self._rng.integers(n_nodes))
            changed = self._visited(here, t)
            found = np.inf if changed is None else self.value(changed)
            if changed is not None and found < value - self._rounding:
                here, value, failed = changed, found, 0
                if value < best_value - self._rounding:
                    best, best_value, last = here.copy(), value, visit
                    adopt(best)
            else:
                failed += 1

    # ------------------------------------------------------------------ trees

    def value(self, tree: Splits) -> float:
        """Return the value of a tree, infinite where it parts a group that stays together, or keeps no gap."""
        used = tree.w != 0
        levels = np.log2(np.arange(1, len(tree.b) + 1)).astype(np.int64)
        prices = self.problem.prices[levels]
        return float(prices[used].sum() + self._below(tree, 0, self._all)[self._all].sum())

    def _sides(self, tree: Splits, t: int) -> tuple[BoolArray, BoolArray]:
        """Return whether each group goes right (G,), and whether it goes anywhere."""
        problem = self.problem
        if not tree.w[t].any():
            right = np.full(problem.n_groups, not problem.given_labels or tree.b[t] >= 0)
            return right, np.ones(problem.n_groups, dtype=bool)
        score = problem.X @ tree.w[t] + tree.b[t]
        size = float(np.abs(tree.w[t]).sum()) if problem.l1 else 1.0
        # The threshold stands in the middle of the gap.
        room = problem.gap * size / 2 * (1.0 - 1e-9)
        low, high = self._spans(score)
        return low >= room, (low >= room) | (high <= -room)

    def _spans(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the greatest score (G,) of each group, by those of all points (N,)."""
        first = self.problem.first[:-1]
        return np.minimum.reduceat(score, first), np.maximum.reduceat(score, first)

    def _below(self, tree: Splits, t: int, groups: IntArray) -> FloatArray:
        """Return what each group costs (G,) at or below a node that some groups reach; infinite where it may not go."""
        problem, n_nodes = self.problem, len(tree.b)
        if t >= n_nodes:
            if problem.given_labels:
                return problem.charges[:, (t - n_nodes) % 2]
            return problem.charges[:, int(problem.charges[groups].sum(axis=0).argmin())]
        right, fine = self._sides(tree, t)
        costs = np.where(
            right,
            self._below(tree, 2 * t + 2, groups[right[groups]]),
            self._below(tree, 2 * t + 1, groups[~right[groups]]),
        )
        return np.where(fine, costs, np.inf)

    def _reaching(self, tree: Splits, t: int) -> IntArray:
        """Return the groups that reach a node."""
        if t == 0:
            return self._all
        parent = (t - 1) // 2
        groups, right = self._reaching(tree, parent), self._sides(tree, parent)[0]
        reaching: IntArray = groups[right[groups] == (t % 2 == 0)]
        return reaching

    # ------------------------------------------------------------------ moves

    def _visited(self, tree: Splits, t: int) -> Splits | None:
        """Return the tree with another split at a node, ``None`` where none was found."""
        problem, groups = self.problem, self._reaching(tree, t)
        level = int(np.log2(t + 1))
        own, last = self._levels[level], level == problem.depth - 1
        if len(groups) == 0:
            return None
        if not last and self._rng.random() < COLLAPSED:
            return self._collapsed(tree, t, groups)
        items, charges = own.items, problem.charges
        if not last:
            left, right = self._children(tree, t, groups)
            charges = np.ascontiguousarray(np.column_stack([left, right]))
        now = float(problem.prices[level][tree.w[t] != 0].sum()) + float(
            self._below(tree, t, groups)[groups].sum()
        )
        found = tree.copy()
        found.w[t] = 0.0
        if last and not problem.given_labels:
            plain, side = charges[groups].sum(axis=0).min(), 0.0
        else:
            sums = charges[groups].sum(axis=0)
            plain, side = float(sums.min()), (-1.0 if sums[0] < sums[1] else 1.0)
            if not problem.given_labels and side < 0:
                plain = np.inf  # such a node sends everything right
        if plain < now - self._rounding and tree.w[t].any():
            now = plain
            found.b[t] = side
        elif not np.isfinite(now):
            return None
        cutoff = now - self._rounding
        if self._rng.random() < FITTED:
            fitted = self._fitted(level, groups, charges[groups], cutoff)
            if fitted is None:
                return found if now == plain else None
            found.w[t], found.b[t] = fitted
            return found
        chosen = self._drawn(items, cutoff, tree.w[t])
        if len(chosen):
            boxes = np.flatnonzero(np.isin(own.item, chosen))
            cover = Boxes(own.centre[boxes], own.half[boxes], own.item[boxes], items.price[own.item[boxes]])
            store = new_store(own, cover, len(boxes) + STEPS + 1)
            least_size = problem.N_min if last else 0
            refine(
                self._points,
                items,
                store,
                problem.part(groups, charges),
                least_size,
                cutoff,
                np.inf,
                self._rounding,
                STEPS,
            )
            if store.best[0] < cutoff:
                one = int(store.best[1])
                k = int(items.n_features[one])
                features = items.features[one, :k]
                found.w[t], found.b[t] = problem.midway(
                    features, store.best[2 : 2 + k], float(store.best[2 + k])
                )
                return found
        return found if now == plain else None

    def _collapsed(self, tree: Splits, t: int, groups: IntArray) -> Splits | None:
        """Return the tree with one fitted split in place of the subtree of a node, ``None`` where that is no better."""
        problem, found, nodes = self.problem, tree.copy(), [t]
        now = float(self._below(tree, t, groups)[groups].sum())
        while nodes[0] < len(tree.b):
            level = int(np.log2(nodes[0] + 1))
            now += float(sum(problem.prices[level][tree.w[u] != 0].sum() for u in nodes))
            found.w[nodes] = 0.0
            found.b[nodes[-1]] = 1.0  # all groups go right, to the last node
            place, nodes = nodes[-1], [child for u in nodes for child in (2 * u + 1, 2 * u + 2)]
        fitted = self._fitted(level, groups, problem.charges[groups], now - self._rounding)
        if fitted is None:
            return None
        found.w[place], found.b[place] = fitted
        return found

    def _fitted(
        self, level: int, groups: IntArray, charges: FloatArray, cutoff: float
    ) -> tuple[FloatArray, float] | None:
        """Return a split of a logistic regression on a drawn number of features, at the cheapest threshold.

        Groups (m,) are to go where they are charged (m, 2) less, by noisy weights; of the charges (m, K) of more labels
        at the last level, those of the two cheapest count. ``None`` where no split is below ``cutoff``.
        """
        problem, rng = self.problem, self._rng
        if charges.shape[1] > 2:
            charges = charges[:, charges.sum(axis=0).argsort()[:2]]
        gain = charges[:, 0] - charges[:, 1]
        counted = np.flatnonzero(np.isfinite(gain) & (gain != 0))
        if len(np.unique(gain[counted] > 0)) < 2:
            return None
        from sklearn.linear_model import (
            LogisticRegression,
        )  # takes seconds to import, and small problems end before

        points = problem.first[groups]
        X, wanted = problem.X[points][counted], gain[counted] > 0
        weight = np.abs(gain[counted]) * rng.lognormal(0.0, 0.3, len(counted))
        prices = problem.prices[level]
        features = np.flatnonzero(prices < cutoff)
        penalty = 10.0 ** rng.uniform(*PENALTIES)
        most = min(
            int((np.cumsum(np.sort(prices[features])) < cutoff).sum()), problem.max_features or len(features)
        )
        if most == 0:
            return None
        sizes = [len(features)]
        if prices[features].max() > 0:
            sizes.append(most if rng.random() < DENSE else min(most, 1 + int(rng.geometric(0.3))))
        elif most < len(features):
            sizes.append(most)
        w = np.zeros(problem.X.shape[1])
        for size in sizes:
            if size < len(features):
                share = np.abs(w[features]) * X[:, features].std(axis=0)
                features = features[np.argsort(-share, kind="stable")[:size]]
            model = LogisticRegression(C=penalty, max_iter=200)
            w[:] = 0.0
            with catch_warnings():
                simplefilter("ignore")  # where its steps do not suffice, the direction is as good as another
                w[features] = model.fit(X[:, features], wanted, weight).coef_[0]
        if not w.any():
            return None
        w /= np.abs(w).sum()
        value, b = self._best_threshold(level, groups, charges, w)
        return (w, b) if value < cutoff else None

    def _best_threshold(
        self, level: int, groups: IntArray, charges: FloatArray, w: FloatArray
    ) -> tuple[float, float]:
        """Return the cheapest threshold of a direction of absolute sum 1 that keeps the gap, as an intercept."""
        problem = self.problem
        order, reach, floor = self._places(problem.X @ w, groups)
        left = np.cumsum(charges[order, 0])[:-1]
        right = np.cumsum(charges[order[::-1], 1])[::-1][1:]
        below = np.cumsum(problem.size[groups][order])
        fits = floor - reach >= problem.gap
        if level == problem.depth - 1:
            fits &= (below[:-1] >= problem.N_min) & (below[-1] - below[:-1] >= problem.N_min)
        if not fits.any():
            return np.inf, 0.0
        cost = np.where(fits, left + right, np.inf)
        best = int(cost.argmin())
        price = float(problem.prices[level][w != 0].sum())
        return price + float(cost[best]), -float(reach[best] + floor[best]) / 2

    def _places(self, score: FloatArray, groups: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return some groups (m,) in order of their least scores, and the m - 1 places between them.

        Returns
        -------
        order
            (m,) places of the groups, the least score first.
        reach, floor
            (m - 1,) greatest score of the groups up to a place, and least score of those behind it.
        """
        low, high = (span[groups] for span in self._spans(score))
        order = np.argsort(low, kind="stable")
        return order, np.maximum.accumulate(high[order])[:-1], low[order][1:]

    def _children(self, tree: Splits, t: int, groups: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what each group would cost on either side of a node, with the labels that leaves have now."""
        right = self._sides(tree, t)[0][groups]
        sides = []
        for child, here in ((2 * t + 1, groups[~right]), (2 * t + 2, groups[right])):
            sides.append(self._below(tree, child, here if len(here) else groups))
        return sides[0], sides[1]

    def _drawn(self, items: Items, cutoff: float, w: FloatArray) -> IntArray:
        """Draw a few supports below a price, cheap ones rather, and all with the features of a split."""
        able = np.flatnonzero(items.price < cutoff)
        if len(able) > SUPPORTS:
            price = items.price[able]
            weight = 1.0 / (1.0 + np.searchsorted(price, price))  # equal prices, equal chances
            able = able[self._rng.choice(len(able), SUPPORTS, replace=False, p=weight / weight.sum())]
        used = np.flatnonzero(w)
        if len(used) and len(used) <= items.features.shape[1]:
            wanted = np.full(items.features.shape[1], -1)
            wanted[: len(used)] = used
            able = np.union1d(able, np.flatnonzero((items.features == wanted).all(axis=1)))
        return able

    def _kick(self, tree: Splits) -> None:
        """Give a node a random hyperplane of a random support, or none."""
        t = int(self._rng.integers(len(tree.b)))
        own = self._levels[int(np.log2(t + 1))]
        tree.w[t] = 0.0
        if len(own.item) == 0 or self._rng.random() < 0.2:
            return
        box = int(own.item.searchsorted(self._drawn(own.items, np.inf, tree.w[t])[0]))
        k = int(own.items.n_features[own.item[box]])
        features = own.items.features[own.item[box], :k]
        centre = own.centre[box] + own.half[box] * self._rng.uniform(-1, 1, len(own.half[box]))
        tree.w[t], _ = self.problem.midway(features, centre[:k], 0.0)
        self._threshold(tree, t)

    def _threshold(self, tree: Splits, t: int) -> None:
        """Move the threshold of a node to a random place where it keeps the gap; remove its split where none does."""
        problem = self.problem
        _, reach, floor = self._places(problem.X @ tree.w[t], self._all)
        size = float(np.abs(tree.w[t]).sum()) if problem.l1 else 1.0
        b = -(reach + floor) / 2
        wide = floor - reach >= problem.gap * size
        if not problem.l1:
            wide &= np.abs(b) <= 1.0 - problem.gap / 2
        places = np.flatnonzero(wide)
        if len(places):
            tree.b[t] = b[self._rng.choice(places)]
        else:
            tree.w[t] = 0.0
