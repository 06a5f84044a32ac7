"""A formulation as a part of a larger model."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.data import Dataset
from mipforest.model import LinearExpr, QuadraticExpr, Values
from mipforest.model.model import Scope
from mipforest.problem.model_changes import free_name
from mipforest.problem.operations import Instance, Operations
from mipforest.trees import Predictor, Topology


@dataclass(frozen=True, eq=False)
class Part:
    """A formulation declared in a model that holds more than it: see :meth:`Formulation.attach`.

    The helpers of :mod:`mipforest.constraints` take it as they take a problem.

    Attributes
    ----------
    formulation
        What was declared.
    instance
        What it knows of the data set.
    model
        The model under the prefix: blocks have the names of the formulation in it.
    """

    formulation: Operations
    instance: Instance
    model: Scope

    @property
    def data(self) -> Dataset:
        """Training samples."""
        return self.instance.data

    @property
    def topology(self) -> Topology:
        """Index sets of the tree."""
        return self.instance.topology

    @property
    def objective(self) -> LinearExpr | QuadraticExpr:
        """The formulation's objective, to be minimised: a term of that of the whole model."""
        return self.model.objective_expression

    def free_name(self, name: str) -> str:
        """Return a name that no block under the prefix has yet: ``name``, ``name_2``, ..."""
        return free_name(self.model, name)

    def tree(self, values: Values) -> Predictor:
        """Return the tree of values of the whole model, ``solution.values``, for samples in original units."""
        encoding = self.data.encoding
        tree: Predictor = self.formulation.decode(self.model.values_of(values), self.instance)
        return tree.with_scaling(encoding.offset, encoding.scale).with_levels(encoding.levels)

    def evaluate(self, values: Values) -> float:
        """Return the objective by the definition of the tree of values of the whole model."""
        tree = self.formulation.decode(self.model.values_of(values), self.instance)
        return float(self.formulation.evaluate(tree, self.instance))
