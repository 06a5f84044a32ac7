"""What a formulation knows of one data set, and its operations on that, in four groups.

The groups are the model, the codec between trees and solutions, the starts, and what comes after the solve.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.encoding import Scaling
from mipforest.heuristics.cart import cart
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.model_changes import BuiltModel, ModelChanges
from mipforest.problem.parameters import NamedCosts, ParameterError
from mipforest.problem.structure import LabelSums, Structure
from mipforest.time_budget import TimeBudget
from mipforest.trees import Predictor, Topology, Tree

#: A tree, or what else a formulation finds (its ``gives``): operations of the formulation name the kind.
Fitted: TypeAlias = Any


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Instance:
    """A data set and a topology, with everything a formulation computes from them, once.

    A formulation subclasses it for what its rows need beyond data and topology: hyperparameters spread over the
    nodes, thresholds of the features, proven big-Ms.

    Attributes
    ----------
    data
        Training samples, scaled.
    topology
        Index sets of the tree.
    known
        A feasible tree (for scaled features) found on the way, or ``None``. It is the default start, and takes the
        place of a start that cannot be made feasible.
    least_objective
        Proven lower bound on the objective of every tree, found on the way.
    notes
        What the user should know before all else, in sentences: warnings of every result.
    budget
        The time that all operations on it share.
    """

    data: Dataset
    topology: Topology
    known: Fitted | None = None
    least_objective: float = -math.inf
    notes: tuple[str, ...] = ()
    budget: TimeBudget = field(default_factory=TimeBudget)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r}, depth {self.topology.depth})"

    @cached_property
    def distinct(self) -> tuple[FloatArray, IntArray]:
        """(g, p) distinct samples, and (n,) which of them each sample is."""
        rows, group = np.unique(self.data.X, axis=0, return_inverse=True)
        return rows, group.ravel()


class ModelOperations(ABC):
    """What the model is: bind the formulation to data, state its variables, objective and constraints."""

    #: Name in the registry and on the command line.
    name: ClassVar[str]
    #: One line that says what it is.
    summary: ClassVar[str]
    #: Where it comes from.
    source: ClassVar[str]
    #: "classification", "regression" or "prescription".
    task: ClassVar[str] = "classification"
    #: What its solutions stand for: trees, or score cards, whose models have no depth (their topology has one level).
    gives: ClassVar[type[Predictor]] = Tree
    #: Whether it tells two classes apart, and takes no more.
    two_classes: ClassVar[bool] = False
    #: Whether losses are multiplied by the samples' weights; data with other weights than 1 are refused otherwise.
    takes_weights: ClassVar[bool] = False
    #: Whether splits and leaves take features of which several stand for one column: sets of levels, and numbers with
    #: missing values on either side. Splits have one feature then, and leaves none.
    takes_sets: ClassVar[bool] = False
    #: Whether its targets are hazard ratios of samples with times; these are refused otherwise.
    takes_times: ClassVar[bool] = False
    #: Whether samples without a label count; data that have some are refused otherwise.
    takes_unlabelled: ClassVar[bool] = False
    #: The score that tunes it, and measures it in place of errors, where that is not the first of its task.
    tunes_by: ClassVar[str | None] = None
    #: Hyperparameters of related models that this one refuses, each with the reason as a clause.
    refused_parameters: ClassVar[Mapping[str, str]] = {}
    #: Variants, the default first: the strongest one proven not to cut off an optimum.
    variants: ClassVar[tuple[str, ...]] = ("paper",)
    #: How features are scaled unless the user says otherwise.
    scaling: ClassVar[Scaling] = "minmax"
    #: Options that help a solver with this model, by solver; a user's own come first.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: Hyperparameter that stands for a strict inequality in the rows that hold samples on a side, where there is one.
    gap_parameter: ClassVar[str] = ""
    #: Constraint blocks that hold samples on a side: first those with the gap, which not every variant or depth has.
    gap_rows: ClassVar[tuple[str, ...]] = ()
    #: What the objective of every tree is at least: 0 where it is a sum of losses and costs.
    least_objective: ClassVar[float] = float("-inf")
    #: Matrix entries up to which a solver is called although building has proven the start optimal: a second witness
    #: costs seconds there, and minutes beyond.
    most_witnessed: ClassVar[int] = 250_000
    #: Whether it is stated in rows. The model of a smooth one is empty, and only searches solve it.
    has_rows: ClassVar[bool] = True
    #: The kind of :meth:`structure` that it has for searches, at least with some hyperparameters; ``None`` for none.
    structure_type: ClassVar[type[Structure] | None] = None
    #: What makes a solver's point worth less than the tree that it stands for: its tolerances, or those of the model.
    slack: ClassVar[str] = "its tolerances"
    #: What closes the gap that this leaves, where tolerances are not what it is.
    slack_closed_by: ClassVar[str] = ""
    #: Constraint blocks that hold for solutions up to the known value alone, although they read no continuous variable.
    rows_below_cutoff: ClassVar[frozenset[str]] = frozenset()
    #: Blocks of continuous variables whose bounds, and rows with each other and with integers, hold for every tree.
    blocks_of_every_tree: ClassVar[frozenset[str]] = frozenset()

    def for_scaled_targets(self) -> Self:
        """Return the formulation whose structure, of targets as this one's structure scales them, leaves them so."""
        return self

    def for_data(self, data: Dataset) -> tuple[Self, tuple[str, ...]]:
        """Put numbers in the place of hyperparameters that are relative to the data.

        Parameters
        ----------
        data
            Training samples (scaled).

        Returns
        -------
        tuple
            The formulation, itself where nothing is relative, and notes of the result that state the numbers.

        Raises
        ------
        ParameterError
            If costs by the names of classes leave out a class of the data, or name another one.
        """
        costs = getattr(self, "costs", None)
        # Data without classes are refused later, with their own words.
        if not isinstance(costs, NamedCosts) or data.task != "classification":
            return self, ()
        own: Any = self
        return replace(own, costs=costs.ordered("costs", data)), ()

    def check_data(self, data: Dataset, topology: Topology) -> None:  # noqa: B027 - most models take any data
        """Refuse data, a depth, or hyperparameters that do not fit them; quick, as it is asked before every fit.

        Raises
        ------
        DataError, ParameterError
            Saying what the model takes.
        """

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> Instance:
        """Compute once what all other operations need of a data set.

        Parameters
        ----------
        data, topology
            Training samples (scaled) and topology; :meth:`check_data` has accepted them.
        budget
            The time for this and for all that follows, which the instance keeps; ``None`` for no limit.

        Returns
        -------
        Instance
            Or a subclass that holds more: spread hyperparameters, thresholds, valid bounds, a known tree.
        """
        return Instance(data=data, topology=topology, budget=budget or TimeBudget())

    def bind_quickly(self, data: Dataset, topology: Topology, budget: TimeBudget) -> Instance | None:  # noqa: ARG002
        """Compute what a tree search needs, without long starts that only matrix solvers gain from.

        Returns
        -------
        Instance
            As :meth:`bind`, and valid for every solver; ``None`` where :meth:`bind` is as quick.
        """
        return None

    def structure(self, instance: Any) -> Structure | None:  # noqa: ARG002
        """Return what searches may know of the solutions, ``None`` where there is nothing that one could use.

        Parameters
        ----------
        instance
            What :meth:`bind` returned. Node problems are also asked for with an :class:`Instance` of nothing but data
            and topology: certificates are compared with them.

        Returns
        -------
        Structure
            Of the kind :attr:`structure_type`; ``None`` for hyperparameters with which it has none.
        """
        return None

    def label_sums(self, m: Model, instance: Any, built: BuiltModel) -> LabelSums | None:  # noqa: ARG002
        """Return the rows that were added to a model as limits on the labels of samples; ``None`` where it has none.

        Something else may have been added too, or the model may not leave the label of every leaf free: they say so
        (:attr:`~mipforest.problem.structure.LabelSums.rest`). Otherwise a tree of least cost under prices of the limits
        is their relaxation.

        Parameters
        ----------
        m, instance
            The model as it is now, and what :meth:`bind` returned.
        built
            The model as it was built.
        """
        return None

    def size(self, instance: Any) -> dict[str, int]:  # noqa: ARG002
        """Count the variables and constraints of a model without rows; nothing where the rows tell it."""
        return {}

    @abstractmethod
    def declare(self, m: Model, instance: Any) -> None:
        """Write the model's variables, objective and constraints.

        Parameters
        ----------
        m
            An empty model.
        instance
            What :meth:`bind` returned.
        """

    def valid_below(self, instance: Any, changes: ModelChanges) -> float:  # noqa: ARG002
        """Return the cutoff up to which the model, with a user's changes, holds every solution that it should.

        A variant may leave out solutions that cannot be optimal. Constraints added by a user can make them
        so; a bound on the optimum is then proven up to this cutoff only.

        Parameters
        ----------
        instance
            What :meth:`bind` returned.
        changes
            What the user changed.
        """
        return float("inf")

    def with_cutoff(self, instance: Any, value: float, changes: ModelChanges) -> Instance | None:  # noqa: ARG002
        """Return an instance with a cutoff: its model, with a user's changes, holds every solution up to that value.

        Asked where :meth:`valid_below` says less. The model that :meth:`declare` makes of it must have the same blocks
        of variables.

        Parameters
        ----------
        instance
            What :meth:`bind` returned.
        value
            The cutoff: objective value of a solution of the changed model.
        changes
            What the user changed.

        Returns
        -------
        Instance
            ``None`` where nothing proves such limits.
        """
        return None

    def with_all_trees(self, instance: Any) -> Instance | None:
        """Return an instance whose model leaves out no tree, whatever rows are added: that of a part of a larger model.

        Parameters
        ----------
        instance
            What :meth:`bind` returned.

        Returns
        -------
        Instance
            ``None`` where the variant rests on what an optimum of the formulation alone is.
        """
        found: Instance = instance
        return found

    def with_features(self, instance: Any, allowed: BoolArray) -> Instance | None:  # noqa: ARG002
        """Return an instance whose nodes use some features alone.

        Parameters
        ----------
        instance
            What :meth:`bind` returned.
        allowed
            (p,) which features they may use.

        Returns
        -------
        Instance
            ``None`` where samples that are 0 in all other features say the same, as they do unless the objective rests
            on these features in another way.
        """
        return None

    def constants_proven(self, instance: Any, value: float, changes: ModelChanges) -> bool:  # noqa: ARG002
        """Return whether the variant's constants are proven to cut off no solution better than some value.

        Where they are not, an optimum of the model is one for these constants, and not of the definition.

        Parameters
        ----------
        instance, value, changes
            As for :meth:`with_cutoff`; infinite where no solution is known.
        """
        return True


