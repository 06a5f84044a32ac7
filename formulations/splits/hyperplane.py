r"""Hyperplane splits and the assignment of samples to leaves: shared by the models that use them.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 3.1. Features in [0, 1].

.. math::

    & \sum_j \hat a_{jt} \le d_t, \quad \hat a_{jt} \ge \pm a_{jt}, \quad -d_t \le b_t \le d_t && t \in B \quad (3.3) \\
    & -s_{jt} \le a_{jt} \le s_{jt}, \quad s_{jt} \le d_t, \quad \sum_j s_{jt} \ge d_t && t \in B,\; j \quad (3.3) \\
    & s_{jt}, d_t \in \{0, 1\} && t \in B,\; j \\
    & a_m^\top x_i + \mu \le b_m + (2 + \mu)(1 - z_{it}) && i,\; t \in L,\; m \in A_L(t) \quad (3.1) \\
    & a_m^\top x_i \ge b_m - 2 (1 - z_{it}) && i,\; t \in L,\; m \in A_R(t) \quad (3.2) \\
    & \sum_j s_{jt} \le K d_t && t \in B,\; \text{with } K = \text{max\_features} \quad (K)

with (2.5) to (2.8) and (*) as for univariate splits (:mod:`formulations.splits.univariate`); rows marked (3.3) have no
number of their own in that problem. Rows (K) are not in the thesis; they are left out where K is 0. The split of a node
sends ``a.x < b`` left; a node without a split sends everything right. As :math:`\|a_t\|_1 \le 1`, :math:`\mu` is a
margin: only hyperplanes that keep both sides at least :math:`\mu` apart, in that scaling, are in the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.splits.univariate import (
    Routing,
    leaves_of,
    sides,
)
from mipforest.arrays import FloatArray, IntArray
from mipforest.heuristics.thresholds import tree_of_splits
from mipforest.model import LinearExpr, Model, Values
from mipforest.problem.expressions import Expression, TreeExpressions, require_weight
from mipforest.trees import Tree
from mipforest.trees.sides import RESIDUE, keep_sides, midpoint, missed_gap


@dataclass(frozen=True, eq=False)
class HyperplaneRouting(Routing):
    """Splits by hyperplanes; their complexity is the number of features they use.

    Attributes
    ----------
    mu
        Margin that stands for the strict inequality to the left.
    max_features
        Most features in a split, K; 0 for any number.
    """

    mu: float
    max_features: int = 0

    def declare(self, m: Model) -> LinearExpr:
        X, mu, topology = self.data.X, self.mu, self.topology
        nodes = (topology.branches, self.data.features)
        a = m.continuous("a", nodes, lower=-1, upper=1, meaning="weights of a node's hyperplane")
        size = m.nonnegative("a_abs", nodes, meaning="their sizes")
        s = m.binary("s", nodes, meaning="whether a node uses a feature")
        b = m.continuous(
            "b", topology.branches, lower=-1, upper=1, meaning="right-hand side of a node's hyperplane"
        )
        d = m.binary("d", topology.branches, meaning="whether a node splits")
        z = m.binary("z", (self.data.samples, topology.leaves), meaning="whether a sample reaches a leaf")
        used = m.binary("l", topology.leaves, meaning="whether a leaf holds samples")
        t_left, m_left = np.nonzero(topology.leaf_reach_left.toarray())
        t_right, m_right = np.nonzero(topology.leaf_reach_right.toarray())

        m.add("norm", size.sum(axis=1) <= d, over=topology.branches)  # (3.3)
        m.add("abs_above", size >= a, over=nodes)  # (3.3)
        m.add("abs_below", size >= -a, over=nodes)  # (3.3)
        m.add("threshold_above", b <= d, over=topology.branches)  # (3.3)
        m.add("threshold_below", b >= -d, over=topology.branches)  # (3.3)
        m.add("feature_above", a <= s, over=nodes)  # (3.3)
        m.add("feature_below", a >= -s, over=nodes)  # (3.3)
        m.add("feature_needs_split", s <= d[:, None], over=nodes)  # (3.3)
        m.add("split_needs_feature", s.sum(axis=1) >= d, over=topology.branches)  # (3.3)
        if self.max_features:
            m.add("feature_budget", s.sum(axis=1) <= self.max_features * d, over=topology.branches)  # (K)
        if topology.depth > 1:
            m.add("hierarchy", d[1:] <= d[topology.parents[1 : topology.n_branches]])  # (2.5)
        m.add("in_use", z <= used)  # (2.6)
        m.add("leaf_size", z.sum(axis=0) >= self.N_min * used, over=topology.leaves)  # (2.7)
        m.add("left_needs_split", used[t_left] <= d[m_left])  # (*)
        m.add("assign", z.sum(axis=1) == 1, over=self.data.samples)  # (2.8)
        score = X @ a.T
        m.add("left", score[:, m_left] + mu <= b[m_left] + (2 + mu) * (1 - z[:, t_left]))  # (3.1)
        m.add("right", score[:, m_right] >= b[m_right] - 2 * (1 - z[:, t_right]))  # (3.2)
        return s.sum()

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        z = leaves_of(tree, self.data.X)
        goes_left, goes_right = sides(z, self.topology)
        norm = np.abs(tree.w).sum(axis=1)
        splits = norm > 0
        a = tree.w / np.where(splits, norm, 1.0)[:, None]
        b = np.zeros(self.topology.n_branches)
        for t in np.flatnonzero(splits):
            score, right = self.data.X @ a[t], goes_right[:, t]
            # Any threshold between the sides routes alike; the highest keeps the largest distance to the left side.
            if right.any():
                b[t] = score[right].min()
                continue
            highest = score[goes_left[:, t]].max(initial=-1.0)
            # All go left: a threshold of at most 1 stays mu above them once the weights are small enough.
            shrunk = min(1.0, (1.0 - self.mu) / highest) if highest > 0 else 1.0
            a[t] *= shrunk
            b[t] = shrunk * highest + self.mu
        return {
            "a": a,
            "a_abs": np.abs(a),
            "s": (a != 0).astype(float),
            "b": b,
            "d": splits.astype(float),
            "z": z,
            "l": z.any(axis=0).astype(float),
        }

    def decode(self, values: Values) -> Tree:
        """Read the splits off a solution; thresholds stand midway between the sides where both hold samples."""
        keeps = (values["s"] > 0.5) & (np.abs(values["a"]) > RESIDUE) & (values["d"] > 0.5)[:, None]
        w = np.where(keeps, values["a"], 0.0)
        goes_left, goes_right = sides(values["z"], self.topology)
        b = np.zeros(self.topology.n_branches)
        X, sizes = self.data.X, self.data.sizes
        topology = self.topology
        for t in reversed(topology.branches):
            left, right = goes_left[:, t], goes_right[:, t]
            if not w[t].any():
                below = [] if t in topology.last_branches else [topology.left(t), topology.right(t)]
                if not (left.any() or w[below].any()):
                    continue  # no split: all samples go right
                # A feature is paid for and not used, as the split sends all samples one way, which it may have to do so
                # that nodes below it split (2.5): the tree uses it likewise.
                w[t, values["s"][t].argmax()] = 1.0
            here, score, wanted = left | right, X @ w[t], -float(values["b"][t])
            if left.any() and right.any():
                wanted = -midpoint(float(score[left].max()), float(score[right].min()))
            b[t] = keep_sides(X[here], w[t], right[here], wanted, sizes=sizes[here])
        return tree_of_splits(self.data, self.topology, w, b)

    def complexity(self, tree: Tree) -> FloatArray:
        features: FloatArray = (tree.w != 0).sum(axis=1).astype(float)
        return features

    def allows(self, tree: Tree) -> bool:
        """Return whether no split of a tree has more features than :attr:`max_features`."""
        return not self.max_features or bool(((tree.w != 0).sum(axis=1) <= self.max_features).all())

    def _broken_splits(self, tree: Tree) -> dict[str, float]:
        goes_left, goes_right = sides(leaves_of(tree, self.data.X), self.topology)
        norm, missed = np.abs(tree.w).sum(axis=1), 0.0
        for t in np.flatnonzero(norm):
            score = self.data.X @ (tree.w[t] / norm[t])
            least = score[goes_right[:, t]].min(initial=np.inf)
            missed = max(missed, missed_gap(score[goes_left[:, t]] + self.mu - least, self.mu))
        features = (tree.w != 0).sum(axis=1).max(initial=0)
        return {
            f"the margin mu = {self.mu:g}": missed,  # (3.1)
            f"max_features = {self.max_features}": float(max(0, features - (self.max_features or features))),
        }

    def features(self, m: Model) -> Expression:
        return m["s"]

    def require_feature(self, of: TreeExpressions, j: int | IntArray) -> None:
        """Add rows and binaries: some split gives feature j a weight that is not negligible.

        ``s`` alone may be 1 at a weight of 0.
        """
        require_weight(of, of.m["a"], 1.0, j)
