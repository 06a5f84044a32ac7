r"""OPT, OPT-H: optimal prescriptive trees with constant estimates, and univariate or hyperplane splits (H).

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, chapter 6. Sample i had
treatment :math:`z_i \in T` and the outcome :math:`y_i`; lower outcomes are better (``better=higher`` turns their
sign). Leaf l prescribes :math:`\tau_l` and estimates the outcome :math:`\hat y_{lt}` under each treatment by the mean
of its samples that had it. With l(i) the leaf of sample i, a tree is charged (6.5)

.. math::

    \frac{1}{n} \left[ \mu \sum_i \begin{cases} y_i & z_i = \tau_{l(i)} \\ \hat y_{l(i), \tau_{l(i)}} & \text{else}
    \end{cases} \; + (1 - \mu) \sum_i (y_i - \hat y_{l(i), z_i})^2 + \alpha \hat L C \right],

what the prescriptions lead to and the error of the estimates, with :math:`\hat L` the error of a tree without splits
and C the number of splits, or of features in hyperplane splits. A leaf prescribes a treatment only if at least
:math:`n_{treatment}` of its samples had it. The thesis minimises this by local search and states no mixed-integer
model. This one is ours; it charges every tree the same.

Weights of samples multiply their terms in both sums: the objective is divided by the sum of all weights, estimates are
means with weights, and n, :math:`n_g` and :math:`n_{gt}` below are sums of weights. :math:`N_{min}` and
:math:`n_{treatment}` still count samples, and so does :math:`n_{gt}` in the last row (d).

**What leaves are charged.** With :math:`n_{lt}, s_{lt}, q_{lt}` the number, sum and sum of squares of the outcomes of
the samples of leaf l that had treatment t, :math:`n_l = \sum_t n_{lt}`, and constant estimates :math:`\hat y_{lt} =
s_{lt} / n_{lt}`, the observed outcomes of a treatment sum up to what is estimated for the same samples, so that (Dunn
2018, equation 6.5)

.. math::

    \sum_{i \in l} \begin{cases} y_i & z_i = \tau_l \\ \hat y_{l \tau_l} & \text{else} \end{cases}
    \; = \; n_l \, \hat y_{l \tau_l}, \qquad
    \sum_{i \in l} (y_i - \hat y_{l z_i})^2 = \sum_t \left( q_{lt} - s_{lt}^2 / n_{lt} \right).

Weights of samples multiply their terms in all these sums, :math:`n_{lt}` included.

**The model.** Samples with equal features stay together: group g has :math:`n_{gt}` samples of treatment t with mean
outcome :math:`\bar y_{gt}`, and :math:`n_g = \sum_t n_{gt}`. Outcomes are shifted so that the lowest is 0, which moves
the objective by a constant; let :math:`h_t` be the highest under treatment t. Splits and assignment z are those of
:mod:`formulations.splits.univariate` (thresholds) or :mod:`formulations.splits.hyperplane`, and

.. math::

    & 0 \le f_{glt} \le h_t z_{gl}, \quad
      \hat y_{lt} - h_t (1 - z_{gl}) \le f_{glt} \le \hat y_{lt} && g, l, t \quad (a) \\
    & \sum_g n_{gt} f_{glt} = \sum_g n_{gt} \bar y_{gt} z_{gl} && l, t \quad (b) \\
    & E_{lt} = \sum_g n_{gt} (\bar y_{gt} - \bar y_t) (\bar y_{gt} z_{gl} - f_{glt}) \ge 0 && l, t \quad (c) \\
    & \sum_t \tau_{lt} \le 1, \quad z_{gl} \le \sum_t \tau_{lt}, \quad
      \sum_g n_{gt} z_{gl} \ge n_{treatment} \tau_{lt}, \quad \tau_{lt} \in \{0, 1\} && g, l, t \quad (d) \\
    & e_{gl} \ge f_{glt} - h_t (1 - \tau_{lt}), \quad e_{gl} \ge 0 && g, l, t \quad (e)

.. math::

    \min \frac{1}{n} \left[ \mu \sum_{g, l} n_g e_{gl} + (1 - \mu) \left( W + \sum_{l, t} E_{lt} \right)
    + \alpha \hat L C \right]

with :math:`\bar y_t` the mean outcome of treatment t, and W the error of the means of the groups' treatments.

*It is exact.* For binary z rows (a) say :math:`f_{glt} = \hat y_{lt} z_{gl}`: as means, estimates lie in
:math:`[0, h_t]`, so that :math:`h_t` cuts off none. Rows (b) make :math:`\hat y_{lt}` the mean of its samples; where
there are none it is free, and charged nowhere. Residuals are then orthogonal to estimates, so that (c) is the error of
leaf l under treatment t beyond that within groups. By (d), a leaf with samples prescribes one treatment that enough of
them had, an empty one none. Rows (e) leave :math:`e_{gl} = \hat y_{l \tau_l}` for the groups of the leaf and 0 for
others: :math:`f_{glt} \le h_t` makes the row of any other treatment idle. The observed outcomes of a treatment sum up
to its estimates for the same samples, so that the first sum of the objective is :math:`\sum_l n_l \hat y_{l \tau_l}`.
Nothing is multiplied but binaries with bounded variables: the model is linear.

With a constraint that asks for other prescriptions than the best, :math:`\tau` obeys it, and the value of a tree is
that of the treatments that it prescribes.

Greedy growth of prescriptive trees, such as the personalisation trees of Kallus (2017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from formulations.splits.hyperplane import HyperplaneRouting
from formulations.splits.univariate import (
    ONE_FEATURE,
    Routing,
    RoutingExpressions,
    ThresholdRouting,
    check_leaf_size,
    leaves_of,
    with_paying_splits,
)
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.heuristics.thresholds import find_thresholds, tree_of_splits
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.objectives.leaf_losses import LeafLoss, PrescriptionLoss
from mipforest.problem.expressions import Expression, TreeExpressions
from mipforest.problem.formulation import Formulation
from mipforest.problem.operations import Instance
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.problem.structure import HyperplaneCharges, TreeCharges
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import midpoint


@dataclass(frozen=True, kw_only=True)
class PrescriptiveTree(Formulation):
    """What the models share.

    Parameters
    ----------
    mu
        Weight of the outcomes under the prescriptions, 0 (estimates alone count) to 1 (prescriptions alone do).
    n_treatment
        Least number of samples in a leaf, whatever they weigh, that had the treatment it prescribes.
    alpha
        Cost of a split (of a feature in a hyperplane split), relative to the error of the estimates without splits.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    better
        Which outcomes are better, ``"lower"`` or ``"higher"`` ones.
    outcome_scale
        ``"none"``: outcomes count in their own units, so that mu depends on these; ``"standard"``: in standard
        deviations.
    """

    task = "prescription"
    takes_weights = True
    structure_type: ClassVar[type[TreeCharges]] = TreeCharges
    starts: ClassVar[tuple[str, ...]] = ("greedy", "no-split")

    mu: float = parameter(0.5, "weight of the prescriptions against the estimates, 0 to 1", at_least=0)
    n_treatment: int = parameter(10, "least number of samples that had a leaf's treatment", at_least=1)
    alpha: float = parameter(0.0, "cost of a split (of a feature in a hyperplane)", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)
    better: str = parameter("lower", "which outcomes are better", choices=("lower", "higher"))
    outcome_scale: str = parameter("none", "units of outcomes in the objective", choices=("none", "standard"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mu > 1:
            raise ParameterError(f"parameter mu is {self.mu:g}; give a number from 0 to 1")

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if data.treatments is None:
            raise DataError(
                f"{self.name} prescribes treatments, and {data.name} has no column of treatments",
                hint="load it with treatment='COLUMN', its target being the outcome",
                option="name it with --treatment, and the outcome with --outcome",
            )
        self.require_unit_box(data)
        check_leaf_size(data, self.N_min)
        counts = np.bincount(data.treatments, minlength=data.n_classes)
        if counts.max() < self.n_treatment:
            raise DataError(
                f"n_treatment is {self.n_treatment}, but no treatment of {data.name} was given more than "
                f"{counts.max()} times, so none may be prescribed; lower n_treatment"
            )

    def bind(
        self, data: Dataset, topology: Topology, budget: TimeBudget | None = None
    ) -> PrescriptiveInstance:
        leaves = self._leaves(data)
        return PrescriptiveInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            least_objective=self._least_objective(leaves),
            routing=self._routing(data, topology),
            leaves=leaves,
        )

    def _least_objective(self, leaves: TreatmentLeaves) -> float:
        """Return what the objective of every tree is at least: means are no lower than the lowest outcome."""
        return self.mu * float(leaves.y.min())

    def _leaves(self, data: Dataset) -> TreatmentLeaves:
        return TreatmentLeaves(
            data=data,
            mu=self.mu,
            n_treatment=self.n_treatment,
            higher=self.better == "higher",
            standardised=self.outcome_scale == "standard",
        )

    def _routing(self, data: Dataset, topology: Topology) -> Routing:
        return ThresholdRouting(data, topology, self.N_min, find_thresholds(data))

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: PrescriptiveInstance) -> None:
        leaves, topology = instance.leaves, instance.topology
        complexity, z = instance.routing.declare(m), m["z"]
        size, mean, within = grouped_by_treatment(instance)
        shifted = leaves.y - leaves.y.min()
        high = np.array([shifted[had].max() for had in leaves.members.T])
        over = (topology.leaves, instance.data.classes)
        y_hat = m.nonnegative("y_hat", over, upper=high, meaning="estimated outcome of a treatment in a leaf")
        f = m.nonnegative(
            "f", (len(size), *over), upper=high, meaning="the same for a group that reaches the leaf, else 0"
        )
        here = z[:, :, None]
        m.add("estimated_here", f <= high * here)  # (a)
        m.add("estimated_above", f <= y_hat[None])  # (a)
        m.add("estimated_below", f >= y_hat[None] - high * (1 - here))  # (a)
        weight = size[:, None, :]
        m.add("mean", (weight * f).sum(axis=0) == ((weight * mean[:, None, :]) * here).sum(axis=0))  # (b)
        centre = (size * mean).sum(axis=0) / size.sum(axis=0)
        apart = size * (mean - centre)
        errors = (apart[:, None, :] * (mean[:, None, :] * here - f)).sum(axis=0)
        m.add("error", errors >= 0)  # (c)
        tau = self._declare_prescriptions(m, instance)  # (d)
        e = m.nonnegative("e", z.shape, meaning="outcome of the prescribed treatment for a group in a leaf")
        m.add("prescribed", e[:, :, None] >= f - high * (1 - tau)[None])  # (e)
        prescribed = (size.sum(axis=1)[:, None] * e).sum() + leaves.total_weight * float(leaves.y.min())
        split_costs: LinearExpr = self.alpha * leaves.baseline * complexity
        charged = self.mu * prescribed + (1 - self.mu) * (within + errors.sum()) + split_costs
        m.minimize((1 / leaves.total_weight) * charged)

    def _declare_prescriptions(self, m: Model, instance: PrescriptiveInstance) -> VarArray:
        """Write rows (d); return the prescriptions tau (|L|, m)."""
        z, number = m["z"], np.zeros((len(instance.routing.rows), instance.data.n_classes))
        np.add.at(number, (instance.routing.group, instance.leaves.given), 1.0)
        tau = m.binary(
            "tau",
            (instance.topology.leaves, instance.data.classes),
            meaning="1 for the treatment that a leaf prescribes",
        )
        m.add("one_treatment", tau.sum(axis=1) <= 1, over=instance.topology.leaves)  # (d)
        m.add("prescribes", z <= tau.sum(axis=1))  # (d)
        had = (number[:, None, :] * z[:, :, None]).sum(axis=0)
        m.add("enough_had_it", had >= self.n_treatment * tau)  # (d)
        return tau

    def _encoded_prescriptions(self, tree: Tree, z: FloatArray) -> FloatArray:
        """Return the values of tau for a tree and its assignment z (n, |L|)."""
        tau = np.zeros((z.shape[1], len(tree.classes)))
        holds = np.flatnonzero(z.any(axis=0))
        tau[holds, tree.leaf_value[holds].astype(np.int64)] = 1.0
        return tau

    def structure(self, instance: PrescriptiveInstance) -> TreeCharges:
        leaves, least = instance.leaves, float(instance.leaves.y.min())
        charges = TreeCharges(
            y=leaves.y - least,
            loss=leaves.loss,
            split_cost=self.alpha * leaves.baseline,
            N_min=self.N_min,
            unit=leaves.total_weight,
            weight=leaves.weights if instance.data.weighted else None,
            offset=self.mu * least,
        )
        return HyperplaneCharges.of(charges, self._gap) if self._gap else charges

    def expressions(self, m: Model, instance: PrescriptiveInstance) -> TreeExpressions:
        return PrescriptionExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    # ------------------------------------------------------------------ trees

    def evaluate(self, tree: Tree, instance: PrescriptiveInstance) -> float:
        size = leaves_of(tree, instance.data.X).sum(axis=0)
        if ((size > 0) & (size < self.N_min)).any():
            return float("inf")
        complexity = float(instance.routing.complexity(tree).sum())
        charged = instance.leaves.value(tree) + self.alpha * instance.leaves.baseline * complexity
        return charged / instance.leaves.total_weight

    def violations(self, tree: Tree, instance: PrescriptiveInstance) -> dict[str, float]:
        return instance.routing.violations(tree)

    def encode(self, tree: Tree, instance: PrescriptiveInstance) -> dict[str, FloatArray]:
        leaves, routing = instance.leaves, instance.routing
        z = leaves_of(tree, routing.rows)
        y_hat = np.zeros((z.shape[1], instance.data.n_classes))
        for leaf in np.flatnonzero(z.any(axis=0)):
            outcome = leaves.fit(z[routing.group, leaf] > 0).outcome
            y_hat[leaf] = np.where(np.isnan(outcome), 0.0, outcome - leaves.y.min())
        tau, f = self._encoded_prescriptions(tree, z), z[:, :, None] * y_hat
        return {**routing.encode(tree), "y_hat": y_hat, "f": f, "tau": tau, "e": (f * tau).sum(axis=2)}

    def decode(self, values: Values, instance: PrescriptiveInstance) -> Tree:
        tau = values["tau"]
        chosen = np.where(tau.max(axis=1) > 0.5, tau.argmax(axis=1), -1)
        return instance.leaves.with_estimates(instance.routing.decode(values), chosen)

    def relabel(self, tree: Tree, instance: PrescriptiveInstance) -> Tree:
        return instance.leaves.with_estimates(tree)

    def polish(self, tree: Tree, instance: PrescriptiveInstance) -> Tree:
        """Take back splits that do not pay for themselves, fit the leaves, and prescribe what is best in each."""
        cost = self.alpha * instance.leaves.baseline * instance.routing.complexity(tree)
        return instance.leaves.pruned(tree, cost, self.N_min)

    def start(self, name: str, instance: PrescriptiveInstance, *, seed: int = 0) -> Tree:
        data, topology, leaves = instance.data, instance.topology, instance.leaves
        if name not in self.starts:
            other: Tree = super().start(name, instance, seed=seed)
            return other
        w, b = np.zeros((topology.n_branches, data.p)), np.zeros(topology.n_branches)
        if name == "greedy":
            w, b = greedy_prescription(
                data.X, leaves.loss.statistics(leaves.y, leaves.weights), leaves.loss, topology,
                split_cost=self.alpha * leaves.baseline, N_min=self.N_min, gap=self._gap,
            )  # fmt: skip
        return self.polish(tree_of_splits(data, topology, w, b), instance)

    @property
    def _gap(self) -> float:
        """Least distance between the sides of a split."""
        return 0.0


def grouped_by_treatment(instance: PrescriptiveInstance) -> tuple[FloatArray, FloatArray, float]:
    """Return weights and mean shifted outcomes (g, m) of the groups by treatment (0 for none), and the error within."""
    leaves, group = instance.leaves, instance.routing.group
    shifted = leaves.y - leaves.y.min()
    size = np.zeros((len(instance.routing.rows), instance.data.n_classes))
    sums = np.zeros(size.shape)
    np.add.at(size, (group, leaves.given), leaves.weights)
    np.add.at(sums, (group, leaves.given), leaves.weights * shifted)
    mean = np.divide(sums, size, out=np.zeros(size.shape), where=size > 0)
    within = float((leaves.weights * (shifted - mean[group, leaves.given]) ** 2).sum())
    return size, mean, within


@dataclass(frozen=True, kw_only=True)
class Opt(PrescriptiveTree):
    """Optimal prescriptive tree with univariate splits and constant estimates."""

    name = "opt"
    summary = "optimal prescriptive tree with univariate splits and constant estimates"
    source = "Dunn 2018, chapter 6"
    variants = ("tight",)
    takes_sets = True
    refused_parameters = ONE_FEATURE
    # As for OCT: thresholds make the linear relaxation degenerate.
    solver_options: ClassVar[dict[str, dict[str, Any]]] = {"highs": {"mip_lp_solver": "ipm"}}


@dataclass(frozen=True, kw_only=True)
class OptH(PrescriptiveTree):
    """Optimal prescriptive tree with hyperplane splits and constant estimates.

    Parameters
    ----------
    epsilon
        Margin that stands for the strict inequality to the left.
    """

    name = "opt-h"
    summary = "optimal prescriptive tree with hyperplane splits and constant estimates"
    source = "Dunn 2018, chapter 6"
    variants = ("valid",)
    gap_parameter = "epsilon"
    gap_rows = ("left", "right")
    structure_type = HyperplaneCharges

    epsilon: float = parameter(0.005, "margin that stands for a strict inequality", above=0, below=1)

    def _routing(self, data: Dataset, topology: Topology) -> Routing:
        return HyperplaneRouting(data, topology, self.N_min, self.epsilon)

    @property
    def _gap(self) -> float:
        return self.epsilon


#: Least improvement of a split, as a share of the size of its node's cost: sums of squares are rounded.
ROUNDING = 1e-9


def greedy_prescription(
    X: FloatArray,
    statistics: FloatArray,
    loss: LeafLoss,
    topology: Topology,
    *,
    split_cost: float = 0.0,
    N_min: int = 1,
    gap: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Grow a tree of univariate splits, at every node by the one that lowers the loss of its two leaves most.

    Parameters
    ----------
    X, statistics
        (n, p) features, and (n, V) statistics of the loss.
    loss
        What leaves lose.
    topology
        Index sets of the tree.
    split_cost
        What a split has to save at least.
    N_min
        Least number of samples in a leaf.
    gap
        Least distance between the sides of a split.

    Returns
    -------
    tuple
        Weights (|B|, p) and intercepts (|B|,) of a tree: all 0 where a node does not split.
    """
    w, b = np.zeros((topology.n_branches, X.shape[1])), np.zeros(topology.n_branches)
    here = {0: np.arange(len(X))}
    for t in topology.branches:
        rows = here.pop(t, None)
        if rows is None or len(rows) < 2 * N_min:
            continue
        sums = statistics[rows]
        whole = sums.sum(axis=0)
        alone = float(loss.of_sums(whole, 0.0))
        best = alone - split_cost - ROUNDING * abs(alone) if np.isfinite(alone) else np.inf
        for j in range(X.shape[1]):
            order = np.argsort(X[rows, j], kind="stable")
            x = X[rows[order], j]
            cuts = np.flatnonzero(x[1:] - x[:-1] > gap)
            cuts = cuts[(cuts + 1 >= N_min) & (len(rows) - cuts - 1 >= N_min)]
            if not len(cuts):
                continue
            left = sums[order].cumsum(axis=0)[cuts]
            value = loss.of_sums(left, 0.0) + loss.of_sums(whole - left, 0.0)
            at = int(value.argmin())
            if value[at] < best:
                best = float(value[at])
                w[t], b[t] = np.eye(X.shape[1])[j], -midpoint(x[cuts[at]], x[cuts[at] + 1])
        if w[t].any():
            goes_right = X[rows] @ w[t] + b[t] >= 0
            here[topology.left(t)], here[topology.right(t)] = rows[~goes_right], rows[goes_right]
    return w, b


