"""What constraints leave of the trees of a problem, as searches take it: allowed features, limits, and what is asked.

A search of univariate trees keeps these without rows. Each constraint says of itself what it restricts
(:meth:`~mipforest.problem.constraints.Constraint.restrict`); whatever a search cannot keep on its way is *asked* of the
trees that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.problem.structure import LabelSums
from mipforest.trees import Tree

#: What a sum of costs may be above its limit by, relative to it where that is above 1: far above rounding.
ROUNDING = 1e-9


#: What stands for the feature of a node that may have any, or no split.
ANY = -2


@dataclass(frozen=True, eq=False)
class UsedRow:
    """A limit on features that a tree uses: the costs of all groups with a used feature sum up to at most a number.

    Attributes
    ----------
    groups
        Features of each group; a group is paid once.
    cost
        (g,) cost of each, at least 0.
    most
        The limit.
    """

    groups: tuple[IntArray, ...]
    cost: FloatArray
    most: float

    def paid(self, used: BoolArray) -> float:
        """Return the cost of the groups that have one of the used features (p,)."""
        return float(self.cost @ np.array([used[group].any() for group in self.groups], dtype=float))

    @property
    def limit(self) -> float:
        """The limit, with what rounding may add."""
        return self.most + ROUNDING * max(1.0, abs(self.most))


@dataclass(frozen=True, eq=False)
class FixedSplit:
    """A node whose split is given, or one of several.

    Attributes
    ----------
    node
        The branch node.
    thresholds
        Numbers of the thresholds that it may have, among those of the structure: they part the samples alike, or differ
        in where missing values go.
    must
        Whether it has to split.
    """

    node: int
    thresholds: IntArray
    must: bool = True


@dataclass(frozen=True, eq=False)
class SplitRow:
    """A limit on splits: the weights of the nodes that split sum up to at most a number.

    Attributes
    ----------
    weights
        (|B|,) weights of the nodes, at least 0.
    most
        The limit.
    """

    weights: FloatArray
    most: float

    @property
    def limit(self) -> float:
        """The limit, with what rounding may add."""
        return self.most + ROUNDING * max(1.0, abs(self.most))


@dataclass(frozen=True, eq=False)
class ChoiceRow:
    """A limit on what nodes split on: the costs of their choices sum up to at most a number.

    Attributes
    ----------
    cost
        (|B|, q + 1) cost of each threshold of the structure at each node, and of no split.
    most
        The limit.
    """

    cost: FloatArray
    most: float

    @property
    def limit(self) -> float:
        """The limit, with what rounding may add."""
        return self.most + ROUNDING * max(1.0, abs(self.most))


@dataclass(frozen=True, eq=False)
class Effect:
    """Features in which predictions of two classes never fall, or never rise.

    Attributes
    ----------
    features, rises
        (k,) the features, and whether the second class may follow the first one as the feature rises; else the first
        may follow the second.
    admits
        Whether a tree for scaled features has no leaf of the wrong class beyond a split on one of them.
    """

    features: IntArray
    rises: BoolArray
    admits: Callable[[Tree], bool]


class Completed(NamedTuple):
    """The best tree of a model among those with some splits.

    Attributes
    ----------
    tree
        For scaled features; ``None`` where there is none, or none was found.
    proven
        Whether none of them is better: not where the time for it was over.
    """

    tree: Tree | None
    proven: bool


class Completion(Protocol):
    """Finds the best tree of a model whose nodes split on the features of a tree, and part the samples as it does."""

    def __call__(self, tree: Tree, *, labels: bool) -> Completed:
        """Return it, with ``labels`` of those whose leaves with samples have their labels."""


@dataclass(frozen=True, eq=False)
class Restrictions:
    """What constraints leave of univariate trees.

    Attributes
    ----------
    allowed
        (|B|, p) features that each node may split on.
    N_min
        Least number of samples of a leaf that holds any.
    budgets
        Limits on what is used.
    required
        Features of groups one of which each has to be used by some split.
    fixed
        Nodes whose split is given.
    splits
        Limits on the nodes that split.
    once
        (p,) number of the group of each feature that no path uses twice, -1 for any number of times.
    sums
        Limits on sums over the labels of samples; ``None`` without any.
    choices
        Limits on what nodes split on.
    conflicts
        Of the (|B|,) features of nodes, -1 without a split, :data:`ANY` for any: nodes that may not all have theirs;
        ``None`` without any.
    effects
        Features with a monotone effect on predictions of two classes.
    asked
        Of a tree for scaled features: whether it satisfies a constraint that is none of the above.
    completion
        Completes a tree to a point of the model, as rows on anything ask for; ``None`` without such rows.
    unreached
        (|L|,) number of the label that a leaf without samples gets, -1 for any; ``None`` where all may have any.
    """

    allowed: BoolArray
    N_min: int = 1
    budgets: tuple[UsedRow, ...] = ()
    required: tuple[IntArray, ...] = ()
    fixed: tuple[FixedSplit, ...] = ()
    splits: tuple[SplitRow, ...] = ()
    once: IntArray | None = None
    sums: LabelSums | None = None
    choices: tuple[ChoiceRow, ...] = ()
    conflicts: tuple[Callable[[IntArray], IntArray | None], ...] = ()
    effects: tuple[Effect, ...] = ()
    asked: tuple[Callable[[Tree], bool], ...] = ()
    completion: Completion | None = None
    unreached: IntArray | None = None

    @classmethod
    def none(cls, n_branches: int, p: int, N_min: int = 1) -> Restrictions:
        """Return those of a problem without constraints."""
        return cls(np.ones((n_branches, p), dtype=bool), N_min)

    def forbidding(self, features: IntArray, nodes: Sequence[int] | None) -> Restrictions:
        """Return these, and features that some nodes, or all, may not split on."""
        allowed = self.allowed.copy()
        where = np.arange(len(allowed)) if nodes is None else np.asarray(nodes, dtype=np.int64)
        allowed[np.ix_(where, features)] = False
        return replace(self, allowed=allowed)

    def limiting(self, sums: LabelSums) -> Restrictions:
        """Return these, and further limits on sums over labels."""
        return replace(self, sums=sums if self.sums is None else self.sums.beside(sums))

    @property
    def asking_effects(self) -> Restrictions:
        """These, where monotone effects are asked of trees."""
        asked = (*self.asked, *(effect.admits for effect in self.effects))
        return replace(self, effects=(), asked=asked)

    @property
    def may_need_idle_splits(self) -> bool:
        """Whether trees may need splits that change no prediction, or are listed."""
        of_nodes = self.required or self.fixed or self.choices or self.conflicts
        return bool(of_nodes or self.asked or self.completion or self.sums is not None)

    @property
    def is_told(self) -> bool:
        """Whether all of them say what single nodes, paths, leaves and labels may have: a listing keeps these."""
        of_trees = self.budgets or self.required or self.splits or self.choices or self.conflicts
        return not (of_trees or self.effects or self.asked or self.completion)

    @property
    def is_even(self) -> bool:
        """Whether all nodes may split on the same features, none has to, and any number does."""
        even = bool((self.allowed == self.allowed[0]).all())
        of_nodes = self.fixed or self.splits or self.choices or self.conflicts
        uneven = self.required or of_nodes or self.effects or self.once is not None
        return even and not uneven
