r"""MARGOT, HFS-MARGOT and SFS-MARGOT: margin optimal classification trees.

Source: F. D'Onofrio, G. Grani, M. Monaci, L. Palagi, *Margin optimal classification trees*, Computers &
Operations Research 161 (2024), sections 3 and 4. Labels :math:`y_i \in \{-1, 1\}`; samples are assigned to
the nodes :math:`B''` of the last branching level; the left leaf of such a node predicts -1, the right one +1.

.. math::

    \min\; & \sum_{t \in B} \Bigl( \tfrac12 \|w_t\|^2 + C_t \sum_i \xi_{it} \Bigr) \\
    & y_i (w_t^\top x_i + b_t) \ge 1 - \xi_{it} - M_\xi \Bigl(1 - \sum_{s \in S''(t)} z_{is}\Bigr)
        && i,\; t \in B \quad (7) \\
    & w_t^\top x_i + b_t \ge -M_H \Bigl(1 - \sum_{s \in S''_R(t)} z_{is}\Bigr) && i,\; t \in B' \quad (9) \\
    & w_t^\top x_i + b_t + \varepsilon \le M_H \Bigl(1 - \sum_{s \in S''_L(t)} z_{is}\Bigr)
        && i,\; t \in B' \quad (10) \\
    & \sum_{s \in B''} z_{is} = 1, \quad z_{is} \in \{0, 1\}, \quad \xi_{it} \ge 0 \quad (5, 6, 8)

with :math:`S''(t)` the nodes of :math:`B''` at or below t, and :math:`S''_L, S''_R` those below its left and right
child. HFS-MARGOT adds a budget of features per node, SFS-MARGOT charges what exceeds it:

.. math::

    -M_w s_{tj} \le w_{tj} \le M_w s_{tj}, \quad s_{tj} \in \{0, 1\} \quad (11, 12) \qquad
    \text{hard: } \sum_j s_{tj} \le B_t \qquad
    \text{soft: } u_t \ge \sum_j s_{tj} - B_t,\; u_t \ge 0,\; \text{objective} + \alpha \sum_t u_t .

**Variants.** ``paper``: the constants of the paper, :math:`M_\xi = M_w = 50`, :math:`M_H = 100`. They are no bounds
in general: with a large C optimal weights exceed them, and the optimum is cut off. ``valid`` (the default): per-sample
constants and bounds on w and b proven from a feasible tree; see :mod:`formulations.margin_limits`. Both have the same
optimal value wherever the paper's constants suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.margin_limits import MarginLimits, proven_limits
from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import Dataset
from mipforest.formulation import Formulation
from mipforest.heuristics.local_svm import local_svm
from mipforest.heuristics.margin_nodes import MarginNodes, margin_tree
from mipforest.heuristics.margin_split import Split, keep_sides
from mipforest.heuristics.svm_path import svm_path
from mipforest.model import Model, QuadraticExpr, Values, VarArray, sum_squares
from mipforest.parameters import PerNode, parameter, per_node
from mipforest.problem import Preparation
from mipforest.trees import Topology, Tree

#: A weight counts as zero below this share of its node's largest, a node's weights all do below it absolutely:
#: the residue that an interior-point solver leaves.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, kw_only=True)
class Margot(Formulation):
    """Margin optimal classification tree.

    Parameters
    ----------
    C
        Penalty of margin violations: one value, one per level, or one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left.
    """

    name = "margot"
    summary = "margin optimal classification tree: a support vector machine at every node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 3"
    variants = ("valid", "paper")
    starts = ("svm-path", "local-svm", "cart")

    C: PerNode = parameter(1.0, "penalty of margin violations", above=0)
    epsilon: float = parameter(1e-3, "gap that stands for a strict inequality", above=0, below=1)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, data: Dataset, tree: Topology, prepared: MarginLimits) -> None:
        y = data.sign[:, None]
        bounds = {"w": prepared.weight, "b": prepared.bias}
        w = m.continuous("w", (tree.branches, data.features), lower=-bounds["w"], upper=bounds["w"])
        b = m.continuous("b", tree.branches, lower=-bounds["b"], upper=bounds["b"])
        xi = m.nonnegative("xi", (data.samples, tree.branches))
        z = m.binary("z", (data.samples, tree.last_branches))

        score = data.X @ w.T + b
        here = z @ tree.reach
        m.minimize(self._objective(m, w, xi, tree))
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)
        m.add("margin", y * score >= 1 - xi - prepared.M_xi * (1 - here), over=(data.samples, tree.branches))
        if tree.upper_branches:
            above, routed = score[:, tree.upper_branches], (data.samples, tree.upper_branches)
            m.add("right", above >= -prepared.M_right * (1 - z @ tree.reach_right), over=routed)
            m.add("left", above + self.epsilon <= prepared.M_left * (1 - z @ tree.reach_left), over=routed)
        self._select_features(m, w, data, tree, prepared)

    def _objective(self, m: Model, w: VarArray, xi: VarArray, tree: Topology) -> QuadraticExpr:
        C = per_node("C", self.C, tree.depth)
        objective: QuadraticExpr = 0.5 * sum_squares(w) + C @ xi.sum(axis=0)
        return objective

    def _select_features(
        self, m: Model, w: VarArray, data: Dataset, tree: Topology, prepared: MarginLimits
    ) -> None:
        """MARGOT itself may use every feature."""

    # ------------------------------------------------------------------ trees

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        tree = fitted.topology
        here = passed(fitted, data)
        slack = np.maximum(0.0, 1 - data.sign[:, None] * fitted.scores(data.X))
        return {
            "w": fitted.w.copy(),
            "b": fitted.b.copy(),
            "xi": np.where(here, slack, 0.0),
            "z": here[:, np.asarray(tree.last_branches)].astype(float),
        }

    def decode(self, values: Values, data: Dataset) -> Tree:
        w, b = np.array(values["w"]), np.array(values["b"])
        largest = np.abs(w).max(axis=1, keepdims=True)
        w[np.abs(w) <= NEGLIGIBLE * np.maximum(largest, 1.0)] = 0.0
        self._clear_unselected(w, values)
        tree = Topology(int(np.log2(len(b) + 1)))
        goes_right = values["z"] @ tree.reach_right > 0.5
        passes = values["z"] @ tree.reach > 0.5
        for t in tree.upper_branches:
            # The solver keeps sides up to its tolerance; the tree keeps them exactly.
            samples = passes[:, t]
            b[t] = keep_sides(data.X[samples] @ w[t] + b[t], goes_right[samples, t], float(b[t]))
        splits = {t: Split(w[t], float(b[t]), np.nan) for t in tree.branches}
        return margin_tree(splits, data, tree)

    def _clear_unselected(self, w: FloatArray, values: Values) -> None:
        """MARGOT itself selects no features."""

    def evaluate(self, fitted: Tree, data: Dataset) -> float:
        here, nodes = passed(fitted, data), self._nodes(fitted.topology)
        return sum(
            nodes.value(t, fitted.w[t], float(fitted.b[t]), data.X[here[:, t]], data.sign[here[:, t]])
            for t in fitted.topology.branches
        )

    # ------------------------------------------------------------------ limits and starts

    def check_data(self, data: Dataset, tree: Topology) -> None:
        data.sign  # noqa: B018 - refuses data that have not exactly two classes
        per_node("C", self.C, tree.depth)

    def prepare(self, data: Dataset, tree: Topology) -> Preparation:
        if self.variant == "paper":
            return MarginLimits()
        known = self.start("svm-path", data, tree)
        return replace(proven_limits(data.X, self.epsilon, self.evaluate(known, data)), known=known)

    def covered_bound(self, prepared: Preparation, custom: frozenset[str]) -> float:
        assert isinstance(prepared, MarginLimits)
        moves_bias = bool(custom & {"b", "xi"})
        return -np.inf if moves_bias and np.isfinite(prepared.upper_bound) else prepared.upper_bound

    def start(self, name: str, data: Dataset, tree: Topology, *, seed: int = 0) -> Tree:
        if name == "svm-path":
            return self._svm_path(data, tree, seed)
        if name == "local-svm":
            return local_svm(data, tree, self._nodes(tree))
        return super().start(name, data, tree, seed=seed)

    def _svm_path(self, data: Dataset, tree: Topology, seed: int) -> Tree:
        return svm_path(data, tree, self._nodes(tree))

    def polish(self, fitted: Tree, data: Dataset) -> Tree:
        """Solve every node's problem exactly for the tree's routing of the samples."""
        tree, nodes = fitted.topology, self._nodes(fitted.topology)
        here = passed(fitted, data)
        goes_right = fitted.scores(data.X) >= 0
        splits: dict[int, Split] = {}
        for t in tree.branches:
            X, sign = data.X[here[:, t]], data.sign[here[:, t]]
            right = goes_right[here[:, t], t] if t in tree.upper_branches else None
            own = Split(fitted.w[t], float(fitted.b[t]), np.nan)
            splits[t] = nodes.split(t, X, sign, right=right) or own
        return margin_tree(splits, data, tree)

    def _nodes(self, tree: Topology) -> MarginNodes:
        return MarginNodes(per_node("C", self.C, tree.depth), self.epsilon)


@dataclass(frozen=True, kw_only=True)
class HfsMargot(Margot):
    """MARGOT with hard feature selection: at most ``B`` features per node.

    Parameters
    ----------
    C, epsilon
        As for :class:`Margot`.
    B
        Most features a node may use: one value, one per level, or one per branch node.
    """

    name = "hfs-margot"
    summary = "MARGOT with at most B features per node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 4 (HFS-MARGOT)"

    B: PerNode = parameter(2, "most features per node", at_least=1, whole=True)

    def _select_features(
        self, m: Model, w: VarArray, data: Dataset, tree: Topology, prepared: MarginLimits
    ) -> None:
        s = self._selection(m, w, data, tree, prepared)
        m.add("budget", s.sum(axis=1) <= per_node("B", self.B, tree.depth), over=tree.branches)

    def _selection(
        self, m: Model, w: VarArray, data: Dataset, tree: Topology, prepared: MarginLimits
    ) -> VarArray:
        """Switch each feature of each node on or off: rows (11, 12)."""
        s = m.binary("s", (tree.branches, data.features))
        m.add("below", w >= -prepared.M_w * s, over=(tree.branches, data.features))
        m.add("above", w <= prepared.M_w * s, over=(tree.branches, data.features))
        return s

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        return {**super().encode(fitted, data), "s": (fitted.w != 0).astype(float)}

    def _clear_unselected(self, w: FloatArray, values: Values) -> None:
        w[values["s"] < 0.5] = 0.0

    def _svm_path(self, data: Dataset, tree: Topology, seed: int) -> Tree:
        """Take CART's routing where it is better: with few features per node it often is."""
        candidates = (super()._svm_path(data, tree, seed), self.start("cart", data, tree, seed=seed))
        return min(candidates, key=lambda fitted: self.evaluate(fitted, data))

    def check_data(self, data: Dataset, tree: Topology) -> None:
        super().check_data(data, tree)
        per_node("B", self.B, tree.depth)

    def _nodes(self, tree: Topology) -> MarginNodes:
        budget = per_node("B", self.B, tree.depth).astype(np.int64)
        return replace(super()._nodes(tree), budget=budget)


