"""The tree search ``routing``: from a built problem to its groups of equal samples, and back to trees."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.columns import features_named
from mipforest.errors import Unsupported
from mipforest.heuristics.node_problems import NodeProblems, Split, weights_by_class
from mipforest.objectives.losses import HALF_SQUARED_L2, L1
from mipforest.problem.constraints import Forbid, MinLeaf, OfLabels, OncePerPath
from mipforest.problem.constraints import Split as SplitConstraint
from mipforest.problem.driver import Driver
from mipforest.problem.feature_limits import allowed_features, is_branched_on
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure
from mipforest.problem.tree_search import LOCAL_SEARCH, SearchResult, TreeSearch, get_search
from mipforest.searches.routing.given_splits import given_splits, why_not_given, with_given
from mipforest.searches.routing.leaf_limits import leaf_limits
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import subtree

if TYPE_CHECKING:
    from mipforest.searches.routing.blocks import BlockBound
    from mipforest.searches.routing.plunge import Backend, ConvexNodes, PlungeResult

#: Distinct samples up to which the search plunges: their inner products are held in memory (200 MB at this size).
MAX_GROUPS = 5000

#: Distinct samples up to which trees of support vector machines are searched: above the limit of plunges by
#: :meth:`Routing._search_many`.
MAX_MANY = 50_000

#: Entries, distinct samples times features, up to which it takes the l1 norm: with more, the simplex method of a single
#: node, which does not look at the clock, may take minutes.
MAX_ENTRIES = 1_000_000

#: The local search improves the best tree once: with so many random starts and kicks, in at most a share of the time.
LOCAL_SHARE = 0.1
FEW = {"starts": 4, "kicks": 8}

#: Share of the time that it has where plunges may give way to blocks of samples, and where samples are too many for
#: plunges.
BLOCKS_SHARE, MANY_SHARE = 0.2, 0.5

#: From so many distinct samples on, plunges that have closed less than a share of the gap after a share of the time
#: give way to blocks of samples.
MIN_BLOCKS, LITTLE, JUDGED_AFTER = 500, 0.3, 0.3

#: From so many distinct samples on, a single plunge may take longer than a local search, which then comes first.
LONG_PLUNGES = 2000

#: Up to so many distinct samples one thread searches, unless the settings say otherwise: equal fits give equal trees,
#: while several threads may find any tree within the gap.
FEW_GROUPS = 100

#: Places to which the biases of the last level are moved for a tree that satisfies constraints.
SHIFTS = 41

#: The bound is lowered by this share of the best value: what sums of rounding errors may come to, many times over.
ROUNDING = 1e-9

#: The kink of the hinge loss, and the change of its slope there.
HINGE = [[1.0, 1.0]]

_INACCURATE = "nothing is left to search: the gap asked for is smaller than the accuracy of the nodes' values"
_BLOCKS = "too many samples to plunge on all of them: the bound is that of blocks of samples"
_HERE = "with more than {} different samples routing does not run on a Dask cluster: it ran in this process"


class Routing(TreeSearch):
    """Exact search over the routings of samples, for trees whose nodes are convex problems.

    Each kind of nodes has a backend (:func:`_backend_for`): support vector machines on all features
    (:mod:`~mipforest.searches.routing.svm_backend`), trees of one or two levels that select features
    (:mod:`~mipforest.searches.routing.feature_branching`), the l1 norm on all features
    (:mod:`~mipforest.searches.routing.l1_simplex`), and all others
    (:mod:`~mipforest.searches.routing.convex_backend`).
    """

    name: ClassVar[str] = "routing"
    summary: ClassVar[str] = "exact branch and bound over the routings of samples"
    structures: ClassVar[tuple[type[Structure], ...]] = (NodeProblems,)
    limits_in_words: ClassVar[str] = "a convex loss and the norm l1 or l2, charged at every branch node"
    preferred: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    takes_dask: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        nodes = problem.structure
        assert isinstance(nodes, NodeProblems)
        if not nodes.exact or nodes.norm not in (HALF_SQUARED_L2, L1) or nodes.uncharged:
            return f"it takes {self.limits_in_words}"
        if problem.formulation.variant == "paper":
            return "variant 'paper' has constants that may cut off the best tree, and the search knows no constants"
        groups, most = len(problem.instance.distinct[0]), MAX_GROUPS
        if groups > most and _is_svm(problem):
            most = MAX_MANY
        if groups > most:
            return f"the data have {groups} different samples, and it takes {most}"
        p = problem.data.p
        if nodes.norm is L1 and groups * p > MAX_ENTRIES:
            told = f"the data have {groups} different samples of {p} features"
            return f"{told}, and it takes {MAX_ENTRIES} entries with the l1 norm"
        return ""

    def cannot_keep(self, problem: ProblemData) -> str:
        """Say why it does not keep the constraints of a problem; see :class:`TreeSearch`.

        It keeps features forbidden at nodes, given splits, and limits on what leaves hold, with limits on features of
        the whole tree and, by boxes of such forbidden features, once on each path.
        """
        own = [one for one in problem.constraints if not one.is_of_whole_tree]
        if others := [
            one
            for one in own
            if not isinstance(one, Forbid | OfLabels | MinLeaf | SplitConstraint | OncePerPath)
        ]:
            return (
                "it keeps limits on features, given splits and limits on what leaves hold, and not: "
                f"{'; '.join(map(str, others))}"
            )
        if not own:
            return ""
        if len(problem.instance.distinct[0]) > MAX_GROUPS:
            return f"it keeps constraints on leaves and nodes for up to {MAX_GROUPS} different samples"
        if reason := why_not_given(problem, _allowed(problem) & allowed_features(problem)):
            return reason
        of_columns = [
            one for one in own if isinstance(one, OncePerPath) and not one.of_single_features(problem.data)
        ]
        if of_columns:
            return f"the rows of {of_columns[0]} let a path use one feature of a column, and it keeps one node of it"
        of_one_label = any(is_branched_on(one) for one in problem.constraints)
        if (
            problem.once("routing: first tree", lambda: _first_tree(problem, of_one_label=of_one_label))
            is None
        ):
            return "it has no tree to begin with that satisfies the constraints"
        return ""

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches.routing.blocks import BlockBound
        from mipforest.searches.routing.certificate_writer import writing
        from mipforest.searches.routing.search import PlungeSlices, RoutingSearch
        from mipforest.searches.workers import Workers

        driver = Driver(self, problem, settings, on_progress)
        if why_not_given(problem, _allowed(problem)):
            return driver.result(np.inf, ended=True)  # of a box of features
        trees = _CandidateTrees(driver, start)
        nodes = trees.convex_nodes()
        if len(nodes.X) > MAX_GROUPS:
            return self._search_many(driver, nodes)
        kind = _backend_for(nodes, certified=settings.certificate is not None)
        kind.compile(problem.budget)
        threads = settings.threads or (1 if len(nodes.X) <= FEW_GROUPS else os.cpu_count() or 1)
        with ExitStack() as opened:
            workers = None
            if settings.dask is not None:
                part, threads = (kind, nodes), settings.threads or 1
                workers = Workers(settings.dask, PlungeSlices, part, problem.budget, driver.left)
                opened.enter_context(workers)
            named = self.names_in_certificate(problem)
            writer = opened.enter_context(
                writing(settings.certificate, lambda file: kind.writer(file, nodes, **named))
            )
            progress = _Progress(driver)
            if writer is None and not nodes.l1 and nodes.budget is None:
                by_blocks = workers is None and _is_svm(problem) and len(nodes.X) >= MIN_BLOCKS
                progress.begin_at(nodes, watched=by_blocks)
            progress.report()
            backend = kind(nodes, logs=writer is not None)
            long = progress.is_watched and len(nodes.X) >= LONG_PLUNGES
            if long and not driver.closed(progress.root):
                progress.improve_locally(BLOCKS_SHARE)

            def improve() -> float:
                progress.improve_locally(LOCAL_SHARE, **FEW)
                search.deadline = driver.deadline
                return driver.value

            search = RoutingSearch(
                backend,
                gap=settings.gap,
                complete=trees.realised,
                propose=trees.proposed if backend.needs_trees else lambda _: np.inf,
                scores=trees.scores if backend.needs_trees else None,
                known=lambda: driver.value,
                improve=None if long or get_search(LOCAL_SEARCH).objection(problem) else improve,
                threads=threads,
                workers=workers,
                writer=writer,
            )
            outcome = search.run(
                driver.value,
                deadline=driver.deadline,
                floor=progress.root,
                on_progress=lambda _, bound, steps: progress.report(bound, steps),
            )
            bound, message = _lowered(outcome.bound, driver.value), ""
            if writer is not None:
                writer.claim(driver.value, bound, trees.best.w, trees.best.b)
        driver.lost, steps, ended = outcome.lost, outcome.nodes, outcome.ended
        if progress.is_stuck and not driver.stopped and not outcome.proven:
            progress.is_stuck = False
            if not long:
                progress.improve_locally(BLOCKS_SHARE)
            blocks = BlockBound(nodes)
            ended = self._by_blocks(progress, blocks, threads, outcome.nodes)
            bound, steps = max(bound, _lowered(blocks.bound, driver.value)), steps + blocks.steps
            message = _BLOCKS
        if outcome.ended and not outcome.proven:
            message = _INACCURATE
        return driver.result(bound, ended=ended, nodes=steps, message=message)

    def _search_many(self, driver: Driver, nodes: ConvexNodes) -> SearchResult:
        """Search where samples are too many for plunges: a local search for the tree, and a bound by blocks of samples.

        Raises
        ------
        Unsupported
            If a certificate was asked for.
        """
        from mipforest.searches.routing.blocks import BlockBound
        from mipforest.searches.routing.svm_backend import SvmBackend

        settings = driver.settings
        if settings.certificate is not None:
            raise Unsupported(
                f"routing writes certificates of at most {MAX_GROUPS} different samples, and the data have "
                f"{len(nodes.X)}",
                hint="leave out certificate, or take fewer samples",
                option="leave out --certificate, or take fewer samples",
            )
        if settings.dask is not None:
            driver.warnings.append(_HERE.format(MAX_GROUPS))
        SvmBackend.compile(driver.problem.budget)
        progress = _Progress(driver)
        progress.report()  # before the root's bound, which takes a second where samples are many
        blocks = BlockBound(nodes)
        progress.root, steps, ended = blocks.bound, 0, False
        bound = progress.root
        if not progress.report() and not driver.closed(bound):
            progress.improve_locally(MANY_SHARE)
        if not driver.over() and not driver.closed(bound):
            ended = self._by_blocks(progress, blocks, settings.threads or os.cpu_count() or 1)
            bound, steps = blocks.bound, blocks.steps
        return driver.result(_lowered(bound, driver.value), ended=ended, nodes=steps, message=_BLOCKS)

    @staticmethod
    def _by_blocks(progress: _Progress, blocks: BlockBound, threads: int, steps: int = 0) -> bool:
        """Raise the bound by blocks of samples, after some steps; return whether they cannot raise it further."""
        best = progress.driver.incumbent.tree
        return blocks.run(
            best.w,
            best.b,
            deadline=progress.driver.deadline,
            threads=threads,
            on_progress=lambda bound, more: progress.report(bound, steps + more),
        )


class _Progress:
    """What the parts of a search report, and whether plunges close too little of the gap to go on.

    Attributes
    ----------
    root
        The root's bound, above which the gap is to be closed.
    is_watched, is_stuck
        Whether plunges may give way to blocks of samples, and whether they are to.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.root, self.is_watched, self.is_stuck = driver, 0.0, False, False
        self._bound, self._judged_after = 0.0, np.inf

    def begin_at(self, nodes: ConvexNodes, *, watched: bool = False) -> None:
        """Begin with the root's bound; where plunges are watched, judge them after a share of the time."""
        from mipforest.searches.routing.blocks import root_bound

        self.root = root_bound(nodes)
        limit = self.driver.settings.time_limit
        if watched and limit is not None:
            self.is_watched, self._judged_after = True, JUDGED_AFTER * limit

    def report(self, bound: float = 0.0, steps: int = 0) -> bool:
        """Report bound and steps; return whether to stop."""
        driver = self.driver
        self._bound = max(self._bound, bound, self.root)
        driver.report(_lowered(self._bound, driver.value), steps)
        if driver.seconds() >= self._judged_after:
            self._judged_after = np.inf
            self.is_stuck = self._bound - self.root < LITTLE * (driver.value - self.root)
        return driver.stopped or self.is_stuck

    def improve_locally(self, share: float, **options: int) -> None:
        """Improve the best tree in a share of the time left, unless plunges turn out to be stuck."""
        self.driver.improve_locally(share=share, stop=self.report, **options)


