"""What a model says of its tree, as expressions that constraints can read: a formulation's :class:`TreeExpressions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import name_of
from mipforest.errors import MipforestError
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Topology

#: Variables, or an expression of them.
Expression = LinearExpr | VarArray

#: Least weight of a required feature, where scaled features range over about 1 and weights are of that size.
LEAST_WEIGHT = 1e-3


class NotExpressed(MipforestError, ValueError):
    """The model has no expression for what a constraint is to read."""


@dataclass(frozen=True, eq=False)
class TreeExpressions:
    """Expressions of one built model; a formulation gives a subclass of this that knows its blocks.

    Methods may add blocks to the model, and rows that tie them to the tree, the first time they are called.
    Here they all raise :class:`NotExpressed`.

    Attributes
    ----------
    formulation
        Name of the formulation, for messages.
    m, data, topology
        The model, its training samples (scaled) and its index sets.
    """

    formulation: str
    m: Model
    data: Dataset
    topology: Topology

    def neutral_rows(self) -> frozenset[str]:
        """Return the constraint blocks of these methods that take nothing from the formulation's proofs.

        Whatever blocks they read: rows that hold for every tree within the limits of the model.
        """
        return frozenset()

    def write_again(self, name: str) -> bool:  # noqa: ARG002
        """Add a block of variables that these methods added to another model of the formulation, and its rows.

        Returns
        -------
        bool
            Whether it was added: for blocks whose rows rest on bounds of the model, as these may differ.
        """
        return False

    def feature_blocks(self) -> tuple[str, ...]:
        """Name the (|B|, p) blocks of which a 0 keeps a feature out of a node's split, in whatever variant has them."""
        return ()

    def features(self) -> Expression:
        """Return the (|B|, p) expression that is 1 where a branch node uses a feature, else 0."""
        raise self._missing("which features its splits use")

    def leaf_features(self) -> Expression | None:
        """Return the (k, p) expression that is 1 where one of k linear functions of leaves uses a feature, else 0.

        ``None`` where leaves have no linear functions.
        """
        return None

    def least_on_sides(self, name: str, amounts: FloatArray, least: float) -> bool:  # noqa: ARG002
        """Forbid rules of a score card that leave less than some amount of the samples' (n,) amounts on a side.

        Returns
        -------
        bool
            Whether the model is one of score cards: others have leaves, and nothing is added.
        """
        return False

    def total_size(self) -> Expression:
        """Return the expression of the sum of the sizes of all points of a score card."""
        raise self._missing("which points its rules give")

    def require_feature(self, j: int | IntArray) -> None:
        """Add rows: some branch node uses feature j, or some one of several features of a column."""
        self.m.add(
            f"require_{name_of(self.data, np.atleast_1d(j))}", self.features()[:, np.atleast_1d(j)].sum() >= 1
        )

    def leaves(self) -> Expression:
        """Return the (n, |L|) expression that is 1 where a sample is in a leaf, else 0."""
        raise self._missing("which leaf a sample is in")

    def predicted(self, k: int) -> Expression:  # noqa: ARG002
        """Return the (n,) expression that is 1 where a sample is predicted class number k, else 0."""
        raise self._missing("which class a sample is predicted")

    def labels(self) -> Expression:
        """Return the (|L|, K) expression that is 1 where a leaf predicts a class, else 0."""
        raise self._missing("which class a leaf predicts")

    def keep_monotone(self, j: int, *, increasing: bool, target: int = 0) -> None:  # noqa: ARG002
        """Add rows: a larger value of feature j never turns a prediction from the second class to the first.

        With ``increasing`` false: never from the first to the second. Of several targets, those of a target, by number.
        """
        raise self._missing("what makes its predictions monotone in a feature")

    def fix_split(self, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:  # noqa: ARG002
        """Add rows: branch node t sends samples whose (scaled) feature j is below the threshold left, others right.

        Of several features, each with its threshold, it does so by one of them.
        """
        raise self._missing("how to fix a split")

    def keep_split(self, t: int, features: IntArray, least: FloatArray, most: FloatArray) -> None:  # noqa: ARG002
        """Add rows: branch node t splits on one of some features, with a (scaled) threshold in the range of each."""
        raise self._missing("how to keep a split to some thresholds")

    def splits_within(self, t: int, j: int, first: int, last: int) -> Expression:  # noqa: ARG002
        """Return the expression that is 1 where node t splits on feature j, with so many distinct values below, else 0.

        The number of values is from ``first`` to ``last``.
        """
        raise self._missing("which threshold a split has")

    def fixed_splits(self) -> dict[int, tuple[int, float]]:
        """Return, by branch node, feature and (scaled) threshold of the splits that :meth:`fix_split` has fixed.

        Of formulations that make a tree for them, see
        :meth:`~mipforest.problem.operations.StartOperations.with_splits`.
        """
        return {}

    def alike(self, tree: Any, *, labels: bool) -> dict[str, tuple[FloatArray, FloatArray]] | None:  # noqa: ARG002
        """Return bounds, by block, that hold for the trees that part the samples as one does, by the same features.

        Every variable of the formulation that they leave open is one of leaves; with ``labels`` leaves that hold
        samples have their labels. ``None`` where the model does not say so.
        """
        return None

    def encode(self, tree: Any) -> dict[str, FloatArray]:  # noqa: ARG002
        """Return the values of the blocks that these methods have added, for a tree for scaled features."""
        return {}

    def _missing(self, what: str) -> NotExpressed:
        if not self.m.variables:
            return NotExpressed(
                f"model {self.formulation} does not say {what}: it is a smooth model without rows, and takes no "
                "constraints but those of its own parameters; leave this one out"
            )
        return NotExpressed(
            f"model {self.formulation} does not say {what}; "
            + (
                f"state the constraint with its own blocks, {', '.join(self.m.variables)}, through problem.model.add"
                if self.m.variables
                else "it has no rows that could: state what you want by its parameters"
            )
        )


def require_weight(of: TreeExpressions, weight: VarArray, limit: float, j: int | IntArray) -> None:
    """Add rows and binaries: some split gives feature j a weight of at least :data:`LEAST_WEIGHT`, up or down.

    For models whose binaries only allow a weight, and may be 1 where it is 0.

    Parameters
    ----------
    of
        Expressions of the model.
    weight
        (|B|, p) weights of all features.
    limit
        Greatest size of a weight.
    j
        The feature, or several of a column: one of them.
    """
    features = np.atleast_1d(j)
    name, weight, branches = (
        f"require_{name_of(of.data, features)}",
        weight[:, features],
        of.topology.branches,
    )
    above, below = (of.m.binary(f"{name}_{side}", (branches, len(features))) for side in ("above", "below"))
    of.m.add(name, above.sum() + below.sum() >= 1)
    of.m.add(f"{name}_least", weight >= LEAST_WEIGHT * above - limit * (1 - above))
    of.m.add(f"{name}_most", weight <= limit * (1 - below) - LEAST_WEIGHT * below)


def one_sided(data: Dataset, j: int, threshold: float) -> NotExpressed:
    """Return the error that a split on feature j leaves all training samples on one side."""
    x, name = data.X[:, j], data.features.labels[j]
    return NotExpressed(
        f"the split {name} < {threshold:g} (scaled) puts all training samples on one side: {name} lies between "
        f"{x.min():g} and {x.max():g}; choose a threshold inside"
    )
