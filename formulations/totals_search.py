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

**Depth 1 and 2.** At depth 1 every threshold and every pair of labels is tried. At depth 2 this is for two classes, or
a single total: :math:`\xi` then depends on the number of predictions of one class. Below a root, each side has one
split or none. For its number a of such predictions, F(a) is the least of its charges, a minimum over its splits and
labels. The root's best tree costs
:math:`\min_{a, b} F_{left}(a) + F_{right}(b) + \rho\, \xi(a + b) + \alpha \hat L`. Roots are taken in the order of
their bounds, until these reach the best tree: what is proven is the optimum, if time allows.

**The start** is the best of CART's tree, the trees under prices with their best labels, those of the roots, and beyond
depth 2 the start of one level less with one more.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

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
        depth = self.instance.topology.depth
        if depth > 2:
            self._offer(self._shallower())
        least = -np.inf
        if depth > 1:
            least = self._raise_prices()
        if depth == 1 or (depth == 2 and self._decisive is not None):
            self._close()
        least = min(max(least, float(self.by_threshold.min(initial=np.inf))), self.no_split, self.value)
        least = max(0.0, least)  # charges and prices are no less
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
        known = replace(self.formulation, variant="tight")  # which has a start
        shallow = known.bind(data, Topology(depth - 1), self.budget.part(share=START_SHARE))
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

    # ------------------------------------------------------------------ trees of each root

    def _close(self) -> None:
        """Find the best tree of each threshold at the root whose bound is below the best tree."""
        sides = Sides(self)
        if self.instance.topology.depth == 1:
            one = sides.splits(np.ones(len(self.instance.routing.thresholds.X), dtype=bool))
            value = one.cost + self._price(one.predicted)
            self.by_threshold = np.full(len(self.by_threshold), np.inf)
            np.minimum.at(self.by_threshold, one.threshold[one.threshold >= 0], value[one.threshold >= 0])
            self._offer_thresholds([int(one.threshold[value.argmin()])])
            return
        of, K, numbers = self._decisive, self.charges.shape[1], np.arange(self.m + 1)
        assert of is not None
        # Of two classes the others are those of the other class; otherwise this total is the only one.
        predicted = np.zeros((self.m + 1, K))
        predicted[:, of], predicted[:, 1 - min(of, 1)] = numbers, self.m - numbers
        price = self._price(predicted)
        for root in np.argsort(self.by_threshold):
            if self.by_threshold[root] >= self.value - self.slack or self.budget.expired:
                break
            left, right = (Frontier(sides.splits(side), of) for side in sides.of(int(root)))
            a = np.flatnonzero(left.least + right.least.min() + self.split_cost < self.value)
            b = np.flatnonzero(left.least.min() + right.least + self.split_cost < self.value)
            if not len(a) or not len(b):  # no tree of this root is better than the best one
                self.by_threshold[root] = self.value
                continue
            total = left.least[a][:, None] + right.least[b] + price[a[:, None] + b] + self.split_cost
            i, j = np.unravel_index(int(total.argmin()), total.shape)
            best = float(total[i, j])
            self.by_threshold[root] = max(self.by_threshold[root], min(best, self.value))
            if best < self.value - self.slack:
                self._offer_thresholds([int(root), left.threshold(int(a[i])), right.threshold(int(b[j]))])

    @property
    def _decisive(self) -> int | None:
        """The class whose predicted number decides what totals cost: of two, or the only one with a total."""
        if self.charges.shape[1] == 2:
            return 1
        return int(self.counted[0]) if len(self.counted) == 1 else None

    def _price(self, predicted: FloatArray) -> FloatArray:
        """Return the price of totals for (c, K) numbers of predictions."""
        away = (predicted - self.instance.total)[:, self.counted]
        over, short = np.maximum(away, 0.0).sum(axis=1), np.maximum(-away, 0.0).sum(axis=1)
        price: FloatArray = self.price * np.maximum(over, short)
        return price

    def _offer_thresholds(self, chosen: list[int]) -> None:
        data, topology = self.instance.data, self.instance.topology
        thresholds = self.instance.routing.thresholds
        self._offer(tree_of_thresholds(data, topology, thresholds, np.array(chosen)))


