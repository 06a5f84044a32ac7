r"""Dives of the routing search for any convex node, with features to select: from an open node to a complete routing.

As in :mod:`mipforest.searches.routing.dive`, the sum of the nodes' dual values bounds every tree that extends a partial
routing, and one step with a further variable (:func:`~mipforest.searches.routing.convex_node.measure_rises`) tells
which sides are closed. What is new is the choice of features (:mod:`mipforest.searches.routing.cells`). At the last
level a node keeps all its cells, as nothing below asks which one it is; above, the two halves of a cell become two open
nodes, as sides are decided sooner for few features that are known. With one feature alone, all samples between two that
went to one side go there too.

At the end of a complete routing every node's cells are split until its best features are known.
"""

from __future__ import annotations

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compile_by
from mipforest.searches.routing.cells import IN, OUT, CellPosition, CellSolver, ConvexNodes
from mipforest.searches.routing.certificate_file import Decision
from mipforest.searches.routing.dive import COMPLETE, CUT_OFF, STOPPED
from mipforest.searches.routing.search import Dived
from mipforest.time_budget import TimeBudget

#: Cells that are solved at a node of the last level for one partial routing.
_CELLS = 8

#: A choice of features whose value is this close to the least bound, relatively, is the best one.
_CLOSED = 1e-7

#: Share of what is left to the best tree that an open choice of features above the last level may hide.
_HIDDEN = 0.05

#: By how much more than the target leaves of a certificate are to prove, as a share: whole multiples of a power of two
#: are a little less than the dual points that they stand for.
_SPARE = 1e-9

#: Weight of candidates below the root, where a side is decided for fewer samples; rises below the least are alike.
_BELOW_ROOT, _LEAST_RISE = 0.5, 1e-9


def compile_convex(budget: TimeBudget) -> float:
    """Load what the dives run, or compile it; see :func:`~mipforest.searches.compile_by`."""
    X, one = np.array([[0.0], [1.0]]), np.ones(1)
    tiny = ConvexNodes(X, np.eye(2), one, one, 1, 1e-3, np.ones((1, 2)), False, None, np.inf)
    return compile_by(
        lambda: ConvexDives(tiny).dive(ConvexDives(tiny).first(), np.inf, 1, np.zeros(1, np.int64)), budget
    )


