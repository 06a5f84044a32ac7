"""Check certificates of optimal trees, with nothing but numpy and whole numbers.

A certificate (``docs/certificates.md``: format, statement and proof) is a tree of branchings over the routings of
samples. Each leaf carries a dual point, which proves a lower bound on every tree that routes samples as the leaf says.
The check shares no code with the search that wrote it: it follows the branchings, so that no routing and no choice of
features is left out; it holds every dual point to the node problems of its leaf; and it computes every bound anew.
Entries of dual points are multiples of a power of two, so whole numbers decide whether a point is feasible. Only sums
of samples are rounded, and outward; with ``exact`` not even these.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.certificates.nodes import (
    MAX_LINE,
    MAX_UNITS,
    CertificateError,
    Charges,
    Decided,
    Exact,
    Outward,
    Points,
    Units,
    double_above,
    list_of,
    number_of,
    numbers_of,
    object_of,
    require,
    units,
    whole,
    written,
)
from mipforest.certificates.univariate import UNIVARIATE, CertifiedUnivariate, Lines
from mipforest.certificates.univariate import check as check_univariate
from mipforest.unpacking import UnpackingError, unpacked_blocks

#: Longest text and most entries of the words of a certificate.
_LONGEST, _MAX_ENTRIES = 200, 2000


@dataclass(frozen=True)
class Words:
    """What a certificate calls its problem; a check cannot tell whether the names are right.

    Attributes
    ----------
    model, variant, data, program
        Names of the model, its variant, the data, and of what wrote the file; empty where it has none.
    parameters
        The model's parameters by name; empty where the file has none.
    rows
        How many samples the data have, equal ones included; ``None`` where it does not say.
    forbidden
        Numbers, by name, of features that no node may use. They are 0 in all samples, or the check refuses the file: no
        tree gains by them.
    constraints
        What the constraints of univariate trees are called, each by kind with its entries: the lines of the file say
        what is certified.
    """

    model: str = ""
    variant: str = ""
    data: str = ""
    program: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    forbidden: Mapping[str, int] = field(default_factory=dict)
    constraints: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def read(cls, header: Mapping[str, Any]) -> Words:
        """Return what the first line of a certificate says, or refuse it."""
        texts = {name: header.get(name, "") for name in ("model", "variant", "data", "program")}
        for name, text in texts.items():
            require(isinstance(text, str) and len(text) <= _LONGEST, f"{name} is no text, or a long one")
        parameters, rows = header.get("parameters", {}), header.get("rows")
        require(isinstance(parameters, dict), "parameters is no object")
        for name, value in parameters.items():
            require(len(name) <= _LONGEST and _is_plain(value, 2), f"parameter {name[:40]} is no plain value")
        forbidden = header.get("forbidden", {})
        require(isinstance(forbidden, dict), "forbidden is no object")
        require(len(forbidden) <= _MAX_ENTRIES, "forbidden has too many entries")
        for name, number in forbidden.items():
            require(len(name) <= _LONGEST, f"the name {name[:40]} is long")
            whole(number, f"the number of {name}", 0, 1 << 31)
        constraints = header.get("constraints", [])
        few = isinstance(constraints, list) and len(constraints) <= _MAX_ENTRIES
        require(
            few and all(map(_is_constraint, constraints)), "constraints are no list of objects with a kind"
        )
        return cls(
            **texts,
            parameters=parameters,
            rows=None if rows is None else whole(rows, "rows", 1, 1 << 53),
            forbidden=forbidden,
            constraints=tuple(constraints),
        )

    def require_unused(self, X: FloatArray) -> None:
        """Refuse samples (n, p) that are not 0 in a forbidden feature."""
        for name, number in self.forbidden.items():
            unused = number < X.shape[1] and not X[:, number].any()
            require(unused, f"feature {number}, {name}, is forbidden, and has values other than 0")


def _is_plain(value: object, levels: int) -> bool:
    """Return whether a value is a number, a short text, or a list of such, of some levels."""
    if isinstance(value, list):
        return levels > 0 and len(value) <= _MAX_ENTRIES and all(_is_plain(e, levels - 1) for e in value)
    if isinstance(value, float):
        return bool(np.isfinite(value))
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)


def _is_constraint(value: object) -> bool:
    """Return whether a value is an object of plain values, or of numbers by name, that names its kind."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return False
    parts = [own for e in value.values() for own in (e.values() if isinstance(e, dict) else [e])]
    short = len(parts) <= _MAX_ENTRIES and all(len(name) <= _LONGEST for name in value)
    return short and all(_is_plain(part, 2) for part in parts)


