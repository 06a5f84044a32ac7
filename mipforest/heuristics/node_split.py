r"""The best split of one node under the objective of a tree of linear classifiers: exact, smoothed, of few features.

.. math::

    \min_{w, b}\; \Omega(w) + C \sum_i n_i f(y_i (w^\top x_i + b))

with sample weights n, a norm and a convex piecewise-linear loss. For MARGOT these are half the squared Euclidean norm
and the hinge, a soft-margin support vector machine. A node above the last level also has to keep its samples' sides:
``w.x_i + b >= 0`` to the right, ``w.x_i + b <= -epsilon`` to the left (D'Onofrio et al. 2024, section 3).

**Many samples.** The exact problem takes time quadratic in n for the l1 norm (a linear programme: 1 s for 1000
samples, over a minute for 10,000), and seconds for the other norm. :func:`smoothed_split`, with a smooth loss in the
place of the piecewise-linear one, is linear in n: 0.05 s for 10,000 samples of 20 features, with a value within 0.1% of
the best one. It also brings a lower bound.

**Few features.** Hard: at most ``budget`` non-zero weights. Soft: the objective pays
``alpha max(0, nonzeros - budget)`` (D'Onofrio et al. 2024, section 4). :func:`search_features` ranks features by
recursive elimination (Guyon et al. 2002: drop the smallest weight, refit) and then exchanges single features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import SolverError
from mipforest.model import Model
from mipforest.objectives.branches import HALF_SQUARED_L2, HINGE, L1, Norm, PiecewiseLinearLoss
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.solution import Status
from mipforest.trees.sides import INTERIOR_RESIDUE, clear_residue, keep_sides

#: An exchange of features lowers the value by this share at least: rounding alone could swap them for ever.
LEAST_GAIN = 1e-9

#: Width over which the corners of a loss are rounded, in margins: the value is within 0.1% of the best (at 0.2: 0.5%).
SMOOTHING = 0.05

#: Most iterations of the smooth problem: about a second for 10,000 samples of 20 features.
SMOOTH_ITERATIONS = 200

#: Slope of the objective at which it ends: by this share the bound falls short for the l1 norm, whose slope is 1.
SMOOTH_SLOPE = 1e-3


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
        """Return the (n,) scores ``w.x + b``."""
        return X @ self.w + self.b


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
    The best split, or ``None`` if no hyperplane keeps the sides, none was found in time, or the solver failed.
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
    try:
        solution = get_solver(solver).solve(form, SolveSettings(time_limit=time_limit))
    except SolverError:  # a penalty beyond the solver's arithmetic
        return None
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


def smoothed_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    *,
    weight: FloatArray | None = None,
    features: IntArray | None = None,
    bias_if_empty: float = 1.0,
    loss: PiecewiseLinearLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
) -> tuple[Split, float]:
    r"""Solve a node's problem, sides free, with a smooth loss.

    The largest of the lines becomes :math:`\mu \log \sum_k e^{(a_k + d_k v) / \mu}`, which L-BFGS-B minimises.

    *The bound.* With the weights of this soft maximum at the solution, every sample's loss is at least a mean of its
    lines, :math:`f(v_i) \ge A_i + D_i v_i`, everywhere; so the objective is at least :math:`\Omega(w) + C \sum_i A_i +
    w^\top g + b\, C \sum_i y_i D_i` with :math:`g = C \sum_i y_i D_i x_i`. Moving weight to the line 0, of one
    class, makes the last sum 0; for the l1 norm, of all samples, makes :math:`\|g\|_\infty \le 1`. What is left is at
    least :math:`C \sum_i A_i` for the l1 norm, and :math:`\tfrac12 \|g\|^2` less for half the squared Euclidean one.
    With weights of samples, :math:`A_i` and :math:`D_i` stand for these times the weight.

    Parameters
    ----------
    X, sign, C, weight, features, bias_if_empty, loss, norm
        As for :func:`margin_split`.

    Returns
    -------
    split
        With its exact value.
    bound
        The value of every split is at least this; 0 without a norm.
    """
    constant = constant_split(sign, None, X.shape[1], bias_if_empty, loss.flat_from)
    if constant is not None:
        return constant, 0.0
    used = np.arange(X.shape[1]) if features is None else features
    n = np.ones(len(sign)) if weight is None else weight
    chosen, p, total = X[:, used], len(used), C * float(n.sum())
    intercepts, slopes = np.append(loss.intercepts, 0.0), np.append(loss.slopes, 0.0)

    def softened(w: FloatArray, b: float) -> tuple[float, FloatArray]:
        """Return the value of the smooth loss, and (K, n) weights of its lines."""
        lines = intercepts[:, None] + slopes[:, None] * (sign * (chosen @ w + b))
        largest = lines.max(axis=0)
        weights = np.exp((lines - largest) / SMOOTHING)
        sums = weights.sum(axis=0)
        return C * weighted_sum(largest + SMOOTHING * np.log(sums), n), weights / sums

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        value, weights = softened(parts[:p] - parts[p : 2 * p], parts[-1])
        pull = C * n * sign * (slopes @ weights)
        slope = chosen.T @ pull
        charge, charge_slopes = norm.of_parts(parts[:-1])
        gradient = np.concatenate([slope + charge_slopes[:p], -slope + charge_slopes[p:], [pull.sum()]])
        return (value + charge) / total, gradient / total

    bounds = [(0.0, None)] * (2 * p) + [(None, None)]
    options = {
        "maxiter": SMOOTH_ITERATIONS,
        "maxfun": 2 * SMOOTH_ITERATIONS,
        "ftol": 0.0,
        "gtol": SMOOTH_SLOPE / total,
    }
    from scipy.optimize import minimize  # late: slow to import, and most runs do without

    found = minimize(
        objective, np.zeros(2 * p + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    w, b = found.x[:p] - found.x[p : 2 * p], float(found.x[-1])
    value = norm.value(w) + C * weighted_sum(loss.values(chosen @ w + b, sign), weight)

    _, weights = softened(w, b)
    A, D = n * (intercepts @ weights), n * (slopes @ weights)
    pulls = np.where(sign > 0, -D[sign > 0].sum(), -D[sign < 0].sum())
    share = pulls.min() / np.maximum(pulls, np.finfo(float).tiny)
    g = C * chosen.T @ (sign * D * share)
    if norm is L1:
        bound = C * float((A * share).sum()) / max(1.0, float(np.abs(g).max()))
    else:
        bound = C * float((A * share).sum()) - 0.5 * float(g @ g) if norm is HALF_SQUARED_L2 else 0.0
    spread = np.zeros(X.shape[1])
    spread[used] = w
    return Split(spread, b, value), max(0.0, bound)


# ------------------------------------------------------------------ few features


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
    budget
        Number of features that are free of cost, at least 1.
    alpha
        Cost of every feature above the budget; ``None`` forbids them.
    quick
        Halve the features at a time and exchange none: a tenth of the time, for one of many trials.
    hurry
        Asked between two fits: whether to drop all features above the budget at once, and to exchange none.

    Returns
    -------
    Split
        Within the budget (hard) or with its penalty in ``value`` (soft); ``None`` where none was found.
    """

    def priced(features: IntArray) -> Split | None:
        split = fit(features)
        return None if split is None else with_penalty(split, budget, alpha)

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


def with_penalty(split: Split, budget: int, alpha: float | None) -> Split:
    """Clear negligible weights and add the cost of features above the budget."""
    largest = np.abs(split.w).max(initial=0.0)
    w = np.where(np.abs(split.w) > INTERIOR_RESIDUE * largest, split.w, 0.0)
    excess = max(0, int((w != 0).sum()) - budget)
    return replace(split, w=w, value=split.value + (0.0 if alpha is None else alpha * excess))
