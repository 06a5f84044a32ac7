"""Write certificates (``docs/certificates.md``) while a search runs.

:class:`NodesWriter` follows the plunges of any convex nodes, which log their decisions. A plunge of support vector
machines logs what it does in an array of numbers: dual points, sides that are closed with the pair steps that close
them, branchings. :class:`SvmWriter` follows that log. Both round dual points to whole multiples of a power of two, with
their balance and capacities exact, and write a line each.
"""

from __future__ import annotations

import gzip
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mipforest.arrays import FloatArray, IntArray
from mipforest.atomic import atomic_write
from mipforest.certificates import digest_of_samples
from mipforest.searches.routing.plunge import LOG_START, ConvexNodes
from mipforest.searches.routing.svm_dual import BRANCH, CLOSED, LEAF

#: Bits of the largest entry of a dual point; the whole numbers of a certificate have at most 53.
BITS = 44

#: Most units of a variable, and the least exponent of a unit that a certificate may have.
MAX_UNITS, LEAST_UNIT = 1 << 52, -199


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


class Proof(Protocol):
    """What proves a subproblem: its path, features by which it was split off with whether they are in, and a point."""

    path: tuple[tuple[int, bool], ...]
    point: DualPoint | None


#: What a plunge of convex nodes has done, for a certificate: a group that it sent to a side (group, side), or a feature
#: that it took or left (node, feature, whether it took it), the other half left open; or, at a leaf, the subproblems of
#: all nodes.
Decision: TypeAlias = "tuple[int, int] | tuple[int, int, bool] | list[Sequence[Proof]]"


