r"""Compiled: all prescriptive trees of depth one and two, with constant or linear estimates.

**Constant estimates.** Below each threshold of the root, one sweep through the order of every feature moves the samples
of both sides from a right leaf to a left one, so that all splits of both children are tried at a time. That takes
O((np)^2) moves at depth 2. Nothing is bounded: what a leaf is charged may rise when samples leave it, as prescriptions
are estimates.

**Linear estimates.** From either end of the order of a feature, one sample after the other enters a leaf, and the lasso
of its treatment begins with the coefficients that it had before. What both leaves of a split are charged is the sum of
what the two sweeps have given. The least bound of all trees is one for the model, whichever minima it takes.

**Lassos** are solved to the last digits, with a bound over all their minima. A lasso is solved by steps between sets of
features with signs (Lee, Battle, Raina and Ng 2007): the linear equations of the set give the minimum with these signs;
where a coefficient would change its sign before that, the step ends, and the feature leaves the set; where none
does, the feature with the steepest slope above :math:`\theta` enters. A feature that depends on those of the set
replaces one of them. Each step lowers the value; the first set is that of the leaf before its last sample came. A
leaf's estimate at the mean of all its samples, :math:`\bar y_t + \beta_t^\top d` with :math:`d` from the mean of the
treatment's samples to that of all, depends on which minimum is taken, and is bounded over all of them:

- *One minimum* if no feature outside the set has the slope :math:`\theta`.
- *Several* otherwise. All have the same slopes and the same sum S of sizes, so they use features with the slope
  :math:`\pm \theta` only, with its sign. Let these be a set that is independent, and others, :math:`x_k = w_k^\top x`
  of the set. Minima differ by sizes :math:`\zeta_k \ge 0` of the others, of sum S at most, so that
  :math:`\beta^\top d` is lower by :math:`S \min_k \pm (d_k - w_k^\top d)` at most; where there is one alone, by as
  much of it as leaves the coefficients of the set their signs.
- *Not solved*, if the steps did not end: the loss is at least that of a dual point, the residuals scaled until all
  slopes are at most :math:`\theta`; and as no loss is negative, :math:`2 \theta \|\beta\|_1` is at most the value of
  any coefficients, which bounds :math:`\beta^\top d` by the greatest :math:`|d_j|`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, Int32Array, IntArray
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.problem.structure import TreeCharges
from mipforest.searches import entry, kernel
from mipforest.searches.local.leaves import may_prescribe, prescription_cost, statistics
from mipforest.searches.numbers import require_charges
from mipforest.trees.sides import midpoint

#: Moves of samples between two looks at the clock.
MOVES_AT_A_TIME = 2e6


class Samples(NamedTuple):
    """The samples, and what their trees are charged.

    Attributes
    ----------
    treatments
        Their number.
    value
        (n, V) statistics of the samples.
    rank, order
        (p, n) their ranks among the distinct values of each feature, and their order.
    N_min, split_cost
        Least number of samples in a leaf, and cost of a split.
    """

    treatments: int
    value: FloatArray
    rank: Int32Array
    order: Int32Array
    N_min: int
    split_cost: float


class PrescriptionWorkspace(NamedTuple):
    """Workspace of an enumeration.

    Attributes
    ----------
    side
        (n,) side of the root on which a sample is: 0 or 1.
    sums
        (5, V) sums of both sides, of the left leaf below each, and of a right leaf.
    size, left, last_rank
        (2,) for each side, its samples, those in its left leaf, and the rank of the last of them.
    cost, split
        (2,) and (2, 2): what each side is charged with its best split, and that split, feature -1 for none.
    """

    side: IntArray
    sums: FloatArray
    size: IntArray
    left: IntArray
    last_rank: IntArray
    cost: FloatArray
    split: IntArray


class EnumerationResult(NamedTuple):
    """What an enumeration has found.

    Attributes
    ----------
    w, b
        Weights (|B|, p) and intercepts (|B|,) of the best tree.
    ended
        Whether all trees were tried.
    least
        What no tree is charged less than, in units of the loss; minus infinity unless all were tried.
    """

    w: FloatArray
    b: FloatArray
    ended: bool
    least: float


def enumerate_trees(
    X: FloatArray,
    charges: TreeCharges,
    depth: int,
    should_stop: Callable[[float, int], bool] = lambda value, tried: False,  # noqa: ARG005
) -> EnumerationResult:
    """Try all trees of depth 1 or 2.

    Parameters
    ----------
    X
        (n, p) features.
    charges
        What trees are charged; the loss is ``"prescription"``.
    depth
        1 or 2.
    should_stop
        Called now and then with the best value, in units of the loss, and the number of thresholds of the root that
        were tried; returning ``True`` ends the enumeration.

    Returns
    -------
    EnumerationResult
        The best tree, and a bound.

    Raises
    ------
    DataValueError
        If a number is NaN, infinite where it may not be, or too large to compute with.
    """
    require_charges("prescription-search", charges, X)
    loss = charges.loss
    assert isinstance(loss, PrescriptionLoss)
    (n, p), y = X.shape, np.asarray(charges.y, dtype=np.float64)
    value = statistics(loss, y, charges.weights)
    rank, order = ranks(X)
    cuts = [(j, cut) for j in range(p) for cut in range(1, int(rank[j].max()) + 1)]
    treatments, split_cost = loss.n_treatments, charges.split_cost / loss.n_treatment
    work = PrescriptionWorkspace(
        side=np.zeros(n, np.int64),
        sums=np.zeros((5, value.shape[1])),
        size=np.zeros(2, np.int64),
        left=np.zeros(2, np.int64),
        last_rank=np.zeros(2, np.int64),
        cost=np.zeros(2),
        split=np.zeros((2, 2), np.int64),
    )
    best, chosen = np.full(1, np.inf), np.full((3, 2), -1)
    best[0] = cost_of_all(treatments, value, work.sums[0])
    some = max(1, int(MOVES_AT_A_TIME / (n * p)))
    for begin in range(0, len(cuts), some):
        roots = np.array(cuts[begin : begin + some], dtype=np.int64)
        samples = Samples(treatments, value, rank, order, charges.N_min, split_cost)
        try_roots(samples, roots, depth, work, best, chosen)
        tried = begin + len(roots)
        if should_stop(float(best[0]) * loss.n_treatment, tried) and tried < len(cuts):
            return EnumerationResult(*splits_by_rank(X, rank, chosen, 2**depth - 1), False, -np.inf)
    least = float(best[0]) * loss.n_treatment
    return EnumerationResult(*splits_by_rank(X, rank, chosen, 2**depth - 1), True, least)


def ranks(X: FloatArray) -> tuple[Int32Array, Int32Array]:
    """Return (p, n) ranks of the samples among the distinct values of each feature, and their order."""
    rank = np.array([np.unique(column, return_inverse=True)[1] for column in X.T], dtype=np.int32)
    return rank, np.argsort(rank, axis=1, kind="stable").astype(np.int32)


def splits_by_rank(
    X: FloatArray, rank: Int32Array, chosen: IntArray, nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Return weights and intercepts of splits, given by (3, 2) feature, -1 for none, and least rank on the right.

    Thresholds stand in the middle between both sides of their node.
    """
    w, b = np.zeros((nodes, X.shape[1])), np.zeros(nodes)
    here = {0: np.arange(len(X))}
    for t in range(nodes):
        members, (j, cut) = here.pop(t, None), chosen[t]
        if members is None or j < 0:
            continue
        right = rank[j, members] >= cut
        w[t, j], b[t] = 1.0, -midpoint(X[members[~right], j].max(), X[members[right], j].min())
        here[2 * t + 1], here[2 * t + 2] = members[~right], members[right]
    return w, b


