"""Sides of splits that no rounding error decides.

A value of at least the threshold goes right. At a hyperplane, a score of at least 0 does; one of at most -epsilon goes
left.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray


def midpoint(low: float, high: float) -> float:
    """Return the threshold between two neighbouring values of a feature, ``low < high``.

    A value goes right if it is at least the threshold; where rounding leaves no number between the two, the
    threshold is therefore ``high``.
    """
    middle = low + (high - low) / 2
    return float(middle if middle > low else high)


#: Scores this close to a side count as on it; far above rounding errors, far below any epsilon in use.
SIDE_TOLERANCE = 1e-9


def keep_sides(scores: FloatArray, right: BoolArray, b: float) -> float:
    """Move a bias by a rounding error: all samples that must go right then do, however scores are summed."""
    lowest = float(scores[right].min(initial=np.inf))
    return b if lowest >= SIDE_TOLERANCE else b - lowest + SIDE_TOLERANCE


def into_a_gap(scores: FloatArray, epsilon: float) -> float:
    """Return the smallest shift of the bias after which no score lies strictly between ``-epsilon`` and 0.

    Such a sample would fit neither side of the model. Scores within rounding of 0 count as between the sides
    too. Moving past all scores is always possible.
    """
    ordered = np.sort(scores)

    def between(shift: FloatArray) -> IntArray:
        """Count the scores between the sides after a shift."""
        up_to_left = np.searchsorted(ordered, -epsilon - shift + SIDE_TOLERANCE / 2, side="right")
        counts: IntArray = np.searchsorted(ordered, -shift + SIDE_TOLERANCE / 2) - up_to_left
        return counts

    if between(np.zeros(1))[0] == 0:
        return 0.0
    shifts = np.concatenate([-scores + SIDE_TOLERANCE, -epsilon - scores - SIDE_TOLERANCE])
    free = shifts[between(shifts) <= 0]
    return float(free[np.argmin(np.abs(free))])
