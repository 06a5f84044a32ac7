r"""Dives of the routing search for trees of one or two levels whose nodes select few features.

The root's features are decided first, as its choices differ in value: they come in the order of their bounds, and most
never come. On few features many samples are one point, and hyperplanes realise few of the ways to send points to sides;
those are searched as in :mod:`mipforest.searches.routing.dive`. A node of the last level needs no branching: bounds of
all its choices of features are kept (:func:`~mipforest.searches.routing.feature_choices.raise_least`), handed down as
samples are added, and its least one is raised until it is the node's value for the samples at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compile_by
from mipforest.searches.routing.cells import ConvexNodes
from mipforest.searches.routing.dive import COMPLETE, CUT_OFF, STOPPED
from mipforest.searches.routing.feature_choices import Choices, all_choices, raise_least, solve_choice
from mipforest.searches.routing.few_features import AT, Points, Room, room_for, samples_of
from mipforest.searches.routing.search import Dived
from mipforest.searches.routing.separable_sides import between, solve_split, ways_left
from mipforest.time_budget import TimeBudget

#: Levels of branch nodes, and choices of features of a node without a price, from which on these dives do not pay.
MOST_LEVELS, MOST_CHOICES = 2, 50_000

#: Rows by which choices may grow while sides are open; of so many dives of a root's features, one begins with the tree
#: of its hyperplane.
_GROWTH, _TREES = 64, 8

#: A flag that never ends anything.
_NEVER = np.zeros(1, np.int64)

#: Share of the loss of a sample by a node's hyperplane that charging it there is expected to raise the value by; least
#: rise, relative to what is left, and weight of the larger of two rises.
_EXPECTED, _LEAST, _LARGER = 0.5, 1e-9, 0.3


def compile_features(budget: TimeBudget) -> float:
    """Load what the dives run, or compile it; see :func:`~mipforest.searches.compile_by`."""
    nodes = ConvexNodes(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.eye(2)[[0, 1, 0]], np.ones(3), np.full(3, 10.0), 2, 1e-3,
        np.ones((1, 2)), False, np.array([2, 1, 1]), np.inf,
    )  # fmt: skip

    def run() -> None:
        for target in (np.inf, 100.0):  # without a list of the ways to send points to sides, and with one
            dives = FeatureDives(nodes)
            for _, position in dives.dive(dives.first(), target, 1, _NEVER).open:
                dives.dive(position, target, 1, _NEVER)

    return compile_by(run, budget)


@dataclass(eq=False)
class FeaturePosition:
    """A partial routing, with what is known of its nodes.

    Attributes
    ----------
    others
        Choices of the root's features that are still to come; ``None`` where it is made.
    chosen
        Features of the root.
    side
        (K,) -1, 1, or 0 where it is open: sides of the root's points.
    root_bound
        Lower bound on the root's value.
    below
        Choices of the nodes of the last level.
    reached, features
        (G,) nodes that groups have reached, and (|B|, p) features, of a complete routing.
    """

    others: Choices | None
    chosen: IntArray
    side: IntArray
    root_bound: float
    below: list[Choices]
    reached: IntArray
    features: BoolArray

    def copy(self) -> FeaturePosition:
        """Return a position that may be changed; choices are replaced, not changed."""
        return replace(self, side=self.side.copy(), below=list(self.below))

    @property
    def bytes(self) -> int:
        """Memory of sides and bounds."""
        return self.side.nbytes + sum(3 * choices.bound.nbytes for choices in self.below)

    def lighter(self) -> FeaturePosition:
        """Return the same: nothing of it is found again at little cost."""
        return self

    @property
    def bound(self) -> float:
        """Lower bound on every tree that extends it."""
        return self.root_bound + sum(choices.least_bound for choices in self.below)


class _Nodes:
    """The nodes of one problem, samples around their mean, and the nodes of the last level.

    ``budget`` (|B|,) of features is free of cost at a node; every further one costs ``alpha``, 0 where it is forbidden.
    ``highest_target`` is that of all dives so far: the first, as later ones look below the best tree, or below less.
    """

    def __init__(self, nodes: ConvexNodes) -> None:
        assert nodes.budget is not None
        self.nodes, self.centre = nodes, nodes.X.mean(axis=0)
        self.samples = samples_of(nodes.X - self.centre, nodes.kinks)
        self.budget = np.minimum(nodes.budget, nodes.X.shape[1])
        self.alpha = float(nodes.alpha) if np.isfinite(nodes.alpha) else 0.0
        self.last = range(len(self.budget) // 2, len(self.budget))
        self.highest_target = 0.0

    def choices(self, t: int) -> Choices:
        """Return all choices of features of node t."""
        return all_choices(self.samples.X.shape[1], int(self.budget[t]), soft=self.alpha > 0.0)

    def raised(
        self, room: Room, t: int, weight: FloatArray, choices: Choices, stop: float, *, other_samples: bool,
        growth: int = _GROWTH, halt: IntArray = _NEVER,
    ) -> Choices:  # fmt: skip
        """Return choices of node t with the least bound raised; what was solved for other samples no longer is."""
        n = int(choices.size[0])
        solved = np.zeros(n, np.bool_) if other_samples else choices.solved[:n]
        if self.alpha:
            grown = [
                np.concatenate([rows[:n], np.zeros((growth, *rows.shape[1:]), rows.dtype)])
                for rows in choices._replace(solved=solved)[:6]
            ]
            features, given, listed, bound, solved, following = grown
            choices = Choices(features, given, listed, bound, solved, following, choices.size.copy())
        else:  # rows are not split
            choices = choices._replace(bound=choices.bound.copy(), solved=solved.copy())
        raise_least(
            self.samples, room, weight, self.nodes.C[t], self.nodes.bias_limit[t], choices, float(self.budget[t]),
            self.alpha, stop, halt,
        )  # fmt: skip
        return choices

    def decided(
        self, room: Room, t: int, weight: FloatArray, choices: Choices, stop: float, halt: IntArray = _NEVER
    ) -> Choices:
        """Return choices of node t raised until the least is decided (:attr:`~Choices.is_decided`), or up to a value.

        Where ``halt`` ended it before, the bounds are proven all the same.
        """
        while True:
            n = max(_GROWTH, int(choices.size[0]))
            choices = self.raised(room, t, weight, choices, stop, other_samples=False, growth=n, halt=halt)
            if choices.least_bound >= stop or choices.is_decided or halt[0]:
                return choices


class FeatureDives:
    """Dives of one problem that they take (:meth:`takes`)."""

    needs_trees = False

    def __init__(self, nodes: ConvexNodes) -> None:
        self._of = _Nodes(nodes)
        self._rooms: list[Room] = []
        self._points: dict[bytes, Points] = {}

    @staticmethod
    def takes(nodes: ConvexNodes) -> bool:
        """Return whether the dives are made for a problem."""
        if nodes.budget is None or nodes.l1 or nodes.depth > MOST_LEVELS:
            return False
        p = nodes.X.shape[1]
        return bool(np.isfinite(nodes.alpha)) or all(comb(p, int(b)) <= MOST_CHOICES for b in nodes.budget)

    def first(self) -> FeaturePosition:
        """Return the position from which all trees can be reached."""
        of, (G, p) = self._of, self._of.samples.X.shape
        others = of.choices(0) if of.last[0] else None
        none, features = np.zeros(0, np.int64), np.ones((len(of.budget), p), np.bool_)
        below = [of.choices(t) for t in of.last]
        return FeaturePosition(others, none, none, 0.0, below, np.zeros(G, np.int64), features)

    def at(self, reached: IntArray) -> FeaturePosition:  # noqa: ARG002
        """Return the position from which all trees can be reached: sides hold for some features of the root alone."""
        return self.first()

    def _at(self, chosen: IntArray) -> Points:
        """Return the root on some features."""
        key = chosen.tobytes()
        if key not in self._points:
            self._points[key] = Points(self._of.samples, self._of.nodes.weight, chosen)
        return self._points[key]

    def dive(self, start: FeaturePosition, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position; see :class:`~mipforest.searches.routing.search.Dives`."""
        try:  # another thread may take the last one at any time
            room = self._rooms.pop()
        except IndexError:
            room = room_for(self._of.samples, self._of.samples.X.shape[1])
        self._of.highest_target = max(self._of.highest_target, target)
        descent = _Descent(self._of, room, start.copy(), target, stop)
        if start.others is not None:
            end = descent.choose_root()
        elif self._of.last[0]:
            end = descent.decide_sides(self._at(start.chosen), most)
        else:
            end = descent.choose_below([self._of.nodes.weight])
        self._rooms.append(room)
        return descent.dived(end)


