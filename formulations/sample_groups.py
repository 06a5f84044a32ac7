"""Samples that must share a leaf, merged into groups: by proximity in an ensemble, and by equal features."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mipforest.arrays import FloatArray, IntArray

#: Proximities are sums of weights: two that are equal on paper may differ by the rounding of a hundred additions.
ROUNDING = 1e-12


def proximity_groups(proximity: FloatArray, threshold: float) -> IntArray:
    """Group samples whose proximity reaches a threshold, directly or through others.

    Parameters
    ----------
    proximity
        (n, n) proximities, 0 to 1.
    threshold
        Samples at least this close share a leaf, hence all samples of a connected component do.

    Returns
    -------
    (n,) number of each sample's group; groups are numbered by their first sample.
    """
    return _numbered(connected_components(proximity >= threshold - ROUNDING, directed=False)[1])


def merged_where_equal(group: IntArray, X: FloatArray) -> IntArray:
    """Merge groups that have samples in common features alike: no split tells these apart.

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
    return _numbered(component[group])


def first_of(group: IntArray) -> IntArray:
    """(G,) position of the first sample of each group: its representative."""
    return np.unique(group, return_index=True)[1].astype(np.int64)


def pairs_with_first(group: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every sample with the first one of its group, unless it is the first: (q,) positions of both."""
    first = first_of(group)[group]
    twin = np.flatnonzero(first != np.arange(len(group)))
    return twin, first[twin]


def summed(group: IntArray, values: FloatArray) -> FloatArray:
    """(G,) sum of the samples' values in each group."""
    return np.bincount(group, values).astype(np.float64)


def _numbered(label: IntArray) -> IntArray:
    """Give groups numbers in the order of their first samples."""
    first, inverse = np.unique(label, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