@entry
def cost_of_all(treatments: int, value: FloatArray, total: FloatArray) -> float:
    """Return what one leaf with all samples is charged; ``total`` (V,) is 0, and is overwritten."""
    for i in range(len(value)):
        add(value, i, 1.0, total)
    return float(prescription_cost(treatments, False, total))


@kernel
def add(value: FloatArray, i: int, times: float, total: FloatArray) -> None:
    """Add the statistics of a sample to the sums of a leaf."""
    for v in range(len(total)):
        total[v] += times * value[i, v]


@kernel
def leaf(samples: Samples, total: FloatArray, size: int) -> float:
    """Return what a leaf is charged; infinite where it has too few samples, or may prescribe nothing."""
    if size < samples.N_min or not may_prescribe(samples.treatments, total):
        return np.inf
    return float(prescription_cost(samples.treatments, False, total))


@entry
def try_roots(
    samples: Samples,
    roots: IntArray,
    depth: int,
    work: PrescriptionWorkspace,
    best: FloatArray,
    chosen: IntArray,
) -> None:
    """Try all trees with some splits of the root, and keep the best.

    Parameters
    ----------
    samples, work
        Samples, and work.
    roots
        (r, 2) features and least ranks that go right.
    depth
        1 or 2 levels of splits.
    best, chosen
        (1,) value of the best tree and its (3, 2) splits, feature -1 for none: brought up to date.
    """
    side, size, cost, split = work.side, work.size, work.cost, work.split
    n, V = samples.value.shape
    for r in range(len(roots)):
        for s in range(2):
            size[s], split[s, 0] = 0, -1
            for v in range(V):
                work.sums[s, v] = 0.0
        for i in range(n):
            s = 1 if samples.rank[roots[r, 0], i] >= roots[r, 1] else 0
            side[i] = s
            size[s] += 1
            add(samples.value, i, 1.0, work.sums[s])
        for s in range(2):
            cost[s] = leaf(samples, work.sums[s], size[s])
        if depth > 1:
            for f in range(len(samples.rank)):
                sweep(samples, f, work)
        value = cost[0] + cost[1] + samples.split_cost
        if value < best[0]:
            best[0] = value
            chosen[0, 0], chosen[0, 1] = roots[r, 0], roots[r, 1]
            for s in range(2):
                chosen[1 + s, 0], chosen[1 + s, 1] = split[s, 0], split[s, 1]


