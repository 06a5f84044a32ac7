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

**Rows.** Splits, and the assignment :math:`z_{gt}` of groups g of samples with equal features to leaves, are those of
:mod:`formulations.ort`, by thresholds.

*Numbers.* Targets are scaled by :math:`y_k \leftarrow \sqrt{v_k} (y_k - \min y_k) / r`, with r the greatest range that
this leaves, so that every :math:`v_k` is 1 then. Rows (e) to (i) of :mod:`formulations.ort` hold for each target; (h)
is a sum over the targets. All is linear.

*Labels.* :math:`c_{jt}` is 1 where leaf t predicts label j, one label of each target. With
:math:`s_{gj}` what the samples of group g are charged less where label j is predicted for its target k than where the
worst label is, :math:`M` the charges of all at the worst labels, and :math:`q_{gjt}` the share of a group that gets
this,

.. math::

    & \sum_{j \in k} c_{jt} = 1 && t,\; k && (1) \\
    & q_{gjt} \le c_{jt}, \qquad 0 \le q_{gjt} \le z_{gt} && g,\; j,\; t: s_{gj} > 0 && (2) \\
    & M - \sum_{g, j} s_{gj} \sum_t q_{gjt} \ge 0 && && (3)

and the first sum is the left side of (3). For binary splits and labels, z and q are whole without being asked to.

*The root.* As for ``ort``: one valid row bounds the objective by what a search of limited length proves for the
threshold at the root, and its tree is the start, in the variant ``tight``; ``valid`` has neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from formulations.leaves import ClassTreeExpressions
from formulations.ort import ConstantLeaves, Ort, OrtInstance
from formulations.splits.univariate import check_leaf_size, leaves_of
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Dataset
from mipforest.heuristics.cart import cart
from mipforest.model import LinearExpr, Model, Values
from mipforest.objectives.leaf_losses import LabelsLoss, LeafLoss, SquaredLoss
from mipforest.problem.expressions import TreeExpressions
from mipforest.problem.model_changes import BuiltModel
from mipforest.problem.parameters import TargetWeights, parameter
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
        TargetWeights.of(self.target_weights, data)
        if (data.y.min(axis=0) == data.y.max(axis=0)).all():
            raise DataError(f"no target of {data.name} varies in its {data.n} rows: nothing to predict")

    def for_scaled_targets(self) -> Self:
        numbers = isinstance(self.target_weights, tuple)
        return replace(self, target_weights="equal") if numbers else self

    def leaf_loss(self, data: Dataset) -> LeafLoss:
        if data.target_classes:
            return LabelsLoss(TargetWeights.of(self.target_weights, data))
        return SquaredLoss()

    def _leaves(self, data: Dataset) -> ConstantLeaves:
        weights = TargetWeights.of(self.target_weights, data)
        return ConstantLeaves(data, self.leaf_loss(data), weights=weights)

    def _cart(self, instance: OrtInstance, seed: int) -> Tree:
        scaled, own = replace(instance.data, y=instance.leaves.y), instance.topology
        return cart(scaled, own, min_leaf=self.N_min, seed=seed, budget=instance.budget)

    # ------------------------------------------------------------------ the model

    def _declare_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        if not isinstance(instance.leaves.loss, LabelsLoss):
            return super()._declare_losses(m, instance)
        z, leaves = m["z"], instance.topology.leaves
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
        of_target = (np.unique(target)[:, None] == target).astype(float)
        m.add("one_label", of_target @ c == 1)  # (1)
        m.add("predicted", q <= c[label])  # (2)
        m.add("reached", q <= z[group])  # (2)
        losses: LinearExpr = most - saved[group, label] @ q.sum(axis=1)
        m.add("errors", losses >= 0)  # (3)
        return losses

    def _savings(self, instance: OrtInstance) -> tuple[IntArray, FloatArray, float]:
        """Return the target of each label, (g, J) what labels save in groups, and the charges at the worst labels."""
        data, group = instance.data, instance.routing.group
        sizes = list(map(len, data.target_classes))
        target, first = np.repeat(np.arange(len(sizes)), sizes), np.cumsum([0, *sizes[:-1]])
        weight = TargetWeights.of(self.target_weights, data)[target] * data.weights[:, None]
        charged = np.zeros((int(group.max()) + 1, len(target)))
        np.add.at(charged, group, weight * ~data.label_indicators(data.y))
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
        if not isinstance(instance.leaves.loss, LabelsLoss):
            return super().encode(tree, instance)
        z, saved = leaves_of(tree, instance.routing.rows), self._savings(instance)[1]
        group, label = np.nonzero(saved)
        c = instance.data.label_indicators(tree.leaf_value).T.astype(float)
        return {**instance.routing.encode(tree), "c": c, "q": z[group] * c[label]}

    def decode(self, values: Values, instance: OrtInstance) -> Tree:
        if not isinstance(instance.leaves.loss, LabelsLoss):
            return super().decode(values, instance)
        fitted, c = self.relabel(instance.routing.decode(values), instance), np.asarray(values["c"])
        of_targets = np.split(c, np.cumsum(list(map(len, instance.data.target_classes)))[:-1])
        return replace(
            fitted, leaf_value=np.column_stack([own.argmax(axis=0) for own in of_targets]).astype(float)
        )
