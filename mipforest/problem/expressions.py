"""What a model says of its tree, as expressions that constraints can read.

A formulation gives its :class:`TreeExpressions`; :class:`LinearTreeExpressions` are those of all trees of linear
classifiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.errors import MipforestError
from mipforest.model import LinearExpr, Model, VarArray
from mipforest.trees import Topology, Tree

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

    def require_feature(self, j: int) -> None:
        """Add rows: some branch node uses feature j."""
        self.m.add(f"require_{self.data.features.labels[j]}", self.features()[:, j].sum() >= 1)

    def leaves(self) -> Expression:
        """Return the (n, |L|) expression that is 1 where a sample is in a leaf, else 0."""
        raise self._missing("which leaf a sample is in")

    def predicted(self, k: int) -> Expression:  # noqa: ARG002
        """Return the (n,) expression that is 1 where a sample is predicted class number k, else 0."""
        raise self._missing("which class a sample is predicted")

    def keep_monotone(self, j: int, *, increasing: bool) -> None:  # noqa: ARG002
        """Add rows: a larger value of feature j never turns a prediction from the second class to the first.

        With ``increasing`` false: never from the first to the second.
        """
        raise self._missing("what makes its predictions monotone in a feature")

    def fix_split(self, t: int, j: int, threshold: float) -> None:  # noqa: ARG002
        """Add rows: branch node t sends samples whose (scaled) feature j is below the threshold left, others right."""
        raise self._missing("how to fix a split")

    def fixed_splits(self) -> dict[int, tuple[int, float]]:
        """Return, by branch node, feature and (scaled) threshold of the splits that :meth:`fix_split` has fixed.

        Of formulations that make a tree for them, see
        :meth:`~mipforest.problem.operations.StartOperations.with_splits`.
        """
        return {}

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


def require_weight(of: TreeExpressions, weight: VarArray, limit: float, j: int) -> None:
    """Add rows and binaries: some split gives feature j a weight of at least :data:`LEAST_WEIGHT`, up or down.

    For models whose binaries only allow a weight, and may be 1 where it is 0.

    Parameters
    ----------
    of
        Expressions of the model.
    weight
        (|B|,) weights of the feature.
    limit
        Greatest size of a weight.
    j
        The feature.
    """
    name, branches = f"require_{of.data.features.labels[j]}", of.topology.branches
    above, below = of.m.binary(f"{name}_above", branches), of.m.binary(f"{name}_below", branches)
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


@dataclass(frozen=True, eq=False)
class LinearTreeExpressions(TreeExpressions):
    """Expressions of trees with a linear classifier at every branch node, such as MARGOT's and OLCT's.

    Their models have weights ``w`` (|B|, p) and ``b`` (|B|,), and ``z`` (n, |B''|), which assigns samples to the last
    branch nodes; where features are selected, ``s`` (|B|, p) switches them on.

    Left leaves predict the first class, right ones the second; the side at the last node is the sign of the score and
    no variable of the model. Where a constraint reads it, a binary per sample is added, and the rows of the upper
    levels hold at the last one too: right is a score of at least 0, left one of at most ``-epsilon``.

    Attributes
    ----------
    epsilon
        Gap that stands for a strict inequality.
    """

    epsilon: float

    def neutral_rows(self) -> frozenset[str]:
        """Return the rows that switch on weights, or tell the side at the last node.

        Moving a bias as in step 2 of the proof (:mod:`formulations.bounds.margins`) changes no side, and keeps scores
        on the left at -epsilon or below; the big-Ms of these rows are the bounds on w and b.
        """
        rows = {
            "uses": ("uses_above", "uses_below"),
            "second_class": ("second_class_right", "second_class_left"),
        }
        for name in self.m.variables:
            if (feature := self._required(name)) is not None:
                rows[name] = (f"require_{feature}_least", f"require_{feature}_most")
        return frozenset(row for name in rows if name in self.m.variables for row in rows[name])

    def write_again(self, name: str) -> bool:
        """Add a block of these methods to another model of the formulation: its big-Ms are that model's bounds."""
        if name == "uses":
            self.features()
        elif name == "second_class":
            self._second_class()
        elif (feature := self._required(name)) is not None:
            self.require_feature(self.data.features.labels.index(feature))
        else:
            return False
        return True

    def _required(self, name: str) -> str | None:
        """Return the feature of the first of the two blocks that require one."""
        feature = name.removeprefix("require_").removesuffix("_above")
        return (
            feature if name == f"require_{feature}_above" and feature in self.data.features.labels else None
        )

    def features(self) -> Expression:
        """Return the switches of the features, or new binaries without which a weight is 0."""
        if "s" in self.m.variables:
            return self.m["s"]
        if "uses" not in self.m.variables:
            w, over = self.m["w"], (self.topology.branches, self.data.features)
            lower, upper = self._finite(w.lower), self._finite(w.upper)
            uses = self.m.binary("uses", over)
            self.m.add("uses_above", w <= upper * uses, over=over)
            self.m.add("uses_below", w >= lower * uses, over=over)
        return self.m["uses"]

    def require_feature(self, j: int) -> None:
        """Add rows and binaries: some split gives feature j a weight that is not negligible.

        A binary that allows a weight may be 1 at a weight of 0.
        """
        w = self.m["w"][:, j]
        limit = float(np.maximum(self._finite(w.upper), -self._finite(w.lower)).max())
        require_weight(self, w, limit, j)

    def leaves(self) -> Expression:
        """Return the expression; it rests on products of the assignment and the side, 0 or 1 where these are."""
        second, z = self._second_class(), self.m["z"]
        if "right_leaf" not in self.m.variables:
            right = self.m.nonnegative("right_leaf", z.shape)
            self.m.add("right_leaf_here", right <= z)
            self.m.add("right_leaf_second", right <= second[:, None])
            self.m.add("right_leaf_both", right >= z + second[:, None] - 1)
        # Left and right leaf of every last branch node, side by side.
        first = np.kron(np.eye(z.shape[1]), [1.0, 0.0])
        leaves: LinearExpr = z @ first + self.m["right_leaf"] @ np.kron(np.eye(z.shape[1]), [-1.0, 1.0])
        return leaves

    def predicted(self, k: int) -> Expression:
        """Return the side of each sample at its last branch node, or the other one."""
        second = self._second_class()
        return second if k == 1 else 1 - second

    def keep_monotone(self, j: int, *, increasing: bool) -> None:
        """Add rows: the weight of feature j has one sign at the last branch nodes and is 0 above them."""
        w, last = self.m["w"], np.asarray(self.topology.last_branches)
        name = f"monotone_{self.data.features.labels[j]}"
        sign = 1.0 if increasing else -1.0
        self.m.add(f"{name}_last", sign * w[last, j] >= 0)
        if self.topology.upper_branches:
            self.m.add(f"{name}_above", w[np.asarray(self.topology.upper_branches), j] == 0)

    def fix_split(self, t: int, j: int, threshold: float) -> None:
        """Add rows: node t uses feature j alone, with a positive weight, and its score is 0 at the threshold."""
        below = self.data.X[self.data.X[:, j] < threshold, j]
        if not 0 < len(below) < self.data.n:
            raise one_sided(self.data, j, threshold)
        w, name = self.m["w"], f"split_n{t}"
        least = self.epsilon / (threshold - float(below.max()))
        if float(w.upper[t, j]) < least:
            raise NotExpressed(
                f"a split at {threshold:g} (scaled) needs a weight of {least:.4g} to keep the next sample "
                f"{self.epsilon:g} away, and {self.formulation} bounds it by {float(w.upper[t, j]):.4g}; take a "
                "threshold farther from the samples, or a smaller epsilon"
            )
        others = np.delete(np.arange(self.data.p), j)
        self.m.add(f"{name}_alone", w[t, others] == 0)
        self.m.add(f"{name}_weight", w[t, j] >= least)
        self.m.add(f"{name}_at", self.m["b"][t] + threshold * w[t, j] == 0)

    def fixed_splits(self) -> dict[int, tuple[int, float]]:
        """Return the splits that :meth:`fix_split` has fixed, read from its rows."""
        found, rows = {}, self.m.constraints
        for t in self.topology.branches:
            if (name := f"split_n{t}_at") in rows:
                weights, alone = self.m["w"].columns[t], rows[f"split_n{t}_alone"].A.indices
                (j,) = np.flatnonzero(~np.isin(weights, alone))
                found[t] = (int(j), float(rows[name].A.toarray()[0, weights[j]]))
        return found

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        """Return the values of the blocks that these methods have added, for a tree for scaled features."""
        last = np.asarray(self.topology.last_branches)
        here = tree.decision_path(self.data.X)[:, last]
        right = here & (tree.scores(self.data.X)[:, last] >= 0)
        added = {
            "uses": (tree.w != 0).astype(float),
            "second_class": right.any(axis=1).astype(float),
            "right_leaf": right.astype(float),
        }
        return {name: value for name, value in added.items() if name in self.m.variables}

    def _second_class(self) -> Expression:
        """Return the (n,) binaries: 1 where the score of a sample at its last branch node is at least 0, else 0.

        A score of at most -epsilon stands for one below 0, as at the upper levels.
        """
        if "second_class" not in self.m.variables:
            last = np.asarray(self.topology.last_branches)
            w, b, z = self.m["w"], self.m["b"], self.m["z"]
            size = np.maximum(self._finite(w.upper), -self._finite(w.lower))[last]
            limit = (
                np.abs(self.data.X) @ size.T + np.maximum(self._finite(b.upper), -self._finite(b.lower))[last]
            )
            second = self.m.binary("second_class", self.data.samples)
            score = self.data.X @ w[last].T + b[last]
            over = (self.data.samples, self.topology.last_branches)
            self.m.add(
                "second_class_right",
                score >= -limit * (1 - second[:, None]) - limit * (1 - z),
                over=over,
            )
            self.m.add(
                "second_class_left",
                score + self.epsilon <= (limit + self.epsilon) * (second[:, None] + 1 - z),
                over=over,
            )
        return self.m["second_class"]

    def _finite(self, bound: FloatArray) -> FloatArray:
        if not np.isfinite(bound).all():
            raise NotExpressed(
                f"{self.formulation} has no bounds on w and b in this variant, which the constraint needs; build "
                "variant 'valid', or bound them: problem.model['w'].set_bounds(-50, 50), and 'b' likewise"
            )
        return bound
