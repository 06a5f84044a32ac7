"""Boxes: what every node may split on, which nodes have to, and which features come once on a path.

A box is a set of trees that is fixed without looking at rows, so that the search by covers holds in it as it is
(:mod:`mipforest.searches.exact.domains`). Nodes of the upper levels begin with covers of their own features; below a
feature of the root that comes once on a path, its side begins without the features of that group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, IntArray
from mipforest.searches.exact.domains import COLUMNS, FALLS, MUST, ONCE, RISES
from mipforest.trees.topology import subtree


@dataclass(frozen=True, eq=False)
class Box:
    """Trees whose nodes split on some features.

    Attributes
    ----------
    allowed
        (|B|, p) features that each node may split on.
    must
        (|B|,) whether a node has to split.
    group
        (p,) number of the group of each feature that comes once on a path, -1 for one that may come again.
    leaf
        (p,) ``2 * side + label`` of each feature below which that side of a node is a leaf with this label, of two
        classes, and -1 of each other one; a node of the last level has the other label on the other side. ``None``
        where there is none. Trees with splits that change no prediction are left out, also where nodes have to split.
    """

    allowed: BoolArray
    must: BoolArray
    group: IntArray
    leaf: IntArray | None = None

    def settled(self) -> Box | None:
        """Return the same trees, with what follows for other nodes; ``None`` where there is none.

        Above a node that has to split all have to; below one that cannot split none can.
        """
        allowed, must, group = self.allowed.copy(), self.must.copy(), self.group
        for t in range(len(must) - 1, 0, -1):
            must[(t - 1) // 2] |= must[t]
        for t in np.flatnonzero(must).tolist():
            own = np.unique(group[allowed[t]])
            if len(own) == 1 and own[0] >= 0:  # it uses the group, and no other node of its paths does
                for s in range(len(must)):
                    if s != t and (_is_above(s, t) or _is_above(t, s)):
                        allowed[s, group == own[0]] = False
        for t in range(1, len(must)):
            if not allowed[(t - 1) // 2].any():
                allowed[t] = False
        return None if (must & ~allowed.any(axis=1)).any() else replace(self, allowed=allowed, must=must)

    def allowed_below(self, side: int, f: int) -> BoolArray:
        """Return (p,) the features of the node on a side of the root, below a feature there."""
        allowed: BoolArray = self.allowed[1 + side] & ~self._again(f) & (self.label_below(side, f) < 0)
        return allowed

    def label_below(self, side: int, f: int) -> int:
        """Return the label of the leaf on a side of a node that splits on a feature, -1 where that may be any tree."""
        if self.leaf is None or self.leaf[f] < 0 or self.leaf[f] // 2 != side:
            return -1
        return int(self.leaf[f] % 2)

    def labels(self, f: int) -> tuple[int, int] | None:
        """Return the labels left and right of a last node's split on a feature, ``None`` for any."""
        if self.leaf is None or self.leaf[f] < 0:
            return None
        return (0, 1) if self.leaf[f] // 2 == self.leaf[f] % 2 else (1, 0)

    def below(self, side: int, f: int) -> Box | None:
        """Return the trees on a side of the root, below a feature there, settled; ``None`` where there is none."""
        nodes = subtree(1 + side, len(self.must))
        allowed = self.allowed[nodes] & ~self._again(f) & (self.label_below(side, f) < 0)
        return replace(self, allowed=allowed, must=self.must[nodes]).settled()

    def above(self, n: int) -> Box | None:
        """Return the trees whose first n nodes alone split, settled; ``None`` where there is none."""
        if self.must[n:].any():
            return None
        return replace(self, allowed=self.allowed[:n], must=self.must[:n]).settled()

    def _again(self, f: int) -> BoolArray:
        """Return (p,) the features that may not come below one."""
        again: BoolArray = (self.group == self.group[f]) & (self.group >= 0)
        return again

    @property
    def is_even(self) -> bool:
        """Whether all nodes may split on the same features, any number of times, and none has to."""
        alike = bool((self.allowed == self.allowed[0]).all())
        return alike and not self.must.any() and self.leaf is None and self.group.max(initial=-1) < 0

    @property
    def may_part_none(self) -> bool:
        """Whether a split that parts none of its node's samples may be worth its cost.

        A node may have to split, or have features below it that it may not split on itself.
        """
        below = range(1, len(self.must))
        return bool(
            self.must.any() or any((self.allowed[t] & ~self.allowed[(t - 1) // 2]).any() for t in below)
        )

    def masks(self) -> tuple[NDArray[np.uint8], IntArray, NDArray[np.uint8]]:
        """Return what the tables of a search of up to three levels are masked by: last nodes, groups, upper nodes."""
        p, depth = self.allowed.shape[1], len(self.must).bit_length()
        use, must = np.zeros((2, 2, p + COLUMNS), np.uint8), np.zeros(2, np.uint8)
        for side in range(2):
            for child in range(2):
                t = 3 + 2 * side + child if depth == 3 else 1 + child
                use[side, child, :p], use[side, child, p + MUST] = self.allowed[t], self.must[t]
            if depth == 3:
                must[side] = self.must[1 + side]
        use[0, 0, p + ONCE] = bool((self.group >= 0).any())
        for f in range(p):
            if (labels := self.labels(f)) is not None:
                use[:, :, f] *= RISES if labels == (0, 1) else FALLS
        return use, self.group.astype(np.int64), must


def _is_above(s: int, t: int) -> bool:
    """Return whether node s is above node t."""
    while t > s:
        t = (t - 1) // 2
    return s == t
