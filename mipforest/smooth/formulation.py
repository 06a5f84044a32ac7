"""What a smooth formulation is: a paper's model of a randomised tree with its hyperparameters."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.model import Model, Values
from mipforest.problem.formulation import Formulation
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.problem.structure import SmoothProblem
from mipforest.smooth.model import Point, SmoothModel
from mipforest.time_budget import TimeBudget
from mipforest.trees import RandomizedTree, Topology, Tree


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothInstance(Instance):
    """A data set and a topology, with the smooth model stated for them."""

    smooth: SmoothModel


@dataclass(frozen=True, kw_only=True)
class SmoothFormulation(Formulation):
    """A randomised tree whose model is smooth: it has no rows, and what solves it are searches for local optima.

    A subclass states objective, penalties and constraints in :meth:`state`, and ties points of the model to trees by
    :meth:`leaves_of`, :meth:`tree_with` and ``evaluate``.

    Parameters
    ----------
    gamma
        Steepness of the probabilities at the splits.
    n_starts
        How many points a search starts from.
    stages
        Of every second start, how many levels of gamma lead up to it, each twice the one before.
    zero_tol
        Size up to which a coefficient counts as 0 in the sparsity that is reported.
    """

    gamma: float = parameter(512.0, "steepness of the probabilities at the splits", above=0)
    n_starts: int = parameter(20, "points that a search starts from", at_least=1)
    stages: int = parameter(
        4, "levels of gamma, doubling, of every second start; 1 for gamma alone", at_least=1
    )
    zero_tol: float = parameter(
        0.0, "size up to which a coefficient is 0 in the sparsity reported", at_least=0
    )

    has_rows = False
    starts = ("random",)
    takes_weights = True
    structure_type = SmoothProblem
    least_objective = 0.0

    # What a subclass says

    @abstractmethod
    def state(self, data: Dataset, topology: Topology) -> SmoothModel:
        """State objective, penalties and constraints for a data set, equal samples of which are merged."""

    @abstractmethod
    def tree_with(self, point: Point, parts: dict[str, Any], instance: Any) -> RandomizedTree:
        """Make the tree of a point; ``parts`` are its splits, names and gamma, the leaves are to be added."""

    @abstractmethod
    def leaves_of(self, tree: RandomizedTree, instance: Any) -> Point:
        """Return the values of the leaves' blocks for a tree (scaled features)."""

    def stages_of(self, start: int) -> int:
        """Return how many levels of gamma a start climbs: every second one all, the others the last alone."""
        return self.stages if start % 2 else 1

    # What the toolkit asks

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> SmoothInstance:
        """Bind the formulation to data; see :meth:`ModelOperations.bind`."""
        smooth = self.state(_merged(data), topology)
        return SmoothInstance(data=data, topology=topology, budget=budget or TimeBudget(), smooth=smooth)

    def structure(self, instance: SmoothInstance) -> SmoothProblem:
        """Return the smooth model, for searches."""
        return SmoothProblem(instance.smooth)

    def size(self, instance: SmoothInstance) -> dict[str, int]:
        """Count variables and constraints."""
        model = instance.smooth
        return {
            "variables": sum(int(np.prod(block.shape)) for block in model.blocks),
            "constraints": len(model.loss.constraints) + len(model.loss.linear),
        }

    def declare(self, m: Model, instance: SmoothInstance) -> None:
        """Declare nothing: the model has no rows; see :meth:`state`."""

    def encode(self, tree: Tree, instance: SmoothInstance) -> dict[str, FloatArray]:
        """Return no values: the model has no blocks; see :meth:`point_of`."""
        return {}

    def decode(self, values: Values, instance: SmoothInstance) -> Tree:
        """Refuse values of a solver, as none takes the model.

        Raises
        ------
        Unsupported
            Always.
        """
        raise Unsupported(
            f"{self.name} is a smooth model without rows: a solution of rows cannot be one of it"
        )

    def violations(self, tree: Tree, instance: SmoothInstance) -> dict[str, float]:
        """Return the largest violation of bounds and constraints by a tree."""
        return {"its bounds and constraints": instance.smooth.violation(self.point_of(tree, instance))}

    def start(self, name: str, instance: SmoothInstance, *, seed: int = 0) -> Tree:
        """Return the tree of a random point, with the leaves that suit it best."""
        if name != "random":
            raise ParameterError(
                f"{self.name} has no start {name!r}; choose from: {', '.join(self.starts)}, none, or a tree.json"
            )
        return self.tree_of(instance.smooth.random_point(np.random.default_rng(seed)), instance)

    def report(self, solved: Tree, refined: Tree, instance: SmoothInstance) -> dict[str, Any]:
        """Report the shares of coefficients, and of features, that are zero."""
        rows = instance.smooth.norms.rows(self.point_of(refined, instance))
        zero = np.abs(rows) <= self.zero_tol
        return {"local_sparsity": float(zero.mean()), "global_sparsity": float(zero.all(axis=0).mean())}

    # Trees and points

    def tree_of(self, point: Point, instance: SmoothInstance) -> RandomizedTree:
        """Return the tree of a point, for scaled features."""
        data = instance.data
        parts = {
            "depth": instance.topology.depth,
            "w": -point["a"] / data.p,
            "b": point["mu"],
            "classes": data.classes,
            "features": data.features.labels,
            "gamma": self.gamma,
        }
        return self.tree_with(point, parts, instance)

    def point_of(self, tree: Tree, instance: SmoothInstance) -> Point:
        """Return the point of a tree (scaled features); of one with sides for certain, the nearest random one."""
        if not isinstance(tree, RandomizedTree):
            # Sides stay when a split is scaled; the largest coefficients within the bounds are the steepest.
            largest = np.maximum(np.abs(tree.w).max(axis=1) * tree.n_features, np.abs(tree.b))
            scale = np.where(largest > 0, largest, 1.0)
            parts = {
                name: getattr(tree, name) for name in ("depth", "leaf_value", "classes", "features", "leaf_w")
            }
            w, b = tree.w / scale[:, None], tree.b / scale
            tree = RandomizedTree(**parts, w=w, b=b, gamma=self.gamma)
        branches = {"a": -tree.w * tree.n_features, "mu": np.asarray(tree.b)}
        return {**branches, **self.leaves_of(tree, instance)}

    def polish(self, tree: Tree, instance: SmoothInstance) -> Tree:
        """Return the tree of the same splits with the leaves that are best without penalties."""
        point = self.point_of(tree, instance)
        return self.tree_of(instance.smooth.with_best_leaves(point), instance)

    def fitting(self, tree: Tree) -> Tree:
        """Return a tree with this gamma: a start may come from a model with another one."""
        return replace(tree, gamma=self.gamma) if isinstance(tree, RandomizedTree) else tree


def _merged(data: Dataset) -> Dataset:
    """Return a data set with equal samples merged into one of their weight, in an order of their own.

    So local optima of whole weights are those of repeated samples; where all samples differ and none has a weight, they
    stay as they are.
    """
    rows, first, of = np.unique(
        np.column_stack([data.X_raw, data.y]), axis=0, return_index=True, return_inverse=True
    )
    if len(rows) == data.n and not data.weighted:
        return data
    return replace(data.take(first), weights=np.bincount(of.ravel(), data.weights).astype(np.float64))
