"""Comparisons of numbers that were computed, which differ in their last digits from processor to processor."""

from typing import Any

import numpy as np

#: Linear algebra adds in an order that depends on the processor, and compiled loops fuse multiplications with
#: additions on some: a sum of a thousand terms differs by about 1e-13 of its size, and what is solved from such sums
#: by more. This is far above that, and far below what tells two trees apart.
ROUNDING = 1e-9


def same(a: Any, b: Any) -> bool:
    """Whether two numbers, or all of two arrays, are equal up to rounding; an array may equal one number."""
    alike = np.shape(a) == np.shape(b) or not np.shape(a) or not np.shape(b)
    return alike and at_most(a, b) and at_most(b, a)


def at_most(a: Any, b: Any) -> bool:
    """Whether one number is at most another, up to rounding; of arrays, whether all are."""
    return bool(np.all(_difference(a, b) <= 0))


def at_least(a: Any, b: Any) -> bool:
    """Whether one number is at least another, up to rounding; of arrays, whether all are."""
    return at_most(b, a)


def less(a: Any, b: Any) -> bool:
    """Whether one number is less than another by more than rounding; of arrays, whether all are."""
    return bool(np.all(_difference(b, a) > 0))


def in_order(values: Any) -> bool:
    """Whether no number is less than the one before it, up to rounding."""
    values = list(values)
    return all(map(at_most, values, values[1:]))


def _difference(a: Any, b: Any) -> Any:
    """``a - b``, less what rounding explains: relative to the numbers, absolute where they are below one."""
    a, b = (np.asarray(side, dtype=float) for side in (a, b))
    with np.errstate(invalid="ignore"):
        scale = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
        # Infinities are equal to themselves only.
        return np.where(a == b, 0.0, a - b - np.where(np.isfinite(scale), ROUNDING * scale, 0.0))
