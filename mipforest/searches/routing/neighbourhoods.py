"""Neighbourhoods of the best tree: small searches that decide anew the groups of samples close to its hyperplanes.

All other groups stay where the tree has them, which leaves few routings: a dive finds better trees where one from the
root is cut off. What they find are trees; their bounds hold for the neighbourhood alone, and count for nothing.
The idea is that of local branching (Fischetti, Lodi, *Local branching*, Mathematical Programming 98, 2003), with the
distance to a hyperplane to say what is near.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray

#: Share of the groups at a node that are decided anew, at first, and by what it grows where that leads to nothing.
_SHARE, _GROWTH = 0.05, 1.5

#: Steps of one neighbourhood. The next one begins with few groups again, and takes others by chance: their distances
#: are multiplied by a random number whose logarithm has this standard deviation.
_STEPS, _NOISE = 400, 1.0

#: Steps in all neighbourhoods as a share of all steps of the search: the most, while they promise something, and the
#: least. In between the share is the gap: where it is wide, better trees are likely, and a proof is far away.
_MOST, _LEAST = 0.5, 0.05


class Neighbourhoods:
    """One neighbourhood after the other, with the routings that are open in the present one.

    Parameters
    ----------
    scores
        Returns (G, |B|) scores of the groups at the nodes of the best tree.
    at
        Returns the position of a partial routing (G,).
    """

    def __init__(self, scores: Callable[[], FloatArray], at: Callable[[IntArray], Any]) -> None:
        self._scores, self._at = scores, at
        self._heap: list[tuple[float, int, Any]] = []
        self._numbers = count()
        self._random = np.random.default_rng(0)
        self._steps = self._steps_here = 0
        self._around = np.inf
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin again with the groups that are closest, as another search has found a better tree."""
        self._share, self._noise = _SHARE, 0.0
        self._heap.clear()

    def due(self, nodes: int, gap: float) -> bool:
        """Return whether it is their turn, after these steps of all searches, with this relative gap."""
        return self._steps <= (_MOST if self._noise == 0.0 else min(max(gap, _LEAST), _MOST)) * nodes

    def start(self, best: float, target: float) -> tuple[Any, int]:
        """Return the position to dive from, and the steps at most.

        Parameters
        ----------
        best
            Value of the best tree.
        target
            Value from which on trees are not looked for.
        """
        spent = self._steps_here >= _STEPS
        if not self._heap or spent or self._heap[0][0] >= target:
            if best >= self._around:
                self._share *= _GROWTH
                if spent or self._share >= 1.0:
                    self._share, self._noise = _SHARE, _NOISE
            self._around, self._steps_here = best, 0
            scores = self._scores()
            distance = np.abs(scores) * np.exp(self._noise * self._random.standard_normal(scores.shape))
            self._heap = [(0.0, 0, self._at(near(scores >= 0.0, distance, self._share)))]
        return heapq.heappop(self._heap)[2], _STEPS - self._steps_here

    def take(self, steps: int, left_open: Sequence[tuple[float, Any]], target: float) -> None:
        """Account for a dive: its steps, and what it left open."""
        self._steps += steps
        self._steps_here += steps
        for bound, position in left_open:
            if bound < target:
                heapq.heappush(self._heap, (bound, next(self._numbers), position))


def near(goes_right: BoolArray, distance: FloatArray, share: float) -> IntArray:
    """Return the partial routing in which the groups close to hyperplanes wait at the first one.

    Parameters
    ----------
    goes_right, distance
        (G, |B|) sides of the groups at the nodes of a tree, and distances from its hyperplanes.
    share
        Of the groups that reach a node above the last level, the part that waits there, rounded up.

    Returns
    -------
    (G,) nodes that the groups have reached.
    """
    G, n_nodes = distance.shape
    reached, waits = np.zeros(G, np.int64), np.zeros(G, np.bool_)
    for t in range(n_nodes // 2):
        here = np.flatnonzero((reached == t) & ~waits)
        here = here[np.argsort(distance[here, t], kind="stable")]
        n_waiting = int(np.ceil(share * len(here)))
        waits[here[:n_waiting]] = True
        reached[here[n_waiting:]] = 2 * t + 1 + goes_right[here[n_waiting:], t]
    return reached
