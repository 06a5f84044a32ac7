r"""ORT-L, ORT-LH: optimal regression trees whose leaves predict a linear function of the features.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (5.6). Splits and
assignment, losses :math:`L_i`, scaling and :math:`\hat L` are those of :mod:`formulations.ort`, and

.. math::

    \min\; & \frac{1}{\hat L} \sum_i L_i + \alpha C + \lambda \sum_{t \in L} \|\beta_t\| && (5.3, 5.5) \\
    & |f_i - (\beta_t^\top x_i + \beta_{0t})| \le M_f (1 - z_{it}) && i,\; t \in L \quad (5.2)

with :math:`\|\beta_t\| = \|\beta_t\|_1` (l1), or :math:`\sum_j r_{jt}` (l0) with binaries

.. math::  -M_r r_{jt} \le \beta_{jt} \le M_r r_{jt} && t \in L,\; j \quad (5.4).

**Units.** A coefficient :math:`\beta_{jt} = 1` moves the prediction by the whole range of the target along the whole
range of the feature. :math:`\lambda` is the price of such a coefficient (l1), or of any coefficient but 0 (l0), in
losses of the best constant.

**The constant M_f** of the thesis is :math:`2 (r + \max |y|)`, with r the greatest error of one sample in a solution
as good as the best one known (:math:`\sqrt{z_F}` for squared loss, :math:`z_F` for absolute; with weights of samples,
:math:`z_F` over the least weight). That is no valid bound:
it holds where a leaf's function is evaluated at samples of the leaf, and says nothing of its value at other samples,
where it extrapolates: variant ``paper`` can cut off the optimum. Valid is, for every sample,

.. math::

    M_i = 1 + 2 r + \min \{ B \textstyle\sum_j h_{ij}, \; N \max_j h_{ij} \}, \qquad
    h_{ij} = \max \{x_{ij}, 1 - x_{ij}\},

with B and N bounds on the single coefficients of a leaf and on the sum of their sizes. For compare with any sample k
of the leaf: :math:`|f_i - f_k| \le 1 + 2 r`, as the scaled target has range 1, and
:math:`|\beta^\top (x_i - x_k)|` is at most the last term. (The constant term of an empty leaf may be such that it
predicts :math:`f_k` at any sample k.) In a solution no worse than UB the regulariser bounds both,
:math:`\lambda \|\beta_t\|_1 \le UB`; without
one (:math:`\lambda = 0`), and with l0, coefficients are limited to :math:`M_r`. UB is the objective of the start tree
known from building the model: all solutions as good as that are in it.

*With constraints that a user adds*, on coefficients, fitted values, losses or the assignment, every step holds for
solutions of value at most UB, with UB the value of a solution that satisfies them (binaries that say which features
the leaves use have B as their big-M): only the constant terms
:math:`\beta_0` of empty leaves are moved. Where a constraint reads these, nothing is proven. The thesis' M_f cuts off
nothing if it is at least all M_i, for UB the value of a solution.

**Variants.** ``paper``: the thesis' rows and its M_f. ``tight`` (``ort-l``): routing by thresholds, and the valid M_f.
``valid`` (``ort-lh``): the thesis' routing, and the valid M_f.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from formulations.ort import (
    ConstantLeaves,
    HyperplaneSplits,
    LeafFit,
    OrtInstance,
    RegressionTree,
    coefficients,
)
from formulations.splits.univariate import ONE_FEATURE, RoutingExpressions, leaves_of
from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model, Values, VarArray
from mipforest.objectives.leaf_losses import ErrorLoss, error_loss
from mipforest.problem.expressions import Expression, NotExpressed, TreeExpressions
from mipforest.problem.model_changes import ModelChanges
from mipforest.problem.parameters import parameter
from mipforest.problem.structure import HyperplaneCharges, TreeCharges
from mipforest.settings import FEASIBILITY_TOLERANCE
from mipforest.solving import solve
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.sides import INTERIOR_RESIDUE

#: Block of binaries that say which features the leaves use, where a constraint reads them.
USES = "leaf_uses"

#: Gap and seconds for the exact fit of one linear leaf; only with the l0 regulariser it takes a search.
FIT_GAP = 1e-6
FIT_TIME_LIMIT = 5.0


@dataclass(frozen=True, eq=False)
class LinearLeaves(ConstantLeaves):
    """Leaves that predict a linear function of the features.

    Attributes
    ----------
    lam, regulariser
        Weight of the regulariser, and which: ``"l1"`` or ``"l0"``.
    M_r
        Greatest size of a coefficient, with ``"l0"`` or where nothing else bounds it.
    literal
        Whether to take the thesis' M_f, which is not valid in general.
    time
        Once it has run out, leaves predict constants.
    """

    loss: ErrorLoss
    lam: float
    regulariser: str
    M_r: float
    literal: bool = False
    time: TimeBudget = field(default_factory=TimeBudget)

    @property
    def counts(self) -> bool:
        """Whether the regulariser counts coefficients."""
        return self.regulariser == "l0"

    @property
    def limit(self) -> float:
        return self.M_r if self.counts or (self.lam == 0 and not self.literal) else np.inf

    def penalty(self, beta: FloatArray) -> float:
        size = np.count_nonzero(beta) if self.counts else np.abs(beta).sum()
        return float(self.lam * size)

    def declare_size(self, m: Model, beta: VarArray) -> LinearExpr:
        """Write (5.4), or the sizes in (5.3); return the regulariser, without its weight."""
        if self.counts:
            r = m.binary("r", beta.shape, meaning="whether a leaf uses a feature")
            m.add("size_above", beta <= self.limit * r)  # (5.4)
            m.add("size_below", beta >= -self.limit * r)  # (5.4)
            return r.sum()
        size = m.nonnegative("beta_abs", beta.shape, meaning="sizes of the coefficients")
        m.add("size_above", size >= beta)  # (5.3)
        m.add("size_below", size >= -beta)  # (5.3)
        return size.sum()

    def big_m(self, X: FloatArray, upper_bound: float) -> FloatArray:
        """Return the (g,) M_f of each row of X (g, p), for solutions with an objective of at most ``upper_bound``."""
        error = self.loss.greatest_error(upper_bound * self.baseline, self.data.weights)
        if self.literal:
            return np.full(len(X), 2 * (error + float(np.abs(self.y).max())))
        single, per_unit = self.greatest_coefficient(upper_bound), self._per_unit(upper_bound)
        p = X.shape[1]
        together = min(p, per_unit) * single if self.counts else min(p * single, per_unit)
        far = np.maximum(X, 1 - X)
        big_m: FloatArray = 1 + 2 * error + np.minimum(single * far.sum(axis=1), together * far.max(axis=1))
        return big_m

    def greatest_coefficient(self, upper_bound: float) -> float:
        """Return B, the greatest size of a coefficient in solutions with an objective of at most ``upper_bound``."""
        return self.limit if self.counts else min(self.limit, self._per_unit(upper_bound))

    def _per_unit(self, upper_bound: float) -> float:
        """Return what an objective buys of the regulariser: sizes of coefficients, or their number."""
        return np.inf if self.lam == 0 else upper_bound / self.lam

    def fit(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> LeafFit:
        # A feature that is constant in the leaf is no better than the constant term.
        varies = np.ptp(X, axis=0) > 0
        beta = np.zeros(X.shape[1])
        if varies.any() and not self.time.expired:
            beta[varies] = self._solve_fit(X[:, varies], y, weight)
        beta0 = self.loss.best_constant(y - X @ beta, weight)
        cost = self.loss.total(X @ beta + beta0, y, weight) / self.baseline + self.penalty(beta[None])
        constant = self.fit_constant(X, y, weight)
        return LeafFit(beta, beta0, cost) if cost < constant.cost else constant

    def _solve_fit(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Solve the leaf's linear, quadratic or mixed-integer programme."""
        m = Model("leaf")
        beta = m.continuous(
            "beta", X.shape[1], lower=-self.limit, upper=self.limit, meaning="coefficients of a linear leaf"
        )
        losses = self.loss.declare(
            m, X @ beta + m.continuous("beta0", meaning="intercept of a linear leaf") - y, weight
        )
        m.minimize((1 / self.baseline) * losses + self.lam * self.declare_size(m, beta))
        solution = solve(m, gap=FIT_GAP, time_limit=self.time.at_most(FIT_TIME_LIMIT))
        if solution.stopped:
            self.time.stop()
        if solution.x is None:
            return np.zeros(X.shape[1])
        found = np.clip(solution.values["beta"], -self.limit, self.limit)
        found[np.abs(found) <= INTERIOR_RESIDUE] = 0.0
        if self.counts:
            found[solution.values["r"] <= 0.5] = 0.0
        return found

    def with_values(self, tree: Tree, beta: FloatArray, beta0: FloatArray) -> Tree:
        constant = super().with_values(tree, beta, beta0)
        return replace(constant, leaf_w=self.spread * beta)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OrtLInstance(OrtInstance):
    """A data set with its routing, its linear leaves, and a bound on the objective.

    Attributes
    ----------
    upper_bound
        Objective of the known tree, slightly raised.
    """

    leaves: LinearLeaves
    upper_bound: float = np.inf


