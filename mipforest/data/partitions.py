"""The two-dimensional data sets 4-partitions and 6-partitions.

D'Onofrio, Grani, Monaci, Palagi: Margin optimal classification trees, section 6.1: hyperplanes with
margins are defined, and random points are plotted outside the margins, 108 and 96 in all. The paper
shows the hyperplanes in a figure only; the ones here are our own, chosen to have what the text and
table 3 report: 4-partitions has depth 2 and the greedy local SVM heuristic falls short of it (86.1% in
the paper), 6-partitions cannot be classified with depth 2.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data.truth import TreeTruth

#: Euclidean distance that every point keeps from the hyperplanes of its path.
MARGIN = 0.04

#: Points drawn at a time; only the efficiency depends on it, and the points that a seed gives.
_BATCH = 256

FOUR = TreeTruth(
    w=np.array([[0.70, 0.71], [0.91, 0.41], [-0.21, 0.98]]),
    b=np.array([-0.68, -0.37, -0.51]),
    leaves=np.array([-1, 1, 1, -1]),
)

SIX = TreeTruth(
    w=np.array(
        [[-0.77, 0.64], [-0.33, 0.94], [0.06, 1.0], [0.0, 0.0], [-0.84, 0.54], [0.0, 0.0], [-0.32, 0.95]]
    ),
    b=np.array([0.06, -0.06, -0.59, 1.0, 0.34, 1.0, -0.67]),
    leaves=np.array([1, 1, -1, 1, -1, -1, -1, 1]),
)


def draw_points(truth: TreeTruth, per_partition: int, seed: int) -> FloatArray:
    """Draw points uniformly from each partition of the unit square, outside the margins.

    Parameters
    ----------
    truth
        The hyperplanes. A leaf that no point can reach (beside a node that does not split) is no partition.
    per_partition
        Number of points in each partition.
    seed
        Seed of the generator.

    Returns
    -------
    FloatArray
        (partitions * per_partition, 2) points, in random order.
    """
    rng = np.random.default_rng(seed)
    wanted = np.zeros(len(truth.leaves), dtype=np.int64)
    wanted[_partitions(truth)] = per_partition
    chosen: list[FloatArray] = []
    while wanted.any():
        points = rng.random((_BATCH, 2))
        points = points[truth.margin(points) >= MARGIN]
        for leaf, point in zip(truth.leaf_of(points), points, strict=True):
            if wanted[leaf]:
                wanted[leaf] -= 1
                chosen.append(point)
    return np.array(chosen)


def _partitions(truth: TreeTruth) -> list[int]:
    """Give the leaves that can be reached: a node that does not split sends everything right."""
    nodes = [0]
    for _ in range(truth.depth):
        nodes = [
            child for t in nodes for child in ((2 * t + 1, 2 * t + 2) if truth.splits[t] else (2 * t + 2,))
        ]
    return [node - len(truth.b) for node in nodes]