class CertificateWriter(ABC):
    """Writes the lines of a certificate.

    Parameters
    ----------
    file
        Where to write.
    nodes
        The problem.
    header
        What else the first line says: the format, names of model and data, parameters, version.

    Attributes
    ----------
    least
        The least bound that a leaf proves so far.
    """

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        self._file, self._X, self._epsilon = file, nodes.X, nodes.epsilon
        self._G, self._n_nodes = len(nodes.X), len(nodes.C)
        self._names, self._capacity = count(1), _capacities(nodes)
        self.least = math.inf
        shape = {"depth": self._n_nodes.bit_length(), "samples": self._G, "features": nodes.X.shape[1]}
        digest = {"sha256": digest_of_samples(nodes.X, nodes.weight)}
        self._write({**header, **shape, **digest, "epsilon": nodes.epsilon, "C": nodes.C.tolist()})
        for x, n in zip(nodes.X.tolist(), nodes.weight.tolist(), strict=True):
            self._write({"x": x, "n": n})

    @abstractmethod
    def record(self, node: int, reached: Any, log: Any, *, stopped: bool) -> list[int]:
        """Write what a plunge has done.

        Parameters
        ----------
        node, reached
            The open node that it started from, and its partial assignment (G,).
        log
            What it has logged.
        stopped
            Whether it left its last node open.

        Returns
        -------
        The nodes that it left open, in the order in which it did.
        """

    @abstractmethod
    def leaf(self, node: int, open_node: Any, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf, if what its open_node keeps proves a bound; return whether it does."""

    def claim(self, objective: float, bound: float, w: FloatArray, b: FloatArray) -> None:
        """Write the last line: a tree, its value, and the bound that the leaves prove."""
        self._write({"claim": {"objective": objective, "bound": bound, "w": w.tolist(), "b": b.tolist()}})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def _capacities(nodes: ConvexNodes) -> FloatArray:
    """Return (|B|, 2 G K) capacities of the margins, as :class:`DualPoint` counts them; none is above the exact one."""
    capacity = np.empty((len(nodes.C), len(nodes.X), 2, len(nodes.kinks)))
    for size in np.unique(nodes.weight).tolist():
        for t, penalty in enumerate(nodes.C.tolist()):
            for k, change in enumerate(nodes.kinks[:, 1].tolist()):
                exact = Fraction(penalty) * Fraction(size) * Fraction(change)
                near = float(exact)
                rounded = math.nextafter(near, 0.0) if Fraction(near) > exact else near
                capacity[t, ..., k][nodes.weight == size] = rounded
    return capacity.reshape(len(nodes.C), -1)


class NodesWriter(CertificateWriter):
    """Follows the plunges of any convex nodes; parameters as for :class:`CertificateWriter`.

    A dual point gets a name and a line when a leaf rests on it for the first time.
    """

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        self._nodes, hard = nodes, nodes.budget is None or not np.isfinite(nodes.alpha)
        super().__init__(
            file,
            nodes,
            mipforest_certificate=2,
            kinks=nodes.kinks.tolist(),
            norm="l1" if nodes.l1 else "l2",
            free=None if nodes.budget is None else nodes.budget.tolist(),
            alpha=None if hard else nodes.alpha,
            **header,
        )
        self._reward = np.tile(nodes.kinks[:, 0], 2 * self._G)

    def record(self, node: int, reached: Any, log: list[Decision], *, stopped: bool) -> list[int]:  # noqa: ARG002
        """Write what a plunge has done; see :class:`CertificateWriter`."""
        left_open = list[int]()
        for decision in log:
            if isinstance(decision, list):
                self._leaf(node, *self._proof(decision))
                continue
            first, second = next(self._names), next(self._names)
            if len(decision) == 2:
                g, side = decision
                self._write({"branch": node, "sample": g, "left": first, "right": second})
                taken = side < 0
            else:
                t, j, taken = decision
                self._write({"branch": node, "at": t, "feature": j, "in": first, "out": second})
            node, other = (first, second) if taken else (second, first)
            left_open.append(other)
        if stopped:
            left_open.append(node)
        return left_open

    def leaf(self, node: int, open_node: Any, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf; see :class:`CertificateWriter`."""
        value, trees = self._proof(
            [[sub for _, _, sub in subproblems] for subproblems in open_node.subproblems]
        )
        if value < at_least:
            return False
        self._leaf(node, value, trees)
        return True

    def _leaf(self, node: int, value: float, trees: list[Any]) -> None:
        self.least = min(self.least, value)
        self._write({"leaf": node, "nodes": trees})

    def _proof(self, nodes: Sequence[Sequence[Proof]]) -> tuple[float, list[Any]]:
        """Return what the subproblems of all nodes prove, and their trees of choices."""
        value, trees = 0.0, []
        for t, subproblems in enumerate(nodes):
            value += min(self._value(t, sub) for sub in subproblems)
            trees.append(self._tree(subproblems, _common_prefix([sub.path for sub in subproblems])))
        return value, trees

    def _tree(self, subproblems: Sequence[Proof], depth: int) -> Any:
        """Return a tree of choices, below those that subproblems have in common."""
        if len(subproblems) == 1:
            point = subproblems[0].point
            return None if point is None else self._write_point(point)[0]
        j = subproblems[0].path[depth][0]
        inside = [sub for sub in subproblems if sub.path[depth][1]]
        outside = [sub for sub in subproblems if not sub.path[depth][1]]
        return [j, self._tree(inside, depth + 1), self._tree(outside, depth + 1)]

    def _value(self, t: int, sub: Proof) -> float:
        """Return what the dual point of a subproblem proves of all its choices."""
        nodes, inside, others = self._nodes, np.arange(self._X.shape[1]), np.zeros(0, np.int64)
        cost, spare, alpha = 0.0, 0, nodes.alpha
        if nodes.budget is not None:
            inside = np.array([j for j, is_in in sub.path if is_in], np.int64)
            spare = int(nodes.budget[t]) - len(inside)
            cost = alpha * max(0, -spare) if np.isfinite(alpha) else 0.0
            if spare > 0 or np.isfinite(alpha):
                others = np.setdiff1d(np.arange(self._X.shape[1]), [j for j, _ in sub.path])
        if sub.point is None:
            return cost
        _, reward, u = self._write_point(sub.point)
        if nodes.l1:
            used = np.abs(u[np.concatenate([inside, others])])
            return cost + max(reward, 0.0) / max(1.0, float(used.max(initial=0.0)))
        charge = 0.5 * u * u
        of_others = np.sort(charge[others])[::-1]
        free, further = of_others[: max(0, spare)], of_others[max(0, spare) :]
        dear = np.maximum(further - alpha, 0.0) if np.isfinite(alpha) else np.zeros(0)
        return float(cost + reward - charge[inside].sum() - free.sum() - dear.sum())

    def _write_point(self, point: DualPoint) -> tuple[int, float, FloatArray]:
        """Return a point's name, what it earns, and its sum of samples; write its line where it has none yet."""
        if point.written is not None:
            return point.written
        ks, margins = point.variables, 2 * self._G * len(self._nodes.kinks)
        unit = _unit_for(float(point.amounts.max(initial=0.0)))
        margin, left = ks < margins, (ks >= margins) & (ks < margins + self._G)
        group = np.where(margin, ks // (margins // self._G), (ks - margins) % self._G)
        d = np.where(margin, 2 * (ks // len(self._nodes.kinks) % 2) - 1, np.where(left, -1, 1))
        at = np.where(margin, ks, 0)
        capacity = np.where(margin, self._capacity[point.t, at], np.inf)
        amounts = _in_units(point.amounts, d, capacity, unit)
        rewards = np.where(margin, self._reward[at], np.where(left, self._epsilon, 0.0))
        earned = math.ldexp(float(amounts @ rewards), unit)
        u = np.ldexp((amounts * d) @ self._X[group], unit)
        kept = amounts > 0
        dual = np.column_stack([ks[kept], amounts[kept]]).ravel().tolist()
        name = next(self._names)
        self._write({"point": name, "at": point.t, "unit": unit, "dual": dual})
        point.written = name, earned, u
        return point.written


def _common_prefix(paths: Sequence[tuple[tuple[int, bool], ...]]) -> int:
    """Return how many decisions paths have in common, from their beginning."""
    n = 0
    while all(len(path) > n and path[n] == paths[0][n] for path in paths):
        n += 1
    return n


def _unit_for(largest: float) -> int:
    """Return the exponent of the unit of a dual point with a largest entry."""
    return max(math.frexp(largest)[1] - BITS, LEAST_UNIT)


def _in_units(a: FloatArray, d: IntArray, capacity: FloatArray, unit: int) -> IntArray:
    """Return variables (m,) as whole units within their capacities, that sum to 0 with their directions."""
    limit = np.minimum(np.floor(np.ldexp(capacity, -unit)), MAX_UNITS).astype(np.int64)
    amounts: IntArray = np.minimum(np.rint(np.ldexp(a, -unit)).astype(np.int64), limit)
    balance(amounts, d, limit)
    return amounts


def balance(amounts: IntArray, d: IntArray, limit: IntArray) -> None:
    """Change amounts, in place, so that they sum to 0 with their directions: few units, of few variables."""
    surplus = int(amounts @ d)
    if surplus == 0:
        return
    free = np.minimum(amounts, limit - amounts)
    q = int(np.argmax(free))
    if free[q] >= abs(surplus):
        amounts[q] -= surplus * int(d[q])
        return
    sign = 1 if surplus > 0 else -1
    for q in np.argsort(-np.where(d == sign, amounts, 0)).tolist():
        taken = min(abs(surplus), int(amounts[q]))
        amounts[q] -= taken
        surplus -= sign * taken
        if surplus == 0:
            return


#: Variables and their amounts, by branch node.
_Entries = list[tuple[IntArray, FloatArray]]


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


class SvmWriter(CertificateWriter):
    """Follows the plunges of trees of support vector machines; parameters as for :class:`CertificateWriter`."""

    def __init__(self, file: gzip.GzipFile, nodes: ConvexNodes, **header: Any) -> None:
        super().__init__(file, nodes, mipforest_certificate=1, **header)

    def record(self, node: int, reached: NDArray[np.int16], log: FloatArray, *, stopped: bool) -> list[int]:
        """Write what a plunge has done; the first number of its log is where it ends."""
        routing, left_open = reached.astype(np.int64), list[int]()
        at, end = LOG_START, int(log[0])
        while at < end:
            kind = log[at]
            if kind == BRANCH:
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
            while at < end and log[at] == CLOSED:
                g, t, side, steps = (int(number) for number in log[at + 1 : at + 5])
                closed.append((g, t, side, log[at + 5 : at + 5 + 4 * steps].reshape(-1, 4)))
                at += 5 + 4 * steps
            node = self._screen(node, entries, closed, routing)
        if stopped:
            left_open.append(node)
        return left_open

    def leaf(self, node: int, open_node: Any, at_least: float = -math.inf) -> bool:
        """Write an open node as a leaf; see :class:`CertificateWriter`."""
        warm = open_node.warm
        where, values = (np.zeros(0, np.int32), np.zeros(0)) if warm is None else warm
        t, k = np.divmod(where.astype(np.int64), 3 * self._G)
        entries = [(k[t == node], np.abs(values[t == node])) for node in range(self._n_nodes)]
        point = self._point(entries, open_node.reached.astype(np.int64))
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
        limit = max((float(steps[:, 3].max(initial=0.0)) for *_, steps in closed), default=0.0)
        point = self._point(entries, reached, limit)
        known = [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in point.lists()]
        out: list[list[Any]] = []
        then, final = next(self._names), None
        for g, t, side, steps in closed:
            both = reached[g] != t  # its other side was closed just before
            reached[g] = 2 * t + (1 if side < 0 else 2)
            changes, value = [], point.value
            for step in steps.tolist():
                change, gain = self._step(point, known, step, reached)
                changes.append(change)
                value += gain
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
        (g, d, reward, limit), (h, d_other, reward_other, limit_other) = (
            self._variable(t, key, reached, point.unit) for key in (k, other)
        )
        had = known[t].get(other, 0)
        falls = d == d_other
        amount = min(int(math.ldexp(step[3], -point.unit)), limit, had if falls else limit_other - had)
        by, difference = math.ldexp(amount, point.unit), self._X[g] - self._X[h]
        gain = by * (reward + (-reward_other if falls else reward_other) - d * float(difference @ point.w[t]))
        gain -= 0.5 * by * by * float(difference @ difference)
        return [t, [k, amount, other, had - amount if falls else had + amount]], gain

    def _variable(self, t: int, k: int, reached: IntArray, unit: int) -> tuple[int, int, float, int]:
        """Return the group of a variable of node t, its direction, its reward, and its capacity in whole units."""
        if k < 2 * self._G:
            limit = min(math.floor(math.ldexp(float(self._capacity[t, k]), -unit)), MAX_UNITS)
            return k // 2, 2 * (k % 2) - 1, 1.0, limit
        g = k - 2 * self._G
        number = int(reached[g]) + 1
        right = number >> (number.bit_length() - (t + 1).bit_length() - 1) & 1
        return g, 2 * right - 1, 0.0 if right else self._epsilon, MAX_UNITS

    def _point(self, entries: _Entries, reached: IntArray, limit: float = 0.0) -> _Point:
        """Round a dual point, with steps up to ``limit``, to whole units; its balance and capacities are exact."""
        largest = max([limit, *(float(a.max(initial=0.0)) for _, a in entries)])
        point = _Point(_unit_for(largest))
        for t, (ks, a) in enumerate(entries):
            margin = ks < 2 * self._G
            group = np.where(margin, ks // 2, ks - 2 * self._G)
            number = reached[group] + 1
            right = (number >> np.maximum(np.frexp(number)[1] - (t + 1).bit_length() - 1, 0)) % 2
            d = 2 * np.where(margin, ks % 2, right) - 1
            capacity = np.where(margin, self._capacity[t, np.where(margin, ks, 0)], np.inf)
            amounts = _in_units(a, d, capacity, point.unit)
            w = np.ldexp((amounts * d) @ self._X[group], point.unit)
            rewards = np.where(margin, 1.0, np.where(d < 0, self._epsilon, 0.0))
            point.value += math.ldexp(float(amounts @ rewards), point.unit) - 0.5 * float(w @ w)
            kept = amounts > 0
            point.variables.append(ks[kept])
            point.amounts.append(amounts[kept])
            point.w.append(w)
        return point


_Written = TypeVar("_Written", bound=CertificateWriter)


@contextmanager
def writing(path: Path | None, write: Callable[[gzip.GzipFile], _Written]) -> Iterator[_Written | None]:
    """Write a certificate, whole or not at all, and yield what ``write`` makes of its file; without a path, none."""
    if path is None:
        yield None
        return
    with atomic_write(path) as raw, gzip.GzipFile("", "wb", 4, raw, mtime=0) as file:
        yield write(file)
