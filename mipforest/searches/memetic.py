r"""Alternating and memetic search for univariate trees: every split in turn, and a population of trees.

**TAO**, tree alternating optimisation of univariate trees, one node after the other with all others fixed. Source: M.
Carreira-Perpiñán, P. Tavallali, *Alternating optimization of decision trees, with application to learning sparse
oblique trees*, NeurIPS 2018. With the structure fixed and a loss :math:`E` that is a sum over samples, a node z sees
the samples :math:`R_z` that reach it:

- A leaf predicts what loses least on :math:`R_z`; on a tie it keeps what it predicts.
- At a split, sample i loses :math:`l_i` in the left subtree as it is now, and :math:`r_i` in the right one. The samples
  with :math:`l_i = r_i` do not matter. Among the others, the *care set*, the best split on one feature is exact: sort
  them by the feature, and maximise the sum of :math:`r_i - l_i` over those on the left. To send all to one side is a
  candidate, too. The split is replaced only where E falls.

Nodes of one depth are independent, and going upwards the samples that reach a node have not changed yet. E never rises
and takes finitely many values, so it ends; then no single split and no single prediction can be improved. It is no
global optimum, and proves nothing.

Where both children are leaves, the split is chosen together with both predictions (``joint``, not in the paper): with
the same prediction on both sides the care set is empty, and the plain step is stuck, as trees of CART often are.

A :class:`SplitTree` holds the splits of a tree, which can be changed: alternating and memetic search work on it.

**TMO** is a memetic algorithm for univariate trees, whose trees are crossed over and improved by TAO. Source: tree
memetic optimisation in the thesis that OLCT is from. A population of trees, those of a random forest, each improved by
TAO. In each generation a bootstrap sample is drawn; every tree is crossed with another one, the child is improved on
the bootstrap sample, and takes its parent's place at once where its objective on all samples is less. There is no
mutation, and no pressure in choosing mates.

A tree of depth D is the list of its nodes above the last level, breadth first: a split, a leaf, or nothing. A child
takes every entry from the second parent with a probability, and is repaired entry after entry by the thesis' rules. As
the rules for many entries at once are not stated there, each applies to the tree as it is by then.

The tree searches ``tao`` and ``tmo`` go from a problem to trees of splits, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart, forest_trees
from mipforest.heuristics.thresholds import chosen_features, univariate_tree
from mipforest.objectives.leaf_losses import LabelLoss, LeafLoss
from mipforest.problem.driver import Driver
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.structure import Structure, TreeCharges, UnivariateProblem
from mipforest.problem.tree_search import SearchResult, TreeSearch
from mipforest.searches.numbers import require_charges, require_limits
from mipforest.settings import SolveSettings
from mipforest.solvers.solution import Progress
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import midpoint

#: Passes over all nodes at most: two or three are usual.
PASSES = 50

#: Least improvement that counts, as a share of the loss of one leaf: far above what rounding makes of sums.
TOLERANCE = 1e-9

#: Positions of a split that are tried, the best first, where leaves have a least size.
TRIED = 20


@dataclass(frozen=True, eq=False)
class SampleLoss:
    """What single samples lose.

    Attributes
    ----------
    y, weight
        (n,) targets and weights of the samples; (n, T) targets.
    loss
        What leaves lose.
    """

    y: FloatArray
    weight: FloatArray
    loss: LeafLoss

    def of(self, rows: IntArray, prediction: FloatArray) -> FloatArray:
        """Return what each of some samples (m,) loses with its prediction (m,), (m, T) of several targets."""
        lost: FloatArray = self.weight[rows] * self.loss.subset(rows).of(prediction, self.y[rows])
        return lost

    def best(self, rows: IntArray, present: Any) -> Any:
        """Return the prediction that loses least on some samples; the present label on a tie, and without samples."""
        if not len(rows):
            return present
        loss, y, weight = self.loss.subset(rows), self.y[rows], self.weight[rows]
        found = loss.best_constant(y, weight)
        if isinstance(loss, LabelLoss) and loss.total(present, y, weight) <= loss.total(found, y, weight):
            return present
        return found

    def of_two_leaves(self, order: IntArray) -> FloatArray | None:
        """Return (p, m - 1) the loss of two leaves between which sorted samples (p, m) are cut; ``None``: not known."""
        if not self.loss.has_sums:
            return None
        each = self.loss.statistics(self.loss.centred(self.y, self.weight), self.weight)
        left, least = each[order].cumsum(axis=1), 0.5 * float(each[:, 0].min())
        rest = left[:, -1:] - left[:, :-1]
        both: FloatArray = self.loss.of_sums(left[:, :-1], least) + self.loss.of_sums(rest, least)
        return both


@dataclass(frozen=True, eq=False)
class ImprovedTree:
    """A tree with its predictions.

    Attributes
    ----------
    tree
        Its structure.
    prediction
        (2^(D+1) - 1,) of every node, (2^(D+1) - 1, T) of several targets; that of a leaf counts.
    value
        Loss, and the cost of its splits.
    values
        Loss at the beginning and after every visit of a node, which never rises.
    """

    tree: SplitTree
    prediction: FloatArray
    value: float
    values: tuple[float, ...] = ()


class AlternatingOptimization:
    """TAO on one set of samples.

    Parameters
    ----------
    X
        (n, p) features.
    charges
        What trees are charged: the loss, the least leaf size and the cost of a split.
    joint
        Whether splits above two leaves are chosen together with their predictions; not for absolute errors.

    Raises
    ------
    DataValueError
        If a number is NaN, infinite, or too large to compute with.
    """

    def __init__(self, X: FloatArray, charges: TreeCharges, *, joint: bool = True) -> None:
        require_charges("tao", charges, X)
        self.X, self.charges, self._joint = X, charges, joint
        self.loss = SampleLoss(np.asarray(charges.y, dtype=np.float64), charges.weights, charges.loss)
        self._order = np.argsort(X, axis=0, kind="stable").T
        everything = np.arange(len(X))
        self.prediction = charges.loss.best_constant(self.loss.y, charges.weights)
        lost = self._loss_of_leaf(everything, self.prediction)
        self._tolerance = TOLERANCE * max(lost, np.finfo(float).tiny)

    def of(self, rows: IntArray) -> AlternatingOptimization:
        """Return the same on other samples: some of these, repeated or not."""
        return AlternatingOptimization(self.X[rows], self.charges.subset(rows), joint=self._joint)

    def fitted(self, tree: SplitTree) -> ImprovedTree:
        """Return a tree with its best predictions and its value."""
        prediction = _repeated(self.prediction, 2 * len(tree.feature) + 1).copy()
        lost = 0.0
        for t, rows in self._reaching(tree):
            if tree.is_leaf(t):
                prediction[t] = self.loss.best(rows, prediction[t])
                lost += self._loss_of_leaf(rows, prediction[t])
        return ImprovedTree(tree, prediction, lost + self.charges.split_cost * tree.n_splits)

    def improve(
        self, tree: SplitTree, *, passes: int = PASSES, halted: Callable[[], bool] = lambda: False
    ) -> ImprovedTree:
        """Improve a tree until no single split and no prediction can be; then take out what splits nothing.

        Parameters
        ----------
        tree
            Where to begin; not changed.
        passes
            Passes over all nodes at most.
        halted
            Asked before every node whether to leave the tree as it is by then.
        """
        fitted = self.fitted(tree.copy())
        tree, prediction = fitted.tree, fitted.prediction
        values = [fitted.value - self.charges.split_cost * tree.n_splits]
        for _ in range(passes):
            before = values[-1]
            for t, rows in reversed(list(self._reaching(tree))):
                if halted():
                    break
                if tree.is_leaf(t):
                    present = prediction[t].copy()
                    prediction[t] = self.loss.best(rows, present)
                    change = self._loss_of_leaf(rows, prediction[t]) - self._loss_of_leaf(rows, present)
                else:
                    change = self._improve_split(tree, prediction, t, rows)
                values.append(values[-1] + change)
            if values[-1] >= before - self._tolerance:
                break
        return replace(self.pruned(tree), values=tuple(values))

    def pruned(self, tree: SplitTree) -> ImprovedTree:
        """Return a tree without splits that part too little or do not pay for themselves, its predictions the best.

        A split with a side of fewer samples than a leaf must have gives way to its larger side: of a tree that was
        improved on other samples, every leaf is then large enough on these. Where two leaves predict the same, or the
        subtree saves less than its splits cost, the node becomes a leaf.
        """
        tree, least = tree.copy(), max(1, self.charges.N_min)
        reached = dict(self._reaching(tree))
        for t in range(len(tree.feature)):
            while tree.feature[t] >= 0:  # what is lifted to here may part too little, too
                left, right = len(reached[2 * t + 1]), len(reached[2 * t + 2])
                if min(left, right) >= least:
                    break
                tree.lift(t, 2 * t + 1 + (right > left))
                reached = dict(self._reaching(tree))
        fitted = self.fitted(tree)
        for t, rows in reversed(list(self._reaching(tree))):
            if t < len(tree.feature) and tree.feature[t] >= 0:
                predicted = self._predicted(tree, fitted.prediction, t, rows)
                below = float(self.loss.of(rows, predicted).sum())
                alone = self.loss.best(rows, self.prediction)
                saved = self._loss_of_leaf(rows, alone) - below
                left, right = 2 * t + 1, 2 * t + 2
                same = (
                    tree.is_leaf(left)
                    and tree.is_leaf(right)
                    and np.array_equal(fitted.prediction[left], fitted.prediction[right])
                )
                if same or saved < self.charges.split_cost * self._splits_below(tree, t):
                    tree.cut(t)
                    fitted.prediction[t] = alone
        return self.fitted(tree)

    # ------------------------------------------------------------------ one node

    def _improve_split(self, tree: SplitTree, prediction: FloatArray, t: int, rows: IntArray) -> float:
        """Replace a split by the best one where that loses less; return the change of the loss."""
        if not len(rows):
            return 0.0
        left, right = 2 * t + 1, 2 * t + 2
        lost_left = self.loss.of(rows, self._predicted(tree, prediction, left, rows))
        lost_right = self.loss.of(rows, self._predicted(tree, prediction, right, rows))
        goes_right = self.X[rows, tree.feature[t]] >= tree.threshold[t]
        now = float(np.where(goes_right, lost_right, lost_left).sum())
        if self._joint and tree.is_leaf(left) and tree.is_leaf(right):
            change = self._improve_with_leaves(tree, prediction, t, rows, now)
            if change < 0.0:
                return change
        care = lost_left != lost_right
        if not care.any():
            return 0.0
        order = self._sorted(rows[care])
        of_row = np.zeros((2, len(self.X)))
        of_row[:, rows] = lost_left, lost_right
        # Both sides are added up, and nothing is subtracted: a rate of 0 loses without limit.
        below, above = of_row[0][order].cumsum(axis=1), of_row[1][order][:, ::-1].cumsum(axis=1)[:, ::-1]
        value = below[:, :-1] + above[:, 1:] + lost_left[~care].sum()
        change = self._apply_best(tree, t, rows, order, value, now)
        least, threshold = min((float(lost_right.sum()), -np.inf), (float(lost_left.sum()), np.inf))
        if least - now < change - self._tolerance:
            before = tree.threshold[t]
            tree.threshold[t] = threshold
            if self._large_enough(tree, t, rows):
                return least - now
            tree.threshold[t] = before
        return change

    def _improve_with_leaves(
        self, tree: SplitTree, prediction: FloatArray, t: int, rows: IntArray, now: float
    ) -> float:
        """Replace a split above two leaves together with their predictions; return the change of the loss."""
        order = self._sorted(rows)
        both = self.loss.of_two_leaves(order)
        if both is None or not both.size:
            return 0.0
        change = self._apply_best(tree, t, rows, order, both, now)
        if change < 0.0:
            goes_right = self.X[rows, tree.feature[t]] >= tree.threshold[t]
            for leaf, side in ((2 * t + 1, rows[~goes_right]), (2 * t + 2, rows[goes_right])):
                prediction[leaf] = self.loss.best(side, prediction[leaf])
        return change

    def _apply_best(
        self, tree: SplitTree, t: int, rows: IntArray, order: IntArray, value: FloatArray, now: float
    ) -> float:
        """Take the position of least value (p, m - 1) between distinct samples (p, m) where it is less than now."""
        if not value.size:
            return 0.0
        x = self.X[order, np.arange(len(order))[:, None]]
        value = np.where(x[:, 1:] > x[:, :-1], value, np.inf)
        tried = 1 if self.charges.N_min <= 1 else TRIED
        best = [int(value.argmin())] if tried == 1 else np.argsort(value, axis=None, kind="stable")[:tried]
        for position in best:
            j, k = divmod(int(position), value.shape[1])
            change = float(value[j, k]) - now
            if not change < -self._tolerance:
                return 0.0
            before = tree.feature[t], tree.threshold[t]
            tree.feature[t], tree.threshold[t] = j, midpoint(x[j, k], x[j, k + 1])
            if self._large_enough(tree, t, rows):
                return change
            tree.feature[t], tree.threshold[t] = before
        return 0.0

    def _large_enough(self, tree: SplitTree, t: int, rows: IntArray) -> bool:
        """Return whether no leaf below a node has some samples, but too few."""
        if self.charges.N_min <= 1:
            return True
        sizes = [len(here) for s, here in self._reaching(tree, t, rows) if tree.is_leaf(s)]
        return all(size == 0 or size >= self.charges.N_min for size in sizes)

    # ------------------------------------------------------------------ samples

    def _reaching(
        self, tree: SplitTree, root: int = 0, rows: IntArray | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield the nodes at and below a node, level by level, with the samples that reach them."""
        waiting = [(root, np.arange(len(self.X)) if rows is None else rows)]
        for t, here in waiting:
            yield t, here
            if t < len(tree.feature) and tree.feature[t] >= 0:
                right = self.X[here, tree.feature[t]] >= tree.threshold[t]
                waiting += [(2 * t + 1, here[~right]), (2 * t + 2, here[right])]

    def _predicted(self, tree: SplitTree, prediction: FloatArray, t: int, rows: IntArray) -> FloatArray:
        """Return what the subtree of a node predicts for samples."""
        at = np.full(len(rows), t)
        while True:
            inner = np.flatnonzero(at < len(tree.feature))
            inner = inner[tree.feature[at[inner]] >= 0]
            if not len(inner):
                predicted: FloatArray = prediction[at]
                return predicted
            here = at[inner]
            right = self.X[rows[inner], tree.feature[here]] >= tree.threshold[here]
            at[inner] = 2 * here + 1 + right

    def _loss_of_leaf(self, rows: IntArray, prediction: Any) -> float:
        return float(self.loss.of(rows, _repeated(prediction, len(rows))).sum())

    def _sorted(self, rows: IntArray) -> IntArray:
        """Return (p, m) the samples sorted by every feature."""
        wanted: BoolArray = np.zeros(len(self.X), dtype=bool)
        wanted[rows] = True
        return self._order[wanted[self._order]].reshape(len(self._order), -1)

    def _splits_below(self, tree: SplitTree, t: int) -> int:
        below = [t]
        for s in below:
            if 2 * s + 2 < len(tree.feature):
                below += [c for c in (2 * s + 1, 2 * s + 2) if tree.feature[c] >= 0]
        return len(below)