def _allowed(problem: ProblemData) -> BoolArray:
    """Return (|B|, p) which features each node may use, as constraints on some nodes have it."""
    allowed = np.ones((problem.topology.n_branches, problem.data.p), dtype=bool)
    for constraint in problem.constraints:
        if isinstance(constraint, Forbid) and constraint.nodes is not None:
            features = np.concatenate([features_named(problem.data, name) for name in constraint.features])
            allowed[np.ix_(np.array(constraint.nodes), features)] = False
    allowed[:, list(problem.forbidden.values())] = False
    for t, split in given_splits(problem).items():
        allowed[t] &= np.arange(problem.data.p) == split.feature
    return allowed


def _first_tree(problem: ProblemData, *, of_one_label: bool = False) -> Tree | None:
    """Return a tree that satisfies constraints on leaves, if one is found: of one label, or else of moved biases."""
    nodes, topology = problem.structure, problem.topology
    assert isinstance(nodes, NodeProblems)
    known: Tree | None = problem.instance.known
    zero, given = np.zeros(problem.data.p), given_splits(problem)
    for bias in (1.0, -1.0):
        tree = nodes.tree(dict.fromkeys(topology.branches, Split(zero, bias, np.nan)), problem.data, topology)
        tree = with_given(tree, problem, given)
        if not problem.outside(tree):
            return tree
    if known is None or of_one_label:
        return None
    return _moved_within(with_given(known, problem, given), problem)


