"""What a search may know of a problem besides its rows: the structure that a formulation states of its solutions.

A formulation returns one of these from :meth:`~mipforest.problem.operations.ModelOperations.structure`, or none, and a
search says which it takes (:attr:`~mipforest.problem.tree_search.TreeSearch.structures`). Neither knows the other's
name, so that the searches of this package take the formulations of another one, and its searches those of this package.
The structures that are here are

- :class:`TreeCharges`, of trees whose objective is a sum over leaves and splits, with :class:`HyperplaneCharges` and
  :class:`UnivariateProblem` for kinds of splits;
- :class:`LabelledLeaves`, of trees of hyperplane splits whose leaves have given labels;
- :class:`~mipforest.heuristics.node_problems.NodeProblems`, of trees whose objective is a sum of problems at the nodes;
- :class:`~mipforest.heuristics.score_cards.CardProblem`, of score cards of least log-loss;
- :class:`SmoothProblem`, of models without rows.

Another package may add its own: any class with :attr:`Structure.words`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.objectives.leaf_losses import ClassLoss, LabelLoss, LeafLoss, PrescriptionLoss, TableLoss


class Structure(Protocol):
    """What a formulation states of its solutions for searches."""

    #: What solutions there are, in a few words, for lists and refusals.
    words: ClassVar[str]


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeCharges:
    r"""What a tree is charged: a sum over its leaves, and a cost for each split.

    Attributes
    ----------
    y
        (n,) class numbers, from 0, or values; (n, T) of several targets that a leaf predicts at once.
    loss
        What leaves lose, and what they predict.
    split_cost
        Cost of a split (of a feature in a hyperplane), in units of the loss.
    N_min
        Least number of samples in a leaf.
    unit
        What all this is divided by in the objective.
    weight
        (n,) weights of the samples in the loss, above 0; 1 unless given. They do not count for ``N_min``.
    margin
        Least distance between the scores of both sides of a hyperplane, for weights of sum 1 and features in [0, 1];
        ``None`` for univariate splits.
    max_features
        Most features in a split that is a hyperplane; 0 for any number.
    coefficient_cost
        Of leaves that predict a linear function (squared loss): the cost of its coefficients, by the sum of their
        sizes, in units of the loss; ``None`` for constant leaves.
    offset
        What is added in the objective, after the division.
    """

    words: ClassVar[str] = "trees with additive losses of leaves"

    y: FloatArray | IntArray
    loss: LeafLoss
    split_cost: float = 0.0
    N_min: int = 1
    unit: float = 1.0
    weight: FloatArray | None = None
    margin: float | None = None
    max_features: int = 0
    coefficient_cost: float | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        # Compiled loops and certificates take floats, and no whole numbers in their place.
        for name in ("split_cost", "unit"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def weights(self) -> FloatArray:
        """(n,) weights of the samples."""
        return np.ones(len(self.y)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @property
    def statistics(self) -> FloatArray:
        """(n, V) statistics of the samples; where leaves predict a class, the cost (n, K) of each."""
        return self.loss.statistics(np.asarray(self.y, dtype=np.float64), self.weights)

    @property
    def predicts_class(self) -> bool:
        """Whether leaves predict one label, of a target that is no column of several."""
        return isinstance(self.loss, LabelLoss) and np.ndim(self.y) == 1

    @property
    def counts_errors(self) -> bool:
        """Whether every wrong class is charged the weight of its sample."""
        return isinstance(self.loss, ClassLoss) and self.loss.costs is None

    @property
    def estimates_all_features(self) -> bool:
        """Whether leaves prescribe by linear estimates: their fit is given, and does not minimise what is charged."""
        return isinstance(self.loss, PrescriptionLoss) and self.coefficient_cost is not None

    def subset(self, rows: IntArray) -> Self:
        """Return the same charges of some samples, by number, once or several times."""
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        return replace(self, y=self.y[rows], weight=weight, loss=self.loss.subset(rows))

    def jointly(self, combinations: IntArray) -> Self:
        """Return the same charges where every combination of labels of several targets is a label.

        Parameters
        ----------
        combinations
            (C, T) labels of each combination, as of :func:`combinations_of`.
        """
        costs, T = self.statistics, combinations.shape[1]
        of_targets = costs.reshape(len(costs), T, -1)
        # Labels that no sample has are an error for every sample.
        unseen = int(combinations.max()) + 1 - of_targets.shape[2]
        wrong = np.repeat(of_targets.max(axis=2, keepdims=True), max(0, unseen), axis=2)
        of_targets = np.concatenate([of_targets, wrong], axis=2)
        table = of_targets[:, np.arange(T), combinations].sum(axis=2)
        return replace(self, y=table.argmin(axis=1), loss=TableLoss(table), weight=None)

    def costs_of_labels(self, n_labels: int) -> FloatArray:
        """Return the (n, K) costs of so many labels: those that no sample has are an error for every sample."""
        costs = self.statistics
        unseen = max(0, n_labels - costs.shape[1])
        return np.column_stack([costs, *[self.weights] * unseen])


@dataclass(frozen=True, eq=False, kw_only=True)
class HyperplaneCharges(TreeCharges):
    """What a tree of hyperplane splits is charged: it has a :attr:`margin`."""

    words: ClassVar[str] = "trees of hyperplane splits with additive losses of leaves"

    margin: float

    @classmethod
    def of(cls, charges: TreeCharges, margin: float) -> HyperplaneCharges:
        """Return what trees are charged whose splits are hyperplanes of a margin, and all else as for others."""
        return cls(**{**vars(charges), "margin": margin})


@dataclass(frozen=True, eq=False, kw_only=True)
class UnivariateProblem(TreeCharges):
    """What a tree of univariate splits and constant leaves is charged, and its splits.

    Attributes
    ----------
    thresholds
        All thresholds of the data.
    """

    words: ClassVar[str] = "trees of univariate splits and constant leaves"

    thresholds: Thresholds


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledLeaves:
    """Trees of hyperplane splits whose leaves predict 0, 1, 0, 1, ..., and what they are charged.

    A split sends samples with ``a.x + b >= 0`` right and those with ``a.x + b <= -gap`` left, and no others reach it;
    its weights and its intercept are in [-1, 1].

    Attributes
    ----------
    group
        (n,) number of the group of each sample, from 0; the samples of a group share a leaf.
    charges
        (G, 2) what a group costs in a leaf of each label, at least 0.
    prices
        (depth, p) what a feature costs in a split of a level, at least 0; infinite where it is not allowed.
    gap
        Least distance between the scores of both sides.
    upper_intercepts
        Least intercept above the last level: below -gap/2 it leaves out no tree, as a split may be reversed there.
    needs_split
        Whether a tree without a split pays for its cheapest feature nevertheless.
    """

    words: ClassVar[str] = "trees of hyperplane splits with labelled leaves"

    group: IntArray
    charges: FloatArray
    prices: FloatArray
    gap: float
    upper_intercepts: float = -1.0
    needs_split: bool = False


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Rows that read nothing of a tree but the labels that samples get: limits of sums over its leaves.

    Attributes
    ----------
    names
        (r,) name of each row.
    use
        (r, n, K) what each label of each sample adds to a row; K are the labels of all targets, one after another.
    least, most
        (r,) sides of the rows, infinite where there is none.
    rest
        Whether something else was changed in the model, too.
    """

    names: tuple[str, ...]
    use: FloatArray
    least: FloatArray
    most: FloatArray
    rest: bool = False

    def jointly(self, combinations: IntArray) -> LabelSums:
        """Return the same limits where every combination of labels of several targets is a label.

        Parameters
        ----------
        combinations
            (C, T) labels of each combination, as of :func:`combinations_of`.
        """
        first = np.cumsum([0, *(combinations[:, :-1].max(axis=0) + 1)])
        return replace(self, use=self.use[:, :, first + combinations].sum(axis=3))

    def beside(self, other: LabelSums) -> LabelSums:
        """Return these limits and others of the same samples."""
        return LabelSums(
            self.names + other.names,
            np.concatenate([self.use, other.use]),
            np.concatenate([self.least, other.least]),
            np.concatenate([self.most, other.most]),
            self.rest or other.rest,
        )

    def from_above(self) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return both sides of the rows as limits from above: names, (q, n, K) uses, and (q,) limits."""
        above, below = np.isfinite(self.most), np.isfinite(self.least)
        names = [name for side in (above, below) for name, on in zip(self.names, side, strict=True) if on]
        use = np.concatenate([self.use[above], -self.use[below]])
        return tuple(names), use, np.concatenate([self.most[above], -self.least[below]])


def combinations_of(sizes: Sequence[int]) -> IntArray:
    """Return the (C, T) combinations of labels of targets with some numbers of labels each."""
    return np.stack(np.unravel_index(np.arange(math.prod(sizes)), tuple(sizes)), axis=1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SmoothProblem:
    """A model without rows: a smooth objective over the points of randomised trees.

    Attributes
    ----------
    model
        A :class:`~mipforest.smooth.model.SmoothModel`.
    """

    words: ClassVar[str] = "smooth models without rows"

    model: Any
