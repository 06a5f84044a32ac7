"""Sides of splits that no rounding error decides.

A value of at least the threshold goes right. At a hyperplane, a score of at least 0 does; one of at most -epsilon goes
left.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.special import expit


def midpoint(low: float, high: float) -> float:
    """Return the threshold between two neighbouring values of a feature, ``low < high``.

    A value goes right if it is at least the threshold; where rounding leaves no number between the two, the
    threshold is therefore ``high``.
    """
    return float(midpoints(np.array([low, high]))[0])


def midpoints(values: FloatArray) -> FloatArray:
    """Return the (k - 1,) thresholds between ascending values (k,), as :func:`midpoint` does for two."""
    low, high = values[:-1], values[1:]
    middle = low + (high - low) / 2
    return np.where(middle > low, middle, high)


def exact_cuts(w: FloatArray, b: FloatArray, offset: FloatArray, scale: FloatArray) -> FloatArray:
    """Return, of splits of one feature each, the smallest double on the upper side of the split.

    The score ``w * ((x - offset) / scale) + b`` is rounded at every step, and so is monotone in x, not linear. A
    comparison of x with the cut decides for every double as the sign of the rounded score does.

    Parameters
    ----------
    w, b, offset, scale
        (m,) weights, none 0; intercepts; scaling of the features, ``scale > 0``.

    Returns
    -------
    FloatArray
        (m,) cuts. Where w > 0, the score is >= 0 for ``x >= cut``; where w < 0, for ``x < cut``. ``-inf`` and ``inf``
        where all doubles are on one side.
    """

    def above(x: FloatArray) -> BoolArray:
        with np.errstate(over="ignore"):
            right: BoolArray = w * ((x - offset) / scale) + b >= 0
        upper: BoolArray = right == (w > 0)
        return upper

    largest = np.full(len(w), np.finfo(np.float64).max)
    low, high = _ranks(-largest), _ranks(largest)
    all_above, none_above = above(-largest), ~above(largest)
    # Bisection over the doubles in order: 64 halvings leave one.
    for _ in range(64):
        middle = (low & high) + ((low ^ high) >> 1)
        upper = above(_doubles(middle))
        high, low = np.where(upper, middle, high), np.where(upper, low, middle)
    cuts = np.where(none_above, np.inf, _doubles(high))
    return np.where(all_above, -np.inf, cuts)


def _ranks(x: FloatArray) -> IntArray:
    """Return integers in the order of doubles, neighbours for neighbours."""
    bits = x.view(np.int64)
    return np.where(bits < 0, -(bits & np.iinfo(np.int64).max), bits)


def _doubles(ranks: IntArray) -> FloatArray:
    """Return the doubles of :func:`_ranks`."""
    return np.copysign(np.abs(ranks).view(np.float64), ranks.astype(np.float64))


#: Scores this close to a side count as on it; far above rounding errors, far below any epsilon in use.
SIDE_TOLERANCE = 1e-9

#: The least gap whose violations count as they are; of a smaller one they count relative to it.
UNIT_GAP = 1e-3


def missed_gap(missing: FloatArray, gap: float) -> float:
    """Return the most that is missing of a gap between the sides of splits; 0 where nothing is.

    Tolerances are absolute, so what is missing of a gap below :data:`UNIT_GAP` counts by its share: otherwise a
    tolerance of 1e-6 would hold a gap of 1e-7 for nothing.

    Parameters
    ----------
    missing
        By how much each of some scores falls short of its side; not positive where it does not.
    gap
        The gap, above 0.
    """
    return max(0.0, float(missing.max(initial=0.0))) * max(1.0, UNIT_GAP / gap)


#: A coefficient of at most this size is what a branch-and-bound solver leaves of 0, where coefficients are at most 1.
RESIDUE = 1e-9

#: The same for what an interior-point solver leaves, as a share of the largest coefficient.
INTERIOR_RESIDUE = 1e-7


def clear_residue(w: FloatArray, X: FloatArray, *, unit: float = 1.0) -> FloatArray:
    """Return weights (|B|, p) with what an interior point leaves of 0 in its node set to 0, whatever the units of X.

    A weight counts by its share in a score: its size times that of its feature in X (n, p). It is compared with the
    largest share, or with a unit of scores where that is larger.
    """
    sizes = np.abs(X).max(axis=0, initial=0.0)
    shares = np.abs(w) * np.where(sizes > 0, sizes, 1.0)
    return np.where(shares <= INTERIOR_RESIDUE * np.maximum(shares.max(axis=1, keepdims=True), unit), 0.0, w)


def keep_sides(
    X: FloatArray,
    w: FloatArray,
    right: BoolArray,
    b: float,
    *,
    sizes: FloatArray | None = None,
    most: float = np.inf,
) -> float:
    r"""Return the intercept nearest to ``b`` that sends samples to their sides, however scores are summed.

    A sum of p products in double precision misses the exact score by at most
    :math:`\gamma (|w|^\top |x| + |b|)`, with :math:`\gamma` about (p + 1)/2 machine epsilons, in whatever order it
    is summed; so samples stay several times that away from the threshold. Where the two sides are too close for it, the
    threshold stands midway between them; where they overlap, by a solver's tolerance, the right side counts.

    Parameters
    ----------
    X
        (n, p) samples that pass the node, scaled.
    w
        (p,) weights.
    right
        (n,) whether a sample must go right, to a score of at least 0; the others must go left.
    b
        The intercept that is wanted: a solver's, which may miss a side by its tolerance.
    sizes
        (n, p) sizes of the numbers that features are computed from: with :attr:`Dataset.sizes
        <mipforest.data.Dataset.sizes>` the sides also hold for the tree in original units. ``|X|`` unless given.
    most
        Most that ``sizes`` may ask for beyond the rounding errors of scaled features, where moving ``b`` costs.
    """
    scores = X @ w
    rounding = 4 * (X.shape[1] + 4) * np.finfo(float).eps
    margin = np.maximum(rounding * (np.abs(X) @ np.abs(w)), SIDE_TOLERANCE)
    if sizes is not None:
        margin = np.maximum(margin, np.minimum(rounding * (sizes @ np.abs(w)), most))
    low = float((margin - scores)[right].max(initial=-np.inf))
    high = float((-margin - scores)[~right].min(initial=np.inf))
    if low <= high:
        return min(max(b, low), high)
    return -midpoint(float(scores[~right].max()), float(scores[right].min()))


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
    # In order, as many numbers are then found several times faster.
    shifts = np.concatenate([SIDE_TOLERANCE - ordered, -epsilon - ordered - SIDE_TOLERANCE])
    free = shifts[between(shifts) <= 0]
    return float(free[np.argmin(np.abs(free))])


#: A score of 0 or more predicts the second class; where rounding would make its probability 1/2, it gets
#: the next double, so that the larger probability is always that of the predicted class.
_ABOVE_HALF = float(np.nextafter(0.5, 1.0))


def class_probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the (n, 2) probabilities of both classes, from (n,) log-odds of the second one.

    Each is computed by itself, so that a tiny probability is as exact as a large one; the two sum to 1 up to
    rounding. The larger one is that of the class that the sign predicts.
    """
    second = expit(log_odds)
    second = np.where(log_odds >= 0, np.maximum(second, _ABOVE_HALF), second)
    return np.column_stack([expit(-log_odds), second])