@kernel
def sweep(samples: Samples, f: int, work: PrescriptionWorkspace) -> None:
    """Try all splits of both children of the root on a feature; keep the best of each side."""
    order, rank, size, side = samples.order[f], samples.rank[f], work.size, work.side
    on_left, last_rank = work.left, work.last_rank
    n, V = samples.value.shape
    for s in range(2):
        on_left[s] = last_rank[s] = 0
        for v in range(V):
            work.sums[2 + s, v] = 0.0
    for q in range(n):
        i = order[q]
        s = side[i]
        # The left leaf is whole where the side's next sample has a greater value.
        if on_left[s] > 0 and rank[i] > last_rank[s] and on_left[s] >= samples.N_min:
            left = leaf(samples, work.sums[2 + s], on_left[s])
            if left < work.cost[s]:
                for v in range(V):
                    work.sums[4, v] = work.sums[s, v] - work.sums[2 + s, v]
                value = left + leaf(samples, work.sums[4], size[s] - on_left[s]) + samples.split_cost
                if value < work.cost[s]:
                    work.cost[s], work.split[s, 0], work.split[s, 1] = value, f, rank[i]
        on_left[s] += 1
        last_rank[s] = rank[i]
        add(samples.value, i, 1.0, work.sums[2 + s])


#: Steps between sets at most, by the number of features.
_STEPS = 20

#: Share by which rounding may move a slope.
_ROUNDING = 1e-9

#: A feature whose variance is below the first is constant in the leaf; one of whose variance the others of the set
#: leave less than the second, as a share, depends on them.
_CONSTANT, _PIVOT = 1e-10, 1e-7

#: How a lasso stands: to be fitted anew, one minimum, several, not solved.
_STALE, _UNIQUE, _SEVERAL, _UNSOLVED = range(4)


