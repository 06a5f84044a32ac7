r"""Trees of several targets: univariate splits, and leaves that predict a vector, one entry for each target.

Sample i has T targets :math:`y_{i1}, \dots, y_{iT}`, all of them numbers, or all of them labels, each target with its
own classes. Leaf t predicts a vector :math:`f_t`, and target k counts :math:`v_k > 0`. The tree minimises

.. math::  \frac{1}{\hat L} \sum_i w_i \sum_{k=1}^T v_k \, \ell_k(f_{t(i) k}, y_{ik}) + \alpha C,

with the squared error of numbers, :math:`\ell_k(f, y) = (f - y)^2`, or the error of labels,
:math:`\ell_k(f, y) = [f \ne y]` (the Hamming loss); :math:`\hat L` is the first sum of the tree without a split, and C
the number of splits. The best leaf predicts the mean, or the heaviest label, of each target by itself; the splits are
shared (Blockeel, De Raedt and Ramon, *Top-down induction of clustering trees*, ICML 1998; multi-output trees of
scikit-learn). One target gives ``ort`` with the squared loss, or ``oct``.

**Weights of targets** (``target_weights``). ``variance``: :math:`v_k` is one over the variance of target k, so that
units do not matter, and the training loss is one minus the mean :math:`R^2` of the targets, which is what the ``score``
of scikit-learn's regressors is. ``equal``: :math:`v_k = 1`, the criterion of scikit-learn's multi-output trees. Numbers
are :math:`v_k` themselves. Labels count 1 each in both words.

**Rows.** Splits and the assignment :math:`z_{gt}` of groups g of samples with equal features, of weight :math:`w_g`, to
leaves are those of :mod:`formulations.ort`, by thresholds.

*Numbers.* Targets are scaled by :math:`y_k \leftarrow \sqrt{v_k} (y_k - \min y_k) / r`, with r the greatest range that
this leaves, so that every :math:`v_k` is 1 then. With the means :math:`\bar y_{gk}` of the groups, of leaves
:math:`\mu_{tk}` (block ``beta0``) with bounds :math:`\underline v_k \le \mu_{tk} \le \overline v_k`, and
:math:`f_{gtk} = \mu_{tk} z_{gt}`,

.. math::

    & \underline v_k z_{gt} \le f_{gtk} \le \overline v_k z_{gt} && (1) \\
    & \mu_{tk} - \overline v_k (1 - z_{gt}) \le f_{gtk} \le \mu_{tk} - \underline v_k (1 - z_{gt}) && (2) \\
    & \sum_g w_g f_{gtk} = \sum_g w_g \bar y_{gk} z_{gt} && (3)

make each leaf value the mean, and residuals orthogonal to fitted values: with the mean :math:`c_k` of all samples and
the loss W within groups, the first sum is

.. math::  W + \sum_t \sum_k \sum_g w_g (\bar y_{gk} - c_k) (\bar y_{gk} z_{gt} - f_{gtk}) \qquad (4),

every term of the sums over t and k being at least 0 (5). All is linear.

*Labels.* :math:`c_{jt}` is 1 where leaf t predicts label j, one label of each target. With
:math:`s_{gj}` what the samples of group g are charged less where label j is predicted for its target k than where the
worst label is, :math:`M` the charges of all at the worst labels, and :math:`q_{gjt}` the share of a group that gets
this,

.. math::

    & \sum_{j \in k} c_{jt} = 1 && t,\; k && (6) \\
    & q_{gjt} \le c_{jt}, \qquad 0 \le q_{gjt} \le z_{gt} && g,\; j,\; t: s_{gj} > 0 && (7) \\
    & M - \sum_{g, j} s_{gj} \sum_t q_{gjt} \ge 0 && && (8)

and the first sum is the left side of (8). For binary splits and labels, z and q are whole without being asked to.

*The root.* As for ``ort``: one valid row bounds the objective by what a search of limited length proves for the
threshold at the root, and its tree is the start, in the variant ``tight``; ``valid`` has neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from formulations.leaves import ClassTreeExpressions
from formulations.ort import ConstantLeaves, Ort, OrtInstance, grouped, range_of_means
from formulations.splits.univariate import check_leaf_size, leaves_of
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.heuristics.cart import cart
from mipforest.model import LinearExpr, Model, Values
from mipforest.objectives.leaf_losses import LabelsLoss, LeafLoss, SquaredLoss
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.parameters import ParameterError, TargetWeights, parameter
from mipforest.problem.structure import LabelSums
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class Multi(Ort):
    """Tree with univariate splits whose leaves predict several targets.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the loss of the best constant.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    target_weights
        ``"variance"``, ``"equal"``, or a number above 0 for each target.
    """

    name = "multi"
    summary = "univariate splits whose leaves predict several targets at once, numbers or labels"
    source = "Blockeel et al. 1998; rows of Dunn 2018, chapters 2 and 4"
    task = "multi-output"
    variants: ClassVar[tuple[str, ...]] = ("tight", "valid")

    loss: str = field(default="squared", init=False, repr=False)
    target_weights: Any = parameter(
        "variance", "weight of each target: 1 / variance, 1, or numbers", kind=TargetWeights()
    )

    # ------------------------------------------------------------------ what is known of the data

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if not data.targets:
            raise DataError(
                f"{self.name} predicts several targets, and {data.name} has one ({data.target})",
                hint="make the data of y with a column for each target, or use ort or oct",
                option="name the columns with --targets, or use --model ort or oct",
            )
        self.require_unit_box(data)
        check_leaf_size(data, self.N_min)
        weights_of_targets(self.target_weights, data)
        if (data.y.min(axis=0) == data.y.max(axis=0)).all():
            raise DataError(f"no target of {data.name} varies in its {data.n} rows: nothing to predict")

    def for_scaled_targets(self) -> Self:
        numbers = isinstance(self.target_weights, tuple)
        return replace(self, target_weights="equal") if numbers else self

    def leaf_loss(self, data: Dataset) -> LeafLoss:
        if data.target_classes:
            return LabelsLoss(weights_of_targets(self.target_weights, data))
        return SquaredLoss()

    def _leaves(self, data: Dataset) -> VectorLeaves:
        return VectorLeaves(data, self.leaf_loss(data), weights_of_targets(self.target_weights, data))

    def _cart(self, instance: OrtInstance, seed: int) -> Tree:
        scaled, own = replace(instance.data, y=instance.leaves.y), instance.topology
        return cart(scaled, own, min_leaf=self.N_min, seed=seed, budget=instance.budget)

    # ------------------------------------------------------------------ the model

    def _declare_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        if isinstance(instance.leaves.loss, LabelsLoss):
            return self._declare_labels(m, instance)
        data, z, leaves = instance.data, m["z"], instance.topology.leaves
        weight, mean, within = self._groups(instance)
        each = [range_of_means(of[instance.routing.group], data.weights, self.N_min) for of in mean.T]
        low, high = np.array(each).T
        mu = m.continuous(
            "beta0", (leaves, list(data.targets)), lower=low, upper=high, meaning="prediction of a leaf"
        )
        f = m.nonnegative(
            "f",
            (len(weight), leaves, list(data.targets)),
            upper=high,
            meaning="prediction for a group in a leaf",
        )
        here, away = z[:, :, None], 1 - z[:, :, None]
        m.add("fitted_on_below", f >= low * here)  # (1)
        m.add("fitted_on_above", f <= high * here)  # (1)
        m.add("fitted_below", f >= mu - high * away)  # (2)
        m.add("fitted_above", f <= mu - low * away)  # (2)
        m.add("mean", (weight[:, None, None] * f).sum(axis=0) == z.T @ (weight[:, None] * mean))  # (3)
        return within + self._leaf_losses(m, instance).sum()  # (4)

    def _leaf_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        """Return the (|L|, T) squared loss of each leaf and target beyond that within groups: the terms of (4)."""
        weight, mean, _ = self._groups(instance)
        away = weight[:, None] * (mean - np.average(instance.leaves.y, axis=0, weights=instance.data.weights))
        losses: LinearExpr = m["z"].T @ (away * mean) - (away[:, None, :] * m["f"]).sum(axis=0)
        return losses

    def _declare_labels(self, m: Model, instance: OrtInstance) -> LinearExpr:
        z, leaves, labels = m["z"], instance.topology.leaves, instance.data.target_classes
        target, saved, most = self._savings(instance)
        group, label = np.nonzero(saved)
        c = m.binary(
            "c",
            (list(instance.data.label_names), leaves),
            meaning="1 for the label of a target that a leaf predicts",
        )
        q = m.nonnegative(
            "q",
            (len(group), leaves),
            upper=1,
            meaning="share of a group that reaches a leaf and gets a label there",
        )
        of_target = (np.arange(len(labels))[:, None] == target).astype(float)
        m.add("one_label", of_target @ c == 1)  # (6)
        m.add("predicted", q <= c[label])  # (7)
        m.add("reached", q <= z[group])  # (7)
        losses: LinearExpr = most - saved[group, label] @ q.sum(axis=1)
        m.add("errors", losses >= 0)  # (8)
        return losses

    def _groups(self, instance: OrtInstance) -> tuple[FloatArray, FloatArray, float]:
        """Return weights (g,) and mean targets (g, T) of groups, and the squared loss within all of them."""
        y, each, group = instance.leaves.y, instance.data.weights, instance.routing.group
        found = [grouped(of, each, group) for of in y.T]
        return found[0][0], np.column_stack([mean for _, mean, _ in found]), sum(lost for *_, lost in found)

    def _savings(self, instance: OrtInstance) -> tuple[IntArray, FloatArray, float]:
        """Return the target of each label, (g, J) what labels save in groups, and the charges at the worst labels."""
        data, group = instance.data, instance.routing.group
        target = np.repeat(np.arange(len(data.targets)), [len(of) for of in data.target_classes])
        charged = np.zeros((int(group.max()) + 1, len(target)))
        for k, weight in enumerate(weights_of_targets(self.target_weights, data)):
            own = np.flatnonzero(target == k)
            wrong = np.asarray(data.y[:, [k]] != np.arange(len(own)))
            np.add.at(charged, (group[:, None], own), weight * data.weights[:, None] * wrong)
        first = np.searchsorted(target, np.arange(len(data.targets)))
        worst = np.maximum.reduceat(charged, first, axis=1)
        return target, worst[:, target] - charged, float(worst.sum())

    # ------------------------------------------------------------------ what constraints read

    def expressions(self, m: Model, instance: OrtInstance) -> TreeExpressions:
        if not instance.data.target_classes:
            return super().expressions(m, instance)
        return ClassTreeExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    def label_sums(self, m: Model, instance: OrtInstance, built: BuiltModel) -> LabelSums | None:
        expressions = self.expressions(m, instance)
        return expressions.label_sums(built) if isinstance(expressions, ClassTreeExpressions) else None

    # ------------------------------------------------------------------ trees

    def encode(self, tree: Tree, instance: OrtInstance) -> dict[str, FloatArray]:
        splits, predicted = instance.routing.encode(tree), instance.leaves.constants(tree)
        z = leaves_of(tree, instance.routing.rows)
        if not isinstance(instance.leaves.loss, LabelsLoss):
            return {**splits, "beta0": predicted, "f": z[:, :, None] * predicted}
        target, saved, _ = self._savings(instance)
        group, label = np.nonzero(saved)
        first = np.searchsorted(target, target)
        c = (predicted.T[target] == (np.arange(len(target)) - first)[:, None]).astype(float)
        return {**splits, "c": c, "q": z[group] * c[label]}

    def decode(self, values: Values, instance: OrtInstance) -> Tree:
        fitted = self.relabel(instance.routing.decode(values), instance)
        holds = leaves_of(fitted, instance.data.X).sum(axis=0) > 0
        if isinstance(instance.leaves.loss, LabelsLoss):
            target = self._savings(instance)[0]
            of_target = np.split(np.asarray(values["c"]), np.flatnonzero(np.diff(target)) + 1)
            # Rows may ask for the labels of empty leaves, too.
            return replace(
                fitted, leaf_value=np.column_stack([c.argmax(axis=0) for c in of_target]).astype(float)
            )
        # What an empty leaf predicts counts for nothing: it takes what suits its ancestors.
        own = instance.leaves.unscaled(values["beta0"])
        return replace(fitted, leaf_value=np.where(holds[:, None], own, fitted.leaf_value))

    def evaluate(self, tree: Tree, instance: OrtInstance) -> float:
        size = leaves_of(tree, instance.data.X).sum(axis=0)
        if ((size > 0) & (size < self.N_min)).any():
            return float("inf")
        return instance.leaves.relative_loss(tree) + self.alpha * tree.n_splits


@dataclass(frozen=True, eq=False)
class VectorLeaves(ConstantLeaves):
    """Leaves that predict a constant for each of several targets.

    Attributes
    ----------
    weights
        (T,) weights of the targets.
    """

    weights: FloatArray

    @cached_property
    def least(self) -> Any:
        """(T,) what is 0 of each scaled target: its least value, or 0 of labels."""
        if self.data.target_classes:
            return np.zeros(len(self.weights))
        return self.data.y.min(axis=0)

    @cached_property
    def spread(self) -> Any:
        """(T,) what is 1 of each scaled target, above :attr:`least`; 1 of labels."""
        if self.data.target_classes:
            return np.ones(len(self.weights))
        ranges = np.sqrt(self.weights) * np.ptp(self.data.y, axis=0)
        return ranges.max() / np.sqrt(self.weights)


def weights_of_targets(asked: str | tuple[float, ...], data: Dataset) -> FloatArray:
    """Return the (T,) weight of each target.

    Parameters
    ----------
    asked
        ``"variance"``, ``"equal"``, or T numbers.
    data
        Training samples with several targets; a target that does not vary has the weight 1.

    Raises
    ------
    ParameterError
        If there is not one number for each target.
    """
    T = len(data.targets)
    if isinstance(asked, tuple):
        if len(asked) != T:
            raise ParameterError(
                f"parameter target_weights has {len(asked)} numbers, and {data.name} has {T} targets "
                f"({', '.join(data.targets)}); give one for each"
            )
        return np.array(asked)
    if asked == "equal" or data.target_classes:
        return np.ones(T)
    away = data.y - np.average(data.y, axis=0, weights=data.weights)
    varies = data.y.min(axis=0) < data.y.max(axis=0)
    variance = np.average(away**2, axis=0, weights=data.weights)
    return np.divide(1.0, variance, out=np.ones(T), where=varies & (variance > 0))
