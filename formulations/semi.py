r"""Semi-supervised trees: univariate splits, samples without a label, and known totals of their classes.

Source: J. P. Burgard, M. E. Pinheiro, M. Schmidt, *Mixed-integer linear optimization for semi-supervised optimal
classification trees*, arXiv 2401.09848. Their model S2OCT has hyperplanes and two classes, charges labelled samples
their distances to the sides of a leaf of their class, and keeps samples without a label away from hyperplanes. What is
taken of it here is the total and its slack, with the errors and splits of OCT and any number of classes.

Each of n samples i has a label, and m further ones have none. Of these, the number :math:`\tau_k` of some or all
classes k is known, as surveys and registers know it. With :math:`N_k(T)` the number of the m that tree T predicts
class k, the tree minimises

.. math::

    \frac{1}{\hat L} \Bigl( \sum_i w_i \kappa_{y_i, k_i(T)} + \rho\, \xi(T) \Bigr) + \alpha C, \qquad
    \xi(T) = \max \Bigl\{ \sum_k (\tau_k - N_k(T))^+,\; \sum_k (N_k(T) - \tau_k)^+ \Bigr\},

with the charges, :math:`\hat L` and C of :mod:`formulations.oct`, and sums over the classes with a total.
:math:`\xi` is the least number of predictions that have to change for every total to be met; of two classes it is the
amount by which the number of the second one is missed, the paper's slack. :math:`\rho` is the price of each
(``total_price``). :math:`N_{min}` counts samples of both kinds.

**Rows.** Those of variant ``tight`` of :mod:`formulations.oct` by thresholds of all n + m samples, q for the labelled
ones alone. For a group h of equal samples without a label, :math:`m_h` of them, and with :math:`s_{hkt}` the share of
it that reaches leaf t and is predicted class k there,

.. math::

    & s_{hkt} \le c_{kt}, \quad \sum_k \sum_{t \in sub_L(m)} s_{hkt} \le \mathrm{left}_{hm}, \quad
      \sum_k \sum_{t \in sub_R(m)} s_{hkt} \le 1 - \mathrm{left}_{hm} && (1, 2, 3) \\
    & \sum_{k, t} s_{hkt} = 1, \quad s \ge 0 && (4) \\
    & v^-_k \ge \tau_k - \sum_h m_h \sum_t s_{hkt}, \quad v^+_k \ge \sum_h m_h \sum_t s_{hkt} - \tau_k, \quad
      v \ge 0 && (5, 6) \\
    & \xi \ge \sum_k v^-_k, \quad \xi \ge \sum_k v^+_k && (7, 8)

For binary thresholds and labels s is 1 at the leaf that the group reaches and at its label, by (1) to (4).

**Bounds.** The variant ``tight`` knows a lower bound for each threshold at the root, which enters as row (i) of
:mod:`formulations.oct`, and a start: both are of :mod:`formulations.totals_search`. ``valid`` has neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from formulations.leaves import ClassTreeExpressions, PredictsClasses, check_class_data, with_cheapest_labels
from formulations.oct import OctInstance, UnivariateLabels, label_gains
from formulations.splits.univariate import (
    RootValues,
    ThresholdRouting,
    check_leaf_size,
    leaves_of,
)
from formulations.totals_search import TotalsSearch
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.table import Axis
from mipforest.errors import did_you_mean, some_of
from mipforest.heuristics.thresholds import find_thresholds, without_splits
from mipforest.model import LinearExpr, Model
from mipforest.problem.expressions import Expression
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.parameters import ParameterError, ParameterKind, parameter
from mipforest.problem.structure import LabelSums
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

#: Share of the samples without a label by which every total may be off, as a rounded share is; and at least one sample.
ROUNDED = 0.01


@dataclass(frozen=True, kw_only=True)
class Totals(ParameterKind):
    """How many samples without a label are of each class: a number for each class, or by the names of some classes.

    A number from 1 on counts samples; one between 0 and 1 is a share of them.
    """

    name = "totals of classes"

    @property
    def range(self) -> str:
        """What the numbers are."""
        return "CLASS:NUMBER,... | NUMBER,...; >= 0, a share below 1"

    def parse(self, parameter: str, text: str) -> Any:
        """Read ``yes:30,no:70`` or ``30,70``."""
        parts = [part.rpartition(":") for part in text.split(",")]
        try:
            numbers = [float(number) for _, _, number in parts]
        except ValueError:
            numbers = []
        named = [bool(colon) for _, colon, _ in parts]
        if not numbers or any(named) != all(named):
            raise ParameterError(
                f"parameter {parameter}={text!r} gives no totals; write CLASS:NUMBER with commas between them, such as "
                "yes:30,no:70, or a number for each class"
            )
        names = [name.strip() for name, _, _ in parts]
        if len(set(names)) < len(names) and all(named):
            raise ParameterError(
                f"parameter {parameter}={text!r} names a class twice; give one total for each"
            )
        return self.check(parameter, dict(zip(names, numbers, strict=True)) if all(named) else numbers)

    def check(self, parameter: str, value: Any) -> Any:
        """Return a tuple of numbers, or of pairs of a name and a number; ``None`` stays."""
        if value is None:
            return None
        if isinstance(value, Mapping):
            value = tuple(value.items())
        given = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else []
        named = bool(given) and all(isinstance(one, tuple) and len(one) == 2 for one in given)
        numbers = [one[1] for one in given] if named else given
        if not given or not all(
            isinstance(one, int | float | np.integer | np.floating) and not isinstance(one, bool)
            for one in numbers
        ):
            raise ParameterError(
                f"parameter {parameter} is {value!r}; give a number for each class, or by the name of some of them"
            )
        if not all(np.isfinite(float(one)) and one >= 0 for one in numbers):
            raise ParameterError(f"parameter {parameter} is {value!r}; totals are finite and at least 0")
        counts = tuple(float(one) for one in numbers)
        return tuple(zip((str(one[0]) for one in given), counts, strict=True)) if named else counts

    def to_json(self, value: Any) -> Any:
        """Write names as a mapping."""
        return dict(value) if value and isinstance(value[0], tuple) else value

    @staticmethod
    def of(asked: Any, data: Dataset) -> FloatArray:
        """Return the (K,) known number of each class among the samples without a label, NaN where none is known.

        Parameters
        ----------
        asked
            What :meth:`check` returned.
        data
            Training samples.

        Raises
        ------
        ParameterError
            If a class is unknown, there is not a number for each, or they do not add up to the number of samples
            without a label (to no more than that, where some classes have none), within :data:`ROUNDED` for each.
        """
        m, K = 0 if data.unlabelled is None else len(data.unlabelled), data.n_classes
        total = np.full(K, np.nan)
        if asked is None:
            if m:
                raise ParameterError(
                    f"parameter totals is needed: {data.name} has {m} samples without a label; give the number or "
                    f"share of these in some class ({some_of(data.classes)}), such as totals={data.classes[-1]}:0.5"
                )
            return total
        if isinstance(asked[0], tuple):
            names = {name: k for k, name in enumerate(data.classes)}
            for name, number in asked:
                if name not in names:
                    raise ParameterError(
                        f"parameter totals names {name!r}, which is no class of {data.name}"
                        f"{did_you_mean(name, names)}; its classes are {some_of(data.classes)}"
                    )
                total[names[name]] = number
        elif len(asked) != K:
            raise ParameterError(
                f"parameter totals has {len(asked)} numbers, and {data.name} has {K} classes "
                f"({some_of(data.classes)}); give one for each, or name the classes"
            )
        else:
            total[:] = asked
        total = np.where(total < 1, total * m, total)
        known, sum_of_all = ~np.isnan(total), float(np.nansum(total))
        off = known.sum() * max(1.0, ROUNDED * m) if m else 0.0
        if sum_of_all > m + off or (known.all() and sum_of_all < m - off):
            raise ParameterError(
                f"parameter totals adds up to {sum_of_all:g}, and {m} samples of {data.name} have no label; give the "
                "numbers, or shares, of those without a label alone"
            )
        return total


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SemiInstance(OctInstance):
    """A data set with a routing of all samples, and the known totals.

    Attributes
    ----------
    routing
        Of n + m samples, the labelled ones first.
    total
        (K,) number of each class among the m samples without a label, NaN where it is not known.
    """

    routing: ThresholdRouting
    total: FloatArray

    @property
    def routed(self) -> Dataset:
        """The n + m samples, with any label where there is none."""
        return self.routing.data

    @property
    def counted(self) -> IntArray:
        """Numbers of the classes whose total is known."""
        return np.flatnonzero(~np.isnan(self.total))

    def missed(self, predicted: FloatArray) -> float:
        """Return xi, by the (K,) number of samples without a label that are predicted each class."""
        away = (predicted - self.total)[self.counted]
        return float(max(np.maximum(away, 0.0).sum(), np.maximum(-away, 0.0).sum()))

    @property
    def groups(self) -> tuple[IntArray, IntArray]:
        """Groups h of samples without a label, and the number of these in each."""
        return np.unique(self.routing.group[self.data.n :], return_counts=True)


def with_unlabelled(data: Dataset) -> Dataset:
    """Return the samples, and after them those without a label, as of the first class and with weight 1."""
    if data.unlabelled is None:
        return data
    m = len(data.unlabelled)
    X_raw = np.vstack([data.X_raw, data.unlabelled])
    names = (*data.samples.labels, *(f"unlabelled {i}" for i in range(m)))
    return replace(
        data,
        X=data.encoding.to_scaled(X_raw),
        X_raw=X_raw,
        y=np.concatenate([data.y, np.zeros(m, dtype=data.y.dtype)]),
        weights=np.concatenate([data.weights, np.ones(m)]),
        samples=Axis(names, "sample"),
        unlabelled=None,
    )


@dataclass(frozen=True, eq=False)
class SemiExpressions(ClassTreeExpressions):
    """What constraints read: leaves and predictions of the labelled samples."""

    def leaves(self) -> Expression:
        return super().leaves()[: self.data.n]

    def predicted(self, k: int) -> Expression:
        return super().predicted(k)[: self.data.n]


@dataclass(frozen=True, kw_only=True)
class SemiOct(PredictsClasses, UnivariateLabels):
    """Semi-supervised classification tree with univariate splits.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the error of the best constant prediction of labelled samples.
    N_min
        Least number of samples, with a label or without, in a leaf that holds any.
    costs
        Cost of predicting the class of a column for a sample of the class of a row: K rows, or a .csv file of them.
    totals
        Number, or share below 1, of the samples without a label in each class, or in some by name.
    total_price
        Price of each sample by which the totals are missed, in errors of labelled samples.
    """

    name = "semi-oct"
    summary = "univariate splits, samples without a label, and known totals of their classes"
    source = "Burgard, Pinheiro and Schmidt 2024; rows of Dunn 2018, chapter 2"
    variants = ("tight", "valid")
    structure_type = None
    takes_unlabelled = True
    # Simplex and interior point take minutes for its linear relaxation where that of OCT takes seconds.
    most_witnessed: ClassVar[int] = 20_000

    totals: Any = parameter(
        None, "number or share of the samples without a label in each class", kind=Totals()
    )
    total_price: float = parameter(
        1.0, "price of each sample by which totals are missed, in errors", at_least=0
    )

    # ------------------------------------------------------------------ the model

    def further_losses(self, m: Model, instance: Any, left: LinearExpr) -> LinearExpr | float:
        group, size = instance.groups
        counted, topology, h = instance.counted, instance.topology, len(group)
        if not len(counted) or not h:
            return 0.0
        classes = list(instance.data.classes)
        s = m.nonnegative(
            "s",
            (len(classes) * h, topology.leaves),
            upper=1,
            meaning="share of a group of samples without a label that reaches a leaf and is predicted a class there",
        )
        names = [classes[k] for k in counted]
        short = m.nonnegative(
            "short", (names,), meaning="by how much predictions of a class fall short of its total"
        )
        over = m.nonnegative("over", (names,), meaning="by how much predictions of a class exceed its total")
        missed = m.nonnegative("missed", meaning="number of predictions that totals are missed by")
        of_class = [s[k * h : (k + 1) * h] for k in range(len(classes))]
        reached = sum(of_class[1:], 1.0 * of_class[0])
        m.add("s_labelled", s <= m["c"][np.repeat(np.arange(len(classes)), h)])  # (1)
        m.add("s_left", reached @ topology.leaf_reach_left <= left[group])  # (2)
        m.add("s_right", reached @ topology.leaf_reach_right <= 1 - left[group])  # (3)
        m.add("s_one", reached.sum(axis=1) == 1)  # (4)
        for i, k in enumerate(counted):
            predicted, total = size @ of_class[k].sum(axis=1), instance.total[k]
            m.add(f"short_{k}", short[i] >= total - predicted)  # (5)
            m.add(f"over_{k}", over[i] >= predicted - total)  # (6)
        m.add("missed_short", missed >= short.sum())  # (7)
        m.add("missed_over", missed >= over.sum())  # (8)
        slack: LinearExpr = self.total_price * missed
        return slack

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: Any) -> dict[str, FloatArray]:
        values = super().encode(tree, instance)
        group, _ = instance.groups
        if not len(instance.counted) or not len(group):
            return values
        z, K = leaves_of(tree, instance.routing.rows)[group], len(instance.data.classes)
        away = (predicted_totals(tree, instance) - instance.total)[instance.counted]
        short, over = np.maximum(-away, 0.0), np.maximum(away, 0.0)
        return values | {
            "s": np.vstack([z * (tree.leaf_value == k) for k in range(K)]),
            "short": short,
            "over": over,
            "missed": np.asarray(max(short.sum(), over.sum())),
        }

    def evaluate(self, tree: Tree, instance: Any) -> float:
        data, routed = instance.data, instance.routed
        leaf = tree.apply(routed.X) - tree.topology.n_branches
        size = np.bincount(leaf, minlength=tree.topology.n_leaves)
        if ((size > 0) & (size < self.N_min)).any():
            return float("inf")
        predicted = tree.leaf_value[leaf[: data.n]].astype(np.int64)
        losses = instance.loss.total(predicted, data.y, data.weights)
        losses += self.total_price * instance.missed(predicted_totals(tree, instance))
        return float(losses / instance.baseline + self.alpha * tree.n_splits)

    def relabel(self, tree: Tree, instance: Any) -> Tree:
        """Return the tree with the labels of least charges and price together, by a small integer programme."""
        cheapest = with_cheapest_labels(tree, instance)
        found = [tree, cheapest, _with_best_labels(cheapest, instance, self.total_price)]
        return min(found, key=lambda one: self.evaluate(one, instance))

    def polish(self, tree: Tree, instance: Any) -> Tree:
        """Relabel the leaves, and take back splits that do not pay, from the leaves up."""
        best = self.relabel(tree, instance)
        value = self.evaluate(best, instance)
        for t in reversed(instance.topology.branches):
            if best.is_trivial(t):
                continue
            shorter = self.relabel(without_splits(best, [t]), instance)
            without = self.evaluate(shorter, instance)
            if without <= value:
                best, value = shorter, without
        return best

    def report(self, solved: Tree, refined: Tree, instance: Any) -> dict[str, Any]:
        """State the predicted totals of the samples without a label beside the known ones."""
        if instance.data.unlabelled is None:
            return {}
        predicted = predicted_totals(refined, instance)
        return {
            "samples_without_label": len(instance.data.unlabelled),
            "predicted_totals": dict(zip(instance.data.classes, map(int, predicted), strict=True)),
            "known_totals": {instance.data.classes[k]: float(instance.total[k]) for k in instance.counted},
            "totals_missed_by": instance.missed(predicted),
        }

    def expressions(self, m: Model, instance: Any) -> SemiExpressions:
        return SemiExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    def label_sums(self, m: Model, instance: Any, built: BuiltModel) -> LabelSums | None:
        return None

    # ------------------------------------------------------------------ what is known of the data

    def check_data(self, data: Dataset, topology: Topology) -> None:
        check_class_data(self.name, data, self.costs)
        routed = with_unlabelled(data)
        self.require_unit_box(routed)
        check_leaf_size(routed, self.N_min)
        Totals.of(self.totals, data)

    def bind(self, data: Dataset, topology: Topology, budget: TimeBudget | None = None) -> SemiInstance:
        bound, routed = self.bound_leaves(data), with_unlabelled(data)
        thresholds = find_thresholds(routed)
        charges = np.zeros((routed.n, data.n_classes))
        charges[: data.n] = bound["charges"]
        instance = SemiInstance(
            data=data,
            topology=topology,
            budget=budget or TimeBudget(),
            routing=ThresholdRouting(routed, topology, self.N_min, thresholds),
            gains=label_gains(thresholds.group, charges),
            total=Totals.of(self.totals, data),
            **bound,
        )
        return self._prepared(instance, "searching for the best trees under prices of totals")

    def bind_quickly(self, data: Dataset, topology: Topology, budget: TimeBudget) -> None:
        return None

    def structure(self, instance: Any) -> None:
        return None

    def _searched(self, instance: Any) -> tuple[Tree, RootValues]:
        """Raise the prices of totals; return the best tree that was found, and what is proven, in errors."""
        return TotalsSearch(self, instance).run()


def predicted_totals(tree: Tree, instance: SemiInstance) -> FloatArray:
    """Return (K,) how many samples without a label a tree predicts each class."""
    X = instance.routed.X[instance.data.n :]
    labels = tree.leaf_value[tree.apply(X) - tree.topology.n_branches].astype(np.int64)
    return np.bincount(labels, minlength=len(instance.data.classes)).astype(float)


def _with_best_labels(tree: Tree, instance: SemiInstance, price: float) -> Tree:
    """Return a tree with labels of least charges and price of totals, those of empty leaves as they are."""
    n, K, counted = instance.data.n, len(instance.data.classes), instance.counted
    z = leaves_of(tree, instance.routed.X)
    used, r = np.flatnonzero(z.any(axis=0)), len(counted)
    if not r or len(z) == n:
        return tree
    charged, held = z[:n, used].T @ instance.charges, z[n:, used].sum(axis=0)
    # Columns: labels of leaves, leaf by leaf; by how much each total is fallen short of, and exceeded; xi.
    cost = np.concatenate([charged.ravel(), np.zeros(2 * r), [price]])
    predicted = np.kron(held, np.eye(K)[counted])
    one_label = np.kron(np.eye(len(used)), np.ones(K))
    of_totals = np.block(
        [
            [predicted, np.eye(r), np.zeros((r, r + 1))],
            [-predicted, np.zeros((r, r)), np.eye(r), np.zeros((r, 1))],
            [np.zeros(len(cost) - 2 * r - 1), -np.ones(r), np.zeros(r), 1.0],
            [np.zeros(len(cost) - 2 * r - 1), np.zeros(r), -np.ones(r), 1.0],
        ]
    )
    least = np.concatenate([instance.total[counted], -instance.total[counted], np.zeros(2)])
    labels = np.hstack([one_label, np.zeros((len(used), 2 * r + 1))])
    solved = milp(
        cost,
        integrality=np.r_[np.ones(charged.size), np.zeros(2 * r + 1)],
        bounds=Bounds(0.0, np.r_[np.ones(charged.size), np.full(2 * r + 1, np.inf)]),
        constraints=[LinearConstraint(labels, 1.0, 1.0), LinearConstraint(of_totals, least, np.inf)],
        options={"mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return tree
    value = np.array(tree.leaf_value, dtype=np.int64)
    value[used] = solved.x[: charged.size].reshape(-1, K).argmax(axis=1)
    return replace(tree, leaf_value=value)