@dataclass(frozen=True, kw_only=True)
class OrtL(RegressionTree):
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
    structure_type = TreeCharges
    source = "Dunn 2018, chapter 5"
    variants = ("tight", "paper")
    refused_parameters = ONE_FEATURE

    lam: float = parameter(0.01, "weight of the coefficients of linear leaves", at_least=0)
    regulariser: str = parameter("l1", "size of the coefficients, or their number", choices=("l1", "l0"))
    M_r: float = parameter(10.0, "greatest coefficient (with l0, or lam = 0)", above=0)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: OrtLInstance) -> None:
        routing, leaves, topology = instance.routing, instance.leaves, instance.topology
        complexity = routing.declare(m)  # (2.2) - (2.14), or (3.1), (3.2)
        z, M_f = m["z"], leaves.big_m(routing.rows, instance.upper_bound)[:, None]
        beta0 = m.continuous("beta0", topology.leaves, meaning="intercept of a linear leaf")
        beta = m.continuous(
            "beta",
            (topology.leaves, instance.data.features),
            lower=-leaves.limit,
            upper=leaves.limit,
            meaning="coefficients of a linear leaf",
        )
        f = m.continuous("f", len(routing.rows), meaning="prediction for a sample")
        apart = f[:, None] - (routing.rows @ beta.T + beta0)
        m.add("fitted_above", apart <= M_f * (1 - z))  # (5.2)
        m.add("fitted_below", apart >= -(M_f * (1 - z)))  # (5.2)
        losses = leaves.loss.declare(m, f[routing.group] - leaves.y, instance.data.weights)  # (4.4) - (4.6)
        size = leaves.declare_size(m, beta)  # (5.4)
        m.minimize((1 / leaves.baseline) * losses + self.alpha * complexity + self.lam * size)  # (5.3), (5.5)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> OrtLInstance:
        budget = budget or TimeBudget()
        instance = OrtLInstance(
            data=data,
            topology=topology,
            budget=budget,
            routing=self._routing(data, topology),
            leaves=LinearLeaves(
                data,
                error_loss(self.loss),
                lam=self.lam,
                regulariser=self.regulariser,
                M_r=self.M_r,
                literal=self.variant == "paper",
                time=budget,
            ),
        )
        with budget.phase("start", "finding a start tree"):
            known = self.start("cart", instance)
        value = self.evaluate(known, instance)
        return replace(instance, known=known, upper_bound=raised(value))

    def structure(self, instance: OrtLInstance) -> TreeCharges | None:
        if self.loss != "squared" or self.regulariser != "l1" or self.lam == 0:
            return None
        return replace(self._charges(instance), coefficient_cost=self.lam * instance.leaves.baseline)

    def expressions(self, m: Model, instance: OrtInstance) -> TreeExpressions:
        assert isinstance(instance, OrtLInstance)
        return LinearLeafExpressions(
            self.name,
            m,
            instance.data,
            instance.topology,
            instance.routing,
            instance.leaves,
            instance.upper_bound,
        )

    def _limits_used(self, changes: ModelChanges) -> bool:
        """Return whether rows rest on the upper bound: those of the thesis do only where constraints read features."""
        return self.variant != "paper" or USES in changes.blocks

    def valid_below(self, instance: OrtLInstance, changes: ModelChanges) -> float:
        if not self._limits_used(changes):
            return np.inf
        # The constant terms of empty leaves are moved; constraints may ask for others.
        moved = changes.loosened or changes.locked("beta0").any()
        return -np.inf if moved else instance.upper_bound

    def with_all_trees(self, instance: OrtLInstance) -> OrtLInstance | None:
        return instance if self.variant == "paper" else None

    def with_cutoff(self, instance: OrtLInstance, value: float, changes: ModelChanges) -> OrtLInstance | None:
        proven = self._limits_used(changes) and self.valid_below(instance, changes) > -np.inf
        if not (proven and np.isfinite(value)):
            return None
        return replace(instance, upper_bound=raised(value))

    def constants_proven(self, instance: OrtLInstance, value: float, changes: ModelChanges) -> bool:
        if self.variant != "paper":
            return True  # :meth:`valid_below` tells how far
        leaves, rows = instance.leaves, instance.routing.rows
        unbounded = self.lam == 0 and not leaves.counts
        if unbounded or not np.isfinite(value) or changes.loosened or changes.locked("beta0").any():
            return False
        needed = replace(leaves, literal=False).big_m(rows, raised(value))
        return bool((leaves.big_m(rows, instance.upper_bound) >= needed).all())

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: OrtLInstance) -> dict[str, FloatArray]:
        leaves, routing = instance.leaves, instance.routing
        beta0, beta = leaves.scaled(tree.leaf_value), coefficients(tree) / leaves.spread
        f = (leaves_of(tree, routing.rows) * (routing.rows @ beta.T + beta0)).sum(axis=1)
        size = {"r": (beta != 0).astype(float)} if leaves.counts else {"beta_abs": np.abs(beta)}
        losses = leaves.loss.encode(f[routing.group] - leaves.y)
        return {**routing.encode(tree), "beta0": beta0, "beta": beta, "f": f, **losses, **size}

    def decode(self, values: Values, instance: OrtLInstance) -> Tree:
        """Read splits and leaves off a solution: leaves fitted anew could exceed the literal M_f."""
        leaves, tree = instance.leaves, instance.routing.decode(values)
        kept = np.abs(values["beta"]) > INTERIOR_RESIDUE
        if leaves.counts:
            kept &= values["r"] > 0.5
        if USES in values:
            kept &= values[USES] > 0.5
        # What an empty leaf predicts counts for nothing; without a regulariser it may be anything.
        holds_samples = leaves_of(tree, instance.data.X).sum(axis=0) > 0
        kept &= holds_samples[:, None]
        return leaves.with_values(tree, np.where(kept, values["beta"], 0.0), values["beta0"])


