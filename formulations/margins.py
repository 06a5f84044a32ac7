r"""Big-Ms of the trees of linear classifiers: constants of the papers, or bounds proven from a feasible tree.

**Proof of the bounds** (variant ``valid``). The objective charges at every branch node a norm of the weights and C
times a loss of the scores :math:`s_i = w_t^\top x_i + b_t`, each times its sample's weight; all terms are nonnegative.
Let UB be the value of a
feasible tree, and V a lower bound on the share of the root. The loss is 0 for scores of at least v on the side of +1,
of at most -v on that of -1, and falls towards there: v is 1 for the hinge, the largest zero of the tangents for the
log-loss, epsilon for misclassification. Let :math:`\varepsilon \le v`.

1. A solution that is no worse than UB charges at most UB for the weights of the root, at most UB - V for those of any
   other node. So :math:`\|w_t\| \le R_t` in the norm that is charged: R = UB (or UB - V) for the l1 norm,
   :math:`\sqrt{2\,UB}` for half the squared Euclidean norm.
2. If all scores of a node exceed v, lower ``b_t`` until the smallest is v: all samples keep their side, no loss
   grows. If all scores are below -v, raise ``b_t`` until the largest is -v: the same holds, as
   :math:`\varepsilon \le v`. So some optimal solution has :math:`\min_k s_k \le v` and :math:`\max_k s_k \ge -v` at
   every node.
3. Then :math:`s_i = s_k + w_t^\top (x_i - x_k) \le v + R_t D_i` with k the smallest score and
   :math:`D_i = \max_k \|x_i - x_k\|_*` in the dual norm; likewise :math:`s_i \ge -v - R_t D_i`.
4. A row that holds a slack above the line :math:`a + d\,y_i s_i` (d < 0) is switched off by
   :math:`a - d\,(v + R_t D_i)`.

**With constraints that a user adds.** All steps hold for solutions of value at most UB, so let UB be the value of a
solution that satisfies the constraints: the limits are computed anew from it.

- Step 1 reads the objective alone: added rows take nothing from it, whatever they read. V stays a lower bound, as they
  only take solutions away.
- Step 2 moves ``b_t`` and nothing else: the slacks stay, and are still at least the losses. So it holds for every
  node whose ``b_t`` no added row or bound reads, also where they read w, xi, z, or what follows from these and from
  the sides: features, leaves, predictions. The rows that tell the side of a sample at the last level
  (:class:`~formulations.splits.linear.LinearTreeExpressions`) read ``b_t``, and allow the move: it changes no side,
  and scores on the left stay at :math:`-\varepsilon` or below.
- At a node whose ``b_t`` *is* read, step 2 is left out. Let :math:`\beta_t` be the greatest :math:`|b_t|` for which
  some w with :math:`\|w_t\| \le R_t`, and some values of all other blocks within their bounds, satisfy the added
  rows: a linear programme. Then :math:`|s_i| \le R_t \|x_i\|_* + \beta_t`, in the place of step 3. A fixed split,
  :math:`b_t = -\theta w_{tj}`, has :math:`\beta_t = |\theta| R_t`. Where :math:`\beta_t` is infinite nothing is proven.
- Rows of the model that a user removes void V, or the loss itself: nothing is proven.

**The constants of the papers** (variant ``paper``) cut off nothing if they are at least these limits, for UB the
value of a solution: then an optimum of the model is one of the definition. At depth one, without a budget of features,
a convex loss has rows without constants. Else an optimum is one for these constants only.

Without a norm, or for a node whose weights are not charged, step 1 bounds nothing: there is no variant ``valid`` then.

**Screening** (variant ``tight`` of MARGOT). A known tree's value proves more than radii: ranges of scores, and nodes
that samples cannot reach. It is that of the routing search's root (:mod:`mipforest.searches.routing`), in numpy alone.
A *solution* is one of value at most UB here; its charge at node t is, for the set S of samples that are *proven* to
reach t, with sides of t that are proven (R and L), at least

.. math::

    f_t(w, b) = \tfrac12 \|w\|^2 + C_t \sum_{i \in S} n_i \max(0, 1 - y_i (w^\top x_i + b)), \qquad
    w^\top x_i + b \ge 0 \; (R), \quad w^\top x_i + b \le -\varepsilon \; (L) .

**Lower bounds.** Every :math:`\beta` with :math:`\sum_k \beta_k = 0` and :math:`l \le \beta \le u` gives one for all
(w, b): :math:`f_t \ge D_t + \tfrac12 \|w - w^*\|^2` with :math:`w^* = \sum_k \beta_k x_k` and
:math:`D_t = \sum_k r_k \beta_k - \tfrac12 \|w^*\|^2` (rates r, bounds l and u as in
:mod:`mipforest.searches.routing.svm_dual`). So what the objective charges at t exceeds :math:`D_t` by at most
:math:`\Delta = UB - \sum_s D_s`, at every node: :math:`\|w_t - w_t^*\| \le \sqrt{2 \Delta}`.

**Ranges of scores.** Take :math:`\mu > 0` from a variable j that may fall so far, and add :math:`\mu` to a new one at
:math:`x_i`: the dual value then bounds :math:`f_t - \mu s_i`, so

.. math::

    s_i \le \Delta / \mu + r_j + w^{*\top} (x_i - x_j) + \tfrac{\mu}{2} \|x_i - x_j\|^2,

least at :math:`\mu = \sqrt{2 \Delta} / \|x_i - x_j\|`, or at the slack that j has; from below likewise, with all signs
changed. Further pair steps improve it: where the new variable, with a rate of :math:`\tau` and a value of
:math:`\mu`, has raised :math:`D_t` by a gain g, :math:`s_i \le \tau + (\Delta - g) / \mu`; that is the next
:math:`\tau` (Dinkelbach's method). The bias is the score of the origin.

**Nodes out of reach.** If sample i reached the last branch node s, it would be charged at every node on the path, and
keep a side at those above. Each is one more variable of that node's dual, and pair steps with it raise
:math:`D_t` by a known amount. If the amounts along the path exceed :math:`\Delta`, sample i does not reach s in any
solution. What is left may prove that it reaches a node, or goes a certain way there: S, R and L grow, :math:`D_t` with
them, and the screening goes on until nothing new follows.

Nothing is assumed of the bias but a bound (what rounding leaves of :math:`\sum \beta = 0` is charged with it), and
added constraints take solutions away only. Budgets and prices of features do the same: the bounds hold for HFS and SFS.
Trees as good as the known one satisfy all, so ties and mirror images of it are left in; UB allows for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from mipforest.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.model import Model, sum_squares
from mipforest.objectives.losses import HALF_SQUARED_L2, HINGE, BigM, BranchLoss, Norm
from mipforest.settings import SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree
from mipforest.trees.topology import Nodes

#: UB and V are values in floating-point numbers: allow for their rounding.
ROUNDING = 1e-6

#: Most samples for which the distance to the farthest other one is exact: that takes all distances, half a second.
#: With more it is bounded by the distance to the farthest corner of their box, and by way of their midpoint.
MAX_DISTANCES = 3000

#: Most differences between features of two samples that are computed for exact distances: about a second.
MAX_DIFFERENCES = 2e9

#: Samples whose distances to all others are held in memory at once.
CHUNK = 1000


@dataclass(frozen=True, eq=False)
class MarginLimits:
    """Big-Ms and bounds of a tree of linear classifiers.

    Attributes
    ----------
    M_xi
        Slack of the rows of the loss whose sample is elsewhere, one per row of a sample and node: a number, or
        (n, |B|).
    M_right, M_left
        Slack of a routing row whose sample is elsewhere: a number, or (n, |B|).
    M_w
        Bound on a weight whose feature is switched on: a number, (|B|, 1) or (|B|, p).
    weight, bias
        (|B|, 1) or (|B|, p), and (|B|,) bounds on ``|w|`` and ``|b|``; infinite in the papers' models.
    upper_bound
        Value of the tree that the limits were proven from; infinite where nothing was assumed.
    excluded
        (n, |B''|) last branch nodes that a sample cannot reach, in variant ``tight``.
    """

    M_xi: tuple[BigM, ...] = (50.0,)
    M_right: BigM = 100.0
    M_left: BigM = 100.0
    M_w: BigM = 50.0
    weight: BigM = np.inf
    bias: BigM = np.inf
    upper_bound: float = np.inf
    excluded: BoolArray | None = None


def proven_limits(
    X: FloatArray,
    epsilon: float,
    upper_bound: float,
    *,
    n_branches: int = 1,
    root_share: float = 0.0,
    loss: BranchLoss = HINGE,
    norm: Norm = HALF_SQUARED_L2,
    bias_read: FloatArray | None = None,
) -> MarginLimits:
    """Return limits that hold for an optimal solution, from the value of any feasible tree.

    Parameters
    ----------
    X
        (n, p) training samples.
    epsilon
        Gap that stands for a strict inequality, at most ``loss.flat_from``.
    upper_bound
        Value of a feasible tree.
    n_branches
        Number of branch nodes; 1 gives limits that hold for any node.
    root_share
        Lower bound on what the objective charges at the root, and only there.
    loss, norm
        What the objective charges; the norm must bound weights.
    bias_read
        (n_branches,) bounds on ``|b|`` at nodes whose bias added constraints read, NaN at all others; ``None``: they
        read none.
    """
    radius = weight_limits(upper_bound, n_branches=n_branches, root_share=root_share, norm=norm)
    length = norm.dual(X)[:, None]
    # |w.x_i + b| is at most this.
    score = loss.flat_from + farthest_distances(X, norm.dual_distance)[:, None] * radius
    # |b| <= |score_i| + |w| |x_i| for every sample; the best one counts.
    bias = (score + length * radius).min(axis=0)
    if bias_read is not None:
        read = np.isfinite(bias_read)
        bias = np.where(read, bias_read, bias)
        score = np.where(read, length * radius + bias, score)
    return MarginLimits(
        M_xi=loss.big_ms(score),
        M_right=score,
        M_left=score + epsilon,
        M_w=radius[:, None],
        weight=radius[:, None],
        bias=bias,
        upper_bound=upper_bound,
    )


def weight_limits(upper_bound: float, *, n_branches: int, root_share: float, norm: Norm) -> FloatArray:
    """Return (n_branches,) bounds on the norms of weights, step 1 of the proof; parameters as for `proven_limits`."""
    charge = np.full(n_branches, upper_bound * (1 + ROUNDING))
    charge[1:] = np.maximum(charge[1:] - root_share * (1 - ROUNDING), 0.0)
    return norm.radius(charge)


def moved_into_limits(tree: Tree, X: FloatArray, flat_from: float) -> Tree:
    """Move biases as in step 2 of the proof: no sample changes sides, no loss grows.

    Parameters
    ----------
    tree
        For scaled features; its left sides have scores of at most ``-epsilon``.
    X
        (n, p) training samples.
    flat_from
        Margin from which on the loss is 0.
    """
    scores = tree.scores(X)
    above, below = scores.min(axis=0) - flat_from, -flat_from - scores.max(axis=0)
    return replace(tree, b=tree.b - np.maximum(above, 0.0) + np.maximum(below, 0.0))


def farthest_distances(X: FloatArray, distance: str = "euclidean") -> FloatArray:
    """Return the (n,) distances of samples to the one farthest from each, in scipy's metric of this name.

    Of more than :data:`MAX_DISTANCES` samples, or :data:`MAX_DIFFERENCES` differences of features, upper
    bounds on them.
    """
    if len(X) > MAX_DISTANCES or len(X) ** 2 * X.shape[1] > MAX_DIFFERENCES:
        least, greatest = X.min(axis=0), X.max(axis=0)
        corner = np.where(greatest - X > X - least, greatest, least)
        middle = (least + greatest)[None] / 2
        from_middle = cdist(X, middle, distance)[:, 0]
        to_corner = cdist(np.abs(X - corner), np.zeros((1, X.shape[1])), distance)[:, 0]
        bounds: FloatArray = np.minimum(to_corner, from_middle + from_middle.max()) * (1 + ROUNDING)
        return bounds
    parts = [cdist(X[start : start + CHUNK], X, distance).max(axis=1) for start in range(0, len(X), CHUNK)]
    return np.concatenate(parts)


def at_nodes(M: BigM, nodes: Nodes) -> BigM:
    """Return the big-Ms of some nodes, where they differ by node."""
    return M if np.ndim(M) == 0 or np.shape(M)[1] == 1 else np.asarray(M)[:, np.asarray(nodes)]


#: Most samples: each has its own copy of every node's dual.
MAX_SCREENED = 1000

#: Most rounds of screening; the last ones prove little, and none is needed.
MAX_ROUNDS = 12

#: Variables of copies that are looked at in one piece: 1.6 MB for each array of them.
PAIRS = 200_000

#: Most pair steps in a copy, and the predicted gain of a step, relative to what is wanted, below which they end.
MAX_STEPS, LEAST_RISE = 100, 1e-4

#: Share of the greatest variable of a dual point below which a distance from a bound is the solver's residue.
RESIDUE = 1e-6

#: Least squared distance in a pair step: between equal samples any step is as good.
LEAST_CURVATURE = 1e-12


def screened(
    limits: MarginLimits, data: Dataset, topology: Topology, nodes: NodeProblems, time: TimeBudget
) -> MarginLimits:
    """Return tighter limits, with the nodes that samples cannot reach.

    Parameters
    ----------
    limits
        Limits of variant ``valid``, for solutions of value at most their ``upper_bound``.
    data, topology, nodes
        The samples, the tree, and what is charged: hinge loss and half the squared Euclidean norm.
    time
        Screening ends with it; what is proven by then counts.
    """
    possible = np.ones((data.n, len(topology.last_branches)), dtype=bool)
    unproven = replace(limits, excluded=~possible)
    if data.n > MAX_SCREENED:
        return unproven
    screening = _Screening.of(limits, data, topology, nodes, time)
    upper_bound = limits.upper_bound * (1 + ROUNDING)
    for _ in range(MAX_ROUNDS):
        duals = screening.duals(possible)
        slack = upper_bound - sum(dual.value for dual in duals)
        left = possible & (screening.gains(duals, possible, slack) <= slack)
        # The known tree sends every sample somewhere: what says otherwise is rounding.
        if slack <= 0 or not left.any(axis=1).all():
            return unproven
        possible, excluded = left, possible & ~left
        if time.expired or not excluded.any():
            break
    return replace(screening.within(limits, duals, slack), excluded=~possible)


@dataclass(frozen=True, eq=False)
class _Screening:
    """The samples, centred, and their charges: (n, p), (n,), (n,)."""

    X: FloatArray
    sign: FloatArray
    weight: FloatArray
    origin: FloatArray
    topology: Topology
    nodes: NodeProblems
    bias: FloatArray
    time: TimeBudget

    @staticmethod
    def of(
        limits: MarginLimits, data: Dataset, topology: Topology, nodes: NodeProblems, time: TimeBudget
    ) -> _Screening:
        centre = data.X.mean(axis=0)
        # The bias grows by w.centre where samples are centred.
        moved = np.linalg.norm(centre) * np.asarray(limits.weight).ravel()
        bias = np.broadcast_to(limits.bias + moved, topology.n_branches)
        return _Screening(
            data.X - centre, data.sign, data.weights, -centre[None], topology, nodes, bias, time
        )

    def duals(self, possible: BoolArray) -> list[_NodeDual]:
        """Solve every node's dual for the samples that are proven to reach it, and the sides proven there."""
        topology, found = self.topology, []
        for t in topology.branches:
            here = ~possible[:, ~_below(topology.reach, t)].any(axis=1)
            X, rate, capacity = [self.X[here]], [self.sign[here]], [self.nodes.C[t] * self.weight[here]]
            if t in topology.upper_branches:
                for reach, r in ((topology.reach_left, 0.0), (topology.reach_right, -self.nodes.epsilon)):
                    # Proven to go right is who cannot go left.
                    kept = here & ~possible[:, _below(reach, t)].any(axis=1)
                    X.append(self.X[kept])
                    rate.append(np.full(int(kept.sum()), r))
                    capacity.append(np.full(int(kept.sum()), np.inf))
            variables = np.concatenate(X), np.concatenate(rate), np.concatenate(capacity)
            found.append(_NodeDual.of(*variables, float(self.bias[t]), self.time))
        return found

    def gains(self, duals: list[_NodeDual], possible: BoolArray, slack: float) -> FloatArray:
        """Return (n, |B''|) increases of the bounds if a sample reaches a last branch node; 0: not asked."""
        topology, gains = self.topology, np.zeros(possible.shape)
        open_ = possible.sum(axis=1) > 1
        for t, dual in zip(topology.branches, duals, strict=True):
            below, margin = _below(topology.reach, t), np.zeros(len(self.X))
            asked = open_ & possible[:, below].any(axis=1) & possible[:, ~below].any(axis=1)
            for sign, mirrored in ((1.0, dual), (-1.0, dual.mirrored())):
                of = asked & (self.sign == sign)
                capacity = self.nodes.C[t] * self.weight[of]
                margin[of] = mirrored.gains(self.X[of], np.ones(len(capacity)), capacity, slack, self.time)
            gains[:, below] += margin[:, None]
            if t in topology.upper_branches:
                reaches, rates = (topology.reach_right, topology.reach_left), (0.0, self.nodes.epsilon)
                for reach, mirrored, rate in zip(reaches, (dual, dual.mirrored()), rates, strict=True):
                    side = _below(reach, t)
                    of = open_ & possible[:, side].any(axis=1)
                    X, no_limit = self.X[of], np.full(int(of.sum()), np.inf)
                    kept = mirrored.gains(X, np.full(len(X), rate), no_limit, slack, self.time)
                    # A sample that is charged and kept: the larger amount of the two holds.
                    gains[np.ix_(of, side)] += np.maximum(kept - margin[of], 0.0)[:, None]
        return gains

    def within(self, limits: MarginLimits, duals: list[_NodeDual], slack: float) -> MarginLimits:
        """Return limits within the ranges of scores, weights and biases that the duals prove."""
        samples, epsilon = np.vstack([self.X, self.origin]), self.nodes.epsilon
        radius = np.sqrt(2.0 * slack)
        weight = np.array([np.abs(dual.w) + radius for dual in duals]) * (1 + ROUNDING)
        most, least = (
            np.column_stack([dual.greatest_scores(samples, slack, self.time) for dual in of])
            for of in (duals, [dual.mirrored() for dual in duals])
        )
        most, least = (bounds + ROUNDING * (1.0 + np.abs(bounds)) for bounds in (most, least))
        bias = np.maximum(most[-1], least[-1])
        # Both bound scores: these, and those of the limits that are given.
        above = np.maximum(np.minimum(most[:-1], limits.M_right), 0.0)
        below = np.maximum(np.minimum(least[:-1], limits.M_right), 0.0)
        missing = np.where(self.sign[:, None] > 0, below, above)
        return replace(
            limits,
            M_xi=(1.0 + missing,),
            M_right=below,
            M_left=above + epsilon,
            M_w=np.minimum(limits.M_w, weight),
            weight=np.minimum(limits.weight, weight),
            bias=np.minimum(limits.bias, bias),
        )


