r"""The exact regularised logistic regression of one node.

.. math::  \min_{w, b}\; \Omega(w) + C \sum_i \log\bigl(1 + e^{-y_i (w^\top x_i + b)}\bigr)

with the norms of :mod:`mipforest.heuristics.norms`; the intercept is free of charge. The weights are the difference of
two nonnegative parts, so that the l1 norm is linear, and the smooth problem with bounds goes to L-BFGS-B (R. Byrd,
P. Lu, J. Nocedal, C. Zhu, SIAM J. Sci. Comput. 16, 1995), which stops at exact zeros. scikit-learn's solvers for the l1
norm either charge the intercept (liblinear) or approach the optimum too slowly to be called exact (saga).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from mipforest.arrays import FloatArray
from mipforest.heuristics.margin_split import Split
from mipforest.heuristics.norms import Norm

#: L-BFGS-B stops when no component of the projected gradient, relative to C times the number of samples, is larger.
GRADIENT_TOLERANCE = 1e-8

#: Most iterations. Problems of hundreds of samples take tens to hundreds; only one without an optimum,
#: as that of separable classes without a norm, runs on.
MOST_ITERATIONS = 5000


def logistic_value(w: FloatArray, b: float, X: FloatArray, sign: FloatArray, C: float, norm: Norm) -> float:
    """Objective of a split: the norm plus C times the log-loss of the samples that reach it."""
    return norm.value(w) + C * float(np.logaddexp(0.0, -sign * (X @ w + b)).sum())


def logistic_split(X: FloatArray, sign: FloatArray, C: float, norm: Norm) -> Split:
    """Fit a logistic regression.

    Parameters
    ----------
    X, sign
        (n, p) samples of both classes, and their labels, -1 or +1.
    C
        Penalty of the log-loss, above 0.
    norm
        What is charged for weights. Without a norm, separable classes have no optimum: the split where the
        iterations end is given back.

    Returns
    -------
    Split
        With the objective as its value.
    """
    p = X.shape[1]
    total = C * len(sign)

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        w, b = parts[:p] - parts[p : 2 * p], parts[-1]
        margin = sign * (X @ w + b)
        value = C * float(np.logaddexp(0.0, -margin).sum())
        pull = -C * sign * expit(-margin)
        slope = X.T @ pull
        charge, charge_slopes = norm.of_parts(parts[:-1])
        gradient = np.concatenate([slope, -slope, [pull.sum()]])
        gradient[:-1] += charge_slopes
        return (value + charge) / total, gradient / total

    found = minimize(
        objective,
        np.zeros(2 * p + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * (2 * p) + [(None, None)],
        options={
            "gtol": GRADIENT_TOLERANCE,
            "ftol": 0.0,
            "maxiter": MOST_ITERATIONS,
            "maxfun": 2 * MOST_ITERATIONS,
        },
    )
    w, b = found.x[:p] - found.x[p : 2 * p], float(found.x[-1])
    return Split(w, b, logistic_value(w, b, X, sign, C, norm))
