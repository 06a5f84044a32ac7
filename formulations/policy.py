r"""Policy trees: trees of univariate splits whose leaves decide, for rewards that are known or estimated.

Sample i is worth :math:`\Gamma_{ik}` (its *reward*, of any sign) under decision k: doubly robust, inverse-probability
or direct scores of an experiment (:func:`mipforest.reward_scores`), or what a decision earns by one's own books. With
weights :math:`w_i` of sum W and l(i) the leaf of sample i, a tree with the decisions :math:`k_l` has the value

.. math::

    \frac{1}{W} \sum_i w_i \Gamma_{i, k_{l(i)}} - \alpha C, \quad C \text{ the number of splits},

which is to be as large as possible (Athey and Wager, *Policy Learning with Observational Data*, Econometrica 2021;
Sverdrup et al., *policytree*, JOSS 2020, without :math:`\alpha`). The objective of the model is what is lost against
the best decision of each sample by itself, a number that is at least 0 whatever the signs of rewards are:

.. math::

    \min\; \frac{1}{W} \sum_i r_{i, k_{l(i)}} + \alpha C, \qquad r_{ik} = w_i (\max_j \Gamma_{ij} - \Gamma_{ik})
    \quad (1)

so that the value of a tree is :math:`\frac{1}{W} \sum_i w_i \max_j \Gamma_{ij}` less its objective.

**The model.** Splits, assignment and labels are those of :mod:`formulations.oct`, whose charges of a label, there
:math:`w_i \kappa_{y_i k}`, are the :math:`r_{ik}` of (1); W takes the place of :math:`\hat L`. Both variants, the
bounds by the root's thresholds and all rows hold as they stand there: of the charges they use only that they are at
least 0. :math:`N_{min}` counts samples.

**Two decisions** are two classes: with :math:`y_i` the better one and the weight :math:`r_{i, 1 - y_i}`, (1) is a
weighted number of errors, and exact searches run as fast as for these. More decisions are a table, one column each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.oct import LabelledTree, OctInstance
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology


@dataclass(frozen=True, kw_only=True)
class Policy(LabelledTree):
    """Policy tree: univariate splits, a decision in each leaf, the highest mean reward.

    Parameters
    ----------
    alpha
        Cost of a split, in units of the mean reward.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    """

    name = "policy"
    summary = "univariate splits whose leaves decide, for the highest mean reward, any number of decisions"
    source = "Athey and Wager 2021; Sverdrup et al. 2020"
    task = "decision"

    alpha: float = parameter(0.0, "cost of a split, in units of the mean reward", at_least=0)

    def charges(self, data: Dataset) -> FloatArray:
        return regrets(data)

    def unit(self, data: Dataset) -> float:
        return float(data.weights.sum())

    def losses(self, instance: OctInstance) -> dict[str, Any]:
        return {"table": instance.charges}

    def labelled(self, data: Dataset) -> Dataset:
        """Return samples whose class is their best decision, and whose weight what the others lose on average."""
        lost = self.charges(data).mean(axis=1)
        least = float(lost.max()) * np.finfo(np.float64).eps  # a weight is above 0
        return replace(data, task="classification", weights=np.maximum(lost, least), rewards=None)

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if data.rewards is None:
            raise DataError(
                f"{self.name} takes rewards of decisions, and {data.name} has a target ({data.target})",
                hint="give rewards=, or estimate them of treatments and outcomes with mipforest.reward_scores",
                option="name their columns with --rewards, or estimate them: --treatment, --outcome and --scores",
            )
        if not regrets(data).any():
            raise DataError(
                f"all decisions are worth the same for every sample of {data.name}: there is nothing to decide"
            )
        super().check_data(data, topology)


def regrets(data: Dataset) -> FloatArray:
    """Return what each decision loses against the best one of each sample, by weight: (n, K), at least 0, see (1).

    Raises
    ------
    DataError
        If rewards are so far apart that their differences are no numbers.
    """
    assert data.rewards is not None
    with np.errstate(over="ignore"):
        lost: FloatArray = data.weights[:, None] * (data.rewards.max(axis=1, keepdims=True) - data.rewards)
        whole = float(lost.sum())
    if not np.isfinite(whole):
        raise DataError(
            f"the rewards of {data.name} reach from {data.rewards.min():g} to {data.rewards.max():g}, whose "
            "differences do not sum up to a number; divide them by a constant"
        )
    return lost
