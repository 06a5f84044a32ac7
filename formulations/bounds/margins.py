r"""Big-Ms of the trees of linear classifiers: constants of the papers, or bounds proven from a feasible tree.

**Proof of the bounds** (variant ``valid``). The objective charges at every branch node a norm of the weights and C
times a loss of the scores :math:`s_i = w_t^\top x_i + b_t`; all terms are nonnegative. Let UB be the value of a
feasible tree, and V a lower bound on the share of the root. The loss is 0 for scores of at least v on the side of +1,
of at most -v on that of -1, and falls towards there: v is 1 for the hinge, the largest zero of the tangents for the
log-loss, epsilon for misclassification. Let :math:`\varepsilon \le v`.

1. A solution that is no worse than UB charges at most UB for the weights of the root, at most UB - V for those of any
   other node. So :math:`\|w_t\| \le R_t` in the norm that is charged: R = UB (or UB - V) for the l1 norm,
   :math:`\sqrt{2\,UB}` for half the squared Euclidean norm.
2. If all scores of a node exceed v, lower ``b_t`` until the smallest is v: all samples keep their side, no loss
   grows. If all scores are below -v, raise ``b_t`` until the largest is -v: the same holds, as
   :math:`\varepsilon \le v`. So some optimal solution has :math:`\min_k s_k \le v` and :math:`\max_k s_k \ge -v` at
   every node.
3. Then :math:`s_i = s_k + w_t^\top (x_i - x_k) \le v + R_t D_i` with k the smallest score and
   :math:`D_i = \max_k \|x_i - x_k\|_*` in the dual norm; likewise :math:`s_i \ge -v - R_t D_i`.
4. A row that holds a slack above the line :math:`a + d\,y_i s_i` (d < 0) is switched off by
   :math:`a - d\,(v + R_t D_i)`.

Step 2 moves ``b`` and lowers ``xi``: it no longer holds when a user's constraint reads one of these, and step 1
holds for solutions no worse than UB only. Without a norm, or for a node whose weights are not charged, step 1 bounds
nothing: there is no such variant then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from mipforest.arrays import FloatArray
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE, BigM, BranchLoss, Norm
from mipforest.trees import Tree
from mipforest.trees.topology import Nodes

#: UB and V are values in floating-point numbers: allow for their rounding.
ROUNDING = 1e-6

#: Samples whose distances to all others are held in memory at once.
CHUNK = 1000


@dataclass(frozen=True, eq=False)
class MarginLimits:
    """Big-Ms and bounds of a tree of linear classifiers.

    Attributes
    ----------
    M_xi
        Slack of the rows of the loss whose sample is elsewhere, one per row of a sample and node: a number, or
        (n, |B|).
    M_right, M_left
        Slack of a routing row whose sample is elsewhere: a number, or (n, |B|).
    M_w
        Bound on a weight whose feature is switched on: a number, or (|B|, 1).
    weight, bias
        (|B|, 1) and (|B|,) bounds on ``|w|`` and ``|b|``; infinite in the papers' models.
    upper_bound
        Value of the tree that the limits were proven from; infinite where nothing was assumed.
    """

    M_xi: tuple[BigM, ...] = (50.0,)
    M_right: BigM = 100.0
    M_left: BigM = 100.0
    M_w: BigM = 50.0
    weight: BigM = np.inf
    bias: BigM = np.inf
    upper_bound: float = np.inf


def proven_limits(
    X: FloatArray,
    epsilon: float,
    upper_bound: float,
    *,
    n_branches: int = 1,
    root_share: float = 0.0,
    loss: BranchLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
) -> MarginLimits:
    """Return limits that hold for an optimal solution, from the value of any feasible tree.

    Parameters
    ----------
    X
        (n, p) training samples.
    epsilon
        Gap that stands for a strict inequality, at most ``loss.flat_from``.
    upper_bound
        Value of a feasible tree.
    n_branches
        Number of branch nodes; 1 gives limits that hold for any node.
    root_share
        Lower bound on what the objective charges at the root, and only there.
    loss, norm
        What the objective charges; the norm must bound weights.
    """
    charge = np.full(n_branches, upper_bound * (1 + ROUNDING))
    charge[1:] = np.maximum(charge[1:] - root_share * (1 - ROUNDING), 0.0)
    radius = norm.radius(charge)
    # |w.x_i + b| is at most this.
    score = loss.flat_from + farthest_distances(X, norm.dual_distance)[:, None] * radius
    # |b| <= |score_i| + |w| |x_i| for every sample; the best one counts.
    bias = (score + norm.dual(X)[:, None] * radius).min(axis=0)
    return MarginLimits(
        M_xi=loss.big_ms(score),
        M_right=score,
        M_left=score + epsilon,
        M_w=radius[:, None],
        weight=radius[:, None],
        bias=bias,
        upper_bound=upper_bound,
    )


def moved_into_limits(tree: Tree, X: FloatArray, flat_from: float) -> Tree:
    """Move biases as in step 2 of the proof: no sample changes sides, no loss grows.

    Parameters
    ----------
    tree
        For scaled features; its left sides have scores of at most ``-epsilon``.
    X
        (n, p) training samples.
    flat_from
        Margin from which on the loss is 0.
    """
    scores = tree.scores(X)
    above, below = scores.min(axis=0) - flat_from, -flat_from - scores.max(axis=0)
    return replace(tree, b=tree.b - np.maximum(above, 0.0) + np.maximum(below, 0.0))


def farthest_distances(X: FloatArray, distance: str = "euclidean") -> FloatArray:
    """Return the (n,) distances of samples to the one farthest from each, in scipy's metric of this name."""
    parts = [cdist(X[start : start + CHUNK], X, distance).max(axis=1) for start in range(0, len(X), CHUNK)]
    return np.concatenate(parts)


def at_nodes(M: BigM, nodes: Nodes) -> BigM:
    """Return the big-Ms of some nodes, where they differ by node."""
    return M if np.ndim(M) == 0 or np.shape(M)[1] == 1 else np.asarray(M)[:, np.asarray(nodes)]
