r"""ORT, ORT-H: optimal regression trees whose leaves predict a constant, with univariate or hyperplane splits (H).

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (4.8). The splits and
the assignment z of samples to leaves are those of :mod:`formulations.splits.univariate`, rows (2.2) to (2.14), or of
:mod:`formulations.splits.hyperplane`. With :math:`f_i` the fitted value of sample i,

.. math::

    \min\; & \frac{1}{\hat L} \sum_i L_i + \alpha C && (4.7) \\
    & |f_i - \beta_{0t}| \le M_f (1 - z_{it}) && i,\; t \in L \quad (4.2) \\
    & L_i \ge \pm (f_i - y_i) \quad \text{or} \quad L_i = (f_i - y_i)^2 && i \quad (4.4 - 4.6)

with :math:`\hat L` the loss of the best constant (mean or median), and C the number of splits, or of features in
hyperplane splits. Squared losses stand in the objective instead of a quadratic row (4.6); the optimum is the same.
Weights of samples multiply their :math:`L_i` everywhere; :math:`n_g, \bar y_g, c, W` below are then sums and means with
weights, and :math:`N_{min}` still counts samples.

**Units.** Features and target are scaled to [0, 1], the target by its least and greatest value, so a coefficient
:math:`\beta_{jt}` of a linear leaf is the share of the target's range by which the prediction rises along the whole
range of feature j. Leaf values within the target's range lose nothing, so :math:`M_f = 1`. The loss relative to that of
the best constant is free of units. Trees predict in the target's units.

**Variants.** ``paper``: the thesis' rows, and (*) of :mod:`formulations.splits.univariate`, without which its trees
need no split. ``tight`` (``ort``): routing by thresholds of groups g of samples with equal features, of sizes
:math:`n_g` and mean targets :math:`\bar y_g`, and linear rows without a big-M in the loss for leaf values :math:`v_t`
(block ``beta0``):

*Leaf values are bounded.* A best value of a leaf is the mean of its samples (squared loss), or their median, midway
between both middle ones (absolute loss). A leaf holds at least :math:`N_{min}` samples, so this is
at least the mean or median of the :math:`N_{min}` least targets, and at most that of the greatest ones (with unequal
weights: the least and the greatest target). For means, as
leaves hold whole groups, every sample's target may first be replaced by the mean of its group.

*Squared loss is linear.* Let :math:`f_{gt} = v_t z_{gt}`: linear rows say so exactly for binary z,

.. math::

    \underline v z_{gt} \le f_{gt} \le \overline v z_{gt}, \qquad
    v_t - \overline v (1 - z_{gt}) \le f_{gt} \le v_t - \underline v (1 - z_{gt}) \quad (e, f).

The mean as leaf value, :math:`\sum_g n_g f_{gt} = \sum_g n_g \bar y_g z_{gt}` (g), makes residuals orthogonal to fitted
values in every leaf; with the mean c of all targets and the loss W within groups

.. math::  \sum_i (y_i - f_i)^2 = W + \sum_t \sum_g n_g (\bar y_g - c) (\bar y_g z_{gt} - f_{gt}) \quad (h),

every term of the sum over t being at least 0 (i). The model is a MILP: no tangents.

*Absolute loss:* for every group and distinct target y in it, counted once with its multiplicity,

.. math::

    L \ge y - v_t - (y - \underline v) (1 - z_{gt}), \qquad L \ge v_t - y - (\overline v - y) (1 - z_{gt}), \qquad
    L \ge \max \{0, \underline v - y, y - \overline v\} \quad (j, k, l).

*The root.* One valid row bounds the objective by what an exact search of limited length proves for the threshold at
the root (m), :mod:`formulations.splits.univariate`; its best tree is the start. At depth 1 and 2, where these bounds
are exact, it takes the place of (i), as the two together make a slow linear relaxation. ``valid`` (``ort``) has neither
(m) nor this start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from formulations.splits.hyperplane import HyperplaneRouting
from formulations.splits.univariate import (
    ONE_FEATURE,
    RootValues,
    Routing,
    RoutingExpressions,
    ThresholdRouting,
    UnivariateRouting,
    check_leaf_size,
    is_begun_simply,
    leaves_of,
    root_bound,
    search_by_root,
    with_paying_splits,
)
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.heuristics.cart import cart, cart_with_margin
from mipforest.heuristics.thresholds import find_thresholds, without_splits
from mipforest.model import LinearExpr, Model, Values
from mipforest.objectives.leaf_losses import (
    ErrorLoss,
    LabelLoss,
    LeafLoss,
    PinballLoss,
    SquaredLoss,
    error_loss,
)
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.model_changes import ModelChanges
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import parameter
from mipforest.problem.structure import HyperplaneCharges, TreeCharges, UnivariateProblem
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Blocks of what leaves predict and lose, of all losses: their bounds leave out values that rows may ask for.
LEAF_BLOCKS = frozenset({"beta0", "f", "log_f", "L"})


@dataclass(frozen=True, kw_only=True)
class RegressionTree(Formulation):
    """What the four models share: ORT, ORT-H and, with linear leaves, ORT-L, ORT-LH (:mod:`formulations.ort_l`).

    Parameters
    ----------
    alpha
        Cost of a split (of a feature in a hyperplane split), relative to the loss of the best constant.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    loss
        ``"squared"`` or ``"absolute"``.
    """

    task = "regression"
    takes_weights = True
    starts: ClassVar[tuple[str, ...]] = ("cart", "previous-depth")
    least_objective = 0.0
    # Where samples go rests on no limit, whether z is declared integer or follows from the splits.
    blocks_of_every_tree: ClassVar[frozenset[str]] = frozenset({"z"})

    alpha: float = parameter(0.0, "cost of a split (of a feature in a hyperplane)", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)
    loss: str = parameter("squared", "loss of the predictions", choices=("squared", "absolute"))

    def leaf_loss(self, data: Dataset) -> LeafLoss:
        """Return what leaves lose."""
        return error_loss(self.loss)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if data.task != "regression":
            raise DataError(
                f"{self.name} predicts numbers, but the target of {data.name} is a class ({data.target})",
                hint="use a classification model (oct), or load a whole-number target with task='regression'",
                option="use a classification model (oct), or load a whole-number target with --task regression",
            )
        self.require_unit_box(data)
        check_leaf_size(data, self.N_min)
        if data.y.min() == data.y.max():
            raise DataError(
                f"the target of {data.name} is {data.y[0]:g} in all {data.n} rows: nothing to predict"
            )

    def _charges(self, instance: OrtInstance) -> TreeCharges:
        """Return what univariate splits and constant leaves are charged."""
        data, leaves = instance.data, instance.leaves
        return TreeCharges(
            y=leaves.y,
            loss=leaves.loss,
            split_cost=self.alpha * leaves.baseline,
            N_min=self.N_min,
            unit=leaves.baseline,
            weight=data.weights if data.weighted else None,
        )

    def _leaves(self, data: Dataset) -> ConstantLeaves:
        """Return how leaves predict."""
        return ConstantLeaves(data, self.leaf_loss(data))

    def _routing(self, data: Dataset, topology: Topology) -> Routing:
        if self.variant != "paper":
            return ThresholdRouting(data, topology, self.N_min, find_thresholds(data))
        return UnivariateRouting(data, topology, self.N_min)

    def evaluate(self, tree: Tree, instance: OrtInstance) -> float:
        leaves = instance.leaves
        beta = coefficients(tree) / np.max(leaves.spread)  # of several targets there are none
        size = leaves_of(tree, instance.data.X).sum(axis=0)
        if not instance.routing.allows(tree):
            return float("inf")
        if ((size > 0) & (size < self.N_min)).any() or np.abs(beta).max() > leaves.limit * (
            1 + FEASIBILITY_TOLERANCE
        ):
            return float("inf")
        complexity = float(instance.routing.complexity(tree).sum())
        return leaves.relative_loss(tree) + self.alpha * complexity + leaves.penalty(beta)

    def violations(self, tree: Tree, instance: OrtInstance) -> dict[str, float]:
        return instance.routing.violations(tree)

    def start(self, name: str, instance: OrtInstance, *, seed: int = 0) -> Tree:
        if name == "cart":
            return self.polish(self._cart(instance, seed), instance)
        if name == "previous-depth":
            return self.polish(self.previous_depth(instance), instance)
        other: Tree = super().start(name, instance, seed=seed)
        return other

    def _cart(self, instance: OrtInstance, seed: int) -> Tree:
        return cart(instance.data, instance.topology, min_leaf=self.N_min, seed=seed, budget=instance.budget)

    def expressions(self, m: Model, instance: OrtInstance) -> TreeExpressions:
        return RoutingExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    def without_splits(self, tree: Tree, nodes: Sequence[int], instance: OrtInstance) -> Tree:
        return self.polish(without_splits(tree, nodes), instance)

    def polish(self, tree: Tree, instance: OrtInstance) -> Tree:
        """Take back splits that do not pay for themselves, and fit the leaves exactly."""
        cost = self.alpha * instance.routing.complexity(tree)
        return instance.leaves.pruned(tree, cost, self.N_min)


@dataclass(frozen=True, kw_only=True)
class ConstantLeafTree(RegressionTree):
    """The thesis' rows of two models; M_f = 1 leaves out values that rows on leaves may ask for."""

    def constants_proven(self, instance: OrtInstance, value: float, changes: ModelChanges) -> bool:
        return not changes.blocks & LEAF_BLOCKS

    def declare(self, m: Model, instance: OrtInstance) -> None:
        data, leaves = instance.data, instance.leaves
        complexity, z = instance.routing.declare(m), m["z"]  # (2.2) - (2.14), or (3.1), (3.2)
        beta0 = m.continuous("beta0", instance.topology.leaves, meaning="prediction of a leaf")
        f = m.continuous("f", data.n, meaning="prediction for a sample, or for a group in a leaf")
        m.add("fitted_above", f[:, None] - beta0 <= 1 - z)  # (4.2)
        m.add("fitted_below", f[:, None] - beta0 >= -(1 - z))  # (4.2)
        assert isinstance(leaves.loss, ErrorLoss)  # others have no variant ``paper``
        losses = leaves.loss.declare(m, f - leaves.y, data.weights)  # (4.4) - (4.6)
        m.minimize((1 / leaves.baseline) * losses + self.alpha * complexity)  # (4.7)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> OrtInstance:
        return OrtInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            routing=self._routing(data, topology),
            leaves=self._leaves(data),
        )

    def encode(self, tree: Tree, instance: OrtInstance) -> dict[str, FloatArray]:
        leaves, splits = instance.leaves, instance.routing.encode(tree)
        beta0 = leaves.constants(tree)
        f = leaves_of(tree, instance.data.X) @ beta0
        assert isinstance(leaves.loss, ErrorLoss)
        return {**splits, "beta0": beta0, "f": f, **leaves.loss.encode(f - leaves.y)}

    def decode(self, values: Values, instance: OrtInstance) -> Tree:
        fitted = self.relabel(instance.routing.decode(values), instance)
        # What an empty leaf predicts counts for nothing: it takes what suits its ancestors.
        holds, own = leaves_of(fitted, instance.data.X).any(axis=0), instance.leaves.unscaled(values["beta0"])
        return replace(fitted, leaf_value=np.where(_beside(holds, own), own, fitted.leaf_value))

    def relabel(self, tree: Tree, instance: OrtInstance) -> Tree:
        return instance.leaves.with_fitted_leaves(tree)