class LeafEstimates(NamedTuple):
    """What a leaf estimates, in units of the objective.

    Attributes
    ----------
    outcome
        (m,) constant of the estimate under each treatment; NaN for one that no sample had.
    coefficients
        (m, p) coefficients of linear estimates; 0 for constant ones.
    total
        (m,) weighted sum of the outcomes of all samples under each treatment, observed or estimated; infinite for a
        treatment that too few samples had.
    loss
        What the estimates of the outcomes that are known are charged, with the samples' weights.
    """

    outcome: FloatArray
    coefficients: FloatArray
    total: FloatArray
    loss: float


@dataclass(frozen=True, eq=False, kw_only=True)
class TreatmentLeaves:
    """Leaves that estimate a constant under each treatment.

    Attributes
    ----------
    data
        Training samples with treatments and outcomes.
    mu
        Weight of the outcomes under the prescriptions, 0 to 1; that of the estimates' loss is 1 - mu.
    n_treatment
        Least number of samples of a leaf, whatever they weigh, that had the treatment that it prescribes.
    higher
        Whether higher outcomes are better.
    standardised
        Whether outcomes are divided by their standard deviation in the objective.
    """

    data: Dataset
    mu: float
    n_treatment: int
    higher: bool = False
    standardised: bool = False

    @cached_property
    def unit(self) -> float:
        """What outcomes are divided by, negative where higher ones are better: lower ones are then."""
        y, size = np.asarray(self.data.y, dtype=np.float64), 1.0
        if self.standardised:
            mean = np.average(y, weights=self.weights)
            size = float(np.sqrt(np.average((y - mean) ** 2, weights=self.weights)))
        return -size if self.higher else size

    @cached_property
    def y(self) -> FloatArray:
        """(n,) outcomes in units of the objective: lower ones are better."""
        y: FloatArray = np.asarray(self.data.y, dtype=np.float64) / self.unit
        return y

    @property
    def weights(self) -> FloatArray:
        """(n,) weights of the samples."""
        return self.data.weights

    @cached_property
    def total_weight(self) -> float:
        """Weight of all samples: what the objective is divided by."""
        return float(self.weights.sum())

    @cached_property
    def given(self) -> IntArray:
        """(n,) treatment of each sample."""
        assert self.data.treatments is not None  # ``check_data`` has seen to it
        return self.data.treatments

    @cached_property
    def loss(self) -> PrescriptionLoss:
        """What leaves lose."""
        return PrescriptionLoss(self.given, self.mu, self.n_treatment)

    @cached_property
    def members(self) -> BoolArray:
        """(n, m) whether a sample had a treatment."""
        had: BoolArray = np.arange(len(self.data.classes)) == self.given[:, None]
        return had

    @cached_property
    def baseline(self) -> float:
        """Loss of the estimates of a tree without splits: what costs of splits are relative to (1 if it is 0)."""
        return TreatmentLeaves.fit(self, np.ones(self.data.n, dtype=bool)).loss or 1.0

    def fit(self, here: BoolArray) -> LeafEstimates:
        """Return the estimates of a leaf with the samples ``here`` (n,)."""
        y, weight, members = self.y[here], self.weights[here], self.members[here]
        had, size = members.sum(axis=0), weight @ members
        mean = np.divide((weight * y) @ members, size, out=np.full(len(size), np.nan), where=had > 0)
        residuals = y - mean[self.given[here]]
        total = np.where(had >= self.n_treatment, weight.sum() * mean, np.inf)
        loss = float((weight * residuals) @ residuals)
        return LeafEstimates(mean, np.zeros((len(size), self.data.p)), total, loss)

    def cost(self, fitted: LeafEstimates, treatment: int | None = None) -> float:
        """Return what a leaf is charged with a treatment, the best one unless it is given."""
        total = fitted.total.min() if treatment is None else fitted.total[treatment]
        # 0 times infinity is not a number: what too few samples had is not prescribed for any mu.
        prescribed = self.mu * total if np.isfinite(total) else np.inf
        return float(prescribed + (1 - self.mu) * fitted.loss)

    # ------------------------------------------------------------------ trees

    def value(self, tree: Tree) -> float:
        """Return what the leaves of a tree are charged with the treatments that they prescribe, by the definition."""
        z = leaves_of(tree, self.data.X) > 0
        return sum(
            self.cost(self.fit(z[:, leaf]), int(tree.leaf_value[leaf]))
            for leaf in np.flatnonzero(z.any(axis=0))
        )

    def with_estimates(self, tree: Tree, treatments: IntArray | None = None) -> Tree:
        """Fit the leaves of a tree.

        An empty leaf is as its closest ancestor with samples; a treatment that no sample of a leaf had is estimated as
        in the closest ancestor where enough samples had it, or at the root. Such an estimate is constant where its
        linear function would use a feature that the tree uses nowhere else: constraints on features hold for it too.

        Parameters
        ----------
        tree
            For scaled features.
        treatments
            (|L|,) what leaves prescribe, -1 for the best treatment; the best in all unless given.
        """
        passed, topology, m = tree.decision_path(self.data.X), tree.topology, len(self.data.classes)
        fits: dict[int, LeafEstimates] = {}

        def fit(node: int) -> LeafEstimates:
            if node not in fits:
                fits[node] = self.fit(passed[:, node])
            return fits[node]

        holding = [leaf for leaf in topology.leaves if passed[:, leaf].any()]
        used = (tree.w != 0).any(axis=0) | (np.array([fit(leaf).coefficients for leaf in holding]) != 0).any(
            axis=(0, 1)
        )
        outcome, slopes = np.zeros((topology.n_leaves, m)), np.zeros((topology.n_leaves, m, self.data.p))
        chosen = np.full(topology.n_leaves, -1) if treatments is None else np.array(treatments)
        for k, leaf in enumerate(topology.leaves):
            node = leaf
            while not passed[:, node].any():
                node = topology.parent(node)
            if chosen[k] < 0 or node != leaf:
                chosen[k] = int(fit(node).total.argmin())
            for t in range(m):
                at = node
                while at > 0 and np.isnan(fit(at).outcome[t]) | ((at != node) & (fit(at).total[t] == np.inf)):
                    at = topology.parent(at)
                found = fit(at)
                if at != leaf and (found.coefficients[t] != 0)[~used].any():
                    found = TreatmentLeaves.fit(self, passed[:, at])
                outcome[k, t], slopes[k, t] = found.outcome[t], found.coefficients[t]
        return replace(
            tree,
            classes=tuple(self.data.classes),
            leaf_value=chosen,
            outcomes=self.unit * outcome,
            outcome_w=self.unit * slopes if slopes.any() else None,
        )

    def pruned(self, tree: Tree, split_cost: FloatArray, N_min: int) -> Tree:
        """Take back splits that do not pay for themselves or leave a leaf without a treatment; fit the leaves.

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
                alone[t] = self.cost(self.fit(here)) if here.sum() >= N_min else np.inf
        return self.with_estimates(with_paying_splits(tree, split_cost, alone))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrescriptiveInstance(Instance):
    """A data set with its routing and its leaves.

    Attributes
    ----------
    routing
        How samples get to leaves.
    leaves
        What leaves estimate and prescribe.
    """

    routing: Routing
    leaves: TreatmentLeaves


@dataclass(frozen=True, eq=False)
class PrescriptionExpressions(RoutingExpressions):
    """Models whose binaries ``tau`` (|L|, m) say what leaves prescribe; ``predicted(t)`` is who gets treatment t."""

    def predicted(self, k: int) -> Expression:
        """Return the expression; it rests on products of assignment and prescription, 0 or 1 where these are."""
        name = f"predicted_{k}"
        if name not in self.m.variables:
            z, prescribed = self.routing.assignment(self.m), self.m["tau"][:, k]
            product = self.m.nonnegative(name, z.shape)
            self.m.add(f"{name}_in_leaf", product <= z)
            self.m.add(f"{name}_prescribed", product <= prescribed)
            self.m.add(f"{name}_both", product >= z + prescribed - 1)
        predicted: LinearExpr = self.m[name].sum(axis=1)[self.routing.group]
        return predicted

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        z, added = leaves_of(tree, self.routing.rows), super().encode(tree)
        for k in range(len(self.data.classes)):
            if f"predicted_{k}" in self.m.variables:
                added[f"predicted_{k}"] = z * (tree.leaf_value == k)
        return added
