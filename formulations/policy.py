r"""Policy trees: trees whose leaves decide, for rewards that are known or estimated.

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

**Univariate splits** (``policy``): splits, assignment and labels are those of :mod:`formulations.oct`, whose charges of
a label, there :math:`w_i \kappa_{y_i k}`, are the :math:`r_{ik}` of (1); W takes the place of :math:`\hat L`. All
variants, the bounds by the root's thresholds and all rows hold as they stand there: of the charges they use only that
they are at least 0. :math:`N_{min}` counts samples.

**Two decisions** are two classes: with :math:`y_i` the better one and the weight :math:`r_{i, 1 - y_i}`, (1) is a
weighted number of errors, and exact searches run as fast as for these. More decisions are a table, one column each.

**Hyperplane splits** (``policy-h``): splits and the assignment z of samples to leaves are those of
:mod:`formulations.splits.hyperplane`; :math:`\alpha` is the cost of a feature in a split, as in OCT-H. With
:math:`q_{ikt}` the share of sample i that reaches leaf t where decision k is made, and
:math:`g_{ik} = \max_j r_{ij} - r_{ik}` what this saves against the worst decision of the sample,

.. math::

    \min\; & \frac{1}{W} \sum_i \Bigl(\max_j r_{ij} - \sum_{k,t} g_{ik} q_{ikt}\Bigr)
        + \alpha \sum_{t \in B} \sum_j s_{jt} && (2) \\
    & \sum_k c_{kt} = 1, \quad c_{kt} \in \{0, 1\} && t \in L \quad (2.18) \\
    & 0 \le q_{ikt} \le c_{kt} && i,\; t \in L,\; k: g_{ik} > 0 \quad (3) \\
    & \sum_k q_{ikt} \le z_{it} && i,\; t \in L \quad (4)

For binary z and c each sample puts its share on the decision of its leaf, so that q needs no integrality. There is no
big-M of rewards, and no row wants the best decision of a leaf: limits on decisions may want another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from formulations.leaves import ClassTreeInstance, LabelledTree
from formulations.oct import UnivariateLabels
from formulations.oct_h import HyperplaneLabels
from mipforest.arrays import FloatArray
from mipforest.data import DataError, Dataset
from mipforest.model import Model
from mipforest.objectives.leaf_losses import TableLoss
from mipforest.problem.parameters import parameter
from mipforest.trees import Topology, Tree


@dataclass(frozen=True, kw_only=True)
class Decides(LabelledTree):
    """Trees whose labels are decisions, charged by the rewards that they forgo."""

    task = "decision"

    def leaf_loss(self, data: Dataset) -> TableLoss:
        """Return what decisions lose, in units of :func:`scale_of`: tolerances of solvers are absolute."""
        return TableLoss(_forgone(data) / scale_of(regrets(data)))

    def unit(self, data: Dataset) -> float:
        return float(data.weights.sum()) / scale_of(regrets(data))

    def labelled(self, data: Dataset) -> Dataset:
        """Return samples whose class is their best decision, and whose weight what the others lose on average."""
        every = regrets(data)
        lost = every.mean(axis=1) / scale_of(every)
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


@dataclass(frozen=True, kw_only=True)
class Policy(Decides, UnivariateLabels):
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

    alpha: float = parameter(0.0, "cost of a split, in units of the mean reward", at_least=0)


@dataclass(frozen=True, kw_only=True)
class PolicyH(Decides, HyperplaneLabels):
    """Policy tree: hyperplane splits, a decision in each leaf, the highest mean reward.

    Parameters
    ----------
    alpha
        Cost of a feature in a split, in units of the mean reward.
    N_min
        Least number of samples in a leaf that holds any, whatever they weigh.
    mu
        Margin that stands for the strict inequality to the left.
    max_features
        Most features in a split; 0 for any number. With 2, every split is a line in a plane of two features.
    """

    name = "policy-h"
    summary = "hyperplane splits whose leaves decide, for the highest mean reward, any number of decisions"
    source = "Athey and Wager 2021; splits of Dunn 2018, chapter 3"

    alpha: float = parameter(0.0, "cost of a feature in a split, in units of the mean reward", at_least=0)

    def declare(self, m: Model, instance: ClassTreeInstance) -> None:
        data, leaves, gains = instance.data, instance.topology.leaves, saved(instance)
        sample, decision = np.nonzero(gains)
        of_sample = sparse.csr_array(
            (np.ones(len(sample)), (np.arange(len(sample)), sample)), (len(sample), data.n)
        )

        features = instance.routing.declare(m)  # (2.5) - (2.8), (3.1), (3.2)
        c = m.binary("c", (list(data.classes), leaves), meaning="1 for the decision of a leaf")
        q = m.nonnegative(
            "q",
            (len(sample), leaves),
            upper=1,
            meaning="share of a sample that reaches a leaf where it gets a decision",
        )
        lost = instance.charges.max(axis=1).sum() - gains[sample, decision] @ q.sum(axis=1)
        m.minimize(lost / instance.baseline + self.alpha * features)  # (2)
        m.add("one_decision", c.sum(axis=0) == 1, over=leaves)  # (2.18)
        m.add("decided", q <= c[decision])  # (3)
        m.add("reached", q.T @ of_sample <= m["z"].T, over=(leaves, data.samples))  # (4)

    def encode(self, tree: Tree, instance: ClassTreeInstance) -> dict[str, FloatArray]:
        splits, gains = instance.routing.encode(tree), saved(instance)
        c = np.eye(gains.shape[1])[tree.leaf_value].T
        sample, decision = np.nonzero(gains)
        return {"c": c, "q": splits["z"][sample] * c[decision], **splits}


def saved(instance: ClassTreeInstance) -> FloatArray:
    """Return what each decision saves against the worst one of each sample, by weight: (n, K), at least 0."""
    charges = instance.charges
    gains: FloatArray = charges.max(axis=1, keepdims=True) - charges
    return gains


def regrets(data: Dataset) -> FloatArray:
    """Return what each decision loses against the best one of each sample, by weight: (n, K), at least 0, see (1).

    Raises
    ------
    DataError
        If rewards are so far apart that their differences are no numbers.
    """
    with np.errstate(over="ignore"):
        lost: FloatArray = data.weights[:, None] * _forgone(data)
        whole = float(lost.sum())
    if not np.isfinite(whole):
        assert data.rewards is not None
        raise DataError(
            f"the rewards of {data.name} reach from {data.rewards.min():g} to {data.rewards.max():g}, whose "
            "differences do not sum up to a number; divide them by a constant"
        )
    return lost


def _forgone(data: Dataset) -> FloatArray:
    """Return what each decision loses against the best one of each sample, whatever it weighs: (n, K), at least 0."""
    assert data.rewards is not None
    return np.asarray(data.rewards.max(axis=1, keepdims=True) - data.rewards)


def scale_of(lost: FloatArray) -> float:
    """Return the power of 2 next to the largest loss of (n, K): a quotient by it keeps all digits."""
    return float(2.0 ** np.round(np.log2(lost.max()))) if lost.any() else 1.0
