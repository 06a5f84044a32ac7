r"""The best split of one node under the objective of a tree of linear classifiers, with all features or with few.

.. math::

    \min_{w, b}\; \Omega(w) + C \sum_i n_i f(y_i (w^\top x_i + b))

with sample weights n, a norm and a convex piecewise-linear loss. For MARGOT these are half the squared Euclidean norm
and the hinge, a soft-margin support vector machine. A node above the last level also has to keep its samples' sides:
``w.x_i + b >= 0`` to the right, ``w.x_i + b <= -epsilon`` to the left (D'Onofrio et al. 2024, section 3).

**Few features.** Hard: at most ``budget`` non-zero weights. Soft: the objective pays
``alpha max(0, nonzeros - budget)`` (D'Onofrio et al. 2024, section 4). The heuristic ranks features by recursive
elimination (Guyon et al. 2002: drop the smallest weight, refit) and then exchanges single features;
:func:`exact_sparse_split` solves the node's mixed-integer model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.model import Model, sum_squares
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE, Norm, PiecewiseLinearLoss
from mipforest.settings import SolveSettings
from mipforest.solvers.registry import get_solver
from mipforest.solvers.solution import Status
from mipforest.solving import solve
from mipforest.trees.sides import INTERIOR_RESIDUE, clear_residue, keep_sides

#: An exchange of features lowers the value by this share at least: rounding alone could swap them for ever.
LEAST_GAIN = 1e-9


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


def margin_value(
    w: FloatArray, b: float, X: FloatArray, sign: FloatArray, C: float, weight: FloatArray | None = None
) -> float:
    """``1/2 |w|^2 + C sum_i n_i max(0, 1 - y_i (w.x_i + b))`` of a split on samples of weights n_i (1 unless given)."""
    losses = np.maximum(0.0, 1.0 - sign * (X @ w + b))
    return float(0.5 * w @ w + C * weighted_sum(losses, weight))


def margin_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    weight: FloatArray | None = None,
    right: BoolArray | None = None,
    epsilon: float = 0.0,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
    time_limit: float | None = None,
) -> Split | None:
    """Solve a node's problem exactly.

    Parameters
    ----------
    X, sign
        (n, p) samples that reach the node, and their labels, -1 or +1.
    C
        Penalty of the loss, above 0.
    weight
        (n,) weights of the samples' losses; 1 unless given.
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
    time_limit
        Seconds.

    Returns
    -------
    The best split, or ``None`` if no hyperplane keeps the sides, or none was found in time.
    """
    constant = constant_split(sign, right, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant
    used = np.arange(X.shape[1]) if features is None else features
    m = Model("node")
    w = m.continuous("w", len(used))
    b = m.continuous("b")
    xi = m.nonnegative("xi", len(sign))
    score = X[:, used] @ w + b
    m.minimize(norm.declare(m, w) + C * (xi.sum() if weight is None else weight @ xi))
    for k, (intercept, slope) in enumerate(zip(loss.intercepts, loss.slopes, strict=True)):
        m.add(f"line_{k}", -slope * sign * score >= intercept - xi)
    if right is not None:
        m.add("right", score[right] >= 0)
        m.add("left", score[~right] <= -epsilon)
    form = m.matrix()
    solver = "clarabel" if form.is_quadratic else "highs"
    solution = get_solver(solver).solve(form, SolveSettings(time_limit=time_limit))
    # LIMIT says that numbers are too small for a proof; the value below is that of the definition.
    if solution.x is None or solution.status not in (Status.OPTIMAL, Status.LIMIT):
        return None
    weights = np.zeros(X.shape[1])
    weights[used] = solution["w"]
    weights = clear_residue(weights[None], X)[
        0
    ]  # by the rule of decoded trees, which use the same features then
    bias = float(solution["b"])
    if right is not None:
        bias = keep_sides(X, weights, right, bias)
    losses = weighted_sum(loss.values(X @ weights + bias, sign), weight)
    return Split(weights, bias, norm.value(weights) + C * losses)


def weighted_sum(losses: FloatArray, weight: FloatArray | None) -> float:
    """Return the sum of losses (n,), each times its sample's weight (1 unless given)."""
    return float((losses if weight is None else weight * losses).sum())


def constant_split(
    sign: FloatArray, right: BoolArray | None, p: int, bias_if_empty: float, flat_from: float
) -> Split | None:
    """Return ``w = 0`` and a bias free of cost, where one class alone reaches the node (and goes its way)."""
    if len(sign) == 0:
        return Split(np.zeros(p), bias_if_empty, 0.0)
    if (sign == sign[0]).all() and (right is None or (right == (sign > 0)).all()):
        return Split(np.zeros(p), flat_from * float(sign[0]), 0.0)
    return None


def sparse_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    budget: int,
    alpha: float | None,
    *,
    weight: FloatArray | None = None,
    right: BoolArray | None = None,
    epsilon: float = 0.0,
    bias_if_empty: float = 1.0,
    quick: bool = False,
) -> Split | None:
    """Find a good split with few features.

    Parameters
    ----------
    X, sign, C, weight, right, epsilon, bias_if_empty
        As for :func:`~mipforest.heuristics.node_split.margin_split`.
    budget
        Number of features that are free of cost, at least 1.
    alpha
        Cost of every feature above the budget; ``None`` forbids them.
    quick
        Halve the features at a time and exchange none: a tenth of the time, for one of many trials.

    Returns
    -------
    A split within the budget (hard) or with its penalty in ``value`` (soft); ``None`` where none was found
    that keeps the sides.
    """

    def fit(features: IntArray) -> Split | None:
        return margin_split(
            X, sign, C,
            weight=weight, right=right, epsilon=epsilon, features=features, bias_if_empty=bias_if_empty,
        )  # fmt: skip

    return search_features(fit, X.shape[1], budget, alpha, quick=quick)


