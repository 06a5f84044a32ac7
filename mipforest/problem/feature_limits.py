r"""Limits on the features of a whole tree, kept by searches that know none: branch and bound over what a tree may use.

A *box* has the features that a tree may use and, of each limit, the groups that are paid whether they are used or not.
Its trees are those of a problem whose samples are 0 in all other features: a split on such a feature parts no samples,
and a weight of it changes no score. So the search's bound for this problem is one for the box. (Where a model mimics
an ensemble, which reads all features, its formulation makes the problem: :meth:`Operations.with_features`.)

Where the best tree of a box exceeds a limit, the box is divided by one group that the tree uses and that is not paid:
its features are forbidden, or it is paid, and groups that limits have no room for then are forbidden. Every tree of the
box within the limits is in one of the two. As each child has fewer features or more paid groups, the branching ends. A
box is left by a bound that reaches the incumbent, or by a best tree that is within the limits.

**Once per path.** A search that keeps features forbidden at nodes has boxes with features of each node. Where the best
tree of a box uses a feature at node t and at another node of its path, either t may not use it, or none above and below
t may. Every tree that uses it once on each path is in one of the two, and both have fewer features.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import Unsupported
from mipforest.problem.constraints import Constraint, Forbid, OncePerPath
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.restrictions import Restrictions
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Event, Progress
from mipforest.trees import Predictor, Tree


def is_branched_on(constraint: Constraint) -> bool:
    """Return whether a constraint is kept here, and not by the search."""
    return constraint.is_of_whole_tree or isinstance(constraint, OncePerPath)


def restrictions_of(problem: ProblemData) -> Restrictions:
    """Return what the constraints that are kept here leave of a problem that has no others."""
    found = Restrictions.none(problem.topology.n_branches, problem.data.p)
    for constraint in problem.constraints:
        if is_branched_on(constraint):
            found = constraint.restrict(found, problem, cast(Any, None))
    return found


def allowed_features(problem: ProblemData) -> BoolArray:
    """Return (p,) which features some node may use."""
    return np.asarray(restrictions_of(problem).allowed.any(axis=0))


def without_features(problem: ProblemData, allowed: BoolArray) -> ProblemData:
    """Return a problem whose nodes use none but the allowed features (p,), with constraints of other kinds."""
    data, formulation, out = problem.data, problem.formulation, np.flatnonzero(~allowed)
    instance = formulation.with_features(problem.instance, allowed)
    if instance is None:
        X, X_raw = data.X.copy(), data.X_raw.copy()
        X[:, out], X_raw[:, out] = 0.0, data.encoding.offset[out]
        own = replace(data, X=X, X_raw=X_raw)
        instance = formulation.bind_quickly(own, problem.topology, problem.budget)
        if instance is None:
            instance = formulation.bind(own, problem.topology, problem.budget)
    return replace(
        problem.without_rows(),
        instance=instance,
        constraints=tuple(one for one in problem.constraints if not is_branched_on(one)),
        forbidden={data.features.labels[j]: int(j) for j in out},
    )


def without_weights(tree: Predictor | None, forbidden: Mapping[str, int]) -> Predictor | None:
    """Return a tree without the weights of features that are 0 in all samples."""
    if not isinstance(tree, Tree) or not forbidden:
        return tree
    w, at = tree.w.copy(), list(forbidden.values())
    w[:, at] = 0.0
    if tree.leaf_w is None:
        return replace(tree, w=w)
    leaf_w = tree.leaf_w.copy()
    leaf_w[:, at] = 0.0
    return replace(tree, w=w, leaf_w=leaf_w)


def check_certificate(problem: ProblemData, settings: SolveSettings) -> None:
    """Refuse a certificate beside limits on features: it states those that no node may use.

    Raises
    ------
    Unsupported
        Naming the other constraints.
    """
    others = [one for one in problem.constraints if not (isinstance(one, Forbid) and one.nodes is None)]
    if others and settings.certificate is not None:
        raise Unsupported(
            f"a certificate states features that no node may use, and not: {'; '.join(map(str, others))}; leave the "
            "certificate out, or these constraints"
        )


def start_within(problem: ProblemData, *, seed: int) -> Predictor | None:
    """Return a tree to begin with that uses no forbidden feature."""
    reduced = without_features(problem, allowed_features(problem))
    return without_weights(reduced.start_without_search(seed=seed), reduced.forbidden)


@dataclass(order=True)
class _Subproblem:
    """Trees of some features (p,), at nodes (|B|, p), with paid groups (g,) of each limit, and the best one above."""

    bound: float
    number: int
    allowed: BoolArray = field(compare=False)
    at_nodes: BoolArray = field(compare=False)
    paid: tuple[BoolArray, ...] = field(compare=False)
    tree: Predictor | None = field(compare=False, default=None)


class _Branching:
    """The branch and bound.

    Parameters
    ----------
    driver
        Of the problem with its limits.
    search
        As for :func:`search_within`.
    """

    def __init__(self, driver: Driver, search: TreeSearch) -> None:
        self.driver, self.problem, self.search = driver, driver.problem, search
        restrictions = restrictions_of(self.problem)
        self.rows, self.nodes = restrictions.budgets, 0
        self.warnings: dict[str, None] = {}
        #: A tree that any search has found, within the limits or not.
        self.nearest: Predictor | None = None
        nothing = tuple(np.zeros(len(row.groups), dtype=bool) for row in self.rows)
        self._once = np.full(self.problem.data.p, -1) if restrictions.once is None else restrictions.once
        #: (|B|, |B|) whether a node is above or below another one.
        self._related = _related(len(restrictions.allowed))
        self._reduced: tuple[BoolArray, ProblemData] | None = None
        at_nodes = np.ones_like(restrictions.allowed)
        self.first = self._settled(_Subproblem(-np.inf, 0, allowed_features(self.problem), at_nodes, nothing))
        self.bound = -np.inf

    def run(self) -> None:
        """Search until nothing is left, or time is over."""
        if self.first is None:
            self.bound = np.inf
            return
        boxes, done, number, dived = [self.first], np.inf, 0, False
        while boxes and not self.driver.over():
            box = heapq.heappop(boxes)
            if self.driver.closed(box.bound):
                boxes.append(box)
                break
            if box.tree is None or not self._is_in(box.tree, box.allowed, box.at_nodes):
                is_root = box is self.first
                for of_half in (is_root, False):
                    found = self._search(box.allowed, box.at_nodes, is_root=of_half)
                    box = replace(box, bound=max(box.bound, found.bound), tree=found.tree)
                    self.bound = box.bound if is_root else self.bound
                    ended = (
                        not of_half
                        or self.driver.over()
                        or self.driver.closed(box.bound)
                        or not self.search.proves
                    )
                    if ended or box.tree is None or self._divided(box) is not None:
                        break
            children = None if box.tree is None else self._divided(box)
            if children is None:
                done = min(done, box.bound)
            else:
                if not dived:  # for an incumbent: the features that the best tree of all uses most
                    dived = True
                    self._search(*self._largest_within(cast(Predictor, box.tree), box))
                for child in children:
                    if child is not None:
                        number += 1
                        heapq.heappush(boxes, replace(child, number=number))
            self.bound = min([done, *(other.bound for other in boxes)])
            if not self.search.proves:
                break  # a bound is what tells when to end
            self.driver.report(self.bound, self.nodes)
        self.bound = min([done, *(box.bound for box in boxes)])

    def _search(self, allowed: BoolArray, at_nodes: BoolArray, *, is_root: bool = False) -> SearchResult:
        """Search the trees of some features, and offer the best one; the bound of the root is one for all."""
        reduced, driver = self._problem_of(allowed, at_nodes), self.driver
        # Where the first one takes all that it gets, its best features are searched next.
        left = driver.left / 2.0 if is_root else driver.left
        within = replace(driver.settings, time_limit=None if np.isinf(left) else left, start=None)
        start = driver.incumbent.tree
        if start is not None and not self._is_in(start, allowed, at_nodes):
            start = without_weights(
                reduced.start_without_search(seed=driver.settings.seed), reduced.forbidden
            )

        def told(event: Event) -> bool:
            bound = event.bound if is_root else self.bound
            return driver.report(bound, self.nodes + event.nodes) or driver.closed(event.bound)

        found = self.search.search(reduced, within, start=start, on_progress=told)
        self.nodes += found.nodes
        self.warnings.update(dict.fromkeys(found.warnings))
        tree = without_weights(found.tree, reduced.forbidden)
        if tree is not None:
            self.nearest = self.nearest or tree
            driver.offer(tree)
        return replace(found, tree=tree)

    def _problem_of(self, allowed: BoolArray, at_nodes: BoolArray) -> ProblemData:
        """Return the problem of a box; what is bound to the data is kept while their features stay."""
        if self._reduced is None or (self._reduced[0] != allowed).any():
            self._reduced = allowed, without_features(self.problem, allowed)
        reduced, labels = self._reduced[1], self.problem.data.features.labels
        barred = [
            Forbid(tuple(labels[j] for j in np.flatnonzero(~own)), (t,))
            for t, own in enumerate(at_nodes)
            if not own.all()
        ]
        return replace(reduced, constraints=(*reduced.constraints, *barred)) if barred else reduced

    def _is_in(self, tree: Predictor, allowed: BoolArray, at_nodes: BoolArray) -> bool:
        """Return whether a tree uses nothing but the features of a box."""
        if at_nodes.all():
            return not self._used(tree)[~allowed].any()
        return not (self._used(tree)[~allowed].any() or self._used_at(tree)[~at_nodes].any())

    def _used_at(self, tree: Predictor) -> BoolArray:
        """Return (|B|, p) which features the nodes of a tree use."""
        used = np.zeros((len(self._related), self.problem.data.p), dtype=bool)
        for t, own in enumerate(tree.features_used().per_node):
            used[t, list(own)] = True
        return used

    def _used(self, tree: Predictor) -> BoolArray:
        used = np.zeros(self.problem.data.p, dtype=bool)
        used[list(tree.features_used().overall)] = True
        return used

    def _importance(self, tree: Predictor) -> FloatArray:
        """Return (p,) the largest weight of each feature, or 1 where all that counts is whether it is used."""
        used = self._used(tree).astype(float)
        return used * np.abs(tree.w).max(axis=0) if isinstance(tree, Tree) else used

    def _divided(self, box: _Subproblem) -> tuple[_Subproblem | None, ...] | None:
        """Return the boxes that a box is divided into; ``None`` where its tree is within all limits."""
        if (exceeded := self._exceeded(box)) is not None:
            return self._children(box, *exceeded)
        if (again := self._again(cast(Predictor, box.tree))) is None:
            return None
        t, features = again
        here, apart = box.at_nodes.copy(), box.at_nodes.copy()
        here[t, features] = False
        apart[np.ix_(self._related[t], features)] = False
        return replace(box, at_nodes=here), replace(box, at_nodes=apart)

    def _again(self, tree: Predictor) -> tuple[int, IntArray] | None:
        """Return a node of a tree and features of a group, where another node of its path uses that group, too.

        It is the one of the largest weight.
        """
        if (self._once < 0).all():
            return None
        used = self._used_at(tree)
        size = np.abs(tree.w) if isinstance(tree, Tree) else used.astype(float)
        found, largest = None, -1.0
        for number in np.unique(self._once[self._once >= 0]).tolist():
            features = np.flatnonzero(self._once == number)
            at = used[:, features].any(axis=1)
            for t in np.flatnonzero(at & (self._related & at).any(axis=1)).tolist():
                if (own := float(size[t, features].max())) > largest:
                    found, largest = (t, features), own
        return found

    def _exceeded(self, box: _Subproblem) -> tuple[int, int] | None:
        """Return a limit that the box's tree exceeds, and the group that it uses most of those that are not paid."""
        tree = cast(Predictor, box.tree)
        used, weight = self._used(tree), self._importance(tree)
        for k, row in enumerate(self.rows):
            if row.paid(used) > row.limit:
                worth = [
                    weight[group].max() if used[group].any() and cost > 0.0 and not paid else -1.0
                    for group, cost, paid in zip(row.groups, row.cost, box.paid[k], strict=True)
                ]
                return k, int(np.argmax(worth))
        return None

    def _children(
        self, box: _Subproblem, k: int, group: int
    ) -> tuple[_Subproblem | None, _Subproblem | None]:
        without, more = box.allowed.copy(), box.paid[k].copy()
        without[self.rows[k].groups[group]] = False
        more[group] = True
        paid = tuple(more if other == k else own for other, own in enumerate(box.paid))
        return self._settled(replace(box, allowed=without)), self._settled(replace(box, paid=paid))

    def _settled(self, box: _Subproblem) -> _Subproblem | None:
        """Take out the groups that limits have no room for; ``None`` where what is paid exceeds one."""
        allowed = box.allowed.copy()
        for row, paid in zip(self.rows, box.paid, strict=True):
            room = row.limit - float(row.cost @ paid)
            if room < 0.0:
                return None
            for group, cost, is_paid in zip(row.groups, row.cost, paid, strict=True):
                if not is_paid and cost > room:
                    allowed[group] = False
        return replace(box, allowed=allowed)

    def _largest_within(self, tree: Predictor, box: _Subproblem) -> tuple[BoolArray, BoolArray]:
        """Return features, and features of nodes, that are within all limits: those that a tree uses most."""
        chosen, weight = np.zeros_like(box.allowed), self._importance(tree)
        for j in np.argsort(-weight, kind="stable"):
            if box.allowed[j]:
                chosen[j] = True
                chosen[j] = all(row.paid(chosen) <= row.limit for row in self.rows)
        at_nodes = box.at_nodes.copy()
        if isinstance(tree, Tree):
            for number in np.unique(self._once[self._once >= 0]).tolist():
                features = np.flatnonzero(self._once == number)
                left = np.ones(len(at_nodes), dtype=bool)
                for t in np.argsort(-np.abs(tree.w[:, features]).max(axis=1), kind="stable").tolist():
                    left[self._related[t]] &= not left[t]
                at_nodes[np.ix_(~left, features)] = False
        return chosen, at_nodes