class Codec(ABC):
    """How trees and solutions correspond; of a model of score cards, cards and solutions.

    A formulation is given trees of the kind that it returns, and narrows :data:`Fitted` to that.

    For every tree within the formulation's limits, ``encode`` gives a feasible point of the model whose objective is
    ``evaluate``, and ``decode(encode(tree))`` routes every sample as the tree does. Trees take scaled features.
    """

    name: ClassVar[str]

    @abstractmethod
    def encode(self, tree: Fitted, instance: Any) -> dict[str, FloatArray]:
        """Return the values of every block that stand for a tree."""

    @abstractmethod
    def decode(self, values: Values, instance: Any) -> Predictor:
        """Read the tree off the values of a solution."""

    @abstractmethod
    def evaluate(self, tree: Fitted, instance: Any) -> float:
        """Return the objective value of a tree, from the definition, without the model."""

    def violations(self, tree: Fitted, instance: Any) -> dict[str, float]:  # noqa: ARG002
        """Return by how much a tree breaks each constraint of the definition, without the model.

        What the rows say of a tree: the gap of its splits, least leaf sizes, limits on features, which nodes may split.
        A constraint may also make :meth:`evaluate` infinite.

        Parameters
        ----------
        tree, instance
            As for :meth:`evaluate`.

        Returns
        -------
        dict
            Amounts by the constraint, in words that end "it breaks ..."; in the units of the rows, where
            :data:`~mipforest.settings.FEASIBILITY_TOLERANCE` counts as none. Gaps by
            :func:`~mipforest.trees.sides.missed_gap`.
        """
        return {}

    def expressions(self, m: Model, instance: Any) -> TreeExpressions:
        """Return what constraints of users read: features of splits, leaves of samples, predictions."""
        return TreeExpressions(self.name, m, instance.data, instance.topology)


