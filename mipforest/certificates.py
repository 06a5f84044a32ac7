r"""Check certificates of optimal trees, with nothing but numpy and whole numbers.

A certificate (``docs/certificates.md``: format, statement and proof) is a tree of branchings over the routings of
samples. Each leaf carries a dual point, which proves a lower bound on every tree that routes samples as the leaf says.
The check shares no code with the search that wrote it: it follows the branchings, so that no routing is left out; it
holds every dual point to the node problems of its leaf; and it computes every bound anew. Entries of dual points are
multiples of a power of two, so whole numbers decide whether a point is feasible. Only squared norms are rounded, and
outward; with ``exact`` not even these.
"""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import MipforestError
from mipforest.unpacking import UnpackingError, unpacked_blocks

FORMAT = 1

#: Deepest tree, longest line in bytes, and memory in bytes for the routings of open nodes.
MOST_DEPTH, MOST_LINE, MOST_OPEN = 10, 1 << 26, 1 << 32

#: Whole numbers in a certificate are below this: as doubles they are exact.
MOST_UNITS = 1 << 53

#: A dual point at one node: variables, and how many units they are. The terms of its value: sums of margins and of left
#: sides in units, and the squared norm of the weights.
_Units = dict[int, int]
_Terms = tuple[int, int, Fraction]

#: Most that a sample of the claimed tree may miss its side by: what the package accepts of any solver.
SIDE_TOLERANCE = Fraction(1, 10**6)

#: Share by which the claimed objective, a sum of doubles, may miss the tree's exact value.
ROUNDING = Fraction(1, 10**9)


class CertificateError(MipforestError, ValueError):
    """A certificate that proves nothing: the message names the line, and the leaf where there is one."""

    exit_code = 3


@dataclass(frozen=True, eq=False)
class Certified:
    """What a certificate proves.

    Attributes
    ----------
    data
        Name of the data, as the file has it.
    X, weight
        (G, p) different samples, scaled, and (G, 2) how many of them are of class -1 and +1.
    depth, epsilon
        Levels of branch nodes, and the gap that stands for the strict inequality.
    objective
        Value of the claimed tree by the definition, rounded up.
    bound
        Proven lower bound on the value of every tree that leaves the gap free above its last level.
    branchings, leaves
        How often a sample was sent both ways, and how many dual points close what came of it.
    """

    data: str
    X: FloatArray
    weight: FloatArray
    depth: int
    epsilon: float
    objective: float
    bound: float
    branchings: int
    leaves: int

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return max(0.0, self.objective - self.bound) / self.objective


def certify(path: str | os.PathLike[str], *, exact: bool = False) -> Certified:
    """Check a certificate.

    Parameters
    ----------
    path
        File written by ``mipforest solve --certificate``.
    exact
        Compute norms in whole numbers too, instead of doubles rounded outward.

    Raises
    ------
    CertificateError
        If it does not prove what it claims: saying where.
    UnpackingError
        If it is no gzip file, cut off, or grows suspiciously.
    OSError
        As the system reports it.
    """
    number, check = 0, _Check(exact)
    try:
        for number, text in enumerate(_lines(path), 1):
            check.take(text, number)
        number = 0
        return check.end()
    except (CertificateError, UnpackingError) as fault:
        raise fault.located(f"{os.fspath(path)}{f', line {number}' if number else ''}") from None


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    rest = b""
    for block in unpacked_blocks(path):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
        if len(rest) > MOST_LINE:
            break
    if rest:
        yield rest


