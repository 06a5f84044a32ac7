r"""Compiled: leaves that predict a linear function, by their sums alone (Dunn 2018, equations 5.7 to 5.13).

With :math:`\theta` half the cost of the coefficients' sizes, a leaf with the samples S costs

.. math::

    \min_{\beta, \beta_0} \sum_{i \in S} (y_i - \beta_0 - \beta^\top x_i)^2 + 2 \theta \|\beta\|_1
    = \min_\beta\; \bar q - 2 \beta^\top \bar r + \beta^\top \bar G \beta + 2 \theta \|\beta\|_1

with :math:`\bar G = \sum x x^\top - s s^\top / n`, :math:`\bar r = \sum x y - s \sum y / n`, :math:`s = \sum x` and
:math:`\bar q` the squared loss of the mean. So a sample that moves changes sums, and cyclic coordinate descent begins
with the coefficients that the leaf had before; its work does not depend on the number of samples.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.searches import kernel

#: Kind of loss, beside those of :mod:`mipforest.searches.exact.losses`. Sums of a leaf: n, y, y^2, x (p), x y (p),
#: x x' (p, p); after them its coefficients (p), and half the slope of the loss along each (p).
LINEAR = 4

#: Share of the loss of one leaf up to which values are exact; improvements below it do not count.
ACCURACY = 1e-6

#: Rounds over all coefficients at most, and the squared step, as a share of the leaf's loss, that ends them.
_ROUNDS, _STEP = 200, 1e-9

#: Less weight than this is what rounding leaves of none.
_EMPTY = 1e-9

#: A feature whose variance is below this is constant in the leaf, up to rounding.
_CONSTANT = 1e-10


@kernel
def lasso_cost(theta: float, total: FloatArray) -> float:
    """Return what a linear leaf costs by its sums; its coefficients are brought up to date behind them."""
    p = int(np.sqrt(len(total) + 1.0) + 0.5) - 2  # there are (p + 1) (p + 3) numbers
    n, y = total[0], total[1]
    if n <= _EMPTY:
        return 0.0
    constant = max(0.0, total[2] - y * y / n)
    x, xy, xx = total[3 : 3 + p], total[3 + p : 3 + 2 * p], total[3 + 2 * p : 3 + 2 * p + p * p]
    beta, slope = total[len(total) - 2 * p : len(total) - p], total[len(total) - p :]
    for j in range(p):
        slope[j] = xy[j] - x[j] * y / n
        for k in range(p):
            if beta[k] != 0.0:
                slope[j] -= (xx[j * p + k] - x[j] * x[k] / n) * beta[k]
    for _ in range(_ROUNDS):
        largest = 0.0
        for j in range(p):
            curvature, new = xx[j * p + j] - x[j] * x[j] / n, 0.0
            if curvature > _CONSTANT * n:
                z = slope[j] + curvature * beta[j]
                new = max(0.0, abs(z) - theta) / curvature
                if z < 0.0:
                    new = -new
            change = new - beta[j]
            if change != 0.0:
                beta[j] = new
                for k in range(p):
                    slope[k] -= change * (xx[j * p + k] - x[j] * x[k] / n)
                largest = max(largest, change * change * curvature)
        if largest <= _STEP * constant:
            break
    value = constant
    for j in range(p):
        if beta[j] != 0.0:
            value += 2.0 * theta * abs(beta[j]) - beta[j] * (xy[j] - x[j] * y / n + slope[j])
    return float(min(constant, max(0.0, value)))
