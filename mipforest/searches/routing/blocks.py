r"""Bounds for many samples: the problem of all samples is split into blocks of few, and a search bounds each.

Let the samples be divided into m blocks :math:`K_1, \dots, K_m`, and let vectors :math:`q_1, \dots, q_m` add up to 0.
A tree T with hyperplanes :math:`(w_t, b_t)`, w_0 that of the root, that pays :math:`c_i(T)` for the losses of sample i
at all nodes is worth

.. math::

    \sum_t \tfrac12 \|w_t\|^2 + \sum_i c_i(T)
    = \frac1m \sum_{j=1}^m \Bigl( \sum_t \tfrac12 \|w_t\|^2 - q_j^\top w_0 + m \sum_{i \in K_j} c_i(T) \Bigr)
    \ge \frac1m \sum_{j=1}^m z_j ,

where :math:`z_j` is the least value that any tree has in the bracket. For the equality the norms are divided evenly,
and the linear terms cancel. The inequality lets each block have a tree of its own, which keeps the gap for fewer
samples. So lower bounds on the :math:`z_j` give one on every tree. Each bracket is a problem of the same kind with the
samples of one block, m times the penalties, and a linear term at its root, which the routing search takes. This is a
Lagrangian decomposition with a copy of the tree for each block (M. Guignard, S. Kim, *Lagrangean decomposition: a model
yielding stronger Lagrangean bounds*, Mathematical Programming 39, 1987).

**Linear terms.** Let :math:`a` be the optimal dual point of the root's problem for all samples, and
:math:`w^* = \sum_i a_i d_i x_i`. With :math:`q_j = w^* - m \sum_{i \in K_j} a_i d_i x_i`, whose sum is 0, the point
:math:`m a` has the weights :math:`w^*` in the root problem of each block: roots of blocks lose next to nothing of
the bound that the root has for all samples. What is gained are losses below the root, which that bound does not have.

**Blocks** are alike: samples are dealt out in the order of their class and score at the root's hyperplane. A tree of
few samples fits them too well, and where classes are separable in blocks nothing is gained at all; one of many samples
is not proven. So blocks are small at first, and twice as large once most of them are proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.heuristics.node_solver import Hinges, NodeSolution, hinges_of, solve_node
from mipforest.searches.pool import Threads, run_tasks
from mipforest.searches.routing.plunge import COMPLETE, ConvexNodes
from mipforest.searches.routing.search import RoutingSearch
from mipforest.searches.routing.svm_backend import SvmBackend

#: Groups of equal samples in a block at first.
BLOCK = 60

#: Steps for each block in one pass over all of them after the other, and the share of the blocks that are proven from
#: which on larger ones are worth more than what is left.
PASSES, MOST = (500, 2000, 8000, 32_000), 0.75

#: The bound of a block is lowered by this share of the terms that it is computed from: what rounding may come to.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class _Block:
    """The problem of a block, and the value that the best tree of all samples has in it."""

    nodes: ConvexNodes
    known: float
    rounding: float


class BlockBound:
    """A lower bound on every tree, by blocks of samples.

    Parameters
    ----------
    nodes
        The problem: a tree of support vector machines on all features.

    Attributes
    ----------
    bound
        What is proven: at first that of the root's problem for all samples.
    steps
        Steps of the searches.
    """

    def __init__(self, nodes: ConvexNodes) -> None:
        self._nodes, self._root = nodes, _root(nodes)
        self.bound, self.steps = self._root[0].bound * (1.0 - ROUNDING), 0
        self._stopped = False

    def run(
        self,
        w: FloatArray,
        b: FloatArray,
        *,
        deadline: float,
        threads: int,
        on_progress: Callable[[float, int], bool],
    ) -> bool:
        """Raise the bound, by blocks that grow.

        Parameters
        ----------
        w, b
            (|B|, p) and (|B|,) hyperplanes of a feasible tree: its value bounds those of the blocks' trees from above.
        deadline
            On the clock of :func:`time.monotonic`.
        threads
            Blocks that are searched at a time.
        on_progress
            Called with the bound and the steps now and then; returning ``True`` stops.

        Returns
        -------
        Whether it has come to its end: after the last pass most blocks are open, or there is only one.
        """
        size = BLOCK
        with Threads(self._searched, threads) as pool:
            while len(self._nodes.X) >= 2 * size:
                blocks = _blocks(self._nodes, *self._root, w, b, size)
                least, ended = [-np.inf] * len(blocks), [False] * len(blocks)

                def should_stop(least: list[float] = least) -> bool:
                    self.bound = max(self.bound, math.fsum(least) / len(least))
                    self._stopped |= on_progress(self.bound, self.steps) or monotonic() >= deadline
                    return self._stopped

                for steps in (1, *PASSES):
                    self._pass(pool, blocks, steps, least, ended, should_stop)
                    if self._stopped:
                        return False
                    if sum(ended) >= MOST * len(ended):
                        break
                else:
                    return True
                size *= 2
        return True

    def _pass(
        self,
        pool: Threads,
        blocks: list[_Block],
        steps: int,
        least: list[float],
        ended: list[bool],
        should_stop: Callable[[], bool],
    ) -> None:
        """Search the blocks that have not ended for some steps each; raise their bounds."""
        waiting = iter([j for j in range(len(blocks)) if not ended[j]])

        def record(j: int, found: tuple[float, bool, int]) -> None:
            bound, ended[j], spent = found
            least[j], self.steps = max(least[j], bound), self.steps + spent

        run_tasks(
            pool, lambda: next(waiting, None), lambda j: pool.submit(blocks[j], steps), record, should_stop
        )

    def _searched(self, block: _Block, steps: int) -> tuple[float, bool, int]:
        """Return a bound for a block, whether it is as good as this search finds one, and the steps."""
        backend = SvmBackend(block.nodes)
        if steps == 1:  # what the root proves; the flag ends the plunge after its first step
            result = backend.plunge(backend.first(), block.known, 1, np.ones(1, np.int64))
            bounds = [result.cut_bound, *(bound for bound, _ in result.open)]
            bounds += [result.bound] if result.end == COMPLETE else []
            return min(bounds) - block.rounding, False, result.steps
        search = RoutingSearch(
            backend, gap=0.0, complete=lambda result: result.bound, propose=lambda _: np.inf
        )
        outcome = search.run(
            block.known,
            deadline=np.inf,
            on_progress=lambda *event: event[2] >= steps or self._stopped,
        )
        return outcome.bound - block.rounding, outcome.ended, outcome.nodes


def root_bound(nodes: ConvexNodes) -> float:
    """Return what every tree pays at its root, at least; of nodes on all features with half the squared norm."""
    return _root(nodes)[0].bound * (1.0 - ROUNDING)


def _root(nodes: ConvexNodes) -> tuple[NodeSolution, Hinges, IntArray]:
    """Solve the root's problem for all samples; return also its rows, and the group of each."""
    group, side = np.nonzero(nodes.weight)
    sign = np.where(side == 1, 1.0, -1.0)
    rows = hinges_of(nodes.X[group], sign, nodes.C[0] * nodes.weight[group, side], nodes.kinks)
    return solve_node(rows), rows, group


