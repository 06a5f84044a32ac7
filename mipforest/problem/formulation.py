"""What a formulation is: a paper's model as four operations, and its hyperparameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, ClassVar

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.data.encoding import Scaling
from mipforest.heuristics.cart import cart
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.parameters import ParameterError, parameters_of
from mipforest.problem.problem import Preparation, Problem
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class Formulation(ABC):
    """A mixed-integer model of an optimal decision tree.

    A subclass is a frozen dataclass whose fields are made with :func:`~mipforest.problem.parameters.parameter`; it
    states the paper's model in :meth:`declare` and ties it to trees by :meth:`encode`, :meth:`decode` and
    :meth:`evaluate`. For every tree within the formulation's limits, ``encode`` gives a feasible point of the
    model whose objective is ``evaluate``, and ``decode(encode(tree))`` routes every sample as the tree does.

    Parameters
    ----------
    variant
        Which of :attr:`variants` to build; the first when left out.

    Raises
    ------
    ParameterError
        If a hyperparameter is out of range, or the variant is unknown.
    """

    #: Name in the registry and on the command line.
    name: ClassVar[str]
    #: One line that says what it is.
    summary: ClassVar[str]
    #: Where it comes from.
    source: ClassVar[str]
    #: "classification" or "regression".
    task: ClassVar[str] = "classification"
    #: Variants, the default first: the strongest one proven not to cut off an optimum.
    variants: ClassVar[tuple[str, ...]] = ("paper",)
    #: Names of the starts it takes, the default first.
    starts: ClassVar[tuple[str, ...]] = ("cart",)

    #: How features are scaled unless the user says otherwise.
    scaling: ClassVar[Scaling] = "minmax"

    #: Options that help a solver with this model, by solver; a user's own come first.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    variant: str = ""

    def __post_init__(self) -> None:
        for name, spec in parameters_of(type(self)).items():
            object.__setattr__(self, name, spec.check(getattr(self, name)))
        if not self.variant:
            object.__setattr__(self, "variant", self.variants[0])
        if self.variant not in self.variants:
            raise ParameterError(
                f"{self.name} has no variant {self.variant!r}; choose from: {', '.join(self.variants)}"
            )

    # ------------------------------------------------------------------ the four operations

    @abstractmethod
    def declare(self, m: Model, data: Dataset, tree: Topology, prepared: Any) -> None:
        """Write the model's variables, objective and constraints.

        Parameters
        ----------
        m
            An empty model.
        data, tree
            Training samples (scaled) and topology.
        prepared
            What :meth:`prepare` gave.
        """

    @abstractmethod
    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        """Give the values of every block that stand for a tree (for scaled features)."""

    @abstractmethod
    def decode(self, values: Values, data: Dataset) -> Tree:
        """Read the tree (for scaled features) off the values of a solution."""

    @abstractmethod
    def evaluate(self, fitted: Tree, data: Dataset) -> float:
        """Objective value of a tree (for scaled features), from the definition, without the model."""

    # ------------------------------------------------------------------ what a variant or start may need

    def check_data(self, data: Dataset, tree: Topology) -> None:  # noqa: B027 - most models take any data
        """Refuse data or a depth that the model does not take.

        Raises
        ------
        DataError, ParameterError
            Saying what the model takes.
        """

    def prepare(self, data: Dataset, tree: Topology) -> Preparation:  # noqa: ARG002
        """Compute from the data what the variant's constraints need (valid bounds, cuts)."""
        return Preparation()

    def start(self, name: str, data: Dataset, tree: Topology, *, seed: int = 0) -> Tree:
        """Give the tree (for scaled features) of one of the :attr:`starts`."""
        if name == "cart":
            return self.polish(cart(data, tree, seed=seed), data)
        raise ParameterError(
            f"{self.name} has no start {name!r}; choose from: {', '.join(self.starts)}, none, or a tree.json"
        )

    def polish(self, fitted: Tree, data: Dataset) -> Tree:  # noqa: ARG002
        """Improve a tree from elsewhere without changing how it routes, so that it suits this model."""
        return fitted

    def candidates(self, data: Dataset, tree: Topology) -> Iterator[Tree]:  # noqa: ARG002
        """Draw trees (for scaled features) of all kinds, seeded: one may satisfy a constraint that a start breaks."""
        return iter(())

    def covered_bound(self, prepared: Any, custom: frozenset[str]) -> float:  # noqa: ARG002
        """Value up to which the built model holds every solution of the formulation.

        A variant may leave out solutions that cannot be optimal. Constraints added by a user can make them
        so; a bound on the optimum is then proven up to this value only.

        Parameters
        ----------
        prepared
            What :meth:`prepare` gave.
        custom
            Variable blocks that constraints added or removed by the user read, or whose bounds were changed.
        """
        return float("inf")

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, data: Dataset, tree: Topology) -> TreeExpressions:
        """Say which features splits use, where samples end, what they are predicted, as expressions of a model."""
        return TreeExpressions(self.name, m, data, tree)

    # ------------------------------------------------------------------ after the solve

    def relabelled(self, fitted: Tree, data: Dataset) -> Tree:  # noqa: ARG002
        """Give a decoded tree the leaf labels that its objective likes best, the splits unchanged.

        Used where the model allows it: labels may be part of a constraint that a user added.
        """
        return fitted

    def refine(self, fitted: Tree, data: Dataset) -> Tree:  # noqa: ARG002
        """Improve the solved tree (for scaled features) by what the model cannot express.

        The solver's objective is checked against the solved tree; predictions come from the refined one.
        """
        return fitted

    def measures(self, fitted: Tree, data: Dataset, prepared: Any) -> dict[str, Any]:  # noqa: ARG002
        """Measure, beyond accuracy, how a tree does on a data set, ready for JSON.

        Parameters
        ----------
        fitted
            The refined tree, taking samples in original units (``data.X_raw``).
        data
            Training or test samples.
        prepared
            What :meth:`prepare` gave for the training samples.
        """
        return {}

    def report(self, solved: Tree, refined: Tree, data: Dataset, prepared: Any) -> dict[str, Any]:  # noqa: ARG002
        """State what else the training found, ready for JSON: both trees take scaled features."""
        return {}

    def parameters(self) -> dict[str, Any]:
        """Give the hyperparameters by name, ready for JSON."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    # ------------------------------------------------------------------ building

    def build(self, data: Dataset, depth: int) -> Problem:
        """Build the model for a data set.

        Parameters
        ----------
        data
            Training samples.
        depth
            Number of levels of branch nodes.

        Returns
        -------
        Problem
            With ``problem.model``, an ordinary :class:`~mipforest.model.model.Model`: add constraints, then
            solve.

        Raises
        ------
        DataError, ParameterError
            If the model does not take the data or depth.
        """
        began = monotonic()
        tree = Topology(depth)
        self.check_data(data, tree)
        prepared = self.prepare(data, tree)
        declared_from = monotonic()
        model = Model(f"{self.name}-{data.name}-d{depth}")
        self.declare(model, data, tree, prepared)
        now = monotonic()
        return Problem(
            formulation=self,
            data=data,
            topology=tree,
            model=model,
            prepared=prepared,
            prepare_seconds=declared_from - began,
            build_seconds=now - declared_from,
        )

    def with_variant(self, variant: str) -> Formulation:
        """Give the same formulation in another variant."""
        return replace(self, variant=variant)