class Splits(NamedTuple):
    """Trees of one split or none for the samples of a side.

    Attributes
    ----------
    threshold
        (c,) their threshold, -1 for none.
    cost
        (c,) charges and split; infinite where a leaf is too small.
    predicted
        (c, K) number of samples without a label that are predicted each class.
    """

    threshold: IntArray
    cost: FloatArray
    predicted: FloatArray


class Frontier:
    """Least cost of the trees of a side, by how many samples without a label they predict a class.

    Parameters
    ----------
    splits
        The trees.
    k
        The class.
    """

    def __init__(self, splits: Splits, k: int) -> None:
        self.splits, self.number = splits, np.rint(splits.predicted[:, k]).astype(np.int64)
        #: (m + 1,) least cost for each number, m samples of the side; infinite where no tree has it.
        self.least = np.full(int(self.number.max()) + 1, np.inf)
        np.minimum.at(self.least, self.number, splits.cost)

    def threshold(self, number: int) -> int:
        """Return the threshold of the best tree with a number of such predictions."""
        cost = np.where(self.number == number, self.splits.cost, np.inf)
        return int(self.splits.threshold[cost.argmin()])


class Sides:
    """Sums over the samples on each side of every threshold.

    Parameters
    ----------
    search
        Whose instance has the samples.
    """

    def __init__(self, search: TotalsSearch) -> None:
        thresholds, routed = search.instance.routing.thresholds, search.instance.routed
        self.search, self.thresholds = search, thresholds
        unlabelled = np.arange(routed.n) >= search.instance.data.n
        # Of each group: charges of the labels, samples without a label, samples.
        each = np.column_stack([search.charges, unlabelled, np.ones(routed.n)])
        self.sums = np.zeros((len(thresholds.X), each.shape[1]))
        np.add.at(self.sums, thresholds.group, each)
        # Each feature has one more value than thresholds.
        first = thresholds.first[:-1] + np.arange(thresholds.n_features)
        self.at = first[:, None] + thresholds.rank
        self.below = np.arange(len(thresholds)) + thresholds.feature

    def of(self, root: int) -> tuple[BoolArray, BoolArray]:
        """Return which groups a threshold sends left, and right."""
        feature = self.thresholds.feature[root]
        left: BoolArray = self.thresholds.rank[feature] <= root - self.thresholds.first[feature]
        return left, ~left

    def splits(self, side: BoolArray) -> Splits:
        """Return the trees of one split or none for the groups of a side (g,)."""
        q, p, K = len(self.thresholds), self.thresholds.n_features, self.search.charges.shape[1]
        own, at = self.sums[side], self.at[:, side].ravel()
        whole = own.sum(axis=0)
        counted = [np.bincount(at, np.tile(column, p), minlength=q + p) for column in own.T]
        left = np.column_stack(counted).cumsum(axis=0)[self.below]
        left -= self.thresholds.feature[:, None] * whole
        right = whole - left
        barred = self._too_small(left[:, -1]) + self._too_small(right[:, -1]) + self.search.split_cost
        alone = whole[:K] + self._too_small(whole[-1:])
        threshold, cost, predicted = [np.full(K, -1)], [alone], [whole[K] * np.eye(K)]
        for k, other in permutations(range(K), 2):  # equal labels are no better than no split
            threshold.append(np.arange(q))
            cost.append(left[:, k] + right[:, other] + barred)
            numbers = np.zeros((q, K))
            numbers[:, k], numbers[:, other] = left[:, K], right[:, K]
            predicted.append(numbers)
        return Splits(np.concatenate(threshold), np.concatenate(cost), np.vstack(predicted))

    def _too_small(self, size: FloatArray) -> FloatArray:
        """Return infinity for leaves that hold samples, but too few, else 0."""
        small = (size > 0.5) & (size < self.search.formulation.N_min - 0.5)
        return np.where(small, np.inf, 0.0)