class StartOperations(ABC):
    """Trees to start from. Trees take scaled features."""

    name: ClassVar[str]
    #: Names of the starts it takes, the default first.
    starts: ClassVar[tuple[str, ...]] = ("cart",)
    #: The one for a search that finds at once what the default one searches for; empty where that is the default.
    simple_start: ClassVar[str] = ""

    def start(self, name: str, instance: Any, *, seed: int = 0) -> Fitted:
        """Return the tree of one of the :attr:`starts`.

        Raises
        ------
        ParameterError
            If there is no start of that name.
        """
        if name == "cart":
            return self.polish(
                cart(instance.data, instance.topology, seed=seed, budget=instance.budget), instance
            )
        raise ParameterError(
            f"{self.name} has no start {name!r}; choose from: {', '.join(self.starts)}, none, or a tree.json"
        )

    def polish(self, tree: Fitted, instance: Any) -> Fitted:  # noqa: ARG002
        """Improve a tree from elsewhere without changing how it routes, so that it suits this model."""
        return tree

    def restricted(self, tree: Fitted, allowed: BoolArray, instance: Any) -> Fitted | None:  # noqa: ARG002
        """Return a tree like another that uses allowed features only, ``None`` where the formulation makes none.

        Parameters
        ----------
        tree
            For scaled features.
        allowed
            (|B|, p) whether a node may use a feature.
        instance
            What :meth:`ModelOperations.bind` returned.
        """
        return None

    def without_splits(self, tree: Tree, nodes: Sequence[int], instance: Any) -> Tree | None:  # noqa: ARG002
        """Return a tree like another without some of its splits, ``None`` where the formulation makes none.

        Parameters
        ----------
        tree
            For scaled features.
        nodes
            Branch nodes, which lose their splits with those below.
        instance
            What :meth:`ModelOperations.bind` returned.
        """
        return None

    def with_splits(
        self,
        tree: Fitted,  # noqa: ARG002
        splits: Mapping[int, tuple[int, float]],  # noqa: ARG002
        instance: Any,  # noqa: ARG002
    ) -> Fitted | None:
        """Return a tree like another some of whose nodes part samples by one feature, ``None`` where none is made.

        Parameters
        ----------
        tree
            For scaled features.
        splits
            By branch node, the feature and the (scaled) threshold from which on samples go right.
        instance
            What :meth:`ModelOperations.bind` returned.
        """
        return None

    def candidates(self, instance: Any) -> Iterator[Fitted]:  # noqa: ARG002
        """Draw trees of all kinds, seeded: one may satisfy a constraint that a start breaks."""
        return iter(())


