r"""Big-Ms of the MARGOT models: the paper's constants, or bounds proven from a feasible tree.

**Proof of the bounds** (variant ``valid``). Let UB be the value of a feasible tree.

1. Every term of the objective is nonnegative, so a solution that is no worse has
   :math:`\|w_t\| \le R = \sqrt{2\,UB}` at every node.
2. Let :math:`s_i = w_t^\top x_i + b_t`. If all scores of a node exceed 1, lower ``b_t`` until the smallest is
   1: all samples keep their side, no slack grows. If all scores are below -1, raise ``b_t`` until the largest
   is -1: the same holds, as epsilon < 1. So some optimal solution has :math:`\min_k s_k \le 1` and
   :math:`\max_k s_k \ge -1` at every node.
3. Then :math:`s_i = s_k + w_t^\top (x_i - x_k) \le 1 + R D_i` with k the smallest score and
   :math:`D_i = \max_k \|x_i - x_k\|`; likewise :math:`s_i \ge -1 - R D_i`.

Step 2 moves ``b`` and lowers ``xi``: it no longer holds when a user's constraint reads one of these, and step 1
holds for solutions no worse than UB only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from mipforest.arrays import FloatArray
from mipforest.problem import Preparation

#: UB is the value of a tree in floating-point numbers: allow for its rounding.
ROUNDING = 1e-6

#: Samples whose distances to all others are held in memory at once.
CHUNK = 1000


@dataclass(frozen=True, eq=False)
class MarginLimits(Preparation):
    """Big-Ms and bounds of a MARGOT-type model.

    Attributes
    ----------
    M_xi
        Slack of a margin row whose sample is elsewhere: a number, or (n, 1) per sample.
    M_right, M_left
        Slack of a routing row whose sample is elsewhere; likewise.
    M_w
        Bound on a weight whose feature is switched on.
    weight, bias
        Bounds on ``|w|`` and ``|b|``; infinite in the paper's model.
    upper_bound
        Value of the tree that the limits were proven from; infinite where nothing was assumed.
    """

    M_xi: float | FloatArray = 50.0
    M_right: float | FloatArray = 100.0
    M_left: float | FloatArray = 100.0
    M_w: float = 50.0
    weight: float = np.inf
    bias: float = np.inf
    upper_bound: float = np.inf


def proven_limits(X: FloatArray, epsilon: float, upper_bound: float) -> MarginLimits:
    """Limits that hold for an optimal solution, from the value of any feasible tree.

    Parameters
    ----------
    X
        (n, p) training samples.
    epsilon
        Gap that stands for a strict inequality, below 1.
    upper_bound
        Value of a feasible tree.
    """
    radius = float(np.sqrt(2 * upper_bound * (1 + ROUNDING)))
    score = 1.0 + radius * farthest_distances(X)  # |w.x_i + b| is at most this
    # |b| <= |score_i| + |w| |x_i| for every sample; the best one counts.
    bias = float((score + radius * np.linalg.norm(X, axis=1)).min())
    return MarginLimits(
        M_xi=(1.0 + score)[:, None],
        M_right=score[:, None],
        M_left=(score + epsilon)[:, None],
        M_w=radius,
        weight=radius,
        bias=bias,
        upper_bound=upper_bound,
    )


def farthest_distances(X: FloatArray) -> FloatArray:
    """(n,) distance of each sample to the one farthest from it."""
    parts = [cdist(X[start : start + CHUNK], X).max(axis=1) for start in range(0, len(X), CHUNK)]
    return np.concatenate(parts)
