r"""Version spaces with cores: compiled search for trees of hyperplane splits whose leaves have labels.

**Notation.** :math:`V_\ell(S)` is the least value of a tree of the levels from :math:`\ell` on for the groups S that
reach it, and :math:`W_{\ell,F}(S)` that of a tree whose first split is on the support F at level :math:`\ell`, without
its price :math:`\pi_\ell(F)`. So

.. math::  V_\ell(S) = \min\bigl(N_\ell(S),\; \min_F \pi_\ell(F) + W_{\ell,F}(S)\bigr),

where :math:`N_\ell(S)` is :math:`V_{\ell+1}(S)`, or the cheaper label at the last level. Charges and prices are at
least 0, and a tree for S is one for each part of S: V and W never fall as S grows.

Leaves that predict the better one of two labels have the labels 0 and 1 as well: a hyperplane can be reversed, and two
leaves of one label are no better than none.

**Core.** A core is a set C of groups with :math:`W_{\ell,F}(C) \ge v`. Then :math:`W_{\ell,F}(S) \ge v` for every
:math:`S \supseteq C`, at any node and below any root. Sets are bits, so that one pass over the cores of a level bounds
:math:`V_\ell(S)`. A core that contains another one of at least its value is of no use and removed.

**Version space.** Above the last level, the hyperplanes on F that send some groups to given sides are a polytope
(:mod:`~mipforest.searches.oblique.polytopes`). It says of each other group where it may go. A *node* of the search for
:math:`W_{\ell,F}(S)` is a polytope with the groups L and R that may go one way only; groups that agree on F are one
*cell*. Its bound is :math:`V_{\ell+1}(L) + V_{\ell+1}(R)`. Depth-first search branches on the side of an open cell that
is charged wherever it goes, and to which the polytope reaches far both ways. The middle of the polytope is tried as a
split. Where no cell is open, the polytope is cut by all cells: what is left holds the hyperplanes that keep the gap.

**Last level.** A node is a list of cells with given sides. It costs their charges, the lesser charges of open cells,
and what conflicts cost together (:mod:`~mipforest.searches.oblique.conflicts`). Where these do not reach the best
value, a linear programme has ended with a hyperplane that keeps all sides that conflicts do not pay for. That one is
tried as a split, and the search branches on a cell that it sends to the dearer side, or nowhere.

**A proof has a core.** The search shows that no tree for S is worth less than B, or finds the best one; in either case
with a core for the value that it returns. It consists of one group of each cell branched on, of the cells without a
side, and, for each pruned node, of what proves its bound: at the last level charged groups and the cells of conflicts,
above it cores of L and of R for two amounts that sum up to the bound. Proof: take the same branches for C alone. Each
polytope is cut by groups of C only, so that a group of C that is sent to one side in the proof for S is sent there for
C. A conflict whose cells are in C holds for C. So each leaf is empty, has a cell of C without a side, or holds parts of
L and R that prove its bound. When the best value falls during the search, the leaves before had reached a larger one.
Charges and values of cores come whole, so that a node's bound is often proven to be more than B. Groups that are added
later take nothing from it. Where no better tree was found, the core is kept with the least of these bounds.

**Value of a child.** Trees found are kept, with what each group pays in them: the cheapest one for a set is an upper
bound, and cores are a lower one. Where they do not meet, the support of the least bound is searched, which yields a
core or a better tree. A child that has grown by groups that its best tree does not charge keeps tree and value.

**Limits.** A cut that is refused leaves the polytope as it is, and the side of the cell as a decision, which is a
relaxation. A node that cannot be decided, as too deep, is *lost*: its bound enters the value, whose core is then all of
S.

**State.** The search is one loop over frames of levels, without recursion. It returns where it needs more memory, a
linear programme, or someone to tell, and goes on when it is called again.
"""

from __future__ import annotations

from typing import NamedTuple

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import entry, kernel
from mipforest.searches.oblique.conflicts import (
    CONFLICT,
    PLANE,
    Conflicts,
    Known,
    charge,
    find_conflict,
    keep_only,
    pack,
    recall,
    remember,
    worth_of,
)
from mipforest.searches.oblique.cores import (
    Cores,
    add_group,
    find,
    first_from,
    has,
    insert,
    is_full,
    is_within,
    join,
)
from mipforest.searches.oblique.polytopes import (
    ON,
    CutSpace,
    Polytope,
    copy,
    least_and_greatest,
    may_go,
    score_of,
    send,
    write_box,
    write_cross,
    write_middle,
)

#: What a group pays in a tree whose gap it falls into.
FAR = 1e100

#: Splits of a node's search that are open at a time, from the root of it down.
DEPTHS = 120

#: Trees of a level that are kept, and those that stay: the two labels.
TREES, CONSTANTS = 400, 2

#: In the place of a support: all groups go to one side.
ALL_LEFT, ALL_RIGHT = -2, -1

#: Sides, and a cell that may go both ways.
LEFT, RIGHT, OPEN = 0, 1, -1

#: Why :func:`search` returned: the split's value is known; the store of cores is full; a linear programme has to say
#: whether the decided cells of the node can be parted; a better tree was found; it was told to stop.
DONE, FULL, SEPARATE, BETTER, STOPPED = 0, 1, 2, 3, 4

#: Modes: a set begins, chooses what to search next, and is known; a split begins; a node is bounded, asks for the
#: values of its sides, is closed; a split's value is known; a linear programme has answered.
VALUE, CHOOSE, KNOWN, SPLIT, NODE, SIDES, CLOSED, SEARCHED, ANSWERED = 0, 1, 2, 3, 4, 5, 6, 7, 8

#: Reasons for a group to be in a core: its charge on the left, on the right, and where it is.
CHARGED_LEFT, CHARGED_RIGHT, PLACED = 1, 2, 4


