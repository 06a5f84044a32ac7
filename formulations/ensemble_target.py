"""What a model that mimics a tree ensemble has to know of it: predictions, frequencies, samples that go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.frequent_features import frequency_thresholds, frequent_features
from formulations.sample_groups import proximity_groups, summed
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.ensembles import Ensemble, ensemble_for, level_frequencies, proximity
from mipforest.problem.parameters import PerNode


@dataclass(frozen=True, eq=False, kw_only=True)
class EnsembleTarget:
    """An ensemble's answers for the training samples.

    Attributes
    ----------
    ensemble
        The ensemble.
    sign
        (n,) class that it predicts, -1.0 or +1.0.
    weight
        (n,) its probability of that class, 0 to 1.
    frequency
        (depth, p) frequency of each feature at each level.
    thresholds
        (depth,) least frequency of each level.
    allowed
        (depth, p) whether a feature may be used at a level.
    proximity
        Samples at least this close share a leaf.
    group
        (n,) group of each sample; samples of a group share a leaf.
    """

    ensemble: Ensemble
    sign: FloatArray
    weight: FloatArray
    frequency: FloatArray
    thresholds: FloatArray
    allowed: BoolArray
    proximity: float
    group: IntArray

    def feature_costs(self, alpha: float) -> FloatArray:
        """(depth, p) cost of a feature in a split of a level, ``alpha / f``; 0 where it is not allowed."""
        costs = np.zeros_like(self.frequency)
        np.divide(alpha, self.frequency, out=costs, where=self.allowed)
        return costs

    def wrong_weights(self, group: IntArray) -> FloatArray:
        """(G, 2) cost of each group in a leaf of the first and of the second class."""
        return np.column_stack([summed(group, self.weight * (self.sign == side)) for side in (1, -1)])

    def unfaithfulness(self, predicted: IntArray | FloatArray) -> float:
        """Weight of the samples whose predicted class (n,), 0 or 1, is not the ensemble's."""
        return float(self.weight[predicted != (self.sign > 0)].sum())


def ensemble_target(
    ensemble: Any, gamma: PerNode, percentile: PerNode, threshold: float, data: Dataset, depth: int
) -> EnsembleTarget:
    """Return the target for training data.

    Parameters
    ----------
    ensemble
        As for :func:`mipforest.ensembles.ensemble_for`.
    gamma, percentile
        As for :func:`~formulations.frequent_features.frequency_thresholds`.
    threshold
        Samples at least this close share a leaf; above 1 none do.
    data
        Training samples of two classes.
    depth
        Levels of the tree.

    Raises
    ------
    EnsembleError, DataError, ParameterError
        If the ensemble does not fit the data or the depth, or a level is left without a feature.
    """
    fitted = ensemble_for(ensemble, data, depth)
    frequency = level_frequencies(fitted, depth)
    thresholds = frequency_thresholds(frequency, gamma, percentile)
    group = np.arange(data.n)
    if threshold <= 1:
        group = proximity_groups(proximity(fitted, data.X_raw), threshold)
    return EnsembleTarget(
        ensemble=fitted,
        sign=np.where(fitted.predict(data.X_raw) == 1, 1.0, -1.0),
        weight=fitted.probability(data.X_raw),
        frequency=frequency,
        thresholds=thresholds,
        allowed=frequent_features(frequency, thresholds, data.features.labels),
        proximity=threshold,
        group=group,
    )