class _Descent:
    """One dive from a position, which it changes."""

    def __init__(self, of: _Nodes, room: Room, here: FeaturePosition, target: float, halt: IntArray) -> None:
        self._of, self._room, self._target, self._here, self._halt = of, room, target, here, halt
        self._open: list[tuple[float, FeaturePosition]] = []
        self._cut_bound, self._steps = np.inf, 0
        self._w, self._b = np.zeros((len(of.budget), of.samples.X.shape[1])), np.ones(len(of.budget))

    def dived(self, end: int) -> Dived:
        """Return what was found."""
        here = self._here
        if end == STOPPED and here.bound < np.inf:
            self._open.append((here.bound, here))
        if end == CUT_OFF:
            self._cut_bound = min(self._cut_bound, max(here.bound, self._target))
        bias = self._b - self._w @ self._of.centre
        return Dived(end, here, self._open, here.bound, self._cut_bound, self._w, bias, max(1, self._steps))

    def choose_root(self) -> int:
        """Leave open the root's best choice of features, and the others."""
        here, of = self._here, self._of
        assert here.others is not None
        others = of.decided(self._room, 0, of.nodes.weight, here.others, self._target, self._halt)
        k = others.least
        here.root_bound = float(others.bound[k])
        if here.root_bound >= self._target:
            return CUT_OFF
        if not others.is_decided:
            here.others = others
            return STOPPED
        chosen = others.features[k, : others.given[k]].copy()
        features = here.features.copy()
        features[0] = np.isin(np.arange(features.shape[1]), chosen)
        others.bound[k] = np.inf
        none = np.zeros(len(np.unique(of.samples.X[:, chosen], axis=0)), np.int64)
        best = FeaturePosition(None, chosen, none, here.root_bound, here.below, here.reached, features)
        self._open.append((here.root_bound, best))
        here.others, here.root_bound = others, others.least_bound
        return STOPPED

    def choose_below(self, weights: list[FloatArray]) -> int:
        """Find the best features of the nodes of the last level for the samples of a complete routing."""
        here, of = self._here, self._of
        for i, t in enumerate(of.last):
            stop = self._target - here.bound + here.below[i].least_bound
            here.below[i] = of.decided(self._room, t, weights[i], here.below[i], stop, self._halt)
            if here.bound >= self._target:
                return CUT_OFF
            if not here.below[i].is_decided:
                return STOPPED
            k = here.below[i].least
            here.features = here.features.copy()
            here.features[t] = False
            here.features[t, here.below[i].features[k, : here.below[i].given[k]]] = True
        return COMPLETE

    def decide_sides(self, points: Points, most: int) -> int:
        """Decide sides of the root's points until all are, or nothing better is left."""
        here = self._here
        rises = np.zeros((2, len(points.weight)))
        changed, weights = [True] * 3, self._weights(points, here.side)
        points.dives += 1
        if not here.side.any() and self._list_ways(points):
            return STOPPED
        for self._steps in range(1, most + 1):
            if self._close_sides(points, rises, changed, weights):
                return CUT_OFF
            if here.side.all():
                here.reached = np.where(here.side[points.at] < 0, 1, 2)
                return self.choose_below(weights)
            if self._halt[0]:
                return STOPPED
            if self._steps == 1 and points.dives % _TREES == 1 and self._follow_plane(points):
                return COMPLETE
            g, side = self._candidate(points, rises, weights)
            other = here.copy()
            for position, to in ((here, side), (other, -side)):
                position.side[g] = to
                if len(here.chosen) == 1:
                    between(points.samples.X[:, 0], position.side)
            self._open.append((here.bound, other))
            changed[:] = [True] * 3
        return STOPPED

    def _list_ways(self, points: Points) -> bool:
        """Leave open the ways of sending points to sides that may lead to a better tree, if there is a list of all."""
        here, of = self._here, self._of
        root, known = here.root_bound, of.highest_target
        ways = ways_left(points, here.chosen, of.samples, of.nodes, of.budget, root, known)
        better = [(bound, side.copy()) for bound, side in ways or [] if bound < self._target]
        self._open += [(bound, replace(here, side=side)) for bound, side in better]
        if ways is not None:  # nothing of the position itself is left
            self._cut_bound, here.root_bound = self._target, np.inf
        return ways is not None

    def _weights(self, points: Points, side: IntArray) -> list[FloatArray]:
        """Return the weights (G, 2) of the samples that are sent to either node below."""
        weight = self._of.nodes.weight
        return [np.where((side[points.at] == to)[:, None], weight, 0.0) for to in (-1, 1)]

    def _solve_root(self, points: Points, side: IntArray, rises: FloatArray, stop: float) -> float:
        """Return the value of the root with these sides, up to a value, and write its hyperplane."""
        nodes, chosen = self._of.nodes, self._here.chosen
        price = self._of.alpha * max(0, len(chosen) - int(self._of.budget[0]))
        value = solve_split(
            points.samples, self._room, points.weight, nodes.C[0], nodes.bias_limit[0], nodes.epsilon, side, rises,
            stop - price,
        )  # fmt: skip
        self._w[0, chosen], self._b[0] = self._room.f[AT, : len(chosen)], self._room.f[AT, len(chosen)]
        return value + price

    def _close_sides(
        self, points: Points, rises: FloatArray, changed: list[bool], weights: list[FloatArray]
    ) -> bool:
        """Solve the nodes that changed and close sides that lead to no better tree; return whether none is left."""
        here, of = self._here, self._of
        while True:
            if changed[0]:
                stop = self._target - here.bound + here.root_bound
                here.root_bound = max(here.root_bound, self._solve_root(points, here.side, rises, stop))
                changed[0] = False
                weights[:] = self._weights(points, here.side)
            for i, t in enumerate(of.last):
                if changed[t] and here.bound < self._target:
                    stop = self._target - here.bound + here.below[i].least_bound
                    here.below[i] = of.raised(
                        self._room, t, weights[i], here.below[i], stop, other_samples=True
                    )
                    changed[t] = False
            slack = self._target - here.bound
            if slack <= 0.0:
                return True
            no_left, no_right = (here.side == 0) & (rises >= slack)
            if (no_left & no_right).any():
                return True
            if not (no_left | no_right).any():
                return False
            self._cut_bound = min(self._cut_bound, self._target)
            here.side[no_left], here.side[no_right] = 1, -1
            changed[:] = [True, bool(no_right.any()), bool(no_left.any())]

    def _follow_plane(self, points: Points) -> bool:
        """Take the routing of the root's hyperplane, if it leads to a better tree; what was left here stays open."""
        here = self._here
        scores = points.samples.X @ self._w[0, here.chosen] + self._b[0]
        tree = here.copy()
        tree.side = np.where(here.side == 0, np.where(scores >= 0, 1, -1), here.side)
        tree.root_bound = self._solve_root(points, tree.side, np.zeros((2, len(scores))), self._target)
        self._here = tree
        tree.below = [choices._replace(solved=np.zeros_like(choices.solved)) for choices in here.below]
        tree.reached = np.where(tree.side[points.at] < 0, 1, 2)
        if tree.bound < self._target and self.choose_below(self._weights(points, tree.side)) == COMPLETE:
            self._open.append((here.bound, here))
            return True
        self._here = here
        return False

    def _candidate(self, points: Points, rises: FloatArray, weights: list[FloatArray]) -> tuple[int, int]:
        """Return the point to decide next, and the cheaper side."""
        here, of, waiting = self._here, self._of, np.flatnonzero(self._here.side == 0)
        slack, expected = self._target - here.bound, rises.copy()
        for i, t in enumerate(of.last):
            k = here.below[i].least
            chosen = here.below[i].features[k, : here.below[i].given[k]]
            C, limit, weight = of.nodes.C[t], of.nodes.bias_limit[t], of.nodes.weight
            solve_choice(of.samples, self._room, weights[i], C, limit, chosen)
            scores = of.samples.X[:, chosen] @ self._room.f[AT, : len(chosen)] + self._room.f[AT, len(chosen)]
            loss = sum(
                change * (weight[:, c] * np.maximum(0.0, kink - (2 * c - 1) * scores))
                for kink, change in of.nodes.kinks
                for c in range(2)
            )
            expected[i] += _EXPECTED * C * np.bincount(points.at, loss, len(here.side))
        left, right = np.minimum(expected, slack)
        if len(here.chosen) == 1:
            # The ends of the line tell which way it runs; then the middle halves what is left.
            in_order = waiting[np.argsort(points.samples.X[waiting, 0], kind="stable")]
            ends = int((here.side < 0).any()) + int((here.side > 0).any())
            g = in_order[(0, -1, len(in_order) // 2)[ends]]
        else:
            low, high = np.minimum(left, right), np.maximum(left, right)
            rank = (low + _LEAST * slack) * (high + _LEAST * slack) ** _LARGER
            g = waiting[rank[waiting].argmax()]
        return int(g), -1 if left[g] <= right[g] else 1
