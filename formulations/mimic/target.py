"""What a model that mimics a tree ensemble knows of it, for the training samples, and what a tree has learned of it.

Of the ensemble: its predictions and their probabilities, the features that it uses often enough at each level, and the
groups of samples that must share a leaf of the tree, because they share the leaves of the ensemble.

Of a tree: measures on a data set, a report, and notes before the solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.ensembles import (
    CloseSamples,
    Ensemble,
    EnsembleError,
    close_samples,
    ensemble_for,
    level_frequencies,
)
from mipforest.problem.parameters import ParameterError, PerNode
from mipforest.time_budget import TimeBudget
from mipforest.trees import Tree

#: Proximities are sums of weights: two that are equal on paper may differ by the rounding of a hundred additions.
PROXIMITY_TOLERANCE = 1e-12


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
        (n,) its probability of that class, 0 to 1, times the sample's weight.
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
        """Return the (depth, p) cost of a feature in a split of a level, ``alpha / f``; 0 where it is not allowed."""
        costs = np.zeros_like(self.frequency)
        np.divide(alpha, self.frequency, out=costs, where=self.allowed)
        return costs

    def wrong_weights(self, group: IntArray) -> FloatArray:
        """Return the (G, 2) cost of each group in a leaf of the first and of the second class."""
        return np.column_stack([group_sums(group, self.weight * (self.sign == side)) for side in (1, -1)])

    def unfaithfulness(self, predicted: IntArray | FloatArray) -> float:
        """Return the weight of the samples whose predicted class (n,), 0 or 1, is not the ensemble's."""
        return float(self.weight[predicted != (self.sign > 0)].sum())


def ensemble_target(
    ensemble: Any,
    gamma: PerNode,
    percentile: PerNode,
    threshold: float,
    data: Dataset,
    depth: int,
    budget: TimeBudget | None = None,
    *,
    constant: bool = False,
) -> EnsembleTarget:
    """Return the target for training data.

    Parameters
    ----------
    ensemble
        As for :func:`mipforest.ensembles.ensemble_for`.
    gamma, percentile
        As for :func:`frequency_thresholds`.
    threshold
        Samples at least this close share a leaf; above 1 none do.
    data
        Training samples of two classes.
    depth
        Levels of the tree.
    budget
        Time for an ensemble that is fitted here.
    constant
        Accept an ensemble none of whose trees splits.

    Raises
    ------
    EnsembleError, DataError, ParameterError
        If the ensemble does not fit the data or the depth, or the thresholds take all features from a level.
    NoTreeFound
        If the time runs out before the ensemble is fitted.
    """
    fitted = ensemble_for(ensemble, data, depth, constant=constant, budget=budget)
    frequency = level_frequencies(fitted, depth)
    thresholds = frequency_thresholds(frequency, gamma, percentile)
    group = np.arange(data.n)
    if threshold <= 1:
        group = proximity_groups(close_samples(fitted, data.X_raw, threshold - PROXIMITY_TOLERANCE))
    return EnsembleTarget(
        ensemble=fitted,
        sign=np.where(fitted.predict(data.X_raw) == 1, 1.0, -1.0),
        weight=fitted.probability(data.X_raw) * data.weights,
        frequency=frequency,
        thresholds=thresholds,
        allowed=frequent_features(frequency, thresholds, data.features.labels),
        proximity=threshold,
        group=group,
    )


