r"""A feasible point of one node's dual, and what pair steps from it prove of all samples at once, in numpy.

The dual is that of :mod:`mipforest.searches.routing.node_dual`, whose compiled kernels take the same steps for one
sample after the other; what they prove is derived in :mod:`formulations.bounds.screening`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.model import Model, sum_squares
from mipforest.settings import SolveSettings
from mipforest.solvers.registry import get_solver
from mipforest.time_budget import TimeBudget

#: Variables of copies that are looked at in one piece: 1.6 MB for each array of them.
PAIRS = 200_000

#: Most pair steps in a copy, and the rise that a step promises, relative to what is wanted, below which they end.
MOST_STEPS, LEAST_RISE = 100, 1e-4

#: Share of the greatest variable of a dual point below which a distance from a bound is the solver's residue.
RESIDUE = 1e-6

#: Least squared distance in a pair step: between equal samples any step is as good.
LEAST_CURVATURE = 1e-12


@dataclass(frozen=True, eq=False)
class NodeDual:
    """A feasible point of one node's dual, and what pair steps from it prove.

    Attributes
    ----------
    X, rate, low, high, beta
        Samples (m, p) of the variables, their rates, bounds and values (m,).
    w
        (p,) weights :math:`w^*`.
    value
        The bound :math:`D_t`.
    """

    X: FloatArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    beta: FloatArray
    w: FloatArray
    value: float

    @staticmethod
    def of(X: FloatArray, rate: FloatArray, capacity: FloatArray, bias: float, time: TimeBudget) -> NodeDual:
        """Solve the dual.

        Parameters
        ----------
        X, rate, capacity
            (m, p) samples of the variables, their rates, and how far they go from 0: down where the rate is negative.
        bias
            Bound on the bias of solutions.
        time
            Without any, the dual point is 0.
        """
        low, high = np.where(rate < 0, -capacity, 0.0), np.where(rate < 0, 0.0, capacity)
        beta = np.zeros(len(rate))
        if len(rate) and low.min() < 0 < high.max() and not time.expired:
            beta = _solved(X, rate, low, high, time)
        w = X.T @ beta
        value = float(rate @ beta - 0.5 * w @ w - abs(beta.sum()) * bias)
        if not value > 0.0:
            beta, w, value = np.zeros(len(rate)), np.zeros(X.shape[1]), 0.0
        return NodeDual(X, rate, low, high, beta, w, value)

    @cached_property
    def gram(self) -> FloatArray:
        """(m, m) inner products of the samples."""
        products: FloatArray = self.X @ self.X.T
        return products

    def turned(self) -> NodeDual:
        """Return the same with all signs changed: what rises falls, and scores are those of the other side."""
        return NodeDual(self.X, -self.rate, -self.high, -self.low, -self.beta, -self.w, self.value)

    def gains(
        self, X: FloatArray, rate: FloatArray, capacity: FloatArray, enough: float, time: TimeBudget
    ) -> FloatArray:
        """Return (n,) amounts by which a new variable that rises raises the value, for each of n samples.

        Parameters
        ----------
        X, rate, capacity
            (n, p) samples, rates of their variables, and how far they rise.
        enough
            Amount that needs no improvement.
        time
            Once it has run out, amounts are 0.
        """
        found = np.zeros(len(X))
        falls = (self.beta > self.low).any()
        for part in self._parts(len(X)):
            if falls and not time.expired:
                found[part] = _Steps(self, X[part], rate[part], capacity[part]).gain_up_to(enough)
        return found

    def greatest(self, X: FloatArray, slack: float, time: TimeBudget) -> FloatArray:
        """Return (n,) upper bounds on the scores of samples (n, p), infinite where nothing is proven.

        Parameters
        ----------
        X
            Samples.
        slack
            What the objective may charge at the node beyond the value.
        time
            Once it has run out, bounds are those of one pair step.
        """
        room = self.beta - self.low
        others = room > 0
        if not others.any():
            return np.full(len(X), np.inf)
        lack, found = (self.rate - self.X @ self.w)[others], np.empty(len(X))
        for part in self._parts(len(X)):
            curvature = np.maximum(cdist(X[part], self.X[others], "sqeuclidean"), LEAST_CURVATURE)
            step = np.minimum(np.sqrt(2.0 * slack / curvature), room[others])
            bounds = (slack / step + 0.5 * step * curvature + lack).min(axis=1) + X[part] @ self.w
            if not time.expired:
                no_limit = np.full(len(bounds), np.inf)
                bounds = _Steps(self, X[part], bounds, no_limit).least_rate(slack)
            found[part] = bounds
        return found

    def _parts(self, n: int) -> list[slice]:
        """Return slices of n samples whose pairs with all variables fit into :data:`PAIRS`."""
        size = max(1, PAIRS // (len(self.rate) + 1))
        return [slice(start, start + size) for start in range(0, n, size)]


class _Steps:
    """Pair steps from a node's dual point, for n new variables apart: one that rises, in each of n copies.

    Parameters
    ----------
    dual
        The point, of m variables.
    X, rate, capacity
        The new variables: samples (n, p), rates (n,), and how far they rise (n,).
    """

    def __init__(self, dual: NodeDual, X: FloatArray, rate: FloatArray, capacity: FloatArray) -> None:
        n = len(X)
        self.rows, self.own, self.rate = np.arange(n), len(dual.rate), rate.copy()
        self.gram, self.cross = dual.gram, X @ dual.X.T
        self.square = np.column_stack(
            [np.broadcast_to(np.diag(self.gram), (n, self.own)), (X * X).sum(axis=1)]
        )
        lack = dual.rate - dual.X @ dual.w
        self.lack = np.column_stack([np.broadcast_to(lack, (n, self.own)), rate - X @ dual.w])
        self.beta = np.column_stack([np.broadcast_to(dual.beta, (n, self.own)), np.zeros(n)])
        self.low = np.append(dual.low, 0.0)
        self.high = np.column_stack([np.broadcast_to(dual.high, (n, self.own)), capacity])
        self.gain = np.zeros(n)

    def gain_up_to(self, enough: float) -> FloatArray:
        """Take steps while gains are below what is enough and rise; return them (n,)."""
        gains, left = self.gain.copy(), np.arange(len(self.gain))
        for _ in range(MOST_STEPS):
            promise = self._step()
            gains[left] = self.gain
            goes_on = (promise > LEAST_RISE * enough) & (self.gain <= enough)
            if not goes_on.any():
                break
            left = left[goes_on]
            self._keep(goes_on)
        return gains

    def least_rate(self, slack: float) -> FloatArray:
        """Lower the new variables' rates to where the gain is the slack, step after step; return the rates (n,)."""
        rates, left = self.rate.copy(), np.arange(len(self.gain))
        for _ in range(MOST_STEPS):
            promise = self._step()
            new = self.beta[:, self.own]
            lower = (self.gain > slack) & (new > 0)
            fall = np.where(lower, (self.gain - slack) / np.where(lower, new, 1.0), 0.0)
            self.rate -= fall
            self.lack[:, self.own] -= fall
            self.gain -= fall * new
            rates[left] = self.rate
            goes_on = promise > LEAST_RISE * slack
            if not goes_on.any():
                break
            left = left[goes_on]
            self._keep(goes_on)
        return rates

    def _keep(self, kept: BoolArray) -> None:
        """Go on with some of the copies (n,)."""
        if kept.all():
            return
        for name in ("cross", "square", "lack", "beta", "high", "gain", "rate"):
            setattr(self, name, getattr(self, name)[kept])
        self.rows = np.arange(len(self.gain))

    def _inner(self, columns: IntArray) -> FloatArray:
        """Return (n, m + 1) inner products of one variable in each copy with all."""
        old = np.minimum(columns, self.own - 1)
        products = np.column_stack([self.gram[old], self.cross[self.rows, old]])
        new = columns == self.own
        products[new] = np.column_stack([self.cross[new], self.square[new, self.own]])
        return products

    def _step(self) -> FloatArray:
        """Take the best pair step with the variable that lacks most, in every copy; return what it promised (n,)."""
        rows, lack, beta = self.rows, self.lack, self.beta
        up = np.where(beta < self.high, lack, -np.inf).argmax(axis=1)
        up_inner = self._inner(up)
        curvature = np.maximum(self.square[rows, up][:, None] + self.square - 2.0 * up_inner, LEAST_CURVATURE)
        violation = np.where(beta > self.low, np.maximum(lack[rows, up][:, None] - lack, 0.0), 0.0)
        down = (violation * violation / curvature).argmax(axis=1)
        violation, curvature = violation[rows, down], curvature[rows, down]
        room = np.minimum(self.high[rows, up] - beta[rows, up], beta[rows, down] - self.low[down])
        step = np.where(violation > 0, np.minimum(violation / curvature, room), 0.0)
        beta[rows, up] += step
        beta[rows, down] -= step
        lack -= step[:, None] * (up_inner - self._inner(down))
        self.gain += step * (violation - 0.5 * step * curvature)
        promise: FloatArray = 0.5 * violation * violation / curvature
        return promise