def _related(n_branches: int) -> BoolArray:
    """Return (|B|, |B|) whether a branch node is above or below another one."""
    above = np.zeros((n_branches, n_branches), dtype=bool)
    for t in range(1, n_branches):
        above[t] = above[(t - 1) // 2]
        above[t, (t - 1) // 2] = True
    related: BoolArray = above | above.T
    return related


def search_within(
    problem: ProblemData,
    search: TreeSearch,
    settings: SolveSettings,
    *,
    start: Predictor | None,
    on_progress: Progress | None,
) -> SearchResult:
    """Have a search find the best tree within limits on the features of the whole tree.

    Parameters
    ----------
    problem
        Its forbidden features and limits on used ones are kept here, its other constraints by the search.
    search
        A search that takes the problem without the former.
    settings, start, on_progress
        As for :meth:`~mipforest.problem.tree_search.TreeSearch.search`.

    Raises
    ------
    Unsupported
        If a certificate is asked for and there are limits: it states forbidden features alone.
    """
    check_certificate(problem, settings)
    others = [one for one in problem.constraints if is_branched_on(one) and not isinstance(one, Forbid)]
    if not others or settings.time_limit == 0:
        reduced = without_features(problem, allowed_features(problem))
        found = search.search(reduced, settings, start=start, on_progress=on_progress)
        tree = without_weights(found.tree, reduced.forbidden)
        if others and (tree is None or problem.outside(tree)):
            tree = start
        return replace(found, tree=tree)
    driver = Driver(search, problem, settings, on_progress)
    driver.offer(start)
    branching = _Branching(driver, search)
    branching.run()
    driver.warnings += branching.warnings
    proven = search.proves or branching.first is None
    ended = branching.first is None or (search.proves and driver.closed(branching.bound))
    return driver.result(
        branching.bound if proven else -np.inf,
        ended=ended,
        # The caller looks for a tree within constraints near another one, where the search keeps none.
        otherwise=branching.nearest if search.finds_within(problem) else None,
    )
