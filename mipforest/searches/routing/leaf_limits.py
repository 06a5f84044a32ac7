r"""Limits on what the leaves of a tree hold: sums over the labels of samples, and least sizes.

Left leaves predict the first class, right ones the second. So a group of equal samples that goes left or right at a
node of the last level adds a known amount :math:`u_{rgk}` to each row r, and to the size of one leaf. A partial
assignment, in which a group may also have taken a side at the last level, leaves bounds on activities:

.. math::

    \sum_{g \text{ in a leaf } k} u_{rgk} + \sum_{g \text{ in none}} \min_k u_{rgk} \le h_r ,

and a leaf that holds a group has to be reached by the least amount. Where that cannot be, no tree extends the
assignment; where one side of a group would exceed a row, the group takes the other one.

Sides at the last level are decided as late as can be: where a routing is complete and its best tree breaks a limit, one
group is sent to either side there. Relaxations take these sides as they take those above.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.problem.constraints import MinLeaf, OfLabels
from mipforest.problem.problem_data import ProblemData

#: What an activity may be above its limit by, relative to the sizes of its terms: far above rounding. What remains is
#: decided by the definition of the constraint.
ROUNDING = 1e-7

#: Scores up to which a group may be on the other side of the best tree that a relaxation stands for.
NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class LeafLimits:
    """Limits on what leaves hold.

    Attributes
    ----------
    use, most
        (r, G, 2) what a group adds to each row in a left and in a right leaf, and (r,) the most that they may sum up
        to.
    amounts, least
        (q, G) amounts of the groups, and (q,) what every leaf has to hold of each that holds any group.
    depth
        Levels of branch nodes.
    """

    use: FloatArray
    most: FloatArray
    amounts: FloatArray
    least: FloatArray
    depth: int

    @cached_property
    def _low(self) -> FloatArray:
        """(r, G) the least that a group adds."""
        low: FloatArray = self.use.min(axis=2)
        return low

    @cached_property
    def _limit(self) -> FloatArray:
        """(r,) the most that rows may sum up to, with what rounding may add."""
        size = np.abs(self.use).max(axis=2).sum(axis=1)
        limit: FloatArray = self.most + ROUNDING * np.maximum(np.abs(self.most), size)
        return limit

    @property
    def _first_leaf(self) -> int:
        return int(2**self.depth - 1)

    @property
    def _first_last(self) -> int:
        """First node of the last level."""
        return int(2 ** (self.depth - 1) - 1)

    def propagated(self, reached: IntArray) -> IntArray | None:
        """Return a partial assignment (G,) with the sides at the last level that limits leave; ``None`` for no tree."""
        reached = np.array(reached, dtype=np.int64)
        while True:
            forbidden = self._forbidden_sides(reached)
            if forbidden is None or forbidden.all(axis=1).any():
                return None
            forced = np.flatnonzero(forbidden.any(axis=1))
            if not len(forced):
                return reached
            reached[forced] = 2 * reached[forced] + 1 + forbidden[forced, 0]

    def _forbidden_sides(self, reached: IntArray) -> BoolArray | None:
        """Return (G, 2) sides at the last level that groups there cannot take; ``None`` where no tree is left."""
        forbidden = np.zeros((len(reached), 2), dtype=bool)
        in_leaf, at_last = reached >= self._first_leaf, reached >= self._first_last
        waiting = at_last & ~in_leaf
        if len(self.most):
            side = np.where(in_leaf, (reached - self._first_leaf) % 2, -1)
            low = self._low
            least = np.where(side >= 0, np.take_along_axis(self.use, _rows(side), axis=2)[:, :, 0], low)
            room = self._limit - least.sum(axis=1)
            if (room < 0.0).any():
                return None
            more = self.use[:, waiting] - low[:, waiting, None]
            forbidden[waiting] |= (more > room[:, None, None]).any(axis=0)
        for amount, needed in zip(self.amounts, self.least * (1.0 - ROUNDING), strict=True):
            for leaf in range(self._first_leaf, 2 * self._first_leaf + 1):
                if amount[_may_reach(reached, leaf)].sum() < needed:
                    if (reached == leaf).any():
                        return None
                    forbidden[reached == (leaf - 1) // 2, (leaf - self._first_leaf) % 2] = True
        return forbidden

    def branching_group(self, reached: IntArray, scores: FloatArray, epsilon: float) -> tuple[int, int]:
        """Return a group at the last level to send either way, and the side to try first, 0 or 1.

        The group is -1 where none waits, or none that would bring the tree closer to the limits.

        Parameters
        ----------
        reached
            (G,) where groups are in a complete routing.
        scores
            (G, |B|) their scores at all nodes of its best tree.
        epsilon
            Gap that stands for a strict inequality.
        """
        waiting = np.flatnonzero(reached < self._first_leaf)
        if not len(waiting):
            return -1, 0
        at = np.where(reached < self._first_leaf, reached, (reached - 1) // 2)
        score = scores[np.arange(len(at)), at]
        goes = np.where(reached < self._first_leaf, score >= 0.0, (reached - self._first_leaf) % 2).astype(
            np.int64
        )
        distance = np.abs(score[waiting])
        between = (score[waiting] < 0.0) & (score[waiting] > -epsilon)
        if between.any():
            g = waiting[between][int(distance[between].argmin())]
            return int(g), int(score[g] > -epsilon / 2)
        own = np.take_along_axis(self.use, _rows(goes), axis=2)[:, :, 0]
        over = (own.sum(axis=1) - self.most) / np.maximum(
            np.abs(self.use).max(axis=(1, 2), initial=0.0), 1e-300
        )
        if len(over) and over.max() > 0.0:
            r = int(over.argmax())
            saved = own[r, waiting] - np.take_along_axis(self.use, _rows(1 - goes), axis=2)[r, waiting, 0]
            if (saved > 0.0).any():
                # The group that is least far on the wrong side, for what it saves.
                per_unit = np.where(saved > 0.0, distance / np.maximum(saved, 1e-300), np.inf)
                g = waiting[int(per_unit.argmin())]
                return int(g), int(1 - goes[g])
        leaf = 2 * at + 1 + goes
        for amount, needed in zip(self.amounts, self.least, strict=True):
            for short in np.unique(leaf):
                if amount[leaf == short].sum() >= needed:
                    continue
                side, here = int(short - self._first_leaf) % 2, at[waiting] == (short - 1) // 2
                if here.any() and (reached == short).any():  # the leaf stays, and takes in what is nearest
                    outside = here & (goes[waiting] != side)
                    if outside.any():
                        g = waiting[outside][int(distance[outside].argmin())]
                        return int(g), side
                inside = here & (goes[waiting] == side)
                if inside.any():  # whether there is such a leaf is what its surest group tells
                    g = waiting[inside][int(distance[inside].argmax())]
                    return int(g), 1 - side
        g = waiting[int(distance.argmin())]
        return (int(g), int(goes[g])) if distance.min() <= NEAR else (-1, 0)


def leaf_limits(problem: ProblemData) -> LeafLimits | None:
    """Return the limits on leaves among the constraints of a problem whose left leaves predict the first class."""
    group, data = problem.instance.distinct[1], problem.data
    n_groups = int(group.max()) + 1
    use, most, amounts = [np.zeros((0, n_groups, 2))], [np.zeros(0)], [np.zeros((0, n_groups))]
    least = list[float]()
    for constraint in problem.constraints:
        if isinstance(constraint, OfLabels):
            _, of_samples, limit = constraint.sums(problem).from_above()
            of_groups = np.zeros((n_groups, len(limit), 2))
            np.add.at(of_groups, group, of_samples.transpose(1, 0, 2))
            use.append(of_groups.transpose(1, 0, 2))
            most.append(limit)
        elif isinstance(constraint, MinLeaf):
            of_each, needed = constraint.amounts(data)
            amounts.append(np.bincount(group, of_each, minlength=n_groups).astype(np.float64)[None])
            least.append(needed)
    if len(use) == 1 and not least:
        return None
    return LeafLimits(
        np.concatenate(use),
        np.concatenate(most),
        np.concatenate(amounts),
        np.array(least),
        problem.topology.depth,
    )


def _rows(side: IntArray) -> IntArray:
    """Return sides (G,) as numbers of the last axis of (r, G, 2) uses; 0 for none."""
    rows: IntArray = np.maximum(side, 0)[None, :, None]
    return rows


def _may_reach(reached: IntArray, leaf: int) -> BoolArray:
    """Return (G,) which groups are in a leaf or at a node above it."""
    above, at = [leaf], leaf
    while at > 0:
        at = (at - 1) // 2
        above.append(at)
    return np.isin(reached, above)