class Table(NamedTuple):
    """A problem, and the supports of its levels, those of a level one after the other, the cheapest first.

    Attributes
    ----------
    X
        (N, p) points.
    charges
        (2, G) what each group pays for each label.
    heavy
        (2, G) groups by this charge, the greatest first.
    least, by_least
        (G,) the lesser charge of each group, and groups by it, the greatest first.
    begin
        (D + 1,) first support of each level.
    features, n_features
        (I, K) and (I,) features of each support.
    price
        (I,) its price.
    low
        (D,) least intercept of a level.
    rest
        (D,) what supports cost at least that are not among those of the level.
    rows, first
        (J,) and (I, G + 1) the points that count of each group on each support: where those of a group begin.
    cell
        (I, G) number of a group's cell on each support.
    gap, l1, tolerance
        Least distance between the scores of both sides; whether weights are of absolute sum 1, up to which a hyperplane
        can be scaled, instead of at most 1 each; and what a score may miss its side by.
    tiny
        Values that differ by less are equal.
    unit
        Size of a usual charge.
    """

    X: FloatArray
    charges: FloatArray
    heavy: IntArray
    least: FloatArray
    by_least: IntArray
    begin: IntArray
    features: IntArray
    n_features: IntArray
    price: FloatArray
    low: FloatArray
    rest: FloatArray
    rows: IntArray
    first: IntArray
    cell: IntArray
    gap: float
    l1: bool
    tolerance: float
    tiny: float
    unit: float


class Pool(NamedTuple):
    """Trees of each level: the constants of both labels, then those found last.

    Attributes
    ----------
    cost
        (D, P, G) what each group pays in a tree.
    price
        (D, P) prices of its splits.
    support
        (D, P, T) supports of its nodes in heap order.
    plane
        (D, P, T, K + 1) hyperplanes on these.
    n
        (D, 2) trees, and the place that was taken last once all are.
    born, clock
        (D, P) when a tree was added, 0 for those that were there before; and (1,) how many were.
    """

    cost: FloatArray
    price: FloatArray
    support: IntArray
    plane: FloatArray
    n: IntArray
    born: IntArray
    clock: IntArray


class Sets(NamedTuple):
    """Sets of groups whose value is asked for, one for each level.

    Attributes
    ----------
    words, groups, n
        (D, W), (D, G), (D,) its groups, as bits and as a list.
    cutoff
        (D,) value from which on trees are of no use.
    target
        (D,) that, or the value of the best tree known.
    lost
        (D,) least bound of what could not be decided.
    value, tree
        (D,) lower bound on its value, or ``cutoff``; and a tree, which has that value where that is below ``cutoff``
        and nothing was lost.
    bound
        (I,) lower bounds by the support of the first split.
    without
        (D,) lower bound where the level does not split.
    by_side
        (D,) whether a split of the level above asks for one of its sides; otherwise the set above does not split.
    """

    words: IntArray
    groups: IntArray
    n: IntArray
    cutoff: FloatArray
    target: FloatArray
    lost: FloatArray
    value: FloatArray
    tree: IntArray
    bound: FloatArray
    without: FloatArray
    by_side: IntArray


class Splits(NamedTuple):
    """Searches for the best split on a support, one for each level; their open nodes by depth.

    Attributes
    ----------
    support
        (D,) the support.
    X, first
        (D, N, K), (D, G + 1) points of its cells, and where those of each begin.
    member, member_first, n_cells
        (D, G), (D, G + 1), (D,) groups of its cells, and how many cells there are.
    state, trail, n_trail
        (D, G), (D, G), (D,) side of each cell, the cells that have one in order, and how many these are.
    V, facets, n_vertices
        (D, E, M, K + 1), (D, E, M, 2), (D, E) polytopes of the open nodes.
    side, bound, tree
        (D, E, 2, W), (D, E, 2), (D, E, 2) groups of their sides, with lower bound and best tree.
    cost
        (D, E) lower bound of nodes of the last level.
    cell, other, mark
        (D, E) the cell that they branched on, the side still to be searched or -1, and length of the trail.
    depth
        (D,) depth of the present node.
    turn
        (D,) sides of it that were asked for.
    best, lost, found
        (D,) least value found, or the budget; least bound that was lost; the tree, or -1.
    core, proven
        (D, W) groups that prove the value, and (D,) what they prove, if no better tree was found.
    point
        (D, K + 1) the middle of the present polytope, or a hyperplane.
    solution
        (K + 1,) the best hyperplane of the last level.
    spare
        (M, K + 1) and (M, 2) room for a polytope.
    room
        Room for cuts.
    charge, kept
        (2, G), (G,) charges of cells of the last level, and why they are in the core.
    slot
        (2, G) room for a number for each group.
    nodes
        (2,) nodes above the last level, and of it.
    wanted
        (G,) side that costs a cell of the last level less.
    conflicts, known
        Conflicts of the present search at the last level, and those of all before.
    """

    support: IntArray
    X: FloatArray
    first: IntArray
    member: IntArray
    member_first: IntArray
    n_cells: IntArray
    state: IntArray
    trail: IntArray
    n_trail: IntArray
    V: FloatArray
    facets: IntArray
    n_vertices: IntArray
    side: IntArray
    bound: FloatArray
    tree: IntArray
    cost: FloatArray
    cell: IntArray
    other: IntArray
    mark: IntArray
    depth: IntArray
    turn: IntArray
    best: FloatArray
    lost: FloatArray
    found: IntArray
    core: IntArray
    proven: FloatArray
    point: FloatArray
    solution: FloatArray
    spare: Polytope
    room: CutSpace
    charge: FloatArray
    kept: IntArray
    slot: IntArray
    nodes: IntArray
    wanted: IntArray
    conflicts: Conflicts
    known: Known


# ---------------------------------------------------------------------- bounds by cores


@kernel
def bound_supports(
    table: Table, cores: Cores, level: int, words: IntArray, target: float, bound: FloatArray
) -> float:
    """Write bounds (I,) of a set by the support of the first split, of those cheaper than a target.

    Returns
    -------
    The least one; at least the target where all reach it.
    """
    least: float = float("inf")
    for i in range(table.begin[level], table.begin[level + 1]):
        bound[i] = table.price[i]
        if bound[i] >= target:
            # Those that follow cost as much at least, and are not looked at.
            least = min(least, bound[i])
            break
        need = target - bound[i] - table.tiny
        at = find(cores, i, words, need)
        if at < 0:
            at = first_from(cores, i, need) - 1
            while at >= cores.begin[i] and not is_within(cores.words[at], words):
                at -= 1
        if at >= cores.begin[i]:
            bound[i] += cores.value[at]
        least = min(least, bound[i])
    return least


@kernel
def least_charges(table: Table, groups: IntArray, n: int) -> float:
    """Return the sum of the lesser charges of n groups."""
    total = 0.0
    for r in range(n):
        total += table.least[groups[r]]
    return total


@kernel
def join_charged(charge: FloatArray, order: IntArray, words: IntArray, value: float, core: IntArray) -> float:
    """Add to a core groups of a set until those in it are charged a value; return what they are charged."""
    total = 0.0
    for g in range(len(charge)):
        if has(core, g) and has(words, g):
            total += charge[g]
    for r in range(len(order)):
        if total >= value:
            break
        g = order[r]
        if has(words, g) and not has(core, g):
            add_group(core, g)
            total += charge[g]
    return total


