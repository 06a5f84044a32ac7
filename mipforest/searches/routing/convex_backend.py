r"""Backend of a tree of any convex nodes, whose features may have to be selected, as for certificates of these.

A **subproblem** says of every feature of a node that it is in, out, or open, and has a lower bound on the node's value
with such features, from the relaxation that leaves open ones open
(:mod:`mipforest.searches.routing.convex_relaxation`). A node is worth at least the least bound of its subproblems. More
samples and sides never lower the value of a subproblem, so subproblems and their bounds are handed down to all that
extends an open node; only the least ones are solved again, and split at an open feature where that helps.

At the last level a node keeps all its subproblems, as nothing below asks which one it is; above, the two halves of a
subproblem become two open nodes, as sides are decided sooner for few features that are known. With one feature alone,
all samples between two that went to one side go there too. At the end of a complete routing every node's subproblems
are split until its best features are known.

The loop is that of :class:`~mipforest.searches.routing.plunge.SubproblemPlunge`, in Python: a node's relaxation is a
heap of subproblems of different sizes, and takes some hundred microseconds, against which the loop counts for little.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.routing.certificate_writer import Decision, DualPoint, NodesWriter
from mipforest.searches.routing.convex_relaxation import (
    Node,
    measure_gains,
    node_for,
    solve_by_simplex,
    solve_finely,
    solve_node,
)
from mipforest.searches.routing.given_splits import best_weight, least_gains, passed_on
from mipforest.searches.routing.interior_point import L1, UNLIMITED, Limits, Norm
from mipforest.searches.routing.plunge import (
    BELOW_ROOT,
    COMPLETE,
    CUT_OFF,
    LARGER,
    LEAST_GAIN,
    STOPPED,
    Backend,
    ConvexNodes,
    PlungeResult,
    SubproblemPlunge,
    bisecting,
    enclosed,
)

#: What a subproblem says of a feature.
OUT, OPEN, IN = -1, 0, 1

#: Gap, relative to the value, up to which a node is solved, and where its norm selects features; iterations at most.
_ACCURACY, _OPEN_ACCURACY, _ITERATIONS = 1e-7, 1e-4, 60.0

#: Iterations after which an interior point of the l1 norm has often lost its accuracy, so that the simplex method is
#: asked too.
_MANY_ITERATIONS = 25

#: Share of u that the relaxation keeps of a feature from which on it is worth its cost.
_CHOSEN = 0.5

#: Subproblems that are solved at a node of the last level for one open node.
_MAX_SOLVED = 8

#: Numbers that the plunges of one slice on a cluster may give; the next slice begins behind them.
NUMBERS_OF_A_SLICE = 2**32

#: A choice of features whose value is this close to the least bound, relatively, is the best one.
_CLOSED = 1e-7

#: Share of what is left to the cutoff that an open choice of features above the last level may hide.
_HIDDEN = 0.05

#: By how much more than the cutoff leaves of a certificate are to prove, as a share: whole multiples of a power of two
#: are a little less than the dual points that they stand for.
_SPARE = 1e-9


@dataclass(eq=False)
class Subproblem:
    """Features that a node may use, and what is known of its value with them.

    Attributes
    ----------
    features
        (p,) :data:`OUT`, :data:`OPEN` or :data:`IN`.
    bound
        Lower bound on the node's value.
    version
        For which samples and sides the bound was solved.
    w, b, chosen
        The hyperplane found then, and which features seem best.
    gains
        (3, G) what keeping a group left or right, or charging it, raises the bound by.
    path
        The features by which it was split off, each with whether it is in.
    point
        What proves the bound, where a certificate is written.
    fine
        Whether it was solved finely: its bound is what the node is worth, or enough to cut off.
    """

    features: NDArray[np.int8]
    bound: float
    version: int = -1
    w: FloatArray | None = None
    b: float = 0.0
    chosen: BoolArray | None = None
    gains: FloatArray | None = None
    path: tuple[tuple[int, bool], ...] = ()
    point: DualPoint | None = None
    fine: bool = False

    @property
    def best(self) -> Subproblem:
        """The subproblem of the features that seem best."""
        assert self.chosen is not None
        return Subproblem(np.where(self.chosen, IN, OUT).astype(np.int8), 0.0)

    @property
    def decided(self) -> bool:
        """Whether no feature is open."""
        return bool(self.features.all())


#: A node's subproblems, as a heap by bound.
Subproblems = list[tuple[float, int, Subproblem]]


@dataclass(eq=False)
class SubproblemNode:
    """Open node: partial assignment with the subproblems of its nodes.

    Attributes
    ----------
    reached
        (G,) nodes that the groups have reached.
    subproblems
        The subproblems of every node.
    versions
        Which samples and sides each node has: a number that changes with them.
    features
        (|B|, p) the best features of a complete routing, good ones at the end of another plunge.
    """

    reached: IntArray
    subproblems: list[Subproblems]
    versions: list[int]
    features: BoolArray

    def copy(self) -> SubproblemNode:
        """Return a node that may be changed."""
        subproblems = [list(subproblems) for subproblems in self.subproblems]
        return SubproblemNode(self.reached.copy(), subproblems, list(self.versions), self.features.copy())

    @property
    def bytes(self) -> int:
        """Memory of the assignment, the subproblems and their gains."""
        known = (sub for subproblems in self.subproblems for _, _, sub in subproblems)
        of_subproblems = sum(
            2 * sub.features.nbytes + (0 if sub.gains is None else sub.gains.nbytes) for sub in known
        )
        return self.reached.nbytes + self.features.nbytes + of_subproblems

    def lighter(self) -> SubproblemNode:
        """Return the same without gains: they are measured again."""
        light = self.copy()
        for subproblems in light.subproblems:
            subproblems[:] = [
                (bound, k, replace(sub, version=-1, gains=None)) for bound, k, sub in subproblems
            ]
        return light

    @property
    def bound(self) -> float:
        """Lower bound on every tree that extends it."""
        return sum(subproblems[0][0] for subproblems in self.subproblems)


class SubproblemSolver:
    """Solves subproblems of one problem, and splits them.

    Parameters
    ----------
    nodes
        The problem.
    keep_points
        Whether subproblems keep the dual points that prove their bounds.

    Attributes
    ----------
    X, centre
        (G, p) samples around their mean, and (p,) their mean.
    side
        (nodes, nodes) 2 where a group that has reached a node stands at another one, -1 or 1 where it went left or
        right there, else 0.
    """

    def __init__(self, nodes: ConvexNodes, *, keep_points: bool = False) -> None:
        self._nodes, self._keep_points = nodes, keep_points
        self.centre = nodes.X.mean(axis=0)
        self.X = np.ascontiguousarray(nodes.X - self.centre)
        self._G, self._p = nodes.X.shape
        self._n_upper, self.side = nodes.n_upper, _sides(nodes.n_nodes)
        self._numbers = count()
        self._goes_right = {t: split.right(nodes.X) for t, split in nodes.given.items()}
        g, c = np.nonzero(nodes.weight)
        # Margins: one variable per class of a group and kink of the loss.
        self._of = np.repeat(g, len(nodes.kinks))
        self._d = np.repeat(2.0 * c - 1.0, len(nodes.kinks))
        self._reward = np.tile(nodes.kinks[:, 0], len(g))
        self._unit = np.outer(nodes.weight[g, c], nodes.kinks[:, 1]).ravel()
        self._number = np.add.outer(len(nodes.kinks) * c, np.arange(len(nodes.kinks))).ravel()

    def path(self, g: int, node: int) -> list[int]:
        """Return the nodes from one on that a group passes by given splits, to that where it waits."""
        path = [node]
        while (right := self._goes_right.get(path[-1])) is not None:
            path.append(2 * path[-1] + 1 + int(right[g]))
        return path

    def passed_on(self, reached: IntArray) -> IntArray:
        """Return where groups (G,) are once those at nodes with given splits have taken their sides."""
        return passed_on(reached, self._goes_right)

    def number_from(self, first: int) -> None:
        """Begin to give other numbers."""
        self._numbers = count(first)

    def number(self) -> int:
        """Return a number that was not given before."""
        return next(self._numbers)

    def entry(self, bound: float, sub: Subproblem) -> tuple[float, int, Subproblem]:
        """Return a subproblem as it stands in a heap; the numbers break ties."""
        return bound, self.number(), sub

    def first(self, t: int) -> Subproblem:
        """Return the subproblem of all that node t may use."""
        budget, allowed = self._nodes.budget, self._nodes.allowed
        own = np.ones(self._p, dtype=bool) if allowed is None else allowed[t]
        free = budget is None or budget[t] >= own.sum()
        return Subproblem(np.where(own, IN if free else OPEN, OUT).astype(np.int8), 0.0)

    def split(self, t: int, subproblems: Subproblems) -> None:
        """Split the least subproblem of node t."""
        bound, _, sub = heapq.heappop(subproblems)
        for kept in (IN, OUT):
            heapq.heappush(subproblems, self.entry(bound, self.half(t, sub, kept)))

    def half(self, t: int, sub: Subproblem, kept: int) -> Subproblem:
        """Return the half of a subproblem of node t with its open feature of the largest weight in, or out."""
        assert sub.w is not None
        weights = np.where(sub.features == OPEN, np.abs(sub.w), -1.0)
        features = sub.features.copy()
        j = int(weights.argmax())
        features[j] = kept
        budget = self._nodes.budget
        assert budget is not None
        n_in, n_open = int((features == IN).sum()), int((features == OPEN).sum())
        if n_in + n_open <= budget[t]:
            features[features == OPEN] = IN
        elif n_in >= budget[t] and not np.isfinite(self._nodes.alpha):
            features[features == OPEN] = OUT
        return Subproblem(features, sub.bound, path=(*sub.path, (j, kept == IN)), point=sub.point)

    def solve(self, here: SubproblemNode, t: int, stop: float, *, finely: bool = False) -> None:
        """Solve the least subproblem of a node for its samples and sides, up to a value, and put it back."""
        bound, _, sub = heapq.heappop(here.subproblems[t])
        solved = self.solved(here, t, replace(sub, bound=max(bound, sub.bound)), stop, finely=finely)
        heapq.heappush(here.subproblems[t], self.entry(solved.bound, solved))

    def solved(
        self, here: SubproblemNode, t: int, sub: Subproblem, stop: float, *, finely: bool = False
    ) -> Subproblem:
        """Return a subproblem solved for a node's samples and sides, with its gains.

        Where its features are decided, it may be solved finely, so that it proves what the node is worth: then it has
        no gains.
        """
        nodes = self._nodes
        if t in nodes.given:
            return self._solved_given(here, t, sub, finely=finely)
        features = sub.features
        used = np.flatnonzero(features != OUT)
        selectable = (features[used] == OPEN).astype(np.float64)
        n_in = len(used) - int(selectable.sum())
        cost, free = 0.0, 0.0
        if nodes.budget is not None:
            free = max(0.0, float(nodes.budget[t] - n_in))
            if np.isfinite(nodes.alpha):
                cost = nodes.alpha * max(0.0, float(n_in - nodes.budget[t]))
        side = self.side[here.reached, t]
        margins = np.flatnonzero(side[self._of] != 0)
        kept = np.flatnonzero(np.abs(side) == 1)
        group = np.concatenate([self._of[margins], kept])
        d = np.concatenate([self._d[margins], side[kept].astype(np.float64)])
        reward = np.concatenate([self._reward[margins], np.where(side[kept] < 0, nodes.epsilon, 0.0)])
        capacity = np.concatenate([nodes.C[t] * self._unit[margins], np.full(len(kept), UNLIMITED)])
        # Without a feature, one that is 0 everywhere leaves the bias alone to choose.
        X = np.ascontiguousarray(self.X[:, used]) if len(used) else np.zeros((self._G, 1))
        selectable = selectable if len(used) else np.zeros(1)
        alpha = nodes.alpha if np.isfinite(nodes.alpha) else 1e300
        norm = L1 if nodes.l1 else Norm(1.0, float(selectable.sum()), free, alpha)
        node = node_for(X[group] * d[:, None], d, reward, capacity, norm, selectable)
        limit = float(nodes.bias_limit[t])
        accuracy = _OPEN_ACCURACY if norm.selectable else _ACCURACY
        iterations = solve_node(node, Limits(stop - cost, accuracy, 1.0, _ITERATIONS, limit))
        finely = finely and sub.decided
        if finely and not node.result[0] >= stop - cost:
            solve_finely(node, bias_limit=limit, stop=stop - cost)
        elif nodes.l1 and iterations > _MANY_ITERATIONS and node.result[0] < stop - cost:
            solve_by_simplex(node, limit)
        value = float(node.result[0]) + cost
        # Where no hyperplane keeps the sides, the iterations may overflow: then they prove nothing.
        if not (np.isfinite(value) and node.is_finite):
            return replace(
                sub, bound=max(sub.bound, cost), version=here.versions[t], w=np.zeros(self._p), b=0.0,
                chosen=features == IN, gains=None, fine=finely,
            )  # fmt: skip
        w, chosen = np.zeros(self._p), features == IN
        w[used] = node.w[: len(used)]
        size, u = np.abs(node.w) * selectable, np.abs(node.u)
        best = np.argsort(-size)
        best = best[size[best] > _CHOSEN * u[best]] if np.isfinite(nodes.alpha) else best[: int(free)]
        chosen[used[best[size[best] > 0.0]]] = True
        point = sub.point
        if self._keep_points and value > sub.bound:
            K, sides = len(nodes.kinks), 2 * self._G * len(nodes.kinks)
            numbers = np.concatenate(
                [2 * K * self._of[margins] + self._number[margins], sides + kept + self._G * (side[kept] > 0)]
            )
            positive = node.a > 0.0
            point = DualPoint(t, numbers[positive], node.a[positive])
        solved = Subproblem(
            features, max(sub.bound, value), here.versions[t], w, float(node.result[1]), chosen,
            path=sub.path, point=point, fine=finely,
        )  # fmt: skip
        if value < stop and not finely:
            solved.gains = self._measured(here, t, node, X, value - solved.bound)
        return solved

    def _solved_given(self, here: SubproblemNode, t: int, sub: Subproblem, *, finely: bool) -> Subproblem:
        """Return the subproblem of a node whose split is given, solved exactly, with its gains."""
        nodes = self._nodes
        split, cost = nodes.given[t], 0.0
        if nodes.budget is not None and nodes.budget[t] < 1:
            cost = nodes.alpha
        a, u = self._d * split.above(nodes.X)[self._of], nodes.C[t] * self._unit
        charged = self.side[here.reached, t][self._of] != 0
        best = best_weight(a[charged], self._reward[charged], u[charged], least=split.least, l1=nodes.l1)
        value = best.value + cost
        w, gains = np.zeros(self._p), np.zeros((3, self._G))
        w[split.feature] = best.weight
        coming = np.flatnonzero(self.side[t, here.reached[self._of]] != 0)
        found = least_gains(best, a[coming], self._reward[coming], u[coming], l1=nodes.l1)
        np.maximum.at(gains[2], self._of[coming], np.maximum(found + value - max(sub.bound, value), 0.0))
        b = -best.weight * (split.threshold - self.centre[split.feature])
        return replace(
            sub, bound=max(sub.bound, value), version=here.versions[t], w=w, b=b, chosen=sub.features == IN,
            gains=gains, fine=finely,
        )  # fmt: skip

    def _measured(
        self, here: SubproblemNode, t: int, node: Node, X: FloatArray, lacking: float
    ) -> FloatArray:
        """Return the gains of a subproblem that was just solved."""
        nodes = self._nodes
        gains = np.zeros((3, self._G))
        standing = np.flatnonzero(here.reached == t) if t < self._n_upper else np.zeros(0, np.int64)
        coming = np.flatnonzero(self.side[t, here.reached[self._of]] != 0)
        coming = coming[here.reached[self._of[coming]] != t]
        n = len(standing)
        group = np.concatenate([standing, standing, self._of[coming]])
        d = np.concatenate([np.full(n, -1.0), np.ones(n), self._d[coming]])
        reward = np.concatenate([np.full(n, nodes.epsilon), np.zeros(n), self._reward[coming]])
        capacity = np.concatenate([np.full(2 * n, UNLIMITED), nodes.C[t] * self._unit[coming]])
        found = np.zeros(len(group))
        measure_gains(node, X, group, d, reward, capacity, float(nodes.bias_limit[t]), found)
        found = np.maximum(found + lacking, 0.0)
        gains[0, standing], gains[1, standing] = found[:n], found[n : 2 * n]
        np.maximum.at(gains[2], self._of[coming], found[2 * n :])
        return gains


def _sides(n_nodes: int) -> NDArray[np.int8]:
    """Return (nodes, nodes) 2 where a group stands, -1 or 1 where it went at a node above, else 0."""
    sides = np.zeros((2 * n_nodes + 1, 2 * n_nodes + 1), np.int8)
    for node in range(2 * n_nodes + 1):
        sides[node, node], at = 2, node
        while at > 0:
            above = (at - 1) // 2
            sides[node, above] = -1 if at == 2 * above + 1 else 1
            at = above
    return sides


class ConvexBackend(Backend):
    """Plunges of any convex nodes; parameters as for the base class."""

    writer = NodesWriter

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        super().__init__(nodes, logs=logs)
        self._solver = SubproblemSolver(nodes, keep_points=logs)

    @classmethod
    def takes(cls, nodes: ConvexNodes, *, certified: bool) -> bool:
        """Return that all problems are taken."""
        del nodes, certified
        return True

    @classmethod
    def _run_tiny(cls) -> None:
        X, one = np.array([[0.0], [1.0]]), np.ones(1)
        tiny = cls(ConvexNodes(X, np.eye(2), one, one, 1, 1e-3, np.ones((1, 2)), False, None, np.inf))
        tiny.plunge(tiny.first(), np.inf, 1, np.zeros(1, np.int64))

    def begin_slice(self, number: int, highest_cutoff: float) -> None:
        """Go on with open nodes of another process; see :class:`Backend`."""
        del highest_cutoff
        self._solver.number_from(number * NUMBERS_OF_A_SLICE)

    def first(self) -> SubproblemNode:
        """Return the open node from which all trees can be reached."""
        return self.at(np.zeros(len(self.nodes.X), np.int64))

    def at(self, reached: IntArray) -> SubproblemNode:
        """Return the open node of a partial assignment, with all features open."""
        solver, n_nodes = self._solver, self.nodes.n_nodes
        subproblems = [[solver.entry(0.0, solver.first(t))] for t in range(n_nodes)]
        versions = [solver.number() for _ in range(n_nodes)]
        features = np.ones((n_nodes, self.nodes.X.shape[1]), dtype=bool)
        return SubproblemNode(solver.passed_on(reached), subproblems, versions, features)

    def decided(self, node: SubproblemNode, reached: IntArray) -> SubproblemNode:
        """Return an open node with further sides; see :class:`Backend`."""
        other = node.copy()
        for t in np.unique(other.reached[other.reached != reached]).tolist():
            other.versions[t] = self._solver.number()
        other.reached[:] = reached
        return other

    def plunge(self, start: SubproblemNode, cutoff: float, max_steps: int, stop: IntArray) -> PlungeResult:
        """Plunge from an open node; see :class:`Backend`."""
        if self.logs:
            cutoff += _SPARE * abs(cutoff)
        run = _ConvexPlunge(self.nodes, self._solver, start.copy(), cutoff, stop, logs=self.logs)
        end, here = run.run(max_steps), run.here
        if end == STOPPED:
            run.open.append((here.bound, here))
        elif self.logs:
            run.log.append([[sub for _, _, sub in subs] for subs in here.subproblems])
        least = [subs[0][2] for subs in here.subproblems]
        if end != COMPLETE:
            for t, sub in enumerate(least):
                here.features[t] = sub.features != OUT if sub.chosen is None else sub.chosen
        weights = np.array([np.zeros(self.nodes.X.shape[1]) if sub.w is None else sub.w for sub in least])
        bias = np.array([sub.b for sub in least]) - weights @ self._solver.centre
        return PlungeResult(
            end, here, run.open, here.bound, run.cut_bound, weights, bias, run.steps, log=run.log
        )


class _ConvexPlunge(SubproblemPlunge):
    """One plunge of convex nodes; ``log`` is what it does, for a certificate."""

    here: SubproblemNode

    def __init__(
        self, nodes: ConvexNodes, solver: SubproblemSolver, here: SubproblemNode, cutoff: float, stop: IntArray, *,
        logs: bool,
    ) -> None:  # fmt: skip
        super().__init__(here, cutoff, stop, logs=logs)
        self._solver, self._n_upper = solver, nodes.n_upper
        self._G, self._n_nodes = len(nodes.X), nodes.n_nodes
        self._hard = not np.isfinite(nodes.alpha)
        self.log = list[Decision]()

    @property
    def is_decided(self) -> bool:
        """Whether all groups have reached the last level."""
        return bool((self.here.reached >= self._n_upper).all())

    # ------------------------------------------------------------------ bounds

    def close_sides(self) -> bool:
        """Solve what has changed and close sides that lead to no better tree, until nothing changes.

        Where plunges log what they do, closed sides are left open with their bounds.
        """
        here = self.here
        while True:
            for t in range(self._n_nodes):
                self._refine(t)
                if here.bound >= self.cutoff:
                    self.cut_bound = min(self.cut_bound, here.bound)
                    return True
            left, right = self._gains()
            slack = self.cutoff - here.bound
            waiting = here.reached < self._n_upper
            no_left, no_right = waiting & (left >= slack), waiting & (right >= slack)
            if (no_left & no_right).any() and not self.logs:
                least = float(np.minimum(left, right)[no_left & no_right].max())
                self.cut_bound = min(self.cut_bound, here.bound + least)
                return True
            for closed, gain in ((no_left, left), (no_right, right)):
                if closed.any():
                    self.cut_bound = min(self.cut_bound, here.bound + float(gain[closed].min()))
            left_inside, right_inside = self._between()
            to_right = np.flatnonzero((no_left | right_inside) & ~no_right)
            to_left = np.flatnonzero((no_right | left_inside) & (self.logs | ~no_left))
            if not len(to_left) and not len(to_right):
                return False
            sides = [(int(g), -1) for g in to_left] + [(int(g), 1) for g in np.setdiff1d(to_right, to_left)]
            bound = here.bound
            for g, side in sides:
                if self.logs:
                    other, gain_of_other = here.copy(), (right if side < 0 else left)[g]
                    self._decide(other, g, -side)
                    self.open.append((bound + float(gain_of_other), other))
                    self.log.append((g, side))
                self._decide(here, g, side)

    def _refine(self, t: int) -> None:
        """Solve the least subproblems of a node again, and split them at the last level, as far as it helps."""
        here = self.here
        subs, others = here.subproblems[t], here.bound - here.subproblems[t][0][0]
        for _ in range(_MAX_SOLVED if t >= self._n_upper else 1_000_000):
            bound, _, sub = subs[0]
            if others + bound >= self.cutoff:
                return
            if sub.version != here.versions[t]:
                self._solver.solve(here, t, self.cutoff - others)
            elif sub.decided or t < self._n_upper:
                return
            else:
                self._solver.split(t, subs)

    def _gains(self) -> tuple[FloatArray, FloatArray]:
        """Return the gains of the bound by sending a group left, or right."""
        here, by_node = self.here, []
        for t in range(self._n_nodes):
            subs = here.subproblems[t]
            sub = subs[0][2]
            if sub.gains is None or sub.version != here.versions[t]:
                by_node.append(np.zeros((3, self._G)))
                continue
            second = min((entry[0] for entry in subs[1:3]), default=np.inf)
            by_node.append(np.minimum(sub.gains, second - subs[0][0]))
        left, right = np.zeros(self._G), np.zeros(self._G)
        for t in range(self._n_upper):
            at = here.reached == t
            left[at] = by_node[t][0, at] + by_node[2 * t + 1][2, at]
            right[at] = by_node[t][1, at] + by_node[2 * t + 2][2, at]
        return left, right

    # ------------------------------------------------------------------ decisions

    def _decide(self, node: SubproblemNode, g: int, side: int) -> None:
        """Send a group from the node that it has reached to a side."""
        t = int(node.reached[g])
        path = self._solver.path(g, 2 * t + (1 if side < 0 else 2))
        node.reached[g] = path[-1]
        for changed in (t, *path):
            if changed < self._n_nodes:
                node.versions[changed] = self._solver.number()

    def _between(self) -> tuple[BoolArray, BoolArray]:
        """Return groups that one feature alone sends left, or right, as groups on both sides of them went there."""
        here, left, right = self.here, np.zeros(self._G, dtype=bool), np.zeros(self._G, dtype=bool)
        for t in range(self._n_upper):
            x = self._only_feature(t)
            if x is None:
                continue
            side = self._solver.side[here.reached, t]
            inside_left, inside_right = enclosed(x, side)
            left |= (here.reached == t) & inside_left
            right |= (here.reached == t) & inside_right
        return left & ~right, right & ~left

    def _only_feature(self, t: int) -> FloatArray | None:
        """Return the values (G,) of the one feature that a node may use, if it is one."""
        subs = self.here.subproblems[t]
        used = np.flatnonzero(subs[0][2].features != OUT)
        return self._solver.X[:, used[0]] if len(subs) == 1 and len(used) == 1 else None

    def branch(self) -> tuple[float, SubproblemNode]:
        """Take the cheaper half of what is left; return the other one and its bound."""
        here = self.here
        bound, other = here.bound, here.copy()
        for t in range(self._n_upper):
            if (here.reached == t).any() and self._hides(t):
                sub = here.subproblems[t][0][2]
                for node, kept in ((here, IN), (other, OUT)):
                    half = self._solver.half(t, sub, kept)
                    node.subproblems[t] = [self._solver.entry(sub.bound, half)]
                j, taken = here.subproblems[t][0][2].path[-1]
                self.log.append((t, j, taken))
                return bound, other
        g, left, right = self._candidate()
        side = -1 if left <= right else 1
        self._decide(here, g, side)
        self._decide(other, g, -side)
        self.log.append((g, side))
        return bound + max(left, right), other

    def _hides(self, t: int) -> bool:
        """Return whether features of a node above the last level should be decided before sides are."""
        here = self.here
        sub = here.subproblems[t][0][2]
        if sub.decided:
            return False
        if self._hard:
            return True
        value = self._solver.solved(here, t, sub.best, np.inf).bound
        return value - sub.bound > _HIDDEN * (self.cutoff - here.bound)

    def _candidate(self) -> tuple[int, float, float]:
        """Return the group to decide next, and what its sides raise the bound by."""
        here = self.here
        left, right = self._gains()
        x = self._only_feature(0)
        if x is not None and (here.reached == 0).any():
            waiting = np.flatnonzero(here.reached == 0)
            g = bisecting(waiting, x, self._solver.side[here.reached, 0])
        else:
            low, high = np.minimum(left, right), np.maximum(left, right)
            score = np.maximum(low, LEAST_GAIN) * np.maximum(high, LEAST_GAIN) ** LARGER
            score = np.where(here.reached == 0, score, BELOW_ROOT * score)
            score[here.reached >= self._n_upper] = -1.0
            g = int(score.argmax())
        return g, float(left[g]), float(right[g])

    # ------------------------------------------------------------------ complete routings

    def complete(self) -> int:
        """Split the subproblems of all nodes until their best features are known, and write these.

        Nodes with decided features are solved finely: no branching comes after that could show what they are worth.
        """
        here = self.here
        for t in range(self._n_nodes):
            subs, best = here.subproblems[t], np.inf
            while True:
                bound, _, sub = subs[0]
                if here.bound >= self.cutoff:
                    self.cut_bound = min(self.cut_bound, here.bound)
                    return CUT_OFF
                if self.stop[0]:
                    return STOPPED
                others = here.bound - bound
                if sub.version != here.versions[t] or (sub.decided and not sub.fine):
                    self._solver.solve(here, t, self.cutoff - others, finely=True)
                    continue
                if sub.decided:
                    if bound < best:
                        best, here.features[t] = bound, sub.features == IN
                    break
                value = self._solver.solved(here, t, sub.best, self.cutoff - others, finely=True).bound
                if value < best:
                    best, here.features[t] = value, sub.chosen
                if bound >= best - _CLOSED * (1.0 + abs(best)):
                    break
                self._solver.split(t, subs)
        return COMPLETE
