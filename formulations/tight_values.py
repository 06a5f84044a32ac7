r"""Constant leaves without a big-M in the loss, for routing by cuts: the `tight` variant of ORT.

Notation: groups g of samples with equal features, their sizes :math:`n_g` and mean targets :math:`\bar y_g`;
the target scaled to [0, 1]; leaf values :math:`v_t` (block ``beta0``).

**Leaf values are bounded.** Some best value of a leaf is the mean of its samples (squared loss), or their
lower median (absolute loss). A leaf holds at least :math:`N_{min}` samples, so with :math:`y_{(1)} \le
y_{(2)} \le \dots`:

- the mean is at least that of the :math:`N_{min}` least targets and at most that of the greatest ones. As
  leaves hold whole groups, every sample's target may first be replaced by the mean of its group;
- the lower median of m samples is the :math:`\lceil m/2 \rceil`-th least of them, so at least
  :math:`y_{(\lceil N_{min}/2 \rceil)}`; and the :math:`(\lfloor m/2 \rfloor + 1)`-th greatest of them, so at
  most the :math:`(\lfloor N_{min}/2 \rfloor + 1)`-th greatest of all.

**Squared loss is linear.** Let :math:`f_{gt} = v_t z_{gt}`: linear rows say so exactly for binary z,

.. math::

    \underline v z_{gt} \le f_{gt} \le \overline v z_{gt}, \qquad
    v_t - \overline v (1 - z_{gt}) \le f_{gt} \le v_t - \underline v (1 - z_{gt}).

The mean as leaf value, :math:`\sum_g n_g f_{gt} = \sum_g n_g \bar y_g z_{gt}`, makes residuals orthogonal to
fitted values in every leaf; with the mean c of all targets and the loss W within groups

.. math::  \sum_i (y_i - f_i)^2 = W + \sum_t \sum_g n_g (\bar y_g - c) (\bar y_g z_{gt} - f_{gt}),

every term of the sum over t being at least 0. The model is a MILP: no tangents, and the row on the root
(:mod:`formulations.root_row`) can bound its loss.

**Absolute loss**: for every group and distinct target y in it, counted once with its multiplicity,

.. math::

    L \ge y - v_t - (y - \underline v) (1 - z_{gt}), \qquad L \ge v_t - y - (\overline v - y) (1 - z_{gt}), \qquad
    L \ge \max \{0, \underline v - y, y - \overline v\}.
"""

from __future__ import annotations

import numpy as np

from formulations.class_leaves import leaves_of
from formulations.cuts import Cuts
from formulations.depth_two import DepthTwo, LeafCost
from formulations.routings import Routed
from formulations.value_leaves import ConstantLeaves, TargetScale
from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model
from mipforest.objectives.leaf_losses import AbsoluteLoss, SquaredLoss
from mipforest.trees import Topology, Tree

#: Most operations for the table of root values: about ten seconds. Beyond it (absolute loss of many different
#: targets: from about 300 samples with 10 features) the row on the root is left out.
MOST_WORK = 1e9


class TightMeans(ConstantLeaves):
    """Constant leaves under squared loss: the linear rows above.

    Parameters
    ----------
    n_min
        Least number of samples in a leaf that holds any.
    """

    def __init__(self, n_min: int) -> None:
        super().__init__(SquaredLoss())
        self.n_min = n_min

    def declare(
        self,
        m: Model,
        data: Dataset,
        tree: Topology,
        routed: Routed,
        upper_bound: float,
    ) -> tuple[LinearExpr, float]:
        y = TargetScale.of(data).scaled(data.y)
        weight, mean, within = grouped(y, routed.group)
        low, high = range_of_means(mean[routed.group], self.n_min)
        v = m.continuous("beta0", tree.leaves, lower=low, upper=high)
        f = m.nonnegative("f", (len(weight), tree.leaves), upper=high)
        z = routed.z
        m.add("fitted_on_below", f >= low * z)
        m.add("fitted_on_above", f <= high * z)
        m.add("fitted_below", f >= v - high * (1 - z))
        m.add("fitted_above", f <= v - low * (1 - z))
        m.add("mean", weight @ f == (weight * mean) @ z, over=tree.leaves)
        return within + leaf_losses(m, data, routed.group).sum(), 0.0

    def encode(self, fitted: Tree, data: Dataset, X: FloatArray, group: IntArray) -> dict[str, FloatArray]:
        v = TargetScale.of(data).scaled(fitted.leaf_value)
        return {"beta0": v, "f": leaves_of(fitted, X) * v}


