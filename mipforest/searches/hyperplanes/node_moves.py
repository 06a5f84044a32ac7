r"""Node moves: another routing at one node, priced by the exact problems of all nodes that it concerns.

The state is a tree whose nodes are all optimal for its routing. A move proposes a hyperplane for one node above the
last level, by which samples are routed anew. Then all nodes at and below it are solved exactly: the last level with
free sides, the others with hard sides, :math:`w^\top x + b \ge 0` to the right and :math:`\le -\varepsilon` to the
left. The move is kept if the objective falls. Pricing ends as soon as what is solved reaches the objective known.

Proposals come from one more programme of hinges, over the node's own loss and *preferred sides* of its samples:

- *surrogate*: every sample prefers the side with the smaller cost-to-go, by the difference of both;
- *ramp*: the same without samples that are far on the other side (a step of the concave-convex procedure: A. Yuille, A.
  Rangarajan, Neural Computation 15, 2003);
- *flip*: a sample near the hyperplane, or dear where it is, changes sides with its neighbours, and all others stay if
  they can;
- *support*: the same from samples on the margin of their child's machine, whose removal widens that margin;
- *line*: the best hyperplane on a random line (:mod:`~mipforest.searches.hyperplanes.line_moves`);
- *anneal*: all nodes at once, after noise on one (:mod:`~mipforest.searches.hyperplanes.annealing`).

A node with a budget of features keeps its own in these, or *exchanges* some: others are drawn, often by the weights of
the machine of all features.

With the l1 norm, programmes have its hinges as rows, and no quadratic term (:mod:`mipforest.heuristics.node_solver`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.node_problems import bias_if_empty
from mipforest.heuristics.node_solver import Hinges, hinges_of
from mipforest.searches import entry
from mipforest.searches.hyperplanes import CLEARANCE, HyperplaneProblem, Hyperplanes
from mipforest.searches.hyperplanes.annealing import annealed
from mipforest.searches.hyperplanes.line_moves import best_on, random_line
from mipforest.searches.routing.interior_point import (
    AT,
    CAPACITY,
    EUCLIDEAN,
    L1,
    REWARD,
    UNLIMITED,
    InteriorWorkspace,
    Limits,
    Norm,
    solve_rows,
    workspace_for,
    write_l1,
)

#: The moves, and how often each is drawn: about as its gains per second on the MARGOT paper's sets.
MOVES = ("line", "ramp", "support", "surrogate", "flip", "anneal")
_DRAWN = (0.30, 0.18, 0.14, 0.15, 0.11, 0.12)

#: How often a move of a node with a budget exchanges features, and how often it asks all features for the best ones.
EXCHANGED, ASKED = 0.6, 0.4

#: Hinges of a node problem, hinges and sides of all samples, up to which node moves take its samples.
MAX_ROWS = 6000

#: Accuracy of node problems that price a routing, and of those that propose one.
PRICED, PROPOSED = 1e-5, 1e-3

#: Iterations of both: weights of preferred sides differ by powers of ten, and a proposal need not be optimal.
ITERATIONS, PROPOSAL_ITERATIONS = 60.0, 15.0

#: Least gain that counts, relative to the objective: above the accuracy of node problems.
GAIN = 1e-6

#: Share of the samples, nearest to the hyperplane, whose sides are rows at first; others are added where they fail.
_NEAR = 0.4

#: By how much rows of sides are stricter than the sides: what an interior point leaves of a violation.
_STRICTER = 1e-7

#: Most that a hyperplane may be longer to hold the gap that an interior point has missed.
_LONGER = 1.01

#: Rounds of rows that are added for sides that fail.
_ROUNDS = 6


class NodeMoves:
    """Moves of one task on a problem of few samples; it has a workspace and random numbers of its own."""

    def __init__(self, problem: HyperplaneProblem, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        p = problem.X.shape[1]
        self.centre = problem.X.mean(axis=0)
        self.X = problem.X - self.centre
        self.work = workspace_for(rows_at_most(problem), p)
        self.all = np.arange(p)

    # ------------------------------------------------------------------ node problems

    def _solve(
        self, rows: Hinges, features: IntArray, accuracy: float, stop: float = np.inf
    ) -> tuple[FloatArray, float]:
        """Solve a programme of hinges on some features; rows with the capacity :data:`UNLIMITED` are hard.

        Samples are centred.
        """
        w, m, p = np.zeros(len(self.all)), len(rows.direction), len(features)
        if not m or (rows.direction == rows.direction[0]).all():
            side = float(rows.direction[0]) if m else 1.0
            return w, side * max(0.0, float(rows.margin.max(initial=0.0)))
        work, X = self.work, rows.X if p == len(w) else rows.X[:, features]
        np.multiply(X.T, rows.direction, out=work.Z[:p, :m])
        work.Z[p, :m] = rows.direction
        work.v[REWARD, :m], work.v[CAPACITY, :m] = rows.margin, rows.capacity
        m = write_l1(work, m, p) if self.problem.l1 else m
        iterations = PROPOSAL_ITERATIONS if accuracy == PROPOSED else ITERATIONS
        norm = L1 if self.problem.l1 else EUCLIDEAN
        solve_hinges(work, m, p, norm, Limits(stop, accuracy, 0.0, iterations, 0.0))
        w[features] = work.f[AT, :p]
        return w, float(work.f[AT, p])

    def _uncentred(self, w: FloatArray, b: float) -> tuple[FloatArray, float]:
        return w, b - float(w @ self.centre)

    def _own(self, t: int, members: IntArray, factor: float = 1.0) -> Hinges:
        problem = self.problem
        if problem.C[t] == 0.0:
            members = members[:0]
        capacity = factor * problem.C[t] * problem.weight[members]
        return hinges_of(self.X[members], problem.sign[members], capacity, problem.kinks)

    def best_hyperplane(
        self, t: int, members: IntArray, features: IntArray | None = None, stop: float = np.inf
    ) -> tuple[FloatArray, float]:
        """Return the best hyperplane of node t for some samples, sides free; with a budget, on some features."""
        if not len(members):
            return np.zeros(self.X.shape[1]), bias_if_empty(t)
        own = self._own(t, members)

        def fit(features: IntArray) -> tuple[FloatArray, float]:
            return self._uncentred(*self._solve(own, features, PRICED, stop))

        if features is None and self.problem.selects(t):
            return self.problem.eliminated(t, members, fit)
        return fit(self.all if features is None else features)

    def with_sides(
        self,
        t: int,
        members: IntArray,
        features: IntArray,
        right: BoolArray,
        distance: FloatArray,
        stop: float,
    ) -> tuple[FloatArray, float] | None:
        """Return the best hyperplane of node t that sends samples to their sides; ``None`` where none was found.

        Parameters
        ----------
        t, members, features, right
            The node, the (m,) samples that reach it, the features it may use, and whether each sample goes right.
        distance
            (m,) how far they are from a hyperplane: rows for the sides of those that are near come first.
        stop
            Value from which on the hyperplane is of no interest.
        """
        if not len(members):
            return np.zeros(self.X.shape[1]), bias_if_empty(t)
        problem, own = self.problem, self._own(t, members)
        x, side = self.X[members], np.where(right, 1.0, -1.0)
        least = np.where(right, CLEARANCE, problem.epsilon + CLEARANCE)
        kept = distance <= np.quantile(distance, _NEAR)
        w, b, scores = np.zeros(x.shape[1]), 0.0, np.zeros(len(x))
        for _ in range(_ROUNDS):
            rows = _joined(own, x[kept], side[kept], least[kept] + _STRICTER, np.full(kept.sum(), UNLIMITED))
            w, b = self._solve(rows, features, PRICED, stop)
            if not np.isfinite(b):
                return None
            scores = x @ w + b
            failing = ~kept & (side * scores < least)
            if not failing.any():
                break
            kept |= side * scores < least + 0.1 * float(np.abs(scores).max())
        held = _scale_to_sides(scores, right, problem.epsilon)
        if held is None:
            return None
        longer, shift = held
        return self._uncentred(longer * w, longer * b + shift)

    # ------------------------------------------------------------------ pricing

    def priced(
        self, tree: Hyperplanes, t: int, members: IntArray, cutoff: float = np.inf
    ) -> tuple[Hyperplanes, float] | None:
        """Solve all nodes at and below node t for the routing of a tree, the last level first.

        Returns
        -------
        The tree and the value of its nodes at and below t; ``None`` where that is not below the cutoff, or a routing is
        one that no hyperplane has.
        """
        problem, nodes = self.problem, self.problem.below(t)
        here, scores = {t: members}, {}
        for s in nodes:
            if s < problem.n_upper:
                scores[s] = problem.X[here[s]] @ tree.w[s] + tree.b[s]
                right = scores[s] >= 0.0
                here[2 * s + 1], here[2 * s + 2] = here[s][~right], here[s][right]
        found, value = Hyperplanes(tree.w.copy(), tree.b.copy()), 0.0
        for s in sorted((s for s in nodes if s >= problem.n_upper), key=lambda s: -len(here[s])):
            kept = np.flatnonzero(tree.w[s]) if problem.selects(s) and tree.w[s].any() else None
            found.w[s], found.b[s] = self.best_hyperplane(s, here[s], kept, cutoff - value)
            value += problem.node_value(s, found.w[s], float(found.b[s]), here[s])
            if value >= cutoff:
                return None
        for s in reversed([s for s in nodes if s < problem.n_upper]):
            rows = here[s]
            own = problem.node_value(s, tree.w[s], float(tree.b[s]), rows)
            features, distance = problem.features(s, tree.w[s]), np.abs(scores[s])
            split = self.with_sides(s, rows, features, scores[s] >= 0.0, distance, cutoff - value)
            between = bool(problem.between(scores[s]).any())
            if split is not None:
                new = problem.node_value(s, *split, rows)
                if new < own or between:
                    found.w[s], found.b[s], own, between = split[0], split[1], new, False
            if between:
                return None
            value += own
            if value >= cutoff:
                return None
        return found, value

    def step(self, tree: Hyperplanes, cutoff: float) -> Hyperplanes | None:
        """Draw a move and price it; return the new tree, with its objective, if that is below the cutoff."""
        problem, rng = self.problem, self.rng
        scores = problem.scores(tree)
        costs, members = problem.costs(scores), problem.members(scores)
        # Nodes further up concern more samples.
        likely = np.array([0.5 ** int(np.log2(t + 1)) if len(members[t]) > 1 else 0.0 for t in problem.upper])
        if not likely.any():
            return None
        t = int(rng.choice(problem.n_upper, p=likely / likely.sum()))
        if problem.budget is not None and rng.random() < EXCHANGED / 2.0:
            last = [s for s in problem.last if len(members[s]) > 1 and problem.selects(s)]
            if last:
                s = int(rng.choice(last))
                return self._refitted(tree, s, members[s], costs, cutoff)
        kind = MOVES[int(rng.choice(len(MOVES), p=_DRAWN))]
        if kind == "anneal":
            found = self.priced(self._annealed(tree, t, members[t]), 0, members[0], cutoff)
            return None if found is None else problem.valued(found[0])
        features = problem.features(t, tree.w[t])
        if problem.selects(t) and rng.random() < EXCHANGED:
            features = problem.exchanged(t, tree.w[t], rng)
            kind = "surrogate" if kind == "line" else kind
        w, b = self._proposed(kind, tree, t, members[t], features, scores, costs)
        if not np.isfinite(b) or not np.isfinite(w).all():
            return None
        if np.array_equal(problem.X[members[t]] @ w + b >= 0.0, scores[members[t], t] >= 0.0):
            return None
        below = problem.below(t)
        own = sum(problem.charge(s, tree.w[s]) for s in below) + float(costs[members[t], t].sum())
        found = self.priced(tree.moved(t, w, b), t, members[t], cutoff - tree.value + own)
        return None if found is None else problem.valued(found[0])

    def descend(self, tree: Hyperplanes, failures: int, should_stop: Callable[[], bool]) -> Hyperplanes:
        """Take steps that lower the objective, until so many in a row have failed."""
        failed = 0
        while failed < failures and not should_stop():
            found = self.step(tree, tree.value * (1.0 - GAIN))
            if found is not None and found.value < tree.value * (1.0 - GAIN):
                tree, failed = found, 0
            else:
                failed += 1
        return tree

    # ------------------------------------------------------------------ features

    def _refitted(
        self, tree: Hyperplanes, t: int, members: IntArray, costs: FloatArray, cutoff: float
    ) -> Hyperplanes | None:
        """Exchange features of a node of the last level; return the tree if it is below the cutoff."""
        problem = self.problem
        asked = self.best_hyperplane(t, members, self.all)[0] if self.rng.random() < ASKED else None
        features = problem.exchanged(t, tree.w[t], self.rng, asked)
        w, b = self.best_hyperplane(t, members, features)
        now = problem.charge(t, tree.w[t]) + float(costs[members, t].sum())
        value = tree.value - now + problem.node_value(t, w, b, members)
        if not value < cutoff:
            return None
        return problem.valued(tree.moved(t, w, b))

    # ------------------------------------------------------------------ proposals

    def _annealed(self, tree: Hyperplanes, t: int, members: IntArray) -> Hyperplanes:
        rng, p = self.rng, self.X.shape[1]
        if rng.random() < 0.7:
            size = rng.choice((0.1, 0.3, 1.0)) * (float(np.linalg.norm(tree.w[t])) + 0.1) / np.sqrt(p)
            noise = size * rng.normal(size=p)
            bias = float(tree.b[t] - noise @ self.problem.X[members].mean(axis=0))
            tree = tree.moved(t, tree.w[t] + noise, bias)
        width = 10.0 ** rng.uniform(-1.5, 0.0)
        return annealed(self.problem, tree, (width, width / 4.0), iterations=25)

    def _proposed(
        self, kind: str, tree: Hyperplanes, t: int, members: IntArray, features: IntArray,
        scores: FloatArray, costs: FloatArray,
    ) -> tuple[FloatArray, float]:  # fmt: skip
        """Return a new hyperplane of node t on some features."""
        problem, rng = self.problem, self.rng
        s, left, right = scores[members, t], costs[members, 2 * t + 1], costs[members, 2 * t + 2]
        difference = right - left
        if kind == "line":
            line = random_line(problem, tree, t, members, rng)
            step, _ = best_on(problem, tree, line, members, s, difference)
            return tree.w[t] + step * line.e, float(tree.b[t] + step * line.f)
        side = np.where(s >= 0.0, 1.0, -1.0)
        size = float(np.median(np.abs(s))) + 1e-9
        if kind in ("surrogate", "ramp"):
            target, weight, width = self._by_costs(kind, s, side, size, difference)
        else:
            own = np.where(side > 0.0, scores[members, 2 * t + 2], scores[members, 2 * t + 1])
            target, weight, width = self._by_group(
                kind, members, s, side, size, left, right, problem.sign[members] * own
            )
        wanted = np.flatnonzero(weight > 0.0)
        factor = 10.0 ** rng.uniform(-1.0, 1.0) if rng.random() < 0.5 else 1.0
        rows = _joined(
            self._own(t, members, factor),
            self.X[members[wanted]],
            target[wanted],
            np.full(len(wanted), width),
            weight[wanted],
        )
        return self._uncentred(*self._solve(rows, features, PROPOSED))

    def _by_costs(
        self, kind: str, s: FloatArray, side: FloatArray, size: float, difference: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return preferred sides (m,), their weights, and the margin at which they are met, by the costs-to-go."""
        rng, target = self.rng, -np.sign(difference)
        width, strength = size * 10.0 ** rng.uniform(-2.0, 0.5), 10.0 ** rng.uniform(-2.0, 1.0)
        noise = np.exp(rng.normal(size=len(s)) * rng.choice((0.0, 0.5, 1.5)))
        weight = strength * np.abs(difference) / width * noise
        if kind == "ramp":
            weight[target * s <= -width * 10.0 ** rng.uniform(-1.0, 1.0)] = 0.0
        if rng.random() < 0.5:  # samples that do not mind stay where they are, if they can
            same = target == 0.0
            target[same], weight[same] = side[same], 0.1 * strength * float(np.abs(difference).mean()) / width
        return target, weight, width

    def _by_group(
        self, kind: str, members: IntArray, s: FloatArray, side: FloatArray, size: float,
        left: FloatArray, right: FloatArray, margins: FloatArray,
    ) -> tuple[FloatArray, FloatArray, float]:  # fmt: skip
        """Return the same where a group of near samples changes sides, and all others are to stay."""
        rng, X = self.rng, self.X[members]
        extra = side * (left - right)  # what a sample would pay less, on the other side less than 0
        rank = min(int(rng.exponential(max(3.0, 0.05 * len(s)))), len(s) - 1)
        first = int(np.argsort(np.abs(s), kind="stable")[rank])
        gain = np.maximum(-extra, 0.0)
        if rng.random() < 0.5 and gain.sum() > 0.0:
            first = int(rng.choice(len(s), p=gain / gain.sum()))
        if kind == "support":
            on = np.flatnonzero(margins < self.problem.kinks[:, 0].max() + 1e-3)
            if len(on):
                other = np.where(side > 0.0, left, right)[on]
                likely = 1.0 / (1.0 + np.argsort(np.argsort(other + 1e-9 * np.abs(s[on]), kind="stable")))
                first = int(rng.choice(on, p=likely / likely.sum()))
        same = np.flatnonzero(side == side[first])
        if rng.random() < 0.5:
            sign = self.problem.sign[members]
            same = same[sign[same] == sign[first]]
        near = np.argsort(np.square(X[same] - X[first]).sum(axis=1), kind="stable")
        group = same[near[: 1 + int(rng.exponential(3.0))]]
        target = side.copy()
        target[group] *= -1.0
        width = size * 10.0 ** rng.uniform(-2.0, 0.0)
        base = float(np.abs(extra).mean()) + 1e-12
        weight = np.maximum(extra, 0.0) + base * 10.0 ** rng.uniform(-3.0, 0.0)
        weight *= 10.0 ** rng.uniform(-1.0, 1.5) / width
        weight[group] = 10.0 * float(weight.max())
        return target, weight, width