def _repeated(prediction: Any, m: int) -> FloatArray:
    """Return a prediction of m samples: (m,), or (m, T) of several targets."""
    return np.broadcast_to(np.asarray(prediction, dtype=np.float64), (m, *np.shape(prediction)))


#: What a node is that does not split: a leaf, or nothing, as a node above it is a leaf.
LEAF, ABSENT = -1, -2


@dataclass(frozen=True, eq=False)
class SplitTree:
    """The structure of a tree, in heap order; the nodes below the last level are leaves.

    Attributes
    ----------
    feature
        (2^D - 1,) feature of a split; :data:`LEAF` or :data:`ABSENT`.
    threshold
        (2^D - 1,) values from which on samples go right; infinite where all go to one side.
    """

    feature: IntArray
    threshold: FloatArray

    @classmethod
    def of(cls, tree: Tree) -> SplitTree:
        """Return the splits of a univariate tree.

        A node without a split above one with a split stands there as a split that sends all samples to the right.
        """
        feature, threshold = chosen_features(tree), -tree.b
        for t in reversed(range(len(feature) // 2)):
            if feature[t] < 0 <= max(feature[2 * t + 1], feature[2 * t + 2]):
                feature[t], threshold[t] = 0, -np.inf
        for t in range(1, len(feature)):
            if feature[(t - 1) // 2] < 0:
                feature[t] = ABSENT
        return cls(feature, threshold)

    def complete(self, data: Dataset, topology: Topology) -> Tree:
        """Return the complete tree with these splits for scaled features; its predictions are still to be chosen."""
        return univariate_tree(data, topology, np.maximum(self.feature, LEAF), self.threshold)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int((self.feature >= 0).sum())

    def is_leaf(self, t: int) -> bool:
        """Return whether a node is a leaf."""
        if t >= len(self.feature):
            return bool(self.feature[(t - 1) // 2] >= 0)
        return bool(self.feature[t] == LEAF)

    def copy(self) -> SplitTree:
        """Return a tree that can be changed without this one."""
        return SplitTree(self.feature.copy(), self.threshold.copy())

    def cut(self, t: int) -> None:
        """Make a node a leaf."""
        self.feature[t], self.threshold[t] = LEAF, 0.0
        for s in range(2 * t + 1, len(self.feature)):
            if self.feature[(s - 1) // 2] < 0:
                self.feature[s], self.threshold[s] = ABSENT, 0.0

    def lift(self, t: int, child: int) -> None:
        """Put the subtree of a child in the place of its parent t."""
        subtree = SplitTree(np.full_like(self.feature, ABSENT), np.zeros_like(self.threshold))
        moves = [(child, t)]
        for source, place in moves:
            if source >= len(self.feature):
                subtree.feature[place] = LEAF
                continue
            subtree.feature[place], subtree.threshold[place] = self.feature[source], self.threshold[source]
            if self.feature[source] >= 0:
                moves += [(2 * source + 1, 2 * place + 1), (2 * source + 2, 2 * place + 2)]
        below = {t}
        for s in range(t, len(self.feature)):
            if s == t or (s - 1) // 2 in below:
                below.add(s)
                self.feature[s], self.threshold[s] = subtree.feature[s], subtree.threshold[s]


#: Trees of the population, and generations, unless set: those of the thesis.
POPULATION, GENERATIONS = 100, 5

#: Probability that an entry is the second parent's.
CROSSOVER_RATE = 0.75


@dataclass(frozen=True, eq=False)
class MemeticResult:
    """What a memetic search has found.

    Attributes
    ----------
    best
        The best tree.
    n_trees
        Trees that were improved.
    values
        The best value after the first trees and after each generation, which never rises.
    ended
        Whether all generations came to an end.
    """

    best: ImprovedTree
    n_trees: int
    values: tuple[float, ...]
    ended: bool


def random_split(X: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Draw a feature and a threshold midway between two of its neighbouring values; -1 if all are constant."""
    features = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if not len(features):
        return LEAF, 0.0
    j = int(rng.choice(features))
    values = np.unique(X[:, j])
    k = int(rng.integers(len(values) - 1))
    return j, midpoint(values[k], values[k + 1])


def crossover(
    first: SplitTree,
    second: SplitTree,
    rng: np.random.Generator,
    draw: Callable[[], tuple[int, float]],
    *,
    rate: float = CROSSOVER_RATE,
) -> SplitTree:
    """Return the first tree with some entries of the second, repaired.

    Parameters
    ----------
    first, second
        Trees of one depth.
    rng
        Draws which entries are the second's.
    draw
        Draws the splits of nodes that must be there above an entry, and are not.
    rate
        Probability of an entry, 0 to 1.
    """
    child = first.copy()
    for t in range(len(child.feature)):
        if rng.random() >= rate:
            continue
        given = second.feature[t]
        if given >= 0:
            _split(child, t, int(given), float(second.threshold[t]), draw)
        elif given == LEAF and child.feature[t] >= 0:
            child.cut(t)
        elif given == ABSENT and child.feature[t] != ABSENT:
            child.cut((t - 1) // 2)
    return child


def _split(
    tree: SplitTree, t: int, feature: int, threshold: float, draw: Callable[[], tuple[int, float]]
) -> None:
    """Split a node; where it is not there, its ancestors split first."""
    if tree.feature[t] == ABSENT:
        above = (t - 1) // 2
        if tree.feature[above] < 0:
            _split(tree, above, *draw(), draw)
        if tree.feature[above] < 0:
            return  # nothing can be drawn
    was_split = tree.feature[t] >= 0
    tree.feature[t], tree.threshold[t] = feature, threshold
    if feature >= 0 and not was_split and 2 * t + 1 < len(tree.feature):
        tree.feature[[2 * t + 1, 2 * t + 2]] = LEAF


def evolve(
    samples: AlternatingOptimization,
    trees: Sequence[SplitTree],
    *,
    generations: int = GENERATIONS,
    seed: int = 0,
    deadline: float = np.inf,
    on_progress: Callable[[float, int], bool] | None = None,
) -> MemeticResult:
    """Improve a population of trees by crossover and alternating optimisation.

    Parameters
    ----------
    samples
        The samples and what trees are charged.
    trees
        The first trees, at least one.
    generations
        How often every tree is crossed.
    seed
        Seed of all random numbers.
    deadline
        On the clock of :func:`time.monotonic`.
    on_progress
        Called before every node with the best value and the number of trees; returning ``True`` ends the search.
    """
    require_limits("tmo", deadline=deadline)
    rng = np.random.default_rng(seed)
    population: list[ImprovedTree] = []
    n_trees, values = 0, []
    best, stopped = samples.pruned(trees[0]), False

    def halted() -> bool:
        nonlocal stopped
        stopped = stopped or monotonic() >= deadline
        stopped = stopped or (on_progress is not None and bool(on_progress(best.value, n_trees)))
        return stopped

    def count_and_stop() -> bool:
        nonlocal n_trees
        n_trees += 1
        return halted()

    for tree in trees:
        population.append(samples.improve(tree, halted=halted))
        best = min(best, population[-1], key=lambda found: found.value)
        if count_and_stop():
            return MemeticResult(best, n_trees, (best.value,), ended=False)
    values.append(best.value)
    n = len(samples.X)
    for _ in range(generations if len(population) > 1 else 0):
        drawn = samples.of(rng.integers(n, size=n))
        for i in range(len(population)):
            j = int(rng.integers(len(population) - 1))
            mate = population[j + (j >= i)].tree
            child = crossover(population[i].tree, mate, rng, lambda: random_split(samples.X, rng))
            found = samples.pruned(drawn.improve(child, halted=halted).tree)
            if found.value < population[i].value:
                population[i] = found
            if found.value < best.value:
                best = found
            if count_and_stop():
                return MemeticResult(best, n_trees, (*values, best.value), ended=False)
        values.append(best.value)
    return MemeticResult(best, n_trees, tuple(values), ended=True)


class AlternatingSearch(TreeSearch):
    """Tree alternating optimisation from the start tree, or from CART."""

    name: ClassVar[str] = "tao"
    summary: ClassVar[str] = "alternating optimisation of one split after the other, from a tree"
    structures: ClassVar[tuple[type[Structure], ...]] = (UnivariateProblem,)
    proves: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True
    #: Trees of a random forest to begin with, and generations, unless the options say otherwise.
    population: ClassVar[int] = 0
    generations: ClassVar[int] = 0
    message: ClassVar[str] = "no single split can be improved; alternating optimisation proves nothing"

    def search(
        self,
        problem: ProblemData,
        settings: SolveSettings,
        *,
        start: Tree | None,
        on_progress: Progress | None,
    ) -> SearchResult:
        """Search for a good tree; see :class:`~mipforest.problem.tree_search.TreeSearch`."""
        driver = Driver(self, problem, settings, on_progress)
        data, charges = problem.data, problem.structure
        assert isinstance(charges, UnivariateProblem)  # ``refusal`` has seen to it
        samples = AlternatingOptimization(data.X, charges)
        # CART's own tree, with splits that save no errors yet: pruned, it would have fewer to improve.
        grown = cart(data, problem.topology, min_leaf=charges.N_min, seed=settings.seed)
        known = [grown] if start is None else [start, grown]
        options = settings.solver_options
        others = forest_trees(
            data,
            problem.topology,
            options.get("population", self.population),
            min_leaf=charges.N_min,
            seed=settings.seed,
            halted=driver.over,
        )
        evolved = evolve(
            samples,
            [SplitTree.of(tree) for tree in (*known, *others)],
            generations=options.get("generations", self.generations),
            seed=settings.seed,
            deadline=driver.deadline,
            on_progress=lambda value, n_trees: driver.report(nodes=n_trees, value=value / charges.unit),
        )
        driver.polish_and_offer(evolved.best.tree.complete(data, problem.topology), *known)
        message = self.message.format(evolved.n_trees)
        return driver.result(-np.inf, ended=evolved.ended, nodes=evolved.n_trees, message=message)


class MemeticSearch(AlternatingSearch):
    """Memetic search over the trees of a random forest, each improved by alternating optimisation."""

    name: ClassVar[str] = "tmo"
    summary: ClassVar[str] = "memetic search: trees of a random forest, crossed and improved by tao"
    options: ClassVar[Mapping[str, str]] = {
        "population": f"how many trees of a random forest to begin with ({POPULATION})",
        "generations": f"how often each of them is crossed with another ({GENERATIONS})",
    }
    population: ClassVar[int] = POPULATION
    generations: ClassVar[int] = GENERATIONS
    message: ClassVar[str] = "the best of {} trees; a memetic search proves nothing"