class LinearSamples(NamedTuple):
    """The samples, and what their trees are charged.

    Attributes
    ----------
    X, y, weight, treatment
        (n, p) features; (n,) outcomes, weights and treatments.
    rank, order
        (p, n) ranks among the distinct values of each feature, and the samples' order.
    theta, mu, split_cost
        Half the cost of coefficients, weight of the prescriptions, cost of a split.
    n_treatment, N_min
        Least numbers of samples of a treatment that is prescribed, and of a leaf.
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    treatment: IntArray
    rank: Int32Array
    order: Int32Array
    theta: float
    mu: float
    split_cost: float
    n_treatment: int
    N_min: int


class Leaf(NamedTuple):
    """A leaf: for each treatment its sums, and its lasso.

    Attributes
    ----------
    samples, state
        (m,) their number, and how the lasso stands.
    sums
        (m, 3) weights times 1, y, y^2.
    x, xy, xx
        (m, p), (m, p), (m, p, p) weights times x, x y, x x'.
    beta, slope
        (m, p) coefficients, and half the slope of the loss along each.
    fit
        (m, 3) what the estimates are charged, a bound on that, and a sum of the sizes of the coefficients.
    mean, apart, right, factor, used, sign
        Workspace: (p, p) the factor, (p,) all others.
    """

    samples: IntArray
    state: IntArray
    sums: FloatArray
    x: FloatArray
    xy: FloatArray
    xx: FloatArray
    beta: FloatArray
    slope: FloatArray
    fit: FloatArray
    mean: FloatArray
    apart: FloatArray
    right: FloatArray
    factor: FloatArray
    used: IntArray
    sign: IntArray

    @classmethod
    def empty(cls, m: int, p: int) -> Leaf:
        """Make an empty leaf for m treatments and p features."""
        samples, state = np.zeros(m, np.int64), np.zeros(m, np.int64)
        sums = (np.zeros((m, 3)), np.zeros((m, p)), np.zeros((m, p)), np.zeros((m, p, p)))
        fits = (np.zeros((m, p)), np.zeros((m, p)), np.zeros((m, 3)))
        work = (np.zeros(p), np.zeros(p), np.zeros(p), np.zeros((p, p)))
        used, sign = np.zeros(p, np.int64), np.zeros(p, np.int64)
        return cls(samples, state, *sums, *fits, *work, used, sign)


@kernel
def clear(leaf: Leaf) -> None:
    """Take all samples out of a leaf."""
    for t in range(len(leaf.samples)):
        leaf.samples[t], leaf.state[t] = 0, _STALE
        for v in range(3):
            leaf.sums[t, v] = 0.0
        for j in range(len(leaf.mean)):
            leaf.x[t, j] = leaf.xy[t, j] = leaf.beta[t, j] = 0.0
            for k in range(len(leaf.mean)):
                leaf.xx[t, j, k] = 0.0


@kernel
def add_to_leaf(samples: LinearSamples, i: int, leaf: Leaf) -> None:
    """Put a sample into a leaf."""
    t, weight, y, p = samples.treatment[i], samples.weight[i], samples.y[i], len(leaf.mean)
    leaf.samples[t] += 1
    leaf.state[t] = _STALE
    leaf.sums[t, 0] += weight
    leaf.sums[t, 1] += weight * y
    leaf.sums[t, 2] += weight * y * y
    for j in range(p):
        x = weight * samples.X[i, j]
        leaf.x[t, j] += x
        leaf.xy[t, j] += x * y
        for k in range(p):
            leaf.xx[t, j, k] += x * samples.X[i, k]


@kernel
def charge(samples: LinearSamples, leaf: Leaf, charges: FloatArray) -> None:
    """Tell what a leaf is charged, and a bound for all minima of its lassos; infinite if it may prescribe nothing."""
    m, p, n = len(leaf.samples), len(leaf.mean), 0.0
    charges[0] = charges[1] = best = least = np.inf
    enough = False
    for t in range(m):
        n += leaf.sums[t, 0]
        enough |= leaf.samples[t] >= samples.n_treatment
    if not enough:
        return
    for j in range(p):
        leaf.mean[j] = 0.0
        for t in range(m):
            leaf.mean[j] += leaf.x[t, j] / n
    loss, lower = 0.0, 0.0
    for t in range(m):
        if leaf.samples[t] == 0:
            continue
        if leaf.state[t] == _STALE:
            fit_lasso(samples.theta, t, leaf)
        loss += leaf.fit[t, 0]
        lower += leaf.fit[t, 1]
        if leaf.samples[t] < samples.n_treatment:
            continue
        size, own, farthest = leaf.sums[t, 0], 0.0, 0.0
        for j in range(p):
            leaf.apart[j] = leaf.mean[j] - leaf.x[t, j] / size
            own += leaf.beta[t, j] * leaf.apart[j]
            farthest = max(farthest, abs(leaf.apart[j]))
        mean = leaf.sums[t, 1] / size
        best = min(best, mean + own)
        if leaf.state[t] == _UNSOLVED:
            own = -leaf.fit[t, 2] * farthest
        elif leaf.state[t] == _SEVERAL:
            own -= lowered(samples.theta, t, leaf)
        least = min(least, mean + own)
    charges[0] = samples.mu * n * best + (1.0 - samples.mu) * loss
    charges[1] = samples.mu * n * least + (1.0 - samples.mu) * lower


@kernel
def lowered(theta: float, t: int, leaf: Leaf) -> float:
    """Bound by how much another minimum lowers the estimate of a treatment at the mean of all samples."""
    p, beta, used, d = len(leaf.mean), leaf.beta[t], leaf.used, leaf.apart
    size, others, most, reach = 0, 0, 0.0, leaf.fit[t, 2]
    for turn in range(2):
        for k in range(p):
            tight = turn == 0 or abs(leaf.slope[t, k]) >= theta * (1.0 - _ROUNDING)
            if (beta[k] != 0.0) == (turn == 1) or not tight:
                continue
            if covariance(t, k, k, leaf) <= _CONSTANT * leaf.sums[t, 0]:
                continue
            used[size] = k
            if factorise(t, size + 1, leaf) > size:
                size += 1
                continue
            leaf.sign[k], others = 1, others + 1
            direction_of(theta, t, size + 1, size, leaf)  # minus w
            sign, gain, slack = 1.0 if leaf.slope[t, k] > 0.0 else -1.0, d[k], leaf.fit[t, 2]
            for a in range(size):
                gain += leaf.right[a] * d[used[a]]
                if leaf.right[a] * sign * leaf.slope[t, used[a]] < 0.0:
                    slack = min(slack, abs(beta[used[a]] / leaf.right[a]))
            most = max(most, -sign * gain)
            reach = slack if others == 1 else leaf.fit[t, 2]
    return float(reach * most)


@kernel
def fit_lasso(theta: float, t: int, leaf: Leaf) -> None:
    """Fit the lasso of a treatment, beginning with the coefficients that it has."""
    p, n, y = len(leaf.mean), leaf.sums[t, 0], leaf.sums[t, 1]
    beta, slope = leaf.beta[t], leaf.slope[t]
    solved = solve(theta, t, leaf)
    constant = max(0.0, leaf.sums[t, 2] - y * y / n)
    sizes, gained, fitted, steepest = 0.0, 0.0, 0.0, 0.0
    several = False
    for j in range(p):
        sizes += abs(beta[j])
        gained += beta[j] * (leaf.xy[t, j] - leaf.x[t, j] * y / n)
        fitted += beta[j] * slope[j]
        steepest = max(steepest, abs(slope[j]))
        several |= beta[j] == 0.0 and abs(slope[j]) >= theta * (1.0 - _ROUNDING)
    residuals = max(0.0, constant - gained - fitted)
    value = residuals + 2.0 * theta * sizes
    leaf.fit[t, 0] = leaf.fit[t, 1] = value
    leaf.fit[t, 2] = sizes
    leaf.state[t] = _SEVERAL if several else _UNIQUE
    if not solved:
        scale = min(1.0, theta / steepest) if steepest > 0.0 else 1.0
        leaf.fit[t, 1] = max(0.0, 2.0 * scale * (constant - gained) - scale * scale * residuals)
        leaf.fit[t, 2] = value / (2.0 * theta)
        leaf.state[t] = _UNSOLVED


@kernel
def covariance(t: int, j: int, k: int, leaf: Leaf) -> float:
    """Return the sum of the products of two features around their means."""
    return float(leaf.xx[t, j, k] - leaf.x[t, j] * leaf.x[t, k] / leaf.sums[t, 0])


@kernel
def find_slopes(t: int, leaf: Leaf) -> None:
    """Compute half the slopes of the loss along all coefficients."""
    for j in range(len(leaf.mean)):
        leaf.slope[t, j] = leaf.xy[t, j] - leaf.x[t, j] * leaf.sums[t, 1] / leaf.sums[t, 0]
        for k in range(len(leaf.mean)):
            if leaf.beta[t, k] != 0.0:
                leaf.slope[t, j] -= covariance(t, j, k, leaf) * leaf.beta[t, k]


@kernel
def solve(theta: float, t: int, leaf: Leaf) -> bool:
    """Go from set to set until the coefficients are a minimum; say whether they are. The slopes are theirs."""
    p, beta, slope, right, used = len(leaf.mean), leaf.beta[t], leaf.slope[t], leaf.right, leaf.used
    size = 0
    for j in range(p):
        if beta[j] != 0.0:
            used[size], leaf.sign[j] = j, 1 if beta[j] > 0.0 else -1
            size += 1
    for _ in range(_STEPS * p):
        rank = factorise(t, size, leaf)
        if rank < size - 1:
            break
        last = leaf.sign[used[size - 1]] if size > 0 else 0
        direction_of(theta, t, size, rank, leaf)
        # How far: to the minimum, or where the first coefficient is 0; without end in favour of a dependent feature.
        far, first = 1.0 if rank == size else np.inf, -1
        for a in range(rank):
            j = used[a]
            if (beta[j] + right[a]) * leaf.sign[j] <= 0.0 or (rank < size and right[a] * leaf.sign[j] < 0.0):
                distance = -beta[j] / right[a] if right[a] != 0.0 else 0.0
                if distance < far or first < 0:
                    far, first = distance, a
        if rank < size:
            if first < 0:
                break
            beta[used[rank]] += far * last
        for a in range(rank):
            beta[used[a]] += far * right[a]
        if first >= 0:
            beta[used[first]] = 0.0
            size -= 1
            for a in range(first, size):
                used[a] = used[a + 1]
            continue
        find_slopes(t, leaf)
        steepest, entering = theta * (1.0 + _ROUNDING), -1
        for j in range(p):
            varies = covariance(t, j, j, leaf) > _CONSTANT * leaf.sums[t, 0]
            if beta[j] == 0.0 and varies and abs(slope[j]) > steepest:
                steepest, entering = abs(slope[j]), j
        if entering < 0:
            return True
        used[size], leaf.sign[entering] = entering, 1 if slope[entering] > 0.0 else -1
        size += 1
    find_slopes(t, leaf)
    return False


@kernel
def factorise(t: int, size: int, leaf: Leaf) -> int:
    """Factorise the covariances of the features in use; return how many come before the first that depends on them."""
    L, used = leaf.factor, leaf.used
    for a in range(size):
        for b in range(a + 1):
            rest = covariance(t, used[a], used[b], leaf)
            for c in range(b):
                rest -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = rest / L[b, b]
            elif rest <= _PIVOT * covariance(t, used[a], used[a], leaf):
                return a
            else:
                L[a, a] = np.sqrt(rest)
    return size


@kernel
def direction_of(theta: float, t: int, size: int, rank: int, leaf: Leaf) -> None:
    """Find the direction of the coefficients in use to their minimum, or in which the last, dependent one grows."""
    n, y, L, right, used = leaf.sums[t, 0], leaf.sums[t, 1], leaf.factor, leaf.right, leaf.used
    for a in range(rank):
        if rank < size:
            right[a] = -leaf.sign[used[rank]] * L[rank, a]
            continue
        j = used[a]
        right[a] = leaf.xy[t, j] - leaf.x[t, j] * y / n - theta * leaf.sign[j]
        for b in range(a):
            right[a] -= L[a, b] * right[b]
        right[a] /= L[a, a]
    for a in range(rank - 1, -1, -1):
        for b in range(a + 1, rank):
            right[a] -= L[b, a] * right[b]
        right[a] /= L[a, a]
    if rank == size:
        for a in range(rank):
            right[a] -= leaf.beta[t, used[a]]


class LinearWorkspace(NamedTuple):
    """Workspace of an enumeration.

    Attributes
    ----------
    leaf
        The leaf that is being filled.
    side, here
        (n,) side of the root of each sample, and the samples of one side in the order of a feature.
    curve
        (2, n) charges, and bounds on them, of both leaves by the number of samples on the left, less 1.
    charge, least
        (2,) what each side is charged with its best split, and the least bound of all its splits.
    split
        (2, 2) feature and least rank on the right of the best split, -1 for none.
    charges
        (2,) charge of a leaf, and the bound.
    """

    leaf: Leaf
    side: IntArray
    here: IntArray
    curve: FloatArray
    charge: FloatArray
    least: FloatArray
    split: IntArray
    charges: FloatArray


def enumerate_linear_trees(
    X: FloatArray,
    charges: TreeCharges,
    depth: int,
    should_stop: Callable[[float, int], bool] = lambda value, tried: False,  # noqa: ARG005
) -> EnumerationResult:
    """Try all trees of depth 1 or 2; as :func:`~mipforest.searches.prescription.enumeration.enumerate_trees`."""
    require_charges("prescription-search", charges, X, products=True)
    loss = charges.loss
    assert isinstance(loss, PrescriptionLoss)
    assert charges.coefficient_cost is not None
    (n, p), m = X.shape, loss.n_treatments
    rank, order = ranks(X)
    samples = LinearSamples(
        np.ascontiguousarray(X),
        np.asarray(charges.y, dtype=np.float64),
        charges.weights,
        loss.treatment.astype(np.int64),
        rank,
        order,
        0.5 * charges.coefficient_cost,
        loss.mu,
        charges.split_cost,
        loss.n_treatment,
        charges.N_min,
    )
    work = LinearWorkspace(
        Leaf.empty(m, p),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((2, n)),
        np.zeros(2),
        np.zeros(2),
        np.full((2, 2), -1),
        np.zeros(2),
    )
    chosen = np.full((3, 2), -1)
    charge_alone(samples, 0, work)
    best, least = float(work.charge[0]), float(work.least[0])
    if depth == 1:
        for tried, f in enumerate(range(p), start=1):
            try_splits(samples, 0, f, work)
            best, least, chosen[0] = float(work.charge[0]), float(work.least[0]), work.split[0]
            if should_stop(best, tried) and tried < p:
                return EnumerationResult(*splits_by_rank(X, rank, chosen, 1), False, -np.inf)
        return EnumerationResult(*splits_by_rank(X, rank, chosen, 1), True, least)
    cuts = [(j, cut) for j in range(p) for cut in range(1, int(rank[j].max()) + 1)]
    for tried, (j, cut) in enumerate(cuts, start=1):
        work.side[:] = rank[j] >= cut
        for s in range(2):
            charge_alone(samples, s, work)
            for f in range(p):
                try_splits(samples, s, f, work)
        least = min(least, float(work.least.sum()) + samples.split_cost)
        if (value := float(work.charge.sum()) + samples.split_cost) < best:
            best, chosen = value, np.vstack([[j, cut], work.split])
        if should_stop(best, tried) and tried < len(cuts):
            return EnumerationResult(*splits_by_rank(X, rank, chosen, 3), False, -np.inf)
    return EnumerationResult(*splits_by_rank(X, rank, chosen, 3), True, least)


@entry
def charge_alone(samples: LinearSamples, s: int, work: LinearWorkspace) -> None:
    """Charge a side of the root without a split: where its best split begins."""
    clear(work.leaf)
    size = 0
    for i in range(len(samples.y)):
        if work.side[i] == s:
            add_to_leaf(samples, i, work.leaf)
            size += 1
    charge(samples, work.leaf, work.charges)
    enough = size >= samples.N_min
    work.charge[s] = work.charges[0] if enough else np.inf
    work.least[s] = work.charges[1] if enough else np.inf
    work.split[s, 0] = -1


@entry
def try_splits(samples: LinearSamples, s: int, f: int, work: LinearWorkspace) -> None:
    """Try all splits of a side of the root on a feature; keep the best, and the least bound."""
    size, here, curve, charges = 0, work.here, work.curve, work.charges
    for q in range(len(samples.y)):
        if work.side[samples.order[f, q]] == s:
            here[size] = samples.order[f, q]
            size += 1
    for backward in range(2):
        clear(work.leaf)
        for q in range(size - 1):
            add_to_leaf(samples, here[size - 1 - q] if backward else here[q], work.leaf)
            left = size - q - 2 if backward else q  # the last sample on the left
            if not backward:
                curve[0, left] = curve[1, left] = np.inf
            elif curve[1, left] == np.inf:
                continue
            between = samples.rank[f, here[left]] < samples.rank[f, here[left + 1]]
            if between and q + 1 >= samples.N_min and size - q - 1 >= samples.N_min:
                charge(samples, work.leaf, charges)
                for kind in range(2):
                    curve[kind, left] = charges[kind] + (curve[kind, left] if backward else 0.0)
    for left in range(size - 1):
        work.least[s] = min(work.least[s], curve[1, left] + samples.split_cost)
        if curve[0, left] + samples.split_cost < work.charge[s]:
            work.charge[s] = curve[0, left] + samples.split_cost
            work.split[s, 0], work.split[s, 1] = f, samples.rank[f, here[left + 1]]