class _Check:
    """How far a check has come: the routings of open nodes, (G,) by node, and the weakest leaf so far."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.header, self.claim = dict[str, Any](), dict[str, Any]()
        self.samples: list[list[float]] = []
        self.open: dict[int, IntArray] = {}
        self.weakest = Fraction(0), "", 0
        self.branchings = self.leaves = 0
        self.capacities: dict[int, IntArray] = {}

    def take(self, text: bytes, number: int) -> None:
        """Take the next line."""
        line = _object(text)
        _require(not self.claim, "a line after the claim, which is the last one")
        if not self.header:
            self._begin(line)
        elif len(self.samples) < self.groups:
            self._sample(line)
        elif "branch" in line:
            self._branch(line)
        elif "leaf" in line:
            node, reached = self._opened(line["leaf"])
            unit, _, terms = self._dual(line, reached, f"leaf {node}")
            self._close(unit, terms, f"leaf {node}", number)
        elif "screen" in line:
            self._screen(line, number)
        else:
            _require(isinstance(line.get("claim"), dict), "neither branch, leaf, screen nor claim")
            self.claim = line["claim"]

    def _begin(self, line: dict[str, Any]) -> None:
        _require(line.get("mipforest_certificate") == FORMAT, f"no certificate of format {FORMAT}")
        self.header = line
        self.depth = _whole(line.get("depth"), "depth", 1, MOST_DEPTH + 1)
        self.groups, self.p = (_whole(line.get(key), key, 1, 1 << 31) for key in ("samples", "features"))
        self.n_nodes, self.n_upper = 2**self.depth - 1, 2 ** (self.depth - 1) - 1
        self.epsilon = Fraction(_number(line.get("epsilon"), "epsilon"))
        self.C = _numbers(line.get("C"), "C", self.n_nodes)
        _require(self.epsilon >= 0 and min(self.C) > 0, "epsilon is negative, or a C is not positive")
        # What a sample that has reached node r (column) has to do with node t (row).
        self.passes = np.array([[_side(r, t) for r in range(self.n_nodes)] for t in range(self.n_nodes)])

    def _sample(self, line: dict[str, Any]) -> None:
        counts = _numbers(line.get("n"), "n", 2)
        _require(min(counts) >= 0, "n is negative; it says what the samples weigh")
        self.samples.append(list(map(float, _numbers(line.get("x"), "x", self.p) + counts)))
        if len(self.samples) == self.groups:
            self.X, self.weight = np.hsplit(np.array(self.samples), [self.p])
            self.norms = _Exact(self.X) if self.exact else _Outward(self.X)
            self.open[0] = np.zeros(self.groups, np.uint8 if self.n_nodes < 256 else np.uint16)

    def _opened(self, node: object) -> tuple[int, IntArray]:
        known = _whole(node, "the node", 0, MOST_UNITS)
        _require(known in self.open, f"node {known} is not open: it was closed before, or nothing led to it")
        return known, self.open.pop(known)

    def _add(self, node: object, reached: IntArray) -> None:
        known = _whole(node, "the node", 0, MOST_UNITS)
        _require(known not in self.open, f"node {known} is open already")
        self.open[known] = reached
        _require(len(self.open) * reached.nbytes <= MOST_OPEN, f"open nodes take more than {MOST_OPEN} bytes")

    def _both_ways(self, g: int, reached: IntArray) -> tuple[int, IntArray, IntArray]:
        """Return the node at which a sample stands, and the routings where it has gone left and right there."""
        t, left, right = int(reached[g]), reached.copy(), reached.copy()
        _require(t < self.n_upper, f"sample {g} stands at node {t}, below which nothing is decided")
        left[g], right[g] = 2 * t + 1, 2 * t + 2
        self.branchings += 1
        return t, left, right

    def _branch(self, line: dict[str, Any]) -> None:
        _, reached = self._opened(line["branch"])
        _, left, right = self._both_ways(_whole(line.get("sample"), "sample", 0, self.groups), reached)
        self._add(line.get("left"), left)
        self._add(line.get("right"), right)

    def _screen(self, line: dict[str, Any], number: int) -> None:
        """Close sides of samples, one after the other, by a dual point with a few changes; the other sides remain."""
        node, reached = self._opened(line["screen"])
        unit, points, terms = self._dual(line, reached, f"node {node}")
        for entry in _list(line.get("out"), "out"):
            sample, side, changes = _list(entry, "an entry of out", 3)
            g = _whole(sample, "sample", 0, self.groups)
            goes_left = _whole(side, "side", 0, 2) == 0
            t, left, right = self._both_ways(g, reached)
            closed, reached = (left, right) if goes_left else (right, left)
            name = f"leaf 'sample {g} to the {'left' if goes_left else 'right'} at {t}' of node {node}"
            changed = list(terms)
            for change in _list(changes, "changes"):
                at = _whole(_list(change, "a change", 2)[0], "the branch node", 0, self.n_nodes)
                changed[at] = self._terms(at, {**points[at], **self._units(change[1])}, unit, closed, name)
            self._close(unit, changed, name, number)
        self._add(line.get("then"), reached)

    def _dual(
        self, line: dict[str, Any], reached: IntArray, name: str
    ) -> tuple[int, list[_Units], list[_Terms]]:
        """Return the dual point of a line: the exponent of its unit, and its variables and terms by branch node."""
        unit = _whole(line.get("unit"), "unit", -200, 200)
        points = [self._units(flat) for flat in _list(line.get("dual"), "dual", self.n_nodes)]
        return unit, points, [self._terms(t, point, unit, reached, name) for t, point in enumerate(points)]

    def _units(self, flat: object) -> _Units:
        """Return the variables of a node and their amounts from ``[variable, amount, ...]``."""
        entries = _list(flat, "a list of variables and units")
        whole = all(type(entry) is int and 0 <= entry < MOST_UNITS for entry in entries)
        _require(whole and len(entries) % 2 == 0, "variables and units are no pairs of whole numbers")
        _require(
            max(entries[::2], default=0) < 3 * self.groups, f"there are {3 * self.groups} variables only"
        )
        return dict(zip(entries[::2], entries[1::2], strict=True))

    def _terms(self, t: int, point: _Units, unit: int, reached: IntArray, name: str) -> _Terms:
        """Refuse a dual point of node t that is not feasible for a routing; return what its value consists of."""
        ks, amounts = (np.fromiter(part, np.int64, len(point)) for part in (point.keys(), point.values()))
        margin = ks < 2 * self.groups
        group = np.where(margin, ks // 2, ks - 2 * self.groups)
        passing = self.passes[t, reached[group]]
        direction = np.where(margin, (2 * (ks % 2) - 1) * (passing != 0), np.where(passing == 2, 0, passing))
        most = np.where(margin, self._capacity(unit)[t, np.where(margin, ks, 0)], MOST_UNITS)
        for q in np.flatnonzero((amounts > most) | (direction == 0))[:1]:
            reason = f"its capacity is {most[q]}" if direction[q] else "the routing has no such variable"
            raise CertificateError(f"{name}: variable {ks[q]} of node {t} is {amounts[q]}, and {reason}")
        balance = sum((amounts * direction).tolist())
        _require(balance == 0, f"{name}: the dual point of node {t} is out of balance by {balance} units")
        lefts = ~margin & (direction < 0)
        square = self.norms.squared(group, amounts * direction)
        return sum(amounts[margin].tolist()), sum(amounts[lefts].tolist()), square

    def _capacity(self, unit: int) -> IntArray:
        """Return (|B|, 2 G) the capacities of margins, in units of ``2**unit``, rounded down."""
        if unit not in self.capacities:
            sizes, at = np.unique(self.weight, return_inverse=True)
            table = [[c * Fraction(size) / Fraction(2) ** unit for size in sizes.tolist()] for c in self.C]
            whole = np.array([[min(math.floor(entry), MOST_UNITS) for entry in row] for row in table])
            self.capacities[unit] = whole[:, at.ravel()]
        return self.capacities[unit]

    def _close(self, unit: int, terms: list[_Terms], name: str, number: int) -> None:
        """Compute the bound of a leaf, by weak duality."""
        margins, lefts, squares = zip(*terms, strict=True)
        reward = (sum(margins) + sum(lefts) * self.epsilon) * Fraction(2) ** unit
        bound = reward - Fraction(4) ** unit * sum(squares) / 2
        if not self.leaves or bound < self.weakest[0]:
            self.weakest = bound, name, number
        self.leaves += 1

    def end(self) -> Certified:
        """Compare the claim with what was proven."""
        _require(self.claim, "the file ends without a claim: it was cut off")
        _require(
            not self.open,
            f"leaf {min(self.open, default=0)} is missing, of {len(self.open)} nodes never closed",
        )
        objective, bound = (_number(self.claim.get(key), key) for key in ("objective", "bound"))
        value, (proven, name, number) = self._value_of_tree(), self.weakest
        told = f"the claimed tree has the value {float(value):.12g}, not {objective:.12g}"
        _require(abs(value - Fraction(objective)) <= ROUNDING * value, told)
        told = f"line {number}, {name}: proven is {float(proven):.12g}, claimed {bound:.12g}"
        _require(proven >= Fraction(bound), told)
        above, epsilon, name = (
            math.nextafter(float(value), math.inf),
            float(self.epsilon),
            str(self.header.get("data")),
        )
        proof = bound, self.branchings, self.leaves
        return Certified(name, self.X, self.weight, self.depth, epsilon, above, *proof)

    def _value_of_tree(self) -> Fraction:
        """Route the samples through the claimed tree, in whole numbers, and return its value by the definition."""
        w = [_numbers(row, "w", self.p) for row in _list(self.claim.get("w"), "w", self.n_nodes)]
        b = _numbers(self.claim.get("b"), "b", self.n_nodes)
        value = sum((entry * entry for row in w for entry in row), Fraction(0)) / 2
        for x, counts in zip(self.X.tolist(), self.weight.tolist(), strict=True):
            t, exact = 0, list(map(Fraction, x))
            while t < self.n_nodes:
                score = sum(map(operator.mul, w[t], exact), b[t])
                for y, count in zip((-1, 1), counts, strict=True):
                    value += self.C[t] * Fraction(count) * max(0, 1 - y * score)
                between = t < self.n_upper and SIDE_TOLERANCE - self.epsilon < score < 0
                _require(not between, f"the claimed tree has a score of {float(score):.6g} at node {t}")
                t = 2 * t + (1 if score < 0 else 2)
        return value


class _Outward:
    """Squared norms of sums of samples in doubles, rounded up.

    A sum of n products of doubles misses its value by at most ``n u / (1 - n u)`` times the sum of the products' sizes,
    in whatever order it is computed (Higham, *Accuracy and stability of numerical algorithms*, 2002, section 3.1), with
    u half of ``EPS``. ``(n + 2) EPS`` is about twice that: it also covers that the sizes, the error and the sum of both
    are computed in doubles. Amounts are whole numbers below 2**53, so their products do not underflow.
    """

    EPS = float(np.finfo(np.float64).eps)

    def __init__(self, X: FloatArray) -> None:
        self.X, self.size = X, np.abs(X)

    def squared(self, group: IntArray, amounts: IntArray) -> Fraction:
        exact, n = amounts.astype(np.float64), len(amounts)
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.abs(exact @ self.X[group]) + (n + 2) * self.EPS * (np.abs(exact) @ self.size[group])
            square = float(most @ most) * (1.0 + (len(most) + 2) * self.EPS)
        _require(math.isfinite(square), "numbers too large for doubles; check it exactly")
        return Fraction(square) + n * Fraction(1e-290)  # more than squares of tiny numbers lose to underflow


class _Exact:
    """The same in whole numbers: every double is a whole multiple of a power of two."""

    def __init__(self, X: FloatArray) -> None:
        ratios = [x.as_integer_ratio() for x in X.ravel().tolist()]
        most = max(below for _, below in ratios)
        whole = np.array([above * (most // below) for above, below in ratios], dtype=object)
        self.X, self.unit = whole.reshape(X.shape), Fraction(1, most)

    def squared(self, group: IntArray, amounts: IntArray) -> Fraction:
        w = (amounts.astype(object)[:, None] * self.X[group]).sum(axis=0)
        return int((w * w).sum()) * self.unit**2


def _side(reached: int, t: int) -> int:
    """Return 2 where a sample that has reached a node stands at t, -1 or 1 where it went left or right at t, else 0."""
    came = 2
    while reached > t:
        reached, came = (reached - 1) // 2, -1 if reached % 2 else 1
    return came if reached == t else 0


def _object(text: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        line = json.loads(text) if len(text) <= MOST_LINE else None
        if isinstance(line, dict):
            return line
    raise CertificateError("no JSON object; is the file a certificate, and complete?")


def _require(holds: object, told: str) -> None:
    if not holds:
        raise CertificateError(told)


def _whole(value: object, what: str, low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high - 1``, or refuse the value."""
    if type(value) is not int or not low <= value < high:
        raise CertificateError(f"{what} is {str(value)[:40]}; it is a whole number from {low} to {high - 1}")
    return value


def _number(value: object, what: str) -> float:
    if type(value) is int and abs(value) <= MOST_UNITS:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise CertificateError(f"{what} is {str(value)[:40]}, no number that a double holds")
    return value


def _list(value: object, what: str, size: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (size is not None and len(value) != size):
        raise CertificateError(f"{what} is no list{'' if size is None else f' of {size}'}")
    return value


def _numbers(value: object, what: str, size: int) -> list[Fraction]:
    return [Fraction(_number(entry, what)) for entry in _list(value, what, size)]