@dataclass(frozen=True, eq=False)
class LinearLeafExpressions(RoutingExpressions):
    r"""What models with linear leaves say besides splits and leaves: which features the leaves use.

    With l0 these are the binaries ``r``; with l1 binaries are added where a constraint reads them,
    :math:`-B\,\mathrm{uses}_{jt} \le \beta_{jt} \le B\,\mathrm{uses}_{jt}` with B as above.

    Attributes
    ----------
    linear
        The leaves.
    upper_bound
        Objective of the solutions that the limits of the model hold for.
    """

    linear: LinearLeaves
    upper_bound: float

    def leaf_features(self) -> Expression:
        if self.linear.counts:
            return self.m["r"]
        if USES not in self.m.variables:
            beta = self.m["beta"]
            most = self.linear.greatest_coefficient(self.upper_bound)
            lower, upper = np.maximum(beta.lower, -most), np.minimum(beta.upper, most)
            if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
                raise NotExpressed(
                    f"{self.formulation} with lam = 0 has no bounds on coefficients in this variant, which the "
                    "constraint needs; give a lam above 0, or bound them: problem.model['beta'].set_bounds(-10, 10)"
                )
            over = (self.topology.leaves, self.data.features)
            uses = self.m.binary(USES, over)
            self.m.add(f"{USES}_above", beta <= upper * uses, over=over)
            self.m.add(f"{USES}_below", beta >= lower * uses, over=over)
        return self.m[USES]

    def write_again(self, name: str) -> bool:
        if name == USES:
            self.leaf_features()
        return name == USES

    def encode(self, tree: Tree) -> dict[str, FloatArray]:
        added = super().encode(tree)
        if USES in self.m.variables:
            added[USES] = (coefficients(tree) != 0).astype(float)
        return added


def raised(value: float) -> float:
    """Return a value raised by a solver's tolerance."""
    return value + FEASIBILITY_TOLERANCE * (1 + value)


@dataclass(frozen=True, kw_only=True)
class OrtLH(HyperplaneSplits, OrtL):
    """Optimal regression tree with hyperplane splits and linear leaves."""

    name = "ort-lh"
    summary = "optimal regression tree with hyperplane splits and linear leaves"
    variants = ("valid", "paper")

    def structure(self, instance: OrtLInstance) -> HyperplaneCharges | None:
        charges = super().structure(instance)
        return None if charges is None else self._hyperplanes(charges)