def per_level(name: str, value: PerNode, depth: int) -> FloatArray:
    """Spread a hyperparameter over the levels: (depth,) from one value for all, or one for each.

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
    """Return the (depth,) least frequency of each level: the larger of ``gamma`` and of a percentile.

    Parameters
    ----------
    frequency
        (depth, p) frequency of each feature at each level.
    gamma
        Least frequency, one value or one per level.
    percentile
        0 to 100, one value or one per level: percentile of the positive frequencies of the level, where there are any.

    Raises
    ------
    ParameterError
        If the number of values does not fit, or a percentile is above 100.
    """
    depth = len(frequency)
    least, share = per_level("gamma", gamma, depth), per_level("gamma_percentile", percentile, depth)
    if share.max() > 100:
        raise ParameterError(f"parameter gamma_percentile is {share.max():g}; give 0 to 100")
    for level in np.flatnonzero(frequency.any(axis=1)):
        row = frequency[level]
        least[level] = max(least[level], np.percentile(row[row > 0], share[level]))
    return least


def frequent_features(frequency: FloatArray, thresholds: FloatArray, features: Sequence[str]) -> BoolArray:
    """Return whether a feature may be used at a level, (depth, p): its frequency is positive and reaches the threshold.

    A level at which no tree of the ensemble splits has none.

    Parameters
    ----------
    frequency, thresholds
        (depth, p) frequencies and (depth,) least ones.
    features
        Names of the p features.

    Raises
    ------
    ParameterError
        If the thresholds leave a level without all its features.
    """
    allowed: BoolArray = (frequency > 0) & (frequency >= thresholds[:, None])
    for level in np.flatnonzero(frequency.any(axis=1) & ~allowed.any(axis=1)):
        most = int(frequency[level].argmax())
        raise ParameterError(
            f"parameter gamma leaves level {level} (the root is level 0) without a feature: the threshold there is "
            f"{thresholds[level]:g}, the largest frequency {frequency[level, most]:g} ({features[most]}); give at "
            "most that, or one value per level"
        )
    return allowed


def proximity_groups(samples: CloseSamples) -> IntArray:
    """Group samples that are close, directly or through others.

    All samples of a connected component share a leaf, as any two close ones do.

    Returns
    -------
    (n,) number of each sample's group; groups are numbered by their first sample.
    """
    return _renumbered(connected_components(samples.close, directed=False)[1][samples.kind])


def merge_equal_samples(group: IntArray, X: FloatArray) -> IntArray:
    """Merge groups in which samples agree in all usable features: no split tells these apart.

    Parameters
    ----------
    group
        (n,) group of each sample.
    X
        (n, q) the features that splits may use.

    Returns
    -------
    (n,) number of each sample's group, at most as many groups as before.
    """
    if X.shape[1] == 0:
        return np.zeros(len(group), dtype=np.int64)
    row = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    n_groups = int(group.max()) + 1
    joint = sparse.coo_array(
        (np.ones(len(row)), (group, n_groups + row)), shape=(n_groups + row.max() + 1,) * 2
    )
    component = connected_components(joint, directed=False)[1]
    return _renumbered(component[group])


def first_members(group: IntArray) -> IntArray:
    """Return the (G,) position of the first sample of each group, its representative."""
    return np.unique(group, return_index=True)[1].astype(np.int64)


def pairs_with_first(group: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every sample with the first of its group, unless it is that one: two (q,) arrays of positions."""
    first = first_members(group)[group]
    twin = np.flatnonzero(first != np.arange(len(group)))
    return twin, first[twin]


def group_sums(group: IntArray, values: FloatArray) -> FloatArray:
    """Return the (G,) sum of the samples' values in each group."""
    return np.bincount(group, values).astype(np.float64)