@dataclass(frozen=True, kw_only=True)
class Ort(ConstantLeafTree):
    """Optimal regression tree with univariate splits and constant leaves."""

    name = "ort"
    summary = "optimal regression tree with univariate splits and constant leaves"
    structure_type = UnivariateProblem
    source = "Dunn 2018, chapter 4"
    variants: ClassVar[tuple[str, ...]] = ("tight", "valid", "paper")
    starts = ("depth-two", "cart", "previous-depth")
    simple_start = "cart"
    takes_sets = True
    refused_parameters = ONE_FEATURE
    # As for OCT: thresholds make the linear relaxation degenerate.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {"highs": {"mip_lp_solver": "ipm"}}

    def declare(self, m: Model, instance: OrtInstance) -> None:
        if self.variant == "paper":
            super().declare(m, instance)
            return
        complexity = instance.routing.declare(m)  # (a) - (d), (2.5) - (2.8)
        losses = self._declare_losses(m, instance)
        objective = (1 / instance.leaves.baseline) * losses + self.alpha * complexity
        m.minimize(objective)  # (4.7)
        if instance.roots is not None and isinstance(instance.routing, ThresholdRouting):
            bound = root_bound(m["u"][0], m["d"][0], instance.routing.thresholds, instance.roots)
            m.add("root_value", objective >= bound)  # (m)
        squared = isinstance(instance.leaves.loss, SquaredLoss)
        if squared and (instance.roots is None or instance.topology.depth > 2):
            m.add("leaf_loss", self._leaf_losses(m, instance) >= 0)  # (i)

    def _declare_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        """Write what leaves predict, and what that loses; return the loss of the tree."""
        if isinstance(instance.leaves.loss, PinballLoss):
            return self._declare_quantiles(m, instance, instance.leaves.loss)
        within = self._declare_means(m, instance)
        return within + self._leaf_losses(m, instance).sum()  # (h)

    def _declare_means(self, m: Model, instance: OrtInstance) -> float:
        """Write rows (e) to (g), means as leaf values; return W, the squared loss within groups."""
        routing, z, y, leaves = instance.routing, m["z"], instance.leaves.y, instance.topology.leaves
        each, targets = instance.data.weights, instance.data.targets
        weight, mean, within = grouped(y, each, routing.group)
        low, high = range_of_means(mean[routing.group], each, self.N_min)
        over: tuple[Any, ...] = (leaves, list(targets)) if targets else (leaves,)
        v = m.continuous("beta0", over, lower=low, upper=high, meaning="prediction of a leaf")
        f = m.nonnegative(
            "f",
            (len(weight), *over),
            upper=high,
            meaning="prediction for a sample, or for a group in a leaf",
        )
        here = z[:, :, None] if targets else z
        m.add("fitted_on_below", f >= low * here)  # (e)
        m.add("fitted_on_above", f <= high * here)  # (e)
        m.add("fitted_below", f >= v - high * (1 - here))  # (f)
        m.add("fitted_above", f <= v - low * (1 - here))  # (f)
        m.add(
            "mean", (_beside(weight, f) * f).sum(axis=0) == z.T @ (_beside(weight, mean) * mean), over=over
        )  # (g)
        return within

    def _leaf_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        """Return the squared loss of each leaf (|L|,), and target (|L|, T), beyond that within groups: terms of (h)."""
        y, each = instance.leaves.y, instance.data.weights
        weight, mean, _ = grouped(y, each, instance.routing.group)
        away = _beside(weight, mean) * (mean - np.average(y, axis=0, weights=each))
        losses: LinearExpr = m["z"].T @ (away * mean) - (away[:, None] * m["f"]).sum(axis=0)
        return losses

    def _declare_quantiles(self, m: Model, instance: OrtInstance, loss: PinballLoss) -> LinearExpr:
        """Write rows (j) to (l); return the absolute loss of the tree."""
        y, each = instance.leaves.y, instance.data.weights
        low, high = range_of_quantiles(loss, y, each, self.N_min)
        group, target, count = distinct_targets(y, each, instance.routing.group)
        v = m.continuous(
            "beta0", instance.topology.leaves, lower=low, upper=high, meaning="prediction of a leaf"
        )
        L = m.continuous(
            "L",
            len(target),
            lower=np.maximum(
                loss.of_errors(np.maximum(low - target, 0.0)), loss.of_errors(np.minimum(high - target, 0.0))
            ),
            meaning="absolute loss of a target in a group",
        )  # (l)
        away, (up, down) = 1 - m["z"][group], loss.of_errors(np.array([-1.0, 1.0]))
        above, below = (target - low)[:, None], (high - target)[:, None]
        m.add("loss_above", L[:, None] >= up * (target[:, None] - v - above * away))  # (j)
        m.add("loss_below", L[:, None] >= down * (v - target[:, None] - below * away))  # (k)
        losses: LinearExpr = count @ L
        return losses

    def valid_below(self, instance: OrtInstance, changes: ModelChanges) -> float:
        # Values outside the range of means or medians are left out; constraints may ask for them.
        asks_for_values = self.variant != "paper" and changes.blocks & LEAF_BLOCKS
        return -np.inf if asks_for_values else np.inf

    def with_all_trees(self, instance: OrtInstance) -> OrtInstance | None:
        return instance if self.variant == "paper" else None

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> OrtInstance:
        if self.variant == "paper":
            return super().bind(data, topology, budget)
        thresholds, leaves = find_thresholds(data), self._leaves(data)
        instance = OrtInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            routing=ThresholdRouting(data, topology, self.N_min, thresholds),
            leaves=leaves,
        )
        if self.variant == "valid":
            return instance
        with instance.budget.phase("prepare", "searching for the best tree, and for bounds by its root"):
            known, roots = self._searched(instance)
        proven = topology.depth <= 2 or roots.least > 0
        return replace(instance, known=known, roots=roots if proven else None, least_objective=roots.least)

    def bind_quickly(self, data: Dataset, topology: Topology, budget: TimeBudget) -> OrtInstance | None:
        if self.variant != "tight" or not is_begun_simply(data, topology):
            return None
        instance = replace(self, variant="valid").bind(data, topology, budget)
        return replace(instance, known=self.start(self.simple_start, instance))

    def _searched(self, instance: OrtInstance) -> tuple[Tree, RootValues]:
        """Search for the best tree within a limit; return the best one found, and what is proven."""
        with_leaves = instance.leaves.with_fitted_leaves
        return search_by_root(self, instance, self.structure(instance), with_leaves, unit=1.0)

    def structure(self, instance: OrtInstance) -> UnivariateProblem:
        data, routing = instance.data, instance.routing
        thresholds = routing.thresholds if isinstance(routing, ThresholdRouting) else find_thresholds(data)
        return UnivariateProblem(thresholds=thresholds, **vars(self._charges(instance)))

    def encode(self, tree: Tree, instance: OrtInstance) -> dict[str, FloatArray]:
        if self.variant == "paper":
            return super().encode(tree, instance)
        leaves, routing = instance.leaves, instance.routing
        v = leaves.constants(tree)
        z = leaves_of(tree, routing.rows)
        f = _beside(z, v[None]) * v
        if not isinstance(leaves.loss, PinballLoss):
            return {**routing.encode(tree), "beta0": v, "f": f}
        group, target, _ = distinct_targets(leaves.y, instance.data.weights, routing.group)
        return {**routing.encode(tree), "beta0": v, **leaves.loss.encode(f.sum(axis=1)[group] - target)}

    def start(self, name: str, instance: OrtInstance, *, seed: int = 0) -> Tree:
        if name != "depth-two":
            other: Tree = super().start(name, instance, seed=seed)
            return other
        return instance.known or self._searched(instance)[0]


