"""The tree search ``oblique-search``: from a problem to groups and prices, and back to a tree."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.objectives.leaf_losses import PinballLoss, PrescriptionLoss
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import HyperplaneCharges, LabelledLeaves, Structure
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.trees import Tree

if TYPE_CHECKING:
    from mipforest.searches.oblique.descent import Descent
    from mipforest.searches.oblique.problem import ObliqueProblem
    from mipforest.searches.oblique.search import Split

#: Share of the time left, and most seconds, for a local search before the exact one, where there is one.
LOCAL_SHARE, LOCAL_SECONDS = 0.1, 30.0

#: Groups up to which the search does without it, as it takes longer to load than these problems take, and takes one
#: thread unless the settings say otherwise: runs are the same then.
FEW_GROUPS = 100

#: The same for the descent, node by node; and for OCT-H with many features per split, whose bounds leave gaps, so that
#: the tree is what can still be improved.
DESCENT_SHARE, DESCENT_SECONDS = 0.2, 60.0
LONG_SHARE, LONG_SECONDS = 0.6, 600.0

#: Visits of the descent without a better tree, for each group, unless splits have at most two features.
LONG_VISITS = 30

#: The same where leaves have labels, in all.
FEW_VISITS = 100

#: Share of the time after which the exact search of these makes a pause for the descent.
FIRST_SHARE = 0.2

#: Numbers of samples between which OCT-H with any number of features was measured beside a matrix solver.
MEASURED = 150, 1_000

#: Most different targets with absolute loss: each is a possible prediction, with a column of charges.
MOST_TARGETS = 200


class ObliqueSearch(TreeSearch):
    """Exact search for trees of hyperplane splits whose leaves predict classes or constants."""

    name: ClassVar[str] = "oblique-search"
    summary: ClassVar[str] = "exact branch and bound over hyperplanes, with a price per feature"
    structures: ClassVar[tuple[type[Structure], ...]] = (HyperplaneCharges, LabelledLeaves)
    limits_in_words: ClassVar[str] = "leaves predict a class or a constant"
    takes_weights: ClassVar[bool] = True
    why_no_certificate: ClassVar[str] = (
        "it discards boxes and polytopes of hyperplanes by bounds that it does not keep"
    )

    def refusal(self, problem: ProblemData) -> str:
        """Say why the search does not take a problem; empty where it does."""
        if reason := super().refusal(problem):
            return reason
        structure = problem.structure
        if not isinstance(structure, HyperplaneCharges):
            return ""
        if isinstance(structure.loss, PrescriptionLoss):
            return "its leaves prescribe a treatment, and the search takes leaves that predict a class or a constant"
        if structure.coefficient_cost is not None:
            return "its leaves predict linear functions, and the search takes leaves that predict a class or a constant"
        if isinstance(structure.loss, PinballLoss) and (n := len(np.unique(structure.y))) > MOST_TARGETS:
            return (
                f"the target has {n} different values, and with absolute loss the search takes {MOST_TARGETS}"
            )
        return ""

    def preferred_for(self, problem: ProblemData) -> bool:
        """Return whether it is stronger than a matrix solver, by ``docs/tree_searches.md``."""
        structure = problem.structure
        stronger = isinstance(structure, LabelledLeaves)
        if isinstance(structure, HyperplaneCharges):
            of_classes = structure.predicts_class and MEASURED[0] <= problem.data.n <= MEASURED[1]
            stronger = of_classes or _has_few_features(structure)
        kept = all(one.is_of_whole_tree for one in problem.constraints)
        return stronger and kept and not self.objection(problem)

    def finds_within(self, problem: ProblemData) -> bool:
        """Return whether the trees that it comes across are asked, where leaves have any label."""
        return isinstance(problem.structure, HyperplaneCharges)

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for the best tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        from mipforest.searches import compile_by
        from mipforest.searches.oblique import labelled, search
        from mipforest.searches.oblique.problem import ObliqueProblem

        structure = problem.structure
        assert isinstance(structure, HyperplaneCharges | LabelledLeaves)  # ``refusal`` has seen to it
        own = ObliqueProblem.of(structure, problem.data.X, problem.topology.depth)
        little = labelled.run_on_little if labelled.takes(own) else search.run_on_little
        compile_by(little, problem.budget, self.name, 40 if labelled.takes(own) else 10)
        driver = Driver(self, problem, settings, on_progress, keeps_constraints=False)
        for label in (0, 1):
            _offer_splits(driver, *_in_heap_order(label, problem))
        for tree in (problem.instance.known, start):
            driver.offer(tree)
        if np.isinf(own.least_price):  # a tree needs a split, and no feature is allowed
            return driver.result(np.inf, ended=True, nodes=0)
        run = _Run(driver, own)
        driver.report()
        run.improve()
        ended = run.prove()
        if ended and not driver.closed(run.bound):
            run.improve_further()
        return driver.result(run.bound, ended=ended, nodes=run.steps, message=_MESSAGE)


class _Run:
    """Local searches and exact ones in turn, which share the incumbent of a driver.

    The driver counts in the objective, searches in charges: objective = charges / unit + offset.

    Attributes
    ----------
    driver, problem
        The incumbent with its limits, and the problem in groups and prices.
    least
        Lower bound on the charges of all trees. It begins with the lesser charge of each group.
    steps
        Nodes and boxes of exact searches so far.
    pause
        When the exact search at work is to return although it has time left.
    """

    def __init__(self, driver: Driver, problem: ObliqueProblem) -> None:
        structure = driver.problem.structure
        charges = structure if isinstance(structure, HyperplaneCharges) else None
        self.driver, self._charges = driver, charges
        self._unit, self._offset = (1.0, 0.0) if charges is None else (charges.unit, charges.offset)
        self._few_features = charges is not None and _has_few_features(charges)
        self.problem = problem.capped(self.cutoff())
        self.least, self.steps, self.pause = float(self.problem.least.sum()), 0, inf
        self._descent: Descent | None = None

    def cutoff(self) -> float:
        """Return the incumbent's value in charges."""
        return (self.driver.value - self._offset) * self._unit

    @property
    def bound(self) -> float:
        """The dual bound so far, in units of the objective."""
        return self.least / self._unit + self._offset

    def halted(self, bound: float, steps: int) -> bool:
        """Report a bound on the charges; return whether the search that found it has to return."""
        proven, driver = max(bound, self.least) / self._unit + self._offset, self.driver
        halted = driver.report(proven, steps) or driver.over() or driver.closed(proven)
        return halted or monotonic() >= self.pause

    def adopt(self, tree: Split | int | None) -> float:
        """Offer a tree of an exact search; return the new cutoff."""
        _offer_splits(self.driver, *_in_heap_order(tree, self.driver.problem))
        return self.cutoff()

    # ------------------------------------------------------------------ local search

    def improve(self) -> None:
        """Improve the incumbent before the exact search."""
        from mipforest.searches.oblique.descent import VISITS

        driver, own, charges = self.driver, self.problem, self._charges
        if self._few_features and driver.problem.topology.depth == 1:
            return  # one split on two features is proven sooner than a local search ends
        if charges is not None and own.n_groups > FEW_GROUPS and not driver.stopped:
            driver.improve_locally(share=LOCAL_SHARE, most=LOCAL_SECONDS)
        if not driver.stopped and (charges is None or charges.predicts_class):
            # The exact search finds better trees itself where leaves have labels.
            many = (VISITS if self._few_features else LONG_VISITS) * own.n_groups
            self._descend(FEW_VISITS if own.given_labels else many)

    def _descend(self, visits: int) -> None:
        """Improve the incumbent node by node, for a share of the time that is left."""
        from mipforest.searches.oblique.descent import Descent

        many = self._charges is not None and not self._few_features
        share, most = (LONG_SHARE, LONG_SECONDS) if many else (DESCENT_SHARE, DESCENT_SECONDS)
        until = monotonic() + min(most, share * self.driver.left)
        if self._descent is None:
            self._descent = Descent(self.problem, self.cutoff(), self.driver.settings.seed)
        self._run_descent(self._descent, until, visits)

    def improve_further(self) -> None:
        """Improve the incumbent until time ends, where supports are left that exact searches do not take."""
        if self._descent is not None and self.driver.settings.time_limit is not None:
            self._run_descent(self._descent, inf, None)

    def _run_descent(self, descent: Descent, until: float, visits: int | None) -> None:
        """Improve the incumbent node by node, up to a time of the clock."""
        from mipforest.searches.oblique.descent import Splits

        best = self.driver.incumbent.tree
        descent.run(
            Splits(best.w, best.b),
            lambda found: _offer_splits(self.driver, found.w, found.b),
            lambda: monotonic() >= until or self.halted(self.least, self.steps),
            visits,
        )

    # ------------------------------------------------------------------ exact searches

    def prove(self) -> bool:
        """Raise the bound by exact searches, which find better trees too; return whether they ended by themselves."""
        from mipforest.searches import compile_by
        from mipforest.searches.oblique import labelled, search

        driver, own = self.driver, self.problem
        if not labelled.takes(own):
            return self._run(self._below_incumbent(search.ObliqueSearch))
        exact = self._below_incumbent(labelled.LabelledSearch)
        limited = own.given_labels and driver.settings.time_limit is not None
        self.pause = monotonic() + FIRST_SHARE * driver.left if limited else inf
        ended = self._run(exact)
        self.pause = inf
        if limited and not (ended or driver.over() or driver.closed(self.bound)):
            # What is not proven soon may take too long: a better tree comes first then.
            self._descend(LONG_VISITS * own.n_groups)
            exact.improve(self.cutoff())
            ended = self._run(exact)
        if own.N_min > 1 and ended and not (driver.over() or driver.closed(self.bound)):
            # Trees of a lesser value have leaves that are too small: the search by boxes counts these.
            compile_by(search.run_on_little, driver.problem.budget, ObliqueSearch.name, 10)
            ended = self._run(self._below_incumbent(search.ObliqueSearch))
        return ended

    def _below_incumbent(self, kind: Callable[..., Any]) -> Any:
        """Return an exact search for trees below the incumbent's value."""
        # Several threads find the same tree where leaves have labels.
        one = self.problem.n_groups <= FEW_GROUPS and not self.problem.given_labels
        threads = self.driver.settings.threads or (1 if one else os.cpu_count() or 1)
        own = self.problem.capped(self.cutoff())
        return kind(own, self.cutoff(), adopt=self.adopt, halted=self.halted, threads=threads)

    def _run(self, exact: Any) -> bool:
        """Run an exact search, or go on with it; return whether it ended by itself."""
        before = exact.steps
        ended: bool = not self.driver.stopped and exact.run()
        self.least, self.steps = max(self.least, exact.bound), self.steps + exact.steps - before
        return ended


