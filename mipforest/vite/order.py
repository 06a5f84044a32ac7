"""In which order samples stand in the picture of their proximities."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mipforest.arrays import FloatArray, IntArray

#: Up to this many samples the two sides of every cluster are arranged too; the time grows with the square.
ARRANGED = 500


def sample_order(proximity: FloatArray, predicted: IntArray) -> IntArray:
    """(n,) samples by predicted class; within a class, those that go together stand together.

    The order within a class is that of the leaves of an average-linkage clustering by 1 - proximity.

    Parameters
    ----------
    proximity
        (n, n) proximities, 0 to 1.
    predicted
        (n,) predicted class numbers.
    """
    parts = [_clustered(proximity, np.flatnonzero(predicted == k)) for k in np.unique(predicted)]
    return np.concatenate(parts)


def _clustered(proximity: FloatArray, rows: IntArray) -> IntArray:
    if len(rows) < 3:
        return rows
    distance = squareform(1 - proximity[np.ix_(rows, rows)], checks=False)
    clusters = linkage(distance, method="average", optimal_ordering=len(rows) <= ARRANGED)
    order: IntArray = rows[leaves_list(clusters)]
    return order