def _scale_to_sides(scores: FloatArray, right: BoolArray, epsilon: float) -> tuple[float, float] | None:
    """Return a factor and a shift that put scores on their sides; ``None`` where none does."""
    if right.all() or not right.any():
        shift = max(0.0, CLEARANCE - float(scores.min())) if right.all() else 0.0
        low = min(0.0, -epsilon - CLEARANCE - float(scores.max()))
        return (1.0, shift) if right.all() else (1.0, low)
    least, most = float(scores[right].min()), float(scores[~right].max())
    wide = epsilon + 2.5 * CLEARANCE
    if least <= most or wide / (least - most) > _LONGER:
        return None
    longer = max(1.0, wide / (least - most))
    low, high = CLEARANCE - longer * least, -epsilon - CLEARANCE - longer * most
    return longer, float(np.clip(0.0, low, high))


def _joined(
    own: Hinges, X: FloatArray, direction: FloatArray, margin: FloatArray, capacity: FloatArray
) -> Hinges:
    """Return hinges with further ones."""
    return Hinges(
        np.vstack([own.X, X]),
        np.concatenate([own.direction, direction]),
        np.concatenate([own.margin, margin]),
        np.concatenate([own.capacity, capacity]),
    )


def rows_at_most(problem: HyperplaneProblem) -> int:
    """Return how many rows a node problem may have: the hinges of all samples, their sides, and those of an l1 norm."""
    norm = 2 * problem.X.shape[1] if problem.l1 else 0
    return (len(problem.kinks) + 1) * len(problem.X) + norm


@entry
def solve_hinges(work: InteriorWorkspace, m: int, q: int, norm: Norm, limits: Limits) -> int:
    """Solve a programme of hinges; see :func:`~mipforest.searches.routing.interior_point.solve_rows`."""
    return solve_rows(work, m, q, norm, limits)
