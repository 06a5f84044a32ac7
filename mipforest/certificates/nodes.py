"""What a node of a certified tree is charged, and what dual points prove of it, features to select included.

The numbers of a certificate are computed with as whole numbers, or as doubles that are rounded outward.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import MipforestError

#: Longest line in bytes.
MAX_LINE = 1 << 26

#: Whole numbers in a certificate are below this: as doubles they are exact.
MAX_UNITS = 1 << 53

_TOO_LARGE = "numbers too large for doubles; check it exactly"


class CertificateError(MipforestError, ValueError):
    """A certificate that proves nothing: the message names the line, and the leaf where there is one."""

    exit_code = 3


class Outward:
    """Sums of samples in doubles, rounded up: their squared norms, and the sizes of their entries.

    A sum of n products of doubles misses its value by at most ``n u / (1 - n u)`` times the sum of the products' sizes,
    in whatever order it is computed (Higham, *Accuracy and stability of numerical algorithms*, 2002, section 3.1), with
    u half of ``EPS``. ``(n + 2) EPS`` is about twice that: it also covers that the sizes, the error and the sum of both
    are computed in doubles. Amounts are whole numbers below 2**53, so their products do not underflow.
    """

    EPS = float(np.finfo(np.float64).eps)

    def __init__(self, X: FloatArray) -> None:
        self.X, self.size = X, np.abs(X)

    def squared(self, group: IntArray, amounts: IntArray) -> Fraction:
        """Return the squared norm of a sum of samples, rounded up."""
        exact, n = amounts.astype(np.float64), len(amounts)
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.abs(exact @ self.X[group]) + (n + 2) * self.EPS * (np.abs(exact) @ self.size[group])
            square = float(most @ most) * (1.0 + (len(most) + 2) * self.EPS)
        require(math.isfinite(square), _TOO_LARGE)
        return Fraction(square) + n * Fraction(1e-290)  # more than squares of tiny numbers lose to underflow

    def sizes(self, group: IntArray, amounts: IntArray, unit: int) -> list[float]:
        """Return the sizes (p,) of the sums of samples in units of ``2**unit``, rounded up."""
        exact, n = amounts.astype(np.float64), len(amounts)
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.abs(exact @ self.X[group]) + (n + 2) * self.EPS * (np.abs(exact) @ self.size[group])
            sizes = np.ldexp(most + n * 1e-300, unit)  # more than products lose to underflow
        require(np.isfinite(sizes).all(), _TOO_LARGE)
        return [math.nextafter(size, math.inf) for size in sizes.tolist()]

    def half_square(self, size: Fraction | float) -> Fraction | float:
        """Return half the square of a size, rounded up."""
        square = math.nextafter(0.5 * float(size) * float(size), math.inf)
        require(math.isfinite(square), _TOO_LARGE)
        return square

    def total(self, numbers: list[Fraction | float]) -> Fraction:
        """Return the sum of numbers, rounded up: ``fsum`` itself rounds once."""
        try:
            total = math.nextafter(math.fsum(numbers), math.inf) if numbers else 0.0
        except OverflowError:
            total = math.inf
        require(math.isfinite(total), _TOO_LARGE)
        return Fraction(total)


class Exact:
    """The same in whole numbers: every double is a whole multiple of a power of two."""

    def __init__(self, X: FloatArray) -> None:
        ratios = [x.as_integer_ratio() for x in X.ravel().tolist()]
        most = max(below for _, below in ratios)
        multiples = np.array([above * (most // below) for above, below in ratios], dtype=object)
        self.X, self.unit = multiples.reshape(X.shape), Fraction(1, most)

    def squared(self, group: IntArray, amounts: IntArray) -> Fraction:
        """Return the squared norm of a sum of samples."""
        w = (amounts.astype(object)[:, None] * self.X[group]).sum(axis=0)
        return int((w * w).sum()) * self.unit**2

    def sizes(self, group: IntArray, amounts: IntArray, unit: int) -> list[Fraction]:
        """Return the sizes (p,) of the sums of samples in units of ``2**unit``."""
        sums = (amounts.astype(object)[:, None] * self.X[group]).sum(axis=0)
        return [abs(int(entry)) * self.unit * Fraction(2) ** unit for entry in sums]

    def half_square(self, size: Fraction | float) -> Fraction:
        """Return half the square of a size."""
        return Fraction(size) ** 2 / 2

    def total(self, numbers: list[Fraction | float]) -> Fraction:
        """Return the sum of numbers."""
        return sum((Fraction(number) for number in numbers), Fraction(0))


def object_of(text: bytes) -> dict[str, Any]:
    """Return a line, or refuse it."""
    with suppress(ValueError, RecursionError):
        line = json.loads(text) if len(text) <= MAX_LINE else None
        if isinstance(line, dict):
            return line
    raise CertificateError("no JSON object; is the file a certificate, and complete?")


def require(holds: object, message: str) -> None:
    """Refuse a certificate unless something holds."""
    if not holds:
        raise CertificateError(message)


def _short(value: object) -> str:
    """Return a value as messages name it: lists may be nested deeper than Python writes them."""
    return (
        "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else str(value)[:40]
    )


def written(number: Fraction | float) -> str:
    """Return a number as messages name it."""
    try:
        return f"{float(number):.12g}"
    except OverflowError:
        return "beyond doubles"


def double_above(number: Fraction) -> float:
    """Return a double above a number, or refuse it."""
    try:
        above = math.nextafter(float(number), math.inf)
    except OverflowError:
        above = math.inf
    if not math.isfinite(above):
        raise CertificateError("the claimed tree has a value beyond doubles; nobody needs a proof for it")
    return above


def whole(value: object, what: str, low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high - 1``, or refuse the value."""
    if type(value) is not int or not low <= value < high:
        raise CertificateError(f"{what} is {_short(value)}; it is a whole number from {low} to {high - 1}")
    return value