def _renumbered(label: IntArray) -> IntArray:
    """Renumber the groups in the order of their first samples."""
    first, inverse = np.unique(label, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def fidelity_measures(tree: Tree, data: Dataset, target: EnsembleTarget) -> dict[str, Any]:
    """Compare a tree with its ensemble on training or test samples.

    Parameters
    ----------
    tree
        A tree for samples in original units.
    data
        The samples.
    target
        The ensemble and the proximity threshold.

    Returns
    -------
    dict
        Shares of samples are shares of their weight.
        ``fidelity``: share of samples for which tree and ensemble predict the same class.
        ``ensemble_accuracy``: share that the ensemble predicts right. ``close_pairs``: number of pairs of samples
        whose proximity reaches the threshold. ``close_pairs_together``: share of these that share a leaf of the
        tree; ``None`` if there are none. Both are ``None`` of more samples than proximities can be computed for.
    """
    predicted = target.ensemble.predict(data.X_raw)
    pairs, together = _close_pairs(tree, data, target)
    return {
        "fidelity": float(np.average(tree.predict(data.X_raw) == predicted, weights=data.weights)),
        "ensemble_accuracy": float(np.average(predicted == data.y, weights=data.weights)),
        "close_pairs": pairs,
        "close_pairs_together": together / pairs if pairs else None,
    }


def _close_pairs(tree: Tree, data: Dataset, target: EnsembleTarget) -> tuple[int | None, int]:
    """Count the pairs of close samples, ``None`` of too many samples, and those that share a leaf of the tree."""
    if target.proximity > 1:
        return 0, 0
    try:
        samples = close_samples(target.ensemble, data.X_raw, target.proximity - PROXIMITY_TOLERANCE)
    except EnsembleError:
        return None, 0
    close, n_kinds = samples.close.astype(np.int64), samples.close.shape[0]
    in_node = np.zeros((n_kinds, tree.topology.n_nodes), dtype=np.int64)
    np.add.at(in_node, (samples.kind, tree.apply(data.X_raw)), 1)
    size = in_node.sum(axis=1)
    # Each pair is counted twice, and each sample with itself.
    return int(size @ (close @ size) - data.n) // 2, int((in_node * (close @ in_node)).sum() - data.n) // 2


def mimicry_report(
    solved: Tree, data: Dataset, target: EnsembleTarget, costs: FloatArray, group: IntArray
) -> dict[str, Any]:
    """Report what the tree has learned of the ensemble, ready for JSON.

    Parameters
    ----------
    solved
        The solved tree, for scaled features.
    data, target
        Training samples and target.
    costs
        (|B|, p) cost of each feature at each node.
    group
        (n,) group of each sample in the model.
    """
    used = solved.w != 0
    levels = solved.topology.levels
    mixed, samples, cost = forced_errors(target)
    return {
        "ensemble": target.ensemble.description,
        "features_by_level": [
            _features(level, used[levels == level], target, data) for level in range(solved.depth)
        ],
        "unfaithfulness": target.unfaithfulness(solved.predict(data.X)),
        "feature_cost": float(costs[used].sum()),
        "merged": {
            "samples": data.n,
            "close_groups": int((np.bincount(target.group) > 1).sum()),
            "representatives": int(group.max()) + 1,
        },
        "forced": {"groups": mixed, "samples": samples, "least_cost": cost},
    }


def _features(level: int, used: BoolArray, target: EnsembleTarget, data: Dataset) -> dict[str, Any]:
    """Return the features' frequencies at a level: in the tree (share of its nodes), in the ensemble, and the least."""
    labels = data.features.labels
    tree, ensemble = used.mean(axis=0), target.frequency[level]
    return {
        "level": level,
        "threshold": float(target.thresholds[level]),
        "tree": {labels[j]: float(tree[j]) for j in np.flatnonzero(tree)},
        "ensemble": {
            labels[j]: float(ensemble[j]) for j in np.argsort(-ensemble, kind="stable") if ensemble[j] > 0
        },
    }


def forced_errors(target: EnsembleTarget) -> tuple[int, int, float]:
    """Count what proximity forces together although the ensemble predicts it differently.

    Returns
    -------
    groups, samples, cost
        Groups with both predictions, samples in them, and the least unfaithfulness that they imply: every such
        group is predicted one class.
    """
    wrong = target.wrong_weights(target.group)
    positive = np.bincount(target.group, target.sign > 0)
    size = np.bincount(target.group)
    mixed = (positive > 0) & (positive < size)
    return int(mixed.sum()), int(size[mixed].sum()), float(wrong.min(axis=1)[mixed].sum())


def level_notes(target: EnsembleTarget) -> tuple[str, ...]:
    """Return a sentence on each level at which no tree of the ensemble splits."""
    if not target.allowed.any():
        return (
            "no tree of the ensemble splits: it predicts one class for all samples, and so does the tree",
        )
    return tuple(
        f"no tree of the ensemble splits at level {level} (the root is level 0), so that the tree does not either: "
        f"depth {level} gives the same, an ensemble of deeper trees more"
        for level in np.flatnonzero(~target.allowed.any(axis=1)).tolist()
    )


def proximity_notes(target: EnsembleTarget) -> tuple[str, ...]:
    """Return sentences on what the proximity threshold does to the samples; none where no group has two."""
    size = np.bincount(target.group)
    close = size > 1
    if not close.any():
        return ()
    notes = [
        f"proximity {target.proximity:g}: {size[close].sum()} of {len(target.group)} samples are in {close.sum()} "
        "groups, and those of a group share a leaf"
    ]
    mixed, samples, cost = forced_errors(target)
    if mixed:
        notes.append(
            f"the ensemble predicts both classes in {mixed} of these groups ({samples} samples): sharing a leaf "
            f"costs at least {cost:.4g} of the objective; a larger proximity avoids that"
        )
    return tuple(notes)