def _below(reach: SparseMatrix, t: int) -> BoolArray:
    """Return (|B''|,) which last branch nodes are below a node, by a column of the topology's incidences."""
    below: BoolArray = reach.toarray()[:, t] > 0.5
    return below


# ------------------------------------------------------------------ the dual of one node


@dataclass(frozen=True, eq=False)
class _NodeDual:
    """Samples (m, p) of a node's dual variables, their rates, bounds and values (m,), weights, and the bound proven."""

    X: FloatArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    beta: FloatArray
    w: FloatArray
    value: float

    @staticmethod
    def of(X: FloatArray, rate: FloatArray, capacity: FloatArray, bias: float, time: TimeBudget) -> _NodeDual:
        """Solve the dual for samples (m, p) whose variables go as far as a capacity (m,): down where rates are below 0.

        The bias of solutions is bounded; without time the point is 0.
        """
        low, high = np.where(rate < 0, -capacity, 0.0), np.where(rate < 0, 0.0, capacity)
        beta = np.zeros(len(rate))
        if len(rate) and low.min() < 0 < high.max() and not time.expired:
            beta = _solved(X, rate, low, high, time)
        w = X.T @ beta
        value = float(rate @ beta - 0.5 * w @ w - abs(beta.sum()) * bias)
        if not value > 0.0:
            beta, w, value = np.zeros(len(rate)), np.zeros(X.shape[1]), 0.0
        return _NodeDual(X, rate, low, high, beta, w, value)

    @cached_property
    def gram(self) -> FloatArray:
        """(m, m) inner products of the samples."""
        products: FloatArray = self.X @ self.X.T
        return products

    def mirrored(self) -> _NodeDual:
        """Return the same with all signs changed: what rises falls, and scores are those of the other side."""
        return _NodeDual(self.X, -self.rate, -self.high, -self.low, -self.beta, -self.w, self.value)

    def gains(
        self, X: FloatArray, rate: FloatArray, capacity: FloatArray, enough: float, time: TimeBudget
    ) -> FloatArray:
        """Return (n,) amounts by which a new variable that rises raises the value, for each of n samples.

        An amount that is enough needs no improvement; without time amounts are 0.
        """
        found = np.zeros(len(X))
        falls = (self.beta > self.low).any()
        for part in self._parts(len(X)):
            if falls and not time.expired:
                found[part] = _Steps(self, X[part], rate[part], capacity[part]).gain_up_to(enough)
        return found

    def greatest_scores(self, X: FloatArray, slack: float, time: TimeBudget) -> FloatArray:
        """Return (n,) upper bounds on the scores of samples (n, p), infinite where nothing is proven.

        The objective charges at most the slack beyond the value; without time one pair step is taken.
        """
        reach = self.beta - self.low
        others = reach > 0
        if not others.any():
            return np.full(len(X), np.inf)
        lack, found = (self.rate - self.X @ self.w)[others], np.empty(len(X))
        for part in self._parts(len(X)):
            curvature = np.maximum(cdist(X[part], self.X[others], "sqeuclidean"), LEAST_CURVATURE)
            step = np.minimum(np.sqrt(2.0 * slack / curvature), reach[others])
            bounds = (slack / step + 0.5 * step * curvature + lack).min(axis=1) + X[part] @ self.w
            if not time.expired:
                bounds = _Steps(self, X[part], bounds, np.full(len(bounds), np.inf)).least_rate(slack)
            found[part] = bounds
        return found

    def _parts(self, n: int) -> list[slice]:
        """Return slices of n samples whose pairs with all variables fit into :data:`PAIRS`."""
        size = max(1, PAIRS // (len(self.rate) + 1))
        return [slice(start, start + size) for start in range(0, n, size)]


class _Steps:
    """Pair steps from a node's dual point of m variables, in n copies: in each with one new variable that rises.

    Of the new ones, samples (n, p), rates (n,), and capacities (n,): how far they rise.
    """

    def __init__(self, dual: _NodeDual, X: FloatArray, rate: FloatArray, capacity: FloatArray) -> None:
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
        for _ in range(MAX_STEPS):
            gain_bound = self._step()
            gains[left] = self.gain
            goes_on = (gain_bound > LEAST_RISE * enough) & (self.gain <= enough)
            if not goes_on.any():
                break
            left = left[goes_on]
            self._restrict(goes_on)
        return gains

    def least_rate(self, slack: float) -> FloatArray:
        """Lower the new variables' rates to where the gain is the slack, step after step; return the rates (n,)."""
        rates, left = self.rate.copy(), np.arange(len(self.gain))
        for _ in range(MAX_STEPS):
            gain_bound = self._step()
            new = self.beta[:, self.own]
            lower = (self.gain > slack) & (new > 0)
            fall = np.where(lower, (self.gain - slack) / np.where(lower, new, 1.0), 0.0)
            self.rate -= fall
            self.lack[:, self.own] -= fall
            self.gain -= fall * new
            rates[left] = self.rate
            goes_on = gain_bound > LEAST_RISE * slack
            if not goes_on.any():
                break
            left = left[goes_on]
            self._restrict(goes_on)
        return rates

    def _restrict(self, kept: BoolArray) -> None:
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
        """Take the best pair step with the variable that lacks most, in every copy; return the predicted gain (n,)."""
        rows, lack, beta = self.rows, self.lack, self.beta
        up = np.where(beta < self.high, lack, -np.inf).argmax(axis=1)
        up_inner = self._inner(up)
        curvature = np.maximum(self.square[rows, up][:, None] + self.square - 2.0 * up_inner, LEAST_CURVATURE)
        violation = np.where(beta > self.low, np.maximum(lack[rows, up][:, None] - lack, 0.0), 0.0)
        down = (violation * violation / curvature).argmax(axis=1)
        violation, curvature = violation[rows, down], curvature[rows, down]
        reach = np.minimum(self.high[rows, up] - beta[rows, up], beta[rows, down] - self.low[down])
        step = np.where(violation > 0, np.minimum(violation / curvature, reach), 0.0)
        beta[rows, up] += step
        beta[rows, down] -= step
        lack -= step[:, None] * (up_inner - self._inner(down))
        self.gain += step * (violation - 0.5 * step * curvature)
        gain_bound: FloatArray = 0.5 * violation * violation / curvature
        return gain_bound


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
    solution = get_solver("clarabel").solve(m.matrix(), SolveSettings(time_limit=time.at_most()))
    if solution.x is None or not np.isfinite(solution.x).all():
        return np.zeros(len(rate))
    found = np.clip(solution["beta"], low, high)
    # An interior point leaves all variables a little slack, and pair steps would take all of it, a little at a time.
    near = RESIDUE * np.abs(found).max()
    found = np.where(found - low < near, low, np.where(high - found < near, high, found))
    # What is too much on one side is taken from it in proportion; both sums stay within their bounds.
    up, down = found[found > 0].sum(), -found[found < 0].sum()
    if up > 0 and down > 0:
        found[found > 0] *= min(1.0, down / up)
        found[found < 0] *= min(1.0, up / down)
        return found
    return np.zeros(len(rate))
