r"""Local search for trees whose branch nodes are convex problems: hyperplanes are moved, and nodes solved exactly.

The objective is that of :class:`~mipforest.heuristics.node_problems.NodeProblems` with half the squared Euclidean norm
and a convex piecewise-linear loss f, charged at every node t for the samples that reach it:

.. math::

    \sum_t \Bigl( \tfrac12 \|w_t\|^2 + C_t \sum_{i \text{ reaches } t} n_i f(y_i (w_t^\top x_i + b_t)) \Bigr).

A sample goes right at a node above the last level where its score is at least 0, and left where it is at most
:math:`-\varepsilon`. With all other nodes fixed, the *cost-to-go* of a node is what a sample pays at and below it. The
difference of the costs-to-go of both children prices every new hyperplane of a node, for all samples at once.

- :mod:`~mipforest.searches.hyperplanes.line_moves`: the best hyperplane on a line, exactly.
- :mod:`~mipforest.searches.hyperplanes.annealing`: descent of all nodes at once on a smoothed tree.
- :mod:`~mipforest.searches.hyperplanes.node_moves`: new routings of one node, each priced by exact node problems.
- :mod:`~mipforest.searches.hyperplanes.search`: starts, kicks, samples of the data, and the gap epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.node_problems import bias_if_empty
from mipforest.heuristics.node_solver import ACCURACY, Rows, rows_of, solve_node
from mipforest.trees.sides import SIDE_TOLERANCE

#: By how much scores are on their side: twice what counts as on it, so that no rounding error decides.
CLEARANCE = 2.0 * SIDE_TOLERANCE


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
    """

    X: FloatArray
    sign: FloatArray
    weight: FloatArray
    C: FloatArray
    kinks: FloatArray
    epsilon: float

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
        total = 0.5 * float(np.square(tree.w).sum())
        for t, rows, scores in self.visits(tree):
            total += float(self.losses(t, scores, rows).sum())
        return replace(tree, value=total)

    def node_value(self, t: int, w: FloatArray, b: float, rows: IntArray) -> float:
        """Return what node t is charged for a hyperplane and the samples that reach it."""
        return float(0.5 * w @ w + self.losses(t, self.X[rows] @ w + b, rows).sum())

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

    def node_rows(self, t: int, rows: IntArray, factor: float | FloatArray = 1.0) -> Rows:
        """Return the hinges of node t for some samples, whose weights are multiplied by a factor."""
        capacity = self.C[t] * self.weight[rows] * factor
        return rows_of(self.X[rows], self.sign[rows], capacity, self.kinks)

    def machine(
        self,
        t: int,
        rows: IntArray,
        *,
        warm: tuple[FloatArray, float] | None = None,
        accuracy: float = ACCURACY,
        factor: float = 1.0,
    ) -> tuple[FloatArray, float]:
        """Return the best hyperplane of node t for some samples, sides free; C is multiplied by a factor."""
        if not len(rows):
            return np.zeros(self.X.shape[1]), bias_if_empty(t)
        found = solve_node(self.node_rows(t, rows, factor), warm=warm, accuracy=accuracy)
        return found.w, found.b

    def refitted(self, tree: Hyperplanes, *, accuracy: float = ACCURACY) -> Hyperplanes:
        """Return the tree with the best hyperplanes at the last level, and its objective."""
        w, b, total = tree.w.copy(), tree.b.copy(), 0.0
        for t, rows, scores in self.visits(tree):
            value = float(0.5 * w[t] @ w[t] + self.losses(t, scores, rows).sum())
            if t >= self.n_upper:
                found = self.machine(t, rows, warm=(w[t], float(b[t])), accuracy=accuracy)
                own = self.node_value(t, *found, rows)
                if own <= value:
                    w[t], b[t], value = found[0], found[1], own
            total += value
        return Hyperplanes(w, b, total)

    def sample(self, rows: IntArray) -> HyperplaneProblem:
        """Return the problem on some samples, which weigh as much as all of them."""
        share = float(self.weight.sum() / self.weight[rows].sum())
        return replace(self, X=self.X[rows], sign=self.sign[rows], weight=self.weight[rows] * share)
