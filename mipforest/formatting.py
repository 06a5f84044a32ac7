"""Numbers, shares and durations as people read them."""

from __future__ import annotations

import math


def number(value: float | None) -> str:
    """Write six significant digits; ``-`` where there is no value."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"


def percent(share: float | None) -> str:
    """Write a share in percent; ``-`` where there is none, and never 0 for what is not 0."""
    if share is None or not math.isfinite(share):
        return "-"
    if 0 < share < 1e-4:
        return "< 0.01%"
    return f"{share:.2%}" if share < 0.1 else f"{share:.1%}"


def duration(seconds: float) -> str:
    """Write seconds, or minutes and hours where they are many."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
