"""The features that MIRET may use at each level: those that the ensemble uses there often enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipforest.arrays import BoolArray, FloatArray
from mipforest.problem.parameters import ParameterError, PerNode


def per_level(name: str, value: PerNode, depth: int) -> FloatArray:
    """(depth,) one value per level, from one for all or one for each.

    Raises
    ------
    ParameterError
        If the number of values is neither.
    """
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if len(values) not in (1, depth):
        raise ParameterError(
            f"parameter {name} has {len(values)} values; a tree of depth {depth} takes 1, or {depth} (one per "
            "level, root first)"
        )
    return np.broadcast_to(values, depth).copy()


def frequency_thresholds(frequency: FloatArray, gamma: PerNode, percentile: PerNode) -> FloatArray:
    """(depth,) least frequency of each level: the larger of ``gamma`` and of a percentile.

    Parameters
    ----------
    frequency
        (depth, p) frequency of each feature at each level.
    gamma
        Least frequency, one value or one per level.
    percentile
        0 to 100, one value or one per level: percentile of the positive frequencies of the level.

    Raises
    ------
    ParameterError
        If the number of values does not fit, a percentile is above 100, or a level has no positive frequency.
    """
    depth = len(frequency)
    least, share = per_level("gamma", gamma, depth), per_level("gamma_percentile", percentile, depth)
    if share.max() > 100:
        raise ParameterError(f"parameter gamma_percentile is {share.max():g}; give 0 to 100")
    for level, row in enumerate(frequency):
        if not row.any():
            raise ParameterError(
                f"no tree of the ensemble splits at level {level} (the root is level 0), so that no feature may "
                f"be used there; take depth {level}, or an ensemble of deeper trees"
            )
        least[level] = max(least[level], np.percentile(row[row > 0], share[level]))
    return least


def frequent_features(frequency: FloatArray, thresholds: FloatArray, features: Sequence[str]) -> BoolArray:
    """(depth, p) whether a feature may be used at a level: its frequency is positive and reaches the threshold.

    Parameters
    ----------
    frequency, thresholds
        (depth, p) frequencies and (depth,) least ones.
    features
        Names of the p features.

    Raises
    ------
    ParameterError
        If a level is left without a feature.
    """
    allowed: BoolArray = (frequency > 0) & (frequency >= thresholds[:, None])
    for level in np.flatnonzero(~allowed.any(axis=1)):
        most = int(frequency[level].argmax())
        raise ParameterError(
            f"parameter gamma leaves level {level} (the root is level 0) without a feature: the threshold there is "
            f"{thresholds[level]:g}, the largest frequency {frequency[level, most]:g} ({features[most]}); give at "
            "most that, or one value per level"
        )
    return allowed
