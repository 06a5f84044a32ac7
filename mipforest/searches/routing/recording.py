"""Write what the search of support vector machines proves as a certificate (``docs/certificates.md``), while it runs.

A dive logs what it does in an array of numbers: dual points, sides that screening has closed with the pair step that
closes them, branchings. :class:`Recorder` follows the log, rounds dual points to whole multiples of a power of two,
with their balance and capacities exact, and writes a line each. Off, the log has no room, and a dive logs nothing.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.searches import kernel
from mipforest.searches.routing.certificate_file import BITS, LEAST_UNIT, MOST, CertificateFile, balance
from mipforest.searches.routing.node_dual import (
    BETA,
    GROUP,
    HIGH,
    LEAST_CURVATURE,
    LOW,
    MISSING,
    NUMBER,
    UNLIMITED,
    Duals,
    Groups,
)

if TYPE_CHECKING:
    from mipforest.searches.routing.cells import ConvexNodes

#: What an entry of a log is.
LEAF, _DUAL, _CLOSED, _BRANCH = 1.0, 2.0, 3.0, 4.0

#: The first numbers of a log are where it ends, and the end from which on a dive stops, as a round might not fit.
FIRST = 2

#: The log of a dive that logs nothing.
NO_LOG = np.ones(1)

#: Variables of the duals that are not 0: where they are, and what they are.
WarmStart = tuple[NDArray[np.int32], FloatArray]

#: Variables and their amounts, by branch node.
_Entries = list[tuple[IntArray, FloatArray]]


@kernel
def log_dual(log: FloatArray, kind: float, duals: Duals) -> None:
    """Log the dual point of a dive: of a leaf, or from which sides are closed."""
    at = int(log[0])
    log[at] = kind
    at += 1
    for t in range(len(duals.size)):
        start, at = at, at + 1
        for q in range(duals.size[t]):
            if duals.of[BETA, t, q] != 0.0:
                log[at], log[at + 1] = duals.name[NUMBER, t, q], abs(duals.of[BETA, t, q])
                at += 2
        log[start] = (at - start - 1) // 2
    log[0] = at


@kernel
def log_closed(log: FloatArray, first: bool, groups: Groups, duals: Duals, g: int, t: int, side: int) -> None:
    """Log that group g cannot take a side of node t, with the pair steps there and in the child that prove it.

    Parameters
    ----------
    log, first
        The log, and whether the dual point is not in it yet.
    groups, duals
        The groups and the duals.
    g, t, side
        The group, the node at which it stands, and the side that is closed, -1 or 1.
    """
    if first:
        log_dual(log, _DUAL, duals)
    at = int(log[0])
    log[at], log[at + 1], log[at + 2], log[at + 3], log[at + 4] = _CLOSED, g, t, side, 0.0
    number = 2.0 * len(groups.weight) + g
    _log_step(log, at, groups, duals, t, g, number, 0.0 if side > 0 else -groups.epsilon, UNLIMITED, 0.0)
    rise, child = 0.0, 2 * t + 1 if side < 0 else 2 * t + 2
    for c in range(2):  # the better of the margins
        capacity = groups.C[child] * groups.weight[g, c]
        if capacity > 0.0:
            rise = _log_step(log, at, groups, duals, child, g, 2.0 * g + c, 2.0 * c - 1.0, capacity, rise)
    log[0] = at + 5 + 4 * int(log[at + 4])


@kernel
def _log_step(
    log: FloatArray,
    at: int,
    groups: Groups,
    duals: Duals,
    t: int,
    g: int,
    number: float,
    r: float,
    capacity: float,
    better: float,
) -> float:
    """Log the step of :func:`~mipforest.searches.routing.node_dual.rise_if_added`, if it raises the value by more.

    It takes the place of an earlier step at the same node. Returns the rise of the step that is logged.
    """
    K, square, name, of = groups.K, groups.square, duals.name, duals.of
    own, direction, bound = r - duals.score[t, g], -1.0 if r < 0.0 else 1.0, HIGH if r < 0.0 else LOW
    best = better
    for q in range(duals.size[t]):
        violation = direction * (own - of[MISSING, t, q])
        room = min(direction * (of[BETA, t, q] - of[bound, t, q]), capacity)
        if violation > 0.0 and room > 0.0:
            j = name[GROUP, t, q]
            curvature = max(square[g] + square[j] - 2.0 * K[g, j], LEAST_CURVATURE)
            step = min(violation / curvature, room)
            rise = step * (violation - 0.5 * step * curvature)
            if rise > best:
                if best == 0.0:
                    log[at + 4] += 1.0
                best, end = rise, at + 1 + 4 * int(log[at + 4])
                log[end], log[end + 1], log[end + 2], log[end + 3] = t, number, name[NUMBER, t, q], step
    return best


@kernel
def log_branch(log: FloatArray, g: int, side: int) -> None:
    """Log that a dive goes on with a side of group g and leaves the other open."""
    at = int(log[0])
    log[at], log[at + 1], log[at + 2] = _BRANCH, g, side
    log[0] = at + 3


@dataclass(eq=False)
class _Point:
    """A dual point in whole units, by branch node: variables, amounts, weights and value."""

    unit: int
    variables: list[IntArray] = field(default_factory=list)
    amounts: list[IntArray] = field(default_factory=list)
    w: list[FloatArray] = field(default_factory=list)
    value: float = 0.0

    def lists(self) -> list[list[int]]:
        """Return ``[variable, amount, ...]`` for every branch node."""
        return [
            np.column_stack(part).ravel().tolist() for part in zip(self.variables, self.amounts, strict=True)
        ]


class Recorder(CertificateFile):
    """Follows the dives of trees of support vector machines; parameters as for :class:`CertificateFile`."""

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        super().__init__(file, nodes, mipforest_certificate=1, **header)
        cap = np.empty((self._n_nodes, self._G, 2))
        for size in np.unique(nodes.weight).tolist():
            for t, penalty in enumerate(nodes.C.tolist()):
                above = Fraction(penalty * size) > Fraction(penalty) * Fraction(size)
                cap[t][nodes.weight == size] = (
                    math.nextafter(penalty * size, 0.0) if above else penalty * size
                )
        self._capacity = cap.reshape(self._n_nodes, 2 * self._G)

    def empty_log(self) -> FloatArray:
        """Return a log for one dive after the other."""
        of_a_round = 2 * self._n_nodes * (1 + 6 * self._G) + 13 * (self._G + 1) + 8
        log = np.empty(max(1 << 20, 4 * of_a_round))
        log[1] = len(log) - of_a_round
        return log

    def dived(self, node: int, reached: NDArray[np.int16], log: FloatArray, *, stopped: bool) -> list[int]:
        """Write what a dive has done; the first number of its log is where it ends."""
        routing, left_open = reached.astype(np.int64), list[int]()
        at, end = FIRST, int(log[0])
        while at < end:
            kind = log[at]
            if kind == _BRANCH:
                g, side, at = int(log[at + 1]), int(log[at + 2]), at + 3
                t = routing[g]
                left, right = next(self._names), next(self._names)
                self._write({"branch": node, "sample": g, "left": left, "right": right})
                node, other = (left, right) if side < 0 else (right, left)
                left_open.append(other)
                routing[g] = 2 * t + (1 if side < 0 else 2)
                continue
            at, entries = self._logged_dual(log, at + 1)
            if kind == LEAF:
                self._leaf(node, self._point(entries, routing))
                continue
            closed = []
            while at < end and log[at] == _CLOSED:
                g, t, side, steps = (int(number) for number in log[at + 1 : at + 5])
                closed.append((g, t, side, log[at + 5 : at + 5 + 4 * steps].reshape(-1, 4)))
                at += 5 + 4 * steps
            node = self._screen(node, entries, closed, routing)
        if stopped:
            left_open.append(node)
        return left_open

    def leaf(self, node: int, position: Any, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf; see :class:`CertificateFile`."""
        duals = position.duals
        where, values = (np.zeros(0, np.int32), np.zeros(0)) if duals is None else duals
        t, k = np.divmod(where.astype(np.int64), 3 * self._G)
        entries = [(k[t == node], np.abs(values[t == node])) for node in range(self._n_nodes)]
        point = self._point(entries, position.reached.astype(np.int64))
        if point.value < at_least:
            return False
        self._leaf(node, point)
        return True

    def _leaf(self, node: int, point: _Point) -> None:
        self.least = min(self.least, point.value)
        self._write({"leaf": node, "unit": point.unit, "dual": point.lists()})

    def _logged_dual(self, log: FloatArray, at: int) -> tuple[int, _Entries]:
        entries = []
        for _ in range(self._n_nodes):
            pairs = log[at + 1 : at + 1 + 2 * int(log[at])].reshape(-1, 2)
            entries.append((pairs[:, 0].astype(np.int64), pairs[:, 1]))
            at += 1 + pairs.size
        return at, entries

    def _screen(
        self, node: int, entries: _Entries, closed: list[tuple[int, int, int, FloatArray]], reached: IntArray
    ) -> int:
        """Write a dual point and the sides that are closed by steps from it; return the node that is left, if any."""
        most = max((float(steps[:, 3].max(initial=0.0)) for *_, steps in closed), default=0.0)
        point = self._point(entries, reached, most)
        known = [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in point.lists()]
        out: list[list[Any]] = []
        then, final = next(self._names), None
        for g, t, side, steps in closed:
            both = reached[g] != t  # its other side was closed just before
            reached[g] = 2 * t + (1 if side < 0 else 2)
            changes, value = [], point.value
            for step in steps.tolist():
                change, rise = self._step(point, known, step, reached)
                changes.append(change)
                value += rise
            self.least = min(self.least, value)
            if both:
                final = changes
            else:
                out.append([g, int(side > 0), changes])
                reached[g] = 2 * t + (2 if side < 0 else 1)
        self._write({"screen": node, "unit": point.unit, "dual": point.lists(), "out": out, "then": then})
        if final is not None:
            for t, flat in final:
                known[t].update(zip(flat[::2], flat[1::2], strict=True))
            dual = [[number for pair in sorted(node.items()) for number in pair] for node in known]
            self._write({"leaf": then, "unit": point.unit, "dual": dual})
        return then

    def _step(
        self, point: _Point, known: list[dict[int, int]], step: list[float], reached: IntArray
    ) -> tuple[list[Any], float]:
        """Return a pair step as changes of a dual point, and what it raises the bound by."""
        t, k, other = map(int, step[:3])
        (g, d, reward, most), (h, d_other, reward_other, most_other) = (
            self._variable(t, key, reached, point.unit) for key in (k, other)
        )
        had = known[t].get(other, 0)
        falls = d == d_other
        amount = min(int(math.ldexp(step[3], -point.unit)), most, had if falls else most_other - had)
        by, difference = math.ldexp(amount, point.unit), self._X[g] - self._X[h]
        rise = by * (reward + (-reward_other if falls else reward_other) - d * float(difference @ point.w[t]))
        rise -= 0.5 * by * by * float(difference @ difference)
        return [t, [k, amount, other, had - amount if falls else had + amount]], rise

    def _variable(self, t: int, k: int, reached: IntArray, unit: int) -> tuple[int, int, float, int]:
        """Return the group of a variable of node t, its direction, its reward, and its capacity in whole units."""
        if k < 2 * self._G:
            most = min(math.floor(math.ldexp(float(self._capacity[t, k]), -unit)), MOST)
            return k // 2, 2 * (k % 2) - 1, 1.0, most
        g = k - 2 * self._G
        number = int(reached[g]) + 1
        right = number >> (number.bit_length() - (t + 1).bit_length() - 1) & 1
        return g, 2 * right - 1, 0.0 if right else self._epsilon, MOST

    def _point(self, entries: _Entries, reached: IntArray, most: float = 0.0) -> _Point:
        """Round a dual point, with steps up to ``most``, to whole units; its balance and capacities are exact."""
        largest = max([most, *(float(a.max(initial=0.0)) for _, a in entries)])
        point = _Point(max(math.frexp(largest)[1] - BITS, LEAST_UNIT))
        for t, (ks, a) in enumerate(entries):
            margin = ks < 2 * self._G
            group = np.where(margin, ks // 2, ks - 2 * self._G)
            number = reached[group] + 1
            right = (number >> np.maximum(np.frexp(number)[1] - (t + 1).bit_length() - 1, 0)) % 2
            d = 2 * np.where(margin, ks % 2, right) - 1
            capacity = np.where(margin, self._capacity[t, np.where(margin, ks, 0)], np.inf)
            cap = np.minimum(np.floor(np.ldexp(capacity, -point.unit)), MOST).astype(np.int64)
            amounts = np.minimum(np.rint(np.ldexp(a, -point.unit)).astype(np.int64), cap)
            balance(amounts, d, cap)
            w = np.ldexp((amounts * d) @ self._X[group], point.unit)
            rewards = np.where(margin, 1.0, np.where(d < 0, self._epsilon, 0.0))
            point.value += math.ldexp(float(amounts @ rewards), point.unit) - 0.5 * float(w @ w)
            kept = amounts > 0
            point.variables.append(ks[kept])
            point.amounts.append(amounts[kept])
            point.w.append(w)
        return point
