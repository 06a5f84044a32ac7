"""What the models of Dunn's classification trees say of their trees: features, leaves, predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from formulations.class_leaves import leaves_of
from formulations.cuts import Cuts, declare_assignment, goes_left
from formulations.univariate_splits import smallest_gaps
from mipforest.arrays import FloatArray, IntArray
from mipforest.model import LinearExpr, VarArray
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions, one_sided, require_weight
from mipforest.trees import Tree


class ClassLeafExpressions(TreeExpressions):
    """Models whose binaries ``c`` (K, |L|) label the leaves and whose ``z`` assigns samples to them.

    Rows (2.21) of the thesis want the most common class in every leaf, also where a constraint would want
    another; OCT's variant ``tight`` has no such rows.
    """

    def leaves(self) -> Expression:
        return self._row_leaves()

    def predicted(self, k: int) -> Expression:
        """Give the expression; it rests on products of assignment and labels, 0 or 1 where these are."""
        name = f"predicted_{k}"
        if name not in self.m.variables:
            z, label = self._row_leaves(), self.m["c"][k]
            product = self.m.nonnegative(name, z.shape)
            self.m.add(f"{name}_in_leaf", product <= z)
            self.m.add(f"{name}_labelled", product <= label)
            self.m.add(f"{name}_both", product >= z + label - 1)
        predicted: LinearExpr = self.m[name].sum(axis=1)
        return predicted

    def keep_monotone(self, j: int, *, increasing: bool) -> None:
        """Add rows: where a node splits on feature j, no leaf below it falls while one to its left rises.

        This holds for labelled leaves: all of OCT's variant ``tight``, those that hold training samples elsewhere.
        """
        if len(self.data.classes) != 2:
            raise NotExpressed(
                f"monotone predictions need two classes, and {self.data.name} has {len(self.data.classes)}"
            )
        higher, lower = (1, 0) if increasing else (0, 1)
        on_left, on_right = self.tree.leaf_reach_left.toarray() > 0, self.tree.leaf_reach_right.toarray() > 0
        left, right, t = np.nonzero(on_left[:, None, :] & on_right[None, :, :])
        c, uses = self.m["c"], self.features()[:, j]
        name = f"monotone_{self.data.features.labels[j]}"
        self.m.add(name, c[higher][left] + c[lower][right] <= 2 - uses[t])

    def encode(self, fitted: Tree) -> dict[str, FloatArray]:
        z = leaves_of(fitted, self._rows)
        added = {} if "z" not in self.m.variables else {"z": z}
        for k in range(len(self.data.classes)):
            if f"predicted_{k}" in self.m.variables:
                added[f"predicted_{k}"] = z * (fitted.leaf_value == k)
        return added

    @property
    def _rows(self) -> FloatArray:
        """(rows, p) features of what the assignment has rows for: samples, or groups of equal samples."""
        return self.data.X

    def _row_leaves(self) -> VarArray:
        """(rows, |L|) assignment."""
        return self.m["z"]


class DunnExpressions(ClassLeafExpressions):
    """OCT, variant ``paper``."""

    def features(self) -> Expression:
        return self.m["a"]

    def fix_split(self, t: int, j: int, threshold: float) -> None:
        x = self.data.X[:, j]
        below, above = x[x < threshold], x[x >= threshold]
        if not (len(below) and len(above)):
            raise one_sided(self.data, j, threshold)
        name, b = f"split_n{t}", self.m["b"][t]
        self.m.add(f"{name}_feature", self.m["a"][t, j] == 1)
        # Rows (2.13) keep the threshold eps_j above the left side.
        self.m.add(f"{name}_above_left", b >= below.max() + smallest_gaps(self.data.X)[j])
        self.m.add(f"{name}_below_right", b <= above.min())


class HyperplaneExpressions(ClassLeafExpressions):
    """OCT-H."""

    def features(self) -> Expression:
        return self.m["s"]

    def require_feature(self, j: int) -> None:
        """Add rows and binaries: some split gives feature j a weight that is not negligible.

        ``s`` alone may be 1 at a weight of 0.
        """
        require_weight(self, self.m["a"][:, j], 1.0, j)


@dataclass(frozen=True, eq=False)
class CutExpressions(ClassLeafExpressions):
    """OCT, variant ``tight``: cuts on groups of equal samples.

    Attributes
    ----------
    cuts
        The cuts that the model was built with.
    """

    cuts: Cuts

    def features(self) -> Expression:
        lowest = self.cuts.lowest
        picks = sparse.csr_array(
            (np.ones(len(lowest)), (lowest, self.cuts.feature[lowest])), shape=(len(self.cuts), self.data.p)
        )
        used: LinearExpr = self.m["u"] @ picks
        return used

    def leaves(self) -> Expression:
        return self._row_leaves()[self._row]

    def predicted(self, k: int) -> Expression:
        return super().predicted(k)[self._row]

    def fix_split(self, t: int, j: int, threshold: float) -> None:
        own = np.arange(self.cuts.first[j], self.cuts.first[j + 1])
        values = np.unique(self.data.X[:, j])
        cut = int((values < threshold).sum())
        if not 0 < cut < len(values):
            raise one_sided(self.data, j, threshold)
        on = np.zeros(len(self.cuts))
        on[own[:cut]] = 1.0
        self.m.add(f"split_n{t}", self.m["u"][t] == on)

    @property
    def _rows(self) -> FloatArray:
        return self.cuts.X

    @property
    def _row(self) -> IntArray:
        return self.cuts.group

    def _row_leaves(self) -> VarArray:
        if "z" not in self.m.variables:
            declare_assignment(self.m, self.tree, goes_left(self.cuts, self.m["u"]))
        return self.m["z"]
