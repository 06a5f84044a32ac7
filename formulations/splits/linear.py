r"""Trees with a linear classifier at every branch node: what their formulations share besides the rows.

The blocks ``w`` (|B|, p) and ``b`` (|B|,) are the hyperplanes, ``z`` (n, |B''|) assigns samples to the nodes of the
last branching level, ``s`` (|B|, p) switches features on where they are selected, and ``u`` (|B|,) is the excess over a
soft budget of them. Labels are -1 and +1; the left leaf of a last branch node predicts -1, the right one +1.

The objective charges at branch nodes a norm of the weights and C times the loss of the samples that pass, each times
the sample's weight (weights of samples in the formulas of the papers: :math:`C_t \xi_{it}` is multiplied). For a fixed
routing the problem falls apart into one per node: :mod:`mipforest.heuristics.node_problems`. They value a tree, polish
it, and give starts; the value of a start proves the big-Ms of variant ``valid``: :mod:`formulations.margins`.

**The gap epsilon.** A sample on the left of a split has a score of at most :math:`-\varepsilon`, which stands for a
score below 0. Trees with a score in :math:`(-\varepsilon, 0)` are left out. A fixed gap leaves out more the more
samples there are: of n samples whose scores are spread over a unit, :math:`n \varepsilon` are between the sides of a
split on average. From some ten thousand samples on, the default of 1e-3 decides where splits can be.

``epsilon=relative`` takes a tenth of the smallest gap that the data allow. Of n different samples with scores within
the margins, -1 and 1, the smallest gap between neighbouring scores is at most :math:`2 / (n - 1)`, whatever the
hyperplane. So

.. math::  \varepsilon = \tfrac{1}{10} \cdot \frac{2}{n - 1} \quad\text{in two digits, at least } 10^{-7},
    \text{ at most } 10^{-3},

and a split between two neighbouring scores whose gap is no less than a tenth of the average fits without moving.

- The number is computed for the training samples when the model is built. The result has it in place of the word, in
  its parameters and as a note; so have certificates and exported models. Values of trees with different gaps are
  those of different models: a smaller gap leaves out fewer trees, and the optimum is no larger.
- At least 1e-7 is a hundred times the distance at which a score counts as on its side
  (:data:`~mipforest.trees.sides.SIDE_TOLERANCE`), and as far above rounding errors of scores. Of more than two million
  samples the floor decides.
- At most 1e-3 is the default: up to 201 different samples nothing changes.
- Searches (``routing``, ``local-search``) compare scores themselves, and need no tolerance. A matrix solver may be
  wrong about a side by its tolerance times a big-M: with tolerances of 1e-9 and big-Ms of 100 that is 1e-7, and with
  its defaults of 1e-6 more than any gap but the default one. An optimum that is that of no tree is not verified.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from formulations.margins import (
    ROUNDING,
    MarginLimits,
    at_nodes,
    moved_into_limits,
    proven_limits,
    weight_limits,
)
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import features_named
from mipforest.heuristics.cart import random_trees
from mipforest.heuristics.node_problems import NodeProblems, Split, bias_if_empty, passed
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.problem.expressions import (
    Expression,
    NotExpressed,
    TreeExpressions,
    one_sided,
    require_weight,
)
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import ModelChanges, free_name
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import PerNode, RelativeNumber, is_relative, parameter
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import clear_residue, keep_sides, missed_gap

#: What models refuse whose nodes pay for margins, and why.
NO_COSTS: Mapping[str, str] = {
    "costs": "the loss of a margin has no cost of a predicted class; take oct or oct-h, or weights of samples"
}

#: Most samples for which the papers' constants are compared with proven ones: that takes all distances.
MAX_SAMPLES = 10_000

#: Share of the time that the start from which the limits are proven may take: the solver has the rest.
START_SHARE = 0.5

#: The gap unless another one is asked for, and the most that a relative one is.
GAP = 1e-3

#: Share of the smallest gap that the data allow which a relative gap is, and the least that one is: a hundred times
#: :data:`~mipforest.trees.sides.SIDE_TOLERANCE`.
SHARE_OF_GAP, LEAST_GAP = 0.1, 1e-7

#: Values of the parameter epsilon.
GAPS = RelativeNumber(above=0, below=1)

#: Scores are charged for: a bias moves by at most this for the sake of the tree in original units.
BIAS_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearInstance(Instance):
    """A data set for a tree of linear classifiers.

    Attributes
    ----------
    nodes
        What the objective charges at each node: penalties and feature budgets, spread over the nodes, loss and norm.
    limits
        Big-Ms: constants of the paper, or proven ones.
    """

    nodes: NodeProblems
    limits: MarginLimits


AnyInstance = TypeVar("AnyInstance", bound=LinearInstance)


@dataclass(frozen=True, kw_only=True)
class LinearTree(Formulation):
    """A tree of linear classifiers; a subclass states its rows, and what they charge at each node.

    Parameters
    ----------
    C
        Penalty of the loss: one value, one per level, or one per branch node.
    epsilon
        Gap that stands for the strict inequality to the left, or ``relative``; see the module's text.
    """

    two_classes = True
    takes_weights = True
    refused_parameters: ClassVar[Mapping[str, str]] = NO_COSTS
    variants: ClassVar[tuple[str, ...]] = ("valid", "paper")
    least_objective = 0.0
    gap_parameter = "epsilon"
    gap_rows = ("left", "right")
    structure_type = NodeProblems
    #: The start that a tree search improves on soon, found in a fraction of a second without feature budgets.
    quick_start: ClassVar[str | None] = None

    C: PerNode = parameter(1.0, "penalty of the loss", above=0)
    epsilon: float = parameter(GAP, "gap that stands for a strict inequality", kind=GAPS)

    # ------------------------------------------------------------------ the model

    @abstractmethod
    def node_problems(self, topology: Topology) -> NodeProblems:
        """Return what the objective charges at each branch node."""

    def structure(self, instance: Instance) -> NodeProblems:
        return self.node_problems(instance.topology)

    @abstractmethod
    def paper_limits(self, nodes: NodeProblems) -> MarginLimits:
        """Return the constants of variant ``paper``."""

    def root_share(self, instance: LinearInstance) -> float:
        """Return a lower bound on what the objective charges at the root: it tightens the other nodes' limits."""
        return 0.0

    def for_data(self, data: Dataset) -> tuple[Self, tuple[str, ...]]:
        if not is_relative(self.epsilon):
            return self, ()
        epsilon, count = relative_gap(data)
        note = f"epsilon=relative is {epsilon:g}, for {count} different samples"
        return replace(self, epsilon=epsilon), (note,)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        data.sign  # noqa: B018 - refuses data that have not exactly two classes
        self.node_problems(topology)  # refuses parameters that do not fit the depth

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> LinearInstance:
        return self.with_limits(self._without_limits(data, topology, budget or TimeBudget()))

    def bind_quickly(self, data: Dataset, topology: Topology, budget: TimeBudget) -> LinearInstance | None:
        instance = self._without_limits(data, topology, budget)
        if self.quick_start is None or instance.nodes.budget is not None or self.variant == "paper":
            return None
        return self.with_limits(instance, start=self.quick_start)

    def _without_limits(self, data: Dataset, topology: Topology, budget: TimeBudget) -> LinearInstance:
        nodes = replace(self.node_problems(topology), time=budget)
        return LinearInstance(
            data=data, topology=topology, budget=budget, nodes=nodes, limits=self.paper_limits(nodes)
        )

    def with_limits(self, instance: AnyInstance, *, start: str = "") -> AnyInstance:
        """Return the instance with limits proven from a start (the default one), but for variant ``paper``."""
        if self.variant == "paper":
            return instance
        budget = instance.budget
        with budget.phase("start", "finding a start tree"):
            part = budget.part(share=START_SHARE)
            within = replace(instance, budget=part, nodes=replace(instance.nodes, time=part))
            known = self.start(start or self.starts[0], within)
        with budget.phase("bounds", "proving limits from the start tree"):
            part = budget.part(share=START_SHARE)
            within = replace(instance, budget=part, nodes=replace(instance.nodes, time=part))
            limits = self._limits(
                instance, self.evaluate(known, instance), root_share=self.root_share(within)
            )
        return replace(instance, limits=limits, known=known)

    def _limits(
        self,
        instance: LinearInstance,
        upper_bound: float,
        *,
        root_share: float,
        bias_read: FloatArray | None = None,
    ) -> MarginLimits:
        return proven_limits(
            instance.data.X,
            self.epsilon,
            upper_bound,
            n_branches=instance.topology.n_branches,
            root_share=root_share,
            loss=instance.nodes.loss,
            norm=instance.nodes.norm,
            bias_read=bias_read,
        )

    def valid_below(self, instance: LinearInstance, changes: ModelChanges) -> float:
        upper_bound = instance.limits.upper_bound
        if not np.isfinite(upper_bound):
            return upper_bound
        return -np.inf if changes.loosened or changes.locked("b").any() else upper_bound

    def with_all_trees(self, instance: LinearInstance) -> LinearInstance | None:
        return instance if np.isinf(instance.limits.upper_bound) else None

    def with_cutoff(
        self, instance: LinearInstance, value: float, changes: ModelChanges
    ) -> LinearInstance | None:
        limits = None if self.variant == "paper" else self._limits_under(instance, value, changes)
        return None if limits is None else replace(instance, limits=limits)

    def _limits_under(
        self, instance: LinearInstance, value: float, changes: ModelChanges
    ) -> MarginLimits | None:
        """Return limits that hold with added constraints, from the value of a solution; ``None`` if none are proven."""
        nodes, branches = instance.nodes, instance.topology.n_branches
        charged = np.isfinite(nodes.norm.radius(np.ones(1))).all() and not nodes.uncharged
        if changes.loosened or not charged or not np.isfinite(value):
            return None
        root_share, bias_read = self.root_share(instance), np.full(branches, np.nan)
        read = np.flatnonzero(changes.locked("b"))
        if len(read):
            radius = weight_limits(value, n_branches=branches, root_share=root_share, norm=nodes.norm)
            ranges = changes.ranges("b", read, {"w": radius[:, None], "b": np.inf})
            bias_read[read] = np.abs(ranges).max(axis=0) * (1 + ROUNDING) + ROUNDING
            if not np.isfinite(bias_read[read]).all():
                return None
        return self._limits(instance, value, root_share=root_share, bias_read=bias_read)

    def constants_proven(self, instance: LinearInstance, value: float, changes: ModelChanges) -> bool:
        nodes, given, upper = instance.nodes, instance.limits, instance.topology.upper_branches
        if self.variant != "paper":
            return True  # :meth:`valid_below` tells how far
        if instance.data.n > MAX_SAMPLES:
            return False
        if not upper and nodes.exact and nodes.budget is None:
            return True  # there are no constants in its rows
        limits = self._limits_under(instance, value, changes)
        if limits is None:
            return False
        needed = list(zip(given.M_xi, limits.M_xi, strict=True))
        if upper:
            needed += [(given.M_right, at_nodes(limits.M_right, upper))]
            needed += [(given.M_left, at_nodes(limits.M_left, upper))]
        if nodes.budget is not None:
            needed += [(given.M_w, limits.M_w)]
        return all(bool(np.all(np.greater_equal(constant, least))) for constant, least in needed)

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: Any) -> dict[str, FloatArray]:
        """Return the values of the splits, the routing and the selected features; slacks are for the subclass."""
        last, nodes = np.asarray(instance.topology.last_branches), instance.nodes
        z = passed(tree, instance.data)[:, last].astype(float)
        values = {"w": tree.w.copy(), "b": tree.b.copy(), "z": z}
        if nodes.budget is not None:
            values["s"] = (tree.w != 0).astype(float)
            if nodes.alpha is not None:
                values["u"] = np.maximum(0.0, values["s"].sum(axis=1) - nodes.budget)
        return values

    def decode(self, values: Values, instance: Any) -> Tree:
        nodes: NodeProblems = instance.nodes
        # Weights of nodes without a loss shrink with the gap.
        w = clear_residue(np.array(values["w"]), instance.data.X, unit=min(1.0, self.epsilon / GAP))
        if nodes.budget is not None:
            w[values["s"] < 0.5] = 0.0
        b = biases_that_keep_sides(w, values, instance)
        return nodes.labelled(w, b, instance.data, instance.topology)

    def evaluate(self, tree: Tree, instance: LinearInstance) -> float:
        data, total = instance.data, 0.0
        for t, here in zip(instance.topology.branches, passed(tree, data).T, strict=True):
            samples = data.X[here], data.sign[here], data.weights[here]
            total += instance.nodes.value(t, tree.w[t], float(tree.b[t]), *samples)
        return total

    def violations(self, tree: Tree, instance: LinearInstance) -> dict[str, float]:
        """Return by how much a tree misses the gap; hard feature budgets make :meth:`evaluate` infinite."""
        topology, jumps = instance.topology, instance.nodes.loss.keeps_gap
        nodes = np.asarray(topology.branches if jumps else topology.upper_branches, dtype=np.int64)
        scores = tree.scores(instance.data.X)[:, nodes][passed(tree, instance.data)[:, nodes]]
        return {
            f"the gap epsilon = {self.epsilon:g}": missed_gap(scores[scores < 0] + self.epsilon, self.epsilon)
        }

    def polish(self, tree: Tree, instance: LinearInstance) -> Tree:
        """Solve every node's problem for the tree's routing of the samples, exactly where the loss is convex.

        For very many samples, or without time, see
        :meth:`~mipforest.heuristics.node_problems.NodeProblems.fitted_to_all`.
        """
        data, topology, nodes = instance.data, instance.topology, instance.nodes
        if data.n > nodes.exact_up_to or nodes.time.expired:
            return nodes.fitted_to_all(tree, data, topology)
        here = passed(tree, data)
        goes_right = tree.scores(data.X) >= 0
        splits: dict[int, Split] = {}
        for t in topology.branches:
            X, sign, weight = data.X[here[:, t]], data.sign[here[:, t]], data.weights[here[:, t]]
            right = goes_right[here[:, t], t]
            # At the last level sides are free; where a search is no exact one, the tree's own sides compete.
            free = [None] if nodes.exact else [None, right]
            sides = [right] if t in topology.upper_branches else free
            found = [nodes.split(t, X, sign, weight, right=kept) for kept in sides]
            own = Split(tree.w[t], float(tree.b[t]), np.nan)
            splits[t] = min(filter(None, found), key=lambda split: split.value, default=own)
        return nodes.tree(splits, data, topology)

    def restricted(self, tree: Tree, allowed: BoolArray, instance: LinearInstance) -> Tree:
        """Solve the nodes anew with allowed features, from the root down, each for the tree's sides where it can."""
        goes_right = dict(enumerate((tree.scores(instance.data.X) >= 0).T))
        return self._top_down(allowed, goes_right, instance)

    def with_splits(
        self, tree: Tree, splits: Mapping[int, tuple[int, float]], instance: LinearInstance
    ) -> Tree:
        """Solve the nodes anew from the root down: for these sides with one feature, for the tree's sides elsewhere."""
        X = instance.data.X
        goes_right = dict(enumerate((tree.scores(X) >= 0).T))
        allowed = np.ones(tree.w.shape, dtype=bool)
        for t, (j, threshold) in splits.items():
            goes_right[t] = X[:, j] >= threshold
            allowed[t] = np.arange(X.shape[1]) == j
        return self._top_down(allowed, goes_right, instance)

    def candidates(self, instance: LinearInstance) -> Iterator[Tree]:
        """Draw univariate splits, the best for their sides, under linear classifiers at the last level."""
        data, topology = instance.data, instance.topology
        for drawn in random_trees(data, topology, 1):
            sides = dict(enumerate((drawn.scores(data.X) >= 0).T))
            everywhere = np.ones((topology.n_branches, data.p), dtype=bool)
            alone = drawn.w != 0
            yield self._top_down(alone, sides, instance)
            alone[np.asarray(topology.last_branches)] = everywhere[np.asarray(topology.last_branches)]
            yield self._top_down(alone, sides, instance)

    def _top_down(
        self, allowed: BoolArray, goes_right: Mapping[int, BoolArray], instance: LinearInstance
    ) -> Tree:
        """Solve the nodes from the root down, with allowed features (|B|, p), for given sides (n,) where they can."""
        data, topology, nodes = instance.data, instance.topology, instance.nodes
        members, splits = {0: np.arange(data.n)}, {}
        for t in topology.branches:
            rows, features = members[t], np.flatnonzero(allowed[t])
            # Without a feature, one that is 0 everywhere leaves the bias alone to choose.
            X = data.X[np.ix_(rows, features)] if len(features) else np.zeros((len(rows), 1))
            sign, weight = data.sign[rows], data.weights[rows]
            upper = t in topology.upper_branches
            sides = goes_right[t][rows]
            kept = nodes.split(t, X, sign, weight, right=sides, quick=True) if upper else None
            found = kept or nodes.split(t, X, sign, weight, quick=True)
            split = found or Split(np.zeros(X.shape[1]), bias_if_empty(t), np.nan)
            if upper:
                split, right = nodes.route(split, X)
                members[topology.left(t)], members[topology.right(t)] = rows[~right], rows[right]
            w = np.zeros(data.p)
            w[features] = split.w[: len(features)]
            splits[t] = Split(w, split.b, split.value)
        moved = nodes.tree(splits, data, topology)
        return moved_into_limits(moved, data.X, nodes.loss.flat_from)

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, instance: LinearInstance) -> TreeExpressions:
        return LinearTreeExpressions(self.name, m, instance.data, instance.topology, self.epsilon)