@dataclass(frozen=True, kw_only=True)
class HyperplaneSplits(RegressionTree):
    """What the two models with hyperplane splits share.

    Parameters
    ----------
    mu
        Margin that stands for the strict inequality to the left.
    max_features
        Most features in a split; 0 for any number.
    """

    gap_parameter = "mu"
    gap_rows = ("left", "right")
    structure_type = HyperplaneCharges
    mu: float = parameter(0.005, "margin that stands for a strict inequality", above=0, below=1)
    max_features: int = parameter(0, "most features in a split; 0: any number", at_least=0)

    def _routing(self, data: Dataset, topology: Topology) -> Routing:
        return HyperplaneRouting(data, topology, self.N_min, self.mu, self.max_features)

    def _hyperplanes(self, charges: TreeCharges) -> HyperplaneCharges:
        """Return what trees are charged, with what splits have to keep."""
        return HyperplaneCharges.of(replace(charges, max_features=self.max_features), self.mu)

    def _cart(self, instance: OrtInstance, seed: int) -> Tree:
        return cart_with_margin(instance.data, instance.topology, self.mu, min_leaf=self.N_min, seed=seed)


@dataclass(frozen=True, kw_only=True)
class OrtH(HyperplaneSplits, ConstantLeafTree):
    """Optimal regression tree with hyperplane splits and constant leaves."""

    name = "ort-h"
    summary = "optimal regression tree with hyperplane splits and constant leaves"
    source = "Dunn 2018, chapter 4"

    def structure(self, instance: OrtInstance) -> HyperplaneCharges:
        return self._hyperplanes(self._charges(instance))


