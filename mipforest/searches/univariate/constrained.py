r"""The best univariate tree that satisfies constraints: branch and bound over sets of features.

**Boxes.** All bounds of the exact search hold for any set of trees that is chosen without looking at the samples, such
as that of the trees whose nodes split on some features alone (a *box*). The exact search finds the best tree of a box,
also of one that differs from node to node (:mod:`mipforest.searches.exact.boxes`), and
:mod:`mipforest.searches.lagrangian` that within limits on sums over labels. Thresholds that are given to
a node are those of a feature of their own, which no other node may split on.

**Limits on what is used.** A row :math:`\sum_g c_g [\text{some feature of } g \text{ is used}] \le h` is branched on:
where the best tree of a box breaks it, one of its groups is forbidden in one part of the box and *paid* in the other.
Every tree of the box is in one of them; groups that are paid leave less for others, so each part has fewer groups that
may be used or that are not paid, and the branching ends. Where the largest sets of features within the limits are few,
each is a box. Where a tree does not use what is required, the box falls into those whose node :math:`t` has to use it
and whose earlier nodes may not. Where a tree has more splits than a limit allows, one of its nodes is a leaf in one
part and has to split in the other.

**A limit on the number of splits**, :math:`k(T) \le B`, has a price :math:`\mu \ge 0`, as a split has a cost. With
:math:`k` the most splits of a tree of the box within the limit,

.. math::

    \min_{k(T) \le B} f(T) \;\ge\; \min_T \; \{ f(T) + \mu \, k(T) \} - \mu \min(B, k) .

The price of the greatest bound comes from cutting planes: every tree T is one. Where f over the number of splits is
convex at B, the best tree at this price has B splits, and is the optimum. Elsewhere boxes are divided as above, also
where the best tree has fewer splits than it may, until all trees of a box have as many. Where thresholds are few, the
search of a box keeps the limit itself, and no price is needed (:mod:`mipforest.searches.exact.limited_splits`).

**Limits on what nodes split on**, :math:`\sum_t c_{t, s_t} \le h` of the threshold :math:`s_t` of each node, or no
split. Thresholds of a feature that cost differently at a node are features of their own there. Where the best tree of a
box exceeds the limit, the box falls into parts by what a node costs.

**Rows by hand.** Where they do not let some nodes :math:`t_1, t_2, \dots` of the best tree have what they split on, the
box falls into parts: that of the trees whose node :math:`t_k` differs from it, and whose nodes :math:`t_1` to
:math:`t_{k-1}` do not. Where trees are listed, nodes are told apart by what they split on beforehand.

**A monotone effect** of a feature on predictions of two classes: below each split on it all leaves on the left predict
the one class, or all leaves on the right the other one. A side whose leaves predict the same is as well one leaf, so
the feature has a copy, and the box is that of the trees in which the left side below the one, and the right side below
the other, is a leaf with its label (:class:`~mipforest.searches.exact.boxes.Box`). Where a tree may need a split that
changes no prediction, as a node is given one, and where trees are listed, the effect is asked of trees.

**Anything else** that a constraint asks of a tree: the trees of a box are listed by rising objective, until the first
that satisfies it (:mod:`mipforest.searches.exact.nearly_optimal`). Splits between two leaves of one label are not
listed: where a tree with such a split satisfies what is asked of trees, the tree without it does.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds, chosen_features, tree_of_thresholds, without_splits
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.restrictions import ANY, ChoiceRow, FixedSplit, Restrictions, UsedRow
from mipforest.problem.structure import LabelSums, UnivariateProblem, combinations_of
from mipforest.problem.tree_search import LOCAL_SEARCH, ListedTrees, get_search
from mipforest.searches.local.plugin import LocalSearch
from mipforest.solvers.solution import closed
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import subtree

if TYPE_CHECKING:
    from mipforest.searches.exact.boxes import Box
    from mipforest.searches.exact.search import ExactResult
    from mipforest.searches.lagrangian.limited import LimitedTrees
    from mipforest.searches.lagrangian.search import LagrangianSearch

#: Depth up to which trees are listed, and up to which boxes differ from node to node.
MAX_LISTED, MAX_UNEVEN = 4, 4

#: Combinations of labels of several targets up to which constraints that read labels are kept.
MAX_COMBINATIONS = 128

#: Searches of the whole box, in cost, that all largest sets of features may take together, and sets that are looked at.
FEW_SETS, MAX_SETS = 6.0, 50_000

#: Trees of one listing; part of the way to the objective of a leaf that the first one goes, and how the next ones grow.
MOST_LISTED, FIRST_STEP, GROWTH = 200_000, 0.01, 4.0

#: Depth up to which a search ends at once; entries of data, ten times as many for each level more, from which on CART
#: grows a tree first.
FAST_DEPTH, LONG = 2, 100_000

#: Share of the time left for the search without monotone effects, which comes first where it is a faster one.
EFFECTS_SHARE = 0.3

#: Share of the time left for each tree that is found without a proof; its random starts, and kicks of each.
GUESS_SHARE, GUESSES, KICKS = 0.05, 4, 8

#: What the way to a leaf is taken as at least, relative to the objective and at all.
SMALL = 1e-6


def refusal(problem: ProblemData) -> str:
    """Say which restrictions of a problem are not kept; empty where all are."""
    restrictions, depth = problem.restrictions.asking_effects, problem.topology.depth
    reads_labels = restrictions.sums is not None or restrictions.asked
    sizes = list(map(len, problem.data.target_classes))
    if reads_labels and sizes and math.prod(sizes) > MAX_COMBINATIONS:
        return (
            f"a constraint reads labels of {len(sizes)} targets, which have {math.prod(sizes)} combinations, and the "
            f"search keeps it with up to {MAX_COMBINATIONS}; a solver of the model's rows, such as highs, keeps it"
        )
    if restrictions.asked and depth > MAX_LISTED:
        what, most = "is asked of trees that are listed", MAX_LISTED
    elif not restrictions.is_even and depth > MAX_UNEVEN:
        what, most = "differs from node to node", MAX_UNEVEN
    else:
        return ""
    return f"a constraint {what}, which the search keeps up to depth {most}, and depth is {depth}"


def given_to_nodes(fixed: tuple[FixedSplit, ...]) -> dict[int, IntArray]:
    """Return by node the thresholds that all splits that are given to it have in common."""
    found: dict[int, IntArray] = {}
    for split in fixed:
        own = np.unique(split.thresholds)
        found[split.node] = np.intersect1d(found[split.node], own) if split.node in found else own
    return found


def _told_apart(own: Restrictions, of: IntArray) -> dict[int, list[IntArray]]:
    """Return, by node, the thresholds that it may have where not all are alike: by feature and by what they cost."""
    given, found = given_to_nodes(own.fixed), dict[int, list[IntArray]]()
    for node in range(len(own.allowed)):
        if node not in given and not own.choices:
            continue
        some = given.get(node, np.arange(len(of)))
        kinds = np.vstack([of[some], *(row.cost[node, some] for row in own.choices)])
        number = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
        found[node] = [some[number == k] for k in range(int(number.max(initial=-1)) + 1)]
    return found


@dataclass(order=True)
class _Subproblem:
    """Trees that use some features.

    Attributes
    ----------
    bound
        Lower bound on the objective of its trees.
    number
        Of its making: the last key of the order.
    allowed
        (|B|, p) features that each node may split on.
    must
        (|B|,) whether each node has to split.
    paid
        (b, g) groups of each limit that count as used.
    best
        Its best tree, of value ``bound``, where that is known from a box around it.
    step
        How far beyond ``bound`` its trees are listed next, where they are listed step by step; 0 before the first.
    """

    bound: float
    number: int
    allowed: BoolArray = field(compare=False)
    must: BoolArray = field(compare=False)
    paid: tuple[BoolArray, ...] = field(compare=False)
    best: Tree | None = field(compare=False, default=None)
    step: float = field(compare=False, default=0.0)


@dataclass(eq=False)
class Solved:
    """What a search within a box has found.

    Attributes
    ----------
    bound
        Lower bound on the objective of all its trees, infinite where there is none.
    tree
        Its best tree, for scaled features; ``None`` where none is below the incumbent's value.
    ended
        Whether nothing is left to search in it.
    step
        Where its trees are listed step by step and are not at their end, the next one.
    """

    bound: float
    tree: Tree | None
    ended: bool
    step: float = 0.0


class Constrained:
    """A search for the best tree of a problem within its constraints.

    Parameters
    ----------
    driver
        Of a problem against whose restrictions :func:`refusal` has nothing.
    lists
        Whether its trees are to be listed.

    Attributes
    ----------
    bound
        Proven lower bound on the objective of every tree within the constraints; infinite where there is none.
    nodes
        Pairs of sides, or exact trees, of all boxes.
    ended
        Whether nothing is left to search.
    why_none
        Why no tree keeps limits on labels, where that alone is why there is none.
    on_workers
        Whether a cluster was asked to search.
    """

    def __init__(self, driver: Driver, *, lists: bool = False) -> None:
        self.driver, self.problem, self.settings = driver, driver.problem, driver.settings
        self.incumbent = driver.incumbent
        charged = self.problem.structure
        assert isinstance(charged, UnivariateProblem)
        self.restrictions = own = _with_effects(self.problem, lists)
        thresholds, of = charged.thresholds, charged.thresholds.feature
        # By node whose thresholds are told apart, the sets of those that it may have, each a feature behind the others
        # where it is not all thresholds of its feature.
        parts, n_of = _told_apart(own, of), np.diff(thresholds.first)
        some = {tuple(one.tolist()) for sets in parts.values() for one in sets if len(one) < n_of[of[one[0]]]}
        sets = [np.array(one) for one in sorted(some)]
        copy_of = {tuple(one.tolist()): k for k, one in enumerate(sets, thresholds.n_features)}
        #: By node and feature, those thresholds.
        self._parts_of = {
            node: {copy_of.get(tuple(one.tolist()), int(of[one[0]])): one for one in own_sets}
            for node, own_sets in parts.items()
        }
        may_rise, may_fall = _directions(own)
        # A feature in which predictions may not do both has a copy: below one the left side is a leaf, below the other
        # the right one.
        one_way = np.flatnonzero((may_rise ^ may_fall) & (n_of > 0)).tolist()
        sets += [np.arange(thresholds.first[j], thresholds.first[j + 1]) for j in one_way]
        #: (q',) the threshold of the problem that each of theirs is.
        self._given = np.concatenate([np.zeros(0, dtype=np.int64), *sets])
        if sets:
            thresholds = thresholds.with_copies(sets)
        self.charged = replace(charged, N_min=own.N_min, thresholds=thresholds)
        #: (C, T) combinations of labels of several targets, where each is a label here; ``None`` elsewhere.
        self._combinations: IntArray | None = None
        #: (p,) the feature of the problem that each feature stands for.
        self._origin = np.array(
            [*range(charged.thresholds.n_features), *(of[one[0]] for one in sets)], dtype=np.int64
        )
        #: (p,) what a split on each leaves of its node's sides, as boxes have it.
        self._leaf = np.full(len(self._origin), -1)
        for j, k in zip(one_way, range(len(self._origin) - len(one_way), len(self._origin)), strict=True):
            on_left = int(may_fall[j])  # its label; the right side has the other one
            self._leaf[j], self._leaf[k] = on_left, 2 + (1 - on_left)
        self._budgets = tuple(
            replace(row, groups=tuple(map(self._copies, row.groups))) for row in own.budgets
        )
        self._required = tuple(map(self._copies, own.required))
        self._once = np.full(len(self._origin), -1) if own.once is None else own.once[self._origin]
        #: Of each limit on what nodes split on, (|B|, p + 1) the cost of each feature at each node, and of no split.
        self._costs = [self._costs_of(row) for row in own.choices]
        #: Whether trees are listed: until one satisfies what is asked, or beyond the bound of prices.
        self._lists = bool(own.asked or own.completion) or own.sums is not None
        if own.once is not None and replace(own, once=None).is_even and not self._lists:
            # A second split on a threshold parts no samples: it says nothing where a group has no other one.
            of_group = np.bincount(1 + self._once, n_of[self._origin])  # those of no group first
            self._once = np.where(of_group[1 + self._once] > 1, self._once, -1)
        self.bound, self.nodes, self.ended, self.why_none = 0.0, 0, False, ""
        self.on_workers = False
        #: Levels of searches that were compiled, and whether within monotone effects.
        self._compiled = set[tuple[int, bool]]()
        self._closed, self._number = np.inf, 0
        #: Most splits of a tree; whether searches of boxes keep this limit, or else the price of a split, in units of
        #: the objective.
        self._most_splits, self._keeps_limit, self._price = len(own.allowed), False, 0.0
        #: (r,) prices of limits on labels (:meth:`limited`), from the first box that was searched.
        self.prices: FloatArray | None = None

    # ------------------------------------------------------------------ branch and bound

    def run(self) -> None:
        """Search until nothing is left, or time is over."""
        sizes, restrictions = list(map(len, self.problem.data.target_classes)), self.restrictions
        if sizes and (restrictions.sums is not None or restrictions.asked):
            self._combinations = combinations_of(sizes)
            self.charged = self.charged.jointly(self._combinations)
        self._offer_leaves()
        first = self._settled(self._everything())
        if first is not None:
            self._offer_cart(first)
            self._offer_shallower(first)
            first = self._with_price(self._without_effects(first))
        open_boxes = [] if first is None else [first]
        while open_boxes and not self.driver.over():
            box = heapq.heappop(open_boxes)
            if self.driver.closed(box.bound):
                open_boxes = [box]
                break
            if (sets := self._largest_sets(box)) is not None:
                everything = tuple(np.ones_like(paid) for paid in box.paid)
                if self.restrictions.sums is not None:
                    # Its prices and its bound hold for all of them.
                    box.bound = max(box.bound, self._limited(*self._charged(box)).bound)
                self._number += 1  # what is proven of one of them is no bound for all
                self._solve_all([replace(box, allowed=allowed, paid=everything) for allowed in sets])
                continue
            told = self._parts_to_list(box)
            parts, bound, best = (told if told == [] else None), box.bound, box.best
            if parts is None:
                found = self._known(box) or self._solve(box, lists=told is None)
                bound = max(box.bound, found.bound)
                if not found.ended and self.driver.over():
                    open_boxes.append(replace(box, bound=bound))
                    heapq.heapify(open_boxes)
                    break
                parts = None if found.tree is None else self._parts(box, found.tree)
                parts = told if parts is None and not found.ended else parts
                best = found.tree if found.ended else None
                if parts is None and not found.ended and found.step:
                    parts = [replace(box, step=found.step)]
            if parts is None:
                self._closed = min(self._closed, bound)
                continue
            for part in parts:
                if (settled := self._settled(part)) is not None:
                    self._number += 1
                    own = best if best is not None and self._has(settled, best) else None
                    heapq.heappush(open_boxes, replace(settled, bound=bound, number=self._number, best=own))
            self.bound = min([self._closed, *(other.bound for other in open_boxes)])
        left = min((box.bound for box in open_boxes), default=np.inf)
        self.bound = min(self._closed, left)
        self.ended = self.bound == np.inf or self.driver.closed(self.bound)

    def _offer_leaves(self) -> None:
        """Offer the trees without a split, which many constraints admit, so that there is a tree from the first."""
        topology, alone = self.problem.topology, np.full(self.problem.topology.n_branches, -1)
        if self.charged.predicts_class:
            for label in range(int(self.charged.y.max()) + 1):
                labels = np.full(topology.n_leaves, label)
                self.incumbent.offer(self._tree(alone, alone[:0], labels))
        else:
            self.incumbent.offer(self._tree(alone, alone[:0]))

    @property
    def _is_long(self) -> bool:
        """Whether the search may take long."""
        depth = self.problem.topology.depth
        return bool(self.problem.data.X.size * (depth > FAST_DEPTH) * 10 ** (depth - FAST_DEPTH - 1) >= LONG)

    def _offer_cart(self, box: _Subproblem) -> None:
        """Offer CART's tree on the features that every node may use, where the search may take long."""
        problem = self.problem
        if "cart" not in problem.formulation.starts or not self._is_long or self.driver.over():
            return
        every: BoolArray = np.logical_and.reduce(box.allowed)[: problem.data.p]
        grown = self._cart(every)
        self.incumbent.offer(grown)
        chosen = np.zeros_like(every)
        features = chosen_features(grown)
        for j in dict.fromkeys(features[features >= 0].tolist()):  # from the root down
            chosen[j] = True
            chosen[j] = all(row.paid(chosen[self._origin]) <= row.limit for row in self._budgets)
        if not chosen[features[features >= 0]].all():
            self.incumbent.offer(self._cart(chosen))

    def _offer_shallower(self, box: _Subproblem) -> None:
        """Offer the best tree of few levels, which is found at once, where the search may take long."""
        if self.problem.topology.depth <= FAST_DEPTH or self._lists:
            return
        upper, parts = 2**FAST_DEPTH - 1, [box]
        while parts and not self.driver.over():
            part = parts.pop(0)
            if part.must[upper:].any():
                continue
            above = replace(part, allowed=part.allowed[:upper], must=part.must[:upper])
            found = self._exact(*self._charged(above), np.inf, above)
            divided = None if found.tree is None else self._parts(part, found.tree)
            if divided is None:
                if found.tree is not None:
                    self.incumbent.offer(found.tree)
                return
            parts += [settled for own in divided if (settled := self._settled(own)) is not None]

    def _without_effects(self, box: _Subproblem) -> _Subproblem:
        """Return the box of all trees, with a bound by those without monotone effects, where these are searched faster.

        The best of them is offered: it may be monotone.
        """
        from mipforest.searches.exact.search import is_slowed_by_leaves

        if self._leaf.max(initial=-1) < 0 or self.problem.topology.depth <= FAST_DEPTH or self.driver.over():
            return box
        plain = replace(box, allowed=box.allowed & (self._leaf < 2))
        (charged, numbers), within = self._charged(plain), self._box(plain, with_effects=False).settled()
        if within is None or not len(numbers):
            return box
        if not is_slowed_by_leaves(charged, self.problem.topology.depth):
            return box
        until = monotonic() + EFFECTS_SHARE * self.driver.left
        found = self._searched(
            charged,
            self.incumbent.value,
            None if within.is_even else within,
            on_progress=lambda _, bound, nodes: self._report(np.inf, bound, nodes) or monotonic() >= until,
        )
        if found.chosen is not None:
            self.incumbent.offer(self._tree(found.chosen, numbers))
        return replace(box, bound=max(box.bound, found.bound))

    def _with_price(self, box: _Subproblem) -> _Subproblem:
        """Return the box of all trees, with a bound by the best price of a limit on the number of splits.

        Every tree is a cutting plane. The first ones, where the search may take long, come without a proof, and may be
        outside the box: they lead to a price that few searches improve.
        """
        from mipforest.searches.exact.search import compile_kernels

        rows = [row for row in self.restrictions.splits if row.weights.max() == row.weights.min() > 0.0]
        most = min((int(row.limit / row.weights[0]) for row in rows), default=len(box.must))
        if self._lists or most >= _may_split(box):
            return box
        self._most_splits = most
        charged, numbers = self._charged(box)
        own = None if self._is_even(box) else box
        limit = self._limit_of_search(charged, None if own is None else self._within(own))
        if limit is not None:
            self._keeps_limit = True
            compile_kernels(self.problem.budget, charged, self.problem.topology.depth, most_splits=limit)
            return box
        cuts = set[tuple[float, int]]() if (known := self.incumbent.tree) is None else {self._cut(known)}
        # Thresholds that are features of their own are none of the local search.
        guesses = self._is_long and not len(self._given)
        chosen: IntArray | None = np.full(len(box.must), -1) if guesses else None
        while chosen is not None and cuts:
            price, value = _best_price(cuts, most)
            chosen = self._guess(_priced(charged, price), chosen, starts=1, kicks=0)
            if chosen is None:
                break
            tree = self._tree(chosen, numbers)
            self._offer_pruned(tree)
            cut = worth, splits = self._cut(tree)
            if cut in cuts or worth + price * (splits - most) >= value:
                break
            cuts.add(cut)
        bound, best = box.bound, None
        while not (self.driver.over() or self.driver.closed(bound)):
            self._price, value = _best_price(cuts, most) if cuts else (0.0, np.inf)
            found = self._exact(charged, numbers, min(value, self.incumbent.value), own)
            self.bound = bound = max(bound, found.bound)
            if found.tree is None or not found.ended or (cut := self._cut(found.tree)) in cuts:
                break
            cuts.add(cut)
            best = found.tree
            self._offer_pruned(best)
        return replace(box, bound=bound, best=best)

    def _limit_of_search(self, charged: UnivariateProblem, within: Box | None) -> int | None:
        """Return the limit on splits that the search of a box keeps itself; ``None`` where it keeps none."""
        from mipforest.searches.exact.search import takes_most_splits

        if within is not None and within.leaf is not None:
            return None
        most, n_nodes = self._most_splits, len(self.restrictions.allowed if within is None else within.must)
        if most >= (n_nodes if within is None else int(within.allowed.any(axis=1).sum())):
            return None
        return most if takes_most_splits(charged, n_nodes.bit_length(), within) else None

    def _offer_pruned(self, tree: Tree) -> None:
        """Offer a tree without the splits above leaves that are worth least, until it has as many as it may."""
        formulation, instance = cast(Any, self.problem.formulation), self.problem.instance
        while (splits := np.flatnonzero(tree.w.any(axis=1))).size > self._most_splits:
            ends = [t for t in splits.tolist() if not np.isin([2 * t + 1, 2 * t + 2], splits).any()]
            pruned = [formulation.relabel(without_splits(tree, [t]), instance) for t in ends]
            tree = min(pruned, key=lambda one: formulation.evaluate(one, instance))
        self.incumbent.offer(tree)

    def _splits_paid(self, box: _Subproblem) -> int:
        """Return the most splits of a tree of a box within the limit that has a price."""
        return min(self._most_splits, _may_split(box))

    def _cut(self, tree: Tree) -> tuple[float, int]:
        """Return what a tree is worth, and its number of splits."""
        value = self.problem.formulation.evaluate(tree, self.problem.instance)
        return value, tree.n_splits

    def _cart(self, features: BoolArray) -> Tree:
        """Return CART's tree on some features (p,)."""
        problem, formulation = self.problem, cast(Any, self.problem.formulation)
        # On the others all samples are alike.
        data = replace(problem.data, X=np.where(features, problem.data.X, 0.0))
        instance = replace(problem.instance, data=data)
        sized = replace(formulation, N_min=self.charged.N_min)
        tree: Tree = sized.start("cart", instance, seed=self.settings.seed)
        return tree

    def _everything(self) -> _Subproblem:
        """Return the box of all trees within what is said of nodes."""
        own = self.restrictions
        B, of = len(own.allowed), self.charged.thresholds.feature  # the copies come last
        allowed = np.zeros((B, len(self._origin)), dtype=bool)
        allowed[:, : own.allowed.shape[1]] = own.allowed
        must = np.isin(np.arange(B), [split.node for split in own.fixed if split.must])
        # A last node has both labels given.
        for k in np.flatnonzero(self._leaf >= 2).tolist():
            allowed[: B // 2, k] = own.allowed[: B // 2, self._origin[k]]
        for node, parts in self._parts_of.items():
            allowed[node] = False
            for column, part in parts.items():
                allowed[node, column] = own.allowed[node, of[part[0]]]
        return _Subproblem(0.0, 0, allowed, must, tuple(self._nothing(row) for row in self._budgets))

    def limited(self) -> LimitedTrees:
        """Return all trees within limits on labels."""
        from mipforest.searches.lagrangian.limited import LimitedTrees

        return LimitedTrees.of(self.charged, self.problem.topology.depth, self._sums)

    @property
    def _sums(self) -> LabelSums:
        """Limits on sums over labels, of combinations where these are the labels."""
        sums = self.restrictions.sums
        assert sums is not None
        return sums if self._combinations is None else sums.jointly(self._combinations)

    def best_of(
        self, allowed: BoolArray, must: BoolArray, below: float, charged: UnivariateProblem
    ) -> IntArray | None:
        """Return the features (|B|,) of the best tree below a value, -1 where it does not split; ``None`` without one.

        Parameters
        ----------
        allowed, must
            (|B|, p) features that each node may split on, of those that it may at all, and (|B|,) nodes that have to.
        below
            The value of the objective.
        charged
            What trees are charged, over the thresholds of :attr:`charged`.
        """
        box = replace(self._everything(), must=must)
        box.allowed &= allowed[:, self._origin]
        own = None if self._is_even(box) else box
        some, _ = self._charged(box)
        within = self._within(box) if own is not None else None
        if not len(some.thresholds) or (own is not None and within is None):
            return None
        chosen = self._searched(replace(charged, thresholds=some.thresholds), below, within).chosen
        if chosen is None:
            return None
        features = self._features(box)[some.thresholds.feature[chosen]]
        return np.where(chosen >= 0, self._origin[features], -1)

    def list_trees(self, *, columns: IntArray | None = None, **asked: Any) -> ListedTrees:
        """List the trees that have what nodes are told; other constraints are for the caller to ask for.

        Arguments are those of :meth:`~mipforest.problem.tree_search.TreeSearch.list_trees`. There is such a tree.
        """
        from mipforest.searches.exact.nearly_optimal import list_trees

        box = self._settled(self._everything())
        assert box is not None
        (charged, numbers), here = self._charged(box), self._features(box)
        own = None if self._is_even(box) else self._within(box)
        of_columns = None if columns is None else columns[self._origin[here]]
        found = list_trees(charged, self.problem.topology.depth, box=own, columns=of_columns, **asked)
        return replace(found, chosen=self._among_all(found.chosen, numbers))

    def _has(self, box: _Subproblem, tree: Tree) -> bool:
        """Return whether a tree of the box around it is in a box."""
        used = self._features_of(tree)
        splits = used >= 0
        return bool((splits | ~box.must).all() and box.allowed[splits, used[splits]].all())

    def _features_of(self, tree: Tree) -> IntArray:
        """Return the feature of each node (|B|,), which may be one of some thresholds alone, -1 without a split."""
        used = chosen_features(tree)
        if self._parts_of:
            charged = self.problem.structure
            assert isinstance(charged, UnivariateProblem)
            chosen = charged.thresholds.of_tree(tree)
            for node, parts in self._parts_of.items():
                if used[node] >= 0:
                    used[node] = next((column for column, part in parts.items() if chosen[node] in part), -1)
        return used

    def _costs_of(self, row: ChoiceRow) -> FloatArray:
        """Return (|B|, p + 1) what a limit charges for each feature at each node, and for no split."""
        cost = np.full((len(row.cost), len(self._origin) + 1), np.inf)
        cost[:, -1] = row.cost[:, -1]
        for node, parts in self._parts_of.items():
            for column, part in parts.items():
                cost[node, column] = row.cost[node, part[0]]
        return cost

    def _copies(self, features: IntArray) -> IntArray:
        """Return some features of the problem with those that stand for one of them."""
        return np.flatnonzero(np.isin(self._origin, features))

    def _used(self, tree: Tree) -> BoolArray:
        """Return (p,) whether the splits of a tree use what each feature stands for."""
        used: BoolArray = np.isin(self._origin, tree.features_used().overall)
        return used

    def _solve_all(self, boxes: list[_Subproblem]) -> None:
        """Search boxes whose sets of features are within all limits, those first that promise most."""
        promise = [box.bound for box in boxes]
        for k, box in enumerate(boxes if self._lists else []):
            if self.driver.over():
                self._closed = min([self._closed, *(other.bound for other in boxes)])
                return
            # It takes a moment, and tells which boxes are worth more.
            promise[k] = self._relaxation(*self._charged(box))
            box.bound = max(box.bound, promise[k])
        left = np.argsort(promise, kind="stable").tolist()
        # Trees are listed in the end, where the best one of all boxes leaves a gap.
        for lists in (False, True) if self.restrictions.sums is not None else (True,):
            open_boxes = []
            for at, k in enumerate(left):
                box = boxes[k]
                if self.driver.over():
                    open_boxes += left[at:]
                    break
                if not self.driver.closed(box.bound):
                    found = self._solve(box, lists=lists)
                    box.bound = max(box.bound, found.bound)
                    if not (found.ended or lists):
                        open_boxes.append(k)
            left = open_boxes
        self._closed = min([self._closed, *(box.bound for box in boxes)])

    def _report(self, value: float, bound: float, nodes: int) -> bool:
        """Report what is known; return whether to stop."""
        return self.driver.report(
            max(self.bound, 0.0 if self._number else bound), self.nodes + nodes, value=value
        )

    def _is_told(self, most_splits: int | None) -> bool:
        """Return whether a search that keeps a limit on splits, if one is given, has no trees outside other limits."""
        own = self.restrictions
        return (own if most_splits is None or len(own.splits) > 1 else replace(own, splits=())).is_told

    @staticmethod
    def _nothing(row: UsedRow) -> BoolArray:
        return np.zeros(len(row.groups), dtype=bool)

    def _settled(self, box: _Subproblem) -> _Subproblem | None:
        """Take out the groups that limits have no room for; ``None`` where what is paid exceeds one."""
        allowed = box.allowed.copy()
        for row, paid in zip(self._budgets, box.paid, strict=True):
            room = row.limit - float(row.cost @ paid)
            if room < 0.0:
                return None
            for group, cost, is_paid in zip(row.groups, row.cost, paid, strict=True):
                if not is_paid and cost > room:
                    allowed[:, group] = False
        for limit in self.restrictions.splits:
            room = limit.limit - float(limit.weights[: len(box.must)] @ box.must)
            if room < 0.0:
                return None
            for t in np.flatnonzero(~box.must & (limit.weights[: len(box.must)] > room)).tolist():
                allowed[subtree(t, len(box.must))] = False
        must = box.must.copy()
        for choice, cost in zip(self.restrictions.choices, self._costs, strict=True):
            for t in range(1, len(must)):
                allowed[t] &= allowed[(t - 1) // 2].any()
            here = self._choices(replace(box, allowed=allowed, must=must), cost)
            least = here.min(axis=1)
            if least.sum() > choice.limit:  # infinite where a node has to split, and cannot
                return None
            room = choice.limit - least.sum() + least
            allowed &= here[:, :-1] <= room[:, None]
            must |= here[:, -1] > room
        return replace(box, allowed=allowed, must=must)

    def _choices(self, box: _Subproblem, cost: FloatArray) -> FloatArray:
        """Return (|B|, p + 1) what each choice costs that a node of a box has, infinite for others."""
        has = np.hstack([box.allowed, ~box.must[:, None]])
        return np.where(has, cost[: len(has)], np.inf)

    def _parts(self, box: _Subproblem, tree: Tree) -> list[_Subproblem] | None:
        """Divide a box whose best tree is outside a limit; ``None`` where it is within all of them."""
        used = self._used(tree)
        for k, row in enumerate(self._budgets):
            if row.paid(used) > row.limit:
                return self._parts_by_cost(box, k, chosen_features(tree))
        for group in self._required:
            if not used[group].any():
                return self._parts_by_node(box, group)
        splits = tree.w.any(axis=1)
        for limit in self.restrictions.splits:
            if float(limit.weights @ splits) > limit.limit:
                return self._parts_by_split(box, np.flatnonzero(splits & (limit.weights > 0.0)))
        for choice, cost in zip(self.restrictions.choices, self._costs, strict=True):
            own = cost[np.arange(len(cost)), self._features_of(tree)]
            if own.sum() > choice.limit:  # some node could cost less
                choices = self._choices(box, cost)
                return self._parts_by_choice(box, int((own > choices.min(axis=1)).argmax()), choices)
        features = chosen_features(tree)
        for conflict in self.restrictions.conflicts:
            nodes = conflict(features)
            if nodes is not None:
                return self._parts_by_conflict(box, nodes.tolist(), features)
        if self._price and tree.n_splits < self._splits_paid(box):
            left = box.allowed.any(axis=1) & ~box.must
            first, then = np.flatnonzero(left & splits), np.flatnonzero(left & ~splits)
            return self._parts_by_split(box, np.concatenate([first, then]))
        return None

    def _parts_to_list(self, box: _Subproblem) -> list[_Subproblem] | None:
        """Divide a box whose trees may be listed by the nodes that use what is required; ``None`` where all do.

        Listed trees have no split that changes nothing, but at nodes that have to split.
        """
        for group in self._required if self._lists else ():
            others = np.setdiff1d(np.arange(box.allowed.shape[1]), group)
            if not (box.must & ~box.allowed[:, others].any(axis=1)).any():
                return self._parts_by_node(box, group)
        for cost in self._costs if self._lists else ():
            choices = self._choices(box, cost)
            # A split that changes nothing is worth having where no split costs more.
            dearer = (choices[:, -1] < np.inf) & (choices[:, :-1].min(axis=1) < choices[:, -1])
            if dearer.any():
                return self._parts_by_choice(box, int(dearer.argmax()), choices)
        if self.restrictions.completion is not None:
            above = np.append(True, box.must[(np.arange(1, len(box.must)) - 1) // 2])
            left_open = box.allowed.any(axis=1) & ~box.must & above
            if left_open.any():
                return self._parts_by_split(box, np.flatnonzero(left_open))
        if not (self._lists and self.restrictions.conflicts):
            return None
        features, left = np.full(len(box.must), ANY, dtype=np.int64), list[int]()
        for t in range(len(box.must)):
            may = np.unique(self._origin[box.allowed[t]])
            if not len(may) or (t > 0 and features[(t - 1) // 2] == -1):
                features[t] = -1
            elif len(may) == 1 and box.must[t]:
                features[t] = may[0]
            else:
                left.append(t)
        if any(conflict(features) is not None for conflict in self.restrictions.conflicts):
            return []
        return self._parts_by_feature(box, left[0]) if left else None

    def _parts_by_feature(self, box: _Subproblem, t: int) -> list[_Subproblem]:
        """Return the box whose node t is a leaf, and those in which it splits on each feature."""
        leaf, must = box.allowed.copy(), box.must.copy()
        leaf[subtree(t, len(must))] = False
        must[_upwards(t)] = True
        parts = [] if box.must[t] else [replace(box, allowed=leaf)]
        for j in np.unique(self._origin[box.allowed[t]]).tolist():
            allowed = box.allowed.copy()
            allowed[t, self._origin != j] = False
            parts.append(replace(box, allowed=allowed, must=must))
        return parts

    def _parts_by_choice(self, box: _Subproblem, t: int, choices: FloatArray) -> list[_Subproblem]:
        """Return the parts of a box by what its node t costs, of what its choices cost."""
        parts, own = [], choices[t]
        for cost in np.unique(own[np.isfinite(own)]).tolist():
            allowed, must = box.allowed.copy(), box.must.copy()
            allowed[t] &= own[:-1] == cost  # exact: copies
            if own[-1] != cost:
                must[_upwards(t)] = True
            elif not allowed[t].any():
                allowed[subtree(t, len(must))] = False
            parts.append(replace(box, allowed=allowed, must=must))
        return parts

    def _parts_by_conflict(self, box: _Subproblem, nodes: list[int], features: IntArray) -> list[_Subproblem]:
        """Return the parts of a box in which each of some nodes is the first one that has another feature, or split."""
        parts, allowed, must = [], box.allowed.copy(), box.must.copy()
        for t in nodes:
            other, has_to = allowed.copy(), must.copy()
            own = self._origin == features[t]
            if features[t] < 0:
                has_to[_upwards(t)] = True
                allowed[subtree(t, len(must))] = False
            else:
                other[t, own] = False
                allowed[t, ~own] = False
                must[_upwards(t)] = True
            parts.append(replace(box, allowed=other, must=has_to))
        return parts

    def _parts_by_split(self, box: _Subproblem, splits: IntArray) -> list[_Subproblem]:
        """Return the box whose first node that splits and has not to is a leaf, and that in which it has to split."""
        t = int(splits[~box.must[splits]][0])  # there is one: those that have to are within the limit
        allowed, must = box.allowed.copy(), box.must.copy()
        allowed[subtree(t, len(must))] = False
        must[_upwards(t)] = True
        return [replace(box, allowed=allowed), replace(box, must=must)]

    def _parts_by_cost(self, box: _Subproblem, broken: int, used: IntArray) -> list[_Subproblem]:
        """Return the box without the dearest group that its tree uses and that is not paid, and with it paid.

        ``used`` are the features of its nodes. Of equally dear groups it is the one that is used nearest to the root:
        without it most of the tree changes.
        """
        row, paid = self._budgets[broken], box.paid[broken]
        open_groups = [
            (row.cost[k], -int(np.isin(used, self._origin[group]).argmax()), k)
            for k, group in enumerate(row.groups)
            if np.isin(used, self._origin[group]).any() and not paid[k] and row.cost[k] > 0.0
        ]
        dearest = max(open_groups)[2]  # there is one: what is paid is within the limit
        without, more = box.allowed.copy(), paid.copy()
        without[:, row.groups[dearest]] = False
        more[dearest] = True
        everything = tuple(more if k == broken else own for k, own in enumerate(box.paid))
        return [replace(box, allowed=without), replace(box, paid=everything)]

    def _parts_by_node(self, box: _Subproblem, group: IntArray) -> list[_Subproblem]:
        """Return the parts of a box in which each node is the first one that splits on a feature of a group."""
        parts, others = [], np.setdiff1d(np.arange(box.allowed.shape[1]), group)
        for t in range(len(box.must)):
            allowed, must = box.allowed.copy(), box.must.copy()
            allowed[:t, group] = False
            allowed[t, others] = False
            must[t] = True
            if allowed[t].any():
                parts.append(replace(box, allowed=allowed, must=must))
        return parts

    def _largest_sets(self, box: _Subproblem) -> list[BoolArray] | None:
        """Return the largest sets of features that limits allow, where their searches cost less than branching.

        A search costs about the square of its number of features. ``None`` where all features fit, or sets are many.
        """
        rows, here = self._budgets, self._features(box)
        everything = np.isin(np.arange(len(self._origin)), here)
        own = self.restrictions
        more = self._required or own.splits or own.choices or own.conflicts or own.completion
        few_features = self._number or len(here) < 3 or all(row.paid(everything) <= row.limit for row in rows)
        if few_features or more or not self._is_even(box):
            return None
        member = [np.array([np.isin(here, group) for group in row.groups]).T for row in rows]
        # Features that are in the same groups of all limits are one: they are paid together.
        kinds, kind_of = np.unique(np.hstack(member), axis=0, return_inverse=True)
        parts = np.split(kinds.astype(bool), np.cumsum([len(row.groups) for row in rows])[:-1], axis=1)
        number, found = len(kinds), list[BoolArray]()
        steps, work = 0, 0.0

        def fits(k: int | slice, paid: list[BoolArray]) -> BoolArray:
            """Return which kinds of features may be added to groups that are paid."""
            costs = [
                (part[k] | own) @ row.cost <= row.limit
                for part, own, row in zip(parts, paid, rows, strict=True)
            ]
            return np.asarray(np.all(costs, axis=0))

        def extend(k: int, chosen: BoolArray, paid: list[BoolArray]) -> bool:
            """Decide on kinds of features from k on; return whether sets stay few."""
            nonlocal steps, work
            steps += 1
            if steps > MAX_SETS:
                return False
            if k == number:
                if not (fits(slice(None), paid) & ~chosen).any():  # it is a largest set
                    features = here[chosen[kind_of.ravel()]]
                    found.append(np.tile(np.isin(np.arange(len(self._origin)), features), (len(box.must), 1)))
                    work += (len(features) / len(here)) ** 2
                return work <= FEW_SETS
            if not fits(k, paid):
                return extend(k + 1, chosen, paid)
            more = chosen.copy()
            more[k] = True
            paying = [own | part[k] for own, part in zip(paid, parts, strict=True)]
            if not extend(k + 1, more, paying):
                return False
            costs_nothing = all((new == old).all() for new, old in zip(paying, paid, strict=True))
            return costs_nothing or extend(k + 1, chosen, paid)

        few = extend(0, np.zeros(number, dtype=bool), [self._nothing(row) for row in rows])
        return found if few else None

    # ------------------------------------------------------------------ one box

    def _known(self, box: _Subproblem) -> Solved | None:
        """Return what is known of a box whose best tree is: where that is to be divided, or becomes the incumbent."""
        if box.best is None:
            return None
        known = self._parts(box, box.best) is not None or (
            np.isfinite(self.incumbent.offer(box.best)) and self.driver.closed(box.bound)
        )
        return Solved(box.bound, box.best, ended=True) if known else None

    def _solve(self, box: _Subproblem, *, lists: bool = True) -> Solved:
        """Search a box; a tree that satisfies all constraints becomes the incumbent if it is the best one.

        Without ``lists``, trees of the box are not listed where a gap is left.
        """
        charged, numbers = self._charged(box)
        own = None if self._is_even(box) else box
        if box.step:
            return self._listed(charged, numbers, Solved(box.bound, None, ended=False), own, box.step)
        if self.restrictions.sums is None:
            found = self._exact(charged, numbers, box=own)
        else:
            found = self._limited(charged, numbers, own)
        if found.tree is not None and self._parts(box, found.tree) is not None:
            return found
        if self.restrictions.completion is not None:
            if found.tree is not None and found.ended:
                least = self._complete(found.tree)
                if not self._features(box).size:  # the tree without a split is its only one
                    return Solved(max(found.bound, least), None, ended=least > -np.inf)
                if self.driver.closed(found.bound):
                    return replace(found, tree=None)
        elif found.tree is not None and np.isfinite(self.incumbent.offer(found.tree)) and found.ended:
            return found
        # Prices leave a gap, or the tree breaks what is asked of trees: the first one that is listed is the best one.
        is_left = self._lists and not (found.ended and found.tree is None)
        if is_left and lists and self.problem.topology.depth <= MAX_LISTED and not self.driver.over():
            return self._listed(charged, numbers, found, own, box.step)
        return replace(found, ended=False) if is_left else found

    def _complete(self, tree: Tree, *, labels: bool = False) -> float:
        """Offer the best tree with the splits of a tree that has a point; return a lower bound on all of these."""
        assert self.restrictions.completion is not None
        completed, value = self.restrictions.completion(tree, labels=labels), np.inf
        if completed.tree is not None:
            value = self.incumbent.offer(completed.tree)
            if value == np.inf:  # a point of the model that the definition refuses
                return -np.inf
        return value if completed.proven else -np.inf

    def _charged(self, box: _Subproblem) -> tuple[UnivariateProblem, IntArray]:
        """Return what the trees of a box are charged, and (q,) what its thresholds are among all."""
        some, numbers = self.charged.thresholds.subset(self._features(box))
        return replace(self.charged, thresholds=some), numbers

    def _features(self, box: _Subproblem) -> IntArray:
        """Return the features that some node of a box may split on."""
        return np.flatnonzero(box.allowed.any(axis=0) & (np.diff(self.charged.thresholds.first) > 0))

    def _is_even(self, box: _Subproblem) -> bool:
        """Return whether the search takes a box as all trees on its features."""
        return self._box(box).is_even

    def _tree(
        self, chosen: IntArray, numbers: IntArray, labels: IntArray | None = None, *, as_it_is: bool = False
    ) -> Tree:
        """Return the tree of thresholds of a box, with its best leaves, or with labels; as it is, it is not pruned."""
        every = self._among_all(chosen, numbers)
        problem, topology, charged = self.problem, self.problem.topology, self.problem.structure
        assert isinstance(charged, UnivariateProblem)
        splits = tree_of_thresholds(problem.data, problem.topology, charged.thresholds, every)
        if labels is not None:
            unreached = self.restrictions.unreached
            if unreached is not None:
                has_samples = np.isin(
                    topology.n_branches + np.arange(topology.n_leaves), splits.apply(problem.data.X)
                )
                labels = np.where(has_samples | (unreached < 0), labels, unreached)
            if self._combinations is not None:
                labels = self._combinations[labels].astype(np.float64)
            return replace(splits, leaf_value=labels)
        finish = problem.formulation.relabel if as_it_is else problem.formulation.polish
        tree: Tree = finish(splits, problem.instance)
        return tree

    def _among_all(self, chosen: IntArray, numbers: IntArray) -> IntArray:
        """Return what thresholds of a box are among all, -1 where a node does not split."""
        charged = self.problem.structure
        assert isinstance(charged, UnivariateProblem)
        every = np.where(chosen >= 0, numbers[chosen] if len(numbers) else -1, -1)
        is_copy, n = every >= len(charged.thresholds), len(charged.thresholds)
        every[is_copy] = self._given[every[is_copy] - n]
        return every

    def _exact(
        self,
        charged: UnivariateProblem,
        numbers: IntArray,
        cutoff: float | None = None,
        box: _Subproblem | None = None,
    ) -> Solved:
        """Search with constraints on features alone, for a tree below a cutoff, the incumbent's value unless given.

        ``box`` is given where it differs from node to node; one of fewer levels leaves those below without a split.
        """
        depth, within = self.problem.topology.depth, None
        if box is not None:
            depth = len(box.must).bit_length()
            within = self._within(box)
            if within is None:
                return Solved(np.inf, None, ended=True)
        if not len(numbers):
            alone = self._tree(np.full(self.problem.topology.n_branches, -1), numbers)
            return Solved(self.problem.formulation.evaluate(alone, self.problem.instance), alone, ended=True)
        most_splits = self._limit_of_search(charged, within) if self._keeps_limit else None
        # A split costs its price, and a tree is paid for as many as it may have.
        paid = self._price * (self._most_splits if box is None else self._splits_paid(box))
        cutoff = self.incumbent.value if cutoff is None else cutoff
        # The gap is one of the objective, without what is paid.
        share = cutoff / (cutoff + paid) if 0.0 < cutoff < np.inf else float(not paid)
        gap, is_shallow = self.settings.gap * share, depth < self.problem.topology.depth

        def report(value: float, bound: float, nodes: int) -> bool:
            # What is paid is no part of the objective, shallower trees bound no others, and a tree may break a limit.
            own = value if self._is_told(most_splits) and not paid else np.inf
            return self._report(own, 0.0 if is_shallow else bound - paid, nodes)

        priced = _priced(charged, self._price)
        outcome = self._searched(priced, cutoff + paid, within, depth, gap, report, most_splits)
        tree = None
        if outcome.chosen is not None:
            chosen = np.full(self.problem.topology.n_branches, -1)
            chosen[: len(outcome.chosen)] = outcome.chosen
            labels = None if within is None or within.leaf is None else _labels(charged, chosen, within)
            tree = self._tree(chosen, numbers, labels, as_it_is=box is not None)
        if self._price and tree is not None:
            self.incumbent.offer(tree)  # the best one of the box may be another one
        return Solved(outcome.bound - paid, tree, outcome.ended)

    def _searched(
        self,
        charged: UnivariateProblem,
        best: float,
        within: Box | None,
        depth: int | None = None,
        gap: float | None = None,
        on_progress: Callable[[float, float, int], bool] | None = None,
        most_splits: int | None = None,
    ) -> ExactResult:
        """Search for a tree below a value, in a box if one is given, of all levels unless told otherwise.

        ``on_progress`` gets value, bound and nodes; without it, neither value nor bound is told. ``most_splits`` is as
        for :func:`~mipforest.searches.exact.search.exact_search`.
        """
        from mipforest.searches.exact.search import LEAST_ON_WORKERS, compile_kernels, exact_search

        budget, depth = self.problem.budget, depth or self.problem.topology.depth
        kind = depth, within is not None and within.leaf is not None
        if kind not in self._compiled:
            self._compiled.add(kind)
            compile_kernels(budget, charged, depth, box=within)
        # A cluster is prepared for one long search, not for each of hundreds of boxes; it keeps no limit on splits, and
        # no monotone effect.
        long = not self._number and depth >= LEAST_ON_WORKERS and most_splits is None and not kind[1]
        dask = self.settings.dask if long else None
        self.on_workers = self.on_workers or dask is not None
        outcome = exact_search(
            charged,
            depth,
            best=best,
            gap=self.settings.gap if gap is None else gap,
            deadline=self.driver.deadline,
            on_progress=on_progress or (lambda *_: self._report(np.inf, 0.0, 0)),
            threads=self.settings.threads,
            dask=dask,
            budget=budget,
            box=within,
            most_splits=most_splits,
        )
        self.nodes += outcome.nodes
        self.driver.lost = self.driver.lost or outcome.lost
        return outcome

    def _within(self, box: _Subproblem) -> Box | None:
        """Return a box as searches take it, of the features that some node may split on; ``None`` without a tree."""
        return self._box(box).settled()

    def _box(self, box: _Subproblem, *, with_effects: bool = True) -> Box:
        """Return a box on the features that some node may split on, with monotone effects or without."""
        from mipforest.searches.exact.boxes import Box

        features = self._features(box)
        leaf = self._leaf[features] if with_effects and self._leaf[features].max(initial=-1) >= 0 else None
        return Box(box.allowed[:, features], box.must, self._once[features], leaf)

    def _limited(
        self, charged: UnivariateProblem, numbers: IntArray, box: _Subproblem | None = None
    ) -> Solved:
        """Search within limits on labels; ``box`` is given where it differs from node to node."""
        within = None if box is None else self._within(box)
        if box is not None and within is None:
            return Solved(np.inf, None, ended=True)
        search, unit = self._limits(charged, within), charged.unit
        cutoff = self.incumbent.value * unit
        # Where exact trees take long, prices are guessed first, from trees without a proof; these keep to no box.
        guesses = self.prices is None and box is None and len(numbers) > 0
        start = np.full(self.problem.topology.n_branches, -1) if guesses else None
        found = search.run(start, prices=self.prices, cutoff=cutoff)
        self.prices = found.prices if self.prices is None else self.prices
        self.nodes += found.evaluated
        if found.infeasible:
            # Of a part it would not say why the whole has none.
            self.why_none = "" if self._number else found.infeasible
            return Solved(np.inf, None, ended=True)
        tree = None
        if found.chosen is not None and found.labels is not None:
            tree = self._tree(found.chosen, numbers, found.labels)
        bound = max(0.0, found.bound / unit)
        return Solved(bound, tree, ended=closed(found.cost / unit, bound, self.settings.gap))

    def _relaxation(self, charged: UnivariateProblem, numbers: IntArray) -> float:
        """Return a bound on the trees of a box from one exact tree, under the prices of limits on labels."""
        if self.restrictions.sums is None:
            return self._exact(charged, numbers, np.inf).bound
        search = self._limits(charged)
        assert self.prices is not None
        self.nodes += 1
        return max(0.0, search.relaxed(self.prices) / charged.unit)

    def _limits(self, charged: UnivariateProblem, box: Box | None = None) -> LagrangianSearch:
        """Return the search for trees within limits on labels, of a box if one is given, ready to run."""
        from mipforest.searches.exact.search import compile_kernels, exact_search
        from mipforest.searches.lagrangian.limited import LimitedTrees
        from mipforest.searches.lagrangian.search import LagrangianSearch

        budget, topology, settings = self.problem.budget, self.problem.topology, self.settings

        def should_stop(_: object) -> bool:
            return self._report(self.incumbent.value, self.bound, 0) or self.driver.over()

        def exact_tree(relaxed: UnivariateProblem, best: float, complete: bool) -> ExactResult:
            compile_kernels(budget, relaxed, topology.depth)
            return exact_search(
                relaxed,
                topology.depth,
                best=best,
                deadline=self.driver.deadline,
                on_progress=lambda *_: budget.stopped,
                complete=complete,
                threads=settings.threads,
                box=box,
            )

        trees = LimitedTrees.of(charged, topology.depth, self._sums)
        return LagrangianSearch(trees, exact_tree, self._guess, should_stop, settings.gap, box)

    def _guess(
        self, relaxed: UnivariateProblem, chosen: IntArray, starts: int = GUESSES, kicks: int = KICKS
    ) -> IntArray | None:
        """Return the thresholds (|B|,) of a good tree without a proof, from known ones; ``None`` without time."""
        local, thresholds, settings = get_search(LOCAL_SEARCH), relaxed.thresholds, self.settings
        assert isinstance(local, LocalSearch)
        until = monotonic() + GUESS_SHARE * self.driver.left
        if self.driver.over():
            return None
        splits = _splits_of(thresholds, self.problem.topology, chosen)
        outcome = local.improved(
            relaxed,
            thresholds.X[thresholds.group],
            splits,
            self.problem.budget,
            starts=starts,
            kicks=kicks,
            hyperplanes=0,
            seed=settings.seed,
            threads=settings.threads,
            deadline=until,
            on_progress=lambda *_: self.problem.budget.stopped,
        )
        better = replace(splits, w=outcome.tree.w, b=outcome.tree.b)
        return thresholds.decode(thresholds.encode(chosen_features(better), -better.b))

    def _listed(
        self,
        charged: UnivariateProblem,
        numbers: IntArray,
        found: Solved,
        box: _Subproblem | None,
        step: float = 0.0,
    ) -> Solved:
        """List trees of a box by rising objective until one satisfies everything.

        Where trees are completed, which may cost them something, they are listed one ``step`` beyond the bound only:
        another box may be worth more. ``box`` is given where it differs from node to node.
        """
        from mipforest.searches.exact.nearly_optimal import compile_kernels, list_trees

        depth, problem = self.problem.topology.depth, self.problem
        compile_kernels(problem.budget, charged, depth)
        none = self._tree(np.full(problem.topology.n_branches, -1), numbers)
        within_box = None if box is None else self._within(box)
        best, leaf = found.bound, problem.formulation.evaluate(none, problem.instance)
        frees_labels = self.restrictions.completion is not None and self.restrictions.sums is None
        # No listed tree is worth more.
        worst = leaf if not charged.predicts_class or frees_labels else _worst(charged)
        worst += charged.split_cost / charged.unit * problem.topology.n_branches
        completes, unproven = self.restrictions.completion is not None, False
        proven, seen = found.bound, found.bound if step else -np.inf
        step = step or FIRST_STEP * max(leaf - best, SMALL * abs(best), SMALL)
        while not self.driver.over():
            within = min(best + step, self.incumbent.value)
            trees = list_trees(
                charged,
                depth,
                budget=within,
                most=MOST_LISTED,
                shrink=False,
                all_labels=charged.predicts_class and not frees_labels,
                limits=None if self.restrictions.sums is None else self._sums,
                columns=None,
                box=within_box,
                stopped=self.driver.over,
            )
            order = np.argsort(trees.value, kind="stable")
            for k in order[trees.value[order] > seen].tolist():
                if trees.value[k] >= self.incumbent.value:
                    break
                if self.driver.over():  # this one and those behind it are not asked
                    all_below = trees.ended and trees.whole and not completes
                    return Solved(
                        max(proven, float(trees.value[k])) if all_below else proven, None, ended=False
                    )
                labels = trees.label[k] if charged.predicts_class and not frees_labels else None
                tree = self._tree(trees.chosen[k], numbers, labels, as_it_is=box is not None or completes)
                self.nodes += 1
                if completes:
                    unproven |= self._complete(tree, labels=labels is not None) == -np.inf
                    continue
                is_within = all(row.paid(self._used(tree)) <= row.limit for row in self._budgets)
                if is_within and np.isfinite(self.incumbent.offer(tree)):
                    return Solved(max(proven, float(trees.value[k])), None, ended=True)
            if not (trees.ended and trees.whole) or unproven:
                return Solved(proven, None, ended=False)
            proven, seen = max(proven, min(within, self.incumbent.value)), within
            if within >= self.incumbent.value:
                return Solved(self.incumbent.value, None, ended=True)
            if within > worst:
                return Solved(np.inf, None, ended=True)
            step *= GROWTH
            if completes:
                return Solved(proven, None, ended=False, step=step)
        return Solved(proven, None, ended=False)


def _with_effects(problem: ProblemData, lists: bool) -> Restrictions:
    """Return the restrictions of a problem; monotone effects are asked of trees where boxes do not keep them."""
    from mipforest.searches.exact.search import takes_leaves

    own, charged = problem.restrictions, problem.structure
    assert isinstance(charged, UnivariateProblem)
    keeps = own.effects and not (lists or own.may_need_idle_splits)
    if keeps and takes_leaves(replace(charged, N_min=own.N_min), problem.topology.depth):
        # Where predictions neither rise nor fall, no split changes them.
        may_rise, may_fall = _directions(own)
        return own.forbidding(np.flatnonzero(~(may_rise | may_fall)), None)
    return own.asking_effects


def _directions(own: Restrictions) -> tuple[BoolArray, BoolArray]:
    """Return (p,) the features in which predictions may rise, and those in which they may fall."""
    may_rise, may_fall = np.ones((2, own.allowed.shape[1]), dtype=bool)
    for effect in own.effects:
        may_rise[effect.features[~effect.rises]] = False
        may_fall[effect.features[effect.rises]] = False
    return may_rise, may_fall


def _labels(charged: UnivariateProblem, chosen: IntArray, box: Box) -> IntArray:
    """Return the labels (|L|,) of the leaves of a tree of a box: those that cost least, where none is given."""
    B, thresholds = len(chosen), charged.thresholds
    nodes, X = np.zeros(2 * B + 1, dtype=np.int64), thresholds.X[thresholds.group]
    here = {0: (np.arange(len(X)), -1)}
    for node in range(2 * B + 1):
        members, given = here[node]
        label = given if given >= 0 else int(charged.statistics[members].sum(axis=0).argmin())
        nodes[node] = label
        if node >= B:
            continue
        k = chosen[node]
        if k < 0:
            here[2 * node + 1] = here[2 * node + 2] = members, label
            continue
        f = int(thresholds.feature[k])
        right = X[members, f] >= thresholds.value[k]
        for side, part in enumerate((members[~right], members[right])):
            here[2 * node + 1 + side] = part, given if given >= 0 else box.label_below(side, f)
    return nodes[B:]


def _may_split(box: _Subproblem) -> int:
    """Return how many nodes of a box may split."""
    return int(box.allowed.any(axis=1).sum())


def _priced(charged: UnivariateProblem, price: float) -> UnivariateProblem:
    """Return charges with a price of every split, in units of the objective."""
    return replace(charged, split_cost=charged.split_cost + price * charged.unit)


def _best_price(cuts: Iterable[tuple[float, int]], most: int) -> tuple[float, float]:
    r"""Return the :math:`\mu \ge 0` at which the least :math:`f_i + \mu (k_i - B)` is greatest, and its value."""
    value, slope = np.array([(f, k - most) for f, k in cuts]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (value[:, None] - value) / (slope - slope[:, None])
    prices = np.append(0.0, crossings[np.isfinite(crossings) & (crossings > 0.0)])
    least = (value + prices[:, None] * slope).min(axis=1)
    k = int(least.argmax())
    return float(prices[k]), float(least[k])


def _worst(charged: UnivariateProblem) -> float:
    """Return what the worst labels of all samples are charged."""
    return float(charged.statistics.max(axis=1).sum()) / charged.unit + charged.offset


def _upwards(t: int) -> list[int]:
    """Return a node and those above it."""
    found = [t]
    while found[-1] > 0:
        found.append((found[-1] - 1) // 2)
    return found


def _splits_of(thresholds: Thresholds, topology: Topology, chosen: IntArray) -> Tree:
    """Return the tree of some thresholds (|B|,), over their features alone."""
    w, b = np.zeros((topology.n_branches, thresholds.X.shape[1])), np.zeros(topology.n_branches)
    splits = chosen >= 0
    w[splits, thresholds.feature[chosen[splits]]] = 1.0
    b[splits] = -thresholds.value[chosen[splits]]
    return Tree(topology.depth, w, b, np.zeros(topology.n_leaves), (), thresholds.names)