def _moved_within(tree: Tree, problem: ProblemData) -> Tree | None:
    """Return a tree whose biases at the last level are moved by the least of some steps that satisfies constraints."""
    given = given_splits(problem)
    last = np.array([t for t in problem.topology.last_branches if t not in given], dtype=np.int64)
    if not len(last):
        return None
    scores = problem.data.X @ tree.w[last].T + tree.b[last]
    steps = -np.quantile(scores, np.linspace(0.0, 1.0, SHIFTS))
    for step in steps[np.argsort(np.abs(steps), kind="stable")]:
        b = tree.b.copy()
        b[last] += step
        if not problem.outside(moved := replace(tree, b=b)):
            return moved
    return None


def _is_svm(problem: ProblemData) -> bool:
    """Return whether nodes are support vector machines on all features."""
    nodes = problem.structure
    assert isinstance(nodes, NodeProblems)
    all_features = nodes.budget is None and nodes.norm is HALF_SQUARED_L2
    return all_features and nodes.exact and nodes.loss.convex.kinks().tolist() == HINGE


def _backend_for(nodes: ConvexNodes, *, certified: bool) -> type[Backend]:
    """Return the first backend that takes a problem; the last one takes any."""
    # Imported here, as they import the compiler.
    from mipforest.searches.routing.convex_backend import ConvexBackend
    from mipforest.searches.routing.feature_branching import FeatureBackend
    from mipforest.searches.routing.l1_simplex import L1Backend
    from mipforest.searches.routing.svm_backend import SvmBackend

    backends: tuple[type[Backend], ...] = (SvmBackend, FeatureBackend, L1Backend, ConvexBackend)
    return next(kind for kind in backends if kind.takes(nodes, certified=certified))


