r"""Backend of a tree of support vector machines, with bounds of the subtrees below the root.

**Subtree bounds.** Once the sides at the root are known, the two subtrees below it do not depend on each other. One
tree of branchings for both multiplies the branchings of one by those of the other; a search of each subtree on its own
adds them. From three levels on, a plunge therefore begins with a bound on what each subtree costs for the groups K that
are known to reach it, whatever their sides there:

.. math::

    z(K) = \min \{ \text{cost of a tree with a level less on the samples of } K \}

by a routing search of that tree (which does the same with its own subtrees). Losses are not negative and a tree that
routes more samples routes K, too: :math:`z(K) \le z(K')` for :math:`K \subseteq K'`. So a lower bound on z(K) is valid
at all open nodes that follow. It is computed anew when K has grown by a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.numbers import require
from mipforest.searches.routing.certificate_writer import SvmWriter
from mipforest.searches.routing.plunge import (
    STOPPED,
    CompiledBackend,
    ConvexNodes,
    PlungeResult,
    WarmNode,
    WarmStart,
)
from mipforest.searches.routing.search import RoutingSearch
from mipforest.searches.routing.svm_dual import SvmNodes, masked, svm_nodes
from mipforest.trees.topology import subtree

#: Inner products of the groups for all sets of features that nodes may use: 200 MB.
MAX_PRODUCTS = 25_000_000

#: Steps of the search for a subtree bound.
_MAX_STEPS = 1000

#: Subtree bounds pay as long as this share of the last ones, about that many, prunes the node that they are for. Where
#: they do not, one of some open nodes still gets them: with a better tree they may pay again.
_PAYS, _RECENT, _PROBED = 0.25, 50, 8

#: Groups that reach a subtree before it gets a bound, and by how much more they have to be for another one.
_LEAST_GROUPS, _GROWTH = 8, 1.1


class SvmBackend(CompiledBackend):
    """Plunges of a tree of support vector machines, without a budget of features; parameters as for the base class.

    Raises
    ------
    DataValueError
        If a number is too large to compute with.
    """

    writer = SvmWriter

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        # Other relaxations prove nothing where their values overflow; this one would prove too much.
        require("routing", "X", nodes.X)
        for name in ("weight", "C", "bias_limit"):
            require("routing", name, getattr(nodes, name), least=0.0)
        super().__init__(nodes, logs=logs)
        if nodes.allowed is not None:
            self._groups = self._groups._replace(pull=np.where(nodes.allowed, self._groups.pull, 0.0))
        self._of_sets = masked(self._groups.X, nodes.allowed, nodes.n_nodes)
        self._tried = self._pruned = self._passed = 0
        self._subtrees = [subtree(1, nodes.n_nodes), subtree(2, nodes.n_nodes)]

    @classmethod
    def takes(cls, nodes: ConvexNodes, *, certified: bool) -> bool:
        """Return whether nodes are support vector machines, of any features: the hinge loss has one kink, at 1.

        The inner products of the groups for each set of features have to fit into memory.
        """
        del certified
        hinge = nodes.kinks.tolist() == [[1.0, 1.0]]
        n_sets = 1 if nodes.allowed is None else len(np.unique(nodes.allowed, axis=0))
        fits = n_sets == 1 or n_sets * len(nodes.X) ** 2 <= MAX_PRODUCTS
        return nodes.budget is None and not nodes.given and not nodes.l1 and hinge and fits

    @classmethod
    def _run_tiny(cls) -> None:
        X, weight = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
        three, hinge = np.ones(3), np.ones((1, 2))
        nodes = ConvexNodes(X, weight, three, 10.0 * three, 2, 1e-3, hinge, False, None, np.inf)
        search = RoutingSearch(cls(nodes), gap=0.0, complete=lambda _: np.inf, propose=lambda _: np.inf)
        search.run(1.0, deadline=np.inf)

    def _relaxation(self, log: FloatArray) -> SvmNodes:
        return svm_nodes(self._groups, self._of_sets, log)

    def _empty_log(self) -> FloatArray:
        return empty_log(self.nodes.n_nodes, len(self.nodes.X)) if self.logs else super()._empty_log()

    def _load(self, nodes: SvmNodes, warm: WarmStart | None) -> None:
        nodes.start[:] = 0.0
        if warm is not None:
            nodes.start.ravel()[warm[0]] = warm[1]

    def _saved(self, nodes: SvmNodes, at: int) -> WarmStart:
        flat = nodes.saved[at].ravel()
        where = np.flatnonzero(flat)
        return where.astype(np.int32), flat[where]

    def _solution(self, nodes: SvmNodes) -> tuple[FloatArray, FloatArray, FloatArray]:
        return nodes.duals.w.copy(), nodes.duals.nodes["bias"].copy(), nodes.duals.nodes["value"].copy()

    def plunge(self, start: WarmNode, cutoff: float, max_steps: int, stop: IntArray) -> PlungeResult:
        """Plunge from an open node, with bounds of its subtrees where they are due and pay."""
        if self.nodes.depth < 3 or self.logs or not (self._due(start) and self._pays()):
            return super().plunge(start, cutoff, max_steps, stop)
        # One step without branching shows what the nodes prove, and closes what it can.
        first = super().plunge(start, cutoff, 1, np.ones(1, np.int64))
        if first.end != STOPPED:
            return first
        start, steps = self._with_subtree_bounds(first.open[0][1], first.values, cutoff, stop)
        result = super().plunge(start, cutoff, max_steps, stop)
        return replace(
            result,
            cut_bound=min(first.cut_bound, result.cut_bound),
            steps=result.steps + first.steps + steps,
        )

    def _due(self, start: WarmNode) -> list[int]:
        """Return the subtrees, 0 for left and 1 for right, that a good part of their groups have reached since."""
        now = [int(np.isin(start.reached, branches).sum()) for branches in self._subtrees]
        return [k for k in range(2) if now[k] >= max(_LEAST_GROUPS, _GROWTH * start.counted[k])]

    def _pays(self) -> bool:
        """Return whether the last bounds have pruned enough nodes, or it is time to see whether they would now."""
        if self._tried < _RECENT or self._pruned >= _PAYS * self._tried:
            return True
        self._passed += 1
        return self._passed % _PROBED == 0

    def _with_subtree_bounds(
        self, start: WarmNode, values: FloatArray, cutoff: float, stop: IntArray
    ) -> tuple[WarmNode, int]:
        """Return an open node with new subtree bounds where they are due, and the steps that they took."""
        bounds, counted, known, steps = list(start.subtree_bounds), list(start.counted), list(start.known), 0
        for k in self._due(start):
            other = 1 - k
            of_other = max(bounds[other], float(values[self._subtrees[other]].sum()))
            enough = cutoff - float(values[0]) - of_other
            if enough <= bounds[k]:
                break  # it is cut off already
            inside = np.isin(start.reached, self._subtrees[k])
            bound, known[k], spent = self._subtree_bound(inside, self._subtrees[k], enough, stop)
            bounds[k], counted[k], steps = max(bounds[k], bound), int(inside.sum()), steps + spent
            self._tried += 1
            self._pruned += bound >= enough
            if self._tried >= 2 * _RECENT:
                self._tried, self._pruned = self._tried // 2, self._pruned // 2
        return replace(
            start,
            subtree_bounds=(bounds[0], bounds[1]),
            counted=(counted[0], counted[1]),
            known=(known[0], known[1]),
        ), steps

    def _subtree_bound(
        self, inside: BoolArray, branches: Sequence[int], enough: float, stop: IntArray
    ) -> tuple[float, bool, int]:
        """Bound what a subtree costs for some groups (G,).

        Returns
        -------
        bound, known, steps
            A bound not above ``enough``, whether the search for it ended, and its steps.
        """
        whole, at = self.nodes, list(branches)
        # The part is centred elsewhere, which moves a bias by less than its bound.
        part = replace(
            whole,
            X=whole.X[inside],
            weight=whole.weight[inside],
            C=whole.C[at],
            bias_limit=2.0 * whole.bias_limit[at],
            depth=whole.depth - 1,
            allowed=None if whole.allowed is None else whole.allowed[at],
            pull=None,
            limits=None,
        )
        search = RoutingSearch(
            SvmBackend(part), gap=0.0, complete=lambda result: result.bound, propose=lambda _: np.inf
        )
        outcome = search.run(
            enough,
            deadline=np.inf,
            on_progress=lambda *event: event[2] >= _MAX_STEPS or bool(stop[0]),
        )
        return outcome.bound, outcome.ended, outcome.nodes


def empty_log(n_nodes: int, n_groups: int) -> FloatArray:
    """Return a log for one plunge after the other; its second number is the end from which a plunge stops."""
    of_a_round = 2 * n_nodes * (1 + 6 * n_groups) + 13 * (n_groups + 1) + 8
    log = np.empty(max(1 << 20, 4 * of_a_round))
    log[1] = len(log) - of_a_round
    return log
