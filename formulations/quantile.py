r"""Quantile trees: univariate splits, and leaves that predict a quantile.

With the level :math:`0 < \tau < 1`, a prediction f for a target y is charged the pinball loss

.. math::  \rho_\tau(y - f) = \max \{\tau (y - f),\; (1 - \tau) (f - y)\},

so that the best constant of a leaf is the :math:`\tau` quantile of its targets (Koenker and Bassett, *Regression
Quantiles*, Econometrica 46, 1978). The tree minimises

.. math::  \frac{1}{\hat L} \sum_i w_i \rho_\tau(y_i - f_i) + \alpha C

with :math:`\hat L` the loss of the best constant, and C the number of splits. At :math:`\tau = 1/2` this is ``ort``
with the absolute loss.

Splits, assignment and rows are those of :mod:`formulations.ort`, with :math:`2 \rho_\tau` in the place of the absolute
error in (j) to (l), and with quantiles in the place of medians in the bounds on leaf values: those of the
:math:`N_{\min}` least and of the :math:`N_{\min}` greatest targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from formulations.ort import Ort
from mipforest.data import Dataset
from mipforest.objectives.leaf_losses import PinballLoss
from mipforest.problem.parameters import parameter


@dataclass(frozen=True, kw_only=True)
class Quantile(Ort):
    """Regression tree with univariate splits whose leaves predict a quantile.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the loss of the best constant.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    tau
        Level of the quantile: 0.9 for a number that nine of ten targets are below.
    """

    name = "quantile"
    summary = "univariate splits whose leaves predict a quantile, for the least pinball loss"
    source = "Koenker and Bassett 1978; rows of Dunn 2018, chapter 4"

    loss: str = field(default="absolute", init=False, repr=False)
    tau: float = parameter(0.5, "level of the quantile", above=0, below=1)

    def leaf_loss(self, data: Dataset) -> PinballLoss:
        return PinballLoss(self.tau)