def _solved(
    X: FloatArray, rate: FloatArray, low: FloatArray, high: FloatArray, time: TimeBudget
) -> FloatArray:
    """Return a feasible point (m,) of a node's dual, the best one up to a tolerance where the solver ends in time."""
    m = Model("dual")
    beta = m.continuous("beta", len(rate), lower=low, upper=high)
    w = m.continuous("w", X.shape[1])
    m.minimize(0.5 * sum_squares(w) - rate @ beta)
    m.add("weights", X.T @ beta - w == 0)
    m.add("balance", beta.sum() == 0)
    settings = SolveSettings(time_limit=time.at_most())
    solution = get_solver("clarabel").solve(m.matrix(), settings)
    if solution.x is None or not np.isfinite(solution.x).all():
        return np.zeros(len(rate))
    found = np.clip(solution["beta"], low, high)
    # An interior point leaves all variables a little room, and pair steps would take all of it, a little at a time.
    near = RESIDUE * np.abs(found).max()
    found = np.where(found - low < near, low, np.where(high - found < near, high, found))
    # What is too much on one side is taken from it in proportion; both sums stay within their bounds.
    up, down = found[found > 0].sum(), -found[found < 0].sum()
    if up > 0 and down > 0:
        found[found > 0] *= min(1.0, down / up)
        found[found < 0] *= min(1.0, up / down)
        return found
    return np.zeros(len(rate))