def digest_of_samples(X: FloatArray, weight: FloatArray) -> str:
    """Return the SHA-256 of the samples of a proof, whatever their order.

    It is that of these little-endian numbers: how many different samples there are and how many features (64-bit whole
    numbers), then for each sample, in the order of their features, its features and its weights in class -1 and +1
    (doubles, 0 without a sign).

    Parameters
    ----------
    X, weight
        (G, p) different samples as the model has them, and (G, 2) what those of class -1 and +1 weigh together.
    """
    table = np.hstack([X, weight]) + 0.0  # -0 becomes 0
    table = table[np.lexsort(table.T[::-1])]
    digest = sha256(np.array(X.shape, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(table, dtype="<f8").tobytes())
    return digest.hexdigest()


__all__ = [
    "CertificateError",
    "Certified",
    "CertifiedUnivariate",
    "Charges",
    "Words",
    "certify",
    "digest_of_samples",
]

#: Support vector machines on all features, whose points stand at their leaves; any nodes, with points that have names.
MACHINES, NODES = 1, 2

#: Deepest tree, and memory in bytes for the routings of open nodes.
MAX_DEPTH, MAX_OPEN = 10, 1 << 32

#: The terms of a dual point's value at one node: sums of margins and of left sides in units, and the squared norm of
#: the weights.
_Terms = tuple[int, int, Fraction]

#: Most that a sample of the claimed tree may miss its side by: what the package accepts of any solver.
SIDE_TOLERANCE = Fraction(1, 10**6)

#: Share by which the claimed objective, a sum of doubles, may miss the tree's exact value.
ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True, eq=False)
class Certified:
    """What a certificate proves.

    Attributes
    ----------
    words
        What the file calls the model, its parameters and the data.
    X, weight
        (G, p) different samples, scaled, and (G, 2) how many of them are of class -1 and +1.
    sha256
        Their digest (:func:`digest_of_samples`).
    depth, epsilon, C, charges
        Levels of branch nodes, the gap that stands for the strict inequality, the penalty of every branch node, and
        what else is charged: the numbers that the proof was checked with.
    objective
        Value of the claimed tree by the definition, rounded up.
    bound
        Proven lower bound on the value of every tree that leaves the gap free above its last level.
    branchings, leaves
        Number of branchings, and number of leaves, each of which dual points close.
    """

    words: Words
    X: FloatArray
    weight: FloatArray
    sha256: str
    depth: int
    epsilon: float
    C: tuple[float, ...]
    charges: Charges
    objective: float
    bound: float
    branchings: int
    leaves: int

    @property
    def data(self) -> str:
        """Name of the data, as the file has it."""
        return self.words.data

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound; at most 1, as no term of the objective is negative."""
        return max(0.0, self.objective - max(0.0, self.bound)) / self.objective


def certify(path: str | os.PathLike[str], *, exact: bool = False) -> Certified | CertifiedUnivariate:
    """Check a certificate.

    Parameters
    ----------
    path
        File written by ``mipforest solve --certificate``.
    exact
        Compute norms in whole numbers too, instead of doubles rounded outward; proofs of univariate trees are of whole
        numbers anyway.

    Raises
    ------
    CertificateError
        If it does not prove what it claims, saying where; if it is no gzip file, cut off, or grows suspiciously.
    OSError
        As the system reports it.
    """
    lines = Lines(_lines(path))
    try:
        found = _checked(lines, exact)
    except (CertificateError, UnpackingError) as fault:
        raise fault.located(_place(path, lines.number), CertificateError) from None
    except (ArithmeticError, RecursionError, MemoryError) as fault:
        # What a file may do to the check is refused by name; whatever else it does proves nothing either.
        reason = f"its numbers, or its size, are beyond the check ({type(fault).__name__})"
        raise CertificateError(f"{_place(path, lines.number)}: {reason}") from fault
    return found


def _checked(lines: Lines, exact: bool) -> Certified | CertifiedUnivariate:
    check = _Check(exact)
    for text in lines:
        if lines.number == 1:
            header = object_of(text)
            if header.get("mipforest_certificate") == UNIVARIATE:
                return check_univariate(Words.read(header), header.get("sha256"), lines, exact=exact)
        check.read_line(text, lines.number)
    lines.number = 0
    return check.end()


def _place(path: str | os.PathLike[str], number: int) -> str:
    return f"{os.fspath(path)}{f', line {number}' if number else ''}"


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    rest = b""
    for block in unpacked_blocks(path):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
        if len(rest) > MAX_LINE:
            break
    if rest:
        yield rest


class _OpenNode(NamedTuple):
    """The nodes that the samples have reached, (G,), and what is decided of the features of nodes."""

    reached: IntArray
    decided: Mapping[int, Decided] = {}


class _Check:
    """How far a check has come: the routings of open nodes, and the weakest leaf so far."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.header, self.claim = dict[str, Any](), dict[str, Any]()
        self.samples: list[list[float]] = []
        self.open: dict[int, _OpenNode] = {}
        self.weakest: tuple[Fraction | float, str, int] = Fraction(0), "", 0
        self.branchings = self.leaves = 0

    def read_line(self, text: bytes, number: int) -> None:
        """Read the next line."""
        line = object_of(text)
        require(not self.claim, "a line after the claim, which is the last one")
        if not self.header:
            self._begin(line)
        elif len(self.samples) < self.groups:
            self._sample(line)
        elif "branch" in line:
            self._branch(line)
        elif "leaf" in line:
            self._leaf(line, number)
        elif "screen" in line and self.format == MACHINES:
            self._screen(line, number)
        elif "point" in line and self.format == NODES:
            self.points.add(line)
        else:
            other = "screen" if self.format == MACHINES else "point"
            require(isinstance(line.get("claim"), dict), f"neither branch, leaf, {other} nor claim")
            self.claim = line["claim"]

    def _begin(self, line: dict[str, Any]) -> None:
        self.format = line.get("mipforest_certificate")
        known = type(self.format) is int and self.format in (MACHINES, NODES)
        require(known, f"no certificate of format {MACHINES}, {NODES} or {UNIVARIATE}")
        self.header, self.words = line, Words.read(line)
        self.depth = whole(line.get("depth"), "depth", 1, MAX_DEPTH + 1)
        self.groups, self.p = (whole(line.get(key), key, 1, 1 << 31) for key in ("samples", "features"))
        self.n_nodes, self.n_upper = 2**self.depth - 1, 2 ** (self.depth - 1) - 1
        self.epsilon = Fraction(number_of(line.get("epsilon"), "epsilon"))
        self.C = numbers_of(line.get("C"), "C", self.n_nodes)
        require(self.epsilon >= 0 and min(self.C) >= 0, "epsilon is negative, or a C is")
        self.charges = Charges() if self.format == MACHINES else Charges.read(line, self.n_nodes)
        # What a sample that has reached node r (column) has to do with node t (row).
        self.passes = np.array([[_side(r, t) for r in range(self.n_nodes)] for t in range(self.n_nodes)])

    def _sample(self, line: dict[str, Any]) -> None:
        counts = numbers_of(line.get("n"), "n", 2)
        require(min(counts) >= 0, "n is negative; it says what the samples weigh")
        self.samples.append(list(map(float, numbers_of(line.get("x"), "x", self.p) + counts)))
        if len(self.samples) == self.groups:
            self.X, self.weight = np.hsplit(np.array(self.samples), [self.p])
            self.words.require_unused(self.X)
            self.sha256 = digest_of_samples(self.X, self.weight)
            stated = self.header.get("sha256", self.sha256)
            require(stated == self.sha256, "the samples are not those of the digest in the first line")
            with np.errstate(over="ignore"):
                require(np.isfinite(self.weight.sum()), "the samples weigh more than a double holds")
            self.norms = Exact(self.X) if self.exact else Outward(self.X)
            self.points = Points(self.charges, self.C, self.epsilon, self.weight, self.norms)
            reached: IntArray = np.zeros(self.groups, np.uint8 if self.n_nodes < 256 else np.uint16)
            self.open[0] = _OpenNode(reached)

    def _opened(self, node: object) -> tuple[int, _OpenNode]:
        known = whole(node, "the node", 0, MAX_UNITS)
        require(known in self.open, f"node {known} is not open: it was closed before, or nothing led to it")
        return known, self.open.pop(known)

    def _add(self, node: object, routing: _OpenNode) -> None:
        known = whole(node, "the node", 0, MAX_UNITS)
        require(known not in self.open, f"node {known} is open already")
        self.open[known] = routing
        most = len(self.open) * routing.reached.nbytes
        require(most <= MAX_OPEN, f"open nodes take more than {MAX_OPEN} bytes")

    def _both_ways(self, g: int, reached: IntArray) -> tuple[int, IntArray, IntArray]:
        """Return the node at which a sample stands, and the routings where it has gone left and right there."""
        t, left, right = int(reached[g]), reached.copy(), reached.copy()
        require(t < self.n_upper, f"sample {g} stands at node {t}, below which nothing is decided")
        left[g], right[g] = 2 * t + 1, 2 * t + 2
        self.branchings += 1
        return t, left, right

    def _branch(self, line: dict[str, Any]) -> None:
        """Decide the side of a sample, or whether a node has a feature."""
        _, routing = self._opened(line["branch"])
        if "feature" in line:
            t = whole(line.get("at"), "at", 0, self.n_nodes)
            halves = self.points.halves(t, line["feature"], routing.decided.get(t, {}))
            self.branchings += 1
            for key, half in zip(("in", "out"), halves, strict=True):
                self._add(line.get(key), _OpenNode(routing.reached, {**routing.decided, t: half}))
            return
        _, *sides = self._both_ways(whole(line.get("sample"), "sample", 0, self.groups), routing.reached)
        for key, reached in zip(("left", "right"), sides, strict=True):
            self._add(line.get(key), _OpenNode(reached, routing.decided))

    def _leaf(self, line: dict[str, Any], number: int) -> None:
        node, (reached, decided) = self._opened(line["leaf"])
        name = f"leaf {node}"
        if self.format == MACHINES:
            unit, _, terms = self._dual(line, reached, name)
            self._close(self._value(unit, terms), name, number)
            return
        bound: Fraction | float = Fraction(0)
        for t, tree in enumerate(list_of(line.get("nodes"), "nodes", self.n_nodes)):
            passing = self.passes[t, reached]
            least = self.points.least(t, tree, decided.get(t, {}), passing, name)
            # Infinite where no tree has such a node; a sum may be beyond doubles.
            bound = math.inf if math.inf in (bound, least) else bound + least
        self._close(bound, name, number)

    def _screen(self, line: dict[str, Any], number: int) -> None:
        """Close sides of samples, one after the other, by a dual point with a few changes; the other sides remain."""
        node, (reached, _) = self._opened(line["screen"])
        unit, points, terms = self._dual(line, reached, f"node {node}")
        for entry in list_of(line.get("out"), "out"):
            sample, side, changes = list_of(entry, "an entry of out", 3)
            g = whole(sample, "sample", 0, self.groups)
            goes_left = whole(side, "side", 0, 2) == 0
            t, left, right = self._both_ways(g, reached)
            closed, reached = (left, right) if goes_left else (right, left)
            name = f"leaf 'sample {g} to the {'left' if goes_left else 'right'} at {t}' of node {node}"
            changed = list(terms)
            for change in list_of(changes, "changes"):
                at = whole(list_of(change, "a change", 2)[0], "the branch node", 0, self.n_nodes)
                changed[at] = self._terms(at, {**points[at], **self._units(change[1])}, unit, closed, name)
            self._close(self._value(unit, changed), name, number)
        self._add(line.get("then"), _OpenNode(reached))

    def _dual(
        self, line: dict[str, Any], reached: IntArray, name: str
    ) -> tuple[int, list[Units], list[_Terms]]:
        """Return the dual point of a line: the exponent of its unit, and its variables and terms by branch node."""
        unit = whole(line.get("unit"), "unit", -200, 200)
        points = [self._units(flat) for flat in list_of(line.get("dual"), "dual", self.n_nodes)]
        return unit, points, [self._terms(t, point, unit, reached, name) for t, point in enumerate(points)]

    def _units(self, flat: object) -> Units:
        return units(flat, 3 * self.groups)

    def _terms(self, t: int, point: Units, unit: int, reached: IntArray, name: str) -> _Terms:
        """Refuse a dual point of node t that is not feasible for a routing; return what its value consists of."""
        ks, amounts = (np.fromiter(part, np.int64, len(point)) for part in (point.keys(), point.values()))
        margin = ks < 2 * self.groups
        group = np.where(margin, ks // 2, ks - 2 * self.groups)
        passing = self.passes[t, reached[group]]
        direction = np.where(margin, (2 * (ks % 2) - 1) * (passing != 0), np.where(passing == 2, 0, passing))
        most = np.where(margin, self.points.capacity(unit)[t, np.where(margin, ks, 0)], MAX_UNITS)
        for q in np.flatnonzero((amounts > most) | (direction == 0))[:1]:
            reason = f"its capacity is {most[q]}" if direction[q] else "the routing has no such variable"
            raise CertificateError(f"{name}: variable {ks[q]} of node {t} is {amounts[q]}, and {reason}")
        balance = sum((amounts * direction).tolist())
        require(balance == 0, f"{name}: the dual point of node {t} is out of balance by {balance} units")
        lefts = ~margin & (direction < 0)
        square = self.norms.squared(group, amounts * direction)
        return sum(amounts[margin].tolist()), sum(amounts[lefts].tolist()), square

    def _value(self, unit: int, terms: list[_Terms]) -> Fraction:
        """Return what dual points of all nodes prove, by weak duality."""
        margins, lefts, squares = zip(*terms, strict=True)
        reward = (sum(margins) + sum(lefts) * self.epsilon) * Fraction(2) ** unit
        value: Fraction = reward - Fraction(4) ** unit * sum(squares) / 2
        return value

    def _close(self, bound: Fraction | float, name: str, number: int) -> None:
        """Remember the weakest leaf."""
        if not self.leaves or bound < self.weakest[0]:
            self.weakest = bound, name, number
        self.leaves += 1

    def end(self) -> Certified:
        """Compare the claim with what was proven."""
        require(self.claim, "the file ends without a claim: it was cut off")
        require(
            not self.open,
            f"leaf {min(self.open, default=0)} is missing, of {len(self.open)} nodes never closed",
        )
        objective, bound = (number_of(self.claim.get(key), key) for key in ("objective", "bound"))
        value, (proven, name, number) = self._value_of_tree(), self.weakest
        agrees = abs(value - Fraction(objective)) <= ROUNDING * value
        require(agrees, f"the claimed tree has the value {written(value)}, not {written(objective)}")
        proves = proven >= Fraction(bound)
        require(proves, f"line {number}, {name}: proven is {written(proven)}, claimed {written(bound)}")
        return Certified(
            words=self.words,
            X=self.X,
            weight=self.weight,
            sha256=self.sha256,
            depth=self.depth,
            epsilon=float(self.epsilon),
            C=tuple(map(float, self.C)),
            charges=self.charges,
            objective=double_above(value),
            bound=bound,
            branchings=self.branchings,
            leaves=self.leaves,
        )

    def _value_of_tree(self) -> Fraction:
        """Route the samples through the claimed tree, in whole numbers, and return its value by the definition."""
        w = [numbers_of(row, "w", self.p) for row in list_of(self.claim.get("w"), "w", self.n_nodes)]
        b = numbers_of(self.claim.get("b"), "b", self.n_nodes)
        value = sum((self.charges.of_weights(t, row) for t, row in enumerate(w)), Fraction(0))
        for x, counts in zip(self.X.tolist(), self.weight.tolist(), strict=True):
            t, exact = 0, list(map(Fraction, x))
            while t < self.n_nodes:
                score = sum(map(operator.mul, w[t], exact), b[t])
                for y, count in zip((-1, 1), counts, strict=True):
                    value += self.C[t] * Fraction(count) * self.charges.loss(y * score)
                between = t < self.n_upper and SIDE_TOLERANCE - self.epsilon < score < 0
                require(not between, f"the claimed tree has a score of {written(score)} at node {t}")
                t = 2 * t + (1 if score < 0 else 2)
        return value


def _side(reached: int, t: int) -> int:
    """Return 2 where a sample that has reached a node stands at t, -1 or 1 where it went left or right at t, else 0."""
    came = 2
    while reached > t:
        reached, came = (reached - 1) // 2, -1 if reached % 2 else 1
    return came if reached == t else 0