class LeafFit(NamedTuple):
    """A leaf's prediction ``beta . x + beta0``, in scaled units, and its share of the objective."""

    beta: FloatArray
    beta0: float
    cost: float


@dataclass(frozen=True, eq=False)
class ConstantLeaves:
    """Leaves that predict a constant.

    Attributes
    ----------
    data
        Training samples, a real target.
    loss
        Loss of the predictions.
    weights
        (T,) weights of several targets.
    """

    data: Dataset
    loss: LeafLoss
    weights: FloatArray | float = field(default=1.0, kw_only=True)

    @cached_property
    def least(self) -> Any:
        """What is 0 of the scaled target, or of each: the least value; 0 of labels, and where only quotients count."""
        return self.data.y.min(axis=0) if self.loss.is_shifted else 0.0

    @cached_property
    def spread(self) -> Any:
        """What is 1 of the scaled target, above :attr:`least`: the greatest value, or the mean; 1 of labels.

        Several targets are scaled so that the squared loss of their sum has their weights, and the greatest range is 1.
        """
        if isinstance(self.loss, LabelLoss):
            return 1.0
        if not self.loss.is_shifted:
            return float(np.average(self.data.y, weights=self.data.weights))
        ranges = np.sqrt(self.weights) * np.ptp(self.data.y, axis=0)
        return np.max(ranges) / np.sqrt(self.weights)

    @cached_property
    def y(self) -> FloatArray:
        """(n,) scaled target."""
        return self.scaled(self.data.y)

    @cached_property
    def baseline(self) -> float:
        """Loss of the best single constant, for the scaled target (Dunn's Lhat)."""
        return self.loss.baseline(self.y, self.data.weights)

    @property
    def limit(self) -> float:
        """Greatest size of a coefficient that the model allows."""
        return np.inf

    def penalty(self, beta: FloatArray) -> float:
        """Return the regulariser's term of the objective for coefficients (|L|, p)."""
        return 0.0

    def fit(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> LeafFit:
        """Return the best prediction for the samples of a leaf, n >= 1, with a scaled target and weights."""
        return self.fit_constant(X, y, weight)

    def fit_constant(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> LeafFit:
        """Return the best constant for the samples of a leaf."""
        beta0 = self.loss.best_constant(y, weight)
        return LeafFit(np.zeros(X.shape[1]), beta0, self.loss.total(beta0, y, weight) / self.baseline)

    def scaled(self, values: FloatArray | IntArray) -> FloatArray:
        """Scale target values."""
        return np.asarray((values - self.least) / self.spread, dtype=np.float64)

    def unscaled(self, values: FloatArray | float) -> FloatArray:
        """Return scaled values in the target's units."""
        return np.asarray(self.least + self.spread * values)

    def relative_loss(self, tree: Tree) -> float:
        """Return the loss of a tree on the training samples over :attr:`baseline`, by the definition."""
        if tree.leaf_w is None:
            predicted = self.constants(tree)[tree.apply(self.data.X) - tree.topology.n_branches]
        else:
            predicted = self.scaled(tree.predict(self.data.X))
        return self.loss.total(predicted, self.y, self.data.weights) / self.baseline

    def constants(self, tree: Tree) -> FloatArray:
        """Return the (|L|,) scaled constants of a tree's leaves.

        In the target's units a constant is rounded: of a target of 1.7e9 with a range of 1, to 7 digits of the range.
        One that is the best constant of its samples up to this rounding stands for that.
        """
        found = self.scaled(tree.leaf_value)
        leaf = tree.apply(self.data.X) - tree.topology.n_branches
        for t in np.unique(leaf):
            here = leaf == t
            best = self.loss.best_constant(self.y[here], self.data.weights[here])
            if np.array_equal(self.unscaled(best), tree.leaf_value[t]):  # exact: rounded alike
                found[t] = best
        return found

    def with_values(self, tree: Tree, beta: FloatArray, beta0: FloatArray) -> Tree:
        """Return a tree with leaves given in scaled units; constants need no ``beta`` (|L|, p)."""
        return replace(tree, leaf_value=self.unscaled(beta0), leaf_w=None)

    def with_fitted_leaves(self, tree: Tree) -> Tree:
        """Fit the leaves of a tree; an empty one predicts the constant of its closest ancestor with samples."""
        passed, topology = tree.decision_path(self.data.X), tree.topology
        fits = []
        for leaf in topology.leaves:
            node = leaf
            while not passed[:, node].any():
                node = topology.parent(node)
            here = passed[:, node]
            fit = self.fit if node == leaf else self.fit_constant
            fits.append(fit(self.data.X[here], self.y[here], self.data.weights[here]))
        return self.with_values(
            tree, np.array([fit.beta for fit in fits]), np.array([fit.beta0 for fit in fits])
        )

    def pruned(self, tree: Tree, split_cost: FloatArray, N_min: int) -> Tree:
        """Take back splits that do not pay for themselves, with all leaves fitted; fit the leaves.

        Parameters
        ----------
        tree
            For scaled features.
        split_cost
            (|B|,) cost of each split.
        N_min
            Least number of samples in a leaf that holds any.
        """
        alone = np.zeros(tree.topology.n_nodes)
        for t, here in enumerate(tree.decision_path(self.data.X).T):
            if here.any():
                leaf = self.data.X[here], self.y[here], self.data.weights[here]
                alone[t] = self.fit(*leaf).cost if here.sum() >= N_min else np.inf
        return self.with_fitted_leaves(with_paying_splits(tree, split_cost, alone))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OrtInstance(Instance):
    """A data set with its routing and its leaves.

    Attributes
    ----------
    routing
        How samples get to leaves.
    leaves
        How leaves predict, with the scaled target.
    roots
        Bounds on the objective by the root's threshold: variant ``tight`` of ``ort``; ``None`` where nothing is proven.
    """

    routing: Routing
    leaves: ConstantLeaves
    roots: RootValues | None = None


def coefficients(tree: Tree) -> FloatArray:
    """Return the (|L|, p) coefficients of a tree's leaves over scaled features; 0 for constant leaves."""
    return np.zeros((tree.topology.n_leaves, tree.n_features)) if tree.leaf_w is None else tree.leaf_w


# ---------------------------------------------------------------------- groups of equal samples, ranges of leaf values


def grouped(y: FloatArray, weight: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Return weights (g,) and mean targets (g,) or (g, T) of the groups, and the squared loss within all of them."""
    total: FloatArray = np.bincount(group, weights=weight).astype(np.float64)
    sums, each = np.zeros((len(total), *y.shape[1:])), _beside(weight, y)
    np.add.at(sums, group, each * y)
    mean = sums / _beside(total, sums)
    return total, mean, float((each * (y - mean[group]) ** 2).sum())


def _beside(values: Any, other: Any) -> Any:
    """Return values with axes of length 1 behind their own, as many as another array has."""
    return values.reshape(*values.shape, *(1,) * (other.ndim - values.ndim))


def distinct_targets(
    y: FloatArray, weight: FloatArray, group: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """List groups, targets and total weights of the distinct pairs (group, target)."""
    pairs, of = np.unique(np.column_stack([group, y]), axis=0, return_inverse=True)
    return pairs[:, 0].astype(np.int64), pairs[:, 1], np.bincount(of.ravel(), weights=weight).astype(float)


def range_of_means(y: FloatArray, weight: FloatArray, N_min: int) -> tuple[Any, Any]:
    """Return bounds on the weighted mean of at least ``N_min`` of the targets (n,), or of each (n, T).

    With unequal weights a mean may come as close to the least target as one heavy sample draws it: their range.
    """
    ordered = np.sort(y, axis=0)
    if (weight != weight[0]).any():
        return ordered[0], ordered[-1]
    low, high = ordered[:N_min].mean(axis=0), ordered[-N_min:].mean(axis=0)
    return np.minimum(low, high), np.maximum(low, high)  # equal means may cross by rounding


def range_of_quantiles(
    loss: PinballLoss, y: FloatArray, weight: FloatArray, N_min: int
) -> tuple[float, float]:
    """Return bounds on the weighted quantile of at least ``N_min`` of the targets (n,), as :func:`range_of_means`."""
    ordered = np.sort(y)
    if (weight != weight[0]).any():
        return float(ordered[0]), float(ordered[-1])
    equal = np.ones(N_min)
    return loss.best_constant(ordered[:N_min], equal), loss.best_constant(ordered[-N_min:], equal)
