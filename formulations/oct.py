r"""OCT: optimal classification trees with univariate splits.

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, problem (2.24). The splits and
the assignment z of samples to leaves, rows (2.2) to (2.14), are those of :mod:`formulations.splits.univariate`. With
:math:`N_{kt} = \sum_{i: y_i = k} z_{it}` and :math:`N_t = \sum_i z_{it}` (2.15, 2.16) written out,

.. math::

    \min\; & \tfrac{1}{\hat L} \sum_{t \in L} L_t + \alpha \sum_{t \in B} d_t && (2.23) \\
    & \sum_k c_{kt} = l_t, \quad c_{kt} \in \{0, 1\} && t \in L \quad (2.18) \\
    & L_t \ge N_t - N_{kt} - n (1 - c_{kt}), \quad L_t \ge 0 && t \in L,\; k \quad (2.20, 2.22) \\
    & L_t \le N_t - N_{kt} + n c_{kt} && t \in L,\; k \quad (2.21)

with :math:`\hat L` the number of samples outside the largest class: the error of the best constant prediction (not the
size of that class).

**Weights and costs.** With sample weights :math:`w_i` and costs :math:`\kappa` of predicting a class (column) for
another (row), the charges :math:`w_i \kappa_{y_i k}` take the place of errors: :math:`N_t - N_{kt}` is
:math:`\sum_i w_i \kappa_{y_i k} z_{it}`, n its upper bound in (2.20), (2.21), and :math:`\hat L` the charges of the
best constant prediction. :math:`N_{min}` still counts samples. In (e) to (h), :math:`q_{gkt}` is the share of group g
that reaches leaf t where class k is predicted, and :math:`n_{gk}` what this saves against the group's costliest
prediction.

**Variants.** ``paper``: the above. ``tight`` (the default) and ``valid``, which leaves out rows (i), have the same
optimal value:

- Routing by thresholds, linear and without a big-M or an epsilon: rows (a), (b) of
  :mod:`formulations.splits.univariate` and (2.5).
- Errors by correct predictions: with :math:`q_{gkt}` the share of the samples of class k in group g that reach leaf t
  and are predicted right there,

  .. math::

      q_{gkt} \le c_{kt}, \quad \sum_{t \in sub_L(m)} q_{gkt} \le \mathrm{left}_{gm}, \quad
      \sum_{t \in sub_R(m)} q_{gkt} \le 1 - \mathrm{left}_{gm}, \quad q \ge 0 \quad (e, f, g),

  errors are :math:`n - \sum_{g,k} n_{gk} \sum_t q_{gkt}`, at least 0 (h). For binary thresholds and labels each group
  may put its weight on the one leaf that it reaches, if that leaf predicts its class: q needs no integrality, and z is
  not needed.
- With ``N_min >= 2`` the assignment of groups to leaves is added, continuous (the thresholds make it 0 or 1), with
  (2.6) and (2.7). With ``N_min = 1`` rows (2.6), (2.7) only let a leaf be empty or not, and are left out.
- An exact search of limited length gives a bound :math:`V_c` for every threshold c at the root beforehand
  (:mod:`formulations.splits.univariate`). They enter as one valid row: the objective, in errors, is at least
  :math:`\sum_c V_c [\text{threshold } c] + V_0 [\text{no split}]` (i). Its best tree is the start. Where the search
  ends, the linear relaxation has the value of the optimum. ``valid`` leaves this to the solver: neither (i) nor this
  start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from formulations.leaves import (
    ClassTreeExpressions,
    ClassTreeInstance,
    LabelledTree,
    PredictsClasses,
    declare_class_leaves,
    encode_class_leaves,
    relative_loss,
    with_cheapest_labels,
    with_labels,
)
from formulations.splits.univariate import (
    ONE_FEATURE,
    RootValues,
    ThresholdRouting,
    UnivariateRouting,
    check_leaf_size,
    declare_hierarchy,
    is_begun_simply,
    root_bound,
    search_by_root,
    with_paying_splits,
)
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.cart import cart, random_trees
from mipforest.heuristics.contree import TIME_LIMIT as CONTREE_TIME_LIMIT
from mipforest.heuristics.contree import contree
from mipforest.heuristics.thresholds import (
    chosen_features,
    find_thresholds,
    univariate_tree,
    without_splits,
)
from mipforest.model import LinearExpr, Model, Values
from mipforest.problem.formulation import START_SHARE
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.parameters import ParameterError, parameter
from mipforest.problem.structure import LabelSums, Structure, UnivariateProblem
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OctInstance(ClassTreeInstance):
    """A data set with its routing, and bounds for the root's thresholds.

    Attributes
    ----------
    routing
        By the thesis' rows, or by thresholds: as the variant says.
    gains
        (g, K) what predicting each class saves in each row of the routing, against the costliest prediction: for
        samples of weight 1 without a cost matrix, the number of samples of the class.
    roots
        Bounds on the errors by the root's threshold, in variant ``tight``; ``None`` where nothing is proven.
    """

    routing: UnivariateRouting | ThresholdRouting
    gains: FloatArray
    roots: RootValues | None = None

    @property
    def costliest(self) -> float:
        """Charges of all samples at the prediction against which :attr:`gains` are counted."""
        return float((self.gains.sum(axis=0) + self.charges.sum(axis=0))[0])


_I = TypeVar("_I", bound=OctInstance)


@dataclass(frozen=True, kw_only=True)
class UnivariateLabels(LabelledTree):
    """Trees of univariate splits whose leaves have labels, each of which has a charge for each sample.

    Parameters
    ----------
    alpha
        Cost of a split, in units of the objective.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    """

    variants: ClassVar[tuple[str, ...]] = ("tight", "valid", "paper")
    starts: ClassVar[tuple[str, ...]] = ("depth-two", "cart", "previous-depth")
    simple_start = "cart"
    least_objective = 0.0
    takes_weights = True
    takes_sets = True
    structure_type: ClassVar[type[Structure] | None] = UnivariateProblem
    refused_parameters = ONE_FEATURE
    # Thresholds make the linear relaxation highly degenerate: the simplex method needs minutes for what an interior
    # point takes seconds for (banknote, depth 2: over 100 s against 10 s).
    solver_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {"highs": {"mip_lp_solver": "ipm"}}

    alpha: float = parameter(0.0, "cost of a split", at_least=0)
    N_min: int = parameter(1, "least number of samples in a leaf", at_least=1)

    # ------------------------------------------------------------------ the model

    def declare(self, m: Model, instance: OctInstance) -> None:
        if isinstance(instance.routing, UnivariateRouting):
            self._declare_paper(m, instance, instance.routing)
        else:
            self._declare_tight(m, instance, instance.routing)

    def _declare_paper(self, m: Model, instance: OctInstance, routing: UnivariateRouting) -> None:
        splits = routing.declare(m)  # (2.2) - (2.14)
        L = declare_class_leaves(m, instance)  # (2.15) - (2.22)
        m.minimize(L.sum() / instance.baseline + self.alpha * splits)  # (2.23)

    def _declare_tight(self, m: Model, instance: OctInstance, routing: ThresholdRouting) -> None:
        data, topology = instance.data, instance.topology
        gains, baseline = instance.gains, instance.baseline
        group, label = np.nonzero(gains)

        c = m.binary(
            "c", (list(data.classes), topology.leaves), meaning="1 for the class that a leaf predicts"
        )
        d = m.binary("d", topology.branches, meaning="whether a node splits")
        left = routing.declare_splits(m, d)  # (a), (b)
        q = m.nonnegative(
            "q",
            (len(group), topology.leaves),
            upper=1,
            meaning="share of the samples of a class in a group that reach a leaf and are predicted right there",
        )
        errors = instance.costliest - gains[group, label] @ q.sum(axis=1)
        losses = errors + self.further_losses(m, instance, left)
        m.minimize(losses / baseline + self.alpha * d.sum())  # (2.23)
        m.add("one_class", c.sum(axis=0) == 1, over=topology.leaves)  # (2.18)
        m.add("errors", errors >= 0)  # (h)
        m.add("predicted", q <= c[label])  # (e)
        m.add("left", q @ topology.leaf_reach_left <= left[group])  # (f)
        m.add("right", q @ topology.leaf_reach_right <= 1 - left[group])  # (g)
        if self.N_min > 1:
            routing.declare_assignment(m, d, left)  # (2.5) - (2.8)
        else:
            declare_hierarchy(m, topology, d)  # (2.5)
        if instance.roots is not None:
            cost = losses + self.alpha * baseline * d.sum()
            bound = root_bound(m["u"][0], d[0], routing.thresholds, instance.roots)
            m.add("root_value", cost >= bound)  # (i)

    def further_losses(self, m: Model, instance: OctInstance, left: LinearExpr) -> LinearExpr | float:
        """Write what trees lose beside charges of samples, by thresholds; return it in units of the charges.

        Parameters
        ----------
        m, instance
            The model so far, and what it is declared for.
        left
            (g, |B|) expression that is 1 where a group goes left at a node, else 0.
        """
        return 0.0

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: OctInstance) -> dict[str, FloatArray]:
        data, splits = instance.data, instance.routing.encode(tree)
        if isinstance(instance.routing, UnivariateRouting):
            return splits | encode_class_leaves(tree, instance, splits["z"])
        predicts = np.eye(len(data.classes))[tree.leaf_value].T
        group, label = np.nonzero(instance.gains)
        q = splits["z"][group] * predicts[label]
        if self.N_min == 1:
            del splits["z"]
        return {"c": predicts, "q": q, **splits}

    def decode(self, values: Values, instance: OctInstance) -> Tree:
        return with_labels(instance.routing.decode(values), instance, values["c"])

    def evaluate(self, tree: Tree, instance: OctInstance) -> float:
        return relative_loss(tree, instance) + self.alpha * tree.n_splits

    def relabel(self, tree: Tree, instance: OctInstance) -> Tree:
        return with_cheapest_labels(tree, instance)

    def expressions(self, m: Model, instance: OctInstance) -> ClassTreeExpressions:
        return ClassTreeExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    def label_sums(self, m: Model, instance: OctInstance, built: BuiltModel) -> LabelSums | None:
        return self.expressions(m, instance).label_sums(built)

    # ------------------------------------------------------------------ what is known of the data

    def check_data(self, data: Dataset, topology: Topology) -> None:
        self.require_unit_box(data)
        check_leaf_size(data, self.N_min)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> OctInstance:
        bound = self.bound_leaves(data)
        if self.variant == "paper":
            return OctInstance(
                data=data,
                topology=topology,
                budget=budget or TimeBudget(),
                routing=UnivariateRouting(data, topology, self.N_min),
                gains=label_gains(np.arange(data.n), bound["charges"]),
                **bound,
            )
        thresholds = find_thresholds(data)
        instance = OctInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            routing=ThresholdRouting(data, topology, self.N_min, thresholds),
            gains=label_gains(thresholds.group, bound["charges"]),
            **bound,
        )
        return self._prepared(instance, "searching for the best tree, and for bounds by its root")

    def _prepared(self, instance: _I, task: str) -> _I:
        """Return an instance with a start and bounds by the root, as far as its variant has them."""
        if self.variant == "valid":
            return instance
        with instance.budget.phase("prepare", task):
            known, roots = self._searched(instance)
        proven = instance.topology.depth <= 2 or roots.least > 0
        return replace(
            instance,
            known=known,
            roots=roots if proven else None,
            least_objective=roots.least / instance.baseline,
        )

    def bind_quickly(self, data: Dataset, topology: Topology, budget: TimeBudget) -> OctInstance | None:
        if self.variant != "tight" or not is_begun_simply(data, topology):
            return None
        instance = replace(self, variant="valid").bind(data, topology, budget)
        return replace(instance, known=self.start(self.simple_start, instance))

    def _searched(self, instance: OctInstance) -> tuple[Tree, RootValues]:
        """Search for the best tree; its value, and what is proven, are in errors."""
        charges = self.structure(instance)
        assert charges is not None
        problem = replace(charges, unit=1.0)
        return search_by_root(
            self,
            instance,
            problem,
            lambda splits: with_cheapest_labels(splits, instance),
            unit=instance.baseline,
            no_split=float(instance.charges.sum(axis=0).min()),
        )

    def structure(self, instance: OctInstance) -> UnivariateProblem | None:
        routing, data = instance.routing, instance.data
        return UnivariateProblem(
            thresholds=routing.thresholds if isinstance(routing, ThresholdRouting) else find_thresholds(data),
            y=data.y,
            loss=instance.loss,
            weight=data.weights if data.weighted else None,
            split_cost=self.alpha * instance.baseline,
            N_min=self.N_min,
            unit=instance.baseline,
        )

    # ------------------------------------------------------------------ starts

    def start(self, name: str, instance: OctInstance, *, seed: int = 0) -> Tree:
        if name == "depth-two":
            return instance.known or self._searched(instance)[0]
        if name == "cart":
            data = self.labelled(instance.data)
            grown = cart(data, instance.topology, min_leaf=self.N_min, seed=seed, budget=instance.budget)
            return self.polish(grown, instance)
        if name == "previous-depth":
            return self.polish(self.previous_depth(instance), instance)
        other: Tree = super().start(name, instance, seed=seed)
        return other

    def candidates(self, instance: OctInstance) -> Iterator[Tree]:
        return random_trees(self.labelled(instance.data), instance.topology, self.N_min)

    def without_splits(self, tree: Tree, nodes: Sequence[int], instance: OctInstance) -> Tree:
        return self.polish(without_splits(tree, nodes), instance)

    def polish(self, tree: Tree, instance: OctInstance) -> Tree:
        """Prune to the best subtree under the objective, from the leaves up, and relabel the leaves."""
        splits = univariate_tree(instance.data, instance.topology, chosen_features(tree), -tree.b)
        passed = splits.decision_path(instance.data.X).T.astype(float)
        size, alone = passed.sum(axis=1), (passed @ instance.charges).min(axis=1)
        alone[(size > 0) & (size < self.N_min)] = np.inf
        split_cost = np.full(instance.topology.n_branches, self.alpha * instance.baseline)
        return with_cheapest_labels(with_paying_splits(splits, split_cost, alone), instance)


def label_gains(group: IntArray, charges: FloatArray) -> FloatArray:
    """Return (g, K) what each label saves in each group, against the costliest one of each sample.

    Parameters
    ----------
    group
        (n,) the group of each sample, from 0.
    charges
        (n, K) what each label costs it.
    """
    gains = np.zeros((int(group.max()) + 1, charges.shape[1]))
    np.add.at(gains, group, charges.max(axis=1)[:, None] - charges)
    return gains


@dataclass(frozen=True, kw_only=True)
class Oct(PredictsClasses, UnivariateLabels):
    """Optimal classification tree with univariate splits.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the error of the best constant prediction.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    costs
        Cost of predicting the class of a column for a sample of the class of a row: K rows, or a .csv file of them.
    """

    name = "oct"
    summary = "optimal classification tree with univariate splits, any number of classes"
    source = "Dunn 2018, chapter 2"
    starts = (*UnivariateLabels.starts, "dp")

    def start(self, name: str, instance: OctInstance, *, seed: int = 0) -> Tree:
        if name != "dp":
            return super().start(name, instance, seed=seed)
        data = instance.data
        if data.weighted or self.costs is not None:
            raise ParameterError(
                "start 'dp' (pycontree) counts every error once, and takes neither sample weights nor costs; choose "
                f"another of {', '.join(self.starts[:-1])}"
            )
        share = min(1.0, self.alpha * instance.baseline / data.n)
        limit = instance.budget.at_most(CONTREE_TIME_LIMIT, share=START_SHARE)
        found = contree(
            data, instance.topology, split_cost=share, time_limit=limit or 0.0, budget=instance.budget
        )
        return self.polish(found, instance)
