r"""Compiled loops over conflicts: sides of few cells that no hyperplane of a support keeps at once.

A *conflict* is a set of pairs of a cell and a side, at most d + 1 of them in d dimensions (Helly), that no hyperplane
of a support keeps. It says nothing of other cells, nor of charges: it holds at every node of every search on that
support. At a node, a conflict whose cells are open, or on its sides, costs the least that one of its open cells has
left to pay for its other side. It takes this amount from all of its open cells, so that conflicts add up: they are a
feasible solution of the dual of the linear relaxation of a hitting set problem.

**Where conflicts come from.** The linear programme is: which hyperplane keeps the sides of the cells branched on, and
with the most room those that open cells prefer, as far as these have something left to pay? A dual simplex method in
d + 1 dimensions lowers a bound on that room. Once it is negative, the rows of the basis are a conflict. Their
multipliers are checked by themselves (Farkas), so that an error of the method makes no false conflict. Where room is
left, the hyperplane is a split to try. Weights of absolute sum 1 are rows, one for each choice of signs, which enter
when they are missed.

Sources: J. Chinneck, *Fast heuristics for the maximum feasible subsystem problem*, 2001; M. Pfetsch, *Branch-and-cut
for the maximum feasible subsystem problem*, 2008.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel

#: Most conflicts of a search; the one that came first makes place.
MOST_CONFLICTS = 400

#: Most pairs of conflicts that are kept for later searches.
MOST_KNOWN = 5_000_000

#: Most pivots of the simplex method, for each dimension.
PIVOTS = 12

#: What a row is missed by at least to enter the basis: less than the rounding that trees are allowed. Least pivot, and
#: least multiplier that counts.
ENTERS, PIVOT, COUNTS = 1e-10, 1e-9, 1e-12

#: By how much the room of a conflict is negative, per sum of multipliers: some thousand rounding errors of such sums.
SURE = 1e-12

#: In the place of a row: the absolute sum of the weights, with the signs that they had.
BY_SIZE = -1_000

#: What the simplex method returns: it has a conflict, a hyperplane, or nothing.
CONFLICT, PLANE, NOTHING = 1, 2, 0


class Conflicts(NamedTuple):
    """Conflicts of a search on one support, and room for the simplex method.

    Attributes
    ----------
    cell, side, size
        (Q, d + 1), (Q, d + 1), (Q,) pairs of each conflict.
    n
        (3,) conflicts, the place that was taken last, and how many were known before.
    worth
        (Q,) what each costs at the present node.
    left_to_pay
        (G,) what open cells have left to pay for their other side.
    inverse
        (d + 1, d + 1) inverse of the basis, rows by columns.
    basis, limit
        (d + 1,) rows in the basis: those of points, or a bound of a coordinate as a negative number; and their right
        sides.
    rows, row_limit, row_cell, missed
        (d, N), (N,), (N,), (N,) rows of points, their right sides and cells, and by how much they are missed.
    z, multiplier, entering, share
        (d + 1,) solution, multipliers, entering row and its combination of the basis.
    """

    cell: IntArray
    side: IntArray
    size: IntArray
    n: IntArray
    worth: FloatArray
    left_to_pay: FloatArray
    inverse: FloatArray
    basis: IntArray
    limit: FloatArray
    rows: FloatArray
    row_limit: FloatArray
    row_cell: IntArray
    missed: FloatArray
    z: FloatArray
    multiplier: FloatArray
    entering: FloatArray
    share: FloatArray


class Known(NamedTuple):
    """Conflicts of each support that searches have found, of groups that stand for their cells.

    Attributes
    ----------
    cell, side, size
        (I, Q, d + 1), (I, Q, d + 1), (I, Q) pairs of each conflict.
    n
        (I, 2) conflicts, and the place that was taken last.
    """

    cell: IntArray
    side: IntArray
    size: IntArray
    n: IntArray


def nothing_known(n_supports: int, k: int) -> Known:
    """Return room for conflicts of some supports of up to k features."""
    most = max(8, min(MOST_CONFLICTS // 2, MOST_KNOWN // max(1, n_supports * (k + 2))))
    return Known(
        cell=np.zeros((n_supports, most, k + 2), np.int32),
        side=np.zeros((n_supports, most, k + 2), np.int8),
        size=np.zeros((n_supports, most), np.int64),
        n=np.tile(np.array([0, -1]), (n_supports, 1)),
    )


def new_conflicts(k: int, n_groups: int, n_points: int) -> Conflicts:
    """Return room for conflicts of supports of up to k features."""
    D = k + 2
    return Conflicts(
        cell=np.zeros((MOST_CONFLICTS, D), np.int64),
        side=np.zeros((MOST_CONFLICTS, D), np.int64),
        size=np.zeros(MOST_CONFLICTS, np.int64),
        n=np.zeros(3, np.int64),
        worth=np.zeros(MOST_CONFLICTS),
        left_to_pay=np.zeros(n_groups),
        inverse=np.zeros((D, D)),
        basis=np.zeros(D, np.int64),
        limit=np.zeros(D),
        rows=np.zeros((D - 1, 2 * n_points)),
        row_limit=np.zeros(2 * n_points),
        row_cell=np.zeros(2 * n_points, np.int64),
        missed=np.zeros(2 * n_points),
        z=np.zeros(D),
        multiplier=np.zeros(D),
        entering=np.zeros(D),
        share=np.zeros(D),
    )


@kernel
def worth_of(conflicts: Conflicts, q: int, state: IntArray, wanted: IntArray) -> float:
    """Return what a conflict costs by what its open cells have left to pay; infinite where all its sides are taken."""
    worth: float = float("inf")
    for r in range(conflicts.size[q]):
        c, side = conflicts.cell[q, r], conflicts.side[q, r]
        if state[c] >= 0:
            if state[c] != side:
                return 0.0
        elif wanted[c] != side:
            return 0.0
        else:
            worth = min(worth, conflicts.left_to_pay[c])
    return worth


@kernel
def charge(conflicts: Conflicts, q: int, state: IntArray, worth: float, tiny: float) -> None:
    """Take what a conflict costs from what its open cells have left to pay."""
    conflicts.worth[q] = worth
    for r in range(conflicts.size[q]):
        c = conflicts.cell[q, r]
        if state[c] < 0:
            conflicts.left_to_pay[c] -= worth
            if conflicts.left_to_pay[c] < tiny:
                conflicts.left_to_pay[c] = 0.0


@kernel
def keep_only(conflicts: Conflicts, q: int) -> None:
    """Say that a conflict cannot be avoided at the present node, whatever the others cost."""
    for other in range(conflicts.n[0]):
        conflicts.worth[other] = 0.0
    conflicts.worth[q] = float("inf")


@kernel
def pack(conflicts: Conflicts, state: IntArray, wanted: IntArray, tiny: float) -> float:
    """Return what the known conflicts cost together, the last ones first; infinite where one cannot be avoided."""
    total = 0.0
    for q in range(conflicts.n[0]):
        conflicts.worth[q] = 0.0
    for q in range(conflicts.n[0] - 1, -1, -1):
        worth = worth_of(conflicts, q, state, wanted)
        if worth == float("inf"):
            keep_only(conflicts, q)
            return worth
        if worth > 0.0:
            charge(conflicts, q, state, worth, tiny)
            total += worth
    return total


@kernel
def write_rows(
    conflicts: Conflicts,
    X: FloatArray,
    first: IntArray,
    n: int,
    k: int,
    room_left: float,
    room_right: float,
    state: IntArray,
    wanted: IntArray,
    branched: IntArray,
    n_branched: int,
) -> tuple[int, int]:
    """Write rows of the points of open cells with something to pay, then of cells branched on; return both ends."""
    rows, limit, owner = conflicts.rows, conflicts.row_limit, conflicts.row_cell
    m, n_soft = 0, 0
    for r in range(n + n_branched):
        if r == n:
            n_soft = m
        c = branched[r - n] if r >= n else r
        if r < n and (state[c] >= 0 or conflicts.left_to_pay[c] <= 0.0):
            continue
        side = state[c] if r >= n else wanted[c]
        sign = -1.0 if side == 1 else 1.0
        for i in range(first[c], first[c + 1]):
            for j in range(k):
                rows[j, m] = sign * X[i, j]
            rows[k, m] = sign
            limit[m], owner[m] = room_right if side == 1 else room_left, c
            m += 1
    return (m if n_branched == 0 else n_soft), m


@kernel
def find_conflict(
    conflicts: Conflicts,
    X: FloatArray,
    first: IntArray,
    n: int,
    k: int,
    low: float,
    l1: bool,
    gap: float,
    tolerance: float,
    state: IntArray,
    wanted: IntArray,
    branched: IntArray,
    n_branched: int,
) -> int:
    """Look for a conflict among the sides of cells branched on and those that open cells with something to pay want.

    Parameters
    ----------
    conflicts
        Its room; a conflict is written behind the others, and a hyperplane to ``z``.
    X, first, n, k
        Points of the n cells, in k features.
    low, l1
        Least intercept, and whether the absolute sum of weights is at most 1, instead of each of them.
    gap, tolerance
        Least distance of scores, and what each may miss its side by.
    state, wanted
        Side of each cell, and the one that costs it less.
    branched, n_branched
        Cells branched on.

    Returns
    -------
    :data:`CONFLICT`, :data:`PLANE` or :data:`NOTHING`.
    """
    D = k + 2
    inverse, basis, limit, z = conflicts.inverse, conflicts.basis, conflicts.limit, conflicts.z
    y, row, share, missed = conflicts.multiplier, conflicts.entering, conflicts.share, conflicts.missed
    n_soft, m = write_rows(
        conflicts, X, first, n, k, tolerance - gap, tolerance, state, wanted, branched, n_branched
    )
    # The basis is a corner of the box, and the most room that there is.
    for i in range(D):
        for j in range(D):
            inverse[i, j] = 0.0
        inverse[i, i] = 1.0
        basis[i], limit[i], z[i], y[i] = -1 - i, 1.0, 1.0, 0.0
    y[D - 1] = 1.0
    for _ in range(PIVOTS * D):
        most, enters = ENTERS, m
        for i in range(m):
            missed[i] = -conflicts.row_limit[i]
        for j in range(k + 1):
            own, weight = conflicts.rows[j], z[j]
            for i in range(m):
                missed[i] += weight * own[i]
        for i in range(n_soft):
            if missed[i] + z[D - 1] > most:
                most, enters = missed[i] + z[D - 1], i
        for i in range(n_soft, m):
            if missed[i] > most:
                most, enters = missed[i], i
        # A bound of a coordinate: -1 - j for the upper one, -1 - D - j for the lower one.
        for j in range(k + 1):
            least = low if j == k else -1.0
            if z[j] - 1.0 > most:
                most, enters = z[j] - 1.0, -1 - j
            elif least - z[j] > most:
                most, enters = least - z[j], -1 - D - j
        size = 0.0
        for j in range(k if l1 else 0):
            size += abs(z[j])
        if size - 1.0 > most:
            enters = BY_SIZE
        if enters == m:
            return PLANE
        right_side = 1.0
        if enters >= 0:
            for j in range(k + 1):
                row[j] = conflicts.rows[j, enters]
            row[k + 1] = 1.0 if enters < n_soft else 0.0
            right_side = conflicts.row_limit[enters]
        elif enters == BY_SIZE:
            for j in range(D):
                row[j] = 0.0 if j >= k or z[j] == 0.0 else 1.0 if z[j] > 0.0 else -1.0
        else:
            for j in range(D):
                row[j] = 0.0
            at = -1 - enters
            row[at % D] = 1.0 if at < D else -1.0
            if at >= D:
                right_side = -(low if at - D == k else -1.0)
        # The entering row is a combination of the basis; the multiplier that falls to 0 first leaves.
        leaves, ratio = -1, float("inf")
        for i in range(D):
            total = 0.0
            for j in range(D):
                total += inverse[j, i] * row[j]
            share[i] = total
            if total > PIVOT and max(y[i], 0.0) / total < ratio:
                leaves, ratio = i, max(y[i], 0.0) / total
        if leaves < 0:
            # The rows of cells branched on contradict each other; one of the basis is not among these.
            spare = 0
            for i in range(D):
                y[i] = max(-share[i], 0.0)
                spare = i if y[i] < y[spare] else spare
            basis[spare], y[spare] = enters, 1.0
            return CONFLICT if keep_conflict(conflicts, k, low, l1, state, wanted) else NOTHING
        for i in range(D):
            y[i] -= ratio * share[i]
        y[leaves] = ratio
        pivot = share[leaves]
        for j in range(D):
            column = inverse[j, leaves] / pivot
            for i in range(D):
                inverse[j, i] -= column * share[i]
            inverse[j, leaves] = column
        basis[leaves], limit[leaves] = enters, right_side
        value = 0.0
        for i in range(D):
            value += y[i] * limit[i]
        if value < -ENTERS and keep_conflict(conflicts, k, low, l1, state, wanted):
            return CONFLICT
        for j in range(D):
            total = 0.0
            for i in range(D):
                total += inverse[j, i] * limit[i]
            z[j] = total
    return NOTHING


@kernel
def keep_conflict(
    conflicts: Conflicts, k: int, low: float, l1: bool, state: IntArray, wanted: IntArray
) -> bool:
    """Keep the conflict of the rows in the basis, if their multipliers prove it; return whether they do."""
    D, y, total, basis = k + 2, conflicts.multiplier, conflicts.share, conflicts.basis
    for j in range(k + 1):
        total[j] = 0.0
    value, size = 0.0, 0.0
    for i in range(D):
        if basis[i] >= 0 and y[i] > COUNTS:
            for j in range(k + 1):
                total[j] += y[i] * conflicts.rows[j, basis[i]]
            value += y[i] * conflicts.row_limit[basis[i]]
            size += y[i]
    # The sum of the rows is at most value; over all hyperplanes it is at least the sum of the least terms.
    largest, least = 0.0, 0.0
    for j in range(k):
        largest = max(largest, abs(total[j]))
        least -= abs(total[j])
    value -= (-largest if l1 else least) + min(total[k], low * total[k])
    if value >= -SURE * (k + 2) * size:
        return False
    q, n = conflicts.n[1], len(conflicts.size)
    for _ in range(n):
        q = q + 1 if q + 1 < n else 0
        if q >= conflicts.n[0] or conflicts.worth[q] == 0.0:
            break
    else:
        return False
    conflicts.n[0], conflicts.n[1] = max(conflicts.n[0], q + 1), q
    m = 0
    for i in range(D):
        if basis[i] < 0 or y[i] <= COUNTS:
            continue
        c, is_new = conflicts.row_cell[basis[i]], True
        for r in range(m):
            is_new &= conflicts.cell[q, r] != c
        if is_new:
            conflicts.cell[q, m], conflicts.side[q, m] = c, state[c] if state[c] >= 0 else wanted[c]
            m += 1
    conflicts.size[q], conflicts.worth[q] = m, 0.0
    return True


@kernel
def recall(known: Known, i: int, number: IntArray, conflicts: Conflicts) -> None:
    """Begin a search on a support with the known conflicts whose cells are all there; ``number`` (G,) is theirs."""
    n = 0
    for q in range(known.n[i, 0]):
        size = known.size[i, q]
        for r in range(size):
            c = number[known.cell[i, q, r]]
            if c < 0:
                break
            conflicts.cell[n, r], conflicts.side[n, r] = c, known.side[i, q, r]
        else:
            conflicts.size[n] = size
            n += 1
    conflicts.n[0], conflicts.n[1], conflicts.n[2] = n, n - 1, n


@kernel
def remember(known: Known, i: int, leader: IntArray, conflicts: Conflicts) -> None:
    """Keep the conflicts that a search on a support has found; ``leader`` has the group that stands for each cell."""
    for q in range(min(conflicts.n[2], conflicts.n[0]), conflicts.n[0]):
        at = known.n[i, 1] + 1 if known.n[i, 1] + 1 < known.size.shape[1] else 0
        known.n[i, 0], known.n[i, 1] = max(known.n[i, 0], at + 1), at
        known.size[i, at] = conflicts.size[q]
        for r in range(conflicts.size[q]):
            known.cell[i, at, r], known.side[i, at, r] = leader[conflicts.cell[q, r]], conflicts.side[q, r]