@kernel
def explain(table: Table, cores: Cores, level: int, words: IntArray, value: float, core: IntArray) -> float:
    """Add to a core groups of a set that alone are worth at least a value from a level on.

    Returns
    -------
    What they are worth at least: the value or more.
    """
    if value <= 0.0:
        return 0.0
    complete, proven, tiny = True, float("inf"), table.tiny
    for own in range(level, len(table.rest)):
        if value > table.rest[own] + tiny:
            need = value - table.rest[own] - tiny
            total = join_charged(table.least, table.by_least, words, need, core)
            complete &= total >= need
            proven = min(proven, table.rest[own] + total)
        else:
            proven = min(proven, table.rest[own])
        for i in range(table.begin[own], table.begin[own + 1]):
            need = value - table.price[i] - tiny
            if need <= 0.0:
                proven = min(proven, table.price[i])
                break
            at = find(cores, i, words, need - tiny)
            if at < 0:
                complete = False
                break
            join(core, cores.words[at])
            proven = min(proven, table.price[i] + cores.value[at])
        if not complete:
            break
    for label in range(2):
        if complete:
            need = value - tiny
            total = join_charged(table.charges[label], table.heavy[label], words, need, core)
            complete = total >= need
            proven = min(proven, total)
    if not complete:
        join(core, words)
        return value
    return max(value, proven)


# ---------------------------------------------------------------------- trees


@kernel
def cheapest_tree(pool: Pool, level: int, groups: IntArray, n: int) -> tuple[float, int]:
    """Return the least value of a known tree for n groups, and that tree."""
    best, which = float("inf"), 0
    for i in range(pool.n[level, 0]):
        value = pool.price[level, i]
        cost = pool.cost[level, i]
        for r in range(n):
            value += cost[groups[r]]
            if value >= best:
                break
        if value < best:
            best, which = value, i
    return best, which


@kernel
def new_place(pool: Pool, sets: Sets, splits: Splits, level: int) -> int:
    """Return a place for a tree of a level: a free one, or that of the oldest tree that no node holds."""
    if pool.n[level, 0] < pool.price.shape[1]:
        pool.n[level, 0] += 1
        return int(pool.n[level, 0] - 1)
    place = pool.n[level, 1]
    while True:
        place = place + 1 if place + 1 < pool.price.shape[1] else CONSTANTS
        held = place < CONSTANTS or place == sets.tree[level] or place == splits.found[level]
        if level > 0:
            for depth in range(splits.depth[level - 1] + 1):
                tree = splits.tree[level - 1, depth]
                held |= place == tree[0] or place == tree[1]
        if not held:
            break
    pool.n[level, 1] = place
    return int(place)


@kernel
def number_tree(pool: Pool, level: int, place: int) -> None:
    """Remember that a tree was added now."""
    pool.clock[0] += 1
    pool.born[level, place] = pool.clock[0]


@kernel
def copy_below(pool: Pool, level: int, of: int, to: int, side: int, width: int) -> None:
    """Write a tree of the next level below the left (0) or the right (1) side of the root of a tree of a level."""
    n_levels = len(pool.n) - level - 1
    for depth in range(n_levels):
        for j in range(1 << depth):
            source = (1 << depth) - 1 + j
            target = (2 << depth) - 1 + side * (1 << depth) + j
            pool.support[level, to, target] = pool.support[level + 1, of, source]
            for q in range(width):
                pool.plane[level, to, target, q] = pool.plane[level + 1, of, source, q]


@kernel
def lift(pool: Pool, sets: Sets, splits: Splits, level: int, of: int) -> int:
    """Keep a tree of the next level as one of a level that does not split; return its place."""
    place = new_place(pool, sets, splits, level)
    pool.price[level, place] = pool.price[level + 1, of]
    for g in range(pool.cost.shape[2]):
        pool.cost[level, place, g] = pool.cost[level + 1, of, g]
    pool.support[level, place, 0] = ALL_RIGHT
    for side in range(2):
        copy_below(pool, level, of, place, side, pool.plane.shape[3])
    number_tree(pool, level, place)
    return place


@kernel
def side_at(
    point: FloatArray, X: FloatArray, begin: int, end: int, d: int, gap: float, tolerance: float
) -> int:
    """Return the side to which a hyperplane sends some points, :data:`OPEN` where it sends them to none."""
    least, greatest = float("inf"), -float("inf")
    for i in range(begin, end):
        score = score_of(point, X[i], d)
        least, greatest = min(least, score), max(greatest, score)
    if least >= -tolerance:
        return RIGHT
    return LEFT if greatest <= -gap + tolerance else OPEN


@kernel
def keep_tree(table: Table, pool: Pool, sets: Sets, splits: Splits, level: int, left: int, right: int) -> int:
    """Keep the tree of the split ``splits.point`` and two trees of the next level; return its place.

    At the last level these are labels.
    """
    last = len(table.rest) - 1
    place, i, point = new_place(pool, sets, splits, level), splits.support[level], splits.point[level]
    k = table.n_features[i]
    pool.price[level, place] = table.price[i]
    if level < last:
        pool.price[level, place] += pool.price[level + 1, left] + pool.price[level + 1, right]
    tolerance = table.tolerance + 4 * ON
    for g in range(len(table.least)):
        least, greatest = float("inf"), -float("inf")
        for r in range(table.first[i, g], table.first[i, g + 1]):
            score = point[k]
            for q in range(k):
                score += point[q] * table.X[table.rows[r], table.features[i, q]]
            least, greatest = min(least, score), max(greatest, score)
        side = RIGHT if least >= -tolerance else LEFT if greatest <= -table.gap + tolerance else OPEN
        if side == OPEN:
            pool.cost[level, place, g] = FAR
        elif level == last:
            pool.cost[level, place, g] = table.charges[side, g]
        else:
            pool.cost[level, place, g] = pool.cost[level + 1, right if side == RIGHT else left, g]
    pool.support[level, place, 0] = i
    for q in range(k + 1):
        pool.plane[level, place, 0, q] = point[q]
    if level < last:
        copy_below(pool, level, left, place, LEFT, pool.plane.shape[3])
        copy_below(pool, level, right, place, RIGHT, pool.plane.shape[3])
    number_tree(pool, level, place)
    return place


