r"""Poisson trees: univariate splits, and leaves that predict the rate of a count per unit of exposure.

Sample i has a count :math:`k_i` in an exposure :math:`e_i` (claims in years of insurance, cases in persons). Its
target is the rate :math:`y_i = k_i / e_i`, and its weight the exposure :math:`w_i = e_i`, as for scikit-learn's Poisson
models. A leaf predicts a rate f; counts of mean :math:`e_i f` have half the deviance

.. math::  w_i \, \ell(f, y_i), \qquad \ell(f, y) = y \ln (y / f) - y + f \ge 0,

which is least at the rate of the leaf, :math:`\sum w_i y_i / \sum w_i` (Breiman, Friedman, Olshen and Stone 1984;
Therneau and Atkinson, *rpart*). With the units of rates :math:`\bar y = 1`, the tree minimises

.. math::  \frac{1}{\hat L} \sum_i w_i \, \ell(f_i, y_i) + \alpha C

with :math:`\hat L` the loss of the best constant, and C the number of splits.

**Rows.** Splits, assignment and leaf values are those of :mod:`formulations.ort`: with groups g of samples of equal
features, of weight :math:`w_g` and mean target :math:`\bar y_g`, rows (e) to (g) make each leaf value
:math:`v_t` the mean of its samples, and :math:`f_{gt} = v_t z_{gt}`. Then :math:`\sum_i w_i (f_i - y_i) = 0` over each
leaf, and what is left of the loss is

.. math::

    \sum_i w_i y_i \ln y_i - \sum_{g:\, s_g > 0} s_g\, l_g, \qquad s_g = w_g \bar y_g, \qquad l_g = \ln \sum_t f_{gt}
    \quad (1).

The logarithm is concave, so that its tangents lie above it: with points
:math:`\tau_1 < \dots < \tau_K` a constant factor apart,

.. math::  l_g \le \ln \tau_k + \frac{1}{\tau_k} \Bigl(\sum_t f_{gt} - \tau_k\Bigr) \qquad k = 1, \dots, K \quad (2),

from the least rate that a leaf with counts can have, :math:`\min s_g / \sum_g w_g`, to the greatest. The optimum of
these rows is a lower bound: below the loss by at most :math:`\sum_g s_g` times :math:`u^2 / 8`, with
:math:`u = \ln (\tau_{k+1} / \tau_k)`. The exact search has the loss itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import special

from formulations.ort import Ort, OrtInstance, grouped
from formulations.splits.univariate import leaves_of
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.model import LinearExpr, Model
from mipforest.objectives.leaf_losses import PoissonLoss
from mipforest.problem.operations import Fitted
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree

#: Least range of the target, as a share of its greatest value: rows are written in differences of logarithms.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True, kw_only=True)
class Poisson(Ort):
    """Regression tree with univariate splits whose leaves predict a rate.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the deviance of the best constant.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    tangents
        Tangents of the logarithm in the rows, at least 2.
    """

    name = "poisson"
    summary = "univariate splits whose leaves predict the rate of a count, for the least Poisson deviance"
    source = "Breiman et al. 1984; rows of Dunn 2018, chapter 4"
    variants: ClassVar[tuple[str, ...]] = ("tight", "valid")
    tunes_by: ClassVar[str | None] = "deviance_explained"
    slack: ClassVar[str] = "the model's tangents"
    slack_closed_by: ClassVar[str] = "solver exact-search, or more tangents"

    loss: str = field(default="deviance", init=False, repr=False)
    tangents: int = parameter(32, "tangents of the logarithm in the rows", at_least=2)

    def leaf_loss(self, data: Dataset) -> PoissonLoss:
        return PoissonLoss()

    def check_data(self, data: Dataset, topology: Topology) -> None:
        super().check_data(data, topology)
        if data.y.min() < 0:
            raise DataError(
                f"{self.name} predicts rates, and the target of {data.name} is {data.y.min():g} in some row",
                hint="give counts per unit of exposure, at least 0, with the exposure as weight, or use ort",
            )
        if np.ptp(data.y) < LEAST_SPREAD * data.y.max():
            raise DataError(
                f"the target of {data.name} is from {data.y.min():g} to {data.y.max():g}: of rates that differ by less "
                f"than {LEAST_SPREAD:g} of themselves the deviance is the squared error, up to rounding; use ort"
            )

    def measures(self, tree: Fitted, data: Dataset, instance: OrtInstance) -> dict[str, Any]:
        y, predicted = (np.asarray(one, dtype=np.float64) for one in (data.y, tree.predict(data.X_raw)))
        return {"deviance_explained": instance.leaves.loss.explained(predicted, y, data.weights)}

    def _declare_losses(self, m: Model, instance: OrtInstance) -> LinearExpr:
        """Write rows (e) to (g) and (2); return the loss of the tree, (1)."""
        self._declare_means(m, instance)
        y, each = instance.leaves.y, instance.data.weights
        weight, mean, _ = grouped(y, each, instance.routing.group)
        some, counts = np.flatnonzero(mean > 0), (weight * mean)[mean > 0]
        points = np.geomspace(counts.min() / weight.sum(), y.max(), self.tangents)
        log = m.continuous(
            "log_f",
            len(some),
            lower=np.log(points[0]),
            upper=np.log(points[-1]),
            meaning="logarithm of a rate",
        )
        rate = m["f"][some].sum(axis=1)
        for k, point in enumerate(points.tolist()):
            # Of small rates the row is multiplied by the point: no coefficient is large.
            size = min(1.0, point)
            m.add(f"tangent_{k}", size * log <= size * (np.log(point) - 1.0) + (size / point) * rate)  # (2)
        known = float(each @ special.xlogy(y, y))
        losses: LinearExpr = known - counts @ log
        return losses

    def encode(self, tree: Tree, instance: OrtInstance) -> dict[str, FloatArray]:
        _, mean, _ = grouped(instance.leaves.y, instance.data.weights, instance.routing.group)
        found = super().encode(tree, instance)
        rate = (leaves_of(tree, instance.routing.rows) @ found["beta0"])[mean > 0]
        return {**found, "log_f": np.log(rate)}
