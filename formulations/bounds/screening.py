r"""What a known tree's value proves of MARGOT beyond its radii: ranges of scores, and nodes that samples cannot reach.

The screening of the routing search's root (:mod:`mipforest.searches.routing`), in numpy alone, for variant ``tight``.
A *solution* is one of value at most UB here; its charge at node t is, for the set S of samples that are *proven* to
reach t, with sides of t that are proven (R and L), at least

.. math::

    f_t(w, b) = \tfrac12 \|w\|^2 + C_t \sum_{i \in S} n_i \max(0, 1 - y_i (w^\top x_i + b)), \qquad
    w^\top x_i + b \ge 0 \; (R), \quad w^\top x_i + b \le -\varepsilon \; (L) .

**Lower bounds.** Every :math:`\beta` with :math:`\sum_k \beta_k = 0` and :math:`l \le \beta \le u` gives one for all
(w, b): :math:`f_t \ge D_t + \tfrac12 \|w - w^*\|^2` with :math:`w^* = \sum_k \beta_k x_k` and
:math:`D_t = \sum_k r_k \beta_k - \tfrac12 \|w^*\|^2` (rates r, bounds l and u as in
:mod:`mipforest.searches.routing.node_dual`). So what the objective charges at t exceeds :math:`D_t` by at most
:math:`\Delta = UB - \sum_s D_s`, at every node: :math:`\|w_t - w_t^*\| \le \sqrt{2 \Delta}`.

**Ranges of scores.** Take :math:`\mu > 0` from a variable j that may fall so far, and add :math:`\mu` to a new one at
:math:`x_i`: the dual value then bounds :math:`f_t - \mu s_i`, so

.. math::

    s_i \le \Delta / \mu + r_j + w^{*\top} (x_i - x_j) + \tfrac{\mu}{2} \|x_i - x_j\|^2,

least at :math:`\mu = \sqrt{2 \Delta} / \|x_i - x_j\|`, or at the room that j has; from below likewise, with all signs
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

import numpy as np

from formulations.bounds.margins import ROUNDING, MarginLimits
from formulations.bounds.node_duals import NodeDual
from mipforest.arrays import BoolArray, FloatArray, SparseMatrix
from mipforest.data import Dataset
from mipforest.heuristics.node_problems import NodeProblems
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

#: Most samples: each has its own copy of every node's dual.
MOST_SCREENED = 1000

#: Most rounds of screening; the last ones prove little, and none is needed.
MOST_ROUNDS = 12


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
    if data.n > MOST_SCREENED:
        return unproven
    screening = _Screening.of(limits, data, topology, nodes, time)
    upper_bound = limits.upper_bound * (1 + ROUNDING)
    for _ in range(MOST_ROUNDS):
        duals = screening.duals(possible)
        slack = upper_bound - sum(dual.value for dual in duals)
        left = possible & (screening.gains(duals, possible, slack) <= slack)
        # The known tree sends every sample somewhere: what says otherwise is rounding.
        if slack <= 0 or not left.any(axis=1).all():
            return unproven
        ended = time.expired or bool((left == possible).all())
        possible = left
        if ended:
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

    def duals(self, possible: BoolArray) -> list[NodeDual]:
        """Solve every node's dual for the samples that are proven to reach it, and the sides proven there."""
        topology, found = self.topology, []
        for t in topology.branches:
            here = ~possible[:, ~_below(topology.reach, t)].any(axis=1)
            rate, capacity = [self.sign[here]], [self.nodes.C[t] * self.weight[here]]
            X = [self.X[here]]
            if t in topology.upper_branches:
                for reach, r in ((topology.reach_left, 0.0), (topology.reach_right, -self.nodes.epsilon)):
                    # Proven to go right is who cannot go left.
                    kept = here & ~possible[:, _below(reach, t)].any(axis=1)
                    X.append(self.X[kept])
                    rate.append(np.full(int(kept.sum()), r))
                    capacity.append(np.full(int(kept.sum()), np.inf))
            variables = np.concatenate(X), np.concatenate(rate), np.concatenate(capacity)
            found.append(NodeDual.of(*variables, float(self.bias[t]), self.time))
        return found

    def gains(self, duals: list[NodeDual], possible: BoolArray, slack: float) -> FloatArray:
        """Return (n, |B''|) amounts that the bounds rise by if a sample reaches a last branch node; 0: not asked."""
        topology, gains = self.topology, np.zeros(possible.shape)
        open_ = possible.sum(axis=1) > 1
        for t, dual in zip(topology.branches, duals, strict=True):
            below, margin = _below(topology.reach, t), np.zeros(len(self.X))
            asked = open_ & possible[:, below].any(axis=1) & possible[:, ~below].any(axis=1)
            for sign, turned in ((1.0, dual), (-1.0, dual.turned())):
                of = asked & (self.sign == sign)
                capacity = self.nodes.C[t] * self.weight[of]
                margin[of] = turned.gains(self.X[of], np.ones(len(capacity)), capacity, slack, self.time)
            gains[:, below] += margin[:, None]
            if t in topology.upper_branches:
                sides = (
                    (topology.reach_right, dual, 0.0),
                    (topology.reach_left, dual.turned(), self.nodes.epsilon),
                )
                for reach, turned, rate in sides:
                    side = _below(reach, t)
                    of = open_ & possible[:, side].any(axis=1)
                    X, no_limit = self.X[of], np.full(int(of.sum()), np.inf)
                    kept = turned.gains(X, np.full(len(X), rate), no_limit, slack, self.time)
                    # A sample that is charged and kept: the larger amount of the two holds.
                    gains[np.ix_(of, side)] += np.maximum(kept - margin[of], 0.0)[:, None]
        return gains

    def within(self, limits: MarginLimits, duals: list[NodeDual], slack: float) -> MarginLimits:
        """Return limits within the ranges of scores, weights and biases that the duals prove."""
        samples, epsilon = np.vstack([self.X, self.origin]), self.nodes.epsilon
        radius = np.sqrt(2.0 * slack)
        weight = np.array([np.abs(dual.w) + radius for dual in duals]) * (1 + ROUNDING)
        most, least = (
            np.column_stack([_widened(dual.greatest(samples, slack, self.time)) for dual in of])
            for of in (duals, [dual.turned() for dual in duals])
        )
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


def _widened(bounds: FloatArray) -> FloatArray:
    """Allow for the rounding of bounds on scores."""
    return bounds + ROUNDING * (1.0 + np.abs(bounds))
