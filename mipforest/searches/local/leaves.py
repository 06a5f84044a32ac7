r"""Compiled: leaves that predict a linear function, or prescribe a treatment, by their sums alone.

**Linear** (Dunn 2018, equations 5.7 to 5.13). With :math:`\theta` half the cost of the coefficients' sizes, a leaf with
the samples S costs

.. math::

    \min_{\beta, \beta_0} \sum_{i \in S} (y_i - \beta_0 - \beta^\top x_i)^2 + 2 \theta \|\beta\|_1
    = \min_\beta\; \bar q - 2 \beta^\top \bar r + \beta^\top \bar G \beta + 2 \theta \|\beta\|_1

with :math:`\bar G = \sum x x^\top - s s^\top / n`, :math:`\bar r = \sum x y - s \sum y / n`, :math:`s = \sum x` and
:math:`\bar q` the squared loss of the mean. So a sample that moves changes sums, and cyclic coordinate descent begins
with the coefficients that the leaf had before; its work does not depend on the number of samples.

**Prescriptive** (Dunn 2018, equation 6.5). With sums :math:`n_t, s_t, q_t` of 1, y and y^2 over a leaf's samples of
treatment t, and :math:`n = \sum_t n_t`,

.. math::  \mu \, n \min_{t: n_t \ge n_{treatment}} \frac{s_t}{n_t} + (1 - \mu) \sum_t (q_t - s_t^2 / n_t).

Weights of samples are in all sums; :math:`n_{treatment}` alone counts samples. So a sample that moves changes the sums
of one treatment in two leaves. With linear estimates :math:`\hat y_t = \beta_{0t} + \beta_t^\top x`, the second sum is
that of linear leaves, and :math:`s_t / n_t` in the first is the estimate at the mean of **all** samples of the leaf.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.searches import kernel

#: Kind of loss of linear leaves. Sums of a leaf: n, y, y^2, x (p), x y (p),
#: x x' (p, p); after them its coefficients (p), and half the slope of the loss along each (p).
LINEAR = 8

#: Of trees that grow: leaves that will be linear are constant, by the first three of their statistics.
GROWN = 9

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


#: Kind of loss, plus the number m of treatments. Statistics of a sample, all over ``n_treatment``: m blocks of equal
#: length, all 0 but that of its treatment; m counts, 1 for its treatment, so that one that enough samples had sums up
#: to 1; then three numbers. A block has the weight times 1, y, y^2 and, with linear estimates, what
#: :data:`~mipforest.searches.local.leaves.LINEAR` has, the coefficients and slopes included, which are kept where a
#: sample adds 0. The three numbers are what a sample costs in a leaf that may prescribe nothing, and the weight times
#: half the cost of coefficients and times mu.
PRESCRIPTION = 16

#: A treatment is prescribed from this count on; less than the second is what rounding leaves of none.
ENOUGH, NONE = 1.0 - 1e-9, 1e-12


@kernel
def block_length(treatments: int, total: FloatArray) -> int:
    """Return the length of the block of a treatment, by the number of statistics."""
    return (len(total) - 3) // treatments - 1


@kernel
def may_prescribe(treatments: int, total: FloatArray) -> bool:
    """Return whether enough samples of a leaf had some treatment, by its sums."""
    counts, most = treatments * block_length(treatments, total), 0.0
    for t in range(treatments):
        most = max(most, total[counts + t])
    return bool(most >= ENOUGH)


@kernel
def prescription_cost(treatments: int, linear: bool, total: FloatArray) -> float:
    """Return what a leaf is charged by its sums; with constant estimates unless they are to be ``linear``."""
    V = len(total)
    block = block_length(treatments, total)
    counts, count, theta = treatments * block, 0.0, 0.0
    p = int(np.sqrt(block + 1.0) + 0.5) - 2  # a block has (p + 1) (p + 3) numbers
    n, best, loss, enough = 0.0, np.inf, 0.0, False
    for t in range(treatments):
        n += total[t * block]
        count += total[counts + t]
    if count <= NONE:
        return 0.0
    mu = total[V - 1] / n
    theta = total[V - 2] / n
    for t in range(treatments):
        a = t * block
        size = total[a]
        if total[counts + t] <= NONE:
            continue
        mean = total[a + 1] / size
        if p == 0 or not linear:
            loss += max(0.0, total[a + 2] - mean * total[a + 1])
        else:
            loss += lasso_cost(theta, total[a : a + block])
        if total[counts + t] < ENOUGH:
            continue
        if p > 0 and linear:
            first = a + block - 2 * p  # of the coefficients
            for j in range(p):
                if total[first + j] != 0.0:
                    x = 0.0
                    for other in range(treatments):
                        x += total[other * block + 3 + j]
                    mean += total[first + j] * (x / n - total[a + 3 + j] / size)
        enough = True
        best = min(best, mean)
    if not enough:
        return float(total[V - 3])
    return float(mu * n * best + (1.0 - mu) * loss)


def statistics(
    loss: PrescriptionLoss,
    y: FloatArray,
    weight: FloatArray,
    X: FloatArray | None = None,
    coefficient_cost: float = 0.0,
) -> FloatArray:
    """Return the (n, V) statistics of samples.

    Parameters
    ----------
    loss
        What leaves lose.
    y, weight
        (n,) outcomes, at least 0, and weights of the samples.
    X, coefficient_cost
        (n, p) features of linear estimates, and the cost of coefficients by the sum of their sizes; constant estimates
        unless given.
    """
    n, m, mu, n_treatment = len(y), loss.n_treatments, loss.mu, loss.n_treatment
    block = [np.ones(n), y, y**2]
    if X is not None:
        products = (X[:, :, None] * X[:, None, :]).reshape(n, -1)
        block += [*X.T, *(y[:, None] * X).T, *products.T, *np.zeros((2 * X.shape[1], n))]
    own, had = weight[:, None] * np.column_stack(block), loss.treatment[:, None] == np.arange(m)
    blocks = [np.where(had[:, [t]], own, 0.0) for t in range(m)]
    # No tree without such a leaf is charged more than this: the tree without splits is not.
    error = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    spread = mu * float(weight.sum()) * float(y.max()) + (1 - mu) * error + float(np.ptp(y))
    # Squared errors are summed over ``n_treatment``, and so the coefficients cost less.
    costs = [np.full(n, spread), 0.5 * coefficient_cost / n_treatment * weight, mu * weight]
    return np.ascontiguousarray(np.column_stack([*blocks, had, *costs]) / n_treatment)
