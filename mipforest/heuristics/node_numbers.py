"""What a certificate states of node problems and samples in numbers, for what writes one and what compares it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.certificates import digest_of_samples
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.objectives.branches import HALF_SQUARED_L2, L1


def numbers_of_nodes(nodes: NodeProblems) -> dict[str, Any] | None:
    """Return what is charged at the branch nodes, as a certificate has it; ``None`` where none can say it."""
    if not nodes.exact or nodes.norm not in (HALF_SQUARED_L2, L1) or nodes.uncharged:
        return None
    hard = nodes.budget is None or nodes.alpha is None or not np.isfinite(nodes.alpha)
    return {
        "C": [float(penalty) for penalty in nodes.C],
        "epsilon": float(nodes.epsilon),
        "kinks": [[float(part) for part in kink] for kink in nodes.loss.convex.kinks()],
        "norm": "l1" if nodes.norm is L1 else "l2",
        "free": None if nodes.budget is None else [int(free) for free in nodes.budget],
        "alpha": None if hard or nodes.alpha is None else float(nodes.alpha),
    }


def digest_of_data(data: Dataset) -> str:
    """Return the digest of the samples that a certificate of these data has."""
    X, group = np.unique(data.X, axis=0, return_inverse=True)
    return digest_of_samples(X, weights_by_class(data, group.ravel(), len(X)))


def weights_by_class(data: Dataset, group: IntArray, n_groups: int) -> FloatArray:
    """Return (G, 2) what the samples of class -1 and +1 in each group weigh together."""
    weight = np.zeros((n_groups, 2))
    np.add.at(weight, (group, (data.sign > 0).astype(np.int64)), data.weights)
    return weight