def _lowered(bound: float, objective: float) -> float:
    """Return a bound that rounding errors cannot have raised, at least 0 as no term of the objective is negative."""
    return max(0.0, min(bound, objective) - ROUNDING * abs(objective))


class _CandidateTrees:
    """Trees made from what a search finds, which the driver is offered."""

    def __init__(self, driver: Driver, start: Tree | None) -> None:
        self._driver, problem = driver, driver.problem
        self._problem = problem
        nodes = problem.structure
        assert isinstance(nodes, NodeProblems)  # ``refusal`` has seen to it
        self._nodes: NodeProblems = nodes
        self._data = problem.data
        self._X, self._group = problem.instance.distinct
        self._allowed, self._limits = _allowed(problem), leaf_limits(problem)
        self._given = given_splits(problem)
        for tree in (_first_tree(problem), problem.instance.known, start):
            if tree is not None:
                self.offer_or_move(tree)
                # A search for features takes seconds, and has been; so do all sides of many samples.
                if self._polishes and problem.data.n <= nodes.exact_up_to:
                    self.offer_or_move(problem.formulation.polish(tree, problem.instance))

    @property
    def best(self) -> Tree:
        """The best tree."""
        tree: Tree = self._driver.incumbent.tree
        return tree

    def convex_nodes(self) -> ConvexNodes:
        """Return what the search needs.

        Raises
        ------
        Unsupported
            If there is no tree whose value bounds the nodes.
        """
        from mipforest.searches.routing.plunge import ConvexNodes

        if not np.isfinite(self._driver.value):
            raise Unsupported(
                "routing has no tree to begin with: neither that without splits nor another that is known satisfies "
                "the model, so that a constraint must have been added, and a tree search sees no rows",
                hint="use a matrix solver, solver='highs'",
                option="use a matrix solver, --solver highs",
            )
        weight = weights_by_class(self._data, self._group, len(self._X))
        topology, C = self._problem.topology, np.asarray(self._nodes.C, dtype=np.float64)
        # As in step 1 to 3 of formulations.margins: an optimal tree has ||w|| <= R and a score within v of 0 at
        # every node, so in centred coordinates |b| <= v + R * (largest distance + largest norm).
        loss, norm = self._nodes.loss.convex, self._nodes.norm
        radius = float(norm.radius(np.array(self._driver.value)))
        size = float(norm.dual(self._X - self._X.mean(axis=0)).max(initial=0.0))
        limit = np.full(topology.n_branches, loss.flat_from + 3.0 * radius * size)
        return ConvexNodes(
            X=self._X,
            weight=weight,
            C=C,
            bias_limit=limit,
            depth=topology.depth,
            epsilon=self._nodes.epsilon,
            kinks=loss.kinks(),
            l1=norm is L1,
            budget=self._nodes.budget,
            alpha=np.inf if self._nodes.alpha is None else self._nodes.alpha,
            allowed=None if self._allowed.all() and not self._given else self._allowed,
            limits=self._limits,
            given=self._given,
        )

    @property
    def _polishes(self) -> bool:
        """Whether nodes may use all features, so that the formulation may solve them anew."""
        return self._nodes.budget is None and bool(self._allowed.all()) and not self._given

    def scores(self) -> FloatArray:
        """Return the scores (G, |B|) of the groups at the nodes of the best tree."""
        return self.best.scores(self._X)

    def realised(self, result: PlungeResult) -> float:
        """Return the value of the best tree with a complete routing; inf where no hyperplanes realise it."""
        node: Any = result.node
        topology = self._problem.topology
        at = node.reached.astype(np.int64)[self._group]
        chosen = self._chosen(node)
        splits: dict[int, Split] = {}
        for t in reversed(topology.branches):
            goes_right = _below(at, topology.right(t), topology)
            kept = goes_right | _below(at, topology.left(t), topology)
            here = kept | (at == t)
            if t in self._given:
                continue  # :meth:`offer` has its weight
            features = None if chosen is None else np.flatnonzero(chosen[t])
            right = goes_right[here] if kept.any() or t in topology.upper_branches else None
            split = self._split(t, here, right, features, kept[here])
            if split is None:
                return float("inf")
            splits[t] = split
        return self.offer_or_move(self._tree(splits))

    def offer_or_move(self, tree: Tree) -> float:
        """Offer a tree, and one like it within limits on leaves where it breaks them; return what the first is worth.

        The latter sends to another side at the last level what a moved bias sends there, and is the best one that does.
        """
        tree = with_given(tree, self._problem, self._given)
        value = self.offer(tree)
        if self._limits is None or np.isfinite(value):
            return value
        moved = _moved_within(tree, self._problem)
        if moved is None:
            return value
        self.offer(moved)
        data, topology = self._data, self._problem.topology
        path, before, after = tree.decision_path(data.X), tree.scores(data.X) >= 0, moved.scores(data.X) >= 0
        for kept in (before != after, np.ones_like(before)):
            splits = {t: Split(tree.w[t], float(tree.b[t]), np.nan) for t in topology.upper_branches}
            for t in (t for t in topology.last_branches if t not in self._given):
                here = path[:, t] > 0
                usable = self._allowed[t] if self._nodes.budget is None else tree.w[t] != 0.0
                split = self._split(t, here, after[here, t], np.flatnonzero(usable), kept[here, t])
                splits[t] = Split(moved.w[t], float(moved.b[t]), np.nan) if split is None else split
            self.offer(self._tree(splits))
        return value

    def proposed(self, result: PlungeResult) -> float:
        """Return the value of the tree that routes samples by the hyperplanes of a plunge, its nodes solved anew."""
        splits: dict[int, Split] = {}
        here = {0: np.arange(self._data.n)}
        topology, X = self._problem.topology, self._data.X
        chosen = self._chosen(result.node)
        for t in topology.branches:
            w, features = result.weights[t], None
            if chosen is not None:
                w, features = np.where(chosen[t], w, 0.0), np.flatnonzero(chosen[t])
            splits[t], right = Split(w, float(result.bias[t]), np.nan), None
            if t in topology.upper_branches:
                splits[t], right = self._nodes.route(splits[t], X[here[t]])
                if t in self._given:
                    right = self._given[t].right(X[here[t]])
                here[topology.left(t)], here[topology.right(t)] = here[t][~right], here[t][right]
            if not self._polishes and t not in self._given:
                found = self._split(t, here[t], right, features)
                splits[t] = splits[t] if found is None else found
        tree = self._tree(splits)
        if self._polishes:
            tree = self._problem.formulation.polish(tree, self._problem.instance)
        return self.offer_or_move(tree)

    def _split(
        self,
        t: int,
        rows: Any,
        right: BoolArray | None,
        features: IntArray | None,
        kept: BoolArray | None = None,
    ) -> Split | None:
        """Return the best split of node t for some samples; see :meth:`NodeProblems.split`."""
        data, p = self._data, self._data.p
        X, sign, weight = data.X[rows], data.sign[rows], data.weights[rows]
        if features is not None and not len(
            features
        ):  # a feature that is 0 everywhere leaves the bias alone to choose
            none = self._nodes.split(
                t, np.zeros((len(X), 1)), sign, weight, right=right, kept=kept, features=np.zeros(1, np.int64)
            )
            return None if none is None else replace(none, w=np.zeros(p))
        return self._nodes.split(t, X, sign, weight, right=right, kept=kept, features=features)

    def _chosen(self, node: Any) -> BoolArray | None:
        """Return the features (|B|, p) that an open node has chosen, or may use; ``None`` for all."""
        from mipforest.searches.routing.convex_backend import SubproblemNode
        from mipforest.searches.routing.feature_branching import FeatureNode

        if isinstance(node, SubproblemNode | FeatureNode):
            return node.features
        return None if self._allowed.all() else self._allowed

    def _tree(self, splits: dict[int, Split]) -> Tree:
        return self._nodes.tree(splits, self._data, self._problem.topology)

    def offer(self, tree: Tree) -> float:
        """Offer a tree to the incumbent, and return what it says: a value that may prune."""
        tree = with_given(tree, self._problem, self._given)
        return self._driver.offer(_near_samples(tree, self._data.X, self._nodes.loss.flat_from))


def _below(at: IntArray, node: int, topology: Topology) -> BoolArray:
    """Return whether nodes (n,), leaves among them, are at or below a node."""
    return np.isin(at, subtree(node, topology.n_nodes))


def _near_samples(tree: Tree, X: FloatArray, flat_from: float) -> Tree:
    """Move biases so that some score is within the last kink of 0 from either side: no side changes, no loss grows."""
    scores = tree.scores(X)
    above, below = scores.min(axis=0) - flat_from, -flat_from - scores.max(axis=0)
    return replace(tree, b=tree.b - np.maximum(above, 0.0) + np.maximum(below, 0.0))