# ---------------------------------------------------------------------- nodes of a split


@kernel
def begin_split(table: Table, sets: Sets, splits: Splits, level: int, budget: float) -> None:
    """Begin the search for the best split of a set on a support: its cells, their points, and all hyperplanes."""
    i, groups = splits.support[level], sets.groups[level]
    number, filled = splits.slot[0], splits.slot[1]
    member, member_first = splits.member[level], splits.member_first[level]
    k, n = table.n_features[i], 0
    for g in range(len(number)):
        number[g] = -1
    member_first[0] = 0
    for r in range(sets.n[level]):
        cell = table.cell[i, groups[r]]
        if number[cell] < 0:
            number[cell] = n
            n += 1
            member_first[n] = 0
        member_first[number[cell] + 1] += 1
    for c in range(n):
        member_first[c + 1] += member_first[c]
        filled[c] = member_first[c]
    for r in range(sets.n[level]):
        c = number[table.cell[i, groups[r]]]
        member[filled[c]] = groups[r]
        filled[c] += 1
    at, first = 0, splits.first[level]
    for c in range(n):
        first[c] = at
        g = member[member_first[c]]
        for r in range(table.first[i, g], table.first[i, g + 1]):
            for q in range(k):
                splits.X[level, at, q] = table.X[table.rows[r], table.features[i, q]]
            at += 1
        splits.state[level, c] = OPEN
    first[n] = at
    splits.n_cells[level], splits.n_trail[level], splits.depth[level] = n, 0, 0
    splits.best[level], splits.lost[level], splits.found[level] = budget, float("inf"), -1
    splits.proven[level] = float("inf")
    for w in range(splits.core.shape[1]):
        splits.core[level, w] = 0
        splits.side[level, 0, 0, w], splits.side[level, 0, 1, w] = 0, 0
    if level < len(table.rest) - 1:
        everything = Polytope(splits.V[level, 0], splits.facets[level, 0])
        if table.l1:
            splits.n_vertices[level, 0] = write_cross(everything, k + 1, table.low[level])
        else:
            splits.n_vertices[level, 0] = write_box(everything, k + 1, table.low[level])


@kernel
def decide(splits: Splits, level: int, c: int, side: int) -> None:
    """Give an open cell a side."""
    splits.state[level, c] = side
    splits.trail[level, splits.n_trail[level]] = c
    splits.n_trail[level] += 1


@kernel
def sides_left(table: Table, splits: Splits, level: int, c: int) -> int:
    """Return where a cell may go over the polytope of the present node: bits 1 (left), 2 (right)."""
    depth = splits.depth[level]
    one = Polytope(splits.V[level, depth], splits.facets[level, depth])
    n, d, may = splits.n_vertices[level, depth], table.n_features[splits.support[level]] + 1, 3
    for r in range(splits.first[level, c], splits.first[level, c + 1]):
        may &= may_go(one, n, splits.X[level, r], d, -table.tolerance, -table.gap + table.tolerance)
        if may == 0:
            break
    return may


@kernel
def reach_of(table: Table, splits: Splits, level: int, c: int) -> float:
    """Return how far the polytope of the present node reaches both ways at a cell."""
    depth = splits.depth[level]
    one = Polytope(splits.V[level, depth], splits.facets[level, depth])
    n, d = splits.n_vertices[level, depth], table.n_features[splits.support[level]] + 1
    reach = float("inf")
    for r in range(splits.first[level, c], splits.first[level, c + 1]):
        least, greatest = least_and_greatest(one, n, splits.X[level, r], d)
        reach = min(reach, min(greatest, -least))
    return reach


@kernel
def place_cell(table: Table, splits: Splits, level: int, c: int, side: int) -> int:
    """Write the polytope of the present node that sends a cell to a side one deeper; return its vertices.

    Where it has no room it is not cut.
    """
    depth, d = splits.depth[level], table.n_features[splits.support[level]] + 1
    one = Polytope(splits.V[level, depth], splits.facets[level, depth])
    to = Polytope(splits.V[level, depth + 1], splits.facets[level, depth + 1])
    n = splits.n_vertices[level, depth]
    begin, end = splits.first[level, c], splits.first[level, c + 1]
    m = send(one, n, d, splits.X[level], begin, end, side, table.gap, table.tolerance, splits.room, to)
    if m < 0:
        copy(one, n, d, to)
        m = n
    return int(m)


@kernel
def cut_by_all(table: Table, splits: Splits, level: int) -> int:
    """Look for a hyperplane that keeps the sides of all decided cells; return 1, 0 for none, -1 for no room.

    Write it to ``splits.point``.
    """
    depth, d = splits.depth[level], table.n_features[splits.support[level]] + 1
    now = Polytope(splits.V[level, depth + 1], splits.facets[level, depth + 1])
    n = splits.n_vertices[level, depth]
    copy(Polytope(splits.V[level, depth], splits.facets[level, depth]), n, d, now)
    for c in range(splits.n_cells[level]):
        side = splits.state[level, c]
        if side == OPEN:
            continue
        begin, end = splits.first[level, c], splits.first[level, c + 1]
        n = send(
            now,
            n,
            d,
            splits.X[level],
            begin,
            end,
            side,
            table.gap,
            table.tolerance,
            splits.room,
            splits.spare,
        )
        if n <= 0:
            return int(n)
        copy(splits.spare, n, d, now)
    write_middle(now, n, d, splits.point[level])
    return 1


@kernel
def middle_keeps(table: Table, splits: Splits, level: int) -> bool:
    """Return whether the hyperplane ``splits.point`` sends all decided cells to their sides."""
    d, tolerance = table.n_features[splits.support[level]] + 1, table.tolerance + 4 * ON
    for r in range(splits.n_trail[level]):
        c = splits.trail[level, r]
        begin, end = splits.first[level, c], splits.first[level, c + 1]
        if (
            side_at(splits.point[level], splits.X[level], begin, end, d, table.gap, tolerance)
            != splits.state[level, c]
        ):
            return False
    return True


@kernel
def back(table: Table, splits: Splits, level: int) -> tuple[int, int]:
    """Go back to the last node with a side that is still to be searched, and begin that one.

    Returns
    -------
    Cell and side; -1 twice where no node is left.
    """
    while splits.depth[level] > 0:
        splits.depth[level] -= 1
        depth = splits.depth[level]
        while splits.n_trail[level] > splits.mark[level, depth]:
            splits.n_trail[level] -= 1
            splits.state[level, splits.trail[level, splits.n_trail[level]]] = OPEN
        c, side = splits.cell[level, depth], splits.other[level, depth]
        if side < 0:
            continue
        splits.other[level, depth] = -1
        n = place_cell(table, splits, level, c, side)
        if n == 0:
            continue
        splits.n_vertices[level, depth + 1] = n
        splits.depth[level] = depth + 1
        decide(splits, level, c, side)
        return c, side
    return -1, -1


