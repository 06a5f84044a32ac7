r"""Backend of trees of one or two levels whose nodes select few features.

The root's features are decided first, as its choices differ in value: they come in the order of their bounds, and most
never come. On few features many samples are one point, and hyperplanes realise few dichotomies of the points; those are
searched by the loop of :class:`~mipforest.searches.routing.plunge.SubproblemPlunge`. A node of the last level needs no
branching: bounds of all its choices of features are kept, handed down as samples are added, and its least one is raised
until it is the node's value for the samples at hand (:func:`raise_least`).

**Which few features are the best at a node.** In the dual of a support vector machine on features F,

.. math::

    \max_{0 \le a \le U}\; \sum_i r_i a_i - \tfrac12 \sum_{j \in F} u_j^2, \quad u_j = \sum_i a_i d_i x_{ij},
    \quad \text{subject to} \quad \sum_i d_i a_i = 0,

only the second sum knows F. **So each dual point, found for some features, bounds the node's value with any others,**
for a subtraction each, and most choices of features are never solved. With a cost of :math:`\alpha` per feature, those
that a choice may have or not count :math:`\max(0, \tfrac12 u_j^2 - \alpha)`. The least bound of all choices bounds the
node, and is its value once it is that of one choice which is solved. More samples never lower the value of a choice, so
its bound holds for all that extends an open node.

The loop is in Python, as these operations are sums over arrays of choices that grow; each takes some milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.routing.dichotomies import (
    Points,
    Samples,
    dichotomies_left,
    samples_of,
    solve_plain,
    solve_split,
)
from mipforest.searches.routing.interior_point import (
    AT,
    CAPACITY,
    REWARD,
    SUM,
    A,
    InteriorWorkspace,
    workspace_for,
)
from mipforest.searches.routing.plunge import (
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

#: Levels of branch nodes, and choices of features of a node without a price, from which on this backend does not pay.
MAX_LEVELS, MAX_CHOICES = 2, 50_000

#: Rows by which choices may grow while sides are open; of so many plunges of a root's features, one begins with the
#: tree of its hyperplane.
_GROWTH, _TREES = 64, 8

#: A flag that never ends anything.
_NEVER = np.zeros(1, np.int64)

#: Share of the loss of a sample by a node's hyperplane that charging it there is expected to raise the value by.
_EXPECTED = 0.5


# ---------------------------------------------------------------------- choices of features


class FeatureWorkspace(NamedTuple):
    """Per-thread workspace of the nodes of the last level.

    Attributes
    ----------
    interior
        Workspace of the interior point.
    point, points
        (G,) samples that are equal in the features at hand, and (G, 3) weights of these by class, and one of them.
    charge
        (p,) half the square of u.
    """

    interior: InteriorWorkspace
    point: IntArray
    points: FloatArray
    charge: FloatArray


def feature_workspace_for(samples: Samples, q: int) -> FeatureWorkspace:
    """Return a workspace for nodes with at most q features."""
    G, p = samples.X.shape
    interior = workspace_for((2 * len(samples.kinks) + 1) * G, q)
    return FeatureWorkspace(interior, np.zeros(G, np.int64), np.zeros((G, 3)), np.zeros(p))


@kernel
def _write_margins(
    samples: Samples, work: FeatureWorkspace, weight: FloatArray, C: float, features: IntArray
) -> tuple[int, int]:
    """Write the margins of samples on some features, equal ones as one; return how many, and the number of features."""
    X, Z, v, kinks = samples.X, work.interior.Z, work.interior.v, samples.kinks
    point, points = work.point, work.points
    G, different, m = len(X), 1, 0
    for feature in features:
        if different <= G:
            different *= samples.sizes[feature]
    q = len(features)
    if 2 * different > G:
        different = G
    for c in range(different):
        points[c, 0], points[c, 1] = 0.0, 0.0
    for g in range(G):
        code = g
        if different < G:
            code = 0
            for j in range(q):
                code = code * samples.sizes[features[j]] + samples.codes[features[j], g]
        point[g] = code
        points[code, 0] += weight[g, 0]
        points[code, 1] += weight[g, 1]
        points[code, 2] = g
    for c in range(different):
        for side in range(2):
            if points[c, side] > 0.0:
                g, d = int(points[c, 2]), 2.0 * side - 1.0
                for k in range(len(kinks)):
                    for j in range(q):
                        Z[j, m] = d * X[g, features[j]]
                    Z[q, m] = d
                    v[REWARD, m], v[CAPACITY, m] = kinks[k, 0], C * points[c, side] * kinks[k, 1]
                    m += 1
    return m, q


@kernel
def _charge_features(samples: Samples, work: FeatureWorkspace, weight: FloatArray, m: int, q: int) -> float:
    """Write half the squares of u of all features for the point in row :data:`A`; return its rewards."""
    X, v, points, charge, K = samples.X, work.interior.v, work.points, work.charge, len(samples.kinks)
    rewards, at = -work.interior.f[SUM, q], 0
    for i in range(m):
        rewards += v[A, i] * v[REWARD, i]
    for j in range(len(charge)):
        charge[j] = 0.0
    c = 0
    while at < m:
        for side in range(2):
            if points[c, side] > 0.0:
                total = 0.0
                for _ in range(K):
                    total += v[A, at]
                    at += 1
                points[c, side] = total / points[c, side]
        c += 1
    for g in range(len(X)):
        c = work.point[g]
        share = weight[g, 1] * points[c, 1] - weight[g, 0] * points[c, 0]
        if share != 0.0:
            for j in range(len(charge)):
                charge[j] += share * X[g, j]
    for j in range(len(charge)):
        charge[j] *= 0.5 * charge[j]
    return float(rewards)


class Choices(NamedTuple):
    """Sets of choices of features that cover all, each with a lower bound of a node's value; ``size[0]`` of N rows.

    A row stands for the choices of its first ``given`` features with any of those that follow.

    Attributes
    ----------
    features
        (N, q) features.
    given, listed
        (N,) how many features a choice has for certain, and how many it may have.
    bound, solved
        (N,) lower bounds, and whether no solution of the row itself raises them any more.
    next
        (N,) which of the features that it may have is given to one half of a row when it is split.
    size
        (1,) number of rows.
    """

    features: IntArray
    given: IntArray
    listed: IntArray
    bound: FloatArray
    solved: BoolArray
    next: IntArray
    size: IntArray

    @property
    def least(self) -> int:
        """The row of the least bound."""
        return int(self.bound[: self.size[0]].argmin())

    @property
    def least_bound(self) -> float:
        """The least bound."""
        return float(self.bound[: self.size[0]].min())

    @property
    def is_decided(self) -> bool:
        """Whether the least bound is the value of one choice of features."""
        k = self.least
        return bool(self.solved[k] and self.given[k] == self.listed[k])


def all_choices(p: int, budget: int, *, soft: bool) -> Choices:
    """Return all choices among p features: of ``budget`` of them, or of any number if the budget is soft."""
    if soft:  # those whose first feature is j, for all j
        rows = [[*range(j, p), *[0] * j] for j in range(p)]
        given, listed = np.ones(p, np.int64), np.arange(p, 0, -1)
    else:
        rows = [list(features) for features in combinations(range(p), budget)]
        given = listed = np.full(len(rows), budget)
    N = len(rows)
    return Choices(
        np.array(rows, np.int64), given, listed, np.zeros(N), np.zeros(N, np.bool_), np.zeros(N, np.int64),
        np.array([N]),
    )  # fmt: skip


@entry
def raise_least(
    samples: Samples, work: FeatureWorkspace, weight: FloatArray, C: float, bias_limit: float, choices: Choices,
    free: float, alpha: float, stop: float, halt: IntArray,
) -> int:  # fmt: skip
    """Raise the least bounds of choices of features until the least is that of one choice, or up to a value.

    Parameters
    ----------
    samples, work
        The samples, and work.
    weight
        (G, 2) weights of the samples that are charged, by class.
    C, bias_limit
        Penalty of the node, and bound on its bias.
    choices
        The choices, changed: rows are solved, and split while there are rows for more.
    free, alpha
        How many features are free of cost, and the cost of every further one; 0 where no choice has further ones.
    stop
        Bounds from there on are not raised.
    halt
        (1,) ends it early once it is not 0.

    Returns
    -------
    The row of the least bound.
    """
    given, listed, bound, solved = choices.given, choices.listed, choices.bound, choices.solved
    while True:
        least = 0
        for k in range(1, choices.size[0]):
            if bound[k] < bound[least]:
                least = k
        if bound[least] >= stop or halt[0] != 0:
            return least
        if not solved[least]:
            # Once with all features that there may be, then with those that are worth their cost at that point.
            used = listed[least]
            for _ in range(2):
                m, q = _write_margins(samples, work, weight, C, choices.features[least, :used])
                price = _price(choices, least, free, alpha)
                value = solve_plain(work.interior, m, q, bias_limit, stop - price)
                _raise_all(choices, work, _charge_features(samples, work, weight, m, q), free, alpha)
                if given[least] == listed[least]:
                    bound[least] = max(bound[least], value + price)
                before, used = used, _select_features(choices, least, work.charge, alpha)
                if used == before or bound[least] >= stop:
                    break
            solved[least] = True  # also where the bound is NaN: it is not solved again
            if bound[least] >= stop:
                solved[least] = False
        elif given[least] < listed[least] and choices.size[0] < len(bound):
            _split(choices, least)
        else:
            return least


@kernel
def _raise_all(choices: Choices, work: FeatureWorkspace, rewards: float, free: float, alpha: float) -> None:
    """Raise the bounds of all rows by a dual point, for which features count that may be there and are worth it."""
    for k in range(choices.size[0]):
        value = rewards + _price(choices, k, free, alpha)
        for j in range(choices.listed[k]):
            worth = work.charge[choices.features[k, j]]
            value -= worth if j < choices.given[k] else max(0.0, worth - alpha)
        if value > choices.bound[k]:
            choices.bound[k] = value


@kernel
def _select_features(choices: Choices, k: int, charge: FloatArray, alpha: float) -> int:
    """Put features of a row that are worth their cost first; return how many are used then."""
    features, used, largest = choices.features[k], int(choices.given[k]), -1.0
    choices.next[k] = used
    for j in range(choices.given[k], choices.listed[k]):
        feature = features[j]
        if charge[feature] > alpha:
            features[j] = features[used]
            features[used] = feature
            if charge[feature] > largest:
                largest = charge[feature]
                choices.next[k] = used
            used += 1
    return used


@kernel
def _price(choices: Choices, k: int, free: float, alpha: float) -> float:
    """Return what a row's given features cost at least; below 0 where more may come that are free."""
    further = choices.given[k] - free
    price: float = alpha * (max(0.0, further) if choices.given[k] == choices.listed[k] else further)
    return price


