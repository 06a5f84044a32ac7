"""What a tree has learned of its ensemble: measures on a data set, a report, and notes before the solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.mimic.target import PROXIMITY_TOLERANCE, EnsembleTarget
from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.ensembles import EnsembleError, close_samples
from mipforest.trees import Tree


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