@kernel
def branch(table: Table, splits: Splits, level: int, c: int, side: int) -> bool:
    """Branch on an open cell, one side first; return whether the polytope of that side is not empty.

    Otherwise the node is one deeper nevertheless, with nothing in it, so that :func:`back` comes to the other side.
    """
    depth = splits.depth[level]
    splits.cell[level, depth], splits.other[level, depth] = c, 1 - side
    splits.mark[level, depth] = splits.n_trail[level]
    n = place_cell(table, splits, level, c, side)
    splits.depth[level] = depth + 1
    if n == 0:
        return False
    splits.n_vertices[level, depth + 1] = n
    decide(splits, level, c, side)
    return True


@kernel
def add_members(splits: Splits, level: int, c: int, words: IntArray) -> None:
    """Add the groups of a cell to a set."""
    for r in range(splits.member_first[level, c], splits.member_first[level, c + 1]):
        add_group(words, splits.member[level, r])


@kernel
def representative(splits: Splits, level: int, c: int) -> int:
    """Return the group that stands for a cell."""
    return int(splits.member[level, splits.member_first[level, c]])


# ---------------------------------------------------------------------- the last level


@kernel
def charge_for_core(splits: Splits, level: int, best: float) -> float:
    """Keep charges that reach the best value, those first that the core has already; return their sum."""
    total = 0.0
    for again in range(2):
        for c in range(splits.n_cells[level]):
            if total >= best and again == 1:
                return total
            side = splits.state[level, c]
            left, right = splits.charge[0, c], splits.charge[1, c]
            pay, why = min(left, right), CHARGED_LEFT | CHARGED_RIGHT
            if side != OPEN:
                pay, why = (left, CHARGED_LEFT) if side == LEFT else (right, CHARGED_RIGHT)
            is_kept = (splits.kept[c] & why) == why
            if pay > 0.0 and is_kept == (again == 0):
                total += pay
                splits.kept[c] |= why
    return total + keep_conflicts(splits, level, best - total)


@kernel
def keep_conflicts(splits: Splits, level: int, needed: float) -> float:
    """Keep the cells of conflicts that cost an amount together at the present node; return what they cost."""
    conflicts, total = splits.conflicts, 0.0
    for q in range(conflicts.n[0] - 1, -1, -1):
        if total >= needed:
            break
        if conflicts.worth[q] > 0.0:
            total += conflicts.worth[q]
            for r in range(conflicts.size[q]):
                c = conflicts.cell[q, r]
                splits.kept[c] |= PLACED
                if splits.state[level, c] == OPEN:
                    splits.kept[c] |= CHARGED_LEFT | CHARGED_RIGHT
    return total


@kernel
def pack_again(splits: Splits, level: int, tiny: float) -> float:
    """Return what known conflicts cost at the present node."""
    left, right, conflicts = splits.charge[0], splits.charge[1], splits.conflicts
    for c in range(splits.n_cells[level]):
        weight = abs(left[c] - right[c])
        conflicts.left_to_pay[c] = weight if splits.state[level, c] == OPEN and weight > tiny else 0.0
    return float(pack(conflicts, splits.state[level], splits.wanted, tiny))


@kernel
def pack_more(table: Table, splits: Splits, level: int, packed: float, needed: float) -> tuple[float, int]:
    """Look for conflicts until they cost an amount together; return what they cost, and why no more were looked for."""
    conflicts, i, state, wanted = splits.conflicts, splits.support[level], splits.state[level], splits.wanted
    found = CONFLICT
    while packed < needed:
        found = find_conflict(
            conflicts,
            splits.X[level],
            splits.first[level],
            splits.n_cells[level],
            table.n_features[i],
            table.low[level],
            table.l1,
            table.gap,
            table.tolerance,
            state,
            wanted,
            splits.cell[level],
            splits.depth[level],
        )
        if found != CONFLICT:
            break
        q = conflicts.n[1]
        worth = worth_of(conflicts, q, state, wanted)
        packed += worth
        if worth == float("inf"):
            keep_only(conflicts, q)
        else:
            charge(conflicts, q, state, worth, table.tiny)
    return packed, found


@kernel
def value_at(
    splits: Splits, level: int, d: int, cost: float, gap: float, tolerance: float
) -> tuple[float, int]:
    """Return the value of the hyperplane ``splits.point`` at the present node, and the cell to branch on, or -1.

    That is one that falls into its gap, or else one that it sends to the dearer side, with the most to pay.
    """
    left, right, value = splits.charge[0], splits.charge[1], cost
    pick, most = -1, -1.0
    for c in range(splits.n_cells[level]):
        if splits.state[level, c] != OPEN:
            continue
        begin, end = splits.first[level, c], splits.first[level, c + 1]
        side = side_at(splits.point[level], splits.X[level], begin, end, d, gap, tolerance)
        if side == splits.wanted[c]:
            continue
        weight = abs(left[c] - right[c])
        if side == OPEN:
            value = float("inf")
        else:
            value += weight
        if weight > most:
            pick, most = c, weight
    return value, pick