@kernel
def _split(choices: Choices, k: int) -> None:
    """Split a row into the choices with and without its next feature."""
    new, given, listed = choices.size[0], choices.given[k], choices.listed[k]
    feature = choices.features[k, choices.next[k]]
    choices.features[k, choices.next[k]] = choices.features[k, given]
    choices.features[k, given] = feature
    for j in range(listed):
        choices.features[new, j] = choices.features[k, j]
    choices.features[new, given] = choices.features[k, listed - 1]
    choices.given[new], choices.listed[new] = given, listed - 1
    choices.given[k] = given + 1
    choices.bound[new] = choices.bound[k]
    choices.solved[k], choices.solved[new] = False, False
    choices.size[0] = new + 1


@entry
def solve_choice(
    samples: Samples,
    work: FeatureWorkspace,
    weight: FloatArray,
    C: float,
    bias_limit: float,
    features: IntArray,
) -> float:
    """Return the value of the node of some samples on features (q,); weights and bias are in the workspace."""
    m, q = _write_margins(samples, work, weight, C, features)
    value: float = solve_plain(work.interior, m, q, bias_limit, np.inf)
    return value


# ---------------------------------------------------------------------- open nodes and the loop


@dataclass(eq=False)
class FeatureNode:
    """Open node: partial assignment, with what is known of its branch nodes.

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

    def copy(self) -> FeatureNode:
        """Return a node that may be changed; choices are replaced, not changed."""
        return replace(self, side=self.side.copy(), below=list(self.below))

    @property
    def bytes(self) -> int:
        """Memory of sides and bounds."""
        return self.side.nbytes + sum(3 * choices.bound.nbytes for choices in self.below)

    def lighter(self) -> FeatureNode:
        """Return the same: nothing of it is found again at little cost."""
        return self

    @property
    def bound(self) -> float:
        """Lower bound on every tree that extends it."""
        return self.root_bound + sum(choices.least_bound for choices in self.below)


class _Nodes:
    """The nodes of one problem, samples around their mean, and the nodes of the last level.

    ``budget`` (|B|,) of features is free of cost at a node; every further one costs ``alpha``, 0 where it is forbidden.
    ``highest_cutoff`` is that of all plunges so far: the first, as later ones look below the best tree, or below less.
    """

    def __init__(self, nodes: ConvexNodes) -> None:
        assert nodes.budget is not None
        self.nodes, self.centre = nodes, nodes.X.mean(axis=0)
        self.samples = samples_of(nodes.X - self.centre, nodes.kinks)
        self.budget = np.minimum(nodes.budget, nodes.X.shape[1])
        self.alpha = float(nodes.alpha) if np.isfinite(nodes.alpha) else 0.0
        self.last = range(len(self.budget) // 2, len(self.budget))
        self.highest_cutoff = 0.0

    def choices(self, t: int) -> Choices:
        """Return all choices of features of node t."""
        return all_choices(self.samples.X.shape[1], int(self.budget[t]), soft=self.alpha > 0.0)

    def raised(
        self, work: FeatureWorkspace, t: int, weight: FloatArray, choices: Choices, stop: float, *, other_samples: bool,
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
            self.samples, work, weight, self.nodes.C[t], self.nodes.bias_limit[t], choices, float(self.budget[t]),
            self.alpha, stop, halt,
        )  # fmt: skip
        return choices

    def decided(
        self,
        work: FeatureWorkspace,
        t: int,
        weight: FloatArray,
        choices: Choices,
        stop: float,
        halt: IntArray = _NEVER,
    ) -> Choices:
        """Return choices of node t raised until the least is decided (:attr:`~Choices.is_decided`), or up to a value.

        Where ``halt`` ended it before, the bounds are proven all the same.
        """
        while True:
            n = max(_GROWTH, int(choices.size[0]))
            choices = self.raised(work, t, weight, choices, stop, other_samples=False, growth=n, halt=halt)
            if choices.least_bound >= stop or choices.is_decided or halt[0]:
                return choices


class FeatureBackend(Backend):
    """Plunges of nodes that select few features; parameters as for the base class."""

    needs_trees = False

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        super().__init__(nodes, logs=logs)
        self._of = _Nodes(nodes)
        self._idle: list[FeatureWorkspace] = []
        self._points: dict[bytes, Points] = {}

    @classmethod
    def takes(cls, nodes: ConvexNodes, *, certified: bool) -> bool:
        """Return whether nodes select features of few levels, and no certificate is asked for.

        Its bounds rest on more than one dual point, of which no account is kept.
        """
        if certified or nodes.budget is None or nodes.l1 or nodes.depth > MAX_LEVELS:
            return False
        if nodes.allowed is not None or nodes.limits is not None:
            return False
        p = nodes.X.shape[1]
        return bool(np.isfinite(nodes.alpha)) or all(comb(p, int(b)) <= MAX_CHOICES for b in nodes.budget)

    @classmethod
    def _run_tiny(cls) -> None:
        X, three = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.ones(3)
        budget = np.array([2, 1, 1])
        nodes = ConvexNodes(
            X, np.eye(2)[[0, 1, 0]], three, 10.0 * three, 2, 1e-3, np.ones((1, 2)), False, budget, np.inf
        )
        for cutoff in (np.inf, 100.0):  # without a list of dichotomies, and with one
            backend = cls(nodes)
            for _, node in backend.plunge(backend.first(), cutoff, 1, _NEVER).open:
                backend.plunge(node, cutoff, 1, _NEVER)

    def begin_slice(self, number: int, highest_cutoff: float) -> None:
        """Go on with open nodes of another process; see :class:`Backend`."""
        del number
        self._of.highest_cutoff = max(self._of.highest_cutoff, highest_cutoff)

    def first(self) -> FeatureNode:
        """Return the open node from which all trees can be reached."""
        of, (G, p) = self._of, self._of.samples.X.shape
        others = of.choices(0) if of.last[0] else None
        none, features = np.zeros(0, np.int64), np.ones((len(of.budget), p), np.bool_)
        below = [of.choices(t) for t in of.last]
        return FeatureNode(others, none, none, 0.0, below, np.zeros(G, np.int64), features)

    def at(self, reached: IntArray) -> FeatureNode:  # noqa: ARG002
        """Return the open node from which all trees can be reached: sides hold for some features of the root alone."""
        return self.first()

    def _at(self, chosen: IntArray) -> Points:
        """Return the root on some features."""
        key = chosen.tobytes()
        if key not in self._points:
            self._points[key] = Points(self._of.samples, self._of.nodes.weight, chosen)
        return self._points[key]

    def plunge(self, start: FeatureNode, cutoff: float, max_steps: int, stop: IntArray) -> PlungeResult:
        """Plunge from an open node; see :class:`Backend`."""
        try:  # another thread may take the last one at any time
            work = self._idle.pop()
        except IndexError:
            work = feature_workspace_for(self._of.samples, self._of.samples.X.shape[1])
        self._of.highest_cutoff = max(self._of.highest_cutoff, cutoff)
        run = _FeaturePlunge(self._of, work, start.copy(), cutoff, stop)
        if start.others is not None:
            end = run.choose_root()
        elif self._of.last[0]:
            end = run.decide_sides(self._at(start.chosen), max_steps)
        else:
            end = run.choose_below([self._of.nodes.weight])
        self._idle.append(work)
        return run.result(end)


class _FeaturePlunge(SubproblemPlunge):
    """One plunge from an open node, which it changes; sides are those of the root's points."""

    here: FeatureNode

    def __init__(
        self, of: _Nodes, work: FeatureWorkspace, here: FeatureNode, cutoff: float, stop: IntArray
    ) -> None:
        super().__init__(here, cutoff, stop)
        self._of, self._work = of, work
        self._w, self._b = np.zeros((len(of.budget), of.samples.X.shape[1])), np.ones(len(of.budget))
        self._points: Points
        self._gains, self._changed = np.zeros((2, 0)), [True] * 3
        self._weights: list[FloatArray] = []

    def result(self, end: int) -> PlungeResult:
        """Return what was found."""
        here = self.here
        if end == STOPPED and here.bound < np.inf:
            self.open.append((here.bound, here))
        if end == CUT_OFF:
            self.cut_bound = min(self.cut_bound, max(here.bound, self.cutoff))
        bias = self._b - self._w @ self._of.centre
        return PlungeResult(
            end, here, self.open, here.bound, self.cut_bound, self._w, bias, max(1, self.steps)
        )

    def choose_root(self) -> int:
        """Leave open the root's best choice of features, and the others."""
        here, of = self.here, self._of
        assert here.others is not None
        others = of.decided(self._work, 0, of.nodes.weight, here.others, self.cutoff, self.stop)
        k = others.least
        here.root_bound = float(others.bound[k])
        if here.root_bound >= self.cutoff:
            return CUT_OFF
        if not others.is_decided:
            here.others = others
            return STOPPED
        chosen = others.features[k, : others.given[k]].copy()
        features = here.features.copy()
        features[0] = np.isin(np.arange(features.shape[1]), chosen)
        others.bound[k] = np.inf
        none = np.zeros(len(np.unique(of.samples.X[:, chosen], axis=0)), np.int64)
        best = FeatureNode(None, chosen, none, here.root_bound, here.below, here.reached, features)
        self.open.append((here.root_bound, best))
        here.others, here.root_bound = others, others.least_bound
        return STOPPED

    def choose_below(self, weights: list[FloatArray]) -> int:
        """Find the best features of the nodes of the last level for the samples of a complete routing."""
        here, of = self.here, self._of
        for i, t in enumerate(of.last):
            enough = self.cutoff - here.bound + here.below[i].least_bound
            here.below[i] = of.decided(self._work, t, weights[i], here.below[i], enough, self.stop)
            if here.bound >= self.cutoff:
                return CUT_OFF
            if not here.below[i].is_decided:
                return STOPPED
            k = here.below[i].least
            here.features = here.features.copy()
            here.features[t] = False
            here.features[t, here.below[i].features[k, : here.below[i].given[k]]] = True
        return COMPLETE

    def decide_sides(self, points: Points, max_steps: int) -> int:
        """Decide sides of the root's points until all are, or nothing better is left."""
        self._points, self._gains = points, np.zeros((2, len(points.weight)))
        self._weights = self._weights_below(self.here.side)
        points.plunges += 1
        if not self.here.side.any() and self._list_dichotomies():
            return STOPPED
        return self.run(max_steps)

    @property
    def is_decided(self) -> bool:
        """Whether all points of the root have a side."""
        return bool(self.here.side.all())

    def complete(self) -> int:
        """Find the best features of the nodes below."""
        self.here.reached = np.where(self.here.side[self._points.at] < 0, 1, 2)
        return self.choose_below(self._weights)

    def branch(self) -> tuple[float, FeatureNode]:
        """Send a point to the cheaper side; return the node with the other side."""
        g, side = self._candidate()
        here, other = self.here, self.here.copy()
        for node, to in ((here, side), (other, -side)):
            node.side[g] = to
            if len(here.chosen) == 1:
                left, right = enclosed(self._points.samples.X[:, 0], node.side)
                undecided = node.side == 0
                node.side[undecided & right], node.side[undecided & left] = 1, -1
        self._changed[:] = [True] * 3
        return here.bound, other

    def _list_dichotomies(self) -> bool:
        """Leave open the linear dichotomies that may lead to a better tree, if there is a list of all."""
        here, of = self.here, self._of
        listed = dichotomies_left(
            self._points, here.chosen, of.samples, of.nodes, of.budget, here.root_bound, of.highest_cutoff
        )
        better = [(bound, side.copy()) for bound, side in listed or [] if bound < self.cutoff]
        self.open += [(bound, replace(here, side=side)) for bound, side in better]
        if listed is not None:  # nothing of the node itself is left
            self.cut_bound, here.root_bound = self.cutoff, np.inf
        return listed is not None

    def _weights_below(self, side: IntArray) -> list[FloatArray]:
        """Return the weights (G, 2) of the samples that are sent to either node below."""
        weight = self._of.nodes.weight
        return [np.where((side[self._points.at] == to)[:, None], weight, 0.0) for to in (-1, 1)]

    def _solve_root(self, side: IntArray, gains: FloatArray, enough: float) -> float:
        """Return the value of the root with these sides, up to a value, and write its hyperplane."""
        nodes, chosen, points = self._of.nodes, self.here.chosen, self._points
        price = self._of.alpha * max(0, len(chosen) - int(self._of.budget[0]))
        value = solve_split(
            points.samples, self._work.interior, points.weight, nodes.C[0], nodes.bias_limit[0], nodes.epsilon, side,
            gains, enough - price,
        )  # fmt: skip
        *w, self._b[0] = self._work.interior.f[AT, : len(chosen) + 1]
        self._w[0, chosen] = w
        return value + price

    def close_sides(self) -> bool:
        """Solve the nodes that changed and close sides that lead to no better tree; return whether none is left."""
        here, of, changed, gains = self.here, self._of, self._changed, self._gains
        while True:
            if changed[0]:
                enough = self.cutoff - here.bound + here.root_bound
                here.root_bound = max(here.root_bound, self._solve_root(here.side, gains, enough))
                changed[0] = False
                self._weights = self._weights_below(here.side)
            for i, t in enumerate(of.last):
                if changed[t] and here.bound < self.cutoff:
                    enough = self.cutoff - here.bound + here.below[i].least_bound
                    here.below[i] = of.raised(
                        self._work, t, self._weights[i], here.below[i], enough, other_samples=True
                    )
                    changed[t] = False
            slack = self.cutoff - here.bound
            if slack <= 0.0:
                return True
            no_left, no_right = (here.side == 0) & (gains >= slack)
            if (no_left & no_right).any():
                return True
            if not (no_left | no_right).any():
                return False
            self.cut_bound = min(self.cut_bound, self.cutoff)
            here.side[no_left], here.side[no_right] = 1, -1
            changed[:] = [True, bool(no_right.any()), bool(no_left.any())]

    def finds_tree(self) -> bool:
        """Take the routing of the root's hyperplane, now and then, if it leads to a better tree.

        What was left here stays open.
        """
        here, points = self.here, self._points
        if self.steps > 1 or points.plunges % _TREES != 1:
            return False
        scores = points.samples.X @ self._w[0, here.chosen] + self._b[0]
        tree = here.copy()
        tree.side = np.where(here.side == 0, np.where(scores >= 0, 1, -1), here.side)
        tree.root_bound = self._solve_root(tree.side, np.zeros((2, len(scores))), self.cutoff)
        self.here = tree
        tree.below = [choices._replace(solved=np.zeros_like(choices.solved)) for choices in here.below]
        tree.reached = np.where(tree.side[points.at] < 0, 1, 2)
        if tree.bound < self.cutoff and self.choose_below(self._weights_below(tree.side)) == COMPLETE:
            self.open.append((here.bound, here))
            return True
        self.here = here
        return False

    def _candidate(self) -> tuple[int, int]:
        """Return the point to decide next, and the cheaper side."""
        here, of, points = self.here, self._of, self._points
        waiting = np.flatnonzero(here.side == 0)
        slack, expected = self.cutoff - here.bound, self._gains.copy()
        for i, t in enumerate(of.last):
            k = here.below[i].least
            chosen = here.below[i].features[k, : here.below[i].given[k]]
            C, limit, weight = of.nodes.C[t], of.nodes.bias_limit[t], of.nodes.weight
            solve_choice(of.samples, self._work, self._weights[i], C, limit, chosen)
            *w, b = self._work.interior.f[AT, : len(chosen) + 1]
            scores = of.samples.X[:, chosen] @ w + b
            loss = sum(
                change * (weight[:, c] * np.maximum(0.0, kink - (2 * c - 1) * scores))
                for kink, change in of.nodes.kinks
                for c in range(2)
            )
            expected[i] += _EXPECTED * C * np.bincount(points.at, loss, len(here.side))
        left, right = np.minimum(expected, slack)
        if len(here.chosen) == 1:
            g = bisecting(waiting, points.samples.X[:, 0], here.side)
        else:
            low, high = np.minimum(left, right), np.maximum(left, right)
            score = (low + LEAST_GAIN * slack) * (high + LEAST_GAIN * slack) ** LARGER
            g = int(waiting[score[waiting].argmax()])
        return g, -1 if left[g] <= right[g] else 1