class ConvexDives:
    """Dives of one problem.

    Parameters
    ----------
    nodes
        The problem.
    logs
        Whether dives log what they do for a certificate. Nothing is dropped then: what has no dual point of its own is
        left open, to be closed by one.
    """

    needs_trees = True

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        self._logs, self._solver = logs, CellSolver(nodes, keep_points=logs)
        self._hard = not np.isfinite(nodes.alpha)
        self._G, self._p = nodes.X.shape
        self._n_nodes, self._n_upper = 2**nodes.depth - 1, 2 ** (nodes.depth - 1) - 1

    def first(self) -> CellPosition:
        """Return the position from which all trees can be reached."""
        return self.at(np.zeros(self._G, np.int64))

    def at(self, reached: IntArray) -> CellPosition:
        """Return the position of a partial routing, with all features open."""
        cells = [[self._solver.entry(0.0, self._solver.first(t))] for t in range(self._n_nodes)]
        versions = [self._solver.number() for _ in range(self._n_nodes)]
        features = np.ones((self._n_nodes, self._p), dtype=bool)
        return CellPosition(reached, cells, versions, features)

    def dive(self, start: CellPosition, target: float, most: int, stop: IntArray) -> Dived:
        """Dive from a position; see :class:`~mipforest.searches.routing.search.Dives`."""
        here, left_open, cut_bound, end = start.copy(), list[tuple[float, CellPosition]](), np.inf, STOPPED
        steps, log = 0, list[Decision]()
        if self._logs:
            target += _SPARE * abs(target)
        while steps < most:
            steps += 1
            cut_bound, cut = self._close_sides(here, target, cut_bound, log, left_open)
            if cut:
                end = CUT_OFF
                break
            if (here.reached >= self._n_upper).all():
                end = self._choose_features(here, target, stop)
                if end == CUT_OFF:
                    cut_bound = min(cut_bound, here.bound)
                break
            if stop[0]:
                break
            other, other_bound, decision = self._branch(here, target)
            log.append(decision)
            if other_bound < target or self._logs:
                left_open.append((other_bound, other))
            else:
                cut_bound = min(cut_bound, other_bound)
        if end == STOPPED:
            left_open.append((here.bound, here))
        elif self._logs:
            log.append([[cell for _, _, cell in cells] for cells in here.cells])
        cells = [cells[0][2] for cells in here.cells]
        if end != COMPLETE:
            for t, cell in enumerate(cells):
                here.features[t] = cell.features != OUT if cell.chosen is None else cell.chosen
        weights = np.array([np.zeros(self._p) if cell.w is None else cell.w for cell in cells])
        bias = np.array([cell.b for cell in cells]) - weights @ self._solver.centre
        return Dived(end, here, left_open, here.bound, cut_bound, weights, bias, steps, log=log)

    # ------------------------------------------------------------------ bounds

    def _close_sides(
        self, here: CellPosition, target: float, cut_bound: float, log: list[Decision],
        left_open: list[tuple[float, CellPosition]],
    ) -> tuple[float, bool]:  # fmt: skip
        """Solve what has changed and close sides that lead to no better tree, until nothing changes.

        Where dives log what they do, closed sides are left open with their bounds.
        """
        while True:
            for t in range(self._n_nodes):
                self._refine(here, t, target)
                if here.bound >= target:
                    return min(cut_bound, here.bound), True
            left, right = self._rises(here)
            slack = target - here.bound
            waiting = here.reached < self._n_upper
            no_left, no_right = waiting & (left >= slack), waiting & (right >= slack)
            if (no_left & no_right).any() and not self._logs:
                least = float(np.minimum(left, right)[no_left & no_right].max())
                return min(cut_bound, here.bound + least), True
            for closed, rise in ((no_left, left), (no_right, right)):
                if closed.any():
                    cut_bound = min(cut_bound, here.bound + float(rise[closed].min()))
            left_inside, right_inside = self._between(here)
            to_right = np.flatnonzero((no_left | right_inside) & ~no_right)
            to_left = np.flatnonzero((no_right | left_inside) & (self._logs | ~no_left))
            if not len(to_left) and not len(to_right):
                return cut_bound, False
            sides = [(int(g), -1) for g in to_left] + [(int(g), 1) for g in np.setdiff1d(to_right, to_left)]
            bound = here.bound
            for g, side in sides:
                if self._logs:
                    other, rise = here.copy(), (right if side < 0 else left)[g]
                    self._decide(other, g, -side)
                    left_open.append((bound + float(rise), other))
                    log.append((g, side))
                self._decide(here, g, side)

    def _refine(self, here: CellPosition, t: int, target: float) -> None:
        """Solve the least cells of a node again, and split them at the last level, as far as it helps."""
        cells, others = here.cells[t], here.bound - here.cells[t][0][0]
        for _ in range(_CELLS if t >= self._n_upper else 1_000_000):
            bound, _, cell = cells[0]
            if others + bound >= target:
                return
            if cell.version != here.versions[t]:
                self._solver.solve(here, t, target - others)
            elif cell.decided or t < self._n_upper:
                return
            else:
                self._solver.split(t, cells)

    def _rises(self, here: CellPosition) -> tuple[FloatArray, FloatArray]:
        """Return what sending a group left or right raises the bound by."""
        by_node = []
        for t in range(self._n_nodes):
            cells = here.cells[t]
            cell = cells[0][2]
            if cell.rises is None or cell.version != here.versions[t]:
                by_node.append(np.zeros((3, self._G)))
                continue
            second = min((entry[0] for entry in cells[1:3]), default=np.inf)
            by_node.append(np.minimum(cell.rises, second - cells[0][0]))
        left, right = np.zeros(self._G), np.zeros(self._G)
        for t in range(self._n_upper):
            at = here.reached == t
            left[at] = by_node[t][0, at] + by_node[2 * t + 1][2, at]
            right[at] = by_node[t][1, at] + by_node[2 * t + 2][2, at]
        return left, right

    # ------------------------------------------------------------------ decisions

    def _decide(self, here: CellPosition, g: int, side: int) -> None:
        """Send a group from the node that it has reached to a side."""
        t = int(here.reached[g])
        child = 2 * t + (1 if side < 0 else 2)
        here.reached[g] = child
        here.versions[t], here.versions[child] = self._solver.number(), self._solver.number()

    def _between(self, here: CellPosition) -> tuple[BoolArray, BoolArray]:
        """Return groups that one feature alone sends left, or right, as groups on both sides of them went there."""
        left, right = np.zeros(self._G, dtype=bool), np.zeros(self._G, dtype=bool)
        for t in range(self._n_upper):
            x = self._only_feature(here, t)
            if x is None:
                continue
            side = self._solver.side[here.reached, t]
            at, gone_left, gone_right = here.reached == t, x[side == -1], x[side == 1]
            for gone, other, closed in ((gone_left, gone_right, left), (gone_right, gone_left, right)):
                if len(gone):
                    low, high = gone.min(), gone.max()
                    if len(other):
                        low, high = (-np.inf, high) if high < other.min() else (low, np.inf)
                    closed |= at & (x >= low) & (x <= high)
        return left & ~right, right & ~left

    def _only_feature(self, here: CellPosition, t: int) -> FloatArray | None:
        """Return the values (G,) of the one feature that a node may use, if it is one."""
        cells = here.cells[t]
        used = np.flatnonzero(cells[0][2].features != OUT)
        return self._solver.X[:, used[0]] if len(cells) == 1 and len(used) == 1 else None

    def _branch(self, here: CellPosition, target: float) -> tuple[CellPosition, float, Decision]:
        """Take the cheaper half of what is left, in place; return the other one, its bound, and what was decided."""
        bound = here.bound
        for t in range(self._n_upper):
            if (here.reached == t).any() and self._hides(here, t, target):
                cell, other = here.cells[t][0][2], here.copy()
                for position, kept in ((here, IN), (other, OUT)):
                    half = self._solver.half(t, cell, kept)
                    position.cells[t] = [self._solver.entry(cell.bound, half)]
                j, taken = here.cells[t][0][2].path[-1]
                return other, bound, (t, j, taken)
        g, left, right = self._candidate(here)
        side, other = (-1 if left <= right else 1), here.copy()
        self._decide(here, g, side)
        self._decide(other, g, -side)
        return other, bound + max(left, right), (g, side)

    def _hides(self, here: CellPosition, t: int, target: float) -> bool:
        """Return whether features of a node above the last level should be decided before sides are."""
        cell = here.cells[t][0][2]
        if cell.decided:
            return False
        if self._hard:
            return True
        value = self._solver.solved(here, t, cell.best, np.inf).bound
        return value - cell.bound > _HIDDEN * (target - here.bound)

    def _candidate(self, here: CellPosition) -> tuple[int, float, float]:
        """Return the group to decide next, and what its sides raise the bound by."""
        left, right = self._rises(here)
        low, high = np.minimum(left, right), np.maximum(left, right)
        rank = np.maximum(low, _LEAST_RISE) * np.maximum(high, _LEAST_RISE) ** 0.3
        rank = np.where(here.reached == 0, rank, _BELOW_ROOT * rank)
        rank[here.reached >= self._n_upper] = -1.0
        x = self._only_feature(here, 0)
        if x is not None and (here.reached == 0).any():
            waiting = np.flatnonzero(here.reached == 0)
            by_value = waiting[np.argsort(x[waiting], kind="stable")]
            side = self._solver.side[here.reached, 0]
            # The ends of the line tell which way it runs; then the middle halves what is left.
            ends = int((side == -1).any()) + int((side == 1).any())
            g = by_value[(0, -1, len(by_value) // 2)[ends]]
            return int(g), float(left[g]), float(right[g])
        g = int(rank.argmax())
        return g, float(left[g]), float(right[g])

    # ------------------------------------------------------------------ complete routings

    def _choose_features(self, here: CellPosition, target: float, stop: IntArray) -> int:
        """Split the cells of all nodes of a complete routing until its best features are known, and write them.

        Nodes with decided features are solved finely: no branching comes after that could tell what they are worth.
        """
        for t in range(self._n_nodes):
            cells, best = here.cells[t], np.inf
            while True:
                bound, _, cell = cells[0]
                if here.bound >= target:
                    return CUT_OFF
                if stop[0]:
                    return STOPPED
                others = here.bound - bound
                if cell.version != here.versions[t] or (cell.decided and not cell.fine):
                    self._solver.solve(here, t, target - others, finely=True)
                    continue
                if cell.decided:
                    if bound < best:
                        best, here.features[t] = bound, cell.features == IN
                    break
                value = self._solver.solved(here, t, cell.best, target - others, finely=True).bound
                if value < best:
                    best, here.features[t] = value, cell.chosen
                if bound >= best - _CLOSED * (1.0 + abs(best)):
                    break
                self._solver.split(t, cells)
        return COMPLETE