@kernel
def search_last(table: Table, sets: Sets, splits: Splits, stop: IntArray, level: int, budget: float) -> int:
    """Search for the best split of a set with two leaves, as :func:`search` does above the last level."""
    begin_split(table, sets, splits, level, budget)
    n, d, tiny = splits.n_cells[level], table.n_features[splits.support[level]] + 1, table.tiny
    base, exact_tolerance = 0.0, table.tolerance + 4 * ON
    left, right, conflicts = splits.charge[0], splits.charge[1], splits.conflicts
    for c in range(n):
        left[c], right[c], splits.kept[c] = 0.0, 0.0, 0
        for r in range(splits.member_first[level, c], splits.member_first[level, c + 1]):
            left[c] += table.charges[0, splits.member[level, r]]
            right[c] += table.charges[1, splits.member[level, r]]
        base += min(left[c], right[c])
        splits.wanted[c] = LEFT if left[c] <= right[c] else RIGHT
    recall(splits.known, splits.support[level], splits.slot[0], conflicts)
    splits.cost[level, 0] = base
    point, best = splits.point[level], budget
    is_open = True
    while is_open:
        splits.nodes[1] += 1
        if stop[0]:
            return STOPPED
        depth = splits.depth[level]
        cost = splits.cost[level, depth]
        packed, pick, why = pack_again(splits, level, tiny), -1, CONFLICT
        if cost + packed < best - tiny:
            packed, why = pack_more(table, splits, level, packed, best - tiny - cost)
        if why == PLANE:
            for q in range(d):
                point[q] = conflicts.z[q]
            value, pick = value_at(splits, level, d, cost, table.gap, exact_tolerance)
            if value < best - tiny:
                best = value
                splits.found[level] = 0
                for q in range(d):
                    splits.solution[q] = point[q]
        if packed == float("inf"):
            keep_conflicts(splits, level, packed)
        elif cost + packed >= best - tiny:
            splits.proven[level] = min(splits.proven[level], charge_for_core(splits, level, best))
        else:
            for c in range(n):
                if pick < 0 and splits.state[level, c] == OPEN:
                    pick = c
            if pick < 0 or depth + 2 >= DEPTHS:
                splits.lost[level] = min(splits.lost[level], cost)
            else:
                splits.kept[pick] |= PLACED
                side = splits.wanted[pick]
                splits.cell[level, depth], splits.other[level, depth] = pick, 1 - side
                splits.mark[level, depth] = splits.n_trail[level]
                splits.depth[level] = depth + 1
                decide(splits, level, pick, side)
                splits.cost[level, depth + 1] = cost
                continue
        is_open = False
        while splits.depth[level] > 0 and not is_open:
            splits.depth[level] -= 1
            depth = splits.depth[level]
            splits.n_trail[level] -= 1
            c, side = splits.cell[level, depth], splits.other[level, depth]
            splits.state[level, c] = OPEN
            if side >= 0:
                splits.other[level, depth] = -1
                splits.depth[level] = depth + 1
                decide(splits, level, c, side)
                splits.cost[level, depth + 1] = splits.cost[level, depth] + abs(left[c] - right[c])
                is_open = True
    splits.best[level] = best
    for c in range(n):
        splits.slot[1, c] = table.cell[splits.support[level], representative(splits, level, c)]
    remember(splits.known, splits.support[level], splits.slot[1], conflicts)
    core = splits.core[level]
    for c in range(n):
        why = splits.kept[c]
        if why & PLACED:
            add_group(core, representative(splits, level, c))
        for r in range(splits.member_first[level, c], splits.member_first[level, c + 1]):
            g = splits.member[level, r]
            charged = (why & CHARGED_LEFT and table.charges[0, g] > 0.0) or (
                why & CHARGED_RIGHT and table.charges[1, g] > 0.0
            )
            if charged:
                add_group(core, g)
    return DONE


# ---------------------------------------------------------------------- all levels


@kernel
def list_groups(sets: Sets, level: int) -> None:
    """Write the list of the groups of a set."""
    n, words, groups = 0, sets.words[level], sets.groups[level]
    for g in range(len(groups)):
        if has(words, g):
            groups[n] = g
            n += 1
    sets.n[level] = n


@kernel
def ask(sets: Sets, level: int, words: IntArray, cutoff: float, by_side: int) -> None:
    """Ask for the value of a set from a level on."""
    for w in range(len(words)):
        sets.words[level, w] = words[w]
    list_groups(sets, level)
    sets.cutoff[level], sets.by_side[level] = cutoff, by_side


@kernel
def cost_of(pool: Pool, sets: Sets, level: int, tree: int) -> float:
    """Return the value of a known tree for a set."""
    value: float = pool.price[level, tree]
    for r in range(sets.n[level]):
        value += pool.cost[level, tree, sets.groups[level, r]]
    return value


@kernel
def cost_of_words(pool: Pool, level: int, tree: int, words: IntArray) -> float:
    """Return the value of a known tree for a set of groups, as bits."""
    value: float = pool.price[level, tree]
    for g in range(pool.cost.shape[2]):
        if has(words, g):
            value += pool.cost[level, tree, g]
    return value


@kernel
def cost_of_cell(pool: Pool, splits: Splits, level: int, tree: int, c: int) -> float:
    """Return what the groups of a cell pay in a tree of the next level."""
    value = 0.0
    for r in range(splits.member_first[level, c], splits.member_first[level, c + 1]):
        value += pool.cost[level + 1, tree, splits.member[level, r]]
    return value


@kernel
def begin_set(table: Table, cores: Cores, pool: Pool, sets: Sets, level: int) -> bool:
    """Bound a set by known trees and by cores; return whether its value is known by that."""
    groups, n = sets.groups[level], sets.n[level]
    value, sets.tree[level] = cheapest_tree(pool, level, groups, n)
    target = min(sets.cutoff[level], value)
    sets.target[level], sets.value[level] = target, target
    if target <= table.tiny:
        return True
    words, least = sets.words[level], least_charges(table, groups, n)
    bound_supports(table, cores, level, words, target, sets.bound)
    sets.lost[level], sets.without[level] = table.rest[level] + least, float("inf")
    for below in range(level + 1, len(table.rest)):
        bound = min(bound_supports(table, cores, below, words, target, sets.bound), table.rest[below] + least)
        sets.without[level] = min(sets.without[level], bound)
    return False


@kernel
def prove(table: Table, cores: Cores, splits: Splits, level: int, depth: int, best: float) -> None:
    """Add to the core of a split what proves that the present node is worth at least an amount, and maybe more."""
    left, right = splits.bound[level, depth, 0], splits.bound[level, depth, 1]
    from_left = max(0.0, best - right)
    side, core = splits.side[level, depth], splits.core[level]
    proven = explain(table, cores, level + 1, side[0], min(from_left, left), core)
    proven += explain(table, cores, level + 1, side[1], min(best - from_left, right), core)
    splits.proven[level] = min(splits.proven[level], proven)


