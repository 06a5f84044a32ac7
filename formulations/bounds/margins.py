r"""Big-Ms of the trees of linear classifiers: constants of the papers, or bounds proven from a feasible tree.

**Proof of the bounds** (variant ``valid``). The objective charges at every branch node a norm of the weights and C
times a loss of the scores :math:`s_i = w_t^\top x_i + b_t`, each times its sample's weight; all terms are nonnegative.
Let UB be the value of a
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

**With constraints that a user adds.** All steps hold for solutions of value at most UB, so let UB be the value of a
solution that satisfies the constraints: the limits are computed anew from it.

- Step 1 reads the objective alone: added rows take nothing from it, whatever they read. V stays a lower bound, as they
  only take solutions away.
- Step 2 moves ``b_t`` and nothing else: the slacks stay, and are still at least the losses. So it holds for every
  node whose ``b_t`` no added row or bound reads, also where they read w, xi, z, or what follows from these and from
  the sides: features, leaves, predictions. The rows that tell the side of a sample at the last level
  (:class:`~formulations.routing.linear.LinearTreeExpressions`) read ``b_t``, and allow the move: it changes no side,
  and scores on the left stay at :math:`-\varepsilon` or below.
- At a node whose ``b_t`` *is* read, step 2 is left out. Let :math:`\beta_t` be the greatest :math:`|b_t|` for which
  some w with :math:`\|w_t\| \le R_t`, and some values of all other blocks within their bounds, satisfy the added
  rows: a linear programme. Then :math:`|s_i| \le R_t \|x_i\|_* + \beta_t`, in the place of step 3. A fixed split,
  :math:`b_t = -\theta w_{tj}`, has :math:`\beta_t = |\theta| R_t`. Where :math:`\beta_t` is infinite nothing is proven.
- Rows of the model that a user removes void V, or the loss itself: nothing is proven.

**The constants of the papers** (variant ``paper``) cut off nothing if they are at least these limits, for UB the
value of a solution: then an optimum of the model is one of the definition. At depth one, without a budget of features,
a convex loss has rows without constants. Else an optimum is one for these constants only.

Without a norm, or for a node whose weights are not charged, step 1 bounds nothing: there is no variant ``valid`` then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from mipforest.arrays import BoolArray, FloatArray
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE, BigM, BranchLoss, Norm
from mipforest.trees import Tree
from mipforest.trees.topology import Nodes

#: UB and V are values in floating-point numbers: allow for their rounding.
ROUNDING = 1e-6

#: Most samples for which the distance to the farthest other one is exact: that takes all distances, half a second.
#: With more it is bounded by the distance to the farthest corner of their box, and by way of their midpoint.
MOST_DISTANCES = 3000

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
        Bound on a weight whose feature is switched on: a number, (|B|, 1) or (|B|, p).
    weight, bias
        (|B|, 1) or (|B|, p), and (|B|,) bounds on ``|w|`` and ``|b|``; infinite in the papers' models.
    upper_bound
        Value of the tree that the limits were proven from; infinite where nothing was assumed.
    excluded
        (n, |B''|) last branch nodes that a sample cannot reach, in variant ``tight``.
    """

    M_xi: tuple[BigM, ...] = (50.0,)
    M_right: BigM = 100.0
    M_left: BigM = 100.0
    M_w: BigM = 50.0
    weight: BigM = np.inf
    bias: BigM = np.inf
    upper_bound: float = np.inf
    excluded: BoolArray | None = None


def proven_limits(
    X: FloatArray,
    epsilon: float,
    upper_bound: float,
    *,
    n_branches: int = 1,
    root_share: float = 0.0,
    loss: BranchLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
    bias_read: FloatArray | None = None,
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
    bias_read
        (n_branches,) bounds on ``|b|`` at nodes whose bias added constraints read, NaN at all others; ``None``: they
        read none.
    """
    radius = weight_limits(upper_bound, n_branches=n_branches, root_share=root_share, norm=norm)
    length = norm.dual(X)[:, None]
    # |w.x_i + b| is at most this.
    score = loss.flat_from + farthest_distances(X, norm.dual_distance)[:, None] * radius
    # |b| <= |score_i| + |w| |x_i| for every sample; the best one counts.
    bias = (score + length * radius).min(axis=0)
    if bias_read is not None:
        read = np.isfinite(bias_read)
        bias = np.where(read, bias_read, bias)
        score = np.where(read, length * radius + bias, score)
    return MarginLimits(
        M_xi=loss.big_ms(score),
        M_right=score,
        M_left=score + epsilon,
        M_w=radius[:, None],
        weight=radius[:, None],
        bias=bias,
        upper_bound=upper_bound,
    )


def weight_limits(upper_bound: float, *, n_branches: int, root_share: float, norm: Norm) -> FloatArray:
    """Return (n_branches,) bounds on the norms of weights, step 1 of the proof; parameters as for `proven_limits`."""
    charge = np.full(n_branches, upper_bound * (1 + ROUNDING))
    charge[1:] = np.maximum(charge[1:] - root_share * (1 - ROUNDING), 0.0)
    return norm.radius(charge)


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
    """Return the (n,) distances of samples to the one farthest from each, in scipy's metric of this name.

    Of more than :data:`MOST_DISTANCES` samples, upper bounds on them.
    """
    if len(X) > MOST_DISTANCES:
        least, greatest = X.min(axis=0), X.max(axis=0)
        corner = np.where(greatest - X > X - least, greatest, least)
        middle = (least + greatest)[None] / 2
        from_middle = cdist(X, middle, distance)[:, 0]
        to_corner = cdist(np.abs(X - corner), np.zeros((1, X.shape[1])), distance)[:, 0]
        bounds: FloatArray = np.minimum(to_corner, from_middle + from_middle.max()) * (1 + ROUNDING)
        return bounds
    parts = [cdist(X[start : start + CHUNK], X, distance).max(axis=1) for start in range(0, len(X), CHUNK)]
    return np.concatenate(parts)


def at_nodes(M: BigM, nodes: Nodes) -> BigM:
    """Return the big-Ms of some nodes, where they differ by node."""
    return M if np.ndim(M) == 0 or np.shape(M)[1] == 1 else np.asarray(M)[:, np.asarray(nodes)]