def _blocks(
    nodes: ConvexNodes,
    root: NodeSolution,
    rows: Hinges,
    group: IntArray,
    w: FloatArray,
    b: FloatArray,
    size: int,
) -> list[_Block]:
    """Divide the groups into blocks, with a linear term for each; see the module's proof."""
    G = len(nodes.X)
    m = max(1, G // size)
    a, d = root.multipliers, rows.direction
    heavier = np.where(nodes.weight[:, 1] >= nodes.weight[:, 0], 1, -1)
    order = np.lexsort((nodes.X @ root.w, heavier))
    # A block's multipliers may miss its equality a little. From here the rows that make up for it change w the least.
    free = (a > 0.0) & (a < rows.capacity)
    origin = (rows.X[free] if free.any() else rows.X).mean(axis=0)
    pulled = np.zeros_like(nodes.X)
    np.add.at(pulled, group, (a * d)[:, None] * (rows.X - origin))
    members = [np.sort(order[j::m]) for j in range(m)]
    pulls = np.array([pulled.sum(axis=0) - m * pulled[at].sum(axis=0) for at in members])
    pulls -= pulls.mean(axis=0)  # rounding has left something of their sum
    losses, norms = _losses(nodes, w, b), 0.5 * float(np.square(w).sum())
    blocks = []
    for at, pull in zip(members, pulls, strict=True):
        X, along = nodes.X[at], float(pull @ w[0])
        paid = m * float(losses[at].sum())
        known = norms - along + paid
        # Of an optimal tree: |w_0 - pull|^2 / 2 is at most its value and |pull|^2 / 2, and other nodes pay no less
        # than 0. The bias is then bounded as in ``_CandidateTrees.convex_nodes``.
        length = float(np.linalg.norm(pull))
        radius = length + math.sqrt(length * length + 2.0 * max(known, 0.0))
        reach = float(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
        limit = float(nodes.kinks[:, 0].max()) + 3.0 * radius * reach
        part = replace(
            nodes,
            X=X, weight=nodes.weight[at], C=m * nodes.C, bias_limit=np.full(nodes.n_nodes, limit), pull=pull,
            limits=None,
        )  # fmt: skip
        blocks.append(_Block(part, known, ROUNDING * (norms + abs(along) + paid + length * length)))
    return blocks


def _losses(nodes: ConvexNodes, w: FloatArray, b: FloatArray) -> FloatArray:
    """Return (G,) what a tree is charged for the losses of each group at all nodes on its path."""
    scores = nodes.X @ w.T + b
    paid, at, everyone = np.zeros(len(scores)), np.zeros(len(scores), np.int64), np.arange(len(scores))
    for _ in range(nodes.depth):
        s = scores[everyone, at]
        lost = nodes.weight[:, 0] * np.maximum(0.0, 1.0 + s) + nodes.weight[:, 1] * np.maximum(0.0, 1.0 - s)
        paid += nodes.C[at] * lost
        at = 2 * at + 1 + (s >= 0.0)
    return paid
