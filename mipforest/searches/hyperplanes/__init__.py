r"""Local search for trees whose branch nodes are convex problems: hyperplanes are moved, and nodes solved exactly.

The objective is that of :class:`~mipforest.heuristics.node_problems.NodeProblems` with a convex piecewise-linear loss f
and a norm :math:`\Omega`, half the squared l2 norm or l1, charged at every node t for the samples that reach it:

.. math::

    \sum_t \Bigl( \Omega(w_t) + C_t \sum_{i \text{ reaches } t} n_i f(y_i (w_t^\top x_i + b_t)) \Bigr).

Nodes may have a budget of features: those above it are forbidden, or cost :math:`\alpha` each. Moves keep the features
that a node has, but for *exchanges*, which choose others. The penalty C of nodes above the last level may be 0.

A sample goes right at a node above the last level where its score is at least 0, and left where it is at most
:math:`-\varepsilon`. With all other nodes fixed, the *cost-to-go* of a node is what a sample pays at and below it. The
difference of the costs-to-go of both children prices every new hyperplane of a node, for all samples at once.

- :mod:`~mipforest.searches.hyperplanes.line_moves`: the best hyperplane on a line, exactly.
- :mod:`~mipforest.searches.hyperplanes.annealing`: descent of all nodes at once on a smoothed tree.
- :mod:`~mipforest.searches.hyperplanes.node_moves`: new routings of one node, each priced by exact node problems.
- :mod:`~mipforest.searches.hyperplanes.search`: starts, kicks, samples of the data, and the gap epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.node_problems import bias_if_empty
from mipforest.heuristics.node_solver import ACCURACY, hinges_of, solve_node
from mipforest.trees.sides import SIDE_TOLERANCE

#: By how much scores are on their side: twice what counts as on it, so that no rounding error decides.
CLEARANCE = 2.0 * SIDE_TOLERANCE

#: Share of the features that a round of recursive elimination keeps: ten rounds for 60 features.
KEPT_FEATURES = 0.7


@dataclass(frozen=True, eq=False)
class Hyperplanes:
    """The hyperplanes of a tree, in heap order, and its objective.

    Attributes
    ----------
    w, b
        (|B|, p) weights and (|B|,) biases.
    value
        Objective, infinite where it is not known.
    """

    w: FloatArray
    b: FloatArray
    value: float = np.inf

    def moved(self, t: int, w: FloatArray, b: float) -> Hyperplanes:
        """Return the tree with another hyperplane at node t, whose objective is not known."""
        changed = Hyperplanes(self.w.copy(), self.b.copy())
        changed.w[t], changed.b[t] = w, b
        return changed


@dataclass(frozen=True, eq=False)
class HyperplaneProblem:
    """Samples, and what a tree of hyperplanes is charged for them.

    Attributes
    ----------
    X
        (n, p) features; equal samples of one class are best merged.
    sign, weight
        (n,) labels, -1 or +1, and weights above 0.
    C
        (|B|,) penalties.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    epsilon
        Gap that stands for the strict inequality to the left.
    l1
        Whether the norm is l1, and not half the square of l2.
    budget
        (|B|,) features of each node that are free of cost; ``None`` for all.
    alpha
        Cost of a feature above the budget; infinite where it is forbidden.
    """

    X: FloatArray
    sign: FloatArray
    weight: FloatArray
    C: FloatArray
    kinks: FloatArray
    epsilon: float
    l1: bool = False
    budget: IntArray | None = None
    alpha: float = np.inf

    @property
    def n_branches(self) -> int:
        """Number of branch nodes."""
        return len(self.C)

    @property
    def n_upper(self) -> int:
        """Number of branch nodes above the last level."""
        return len(self.C) // 2

    @property
    def upper(self) -> range:
        """The nodes above the last level."""
        return range(self.n_upper)

    @property
    def last(self) -> range:
        """The nodes of the last level."""
        return range(self.n_upper, self.n_branches)

    def below(self, t: int) -> list[int]:
        """Return node t and all below it, ascending."""
        nodes = [t]
        for s in nodes:
            nodes += [2 * s + 1, 2 * s + 2] if s < self.n_upper else []
        return sorted(nodes)

    # ------------------------------------------------------------------ features

    def selects(self, t: int) -> bool:
        """Return whether node t has a budget of fewer than all features."""
        return self.budget is not None and int(self.budget[t]) < self.X.shape[1]

    def features(self, t: int, w: FloatArray) -> IntArray:
        """Return the features that moves of node t may use: those of its weights (p,), all where none is forbidden."""
        return np.flatnonzero(w) if self.selects(t) else np.arange(len(w))

    def charge(self, t: int, w: FloatArray) -> float:
        """Return what node t is charged for weights (p,): their norm, and features above the budget."""
        norm = float(np.abs(w).sum() if self.l1 else 0.5 * w @ w)
        if not self.selects(t):
            return norm
        assert self.budget is not None
        excess = int(np.count_nonzero(w)) - int(self.budget[t])
        return norm + self.alpha * excess if excess > 0 else norm

    def exchanged(
        self, t: int, w: FloatArray, rng: np.random.Generator, drawn: FloatArray | None = None
    ) -> IntArray:
        """Return other features for node t: some go, some come, and where that costs, their number changes.

        Parameters
        ----------
        t, w
            The node, and its (p,) weights: features with small ones are likelier to go.
        rng
            Random numbers.
        drawn
            (p,) weights of a hyperplane of all features: those with large ones are likelier to come.
        """
        assert self.budget is not None
        free, used = int(self.budget[t]), np.flatnonzero(w)
        others = np.setdiff1d(np.arange(len(w)), used)
        count = max(free, len(used))
        if np.isfinite(self.alpha):
            count = int(np.clip(count + rng.integers(-1, 2), free, len(w)))
        keep = min(count, len(used))
        if keep == count and len(others):
            keep -= 1 if keep < 2 or rng.random() < 0.8 else 2
        size = np.abs(w[used]) + 0.1 * float(np.abs(w).max())
        kept = rng.choice(used, keep, replace=False, p=size / size.sum()) if keep else used[:0]
        come = min(count - keep, len(others))
        likely = np.ones(len(others))
        if drawn is not None and drawn[others].any():
            likely = np.square(drawn[others])
            likely += 0.01 * float(likely.max())
        new = rng.choice(others, come, replace=False, p=likely / likely.sum()) if come else others[:0]
        return np.sort(np.concatenate([kept, new]))

    # ------------------------------------------------------------------ values

    def scores(self, tree: Hyperplanes) -> FloatArray:
        """Return the (n, |B|) scores."""
        found: FloatArray = self.X @ tree.w.T + tree.b
        return found

    def losses(self, t: int, scores: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return what samples with scores (m,) at node t are charged there."""
        v = self.sign[rows] * scores
        loss = np.zeros(len(scores))
        for at, change in self.kinks:
            loss += change * np.maximum(0.0, at - v)
        charged: FloatArray = self.C[t] * self.weight[rows] * loss
        return charged

    def costs(self, scores: FloatArray) -> FloatArray:
        """Return the (n, |B|) costs-to-go of all samples from all nodes, for scores (n, |B|)."""
        cost = np.empty_like(scores)
        for t in reversed(range(self.n_branches)):
            cost[:, t] = self.losses(t, scores[:, t])
            if t < self.n_upper:
                cost[:, t] += np.where(scores[:, t] >= 0.0, cost[:, 2 * t + 2], cost[:, 2 * t + 1])
        return cost

    def valued(self, tree: Hyperplanes) -> Hyperplanes:
        """Return the tree with its objective; scores between the sides count as on the left."""
        total = 0.0
        for t, rows, scores in self.visits(tree):
            total += self.charge(t, tree.w[t]) + float(self.losses(t, scores, rows).sum())
        return replace(tree, value=total)

    def node_value(self, t: int, w: FloatArray, b: float, rows: IntArray) -> float:
        """Return what node t is charged for a hyperplane and the samples that reach it."""
        return self.charge(t, w) + float(self.losses(t, self.X[rows] @ w + b, rows).sum())

    def visits(self, tree: Hyperplanes) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Yield each node with the samples that reach it and their scores there, ascending."""
        members = {0: np.arange(len(self.X))}
        for t in range(self.n_branches):
            rows = members.pop(t)
            scores = self.X[rows] @ tree.w[t] + tree.b[t]
            yield t, rows, scores
            if t < self.n_upper:
                right = scores >= 0.0
                members[2 * t + 1], members[2 * t + 2] = rows[~right], rows[right]

    def members(self, scores: FloatArray) -> list[IntArray]:
        """Return the samples that reach each node, for scores (n, |B|)."""
        found = [np.arange(len(self.X))]
        for t in range(1, self.n_branches):
            parent = (t - 1) // 2
            rows = found[parent]
            right = scores[rows, parent] >= 0.0
            found.append(rows[right if t % 2 == 0 else ~right])
        return found

    # ------------------------------------------------------------------ the gap

    def between(self, scores: FloatArray) -> BoolArray:
        """Return which scores are between the sides, or too close to one for no rounding error to decide."""
        # As :func:`~mipforest.trees.sides.into_a_gap` counts: shifts put scores at the tolerance, up to rounding.
        close = 0.5 * SIDE_TOLERANCE
        found: BoolArray = (scores < close) & (scores > -self.epsilon - close)
        return found

    def feasible(self, tree: Hyperplanes) -> bool:
        """Return whether no sample is between the sides of a node above the last level that it reaches."""
        return not any(self.between(scores).any() for t, _, scores in self.visits(tree) if t < self.n_upper)

    # ------------------------------------------------------------------ nodes

    def penalty(self, t: int) -> float:
        """Return the penalty of node t, the largest one where its own is 0: for proposals, and for prices."""
        return float(self.C[t] or self.C.max())

    def best_hyperplane(
        self,
        t: int,
        rows: IntArray,
        *,
        warm: tuple[FloatArray, float] | None = None,
        accuracy: float = ACCURACY,
        factor: float = 1.0,
    ) -> tuple[FloatArray, float]:
        """Return the best hyperplane of node t for some samples, sides free; C is multiplied by a factor.

        With a budget it has the features of a warm start, or chooses some.
        """
        p = self.X.shape[1]
        if not len(rows):
            return np.zeros(p), bias_if_empty(t)
        X, sign = self.X[rows], self.sign[rows]
        capacity = factor * self.penalty(t) * self.weight[rows]

        def fit(features: IntArray, near: tuple[FloatArray, float] | None = None) -> tuple[FloatArray, float]:
            chosen = X if len(features) == p else X[:, features]
            near = None if near is None else (near[0][features], near[1])
            hinges = hinges_of(chosen, sign, capacity, self.kinks, l1=self.l1)
            found = solve_node(hinges, warm=near, accuracy=accuracy)
            w = np.zeros(p)
            w[features] = found.w
            return w, found.b

        if not self.selects(t):
            return fit(np.arange(p), warm)
        if warm is not None and warm[0].any():
            return fit(np.flatnonzero(warm[0]), warm)
        return self.eliminated(t, rows, fit)

    def eliminated(
        self, t: int, rows: IntArray, fit: Callable[[IntArray], tuple[FloatArray, float]]
    ) -> tuple[FloatArray, float]:
        """Return the best hyperplane of recursive elimination: the least weights are dropped, and the rest fitted.

        Parameters
        ----------
        t, rows
            The node, and the samples that reach it.
        fit
            Returns the best hyperplane on some features.
        """
        assert self.budget is not None
        features, free = np.arange(self.X.shape[1]), int(self.budget[t])
        best, least = (np.zeros(self.X.shape[1]), bias_if_empty(t)), np.inf
        while True:
            w, b = fit(features)
            value = self.node_value(t, w, b, rows)
            if value < least:
                best, least = (w, b), value
            if len(features) <= free:
                return best
            order = np.argsort(-np.abs(w[features]), kind="stable")
            features = np.sort(features[order[: max(free, int(KEPT_FEATURES * len(features)))]])

    def refitted(self, tree: Hyperplanes, *, accuracy: float = ACCURACY) -> Hyperplanes:
        """Return the tree with the best hyperplanes at the last level, and its objective."""
        w, b, total = tree.w.copy(), tree.b.copy(), 0.0
        for t, rows, scores in self.visits(tree):
            value = self.charge(t, w[t]) + float(self.losses(t, scores, rows).sum())
            if t >= self.n_upper:
                found = self.best_hyperplane(t, rows, warm=(w[t], float(b[t])), accuracy=accuracy)
                own = self.node_value(t, *found, rows)
                if own <= value:
                    w[t], b[t], value = found[0], found[1], own
            total += value
        return Hyperplanes(w, b, total)

    def sample(self, rows: IntArray) -> HyperplaneProblem:
        """Return the problem on some samples, which weigh as much as all of them."""
        share = float(self.weight.sum() / self.weight[rows].sum())
        return replace(self, X=self.X[rows], sign=self.sign[rows], weight=self.weight[rows] * share)
