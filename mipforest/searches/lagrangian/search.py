r"""Prices of limits, one exact tree for each, and what they prove.

**Prices** maximise the relaxation :math:`L(\lambda)` of :mod:`mipforest.searches.lagrangian.limited` by cutting planes
(Kelley, *The Cutting-Plane Method for Solving Convex Programs*, J. SIAM 8, 1960): every tree T that was found bounds it
by :math:`f(T) + \sum_r \lambda_r (g_r(T) - h_r)`. With several limits the next prices lie halfway between the best ones
and those that these bounds favour, which would jump otherwise.

**The bound** is taken for each threshold at the root by itself, as the exact search proves one for each: no tree is
below the least of their best values, which is at least the greatest relaxation. Where labels cost whole numbers, it is
raised to the next value that a tree may have.

**Trees.** The splits of every tree get the labels that are best within the limits. At depth 1 and 2
:mod:`mipforest.searches.lagrangian.closing` finds what is between bound and incumbent. Deeper, a gap may remain, as the
relaxation has one.

**Limits that no tree keeps** are proven by the same relaxation without costs, whose prices sum up to 1: its value is
what every tree exceeds some limit by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from mipforest.arrays import FloatArray, IntArray
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.boxes import Box
from mipforest.searches.exact.search import ExactResult
from mipforest.searches.lagrangian.closing import Closing
from mipforest.searches.lagrangian.limited import LimitedTrees
from mipforest.solvers.solution import closed

#: Trees that are searched for at most before what is left is closed, or given up.
MAX_TREES = 200

#: Depth up to which what is left between bound and incumbent is closed.
PROVEN_DEPTH = 2

#: Trees without a proof by which prices are guessed.
MAX_GUESSES = 12

#: First limit of prices, in :attr:`LimitedTrees.spread` for each unit of the largest entry of a row; and their last.
FIRST_PRICE, LAST_PRICE = 1.0, 1e4

#: Share of the next prices between the best ones and those that the cuts favour, with several limits.
STEP = 0.5

#: Steps of prices end where the cuts leave less than this share of the spread above the best relaxation.
SETTLED = 1e-9

#: Operations up to which the exact value of every threshold at the root is computed at once at depth 2: seconds.
MAX_COMPLETE = 2e9


@dataclass
class LagrangianResult:
    """What is known of the trees within limits.

    Attributes
    ----------
    cost
        Of the incumbent, infinite without one.
    chosen, labels
        Its thresholds (|B|,) and labels (|L|,).
    bounds
        (q,) proven lower bound on the cost of every tree within the limits, by the threshold at the root.
    prices
        (r,) of the best relaxation.
    relaxation
        Its value.
    evaluated
        Number of exact trees.
    infeasible
        Why no tree keeps the limits; empty where some does, or nothing is proven.
    """

    bounds: FloatArray
    prices: FloatArray
    cost: float = np.inf
    chosen: IntArray | None = None
    labels: IntArray | None = None
    relaxation: float = -np.inf
    evaluated: int = 0
    infeasible: str = ""

    @property
    def bound(self) -> float:
        """Lower bound on the cost of every tree within the limits; infinite where there is none."""
        return min(float(self.bounds.min(initial=np.inf)), self.cost)


#: What improves splits (|B|,) for a problem without a proof; ``None`` where its time is over.
Guess = Callable[[UnivariateProblem, IntArray], IntArray | None]

#: What searches for one exact tree: a problem, the value of a known tree and whether every threshold is asked for.
ExactTree = Callable[[UnivariateProblem, float, bool], ExactResult]


@dataclass
class LagrangianSearch:
    """A search for the best tree within limits.

    Parameters
    ----------
    trees
        Costs and limits.
    exact_tree
        Finds one.
    guess
        Improves splits, where an exact tree takes long.
    should_stop
        Called with what is known after every step; returning ``True`` ends the search.
    gap
        Relative gap within which the best tree will do.
    box
        Trees to search among, which ``exact_tree`` keeps to; all of them without it.
    """

    trees: LimitedTrees
    exact_tree: ExactTree
    guess: Guess
    should_stop: Callable[[LagrangianResult], bool]
    gap: float
    box: Box | None = None
    found: LagrangianResult = field(init=False)
    _cuts: list[tuple[float, FloatArray]] = field(init=False, default_factory=list)
    _stopped: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        thresholds = self.trees.charges.thresholds
        self.found = LagrangianResult(np.full(len(thresholds), -np.inf), np.zeros(len(self.trees.use)))
        if self.box is not None:
            self.found.bounds[~self.box.allowed[0][thresholds.feature]] = np.inf

    def run(
        self, start: IntArray | None = None, *, prices: FloatArray | None = None, cutoff: float = np.inf
    ) -> LagrangianResult:
        """Search.

        Parameters
        ----------
        start
            (|B|,) thresholds of a tree to begin with.
        prices
            (r,) prices to begin with.
        cutoff
            Cost of a tree that is known: only better ones are looked for.
        """
        self.found.cost = cutoff
        trees, found = self.trees, self.found
        if trees.forbidden.all(axis=1).any():
            i = int(trees.forbidden.all(axis=1).argmax())
            found.infeasible = f"sample {i} may get none of the labels"
            return found
        if not len(found.bounds):
            found.bounds = np.full(1, np.inf)  # without a threshold there is no tree but a leaf
        for k in range(trees.cost.shape[1] if self.box is None or not self.box.must[0] else 0):
            labels = np.full(2**trees.depth, k)
            self._offer(np.full(2**trees.depth - 1, -1), labels)
        if start is not None:
            self._label(start)
        if trees.depth == 1:
            self._raise_bound(np.zeros(len(found.prices)))
            closing = Closing(trees, found.prices, self.box)
            cost, split, labels = closing.best_of_one_split(found.cost)
            if len(split):
                self._offer(split, labels)
            least = cost - closing.rounding if len(split) else found.cost
            found.bounds = np.maximum(found.bounds, trees.rounded_up(least))
            if not np.isfinite(min(cost, found.cost)):
                self._explain()
            self.should_stop(found)
            return found
        if prices is None:
            prices = np.zeros(len(found.prices))
        if start is not None and (trees.depth > PROVEN_DEPTH or not self._is_quick):
            prices = self._guessed_prices(start)
        self._raise_bound(prices)
        if not np.isfinite(found.cost) and not self._ended():
            self._explain()
        if trees.depth == PROVEN_DEPTH and not found.infeasible and not self._ended():
            self._close()
        if found.bound == np.inf and not found.infeasible:
            self._explain()
            found.infeasible = found.infeasible or "no tree keeps all limits: all were tried"
        return found

    @property
    def _is_quick(self) -> bool:
        """Whether one exact tree of depth 2 takes some seconds at most."""
        thresholds = self.trees.charges.thresholds
        return len(thresholds) * thresholds.X.size <= MAX_COMPLETE

    # ------------------------------------------------------------------ trees

    def _sums(self, chosen: IntArray, labels: IntArray) -> tuple[float, FloatArray, bool]:
        """Return cost and (r,) uses of a tree, and whether no label is forbidden."""
        trees = self.trees
        label, rows = labels[trees.leaves(chosen)], np.arange(len(trees.cost))
        cost = float(trees.cost[rows, label].sum()) + trees.alpha * int((chosen >= 0).sum())
        return cost, trees.use[:, rows, label].sum(axis=1), not trees.forbidden[rows, label].any()

    def _offer(self, chosen: IntArray, labels: IntArray) -> None:
        """Take a tree as a cut, and as incumbent where it keeps the limits and is better."""
        trees, found = self.trees, self.found
        chosen = trees.joined(chosen, labels, None if self.box is None else self.box.must)
        cost, use, allowed = self._sums(chosen, labels)
        if not allowed:
            return
        self._cuts.append((cost, use - trees.most))
        size = np.bincount(trees.leaves(chosen))
        small = (size[size > 0] < trees.charges.N_min).any()
        if cost < found.cost and not small and (use <= trees.most).all():
            found.cost, found.chosen, found.labels = cost, chosen, labels

    def _label(self, chosen: IntArray) -> None:
        """Offer splits with the labels that are best within the limits, if any are."""
        labels = self.trees.best_labels(self.trees.leaves(chosen))
        if labels is not None:
            self._offer(chosen, labels)

    def _offer_both(self, problem: UnivariateProblem, chosen: IntArray) -> None:
        """Offer splits with the labels that are best under prices, and with those that are best within the limits."""
        each = problem.statistics
        table = np.zeros((2**self.trees.depth, each.shape[1]))
        np.add.at(table, self.trees.leaves(chosen), each)
        self._offer(chosen, table.argmin(axis=1))
        self._label(chosen)

    def _ended(self) -> bool:
        """Return whether nothing is left to search, or no time."""
        found = self.found
        self._stopped = self._stopped or self.should_stop(found)
        return self._stopped or closed(found.cost, found.bound, self.gap, self.trees.spread)

    # ------------------------------------------------------------------ the relaxation

    def relaxed(self, prices: FloatArray, costs: float = 1.0, *, complete: bool = False) -> float:
        """Find the best tree under prices; keep what it proves, and offer it. Return the relaxation's value."""
        trees, found = self.trees, self.found
        problem, constant = trees.relaxation(prices, costs)
        found.evaluated += 1
        if problem is None:
            # Splits cost, and nothing else.
            value, by_threshold = constant, np.full(len(found.bounds), constant + costs * trees.alpha)
        else:
            unit = problem.unit
            cutoff = (found.cost - constant) / unit if costs and np.isfinite(found.cost) else np.inf
            outcome = self.exact_tree(problem, max(cutoff, 0.0), complete)
            value = constant + unit * outcome.bound
            by_threshold = constant + unit * outcome.by_threshold
            if outcome.chosen is not None:
                self._offer_both(problem, outcome.chosen)
        if costs and len(by_threshold) == len(found.bounds):
            found.bounds = np.maximum(found.bounds, trees.rounded_up(by_threshold))
        return value

    def _next_prices(self, most: float, *, shares: bool = False) -> tuple[FloatArray, float] | None:
        """Return the (r,) prices that the cuts favour, and the value that they leave to the relaxation.

        ``shares`` is for prices of sum 1 without costs. ``None`` where no tree of a box is known.
        """
        if not self._cuts:
            return None
        trees = self.trees
        r, scale = len(trees.use), 1.0 if shares else trees.spread
        A = np.array([[*-excess, 1.0] for _, excess in self._cuts])
        b = np.zeros(len(A)) if shares else np.array([cost for cost, _ in self._cuts]) / scale
        solved = linprog(
            [*np.zeros(r), -1.0],
            A_ub=A,
            b_ub=b,
            A_eq=[[*np.ones(r), 0.0]] if shares else None,
            b_eq=[1.0] if shares else None,
            bounds=[*[(0.0, 1.0 if shares else most)] * r, (None, None)],
        )
        return None if solved.x is None else (solved.x[:r] * scale, -solved.fun * scale)

    def _guessed_prices(self, chosen: IntArray) -> FloatArray:
        """Return prices by cuts of trees that are found without a proof, where an exact tree takes long."""
        prices = np.zeros(len(self.trees.use))
        for _ in range(MAX_GUESSES):
            problem, _ = self.trees.relaxation(prices)
            better = None if problem is None else self.guess(problem, chosen)
            if problem is None or better is None or self._ended():
                break
            chosen = better
            self._offer_both(problem, chosen)
            favoured = self._next_prices(FIRST_PRICE)
            if (
                favoured is None
                or np.abs(favoured[0] - prices).max(initial=0.0) <= SETTLED * self.trees.spread
            ):
                break
            prices = favoured[0]
        return prices

    def _raise_bound(self, prices: FloatArray) -> None:
        """Maximise the relaxation over the prices, while it is worth it."""
        trees, found, most = self.trees, self.found, FIRST_PRICE
        for _ in range(MAX_TREES):
            value = self.relaxed(prices)
            if value > found.relaxation:
                found.relaxation, found.prices = value, prices
            if self._ended() or not len(prices):
                return
            favoured = self._next_prices(most)
            while favoured and (favoured[0] >= 0.999 * most * trees.spread).any() and most < LAST_PRICE:
                most *= 10.0
                favoured = self._next_prices(most)
            if favoured is None or favoured[1] - found.relaxation <= SETTLED * trees.spread:
                return
            share = STEP if len(prices) > 1 else 1.0
            prices = found.prices + share * (favoured[0] - found.prices)

    def _close(self) -> None:
        """Find the best tree of depth 2 for each threshold at the root whose bound is below the incumbent."""
        trees, found = self.trees, self.found
        thresholds = trees.charges.thresholds
        if not len(thresholds):
            return
        if self._is_quick:
            self.relaxed(found.prices, complete=True)
        closing = Closing(trees.capped(found.cost), found.prices, self.box)
        tried = np.zeros(len(thresholds), dtype=bool)
        while not tried.all():
            root = int(np.where(tried, np.inf, found.bounds).argmin())
            if tried[root] or found.bounds[root] >= found.cost - closing.rounding:
                break
            tried[root] = True
            sides = closing.sides(root)
            least = closing.least(sides)
            near, none_below = closing.spread_to(root, least)
            found.bounds[near] = np.maximum(found.bounds[near], trees.rounded_up(none_below))
            found.bounds[root] = max(found.bounds[root], float(trees.rounded_up(least)))
            if found.bounds[root] >= found.cost - closing.rounding:
                if self._ended():
                    return
                continue
            bound, value, splits, labels = closing.best(sides, found.cost)
            found.bounds[root] = max(found.bounds[root], float(trees.rounded_up(bound)))
            if np.isfinite(value):
                self._offer(splits, labels)
            if self._ended():
                return

    # ------------------------------------------------------------------ no tree at all

    def _explain(self) -> None:
        """Prove that no tree keeps the limits, if the relaxation without costs does."""
        trees, found = self.trees, self.found
        r = len(trees.use)
        for row in range(r):
            value = self.relaxed(np.eye(r)[row], costs=0.0)
            if value > 0.0:
                excess = f"{value * trees.size[row]:.6g}"
                found.infeasible = f"every tree exceeds the limit {trees.names[row]} by {excess} at least"
                return
            if np.isfinite(found.cost) or self._stopped:
                return
        if r == 0:
            found.infeasible = "every tree gives some sample a label that it may not have"
            return
        for _ in range(MAX_TREES):
            favoured = self._next_prices(1.0, shares=True)
            if favoured is None or favoured[1] <= 0.0:
                return
            value = self.relaxed(favoured[0], costs=0.0)
            if value > 0.0:
                excess = ", ".join(
                    f"{name} by {value * size:.6g}"
                    for name, size in zip(trees.names, trees.size, strict=True)
                )
                found.infeasible = f"every tree exceeds some limit: {excess}, or more"
                return
            if np.isfinite(found.cost) or self._stopped or self.should_stop(found):
                return
