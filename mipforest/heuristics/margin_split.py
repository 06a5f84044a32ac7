r"""The best split of one node under the objective of a tree of linear classifiers.

.. math::

    \min_{w, b}\; \Omega(w) + C \sum_i f(y_i (w^\top x_i + b))

with a norm and a convex piecewise-linear loss. For MARGOT these are half the squared Euclidean norm and the hinge,
a soft-margin support vector machine. A node above the last level also has to keep its samples' sides:
``w.x_i + b >= 0`` to the right, ``w.x_i + b <= -epsilon`` to the left (D'Onofrio et al. 2024, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.branch_losses import HINGE, PiecewiseLinearLoss
from mipforest.heuristics.norms import HALF_SQUARED_L2, Norm
from mipforest.model import Model
from mipforest.settings import SolveSettings
from mipforest.solvers.registry import get_solver
from mipforest.solvers.solution import Status

#: Scores this close to a side count as on it; far above rounding errors, far below any epsilon in use.
SIDE_TOLERANCE = 1e-9

#: Weights up to this size, absolutely and relative to the largest, are what the interior-point solver leaves
#: of 0.
RESIDUE = 1e-8


@dataclass(frozen=True, eq=False)
class Split:
    """A hyperplane and its share of the objective.

    Attributes
    ----------
    w, b
        (p,) weights and the bias.
    value
        The charge for the weights, plus C times the loss (plus a penalty on features, where the node has one).
    """

    w: FloatArray
    b: float
    value: float

    def scores(self, X: FloatArray) -> FloatArray:
        """(n,) scores ``w.x + b``."""
        return X @ self.w + self.b


def margin_value(w: FloatArray, b: float, X: FloatArray, sign: FloatArray, C: float) -> float:
    """``1/2 |w|^2 + C sum_i max(0, 1 - y_i (w.x_i + b))`` of a split on the samples that reach it."""
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - sign * (X @ w + b)).sum())


def margin_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    right: BoolArray | None = None,
    epsilon: float = 0.0,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
) -> Split | None:
    """Solve a node's problem exactly.

    Parameters
    ----------
    X, sign
        (n, p) samples that reach the node, and their labels, -1 or +1.
    C
        Penalty of the loss, above 0.
    right
        (n,) side each sample must keep; ``None`` where sides are free (the last level, or a plain SVM).
    epsilon
        Gap that stands for the strict inequality on the left.
    features
        Features the split may use; all when left out.
    bias_if_empty
        The bias (+1 or -1) of a node that no sample reaches.
    loss, norm
        What the objective charges for margins and for weights.

    Returns
    -------
    The best split, or ``None`` if no hyperplane keeps the sides.
    """
    constant = _constant_split(sign, right, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant
    used = np.arange(X.shape[1]) if features is None else features
    m = Model("node")
    w = m.continuous("w", len(used))
    b = m.continuous("b")
    xi = m.nonnegative("xi", len(sign))
    score = X[:, used] @ w + b
    m.minimize(norm.declare(m, w) + C * xi.sum())
    for k, (intercept, slope) in enumerate(zip(loss.intercepts, loss.slopes, strict=True)):
        m.add(f"line_{k}", -slope * sign * score >= intercept - xi)
    if right is not None:
        m.add("right", score[right] >= 0)
        m.add("left", score[~right] <= -epsilon)
    form = m.matrix()
    solver = "clarabel" if form.is_quadratic else "highs"
    solution = get_solver(solver).solve(form, SolveSettings())
    if solution.x is None or solution.status is not Status.OPTIMAL:
        return None
    weights = np.zeros(X.shape[1])
    found = solution["w"]
    residue = np.abs(found) <= RESIDUE * max(1.0, np.abs(found).max(initial=0.0))
    weights[used] = np.where(residue, 0.0, found)
    bias = float(solution["b"])
    if right is not None:
        bias = keep_sides(X @ weights + bias, right, bias)
    return Split(weights, bias, norm.value(weights) + C * float(loss.values(X @ weights + bias, sign).sum()))


def _constant_split(
    sign: FloatArray, right: BoolArray | None, p: int, bias_if_empty: float, flat_from: float
) -> Split | None:
    """Give ``w = 0`` and a bias free of cost, where one class alone reaches the node (and goes its way)."""
    if len(sign) == 0:
        return Split(np.zeros(p), bias_if_empty, 0.0)
    if (sign == sign[0]).all() and (right is None or (right == (sign > 0)).all()):
        return Split(np.zeros(p), flat_from * float(sign[0]), 0.0)
    return None


def keep_sides(scores: FloatArray, right: BoolArray, b: float) -> float:
    """Move a bias by a rounding error: all samples that must go right then do, however scores are summed."""
    lowest = float(scores[right].min(initial=np.inf))
    return b if lowest >= SIDE_TOLERANCE else b - lowest + SIDE_TOLERANCE


def into_a_gap(scores: FloatArray, epsilon: float) -> float:
    """Give the smallest shift of the bias after which no score lies strictly between ``-epsilon`` and 0.

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
