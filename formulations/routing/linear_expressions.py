"""What trees of linear classifiers (MARGOT, OLCT, loss-optimal trees) say of their trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.heuristics.node_problems import passed
from mipforest.model import LinearExpr
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions, one_sided, require_weight
from mipforest.trees import Tree


@dataclass(frozen=True, eq=False)
class SplitExpressions(TreeExpressions):
    """Weights ``w`` (|B|, p) and ``b`` (|B|,), and ``z`` (n, |B''|), which assigns samples to the last branch nodes.

    Left leaves predict the first class, right ones the second; the side at the last node is the sign of the score and
    no variable of the model. Where a constraint reads it, a binary per sample is added. Scores at the last node are
    then at least ``epsilon`` away from 0, so that no tolerance decides a label.

    Attributes
    ----------
    epsilon
        Gap that stands for a strict inequality.
    """

    epsilon: float

    def neutral_rows(self) -> frozenset[str]:
        """Return the rows that switch on weights, or tell the side at the last node.

        Moving a bias as in step 2 of the proof (:mod:`formulations.bounds.margins`) changes no side, and leaves scores
        epsilon away from 0; the big-Ms of these rows are the bounds on w and b.
        """
        rows = {name: (f"{name}_above", f"{name}_below") for name in ("uses",)}
        rows["second_class"] = ("second_class_right", "second_class_left")
        for name in self.m.variables:
            if (feature := self._required(name)) is not None:
                rows[name] = (f"require_{feature}_least", f"require_{feature}_most")
        return frozenset(row for name in rows if name in self.m.variables for row in rows[name])

    def write_again(self, name: str) -> bool:
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
        found, rows = {}, self.m.constraints
        for t in self.topology.branches:
            if (name := f"split_n{t}_at") in rows:
                weights, alone = self.m["w"].columns[t], rows[f"split_n{t}_alone"].A.indices
                (j,) = np.flatnonzero(~np.isin(weights, alone))
                found[t] = (int(j), float(rows[name].A.toarray()[0, weights[j]]))
        return found

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        last = np.asarray(self.topology.last_branches)
        here = passed(tree, self.data)[:, last]
        right = here & (tree.scores(self.data.X)[:, last] >= 0)
        added = {
            "uses": (tree.w != 0).astype(float),
            "second_class": right.any(axis=1).astype(float),
            "right_leaf": right.astype(float),
        }
        return {name: value for name, value in added.items() if name in self.m.variables}

    def _second_class(self) -> Expression:
        """(n,) binaries: 1 where the score of a sample at its last branch node is at least 0."""
        if "second_class" not in self.m.variables:
            last = np.asarray(self.topology.last_branches)
            w, b, z = self.m["w"], self.m["b"], self.m["z"]
            size = np.maximum(self._finite(w.upper), -self._finite(w.lower))[last]
            limit = (
                np.abs(self.data.X) @ size.T + np.maximum(self._finite(b.upper), -self._finite(b.lower))[last]
            )
            big_m = limit + self.epsilon
            second = self.m.binary("second_class", self.data.samples)
            score = self.data.X @ w[last].T + b[last]
            over = (self.data.samples, self.topology.last_branches)
            self.m.add(
                "second_class_right",
                score >= self.epsilon - big_m * (1 - second[:, None]) - big_m * (1 - z),
                over=over,
            )
            self.m.add(
                "second_class_left",
                score <= big_m * second[:, None] - self.epsilon + big_m * (1 - z),
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
