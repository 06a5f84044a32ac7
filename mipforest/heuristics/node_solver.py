r"""Exact solver for the node problem with a convex piecewise-linear loss, and half the squared l2 norm or the l1 norm.

A loss with K kinks is a sum of K hinges. So every node problem is a weighted sum of hinges:

.. math::

    \min_{w, b}\; \tfrac12 \|w\|^2 + \sum_k c_k \max(0,\, m_k - d_k (w^\top x_k + b)),

with a direction :math:`d_k = \pm 1`, a margin :math:`m_k` and a capacity :math:`c_k`, which is C times the weight of
the sample (times the change of slope at the kink). Its dual is

.. math::

    \max_{0 \le a \le c}\; m^\top a - \tfrac12 \Bigl\| \sum_k a_k d_k x_k \Bigr\|^2
    \quad\text{subject to}\quad d^\top a = 0 .

With the l1 norm :math:`\|w\|_1` takes the place of :math:`\tfrac12 \|w\|^2`, and in the dual the constraints
:math:`-1 \le \sum_k a_k d_k x_{kj} \le 1` of every feature j that of the quadratic term.

**Interior point.** A primal-dual method with Mehrotra's predictor and corrector (M. Fine, K. Scheinberg, *Efficient SVM
training using low-rank kernel representations*, JMLR 2, 2001, for the low rank of the normal matrix): every iteration
factors a matrix of p + 1 rows, and costs O(m p^2) for m hinges. The l1 norm is a sum of hinges itself,
:math:`\max(0, w_j) + \max(0, -w_j)` with capacity 1 and without the bias: 2p hinges more, and no quadratic term.

**Many hinges.** Near the optimum most hinges are far from their kink, and have a = 0 or a = c. So of more than
:data:`MAX_HINGES` hinges those near their kink, by a warm start or by the solution for a tenth of them, form the
*working set*; all others are fixed. Fixed hinges that turn out to be on the wrong side of their kink are added, until
the gap between the values of primal and dual is closed.

**The bound.** Whatever the iteration ends with, :func:`certified` makes a feasible point of the dual of it. Its value
is a lower bound for every w and b.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray

#: Asked now and then whether to end with what there is.
Halted = Callable[[], bool]

#: Gap between primal and dual, relative to the value, at which a problem counts as solved.
ACCURACY = 1e-9

#: Hinges up to which all of them are in the working set: an interior point takes a hundredth of a second for them. With
#: a warm start fewer are worth the choice.
MAX_HINGES, MAX_HINGES_WARM = 4000, 1200

#: Share of the hinges whose solution is the warm start where none is given, and how many they are at least.
_SHARE, _LEAST_HINGES = 0.1, 2000

#: Accuracy of that solution: it chooses a working set only.
_ROUGH = 1e-3

#: Share of the hinges, nearest to their kinks, that the first working set has, and how many they are at least: without
#: a warm start, and with one.
_NEAR, _LEAST_NEAR, _LEAST_NEAR_WARM = 0.08, 3000, 800

#: Iterations of the interior point (it takes 10 to 30), and working sets of one problem.
_ITERATIONS, _WORKING_SETS = 100, 30

#: Share of the way to the boundary that a step may go.
_TO_BOUNDARY = 0.995

#: The interior point ends at this share of the accuracy: multipliers are then moved to a feasible point.
_BELOW = 0.1

#: Least curvature of a barrier: its reciprocal stays within what a Cholesky factor of the normal matrix can hold.
_LEAST_CURVATURE = 1e-14

#: A multiplier closer than this to a bound, relative to its capacity up to 1, is put on it.
_AT_BOUND = 1e-12

#: Rounding: a sum of k terms is off by at most this times k, relative to the sum of their sizes. Long sums are made of
#: blocks of so many terms. The last number covers the rounding of these allowances themselves.
_UNIT, _BLOCK, _SMALL = 2.0 * float(np.finfo(np.float64).eps), 500, 1e-6


@dataclass(frozen=True, eq=False)
class Hinges:
    """The hinges of a node problem.

    Attributes
    ----------
    X
        (m, p) samples.
    direction
        (m,) -1 or +1.
    margin
        (m,) margin at which the hinge has its kink.
    capacity
        (m,) slope of the hinge, above 0 and finite.
    l1
        Whether the norm is l1.
    """

    X: FloatArray
    direction: FloatArray
    margin: FloatArray
    capacity: FloatArray
    l1: bool = False

    def subset(self, hinges: IntArray | BoolArray, share: float = 1.0) -> Hinges:
        """Return some hinges, with capacities that are divided by a share."""
        return Hinges(
            self.X[hinges],
            self.direction[hinges],
            self.margin[hinges],
            self.capacity[hinges] / share,
            self.l1,
        )

    def missing(self, w: FloatArray, b: float) -> FloatArray:
        """Return (m,) what each row lacks to its margin, negative beyond it."""
        lack: FloatArray = self.margin - self.direction * (self.X @ w + b)
        return lack

    def value(self, w: FloatArray, b: float) -> float:
        """Return the objective of a hyperplane."""
        norm = np.abs(w).sum() if self.l1 else 0.5 * w @ w
        return float(norm + self.capacity @ np.maximum(0.0, self.missing(w, b)))


def hinges_of(
    X: FloatArray,
    sign: FloatArray,
    capacity: FloatArray,
    kinks: FloatArray | None = None,
    *,
    l1: bool = False,
) -> Hinges:
    """Return the hinges of a convex piecewise-linear loss.

    Parameters
    ----------
    X, sign
        (n, p) samples and their labels, -1 or +1.
    capacity
        (n,) C times the weight of each sample, above 0.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there; the hinge unless given.
    l1
        Whether the norm is l1.
    """
    if kinks is None or len(kinks) == 1:
        at, change = (1.0, 1.0) if kinks is None else kinks[0]
        return Hinges(X, sign, np.full(len(sign), at), capacity * change, l1)
    n, count = len(sign), len(kinks)
    each = np.repeat(np.arange(n), count)
    return Hinges(X[each], sign[each], np.tile(kinks[:, 0], n), capacity[each] * np.tile(kinks[:, 1], n), l1)


def never() -> bool:
    """Return that there is no reason to end."""
    return False


@dataclass(frozen=True, eq=False)
class NodeSolution:
    """A hyperplane and what is proven of all others.

    Attributes
    ----------
    w, b
        (p,) weights and the bias.
    value
        Objective of the hyperplane.
    bound
        Lower bound on the objective of every hyperplane, by a feasible point of the dual.
    multipliers
        (m,) that point.
    """

    w: FloatArray
    b: float
    value: float
    bound: float
    multipliers: FloatArray

    @property
    def gap(self) -> float:
        """The gap between value and bound, relative to the value."""
        return (self.value - self.bound) / self.value if self.value > 0.0 else 0.0


def solve_node(
    hinges: Hinges,
    *,
    warm: tuple[FloatArray, float] | None = None,
    accuracy: float = ACCURACY,
    halted: Halted = never,
) -> NodeSolution:
    """Solve a node problem, sides free.

    Parameters
    ----------
    hinges
        Its hinges.
    warm
        Weights and bias near the solution: they choose the first working set.
    accuracy
        Gap relative to the value at which to end. Where rounding leaves more, the best point found is returned, with
        a bound that is true all the same.
    halted
        Asked between two steps of the interior point whether to end with the best point so far, likewise.
    """
    m, p = hinges.X.shape
    if m == 0:
        return NodeSolution(np.zeros(p), 1.0, 0.0, 0.0, np.zeros(0))
    if (hinges.direction == hinges.direction[0]).all():
        b = float(hinges.direction[0]) * max(0.0, float(hinges.margin.max()))
        return NodeSolution(np.zeros(p), b, 0.0, 0.0, np.zeros(m))
    centre = hinges.X.mean(axis=0)
    centred = replace(hinges, X=hinges.X - centre)
    turn: FloatArray | None = None
    if p > m and not hinges.l1:  # the solution is a combination of the hinges: m coordinates hold it
        turn, triangle = np.linalg.qr(centred.X.T)
        centred = replace(hinges, X=np.ascontiguousarray(triangle.T))
    if warm is not None:
        w = warm[0] if turn is None else turn.T @ warm[0]
        warm = w, warm[1] + float(warm[0] @ centre)
    few = m <= (MAX_HINGES if warm is None else MAX_HINGES_WARM)
    found = (
        _solve_all(centred, accuracy, halted) if few else _by_working_sets(centred, warm, accuracy, halted)
    )
    w = found.w if turn is None else turn @ found.w
    w, b, value = _lengthened(hinges, w, found.b - float(w @ centre))
    # Proven for the samples as they are: centring and turning them has rounded them.
    bound, multipliers = certified(hinges, found.multipliers, value)
    return NodeSolution(w, b, value, min(bound, value), multipliers)


def _solve_all(hinges: Hinges, accuracy: float, halted: Halted) -> NodeSolution:
    """Solve a problem with all hinges in the working set."""
    w, b, a = _interior_point(hinges, np.zeros(hinges.X.shape[1]), 0.0, accuracy, halted=halted)
    return _solution(hinges, w, b, a)


def _solution(hinges: Hinges, w: FloatArray, b: float, a: FloatArray) -> NodeSolution:
    """Return the better of a hyperplane and that without weights, with the bound of some multipliers."""
    w, b, value = _lengthened(hinges, w, b)
    if not value <= (flat := _flat(hinges))[1]:
        w, b, value = np.zeros_like(w), *flat
    bound, feasible = certified(hinges, a, value)
    return NodeSolution(w, b, value, bound, feasible)


def _lengthened(hinges: Hinges, w: FloatArray, b: float) -> tuple[FloatArray, float, float]:
    """Return a hyperplane and its value, a little longer where that removes all losses.

    Where C is large, losses that an interior point or rounding leaves of 0 outweigh all else.
    """
    value = hinges.value(w, b)
    met = hinges.margin - hinges.missing(w, b)
    if value > 0.0 and (hinges.margin > 0.0).all() and (met > 0.0).all():
        longer = float((hinges.margin / met).max()) * (1.0 + 8.0 * _UNIT)
        if (other := hinges.value(longer * w, longer * b)) < value:
            return longer * w, longer * b, other
    return w, b, value


def _flat(hinges: Hinges) -> tuple[float, float]:
    """Return a good bias without weights, and its value."""
    where = [float(d * m) for d in (-1.0, 1.0) for m in (hinges.margin.max(),)]
    zero = np.zeros(hinges.X.shape[1])
    return min(((b, hinges.value(zero, b)) for b in where), key=lambda pair: pair[1])


def _by_working_sets(
    hinges: Hinges, warm: tuple[FloatArray, float] | None, accuracy: float, halted: Halted
) -> NodeSolution:
    """Solve a problem of many hinges, most of them fixed at a bound."""
    m, near = len(hinges.margin), _LEAST_NEAR_WARM
    # A warm start that is worse than the solution for few hinges would choose a large working set, and the wrong one.
    if warm is None or (
        m > _LEAST_HINGES
        and hinges.value(*warm) > hinges.value(*_solve_subsample(hinges, _LEAST_HINGES, halted))
    ):
        near = _LEAST_NEAR
        warm = _solve_subsample(hinges, max(_LEAST_HINGES, int(_SHARE * m)), halted)
    lack = hinges.missing(*warm)
    size = np.abs(lack)
    share = max(_NEAR, min(1.0, near / m))
    width = float(np.quantile(size, share))
    inside = size <= width
    best: NodeSolution | None = None
    bound = 0.0
    # The fixed hinges pay most of the value, and the working set need not be more accurate than the whole.
    least = hinges.value(*warm)
    for _ in range(_WORKING_SETS):
        loss = (lack > 0.0) & ~inside
        pull = (hinges.capacity * hinges.direction)[loss]
        left = float(pull.sum())
        free = hinges.capacity[inside]
        against = float(free[hinges.direction[inside] * left < 0.0].sum()) if left else np.inf
        if against <= abs(left) and not inside.all():
            share = min(1.0, 2.0 * share)  # the working set cannot balance the hinges that are fixed
            width = float(np.quantile(size, share))
            inside |= size <= width
            continue
        w, b, a = _interior_point(hinges.subset(inside), pull @ hinges.X[loss], left, accuracy, least, halted)
        a_all = np.where(loss, hinges.capacity, 0.0)
        a_all[inside] = a
        found = _solution(hinges, w, b, a_all)
        bound = max(bound, found.bound)
        if best is None or found.value < best.value:
            best = found
        best = NodeSolution(best.w, best.b, best.value, bound, found.multipliers)
        if best.gap <= accuracy or inside.all() or halted():
            break
        now = hinges.missing(w, b)
        wrong = ~inside & ((now > 0.0) != loss)
        if not wrong.any() and least == 0.0:
            break  # what is left of the gap is the interior point's
        least = bound if wrong.any() else 0.0  # a warm start may be worth more than the optimum
        farthest = 1.5 * float(np.abs(lack[wrong]).max(initial=0.0))
        width = max(width, farthest) if wrong.sum() < 0.1 * m else 2.0 * width
        inside |= wrong | (np.abs(now) <= 0.5 * width)
        lack = np.where(inside, lack, now)
        size = np.abs(lack)
    assert best is not None  # the last working set has all hinges
    return best


def _solve_subsample(hinges: Hinges, count: int, halted: Halted) -> tuple[FloatArray, float]:
    """Return a rough solution for some hinges, which stand for all."""
    # Drawn with a fixed seed: equal problems have equal solutions.
    drawn = np.sort(np.random.default_rng(0).choice(len(hinges.margin), count, replace=False))
    rough = solve_node(hinges.subset(drawn, count / len(hinges.margin)), accuracy=_ROUGH, halted=halted)
    return rough.w, rough.b


def _interior_point(
    hinges: Hinges,
    w0: FloatArray,
    left: float,
    accuracy: float,
    least: float = 0.0,
    halted: Halted = never,
) -> tuple[FloatArray, float, FloatArray]:
    """Return weights, bias and multipliers (m,) of the hinges of a working set.

    Parameters
    ----------
    hinges
        The working set, with hinges of both directions.
    w0, left
        (p,) and the part of the weights, and of the dual's equality, that fixed hinges have.
    accuracy, least
        Complementarity, relative to the value, or to a least value, at which to end.
    halted
        As for :func:`solve_node`.
    """
    from scipy.linalg import cho_solve  # late: slow to import, and most runs do without

    d, margin, c = hinges.direction, hinges.margin, hinges.capacity
    Z = np.column_stack([hinges.X * d[:, None], d])
    p = hinges.X.shape[1]
    regular = np.append(np.zeros(p) if hinges.l1 else np.ones(p), 0.0)
    if hinges.l1:
        Z = np.vstack([Z, np.eye(p, p + 1), -np.eye(p, p + 1)])
        margin, c = np.append(margin, np.zeros(2 * p)), np.append(c, np.ones(2 * p))
    m, q = Z.shape
    offset = np.append(w0, left)
    a, slack, loss, at = 0.5 * c, np.ones(m), np.maximum(margin, 0.0) + 1.0, np.zeros(q)
    best, kept = np.inf, (at, a)
    for _ in range(_ITERATIONS):
        # Weights are unknowns of their own: sums of large multipliers would round them.
        unbalanced = Z.T @ a + offset - regular * at
        lack = Z @ at - margin - slack + loss
        room = c - a
        complementarity = float(a @ slack + room @ loss)
        value = float(c @ loss + 0.5 * regular @ (at * at))
        violated = float(a @ np.abs(lack)) + float(np.abs(unbalanced) @ np.maximum(np.abs(at), 1.0))
        merit = complementarity + violated
        if not np.isfinite(merit):
            break
        if merit < best:
            best, kept = merit, (at.copy(), a)
        if merit <= _BELOW * accuracy * max(value, least) or halted():
            break
        inverse = 1.0 / np.maximum(slack / a + loss / room, _LEAST_CURVATURE)
        M = Z.T @ (Z * inverse[:, None])
        M[np.diag_indices(q)] += regular
        try:
            factor = np.asarray(np.linalg.cholesky(M), dtype=np.float64)
        except np.linalg.LinAlgError:
            break
        aim, da, ds, dt = 0.0, np.zeros(m), np.zeros(m), np.zeros(m)
        for phase in range(2):
            to_slack, to_loss = (aim - da * ds) / a - slack, (aim + da * dt) / room - loss
            side = to_slack - to_loss - lack
            step = cho_solve((factor, True), Z.T @ (inverse * side) + unbalanced, check_finite=False)
            da = inverse * (side - Z @ step)
            ds, dt = to_slack - slack * da / a, to_loss + loss * da / room
            along = min(1.0, _longest(a, da), _longest(room, -da))
            across = min(1.0, _longest(slack, ds), _longest(loss, dt))
            if phase == 0:
                after = float((a + along * da) @ (slack + across * ds))
                after += float((room - along * da) @ (loss + across * dt))
                aim = (after / complementarity) ** 3 * complementarity / (2 * m)
        along, across = min(1.0, _TO_BOUNDARY * along), min(1.0, _TO_BOUNDARY * across)
        a = np.clip(a + along * da, 1e-300, c * (1.0 - _UNIT))
        slack, loss, at = slack + across * ds, loss + across * dt, at + across * step
    at, a = kept
    return at[:-1], float(at[-1]), a[: len(d)]


def _longest(x: FloatArray, dx: FloatArray) -> float:
    """Return how far x > 0 may go along dx until an entry is 0; infinity where none falls."""
    steepest = float((dx / x).min())
    return -1.0 / steepest if steepest < 0.0 else np.inf


def certified(hinges: Hinges, a: FloatArray, value: float) -> tuple[float, FloatArray]:
    r"""Return a lower bound on the problem's value by multipliers near the optimum, and feasible ones that prove it.

    Multipliers are clipped to their bounds, and those of the heavier direction are made smaller until
    :math:`d^\top a = 0`. *Rounding.* A remainder r of this sum, known to the last digit, changes the Lagrangian by
    :math:`|b r|`. Some optimal hyperplane has a score within the largest margin of 0, and
    :math:`\|w\| \le \sqrt{2 v}` for every known value v, so :math:`|b| \le \max_k |m_k| + \sqrt{2 v} \max_k \|x_k\|`.
    The other sums are off by at most :data:`_UNIT` times the number of terms and the sum of their sizes; the bound is
    lowered by that.

    A feasible point scaled down is feasible, and so is one scaled up within the bounds: the best multiple is taken.
    With the l1 norm, :math:`\|w\|_1 \le v`, and the multiple is the largest that keeps the constraints of all
    features.

    Parameters
    ----------
    hinges
        The problem.
    a
        (m,) multipliers.
    value
        Objective of a known hyperplane.

    Returns
    -------
    bound
        At least 0, as no term of the objective is negative.
    multipliers
        (m,) the feasible point.
    """
    d, c, m = hinges.direction, hinges.capacity, len(a)
    a = np.clip(np.nan_to_num(a), 0.0, c)
    near = _AT_BOUND * np.minimum(c, 1.0)
    a = np.where(a < near, 0.0, np.where(c - a < near, c, a))
    plus, minus = float(a[d > 0].sum()), float(a[d < 0].sum())
    if plus == 0.0 or minus == 0.0:
        return 0.0, np.zeros(m)
    a = np.where(d > 0, a * min(1.0, minus / plus), a * min(1.0, plus / minus))
    terms = _UNIT * (_BLOCK + m / _BLOCK + len(hinges.X.T))
    products = _products(hinges.X, d * a)
    if length := float(np.square(products).sum()):  # the best multiple of these multipliers
        positive = a > 0.0
        longest = float((c[positive] / a[positive]).min())
        if hinges.l1:
            rounded = terms * (a @ np.abs(hinges.X)) * (1.0 + _SMALL)
            best = (1.0 - _SMALL * _SMALL) / float((np.abs(products) + rounded).max())
        else:
            best = float(hinges.margin @ a) / length
        a = np.minimum(min(best, longest) * a, c)
        a = np.maximum(a, 0.0)
    rest = abs(math.fsum(d * a))
    if hinges.l1:
        bias = float(np.abs(hinges.margin).max()) + max(value, 0.0) * float(np.abs(hinges.X).max())
        reward = math.fsum(hinges.margin * a)
        rounding = _UNIT * float(np.abs(hinges.margin) @ a)
        bound = reward - (rest * bias + rounding) * (1.0 + _SMALL) - 4.0 * _UNIT * abs(reward)
        return (bound, a) if 0.0 < bound < np.inf else (0.0, a)
    sizes = np.sqrt((hinges.X * hinges.X).sum(axis=1))
    bias = float(np.abs(hinges.margin).max()) + math.sqrt(2.0 * max(value, 0.0)) * float(sizes.max())
    length = float(np.square(_products(hinges.X, d * a)).sum())
    reward = math.fsum(hinges.margin * a)
    off = terms * float(a @ sizes)
    # |u| is off by this, so its square by at most 2 |u| off + off^2; the other sums are off in their last digits.
    rounding = math.sqrt(length) * off + off * off + _UNIT * float(np.abs(hinges.margin) @ a)
    bound = reward - 0.5 * length - rest * bias * (1.0 + _SMALL) - rounding * (1.0 + _SMALL)
    bound -= 4.0 * _UNIT * (abs(reward) + length)
    return (bound, a) if 0.0 < bound < np.inf else (0.0, a)


def _products(X: FloatArray, a: FloatArray) -> FloatArray:
    """Return ``X' a``, summed block by block: rounding errors grow with the terms of one sum."""
    blocks = [X[i : i + _BLOCK].T @ a[i : i + _BLOCK] for i in range(0, len(a), _BLOCK)]
    total: FloatArray = np.sum(blocks, axis=0)
    return total
