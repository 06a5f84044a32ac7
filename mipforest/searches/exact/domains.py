"""What nodes may split on: masks of the features of the last level, which every walk reads.

Which features the upper nodes may have is said by the covers that a search begins with. Below them, entry ``(s, c, g)``
of ``use`` tells whether the last node at side c of the upper node s (0 left, 1 right) may split on feature g. Behind
the features stands whether that node has to split, and at ``(0, 0)`` whether the features of a *group* come once on a
path. The loss of a fixed tree never falls with more rows, so the least loss over any set of trees that is fixed without
looking at rows does not either: all bounds of :mod:`mipforest.searches.exact.covers` hold under masks.

**Predictions that rise, or fall, in a feature**, of two classes: below a split on it all leaves on the left predict the
first class, or all on the right the second one. So one side may be a single leaf, with its label given: an upper node
splits on one of two copies of the feature, one for each side (``leaf``). A last node has both labels given, which the
entry of ``use`` says. Both are fixed without looking at rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mipforest.arrays import IntArray
from mipforest.searches import kernel

#: Entries of :attr:`CoverWorkspace.node`, and of what walks write, behind their own: the upper node at work, the
#: feature of the root (-1 without a root above it), and the feature of the upper node; and how many entries there are.
SIDE, ROOT, UPPER, OUT = 6, 7, 8, 12

#: Columns of ``use`` behind the features: whether the node has to split, and whether groups come once on a path.
MUST, ONCE, COLUMNS = 0, 1, 2

#: Entries of ``use`` of a feature that a last node may split on: with any labels of its leaves, with the first class on
#: the left and the second one on the right, or the other way round.
ANY_LABELS, RISES, FALLS = 1, 2, 3


def any_split(p: int) -> dict[str, Any]:
    """Return masks that let every last node split on each of p features, or not split."""
    use = np.ones((2, 2, p + COLUMNS), np.uint8)
    use[:, :, p:] = 0
    return {"use": use, "group": np.arange(p)}


def no_leaves(p: int) -> IntArray:
    """Return that no side below any of p features is one leaf, as tables of two classes have it.

    Elsewhere the entry of a feature is ``2 * side + label``.
    """
    return np.full(p, -1)


@kernel
def usable(use: Any, group: Any, out: Any, child: int, g: int) -> bool:
    """Return whether a last node may split on a feature."""
    p = use.shape[2] - COLUMNS
    if use[int(out[SIDE]), child, g] == 0:
        return False
    if use[0, 0, p + ONCE] == 0 or group[g] < 0:
        return True
    root, upper = int(out[ROOT]), int(out[UPPER])
    return bool(group[g] != group[upper] and (root < 0 or group[g] != group[root]))


@kernel
def labels_of_leaves(use: Any, out: Any, child: int, g: int) -> int:
    """Return which labels the leaves of a last node that splits on a feature may have."""
    return int(use[int(out[SIDE]), child, g])


@kernel
def has_to_split(use: Any, out: Any, child: int) -> bool:
    """Return whether a last node has to split."""
    return bool(use[int(out[SIDE]), child, use.shape[2] - COLUMNS + MUST] != 0)