@dataclass(frozen=True, eq=False)
class LinearTreeExpressions(TreeExpressions):
    """Expressions of trees with a linear classifier at every branch node, such as MARGOT's and OLCT's.

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

        Moving a bias as in step 2 of the proof (:mod:`formulations.margins`) changes no side, and keeps scores
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

    def feature_blocks(self) -> tuple[str, ...]:
        """Name the weights, and what switches them on."""
        return ("w", "s", "uses")

    def write_again(self, name: str) -> bool:
        """Add a block of these methods to another model of the formulation: its big-Ms are that model's bounds."""
        if name == "uses":
            self.features()
        elif name == "second_class":
            self._second_class()
        elif (feature := self._required(name)) is not None:
            self.require_feature(features_named(self.data, feature))
        else:
            return False
        return True

    def _required(self, name: str) -> str | None:
        """Return the feature, or the column, of the first of the two blocks that require one."""
        feature = name.removeprefix("require_").removesuffix("_above")
        known = {*self.data.features.labels, *(column.name for column in self.data.encoding.columns)}
        return feature if name == f"require_{feature}_above" and feature in known else None

    def features(self) -> Expression:
        """Return the switches of the features, or new binaries without which a weight is 0."""
        if "s" in self.m.variables:
            return self.m["s"]
        if "uses" not in self.m.variables:
            w, over = self.m["w"], (self.topology.branches, self.data.features)
            lower, upper = self._finite(w.lower), self._finite(w.upper)
            uses = self.m.binary("uses", over, meaning="whether a node uses a feature")
            self.m.add("uses_above", w <= upper * uses, over=over)
            self.m.add("uses_below", w >= lower * uses, over=over)
        return self.m["uses"]

    def require_feature(self, j: int | IntArray) -> None:
        """Add rows and binaries: some split gives feature j, or one of several, a weight that is not negligible.

        A binary that allows a weight may be 1 at a weight of 0.
        """
        w = self.m["w"][:, np.atleast_1d(j)]
        limit = float(np.maximum(self._finite(w.upper), -self._finite(w.lower)).max())
        require_weight(self, self.m["w"], limit, j)

    def leaves(self) -> Expression:
        """Return the expression; it rests on products of the assignment and the side, 0 or 1 where these are."""
        second, z = self._second_class(), self.m["z"]
        if "right_leaf" not in self.m.variables:
            right = self.m.nonnegative(
                "right_leaf", z.shape, meaning="whether a sample reaches the right leaf of a last node"
            )
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

    def keep_monotone(self, j: int, *, increasing: bool, target: int = 0) -> None:
        """Add rows: the weight of feature j has one sign at the last branch nodes and is 0 above them."""
        w, last = self.m["w"], np.asarray(self.topology.last_branches)
        name = free_name(self.m, f"monotone_{self.data.features.labels[j]}")
        sign = 1.0 if increasing else -1.0
        self.m.add(f"{name}_last", sign * w[last, j] >= 0)
        if self.topology.upper_branches:
            self.m.add(f"{name}_above", w[np.asarray(self.topology.upper_branches), j] == 0)

    def fix_split(self, t: int, j: int | IntArray, threshold: float | FloatArray) -> None:
        """Add rows: node t uses feature j alone, with a positive weight, and its score is 0 at the threshold."""
        # Several features of one column are of splits with one feature only.
        (feature,), (at,) = np.atleast_1d(j).tolist(), np.atleast_1d(threshold).tolist()
        below = self.data.X[self.data.X[:, feature] < at, feature]
        if not 0 < len(below) < self.data.n:
            raise one_sided(self.data, feature, at)
        w, name = self.m["w"], f"split_n{t}"
        least = self.epsilon / (at - float(below.max()))
        if float(w.upper[t, feature]) < least:
            raise NotExpressed(
                f"a split at {at:g} (scaled) needs a weight of {least:.4g} to keep the next sample "
                f"{self.epsilon:g} away, and {self.formulation} bounds it by {float(w.upper[t, feature]):.4g}; take a "
                "threshold farther from the samples, or a smaller epsilon"
            )
        others = np.delete(np.arange(self.data.p), feature)
        self.m.add(f"{name}_alone", w[t, others] == 0)
        self.m.add(f"{name}_weight", w[t, feature] >= least)
        self.m.add(f"{name}_at", self.m["b"][t] + at * w[t, feature] == 0)

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
            second = self.m.binary(
                "second_class",
                self.data.samples,
                meaning="whether a sample is predicted to be of the second class",
            )
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


