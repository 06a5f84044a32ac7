"""What searches of three levels have proven of the sides of a root's thresholds, for later ones on the same data.

A search bounds the losses of the rows on both sides of the thresholds of the root that it evaluates, for leaves of any
size. The bound of a side holds for the trees that the search allows on that side, and for every part of these. So a
search that allows no more trees there takes it over, whatever differs elsewhere: after an edit of one side, the other
one keeps what is known of it, and what was proven without any constraint holds within all of them. A side with more
rows never loses less; between two thresholds that were evaluated the better known one counts.

Covers are not kept: an interval that has reached the cutoff is dropped from its cover, and constraints raise the
cutoff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.heuristics.thresholds import Thresholds
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.exact.boxes import Box
from mipforest.trees.topology import subtree

#: Depth of trees of whose roots bounds are kept.
KEPT_DEPTH = 3

#: Searches of one data set and loss of which bounds are kept.
MAX_SEARCHES = 16


class SideBounds(NamedTuple):
    """Lower bounds on the losses of both sides of some thresholds of a root's feature, for leaves of any size.

    Attributes
    ----------
    t
        (m,) the thresholds, ascending.
    left, right
        (m,) bounds on the rows left of each, which never fall, and on those right of it, which never rise.
    """

    t: IntArray
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, t: IntArray, left: FloatArray, right: FloatArray) -> SideBounds:
        """Return bounds of thresholds in any order."""
        order = np.argsort(t, kind="stable")
        falls = np.maximum.accumulate(right[order][::-1])[::-1]
        return cls(t[order], np.maximum.accumulate(left[order]), falls)

    def left_of(self, t: int) -> float:
        """Return a bound on the rows left of a threshold."""
        k = int(np.searchsorted(self.t, t, side="right"))
        return float(self.left[k - 1]) if k else 0.0

    def right_of(self, t: int) -> float:
        """Return a bound on the rows from a threshold on."""
        k = int(np.searchsorted(self.t, t))
        return float(self.right[k]) if k < len(self.t) else 0.0


@dataclass(frozen=True, eq=False)
class _Trees:
    """Trees that a search allows, in terms of all thresholds of the data.

    Attributes
    ----------
    allowed
        (|B|, q) thresholds that each node may have.
    must
        (|B|,) whether a node has to split.
    group
        (p,) number of the group of each feature that comes once on a path, -1 for one that may come again.
    """

    allowed: BoolArray
    must: BoolArray
    group: IntArray

    @classmethod
    def of(cls, thresholds: Thresholds, box: Box | None) -> _Trees:
        """Return those on some thresholds in a box; without one all."""
        whole, of_whole = thresholds.in_whole
        B = 2**KEPT_DEPTH - 1
        allowed, group = np.zeros((B, len(whole)), dtype=bool), np.full(whole.n_features, -1)
        if box is None:
            allowed[:, of_whole] = True
            return cls(allowed, np.zeros(B, dtype=bool), group)
        for t in range(B):
            allowed[t, of_whole[box.allowed[t, thresholds.feature]]] = True
        group[whole.feature[of_whole]] = box.group[thresholds.feature]
        return cls(allowed, box.must, group)

    def holds_side(self, other: _Trees, side: int) -> bool:
        """Return whether every tree that another search allows on a side, below any root, is one of these."""
        nodes = subtree(1 + side, len(self.must))
        return bool(
            (self.allowed[nodes] | ~other.allowed[nodes]).all()
            and (other.must[nodes] | ~self.must[nodes]).all()
            and ((self.group < 0).all() or np.array_equal(self.group, other.group))
        )


@dataclass(frozen=True, eq=False)
class Losses:
    """What losses of leaves of any size depend on.

    Attributes
    ----------
    words
        Loss and cost of a split.
    arrays
        What else they depend on; the same objects say the same.
    """

    words: tuple[object, ...]
    arrays: tuple[object, ...]

    @classmethod
    def of(cls, problem: UnivariateProblem) -> Losses:
        """Return those of a problem."""
        return cls((problem.loss, problem.split_cost), (problem.y, problem.weight))

    def are(self, others: Losses) -> bool:
        """Return whether these are the same."""
        same = all(one is other for one, other in zip(self.arrays, others.arrays, strict=True))
        return same and self.words == others.words


@dataclass(frozen=True, eq=False)
class _Proven:
    """What a search has proven: of which losses, for which trees, and bounds by feature of the data.

    ``base`` is what every tree loses beside the distinct rows: samples that differ in features that are left out may be
    one row.
    """

    losses: Losses
    base: float
    trees: _Trees
    of_feature: Mapping[int, SideBounds]


#: What was proven last, by the thresholds of a data set.
_PROVEN: WeakKeyDictionary[Thresholds, list[_Proven]] = WeakKeyDictionary()


def known_sides(
    problem: UnivariateProblem, base: float, tolerance: float, box: Box | None
) -> Mapping[int, SideBounds]:
    """Return bounds on the sides of thresholds that earlier searches have proven, by feature of the problem.

    Parameters
    ----------
    problem
        What trees are charged.
    base, tolerance
        What every tree loses beside the rows, and losses closer than this are the same.
    box
        Trees that are searched, settled; without it, all.
    """
    thresholds, losses = problem.thresholds, Losses.of(problem)
    whole, of_whole = thresholds.in_whole
    trees = _Trees.of(thresholds, box)
    taken = list[tuple[_Proven, tuple[bool, bool]]]()
    for proven in _PROVEN.get(whole, []):
        if abs(proven.base - base) <= tolerance and proven.losses.are(losses):
            sides = proven.trees.holds_side(trees, 0), proven.trees.holds_side(trees, 1)
            if any(sides):
                taken.append((proven, sides))
    found = dict[int, SideBounds]()
    if not taken:
        return found
    for f in range(thresholds.n_features):
        numbers = of_whole[thresholds.of(f)]
        if not len(numbers):
            continue
        g = int(whole.feature[numbers[0]])
        ranks = numbers - whole.first[g] + 1
        parts = [(one.of_feature[g], sides) for one, sides in taken if g in one.of_feature]
        if not parts:
            continue
        t = np.concatenate([part.t for part, _ in parts])
        left = np.concatenate([part.left if sides[0] else np.zeros(len(part.t)) for part, sides in parts])
        right = np.concatenate([part.right if sides[1] else np.zeros(len(part.t)) for part, sides in parts])
        every = SideBounds.of(t, left, right)
        if len(ranks) == len(whole.value[whole.of(g)]):
            found[f] = every
        else:  # a copy with some of the thresholds
            found[f] = SideBounds(
                np.arange(1, len(ranks) + 1),
                np.array([every.left_of(rank) for rank in ranks.tolist()]),
                np.array([every.right_of(rank) for rank in ranks.tolist()]),
            )
    return found


def keep_sides(
    problem: UnivariateProblem,
    base: float,
    box: Box | None,
    evaluated: list[tuple[int, int, float, float]],
) -> None:
    """Keep the bounds that a search has proven.

    Parameters
    ----------
    problem, base, box
        As for :func:`known_sides`.
    evaluated
        Feature and threshold of those that were evaluated, and bounds on the losses of their sides.
    """
    if not evaluated:
        return
    thresholds, losses = problem.thresholds, Losses.of(problem)
    whole, of_whole = thresholds.in_whole
    own_f, own_t, left, right = (np.array(column) for column in zip(*evaluated, strict=True))
    numbers = of_whole[thresholds.first[own_f] + own_t - 1]
    f = whole.feature[numbers]
    t = numbers - whole.first[f] + 1
    of_feature = {g: SideBounds.of(t[f == g], left[f == g], right[f == g]) for g in np.unique(f).tolist()}
    kept = [one for one in _PROVEN.get(whole, []) if one.losses.are(losses)]
    kept.append(_Proven(losses, base, _Trees.of(thresholds, box), of_feature))
    # The first one is that of most trees.
    _PROVEN[whole] = kept if len(kept) <= MAX_SEARCHES else [kept[0], *kept[2:]]
