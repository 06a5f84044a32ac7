"""Read the numbers of a certificate, and compute with them in whole numbers, or in doubles that are rounded outward."""

from __future__ import annotations

import json
import math
from contextlib import suppress
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
