"""Class probabilities of trees whose scores are no log-odds: frequencies at the leaves."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.trees import Tree


def leaf_frequencies(tree: Tree, X: FloatArray, y: IntArray) -> FloatArray:
    """Give the share of every class among the training samples of every leaf.

    Parameters
    ----------
    tree
        A classifier with K classes.
    X
        (n, p) training samples in original units.
    y
        (n,) their class numbers.

    Returns
    -------
    (|L|, K) array
        Rows sum to 1. A leaf without training samples gives its label the share 1. Where the label shares the
        largest frequency with other classes, it is raised by one unit in the last place, so that it is the
        first to be found.
    """
    label = tree.leaf_value.astype(np.int64)
    leaf = tree.apply(X) - tree.topology.n_branches
    counts = np.zeros((len(label), len(tree.classes)))
    np.add.at(counts, (leaf, y), 1.0)
    empty = ~counts.any(axis=1)
    counts[empty, label[empty]] = 1.0
    shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    rows = np.arange(len(label))
    largest = shares[rows, label] == shares.max(axis=1)
    tied = largest & (shares.argmax(axis=1) != label)
    shares[rows[tied], label[tied]] = np.nextafter(shares[rows[tied], label[tied]], 1.0)
    return shares
