"""Routings from support vector machines at many penalties, each scored exactly: the default start of the MARGOT family.

For a fixed routing the MARGOT model falls apart into one convex problem per node. The routing of a node is
taken from support vector machines at a path of penalties, not only at the node's own; each routing is priced
with the node's exact problem at its true penalty, plus the best subtrees on both sides. At depth 2 all routings
of the path are priced to the end; deeper, the most promising ones by a lower bound are.

Four penalties per decade: on the data sets of the MARGOT paper this finds better trees than one per decade on five
of nine, and eight per decade hardly any better (see ``docs/starts.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.heuristics.margin_nodes import MarginNodes, margin_tree
from mipforest.heuristics.margin_split import Split
from mipforest.trees import Topology, Tree

#: Penalties of the support vector machines that propose routings, where the next level is the last.
PENALTIES = tuple(10.0 ** (k / 4) for k in range(-16, 21))

#: Penalties further up, where every routing costs the search of two subtrees.
COARSE_PENALTIES = PENALTIES[::4]

#: Routings that are followed to the end, by the number of levels below that route again.
WIDTHS = {0: len(PENALTIES) + 1, 1: 3}

#: Seconds after which no further routing is tried: a safeguard for large data, out of reach on the papers' data sets.
TIME_LIMIT = 60.0


@dataclass(frozen=True, eq=False)
class _Subtree:
    splits: dict[int, Split]
    value: float


@dataclass(frozen=True, eq=False)
class _Routing:
    """Sides of a node's samples, the node's exact split for them, and a lower bound on what the subtrees add."""

    right: BoolArray
    split: Split
    below: float

    @property
    def promise(self) -> float:
        return self.split.value + self.below


def svm_path(
    data: Dataset, topology: Topology, nodes: MarginNodes, *, time_limit: float = TIME_LIMIT
) -> Tree:
    """Search routings from a path of penalties for the best exact objective.

    Parameters
    ----------
    data
        Two classes; scaled features.
    topology
        The tree.
    nodes
        What each node's split costs.
    time_limit
        Seconds after which no further routing is tried; the best tree so far is completed and given back.

    Returns
    -------
    Tree
        For scaled features. Without feature budgets never worse than the local SVM heuristic, whose routing
        of the root is on the path.
    """
    search = _Search(data.X, data.sign, topology, nodes, monotonic() + time_limit)
    best = search.subtree(0, np.arange(len(data.X)))
    return margin_tree(best.splits, data, topology)


class _Search:
    def __init__(
        self, X: FloatArray, sign: FloatArray, topology: Topology, nodes: MarginNodes, deadline: float
    ) -> None:
        self.X, self.sign = X, sign
        self.topology, self.nodes = topology, nodes
        self.deadline = deadline

    def subtree(self, t: int, members: IntArray) -> _Subtree:
        """Best subtree found for the samples that reach node t."""
        plain = self._plain(t, members)
        if t in self.topology.last_branches:
            return _Subtree({t: plain}, plain.value)
        best: _Subtree | None = None
        routing_levels_below = self.topology.depth - self.topology.level(t) - 2
        routings = self._routings(
            t, members, plain, PENALTIES if routing_levels_below == 0 else COARSE_PENALTIES
        )
        for routing in routings[: WIDTHS.get(routing_levels_below, 1)]:
            if best is not None and (routing.promise >= best.value or monotonic() > self.deadline):
                break
            left = self.subtree(2 * t + 1, members[~routing.right])
            right = self.subtree(2 * t + 2, members[routing.right])
            value = routing.split.value + left.value + right.value
            if best is None or value < best.value:
                best = _Subtree({t: routing.split, **left.splits, **right.splits}, value)
        assert best is not None  # the node's own support vector machine always gives a routing
        return best

    def _plain(self, t: int, members: IntArray, C: float | None = None) -> Split:
        """Support vector machine of node t, sides free: exact for the last level, a lower bound for any subtree."""
        split = self.nodes.split(t, self.X[members], self.sign[members], C=C)
        assert split is not None
        return split

    def _routings(
        self, t: int, members: IntArray, plain: Split, penalties: tuple[float, ...]
    ) -> list[_Routing]:
        """Distinct routings of node t along the path, most promising first."""
        X, sign = self.X[members], self.sign[members]
        found: dict[bytes, _Routing] = {}
        for C in (None, *penalties):
            if found and monotonic() > self.deadline:
                break
            proposal, right = self.nodes.route(plain if C is None else self._plain(t, members, C), X)
            key = right.tobytes()
            if key in found:
                continue
            split = self.nodes.split(t, X, sign, right=right) or self._at_true_penalty(t, proposal, X, sign)
            below = (
                self._plain(2 * t + 1, members[~right]).value + self._plain(2 * t + 2, members[right]).value
            )
            found[key] = _Routing(right, split, below)
        return sorted(found.values(), key=lambda routing: routing.promise)

    def _at_true_penalty(self, t: int, proposal: Split, X: FloatArray, sign: FloatArray) -> Split:
        """Price a proposal as it is, where no better split for its routing was found."""
        value = self.nodes.value(t, proposal.w, proposal.b, X, sign)
        return Split(proposal.w, proposal.b, value)
