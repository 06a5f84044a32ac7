"""All univariate trees of depth two on a small data set, every labelling of their leaves included."""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np


@dataclass(frozen=True)
class LabelledTree:
    """Splits (feature, threshold) of nodes 0, 1, 2 (``None``: all go right), and what becomes of the samples."""

    splits: tuple
    labels: tuple
    leaf: np.ndarray
    predicted: np.ndarray

    @property
    def features(self):
        return [None if split is None else split[0] for split in self.splits]


def labelled_trees(X, n_classes=2):
    """Yield every one; a node splits only if its parent does."""
    cuts = [(j, (a + b) / 2) for j in range(X.shape[1]) for a, b in pairwise(np.unique(X[:, j]))]
    for splits in product([None, *cuts], repeat=3):
        if splits[0] is None and (splits[1] or splits[2]):
            continue
        right = np.stack([_goes_right(X, split) for split in splits])
        leaf = 2 * right[0] + np.where(right[0], right[2], right[1])
        for labels in product(range(n_classes), repeat=4):
            yield LabelledTree(splits, labels, leaf, np.asarray(labels)[leaf])


def _goes_right(X, split):
    return np.ones(len(X), dtype=int) if split is None else (X[:, split[0]] >= split[1]).astype(int)