class AfterSolve(ABC):  # noqa: B024 - its operations have defaults
    """What happens to a solved tree, and what a result tells of it."""

    def relabel(self, tree: Fitted, instance: Any) -> Fitted:  # noqa: ARG002
        """Return a decoded tree with the leaf labels that its objective likes best, the splits unchanged.

        Used where the model allows it: labels may be part of a constraint that a user added.
        """
        return tree

    def refine(self, tree: Fitted, instance: Any) -> Fitted:  # noqa: ARG002
        """Improve the solved tree (for scaled features) by what the model cannot express.

        The solver's objective is checked against the solved tree; predictions come from the refined one.
        """
        return tree

    def measures(self, tree: Fitted, data: Dataset, instance: Any) -> dict[str, Any]:  # noqa: ARG002
        """Measure, beyond accuracy, how a tree does on a data set, ready for JSON.

        Parameters
        ----------
        tree
            The refined tree, taking samples in original units (``data.X_raw``).
        data
            Training or test samples.
        instance
            What :meth:`ModelOperations.bind` returned for the training samples.
        """
        return {}

    def report(self, solved: Fitted, refined: Fitted, instance: Any) -> dict[str, Any]:  # noqa: ARG002
        """State what else the training found, ready for JSON: both trees take scaled features."""
        return {}


class Operations(ModelOperations, Codec, StartOperations, AfterSolve):
    """All operations of a formulation, and what the toolkit asks of it besides them."""

    variant: str

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name, ready for JSON."""
