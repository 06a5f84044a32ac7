"""Thresholds of univariate splits."""

from __future__ import annotations


def midpoint(low: float, high: float) -> float:
    """Return the threshold between two neighbouring values of a feature, ``low < high``.

    A value goes right if it is at least the threshold; where rounding leaves no number between the two, the
    threshold is therefore ``high``.
    """
    middle = low + (high - low) / 2
    return float(middle if middle > low else high)
