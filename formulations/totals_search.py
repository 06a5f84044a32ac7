r"""What is known of semi-supervised trees beforehand: a lower bound for each threshold at the root, and a start.

The objective, times :math:`\hat L`, is :math:`f(T) = E(T) + \rho\, \xi(T) + \alpha \hat L C` with the charges E and the
other symbols of :mod:`formulations.semi`.

**Prices.** For :math:`-(1 - a) \le \mu_k \le a` with :math:`0 \le a \le 1`,

.. math:: \xi(T) \ge \sum_k \mu_k (\tau_k - N_k(T)),

as the right side is at most a times the first sum in :math:`\xi` plus (1 - a) times the second one, and some prices
make it an equation. So f is at least the charges of a tree where class k costs a sample without a label
:math:`\rho (\max_j \mu_j - \mu_k)`, plus a constant. One exact tree with these costs bounds all trees from below, and
so does the best one for each threshold at the root. Prices are raised by cutting planes (Kelley, *The Cutting-Plane
Method for Solving Convex Programs*, J. SIAM 8, 1960): each tree that was found is a cut. Every threshold keeps its
best bound.

**Two classes, depth 1 and 2.** Below a root, each side has one split or none. For its number a of samples without a
label that are predicted the second class, F(a) is the least of its charges, a minimum over its splits and their labels.
The root's best tree then costs :math:`\min_{a, b} F_{left}(a) + F_{right}(b) + \rho\, \xi(a + b)`. Roots are taken in
the order of their bounds, until these reach the best tree: what is proven is the optimum, if time allows.

**The start** is the best of CART's tree, the trees under prices with their best labels, those of the roots, and beyond
depth 2 the start of one level less with one more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from formulations.splits.univariate import RootValues, leaves_of, root_values
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.thresholds import tree_of_thresholds
from mipforest.objectives.leaf_losses import TableLoss
from mipforest.problem.formulation import START_SHARE, deepened
from mipforest.problem.structure import UnivariateProblem
from mipforest.trees import Topology, Tree

#: Most exact trees whose bounds are taken, at depth 1 and 2, and deeper, where each takes about a second or more.
MAX_PRICES, MAX_PRICES_DEEPER = 12, 3

#: Share of the step from the best prices to those that the cuts favour, with more than two prices, which would jump.
STEP = 0.5

#: A gap is closed where it is below this share of Lhat, and of the price of all samples without a label.
SETTLED = 1e-9


class TotalsSearch:
    """The search; values are in units of the charges.

    Parameters
    ----------
    formulation, instance
        A :class:`formulations.semi.SemiOct`, and what it is bound to.
    """

    def __init__(self, formulation: Any, instance: Any) -> None:
        self.formulation, self.instance = formulation, instance
        self.price, self.counted = formulation.total_price, instance.counted
        self.m = instance.routed.n - instance.data.n
        self.split_cost = formulation.alpha * instance.baseline
        self.charges = np.zeros((instance.routed.n, instance.data.n_classes))
        self.charges[: instance.data.n] = instance.charges
        self.budget = instance.budget.part(share=START_SHARE)
        self.slack = SETTLED * max(instance.baseline, self.price * self.m)
        self.no_split = self._no_split()
        self.by_threshold = np.full(len(instance.routing.thresholds), -np.inf)
        self.cuts: list[tuple[float, FloatArray]] = []
        self.best = formulation.start("cart", instance)
        self.value = self._value(self.best)

    def run(self) -> tuple[Tree, RootValues]:
        """Search; return the best tree, and what is proven by the root."""
        depth, K = self.instance.topology.depth, self.instance.data.n_classes
        if depth > 2:
            self._offer(self._shallower())
        least = -np.inf
        if depth > 1 or K > 2:
            least = self._raise_prices()
        if depth <= 2 and K == 2:
            self._close()
        least = min(max(least, float(self.by_threshold.min(initial=np.inf))), self.no_split, self.value)
        ended = self.value - least <= self.slack
        return self.best, RootValues(self.by_threshold, self.no_split, least, None, ended)

    def _value(self, tree: Tree) -> float:
        return float(self.formulation.evaluate(tree, self.instance) * self.instance.baseline)

    def _offer(self, tree: Tree) -> None:
        """Keep a tree, polished, if it is the best."""
        polished = self.formulation.polish(tree, self.instance)
        value = self._value(polished)
        if value < self.value:
            self.best, self.value = polished, value

    def _no_split(self) -> float:
        """Return the least value of a tree without a split."""
        charged, K = self.instance.charges.sum(axis=0), self.charges.shape[1]
        missed = [self.instance.missed(self.m * np.eye(K)[k]) for k in range(K)] if self.m else np.zeros(K)
        return float((charged + self.price * np.array(missed)).min())

    def _shallower(self) -> Tree:
        """Return the start of one level less, with one more."""
        data, depth = self.instance.data, self.instance.topology.depth
        shallow = self.formulation.bind(data, Topology(depth - 1), self.budget.part(share=START_SHARE))
        assert isinstance(shallow.known, Tree)
        return deepened(shallow.known)

    # ------------------------------------------------------------------ prices

    def _raise_prices(self) -> float:
        """Raise the prices of totals; return a lower bound on the value of all trees."""
        deep = self.instance.topology.depth > 2
        priced = len(self.counted) > 0 and self.m > 0 and self.price > 0
        prices = best_prices = np.zeros(len(self.counted))
        least = -np.inf
        for _ in range(1 if not priced else MAX_PRICES_DEEPER if deep else MAX_PRICES):
            problem, constant = self._relaxed(prices)
            # A cutoff would hide the best tree under these prices, which is a cut.
            roots = root_values(
                problem, self.instance.topology.depth, self.no_split - constant, budget=self.budget
            )
            self.by_threshold = np.maximum(self.by_threshold, roots.by_threshold + constant)
            bound = min(roots.least + constant, self.no_split)
            if bound > least:
                least, best_prices = bound, prices
            if roots.chosen is not None:
                data, topology = self.instance.data, self.instance.topology
                splits = tree_of_thresholds(data, topology, problem.thresholds, roots.chosen)
                self._cut(splits, problem)
                self._offer(splits)
            favoured = self._favoured()
            if (
                not roots.ended
                or favoured is None
                or favoured[1] - least <= self.slack
                or self.value - least <= self.slack
                or self.budget.expired
            ):
                break
            step = STEP if len(prices) > 2 else 1.0
            prices = best_prices + step * (favoured[0] - best_prices)
        return least

    def _relaxed(self, prices: FloatArray) -> tuple[UnivariateProblem, float]:
        """Return the problem of trees under prices of the counted classes, and what its values are to be added to."""
        instance, mu = self.instance, np.zeros(self.charges.shape[1])
        mu[self.counted] = prices
        table = self.charges.copy()
        table[instance.data.n :] = self.price * (mu.max() - mu)
        constant = self.price * (float(prices @ instance.total[self.counted]) - self.m * float(mu.max()))
        problem = UnivariateProblem(
            thresholds=instance.routing.thresholds,
            y=table.argmin(axis=1),
            loss=TableLoss(table),
            weight=None,
            split_cost=self.split_cost,
            N_min=self.formulation.N_min,
            unit=1.0,
        )
        return problem, constant

    def _cut(self, splits: Tree, problem: UnivariateProblem) -> None:
        """Keep what a tree, labelled as the prices like best, costs and by how much its predictions fall short."""
        z, n = leaves_of(splits, self.instance.routed.X), self.instance.data.n
        label = (z.T @ problem.statistics).argmin(axis=1)
        charged = float((z[:n].T @ self.instance.charges)[np.arange(len(label)), label].sum())
        predicted = np.bincount(label, weights=z[n:].sum(axis=0), minlength=self.charges.shape[1])
        short = self.price * (self.instance.total - predicted)[self.counted]
        self.cuts.append((charged + self.split_cost * splits.n_splits, short))

    def _favoured(self) -> tuple[FloatArray, float] | None:
        """Return the prices that the cuts favour, and the bound that they leave; ``None`` without cuts."""
        if not self.cuts:
            return None
        # Columns: prices, a, the bound. Rows: cuts, mu_k <= a, mu_k >= a - 1.
        r = len(self.counted)
        one = np.eye(r)
        A = [[*-short, 0.0, 1.0] for _, short in self.cuts]
        A += [[*one[k], -1.0, 0.0] for k in range(r)] + [[*-one[k], 1.0, 0.0] for k in range(r)]
        b = [*(cost for cost, _ in self.cuts), *np.zeros(r), *np.ones(r)]
        solved = linprog(
            [*np.zeros(r + 1), -1.0],
            A_ub=np.array(A),
            b_ub=np.array(b),
            bounds=[*[(-1.0, 1.0)] * r, (0.0, 1.0), (None, None)],
        )
        return None if solved.x is None else (solved.x[:r], -float(solved.fun))

    # ------------------------------------------------------------------ two classes

    def _close(self) -> None:
        """Find the best tree of each threshold at the root whose bound is below the best tree."""
        instance = self.instance
        sides = Sides(self)
        missed = np.array([instance.missed(np.array([self.m - N, N])) for N in range(self.m + 1)])
        price = self.price * missed if self.m else np.zeros(1)
        if instance.topology.depth == 1:
            one = sides.splits(np.ones(len(instance.routing.thresholds.X), dtype=bool))
            value = one.cost + price[one.predicted]
            np.minimum.at(by := np.full(len(self.by_threshold), np.inf), one.threshold[2:], value[2:])
            self.by_threshold = by
            self._offer_thresholds([int(one.threshold[value.argmin()])])
            return
        for root in np.argsort(self.by_threshold):
            if self.by_threshold[root] >= self.value - self.slack or self.budget.expired:
                break
            left, right = (sides.splits(side) for side in sides.of(int(root)))
            F_left, F_right = left.least, right.least
            a = np.flatnonzero(F_left + F_right.min() + self.split_cost < self.value)
            b = np.flatnonzero(F_left.min() + F_right + self.split_cost < self.value)
            if not len(a) or not len(b):  # no tree of this root is better than the best one
                self.by_threshold[root] = self.value
                continue
            total = F_left[a][:, None] + F_right[b] + price[a[:, None] + b] + self.split_cost
            i, j = np.unravel_index(int(total.argmin()), total.shape)
            self.by_threshold[root] = max(self.by_threshold[root], min(float(total[i, j]), self.value))
            if total[i, j] < self.value - self.slack:
                self._offer_thresholds([int(root), left.of(int(a[i])), right.of(int(b[j]))])

    def _offer_thresholds(self, chosen: list[int]) -> None:
        data, topology = self.instance.data, self.instance.topology
        self._offer(tree_of_thresholds(data, topology, self.instance.routing.thresholds, np.array(chosen)))


class Splits:
    """Trees of one split or none for the samples of a side, of two classes.

    Attributes
    ----------
    threshold
        (c,) their threshold, -1 for none.
    cost
        (c,) charges and split; infinite where a leaf is too small.
    predicted
        (c,) number of samples without a label that are predicted the second class.
    least
        (m + 1,) least cost for each such number, m those of the side; infinite for others.
    """

    def __init__(self, threshold: IntArray, cost: FloatArray, predicted: IntArray, m: int) -> None:
        self.threshold, self.cost, self.predicted = threshold, cost, predicted
        self.least = np.full(m + 1, np.inf)
        np.minimum.at(self.least, predicted, cost)

    def of(self, number: int) -> int:
        """Return the threshold of the best tree with a number of such predictions."""
        return int(self.threshold[np.where(self.predicted == number, self.cost, np.inf).argmin()])


class Sides:
    """Sums over the samples on each side of every threshold.

    Parameters
    ----------
    search
        Whose instance has two classes.
    """

    def __init__(self, search: TotalsSearch) -> None:
        thresholds, routed = search.instance.routing.thresholds, search.instance.routed
        self.search, self.thresholds = search, thresholds
        unlabelled = np.arange(routed.n) >= search.instance.data.n
        # Of each group: charges of either label, samples without a label, samples.
        each = np.column_stack([search.charges, unlabelled, np.ones(routed.n)])
        self.sums = np.zeros((len(thresholds.X), each.shape[1]))
        np.add.at(self.sums, thresholds.group, each)
        # Each feature has one more value than thresholds.
        p = thresholds.n_features
        self.first = thresholds.first[:-1] + np.arange(p)
        self.at = self.first[:, None] + thresholds.rank
        self.below = np.arange(len(thresholds)) + thresholds.feature

    def of(self, root: int) -> tuple[BoolArray, BoolArray]:
        """Return which groups a threshold sends left, and right."""
        feature = self.thresholds.feature[root]
        left: BoolArray = self.thresholds.rank[feature] <= root - self.thresholds.first[feature]
        return left, ~left

    def splits(self, side: BoolArray) -> Splits:
        """Return the trees of one split or none for the groups of a side (g,)."""
        N_min, q = self.search.formulation.N_min, len(self.thresholds)
        own, at = self.sums[side], self.at[:, side].ravel()
        whole, p = own.sum(axis=0), len(self.first)
        counted = np.column_stack([np.bincount(at, np.tile(column, p), minlength=q + p) for column in own.T])
        left = counted.cumsum(axis=0)[self.below] - self.thresholds.feature[:, None] * whole
        right = whole - left
        small = ((left[:, 3] > 0.5) & (left[:, 3] < N_min - 0.5)) | (
            (right[:, 3] > 0.5) & (right[:, 3] < N_min - 0.5)
        )
        barred = np.where(small, np.inf, self.search.split_cost)
        alone = np.inf if 0.5 < whole[3] < N_min - 0.5 else 0.0
        cost = np.concatenate(
            [whole[:2] + alone, left[:, 0] + right[:, 1] + barred, left[:, 1] + right[:, 0] + barred]
        )
        predicted = np.rint(np.concatenate([[0.0, whole[2]], right[:, 2], left[:, 2]])).astype(np.int64)
        threshold = np.concatenate([[-1, -1], np.arange(q), np.arange(q)])
        return Splits(threshold, cost, predicted, int(np.rint(whole[2])))
