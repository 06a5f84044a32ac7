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

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.objectives.leaf_losses import LeafLoss, leaf_loss


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
        (n,) class numbers, or values; (n, T) of several targets that a leaf predicts at once.
    loss
        Of a leaf with its best prediction: ``"classes"``, ``"prescription"``, or one of
        :mod:`mipforest.objectives.leaf_losses`.
    level
        Of the absolute loss: an error is charged :math:`2 \tau` times its size where the prediction is too low, and
        :math:`2 (1 - \tau)` times where it is too high, so that the best prediction is the quantile of this level
        :math:`\tau`; above 0, below 1.
    split_cost
        Cost of a split (of a feature in a hyperplane), in units of the loss.
    N_min
        Least number of samples in a leaf.
    unit
        What all this is divided by in the objective.
    weight
        (n,) weights of the samples in the loss, above 0; 1 unless given. They do not count for ``N_min``.
    costs
        (K, K) cost of predicting the second class for a sample of the first, at least 0; unless given, 1 for every
        wrong prediction.
    table
        (n, K) cost of predicting each class for each sample, at least 0, in place of its weight and of ``costs``; y is
        the class that costs it least.
    margin
        Least distance between the scores of both sides of a hyperplane, for weights of sum 1 and features in [0, 1];
        ``None`` for univariate splits.
    max_features
        Most features in a split that is a hyperplane; 0 for any number.
    coefficient_cost
        Of leaves that predict a linear function (squared loss): the cost of its coefficients, by the sum of their
        sizes, in units of the loss; ``None`` for constant leaves.
    treatment
        (n,) treatment of each sample, from 0, of leaves that prescribe one (loss ``"prescription"``): y holds outcomes
        then, at least 0.
    mu, n_treatment
        Of such leaves: weight of the outcomes under the prescription, with 1 - mu that of the estimates' squared loss;
        and least number of samples of a leaf that had the treatment it prescribes.
    offset
        What is added in the objective, after the division.
    target_weight
        (T,) what a wrong label of each target is charged, of several labels.
    """

    words: ClassVar[str] = "trees with additive losses of leaves"

    y: FloatArray | IntArray
    loss: str
    split_cost: float = 0.0
    N_min: int = 1
    unit: float = 1.0
    weight: FloatArray | None = None
    costs: FloatArray | None = None
    table: FloatArray | None = None
    margin: float | None = None
    max_features: int = 0
    coefficient_cost: float | None = None
    treatment: IntArray | None = None
    mu: float = 0.0
    n_treatment: int = 1
    offset: float = 0.0
    level: float = 0.5
    target_weight: FloatArray | None = None

    @property
    def leaf_loss(self) -> LeafLoss:
        """The loss of the leaves by its name; a KeyError for the losses of one class and of a prescription."""
        return leaf_loss(self.loss, self.level, self.target_weight)

    @property
    def estimates_all_features(self) -> bool:
        """Whether leaves prescribe by linear estimates: their fit is given, and does not minimise what is charged."""
        return self.treatment is not None and self.coefficient_cost is not None

    @property
    def prediction_costs(self) -> FloatArray:
        """(n, K) cost of predicting each class for each sample, where leaves predict classes."""
        if self.table is not None:
            return self.table
        y = np.asarray(self.y, dtype=np.int64)
        costs = (
            1.0 - np.eye(max(2, int(y.max(initial=0)) + 1)) if self.costs is None else np.asarray(self.costs)
        )
        weight = 1.0 if self.weight is None else np.asarray(self.weight, dtype=np.float64)[:, None]
        return np.asarray(weight * costs[y], dtype=np.float64)

    def costs_of_labels(self, n_labels: int) -> FloatArray:
        """Return the (n, K) costs of so many labels: those that no sample has are an error for every sample."""
        costs = self.prediction_costs
        if (unseen := n_labels - costs.shape[1]) <= 0:
            return costs
        wrong = np.ones(len(costs)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        return np.column_stack([costs, *[wrong] * unseen])


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
        (r, n, K) what each label of each sample adds to a row.
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