class TightMedians(ConstantLeaves):
    """Constant leaves under absolute loss: the rows above.

    Parameters
    ----------
    n_min
        Least number of samples in a leaf that holds any.
    """

    def __init__(self, n_min: int) -> None:
        super().__init__(AbsoluteLoss())
        self.n_min = n_min

    def declare(
        self,
        m: Model,
        data: Dataset,
        tree: Topology,
        routed: Routed,
        upper_bound: float,
    ) -> tuple[LinearExpr, float]:
        y = TargetScale.of(data).scaled(data.y)
        low, high = range_of_medians(y, self.n_min)
        group, target, count = distinct_targets(y, routed.group)
        v = m.continuous("beta0", tree.leaves, lower=low, upper=high)
        least = np.maximum(0, np.maximum(low - target, target - high))
        L = m.continuous("L", len(target), lower=least)
        away = 1 - routed.z[group]
        above, below = (target - low)[:, None], (high - target)[:, None]
        m.add("loss_above", L[:, None] >= target[:, None] - v - above * away)
        m.add("loss_below", L[:, None] >= v - target[:, None] - below * away)
        return count @ L, 0.0

    def encode(self, fitted: Tree, data: Dataset, X: FloatArray, group: IntArray) -> dict[str, FloatArray]:
        scale = TargetScale.of(data)
        v = scale.scaled(fitted.leaf_value)
        where, target, _ = distinct_targets(scale.scaled(data.y), group)
        return {"beta0": v, "L": np.abs((leaves_of(fitted, X) @ v)[where] - target)}


def leaf_losses(m: Model, data: Dataset, group: IntArray) -> LinearExpr:
    """Give the squared loss of each leaf (|L|,) beyond that within groups, by the blocks ``z`` and ``f``."""
    y = TargetScale.of(data).scaled(data.y)
    weight, mean, _ = grouped(y, group)
    losses: LinearExpr = (weight * (mean - y.mean())) @ (mean[:, None] * m["z"] - m["f"])
    return losses


# ---------------------------------------------------------------------- facts about groups and leaf values


def grouped(y: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Sizes (g,) and mean targets (g,) of the groups, and the squared loss within all of them."""
    weight = np.bincount(group).astype(float)
    mean = np.bincount(group, weights=y) / weight
    return weight, mean, float(((y - mean[group]) ** 2).sum())


def distinct_targets(y: FloatArray, group: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """List groups, targets and multiplicities of the distinct pairs (group, target)."""
    pairs, count = np.unique(np.column_stack([group, y]), axis=0, return_counts=True)
    return pairs[:, 0].astype(np.int64), pairs[:, 1], count.astype(float)


def range_of_means(y: FloatArray, n_min: int) -> tuple[float, float]:
    """Bounds on the mean of at least ``n_min`` of the targets (n,)."""
    ordered = np.sort(y)
    low, high = float(ordered[:n_min].mean()), float(ordered[-n_min:].mean())
    return min(low, high), max(low, high)  # equal means may cross by rounding


def range_of_medians(y: FloatArray, n_min: int) -> tuple[float, float]:
    """Bounds on some median of at least ``n_min`` of the targets (n,): the lower median."""
    ordered = np.sort(y)
    low, high = float(ordered[(n_min + 1) // 2 - 1]), float(ordered[-(n_min // 2 + 1)])
    return min(low, high), high


# ---------------------------------------------------------------------- best trees of depth one and two


def depth_two(data: Dataset, cuts: Cuts, loss: str, alpha: float, n_min: int) -> DepthTwo | None:
    """Best trees of depth at most two, in units of the objective; ``None`` beyond :data:`MOST_WORK`."""
    y = TargetScale.of(data).scaled(data.y)
    statistics, cost = _means(y, cuts) if loss == "squared" else _medians(y, cuts)
    per_feature = len(cuts.X) + np.diff(cuts.first).max(initial=0)
    if 2.0 * len(cuts) * data.p * per_feature * statistics.shape[1] > MOST_WORK:
        return None
    return DepthTwo(cuts, statistics, alpha, n_min, cost)


def _means(y: FloatArray, cuts: Cuts) -> tuple[FloatArray, LeafCost]:
    """Sum up number, target and squared target of the samples of each group; a leaf costs its squared loss."""
    baseline = SquaredLoss().baseline(y)
    centred = y - y.mean()
    sums = [np.bincount(cuts.group, weights=centred**k) for k in (0, 1, 2)]
    statistics: FloatArray = np.column_stack(sums).astype(np.float64)

    def cost(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, total, squares = np.moveaxis(sums, -1, 0)
        return size, np.maximum(0, squares - total**2 / np.maximum(size, 1)) / baseline

    return statistics, cost


def _medians(y: FloatArray, cuts: Cuts) -> tuple[FloatArray, LeafCost]:
    r"""Count the samples of each group with each distinct target; a leaf costs its absolute loss.

    With C_k of N samples at or below the k-th distinct target, the absolute loss around a median is
    :math:`\sum_k (y_{k+1} - y_k) \min \{C_k, N - C_k\}`.
    """
    baseline = AbsoluteLoss().baseline(y)
    values, rank = np.unique(y, return_inverse=True)
    statistics = np.zeros((len(cuts.X), len(values)))
    np.add.at(statistics, (cuts.group, rank), 1.0)
    gaps = np.diff(values)

    def cost(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        below = np.cumsum(sums, axis=-1)
        size = below[..., -1]
        smaller = np.minimum(below[..., :-1], size[..., None] - below[..., :-1])
        return size, smaller @ gaps / baseline

    return statistics, cost
