"""The best intercept of a score card, the least loss of its cells, and thresholds of few digits."""

from __future__ import annotations

from decimal import Decimal
from math import floor, log10

import numpy as np
from scipy.special import expit, xlogy

from mipforest.arrays import FloatArray

#: Steps of Newton's method for intercepts; each that leaves the bracket is a bisection, so that they suffice.
NEWTON_STEPS = 60

#: The expected number of samples of the second class is their number up to this share of all samples.
INTERCEPT_TOLERANCE = 1e-12


def saturated(P: FloatArray, Q: FloatArray) -> FloatArray:
    """Return the log-loss of cells with P and Q samples of either class, each at its own share: the least there is."""
    loss: FloatArray = xlogy(P + Q, P + Q) - xlogy(P, P) - xlogy(Q, Q)
    return loss


def best_intercepts(totals: FloatArray, P: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the best intercepts for totals, and the log-losses with them.

    The best one makes the expected number of samples of the second class their number. It is between ``logit(r) - max``
    and ``logit(r) - min`` of the totals, r being the share of the second class, and is found there by Newton's method,
    kept inside by bisection.

    Parameters
    ----------
    totals, P, Q
        (b, c) totals, and weights of the samples of the second class and of the first: b cards with c totals each.

    Returns
    -------
    intercepts, losses
        (b,) each.
    """
    n, of_one = P + Q, P.sum(axis=1)
    all_n = n.sum(axis=1)
    middle = np.log(of_one) - np.log(all_n - of_one)
    seen = n > 0
    low = middle - np.where(seen, totals, -np.inf).max(axis=1)
    high = middle - np.where(seen, totals, np.inf).min(axis=1)
    at = (low + high) / 2
    for _ in range(NEWTON_STEPS):
        risk = expit(totals + at[:, None])
        excess = (n * risk).sum(axis=1) - of_one
        if (np.abs(excess) <= INTERCEPT_TOLERANCE * all_n).all():
            break
        low, high = np.where(excess < 0, at, low), np.where(excess > 0, at, high)
        slope = (n * risk * (1 - risk)).sum(axis=1)
        step = at - excess / np.maximum(slope, np.finfo(float).tiny)
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    score = totals + at[:, None]
    loss = (P * np.logaddexp(0.0, -score) + Q * np.logaddexp(0.0, score)).sum(axis=1)
    return at, loss


def shortest_between(low: float, high: float) -> float:
    """Return a number with as few digits as any in (low, high], the one nearest to the middle of these."""
    middle, exponent = (low + high) / 2, floor(log10(high - low)) + 1 if np.isfinite(high - low) else 0
    for digits in range(-exponent, 18 - exponent):
        unit = Decimal(1).scaleb(-digits)
        number = float((Decimal(middle) / unit).to_integral_value() * unit)
        for candidate in (number, float(Decimal(number) + unit)):
            if low < candidate <= high:
                return candidate
    return float(high)
