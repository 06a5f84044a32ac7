r"""ORT, ORT-H, ORT-L, ORT-LH: optimal regression trees.

With univariate or hyperplane splits (H), and leaves that predict a constant or a linear function (L).

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problems (4.8) and
(5.6). Splits and leaf assignment are those of :mod:`formulations.univariate_splits` or
:mod:`formulations.hyperplane_splits`, predictions and losses :math:`L_i` those of
:mod:`formulations.value_leaves` and :mod:`formulations.linear_leaves`, and

.. math::

    \min \frac{1}{\hat L} \sum_i L_i + \alpha C + \lambda \sum_{t \in L} \|\beta_t\| \quad (4.7, 5.3, 5.5)

with :math:`\hat L` the loss of the best constant (mean or median), C the number of splits, or of features in
hyperplane splits (:math:`\sum_{t,j} s_{jt}`), and the last term for linear leaves only. Squared losses stand
in the objective instead of a quadratic row (4.6); the optimum is the same.

**Units.** Features and target are scaled to [0, 1]: a coefficient :math:`\beta_{jt} = 1` moves the prediction
by the whole range of the target along the whole range of the feature. The objective is free of units:
:math:`\lambda` is the price of such a coefficient (l1), or of any coefficient but 0 (l0), in losses of the
best constant. Trees predict in the target's units.

**Variants.** ``paper``: the thesis' rows, and (*) of :mod:`formulations.univariate_splits`, without which its
trees need no split.

- ``tight`` (``ort``): routing by discrete cuts of groups of equal samples (:mod:`formulations.cuts`), leaf
  values and losses by :mod:`formulations.tight_values`, linear for both losses; at depth 1 and 2 one valid
  row bounds the objective by the least value for the cut at the root (:mod:`formulations.depth_two`).
- ``tight`` (``ort-l``): the same routing, and a valid M_f. ``valid`` (``ort-lh``): the thesis' routing and a
  valid M_f.

For linear leaves ``paper`` can cut off the optimum: its M_f is not valid (:mod:`formulations.linear_leaves`).
The valid one covers all solutions as good as the start tree known from building the model. With ``lam = 0``
and l1 nothing bounds the coefficients, and these variants limit them to ``M_r``, as l0 always does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from formulations.class_leaves import check_unit_box, leaves_of
from formulations.cuts import Cuts, find_cuts, tree_of_cuts
from formulations.depth_two import RootValues
from formulations.linear_leaves import LinearLeaves
from formulations.root_row import value_of_root
from formulations.routings import CutRouting, HyperplaneRouting, Routing, UnivariateRouting
from formulations.tight_values import TightMeans, TightMedians, depth_two, leaf_losses
from formulations.value_leaves import (
    ConstantLeaves,
    TargetScale,
    ValueLeaves,
    coefficients,
    with_fitted_leaves,
    without_needless_splits,
)
from formulations.wide_gaps import cart_with_gaps
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.heuristics.cart import cart
from mipforest.model import LinearExpr, Model, Values
from mipforest.objectives.leaf_losses import LOSSES
from mipforest.problem.built import TOLERANCE
from mipforest.problem.formulation import Formulation
from mipforest.problem.instance import Instance
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree

#: What the values in the row on the root are lowered by: far above their rounding, far below any gap asked.
SAFETY = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class OrtInstance(Instance):
    """A data set with what is known of it before the model is written.

    Attributes
    ----------
    upper_bound
        Objective of the known tree, slightly raised; linear leaves only.
    cuts, roots
        Cuts of the data (``ort`` in variant ``tight`` only), and least objective by the root's cut (at depth 1
        and 2 only).
    """

    upper_bound: float = np.inf
    cuts: Cuts | None = None
    roots: RootValues | None = None


@dataclass(frozen=True, kw_only=True)
class _Ort(Formulation):
    """What the four models share.

    Parameters
    ----------
    alpha
        Cost of a split (of a feature in a hyperplane split), relative to the loss of the best constant.
    N_min
        Least number of samples in a leaf that holds any.
    loss
        ``"squared"`` or ``"absolute"``.
    """

    task = "regression"
    starts: ClassVar[tuple[str, ...]] = ("cart", "previous-depth")
    #: "univariate" or "hyperplane".
    splits: ClassVar[str]
    #: "constant" or "linear".
    leaves: ClassVar[str]

    alpha: float = parameter(0.0, "cost of a split (of a feature in a hyperplane)", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)
    loss: str = parameter("squared", "loss of the predictions", choices=("squared", "absolute"))

    # ------------------------------------------------------------------ what differs

    def _routing(self, instance: OrtInstance) -> Routing:
        cuts = instance.cuts
        return UnivariateRouting(self.N_min) if cuts is None else CutRouting(self.N_min, cuts)

    def _leaves(self) -> ValueLeaves:
        return ConstantLeaves(LOSSES[self.loss])

    def _cart(self, data: Dataset, tree: Topology, seed: int) -> Tree:
        return cart(data, tree, min_leaf=self.N_min, seed=seed)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: OrtInstance) -> None:
        data, tree = instance.data, instance.topology
        routed = self._routing(instance).declare(m, data, tree)
        total, penalty = self._leaves().declare(m, data, tree, routed, instance.upper_bound)
        objective = (1 / self._baseline(data)) * total + self.alpha * routed.complexity + penalty
        m.minimize(objective)
        if instance.cuts is not None and isinstance(objective, LinearExpr):
            self._bound(m, data, objective, instance.cuts, instance.roots)

    def _bound(
        self, m: Model, data: Dataset, objective: LinearExpr, cuts: Cuts, roots: RootValues | None
    ) -> None:
        """Write valid rows that bound the objective, for routing by cuts."""

    # ------------------------------------------------------------------ trees

    def encode(self, fitted: Tree, instance: OrtInstance) -> dict[str, FloatArray]:
        data, routing = instance.data, self._routing(instance)
        splits = routing.encode(fitted, data)
        return {**splits, **self._leaves().encode(fitted, data, *routing.rows(data))}

    def decode(self, values: Values, instance: OrtInstance) -> Tree:
        data, tree = instance.data, instance.topology
        routing = self._routing(instance).decode(values, data, tree)
        return self._leaves().decode(values, routing, data)

    def evaluate(self, fitted: Tree, instance: OrtInstance) -> float:
        data = instance.data
        leaves, scale = self._leaves(), TargetScale.of(data)
        beta = coefficients(fitted) / scale.spread
        size = leaves_of(fitted, data.X).sum(axis=0)
        if ((size > 0) & (size < self.N_min)).any() or np.abs(beta).max() > leaves.limit * (1 + TOLERANCE):
            return float("inf")
        loss = leaves.loss.total((fitted.predict(data.X) - data.y) / scale.spread) / self._baseline(data)
        complexity = float(self._routing(instance).complexity(fitted).sum())
        return loss + self.alpha * complexity + leaves.penalty(beta)

    def _baseline(self, data: Dataset) -> float:
        return LOSSES[self.loss].baseline(TargetScale.of(data).scaled(data.y))

    # ------------------------------------------------------------------ limits and starts

    def bind(self, data: Dataset, topology: Topology) -> OrtInstance:
        tight = self.variant == "tight"
        return OrtInstance(
            data=data,
            topology=topology,
            cuts=find_cuts(data.X, data.features.labels) if tight else None,
        )

    def check_data(self, data: Dataset, tree: Topology) -> None:
        if data.task != "regression":
            raise DataError(
                f"{self.name} predicts numbers, but the target of {data.name} is a class ({data.target})",
                hint="use a classification model (oct), or load a whole-number target with task='regression'",
                option="use a classification model (oct), or load a whole-number target with --task regression",
            )
        check_unit_box(self.name, data, self.N_min)
        if data.y.min() == data.y.max():
            raise DataError(
                f"the target of {data.name} is {data.y[0]:g} in all {data.n} rows: nothing to predict"
            )

    def start(self, name: str, instance: OrtInstance, *, seed: int = 0) -> Tree:
        if name == "cart":
            return self.polish(self._cart(instance.data, instance.topology, seed), instance)
        if name == "previous-depth" and name in self.starts:
            return self.polish(self.previous_depth(instance), instance)
        return super().start(name, instance, seed=seed)

    def polish(self, fitted: Tree, instance: OrtInstance) -> Tree:
        """Take back splits that do not pay for themselves, and fit the leaves exactly."""
        data = instance.data
        cost = self.alpha * self._routing(instance).complexity(fitted)
        kept = without_needless_splits(fitted, data, self._leaves(), cost, self.N_min)
        return with_fitted_leaves(kept, data, self._leaves())


@dataclass(frozen=True, kw_only=True)
class Ort(_Ort):
    """Optimal regression tree with univariate splits and constant leaves."""

    name = "ort"
    summary = "optimal regression tree with univariate splits and constant leaves"
    source = "Dunn 2018, chapter 4"
    variants = ("tight", "paper")
    starts = ("depth-two", "cart", "previous-depth")
    # As for OCT: cuts make the linear relaxation degenerate.
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {"highs": {"mip_lp_solver": "ipm"}}
    splits = "univariate"
    leaves = "constant"

    def _leaves(self) -> ValueLeaves:
        if self.variant == "paper":
            return super()._leaves()
        return TightMeans(self.N_min) if self.loss == "squared" else TightMedians(self.N_min)

    def bind(self, data: Dataset, topology: Topology) -> OrtInstance:
        instance = super().bind(data, topology)
        cuts = instance.cuts
        if cuts is None:
            return instance
        exact = depth_two(data, cuts, self.loss, self.alpha, self.N_min)
        if exact is None or topology.depth > 2:
            return instance
        roots = exact.root_values(topology.depth)
        best = tree_of_cuts(exact.best(roots, topology.depth), cuts, topology, data)
        known = with_fitted_leaves(best, data, self._leaves())
        lowered = replace(roots, by_cut=roots.by_cut - SAFETY, none=roots.none - SAFETY)
        return replace(instance, known=known, roots=lowered)

    def _bound(
        self, m: Model, data: Dataset, objective: LinearExpr, cuts: Cuts, roots: RootValues | None
    ) -> None:
        if roots is not None:
            m.add("root_value", objective >= value_of_root(m["u"][0], m["d"][0], cuts, roots))
        elif self.loss == "squared":
            # The row on the root says more, and the two together make a slow linear relaxation.
            m.add("leaf_loss", leaf_losses(m, data, cuts.group) >= 0)

    def proven_up_to(self, instance: OrtInstance, touched: frozenset[str]) -> float:
        # Values outside the range of means or medians are left out; constraints may ask for them.
        asks_for_values = self.variant == "tight" and touched & {"beta0", "f", "L"}
        return -np.inf if asks_for_values else np.inf

    def start(self, name: str, instance: OrtInstance, *, seed: int = 0) -> Tree:
        if name != "depth-two":
            return super().start(name, instance, seed=seed)
        data, tree = instance.data, instance.topology
        cuts = instance.cuts or find_cuts(data.X, data.features.labels)
        exact = depth_two(data, cuts, self.loss, self.alpha, self.N_min)
        if exact is None:
            return self.start("cart", instance, seed=seed)
        top = min(tree.depth, 2)
        best = exact.extended(exact.best(exact.root_values(top), top), tree.depth)
        return with_fitted_leaves(tree_of_cuts(best, cuts, tree, data), data, self._leaves())


@dataclass(frozen=True, kw_only=True)
class _HyperplaneOrt(_Ort):
    """What the two models with hyperplane splits share.

    Parameters
    ----------
    mu
        Margin that stands for the strict inequality to the left.
    """

    splits = "hyperplane"

    mu: float = parameter(0.005, "margin that stands for a strict inequality", above=0, below=1)

    def _routing(self, instance: OrtInstance) -> Routing:
        return HyperplaneRouting(self.N_min, self.mu)

    def _cart(self, data: Dataset, tree: Topology, seed: int) -> Tree:
        return cart_with_gaps(data, tree, self.mu, min_leaf=self.N_min, seed=seed)


@dataclass(frozen=True, kw_only=True)
class OrtH(_HyperplaneOrt):
    """Optimal regression tree with hyperplane splits and constant leaves."""

    name = "ort-h"
    summary = "optimal regression tree with hyperplane splits and constant leaves"
    source = "Dunn 2018, chapter 4"
    leaves = "constant"


@dataclass(frozen=True, kw_only=True)
class OrtL(_Ort):
    """Optimal regression tree with univariate splits and linear leaves.

    Parameters
    ----------
    lam
        Weight lambda of the regulariser: of a coefficient that spans the target's range along the feature's
        range (l1), or of any non-zero coefficient (l0), in losses of the best constant.
    regulariser
        ``"l1"`` or ``"l0"``.
    M_r
        Greatest size of a coefficient, in ranges of the target per range of the feature; with l0, and with
        ``lam = 0`` outside variant ``paper``.
    """

    name = "ort-l"
    summary = "optimal regression tree with univariate splits and linear leaves"
    source = "Dunn 2018, chapter 5"
    variants = ("tight", "paper")
    splits = "univariate"
    leaves = "linear"

    lam: float = parameter(0.01, "weight of the coefficients of linear leaves", at_least=0)
    regulariser: str = parameter("l1", "size of the coefficients, or their number", choices=("l1", "l0"))
    M_r: float = parameter(10.0, "greatest coefficient (with l0, or lam = 0)", above=0)

    def _leaves(self) -> ValueLeaves:
        literal = self.variant == "paper"
        return LinearLeaves(LOSSES[self.loss], self.lam, self.regulariser, self.M_r, literal=literal)

    def bind(self, data: Dataset, topology: Topology) -> OrtInstance:
        instance = super().bind(data, topology)
        known = self.start("cart", instance)
        value = self.evaluate(known, instance)
        return replace(instance, known=known, upper_bound=value + TOLERANCE * (1 + value))

    def proven_up_to(self, instance: OrtInstance, touched: frozenset[str]) -> float:
        if self.variant == "paper":
            return np.inf
        # Coefficients of empty leaves are taken to be 0; constraints may ask for others.
        asks_for_values = touched & {"beta", "beta0", "beta_abs", "r", "f", "L"}
        return -np.inf if asks_for_values else instance.upper_bound


@dataclass(frozen=True, kw_only=True)
class OrtLH(_HyperplaneOrt, OrtL):
    """Optimal regression tree with hyperplane splits and linear leaves; see :class:`OrtH` and :class:`OrtL`."""

    name = "ort-lh"
    summary = "optimal regression tree with hyperplane splits and linear leaves"
    variants = ("valid", "paper")