def _has_few_features(structure: HyperplaneCharges | LabelledLeaves) -> bool:
    """Return whether splits have at most two features: lines, which the exact search takes by their directions."""
    return isinstance(structure, HyperplaneCharges) and 0 < structure.max_features <= 2


_MESSAGE = "the bound is that of all hyperplanes with the gap, less the tolerance of the rows"


def _offer_splits(driver: Driver, w: FloatArray, b: FloatArray) -> None:
    """Offer the tree of some splits (|B|, p) and (|B|,)."""
    problem = driver.problem
    if isinstance(problem.structure, HyperplaneCharges):
        tree = tree_of_splits(problem.data, problem.topology, *_raised(w, b))
        driver.offer(problem.formulation.relabel(tree, problem.instance))
    else:
        tree = tree_of_splits(problem.data, problem.topology, w, b)
        labels = np.tile([0, 1], problem.topology.n_leaves // 2).astype(np.int64)
        driver.offer(replace(tree, leaf_value=labels))


def _in_heap_order(tree: Split | int | None, problem: ProblemData) -> tuple[FloatArray, FloatArray]:
    """Return the splits (|B|, p) and (|B|,) of a tree; where a level does not split, samples go right."""
    from mipforest.searches.oblique.search import Split

    topology, given = problem.topology, isinstance(problem.structure, LabelledLeaves)
    w = np.zeros((topology.n_branches, problem.data.p))
    b = np.full(topology.n_branches, 1.0 if given else 0.0)

    def place(part: Any, t: int) -> None:
        if t >= topology.n_branches:
            return
        if isinstance(part, Split) and part.level == topology.levels[t]:
            w[t], b[t] = part.w, part.b
            place(part.left, topology.left(t))
            place(part.right, topology.right(t))
        elif t in topology.last_branches:
            b[t] = -1.0 if given and part == 0 else b[t]
        else:
            place(part, topology.right(t))

    place(tree, 0)
    structure = problem.structure
    if isinstance(structure, LabelledLeaves) and structure.needs_split and not w.any():
        # The cheapest feature is paid for, and its split leaves all samples where they go already.
        level, j = np.unravel_index(int(structure.prices.argmin()), structure.prices.shape)
        w[topology.at_level(int(level))[0], j] = (1.0 - structure.gap) / 2.0
    return w, b


def _raised(w: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the splits of a tree (|B|, p) and (|B|,) with those below a node without a split moved up to it.

    A node without a split sends all samples right. Rows of formulations allow no split below it.
    """
    raised_w, raised_b = np.zeros_like(w), np.zeros_like(b)

    def place(source: int, target: int) -> None:
        while source < len(b) and not w[source].any():
            source = 2 * source + 2
        if source < len(b):
            raised_w[target], raised_b[target] = w[source], b[source]
            place(2 * source + 1, 2 * target + 1)
            place(2 * source + 2, 2 * target + 2)

    place(0, 0)
    return raised_w, raised_b