@kernel
def begin_node(table: Table, pool: Pool, splits: Splits, level: int) -> bool:
    """Find out which cells of the present node may go one way only; return whether the node is not empty.

    Write the groups of its sides, and which of them are worth more than before: bits of ``splits.turn``, and a third
    one where the right side has grown more.
    """
    depth = splits.depth[level]
    side, tree = splits.side[level, depth], splits.tree[level, depth]
    paid_left, paid_right, grown_left, grown_right = 0.0, 0.0, 0, 0
    for c in range(splits.n_cells[level]):
        now = splits.state[level, c]
        if now != OPEN:
            if depth == 0 or c != splits.cell[level, depth - 1]:
                continue
        else:
            may = sides_left(table, splits, level, c)
            if may == 0:
                add_group(splits.core[level], representative(splits, level, c))
                return False
            if may == 3:
                continue
            now = may - 1
            decide(splits, level, c, now)
        add_members(splits, level, c, side[now])
        paid = cost_of_cell(pool, splits, level, tree[now], c)
        size = splits.member_first[level, c + 1] - splits.member_first[level, c]
        if now == LEFT:
            paid_left += paid
            grown_left += size
        else:
            paid_right += paid
            grown_right += size
    splits.turn[level] = (
        (1 if paid_left > 0.0 else 0)
        + (2 if paid_right > 0.0 else 0)
        + (4 if grown_right > grown_left else 0)
    )
    return True


@kernel
def try_middle(table: Table, pool: Pool, splits: Splits, level: int) -> tuple[float, int]:
    """Return the value of the middle of the present node with the trees of its sides, and the cell to branch on.

    The value is infinite where the middle keeps no gap; the cell is -1 where none is open.
    """
    depth, d = splits.depth[level], table.n_features[splits.support[level]] + 1
    one = Polytope(splits.V[level, depth], splits.facets[level, depth])
    point, tree = splits.point[level], splits.tree[level, depth]
    write_middle(one, splits.n_vertices[level, depth], d, point)
    value = splits.bound[level, depth, 0] + splits.bound[level, depth, 1]
    score, pick, spare = -1.0, -1, -1
    most, tolerance = 8.0 * table.unit, table.tolerance + 4 * ON
    for c in range(splits.n_cells[level]):
        if splits.state[level, c] != OPEN:
            continue
        left = cost_of_cell(pool, splits, level, tree[0], c)
        right = cost_of_cell(pool, splits, level, tree[1], c)
        begin, end = splits.first[level, c], splits.first[level, c + 1]
        side = side_at(point, splits.X[level], begin, end, d, table.gap, tolerance)
        value += float("inf") if side == OPEN else left if side == LEFT else right
        low, high = min(left, right), max(left, right)
        if high > 0.0:
            now = (min(low, most) + 0.05 * min(high, most)) * reach_of(table, splits, level, c)
            if now > score:
                score, pick = now, c
        else:
            spare = c
    if pick < 0 and spare >= 0:
        for c in range(splits.n_cells[level]):
            if splits.state[level, c] == OPEN:
                now = reach_of(table, splits, level, c)
                if now > score:
                    score, pick = now, c
    return value, pick


@kernel
def adopt_point(table: Table, pool: Pool, sets: Sets, splits: Splits, level: int) -> bool:
    """Keep the tree of the hyperplane ``splits.point`` and the trees of both sides, if it is the best one so far."""
    depth = splits.depth[level]
    place = keep_tree(
        table, pool, sets, splits, level, splits.tree[level, depth, 0], splits.tree[level, depth, 1]
    )
    value = cost_of(pool, sets, level, place) - table.price[splits.support[level]]
    if value >= splits.best[level] - table.tiny:
        return False
    splits.best[level], splits.found[level] = value, place
    return True


@kernel
def choose_support(table: Table, sets: Sets, splits: Splits, level: int) -> int:
    """Choose how the tree of a set begins: at the next level, or with the support of the least bound; or know it."""
    chosen, least = -1, float("inf")
    for i in range(table.begin[level], table.begin[level + 1]):
        if table.price[i] >= least:
            break
        if sets.bound[i] < least:
            chosen, least = i, sets.bound[i]
    goal = min(sets.target[level], sets.lost[level])
    if sets.without[level] < min(least, goal - table.tiny):
        ask(sets, level + 1, sets.words[level], sets.target[level], 0)
        return VALUE
    if least >= goal - table.tiny:
        sets.value[level] = goal
        return KNOWN
    splits.support[level] = chosen
    return SPLIT


@kernel
def use_value(table: Table, pool: Pool, sets: Sets, splits: Splits, level: int) -> int:
    """Use the value of the set that a level asked for: of a side of its split, or of the tree without a split there."""
    value, tree = sets.value[level + 1], sets.tree[level + 1]
    if sets.by_side[level + 1]:
        depth, side = splits.depth[level], splits.turn[level] >> 3
        splits.bound[level, depth, side], splits.tree[level, depth, side] = value, tree
        splits.turn[level] &= 7
        return SIDES
    paid = cost_of(pool, sets, level + 1, tree)
    if value < min(paid, sets.target[level]) - table.tiny:
        sets.lost[level] = min(sets.lost[level], value)
    if paid < sets.target[level] - table.tiny:
        sets.target[level] = paid
        sets.tree[level] = lift(pool, sets, splits, level, tree)
    sets.without[level] = float("inf")
    return CHOOSE


@kernel
def begin_support(table: Table, pool: Pool, sets: Sets, splits: Splits, stop: IntArray, level: int) -> int:
    """Search a support at the last level, and begin with its polytope above that; stay where the search is to stop."""
    budget = sets.target[level] - table.price[splits.support[level]]
    if level < len(table.rest) - 1:
        begin_split(table, sets, splits, level, budget)
        for side in range(2):
            splits.bound[level, 0, side], splits.tree[level, 0, side] = 0.0, 0
        return NODE
    if search_last(table, sets, splits, stop, level, budget) == STOPPED:
        return SPLIT
    if splits.found[level] >= 0:
        for q in range(splits.point.shape[1]):
            splits.point[level, q] = splits.solution[q]
        splits.found[level] = keep_tree(table, pool, sets, splits, level, LEFT, RIGHT)
    return SEARCHED


@kernel
def open_node(table: Table, pool: Pool, splits: Splits, level: int) -> int:
    """Begin a node with what the one above it knows of both sides."""
    splits.nodes[0] += 1
    depth = splits.depth[level]
    if depth > 0:
        for side in range(2):
            splits.bound[level, depth, side] = splits.bound[level, depth - 1, side]
            splits.tree[level, depth, side] = splits.tree[level, depth - 1, side]
            for w in range(splits.core.shape[1]):
                splits.side[level, depth, side, w] = splits.side[level, depth - 1, side, w]
    return SIDES if begin_node(table, pool, splits, level) else CLOSED


