r"""Trees with a linear classifier at every branch node: what their formulations share beside the rows.

The blocks ``w`` (|B|, p) and ``b`` (|B|,) are the hyperplanes, ``z`` (n, |B''|) assigns samples to the nodes of the
last branching level, ``s`` (|B|, p) switches features on where they are selected, and ``u`` (|B|,) is the excess over a
soft budget of them. Labels are -1 and +1; the left leaf of a last branch node predicts -1, the right one +1.

The objective charges at branch nodes a norm of the weights and C times the loss of the samples that pass, each times
the sample's weight (weights of samples in the formulas of the papers: :math:`C_t \xi_{it}` is multiplied). For a fixed
routing the problem falls apart into one per node: :mod:`mipforest.heuristics.node_problems`. They value a tree, polish
it, and give starts; the value of a start proves the big-Ms of variant ``valid``: :mod:`formulations.bounds.margins`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from formulations.bounds.margins import (
    ROUNDING,
    MarginLimits,
    at_nodes,
    moved_into_limits,
    proven_limits,
    weight_limits,
)
from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import random_trees
from mipforest.heuristics.node_problems import NodeProblems, bias_if_empty, passed
from mipforest.heuristics.node_split import Split
from mipforest.model import Model, Values, VarArray
from mipforest.problem.expressions import LinearTreeExpressions, TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import ModelChanges
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import PerNode, parameter
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import clear_residue, keep_sides

#: Most samples for which the papers' constants are compared with proven ones: that takes all distances.
MOST_SAMPLES = 10_000

#: Share of the time that the start from which the limits are proven may take: the solver has the rest.
START_SHARE = 0.5

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
        Gap that stands for the strict inequality to the left.
    """

    two_classes = True
    takes_weights = True
    variants: ClassVar[tuple[str, ...]] = ("valid", "paper")
    least_objective = 0.0
    gap_parameter = "epsilon"
    #: The start that a tree search improves on soon, found in a fraction of a second without feature budgets.
    quick_start: ClassVar[str | None] = None

    C: PerNode = parameter(1.0, "penalty of the loss", above=0)
    epsilon: float = parameter(1e-3, "gap that stands for a strict inequality", above=0, below=1)

    # ------------------------------------------------------------------ the model

    @abstractmethod
    def node_problems(self, topology: Topology) -> NodeProblems:
        """Return what the objective charges at each branch node."""

    @abstractmethod
    def paper_limits(self, nodes: NodeProblems) -> MarginLimits:
        """Return the constants of variant ``paper``."""

    def root_share(self, instance: LinearInstance) -> float:
        """Return a lower bound on what the objective charges at the root: it tightens the other nodes' limits."""
        return 0.0

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
            limits = self._limits(
                instance, self.evaluate(known, instance), root_share=self.root_share(instance)
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

    def proven_up_to(self, instance: LinearInstance, changes: ModelChanges) -> float:
        upper_bound = instance.limits.upper_bound
        if not np.isfinite(upper_bound):
            return upper_bound
        return -np.inf if changes.loosened or changes.locked("b").any() else upper_bound

    def limited_at(
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
            return True  # :meth:`proven_up_to` tells how far
        if instance.data.n > MOST_SAMPLES:
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
        w = clear_residue(np.array(values["w"]), instance.data.X)
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


def declare_hyperplanes(m: Model, instance: LinearInstance) -> tuple[VarArray, VarArray]:
    """Make the blocks ``w`` (|B|, p) and ``b`` (|B|,) with their bounds."""
    branches, limits = instance.topology.branches, instance.limits
    over = (branches, instance.data.features)
    w = m.continuous("w", over, lower=-limits.weight, upper=limits.weight)
    b = m.continuous("b", branches, lower=-limits.bias, upper=limits.bias)
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