def relative_gap(data: Dataset) -> tuple[float, int]:
    """Return the gap of ``epsilon=relative``, and the number of different samples that it is computed from."""
    import pandas as pd  # late: slow to import, and most models do without

    count = len(pd.DataFrame(data.X).drop_duplicates())
    gap = SHARE_OF_GAP * 2.0 / max(1, count - 1)
    return float(f"{min(max(gap, LEAST_GAP), GAP):.2g}"), count


def declare_hyperplanes(m: Model, instance: LinearInstance) -> tuple[VarArray, VarArray]:
    """Make the blocks ``w`` (|B|, p) and ``b`` (|B|,) with their bounds."""
    branches, limits = instance.topology.branches, instance.limits
    over = (branches, instance.data.features)
    w = m.continuous(
        "w", over, lower=-limits.weight, upper=limits.weight, meaning="weights of a node's hyperplane"
    )
    b = m.continuous(
        "b", branches, lower=-limits.bias, upper=limits.bias, meaning="intercept of a node's hyperplane"
    )
    return w, b


def losses_paid(tree: Tree, instance: LinearInstance) -> FloatArray:
    """Return the (n, |B|) losses of samples at the nodes that they pass; 0 elsewhere."""
    data = instance.data
    losses = instance.nodes.loss.values(tree.scores(data.X), data.sign[:, None])
    return np.where(passed(tree, data), losses, 0.0)


def biases_that_keep_sides(w: FloatArray, values: Values, instance: LinearInstance) -> FloatArray:
    """Return the (|B|,) biases of a solution, moved by its tolerance so that binaries and the tree agree on every side.

    The sides at the last level are binaries where constraints read them.
    """
    data, topology = instance.data, instance.topology
    b = np.array(values["b"])
    goes_right = values["z"] @ topology.reach_right > 0.5
    passes = values["z"] @ topology.reach > 0.5
    nodes = topology.upper_branches
    if "second_class" in values:
        last = np.tile(values["second_class"] > 0.5, (len(topology.last_branches), 1)).T
        goes_right, nodes = np.hstack([goes_right, last]), topology.branches
    for t in nodes:
        samples = passes[:, t]
        b[t] = keep_sides(
            data.X[samples],
            w[t],
            goes_right[samples, t],
            float(b[t]),
            sizes=data.sizes[samples],
            most=BIAS_TOLERANCE,
        )
    return b