def number_of(value: object, what: str) -> float:
    """Return a finite number, or refuse the value."""
    if type(value) is int and abs(value) <= MAX_UNITS:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise CertificateError(f"{what} is {_short(value)}, no number that a double holds")
    return value


def list_of(value: object, what: str, size: int | None = None) -> list[Any]:
    """Return a list of a size, or refuse the value."""
    if not isinstance(value, list) or (size is not None and len(value) != size):
        raise CertificateError(f"{what} is no list{'' if size is None else f' of {size}'}")
    return value


def numbers_of(value: object, what: str, size: int) -> list[Fraction]:
    """Return a list of finite numbers of a size, or refuse the value."""
    return [Fraction(number_of(entry, what)) for entry in list_of(value, what, size)]


#: Most features that are decided at one node of one leaf.
MAX_DECIDED = 500

#: Most capacities that are held, of all nodes, samples and kinks: one gigabyte.
MAX_CAPACITIES = 1 << 27

#: A dual point: variables, and how many units they are.
Units = dict[int, int]

#: Which features are in and out; of the others either may be.
Decided = Mapping[int, bool]


@dataclass(frozen=True)
class Charges:
    """What the nodes of a tree are charged.

    Attributes
    ----------
    kinks
        Margins at which the loss has a kink, and by how much its slope changes there.
    l1
        Whether the norm is the l1 norm; else half the squared Euclidean norm.
    free, alpha
        Features free of cost, by node (``None``: all), and the cost of every further one (``None``: it may not be).
    """

    kinks: tuple[tuple[Fraction, Fraction], ...] = ((Fraction(1), Fraction(1)),)
    l1: bool = False
    free: tuple[int, ...] | None = None
    alpha: Fraction | None = None

    @classmethod
    def read(cls, header: dict[str, Any], n_nodes: int) -> Charges:
        """Return what the first line of a certificate of format 2 says."""
        kinks = [numbers_of(kink, "a kink", 2) for kink in list_of(header.get("kinks"), "kinks")]
        require(kinks and min(change for _, change in kinks) > 0, "a loss has kinks, where its slope rises")
        require(header.get("norm") in ("l1", "l2"), "norm is neither 'l1' nor 'l2'")
        free, alpha = header.get("free"), header.get("alpha")
        if free is not None:
            free = tuple(
                whole(entry, "an entry of free", 0, 1 << 31) for entry in list_of(free, "free", n_nodes)
            )
        if alpha is not None:
            alpha = Fraction(number_of(alpha, "alpha"))
            require(alpha >= 0, "alpha is negative")
        return cls(tuple((kink[0], kink[1]) for kink in kinks), header["norm"] == "l1", free, alpha)

    def loss(self, margin: Fraction) -> Fraction:
        """Return the loss of a margin."""
        return sum((change * max(Fraction(0), kink - margin) for kink, change in self.kinks), Fraction(0))

    def of_weights(self, t: int, w: list[Fraction]) -> Fraction:
        """Return norm and cost of the weights of node t, or refuse them."""
        size = sum((abs(entry) if self.l1 else entry * entry / 2 for entry in w), Fraction(0))
        if self.free is None:
            return size
        used = sum(entry != 0 for entry in w)
        allowed = used <= self.free[t] or self.alpha is not None
        require(allowed, f"the claimed tree uses {used} features at node {t}, and {self.free[t]} are allowed")
        return size + (self.alpha or 0) * max(0, used - self.free[t])


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A dual point of node t, and what its value consists of.

    Attributes
    ----------
    t
        The node.
    variables, group, side
        (m,) variables, their samples, and -1 or 1 for sides kept left or right, 0 for margins.
    reward
        What they earn.
    size, charge, order
        (p,) sizes of the entries of :math:`u`, half their squares, and features by size, the largest first.
    """

    t: int
    variables: IntArray
    group: IntArray
    side: IntArray
    reward: Fraction
    size: list[Any]
    charge: list[Any]
    order: list[int]


class Points:
    """The dual points of a certificate, by name.

    Parameters
    ----------
    charges, C, epsilon
        What is charged, with which penalties (|B|,), and the gap that stands for the strict inequality.
    weight
        (G, 2) weights of the samples by class.
    norms
        Computes with the samples.
    """

    def __init__(
        self,
        charges: Charges,
        C: list[Fraction],
        epsilon: Fraction,
        weight: FloatArray,
        norms: Exact | Outward,
    ) -> None:
        self._charges, self._C, self._epsilon, self._weight, self._norms = charges, C, epsilon, weight, norms
        self._capacities: dict[int, IntArray] = {}
        self._n_capacities = 2 * len(C) * len(weight) * len(charges.kinks)
        require(
            self._n_capacities <= MAX_CAPACITIES,
            f"nodes, samples and kinks have {self._n_capacities} capacities, and the check takes {MAX_CAPACITIES}",
        )
        self._points: dict[int, DualPoint] = {}

    def add(self, line: dict[str, Any]) -> None:
        """Take a dual point, if it is feasible."""
        name = whole(line.get("point"), "the point", 0, MAX_UNITS)
        require(name not in self._points, f"point {name} was given before")
        t = whole(line.get("at"), "at", 0, len(self._C))
        unit = whole(line.get("unit"), "unit", -200, 200)
        G, K = len(self._weight), len(self._charges.kinks)
        point = units(line.get("dual"), 2 * G * K + 2 * G)
        ks, amounts = (np.fromiter(part, np.int64, len(point)) for part in (point.keys(), point.values()))
        margin, left = ks < 2 * G * K, (ks >= 2 * G * K) & (ks < 2 * G * K + G)
        group = np.where(margin, ks // (2 * K), (ks - 2 * G * K) % G)
        direction = np.where(margin, 2 * (ks // K % 2) - 1, np.where(left, -1, 1))
        capacity = np.where(margin, self.capacity(unit)[t, np.where(margin, ks, 0)], MAX_UNITS)
        for q in np.flatnonzero(amounts > capacity)[:1]:
            raise CertificateError(
                f"point {name}: variable {ks[q]} is {amounts[q]}, and its capacity is {capacity[q]}"
            )
        balance = sum((amounts * direction).tolist())
        require(balance == 0, f"point {name} is out of balance by {balance} units")
        reward = self._epsilon * sum(amounts[left].tolist())
        for k, (kink, _) in enumerate(self._charges.kinks):
            reward += kink * sum(amounts[margin & (ks % K == k)].tolist())
        size = self._norms.sizes(group, amounts * direction, unit)
        charge = [self._norms.half_square(entry) for entry in size]
        order = sorted(range(len(size)), key=lambda j: -size[j])
        side = np.where(margin, 0, direction)
        self._points[name] = DualPoint(t, ks, group, side, reward * Fraction(2) ** unit, size, charge, order)

    def capacity(self, unit: int) -> IntArray:
        """Return (|B|, 2 G K) the capacities of margins, in units of ``2**unit``, rounded down."""
        if unit not in self._capacities:
            if (len(self._capacities) + 1) * self._n_capacities > MAX_CAPACITIES:
                self._capacities.clear()
            sizes, at = np.unique(self._weight, return_inverse=True)
            table = [
                [
                    [
                        min(math.floor(C * Fraction(size) * change / Fraction(2) ** unit), MAX_UNITS)
                        for _, change in self._charges.kinks
                    ]
                    for size in sizes.tolist()
                ]
                for C in self._C
            ]
            self._capacities[unit] = np.array(table)[:, at.ravel()].reshape(len(self._C), -1)
        return self._capacities[unit]

    def least(self, t: int, tree: object, decided: Decided, passing: IntArray, leaf: str) -> Fraction | float:
        """Return what a tree of choices proves of node t.

        Parameters
        ----------
        t
            The node.
        tree
            A point's name, ``None`` for none, or ``[feature, tree where it is in, tree where it is out]``.
        decided
            What is decided of the node's features.
        passing
            (G,) 2 where a sample stands at the node, -1 or 1 where it went left or right there, else 0.
        leaf
            The name of the leaf, for messages.
        """
        # By a stack of its own: choices may be nested deeper than Python calls functions.
        least: Fraction | float = math.inf
        open_parts: list[tuple[object, Decided]] = [(tree, decided)]
        while open_parts:
            part, cell = open_parts.pop()
            if isinstance(part, list):
                feature, inside, outside = list_of(part, "a choice of a feature", 3)
                with_it, without = self.halves(t, feature, cell)
                open_parts += [(outside, without), (inside, with_it)]
            else:
                least = min(least, self._of_part(t, part, cell, passing, leaf))
        return least

    def _of_part(
        self, t: int, tree: object, decided: Decided, passing: IntArray, leaf: str
    ) -> Fraction | float:
        """Return what a point, or ``None``, proves of node t; parameters as for :meth:`least`."""
        if tree is None:
            return self._bound(t, decided, None)
        name = whole(tree, "a point", 0, MAX_UNITS)
        point = self._points.get(name)
        if point is None or point.t != t:
            raise CertificateError(f"{leaf}: there is no point {name} of node {t} before it")
        there = passing[point.group]
        for q in np.flatnonzero(np.where(point.side == 0, there == 0, there != point.side))[:1]:
            k = point.variables[q]
            raise CertificateError(f"{leaf}: point {name} has variable {k}, and the routing has no such")
        return self._bound(t, decided, point)

    def halves(self, t: int, feature: object, decided: Decided) -> tuple[Decided, Decided]:
        """Return the choices of node t with a feature in, and out."""
        require(self._charges.free is not None, "all features are free: none is decided")
        j = whole(feature, "feature", 0, self._norms.X.shape[1])
        require(j not in decided, f"feature {j} of node {t} was decided before")
        require(len(decided) < MAX_DECIDED, f"more than {MAX_DECIDED} features are decided")
        return {**decided, j: True}, {**decided, j: False}

    def _bound(self, t: int, decided: Decided, point: DualPoint | None) -> Fraction | float:
        """Return what a dual point proves of node t for all choices that agree with what is decided."""
        charges, alpha = self._charges, self._charges.alpha
        inside, others = list(range(self._norms.X.shape[1])), list[int]()
        spare, cost = 0, Fraction(0)
        if charges.free is not None:
            inside = [j for j, is_in in decided.items() if is_in]
            spare = charges.free[t] - len(inside)
            if spare < 0 and alpha is None:
                return math.inf  # no tree has such a node
            cost, spare = (alpha or 0) * Fraction(max(0, -spare)), max(0, spare)
            if point is not None and (spare or alpha is not None):
                others = [j for j in point.order if j not in decided]
        if point is None:
            return cost
        if charges.l1:
            # The point divided by its largest entry is feasible, as is the point 0.
            return cost + max(Fraction(0), point.reward) / Fraction(
                max([1, *(point.size[j] for j in inside + others[:1])])
            )
        further = [j for j in others[spare:] if alpha is not None and point.charge[j] > alpha]
        paid = self._norms.total([point.charge[j] for j in [*inside, *others[:spare], *further]])
        return cost + point.reward + (alpha or 0) * len(further) - paid


def units(flat: object, variables: int) -> Units:
    """Return variables and their amounts from ``[variable, amount, ...]``, or refuse them."""
    entries = list_of(flat, "a list of variables and units")
    pairs = all(type(entry) is int and 0 <= entry < MAX_UNITS for entry in entries)
    require(pairs and len(entries) % 2 == 0, "variables and units are no pairs of whole numbers")
    require(max(entries[::2], default=0) < variables, f"there are {variables} variables only")
    return dict(zip(entries[::2], entries[1::2], strict=True))