@kernel
def examine_node(
    table: Table, cores: Cores, pool: Pool, sets: Sets, splits: Splits, level: int, at: IntArray
) -> int:
    """Ask for the value of a side, try the middle of the polytope, part its cells, or branch on one of them.

    Where the middle is a better split, it is adopted, and the node stays. Where all cells are decided, ``at`` is told
    whether some hyperplane parts them: 1, 0, or -1 where a linear programme has to say it.
    """
    tiny = table.tiny
    depth, turn, best = splits.depth[level], splits.turn[level], splits.best[level]
    bound = splits.bound[level, depth, 0] + splits.bound[level, depth, 1]
    if bound >= best - tiny:
        if level > 0:
            prove(table, cores, splits, level, depth, best)
        return CLOSED
    if turn & 3:
        side = turn >> 2 if turn & 3 == 3 else (turn & 3) - 1
        splits.turn[level] = (turn & 3 & ~(1 << side)) | (side << 3)
        ask(sets, level + 1, splits.side[level, depth, side], best - splits.bound[level, depth, 1 - side], 1)
        return VALUE
    value, pick = try_middle(table, pool, splits, level)
    if pick < 0:
        at[3] = cut_by_all(table, splits, level) if depth + 1 < DEPTHS else -1
        return ANSWERED
    is_better = value < best - tiny and middle_keeps(table, splits, level)
    if is_better and adopt_point(table, pool, sets, splits, level):
        return SIDES
    if depth + 2 >= DEPTHS:
        splits.lost[level] = min(splits.lost[level], bound)
        return CLOSED
    add_group(splits.core[level], representative(splits, level, pick))
    tree = splits.tree[level, depth]
    left = cost_of_cell(pool, splits, level, tree[0], pick)
    right = cost_of_cell(pool, splits, level, tree[1], pick)
    return NODE if branch(table, splits, level, pick, LEFT if left < right else RIGHT) else CLOSED


@kernel
def use_separation(
    table: Table, cores: Cores, pool: Pool, sets: Sets, splits: Splits, level: int, answer: int
) -> bool:
    """Close a node whose cells are all decided, by whether a hyperplane parts them; return whether it is adopted."""
    depth = splits.depth[level]
    if answer <= 0:
        for r in range(splits.n_trail[level]):
            add_group(splits.core[level], representative(splits, level, splits.trail[level, r]))
        return False
    bound = splits.bound[level, depth, 0] + splits.bound[level, depth, 1]
    is_adopted = adopt_point(table, pool, sets, splits, level)
    best = splits.best[level]
    if bound < best - table.tiny:
        splits.lost[level] = min(splits.lost[level], bound)
    elif level > 0:
        prove(table, cores, splits, level, depth, best)
    return bool(is_adopted)


@kernel
def value_of_support(table: Table, cores: Cores, sets: Sets, splits: Splits, level: int) -> float:
    """Return the bound that the search of a support has proven, and keep it as a core."""
    i, value = splits.support[level], splits.best[level]
    if splits.lost[level] < value - table.tiny:
        value = splits.lost[level]
        join(splits.core[level], sets.words[level])
    elif splits.found[level] < 0 and splits.proven[level] < float("inf"):
        value = max(value, splits.proven[level])
    if value > table.tiny and (level > 0 or len(table.rest) == 1):
        insert(cores, i, value, splits.core[level])
    return float(value)


@kernel
def record_support(table: Table, sets: Sets, splits: Splits, level: int, value: float) -> None:
    """Enter what is known of a support that was searched, and its tree where it is the best one of the set."""
    i = splits.support[level]
    if splits.lost[level] >= splits.best[level] - table.tiny:
        sets.bound[i] = table.price[i] + value
    else:
        sets.bound[i] = float("inf")
        sets.lost[level] = min(sets.lost[level], table.price[i] + value)
    if splits.found[level] >= 0:
        sets.target[level], sets.tree[level] = table.price[i] + splits.best[level], splits.found[level]


@entry
def search(
    table: Table,
    cores: Cores,
    pool: Pool,
    sets: Sets,
    splits: Splits,
    at: IntArray,
    stop: IntArray,
) -> int:
    """Search for the best tree of a set of groups whose first split is on a given support.

    Parameters
    ----------
    table, cores, pool, sets, splits
        The problem, what is known, and the state. The set stands in ``sets`` at the level of the support, with a
        target; the support in ``splits``.
    at
        (4,) mode, level, level of the first split, and whether a linear programme has parted the decided cells.
    stop
        (1,) or more: the first entry becomes 1 when the search is to stop.

    Returns
    -------
    Why it returned. With :data:`DONE`, ``splits.best`` has the least value without the price, or the budget, and
    ``splits.lost`` what was lost.
    """
    mode, level, top = at[0], at[1], at[2]
    why = -1
    while why < 0:
        if stop[0]:
            why = STOPPED
        elif mode == VALUE:
            mode = KNOWN if begin_set(table, cores, pool, sets, level) else CHOOSE
        elif mode == CHOOSE:
            mode = choose_support(table, sets, splits, level)
            if mode == VALUE:
                level += 1
        elif mode == KNOWN:
            level -= 1
            mode = use_value(table, pool, sets, splits, level)
        elif mode == SPLIT:
            mode = begin_support(table, pool, sets, splits, stop, level)
            if mode == SPLIT:
                why = STOPPED
        elif mode == NODE:
            mode = open_node(table, pool, splits, level)
        elif mode == SIDES:
            mode = examine_node(table, cores, pool, sets, splits, level, at)
            if mode == VALUE:
                level += 1
            elif mode == SIDES and level == top:
                why = BETTER
            elif mode == ANSWERED and at[3] < 0:
                why = SEPARATE
        elif mode == ANSWERED:
            is_adopted = use_separation(table, cores, pool, sets, splits, level, at[3])
            mode = CLOSED
            if is_adopted and level == top:
                why = BETTER
        elif mode == CLOSED:
            cell, _ = back(table, splits, level)
            mode = NODE if cell >= 0 else SEARCHED
        elif is_full(cores, splits.support[level]):
            why = FULL
        else:
            value = value_of_support(table, cores, sets, splits, level)
            if level == top:
                why = DONE
            else:
                record_support(table, sets, splits, level, value)
                mode = CHOOSE
    at[0], at[1] = mode, level
    return why


# ---------------------------------------------------------------------- several searches


@entry
def bound_first_splits(table: Table, cores: Cores, words: IntArray, target: float, bound: FloatArray) -> None:
    """Write bounds (I,) of a set by the support of the first split, of all levels, as far as a target."""
    for level in range(len(table.rest)):
        bound_supports(table, cores, level, words, target, bound)