@dataclass(frozen=True, kw_only=True)
class SfsMargot(HfsMargot):
    """MARGOT with soft feature selection: every feature beyond ``B`` per node costs ``alpha``.

    Parameters
    ----------
    C, epsilon
        As for :class:`Margot`.
    B
        Features per node that are free of cost: one value, one per level, or one per branch node.
    alpha
        Cost of every further feature.
    """

    name = "sfs-margot"
    summary = "MARGOT with a cost for every feature beyond B per node"
    source = "D'Onofrio, Grani, Monaci, Palagi 2024, section 4 (SFS-MARGOT)"

    B: PerNode = parameter(1, "features per node free of cost", at_least=1, whole=True)
    alpha: float = parameter(1.0, "cost of every feature beyond B", above=0)

    def _objective(self, m: Model, w: VarArray, xi: VarArray, tree: Topology) -> QuadraticExpr:
        u = m.nonnegative("u", tree.branches)
        objective: QuadraticExpr = super()._objective(m, w, xi, tree) + self.alpha * u.sum()
        return objective

    def _select_features(
        self, m: Model, w: VarArray, data: Dataset, tree: Topology, prepared: MarginLimits
    ) -> None:
        s = self._selection(m, w, data, tree, prepared)
        m.add("excess", m["u"] >= s.sum(axis=1) - per_node("B", self.B, tree.depth), over=tree.branches)

    def encode(self, fitted: Tree, data: Dataset) -> dict[str, FloatArray]:
        values = super().encode(fitted, data)
        free = per_node("B", self.B, fitted.depth)
        return {**values, "u": np.maximum(0.0, values["s"].sum(axis=1) - free)}

    def _nodes(self, tree: Topology) -> MarginNodes:
        return replace(super()._nodes(tree), alpha=self.alpha)


def passed(fitted: Tree, data: Dataset) -> BoolArray:
    """(n, |B|) whether a sample passes a branch node of a tree for scaled features."""
    return fitted.decision_path(data.X)[:, : fitted.topology.n_branches]


__all__: list[str] = ["HfsMargot", "Margot", "SfsMargot"]
