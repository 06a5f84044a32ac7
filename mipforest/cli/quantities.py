"""Options that are shares and times, as people write them: ``1%`` or ``0.01``, ``1m`` or ``60``."""

from __future__ import annotations

import math
import re

from typer import BadParameter

#: Seconds of each unit of time.
UNITS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

_TIME = re.compile(rf"(?P<number>[^a-z]+?)\s*(?P<unit>{'|'.join(UNITS)})", re.IGNORECASE)


def share(text: str | float) -> float:
    """Read a share of at least 0, ``1%`` or ``0.01``; a default is a number already.

    Raises
    ------
    BadParameter
        If it is none.
    """
    written = str(text).strip()
    scale, number = (100, written[:-1]) if written.endswith("%") else (1, written)
    return _at_least_zero(number, written, "a share, such as 1% or 0.01") / scale


def seconds(text: str | float) -> float:
    """Read a time of at least 0 in seconds, ``60``, or with its unit, ``1m``; a default is a number already.

    Raises
    ------
    BadParameter
        If it is none.
    """
    written = str(text).strip()
    match = _TIME.fullmatch(written)
    number, unit = (match["number"], UNITS[match["unit"].lower()]) if match else (written, 1.0)
    return unit * _at_least_zero(number, written, "seconds, or a time such as 90s, 5m or 1h")


def _at_least_zero(number: str, written: str, wanted: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise BadParameter(f"{written!r} is not understood; give {wanted}") from None
    if math.isnan(value) or value < 0:
        raise BadParameter(f"{written} is below 0 or no number; give {wanted}")
    return value
