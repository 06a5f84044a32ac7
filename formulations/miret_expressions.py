"""What MIRET says of its tree: features, leaves, predictions."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.class_tree_expressions import LEAST_WEIGHT, require_weight
from mipforest.arrays import IntArray
from mipforest.problem.expressions import Expression, TreeExpressions


@dataclass(frozen=True, eq=False)
class MiretExpressions(TreeExpressions):
    """Binaries ``s`` (|B|, p) select features, ``z`` (G, |L|) assigns groups of samples to leaves with fixed labels.

    Attributes
    ----------
    group
        (n,) group of each sample.
    """

    group: IntArray

    def features(self) -> Expression:
        return self.m["s"]

    def require_feature(self, j: int) -> None:
        """Add rows and binaries: feature j has a weight of at least :data:`LEAST_WEIGHT` in some split.

        ``s`` alone may be 1 at a weight of 0.
        """
        require_weight(self, self.m["a"][:, j], 1.0, LEAST_WEIGHT, j)

    def leaves(self) -> Expression:
        return self.m["z"][self.group]

    def predicted(self, k: int) -> Expression:
        return self.m["z"][:, k::2].sum(axis=1)[self.group]
