"""What a model says of its tree, as expressions that constraints can read."""

from __future__ import annotations

from dataclasses import dataclass

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Topology, Tree

#: Variables, or an expression of them.
Expression = LinearExpr | VarArray


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
    m, data, tree
        The model, its training samples (scaled) and topology.
    """

    formulation: str
    m: Model
    data: Dataset
    tree: Topology

    def features(self) -> Expression:
        """(|B|, p) expression that is 1 where a branch node uses a feature, else 0."""
        raise self._missing("which features its splits use")

    def require_feature(self, j: int) -> None:
        """Add rows: some branch node uses feature j."""
        self.m.add(f"require_{self.data.features.labels[j]}", self.features()[:, j].sum() >= 1)

    def leaves(self) -> Expression:
        """(n, |L|) expression that is 1 where a sample is in a leaf, else 0."""
        raise self._missing("which leaf a sample is in")

    def predicted(self, k: int) -> Expression:  # noqa: ARG002
        """(n,) expression that is 1 where a sample is predicted class number k, else 0."""
        raise self._missing("which class a sample is predicted")

    def keep_monotone(self, j: int, *, increasing: bool) -> None:  # noqa: ARG002
        """Add rows: a larger value of feature j never turns a prediction from the second class to the first.

        With ``increasing`` false: never from the first to the second.
        """
        raise self._missing("what makes its predictions monotone in a feature")

    def fix_split(self, t: int, j: int, threshold: float) -> None:  # noqa: ARG002
        """Add rows: branch node t sends samples whose (scaled) feature j is below the threshold left, others right."""
        raise self._missing("how to fix a split")

    def encode(self, fitted: Tree) -> dict[str, FloatArray]:  # noqa: ARG002
        """Values of the blocks that these methods have added to the model, for a tree for scaled features."""
        return {}

    def _missing(self, what: str) -> NotExpressed:
        return NotExpressed(
            f"model {self.formulation} does not say {what}; state the constraint with its own blocks, "
            f"{', '.join(self.m.variables)}, through problem.model.add"
        )
