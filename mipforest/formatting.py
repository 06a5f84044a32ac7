"""Numbers, shares, durations and foreign texts as people read them."""

from __future__ import annotations

import math
from unicodedata import category

#: What measures are called whose names do not read as words.
MEASURES = {
    "r2": "R2",
    "mse": "MSE",
    "mae": "MAE",
    "auc": "AUC",
    "calibration_rms": "Calibration error (rms)",
}


#: Share of 1, or of a number beside it, up to which an objective or a bound is what rounding has left of 0: a sum of a
#: thousand doubles near 1 is wrong by a thousand times 1e-16. Losses and costs are near 1, or add up to more.
ROUNDING = 1e-13


def is_rounding(value: float, *others: float | None) -> bool:
    """Return whether an objective, a bound, or the difference of two, is what rounding has left of 0.

    Parameters
    ----------
    value
        The number.
    others
        What stands beside it: the objective, its bound, the objective of the start.
    """
    sizes = [abs(other) for other in others if other is not None and math.isfinite(other)]
    return abs(value) <= ROUNDING * max([1.0, *sizes])


def finite(value: float) -> float | None:
    """Return a number as JSON takes it: ``None`` where it is none, or infinite."""
    return float(value) if math.isfinite(value) else None


def value_text(value: float | None, *others: float | None) -> str:
    """Write an objective or a bound as :func:`number` does, and 0 where it :func:`is_rounding`."""
    return "0" if value is not None and is_rounding(value, *others) else number(value)


def printable(text: str) -> str:
    r"""Escape what does not print, as in ``\x1b`` or ``\u202e``, for terminals, pages and pictures.

    Names and levels come from files of others. A terminal may take control characters for orders, and an XML file may
    not have them; characters of direction or without width turn or hide the text behind them; lone surrogates stand
    for bytes that are no text. Line ends, tabs and blanks of all widths stay.
    """
    if text.isprintable():
        return text
    return "".join(sign if _prints(sign) else _escaped(ord(sign)) for sign in text)


def _prints(sign: str) -> bool:
    return sign.isprintable() or sign in "\n\t" or category(sign) == "Zs"


def _escaped(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code & 0xFF:02x}"  # what Python reads for a byte that is no text
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float | None) -> str:
    """Write six significant digits; ``-`` where there is no value."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"


def entry_name(name: str) -> str:
    """Write the name of a measure or an entry as people read it: ``tangent_loss`` becomes ``Tangent loss``."""
    words = name.replace("_", " ")
    return MEASURES.get(name, words[:1].upper() + words[1:])


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
