r"""The best split of one node with few features: a budget that must hold, or one whose excess costs.

Hard: at most ``budget`` non-zero weights. Soft: the objective pays ``alpha max(0, nonzeros - budget)``
(D'Onofrio et al. 2024, section 4). The heuristic ranks features by recursive elimination (Guyon et al.
2002: drop the smallest weight, refit) and then exchanges single features; :func:`exact_sparse_split`
solves the node's mixed-integer model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.margin_split import Split, margin_split, margin_value
from mipforest.model import Model, sum_squares
from mipforest.solving import solve

#: A weight below this share of the largest is taken as zero: far above an interior-point solver's residue.
NEGLIGIBLE_WEIGHT = 1e-7


def sparse_split(
    X: FloatArray,
    sign: FloatArray,
    C: float,
    budget: int,
    alpha: float | None,
    *,
    right: BoolArray | None = None,
    epsilon: float = 0.0,
    bias_if_empty: float = 1.0,
    quick: bool = False,
) -> Split | None:
    """Find a good split with few features.

    Parameters
    ----------
    X, sign, C, right, epsilon, bias_if_empty
        As for :func:`~mipforest.heuristics.margin_split.margin_split`.
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
            X, sign, C, right=right, epsilon=epsilon, features=features, bias_if_empty=bias_if_empty
        )

    return search_features(fit, X.shape[1], budget, alpha, quick=quick)


def search_features(
    fit: Callable[[IntArray], Split | None], p: int, budget: int, alpha: float | None, *, quick: bool = False
) -> Split | None:
    """Find a good split with few features, given how to fit one to a set of features.

    Parameters
    ----------
    fit
        Gives the best split that uses only these features (ascending); ``None`` where there is none.
    p
        Number of features.
    budget, alpha, quick
        As for :func:`sparse_split`.
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
        features = np.sort(
            features[
                np.argsort(np.abs(weights[features]), kind="stable")[_to_drop(len(features), budget, quick) :]
            ]
        )
        split = priced(features)
        if split is None:
            break
        weights = split.w
        allowed = alpha is not None or len(features) <= budget
        if allowed and (best is None or split.value < best.value):
            best = split
    return best if best is None or quick else _exchange(best, priced)


def _to_drop(count: int, budget: int, quick: bool) -> int:
    """Count the features to drop: a tenth (half, if quick) while there are many, one near the budget."""
    return max(1, min(count // (2 if quick else 10), count - budget))


def _exchange(split: Split, fit: Callable[[IntArray], Split | None]) -> Split:
    """Swap the weakest used feature for each unused one while that helps."""
    improved = True
    while improved:
        improved = False
        used = np.flatnonzero(split.w)
        weakest = used[np.argsort(np.abs(split.w[used]))][:1]
        kept = np.setdiff1d(used, weakest)
        for candidate in np.setdiff1d(np.arange(len(split.w)), used):
            other = fit(np.sort(np.append(kept, candidate)))
            if other is not None and other.value < split.value * (1 - 1e-9):
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
    bias_if_empty: float = 1.0,
) -> Split:
    """Solve the node's mixed-integer model (WS-SVM of D'Onofrio et al. 2024, section 5), sides free.

    Parameters
    ----------
    X, sign, C, budget, alpha, bias_if_empty
        As for :func:`sparse_split`.
    time_limit
        Seconds; the best split known then is given back.
    """
    known = sparse_split(X, sign, C, budget, alpha, bias_if_empty=bias_if_empty)
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
    m.minimize(0.5 * sum_squares(w) + C * xi.sum() + (alpha or 0.0) * excess)
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
    found = _with_penalty(Split(weights, bias, margin_value(weights, bias, X, sign, C)), budget, alpha)
    return min(known, found, key=lambda split: split.value)


def _with_penalty(split: Split, budget: int, alpha: float | None) -> Split:
    """Clear negligible weights and add the cost of features above the budget."""
    largest = np.abs(split.w).max(initial=0.0)
    w = np.where(np.abs(split.w) > NEGLIGIBLE_WEIGHT * largest, split.w, 0.0)
    excess = max(0, int((w != 0).sum()) - budget)
    return replace(split, w=w, value=split.value + (0.0 if alpha is None else alpha * excess))