def search_features(
    fit: Callable[[IntArray], Split | None],
    p: int,
    budget: int,
    alpha: float | None,
    *,
    quick: bool = False,
    hurry: Callable[[], bool] = lambda: False,
) -> Split | None:
    """Find a good split with few features, given how to fit one to a set of features.

    Parameters
    ----------
    fit
        Returns the best split that uses only these features (ascending); ``None`` where there is none.
    p
        Number of features.
    budget, alpha, quick
        As for :func:`sparse_split`.
    hurry
        Asked between two fits: whether to drop all features above the budget at once, and to exchange none.
    """

    def priced(features: IntArray) -> Split | None:
        split = fit(features)
        return None if split is None else _with_penalty(split, budget, alpha)

    best = priced(np.arange(p))
    if best is None or not best.w.any():
        return best
    features = np.arange(p)
    if alpha is None and len(features) > budget:
        weights, best = best.w, None
    else:
        weights = best.w
    while len(features) > budget:
        n_dropped = len(features) - budget if hurry() else _to_drop(len(features), budget, quick)
        least_first = np.argsort(np.abs(weights[features]), kind="stable")
        features = np.sort(features[least_first[n_dropped:]])
        split = priced(features)
        if split is None:
            break
        weights = split.w
        allowed = alpha is not None or len(features) <= budget
        if allowed and (best is None or split.value < best.value):
            best = split
    return best if best is None or quick else _exchange(best, priced, hurry)


def _to_drop(count: int, budget: int, quick: bool) -> int:
    """Count the features to drop: a tenth (half, if quick) while there are many, one near the budget."""
    return max(1, min(count // (2 if quick else 10), count - budget))


def _exchange(split: Split, fit: Callable[[IntArray], Split | None], hurry: Callable[[], bool]) -> Split:
    """Swap the weakest used feature for each unused one while that helps."""
    improved = True
    while improved:
        improved = False
        used = np.flatnonzero(split.w)
        weakest = used[np.argsort(np.abs(split.w[used]))][:1]
        kept = np.setdiff1d(used, weakest)
        for candidate in np.setdiff1d(np.arange(len(split.w)), used):
            if hurry():
                return split
            other = fit(np.sort(np.append(kept, candidate)))
            if other is not None and other.value < split.value * (1 - LEAST_GAIN):
                split, improved = other, True
                break
    return split


def exact_sparse_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    budget: int,
    alpha: float | None,
    *,
    time_limit: float,
    weight: FloatArray | None = None,
    bias_if_empty: float = 1.0,
) -> Split:
    """Solve the node's mixed-integer model (WS-SVM of D'Onofrio et al. 2024, section 5), sides free.

    Parameters
    ----------
    X, sign, C, budget, alpha, weight, bias_if_empty
        As for :func:`sparse_split`.
    time_limit
        Seconds; the best split known then is given back.
    """
    known = sparse_split(X, sign, C, budget, alpha, weight=weight, bias_if_empty=bias_if_empty)
    assert known is not None  # with free sides every support has a split
    if known.value == 0 or X.shape[1] <= budget:
        return known
    n, p = X.shape
    M_w = np.sqrt(2 * known.value)  # 1/2 |w|^2 is at most the value of any known split
    m = Model("sparse node")
    w = m.continuous("w", p, lower=-M_w, upper=M_w)
    b = m.continuous("b")
    xi = m.nonnegative("xi", n)
    s = m.binary("s", p)
    excess = m.nonnegative("u", upper=0.0 if alpha is None else np.inf)
    losses = xi.sum() if weight is None else weight @ xi
    m.minimize(0.5 * sum_squares(w) + C * losses + (alpha or 0.0) * excess)
    m.add("margin", sign * (X @ w + b) >= 1 - xi)
    m.add("above", w <= M_w * s)
    m.add("below", w >= -M_w * s)
    m.add("budget", s.sum() - excess <= budget)
    slack = np.maximum(0.0, 1 - sign * known.scores(X))
    used = (known.w != 0).astype(float)
    m.set_start(
        {
            "w": known.w,
            "b": np.array(known.b),
            "xi": slack,
            "s": used,
            "u": np.array(max(0.0, used.sum() - budget)),
        }
    )
    solution = solve(m, "highs", time_limit=time_limit)
    if not solution.found:
        return known
    weights = np.where(solution["s"] > 0.5, solution["w"], 0.0)
    bias = float(solution["b"])
    found = _with_penalty(
        Split(weights, bias, margin_value(weights, bias, X, sign, C, weight)), budget, alpha
    )
    return min(known, found, key=lambda split: split.value)


def _with_penalty(split: Split, budget: int, alpha: float | None) -> Split:
    """Clear negligible weights and add the cost of features above the budget."""
    largest = np.abs(split.w).max(initial=0.0)
    w = np.where(np.abs(split.w) > INTERIOR_RESIDUE * largest, split.w, 0.0)
    excess = max(0, int((w != 0).sum()) - budget)
    return replace(split, w=w, value=split.value + (0.0 if alpha is None else alpha * excess))
