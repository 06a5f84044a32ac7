r"""Trees with a linear classifier at every branch node: what their formulations share beside the rows.

The blocks ``w`` (|B|, p) and ``b`` (|B|,) are the hyperplanes, ``z`` (n, |B''|) assigns samples to the nodes of the
last branching level, ``s`` (|B|, p) switches features on where they are selected, and ``u`` (|B|,) is the excess over a
soft budget of them. Labels are -1 and +1; the left leaf of a last branch node predicts -1, the right one +1.

The objective charges at branch nodes a norm of the weights and C times the loss of the samples that pass. For a fixed
routing the problem falls apart into one per node: :mod:`mipforest.heuristics.node_problems`. They value a tree, polish
it, and give starts; the value of a start proves the big-Ms of variant ``valid``: :mod:`formulations.bounds.margins`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from formulations.bounds.margins import MarginLimits, proven_limits
from formulations.expressions.linear import SplitExpressions
from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import NodeProblems, passed
from mipforest.heuristics.node_split import Split
from mipforest.model import Model, Values, VarArray
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import PerNode, parameter
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import keep_sides

#: A weight counts as zero below this share of its node's largest, a node's weights all do below it absolutely:
#: the residue that an interior-point solver leaves.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
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
    variants = ("valid", "paper")

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

    def bind(self, data: Dataset, topology: Topology) -> LinearInstance:
        nodes = self.node_problems(topology)
        return self.with_limits(
            LinearInstance(data=data, topology=topology, nodes=nodes, limits=self.paper_limits(nodes))
        )

    def with_limits(self, instance: AnyInstance) -> AnyInstance:
        """Return the instance with limits proven from the default start, in variant ``valid``."""
        if self.variant == "paper":
            return instance
        known = self.start(self.starts[0], instance)
        limits = proven_limits(
            instance.data.X,
            self.epsilon,
            self.evaluate(known, instance),
            n_branches=instance.topology.n_branches,
            root_share=self.root_share(instance),
            loss=instance.nodes.loss,
            norm=instance.nodes.norm,
        )
        return replace(instance, limits=limits, known=known)

    def proven_up_to(self, instance: LinearInstance, touched: frozenset[str]) -> float:
        upper_bound = instance.limits.upper_bound
        # Steps 2 and 1 of the proof: moving b must be free, and the parts of w must be those of w.
        broken = bool(touched & {"b", "xi", "w_plus", "w_minus"})
        return -np.inf if broken and np.isfinite(upper_bound) else upper_bound

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
        w = clear_residue(np.array(values["w"]))
        if nodes.budget is not None:
            w[values["s"] < 0.5] = 0.0
        b = biases_that_keep_sides(w, values, instance)
        return nodes.labelled(w, b, instance.data, instance.topology)

    def evaluate(self, tree: Tree, instance: LinearInstance) -> float:
        data, here = instance.data, passed(tree, instance.data)
        return sum(
            instance.nodes.value(t, tree.w[t], float(tree.b[t]), data.X[here[:, t]], data.sign[here[:, t]])
            for t in instance.topology.branches
        )

    def polish(self, tree: Tree, instance: LinearInstance) -> Tree:
        """Solve every node's problem for the tree's routing of the samples, exactly where the loss is convex."""
        data, topology, nodes = instance.data, instance.topology, instance.nodes
        here = passed(tree, data)
        goes_right = tree.scores(data.X) >= 0
        splits: dict[int, Split] = {}
        for t in topology.branches:
            X, sign, right = data.X[here[:, t]], data.sign[here[:, t]], goes_right[here[:, t], t]
            # At the last level sides are free; where a search is no exact one, the tree's own sides compete.
            free = [None] if nodes.exact else [None, right]
            sides = [right] if t in topology.upper_branches else free
            found = [nodes.split(t, X, sign, right=kept) for kept in sides]
            own = Split(tree.w[t], float(tree.b[t]), np.nan)
            splits[t] = min(filter(None, found), key=lambda split: split.value, default=own)
        return nodes.tree(splits, data, topology)

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, instance: LinearInstance) -> TreeExpressions:
        return SplitExpressions(self.name, m, instance.data, instance.topology, self.epsilon)


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


def clear_residue(w: FloatArray) -> FloatArray:
    """Return weights (|B|, p) with what is negligible in its node set to 0."""
    largest = np.abs(w).max(axis=1, keepdims=True)
    return np.where(np.abs(w) <= NEGLIGIBLE * np.maximum(largest, 1.0), 0.0, w)


def biases_that_keep_sides(w: FloatArray, values: Values, instance: LinearInstance) -> FloatArray:
    """Return the (|B|,) biases of a solution, moved by its tolerance so that ``z`` and the tree agree on every side."""
    data, topology = instance.data, instance.topology
    b = np.array(values["b"])
    goes_right = values["z"] @ topology.reach_right > 0.5
    passes = values["z"] @ topology.reach > 0.5
    for t in topology.upper_branches:
        samples = passes[:, t]
        b[t] = keep_sides(data.X[samples] @ w[t] + b[t], goes_right[samples, t], float(b[t]))
    return b
