r"""Cells: which features a convex node of the routing search may use, and what the node is worth with them.

A cell says of every feature that it is in, out, or open, and has a lower bound on the node's value with such features,
from the relaxation that leaves open ones open (:mod:`mipforest.searches.routing.convex_node`). A node is worth at least
the least bound of its cells. More samples and sides never lower the value of a cell, so cells and their bounds are
handed down to all that extends a partial routing; only the least ones are solved again, and split at an open feature
where that helps.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches.numbers import ANY_SIZE, require
from mipforest.searches.routing.convex_interior import solve_node
from mipforest.searches.routing.convex_node import UNLIMITED, A, Charge, Node, U, W, measure_rises, node_for
from mipforest.searches.routing.fine_nodes import solve_finely
from mipforest.searches.routing.node_dual import RoutingProblem

#: What a cell says of a feature.
OUT, OPEN, IN = -1, 0, 1

#: Gap, relative to the value, up to which a node is solved where its features are decided, and where some are open;
#: iterations at most.
_ACCURACY, _OPEN_ACCURACY, _ITERATIONS = 1e-7, 1e-4, 60.0

#: Iterations after which an interior point of the l1 norm has often lost its accuracy, so that the simplex method is
#: asked too; a capacity for it of variables that have none.
_MANY_ITERATIONS, _LARGE = 25, 1e6

#: Share of u that the relaxation keeps of a feature from which on it is worth its cost.
_CHOSEN = 0.5


@dataclass(frozen=True, eq=False)
class ConvexNodes(RoutingProblem):
    """What the search needs of a tree of convex nodes, of which support vector machines are one kind.

    Attributes
    ----------
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    l1
        Whether the norm is the l1 norm; else half the squared Euclidean norm.
    budget, alpha
        (|B|,) features free of cost, and the cost of every further one, infinite where it is forbidden; ``None`` where
        all features are free.
    """

    kinks: FloatArray
    l1: bool
    budget: IntArray | None
    alpha: float

    def __post_init__(self) -> None:
        """Refuse numbers that compiled loops cannot compute with."""
        super().__post_init__()
        require("routing", "kinks", self.kinks, least=-ANY_SIZE, most=ANY_SIZE)
        require("routing", "alpha", self.alpha, least=0.0, most=np.inf)


@dataclass(eq=False)
class DualPoint:
    """A dual point of node t, for a certificate.

    Variable ``(2 g + c) K + k`` is the margin of class c of group g at kink k, of G groups and K kinks; ``2 G K + g``
    is its side where it is left, ``2 G K + G + g`` where it is right.

    Attributes
    ----------
    t
        The node.
    variables, amounts
        (m,) variables that are not 0, and what they are.
    written
        Its name in the certificate, what it earns as it is there, and its sum of samples (p,).
    """

    t: int
    variables: IntArray
    amounts: FloatArray
    written: tuple[int, float, FloatArray] | None = None


@dataclass(eq=False)
class Cell:
    """Features that a node may use, and what is known of its value with them.

    Attributes
    ----------
    features
        (p,) :data:`OUT`, :data:`OPEN` or :data:`IN`.
    bound
        Lower bound on the node's value.
    version
        For which samples and sides the bound was solved.
    w, b, chosen
        The hyperplane found then, and which features seem best.
    rises
        (3, G) what keeping a group left or right, or charging it, raises the bound by.
    path
        The features by which it was split off, each with whether it is in.
    point
        What proves the bound, where a certificate is written.
    fine
        Whether it was solved finely: its bound is what the node is worth, or enough to cut off.
    """

    features: NDArray[np.int8]
    bound: float
    version: int = -1
    w: FloatArray | None = None
    b: float = 0.0
    chosen: BoolArray | None = None
    rises: FloatArray | None = None
    path: tuple[tuple[int, bool], ...] = ()
    point: DualPoint | None = None
    fine: bool = False

    @property
    def best(self) -> Cell:
        """The cell of the features that seem best."""
        assert self.chosen is not None
        return Cell(np.where(self.chosen, IN, OUT).astype(np.int8), 0.0)

    @property
    def decided(self) -> bool:
        """Whether no feature is open."""
        return bool(self.features.all())


#: A node's cells, as a heap by bound.
Cells = list[tuple[float, int, Cell]]


@dataclass(eq=False)
class CellPosition:
    """A partial routing with the cells of its nodes.

    Attributes
    ----------
    reached
        (G,) nodes that the groups have reached.
    cells
        The cells of every node.
    versions
        Which samples and sides each node has: a number that changes with them.
    features
        (|B|, p) the best features of a complete routing, good ones at the end of another dive.
    """

    reached: IntArray
    cells: list[Cells]
    versions: list[int]
    features: BoolArray

    def copy(self) -> CellPosition:
        """Return a position that may be changed."""
        cells = [list(cells) for cells in self.cells]
        return CellPosition(self.reached.copy(), cells, list(self.versions), self.features.copy())

    @property
    def bytes(self) -> int:
        """Memory of the routing, the cells and their rises."""
        known = (cell for cells in self.cells for _, _, cell in cells)
        of_cells = sum(
            2 * cell.features.nbytes + (0 if cell.rises is None else cell.rises.nbytes) for cell in known
        )
        return self.reached.nbytes + self.features.nbytes + of_cells

    def lighter(self) -> CellPosition:
        """Return the same without rises: they are measured again."""
        light = self.copy()
        for cells in light.cells:
            cells[:] = [(bound, k, replace(cell, version=-1, rises=None)) for bound, k, cell in cells]
        return light

    @property
    def bound(self) -> float:
        """Lower bound on every tree that extends it."""
        return sum(cells[0][0] for cells in self.cells)


class CellSolver:
    """Solves cells of one problem, and splits them.

    Parameters
    ----------
    nodes
        The problem.
    keep_points
        Whether cells keep the dual points that prove their bounds.

    Attributes
    ----------
    X, centre
        (G, p) samples around their mean, and (p,) their mean.
    side
        (nodes, nodes) 2 where a group that has reached a node stands at another one, -1 or 1 where it went left or
        right there, else 0.
    """

    def __init__(self, nodes: ConvexNodes, *, keep_points: bool = False) -> None:
        self._nodes, self._keep_points = nodes, keep_points
        self.centre = nodes.X.mean(axis=0)
        self.X = np.ascontiguousarray(nodes.X - self.centre)
        self._G, self._p = nodes.X.shape
        self._n_upper = 2 ** (nodes.depth - 1) - 1
        self.side = _sides(2**nodes.depth - 1)
        self._numbers = count()
        g, c = np.nonzero(nodes.weight)
        # Margins: one variable per class of a group and kink of the loss.
        self._of = np.repeat(g, len(nodes.kinks))
        self._d = np.repeat(2.0 * c - 1.0, len(nodes.kinks))
        self._reward = np.tile(nodes.kinks[:, 0], len(g))
        self._unit = np.outer(nodes.weight[g, c], nodes.kinks[:, 1]).ravel()
        self._number = np.add.outer(len(nodes.kinks) * c, np.arange(len(nodes.kinks))).ravel()

    def number(self) -> int:
        """Return a number that was not given before."""
        return next(self._numbers)

    def entry(self, bound: float, cell: Cell) -> tuple[float, int, Cell]:
        """Return a cell as it stands in a heap; the numbers break ties."""
        return bound, self.number(), cell

    def first(self, t: int) -> Cell:
        """Return the cell of all that node t may use."""
        budget = self._nodes.budget
        free = budget is None or budget[t] >= self._p
        return Cell(np.full(self._p, IN if free else OPEN, np.int8), 0.0)

    def split(self, t: int, cells: Cells) -> None:
        """Split the least cell of node t."""
        bound, _, cell = heapq.heappop(cells)
        for kept in (IN, OUT):
            heapq.heappush(cells, self.entry(bound, self.half(t, cell, kept)))

    def half(self, t: int, cell: Cell, kept: int) -> Cell:
        """Return the half of a cell of node t with its open feature of the largest weight in, or out."""
        assert cell.w is not None
        weights = np.where(cell.features == OPEN, np.abs(cell.w), -1.0)
        features = cell.features.copy()
        j = int(weights.argmax())
        features[j] = kept
        budget = self._nodes.budget
        assert budget is not None
        n_in, n_open = int((features == IN).sum()), int((features == OPEN).sum())
        if n_in + n_open <= budget[t]:
            features[features == OPEN] = IN
        elif n_in >= budget[t] and not np.isfinite(self._nodes.alpha):
            features[features == OPEN] = OUT
        return Cell(features, cell.bound, path=(*cell.path, (j, kept == IN)), point=cell.point)

    def solve(self, here: CellPosition, t: int, stop: float, *, finely: bool = False) -> None:
        """Solve the least cell of a node for its samples and sides, up to a value, and put it back."""
        bound, _, cell = heapq.heappop(here.cells[t])
        solved = self.solved(here, t, replace(cell, bound=max(bound, cell.bound)), stop, finely=finely)
        heapq.heappush(here.cells[t], self.entry(solved.bound, solved))

    def solved(self, here: CellPosition, t: int, cell: Cell, stop: float, *, finely: bool = False) -> Cell:
        """Return a cell solved for a node's samples and sides, with its rises.

        Where its features are decided, it may be solved finely, so that it proves what the node is worth: then it has
        no rises.
        """
        nodes = self._nodes
        features = cell.features
        used = np.flatnonzero(features != OUT)
        selectable = (features[used] == OPEN).astype(np.float64)
        n_in = len(used) - int(selectable.sum())
        cost, free = 0.0, 0.0
        if nodes.budget is not None:
            free = max(0.0, float(nodes.budget[t] - n_in))
            if np.isfinite(nodes.alpha):
                cost = nodes.alpha * max(0.0, float(n_in - nodes.budget[t]))
        side = self.side[here.reached, t]
        margins = np.flatnonzero(side[self._of] != 0)
        kept = np.flatnonzero(np.abs(side) == 1)
        group = np.concatenate([self._of[margins], kept])
        d = np.concatenate([self._d[margins], side[kept].astype(np.float64)])
        reward = np.concatenate([self._reward[margins], np.where(side[kept] < 0, nodes.epsilon, 0.0)])
        capacity = np.concatenate([nodes.C[t] * self._unit[margins], np.full(len(kept), UNLIMITED)])
        X = np.ascontiguousarray(self.X[:, used])
        node = node_for(X[group] * d[:, None], d, reward, capacity)
        charge = Charge(nodes.l1, selectable, free, nodes.alpha if np.isfinite(nodes.alpha) else 1e300)
        limit = float(nodes.bias_limit[t])
        accuracy = _OPEN_ACCURACY if len(used) > n_in else _ACCURACY
        iterations = solve_node(node, charge, limit, accuracy, _ITERATIONS, stop - cost)
        finely = finely and cell.decided
        if finely and not node.result[0] >= stop - cost:
            solve_finely(node, l1=nodes.l1, bias_limit=limit, stop=stop - cost)
        elif nodes.l1 and iterations > _MANY_ITERATIONS and node.result[0] < stop - cost:
            _solve_by_simplex(node, limit)
        value = float(node.result[0]) + cost
        # Where no hyperplane keeps the sides, the iterations may overflow: then they prove nothing.
        if not (np.isfinite(value) and np.isfinite(node.result).all() and np.isfinite(node.f).all()):
            return replace(
                cell, bound=max(cell.bound, cost), version=here.versions[t], w=np.zeros(self._p), b=0.0,
                chosen=features == IN, rises=None, fine=finely,
            )  # fmt: skip
        w, chosen = np.zeros(self._p), features == IN
        w[used] = node.f[W]
        size, u = np.abs(node.f[W]) * selectable, np.abs(node.f[U])
        best = np.argsort(-size)
        best = best[size[best] > _CHOSEN * u[best]] if np.isfinite(nodes.alpha) else best[: int(free)]
        chosen[used[best[size[best] > 0.0]]] = True
        point = cell.point
        if self._keep_points and value > cell.bound:
            K, sides = len(nodes.kinks), 2 * self._G * len(nodes.kinks)
            numbers = np.concatenate(
                [2 * K * self._of[margins] + self._number[margins], sides + kept + self._G * (side[kept] > 0)]
            )
            positive = node.v[A] > 0.0
            point = DualPoint(t, numbers[positive], node.v[A, positive])
        solved = Cell(
            features, max(cell.bound, value), here.versions[t], w, float(node.result[1]), chosen,
            path=cell.path, point=point, fine=finely,
        )  # fmt: skip
        if value < stop and not finely:
            solved.rises = self._measured(here, t, node, charge, X, value - solved.bound)
        return solved

    def _measured(
        self, here: CellPosition, t: int, node: Node, charge: Charge, X: FloatArray, lacking: float
    ) -> FloatArray:
        """Return the rises of a cell that was just solved."""
        nodes = self._nodes
        rises = np.zeros((3, self._G))
        standing = np.flatnonzero(here.reached == t) if t < self._n_upper else np.zeros(0, np.int64)
        coming = np.flatnonzero(self.side[t, here.reached[self._of]] != 0)
        coming = coming[here.reached[self._of[coming]] != t]
        n = len(standing)
        group = np.concatenate([standing, standing, self._of[coming]])
        d = np.concatenate([np.full(n, -1.0), np.ones(n), self._d[coming]])
        reward = np.concatenate([np.full(n, nodes.epsilon), np.zeros(n), self._reward[coming]])
        capacity = np.concatenate([np.full(2 * n, UNLIMITED), nodes.C[t] * self._unit[coming]])
        found = np.zeros(len(group))
        m, p = node.Z.shape
        room = np.zeros((m, p)), np.zeros((3, max(m, p)))
        limit = float(nodes.bias_limit[t])
        measure_rises(node, charge, X, group, d, reward, capacity, limit, *room, found)
        found = np.maximum(found + lacking, 0.0)
        rises[0, standing], rises[1, standing] = found[:n], found[n : 2 * n]
        np.maximum.at(rises[2], self._of[coming], found[2 * n :])
        return rises


def _solve_by_simplex(node: Node, bias_limit: float) -> None:
    """Put a node of the l1 norm to what the simplex method proves of it, if that is more."""
    from scipy.optimize import linprog  # takes a while to load, and is seldom needed

    p, limits = node.Z.shape[1], np.minimum(node.capacity, _LARGE)
    found = linprog(
        -node.reward, np.vstack([node.Z.T, -node.Z.T]), np.ones(2 * p), node.d[None, :], np.zeros(1),
        bounds=np.column_stack([np.zeros(len(limits)), limits]), method="highs-ds",
    )  # fmt: skip
    if found.x is None:
        return
    a = np.clip(found.x, 0.0, limits)
    u = a @ node.Z
    size = max(1.0, float(np.abs(u).max(initial=0.0)) * (1.0 + 1e-10))
    value = (a @ node.reward - abs(a @ node.d) * bias_limit) / size
    if value > node.result[0]:
        node.v[A], node.f[U] = a / size, u / size
        node.f[W] = found.ineqlin.marginals[p:] - found.ineqlin.marginals[:p]
        # Rises are measured from what an interior point leaves behind.
        node.result[:] = value, -found.eqlin.marginals[0], 0.0


def _sides(n_nodes: int) -> NDArray[np.int8]:
    """Return (nodes, nodes) 2 where a group stands, -1 or 1 where it went at a node above, else 0."""
    sides = np.zeros((2 * n_nodes + 1, 2 * n_nodes + 1), np.int8)
    for node in range(2 * n_nodes + 1):
        sides[node, node], at = 2, node
        while at > 0:
            above = (at - 1) // 2
            sides[node, above] = -1 if at == 2 * above + 1 else 1
            at = above
    return sides
