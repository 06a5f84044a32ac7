r"""Survival trees: univariate splits, and leaves that predict a hazard ratio, from times of which some are censored.

Sample i was followed until the time :math:`t_i`; its event was seen then (:math:`\delta_i = 1`), or it was censored.
All samples have a hazard in proportion to one baseline, whose cumulative :math:`\Lambda_0` is estimated by Nelson and
Aalen on all of them, and leaf t has the hazard ratio :math:`\theta_t`. The log-likelihood of a leaf is least far from
the best of each sample by itself where :math:`\theta_t = \sum w_i \delta_i / \sum w_i \Lambda_0(t_i)`, and what it
lacks is half the deviance of :mod:`formulations.poisson`, with the targets and weights

.. math::  y_i = \delta_i / \Lambda_0(t_i), \qquad e_i = w_i \Lambda_0(t_i)

(LeBlanc and Crowley, *Relative Risk Trees for Censored Survival Data*, Biometrics 48, 1992; solved to optimality by
Huisman, van der Linden and Demirović, *Optimal Survival Trees: A Dynamic Programming Approach*, AAAI 2024). So the tree
minimises

.. math::

    \frac{1}{\hat L} \sum_i w_i \left[ \delta_i \ln \frac{\delta_i}{\theta_{t(i)} \Lambda_0(t_i)}
    - \delta_i + \theta_{t(i)} \Lambda_0(t_i) \right] + \alpha C

with :math:`0 \ln 0 = 0`, :math:`\hat L` the first sum of the tree without a split, whose hazard ratio is 1, and C the
number of splits. All rows are those of :mod:`formulations.poisson`. A sample that was censored before the first event
has no exposure, and says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from formulations.poisson import Poisson
from mipforest.data import DataError, Dataset
from mipforest.trees import Topology


@dataclass(frozen=True, kw_only=True)
class Survival(Poisson):
    """Survival tree with univariate splits whose leaves predict a hazard ratio.

    Parameters
    ----------
    alpha
        Cost of a split, relative to the deviance without a split.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    tangents
        Tangents of the logarithm in the rows, at least 2.
    """

    name = "survival"
    summary = "univariate splits whose leaves predict a hazard ratio, from times of which some are censored"
    source = "LeBlanc and Crowley 1992; Huisman et al. 2024"
    takes_times = True
    tunes_by = "concordance"

    def check_data(self, data: Dataset, topology: Topology) -> None:
        if data.followed is None:
            raise DataError(
                f"{self.name} takes times and whether events were seen, and {data.name} has a target ({data.target})",
                hint="make the data with Dataset.from_arrays(X, time, event=event), or fit a SurvivalTree",
                option="name the column of times with --target and that of events with --event",
            )
        super().check_data(data, topology)
