r"""Univariate splits and the assignment of samples to leaves: shared by the models that use them; bounds by the root.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 2.2. Features in
[0, 1]; a split sends ``a.x < b`` left and the rest right; a node that does not split sends everything right.

.. math::

    & \sum_j a_{jt} = d_t, \quad 0 \le b_t \le d_t, \quad a_{jt}, d_t \in \{0, 1\} && t \in B \quad (2.2 - 2.4) \\
    & d_t \le d_{p(t)} && t \in B \setminus \{0\} \quad (2.5) \\
    & z_{it} \le l_t, \quad \sum_i z_{it} \ge N_{\min} l_t && t \in L \quad (2.6, 2.7) \\
    & \sum_{t \in L} z_{it} = 1 && i \quad (2.8) \\
    & a_m^\top (x_i + \epsilon) \le b_m + (1 + \epsilon_{\max}) (1 - z_{it})
        && i,\; t \in L,\; m \in A_L(t) \quad (2.13) \\
    & a_m^\top x_i \ge b_m - (1 - z_{it}) && i,\; t \in L,\; m \in A_R(t) \quad (2.14) \\
    & l_t \le d_m && t \in L,\; m \in A_L(t) \quad (*)

with :math:`\epsilon_j` the smallest gap between distinct values of feature j, and :math:`\epsilon_{\max}` the largest
of them.

Rows (*) are not in the thesis. Without them its model is not the one it describes: at a node that does not split,
``a = 0`` and ``b = 0`` satisfy (2.13) as ``0 <= 0``, so samples may go left there at will, and a tree without any split
separates any data. The earlier paper (Bertsimas and Dunn, Machine Learning 106, 2017, eq. 21) avoids this with
:math:`\epsilon_{\min}` on the left of (2.13); (*) says the same without a constant near the solver's tolerance.

**By thresholds**, without a big-M or an epsilon, for groups i of samples with equal features: a feature j with distinct
values :math:`v_0 < \dots < v_m` has the thresholds 1..m, number k between :math:`v_{k-1}` and :math:`v_k`
(:mod:`mipforest.heuristics.thresholds`). The binary :math:`u_{tjk}` says that node t splits on feature j **at threshold
k or a higher one**:

.. math::

    & \sum_j u_{tj1} = d_t, \quad u_{tj1} \ge u_{tj2} \ge \dots && t \in B,\; j \quad (a, b) \\
    & \mathrm{left}_{it} = \sum_j u_{t,j,r_{ij}+1} \in \{0, 1\} && i,\; t \in B \\
    & \sum_{t \in sub_L(m)} z_{it} \le \mathrm{left}_{im}, \quad \sum_{t \in sub_R(m)} z_{it} \le 1 - \mathrm{left}_{im}
        && i,\; m \in B \quad (c, d)

with :math:`r_{ij}` the rank of :math:`x_{ij}` among the distinct values (and :math:`u_{t,j,m+1} = 0`), (2.5) to (2.8)
and (*). Cumulated like this, left has p entries; with one binary per threshold it would have one for every threshold
above the sample. Both have the same linear relaxation: :math:`u_{tjk} - u_{t,j,k+1}` is the binary of threshold k. The
assignment z is continuous: for binary u its rows leave each group one leaf only. With :math:`N_{\min} = 1` rows (2.6),
(2.7), (*) only let a leaf be empty or not, and are left out.

**Sets of levels.** A categorical column has a 0/1 feature for each set S of its levels
(:mod:`mipforest.data.encoding`), and each of these one threshold. The binary :math:`y_{tv}` says that node t splits on
the column and sends its level v left; it stands in :math:`\mathrm{left}_{it}` for the u of these features, which are
continuous:

.. math::

    y_{tv} = \sum_{S \not\ni v} u_{tS} \in \{0, 1\}, \quad u_{tS} \ge 0 && t \in B,\; v \quad (s)

One binary per level and node is enough. Let :math:`\sigma = \sum_S u_{tS} > 0`. A level with :math:`y_{tv} = 0` is in
every S with :math:`u_{tS} > 0`. No S has all levels, so some :math:`y_{tv} = 1`; then :math:`\sigma = 1`, and every
such S lacks v. So there is one such S, the set of levels with :math:`y_{tv} = 0`. The linear relaxation is that of
binary u. A missing value is a level like others. The thesis has no rows for categories, and takes them as binary
features; binaries per level are those of Günlük and others (Journal of Global Optimization 81, 2021), for trees of
categorical features.

**The root.** Lower bounds on the objective by the root's threshold close the `tight` variants. An exact search
(:class:`~mipforest.searches.univariate.plugin.ExactSearch`) proves for every threshold c at the root a value
:math:`V_c` that no tree with this root is below. So the objective of the model, for binary variables of the root, is at
least :math:`\sum_c V_c [\text{threshold } c] + V_0 [\text{no split}]`: :func:`root_bound`.

At depth one and two, and on data of moderate size, all :math:`V_c` are the exact values: that also helps where
constraints forbid the best roots. Otherwise the search leaves out thresholds that cannot be best, with a bound that is
no less than the best value; where it ends within its limit, the bound of the linear relaxation is the optimum. The
limit is a number of steps: the model depends on the data alone (and on a time limit, where building has one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.data.columns import name_of
from mipforest.heuristics.thresholds import Thresholds, chosen_features, tree_of_thresholds, univariate_tree
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions, one_sided
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import free_name
from mipforest.problem.tree_search import get_search
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import keep_sides, midpoint

if TYPE_CHECKING:
    from mipforest.heuristics.thresholds import Thresholds
    from mipforest.problem.structure import UnivariateProblem

#: What models whose splits have one feature refuse, and why.
ONE_FEATURE: Mapping[str, str] = {"max_features": "each of its splits has one feature"}


@dataclass(frozen=True, eq=False)
class Routing(ABC):
    """How samples get to leaves: any leaves go with any routing.

    Attributes
    ----------
    data, topology
        Training samples (scaled) and index sets of the tree.
    N_min
        Least number of samples in a leaf that holds any.
    """

    data: Dataset
    topology: Topology
    N_min: int

    @property
    def rows(self) -> FloatArray:
        """(g, p) features of what the assignment ``z`` (g, |L|) has rows for: samples, or groups of equal ones."""
        return self.data.X

    @property
    def group(self) -> IntArray:
        """(n,) row of :attr:`rows` of each sample."""
        return np.arange(self.data.n)

    @abstractmethod
    def declare(self, m: Model) -> LinearExpr:
        """Write splits ``d`` (|B|,) and assignment ``z`` (g, |L|); return the complexity C of the tree."""

    @abstractmethod
    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        """Return the values of those blocks for a tree (for scaled features)."""

    @abstractmethod
    def decode(self, values: Values) -> Tree:
        """Read the splits off a solution; all leaves predict 0 still."""

    def allows(self, tree: Tree) -> bool:
        """Return whether no split of a tree has more features than its hyperplanes may have."""
        return True

    def violations(self, tree: Tree) -> dict[str, float]:
        """Return by how much a tree breaks (2.2), (2.5) and (2.7), see the module's text."""
        size = leaves_of(tree, self.data.X).sum(axis=0)
        splits: BoolArray = np.any(tree.w, axis=1)
        parents = self.topology.parents[1 : self.topology.n_branches]
        return {
            "the hierarchy of splits": float((splits[1:] & ~splits[parents]).any()),
            f"the least leaf size of {self.N_min}": float((self.N_min - size)[size > 0].max(initial=0.0)),
            **self._broken_splits(tree),
        }

    def _broken_splits(self, tree: Tree) -> dict[str, float]:
        """Return by how much the splits of a tree break what is asked of each."""
        used = tree.w != 0
        return {
            "one feature in each split": float(used.sum(axis=1).max(initial=1) - 1),
            "weights of 1": float(np.abs(tree.w - 1.0)[used].max(initial=0.0)),
        }

    def complexity(self, tree: Tree) -> FloatArray:
        """Return the (|B|,) share of each split in the complexity: 1 for a split, unless it counts features."""
        return tree.w.any(axis=1).astype(float)

    def alike(self, tree: Tree) -> dict[str, tuple[FloatArray, FloatArray]] | None:
        """Return bounds on the blocks of splits for the trees that part the samples alike, by the same features.

        ``None`` where a model has no binaries for thresholds.
        """
        return None

    # What constraints of users read: features (|B|, p) of splits, assignment (g, |L|) of groups to leaves.

    @abstractmethod
    def features(self, m: Model) -> Expression:
        """Return the (|B|, p) expression that is 1 where a node splits on a feature."""

    def assignment(self, m: Model) -> VarArray:
        """Return the (g, |L|) assignment of samples, or groups of equal ones, to leaves."""
        return m["z"]

    def require_feature(self, of: TreeExpressions, j: int | IntArray) -> None:
        """Add rows: some node splits on feature j, or on one of several."""
        used = self.features(of.m)[:, np.atleast_1d(j)]
        of.m.add(f"require_{name_of(self.data, np.atleast_1d(j))}", used.sum() >= 1)

    def fix_split(self, m: Model, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:
        """Add rows: node t sends samples whose feature j is below the threshold left, others right.

        Of several features, each with its threshold, it splits on one.
        """
        raise NotExpressed(
            f"these splits keep a margin, and node {t} none of its own at {np.atleast_1d(threshold)[0]:g} (scaled) of "
            f"{name_of(self.data, np.atleast_1d(j))}; fix the assignment of the samples with problem.model['z'] instead"
        )

    def keep_split(self, m: Model, t: int, features: IntArray, least: FloatArray, most: FloatArray) -> None:
        """Add rows: node t splits on one of some features, with a threshold in the range of each."""
        raise NotExpressed(
            f"these splits keep a margin, and node {t} none of its own; fix the assignment of the samples with "
            "problem.model['z'] instead"
        )

    def splits_within(self, m: Model, t: int, j: int, first: int, last: int) -> Expression:
        """Return 1 where node t splits on feature j with ``first`` to ``last`` distinct values below, else 0."""
        raise NotExpressed(
            "this variant of the model has no binaries for thresholds; choose the variant 'tight'"
        )

    def _in_range(
        self, features: IntArray, least: FloatArray, most: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return those of some features that part the samples in a range; an error where none does."""
        x = self.data.X[:, features]
        parts = (x < most).any(axis=0) & (x >= least).any(axis=0) & (x.min(axis=0) < x.max(axis=0))
        if not parts.any():
            raise one_sided(self.data, int(features[0]), float(least[0]))
        return features[parts], least[parts], most[parts]

    def _parting(self, j: int | IntArray, threshold: float | FloatArray) -> tuple[IntArray, FloatArray]:
        """Return those of some splits that part the samples; an error where none does."""
        features, at = np.atleast_1d(j), np.atleast_1d(threshold)
        features, at, _ = self._in_range(features, at, at)
        return features, at


@dataclass(frozen=True, eq=False)
class RoutingExpressions(TreeExpressions):
    """What a model says of its splits and of the leaves of samples: its routing reads them."""

    routing: Routing

    def features(self) -> Expression:
        return self.routing.features(self.m)

    def require_feature(self, j: int | IntArray) -> None:
        self.routing.require_feature(self, j)

    def fix_split(self, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:
        self.routing.fix_split(self.m, t, j, threshold)

    def keep_split(self, t: int, features: IntArray, least: FloatArray, most: FloatArray) -> None:
        self.routing.keep_split(self.m, t, features, least, most)

    def splits_within(self, t: int, j: int, first: int, last: int) -> Expression:
        return self.routing.splits_within(self.m, t, j, first, last)

    def feature_blocks(self) -> tuple[str, ...]:
        return ("a", "s")

    def alike(self, tree: Tree, *, labels: bool) -> dict[str, tuple[FloatArray, FloatArray]] | None:
        bounds = self.routing.alike(tree)
        return bounds and {name: sides for name, sides in bounds.items() if name in self.m.variables}

    def leaves(self) -> Expression:
        return self.routing.assignment(self.m)[self.routing.group]

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        return {"z": leaves_of(tree, self.routing.rows)} if "z" in self.m.variables else {}


class UnivariateRouting(Routing):
    """Splits by the thesis' rows."""

    @cached_property
    def gaps(self) -> FloatArray:
        """(p,) smallest gap between distinct values of each feature; 1 for a constant one (it splits nothing)."""
        gaps = [np.diff(np.unique(column)) for column in self.data.X.T]
        return np.array([gap.min() if len(gap) else 1.0 for gap in gaps])

    def declare(self, m: Model) -> LinearExpr:
        X, epsilon, topology = self.data.X, self.gaps, self.topology
        a = m.binary(
            "a", (topology.branches, self.data.features), meaning="1 for the feature that a node splits on"
        )
        b = m.nonnegative("b", topology.branches, meaning="threshold of a node, of scaled features")
        d = m.binary("d", topology.branches, meaning="whether a node splits")
        z = m.binary("z", (self.data.samples, topology.leaves), meaning="whether a sample reaches a leaf")
        used = m.binary("l", topology.leaves, meaning="whether a leaf holds samples")
        # Variables are repeated per leaf, not their products with X: choosing variables copies no matrix.
        t_left, m_left = np.nonzero(topology.leaf_reach_left.toarray())
        t_right, m_right = np.nonzero(topology.leaf_reach_right.toarray())

        m.add("one_feature", a.sum(axis=1) == d, over=topology.branches)  # (2.2)
        m.add("threshold", b <= d, over=topology.branches)  # (2.3)
        declare_hierarchy(m, topology, d)  # (2.5)
        declare_leaf_sizes(m, topology, d, z, used, np.ones(self.data.n), self.N_min)  # (2.6), (2.7), (*)
        m.add("assign", z.sum(axis=1) == 1, over=self.data.samples)  # (2.8)
        big_m = 1 + epsilon.max()
        m.add("left", (X + epsilon) @ a[m_left].T <= b[m_left] + big_m * (1 - z[:, t_left]))  # (2.13)
        m.add("right", X @ a[m_right].T >= b[m_right] - (1 - z[:, t_right]))  # (2.14)
        return d.sum()

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        feature, X = chosen_features(tree), self.data.X
        z = leaves_of(tree, X)
        goes_left, goes_right = sides(z, self.topology)
        a, b = np.zeros(tree.w.shape), np.zeros(self.topology.n_branches)
        for t in np.flatnonzero(feature >= 0):
            j = feature[t]
            a[t, j] = 1.0
            # Any threshold in the gap between the sides routes alike; (2.13) wants it eps_j above the left side.
            b[t] = (
                X[goes_right[:, t], j].min()
                if goes_right[:, t].any()
                else X[goes_left[:, t], j].max(initial=0.0) + self.gaps[j]
            )
        return {"a": a, "b": b, "d": (feature >= 0).astype(float), "z": z, "l": z.any(axis=0).astype(float)}

    def decode(self, values: Values) -> Tree:
        """Read the splits off a solution; thresholds stand midway between the sides."""
        feature = np.where(values["d"] > 0.5, values["a"].argmax(axis=1), -1)
        goes_left, goes_right = sides(values["z"], self.topology)
        threshold = np.array(values["b"])
        X, sizes = self.data.X, self.data.sizes
        for t in np.flatnonzero(feature >= 0):
            j, left, right = feature[t], goes_left[:, t], goes_right[:, t]
            if left.any() and right.any():
                threshold[t] = midpoint(X[left, j].max(), X[right, j].min())
                continue
            # Where all samples take one side, the solver's threshold may miss it by its tolerance.
            here, x = left | right, [j]
            threshold[t] = -keep_sides(
                X[here][:, x], np.ones(1), right[here], -float(threshold[t]), sizes=sizes[here][:, x]
            )
        return univariate_tree(self.data, self.topology, feature, threshold)

    def features(self, m: Model) -> Expression:
        return m["a"]

    def fix_split(self, m: Model, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:
        features, at = self._parting(j, threshold)
        self.keep_split(m, t, features, at, at)

    def keep_split(self, m: Model, t: int, features: IntArray, least: FloatArray, most: FloatArray) -> None:
        features, least, most = self._in_range(features, least, most)
        x, lowest = self.data.X[:, features], self.data.X[:, features].min(axis=0)
        below = np.where(x < least, x, lowest).max(axis=0)
        above = np.where(x >= most, x, np.inf).min(axis=0)
        name, b, chosen = free_name(m, f"split_n{t}"), m["b"][t], m["a"][t, features]
        m.add(f"{name}_feature", chosen.sum() == 1)
        # Rows (2.13) keep the threshold eps_j above the left side.
        m.add(f"{name}_above_left", b >= (below + self.gaps[features]) @ chosen)
        m.add(f"{name}_below_right", b <= np.minimum(above, x.max(axis=0)) @ chosen)


@dataclass(frozen=True, eq=False)
class ThresholdRouting(Routing):
    """Splits by thresholds, on groups of equal samples.

    Attributes
    ----------
    thresholds
        All thresholds of the data.
    """

    thresholds: Thresholds

    #: Rows of the assignment.
    assignment_rows: ClassVar[tuple[str, ...]] = ("assign", "assign_left", "assign_right")

    @property
    def rows(self) -> FloatArray:
        return self.thresholds.X

    @property
    def group(self) -> IntArray:
        return self.thresholds.group

    def declare(self, m: Model) -> LinearExpr:
        d = m.binary("d", self.topology.branches, meaning="whether a node splits")
        left = self.declare_splits(m, d)  # (a), (b)
        self.declare_assignment(m, d, left)  # (2.5) - (2.8), (c), (d), (*)
        return d.sum()

    def declare_splits(self, m: Model, d: VarArray) -> LinearExpr:
        """Write rows (a), (b), (s); return left (g, |B|): 1 where a group goes left, 0 where it goes right."""
        thresholds, lowest, above = self.thresholds, self.thresholds.lowest, self.thresholds.above_lowest
        u = m.binary(
            "u",
            (self.topology.branches, list(thresholds.labels)),
            meaning="1 up to the threshold that a node splits at, of the sorted thresholds of each feature",
        )
        if self.levels.names:
            u[:, self.levels.thresholds].relax()
            y = m.binary(
                "y",
                (self.topology.branches, list(self.levels.names)),
                meaning="whether samples of a level go left at a node",
            )
            m.add("levels_left", self.levels.left @ u.T == y.T)  # (s)
        m.add("one_cut", u[:, lowest].sum(axis=1) == d, over=self.topology.branches)  # (a)
        if len(above):
            m.add("ordered", u[:, above] <= u[:, above - 1])  # (b)
        return self._left(m)

    def _left(self, m: Model) -> LinearExpr:
        left: LinearExpr = self.levels.rest @ m["u"].T
        return left + self.levels.of_group @ m["y"].T if self.levels.names else left

    @cached_property
    def levels(self) -> Levels:
        """The levels of columns of which sets are features."""
        return Levels.of(self.data, self.thresholds)

    def declare_assignment(self, m: Model, d: VarArray, left: LinearExpr) -> None:
        """Write rows (2.5) to (2.8), (c), (d), (*)."""
        z = self._declare_leaves(m, left)
        used = (
            m.binary("l", self.topology.leaves, meaning="whether a leaf holds samples")
            if self.N_min > 1
            else None
        )
        declare_hierarchy(m, self.topology, d)  # (2.5)
        if used is not None:
            weight = np.bincount(self.group).astype(float)
            declare_leaf_sizes(m, self.topology, d, z, used, weight, self.N_min)  # (2.6), (2.7), (*)

    def _declare_leaves(self, m: Model, left: LinearExpr) -> VarArray:
        z = m.nonnegative(
            "z",
            (left.shape[0], self.topology.leaves),
            upper=1,
            meaning="whether a group of samples reaches a leaf",
        )
        m.add("assign", z.sum(axis=1) == 1)  # (2.8)
        m.add("assign_left", z @ self.topology.leaf_reach_left <= left)  # (c)
        m.add("assign_right", z @ self.topology.leaf_reach_right <= 1 - left)  # (d)
        return z

    def assignment(self, m: Model) -> VarArray:
        """Return the assignment; it is declared here where the model does without."""
        return m["z"] if "z" in m.variables else self._declare_leaves(m, self._left(m))

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        feature, z = chosen_features(tree), leaves_of(tree, self.rows)
        splits = {"d": (feature >= 0).astype(float), "u": self.thresholds.encode(feature, -tree.b), "z": z}
        if self.levels.names:
            splits["y"] = (self.levels.left @ splits["u"].T).T
        return splits | {"l": z.any(axis=0).astype(float)} if self.N_min > 1 else splits

    def alike(self, tree: Tree) -> dict[str, tuple[FloatArray, FloatArray]]:
        found = {name: (value, value) for name, value in self.encode(tree).items()}
        feature, X = chosen_features(tree), self.rows
        goes_left, goes_right = sides(leaves_of(tree, X), self.topology)
        lowest, highest = found["u"][0].copy(), found["u"][0].copy()
        for t in np.flatnonzero(feature >= 0).tolist():
            own, x = self.thresholds.of(int(feature[t])), X[:, feature[t]]
            value = self.thresholds.value[own]
            least, most = x[goes_left[:, t]].max(initial=-np.inf), x[goes_right[:, t]].min(initial=np.inf)
            among = np.flatnonzero((value > least) & (value <= most))
            lowest[t, own] = np.arange(len(value)) <= among[0]
            highest[t, own] = np.arange(len(value)) <= among[-1]
        found["u"] = lowest, highest
        if self.levels.names:
            found["y"] = (self.levels.left @ lowest.T).T, (self.levels.left @ highest.T).T
        return found

    def _broken_splits(self, tree: Tree) -> dict[str, float]:
        used, least, most = chosen_features(tree), self.rows.min(axis=0), self.rows.max(axis=0)
        t = np.flatnonzero(used >= 0)
        beyond = (-tree.b[t] <= least[used[t]]) | (-tree.b[t] > most[used[t]])
        return {
            **super()._broken_splits(tree),
            "a threshold of each split between values of its feature": float(beyond.any()),
        }

    def decode(self, values: Values) -> Tree:
        chosen = self.thresholds.decode(self.levels.whole(values["u"]))
        return tree_of_thresholds(self.data, self.topology, self.thresholds, chosen)

    def features(self, m: Model) -> Expression:
        lowest, n_thresholds = self.thresholds.lowest, len(self.thresholds)
        picks = sparse.csr_array(
            (np.ones(len(lowest)), (lowest, self.thresholds.feature[lowest])),
            shape=(n_thresholds, self.data.p),
        )
        used: LinearExpr = m["u"] @ picks
        return used

    def fix_split(self, m: Model, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:
        features, at = self._parting(j, threshold)
        on, u, name = self.thresholds.encode(features, at), m["u"][t], free_name(m, f"split_n{t}")
        if len(features) == 1:
            m.add(name, u == on[0])
            return
        chosen = u[self.thresholds.first[features]]  # 1 where the node splits on the feature
        m.add(name, u == on.T @ chosen)
        m.add(f"{name}_feature", chosen.sum() == 1)

    def splits_within(self, m: Model, t: int, j: int, first: int, last: int) -> Expression:
        u, own = m["u"], self.thresholds.of(j)
        at_least: LinearExpr = float(first <= last) * u[t, own.start + first - 1]
        if first > last or own.start + last == own.stop:
            return at_least
        within: LinearExpr = at_least - u[t, own.start + last]
        return within

    def keep_split(self, m: Model, t: int, features: IntArray, least: FloatArray, most: FloatArray) -> None:
        features, least, most = self._in_range(features, least, most)
        u, own, name = m["u"][t], [self.thresholds.of(int(j)) for j in features], free_name(m, f"split_n{t}")
        values = [np.unique(self.data.X[:, j]) for j in features]
        # A threshold's variable is 1 where the node has it or a higher one of its feature.
        at_least = [max(1, int((x < low).sum())) - 1 for x, low in zip(values, least, strict=True)]
        m.add(name, u[[of.start + k for of, k in zip(own, at_least, strict=True)]].sum() == 1)
        for j, of, x, high in zip(features, own, values, most, strict=True):
            above = of.start + int((x < high).sum())
            if above < of.stop:
                m.add(f"{name}_most_{j}", u[above] == 0)


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of columns of which sets are features, as the training samples have them.

    Attributes
    ----------
    names
        (v,) names of column and level; levels that the same groups have are not told apart.
    columns
        Thresholds of each such column: one for each set of levels that separates samples.
    left
        (v, q) CSR matrix with a 1 at the sets that send a level left.
    of_group
        (g, v) CSR matrix with a 1 at the levels that a group has.
    rest
        (g, q) CSR matrix with a 1 at the lowest threshold, of other features, that sends a group left.
    """

    names: tuple[str, ...]
    columns: tuple[IntArray, ...]
    left: sparse.csr_array
    of_group: sparse.csr_array
    rest: sparse.csr_array

    @property
    def thresholds(self) -> IntArray:
        """Thresholds of all these columns."""
        return np.concatenate(self.columns)

    @classmethod
    def of(cls, data: Dataset, thresholds: Thresholds) -> Levels:
        """Find the levels of a data set."""
        names: list[str] = []
        columns, left, codes = [], [], []
        q, first = len(thresholds), 0
        for column in data.encoding.columns:
            own = np.arange(first, first + len(column.features))
            first += len(own)
            at = np.flatnonzero(np.isin(thresholds.feature, own)) if column.sets else np.zeros(0, dtype=int)
            if not len(at):
                continue
            goes_left = thresholds.left[:, at].toarray()
            patterns, code = np.unique(goes_left, axis=0, return_inverse=True)
            codes.append(len(names) + code.ravel())
            table = 1.0 - column.table[:, thresholds.feature[at] - own[0]]
            known = [*(column.levels or ()), "missing"]
            names += [
                f"{column.name}={known[int((table == pattern).all(axis=1).argmax())]}" for pattern in patterns
            ]
            whole = np.zeros((len(patterns), q))
            whole[:, at] = patterns
            columns.append(at)
            left.append(whole)
        rest = thresholds.left
        of_group = np.zeros((len(thresholds.X), len(names)))
        for code in codes:
            of_group[np.arange(len(code)), code] = 1.0
        if columns:
            keep = np.ones(q)
            keep[np.concatenate(columns)] = 0.0
            rest = sparse.csr_array(rest.multiply(keep))
            rest.eliminate_zeros()
        matrix = np.vstack(left) if left else np.zeros((0, q))
        return cls(
            tuple(names),
            tuple(columns),
            sparse.csr_array(matrix),
            sparse.csr_array(of_group),
            sparse.csr_array(rest),
        )

    def whole(self, u: FloatArray) -> FloatArray:
        """Return the values (|B|, q) of u with one set chosen where several that send the same levels left share 1."""
        if not self.names:
            return u
        u = u.copy()
        for at in self.columns:
            share = u[:, at]
            chosen = np.zeros_like(share)
            rows = np.flatnonzero(share.sum(axis=1) > 0.5)
            chosen[rows, share[rows].argmax(axis=1)] = 1.0
            u[:, at] = chosen
        return u


# ---------------------------------------------------------------------- rows that routings share


def declare_hierarchy(m: Model, topology: Topology, d: VarArray) -> None:
    """Write (2.5): a node splits only if its parent does."""
    children = np.arange(1, topology.n_branches)
    if len(children):
        m.add("hierarchy", d[children] <= d[topology.parents[children]])  # (2.5)


def declare_leaf_sizes(
    m: Model, topology: Topology, d: VarArray, z: VarArray, used: VarArray, weight: FloatArray, N_min: int
) -> None:
    """Write (2.6), (2.7), (*): a leaf in use holds enough samples, and lies left of splits only.

    Parameters
    ----------
    m, topology
        Model and index sets of the tree.
    d, z, used
        Splits (|B|,), assignment (g, |L|), leaves in use (|L|,).
    weight
        (g,) number of samples that each row of the assignment stands for.
    N_min
        Least number of samples in a leaf in use.
    """
    m.add("in_use", z <= used)  # (2.6)
    m.add("leaf_size", weight @ z >= N_min * used, over=topology.leaves)  # (2.7)
    t_left, m_left = np.nonzero(topology.leaf_reach_left.toarray())
    m.add("left_needs_split", used[t_left] <= d[m_left])  # (*)


def check_leaf_size(data: Dataset, N_min: int) -> None:
    """Refuse a least leaf size above the number of samples, with a DataError."""
    if N_min > data.n:
        raise DataError(f"N_min is {N_min}, but {data.name} has {data.n} samples; give at most that")


# ---------------------------------------------------------------------- trees


def leaves_of(tree: Tree, X: FloatArray) -> FloatArray:
    """Return the (n, |L|) assignment of samples to the leaves of a tree, as 0 and 1."""
    z = np.zeros((len(X), tree.topology.n_leaves))
    z[np.arange(len(X)), tree.apply(X) - tree.topology.n_branches] = 1.0
    return z


def sides(z: FloatArray, topology: Topology) -> tuple[BoolArray, BoolArray]:
    """Return (n, |B|) which samples an assignment to leaves sends left, and right, at each branch node."""
    return z @ topology.leaf_reach_left > 0.5, z @ topology.leaf_reach_right > 0.5


def with_paying_splits(tree: Tree, split_cost: FloatArray, alone: FloatArray) -> Tree:
    """Take back splits that do not pay for themselves, from the leaves up.

    A node keeps its split if its subtree then costs less than one leaf in its place. Below a node without a split there
    are none.

    Parameters
    ----------
    tree
        Its leaves are to be fitted again.
    split_cost
        (|B|,) cost of each split.
    alone
        (2 |B| + 1,) cost of each node as a leaf; infinite where it may be none, 0 where no sample reaches it.
    """
    topology, value = tree.topology, alone.copy()
    keeps = np.zeros(topology.n_nodes, dtype=bool)
    for t in reversed(topology.branches):
        if not tree.is_trivial(t):
            split = split_cost[t] + value[topology.left(t)] + value[topology.right(t)]
            keeps[t], value[t] = split < alone[t], min(split, alone[t])
    for t in range(1, topology.n_branches):
        keeps[t] &= keeps[topology.parent(t)]
    kept = keeps[: topology.n_branches]
    return replace(tree, w=np.where(kept[:, None], tree.w, 0.0), b=np.where(kept, tree.b, 0.0))


#: The search that bounds the objective by the root: one of :class:`~mipforest.problem.structure.UnivariateProblem`.
EXACT = "exact-search"

#: Resolution of the values in the row on the root, in the units of the objective they bound.
RESOLUTION = 2.0**-24

#: Most samples to scan for the exact values of all thresholds at depth one or two: some tenths of a second.
MAX_COMPLETE = 3e8

#: Most samples to scan otherwise: about a second; at depth two the search nearly always ends long before its limit.
MAX_SCANNED = {1: 1e10, 2: 1e10}
MAX_SCANNED_DEEPER = 5e8

#: Numbers of a table up to which a search of two levels ends in less time than CART takes.
ENDS_AT_ONCE = 1e6

#: Scans for medians take this many times longer.
MEDIANS = 10


@dataclass(frozen=True, eq=False)
class RootValues:
    """What an exact search proves of trees by their root, and its best tree; in the units of the search.

    Attributes
    ----------
    by_threshold
        (q,) least value of a tree with each threshold at the root, or a lower bound on it; infinite where a side would
        be too small.
    no_split
        Value of the tree without a split.
    least
        Lower bound on the value of all trees.
    chosen
        (|B|,) thresholds of the best tree, -1 where a node does not split; ``None`` if it is the one that was given.
    ended
        Whether the search came to its end: its best tree is the best of all.
    """

    by_threshold: FloatArray
    no_split: float
    least: float
    chosen: IntArray | None
    ended: bool


def root_values(
    problem: UnivariateProblem,
    depth: int,
    no_split: float,
    *,
    best: float = np.inf,
    budget: TimeBudget | None = None,
) -> RootValues:
    """Search for the best tree within a limit, and return what is proven by the root's threshold.

    Parameters
    ----------
    problem
        What trees are charged.
    depth
        Most splits on a path.
    no_split
        Value of the tree without a split.
    best
        Value of a tree that is known.
    budget
        Half of what is left of it ends the search as well: the solver has the rest.
    """
    search: Any = get_search(EXACT)
    part = None if budget is None else budget.part(share=0.5)
    scan = problem.thresholds.X.size * (1 if problem.loss.has_sums else MEDIANS)
    outcome = search.outcome(
        problem,
        depth,
        budget or TimeBudget(),
        best=best,
        most_nodes=1 + int(MAX_SCANNED.get(depth, MAX_SCANNED_DEEPER) / scan),
        on_progress=None if part is None else lambda *_: part.expired,
        complete=depth <= 2 and len(problem.thresholds) * scan <= MAX_COMPLETE,
    )
    return RootValues(outcome.by_threshold, no_split, outcome.bound, outcome.chosen, outcome.ended)


def root_bound(u: VarArray, d: VarArray, thresholds: Thresholds, roots: RootValues) -> LinearExpr:
    """Return the least objective of a tree by its root: the sum over thresholds of value times binary.

    Parameters
    ----------
    u, d
        (q,) variables of the root's threshold (:class:`~formulations.splits.univariate.ThresholdRouting`), and
        whether it splits.
    thresholds, roots
        The thresholds, and the least objective for each.
    """
    # A threshold that leaves too few samples on a side is infeasible; any value bounds it.
    values = np.where(np.isfinite(roots.by_threshold), roots.by_threshold, roots.no_split)
    # Rounded down to multiples of a power of two, so that their differences are exact: no coefficient of 1e-17.
    values = np.floor(values / RESOLUTION) * RESOLUTION
    steps = np.diff(values, prepend=0.0)
    steps[thresholds.lowest] = values[thresholds.lowest]
    bound: LinearExpr = steps @ u + roots.no_split * (1 - d)
    return bound


def is_begun_simply(data: Dataset, topology: Topology) -> bool:
    """Return whether a search that solves the model begins with CART's tree, and none runs while the model is built.

    At depth one and two of moderate data that search ends at once, and its bounds by the root are a second witness.
    """
    return topology.depth > 2 or data.X.size > ENDS_AT_ONCE


def search_by_root(
    formulation: Formulation,
    instance: Any,
    problem: UnivariateProblem,
    with_leaves: Callable[[Tree], Tree],
    *,
    unit: float,
    no_split: float | None = None,
) -> tuple[Tree, RootValues]:
    """Search for the best tree within a limit; return the best one found, and what is proven by the root.

    Parameters
    ----------
    formulation, instance
        What trees are of, and bound to; beyond depth 2 the start ``cart`` is known first.
    problem
        What trees are charged.
    with_leaves
        Returns the tree of some splits with its best leaves.
    unit
        What an objective of 1 is in the units of the problem.
    no_split
        Value of the tree without a split, in these; ``unit`` unless given.
    """
    data, topology, given, best = instance.data, instance.topology, None, np.inf
    if topology.depth > 2:
        given = formulation.start("cart", instance)
        best = formulation.evaluate(given, instance) * unit
    without = unit if no_split is None else no_split
    roots = root_values(problem, topology.depth, without, best=best, budget=instance.budget)
    if given is not None and roots.chosen is None:
        return given, roots
    chosen = np.full(topology.n_branches, -1) if roots.chosen is None else roots.chosen
    found = with_leaves(tree_of_thresholds(data, topology, problem.thresholds, chosen))
    if not roots.ended:  # what it has by then may be worse than CART's tree
        others = (found, given or formulation.start("cart", instance))
        found = min(others, key=lambda tree: formulation.evaluate(tree, instance))
    return found, roots
