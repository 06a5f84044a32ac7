r"""Loss-optimal trees: a linear classifier at every branch node, whose loss and norm the objective charges.

.. math::

    \min \sum_{t \in T} \Bigl( \Omega(w_t) + C_t \sum_{i \text{ passes } t} f(y_i, w_t^\top x_i + b_t) \Bigr)

over the hyperplanes :math:`w_t, b_t` of a tree that route the samples; T is the set of nodes that are charged. Labels
are -1 and +1; the left leaf of a node of the last branching level predicts -1, the right one +1. A model consists of

- the splits and the routing of samples: :mod:`formulations.routed_splits`;
- the norm :math:`\Omega`: :mod:`mipforest.heuristics.norms`;
- the loss f, as slacks :math:`\xi` that the objective minimises: :mod:`mipforest.heuristics.branch_losses`; the rows of
  a sample and a node hold if :math:`\sum_{s \in S''(t)} z_{is} = 1`, that is, if the sample passes the node;
- perhaps a budget of features: :mod:`formulations.feature_selection`.

MARGOT and OLCT are two such models. For a fixed routing the problem falls apart into one convex problem per node.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from formulations.feature_selection import FeatureSelection
from formulations.margin_limits import MarginLimits, proven_limits
from formulations.routed_splits import (
    at_nodes,
    biases_that_keep_sides,
    clear_residue,
    declare_routing,
    declare_splits,
    encode_splits,
    passed,
)
from formulations.split_expressions import SplitExpressions
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.branch_losses import HINGE, BranchLoss, PiecewiseLinearLoss
from mipforest.heuristics.error_nodes import ErrorNodes
from mipforest.heuristics.margin_nodes import MarginNodes, margin_tree
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.norms import Norm
from mipforest.model import Model, Values
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import PerNode, parameter, per_node
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import Nodes


@dataclass(frozen=True, eq=False)
class Slacks:
    """The columns of the block ``xi``, and what they stand for.

    Attributes
    ----------
    over
        Their index set: nodes, or names of levels.
    of_node
        (charged nodes,) column that holds the loss of each charged node.
    C
        (columns,) penalties.
    """

    over: object
    of_node: IntArray
    C: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearInstance(Instance):
    """A data set for a tree of linear classifiers, with the big-Ms of its rows.

    Attributes
    ----------
    limits
        Constants of the paper, or proven ones.
    """

    limits: MarginLimits


@dataclass(frozen=True, kw_only=True)
class LossOptimalTree(Formulation):
    """What loss-optimal trees share; a subclass says which loss, which norm and which nodes are charged.

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

    # ------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _loss(self) -> BranchLoss:
        """Loss of a sample at a branch node."""

    @abstractmethod
    def _norm(self) -> Norm:
        """Charge for the weights of a branch node."""

    @abstractmethod
    def _paper_limits(self) -> MarginLimits:
        """Constants of variant ``paper``."""

    def _selection(self, tree: Topology) -> FeatureSelection | None:
        """Budgets of features; ``None`` where every feature may be used."""
        return None

    def _charged(self, tree: Topology) -> Nodes:
        """Branch nodes that the objective charges."""
        return tree.branches

    def _slacks(self, tree: Topology) -> Slacks:
        """Columns of ``xi``: one per sample and charged node, unless a subclass says otherwise."""
        charged = self._charged(tree)
        C = per_node("C", self.C, tree.depth)[np.asarray(charged)]
        return Slacks(charged, np.arange(len(charged)), C)

    def _root_share(self, data: Dataset, tree: Topology) -> float:
        """Lower bound on what the objective charges at the root: it tightens the other nodes' limits."""
        return 0.0

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: LinearInstance) -> None:
        data, tree, limits = instance.data, instance.topology, instance.limits
        charged, slacks = self._charged(tree), self._slacks(tree)
        loss, norm, selection = self._loss(), self._norm(), self._selection(tree)
        w, b = declare_splits(m, data, tree, limits)
        xi = loss.slack(m, (data.samples, slacks.over))
        z = m.binary("z", (data.samples, tree.last_branches))

        score = data.X @ w.T + b
        away = 1 - z @ tree.reach
        objective = norm.declare(m, w[np.asarray(charged)]) + slacks.C @ xi.sum(axis=0)
        m.minimize(objective if selection is None else objective + selection.cost(m, tree))
        m.add("assign", z.sum(axis=1) == 1, over=data.samples)
        loss.declare(
            m,
            xi[:, slacks.of_node],
            score[:, charged],
            data.sign[:, None],
            away[:, charged],
            tuple(at_nodes(M, charged) for M in limits.M_xi),
            (data.samples, charged),
        )
        declare_routing(m, score, z, data, tree, limits, self.epsilon)
        if selection is not None:
            selection.declare(m, w, data, tree, limits.M_w)

    # ------------------------------------------------------------------ trees

    def encode(self, fitted: Tree, instance: LinearInstance) -> dict[str, FloatArray]:
        data, tree = instance.data, instance.topology
        charged, slacks, selection = (
            np.asarray(self._charged(tree)),
            self._slacks(tree),
            self._selection(tree),
        )
        loss = self._loss().values(fitted.scores(data.X), data.sign[:, None])
        at_node = np.where(passed(fitted, data), loss, 0.0)[:, charged]
        in_column = np.eye(len(slacks.C))[slacks.of_node]
        return {
            **encode_splits(fitted, data),
            "xi": at_node @ in_column,
            **self._norm().encode(fitted.w[charged]),
            **({} if selection is None else selection.encode(fitted.w)),
        }

    def decode(self, values: Values, instance: LinearInstance) -> Tree:
        data, tree = instance.data, instance.topology
        w, selection = clear_residue(np.array(values["w"])), self._selection(tree)
        if selection is not None:
            selection.clear_unselected(w, values)
        b = biases_that_keep_sides(w, values, data, tree)
        return self._tree({t: Split(w[t], float(b[t]), np.nan) for t in tree.branches}, data, tree)

    def evaluate(self, fitted: Tree, instance: Instance) -> float:
        data = instance.data
        here, nodes = passed(fitted, data), self._nodes(fitted.topology)
        return sum(
            nodes.value(t, fitted.w[t], float(fitted.b[t]), data.X[here[:, t]], data.sign[here[:, t]])
            for t in fitted.topology.branches
        )

    def _tree(self, splits: dict[int, Split], data: Dataset, tree: Topology) -> Tree:
        return margin_tree(splits, data, tree)

    # ------------------------------------------------------------------ what constraints of users read

    def expressions(self, m: Model, instance: Instance) -> TreeExpressions:
        return SplitExpressions(self.name, m, instance.data, instance.topology, self.epsilon)

    # ------------------------------------------------------------------ limits and starts

    def check_data(self, data: Dataset, tree: Topology) -> None:
        data.sign  # noqa: B018 - refuses data that have not exactly two classes
        self._slacks(tree)  # refuses parameters that do not fit the depth
        self._selection(tree)

    def bind(self, data: Dataset, topology: Topology) -> LinearInstance:
        instance = LinearInstance(data=data, topology=topology, limits=self._paper_limits())
        if self.variant == "paper":
            return instance
        known = self.start(self.starts[0], instance)
        limits = proven_limits(
            data.X,
            self.epsilon,
            self.evaluate(known, instance),
            n_branches=topology.n_branches,
            root_share=self._root_share(data, topology),
            loss=self._loss(),
            norm=self._norm(),
        )
        return replace(instance, limits=limits, known=known)

    def proven_up_to(self, instance: LinearInstance, touched: frozenset[str]) -> float:
        upper_bound = instance.limits.upper_bound
        # Steps 2 and 1 of the proof: moving b must be free, and the parts of w must be those of w.
        broken = bool(touched & {"b", "xi", "w_plus", "w_minus"})
        return -np.inf if broken and np.isfinite(upper_bound) else upper_bound

    def polish(self, fitted: Tree, instance: Instance) -> Tree:
        data = instance.data
        """Solve every node's problem for the tree's routing of the samples, exactly where the loss is convex."""
        tree, nodes = fitted.topology, self._nodes(fitted.topology)
        here = passed(fitted, data)
        goes_right = fitted.scores(data.X) >= 0
        is_convex = isinstance(self._loss(), PiecewiseLinearLoss)
        splits: dict[int, Split] = {}
        for t in tree.branches:
            X, sign, right = data.X[here[:, t]], data.sign[here[:, t]], goes_right[here[:, t], t]
            # At the last level sides are free; where a search is no exact one, the tree's own sides compete.
            free = [None] if is_convex else [None, right]
            sides = [right] if t in tree.upper_branches else free
            found = [nodes.split(t, X, sign, right=kept) for kept in sides]
            own = Split(fitted.w[t], float(fitted.b[t]), np.nan)
            splits[t] = min(filter(None, found), key=lambda split: split.value, default=own)
        return self._tree(splits, data, tree)

    def _nodes(self, tree: Topology) -> MarginNodes:
        """Node problems of this objective."""
        selection = self._selection(tree)
        loss = self._loss()
        kind = MarginNodes if isinstance(loss, PiecewiseLinearLoss) else ErrorNodes
        return kind(
            C=per_node("C", self.C, tree.depth),
            epsilon=self.epsilon,
            budget=None if selection is None else selection.budget,
            alpha=None if selection is None else selection.alpha,
            loss=loss if isinstance(loss, PiecewiseLinearLoss) else HINGE,
            norm=self._norm(),
            uncharged=frozenset(tree.branches) - frozenset(self._charged(tree)),
        )
